"""Every method of both services, over a real socket."""

from __future__ import annotations

from datetime import timedelta
from hashlib import sha256

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc import error_details_pb2
from tabmux.v1 import tab_service_pb2 as tab_pb
from tabmux.v1 import web_ai_service_pb2 as ai_pb
from tabmux.v1.lease_pb2 import LeaseTerms as LeaseTermsMessage
from tabmux.v1.prompt_pb2 import Prompt
from tabmux.v1.prompt_pb2 import PromptParts as PromptPartsMessage
from tabmux.v1.provider_pb2 import ProviderLimit, SelectorFinding
from tabmux.v1.provider_pb2 import ProviderStatus as ProviderStatusMessage
from tabmux.v1.session_pb2 import Session
from tabmux.v1.warning_pb2 import Warning as WarningMessage
from tabmuxd import wire
from tabmuxd.events.filters import session_filter, tab_filter
from tabmuxd.events.watch import Start
from tabmuxd.resources.artifacts import UploadOrder
from tabmuxd.resources.errors import Reason, Refused
from tabmuxd.resources.event import Progress
from tabmuxd.resources.imports import ImportOrder, ImportSource
from tabmuxd.resources.lease import LeaseTerms
from tabmuxd.resources.orders import (
    AdoptOrder,
    LeaseOrder,
    NavigationOrder,
    OpenedTab,
    PromptOrder,
    ScriptOrder,
    SessionFilter,
    SessionOrder,
    SessionUpdate,
    TabFilter,
    TabOrder,
    TabsOrder,
    TabUpdate,
)
from tabmuxd.resources.principal import local_person
from tabmuxd.resources.prompt import Preamble, PromptParts
from tabmuxd.resources.prompt import Prompt as PromptValue
from tabmuxd.resources.session import SessionState, TabDisposition
from tabmuxd.rpc.domain import ServerInfo
from tabmuxd.rpc.tab_service import TabService
from tabmuxd.rpc.watches import WatchSlots

from tests.rpc.fakes import (
    ARTIFACT,
    BROWSER,
    COUNTS,
    HISTORY,
    LEASE,
    NAVIGATION,
    NOW,
    PROVIDER,
    SESSION,
    TAB,
    TURN,
    Below,
    Call,
    FakeEvents,
    FakeScripts,
    FakeTabs,
    Served,
    status_from,
)

SERVICES = (
    tab_pb.DESCRIPTOR.services_by_name["TabService"],
    ai_pb.DESCRIPTOR.services_by_name["WebAiService"],
)
METHODS: dict[str, MethodDescriptor] = {method.name: method for service in SERVICES for method in service.methods}

PROGRESS = wire.progress_message(Progress(HISTORY, 9))
FULL_TURN = wire.turn_message(TURN, with_answer=True)
BARE_TURN = wire.turn_message(TURN, with_answer=False)
PROMPT = ai_pb.SendPromptRequest(parent=SESSION.name, prompt=Prompt(text="why?"), request_id="job-1")
HASH = "0" * 64
NAVIGATION_ORDER = NavigationOrder(TAB.name, "https://example.com/", milestone_timeout=timedelta(minutes=2))

# Request; what was asked below; responses.
Case = tuple[Message, list[Call], list[Message]]
CASES: dict[str, Case] = {
    "GetServerInfo": (
        tab_pb.GetServerInfoRequest(),
        [],
        [
            tab_pb.GetServerInfoResponse(
                version="1.2.3", principal="local", scopes=["admin", "ai", "drive", "read"], progress=PROGRESS
            )
        ],
    ),
    "GetBrowser": (
        tab_pb.GetBrowserRequest(name=BROWSER.name),
        [("browser", BROWSER.name)],
        [tab_pb.GetBrowserResponse(browser=wire.browser_message(BROWSER, COUNTS))],
    ),
    "ListBrowsers": (
        tab_pb.ListBrowsersRequest(),
        [],
        [tab_pb.ListBrowsersResponse(browsers=[wire.browser_message(BROWSER, COUNTS)], progress=PROGRESS)],
    ),
    "ListProviders": (
        ai_pb.ListProvidersRequest(),
        [],
        [ai_pb.ListProvidersResponse(providers=[wire.provider_message(PROVIDER)])],
    ),
    "CreateTab": (
        tab_pb.CreateTabRequest(uri="https://example.com/"),
        [
            (
                "create",
                "local",
                TabOrder(
                    uri="https://example.com/",
                    payload_sha256=sha256(
                        tab_pb.CreateTabRequest(uri="https://example.com/").SerializeToString()
                    ).hexdigest(),
                ),
            )
        ],
        [
            tab_pb.CreateTabResponse(tab=wire.tab_message(TAB), navigation=wire.navigation_message(NAVIGATION)),
        ],
    ),
    "AdoptTab": (
        tab_pb.AdoptTabRequest(front=True, group="g"),
        [("adopt", "local", AdoptOrder(front=True, group="g"))],
        [tab_pb.AdoptTabResponse(tab=wire.tab_message(TAB))],
    ),
    "GetTab": (
        tab_pb.GetTabRequest(name=TAB.name),
        [("get", TAB.name)],
        [tab_pb.GetTabResponse(tab=wire.tab_message(TAB))],
    ),
    "ListTabs": (
        tab_pb.ListTabsRequest(),
        [("list", TabFilter(), 0, 51)],
        [tab_pb.ListTabsResponse(tabs=[wire.tab_message(TAB)], progress=PROGRESS)],
    ),
    "UpdateTab": (
        tab_pb.UpdateTabRequest(name=TAB.name, pinned=False, labels={"a": ""}),
        [("update", "local", TabUpdate(TAB.name, pinned=False, labels={"a": ""}))],
        [tab_pb.UpdateTabResponse(tab=wire.tab_message(TAB))],
    ),
    "CloseTab": (
        tab_pb.CloseTabRequest(name=TAB.name, force=True),
        [("close", "local", TAB.name, "", True, False)],
        [tab_pb.CloseTabResponse(tab=wire.tab_message(TAB))],
    ),
    "CloseTabs": (
        tab_pb.CloseTabsRequest(all=True, any_owner=True, keep_front=True),
        [("close_many", "local", TabsOrder(any_owner=True, keep_front=True))],
        [
            tab_pb.CloseTabsResponse(
                outcomes=[
                    tab_pb.CloseTabsOutcome(
                        tab=TAB.name,
                        action=tab_pb.CloseTabsOutcome.ACTION_CLOSED,
                        idle_duration=Duration(seconds=1),
                    )
                ]
            )
        ],
    ),
    "RecoverTab": (
        tab_pb.RecoverTabRequest(name=TAB.name),
        [("recover", "local", TAB.name, "")],
        [tab_pb.RecoverTabResponse(tab=wire.tab_message(TAB), strategy=tab_pb.RecoverTabResponse.STRATEGY_RELOADED)],
    ),
    "CheckTabHealth": (
        tab_pb.CheckTabHealthRequest(name=TAB.name, probe_timeout=Duration(seconds=60)),
        [("check_health", TAB.name, timedelta(seconds=10))],
        [tab_pb.CheckTabHealthResponse(tab=wire.tab_message(TAB))],
    ),
    "ActivateTab": (
        tab_pb.ActivateTabRequest(name=TAB.name),
        [("activate", "local", TAB.name, "")],
        [tab_pb.ActivateTabResponse(tab=wire.tab_message(TAB))],
    ),
    "NavigateTab": (
        tab_pb.NavigateTabRequest(name=TAB.name, uri="https://example.com/", milestone_timeout=Duration(seconds=600)),
        [
            (
                "navigate",
                "local",
                NavigationOrder(TAB.name, "https://example.com/", milestone_timeout=timedelta(minutes=2)),
            )
        ],
        [tab_pb.NavigateTabResponse(tab=wire.tab_message(TAB), navigation=wire.navigation_message(NAVIGATION))],
    ),
    "EvaluateScript": (
        tab_pb.EvaluateScriptRequest(name=TAB.name, script="1", result_timeout=Duration(seconds=600)),
        [("evaluate", "local", ScriptOrder(TAB.name, "1", result_timeout=timedelta(minutes=1)))],
        [tab_pb.EvaluateScriptResponse(tab=wire.tab_message(TAB), result_json="1")],
    ),
    "AcquireLease": (
        tab_pb.AcquireLeaseRequest(tab=TAB.name, terms=LeaseTermsMessage(ttl=Duration(seconds=1), holder="h")),
        [("acquire", "local", LeaseOrder(TAB.name, LeaseTerms(timedelta(seconds=5), "h")))],
        [tab_pb.AcquireLeaseResponse(lease=wire.lease_message(LEASE))],
    ),
    "RenewLease": (
        tab_pb.RenewLeaseRequest(name=LEASE.name),
        [("renew", "local", LEASE.name)],
        [tab_pb.RenewLeaseResponse(lease=wire.lease_message(LEASE))],
    ),
    "ReleaseLease": (
        tab_pb.ReleaseLeaseRequest(name=LEASE.name),
        [("release", "local", LEASE.name)],
        [tab_pb.ReleaseLeaseResponse(lease=wire.lease_message(LEASE))],
    ),
    "ListLeases": (
        tab_pb.ListLeasesRequest(tab=TAB.name),
        [("list_leases", TAB.name, 0, 51)],
        [tab_pb.ListLeasesResponse(leases=[wire.lease_message(LEASE)], progress=PROGRESS)],
    ),
    "WatchTabs": (
        tab_pb.WatchTabsRequest(parent="browsers/-"),
        [("watch", Start.NOW, tab_filter(), timedelta(seconds=15))],
        [tab_pb.WatchTabsResponse(progress=PROGRESS)],
    ),
    "RenderPrompt": (
        ai_pb.RenderPromptRequest(
            provider="chatgpt",
            prompt=Prompt(parts=PromptPartsMessage(question="q", output=" "), preamble=Prompt.PREAMBLE_SAFETY),
        ),
        [("render_prompt", "chatgpt", PromptValue(PromptParts("q", output=" "), Preamble.SAFETY))],
        [
            ai_pb.RenderPromptResponse(
                text="Warum?",
                character_count=6,
                sha256=sha256(b"Warum?").hexdigest(),
                warnings=[WarningMessage(code="part-empty", message="m")],
            )
        ],
    ),
    "GetProviderStatus": (
        ai_pb.GetProviderStatusRequest(tab=TAB.name),
        [("status", TAB.name)],
        [
            ai_pb.GetProviderStatusResponse(
                status=ProviderStatusMessage(
                    provider="chatgpt",
                    tab=TAB.name,
                    generation=1,
                    ready=True,
                    sign_in=ProviderStatusMessage.SIGN_IN_SIGNED_IN,
                    composer=ProviderStatusMessage.COMPOSER_USABLE,
                    interstitial=ProviderStatusMessage.INTERSTITIAL_NONE,
                    limit=ProviderLimit(evidence="Limit reached.", reset_time=wire.timestamp(NOW + timedelta(hours=2))),
                    shown_model="Pro",
                    conversation_uri="https://chatgpt.com/c/1?token=redacted",
                    warnings=[WarningMessage(code="error-shown", message="The page shows an error.")],
                    descriptor_version="7",
                    check_time=wire.timestamp(NOW),
                )
            )
        ],
    ),
    "ProbeProvider": (
        ai_pb.ProbeProviderRequest(provider="chatgpt", tab=TAB.name),
        [("probe", "chatgpt", TAB.name)],
        [
            ai_pb.ProbeProviderResponse(
                findings=[
                    SelectorFinding(
                        field="page.send",
                        selector="button",
                        text="Send",
                        match_count=3,
                        visible_count=2,
                        taken_count=1,
                        element="button#send",
                        problem="none",
                        name="Go",
                    )
                ],
                generation=1,
                descriptor_version="7",
                check_time=wire.timestamp(NOW),
            )
        ],
    ),
    "CreateSession": (
        ai_pb.CreateSessionRequest(provider="chatgpt", session_id="s1"),
        [("create_session", "local", SessionOrder("chatgpt", session_id="s1", group="chatgpt"))],
        [ai_pb.CreateSessionResponse(session=wire.session_message(SESSION), created=True)],
    ),
    "GetSession": (
        ai_pb.GetSessionRequest(name=SESSION.name),
        [("get_session", SESSION.name)],
        [ai_pb.GetSessionResponse(session=wire.session_message(SESSION))],
    ),
    "RecoverSession": (
        ai_pb.RecoverSessionRequest(name=SESSION.name),
        [("recover_session", "local", SESSION.name)],
        [
            ai_pb.RecoverSessionResponse(
                session=wire.session_message(SESSION),
                strategy=ai_pb.RecoverSessionResponse.STRATEGY_NAVIGATED,
                previous_tab=TAB.name,
            )
        ],
    ),
    "ListSessions": (
        ai_pb.ListSessionsRequest(
            states=[Session.STATE_RETIRED], providers=["chatgpt"], labels={"a": "b"}, page_size=600
        ),
        [
            (
                "list_sessions",
                SessionFilter(frozenset({SessionState.RETIRED}), frozenset({"chatgpt"}), {"a": "b"}),
                0,
                501,
            )
        ],
        [ai_pb.ListSessionsResponse(sessions=[wire.session_message(SESSION)], progress=PROGRESS)],
    ),
    "UpdateSession": (
        ai_pb.UpdateSessionRequest(name=SESSION.name, labels={"a": ""}, ttl=Duration(seconds=1), expected_revision=4),
        [("update_session", "local", SessionUpdate(SESSION.name, 4, {"a": ""}, timedelta(minutes=1)))],
        [ai_pb.UpdateSessionResponse(session=wire.session_message(SESSION))],
    ),
    "RetireSession": (
        ai_pb.RetireSessionRequest(name=SESSION.name, tab_disposition=ai_pb.RetireSessionRequest.TAB_DISPOSITION_KEEP),
        [("retire_session", "local", SESSION.name, TabDisposition.KEEP)],
        [ai_pb.RetireSessionResponse(session=wire.session_message(SESSION))],
    ),
    "ListTurns": (
        ai_pb.ListTurnsRequest(parent=SESSION.name),
        [("list_turns", SESSION.name, 0, 51)],
        [ai_pb.ListTurnsResponse(turns=[BARE_TURN], progress=PROGRESS)],
    ),
    "SendPrompt": (
        PROMPT,
        [
            (
                "send_prompt",
                "local",
                PromptOrder(
                    SESSION.name,
                    PromptValue("why?"),
                    "job-1",
                    sha256(
                        ai_pb.SendPromptRequest(parent=SESSION.name, prompt=Prompt(text="why?")).SerializeToString()
                    ).hexdigest(),
                ),
            )
        ],
        [ai_pb.SendPromptResponse(turn=FULL_TURN)],
    ),
    "GetTurn": (
        ai_pb.GetTurnRequest(name=TURN.name),
        [("get_turn", TURN.name)],
        [ai_pb.GetTurnResponse(turn=FULL_TURN)],
    ),
    "WaitTurn": (
        ai_pb.WaitTurnRequest(name=TURN.name, after_revision=2),
        [("wait_turn", TURN.name, timedelta(seconds=30), 2)],
        [ai_pb.WaitTurnResponse(turn=FULL_TURN)],
    ),
    "StreamAnswer": (
        ai_pb.StreamAnswerRequest(name=TURN.name, known_size_bytes=1, known_sha256=HASH),
        [("stream_answer", TURN.name, 1, HASH)],
        [
            ai_pb.StreamAnswerResponse(text="4", size_bytes=1, turn=BARE_TURN),
            ai_pb.StreamAnswerResponse(offset_bytes=1, text="2", size_bytes=2, turn=BARE_TURN, sha256="ab"),
        ],
    ),
    "ReadArtifact": (
        ai_pb.ReadArtifactRequest(name=ARTIFACT.name, offset_bytes=1),
        [("get_artifact", "local", ARTIFACT.name), ("read", ARTIFACT, 1)],
        [
            ai_pb.ReadArtifactResponse(artifact=wire.artifact_message(ARTIFACT)),
            ai_pb.ReadArtifactResponse(chunk=b"ab"),
            ai_pb.ReadArtifactResponse(chunk=b"cde"),
        ],
    ),
    "CancelTurn": (
        ai_pb.CancelTurnRequest(name=TURN.name),
        [("cancel_turn", "local", TURN.name)],
        [ai_pb.CancelTurnResponse(turn=FULL_TURN)],
    ),
    "WatchSessions": (
        ai_pb.WatchSessionsRequest(with_tabs=True, bookmark_interval=Duration(nanos=1)),
        [("watch", Start.NOW, session_filter(with_tabs=True), timedelta(seconds=1))],
        [ai_pb.WatchSessionsResponse(progress=PROGRESS)],
    ),
}


IMPORT = [
    ai_pb.ImportSessionsRequest(
        info=ai_pb.ImportInfo(
            source=ai_pb.ImportInfo.SOURCE_CLI_JAW,
            browser=BROWSER.name,
            ttl=Duration(seconds=1),
            dry_run=True,
        )
    ),
    ai_pb.ImportSessionsRequest(chunk=b"ab"),
    ai_pb.ImportSessionsRequest(chunk=b"c"),
]


async def responses(
    served: Served, method: str, request: Message, *, authorization: str | None = None
) -> list[Message]:
    """All responses of a call of either service."""
    stub = served.tab_service if method in SERVICES[0].methods_by_name else served.web_ai_service
    behaviour = getattr(stub, method)
    metadata = [] if authorization is None else [("authorization", authorization)]
    argument = iter([request]) if METHODS[method].client_streaming else request
    call = behaviour(argument, metadata=metadata)
    return [response async for response in call] if METHODS[method].server_streaming else [await call]


@pytest.mark.parametrize("method", CASES)
async def test_built(served: Served, method: str) -> None:
    """A method that is built converts its request, makes one call below, and converts the answer."""
    request, asked, expected = CASES[method]
    served.events.replies = [message.SerializeToString() for message in expected]
    found = await responses(served, method, request)
    assert (found, served.below.calls) == (expected, asked)


async def test_import(served: Served) -> None:
    """An import takes its order first, then the file in chunks, and tells what became of the records."""
    response = await served.web_ai_service.ImportSessions(iter(IMPORT))

    order = ImportOrder(ImportSource.CLI_JAW, BROWSER.name, timedelta(minutes=1), dry_run=True)
    assert served.below.calls == [("import", "local", order, b"abc")]
    assert response == ai_pb.ImportSessionsResponse(
        imported_count=1,
        unchanged_count=2,
        skipped_count=1,
        skipped=[ai_pb.SkippedRecord(index=3, import_id="id", cause=ai_pb.SkippedRecord.CAUSE_STILL_LIVE)],
    )


@pytest.mark.parametrize(
    ("requests", "field"),
    [
        ([], "info"),
        (IMPORT[1:], "info"),
        ([*IMPORT, IMPORT[0]], "info"),
        ([ai_pb.ImportSessionsRequest(info=ai_pb.ImportInfo())], "info.source"),
        ([IMPORT[0], ai_pb.ImportSessionsRequest(chunk=bytes(256 * 1024 + 1))], "chunk"),
    ],
)
async def test_import_form(served: Served, requests: list[ai_pb.ImportSessionsRequest], field: str) -> None:
    """An import without its order first, or with a chunk that is too large, is INVALID_FIELD."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await served.web_ai_service.ImportSessions(iter(requests))

    info = error_details_pb2.ErrorInfo()
    assert any(detail.Unpack(info) for detail in status_from(caught.value).details)
    assert (info.reason, info.metadata["field"]) == ("INVALID_FIELD", field)


INFO = ai_pb.ArtifactInfo(display_name="a.txt", media_type="Text/Plain", size_bytes=5, sha256=HASH)
UPLOAD = [
    ai_pb.UploadArtifactRequest(info=INFO),
    ai_pb.UploadArtifactRequest(chunk=b"ab"),
    ai_pb.UploadArtifactRequest(chunk=b"cde"),
]


async def test_upload(served: Served) -> None:
    """An upload takes its description first, then the file in chunks, and tells what is kept."""
    response = await served.web_ai_service.UploadArtifact(iter(UPLOAD))

    assert served.below.calls == [("upload", "local", UploadOrder("a.txt", "text/plain", 5, HASH), b"abcde")]
    assert response == ai_pb.UploadArtifactResponse(artifact=wire.artifact_message(ARTIFACT))


def described(**values: object) -> list[ai_pb.UploadArtifactRequest]:
    """An upload whose description differs."""
    fields = {"display_name": "a.txt", "media_type": "text/plain", "size_bytes": 5, "sha256": HASH}
    return [ai_pb.UploadArtifactRequest(info=ai_pb.ArtifactInfo(**{**fields, **values}))]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("requests", "field"),
    [
        ([], "info"),
        (UPLOAD[1:], "info"),
        ([*UPLOAD, UPLOAD[0]], "info"),
        ([UPLOAD[0], ai_pb.UploadArtifactRequest(chunk=bytes(256 * 1024 + 1))], "chunk"),
        (described(display_name="../a"), "info.display_name"),
        (described(media_type="text"), "info.media_type"),
        (described(size_bytes=0), "info.size_bytes"),
        (described(size_bytes=-1), "info.size_bytes"),
        (described(size_bytes=32 * 1024 * 1024 + 1), "info.size_bytes"),
        (described(sha256=HASH.replace("0", "A")), "info.sha256"),
    ],
)
async def test_upload_form(served: Served, requests: list[ai_pb.UploadArtifactRequest], field: str) -> None:
    """SEC-07: an upload that is not described first, and rightly, or has a chunk that is too large is INVALID_FIELD."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await served.web_ai_service.UploadArtifact(iter(requests))

    info = error_details_pb2.ErrorInfo()
    assert any(detail.Unpack(info) for detail in status_from(caught.value).details)
    assert (info.reason, info.metadata["field"]) == ("INVALID_FIELD", field)


@pytest.mark.parametrize("method", sorted(METHODS.keys() - CASES.keys() - {"ImportSessions", "UploadArtifact"}))
async def test_not_built(served: Served, method: str) -> None:
    """Every other method of the contract is UNIMPLEMENTED, names itself, and has no details."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await responses(served, method, GetMessageClass(METHODS[method].input_type)())
    status = status_from(caught.value)
    assert (caught.value.code(), status.message.split()[0], list(status.details)) == (
        grpc.StatusCode.UNIMPLEMENTED, method, [],
    )  # fmt: skip
    assert served.below.calls == []


async def test_address_without_navigation(served: Served) -> None:
    """A tab that was opened without an address has no navigation in its answer."""
    served.tabs.opened = OpenedTab(TAB, None)
    response = await served.tab_service.CreateTab(tab_pb.CreateTabRequest())
    assert response == tab_pb.CreateTabResponse(tab=wire.tab_message(TAB))


async def test_principal_is_passed(served: Served) -> None:
    """A program that names itself is the principal that the domain is asked for (O-7)."""
    await served.tab_service.ActivateTab(
        tab_pb.ActivateTabRequest(name=TAB.name), metadata=[("authorization", "Local night-report")]
    )
    assert served.below.calls == [("activate", "local/night-report", TAB.name, "")]


async def test_server_info_of_a_program(served: Served) -> None:
    """GetServerInfo tells a program its name and its scopes, which lack `admin` (O-4, O-7)."""
    response = await served.tab_service.GetServerInfo(
        tab_pb.GetServerInfoRequest(), metadata=[("authorization", "Local a")]
    )
    assert (response.principal, list(response.scopes)) == ("local/a", ["ai", "drive", "read"])


async def test_scripts_disabled() -> None:
    """Where the settings do not allow scripts, EvaluateScript is METHOD_DISABLED for all, whatever is asked (O-70)."""
    below = Below()
    service = TabService(
        ServerInfo("1", ("EvaluateScript",)), FakeTabs(below), FakeScripts(below), FakeEvents(below), WatchSlots()
    )
    for request in (tab_pb.EvaluateScriptRequest(), tab_pb.EvaluateScriptRequest(name=TAB.name, script="1")):
        with pytest.raises(Refused) as caught:
            await service.EvaluateScript(request, local_person())
        assert (caught.value.reason, caught.value.metadata) == (
            Reason.METHOD_DISABLED,
            {"method": "EvaluateScript", "setting": "scripts", "page_touched": "no", "retry": "never"},
        )
    assert below.calls == []

"""Requests as orders: what is refused, clamped and not built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from datetime import timedelta
from functools import partial
from hashlib import sha256

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from tabmux.v1 import event_pb2, lease_pb2, prompt_pb2
from tabmux.v1 import tab_service_pb2 as tab_pb
from tabmux.v1 import web_ai_service_pb2 as ai_pb
from tabmuxd.events.filters import session_filter, tab_filter
from tabmuxd.events.watch import Start
from tabmuxd.resources.errors import NotBuilt, Reason, Refused
from tabmuxd.resources.event import EventKind, Progress
from tabmuxd.resources.lease import LeaseTerms
from tabmuxd.resources.orders import (
    AdoptOrder,
    LeaseOrder,
    NavigationOrder,
    PromptOrder,
    SessionFilter,
    SessionOrder,
    SessionUpdate,
    TabFilter,
    TabOrder,
    TabPolicy,
    TabUpdate,
)
from tabmuxd.resources.prompt import Preamble, Prompt, PromptParts
from tabmuxd.resources.session import TabDisposition
from tabmuxd.resources.tab import DialogPolicy, LoadMilestone, TabOrigin, TabState
from tabmuxd.rpc import lease_requests, prompt_requests, session_requests, tab_requests, watch_requests, web_ai_requests
from tabmuxd.rpc.watch_requests import WatchOrder

TAB = "browsers/main/tabs/k3v9x2m7qd"
SESSION = "sessions/s1"
TURN = "sessions/s1/turns/k3v9x2m7qd"
LEASE = "leases/k3v9x2m7qd"
UUID = "7A3C1F0E-0000-4000-8000-000000000001"
LABELS = {f"key{number}": "v" for number in range(16)}
NEGATIVE = Duration(seconds=-1)
LONG_URI = "https://e.com/" + "é" * 4090
TEXT = prompt_pb2.Prompt(text="why?")


def _any(kind: Callable[..., Message]) -> Callable[..., Message]:
    return kind


CONVERT: dict[type[Message], Callable[..., object]] = {
    tab_pb.CreateTabRequest: tab_requests.tab_order,
    tab_pb.AdoptTabRequest: tab_requests.adopt_order,
    tab_pb.UpdateTabRequest: tab_requests.tab_update,
    tab_pb.NavigateTabRequest: tab_requests.navigation_order,
    tab_pb.ListTabsRequest: tab_requests.tab_filter,
    tab_pb.CloseTabRequest: tab_requests.closed_tab,
    tab_pb.ActivateTabRequest: tab_requests.activated_tab,
    tab_pb.AcquireLeaseRequest: lease_requests.lease_order,
    tab_pb.RenewLeaseRequest: lease_requests.named_lease,
    tab_pb.ReleaseLeaseRequest: lease_requests.named_lease,
    ai_pb.ListSessionsRequest: session_requests.session_filter,
    ai_pb.UpdateSessionRequest: session_requests.session_update,
    ai_pb.RetireSessionRequest: session_requests.retired_session,
    tab_pb.ListLeasesRequest: lease_requests.listed_tab,
    tab_pb.WatchTabsRequest: watch_requests.tabs_watch,
    ai_pb.CreateSessionRequest: web_ai_requests.session_order,
    ai_pb.SendPromptRequest: web_ai_requests.prompt_order,
    ai_pb.RenderPromptRequest: prompt_requests.rendered_prompt,
    ai_pb.WaitTurnRequest: web_ai_requests.turn_wait,
    ai_pb.StreamAnswerRequest: web_ai_requests.known_answer,
    ai_pb.WatchSessionsRequest: watch_requests.sessions_watch,
}


# Of any arguments, since the tables also hold wrong ones.
create = _any(tab_pb.CreateTabRequest)
adopt = _any(tab_pb.AdoptTabRequest)
update = _any(partial(_any(tab_pb.UpdateTabRequest), name=TAB, pinned=True))
navigate = _any(partial(_any(tab_pb.NavigateTabRequest), name=TAB, uri="https://e.com/"))
acquire = _any(partial(_any(tab_pb.AcquireLeaseRequest), tab=TAB))
list_tabs = _any(tab_pb.ListTabsRequest)
watch_tabs = _any(tab_pb.WatchTabsRequest)
watch_sessions = _any(ai_pb.WatchSessionsRequest)
session = _any(partial(_any(ai_pb.CreateSessionRequest), provider="chatgpt"))
prompt = _any(partial(_any(ai_pb.SendPromptRequest), parent=SESSION, prompt=TEXT, request_id="r"))
list_sessions = _any(ai_pb.ListSessionsRequest)
retire = _any(partial(_any(ai_pb.RetireSessionRequest), name=SESSION))
said = _any(prompt_pb2.Prompt)
render = _any(partial(_any(ai_pb.RenderPromptRequest), provider="gemini"))


def converted(request: Message) -> object:
    """The order that `request` becomes."""
    return CONVERT[type(request)](request)


def resume(history_id: str, revision: int) -> event_pb2.WatchStart:
    """The start of a watch that resumes."""
    return event_pb2.WatchStart(resume=event_pb2.WatchProgress(history_id=history_id, revision=revision))


# Request, field, limit. Positions, target ids and names of other resources name no tab (O-9).
INVALID: list[tuple[Message, str, str | None]] = [
    *[
        (request(name=name), "name", None)
        for request in (tab_pb.CloseTabRequest, tab_pb.ActivateTabRequest, update, navigate)
        for name in (
            "", "1", "k3v9x2m7qd", "browsers/main", "browsers/main/tabs/", "browsers/main/tabs/3", f"{TAB}/", f" {TAB}",
            "browsers/main/tabs/0123456789ABCDEF0123456789ABCDEF", "browsers//tabs/k3v9x2m7qd", f"{TAB}\n", SESSION,
        )
    ],
    (create(parent="browsers/-"), "parent", None),
    (create(parent="main"), "parent", None),
    (create(parent="browsers/Main"), "parent", None),
    (create(uri=LONG_URI), "uri", "8192"),
    (create(group="A"), "group", None),
    (create(group="g" * 64), "group", None),
    (create(labels={**LABELS, "one": "more"}), "labels", "16"),
    (create(labels={"": "v"}), "labels", "63"),
    (create(labels={"k": ""}), "labels", "63"),
    (create(labels={"k": "v" * 64}), "labels", "63"),
    (create(labels={"k" * 64: "v"}), "labels", "63"),
    (create(until=4), "until", None),
    (create(until=-1), "until", None),
    (create(dialog_policy=4), "dialog_policy", None),
    (create(milestone_timeout=NEGATIVE), "milestone_timeout", None),
    (create(milestone_timeout=Duration(nanos=-1)), "milestone_timeout", None),
    (create(milestone_timeout=Duration(seconds=1, nanos=-1)), "milestone_timeout", None),
    (create(milestone_timeout=Duration(nanos=1_000_000_000)), "milestone_timeout", None),
    (create(milestone_timeout=Duration(seconds=2**62)), "milestone_timeout", None),
    (create(request_id="job-1"), "request_id", None),
    (create(request_id=UUID + "0"), "request_id", None),
    (create(from_pool=True), "group", None),
    (create(lease_terms=lease_pb2.LeaseTerms(ttl=NEGATIVE)), "lease_terms.ttl", None),
    (create(lease_terms=lease_pb2.LeaseTerms(holder="h" * 64)), "lease_terms.holder", "63"),
    (adopt(), "target_id", None),
    (adopt(target_id="T" * 65), "target_id", "64"),
    (adopt(target_id="T", front=True), "front", None),
    (adopt(front=True, parent="browsers/-"), "parent", None),
    (adopt(front=True, group="No"), "group", None),
    (adopt(front=True, labels={"k": ""}), "labels", "63"),
    (tab_pb.UpdateTabRequest(name=TAB), "update", None),
    (tab_pb.UpdateTabRequest(name=TAB, expected_revision=3), "update", None),
    (update(expected_revision=-1), "expected_revision", None),
    (update(group="No"), "group", None),
    (update(dialog_policy=9), "dialog_policy", None),
    (update(labels={"": "v"}), "labels", "63"),
    (update(labels={**LABELS, "one": "more"}), "labels", "16"),
    (update(share_with=["local/a", "local/A"]), "share_with[1]", None),
    (update(unshare_with=[""]), "unshare_with[0]", None),
    (update(share_with=[f"local/{number}" for number in range(17)]), "share_with", "16"),
    (update(share_with=["local/a"], unshare_with=["local/a"]), "unshare_with", None),
    (navigate(uri=""), "uri", None),
    (navigate(uri=LONG_URI), "uri", "8192"),
    (navigate(expected_generation=-1), "expected_generation", None),
    (navigate(until=7), "until", None),
    (navigate(milestone_timeout=NEGATIVE), "milestone_timeout", None),
    (navigate(request_id="no-uuid"), "request_id", None),
    (navigate(lease="leases/mine"), "lease", None),
    (tab_pb.CloseTabRequest(name=TAB, lease=TAB), "lease", None),
    (tab_pb.ActivateTabRequest(name=TAB, lease="k3v9x2m7qd"), "lease", None),
    (tab_pb.AcquireLeaseRequest(), "tab", None),
    (acquire(terms=lease_pb2.LeaseTerms(ttl=NEGATIVE)), "terms.ttl", None),
    (acquire(terms=lease_pb2.LeaseTerms(holder="h" * 64)), "terms.holder", "63"),
    (acquire(request_id="job-1"), "request_id", None),
    (tab_pb.RenewLeaseRequest(), "name", None),
    (tab_pb.ReleaseLeaseRequest(name=TAB), "name", None),
    (tab_pb.ListLeasesRequest(tab="k3v9x2m7qd"), "tab", None),
    (list_tabs(parent="browsers/"), "parent", None),
    (list_tabs(states=[2, 0]), "states[1]", None),
    (list_tabs(states=[7]), "states[0]", None),
    (list_tabs(origins=[5]), "origins[0]", None),
    (list_tabs(groups=["a", "A"]), "groups[1]", None),
    (list_tabs(labels={"k": ""}), "labels", "63"),
    (watch_tabs(parent="browsers/a b"), "parent", None),
    (watch_tabs(tabs=[TAB, "x"]), "tabs[1]", None),
    (watch_tabs(tabs=[TAB] * 501), "tabs", "500"),
    (watch_tabs(kinds=[0]), "kinds[0]", None),
    (watch_tabs(kinds=[5]), "kinds[0]", None),
    (watch_tabs(bookmark_interval=NEGATIVE), "bookmark_interval", None),
    (watch_tabs(start=resume("", 3)), "start.resume.history_id", None),
    (watch_tabs(start=resume("h", -1)), "start.resume.revision", None),
    (watch_sessions(sessions=["sessions/A"]), "sessions[0]", None),
    (watch_sessions(sessions=[SESSION] * 501), "sessions", "500"),
    (watch_sessions(kinds=[99]), "kinds[0]", None),
    (watch_sessions(bookmark_interval=NEGATIVE), "bookmark_interval", None),
    (session(provider=""), "provider", None),
    (session(browser="browsers/-"), "browser", None),
    (session(session_id="S"), "session_id", None),
    (session(session_id="s" * 64), "session_id", None),
    (session(conversation_uri=LONG_URI), "conversation_uri", "8192"),
    (session(labels={"k": ""}), "labels", "63"),
    (session(ttl=NEGATIVE), "ttl", None),
    (session(new_tab=ai_pb.NewTab(group="?")), "new_tab.group", None),
    (session(pooled_tab=ai_pb.PooledTab(group="?")), "pooled_tab.group", None),
    (session(tab="front"), "tab", None),
    (prompt(parent="s1"), "parent", None),
    (prompt(request_id=""), "request_id", None),
    (prompt(request_id="a b"), "request_id", None),
    (prompt(request_id="r" * 65), "request_id", None),
    (prompt(answer_timeout=NEGATIVE), "answer_timeout", None),
    (prompt(prompt=None), "prompt", None),
    (prompt(prompt=prompt_pb2.Prompt(text="")), "prompt.text", None),
    (prompt(prompt=prompt_pb2.Prompt(text=" \n\t\u3000")), "prompt.text", None),
    (prompt(prompt=prompt_pb2.Prompt(text="é" * (512 * 1024) + "x")), "prompt.text", "1048576"),
    (prompt(prompt=said(text="x", preamble=3)), "prompt.preamble", None),
    (prompt(prompt=said(text="x", preamble=-1)), "prompt.preamble", None),
    (prompt(prompt=prompt_pb2.Prompt(parts=prompt_pb2.PromptParts())), "prompt.parts.question", None),
    (prompt(prompt=said(parts=prompt_pb2.PromptParts(question="\u2003\r\n"))), "prompt.parts.question", None),
    (render(provider=""), "provider", None),
    (render(), "prompt", None),
    (render(prompt=said(text="x", preamble=3)), "prompt.preamble", None),
    (render(prompt=said(text=" ")), "prompt.text", None),
    (prompt(prompt=prompt_pb2.Prompt(parts=prompt_pb2.PromptParts(goal="g"))), "prompt.parts.question", None),
    (
        prompt(prompt=prompt_pb2.Prompt(parts=prompt_pb2.PromptParts(question="q", context="c" * 1024 * 1024))),
        "prompt.parts",
        "1048576",
    ),
    (prompt(attachments=["artifacts/k3v9x2m7qd"] * 11), "attachments", "10"),
    (prompt(attachments=["/etc/passwd"]), "attachments[0]", None),
    (prompt(attachments=["artifacts/k3v9x2m7qd"] * 2), "attachments[1]", None),
    (prompt(model="Pro"), "model", None),
    (prompt(model="pro "), "model", None),
    (prompt(model="m" * 64), "model", None),
    (list_sessions(states=[0]), "states[0]", None),
    (ai_pb.ListSessionsRequest(providers=["a", ""]), "providers[1]", None),
    (ai_pb.ListSessionsRequest(labels={"k": ""}), "labels", "63"),
    (ai_pb.UpdateSessionRequest(name=TURN, labels={"a": "b"}), "name", None),
    (ai_pb.UpdateSessionRequest(name=SESSION), "update", None),
    (ai_pb.UpdateSessionRequest(name=SESSION, labels={"a": "b"}, expected_revision=-1), "expected_revision", None),
    (ai_pb.UpdateSessionRequest(name=SESSION, labels=LABELS | {"more": "v"}), "labels", "16"),
    (ai_pb.UpdateSessionRequest(name=SESSION, ttl=NEGATIVE), "ttl", None),
    (ai_pb.RetireSessionRequest(name="s1"), "name", None),
    (retire(tab_disposition=4), "tab_disposition", None),
    (ai_pb.WaitTurnRequest(name=SESSION), "name", None),
    (ai_pb.WaitTurnRequest(name=TURN, max_wait_duration=NEGATIVE), "max_wait_duration", None),
    (ai_pb.WaitTurnRequest(name=TURN, after_revision=-1), "after_revision", None),
    (ai_pb.StreamAnswerRequest(name="sessions/s1/turns/1"), "name", None),
    (ai_pb.StreamAnswerRequest(name=TURN, known_size_bytes=-1), "known_size_bytes", None),
    (ai_pb.StreamAnswerRequest(name=TURN, known_size_bytes=1), "known_sha256", None),
    (ai_pb.StreamAnswerRequest(name=TURN, known_size_bytes=1, known_sha256="A" * 64), "known_sha256", None),
    (ai_pb.StreamAnswerRequest(name=TURN, known_sha256="0"), "known_sha256", None),
]  # fmt: skip


@pytest.mark.parametrize(("request_", "field", "limit"), INVALID, ids=lambda value: str(value)[:40].replace("\n", " "))
def test_invalid(request_: Message, field: str, limit: str | None) -> None:
    """A malformed request is INVALID_FIELD with the path of the field, and the limit where one is exceeded (SEC-08)."""
    with pytest.raises(Refused) as caught:
        converted(request_)
    expected = {"field": field} if limit is None else {"field": field, "limit": limit}
    assert (caught.value.reason, caught.value.metadata) == (Reason.INVALID_FIELD, expected)


NOT_BUILT: list[tuple[Message, str]] = [
    (navigate(request_id=UUID), "NavigateTabRequest.request_id"),
]


@pytest.mark.parametrize(("request_", "what"), NOT_BUILT, ids=[what for _, what in NOT_BUILT])
def test_not_built(request_: Message, what: str) -> None:
    """An option that is not built is refused by its name, never ignored."""
    with pytest.raises(NotBuilt) as caught:
        converted(request_)
    assert caught.value.what == what


@pytest.mark.parametrize(
    "request_",
    [
        navigate(request_id=UUID, milestone_timeout=NEGATIVE),
    ],
    ids=["navigate"],
)
def test_form_comes_first(request_: Message) -> None:
    """A malformed request is INVALID_FIELD, though it also asks for what is not built."""
    with pytest.raises(Refused) as caught:
        converted(request_)
    assert caught.value.reason is Reason.INVALID_FIELD


def payload(request: Message) -> str:
    """SHA-256 of a request."""
    return sha256(request.SerializeToString(deterministic=True)).hexdigest()


# As they came: what is dropped of them, and in which order they are told, is for the domain to say.
EVERY_PART = PromptParts(
    question=" q", system="s\r\n", project="p", goal="g", context="\u202ec\0", output="\t", constraints="n"
)
SAFE_PARTS = prompt_pb2.Prompt(
    parts=prompt_pb2.PromptParts(**{field.name: getattr(EVERY_PART, field.name) for field in fields(EVERY_PART)}),
    preamble=prompt_pb2.Prompt.PREAMBLE_SAFETY,
)

ORDERS: list[tuple[Message, object]] = [
    (create(), TabOrder(payload_sha256=payload(create()))),
    (
        create(
            parent="browsers/main", uri="https://e.com/", group="g.1", labels=LABELS, pinned=True, activate=True,
            until=1, dialog_policy=3, milestone_timeout=Duration(seconds=7), request_id=UUID,
        ),
        TabOrder(
            browser="browsers/main", uri="https://e.com/", group="g.1", labels=LABELS, pinned=True, activate=True,
            until=LoadMilestone.COMMITTED, dialog_policy=DialogPolicy.DISMISS, milestone_timeout=timedelta(seconds=7),
            request_id=UUID.lower(),
            payload_sha256=payload(
                create(
                    parent="browsers/main", uri="https://e.com/", group="g.1", labels=LABELS, pinned=True,
                    activate=True, until=1, dialog_policy=3, milestone_timeout=Duration(seconds=7),
                )
            ),
        ),
    ),
    (
        adopt(parent="browsers/main", target_id="T", group="g", labels={"a": "1"}),
        AdoptOrder("browsers/main", "T", group="g", labels={"a": "1"}),
    ),
    (adopt(front=True), AdoptOrder(front=True)),
    (
        update(name="browsers/-/tabs/k3v9x2m7qd", group="", labels={"a": "", "b": "2"}, share_with=["alice", "alice"]),
        TabUpdate(
            "browsers/-/tabs/k3v9x2m7qd", group="", pinned=True, labels={"a": "", "b": "2"}, share_with=("alice",)
        ),
    ),
    (update(pinned=None, dialog_policy=2), TabUpdate(TAB, dialog_policy=DialogPolicy.ACCEPT)),
    (tab_pb.UpdateTabRequest(name=TAB, unshare_with=["local"]), TabUpdate(TAB, unshare_with=("local",))),
    (
        navigate(milestone_timeout=Duration(), until=2, expected_generation=3, lease=LEASE),
        NavigationOrder(
            TAB, "https://e.com/", LEASE, expected_generation=3, until=LoadMilestone.DOM_CONTENT_LOADED,
            milestone_timeout=timedelta(milliseconds=100),
        ),
    ),
    (
        create(lease_terms=lease_pb2.LeaseTerms()),
        TabOrder(lease_terms=LeaseTerms(), payload_sha256=payload(create(lease_terms=lease_pb2.LeaseTerms()))),
    ),
    (acquire(), LeaseOrder(TAB)),
    (
        acquire(terms=lease_pb2.LeaseTerms(ttl=Duration(seconds=601))),
        LeaseOrder(TAB, LeaseTerms(timedelta(minutes=10))),
    ),
    (
        acquire(
            terms=lease_pb2.LeaseTerms(ttl=Duration(nanos=1), holder="h" * 63, close_on_expiry=True), request_id=UUID
        ),
        LeaseOrder(TAB, LeaseTerms(timedelta(seconds=5), "h" * 63, close_on_expiry=True), UUID.lower()),
    ),
    (ai_pb.ListSessionsRequest(), SessionFilter()),
    (ai_pb.UpdateSessionRequest(name=SESSION, ttl=Duration()), SessionUpdate(SESSION, ttl=timedelta(minutes=1))),
    (retire(), (SESSION, TabDisposition.UNSPECIFIED)),
    (retire(tab_disposition=2), (SESSION, TabDisposition.CLOSE)),
    (tab_pb.RenewLeaseRequest(name=LEASE), LEASE),
    (tab_pb.ListLeasesRequest(), ""),
    (tab_pb.ListLeasesRequest(tab="browsers/-/tabs/k3v9x2m7qd"), "browsers/-/tabs/k3v9x2m7qd"),
    (
        list_tabs(parent="browsers/main", states=[6, 2, 2], origins=[4], groups=["", "g"], labels={"a": "1"}),
        TabFilter(
            "browsers/main", frozenset({TabState.CLOSED, TabState.READY}), frozenset({TabOrigin.FOREIGN}),
            frozenset({"", "g"}), {"a": "1"},
        ),
    ),
    (list_tabs(parent="browsers/-"), TabFilter()),
    (
        watch_tabs(start=resume("h", 5), parent="browsers/main", tabs=[TAB], kinds=[4], bookmark_interval=Duration()),
        WatchOrder(
            Progress("h", 5), tab_filter(parent="browsers/main", tabs=[TAB], kinds=[EventKind.ENDED]),
            timedelta(seconds=1),
        ),
    ),
    (
        watch_tabs(start=event_pb2.WatchStart(), bookmark_interval=Duration(seconds=301)),
        WatchOrder(Start.NOW, tab_filter(), timedelta(minutes=5)),
    ),
    (
        watch_sessions(
            start=event_pb2.WatchStart(snapshot=event_pb2.WatchSnapshot()), sessions=[SESSION], with_tabs=True
        ),
        WatchOrder(Start.SNAPSHOT, session_filter(sessions=[SESSION], with_tabs=True), timedelta(seconds=15)),
    ),
    (
        session(new_tab=ai_pb.NewTab(group="g", activate=True), ttl=Duration(seconds=1), browser="browsers/main"),
        SessionOrder("chatgpt", "browsers/main", ttl=timedelta(minutes=1), group="g", activate=True),
    ),
    (
        session(pooled_tab=ai_pb.PooledTab(group="p")),
        SessionOrder("chatgpt", group="p", policy=TabPolicy.POOLED),
    ),
    (session(pooled_tab=ai_pb.PooledTab()), SessionOrder("chatgpt", group="chatgpt", policy=TabPolicy.POOLED)),
    (session(front_tab=ai_pb.FrontTab()), SessionOrder("chatgpt", group="chatgpt", policy=TabPolicy.FRONT)),
    (session(tab=TAB), SessionOrder("chatgpt", group="chatgpt", policy=TabPolicy.NAMED, tab=TAB)),
    (
        session(ttl=Duration(seconds=400 * 86400), conversation_uri="https://e.com/c/1", labels={"a": "1"}),
        SessionOrder(
            "chatgpt", conversation_uri="https://e.com/c/1", labels={"a": "1"}, ttl=timedelta(days=365), group="chatgpt"
        ),
    ),
    (
        prompt(answer_timeout=Duration(seconds=1), request_id="job:1_a.b-C"),
        PromptOrder(
            SESSION, Prompt("why?"), "job:1_a.b-C",
            payload(ai_pb.SendPromptRequest(parent=SESSION, prompt=TEXT, answer_timeout=Duration(seconds=1))),
            timedelta(seconds=10),
        ),
    ),
    (
        prompt(model="extra-high"),
        PromptOrder(
            SESSION, Prompt("why?"), "r",
            payload(ai_pb.SendPromptRequest(parent=SESSION, prompt=TEXT, model="extra-high")),
            model="extra-high",
        ),
    ),
    (
        prompt(prompt=SAFE_PARTS),
        PromptOrder(
            SESSION, Prompt(EVERY_PART, Preamble.SAFETY), "r",
            payload(ai_pb.SendPromptRequest(parent=SESSION, prompt=SAFE_PARTS)),
        ),
    ),
    (render(prompt=said(text=" x\0", preamble=1)), ("gemini", Prompt(" x\0"))),
    (
        render(prompt=prompt_pb2.Prompt(parts=prompt_pb2.PromptParts(question="q", context=" " * 2**21))),
        ("gemini", Prompt(PromptParts("q", context=" " * 2**21))),
    ),
    (
        ai_pb.WaitTurnRequest(name=TURN, max_wait_duration=Duration(seconds=86400)),
        web_ai_requests.TurnWait(TURN, timedelta(minutes=10), 0),
    ),
    (
        ai_pb.WaitTurnRequest(name=TURN, max_wait_duration=Duration()),
        web_ai_requests.TurnWait(TURN, timedelta(0), 0),
    ),
    (
        ai_pb.StreamAnswerRequest(name=TURN, known_size_bytes=4, known_sha256="0" * 64),
        web_ai_requests.KnownAnswer(TURN, 4, "0" * 64),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("request_", "order"), ORDERS, ids=lambda value: type(value).__name__)
def test_order(request_: Message, order: object) -> None:
    """A well-formed request becomes an order with defaults filled in and times clamped as documented (WAT-10)."""
    assert converted(request_) == order


def test_payload_of_another_id() -> None:
    """The same request under another id has the same payload hash, another request another."""
    hashes = {
        web_ai_requests.prompt_order(
            ai_pb.SendPromptRequest(parent=SESSION, prompt=each, request_id=key)
        ).payload_sha256
        for each, key in ((TEXT, "1"), (TEXT, "2"), (prompt_pb2.Prompt(text="why? "), "1"))
    }
    assert len(hashes) == 2


def test_largest_prompt() -> None:
    """A prompt of exactly 1 MiB is taken."""
    text = "é" * (512 * 1024)
    request = ai_pb.SendPromptRequest(parent=SESSION, prompt=prompt_pb2.Prompt(text=text), request_id="r")
    assert web_ai_requests.prompt_order(request).prompt == Prompt(text)

"""What becomes of a record, and what is left out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tabmuxd.resources.errors import Failure
from tabmuxd.resources.imports import ImportSource, SkipCause
from tabmuxd.resources.session import CompletionEvidence, Session, SessionState, Turn, TurnState
from tabmuxd.webai.importing import agbrowse, cli_jaw
from tabmuxd.webai.importing.becoming import Become, become
from tabmuxd.webai.importing.old_records import Malformed, OldRecord

from tests.imports.files import SECRET, Record, providers, record
from tests.imports.files import agbrowse as of_agbrowse
from tests.imports.files import cli_jaw as of_cli_jaw

AGBROWSE, CLI_JAW = ImportSource
NOW: Final = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
CREATED: Final = datetime(2026, 1, 2, 9, 14, 3, 118_000, tzinfo=UTC)
UPDATED: Final = datetime(2026, 1, 2, 9, 14, 52, 660_000, tzinfo=UTC)
TTL: Final = timedelta(days=7)
PROVIDERS: Final = providers()


def _old(values: object) -> OldRecord:
    tool = agbrowse if isinstance(values, dict) and "originalUrl" in values else cli_jaw
    return tool.record_of(values)


def _become(values: object, *, now: datetime = NOW, models: tuple[str, ...] = ()) -> Become | SkipCause:
    old = _old(values)
    names = ["sessions/s", *(f"sessions/s/turns/{number:010d}" for number in range(len(old.turns)))]
    return become(
        old,
        PROVIDERS.get(old.vendor or ""),
        names=names,
        owner="local/a",
        browser="browsers/main",
        ttl=TTL,
        now=now,
        models=models,
    )


def _taken(values: object, **more: Any) -> Become:  # noqa: ANN401 - as above
    found = _become(values, **more)
    assert isinstance(found, Become), found
    return found


def _turn(values: object) -> Turn:
    (turn,) = _taken(values).turns
    return turn


def test_agbrowse() -> None:
    """A record of agbrowse becomes a parked session with one turn, whole; nothing else of it is copied."""
    found = _taken(of_agbrowse())

    assert found == Become(
        Session(
            name="sessions/s",
            state=SessionState.ACTIVE,
            provider="gemini",
            descriptor_version="7",
            owner="local/a",
            create_time=CREATED,
            last_active_time=UPDATED,
            browser="browsers/main",
            conversation_uri="https://gemini.google.com/app/7be1f0c29d",
            labels={"import-source": "agbrowse", "import-id": "01M6DRK0ZED4T8W0YX00000000"},
            ttl=TTL,
            expire_time=NOW + TTL,
            last_turn="sessions/s/turns/0000000000",
            prompted=True,
        ),
        (
            Turn(
                name="sessions/s/turns/0000000000",
                state=TurnState.SUCCEEDED,
                request_id="",
                prompt_sha256="",
                payload_sha256="",
                create_time=CREATED,
                expire_time=datetime(2026, 1, 2, 9, 34, 3, 117_000, tzinfo=UTC),
                answer_markdown="Lisbon.",
                answer_size_bytes=7,
                completion=CompletionEvidence(done_mark=False, stable_duration=timedelta(0)),
                warnings=found.turns[0].warnings,
                end_time=datetime(2026, 1, 2, 9, 14, 52, 655_000, tzinfo=UTC),
            ),
        ),
        lost=False,
    )
    assert [warning.code for warning in found.turns[0].warnings] == ["imported"]
    assert SECRET not in repr(found)


def test_cli_jaw() -> None:
    """A record of cli-jaw becomes the same, with the Markdown that was kept and how long it was unchanged."""
    found = _taken(of_cli_jaw())
    (turn,) = found.turns

    assert (found.session.provider, found.session.conversation_uri, dict(found.session.labels)) == (
        "chatgpt",
        "https://chatgpt.com/c/68f2-aa10",
        {"import-source": "cli-jaw", "import-id": "3c0b8f52-6a1e-4d7b-9a55-000000000000"},
    )
    assert (turn.state, turn.answer_markdown, turn.completion, turn.create_time, turn.expire_time, turn.end_time) == (
        TurnState.SUCCEEDED,
        "# Markdown",
        CompletionEvidence(done_mark=False, stable_duration=timedelta(seconds=1.5)),
        CREATED,
        CREATED + timedelta(minutes=10),
        datetime(2026, 1, 2, 9, 14, 50, tzinfo=UTC),
    )
    assert SECRET not in repr(found)


_TIMEOUT = ("FAILED", "ANSWER_TIMEOUT", "yes")
_UNCONFIRMED = ("FAILED", "SUBMIT_UNCONFIRMED", "unknown")
_GONE = ("FAILED", "TAB_GONE", "unknown")


@pytest.mark.parametrize(
    ("source", "fields", "expected"),
    [
        (AGBROWSE, {"status": "complete"}, ("SUCCEEDED", "", "")),
        (AGBROWSE, {"status": "completed"}, ("SUCCEEDED", "", "")),
        (AGBROWSE, {"status": "complete", "answer": None}, _TIMEOUT),
        (AGBROWSE, {"status": "complete", "answer": " \n"}, _TIMEOUT),
        (AGBROWSE, {"status": "complete", "answer": 5}, _TIMEOUT),
        (AGBROWSE, {"status": "polling"}, _TIMEOUT),
        (AGBROWSE, {"status": "timeout"}, _TIMEOUT),
        (AGBROWSE, {"status": "sent"}, _UNCONFIRMED),
        (AGBROWSE, {"status": "crashed"}, _GONE),
        (AGBROWSE, {"status": "error"}, _UNCONFIRMED),
        (AGBROWSE, {"status": "error", "lastError": {"errorCode": "provider.poll-timeout"}}, _TIMEOUT),
        (AGBROWSE, {"status": "error", "lastError": {"errorCode": "tab.target-lost"}}, _GONE),
        (
            AGBROWSE,
            {"status": "error", "lastError": {"errorCode": "provider.work-state-unknown"}},
            ("FAILED", "PROVIDER_PAGE_CHANGED", "yes"),
        ),
        (AGBROWSE, {"status": "error", "lastError": {"errorCode": SECRET, "message": SECRET}}, _UNCONFIRMED),
        (AGBROWSE, {"status": "complete", "lastError": {"errorCode": "tab.target-lost"}}, ("SUCCEEDED", "", "")),
        (AGBROWSE, {"status": "blocked"}, ("FAILED", "PROVIDER_LIMITED", "unknown")),
        (AGBROWSE, {"status": "failed"}, ("FAILED", "PROVIDER_FAILED", "yes")),
        (AGBROWSE, {"status": "partial"}, _UNCONFIRMED),
        (AGBROWSE, {"status": SECRET}, _UNCONFIRMED),
        (CLI_JAW, {"status": "complete"}, ("SUCCEEDED", "", "")),
        (CLI_JAW, {"status": "complete", "answerText": ..., "answerArtifact": ...}, ("CANCELLED", "", "")),
        (CLI_JAW, {"status": "streaming"}, _TIMEOUT),
        (CLI_JAW, {"status": "timeout"}, _TIMEOUT),
        (CLI_JAW, {"status": "sent"}, _UNCONFIRMED),
        (CLI_JAW, {"status": "error", "lastError": "provider.poll-timeout"}, _UNCONFIRMED),
    ],
)
def test_status(source: ImportSource, fields: Mapping[str, Any], expected: tuple[str, str, str]) -> None:
    """How a turn ended follows from the status of its record; text never makes a failure a success, and is kept."""
    turn = _turn(record(source, **fields))

    error = turn.error or Failure("", "", {"page_touched": ""})
    assert (turn.state.name, error.reason, error.metadata["page_touched"]) == expected
    assert (error.metadata.get("retry"), error.retry_delay) == ("after-verify" if turn.error else None, None)
    assert (turn.completion is not None) is (turn.state is TurnState.SUCCEEDED)
    kept = {AGBROWSE: fields.get("answer", "Lisbon."), CLI_JAW: "" if "answerText" in fields else "# Markdown"}[source]
    assert turn.answer_markdown == (kept if isinstance(kept, str) else "")
    assert SECRET not in repr(turn)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "# Markdown"),
        ({"answerArtifact": {"markdown": " ", "text": "x"}}, "Text."),
        ({"answerArtifact": {"text": "x"}}, "Text."),
        ({"answerArtifact": "x"}, "Text."),
        ({"answerArtifact": ...}, "Text."),
    ],
)
def test_markdown(fields: Mapping[str, Any], expected: str) -> None:
    """The answer of cli-jaw is the Markdown it kept, or else its text."""
    assert _turn(of_cli_jaw(**fields)).answer_markdown == expected


@pytest.mark.parametrize(
    ("status", "end"),
    [("complete", 50), ("error", 55), ("timeout", 51), ("sent", 52.66), ("streaming", 52.66)],
)
def test_end_of_cli_jaw(status: str, end: float) -> None:
    """A turn ended when the field of its status says; an old `staleAt` beside another status does not count."""
    turn = _turn(of_cli_jaw(status=status, failedAt="2026-01-02T09:14:55.000Z"))

    assert turn.end_time == datetime(2026, 1, 2, 9, 14, tzinfo=UTC) + timedelta(seconds=end)


def test_follow_ups() -> None:
    """With `turns` each entry is a turn, by its index; the first prompt gets none, and no prompt is copied."""
    later: list[Record] = [
        {
            "index": 2, "prompt": SECRET, "answer": None, "status": "failed", "warnings": [],
            "sentAt": "2026-01-02T09:14:40.000Z", "completedAt": None,
        },
        {
            "index": 1, "prompt": SECRET, "answer": "One.", "status": "complete", "warnings": [SECRET],
            "sentAt": "2026-01-02T09:14:20.000Z", "completedAt": "2026-01-02T09:14:30.000Z",
        },
    ]  # fmt: skip
    found = _taken(of_agbrowse(status="partial", turns=later, answer="overwritten", archived=True, artifacts=[{}]))

    assert [
        (turn.state.name, turn.answer_markdown, turn.create_time.second, turn.end_time and turn.end_time.second)
        for turn in found.turns
    ] == [("SUCCEEDED", "One.", 20, 30), ("FAILED", "", 40, 52)]
    assert [[warning.code for warning in turn.warnings] for turn in found.turns] == [
        ["imported"],
        ["imported", "import-archived", "import-artifacts-left"],
    ]
    assert found.session.last_turn == found.turns[-1].name
    assert SECRET not in repr(found)


@pytest.mark.parametrize(
    ("source", "fields", "codes"),
    [
        (AGBROWSE, {"archived": True}, ["imported", "import-archived"]),
        (AGBROWSE, {"archived": "yes"}, ["imported"]),
        (AGBROWSE, {"artifacts": [{"path": SECRET}]}, ["imported", "import-artifacts-left"]),
        (AGBROWSE, {"answer": None}, ["imported", "import-answer-missing"]),
        (CLI_JAW, {"answerText": ..., "answerArtifact": ...}, ["imported", "import-answer-missing"]),
        (AGBROWSE, {"answer": "é" * 600_000}, ["imported", "answer-cut"]),
    ],
)
def test_warnings(source: ImportSource, fields: Mapping[str, Any], codes: list[str]) -> None:
    """What was left behind is told by warnings; an answer above 1 MiB is cut."""
    turn = _turn(record(source, **fields))

    assert [warning.code for warning in turn.warnings] == codes
    assert turn.answer_size_bytes == len(turn.answer_markdown.encode()) <= 1024 * 1024
    assert SECRET not in repr(turn)


def test_halves_of_characters() -> None:
    """An answer with half a character is kept with a mark in its place: the store takes whole text only."""
    assert _turn(of_agbrowse(answer="a\ud83d b")).answer_markdown == "a? b"


def test_models() -> None:
    """The model asked for is kept if the provider has that id, the one shown if it was verified."""
    values = of_agbrowse(modelSelection={"resolvedLabel": "Pro 3", "verified": True, "requestedModel": "x"})

    ((known,), (unknown,)) = (_taken(values, models=models).turns for models in (("pro",), ()))
    assert [(turn.model, turn.shown_model) for turn in (known, unknown)] == [("pro", "Pro 3"), ("", "Pro 3")]
    unverified = of_agbrowse(modelSelection={"resolvedLabel": "Pro 3", "verified": 1})
    assert _turn(unverified).shown_model == ""


@pytest.mark.parametrize(
    ("fields", "conversation"),
    [
        ({}, "https://gemini.google.com/app/7be1f0c29d"),
        ({"conversationUrl": None}, ""),
        ({"conversationUrl": ...}, ""),
        (
            {"conversationUrl": None, "originalUrl": "https://gemini.google.com/app/1"},
            "https://gemini.google.com/app/1",
        ),
        ({"conversationUrl": None, "originalUrl": None}, ""),
        ({"conversationUrl": "https://gemini.google.com/app"}, ""),
        ({"conversationUrl": "https://gemini.google.com/share/1"}, ""),
        ({"conversationUrl": "https://gemini.google.com/app/1/2"}, ""),
    ],
)
def test_conversation(fields: Mapping[str, Any], conversation: str) -> None:
    """With no address of a conversation the session is retired at once: no prompt can land in a fresh chat (O-140)."""
    found = _taken(of_agbrowse(**fields))

    assert (found.session.conversation_uri, found.lost) == (conversation, not conversation)


@pytest.mark.parametrize(
    ("values", "cause"),
    [
        (of_agbrowse(vendor=None), SkipCause.UNKNOWN_PROVIDER),
        (of_agbrowse(vendor="claude"), SkipCause.UNKNOWN_PROVIDER),
        (of_agbrowse(conversationUrl="https://chatgpt.com/c/1"), SkipCause.ADDRESS_REFUSED),
        (of_agbrowse(conversationUrl=""), SkipCause.ADDRESS_REFUSED),
        (of_agbrowse(conversationUrl=None, originalUrl="javascript:1"), SkipCause.ADDRESS_REFUSED),
        (of_cli_jaw(conversationUrl=..., url="https://chatgpt.com.evil.example/c/1"), SkipCause.ADDRESS_REFUSED),
    ],
)
def test_skipped(values: Record, cause: SkipCause) -> None:
    """A record of no known provider, or with an address that is not its provider's, is left out."""
    assert _become(values) is cause


@pytest.mark.parametrize(
    "status", ["sent", "polling", "timeout", "crashed", "streaming", "complete", "error", "blocked"]
)
def test_live(status: str) -> None:
    """What may still be read by the other tool is left for the next import: until its deadline, or for 24 hours."""
    live = status not in {"complete", "error", "blocked"}
    deadline = datetime(2026, 1, 2, 9, 34, 3, 117_000, tzinfo=UTC)

    for values, until in (
        (of_agbrowse(status=status), deadline),
        (of_agbrowse(status=status, deadlineAt=None), UPDATED + timedelta(hours=24)),
        (of_cli_jaw(status=status), CREATED + timedelta(minutes=10)),
    ):
        before = _become(values, now=until - timedelta(milliseconds=1))
        assert (before is SkipCause.STILL_LIVE) is live
        assert isinstance(_become(values, now=until), Become)


@pytest.mark.parametrize(
    "values",
    [
        None, 5, "x", [], {}, of_agbrowse(sessionId=5), of_agbrowse(sessionId="01m6drk0zed4t8w0yx5h7qgnpa"),
        of_agbrowse(sessionId="01M6DRK0ZED4T8W0YX5H7QGNP"), of_agbrowse(sessionId="01M6DRK0ZED4T8W0YX5H7QGNPI"),
        of_agbrowse(sessionId="01M6DRK0ZED4T8W0YX5H7QGNPA\n"), of_agbrowse(createdAt=...), of_agbrowse(updatedAt=None),
        of_agbrowse(createdAt="2026-01-02"), of_agbrowse(createdAt="2026-13-02T09:14:03.118Z"),
        of_agbrowse(createdAt="2026-01-02T09:14:03.118+01:00"), of_agbrowse(createdAt=1), of_agbrowse(vendor=5),
        of_agbrowse(deadlineAt="soon"), of_agbrowse(status=None), of_agbrowse(promptHash=...),
        of_agbrowse(warnings=None), of_agbrowse(trace={}), of_agbrowse(artifacts=...), of_agbrowse(conversationUrl=5),
        of_agbrowse(turns=5), of_agbrowse(turns=[5]), of_agbrowse(turns=[{}]), of_agbrowse(turns=[{}] * 1001),
        of_agbrowse(turns=[{"index": True, "status": "complete", "sentAt": "2026-01-02T09:14:20.000Z"}]),
        of_cli_jaw(sessionId="3C0B8F52-6A1E-4D7B-9A55-0F2F5D0C7E11"),
        of_cli_jaw(sessionId="3c0b8f52-6a1e-1d7b-9a55-0f2f5d0c7e11"), of_cli_jaw(vendor=...), of_cli_jaw(targetId=...),
        of_cli_jaw(url=...), of_cli_jaw(timeoutMs="600000"), of_cli_jaw(timeoutMs=True),
        of_cli_jaw(timeoutMs=float("inf")), of_cli_jaw(timeoutMs=10**400), of_cli_jaw(assistantCount=None),
        of_cli_jaw(completedAt=5), of_cli_jaw(createdAt="9999-12-31T23:59:59.999Z"),
    ],
    ids=lambda _values: "",
)  # fmt: skip
def test_malformed(values: object) -> None:
    """A record without a field that it needs, or with one of another type, is malformed."""
    with pytest.raises(Malformed):
        _old(values)


_JUNK: st.SearchStrategy[object] = (
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats()
    | st.text(max_size=5)
    | st.just([])
    | st.just({})
    | st.sampled_from(
        ["0001-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z", "https://chatgpt.com/c/1", "complete", "sent", SECRET]
    )
    | st.lists(st.fixed_dictionaries({"index": st.floats(), "status": st.just("failed"), "sentAt": st.just(SECRET)}))
)


@settings(deadline=None, max_examples=300)
@given(
    source=st.sampled_from(ImportSource),
    name=st.sampled_from(sorted({*of_agbrowse(), *of_cli_jaw(), "turns", "modelSelection", "archived"})),
    other=st.sampled_from(sorted({*of_agbrowse(), *of_cli_jaw(), "lastError"})),
    junk=st.tuples(_JUNK, _JUNK),
)
def test_hostile(source: ImportSource, name: str, other: str, junk: tuple[object, object]) -> None:
    """Of a record with anything in any two fields is made what a session may be, or it is left out; nothing else."""
    values = record(source, **{name: junk[0], other: junk[1]})
    try:
        found = _become(values)
    except Malformed:
        return
    if isinstance(found, SkipCause):
        return
    session = found.session
    assert session.conversation_uri.startswith("https://") or (found.lost and not session.conversation_uri)
    assert session.create_time <= NOW
    assert session.last_active_time <= NOW
    for turn in found.turns:
        assert turn.ended
        assert turn.end_time is not None
        assert turn.create_time <= turn.end_time <= NOW
        turn.answer_markdown.encode()
    # The answer alone may be anything.
    shown = [replace(turn, answer_markdown="", completion=None) for turn in found.turns]
    assert SECRET not in repr((session, shown))

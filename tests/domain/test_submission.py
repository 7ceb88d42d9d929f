from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabmuxd.webai import submission
from tabmuxd.webai.samples import Composer, Role, Sample, SeenTurn, keys, lookup_hash

from tests.domain.values import SESSION, TAB, chat_session, playground, sample, told

_HERE = "http://textarea.localhost:8000"
_ONE = f"{_HERE}/c/0123456789ab"
_OTHER = f"{_HERE}/c/ba9876543210"


@pytest.mark.parametrize(
    ("uri", "conversation", "submitted", "reason"),
    [
        (f"{_HERE}/", "", False, None),
        (f"{_HERE}/?model=x#top", "", False, None),
        (_ONE, "", False, "PROVIDER_CONVERSATION_CHANGED"),
        (_ONE, "", True, None),
        (_ONE, _ONE, False, None),
        (_ONE, _ONE, True, None),
        (f"{_ONE}?model=x#top", _ONE, True, None),
        (f"http://TEXTAREA.localhost:8000{_ONE.removeprefix(_HERE)}", _ONE, True, None),
        (_OTHER, _ONE, False, "PROVIDER_CONVERSATION_CHANGED"),
        (_OTHER, _ONE, True, "PROVIDER_CONVERSATION_CHANGED"),
        (f"{_HERE}/", _ONE, True, "PROVIDER_CONVERSATION_CHANGED"),
        ("https://example.com/", "", False, "PROVIDER_NOT_SHOWN"),
        ("about:blank", _ONE, True, "PROVIDER_NOT_SHOWN"),
        ("https://textarea.localhost.evil.example/", "", False, "PROVIDER_NOT_SHOWN"),
    ],
)
def test_where(uri: str, conversation: str, reason: str | None, *, submitted: bool) -> None:
    """A prompt is typed, and an answer taken, only where the page shows the session's conversation (SUB-13, O-135)."""
    shown, session = replace(sample(), uri=uri), chat_session(conversation)

    refused = submission.where(playground(), shown, session, TAB, submitted=submitted)

    assert told(refused) == reason


def test_where_by_alias() -> None:
    """Another of the provider's hosts shows the same conversation (FIN-17)."""
    descriptor = replace(playground(), hosts=("textarea.localhost", "chat.localhost"))
    shown = replace(sample(), uri="http://chat.localhost:8000/c/0123456789ab")

    assert submission.where(descriptor, shown, chat_session(_ONE), TAB, submitted=True) is None
    assert told(submission.where(descriptor, shown, chat_session(_OTHER), TAB, submitted=True)) == (
        "PROVIDER_CONVERSATION_CHANGED"
    )


def test_where_is_silent() -> None:
    """The refusal names session and tab, and not what is shown there."""
    refused = submission.where(playground(), replace(sample(), uri=_OTHER), chat_session(_ONE), TAB, submitted=True)

    assert refused is not None
    assert refused.metadata == {"provider": "playground-textarea", "session": SESSION, "tab": TAB}
    assert "ba9876543210" not in refused.message


@pytest.mark.parametrize(
    ("ready", "composer", "stop", "verdict"),
    [
        (True, "usable", False, None),
        (False, "usable", False, "wait"),
        (True, "absent", False, "wait"),
        (True, "blocked", False, "wait"),
        (False, "absent", True, "wait"),
        (True, "usable", True, "PROVIDER_COMPOSER_UNUSABLE:busy"),
    ],
)
def test_may_type(composer: Composer, verdict: str | None, *, ready: bool, stop: bool) -> None:
    """A composer that is not there yet is waited for; one whose page still writes is refused (SUB-09, SUB-11)."""
    shown = replace(sample(), ready=ready, composer=composer, stop=stop)

    found = submission.may_type(playground(), shown, TAB)

    assert (found if found == "wait" else told(found)) == verdict


@pytest.mark.parametrize(
    ("shown", "cause"),
    [
        (None, "absent"),
        (replace(sample(), composer="absent"), "absent"),
        (replace(sample(), composer="blocked"), "blocked"),
        (replace(sample(), stop=True), "busy"),
        (replace(sample(), ready=False), "absent"),
    ],
)
def test_unusable(shown: Sample | None, cause: str) -> None:
    """When the wait is over the cause is told: never there, covered, or busy (SUB-09, SUB-10)."""
    refused = submission.unusable(playground(), shown, TAB)

    assert refused.failure().metadata == {"provider": "playground-textarea", "tab": TAB, "cause": cause}


def test_occupied() -> None:
    """A draft that is not ours is refused and not told (SUB-08)."""
    assert told(submission.occupied(playground(), TAB)) == "PROVIDER_COMPOSER_UNUSABLE:occupied"


@pytest.mark.parametrize(
    ("held", "own"),
    [
        ("", False),
        (" \n ", False),
        ("Line one", True),
        ("Line one\nLine", True),
        ("Line  one line two", False),
        ("Line one Line two", True),
        ("Line one\n\nLine two\n", True),
        ("Line one Line two and more", False),
        ("LineoneLinet", True),
        ("- Line one\n- Line two", True),
        ("Line one\nLine twoLine one\nLine two", True),
        ("Dear diary", False),
        ("one", False),
    ],
)
def test_own_leftover(held: str, *, own: bool) -> None:
    """Only what begins as the prompt does is our own leftover, to be removed; all else is a foreign draft (SUB-08)."""
    shown = replace(sample(), composer_text=held)

    assert submission.is_own_leftover(shown, "Line one\nLine two") is own


@pytest.mark.parametrize(
    ("held", "prompt", "exact", "whole"),
    [
        ("a\nb", "a\nb", True, True),
        ("a\nb", "a\r\nb", True, True),
        ("a\nb", "a\rb", True, True),
        ("a", "a\nb", True, False),
        ("a b", "a\nb", True, False),
        ("a\nb ", "a\nb", True, False),
        ("draft a\nb", "a\nb", True, False),
        ("", "a", True, False),
        ("a\n\nb\n", "a\nb", False, True),
        ("a\u00a0b", "a b", False, True),
        ("a", "a\nb", False, False),
        ("ab", "a b", False, False),
        ("a b", "a\nb", False, False),
        ("a\nb", "a b", False, False),
        ("a \u00a0 b\n\n\nc", "a b\nc", False, True),
        ("/help", "/help", False, True),
        ("@web find", "@web find", True, True),
    ],
)
def test_holds(held: str, prompt: str, *, exact: bool, whole: bool) -> None:
    """A text area has to hold exactly the prompt, a rich editor all its words alone (SUB-06, SUB-07, SUB-08)."""
    shown = replace(sample(), composer_text=held, composer_exact=exact)

    assert (submission.held(shown, prompt) == "whole") is whole


_PROMPTS = ["x" * 49_999, "y z\n" * 15_000, "\N{GRINNING FACE}\u05e9\u05dc\u05d5\u05dd\u200f" * 500, "/run @all"]


@pytest.mark.parametrize("prompt", _PROMPTS, ids=["49,999", "60,000", "right to left", "command"])
@pytest.mark.parametrize("exact", [True, False])
def test_holds_long(prompt: str, *, exact: bool) -> None:
    """Long and foreign texts are compared as a whole: without their last word they are not held (SUB-06, SUB-07)."""
    shown = replace(sample(), composer_text=prompt, composer_exact=exact)

    assert submission.held(shown, prompt) == "whole"
    assert submission.held(replace(shown, composer_text=prompt.rstrip()[:-1]), prompt) == "less"


@given(st.text(), st.text())
def test_holds_exactly(held: str, prompt: str) -> None:
    """A text area that holds anything but the prompt does not hold it (SUB-07)."""
    normal = prompt.replace("\r\n", "\n").replace("\r", "\n")

    assert (submission.held(replace(sample(), composer_text=held), prompt) == "whole") is (held == normal)
    assert submission.held(replace(sample(), composer_text=normal), prompt) == "whole"


@pytest.mark.parametrize(
    ("held", "exact", "found"),
    [
        ("", True, "less"),
        (" \n", False, "less"),
        ("Line one", True, "less"),
        ("Line oneLine two", False, "less"),
        ("Dear diary", True, "other"),
        ("Dear diary Line one\nLine two", False, "other"),
        ("Line one\nLine two Dear diary", False, "other"),
    ],
)
def test_held(held: str, found: str, *, exact: bool) -> None:
    """What came in part may be typed again, what is mixed with somebody's text may not (SUB-08, SUB-09)."""
    shown = replace(sample(), composer_text=held, composer_exact=exact)

    assert submission.held(shown, "Line one\nLine two") == found


@given(st.text(alphabet="ab \n\N{GRINNING FACE}", max_size=60), st.integers(1, 4), st.integers(0, 40_000))
def test_pieces(text: str, times: int, blanks: int) -> None:
    """The pieces of a long text are that text, and none is of white space alone, which could send (SUB-06, SUB-07)."""
    long = text * (times * 500) + "\n" * blanks + text
    found = submission.pieces(long)

    assert "".join(found) == long
    assert all(piece.strip() for piece in found) or (len(found) == 1 and not long.strip())
    assert len(found) == 1 or max(len(piece.strip()) for piece in found) <= 8_192


def test_pieces_at_lines() -> None:
    """A long text is parted at the end of a line where one is near (SUB-06)."""
    lines = "0123456789\n" * 2_000

    assert [piece[:1] for piece in submission.pieces(lines)] == ["0", "\n", "\n"]


@pytest.mark.parametrize(("whole", "typed_for", "kept"), [(False, 0.0, False), (False, 0.3, True), (True, 0.0, True)])
def test_is_kept(typed_for: float, *, whole: bool, kept: bool) -> None:
    """A page that took no prompt yet is looked at twice before the press: it may throw away what it got (SUB-09)."""
    assert submission.is_kept(replace(sample(), whole=whole), typed_for) is kept


def turn(key: str, text: str | None = None, *, role: Role = "user") -> SeenTurn:
    """A turn in the page."""
    return SeenTurn(key, role, text)


_OLD: tuple[SeenTurn, ...] = (turn("1"), turn("2", role="assistant"))


@pytest.mark.parametrize(
    ("turns", "composer", "baseline", "fresh", "found"),
    [
        pytest.param((turn("1", "Ask me"),), "", (), True, True, id="first prompt"),
        pytest.param((turn("1", "**Ask**\n\nme!"),), "", (), True, True, id="shown anew"),
        pytest.param((turn("1", "Ask me"),), "Ask me", (), True, False, id="still in the composer"),
        pytest.param((turn("1", "Ask me"),), "Dear diary", (), True, True, id="draft put back"),
        pytest.param((turn("1", "Other"),), "", (), True, False, id="another prompt"),
        pytest.param((), "", (), True, False, id="composer emptied alone"),
        pytest.param((turn("1", "Older"), turn("3", "Ask me")), "", (), True, False, id="another conversation"),
        pytest.param((*_OLD, turn("3", "Ask me")), "", ("1", "2"), False, True, id="follow-up"),
        pytest.param((turn("0", "Ask me"), *_OLD), "", ("1", "2"), False, False, id="older one mounted late"),
        pytest.param((turn("1"), turn("0", "Ask me"), turn("2")), "", ("1", "2"), False, False, id="in between"),
        pytest.param((turn("2"), turn("3", "Ask me")), "", ("1", "2"), False, True, id="list that drops"),
        pytest.param((turn("7", "Ask me"),), "", ("1", "2"), False, False, id="no turn of before"),
        pytest.param((*_OLD, turn("3", "Ask me", role="assistant")), "", ("1", "2"), False, False, id="answer"),
        pytest.param((turn("", "Ask me"), turn("", "A", role="assistant")), "", (), True, True, id="no keys"),
    ],
)
def test_committed(
    turns: tuple[SeenTurn, ...], composer: str, baseline: tuple[str, ...], *, fresh: bool, found: bool
) -> None:
    """A prompt was committed if it left the composer and stands behind all of before (O-132, SUB-05, SUB-16, FIN-14).

    No count of turns decides, and no word elsewhere.
    """
    shown = replace(sample(), turns=turns, composer_text=composer)

    assert submission.committed(shown, lookup_hash("Ask me"), baseline, fresh=fresh) is found


def test_committed_without_keys() -> None:
    """Where turns have no keys, an equal prompt is told from the older one by what stands before it (SUB-16)."""
    first = (turn("", "Ask me"), turn("", "Answer", role="assistant"))
    before = keys(replace(sample(), turns=first))

    def committed(*turns: SeenTurn) -> bool:
        shown = replace(sample(), turns=turns)
        return submission.committed(shown, lookup_hash("Ask me"), before, fresh=False)

    assert not committed(*first)
    assert committed(*first, turn("", "Ask me"))
    assert not committed(turn("", "Older"), *first)


@pytest.mark.parametrize(
    ("uri", "composer", "stop", "fresh", "found"),
    [
        (f"{_HERE}/", "", False, True, False),
        (f"{_HERE}/", "", True, True, True),
        (_ONE, "", False, True, True),
        (_ONE, "", False, False, False),
        (_ONE, "Ask me", True, True, False),
    ],
)
def test_in_flight(uri: str, composer: str, *, stop: bool, fresh: bool, found: bool) -> None:
    """An address that changed, or an emptied composer and Stop, are worth waiting for, and no proof (SUB-05)."""
    shown = replace(sample(), uri=uri, composer_text=composer, stop=stop)

    assert submission.in_flight(shown, lookup_hash("Ask me"), playground(), fresh=fresh) is found


@pytest.mark.parametrize(
    ("shown", "sent"),
    [
        ((), False),
        ((turn("3", "a"),), True),
        ((turn("3", "a\nb"),), True),
        ((turn("3", "Dear diary"),), False),
        ((turn("3", "a", role="assistant"),), False),
        ((turn("1", "a"),), False),
        ((turn("1", None),), False),
    ],
)
def test_sent_by_page(shown: tuple[SeenTurn, ...], *, sent: bool) -> None:
    """A page that sends at the end of a line is found to, so that nothing is typed again (SUB-06, O-132)."""
    assert submission.sent_by_page(replace(sample(), turns=shown), ("1", "2"), "a\nb") is sent


@pytest.mark.parametrize(("text", "sent"), [("", True), ("a\nb", False)])
def test_answered_by_page(text: str, *, sent: bool) -> None:
    """Where the text is gone and the page writes, it was sent: nothing is typed again (SUB-06, O-132)."""
    assert submission.sent_by_page(replace(sample(), composer_text=text, stop=True), (), "a\nb") is sent


Looks = list[tuple[float, Sample]]


def _settled(looks: Looks, *, empty: bool = False) -> list[bool]:
    settling, found = submission.Settling(), list[bool]()
    for now, shown in looks:
        settling = settling.after(shown, now, empty=empty)
        found.append(settling.settled)
    return found


def test_settled() -> None:
    """A baseline is taken once the list of turns was equal in three reads half a second apart (FIN-14)."""
    none, one, two = (replace(sample(), turns=_OLD[:count]) for count in range(3))

    assert _settled([(0.0, two), (0.5, two), (1.0, two)]) == [False, False, True]
    assert _settled([(0.0, two), (0.1, two), (0.2, two), (0.5, two), (1.0, two)]) == [False] * 4 + [True]
    assert _settled([(0.0, one), (0.5, one), (1.0, two), (1.5, two), (2.0, two)]) == [False] * 4 + [True]
    assert _settled([(0.0, none), (0.5, none), (1.0, none), (1.5, none)]) == [False] * 4
    assert _settled([(0.0, none)], empty=True) == [True]
    assert _settled([(0.0, two)], empty=True) == [False]
    assert _settled([(0.0, replace(two, still=1.2))]) == [True]
    assert _settled([(0.0, replace(two, whole=True))]) == [True]
    assert _settled([(0.0, replace(none, still=9.0))]) == [False]


@pytest.mark.parametrize(
    ("why", "reason"),
    [
        ("absent", "PROVIDER_COMPOSER_UNUSABLE:absent"),
        ("blocked", "PROVIDER_COMPOSER_UNUSABLE:blocked"),
        ("moved", "PROVIDER_CONVERSATION_CHANGED"),
        ("changed", "PROVIDER_COMPOSER_UNUSABLE:occupied"),
        ("busy", "PROVIDER_COMPOSER_UNUSABLE:busy"),
        ("disabled", "PROVIDER_PAGE_CHANGED"),
        ("ambiguous", "PROVIDER_PAGE_CHANGED"),
        ("anything", "PROVIDER_PAGE_CHANGED"),
    ],
)
def test_not_pressed(why: str, reason: str) -> None:
    """Two send controls, a disabled one or another text are no press, and told apart (SUB-10, SUB-11)."""
    assert told(submission.not_pressed(playground(), TAB, why, chat_session())) == reason


def test_not_pressed_tells() -> None:
    """PROVIDER_PAGE_CHANGED says what was looked for, and by which version of the descriptor."""
    assert submission.not_pressed(playground(), TAB, "disabled", chat_session()).metadata == {
        "provider": "playground-textarea",
        "tab": TAB,
        "expected": "send",
        "descriptor_version": "1",
    }

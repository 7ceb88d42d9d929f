"""Entering a prompt against a page in which anything may happen between two steps."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabmuxd.resources.errors import Refused
from tabmuxd.resources.session import Session
from tabmuxd.tabs.page import Page
from tabmuxd.webai.chat_page import ChatPage
from tabmuxd.webai.conversation import Conversation
from tabmuxd.webai.entering import Entered, Entry
from tabmuxd.webai.outgoing import Outgoing
from tabmuxd.webai.providers.descriptor import Descriptor, DraftPolicy
from tabmuxd.webai.samples import Composer, Sample, SeenTurn

from tests.domain.values import TAB, chat_session, playground, sample

PROMPT: Final = "One\nTwo"
_DRAFT: Final = "Dear diary"
_HAPPENINGS: Final = (
    "",
    "",
    "",
    "forget",
    "double",
    "draft",
    "half",
    "gone",
    "back",
    "cover",
    "send",
    "person",
    "silent",
    "noise",
)


class FakeSession:
    """A DevTools session over which a test tells what its page sends."""

    def __init__(self) -> None:
        self._handlers: dict[str, Callable[[dict[str, object]], None]] = {}

    def on(self, method: str, handler: Callable[[dict[str, object]], None]) -> Callable[[], None]:
        self._handlers[method] = handler
        return lambda: self._handlers.__delitem__(method)

    @property
    def is_heard(self) -> bool:
        """Whether anybody listens."""
        return bool(self._handlers)

    def tell(self, method: str, params: dict[str, object]) -> None:
        """Tell whoever listens to this."""
        if method in self._handlers:
            self._handlers[method](params)

    def post(self) -> None:
        """A request with a body leaves the page."""
        self.tell("Network.requestWillBeSent", {"request": {"method": "POST", "url": "http://127.0.0.1/"}})


@contextlib.asynccontextmanager
async def heard() -> AsyncGenerator[asyncio.Future[None]]:
    """The page confirms at once that it tells of its network."""
    confirmed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    confirmed.set_result(None)
    yield confirmed


@dataclass
class FakeChatPage:
    """A page, its clock, and what happens in it at each step."""

    happenings: Iterator[str]
    now: float = 0.0
    text: str = ""
    composer: Composer = "usable"
    turns: list[str] = field(default_factory=list[str])
    cleared: list[str] = field(default_factory=list[str])
    sent: list[str] = field(default_factory=list[str])
    reading: int = 0
    looked: str = ""
    noisy: bool = False
    inputs: int = 0
    session: FakeSession = field(default_factory=FakeSession)

    def __post_init__(self) -> None:
        self.page = SimpleNamespace(tab=TAB, session=self.session, network_heard=heard, end_cause="")

    def happen(self) -> None:
        match next(self.happenings, ""):
            case "forget":
                self.text = ""
            case "double":
                self.text *= 2
            case "half":
                self.text = self.text[: len(self.text) // 2]
            case "draft":
                self.text = f"{_DRAFT} {self.text}"
            case "gone":
                self.composer = "absent"
            case "cover":
                self.composer = "blocked"
            case "back":
                self.composer = "usable"
            case "send" if self.text:
                self.sent.append(self.text)
                self.turns.append(self.text)
                self.text = ""
            case "person":
                self.turns.append("Something else")
            case happening:
                self._send(happening)

    def _send(self, happening: str) -> None:
        if happening == "noise" or (happening == "silent" and self.text):
            self.session.post()
            self.noisy = self.noisy or happening == "noise"
        if happening == "silent" and self.text:
            self.sent.append(self.text)
            self.text = ""

    def look(self, known: tuple[str, ...] | None, *, focus: bool) -> Sample:
        self.happen()
        self.reading += 1
        self.now += 0.1
        keys = [f"k{number}" for number in range(len(self.turns))]
        hidden = keys if known is None else known
        texts = (None if key in hidden else text for key, text in zip(keys, self.turns, strict=True))
        turns = tuple(SeenTurn(key, "user", text) for key, text in zip(keys, texts, strict=True))
        text = "" if self.composer == "absent" else self.text
        self.looked = text
        free = focus and self.composer == "usable" and not text.strip()
        shown = replace(sample(), composer=self.composer, composer_text=text, turns=turns, whole=True)
        shown = replace(shown, touch=f"page {self.inputs}")
        return replace(shown, reading=self.reading, focused=free, send_count=int(bool(text)))

    async def type(self, text: str, _path: str) -> None:
        self.happen()
        assert not any(one and PROMPT.startswith(one) for one in self.sent), "typed again after it was sent"
        if self.composer == "usable":
            self.inputs += 1
            self.text += text

    async def focus(self, _path: str) -> str:
        self.happen()
        return "focused" if self.composer == "usable" else "blocked"

    async def clear(self, reading: int) -> bool:
        self.happen()
        if (reading, self.text) != (self.reading, self.looked):
            return False
        self.cleared.append(self.text)
        self.text = ""
        return True

    async def choosing(self, _call: str) -> object:
        self.happen()
        return {"model": "Quick", "modes": [], "shown": "none", "conflict": ""}

    async def changed(self, within: float) -> None:
        self.now += within


@dataclass
class FakeConversation:
    """The conversation of that page."""

    descriptor: Descriptor

    def session(self) -> Session:
        return chat_session()

    async def look_here(
        self,
        chat: FakeChatPage,
        known: tuple[str, ...] | None,
        *,
        at_once: bool = False,
        focus: bool = False,
        ready_within: float = 0.0,
    ) -> Sample:
        del at_once, ready_within
        return chat.look(known, focus=focus)

    async def look_past(self, chat: FakeChatPage, known: tuple[str, ...] | None) -> Sample:
        return chat.look(known, focus=False)

    async def was_left_behind(self, _sample: Sample) -> bool:
        return False

    async def check_continuity(self, _chat: object) -> None:
        return


async def _enter(page: FakeChatPage, draft: DraftPolicy) -> Entered | Refused:
    conversation = FakeConversation(replace(playground(), draft=draft))
    async with Outgoing(PROMPT) as outgoing:
        await outgoing.listen(cast("Page", page.page), typed=False)
        entry = Entry(cast("Conversation", conversation), cast("ChatPage", page), PROMPT, outgoing)
        entry._now, entry._deadline = (lambda: page.now), 15.0
        await asyncio.sleep(0)  # the page has confirmed
        try:
            return await entry.enter()
        except Refused as refused:
            return refused


@given(st.lists(st.sampled_from(_HAPPENINGS), max_size=30))
def test_whole_or_refused(happenings: list[str]) -> None:
    """Whatever happens in a page, the prompt stands there whole, or is refused, and no draft goes (O-132, SUB-08)."""
    page = FakeChatPage(iter(happenings))

    found = asyncio.run(_enter(page, "refuse"))

    assert not any(_DRAFT in text for text in page.cleared)
    if isinstance(found, Entered) and found.reading is not None:
        assert (page.text, found.reading) == (PROMPT, page.reading)
        assert not any(PROMPT.startswith(text) for text in page.sent)
    elif isinstance(found, Entered):
        assert page.sent or page.noisy


@given(st.lists(st.sampled_from(_HAPPENINGS), max_size=30))
def test_replaced_draft(happenings: list[str]) -> None:
    """Where drafts are replaced, the composer holds the prompt alone in the end, or it is refused (O-132, SUB-08)."""
    page = FakeChatPage(iter(happenings))

    found = asyncio.run(_enter(page, "clear"))

    if isinstance(found, Entered) and found.reading is not None:
        assert (page.text, found.reading) == (PROMPT, page.reading)


def test_nothing_happens() -> None:
    """In a page that behaves, the prompt is typed once and nothing is cleared (SUB-06)."""
    page = FakeChatPage(iter(()))

    found = asyncio.run(_enter(page, "refuse"))

    assert found == Entered((), page.reading)
    assert (page.text, page.cleared, page.reading) == (PROMPT, [], 2)


@pytest.mark.parametrize(("left", "cleared"), [("One", []), ("One  Two", ["One  Two"]), (PROMPT * 2, [PROMPT * 2])])
def test_left_before(left: str, cleared: list[str]) -> None:
    """What stood there before is cleared if it is the prompt; a part may be anybody's (SUB-08)."""
    page = FakeChatPage(iter(()), text=left)

    found = asyncio.run(_enter(page, "refuse"))

    assert isinstance(found, Entered) is bool(cleared)
    assert (page.text, page.cleared) == (PROMPT if cleared else left, cleared)


# After a restart

_SINCE: Final = ("", "", "", "forget", "half", "gone", "back", "cover", "send", "silent")


@dataclass
class _Slow(FakeConversation):
    """One whose looks take a while."""

    async def look_here(self, chat: FakeChatPage, known: tuple[str, ...] | None, **how: Any) -> Sample:  # noqa: ANN401
        await asyncio.sleep(0)
        seen = await super().look_here(chat, known, **how)
        await asyncio.sleep(0)
        return seen


async def _enter_again(page: FakeChatPage, *, untouched: str) -> Entered | Refused:
    """As another server enters a prompt that the one before it may have typed, and whose page nobody heard since."""
    async with Outgoing(PROMPT) as outgoing:
        await outgoing.listen(cast("Page", page.page), typed=True)
        conversation = cast("Conversation", FakeConversation(playground()))
        entry = Entry(conversation, cast("ChatPage", page), PROMPT, outgoing, (), untouched=untouched)
        entry._now, entry._deadline = (lambda: page.now), 15.0
        await asyncio.sleep(0)
        try:
            return await entry.enter()
        except Refused as refused:
            return refused


@given(
    first=st.lists(st.sampled_from(_SINCE), max_size=9),
    cut=st.integers(0, 30),
    then=st.lists(st.sampled_from(_SINCE), max_size=9),
    slow=st.sampled_from([0.0, 1.0]),
)
def test_cut_off(first: list[str], cut: int, then: list[str], slow: float) -> None:
    """A server that is killed at any step of an entry leaves a prompt that the next one sends once at most (O-132)."""
    page = FakeChatPage(iter(first))
    noted: list[str] = []
    delays = iter([slow, 0.0, 0.0, 0.0])

    async def note(_turns: tuple[str, ...], touch: str) -> bool:
        await asyncio.sleep(0)
        page.now += next(delays)
        noted.append(touch)
        await asyncio.sleep(0)
        return len(noted) == 1

    async def begin() -> None:
        async with Outgoing(PROMPT) as outgoing:
            await outgoing.listen(cast("Page", page.page), typed=False)
            conversation = cast("Conversation", _Slow(playground()))
            entry = Entry(conversation, cast("ChatPage", page), PROMPT, outgoing, note=note)
            entry._now, entry._deadline = (lambda: page.now), 15.0
            work = asyncio.ensure_future(entry.enter())
            for _ in range(cut):
                await asyncio.sleep(0)
            work.cancel()
            await asyncio.wait({work})

    asyncio.run(begin())
    page.happenings = iter(then)
    if not noted:
        assert not page.inputs, "typed before it was kept"
        return

    found = asyncio.run(_enter_again(page, untouched=noted[0]))

    if isinstance(found, Entered) and found.reading is not None:
        assert not any(PROMPT.startswith(text) for text in page.sent)


def test_cut_off_before_the_first_key() -> None:
    """A page into which nothing came since the record takes the prompt as if nothing had happened (SUB-03)."""
    page = FakeChatPage(iter(()))

    found = asyncio.run(_enter_again(page, untouched="page 0"))

    assert (found, page.text, page.inputs) == (Entered((), page.reading), PROMPT, 1)


@pytest.mark.parametrize(("left", "typed"), [(PROMPT, 2), ("One", 2), ("", 1)])
def test_cut_off_behind(left: str, typed: int) -> None:
    """What still stands in the composer is typed again; where it does not, the page may have sent it (O-132)."""
    page = FakeChatPage(iter(()), text=left, inputs=1)

    found = asyncio.run(_enter_again(page, untouched="page 0"))

    assert page.inputs == typed
    assert isinstance(found, Entered)
    assert (found.reading is None) == (left == "")


def test_cut_off_in_another_page() -> None:
    """In a page that is another one than was typed into, it is not typed again (O-132)."""
    page = FakeChatPage(iter(()))

    found = asyncio.run(_enter_again(page, untouched="other 0"))

    assert (found, page.inputs) == (Entered((), None), 0)

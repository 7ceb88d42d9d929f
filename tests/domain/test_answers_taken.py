"""Any page, looked at in any way: an answer that is taken is the own one, whole, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st
from tabmuxd.webai.completion import Complete, Observation, Running, judge, observe
from tabmuxd.webai.samples import OwnTurn, Role, SeenTurn, lookup_hash, own_turn

from tests.domain.values import playground, sample

_PROMPT: Final = "What is it?"
_OWN: Final = lookup_hash(_PROMPT)
_BASELINE: Final = ("u1", "a1", "u2", "a2")
_OLDER: Final[Sequence[tuple[str, Role]]] = (("u1", "user"), ("a1", "assistant"), ("u2", "user"), ("a2", "assistant"))
_PARTS: Final = ("One", "One and two", "One and two and three")
_WHOLE: Final = _PARTS[-1]
_MARKED: Final = playground()
_UNMARKED: Final = replace(_MARKED, marks=replace(_MARKED.marks, done_mark=()))


@dataclass(frozen=True)
class Moment:
    """What a page shows `after` seconds: so much of the answer, from this turn on; what is emptied, and who asks more.

    `part`: None before the answer's node is there.
    """

    after: float
    part: int | None
    dropped: int
    emptied: bool
    asked_more: bool
    keys: str
    stop: bool


_MOMENTS = st.builds(
    Moment,
    after=st.sampled_from([0.0, 0.2, 0.6, 2.0, 4.0, 9.0]),
    part=st.none() | st.integers(0, 2),
    dropped=st.integers(0, 6),
    emptied=st.booleans(),
    asked_more=st.booleans(),
    keys=st.sampled_from(["x", "x", "x", "y"]),
    stop=st.booleans(),
)


def _turns(moment: Moment) -> tuple[SeenTurn, ...]:
    """The conversation: two older turns of the same prompt, the own one, and perhaps somebody else's behind it."""
    turns = [SeenTurn(key, role) for key, role in _OLDER]
    turns.append(SeenTurn(f"{moment.keys}-u", "user", "" if moment.emptied and moment.part is not None else _PROMPT))
    if moment.part is not None:
        text, done = _PARTS[moment.part], moment.part == len(_PARTS) - 1
        turns.append(SeenTurn(f"{moment.keys}-a", "assistant", "" if moment.emptied else text, done=done))
    if moment.asked_more:
        turns.append(SeenTurn("z-u", "user", "Another question"))
        turns.append(SeenTurn("z-a", "assistant", "Another answer", done=True))
    return tuple(turns[moment.dropped :])


@settings(max_examples=300)
@given(moments=st.lists(_MOMENTS, min_size=1, max_size=14), marked=st.booleans())
def test_taken(moments: Sequence[Moment], *, marked: bool) -> None:
    """SUCCEEDED only with the mark, or the window where there is none; never an older answer, never the prompt.

    What is told on the way is the own text as well, and where there is a mark, the answer is whole. (O-136, O-137)
    """
    descriptor = _MARKED if marked else _UNMARKED
    now, own = 0.0, None
    seen = Observation(quiet_since=now)
    texts = [""]
    part = 0
    for number, moment in enumerate(moments):
        # A page may show less than before, but what is marked as finished stays so.
        shown = moment if part < len(_PARTS) - 1 or moment.part is None else replace(moment, part=part)
        part = max(part, shown.part or 0)
        now += shown.after
        look = replace(sample(), stop=shown.stop, frames=number + 2, turns=_turns(shown))
        before: OwnTurn | None = own
        found = own_turn(look, _OWN, before)
        own = found or own
        seen = observe(seen, look, found, descriptor, now)
        texts.append(seen.text)
        verdict = judge(seen, look, descriptor, now)
        if isinstance(verdict, Complete):
            assert not shown.stop
            assert not verdict.done or (found is not None and found.done)
            assert verdict.done or verdict.quiet >= descriptor.windows.quiet_for(len(seen.text))
            assert seen.text == _WHOLE or not marked
        if not isinstance(verdict, Running):
            break

    assert set(texts) <= {"", *_PARTS}
    assert all(len(one) <= len(other) for one, other in pairwise(texts))

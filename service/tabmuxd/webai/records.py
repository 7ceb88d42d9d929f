"""What a step of a turn changes in the store: turn, session, tab and lease, in one transaction.

A turn that has ended is never changed: a late time-out or a late answer finds it so, and does nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from tabmuxd.events.changes import Changes
from tabmuxd.resources.artifacts import KeptArtifact
from tabmuxd.resources.errors import PageTouched, Reason, Refused, cut, refuse
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.lease import Lease, LeaseEnd, LeaseTerms
from tabmuxd.resources.names import session_of
from tabmuxd.resources.outcomes import with_outcome
from tabmuxd.resources.session import (
    CompletionEvidence,
    Session,
    SessionState,
    TabSource,
    Turn,
    TurnState,
    Warning,  # noqa: A004 - the contract's word
)
from tabmuxd.resources.tab import Tab, TabState
from tabmuxd.tabs import lease_records, lease_rules, rules
from tabmuxd.tabs.addresses import MAX_ADDRESS_BYTES
from tabmuxd.webai import parting
from tabmuxd.webai.answers import border
from tabmuxd.webai.owning import active
from tabmuxd.webai.parting import Parting

MAX_ANSWER_BYTES: Final = 1024 * 1024
MAX_TITLE_BYTES: Final = 1024
_LEASE_MARGIN: Final = timedelta(minutes=1)
_MOST_WARNINGS: Final = 20
_CUT: Final = Warning("answer-cut", "The answer is longer than 1 MiB; this is its beginning.")
_CUT_AND_KEPT: Final = Warning(_CUT.code, f"{_CUT.message} All of it is in the turn's artifacts.")


@dataclass(frozen=True, slots=True)
class Ending:
    """How a turn ends: its last state, the text there is, and why.

    `whole`: the file of a text that is too long for a turn, on disk already.
    """

    state: TurnState
    answer: str = ""
    completion: CompletionEvidence | None = None
    refused: Refused | None = None
    warnings: tuple[Warning, ...] = ()
    whole: KeptArtifact | None = None


def touched(turn: Turn) -> PageTouched:
    """Whether the prompt of a turn in this state was submitted."""
    match turn.step:
        case TurnState.PENDING:
            return "no"
        case TurnState.SUBMITTING:
            return "unknown"
        case _:
            return "yes"


def bind(changes: Changes, turn: str, tab: Tab, lease_name: str, source: TabSource = TabSource.OPENED) -> Tab:
    """The tab as it serves the turn's session, under a lease of the service; the caller records it.

    Session and lease are recorded here; `source` is how the session came to it, if it was not its own before. Raises
    TAB_BUSY if it serves another session, and the turn's end if it ended.
    """
    now = changes.now
    open_turn = changes.turn(turn)
    session = changes.session(session_of(turn))
    if open_turn is None or session is None or open_turn.ended:
        raise turn_ended(turn)
    _check_free(changes, session, tab)
    lease_records.expire(changes)
    held = changes.holder(tab)
    if held is None:
        held = changes.record(
            Lease(
                name=lease_name,
                tab=tab.name,
                terms=LeaseTerms(ttl=open_turn.expire_time - now + _LEASE_MARGIN),
                expire_time=open_turn.expire_time + _LEASE_MARGIN,
                fencing_token=lease_records.next_token(changes, tab),
                create_time=now,
                session=session.name,
            ),
            ChangeCause.CLIENT,
        )
    elif held.session != session.name:
        raise lease_rules.is_held(tab.name, held, now)
    if session.tab != tab.name:
        changes.record(replace(session, tab=tab.name, tab_source=source), ChangeCause.CLIENT)
    return replace(tab, session=session.name, lease=held.name, last_active_time=now)


def bind_idle(changes: Changes, name: str, tab: Tab) -> Tab:
    """The tab as it serves a session without a turn, which is recorded here; the caller records the tab.

    Raises what says that the session cannot have it: SESSION_RETIRED, TAB_BUSY, TabLost.
    """
    session = active(changes.session(name), name)
    _check_free(changes, session, tab)
    if session.tab != tab.name:
        changes.record(replace(session, tab=tab.name, tab_source=TabSource.OPENED), ChangeCause.RECOVERY)
    return replace(tab, session=name, last_active_time=changes.now)


def in_progress(session: Session) -> Refused:
    """TURN_IN_PROGRESS."""
    return refuse(
        Reason.TURN_IN_PROGRESS,
        f"{session.name} has a turn that has not ended; nothing was done. Wait for it.",
        retry_after=1,
        session=session.name,
        turn=session.open_turn,
    )


def _check_free(changes: Changes, session: Session, tab: Tab) -> None:
    """Raise TAB_BUSY if the tab serves another session, TabLost if the session has got another tab meanwhile."""
    if tab.session not in ("", session.name):
        other = changes.session(tab.session)
        raise rules.serves(tab, other.open_turn if other else "")
    known = changes.tab(session.tab) if session.tab not in ("", tab.name) else None
    if known is not None and not known.ended and known.session == session.name:
        raise TabLost(tab.name)


def take_tab(changes: Changes, turn: str, lease_name: str) -> None:
    """Bind the tab that the turn's session has, if it can be used, so that nobody else drives it meanwhile."""
    tab = usable_tab(changes, session_of(turn))
    if tab is not None:
        bound = bind(changes, turn, tab, lease_name)
        if (bound.session, bound.lease) != (tab.session, tab.lease):
            changes.record(bound, ChangeCause.CLIENT)


def may_prompt(changes: Changes, session: Session) -> Refused | None:
    """Whether no client's lease holds the tab of the session that a prompt is sent in."""
    tab = changes.tab(session.tab) if session.tab else None
    held = lease_records.holder(changes, tab) if tab else None
    return lease_rules.is_held(session.tab, held, changes.now) if held and not held.session else None


def note_typing(changes: Changes, name: str, typed_into: Tab, baseline: tuple[str, ...], touch: str) -> None:
    """Keep, right before the first key, that the prompt may stand in the page from here on; once for a turn.

    A later run does not type it again but by the evidence of `baseline` and `touch`. Raises as `submit`.
    """
    turn = _open(changes, name)
    _served_by(changes, name, typed_into)
    if turn.state is TurnState.PENDING and not turn.typed:
        changes.keep(replace(turn, typed=touch, baseline=baseline))


def attach(changes: Changes, name: str) -> None:
    """Keep that files of the turn may be in the page, before the first one is put in."""
    turn = _open(changes, name)
    if not turn.attaching:
        changes.keep(replace(turn, attaching=True))


def submit(
    changes: Changes,
    name: str,
    typed_into: Tab,
    baseline: tuple[str, ...],
    shown: tuple[str, tuple[Warning, ...]] = ("", ()),
) -> Turn:
    """Record SUBMITTING, right before the press; from here on the prompt is looked up, never sent again.

    `shown`: the model that the page shows as chosen, and what is to be said of what it has switched on. Raises TabLost
    if the session does not hold the tab any more, or another page is behind it than that which the prompt was
    `typed_into`.
    """
    turn = _open(changes, name)
    if turn.state is not TurnState.PENDING:
        raise refuse(Reason.SUBMIT_UNCONFIRMED, f"{name} was submitted before; it is not submitted again.", turn=name)
    session = _served_by(changes, name, typed_into)
    if not session.prompted:
        changes.keep(replace(session, prompted=True))
    shown_model, warnings = shown
    submitting = replace(
        turn,
        state=TurnState.SUBMITTING,
        pressed=True,
        baseline=baseline,
        prompt="",
        shown_model=shown_model,
        warnings=(*turn.warnings, *warnings)[:_MOST_WARNINGS],
    )
    return changes.record(submitting, ChangeCause.CLIENT)


def _served_by(changes: Changes, turn: str, typed_into: Tab) -> Session:
    """The turn's session, if it holds this tab, as it stands with this page; else TabLost."""
    session = changes.session(session_of(turn))
    tab = changes.tab(typed_into.name)
    held = changes.holder(tab) if tab else None
    if session is None or session.tab != typed_into.name or held is None or held.session != session.name:
        raise TabLost(typed_into.name)
    if tab is None or tab.state is not TabState.READY or _page_of(tab) != _page_of(typed_into):
        raise TabLost(typed_into.name)
    return session


def _page_of(tab: Tab) -> tuple[int, int]:
    """Tells one page behind a tab from the next: both numbers only grow."""
    return tab.generation, tab.recovery_count


def run(changes: Changes, name: str) -> Turn:
    """Record RUNNING: the provider shows the prompt."""
    turn = _open(changes, name)
    if turn.state is TurnState.RUNNING:
        return turn
    return changes.record(replace(turn, state=TurnState.RUNNING, submit_time=changes.now), ChangeCause.PAGE)


def stall(changes: Changes, name: str, *, stalled: bool) -> Turn:
    """Record whether the answer is quiet for longer than is usual."""
    turn = _open(changes, name)
    return turn if turn.stalled == stalled else changes.record(replace(turn, stalled=stalled), ChangeCause.PAGE)


def block(changes: Changes, name: str, refused: Refused) -> Turn:
    """Record BLOCKED with what a person has to see to; nothing where that is recorded already."""
    turn = _open(changes, name)
    error = refused.failure()
    if turn.state is TurnState.BLOCKED and turn.error == error:
        return turn
    return changes.record(replace(turn, state=TurnState.BLOCKED, error=error), ChangeCause.PAGE)


def unblock(changes: Changes, name: str) -> Turn:
    """Record that nothing blocks the turn any more: it goes on where it was."""
    turn = _open(changes, name)
    if turn.state is not TurnState.BLOCKED:
        return turn
    return changes.record(replace(turn, state=turn.step, error=None), ChangeCause.PAGE)


def note_conversation(changes: Changes, name: str, uri: str, title: str) -> None:
    """Record the conversation's address once the provider gave it one, and the beginning of its title.

    What is too long for an address is none, for the beginning of it would lead elsewhere.
    """
    session = changes.session(session_of(name))
    if session is None or session.ended:
        return
    address = session.conversation_uri or (uri if len(uri) <= MAX_ADDRESS_BYTES else "")
    after = replace(session, conversation_uri=address, title=cut(title, MAX_TITLE_BYTES))
    if after != session:
        changes.record(after, ChangeCause.PAGE)


def end(
    changes: Changes,
    name: str,
    ending: Ending,
    cause: ChangeCause = ChangeCause.NONE,
    how: Parting | None = None,
) -> Turn:
    """Record the end of a turn, of its lease and of the session's open turn; a turn that ended stays as it is.

    With `how`, a success of a turn that was to release the session's tab parks the session.
    """
    turn = changes.turn(name)
    if turn is None:
        raise unknown_turn(name)
    if turn.ended:
        return turn
    if ending.whole is not None:
        changes.add_artifact(ending.whole)
    ended = changes.record(_ended(turn, ending, changes.now), cause)
    session = changes.session(session_of(name))
    if session is not None and not session.ended:
        idle = _idle(session, changes.now)
        if how is not None and turn.release_tab and ended.state is TurnState.SUCCEEDED:
            changes.record(replace(idle, tab="", tab_source=TabSource.NONE, state=SessionState.ACTIVE), cause)
            parting.give_up(changes, session, how, cause)
        else:
            changes.record(idle, cause)
            _free(changes, session, cause)
    return ended


def _ended(turn: Turn, ending: Ending, now: datetime) -> Turn:
    refused = ending.refused and with_outcome(ending.refused, touched(turn), turn=True)
    answer = ending.answer.encode()
    kept = answer[: border(answer, MAX_ANSWER_BYTES)]
    cut = () if len(kept) == len(answer) else (_CUT,) if ending.whole is None else (_CUT_AND_KEPT,)
    return replace(
        turn,
        state=ending.state,
        prompt="",
        stalled=False,
        answer_markdown=kept.decode(),
        answer_size_bytes=len(answer),
        completion=ending.completion,
        error=refused.failure() if refused else None,
        warnings=(*turn.warnings, *ending.warnings, *cut)[:_MOST_WARNINGS],
        artifacts=() if ending.whole is None else (ending.whole.artifact,),
        end_time=now,
    )


def _idle(session: Session, now: datetime) -> Session:
    return replace(session, open_turn="", expire_time=now + session.ttl, last_active_time=now)


def _free(changes: Changes, session: Session, cause: ChangeCause) -> None:
    tab = changes.tab(session.tab) if session.tab else None
    if tab is None:
        return
    lease = changes.holder(tab)
    if lease is None or lease.session != session.name:
        return
    lease_records.end(changes, lease, LeaseEnd.RELEASED, cause, besides=tab.name)
    if not tab.ended:
        changes.record(replace(tab, lease="", last_active_time=changes.now), cause)


def lose_tab(changes: Changes, tab: Tab, refused: Refused, cause: ChangeCause, text_of: Callable[[str], str]) -> None:
    """The session of a tab loses it: it is parked, and its open turn ends with the reason, if it was submitted.

    A turn that is still PENDING goes on in another tab, unless a client closed this one. The caller ends tab and lease.
    How often the tab went away was counted before, if it could not be brought back. `text_of` gives the text of an open
    turn's answer so far; it is called on the store's thread.
    """
    session = changes.session(tab.session)
    if session is None or session.ended or session.tab != tab.name:
        return
    turn = changes.turn(session.open_turn) if session.open_turn else None
    by_client = refused.reason is Reason.TAB_CLOSED
    close_count = session.close_count + (session.state is SessionState.ACTIVE)
    parked = changes.record(
        replace(session, tab="", tab_source=TabSource.NONE, state=SessionState.ACTIVE, close_count=close_count), cause
    )
    if turn is None or turn.ended or (turn.step is TurnState.PENDING and not by_client):
        return
    changes.record(_ended(turn, Ending(TurnState.FAILED, text_of(turn.name), refused=refused), changes.now), cause)
    changes.record(_idle(parked, changes.now), cause)


def usable_tab(changes: Changes, session: str) -> Tab | None:
    """The tab that a session has, if it can be used."""
    found = changes.session(session)
    tab = changes.tab(found.tab) if found and found.tab else None
    return tab if tab and tab.state is TabState.READY else None


def _open(changes: Changes, name: str) -> Turn:
    turn = changes.turn(name)
    if turn is None or turn.ended:
        raise turn_ended(name)
    return turn


class TurnEnded(Exception):
    """The turn has ended meanwhile; there is nothing left to do."""


class TabLost(Exception):
    """This is not the session's tab, or not any more: nothing was submitted, and what was begun goes on in its tab."""


def turn_ended(name: str) -> TurnEnded:
    """TurnEnded for this turn."""
    return TurnEnded(name)


def unknown_turn(name: str) -> Refused:
    """TURN_NOT_FOUND."""
    return refuse(Reason.TURN_NOT_FOUND, f"No turn {name} is known; nothing was done.", turn=name)

"""Resources to put into a store, one of each kind with every field set."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from tabmuxd.resources.browser import Browser, BrowserLimits, BrowserState, Ownership
from tabmuxd.resources.errors import Failure
from tabmuxd.resources.event import EventKind, Resource
from tabmuxd.resources.lease import Lease, LeaseEnd, LeaseTerms
from tabmuxd.resources.session import (
    Artifact,
    CompletionEvidence,
    RetireCause,
    Session,
    SessionState,
    TabSource,
    Turn,
    TurnState,
)
from tabmuxd.resources.session import Warning as Remark
from tabmuxd.resources.tab import (
    CloseCause,
    Dialog,
    DialogKind,
    DialogPolicy,
    HealthStatus,
    Tab,
    TabHealth,
    TabOrigin,
    TabState,
)
from tabmuxd.store import Entry, Place, Transaction, kind_of

NOW = datetime(2026, 3, 4, 5, 6, 7, 891_011, tzinfo=UTC)
MAIN = Browser("browsers/main", BrowserState.ACTIVE, Ownership.LAUNCHED)


def tab(number: int) -> Tab:
    """A tab as it is at first."""
    return Tab(f"browsers/main/tabs/{number:010d}", TabState.OPENING, TabOrigin.MANAGED, "local", NOW, NOW)


def session(number: int) -> Session:
    """A session as it is at first."""
    return Session(f"sessions/{number:010d}", SessionState.ACTIVE, "grok", "1", "local", NOW, NOW, "browsers/main")


def turn(number: int, of: Session) -> Turn:
    """A turn as it is at first."""
    name = f"{of.name}/turns/{number:010d}"
    return Turn(name, TurnState.PENDING, f"request-{number}", "aa", "bb", NOW, NOW + timedelta(minutes=30))


def lease(number: int, on: Tab, token: int) -> Lease:
    """A lease as it is at first."""
    return Lease(f"leases/{number:010d}", on.name, LeaseTerms(), NOW + timedelta(seconds=30), token, NOW)


def full() -> list[Resource]:
    """One of each kind with every field set."""
    later = NOW + timedelta(microseconds=1)
    return [
        Browser(
            "browsers/main",
            BrowserState.UNREACHABLE,
            Ownership.ATTACHED,
            product="Chrome/156",
            endpoint="http://127.0.0.1:9222",
            headless=True,
            generation=3,
            limits=BrowserLimits(7, 6, 5, None, timedelta(seconds=9), timedelta(microseconds=3)),
            process_key="ws://…/1",
            revision=1,
            update_time=later,
        ),
        replace(
            tab(1),
            state=TabState.CLOSED,
            origin=TabOrigin.POPUP,
            opener="browsers/main/tabs/0000000002",
            target_id="T",
            generation=4,
            uri="https://ü.example/?q=\x00",
            title="\N{SNOWMAN}",
            group="g",
            pinned=True,
            labels={"b": "2", "a": "1"},
            dialog_policy=DialogPolicy.DISMISS,
            session="sessions/s",
            lease="leases/l",
            pooled=True,
            front=True,
            health=TabHealth(HealthStatus.ALIVE, later, timedelta(milliseconds=3), visible=True),
            dialog=Dialog(DialogKind.PROMPT, "m", "d", later),
            recovery_count=2,
            close_cause=CloseCause.IDLE,
            close_time=later,
            shared_with=("local/a", "local/b"),
            left_at="l",
            has_opened=True,
            marker="m" * 20,
            browser_generation=3,
            next_target_id="N",
            close_owed=CloseCause.LEASE,
            revision=2,
            update_time=later,
        ),
        replace(
            lease(1, tab(1), 9),
            terms=LeaseTerms(timedelta(seconds=6), "holder", close_on_expiry=True),
            session="sessions/s",
            owner="local/a",
            end_time=later,
            end_cause=LeaseEnd.CLOSED,
            request_id="0b6f5f0a-0000-4000-8000-000000000001",
            revision=3,
            update_time=later,
        ),
        replace(
            session(1),
            state=SessionState.RETIRED,
            tab="t",
            conversation_uri="c",
            open_turn="o",
            labels={"x": "y"},
            ttl=timedelta(days=1),
            expire_time=later,
            recovery_count=1,
            close_count=2,
            retire_time=later,
            retire_cause=RetireCause.EXPIRY,
            last_turn="l",
            title="t",
            new_tab_group="g",
            new_tab_activate=True,
            tab_source=TabSource.TAKEN,
            new_tab_pooled=True,
            prompted=True,
            revision=4,
            update_time=later,
        ),
        replace(
            turn(1, session(1)),
            state=TurnState.FAILED,
            prompt="p",
            lookup_sha256="dd",
            baseline=("k1", "k2"),
            release_tab=True,
            typed="7-9 0",
            pressed=True,
            attachments=(Artifact("artifacts/b", "b.txt", "text/plain", 4, "ee", later),),
            attaching=True,
            answer_markdown="# ä\n",
            answer_size_bytes=5,
            stalled=True,
            completion=CompletionEvidence(done_mark=True, stable_duration=timedelta(seconds=2)),
            error=Failure("ANSWER_TIMEOUT", "m", {"k": "v"}, timedelta(seconds=1)),
            warnings=(Remark("text-changed", "w"),),
            artifacts=(Artifact("artifacts/a", "a.txt", "text/plain", 3, "cc", later),),
            model="m1",
            shown_model="m2",
            submit_time=later,
            end_time=later,
            revision=5,
            update_time=later,
        ),
    ]


def put(transaction: Transaction, resource: Resource) -> int:
    """Create or update `resource` under the next revision, with an event of no content; gives the revision."""
    known = transaction.find(type(resource), resource.name)
    written = replace(resource, revision=transaction.head + 1, update_time=NOW)
    kind = EventKind.CREATED if known is None else EventKind.UPDATED
    transaction.append(Entry(written.revision, kind, kind_of(written), Place(), NOW, b"x"))
    if known is None:
        transaction.create(written)
    else:
        transaction.update(written, known)
    return written.revision

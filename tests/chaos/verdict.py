"""What has to be true once a round is over: pure judgements of what was recorded and seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from tabmux.v1 import event_pb2
from tabmux.v1.tab_pb2 import Tab
from tabmuxd.resources.event import EventKind

from tests.events.checkers import Truth, check, name_of
from tests.events.recording import Call

WITH_TARGET = (Tab.STATE_READY, Tab.STATE_CRASHED)
UNSETTLED = (Tab.STATE_OPENING, Tab.STATE_RECOVERING)

_FAULTS = ("task failed", "job failed", "browser link failed", '"incident"', "Traceback")


def judge_history(calls: Sequence[Call], truth: Truth) -> None:
    """No revision is missing: in the log none, in each call none that it passed, and over all calls none at all."""
    assert [entry.revision for entry in truth] == list(range(1, len(truth) + 1))
    for call in calls:
        check(call, truth)
    begun = next(reply.progress.revision for call in calls for reply in call.replies if reply.progress.revision)
    shown = [event.revision for call in calls for event in call.events]
    assert shown == [entry.revision for entry in truth if entry.revision > begun]


def judge_leases(truth: Truth) -> None:
    """At no revision do two live leases hold one tab, and a later one has the higher fencing token."""
    held: dict[str, str] = {}
    tokens: dict[str, int] = {}
    for entry in truth:
        event = event_pb2.Event.FromString(entry.body)
        if not event.HasField("lease"):
            continue
        lease = event.lease
        if entry.kind is EventKind.ENDED:
            if held.get(lease.tab) == lease.name:
                del held[lease.tab]
            continue
        assert held.get(lease.tab, lease.name) == lease.name, f"{lease.tab} is held by {held[lease.tab]} and {lease}"
        if lease.tab not in held:
            assert lease.fencing_token > tokens.get(lease.tab, 0), f"{lease} has no higher token"
        held[lease.tab], tokens[lease.tab] = lease.name, lease.fencing_token


def judge_tabs(tabs: Iterable[Tab], truth: Truth) -> None:
    """The list, closed tabs included, is what the events say."""
    newest = {name_of(entry): event_pb2.Event.FromString(entry.body) for entry in truth}
    recorded = {name: event.tab for name, event in newest.items() if event.HasField("tab")}
    listed = {tab.name: tab for tab in tabs}
    assert listed.keys() == recorded.keys()
    # A list also tells what is not recorded: activity, and what was just seen.
    assert {name: (tab.revision, tab.state, tab.owner, tab.target_id) for name, tab in listed.items()} == {
        name: (tab.revision, tab.state, tab.owner, tab.target_id) for name, tab in recorded.items()
    }


def discord(tabs: Sequence[Tab], pages: Mapping[str, str], foreign: Collection[str]) -> list[str]:
    """Where store and browser differ: tabs that are not settled, tabs without a page, pages without a tab.

    `pages`: what is known of each page, by target id. `foreign`: target ids of pages that are nobody's, or may be where
    no tab ever had them.
    """
    ours = Counter(tab.target_id for tab in tabs if tab.state in WITH_TARGET)
    others = set(foreign) - {tab.target_id for tab in tabs}
    found = [f"not settled: {_told(tab)}" for tab in tabs if tab.state in UNSETTLED]
    found += [f"no page: {_told(tab)}" for tab in tabs if tab.state in WITH_TARGET and tab.target_id not in pages]
    found += [f"two tabs: {target_id}" for target_id, count in ours.items() if count > 1]
    found += [f"gone: {target_id}" for target_id in others if target_id not in pages]
    for target_id, page in pages.items():
        if target_id not in ours and target_id not in others:
            had = [_told(tab) for tab in tabs if tab.target_id == target_id]
            found.append(f"no tab: {target_id} {page}, which was of {had}")
    return found


def _told(tab: Tab) -> str:
    return f"{tab.name} {Tab.State.Name(tab.state)} {tab.target_id} {tab.uri}"


def judge_prompts(sent: Collection[str], submitted: Iterable[str]) -> None:
    """No prompt was submitted to a page more often than once."""
    counts = Counter(submitted)
    assert {text: counts[text] for text in sent if counts[text] > 1} == {}


def table(answers: Mapping[tuple[str, str], int]) -> str:
    """How often each method succeeded and was refused for which reason, for people."""
    lines = [f"{method:16} {reason or 'ok':28} {count:5}" for (method, reason), count in sorted(answers.items())]
    return "\n".join(lines)


def judge_log(log: str) -> None:
    """No task and no job of a server failed, and nothing happened that it has no word for."""
    faults = [line for line in log.splitlines() if any(fault in line for fault in _FAULTS)]
    assert faults == [], "\n".join(faults)

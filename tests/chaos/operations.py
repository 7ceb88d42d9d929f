"""What the clients of a round do, one operation at a time, and what each answer has to be whatever else goes on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from google.protobuf.duration_pb2 import Duration
from tabmux.v1.session_pb2 import Turn
from tabmux.v1.tab_pb2 import Tab
from tabmux.v1.tab_service_pb2 import (
    LOAD_MILESTONE_COMMITTED,
    LOAD_MILESTONE_DOM_CONTENT_LOADED,
    LOAD_MILESTONE_LOADED,
    AcquireLeaseRequest,
    ActivateTabRequest,
    AdoptTabRequest,
    CheckTabHealthRequest,
    CloseTabRequest,
    CloseTabsOutcome,
    CloseTabsRequest,
    CreateTabRequest,
    GetBrowserRequest,
    GetTabRequest,
    ListLeasesRequest,
    ListTabsRequest,
    NavigateTabRequest,
    Navigation,
    RecoverTabRequest,
    RecoverTabResponse,
    ReleaseLeaseRequest,
    RenewLeaseRequest,
    UpdateTabRequest,
)
from tabmux.v1.web_ai_service_pb2 import CreateSessionRequest, SendPromptRequest

from tests.chaos.clients import LOST, Client
from tests.e2e.conversing import PROVIDER, SHORT
from tests.e2e.serving import BROWSER

Operation = Callable[[Client], Awaitable[None]]

_GROUPS: Final = ("", "research", "mail")
_MILESTONES: Final = (LOAD_MILESTONE_COMMITTED, LOAD_MILESTONE_DOM_CONTENT_LOADED, LOAD_MILESTONE_LOADED)
_CLOSED_PORT: Final = "http://127.0.0.1:1/"
_SHORT_WAIT: Final = Duration(nanos=300_000_000)
_PATIENCE: Final = 5.0
_WAITING: Final = 0.7
"""How often a client waits for a browser that is away, instead of asking in vain: else nothing is done but that."""
_WRONG_GENERATION: Final = 1_000_000


async def create(client: Client) -> None:
    """Open a tab; where the server went away under the call, once more under the same request id."""
    uri = client.random.choice(["", *(client.new_address(path) for path in ("/page", "/page", "/never-loaded"))])
    request = CreateTabRequest(
        uri=uri,
        group=client.random.choice(_GROUPS),
        labels={"by": client.principal},
        pinned=client.random.random() < 0.1,
        activate=client.random.random() < 0.1,
        until=client.random.choice(_MILESTONES),
        dialog_policy=client.random.choice(Tab.DialogPolicy.values()),
        request_id=client.new_id(),
        milestone_timeout=_SHORT_WAIT if "never" in uri else None,
    )
    if client.random.random() < 0.2:
        request.lease_terms.ttl.FromSeconds(30)
    answer = await client.ask("CreateTab", request)
    if answer == LOST:
        answer = await client.ask("CreateTab", request)
    if not isinstance(answer, str):
        client.learn(answer.tab, uri)
        client.saw(answer.tab.name, answer.tab)
        if answer.HasField("lease"):
            assert answer.lease.owner == client.principal, answer
            client.leases[answer.tab.name] = answer.lease.name
    elif answer == "TAB_CAPACITY" and client.mine:
        await close(client)


async def create_twice(client: Client) -> None:
    """Open a tab under one request id twice: one tab; with another payload it is refused."""
    uri = client.new_address()
    request = CreateTabRequest(uri=uri, until=LOAD_MILESTONE_COMMITTED, request_id=client.new_id())
    first = await client.ask("CreateTab", request)
    if isinstance(first, str):
        return
    client.learn(first.tab, uri)
    second = await client.ask("CreateTab", request)
    assert second in ("BROWSER_UNREACHABLE", LOST) or second.tab.name == first.tab.name
    request.uri = client.new_address()
    assert await client.ask("CreateTab", request) in ("REQUEST_ID_REUSED", "BROWSER_UNREACHABLE", LOST)


async def take_from_pool(client: Client) -> None:
    """Take a pooled tab, or a new one: loaded afresh, and ours alone."""
    uri = client.new_address()
    group = client.random.choice(_GROUPS[1:])
    request = CreateTabRequest(uri=uri, group=group, from_pool=True, until=LOAD_MILESTONE_COMMITTED)
    answer = await client.ask("CreateTab", request)
    if not isinstance(answer, str):
        assert (answer.tab.owner, list(answer.tab.shared_with), answer.tab.group) == (client.principal, [], group)
        client.learn(answer.tab, uri)
        client.saw(answer.tab.name, answer.tab)


async def wait_for_room(client: Client) -> None:
    """Open a tab once there is room, but wait no longer than a few seconds."""
    uri = client.new_address()
    request = CreateTabRequest(uri=uri, wait_for_room=True, until=LOAD_MILESTONE_COMMITTED)
    answer = await client.ask("CreateTab", request, timeout=_PATIENCE)
    if not isinstance(answer, str):
        client.learn(answer.tab, uri)


async def create_in_vain(client: Client) -> None:
    """Open a tab at an address that surely fails: no tab is left."""
    answer = await client.ask("CreateTab", CreateTabRequest(uri=_CLOSED_PORT))
    assert isinstance(answer, str), answer


async def navigate(client: Client) -> None:
    """Take a tab of ours to another page, sometimes for a generation that it does not have."""
    if (name := client.one_of_mine()) is None:
        await create(client)
        return
    uri = client.new_address(client.random.choice(["/page", "/page", "/never-loaded"]))
    wrong = client.random.random() < 0.1
    client.world.tabs[name].addresses.add(uri)
    request = NavigateTabRequest(
        name=name,
        lease=client.leases.get(name, ""),
        expected_generation=_WRONG_GENERATION if wrong else 0,
        uri=uri,
        until=client.random.choice(_MILESTONES),
        milestone_timeout=_SHORT_WAIT if "never" in uri else None,
    )
    answer = await client.ask("NavigateTab", request)
    if isinstance(answer, str):
        _learn_of_end(client, name, answer)
        return
    assert not wrong, answer
    client.saw(name, answer.tab)
    if answer.navigation.outcome == Navigation.OUTCOME_REACHED and answer.tab.state == Tab.STATE_READY:
        assert answer.tab.uri != "about:blank"


async def intrude(client: Client) -> None:
    """Try to drive, change and close a tab that is another's."""
    if (name := client.one_of_others()) is None:
        return
    method, request = client.random.choice(
        [
            ("NavigateTab", NavigateTabRequest(name=name, uri=client.new_address())),
            ("ActivateTab", ActivateTabRequest(name=name)),
            ("UpdateTab", UpdateTabRequest(name=name, group="stolen")),
            ("CloseTab", CloseTabRequest(name=name, force=True)),
            ("CloseTab", CloseTabRequest(name=name)),
        ]
    )
    answer = await client.ask(method, request)
    if answer not in ("NOT_OWNER", LOST):
        # It can have come from the pool to a call of ours that was then given another, or was refused.
        tab = await client.ask("GetTab", GetTabRequest(name=name))
        assert tab == LOST or tab.tab.owner == client.principal, answer


async def update(client: Client) -> None:
    """Change labels, group and pin of a tab of ours, or share it."""
    if (name := client.one_of_mine()) is None:
        await create(client)
        return
    request = UpdateTabRequest(name=name, labels={"n": str(client.random.randrange(100))})
    choice = client.random.random()
    if choice < 0.3:
        request.pinned = client.random.random() < 0.3
    elif choice < 0.5:
        request.group = client.random.choice(_GROUPS)
    elif choice < 0.7:
        other = f"local/{client.random.choice('abcdefg')}"
        client.world.tabs[name].drivers.add(other)
        request.share_with.append(other)
    answer = await client.ask("UpdateTab", request)
    if isinstance(answer, str):
        _learn_of_end(client, name, answer)
    else:
        assert answer.tab.name == name


async def close(client: Client) -> None:
    """Close a tab of ours, sometimes by force, or put it in the pool."""
    if (name := client.one_of_mine()) is None:
        await create(client)
        return
    force = client.random.random() < 0.5
    pool = client.random.random() < 0.4
    request = CloseTabRequest(name=name, force=force, pool=pool, lease=client.leases.get(name, ""))
    answer = await client.ask("CloseTab", request)
    if isinstance(answer, str):
        _learn_of_end(client, name, answer)
        return
    assert answer.tab.name == name
    assert answer.tab.state == Tab.STATE_CLOSED or (pool and answer.tab.pooled and not answer.tab.owner), answer
    client.forget(name)


async def clear(client: Client) -> None:
    """Close many tabs at once: those of a group, those not used for a moment, or only tell which there are."""
    request = client.random.choice(
        [
            CloseTabsRequest(group=client.random.choice(_GROUPS[1:]), any_owner=client.admin),
            CloseTabsRequest(idle_duration=_SHORT_WAIT),
            CloseTabsRequest(all=True, dry_run=True, any_owner=client.admin),
        ]
    )
    answer = await client.ask("CloseTabs", request)
    if isinstance(answer, str):
        return
    for outcome in answer.outcomes:
        known = client.world.tabs.get(outcome.tab)
        assert request.any_owner or known is None or client.principal in known.drivers, outcome
        if outcome.action == CloseTabsOutcome.ACTION_CLOSED and not request.dry_run:
            client.forget(outcome.tab)


async def hold(client: Client) -> None:
    """Take a lease on a tab of ours, renew the one we have, or give it back."""
    if (name := client.one_of_mine()) is None:
        await create(client)
        return
    lease = client.leases.get(name)
    if lease is None:
        request = AcquireLeaseRequest(tab=name, request_id=client.new_id())
        request.terms.ttl.FromSeconds(client.random.choice([5, 30]))
        request.terms.close_on_expiry = client.random.random() < 0.3
        answer = await client.ask("AcquireLease", request)
        if isinstance(answer, str):
            _learn_of_end(client, name, answer)
            return
        assert (answer.lease.owner, answer.lease.tab) == (client.principal, name), answer
        client.leases[name] = answer.lease.name
    elif client.random.random() < 0.5:
        answer = await client.ask("RenewLease", RenewLeaseRequest(name=lease))
        if isinstance(answer, str):
            assert answer in ("LEASE_LOST", "LEASE_NOT_FOUND", LOST), answer
            del client.leases[name]
    else:
        answer = await client.ask("ReleaseLease", ReleaseLeaseRequest(name=lease))
        assert answer == LOST or answer.lease.HasField("end_time"), answer
        client.leases.pop(name, None)


async def seize(client: Client) -> None:
    """Try to renew and to give back a lease that is another's, whose name is public."""
    listed = await client.ask("ListLeases", ListLeasesRequest(page_size=50))
    if isinstance(listed, str):
        return
    others = [lease for lease in listed.leases if lease.owner != client.principal and not lease.session]
    if not others or client.admin:
        return
    lease = client.random.choice(others)
    assert await client.ask("RenewLease", RenewLeaseRequest(name=lease.name)) in ("NOT_OWNER", LOST)
    assert await client.ask("ReleaseLease", ReleaseLeaseRequest(name=lease.name)) in ("NOT_OWNER", LOST)


async def adopt(client: Client) -> None:
    """Take over a page that the person has given away; only the person may."""
    if not client.world.spares:
        return
    target_id, uri = client.random.choice(sorted(client.world.spares.items()))
    request = AdoptTabRequest(target_id=target_id)
    answer = await client.ask("AdoptTab", request, refused=("SCOPE_MISSING",))
    if isinstance(answer, str):
        assert client.admin == (answer != "SCOPE_MISSING") or answer == LOST, answer
        return
    assert (answer.tab.target_id, answer.tab.owner, client.admin) == (target_id, client.principal, True), answer
    client.learn(answer.tab, uri)


async def recover(client: Client) -> None:
    """Bring a tab of ours back, which does nothing to one whose page answers."""
    if (name := client.one_of_mine()) is None:
        await create(client)
        return
    answer = await client.ask("RecoverTab", RecoverTabRequest(name=name, lease=client.leases.get(name, "")))
    if isinstance(answer, str):
        _learn_of_end(client, name, answer)
        return
    assert answer.strategy != RecoverTabResponse.STRATEGY_UNSPECIFIED, answer
    client.saw(name, answer.tab)


async def check(client: Client) -> None:
    """Look how a tab is, whoever owns it: what is found is the answer."""
    if client.world.tabs:
        name = client.random.choice(sorted(client.world.tabs))
        answer = await client.ask("CheckTabHealth", CheckTabHealthRequest(name=name))
        assert answer in ("BROWSER_UNREACHABLE", LOST) or answer.tab.name == name, answer


async def look(client: Client) -> None:
    """Read: a tab, whoever owns it, the list in pages, and the browser."""
    if client.world.tabs:
        name = client.random.choice(list(client.world.tabs))
        answer = await client.ask("GetTab", GetTabRequest(name=name))
        assert answer == LOST or answer.tab.name == name
    request = ListTabsRequest(page_size=5)
    while True:
        listed = await client.ask("ListTabs", request)
        if isinstance(listed, str):
            assert listed == LOST
            break
        for tab in listed.tabs:
            if (tab.origin, tab.owner) == (Tab.ORIGIN_POPUP, client.principal):
                client.learn(tab, *client.world.popups)
        request.page_token = listed.next_page_token
        if not request.page_token:
            break
    await client.ask("GetBrowser", GetBrowserRequest(name=BROWSER))


async def activate(client: Client) -> None:
    """Bring a tab of ours to the front."""
    if (name := client.one_of_mine()) is None:
        await create(client)
        return
    answer = await client.ask("ActivateTab", ActivateTabRequest(name=name, lease=client.leases.get(name, "")))
    if isinstance(answer, str):
        _learn_of_end(client, name, answer)
    else:
        assert answer.tab.name == name


async def prompt(client: Client) -> None:
    """Send a prompt in a session of ours; where the server went away, once more under the same request id."""
    if not client.sessions:
        request = CreateSessionRequest(provider=PROVIDER, session_id=f"chaos-{client.new_id()}")
        answer = await client.ask("CreateSession", request)
        if answer == LOST:
            answer = await client.ask("CreateSession", request)
        if isinstance(answer, str):
            return
        client.sessions.append(answer.session.name)
    sending = SendPromptRequest(parent=client.sessions[0], request_id=client.new_id())
    # Rounds of one seed share the playground, and draw the same ids.
    sending.prompt.text = f"Prompt {sending.request_id} of {client.world.server.state_directory.name} {SHORT}"
    client.world.prompts.add(sending.prompt.text)
    answer = await client.ask("SendPrompt", sending)
    if answer == LOST:
        answer = await client.ask("SendPrompt", sending)
    if not isinstance(answer, str):
        assert answer.turn.state != Turn.STATE_UNSPECIFIED
        client.world.turn_names.add(answer.turn.name)


def _learn_of_end(client: Client, name: str, reason: str) -> None:
    if reason in ("TAB_CLOSED", "TAB_NOT_FOUND"):
        client.forget(name)


OPERATIONS: Final[tuple[tuple[Operation, int], ...]] = (
    (create, 20),
    (create_twice, 3),
    (create_in_vain, 2),
    (take_from_pool, 5),
    (wait_for_room, 2),
    (navigate, 20),
    (intrude, 8),
    (update, 10),
    (hold, 12),
    (seize, 2),
    (adopt, 3),
    (close, 16),
    (clear, 2),
    (recover, 6),
    (check, 4),
    (look, 8),
    (activate, 3),
    (prompt, 3),
)
"""Each operation, and how often it comes beside the others."""


async def work(client: Client) -> None:
    """Do one operation after another until there were enough in all."""
    operations, weights = zip(*OPERATIONS, strict=True)
    while await client.world.turns.next():
        (operation,) = client.random.choices(operations, weights)
        await operation(client)
        if client.random.random() < _WAITING:
            await client.world.browser_there.wait()

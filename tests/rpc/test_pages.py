"""Pages of lists and their tokens."""

from __future__ import annotations

import base64
from dataclasses import replace
from hashlib import sha256

import grpc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tabmux.v1 import tab_pb2
from tabmux.v1 import tab_service_pb2 as pb
from tabmux.v1 import web_ai_service_pb2 as ai_pb
from tabmuxd.resources.browser import TabCounts
from tabmuxd.resources.errors import Reason, Refused
from tabmuxd.resources.event import Progress
from tabmuxd.resources.orders import TabFilter
from tabmuxd.resources.tab import Tab, TabOrigin
from tabmuxd.rpc.listing import tabs_page
from tabmuxd.rpc.pages import Page, PagePlace, page_of
from tabmuxd.wire import foreign_tab_message, progress_message, tab_message

from tests.rpc.fakes import BROWSER, HISTORY, PROVIDER, TAB, Below, FakeTabs, Served, status_from

NOW = Progress(HISTORY, 9)
LATER = Progress(HISTORY, 12)
REQUEST = pb.ListTabsRequest(parent="browsers/main", groups=["a"], labels={"k": "v", "l": "w"}, page_size=2)
TOKEN = page_of(REQUEST, NOW).token_behind("17")
FOREIGN = pb.ListTabsRequest(origins=[tab_pb2.Tab.ORIGIN_MANAGED, tab_pb2.Tab.ORIGIN_FOREIGN])
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def with_token(token: str, **changes: object) -> pb.ListTabsRequest:
    """The request above with a token, and with other fields."""
    request = pb.ListTabsRequest()
    request.CopyFrom(REQUEST)
    request.page_token = token
    for name, value in changes.items():
        setattr(request, name, value)
    return request


def assert_refused(request: pb.ListTabsRequest, now: Progress = LATER) -> None:
    """The token of `request` is INVALID_FIELD."""
    with pytest.raises(Refused) as caught:
        page_of(request, now)
    assert (caught.value.reason, caught.value.metadata) == (Reason.INVALID_FIELD, {"field": "page_token"})


def sealed(body: bytes) -> str:
    """A token with a right check value, as someone could make who knows this code."""
    check = sha256(b"tabmux page token 1\n" + body).digest()[:8]
    return base64.urlsafe_b64encode(check + body).rstrip(b"=").decode()


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), min_size=1, max_size=2),
    st.integers(0, 2**53),
)
def test_round_trip(key: list[str], revision: int) -> None:
    """A token brings back the key and the revision of the first page, though the history has moved on."""
    token = page_of(REQUEST, Progress(HISTORY, revision)).token_behind(*key)
    page = page_of(with_token(token), Progress(HISTORY, 2**60))
    assert page.place == PagePlace(tuple(key), Progress(HISTORY, revision))


@given(st.integers(0, len(TOKEN) - 1), st.sampled_from(ALPHABET))
@example(len(TOKEN) - 1, "_")
def test_one_character(place: int, character: str) -> None:
    """A token with one other character is INVALID_FIELD."""
    changed = TOKEN[:place] + character + TOKEN[place + 1 :]
    if changed != TOKEN:
        assert_refused(with_token(changed))


@given(st.integers(0, len(TOKEN)), st.text(max_size=3), st.integers(0, 3))
def test_pieces(place: int, added: str, removed: int) -> None:
    """A token with something added or missing is INVALID_FIELD."""
    changed = TOKEN[:place] + added + TOKEN[place + removed :]
    if changed not in (TOKEN, ""):
        assert_refused(with_token(changed))


@given(st.text(min_size=1))
@example("AAAA")
@example("=" * 8)
@example(TOKEN + "=")
@example(TOKEN.replace("-", "+").replace("_", "/") + "/")
@example("A" * 2000)
def test_garbage(token: str) -> None:
    """What is no token is INVALID_FIELD."""
    assert_refused(with_token(token))


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"null", b"[[1],9,1]", b'[["1"],-1,"a"]', b'["1",9,"a"]', b'[["1"],99999999999999999999,"a"]',
        b"\xff\xfe", b"[" * 700,
    ],
)  # fmt: skip
def test_forged(body: bytes) -> None:
    """A token with a right check value and a wrong body is INVALID_FIELD."""
    assert_refused(with_token(sealed(body)))


@pytest.mark.parametrize(
    "changed",
    [{"parent": ""}, {"parent": "browsers/-"}],
    ids=str,
)
def test_other_fields(changed: dict[str, object]) -> None:
    """A token of a request with other fields is INVALID_FIELD."""
    assert_refused(with_token(TOKEN, **changed))


def test_other_label() -> None:
    """A label that was added changes the request, too."""
    request = with_token(TOKEN)
    request.labels["m"] = "x"
    assert_refused(request)


def test_other_history() -> None:
    """A token of another history is INVALID_FIELD: its keys mean nothing here."""
    assert_refused(with_token(TOKEN), Progress("7a3c1f0e-0000-4000-8000-000000000002", 12))


def test_other_method() -> None:
    """A token of another list is INVALID_FIELD."""
    token = page_of(pb.ListBrowsersRequest(), NOW).token_behind("browsers/main")
    assert_refused(pb.ListTabsRequest(page_token=token))


def test_other_size() -> None:
    """The size may differ from page to page."""
    assert page_of(with_token(TOKEN, page_size=400), LATER) == Page(
        PagePlace(("17",), NOW), 400, page_of(REQUEST, NOW).fingerprint
    )


@pytest.mark.parametrize(("asked", "given_"), [(0, 50), (1, 1), (500, 500), (501, 500), (2**31 - 1, 500)])
def test_sizes(asked: int, given_: int) -> None:
    """0 means 50, and more than 500 means 500."""
    assert page_of(pb.ListTabsRequest(page_size=asked), NOW).size == given_


def test_negative_size() -> None:
    """A negative size is INVALID_FIELD."""
    with pytest.raises(Refused) as caught:
        page_of(pb.ListTabsRequest(page_size=-1), NOW)
    assert caught.value.metadata == {"field": "page_size"}


def tabs(count: int, uri: str = "") -> list[tuple[int, Tab]]:
    """Tabs that were created at the revisions 1, 2, ..."""
    return [(number, replace(TAB, name=f"browsers/main/tabs/{number:010}", uri=uri)) for number in range(1, count + 1)]


async def pages(served: Served, request: pb.ListTabsRequest) -> list[list[str]]:
    """Names of our tabs and target ids of foreign ones, page by page."""
    found: list[list[str]] = []
    while True:
        response = await served.tab_service.ListTabs(request)
        assert response.progress == progress_message(NOW)
        found.append([tab.name.rpartition("/")[2].lstrip("0") or tab.target_id for tab in response.tabs])
        if not response.next_page_token:
            return found
        request.page_token = response.next_page_token
        served.events.progress = LATER


async def test_all_pages(served: Served) -> None:
    """The pages of a list have every tab once, and each has the progress of the first."""
    served.tabs.tabs = tabs(5)
    assert await pages(served, pb.ListTabsRequest(page_size=2)) == [["1", "2"], ["3", "4"], ["5"]]


async def test_full_last_page(served: Served) -> None:
    """A list that ends with a full page has no empty page behind it."""
    served.tabs.tabs = tabs(4)
    assert await pages(served, pb.ListTabsRequest(page_size=2)) == [["1", "2"], ["3", "4"]]


async def test_foreign_come_last(served: Served) -> None:
    """Foreign tabs, if asked for, come after all others, and nothing but their target ids is told (O-5)."""
    served.tabs.tabs = tabs(3)
    served.tabs.foreign = [("browsers/main", "F1"), ("browsers/main", "F2"), ("browsers/other", "F0")]
    found = await pages(served, pb.ListTabsRequest(origins=FOREIGN.origins, page_size=2))
    assert found == [["1", "2"], ["3", "F1"], ["F2", "F0"]]


async def test_foreign_begin_a_page(served: Served) -> None:
    """Where our own tabs fill a page, the foreign ones begin the next."""
    served.tabs.tabs = tabs(2)
    served.tabs.foreign = [("browsers/main", "F1")]
    found = await pages(served, pb.ListTabsRequest(origins=FOREIGN.origins, page_size=2))
    assert found == [["1", "2"], ["F1"]]


async def test_foreign_only(served: Served) -> None:
    """Foreign tabs alone are listed without a look at our own; states do not concern them."""
    served.tabs.foreign = [("browsers/main", "F1"), ("browsers/main", "F2")]
    request = pb.ListTabsRequest(
        origins=[tab_pb2.Tab.ORIGIN_FOREIGN], states=[tab_pb2.Tab.STATE_READY], parent="browsers/main"
    )
    response = await served.tab_service.ListTabs(request)
    assert (list(response.tabs), served.below.calls) == ([foreign_tab_message("F1"), foreign_tab_message("F2")], [])


@pytest.mark.parametrize(
    ("request_", "listed"),
    [
        (pb.ListTabsRequest(), False),
        (pb.ListTabsRequest(origins=[tab_pb2.Tab.ORIGIN_MANAGED]), False),
        (pb.ListTabsRequest(origins=[tab_pb2.Tab.ORIGIN_FOREIGN], parent="browsers/other"), False),
        (pb.ListTabsRequest(origins=[tab_pb2.Tab.ORIGIN_FOREIGN], groups=["g"]), False),
        (pb.ListTabsRequest(origins=[tab_pb2.Tab.ORIGIN_FOREIGN], labels={"k": "v"}), False),
        (pb.ListTabsRequest(origins=[tab_pb2.Tab.ORIGIN_FOREIGN], groups=["g", ""]), True),
        (pb.ListTabsRequest(origins=[tab_pb2.Tab.ORIGIN_FOREIGN], parent="browsers/-"), True),
    ],
    ids=str,
)
async def test_foreign_filters(served: Served, request_: pb.ListTabsRequest, listed: bool) -> None:  # noqa: FBT001 - a table
    """A foreign tab is listed where `origins` asks for it and every other field matches: it has no group, no labels."""
    served.tabs.foreign = [("browsers/main", "F1")]
    response = await served.tab_service.ListTabs(request_)
    assert (foreign_tab_message("F1") in response.tabs) == listed


async def test_page_of_bytes() -> None:
    """A page ends at 1 MiB, and the next goes on behind it."""
    fake = FakeTabs(Below(), tabs(300, "https://example.com/" + "u" * 8000))
    page = page_of(pb.ListTabsRequest(page_size=500), NOW)
    response = await tabs_page(fake, TabFilter(), page)
    size = len(response.tabs)
    assert 1024 * 1024 - 9000 < response.ByteSize() <= 1024 * 1024 + 1024
    assert page_of(pb.ListTabsRequest(page_token=response.next_page_token), LATER).place.key == (str(size),)


async def test_one_large_entry() -> None:
    """A page has one entry at least, however large."""
    large = replace(TAB, labels={f"{number}": "v" * 63 for number in range(20_000)})
    response = await tabs_page(FakeTabs(Below(), [(1, large), (2, TAB)]), TabFilter(), page_of(FOREIGN, NOW))
    assert (list(response.tabs), bool(response.next_page_token)) == ([tab_message(large)], True)


@pytest.mark.parametrize("key", [("x",), ("1", "2", "3"), ("9" * 30,)])
async def test_wrong_key(key: tuple[str, ...]) -> None:
    """A token with a key that no tab can have is INVALID_FIELD."""
    page = replace(page_of(FOREIGN, NOW), place=PagePlace(key, NOW))
    with pytest.raises(Refused) as caught:
        await tabs_page(FakeTabs(Below()), TabFilter(origins=frozenset({TabOrigin.MANAGED})), page)
    assert caught.value.metadata == {"field": "page_token"}


async def test_browsers(served: Served) -> None:
    """Browsers are listed by name, page by page."""
    served.tabs.known = [(replace(BROWSER, name=f"browsers/{name}"), TabCounts()) for name in "abc"]
    first = await served.tab_service.ListBrowsers(pb.ListBrowsersRequest(page_size=2))
    last = await served.tab_service.ListBrowsers(pb.ListBrowsersRequest(page_token=first.next_page_token))
    names = [[browser.name for browser in response.browsers] for response in (first, last)]
    assert (names, last.next_page_token) == ([["browsers/a", "browsers/b"], ["browsers/c"]], "")


async def test_providers(served: Served) -> None:
    """Providers are listed by id, page by page."""
    served.web_ai.providers = [replace(PROVIDER, id=name) for name in ("a", "b", "c")]
    first = await served.web_ai_service.ListProviders(ai_pb.ListProvidersRequest(page_size=2))
    last = await served.web_ai_service.ListProviders(ai_pb.ListProvidersRequest(page_token=first.next_page_token))
    names = [[provider.id for provider in response.providers] for response in (first, last)]
    assert (names, last.next_page_token) == ([["a", "b"], ["c"]], "")


async def test_bad_token_over_the_wire(served: Served) -> None:
    """A bad token reaches the client as INVALID_ARGUMENT."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await served.tab_service.ListTabs(pb.ListTabsRequest(page_token="x"))
    assert (caught.value.code(), len(status_from(caught.value).details)) == (grpc.StatusCode.INVALID_ARGUMENT, 2)

"""The log: every change of a resource with its event, in one order, told to all who wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar

from tabmuxd.events import lists
from tabmuxd.events.bell import Bell
from tabmuxd.events.changes import Changes
from tabmuxd.events.compaction import compact
from tabmuxd.events.lists import Page
from tabmuxd.events.resume import compacted
from tabmuxd.events.shared import Shared
from tabmuxd.events.tail import Tail
from tabmuxd.resources.browser import Browser
from tabmuxd.resources.event import Progress, Resource
from tabmuxd.resources.lease import Lease
from tabmuxd.resources.names import id_of
from tabmuxd.resources.orders import TabFilter
from tabmuxd.resources.session import Session, SessionState, Turn, TurnState
from tabmuxd.resources.tab import Tab
from tabmuxd.store import ANY_BROWSER, Batch, Entry, Files, History, Live, Reader, Store, StoreStatistics

T = TypeVar("T")
R = TypeVar("R", bound=Resource)

TAIL_COUNT: Final = 10_000
SHARED_BYTES: Final = 4 * 1024 * 1024  # finished replies kept for others who want the same
SHARED_COUNT: Final = 1024  # finished events of snapshots, likewise


@dataclass(frozen=True, slots=True)
class LogStatistics:
    """How far the log goes and how full its parts are."""

    head: int
    compact_revision: int
    tail_count: int
    shared_reply_count: int
    store: StoreStatistics


class Log:
    """What is recorded, and what has not ended; `async with` opens and closes it.

    `clock` gives the time of a change, in UTC; it is called on the writer's thread. `head` is the newest revision that
    is published, and `bell` rings for each new one.
    """

    def __init__(self, path: Path, *, clock: Callable[[], datetime], tail_count: int = TAIL_COUNT) -> None:
        self._clock = clock
        self._tail_count = tail_count
        self._store = Store(path, committed=self._publish)
        self._history = History("", 0, 0)
        self.head = 0
        self._live = Live()
        self._tail = Tail(0, count=tail_count)
        self.bell = Bell()
        self.shared = Shared(size_bytes=SHARED_BYTES, existing_count=SHARED_COUNT)

    def __repr__(self) -> str:
        return f"<Log {self.statistics()}>"

    async def __aenter__(self) -> Self:
        """Open the store; raises what `Store` raises."""
        await self._store.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Write what is in line, then close the store."""
        await self._store.__aexit__(kind, error, traceback)

    @property
    def live(self) -> Live:
        """What has not ended, as published; never changes, but is replaced after each commit."""
        return self._live

    @property
    def progress(self) -> Progress:
        """The newest place in the history that is published."""
        return Progress(self._history.history_id, self._history.head)

    @property
    def files(self) -> Files:
        """The files beside the database."""
        return self._store.files

    @property
    def compact_revision(self) -> int:
        """The newest revision whose event is gone."""
        return self._history.compact_revision

    async def change(self, decide: Callable[[Changes], T]) -> T:
        """What `decide` returns, once everything that it recorded is committed and published; or what it raises.

        If it raises, nothing that it recorded is kept. It runs on the writer's thread, perhaps twice: it must change
        nothing but `Changes`, and not wait. Raises StoreBusy, StoreLocked or StoreClosed if it did not run.
        """
        return await self._store.write(lambda transaction: decide(Changes(transaction, self._clock())))

    async def moved(self, revision: int) -> None:
        """Return once there is something published behind `revision`; any number may wait."""
        while self._history.head <= revision:
            news = self.bell.listen(asyncio.get_running_loop())
            try:
                await news
            finally:
                self.bell.leave(news)

    async def get_browser(self, name: str) -> Browser | None:
        """The browser of this name."""
        return await self._get(Browser, name)

    async def get_tab(self, name: str) -> Tab | None:
        """The tab of this name, which may be `browsers/-/tabs/ID`, closed or not."""
        if not name.startswith(ANY_BROWSER):
            return await self._get(Tab, name)
        return self._live.tab(name) or await self._store.read(lambda reader: reader.find_tab_by_id(id_of(name)))

    async def tabs_behind(self, browser: str, target_ids: Iterable[str]) -> list[Tab]:
        """The newest tab, closed or not, of each of these targets of a browser that ever was the last one of a tab."""

        def read(reader: Reader) -> list[Tab]:
            found = (reader.find_tab_by_target(browser, target_id) for target_id in target_ids)
            return [tab for tab in found if tab is not None]

        return await self._store.read(read)

    async def get_lease(self, name: str) -> Lease | None:
        """The lease of this name, ended or not."""
        return await self._get(Lease, name)

    async def get_session(self, name: str) -> Session | None:
        """The session of this name, retired or not."""
        return await self._get(Session, name)

    async def get_turn(self, name: str) -> Turn | None:
        """The turn of this name, with its answer, ended or not."""
        return await self._get(Turn, name)

    async def list_browsers(self, *, after: int, count: int) -> Page[Browser]:
        """Revision of creation and browser, in that order, at most `count`, created after `after`."""
        return await self._store.read(lambda reader: lists.browser_page(reader, after=after, count=count))

    async def list_tabs(self, tab_filter: TabFilter, *, after: int, count: int) -> Page[Tab]:
        """As `list_browsers`, of the tabs that match; without states all but the closed."""
        return await self._store.read(lambda reader: lists.tab_page(reader, tab_filter, after=after, count=count))

    async def list_leases(self, *, tab: str = "", after: int, count: int) -> Page[Lease]:
        """As `list_browsers`, of the leases that are held, on this tab if it is named."""
        return await self._store.read(lambda reader: lists.lease_page(reader, tab, after=after, count=count))

    async def list_sessions(
        self,
        *,
        states: Collection[SessionState] = (),
        providers: Collection[str] = (),
        labels: Mapping[str, str] | None = None,
        after: int,
        count: int,
    ) -> Page[Session]:
        """As `list_browsers`, of the sessions that match every field that is not empty; without states not RETIRED."""
        return await self._store.read(
            lambda reader: lists.session_page(
                reader, states=states, providers=providers, labels=labels or {}, after=after, count=count
            )
        )

    async def list_turns(self, session: str, *, after: int, count: int) -> Page[Turn]:
        """As `list_browsers`, of the turns of one session, without their prompts and answers."""
        return await self._store.read(lambda reader: lists.turn_page(reader, session, after=after, count=count))

    async def has_turn(self, session: str, lookup_sha256: str, states: Collection[TurnState]) -> bool:
        """Whether any turn of a session, however old, with the prompt of this hash is in one of these states."""
        return await self._store.read(lambda reader: reader.has_turn(session, lookup_sha256, states))

    async def has_shown_turn(self, session: str) -> bool:
        """Whether the prompt of any turn of a session was seen in its conversation."""
        return await self._store.read(lambda reader: reader.has_shown_turn(session))

    async def imported_ids(self, source: str) -> frozenset[str]:
        """Ids of all records of another tool that became sessions, whatever became of these."""
        return await self._store.read(lambda reader: reader.imported_ids(source))

    def recent(self, after: int, *, count: int, size_bytes: int) -> Sequence[Entry] | None:
        """As `entries`, where they are in memory; else None."""
        return self._tail.after(after, count=count, size_bytes=size_bytes)

    def is_recent(self, after: int) -> bool:
        """Whether all events after `after` are in memory."""
        return self._tail.holds(after)

    def reading(self, work: Callable[[Reader], T]) -> asyncio.Future[T]:
        """A future of what `work` returns or raises; it runs on the reader's thread and sees one moment."""
        return self._store.reading(work)

    async def entries(self, after: int, *, count: int, size_bytes: int) -> Sequence[Entry]:
        """Published events after `after`, at most `count` and `size_bytes`, but one at least if there is any.

        Raises REVISION_COMPACTED if some of them are gone.
        """
        found = self.recent(after, count=count, size_bytes=size_bytes)
        if found is not None:
            return found
        last = self._history.head  # what is committed but not published yet must not be seen

        def read(reader: Reader) -> list[Entry]:
            compact_revision = reader.history().compact_revision
            if after < compact_revision:
                raise compacted(after, compact_revision)
            return reader.entries(after=after, last=last, count=count, size_bytes=size_bytes)

        return await self._store.read(read)

    async def compact(self, *, age: timedelta = timedelta(hours=24), count: int = 100_000) -> int:
        """Delete events older than `age` and beyond the newest `count`, and what ended long ago.

        Returns the number of events deleted. See `compaction` for what goes and what stays.
        """
        return await compact(self._store, now=self._clock(), age=age, count=count)

    def statistics(self) -> LogStatistics:
        """How far the log goes and how full its parts are."""
        return LogStatistics(
            self._history.head,
            self._history.compact_revision,
            len(self._tail),
            len(self.shared),
            self._store.statistics(),
        )

    def _publish(self, batch: Batch) -> None:
        if not self._history.history_id:
            self._tail = Tail(batch.history.head, count=self._tail_count)
        self._live = batch.live
        self._history = batch.history
        self.head = batch.history.head
        self._tail.extend(batch.entries)
        if batch.entries:
            self.bell.ring()

    async def _get(self, kind: type[R], name: str) -> R | None:
        found = self._live.of(kind).get(name)
        return await self._store.read(lambda reader: reader.find(kind, name)) if found is None else found

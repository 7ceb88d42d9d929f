"""Keeping files: they come in pieces, are whole on disk before their row is written, and go when they expire."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

import structlog

from tabmuxd.artifacts import disk, rules
from tabmuxd.artifacts.disk import Incoming, Opened
from tabmuxd.artifacts.rules import DEFAULT_LIMITS, Limits
from tabmuxd.events.changes import Changes
from tabmuxd.events.log import Log
from tabmuxd.resources.artifacts import ANSWER_TTL, MAX_CHUNK_BYTES, UPLOAD_TTL, KeptArtifact, UploadOrder
from tabmuxd.resources.errors import Refused, invalid_field
from tabmuxd.resources.names import RandomBytes, artifact_name, id_of, new_id
from tabmuxd.resources.principal import Principal
from tabmuxd.resources.session import Artifact
from tabmuxd.tasks import Tasks

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

# How long the next piece of an upload may be in coming.
SILENCE: Final = 60.0
_EXPIRED_AT_ONCE: Final = 100


@dataclass(frozen=True, slots=True)
class _Coming:
    """An upload on its way: whose, and how large it will be."""

    owner: str
    size_bytes: int


class Artifacts:
    """The files there are. A file without a row is nobody's and goes; a row is written only for a whole file."""

    def __init__(
        self,
        log: Log,
        tasks: Tasks,
        *,
        random: RandomBytes,
        clock: Callable[[], datetime],
        limits: Limits = DEFAULT_LIMITS,
        silence: float = SILENCE,
    ) -> None:
        """`clock` is that of the log; `silence`: seconds that the next piece of an upload may be in coming."""
        self._log = log
        self._files = log.files
        self._tasks = tasks
        self._random = random
        self._clock = clock
        self._limits = limits
        self._silence = silence
        self._coming: dict[str, _Coming] = {}

    def __repr__(self) -> str:
        """How many come in."""
        return f"<Artifacts coming={len(self._coming)}>"

    async def upload(self, caller: Principal, order: UploadOrder, chunks: AsyncIterator[bytes]) -> Artifact:
        """Keep a file that comes in `chunks` for 24 hours.

        Raises TOKEN_LIMITED, and INVALID_FIELD where it is not what `order` says, as soon as that is known. What does
        not come to its end, or is cancelled before it, leaves nothing.
        """
        usage = await self._log.reading(lambda reader: reader.artifact_usage(caller.name, now=self._clock()))
        coming = [each.size_bytes for each in self._coming.values() if each.owner == caller.name]
        if refused := rules.may_begin(self._limits, usage, coming, order.size_bytes):
            raise refused
        artifact_id = new_id(self._random)
        self._coming[artifact_id] = _Coming(caller.name, order.size_bytes)
        incoming = Incoming(self._files.directory, artifact_id)
        try:
            await self._files.run(lambda _: incoming.begin())
            await self._take_in(incoming, order, chunks)
            artifact = self._described(artifact_id, order, UPLOAD_TTL)
        except BaseException:
            self._forget(artifact_id, incoming)
            raise
        # A task of its own: a caller that goes away must not leave a row without its file, or the other way round.
        finishing = self._tasks.spawn(
            self._finish(incoming, KeptArtifact(artifact, caller.name)), f"keep {artifact.name}", awaited=True
        )
        return await asyncio.shield(finishing)

    async def get(self, caller: Principal, name: str) -> Artifact:
        """A file that the caller may read; ARTIFACT_NOT_FOUND, NOT_OWNER."""
        kept = await self._find(name)
        if (refused := rules.may_read(caller, kept, name, self._clock())) or kept is None:
            raise refused or rules.unknown(name)
        return kept.artifact

    async def read(self, artifact: Artifact, offset_bytes: int) -> AsyncGenerator[bytes, None]:
        """The bytes of a file from an offset on, in pieces of at most 256 KiB; a file that expires meanwhile stays."""
        if offset_bytes > artifact.size_bytes:
            raise invalid_field("offset_bytes", "must not be behind the end of the file", limit=artifact.size_bytes)
        opened = Opened(self.path_of(artifact))
        try:
            await self._files.run(lambda _: opened.begin())
            while offset_bytes < artifact.size_bytes:
                piece = await self._files.run(_read_at(opened, offset_bytes))
                if not piece:
                    raise OSError(f"{artifact.name} is shorter on disk than it was")
                yield piece
                offset_bytes += len(piece)
        except FileNotFoundError as error:
            raise rules.unknown(artifact.name) from error
        finally:
            # Behind a read that was cancelled, and may be at work still.
            self._files.soon(lambda _: opened.close())

    def path_of(self, artifact: Artifact) -> Path:
        """Where the file lies on this machine."""
        return disk.path_of(self._files.directory, id_of(artifact.name), artifact.display_name)

    @asynccontextmanager
    async def placed(self, owner: str, turn: str, order: UploadOrder, content: bytes) -> AsyncGenerator[KeptArtifact]:
        """A file of an answer, on disk as a whole; its row is to be written inside, or the file goes.

        It expires with the time that a retired session can be read at least.
        """
        artifact_id = new_id(self._random)
        self._coming[artifact_id] = _Coming(owner, 0)
        incoming = Incoming(self._files.directory, artifact_id)

        def write(_: Path) -> None:
            incoming.begin()
            incoming.append(content)
            incoming.finish(order.display_name)

        try:
            try:
                await self._files.run(write)
            except BaseException:
                self._files.soon(lambda _: incoming.close())
                raise
            artifact = self._described(artifact_id, order, ANSWER_TTL)
            yield KeptArtifact(artifact, owner, turn)
        finally:
            # Whoever was cancelled inside does not know whether the row is written: the next `tidy` looks.
            with suppress(asyncio.CancelledError):  # the server ends: its next start looks
                self._tasks.spawn(self._settle(artifact_id), f"settle {artifact_id}")

    async def tidy(self) -> None:
        """Delete what has expired, and files that nobody knows."""
        while expired := await self._log.change(_delete_expired):
            for name in expired:
                await self._files.run(partial(disk.remove, artifact_id=id_of(name)))
        found = await self._files.run(disk.entries)
        coming = frozenset(self._coming)  # before the rows are read: what is whole by then has its row
        known = await self._log.reading(lambda reader: reader.artifact_files())
        for artifact_id in found - coming - known.keys():
            await self._files.run(partial(disk.remove, artifact_id=artifact_id))

    async def repair(self) -> None:
        """At start: delete what a crash has left of files, and rows whose files are not there as a whole."""
        known = await self._log.reading(lambda reader: reader.artifact_files())
        missing = await self._files.run(partial(disk.missing, expected=known))
        if missing:
            _log.error("files missing", count=len(missing))
            await self._log.change(partial(_delete, ids=missing))
        await self.tidy()

    def _described(self, artifact_id: str, order: UploadOrder, ttl: timedelta) -> Artifact:
        return Artifact(
            name=artifact_name(artifact_id),
            display_name=order.display_name,
            media_type=order.media_type,
            size_bytes=order.size_bytes,
            sha256=order.sha256,
            expire_time=self._clock() + ttl,
        )

    async def _find(self, name: str) -> KeptArtifact | None:
        return await self._log.reading(lambda reader: reader.artifact(name))

    async def _take_in(self, incoming: Incoming, order: UploadOrder, chunks: AsyncIterator[bytes]) -> None:
        size_bytes = 0
        async with aclosing(_in_time(chunks, self._silence)) as pieces:
            async for piece in pieces:
                size_bytes += len(piece)
                if size_bytes > order.size_bytes:
                    raise _other("size_bytes", f"is {order.size_bytes}, and more came")
                await self._files.run(_append(incoming, piece))
        if size_bytes < order.size_bytes:
            raise _other("size_bytes", f"is {order.size_bytes}, and {size_bytes} came")
        if incoming.sha256 != order.sha256:
            raise _other("sha256", "is not that of what came")

    async def _finish(self, incoming: Incoming, kept: KeptArtifact) -> Artifact:
        artifact_id = id_of(kept.name)
        try:
            await self._files.run(lambda _: incoming.finish(kept.artifact.display_name))
            await self._log.change(lambda changes: changes.add_artifact(kept))
        except BaseException:
            self._forget(artifact_id, incoming)
            raise
        del self._coming[artifact_id]
        return kept.artifact

    async def _settle(self, artifact_id: str) -> None:
        """What comes no more, once all that was to be written before is."""
        try:
            await self._log.change(lambda _: None)
        finally:
            del self._coming[artifact_id]

    def _forget(self, artifact_id: str, incoming: Incoming) -> None:
        """Delete what came, behind what is being done with it still; then it comes no more."""

        def remove(directory: Path) -> None:
            incoming.close()
            disk.remove(directory, artifact_id)

        del self._coming[artifact_id]
        self._files.soon(remove)


def _append(incoming: Incoming, piece: bytes) -> Callable[[Path], None]:
    return lambda _: incoming.append(piece)


def _read_at(opened: Opened, offset_bytes: int) -> Callable[[Path], bytes]:
    return lambda _: opened.read(offset_bytes, MAX_CHUNK_BYTES)


async def _in_time(chunks: AsyncIterator[bytes], silence: float) -> AsyncGenerator[bytes, None]:
    """The pieces as they come; INVALID_FIELD where the next one is too long in coming."""
    while True:
        try:
            async with asyncio.timeout(silence):
                piece = await anext(chunks)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise invalid_field("chunk", f"must follow within {silence:.0f} s; nothing was kept") from None
        yield piece


def _other(field: str, problem: str) -> Refused:
    return invalid_field(f"info.{field}", f"{problem}; nothing was kept")


def _delete(changes: Changes, ids: Iterable[str]) -> None:
    for artifact_id in ids:
        changes.delete_artifact(artifact_name(artifact_id))


def _delete_expired(changes: Changes) -> list[str]:
    return changes.delete_expired_artifacts(_EXPIRED_AT_ONCE)

"""Files over a real store and a real disk: whole or not at all, one's own, and for a while."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest
from tabmuxd.artifacts.rules import DEFAULT_LIMITS, Limits
from tabmuxd.artifacts.service import Artifacts
from tabmuxd.events.log import Log
from tabmuxd.resources.artifacts import KeptArtifact, UploadOrder
from tabmuxd.resources.errors import Refused
from tabmuxd.resources.session import Artifact
from tabmuxd.tasks import Tasks

from tests.domain.below import Clock
from tests.domain.values import ADMIN, NOW, OWNER, STRANGER, told

CONTENT: Final = bytes(range(256)) * 2048
DAY: Final = timedelta(hours=24)


def order_of(content: bytes, name: str = "a.bin") -> UploadOrder:
    """What an upload of these bytes says of itself."""
    return UploadOrder(name, "application/octet-stream", len(content), hashlib.sha256(content).hexdigest())


async def pieces(content: bytes, size: int = 100_000) -> AsyncGenerator[bytes, None]:
    """The content in pieces."""
    for start in range(0, len(content), size):
        yield content[start : start + size]


@dataclass
class Parts:
    """Files over a store of their own."""

    directory: Path
    log: Log
    artifacts: Artifacts
    clock: Clock

    async def upload(self, content: bytes = CONTENT, name: str = "a.bin") -> Artifact:
        return await self.artifacts.upload(OWNER, order_of(content, name), pieces(content))

    async def read(self, artifact: Artifact, offset: int = 0) -> bytes:
        return b"".join([piece async for piece in self.artifacts.read(artifact, offset)])

    async def refused(self, order: UploadOrder, content: bytes) -> str | None:
        with pytest.raises(Refused) as caught:
            await self.artifacts.upload(OWNER, order, pieces(content))
        return f"{told(caught.value)}:{caught.value.metadata.get('field') or caught.value.metadata.get('quantity')}"

    async def on_disk(self) -> list[str]:
        """Everything below the directory, once all that was to be done there is."""
        await self.log.files.run(lambda _: None)
        root = self.directory / "artifacts"
        return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


@pytest.fixture
def directory() -> Iterator[Path]:
    """A folder of its own."""
    path = Path(tempfile.mkdtemp(prefix="tm"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
async def parts(directory: Path) -> AsyncIterator[Parts]:
    """Files with the usual limits."""
    async with opened(directory) as found:
        yield found


@asynccontextmanager
async def opened(directory: Path, limits: Limits = DEFAULT_LIMITS, *, silence: float = 60.0) -> AsyncGenerator[Parts]:
    """Files below a directory, as after a start."""
    clock = Clock()
    async with Log(directory / "t.sqlite3", clock=clock) as log, Tasks() as tasks:
        numbers = iter(range(256))
        artifacts = Artifacts(
            log, tasks, random=lambda count: bytes([next(numbers)] * count), clock=clock, limits=limits, silence=silence
        )
        await artifacts.repair()
        yield Parts(directory, log, artifacts, clock)


async def test_kept(parts: Parts) -> None:
    """An upload is kept as it came, for its owner to read from any offset, and on disk for nobody else."""
    artifact = await parts.upload(name="naïve name.txt")

    assert artifact == Artifact(
        "artifacts/0000000000",
        "naïve name.txt",
        "application/octet-stream",
        len(CONTENT),
        hashlib.sha256(CONTENT).hexdigest(),
        NOW + DAY,
    )
    assert await parts.artifacts.get(OWNER, artifact.name) == artifact
    offsets = (0, 1, 300_000, len(CONTENT))
    assert [await parts.read(artifact, offset) for offset in offsets] == [CONTENT[offset:] for offset in offsets]
    assert await parts.on_disk() == ["0000000000", "0000000000/naïve name.txt"]
    path = parts.artifacts.path_of(artifact)
    assert [each.stat().st_mode & 0o777 for each in (path, path.parent, path.parent.parent)] == [0o600, 0o700, 0o700]


async def test_read_in_pieces(parts: Parts) -> None:
    """A file is read in pieces of 256 KiB at most, and not behind its end."""
    artifact = await parts.upload()
    assert [len(piece) async for piece in parts.artifacts.read(artifact, 0)] == [262_144, 262_144]
    with pytest.raises(Refused) as caught:
        await parts.read(artifact, len(CONTENT) + 1)
    assert (told(caught.value), caught.value.metadata["field"]) == ("INVALID_FIELD", "offset_bytes")


async def test_whose(parts: Parts) -> None:
    """An upload is read by its owner and `admin`; for others NOT_OWNER, and ARTIFACT_NOT_FOUND if nobody knows it."""
    artifact = await parts.upload()
    found: list[str | None] = []
    for caller, name in (
        (OWNER, artifact.name),
        (ADMIN, artifact.name),
        (STRANGER, artifact.name),
        (OWNER, "artifacts/x"),
    ):
        try:
            found.append((await parts.artifacts.get(caller, name)).name)
        except Refused as refused:
            found.append(told(refused))
    assert found == [artifact.name, artifact.name, "NOT_OWNER", "ARTIFACT_NOT_FOUND"]


@pytest.mark.parametrize(
    ("order", "content", "reason"),
    [
        (order_of(b"abc"), b"ab", "INVALID_FIELD:info.size_bytes"),
        (order_of(b"abc"), b"abcd", "INVALID_FIELD:info.size_bytes"),
        (order_of(b"abc"), b"abd", "INVALID_FIELD:info.sha256"),
        (order_of(b"abc"), b"", "INVALID_FIELD:info.size_bytes"),
    ],
)
async def test_not_as_told(parts: Parts, order: UploadOrder, content: bytes, reason: str) -> None:
    """Less, more, or other than what was told is refused, and nothing of it stays."""
    assert await parts.refused(order, content) == reason
    assert await parts.on_disk() == []


async def test_too_much_at_once(parts: Parts) -> None:
    """What is more than was told is refused when it comes, not at the end of it."""
    taken = 0

    async def endless() -> AsyncGenerator[bytes, None]:
        nonlocal taken
        while True:
            taken += 1
            yield b"x" * 1000

    with pytest.raises(Refused):
        await parts.artifacts.upload(OWNER, order_of(b"x" * 2500), endless())
    assert taken == 3


@pytest.mark.parametrize(
    ("limits", "quantity"),
    [
        (Limits(count=1), "artifacts"),
        (Limits(size_bytes=5), "artifact-bytes"),
        (Limits(at_once=0), "uploads"),
    ],
)
async def test_limits(directory: Path, limits: Limits, quantity: str) -> None:
    """TOKEN_LIMITED tells which limit of a principal is reached; what has expired does not count."""
    async with opened(directory, replace(limits, at_once=limits.at_once or 1)) as parts:
        await parts.upload(b"abc")
    async with opened(directory, limits) as parts:
        assert await parts.refused(order_of(b"abc"), b"abc") == f"TOKEN_LIMITED:{quantity}"
        if limits.at_once:
            parts.clock.now += DAY
            await parts.artifacts.tidy()
            await parts.upload(b"abc")


async def test_those_on_their_way_count(directory: Path) -> None:
    """Uploads that come at once cannot go past the limit together."""
    async with opened(directory, Limits(size_bytes=5)) as parts:
        going = asyncio.Event()
        ready = asyncio.Event()

        async def slow() -> AsyncGenerator[bytes, None]:
            ready.set()
            await going.wait()
            yield b"abc"

        first = asyncio.ensure_future(parts.artifacts.upload(OWNER, order_of(b"abc"), slow()))
        await ready.wait()
        assert await parts.refused(order_of(b"abc"), b"abc") == "TOKEN_LIMITED:artifact-bytes"
        going.set()
        assert (await first).size_bytes == 3


async def test_silent(directory: Path) -> None:
    """An upload whose next piece does not come is refused, and leaves nothing."""
    async with opened(directory, silence=0.01) as parts:

        async def silent() -> AsyncGenerator[bytes, None]:
            yield b"a"
            await asyncio.Event().wait()

        with pytest.raises(Refused) as caught:
            await parts.artifacts.upload(OWNER, order_of(b"abc"), silent())
        assert (told(caught.value), caught.value.metadata["field"]) == ("INVALID_FIELD", "chunk")
        assert await parts.on_disk() == []


async def test_cancelled(parts: Parts) -> None:
    """An upload that is given up leaves nothing, wherever it was."""
    for taken in range(3):
        reached = asyncio.Event()

        async def slow(taken: int = taken, reached: asyncio.Event = reached) -> AsyncGenerator[bytes, None]:
            for _ in range(taken):
                yield b"a"
            reached.set()
            await asyncio.Event().wait()

        upload = asyncio.ensure_future(parts.artifacts.upload(OWNER, order_of(b"abc"), slow()))
        await reached.wait()
        upload.cancel()
        await asyncio.wait({upload})
        assert (upload.cancelled(), await parts.on_disk(), repr(parts.artifacts)) == (True, [], "<Artifacts coming=0>")


@pytest.mark.parametrize("steps", range(6))
async def test_given_up_at_its_end(parts: Parts, steps: int) -> None:
    """Whoever goes away when all has come leaves a file with its row, or neither."""
    last = asyncio.Event()

    async def all_of_it() -> AsyncGenerator[bytes, None]:
        yield b"abc"
        last.set()

    upload = asyncio.ensure_future(parts.artifacts.upload(OWNER, order_of(b"abc"), all_of_it()))
    await last.wait()
    for _ in range(steps):
        await parts.log.files.run(lambda _: None)
    upload.cancel()
    await asyncio.wait({upload})
    while "coming=0" not in repr(parts.artifacts):
        await parts.log.change(lambda _: None)
    known = await parts.log.reading(lambda reader: reader.artifact_files())
    assert await parts.on_disk() == [path for name in known for path in (name, f"{name}/a.bin")]


async def test_expired(parts: Parts) -> None:
    """A file that has expired is ARTIFACT_NOT_FOUND, and goes with the next tidying, which leaves all others."""
    old = await parts.upload()
    parts.clock.now += timedelta(hours=1)
    young = await parts.upload()
    parts.clock.now = NOW + DAY
    with pytest.raises(Refused) as caught:
        await parts.artifacts.get(OWNER, old.name)
    await parts.artifacts.tidy()
    assert told(caught.value) == "ARTIFACT_NOT_FOUND"
    assert await parts.on_disk() == ["1111111111", "1111111111/a.bin"]
    assert await parts.read(await parts.artifacts.get(OWNER, young.name)) == CONTENT


async def test_deleted_under_a_reader(parts: Parts) -> None:
    """Who reads a file that expires meanwhile reads all of it."""
    artifact = await parts.upload()
    reading = parts.artifacts.read(artifact, 0)
    first = await anext(reading)
    parts.clock.now += DAY
    await parts.artifacts.tidy()
    assert await parts.on_disk() == []
    assert first + b"".join([piece async for piece in reading]) == CONTENT


async def test_tidying_leaves_what_comes(parts: Parts) -> None:
    """A file that is on its way is no leftover."""
    ready, going = asyncio.Event(), asyncio.Event()

    async def slow() -> AsyncGenerator[bytes, None]:
        yield b"a"
        ready.set()
        await going.wait()
        yield b"bc"

    upload = asyncio.ensure_future(parts.artifacts.upload(OWNER, order_of(b"abc"), slow()))
    await ready.wait()
    await parts.artifacts.tidy()
    going.set()
    assert await parts.read(await upload) == b"abc"


async def test_start_after_a_crash(directory: Path) -> None:
    """At start what a crash has left goes, and so do rows whose files are not whole."""
    async with opened(directory) as parts:
        for name in ("kept.txt", "gone.txt", "cut.txt"):
            await parts.upload(name=name)
    root = directory / "artifacts"
    (root / "1111111111" / "gone.txt").unlink()
    (root / "2222222222" / "cut.txt").write_bytes(CONTENT[:-1])
    (root / "3333333333.part").write_bytes(b"half")
    (root / "4444444444").mkdir()
    (root / "4444444444" / "no row").write_bytes(b"whole")
    async with opened(directory) as parts:
        assert await parts.on_disk() == ["0000000000", "0000000000/kept.txt"]
        assert await parts.log.reading(lambda reader: reader.artifact_files()) == {
            "0000000000": ("kept.txt", len(CONTENT))
        }


async def test_of_an_answer(parts: Parts) -> None:
    """A file of an answer is kept with the row that is written for it, is read by all who read, and else goes."""
    turn = "sessions/s/turns/0123456789"
    for written in (True, False):
        async with parts.artifacts.placed(OWNER.name, turn, order_of(b"abc"), b"abc") as kept:
            if written:
                await parts.log.change(lambda changes, kept=kept: changes.add_artifact(kept))  # type: ignore[misc]
    assert kept == KeptArtifact(replace(kept.artifact, expire_time=NOW + timedelta(days=30)), OWNER.name, turn)
    while "coming=0" not in repr(parts.artifacts):
        await parts.log.change(lambda _: None)
    await parts.artifacts.tidy()
    assert await parts.on_disk() == ["0000000000", "0000000000/a.bin"]
    assert await parts.read(await parts.artifacts.get(STRANGER, "artifacts/0000000000")) == b"abc"
    usage = await parts.log.reading(lambda reader: reader.artifact_usage(OWNER.name, now=NOW))
    assert usage.count == 0


@pytest.mark.parametrize(("point", "number"), [("append", 1), ("finish", 1), ("before", 1), ("after", 1)])
async def test_killed(directory: Path, point: str, number: int) -> None:
    """SIGKILL while a file comes, once it has its name, and around the commit: it is whole, or not there."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.artifacts.crashing", str(directory), point, str(number), stderr=sys.stderr
    )
    assert await process.wait() == -9
    async with opened(directory) as parts:
        names = ["0000000000", "0000000000/a.bin"] if point == "after" else []
        assert await parts.on_disk() == names
        if names:
            assert await parts.read(await parts.artifacts.get(OWNER, "artifacts/0000000000")) == CONTENT

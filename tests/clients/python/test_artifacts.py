"""Files go up and come down whole, with the client and on the command line."""

import hashlib
from pathlib import Path

import grpc
import pytest
from google.protobuf.message import Message
from tabmux.client import Client
from tabmux.errors import TabmuxError
from tabmux.v1.session_pb2 import Artifact, Session, Turn
from tabmux.v1.web_ai_service_pb2 import (
    ArtifactInfo,
    CreateSessionResponse,
    ReadArtifactRequest,
    ReadArtifactResponse,
    SendPromptResponse,
    UploadArtifactRequest,
    UploadArtifactResponse,
)

from tests.clients.python.scripted import Refuse, ScriptedServer
from tests.clients.python.test_cli import Ended, tabmux

CONTENT = bytes(range(256)) * 1500
NAME = "artifacts/0123456789"
ARTIFACT = Artifact(
    name=NAME, display_name="a.txt", size_bytes=len(CONTENT), sha256=hashlib.sha256(CONTENT).hexdigest()
)
UPLOADED = UploadArtifactResponse(artifact=ARTIFACT)


def downloaded(request: Message) -> list[ReadArtifactResponse | Refuse]:
    """The file from the offset asked for; the first time it is cut in the middle."""
    assert isinstance(request, ReadArtifactRequest)
    rest = CONTENT[request.offset_bytes :]
    first = ReadArtifactResponse(artifact=ARTIFACT)
    if request.offset_bytes:
        return [first, ReadArtifactResponse(chunk=rest)]
    return [first, ReadArtifactResponse(chunk=rest[:1000]), Refuse(grpc.StatusCode.UNAVAILABLE, "DRAINING")]


async def test_upload(server: ScriptedServer, client: Client, directory: Path) -> None:
    """A file is described first, with its size and hash, then comes in chunks of 256 KiB at most."""
    file = directory / "naïve.txt"
    file.write_bytes(CONTENT)
    server.script("UploadArtifact", [UPLOADED])

    assert await client.upload(file) == ARTIFACT
    info = ArtifactInfo(
        display_name="naïve.txt", media_type="text/plain", size_bytes=len(CONTENT), sha256=ARTIFACT.sha256
    )
    assert server.requests("UploadArtifact") == [
        UploadArtifactRequest(info=info),
        UploadArtifactRequest(chunk=CONTENT[: 256 * 1024]),
        UploadArtifactRequest(chunk=CONTENT[256 * 1024 :]),
    ]


async def test_read(server: ScriptedServer, client: Client) -> None:
    """A download that was cut goes on where it was."""
    server.script("ReadArtifact", downloaded)
    assert b"".join([piece async for piece in client.artifact("0123456789")]) == CONTENT
    assert server.requests("ReadArtifact") == [
        ReadArtifactRequest(name=NAME),
        ReadArtifactRequest(name=NAME, offset_bytes=1000),
    ]


async def test_read_otherwise(server: ScriptedServer, client: Client) -> None:
    """What has not the size and hash that the service tells is an error at its end."""
    server.script("ReadArtifact", [ReadArtifactResponse(artifact=ARTIFACT), ReadArtifactResponse(chunk=CONTENT[1:])])
    with pytest.raises(TabmuxError, match="is not what the service keeps"):
        assert [piece async for piece in client.artifact(NAME)]


async def test_ask(server: ScriptedServer, client: Client, directory: Path) -> None:
    """Files of a prompt that are paths are uploaded first; names are sent as they are."""
    file = directory / "a.txt"
    file.write_bytes(CONTENT)
    server.script("UploadArtifact", [UPLOADED])
    server.script("CreateSession", [CreateSessionResponse(session=Session(name="sessions/s"))])
    server.script("SendPrompt", [SendPromptResponse(turn=Turn(name="sessions/s/turns/t"))])
    await client.ask("chatgpt", "why?", files=["artifacts/other", file])
    assert [list(request.attachments) for request in server.requests("SendPrompt")] == [["artifacts/other", NAME]]


async def test_commands(server: ScriptedServer, directory: Path) -> None:
    """`ai artifacts` uploads files and gets them back; `--file` uploads and sends."""
    (directory / "a.txt").write_bytes(CONTENT)
    server.script("UploadArtifact", [UPLOADED])
    server.script("ReadArtifact", downloaded)
    server.script("CreateSession", [CreateSessionResponse(session=Session(name="sessions/s"))])
    server.script("SendPrompt", [SendPromptResponse(turn=Turn(name="sessions/s/turns/t"))])
    file, target = str(directory / "a.txt"), directory / "b.txt"

    uploaded = await tabmux(directory, "ai", "artifacts", "upload", file)
    got = await tabmux(directory, "ai", "artifacts", "get", NAME, "-o", str(target))
    sent = await tabmux(directory, "ai", "send", "--file", file, "chatgpt", "why?")

    assert (uploaded, got, sent) == (
        Ended(0, f"{NAME}\n", ""),
        Ended(0, "", f"{target}: {len(CONTENT)} bytes\n"),
        Ended(0, "sessions/s/turns/t\n", ""),
    )
    assert target.read_bytes() == CONTENT
    assert [list(request.attachments) for request in server.requests("SendPrompt")] == [[NAME]]


def leftovers(directory: Path) -> list[str]:
    """What there is of a download."""
    return [path.name for path in directory.iterdir() if "b.txt" in path.name]


async def test_commands_refuse(server: ScriptedServer, directory: Path) -> None:
    """A file that is not there sends nothing, and a download that fails leaves no file."""
    server.script("ReadArtifact", [Refuse(grpc.StatusCode.NOT_FOUND, "ARTIFACT_NOT_FOUND")])
    missing = await tabmux(directory, "ai", "send", "--file", str(directory / "no"), "chatgpt", "why?")
    got = await tabmux(directory, "ai", "artifacts", "get", NAME, "-o", str(directory / "b.txt"))
    assert ((missing.code, got.code), server.requests("SendPrompt")) == ((1, 1), [])
    assert "nothing was sent" in missing.err
    assert leftovers(directory) == []

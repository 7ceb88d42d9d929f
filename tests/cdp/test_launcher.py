import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest
from tabmuxd.cdp.launcher import (
    BrowserProcess,
    EndRefused,
    Launched,
    LaunchError,
    LaunchOptions,
    end,
    hold_profile,
    launch_or_take_back,
)
from tabmuxd.cdp.processes import ProcessFacts, doubt, find_launched, read_facts
from tabmuxd.cdp.profile import RECORD_FILE, read_launch, read_record, write_launch, write_record

from tests.cdp.browsers import EXECUTABLE, RunningChromium, fresh_profile, group_members, until

# A server in miniature: launches, tells what it launched, and then lives until it is killed.
SERVER = """
import asyncio, dataclasses, json, pathlib, sys
from tabmuxd.cdp.launcher import LaunchOptions, hold_profile, launch_or_take_back
async def main():
    profile, executable = map(pathlib.Path, sys.argv[1:])
    hold_profile(profile)
    launched = await launch_or_take_back(LaunchOptions(profile, executable), known=None)
    print(json.dumps([dataclasses.asdict(launched.process), launched.located.process_key]), flush=True)
    sys.stdin.read()
asyncio.run(main())
"""


def options(profile: Path) -> LaunchOptions:
    """Options for the Chromium of these tests."""
    return LaunchOptions(profile, Path(EXECUTABLE or "chromium"))


@contextlib.contextmanager
def server(profile: Path) -> Generator[subprocess.Popen[bytes], None, None]:
    """Another process that launches a browser on this profile; killed afterwards, its browser lives on."""
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, str(profile), str(EXECUTABLE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def dead_pid() -> int:
    """The pid of a process that has ended."""
    with subprocess.Popen(["true"]) as process:
        process.wait()
    return process.pid


def stub(profile: Path, script: str) -> LaunchOptions:
    """Options for a program that does this instead of being a browser; its $dir is the profile directory."""
    program = profile / "stub"
    program.write_text(f"#!/bin/sh\nfor last; do :; done\ndir=${{last#--user-data-dir=}}\n{script}\n")
    program.chmod(0o700)
    return LaunchOptions(profile, program)


def kill_group(group: int) -> None:
    """End what a test has left, whose group is known to be ours."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(group, 0)
    until(lambda: not group_members(group))


@contextlib.contextmanager
def ended_afterwards(process: BrowserProcess) -> Generator[None, None, None]:
    """Nothing of the browser is left, whatever happens."""
    try:
        yield
    finally:
        if group_members(process.process_group):
            kill_group(process.process_group)


async def refusal(chosen: LaunchOptions, *, timeout: float = 10) -> LaunchError:
    """How the launch is refused."""
    with pytest.raises(LaunchError) as caught:
        await launch_or_take_back(chosen, known=None, timeout=timeout)
    return caught.value


@pytest.mark.chromium
async def test_launch_and_end(profile: Path) -> None:
    """A launched browser leads a group of its own, is written down, and leaves no process and no record when ended."""
    launched = await launch_or_take_back(options(profile / "new"), known=None)
    with ended_afterwards(launched.process):
        facts = read_facts(launched.process.pid)
        port, path = (profile / "new" / "DevToolsActivePort").read_text().split("\n")
        assert facts is not None
        assert launched.process == BrowserProcess(
            launched.process.pid, facts.start_time, launched.process.pid, int(port)
        )
        assert launched.located.socket_uri == f"ws://127.0.0.1:{port}{path}"
        assert (launched.taken_back, read_record(profile / "new")) == (False, launched.process)
        assert (profile / "new").stat().st_mode & 0o777 == 0o700
        await end(launched.process, profile / "new")
        assert group_members(launched.process.process_group) == []
        assert read_record(profile / "new") is None
        await end(launched.process, profile / "new")


@pytest.mark.chromium
async def test_two_browsers(profile: Path) -> None:
    """PRO-07: two launched browsers have ports and profiles of their own, and the end of one leaves the other."""
    first, second = await asyncio.gather(
        *(launch_or_take_back(options(profile / name), known=None) for name in ("a", "ab"))
    )
    with ended_afterwards(first.process), ended_afterwards(second.process):
        assert first.process.port != second.process.port
        await end(first.process, profile / "a")
        assert [bool(group_members(each.process.process_group)) for each in (first, second)] == [False, True]
        await end(second.process, profile / "ab")


@pytest.mark.chromium
async def test_end_of_a_stopped_browser(profile: Path) -> None:
    """A browser that does not heed SIGTERM is killed with its helpers."""
    launched = await launch_or_take_back(options(profile), known=None)
    with ended_afterwards(launched.process):
        os.kill(launched.process.pid, signal.SIGSTOP)
        await end(launched.process, profile, timeout=0.1)
        assert group_members(launched.process.process_group) == []


@pytest.mark.chromium
@pytest.mark.parametrize(
    "recorded", ["with its port", "before its port was known", "before its process was", "as another process"]
)
async def test_take_back(profile: Path, recorded: str) -> None:
    """PRO-02, O-116: the browser of a server that was killed is taken back as the same process, and can be ended."""
    with server(profile) as running:
        assert running.stdout is not None
        told, process_key = json.loads(await asyncio.to_thread(running.stdout.readline))
        process = BrowserProcess(**told)
        with ended_afterwards(process):
            with pytest.raises(LaunchError, match="in use by another server"):
                hold_profile(profile)
            running.kill()
            running.wait()
            os.close(hold_profile(profile))
            launch = read_launch(profile)
            assert launch is not None
            match recorded:
                case "before its port was known":
                    write_record(profile, replace(process, port=0))
                case "before its process was":
                    write_launch(profile, launch)
                case "as another process":
                    write_record(profile, replace(process, pid=dead_pid()))
                case _:
                    pass
            launched = await launch_or_take_back(options(profile), known=None)
            assert launched == Launched(process, launched.located, taken_back=True)
            assert (launched.located.process_key, read_record(profile)) == (process_key, process)
            assert read_launch(profile) == launch
            await end(process, profile)
            assert group_members(process.process_group) == []


@pytest.mark.chromium
async def test_launch_does_not_clear_a_doubt(profile: Path) -> None:
    """PRO-04, O-117: a living process whose recorded port does not fit is not taken back for the id of its launch."""
    launched = await launch_or_take_back(options(profile), known=None)
    with ended_afterwards(launched.process):
        doubtful = replace(launched.process, port=launched.process.port - 1)
        write_record(profile, doubtful)
        assert (await refusal(options(profile))).cause == "profile_in_use"
        with pytest.raises(EndRefused, match="other_port"):
            await end(doubtful, profile)
        await end(launched.process, profile)


@contextlib.contextmanager
def program(*arguments: str, leader: bool = True) -> Generator[BrowserProcess, None, None]:
    """A program with these words in its command line, of which no port is known."""
    with subprocess.Popen(
        ["sh", "-c", "echo; read end", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=leader,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        facts = read_facts(process.pid)
        assert facts is not None
        yield BrowserProcess(process.pid, facts.start_time, facts.process_group, port=0)
        assert process.poll() is None, "the program was ended"


IN_A, LAUNCH = "--user-data-dir=/profiles/a", "--tabmux-launch=1f"


@pytest.mark.parametrize(
    ("arguments", "leader", "expected"),
    [
        ((IN_A, LAUNCH), True, True),
        ((IN_A, LAUNCH), False, False),
        ((IN_A, LAUNCH, "--type=renderer"), True, False),
        ((IN_A,), True, False),
        ((IN_A, f"{LAUNCH}0"), True, False),
        ((IN_A, "--tabmux-launch="), True, False),
        ((IN_A, LAUNCH, "--tabmux-launch=20"), True, False),
        ((f"{IN_A}b", LAUNCH), True, False),
        ((IN_A, LAUNCH, f"{IN_A}b"), True, False),
        ((LAUNCH,), True, False),
    ],
)
def test_find_launched(arguments: tuple[str, ...], *, leader: bool, expected: bool) -> None:
    """PRO-04, O-117: without a pid, only the leader of a group with exactly our profile and launch is ours."""
    with program(*arguments, leader=leader) as process:
        assert find_launched(Path("/profiles/a"), "1f") == (process if expected else None)


def test_two_of_one_launch() -> None:
    """PRO-04: of two processes that claim to be one launch, neither is ours."""
    with program(IN_A, LAUNCH), program(IN_A, LAUNCH):
        assert find_launched(Path("/profiles/a"), "1f") is None


def test_launched_by_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """PRO-04: a process of another user that repeats the id of our launch is not ours."""
    with program(IN_A, LAUNCH):
        monkeypatch.setattr(os, "geteuid", lambda: 4321)
        assert find_launched(Path("/profiles/a"), "1f") is None


async def test_start_that_takes_its_time(profile: Path) -> None:
    """PRO-02: a browser that was launched right before its server was killed may open its port later, and is kept."""
    write_launch(profile, "1f")
    with program(f"--user-data-dir={profile}", LAUNCH) as process:
        error = await refusal(stub(profile, "exit 0"), timeout=0.5)
    assert (error.cause, f"process {process.pid};" in str(error)) == ("timeout", True)
    assert (await refusal(stub(profile, "exit 0"))).cause == "absorbed"


@pytest.mark.chromium
async def test_launch_after_a_crash(profile: Path) -> None:
    """CON-01, PRO-06: after `kill -9` of the browser its lock and its port file stop nobody."""
    first = await launch_or_take_back(options(profile), known=None)
    with ended_afterwards(first.process):
        os.kill(first.process.pid, signal.SIGKILL)
        second = await launch_or_take_back(options(profile), known=first.process)
    with ended_afterwards(second.process):
        assert second.taken_back is False
        assert second.located.process_key != first.located.process_key
        await end(second.process, profile)


@pytest.mark.chromium
async def test_foreign_browser_on_the_profile(chromium: RunningChromium) -> None:
    """PRO-06: the lock of a live browser that we did not launch is never stolen, nor is that browser ever ended."""
    facts = read_facts(chromium.pid)
    assert facts is not None
    almost = BrowserProcess(chromium.pid, facts.start_time + 1, chromium.pid, chromium.port)
    with pytest.raises(LaunchError) as caught:
        await launch_or_take_back(options(chromium.profile), known=almost, timeout=10)
    assert (caught.value.cause, caught.value.detail) == (
        "profile_in_use",
        f"process {chromium.pid} on {socket.gethostname()}",
    )
    with pytest.raises(EndRefused) as refused:
        await end(almost, chromium.profile)
    assert (refused.value.doubt, read_facts(chromium.pid)) == ("reused_pid", facts)


COMMAND = ("/usr/bin/browser", "--remote-debugging-port=0", "--user-data-dir=/profiles/a")
OURS = BrowserProcess(pid=50, start_time=7, process_group=50, port=9240)


@pytest.mark.parametrize(
    ("found", "port", "expected"),
    [
        (ProcessFacts(7, 50, COMMAND), 9240, None),
        (None, 9240, "gone"),
        (ProcessFacts(7, 50, ()), 9240, "gone"),
        (ProcessFacts(8, 50, COMMAND), 9240, "reused_pid"),
        (ProcessFacts(8, 50, ()), 9240, "reused_pid"),
        (ProcessFacts(7, 50, (*COMMAND, "--type=renderer")), 9240, "not_a_browser"),
        (ProcessFacts(7, 50, (*COMMAND[:2], "--user-data-dir=/profiles/ab")), 9240, "other_profile"),
        (ProcessFacts(7, 50, (*COMMAND[:2], "--user-data-dir=/profiles")), 9240, "other_profile"),
        (ProcessFacts(7, 50, (*COMMAND, "--user-data-dir=/profiles/b")), 9240, "other_profile"),
        (ProcessFacts(7, 50, COMMAND[:2]), 9240, "other_profile"),
        (ProcessFacts(7, 49, COMMAND), 9240, "other_group"),
        (ProcessFacts(7, 50, COMMAND), 92401, "other_port"),
        (ProcessFacts(7, 50, COMMAND), None, "other_port"),
    ],
)
def test_doubt(found: ProcessFacts | None, port: int | None, expected: str | None) -> None:
    """PRO-04, O-117: a process is ours only if pid, start time, profile, group and port all fit exactly."""
    assert doubt(OURS, Path("/profiles/a"), found, port) == expected


async def test_no_executable(profile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser that is not there, or is no program, is told by its name."""
    no_program = profile / "no-program"
    no_program.write_text("nothing")
    no_program.chmod(0o700)
    monkeypatch.setenv("PATH", str(profile))
    errors = [await refusal(LaunchOptions(profile, program)) for program in (Path("/none/browser"), None, no_program)]
    assert [error.cause for error in errors] == ["no_executable"] * 3
    assert ["/none/browser" in str(errors[0]), "google-chrome" in str(errors[1]), "no-program" in str(errors[2])] == [
        True
    ] * 3
    assert not (profile / RECORD_FILE).exists()


async def test_not_writable(profile: Path) -> None:
    """PRO-06: a profile directory that cannot be written is told before anything is launched."""
    (profile / "file").write_text("")
    chosen = replace(stub(profile, 'touch "$0.ran"'), profile_directory=profile / "file" / "profile")
    assert (await refusal(chosen)).cause == "profile_not_writable"
    assert not (profile / "stub.ran").exists()


@pytest.mark.parametrize(
    ("script", "cause", "said"),
    [
        ("exit 0", "absorbed", "already runs"),
        ("exit 21", "profile_in_use", "another browser"),
        ("echo 'no display' >&2; exit 3", "exited", "exit code 3\nno display"),
        ("kill -9 $$", "exited", "exit code 9"),
    ],
)
async def test_early_end(profile: Path, script: str, cause: str, said: str) -> None:
    """PRO-06: a browser that ends before its port is there is told at once, with what it said, and leaves no record."""
    error = await refusal(stub(profile, script))
    assert (error.cause, said in str(error), (profile / RECORD_FILE).exists()) == (cause, True, False)


async def test_launch_timeout(profile: Path) -> None:
    """A browser that never opens its port is ended at the deadline."""
    error = await refusal(stub(profile, 'echo $$ > "$dir/pid"; exec sleep 60'), timeout=0.5)
    pid = int((profile / "pid").read_text())
    assert (error.cause, f"process {pid};" in str(error), group_members(pid)) == ("timeout", True, [])


async def test_launch_cancelled(profile: Path) -> None:
    """A launch that is cancelled leaves no process, no helper of it, and no record."""
    launch = asyncio.create_task(
        launch_or_take_back(
            stub(profile, 'sleep 60 & echo $$ > "$dir/pid.new"; mv "$dir/pid.new" "$dir/pid"; wait'), known=None
        )
    )
    await asyncio.to_thread(until, (profile / "pid").exists)
    pid = int((profile / "pid").read_text())
    launch.cancel()
    with pytest.raises(asyncio.CancelledError):
        await launch
    assert (group_members(pid), (profile / RECORD_FILE).exists()) == ([], False)


async def test_what_a_browser_inherits(profile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser gets the environment without our secrets, and no descriptor of ours, not even an inheritable one."""
    monkeypatch.setenv("TABMUX_TOKEN", "secret")
    monkeypatch.setenv("LANGUAGE", "C")
    reading, writing = os.pipe()
    try:
        os.set_inheritable(writing, True)
        await refusal(stub(profile, 'env > "$dir/env"; readlink /proc/$$/fd/* > "$dir/fds"'))
        inode = f"pipe:[{os.fstat(writing).st_ino}]"
    finally:
        os.close(reading)
        os.close(writing)
    environment = dict(line.split("=", 1) for line in (profile / "env").read_text().splitlines() if "=" in line)
    assert ("TABMUX_TOKEN" in environment, environment["LANGUAGE"]) == (False, "C")
    assert inode not in (profile / "fds").read_text().splitlines()


async def test_locks_of_others(profile: Path) -> None:
    """PRO-06: the lock of a dead process of this host is removed, that of another host or a live process is not."""
    lock = profile / "SingletonLock"
    dead = dead_pid()
    chosen = stub(profile, "exit 0")
    found = []
    for holder, break_lock in (
        (f"{socket.gethostname()}-{dead}", False),
        (f"{socket.gethostname()}-{os.getpid()}", False),
        (f"{socket.gethostname()}-{os.getpid()}", True),
        (f"other-host-{dead}", False),
        (f"other-host-{os.getpid()}", True),
    ):
        lock.unlink(missing_ok=True)
        lock.symlink_to(holder)
        found.append(((await refusal(replace(chosen, break_lock=break_lock))).cause, lock.is_symlink()))
    assert found == [
        ("absorbed", False),
        ("profile_in_use", True),
        ("profile_in_use", True),
        ("profile_in_use", True),
        ("absorbed", False),
    ]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{",
        '{"pid": 1}',
        '{"pid": "1", "start_time": 1, "process_group": 1, "port": 1}',
        '{"launch": 1}',
        '{"launch": ""}',
        '{"launch": "1f"}',
    ],
)
async def test_spoilt_record(profile: Path, content: str) -> None:
    """O-125: a record that cannot be read, or has no process, is none of ours, and the launch goes on without it."""
    (profile / RECORD_FILE).write_text(content)
    assert (read_record(profile), (await refusal(stub(profile, "exit 0"))).cause) == (None, "absorbed")


@pytest.mark.parametrize("pid", [0, -1, 2**40])
async def test_impossible_pid(profile: Path, pid: int) -> None:
    """O-125: a recorded pid that no process can have is nothing to wait for, to signal, or not to launch for."""
    process = BrowserProcess(pid=pid, start_time=1, process_group=pid, port=1)
    write_record(profile, process)
    await end(process, profile)
    write_record(profile, process)
    assert (await refusal(stub(profile, "exit 0"))).cause == "absorbed"


def test_one_server_per_profile() -> None:
    """PRO-05, O-130: a profile is locked for one server until it lets go; a lock that nobody holds stops nobody."""
    with fresh_profile() as profile:
        first = hold_profile(profile)
        with pytest.raises(LaunchError) as caught:
            hold_profile(profile)
        os.close(first)
        os.close(hold_profile(profile))
    assert (caught.value.cause, caught.value.detail) == ("profile_in_use", "another server")

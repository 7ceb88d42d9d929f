"""Attaching: the files of a prompt go into the composer, one by one, and each is seen there before the next step."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from tabmuxd.artifacts import disk, rules
from tabmuxd.resources.names import id_of
from tabmuxd.resources.session import Artifact
from tabmuxd.webai import attachments, records, submission
from tabmuxd.webai.attachments import Standing
from tabmuxd.webai.chat_page import ChatPage
from tabmuxd.webai.conversation import RETRY, Conversation
from tabmuxd.webai.samples import Sample

_BEGINNING_BYTES: Final = 64
_CHOOSER_WAIT: Final = 15.0
_STAYS: Final = 0.3
_REMOVAL_WAIT: Final = 1.0
_MOST_REMOVALS: Final = 32


class Attaching:
    """The files of one prompt on their way into one page after the other; `put` tells that some may be there.

    They are put in where none is shown. What a run that was cut off has put in is used if all of it is there, and else
    taken out again; nothing else is.
    """

    def __init__(self, conversation: Conversation, files: Sequence[Artifact], *, put: bool) -> None:
        """`put`: an earlier run may have put some in."""
        self.files = tuple(files)
        self.put = put
        self._conversation = conversation
        self._now = asyncio.get_running_loop().time
        self._old_failure = False
        self._given = 0

    async def attach(self, chat: ChatPage, at_hand: Callable[[Sample], bool] | None = None) -> None:
        """Put the files in, and see each of them there, by its name, ready to be sent.

        Nothing is done for a prompt without files, unless the provider's policy is to clear what others left; nor
        where the prompt may have been typed before, unless it is `at_hand`: with it its files may be gone. Raises
        Refused, Barred, CdpError, PageNotAnswering.
        """
        descriptor = self._conversation.descriptor
        if not self.files and (descriptor.draft != "clear" or not descriptor.marks.file_chip):
            return
        if at_hand is not None and not at_hand(await chat.look(None)):
            return
        sample = await self._usable(chat)
        self._old_failure = sample.files_failed
        if self.files and self.put:
            if self._standing(sample) == "ready":
                return
            sample = await self._remove(chat, sample, self.files)
        if sample.files and descriptor.draft == "clear":
            sample = await self._remove(chat, sample, None)
        if sample.files:
            raise submission.occupied(descriptor, chat.page.tab)
        await self._check_local(chat)
        if not self.files:
            return
        await self._conversation.change(lambda changes: records.attach(changes, self._conversation.name))
        self.put = True
        for number, file in enumerate(self.files, 1):
            self._given = number
            await self._put(chat, file)
            await self._await_shown(chat, self.files[:number])
        await self._await_ready(chat)

    async def take_back(self, chat: ChatPage) -> None:
        """Take out what was put in and is shown still, or is about to be. Raises CdpError, PageNotAnswering."""
        if not self.put:
            return
        sample, deadline = await chat.look(None, at_once=True), self._now() + _REMOVAL_WAIT
        while True:
            before = len(sample.files)
            sample = await self._remove(chat, sample, self.files)
            self._given -= before - len(sample.files)
            if self._given <= 0 or self._now() >= deadline:
                break
            await chat.changed(RETRY)
            sample = await chat.look(None)
        self.put = False

    # Looks

    async def _look(self, chat: ChatPage, *, at_once: bool = False) -> Sample:
        return await self._conversation.look_here(chat, None, at_once=at_once)

    async def _usable(self, chat: ChatPage) -> Sample:
        """A look at a page whose composer takes a prompt; waits up to its window."""
        descriptor, tab = self._conversation.descriptor, chat.page.tab
        deadline = self._now() + descriptor.windows.composer_wait
        while True:
            sample = await self._look(chat)
            match submission.may_type(descriptor, sample, tab):
                case None:
                    return sample
                case "wait" if self._now() < deadline:
                    await chat.changed(RETRY)
                case _:
                    raise submission.unusable(descriptor, sample, tab)

    def _standing(self, sample: Sample, files: Sequence[Artifact] | None = None) -> Standing:
        """How files stand, all of them by default; an error that was shown before is none of theirs."""
        sample = replace(sample, files_failed=sample.files_failed and not self._old_failure)
        return attachments.standing(sample, self.files if files is None else files)

    async def _await_shown(self, chat: ChatPage, files: Sequence[Artifact]) -> None:
        """Wait until the composer shows these files, ready or not, and no others."""
        deadline = self._now() + self._conversation.descriptor.windows.file_wait
        while True:
            sample = await self._look(chat)
            match self._standing(sample, files):
                case "ready" | "unfinished":
                    return
                case "failed":
                    raise attachments.refused(self._conversation.descriptor, files[-1], "failed")
                case _ if self._now() >= deadline:
                    file = attachments.missing(sample, files) or files[-1]
                    raise attachments.refused(self._conversation.descriptor, file, "not-shown")
                case _:
                    await chat.changed(RETRY)

    async def _await_ready(self, chat: ChatPage) -> None:
        """Wait until all files are ready, and stay so for a moment."""
        descriptor = self._conversation.descriptor
        deadline = self._now() + descriptor.windows.file_wait
        since: float | None = None
        while True:
            sample = await self._look(chat)
            found, now = self._standing(sample), self._now()
            if found == "failed":
                raise attachments.refused(descriptor, self.files[-1], "failed")
            since = None if found != "ready" else now if since is None else since
            if since is not None and now - since >= _STAYS:
                return
            if now >= deadline:
                file = attachments.missing(sample, self.files)
                cause: attachments.Cause = "unfinished" if file is None else "dropped"
                raise attachments.refused(descriptor, file or self.files[-1], cause)
            await chat.changed(RETRY if since is None else _STAYS)

    # Steps

    async def _check_local(self, chat: ChatPage) -> None:
        """See that the browser finds these very files where we have them, before the page is touched."""
        files = self._conversation.around.log.files
        for file in self.files:
            path = disk.path_of(files.directory, id_of(file.name), file.display_name)
            try:
                beginning = await files.run(partial(_beginning, path=path))
            except FileNotFoundError as error:
                raise rules.unknown(file.name) from error
            if not await chat.reads(path, file.size_bytes, beginning):
                raise attachments.refused(self._conversation.descriptor, file, "not-local")

    async def _put(self, chat: ChatPage, file: Artifact) -> None:
        """Give a file to the page's input, or to the one that its choice of files opens for."""
        conversation = self._conversation
        path = disk.path_of(conversation.around.log.files.directory, id_of(file.name), file.display_name)
        deadline = self._now() + conversation.descriptor.windows.composer_wait
        while True:
            if handle := await chat.file_input(file.display_name, file.media_type):
                return await chat.set_file(path, objectId=handle)
            if conversation.descriptor.marks.file_opener and (node := await self._choose(chat)) is not None:
                return await chat.set_file(path, backendNodeId=node)
            if self._now() >= deadline or conversation.descriptor.marks.file_opener:
                raise attachments.refused(conversation.descriptor, file, "no-input")
            await chat.changed(RETRY)

    async def _choose(self, chat: ChatPage) -> int | None:
        """The input that the page's choice of files is for, once it opens; None if it does not."""
        deadline = self._now() + _CHOOSER_WAIT
        pressed = ""
        async with chat.file_chooser() as chosen:
            while not chosen.done() and self._now() < deadline:
                if pressed != "entry":
                    pressed = await chat.open_files(entry_only=bool(pressed)) or pressed
                await asyncio.wait({chosen}, timeout=RETRY)
            return chosen.result() if chosen.done() else None

    async def _remove(self, chat: ChatPage, sample: Sample, files: Sequence[Artifact] | None) -> Sample:
        """Take out those of these files that are shown, or all with None; gives a look at what is left."""
        for _ in range(_MOST_REMOVALS):
            index = (0 if sample.files else None) if files is None else attachments.first_index(sample, files)
            shown = sample.files
            if index is None or not await chat.remove_file(index, len(shown)):
                break
            deadline = self._now() + _REMOVAL_WAIT
            sample = await chat.look(None)
            while sample.files == shown and self._now() < deadline:
                await chat.changed(RETRY)
                sample = await chat.look(None)
            if sample.files == shown:
                break
        return sample


def _beginning(_directory: Path, path: Path) -> bytes:
    return disk.beginning(path, _BEGINNING_BYTES)

"""The marks of a descriptor: by which selectors and names the elements of a chat page are found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tabmuxd.webai.providers.fields import Fields


@dataclass(frozen=True, slots=True)
class Mark:
    """An element by its selector, and by what else it has to be, in whatever case; empty means anything.

    `text` has to stand in what it shows. `name` is what it is called, by its label or by its text: as a whole, where
    `*` stands for anything; any one of its lines. With a `role` the selector is that of the role, and the name is the
    one that readers of screens tell, of elements that they are told of.
    """

    selector: str
    text: str = ""
    name: str = ""
    role: str = ""


@dataclass(frozen=True, slots=True)
class PageMarks:
    """CSS selectors, in order: the first that has a fitting element wins. All are sought below `root`.

    `root` selects the element whose shadow root holds the page; empty means the document. `ready` has to match before
    anything is typed; empty means at once; nothing is typed while `not_ready` shows. `turn_key`: the attributes that
    tell one turn from another, in order; without any the text does, and the place among equal ones.
    `prompt_attribute`: an attribute of `prompt_text` that holds the prompt as it was sent, behind `prompt_prefix`; an
    element without it, or without that prefix, is read as it is shown. `composer_root` selects what the composer has
    to be in; empty means anywhere but in side bars, dialogs and search boxes. `send` is sought nowhere but around the
    composer. `not_send` is never pressed to send, whatever else selects it. `busy`: what shows in the newest turn while
    it is written, besides `stop`, and cannot be pressed. `sign_in`, `challenge`, `consent` and `limit` stand in the way
    of a prompt.
    `done_mark`: stands in an answer that is finished; a provider may have none, but a `hint_mark`, after whose sight a
    shorter quiet is enough. `copy`: the control in an answer that copies all of it. `answer_files`: what an answer
    without text consists of, such as an image. `signed_in` and `signed_out` tell so for certain; a hint was never
    confirmed, and is told as one. `shown_model` names the model that is chosen. `file_input` takes files; where there
    is none, `file_opener` opens the choice of them, perhaps by way of an entry of a menu, `file_entry`. `file_chip`
    shows that a file is in the composer; while `file_busy` shows, it is not yet, and where `file_error` shows, it never
    will be. `file_remove` takes it out.
    """

    composer: tuple[Mark, ...]
    send: tuple[Mark, ...]
    stop: tuple[Mark, ...]
    user_turn: str
    assistant_turn: tuple[str, ...]
    turn_key: tuple[str, ...]
    prompt_text: str
    answer_text: tuple[str, ...]
    done_mark: tuple[str, ...]
    failure: tuple[str, ...]
    copy: tuple[str, ...] = ()
    hint_mark: tuple[str, ...] = ()
    answer_files: tuple[str, ...] = ()
    root: str = ""
    ready: str = ""
    not_ready: tuple[Mark, ...] = ()
    composer_root: str = ""
    not_send: tuple[Mark, ...] = ()
    busy: tuple[Mark, ...] = ()
    sign_in: tuple[Mark, ...] = ()
    challenge: tuple[Mark, ...] = ()
    consent: tuple[Mark, ...] = ()
    limit: tuple[Mark, ...] = ()
    signed_in: tuple[Mark, ...] = ()
    signed_in_hint: tuple[Mark, ...] = ()
    signed_out: tuple[Mark, ...] = ()
    signed_out_hint: tuple[Mark, ...] = ()
    shown_model: tuple[Mark, ...] = ()
    file_input: tuple[Mark, ...] = ()
    file_opener: tuple[Mark, ...] = ()
    file_entry: tuple[Mark, ...] = ()
    file_chip: tuple[Mark, ...] = ()
    file_busy: tuple[Mark, ...] = ()
    file_error: tuple[Mark, ...] = ()
    file_remove: tuple[Mark, ...] = ()
    prompt_attribute: str = ""
    prompt_prefix: str = ""

    def barriers(self) -> Mapping[str, tuple[Mark, ...]]:
        """What may stand in the way, by kind."""
        return {"sign_in": self.sign_in, "challenge": self.challenge, "consent": self.consent, "limit": self.limit}

    @property
    def takes_files(self) -> bool:
        """Whether files can be put in, and be seen to be there."""
        return bool((self.file_input or self.file_opener) and self.file_chip)

    def of_files(self) -> Mapping[str, tuple[Mark, ...]]:
        """What has to do with files."""
        return {
            "file_input": self.file_input,
            "file_opener": self.file_opener,
            "file_entry": self.file_entry,
            "file_chip": self.file_chip,
            "file_busy": self.file_busy,
            "file_error": self.file_error,
            "file_remove": self.file_remove,
        }

    def signs(self) -> Mapping[str, tuple[Mark, ...]]:
        """What is told and decides nothing: who is signed in, and the model chosen."""
        return {
            "signed_in": self.signed_in,
            "signed_in_hint": self.signed_in_hint,
            "signed_out": self.signed_out,
            "signed_out_hint": self.signed_out_hint,
            "shown_model": self.shown_model,
        }


def marks_in(table: Fields) -> PageMarks:
    """The marks of the table of a page."""
    marks = PageMarks(
        composer=_marked(table, "composer", needed=True),
        send=_marked(table, "send", needed=True),
        stop=_marked(table, "stop", needed=True),
        user_turn=table.selector("user_turn"),
        assistant_turn=table.selector_or_selectors("assistant_turn"),
        turn_key=table.attributes("turn_key"),
        prompt_text=table.selector("prompt_text"),
        answer_text=table.selector_or_selectors("answer_text"),
        done_mark=table.selectors("done_mark", may_be_empty=True),
        failure=table.selectors("failure", may_be_empty=True),
        copy=table.selectors("copy", ()),
        hint_mark=table.selectors("hint_mark", ()),
        answer_files=table.selectors("answer_files", ()),
        root=table.selector("root", ""),
        ready=table.selector("ready", ""),
        not_ready=_marked(table, "not_ready"),
        composer_root=table.selector("composer_root", ""),
        not_send=_marked(table, "not_send"),
        busy=_marked(table, "busy"),
        sign_in=_marked(table, "sign_in"),
        challenge=_marked(table, "challenge"),
        consent=_marked(table, "consent"),
        limit=_marked(table, "limit"),
        signed_in=_marked(table, "signed_in"),
        signed_in_hint=_marked(table, "signed_in_hint"),
        signed_out=_marked(table, "signed_out"),
        signed_out_hint=_marked(table, "signed_out_hint"),
        shown_model=_marked(table, "shown_model"),
        file_input=_marked(table, "file_input"),
        file_opener=_marked(table, "file_opener"),
        file_entry=_marked(table, "file_entry"),
        file_chip=_marked(table, "file_chip"),
        file_busy=_marked(table, "file_busy"),
        file_error=_marked(table, "file_error"),
        file_remove=_marked(table, "file_remove"),
        prompt_attribute=table.attribute_or_nothing("prompt_attribute"),
        prompt_prefix=table.text("prompt_prefix", ""),
    )
    if (marks.file_input or marks.file_opener) and not marks.file_chip:
        table.wrong("file_chip", "is missing: with file_input or file_opener it must have one mark at least")
    return marks


def _marked(table: Fields, name: str, *, needed: bool = False) -> tuple[Mark, ...]:
    return tuple(Mark(*mark) for mark in table.marks(name, needed=needed))

"""Before and after the press: may this prompt be typed, does the composer hold it, was it committed?

Pure functions of samples. `None` means yes; a `Refused` says why not; "wait" means look again.
"""

from __future__ import annotations

from typing import Literal

from tabmuxd.resources.errors import Reason, Refused, refuse
from tabmuxd.resources.session import Session
from tabmuxd.webai import whereabouts
from tabmuxd.webai.providers.descriptor import Descriptor
from tabmuxd.webai.samples import Sample, normalised

Wait = Literal["wait"]


def where(descriptor: Descriptor, sample: Sample, session: Session, tab: str, *, submitted: bool) -> Refused | None:
    """Whether the page shows the session's conversation, as `whereabouts.is_home` says; else what it shows."""
    if not descriptor.is_at(sample.uri):
        return whereabouts.not_shown(descriptor, tab)
    if whereabouts.is_home(descriptor, session, sample.uri, submitted=submitted):
        return None
    return whereabouts.another(descriptor, session.name, tab)


def may_type(descriptor: Descriptor, sample: Sample, tab: str) -> Refused | Wait | None:
    """Whether the composer takes a prompt now; the answer after the wait is over is the refusal."""
    if sample.ready and sample.composer == "usable" and not sample.stop:
        return None
    return "wait" if sample.composer != "usable" or not sample.ready else _composer(descriptor, tab, "busy")


def unusable(descriptor: Descriptor, sample: Sample | None, tab: str) -> Refused:
    """Why the composer could not be used when the wait for it was over."""
    state: str = "absent" if sample is None else sample.composer
    if state == "usable":
        state = "busy" if sample and sample.stop else "absent"
    return _composer(descriptor, tab, state)


def occupied(descriptor: Descriptor, tab: str) -> Refused:
    """The composer holds text that the service did not put there."""
    return _composer(descriptor, tab, "occupied")


def is_own_leftover(sample: Sample, prompt: str) -> bool:
    """Whether what the composer holds is this prompt, or the beginning of it: left by a run that was cut off."""
    held = normalised(sample.composer_text)
    return bool(held) and normalised(prompt).startswith(held)


def holds(sample: Sample, prompt: str) -> bool:
    """Whether the composer holds the whole prompt and nothing else.

    A text area is compared exactly, but for line ends; a rich editor by its words, since it may show white space anew.
    """
    if sample.composer_exact:
        return sample.composer_text == prompt.replace("\r\n", "\n").replace("\r", "\n")
    return normalised(sample.composer_text) == normalised(prompt)


def utf16_length(text: str) -> int:
    """Length as JavaScript counts it."""
    return len(text.encode("utf-16-le")) // 2


def not_pressed(descriptor: Descriptor, tab: str, why: str) -> Refused:
    """The last look before the press found something else: nothing was pressed."""
    match why:
        case "absent" | "changed":
            return _composer(descriptor, tab, "absent" if why == "absent" else "occupied")
        case "busy":
            return _composer(descriptor, tab, "busy")
        case _:
            return refuse(
                Reason.PROVIDER_PAGE_CHANGED,
                f"{tab} shows no send control that can be pressed ({why}); nothing was submitted.",
                provider=descriptor.id,
                tab=tab,
                expected="send",
                descriptor_version=descriptor.version,
            )


def _composer(descriptor: Descriptor, tab: str, cause: str) -> Refused:
    return refuse(
        Reason.PROVIDER_COMPOSER_UNUSABLE,
        f"The box for prompts in {tab} cannot be used ({cause}); nothing was submitted.",
        provider=descriptor.id,
        tab=tab,
        cause=cause,
    )

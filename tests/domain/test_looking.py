from __future__ import annotations

import re
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabmuxd.resources.provider_status import (
    ComposerState,
    Interstitial,
    ProviderLimit,
    ProviderStatus,
    SelectorFinding,
    SignIn,
)
from tabmuxd.webai import looking
from tabmuxd.webai.looking import Seen, Serving
from tabmuxd.webai.providers.descriptor import Descriptor, PersonBarrier
from tabmuxd.webai.providers.marks import Mark

from tests.domain.values import NOW, playground, ready_tab

URI = "http://textarea.localhost:8000/"
NOBODY = Serving()
_SIGNED = (Mark("img"),)


def _descriptor() -> Descriptor:
    marks = replace(playground().marks, signed_in=_SIGNED)
    limit_reset = (re.compile(r"in (?P<hours>\d+) hours"),)
    hosts: dict[str, PersonBarrier] = {"login.example": "sign_in", "check.example": "challenge"}
    return replace(playground(), marks=marks, limit_reset=limit_reset, barrier_hosts=hosts)


def _status(serving: Serving = NOBODY, **seen: Any) -> ProviderStatus:  # noqa: ANN401 - fields of Seen
    return looking.status_of(_descriptor(), Seen(URI, **seen), ready_tab(), serving, NOW)


def _codes(status: ProviderStatus) -> list[str]:
    return [warning.code for warning in status.warnings]


def test_whole() -> None:
    """The status of a page that is ready says all that is known, of the tab that was looked at."""
    conversation = f"{URI}c/0123456789ab"
    seen = Seen(f"{conversation}?q=1#end", signed_in=True, model="  Model\n 5 ")
    assert looking.status_of(_descriptor(), seen, ready_tab(), NOBODY, NOW) == ProviderStatus(
        provider="playground-textarea",
        tab=ready_tab().name,
        generation=3,
        descriptor_version="1",
        check_time=NOW,
        ready=True,
        sign_in=SignIn.SIGNED_IN,
        composer=ComposerState.USABLE,
        interstitial=Interstitial.NONE,
        shown_model="Model 5",
        conversation_uri=conversation,
    )


_OWN = Serving("playground-textarea", "What is a tab?")


@pytest.mark.parametrize(
    ("seen", "serving", "composer", "ready"),
    [
        ({}, NOBODY, ComposerState.USABLE, True),
        ({"ready": False}, NOBODY, ComposerState.USABLE, False),
        ({"composer_text": " \n"}, NOBODY, ComposerState.USABLE, True),
        ({"composer_text": "Dear diary"}, NOBODY, ComposerState.OCCUPIED, False),
        ({"composer_text": "Dear diary"}, _OWN, ComposerState.OCCUPIED, False),
        ({"composer_text": "What is a"}, _OWN, ComposerState.BUSY, False),
        ({}, _OWN, ComposerState.USABLE, False),
        ({"stop": True}, NOBODY, ComposerState.BUSY, False),
        ({"stop": True, "composer": "absent"}, NOBODY, ComposerState.BUSY, False),
        ({"composer": "blocked"}, NOBODY, ComposerState.BLOCKED, False),
        ({"composer": "absent", "switched_off": True}, NOBODY, ComposerState.BLOCKED, False),
        ({"composer": "absent"}, NOBODY, ComposerState.ABSENT, False),
        ({"barrier": "sign_in"}, NOBODY, ComposerState.USABLE, True),
        ({"barrier": "limit"}, NOBODY, ComposerState.USABLE, True),
    ],
)
def test_composer(seen: dict[str, Any], serving: Serving, composer: ComposerState, ready: bool) -> None:  # noqa: FBT001 - a table
    """A prompt can be sent where the composer is free, whatever link or limit stands beside it, and no turn is open."""
    status = _status(serving, **seen)
    assert (status.composer, status.ready) == (composer, ready)


@pytest.mark.parametrize(
    ("seen", "interstitial"),
    [
        ({}, Interstitial.NONE),
        ({"barrier": "challenge"}, Interstitial.NONE),
        ({"composer": "absent", "barrier": "challenge"}, Interstitial.CHALLENGE),
        ({"composer": "absent", "barrier": "challenge", "ready": False}, Interstitial.CHALLENGE),
        ({"composer": "blocked", "barrier": "sign_in"}, Interstitial.SIGN_IN),
        ({"composer": "blocked", "barrier": "consent"}, Interstitial.CONSENT),
        ({"composer": "blocked"}, Interstitial.OVERLAY),
        ({"composer": "blocked", "barrier": "limit"}, Interstitial.OVERLAY),
        ({"ready": False}, Interstitial.LOADING),
        ({"composer": "absent", "ready": False}, Interstitial.LOADING),
        ({"composer": "absent", "text_count": 499}, Interstitial.EMPTY_SHELL),
        ({"composer": "absent", "text_count": 500}, Interstitial.UNSPECIFIED),
        ({"composer": "absent", "turn_count": 2}, Interstitial.UNSPECIFIED),
        ({"composer": "absent", "turn_count": 2, "stop": True}, Interstitial.NONE),
        ({"composer": "absent", "switched_off": True}, Interstitial.NONE),
    ],
)
def test_interstitial(seen: dict[str, Any], interstitial: Interstitial) -> None:
    """What stands in for the page is told; a composer that can be used overrules what asks for a person (FIN-08)."""
    assert _status(**seen).interstitial == interstitial


@pytest.mark.parametrize(
    ("seen", "sign_in", "codes"),
    [
        ({}, SignIn.UNSPECIFIED, []),
        ({"signed_in": True}, SignIn.SIGNED_IN, []),
        ({"signed_in": True, "signed_out_hint": True}, SignIn.SIGNED_IN, []),
        ({"signed_in": True, "signed_out": True}, SignIn.UNSPECIFIED, ["sign-in-unclear"]),
        ({"signed_in_hint": True}, SignIn.UNSPECIFIED, ["signed-in-suspected"]),
        ({"signed_out_hint": True}, SignIn.UNSPECIFIED, ["signed-out-suspected"]),
        ({"signed_in_hint": True, "signed_out": True}, SignIn.ANONYMOUS, []),
        ({"signed_in_hint": True, "signed_out_hint": True}, SignIn.UNSPECIFIED, ["sign-in-unclear"]),
        ({"signed_out": True}, SignIn.ANONYMOUS, []),
        ({"signed_out": True, "composer": "blocked"}, SignIn.UNSPECIFIED, ["signed-out-suspected"]),
        ({"signed_out": True, "composer": "absent"}, SignIn.REQUIRED, []),
        ({"signed_out": True, "composer": "absent", "text_count": 9999}, SignIn.REQUIRED, []),
        ({"signed_out": True, "composer": "absent", "ready": False}, SignIn.UNSPECIFIED, ["signed-out-suspected"]),
        ({"barrier": "sign_in"}, SignIn.UNSPECIFIED, []),
        ({"barrier": "sign_in", "composer": "blocked"}, SignIn.REQUIRED, []),
        ({"barrier": "sign_in", "composer": "absent", "signed_out_hint": True}, SignIn.REQUIRED, []),
    ],
)
def test_sign_in(seen: dict[str, Any], sign_in: SignIn, codes: list[str]) -> None:
    """Who is signed in is told by confirmed marks alone; others are a suspicion (SUB-12)."""
    status = _status(**seen)
    assert (status.sign_in, _codes(status)) == (sign_in, codes)


def test_unmarked() -> None:
    """A descriptor without marks of a sign-in is told apart from a page that does not show them."""
    status = looking.status_of(playground(), Seen(URI), ready_tab(), NOBODY, NOW)
    assert (status.sign_in, _codes(status)) == (SignIn.UNSPECIFIED, ["sign-in-unmarked"])


@pytest.mark.parametrize(
    ("seen", "serving", "codes"),
    [
        ({"composer": "absent", "turn_count": 1}, NOBODY, ["page-changed"]),
        ({"failure": True}, NOBODY, ["error-shown"]),
        ({}, _OWN, ["turn-open"]),
        ({}, Serving("playground-textarea"), []),
    ],
)
def test_warnings(seen: dict[str, Any], serving: Serving, codes: list[str]) -> None:
    """What was noticed besides has stable codes."""
    assert _codes(_status(serving, **seen)) == codes


def test_limit() -> None:
    """A limit is told with the page's words, cut to 1 KiB, and its end where the page tells that (SUB-12, SUB-21)."""
    text = "Limit ends in 2 hours. " + "é" * 2000
    assert _status(barrier="limit", barrier_text=text).limit == ProviderLimit(
        text.encode()[:1024].decode("utf-8", "ignore"), NOW + timedelta(hours=2)
    )
    assert _status(barrier="limit", barrier_text="Limit").limit == ProviderLimit("Limit")
    assert _status(barrier="challenge", barrier_text="in 2 hours", composer="absent").limit is None


def test_barred() -> None:
    """At a host that is not read only what it is for is told (SUB-12)."""
    wanted = ProviderStatus("playground-textarea", ready_tab().name, 3, "1", NOW)
    assert looking.barred_status(_descriptor(), "sign_in", ready_tab(), NOW) == replace(
        wanted, sign_in=SignIn.REQUIRED, interstitial=Interstitial.SIGN_IN
    )
    assert looking.barred_status(_descriptor(), "challenge", ready_tab(), NOW) == replace(
        wanted, interstitial=Interstitial.CHALLENGE
    )


def test_unseen() -> None:
    """A page that was replaced at each look is loading; one on which the rules fail is told to be unreadable."""
    replaced = looking.unseen_status(_descriptor(), "replaced", ready_tab(), NOW)
    unreadable = looking.unseen_status(_descriptor(), "unreadable", ready_tab(), NOW)
    assert (replaced.interstitial, _codes(replaced)) == (Interstitial.LOADING, [])
    assert (unreadable.interstitial, _codes(unreadable)) == (Interstitial.UNSPECIFIED, ["page-unreadable"])


def _at(name: str, start: str = "/", hosts: tuple[str, ...] = ("one.example",)) -> Descriptor:
    return replace(playground(), id=name, hosts=hosts, start_uri=f"https://{hosts[0]}{start}")


@pytest.mark.parametrize(
    ("uri", "serving", "found"),
    [
        ("https://one.example/", NOBODY, ("a", None)),
        ("https://one.example/x/y", NOBODY, ("x", None)),
        ("https://one.example/x/", Serving("a"), ("a", None)),
        ("https://one.example/x/", Serving("other"), ("x", None)),
        ("https://two.example/", NOBODY, ("other", None)),
        ("https://two.example/", Serving("a"), ("other", None)),
        ("https://two.example/", Serving("b"), ("b", "challenge")),
        ("https://shared.example/", NOBODY, None),
        ("https://shared.example/", Serving("b"), ("b", "challenge")),
        ("https://shared.example/", Serving("x"), None),
        ("https://own.example/", NOBODY, ("a", "consent")),
        ("https://own.example/", Serving("b"), ("a", "consent")),
        ("https://one.example:444/", NOBODY, None),
        ("https://one.example.evil.example/", NOBODY, None),
        ("about:blank", NOBODY, None),
        ("chrome-error://chromewebdata/", NOBODY, None),
        ("https://[::1/", NOBODY, None),
        ("", NOBODY, None),
    ],
)
def test_whose(uri: str, serving: Serving, found: tuple[str, PersonBarrier | None] | None) -> None:
    """A page is that of its host's provider, or of whoever sends its users there; of several, the session's."""
    providers = [
        _at("x", "/x/"),
        replace(_at("b"), barrier_hosts={"shared.example": "challenge", "two.example": "challenge"}),
        replace(_at("a"), barrier_hosts={"shared.example": "sign_in", "own.example": "consent"}),
        _at("other", hosts=("two.example",)),
    ]
    place = looking.whose(providers, uri, serving)
    assert (place and (place[0].id, place[1])) == found


_SEEN: dict[str, object] = {
    **{field.name: getattr(Seen(URI), field.name) for field in fields(Seen)},
    "barrier": "limit",
    "barrier_text": "half \ud800",
}


def test_seen() -> None:
    """What the page's script gives is taken as it is, but for halves of characters."""
    assert looking.seen_of(_SEEN) == Seen(URI, barrier="limit", barrier_text="half ?")


@given(
    st.dictionaries(
        st.sampled_from(sorted(_SEEN)), st.none() | st.text() | st.integers() | st.floats() | st.lists(st.none())
    )
)
def test_any_seen(values: dict[str, object]) -> None:
    """Whatever a page gives in place of that is something that was seen, or unreadable, and no error."""
    found = looking.seen_of({**_SEEN, **values})
    if found != "unreadable":
        assert isinstance(found, Seen)
        looking.status_of(_descriptor(), found, ready_tab(), NOBODY, NOW)


_FOUND: dict[str, object] = {
    "field": "send", "selector": "a" * 9, "text": "", "matches": 3, "visible": 2, "taken": 1, "element": "é" * 256,
    "problem": "", "name": "Send",
}  # fmt: skip


def test_findings() -> None:
    """Findings name their field in the descriptor, and what the page wrote is cut; other shapes are unreadable."""
    finding = SelectorFinding("page.send", "a" * 9, "", 3, 2, 1, "é" * 128, name="Send")
    assert looking.findings_of({"findings": [_FOUND]}) == (finding,)
    assert looking.findings_of({"findings": [{}]}) == "unreadable"
    assert looking.findings_of({"findings": 3}) == "unreadable"
    assert looking.findings_of({}) == "unreadable"

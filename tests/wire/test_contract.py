"""Resources and the contract say the same."""

from __future__ import annotations

import re
from enum import IntEnum
from pathlib import Path

import pytest
from google.protobuf.descriptor import EnumDescriptor
from tabmux.v1 import (
    browser_pb2,
    error_reason_pb2,
    event_pb2,
    provider_pb2,
    session_pb2,
    tab_pb2,
    tab_service_pb2,
    web_ai_service_pb2,
)
from tabmuxd.resources import browser, event, imports, provider, provider_status, session, tab
from tabmuxd.resources.errors import Reason, code_of

PROTO = Path(__file__).parents[2] / "proto/tabmux/v1"

ENUMS: list[tuple[type[IntEnum], EnumDescriptor]] = [
    (browser.BrowserState, browser_pb2.Browser.State.DESCRIPTOR),
    (browser.Ownership, browser_pb2.Browser.Ownership.DESCRIPTOR),
    (event.EventKind, event_pb2.EventKind.DESCRIPTOR),
    (event.ChangeCause, event_pb2.ChangeCause.DESCRIPTOR),
    (provider_status.SignIn, provider_pb2.ProviderStatus.SignIn.DESCRIPTOR),
    (provider_status.ComposerState, provider_pb2.ProviderStatus.Composer.DESCRIPTOR),
    (provider_status.Interstitial, provider_pb2.ProviderStatus.Interstitial.DESCRIPTOR),
    (session.SessionState, session_pb2.Session.State.DESCRIPTOR),
    (session.RetireCause, session_pb2.Session.RetireCause.DESCRIPTOR),
    (session.Return, web_ai_service_pb2.RecoverSessionResponse.Strategy.DESCRIPTOR),
    (session.TurnState, session_pb2.Turn.State.DESCRIPTOR),
    (session.TabDisposition, web_ai_service_pb2.RetireSessionRequest.TabDisposition.DESCRIPTOR),
    (provider.ProviderCapability, provider_pb2.ProviderCapability.DESCRIPTOR),
    (imports.ImportSource, web_ai_service_pb2.ImportInfo.Source.DESCRIPTOR),
    (imports.SkipCause, web_ai_service_pb2.SkippedRecord.Cause.DESCRIPTOR),
    (tab.TabState, tab_pb2.Tab.State.DESCRIPTOR),
    (tab.TabOrigin, tab_pb2.Tab.Origin.DESCRIPTOR),
    (tab.CloseCause, tab_pb2.Tab.CloseCause.DESCRIPTOR),
    (tab.DialogPolicy, tab_pb2.Tab.DialogPolicy.DESCRIPTOR),
    (tab.DialogKind, tab_pb2.Dialog.Kind.DESCRIPTOR),
    (tab.HealthStatus, tab_pb2.TabHealth.Status.DESCRIPTOR),
    (tab.SkipReason, tab_service_pb2.CloseTabsOutcome.SkipReason.DESCRIPTOR),
    (tab.Strategy, tab_service_pb2.RecoverTabResponse.Strategy.DESCRIPTOR),
    (tab.LoadMilestone, tab_service_pb2.LoadMilestone.DESCRIPTOR),
    (tab.NavigationOutcome, tab_service_pb2.Navigation.Outcome.DESCRIPTOR),
]


def _values(ours: type[IntEnum], theirs: EnumDescriptor) -> tuple[dict[str, int], dict[str, int]]:
    prefix = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", theirs.name).upper() + "_"
    named = {value.name.removeprefix(prefix): value.number for value in theirs.values if value.number}
    return {member.name: member.value for member in ours if member.value}, named


@pytest.mark.parametrize(("ours", "theirs"), ENUMS, ids=lambda value: getattr(value, "full_name", None))
def test_enum(ours: type[IntEnum], theirs: EnumDescriptor) -> None:
    """An enum of the resources has the names and numbers of the contract."""
    known, named = _values(ours, theirs)
    assert known == named


def test_every_enum_is_compared() -> None:
    """No enum of the resources is left out of the comparison above, but one that is not shown."""
    modules = (browser, event, imports, provider, provider_status, session, tab)
    defined = {
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, IntEnum) and value is not IntEnum
    }
    assert defined - {session.TabSource} == {ours for ours, _ in ENUMS}


def test_reasons() -> None:
    """Every reason has the number's name and the gRPC code that its comment in the contract tells."""
    comment: list[str] = []
    documented: dict[str, str] = {}
    for line in (PROTO / "error_reason.proto").read_text("utf-8").splitlines():
        if value := re.fullmatch(r"  ERROR_REASON_(\w+) = (\d+);", line):
            code = re.search(r"Code: ([A-Z_]+)\.", "\n".join(comment))
            documented[value[1]] = code[1] if code else ""
            comment = []
        else:
            comment.append(line)
    named = {name.removeprefix("ERROR_REASON_") for name in error_reason_pb2.ErrorReason.keys()}  # noqa: SIM118
    assert named == set(documented)
    assert {reason.value: code_of(reason).value for reason in Reason} == {
        name: code for name, code in documented.items() if name != "UNSPECIFIED"
    }

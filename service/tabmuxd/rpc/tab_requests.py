"""Requests of `TabService` as orders, checked for form; what is not built is refused by name, after the form."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from hashlib import sha256
from typing import Final

from google.protobuf.message import Message
from tabmux.v1 import tab_service_pb2 as pb

from tabmuxd.resources.errors import NotBuilt, invalid_field
from tabmuxd.resources.names import is_principal
from tabmuxd.resources.orders import AdoptOrder, NavigationOrder, ScriptOrder, TabFilter, TabOrder, TabsOrder, TabUpdate
from tabmuxd.resources.tab import DialogPolicy, LoadMilestone, TabOrigin, TabState
from tabmuxd.rpc import fields
from tabmuxd.rpc.deadlines import time_left
from tabmuxd.rpc.lease_requests import lease_terms

MAX_SHARED: Final = 16
MAX_TARGET_CHARACTERS: Final = 64
MAX_SCRIPT_BYTES: Final = 256 * 1024
_DEFAULT_MILESTONE_TIMEOUT: Final = timedelta(seconds=30)
_LEAST_MILESTONE_TIMEOUT: Final = timedelta(milliseconds=100)
_MOST_MILESTONE_TIMEOUT: Final = timedelta(minutes=2)
_DEFAULT_RESULT_TIMEOUT: Final = timedelta(seconds=10)
_LEAST_RESULT_TIMEOUT: Final = timedelta(milliseconds=100)
_MOST_RESULT_TIMEOUT: Final = timedelta(minutes=1)
_ROOM_MARGIN: Final = 0.5
_DEFAULT_PROBE_TIMEOUT: Final = timedelta(seconds=2)
_LEAST_PROBE_TIMEOUT: Final = timedelta(milliseconds=100)
_MOST_PROBE_TIMEOUT: Final = timedelta(seconds=10)


def tab_order(request: pb.CreateTabRequest) -> TabOrder:
    """`CreateTab`."""
    order = TabOrder(
        browser=fields.first_browser("parent", request.parent),
        uri=fields.uri("uri", request.uri),
        group=fields.group("group", request.group),
        labels=fields.new_labels("labels", request.labels),
        pinned=request.pinned,
        activate=request.activate,
        until=fields.choice("until", request.until, LoadMilestone, LoadMilestone.LOADED),
        dialog_policy=fields.choice("dialog_policy", request.dialog_policy, DialogPolicy, DialogPolicy.REPORT),
        milestone_timeout=_milestone_timeout(request),
        from_pool=request.from_pool,
        room_timeout=_room_timeout(time_left()) if request.wait_for_room else timedelta(0),
        lease_terms=lease_terms("lease_terms", request.lease_terms) if request.HasField("lease_terms") else None,
        request_id=fields.uuid("request_id", request.request_id),
        payload_sha256=payload_sha256(request),
    )
    if request.from_pool and not request.group:
        raise invalid_field("group", "must be set with from_pool")
    return order


def adopt_order(request: pb.AdoptTabRequest) -> AdoptOrder:
    """`AdoptTab`; either a target or the front must be named."""
    if request.target_id and request.front:
        raise invalid_field("front", "must not be set with target_id")
    if not request.target_id and not request.front:
        raise invalid_field("target_id", "must be set, unless front is")
    if len(request.target_id) > MAX_TARGET_CHARACTERS:
        raise invalid_field(
            "target_id", f"must have at most {MAX_TARGET_CHARACTERS} characters", limit=MAX_TARGET_CHARACTERS
        )
    return AdoptOrder(
        browser=fields.first_browser("parent", request.parent),
        target_id=request.target_id,
        front=request.front,
        group=fields.group("group", request.group),
        labels=fields.new_labels("labels", request.labels),
    )


def tab_update(request: pb.UpdateTabRequest) -> TabUpdate:
    """`UpdateTab`; something must be set, and nobody can be shared with and not."""
    update = TabUpdate(
        name=fields.tab_name("name", request.name),
        expected_revision=fields.natural("expected_revision", request.expected_revision),
        group=fields.group("group", request.group) if request.HasField("group") else None,
        pinned=request.pinned if request.HasField("pinned") else None,
        dialog_policy=(
            fields.member("dialog_policy", request.dialog_policy, DialogPolicy) if request.dialog_policy else None
        ),
        labels=fields.label_changes("labels", request.labels),
        share_with=_principals("share_with", request.share_with),
        unshare_with=_principals("unshare_with", request.unshare_with),
    )
    if both := sorted(set(update.share_with) & set(update.unshare_with)):
        raise invalid_field("unshare_with", f"names {both[0]}, as share_with does")
    if update == TabUpdate(name=update.name, expected_revision=update.expected_revision):
        raise invalid_field(
            "update", "set at least one of group, pinned, dialog_policy, labels, share_with and unshare_with"
        )
    return update


def navigation_order(request: pb.NavigateTabRequest) -> NavigationOrder:
    """`NavigateTab`; the address must be set."""
    if not request.uri:
        raise invalid_field("uri", "must be set")
    order = NavigationOrder(
        name=fields.tab_name("name", request.name),
        uri=fields.uri("uri", request.uri),
        lease=fields.lease_name("lease", request.lease),
        expected_generation=fields.natural("expected_generation", request.expected_generation),
        until=fields.choice("until", request.until, LoadMilestone, LoadMilestone.LOADED),
        milestone_timeout=_milestone_timeout(request),
    )
    if fields.uuid("request_id", request.request_id):
        raise NotBuilt("NavigateTabRequest.request_id")
    return order


def script_order(request: pb.EvaluateScriptRequest) -> ScriptOrder:
    """`EvaluateScript`; the script must be set."""
    if not request.script:
        raise invalid_field("script", "must be set")
    if (size := len(request.script.encode())) > MAX_SCRIPT_BYTES:
        raise invalid_field("script", f"has {size} bytes; at most {MAX_SCRIPT_BYTES}", limit=MAX_SCRIPT_BYTES)
    order = ScriptOrder(
        name=fields.tab_name("name", request.name),
        script=request.script,
        lease=fields.lease_name("lease", request.lease),
        expected_generation=fields.natural("expected_generation", request.expected_generation),
        await_promise=request.await_promise,
        result_timeout=(
            fields.clamped(
                "result_timeout", request.result_timeout, least=_LEAST_RESULT_TIMEOUT, most=_MOST_RESULT_TIMEOUT
            )
            if request.HasField("result_timeout")
            else _DEFAULT_RESULT_TIMEOUT
        ),
    )
    if fields.uuid("request_id", request.request_id):
        raise NotBuilt("EvaluateScriptRequest.request_id")
    return order


def tab_filter(request: pb.ListTabsRequest) -> TabFilter:
    """`ListTabs`."""
    return TabFilter(
        browser=fields.any_browser("parent", request.parent),
        states=fields.members("states", request.states, TabState),
        origins=fields.members("origins", request.origins, TabOrigin),
        groups=frozenset(fields.group(f"groups[{index}]", group) for index, group in enumerate(request.groups)),
        labels=fields.new_labels("labels", request.labels),
    )


def closed_tab(request: pb.CloseTabRequest) -> str:
    """Name of the tab that `CloseTab` names."""
    name = fields.tab_name("name", request.name)
    fields.lease_name("lease", request.lease)
    return name


def closed_tabs(request: pb.CloseTabsRequest) -> TabsOrder:
    """`CloseTabs`; a criterion must be set."""
    order = TabsOrder(
        browser=fields.any_browser("parent", request.parent),
        group=fields.group("group", request.group),
        idle_duration=(
            fields.clamped("idle_duration", request.idle_duration, most=timedelta.max)
            if request.HasField("idle_duration")
            else None
        ),
        keep_front=request.keep_front,
        any_owner=request.any_owner,
        dry_run=request.dry_run,
    )
    if not (order.group or order.idle_duration is not None or request.all):
        raise invalid_field("all", "set at least one of group, idle_duration and all")
    return order


def activated_tab(request: pb.ActivateTabRequest) -> str:
    """Name of the tab that `ActivateTab` names."""
    name = fields.tab_name("name", request.name)
    fields.lease_name("lease", request.lease)
    return name


def recovered_tab(request: pb.RecoverTabRequest) -> str:
    """Name of the tab that `RecoverTab` names."""
    name = fields.tab_name("name", request.name)
    fields.lease_name("lease", request.lease)
    return name


def looked_at(request: pb.CheckTabHealthRequest) -> tuple[str, timedelta]:
    """Name of the tab that `CheckTabHealth` names, and how long its page may take to answer."""
    name = fields.tab_name("name", request.name)
    if not request.HasField("probe_timeout"):
        return name, _DEFAULT_PROBE_TIMEOUT
    timeout = fields.clamped(
        "probe_timeout", request.probe_timeout, least=_LEAST_PROBE_TIMEOUT, most=_MOST_PROBE_TIMEOUT
    )
    return name, timeout


def payload_sha256(request: Message, *, without: str = "request_id") -> str:
    """SHA-256 of a request without its `request_id`, and perhaps another field; lower-case hex."""
    payload = type(request)()
    payload.CopyFrom(request)
    payload.ClearField("request_id")
    payload.ClearField(without)
    return sha256(payload.SerializeToString(deterministic=True)).hexdigest()


def _room_timeout(time_left: float | None) -> timedelta | None:
    """Until shortly before the caller's deadline, so that the refusal arrives; for ever where there is none."""
    return None if time_left is None else timedelta(seconds=max(0.0, time_left - _ROOM_MARGIN))


def _milestone_timeout(request: pb.CreateTabRequest | pb.NavigateTabRequest) -> timedelta:
    if not request.HasField("milestone_timeout"):
        return _DEFAULT_MILESTONE_TIMEOUT
    return fields.clamped(
        "milestone_timeout",
        request.milestone_timeout,
        least=_LEAST_MILESTONE_TIMEOUT,
        most=_MOST_MILESTONE_TIMEOUT,
    )


def _principals(field: str, names: Sequence[str]) -> tuple[str, ...]:
    for index, name in enumerate(names):
        if not is_principal(name):
            raise invalid_field(f"{field}[{index}]", "must be the name of a principal, such as local/night-report")
    return fields.few(field, dict.fromkeys(names), MAX_SHARED)

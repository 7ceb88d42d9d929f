"""Resources as messages of the contract, and back; no I/O."""

from tabmuxd.wire.imports import import_message
from tabmuxd.wire.provider_status import provider_probe_message, provider_status_message
from tabmuxd.wire.redaction import redact_uri, shown_failure
from tabmuxd.wire.resources import (
    artifact_message,
    browser_message,
    closed_tab_message,
    event_message,
    failure_message,
    foreign_tab_message,
    lease_message,
    navigation_message,
    progress_message,
    provider_message,
    session_message,
    tab_message,
    turn_message,
    warning_message,
)
from tabmuxd.wire.times import duration, span_of, time_of, timestamp

__all__ = [
    "artifact_message",
    "browser_message",
    "closed_tab_message",
    "duration",
    "event_message",
    "failure_message",
    "foreign_tab_message",
    "import_message",
    "lease_message",
    "navigation_message",
    "progress_message",
    "provider_message",
    "provider_probe_message",
    "provider_status_message",
    "redact_uri",
    "session_message",
    "shown_failure",
    "span_of",
    "tab_message",
    "time_of",
    "timestamp",
    "turn_message",
    "warning_message",
]

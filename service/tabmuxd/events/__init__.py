"""The log of everything that changed, and the watches over it."""

from tabmuxd.events.changes import Changes
from tabmuxd.events.filters import WatchFilter, session_filter, tab_filter
from tabmuxd.events.log import Log, LogStatistics
from tabmuxd.events.shared import ReplyLimits
from tabmuxd.events.timer import LoopTimer, Timer
from tabmuxd.events.watch import Start, WatchStart, watch

__all__ = [
    "Changes",
    "Log",
    "LogStatistics",
    "LoopTimer",
    "ReplyLimits",
    "Start",
    "Timer",
    "WatchFilter",
    "WatchStart",
    "session_filter",
    "tab_filter",
    "watch",
]

"""Logging: one line an event on standard error; never a prompt, an answer, a cookie or a token."""

from __future__ import annotations

import logging
import sys

import structlog


def configure(level: str) -> None:
    """Log what is at least at `level`: for people on a terminal, else one JSON object a line."""
    number = logging.getLevelNamesMapping()[level.upper()]
    terminal = sys.stderr.isatty()
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer() if terminal else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.ExceptionRenderer(structlog.tracebacks.ExceptionDictTransformer(show_locals=False))
            if not terminal
            else structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )

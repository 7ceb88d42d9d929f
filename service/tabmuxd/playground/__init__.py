"""Local chat pages that behave like those of the large providers, for the demo and for tests."""

from tabmuxd.playground.answers import answer_to
from tabmuxd.playground.kinds import Kind
from tabmuxd.playground.server import Playground, serve

__all__ = ["Kind", "Playground", "answer_to", "serve"]

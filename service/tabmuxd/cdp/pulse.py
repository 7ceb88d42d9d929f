"""Whether the other end of a connection still lives, from the times at which it was heard and asked."""

from dataclasses import dataclass


@dataclass(slots=True)
class Pulse:
    """When to ask for a sign of life, and when its absence means silence; all times are monotonic seconds.

    Whatever is heard counts as a sign of life, so a peer that talks is never pinged. `heard_at` may be written by
    another thread than the one that asks.
    """

    interval: float
    timeout: float
    heard_at: float
    asked_at: float = float("-inf")

    @property
    def asking(self) -> bool:
        """A question is open: nothing was heard since it was asked."""
        return self.asked_at > self.heard_at

    def ask(self, now: float) -> None:
        """Begin to wait for a sign of life, unless that was begun already."""
        if not self.asking:
            self.asked_at = now

    def overslept(self, now: float) -> None:
        """Wait anew: this process stood still, and what arrived meanwhile has not been read yet."""
        if self.asking:
            self.asked_at = now

    def ping_due(self, now: float) -> bool:
        """Nothing was heard for an interval, and no question is open."""
        return not self.asking and now - self.heard_at >= self.interval

    def silent(self, now: float) -> bool:
        """The open question has had no answer within the timeout."""
        return self.asking and now - self.asked_at >= self.timeout

    def next_look(self) -> float:
        """Time at which `ping_due` or `silent` may become true."""
        return self.asked_at + self.timeout if self.asking else self.heard_at + self.interval

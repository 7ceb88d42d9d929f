"""A server that tests kill, over a browser that outlives it."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.e2e.crashing_server import crashing
from tests.e2e.serving import Server


class Mortal(Server):
    """A server to kill at a moment, as `crashing_server` names it, and to have again on the same browser."""

    @property
    def _moment(self) -> Path:
        return self.state_directory / "moment"

    @property
    def _lost(self) -> Path:
        return self.state_directory / "lost"

    async def revive(self, *, commit_wait: float = 0, slow_close: float = 0) -> None:
        """A server serves that nothing befalls; the times are those of `crashing`."""
        self._moment.unlink(missing_ok=True)
        self._lost.unlink(missing_ok=True)
        await self.run(*crashing(self._moment, commit_wait=commit_wait, slow_close=slow_close, lose=self._lost))

    def begin_mortal(self, moment: str) -> None:
        """Start one that is killed at this moment, without waiting for anything."""
        self.kill_at(moment)
        self.begin(*crashing(self._moment))

    def kill_at(self, moment: str) -> None:
        """From now on it is killed at this moment."""
        self._moment.write_text(moment)

    async def killed(self) -> None:
        """Return once that has happened."""
        assert await self.ended() == -signal.SIGKILL, self.log()
        self._moment.unlink()

    def lose_answer(self, word: str) -> None:
        """Once: end its connection to the browser right after a command with this word was carried out."""
        self._lost.write_text(word)

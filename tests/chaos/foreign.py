"""The person's own pages, which nobody may touch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tests.e2e.pages import Pages
from tests.e2e.person import Looks, Person

COUNT: Final = 3


@dataclass(frozen=True)
class Page:
    """One page as it was left: what it shows, and what it holds in memory, which a reload would lose."""

    target_id: str
    looks: Looks
    content: object


@dataclass(frozen=True)
class Foreign:
    """The pages in one process of the browser."""

    pages: tuple[Page, ...]

    @property
    def target_ids(self) -> frozenset[str]:
        """Which they are."""
        return frozenset(page.target_id for page in self.pages)

    async def look_again(self, person: Person) -> Foreign:
        """The same pages as they are now."""
        there = await person.pages()
        return Foreign(tuple([await _look(person, each.target_id) for each in self.pages if each.target_id in there]))


async def open_foreign(person: Person, pages: Pages) -> Foreign:
    """Open the pages; from now on `person.attached` tells whether anybody attached to one of them."""
    await person.watch_attaches()
    opened: list[Page] = []
    for number in range(COUNT):
        target_id = await person.open_loaded(pages.at(f"/page?title=foreign-{number}"))
        session = await person.attach(target_id)
        await person.evaluate(session, f"window.mark = 'mark {number} ' + Math.random()")
        await person.call("Target.detachFromTarget", sessionId=session)
        opened.append(await _look(person, target_id))
    person.attached.clear()
    return Foreign(tuple(opened))


async def _look(person: Person, target_id: str) -> Page:
    looks = await person.looks(target_id)
    session = await person.attach(target_id)
    content = await person.evaluate(session, "[window.mark, document.documentElement.outerHTML]")
    await person.call("Target.detachFromTarget", sessionId=session)
    return Page(target_id, looks, content)

"""All browsers of this server, by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tabmuxd.resources.errors import Reason, refuse
from tabmuxd.resources.names import browser_of
from tabmuxd.tabs.host import BrowserHost


class Hosts:
    """The hosts of the configured browsers, the first configured first."""

    def __init__(self, hosts: Iterable[BrowserHost]) -> None:
        """At least one."""
        self._hosts = {host.name: host for host in hosts}

    def __repr__(self) -> str:
        """Their names."""
        return f"<Hosts {' '.join(self._hosts)}>"

    def __iter__(self) -> Iterator[BrowserHost]:
        """The first configured first."""
        return iter(self._hosts.values())

    def __contains__(self, browser: str) -> bool:
        """Whether a browser of this name is configured."""
        return browser in self._hosts

    @property
    def first(self) -> BrowserHost:
        """The one meant where a request names none."""
        return next(iter(self))

    def named(self, browser: str) -> BrowserHost:
        """The host of this browser, of the first one configured where the name is empty; BROWSER_NOT_FOUND."""
        if not browser:
            return self.first
        host = self._hosts.get(browser)
        if host is None:
            raise refuse(
                Reason.BROWSER_NOT_FOUND,
                f"No browser {browser} is configured; nothing was done. List the browsers.",
                browser=browser,
            )
        return host

    def of(self, tab: str) -> BrowserHost:
        """The host of the browser that the tab of this name is in; BROWSER_NOT_FOUND."""
        return self.named(browser_of(tab))

    def chosen(self, browser: str) -> list[BrowserHost]:
        """The host of this browser, or all where the name is empty; BROWSER_NOT_FOUND."""
        return [self.named(browser)] if browser else list(self)

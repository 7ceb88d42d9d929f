"""The three kinds of page, each on a host of its own."""

from enum import StrEnum


class Kind(StrEnum):
    """What the composer of a page is made of."""

    TEXTAREA = "textarea"
    EDITOR = "editor"  # contenteditable
    SHADOW = "shadow"  # all of the page is in one open shadow root

    @property
    def host(self) -> str:
        """Host name of the page; browsers resolve names below `localhost` to the loopback address by themselves."""
        return f"{self.value}.localhost"


def kind_of_host(host: str) -> Kind | None:
    """Kind of page that a Host header, with or without a port, asks for."""
    name = host.partition(":")[0].lower()
    return next((kind for kind in Kind if kind.host == name), None)

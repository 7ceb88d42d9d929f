"""The pages and their style and script, put together once from the files in `static`."""

from dataclasses import dataclass
from importlib.resources import files

from tabmuxd.playground.kinds import Kind

_TEXTAREA = '<textarea id="prompt" class="box" rows="1" aria-label="Message" placeholder="Ask anything"></textarea>'
_EDITOR = (
    '<div id="prompt" class="box" contenteditable="true" role="textbox" aria-multiline="true" aria-label="Message"'
    ' data-placeholder="Ask anything" data-empty></div>'
)
_STYLE = '<link rel="stylesheet" href="/static/playground.css">'


@dataclass(frozen=True, slots=True)
class StaticFile:
    """One file to serve."""

    content: bytes
    content_type: str


def page_of(kind: Kind) -> StaticFile:
    """The page of one kind; it is the same at each of its addresses."""
    box = _EDITOR if kind is Kind.EDITOR else _TEXTAREA
    application = _read("application.html").replace("<!-- box -->", box)
    if kind is Kind.SHADOW:
        # A style outside does not reach into a shadow root.
        application = f'<chat-app><template shadowrootmode="open">{_STYLE}\n{application}</template></chat-app>'
    page = _read("page.html").replace("<!-- application -->", application).replace("<!-- kind -->", kind.value)
    return StaticFile(page.encode(), "text/html")


def static_files() -> dict[str, StaticFile]:
    """Style, script and icon by file name."""
    types = {"icon.svg": "image/svg+xml", "playground.css": "text/css", "playground.js": "text/javascript"}
    return {name: StaticFile(_read(name).encode(), content_type) for name, content_type in types.items()}


def _read(name: str) -> str:
    return (files("tabmuxd.playground") / "static" / name).read_text(encoding="utf-8")

"""Which elements of HTML have a role for readers of screens, by themselves or because the page says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_NATIVE: Final[Mapping[str, str]] = {
    "button": "button, summary, input:is([type=button], [type=submit], [type=reset], [type=image])",
    "checkbox": "input[type=checkbox]",
    "link": "a[href]",
    "menuitem": "",
    "menuitemcheckbox": "",
    "menuitemradio": "",
    "option": "option",
    "radio": "input[type=radio]",
    "switch": "",
    "tab": "",
    "textbox": "textarea, input:is(:not([type]), [type=text], [type=email], [type=tel], [type=url])",
}
ROLES: Final = tuple(_NATIVE)
"""The roles that a mark can name."""


def selector_of(role: str) -> str:
    """A CSS selector of the elements with this role, one of `ROLES`: an explicit role overrules an element's own."""
    named = f"[role={role}]"
    return f"{named}, :is({_NATIVE[role]}):not([role])" if _NATIVE[role] else named

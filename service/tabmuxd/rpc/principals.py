"""Who calls, by the metadata of the call, and which scope each method needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from tabmuxd.resources.errors import Reason, Refused, refuse
from tabmuxd.resources.names import is_local_name
from tabmuxd.resources.principal import Principal, Scope, local_person, local_program, scope_missing

_HEADER: Final = "authorization"
_LOCAL: Final = "Local "

_NONE: Final[frozenset[Scope]] = frozenset()
_READ: Final = frozenset({Scope.READ})
_DRIVE: Final = frozenset({Scope.DRIVE})
_AI: Final = frozenset({Scope.AI})
_ADMIN: Final = frozenset({Scope.ADMIN})

# One of the scopes is enough; a method without any needs none.
METHOD_SCOPES: Final[Mapping[str, frozenset[Scope]]] = {
    "/tabmux.v1.TabService/GetServerInfo": _NONE,
    "/tabmux.v1.TabService/GetBrowser": _READ,
    "/tabmux.v1.TabService/ListBrowsers": _READ,
    "/tabmux.v1.TabService/CreateTab": _DRIVE,
    "/tabmux.v1.TabService/AdoptTab": _ADMIN,
    "/tabmux.v1.TabService/GetTab": _READ,
    "/tabmux.v1.TabService/ListTabs": _READ,
    "/tabmux.v1.TabService/UpdateTab": _DRIVE,
    "/tabmux.v1.TabService/CloseTab": _DRIVE,
    "/tabmux.v1.TabService/CloseTabs": _DRIVE,
    "/tabmux.v1.TabService/RecoverTab": _DRIVE,
    "/tabmux.v1.TabService/CheckTabHealth": _READ,
    "/tabmux.v1.TabService/NavigateTab": _DRIVE,
    "/tabmux.v1.TabService/ActivateTab": _DRIVE,
    "/tabmux.v1.TabService/TakeSnapshot": _READ,
    "/tabmux.v1.TabService/PerformAction": _DRIVE,
    "/tabmux.v1.TabService/EvaluateScript": _DRIVE,
    "/tabmux.v1.TabService/CaptureScreenshot": _READ,
    "/tabmux.v1.TabService/AcquireLease": _DRIVE,
    "/tabmux.v1.TabService/RenewLease": _DRIVE,
    "/tabmux.v1.TabService/ReleaseLease": _DRIVE,
    "/tabmux.v1.TabService/ListLeases": _READ,
    "/tabmux.v1.TabService/WatchTabs": _READ,
    "/tabmux.v1.WebAiService/ListProviders": _READ,
    "/tabmux.v1.WebAiService/GetProviderStatus": _READ,
    "/tabmux.v1.WebAiService/ProbeProvider": _READ,
    "/tabmux.v1.WebAiService/RenderPrompt": _READ,
    "/tabmux.v1.WebAiService/CreateSession": _AI,
    "/tabmux.v1.WebAiService/GetSession": _READ,
    "/tabmux.v1.WebAiService/ListSessions": _READ,
    "/tabmux.v1.WebAiService/UpdateSession": _AI,
    "/tabmux.v1.WebAiService/RecoverSession": _AI,
    "/tabmux.v1.WebAiService/RetireSession": _AI,
    "/tabmux.v1.WebAiService/ImportSessions": _ADMIN,
    "/tabmux.v1.WebAiService/UploadArtifact": _DRIVE | _AI,
    "/tabmux.v1.WebAiService/SendPrompt": _AI,
    "/tabmux.v1.WebAiService/GetTurn": _READ,
    "/tabmux.v1.WebAiService/ListTurns": _READ,
    "/tabmux.v1.WebAiService/WaitTurn": _READ,
    "/tabmux.v1.WebAiService/CancelTurn": _AI,
    "/tabmux.v1.WebAiService/StreamAnswer": _READ,
    "/tabmux.v1.WebAiService/ReadArtifact": _READ,
    "/tabmux.v1.WebAiService/WatchSessions": _READ,
}


def principal_of(metadata: Iterable[tuple[str, str | bytes]], *, unix_socket: bool) -> Principal:
    """The principal of a call: `local` without a name, `local/NAME` with `authorization: Local NAME`.

    Raises TOKEN_INVALID for everything else. The header is never repeated in the message: it may hold a token.
    """
    values = [value for key, value in metadata if key == _HEADER]
    if not unix_socket:
        raise _token_invalid("Only the Unix socket is served without a token, and this version knows no tokens.")
    match values:
        case []:
            return local_person()
        case [str(value)] if value.startswith(_LOCAL):
            name = value.removeprefix(_LOCAL)
            if is_local_name(name):
                return local_program(name)
            raise _token_invalid("After `Local ` comes a name: 1 to 63 characters of a-z, 0-9 and -.")
        case [_]:
            raise _token_invalid(
                "This version knows no tokens, they come later. Leave the header out, or send `Local NAME`."
            )
        case _:
            raise _token_invalid("The header came more than once.")


def check_scope(principal: Principal, method: str) -> None:
    """Raise SCOPE_MISSING where `principal` may not call `method`, such as `/tabmux.v1.TabService/GetTab`."""
    needed = METHOD_SCOPES[method]
    if needed and needed.isdisjoint(principal.scopes):
        raise scope_missing(principal, method.rpartition("/")[2], needed)


def _token_invalid(problem: str) -> Refused:
    return refuse(Reason.TOKEN_INVALID, f"authorization: {problem} Nothing was done.")

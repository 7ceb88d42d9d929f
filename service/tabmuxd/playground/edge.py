"""What holds for every address: headers, bodies in JSON, and errors in JSON."""

import json
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import cast

from aiohttp import web

from tabmuxd.playground.refusals import STATUSES, RefusalReason, RefusedError

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self';"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


async def json_object(request: web.Request) -> dict[str, object]:
    """The body of a request; raises `RefusedError` unless it is a JSON object and says so.

    The content type is asked for because a page of another origin cannot send it without permission.
    """
    if request.content_type != "application/json":
        raise RefusedError(RefusalReason.MALFORMED, "content type: application/json")
    try:
        body: object = json.loads(await request.read())
    except (ValueError, RecursionError) as error:
        raise RefusedError(RefusalReason.MALFORMED, "body: JSON") from error
    if not isinstance(body, dict):
        raise RefusedError(RefusalReason.MALFORMED, "body: a JSON object")
    return cast("dict[str, object]", body)


@web.middleware
async def refusals_as_json(
    request: web.Request,
    handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
) -> web.StreamResponse:
    """Turn refusals, and those of the HTTP library, into `{"error": {"code": …, "message": …}}`."""
    try:
        return await handler(request)
    except RefusedError as error:
        return _error(STATUSES[error.reason], error.reason.value, str(error))
    except web.HTTPRequestEntityTooLarge as error:
        return _error(error.status, RefusalReason.PROMPT_TOO_LARGE.value, "the body is too large")
    except web.HTTPClientError as error:
        # A new answer, so that the library's header with the allowed methods has to be carried over.
        allowed = {name: value for name, value in error.headers.items() if name == "Allow"}
        return _error(error.status, HTTPStatus(error.status).name.lower(), error.reason, allowed)


def _error(status: int, code: str, message: str, headers: dict[str, str] | None = None) -> web.Response:
    return web.json_response({"error": {"code": code, "message": message}}, status=status, headers=headers)

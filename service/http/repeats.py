"""The `Idempotency-Key` of a request, and whether its answer may be given again.

See docs/design/http.md 5.
"""

import re

from aiohttp import web
from multidict import istr

from service.http.errors import HttpRefused, Problem

REPLAYED = {"Idempotency-Replayed": "true"}
"""The header of an answer that was given before."""

KEY = istr("Idempotency-Key")
"""The header."""

KEY_PATTERN = r"[\x21-\x7e]{1,255}"
_VISIBLE = re.compile(KEY_PATTERN)
_NEVER_KEPT = frozenset({401, 408, 429})


def key_of(request: web.BaseRequest) -> str | None:
    """The key that was sent, None: none was. Raises HttpRefused 400 invalid_header."""
    given = request.headers.getall(KEY, ())
    if not given:
        return None
    if len(given) > 1 or _VISIBLE.fullmatch(given[0]) is None:
        raise HttpRefused(
            "invalid_header",
            "Idempotency-Key must be 1 to 255 visible ASCII characters, sent once; "
            "a UUID is a good one.",
        )
    return given[0]


def lasts(problem: Problem) -> bool:
    """Return whether a refusal would be the same again.

    Not when it belongs to the moment: it says when to come back, or is our own trouble.
    """
    is_ours = problem.status >= 500
    return (
        problem.status not in _NEVER_KEPT and not is_ours and "Retry-After" not in problem.headers
    )

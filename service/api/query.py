"""The query of an address (API.md 1.2): unknown parameters are nobody's business."""

from collections import Counter

from aiohttp import web

from service.api.errors import HttpRefused


def check(request: web.BaseRequest) -> None:
    """Refuse a parameter that was sent more than once. Raises HttpRefused 400."""
    if not request.rel_url.raw_query_string:
        return
    repeated, times = Counter(request.query.keys()).most_common(1)[0]
    if times > 1:
        raise HttpRefused(
            400,
            "invalid_parameter",
            f"The parameter {repeated[:50]!r} was sent more than once. Send it once.",
        )

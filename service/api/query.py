"""The query of an address (API.md 1.2): unknown parameters are nobody's business."""

from collections import Counter

from aiohttp import web

from service.api.errors import HttpRefused


def check(request: web.BaseRequest) -> None:
    """Refuse a parameter that was sent more than once. Raises HttpRefused 400."""
    if not request.rel_url.raw_query_string:
        return
    times = Counter(name for name, _ in request.query.items())
    for name, count in times.most_common(1):
        if count > 1:
            raise HttpRefused(
                400,
                "invalid_parameter",
                f"The parameter {name[:50]!r} was sent more than once. Send it once.",
            )

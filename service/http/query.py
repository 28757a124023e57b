"""The query of an address (API.md 1.2): unknown parameters are nobody's business."""

from collections import Counter
from collections.abc import Mapping

from aiohttp import web

from service.errors import Malformed
from service.http.errors import HttpRefused
from service.http.models import common
from service.http.models.common import Request


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


def read(model: type[Request], query: Mapping[str, str]) -> Request:
    """The parameters that the model knows, as `check` let them in; others are ignored.

    Raises Malformed(invalid_parameter) for one that is not acceptable.
    """
    names = [field.alias or name for name, field in model.model_fields.items()]
    try:
        return common.read(model, {name: query[name] for name in names if name in query})
    except Malformed as wrong:
        found = "; ".join(f"{one.field.removeprefix('/')} {one.message}" for one in wrong.errors)
        raise Malformed(f"{found}.", code="invalid_parameter") from None

"""Read a request: the headers of its body, the body, the query (docs/design/http.md 2).

`app.py` takes every body in the same order of checks; an endpoint chooses between JSON and the form
of uploads (`testhealth/api/upload_form.py`).
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from aiohttp import web
from pydantic.json_schema import JsonSchemaValue

from service.errors import Malformed
from service.http import strict_json
from service.http.errors import HttpRefused
from service.http.models import common
from service.http.models.common import Request

Schema = JsonSchemaValue


@dataclass(frozen=True, slots=True)
class Intake:
    """`check` raises HttpRefused 415; `read` turns the body into what the handler receives.

    `content` is the OpenAPI form of the body, given a reference to the model's schema.
    """

    check: Callable[[web.BaseRequest], None]
    read: Callable[[type[Request], web.BaseRequest, bytes], object]
    content: Callable[[Schema], Schema]


def check_headers(request: web.BaseRequest) -> None:
    """Refuse an encoded body, and one that is not JSON. Raises HttpRefused 415."""
    headers = request.headers
    encoding = headers.get("Content-Encoding")
    if encoding is not None:
        raise HttpRefused(
            "unsupported_encoding",
            f"Send the body without Content-Encoding; it came as {encoding[:40]!r}.",
        )
    kind = headers.get("Content-Type")
    if kind is not None and not _is_json(kind):
        raise HttpRefused(
            "unsupported_media_type",
            f"Send the body as application/json; it came as {kind[:80]!r}.",
        )


def _is_json(kind: str) -> bool:
    """`application/json`, alone or with the charset utf-8, in any letter case."""
    media_type, *parameters = (part.strip() for part in kind.lower().split(";"))
    given = [parameter.replace(" ", "").replace('"', "") for parameter in parameters if parameter]
    return media_type == "application/json" and all(
        parameter == "charset=utf-8" for parameter in given
    )


def read_json(model: type[Request], _request: web.BaseRequest, body: bytes) -> Request:
    """Read the one JSON object of a body as the endpoint's model. Raises Malformed."""
    return common.read(model, strict_json.parse(body))


JSON = Intake(
    check_headers,
    read_json,
    lambda reference: {"application/json": {"schema": reference}},
)
"""One JSON object."""


def check_query(request: web.BaseRequest) -> None:
    """Refuse a parameter that was sent more than once. Raises HttpRefused 400."""
    if not request.rel_url.raw_query_string:
        return
    times = Counter(name for name, _ in request.query.items())
    for name, count in times.most_common(1):
        if count > 1:
            raise HttpRefused(
                "invalid_parameter",
                f"The parameter {name[:50]!r} was sent more than once. Send it once.",
            )


def read_query(model: type[Request], query: Mapping[str, str]) -> Request:
    """The parameters as the model, as `check_query` accepts them.

    Raises Malformed(invalid_parameter) for one that is not acceptable.
    """
    try:
        return common.read(model, dict(query))
    except Malformed as wrong:
        found = "; ".join(common.said(one).removeprefix("/") for one in wrong.errors)
        raise Malformed(f"{found}.", code="invalid_parameter") from None

"""How a body is taken: what its headers must say, how it is read, how the document shows it.

`app.py` takes every body in the same order of checks; an endpoint chooses between JSON, here,
and the form of uploads (`upload_form.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web

from service.http import limits, strict_json
from service.http.models import common

Schema = dict[str, object]


@dataclass(frozen=True, slots=True)
class Intake:
    """`check` raises HttpRefused 415; `read` makes the body what the handler is asked.

    `content` is the OpenAPI form of the body, given a reference to the model's schema.
    """

    check: Callable[[web.BaseRequest], None]
    read: Callable[[type[common.Request], web.BaseRequest, bytes], object]
    content: Callable[[Schema], Schema]


def asked(model: type[common.Request], body: bytes) -> common.Request:
    """The one JSON object of a body as the endpoint's model. Raises Malformed."""
    return common.read(model, strict_json.parse(body))


def _read(model: type[common.Request], _request: web.BaseRequest, body: bytes) -> object:
    return asked(model, body)


def _content(reference: Schema) -> Schema:
    return {"application/json": {"schema": reference}}


JSON = Intake(limits.check_headers, _read, _content)
"""One JSON object (API.md 1.2)."""

"""Unknown fields of a request, in its answer (docs/design/http.md 2)."""

from collections.abc import Mapping

import orjson
from pydantic import BaseModel

from service.errors import FieldError
from service.http.models.common import Request
from service.http.route import Shown

FIELDS, MEANT = "ignored_fields", "did_you_mean"
"""Members of the answers of requests that ignore what they do not know."""


def with_ignored_fields(shown: Shown, asked: object) -> Shown:
    """Return an answer with the fields of the request that were ignored, if any were."""
    if not isinstance(asked, Request) or not asked.ignored:
        return shown
    names = [_dotted(each.field) for each in asked.ignored]
    meant = {_dotted(each.field): known for each in asked.ignored if (known := _meant(each))}
    if isinstance(shown, bytes):
        spelled = type(asked).spelled
        own = {spelled(FIELDS): names, spelled(MEANT): meant}
        return _joined(shown, {name: value for name, value in own.items() if value})
    if not isinstance(shown, BaseModel):
        return shown
    others = getattr(shown, FIELDS) or ()
    return shown.model_copy(update={FIELDS: [*names, *others], MEANT: meant or None})


def _joined(shown: bytes, more: Mapping[str, object]) -> bytes:
    """Return an encoded object that is not empty with more members."""
    return b"%b,%b" % (shown[:-1], orjson.dumps(more)[1:])


def _meant(ignored: FieldError) -> str | None:
    if ignored.did_you_mean is None:
        return None
    before, dot, _ = _dotted(ignored.field).rpartition(".")
    return f"{before}{dot}{ignored.did_you_mean}"


def _dotted(pointer: str) -> str:
    """Return a place with dots, as people write it."""
    parts = pointer[1:].split("/")
    return ".".join(each.replace("~1", "/").replace("~0", "~") for each in parts)

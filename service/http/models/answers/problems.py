"""Refusals (docs/design/http.md 7): all but 401, which is one line of text."""

from typing import Literal

from pydantic import ConfigDict

from service.http.models.answers.common import LeftOut, SnakeAnswer


class FieldFault(SnakeAnswer):
    """One faulty field; `field` is a JSON Pointer into the body."""

    field: str
    code: Literal["missing", "type", "range", "length", "format", "enum", "unknown", "read_only"]
    message: str
    did_you_mean: LeftOut[str] = None


class Problem(SnakeAnswer):
    """A refusal (RFC 9457). Codes are stable, texts are not; a code may add members."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    code: str
    detail: str
    request_id: str
    errors: LeftOut[list[FieldFault]] = None

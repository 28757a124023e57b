"""Refusals (docs/design/http.md 7): all but 401, which is one line of text."""

from typing import Literal

from pydantic import ConfigDict

from service.http.models.answers.common import LeftOut, SnakeAnswer


class FieldFault(SnakeAnswer):
    """One faulty field; `field` is a JSON Pointer into the body."""

    field: str
    """JSON Pointer of the field. For example `/pr/number`."""
    code: Literal["missing", "type", "range", "length", "format", "enum", "unknown", "read_only"]
    """What is wrong with it."""
    message: str
    """The same in words. For example `is required`."""
    did_you_mean: LeftOut[str] = None
    """The nearest name or word that exists. For example `concurrency`."""


class Problem(SnakeAnswer):
    """A refusal (RFC 9457). Codes are stable, texts are not; a code may add members."""

    model_config = ConfigDict(extra="allow")

    type: str
    """Page about the code. For example `https://queue.example.org/docs/errors/queue_not_found`."""
    title: str
    """What the code means. For example `The queue does not exist`."""
    status: int
    """The status of the answer. For example `404`."""
    code: str
    """What went wrong, as a stable code. For example `queue_not_found`."""
    detail: str
    """What went wrong here, and the next step. For example `Branch "develop" has no queue.`"""
    request_id: str
    """The request in the log of the service. For example `5b0e4f3e9d0a3b1a54c1b7de0f8c6c1e`."""
    errors: LeftOut[list[FieldFault]] = None
    """All faulty fields, at most 50, where fields are faulty."""

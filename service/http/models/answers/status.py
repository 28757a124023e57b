"""Answers about the service itself (API.md 10)."""

from typing import Literal

from pydantic import Field

from service.http.health import Word
from service.http.models.answers.common import Answer, SnakeAnswer


class ServiceShown(Answer):
    """One part of the service."""

    name: Literal["api", "engine", "provider", "uploads", "webhooks"]
    status: Literal["up", "impacted"]


class ServiceStatus(Answer):
    """How the service is; `red`: nothing can land, `yellow`: something limps."""

    overall_status: Literal["up", "impacted"]
    severity: Literal["yellow", "red"] | None
    services: list[ServiceShown]
    version: str


class Alive(Answer):
    """The process turns."""

    status: Literal["ok"]


class Checks(SnakeAnswer):
    """How each thing stands that readiness depends on; `provider` alone does not end it."""

    database: Word
    schema_: Word = Field(alias="schema")
    recovery: Word
    workers: Word
    provider: Word


class Ready(SnakeAnswer):
    """Whether requests may be sent here."""

    status: Literal["ready", "not_ready"]
    checks: Checks

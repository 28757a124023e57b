"""Refusals of actions and calls, in GitHub's own words.

The sentences are in refusals.toml. The control plane of the sandbox is not GitHub: it raises
`Refusal(400, ...)` with words of its own.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.sandbox.records import Json

DOCUMENTATION = "https://docs.github.com/rest"
PLACEHOLDER = re.compile(r"\{[^{}]+\}")
RULE_PREFIX = "Repository rule violations found\n\n"
"""Starts every answer in which a ruleset refuses (`shape.rules`)."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """Status and text of one refusal; `{…}` in the text are filled in order."""

    status: int
    text: str


def _sentences(kind: str) -> Mapping[str, Sentence]:
    table = tomllib.loads(Path(__file__).with_name("refusals.toml").read_text())[kind]
    return {
        name: Sentence(int(status), text)
        for status, texts in table.items()
        for name, text in texts.items()
    }


SENTENCES, FORMS, STATUS_KNOWN = (_sentences(kind) for kind in ("seen", "forms", "documented"))
ALL = {**SENTENCES, **FORMS, **STATUS_KNOWN}


class Refusal(Exception):
    """A refusal with HTTP status, message and, for 422, the list of errors."""

    def __init__(self, status: int, message: str, errors: Sequence[Json] | str = ()) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.errors = errors if isinstance(errors, str) else list(errors)

    def body(self) -> Json:
        """The JSON answer."""
        errors = {"errors": self.errors} if self.errors else {}
        return {
            "message": self.message,
            "documentation_url": DOCUMENTATION,
            "status": str(self.status),
            **errors,
        }


def say(name: str, *values: object) -> str:
    """The text of a sentence with its placeholders filled, in their order.

    Raises KeyError for an unknown id, ValueError when the number of values differs from the
    number of placeholders.
    """
    text = ALL[name].text
    if len(PLACEHOLDER.findall(text)) != len(values):
        raise ValueError(f"{name} has other placeholders than {values}")
    filled = iter(values)
    return PLACEHOLDER.sub(lambda _: str(next(filled)), text)


def refused(name: str, *values: object) -> Refusal:
    """The refusal of an id, its placeholders filled in their order."""
    return Refusal(ALL[name].status, say(name, *values))


def custom(name: str, resource: str, *values: object) -> Refusal:
    """422 with the sentence as the one error, as for whole resources."""
    error = {"resource": resource, "code": "custom", "message": say(name, *values)}
    return Refusal(422, "Validation Failed", [error])


def not_found() -> Refusal:
    """404, GitHub's answer for everything that the caller may not see."""
    return refused("not_found")


def not_accessible() -> Refusal:
    """403 for an App that lacks a permission."""
    return refused("perm.integration")


def invalid(message: str, *, field: str, resource: str, code: str = "invalid") -> Refusal:
    """422 with one error about one field; its words beside field and code are ours."""
    error = {"resource": resource, "code": code, "field": field, "message": message}
    return Refusal(422, "Validation Failed", [error])

"""The one exception by which an act or a call is refused, in the provider's own form."""

from collections.abc import Sequence

from bot.sandbox.records import Json

DOCUMENTATION = "https://docs.github.com/rest"


class Refusal(Exception):
    """A refusal with HTTP status, message and, for 422, the list of errors."""

    def __init__(self, status: int, message: str, errors: Sequence[Json] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.errors = tuple(errors)

    def body(self) -> Json:
        """The JSON answer."""
        body: Json = {
            "message": self.message,
            "documentation_url": DOCUMENTATION,
            "status": str(self.status),
        }
        if self.errors:
            body["errors"] = list(self.errors)
        return body


def not_found() -> Refusal:
    """404, as the provider answers for everything one may not know of."""
    return Refusal(404, "Not Found")


def not_accessible() -> Refusal:
    """403 for an App that lacks a permission."""
    return Refusal(403, "Resource not accessible by integration")


def invalid(message: str, *, field: str, resource: str, code: str = "invalid") -> Refusal:
    """422 with one error about one field."""
    error = {"resource": resource, "code": code, "field": field, "message": message}
    return Refusal(422, "Validation Failed", [error])

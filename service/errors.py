"""The service's errors, by meaning.

No HTTP in here: `service/http/errors.py` has the table of answers. Expected outcomes are
values, not errors. What the provider does wrong: `service/provider/errors.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class FieldError:
    """One faulty field: JSON Pointer, closed code (docs/design/http.md 7), sentence, suggestion."""

    field: str
    code: str
    message: str
    did_you_mean: str | None = None


class ServiceError(Exception):
    """Base of all; `detail` is a sentence that names the thing, the value and the mend.

    `members` are further machine-readable facts of a problem answer, such as
    `{"pull_requests": [480, 482]}`.
    """

    code = "internal_error"

    def __init__(
        self, detail: str, *, code: str | None = None, members: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.members: Mapping[str, object] = members or {}
        if code is not None:
            self.code = code

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle without `__init__`, whose parameters differ from `args` in some classes."""
        return Exception.__new__, (type(self), *self.args), vars(self)


class Malformed(ServiceError):
    """The request's shape is wrong; `errors` lists every faulty field."""

    code = "invalid_field"

    def __init__(
        self, detail: str, *, code: str | None = None, errors: tuple[FieldError, ...] = ()
    ) -> None:
        super().__init__(detail, code=code)
        self.errors = errors


class Invalid(ServiceError):
    """Each field is right, but a rule refuses the request."""

    code = "invalid"


class Unauthenticated(ServiceError):
    """No valid token."""

    code = "unauthenticated"


class NotAllowed(ServiceError):
    """The caller is known, its role too small."""

    code = "missing_role"


class NotFound(ServiceError):
    """The thing is missing, or another organization's: the answers are the same."""

    code = "not_found"


class DeletedMeanwhile(NotFound):
    """The thing was there when the work on it began."""


class Conflict(ServiceError):
    """The present state stands against the request."""

    code = "conflict"


class OverBudget(ServiceError):
    """The caller has used up what it may; `until` is when it may again, None: it is not known."""

    code = "over_budget"

    def __init__(
        self, detail: str, *, until: datetime | None, members: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(detail, members=members)
        self.until = until


class Overloaded(ServiceError):
    """Try again after `retry_after_s` seconds."""

    code = "overloaded"

    def __init__(self, detail: str, *, retry_after_s: int, code: str | None = None) -> None:
        super().__init__(detail, code=code)
        self.retry_after_s = retry_after_s


class DatabaseUnavailable(Overloaded):
    """The database cannot take writes now (full disk, lost connection, lock)."""

    code = "database_unavailable"
    RETRY_AFTER_S = 30

    @classmethod
    def caused_by(cls, why: BaseException) -> "DatabaseUnavailable":
        """Return the refusal because of the driver's error."""
        refusal = cls(
            f"The database cannot be used now; try again in {cls.RETRY_AFTER_S} seconds.",
            retry_after_s=cls.RETRY_AFTER_S,
        )
        refusal.__cause__ = why
        return refusal


class Stale(ServiceError):
    """A queue's version or epoch moved under a turn; handled inside `turn`."""

    code = "stale"


class StartRefused(ServiceError):
    """The process must not start like this (setting, port, lock, newer schema); exit code 8."""

    code = "start_refused"


class DatabaseAway(StartRefused):
    """The database cannot be opened now; `serve` waits for it, other commands end."""


class InvariantBroken(ServiceError):
    """Our own mistake: the turn rolls back and the queue is held.

    `number` is the invariant's name in docs/design/invariants.md (`E3`, `I14`).
    """

    code = "internal_error"

    def __init__(self, number: str, detail: str) -> None:
        super().__init__(f"{number}: {detail}")
        self.number = number

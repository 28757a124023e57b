"""The ways in which a call to a provider can go wrong; each error carries one sentence.

See docs/design/provider.md 2.
"""

from datetime import datetime
from enum import StrEnum


class ProviderError(Exception):
    """Base of all; `message` is one sentence."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Unavailable(ProviderError):
    """The provider cannot be reached or answers nonsense; keep the action, try at `retry_at`."""

    def __init__(self, message: str, retry_at: datetime) -> None:
        super().__init__(message)
        self.retry_at = retry_at


class Throttled(Unavailable):
    """A limit was met; nobody is blamed."""


class OutcomeUnknown(ProviderError):
    """A write may or may not have happened: read back before anything else."""


class NotPermitted(ProviderError):
    """Our App lacks a right; `permission` names it when known (`contents: write`)."""

    def __init__(self, message: str, permission: str | None = None) -> None:
        super().__init__(message)
        self.permission = permission


class AppRefused(NotPermitted):
    """The provider refuses our App itself: its key is not accepted, or a clock is wrong."""


class Suspended(ProviderError):
    """The owner has suspended our App."""


class GoneKind(StrEnum):
    """The kinds of things that are not there any more."""

    PULL_REQUEST = "pull_request"
    BRANCH = "branch"
    REPOSITORY = "repository"
    INSTALLATION = "installation"


class Gone(ProviderError):
    """The thing is gone, confirmed by a second read one level up."""

    def __init__(self, message: str, kind: GoneKind) -> None:
        super().__init__(message)
        self.kind = kind


class RefusedCode(StrEnum):
    """Rules that said no (docs/design/engine.md 7)."""

    WORKFLOWS = "workflows"
    RULE_DENIED = "rule_denied"
    NAME_TAKEN = "name_taken"
    DRAFT_NOT_SUPPORTED = "draft_not_supported"
    PROVIDER_QUEUE = "provider_queue"
    TOO_MANY = "too_many"
    TOO_LARGE = "too_large"
    GIT_NEEDED = "git_needed"
    OTHER = "other"


class Refused(ProviderError):
    """A rule refused the request; `message` quotes the provider.

    `number` is the pull request whose head it refused, None when it is not about one.
    """

    def __init__(self, message: str, code: RefusedCode, number: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.number = number

"""Answer each error: `ANSWERS` is the one table (docs/design/http.md 7).

A class gives the status, the error itself the code. No stack trace, SQL or path enters a
body, and what is another organization's is answered as missing long before.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

import orjson

from service import errors
from service.errors import FieldError, ServiceError
from service.http import callers
from service.http.models import common
from service.http.models.common import Spelling
from service.provider import errors as provider
from service.provider.errors import GoneKind, ProviderError

UNAUTHORIZED = callers.NO_TOKEN.encode()
UNAUTHORIZED_TYPE = "application/plain-text"
PROBLEM = "application/problem+json; charset=utf-8"
TEXT = "text/plain; charset=utf-8"
RETRY_AFTER_MAX_S = 3600


STATUSES: Mapping[int, tuple[str, ...]] = {
    400: (
        "bad_request",
        "invalid_json",
        "invalid_field",
        "unknown_field",
        "invalid_parameter",
        "invalid_header",
        "invalid_page_token",
        "page_token_expired",
    ),
    403: ("missing_role", "not_own_pull_request"),
    404: (
        "unknown_endpoint",
        "organization_not_found",
        "repository_not_found",
        "branch_not_found",
        "queue_not_found",
        "pull_request_not_found",
        "never_submitted",
        "not_in_queue",
        "test_run_not_found",
        "evidence_not_found",
        "hold_not_found",
        "dry_test_not_found",
        "test_not_found",
        "upload_not_found",
        "plan_not_found",
        "token_not_found",
        "webhook_endpoint_not_found",
        "message_not_found",
    ),
    405: ("method_not_allowed",),
    408: ("request_timeout",),
    409: (
        "queue_exists",
        "queue_not_empty",
        "mode_switch_in_progress",
        "version_conflict",
        "landing_in_progress",
        "already_landed",
        "head_mismatch",
        "idempotency_in_progress",
        "failed_before",
    ),
    413: ("body_too_large",),
    414: ("address_too_long",),
    415: ("unsupported_media_type", "unsupported_encoding"),
    422: (
        "pull_request_closed",
        "pull_request_merged",
        "fork_needs_person",
        "no_required_statuses",
        "conflict_after_landing",
        "stack_loses_approvals",
        "own_test_branch",
        "merge_method_not_allowed",
        "dry_test_refused",
        "set_in_repository_file",
        "conflicting_fields",
        "not_the_job",
        "invalid_time_range",
        "limit_reached",
        "hold_not_liftable",
        "reason_required",
        "ticket_template_missing",
        "issues_not_writable",
        "times_unknown",
        "no_results",
        "scope_exceeds_own",
        "webhook_url_refused",
        "idempotency_key_reused",
    ),
    429: ("rate_limited", "over_budget"),
    431: ("header_too_long",),
    500: ("internal_error",),
    502: ("provider_refused",),
    503: (
        "provider_unavailable",
        "database_unavailable",
        "overloaded",
        "recovering",
        "setup_required",
    ),
}
"""Status → its codes. 401 has none: its answer is one line of text."""

STATUS_OF: Mapping[str, int] = {
    code: status for status, codes in STATUSES.items() for code in codes
}
"""Code → its status."""


class HttpRefused(ServiceError):
    """The request breaks a rule of HTTP or of this API's use of it, whatever it asks."""

    code = "bad_request"

    def __init__(self, code: str, detail: str, **members: object) -> None:
        super().__init__(detail, code=code, members=members)
        self.status = STATUS_OF[code]
        self.headers: Mapping[str, str] = {}
        # What was not read of the body would be taken for the next request.
        self.closes = self.status in (400, 408, 413, 414, 431)


@dataclass(frozen=True, slots=True)
class Answered:
    """Status of a class of errors; `code` when the error has none of its own."""

    status: int
    code: str | None = None


ANSWERS: Mapping[type[Exception], Answered] = {
    errors.Malformed: Answered(400),
    errors.Unauthenticated: Answered(401),
    errors.NotAllowed: Answered(403),
    errors.NotFound: Answered(404),
    errors.Conflict: Answered(409),
    errors.Invalid: Answered(422),
    errors.OverBudget: Answered(429),
    errors.Overloaded: Answered(503),
    errors.Stale: Answered(503, "overloaded"),
    errors.ServiceError: Answered(500, "internal_error"),
    provider.Unavailable: Answered(503, "provider_unavailable"),
    provider.OutcomeUnknown: Answered(503, "provider_unavailable"),
    provider.Gone: Answered(404),
    provider.ProviderError: Answered(502, "provider_refused"),
}
"""Error class → answer; a class not listed is answered as its base is."""

GONE: Mapping[GoneKind, str] = {
    GoneKind.PULL_REQUEST: "pull_request_not_found",
    GoneKind.BRANCH: "branch_not_found",
    GoneKind.REPOSITORY: "repository_not_found",
    GoneKind.INSTALLATION: "repository_not_found",
}
"""Code of what the provider no longer has."""

RETRY_AFTER_S: Mapping[str, int] = {
    "idempotency_in_progress": 1,
    "landing_in_progress": 5,
    "over_budget": 60,
    "overloaded": 5,
    "provider_unavailable": 5,
    "setup_required": 60,
}
"""The seconds after which to come back, by code, where the error itself does not say."""

TITLES: Mapping[str, str] = {
    "bad_request": "The request is not HTTP as it should be",
    "invalid_json": "The body is not acceptable JSON",
    "invalid_field": "A field is not acceptable",
    "unknown_field": "A field is unknown",
    "invalid_parameter": "A query parameter is not acceptable",
    "invalid_header": "A header is not acceptable",
    "invalid_page_token": "The page token is not one of ours for this list",
    "page_token_expired": "The page token is too old",
    "missing_role": "The token's role does not allow this",
    "not_own_pull_request": "A CI run speaks for its own pull request alone",
    "unknown_endpoint": "There is no such endpoint",
    "organization_not_found": "There is no such organization",
    "repository_not_found": "There is no such repository",
    "branch_not_found": "There is no such branch",
    "queue_not_found": "This branch has no queue",
    "pull_request_not_found": "There is no such pull request",
    "never_submitted": "This pull request was never submitted",
    "not_in_queue": "This pull request is not in the queue",
    "test_run_not_found": "There is no such test run",
    "evidence_not_found": "This commit has no evidence",
    "hold_not_found": "There is no such hold",
    "dry_test_not_found": "There is no such dry test",
    "dry_test_refused": "The test branch cannot be made",
    "test_not_found": "There is no such test",
    "upload_not_found": "There is no such upload",
    "plan_not_found": "There is no such plan of repeats",
    "token_not_found": "There is no such token",
    "webhook_endpoint_not_found": "There is no such webhook endpoint",
    "message_not_found": "There is no such webhook message",
    "method_not_allowed": "This endpoint is asked another way",
    "request_timeout": "The body arrived too slowly",
    "body_too_large": "The body is too large",
    "unsupported_media_type": "The body is of a type that is not taken here",
    "unsupported_encoding": "The body is packed in a way that is not taken here",
    "queue_exists": "The branch has a queue already",
    "queue_not_empty": "The queue is not empty",
    "mode_switch_in_progress": "The queue is switching its mode",
    "version_conflict": "The queue has changed meanwhile",
    "landing_in_progress": "A landing is under way",
    "already_landed": "The pull request has landed",
    "head_mismatch": "The pull request has another head",
    "idempotency_in_progress": "The first request with this key still runs",
    "failed_before": "This head has failed before",
    "pull_request_closed": "The pull request is closed",
    "pull_request_merged": "The pull request is merged already",
    "fork_needs_person": "A person must let this fork in",
    "no_required_statuses": "No required statuses were found",
    "conflict_after_landing": "It conflicts once the pull request below it has landed",
    "address_too_long": "The address is too long",
    "header_too_long": "A header is too long",
    "own_test_branch": "The pull request is a draft for tests",
    "stack_loses_approvals": "The pull requests would lose their approvals",
    "merge_method_not_allowed": "The repository does not allow this merge method",
    "set_in_repository_file": "The repository's file sets this",
    "conflicting_fields": "Two fields contradict each other",
    "not_the_job": "Only the job itself may report this",
    "invalid_time_range": "The time range is not acceptable",
    "limit_reached": "A limit is reached",
    "hold_not_liftable": "Only facts lift this hold",
    "reason_required": "A reason is required",
    "issues_not_writable": "Issues cannot be written in this repository",
    "ticket_template_missing": "The repository has no address template for tickets",
    "times_unknown": "No time of a test is known yet",
    "no_results": "The upload holds no test results",
    "scope_exceeds_own": "The token may not give more than it has",
    "webhook_url_refused": "This address may not be called",
    "idempotency_key_reused": "The key belongs to another request",
    "internal_error": "Something went wrong inside Headgate",
    "provider_refused": "The provider refused",
    "provider_unavailable": "The provider cannot be reached",
    "database_unavailable": "The database cannot be used now",
    "rate_limited": "Too many requests",
    "over_budget": "A budget of the submitter is used up",
    "overloaded": "There is too much to do just now",
    "recovering": "Headgate has just started",
    "setup_required": "Headgate is not set up yet",
}
"""The general meaning of each code; the detail says what happened."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A refusal, ready to be written."""

    status: int
    code: str
    detail: str
    members: Mapping[str, object] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    closes: bool = False

    def as_json(self, public_url: str | None, request_id: str) -> bytes:
        """RFC 9457: the six members that are always there, then the code's own."""
        body: dict[str, object] = {
            "type": f"{public_url or ''}/docs/errors/{self.code}",
            "title": TITLES.get(self.code, self.code.replace("_", " ").capitalize()),
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
            "request_id": request_id,
        }
        for name, value in self.members.items():
            body.setdefault(name, value)
        return orjson.dumps(body)

    def as_text(self) -> bytes:
        """The detail alone, on one line."""
        return " ".join(self.detail.split()).encode()


def problem_of(
    error: ServiceError | ProviderError, now: datetime, spelled: Spelling = common.as_named
) -> Problem:
    """The answer to an error.

    `now` makes a time to come back at a number of seconds; `spelled` makes a field's name in
    our code the one that the endpoint takes.
    """
    if isinstance(error, HttpRefused):
        return Problem(
            error.status, error.code, error.detail, error.members, error.headers, error.closes
        )
    answered = next(ANSWERS[kind] for kind in type(error).__mro__ if kind in ANSWERS)
    code = _code(error, answered)
    if answered.status == 500:
        return unexpected()
    detail = error.message if isinstance(error, ProviderError) else error.detail
    members = dict(error.members) if isinstance(error, ServiceError) else {}
    if isinstance(error, errors.Malformed) and error.errors:
        members["errors"] = [_field_error(each, spelled) for each in error.errors]
    settings = members.get("settings")
    if isinstance(settings, tuple | list):
        members["settings"] = [spelled(name) for name in settings]
        detail = _as_sent(detail, settings, spelled)
    headers = {"Retry-After": str(wait)} if (wait := _wait_s(error, code, now)) else {}
    return Problem(answered.status, code, detail, members, headers)


def unexpected() -> Problem:
    """The answer to our own mistake; the log has the rest under the request's id."""
    return Problem(
        500,
        "internal_error",
        "Something went wrong inside Headgate. The log has it under the id of this request.",
    )


def _code(error: ServiceError | ProviderError, answered: Answered) -> str:
    if answered.code is not None:
        return answered.code
    if isinstance(error, provider.Gone):
        return GONE[error.kind]
    # The engine's word for a value that it refuses (docs/design/http.md 7).
    code = error.code if isinstance(error, ServiceError) else "internal_error"
    return "invalid_field" if code == "invalid_value" else code


def _wait_s(error: ServiceError | ProviderError, code: str, now: datetime) -> int | None:
    """Seconds after which to come back, at least 1, None where waiting does not help."""
    if isinstance(error, errors.Overloaded):
        return max(1, error.retry_after_s)
    if isinstance(error, errors.OverBudget) and error.until is not None:
        return max(1, math.ceil((error.until - now).total_seconds()))
    if isinstance(error, provider.Unavailable):
        wait = math.ceil((error.retry_at - now).total_seconds())
        return min(max(1, wait), RETRY_AFTER_MAX_S)
    return RETRY_AFTER_S.get(code)


def _field_error(fault: FieldError, spelled: Spelling) -> dict[str, str]:
    """One member of `errors`; settings are spelled as they were sent, and so is an unknown name."""
    if fault.code == "unknown":
        spelled = str
    parts = fault.field.split("/")
    shown = {
        "field": "/".join(spelled(part) if "_" in part else part for part in parts),
        "code": fault.code,
        "message": fault.message,
    }
    if fault.did_you_mean is not None:
        shown["did_you_mean"] = fault.did_you_mean
    return shown


def _as_sent(detail: str, settings: tuple[str, ...] | list[str], spelled: Spelling) -> str:
    """The sentence with the settings in the endpoint's spelling."""
    for name in settings:
        detail = re.sub(rf"\b{re.escape(name)}\b", spelled(name), detail)
    return detail


_QUALITY = re.compile(r"\s*([^;,\s]+)\s*((?:;[^,]*)?)")
_WEIGHT = re.compile(r";\s*[qQ]\s*=\s*([01](?:\.[0-9]{0,3})?)")
_JSON_TYPES = ("application/json", "application/problem+json")


def prefers(content_type: str, accept: str | None) -> bool:
    """Return whether a type of text ranks above every JSON type (docs/design/http.md 5)."""
    if not accept or "text" not in accept.lower():
        return False
    weights = {}
    for kind, parameters in _QUALITY.findall(accept[:1000].lower()):
        weight = _WEIGHT.search(parameters)
        weights[kind] = float(weight[1]) if weight is not None else 1.0
    json_weight = max(_weight(weights, kind) for kind in _JSON_TYPES)
    return _weight(weights, content_type) > json_weight


def _weight(weights: Mapping[str, float], kind: str) -> float:
    """Return how much a type is wanted: the most specific range that covers it decides."""
    for name in (kind, f"{kind.partition('/')[0]}/*", "*/*"):
        if name in weights:
            return weights[name]
    return 0.0


def content(
    problem: Problem, *, as_text: bool, public_url: str | None, request_id: str
) -> tuple[str, bytes]:
    """Content type and body of the answer."""
    if problem.status == 401:
        return UNAUTHORIZED_TYPE, problem.as_text()
    if as_text:
        return TEXT, problem.as_text()
    return PROBLEM, problem.as_json(public_url, request_id)

"""What an answer means: limits, refusals, lost rights (docs/design/provider.md 5)."""

from datetime import UTC, datetime
from types import NoneType

import pytest

from bot.github import limits
from bot.github.limits import Limit
from bot.github.wire import Answer
from service.provider.errors import (
    Gone,
    NotPermitted,
    Refused,
    RefusedCode,
    Suspended,
    Throttled,
)

NOW = datetime(2026, 3, 2, tzinfo=UTC)
RESET = str(int(NOW.timestamp()) + 600)


@pytest.mark.parametrize(
    ("status", "headers", "message", "limit"),
    [
        (200, {}, "", None),
        (403, {"retry-after": "7"}, "", Limit(wait_s=7.0)),
        (429, {"retry-after": "0"}, "", Limit(wait_s=0.0)),
        (403, {"retry-after": "7", "x-ratelimit-remaining": "0"}, "", Limit(wait_s=7.0)),
        (
            403,
            {"x-ratelimit-remaining": "0", "x-ratelimit-reset": RESET},
            "API rate limit exceeded",
            Limit(600.0, is_primary=True),
        ),
        (429, {}, "slow down", Limit()),
        (403, {}, "You have exceeded a Secondary Rate Limit.", Limit()),
        (403, {}, "abuse detection mechanism", Limit()),
        (403, {"x-ratelimit-remaining": "12"}, "Must have admin", None),
        # https://github.com/cli/cli/issues/4801
        (422, {}, "Validation Failed; was submitted too quickly", Limit()),
        # https://github.com/octokit/plugin-throttling.js/issues/775
        (422, {}, "Validation Failed; base abuse", Limit()),
        (422, {"retry-after": "9"}, "Validation Failed; was submitted too quickly", Limit(9.0)),
        (422, {"retry-after": "9"}, "Validation Failed", None),
        (503, {"retry-after": "5"}, "", None),
    ],
)
def test_an_answer_reports_a_limit(status, headers, message, limit):
    assert limits.limit_of(status, headers, message, NOW) == limit
    error = limits.error_of(Answer(status, headers, {"message": message}), "", NOW)
    assert isinstance(error, Throttled) is (limit is not None)


@pytest.mark.parametrize(
    ("error", "limit"),
    [
        ({"type": "RATE_LIMITED"}, Limit(600.0, is_primary=True)),
        # https://github.com/yanyongyu/githubkit/issues/271
        ({"type": "RATE_LIMIT"}, Limit(600.0, is_primary=True)),
        ({"message": "You have exceeded a secondary rate limit."}, Limit(wait_s=7.0)),
        ({"type": "NOT_FOUND", "message": "Could not resolve."}, None),
        ({"type": "SERVICE_UNAVAILABLE", "message": "Something went wrong."}, None),
    ],
)
def test_a_success_of_graphql_reports_a_limit(error, limit):
    headers = {"x-ratelimit-reset": RESET, "retry-after": "7"}
    assert limits.limit_in(Answer(200, headers, {"errors": [error]}), NOW) == limit


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (200, "", NoneType),
        (204, "", NoneType),
        (304, "", NoneType),
        (401, "Bad credentials", NotPermitted),
        (403, "This installation has been suspended", Suspended),
        (
            403,
            "refusing to allow a GitHub App to create or update workflow "
            "`.github/workflows/x.yml` without `workflows` permission",
            Refused,
        ),
        (403, "Resource not accessible by integration", NotPermitted),
        (403, "Must have admin", NotPermitted),
        (404, "Not Found", Gone),
        (410, "", Gone),
        (451, "", Gone),
        (409, "Merge conflict", Refused),
        (422, "Validation Failed", Refused),
        (500, "", NoneType),
        (503, "", NoneType),
    ],
)
def test_an_answer_means_an_error(status, message, kind):
    error = limits.error_of(Answer(status, {}, {"message": message}), "", NOW)
    assert type(error) is kind
    if status == 403 and isinstance(error, Refused):
        assert error.code is RefusedCode.WORKFLOWS


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("Reference already exists", RefusedCode.NAME_TAKEN),
        ("Repository rule violations found", RefusedCode.RULE_DENIED),
        ("Cannot update this protected branch", RefusedCode.RULE_DENIED),
        ("Draft pull requests are not supported", RefusedCode.DRAFT_NOT_SUPPORTED),
        ("… without `workflows` permission", RefusedCode.WORKFLOWS),
        ("Something else", RefusedCode.OTHER),
    ],
)
def test_a_refusal_is_named_by_its_words(message, code):
    assert limits.refusal_of(message) is code


def test_the_permission_lacking_is_told_by_the_answer_or_by_the_path():
    told = {"x-accepted-github-permissions": "contents=write; issues=read"}
    assert limits.permission_of("/x", told) == "contents: write"
    assert limits.permission_of("/git/refs", {}) == "contents: write"
    assert limits.permission_of("/pulls/3/merge", {}) == "pull_requests: write"
    assert limits.permission_of("/actions/artifacts/7/zip", {}) == "actions: read"
    assert limits.permission_of("/actions/runs/7/cancel", {}) == "actions: write"
    assert limits.permission_of("/x", {}) is None


def test_retries_double_and_spread_by_a_quarter():
    for attempt, middle_s in enumerate([1, 2, 4, 8, 16]):
        waits = {limits.retry_wait_s(attempt, seed) for seed in "abcdefgh"}
        assert all(0.75 * middle_s <= wait <= 1.25 * middle_s for wait in waits)
        assert len(waits) == 8


def test_doubling_has_an_end():
    doubled = [limits.doubled_s(60, times, 900) for times in (0, 1, 3, 4, 5, 1000)]
    assert doubled == [60, 120, 480, 900, 900, 900]

"""Errors as answers: status, code, body, and in which form (docs/design/http.md 7)."""

import pickle
from datetime import UTC, datetime, timedelta

import orjson
import pytest
from pydantic.alias_generators import to_camel

from service import errors
from service.errors import FieldError, ServiceError
from service.http import callers
from service.http import errors as answers
from service.http.models import common
from service.http.models.common import Spelling
from service.http.replies import WholeAnswer
from service.http.route import JSON
from service.provider import errors as provider
from service.provider.errors import GoneKind, RefusedCode

NOW = datetime(2026, 3, 2, 14, 2, 19, tzinfo=UTC)

TABLE = [
    (errors.Malformed("d"), 400, "invalid_field", None),
    (errors.Malformed("d", code="invalid_value"), 400, "invalid_field", None),
    (errors.NotAllowed("d"), 403, "missing_role", None),
    (errors.NotFound("d", code="queue_not_found"), 404, "queue_not_found", None),
    (errors.Conflict("d", code="queue_exists"), 409, "queue_exists", None),
    (errors.Conflict("d", code="landing_in_progress"), 409, "landing_in_progress", "5"),
    (errors.Invalid("d", code="limit_reached"), 422, "limit_reached", None),
    (errors.Overloaded("d", retry_after_s=2), 503, "overloaded", "2"),
    (errors.Overloaded("d", retry_after_s=0, code="recovering"), 503, "recovering", "1"),
    (errors.DatabaseUnavailable("d", retry_after_s=30), 503, "database_unavailable", "30"),
    (errors.Stale("d"), 503, "overloaded", "5"),
    (provider.Unavailable("d", NOW + timedelta(seconds=90)), 503, "provider_unavailable", "90"),
    (provider.Throttled("d", NOW - timedelta(seconds=9)), 503, "provider_unavailable", "1"),
    (provider.Throttled("d", NOW + timedelta(days=9)), 503, "provider_unavailable", "3600"),
    (provider.OutcomeUnknown("d"), 503, "provider_unavailable", "5"),
    (provider.Gone("d", GoneKind.PULL_REQUEST), 404, "pull_request_not_found", None),
    (provider.Gone("d", GoneKind.BRANCH), 404, "branch_not_found", None),
    (provider.Gone("d", GoneKind.REPOSITORY), 404, "repository_not_found", None),
    (provider.Gone("d", GoneKind.INSTALLATION), 404, "repository_not_found", None),
    (provider.Refused("d", RefusedCode.RULE_DENIED), 502, "provider_refused", None),
    (provider.NotPermitted("d"), 502, "provider_refused", None),
    (provider.Suspended("d"), 502, "provider_refused", None),
]


@pytest.mark.parametrize(("error", "status", "code", "retry_after"), TABLE)
def test_each_class_has_its_status_its_code_and_when_to_come_back(error, status, code, retry_after):
    problem = answers.problem_of(error, NOW)
    assert (problem.status, problem.code, problem.detail) == (status, code, "d")
    assert problem.headers.get("Retry-After") == retry_after


def test_our_own_mistake_says_nothing_of_the_inside():
    problem = answers.problem_of(errors.InvariantBroken("E3", "bases differ: /srv/x.py"), NOW)
    assert (problem.status, problem.code) == (500, "internal_error")
    assert "E3" not in problem.detail


@pytest.mark.parametrize(
    "error",
    [
        errors.InvariantBroken("E3", "bases differ"),
        errors.Malformed("d", errors=(FieldError("/pr", "required", "Give pr."),)),
        errors.Conflict("d", code="queue_exists", members={"pull_requests": [480]}),
        errors.Overloaded("d", retry_after_s=2),
    ],
)
def test_another_process_receives_an_error_whole(error):
    received = pickle.loads(pickle.dumps(error))
    assert type(received) is type(error)
    assert (str(received), vars(received)) == (str(error), vars(error))


def test_every_code_that_is_answered_has_a_title_of_its_own():
    assert {code for _, _, code, _ in TABLE} <= set(answers.TITLES)


def body_of(error: ServiceError, spelled: Spelling = common.as_named) -> dict[str, object]:
    problem = answers.problem_of(error, NOW, spelled)
    return orjson.loads(problem.as_json("https://queue.example.org", "id-1"))


def test_a_problem_has_six_members_and_the_codes_own():
    error = errors.Conflict(
        "2 pull requests are still in the queue for main: 480, 482.",
        code="queue_not_empty",
        members={"pull_requests": [480, 482], "status": 1},
    )
    assert body_of(error) == {
        "type": "https://queue.example.org/docs/errors/queue_not_empty",
        "title": "The queue is not empty",
        "status": 409,
        "code": "queue_not_empty",
        "detail": "2 pull requests are still in the queue for main: 480, 482.",
        "request_id": "id-1",
        "pull_requests": [480, 482],
    }


def test_faulty_fields_are_spelled_as_they_were_sent():
    found = (
        FieldError("/not_ready_timeout_hours", "range", "must be at most 720"),
        FieldError("/mode", "enum", "must be one of SINGLE, PARALLEL", "SINGLE"),
    )
    assert body_of(errors.Malformed("d", errors=found), to_camel)["errors"] == [
        {"field": "/notReadyTimeoutHours", "code": "range", "message": "must be at most 720"},
        {
            "field": "/mode",
            "code": "enum",
            "message": "must be one of SINGLE, PARALLEL",
            "did_you_mean": "SINGLE",
        },
    ]


def test_settings_that_are_refused_are_named_as_they_were_sent():
    error = errors.Invalid(
        "These settings are set by the file: batch, hedge_threshold.",
        code="set_in_repository_file",
        members={"settings": ("batch", "hedge_threshold")},
    )
    body = body_of(error, to_camel)
    assert body["settings"] == ["batch", "hedgeThreshold"]
    assert body["detail"] == ("These settings are set by the file: batch, hedgeThreshold.")


def test_an_endpoint_in_snake_case_gets_its_names_as_they_are():
    found = (FieldError("/page_query/page_size", "range", "must be at most 100"),)
    body = body_of(errors.Malformed("d", errors=found), common.SnakeRequest.spelled)
    assert body["errors"] == [
        {"field": "/page_query/page_size", "code": "range", "message": "must be at most 100"}
    ]


def test_without_a_public_address_the_type_is_a_relative_reference():
    problem = answers.problem_of(errors.NotFound("d", code="not_in_queue"), NOW)
    assert orjson.loads(problem.as_json(None, "x"))["type"] == "/docs/errors/not_in_queue"


@pytest.mark.parametrize(
    ("accept", "is_text"),
    [
        (None, False),
        ("", False),
        ("*/*", False),
        ("application/json", False),
        ("text/plain", True),
        ("text/*", True),
        ("TEXT/PLAIN; charset=utf-8", True),
        ("text/plain, application/json", False),
        ("text/plain, application/json;q=0.9", True),
        ("text/plain;q=0.5, application/problem+json;q=0.4", True),
        ("text/plain;q=0.5, application/*", False),
        ("text/plain, */*;q=0.1", True),
        ("text/html, */*", False),
        ("text/plain;q=0", False),
        ("text/plain;q=0, */*", False),
    ],
)
def test_plain_text_must_rank_above_every_json_type(accept, is_text):
    assert answers.prefers("text/plain", accept) is is_text


def test_plain_text_is_the_detail_on_one_line():
    problem = answers.problem_of(errors.Invalid("First.\nSecond.", code="limit_reached"), NOW)
    assert answers.content(problem, as_text=True, public_url=None, request_id="x") == (
        "text/plain; charset=utf-8",
        b"First. Second.",
    )


@pytest.mark.parametrize("as_text", [True, False])
def test_a_missing_token_is_answered_in_one_form_only(as_text):
    problem = answers.problem_of(errors.Unauthenticated(callers.NO_TOKEN), NOW)
    assert answers.content(problem, as_text=as_text, public_url=None, request_id="x") == (
        "application/plain-text",
        callers.NO_TOKEN.encode(),
    )


def test_every_answer_has_the_same_headers():
    response = WholeAnswer(200, JSON, b"{}").response("a", {"Retry-After": "1"})
    assert dict(response.headers) == {
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
        "Server": "headgate",
        "Content-Type": "application/json; charset=utf-8",
        "X-Request-Id": "a",
        "Retry-After": "1",
    }


def test_the_answer_to_a_missing_token_names_the_scheme():
    response = WholeAnswer(401, answers.UNAUTHORIZED_TYPE, b"").response("b", {})
    assert response.headers["WWW-Authenticate"] == 'Bearer realm="headgate"'

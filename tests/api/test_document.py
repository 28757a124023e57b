"""The document is the contract: every endpoint, field and code, and nothing that is not true."""

import re

import orjson
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator
from pydantic import TypeAdapter

from bot.cli import app as command_line
from service.http import codes, errors, openapi
from service.http.models.answers.problems import Problem
from service.http.models.common import PullRequestNumber
from service.http.route import Document, Secured
from service.mergequeue.operations.setting_types import Priority
from service.process.api import routes
from tests.contract.api.described import successes

DOCUMENT = orjson.loads(openapi.encoded(routes.CONTRACT))
OPERATIONS = {
    path: (method, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}
SCHEMAS = DOCUMENT["components"]["schemas"]
LISTED = [each for each in routes.ROUTES if not isinstance(each, Document) or each.is_listed]

CONTRACT = {
    "post": {
        *("submitPullRequest", "cancelPullRequest", "restartTestsOnPullRequest"),
        *("setImpactedTargets", "getSubmittedPullRequest", "getSubmittedPullRequests"),
        *("listPullRequests", "getPullRequestTimeline", "explainPullRequest"),
        *("previewCancelPullRequest", "createQueue", "getQueue", "updateQueue", "deleteQueue"),
        *("previewPriority", "findQueue", "getNextStep", "listQueues"),
        *("addQueueHold", "releaseQueueHold", "getMergeQueueTestingDetails"),
        *("getProviderLimits", "getMergeQueueStatistics", "listQueueEvents"),
        "getShadowReport",
        "getTargetHealth",
        *("getShadowReport", "getConflicts"),
        *("flaky-tests/list-tests", "flaky-tests/get-test-history"),
        *("runDoctor", "startDryTest", "getDryTest", "endDryTest"),
        *("listMergeQueueTestingResults", "flaky-tests/list-unhealthy-tests"),
        *("flaky-tests/list-failing-tests", "flaky-tests/list-quarantined-tests"),
        *("flaky-tests/get-test-details", "flaky-tests/check-quarantine"),
        *("flaky-tests/link-ticket-to-test-case", "flaky-tests/set-quarantine-override"),
        *("flaky-tests/flag-test", "flaky-tests/get-settings", "flaky-tests/update-settings"),
        *("flaky-tests/get-upload", "flaky-tests/upload-test-results", "flaky-tests/delete-upload"),
        "flaky-tests/report-early-failure",
        *("flaky-tests/plan-repeats", "flaky-tests/report-repeats"),
        *("flaky-tests/list-slowest-tests", "flaky-tests/plan-shards"),
        *("flaky-tests/get-flake-costs", "flaky-tests/list-bad-machines"),
        *("flaky-tests/get-detection-quality", "flaky-tests/preview-settings"),
        *("tokens/create", "tokens/list", "tokens/rotate", "tokens/revoke"),
        *("webhooks/create-endpoint", "webhooks/list-endpoints", "webhooks/update-endpoint"),
        *("webhooks/delete-endpoint", "webhooks/rotate-secret", "webhooks/test-endpoint"),
        *("webhooks/list-deliveries", "webhooks/replay", "listLandingEvidence"),
    },
    "get": {
        "flaky-tests/list-suspected-tests",
        "getLandingEvidence",
        "getMergeQueueMetrics",
        "streamQueueEvents",
        "tokens/self",
        "status",
    },
}
"""Method → every endpoint under /v1 that clients were promised."""


def test_the_document_is_openapi():
    OpenAPIV31SpecValidator(DOCUMENT).validate()
    assert (DOCUMENT["openapi"], DOCUMENT["info"]["version"]) == ("3.1.0", "1.0.0")


def test_every_operation_describes_a_success_and_reads_by_get_their_etag():
    for path, (method, operation) in OPERATIONS.items():
        successes = [each for each in operation["responses"] if each.startswith("2")]
        assert successes, path
        has_tag = "304" in operation["responses"]
        is_read = method == "get" and path not in ("/v1/status", "/healthz", "/readyz")
        assert has_tag == (is_read and path != "/v1/streamQueueEvents"), path
        assert has_tag == ("ETag" in operation["responses"][successes[0]]["headers"])


def test_every_refusal_and_answer_for_programs_has_an_example():
    for path, (_, operation) in OPERATIONS.items():
        for status, response in operation["responses"].items():
            if "$ref" in response or "content" not in response:
                continue
            for kind, media in response["content"].items():
                if kind == "application/problem+json":
                    assert list(media["examples"]) == response["x-codes"], (path, status)
                elif path.startswith("/v1/") and status == "200":
                    assert media["example"], path
    for code, example in DOCUMENT["components"]["examples"].items():
        Problem.model_validate(example["value"])
        assert (example["value"]["code"], example["value"]["status"]) == (
            code,
            errors.STATUS_OF[code],
        )


def test_the_document_is_the_table_of_routes():
    documented = {(path, method.upper()) for path, (method, _) in OPERATIONS.items()}
    assert documented == {(route.path, route.method) for route in LISTED}


def test_the_table_is_what_clients_were_promised():
    documented = {
        (method, path.removeprefix("/v1/"))
        for path, (method, _) in OPERATIONS.items()
        if path.startswith("/v1/")
    }
    promised = {(method, name) for method, names in CONTRACT.items() for name in names}
    assert documented == promised
    others = {path for path in OPERATIONS if not path.startswith("/v1/")}
    assert others == {
        *("/healthz", "/readyz", "/openapi.json", "/docs", "/docs/api", "/docs/errors/{code}"),
        "/schemas/headgate.json",
    }


@pytest.mark.parametrize("route", LISTED, ids=lambda route: route.path)
def test_an_endpoint_says_what_it_answers_and_by_which_codes(route):
    assert route.answers is not None, "call .answering(model, *codes) on its route"
    responses = OPERATIONS[route.path][1]["responses"]
    own = getattr(route, "codes", ())
    assert set(own) <= set(errors.STATUS_OF)
    assert len(set(own)) == len(own)
    said = {code for status in responses.values() for code in codes_in(status)}
    assert said == set(codes.codes_of(route))
    assert {str(status) for status in successes(route)} <= set(responses)


def codes_in(response):
    return response.get(openapi.CODES, ())


def test_what_needs_a_token_takes_it_by_both_schemes_and_refuses_in_plain_text():
    schemes = DOCUMENT["components"]["securitySchemes"]
    assert {key: value for key, value in schemes["apiToken"].items() if key != "description"} == {
        "type": "apiKey",
        "in": "header",
        "name": "x-api-token",
    }
    assert schemes["bearer"]["scheme"] == "bearer"
    refused = DOCUMENT["components"]["responses"]["Unauthorized"]
    assert list(refused["content"]) == ["application/plain-text"]
    assert refused["content"]["application/plain-text"]["schema"]["type"] == "string"
    for route in LISTED:
        operation = OPERATIONS[route.path][1]
        if isinstance(route, Secured):
            assert operation["security"] == [{"apiToken": []}, {"bearer": []}]
            assert operation["responses"]["401"] == {"$ref": "#/components/responses/Unauthorized"}
        else:
            assert operation["security"] == []
            assert "401" not in operation["responses"]


def test_names_are_unique_and_every_component_is_used():
    names = [operation["operationId"] for _, operation in OPERATIONS.values()]
    assert len(set(names)) == len(names)
    referred = set(re.findall(r"#/components/schemas/([^\"]+)", orjson.dumps(DOCUMENT).decode()))
    assert referred == set(SCHEMAS)
    assert not [name for name in SCHEMAS if not re.fullmatch(r"[A-Za-z]+", name)]


def test_limits_are_written_in_words_that_every_reader_knows():
    text = orjson.dumps(SCHEMAS).decode()
    assert not re.search(r'"(?:ge|le|gt|lt|min_length|max_length)":', text)
    assert "(?!\\\\n)" not in text
    assert ".md" not in orjson.dumps(DOCUMENT).decode()


def constants(value):
    """Every `const` of the document."""
    if isinstance(value, dict):
        found = [value["const"]] if "const" in value else []
        return found + [each for inner in value.values() for each in constants(inner)]
    return [each for inner in value for each in constants(inner)] if isinstance(value, list) else []


def test_a_boolean_that_is_always_the_same_is_no_constant_because_generators_refuse_it():
    assert [each for each in constants(DOCUMENT) if isinstance(each, bool)] == []
    deleted = SCHEMAS["QueueDeleted"]["properties"]["deleted"]
    assert (deleted["type"], deleted["examples"]) == ("boolean", [True])
    assert deleted["description"].endswith("Always `true`.")


def test_every_setting_has_its_bounds():
    properties = SCHEMAS["UpdateQueue"]["properties"]
    assert properties["concurrency"] == {
        "description": "test runs at the same time",
        "type": "integer",
        "minimum": 1,
        "maximum": 1000,
    }
    assert properties["state"]["enum"] == ["RUNNING", "PAUSED", "DRAINING"]
    assert SCHEMAS["UpdateQueue"]["additionalProperties"] is False
    nullable = {name for name, field in properties.items() if {"type": "null"} in taken(field)}
    assert nullable == {"requiredStatuses", "stateReason"}


def taken(field):
    return field.get("anyOf", ())


@pytest.mark.parametrize(
    ("kind", "digits", "is_taken"),
    [
        *((PullRequestNumber, text, True) for text in ("1", "0482", "4294967295", "999999999")),
        *((PullRequestNumber, text, False) for text in ("0", "000", "4294967296", "5000000000")),
        *((Priority, text, True) for text in ("0", "7", "42", "100", "255", "0000000255")),
        *((Priority, text, False) for text in ("256", "300", "1000", "00000000255", "")),
    ],
)
def test_the_pattern_of_a_digit_string_takes_what_the_field_takes(kind, digits, is_taken):
    (pattern,) = (
        each["pattern"]
        for said in kind.__metadata__
        if isinstance(getattr(said, "json_schema", None), dict)
        for each in said.json_schema["anyOf"]
        if "pattern" in each
    )
    assert (re.search(pattern, digits) is not None) is is_taken
    assert accepts(kind, digits) is is_taken


def accepts(kind, value):
    try:
        TypeAdapter(kind).validate_python(value)
    except ValueError:
        return False
    return True


def test_each_code_has_a_status_a_title_and_a_remedy():
    assert set(errors.STATUS_OF) == set(errors.TITLES) == set(codes.REMEDIES)
    assert sum(len(same) for same in errors.STATUSES.values()) == len(errors.STATUS_OF)
    for remedy in codes.REMEDIES.values():
        assert remedy.endswith(".")
        assert remedy.count("`") % 2 == 0


def test_the_command_prints_what_is_served(capsys):
    assert command_line.run(["openapi", "--json"]) == 0
    assert capsys.readouterr().out.encode() == openapi.encoded(routes.CONTRACT) + b"\n"
    assert command_line.run(["openapi"]) == 0
    assert orjson.loads(capsys.readouterr().out) == DOCUMENT

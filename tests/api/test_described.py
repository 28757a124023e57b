"""Everything in the OpenAPI document explains itself, in both cases of enums."""

import re
from typing import Any

import jsonschema_rs
import orjson
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from service.errors import Malformed
from service.http import encoding, openapi, schemas
from service.http.models import common
from service.http.models.answers.common import Answer
from service.mergequeue.api.models import queues
from service.notifications import messages
from service.process.api import routes
from service.runtime import EnumCase
from tests.api.test_forms import subclasses

DOCUMENT = orjson.loads(openapi.encoded(routes.CONTRACT))
LOWER = orjson.loads(openapi.encoded(routes.CONTRACT, EnumCase.LOWER))


def operations(document: Any) -> list[Any]:
    """Every operation of the document, incoming and outgoing."""
    places = [*document["paths"].values(), *document["webhooks"].values()]
    return [operation for place in places for operation in place.values()]


def is_a_page(kind: str) -> bool:
    return kind.startswith("text/") or kind == "application/problem+json"


def contents(operation: Any) -> list[Any]:
    """What an operation takes and answers, without texts and refusals."""
    bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
    return [
        content
        for body in bodies
        for kind, content in body.get("content", {}).items()
        if not is_a_page(kind) and content["schema"] != {"type": "object"}
    ]


def test_answers_in_snake_case_have_no_field_in_camel_case():
    models = [each for each in subclasses(Answer) if not each.model_config["alias_generator"]]
    assert len(models) > 50
    aliases = {
        field.alias for each in models for field in each.model_fields.values() if field.alias
    }
    assert {each for each in aliases if each != each.lower()} == set()


@pytest.mark.parametrize("operation", operations(DOCUMENT), ids=lambda each: each["operationId"])
def test_an_operation_has_a_name_a_summary_a_description_a_tag_and_examples(operation):
    assert re.fullmatch(r"[a-z]+([A-Z][a-z]+|PR)*", operation["operationId"])
    assert operation["summary"][0].isupper()
    assert operation["description"].endswith(".")
    assert not operation["description"].startswith("`/")
    (tag,) = operation["tags"]
    assert tag in openapi.TAGS
    assert all("example" in content for content in contents(operation))
    for parameter in operation.get("parameters", ()):
        assert parameter["description"]


@pytest.mark.parametrize("document", [DOCUMENT, LOWER], ids=["spec", "lower"])
def test_every_example_is_what_its_schema_says(document):
    checked = 0
    for operation in operations(document):
        for content in contents(operation):
            schema = {**content["schema"], "components": document["components"]}
            jsonschema_rs.Draft202012Validator(schema).validate(content["example"])
            checked += 1
    assert checked > 100


@pytest.mark.parametrize("name", DOCUMENT["components"]["schemas"])
def test_every_object_and_field_has_a_description(name):
    schema = DOCUMENT["components"]["schemas"][name]
    fields = schema.get("properties", {})
    assert not fields or schema["description"]
    assert [field for field, value in fields.items() if not value.get("description")] == []


def test_there_is_one_schema_of_refusals_and_no_other_form():
    refused = [
        content["schema"]
        for operation in operations(DOCUMENT)
        for response in operation["responses"].values()
        for kind, content in response.get("content", {}).items()
        if kind == "application/problem+json"
    ]
    assert {orjson.dumps(each) for each in refused} == {b'{"$ref":"#/components/schemas/Problem"}'}
    assert len(refused) > 500


def test_the_document_says_by_whom_and_under_which_licence():
    assert DOCUMENT["info"]["license"] == {"name": "Apache-2.0", "identifier": "Apache-2.0"}
    assert DOCUMENT["servers"][0]["url"] == "/"
    assert [tag["name"] for tag in DOCUMENT["tags"]] == list(openapi.TAGS)
    used = {tag for operation in operations(DOCUMENT) for tag in operation["tags"]}
    assert used == set(openapi.TAGS)


def test_every_event_that_an_endpoint_may_select_is_sent():
    assert set(DOCUMENT["webhooks"]) == set(messages.EVENTS)


@pytest.mark.soak
def test_the_document_of_a_service_in_lower_case_is_openapi():
    OpenAPIV31SpecValidator(LOWER).validate()


def test_the_document_of_a_service_in_lower_case_has_its_words_in_lower_case():
    shown = LOWER["components"]["schemas"]
    assert shown["QueueState"]["enum"] == ["running", "paused", "draining", "switching_modes"]
    assert "pending_failure" in shown["EntryState"]["enum"]
    assert shown["StatusCheckShown"] == DOCUMENT["components"]["schemas"]["StatusCheckShown"]
    assert shown["Override"] == DOCUMENT["components"]["schemas"]["Override"]
    answered = orjson.dumps(LOWER["paths"]["/v1/getQueue"]["post"]["responses"]["200"]).decode()
    assert '"state":"running"' in answered
    assert '"RUNNING"' not in answered


def test_an_enum_is_answered_in_one_case_everywhere():
    words = encoding.WORDS | schemas.MESSAGE_WORDS
    kept: set[str] = set()
    for schema in LOWER["components"]["schemas"].values():
        for field, value in schema.get("properties", {}).items():
            if field not in words:
                kept.update(re.findall(r"schemas/(\w+)", orjson.dumps(value).decode()))
    changed = {
        name
        for name, schema in LOWER["components"]["schemas"].items()
        if "enum" in schema and schema != DOCUMENT["components"]["schemas"][name]
    }
    assert changed
    assert changed & kept == set()


TEXTS = ["a", " a ", " ", "\u3000", "\n", "a\nb", "\n\na\n", "a\tb", "bell \a", "a\x85", "\x1c", ""]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("name", ["commitTitle", "commitBody", "enqueueingLabel"])
def test_the_document_allows_the_texts_that_are_taken_for_a_setting(name, text):
    schema = DOCUMENT["components"]["schemas"]["UpdateQueue"]["properties"][name]
    repo = {"host": "github.com", "owner": "octo", "name": "widgets"}
    body = {"repo": repo, "targetBranch": "main", name: text}
    if jsonschema_rs.is_valid(schema, text):
        common.read(queues.UpdateQueue, body)
        return
    with pytest.raises(Malformed):
        common.read(queues.UpdateQueue, body)


def test_the_example_of_a_submission_does_not_contradict_itself():
    operation = DOCUMENT["paths"]["/v1/submitPullRequest"]["post"]
    record = operation["responses"]["200"]["content"]["application/json"]["example"]
    assert record["position"] <= record["queueLength"]
    assert (record["state"], record["reason"]) == ("TESTING", "test_started")
    assert record["timeline"][-1]["to"] == record["state"]
    assert record["timeline"][-1]["reason"] == record["reason"]
    assert (record["priorityValue"], record["priorityName"]) == (100, "medium")
    assert not record["skipTheLine"]
    assert (record["verifiedByTestRun"], record["conclusion"], record["requiredChecks"]) == (
        None,
        None,
        [],
    )
    assert record["eta"]["earliest"] < record["eta"]["latest"]

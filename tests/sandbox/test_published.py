"""Deviations from GitHub's published descriptions are found, in each kind of traffic."""

import copy
import json

import pytest

from tests.harness import needs, published
from tests.harness.published import operation_of
from tests.sandbox.client import REPO


@pytest.fixture(autouse=True)
def assets():
    needs.needs("assets")


def found_in(*problems):
    return [each for one in problems for each in one]


def test_a_path_is_found_by_its_words_and_not_by_a_parameter():
    checks = operation_of("GET", "/repos/octo/widgets/commits/main/check-runs")
    rename = operation_of("POST", "/repos/octo/widgets/branches/headgate/temp/1/rename")
    assert checks is not None
    assert rename is not None
    assert checks.name == "GET /repos/{owner}/{repo}/commits/{ref}/check-runs"
    assert rename.name == "POST /repos/{owner}/{repo}/branches/{branch}/rename"
    assert operation_of("GET", "/repos/octo/widgets/nothing") is None


def test_what_a_request_must_not_have_is_found():
    merge = operation_of("PUT", f"/repos/{REPO}/pulls/1/merge")
    assert merge is not None
    assert found_in(merge.request_problems({"page": "2"}, None)) == ["unknown parameter page"]
    wrong = {"merge_method": "fast-forward"}
    assert "merge_method" in found_in(merge.request_problems({}, wrong))[0]


async def test_a_field_that_an_answer_lacks_or_mistakes_is_found(person):
    get = operation_of("GET", f"/repos/{REPO}")
    assert get is not None
    answer = (await person("bob").call("GET", f"/repos/{REPO}")).body
    assert found_in(get.answer_problems(200, answer)) == []
    lacking = copy.deepcopy(answer)
    del lacking["owner"]["login"]
    assert found_in(get.answer_problems(200, lacking)) == ['owner: "login" is a required property']
    assert found_in(get.answer_problems(418, answer)) == ["status 418 is not described"]


def test_a_webhook_without_a_field_is_found():
    path = needs.asset("@octokit/webhooks-examples", "api.github.com/index.json")
    examples = {one["name"]: one["examples"] for one in json.loads(path.read_text("utf-8"))}
    payload = next(one for one in examples["status"])
    whole = found_in(published.webhook_problems("status", payload))
    del payload["context"]
    assert set(found_in(published.webhook_problems("status", payload))) - set(whole) == {
        ': "context" is a required property'
    }
    assert found_in(published.webhook_problems("status-made-up", {})) == ["no such webhook"]


def test_a_field_that_the_schema_does_not_know_is_found():
    sent = {"query": "query { viewer { login shoeSize } }"}
    assert found_in(published.graphql_problems(sent, {"data": None, "errors": [{}]})) == [
        "Cannot query field 'shoeSize' on type 'User'."
    ]
    sent = {"query": "query { viewer { login } }"}
    answer = {"data": {"viewer": {"login": None}}}
    assert found_in(published.graphql_problems(sent, answer)) == [
        "Cannot return null for non-nullable field User.login."
    ]

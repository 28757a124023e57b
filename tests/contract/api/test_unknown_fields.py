"""Unknown fields: listed where the specification names the endpoint, refused everywhere else."""

import aiohttp
import pytest

from service.http.route import Posted
from service.process.api import routes

POSTED = {
    each.path.removeprefix("/v1/"): each for each in routes.ROUTES if isinstance(each, Posted)
}
LISTING = {
    *("submitPullRequest", "cancelPullRequest", "restartTestsOnPullRequest"),
    *("getSubmittedPullRequest", "setImpactedTargets", "getMergeQueueTestingDetails"),
    *("createQueue", "deleteQueue", "getQueue"),
    *("flaky-tests/list-unhealthy-tests", "flaky-tests/list-failing-tests"),
}
"""Endpoints of the specification. `updateQueue` has always refused a setting that is none."""
REFUSING = sorted(POSTED.keys() - LISTING - {"flaky-tests/upload-test-results"})


def test_an_endpoint_lists_what_it_ignores_exactly_where_its_request_ignores_it():
    found = {name for name, each in POSTED.items() if each.model.ignores_unknown}
    shows = {
        name
        for name, each in POSTED.items()
        if "ignored_fields" in getattr(each.answers, "model_fields", ())
    }
    assert found == shows == LISTING


@pytest.mark.parametrize("name", REFUSING)
async def test_every_other_endpoint_refuses_a_field_that_it_does_not_know(client, name):
    answer = await client.post(name, {"nobody_knows_me": 1})
    assert answer.is_problem(400, "unknown_field")
    places = [each["field"] for each in answer.json["errors"] if each["code"] == "unknown"]
    assert places == ["/nobody_knows_me"]


async def test_a_token_with_a_misspelled_limit_is_not_made(client):
    body = {"name": "x", "role": "read", "repos": [{}], "expire_in_days": 3}
    answer = await client.post("tokens/create", body)
    assert answer.is_problem(400, "unknown_field")
    errors = [(each["field"], each.get("did_you_mean")) for each in answer.json["errors"]]
    assert errors == [("/repos", "repositories"), ("/expire_in_days", "expires_in_days")]
    assert "did you mean `repositories`" in answer.json["detail"]


async def test_a_hold_with_a_misspelled_end_is_not_placed(client, queue):
    body = queue.named(text="freeze", untl="2030-01-01T00:00:00Z", scop="LAND")
    answer = await client.post("addQueueHold", body)
    assert answer.is_problem(400, "unknown_field")
    assert (await queue.get())["holds"] == []


async def test_a_submission_lists_what_it_ignored_with_what_was_probably_meant(client, queue):
    number = await queue.world.open_pull_request(queue.branch)
    body = queue.about(number, prioritty="urgent", nobatch=True)
    body["pr"]["headSha"] = "a" * 40
    body["repo"] = {**body["repo"], "id": 7}
    made = await client.done("submitPullRequest", body)
    assert (made["result"], made["priorityName"], made["noBatch"]) == ("created", "medium", False)
    assert made["ignoredFields"] == ["nobatch", "pr.headSha", "prioritty", "repo.id"]
    assert made["didYouMean"] == {
        "nobatch": "noBatch",
        "pr.headSha": "pr.sha",
        "prioritty": "priority",
    }


@pytest.mark.parametrize(
    "name",
    ["getSubmittedPullRequest", "restartTestsOnPullRequest", "cancelPullRequest"],
)
async def test_answers_about_a_pull_request_list_what_was_ignored(client, queue, name):
    number = await queue.submitted()
    answer = await client.done(name, queue.about(number, targetBranches=["x"], mystery=1))
    assert answer["ignoredFields"] == ["mystery", "targetBranches"]
    assert answer["didYouMean"] == {"targetBranches": "targetBranch"}
    assert answer["prNumber"] == number


async def test_answers_about_queues_and_targets_list_what_was_ignored(client, queue):
    number = await queue.world.open_pull_request(queue.branch)
    read = await client.done("getQueue", queue.named(waitFr=1))
    assert (read["ignoredFields"], read["didYouMean"]) == (["waitFr"], {"waitFr": "waitFor"})
    targets = queue.about(number, impactedTargets="ALL", base="main")
    assert (await client.done("setImpactedTargets", targets))["ignoredFields"] == ["base"]
    gone = await client.done("deleteQueue", queue.named(force=True))
    assert (gone["deleted"], gone["ignoredFields"]) == (True, ["force"])
    assert "didYouMean" not in gone


async def test_what_is_ignored_does_not_change_the_version_of_a_record(client, queue):
    plain, more = await queue.get(), await client.done("getQueue", queue.named(x=1))
    assert more == {**plain, "ignoredFields": ["x"]}


async def test_lists_of_tests_list_what_was_ignored_also_in_their_page_query(client):
    repo = client.named()["repo"]
    body = {"repo": repo, "org_url_slug": client.instance.owner, "status": "FLAKY"}
    query = {"page_size": 2, "token": "x"}
    name = "flaky-tests/list-unhealthy-tests"
    answer = await client.done(name, {**body, "page_query": query, "stat": "BROKEN"})
    assert answer["ignored_fields"] == ["page_query.token", "stat"]
    assert answer["did_you_mean"] == {"page_query.token": "page_query.page_token", "stat": "status"}


async def test_a_repeated_request_lists_the_same(client, queue, session):
    number = await queue.world.open_pull_request(queue.branch)
    body = queue.about(number, colour="red")
    headers = {"x-api-token": client.instance.admin_token, "Idempotency-Key": f"k{number}"}
    address = f"{client.instance.url}/v1/submitPullRequest"
    texts = []
    for _ in range(2):
        async with session.post(address, json=body, headers=headers) as answer:
            texts.append(await answer.text())
    assert texts[0] == texts[1]
    assert '"ignoredFields":["colour"]' in texts[0]


@pytest.fixture
async def session():
    async with aiohttp.ClientSession() as own:
        yield own


async def test_a_stream_of_events_refuses_a_parameter_that_it_does_not_know(client, queue):
    repo = queue.named()["repo"]
    query = f"host={repo['host']}&owner={repo['owner']}&name={repo['name']}"
    path = f"/v1/streamQueueEvents?{query}&targetBranch={queue.branch}&curser=x"
    answer = await client.ask("GET", path)
    assert answer.is_problem(400, "invalid_parameter")
    assert "did you mean `cursor`" in answer.json["detail"]


async def test_metrics_ignore_a_parameter_that_they_do_not_know(client):
    assert (await client.ask("GET", "/v1/getMergeQueueMetrics?scrape=1")).status == 200

"""The one next step: read at once, waited for, and given with a refusal."""

import asyncio

STEP = [
    *("prNumber", "targetBranch", "kind", "text", "code", "whoMustAct", "person", "since", "at"),
    *("pullRequests", "commit", "paths", "percent", "suspects", "call", "recordVersion"),
    *("conflictsWith", "failures"),
]


async def test_what_was_never_submitted_is_submitted_by_its_call(client, queue):
    number = await queue.world.open_pull_request(queue.branch)
    step = await client.done("getNextStep", queue.about(number))
    assert list(step) == STEP
    assert (step["kind"], step["code"]) == ("SUBMIT", "never_submitted")
    call = step["call"]
    assert (call["method"], call["path"]) == ("POST", "/v1/submitPullRequest")
    made = await client.done(call["path"].removeprefix("/v1/"), call["body"])
    assert made["result"] == "created"


async def test_a_wait_ends_when_the_step_is_another_one(client, queue):
    number = await queue.world.open_pull_request(queue.branch)
    step = await client.done("getNextStep", queue.about(number))
    version = step["recordVersion"]
    known = queue.about(number, sinceVersion=version, waitFor=20)
    waiting = asyncio.create_task(client.done("getNextStep", known))
    await client.done("submitPullRequest", queue.about(number))
    other = await waiting
    assert other["kind"] != "SUBMIT"
    assert other["recordVersion"] != version


async def test_a_wait_that_is_over_answers_the_same_step(client, queue):
    number = await queue.world.open_pull_request(queue.branch)
    step = await client.done("getNextStep", queue.about(number))
    known = queue.about(number, sinceVersion=step["recordVersion"], waitFor=1)
    assert await client.done("getNextStep", known) == step


async def test_a_refused_submission_says_what_to_do_next(client, queue):
    answer = await client.post("submitPullRequest", queue.about(1_999_999))
    assert answer.is_problem(404, "pull_request_not_found")
    step = answer.json["next_step"]
    assert list(step) == STEP
    assert (step["kind"], step["code"], step["call"]) == ("DROP", "pull_request_not_found", None)


async def test_an_explanation_has_the_same_step(client, queue):
    number = await queue.submitted()
    explained = await client.done("explainPullRequest", queue.about(number))
    step = await client.done("getNextStep", queue.about(number))
    assert explained["nextStep"]["prNumber"] == step["prNumber"] == number
    assert list(explained["nextStep"]) == list(step)

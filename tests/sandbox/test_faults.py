"""Faults as values: each one, on the call or the delivery it means, as often as it says."""

import asyncio

import aiohttp
import pytest

from bot.sandbox.refusal import Refusal
from tests.sandbox.client import REPO

GET = f"/repos/{REPO}"
COMMENTS = f"/repos/{REPO}/issues/1/comments"


@pytest.fixture
async def pull(sandbox):
    return await sandbox.act("open", "bob", REPO, files={"a.txt": "a"})


async def fault(sandbox, kind, match=None, **value):
    return await sandbox.control.add_fault({"match": match or {}, "fault": {"kind": kind, **value}})


def comments(sandbox):
    return [one.body for one in sandbox.repository(REPO).issues[1].comments]


async def test_fail_before_does_nothing_and_fail_after_has_acted(sandbox, app, pull):
    await fault(sandbox, "fail_before", {"method": "POST"}, status=503)
    assert (await app.call("POST", COMMENTS, {"body": "one"})).status == 503
    assert comments(sandbox) == []
    await sandbox.control.clear_faults({})
    await fault(sandbox, "fail_after", {"method": "POST"}, status=502)
    assert (await app.call("POST", COMMENTS, {"body": "two"})).status == 502
    assert comments(sandbox) == ["two"]


async def test_a_reset_cuts_the_connection_before_or_after(sandbox, app, pull):
    await fault(sandbox, "reset_before", {"method": "POST", "nth": 1})
    await fault(sandbox, "reset_after", {"method": "POST", "nth": 2})
    for body in ("one", "two"):
        with pytest.raises(aiohttp.ClientError):
            await app.call("POST", COMMENTS, {"body": body})
    assert comments(sandbox) == ["two"]


async def test_a_truncated_answer_ends_early(sandbox, app):
    await fault(sandbox, "truncate")
    with pytest.raises(aiohttp.ClientPayloadError):
        await app.call("GET", GET)


async def test_html_comes_instead_of_json(sandbox, app):
    await fault(sandbox, "html")
    answer = await app.call("GET", GET)
    assert answer.body.startswith(b"<!DOCTYPE html>")


async def test_a_call_hangs_for_seconds_of_the_world_and_is_served_then(sandbox, app):
    await fault(sandbox, "hang", {"path": "/repos/*"}, s=30)
    call = asyncio.ensure_future(app.call("GET", GET))
    await until(sandbox.world.timeline.waiting)
    before = sandbox.world.now()
    await sandbox.settle()
    assert (await call).status == 200
    assert (sandbox.world.now() - before).total_seconds() == 30


async def until(condition):
    """Let others run until the condition holds."""
    for _ in range(10_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came true")


async def test_limits_look_like_the_providers(sandbox, app):
    await fault(sandbox, "primary_limit", {"times": 1}, s=30)
    answer = await app.call("GET", GET)
    assert (answer.status, answer.headers["X-RateLimit-Remaining"]) == (403, "0")
    assert "rate limit exceeded" in answer.body["message"]
    await fault(sandbox, "secondary_limit", {"times": 1}, retry_after=7)
    answer = await app.call("GET", GET)
    assert (answer.status, answer.headers["Retry-After"]) == (403, "7")
    await fault(sandbox, "secondary_limit", {"times": 1})
    answer = await app.call("GET", GET)
    assert "Retry-After" not in answer.headers
    assert "secondary rate limit" in answer.body["message"]
    assert (await app.call("GET", GET)).status == 200


async def test_a_passing_permission_fault_looks_like_a_conflict(sandbox, app, pull):
    await fault(sandbox, "permission_409", {"path": "*/merges", "times": 1})
    body = {"base": "main", "head": pull["head"]}
    assert (await app.call("POST", f"/repos/{REPO}/merges", body)).status == 409
    assert (await app.call("POST", f"/repos/{REPO}/merges", body)).status == 201


async def test_mergeability_is_forgotten_for_a_while(sandbox, app, pull):
    await sandbox.settle()
    await fault(sandbox, "mergeable_null", {"graphql": "pullRequest", "times": 1}, s=20)
    assert (await app.facts(1))["mergeable"] == "UNKNOWN"
    await sandbox.settle()
    assert (await app.facts(1))["mergeable"] == "MERGEABLE"


@pytest.mark.parametrize("method", ["merge", "squash", "rebase"])
async def test_a_merge_lands_another_tree(sandbox, app, pull, method):
    await sandbox.settle()
    await fault(sandbox, "other_tree", {"path": "*/pulls/*/merge"})
    path = f"/repos/{REPO}/pulls/1/merge"
    sha = (await app.call("PUT", path, {"merge_method": method})).body["sha"]
    objects = sandbox.repository(REPO).git.objects
    assert objects.file_at(sha, "SANDBOX-OTHER-TREE") is not None
    assert objects.file_at(sha, "a.txt") == b"a"


async def test_a_graphql_answer_comes_in_part(sandbox, app, pull):
    await fault(sandbox, "graphql_partial", {"graphql": "repository"})
    named = 'repository(owner: "octo", name: "widgets") { nameWithOwner }'
    answer = await app.graphql(f"{{ first: {named} {named} }}")
    assert answer["data"] == {"first": {"nameWithOwner": REPO}, "repository": None}
    assert answer["errors"][0]["path"] == ["repository"]


async def test_a_token_expires_early(sandbox, app):
    await fault(sandbox, "token_expired", {"times": 1})
    assert (await app.call("GET", GET)).status == 401
    assert (await app.call("GET", GET)).status == 401, "it stays worthless"


async def test_a_person_is_faster_than_the_call(sandbox, app, pull):
    await sandbox.settle()
    act = {"act": "push", "as": "bob", "repo": REPO, "number": 1, "files": {"b.txt": "b"}}
    await fault(sandbox, "before", {"path": "*/pulls/1/merge"}, act=act)
    answer = await app.call("PUT", f"/repos/{REPO}/pulls/1/merge", {"sha": pull["head"]})
    assert answer.status == 409


async def test_a_fault_strikes_the_nth_match_so_many_times(sandbox, app):
    await fault(sandbox, "fail_before", {"path": "/repos/*", "nth": 2, "times": 2}, status=500)
    seen = [(await app.call("GET", GET)).status for _ in range(5)]
    assert seen == [200, 500, 500, 200, 200]
    listed = (await sandbox.control.list_faults({}))["faults"]
    assert (listed[0]["matched"], listed[0]["struck"]) == (5, 2)


async def test_what_a_fault_did_is_in_the_log_of_calls(sandbox, app):
    await fault(sandbox, "fail_before", {"path": "/repos/*"}, status=500)
    await app.call("GET", GET)
    call = sandbox.world.calls[-1]
    assert (call["path"], call["status"], call["faults"]) == (f"/api/v3{GET}", 500, ["fail_before"])
    assert call["by"] == "headgate[bot]"


@pytest.mark.parametrize(
    "value",
    [
        {"match": {"verb": "GET"}, "fault": {"kind": "html"}},
        {"match": {}, "fault": {"kind": "surprise"}},
        {"match": {}},
    ],
)
async def test_a_malformed_fault_is_refused(sandbox, value):
    with pytest.raises(Refusal) as refused:
        await sandbox.control.add_fault(value)
    assert refused.value.status == 400


async def archive(sandbox, times=1):
    for number in range(times):
        await sandbox.act("archive", "alice", REPO, archived=number % 2 == 0)


async def test_a_delivery_is_lost(sandbox, receiver):
    await fault(sandbox, "drop", {"event": "repository", "nth": 1})
    await archive(sandbox, 2)
    await sandbox.settle()
    assert receiver.events() == ["repository.unarchived"]


async def test_a_delivery_comes_several_times_under_one_guid(sandbox, receiver):
    await fault(sandbox, "duplicate", {"event": "repository"}, n=2)
    await archive(sandbox)
    await sandbox.settle()
    guids = {headers["X-GitHub-Delivery"] for headers, _ in receiver.received}
    assert (len(receiver.received), len(guids)) == (3, 1)


async def test_a_delivery_comes_late(sandbox, receiver):
    await fault(sandbox, "delay", {"event": "repository", "action": "archived"}, s=60)
    await archive(sandbox, 2)
    await sandbox.settle()
    assert receiver.events() == ["repository.unarchived", "repository.archived"]


async def test_deliveries_come_out_of_order(sandbox, receiver):
    await fault(sandbox, "reorder", {"event": "repository"}, window=100)
    await archive(sandbox, 12)
    await sandbox.settle()
    expected = ["repository.archived", "repository.unarchived"] * 6
    assert sorted(receiver.events()) == sorted(expected)
    assert receiver.events() != expected


async def test_an_app_that_creates_too_much_content_is_told_to_wait(sandbox, app):
    await sandbox.seed(knobs={"content_minute_max": 3})
    number = (await sandbox.act("open", "bob", REPO, files={"a.txt": "a"}))["number"]
    path = f"/repos/{REPO}/issues/{number}/comments"
    answers = [await app.call("POST", path, {"body": "x"}) for _ in range(4)]
    assert [one.status for one in answers] == [201, 201, 201, 403]
    assert "temporarily blocked from content creation" in answers[3].body["message"]
    assert answers[3].headers["Retry-After"] == "60"
    assert (await app.call("GET", path)).status == 200
    sandbox.world.timeline.advance(61)
    assert (await app.call("POST", path, {"body": "x"})).status == 201

"""Row Issues: made, changed, closed and reopened by the App that may, listed with pull requests."""

import pytest

from bot.sandbox.app import PERMISSIONS
from tests.sandbox.client import REPO, as_app

PATH = f"/repos/{REPO}/issues"


@pytest.fixture
async def writer(sandbox, http):
    """The App after its owner has granted it `issues: write`."""
    granted = {**PERMISSIONS, "issues": "write"}
    await sandbox.act("permissions", "alice", REPO, permissions=granted)
    return await as_app(sandbox, http)


async def test_an_issue_is_made_rewritten_closed_and_reopened(writer):
    made = await writer.call("POST", PATH, {"title": "one", "body": "text"})
    assert (made.status, made.body["state"], made.body["closed_at"]) == (201, "open", None)
    assert made.body["user"]["login"] == "headgate[bot]"
    one = f"{PATH}/{made.body['number']}"
    changed = (await writer.call("PATCH", one, {"title": "two", "state": "closed"})).body
    assert (changed["title"], changed["body"], changed["state"]) == ("two", "text", "closed")
    assert changed["closed_at"]
    assert changed["closed_by"]["login"] == "headgate[bot]"
    again = (await writer.call("PATCH", one, {"state": "open"})).body
    assert (again["state"], again["closed_at"], again["closed_by"]) == ("open", None, None)
    assert await writer.get(one) == again


async def test_without_the_permission_nothing_is_written(sandbox, app):
    number = (await sandbox.act("open_issue", "bob", REPO, title="It fails"))["number"]
    one = f"{PATH}/{number}"
    for method, path, body in (
        ("POST", PATH, {"title": "one"}),
        ("PATCH", one, {"state": "closed"}),
        ("POST", f"{one}/comments", {"body": "hello"}),
    ):
        assert (await app.call(method, path, body)).status == 403
    assert (await app.get(one))["comments"] == 0


async def test_the_list_holds_pull_requests_too_and_tells_creators_and_states_apart(
    sandbox, writer
):
    await sandbox.act("open", "bob", REPO, files={"a.txt": "a"})
    await sandbox.act("open_issue", "bob", REPO, title="It fails")
    made = (await writer.call("POST", PATH, {"title": "one"})).body["number"]
    await sandbox.act("close", "alice", REPO, number=made)
    assert ["pull_request" in each for each in await writer.get(PATH)] == [False, True]
    ours = f"{PATH}?creator=headgate[bot]"
    assert await writer.get(ours) == []
    assert [each["number"] for each in await writer.get(f"{ours}&state=all")] == [made]
    await sandbox.act("reopen", "alice", REPO, number=made)
    assert [each["number"] for each in await writer.get(ours)] == [made]


@pytest.mark.parametrize("body", [{"title": " "}, {"title": "x" * 257}])
async def test_an_empty_or_too_long_text_is_422(writer, body):
    assert (await writer.call("POST", PATH, body)).status == 422


async def test_a_repository_without_issues_takes_none(sandbox, writer):
    sandbox.repository(REPO).settings.issues = False
    assert (await writer.get(f"/repos/{REPO}"))["has_issues"] is False
    answer = await writer.call("POST", PATH, {"title": "one"})
    said = "Issues has been disabled in this repository."
    assert (answer.status, answer.body["message"]) == (410, said)


async def test_a_pull_request_is_not_changed_as_an_issue(sandbox, writer):
    number = (await sandbox.act("open", "bob", REPO, files={"a.txt": "a"}))["number"]
    assert (await writer.call("PATCH", f"{PATH}/{number}", {"state": "closed"})).status == 404


async def test_apps_that_listen_hear_of_issues(sandbox, writer, receiver):
    sandbox.world.apps["headgate"].events.append("issues")
    made = (await writer.call("POST", PATH, {"title": "one"})).body["number"]
    await writer.call("PATCH", f"{PATH}/{made}", {"title": "two", "state": "closed"})
    await sandbox.act("reopen", "alice", REPO, number=made)
    await sandbox.settle()
    told = [one["action"] for one in receiver.payloads("issues")]
    assert told == ["opened", "edited", "closed", "reopened"]

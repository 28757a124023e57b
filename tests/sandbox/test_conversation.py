"""Row Comments: comments, reactions, labels, checkboxes and buttons."""

import pytest

from bot.sandbox.refusal import Refusal
from tests.sandbox.client import REPO


@pytest.fixture
async def pull(sandbox):
    return (await sandbox.act("open", "bob", REPO, files={"a.txt": "a"}))["number"]


async def test_a_comment_of_the_app_says_that_it_is_one(sandbox, app, pull):
    path = f"/repos/{REPO}/issues/{pull}/comments"
    made = await app.call("POST", path, {"body": "hello"})
    assert made.status == 201
    assert made.body["user"]["login"] == "headgate[bot]"
    assert made.body["performed_via_github_app"]["id"] == sandbox.app_id
    assert [one["id"] for one in await app.get(path)] == [made.body["id"]]


async def test_the_addresses_of_a_bot_are_encoded_and_its_page_is_that_of_its_app(app, pull):
    made = await app.call("POST", f"/repos/{REPO}/issues/{pull}/comments", {"body": "hello"})
    user = made.body["user"]
    assert user["url"].endswith("/users/headgate%5Bbot%5D")
    assert user["followers_url"].endswith("/users/headgate%5Bbot%5D/followers")
    assert user["html_url"].endswith("/apps/headgate")


async def test_an_edit_tells_what_stood_there_before(sandbox, app, pull, receiver):
    path = f"/repos/{REPO}/issues"
    made = await app.call("POST", f"{path}/{pull}/comments", {"body": "one"})
    await app.call("PATCH", f"{path}/comments/{made.body['id']}", {"body": "two"})
    await sandbox.settle()
    edited = [one for one in receiver.payloads("issue_comment") if one["action"] == "edited"]
    assert edited[0]["changes"] == {"body": {"from": "one"}}
    assert edited[0]["comment"]["body"] == "two"


@pytest.mark.parametrize("body", ["  ", "x" * 262_145])
async def test_an_empty_or_too_long_comment_is_422(app, pull, body):
    answer = await app.call("POST", f"/repos/{REPO}/issues/{pull}/comments", {"body": body})
    assert answer.status == 422


async def test_a_locked_conversation_takes_no_comment_of_the_app(sandbox, app, pull):
    await sandbox.act("lock", "alice", REPO, number=pull)
    answer = await app.call("POST", f"/repos/{REPO}/issues/{pull}/comments", {"body": "x"})
    assert answer.status == 403
    assert "locked" in answer.body["message"]


async def test_a_reaction_is_made_once(sandbox, app, pull):
    comment = (await sandbox.act("comment", "bob", REPO, number=pull, body="/merge"))["comment"]
    path = f"/repos/{REPO}/issues/comments/{comment}/reactions"
    first = await app.call("POST", path, {"content": "+1"})
    again = await app.call("POST", path, {"content": "+1"})
    assert (first.status, again.status) == (201, 200)
    assert first.body["id"] == again.body["id"]
    assert (await app.call("POST", path, {"content": "shrug"})).status == 422


async def test_labels_are_made_when_missing_and_added_once(sandbox, pull, receiver):
    for act in ("label", "label", "unlabel"):
        await sandbox.act(act, "alice", REPO, number=pull, label="queued")
    with pytest.raises(Refusal, match="Label does not exist"):
        await sandbox.act("unlabel", "alice", REPO, number=pull, label="queued")
    await sandbox.settle()
    actions = [one["action"] for one in receiver.payloads("pull_request")]
    assert actions == ["labeled", "unlabeled"]


async def test_the_timeline_has_each_change_of_a_label(sandbox, app, pull):
    for act in ("label", "unlabel"):
        await sandbox.act(act, "alice", REPO, number=pull, label="queued")
    kinds = "[LABELED_EVENT, UNLABELED_EVENT]"
    document = f"""{{ repository(owner: "octo", name: "widgets") {{ pullRequest(number: {pull}) {{
        all: timelineItems(last: 5, itemTypes: {kinds}) {{ nodes {{
            __typename
            ... on LabeledEvent {{ id label {{ name }} actor {{ login }} }}
            ... on UnlabeledEvent {{ id label {{ name }} actor {{ login }} }}
        }} }}
        added: timelineItems(last: 5, itemTypes: [LABELED_EVENT]) {{ totalCount }}
    }} }} }}"""
    found = (await app.graphql(document))["data"]["repository"]["pullRequest"]
    assert found["added"]["totalCount"] == 1
    nodes = found["all"]["nodes"]
    assert [one["__typename"] for one in nodes] == ["LabeledEvent", "UnlabeledEvent"]
    assert {one["label"]["name"] for one in nodes} == {"queued"}
    assert {one["actor"]["login"] for one in nodes} == {"alice"}
    assert len({one["id"] for one in nodes}) == 2


async def test_a_ticked_box_is_an_edit_by_the_person(sandbox, app, pull, receiver):
    body = "Status\n\n- [ ] Take it out <!-- headgate:box=cancel -->\n- [ ] Again\n"
    await app.call("POST", f"/repos/{REPO}/issues/{pull}/comments", {"body": body})
    await sandbox.act("tick_checkbox", "alice", REPO, number=pull, box="headgate:box=cancel")
    await sandbox.settle()
    edited = receiver.payloads("issue_comment")[-1]
    assert (edited["action"], edited["sender"]["login"]) == ("edited", "alice")
    assert edited["comment"]["user"]["login"] == "headgate[bot]"
    assert "- [x] Take it out" in edited["comment"]["body"]
    assert "- [ ] Again" in edited["comment"]["body"]


async def test_a_button_is_shown_on_a_completed_run_only(sandbox, app, pull, receiver):
    head = (await app.facts(pull))["headRefOid"]
    button = {"label": "Cancel", "description": "Take it out", "identifier": "cancel"}
    body = {"name": "Headgate (main)", "head_sha": head, "actions": [button]}
    made = await app.call("POST", f"/repos/{REPO}/check-runs", body)
    with pytest.raises(Refusal, match="shows no button"):
        await sandbox.act("press_button", "alice", REPO, number=pull, button="cancel")
    done = {"conclusion": "failure"}
    await app.call("PATCH", f"/repos/{REPO}/check-runs/{made.body['id']}", done)
    await sandbox.act("press_button", "alice", REPO, number=pull, button="cancel")
    await sandbox.settle()
    told = receiver.payloads("check_run")
    pressed = next(one for one in told if one["action"] == "requested_action")
    assert pressed["requested_action"] == {"identifier": "cancel"}
    assert pressed["sender"]["login"] == "alice"


async def test_nobody_approves_their_own_pull_request(sandbox, pull):
    with pytest.raises(Refusal, match="Unprocessable"):
        await sandbox.act("approve", "bob", REPO, number=pull)


async def test_a_review_is_announced(sandbox, pull, receiver):
    await sandbox.act("approve", "alice", REPO, number=pull, body="fine")
    await sandbox.settle()
    payload = receiver.payloads("pull_request_review")[0]
    assert (payload["action"], payload["review"]["state"]) == ("submitted", "approved")

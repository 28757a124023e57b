"""Row Webhooks: signatures, identity, the log, redelivery, and which events there are."""

import hashlib
import hmac
import json

from tests.sandbox.client import REPO


async def opened(sandbox):
    return await sandbox.act("open", "bob", REPO, files={"a.txt": "a"})


async def test_a_delivery_is_signed_over_its_bytes(sandbox, receiver):
    await opened(sandbox)
    await sandbox.settle()
    for headers, body in receiver.received:
        made = hmac.new(sandbox.webhook_secret.encode(), body, hashlib.sha256).hexdigest()
        assert headers["X-Hub-Signature-256"] == f"sha256={made}"
        assert headers["Content-Type"] == "application/json"
    guids = [headers["X-GitHub-Delivery"] for headers, _ in receiver.received]
    assert len(set(guids)) == len(guids) > 1


async def test_a_story_raises_these_events_in_this_order(sandbox, app, receiver):
    pull = await opened(sandbox)
    await sandbox.settle()
    await sandbox.act("comment", "bob", REPO, number=pull["number"], body="/merge")
    await sandbox.act("merge", "alice", REPO, number=pull["number"], method="squash")
    await sandbox.settle()
    assert receiver.events() == [
        "push",
        "check_suite.requested",
        "pull_request.opened",
        "workflow_run.requested",
        "check_run.created",
        "workflow_run.in_progress",
        "check_run.completed",
        "check_suite.completed",
        "workflow_run.completed",
        "issue_comment.created",
        "pull_request.closed",
        "push",
        "check_suite.requested",
        "workflow_run.requested",
        "check_run.created",
        "workflow_run.in_progress",
        "check_run.completed",
        "check_suite.completed",
        "workflow_run.completed",
    ]
    closed = receiver.payloads("pull_request")[-1]
    assert closed["pull_request"]["merged"] is True
    assert closed["sender"]["login"] == "alice"


async def test_every_payload_names_repository_installation_and_sender(sandbox, receiver):
    await opened(sandbox)
    await sandbox.settle()
    number = next(iter(sandbox.world.installations))
    for _, body in receiver.received:
        payload = json.loads(body)
        assert payload["repository"]["full_name"] == REPO
        assert payload["installation"]["id"] == number
        assert payload["sender"]["login"]
        assert payload["organization"]["login"] == "octo"


async def test_what_changes_a_pull_request_is_told_with_the_old_value(sandbox, receiver):
    pull = await opened(sandbox)
    number = pull["number"]
    await sandbox.act("push", "bob", REPO, number=number, files={"b.txt": "b"})
    await sandbox.act("edit", "bob", REPO, number=number, title="Other")
    await sandbox.act("push", "alice", REPO, branch="release", files={"r.txt": "r"})
    await sandbox.act("retarget", "bob", REPO, number=number, base="release")
    await sandbox.act("draft", "bob", REPO, number=number)
    await sandbox.act("draft", "bob", REPO, number=number, draft=False)
    await sandbox.act("close", "bob", REPO, number=number)
    await sandbox.act("reopen", "bob", REPO, number=number)
    await sandbox.settle()
    told = receiver.payloads("pull_request")
    assert [one["action"] for one in told] == [
        "opened",
        "synchronize",
        "edited",
        "edited",
        "converted_to_draft",
        "ready_for_review",
        "closed",
        "reopened",
    ]
    assert told[1]["before"] == pull["head"]
    assert told[2]["changes"] == {"title": {"from": "Change topic-1"}}
    assert told[3]["changes"]["base"]["ref"] == {"from": "main"}


async def test_a_push_names_the_files_of_its_commits(sandbox, receiver):
    await sandbox.act("push", "bob", REPO, branch="work", files={"d/a": "a", "b": "b", "c": "c"})
    await sandbox.act("push", "bob", REPO, branch="work", files={"d/a": None, "b": "x", "e": "e"})
    await sandbox.settle()
    first, second = [push["commits"][-1] for push in receiver.payloads("push")]
    kinds = ("added", "removed", "modified")
    assert [first[kind] for kind in kinds] == [["b", "c", "d/a"], [], []]
    assert [second[kind] for kind in kinds] == [["e"], ["d/a"], ["b"]]


async def test_a_push_says_what_it_did(sandbox, receiver):
    made = await sandbox.act("push", "bob", REPO, branch="work", files={"a.txt": "a"})
    await sandbox.act("force_push", "bob", REPO, branch="work", files={"b.txt": "b"})
    await sandbox.act("delete_branch", "bob", REPO, branch="work")
    await sandbox.settle()
    created, forced, deleted = receiver.payloads("push")
    assert (created["created"], created["after"]) == (True, made["sha"])
    assert [one["id"] for one in created["commits"]] == [made["sha"]]
    assert (forced["forced"], forced["before"]) == (True, made["sha"])
    assert (deleted["deleted"], deleted["head_commit"]) == (True, None)


async def test_rules_repositories_and_installations_are_told(sandbox, receiver):
    await sandbox.control.rules({"repo": REPO, "required_checks": ["unit"]})
    await sandbox.control.rules({"repo": REPO, "required_checks": ["lint"]})
    await sandbox.control.rules({"repo": REPO, "protection": {"main": {"checks": ["unit"]}}})
    await sandbox.control.rules({"repo": REPO, "protection": {"main": None}})
    await sandbox.act("archive", "alice", REPO)
    await sandbox.act("archive", "alice", REPO, archived=False)
    await sandbox.act("rename", "alice", REPO, to="gadgets")
    await sandbox.act("suspend", "alice", REPO)
    await sandbox.act("suspend", "alice", REPO, suspended=False)
    await sandbox.act("permissions", "alice", REPO, permissions={"metadata": "read"})
    await sandbox.seed(repositories=[{"full_name": "octo/more"}])
    await sandbox.settle()
    assert receiver.events() == [
        "repository_ruleset.created",
        "repository_ruleset.edited",
        "branch_protection_rule.created",
        "branch_protection_rule.deleted",
        "repository.archived",
        "repository.unarchived",
        "repository.renamed",
        "installation.suspend",
        "installation.unsuspend",
        "installation.new_permissions_accepted",
        "installation_repositories.added",
    ]


async def test_a_suspended_installation_is_told_nothing_else(sandbox, receiver):
    await sandbox.act("suspend", "alice", REPO)
    await opened(sandbox)
    await sandbox.settle()
    assert receiver.events() == ["installation.suspend"]


async def test_a_failed_delivery_is_logged_not_repeated_and_can_be_sent_again(
    sandbox, receiver, jwt_client
):
    receiver.status = 500
    await sandbox.act("archive", "alice", REPO)
    await sandbox.settle()
    assert len(receiver.received) == 1
    failed = await jwt_client.get("/app/hook/deliveries?status=failure")
    assert [(one["event"], one["status_code"]) for one in failed] == [("repository", 500)]
    receiver.status = 202
    path = f"/app/hook/deliveries/{failed[0]['id']}"
    assert (await jwt_client.call("POST", f"{path}/attempts")).status == 202
    await sandbox.settle()
    first, again = (headers["X-GitHub-Delivery"] for headers, _ in receiver.received)
    assert first == again == failed[0]["guid"]
    listed = await jwt_client.get("/app/hook/deliveries")
    assert [(one["guid"], one["redelivery"]) for one in listed] == [(first, True), (first, False)]


async def test_deliveries_are_paged_by_cursor(sandbox, receiver, jwt_client):
    for archived in (True, False, True):
        await sandbox.act("archive", "alice", REPO, archived=archived)
    await sandbox.settle()
    first = await jwt_client.call("GET", "/app/hook/deliveries?per_page=2")
    link = first.headers["Link"]
    rest = await jwt_client.get(link[1 : link.index(">")])
    ids = [one["id"] for one in first.body + rest]
    assert len(ids) == 3
    assert ids == sorted(ids, reverse=True)


async def test_a_delivery_is_shown_whole(sandbox, receiver, jwt_client):
    await sandbox.act("archive", "alice", REPO)
    await sandbox.settle()
    (listed,) = await jwt_client.get("/app/hook/deliveries")
    whole = await jwt_client.get(f"/app/hook/deliveries/{listed['id']}")
    headers, body = receiver.received[0]
    assert whole["request"]["payload"] == json.loads(body)
    assert whole["request"]["headers"]["X-GitHub-Delivery"] == headers["X-GitHub-Delivery"]
    assert (await jwt_client.call("GET", "/app/hook/deliveries/1")).status == 404


async def test_the_log_is_kept_three_days(sandbox, receiver, jwt_client):
    await sandbox.act("archive", "alice", REPO)
    await sandbox.settle()
    sandbox.world.timeline.advance(3 * 86_400 + 60)
    await sandbox.act("archive", "alice", REPO, archived=False)
    await sandbox.settle()
    shown = await jwt_client.get("/app/hook/deliveries")
    assert [one["action"] for one in shown] == ["unarchived"]


async def test_a_receiver_that_is_away_is_a_failed_delivery(sandbox, jwt_client):
    sandbox.world.webhook_url = "http://127.0.0.1:9/hook"
    await sandbox.act("archive", "alice", REPO)
    await sandbox.settle()
    shown = await jwt_client.get("/app/hook/deliveries?status=failure")
    assert shown[0]["status"] == "failed to connect to host"


async def test_every_change_of_an_installation_is_told(sandbox, receiver):
    await sandbox.act("suspend", "alice", REPO)
    await sandbox.act("suspend", "alice", REPO, suspended=False)
    await sandbox.act("permissions", "alice", REPO, permissions={"contents": "read"})
    await sandbox.act("select", "alice", REPO, names=[])
    await sandbox.act("select", "alice", REPO)
    await sandbox.act("rename_owner", "alice", REPO, to="octopus")
    await sandbox.act("uninstall", "alice", "octopus/widgets")
    await sandbox.act("install", "alice", "octopus/widgets")
    await sandbox.settle()
    assert receiver.events() == [
        "installation.suspend",
        "installation.unsuspend",
        "installation.new_permissions_accepted",
        "installation_repositories.removed",
        "installation_repositories.added",
        "installation_target.renamed",
        "installation.deleted",
        "installation.created",
    ]


async def test_every_change_of_a_repository_is_told_to_whoever_sees_it(sandbox, receiver):
    await sandbox.act("private", "alice", REPO)
    await sandbox.act("private", "alice", REPO, private=False)
    await sandbox.act("push", "alice", REPO, branch="next", files={"a": "a"})
    await sandbox.act("default_branch", "alice", REPO, branch="next")
    await sandbox.act("archive", "alice", REPO)
    await sandbox.act("archive", "alice", REPO, archived=False)
    await sandbox.act("rename", "alice", REPO, to="gadgets")
    await sandbox.act("transfer", "alice", "octo/gadgets", to="elsewhere")
    await sandbox.act("delete", "alice", "elsewhere/gadgets")
    await sandbox.settle()
    told = [event for event in receiver.events() if event.startswith("repository.")]
    assert told == [
        "repository.privatized",
        "repository.publicized",
        "repository.edited",
        "repository.archived",
        "repository.unarchived",
        "repository.renamed",
    ]
    assert sandbox.world.repositories == {}

"""What opens and shuts a merge: rules about reviews and history, merge queues, stacks, gates."""

import pytest

from bot.sandbox.refusal import Refusal
from tests.sandbox.client import REPO, as_app
from tests.sandbox.test_rules import checks_rule, merge, opened, protect, ruleset

QUEUE_FACTS = """
query($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) {
    mergeQueue(branch: "main") { id }
    pullRequest(number: $number) { isInMergeQueue }
  }
}
"""


async def pull_rule(sandbox, **parameters):
    parameters.setdefault("required_approving_review_count", 0)
    await ruleset(sandbox, {"type": "pull_request", "parameters": parameters})


async def refused(app, number, method="squash"):
    answer = await merge(app, number, method)
    assert answer.status >= 400, "it was merged"
    return answer.status, answer.body["message"]


async def state_of(app, number):
    return (await app.facts(number))["mergeStateStatus"]


async def fall_behind(sandbox):
    await sandbox.act("push", "alice", REPO, branch="main", files={"c.txt": "c"}, bypass=True)
    await sandbox.settle()


async def test_a_head_that_is_behind_is_refused_with_409_where_checks_are_strict(sandbox, app):
    await protect(sandbox, checks=["unit"], strict=True)
    number = await opened(sandbox)
    await fall_behind(sandbox)
    said = "Head branch is out of date. Review and try the merge again."
    assert await refused(app, number) == (409, said)
    assert await state_of(app, number) == "BEHIND"
    await sandbox.act("request_changes", "alice", REPO, number=number)
    await protect(sandbox, checks=["unit"], strict=True, approvals=1)
    assert await state_of(app, number) == "BLOCKED"
    await protect(sandbox, checks=[], strict=True)
    assert (await merge(app, number)).status == 200


async def test_a_ruleset_may_be_strict_as_well(sandbox, app):
    await ruleset(sandbox, checks_rule("unit", strict_required_status_checks_policy=True))
    number = await opened(sandbox)
    await fall_behind(sandbox)
    assert (await refused(app, number))[0] == 409
    assert await state_of(app, number) == "BEHIND"


async def test_a_reader_s_thread_stops_a_merge_under_classic_protection(sandbox, app):
    await protect(sandbox, conversations=True)
    number = await opened(sandbox)
    assert await state_of(app, number) == "CLEAN"
    await sandbox.act("discuss", "carol", REPO, number=number, body="why?")
    said = "A conversation must be resolved before this pull request can be merged."
    assert await refused(app, number) == (405, said)
    assert await state_of(app, number) == "BLOCKED"
    await sandbox.act("resolve", "bob", REPO, number=number)
    assert (await merge(app, number)).status == 200


async def test_every_classic_sentence_is_told_joined_by_a_blank(sandbox, app):
    await protect(sandbox, approvals=2, conversations=True, checks=["lint", "types"])
    number = await opened(sandbox)
    await sandbox.act("discuss", "carol", REPO, number=number, body="why?")
    assert (await refused(app, number))[1] == (
        "At least 2 approving reviews are required by reviewers with write access. "
        "A conversation must be resolved before this pull request can be merged. "
        "2 of 2 required status checks are expected."
    )


async def test_every_rule_of_a_ruleset_is_a_paragraph(sandbox, app):
    review = {"required_approving_review_count": 1}
    await ruleset(sandbox, {"type": "pull_request", "parameters": review}, checks_rule("lint"))
    number = await opened(sandbox)
    assert (await refused(app, number))[1] == (
        "Repository rule violations found\n\n"
        "At least 1 approving review is required by reviewers with write access.\n\n"
        'Required status check "lint" is expected.\n\n'
    )


async def test_a_request_for_changes_stops_a_merge_without_any_approval_required(sandbox, app):
    await pull_rule(sandbox)
    number = await opened(sandbox)
    await sandbox.act("request_changes", "alice", REPO, number=number)
    said = "1 review requesting changes by reviewers with write access."
    assert said in (await refused(app, number))[1]
    assert (await app.facts(number))["reviewDecision"] == "CHANGES_REQUESTED"
    await sandbox.act("approve", "alice", REPO, number=number)
    assert (await merge(app, number)).status == 200


async def test_code_owners_of_changed_files_must_approve(sandbox, app):
    owners = "* @alice\n/docs/ @bob\n*.txt @octo/writers @alice\n"
    files = {".github/CODEOWNERS": owners}
    await sandbox.act("push", "alice", REPO, branch="main", files=files)
    await protect(sandbox, approvals=0, code_owners=True)
    number = await opened(sandbox)
    said = "Waiting on code owner review from octo/writers and/or alice."
    assert await refused(app, number) == (405, said)
    assert (await app.facts(number))["reviewDecision"] == "REVIEW_REQUIRED"
    await sandbox.act("approve", "alice", REPO, number=number)
    assert (await merge(app, number)).status == 200


async def test_the_last_push_must_be_approved_by_another(sandbox, app):
    await protect(sandbox, approvals=1, last_push_approval=True)
    number = await opened(sandbox)
    await sandbox.act("approve", "alice", REPO, number=number)
    await sandbox.act("push", "alice", REPO, number=number, files={"b.txt": "b"})
    await sandbox.settle()
    said = "New changes require approval from someone other than the last pusher."
    assert await refused(app, number) == (405, said)


async def test_an_unsigned_head_may_be_squashed_and_no_more(sandbox, app):
    await protect(sandbox, signatures=True)
    number = await opened(sandbox)
    said = "Commits must have verified signatures."
    assert await refused(app, number, "merge") == (405, said)
    assert await state_of(app, number) == "BLOCKED"
    assert (await merge(app, number, "squash")).status == 200


async def test_linear_history_does_not_show_in_the_state(sandbox, app):
    await protect(sandbox, linear=True)
    number = await opened(sandbox)
    assert await state_of(app, number) == "CLEAN"
    said = "This branch must not contain merge commits."
    assert await refused(app, number, "merge") == (405, said)
    body = {"base": "main", "head": (await app.facts(number))["headRefOid"]}
    answer = await app.call("POST", f"/repos/{REPO}/merges", body)
    assert answer.status == 201 or (answer.status, answer.body["message"]) == (409, said)


@pytest.mark.parametrize("is_classic", [True, False])
async def test_a_merge_queue_shows_in_graphql_alone_where_it_is_classic(sandbox, app, is_classic):
    if is_classic:
        await protect(sandbox, queue=True)
    else:
        await ruleset(sandbox, {"type": "merge_queue", "parameters": {}})
    listed = await app.get(f"/repos/{REPO}/rules/branches/main")
    assert [one["type"] for one in listed] == ([] if is_classic else ["merge_queue"])
    number = await opened(sandbox)
    assert "Changes must be made through the merge queue" in (await refused(app, number))[1]
    await sandbox.act("enqueue", "bob", REPO, number=number)
    assert await refused(app, number) == (405, "Pull Request is in the merge queue.")
    answer = await app.graphql(QUEUE_FACTS, owner="octo", name="widgets", number=number)
    shown = answer["data"]["repository"]
    assert shown["mergeQueue"]["id"]
    assert shown["pullRequest"]["isInMergeQueue"]


async def test_the_head_of_a_queued_pull_request_is_locked(sandbox, app):
    await protect(sandbox, queue=True)
    number = await opened(sandbox)
    await sandbox.act("enqueue", "bob", REPO, number=number)
    path = f"/repos/{REPO}/git/refs/heads/{(await app.facts(number))['headRefName']}"
    main = sandbox.repository(REPO).git.branch("main")
    answer = await app.call("PATCH", path, {"sha": main, "force": True})
    assert answer.status == 422
    assert "queued for merging cannot be updated" in answer.body["message"]
    sandbox.repository(REPO).issues[number].pull.queued = False
    assert (await app.call("PATCH", path, {"sha": main, "force": True})).status == 200


async def test_a_required_deployment_is_missed_until_it_was_made(sandbox, app):
    parameters = {"required_deployment_environments": ["staging", "canary"]}
    await ruleset(sandbox, {"type": "required_deployments", "parameters": parameters})
    number = await opened(sandbox)
    said = "Missing successful active staging and canary deployments."
    assert said in (await refused(app, number))[1]
    await sandbox.act("deploy", "bob", REPO, number=number, environment="staging")
    assert "active canary deployment." in (await refused(app, number))[1]
    assert await state_of(app, number) == "BLOCKED"
    await sandbox.act("deploy", "bob", REPO, number=number, environment="canary")
    assert (await merge(app, number)).status == 200


async def test_code_scanning_blocks_until_there_are_results(sandbox, app):
    parameters = {"code_scanning_tools": [{"tool": "CodeQL"}]}
    await ruleset(sandbox, {"type": "code_scanning", "parameters": parameters})
    number = await opened(sandbox)
    head = (await app.facts(number))["headRefOid"]
    said = f"Code scanning is waiting for results from CodeQL for the commit {head[:7]}."
    assert said in (await refused(app, number))[1]
    sandbox.repository(REPO).scanned.add(head)
    assert (await merge(app, number)).status == 200


async def test_classic_protection_is_read_whole_by_who_may_administer(sandbox, app, http, person):
    path = f"/repos/{REPO}/branches/main/protection"
    assert (await app.call("GET", path)).status == 404
    chosen = {"conversations": True, "linear": True, "signatures": True, "queue": True}
    reviews = {"approvals": 2, "code_owners": True, "last_push_approval": True}
    await protect(sandbox, checks=["unit"], strict=True, **chosen, **reviews)
    shown = await app.get(path)
    assert shown["required_status_checks"]["strict"] is True
    assert shown["required_status_checks"]["contexts"] == ["unit"]
    asked = shown["required_pull_request_reviews"]
    assert (asked["required_approving_review_count"], asked["require_code_owner_reviews"]) == (
        2,
        True,
    )
    assert asked["require_last_push_approval"] is True
    for name in ("required_conversation_resolution", "required_linear_history"):
        assert shown[name] == {"enabled": True}
    assert shown["required_signatures"]["enabled"] is True
    assert "restrictions" not in shown
    assert not [name for name in shown if "queue" in name or "deployment" in name]
    narrow = await as_app(sandbox, http, permissions={"contents": "read", "metadata": "read"})
    answer = await narrow.call("GET", path)
    said = "Resource not accessible by integration"
    assert (answer.status, answer.body["message"]) == (403, said)


async def stacked(sandbox):
    await sandbox.act("push", "bob", REPO, branch="one", files={"a.txt": "a"})
    lower = (await sandbox.act("open", "bob", REPO, head="one"))["number"]
    files = {"head": "two", "base": "one", "files": {"b.txt": "b"}}
    upper = (await sandbox.act("open", "bob", REPO, **files))["number"]
    await sandbox.settle()
    await sandbox.act("stack", "bob", REPO, numbers=[lower, upper])
    return lower, upper


async def test_a_native_stack_shows_on_its_pull_requests_and_events(sandbox, app, receiver):
    lower, upper = await stacked(sandbox)
    await sandbox.settle()
    shown = await app.get(f"/repos/{REPO}/pulls/{upper}")
    assert (shown["base"]["ref"], shown["stack"]["base"]["ref"]) == ("one", "main")
    assert (shown["stack"]["position"], shown["stack"]["size"]) == (2, 2)
    told = [one for one in receiver.payloads("pull_request") if one["action"] == "stacked"]
    assert [one["stack"]["position"] for one in told] == [1, 2]
    assert all(one["pull_request"]["stack"] == one["stack"] for one in told)
    sandbox.repository(REPO).stacks.clear()
    assert "stack" not in await app.get(f"/repos/{REPO}/pulls/{lower}")


async def test_no_member_of_a_native_stack_is_merged_or_retargeted_alone(sandbox, app):
    lower, upper = await stacked(sandbox)
    said = (
        "Merging stacked PRs via this endpoint is not supported. "
        "Use the asynchronous merge endpoint instead."
    )
    for number in (lower, upper):
        assert await refused(app, number) == (403, said)
    assert await state_of(app, lower) == "CLEAN"
    answer = await app.call("PATCH", f"/repos/{REPO}/pulls/{upper}", {"base": "main"})
    said = "Cannot change the base branch because the pull request is part of a stack."
    assert (answer.status, answer.body["message"]) == (422, said)
    with pytest.raises(Refusal, match=f"Pull request #{lower} is already part of a stack"):
        await sandbox.act("stack", "bob", REPO, numbers=[lower, upper])


async def merged_async(app, sandbox, number, **body):
    """Ask for an asynchronous merge; the status of the answer, and what the request came to."""
    path = f"/repos/{REPO}/pulls/{number}/merge-async"
    answer = await app.call("PUT", path, body)
    if answer.status != 202:
        return answer.status, answer.body
    again = await app.call("PUT", path, body)
    name = answer.body["details"]["uuid"]
    assert (again.status, again.body["details"]["uuid"]) == (409, name)
    assert (await app.get(f"{path}/{name}"))["status"] == "pending"
    await sandbox.settle()
    return answer.status, await app.get(f"{path}/{name}")


async def test_an_asynchronous_merge_lands_all_below_by_one_move_of_the_target(sandbox, app):
    lower, upper = await stacked(sandbox)
    status, result = await merged_async(app, sandbox, upper, merge_method="squash")
    assert (status, result["status"]) == (202, "merged")
    listed = (await app.get(f"/repos/{REPO}/stacks?pull_request={lower}"))[0]
    assert [one["number"] for one in listed["pull_requests"]] == [lower, upper]
    assert all(one["merged_at"] for one in listed["pull_requests"])
    assert listed == await app.get(f"/repos/{REPO}/stacks/{listed['number']}")
    assert not listed["open"]
    tip = sandbox.repository(REPO).git.branch("main")
    assert result["details"]["sha"] == tip
    status, result = await merged_async(app, sandbox, upper)
    assert (status, result["status"]) == (200, "merged")


async def test_the_member_above_a_merged_one_is_based_on_the_target(sandbox, app):
    lower, upper = await stacked(sandbox)
    head = (await app.get(f"/repos/{REPO}/pulls/{upper}"))["head"]["sha"]
    await merged_async(app, sandbox, lower)
    shown = await app.get(f"/repos/{REPO}/pulls/{upper}")
    assert (shown["base"]["ref"], shown["state"], shown["head"]["sha"]) == ("main", "open", head)


async def test_an_asynchronous_merge_lands_all_members_or_none(sandbox, app):
    lower, upper = await stacked(sandbox)
    before = sandbox.repository(REPO).git.branch("main")
    await protect(sandbox, checks=["unit"])
    _, result = await merged_async(app, sandbox, upper)
    said = 'Required status check "unit" is failing.'
    assert (result["status"], result["details"]["message"]) == ("failed", said)
    assert sandbox.repository(REPO).git.branch("main") == before
    await sandbox.act("close", "bob", REPO, number=upper)
    status, result = await merged_async(app, sandbox, upper)
    assert (status, result["details"]["message"]) == (400, "Pull request is closed.")
    path = f"/repos/{REPO}/pulls/{lower}/merge-async"
    assert (await app.call("GET", f"{path}/none")).status == 404
    assert (await app.call("PUT", path, {"merge_action": "merge_queue"})).status == 422


async def test_drafts_may_not_be_had_in_every_repository(sandbox, app):
    sandbox.repository(REPO).settings.drafts = False
    await sandbox.act("push", "bob", REPO, branch="work", files={"a.txt": "a"})
    body = {"title": "t", "head": "work", "base": "main", "draft": True}
    answer = await app.call("POST", f"/repos/{REPO}/pulls", body)
    said = "Draft pull requests are not supported in this repository."
    assert (answer.status, answer.body["message"]) == (422, said)
    assert answer.body["errors"][0]["message"] == said
    answer = await app.call("POST", f"/repos/{REPO}/pulls", {**body, "draft": False})
    assert answer.status == 201


async def test_a_pushed_head_may_show_late(sandbox, app):
    number = await opened(sandbox)
    old = (await app.facts(number))["headRefOid"]
    await sandbox.seed(knobs={"head_delay_s": 90})
    pushed = await sandbox.act("push", "bob", REPO, number=number, files={"b.txt": "b"})
    assert (await app.facts(number))["headRefOid"] == old
    assert await state_of(app, number) == "CLEAN"
    said = "Head branch is out of date. Review and try the merge again."
    assert await refused(app, number) == (409, said)
    await sandbox.settle()
    assert (await app.facts(number))["headRefOid"] == pushed["sha"]
    assert (await merge(app, number)).status == 200

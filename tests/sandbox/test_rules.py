"""Row Rules: rulesets and classic protection together, pins, bypasses, and their sentences."""

import pytest

from tests.sandbox.client import REPO


def checks_rule(*names, **parameters):
    listed = [one if isinstance(one, dict) else {"context": one} for one in names]
    return {
        "type": "required_status_checks",
        "parameters": {
            "required_status_checks": listed,
            "strict_required_status_checks_policy": False,
            **parameters,
        },
    }


async def ruleset(sandbox, *rules, **fields):
    value = {"name": "r", "rules": list(rules), **fields}
    await sandbox.control.rules({"repo": REPO, "rulesets": [value]})


async def protect(sandbox, **classic):
    await sandbox.control.rules({"repo": REPO, "protection": {"main": classic}})


async def opened(sandbox, **fields):
    number = (await sandbox.act("open", "bob", REPO, files={"a.txt": "a"}, **fields))["number"]
    await sandbox.settle()
    return number


async def merge(client, number, method="squash"):
    body = {"merge_method": method}
    return await client.call("PUT", f"/repos/{REPO}/pulls/{number}/merge", body)


async def advance(app, sandbox, sha):
    main = sandbox.repository(REPO).git.branch("main")
    return await app.update_refs(
        {"name": "refs/heads/main", "beforeOid": main, "afterOid": sha, "force": False}
    )


async def test_rules_of_a_branch_come_from_active_rulesets_only(sandbox, app):
    await ruleset(sandbox, checks_rule("lint"), include=["refs/heads/rel*"])
    path = f"/repos/{REPO}/rules/branches"
    shown = await app.get(f"{path}/release")
    assert shown[0]["parameters"]["required_status_checks"] == [{"context": "lint"}]
    assert shown[0]["ruleset_source"] == REPO
    assert await app.get(f"{path}/main") == []
    await ruleset(sandbox, checks_rule("lint"), include=["~ALL"], enforcement="evaluate")
    assert await app.get(f"{path}/main") == []


@pytest.mark.parametrize(
    ("pattern", "branch", "is_meant"),
    [
        ("~ALL", "any/thing", True),
        ("~DEFAULT_BRANCH", "main", True),
        ("~DEFAULT_BRANCH", "other", False),
        ("refs/heads/headgate/*", "headgate/x", True),
        ("refs/heads/headgate/*", "headgate/x/y", False),
        ("refs/heads/headgate/**", "headgate/x/y", True),
        ("refs/heads/**/y", "headgate/x/y", True),
    ],
)
async def test_a_condition_means_these_branches(sandbox, app, pattern, branch, is_meant):
    await ruleset(sandbox, {"type": "deletion"}, include=[pattern])
    assert bool(await app.get(f"/repos/{REPO}/rules/branches/{branch}")) == is_meant


async def test_classic_required_checks_are_read_by_themselves(sandbox, app):
    path = f"/repos/{REPO}/branches/main/protection/required_status_checks"
    answer = await app.call("GET", path)
    assert (answer.status, answer.body["message"]) == (404, "Branch not protected")
    await protect(sandbox, checks=["lint", {"context": "unit", "app_id": 7}])
    shown = await app.get(path)
    assert shown["checks"] == [
        {"context": "lint", "app_id": None},
        {"context": "unit", "app_id": 7},
    ]
    branch = await app.get(f"/repos/{REPO}/branches/main")
    assert branch["protection"]["required_status_checks"]["contexts"] == ["lint", "unit"]


async def test_checks_of_both_sources_are_required_on_the_head(sandbox, app, person):
    await ruleset(sandbox, checks_rule("unit"))
    await protect(sandbox, checks=["lint"])
    number = await opened(sandbox)
    answer = await merge(app, number)
    assert (answer.status, answer.body["message"]) == (
        405,
        'Required status check "lint" is expected.',
    )
    path = f"/repos/{REPO}/statuses/{(await app.facts(number))['headRefOid']}"
    await person("bob").call("POST", path, {"state": "success", "context": "lint"})
    assert (await merge(app, number)).status == 200


async def test_a_missing_check_of_a_ruleset_is_a_rule_violation(sandbox, app):
    await ruleset(sandbox, checks_rule("lint"))
    number = await opened(sandbox)
    answer = await merge(app, number)
    assert answer.status == 405
    assert answer.body["message"] == (
        'Repository rule violations found\n\nRequired status check "lint" is expected.\n\n'
    )


async def test_several_missing_checks_are_counted(sandbox, app):
    await protect(sandbox, checks=["lint", "types", "unit"])
    number = await opened(sandbox)
    message = (await merge(app, number)).body["message"]
    assert message == "2 of 3 required status checks have not succeeded: 2 expected."


async def test_a_pinned_check_counts_only_from_its_app(sandbox, app):
    number = await opened(sandbox)
    ci = sandbox.world.apps["sandbox-ci"]
    pinned = {"context": "unit", "integration_id": sandbox.app_id}
    await ruleset(sandbox, checks_rule(pinned))
    assert "was not set by the expected GitHub app" in (await merge(app, number)).body["message"]
    await ruleset(sandbox, checks_rule({"context": "unit", "integration_id": ci.id}))
    assert (await merge(app, number)).status == 200


async def test_reviews_are_required_by_the_providers_sentence(sandbox, app):
    await protect(sandbox, approvals=1)
    number = await opened(sandbox)
    answer = await merge(app, number)
    said = "At least 1 approving review is required by reviewers with write access."
    assert (answer.status, answer.body["message"]) == (405, said)
    await sandbox.act("approve", "alice", REPO, number=number)
    assert (await merge(app, number)).status == 200


async def test_open_conversations_stop_a_merge_where_the_rules_say_so(sandbox, app):
    parameters = {"required_approving_review_count": 0, "required_review_thread_resolution": True}
    await ruleset(sandbox, {"type": "pull_request", "parameters": parameters})
    number = await opened(sandbox)
    await sandbox.act("discuss", "alice", REPO, number=number, body="why?")
    assert (
        "A conversation must be resolved before this pull request can be merged."
        in (await merge(app, number)).body["message"]
    )
    await sandbox.act("resolve", "bob", REPO, number=number)
    assert (await merge(app, number)).status == 200


async def test_who_may_not_push_may_not_merge(sandbox, app):
    await protect(sandbox, pushers=["alice"])
    number = await opened(sandbox)
    answer = await merge(app, number)
    assert answer.status == 405
    assert answer.body["message"].startswith("You're not authorized to push to this branch.")
    await protect(sandbox, pushers=["headgate"])
    assert (await merge(app, number)).status == 200


async def test_linear_history_refuses_merge_commits_alone(sandbox, app):
    await ruleset(sandbox, {"type": "required_linear_history"})
    number = await opened(sandbox)
    said = "This branch must not contain merge commits."
    assert said in (await merge(app, number, "merge")).body["message"]
    assert (await merge(app, number, "squash")).status == 200


async def test_signatures_refuse_what_the_provider_did_not_sign(sandbox, app):
    await ruleset(sandbox, {"type": "required_signatures"})
    pushed = await sandbox.act("push", "bob", REPO, branch="work", files={"a.txt": "a"})
    answer = await advance(app, sandbox, pushed["sha"])
    assert "Commits must have verified signatures." in answer["errors"][0]["message"]


async def test_a_merge_queue_of_the_provider_refuses_the_merge_call(sandbox, app):
    await ruleset(sandbox, {"type": "merge_queue", "parameters": {}})
    number = await opened(sandbox)
    said = "Changes must be made through the merge queue"
    assert said in (await merge(app, number)).body["message"]


async def test_a_ruleset_narrows_the_merge_methods(sandbox, app):
    parameters = {"required_approving_review_count": 0, "allowed_merge_methods": ["squash"]}
    await ruleset(sandbox, {"type": "pull_request", "parameters": parameters})
    number = await opened(sandbox)
    answer = await merge(app, number, "rebase")
    said = "Rebase merges are not allowed on this repository."
    assert (answer.status, answer.body["message"]) == (405, said)


async def test_a_direct_move_must_go_through_a_pull_request(sandbox, app):
    parameters = {"required_approving_review_count": 0}
    await ruleset(sandbox, {"type": "pull_request", "parameters": parameters})
    pushed = await sandbox.act("push", "bob", REPO, branch="work", files={"a.txt": "a"})
    answer = await advance(app, sandbox, pushed["sha"])
    message = answer["errors"][0]["message"]
    assert message.startswith("Repository rule violations found")
    assert "Changes must be made through a pull request." in message


async def test_a_direct_move_to_a_green_commit_meets_required_checks(sandbox, app):
    await ruleset(sandbox, checks_rule("unit"))
    number = await opened(sandbox)
    head = (await app.facts(number))["headRefOid"]
    assert "errors" not in await advance(app, sandbox, head)
    assert (await app.facts(number))["state"] == "MERGED"


async def test_a_bypass_actor_passes_a_ruleset_by(sandbox, app):
    await ruleset(sandbox, checks_rule("lint"), bypass_app=True)
    pushed = await sandbox.act("push", "bob", REPO, branch="work", files={"a.txt": "a"})
    assert "errors" not in await advance(app, sandbox, pushed["sha"])


async def test_a_bypass_for_pull_requests_does_not_serve_a_push(sandbox, app):
    passing = {
        "actor_type": "Integration",
        "actor_id": sandbox.app_id,
        "bypass_mode": "pull_request",
    }
    await ruleset(sandbox, checks_rule("lint"), bypass_actors=[passing])
    number = await opened(sandbox)
    head = (await app.facts(number))["headRefOid"]
    assert "errors" in await advance(app, sandbox, head)
    assert (await merge(app, number)).status == 200


async def test_classic_protection_refuses_a_direct_move(sandbox, app):
    await protect(sandbox, checks=["lint"])
    pushed = await sandbox.act("push", "bob", REPO, branch="work", files={"a.txt": "a"})
    path = f"/repos/{REPO}/git/refs/heads/main"
    answer = await app.call("PATCH", path, {"sha": pushed["sha"]})
    said = 'Required status check "lint" is expected.'
    assert (answer.status, answer.body["message"]) == (422, said)


async def test_creation_and_deletion_can_be_forbidden(sandbox, app):
    await ruleset(sandbox, {"type": "creation"}, {"type": "deletion"}, include=["refs/heads/r/*"])
    main = sandbox.repository(REPO).git.branch("main")
    body = {"ref": "refs/heads/r/1", "sha": main}
    answer = await app.call("POST", f"/repos/{REPO}/git/refs", body)
    assert "creations being restricted" in answer.body["message"]
    await sandbox.act("push", "bob", REPO, branch="r/1", files={"a": "a"}, bypass=True)
    answer = await app.call("DELETE", f"/repos/{REPO}/git/refs/heads/r/1")
    assert (answer.status, "Cannot delete this branch" in answer.body["message"]) == (422, True)


async def test_the_default_branch_is_never_deleted(sandbox, app):
    answer = await app.call("DELETE", f"/repos/{REPO}/git/refs/heads/main")
    assert (answer.status, answer.body["message"]) == (422, "Cannot delete the default branch")


async def test_bypass_actors_are_shown_only_to_who_may_write_rules(sandbox, app, person):
    await ruleset(sandbox, {"type": "deletion"}, bypass_app=True)
    number = sandbox.repository(REPO).rulesets[0].id
    assert "bypass_actors" not in await app.get(f"/repos/{REPO}/rulesets/{number}")
    shown = await person("alice").get(f"/repos/{REPO}/rulesets/{number}")
    assert shown["bypass_actors"][0]["actor_id"] == sandbox.app_id

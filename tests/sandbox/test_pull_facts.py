"""Row PR facts: what a pull request is said to be, and when that changes."""

from tests.sandbox.client import REPO


async def test_mergeability_is_unknown_for_a_while_after_each_push_and_base_move(sandbox, app):
    pull = await sandbox.act("open", "bob", REPO, files={"a.txt": "a"})
    number = pull["number"]

    async def said():
        rest = await app.get(f"/repos/{REPO}/pulls/{number}")
        return (await app.facts(number))["mergeable"], rest["mergeable"]

    assert await said() == ("UNKNOWN", None)
    await sandbox.settle()
    assert await said() == ("MERGEABLE", True)
    await sandbox.act("push", "bob", REPO, number=number, files={"app.py": "mine\n"})
    assert await said() == ("UNKNOWN", None)
    await sandbox.settle()
    await sandbox.act("push", "alice", REPO, branch="main", files={"app.py": "yours\n"})
    assert await said() == ("UNKNOWN", None)
    await sandbox.settle()
    assert await said() == ("CONFLICTING", False)


async def test_an_older_look_does_not_answer_for_a_newer_push(sandbox, app):
    number = (await sandbox.act("open", "bob", REPO, files={"a.txt": "a"}))["number"]
    line = sandbox.world.timeline
    line.advance(0.6)
    await sandbox.act("push", "bob", REPO, number=number, files={"b.txt": "b"})
    line.advance(0.6)
    assert await line.run_due() == 1
    assert (await app.facts(number))["mergeable"] == "UNKNOWN"
    line.advance(0.6)
    await line.run_due()
    assert (await app.facts(number))["mergeable"] == "MERGEABLE"


async def test_the_merge_state_names_what_stands_in_the_way(sandbox, app):
    async def state(number):
        return (await app.facts(number))["mergeStateStatus"]

    files = {"a.txt": "a", ".sandbox/ci.yml": None}
    number = (await sandbox.act("open", "bob", REPO, files=files))["number"]
    assert await state(number) == "UNKNOWN"
    await sandbox.settle()
    assert await state(number) == "CLEAN"
    await sandbox.act("draft", "bob", REPO, number=number)
    assert await state(number) == "DRAFT"
    await sandbox.act("draft", "bob", REPO, number=number, draft=False)
    await sandbox.control.rules({"repo": REPO, "required_checks": ["unit"]})
    assert await state(number) == "BLOCKED"
    await sandbox.control.rules({"repo": REPO, "rulesets": [{"name": "required", "delete": True}]})
    await sandbox.act("push", "bob", REPO, number=number, files={"app.py": "mine\n"})
    await sandbox.act("push", "alice", REPO, branch="main", files={"app.py": "yours\n"})
    await sandbox.settle()
    assert await state(number) == "DIRTY"


async def test_a_failing_check_that_nobody_requires_is_unstable(sandbox, app):
    number = (await sandbox.act("open", "bob", REPO, files={"bad.txt": "x"}))["number"]
    await sandbox.settle()
    facts = await app.facts(number)
    assert facts["mergeStateStatus"] == "UNSTABLE"
    assert facts["statusCheckRollup"]["state"] == "FAILURE"


async def test_a_head_without_the_tip_is_behind_where_that_matters(sandbox, app):
    number = (await sandbox.act("open", "bob", REPO, files={"a.txt": "a"}))["number"]
    protection = {"main": {"checks": ["unit"], "strict": True}}
    await sandbox.control.rules({"repo": REPO, "protection": protection})
    await sandbox.act("push", "alice", REPO, branch="main", files={"c.txt": "c"}, bypass=True)
    await sandbox.settle()
    assert (await app.facts(number))["mergeStateStatus"] == "BEHIND"


async def test_the_review_decision_follows_the_reviews(sandbox, app):
    number = (await sandbox.act("open", "bob", REPO, files={"a.txt": "a"}))["number"]

    async def decision():
        return (await app.facts(number))["reviewDecision"]

    assert await decision() is None
    await sandbox.control.rules({"repo": REPO, "protection": {"main": {"approvals": 1}}})
    assert await decision() == "REVIEW_REQUIRED"
    await sandbox.act("approve", "carol", REPO, number=number)
    assert await decision() == "REVIEW_REQUIRED", "a reader's approval does not count"
    await sandbox.act("request_changes", "alice", REPO, number=number)
    assert await decision() == "CHANGES_REQUESTED"
    await sandbox.act("approve", "alice", REPO, number=number)
    assert await decision() == "APPROVED"


async def test_a_push_dismisses_approvals_where_the_rules_say_so(sandbox, app):
    rules = {"main": {"approvals": 1, "dismiss_stale": True}}
    await sandbox.control.rules({"repo": REPO, "protection": rules})
    number = (await sandbox.act("open", "bob", REPO, files={"a.txt": "a"}))["number"]
    await sandbox.act("approve", "alice", REPO, number=number)
    assert (await app.facts(number))["reviewDecision"] == "APPROVED"
    await sandbox.act("push", "bob", REPO, number=number, files={"b.txt": "b"})
    assert (await app.facts(number))["reviewDecision"] == "REVIEW_REQUIRED"


async def test_open_conversations_are_seen_until_resolved(sandbox, app):
    number = (await sandbox.act("open", "bob", REPO, files={"a.txt": "a"}))["number"]
    await sandbox.act("discuss", "alice", REPO, number=number, body="why?")
    threads = (await app.facts(number))["reviewThreads"]["nodes"]
    assert threads == [{"isResolved": False}]
    await sandbox.act("resolve", "bob", REPO, number=number)
    assert (await app.facts(number))["reviewThreads"]["nodes"] == [{"isResolved": True}]


async def test_a_forks_head_stands_in_the_base_repository(sandbox, app):
    pull = await sandbox.act("open", "dave", REPO, files={"a.txt": "a"}, fork=True)
    facts = await app.facts(pull["number"])
    assert facts["isCrossRepository"] is True
    assert facts["headRepository"]["nameWithOwner"] == "dave/widgets"
    ref = await app.get(f"/repos/{REPO}/git/ref/pull/{pull['number']}/head")
    assert ref["object"]["sha"] == pull["head"]
    pushed = await sandbox.act("push", "dave", REPO, number=pull["number"], files={"b.txt": "b"})
    ref = await app.get(f"/repos/{REPO}/git/ref/pull/{pull['number']}/head")
    assert ref["object"]["sha"] == pushed["sha"]


async def test_a_pull_request_closes_when_its_branch_is_deleted(sandbox, app):
    number = (await sandbox.act("open", "bob", REPO, files={"a.txt": "a"}, head="t"))["number"]
    await app.call("DELETE", f"/repos/{REPO}/git/refs/heads/t")
    assert (await app.facts(number))["state"] == "CLOSED"


async def test_a_head_that_becomes_reachable_from_the_default_branch_is_merged(sandbox, app):
    pull = await sandbox.act("open", "bob", REPO, files={"a.txt": "a"})
    main = sandbox.repository(REPO).git.branch("main")
    await app.update_refs(
        {"name": "refs/heads/main", "beforeOid": main, "afterOid": pull["head"], "force": False}
    )
    facts = await app.facts(pull["number"])
    assert (facts["state"], facts["merged"]) == ("MERGED", True)
    assert facts["mergeCommit"]["oid"] == pull["head"]


async def test_reachable_from_another_branch_is_not_merged(sandbox, app):
    main = sandbox.repository(REPO).git.branch("main")
    await app.call("POST", f"/repos/{REPO}/git/refs", {"ref": "refs/heads/release", "sha": main})
    pull = await sandbox.act("open", "bob", REPO, files={"a.txt": "a"}, base="release")
    await app.call("PATCH", f"/repos/{REPO}/git/refs/heads/release", {"sha": pull["head"]})
    assert (await app.facts(pull["number"]))["state"] == "OPEN"


async def test_a_merge_commit_names_its_tree_and_parents(sandbox, app):
    pull = await sandbox.act("open", "bob", REPO, files={"a.txt": "a"})
    tip = sandbox.repository(REPO).git.branch("main")
    await sandbox.act("merge", "alice", REPO, number=pull["number"], method="merge")
    commit = (await app.facts(pull["number"]))["mergeCommit"]
    assert [one["oid"] for one in commit["parents"]["nodes"]] == [tip, pull["head"]]
    shown = await app.get(f"/repos/{REPO}/git/commits/{commit['oid']}")
    assert shown["tree"]["sha"] == commit["tree"]["oid"]


async def test_the_base_oid_is_as_of_the_last_push_and_the_base_ref_is_fresh(sandbox, app):
    pull = await sandbox.act("open", "bob", REPO, files={"a.txt": "a"})
    before = sandbox.repository(REPO).git.branch("main")
    tip = (await sandbox.act("push", "alice", REPO, branch="main", files={"c.txt": "c"}))["sha"]
    facts = await app.facts(pull["number"])
    assert (facts["baseRefOid"], facts["baseRef"]["target"]["oid"]) == (before, tip)


async def test_required_contexts_are_marked_for_the_pull_request(sandbox, app):
    await sandbox.control.rules({"repo": REPO, "required_checks": ["unit"]})
    number = (await sandbox.act("open", "bob", REPO, files={"a.txt": "a"}))["number"]
    await sandbox.settle()
    (shown,) = (await app.facts(number))["statusCheckRollup"]["contexts"]["nodes"]
    assert (shown["__typename"], shown["name"]) == ("CheckRun", "unit")
    assert (shown["conclusion"], shown["isRequired"]) == ("SUCCESS", True)


async def test_the_rollup_shows_the_times_of_a_check_run_as_rest_does(sandbox, app):
    pull = await sandbox.act("open", "bob", REPO, files={"a.txt": "a"})
    await sandbox.settle()
    (shown,) = (await app.facts(pull["number"]))["statusCheckRollup"]["contexts"]["nodes"]
    (run,) = (await app.get(f"/repos/{REPO}/commits/{pull['head']}/check-runs"))["check_runs"]
    assert shown["startedAt"] < shown["completedAt"]
    assert (shown["startedAt"], shown["completedAt"]) == (run["started_at"], run["completed_at"])


async def test_changed_files_name_old_and_new_path(sandbox, app):
    text = "line\n" * 30
    await sandbox.act("push", "alice", REPO, branch="main", files={"old.txt": text})
    files = {"old.txt": None, "new.txt": text, "README.md": "widgets\nmore\n"}
    number = (await sandbox.act("open", "bob", REPO, files=files))["number"]
    shown = await app.get(f"/repos/{REPO}/pulls/{number}/files")
    assert [(one["filename"], one["status"], one["additions"]) for one in shown] == [
        ("README.md", "modified", 1),
        ("new.txt", "renamed", 0),
    ]
    assert shown[1]["previous_filename"] == "old.txt"


async def test_what_cannot_be_opened_is_422_with_the_providers_words(sandbox, app):
    path = f"/repos/{REPO}/pulls"
    same = {"title": "t", "head": "same", "base": "main"}
    main = sandbox.repository(REPO).git.branch("main")
    await app.call("POST", f"/repos/{REPO}/git/refs", {"ref": "refs/heads/same", "sha": main})
    answer = await app.call("POST", path, same)
    assert answer.body["errors"][0]["message"] == "No commits between main and same"
    await sandbox.act("open", "bob", REPO, files={"a.txt": "a"}, head="topic")
    answer = await app.call("POST", path, {"title": "t", "head": "topic", "base": "main"})
    said = "A pull request already exists for octo:topic."
    assert (answer.status, answer.body["errors"][0]["message"]) == (422, said)
    answer = await app.call("POST", path, {"title": "t", "head": "none", "base": "main"})
    assert answer.body["errors"][0]["field"] == "head"


async def test_many_pull_requests_are_swept_by_aliases(sandbox, app):
    numbers = [
        (await sandbox.act("open", "bob", REPO, files={f"{n}.txt": "x"}))["number"] for n in "abc"
    ]
    parts = " ".join(f"p{n}: pullRequest(number: {n}) {{ number headRefOid }}" for n in numbers)
    document = f'{{ repository(owner: "octo", name: "widgets") {{ {parts} }} }}'
    found = (await app.graphql(document))["data"]["repository"]
    assert [found[f"p{n}"]["number"] for n in numbers] == numbers


async def test_a_missing_pull_request_is_a_graphql_error_beside_what_was_found(app):
    place = 'repository(owner: "octo", name: "widgets")'
    document = f"{{ {place} {{ id pullRequest(number: 9) {{ url }} }} }}"
    answer = await app.graphql(document)
    assert answer["data"]["repository"]["pullRequest"] is None
    error = answer["errors"][0]
    assert (error["type"], error["path"]) == ("NOT_FOUND", ["repository", "pullRequest"])
    assert error["message"] == "Could not resolve to a PullRequest with the number of 9."


async def test_an_unknown_field_and_a_missing_bound_are_graphql_errors(sandbox, app):
    place = 'repository(owner: "octo", name: "widgets")'
    answer = await app.graphql(f"{{ {place} {{ stargazers }} }}")
    assert "stargazers" in answer["errors"][0]["message"]
    await sandbox.act("open", "bob", REPO, files={"a.txt": "a"})
    document = f"{{ {place} {{ pullRequest(number: 1) {{ labels {{ totalCount }} }} }} }}"
    assert "`first` or `last`" in (await app.graphql(document))["errors"][0]["message"]

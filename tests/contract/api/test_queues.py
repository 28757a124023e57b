"""The endpoints about queues, row by row."""

import re

import pytest

from service.landed_work import GENERATED
from tests.contract.api.test_pull_requests import ALONE

MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")

DEFAULTS: dict[str, object] = {
    "state": "RUNNING",
    "stateReason": None,
    "mode": "SINGLE",
    "shadow": False,
    "concurrency": 1,
    "bisectionConcurrency": 1,
    "testingTimeoutMinutes": 300,
    "checkStartTimeoutMinutes": 15,
    "notReadyTimeoutHours": 24,
    "canOptimisticallyMerge": False,
    "pendingFailureDepth": 0,
    "batch": False,
    "batchingMinSize": 4,
    "batchingMaxWaitTimeMinutes": 5,
    "batchSizing": "FIXED",
    "batchingRules": [],
    "optimizationMode": "OFF",
    "resultReuseEnabled": True,
    "directMergeMode": "OFF",
    "autoRetryLimit": 1,
    "flakyKnowledgeEnabled": True,
    "earlyFailures": True,
    "maxExcusedFailures": 5,
    "confirmFailures": "ALWAYS",
    "hedging": "OFF",
    "hedgeThreshold": 0.3,
    "fullSuite": False,
    "requiredStatuses": None,
    "headOnlyStatuses": [],
    "statusReporters": [],
    "mergeMethod": "SQUASH",
    "landTestedCommits": False,
    "commitTitle": None,
    "commitBody": None,
    "deleteBranch": False,
    "createPrsForTestingBranches": True,
    "testBranchConstructionMode": "RENAME_TEMP_BRANCH",
    "skippedStatusesPass": True,
    "optionalStatuses": [],
    "commentsEnabled": True,
    "commandsEnabled": True,
    "foreignCommandsEnabled": False,
    "statusCheckEnabled": True,
    "labelCommandsEnabled": True,
    "stateLabelsEnabled": False,
    "extensionEnabled": True,
    "enqueueingLabel": "headgate-submit",
    "forkPolicy": "REQUIRE_MAINTAINER",
    "sensitivePaths": [
        ".github/*",
        "action.yml",
        "action.yaml",
        "headgate.yml",
        "trunk.yaml",
        ".trunk/*",
        "CODEOWNERS",
        ".gitmodules",
        ".gitattributes",
        ".circleci/*",
        ".buildkite/*",
        "Jenkinsfile*",
        "*.jenkinsfile",
        ".jenkins/*",
        ".gitlab-ci*.yml",
        ".gitlab/*",
        "azure-pipelines*",
        ".azure-pipelines/*",
        ".pipelines/*",
        ".travis.yml",
        ".drone.*",
        ".woodpecker*",
        ".woodpecker/*",
        "appveyor.yml",
        ".appveyor.yml",
        "bitbucket-pipelines.yml",
        ".teamcity/*",
        ".sandbox/*",
    ],
    "allowedBotSubmitters": [],
    "redTarget": "OFF",
    "redTargetChecks": [],
    "redTargetRuns": 12,
    "conflictRadar": "OFF",
    "conflictRules": [],
    "undoneWork": "HOLD",
    "undoneWorkDays": 30,
    "generatedPaths": list(GENERATED),
    "fairShares": "SUBMITTERS",
    "openEntriesPerSubmitter": 0,
    "ciMinutesPerSubmitter": 0,
    "rules": [],
}
SHOWN = [
    *("version", "stateChangedAt", "stateChangedBy"),
    *("testBranchKind", "testBranchKindReason", "targetMode", "holds"),
    *("effectiveRequiredStatuses", "requiredStatusesSource"),
    *("ruleNotes", "settingSources", "repositoryFile", "links"),
]
CONFIGURATION = ["branch", *DEFAULTS, *SHOWN]

CHANGES = {
    "shadow": True,
    "concurrency": 7,
    "bisectionConcurrency": 0,
    "testingTimeoutMinutes": 60,
    "commitTitle": "{{ title }} (#{{ number }})",
    "commitBody": "{{body}}\n\nReviewed-in: {{ run_id }}",
    "deleteBranch": True,
    "createPrsForTestingBranches": False,
    "commentsEnabled": False,
    "commandsEnabled": False,
    "foreignCommandsEnabled": True,
    "statusCheckEnabled": False,
    "stateLabelsEnabled": True,
    "labelCommandsEnabled": False,
    "extensionEnabled": False,
    "enqueueingLabel": "ship it",
    "requiredStatuses": ["lint", "unit"],
    "directMergeMode": "ALWAYS",
    "mergeMethod": "MERGE_COMMIT",
    "landTestedCommits": True,
    "testBranchConstructionMode": "PUSH_NEW_BRANCH_FROM_TEMP",
    "notReadyTimeoutHours": 1.5,
    "allowedBotSubmitters": ["renovate[bot]"],
    "openEntriesPerSubmitter": 6,
    "ciMinutesPerSubmitter": 600,
    "skippedStatusesPass": False,
    "optionalStatuses": ["e2e"],
    "checkStartTimeoutMinutes": 30,
    "forkPolicy": "DENY",
    "sensitivePaths": ["deploy/**"],
    "undoneWork": "WARN",
    "undoneWorkDays": 90,
    "generatedPaths": ["*/made/*"],
    "autoRetryLimit": 0,
    "resultReuseEnabled": False,
    "confirmFailures": "BISECTION",
    "mode": "PARALLEL",
    "canOptimisticallyMerge": True,
    "pendingFailureDepth": 1,
    "batch": True,
    "batchingMinSize": 8,
    "batchingMaxWaitTimeMinutes": 1,
    "batchSizing": "ADAPTIVE",
    "batchingRules": [{"targetPattern": "//infra/*", "policy": "ISOLATE"}],
    "optimizationMode": "BISECTION_SKIP_REDUNDANT_TESTS",
    "hedging": "SPARE_SLOTS",
    "hedgeThreshold": 0.5,
    "fullSuite": True,
    "headOnlyStatuses": ["pr-title"],
    "statusReporters": ["unit=15368", "scan=@7", "docs=any"],
    "flakyKnowledgeEnabled": False,
    "earlyFailures": False,
    "maxExcusedFailures": 1,
    "redTarget": "REVERT",
    "redTargetChecks": ["nightly"],
    "redTargetRuns": 20,
    "conflictRadar": "ON",
    "conflictRules": [{"paths": ["CHANGELOG.md", "docs/*"], "rule": "CHANGELOG"}],
    "fairShares": "PEOPLE_AND_AGENTS",
    "rules": [
        {
            "name": "weekend",
            "when": '!("hotfix" in labels)',
            "during": {
                "start": "2026-11-27T18:00",
                "zone": "Europe/Berlin",
                "minutes": 3720,
                "repeat": "FREQ=WEEKLY",
                "exceptOn": ["2026-12-25"],
            },
            "priority": 10,
            "enter": False,
            "waitFor": "the end of the weekend",
        },
        {
            "name": "hotfix",
            "when": "",
            "during": None,
            "priority": None,
            "enter": True,
            "waitFor": "",
        },
    ],
}


async def test_a_queue_is_made_with_the_documents_defaults(client, world):
    branch = await world.new_branch()
    answer = await client.done("createQueue", client.named(branch))
    assert list(answer) == [*CONFIGURATION, "ignoredFields"]
    assert {name: answer[name] for name in DEFAULTS} == DEFAULTS
    assert (answer["branch"], answer["ignoredFields"]) == (branch, [])
    assert [each["reason"] for each in answer["holds"]] == ["required_statuses_missing"]
    assert answer["targetMode"] is None
    assert answer["effectiveRequiredStatuses"] == []
    assert answer["requiredStatusesSource"] is None
    assert MOMENT.fullmatch(answer["stateChangedAt"])


async def test_a_queue_is_made_with_every_setting_that_is_sent(client, world):
    branch = await world.new_branch()
    answer = await client.done("createQueue", client.named(branch, **CHANGES, state="PAUSED"))
    assert {name: answer[name] for name in CHANGES} == CHANGES
    assert answer["state"] == "PAUSED"


async def test_bisection_runs_follow_the_concurrency_at_creation(client, world):
    body = client.named(await world.new_branch(), concurrency=5)
    assert (await client.done("createQueue", body))["bisectionConcurrency"] == 5


async def test_a_queue_says_which_settings_were_set_on_it(client, world):
    body = client.named(await world.new_branch(), batch=True, requiredStatuses=["unit"])
    made = await client.done("createQueue", body)
    chosen = {name for name, source in made["settingSources"].items() if source == "API"}
    assert chosen == {"batch", "requiredStatuses"}
    assert set(made["settingSources"].values()) == {"API", "DEFAULT"}
    assert set(made["settingSources"]) == set(DEFAULTS) - {"state", "stateReason"}
    body = client.named(body["targetBranch"], deleteRequiredStatuses=True)
    changed = await client.done("updateQueue", body)
    assert changed["settingSources"]["requiredStatuses"] == "DEFAULT"


async def test_making_a_queue_lists_what_it_ignores(client, world):
    body = client.named(await world.new_branch(), concurency=5, version=3, holds=[])
    answer = await client.done("createQueue", body)
    assert answer["ignoredFields"] == ["concurency", "holds", "version"]


async def test_a_branch_has_one_queue(client, queue):
    answer = await client.post("createQueue", queue.named())
    assert answer.is_problem(409, "queue_exists")


@pytest.mark.parametrize("branch", ["nothing-here", "not a branch", "a..b", "x.lock"])
async def test_a_queue_needs_a_branch(client, world, branch):
    answer = await client.post("createQueue", client.named(branch))
    assert answer.is_problem(404, "branch_not_found")


async def test_a_queue_shows_its_settings_and_everything_in_it(queue):
    first = await queue.submitted()
    second = await queue.submitted()
    draft = await queue.world.open_pull_request(queue.branch, draft=True)
    await queue.client.done("submitPullRequest", queue.about(draft))
    urgent = await queue.submitted(priority=0)
    shown = await queue.get()
    assert list(shown) == [*CONFIGURATION, "troubles", "enqueuedPullRequests", "recordVersion"]
    assert shown["effectiveRequiredStatuses"] == ["unit", "gate"]
    assert shown["requiredStatusesSource"] == "merge_instance"
    listed = shown["enqueuedPullRequests"]
    assert {each["prNumber"] for each in listed} == {first, second, draft, urgent}
    assert listed[-1]["prNumber"] == draft
    assert [each["position"] for each in listed] == [1, 2, 3, None]
    assert {each["queueLength"] for each in listed} == {3}
    alone = await queue.record(second)
    for name in (*ALONE, "recordVersion"):
        del alone[name]
    assert list(listed[0]) == list(alone)
    assert alone in listed


async def test_an_update_changes_what_it_names(client, queue):
    before = await queue.get()
    for name, value in CHANGES.items():
        answer = await client.done("updateQueue", queue.named(**{name: value}))
        assert list(answer) == CONFIGURATION, name
        assert answer["version"] > before["version"], name
        expected = {**{each: before[each] for each in DEFAULTS}, name: value}
        assert {each: answer[each] for each in DEFAULTS} == expected, name
        before = answer


async def test_an_update_that_changes_nothing_keeps_the_version(client, queue):
    before = await queue.get()
    for body in ({}, {"branch": queue.branch}, {"mergeMethod": "squash"}, {"concurrency": 1.0}):
        answer = await client.done("updateQueue", {**queue.named(), **body})
        assert answer["version"] == before["version"]


async def test_an_update_of_an_unknown_name_suggests_the_known_one(client, queue):
    answer = await client.post("updateQueue", queue.named(concurency=5))
    assert answer.is_problem(400, "unknown_field")
    (error,) = answer.json["errors"]
    assert (error["field"], error["code"]) == ("/concurency", "unknown")
    assert error["did_you_mean"] == "concurrency"


@pytest.mark.parametrize("name", [*SHOWN, "enqueuedPullRequests"])
async def test_what_is_only_shown_is_not_set(client, name):
    answer = await client.post("updateQueue", client.named(**{name: 1}))
    assert answer.is_problem(400, "invalid_field")
    assert answer.json["errors"][0]["code"] == "read_only"


async def test_an_update_is_all_or_nothing(client, queue):
    before = await queue.get()
    answer = await client.post("updateQueue", queue.named(concurrency=9, autoRetryLimit=99))
    assert answer.is_problem(400, "invalid_field")
    assert await queue.get() == before


async def test_an_expected_version_must_be_the_present_one(client, queue):
    version = (await queue.get())["version"]
    body = queue.named(concurrency=2, expectedVersion=version)
    assert (await client.done("updateQueue", body))["concurrency"] == 2
    body["concurrency"] = 3
    answer = await client.post("updateQueue", body)
    assert answer.is_problem(409, "version_conflict")


async def test_the_version_counts_what_is_shown_of_the_queue_and_not_its_entries(client, queue):
    version = (await queue.get())["version"]
    await queue.submitted()
    assert (await queue.get())["version"] == version
    hold = await client.done("addQueueHold", queue.named(text="release"))
    assert (await queue.get())["version"] == version + 1
    about = queue.named(holdId=hold["hold"]["id"], text="released")
    await client.done("releaseQueueHold", about)
    assert (await queue.get())["version"] == version + 2


async def test_an_override_of_required_statuses_is_set_and_dropped(client, queue):
    async def update(**more):
        return await client.done("updateQueue", queue.named(**more))

    assert (await update(requiredStatuses=["a", "a", "b"]))["requiredStatuses"] == ["a", "b"]
    assert (await update(requiredStatuses=[]))["requiredStatuses"] == []
    assert (await update(requiredStatuses=["a"]))["effectiveRequiredStatuses"] == ["a"]
    assert (await update(requiredStatuses=None))["requiredStatuses"] is None
    await update(requiredStatuses=["a"])
    assert (await update(deleteRequiredStatuses=True))["requiredStatuses"] is None
    body = queue.named(requiredStatuses=["a"], deleteRequiredStatuses=True)
    assert (await client.post("updateQueue", body)).is_problem(422, "conflicting_fields")


async def test_a_queue_is_paused_drained_and_set_going_again(client, queue):
    async def update(**more):
        answer = await client.done("updateQueue", queue.named(**more))
        return answer["state"], answer["stateReason"]

    assert await update(state="paused", stateReason="release") == ("PAUSED", "release")
    assert await update(state="DRAINING") == ("DRAINING", None)
    assert await update(state="RUNNING") == ("RUNNING", None)
    shown = await queue.get()
    assert shown["stateChangedBy"]["kind"] == "token"


async def test_a_reason_that_comes_alone_belongs_to_the_present_state(client, queue):
    await client.done("updateQueue", queue.named(state="PAUSED", stateReason="release"))
    answer = await client.done("updateQueue", queue.named(stateReason="still the release"))
    assert (answer["state"], answer["stateReason"]) == ("PAUSED", "still the release")


async def test_switching_modes_is_not_set_by_hand(client, queue):
    answer = await client.post("updateQueue", queue.named(state="SWITCHING_MODES"))
    assert answer.is_problem(400, "invalid_field")


@pytest.mark.parametrize(
    ("name", "value", "field"),
    [
        ("mode", "DOUBLE", "/mode"),
        ("batchSizing", "LARGE", "/batchSizing"),
        ("batchingMinSize", 0, "/batchingMinSize"),
        ("batchingMaxWaitTimeMinutes", 10081, "/batchingMaxWaitTimeMinutes"),
        ("pendingFailureDepth", 1001, "/pendingFailureDepth"),
        ("hedging", "ALWAYS", "/hedging"),
        ("hedgeThreshold", 0.96, "/hedgeThreshold"),
        ("optimizationMode", "ON", "/optimizationMode"),
        ("fullSuite", "true", "/fullSuite"),
        ("batchingRules", [{"targetPattern": "//a*b"}], "/batchingRules/0/targetPattern"),
        ("batchingRules", ["//a"], "/batchingRules/0"),
        ("rules", [{"name": "a", "when": "1 +", "enter": True}], "/rules/0/when"),
        ("rules", [{"name": "a", "waitFor": " "}], "/rules/0/waitFor"),
        ("rules", [{"name": "a", "enter": True}] * 2, "/rules/1/name"),
        ("rules", [{"name": "a", "priority": "soon"}], "/rules/0/priority"),
        (
            "rules",
            [{"name": "a", "enter": True, "during": {"start": "1", "zone": "UTC", "minutes": 1}}],
            "/rules/0/during/start",
        ),
    ],
)
async def test_a_setting_of_batches_and_lanes_keeps_its_range(client, name, value, field):
    answer = await client.post("updateQueue", client.named(**{name: value}))
    assert answer.is_problem(400, "invalid_field")
    assert answer.json["errors"][0]["field"] == field


@pytest.mark.parametrize("place", ["wehn", "during"])
async def test_a_misspelled_key_of_a_rule_is_refused_even_where_unknown_fields_are_ignored(
    client, world, place
):
    rule = {"name": "a", "enter": True}
    period = {"start": "2026-11-27T18:00", "zone": "UTC", "minutes": 1, "wehn": ""}
    rules = [rule | ({"during": period} if place == "during" else {"wehn": "draft"})]
    branch = await world.new_branch()
    for endpoint, named in (("createQueue", client.named(branch)), ("updateQueue", client.named())):
        answer = await client.post(endpoint, {**named, "rules": rules})
        assert answer.is_problem(400, "invalid_field")
        [fault] = answer.json["errors"]
        assert fault["field"].endswith("/wehn")


async def test_a_merge_method_the_repository_lacks_is_refused(client, world, queue):
    methods = {"rebase": False}
    await world.seed(repositories=[{"full_name": "octo/strict", "settings": methods}])
    await world.act("push", repo="octo/strict", branch="main", files={"x": "x"}, bypass=True)
    await world.settle()
    strict = client.named("main", mergeMethod="REBASE")
    strict["repo"] = {**strict["repo"], "name": "strict"}
    answer = await client.post("createQueue", strict)
    assert answer.is_problem(422, "merge_method_not_allowed")


async def test_only_an_empty_queue_is_deleted(client, queue):
    number = await queue.submitted()
    answer = await client.post("deleteQueue", queue.named())
    assert answer.is_problem(409, "queue_not_empty")
    assert answer.json["pull_requests"] == [number]
    await client.done("cancelPullRequest", queue.about(number))
    gone = await client.done("deleteQueue", queue.named())
    assert gone == {"deleted": True, "branch": queue.branch}
    answer = await client.post("getQueue", queue.named())
    assert answer.is_problem(404, "queue_not_found")
    answer = await client.post("deleteQueue", queue.named())
    assert answer.is_problem(404, "queue_not_found")


async def test_a_deleted_queue_can_be_made_again(client, queue):
    await client.done("deleteQueue", queue.named())
    assert (await client.done("createQueue", queue.named()))["branch"] == queue.branch


async def test_a_hold_is_added_shown_and_released(client, queue):
    body = queue.named(text="release week", scope="land", until="2999-01-01T00:00:00+01:00")
    hold = (await client.done("addQueueHold", body))["hold"]
    assert list(hold) == [*("id", "reason", "scope", "text", "by", "since", "until", "evidenceUrl")]
    assert (hold["reason"], hold["scope"], hold["text"]) == ("freeze", "LAND", "release week")
    assert hold["until"] == "2998-12-31T23:00:00.000Z"
    assert hold["by"] == {"kind": "token", "login": "admin of octo", "channel": "api"}
    assert (await queue.get())["holds"] == [hold]
    body = queue.named(holdId=hold["id"].upper(), text="over")
    answer = await client.done("releaseQueueHold", body)
    assert answer == {"released": True, "holdId": hold["id"]}
    assert (await queue.get())["holds"] == []
    assert (await client.post("releaseQueueHold", body)).is_problem(404, "hold_not_found")


async def test_a_hold_stops_both_unless_told_otherwise(client, queue):
    hold = (await client.done("addQueueHold", queue.named(text="x", until=None)))["hold"]
    assert (hold["scope"], hold["until"]) == ("BOTH", None)
    number = await queue.submitted()
    assert (await queue.record(number))["state"] == "PENDING"


async def test_running_lifts_no_hold(client, queue):
    await client.done("addQueueHold", queue.named(text="x"))
    answer = await client.done("updateQueue", queue.named(state="RUNNING"))
    assert len(answer["holds"]) == 1


async def test_a_hold_ends_in_the_future(client, queue):
    body = queue.named(text="x", until="2020-01-01T00:00:00Z")
    answer = await client.post("addQueueHold", body)
    assert answer.is_problem(400, "invalid_field")
    assert answer.json["errors"][0]["field"] == "/until"


async def test_there_is_room_for_twenty_holds(client, queue):
    for _ in range(20):
        await client.done("addQueueHold", queue.named(text="x"))
    answer = await client.post("addQueueHold", queue.named(text="x"))
    assert answer.is_problem(422, "limit_reached")


@pytest.mark.parametrize("hold", ["x", "6d1f7a528a0c4c1a9a553f3b1d6f2c10"])
async def test_a_malformed_hold_is_no_hold(client, queue, hold):
    answer = await client.post("releaseQueueHold", queue.named(holdId=hold, text="x"))
    assert answer.is_problem(400, "invalid_field")

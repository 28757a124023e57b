"""The endpoints about pull requests, row by row."""

import asyncio
import io
import json
import re

import pytest

RECORD = [
    *("id", "state", "stateChangedAt", "priorityValue", "priorityName"),
    *("usedDefaultPriorityName", "skipTheLine", "noBatch", "prTitle", "prNumber", "prSha"),
    *("prBaseBranch", "prAuthor", "readiness", "forceEnqueued", "isCurrentlySubmittedToQueue"),
    "requiredChecks",
    *("verifiedByTestRun", "testRunId", "reason", "reasonMessage", "retryable", "whoMustAct"),
    *("position", "queueLength", "eta", "submittedAt", "submittedBy", "rules"),
    *("restarts", "conclusion"),
    "links",
]
ALONE = ["readiness", "forceEnqueued", "isCurrentlySubmittedToQueue", "requiredChecks"]
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


async def test_submitting_makes_an_entry_and_shows_its_record(client, queue):
    number = await queue.world.open_pull_request(queue.branch, title="Cart totals", by="alice")
    answer = await client.done("submitPullRequest", queue.about(number))
    assert list(answer) == [*RECORD, "result"]
    assert UUID.fullmatch(answer["id"])
    assert MOMENT.fullmatch(answer["submittedAt"])
    expected = {
        "result": "created",
        "prNumber": number,
        "prTitle": "Cart totals",
        "prBaseBranch": queue.branch,
        "prAuthor": "alice",
        "priorityValue": 100,
        "priorityName": "medium",
        "usedDefaultPriorityName": "medium",
        "skipTheLine": False,
        "noBatch": False,
        "forceEnqueued": False,
        "isCurrentlySubmittedToQueue": True,
        "conclusion": None,
        "restarts": {},
        "eta": None,
    }
    assert {name: answer[name] for name in expected} == expected
    assert answer["submittedBy"] == {"kind": "token", "login": "admin of octo", "channel": "api"}
    assert answer["links"]["pullRequest"].endswith(f"/octo/widgets/pull/{number}")


async def test_submitting_again_with_the_same_head_updates_or_changes_nothing(client, queue):
    number = await queue.submitted()

    async def again(**more):
        answer = await client.done("submitPullRequest", queue.about(number, **more))
        return answer["result"], answer["priorityValue"], answer["noBatch"]

    assert await again() == ("unchanged", 100, False)
    assert await again(priority="high") == ("updated", 10, False)
    assert await again(noBatch=True) == ("updated", 10, True)
    assert await again() == ("unchanged", 10, True)
    assert await again(priority=None) == ("updated", 100, True)
    assert await again(priority="0", noBatch=False) == ("updated", 0, False)


@pytest.mark.parametrize(
    ("sent", "value", "name"),
    [
        (0, 0, "urgent"),
        pytest.param(1, 1, "high", marks=pytest.mark.soak),
        ("10", 10, "high"),
        ("Medium", 100, "medium"),
        pytest.param(101, 101, "low", marks=pytest.mark.soak),
        (255, 255, "lowest"),
    ],
)
async def test_a_priority_shows_as_value_and_level(client, queue, sent, value, name):
    number = await queue.world.open_pull_request(queue.branch)
    answer = await client.done("submitPullRequest", queue.about(number, priority=sent))
    assert (answer["priorityValue"], answer["priorityName"]) == (value, name)
    assert answer["skipTheLine"] is (value == 0)


async def test_a_new_head_ends_the_old_submission(client, queue):
    number = await queue.submitted()
    before = await queue.record(number)
    await queue.world.act("push", number=number, files={"more.txt": "x\n"})
    answer = await client.done("submitPullRequest", queue.about(number))
    assert answer["result"] == "created"
    assert answer["id"] != before["id"]
    assert answer["prSha"] != before["prSha"]


async def test_the_head_that_was_meant_must_be_the_present_one(client, queue):
    number = await queue.world.open_pull_request(queue.branch)
    body = queue.about(number)
    body["pr"]["sha"] = "0" * 40
    answer = await client.post("submitPullRequest", body)
    assert answer.is_problem(409, "head_mismatch")
    first = await client.done("submitPullRequest", queue.about(number))
    body["pr"]["sha"] = first["prSha"][:7].upper()
    assert (await client.done("submitPullRequest", body))["result"] == "unchanged"


async def test_what_does_not_exist_is_not_submitted(client, queue):
    answer = await client.post("submitPullRequest", queue.about(999_999))
    assert answer.is_problem(404, "pull_request_not_found")


async def test_what_is_closed_is_not_submitted(client, queue):
    number = await queue.world.open_pull_request(queue.branch)
    await queue.world.act("close", number=number)
    answer = await client.post("submitPullRequest", queue.about(number))
    assert answer.is_problem(422, "pull_request_closed")


async def test_what_is_merged_is_not_submitted(client, queue):
    number = await queue.world.open_pull_request(queue.branch)
    await queue.world.act("merge", number=number, by="alice")
    answer = await client.post("submitPullRequest", queue.about(number))
    assert answer.is_problem(422, "pull_request_merged")


async def test_a_fork_needs_a_person(client, queue):
    number = await queue.world.open_pull_request(queue.branch, by="dave", fork=True)
    answer = await client.post("submitPullRequest", queue.about(number))
    assert answer.is_problem(422, "fork_needs_person")


async def test_without_required_statuses_nothing_is_taken(client, world, queue):
    await client.done("updateQueue", queue.named(deleteRequiredStatuses=True))
    number = await world.open_pull_request(queue.branch)
    answer = await client.post("submitPullRequest", queue.about(number))
    assert answer.is_problem(422, "no_required_statuses")


async def test_a_draft_is_taken_and_waits_until_it_is_ready(client, queue):
    number = await queue.world.open_pull_request(queue.branch, draft=True)
    answer = await client.done("submitPullRequest", queue.about(number))
    assert (answer["state"], answer["position"]) == ("NOT_READY", None)
    assert answer["reasonMessage"]


@pytest.mark.parametrize("state", ["PAUSED", "DRAINING"])
async def test_a_queue_that_stands_takes_submissions(client, queue, state):
    await client.done("updateQueue", queue.named(state=state))
    number = await queue.submitted()
    assert (await queue.record(number))["state"] == "PENDING"


async def test_the_status_shows_the_newest_submission(client, queue):
    number = await queue.submitted()
    record = await queue.record(number)
    assert list(record) == [*RECORD, "recordVersion"]
    assert record["state"] == "TESTING"
    assert UUID.fullmatch(record["testRunId"])
    assert (record["position"], record["queueLength"]) == (1, 1)
    assert record["readiness"] == {
        "hasImpactedTargets": False,
        "requiresImpactedTargets": False,
        "doesBaseBranchMatch": True,
        "gitHubMergeability": "MERGEABLE",
    }


async def test_the_status_may_be_asked_with_a_number_in_digits(queue):
    number = await queue.submitted()
    assert (await queue.record(number))["prNumber"] == number
    answer = await queue.client.done("getSubmittedPullRequest", queue.about(str(number)))
    assert answer["prNumber"] == number


async def test_the_timeline_comes_when_asked_for_and_has_no_gaps(queue):
    number = await queue.submitted()
    record = await queue.record(number, includeTimeline=True)
    assert list(record) == [*RECORD, "timeline", "recordVersion"]
    events = record["timeline"]
    assert [each["sequence"] for each in events] == list(range(1, len(events) + 1))
    assert [each["at"] for each in events] == sorted(each["at"] for each in events)
    for each in events:
        assert list(each) == [
            *("sequence", "at", "event", "from", "to", "reason", "message", "actor"),
            "testRunId",
        ]
        assert MOMENT.fullmatch(each["at"])
        assert each["message"]
    assert events[0]["event"] == "EntrySubmitted"
    moves = [(each["from"], each["to"]) for each in events if each["event"] == "EntryMoved"]
    assert moves[-1] == ("PENDING", "TESTING")


async def test_what_was_never_submitted_has_no_status(client, queue):
    number = await queue.world.open_pull_request(queue.branch)
    for name in ("getSubmittedPullRequest", "explainPullRequest"):
        answer = await client.post(name, queue.about(number))
        assert answer.is_problem(404, "never_submitted")


async def test_cancelling_takes_it_out_and_keeps_the_reason(client, queue):
    number = await queue.submitted()
    answer = await client.done("cancelPullRequest", queue.about(number, reason="not today"))
    assert list(answer) == RECORD
    assert (answer["state"], answer["reason"]) == ("CANCELLED", "api_requested")
    assert answer["isCurrentlySubmittedToQueue"] is False
    assert answer["position"] is None
    assert list(answer["conclusion"]) == [
        *("at", "cause", "mergedSha", "testRunId", "failedStatuses")
    ]
    assert "not today" in answer["reasonMessage"]
    assert (await queue.get())["enqueuedPullRequests"] == []


async def test_cancelling_twice_finds_nothing_in_the_queue(client, queue):
    number = await queue.submitted()
    await client.done("cancelPullRequest", queue.about(number))
    for name in ("cancelPullRequest", "restartTestsOnPullRequest"):
        answer = await client.post(name, queue.about(number))
        assert answer.is_problem(404, "not_in_queue")


async def test_a_cancelled_pull_request_may_be_submitted_again(client, queue):
    number = await queue.submitted()
    first = await client.done("cancelPullRequest", queue.about(number))
    again = await client.done("submitPullRequest", queue.about(number))
    assert (again["result"], again["id"] == first["id"]) == ("created", False)


async def test_restarting_begins_the_tests_anew(client, queue):
    number = await queue.submitted()
    before = await queue.record(number)
    answer = await client.done("restartTestsOnPullRequest", queue.about(number))
    assert list(answer) == [*RECORD, "result"]
    assert answer["result"] == "restarted"
    await queue.world.settle()
    after = await queue.record(number)
    assert after["testRunId"] != before["testRunId"]
    assert after["restarts"] == {"restarted_by_api": 1}


async def test_restarting_is_not_needed_before_tests_have_begun(client, queue):
    await client.done("updateQueue", queue.named(state="PAUSED"))
    number = await queue.submitted()
    answer = await client.done("restartTestsOnPullRequest", queue.about(number))
    assert (answer["result"], answer["state"]) == ("not_needed", "PENDING")


async def test_many_restarts_at_once_are_one_new_run(client, queue):
    number = await queue.submitted()
    before = await queue.record(number)
    body = queue.about(number)
    answers = await asyncio.gather(
        *(client.done("restartTestsOnPullRequest", body) for _ in range(20))
    )
    results = [each["result"] for each in answers]
    assert sorted(set(results)) == ["not_needed", "restarted"]
    assert results.count("restarted") == 1
    await queue.world.settle()
    after = await queue.record(number)
    assert after["restarts"] == {"restarted_by_api": 1}
    runs = await client.done("listMergeQueueTestingResults", queue.named(prNumber=number))
    assert {each["testRunId"] for each in runs["testingResults"]} >= {
        before["testRunId"],
        after["testRunId"],
    }
    assert len(runs["testingResults"]) == 2


async def test_what_has_landed_is_merged_and_cannot_be_cancelled(client, open_queue):
    number = await open_queue.submitted()
    record = await open_queue.record(number)
    assert (record["state"], record["reason"]) == ("MERGED", "landed")
    assert re.fullmatch(r"[0-9a-f]{40}", record["conclusion"]["mergedSha"])
    assert record["verifiedByTestRun"] == record["testRunId"]
    answer = await client.post("cancelPullRequest", open_queue.about(number))
    assert answer.status in (404, 409)
    assert answer.json["code"] in ("not_in_queue", "already_landed")


async def test_what_fails_leaves_with_the_failed_status(open_queue):
    number = await open_queue.world.open_pull_request(
        open_queue.branch, files={"broken.txt": "x\n"}
    )
    await open_queue.client.done("submitPullRequest", open_queue.about(number))
    await open_queue.world.settle()
    record = await open_queue.record(number)
    assert record["state"] == "FAILED"
    assert record["conclusion"]["failedStatuses"] == ["unit"]
    assert record["whoMustAct"] == "author"


async def test_targets_are_counted_once_each(client, queue):
    number = await queue.submitted()
    body = queue.about(number, impactedTargets=["//b", "//a", "//b"])
    answer = await client.done("setImpactedTargets", body)
    sha = (await queue.record(number))["prSha"]
    assert answer == {"prNumber": number, "prSha": sha, "impactsAll": False, "targetCount": 2}
    assert (await queue.record(number))["readiness"]["hasImpactedTargets"] is True


@pytest.mark.parametrize("sent", ["ALL", "IMPACTS_ALL", ["//a", "ALL"]])
async def test_all_targets_are_said_in_one_word(client, queue, sent):
    number = await queue.world.open_pull_request(queue.branch)
    answer = await client.done("setImpactedTargets", queue.about(number, impactedTargets=sent))
    assert (answer["impactsAll"], answer["targetCount"]) == (True, 0)


async def test_no_targets_are_targets_too(client, queue):
    number = await queue.world.open_pull_request(queue.branch)
    answer = await client.done("setImpactedTargets", queue.about(number, impactedTargets=[]))
    assert (answer["impactsAll"], answer["targetCount"]) == (False, 0)


async def test_targets_may_be_said_of_a_head_that_is_named(client, queue):
    number = await queue.world.open_pull_request(queue.branch)
    body = queue.about(number, impactedTargets=["//a"])
    body["pr"]["sha"] = "ABCDEF0123" * 4
    answer = await client.done("setImpactedTargets", body)
    assert answer["prSha"] == "abcdef0123" * 4


async def test_targets_of_what_does_not_exist_are_refused(client, queue):
    body = queue.about(999_999, impactedTargets=[])
    answer = await client.post("setImpactedTargets", body)
    assert answer.is_problem(404, "pull_request_not_found")


async def test_a_very_long_list_of_targets_is_taken(client, queue):
    number = await queue.world.open_pull_request(queue.branch)
    names = [f"//some/package/of/the/tree:target-{index:07}" for index in range(400_000)]
    body = json.dumps(queue.about(number, impactedTargets=names)).encode()
    assert len(body) > 15_000_000
    answer = await client.ask("POST", "/v1/setImpactedTargets", data=io.BytesIO(body))
    assert (answer.status, answer.json["targetCount"]) == (200, 400_000)


async def test_the_explanation_of_an_end_says_what_to_do_about_it(client, queue):
    number = await queue.submitted()
    await client.done("cancelPullRequest", queue.about(number))
    answer = await client.done("explainPullRequest", queue.about(number))
    assert answer["summary"].endswith("Comment /merge to queue it again.")


async def test_an_explanation_says_what_is_met_and_what_is_not(client, queue):
    first = await queue.submitted()
    second = await queue.submitted()
    answer = await client.done("explainPullRequest", queue.about(second))
    assert list(answer) == [
        *(
            "prNumber",
            "state",
            "reason",
            "summary",
            "troubles",
            "conditions",
            "next",
            "ahead",
            "behind",
        ),
        *("dependsOn", "requiredStatuses", "requiredStatusesSource", "suspicion", "suspects"),
        *("failures", "requiredChecks", "conflicts", "nextStep"),
        *("page", "eta", "etaUnknownReason"),
    ]
    assert (answer["prNumber"], answer["state"]) == (second, "PENDING")
    assert answer["summary"] == "In the queue, 2nd of 2."
    assert (answer["ahead"], answer["behind"]) == ([first], [])
    assert answer["requiredStatuses"] == ["unit", "gate"]
    assert answer["requiredStatusesSource"] == "merge_instance"
    assert answer["etaUnknownReason"] == "Fewer than 5 runs so far."
    for each in answer["conditions"]:
        assert list(each) == [
            *("code", "met", "standing", "text", "since", "whoMustAct", "pullRequests", "url"),
        ]
        assert each["text"]
    assert "free_slot" in [each["code"] for each in answer["conditions"] if not each["met"]]
    assert list(answer["next"]) == ["what", "at", "pullRequests"]


async def test_an_explanation_of_what_has_left_says_what_to_do(client, queue):
    number = await queue.submitted()
    await client.done("cancelPullRequest", queue.about(number))
    answer = await client.done("explainPullRequest", queue.about(number))
    assert (answer["state"], answer["conditions"], answer["failures"]) == ("CANCELLED", [], None)
    assert answer["next"]["what"] == "Comment /merge to queue it again."


async def test_a_preview_says_what_a_cancel_would_do_and_changes_nothing(client, queue):
    await client.done("updateQueue", queue.named(concurrency=2))
    numbers = [await queue.submitted() for _ in range(3)]
    before = [await queue.record(number) for number in numbers]
    answer = await client.done("previewCancelPullRequest", queue.about(numbers[0]))
    assert list(answer) == [
        *("prNumber", "runsInterrupted", "pullRequestsRestarted", "pullRequestsMovedUp")
    ]
    assert answer == {
        "prNumber": numbers[0],
        "runsInterrupted": [each["testRunId"] for each in before[:2]],
        "pullRequestsRestarted": [numbers[1]],
        "pullRequestsMovedUp": numbers[1:],
    }
    assert [await queue.record(number) for number in numbers] == before


async def test_another_priority_is_previewed_and_changes_nothing(client, queue):
    numbers = [await queue.submitted() for _ in range(3)]
    before = [await queue.record(number) for number in numbers]
    body = queue.about(numbers[2], priority="urgent")
    answer = await client.done("previewPriority", body)
    assert answer["pullRequestsMovedUp"] == [numbers[2]]
    assert answer["pullRequestsMovedBack"] == numbers[:2]
    assert answer["runsInterrupted"] == [before[0]["testRunId"]]
    assert [await queue.record(number) for number in numbers] == before
    other = await queue.world.open_pull_request(queue.branch)
    missing = await client.post("previewPriority", queue.about(other, priority="high"))
    assert missing.is_problem(404, "not_in_queue")


async def test_a_pull_request_finds_the_queue_of_its_base_branch(client, queue, world):
    number = await world.open_pull_request(queue.branch)
    about = {"repo": queue.named()["repo"], "pr": {"number": number}}
    found = {"prNumber": number, "targetBranch": queue.branch}
    assert await client.done("findQueue", about) == found
    reader = world.read_token
    assert (await client.post("findQueue", about, reader)).is_problem(404, "never_submitted")

    await client.done("submitPullRequest", queue.about(number))
    await world.act("retarget", number=number, base="main")
    assert await client.done("findQueue", about) == found
    await client.done("cancelPullRequest", queue.about(number))
    assert await client.done("findQueue", about, reader) == found
    missing = {**about, "pr": {"number": 999_999}}
    assert (await client.post("findQueue", missing)).is_problem(404, "pull_request_not_found")


async def test_the_provider_is_asked_for_a_queue_only_if_ours_do_not_say(client, queue, world):
    number = await queue.submitted()
    about = {"repo": queue.named()["repo"], "pr": {"number": number}}
    found = {"prNumber": number, "targetBranch": queue.branch}
    asked = f'"number": {number},'  # the queues of other tests are read as well
    await world.settle()
    await world.break_down(asked)
    assert await client.done("findQueue", about) == found
    assert await world.failed_requests() == 0

    await client.done("cancelPullRequest", queue.about(number))
    await world.settle()
    await world.break_down(asked)
    assert await client.done("findQueue", about) == found
    assert await world.failed_requests() > 0


async def test_a_pull_request_whose_base_has_no_queue_finds_none(client, queue, world):
    branch = await world.new_branch()
    number = await world.open_pull_request(branch)
    about = {"repo": queue.named()["repo"], "pr": {"number": number}}
    answer = await client.post("findQueue", about)
    assert answer.is_problem(404, "queue_not_found")
    said = f'Branch "{branch}" has no queue. Queues in this repository: '
    assert answer.json["detail"].startswith(said)
    assert queue.branch in answer.json["branches"]


async def test_what_is_not_queued_has_no_preview(client, queue):
    number = await queue.world.open_pull_request(queue.branch)
    answer = await client.post("previewCancelPullRequest", queue.about(number))
    assert answer.is_problem(404, "not_in_queue")


async def test_an_explanation_says_how_far_the_batch_is(client, queue):
    settings = {"batch": True, "batchingMinSize": 4, "batchingMaxWaitTimeMinutes": 60}
    await client.done("updateQueue", queue.named(state="PAUSED", **settings))
    first, second = await queue.submitted(), await queue.submitted()
    answer = await client.done("explainPullRequest", queue.about(second))
    conditions = {each["code"]: each for each in answer["conditions"]}
    batch = conditions["batch_complete"]
    assert (batch["met"], batch["pullRequests"]) == (False, [first])
    assert batch["text"] == f"Its batch is complete (2 of 4 so far, with #{first})."
    assert conditions["its_turn"]["met"] is True

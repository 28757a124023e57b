"""The endpoints that list, row by row and their cursors (docs/design/http.md 8)."""

import re

import pytest

from tests.contract.api.conftest import made, removed
from tests.contract.api.test_pull_requests import ALONE, MOMENT, RECORD, UUID

LISTED = [name for name in RECORD if name not in ALONE]
EVENT = [
    *("sequence", "at", "event", "from", "to", "reason", "message", "actor"),
    "testRunId",
]
LISTS = {
    "listPullRequests": "pullRequests",
    "getPullRequestTimeline": "events",
    "listQueues": "queues",
}


async def numbers_in(queue, **more):
    """The pull requests of one part of the list."""
    answer = await queue.client.done("listPullRequests", queue.named(**more))
    return [each["prNumber"] for each in answer["pullRequests"]]


async def parts(client, name, body, take):
    """Every part of a list, by following its cursor."""
    found = []
    cursor = ""
    while cursor is not None:
        answer = await client.done(name, {**body, "take": take, "cursor": cursor})
        found.append(answer[LISTS[name]])
        assert list(answer) in ([LISTS[name], "nextCursor"], [LISTS[name]])
        cursor = answer.get("nextCursor")
    return found


async def test_many_records_come_in_the_order_asked_for_and_the_unknown_are_named(client, queue):
    ended, live = await queue.submitted(), await queue.submitted()
    await client.done("cancelPullRequest", queue.about(ended))
    sent = [str(live), 99_999, ended, live]
    answer = await client.done("getSubmittedPullRequests", queue.named(prNumbers=sent))
    assert list(answer) == ["pullRequests", "notFound"]
    shown = [(each["prNumber"], each["state"]) for each in answer["pullRequests"]]
    assert shown == [(live, "TESTING"), (ended, "CANCELLED")]
    assert answer["notFound"] == [99_999]
    for each in answer["pullRequests"]:
        assert list(each) == LISTED
        alone = await queue.record(each["prNumber"])
        assert each == {name: alone[name] for name in LISTED}


async def test_many_records_show_the_newest_submission_and_its_timeline_when_asked(client, queue):
    number = await queue.submitted()
    first = await client.done("cancelPullRequest", queue.about(number))
    body = queue.named(prNumbers=[number], includeTimeline=True)
    (record,) = (await client.done("getSubmittedPullRequests", body))["pullRequests"]
    assert list(record) == [*LISTED, "timeline"]
    assert record["id"] == first["id"]
    assert record["timeline"] == (await queue.record(number, includeTimeline=True))["timeline"]
    again = await client.done("submitPullRequest", queue.about(number))
    (record,) = (await client.done("getSubmittedPullRequests", body))["pullRequests"]
    assert record["id"] == again["id"]


@pytest.mark.parametrize(
    ("sent", "field", "code"),
    [
        (None, "/prNumbers", "type"),
        ([], "/prNumbers", "length"),
        ([*range(1, 52)], "/prNumbers", "length"),
        ([1, 0], "/prNumbers/1", "range"),
        (["1a"], "/prNumbers/0", "type"),
        (1, "/prNumbers", "type"),
    ],
)
async def test_what_numbers_may_be_asked_for(client, sent, field, code):
    answer = await client.post("getSubmittedPullRequests", client.named(prNumbers=sent))
    assert answer.is_problem(400, "invalid_field")
    assert [(each["field"], each["code"]) for each in answer.json["errors"]] == [(field, code)]


async def test_submissions_come_newest_first_whatever_has_become_of_them(client, queue):
    old, older = await queue.submitted(), await queue.submitted()
    await client.done("cancelPullRequest", queue.about(older))
    await client.done("cancelPullRequest", queue.about(old))
    draft = await queue.world.open_pull_request(queue.branch, draft=True)
    await client.done("submitPullRequest", queue.about(draft))
    first, second = await queue.submitted(), await queue.submitted()
    assert await numbers_in(queue) == [second, first, draft, older, old]
    answer = await client.done("listPullRequests", queue.named())
    assert list(answer) == ["pullRequests"]
    for each in answer["pullRequests"]:
        assert list(each) == LISTED
    assert [each["position"] for each in answer["pullRequests"]] == [2, 1, None, None, None]
    pieces = await parts(client, "listPullRequests", queue.named(), 2)
    assert [[each["prNumber"] for each in part] for part in pieces] == [
        [second, first],
        [draft, older],
        [old],
    ]


async def test_pull_requests_are_picked_by_state_and_by_when_they_ended(client, queue):
    ended, live = await queue.submitted(), await queue.submitted()
    record = await client.done("cancelPullRequest", queue.about(ended))
    at = record["conclusion"]["at"]
    assert await numbers_in(queue, state="cancelled") == [ended]
    assert await numbers_in(queue, state=["TESTING", "testing", "PENDING"]) == [live]
    assert await numbers_in(queue, state=["Cancelled", "TESTING"]) == [live, ended]
    assert await numbers_in(queue, state="MERGED") == []
    assert await numbers_in(queue, since="1970-01-01T00:00:00Z") == [ended]
    assert await numbers_in(queue, since=at, until="9999-12-31T23:59:59Z") == [ended]
    assert await numbers_in(queue, until=at) == []
    assert await numbers_in(queue, since=at, until=at) == []
    assert await numbers_in(queue, since=at, state="TESTING") == []


async def test_a_span_that_ends_before_it_begins_is_refused(client, queue):
    span = {"since": "2026-03-02T14:00:00Z", "until": "2026-03-02T13:00:00Z"}
    answer = await client.post("listPullRequests", queue.named(**span))
    assert answer.is_problem(422, "invalid_time_range")
    assert "`until`" in answer.json["detail"]


@pytest.mark.parametrize(
    ("sent", "field", "code"),
    [
        ({"state": "MERGEDD"}, "/state", "enum"),
        ({"state": ["MERGED", "x"]}, "/state/1", "enum"),
        ({"state": []}, "/state", "length"),
        ({"state": 1}, "/state", "type"),
        ({"since": "2026-03-02T14:00:00"}, "/since", "format"),
        ({"until": "yesterday"}, "/until", "format"),
        ({"take": 0}, "/take", "range"),
        ({"take": 101}, "/take", "range"),
        ({"take": "5"}, "/take", "type"),
        ({"cursor": 5}, "/cursor", "type"),
        ({"cursor": "x" * 4097}, "/cursor", "length"),
    ],
)
async def test_what_a_list_of_pull_requests_may_be_asked_with(client, sent, field, code):
    answer = await client.post("listPullRequests", client.named(**sent))
    assert answer.is_problem(400, "invalid_field")
    assert [(each["field"], each["code"]) for each in answer.json["errors"]] == [(field, code)]


async def test_what_comes_meanwhile_neither_repeats_nor_hides_a_pull_request(client, queue):
    await client.done("updateQueue", queue.named(state="PAUSED"))
    waiting = [await queue.submitted() for _ in range(4)]
    first = await client.done("listPullRequests", queue.named(take=2))
    urgent = await queue.submitted(priority="urgent")
    later = await queue.submitted()
    rest = await numbers_in(queue, cursor=first["nextCursor"])
    assert [each["prNumber"] for each in first["pullRequests"]] == waiting[:1:-1]
    assert rest == waiting[1::-1]
    assert await numbers_in(queue, take=2) == [later, urgent]


async def test_the_timeline_comes_in_parts_without_gaps(client, queue):
    number = await queue.submitted()
    await client.done("restartTestsOnPullRequest", queue.about(number))
    await queue.world.settle()
    whole = (await queue.record(number, includeTimeline=True))["timeline"]
    assert len(whole) > 4
    pieces = await parts(client, "getPullRequestTimeline", queue.about(number), 2)
    assert [len(part) for part in pieces[:-1]] == [2] * (len(pieces) - 1)
    events = [each for part in pieces for each in part]
    assert events == whole
    assert [each["sequence"] for each in events] == list(range(1, len(events) + 1))
    for each in events:
        assert list(each) == EVENT
        assert MOMENT.fullmatch(each["at"])
    answer = await client.done("getPullRequestTimeline", queue.about(number))
    assert answer == {"events": whole}


async def test_a_cursor_of_a_timeline_stays_with_its_submission(client, queue):
    number = await queue.submitted()
    first = await client.done("getPullRequestTimeline", queue.about(number, take=1))
    await client.done("cancelPullRequest", queue.about(number))
    whole = (await queue.record(number, includeTimeline=True))["timeline"]
    await client.done("submitPullRequest", queue.about(number))
    body = queue.about(number, cursor=first["nextCursor"])
    assert (await client.done("getPullRequestTimeline", body))["events"] == whole[1:]


async def test_a_timeline_takes_up_to_500_events_and_needs_a_submission(client, queue):
    number = await queue.world.open_pull_request(queue.branch)
    for take, status in ((0, 400), (1, 404), (500, 404), (501, 400)):
        answer = await client.post("getPullRequestTimeline", queue.about(number, take=take))
        assert answer.is_problem(status, "never_submitted" if status == 404 else "invalid_field")


async def test_queues_are_listed_with_how_full_they_are(client, queue):
    draft = await queue.world.open_pull_request(queue.branch, draft=True)
    await client.done("submitPullRequest", queue.about(draft))
    await queue.submitted()
    await queue.submitted()
    body = {"repo": queue.named()["repo"]}
    shown = (await client.done("listQueues", body))["queues"]
    (own,) = [each for each in shown if each["branch"] == queue.branch]
    assert own == {
        "repo": body["repo"],
        "branch": queue.branch,
        "state": "RUNNING",
        "mode": "SINGLE",
        "depth": 2,
        "notReady": 1,
        "testing": 1,
        "version": (await queue.get())["version"],
    }
    assert list(own) == [
        *("repo", "branch", "state", "mode", "depth", "notReady", "testing", "version")
    ]
    assert [each["branch"] for each in shown] == sorted(each["branch"] for each in shown)


async def test_queues_come_in_parts_and_of_all_repositories_when_none_is_named(client, world):
    own = [await made(client, world, mode="PARALLEL") for _ in range(3)]
    try:
        repo = own[0].named()["repo"]
        whole = (await client.done("listQueues", {"repo": repo}))["queues"]
        pieces = await parts(client, "listQueues", {"repo": repo}, 2)
        assert [each for part in pieces for each in part] == whole
        assert {each["branch"] for each in whole} >= {each.branch for each in own}
        everywhere = [each for part in await parts(client, "listQueues", {}, 100) for each in part]
        assert [each for each in everywhere if each["repo"] == repo] == whole
    finally:
        for each in own:
            await removed(each)


async def test_a_deleted_queue_is_not_listed(client, world):
    gone = await made(client, world)
    await removed(gone)
    shown = (await client.done("listQueues", {"repo": gone.named()["repo"]}))["queues"]
    assert gone.branch not in {each["branch"] for each in shown}


async def test_a_token_lists_only_the_queues_that_it_may_see(client, queue, world):
    for token in (world.foreign_token, world.narrow_token):
        assert await client.done("listQueues", {}, token) == {"queues": []}
    shown = (await client.done("listQueues", {}, world.read_token))["queues"]
    assert queue.branch in {each["branch"] for each in shown}


@pytest.mark.parametrize("sent", [{"take": 0}, {"take": 101}, {"cursor": 1}, {"repo": {}}])
async def test_what_a_list_of_queues_may_be_asked_with(client, sent):
    assert (await client.post("listQueues", sent)).is_problem(400, "invalid_field")


@pytest.fixture
async def second(client, world):
    """One more queue, so that lists of queues have a second row."""
    own = await made(client, world)
    yield own
    await removed(own)


async def test_a_cursor_is_taken_by_the_list_that_gave_it_alone(client, queue, second, world):
    await queue.submitted()
    number = await queue.submitted()
    bodies = {
        "listPullRequests": queue.named(take=1),
        "getPullRequestTimeline": queue.about(number, take=1),
        "listQueues": {"repo": queue.named()["repo"], "take": 1},
    }
    others = {
        "listPullRequests": {**bodies["listPullRequests"], "state": "MERGED"},
        "getPullRequestTimeline": {**bodies["getPullRequestTimeline"], "pr": {"number": 1}},
        "listQueues": {"take": 1},
    }
    cursors = {name: (await client.done(name, body))["nextCursor"] for name, body in bodies.items()}
    texts = set()
    for name, body in bodies.items():
        cursor = cursors[name]
        assert re.fullmatch(r"hgp1_[A-Za-z0-9_-]+", cursor)
        first = await client.post(name, {**body, "cursor": cursor})
        assert first.status == 200
        replayed = await client.post(name, {**body, "cursor": cursor, "take": 50})
        rows = LISTS[name]
        assert replayed.json[rows][:1] == first.json[rows]
        altered = cursor[:-2] + ("A" if cursor[-2] != "A" else "B") + cursor[-1]
        for asked in (
            {**others[name], "cursor": cursor},
            *({**body, "cursor": wrong} for wrong in (altered, "nonsense", "hgp1_eyJ2IjoxfQ")),
            *({**body, "cursor": cursors[other]} for other in LISTS.keys() - {name}),
        ):
            answer = await client.post(name, asked)
            assert answer.is_problem(400, "invalid_page_token")
            texts.add(answer.json["detail"])
    assert len(texts) == 1


async def test_test_runs_are_listed_newest_first(client, open_queue):
    queue = open_queue
    landed = await queue.submitted()
    broken = await queue.world.open_pull_request(queue.branch, files={"broken.txt": "x\n"})
    await client.done("submitPullRequest", queue.about(broken))
    await queue.world.settle()
    answer = await client.done("listMergeQueueTestingResults", queue.named())
    assert list(answer) == ["testingResults", "totalItems", "offset", "take"]
    assert (answer["offset"], answer["take"]) == (0, 50)
    rows = answer["testingResults"]
    assert answer["totalItems"] == len(rows) >= 2
    assert [each["createdAt"] for each in rows] == sorted(
        (each["createdAt"] for each in rows), reverse=True
    )
    oldest = rows[-1]
    assert list(oldest) == [
        *("testRunId", "prNumber", "prNumbers", "status", "cycleConclusion", "bisection"),
        *("verdict", "createdAt", "finishedAt", "testBranchSha"),
    ]
    assert UUID.fullmatch(oldest["testRunId"])
    assert MOMENT.fullmatch(oldest["finishedAt"])
    details = await client.done(
        "getMergeQueueTestingDetails", queue.named(testRunId=oldest["testRunId"])
    )
    expected = {
        "prNumber": landed,
        "prNumbers": [landed],
        "status": "succeeded",
        "cycleConclusion": "merged",
        "bisection": None,
        "verdict": None,
        "testBranchSha": details["testBranchSha"],
    }
    assert {name: oldest[name] for name in expected} == expected
    # A second look is cancelled if the pull request's own head fails first.
    of_broken = [
        each for each in rows if each["prNumber"] == broken and each["status"] != "cancelled"
    ]
    assert {each["status"] for each in of_broken} == {"failed"}
    assert {each["cycleConclusion"] for each in of_broken} == {"failed"}
    assert {each["verdict"] for each in of_broken} == {"pr_fault"}


async def test_the_runs_of_a_search_for_a_culprit_are_told_from_the_one_it_began_in(client, world):
    batching = {"batch": True, "batchingMinSize": 2, "batchingMaxWaitTimeMinutes": 60}
    queue = await made(client, world, requiredStatuses=["unit"], **batching)
    sound = await world.open_pull_request(queue.branch)
    broken = await world.open_pull_request(queue.branch, files={"broken.txt": "x\n"})
    for number in (sound, broken):
        await client.done("submitPullRequest", queue.about(number))
    await world.settle()
    answer = await client.done("listMergeQueueTestingResults", queue.named())
    *probes, first = answer["testingResults"]
    assert (first["prNumber"], first["prNumbers"]) == (sound, [sound, broken])
    assert (first["status"], first["bisection"]) == ("failed", "entered_bisection")
    assert first["cycleConclusion"] == "merged"
    assert {each["bisection"] for each in probes} == {"in_bisection"}
    only = await client.done("listMergeQueueTestingResults", queue.named(prNumber=broken))
    assert first in only["testingResults"]
    await removed(queue)


async def test_test_runs_are_picked_and_passed_over(client, open_queue):
    queue = open_queue
    landed = [await queue.submitted() for _ in range(3)]

    async def found(**more):
        answer = await client.done("listMergeQueueTestingResults", queue.named(**more))
        return [each["prNumber"] for each in answer["testingResults"]], answer["totalItems"]

    assert await found() == (landed[::-1], 3)
    assert await found(take=1, offset=1) == ([landed[1]], 3)
    assert await found(offset=10_000) == ([], 3)
    assert await found(prNumber=str(landed[0])) == ([landed[0]], 1)
    assert await found(prNumber=99_999) == ([], 0)
    assert await found(status="Succeeded") == (landed[::-1], 3)
    assert await found(status="failed") == ([], 0)
    assert await found(status="succeeded", prNumber=landed[2], offset=0.0) == ([landed[2]], 1)


async def test_a_run_under_way_has_no_end(client, queue):
    await queue.submitted()
    answer = await client.done("listMergeQueueTestingResults", queue.named())
    (run,) = answer["testingResults"]
    assert (run["status"], run["cycleConclusion"], run["finishedAt"]) == ("in_progress", None, None)


@pytest.mark.parametrize(
    ("sent", "field", "code"),
    [
        ({"offset": -1}, "/offset", "range"),
        ({"offset": 10_001}, "/offset", "range"),
        ({"take": 0}, "/take", "range"),
        ({"take": 101}, "/take", "range"),
        ({"prNumber": 0}, "/prNumber", "range"),
        ({"status": "done"}, "/status", "enum"),
    ],
)
async def test_what_a_list_of_test_runs_may_be_asked_with(client, sent, field, code):
    answer = await client.post("listMergeQueueTestingResults", client.named(**sent))
    assert answer.is_problem(400, "invalid_field")
    assert [(each["field"], each["code"]) for each in answer.json["errors"]] == [(field, code)]

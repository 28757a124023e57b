"""The adapter reads each recorded answer that it has a reader for, as GitHub gave it."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from bot.github import people, reading, refs, testbranches
from bot.github.checks import Reports
from bot.github.comments import since
from bot.github.protection import Protection
from bot.github.pull_requests import PullRequests
from bot.github.reading import Fields
from bot.github.translate import OwnApp
from service.provider.signals import Where
from service.provider.values import AccessLevel, Known
from service.vocabulary import Actor, ActorKind, CheckOutcome, RepoId, RequiredName, Sha
from tests.github.table import APP_ID, REPO, on_table
from tests.provider.stage import HOST, START
from tests.recorded import recordings
from tests.recorded.recordings import Call

RECORDED = recordings.of_2022()
CLIENTS = recordings.of_a_client()
A, B = Sha("a" * 40), Sha("b" * 40)
OUTCOMES = {
    ("queued", None): CheckOutcome.RUNNING,
    ("in_progress", None): CheckOutcome.RUNNING,
    ("completed", "success"): CheckOutcome.PASSED,
    ("completed", "failure"): CheckOutcome.FAILED,
    ("completed", "cancelled"): CheckOutcome.INTERRUPTED,
    ("completed", "action_required"): CheckOutcome.BLOCKED,
    ("completed", "neutral"): CheckOutcome.SKIPPED,
}
STATES = {
    "success": CheckOutcome.PASSED,
    "failure": CheckOutcome.FAILED,
    "error": CheckOutcome.FAILED,
    "pending": CheckOutcome.RUNNING,
}
NO_SUITES = {"nodes": [], "pageInfo": {"hasNextPage": False}}
MORE_SUITES = {"nodes": [], "pageInfo": {"hasNextPage": True}}


def calls(kind: str) -> tuple[Call, ...]:
    """Every recorded call of a kind."""
    found = tuple(one for one in (*RECORDED.calls, *CLIENTS.calls) if one.kind == kind)
    assert found, f"no {kind} is recorded"
    return found


def different(found: tuple[Call, ...]) -> list[Call]:
    """Those whose answers differ."""
    return list({json.dumps(one.answer): one for one in found}.values())


def commit_shown(suites: dict[str, Any], status: dict[str, Any] | None) -> dict[str, Any]:
    """What GraphQL says of one commit."""
    return {"data": {"repository": {"commit_0": {"status": status, "checkSuites": suites}}}}


@pytest.mark.fault(
    "check runs as GitHub really lists them",
    holds="each has the outcome that its recorded conclusion means",
    within="-",
)
async def test_listed_check_runs_have_the_outcome_of_their_conclusion():
    reported: Counter[CheckOutcome] = Counter()
    async with on_table() as (table, client):
        table.says("graphql CommitChecks", commit_shown(MORE_SUITES, None))
        table.says(f"GET /commits/{A}/check-suites", {"total_count": 0, "check_suites": []})
        for call in different(calls("GET /commits/SHA/check-runs 200")):
            table.says(f"GET /commits/{A}/check-runs", call.answer)
            read = await Reports(client.clock, APP_ID).checks(client, [A], skipped_pass=True)
            runs = call.answer["check_runs"]
            found = {one.id: (one.name, one.source_id, one.outcome) for one in read[A].items}
            assert read[A].complete
            assert found == {
                str(run["id"]): (
                    run["name"],
                    str(run["app"]["id"]),
                    OUTCOMES[run["status"], run["conclusion"]],
                )
                for run in runs
            }
            reported.update(outcome for _, _, outcome in found.values())
    assert reported.keys() == set(OUTCOMES.values())


async def test_our_own_runs_are_left_out_of_the_reports():
    async with on_table() as (table, client):
        table.says("graphql CommitChecks", commit_shown(MORE_SUITES, None))
        table.says(f"GET /commits/{A}/check-suites", {"total_count": 0, "check_suites": []})
        for call in calls("GET /commits/SHA/check-runs 200")[::20]:
            table.says(f"GET /commits/{A}/check-runs", call.answer)
            own = Reports(client.clock, RECORDED.app_id)
            read = await own.checks(client, [A], skipped_pass=True)
            apps = [str(run["app"]["id"]) for run in call.answer["check_runs"]]
            assert len(read[A].items) == len(apps) - apps.count(RECORDED.app_id)


def statuses() -> Iterator[dict[str, Any]]:
    """Every recorded commit status: just made, and as a commit has them."""
    for call in calls("POST /statuses/SHA 201"):
        yield call.answer
    for call in calls("GET /commits/SHA/status 200"):
        yield from call.answer["statuses"]


async def test_statuses_have_the_outcome_of_their_state():
    async with on_table() as (table, client):
        table.says("graphql CommitChecks", commit_shown(NO_SUITES, {"state": "SUCCESS"}))
        for status in statuses():
            table.says(f"GET /commits/{A}/statuses", [status])
            read = await Reports(client.clock, APP_ID).checks(client, [A], skipped_pass=True)
            assert [(one.name, one.outcome) for one in read[A].items] == [
                (status["context"], STATES[status["state"]])
            ]


async def test_listed_pull_requests_have_their_number_head_and_author():
    async with on_table() as (table, client):
        pulls = PullRequests(Protection(client.clock, APP_ID), APP_ID)
        for call in calls("GET /pulls 200"):
            table.says("GET /pulls", call.answer)
            read = await pulls.open_pull_requests(client, "main")
            assert [(one.number, one.head, one.author) for one in read] == [
                (one["number"], one["head"]["sha"], one["user"]["login"]) for one in call.answer
            ]


@pytest.mark.parametrize("kind", ["POST /pulls 201", "GET /pulls/N 200", "PATCH /pulls/N 200"])
def test_a_single_pull_request_is_read_like_a_listed_one(kind: str):
    for call in calls(kind):
        found = reading.listed_pull_of(Fields(call.answer))
        assert (found.number, found.head) == (
            call.answer["number"],
            call.answer["head"]["sha"],
        )


def test_made_merges_and_listed_commits_have_their_tree_and_parents():
    made = [call.answer for call in calls("POST /merges 201")]
    read = [call.answer for call in calls("GET /commits/SHA 200")]
    tips = [call.answer["commit"] for call in calls("GET /branches/BRANCH 200")]
    for each in [*made, *read, *tips]:
        found = reading.commit_of(Fields(each))
        assert found.tree == each["commit"]["tree"]["sha"]
        assert list(found.parents) == [parent["sha"] for parent in each["parents"]]
    assert all(reading.is_signed(Fields(each)) for each in made), "GitHub signs what an App merges"


async def test_a_conflict_of_a_merge_is_an_expected_answer_with_its_words():
    async with on_table() as (table, client):
        for call in calls("POST /merges 409"):
            table.says("POST /merges", call.answer, status=409)
            answer = await client.create("POST", "/merges", {}, expects=(409,))
            assert testbranches.CONFLICT_WORDS in answer.message.lower()


async def test_branches_are_made_found_taken_and_deleted():
    name = "headgate/merge/main/1"
    async with on_table() as (table, client):
        for call in calls("POST /git/refs 201"):
            table.says("POST /git/refs", call.answer, status=201)
            assert await refs.create_branch(client, name, A)
        for call in calls("POST /git/refs 422"):
            table.says("POST /git/refs", call.answer, status=422)
            assert not await refs.create_branch(client, name, A)
        for call in calls("GET /git/matching-refs/BRANCH 200"):
            table.says("GET /git/matching-refs/heads/headgate/", call.answer)
            read = await testbranches.vehicles(client)
            assert [f"refs/heads/{one.branch}" for one in read] == [
                one["ref"] for one in call.answer
            ]
        for call in calls("DELETE /git/refs/heads/BRANCH 204")[:3]:
            table.says(f"DELETE /git/refs/heads/{name}", call.answer, status=204)
            assert await refs.delete_branch(client, name)


async def test_a_branch_is_there_under_its_name_or_not_at_all():
    async with on_table() as (table, client):
        for call in calls("GET /branches/BRANCH 200"):
            table.says("GET /branches/main", call.answer)
            assert await refs.read_new_name(client, call.answer["name"]) in (None, "main")
        for call in calls("GET /branches/BRANCH 404"):
            table.says("GET /branches/main", call.answer, status=404)
            assert await refs.read_new_name(client, "main") is None


NO_QUEUE = {"data": {"repository": {"id": "R_1", "mergeQueue": None}}}


async def required_of(table, client, status: int, answer: Any) -> Known:
    """The required statuses of a branch whose classic protection is answered like this."""
    table.says("GET /rules/branches/main", [])
    table.says("graphql MergeQueue", NO_QUEUE)
    table.says("GET /branches/main/protection", answer, status=status)
    found = await Protection(client.clock, APP_ID).required(client, "main")
    assert isinstance(found, Known), found
    return found


def names_in(protection: Any) -> set[RequiredName]:
    checks = protection.get("required_status_checks") or {}
    listed = checks.get("checks") or [{"context": name} for name in checks.get("contexts", ())]
    return {
        RequiredName(one["context"], None if one.get("app_id") is None else str(one["app_id"]))
        for one in listed
    }


async def test_protected_branches_require_what_they_say():
    async with on_table() as (table, client):
        for call in calls("GET /branches/BRANCH/protection 200"):
            read = await required_of(table, client, 200, call.answer)
            assert set(read.checks) == names_in(call.answer)
            checks = call.answer.get("required_status_checks") or {}
            assert ("strict" in read.notes) == bool(checks.get("strict"))
        for call in calls("GET /branches/BRANCH/protection 404"):
            read = await required_of(table, client, 404, call.answer)
            assert read.checks == ()


async def test_a_branch_shows_what_it_requires_where_its_protection_is_hidden():
    hidden = {"message": "Resource not accessible by integration"}
    async with on_table() as (table, client):
        table.denies("GET /branches/main/protection/required_status_checks", 403, hidden["message"])
        for call in calls("GET /branches/BRANCH 200"):
            if "protection" not in call.answer:
                continue
            table.says("GET /branches/main", call.answer)
            read = await required_of(table, client, 403, hidden)
            assert set(read.checks) == names_in(call.answer["protection"])


async def test_compared_commits_are_ancestors_by_their_recorded_status():
    async with on_table() as (table, client):
        for call in calls("GET /compare/NAME 200"):
            table.says(f"GET /compare/{A}...{B}", call.answer)
            is_reached = call.answer["status"] in ("ahead", "identical")
            assert await refs.is_ancestor(client, A, B) is is_reached
            for each in call.answer["commits"]:
                assert reading.commit_of(Fields(each)).sha == each["sha"]


async def test_comments_have_their_author_and_those_of_our_app_are_ours():
    where = Where(RepoId(HOST, "1"), REPO)
    comments = [call.answer for call in calls("POST /issues/N/comments 201")]
    comments += [one for call in calls("GET /issues/N/comments 200") for one in call.answer]
    own = 0
    for each in comments:
        found = reading.words_of(Fields(each))
        is_bot = each["user"]["login"] == f"{RECORDED.slug}[bot]"
        assert found.author is not None
        assert (found.id, found.author.login) == (str(each["id"]), each["user"]["login"])
        assert found.is_by_app(RECORDED.app_id, RECORDED.slug) is is_bot
        own += is_bot
    assert own > 50
    async with on_table() as (table, client):
        table.says("GET /issues/comments", [{**each, "body": "/merge"} for each in comments])
        read = await since(client, where, START, OwnApp(RECORDED.app_id, RECORDED.slug))
        assert len(read.deliveries) == len(comments) - own


def test_reviews_have_their_author_and_time():
    reviews = [call.answer for call in calls("POST /pulls/N/reviews 200")]
    reviews += [one for call in calls("GET /pulls/N/reviews 200") for one in call.answer]
    for each in reviews:
        found = reading.words_of(Fields(each))
        assert found.id == str(each["id"])
        assert found.author is not None
        assert found.at is not None


async def test_changed_files_have_their_old_and_new_names():
    async with on_table() as (table, client):
        pulls = PullRequests(Protection(client.clock, APP_ID), APP_ID)
        for call in calls("GET /pulls/N/files 200"):
            table.says("GET /pulls/7/files", call.answer)
            read = await pulls.changed_files(client, 7)
            names = {one[key] for one in call.answer for key in NAMES if key in one}
            assert (set(read.paths), read.complete) == (names, True)


NAMES = ("filename", "previous_filename")


async def test_rights_are_those_of_the_recorded_role():
    async with on_table() as (table, client):
        for call in calls("GET /collaborators/NAME/permission 200"):
            table.says("GET /collaborators/alice/permission", call.answer)
            alice = Actor(ActorKind.PERSON, "alice", str(call.answer["user"]["id"]))
            assert await people.access(client, alice) is AccessLevel.ADMIN

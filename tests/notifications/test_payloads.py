"""Bodies of messages: fields, words of the contract, bounds (docs/design/notifications.md 1)."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import orjson
import pytest

from service.mergequeue.engine.config import Mode
from service.mergequeue.engine.model import Detail, Hold, Named
from service.mergequeue.engine.outputs import (
    EntryMoved,
    EntrySubmitted,
    HoldPlaced,
    LandingMismatched,
    ModeChanged,
    QueueConfigured,
    QueueDeleted,
    QueueDrained,
    QueueStateChanged,
    Recorded,
    RunBuilt,
    RunFinished,
    RunRetired,
    TipMoved,
)
from service.mergequeue.engine.reasons import Cause, HoldReason, Reason
from service.mergequeue.engine.states import EntryState, QueueState, RunStatus
from service.mergequeue.reasons.record import HoldScope
from service.mergequeue.wording import holds, payloads
from service.mergequeue.wording.failed_tests import FailedTest, FailedTests, Standing
from service.mergequeue.wording.notices import Failures
from service.mergequeue.wording.payloads import Scene, Subject
from service.notifications import messages
from service.process.api import routes
from service.vocabulary import SYSTEM, Actor, ActorKind, Channel, QueueRef, RepoRef, Sha
from tests.store.builders import a_run, an_entry
from tests.store.conftest import NOW, a_queue

BOB = Actor(ActorKind.PERSON, "bob", "7", Channel.COMMENT)
REF = QueueRef(1, 2, 3, RepoRef("github.com", "octo", "widgets"), "main")
MODELS = dict(routes.CONTRACT.messages)
VALUE = a_queue()
SCENE = Scene("octo", REF, VALUE, VALUE)


def told(scene: Scene, event: Any, actor: Actor = SYSTEM) -> list[dict[str, Any]]:
    """The bodies that an event makes."""
    made = payloads.messages_of(scene, Recorded(NOW, actor, event))
    for message in made:
        if not scene.is_lower:
            MODELS[message.event].model_validate_json(message.body, strict=True)
        assert message.event == orjson.loads(message.body)["type"]
        assert len(message.body.encode()) <= 20_000
    return [orjson.loads(message.body) for message in made]


def moved(state: EntryState, reason: Reason, **more: Any) -> list[dict[str, Any]]:
    """The bodies of a pull request that enters a state out of TESTING."""
    event = EntryMoved(
        3, "e3", EntryState.TESTING, state, reason, "r1", more.pop("detail", Detail())
    )
    run = more.pop("run", a_run("r1", prs=(3,)))
    entry = payloads.as_moved(replace(an_entry(3), id="e3"), event)
    subject = Subject(entry, run, 501, 6, **more)
    return told(replace(SCENE, subject=subject), event)


FIELDS = [
    "type",
    "action",
    "timestamp",
    "organization",
    "repository",
    "target_branch",
    "status",
    "pr_number",
    "author",
    "http_details_url",
    "is_bisection",
    "batched",
    "test_branch",
    "test_branch_sha",
    "test_pr_number",
    "failure_reason",
    "reason",
    "reason_message",
    "verdict",
    "retryable",
    "entry_id",
    "pr_sha",
    "test_run_id",
    "merged_sha",
    "sequence",
    "failures",
]

STATES = [
    (EntryState.NOT_READY, Reason.REVIEW_REQUIRED, "not_ready", None, None),
    (EntryState.PENDING, Reason.NOW_READY, "queued", "queued_reason", "MERGE_ITEM_NOW_READY"),
    (EntryState.PENDING, Reason.AHEAD_OUT, "queued", "queued_reason", "AHEAD_OUT"),
    (EntryState.TESTING, Reason.TEST_STARTED, "testing", None, None),
    (
        EntryState.TESTS_PASSED,
        Reason.RESULT_REUSED,
        "tests_passed",
        "passed_reason",
        "PASSED_BY_OPTIMIZATION",
    ),
    (EntryState.PENDING_FAILURE, Reason.CHECK_FAILED, "pending_failure", None, None),
    (EntryState.FAILED, Reason.RUN_TIMED_OUT, "failed", "failure_reason", "TEST_RUN_TIMEOUT"),
    (
        EntryState.CANCELLED,
        Reason.HEAD_CHANGED,
        "canceled",
        "cancellation_reason",
        "PR_PUSHED_TO",
    ),
    (EntryState.MERGED, Reason.MERGED_BY_HAND, "merged", "merged_reason", "MANUAL_MERGE"),
]
CRIPPLED = "x😀" * 400
WRONG = FailedTest(
    "tests/mail.py::mail", Standing.NEW, message="1 != 2", id=str(UUID(int=7)), fails_on="main"
)
FAILURES = Failures(
    "It failed in 2 test runs.",
    (Named("unit", "https://ci.example/1"),),
    FailedTests(1, 0, (WRONG,)),
)


def test_one_that_left_is_told_with_what_failed():
    (body,) = moved(EntryState.FAILED, Reason.CHECK_FAILED, failures=FAILURES)
    assert body["failures"] == {
        "text": "It failed in 2 test runs.",
        "checks": [
            {
                "name": "unit",
                "url": "https://ci.example/1",
                "because": None,
                "foreseen": None,
                "failed_before": [],
            }
        ],
        "tests": [
            {
                "id": WRONG.id,
                "name": WRONG.name,
                "file": None,
                "line": None,
                "message": "1 != 2",
                "known_as": "new",
                "fails_on": "main",
                "log": None,
                "page": None,
            }
        ],
        "failed_tests": 1,
        "excused_tests": 0,
    }
    (body,) = moved(EntryState.CANCELLED, Reason.HEAD_CHANGED)
    assert body["failures"] is None
    (body,) = moved(EntryState.MERGED, Reason.LANDED)
    assert "failures" not in body


def test_failures_of_any_length_leave_the_body_small():
    long = replace(
        WRONG, name=CRIPPLED, file=CRIPPLED, message=CRIPPLED, log="https://x/" + "y" * 400
    )
    checks = tuple(Named(CRIPPLED, "https://x/" + "y" * 280, CRIPPLED) for _ in range(9))
    whole = Failures(CRIPPLED * 9, checks, FailedTests(90, 0, (long,) * 5))
    (body,) = moved(EntryState.FAILED, Reason.CHECK_FAILED, failures=whole)
    shown = body["failures"]
    assert shown["failed_tests"] == 90
    assert 0 < len(shown["tests"]) < 5
    assert 0 < len(shown["checks"]) < 5
    assert shown["tests"][0]["log"] is None


REASON_FIELDS = {field for *_, field, _ in STATES if field} | {"submitted_reason"}


@pytest.mark.parametrize(("state", "reason", "action", "field", "word"), STATES)
def test_a_state_has_its_event_and_its_reason_one_field_in_words_of_the_wire(
    state, reason, action, field, word
):
    (body,) = moved(state, reason)
    assert (body["type"], body["action"]) == (f"pull_request.{action}", action)
    assert (body["status"], body["reason"]) == (state.value, reason.value)
    assert body["reason_message"]
    assert REASON_FIELDS & set(body) == ({field} if field else set())
    assert field is None or body[field] == word


def test_every_state_has_a_word():
    assert set(payloads.WORDS) == set(EntryState)
    assert {f"pull_request.{word}" for word, _ in payloads.WORDS.values()} < set(messages.EVENTS)


def test_the_fields_are_those_of_the_contract_in_its_order():
    (body,) = moved(EntryState.FAILED, Reason.REQUIRED_STATUS_FAILED)
    assert list(body) == FIELDS
    assert body["repository"] == {"host": "github.com", "owner": "octo", "name": "widgets"}
    assert (body["test_run_id"], body["test_pr_number"], body["sequence"]) == ("r1", 501, 6)


def test_a_submission_begins_without_a_run():
    event = EntrySubmitted(3, "e3", Sha("a" * 40), Reason.API_REQUESTED, 100)
    entry = payloads.as_submitted(replace(an_entry(3), run="r1"), event)
    (body,) = told(replace(SCENE, subject=Subject(entry, None, None, 1)), event)
    assert (body["type"], body["submitted_reason"]) == ("pull_request.submitted", "API_REQUESTED")
    for name in ("test_branch", "test_branch_sha", "test_pr_number", "test_run_id", "verdict"):
        assert body[name] is None


def test_a_batch_is_told_beside_and_lists_too_long_are_cut_and_said_so():
    numbers = tuple(range(4_294_000_000, 4_294_001_000))
    batch = a_run("r1", prs=numbers)
    _, body = moved(EntryState.PENDING, Reason.AHEAD_OUT, run=batch, batch=batch)
    assert body["type"] == "pull_request_batch.queued"
    assert body["truncated"] is True
    assert body["pr_numbers_in_batch"] == list(numbers[: messages.LIST_MAX])
    small = a_run("r1", prs=(3, 4))
    _, body = moved(EntryState.PENDING, Reason.AHEAD_OUT, run=small, batch=small)
    assert "truncated" not in body


def test_a_batch_moves_with_its_first_lands_with_its_last_and_fails_with_any():
    batch = a_run("r1", prs=(3, 4, 5))
    ids = [member.entry for member in batch.entries]

    def movers(state: EntryState) -> list[int]:
        return [
            place
            for place, entry_id in enumerate(ids)
            if payloads.batch_that_moves(replace(an_entry(3), id=entry_id, state=state), batch)
        ]

    assert movers(EntryState.TESTING) == movers(EntryState.PENDING) == [0]
    assert movers(EntryState.PENDING_FAILURE) == [0]
    assert movers(EntryState.MERGED) == [2]
    assert movers(EntryState.FAILED) == movers(EntryState.CANCELLED) == [0, 1, 2]
    assert movers(EntryState.TESTS_PASSED) == movers(EntryState.NOT_READY) == []
    stranger = replace(an_entry(9), id="other", state=EntryState.TESTING)
    assert not payloads.batch_that_moves(stranger, batch)
    alone = a_run("r2", prs=(3,))
    mine = replace(an_entry(3), id=alone.entries[0].entry, state=EntryState.TESTING)
    assert not payloads.batch_that_moves(mine, alone)


QUEUE_FIELDS = [
    "type",
    "action",
    "timestamp",
    "organization",
    "repository",
    "target_branch",
    "http_details_url",
    "status",
    "previous_status",
    "reason",
    "actor",
    "changed_fields",
    "hold",
    "version",
]


@pytest.mark.parametrize(
    ("event", "action", "more"),
    [
        (
            QueueConfigured(("testing_timeout_minutes", "batch")),
            "updated",
            {"changed_fields": ["testingTimeoutMinutes", "batch"]},
        ),
        (ModeChanged(Mode.PARALLEL), "updated", {"changed_fields": ["mode"]}),
        (QueueDrained(), "drained", {}),
        (QueueDeleted(), "deleted", {}),
        (
            LandingMismatched("r1", 1, "tree a, not b"),
            "landing_mismatch",
            {"reason": "tree a, not b"},
        ),
    ],
)
def test_what_a_queue_says_has_the_fields_of_every_queue_event(event, action, more):
    (body,) = told(SCENE, event, BOB)
    assert list(body) == QUEUE_FIELDS
    assert body["action"] == action
    assert body["actor"] == {"kind": "person", "login": "bob"}
    for name, value in more.items():
        assert body[name] == value


def test_a_hold_is_told_with_its_own_words_or_its_code():
    held = Hold("h1", HoldReason.BASE_RED, HoldScope.BOTH, SYSTEM, "", NOW)
    scene = replace(SCENE, value=replace(VALUE, holds=(held,)))
    (body,) = told(scene, HoldPlaced("h1", HoldReason.BASE_RED, ""))
    assert body["reason"] == "base_red"
    assert body["hold"] == {
        "id": "h1",
        "reason": "base_red",
        "scope": "BOTH",
        "text": None,
        "message": holds.message(held, "main", NOW),
        "since": "2026-03-02T14:00:00.000Z",
        "until": None,
    }


def test_states_are_lower_where_the_deployment_wants_them_so():
    lower = replace(SCENE, is_lower=True)
    (body,) = told(lower, QueueStateChanged(QueueState.RUNNING, QueueState.PAUSED, "why"))
    assert (body["status"], body["previous_status"]) == ("paused", "running")
    (body,) = told(SCENE, QueueStateChanged(QueueState.RUNNING, QueueState.PAUSED, "why"))
    assert (body["status"], body["previous_status"]) == ("PAUSED", "RUNNING")


def test_what_concerns_nobody_outside_is_not_told():
    assert told(SCENE, TipMoved(Sha("a" * 40), landed=True, adopted=False)) == []


def test_a_text_too_long_is_cut():
    (body,) = told(SCENE, LandingMismatched("r1", 1, "é" * 50_000))
    assert len(body["reason"]) == messages.TEXT_MAX
    assert body["truncated"] is True


RUN = replace(a_run("r1", prs=(3, 4)), branch="headgate/merge/r1", sha=Sha("b" * 40))


PASSED, ENDED = replace(RUN, status=RunStatus.SUCCEEDED), replace(RUN, status=RunStatus.CANCELLED)


@pytest.mark.parametrize(
    ("event", "run", "kind", "result"),
    [
        (RunBuilt("r1", Sha("b" * 40)), RUN, "started", ("in_progress", None, [])),
        (
            RunFinished("r1", RunStatus.FAILED, Cause.PR_FAULT, ("unit",)),
            RUN,
            "finished",
            ("failed", "pr_fault", ["unit"]),
        ),
        (RunRetired("r1", Reason.HEAD_CHANGED), ENDED, "finished", ("cancelled", None, [])),
    ],
)
def test_a_run_is_told_with_its_branch_when_that_is_built_and_when_it_ends(
    event, run, kind, result
):
    scene = replace(SCENE, run_page="https://queue.example.org/octo/widgets/runs/r1")
    message = payloads.about_run(scene, run, 501, Recorded(NOW, SYSTEM, event))
    assert message is not None
    MODELS[message.event].model_validate_json(message.body, strict=True)
    body = orjson.loads(message.body)
    assert body["type"] == f"test_run.{kind}"
    assert (body["status"], body["verdict"], body["failed_statuses"]) == result
    assert (body["test_branch"], body["test_branch_sha"]) == ("headgate/merge/r1", "b" * 40)
    assert (body["test_pr_number"], body["pr_numbers_tested"]) == (501, [3, 4])
    assert body["http_details_url"] == scene.run_page


@pytest.mark.parametrize(
    ("event", "run"),
    [
        (RunRetired("r1", Reason.MERGED_BY_HAND), PASSED),
        (RunRetired("r1", Reason.HEAD_CHANGED), replace(ENDED, sha=None)),
        (RunFinished("r1", RunStatus.IN_PROGRESS, None, ()), RUN),
    ],
)
def test_a_run_is_not_told_twice_nor_without_a_branch_nor_when_its_result_is_taken_back(event, run):
    assert payloads.about_run(SCENE, run, None, Recorded(NOW, SYSTEM, event)) is None

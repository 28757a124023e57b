"""Views as the API spells them, and the kept bytes of those that are read often."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta, timezone
from typing import Any

import orjson
import pytest

from service.http import encoding
from service.http.encoding import Encoder
from service.http.models.answers import common
from service.http.waiting import Versioned
from service.mergequeue.api import encoded, explanation, responses, testing
from service.mergequeue.api.encoded import QueueAnswers
from service.mergequeue.api.models.answers.pull_requests import ListedSubmission
from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.explaining import explain
from service.mergequeue.engine.explaining.conditions import Condition, ConditionCode
from service.mergequeue.engine.explaining.explain import Explained
from service.mergequeue.engine.model import NOTHING, MergeQueue, RequiredSet
from service.mergequeue.engine.outputs import (
    BisectionNarrowed,
    BisectionOpened,
    EntryMoved,
    EntrySubmitted,
    Recorded,
    TipMoved,
)
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.states import EntryState, RunKind, RunStatus
from service.mergequeue.engine.suspicion import FailedTogether, Fate, Other, Suspicion
from service.mergequeue.operations.views import (
    Conclusion,
    ExplainView,
    PullRequestView,
    QueueView,
    TestedPullRequest,
    TestingView,
    TimelineEvent,
)
from service.mergequeue.wording import next_steps
from service.runtime import EnumCase, Options
from service.text.times import TimeLeft
from service.vocabulary import SYSTEM, CheckKind, QueueRef, RepoRef, RequiredName, Sha
from tests.store.builders import ANN, NOW, a_check, a_run, an_entry
from tests.wording import stories

URL = "https://queue.example.org"
OPTIONS = Options(version="0", public_url=URL)
LOWER = replace(OPTIONS, enum_case=EnumCase.LOWER)
QUEUE = QueueRef(7, 1, 2, RepoRef("github.com", "octo", "widgets"), "main")
CONFIG = QueueConfig()


def a_view(pr: int = 3, **given) -> PullRequestView:
    """A pending pull request, first of one."""
    default: dict[str, Any] = {
        "queue": QUEUE,
        "entry": an_entry(pr),
        "config": CONFIG,
        "position": 1,
        "length": 1,
        "eta": None,
        "conclusion": None,
        "run": None,
        "has_targets": False,
        "pull_request_url": f"https://github.com/octo/widgets/pull/{pr}",
    }
    return PullRequestView(**(default | given))


def a_queue_view(*views: PullRequestView, **given) -> QueueView:
    """A queue with these pull requests."""
    value = MergeQueue(id=7, uid="u", branch="main", config=CONFIG, version=3)
    return QueueView(QUEUE, replace(value, **given), RequiredSet(), views)


ETA = TimeLeft(NOW, NOW + timedelta(minutes=13), overdue=False)
ENDED = Conclusion(NOW, "pr_fault", None, "r1", ("unit",))

VIEWS = [
    a_view(),
    a_view(entry=an_entry(3, priority=0, no_batch=True, restarts={"ahead_failed": 2})),
    a_view(position=None, length=0),
    a_view(eta=ETA, position=12, length=300),
    a_view(run="r1", has_targets=True),
    a_view(
        entry=an_entry(3, state=EntryState.FAILED, reason=Reason.REQUIRED_STATUS_FAILED),
        conclusion=ENDED,
        position=None,
    ),
]


def record(view: PullRequestView) -> bytes:
    """The answer about one pull request."""
    return Encoder(EnumCase.SPEC).encoded(responses.submission(view, OPTIONS))


def without_version(answer: Versioned) -> bytes:
    """The answer as it was before its version became a member."""
    return answer.body.replace(b',"recordVersion":"%b"' % answer.version.encode(), b"")


def listed(view: PullRequestView) -> Any:
    """The same as one of many."""
    answer = responses.submission(view, OPTIONS)
    return orjson.loads(Encoder(EnumCase.SPEC).encoded(answer, ListedSubmission))


@pytest.mark.parametrize("view", VIEWS, ids=range(len(VIEWS)))
def test_an_encoded_answer_says_what_the_record_says_in_the_same_order(view):
    assert without_version(encoded.submission(view, OPTIONS)) == record(view)
    whole = encoded.queue(a_queue_view(view), OPTIONS, NOW)
    entries = orjson.loads(whole.body)["enqueuedPullRequests"]
    assert entries == [listed(view)]
    assert list(entries[0]) == list(listed(view))
    only_alone = {
        *("readiness", "forceEnqueued", "isCurrentlySubmittedToQueue", "requiredChecks"),
    }
    alone = orjson.loads(record(view))
    assert [name for name in alone if name not in only_alone] == list(listed(view))


@pytest.mark.parametrize("view", VIEWS, ids=range(len(VIEWS)))
def test_an_encoded_answer_is_in_lower_case_where_all_answers_are(view):
    shown = orjson.loads(encoded.submission(view, LOWER).body)
    assert re.fullmatch("[0-9a-f]{24}", shown.pop("recordVersion"))
    assert shown == encoding.in_lower(orjson.loads(record(view)))
    assert shown["state"] == view.entry.state.value.lower()
    whole = orjson.loads(encoded.queue(a_queue_view(view), LOWER, NOW).body)
    words = [whole[name] for name in encoding.WORDS if isinstance(whole.get(name), str)]
    assert words
    assert all(word.islower() for word in words)
    (entry,) = whole["enqueuedPullRequests"]
    assert entry == encoding.in_lower(listed(view))


CHANGES: list[dict[str, Any]] = [
    {"position": 2},
    {"length": 9},
    {"eta": ETA},
    {"eta": replace(ETA, overdue=True)},
    {"run": "r2"},
    {"has_targets": True},
    {"conclusion": ENDED},
    {"entry": an_entry(3, reason=Reason.AHEAD_FAILED)},
    {"entry": an_entry(3, priority=10)},
    {"queue": replace(QUEUE, branch="release")},
    {"config": replace(CONFIG, concurrency=2)},
]


@pytest.mark.parametrize("change", CHANGES, ids=[next(iter(each)) for each in CHANGES])
def test_whatever_changes_in_an_answer_changes_its_version(change):
    before, after = a_view(), replace(a_view(), **change)
    first, second = (encoded.submission(view, OPTIONS) for view in (before, after))
    has_changed = record(after) != record(before)
    assert (second.version != first.version) is has_changed
    queues = [encoded.queue(a_queue_view(view), OPTIONS, NOW) for view in (before, after)]
    assert (queues[1].version != queues[0].version) is (listed(after) != listed(before))


def test_the_same_view_of_a_queue_is_encoded_once_and_another_one_anew():
    answers = QueueAnswers(OPTIONS)
    view = a_queue_view(a_view(1), a_view(2))
    first = answers.answer(view, NOW)
    assert answers.answer(view, NOW) is first
    later = a_queue_view(a_view(1), state_reason="later")
    assert answers.answer(later, NOW) == encoded.queue(later, OPTIONS, NOW)


def test_answers_about_queues_are_kept_up_to_so_many_bytes(monkeypatch):
    def of(queue_id: int) -> QueueView:
        return replace(a_queue_view(a_view()), queue=replace(QUEUE, id=queue_id))

    views = [of(queue_id) for queue_id in range(3)]
    size = len(encoded.queue(views[0], OPTIONS, NOW).body)
    monkeypatch.setattr("service.mergequeue.api.encoded.QUEUES_BYTES_MAX", 2 * size)
    answers = QueueAnswers(OPTIONS)
    first = answers.answer(views[0], NOW)
    # The same queue once more takes the place of its answer before.
    for _ in range(5):
        last = replace(views[1])
        second = answers.answer(last, NOW)
    assert answers.answer(views[0], NOW) is first
    answers.answer(views[2], NOW)
    assert answers.answer(views[0], NOW) is first
    assert answers.answer(last, NOW) is not second


def test_a_queue_of_more_than_five_thousand_is_cut_and_says_so():
    views = tuple(a_view(number) for number in range(1, 5_002))
    whole = orjson.loads(encoded.queue(a_queue_view(*views[:5_000]), OPTIONS, NOW).body)
    assert "enqueuedPullRequestsTruncated" not in whole
    cut = orjson.loads(encoded.queue(a_queue_view(*views), OPTIONS, NOW).body)
    assert (len(cut["enqueuedPullRequests"]), cut["enqueuedPullRequestsTruncated"]) == (5_000, True)
    assert list(cut)[-3:-1] == ["enqueuedPullRequests", "enqueuedPullRequestsTruncated"]


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (0, "urgent"),
        (1, "high"),
        (10, "high"),
        (11, "medium"),
        (100, "medium"),
        (101, "low"),
        (200, "low"),
        (201, "lowest"),
        (255, "lowest"),
    ],
)
def test_a_priority_has_the_first_level_at_or_above_it(value, name):
    assert responses.priority_name(value) == name


def test_a_time_has_three_decimals_and_is_in_utc():
    assert common.time_text(NOW.replace(microsecond=19_000)) == "2026-03-02T14:00:00.019Z"
    local = NOW.astimezone(timezone(timedelta(hours=2)))
    assert common.time_text(local) == "2026-03-02T14:00:00.000Z"


def event(listed: TimelineEvent, past: Sequence[Recorded] = ()) -> dict[str, Any]:
    """An event of a timeline as JSON has it."""
    return responses.event(listed, "main", past).model_dump(mode="json")


def test_an_event_shows_the_step_its_reason_and_its_run():
    moved = EntryMoved(
        3,
        "e3",
        EntryState.TESTING,
        EntryState.PENDING,
        Reason.TARGET_MOVED,
        "r1",
        NOTHING,
    )
    shown = event(TimelineEvent(7, Recorded(NOW, SYSTEM, moved)))
    assert {name: shown[name] for name in shown if name != "message"} == {
        "sequence": 7,
        "at": "2026-03-02T14:00:00.000Z",
        "event": "EntryMoved",
        "from": "TESTING",
        "to": "PENDING",
        "reason": "target_moved",
        "actor": {"kind": "system", "login": None, "channel": "system"},
        "testRunId": "r1",
    }
    assert shown["message"]


@pytest.mark.parametrize(
    ("happened", "reason"),
    [
        (EntrySubmitted(3, "e3", Sha("a" * 40), Reason.USER_REQUESTED, 100), "user_requested"),
        (TipMoved(Sha("a" * 40), landed=True, adopted=False), None),
    ],
)
def test_an_event_without_step_or_run_has_null_for_them(happened, reason):
    shown = event(TimelineEvent(1, Recorded(NOW, ANN, happened)))
    assert (shown["from"], shown["to"], shown["testRunId"]) == (None, None, None)
    assert shown["reason"] == reason
    assert shown["actor"] == {"kind": "person", "login": "ann", "channel": "comment"}


def test_the_steps_of_a_search_are_told_by_how_it_began():
    opened = Recorded(NOW, SYSTEM, BisectionOpened("b1", "r1", (1, 2, 3)))
    narrowed = Recorded(NOW, SYSTEM, BisectionNarrowed("b1", "r1", 1, 3))
    step = TimelineEvent(9, narrowed)
    shown = event(step, [opened, narrowed])
    assert shown["event"] == "BisectionNarrowed"
    assert shown["message"] == "#1 passed, and the cause is among #2 and #3."
    alone = event(step)["message"]
    assert alone == "The first 1 of the batch passed, and the cause is among the next 2."


def a_testing_view(**given) -> TestingView:
    """A run of one pull request whose branch stands."""
    default: dict[str, Any] = {
        "run": a_run("r1", sha=Sha("d" * 40), branch="headgate/merge/pr-3/r1"),
        "status": RunStatus.IN_PROGRESS,
        "tested": (TestedPullRequest(3, "https://github.com/octo/widgets/pull/3", "Change 3"),),
        "suites": ("71",),
        "vehicle_number": 501,
        "commit_url": "https://github.com/octo/widgets/commit/d",
        "impacted": None,
        "impacted_tested": None,
        "waiting_on": (),
        "missing": (),
        "failed": (),
        "failed_tests": (),
    }
    return TestingView(**(default | given))


def run_as_json(view: TestingView) -> dict[str, Any]:
    """The answer about a test run."""
    return testing.test_run(view).model_dump(mode="json")


def with_checks(*checks, **given) -> TestingView:
    run = a_run("r1", sha=Sha("d" * 40), branch="b", checks=checks)
    return a_testing_view(run=run, **given)


@pytest.mark.parametrize(
    ("raw", "status", "conclusion"),
    [
        ("queued", "QUEUED", None),
        ("waiting", "QUEUED", None),
        ("requested", "QUEUED", None),
        ("pending", "QUEUED", None),
        ("in_progress", "IN_PROGRESS", None),
        ("success", "COMPLETED", "SUCCESS"),
        ("timed_out", "COMPLETED", "TIMED_OUT"),
        ("brand_new_word", "COMPLETED", "BRAND_NEW_WORD"),
    ],
)
def test_a_check_run_shows_the_providers_word_in_our_shape(raw, status, conclusion):
    (suite,) = testing.check_suites(with_checks(replace(a_check("unit"), raw=raw)))
    assert suite.model_dump(mode="json")["checkRuns"] == [
        {
            "name": "unit",
            "url": "https://github.test/checks/unit",
            "status": status,
            "conclusion": conclusion,
        }
    ]


def test_a_suite_without_runs_is_shown_empty():
    view = with_checks(a_check("unit"), suites=("70", "71"))
    assert [len(suite.check_runs) for suite in testing.check_suites(view)] == [0, 1]


def test_statuses_show_every_update_newest_first():
    updates = [
        replace(
            a_check("lint"),
            kind=CheckKind.STATUS,
            id=str(number),
            raw=raw,
            started_at=NOW + timedelta(seconds=seconds),
        )
        for number, raw, seconds in ((9, "pending", 0), (10, "error", 5), (11, "success", 5))
    ]
    shown = testing.status_checks(with_checks(*updates, a_check("unit")))
    assert [each.state for each in shown] == ["SUCCESS", "ERROR", "PENDING"]
    assert list(shown[0].model_dump()) == ["context", "url", "state", "createdAt"]
    many = testing.status_checks(with_checks(*updates * 400))
    assert len(many) == 1_000


def test_a_direct_merge_made_no_branch_and_tested_the_head():
    run = a_run("r1", kind=RunKind.DIRECT)
    shown = run_as_json(a_testing_view(run=run))
    assert (shown["testBranch"], shown["testBranchSha"]) == ("", run.entries[0].head)
    assert (shown["kind"], shown["isBisection"]) == ("direct", False)


@pytest.mark.parametrize(
    ("kind", "is_bisection"),
    [(RunKind.MAIN, False), (RunKind.PROBE, True), (RunKind.CONFIRMATION, True)],
)
def test_a_look_for_the_culprit_is_marked(kind, is_bisection):
    assert run_as_json(a_testing_view(run=a_run("r1", kind=kind)))["isBisection"] is is_bisection


def test_what_is_unknown_of_a_run_is_absent_where_the_document_says_so():
    shown = run_as_json(a_testing_view(run=a_run("r1", required_source=None)))
    for name in ("requiredStatusesSource", "impactedTargets", "impactedTargetsForTestedPrs"):
        assert name not in shown
    known = run_as_json(a_testing_view(impacted=("//a", "//b"), impacted_tested=("//a",)))
    assert (known["impactedTargets"], known["impactedTargetsForTestedPrs"]) == (
        ["//a", "//b"],
        ["//a"],
    )


def test_a_name_required_twice_is_shown_once():
    twice = (RequiredName("unit", "1"), RequiredName("unit", "2"), RequiredName("lint"))
    shown = run_as_json(a_testing_view(run=a_run("r1", required=twice)))
    assert shown["requiredStatuses"] == ["unit", "lint"]


@pytest.mark.parametrize(
    ("number", "word"),
    [
        (1, "1st"),
        (2, "2nd"),
        (3, "3rd"),
        (4, "4th"),
        (11, "11th"),
        (12, "12th"),
        (13, "13th"),
        (21, "21st"),
        (111, "111th"),
        (122, "122nd"),
    ],
)
def test_places_are_counted_as_people_count(number, word):
    assert explanation.ordinal(number) == word


def condition(code, *prs, **more):
    return Condition(code, met=False, prs=prs, **more)


def an_explain_view(view, explained):
    text = replace(stories.failed(), entry=view.entry, explained=explained)
    step = next_steps.describe(text, view.queue.repo)
    return ExplainView(view, explained, (), (), (), RequiredSet(), text, step)


@pytest.mark.parametrize(
    ("found", "believed", "suspects"),
    [
        ((), None, []),
        ((condition(ConditionCode.BISECTION_DONE, 1, 2, 3, 4, count=1, total=3),), None, [2, 3]),
        ((condition(ConditionCode.BISECTION_DONE, 3, 4),), None, [3, 4]),
        ((condition(ConditionCode.CAUSE_AHEAD, 1, 2),), None, [1, 2]),
        ((condition(ConditionCode.CONFIRMED),), None, [3]),
        ((condition(ConditionCode.CONFIRMED, 7),), None, [7]),
        ((replace(condition(ConditionCode.CAUSE_AHEAD, 1), met=True),), None, []),
        (
            (),
            Suspicion(
                *(40, 0, 1),
                (FailedTogether("r1", (Other(12, Fate.MERGED), Other(9, Fate.UNDECIDED))),),
            ),
            [3, 9],
        ),
    ],
)
def test_an_explanation_lists_who_may_have_caused_the_failure(found, believed, suspects):
    view = a_view(entry=an_entry(3, state=EntryState.PENDING_FAILURE, reason=Reason.CHECK_FAILED))
    explained = Explained(view.entry.state, view.entry.reason, found, None, believed)
    shown = explanation.explanation(
        an_explain_view(view, explained),
        a_queue_view(view).value,
    )
    assert shown.suspects == suspects


def test_an_explanation_has_what_is_believed_and_its_evidence():
    together = FailedTogether("r1", (Other(12, Fate.MERGED),), 3)
    believed = Suspicion(97, 1, 2, (together,))
    view = a_view(entry=an_entry(3, detail=replace(NOTHING, suspicion=believed)))
    explained = explain.of_final(view.entry)
    shown = explanation.explanation(
        an_explain_view(view, explained),
        a_queue_view(view).value,
    )
    assert Encoder(EnumCase.SPEC).plain(shown)["suspicion"] == {
        "percent": 97,
        "text": "97 % to blame: failed alone once, failed with #12 and 3 more, of which #12 has"
        " merged since, failed with others once before.",
        "failuresAlone": 1,
        "failuresTogether": 2,
        "newestTogether": [
            {
                "testRunId": "r1",
                "others": [{"prNumber": 12, "fate": "merged"}],
                "othersMore": 3,
            }
        ],
    }

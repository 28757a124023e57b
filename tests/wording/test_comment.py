"""The status comment and the failure comment in every state, as text."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.mergequeue.engine.model import Detail, Named
from service.mergequeue.engine.reasons import Cause, Reason
from service.mergequeue.engine.states import EntryState, QueueState, RunStatus
from service.mergequeue.wording import notices
from tests.harness import effort
from tests.harness.expect import expect
from tests.wording import builders, crowds, hygiene, stories
from tests.wording.builders import ALICE, BOB, BOT, LINT, TEST, TOKEN
from tests.wording.test_markdown import foreign

FAILED, CANCELLED = EntryState.FAILED, EntryState.CANCELLED

STORIES = {
    "not-ready": stories.not_ready(),
    "pending": stories.pending(),
    "paused": stories.paused(),
    "draining": stories.paused(QueueState.DRAINING),
    "held": stories.held(),
    "conflict-ahead": stories.conflicting(),
    "building": stories.building(),
    "delayed": stories.delayed(),
    "testing": stories.testing(),
    "testing-without-check-run": stories.without_check_run(),
    "testing-but-paused": stories.testing_but_paused(),
    "testing-but-held": stories.testing_but_held(),
    "testing-again": stories.testing_again(),
    "check-failing": stories.failing(),
    "check-failing-results-awaited": stories.failing(asked_evidence=stories.at(22.2)),
    "check-foreseen": stories.foreseen(),
    "check-foreseen-by-a-test": stories.foreseen(
        replace(stories.DOOM, step="", test="test_cart::test_total")
    ),
    "check-foreseen-undecided": stories.foreseen_undecided(),
    "check-foreseen-rejected": stories.foreseen_rejected(),
    "check-foreseen-taken-back": stories.taken_back(),
    "check-silent": stories.silent(),
    "check-unread": stories.unread(),
    "no-check-started": stories.no_checks(),
    "passed": stories.passed(),
    "about-to-merge": stories.landing(),
    "passed-but-paused": stories.passed_but_paused(),
    "passed-with-specials": stories.passed_with_specials(),
    "merged-with-specials": stories.merged_with_specials(),
    "merged-directly-with-specials": stories.merged_with_specials(Reason.LANDED_DIRECTLY),
    "merged-by-a-reused-result": stories.reused(),
    "undecided": stories.undecided(),
    "undecided-alone": stories.undecided(()),
    "undecided-but-paused": stories.undecided_but_paused(),
    "merged": stories.merged(),
    "merged-directly": stories.merged(Reason.LANDED_DIRECTLY),
    "merged-by-hand": stories.merged(Reason.MERGED_BY_HAND, BOB),
    "already-contained": stories.merged(Reason.ALREADY_CONTAINED),
    "merged-with-proof": stories.proved(),
    "merged-before-the-rest": stories.landed_before_the_rest(),
    "merged-tip-tested-now": stories.landed_before_the_rest(RunStatus.IN_PROGRESS),
    "merged-tip-passed": stories.landed_before_the_rest(RunStatus.SUCCEEDED),
    "merged-tip-failed": stories.landed_before_the_rest(RunStatus.FAILED),
    "failed": stories.failed(),
    "failed-behind-a-gate": stories.failed_behind_a_gate(),
    "found-in-a-batch": stories.found_in_a_batch(),
    "timed-out": stories.ended(
        FAILED,
        Reason.RUN_TIMED_OUT,
        Detail(checks=(TEST,)),
        run=stories.a_run(cause=Cause.TIMEOUT),
    ),
    "conflict": stories.ended(FAILED, Reason.CONFLICT_TARGET, Detail(paths=("cart/totals.py",))),
    "build-refused": stories.ended(
        FAILED, Reason.BUILD_REFUSED, Detail(text="Reference update failed")
    ),
    "merge-refused": stories.ended(
        FAILED, Reason.MERGE_REFUSED, Detail(text="This conversation has been locked.")
    ),
    "removed-by-a-person": stories.ended(CANCELLED, Reason.USER_REQUESTED, by=ALICE),
    "removed-by-a-token": stories.ended(
        CANCELLED, Reason.API_REQUESTED, Detail(text="release is out"), by=TOKEN
    ),
    "pushed": stories.pushed(),
    "not-ready-timeout": stories.given_up(),
    "ci-interrupted": stories.ended(CANCELLED, Reason.CI_INTERRUPTED, Detail(checks=(TEST,))),
    "ci-failed": stories.ended(CANCELLED, Reason.INFRASTRUCTURE, Detail(checks=(TEST,))),
    "check-never-started": stories.ended(
        CANCELLED, Reason.CHECK_NEVER_STARTED, Detail(checks=(Named("test (3.12)", ""),))
    ),
    "check-queued": stories.ended(
        CANCELLED, Reason.CHECK_NEVER_STARTED, Detail(checks=(replace(TEST, raw="queued"),))
    ),
    **crowds.STORIES,
}


@pytest.mark.parametrize("name", STORIES)
def test_the_status_comment(name):
    text = notices.status_comment(STORIES[name])
    assert hygiene.faults(text) == []
    expect(text).matches(f"comment-{name}.txt")


ANNOUNCED = {
    "failed",
    "failed-behind-a-gate",
    "found-in-a-batch",
    "check-foreseen-rejected",
    "timed-out",
    "conflict",
    "build-refused",
    "merge-refused",
    "not-ready-timeout",
    "ci-failed",
    "ci-interrupted",
    "check-never-started",
    "check-queued",
    "interaction",
}


def test_what_nobody_meant_to_happen_is_announced():
    assert {name for name in STORIES if notices.is_announced(STORIES[name])} == ANNOUNCED


@pytest.mark.parametrize("name", sorted(ANNOUNCED))
def test_the_failure_comment(name):
    text = notices.failure_comment(STORIES[name], is_above=False)
    assert hygiene.faults(text, mentions=("alice",)) == []
    assert text.startswith("@alice ")
    expect(text).matches(f"announced-{name}.txt")


@pytest.mark.parametrize("name", sorted(ANNOUNCED))
def test_the_failure_comment_repeats_nothing_of_the_status_comment_above(name):
    text = notices.failure_comment(STORIES[name], is_above=True)
    whole = notices.failure_comment(STORIES[name], is_above=False)
    assert hygiene.faults(text, mentions=("alice",)) == []
    assert text == f"{whole.splitlines()[0]} {notices.ABOVE}"


@pytest.mark.parametrize("submitter", [TOKEN, BOT])
def test_nobody_is_called_when_no_person_submitted(submitter):
    shown = STORIES["failed"]
    text = notices.failure_comment(
        replace(shown, entry=replace(shown.entry, submitted_by=submitter)), is_above=True
    )
    assert hygiene.faults(text) == []
    assert text.startswith("This PR was not merged into `main`: ")


@pytest.mark.parametrize(
    ("branch", "name"),
    [
        ("main", "main"),
        ("release/2.0_x", "release/2.0_x"),
        ("a-->b", "a%2D%2D%3Eb"),
        ("ü ~", "%C3%BC%20%7E"),
    ],
)
def test_the_marker_survives_any_branch(branch, name):
    assert notices.status_marker(branch) == f"<!-- headgate:status v=1 queue={name} -->"
    shown = STORIES["pending"]
    text = notices.status_comment(replace(shown, queue=replace(shown.queue, branch=branch)))
    assert text.startswith(notices.status_marker(branch) + "\n### ")


def test_the_oldest_history_is_cut_first():
    shown = STORIES["testing-again"]
    long = Detail(prs=tuple(range(100_000, 100_030)), checks=(Named("x" * 300, ""),) * 9)
    steps = [
        stories.stepped(minute, EntryState.PENDING, Reason.AHEAD_FAILED, detail=long)
        for minute in range(2, 500)
    ]
    text = notices.status_comment(
        replace(shown, history=(*stories.UP_TO_TESTING, *steps), version="9.9.9")
    )
    assert len(text) <= notices.COMMENT_CHARACTERS_MAX
    assert "queued by alice" not in text
    assert text.endswith("Headgate 9.9.9</sub>")


details = st.builds(
    Detail,
    text=foreign,
    checks=st.lists(st.builds(Named, foreign, foreign), max_size=7).map(tuple),
    prs=st.lists(st.integers(1, 99_999), max_size=25).map(tuple),
    paths=st.lists(foreign, max_size=7).map(tuple),
)


@settings(max_examples=effort.examples(40))
@given(st.sampled_from(sorted(STORIES)), details, foreign)
def test_whatever_others_wrote_is_inert_in_both_comments(name, detail, text):
    shown = STORIES[name]
    queue = replace(shown.queue, branch=text or "main", state_reason=text)
    entry = replace(shown.entry, detail=detail, facts=builders.facts(title=text, base=text))
    actor = replace(ALICE, login=text)
    history = tuple(replace(each, actor=actor) for each in shown.history)
    shown = replace(shown, queue=queue, entry=entry, history=history)
    texts = [notices.status_comment(shown)]
    if shown.entry.state in (FAILED, CANCELLED):
        texts += [notices.failure_comment(shown, is_above=each) for each in (True, False)]
    for written in texts:
        assert hygiene.faults(written, mentions=("alice",)) == []
        assert len(written) <= notices.COMMENT_CHARACTERS_MAX


def test_a_log_that_may_not_be_linked_is_still_shown():
    assert LINT.url in notices.status_comment(STORIES["failed"])
    assert LINT.url not in hygiene.links(notices.status_comment(STORIES["failed"]))

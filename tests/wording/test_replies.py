"""Answers to commands: the reaction and the reply, as text."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.mergequeue.engine.model import RequiredSet
from service.mergequeue.engine.outputs import Refused
from service.mergequeue.engine.reasons import HoldReason, Reason
from service.mergequeue.engine.states import EntryState, QueueState
from service.mergequeue.wording import replies
from service.mergequeue.wording.replies import Answer, Denial, Reprioritized, Right
from service.provider.signals import (
    AskCancel,
    AskForeign,
    AskRetry,
    AskStatus,
    AskSubmit,
    AskUnclear,
    Unclear,
)
from service.provider.values import (
    AccessLevel,
    Emoji,
)
from service.vocabulary import PullRequestState, RequiredSource
from tests.harness.expect import expect
from tests.wording import builders, hygiene
from tests.wording.builders import BOB, HEAD, NEW_HEAD, NOW, minutes
from tests.wording.test_comment import STORIES
from tests.wording.test_markdown import foreign

ENTRIES = {
    pr: builders.an_entry(EntryState.PENDING, Reason.NOW_READY, pr=pr) for pr in range(478, 485)
}
RUNNING = builders.a_queue(entries=ENTRIES)
PAUSED = replace(
    RUNNING,
    state=QueueState.PAUSED,
    state_reason="release freeze",
    state_by=BOB,
    state_since=NOW - minutes(35),
)
DRAINING = replace(PAUSED, state=QueueState.DRAINING)
HELD = replace(RUNNING, holds=(builders.a_hold(HoldReason.CI_UNHEALTHY),))


def said(answer: Answer) -> str:
    return answer.text or "(no reply)"


def denial(wish: Right, needs: AccessLevel) -> Answer:
    return replies.denied(Denial("bob", "octo/widgets", wish, needs, AccessLevel.READ))


ANSWERS = {
    "another queue, submit": replies.foreign(AskForeign("bors", "bors r+", AskSubmit())),
    "another queue, cancel": replies.foreign(AskForeign("Trunk", "/trunk cancel", AskCancel())),
    "another queue, retry": replies.foreign(AskForeign("bors", "bors retry", AskRetry())),
    "another queue, status": replies.foreign(
        AskForeign("Mergify", "@mergify refresh", AskStatus())
    ),
    "another queue, no equal": replies.foreign(AskForeign("bors", "bors try")),
    "unknown word": replies.unclear(AskUnclear(Unclear.UNKNOWN_WORD, "cancle", "cancel")),
    "unknown word, nothing near": replies.unclear(AskUnclear(Unclear.UNKNOWN_WORD, "please")),
    "unknown option": replies.unclear(
        AskUnclear(Unclear.UNKNOWN_OPTION, "--prio", "--priority=high")
    ),
    "unknown option, nothing near": replies.unclear(AskUnclear(Unclear.UNKNOWN_OPTION, "-z")),
    "bad priority": replies.unclear(AskUnclear(Unclear.BAD_PRIORITY, "asap")),
    "priority without a value": replies.unclear(AskUnclear(Unclear.BAD_PRIORITY, "")),
    "sha without a value": replies.unclear(AskUnclear(Unclear.BAD_SHA, "")),
    "undoes without a value": replies.unclear(AskUnclear(Unclear.BAD_LANDING, "")),
    "bad landing": replies.unclear(AskUnclear(Unclear.BAD_LANDING, "main")),
    "bad sha": replies.unclear(AskUnclear(Unclear.BAD_SHA, "HEAD")),
    "no reason": replies.unclear(AskUnclear(Unclear.NO_REASON, "drain")),
    "long line": replies.unclear(AskUnclear(Unclear.TOO_LONG, "")),
    "long reason": replies.unclear(AskUnclear(Unclear.TOO_LONG, "pause")),
    "several": replies.unclear(AskUnclear(Unclear.SEVERAL, "", count=2)),
    "accepted": replies.accepted(),
    "head moved": replies.head_moved(NEW_HEAD),
    "sha differs": replies.sha_differs(NEW_HEAD, HEAD),
    "no write access": denial(Right.SUBMIT, AccessLevel.WRITE),
    "no triage access": denial(Right.CANCEL, AccessLevel.TRIAGE),
    "no access at all": replies.denied(
        Denial("mallory", "octo/widgets", Right.STATUS, AccessLevel.READ, AccessLevel.NONE)
    ),
    "pause needs maintain": denial(Right.PAUSE, AccessLevel.MAINTAIN),
    "urgent needs maintain": denial(Right.URGENT, AccessLevel.MAINTAIN),
    "sensitive fork": denial(Right.SENSITIVE_FORK, AccessLevel.MAINTAIN),
    "forks denied": replies.forks_denied("main"),
    "new priority": replies.reprioritized(Reprioritized(100, 10, 2, 7)),
    "new priority, not ready": replies.reprioritized(Reprioritized(100, 42, None, 7)),
    **{
        f"{name}: {state.value.lower()} and not queued": replies.not_in_queue(ask, state)
        for name, ask in (("cancel", AskCancel()), ("retry", AskRetry()))
        for state in PullRequestState
    },
    "retry: nothing runs": replies.nothing_runs(3, 7),
    "retry: not ready": replies.nothing_runs(None, 7),
    "closed": replies.not_open(PullRequestState.CLOSED),
    "merged": replies.not_open(PullRequestState.MERGED),
    "cancel: being merged": replies.being_merged(AskCancel()),
    "retry: being merged": replies.being_merged(AskRetry()),
    "flood": replies.flood(NOW + minutes(10), NOW),
    "flood short": replies.flood(NOW + minutes(1), NOW),
    "broken": replies.broken("01JABCDEF"),
    **{
        f"status: {state.value.lower()} and never submitted": replies.never_submitted("main", state)
        for state in PullRequestState
    },
    "again by a program": replies.again_by_program(),
    "queue made": replies.queue_made(RUNNING, builders.REQUIRED),
    "no queue": replies.no_queue("develop", ("main", "release/2")),
    "no queue for a branch that a shell would run": replies.no_queue("a;$(b)", ()),
    "no queue anywhere": replies.no_queue("develop", ()),
    "no required checks": replies.no_required_checks("main"),
    "rules unreadable": replies.rules_unreadable("main"),
    "GitHub's own queue": replies.provider_queue("main"),
    "paused": replies.paused(PAUSED),
    "paused, empty": replies.paused(replace(PAUSED, entries={}, state_reason=None)),
    "drains": replies.drained(DRAINING),
    "resumed": replies.resumed(RUNNING, NOW),
    "resumed, but held": replies.resumed(HELD, NOW),
    "already paused": replies.already(PAUSED, NOW),
    "already draining": replies.already(DRAINING, NOW),
    "already running": replies.already(RUNNING, NOW),
    "already running, but held": replies.already(HELD, NOW),
    **{
        f"refused {reason.value}": replies.refused(
            replace(
                Refused(reason, "must be 1 to 1000", "concurrency", (480, 482), HEAD),
                blamed=builders.blamed("unit tests"),
                over=builders.over("carl", None),
            ),
            "main",
        )
        for reason in builders.REFUSALS
    },
}
CALLED = ("bob", "mallory")


def test_every_short_answer():
    lines = []
    for case, answer in ANSWERS.items():
        lines += [f"{case}: {answer.emoji.value}", f"    {said(answer)}"]
    expect("\n".join(lines)).matches("replies.txt")


@pytest.mark.parametrize("case", ANSWERS)
def test_an_answer_calls_nobody_but_who_was_refused_a_right(case):
    answer = ANSWERS[case]
    called = [name for name in CALLED if f"@{name}" in (said(answer))]
    assert hygiene.faults(said(answer), mentions=CALLED) == []
    assert bool(called) == (
        (case.startswith("no ") and "access" in case)
        or "maintain" in case
        or case == "sensitive fork"
    )


def test_what_was_not_done_is_never_liked():
    liked = {case for case, answer in ANSWERS.items() if answer.emoji is Emoji.ACCEPTED}
    assert not [case for case in liked if case.startswith(("refused", "no ", "already", "un"))]


TOLD = ["not-ready", "pending", "held", "testing", "testing-but-paused", "undecided", "failed"]
AMONG_OTHERS = ["batch-waiting", "batch-split-further", "batch-behind-suspect", "kept"]


@pytest.mark.parametrize("name", [*TOLD, *AMONG_OTHERS, "lane-waiting", "targets-missing"])
def test_the_answer_to_status(name):
    answer = replies.status(STORIES[name])
    assert hygiene.faults(said(answer)) == []
    expect(said(answer)).matches(f"status-{name}.txt")


def test_the_answer_to_help():
    answer = replies.command_list("main", RUNNING)
    assert hygiene.faults(said(answer)) == []
    expect(said(answer)).matches("help.txt")


def test_help_without_a_queue_says_so():
    assert said(replies.command_list("develop", None)).endswith(
        "There is no queue for `develop` yet."
    )


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (RequiredSource.MERGE_INSTANCE, "settings of the queue"),
        (RequiredSource.VENDOR_CONFIG, "a file of the repository"),
        (RequiredSource.BRANCH_PROTECTION, "branch protection"),
    ],
)
def test_a_made_queue_names_the_source_of_its_required_checks(source, words):
    required = RequiredSet(builders.REQUIRED.names, source)
    answer = replies.queue_made(RUNNING, required)
    assert said(answer).endswith(f"Required checks: `lint` and `test (3.12)` ({words}).")


AGAIN = "Nothing was changed. Write a new comment: Headgate does not read edits."


@given(foreign, st.sampled_from(Unclear))
def test_what_somebody_typed_is_inert_in_the_answer(text, why):
    for ask in (AskUnclear(why, text, text), AskUnclear(why, text)):
        answer = replies.unclear(ask)
        assert answer.emoji is Emoji.UNCLEAR
        assert hygiene.faults(said(answer)) == []
        assert said(answer).endswith(AGAIN)


@given(foreign)
def test_names_are_inert_in_every_answer(text):
    queue = replace(PAUSED, branch=text, state_reason=text, state_by=replace(BOB, login=text))
    answers = [
        replies.paused(queue),
        replies.already(queue, NOW),
        replies.command_list(text, queue),
        replies.no_queue(text, (text, text)),
        replies.forks_denied(text),
        replies.broken(text),
        replies.denied(Denial(text, text, Right.SUBMIT, AccessLevel.WRITE, AccessLevel.READ)),
    ]
    for answer in answers:
        assert hygiene.faults(said(answer), mentions=(text,)) == []

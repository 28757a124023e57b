"""The one next step of a program, over all reasons, holds and refusals and their states."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from service.errors import Conflict, OverBudget
from service.landed_work import LandedWork, WorkJudged
from service.mergequeue.api import next_steps as api
from service.mergequeue.engine.explaining.conditions import Condition, ConditionCode
from service.mergequeue.engine.explaining.explain import Explained, explain_entry
from service.mergequeue.engine.model import Detail, Entry, Tip
from service.mergequeue.engine.reasons import NEEDS, HoldReason, Reason
from service.mergequeue.engine.states import FINAL, EntryState
from service.mergequeue.reasons import refused
from service.mergequeue.reasons.record import StepKind, WhoMustAct
from service.mergequeue.wording import next_steps
from service.mergequeue.wording.next_steps import DescribedStep, Owner, Place
from service.vocabulary import RepoRef, Sha
from tests.harness.expect import expect
from tests.wording import builders, stories
from tests.wording.builders import ALICE, NOW

REPO = RepoRef("github.com", "octo", "widgets")
PLACE = Place(REPO, "main", 482)
OVER = (StepKind.DONE, StepKind.DROP, StepKind.SUPERSEDED)


def described(entry: Entry, explained: Explained | None = None) -> DescribedStep:
    """The step about an entry; what the engine says of it is asked of the engine."""
    view = stories.view(entry)
    queue = replace(view.queue, entries={entry.pr: entry} if entry.state not in FINAL else {})
    known = explained or explain_entry(queue, entry, NOW)
    return next_steps.describe(replace(view, queue=queue, explained=known), REPO)


def states_of(reason: Reason) -> Iterator[EntryState]:
    """The states that an entry has for a reason."""
    record = reason.record
    told = {
        EntryState.PENDING: record.pending,
        EntryState.TESTING: record.testing,
        EntryState.TESTS_PASSED: record.passed,
        EntryState.PENDING_FAILURE: record.undecided,
        EntryState.FAILED: record.failed,
        EntryState.CANCELLED: record.cancelled,
        EntryState.MERGED: record.merged,
    }
    if record.need is not None:
        yield EntryState.NOT_READY
    yield from (state for state, text in told.items() if text)


def in_state(state: EntryState, reason: Reason) -> DescribedStep:
    """The step about an entry that is in a state for a reason."""
    if state is EntryState.NOT_READY:
        return described(builders.an_entry(state, reason, unmet=(reason,)))
    entry = builders.an_entry(state, reason)
    plain = Explained(state, reason, (), None)
    return described(entry, plain)


CASES = [(state, reason) for reason in Reason for state in states_of(reason)]


@pytest.mark.parametrize(("state", "reason"), CASES)
def test_every_reason_in_every_state_has_one_step_with_the_right_call(
    state: EntryState, reason: Reason
) -> None:
    made = in_state(state, reason)
    kind = made.step.kind
    assert made.text
    assert (made.call is None) == (kind in OVER)
    if state is EntryState.MERGED:
        assert kind is StepKind.DONE
    elif state in FINAL:
        assert kind not in (StepKind.WAIT, StepKind.SUBMIT, StepKind.DONE)
        assert kind is reason.record.next
    elif state is EntryState.NOT_READY:
        assert kind in (StepKind.WAIT, reason.record.next)
    else:
        assert kind is StepKind.WAIT
    shown = api.shown(made).model_dump(mode="json", by_alias=True)
    assert shown["kind"] == kind.value
    if made.call is not None:
        waits = kind in (StepKind.WAIT, StepKind.ASK)
        assert shown["call"]["tool"] == ("what_now" if waits else "land_pull_request")
        assert shown["call"]["command"].split()[1] == ("next" if waits else "land")
        assert shown["call"]["body"]["pr"] == {"number": made.place.number}


def test_the_table_of_reasons_and_states_reads_so() -> None:
    rows = []
    for state, reason in CASES:
        made = in_state(state, reason)
        rows.append(f"{state} {reason}: {made.step.kind} ({made.step.who})\n    {made.text}")
    expect("\n".join(rows)).matches("next-steps.txt")


@pytest.mark.parametrize("hold", HoldReason)
def test_a_hold_is_waited_for_or_somebody_is_asked(hold: HoldReason) -> None:
    entry = builders.an_entry(EntryState.PENDING, Reason.NOW_READY)
    stop = Condition(
        ConditionCode.NO_HOLD, False, hold.record.who, since=NOW, name="h1", word=hold.value
    )
    made = described(entry, Explained(entry.state, entry.reason, (stop,), None))
    is_of_people = hold.record.who is not WhoMustAct.NOBODY
    assert made.step.kind is (hold.record.next if is_of_people else StepKind.WAIT)
    assert made.step.code == hold.value


@pytest.mark.parametrize(
    "code", [one.value for one in Reason if one.record.refused] + [*refused.OTHERS]
)
def test_every_refusal_of_a_submission_has_a_step(code: str) -> None:
    made = next_steps.after_refusal(PLACE, Conflict("No.", code=code), NOW)
    assert made is not None
    assert (made.step.code, made.text) == (code, "No.")
    assert (made.call is None) == (made.step.kind in OVER)


def test_an_error_that_is_not_about_the_pull_request_has_no_step() -> None:
    assert next_steps.after_refusal(PLACE, Conflict("No.", code="missing_role"), NOW) is None


def test_a_refusal_says_when_another_try_makes_sense() -> None:
    at = NOW + timedelta(hours=1)
    error = OverBudget("Full.", until=at)
    told = next_steps.after_refusal(PLACE, error, NOW)
    plain = next_steps.after_refusal(PLACE, Conflict("Full.", code="limit_reached"), NOW)
    assert told is not None
    assert plain is not None
    assert (told.step.at, plain.step.at) == (at, NOW + timedelta(minutes=10))


def test_a_chain_that_would_conflict_begins_with_the_lower_one() -> None:
    error = Conflict("No.", code="conflict_after_landing", members={"pull_requests": [9, 7]})
    made = next_steps.after_refusal(replace(PLACE, number=9), error, NOW)
    assert made is not None
    assert made.call is not None
    assert (made.step.kind, made.call.place.number, made.call.submits) == (StepKind.WAIT, 7, True)


def test_what_the_program_can_do_comes_before_what_others_must_do() -> None:
    unmet = tuple(one for one in NEEDS if one in (Reason.REVIEW_REQUIRED, Reason.CHECK_FAILING))
    entry = builders.an_entry(EntryState.NOT_READY, Reason.REVIEW_REQUIRED, unmet=unmet)
    assert described(entry).step.kind is StepKind.FIX


def test_a_person_who_took_it_out_is_asked() -> None:
    entry = builders.an_entry(EntryState.CANCELLED, Reason.USER_REQUESTED, canceller=ALICE)
    made = described(entry)
    assert (made.step.kind, made.person) == (StepKind.ASK, "alice")


def test_a_conflict_names_paths_commit_and_owner() -> None:
    detail = Detail(paths=("cart.py",))
    entry = builders.an_entry(EntryState.FAILED, Reason.CONFLICT_TARGET, detail=detail)
    earlier = stories.stepped(
        1, EntryState.PENDING, Reason.CONFLICT_AHEAD, detail=Detail(prs=(478,))
    )
    plain = stories.view(entry)
    queue = replace(plain.queue, tip=Tip(Sha("a" * 40), Sha("b" * 40)))
    view = replace(plain, queue=queue, history=(earlier,))
    assert next_steps.conflicting(view) == (478,)
    made = next_steps.describe(view, REPO, [Owner(478, "bob", is_merged=True)])
    shown = api.shown(made)
    assert (shown.kind, shown.paths) == ("REBASE", ["cart.py"])
    assert shown.commit == "a" * 40
    assert [one.author for one in shown.conflicts_with] == ["bob"]


def test_the_version_stays_while_only_words_move_by_themselves() -> None:
    entry = builders.an_entry(EntryState.PENDING, Reason.NOW_READY)
    slot = Condition(ConditionCode.FREE_SLOT, False, count=2, total=2)
    one = described(entry, Explained(entry.state, entry.reason, (slot,), None))
    other = described(entry, Explained(entry.state, entry.reason, (replace(slot, count=1),), None))
    turn = replace(slot, code=ConditionCode.ITS_TURN, prs=(478,))
    third = described(entry, Explained(entry.state, entry.reason, (turn,), None))
    assert one.version == other.version != third.version


def test_a_pull_request_that_never_was_in_the_queue_is_submitted() -> None:
    made = next_steps.never_submitted(PLACE)
    assert made.call is not None
    assert made.step.kind is StepKind.SUBMIT
    assert made.call.command == (
        "headgate land 482 --no-wait --repo github.com/octo/widgets --branch main"
    )


def test_what_it_would_take_back_is_named_with_both_ways_out() -> None:
    work = LandedWork(Sha("c" * 40), 478, "Refund", "bob", paths=("cart.py", "shop.py"))
    waiting = builders.an_entry(
        EntryState.NOT_READY, Reason.UNDOES_LANDED_WORK, unmet=(Reason.UNDOES_LANDED_WORK,)
    )
    entry = replace(waiting, work=WorkJudged(waiting.head, Sha("a" * 40), (work,)))
    shown = api.shown(described(entry))
    assert (shown.kind, shown.pull_requests) == ("FIX", [478])
    assert shown.paths == ["cart.py", "shop.py"]
    assert "it would take back #478: the author rebases it onto main and pushes" in shown.text
    assert "comments /merge --undoes #478 if that is meant" in shown.text
    assert shown.text.endswith(
        "The work is in cart.py and shop.py. If a rebase does not bring it back, take these files "
        "from main and make only your own change in them."
    )

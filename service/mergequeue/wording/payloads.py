"""Bodies of notifications, made from the events of a turn. Pure.

`PAYLOADS` is the one table from events of the queue to messages. A body is made when the thing
happens and never again, so that every attempt sends the same bytes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

import orjson

from service.mergequeue.engine.model import NOTHING, Entry, Hold, MergeQueue, Run
from service.mergequeue.engine.outputs import (
    EntryMoved,
    EntrySubmitted,
    Event,
    HoldPlaced,
    HoldReleased,
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
)
from service.mergequeue.engine.reasons import Cause
from service.mergequeue.engine.states import EntryState, RunKind, RunStatus
from service.mergequeue.wording import foreseen, holds, reasons, situation
from service.mergequeue.wording.failed_tests import FailedTest
from service.mergequeue.wording.next_steps import DescribedStep
from service.mergequeue.wording.notices import Failures
from service.notifications.messages import Message, common_fields, message_of, time_text
from service.text import markdown, phrases
from service.vocabulary import SYSTEM, QueueRef

Json = Mapping[str, object]

Word = tuple[str, str | None]
"""Last part of an event's name, and the field of the wire word of its reason."""

BATCH_MIN = 2
LEFT = frozenset({EntryState.FAILED, EntryState.CANCELLED})
"""States whose messages have failures."""

SENTENCES_CHARACTERS_MAX = 1000

FAILURES_BYTES_MAX = 8_000
"""Tests and checks beyond this are left out and only counted: a body has at most 20 kB."""

FAILURE_CHARACTERS_MAX = 300
"""Longer texts of failures are cut; longer addresses are left out."""

NUMBERS_MAX = 100
"""Pull requests that a step names."""

BISECTION = frozenset({RunKind.PROBE, RunKind.CONFIRMATION})

WORDS: Mapping[EntryState, Word] = {
    EntryState.NOT_READY: ("not_ready", None),
    EntryState.PENDING: ("queued", "queued_reason"),
    EntryState.TESTING: ("testing", None),
    EntryState.TESTS_PASSED: ("tests_passed", "passed_reason"),
    EntryState.PENDING_FAILURE: ("pending_failure", None),
    EntryState.FAILED: ("failed", "failure_reason"),
    EntryState.CANCELLED: ("canceled", "cancellation_reason"),
    EntryState.MERGED: ("merged", "merged_reason"),
}
"""The event name for each state that a pull request enters."""

SUBMITTED: Word = ("submitted", "submitted_reason")
BATCHES = frozenset(EntryState) - {EntryState.NOT_READY, EntryState.TESTS_PASSED}
"""States that a batch enters as one."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A pull request when an event happened to it.

    `entry` in the form that it had after it, `run` the one it is in or came from, `vehicle` the
    number of the draft pull request that carries that. `sequence` counts from 1 for a submission.
    `batch` is a run of two or more that enters the same state by this, None for most. `failures`
    are those because of which it left, as its comment and its page show them.
    """

    entry: Entry
    run: Run | None
    vehicle: int | None
    sequence: int
    batch: Run | None = None
    failures: Failures | None = None


@dataclass(frozen=True, slots=True)
class Scene:
    """The queue after a turn, and before it; `subject` where the event is of a pull request.

    `is_lower`: states are spelled in lower case (docs/design/http.md 3). `pages` is the page of
    the queue, `run_page` that of the test run which the event is about.
    """

    organization: str
    queue: QueueRef
    before: MergeQueue | None
    value: MergeQueue
    subject: Subject | None = None
    pages: str | None = None
    is_lower: bool = False
    run_page: str | None = None

    def page_of(self, entry: Entry) -> str | None:
        """Return the address of our page of a pull request, if there are pages."""
        return self.pages and f"{self.pages}/pull/{entry.pr}"

    def word(self, state: StrEnum) -> str:
        """Return a state or scope as receivers see it."""
        return state.value.lower() if self.is_lower else state.value


def messages_of(scene: Scene, recorded: Recorded) -> tuple[Message, ...]:
    """Return the messages of an event; most queue events have none."""
    subject = scene.subject
    if subject is not None:
        return _about_pull_request(scene, subject, recorded)
    known = PAYLOADS.get(type(recorded.event))
    if known is None:
        return ()
    name, fields = known
    return (_of_queue(scene, recorded, name, fields(scene, recorded.event)),)


def about_run(scene: Scene, run: Run, vehicle: int | None, recorded: Recorded) -> Message | None:
    """Return `test_run.started` or `test_run.finished`; None for what has no test branch."""
    found = _result_in(recorded.event, run)
    if found is None or run.sha is None:
        return None
    status, cause, failed = found
    name = f"test_run.{'started' if status is RunStatus.IN_PROGRESS else 'finished'}"
    return message_of(
        name,
        recorded.at,
        {
            **_of_repository(scene, name, recorded.at),
            "target_branch": scene.queue.branch,
            "status": status.value,
            "http_details_url": scene.run_page,
            "test_run_id": run.id,
            "kind": run.kind.value,
            "attempt": run.attempt,
            **_of_run(run, vehicle),
            "pr_numbers": [*run.base_prs, *run.prs],
            "pr_numbers_tested": list(run.prs),
            "verdict": cause and cause.value,
            "failed_statuses": list(failed),
        },
    )


def _result_in(event: Event, run: Run) -> tuple[RunStatus, Cause | None, tuple[str, ...]] | None:
    """Return status, cause and failed statuses that an event gives its test run, if it does."""
    match event:
        case RunBuilt():
            return RunStatus.IN_PROGRESS, None, ()
        case RunFinished(status=status) if status is not RunStatus.IN_PROGRESS:
            return status, event.cause, event.failed
        case RunRetired() if run.status is RunStatus.CANCELLED:
            return RunStatus.CANCELLED, None, ()
        case _:
            return None


def created(scene: Scene, at: datetime) -> Message:
    """A queue was made; no turn did it."""
    recorded = Recorded(at, scene.value.state_by or SYSTEM, QueueConfigured(()))
    return _of_queue(scene, recorded, "created", {"reason": scene.value.state_reason})


def as_moved(entry: Entry, event: EntryMoved) -> Entry:
    """The entry as this event left it, whatever came after in the same turn."""
    return replace(entry, state=event.state, reason=event.reason, detail=event.detail)


def as_submitted(entry: Entry, event: EntrySubmitted) -> Entry:
    """The entry as it came in."""
    return replace(entry, state=EntryState.NOT_READY, reason=event.reason, detail=NOTHING, run=None)


def batch_that_moves(entry: Entry, run: Run) -> bool:
    """Return whether a run enters a state as a batch by what happens to this pull request of it.

    It moves with its first one and has landed with its last, so that it is told of once; by one
    that fails or leaves, whichever it is, the whole of it fails or is given up.
    """
    numbers = [member.entry for member in run.entries]
    if len(numbers) < BATCH_MIN or entry.id not in numbers or entry.state not in BATCHES:
        return False
    if entry.state in {EntryState.FAILED, EntryState.CANCELLED}:
        return True
    return entry.id == numbers[-1 if entry.state is EntryState.MERGED else 0]


def _about_pull_request(scene: Scene, subject: Subject, recorded: Recorded) -> tuple[Message, ...]:
    entry, batch = subject.entry, subject.batch
    if isinstance(recorded.event, EntrySubmitted):
        return (_of_pull_request(scene, subject, recorded.at, SUBMITTED),)
    words = [WORDS[entry.state]]
    single = _of_pull_request(scene, subject, recorded.at, words[0])
    if batch is None:
        return (single,)
    if entry.state is EntryState.TESTING and batch.created_at == recorded.at:
        words.insert(0, SUBMITTED)
    return (single, *(_of_batch(scene, subject, batch, recorded.at, word) for word in words))


def _of_pull_request(scene: Scene, subject: Subject, at: datetime, word: Word) -> Message:
    entry, run = subject.entry, subject.run
    name = f"pull_request.{word[0]}"
    return message_of(
        name,
        at,
        {
            **_of_repository(scene, name, at),
            "target_branch": scene.queue.branch,
            "status": scene.word(entry.state),
            "pr_number": entry.pr,
            "author": entry.facts.author,
            "http_details_url": scene.page_of(entry),
            "is_bisection": _searches(run),
            "batched": run is not None and len(run.entries) >= BATCH_MIN,
            **_of_run(run, subject.vehicle),
            **_why(scene, entry, run, word),
            "entry_id": entry.id,
            "pr_sha": entry.head,
            "test_run_id": run and run.id,
            "merged_sha": entry.landed_sha,
            "sequence": subject.sequence,
            **({"failures": _failures(subject.failures)} if entry.state in LEFT else {}),
        },
    )


def next_step_changed(scene: Scene, entry: Entry, made: DescribedStep, at: datetime) -> Message:
    """Return the message that another kind of step is next about a pull request."""
    name = "next_step.changed"
    return message_of(
        name,
        at,
        {
            **_of_repository(scene, name, at),
            "target_branch": scene.queue.branch,
            "http_details_url": scene.page_of(entry),
            "pr_number": entry.pr,
            "author": entry.facts.author,
            "entry_id": entry.id,
            "pr_sha": entry.head,
            "next_step": _next_step(made),
        },
    )


def _next_step(made: DescribedStep) -> Json:
    step, call = made.step, made.call
    names = ("command", "path", "body", "tool", "arguments")
    shown = None if call is None else {each: getattr(call, each) for each in names}
    return {
        "kind": step.kind.value,
        "text": markdown.cleaned(made.text, SENTENCES_CHARACTERS_MAX),
        "code": step.code,
        "who_must_act": step.who.value,
        "person": made.person or None,
        "since": None if step.since is None else time_text(step.since),
        "at": None if step.at is None else time_text(step.at),
        "pull_requests": list(step.prs[:NUMBERS_MAX]),
        "commit": made.commit,
        "paths": [markdown.cleaned(each) for each in step.paths[: phrases.NAMES_SHOWN_MAX]],
        "conflicts_with": [
            {"pr_number": one.number, "author": one.author, "merged": one.is_merged}
            for one in made.owners[: phrases.NAMES_SHOWN_MAX]
        ],
        "failures": _failures(made.failures),
        "percent": made.percent,
        "suspects": list(made.suspects[:NUMBERS_MAX]),
        "call": shown and {"method": "POST", **shown},
        "record_version": made.version,
    }


def _failures(found: Failures | None) -> Json | None:
    """Return what failed as far as it fits, the first of it; None if nothing did."""
    if found is None:
        return None
    checks: list[dict[str, object]] = [
        {
            "name": markdown.cleaned(one.name),
            "url": _address(one.url),
            "because": markdown.cleaned(one.because or "") or None,
            "foreseen": foreseen.told(one),
            "failed_before": [
                {"name": markdown.cleaned(name), "url": _address(url)}
                for name, url in (one.after.jobs if one.after else ())[: phrases.NAMES_SHOWN_MAX]
            ],
        }
        for one in found.checks[: phrases.NAMES_SHOWN_MAX]
    ]
    tests = [_failed_test(one) for one in found.tests.shown]
    shown: dict[str, object] = {
        "text": markdown.cleaned(found.text, SENTENCES_CHARACTERS_MAX),
        "checks": checks,
        "tests": tests,
        "failed_tests": found.tests.failed,
        "excused_tests": found.tests.excused,
    }
    while len(orjson.dumps(shown)) > FAILURES_BYTES_MAX:
        max(checks, tests, key=len).pop()
    return shown


def _failed_test(test: FailedTest) -> dict[str, object]:
    return {
        "id": test.id,
        "name": markdown.cleaned(test.name, FAILURE_CHARACTERS_MAX),
        "file": markdown.cleaned(test.file, FAILURE_CHARACTERS_MAX) or None,
        "line": test.line,
        "message": markdown.cleaned(test.message, FAILURE_CHARACTERS_MAX),
        "known_as": test.standing.value,
        "fails_on": markdown.cleaned(test.fails_on) or None,
        "log": _address(test.log),
        "page": _address(test.page),
    }


def _address(url: str) -> str | None:
    return url if 0 < len(url) <= FAILURE_CHARACTERS_MAX else None


def _of_batch(scene: Scene, subject: Subject, batch: Run, at: datetime, word: Word) -> Message:
    entry = subject.entry
    vehicle = subject.vehicle if batch is subject.run else None
    name = f"pull_request_batch.{word[0]}"
    return message_of(
        name,
        at,
        {
            **_of_repository(scene, name, at),
            "target_branch": scene.queue.branch,
            "status": scene.word(entry.state),
            "http_details_url": scene.page_of(entry),
            "is_bisection": _searches(batch),
            **_of_run(batch, vehicle),
            **_why(scene, entry, batch, word),
            "test_run_id": batch.id,
            "merged_sha": entry.landed_sha,
            "batch_id": batch.id,
            "pr_numbers": [*batch.base_prs, *batch.prs],
            "pr_numbers_in_batch": list(batch.prs),
        },
    )


def _searches(run: Run | None) -> bool:
    return run is not None and run.kind in BISECTION


def _of_run(run: Run | None, vehicle: int | None) -> Json:
    return {
        "test_branch": run and run.branch,
        "test_branch_sha": run and run.sha,
        "test_pr_number": vehicle,
    }


def _why(scene: Scene, entry: Entry, run: Run | None, word: Word) -> Json:
    meaning = entry.reason.record
    wire = {} if word[1] is None else {word[1]: meaning.wire}
    is_over = entry.state in {EntryState.FAILED, EntryState.CANCELLED, EntryState.PENDING_FAILURE}
    cause = run.cause if run is not None and is_over else None
    known = situation.situation_of(entry, scene.value)
    return {
        **wire,
        "reason": entry.reason.value,
        "reason_message": reasons.sentence(known),
        "verdict": cause and cause.value,
        "retryable": meaning.retryable,
    }


def _of_queue(scene: Scene, recorded: Recorded, word: str, fields: Json) -> Message:
    value, before = scene.value, scene.before
    name = f"queue.{word}"
    return message_of(
        name,
        recorded.at,
        {
            **_of_repository(scene, name, recorded.at),
            "target_branch": scene.queue.branch,
            "http_details_url": scene.pages,
            "status": scene.word(value.state),
            "previous_status": before and scene.word(before.state),
            "reason": None,
            "actor": {"kind": recorded.actor.kind.value, "login": recorded.actor.login or None},
            "changed_fields": [],
            "hold": None,
            **fields,
            "version": value.revision,
        },
    )


def _state_changed(scene: Scene, event: Event) -> Json:
    if not isinstance(event, QueueStateChanged):
        return {}
    return {
        "status": scene.word(event.state),
        "previous_status": scene.word(event.origin),
        "reason": event.reason,
        "changed_fields": ["state"],
    }


def _configured(_scene: Scene, event: Event) -> Json:
    changed = event.changed if isinstance(event, QueueConfigured) else ("mode",)
    return {"changed_fields": [_camel(name) for name in changed]}


def _held(scene: Scene, event: Event) -> Json:
    if not isinstance(event, HoldPlaced | HoldReleased):
        return {}
    known = {each.id: each for each in (*(scene.before or scene.value).holds, *scene.value.holds)}
    held = known.get(event.hold)
    return {"reason": event.text or event.reason.value, "hold": held and _hold(scene, held)}


def _hold(scene: Scene, held: Hold) -> Json:
    message = holds.message(held, scene.queue.branch, held.since)
    return {
        "message": markdown.cleaned(message, SENTENCES_CHARACTERS_MAX),
        "id": held.id,
        "reason": held.reason.value,
        "scope": scene.word(held.scope),
        "text": held.text or None,
        "since": time_text(held.since),
        "until": None if held.until is None else time_text(held.until),
    }


def _mismatched(_scene: Scene, event: Event) -> Json:
    return {"reason": event.evidence} if isinstance(event, LandingMismatched) else {}


def _plain(_scene: Scene, _event: Event) -> Json:
    return {}


PAYLOADS: Mapping[type[Event], tuple[str, Callable[[Scene, Event], Json]]] = {
    QueueStateChanged: ("state_changed", _state_changed),
    QueueConfigured: ("updated", _configured),
    ModeChanged: ("updated", _configured),
    HoldPlaced: ("held", _held),
    HoldReleased: ("released", _held),
    QueueDrained: ("drained", _plain),
    QueueDeleted: ("deleted", _plain),
    LandingMismatched: ("landing_mismatch", _mismatched),
}
"""The last part of the name of each queue event, and its own members."""


def _of_repository(scene: Scene, name: str, at: datetime) -> Json:
    repo = scene.queue.repo
    return {
        **common_fields(name, scene.organization, at),
        "repository": {"host": repo.host, "owner": repo.owner, "name": repo.name},
    }


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))

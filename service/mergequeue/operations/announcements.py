"""Store the notifications of a turn in its transaction.

One message for each event and one open attempt for each endpoint that selects it. Without such
endpoints no row is written; `sequence` has no gap, because it is counted from the journal.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

from service.accounts import page_addresses
from service.database.database import Tx
from service.mergequeue.engine.explaining.explain import Explained, explain_entry
from service.mergequeue.engine.explaining.next_steps import next_step_of
from service.mergequeue.engine.model import Entry, MergeQueue, Run
from service.mergequeue.engine.outputs import (
    EntryMoved,
    EntrySubmitted,
    Recorded,
    RunBuilt,
    RunFinished,
    RunRetired,
    Step,
)
from service.mergequeue.engine.states import EntryState
from service.mergequeue.operations.next_steps import described_step
from service.mergequeue.operations.run_failures import RunFailures
from service.mergequeue.reasons.record import StepKind
from service.mergequeue.store import journal, runs
from service.mergequeue.wording import failed_tests, notices, payloads, situation
from service.mergequeue.wording.notices import Failures
from service.mergequeue.wording.payloads import Scene, Subject
from service.mergequeue.wording.situation import PullRequestText
from service.notifications import notifications
from service.notifications.messages import Message, wants
from service.notifications.store import subscribers
from service.runtime import EnumCase, Runtime
from service.text.markdown import Links
from service.vocabulary import QueueRef

STEP_CHANGED = "next_step.changed"


@dataclass(frozen=True, slots=True)
class TurnResult:
    """The changes of one turn.

    `before` is the value at its start, None if the queue was just created. `whole` joins all
    of its steps: the queue as it was saved, with the events in order.
    """

    ref: QueueRef
    before: MergeQueue | None
    whole: Step
    now: datetime


def announce(session: Tx, runtime: Runtime, result: TurnResult) -> bool:
    """Store a message for each event of the turn that an endpoint of its organization selects.

    Returns False if no endpoint of the organization is enabled.
    """
    ref = result.ref
    listening = subscribers.enabled(session, ref.org_id, ref.repository_id)
    if not listening:
        return False
    scene = Scene(
        organization=subscribers.organization_slug(session, ref.org_id),
        queue=ref,
        before=result.before,
        value=result.whole.queue,
        pages=page_addresses.of_queue(runtime.options, ref.repo, ref.branch),
        is_lower=runtime.options.enum_case is EnumCase.LOWER,
    )
    announcer = _Announcer(session, runtime, result, scene)
    for message in announcer.messages():
        notifications.enqueue(session, runtime, message, listening)
    if any(wants(each.events, STEP_CHANGED) for each in listening):
        for message in announcer.changed_steps():
            notifications.enqueue(session, runtime, message, listening)
    return True


@dataclass(slots=True)
class _Announcer:
    """Builds the messages of one turn; caches its lookups and the batches already announced."""

    session: Tx
    runtime: Runtime
    result: TurnResult
    scene: Scene
    announced: set[tuple[str, EntryState]] = field(default_factory=set)
    runs: dict[str, Run | None] = field(default_factory=dict)
    left: Counter[str] = field(default_factory=Counter)

    def messages(self) -> Iterator[Message]:
        """Return the messages about all events of the turn, in order."""
        result = self.result
        if result.before is None:
            yield payloads.created(self.scene, result.now)
        counted = [each.event for each in result.whole.events]
        self.left.update(
            event.entry
            for event in counted
            if isinstance(event, EntrySubmitted | EntryMoved) and journal.enters_a_state(event)
        )
        for recorded in result.whole.events:
            event = recorded.event
            if isinstance(event, RunBuilt | RunFinished | RunRetired):
                yield from self._about_run(event, recorded)
            elif not isinstance(event, EntrySubmitted | EntryMoved):
                yield from payloads.messages_of(self.scene, recorded)
            elif journal.enters_a_state(event):
                subject = self._subject(event)
                yield from payloads.messages_of(replace(self.scene, subject=subject), recorded)

    def _about_run(
        self, event: RunBuilt | RunFinished | RunRetired, recorded: Recorded
    ) -> Iterator[Message]:
        run = self._run(event.run)
        if run is None:
            return
        placed = runs.draft_pull_request_of(self.session, run.id)
        page = page_addresses.of_run(self.runtime.options, self.result.ref.repo, run.id)
        scene = replace(self.scene, run_page=page)
        message = payloads.about_run(scene, run, placed and placed[0], recorded)
        if message is not None:
            yield message

    def _subject(self, event: EntrySubmitted | EntryMoved) -> Subject:
        self.left[event.entry] -= 1
        written = journal.states_entered(self.session, self.result.ref.id, event.pr, event.entry)
        sequence = written - self.left[event.entry]
        entry = self._entry(event.pr, event.entry)
        if isinstance(event, EntrySubmitted):
            return Subject(payloads.as_submitted(entry, event), None, None, sequence)
        moved = payloads.as_moved(entry, event)
        before = self._before(event.pr, event.entry)
        last = None if before is None else before.run or before.verified_by
        run = self._run(event.run or last)
        placed = None if run is None else runs.draft_pull_request_of(self.session, run.id)
        return Subject(
            moved,
            run,
            placed and placed[0],
            sequence,
            self._batch(moved, run, before),
            self._failures(moved),
        )

    def changed_steps(self) -> Iterator[Message]:
        """Return a message for each pull request whose next step is of another kind than before.

        Nothing is said of a wait, and of a submission after which the next one began.
        """
        whole, before = self.result.whole, self.result.before
        live = whole.queue
        now = {one.id: one for one in whole.finished_entries if one.pr not in live.entries}
        now |= {one.id: one for one in live.entries.values() if self._is_changed(one)}
        for entry in now.values():
            explained = explain_entry(live, entry, self.result.now)
            kind = next_step_of(entry, explained).kind
            known = self._before(entry.pr, entry.id)
            if kind is StepKind.WAIT:
                continue
            if before is not None and known is not None:
                told = explain_entry(before, known, self.result.now)
                if kind is next_step_of(known, told).kind:
                    continue
            text = self._text(entry, explained)
            made = described_step(self.session, self.runtime, self.result.ref, text)
            yield payloads.next_step_changed(self.scene, entry, made, self.result.now)

    def _is_changed(self, entry: Entry) -> bool:
        """Return whether an open submission, or the run that it is in, is another value."""
        before, live = self.result.before, self.result.whole.queue
        if before is None or before.entries.get(entry.pr) is not entry:
            return True
        run = entry.run or entry.verified_by or ""
        return before.runs.get(run) is not live.runs.get(run)

    def _failures(self, moved: Entry) -> Failures | None:
        """Return what failed of one that left, by the record that its comment is made from."""
        if moved.state not in payloads.LEFT:
            return None
        text = self._text(moved, Explained(moved.state, moved.reason, (), None))
        return notices.failures_of(text)

    def _text(self, entry: Entry, explained: Explained) -> PullRequestText:
        """Return the record of a submission that its comment is made from."""
        ref, value = self.result.ref, self.scene.value
        run = self._run(situation.last_run_of(entry))
        tests = failed_tests.NONE
        if run is not None and value.sends_results:
            tests = self.runtime.links.of(RunFailures).named_in(
                self.session, self.runtime, ref, run
            )
        return PullRequestText(
            queue=value,
            entry=entry,
            explained=explained,
            run=run,
            position=None,
            length=0,
            left=None,
            history=journal.timeline(self.session, ref.id, entry.pr, entry.id),
            links=Links(""),
            now=self.result.now,
            version="",
            tests=tests,
        )

    def _entry(self, pr: int, entry_id: str) -> Entry:
        """Return the submission as the turn left it."""
        whole = self.result.whole
        ended = next((each for each in whole.finished_entries if each.id == entry_id), None)
        return ended if ended is not None else whole.queue.entries[pr]

    def _before(self, pr: int, entry_id: str) -> Entry | None:
        """Return the submission as the turn found it, if it was there."""
        before = self.result.before
        entry = None if before is None else before.entries.get(pr)
        return entry if entry is not None and entry.id == entry_id else None

    def _batch(self, moved: Entry, run: Run | None, before: Entry | None) -> Run | None:
        """Return the batch that moves with it, once per turn; a failed batch by its bisection."""
        value = self.result.before
        searched = value and before and value.bisections.get(before.bisection or "")
        for batch in (self._run(searched.run) if searched else None, run):
            if batch is None or not payloads.batch_that_moves(moved, batch):
                continue
            if (batch.id, moved.state) not in self.announced:
                self.announced.add((batch.id, moved.state))
                return batch
        return None

    def _run(self, run_id: str | None) -> Run | None:
        """Return the run as the turn left it, or as it was last stored."""
        if run_id is None:
            return None
        if run_id not in self.runs:
            whole = self.result.whole
            ended = next((each for each in whole.finished_runs if each.id == run_id), None)
            live = whole.queue.runs.get(run_id)
            known = live or ended
            self.runs[run_id] = known or runs.run(self.session, self.result.ref.id, run_id)
        return self.runs[run_id]

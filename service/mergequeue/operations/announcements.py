"""What endpoints are told of a turn, written down in its transaction (API.md 11.1).

One message an event and one open attempt for each endpoint that wants it. Where nobody
listens nothing is written: `sequence` is counted by the journal and has no gap all the same.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from service.database.database import Tx
from service.mergequeue.engine.model import Entry, Run
from service.mergequeue.engine.outputs import EntryMoved, EntrySubmitted
from service.mergequeue.engine.states import EntryState
from service.mergequeue.operations.happened import Happened
from service.mergequeue.store import runs, sequences
from service.mergequeue.wording import payloads
from service.mergequeue.wording.payloads import Scene, Subject
from service.notifications import message_queue
from service.notifications.messages import Message
from service.notifications.store import subscribers
from service.runtime import EnumCase, Runtime


def announce(session: Tx, runtime: Runtime, happened: Happened) -> None:
    """Keep a message of each event of the turn that some endpoint of its organization wants."""
    ref = happened.ref
    listening = [
        endpoint
        for endpoint in subscribers.enabled(session, ref.org_id)
        if endpoint.repositories is None or ref.repository_id in endpoint.repositories
    ]
    if not listening:
        return
    scene = Scene(
        organization=subscribers.organization_slug(session, ref.org_id),
        queue=ref,
        before=happened.before,
        value=happened.whole.queue,
        is_lower=runtime.options.enum_case is EnumCase.LOWER,
    )
    for message in _Telling(session, happened, scene).messages():
        message_queue.enqueue(session, runtime, ref.org_id, (message, listening))


@dataclass(slots=True)
class _Telling:
    """One turn being told: what was looked up for it, and which batches were told of."""

    session: Tx
    happened: Happened
    scene: Scene
    told: set[tuple[str, EntryState]] = field(default_factory=set)
    runs: dict[str, Run | None] = field(default_factory=dict)
    left: Counter[str] = field(default_factory=Counter)

    def messages(self) -> Iterator[Message]:
        """A message of everything that endpoints may hear of, in order."""
        happened = self.happened
        if happened.before is None:
            yield payloads.created(self.scene, happened.now)
        counted = [each.event for each in happened.whole.events]
        self.left.update(
            event.entry
            for event in counted
            if isinstance(event, EntrySubmitted | EntryMoved) and sequences.enters_a_state(event)
        )
        for recorded in happened.whole.events:
            event = recorded.event
            if not isinstance(event, EntrySubmitted | EntryMoved):
                yield from payloads.messages_of(self.scene, recorded)
            elif sequences.enters_a_state(event):
                subject = self._subject(event)
                yield from payloads.messages_of(replace(self.scene, subject=subject), recorded)

    def _subject(self, event: EntrySubmitted | EntryMoved) -> Subject:
        self.left[event.entry] -= 1
        written = sequences.entered(self.session, self.happened.ref.id, event.pr, event.entry)
        sequence = written - self.left[event.entry]
        entry = self._entry(event.pr, event.entry)
        if isinstance(event, EntrySubmitted):
            return Subject(payloads.as_submitted(entry, event), None, None, sequence)
        moved = payloads.as_moved(entry, event)
        before = self._before(event.pr, event.entry)
        last = None if before is None else before.run or before.verified_by
        run = self._run(event.run or last)
        placed = None if run is None else runs.vehicle(self.session, run.id)
        return Subject(moved, run, placed and placed[0], sequence, self._batch(moved, run, before))

    def _entry(self, pr: int, entry_id: str) -> Entry:
        """The submission as the turn left it."""
        whole = self.happened.whole
        ended = next((each for each in whole.finished_entries if each.id == entry_id), None)
        return ended if ended is not None else whole.queue.entries[pr]

    def _before(self, pr: int, entry_id: str) -> Entry | None:
        """The submission as the turn found it, if it was there."""
        before = self.happened.before
        entry = None if before is None else before.entries.get(pr)
        return entry if entry is not None and entry.id == entry_id else None

    def _batch(self, moved: Entry, run: Run | None, before: Entry | None) -> Run | None:
        """The batch that moves with the submission, once a turn; a failed one by its search."""
        value = self.happened.before
        searched = value and before and value.bisections.get(before.bisection or "")
        for batch in (self._run(searched.run) if searched else None, run):
            if batch is None or not payloads.batch_that_moves(moved, batch):
                continue
            if (batch.id, moved.state) not in self.told:
                self.told.add((batch.id, moved.state))
                return batch
        return None

    def _run(self, run_id: str | None) -> Run | None:
        """The run as the turn left it, or as it was last stored."""
        if run_id is None:
            return None
        if run_id not in self.runs:
            whole = self.happened.whole
            ended = next((each for each in whole.finished_runs if each.id == run_id), None)
            live = whole.queue.runs.get(run_id)
            known = live or ended
            self.runs[run_id] = known or runs.run(self.session, self.happened.ref.id, run_id)
        return self.runs[run_id]

"""Choose the runs that confirm a failure sooner than a new test would: witnesses and second looks.

See docs/design/testing.md 11. When one that failed leaves the line, everything that runs on top of
it restarts without it. Of these runs the one that ends first goes on in a spare slot: a *witness*.
A *second look* tests an entry that will probably fail twice at the same time.
"""

from collections.abc import Iterable, Iterator

from service.mergequeue.engine.model import Entry, Run
from service.mergequeue.engine.policy import constants, durations, suspecting
from service.mergequeue.engine.state import slots
from service.mergequeue.engine.state.draft import Draft
from service.mergequeue.engine.states import EntryState, RunKind, RunPhase, RunStatus

_SCREENS = frozenset({RunKind.SCREEN})


def witnesses(draft: Draft, restarting: Iterable[Run]) -> Iterator[tuple[Run, Run]]:
    """The runs that go on, each with the failed run of its suspect.

    A run that contains two suspects is not taken, because its result would not say which one fails.
    """
    able = [run for run in restarting if _may_go_on(run)]
    waiting = [draft.runs[run_id] for run_id in sorted(draft.unwitnessed)]

    def soonest(run: Run) -> tuple[float, int]:
        return durations.minutes_left(draft, run), run.number

    for run in sorted(able, key=soonest) if waiting else ():
        suspects = [one.id for one in _suspects(draft, run)]
        failed = next((one for one in waiting if [one.entries[0].entry] == suspects), None)
        if failed is not None:
            waiting.remove(failed)
            yield run, failed


def _may_go_on(run: Run) -> bool:
    is_tested = run.status is RunStatus.IN_PROGRESS and run.phase is RunPhase.TESTING
    return run.kind is RunKind.MAIN and is_tested


def _suspects(draft: Draft, run: Run) -> list[Entry]:
    """The suspects in the base of a run that have left the line."""
    believed = suspecting.belief_of(draft)
    entries = map(draft.entry_of, run.base)
    return [
        one
        for one in entries
        if one is not None and one.rank is None and believed.is_suspect(one.id)
    ]


def second_looks(draft: Draft) -> list[Entry]:
    """Return the entries for a second look while they are screened, the likeliest to fail first.

    One that a single failure more would convict needs none. No entry gets one while a failed check
    can run again, if that takes only a part of the time of a second test.
    """
    config = draft.queue.config
    if _share_again(draft) <= constants.SECOND_LOOK_SHARE_MAX:
        return []
    count = slots.unused(draft) - int(config.concurrency * constants.SECOND_LOOK_FREE_MIN)
    if count < 1 or not draft.runs.in_progress(_SCREENS):
        return []
    looked_at = {run.entries for run in draft.runs.of_kind(RunKind.SECOND_LOOK)}
    found: list[tuple[float, Entry]] = []
    for run in draft.runs.of_kind(RunKind.SCREEN):
        entry = draft.entry_of(run.entries[0]) if _is_first(run) and run.repeats is None else None
        if entry is None or entry.run != run.id:
            continue
        chance = suspecting.failing(draft, entry)
        if chance < constants.SECOND_LOOK_CHANCE_MIN or run.entries in looked_at:
            continue
        if not suspecting.is_convicted(draft, entry, more=1):
            found.append((chance, entry))
    found.sort(key=lambda pair: -pair[0])
    return [entry for _, entry in found[:count]]


def _share_again(draft: Draft) -> float:
    """Return the part of a test's time that a failed check probably takes when it runs again.

    1 if it cannot, or if it is not known how long each required check takes.
    """
    since, required = draft.queue.reruns_from, draft.queue.required
    if since is None or draft.now < since or required is None:
        return 1.0
    known = draft.queue.rates.minutes
    taken = [known.get(one.name, 0.0) for one in required.names]
    return sum(taken) / len(taken) / max(taken) if taken and min(taken) > 0 else 1.0


def _is_first(run: Run) -> bool:
    is_alone = run.kind is RunKind.SCREEN and len(run.entries) == 1
    return is_alone and run.status is RunStatus.IN_PROGRESS


def may_be_wanted(draft: Draft, entry: Entry) -> bool:
    """Return whether a second look at an entry may still count."""
    if entry.state is EntryState.PENDING:
        return bool(suspecting.belief_of(draft).failures_alone(entry.id))
    run = draft.runs.get(entry.run or "")
    return run is not None and _is_first(run)

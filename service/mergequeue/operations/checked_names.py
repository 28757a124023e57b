"""The required checks of a run with their evidence, for texts, pages, answers and statements."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from service.database.database import Tx
from service.mergequeue.engine import checked
from service.mergequeue.engine.checked import CheckedName
from service.mergequeue.engine.model import Run
from service.mergequeue.engine.outputs import EntryMoved, Recorded
from service.mergequeue.engine.states import EntryState
from service.mergequeue.operations.run_failures import RunFailures
from service.mergequeue.store import runs
from service.mergequeue.wording.situation import Tables
from service.runtime import Runtime
from service.vocabulary import QueueRef

Table = tuple[CheckedName, ...]

NO_RUNS: Mapping[str, Run] = MappingProxyType({})


async def table_of(runtime: Runtime, queue: QueueRef, run: Run | None) -> Table:
    """Return the table of a run, live or ended; empty without one.

    Only the table of a reused result or of an excused check needs the database.
    """
    if run is None:
        return ()
    if run.reused_from is None and not run.excused:
        return checked.checked_of(run)
    return await runtime.store.read(read_table, runtime, queue, run)


def tables_in(
    session: Tx,
    queue: QueueRef,
    history: Iterable[Recorded],
    live: Mapping[str, Run] = NO_RUNS,
) -> Tables:
    """Return the tables of the runs by which a submission passed, by the id of the run.

    For texts about its past, which name no tests and no run whose result was reused. `live` are
    runs that need not be read.
    """
    passed = dict.fromkeys(
        each.event.detail.run
        for each in history
        if isinstance(each.event, EntryMoved) and each.event.state is EntryState.TESTS_PASSED
    )
    ids = [each for each in passed if each is not None]
    known = [live[each] for each in ids if each in live]
    unknown = [each for each in ids if each not in live]
    if unknown:
        known += runs.runs_of(session, queue.id, unknown)
    return {run.id: checked.checked_of(run) for run in known}


def read_table(session: Tx, runtime: Runtime, queue: QueueRef, run: Run | None) -> Table:
    """Return the same inside a transaction."""
    if run is None:
        return ()
    origin = None if run.reused_from is None else runs.run(session, queue.id, run.reused_from)
    failed = {} if run.evidence is None else run.evidence.failed_tests
    ids = [each for name in run.excused for each in failed.get(name, ())]
    names = runtime.links.of(RunFailures).names_of(session, queue, ids) if ids else {}
    return checked.checked_of(run, origin, names)

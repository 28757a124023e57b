"""One test as its page shows it: how it is and why, its last runs, what was said of it."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from service.accounts.tenants import RepositoryRecord
from service.database.database import Tx
from service.runtime import Runtime
from service.testhealth.detector import figures
from service.testhealth.operations import lists, notices, records
from service.testhealth.operations.all_tests import RUNS_MAX, letters_of
from service.testhealth.operations.notices import QuarantineLarge
from service.testhealth.operations.records import RepositoryAddresses
from service.testhealth.store import all_tests, history, quarantine, states
from service.testhealth.store import runs as test_runs
from service.testhealth.store.all_tests import Hit
from service.testhealth.store.days import Span
from service.testhealth.store.history import CaseDay
from service.testhealth.store.listings import ListedCase
from service.testhealth.store.quarantine import StoredOverride
from service.testhealth.store.runs import CaseRun
from service.testhealth.store.sets import OutcomeSets
from service.testhealth.store.states import CaseState, ChangeKind, StateChange
from service.vocabulary import ActorKind, Override

CHANGES_MAX = 50
"""Changes in the timeline, the newest ones."""


class Mark(StrEnum):
    """The subjects of a line of the timeline."""

    STATUS = "status"
    CORRECTION = "correction"
    FLAG = "flag"
    FLAG_REMOVED = "flag removed"
    QUARANTINE = "quarantine"


class Change(NamedTuple):
    """A line of a test's timeline; `by` is empty when evidence alone, or time, brought it about.

    `before` is empty where it does not matter; `until` belongs to overrides that end.
    """

    at: datetime
    mark: Mark
    before: str
    after: str
    reason: str
    by: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class PageOfTest:
    """Everything on a test's page.

    `test` has the figures, and the failures of the last 168 hours. `override` None: nothing that
    people said is in force. `state` None: nobody has judged it yet. `runs`, `changes` and `hits`
    are newest first, `days` oldest first.
    """

    repository: RepositoryRecord
    test: ListedCase
    last_run_at: datetime
    override: StoredOverride | None
    expires_soon: bool
    state: CaseState | None
    runs: tuple[CaseRun, ...]
    days: tuple[CaseDay, ...]
    variants: tuple[ListedCase, ...]
    hits: tuple[Hit, ...]
    changes: tuple[Change, ...]
    large: QuarantineLarge | None
    now: datetime

    @property
    def letters(self) -> str:
        """The runs as letters, newest first."""
        return letters_of(self.runs)


async def read(runtime: Runtime, where: RepositoryAddresses, test_id: str) -> PageOfTest:
    """The page of the test with this id, or with this other id of it.

    Raises NotFound(test_not_found).
    """
    now, repository = runtime.clock.now(), where.repository

    def find(session: Tx) -> PageOfTest:
        context = records.context_of(session, runtime, repository, now)
        case = records.find_case(session, repository, test_id)
        sets, here = runtime.store.caches.of(OutcomeSets), repository.id
        span = Span(now - figures.WEEK, now)
        (test,) = lists.with_figures(session, context, [case.no], span)
        stands = records.override_of(context, test) is not Override.UNSPECIFIED
        return PageOfTest(
            repository=repository,
            test=test,
            last_run_at=records.last_run(session, context, case),
            override=quarantine.override_of(session, here, case.no) if stands else None,
            expires_soon=stands and notices.expires_soon(context, test),
            state=states.state(session, here, case.no),
            runs=tuple(test_runs.newest(session, sets, here, [case.no], RUNS_MAX)[case.no]),
            days=history.days_of(session, sets, here, case.no, now),
            variants=tuple(all_tests.variants(session, here, case.no)),
            hits=tuple(all_tests.hits(session, here, case.no)),
            changes=_changes(session, here, case.no),
            large=notices.quarantine_large(session, context),
            now=now,
        )

    return await runtime.store.read(find)


def _changes(session: Tx, repository_id: int, no: int) -> tuple[Change, ...]:
    judged = states.recent(session, repository_id, no, CHANGES_MAX)
    said = quarantine.recent_overrides(session, repository_id, no, CHANGES_MAX)
    both = [*map(_of_state, judged), *map(_of_override, said)]
    return tuple(sorted(both, key=lambda each: each.at, reverse=True)[:CHANGES_MAX])


_MARKS = {
    ChangeKind.CHANGED: Mark.STATUS,
    ChangeKind.CORRECTED: Mark.CORRECTION,
    ChangeKind.FLAGGED: Mark.FLAG,
    ChangeKind.UNFLAGGED: Mark.FLAG_REMOVED,
}


def _of_state(change: StateChange) -> Change:
    by = "" if change.actor_kind is ActorKind.SYSTEM else change.actor_login
    before, after = change.previous.value, change.value.value
    # A flag that agrees with the status leaves its time as it is.
    is_flag = change.kind in (ChangeKind.FLAGGED, ChangeKind.UNFLAGGED)
    at = change.written_at if is_flag else change.at
    return Change(at, _MARKS[change.kind], before, after, change.reason, by)


def _of_override(said: StoredOverride) -> Change:
    by = "" if said.actor_kind is ActorKind.SYSTEM else said.actor_login
    after = said.override.value
    return Change(said.at, Mark.QUARANTINE, "", after, said.reason, by, said.expires_at)

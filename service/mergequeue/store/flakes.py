"""Read which failed test runs turned out to be flakes, and how long pull requests waited for that.

The proof is in the queue's own records: the same tree failed and then passed, or known flaky tests
failed on a commit that then passed. See docs/design/test-costs.md 4.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

import orjson
from sqlalchemy import Connection, bindparam, select

from service.database.codec import Raw
from service.mergequeue.engine.reasons import Cause
from service.mergequeue.engine.states import RunKind, RunStatus
from service.mergequeue.store.outcomes import OUTSIDE
from service.mergequeue.store.rows import TESTED, members, queues, runs
from service.vocabulary import Sha

LOOK_BACK = timedelta(days=2)
"""A run that passed in a span began, and the one that it contradicts, so long before at most."""


class Flaked(NamedTuple):
    """Tests of a commit failed, and turned out to be flaky when a run passed at `until`.

    `waits` are how long each pull request of both runs waited from the failure to the pass. Time
    in which it waited for an earlier pass as well is no wait of this one.
    """

    sha: Sha
    until: datetime
    waits: tuple[timedelta, ...]


class _Ended(NamedTuple):
    id: str
    queue_id: int
    status: str
    cause: str | None
    sha: str | None
    steps: str
    is_flaky: bool
    rerun_at: datetime | None
    finished_at: datetime

    @property
    def tree(self) -> str | None:
        """The tree that it tested, None before it was built."""
        steps = orjson.loads(self.steps)
        return steps[-1]["tree"] if steps else None

    @property
    def is_test(self) -> bool:
        """Return whether its failure is of the tests, and not of CI or the target."""
        return self.cause is None or Cause(self.cause) not in OUTSIDE


_ENDED = (
    select(*(runs.c[name] for name in _Ended._fields))
    .where(
        runs.c.queue_id.in_(
            select(queues.c.id).where(queues.c.repository_id == bindparam("of_repository"))
        ),
        runs.c.created_at >= bindparam("since", type_=runs.c.created_at.type),
        runs.c.finished_at < bindparam("until", type_=runs.c.created_at.type),
        runs.c.status.in_([RunStatus.SUCCEEDED.value, RunStatus.FAILED.value]),
        runs.c.kind.not_in([RunKind.DIRECT.value, RunKind.TRY.value]),
        runs.c.contained.is_(False),
        runs.c.reused_from.is_(None),
    )
    .order_by(runs.c.finished_at, runs.c.no)
)
_MEMBERS = select(members.c.run_id, members.c.pr).where(
    members.c.run_id.in_(bindparam("of_runs", expanding=True)), members.c.role == TESTED
)


def flaked(
    session: Connection, repository_id: int, since: datetime, until: datetime
) -> tuple[Flaked, ...]:
    """Return the flakes that a pass in `[since, until)` proved, the first pass first."""
    asked = {"of_repository": repository_id, "since": since - LOOK_BACK, "until": until}
    ended = [_Ended(*row) for row in session.execute(_ENDED, asked)]
    pairs = _contradictions(ended)
    prs = _prs_of(session, [run.id for pair in pairs for run in pair])
    waited: defaultdict[int, _Waited] = defaultdict(_Waited)
    found = []
    for failed, passed in pairs:
        begun = passed.rerun_at if failed is passed else failed.finished_at
        if begun is None or failed.sha is None:
            continue
        both = sorted(prs[failed.id] & prs[passed.id])
        waits = tuple(waited[pr].add(begun, passed.finished_at) for pr in both)
        if passed.finished_at >= since:
            found.append(Flaked(Sha(failed.sha), passed.finished_at, waits))
    return tuple(found)


@dataclass
class _Waited:
    """The times in which one pull request has waited, apart from each other."""

    times: list[tuple[datetime, datetime]] = field(default_factory=list)

    def add(self, begun: datetime, until: datetime) -> timedelta:
        """Add a wait that ends after all others, and return what is new of it."""
        overlapping = [(start, end) for start, end in self.times if end > begun]
        known = sum((end - max(start, begun) for start, end in overlapping), timedelta())
        apart = [time for time in self.times if time not in overlapping]
        first = min((begun, *(start for start, _ in overlapping)))
        self.times = [*apart, (first, until)]
        return until - begun - known


def _contradictions(ended: Sequence[_Ended]) -> list[tuple[_Ended, _Ended]]:
    """Return failed runs with the first run that passed on the same tree afterwards.

    A run that passed on the same commit after known flaky tests had failed stands for both.
    """
    open_: defaultdict[tuple[int, str], list[_Ended]] = defaultdict(list)
    pairs: list[tuple[_Ended, _Ended]] = []
    for run in ended:
        tree = run.tree
        if tree is None:
            continue
        here = (run.queue_id, tree)
        if run.status == RunStatus.FAILED.value:
            if run.is_test:
                open_[here].append(run)
            continue
        pairs += ((failed, run) for failed in open_.pop(here, ()))
        if run.is_flaky:
            pairs.append((run, run))
    return pairs


def _prs_of(session: Connection, run_ids: Sequence[str]) -> defaultdict[str, set[int]]:
    found: defaultdict[str, set[int]] = defaultdict(set)
    rows: Sequence[Raw] = (
        session.execute(_MEMBERS, {"of_runs": sorted(set(run_ids))}).all() if run_ids else ()
    )
    for run_id, pr in rows:
        found[run_id].add(pr)
    return found

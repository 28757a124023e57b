"""A CI run of a fork in place of a token (docs/design/security.md 1).

A fork's CI has no secrets, so its run names itself. It may change only the pull request that it
tests: head repository, head branch and head commit must be those of the run. A pull request of
the repository itself is never changed this way, whatever commit it shares with a fork.

Stored data is compared first. The provider is asked within the share of its rate limit
that callers without a token have, and a refused run is remembered for a minute.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NoReturn

from cachetools import LRUCache

from service.accounts.access import AccessVersion
from service.accounts.store import access as stored_access
from service.accounts.tenants import RepositoryRecord
from service.errors import NotAllowed, Unauthenticated
from service.http import callers
from service.http.callers import Caller
from service.mergequeue.engine.config import Mode
from service.mergequeue.operations import turn
from service.mergequeue.store import pull_requests as known_pulls
from service.mergequeue.store import queues
from service.provider.ci import CiRun, PullRequestSource
from service.runtime import Runtime
from service.vocabulary import RepoRef, Role, Sha

REFUSED = (
    "CI run {run} was not accepted in place of an x-api-token. It must be a run of this repository"
    " that runs now, for a pull request of a fork; pr.number and pr.sha must be those of this pull"
    " request; and its target branch must have a queue in PARALLEL mode. Send them as the event"
    " that began the run gives them, or send a token."
)
"""One text for every reason, because the caller is unknown until the run is proved."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The request of a caller without a token: a pull request's head, and the queue's branch."""

    repo: RepoRef
    branch: str
    number: int
    head: Sha


class RefusedRuns:
    """CI runs that were refused as a credential a short time ago.

    Kept for a minute, so that repeating one asks the provider once; a run may start again.
    """

    KEPT = timedelta(minutes=1)
    KEYS_MAX = 10_000

    def __init__(self) -> None:
        self._refused: LRUCache[tuple[int, str], datetime] = LRUCache(self.KEYS_MAX)

    def holds(self, repository_id: int, run_id: str, now: datetime) -> bool:
        """Return whether the run was refused within the last minute."""
        at = self._refused.get((repository_id, run_id))
        return at is not None and now - at < self.KEPT

    def put(self, repository_id: int, run_id: str, now: datetime) -> None:
        """Remember a refused run."""
        self._refused[repository_id, run_id] = now


async def caller_of(runtime: Runtime, run_id: str, claim: Claim) -> Caller:
    """Return the caller for a fork's CI run: role `ci` in this repository only.

    Raises Unauthenticated while the run is not proved, NotAllowed(not_own_pull_request) when it
    is proved and the pull request is another's, Throttled and the provider's other errors.
    """
    runtime.memory.of(AccessVersion).newest = await runtime.store.access_version()
    record = await runtime.store.read(stored_access.repository_by_ref, None, claim.repo)
    if record is None or claim.repo.host not in runtime.providers:
        raise Unauthenticated(callers.NO_TOKEN)
    if not await _is_plausible(runtime, record, run_id, claim):
        _refuse(run_id)
    provider = runtime.providers[claim.repo.host]
    run = await provider.claimed_run(record.ref, run_id)
    if run is None or not run.of_fork or not run.is_running:
        runtime.memory.of(RefusedRuns).put(record.id, run_id, runtime.clock.now())
        _refuse(run_id)
    if run.head_sha != claim.head:
        _refuse(run_id)
    _check_own(run, await provider.claimed_source(record.ref, claim.number), claim)
    return Caller(
        token_id="",
        name=f"CI run {run_id}",
        org_id=record.org_id,
        org_slug="",
        host=claim.repo.host,
        role=Role.CI,
        repositories=frozenset({record.id}),
    )


async def _is_plausible(
    runtime: Runtime, record: RepositoryRecord, run_id: str, claim: Claim
) -> bool:
    """Return whether stored data agrees with the claim; makes no request to the provider."""
    if runtime.memory.of(RefusedRuns).holds(record.id, run_id, runtime.clock.now()):
        return False
    queue = await runtime.store.read(queues.queue_ref, record.org_id, record.id, claim.branch)
    if queue is None:
        return False
    value = await turn.value(runtime, queue.id)
    if Mode.PARALLEL not in (value.config.mode, value.target_mode):
        return False
    entry = value.entries.get(claim.number)
    if entry is not None and not entry.facts.is_fork:
        return False
    known = await runtime.store.read(known_pulls.known_head, record.id, claim.number)
    return known is None or known.head == claim.head


def _check_own(run: CiRun, source: PullRequestSource | None, claim: Claim) -> None:
    """Raise NotAllowed unless the pull request is of the run's own fork, branch and commit."""
    is_own = (
        source is not None
        and source.is_fork
        and source.head_repo != ""
        and (source.head_repo, source.head_branch, source.head_sha)
        == (run.head_repo, run.head_branch, run.head_sha)
    )
    if not is_own:
        raise NotAllowed(
            f"CI run {run.id} tests the fork's branch {run.head_branch} at {run.head_sha[:8]}, and"
            f" pull request #{claim.number} does not come from there. A fork's run sets the"
            " impacted targets of its own pull request alone: send the number that the event of"
            " the run gives, or a token.",
            code="not_own_pull_request",
        )


def _refuse(run_id: str) -> NoReturn:
    raise Unauthenticated(REFUSED.format(run=run_id))

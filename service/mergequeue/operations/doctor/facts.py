"""Everything the audits of this package look at, read once."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from service.accounts.store import audit
from service.accounts.store.audit import AuditEntry
from service.accounts.tenants import RepositoryRecord
from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.operations import (
    naming,
    repository_file,
    repository_files,
    requirements,
    turn,
    vehicles,
)
from service.mergequeue.operations.requirements import Resolved
from service.mergequeue.operations.run_failures import RunFailures
from service.mergequeue.store import audited, queues, restored, runs
from service.provenance import Proof
from service.provider import audits
from service.provider.port import Provider
from service.provider.values import Vehicle, VehicleAdvice
from service.runtime import Runtime
from service.vocabulary import Check, CheckOutcome, RepoRef, RequiredName, Sha

COMMITS_MAX = 5
"""Test branches, and heads of pull requests, whose reports are looked at."""
LANDINGS_OF = timedelta(days=14)


@dataclass(frozen=True, slots=True)
class Reports:
    """The reports on some commits of a kind; `commits` counts those that are readable."""

    commits: int
    checks: tuple[Check, ...]

    def lacks(self, required: RequiredName) -> bool:
        """Return whether no commit has a report that satisfies a requirement."""
        return not any(audits.is_report_of(required, check) for check in self.checks)

    def skips(self, required: RequiredName) -> bool:
        """Return whether every report that satisfies a requirement says that it was skipped."""
        own = [check for check in self.checks if audits.is_report_of(required, check)]
        return bool(own) and all(check.outcome is CheckOutcome.SKIPPED for check in own)

    def names(self) -> str:
        """Return the names that were reported, as text."""
        names = sorted({f"`{check.name}`" for check in self.checks if check.name})
        return ", ".join(names) or "nothing"


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """A branch and its queue, None while there is none.

    `on_tests`, `on_pulls`, `on_target`: reports on the newest test branches, on the heads of open
    pull requests, and on the target's tip. `leftovers`: branches under our prefix of no run.
    `excuse_proof`: what must prove a report that excuses a failed check. `restored`: what the audit
    log says of restored backups.
    """

    repo: RepoRef
    branch: str
    now: datetime
    queue: MergeQueue | None
    config: QueueConfig
    vehicle: Vehicle
    advice: VehicleAdvice
    resolved: Resolved
    on_tests: Reports
    on_pulls: Reports
    on_target: Reports
    leftovers: tuple[str, ...]
    excuse_proof: Proof
    restored: tuple[AuditEntry, ...]

    @property
    def required(self) -> tuple[RequiredName, ...]:
        """The statuses that a run started now must pass."""
        return self.resolved.required.names

    @property
    def ran(self) -> frozenset[str]:
        """The required names that ran on one of the newest test branches."""
        return frozenset(
            one.name
            for one in self.required
            if not self.on_tests.lacks(one) and not self.on_tests.skips(one)
        )

    @property
    def in_file(self) -> Mapping[str, str]:
        """The path of the repository's file that has a setting, by the setting's API name."""
        return in_file(self.queue)

    @property
    def trigger(self) -> str:
        """The trigger by which CI sees test branches."""
        if self.vehicle is Vehicle.PUSH:
            return 'pushes (`on: push: branches: ["headgate/merge/**"]`)'
        return f"draft pull requests (`on: pull_request: branches: [{self.branch}]`)"


def in_file(queue: MergeQueue | None) -> Mapping[str, str]:
    """Return the path of the repository's file that has a setting of a queue, by its API name."""
    file = None if queue is None else queue.file
    names = () if file is None else repository_file.api_names(file.names)
    return {name: repository_file.path_of(name, file) for name in names if file is not None}


@dataclass(frozen=True, slots=True)
class QueueOf:
    """The queue of a branch as far as it is known without asking the provider."""

    value: MergeQueue | None
    config: QueueConfig


async def queue_of(runtime: Runtime, repository: RepositoryRecord, branch: str) -> QueueOf:
    """Return the queue of a branch, or the defaults of a new one."""
    ref = await runtime.store.read(queues.queue_ref, repository.org_id, repository.id, branch)
    value = None if ref is None else await turn.last_value(runtime, ref.id)
    if value is not None and value.deleted:
        value = None
    return QueueOf(value, QueueConfig() if value is None else value.config)


async def resolved_of(
    runtime: Runtime, repository: RepositoryRecord, branch: str, queue: QueueOf
) -> Resolved:
    """Return what a run started now must pass, or a run of a queue that is created now."""
    if queue.value is None:
        override = await repository_files.future_override(runtime, repository, branch)
    else:
        override = requirements.override_of(queue.value)
    return await requirements.resolve(runtime, repository.ref, branch, override, queue.value)


async def read_facts(
    runtime: Runtime, repository: RepositoryRecord, branch: str, tip: Sha, queue: QueueOf
) -> QueueFacts:
    """Read everything. Raises the provider's errors."""
    provider, repo = runtime.providers[repository.ref.host], repository.ref
    advice = await provider.vehicle_advice(repo, branch, tip)
    drafts = queue.config.create_prs_for_testing_branches
    if queue.value is None:
        drafts = vehicles.choice_of(advice, None).wants_drafts
    present = await provider.vehicles(repo)
    recorded = await runtime.store.read(runs.recorded_branches, repository.id)
    subject = f"{repo.host}/{repo.slug}@{branch}"
    ours = {one.sha for one in present}
    opened = await provider.open_pull_requests(repo, branch)
    heads = [one.head for one in opened if one.head not in ours]
    tested: tuple[Sha, ...] = ()
    if queue.value is not None:
        tested = await runtime.store.read(audited.tested_commits, queue.value.id, COMMITS_MAX)
    return QueueFacts(
        repo=repo,
        branch=branch,
        now=runtime.clock.now(),
        queue=queue.value,
        config=queue.config,
        vehicle=Vehicle.DRAFT_PR if drafts else Vehicle.PUSH,
        advice=advice,
        resolved=await resolved_of(runtime, repository, branch, queue),
        on_tests=await _reports(provider, repo, tested),
        on_pulls=await _reports(provider, repo, tuple(heads[-COMMITS_MAX:])),
        on_target=await _reports(provider, repo, (tip,)),
        leftovers=tuple(
            one.branch
            for one in present
            if one.branch not in recorded and naming.end_of_dry_test(one.branch) is None
        ),
        excuse_proof=await runtime.store.read(
            runtime.links.of(RunFailures).excuse_proof, repository.id
        ),
        restored=await runtime.store.read(
            audit.of_subject, repository.org_id, restored.ACTION, subject
        ),
    )


async def _reports(provider: Provider, repo: RepoRef, commits: tuple[Sha, ...]) -> Reports:
    """Read the reports on commits; one that is gone, or has more than we read, is left out."""
    checks: list[Check] = []
    count = 0
    for sha in commits:
        found = await provider.checks(repo, sha, skipped_pass=True)
        if found.complete:
            count += 1
            checks += found.items
    return Reports(count, tuple(checks))


async def busiest_hour(runtime: Runtime, repository: RepositoryRecord) -> int:
    """Return how many pull requests of the organization landed in its busiest hour."""
    since = runtime.clock.now() - LANDINGS_OF
    landed = await runtime.store.read(audited.landed_at, repository.org_id, since)
    hours = Counter(at.replace(minute=0, second=0, microsecond=0) for at in landed)
    return max(hours.values(), default=0)

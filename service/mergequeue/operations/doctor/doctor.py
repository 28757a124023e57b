"""Examine one branch: read everything, run every audit, order the findings."""

from dataclasses import dataclass

from service.accounts.tenants import RepositoryRecord
from service.errors import NotFound
from service.mergequeue.operations.doctor import checks, facts, queue
from service.mergequeue.operations.doctor.facts import QueueFacts, QueueOf
from service.mergequeue.store import queues
from service.provider import audits
from service.provider.audits import Audit, AuditSubject, Finding
from service.provider.errors import ProviderError
from service.provider.values import Vehicle
from service.runtime import Runtime
from service.troubles import Part
from service.vocabulary import Sha

AUDITS: tuple[Audit[QueueFacts], ...] = (
    queue.queue_state,
    queue.repository_file,
    checks.required_statuses,
    queue.vehicle_kind,
    checks.checks_on_test_branches,
    checks.checks_on_pull_requests,
    checks.checks_of_heads,
    checks.checks_on_target,
    checks.proof_of_reports,
    queue.leftover_branches,
    queue.restored_backup,
)


@dataclass(frozen=True, slots=True)
class Examination:
    """The findings about one branch, the worst first."""

    branch: str
    findings: tuple[Finding, ...]


async def examine(
    runtime: Runtime, repository: RepositoryRecord, branch: str | None
) -> Examination:
    """Run every audit for a branch; None: the only one with a queue, else the default branch.

    Everything is read afresh, and nothing is changed. Raises NotFound(branch_not_found).
    """
    named = branch or await _branch_of(runtime, repository)
    provider, repo = runtime.providers[repository.ref.host], repository.ref
    await provider.forget_rules(repo)
    queue_of = await facts.queue_of(runtime, repository, named)
    tip: Sha | None = None
    read: QueueFacts | None = None
    unread = ""
    try:
        commit = await provider.tip(repo, named)
        if commit is None:
            words = f'{repo.slug} has no branch "{named}".'
            raise NotFound(words, code="branch_not_found")
        tip = commit.sha
        read = await facts.read_facts(runtime, repository, named, tip, queue_of)
    except ProviderError as failed:
        # The provider's own audits say what cannot be read, and why, unless it is away for them.
        known = runtime.troubles.of_part(Part.PROVIDER)
        unread = failed.message if any(one.host == repo.host for one in known) else ""
    known = runtime.troubles.of(repo.host, repo.owner)
    found = queue.service.findings(queue.ServiceFacts(known, runtime.clock.now(), unread))
    if unread:
        return Examination(named, audits.ordered(found))
    found += [] if read is None else [one for each in AUDITS for one in each.findings(read)]
    subject = await _subject(runtime, repository, named, queue_of, (tip, read))
    found += await provider.audit(subject)
    return Examination(named, audits.ordered(found))


async def _branch_of(runtime: Runtime, repository: RepositoryRecord) -> str:
    there = await runtime.store.read(queues.queues_of, repository.id)
    return there[0].branch if len(there) == 1 else repository.default_branch


async def _subject(
    runtime: Runtime,
    repository: RepositoryRecord,
    branch: str,
    queue_of: QueueOf,
    known: tuple[Sha | None, QueueFacts | None],
) -> AuditSubject:
    tip, read = known
    has_drafts = queue_of.config.create_prs_for_testing_branches
    planned = Vehicle.DRAFT_PR if has_drafts else Vehicle.PUSH
    return AuditSubject(
        repo=repository.ref,
        branch=branch,
        tip=tip,
        vehicle=planned if read is None else read.vehicle,
        merge_method=queue_of.config.merge_method,
        required=() if read is None else read.required,
        webhook_url=runtime.options.public_url,
        landings_hour_max=await facts.busiest_hour(runtime, repository),
        in_file=facts.in_file(queue_of.value),
        ran=frozenset() if read is None else read.ran,
        optional=frozenset(queue_of.config.optional_statuses),
    )

"""Classify uploads: whose results they have, and so what they may change.

Whenever the provider knows the CI run, the run decides branch, commit, attempt and pull request;
a claim that differs is replaced, with a warning. An OIDC token proves the run itself: GitHub's,
and that of another CI whose project a setting binds to the repository. A claim of a stable branch
that nothing proves is not stable (docs/design/reports.md 2).
"""

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime

from service import globs
from service.accounts.tenants import RepositoryRecord
from service.database.database import Tx
from service.errors import Invalid
from service.http.callers import Caller
from service.provenance import Proof
from service.provider.ci import CiRun, CiTrigger, ProvedJob
from service.provider.errors import Gone, ProviderError
from service.provider.port import Provider
from service.runtime import Runtime
from service.testhealth.operations.queue_links import QueueLinks, TestedRun
from service.testhealth.operations.upload_values import UploadMeta
from service.testhealth.reports import collecting, jobs
from service.testhealth.reports.collecting import Ran
from service.testhealth.reports.jobs import Job, Sent
from service.testhealth.reports.uploads import UploadClass
from service.testhealth.settings import TestSettings
from service.testhealth.store import quarantine, uploads
from service.vocabulary import Role, Sha

ASKED_S = 2
"""Seconds in which the provider can contradict a claim."""

CONTRADICTED = (
    "claim_contradicted: {sha} is not on {branch}, so the upload does not count for that branch."
)

CORRECTED = (
    "claim_contradicted: {field} was sent as {claimed}, but CI run {run} has {actual}; the value of"
    " the CI run counts."
)

UNPROVED = (
    "claim_unproved: nothing proves that these results are of {branch}, so they do not count as"
    " its results. On GitHub Actions give the job `permissions: id-token: write`, or send the"
    " run's id; for another CI system use a token of role queue that only its pipelines of"
    " protected branches can read."
)

UNKNOWN_RUN = (
    "run_unknown: CI run {run} may have tested any code, because the event that started it does not"
    " say which; its results are shown and change nothing. Send results from the CI run that runs"
    " the tests."
)

UNSEEN = (
    "claim_unproved: commit {sha} is not seen on branch {branch} of this repository, so the build"
    " may be of a fork that calls its branch alike; its results are shown and change nothing."
)

UNASKED_RUN = (
    "run_unknown: GitHub did not answer in time whether CI run {run} tests a fork, so its results"
    " are shown and change nothing."
)

NAMES_ANOTHER = (
    "/job is {key}, which is the name of another job of CI run {run}. The OIDC token is of the job"
    " {name}: send its name or leave the field out."
)

VOUCHING = (Role.QUEUE, Role.ADMIN)
"""Roles whose tokens vouch for a branch where the provider does not know the run.

Jobs of pull requests hold a token of role `ci`, which therefore proves no branch.
"""


@dataclass(frozen=True, slots=True)
class Doubts:
    """The facts known of an upload beside its own words.

    `trigger` None: the provider does not know the CI run. `of_unknown`: the run may have tested
    anything, a fork's code too. `is_proved`: it may speak for a stable branch. `warnings` are
    about claims that were replaced. `proof`: what shows that it is of the CI run that it names;
    with JOB, `check_run` is the check run of the job that sent it. `begun_by` is the account
    that began the run, empty if unknown. `position` is that of its commit (`position_of`).
    `is_unseen`: of another CI's build, whose commit no branch of that name here is known to
    have; then it is of a test run with this commit, or may be a fork's.
    """

    of_fork: bool = False
    of_unknown: bool = False
    is_off_branch: bool = False
    is_unseen: bool = False
    is_proved: bool = False
    trigger: CiTrigger | None = None
    warnings: tuple[str, ...] = ()
    proof: Proof = Proof.NONE
    check_run: str = ""
    begun_by: str = ""
    position: int | None = None


@dataclass(frozen=True, slots=True)
class Collected:
    """The provider's facts about an upload that we fetched ourselves, so that nobody claims it.

    `tree` is that of a head which CI tested as it stands, None when unknown; `prs` are pull
    requests with this head, those of forks too. `position` is that of the head (`position_of`),
    `begun_by` is the account that began the run, empty if unknown.
    """

    artifact_id: str
    ran: Ran
    tree: Sha | None
    prs: tuple[int, ...]
    position: int | None = None
    begun_by: str = ""


@dataclass(frozen=True, slots=True)
class Classified:
    """An upload's class, the pull requests it tested, and what code.

    `started_at` is when the test run of a queue began, None for uploads of no such run.
    """

    kind: UploadClass
    prs: tuple[int, ...]
    code_id: str
    started_at: datetime | None = None
    warnings: tuple[str, ...] = ()


async def checked(
    runtime: Runtime, caller: Caller, repository: RepositoryRecord, meta: UploadMeta
) -> tuple[UploadMeta, Doubts]:
    """The metadata with the facts of the CI run in place of claims, and what is known of it.

    Raises Invalid(conflicting_fields) when a field contradicts the caller's OIDC token, also if the
    job key names another job of the CI run.
    """
    meta, doubts = await _checked(runtime, caller, repository, meta)
    proof = _proof_of(caller, doubts)
    check_run = caller.job.check_run_id if caller.job and proof is Proof.JOB else ""
    begun_by = caller.job.begun_by if caller.job else doubts.begun_by
    doubts = replace(doubts, proof=proof, check_run=check_run, begun_by=begun_by)
    provider = runtime.providers.get(repository.ref.host)
    is_own = caller.job is not None and not caller.job.is_of_other_ci
    if provider is not None and check_run and is_own:
        await _check_job_key(Look(runtime, provider, repository), meta, check_run)
    if doubts.of_fork or doubts.of_unknown or doubts.is_unseen or provider is None:
        return meta, doubts
    try:
        async with asyncio.timeout(ASKED_S):
            position = await position_of(Look(runtime, provider, repository), meta.branch, meta.sha)
            return meta, replace(doubts, position=position)
    except (ProviderError, TimeoutError):
        return meta, doubts


def _proof_of(caller: Caller, doubts: Doubts) -> Proof:
    """Return what proves an upload.

    Who holds a token can name any run and any job, so a known run adds nothing to a token.
    """
    job = caller.job
    if job is not None and job.trigger is not CiTrigger.UNKNOWN:
        return Proof.JOB if job.check_run_id else Proof.RUN
    return Proof.TOKEN if doubts.is_proved or caller.role in VOUCHING else Proof.NONE


async def _checked(
    runtime: Runtime, caller: Caller, repository: RepositoryRecord, meta: UploadMeta
) -> tuple[UploadMeta, Doubts]:
    job = caller.job
    if job is None and not caller.token_id:
        return meta, Doubts(of_fork=True)
    if job is not None and job.is_of_other_ci:
        return await _of_other_ci(runtime, repository, meta, job)
    unasked = Doubts(is_proved=caller.role in VOUCHING)
    if job is not None and meta.run_id is None:
        meta = replace(meta, run_id=job.run_id)
    if job is not None and job.trigger is CiTrigger.UNKNOWN and meta.run_id == job.run_id:
        return meta, Doubts(of_unknown=True, trigger=job.trigger)
    if job is not None and job.trigger is not CiTrigger.UNKNOWN:
        _check_claims(meta, job)
        meta = _with_job(meta, job)
        if job.trigger is CiTrigger.HEAD:
            return meta, Doubts(is_proved=True, trigger=job.trigger)
        # The token says which run this is, but not whether a fork's code runs in it.
        said = UNASKED_RUN.format(run=meta.run_id)
        unasked = Doubts(of_fork=True, trigger=job.trigger, warnings=(said,))
    provider = runtime.providers.get(repository.ref.host)
    if provider is None:
        return meta, unasked
    look = Look(runtime, provider, repository)
    try:
        async with asyncio.timeout(ASKED_S):
            run = await _run_of(look, meta)
            checked = (meta, unasked) if run is None else await _by_run(look, meta, run)
            return await _on_branch(look, *checked)
    except (ProviderError, TimeoutError):
        return meta, unasked


async def _of_other_ci(
    runtime: Runtime, repository: RepositoryRecord, meta: UploadMeta, job: ProvedJob
) -> tuple[UploadMeta, Doubts]:
    """Return what a job of another CI system proves: its build, itself, branch and commit.

    Its build may be of a fork that calls its branch like one of ours. So it speaks for a branch,
    and for the pull request of that branch, only with a commit that the branch here has.
    """
    claimed = meta.pr_number
    meta = replace(meta, run_id=job.run_id, pr_number=None)
    _check_claims(meta, job)
    meta = _with_job(meta, job)
    unseen = Doubts(is_unseen=True, trigger=job.trigger)
    provider = runtime.providers.get(repository.ref.host)
    if provider is None:
        return meta, unseen
    look = Look(runtime, provider, repository)
    try:
        async with asyncio.timeout(ASKED_S):
            if not await _is_on_own_branch(look, meta):
                return meta, unseen
            if claimed is not None and await _is_of_branch(look, claimed, job.branch):
                meta = replace(meta, pr_number=claimed)
            return meta, Doubts(is_proved=True, trigger=job.trigger)
    except (ProviderError, TimeoutError):
        return meta, unseen


@dataclass(frozen=True, slots=True)
class Look:
    """The places where the facts of one upload are looked up."""

    runtime: Runtime
    provider: Provider
    repository: RepositoryRecord


async def _run_of(look: Look, meta: UploadMeta) -> CiRun | None:
    if meta.run_id is None or not (meta.run_id.isascii() and meta.run_id.isdigit()):
        return None
    return await look.provider.ci_run(look.repository.ref, meta.run_id)


async def _by_run(look: Look, meta: UploadMeta, run: CiRun) -> tuple[UploadMeta, Doubts]:
    """Return what the provider's run says, which counts where a claim differs."""
    if run.of_fork or run.trigger is CiTrigger.UNKNOWN:
        # Whatever commit is named: a job that knows no event names the merge that it checked out.
        return meta, Doubts(of_fork=run.of_fork, of_unknown=not run.of_fork, trigger=run.trigger)
    actual = replace(
        meta,
        sha=run.head_sha,
        branch=run.head_branch or None,
        run_attempt=min(meta.run_attempt, run.attempt),
        pr_number=await _pull_request_of(look, meta, run),
    )
    warnings = tuple(
        CORRECTED.format(field=field, claimed=claimed, run=run.id, actual=now)
        for field, claimed, now in (
            ("sha", meta.sha, actual.sha),
            ("branch", meta.branch, actual.branch or "no branch"),
            ("run_attempt", meta.run_attempt, actual.run_attempt),
            ("pr_number", meta.pr_number, actual.pr_number or "another pull request or none"),
        )
        if claimed not in (None, now)
    )
    return actual, Doubts(
        is_proved=True, trigger=run.trigger, warnings=warnings, begun_by=run.begun_by
    )


async def _pull_request_of(look: Look, meta: UploadMeta, run: CiRun) -> int | None:
    """The pull request that the run tests; the claimed one if it has the run's head or branch."""
    here = look.repository
    queues = look.runtime.links.of(QueueLinks)
    seen = await look.runtime.store.read(queues.pull_requests_at, here.id, run.head_sha)
    numbers = {*run.pull_requests, *seen}
    claimed = meta.pr_number
    if claimed in numbers:
        return claimed
    if claimed is not None and await _is_of_branch(look, claimed, run.head_branch):
        return claimed
    is_of_pull = run.trigger is CiTrigger.PULL_REQUEST
    return numbers.pop() if is_of_pull and len(numbers) == 1 else None


async def _is_of_branch(look: Look, number: int, branch: str) -> bool:
    """Return whether the pull request has this branch: a newer push may have moved its head on."""
    try:
        pull = await look.provider.pull_request(
            look.repository.ref, number, awaits_mergeability=False
        )
    except Gone:
        return False
    return pull.head_branch == branch and not pull.is_fork


async def _is_on_own_branch(look: Look, meta: UploadMeta) -> bool:
    """Return whether the provider shows the commit on the repository's own branch of that name."""
    provider, ref = look.provider, look.repository.ref
    tip = await provider.tip(ref, meta.branch) if meta.branch else None
    if tip is None or await provider.commit(ref, meta.sha) is None:
        return False
    return tip.sha == meta.sha or await provider.contains(ref, meta.sha, tip.sha)


async def _on_branch(look: Look, meta: UploadMeta, doubts: Doubts) -> tuple[UploadMeta, Doubts]:
    """The same, with a look whether the commit is on a stable branch that it may speak for."""
    may_speak = doubts.is_proved and doubts.trigger in (None, CiTrigger.HEAD)
    if may_speak and await look.runtime.store.read(_is_stable, look, meta.branch):
        is_off = await _is_off_branch(look.provider, look.repository, meta)
        return meta, replace(doubts, is_off_branch=is_off)
    return meta, doubts


async def position_of(look: Look, branch: str | None, sha: Sha) -> int | None:
    """Return where a commit is on a stable branch; None for other branches, or if unknown.

    The provider is asked once for a commit, so that its other jobs do not wait for that. Raises
    the provider's errors.
    """
    if not await look.runtime.store.read(_is_stable, look, branch):
        return None
    known = await look.runtime.store.read(uploads.position_of, look.repository.id, sha)
    if known is not None:
        return known
    return await look.provider.position(look.repository.ref, sha)


async def _check_job_key(look: Look, meta: UploadMeta, check_run: str) -> None:
    """Raise Invalid if the job key of an upload is that of another job than the one that sent it.

    The provider is asked once for a job. If it does not answer, the key stands; a report is
    compared with the jobs again before it excuses anything.
    """
    run_id, here = meta.run_id or "", look.repository.id
    earlier = await look.runtime.store.read(uploads.of_run, here, run_id, meta.run_attempt)
    if any((each.account.check_run, each.job) == (check_run, meta.job) for each in earlier):
        return
    try:
        async with asyncio.timeout(ASKED_S):
            found = await look.provider.ci_jobs(look.repository.ref, run_id, meta.run_attempt)
    except (ProviderError, TimeoutError):
        return
    ran = [Job(job.id, job.name, job.workflow) for job in found]
    if jobs.named_instead(ran, Sent("", meta.job, check_run=check_run)) is not None:
        name = next(job.name for job in ran if job.id == check_run)
        said = NAMES_ANOTHER.format(key=meta.job, run=run_id, name=name)
        raise Invalid(said, code="conflicting_fields")


def _check_claims(meta: UploadMeta, job: ProvedJob) -> None:
    """Raise Invalid for a field that says something else than the OIDC token."""
    is_head = job.trigger is CiTrigger.HEAD
    facts: tuple[tuple[str, object, object], ...] = (
        ("run_id", meta.run_id, job.run_id),
        ("branch", meta.branch, job.branch or None),
        ("sha", meta.sha if is_head else None, job.sha),
        ("pr_number", meta.pr_number, job.pr_number),
        # 1 is also what a body without the field means.
        ("run_attempt", None if meta.run_attempt == 1 else meta.run_attempt, job.run_attempt),
    )
    for field, sent, proved in facts:
        is_untold = field == "pr_number" and proved is None and not is_head
        if sent is not None and sent != proved and not is_untold:
            raise Invalid(
                f"/{field} is {sent}, and the OIDC token has {proved or 'none'}. Leave the field"
                " out, or upload from the job that tested.",
                code="conflicting_fields",
            )


def _with_job(meta: UploadMeta, job: ProvedJob) -> UploadMeta:
    """The metadata with what the OIDC token proves."""
    return replace(
        meta,
        sha=job.sha if job.trigger is CiTrigger.HEAD else meta.sha,
        branch=job.branch or None,
        run_id=job.run_id,
        run_attempt=job.run_attempt,
        pr_number=job.pr_number or meta.pr_number,
    )


async def _is_off_branch(
    provider: Provider, repository: RepositoryRecord, meta: UploadMeta
) -> bool:
    tip = await provider.tip(repository.ref, meta.branch or "")
    if tip is None or await provider.commit(repository.ref, meta.sha) is None:
        return False
    return not await provider.contains(repository.ref, meta.sha, tip.sha)


def _is_stable(session: Tx, look: Look, branch: str | None) -> bool:
    settings = quarantine.settings_of(session, look.repository.id)
    queues = look.runtime.links.of(QueueLinks)
    return _is_stable_branch(Facts(session, queues, look.repository, settings), branch)


@dataclass(frozen=True, slots=True)
class Facts:
    """The database's facts about a repository in the transaction that classifies an upload."""

    session: Tx
    queues: QueueLinks
    repository: RepositoryRecord
    settings: TestSettings

    def tested_run(self, sha: Sha, branch: str | None) -> TestedRun | None:
        """Return the test run on this commit, else the newest on this test branch."""
        return self.queues.tested_run(self.session, self.repository.id, sha, branch)


def classified(facts: Facts, meta: UploadMeta, source: Doubts | Collected) -> Classified:
    """Return the class of an upload, by what we know ourselves and what the provider says."""
    if isinstance(source, Collected):
        return _of_collected(facts, source)
    return _of_claimed(facts, meta, source)


def _of_collected(facts: Facts, source: Collected) -> Classified:
    ran = source.ran
    run = facts.tested_run(Sha(ran.head_sha), ran.head_branch)
    stable = stable_branches(facts)
    kind = collecting.class_of(ran, stable, is_of_queue=run is not None)
    if run is not None and kind is UploadClass.QUEUE:
        tree = run.tree if run.sha == ran.head_sha and run.tree else source.tree
        return Classified(kind, run.prs, collecting.code_id(ran, tree), run.created_at)
    prs = source.prs if kind in (UploadClass.PR, UploadClass.UNTRUSTED) else ()
    return Classified(kind, prs, collecting.code_id(ran, source.tree))


def _of_claimed(facts: Facts, meta: UploadMeta, doubts: Doubts) -> Classified:
    code = f"tree:{meta.tree_sha}" if meta.tree_sha else f"sha:{meta.sha}"
    prs = () if meta.pr_number is None else (meta.pr_number,)
    if doubts.of_fork:
        return Classified(UploadClass.UNTRUSTED, prs, code, warnings=doubts.warnings)
    if doubts.of_unknown:
        said = UNKNOWN_RUN.format(run=meta.run_id)
        return Classified(UploadClass.UNTRUSTED, prs, code, warnings=(said,))
    run = facts.tested_run(meta.sha, meta.branch)
    if doubts.is_unseen and (run is None or run.sha != meta.sha):
        said = UNSEEN.format(sha=meta.sha, branch=meta.branch or "(none)")
        return Classified(UploadClass.UNTRUSTED, prs, code, warnings=(said,))
    warnings = doubts.warnings
    if run is not None:
        if run.sha == meta.sha and run.tree and not meta.tree_sha:
            code = f"tree:{run.tree}"
        return Classified(UploadClass.QUEUE, run.prs, code, run.created_at, warnings)
    stable = _is_stable_branch(facts, meta.branch)
    is_of_branch = doubts.trigger is CiTrigger.HEAD and stable
    if doubts.trigger is CiTrigger.PULL_REQUEST or (prs and not is_of_branch):
        return Classified(UploadClass.PR, prs, code, warnings=warnings)
    if stable and not doubts.is_proved:
        warnings = (*warnings, UNPROVED.format(branch=meta.branch))
    elif stable and doubts.is_off_branch:
        warnings = (*warnings, CONTRADICTED.format(sha=meta.sha, branch=meta.branch))
    elif stable:
        return Classified(UploadClass.STABLE, (), code, warnings=warnings)
    return Classified(UploadClass.OTHER, (), code, warnings=warnings)


def _is_stable_branch(facts: Facts, branch: str | None) -> bool:
    """Return whether the branch's results describe every test (`stable_branches`)."""
    return branch is not None and globs.any_matches(stable_branches(facts), branch)


def stable_branches(facts: Facts) -> tuple[str, ...]:
    """Return globs of the branches whose results describe every test."""
    if facts.settings.stable_branches is not None:
        return facts.settings.stable_branches
    repository = facts.repository
    return (
        repository.default_branch,
        *facts.queues.queue_branches(facts.session, repository.id),
    )

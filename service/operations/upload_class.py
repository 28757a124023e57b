"""Whose results an upload holds, and so what they may change (FLAKY.md 2.3).

What a token claims counts unless the provider says otherwise; without an answer it counts.
"""

import asyncio
from dataclasses import dataclass
from datetime import datetime

from service.flaky import collecting, globs
from service.flaky.collecting import Ran
from service.flaky.settings import TestSettings
from service.flaky.uploads import UploadClass
from service.operations.upload_values import UploadMeta
from service.operations.views import Caller
from service.provider.ci import CiTrigger
from service.provider.errors import ProviderError
from service.provider.port import Provider
from service.runtime import Runtime
from service.store import runs, test_quarantine, uploads
from service.store.database import Tx
from service.store.records import RepositoryRecord
from service.vocabulary import Sha

ASKED_S = 2
"""Seconds in which the provider can contradict a claim."""

CONTRADICTED = (
    "claim_contradicted: {sha} is not on {branch}; the upload says nothing about that branch."
)

UNKNOWN_RUN = (
    "run_unknown: CI run {run} may have tested anything, as what began it does not tell; its"
    " results are shown and change nothing. Send them from the run that tests."
)


@dataclass(frozen=True, slots=True)
class Doubts:
    """What the provider says against an upload's own words.

    `of_unknown`: the CI run that sends it may have tested anything, a fork's code too.
    """

    of_fork: bool = False
    of_unknown: bool = False
    is_off_branch: bool = False


@dataclass(frozen=True, slots=True)
class Collected:
    """What the provider says of an upload that we fetched ourselves, so that nobody claims it.

    `tree` is that of a head which CI tested as it stands, None when unknown; `prs` are pull
    requests with this head, those of forks too.
    """

    artifact_id: str
    ran: Ran
    tree: Sha | None
    prs: tuple[int, ...]


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


async def doubts_of(
    runtime: Runtime, caller: Caller, repository: RepositoryRecord, meta: UploadMeta
) -> Doubts:
    """Ask the provider; a fork's own CI run was asked about already."""
    if not caller.token_id:
        return Doubts(of_fork=True)
    provider = runtime.providers.get(repository.ref.host)
    if provider is None:
        return Doubts()
    stable = await runtime.store.read(_is_stable, repository, meta)
    try:
        async with asyncio.timeout(ASKED_S):
            of_run = await _doubts_of_run(provider, repository, meta)
            if not stable or of_run != Doubts():
                return of_run
            return Doubts(is_off_branch=await _is_off_branch(provider, repository, meta))
    except (ProviderError, TimeoutError):
        return Doubts()


async def _doubts_of_run(
    provider: Provider, repository: RepositoryRecord, meta: UploadMeta
) -> Doubts:
    if meta.run_id is None or not meta.run_id.isdigit():
        return Doubts()
    run = await provider.ci_run(repository.ref, meta.run_id)
    if run is None:
        return Doubts()
    # Whatever commit is named: a job that knows no event names the merge that it checked out.
    return Doubts(of_fork=run.of_fork, of_unknown=run.trigger is CiTrigger.UNKNOWN)


async def _is_off_branch(
    provider: Provider, repository: RepositoryRecord, meta: UploadMeta
) -> bool:
    tip = await provider.tip(repository.ref, meta.branch or "")
    if tip is None or await provider.commit(repository.ref, meta.sha) is None:
        return False
    return not await provider.contains(repository.ref, meta.sha, tip.sha)


def _is_stable(session: Tx, repository: RepositoryRecord, meta: UploadMeta) -> bool:
    settings = test_quarantine.settings_of(session, repository.id)
    return meta.pr_number is None and is_stable(session, repository, settings, meta.branch)


def classified(
    session: Tx,
    repository: RepositoryRecord,
    settings: TestSettings,
    meta: UploadMeta,
    known: Doubts | Collected,
) -> Classified:
    """The class of an upload by what we know ourselves and what the provider said."""
    if isinstance(known, Collected):
        return _of_collected(session, repository, settings, known)
    return _of_claimed(session, repository, settings, meta, known)


def _of_collected(
    session: Tx, repository: RepositoryRecord, settings: TestSettings, known: Collected
) -> Classified:
    ran = known.ran
    found = uploads.tested_run(session, repository.id, Sha(ran.head_sha), ran.head_branch)
    run = None if found is None else runs.run(session, found.queue_id, found.run_id)
    stable = stable_branches(session, repository, settings)
    kind = collecting.class_of(ran, stable, is_of_queue=run is not None)
    if run is not None and kind is UploadClass.QUEUE:
        is_whole = run.sha == ran.head_sha and run.steps
        tree = run.steps[-1].tree if is_whole else known.tree
        return Classified(kind, run.prs, collecting.code_id(ran, tree), run.created_at)
    prs = known.prs if kind in (UploadClass.PR, UploadClass.UNTRUSTED) else ()
    return Classified(kind, prs, collecting.code_id(ran, known.tree))


def _of_claimed(
    session: Tx,
    repository: RepositoryRecord,
    settings: TestSettings,
    meta: UploadMeta,
    doubts: Doubts,
) -> Classified:
    code = f"tree:{meta.tree_sha}" if meta.tree_sha else f"sha:{meta.sha}"
    prs = () if meta.pr_number is None else (meta.pr_number,)
    if doubts.of_fork:
        return Classified(UploadClass.UNTRUSTED, prs, code)
    if doubts.of_unknown:
        said = UNKNOWN_RUN.format(run=meta.run_id)
        return Classified(UploadClass.UNTRUSTED, prs, code, warnings=(said,))
    found = uploads.tested_run(session, repository.id, meta.sha, meta.branch)
    run = None if found is None else runs.run(session, found.queue_id, found.run_id)
    if run is not None:
        if run.sha == meta.sha and run.steps and not meta.tree_sha:
            code = f"tree:{run.steps[-1].tree}"
        return Classified(UploadClass.QUEUE, run.prs, code, run.created_at)
    if prs:
        return Classified(UploadClass.PR, prs, code)
    if not is_stable(session, repository, settings, meta.branch):
        return Classified(UploadClass.OTHER, (), code)
    if doubts.is_off_branch:
        said = CONTRADICTED.format(sha=meta.sha, branch=meta.branch)
        return Classified(UploadClass.OTHER, (), code, warnings=(said,))
    return Classified(UploadClass.STABLE, (), code)


def is_stable(
    session: Tx, repository: RepositoryRecord, settings: TestSettings, branch: str | None
) -> bool:
    """Whether the branch is one whose state tells of every test (`stable_branches`)."""
    return branch is not None and globs.any_matches(
        stable_branches(session, repository, settings), branch
    )


def stable_branches(
    session: Tx, repository: RepositoryRecord, settings: TestSettings
) -> tuple[str, ...]:
    """Globs of the branches whose state tells of every test."""
    if settings.stable_branches is not None:
        return settings.stable_branches
    return (repository.default_branch, *uploads.queue_branches(session, repository.id))

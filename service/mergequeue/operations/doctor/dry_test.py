"""The dry test: a test branch of the target alone, to see which required checks report on it.

The branch's name says until when it is needed, so that whoever finds it later may remove it: the
sweep of test branches does (docs/design/provider.md 7.5).
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from service.accounts import access as callers
from service.accounts import audit_log
from service.accounts.store import audit
from service.accounts.store.audit import AuditEntry
from service.accounts.tenants import RepositoryRecord
from service.database.database import Tx
from service.errors import Invalid, NotFound
from service.mergequeue.operations import naming, vehicles
from service.mergequeue.operations.doctor import facts
from service.provider import audits
from service.provider.audits import DryTestRequest, Finding
from service.provider.errors import Refused
from service.provider.values import Vehicle
from service.runtime import Runtime
from service.vocabulary import Actor, Check, CheckOutcome, RequiredName, Sha

ID = "dry-test"
LIMIT = timedelta(minutes=15)
"""The time that a dry test waits where nothing else is asked for."""
TITLE = "headgate: dry test of {target}"
MESSAGE = "Headgate dry test of {target}: changes nothing"
BODY = (
    "Opened by `headgate doctor` to see which required checks report on a test branch. It changes "
    "nothing and closes by itself. Do not merge or push."
)
UNFINISHED = frozenset({CheckOutcome.RUNNING, CheckOutcome.BLOCKED})


@dataclass(frozen=True, slots=True)
class Started:
    """A dry test that runs: its branch, its commit, and when it is given up."""

    target: str
    branch: str
    sha: Sha
    until: datetime


@dataclass(frozen=True, slots=True)
class Progress:
    """The reports so far; `is_over`: everything has reported, or the time is up."""

    is_over: bool
    findings: tuple[Finding, ...]


async def start(
    runtime: Runtime, repository: RepositoryRecord, branch: str, limit: timedelta, actor: Actor
) -> Started:
    """Make the test branch as the queue would, and record who asked.

    Raises NotFound(branch_not_found), Invalid(dry_test_refused).
    """
    provider, repo = runtime.providers[repository.ref.host], repository.ref
    tip = await provider.tip(repo, branch)
    if tip is None:
        raise NotFound(f'{repo.slug} has no branch "{branch}".', code="branch_not_found")
    queue = await facts.queue_of(runtime, repository, branch)
    given = None if queue.value is None else queue.config.create_prs_for_testing_branches
    choice = await vehicles.choose(runtime, repo, branch, tip.sha, given)
    now = runtime.clock.now()
    place = f"{repo.host}/{repo.slug}@{branch}"
    row = audit_log.allowed(actor, repository.org_id, "dry_test.start", place, now)
    await runtime.store.run(_record, row)
    until = now + limit
    request = DryTestRequest(
        repo=repo,
        target=branch,
        tip=tip.sha,
        branch=naming.dry_test_branch(until, runtime.ids.uuid()),
        vehicle=Vehicle.DRAFT_PR if choice.wants_drafts else Vehicle.PUSH,
        message=MESSAGE.format(target=branch),
        title=TITLE.format(target=branch),
        body=BODY,
    )
    try:
        made = await provider.start_dry_test(request)
    except Refused as refused:
        words = f"The test branch cannot be made: {refused.message}"
        raise Invalid(words, code="dry_test_refused") from refused
    return Started(branch, made.branch, made.sha, until)


def _record(session: Tx, row: AuditEntry) -> None:
    callers.recheck(session, row.actor, row.at)
    audit.append(session, row)


async def progress(
    runtime: Runtime, repository: RepositoryRecord, target: str, branch: str, sha: Sha
) -> Progress:
    """Return what the required checks have reported on a dry test's commit.

    Raises NotFound(dry_test_not_found) for a branch that is none.
    """
    until = end_of(branch)
    queue = await facts.queue_of(runtime, repository, target)
    repo = repository.ref
    resolved = await facts.resolved_of(runtime, repository, target, queue)
    read = await runtime.providers[repo.host].checks(repo, sha, skipped_pass=True)
    names = resolved.required.names
    is_late = runtime.clock.now() >= until
    states = {name: _state(name, read.items) for name in names}
    is_done = all(state is not None and state not in UNFINISHED for state in states.values())
    found = [_finding(name, state, read.items) for name, state in states.items()]
    if not names:
        found = [audits.warning(NOTHING_REQUIRED, "Require checks first.", audit=ID)]
    return Progress(is_done or is_late, audits.ordered(found))


NOTHING_REQUIRED = "The branch requires no status, so there is nothing to wait for."


async def end(runtime: Runtime, repository: RepositoryRecord, branch: str) -> None:
    """Remove the branch and its draft pull request; absent is done.

    Raises NotFound(dry_test_not_found) for a branch that is none.
    """
    end_of(branch)
    await runtime.providers[repository.ref.host].discard(repository.ref, branch)


def end_of(branch: str) -> datetime:
    """Return when a dry test is given up. Raises NotFound for a branch that is none."""
    until = naming.end_of_dry_test(branch)
    if until is None:
        raise NotFound(f'"{branch}" is not the branch of a dry test.', code="dry_test_not_found")
    return until


def _state(name: RequiredName, checks: tuple[Check, ...]) -> CheckOutcome | None:
    """Return the worst outcome of the reports of a name; None without any."""
    found = {check.outcome for check in checks if audits.is_report_of(name, check)}
    worst = (CheckOutcome.FAILED, *UNFINISHED, CheckOutcome.UNKNOWN, CheckOutcome.INTERRUPTED)
    order = (*worst, CheckOutcome.SKIPPED, CheckOutcome.PASSED)
    return next((one for one in order if one in found), None)


def _finding(name: RequiredName, state: CheckOutcome | None, checks: tuple[Check, ...]) -> Finding:
    words = f"`{name.name}`"
    match state:
        case CheckOutcome.PASSED:
            return audits.fine(f"{words} reported on the test branch and passed.", audit=ID)
        case CheckOutcome.SKIPPED:
            return audits.error(
                f"{words} was skipped on the test branch, which is no evidence.",
                "Change the condition (`if:`) that skips it on test branches. A path filter of its "
                "steps or jobs skips it as well, because a dry test changes no file.",
                audit=ID,
            )
        case CheckOutcome.FAILED:
            return audits.error(
                f"{words} failed on the test branch, which equals the target branch.",
                "Fix the target branch first: every pull request would fail.",
                audit=ID,
            )
        case None:
            seen = ", ".join(sorted({f"`{one.name}`" for one in checks if one.name})) or "nothing"
            return audits.error(
                f"{words} did not report on the test branch. Reported there: {seen}.",
                f"Let the CI that reports {words} also start on test branches: pushes to "
                "`headgate/merge/**`, or draft pull requests. A check behind a path filter does "
                "not report either, because a dry test changes no file.",
                audit=ID,
            )
        case _:
            return audits.warning(
                f"{words} began on the test branch and has not passed ({state.value}).",
                "Wait longer with `--timeout`, or look at that CI run.",
                audit=ID,
            )

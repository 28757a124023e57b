"""Watch the checks of target branches, and keep what is known of those that are red.

Every change of a break and the effects that follow are one transaction, under the lock of its
queue. What is to be done at the provider is compared with what is done there: `break_effects.py`.

See docs/design/red-target.md.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import structlog
from cachetools import LRUCache

from service import check_reports, sweeping
from service.accounts import page_addresses
from service.accounts.store import access
from service.database import outbox
from service.database.database import Tx
from service.database.outbox import Lane, OutboxItem
from service.memory import QUEUES_MAX
from service.mergequeue.breaks import search
from service.mergequeue.breaks.search import Break, End, Result, RevertState, TargetCommit, Test
from service.mergequeue.engine.config import RedTarget
from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.culprits.verdict import Standing
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.operations import naming, requirements, run_reports, turn
from service.mergequeue.operations.run_failures import RunFailures
from service.mergequeue.store import breaks, queues
from service.mergequeue.store.breaks import LandedCommit
from service.mergequeue.wording import breaks as wording
from service.notifications import notifications
from service.notifications.messages import common_fields
from service.notifications.store import subscribers
from service.provider.errors import ProviderError
from service.provider.values import Checks, Commit, Reply
from service.runtime import Runtime
from service.vocabulary import Check, CheckOutcome, MergeMethod, QueueRef, RequiredName, Sha

HISTORY_MAX = 64
"""Commits before a red one among which the last green one is sought."""

READ_AT_ONCE = 8

PROBE_LIFE = timedelta(days=1)
"""A test branch of a search that is left over is deleted after this time."""

NEWEST = 20
"""Ended breaks among which the last one of a check is sought."""

_PASSES = frozenset({CheckOutcome.PASSED, CheckOutcome.SKIPPED})
_ENDED = _PASSES | {CheckOutcome.FAILED}

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class MindBreak:
    """Do at the provider what a break needs: test branches, and the revert."""

    id: str


@dataclass(frozen=True, slots=True)
class FollowGreen:
    """Point our branch for the newest verified commit to it."""

    queue_id: int


outbox.EFFECT.add(MindBreak | FollowGreen)


class SettledTips:
    """Tips on which all watched checks have ended, by queue: the sweep reads each once."""

    def __init__(self) -> None:
        self.by_queue: LRUCache[int, tuple[Sha, tuple[RequiredName, ...]]] = LRUCache(QUEUES_MAX)


def is_watched(value: MergeQueue) -> bool:
    """Return whether checks of the queue's target are watched."""
    config = value.config
    return config.red_target is not RedTarget.OFF and not config.shadow and not value.deleted


def watched(value: MergeQueue) -> tuple[RequiredName, ...]:
    """Return the required checks, and those that a setting adds."""
    required = () if value.required is None else value.required.names
    names = {one.name for one in required}
    others = (name for name in value.config.red_target_checks if name not in names)
    return (*required, *requirements.unlearned(value.config, others))


def is_break_watched(value: MergeQueue, one: Break) -> bool:
    """Return whether the check of a break is still watched."""
    return is_watched(value) and one.check.name in {each.name for each in watched(value)}


async def end_unwatched(runtime: Runtime, queue: QueueRef, broken: Break) -> None:
    """End a break that is not watched any more; its test branches are deleted."""
    runtime.memory.of(SettledTips).by_queue.pop(queue.id, None)
    await change(runtime, queue, broken.id, lambda one: search.ended(one, End.UNWATCHED))


async def commit_checked(runtime: Runtime, queue: QueueRef, sha: Sha) -> None:
    """After a check of a commit has ended: read it if it is of the target or of a search.

    Raises the provider's errors.
    """
    value = await turn.last_value(runtime, queue.id)
    if not is_watched(value):
        return
    open_ones, is_target = await runtime.store.read(_known, queue, sha)
    for one in open_ones:
        if any(probe.sha == sha and probe.result is None for probe in one.probes):
            await _read_probes(runtime, queue, value, one)
            return
    if is_target or (value.tip is not None and value.tip.sha == sha):
        await _look(runtime, queue, value, sha)


def _known(session: Tx, queue: QueueRef, sha: Sha) -> tuple[tuple[Break, ...], bool]:
    found = tuple(one.value for one in breaks.open_breaks(session, queue.id))
    return found, bool(breaks.landed(session, queue, [sha]))


async def read_all(runtime: Runtime) -> None:
    """Sweep: the tips of watched targets and the probes of open breaks, in case of lost events.

    A break that is not watched any more ends.
    """
    known = await runtime.store.read(queues.all_queues)
    broken = await runtime.store.read(breaks.broken_queues)
    await sweeping.one_by_one(
        _read_one(runtime, queue, is_broken=queue.id in broken)
        for queue in known
        if queue.repo.host in runtime.providers
    )


async def _read_one(runtime: Runtime, queue: QueueRef, *, is_broken: bool) -> None:
    value = await turn.last_value(runtime, queue.id)
    if is_broken:
        for one in await runtime.store.read(breaks.open_breaks, queue.id):
            if not is_break_watched(value, one.value):
                await end_unwatched(runtime, queue, one.value)
    if not is_watched(value):
        return
    try:
        for one in await runtime.store.read(breaks.open_breaks, queue.id):
            await _read_probes(runtime, queue, value, one.value)
        settled = runtime.memory.of(SettledTips).by_queue.get(queue.id)
        if value.tip is not None and settled != (value.tip.sha, watched(value)):
            await _look(runtime, queue, value, value.tip.sha)
    except ProviderError as trouble:
        # GitHub did not answer; the next sweep asks again.
        log.warning("target_unread", queue=queue.id, why=trouble.message)


async def _read_probes(runtime: Runtime, queue: QueueRef, value: MergeQueue, one: Break) -> None:
    """Read the checks of a search's test branches that have no result yet."""
    waiting = [each for each in one.probes if each.sha is not None and each.result is None]
    if not waiting or not one.is_searching:
        return
    read = await _checks_of(runtime, queue, value, [each.sha for each in waiting if each.sha])
    now = runtime.clock.now()
    patience = timedelta(minutes=value.config.check_start_timeout_minutes)
    longest = timedelta(minutes=value.config.testing_timeout_minutes)
    results: dict[str, Result] = {}
    for probe in waiting:
        sha = probe.sha or Sha("")
        outcome = await _probe_outcome(runtime, queue, one.check, read[sha])
        age = now - (probe.built_at or now)
        is_late = age >= longest or (outcome is None and age >= patience)
        result = _result_of(outcome) or (Result.SILENT if is_late else None)
        if result is not None:
            results[probe.branch] = result

    def note(known: Break) -> Break:
        for probe in known.probes:
            if probe.branch in results and probe.result is None:
                known = search.with_probe(known, replace(probe, result=results[probe.branch]))
        return known

    await change(runtime, queue, one.id, note)


async def _probe_outcome(
    runtime: Runtime, queue: QueueRef, check: RequiredName, checks: Checks
) -> CheckOutcome | None:
    """Return what CI of a test branch says of a check.

    A pull request of anybody may have this commit as its head; CI then reports on it for that, too.
    """
    counting = [one for one in checks.items if check.admits(one)]
    if any(one.outcome in _ENDED for one in counting):
        provider = runtime.providers[queue.repo.host]
        foreign = await provider.pull_request_suites(queue.repo, checks.sha)
        counting = [one for one in counting if one.group not in foreign]
    return _outcome_of_suites(check, counting)


def _outcome_of_suites(check: RequiredName, counting: Sequence[Check]) -> CheckOutcome | None:
    """Return what all suites say, as one: a failure beside a pass says nothing."""
    groups = {one.group for one in counting}
    suites = [_standing(check, [one for one in counting if one.group == each]) for each in groups]
    outcomes = {one.outcome for one in suites}
    ran = outcomes - {CheckOutcome.SKIPPED} or outcomes
    if len(ran) <= 1:
        return next(iter(ran), None)
    if {CheckOutcome.PASSED, CheckOutcome.FAILED} <= ran:
        return CheckOutcome.INTERRUPTED
    unfinished = ran - _ENDED - {CheckOutcome.INTERRUPTED}
    return CheckOutcome.RUNNING if unfinished else CheckOutcome.INTERRUPTED


def _result_of(outcome: CheckOutcome | None) -> Result | None:
    """Return what a report says; None: it is not final. A skipped or stopped run says nothing."""
    match outcome:
        case CheckOutcome.PASSED:
            return Result.GREEN
        case CheckOutcome.FAILED:
            return Result.RED
        case CheckOutcome.SKIPPED | CheckOutcome.INTERRUPTED:
            return Result.SILENT
        case _:
            return None


async def _look(runtime: Runtime, queue: QueueRef, value: MergeQueue, sha: Sha) -> None:
    """Read the watched checks of a commit of the target, and note what they show."""
    checks = (await _checks_of(runtime, queue, value, [sha]))[sha]
    if not checks.complete:
        return
    standings = await _standings(runtime, queue, checks, watched(value))
    stored = await runtime.store.read(breaks.open_breaks, queue.id)
    known = {one.value.check.name: one.value for one in stored}
    for one in standings:
        broken = known.get(one.required.name)
        if one.outcome is CheckOutcome.FAILED and broken is None:
            await _seen_red(runtime, queue, value, one, sha)
        elif one.outcome is CheckOutcome.FAILED and broken is not None:
            await _seen_red_again(runtime, queue, broken, sha)
        elif one.outcome is CheckOutcome.PASSED and broken is not None:
            await _seen_green(runtime, queue, broken, sha)
    outcomes = {one.outcome for one in standings}
    if outcomes <= _ENDED:
        runtime.memory.of(SettledTips).by_queue[queue.id] = (sha, watched(value))
    if CheckOutcome.PASSED in outcomes and outcomes <= _PASSES:
        await _verified(runtime, queue, value, sha)


async def _seen_red(
    runtime: Runtime, queue: QueueRef, value: MergeQueue, one: Standing, sha: Sha
) -> None:
    """Open a break if a commit before this one passed and none after it did."""
    check = one.check
    if check is None:
        return
    # The same reporter must say red here and green there.
    bound = RequiredName(check.name, check.source_id, check.kind, check.account)
    tip = value.tip
    if tip is not None and tip.sha != sha:
        newest = (await _checks_of(runtime, queue, value, [tip.sha]))[tip.sha]
        if await _has_passed(runtime, queue, newest, bound):
            return
    if not await _is_news(runtime, queue, value, check.name, sha):
        return
    commits = await _since_green(runtime, queue, value, bound, sha)
    if not commits:
        # The check has not passed on any of the last commits: there is nothing to compare with.
        log.info("target_red_without_green", queue=queue.id, check=check.name, commit=sha)
        return
    broken = Break(
        id=runtime.ids.uuid(),
        check=bound,
        url=check.url,
        commits=commits,
        runs_max=value.config.red_target_runs,
        reverts=value.config.red_target is RedTarget.REVERT,
        tells=value.config.comments_enabled,
    )
    _wake(runtime, await runtime.store.run(_claim, runtime, queue, broken))


async def _is_news(
    runtime: Runtime, queue: QueueRef, value: MergeQueue, name: str, sha: Sha
) -> bool:
    """Return whether a red commit is of the target, and later than the end of the last break.

    Each report on a commit has it read again, also the red check of a break that is over.
    """
    if not await _is_of_target(runtime, queue, value, sha):
        return False
    past = await runtime.store.read(breaks.newest, queue.id, NEWEST)
    passed = (one.value.passed for one in past if one.value.check.name == name)
    last = next((each for each in passed if each is not None), None)
    provider = runtime.providers[queue.repo.host]
    return last is None or not await provider.contains(queue.repo, sha, last)


async def _is_of_target(runtime: Runtime, queue: QueueRef, value: MergeQueue, sha: Sha) -> bool:
    """Return whether the target still contains a commit; it may have been rewritten."""
    provider = runtime.providers[queue.repo.host]
    return value.tip is None or await provider.contains(queue.repo, sha, value.tip.sha)


async def _since_green(
    runtime: Runtime, queue: QueueRef, value: MergeQueue, bound: RequiredName, sha: Sha
) -> tuple[TargetCommit, ...]:
    """Return the commits from the last that passed to this one; empty if none of them passed."""
    provider = runtime.providers[queue.repo.host]
    red = await provider.commit(queue.repo, sha)
    chain: list[Commit] = [] if red is None else [red]
    while 0 < len(chain) <= HISTORY_MAX:
        before = await _parents_of(runtime, queue, chain[-1])
        if not before:
            return ()
        read = await _checks_of(runtime, queue, value, [one.sha for one in before])
        for one in before:
            chain.append(one)
            if await _has_passed(runtime, queue, read[one.sha], bound):
                return await _suspects(runtime, queue, value, chain[::-1])
    return ()


async def _has_passed(
    runtime: Runtime, queue: QueueRef, checks: Checks, bound: RequiredName
) -> bool:
    """Return whether a watched check has passed on a commit of the target."""
    (one,) = await _standings(runtime, queue, checks, [bound])
    return one.outcome is CheckOutcome.PASSED


async def _standings(
    runtime: Runtime, queue: QueueRef, checks: Checks, names: Sequence[RequiredName]
) -> list[Standing]:
    """Return how watched checks stand on a commit of the target.

    A pull request of anybody may have this commit as its head: its CI does not count.
    """
    found = [_standing(one, checks.items) for one in names]
    if all(one.outcome not in _ENDED for one in found):
        return found
    own = await run_reports.without_foreign(runtime, queue, checks)
    return [_standing(one, own) for one in names]


async def _parents_of(runtime: Runtime, queue: QueueRef, commit: Commit) -> list[Commit]:
    """Return the next first parents of a commit, the newest first."""
    found: list[Commit] = []
    while commit.parents and len(found) < READ_AT_ONCE:
        parent = await runtime.providers[queue.repo.host].commit(queue.repo, commit.parents[0])
        if parent is None:
            break
        found.append(parent)
        commit = parent
    return found


async def _suspects(
    runtime: Runtime, queue: QueueRef, value: MergeQueue, chain: Sequence[Commit]
) -> tuple[TargetCommit, ...]:
    """Return the commits with their pull requests; of a rebased one its last commit alone."""
    shas = [one.sha for one in chain]
    landed, ours = await runtime.store.read(_landed, queue, shas)
    inner: set[Sha] = set()
    if value.config.merge_method is MergeMethod.REBASE:
        for sha, one in landed.items():
            if one.parent in shas:
                inner.update(shas[shas.index(one.parent) + 1 : shas.index(sha)])
    return tuple(_suspect(one, landed.get(one.sha), ours) for one in chain if one.sha not in inner)


def _suspect(commit: Commit, landed: LandedCommit | None, ours: frozenset[int]) -> TargetCommit:
    if landed is None:
        return TargetCommit(commit.sha, commit.tree)
    return TargetCommit(commit.sha, commit.tree, landed.pr, landed.pr in ours)


def _landed(
    session: Tx, queue: QueueRef, shas: Sequence[Sha]
) -> tuple[dict[Sha, LandedCommit], frozenset[int]]:
    return breaks.landed(session, queue, shas), breaks.reverts(session, queue.id)


async def _seen_red_again(runtime: Runtime, queue: QueueRef, broken: Break, sha: Sha) -> None:
    """Give up a break whose revert has landed in vain."""
    revert = broken.revert
    if broken.stopped is not None or revert is None or revert.number is None:
        return
    landed = await runtime.store.read(breaks.landed_as, queue.repository_id, revert.number)
    provider = runtime.providers[queue.repo.host]
    if landed is not None and await provider.contains(queue.repo, landed, sha):
        await change(runtime, queue, broken.id, lambda one: search.ended(one, End.STILL_RED))


async def _seen_green(runtime: Runtime, queue: QueueRef, broken: Break, sha: Sha) -> None:
    """End a break whose check passes on the red commit, or on one after it."""
    red = broken.commits[broken.last].sha
    revert = broken.revert
    end = End.FLAKE if sha == red and broken.is_searching else End.REPAIRED
    if sha != red:
        provider = runtime.providers[queue.repo.host]
        if not await provider.contains(queue.repo, red, sha):
            tip = await provider.tip(queue.repo, queue.branch)
            if tip is None or tip.sha != sha:
                return
            # The target was rewritten without the red commit.
        if revert is not None and revert.number is not None:
            number = revert.number
            if await runtime.store.read(breaks.landed_as, queue.repository_id, number) is not None:
                end = End.REVERTED
    await change(runtime, queue, broken.id, lambda one: search.ended(one, end, sha))


async def _verified(runtime: Runtime, queue: QueueRef, value: MergeQueue, sha: Sha) -> None:
    """Note that all watched checks passed on a commit, if it is the newest such commit."""
    if not await _is_of_target(runtime, queue, value, sha):
        return
    known = await runtime.store.read(breaks.verified, queue.id)
    if known is not None:
        provider = runtime.providers[queue.repo.host]
        if known.sha == sha or await provider.contains(queue.repo, sha, known.sha):
            return
    lanes = await runtime.store.run(_note_verified, runtime, queue, sha)
    outbox.wake(runtime.wakeups, lanes)


def _note_verified(session: Tx, runtime: Runtime, queue: QueueRef, sha: Sha) -> Collection[Lane]:
    now = runtime.clock.now()
    breaks.set_verified(session, queue, sha, now)
    item = OutboxItem(
        lane=Lane.NOTICE,
        key=f"green/{queue.id}/{runtime.ids.uuid()}",
        kind="follow_green",
        effect=FollowGreen(queue.id),
        next_at=now,
        supersede_key=f"green/{queue.id}",
    )
    outbox.append(session, queue.repository_id, None, 0, [item])
    return (item.lane,)


async def change(
    runtime: Runtime, queue: QueueRef, break_id: str, by: Callable[[Break], Break]
) -> None:
    """Change a break, decide what follows from it, and store both with the effects.

    `by` may run more than once. Does nothing to a break that it leaves as it is.
    """
    _wake(runtime, await runtime.store.run(_change, runtime, queue, break_id, by))


def _wake(runtime: Runtime, lanes: Collection[Lane]) -> None:
    outbox.wake(runtime.wakeups, lanes)
    runtime.wakeups.wake(notifications.TOPIC)


def _change(
    session: Tx, runtime: Runtime, queue: QueueRef, break_id: str, by: Callable[[Break], Break]
) -> Collection[Lane]:
    queues.head_of(session, queue.id, lock=True)
    stored = breaks.find(session, break_id)
    if stored is None:
        return ()
    after = by(stored.value)
    if after == stored.value:
        return ()
    now = runtime.clock.now()
    after = _advanced(runtime, after, now)
    after, items = _outputs(session, runtime, queue, (stored.value, after), now)
    breaks.save(session, after, now)
    _announce(session, runtime, queue, (stored.value, after), now)
    return _append(session, queue, items)


def _claim(session: Tx, runtime: Runtime, queue: QueueRef, broken: Break) -> Collection[Lane]:
    queues.head_of(session, queue.id, lock=True)
    now = runtime.clock.now()
    past = (one.value for one in breaks.newest(session, queue.id, NEWEST))
    last = next((one for one in past if one.check.name == broken.check.name), None)
    red = broken.commits[broken.last].sha
    is_wary = (last is not None and last.culprit is None) or runtime.links.of(
        RunFailures
    ).are_known_flaky(session, queue.repository_id, red)
    after = _advanced(runtime, replace(broken, is_wary=is_wary), now)
    if not breaks.claim(session, queue, after, now):
        return ()
    after, items = _outputs(session, runtime, queue, (broken, after), now)
    _announce(session, runtime, queue, (None, after), now)
    return _append(session, queue, items)


def _announce(
    session: Tx,
    runtime: Runtime,
    queue: QueueRef,
    change_of: tuple[Break | None, Break],
    now: datetime,
) -> None:
    """Store the messages of a change for the endpoints that want them."""
    before, after = change_of
    listening = subscribers.enabled(session, queue.org_id, queue.repository_id)
    if not listening:
        return
    slug = subscribers.organization_slug(session, queue.org_id)
    for name in wording.events_between(before, after):
        fields = {
            **common_fields(name, slug, now),
            "repository": {
                "host": queue.repo.host,
                "owner": queue.repo.owner,
                "name": queue.repo.name,
            },
            "target_branch": queue.branch,
            "http_details_url": page_addresses.of_queue(runtime.options, queue.repo, queue.branch),
        }
        message = wording.message(name, after, fields, now)
        notifications.enqueue(session, runtime, message, listening)


def _append(session: Tx, queue: QueueRef, items: Sequence[OutboxItem]) -> Collection[Lane]:
    if items:
        outbox.append(session, queue.repository_id, None, 0, items)
    return {item.lane for item in items}


def _advanced(runtime: Runtime, one: Break, now: datetime) -> Break:
    """Return the break after all that its results decide, with the next probes."""
    one = search.concluded(one)
    decision = search.decide(one) if one.is_searching else None
    if isinstance(decision, Test):
        until = now + PROBE_LIFE
        made = [naming.dry_test_branch(until, runtime.ids.uuid()) for _ in decision.places]
        one = search.with_probes(one, made, decision.places)
    return one


def _outputs(
    session: Tx, runtime: Runtime, queue: QueueRef, turn_of: tuple[Break, Break], now: datetime
) -> tuple[Break, list[OutboxItem]]:
    """Return the break with what was told noted, and the effects of a change."""
    before, after = turn_of
    items: list[OutboxItem] = []
    if search.work_of(after) - search.work_of(before):
        key = f"break/{after.id}/{runtime.ids.uuid()}"
        mind = MindBreak(after.id)
        items.append(
            OutboxItem(Lane.CONTROL, key, "mind_break", mind, now, run=f"break/{after.id}")
        )
    culprit = after.culprit_commit
    if culprit is not None and culprit.pr is not None and search.is_to_be_told(after):
        after = replace(after, is_told=True)
        web_url = access.repository(session, queue.repository_id).url
        body = wording.culprit_comment(after, queue.branch, web_url)
        # Once, however many checks it broke.
        name = f"break-{culprit.sha}"
        reply = Reply(culprit.pr, name, body)
        key = f"reply/{queue.repository_id}/{culprit.pr}/{name}"
        items.append(OutboxItem(Lane.NOTICE, key, "reply", reply, next_at=now))
    return after, items


def is_revert_wanted(one: Break) -> bool:
    """Return whether a revert is to be opened."""
    return one.revert is not None and one.revert.state is RevertState.WANTED


async def _checks_of(
    runtime: Runtime, queue: QueueRef, value: MergeQueue, shas: Sequence[Sha]
) -> dict[Sha, Checks]:
    skips = value.config.skipped_statuses_pass
    provider = runtime.providers[queue.repo.host]
    return dict(await provider.checks_of_many(queue.repo, list(shas), skipped_pass=skips))


def _standing(required: RequiredName, checks: Sequence[Check]) -> Standing:
    return verdict.standing(required, check_reports.counting(checks))

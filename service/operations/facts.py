"""What the provider says of pull requests and target branches, as a queue wants to hear it."""

from dataclasses import replace
from datetime import datetime

from service.mergequeue.config import QueueConfig, Toggle
from service.mergequeue.inputs import Input, TargetGone, TargetMoved
from service.mergequeue.model import Facts, MergeQueue, Tip
from service.mergequeue.reasons import HoldReason
from service.provider.port import Commit, PullRequest
from service.runtime import Runtime
from service.store import pull_requests as known_pulls
from service.store.database import Tx
from service.store.pull_requests import PullRequestHead
from service.vocabulary import PullRequestState, QueueRef, RepoRef, Sha


async def of(runtime: Runtime, queue: QueueRef, config: QueueConfig, pull: PullRequest) -> Facts:
    """Facts of one pull request as just read, with its fork's authorization.

    For direct merges also its own checks, but only while its head contains the target's tip.
    Remembers its head, by which a later comment is bound (GITHUB.md 4.5).
    """
    head = PullRequestHead(queue.repository_id, pull.number, pull.head_sha)
    authorized = await runtime.store.run(_remember, head, runtime.clock.now())
    plain = Facts(
        pr=pull.number,
        head=pull.head_sha,
        base=pull.base_branch,
        state=pull.state,
        draft=pull.draft,
        mergeability=pull.mergeability,
        blockers=pull.blockers,
        title=pull.title,
        author=pull.author,
        is_fork=pull.is_fork,
        authorized_head=authorized,
        merged_sha=pull.merge_commit,
    )
    if config.direct_merge_mode is not Toggle.ALWAYS or pull.state is not PullRequestState.OPEN:
        return plain
    return await _with_own_checks(runtime, queue.repo, config, pull, plain)


async def _with_own_checks(
    runtime: Runtime, repo: RepoRef, config: QueueConfig, pull: PullRequest, plain: Facts
) -> Facts:
    provider = runtime.providers[repo.host]
    tip = pull.base_tip
    if tip is None or not await provider.contains(repo, tip, pull.head_sha):
        return plain
    head = await provider.commit(repo, pull.head_sha)
    checks = await provider.checks(
        repo, pull.head_sha, skipped_pass=config.skipped_statuses_pass
    )
    if head is None or not checks.complete:
        return plain
    return replace(plain, own_checks=checks.items, contains_tip=tip, head_tree=head.tree)


def _remember(session: Tx, head: PullRequestHead, now: datetime) -> Sha | None:
    known_pulls.remember_head(session, head, now)
    return known_pulls.fork_authorization(session, head.repository_id, head.number)


async def target(runtime: Runtime, queue: QueueRef, value: MergeQueue) -> list[Input]:
    """What the queue must be told of its target branch; empty when it knows the tip."""
    provider = runtime.providers[queue.repo.host]
    tip = await provider.tip(queue.repo, queue.branch)
    if tip is None:
        return [TargetGone()]
    if value.tip is not None and value.tip.sha == tip.sha and not _is_missing(value):
        return []
    return [await _moved(runtime, queue, value, tip)]


def _is_missing(value: MergeQueue) -> bool:
    return any(hold.reason is HoldReason.TARGET_MISSING for hold in value.holds)


async def _moved(
    runtime: Runtime, queue: QueueRef, value: MergeQueue, tip: Commit
) -> TargetMoved:
    """The move to `tip`: whether history was rewritten, and who was merged by hand on the way."""
    provider = runtime.providers[queue.repo.host]
    now = Tip(tip.sha, tip.tree)
    if value.tip is None:
        return TargetMoved(now)
    if not await provider.contains(queue.repo, value.tip.sha, tip.sha):
        return TargetMoved(now, rewritten=True)
    unmerged = await provider.open_pull_requests(queue.repo, queue.branch)
    still_open = {number for number, _ in unmerged}
    merged = []
    for number in sorted(set(value.entries) - still_open):
        pull = await provider.pull_request(queue.repo, number)
        if pull.state is PullRequestState.MERGED:
            merged.append(number)
    return TargetMoved(now, prs=tuple(merged))

"""Read pull requests and target branches from the provider, as inputs for a queue."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from service import landed_work
from service.database.database import Tx
from service.landed_work import Declaration
from service.mergequeue.engine.config import QueueConfig, Toggle
from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.inputs import (
    FactsChanged,
    Input,
    PullRequestGone,
    TargetGone,
    TargetMoved,
)
from service.mergequeue.engine.model import MergeQueue, Tip
from service.mergequeue.engine.reasons import HoldReason
from service.mergequeue.engine.reported import Facts
from service.mergequeue.operations import chains, foreseen, rulings, turn
from service.mergequeue.store import consents, landings
from service.mergequeue.store.consents import ShownHead
from service.mergequeue.store.pull_requests import PullRequestHead
from service.provider.ci import Judged, Subject
from service.provider.values import (
    Commit,
    LandedByUs,
    PullRequest,
)
from service.runtime import Runtime
from service.vocabulary import (
    Blocker,
    BlockerCode,
    Check,
    CheckOutcome,
    Mergeability,
    PullRequestState,
    QueueRef,
    RepoRef,
    RequiredName,
    Sha,
)

_OF_PULL_REQUEST = re.compile(
    r"title|label|semantic|conventional|review|milestone|assignee|description|checklist"
    r"|\b(?:cla|dco|wip|danger)\b|\bpr[-_ /](?:body|lint|name|size|check)|linked.?issue",
    re.IGNORECASE,
)
"""Names of checks that usually judge a pull request. They inform, and permit nothing."""

_PASSED = (CheckOutcome.PASSED,)
_PASSES = (CheckOutcome.PASSED, CheckOutcome.SKIPPED)

REMEMBERED_AT_ONCE = 50
"""Heads in one transaction: a sweep must not keep a webhook waiting for the database."""

SHOWN_WITHIN_S = (1.0, 2.0, 4.0, 8.0)
"""Waits between looks at a branch that has moved: a provider may show it late."""


async def facts_of(
    runtime: Runtime, queue: QueueRef, config: QueueConfig, pull: PullRequest
) -> Facts:
    """Return the facts of one pull request as just read, with its fork's authorization.

    For direct merges also its own checks, but only while its head contains the target's tip. Stores
    its head, to which a later comment is bound (docs/design/provider.md 10).
    """
    return (await facts_of_many(runtime, queue, config, [pull]))[pull.number]


async def facts_of_many(
    runtime: Runtime, queue: QueueRef, config: QueueConfig, pulls: Sequence[PullRequest]
) -> dict[int, Facts]:
    """Return the facts of several pull requests, by number."""
    pulls = [await chains.with_chain(runtime, queue.repo, pull, queue.branch) for pull in pulls]
    shown = [_shown(queue, pull) for pull in pulls]
    authorized: list[Sha | None] = []
    for start in range(0, len(shown), REMEMBERED_AT_ONCE):
        part = shown[start : start + REMEMBERED_AT_ONCE]
        authorized += await runtime.store.run(_remember, part, runtime.clock.now())
    on_heads = await _required_on_heads(runtime, queue, config)
    by_us = await unrecorded(runtime, queue, pulls)
    found: dict[int, Facts] = {}
    for pull, head in zip(pulls, authorized, strict=True):
        plain = _plain(pull, head, queue.repo)
        if (landed := by_us.get(pull.number)) is not None:
            commit = pull.merge_commit or landed.commit
            plain = replace(plain, landed_by_us=True, merged_sha=commit)
        if on_heads and pull.state is PullRequestState.OPEN:
            plain = replace(
                plain, blockers=(*plain.blockers, *_head_blockers(pull, on_heads, config))
            )
        if pull.mergeability is Mergeability.NOT_MERGEABLE and await foreseen.is_resolved(
            runtime, queue, config, pull
        ):
            plain = _without_conflict(plain)
        if config.direct_merge_mode is Toggle.ALWAYS and pull.state is PullRequestState.OPEN:
            plain = await _with_own_checks(runtime, queue.repo, config, pull, plain)
        found[pull.number] = plain
    return await rulings.with_rulings(runtime, queue.repo, config, pulls, found)


async def unrecorded(
    runtime: Runtime, queue: QueueRef, pulls: Sequence[PullRequest]
) -> dict[int, LandedByUs]:
    """Return which of these our App has landed itself, although no row of a landing says so.

    The database is older than that, or the landing was given up and happened later.
    """
    ended = [pull for pull in pulls if pull.state is not PullRequestState.OPEN]
    if not ended:
        return {}
    numbers = {pull.number for pull in ended}
    known = await runtime.store.read(landings.heads_brought, queue, numbers)
    provider = runtime.providers[queue.repo.host]
    found = {}
    for pull in ended:
        if (pull.number, pull.head_sha) not in known:
            by_us = await provider.landed_by_us(queue.repo, pull.number)
            if by_us is not None:
                found[pull.number] = by_us
    return found


def _without_conflict(facts: Facts) -> Facts:
    """Return the facts of a pull request whose conflict with its target branch rules resolve."""
    left = tuple(one for one in facts.blockers if one.code is not BlockerCode.CONFLICT)
    return replace(facts, mergeability=Mergeability.MERGEABLE, blockers=left)


async def differing(
    runtime: Runtime, queue: QueueRef, value: MergeQueue, numbers: Sequence[int]
) -> list[Input]:
    """Return inputs about these pull requests that the queue lacks, read many at a time."""
    if not numbers:
        return []
    pulls = await runtime.providers[queue.repo.host].pull_requests(queue.repo, numbers)
    there = [pull for pull in pulls.values() if pull is not None]
    inputs: list[Input] = [
        PullRequestGone(number) for number, pull in pulls.items() if pull is None
    ]
    for number, fresh in (await facts_of_many(runtime, queue, value.config, there)).items():
        known = value.entries[number].facts
        if swept(known, fresh) != known:
            inputs.append(FactsChanged(swept(known, fresh)))
    return inputs


def swept(known: Facts, fresh: Facts) -> Facts:
    """Return facts read by a sweep, which reads no approvals and awaits no mergeability.

    Then the known values of that head are kept; otherwise each sweep would report it again.
    """
    if fresh.approvals is None and fresh.head == known.head:
        fresh = replace(fresh, approvals=known.approvals)
    if fresh.mergeability is Mergeability.IN_PROGRESS and fresh.head == known.head:
        return replace(fresh, mergeability=known.mergeability)
    return fresh


def _judged_on(pull: PullRequest) -> tuple[str, ...]:
    reports = [one for one in pull.own_reports if _OF_PULL_REQUEST.search(one.name)]
    found = {one.name for one in reports if one.outcome is CheckOutcome.PASSED}
    return tuple(sorted(found - set(pull.failed_checks)))


def _plain(pull: PullRequest, authorized: Sha | None, repo: RepoRef) -> Facts:
    return Facts(
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
        own_skipped=pull.skipped_checks,
        own_failed=pull.failed_checks,
        own_minutes=pull.own_minutes,
        judged_on_head=_judged_on(pull),
        approvals=pull.approvals,
        in_stack=pull.stack is not None and pull.stack.is_native,
        declared=_declared_by(pull, repo),
    )


def _declared_by(pull: PullRequest, repo: RepoRef) -> Declaration:
    """Return what title, text and label say that it takes back on purpose."""
    said = Declaration.of([pull.title, pull.body], repo)
    is_labelled = any(label.lower() == landed_work.LABEL for label in pull.labels)
    return replace(said, covers_all=is_labelled)


async def _required_on_heads(
    runtime: Runtime, queue: QueueRef, config: QueueConfig
) -> tuple[RequiredName, ...]:
    """Return the required names that heads alone have to pass, with whose reports count."""
    if not config.head_only_statuses:
        return ()
    known = (await turn.value(runtime, queue.id)).required
    return () if known is None else known.on_heads


def _head_blockers(
    pull: PullRequest, on_heads: Sequence[RequiredName], config: QueueConfig
) -> Iterator[Blocker]:
    """Yield a blocker for each name that the head has not passed and the provider does not want."""
    named = {blocker.name for blocker in pull.blockers}
    passes = _PASSES if config.skipped_statuses_pass else _PASSED
    for one in on_heads:
        outcome = verdict.standing(one, pull.own_reports).outcome
        if outcome not in passes and one.name not in named:
            is_over = outcome in (CheckOutcome.FAILED, CheckOutcome.SKIPPED)
            code = BlockerCode.CHECK_FAILING if is_over else BlockerCode.CHECK_PENDING
            yield Blocker(code, one.name)


async def _with_own_checks(
    runtime: Runtime, repo: RepoRef, config: QueueConfig, pull: PullRequest, plain: Facts
) -> Facts:
    provider = runtime.providers[repo.host]
    tip = pull.base_tip
    if tip is None or not await provider.contains(repo, tip, pull.head_sha):
        return plain
    head = await provider.commit(repo, pull.head_sha)
    checks = await provider.checks(repo, pull.head_sha, skipped_pass=config.skipped_statuses_pass)
    if head is None or not checks.complete:
        return plain
    own = checks.items
    if any(check.outcome in _PASSES for check in own):
        own = proving(await provider.judged(repo, pull, checks))
    return replace(plain, own_checks=own, contains_tip=tip, head_tree=head.tree)


def proving(reports: Sequence[Judged]) -> tuple[Check, ...]:
    """Return the reports without those that passed and may have judged another tree.

    The head contains the tip, so that its merge with the target has the head's own tree.
    """
    return tuple(
        one.check
        for one in reports
        if one.subject is not Subject.UNKNOWN or one.check.outcome not in _PASSES
    )


def _shown(queue: QueueRef, pull: PullRequest) -> ShownHead:
    head = PullRequestHead(queue.repository_id, pull.number, pull.head_sha)
    is_closed = pull.state is PullRequestState.CLOSED
    shown = ShownHead(head, pull.base_branch, pull.is_fork, is_closed, pull.shown_at)
    return replace(shown, returned_after=pull.returned_after)


def _remember(session: Tx, shown: Sequence[ShownHead], now: datetime) -> tuple[Sha | None, ...]:
    """Remember heads, end old consents, and return the heads that a person has let in."""
    for one in shown:
        consents.note_shown(session, one, now)
    found = [consents.find(session, one.head, one.base) if one.is_fork else None for one in shown]
    return tuple(None if consent is None else consent.head.head for consent in found)


async def target(runtime: Runtime, queue: QueueRef, value: MergeQueue) -> list[Input]:
    """Return inputs about the target branch that the queue lacks; empty if the tip is known."""
    tip = await runtime.providers[queue.repo.host].tip(queue.repo, queue.branch)
    if tip is None:
        return [TargetGone()]
    if value.tip is None:
        return [TargetMoved(Tip(tip.sha, tip.tree))]
    if value.tip.sha == tip.sha and not _is_missing(value):
        return []
    return [await _moved(runtime, queue, value, value.tip, tip)]


def _is_missing(value: MergeQueue) -> bool:
    return any(hold.reason is HoldReason.TARGET_MISSING for hold in value.holds)


async def _moved(
    runtime: Runtime, queue: QueueRef, value: MergeQueue, known: Tip, tip: Commit
) -> TargetMoved | TargetGone:
    """Return the move to `tip`: whether history was rewritten, and PRs merged outside the queue.

    A branch that seems to have moved back is read again: it may be shown as it was a moment ago.
    """
    provider = runtime.providers[queue.repo.host]
    waits_s = iter(SHOWN_WITHIN_S)
    while not await provider.contains(queue.repo, known.sha, tip.sha):
        is_back = await provider.contains(queue.repo, tip.sha, known.sha)
        wait_s = next(waits_s, None) if is_back else None
        if wait_s is None:
            return TargetMoved(Tip(tip.sha, tip.tree), rewritten=True)
        await runtime.clock.sleep(wait_s)
        newest = await provider.tip(queue.repo, queue.branch)
        if newest is None:
            return TargetGone()
        tip = newest
    unmerged = await provider.open_pull_requests(queue.repo, queue.branch)
    still_open = {one.number for one in unmerged}
    closed = await provider.pull_requests(queue.repo, sorted(set(value.entries) - still_open))
    merged = {
        number: pull
        for number, pull in closed.items()
        if pull is not None and pull.state is PullRequestState.MERGED
    }
    by_us = await unrecorded(runtime, queue, list(merged.values()))
    ours = tuple((number, merged[number].merge_commit) for number in sorted(by_us))
    return TargetMoved(Tip(tip.sha, tip.tree), prs=tuple(sorted(merged)), ours=ours)

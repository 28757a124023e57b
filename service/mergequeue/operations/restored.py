"""After a restored backup: find what this database does not know, and mend what pull requests say.

A database that is older than the world is noticed by what our own App has done since, as the
provider itself shows it: landings and status comments without a row
(docs/design/transactions.md 14).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import structlog

from service import sweeping
from service.accounts import audit_log
from service.accounts.store import access, audit
from service.accounts.tenants import RepositoryRecord
from service.database import outbox
from service.database.database import Tx
from service.database.outbox import Lane, OutboxItem
from service.mergequeue.engine.inputs import Cancel
from service.mergequeue.engine.outputs import Tell
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.engine.states import EntryState
from service.mergequeue.operations import naming, turn
from service.mergequeue.operations.facts import unrecorded
from service.mergequeue.store import notices as stored_notices
from service.mergequeue.store import queues, restored, runs
from service.mergequeue.store.notices import EDITED, NoticeKey, PostedNotice, Surface
from service.mergequeue.store.restored import KnownPast
from service.mergequeue.wording import notices as wording
from service.mergequeue.wording import restored as words
from service.provider.errors import Gone, ProviderError, Unavailable
from service.provider.values import (
    CheckReport,
    CheckReportStatus,
    LandedByUs,
    PullRequest,
    StatusComment,
    StatusPosted,
)
from service.runtime import Runtime
from service.vocabulary import SYSTEM, PullRequestState, QueueRef

ENDED_MAX = 200
"""Closed pull requests without a record of which a look asks whether our App landed them."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class MendStatus:
    """Say on a pull request that its submission is not known any more, unless it has a new one.

    `comment` is the status comment that is there, None if none is known.
    """

    number: int
    comment: str | None


outbox.EFFECT.add(MendStatus)


@dataclass(frozen=True, slots=True)
class Found:
    """Facts that a queue's rows lack: landings of our App, submissions, and test branches.

    `ended` are pull requests in the queue whose submission has left it since then. `posted` are all
    status comments that changed since then.
    """

    since: datetime
    landed: Mapping[int, LandedByUs]
    forgotten: tuple[int, ...]
    ended: tuple[int, ...]
    branches: tuple[str, ...]
    posted: Sequence[StatusPosted]


class Unread(dict[int, datetime]):
    """The repositories that are still to be looked at since the start, by id: since when."""


async def look_at_start(runtime: Runtime, is_over: Callable[[], bool]) -> None:
    """Look at every repository for what our App did after its rows were last seen.

    Before this start reads anything else, because rows are as new as what was read last. Begins
    with no other once `is_over`.
    """
    runtime.memory.of(Unread).update(await runtime.store.read(restored.last_seen))
    await look_again(runtime, is_over)


async def look_again(runtime: Runtime, is_over: Callable[[], bool] = sweeping.never) -> None:
    """Sweep: look at those that could not be read at the start.

    A host that does not answer is not asked again in this round: it must not hold up a start.
    """
    if runtime.memory.of(Unread):
        away: set[str] = set()
        known = await runtime.store.read(access.repositories_of, None)
        await sweeping.one_by_one((_look_at(runtime, one, away) for one in known), is_over)


async def _look_at(runtime: Runtime, repository: RepositoryRecord, away: set[str]) -> None:
    unread, host = runtime.memory.of(Unread), repository.ref.host
    since = unread.get(repository.id)
    if since is None or host in away or host not in runtime.providers:
        return
    try:
        for queue in await runtime.store.read(queues.queues_of, repository.id):
            subject = audit_log.subject_of_queue(queue)
            begin = await runtime.store.read(restored.begin_of, queue.org_id, subject, since)
            found = await _find(runtime, queue, begin)
            if found is not None:
                # First, because what is noted is not looked for again.
                if found.ended:
                    await turn.take(runtime, queue.id, [_cancel(number) for number in found.ended])
                await runtime.store.run(_note, runtime, queue, found)
    except Unavailable as trouble:
        # What a restored backup lacks could not be read; it is looked at again.
        log.warning("restore_unread", repo=repository.ref.slug, why=trouble.message)
        away.add(host)
        return
    except ProviderError as refused:
        # Our App may not see the repository; its queues hold for that.
        log.warning("restore_unread", repo=repository.ref.slug, why=refused.message)
    unread.pop(repository.id, None)


async def _find(runtime: Runtime, queue: QueueRef, since: datetime) -> Found | None:
    """Return what the rows of a queue lack; None: nothing."""
    provider = runtime.providers[queue.repo.host]
    marker = wording.status_marker(queue.branch)
    posted = await provider.statuses_posted(queue.repo, marker, since)
    listed = await provider.closed_pull_requests(queue.repo, queue.branch, since)
    # The provider shows the draft of a batch as merged, once the target has its commits.
    closed = [one for one in listed if naming.run_id_of(one.branch) is None]
    numbers = {one.number for one in posted} | {one.number for one in closed}
    if not numbers:
        return None
    past = await runtime.store.read(restored.known_past, queue, numbers)
    ended = [one.number for one in closed if (one.number, one.head) not in past.brought]
    pulls = await provider.pull_requests(queue.repo, ended[:ENDED_MAX])
    there = [pull for pull in pulls.values() if pull is not None and not _is_ended(past, pull)]
    landed = await unrecorded(runtime, queue, there)
    forgotten = {
        one.number for one in posted if one.number not in past.newest and one.created_at.at >= since
    }
    left = await _ended(runtime, queue, past, posted)
    if not landed and not forgotten and not left:
        return None
    return Found(
        since=since,
        landed=landed,
        forgotten=tuple(sorted(forgotten)),
        ended=left,
        branches=await _unknown_branches(runtime, queue),
        posted=posted,
    )


async def _ended(
    runtime: Runtime, queue: QueueRef, past: KnownPast, posted: Sequence[StatusPosted]
) -> tuple[int, ...]:
    """Return the pull requests in the queue of whose very submission our App has shown the end.

    The comment only says of which to read the check run, because people can edit it.
    """
    provider = runtime.providers[queue.repo.host]
    name = wording.check_name(queue.branch)
    found = []
    for number in sorted({one.number for one in posted if wording.says_end(one.body)} & past.live):
        entry = past.newest[number]
        if await provider.shows_end(queue.repo, entry.head, name, entry.id):
            found.append(number)
    return tuple(found)


def _cancel(number: int) -> Cancel:
    text = "it had left the queue before a backup of the database was restored"
    return Cancel(number, Reason.ADMIN_REQUESTED, SYSTEM, text)


def _is_ended(past: KnownPast, pull: PullRequest) -> bool:
    """Return whether a submission of this head is known to have ended with its merge."""
    entry = past.newest.get(pull.number)
    return entry is not None and entry.state is EntryState.MERGED and entry.head == pull.head_sha


async def _unknown_branches(runtime: Runtime, queue: QueueRef) -> tuple[str, ...]:
    """Return test branches of no run; they are named and never deleted."""
    recorded = await runtime.store.read(runs.recorded_branches, queue.repository_id)
    present = await runtime.providers[queue.repo.host].vehicles(queue.repo)
    return tuple(
        one.branch
        for one in present
        if one.branch not in recorded and naming.end_of_dry_test(one.branch) is None
    )


def _note(session: Tx, runtime: Runtime, queue: QueueRef, found: Found) -> None:
    """Record what is lacking, and have each pull request mended that says something else."""
    now = runtime.clock.now()
    numbers = {one.number for one in found.posted} | found.landed.keys()
    past = restored.known_past(session, queue, numbers)
    data = {
        "since": found.since,
        "landed": {str(pr): by_us.commit for pr, by_us in found.landed.items()},
        "forgotten": found.forgotten,
        "ended": found.ended,
        "branches": found.branches,
    }
    entry = audit_log.allowed(
        SYSTEM, queue.org_id, restored.ACTION, audit_log.subject_of_queue(queue), now
    )
    audit.append(session, replace(entry, data=data))
    comments = {one.number: one.id for one in reversed(found.posted)}
    for number, comment in comments.items():
        key = NoticeKey(queue.id, number, Surface.COMMENT)
        stored_notices.record(session, key, PostedNotice(comment, EDITED))
    items = []
    for number in sorted(numbers):
        submission = past.newest.get(number)
        if submission is not None and (number in past.live or number not in found.landed):
            tell = Tell(number, submission.id, submission.state, submission.reason)
            items.append(turn.item(runtime, queue, tell, now))
        else:
            mend = MendStatus(number, comments.get(number))
            name = f"restored/{queue.id}/{number}/{runtime.ids.uuid()}"
            place = turn.place_of_texts(queue, number)
            items.append(OutboxItem(Lane.NOTICE, name, "mend", mend, now, supersede_key=place))
    outbox.append(session, queue.repository_id, queue.id, 0, items)
    # The database is older than what our App has done: a backup was restored.
    log.warning(
        "restored_backup",
        queue=queue.id,
        since=found.since,
        landed=sorted(found.landed),
        forgotten=found.forgotten,
        ended=found.ended,
        branches=found.branches,
    )


async def mend(runtime: Runtime, queue: QueueRef, effect: MendStatus) -> None:
    """Write what is known of a pull request whose submission is lost.

    Skips one that was submitted again meanwhile: then its own notices say more.
    """
    value = await turn.last_value(runtime, queue.id)
    if effect.number in value.entries or value.config.shadow:
        return
    provider = runtime.providers[queue.repo.host]
    try:
        pull = await provider.pull_request(queue.repo, effect.number, awaits_mergeability=False)
    except Gone:
        return
    by_us = (await unrecorded(runtime, queue, [pull])).get(pull.number)
    commit = pull.merge_commit or (None if by_us is None else by_us.commit)
    said = words.text(queue.branch, pull.state, commit, by_us=by_us is not None)
    if value.config.comments_enabled:
        marker = wording.status_marker(queue.branch)
        comment = StatusComment(pull.number, marker, said, known_id=effect.comment, is_final=True)
        await provider.say(queue.repo, comment)
    if value.config.status_check_enabled:
        is_merged = by_us is not None or pull.state is PullRequestState.MERGED
        report = CheckReport(
            sha=pull.head_sha,
            name=wording.check_name(queue.branch),
            external_id=f"restored-{pull.number}",
            status=CheckReportStatus.SUCCESS if is_merged else CheckReportStatus.NEUTRAL,
            title=words.title(pull.state, by_us=by_us is not None),
            summary=said,
            url=None,
            is_final=True,
            replaces=True,
        )
        await provider.say(queue.repo, report)

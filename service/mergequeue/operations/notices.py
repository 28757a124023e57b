"""Write to pull requests: status comment, check run, replies, reactions.

Best effort: no notice blocks or fails a landing (docs/design/provider.md 14). Near the provider's
limits notices thin out (docs/design/limits.md 8). Texts: `wording`.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from service.accounts import page_addresses
from service.accounts.store import access
from service.database import outbox
from service.database.database import Tx
from service.database.outbox import Lane
from service.errors import NotFound
from service.mergequeue.engine import checked
from service.mergequeue.engine.explaining.explain import explain_entry
from service.mergequeue.engine.model import Entry, LandMode, MergeQueue, Run
from service.mergequeue.engine.outputs import LandStep, Recorded, Tell
from service.mergequeue.engine.reasons import HoldReason, Reason
from service.mergequeue.engine.state import holds
from service.mergequeue.engine.states import FINAL, EntryState, RunPhase
from service.mergequeue.landing_records import LandingRecord, LandingState
from service.mergequeue.operations import checked_names, queue_views, turn, undone_work
from service.mergequeue.operations.queue_views import Standing
from service.mergequeue.operations.run_failures import RunFailures
from service.mergequeue.store import answered_commands, journal, landings, runs
from service.mergequeue.store import notices as stored
from service.mergequeue.store import queues as stored_queues
from service.mergequeue.store.notices import NoticeKey, PostedNotice, Surface, WrittenNotice
from service.mergequeue.wording import failed_tests, notices, situation
from service.mergequeue.wording.situation import Landed, PullRequestText
from service.provider.budget import Pressure
from service.provider.errors import OutcomeUnknown, ProviderError, Throttled, Unavailable
from service.provider.labels import LabelChange, LabelRemoval, LabelReturn, StateLabel
from service.provider.signals import AskSource
from service.provider.values import (
    CheckReport,
    Emoji,
    LandedPull,
    Reaction,
    Reply,
    StatusComment,
)
from service.runtime import Runtime
from service.text.markdown import Links
from service.vocabulary import MergeMethod, QueueRef, RepoRef, Sha

Posted = Mapping[NoticeKey, WrittenNotice]
"""Notices as they were posted."""

Kept = StatusComment | CheckReport | StateLabel
"""Notices that follow the state of a submission."""

SURFACES: Mapping[type[Kept], Surface] = {
    StatusComment: Surface.COMMENT,
    CheckReport: Surface.CHECK,
    StateLabel: Surface.LABEL,
}

LATER = timedelta(minutes=2)
"""A text that was left out is tried again after this time, unless the next state replaces it."""

ORNAMENTS = frozenset({Emoji.EYES, Emoji.ACCEPTED, Emoji.MERGED})
"""Reactions that only repeat what a comment or a check run says."""


async def tell(runtime: Runtime, queue: QueueRef, action: Tell, *, first: bool) -> Posted:
    """Bring comment, check run and label of one submission up to date; only changes are written.

    Writes the present texts, not those of the time of the action: a later change wins. `first`:
    no earlier attempt can have written a text, so the provider is not searched. A refresh waits
    where the provider limits how much is written; the end of a submission does not. A text that is
    refused keeps no other from being written. Raises the refusal then, and Throttled when a text
    was left out: the next state replaces this action, or it is tried again. Returns what the caller
    must record as posted when it settles the action.
    """
    read = await _text_and_notices(runtime, queue, action.pr, action.entry)
    if read is None or _is_silent(read[0]):
        return {}
    text, known = read
    writing = _Writing(queue, text, first, known, {})
    try:
        await _write(runtime, writing, action)
    except (ProviderError, NotFound):
        await runtime.store.run(stored.record_all, writing.posted)
        raise
    return writing.posted


@dataclass(frozen=True, slots=True)
class _Writing:
    """Notices of a submission to bring up to date: `known` as recorded, `posted` since."""

    queue: QueueRef
    text: PullRequestText
    first: bool
    known: Mapping[Surface, PostedNotice]
    posted: dict[NoticeKey, WrittenNotice]

    def key(self, surface: Surface) -> NoticeKey:
        """Return the key of a notice of the submission."""
        return NoticeKey(self.queue.id, self.text.entry.pr, surface, self.text.entry.id)


async def _write(runtime: Runtime, writing: _Writing, action: Tell) -> None:
    is_whole, refusals, text = True, [], writing.text
    for notice, essence in _notices_of(text, action, first=writing.first):
        try:
            is_whole = await _is_placed(runtime, writing, notice, essence) and is_whole
        except (Unavailable, OutcomeUnknown):
            raise
        except ProviderError as refused:
            refusals.append(refused)
    if text.entry.state in FINAL:
        await _farewell(runtime, writing)
    await undone_work.tell_landed(runtime, writing.queue, text)
    if refusals:
        raise refusals[0]
    if not is_whole:
        later = runtime.clock.now() + LATER
        raise Throttled("Little of the provider's limits is left: this text waits.", later)


def _is_silent(text: PullRequestText) -> bool:
    """Return whether nothing is said, because the queue is in shadow.

    A landing that was sent before it went there is told to its end.
    """
    landed = (Reason.LANDED, Reason.LANDED_DIRECTLY)
    return text.queue.config.shadow and text.entry.reason not in landed


def _notices_of(
    text: PullRequestText, action: Tell, *, first: bool
) -> Iterator[tuple[Kept, str | None]]:
    """Yield what shows the state of a submission, each with its essence (see `_is_placed`)."""
    config, queue = text.queue.config, text.queue
    newest = queue.entries.get(action.pr)
    superseded = newest is not None and newest.id != action.entry
    is_final = text.entry.state in FINAL
    is_refresh = action.is_refresh and text.entry.state is action.state
    if config.status_check_enabled:
        report = notices.check_report(text)
        yield replace(report, first=first, is_final=is_final, is_refresh=is_refresh), None
    if config.comments_enabled and not superseded:
        body, marker = notices.status_comment(text), notices.status_marker(queue.branch)
        comment = StatusComment(
            action.pr, marker, body, first=first, is_final=is_final, is_refresh=is_refresh
        )
        yield comment, _essence(text)
    if config.state_labels_enabled and not superseded:
        label = notices.label_of(text.entry.state)
        yield (
            StateLabel(action.pr, label, first=first, is_final=is_final, is_refresh=is_refresh),
            None,
        )


async def text_of(
    runtime: Runtime, queue: QueueRef, number: int, entry_id: str | None
) -> PullRequestText | None:
    """Return everything that the texts about one submission need; None if it is unknown.

    `entry_id` None: the newest submission. The queue may have been deleted since.
    """
    read = await _text_and_notices(runtime, queue, number, entry_id)
    return None if read is None else read[0]


async def _text_and_notices(
    runtime: Runtime, queue: QueueRef, number: int, entry_id: str | None
) -> tuple[PullRequestText, Mapping[Surface, PostedNotice]] | None:
    """Return the same, and the notices of the submission as they are recorded, in one snapshot."""
    value = await turn.last_value(runtime, queue.id)
    standing = await queue_views.standing_of(runtime, queue, value, number, entry_id)
    if standing is None:
        return None

    def read(session: Tx) -> tuple[PullRequestText, Mapping[Surface, PostedNotice]]:
        text = _text_of(session, runtime, queue, value, standing)
        return text, stored.of_submission(session, queue.id, number, text.entry.id)

    return await runtime.store.read(read)


def _text_of(
    session: Tx, runtime: Runtime, queue: QueueRef, value: MergeQueue, standing: Standing
) -> PullRequestText:
    """Read what is stored about a submission, in one snapshot."""
    entry, repository_url = standing.entry, standing.web_url
    last_run = situation.last_run_of(entry)
    run = None if last_run is None else _run_of(session, queue, value, last_run)
    judging = checked.judging_run_of(entry)
    judged = run if judging == last_run else _run_of(session, queue, value, judging or "")
    tests = failed_tests.NONE
    if run is not None and value.sends_results:
        tests = runtime.links.of(RunFailures).named_in(session, runtime, queue, run)
    landed: Landed | None = None
    pauses: tuple[Recorded, ...] = ()
    if entry.state is EntryState.MERGED:
        landed, pauses = _landing_of(session, queue, entry)
    past = journal.timeline(session, queue.id, entry.pr, entry.id)
    now, options = runtime.clock.now(), runtime.options
    pages = page_addresses.of_queue(options, queue.repo, queue.branch)
    return PullRequestText(
        queue=value,
        entry=entry,
        explained=explain_entry(value, entry, now),
        run=run,
        position=standing.position,
        length=standing.length,
        left=standing.left,
        history=past,
        links=Links(_origin(repository_url), options.public_url, pages),
        now=now,
        version=runtime.options.version,
        tests=tests,
        repository_url=repository_url,
        landed=landed,
        pauses=pauses,
        checked=checked_names.read_table(session, runtime, queue, judged),
        tables=checked_names.tables_in(session, queue, past, value.runs),
    )


def _run_of(session: Tx, queue: QueueRef, value: MergeQueue, run_id: str) -> Run | None:
    """Return a run of the queue, read only if it is over."""
    return value.runs.get(run_id) or runs.run(session, queue.id, run_id)


def _landing_of(
    session: Tx, queue: QueueRef, entry: Entry
) -> tuple[Landed | None, tuple[Recorded, ...]]:
    """Return the proved landing of a merged entry, and the pauses while it was queued."""
    pauses = journal.state_changes_since(session, queue.id, entry.pr, entry.id)
    for each in landings.landings_of_run(session, entry.verified_by or ""):
        is_proved = each.state is LandingState.LANDED and each.entry == entry.id
        if is_proved and each.landed_sha is not None and each.landed_tree is not None:
            return _landed(session, queue, each, each.landed_sha, each.landed_tree), pauses
    return None, pauses


def _landed(session: Tx, queue: QueueRef, record: LandingRecord, sha: Sha, tree: Sha) -> Landed:
    is_update = record.mode == LandMode.CAS.value
    tested = record.tested_tree or record.expected_tree
    landed = Landed(sha, tree, record.expected_tree, tested, is_update)
    if record.is_tested:
        return landed
    tip = runs.tip_test(session, queue.id, record.run, sha)
    return landed if tip is None else replace(landed, tip_test=tip.status)


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


async def _is_placed(
    runtime: Runtime, writing: _Writing, notice: Kept, essence: str | None
) -> bool:
    """Write one notice unless the provider already has this text; return False if it waits.

    `essence`: what of the text is worth an edit, None if all of it is.
    """
    queue, surface = writing.queue, SURFACES[type(notice)]
    known = writing.known.get(surface)
    digest = _digest(notice, essence)
    if known is not None:
        if known.digest == digest:
            return True
        if isinstance(notice, StateLabel) and known.digest == stored.EDITED:
            notice = replace(notice, others=await _own_labels(runtime, queue, notice.number))
        if known.provider_id == stored.UNREAD:
            notice = replace(notice, first=False)
        elif not await _is_of_other_queue(runtime, queue, notice, known.provider_id):
            notice = replace(notice, known_id=known.provider_id)
    if _is_left_out(runtime, queue.repo, writing.text, notice):
        if notice.first:
            runtime.telemetry.count("headgate_notices_left_out_total", surface.value)
        return False
    runtime.crash_points.reach("act.tell.before_send")
    provider_id = await runtime.providers[queue.repo.host].say(queue.repo, notice)
    runtime.crash_points.reach("act.tell.after_send")
    if provider_id is not None:
        now = PostedNotice(provider_id, digest)
        writing.posted[writing.key(surface)] = WrittenNotice(now, known)
    runtime.crash_points.reach("act.tell.before_settle")
    return True


async def _is_of_other_queue(
    runtime: Runtime, queue: QueueRef, notice: Kept, known_id: str
) -> bool:
    """Return whether the state label of before is by now that of another queue, which keeps it."""
    if not isinstance(notice, StateLabel):
        return False
    return known_id in await _labels_of_others(runtime, queue, notice.number)


async def _own_labels(runtime: Runtime, queue: QueueRef, number: int) -> tuple[str, ...]:
    """Return the state labels that this queue may have put on a pull request, and no other has."""
    return tuple(sorted(notices.LABELS - await _labels_of_others(runtime, queue, number)))


async def _labels_of_others(runtime: Runtime, queue: QueueRef, number: int) -> set[str | None]:
    """Return the state labels that other queues keep on a pull request."""
    others = await turn.queues_with(runtime, queue.repository_id, number)
    values = [await turn.last_value(runtime, each.id) for each in others if each.id != queue.id]
    entries = [value.entries[number] for value in values if number in value.entries]
    return {notices.label_of(entry.state) for entry in entries}


def _is_left_out(runtime: Runtime, repo: RepoRef, text: PullRequestText, notice: Kept) -> bool:
    """Return whether a text waits: never a final one, and the check run after the others.

    That the limits delay its test branch is written too, where a text exists already.
    """
    is_building = text.run is not None and text.run.phase is RunPhase.BUILDING
    is_delayed = is_building and holds.has(text.queue, HoldReason.PROVIDER_LIMIT)
    is_told = is_delayed and not notice.is_refresh and notice.known_id is not None
    if notice.is_final or is_told:
        return False
    is_check = isinstance(notice, CheckReport)
    is_said_twice = not is_check and text.queue.config.status_check_enabled
    limit = Pressure.HIGH if is_said_twice else Pressure.CRITICAL
    return _pressure(runtime, repo) >= limit


def _pressure(runtime: Runtime, repo: RepoRef) -> Pressure:
    budget = runtime.providers[repo.host].budget(repo)
    return Pressure.NONE if budget is None else budget.pressure


def _essence(text: PullRequestText) -> str:
    """Return the status comment without place and time left, which move by themselves."""
    return notices.status_comment(replace(text, position=None, left=None))


def _digest(notice: Kept, essence: str | None) -> str:
    """Return a digest of what is said, which does not depend on how it is written."""
    return _hash(essence or repr(replace(notice, first=False, is_refresh=False)))


def _hash(said: str) -> str:
    return hashlib.sha256(said.encode()).hexdigest()


def _is_told_above(writing: _Writing) -> bool:
    """Return whether the status comment shows the end of this submission."""
    posted = writing.posted.get(writing.key(Surface.COMMENT))
    placed = writing.known.get(Surface.COMMENT) if posted is None else posted.now
    return placed is not None and placed.digest == _hash(_essence(writing.text))


async def _farewell(runtime: Runtime, writing: _Writing) -> None:
    """Announce the end of a submission: a failure comment if it was removed.

    A landing is a reaction to the command where no comment tells it. The queue's label stays after
    a landing and is removed otherwise, so that adding it again is an event.
    """
    queue, text = writing.queue, writing.text
    entry = text.entry
    if text.queue.config.comments_enabled and notices.is_announced(text):
        body = notices.failure_comment(text, is_above=_is_told_above(writing))
        reply = Reply(entry.pr, f"left-{entry.id}", body, first=writing.first, is_final=True)
        await _once(runtime, queue, text, reply)
    if entry.state is EntryState.MERGED:
        await _settle(runtime, queue, text)
    if entry.state is EntryState.MERGED and not text.queue.config.comments_enabled:
        asked = writing.known.get(Surface.COMMAND)
        if asked is not None:
            await _react(runtime, queue.repo, Reaction(entry.pr, asked.provider_id, Emoji.MERGED))
    if entry.state is not EntryState.MERGED:
        await _remove_queue_label(runtime, queue, entry.pr)


async def _remove_queue_label(runtime: Runtime, queue: QueueRef, number: int) -> None:
    """Remove the label of a submission that is over, unless a person removed it."""
    key = NoticeKey(queue.id, number, Surface.QUEUE_LABEL, "")
    seen = await runtime.store.read(_label_of_ended, runtime, key)
    if seen is None:
        return
    removal = LabelRemoval(number, seen.digest, seen.provider_id)
    await _remove_label(runtime, queue.repository_id, queue.repo, removal)

    def note_removal(session: Tx) -> None:
        if stored.find(session, key) == seen:
            note_queue_label(session, queue.id, number, seen.provider_id, "")

    await runtime.store.run(note_removal)


def _label_of_ended(session: Tx, runtime: Runtime, key: NoticeKey) -> PostedNotice | None:
    """Return the label of a submission that is over.

    One snapshot of label and queue: a label that was put back came into it with its submission.
    """
    seen = stored.find(session, key)
    if seen is None or not seen.digest:
        return None
    with suppress(turn.QueueGone):
        if key.pr in turn.newest(session, runtime, key.queue_id)[1].entries:
            return None
    return seen


async def _remove_label(
    runtime: Runtime, repository_id: int, repo: RepoRef, removal: LabelRemoval
) -> None:
    """Remove a label that a person added, unless somebody has changed it since.

    A person may put it back between the read and the removal: what happened is read afterwards, and
    a label that counts is put back. Raises OutcomeUnknown while the provider does not show that the
    label was removed.
    """
    provider = runtime.providers[repo.host]
    change = await provider.label_change(repo, removal.number, removal.label)
    if change is not None and change.id == removal.change and not change.undone:
        if await provider.say(repo, removal) is None:
            return
        shown = await provider.label_change(repo, removal.number, removal.label)
        if shown == change:
            raise OutcomeUnknown("The provider does not show yet that a label was removed.")
        change = shown
    is_taken = change is not None and change.id != removal.change and change.undone
    if change is None or not is_taken:
        return
    if await runtime.store.read(_counts, repository_id, removal.number, change):
        await provider.say(repo, LabelReturn(removal.number, removal.label))


def _counts(session: Tx, repository_id: int, number: int, change: LabelChange) -> bool:
    """Return whether a label is that of a submission, or a command that was not answered."""
    for queue in stored_queues.queues_of(session, repository_id):
        seen = stored.find(session, NoticeKey(queue.id, number, Surface.QUEUE_LABEL))
        if seen is not None and seen.provider_id == change.id:
            return bool(seen.digest)
    source, ids = AskSource.LABEL.value, [change.id]
    return not answered_commands.answered_among(session, repository_id, source, ids)


async def _settle(runtime: Runtime, queue: QueueRef, text: PullRequestText) -> None:
    """Make the provider show it as merged if it does not by itself (docs/design/landing.md 7)."""
    entry, method, landed = text.entry, text.queue.config.merge_method, text.landed
    may_show = method is MergeMethod.MERGE_COMMIT
    is_update = landed is not None and landed.is_update
    if entry.landed_sha is not None and (may_show or is_update):
        provider = runtime.providers[queue.repo.host]
        sha = entry.landed_sha
        base = entry.facts.base
        pull = LandedPull(entry.pr, entry.head, sha, queue.branch, base, may_show)
        await provider.settle_merged(queue.repo, pull)


async def _once(runtime: Runtime, queue: QueueRef, text: PullRequestText, reply: Reply) -> None:
    key = NoticeKey(queue.id, text.entry.pr, Surface.FINAL_COMMENT, text.entry.id)
    if await runtime.store.read(stored.find, key) is not None:
        return
    provider_id = await runtime.providers[queue.repo.host].say(queue.repo, reply)
    await runtime.store.run(stored.record, key, PostedNotice(provider_id or "dropped", ""))


async def is_hushed(runtime: Runtime, queue_id: int | None) -> bool:
    """Return whether answers for a queue are not sent, because it went into shadow meanwhile."""
    if queue_id is None:
        return False
    with suppress(NotFound):
        return (await turn.last_value(runtime, queue_id)).config.shadow
    return False


async def say_plain(
    runtime: Runtime, repository_id: int, notice: Reply | Reaction | LabelRemoval, *, first: bool
) -> None:
    """Send an answer to a command, or a part of one; `first` as for `tell`."""
    repository = await runtime.store.read(access.repository, repository_id)
    provider = runtime.provider_of(repository.ref.host)
    if isinstance(notice, Reaction):
        await _react(runtime, repository.ref, notice)
    elif isinstance(notice, LabelRemoval):
        await _remove_label(runtime, repository.id, repository.ref, notice)
    else:
        await provider.say(repository.ref, replace(notice, first=first))


async def _react(runtime: Runtime, repo: RepoRef, reaction: Reaction) -> None:
    """Send a reaction; leave out an ornament while little of the limits is left."""
    if reaction.emoji in ORNAMENTS and _pressure(runtime, repo) >= Pressure.HIGH:
        runtime.telemetry.count("headgate_notices_left_out_total", "reaction")
        return
    await runtime.providers[repo.host].say(repo, reaction)


def note_completed_check(session: Tx, queue: QueueRef, step: LandStep, provider_id: str) -> None:
    """Note that a landing completes the check run of a submission, whatever it says."""
    key = NoticeKey(queue.id, step.pr, Surface.CHECK, step.entry)
    stored.record(session, key, PostedNotice(provider_id, stored.EDITED))


def note_unread(session: Tx, queue_id: int, tell: Tell) -> None:
    """Note that texts of a submission may be there that are not recorded: an answer was lost.

    So who writes next looks for them, and writes again those that are recorded.
    """
    for surface in SURFACES.values():
        key = NoticeKey(queue_id, tell.pr, surface, tell.entry)
        known = stored.find(session, key)
        provider_id = stored.UNREAD if known is None else known.provider_id
        stored.record(session, key, PostedNotice(provider_id, stored.EDITED))


def write_checks_again(
    session: Tx, runtime: Runtime, queue: QueueRef, entries: Iterable[Entry], now: datetime
) -> set[Lane]:
    """Have check runs written again that a landing has completed, as it did not happen.

    Return the lane of these effects.
    """
    items = [
        turn.item(runtime, queue, Tell(entry.pr, entry.id, entry.state, entry.reason), now)
        for entry in entries
        if (known := stored.find(session, NoticeKey(queue.id, entry.pr, Surface.CHECK, entry.id)))
        and known.digest == stored.EDITED
    ]
    if items:
        outbox.append(session, queue.repository_id, queue.id, 0, items)
    return {item.lane for item in items}


def remember_command(session: Tx, queue_id: int, number: int, entry: str, comment_id: str) -> None:
    """Store which comment submitted an entry, for the reaction at its end."""
    key = NoticeKey(queue_id, number, Surface.COMMAND, entry)
    stored.record(session, key, PostedNotice(comment_id, ""))


def note_queue_label(session: Tx, queue_id: int, number: int, change_id: str, label: str) -> None:
    """Store the newest change of the queue's label that was read; `label` empty: it was removed."""
    key = NoticeKey(queue_id, number, Surface.QUEUE_LABEL, "")
    stored.record(session, key, PostedNotice(change_id, label))

"""Write to pull requests: status comment, check run, replies, reactions.

Best effort: no notice blocks or fails a landing (docs/design/provider.md 14). Texts: `wording`.
"""

import hashlib
from dataclasses import replace
from urllib.parse import urlsplit

from service.accounts.store import access
from service.database.database import Tx
from service.database.records import LandingState, Placed, Spot, Surface
from service.mergequeue.engine.model import Entry
from service.mergequeue.engine.outputs import Recorded, Tell
from service.mergequeue.engine.states import FINAL, EntryState
from service.mergequeue.operations import queue_views, turn
from service.mergequeue.operations.run_failures import RunFailures
from service.mergequeue.store import journal, landings, runs
from service.mergequeue.store import notices as stored
from service.mergequeue.wording import failed_tests, notices
from service.mergequeue.wording.situation import Landed, PullRequestText
from service.provider.errors import ProviderError
from service.provider.values import (
    CheckReport,
    Emoji,
    Reaction,
    Reply,
    StatusComment,
)
from service.runtime import Runtime
from service.text.markdown import Links
from service.vocabulary import MergeMethod, QueueRef


async def tell(runtime: Runtime, queue: QueueRef, action: Tell, *, first: bool) -> None:
    """Bring comment and check run of one submission up to date; unchanged texts cost nothing.

    Writes the present texts, not those of the time of the action: a later change wins. `first`:
    no earlier attempt can have written a text, so the provider is not searched. A refresh waits
    where the provider limits how much is written; the end of a submission does not.
    """
    text = await text_of(runtime, queue, action.pr, action.entry)
    if text is None:
        return
    config = text.queue.config
    newest = text.queue.entries.get(action.pr)
    superseded = newest is not None and newest.id != action.entry
    is_refresh = action.is_refresh and text.entry.state is action.state
    if config.comments_enabled and not superseded:
        body = notices.status_comment(text)
        marker = notices.status_marker(queue.branch)
        comment = StatusComment(action.pr, marker, body, first=first, is_refresh=is_refresh)
        await _place(runtime, queue, text, comment)
    if config.status_check_enabled:
        report = replace(notices.check_report(text), first=first, is_refresh=is_refresh)
        await _place(runtime, queue, text, report)
    if text.entry.state in FINAL:
        await _farewell(runtime, queue, text, first=first)


async def text_of(
    runtime: Runtime, queue: QueueRef, number: int, entry_id: str | None
) -> PullRequestText | None:
    """Return everything that the texts about one submission need; None if it is unknown.

    `entry_id` None: the newest submission.
    """
    view = await queue_views.pull_request_view(runtime, queue, number, entry_id)
    if view is None:
        return None
    value = await turn.value(runtime, queue.id)
    repository = await runtime.store.read(access.repository, queue.repository_id)
    history = await runtime.store.read(journal.timeline, queue.id, number, view.entry.id)
    last_run = view.entry.run or view.entry.verified_by or view.entry.detail.run
    run = None if last_run is None else await runtime.store.read(runs.run, queue.id, last_run)
    tests = failed_tests.NONE
    if run is not None and value.sends_results:
        named_in = runtime.links.of(RunFailures).named_in
        tests = await runtime.store.read(named_in, runtime, queue, run)
    landed: Landed | None = None
    pauses: tuple[Recorded, ...] = ()
    if view.entry.state is EntryState.MERGED:
        landed, pauses = await runtime.store.read(_landing_of, queue, view.entry)
    now = runtime.clock.now()
    return PullRequestText(
        queue=value,
        entry=view.entry,
        explained=queue_views.explain_entry(value, view.entry, now),
        run=run,
        position=view.position,
        length=view.length,
        left=view.eta,
        history=history,
        links=Links(_origin(repository.url), runtime.options.public_url),
        now=now,
        version=runtime.options.version,
        tests=tests,
        repository_url=repository.url,
        landed=landed,
        pauses=pauses,
    )


def _landing_of(
    session: Tx, queue: QueueRef, entry: Entry
) -> tuple[Landed | None, tuple[Recorded, ...]]:
    """Return the proved landing of a merged entry, and the pauses while it was queued."""
    pauses = journal.state_changes_since(session, queue.id, entry.pr, entry.id)
    for each in landings.of_run(session, entry.verified_by or ""):
        is_proved = each.state is LandingState.LANDED and each.entry == entry.id
        if is_proved and each.landed_sha is not None and each.landed_tree is not None:
            return Landed(each.landed_sha, each.landed_tree, each.expected_tree), pauses
    return None, pauses


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


async def _place(
    runtime: Runtime,
    queue: QueueRef,
    text: PullRequestText,
    notice: StatusComment | CheckReport,
) -> None:
    """Write one notice unless the provider already has exactly this text."""
    is_comment = isinstance(notice, StatusComment)
    surface = Surface.COMMENT if is_comment else Surface.CHECK
    entry = "" if is_comment else text.entry.id
    spot = Spot(queue.id, text.entry.pr, surface, entry)
    known = await runtime.store.read(stored.placed, spot)
    digest = _digest(notice)
    if known is not None:
        if known.digest == digest:
            return
        notice = replace(notice, known_id=known.provider_id)
        if isinstance(notice, StatusComment) and known.digest == stored.EDITED:
            notice = replace(notice, is_restored=True)
    runtime.boundary.reach("act.tell.before_send")
    provider_id = await runtime.providers[queue.repo.host].say(queue.repo, notice)
    runtime.boundary.reach("act.tell.after_send")
    if provider_id is not None:
        await runtime.store.run(stored.place, spot, Placed(provider_id, digest))
    runtime.boundary.reach("act.tell.before_settle")


def _digest(notice: StatusComment | CheckReport) -> str:
    """Return a digest of the text that does not depend on how it is written."""
    return hashlib.sha256(repr(replace(notice, first=False, is_refresh=False)).encode()).hexdigest()


async def _farewell(
    runtime: Runtime, queue: QueueRef, text: PullRequestText, *, first: bool
) -> None:
    """Announce the end of a submission: a failure comment if it was removed, else a reaction."""
    entry = text.entry
    provider = runtime.providers[queue.repo.host]
    if text.queue.config.comments_enabled and notices.is_announced(text):
        body = notices.failure_comment(text)
        await _once(runtime, queue, text, Reply(entry.pr, f"left-{entry.id}", body, first=first))
    if entry.state is EntryState.MERGED:
        await _settle(runtime, queue, text)
        spot = Spot(queue.id, entry.pr, Surface.COMMAND, entry.id)
        asked = await runtime.store.read(stored.placed, spot)
        if asked is not None:
            await provider.say(queue.repo, Reaction(entry.pr, asked.provider_id, Emoji.MERGED))


async def _settle(runtime: Runtime, queue: QueueRef, text: PullRequestText) -> None:
    """Make the provider show it as merged if it does not by itself (docs/design/landing.md 7)."""
    entry, method = text.entry, text.queue.config.merge_method
    if method is MergeMethod.MERGE_COMMIT and entry.landed_sha is not None:
        provider = runtime.providers[queue.repo.host]
        await provider.settle_merged(queue.repo, entry.pr, entry.head, entry.landed_sha)


async def _once(runtime: Runtime, queue: QueueRef, text: PullRequestText, reply: Reply) -> None:
    spot = Spot(queue.id, text.entry.pr, Surface.FAREWELL, text.entry.id)
    if await runtime.store.read(stored.placed, spot) is not None:
        return
    provider_id = await runtime.providers[queue.repo.host].say(queue.repo, reply)
    await runtime.store.run(stored.place, spot, Placed(provider_id or "dropped", ""))


async def say_plain(
    runtime: Runtime, repository_id: int, notice: Reply | Reaction, *, first: bool
) -> None:
    """Send a reply or a reaction to a command; `first` as for `tell`."""
    if isinstance(notice, Reply):
        notice = replace(notice, first=first)
    repository = await runtime.store.read(access.repository, repository_id)
    provider = runtime.providers.get(repository.ref.host)
    if provider is None:
        raise ProviderError(f"No provider is set for {repository.ref.host}.")
    await provider.say(repository.ref, notice)


def remember_command(session: Tx, queue_id: int, number: int, entry: str, comment_id: str) -> None:
    """Store which comment submitted an entry, for the reaction at its end."""
    spot = Spot(queue_id, number, Surface.COMMAND, entry)
    stored.place(session, spot, Placed(comment_id, ""))

"""Lists on both databases: parts follow each other whatever happens in between."""

from dataclasses import replace
from datetime import timedelta

import pytest

from service.accounts import audit_log, repositories
from service.accounts.audit_log import AuditFilter
from service.accounts.store import audit
from service.accounts.store.audit import AuditEntry
from service.database.paging import PageSelection
from service.errors import Invalid, Malformed, NotFound
from service.http.callers import Caller
from service.mergequeue.engine import targets
from service.mergequeue.engine.states import EntryState, QueueState
from service.mergequeue.operations import (
    impacted_targets,
    lists,
    overview,
    pull_requests,
    queue_access,
    queues,
)
from service.mergequeue.operations.lists import PullRequestFilter, RunPage, RunRequest
from service.mergequeue.operations.overview import Scope
from service.mergequeue.operations.pull_requests import SubmitOptions
from service.mergequeue.operations.queues import QueueRequest
from service.mergequeue.operations.views import TimelineEvent
from service.runtime import Runtime
from service.vocabulary import SYSTEM, QueueRef, RepoId, RepoRef, Role, Sha

ALL = PullRequestFilter()


async def submitted(runtime: Runtime, queue: QueueRef, *numbers: int) -> None:
    for number in numbers:
        await pull_requests.submit(runtime, queue, number, SubmitOptions(), SYSTEM)


async def cancelled(runtime: Runtime, queue: QueueRef, *numbers: int) -> None:
    await submitted(runtime, queue, *numbers)
    for number in numbers:
        await pull_requests.cancel(runtime, queue, number, SYSTEM)


async def part_of(
    runtime: Runtime, queue: QueueRef, cursor: str | None, wanted: PullRequestFilter = ALL
) -> tuple[list[int], str | None]:
    """Two numbers and where to go on."""
    part = await lists.list_pull_requests(runtime, queue, wanted, PageSelection(2, cursor))
    return [view.entry.pr for view in part.rows], part.next_cursor


async def test_what_ended_in_one_instant_is_listed_once_each(runtime: Runtime, queue: QueueRef):
    await cancelled(runtime, queue, 1, 2, 3, 4, 5)
    first, cursor = await part_of(runtime, queue, None)
    await cancelled(runtime, queue, 6)
    second, cursor = await part_of(runtime, queue, cursor)
    third, cursor = await part_of(runtime, queue, cursor)
    assert (first, second, third, cursor) == ([5, 4], [3, 2], [1], None)


async def test_a_row_that_is_gone_is_still_a_place_to_go_on_from(runtime: Runtime, queue: QueueRef):
    await submitted(runtime, queue, 1, 2, 3, 4)
    first, cursor = await part_of(runtime, queue, None)
    await pull_requests.cancel(runtime, queue, 2, SYSTEM)
    second, cursor = await part_of(runtime, queue, cursor)
    assert (first, second, cursor) == ([4, 3], [2, 1], None)


async def test_a_rare_state_is_found_among_all_others(runtime: Runtime, queue: QueueRef):
    await cancelled(runtime, queue, 1, 2, 3)
    await submitted(runtime, queue, 3)
    only = replace(ALL, states=frozenset({EntryState.CANCELLED}))
    first, cursor = await part_of(runtime, queue, None, only)
    assert (first, await part_of(runtime, queue, cursor, only)) == ([3, 2], ([1], None))
    merged = replace(ALL, states=frozenset({EntryState.MERGED}))
    assert await part_of(runtime, queue, None, merged) == ([], None)


async def test_a_span_of_time_takes_its_first_instant_and_not_its_last(
    runtime: Runtime, queue: QueueRef
):
    await cancelled(runtime, queue, 1)
    at = runtime.clock.now()
    later = at + timedelta(microseconds=1)
    assert await part_of(runtime, queue, None, replace(ALL, since=at, until=later)) == ([1], None)
    assert await part_of(runtime, queue, None, replace(ALL, until=at)) == ([], None)
    assert await part_of(runtime, queue, None, replace(ALL, since=later)) == ([], None)
    with pytest.raises(Invalid) as refused:
        await part_of(runtime, queue, None, replace(ALL, since=later, until=at))
    assert refused.value.code == "invalid_time_range"


async def test_a_cursor_grows_too_old(runtime: Runtime, queue: QueueRef):
    await submitted(runtime, queue, 1, 2, 3)
    _, cursor = await part_of(runtime, queue, None)
    await runtime.clock.sleep(24 * 3600)
    assert await part_of(runtime, queue, cursor) == ([1], None)
    await runtime.clock.sleep(1)
    with pytest.raises(Malformed) as refused:
        await part_of(runtime, queue, cursor)
    assert refused.value.code == "page_token_expired"


async def test_of_each_pull_request_the_newest_submission_is_shown(
    runtime: Runtime, queue: QueueRef
):
    await cancelled(runtime, queue, 1, 2)
    await cancelled(runtime, queue, 2)
    await submitted(runtime, queue, 1, 3)
    found = await lists.newest_submissions(runtime, queue, [3, 9, 2, 1, 3], include_timeline=True)
    assert [view.entry.pr for view in found.views] == [3, 2, 1]
    assert found.missing == (9,)
    for view in found.views:
        alone = await pull_requests.status(runtime, queue, view.entry.pr, include_timeline=True)
        assert view == alone


async def test_events_come_in_parts_numbered_through(runtime: Runtime, queue: QueueRef):
    await cancelled(runtime, queue, 1)
    view = await pull_requests.status(runtime, queue, 1, include_timeline=True)
    assert view.timeline
    seen: list[TimelineEvent] = []
    cursor = None
    while cursor is not None or not seen:
        part = await lists.list_events(runtime, queue, 1, PageSelection(1, cursor))
        seen += part.events
        cursor = part.next_cursor
    assert tuple(seen) == view.timeline
    with pytest.raises(NotFound) as refused:
        await lists.list_events(runtime, queue, 2, PageSelection(1))
    assert refused.value.code == "never_submitted"


def caller_of(queue: QueueRef, only: frozenset[int] | None = None) -> Caller:
    """Somebody of the queue's organization."""
    return Caller("t", "t", queue.org_id, "octo", queue.repo.host, Role.READ, only)


async def test_queues_come_by_repository_and_branch_and_only_those_that_may_be_seen(
    runtime: Runtime, queue: QueueRef, provider
):
    fresh = await provider.repository(provider.ref)
    own = await runtime.store.run(repositories.upsert, fresh)
    name = RepoRef(provider.ref.host, provider.ref.owner, "gears")
    other = await runtime.store.run(
        repositories.upsert, replace(fresh, ref=name, id=RepoId(provider.ref.host, "4711"))
    )
    for record, branch in ((other, "main"), (own, "dev"), (own, "zeta")):
        await queues.create(runtime, record, branch, QueueRequest({}, QueueState.PAUSED), SYSTEM)
    await submitted(runtime, queue, 1)

    async def found(only: frozenset[int] | None = None, ref: RepoRef | None = None) -> list[str]:
        rows: list[str] = []
        caller, cursor = caller_of(queue, only), None
        while cursor is not None or not rows:
            part = await lists.list_queues(runtime, caller, ref, PageSelection(1, cursor))
            rows += [f"{row.repo.name} {row.branch} {row.depth}" for row in part.rows]
            cursor = part.next_cursor
        return rows

    widgets = [f"{provider.ref.name} {each}" for each in ("dev 0", "main 1", "zeta 0")]
    assert await found() == [*widgets, "gears main 0"]
    assert await found(frozenset({other.id})) == ["gears main 0"]
    assert await found(ref=provider.ref) == widgets
    with pytest.raises(NotFound):
        await found(frozenset({other.id}), provider.ref)
    nobody = replace(caller_of(queue), org_id=queue.org_id + 1)
    assert (await lists.list_queues(runtime, nobody, None, PageSelection(50))).rows == ()


async def test_a_queue_without_runs_lists_none(runtime: Runtime, queue: QueueRef):
    assert await lists.list_runs(
        runtime, queue, RunRequest(None, None, PageSelection(50))
    ) == RunPage((), 0, None)


async def test_the_largest_number_there_may_be_is_a_number(runtime: Runtime, queue: QueueRef):
    largest = 4_294_967_295
    wish = RunRequest(largest, None, PageSelection(1))
    assert (await lists.newest_submissions(runtime, queue, [largest])).missing == (largest,)
    assert await lists.list_runs(runtime, queue, wish) == RunPage((), 0, None)
    upload = impacted_targets.Upload(largest, Sha("a" * 40), targets.ALL)
    assert (await impacted_targets.set_targets(runtime, queue, upload, SYSTEM)).number == largest
    await cancelled(runtime, queue, largest)
    (view,) = (await lists.newest_submissions(runtime, queue, [largest])).views
    assert view.entry.state is EntryState.CANCELLED
    assert (await lists.list_events(runtime, queue, largest, PageSelection(10))).events


async def test_the_audit_log_is_read_once_while_it_grows(runtime: Runtime, queue: QueueRef):
    wanted = AuditFilter(action="deed.")

    async def happened(number: int) -> None:
        row = AuditEntry(
            runtime.clock.now(), queue.org_id, SYSTEM, f"deed.{number}", "x", "allowed"
        )
        await runtime.store.run(audit.append, row)

    for number in range(5):
        await happened(number)
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = await audit_log.entries(runtime, [queue.org_id], wanted, PageSelection(2, cursor))
        seen += [entry.action for entry in page.rows]
        cursor = page.next_cursor
        await happened(len(seen) + 10)
    assert seen == [f"deed.{number}" for number in (4, 3, 2, 1, 0)]
    first = await audit_log.entries(runtime, None, wanted, PageSelection(2))
    for other in (AuditFilter(), replace(wanted, since=runtime.clock.now())):
        with pytest.raises(Malformed, match="`cursor` is not a valid page token"):
            await audit_log.entries(runtime, None, other, PageSelection(2, first.next_cursor))


async def test_the_first_page_lists_queues_once_while_they_come_and_go(
    runtime: Runtime, queue: QueueRef, provider, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(overview, "QUEUES_MAX", 2)
    own = await runtime.store.run(repositories.upsert, await provider.repository(provider.ref))

    async def made(branch: str) -> QueueRef:
        request = QueueRequest({}, QueueState.PAUSED)
        await queues.create(runtime, own, branch, request, SYSTEM)
        return await queue_access.queue_in(runtime, own, branch)

    there = [await made(branch) for branch in ("a", "b", "c", "y", "z")]
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = await overview.load_overview(runtime, Scope(), cursor)
        seen += [each.ref.branch for each in page.queues]
        cursor = page.next_cursor
        if "b" in seen and "c" not in seen:
            await queues.delete(runtime, there[0], SYSTEM)
            await queues.delete(runtime, there[3], SYSTEM)
            await made("aa")
            await made("x")
    assert seen == ["a", "b", "c", "main", "x", "z"]
    with pytest.raises(Malformed, match="`cursor` is not a valid page token"):
        await overview.load_overview(runtime, Scope(), "0/main")

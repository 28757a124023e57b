"""What is kept with a deed: its audit row, its request, and a token that still is valid."""

from dataclasses import replace

import pytest
import structlog

from service.accounts import access, tokens
from service.accounts.store import access as stored
from service.accounts.store import audit
from service.accounts.store.audit import AuditEntry
from service.accounts.tokens import TokenRequest
from service.database.database import Tx
from service.errors import Unauthenticated
from service.http.callers import Caller
from service.mergequeue.engine import targets
from service.mergequeue.operations import announcements, impacted_targets, queue_views, queues
from service.mergequeue.operations.announcements import TurnResult
from service.mergequeue.operations.impacted_targets import Upload
from service.mergequeue.operations.queues import HoldRequest, QueueRequest
from service.mergequeue.store import pull_requests
from service.mergequeue.store import queues as stored_queues
from service.runtime import Runtime
from service.vocabulary import SYSTEM, Actor, QueueRef, Role
from tests.harness.values import sha_of

HEAD = sha_of("head", 7)
UPLOAD = Upload(7, HEAD, targets.ALL)


async def a_caller(runtime: Runtime, queue: QueueRef) -> Caller:
    """Whoever holds a fresh token of the queue's organization."""
    org = await runtime.store.read(_slug_of, queue)
    wish = TokenRequest(queue.repo.host, org, "ops", Role.ADMIN)
    made = await tokens.create_token(runtime, wish, SYSTEM)
    return await access.look_up(runtime, made.secret)


def _slug_of(session: Tx, queue: QueueRef) -> str:
    return stored.repository(session, queue.repository_id).ref.owner


@pytest.fixture
async def caller(runtime: Runtime, queue: QueueRef) -> Caller:
    """Who asks."""
    return await a_caller(runtime, queue)


@pytest.fixture
def actor(caller: Caller) -> Actor:
    """The same as an actor."""
    return caller.actor


async def newest(runtime: Runtime, queue: QueueRef) -> AuditEntry:
    """The organization's newest deed."""
    return (await runtime.store.read(audit.newest, queue.org_id, 1))[0]


async def create(runtime: Runtime, queue: QueueRef, actor: Actor) -> None:
    record = await runtime.store.read(stored.repository, queue.repository_id)
    await queues.create(runtime, record, "release/2", QueueRequest({}), actor)


async def upload(runtime: Runtime, queue: QueueRef, actor: Actor) -> None:
    await impacted_targets.set_targets(runtime, queue, UPLOAD, actor)


async def hold(runtime: Runtime, queue: QueueRef, actor: Actor) -> None:
    await queues.add_hold(runtime, queue, HoldRequest("release"), actor)


async def issue(runtime: Runtime, queue: QueueRef, actor: Actor) -> None:
    org = await runtime.store.read(_slug_of, queue)
    await tokens.create_token(runtime, TokenRequest(queue.repo.host, org, "x", Role.CI), actor)


async def rotate(runtime: Runtime, queue: QueueRef, actor: Actor) -> None:
    other = await a_caller(runtime, queue)
    await tokens.rotate_token(runtime, other.token_id, 1, actor)


async def revoke(runtime: Runtime, queue: QueueRef, actor: Actor) -> None:
    other = await a_caller(runtime, queue)
    await tokens.revoke_token(runtime, other.token_id, actor)


DEEDS = [
    (create, "queue.create"),
    (upload, "pull_request.set_targets"),
    (hold, "queue.hold"),
    (issue, "token.create"),
    (rotate, "token.rotate"),
    (revoke, "token.revoke"),
]


@pytest.mark.parametrize(("deed", "action"), DEEDS, ids=[name for _, name in DEEDS])
async def test_a_deed_is_written_down_with_who_did_it_at_which_request(
    runtime, queue, actor, deed, action
):
    with structlog.contextvars.bound_contextvars(request_id="one"):
        await deed(runtime, queue, actor)
    row = await newest(runtime, queue)
    assert (row.action, row.actor, row.decision) == (action, actor, "allowed")
    assert row.request_id == "one"
    assert row.org_id == queue.org_id


@pytest.mark.parametrize("deed", [deed for deed, _ in DEEDS])
async def test_a_token_that_was_revoked_on_the_way_does_nothing_any_more(
    runtime, queue, caller, deed
):
    await tokens.revoke_token(runtime, caller.token_id, SYSTEM)
    with pytest.raises(Unauthenticated):
        await deed(runtime, queue, caller.actor)
    assert (await newest(runtime, queue)).actor == SYSTEM
    known = await runtime.store.read(stored_queues.queues_of, queue.repository_id)
    assert [each.branch for each in known] == ["main"]
    kept = await runtime.store.read(pull_requests.targets_of, queue.repository_id, [(7, HEAD)])
    assert not kept


def test_a_scope_shows_its_repositories_and_none_others():
    everything = Caller("t", "ops", 1, "octo", "github.com", Role.READ, None)
    assert access.sees(everything, 5)
    narrow = replace(everything, repositories=frozenset({5}))
    assert access.sees(narrow, 5)
    assert not access.sees(narrow, 6)


async def test_what_follows_from_a_turn_is_told_before_its_commit(runtime, queue, monkeypatch):
    results: list[TurnResult] = []
    monkeypatch.setattr(announcements, "announce", lambda *given: results.append(given[2]))
    await queues.add_hold(runtime, queue, HoldRequest("release"), SYSTEM)
    (result,) = results
    assert result.ref == queue
    assert result.before is not None
    assert (len(result.before.holds), len(result.whole.queue.holds)) == (0, 1)
    assert result.whole.queue.revision == result.before.revision + 1
    assert [type(each.event).__name__ for each in result.whole.events] == ["HoldPlaced"]


async def test_a_new_queue_has_nothing_before_it(runtime, queue, monkeypatch):
    results: list[TurnResult] = []
    monkeypatch.setattr(announcements, "announce", lambda *given: results.append(given[2]))
    await create(runtime, queue, SYSTEM)
    assert results[0].before is None
    assert (results[0].ref.branch, results[0].whole.queue.version) == ("release/2", 1)
    assert all(each.before is not None for each in results[1:])


async def test_a_turn_is_undone_with_what_could_not_be_kept(runtime, queue, monkeypatch):
    def full(*_: object) -> None:
        raise Unauthenticated("of the test")

    monkeypatch.setattr(announcements, "announce", full)
    with pytest.raises(Unauthenticated):
        await queues.add_hold(runtime, queue, HoldRequest("release"), SYSTEM)
    monkeypatch.undo()
    assert not (await queue_views.queue_view(runtime, queue)).holds

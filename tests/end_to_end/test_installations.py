"""What happens to an installation or a repository, and what its queue does meanwhile."""

import asyncio
from typing import Any

import pytest

from service.accounts import installations
from service.accounts.store import audit
from service.mergequeue.engine.reasons import HoldReason
from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import pull_requests, reconcile, turn
from service.mergequeue.operations import queues as queue_operations
from service.mergequeue.operations.pull_requests import Requester
from service.mergequeue.store import queues
from service.process import signals
from service.provider.signals import RemovedWhy, RepositoryRemoved, Where
from service.vocabulary import SYSTEM, RepoId, RepoRef
from tests.harness.world import REPO, WorldOptions

HOST = "github.localhost"
UNAVAILABLE, NO_PERMISSION = HoldReason.REPOSITORY_UNAVAILABLE, HoldReason.PERMISSION_LOST


@pytest.fixture
def world_options():
    """The service is told by events alone: no sweep comes in time."""
    return WorldOptions(settings={"period_queues_s": 3600, "period_idle_s": 3600})


async def paused_entry(world):
    """A pull request that nobody submitted, beside a queue that rests."""
    await world.settle()
    await world.make_queue()
    number = await world.open()
    await world.settle()
    return number


async def lands(world, number):
    await world.comment("/merge", on=number)
    await world.settle()
    assert await world.state(number) == "MERGED"


async def holds(world, branch="main"):
    return {one.reason: one.text for one in (await world.value(branch)).holds}


STOPS: list[tuple[str, tuple[dict[str, Any], dict[str, Any]], HoldReason, str]] = [
    ("suspend", ({}, {"suspended": False}), NO_PERMISSION, "suspended"),
    ("archive", ({}, {"archived": False}), UNAVAILABLE, "archived"),
    ("select", ({"names": []}, {}), UNAVAILABLE, "removed from the repository"),
]


@pytest.mark.parametrize(("act", "there_and_back", "reason", "words"), STOPS)
async def test_a_queue_stops_with_a_named_reason_and_goes_on(
    world, act, there_and_back, reason, words
):
    away, back = there_and_back
    number = await paused_entry(world)
    await world.act(act, by="alice", **away)
    await world.settle()
    found = await holds(world)
    assert set(found) == {reason}
    assert words in found[reason]
    await world.act(act, by="alice", **back)
    await world.settle()
    assert await holds(world) == {}
    await lands(world, number)


async def test_a_removed_app_stops_the_queue_until_it_is_installed_again(world):
    number = await paused_entry(world)
    await world.act("uninstall", by="alice")
    await world.settle()
    assert "the App is not installed" in (await holds(world))[UNAVAILABLE]
    await world.act("install", by="alice")
    await world.settle()
    assert await holds(world) == {}
    await lands(world, number)


async def test_other_permissions_count_at_once(world):
    strict = {"checks": ["unit"], "strict": True}
    await world.sandbox.control.rules({"repo": REPO, "protection": {"main": strict}})
    await world.settle()
    await world.make_queue()
    assert "strict" in (await world.value()).required.notes
    granted = dict(world.sandbox.app.permissions)
    fewer = {name: level for name, level in granted.items() if name != "administration"}
    for permissions, is_seen in ((fewer, False), (granted, True)):
        await world.act("permissions", by="alice", permissions=permissions)
        await world.settle()
        assert ("strict" in (await world.value()).required.notes) is is_seen


async def test_a_private_repository_goes_on(world):
    number = await paused_entry(world)
    await world.act("private", by="alice")
    await lands(world, number)
    await world.act("private", by="alice", private=False)
    await world.settle()
    assert await holds(world) == {}


@pytest.mark.breaks_promises  # no repository is left whose history could be read
async def test_a_deleted_repository_says_so(world):
    await paused_entry(world)
    queue = await world.queue()

    async def is_held():
        value = await turn.value(world.runtime, queue.id)
        return [(one.reason, one.text) for one in value.holds] == [
            (UNAVAILABLE, "The repository was deleted.")
        ]

    await world.act("delete", by="alice")
    await world.until(is_held)


@pytest.fixture
def where(world):
    """The repository as events name it."""
    number = str(world.repository.id)
    return Where(RepoId(HOST, number), RepoRef(HOST, "octo", "widgets"))


async def test_an_old_event_of_a_loss_only_causes_a_read(world, where):
    number = await paused_entry(world)
    for why in RemovedWhy:
        lost = RepositoryRemoved(where, why)
        await signals.receive(world.runtime, lost, world.clock.now())
    assert await holds(world) == {}
    await lands(world, number)


async def test_the_loss_of_an_unknown_repository_changes_nothing(world):
    await world.settle()
    nowhere = Where(RepoId(HOST, "1"), RepoRef(HOST, "octo", "nowhere"))
    for why in RemovedWhy:
        lost = RepositoryRemoved(nowhere, why)
        await signals.receive(world.runtime, lost, world.clock.now())


async def test_a_renamed_repository_and_owner_keep_their_queue(world):
    number = await paused_entry(world)
    await world.act("rename", by="alice", to="gadgets")
    await world.sandbox.act("rename_owner", "alice", "octo/gadgets", to="octopus")
    await world.settle()
    queue = await world.queue()
    assert queue.repo.slug == "octopus/gadgets"
    await lands(world, number)


@pytest.mark.breaks_promises  # its name is that of another repository
async def test_a_name_that_another_repository_took_is_not_the_queues_own(world):
    number = await paused_entry(world)
    ours = await world.queue()
    await world.act("rename", by="alice", to="gadgets")
    await world.sandbox.seed(repositories=[{"full_name": REPO}])
    await world.settle()
    moved = await world.runtime.store.read(queues.ref_by_id, ours.id)
    assert moved.repo.slug == "octo/gadgets"
    await world.sandbox.act("comment", "bob", "octo/gadgets", number=number, body="/merge")
    await world.settle()
    view = await pull_requests.status(world.runtime, moved, number)
    assert view.entry.state.value == "MERGED"


@pytest.mark.breaks_promises  # its name is that of another repository
async def test_a_sweep_never_takes_another_repository_for_ours(world):
    await paused_entry(world)
    ours = await world.queue()
    await world.fault({"event": "repository"}, "drop")
    await world.fault({"event": "installation_repositories"}, "drop")
    await world.act("rename", by="alice", to="gadgets")
    await world.sandbox.seed(repositories=[{"full_name": REPO}])
    await world.settle()
    await reconcile.read_repository(world.runtime, ours.repository_id)
    value = await turn.value(world.runtime, ours.id)
    assert [one.reason for one in value.holds] == [UNAVAILABLE]
    assert "another repository" in value.holds[0].text
    await installations.read_all(world.runtime)
    await reconcile.read_all_queues(world.runtime)
    moved = await world.runtime.store.read(queues.ref_by_id, ours.id)
    value = await turn.value(world.runtime, ours.id)
    assert (moved.repo.slug, value.holds) == ("octo/gadgets", ())


async def test_a_transfer_to_an_owner_with_the_app_takes_the_queue_along(world):
    await world.sandbox.seed(repositories=[{"full_name": "elsewhere/other"}])
    number = await paused_entry(world)
    await world.act("transfer", by="alice", to="elsewhere")
    await world.settle()
    queue = await world.queue()
    assert (queue.repo.slug, await holds(world)) == ("elsewhere/widgets", {})
    await lands(world, number)


async def test_a_transfer_to_an_owner_without_the_app_stops_the_queue(world, where):
    number = await paused_entry(world)
    await world.act("transfer", by="alice", to="elsewhere")
    await world.settle()
    lost = RepositoryRemoved(where, RemovedWhy.TRANSFERRED)
    await signals.receive(world.runtime, lost, world.clock.now())
    assert "transferred to an owner without the App" in (await holds(world))[UNAVAILABLE]
    await world.act("install", by="alice")
    await world.settle()
    assert await holds(world) == {}
    await lands(world, number)


async def test_a_queue_follows_its_renamed_default_branch(world):
    number = await paused_entry(world)
    await world.act("rename", by="alice", branch="main", to="trunk")
    await world.settle()
    assert await holds(world, "trunk") == {}
    await world.comment("/merge", on=number)
    await world.settle()
    view = await pull_requests.status(world.runtime, await world.queue("trunk"), number)
    assert view.entry.state.value == "MERGED"


async def queued_without_events(world):
    """A pull request in a paused queue, which hears of no change of its branch."""
    await world.make_queue(state=QueueState.PAUSED)
    number = await world.open()
    await world.comment("/merge", on=number)
    await world.settle()
    for event in ("repository", "push", "delete", "create", "pull_request"):
        await world.fault({"event": event}, "drop")
    return number


async def queued_while_renamed(world):
    """The same, and then its base branch was renamed."""
    number = await queued_without_events(world)
    await world.act("rename", by="alice", branch="main", to="trunk")
    await world.until(lambda: is_renamed(world))
    return number


async def is_renamed(world):
    return world.repository.git.branch("main") is None


async def lands_on_trunk(world, number):
    queue = await world.queue("trunk")
    await queue_operations.set_state(
        world.runtime, queue, QueueState.RUNNING, None, Requester(SYSTEM)
    )
    await world.settle()
    view = await pull_requests.status(world.runtime, await world.queue("trunk"), number)
    assert (view.entry.state.value, view.entry.restarts) == ("MERGED", {})


async def test_a_sweep_takes_the_queue_along_to_the_new_name_of_its_branch(world):
    number = await queued_while_renamed(world)
    await reconcile.read_all_queues(world.runtime)
    await lands_on_trunk(world, number)


async def test_a_new_base_that_is_the_new_name_of_the_old_one_ends_no_submission(world):
    number = await queued_while_renamed(world)
    await reconcile.read_pull_request(world.runtime, await world.queue(), number)
    await lands_on_trunk(world, number)


@pytest.mark.parametrize("is_renamed", [True, False])
async def test_a_new_base_that_is_a_copy_of_the_old_one_waits_until_that_is_gone(world, is_renamed):
    number = await queued_without_events(world)
    tip = world.repository.git.branch("main")
    await world.act("force_push", by="alice", branch="trunk", to=tip)
    await world.act("default_branch", by="alice", branch="trunk")
    await world.act("retarget", by="alice", number=number, base="trunk")

    async def end_rename():
        await world.rest(3)
        if is_renamed:
            world.repository.renamed["main"] = "trunk"
            await world.act("delete_branch", by="alice", branch="main")

    read = reconcile.read_pull_request(world.runtime, await world.queue(), number)
    await asyncio.gather(read, end_rename())
    if is_renamed:
        await lands_on_trunk(world, number)
    else:
        assert await world.state(number) == "CANCELLED"


async def test_a_queue_whose_repository_is_known_by_its_new_default_branch_still_follows(world):
    number = await queued_while_renamed(world)
    await installations.read_all(world.runtime)
    await reconcile.read_live_queues(world.runtime)
    await lands_on_trunk(world, number)


async def test_another_default_branch_leaves_the_queue_where_it_is(world):
    number = await paused_entry(world)
    await world.act("push", by="alice", branch="next", files={"next.txt": "x"})
    await world.act("default_branch", by="alice", branch="next")
    await world.settle()
    assert (await world.queue()).branch == "main"
    await world.act("default_branch", by="alice", branch="main")
    await lands(world, number)


async def queue_of_a_release(world, name="release/1"):
    """The queue of a branch beside the default one, both at the same commit."""
    await world.settle()
    tip = world.repository.git.branch("main")
    await world.act("force_push", by="alice", branch=name, to=tip)
    await world.settle()
    await world.make_queue(branch=name)
    return await world.queue(name)


async def test_a_deleted_release_branch_at_the_commit_of_main_does_not_move_its_queue(world):
    queue = await queue_of_a_release(world)
    await world.act("delete_branch", by="alice", branch="release/1")
    await world.settle()
    await reconcile.read_all_queues(world.runtime)
    assert (await world.queue("release/1")).id == queue.id
    assert HoldReason.TARGET_MISSING in await holds(world, "release/1")


async def test_a_queue_follows_a_renamed_branch_that_is_not_the_default_one(world):
    queue = await queue_of_a_release(world)
    await world.act("rename", by="alice", branch="release/1", to="release/one")
    await world.settle()
    assert (await world.queue("release/one")).id == queue.id
    (entry,) = await world.runtime.store.read(audit.newest, queue.org_id, 1)
    assert (entry.action, entry.subject, dict(entry.data)) == (
        "queue.follow_branch",
        "github.localhost/octo/widgets@release/1",
        {"before": "release/1", "after": "release/one"},
    )
    assert HoldReason.TARGET_MISSING not in await holds(world, "release/one")


async def test_a_queued_pull_request_lands_on_the_new_name_of_a_release_branch(world):
    await queue_of_a_release(world)
    checks = {"protection": {"release/1": {"checks": ["unit"]}}}
    await world.sandbox.control.rules({"repo": REPO, **checks})
    queue = await world.queue("release/1")
    person = Requester(SYSTEM)
    await queue_operations.set_state(world.runtime, queue, QueueState.PAUSED, None, person)
    number = await world.open(base="release/1")
    await world.comment("/merge", on=number)
    await world.settle()
    await world.act("rename", by="alice", branch="release/1", to="release/one")
    await world.settle()
    queue = await world.queue("release/one")
    await queue_operations.set_state(world.runtime, queue, QueueState.RUNNING, None, person)
    await world.settle()
    view = await pull_requests.status(world.runtime, queue, number)
    assert (view.entry.state.value, view.entry.restarts) == ("MERGED", {})


async def test_a_former_default_branch_that_was_deleted_does_not_move_its_queue(world):
    await paused_entry(world)
    queue = await world.queue()
    tip = world.repository.git.branch("main")
    await world.act("force_push", by="alice", branch="next", to=tip)
    await world.act("default_branch", by="alice", branch="next")
    await world.act("delete_branch", by="alice", branch="main")
    await world.settle()
    await reconcile.read_all_queues(world.runtime)
    assert (await world.queue("main")).id == queue.id
    assert set(await holds(world)) == {HoldReason.TARGET_MISSING}


async def test_a_missing_master_that_github_redirects_to_the_default_branch_moves_no_queue(world):
    queue = await queue_of_a_release(world, "master")
    await world.act("push", by="alice", branch="main", files={"more.txt": "x"}, bypass=True)
    await world.act("delete_branch", by="alice", branch="master")
    await world.settle()
    await reconcile.read_all_queues(world.runtime)
    assert (await world.queue("master")).id == queue.id
    assert HoldReason.TARGET_MISSING in await holds(world, "master")

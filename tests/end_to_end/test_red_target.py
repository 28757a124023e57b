"""A check that the queue does not wait for turns red on `main`: the landing that broke it is found.

The check `nightly` runs on `main` and on the test branches of a search, never on those of the
queue.
"""

from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bot.sandbox.acts import repositories
from bot.sandbox.git import ZERO
from service.mergequeue.breaks.search import End, RevertState, StoredBreak
from service.mergequeue.engine.config import QueueConfig, RedTarget
from service.mergequeue.operations import queues, requirements
from service.mergequeue.operations.queues import QueueRequest
from service.mergequeue.store import breaks
from service.vocabulary import SYSTEM, CheckKind
from tests.harness import databases
from tests.harness.asking import asker
from tests.harness.receiver import Receiver, receiving
from tests.harness.world import REPO, World, WorldOptions, hosting, serving

CI = """\
triggers: {push: ["main", "headgate/merge/**"], pull_request: true}
checks:
  - name: unit
    seconds: 3
  - name: nightly
    seconds: 20
    rules:
      - {branch: "headgate/merge/pr-*", conclusion: never}
      - {branch: friend, conclusion: success}
      - {exists: [late.txt], conclusion: never}
      - {exists: [bug.txt], conclusion: failure}
      - {branch: main, exists: [flaky.txt], conclusion: failure}
      - {branch: stranger, conclusion: failure}
  - name: docs
    seconds: 20
    rules:
      - {branch: "headgate/merge/pr-*", conclusion: never}
      - {exists: [typo.txt], conclusion: failure}
"""
CI_TIME = timedelta(seconds=20)
WATCHED = ("nightly", "docs")


pytestmark = pytest.mark.jumping


@pytest.fixture
def world_options() -> WorldOptions:
    return WorldOptions(ci=CI)


async def found(world: World) -> list[StoredBreak]:
    """All breaks, the newest first."""
    return list(await world.runtime.store.read(breaks.newest, (await world.queue()).id, 9))


async def queue_of(world: World, **settings: object) -> None:
    """Make the queue, and let `main` pass once."""
    chosen = {"red_target": "REVERT", "red_target_checks": WATCHED, **settings}
    await world.make_queue(**chosen)  # type: ignore[arg-type]
    await world.act("push", by="alice", branch="main", files={"start.txt": "x"}, bypass=True)
    await world.settle()


async def set_red_target(world: World, red_target: RedTarget) -> None:
    request = QueueRequest({"red_target": red_target})
    await queues.update(world.runtime, await world.queue(), request, SYSTEM)


async def land(world: World, *contents: dict[str, str | None]) -> list[int]:
    """Land pull requests with these files one after the other; CI of `main` sees each."""
    numbers = [await world.open(files=files) for files in contents]
    for number in numbers:
        await world.comment("/merge", on=number)
    await world.settle()
    return numbers


def comments(world: World, number: int) -> list[str]:
    bot = world.sandbox.app.bot
    return [one.body for one in world.repository.issues[number].comments if one.author is bot]


def files_of_main(world: World) -> set[str]:
    git = world.repository.git
    return {path for path, _ in git.objects.walk(str(git.branch("main")))}


async def test_a_break_is_found_reverted_and_told_once(world: World) -> None:
    await queue_of(world)
    good, bad, later = await land(world, {"a.txt": "a"}, {"bug.txt": "b"}, {"c.txt": "c"})
    (one,) = await found(world)
    assert one.value.culprit is not None
    assert one.value.commits[one.value.culprit].pr == bad
    assert len({run.sha for run in one.value.red_runs}) == len(one.value.red_runs) >= 2
    assert len(one.value.green_runs) >= 1
    revert = one.value.revert
    assert revert is not None
    assert revert.number is not None
    assert await world.merged() == [good, bad, later, revert.number]
    assert one.value.stopped is End.REVERTED
    assert not {"bug.txt"} & files_of_main(world)
    assert {"a.txt", "c.txt"} <= files_of_main(world)
    told = [body for body in comments(world, bad) if "fails on" in body]
    assert len(told) == 1
    assert f"#{revert.number} reverts it" in told[0]
    assert not [
        body for number in (good, later) for body in comments(world, number) if "fails" in body
    ]
    issue = world.repository.issues[revert.number]
    assert issue.pull is not None
    assert issue.pull.merged_at is not None
    assert issue.pull.merged_at - one.opened_at < 2 * CI_TIME
    assert f"Reverts #{bad}" in (issue.body or "")
    assert [one for one in world.branches() if "dry-test" in one or "/temp/" in one] == []
    assert str(world.repository.git.branch("headgate/green/main")) == str(
        world.repository.git.branch("main")
    )


async def test_a_flake_ends_the_search_and_touches_nothing(world: World) -> None:
    await queue_of(world)
    (number,) = await land(world, {"flaky.txt": "f"})
    (one,) = await found(world)
    assert one.value.stopped is End.FLAKE
    assert await world.merged() == [number]
    assert not [body for body in comments(world, number) if "fails on" in body]
    assert world.open_pulls() == []


async def test_a_report_names_the_culprit_and_opens_nothing(world: World) -> None:
    await queue_of(world, red_target="REPORT")
    (bad,) = await land(world, {"bug.txt": "b"})
    (one,) = await found(world)
    assert one.value.culprit == 1
    assert one.value.revert is None
    assert one.ended_at is None
    told = [body for body in comments(world, bad) if "fails on" in body]
    assert len(told) == 1
    assert "Revert it, or repair it" in told[0]
    assert world.open_pulls() == []
    await world.act("push", by="alice", branch="main", files={"bug.txt": None}, bypass=True)
    await world.settle()
    (one,) = await found(world)
    assert one.value.stopped is End.REPAIRED


async def test_nothing_is_searched_where_it_is_off(world: World) -> None:
    await queue_of(world, red_target="OFF")
    await land(world, {"bug.txt": "b"})
    assert await found(world) == []
    assert "headgate/green/main" not in world.branches()


async def test_two_checks_broken_at_once_have_a_culprit_each(world: World) -> None:
    await queue_of(world)
    one, two = await land(world, {"bug.txt": "b"}, {"typo.txt": "t"})
    breaks_found = await found(world)
    culprits = {
        each.value.check.name: each.value.commits[each.value.culprit or 0].pr
        for each in breaks_found
    }
    assert culprits == {"nightly": one, "docs": two}
    assert {each.value.stopped for each in breaks_found} == {End.REVERTED}
    assert not {"bug.txt", "typo.txt"} & files_of_main(world)


async def test_a_repair_by_others_ends_the_search_and_closes_the_revert(world: World) -> None:
    await queue_of(world)
    # The revert cannot land: the queue is paused before it is opened.
    bad = await world.open(files={"bug.txt": "b"})
    await world.comment("/merge", on=bad)
    await world.until(lambda: _is_merged(world, bad))
    await world.comment("/merge pause Release day", on=bad, by="alice")
    await world.settle()
    revert = (await found(world))[0].value.revert
    assert revert is not None
    assert revert.state is RevertState.OPEN
    assert revert.number in world.open_pulls()
    await world.act("push", by="alice", branch="main", files={"bug.txt": None}, bypass=True)
    await world.settle()
    newest = (await found(world))[0].value
    assert newest.stopped is End.REPAIRED
    assert newest.revert is not None
    assert newest.revert.state is RevertState.CLOSED
    assert world.open_pulls() == []
    assert revert.number is not None
    assert await world.state(revert.number) == "CANCELLED"
    assert not any("headgate/revert" in each for each in world.branches())


async def test_a_branch_of_others_is_not_landed_as_the_revert(world: World) -> None:
    """Its name is known once the culprit has landed, and whoever may push can take it."""
    await queue_of(world)
    bad = await world.open(files={"bug.txt": "b"})
    await world.comment("/merge", on=bad)
    await world.until(lambda: _is_merged(world, bad))
    taken = f"headgate/revert/pr-{bad}-{str(world.repository.git.branch('main'))[:8]}"
    await world.act("push", branch=taken, files={"evil.txt": "e"})
    await world.settle()
    assert await world.merged() == [bad]
    assert "evil.txt" not in files_of_main(world)
    (told,) = [body for body in comments(world, bad) if "fails on" in body]
    assert "Its branch has commits that Headgate has not made" in told
    await world.act("delete_branch", branch=taken)


async def test_a_revert_that_a_person_closes_stays_closed(world: World) -> None:
    await queue_of(world)
    bad = await world.open(files={"bug.txt": "b"})
    await world.comment("/merge", on=bad)
    await world.until(lambda: _is_merged(world, bad))
    await world.comment("/merge pause Release day", on=bad, by="alice")
    await world.settle()
    (revert,) = world.open_pulls()
    await world.act("close", by="alice", number=revert)
    await world.settle()
    await world.act("push", by="alice", branch="main", files={"c.txt": "c"}, bypass=True)
    await world.settle()
    assert world.open_pulls() == []
    assert await world.merged() == [bad]
    assert len([body for body in comments(world, bad) if "fails on" in body]) == 1
    assert len(await found(world)) == 1
    await world.act("push", by="alice", branch="main", files={"bug.txt": None}, bypass=True)
    await world.settle()
    assert not any("/revert/" in each for each in world.branches())


async def _is_merged(world: World, number: int) -> bool:
    return number in await world.merged()


async def test_people_are_told_of_a_revert_that_conflicts(world: World) -> None:
    await queue_of(world)
    await world.act("push", by="alice", branch="main", files={"shared.txt": "one\n"}, bypass=True)
    await world.settle()
    tip = {"from": str(world.repository.git.branch("main"))}
    bad = await world.open(files={"shared.txt": "two\n", "bug.txt": "b"}, **tip)
    await world.comment("/merge", on=bad)
    await world.until(lambda: _is_merged(world, bad))
    await world.act("push", by="alice", branch="main", files={"shared.txt": "three\n"}, bypass=True)
    await world.settle()
    (one,) = await found(world)
    assert one.value.revert is not None
    assert one.value.revert.state is RevertState.REFUSED
    told = [body for body in comments(world, bad) if "fails on" in body]
    assert len(told) == 1
    assert "could not revert it" in told[0]
    assert world.open_pulls() == []
    assert not any("/temp/" in each or "/revert/" in each for each in world.branches())


@pytest.mark.parametrize("database_url", databases.DIALECTS, indirect=True)
async def test_a_search_goes_on_after_a_restart_in_its_middle(
    database_url: str, tmp_path: Path
) -> None:
    options = WorldOptions(ci=CI, database_url=database_url)
    async with hosting(options) as host:
        async with serving(tmp_path, options, *host) as world:
            await queue_of(world)
            bad = await world.open(files={"bug.txt": "b"})
            await world.comment("/merge", on=bad)
            await world.until(lambda: _has_probes(world))
            before = await found(world)
        async with serving(tmp_path, options, *host) as world:
            # The deliveries of its end are lost: the sweeps find the results.
            await world.until(lambda: _is_reverted(world))
            await world.settle()
            (one,) = await found(world)
            assert one.value.id == before[0].value.id
            assert len([body for body in comments(world, bad) if "fails on" in body]) == 1
            assert "bug.txt" not in files_of_main(world)


async def _has_probes(world: World) -> bool:
    return any(probe.sha for one in await found(world) for probe in one.value.probes)


async def _are_built(world: World) -> bool:
    return all(probe.sha for one in await found(world) for probe in one.value.probes)


async def _is_reverted(world: World) -> bool:
    return all(one.value.stopped is End.REVERTED for one in await found(world))


async def _are_two(world: World) -> bool:
    return len(await found(world)) == 2


async def _is_over(world: World) -> bool:
    return not any(one.value.is_open for one in await found(world))


async def test_a_search_after_one_that_named_nobody_is_wary(world: World) -> None:
    await queue_of(world)
    bad = await world.open(files={"bug.txt": "b"})
    await world.comment("/merge", on=bad)
    await world.until(lambda: _has_probes(world))
    await set_red_target(world, RedTarget.OFF)
    await world.until(lambda: _is_over(world))
    await set_red_target(world, RedTarget.REPORT)
    await world.until(lambda: _are_two(world))
    await world.settle()
    second, first = await found(world)
    assert (first.value.stopped, first.value.culprit) == (End.UNWATCHED, None)
    assert second.value.is_wary
    assert second.value.culprit is not None


class Strikes:
    """An error at the next passing of a point, once it is armed."""

    def __init__(self) -> None:
        self.at = ""

    def reach(self, name: str) -> None:
        """Pass, or fail as nobody expects it."""
        if name == self.at:
            self.at = ""
            raise KeyError(name)


@pytest.mark.parametrize("point", ["act.build.before_settle", "act.build.after_send"])
async def test_what_was_done_and_not_noted_is_not_done_twice(tmp_path: Path, point: str) -> None:
    """A test branch was made, or the revert opened, and the process failed before it was noted."""
    strikes = Strikes()
    options = WorldOptions(ci=CI, crash_points=strikes)
    async with hosting(options) as host, serving(tmp_path, options, *host) as world:
        await queue_of(world)
        bad = await world.open(files={"bug.txt": "b"})
        await world.comment("/merge", on=bad)
        await world.until(lambda: _is_merged(world, bad))
        strikes.at = point
        await world.settle()
        assert strikes.at == ""
        (one,) = await found(world)
        assert one.value.stopped is End.REVERTED
        assert one.value.revert is not None
        assert await world.merged() == [bad, one.value.revert.number]
        assert len([body for body in comments(world, bad) if "fails on" in body]) == 1
        assert not any("dry-test" in each or "/revert/" in each for each in world.branches())


async def test_programs_and_people_see_what_is_red(tmp_path: Path) -> None:
    settings = {
        "webhook_ports": "1024-65535",
        "webhook_allow_networks": "127.0.0.0/8",
        "dashboard_auth": "loopback",
        "public_url": "http://127.0.0.1:8642",
    }
    options = WorldOptions(ci=CI, settings=settings)
    async with (
        receiving() as receiver,
        hosting(options) as host,
        serving(tmp_path, options, *host) as world,
    ):
        await queue_of(world, red_target="REPORT")
        ask = await asker(world)
        body: dict[str, Any] = {"repo": None, "targetBranch": None, "events": ["target.*"]}
        await ask.done("webhooks/create-endpoint", url=receiver.url, **body)
        (bad,) = await land(world, {"bug.txt": "b"})
        shown = await ask.done("getTargetHealth")
        assert shown["watched"] == ["unit", "nightly", "docs"]
        (broken,) = shown["breaks"]
        assert (broken["check"], broken["culpritPrNumber"]) == ("nightly", bad)
        assert broken["endedAt"] is None
        assert len(broken["redRuns"]) >= 2
        assert len(broken["greenRuns"]) == 1
        async with aiohttp.ClientSession() as session:
            page = await (await session.get(f"{world.url}/{REPO}/main")).text()
        assert f"#{bad} broke it." in page
        await world.act("push", by="alice", branch="main", files={"bug.txt": None}, bypass=True)
        await world.settle()
        assert (await ask.done("getTargetHealth"))["breaks"][0]["end"] == "repaired"
        await world.until(lambda: _has_told(receiver, 3))
        told = [(each.json["type"], each.json["culprit_pr_number"]) for each in receiver.got]
        assert told == [("target.red", None), ("target.culprit", bad), ("target.green", bad)]


async def _has_told(receiver: Receiver, count: int) -> bool:
    return len(receiver.got) >= count


async def test_a_push_past_the_queue_blames_no_rebased_pull_request(world: World) -> None:
    await queue_of(world, merge_method="REBASE")
    number = await world.open(files={"a.txt": "a"})
    await world.comment("/merge", on=number)
    await world.until(lambda: _is_merged(world, number))
    await world.settle()
    await world.act("push", by="alice", branch="main", files={"bug.txt": "b"}, bypass=True)
    innocent = await world.open(files={"c.txt": "c"})
    await world.comment("/merge", on=innocent)
    await world.until(lambda: _is_merged(world, innocent))
    await world.settle()
    (one,) = await found(world)
    assert one.value.culprit_commit is not None
    assert one.value.culprit_commit.pr is None
    assert await world.merged() == [number, innocent]
    assert not [body for body in comments(world, innocent) if "fails on" in body]
    assert "bug.txt" in files_of_main(world)


async def test_nothing_comes_back_to_a_target_that_was_rewritten(world: World) -> None:
    await queue_of(world)
    before = str(world.repository.git.branch("main"))
    good = await world.open(files={"a.txt": "a"})
    bad = await world.open(files={"bug.txt": "b"})
    for number in (good, bad):
        await world.comment("/merge", on=number)
    await world.until(lambda: _is_merged(world, bad))
    await world.until(lambda: _has_probes(world))
    await world.act("force_push", by="alice", branch="main", to=before)
    await world.act("push", by="alice", branch="main", files={"d.txt": "d"}, bypass=True)
    await world.settle()
    (hold,) = (await world.value()).holds
    await queues.release_hold(world.runtime, await world.queue(), hold.id, "seen", SYSTEM)
    await world.until(lambda: _is_over(world))
    await world.settle()
    assert "a.txt" not in files_of_main(world)
    assert await world.merged() == [good, bad]
    assert world.open_pulls() == []
    (one,) = await found(world)
    assert one.value.stopped is End.REPAIRED


async def test_a_landing_that_breaks_two_checks_is_told_and_reverted_once(world: World) -> None:
    await queue_of(world)
    (bad,) = await land(world, {"bug.txt": "b", "typo.txt": "t"})
    assert len(await found(world)) == 2
    assert len([body for body in comments(world, bad) if "fails on" in body]) == 1
    titles = [one.title for one in world.repository.issues.values() if "Revert" in one.title]
    # Both are found at once; whichever makes the branch first gives the title.
    first = "docs" if "docs" in titles[0] else "nightly"
    assert titles == [f"Revert #{bad}: {first} fails since"]
    assert not {"bug.txt", "typo.txt"} & files_of_main(world)


class TestOfManyChecks:
    """Another check of the same commits ends long after the one that is watched."""

    @pytest.fixture
    def world_options(self) -> WorldOptions:
        return WorldOptions(ci=f"{CI}  - name: slow\n    seconds: 90\n")

    async def test_a_flake_is_not_searched_again_when_another_check_ends(
        self, world: World
    ) -> None:
        await queue_of(world)
        await land(world, {"flaky.txt": "f"})
        (one,) = await found(world)
        assert one.value.stopped is End.FLAKE


def test_a_status_counts_only_of_an_account_that_a_setting_names() -> None:
    config = QueueConfig(status_reporters=("docs=@7",))
    nightly, docs = requirements.unlearned(config, WATCHED)
    assert (nightly.kind, nightly.account) == (CheckKind.SUITE_RUN, None)
    assert (docs.kind, docs.account) == (CheckKind.STATUS, "7")


class TestOfForks:
    """CI of a fork's pull request reports on its head, which may be a commit of a search."""

    @pytest.fixture
    def world_options(self) -> WorldOptions:
        ci = CI.replace("triggers:", "delays: {push: 25}\ntriggers:").replace(
            "    rules:\n      - {exists: [typo",
            "    rules:\n      - {branch: evil-*, conclusion: failure}\n      - {exists: [typo",
        )
        ci = ci.replace(
            "      - {exists: [bug",
            "      - {branch: evil-*, conclusion: failure}\n      - {exists: [bug",
        )
        return WorldOptions(ci=ci)

    async def test_a_fork_that_fails_on_a_commit_of_a_search_blames_nobody(
        self, world: World
    ) -> None:
        await queue_of(world)
        innocent = await world.open(files={"flaky.txt": "f"})
        await world.comment("/merge", on=innocent)
        await world.until(lambda: _has_probes(world))
        await world.until(lambda: _are_built(world))
        (one,) = await found(world)
        dave = world.sandbox.world.account("dave")
        assert dave is not None
        fork = repositories.fork(world.repository, dave)
        for place, probe in enumerate(one.value.probes):
            assert probe.sha is not None
            if probe.place == one.value.last:
                name = f"evil-{place}"
                fork.git.move([(f"refs/heads/{name}", ZERO, probe.sha)])
                await world.act("open", by="dave", fork=True, head=name)
        await world.settle()
        (one,) = await found(world)
        assert one.value.culprit is None
        assert await world.merged() == [innocent]
        assert not [body for body in comments(world, innocent) if "fails on" in body]


async def taken_by_a_fork(world: World, branch: str) -> str:
    """Dave opens a pull request whose head is the tip of `main`, and CI tests it; the tip."""
    dave = world.sandbox.world.account("dave")
    assert dave is not None
    fork = repositories.fork(world.repository, dave)
    tip = str(world.repository.git.branch("main"))
    fork.git.move([(f"refs/heads/{branch}", ZERO, tip)])
    await world.act("push", by="alice", branch="old", **{"from": world.older}, files={"o.txt": "o"})
    await world.act("open", by="dave", fork=True, head=branch, base="old")
    await world.settle()
    return tip


async def test_a_fork_that_fails_on_the_tip_begins_no_search(world: World) -> None:
    await queue_of(world)
    tip = await taken_by_a_fork(world, "stranger")
    assert "failure" in {one.conclusion for one in world.repository.check_runs(tip)}
    assert await found(world) == []


async def test_a_fork_that_passes_on_the_commit_that_broke_the_target_does_not_clear_it(
    world: World,
) -> None:
    await queue_of(world)
    green = str(world.repository.git.branch("main"))
    push = partial(world.act, "push", by="alice", branch="main", bypass=True)
    await push(files={"bug.txt": "b", "late.txt": "l"})
    bad = await taken_by_a_fork(world, "friend")
    nightly = [one for one in world.repository.check_runs(bad) if one.name == "nightly"]
    assert [one.conclusion for one in nightly] == ["success"]
    await push(files={"late.txt": None})
    await world.settle()
    (one,) = await found(world)
    assert [each.sha for each in one.value.commits][:2] == [green, bad]
    await set_red_target(world, RedTarget.OFF)
    await world.until(lambda: _is_over(world))
    await world.settle()


async def test_no_revert_is_opened_once_the_queue_only_reports(world: World) -> None:
    await queue_of(world)
    bad = await world.open(files={"bug.txt": "b"})
    await world.comment("/merge", on=bad)
    await world.until(lambda: _has_probes(world))
    await set_red_target(world, RedTarget.REPORT)
    await world.settle()
    (one,) = await found(world)
    assert one.value.revert is None
    assert await world.merged() == [bad]
    told = [body for body in comments(world, bad) if "fails on" in body]
    assert len(told) == 1
    assert "Revert it, or repair it" in told[0]


async def test_a_search_ends_with_the_watch(world: World) -> None:
    await queue_of(world)
    bad = await world.open(files={"bug.txt": "b"})
    await world.comment("/merge", on=bad)
    await world.until(lambda: _has_probes(world))
    await set_red_target(world, RedTarget.OFF)
    await world.until(lambda: _is_over(world))
    await world.settle()
    (one,) = await found(world)
    assert one.value.stopped is End.UNWATCHED
    assert not any("dry-test" in each for each in world.branches())
    assert world.open_pulls() == []

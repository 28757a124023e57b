"""The conformance suite of test branches where git builds them, and what is git's alone.

Rules: docs/design/git-builds.md.
"""

import asyncio
import base64
import fcntl
import itertools
import os
import shutil
import stat
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

import pytest
from structlog.testing import capture_logs

from bot.github.gitbuild.mirror import GROWTH_FREE_BYTES, SIZE_FILE
from bot.github.options import BuildMethod
from bot.github.provider import GitHubProvider
from bot.sandbox.git import NewCommit
from service.clock import SystemClock
from service.provider.audits import AuditSubject, Severity
from service.provider.errors import Refused, RefusedCode
from service.provider.values import Built, Vehicle
from service.vocabulary import MergeMethod
from tests.provider import contract_branches, contract_faults
from tests.provider.contract_faults import EACH_KIND_OF_LOSS
from tests.provider.stage import mirrors_in, on_sandbox

BY_GIT = {("git", "default"): 1}
LINES = "".join(f"line {number}\n" for number in range(40))


@pytest.fixture
async def stage(tmp_path):
    async with on_sandbox(mirrors=mirrors_in(tmp_path)) as made:
        yield made


async def build(stage, *pulls, **changed):
    """Build a pushed test branch of these pull requests."""
    request = stage.request(*pulls, vehicle=Vehicle.PUSH, **changed)
    return await stage.provider.build(request)


def untested(step):
    """The same head ahead of what a run tests."""
    return replace(step, tested=False)


def audited(stage):
    """The queue of main, as `doctor` audits it."""
    return AuditSubject(stage.repo, "main", stage.tip(), Vehicle.PUSH, MergeMethod.SQUASH)


async def build_together(stage, pulls):
    """Build for each at the same time; all get to their pushes before the second one is sent."""
    waits = stage.clock.sleep

    async def sleep(seconds):
        await SystemClock().sleep(1)
        await waits(seconds)

    stage.clock.sleep = sleep
    try:
        return await asyncio.gather(*(build(stage, pull) for pull in pulls))
    finally:
        stage.clock.sleep = waits


async def said_of_builds(stage):
    """What `doctor` finds about git builds."""
    found = await stage.provider.audit(audited(stage))
    return next(each.found for each in found if each.audit == "git-builds")


def limits_learned(logs):
    """The largest pushes that a policy lets through, as they were found."""
    return [each["refs_max"] for each in logs if each["event"] == "push_limit_learned"]


def reasons_in(logs):
    """Why repositories were not prepared."""
    return [each["reason"] for each in logs if each["event"] == "mirror_not_prepared"]


async def until(is_so):
    """Wait for what git does in the background."""
    async with asyncio.timeout(100):
        while not is_so():
            await SystemClock().sleep(0.01)


class TestBranches(contract_branches.Branches):
    pass


class TestBranchFaults(contract_faults.BranchFaults):
    build_writes = (("POST", "*/git-receive-pack", 1), ("POST", "*/pulls", 1))


class TestChains:
    """Merges, commits and the push of one build."""

    async def test_a_build_is_one_push_and_a_draft(self, stage):
        pulls = [await stage.open({f"{name}.txt": "x\n"}) for name in "abcdefgh"]
        await build(stage, pulls[0])  # reads the rules and makes the mirror
        before = len(stage.calls())
        built = await stage.provider.build(stage.request(*pulls))
        writes = [call["path"] for call in stage.calls(before) if stage.is_write(call)]
        api = [path.rpartition("/")[2] for path in writes if "/api/" in path]
        assert (api, len(stage.pushes())) == (["pulls"], 2)
        assert len(built.prefixes) == 8
        assert stage.built_by() == {("git", "default"): 2}

    async def test_a_push_counts_among_the_limits(self, stage):
        await build(stage, await stage.open({"a.txt": "a\n"}))
        assert stage.provider.budget(stage.repo).calls["push"] == len(stage.pushes()) == 1

    async def test_a_build_after_a_crash_makes_the_same_commits(self, stage):
        pulls = [await stage.open({"a.txt": "a\n"}), await stage.open({"b.txt": "b\n"})]
        request = stage.request(*pulls)
        built = await stage.provider.build(request)
        shutil.rmtree(stage.mirror)
        assert await stage.provider.build(request) == built
        assert stage.built_by() == {("git", "default"): 2}

    async def test_a_run_behind_merges_what_is_ahead_to_the_same_commits(self, stage):
        pulls = [await stage.open({f"{name}.txt": "x\n"}) for name in "abc"]
        ahead = stage.request(*pulls[:2])
        stage.clock.advance(60)
        behind = stage.request(*pulls)
        own = behind.steps[2]
        behind = replace(behind, steps=(*(untested(step) for step in ahead.steps), own))
        last = await stage.provider.build(behind)
        shutil.rmtree(stage.mirror)
        first = await stage.provider.build(ahead)
        assert last.prefixes[:2] == first.prefixes
        assert stage.built_by() == {("git", "default"): 2}

    async def test_a_run_that_merges_the_same_heads_has_commits_of_its_own(self, stage):
        pulls = [await stage.open({"a.txt": "a\n"}), await stage.open({"b.txt": "b\n"})]
        first = await stage.provider.build(stage.request(*pulls))
        again = await stage.provider.build(stage.request(*pulls))
        assert first.tip != again.tip
        assert [one.tree for one in first.prefixes] == [one.tree for one in again.prefixes]

    @EACH_KIND_OF_LOSS
    async def test_a_push_whose_answer_is_lost_is_looked_up(self, stage, kind, how):
        pulls = [await stage.open({"a.txt": "a\n"}), await stage.open({"b.txt": "b\n"})]
        await stage.fault(kind, path="*/git-receive-pack", nth=1, **how)
        request = stage.request(*pulls)
        built = await stage.provider.build(request)
        assert stage.branches() == {request.branch: built.tip}
        assert stage.drafts() == [built.vehicle_number]

    async def test_a_branch_that_appears_meanwhile_is_not_overwritten(self, stage):
        pull = await stage.open({"a.txt": "a\n"})
        request = stage.request(pull, vehicle=Vehicle.PUSH)
        other = {"as": "alice", "act": "push", "branch": request.branch, "files": {"x.txt": "x\n"}}
        act = {"repo": stage.full_name, **other}
        await stage.fault("before", path="*/git-receive-pack", nth=1, act=act)
        with pytest.raises(Refused) as refused:
            await stage.provider.build(request)
        assert refused.value.code is RefusedCode.NAME_TAKEN
        assert "x.txt" in stage.git("ls-tree", "--name-only", request.branch)
        # To make the mirror, to fetch, and to push once.
        assert stage.called("GET", "/info/refs") == 3

    async def test_paths_of_a_conflict_are_exact_and_safe_to_show(self, stage):
        name = "dir/\x1b[31m \u202eline\n.txt"
        one = await stage.open({name: "1\n", "also.txt": "a\n"})
        two = await stage.open({name: "2\n", "other.txt": "a\n"})
        conflict = await build(stage, one, two)
        assert conflict.paths == ("dir/\\x1b[31m \\u202eline\\n.txt",)

    async def test_a_conflict_of_a_head_ahead_is_left_to_the_run_that_tests_it(self, stage):
        pulls = [await stage.open({"shared.txt": words}) for words in ("1\n", "2\n")]
        pulls.append(await stage.open({"own.txt": "3\n"}))
        request = stage.request(*pulls)
        ahead = tuple(untested(step) for step in request.steps[:2])
        conflict = await stage.provider.build(replace(request, steps=(*ahead, request.steps[2])))
        assert (conflict.number, conflict.paths) == (pulls[1][0], ("shared.txt",))
        assert (stage.built_by(), stage.branches()) == ({}, {})

    async def test_unrelated_histories_are_a_conflict_without_paths(self, stage):
        objects = stage.world.git.objects
        tip = objects.a_commit(stage.tip())
        orphan = objects.write_commit(NewCommit(tip.tree, (), tip.author, tip.committer, "new"))
        number, _ = await stage.open({"a.txt": "a\n"})
        conflict = await build(stage, (number, orphan.sha))
        assert (conflict.number, conflict.paths) == (number, ())

    async def test_a_conflict_that_github_does_not_see_is_built_by_rest(self, stage):
        stage.world.git.objects.follows_renames = True
        other = LINES.replace("line", "row")
        await stage.push_files({"a.txt": LINES, "b.txt": other})
        moved = await stage.open(
            {"a.txt": None, "a2.txt": f"{LINES}end\n", "b.txt": None, "b2.txt": f"{other}end\n"}
        )
        edited = await stage.open({"a.txt": LINES.replace("line 7\n", "seven\n")})
        built = await build(stage, moved, edited)
        assert isinstance(built, Built)
        assert "headgate_build_disagreements_total 1.0" in stage.meter.text().decode()
        assert stage.built_by() == {("rest", "conflict"): 1}
        for _ in range(2):
            await build(stage, moved, edited)
        await build(stage, moved)
        assert stage.built_by()["rest", "disagreements"] == 1
        stage.clock.advance(90_000)
        await build(stage, moved)
        assert stage.built_by()["git", "default"] == 1


class TestPushes:
    """One push for many builds."""

    async def test_builds_at_once_share_pushes_that_keep_their_distance(self, stage):
        pulls = [await stage.open({f"{number}.txt": "x\n"}) for number in range(7)]
        built = await build_together(stage, pulls)
        assert set(stage.branches().values()) == {each.tip for each in built}
        times = [datetime.fromisoformat(at).timestamp() for at in stage.pushes()]
        assert len(times) < 7
        assert all(later - at >= 10 for at, later in itertools.pairwise(times))
        assert stage.built_by() == {("git", "default"): 7}

    async def test_what_a_push_policy_refuses_is_sent_in_smaller_pushes_for_a_day(self, stage):
        await stage.knobs(push_refs_max=2)
        pulls = [await stage.open({f"{number}.txt": "x\n"}) for number in range(13)]
        with capture_logs() as logs:
            built = await build_together(stage, pulls[:5])
            assert set(stage.branches().values()) == {each.tip for each in built}
            await build_together(stage, pulls[5:8])
            assert limits_learned(logs) == [2]
            stage.clock.advance(24 * 3600)
            await build_together(stage, pulls[8:])
        assert stage.built_by() == {("git", "default"): 13}
        assert [each for each in limits_learned(logs) if each == 2] == [2, 2]

    async def test_a_push_without_an_answer_is_sent_once_more(self, stage):
        pulls = [await stage.open({f"{name}.txt": "x\n"}) for name in "abc"]
        await stage.fault("fail_before", path="*/git-receive-pack", nth=1, status=502)
        await build_together(stage, pulls)
        assert stage.built_by() == {("git", "default"): 3}

    async def test_pushes_that_fail_are_one_failure_of_all_builds_that_share_them(self, stage):
        pulls = [await stage.open({f"{name}.txt": "x\n"}) for name in "abc"]
        await build(stage, pulls[0])
        fault = {"path": "*/git-receive-pack", "status": 502, "times": 3}
        await stage.fault("fail_before", nth=1, **fault)
        await build_together(stage, pulls)
        await build(stage, pulls[0])
        assert stage.built_by() == {("git", "default"): 2, ("rest", "push_refused"): 3}

    async def test_a_push_that_a_rule_refuses_is_named_with_its_mend(self, stage):
        ruleset = {**stage.ruleset("creation"), "include": ["refs/heads/headgate/**"]}
        await stage.rules(rulesets=[ruleset])
        with pytest.raises(Refused) as refused:
            await build(stage, await stage.open({"a.txt": "a\n"}))
        assert refused.value.code is RefusedCode.RULE_DENIED
        assert stage.built_by() == {("rest", "push_rule"): 1}
        found = await stage.provider.audit(audited(stage))
        said = next(each for each in found if each.audit == "git-builds")
        assert "Cannot create ref due to creations being restricted" in said.found
        assert "`headgate/**/*`" in said.mend

    async def test_deletions_join_a_push_that_waits(self, stage):
        pulls = [await stage.open({f"{number}.txt": "x\n"}) for number in range(3)]
        first = await build(stage, pulls[0])
        second, _ = await asyncio.gather(build(stage, pulls[1]), _when_waiting(stage, first.branch))
        await stage.settle()
        assert stage.branches() == {second.branch: second.tip}
        assert (stage.called("DELETE", first.branch), len(stage.pushes())) == (0, 2)

    async def test_a_deletion_that_no_push_waits_for_is_a_call(self, stage):
        built = await build(stage, await stage.open({"a.txt": "a\n"}))
        await stage.provider.discard(stage.repo, built.branch)
        assert stage.branches() == {}
        assert (stage.called("DELETE", built.branch), len(stage.pushes())) == (1, 1)


async def _when_waiting(stage, branch):
    """Discard a branch as soon as the clock is asked to wait for the next push."""
    waiting = asyncio.Event()
    waits = stage.clock.sleep

    async def sleep(seconds):
        waiting.set()
        for _ in range(20):
            await asyncio.sleep(0)
        await waits(seconds)

    stage.clock.sleep = sleep
    await waiting.wait()
    await stage.provider.discard(stage.repo, branch)


class TestChoice:
    """When git builds, and when the REST API does."""

    async def test_the_first_branch_is_built_by_rest_while_the_mirror_is_made(self, tmp_path):
        async with on_sandbox(mirrors=mirrors_in(tmp_path, BuildMethod.AUTO)) as stage:
            pull = await stage.open({"a.txt": "a\n"})
            await build(stage, pull)
            await until(stage.mirror.exists)
            await build(stage, pull)
            assert stage.built_by() == {("rest", "mirror_not_ready"): 1, **BY_GIT}

    async def test_a_prepared_repository_has_its_first_branch_built_by_git(self, tmp_path):
        async with on_sandbox(mirrors=mirrors_in(tmp_path, BuildMethod.AUTO)) as stage:
            await stage.provider.prepare(stage.repo, "main")
            await until(stage.mirror.exists)
            await build(stage, await stage.open({"a.txt": "a\n"}))
            assert stage.built_by() == BY_GIT

    @pytest.mark.parametrize("others_kib", [0, 900])
    async def test_a_mirror_that_is_prepared_displaces_no_other(self, tmp_path, others_kib):
        async with on_sandbox(mirrors=mirrors_in(tmp_path, bytes_max=1 << 20)) as stage:
            older = stage.mirrors / "github.localhost/7.git"
            older.mkdir(parents=True)
            (older / "pack").write_bytes(os.urandom(others_kib << 10))
            stage.world.size_kib = 400
            with capture_logs() as logs:
                await stage.provider.prepare(stage.repo, "main")
                await until(lambda: stage.mirror.exists() or reasons_in(logs))
            assert (reasons_in(logs), older.exists()) == (["disk_full"] if others_kib else [], True)

    async def test_a_repository_is_prepared_in_the_background(self, tmp_path):
        async with on_sandbox(mirrors=mirrors_in(tmp_path, BuildMethod.AUTO)) as stage:
            before = len(stage.calls())
            await stage.provider.prepare(stage.repo, "main")
            assert stage.calls(before) == []
            await until(stage.mirror.exists)

    async def test_doctor_says_that_a_mirror_is_being_made(self, tmp_path):
        async with on_sandbox(mirrors=mirrors_in(tmp_path, BuildMethod.AUTO)) as stage:
            waits = asyncio.Event()
            stage.clock.sleep = lambda _: waits.wait()
            stage.mirror.parent.mkdir(parents=True)
            with stage.mirror.with_name(f"{stage.mirror.name}.lock").open("w") as other:
                fcntl.flock(other, fcntl.LOCK_EX)
                await stage.provider.prepare(stage.repo, "main")
                assert "is being made" in await said_of_builds(stage)
            waits.set()
            await until(stage.mirror.exists)
            assert "is being made" not in await said_of_builds(stage)

    async def test_a_repository_that_cannot_be_read_is_not_prepared(self, tmp_path):
        async with on_sandbox(mirrors=mirrors_in(tmp_path, BuildMethod.AUTO)) as stage:
            await stage.fault("fail_before", path="/repos/octo/widgets", nth=None, status=500)
            with capture_logs() as logs:
                await stage.provider.prepare(stage.repo, "main")
                await until(lambda: reasons_in(logs))
            assert not stage.mirror.exists()
            stage.clear_faults()
            await stage.provider.prepare(stage.repo, "main")
            await until(stage.mirror.exists)

    async def test_doctor_names_a_mirror_that_could_not_be_made(self, tmp_path):
        async with on_sandbox(mirrors=mirrors_in(tmp_path, BuildMethod.AUTO)) as stage:
            await stage.fault("fail_before", path="*/info/refs", nth=None, status=500)
            with capture_logs() as logs:
                await stage.provider.prepare(stage.repo, "main")
                await until(lambda: any(each["event"] == "mirror_failed" for each in logs))
            assert "The mirror of the repository could not be made" in await said_of_builds(stage)

    async def test_nothing_is_prepared_where_the_rest_api_builds(self, tmp_path):
        async with on_sandbox(mirrors=mirrors_in(tmp_path, BuildMethod.REST)) as stage:
            before = len(stage.calls())
            await stage.provider.prepare(stage.repo, "main")
            assert stage.calls(before) == []

    async def test_without_git_the_rest_api_builds(self, tmp_path):
        without = replace(mirrors_in(tmp_path), environment={"PATH": str(tmp_path)})
        async with on_sandbox(mirrors=without) as stage:
            await build(stage, await stage.open({"a.txt": "a\n"}))
            assert stage.built_by() == {("rest", "no_git"): 1}

    @pytest.mark.parametrize("covered", ["refs/heads/main", "refs/heads/headgate/**"])
    async def test_signed_commits_are_left_to_github(self, stage, covered):
        ruleset = {**stage.ruleset("required_signatures"), "include": [covered]}
        await stage.rules(rulesets=[ruleset])
        with suppress(Refused):  # the head itself is not signed
            await build(stage, await stage.open({"a.txt": "a\n"}))
        assert stage.built_by() == {("rest", "signatures_required"): 1}

    async def test_a_large_repository_has_a_mirror_without_blobs(self, tmp_path):
        async with on_sandbox(mirrors=mirrors_in(tmp_path, bytes_max=4 << 30)) as stage:
            await stage.push_files({"unrelated.txt": "never needed\n"})
            pulls = [await stage.open({"app.py": "0\n1\n2\n3\n"})]
            await stage.push_files({"app.py": "1\n2\n3\n4\n"})
            stage.world.size_kib = (2 << 20) + 1
            built = await build(stage, *pulls)
            assert built.prefixes[0].tree == stage.git_merge(stage.tip(), pulls[0][1])
            assert stage.built_by() == BY_GIT
            blobless = stage.mirror.with_name(f"{stage.world.id}.blobless.git")
            assert stage.lacks(blobless, "main:unrelated.txt")
            assert not stage.lacks(blobless, "main:app.py")

    async def test_a_repository_beyond_ten_gibibytes_is_left_to_the_rest_api(self, tmp_path):
        async with on_sandbox(mirrors=mirrors_in(tmp_path, BuildMethod.AUTO)) as stage:
            stage.world.size_kib = 11 << 20
            await build(stage, await stage.open({"a.txt": "a\n"}))
            assert stage.built_by() == {("rest", "too_big"): 1}

    async def test_after_two_failures_git_rests_for_an_hour(self, stage):
        pull = await stage.open({"a.txt": "a\n"})
        await build(stage, pull)
        await stage.fault("fail_before", path="*/info/refs", nth=None, status=500)
        for _ in range(3):
            await build(stage, await stage.open({"b.txt": "b\n"}))
        built = stage.built_by()
        assert (built["rest", "fetch_failed"], built["rest", "failed_before"]) == (2, 1)
        stage.clear_faults()
        stage.clock.advance(3_700)
        await build(stage, pull)
        assert stage.built_by()["git", "default"] == 2


class TestMirrors:
    """Life of a mirror."""

    @pytest.mark.parametrize("damage", ["config", "HEAD", "objects"])
    async def test_a_damaged_mirror_is_made_anew(self, stage, damage):
        pull = await stage.open({"a.txt": "a\n"})
        await build(stage, pull)
        path = stage.mirror / damage
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.write_bytes(b"\0garbage")
        assert isinstance(await build(stage, pull), Built)
        assert not stage.mirror.exists()
        assert isinstance(await build(stage, pull), Built)
        built = stage.built_by()
        assert built.pop(("git", "default")) == 2
        assert sum(built.values()) == 1

    async def test_leftovers_of_a_killed_command_are_removed(self, stage):
        pull = await stage.open({"a.txt": "a\n"})
        await build(stage, pull)
        left = [stage.mirror / "refs/headgate/pull" / f"{pull[0]}.lock"]
        left += [stage.mirror / "objects/pack/tmp_pack_x", stage.mirror / "shallow.lock"]
        for path in left:
            path.touch()
        again = await stage.open({"b.txt": "b\n"})
        restarted = GitHubProvider(stage.options, stage.clock, stage.meter)
        await restarted.build(stage.request(pull, again, vehicle=Vehicle.PUSH))
        await restarted.close()
        assert [path for path in left if path.exists()] == []
        assert stage.built_by() == {("git", "default"): 2}

    async def test_a_mirror_that_another_process_holds_is_not_waited_for_long(self, stage):
        pull = await stage.open({"a.txt": "a\n"})
        await build(stage, pull)
        with stage.mirror.with_name(f"{stage.mirror.name}.lock").open("r+") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            await build(stage, pull)
        assert stage.built_by()["rest", "mirror_busy"] == 1

    async def test_the_least_recently_used_mirror_makes_room(self, tmp_path):
        async with on_sandbox(mirrors=mirrors_in(tmp_path, bytes_max=1 << 20)) as stage:
            older = stage.mirrors / "github.localhost/7.git"
            older.mkdir(parents=True)
            (older / "pack").write_bytes(os.urandom(900 << 10))
            stage.world.size_kib = 400
            await build(stage, await stage.open({"a.txt": "a\n"}))
            assert (older.exists(), stage.mirror.exists()) == (False, True)

    async def test_a_mirror_that_may_not_fit_is_not_made(self, tmp_path):
        async with on_sandbox(mirrors=mirrors_in(tmp_path, bytes_max=1 << 20)) as stage:
            stage.world.size_kib = 2 << 10
            await build(stage, await stage.open({"a.txt": "a\n"}))
            assert stage.built_by() == {("rest", "disk_full"): 1}

    async def test_doctor_names_a_mirror_that_may_not_fit(self, tmp_path):
        async with on_sandbox(mirrors=mirrors_in(tmp_path, bytes_max=1 << 20)) as stage:
            stage.world.size_kib = 2 << 10
            found = await stage.provider.audit(audited(stage))
            (said,) = [each for each in found if each.audit == "git-builds"]
            assert (said.severity, stage.mirror.exists()) == (Severity.WARNING, False)
            assert "HEADGATE_MIRRORS_MAX_GB" in said.mend

    async def test_a_folder_that_cannot_be_written_is_left_alone(self, tmp_path):
        (tmp_path / "mirrors").write_text("a file\n")
        async with on_sandbox(mirrors=mirrors_in(tmp_path)) as stage:
            await build(stage, await stage.open({"a.txt": "a\n"}))
            assert stage.built_by() == {("rest", "disk_full"): 1}

    async def test_upkeep_packs_what_is_loose(self, stage):
        pull = await stage.open({"a.txt": "a\n"})
        await build(stage, pull)
        for number in range(51):  # packs of nothing new, as fetches leave them
            stage.add_pack(stage.mirror, number)
        stage.clock.advance(4_000)
        await build(stage, pull)
        pack = stage.mirror / "objects/pack/multi-pack-index"
        await until(pack.exists)
        assert isinstance(await build(stage, pull), Built)
        assert stage.built_by() == {("git", "default"): 3}

    async def test_upkeep_drops_a_mirror_that_has_doubled(self, stage):
        pull = await stage.open({"a.txt": "a\n"})
        await build(stage, pull)
        (stage.mirror / SIZE_FILE).write_text(str(-GROWTH_FREE_BYTES))
        stage.clock.advance(4_000)
        await build(stage, pull)
        await until(lambda: not stage.mirror.exists())
        assert isinstance(await build(stage, pull), Built)
        assert stage.built_by() == {("git", "default"): 3}


class TestSecrets:
    """The token."""

    async def test_the_token_is_in_no_argument_file_or_log(self, tmp_path, capsys):
        real = shutil.which("git")
        wrapper = tmp_path / "bin/git"
        wrapper.parent.mkdir()
        log = tmp_path / "arguments"
        given = tmp_path / "given"
        wrapper.write_text(
            f'#!/bin/sh\nprintf "%s\\n" "$@" >> {log}\n'
            f'env | grep "Authorization: Basic" >> {given}\nexec {real} "$@"\n'
        )
        wrapper.chmod(0o700)
        path = {"PATH": f"{wrapper.parent}:{os.environ['PATH']}"}
        async with on_sandbox(mirrors=replace(mirrors_in(tmp_path), environment=path)) as stage:
            pull = await stage.open({"a.txt": "a\n"})
            await build(stage, pull)
            await stage.fault("fail_before", path="*/git-receive-pack", nth=1, status=403)
            await build(stage, pull)
            credentials = given.read_text().splitlines()[-1].rpartition(" ")[2]
            token = base64.b64decode(credentials).decode().rpartition(":")[2]
            assert len(token) > 20
            assert "--force-with-lease" in log.read_text()
            assert stat.S_IMODE(stage.mirror.stat().st_mode) == 0o700
            files = [each for each in stage.mirror.rglob("*") if each.is_file()]
            seen = b"".join(each.read_bytes() for each in [*files, log])
            seen += "".join(capsys.readouterr()).encode()
            assert token.encode() not in seen
            assert credentials.encode() not in seen

    async def test_a_token_that_is_refused_is_renewed(self, stage):
        pull = await stage.open({"a.txt": "a\n"})
        await build(stage, pull)
        await stage.fault("fail_before", path="*/info/refs", nth=1, status=401)
        await build(stage, await stage.open({"b.txt": "b\n"}))
        assert stage.built_by() == {("git", "default"): 2}

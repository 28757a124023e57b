"""Lines of squashes and rebases where git builds them: docs/design/git-builds.md 3."""

import fcntl
import random
import shutil
from collections import Counter
from dataclasses import replace

import pytest

from bot.github.gitbuild.chain import REPLAYED_MAX
from bot.github.options import BuildMethod
from bot.github.provider import GitHubProvider
from bot.sandbox import merges
from bot.sandbox.merges import Clean
from service.provider.errors import Refused, RefusedCode
from service.provider.values import Built, Conflicted, Rehearsed, Vehicle
from service.vocabulary import MergeMethod, Sha
from tests.provider import contract_lines
from tests.provider.contract_lines import (
    CALLS,
    EACH_LINE,
    TEXT,
    committed,
    edited,
    land,
    lands_as_built,
    opened,
    trees_of,
)
from tests.provider.stage import mirrors_in, on_sandbox
from tests.provider.test_git_builds import BY_GIT, untested

EACH_METHOD = pytest.mark.parametrize("method", list(MergeMethod))


@pytest.fixture
async def stage(tmp_path):
    async with on_sandbox(mirrors=mirrors_in(tmp_path)) as made:
        yield made


async def build(stage, *pulls, **changed):
    """Build a pushed test branch of these pull requests."""
    request = stage.request(*pulls, vehicle=Vehicle.PUSH, **changed)
    return await stage.provider.build(request)


def forked(request):
    """The same request, where each head is the fork of the next."""
    heads = [None, *(step.head_sha for step in request.steps)]
    steps = [replace(step, fork=heads[at]) for at, step in enumerate(request.steps)]
    return replace(request, steps=tuple(steps))


def log(stage, commit, base, fields):
    """A field of each commit on top of another one, oldest first."""
    words = stage.git("log", "--reverse", f"--format={fields}", f"{base}..{commit}")
    return words.splitlines()


class TestLines(contract_lines.Lines):
    line_writes = (("POST", "*/git-receive-pack", 1), ("POST", "*/pulls", 1))


class TestSquashes:
    """One commit for each head."""

    async def test_it_names_the_author_of_the_head_and_the_app_as_committer(self, stage):
        pull = await stage.open({"a": "a\n"}, by="dave", fork=True)
        built = await build(stage, pull, method=MergeMethod.SQUASH)
        (author,) = log(stage, pull[1], f"{pull[1]}^", "%an %ae")
        (made,) = log(stage, built.tip, stage.tip(), "%an %ae|%cn|%at %ct")
        slug = stage.sandbox.world.apps["headgate"].slug
        second = int(stage.clock.now().timestamp())
        assert made.startswith(f"{author}|{slug}[bot]|")
        assert abs(int(made.split()[-1]) - second) < 3600
        assert len(set(made.rpartition("|")[2].split())) == 1

    @pytest.mark.parametrize(
        ("name", "kept"),
        [
            (b"A\x07 U. Thor", "A U. Thor"),
            (b"...", "unknown"),
            (b"", "unknown"),
            (b"\xff\xfe", "\ufffd\ufffd"),
            (b"x" * 300, "x" * 200),
        ],
    )
    async def test_an_author_that_git_would_not_take_is_cleaned(self, stage, name, kept):
        head = stage.raw_commit(stage.tip(), name)
        pull = await opened(stage, head)
        for method in (MergeMethod.SQUASH, MergeMethod.REBASE):
            built = await build(stage, pull, method=method)
            assert log(stage, built.tip, stage.tip(), "%an") == [kept]

    @EACH_METHOD
    async def test_a_build_after_a_crash_makes_the_same_commits(self, stage, method):
        pulls = [await stage.open({"a.txt": "a\n"}), await stage.open({"b.txt": "b\n"})]
        request = stage.request(*pulls, method=method)
        built = await stage.provider.build(request)
        shutil.rmtree(stage.mirror)
        stage.clock.advance(60)
        assert await stage.provider.build(request) == built
        assert stage.built_by() == {("git", "default"): 2}

    async def test_the_methods_share_no_commit(self, stage):
        pulls = [await stage.open({"a.txt": "a\n"}), await stage.open({"b.txt": "b\n"})]
        made = [await build(stage, *pulls, method=method) for method in MergeMethod]
        assert len({each.commit for built in made for each in built.prefixes}) == 6
        assert len({tuple(trees_of(built)) for built in made}) == 1

    async def test_a_child_squashed_onto_its_parent_keeps_its_own_change(self, stage):
        await stage.push_files({"t": TEXT})
        one = await stage.open({"t": edited(3)})
        two = await stage.open({"t": edited(3, 4, word="again")}, **{"from": one[1]})
        request = forked(stage.request(one, two, method=MergeMethod.SQUASH, lands=True))
        built = await stage.provider.build(request)
        assert trees_of(built) == [stage.tree(one[1]), stage.tree(two[1])]
        assert stage.parents(built.tip) == (built.prefixes[0].commit,)
        without = stage.request(one, two, method=MergeMethod.SQUASH, lands=True)
        assert isinstance(await stage.provider.build(without), Conflicted)

    @EACH_LINE
    async def test_a_child_that_merged_main_keeps_its_own_change_alone(self, stage, method):
        await stage.push_files({"t": TEXT, "u": TEXT})
        one = await stage.open({"t": edited(3)})
        await stage.push_files({"u": edited(5)})
        own = committed(stage, [one[1]], {"t": edited(3, word="again")})
        merge = committed(stage, [own, stage.tip()], {"u": edited(5)})
        two = await opened(stage, committed(stage, [merge], {"v": "v\n"}))
        await stage.push_files({"u": edited(5, word="later")})
        request = forked(stage.request(one, two, method=method, lands=True))
        built = await stage.provider.build(request)
        expected = {"t": edited(3, word="again"), "v": "v\n"}
        assert built.prefixes[1].tree == stage.tree_with(stage.tree(stage.tip()), expected)

    async def test_a_conflict_of_a_child_with_its_fork_is_as_git_says(self, stage):
        await stage.push_files({"t": TEXT})
        one = await stage.open({"t": edited(3)})
        two = await stage.open({"t": edited(3, 9)}, **{"from": one[1]})
        await stage.push_files({"t": edited(9, word="main")})
        request = forked(stage.request(one, two, method=MergeMethod.SQUASH, lands=True))
        merges_before = stage.called("POST", "/merges")
        conflict = await stage.provider.build(request)
        assert conflict == Conflicted(two[0], with_base=True, culprit=None, paths=("t",))
        assert (stage.called("POST", "/merges"), stage.branches()) == (merges_before, {})


class TestRebases:
    """The commits of a head, one by one."""

    async def test_commits_keep_author_message_and_order(self, stage):
        start = stage.tip()
        await stage.push_files({"main.txt": "m\n"})
        first = committed(stage, [start], {"a": "1\n"}, "first\n\nbody\n")
        empty = committed(stage, [first], {}, "empty")
        merge = committed(stage, [empty, stage.tip()], {"main.txt": "m\n"}, "merge of main")
        pull = await opened(stage, committed(stage, [merge], {"a": "2\n"}, "last"))
        built = await build(stage, pull, method=MergeMethod.REBASE)
        shown = log(stage, built.tip, stage.tip(), "%s|%an|%at")
        assert [each.partition("|")[0] for each in shown] == ["first", "empty", "last"]
        own = log(stage, pull[1], stage.tip(), "%s|%an|%at")
        assert shown == [each for each in own if not each.startswith("merge")]
        assert log(stage, built.tip, stage.tip(), "%b")[0] == "body"
        assert [built.prefixes[0].tree] == await land(stage, [pull], MergeMethod.REBASE)

    async def test_a_child_takes_back_what_its_parent_did(self, stage):
        start = stage.tree(stage.tip())
        one = await stage.open({"t": TEXT})
        two = await opened(stage, committed(stage, [one[1]], {"t": None}))
        built = await lands_as_built(stage, [one, two], MergeMethod.REBASE)
        assert built.prefixes[1].tree == start

    async def test_more_commits_than_github_rebases_are_refused(self, stage):
        head = stage.tip()
        for number in range(REPLAYED_MAX):
            head = committed(stage, [head], {"n": f"{number}\n"})
        most = await opened(stage, head)
        built = await build(stage, most, method=MergeMethod.REBASE)
        assert len(log(stage, built.tip, stage.tip(), "%H")) == REPLAYED_MAX
        number, _ = more = await opened(stage, committed(stage, [head], {"n": "more\n"}))
        with pytest.raises(Refused, match="replays at most 100 commits") as refused:
            await build(stage, more, method=MergeMethod.REBASE)
        assert (refused.value.code, refused.value.number) == (RefusedCode.OTHER, number)

    async def test_a_conflict_between_its_commits_is_found_without_github(self, stage):
        start = stage.tip()
        await stage.push_files({"app.py": "main\n"})
        there = committed(stage, [start], {"app.py": "x\n"})
        pull = await opened(stage, committed(stage, [there], {"app.py": "1\n2\n3\n", "b": "b\n"}))
        conflict = await build(stage, pull, method=MergeMethod.REBASE)
        assert conflict == Conflicted(pull[0], with_base=True, culprit=None, paths=("app.py",))
        assert stage.called("POST", "/merges") == 0
        assert isinstance(await build(stage, pull, method=MergeMethod.SQUASH), Built)
        assert await land(stage, [pull], MergeMethod.REBASE) == []

    async def test_a_rest_build_adopts_what_git_has_pushed(self, stage):
        pulls = []
        for name in "ab":
            first = committed(stage, [stage.tip()], {f"{name}1": "x\n"})
            pulls.append(await opened(stage, committed(stage, [first], {f"{name}2": "x\n"})))
        request = stage.request(*pulls, method=MergeMethod.REBASE)
        built = await stage.provider.build(request)
        by_rest = GitHubProvider(replace(stage.options, mirrors=None), stage.clock)
        try:
            assert await by_rest.build(request) == built
        finally:
            await by_rest.close()
        assert stage.branches() == {request.branch: built.tip}


class TestRehearsals:
    """A build that ends before it pushes."""

    @EACH_LINE
    async def test_it_finds_what_a_landing_would_run_into(self, stage, method):
        one = await stage.open({"t": "A\n"})
        two = await stage.open({"t": "B\n", "s": "s\n"})
        free = await stage.open({"u": "u\n"})
        await build(stage, free, method=method)
        before = stage.branches()
        rehearse = stage.provider.rehearse
        assert await rehearse(stage.request(one, free, method=method)) == Rehearsed(None)
        found = await rehearse(stage.request(one, two, method=method))
        assert found.conflict == Conflicted(two[0], with_base=False, culprit=one[0], paths=("t",))
        found = await rehearse(stage.request(one, free, two, method=method))
        assert found.conflict == Conflicted(two[0], with_base=False, culprit=None, paths=("t",))
        await stage.push_files({"t": "C\n"})
        found = await rehearse(stage.request(one, two, method=method))
        assert found.conflict == Conflicted(one[0], with_base=True, culprit=None, paths=("t",))
        assert (stage.branches(), len(stage.pushes())) == (before, 1)
        assert stage.called("POST", "/merges") == 0

    async def test_a_head_ahead_that_conflicts_is_named_as_any_other(self, stage):
        pulls = [await stage.open({"t": words}) for words in ("A\n", "B\n")]
        await build(stage, pulls[0])
        request = stage.request(*pulls)
        steps = tuple(untested(step) for step in request.steps)
        found = await stage.provider.rehearse(replace(request, steps=steps))
        assert (found.conflict.number, found.conflict.culprit) == (pulls[1][0], pulls[0][0])

    async def test_it_does_not_make_a_mirror(self, tmp_path):
        async with on_sandbox(mirrors=mirrors_in(tmp_path, BuildMethod.GIT)) as stage:
            pulls = [await stage.open({"t": words}) for words in ("A\n", "B\n")]
            assert await stage.provider.rehearse(stage.request(*pulls)) is None
            assert not stage.mirror.exists()

    async def test_trouble_is_no_conflict_and_no_failure_of_git(self, stage):
        pulls = [await stage.open({"t": words}) for words in ("A\n", "B\n")]
        await build(stage, pulls[0])
        await stage.fault("fail_before", path="*/info/refs", nth=None, status=500)
        for _ in range(3):
            assert await stage.provider.rehearse(stage.request(*pulls)) is None
        stage.clear_faults()
        with stage.mirror.with_name(f"{stage.mirror.name}.lock").open("r+") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            assert await stage.provider.rehearse(stage.request(*pulls)) is None
        await build(stage, pulls[0])
        assert stage.built_by() == {("git", "default"): 2}


class History:
    """Small random histories of pull requests, in a folder of their own."""

    def __init__(self, stage, seed):
        self.stage = stage
        self.random = random.Random(seed)
        self.folder = f"case-{seed}"

    def _change(self):
        """A change of one file: a line, a whole file, or what it was at first."""
        name = f"{self.folder}/{self.random.choice('tu')}"
        place = self.random.randrange(2)
        word = self.random.choice("xyz")
        return self.random.choice(
            [
                *[{name: edited(place, word=word)}] * 4,
                {name: TEXT},
                {f"{self.folder}/{word}": f"{word}\n"},
                {f"{self.folder}/x": None},
                {},
            ]
        )

    async def _with_main(self, head):
        """The head with main merged into it, where git can."""
        objects = self.stage.world.git.objects
        merged = await merges.merge(objects, head, self.stage.tip())
        if not isinstance(merged, Clean) or objects.is_ancestor(self.stage.tip(), head):
            return head
        files = {}
        for path, _, new in objects.changed(self.stage.tree(head), merged.tree):
            files[path] = objects.blob(new.sha).decode() if new else None
        return committed(self.stage, [head, self.stage.tip()], files, "merge of main")

    async def members(self):
        """Two to four pull requests; each starts on main or on the one before."""
        names = [f"{self.folder}/{name}" for name in "tu"]
        await self.stage.push_files(dict.fromkeys(names, TEXT))
        pulls: list[tuple[int, Sha]] = []
        is_chain = self.random.random() < 0.5
        start = self.stage.tip()
        for at in range(self.random.randint(2, 4)):
            head = pulls[-1][1] if pulls and is_chain else start
            for number in range(self.random.randint(1, 3)):
                head = committed(self.stage, [head], self._change(), f"{at}.{number}")
                if self.random.random() < 0.3:
                    head = await self._with_main(head)
            head = committed(self.stage, [head], {f"{self.folder}/own-{at}": "x\n"}, f"{at}")
            pulls.append(await opened(self.stage, head))
            if self.random.random() < 0.4:
                await self.stage.push_files(self._change())
        return pulls


class TestProperty:
    """What is built is what lands."""

    @EACH_METHOD
    @pytest.mark.parametrize("cases", [6, pytest.param(60, marks=pytest.mark.soak)])
    async def test_every_tree_lands_or_is_refused_both_times(self, stage, method, cases):
        outcomes: Counter[type] = Counter()
        for seed in range(cases):
            pulls = await History(stage, seed).members()
            found = await build(stage, *pulls, method=method)
            landed = await land(stage, pulls, method)
            numbers = [number for number, _ in pulls]
            if isinstance(found, Built):
                assert trees_of(found) == landed, (seed, CALLS[method])
            else:
                assert found.number == numbers[len(landed)], (seed, CALLS[method])
            outcomes[type(found)] += 1
        assert set(outcomes) == {Built, Conflicted}
        assert stage.built_by().keys() <= {*BY_GIT, ("rest", "conflict")}

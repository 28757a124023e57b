"""The demo's proofs: each holds over an honest repository, and each sees its own lie."""

import os
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bot.demo import proofs
from bot.demo.proofs import EXACT_TREE, SAME_CHANGE, Branch, Claim, NotTested

MAIN = "refs/heads/main"
GOOD = "import sys\nprint('OK')\n"
BAD = "import sys\nprint('FAILED')\nsys.exit(1)\n"
NAMES = (
    "repository is sound",
    "history is what was reported",
    "what landed is what was tested",
    "nothing of a failed pull request is reachable",
    "the tests pass on each branch",
    "no test branch is left",
)


@dataclass
class Bare:
    """A bare repository, written by git's own plumbing."""

    folder: Path

    def git(self, *arguments, feed=None, **environment):
        """What git prints."""
        who = {
            f"GIT_{role}_{field}": "a@example.org"
            for role in ("AUTHOR", "COMMITTER")
            for field in ("NAME", "EMAIL")
        }
        done = subprocess.run(
            ["git", "--git-dir", str(self.folder), *arguments],
            input=feed,
            text=True,
            capture_output=True,
            check=True,
            env={**os.environ, **who, **environment},
        )
        return done.stdout.strip()

    def commit(self, files, *parents, note=""):
        """A commit with exactly these files."""
        index = {"GIT_INDEX_FILE": str(self.folder / "scratch-index")}
        Path(index["GIT_INDEX_FILE"]).unlink(missing_ok=True)
        for path, text in files.items():
            blob = self.git("hash-object", "-w", "--stdin", feed=text)
            self.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}", **index)
        tree = self.git("write-tree", **index)
        before = [part for parent in parents for part in ("-p", parent)]
        return self.git("commit-tree", tree, *before, "-m", note or "change")


@dataclass
class Evening:
    """A story that went well: #1 merged, then #2; #3 failed."""

    bare: Bare
    start: str
    claims: tuple[Claim, ...]
    is_parallel: bool = False

    @property
    def branch(self):
        """What is claimed of main."""
        return Branch("main", self.start, self.claims, self.is_parallel)

    async def proved(self):
        """Which proofs hold, by name."""
        found = await proofs.all_of(self.bare.folder, (self.branch,))
        assert tuple(proof.name for proof in found) == NAMES
        return {proof.name: proof.ok for proof in found}


@pytest.fixture(name="evening")
def _evening(tmp_path, needs):
    needs("git")
    folder = tmp_path / "widgets.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(folder)], check=True)
    bare = Bare(folder)
    files = {"run_tests.py": GOOD, "a": "0"}
    start = bare.commit(files)
    heads = [bare.commit(files | {f"new-{n}": f"{n}"}, start, note=f"head {n}") for n in (1, 2, 3)]
    one, two = files | {"new-1": "1"}, files | {"new-1": "1", "new-2": "2"}
    tested = [bare.commit(one, start, heads[0]), bare.commit(two, start, heads[1])]
    first = bare.commit(one, start, note="landed 1")
    second = bare.commit(two, first, note="landed 2")
    bare.git("update-ref", MAIN, second)
    bare.git("update-ref", "refs/pull/3/head", heads[2])
    claims = (
        Claim(1, "MERGED", heads[0], first, tested[0]),
        Claim(2, "MERGED", heads[1], second, tested[1]),
        Claim(3, "FAILED", heads[2], None, None),
    )
    return Evening(bare, start, claims)


async def only_this_fails(evening, name):
    assert await evening.proved() == dict.fromkeys(NAMES, True) | {name: False}


async def test_over_an_honest_repository_every_proof_holds(evening):
    assert all((await evening.proved()).values())


async def test_a_damaged_object_is_found(evening):
    blob = evening.bare.git("rev-parse", f"{evening.claims[2].head}:new-3")
    (evening.bare.folder / "objects" / blob[:2] / blob[2:]).unlink()
    assert not (await evening.proved())["repository is sound"]


async def test_a_landing_that_was_not_reported_is_found(evening):
    more = evening.bare.commit({"run_tests.py": GOOD}, evening.claims[1].landed)
    evening.bare.git("update-ref", MAIN, more)
    await only_this_fails(evening, "history is what was reported")


async def test_another_order_than_reported_is_found(evening):
    one, two, three = evening.claims
    evening.claims = (two, one, three)
    await only_this_fails(evening, "history is what was reported")


async def test_another_tree_than_the_tested_one_is_found(evening):
    other = evening.bare.commit({"run_tests.py": GOOD}, evening.start)
    one, two, three = evening.claims
    evening.claims = (one, replace(two, tested=other), three)
    await only_this_fails(evening, "what landed is what was tested")


async def test_a_merge_without_a_tested_commit_is_found(evening):
    one, two, three = evening.claims
    evening.claims = (one, replace(two, tested=None), three)
    await only_this_fails(evening, "what landed is what was tested")


async def test_a_failed_change_that_came_in_under_another_name_is_found(evening):
    one, two, three = evening.claims
    files = {"run_tests.py": GOOD, "a": "0", "new-1": "1", "new-2": "2", "smuggled": "3"}
    landed = evening.bare.commit(files, one.landed)
    evening.bare.git("update-ref", MAIN, landed)
    evening.claims = (one, replace(two, landed=landed, tested=landed), three)
    await only_this_fails(evening, "nothing of a failed pull request is reachable")


async def test_a_failed_head_that_is_in_main_is_found(evening):
    one, two, three = evening.claims
    tree = evening.bare.git("rev-parse", f"{two.landed}^{{tree}}")
    merge = ["commit-tree", tree, "-p", str(one.landed), "-p", three.head, "-m", "x"]
    landed = evening.bare.git(*merge)
    evening.bare.git("update-ref", MAIN, landed)
    evening.claims = (one, replace(two, landed=landed), three)
    await only_this_fails(evening, "nothing of a failed pull request is reachable")


async def test_tests_that_fail_on_main_are_found(evening):
    one, two, three = evening.claims
    files = {"run_tests.py": BAD, "a": "0", "new-1": "1", "new-2": "2"}
    landed = evening.bare.commit(files, one.landed)
    evening.bare.git("update-ref", MAIN, landed)
    evening.claims = (one, replace(two, landed=landed, tested=landed), three)
    await only_this_fails(evening, "the tests pass on each branch")


async def test_a_test_branch_that_is_left_is_found(evening):
    evening.bare.git("update-ref", "refs/heads/headgate/merge/pr-1/x", evening.start)
    await only_this_fails(evening, "no test branch is left")


async def test_a_fault_of_one_branch_is_a_fault_of_all(evening):
    other = Branch("other", evening.start, ())
    evening.bare.git("update-ref", "refs/heads/other", str(evening.claims[0].landed))
    found = await proofs.all_of(evening.bare.folder, (evening.branch, other))
    (fault,) = [proof for proof in found if not proof.ok]
    assert fault.name == "history is what was reported"
    assert fault.detail.startswith("other: found ")


def as_unit(evening, *, swapped=False):
    """Both landed by one run; `swapped`: its test branch brought them the other way round."""
    one, two, three = evening.claims
    files = {"run_tests.py": GOOD, "a": "0"}
    first = files | ({"new-2": "2"} if swapped else {"new-1": "1"})
    step = evening.bare.commit(first, evening.start, one.head, note="step 1")
    both = evening.bare.commit(files | {"new-1": "1", "new-2": "2"}, step, two.head, note="step 2")
    evening.claims = (replace(one, tested=both), replace(two, tested=both), three)


async def test_each_of_a_unit_is_held_against_its_own_step(evening):
    as_unit(evening)
    assert all((await evening.proved()).values())


async def test_a_unit_that_landed_in_another_order_than_tested_is_found(evening):
    as_unit(evening, swapped=True)
    await only_this_fails(evening, "what landed is what was tested")


def beside(evening, **more):
    """#2 was tested on the start alone, and landed after #1; `more` is what else it brought."""
    one, two, three = evening.claims
    files = {"run_tests.py": GOOD, "a": "0"}
    tested = evening.bare.commit(files | {"new-2": "2"}, evening.start, two.head)
    landed = evening.bare.commit(files | {"new-1": "1", "new-2": "2"} | more, one.landed)
    evening.bare.git("update-ref", MAIN, landed)
    evening.claims = (one, replace(two, landed=landed, tested=tested), three)


async def test_beside_others_the_same_change_is_what_was_tested(evening):
    evening.is_parallel = True
    beside(evening)
    assert all((await evening.proved()).values())
    kinds = await proofs.landings(evening.bare.folder, evening.branch)
    assert kinds == {1: EXACT_TREE, 2: SAME_CHANGE}


@pytest.mark.parametrize("more", [{"smuggled": "4"}, {"new-2": "two"}, {"a": "1"}])
async def test_another_change_than_the_tested_one_is_found(evening, more):
    evening.is_parallel = True
    beside(evening, **more)
    await only_this_fails(evening, "what landed is what was tested")


async def test_where_nothing_lands_beside_only_the_tested_tree_counts(evening):
    beside(evening)
    await only_this_fails(evening, "what landed is what was tested")
    with pytest.raises(NotTested, match="#2 landed tree"):
        await proofs.landings(evening.bare.folder, evening.branch)
    assert await proofs.known_landings(evening.bare.folder, evening.branch) == {}

"""The demo's proof by git: it holds over an honest repository, and finds each contradiction."""

import os
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bot.demo import proof
from bot.demo.proof import Branch, Landing

MAIN = "refs/heads/main"
GOOD = "import sys\nprint('OK')\n"
BAD = "import sys\nprint('FAILED')\nsys.exit(1)\n"
NAMES = (
    "repository is sound",
    "history is what was reported",
    "what landed is what was tested",
    "nothing of a pull request that left is reachable",
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
class Outcome:
    """What was reported: #1 merged, then #2; #3 failed."""

    bare: Bare
    start: str
    landings: tuple[Landing, ...]
    failed: dict[int, str]

    @property
    def branch(self):
        """What was reported about main."""
        return Branch("main", self.start, self.landings, self.failed)

    def proved(self):
        """Which proofs hold, by name."""
        found = proof.prove(self.bare.folder, (self.branch,))
        assert tuple(each.name for each in found) == NAMES
        return {each.name: each.ok for each in found}


@pytest.fixture(name="outcome")
def _outcome(tmp_path, needs):
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
    landings = Landing(1, first, tested[0]), Landing(2, second, tested[1])
    return Outcome(bare, start, landings, {3: heads[2]})


def only_this_fails(outcome, name):
    assert outcome.proved() == dict.fromkeys(NAMES, True) | {name: False}


def test_over_an_honest_repository_every_proof_holds(outcome):
    assert all((outcome.proved()).values())


def test_a_damaged_object_is_found(outcome):
    blob = outcome.bare.git("rev-parse", f"{outcome.failed[3]}:new-3")
    (outcome.bare.folder / "objects" / blob[:2] / blob[2:]).unlink()
    assert not (outcome.proved())["repository is sound"]


def test_a_landing_that_was_not_reported_is_found(outcome):
    more = outcome.bare.commit({"run_tests.py": GOOD}, outcome.landings[1].landed)
    outcome.bare.git("update-ref", MAIN, more)
    only_this_fails(outcome, "history is what was reported")


def test_a_commit_that_a_person_pushed_may_lie_between_the_landings(outcome):
    files = {"run_tests.py": GOOD, "a": "0", "new-1": "1", "new-2": "2", "mine": "x"}
    pushed = outcome.bare.commit(files, outcome.landings[1].landed)
    outcome.bare.git("update-ref", MAIN, pushed)
    for by_hand, holds in (((), False), ((pushed,), True)):
        branch = replace(outcome.branch, by_hand=frozenset(by_hand))
        found = {each.name: each.ok for each in proof.prove(outcome.bare.folder, (branch,))}
        assert found["history is what was reported"] is holds


def test_another_order_than_reported_is_found(outcome):
    one, two = outcome.landings
    outcome.landings = (two, one)
    only_this_fails(outcome, "history is what was reported")


def test_another_tree_than_the_tested_one_is_found(outcome):
    other = outcome.bare.commit({"run_tests.py": GOOD}, outcome.start)
    one, two = outcome.landings
    outcome.landings = (one, replace(two, tested=other))
    only_this_fails(outcome, "what landed is what was tested")


def test_a_merge_without_a_tested_commit_is_found(outcome):
    one, two = outcome.landings
    outcome.landings = (one, replace(two, tested=None))
    only_this_fails(outcome, "what landed is what was tested")


def test_a_failed_change_that_came_in_under_another_name_is_found(outcome):
    one, two = outcome.landings
    files = {"run_tests.py": GOOD, "a": "0", "new-1": "1", "new-2": "2", "smuggled": "3"}
    landed = outcome.bare.commit(files, one.landed)
    outcome.bare.git("update-ref", MAIN, landed)
    outcome.landings = (one, replace(two, landed=landed, tested=landed))
    only_this_fails(outcome, "nothing of a pull request that left is reachable")


def test_a_failed_head_that_is_in_main_is_found(outcome):
    one, two = outcome.landings
    tree = outcome.bare.git("rev-parse", f"{two.landed}^{{tree}}")
    merge = ["commit-tree", tree, "-p", str(one.landed), "-p", outcome.failed[3], "-m", "x"]
    landed = outcome.bare.git(*merge)
    outcome.bare.git("update-ref", MAIN, landed)
    outcome.landings = (one, replace(two, landed=landed))
    only_this_fails(outcome, "nothing of a pull request that left is reachable")


def test_tests_that_fail_on_main_are_found(outcome):
    one, two = outcome.landings
    files = {"run_tests.py": BAD, "a": "0", "new-1": "1", "new-2": "2"}
    landed = outcome.bare.commit(files, one.landed)
    outcome.bare.git("update-ref", MAIN, landed)
    outcome.landings = (one, replace(two, landed=landed, tested=landed))
    only_this_fails(outcome, "the tests pass on each branch")


def test_a_test_branch_that_is_left_is_found(outcome):
    outcome.bare.git("update-ref", "refs/heads/headgate/merge/pr-1/x", outcome.start)
    only_this_fails(outcome, "no test branch is left")


def test_a_fault_of_one_branch_is_a_fault_of_all(outcome):
    other = Branch("other", outcome.start, (), {})
    outcome.bare.git("update-ref", "refs/heads/other", str(outcome.landings[0].landed))
    found = proof.prove(outcome.bare.folder, (outcome.branch, other))
    (fault,) = [each for each in found if not each.ok]
    assert fault.name == "history is what was reported"
    assert fault.detail.startswith("other: found ")


def as_unit(outcome, *, swapped=False):
    """Both landed by one run; `swapped`: its test branch brought them the other way round."""
    one, two = outcome.landings
    files = {"run_tests.py": GOOD, "a": "0"}
    first = files | ({"new-2": "2"} if swapped else {"new-1": "1"})
    step = outcome.bare.commit(first, outcome.start, note="step 1")
    both = outcome.bare.commit(files | {"new-1": "1", "new-2": "2"}, step, note="step 2")
    outcome.landings = (replace(one, tested=both), replace(two, tested=both))


def test_each_of_a_unit_is_held_against_its_own_step(outcome):
    as_unit(outcome)
    assert all((outcome.proved()).values())


def test_a_unit_that_landed_in_another_order_than_tested_is_found(outcome):
    as_unit(outcome, swapped=True)
    only_this_fails(outcome, "what landed is what was tested")


def beside(outcome, **more):
    """#2 was tested on the start alone, and landed after #1; `more` is what else it brought."""
    one, two = outcome.landings
    files = {"run_tests.py": GOOD, "a": "0"}
    tested = outcome.bare.commit(files | {"new-2": "2"}, outcome.start)
    landed = outcome.bare.commit(files | {"new-1": "1", "new-2": "2"} | more, one.landed)
    outcome.bare.git("update-ref", MAIN, landed)
    outcome.landings = (one, replace(two, landed=landed, tested=tested, is_beside=True))


def test_beside_others_the_same_change_is_what_was_tested(outcome):
    beside(outcome)
    assert all(outcome.proved().values())


@pytest.mark.parametrize("more", [{"smuggled": "4"}, {"new-2": "two"}, {"a": "1"}])
def test_another_change_than_the_tested_one_is_found(outcome, more):
    beside(outcome, **more)
    only_this_fails(outcome, "what landed is what was tested")


@pytest.mark.parametrize("is_beside", [True, False])
def test_a_landing_of_the_other_kind_is_found(outcome, is_beside):
    """One that must land beside others did not, and one that must have the tested tree has not."""
    if not is_beside:
        beside(outcome)
    one, two = outcome.landings
    outcome.landings = (one, replace(two, is_beside=is_beside))
    only_this_fails(outcome, "what landed is what was tested")

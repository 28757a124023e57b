"""`headgate verify` makes the tested trees of a lane again: the test branch is gone."""

from pathlib import Path
from typing import Any

import pytest

from bot import envelopes
from tests.cli.test_verify import OTHER, Scene


class Lane(Scene):
    """#1 was tested on the base and landed on what others had landed meanwhile."""

    def __init__(self, folder: Path, method: str) -> None:
        self.folder = folder
        self.git("init", "-q", "-b", "main")
        self.git("remote", "add", "origin", "git@github.com:octo/widgets.git")
        self.commit("a.txt", "a\n")
        self.git("checkout", "-q", "-b", "topic")
        self.head = self.commit("b.txt", "b\n")
        self.git("checkout", "-q", "main")
        self.base = self.commit("d.txt", "d\n")
        self.before = self.commit("c.txt", "c\n", "Land another")
        self.tested = self.git("merge-tree", "--write-tree", self.base, self.head)
        how = ("--no-ff", "--no-commit") if method == "MERGE_COMMIT" else ("--squash",)
        self.git("merge", "-q", *how, "topic")
        self.git("commit", "-q", "-m", "Land it")
        self.landed = self.git("rev-parse", "HEAD")
        self.method = method
        self.key = envelopes.new_key()
        self.statement = self.stated()
        self.write(self.envelope())
        self.write_keys(self.key)
        (folder / ".git/objects" / self.tested[:2] / self.tested[2:]).unlink()

    def stated(self) -> dict[str, Any]:
        stated, start = super().stated(), self.tree(self.base)
        predicate, tested = stated["predicate"], {"gitTree": self.tested}
        predicate["base"] = {"gitCommit": self.before}
        predicate["landing"].update(
            method=self.method,
            proof="same_change",
            isTestedTree=False,
            expectedTree=tested,
            testedTree=tested,
            parentTree=start,
        )
        step = {
            "head": {"gitCommit": self.head},
            "commit": {"gitCommit": OTHER},
            "tree": tested,
            "addsNoCommit": False,
        }
        predicate["run"].update(tree=tested, base={"gitCommit": self.base, **start}, steps=[step])
        return stated


@pytest.fixture(params=["MERGE_COMMIT", "SQUASH"])
def lane(request: pytest.FixtureRequest, tmp_path: Path) -> Lane:
    return Lane(tmp_path, request.param)


def test_the_tested_tree_is_made_again_and_the_change_compared(lane: Lane, capsys) -> None:
    assert lane.verify() == 0
    assert "proved: its change is the tested one, path by path" in capsys.readouterr().out


def test_a_tree_that_the_heads_do_not_give_cannot_be_told(lane: Lane, capsys) -> None:
    def other(one: dict[str, Any]) -> None:
        run, landing = one["predicate"]["run"], one["predicate"]["landing"]
        for holder in (run, run["steps"][0]):
            holder["tree"] = {"gitTree": OTHER}
        landing["expectedTree"] = landing["testedTree"] = {"gitTree": OTHER}

    lane.write(lane.envelope(other))
    assert lane.verify() == 2
    assert "git does not make them again" in capsys.readouterr().out


def test_another_change_than_the_tested_one_is_refuted(lane: Lane) -> None:
    lane.commit("b.txt", "B\n", "By hand")
    lane.landed = lane.git("commit-tree", "HEAD^{tree}", "-p", lane.before, "-m", "Land it")
    digest = {"gitCommit": lane.landed, **lane.tree(lane.landed)}
    lane.write(lane.envelope(lambda one: one["subject"][0].update(digest=digest)))
    assert lane.verify() == 1


def test_for_a_key_that_nobody_named_nothing_is_made(lane: Lane) -> None:
    assert lane.verify(keys=False) == 2
    assert not (lane.folder / ".git/objects" / lane.tested[:2] / lane.tested[2:]).exists()

"""The proof by git: compare a bare repository with what the service reported.

It uses the `git` command alone, and no code of the engine, the store or the adapter: a proof that
shares code with what it proves proves nothing.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

# Each command reads a small repository; one that takes longer hangs.
COMMAND_TIMEOUT_S = 30
TEST_BRANCHES = "refs/heads/headgate"


@dataclass(frozen=True, slots=True)
class Landing:
    """A pull request that was reported as merged, with the commit that was tested for it.

    `is_beside`: others landed while it was tested, so that its tree differs from the tested one
    and only its change is the same.
    """

    number: int
    landed: str | None
    tested: str | None
    is_beside: bool = False


@dataclass(frozen=True, slots=True)
class Branch:
    """The reports about a target branch: landings in order, heads that left it by number.

    `start` is its tip before the first landing; `by_hand` are commits that people pushed.
    """

    name: str
    start: str
    landings: Sequence[Landing]
    failed: Mapping[int, str]
    by_hand: frozenset[str] = frozenset()

    @property
    def ref(self) -> str:
        """The branch as git spells it."""
        return f"refs/heads/{self.name}"


@dataclass(frozen=True, slots=True)
class Proof:
    """One thing that must hold; `detail` is what was compared, or what is wrong."""

    name: str
    ok: bool
    detail: str


class NotProved(Exception):
    """The repository contradicts what was reported; the message says where."""


def prove(bare: Path, branches: Sequence[Branch]) -> tuple[Proof, ...]:
    """Return every proof, in order."""

    def each(check: Callable[[Path, Branch], str]) -> list[tuple[str, Callable[[], str]]]:
        return [(branch.name, partial(check, bare, branch)) for branch in branches]

    return (
        proof("repository is sound", [("repository", partial(sound, bare))]),
        proof("history is what was reported", each(history)),
        proof("what landed is what was tested", each(trees)),
        proof("nothing of a pull request that left is reachable", each(_unreachable)),
        proof("the tests pass on each branch", each(_tests_pass)),
        proof("no test branch is left", [("repository", partial(_no_branch_left, bare))]),
    )


def proof(name: str, checks: Iterable[tuple[str, Callable[[], str]]]) -> Proof:
    """Run a check over each subject; one fault is a fault of the whole proof."""
    details, faults = [], []
    for subject, check in checks:
        try:
            details.append(f"{subject} {check()}")
        except (NotProved, OSError, subprocess.TimeoutExpired) as fault:
            faults.append(f"{subject}: {fault}")
    return Proof(name, not faults, "; ".join(faults) or " · ".join(details))


def sound(bare: Path) -> str:
    """`git fsck` finds nothing broken."""
    git(bare, "fsck", "--full", "--strict", "--no-dangling")
    return f"{git(bare, 'rev-list', '--all', '--count')} commits, git fsck is silent"


def history(bare: Path, branch: Branch) -> str:
    """The first parents since the start are the merged ones, once each, in order.

    Commits that people pushed by hand may lie between them.
    """
    span = f"{branch.start}..{branch.ref}"
    found = git(bare, "rev-list", "--first-parent", "--reverse", span).split()
    commits = [each for each in found if each not in branch.by_hand]
    if commits != [each.landed for each in branch.landings]:
        raise NotProved(f"found {commits}, reported were {[e.landed for e in branch.landings]}")
    return named(each.number for each in branch.landings)


def trees(bare: Path, branch: Branch) -> str:
    """Each landed tree is the one that CI tested for it, or has the tested change.

    Pull requests that one run verified are the last steps of its test branch, in order, and each
    is compared with its own step.
    """
    units: dict[str, list[Landing]] = {}
    for each in branch.landings:
        if each.landed is None or each.tested is None:
            raise NotProved(f"#{each.number} has no landed or no tested commit")
        units.setdefault(each.tested, []).append(each)
    for tested, unit in units.items():
        steps = git(bare, "rev-list", "--first-parent", f"-{len(unit)}", tested).split()
        for each, step in zip(unit, reversed(steps), strict=True):
            compare(bare, each, step)
    beside = [each.number for each in branch.landings if each.is_beside]
    exact = [each.number for each in branch.landings if not each.is_beside]
    return f"same tree of {named(exact)}" + (f", same change of {named(beside)}" if beside else "")


def compare(bare: Path, landing: Landing, step: str) -> None:
    """Compare a landed commit with its commit on the test branch. Raises NotProved."""
    landed = git(bare, "rev-parse", f"{landing.landed}^{{tree}}")
    tested = git(bare, "rev-parse", f"{step}^{{tree}}")
    if (landed == tested) is landing.is_beside:
        raise NotProved(f"#{landing.number} landed tree {landed[:12]}, tested was {tested[:12]}")
    if landing.is_beside and change(bare, str(landing.landed)) != change(bare, step):
        raise NotProved(f"#{landing.number} landed another change than {step[:12]}")


def change(bare: Path, commit: str) -> str:
    """Return every path that a commit changes against its first parent, with modes and blobs."""
    return git(bare, "diff-tree", "-r", "--raw", "--no-abbrev", f"{commit}^1", commit)


def _unreachable(bare: Path, branch: Branch) -> str:
    """Neither the head nor a changed file of a failed or removed pull request is in the branch."""
    for number, head in branch.failed.items():
        if head not in git(bare, "rev-list", head, f"^{branch.ref}").split():
            raise NotProved(f"the head of #{number} is in it")
        changed = git(bare, "diff", "--raw", "--no-abbrev", f"{branch.start}...{head}")
        for line in changed.splitlines():
            blob = line.split()[3]
            if set(blob) != {"0"} and git(bare, "log", "--find-object", blob, branch.ref):
                raise NotProved(f"{blob[:12]} of #{number} is in it")
    return f"left without landing: {named(branch.failed)}"


def _tests_pass(bare: Path, branch: Branch) -> str:
    """The repository's own tests, all of them, pass on a checkout of the branch."""
    with tempfile.TemporaryDirectory(prefix="headgate-proof-") as folder:
        index = {"GIT_INDEX_FILE": str(Path(folder, ".index"))}
        git(bare, "read-tree", branch.ref, more=index)
        git(bare, "--work-tree", folder, "checkout-index", "--all", more=index)
        tests = subprocess.run(
            [sys.executable, "-B", "run_tests.py"],
            cwd=folder,
            env={"PATH": os.defpath},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )
    last = (tests.stdout.decode(errors="replace").strip().splitlines() or [""])[-1]
    if tests.returncode:
        raise NotProved(f"the tests fail: {last}")
    return last


def _no_branch_left(bare: Path) -> str:
    """All test branches are deleted."""
    left = left_branches(bare)
    if left:
        raise NotProved(f"left: {', '.join(left)}")
    return "none"


def left_branches(bare: Path) -> list[str]:
    """Return the names of the test branches."""
    return git(bare, "for-each-ref", "--format=%(refname:short)", TEST_BRANCHES).split()


def git(bare: Path, *arguments: str, more: Mapping[str, str] | None = None) -> str:
    """Return what git prints, apart from this machine's configuration. Raises NotProved."""
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        **(more or {}),
    }
    done = subprocess.run(
        ["git", "--git-dir", str(bare), *arguments],
        cwd=bare,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=COMMAND_TIMEOUT_S,
        check=False,
    )
    if done.returncode:
        message = done.stderr.decode(errors="replace")[-300:]
        raise NotProved(f"git {arguments[0]} failed: {message}")
    return done.stdout.decode(errors="replace").strip()


def named(numbers: Iterable[int]) -> str:
    """Pull requests for people."""
    return ", ".join(f"#{number}" for number in numbers) or "none"

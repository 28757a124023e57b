"""What really happened, read from the repository with the `git` command and nothing else.

The spectator's claims come as `Claim`s: what the service says of each pull request. Here they
are held against the sandbox's bare repository. No import of engine, store or adapter: a proof
that shares code with what it proves proves nothing.
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# Each reads a small repository; more means something hangs.
COMMAND_TIMEOUT_S = 30
OUR_BRANCHES = "refs/heads/headgate"
EXACT_TREE, SAME_CHANGE = "EXACT_TREE", "SAME_CHANGE"


@dataclass(frozen=True, slots=True)
class Claim:
    """What the service says of one pull request; `landed` and `tested` are None unless merged."""

    number: int
    state: str
    head: str
    landed: str | None
    tested: str | None


@dataclass(frozen=True, slots=True)
class Branch:
    """What the service says of one target branch.

    `start` is where it stood before the story, `claims` are in the order of leaving the queue.
    Only in one that `is_parallel` others may land beside what is being tested.
    """

    name: str
    start: str
    claims: Sequence[Claim]
    is_parallel: bool = False

    @property
    def ref(self) -> str:
        """The branch as git spells it."""
        return f"refs/heads/{self.name}"

    @property
    def merged(self) -> list[Claim]:
        """What landed, in order."""
        return [claim for claim in self.claims if claim.state == "MERGED"]


@dataclass(frozen=True, slots=True)
class Proof:
    """One thing that must hold, and what was found."""

    name: str
    ok: bool
    detail: str


class GitRefused(Exception):
    """The git command ended with an error; the message is what it said."""


class NotTested(Exception):
    """Something landed that was not tested so; the message says what."""


Found = tuple[str, str]
"""What is wrong, empty when nothing is, and what was found."""


async def all_of(bare: Path, branches: Sequence[Branch]) -> tuple[Proof, ...]:
    """Every proof, in order."""
    proving = (
        ("repository is sound", sound(bare)),
        ("history is what was reported", each_of(bare, branches, history)),
        ("what landed is what was tested", each_of(bare, branches, trees)),
        ("nothing of a failed pull request is reachable", each_of(bare, branches, unreachable)),
        ("the tests pass on each branch", each_of(bare, branches, tests_pass)),
        ("no test branch is left", no_branch_left(bare)),
    )
    found = []
    for name, proving_it in proving:
        try:
            fault, detail = await proving_it
        except (GitRefused, NotTested, TimeoutError, OSError) as failed:
            fault, detail = str(failed) or type(failed).__name__, ""
        found.append(Proof(name, not fault, fault or detail))
    return tuple(found)


async def each_of(
    bare: Path, branches: Sequence[Branch], prove: Callable[[Path, Branch], Awaitable[Found]]
) -> Found:
    """A proof over every branch; a fault of one is a fault of all."""
    found = [(branch.name, *await prove(bare, branch)) for branch in branches]
    faults = [f"{name}: {fault}" for name, fault, _ in found if fault]
    return "; ".join(faults), " · ".join(f"{name} {detail}" for name, _, detail in found)


async def sound(bare: Path) -> Found:
    """`git fsck` finds nothing broken."""
    await git(bare, "fsck", "--full", "--strict", "--no-dangling")
    count = await git(bare, "rev-list", "--all", "--count")
    return "", f"{count} commits, git fsck is silent"


async def history(bare: Path, branch: Branch) -> Found:
    """The first parents since the start are the merged ones, once each, in order."""
    span = f"{branch.start}..{branch.ref}"
    found = (await git(bare, "rev-list", "--first-parent", "--reverse", span)).split()
    said = [claim.landed for claim in branch.merged]
    if found != said:
        return f"found {short(found)}, reported were {short(said)}", ""
    return "", listed(branch.merged) or "nothing"


async def trees(bare: Path, branch: Branch) -> Found:
    """Each landed tree is the one that CI tested for it, or brings the tested change."""
    kinds = await landings(bare, branch)
    beside = [claim for claim in branch.merged if kinds[claim.number] == SAME_CHANGE]
    exact = [claim for claim in branch.merged if kinds[claim.number] == EXACT_TREE]
    found = [
        f"same {word} of {listed(claims)}"
        for word, claims in (("tree", exact), ("change", beside))
        if claims
    ]
    return "", ", ".join(found) or "none landed"


async def landings(bare: Path, branch: Branch) -> dict[int, str]:
    """How each merged one landed, by number: EXACT_TREE or SAME_CHANGE.

    Those that one run verified are the last steps of its test branch, in order, and each is
    held against its own step. Where the trees differ because others landed beside it, paths
    and blobs that the step changed must be those that the landed commit changed. Raises
    NotTested.
    """
    kinds = {}
    for unit in units_of(branch):
        steps = (
            await git(bare, "rev-list", "--first-parent", f"-{len(unit)}", str(unit[0].tested))
        ).split()
        for claim, step in zip(unit, reversed(steps), strict=True):
            kinds[claim.number] = await landing(bare, branch, claim, step)
    return kinds


async def known_landings(bare: Path, branch: Branch) -> dict[int, str]:
    """The same; empty where something cannot be proved, which `all_of` says."""
    try:
        return await landings(bare, branch)
    except (GitRefused, NotTested, TimeoutError, OSError):
        return {}


async def landing(bare: Path, branch: Branch, claim: Claim, step: str) -> str:
    """How one pull request landed; `step` is its commit on the test branch. Raises NotTested."""
    landed = await git(bare, "rev-parse", f"{claim.landed}^{{tree}}")
    tested = await git(bare, "rev-parse", f"{step}^{{tree}}")
    if landed == tested:
        return EXACT_TREE
    if branch.is_parallel and await change(bare, str(claim.landed)) == await change(bare, step):
        return SAME_CHANGE
    raise NotTested(f"#{claim.number} landed tree {landed[:12]}, tested was {tested[:12]}")


async def change(bare: Path, commit: str) -> str:
    """Every path that a commit changes against its first parent, with modes and blobs."""
    return await git(bare, "diff-tree", "-r", "--raw", "--no-abbrev", f"{commit}^1", commit)


def units_of(branch: Branch) -> list[list[Claim]]:
    """The merged ones by the commit that was tested for them, in order. Raises NotTested."""
    units: dict[str, list[Claim]] = {}
    for claim in branch.merged:
        if claim.landed is None or claim.tested is None:
            raise NotTested(f"#{claim.number} has no landed or no tested commit")
        units.setdefault(claim.tested, []).append(claim)
    return list(units.values())


async def unreachable(bare: Path, branch: Branch) -> Found:
    """Neither the head nor a changed file of what failed is in any commit of the branch."""
    failed = [claim for claim in branch.claims if claim.state != "MERGED"]
    for claim in failed:
        missing = (await git(bare, "rev-list", claim.head, f"^{branch.ref}")).split()
        if claim.head not in missing:
            return f"the head of #{claim.number} is in it", ""
        changed = await git(bare, "diff", "--raw", "--no-abbrev", f"{branch.start}...{claim.head}")
        for line in changed.splitlines():
            blob = line.split()[3]
            if set(blob) != {"0"} and await git(bare, "log", "--find-object", blob, branch.ref):
                return f"{blob[:12]} of #{claim.number} is in it", ""
    return "", listed(failed) or "none failed"


async def tests_pass(bare: Path, branch: Branch) -> Found:
    """The repository's own tests, all of them, on a checkout of the branch."""
    with tempfile.TemporaryDirectory(prefix="headgate-proof-") as folder:
        index = {"GIT_INDEX_FILE": str(Path(folder, ".index"))}
        await git(bare, "read-tree", branch.ref, more=index)
        await git(bare, "--work-tree", folder, "checkout-index", "--all", more=index)
        code, output, _ = await ended(
            [sys.executable, "-B", "run_tests.py"], Path(folder), {"PATH": os.defpath}
        )
    last = output.decode(errors="replace").strip().splitlines()[-1:] or [""]
    return ("" if code == 0 else f"the tests fail: {last[0]}"), last[0]


async def no_branch_left(bare: Path) -> Found:
    """Our temporary branches are gone."""
    left = (await git(bare, "for-each-ref", "--format=%(refname:short)", OUR_BRANCHES)).split()
    return (f"left: {', '.join(left)}" if left else ""), "none"


async def git(bare: Path, *arguments: str, more: Mapping[str, str] | None = None) -> str:
    """What git prints, apart from every configuration of this machine. Raises GitRefused."""
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        **(more or {}),
    }
    code, output, said = await ended(["git", "--git-dir", str(bare), *arguments], bare, environment)
    if code:
        raise GitRefused(f"git {arguments[0]} failed: {said.decode(errors='replace')[-300:]}")
    return output.decode(errors="replace").strip()


async def ended(
    command: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> tuple[int, bytes, bytes]:
    """Exit code, output and errors of a command. Raises TimeoutError."""
    child = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(COMMAND_TIMEOUT_S):
            output, said = await child.communicate()
    except TimeoutError:
        child.kill()
        await child.wait()
        raise
    return child.returncode or 0, output, said


def short(shas: Sequence[str | None]) -> str:
    """Commits for people."""
    return ", ".join("none" if sha is None else sha[:12] for sha in shas) or "nothing"


def listed(claims: Sequence[Claim]) -> str:
    """Pull requests for people."""
    return ", ".join(f"#{claim.number}" for claim in claims)

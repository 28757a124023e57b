"""What really happened, read from the repository with the `git` command and nothing else.

The spectator's claims come as `Claim`s: what the service says of each pull request. Here they
are held against the sandbox's bare repository. No import of engine, store or adapter: a proof
that shares code with what it proves proves nothing.
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.demo import story

# Each reads a small repository; more means something hangs.
COMMAND_TIMEOUT_S = 30
OUR_BRANCHES = "refs/heads/headgate"


@dataclass(frozen=True, slots=True)
class Claim:
    """What the service says of one pull request; `landed` and `tested` are None unless merged."""

    number: int
    state: str
    head: str
    landed: str | None
    tested: str | None


@dataclass(frozen=True, slots=True)
class Proof:
    """One thing that must hold, and what was found."""

    name: str
    ok: bool
    detail: str


class GitRefused(Exception):
    """The git command ended with an error; the message is what it said."""


async def all_of(bare: Path, start: str, claims: Sequence[Claim]) -> tuple[Proof, ...]:
    """Every proof, in order.

    `start` is where `main` stood before the story, `claims` are in the order of merging.
    """
    proving = (
        ("repository is sound", sound(bare)),
        ("history is what was reported", history(bare, start, claims)),
        ("what landed is what was tested", trees(bare, claims)),
        ("nothing of a failed pull request is reachable", unreachable(bare, start, claims)),
        ("the tests pass on main", tests_pass(bare)),
        ("no test branch is left", no_branch_left(bare)),
    )
    found = []
    for name, proving_it in proving:
        try:
            fault, detail = await proving_it
        except (GitRefused, TimeoutError, OSError) as failed:
            fault, detail = str(failed) or type(failed).__name__, ""
        found.append(Proof(name, not fault, fault or detail))
    return tuple(found)


async def sound(bare: Path) -> tuple[str, str]:
    """`git fsck` finds nothing broken."""
    await git(bare, "fsck", "--full", "--strict", "--no-dangling")
    count = await git(bare, "rev-list", "--all", "--count")
    return "", f"{count} commits, git fsck is silent"


async def history(bare: Path, start: str, claims: Sequence[Claim]) -> tuple[str, str]:
    """The first parents of main since the start are the merged ones, once each, in order."""
    span = f"{start}..refs/heads/{story.BRANCH}"
    found = (await git(bare, "rev-list", "--first-parent", "--reverse", span)).split()
    said = [claim.landed for claim in claims if claim.state == "MERGED"]
    order = ", ".join(f"#{claim.number}" for claim in claims if claim.state == "MERGED")
    if found != said:
        return f"main has {short(found)}, reported were {short(said)}", ""
    return "", f"{len(found)} commits: {order}"


async def trees(bare: Path, claims: Sequence[Claim]) -> tuple[str, str]:
    """The tree of each landed commit is the tree of the commit that CI tested for it."""
    merged = [claim for claim in claims if claim.state == "MERGED"]
    for claim in merged:
        if claim.landed is None or claim.tested is None:
            return f"#{claim.number} has no landed or no tested commit", ""
        landed = await git(bare, "rev-parse", f"{claim.landed}^{{tree}}")
        tested = await git(bare, "rev-parse", f"{claim.tested}^{{tree}}")
        if landed != tested:
            return f"#{claim.number} landed tree {landed[:12]}, tested was {tested[:12]}", ""
    return "", f"{len(merged)} trees equal"


async def unreachable(bare: Path, start: str, claims: Sequence[Claim]) -> tuple[str, str]:
    """Neither the head nor a changed file of what failed is in any commit of main."""
    main = f"refs/heads/{story.BRANCH}"
    failed = [claim for claim in claims if claim.state != "MERGED"]
    for claim in failed:
        missing = (await git(bare, "rev-list", claim.head, f"^{main}")).split()
        if claim.head not in missing:
            return f"the head of #{claim.number} is in main", ""
        changed = await git(bare, "diff", "--raw", "--no-abbrev", f"{start}...{claim.head}")
        for line in changed.splitlines():
            blob = line.split()[3]
            if set(blob) != {"0"} and await git(bare, "log", "--find-object", blob, main):
                return f"{blob[:12]} of #{claim.number} is in main", ""
    return "", ", ".join(f"#{claim.number}" for claim in failed) or "none failed"


async def tests_pass(bare: Path) -> tuple[str, str]:
    """The repository's own tests, all of them, on a checkout of main."""
    with tempfile.TemporaryDirectory(prefix="headgate-proof-") as folder:
        index = {"GIT_INDEX_FILE": str(Path(folder, ".index"))}
        await git(bare, "read-tree", f"refs/heads/{story.BRANCH}", more=index)
        await git(bare, "--work-tree", folder, "checkout-index", "--all", more=index)
        code, output, _ = await ended(
            [sys.executable, "-B", "run_tests.py"], Path(folder), {"PATH": os.defpath}
        )
    last = output.decode(errors="replace").strip().splitlines()[-1:] or [""]
    return ("" if code == 0 else f"the tests fail: {last[0]}"), last[0]


async def no_branch_left(bare: Path) -> tuple[str, str]:
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

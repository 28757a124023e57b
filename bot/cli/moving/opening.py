"""Open a pull request of imported files, by the user's own `git` and `gh`.

The App has no right to change workflows, so nothing here uses its credentials.
"""

import shlex
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from bot.cli import output
from bot.cli.exits import Exit, Failed
from bot.cli.moving.plan import Change, Plan

NEW_BRANCH = "move-to-headgate"
REMOTE = "origin"
TITLE = "Move the merge queue to Headgate"
BY_HAND = "Or run the commands that `headgate import` prints"
COMMAND_TIMEOUT_S = 300
"""A push runs hooks of the checkout, which may test."""


def commands(changes: Iterable[Change], target: str) -> list[list[str]]:
    """Return the commands that make a pull request of the written files; none without a change."""
    paths = [each.path for each in changes]
    if not paths:
        return []
    return [
        ["git", "switch", "-c", NEW_BRANCH],
        ["git", "add", "--", *paths],
        ["git", "commit", "-m", TITLE],
        ["git", "push", "-u", REMOTE, NEW_BRANCH],
        ["gh", "pr", "create", "--fill", "--base", target],
    ]


def check(folder: Path, target: str) -> None:
    """Raise Failed for what would stop the commands, before anything is changed."""
    if shutil.which("gh") is None:
        raise _refused(
            "`gh` is not installed", f"Install it from https://cli.github.com. {BY_HAND}"
        )
    top = _run(folder, ["git", "rev-parse", "--show-toplevel"])
    if top.returncode or Path(top.stdout.strip()) != folder.resolve():
        raise _refused(f"{folder.resolve()} is not the top of a git checkout", "Name the checkout")
    if _run(folder, ["gh", "auth", "status"]).returncode:
        raise _refused("`gh` is not signed in", f"Run `gh auth login`. {BY_HAND}")
    on = _run(folder, ["git", "branch", "--show-current"]).stdout.strip()
    if on != target:
        where = f"on {on}" if on else "on no branch"
        raise _refused(f"the checkout is {where}, not on {target}", f"Run `git switch {target}`")
    if _run(folder, ["git", "status", "--porcelain"]).stdout.strip():
        raise _refused("the checkout has changes that are not committed", "Commit or stash them")
    if not _run(
        folder, ["git", "rev-parse", "-q", "--verify", f"refs/heads/{NEW_BRANCH}"]
    ).returncode:
        todo = f"Delete it with `git branch -D {NEW_BRANCH}`"
        raise _refused(f"the branch {NEW_BRANCH} exists already", todo)
    remote = _run(folder, ["git", "ls-remote", "--heads", REMOTE, NEW_BRANCH])
    if remote.returncode:
        raise _refused(f"the remote {REMOTE} cannot be read ({_last(remote.stderr)})", BY_HAND)
    if remote.stdout.strip():
        todo = f"Delete it with `git push {REMOTE} --delete {NEW_BRANCH}`"
        raise _refused(f"the branch {NEW_BRANCH} exists already at {REMOTE}", todo)
    known = ["--not", f"--remotes={REMOTE}"]
    ahead = _run(folder, ["git", "rev-list", "--count", "HEAD", *known]).stdout.strip()
    if ahead not in ("", "0"):
        todo = f"Push or drop them: the pull request would have them too. {BY_HAND}"
        raise _refused(f"{target} has commits that {REMOTE} has not ({ahead})", todo)


def run(folder: Path, plan: Plan) -> str:
    """Run the commands, each shown before, and return the address of the pull request.

    Raises Failed with the commands that are left.
    """
    chosen, said = commands(plan.changes, plan.branch), ""
    for nth, command in enumerate(chosen):
        output.log(f"$ {shlex.join(command)}")
        done = _run(folder, command)
        if done.returncode:
            rest = "; ".join(shlex.join(each) for each in chosen[nth:])
            why = _last(done.stderr) or f"exit code {done.returncode}"
            raise _refused(
                f"`{command[0]} {command[1]}` failed ({why})", f"Mend it, then run: {rest}"
            )
        said = _last(done.stdout)
    return said


def _run(folder: Path, command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=COMMAND_TIMEOUT_S,
        )
    except FileNotFoundError:
        raise _refused(f"`{command[0]}` is not installed", BY_HAND) from None
    except subprocess.TimeoutExpired:
        raise _refused(f"`{shlex.join(command)}` took too long", BY_HAND) from None


def _last(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""


def _refused(what: str, todo: str) -> Failed:
    return Failed(Exit.REFUSED, what, todo)

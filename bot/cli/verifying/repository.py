"""A repository, asked by the `git` command alone and without the network.

No transport is allowed, so that a partial clone fetches nothing; replaced objects and grafts,
which would show another history, are off.
"""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.cli.exits import Exit, Failed

TIMEOUT_S = 120
RANGE_MAX = 10_000
"""Commits of a range, and of a rebase."""

NOTES = "headgate"
"""Notes of this name may hold evidence: `refs/notes/headgate`."""


@dataclass(frozen=True, slots=True)
class Repository:
    """A checkout or bare repository."""

    path: Path

    def commit(self, name: str) -> str:
        """Return the whole id of a commit. Raises Failed(USAGE) if there is none."""
        found = self.git(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"
        )
        if not found:
            raise Failed(Exit.USAGE, f"{self.path} has no commit {name!r}")
        return found

    def span(self, base: str, top: str) -> list[str]:
        """Return the first-parent history from `top` down to `base`, which it leaves out.

        Raises Failed(USAGE) for one that is too long.
        """
        limit = f"--max-count={RANGE_MAX + 1}"
        found = self.git("rev-list", "--first-parent", limit, f"{base}..{top}", "--") or ""
        commits = found.split()
        if len(commits) > RANGE_MAX:
            raise Failed(Exit.USAGE, f"{base}..{top} has more than {RANGE_MAX} commits")
        return commits

    def log(self, below: str | None, top: str, form: str) -> str:
        """Return the first-parent history of `top`, oldest first, each commit in git's `form`.

        It begins above `below`; None: with the first commit.
        """
        span = top if below is None else f"{below}..{top}"
        listed = ("log", "--first-parent", "--reverse", "--no-color", "--no-notes")
        return self.git(*listed, f"--format={form}", span, "--") or ""

    def of_these(self, objects: Sequence[str]) -> frozenset[str]:
        """Return those of these objects that are in the repository."""
        asked = "".join(f"{each}\n" for each in objects).encode()
        answer = self._run("cat-file", "--batch-check=%(objectname) %(objecttype)", text=asked)
        lines = [] if answer is None else answer.decode().splitlines()
        return frozenset(line.split()[0] for line in lines if not line.endswith(" missing"))

    def has(self, object_id: str) -> bool:
        """Return whether an object is in the repository."""
        return self.git("cat-file", "-e", object_id) is not None

    def tree(self, commit: str) -> str | None:
        """Return the tree of a commit."""
        return self.git("rev-parse", "--verify", "--quiet", f"{commit}^{{tree}}")

    def parents(self, commit: str) -> list[str]:
        """Return the parents of a commit, as the commit itself names them."""
        raw = self.git("cat-file", "commit", commit) or ""
        head = raw.partition("\n\n")[0].splitlines()
        return [line.removeprefix("parent ") for line in head if line.startswith("parent ")]

    def contains(self, commit: str, ancestor: str) -> bool:
        """Return whether `ancestor` is reachable from a commit."""
        return self.git("merge-base", "--is-ancestor", ancestor, commit) is not None

    def merge_base(self, one: str, other: str) -> str | None:
        """Return the best common ancestor."""
        return self.git("merge-base", one, other)

    def merged_tree(self, base: str, head: str) -> str | None:
        """Return the tree of `head` merged into `base`; None for a conflict."""
        found = self.git("merge-tree", "--write-tree", base, head)
        return None if found is None else found.splitlines()[0]

    def marked_tree(self, base: str, head: str) -> str | None:
        """Return the tree of a merge, with marks where it conflicts; None if it cannot be made."""
        plain = ("-c", "merge.renames=false", "-c", "merge.directoryRenames=false")
        found = self._run(*plain, "merge-tree", "--write-tree", "-z", base, head, expects=(1,))
        return None if found is None else found.partition(b"\0")[0].decode().strip()

    def changed_paths(self, before: str, after: str) -> frozenset[str] | None:
        """Return the paths in which two trees differ."""
        listed = self._run("diff-tree", "-r", "-z", "--name-only", "--no-renames", before, after)
        if listed is None:
            return None
        names = listed.decode(errors="backslashreplace").split("\0")
        return frozenset(name for name in names if name)

    def content(self, commit: str, path: str) -> bytes | None:
        """Return the content of a file."""
        return self._run("cat-file", "blob", f"{commit}:{path}")

    def commit_of(self, tree: str, parents: Sequence[str]) -> str | None:
        """Return a new commit, which no branch has: the next merge needs its history."""
        identity = ("-c", "user.name=headgate verify", "-c", "user.email=verify@localhost")
        parented = [word for parent in parents for word in ("-p", parent)]
        return self.git(*identity, "commit-tree", tree, *parented, "-m", "Tested again by git")

    def change(self, before: str, after: str) -> str | None:
        """Return every path that differs between two trees, with modes and contents."""
        return self.git("diff-tree", "-r", "--raw", "--no-abbrev", "--no-renames", before, after)

    def patch_id(self, before: str, after: str) -> str | None:
        """Return the identity of a change, whatever it is applied to; empty for no change."""
        plain = ("--no-ext-diff", "--no-textconv", "--no-renames", "--full-index", "--binary")
        patch = self._run("diff-tree", "-p", "-r", *plain, before, after)
        if patch is None:
            return None
        named = self._run("patch-id", "--stable", text=patch)
        return None if named is None else named.decode().partition(" ")[0]

    def note(self, commit: str) -> str | None:
        """Return the note of a commit that may hold its evidence."""
        return self.git("notes", f"--ref={NOTES}", "show", commit)

    def remote(self) -> str:
        """Return the address of the remote `origin`; empty without one."""
        return self.git("config", "--get", "remote.origin.url") or ""

    def git(self, *arguments: str) -> str | None:
        """Return what git prints; None when it fails. Raises Failed(USAGE) without git."""
        printed = self._run(*arguments)
        return None if printed is None else printed.decode(errors="replace").strip()

    def _run(
        self, *arguments: str, text: bytes = b"", expects: tuple[int, ...] = ()
    ) -> bytes | None:
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "LC_ALL": "C",
            "GIT_ALLOW_PROTOCOL": "none",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_GRAFT_FILE": os.devnull,
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_TERMINAL_PROMPT": "0",
        }
        try:
            done = subprocess.run(
                ["git", "-C", str(self.path), *arguments],
                env=environment,
                input=text,
                capture_output=True,
                timeout=TIMEOUT_S,
                check=False,
            )
        except FileNotFoundError:
            raise Failed(Exit.USAGE, "git is not on PATH", "Install git 2.38 or newer") from None
        except subprocess.TimeoutExpired:
            why = f"git {arguments[0]} took more than {TIMEOUT_S} s"
            raise Failed(Exit.USAGE, why) from None
        return done.stdout if done.returncode in (0, *expects) else None

"""Merges and commits in a mirror, without a working tree (docs/design/git-builds.md 3)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from bot.github.client import RepositoryClient
from bot.github.gitbuild.command import Command, GitFailed, Output
from bot.github.gitbuild.mirror import Mirror
from bot.github.testbranches import CONFLICT_PATHS_MAX
from service.provider.values import Commit
from service.vocabulary import Sha

ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
AUTHOR_CHARS_MAX = 200
REPLAYED_MAX = 100
"""GitHub rebases no pull request with more commits."""
UNKNOWN = "unknown"
UNRELATED = "refusing to merge unrelated histories"
MERGE = ("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages")
AUTHOR = "%an%x00%ae"
DATE = re.compile(r"[0-9]{1,12} [+-][0-9]{4}")
# Newest last, and none that merges: git rebase leaves those out as well.
LISTED = (
    "log",
    "-z",
    "--reverse",
    "--topo-order",
    "--min-parents=1",
    "--max-parents=1",
    f"--max-count={REPLAYED_MAX + 1}",
    "--date=raw",
    f"--format=%H%x00%P%x00%T%x00{AUTHOR}%x00%ad%x00%B",
)
FIELDS = 7


@dataclass(frozen=True, slots=True)
class Clash:
    """Exact paths of a conflict, at most 100; none for unrelated histories.

    `is_final`: GitHub has no call that makes this merge, so it cannot confirm the conflict.
    """

    paths: tuple[str, ...]
    is_final: bool = False


class TooManyCommits(Exception):
    """A head has more commits to replay than GitHub replays."""


class Words(NamedTuple):
    """The message of a commit, and who made it when, as variables of git's environment."""

    message: bytes
    who: Mapping[str, str]


class Pick(NamedTuple):
    """One commit to replay."""

    sha: Sha
    parent: Sha
    tree: Sha
    words: Words


@dataclass(frozen=True, slots=True)
class Workbench:
    """Merges in one mirror, which is held, for one repository."""

    mirror: Mirror
    client: RepositoryClient

    async def contains(self, commit: Sha, head: Sha) -> bool:
        """Return whether a head is this commit or reachable from it."""
        found = await self._run("merge-base", "--is-ancestor", head, commit)
        return found.code == 0

    async def merge(self, ours: Sha, theirs: Sha) -> Sha | Clash:
        """Return the tree of a merge of two commits."""
        try:
            merged = await self._run(*MERGE, ours, theirs)
        except GitFailed as failed:
            if UNRELATED not in failed.words:
                raise
            return Clash(())
        parts = merged.text.split(b"\0")
        if merged.code == 1:
            paths = dict.fromkeys(displayed(part) for part in parts[1:] if part)
            return Clash(tuple(paths)[:CONFLICT_PATHS_MAX])
        return _id_of(parts[0])

    async def commit(self, tree: Sha, parents: tuple[Sha, ...], words: Words) -> Commit:
        """Make a commit."""
        named = (part for parent in parents for part in ("-p", parent))
        command = Command(
            ("commit-tree", tree, *named, "-F", "-"), words.message, environment=words.who
        )
        made = await self.mirror.run(command)
        return Commit(_id_of(made.text), tree, parents)

    async def author_of(self, head: Sha) -> dict[str, str]:
        """Return who wrote a commit, without what git takes in no name."""
        shown = await self._run("log", "-1", f"--format={AUTHOR}", head)
        name, _, email = shown.text.removesuffix(b"\n").partition(b"\0")
        return _author(name, email)

    async def replayed(
        self, head: Sha, onto: Commit, without: tuple[Sha, ...], who: Mapping[str, str]
    ) -> Commit | Clash:
        """Replay on `onto` the commits of a head that neither it nor `without` has.

        Authors and messages stay, `who` commits. A commit that changes nothing is left out, unless
        it did before. Raises TooManyCommits.
        """
        picks = await self._picks(head, (onto.sha, *without), who)
        trees = {pick.sha: pick.tree for pick in picks}
        tip = onto
        for pick in picks:
            if pick.parent not in trees:
                trees[pick.parent] = await self._tree_of(pick.parent)
            before = trees[pick.parent]
            tree = pick.tree if tip.tree == before else await self._picked(pick, tip)
            if isinstance(tree, Clash):
                return tree
            if tree != tip.tree or pick.tree == before:
                tip = await self.commit(tree, (tip.sha,), pick.words)
        return tip

    async def _picked(self, pick: Pick, tip: Commit) -> Sha | Clash:
        # The parent of what is picked is the base of the merge: git before 2.40 takes it only
        # from the history, so the tip's tree gets that parent.
        words = Words(b"base\n", pick.words.who)
        ours = await self.commit(tip.tree, (pick.parent,), words)
        return await self.merge(ours.sha, pick.sha)

    async def _picks(
        self, head: Sha, without: tuple[Sha, ...], who: Mapping[str, str]
    ) -> list[Pick]:
        listed = await self._run(*LISTED, head, *(f"^{sha}" for sha in without))
        parts = listed.text.split(b"\0")
        each = [parts[at : at + FIELDS] for at in range(0, len(parts) - 1, FIELDS)]
        if len(each) > REPLAYED_MAX:
            raise TooManyCommits(head)
        return [
            Pick(
                _id_of(sha),
                _id_of(parent),
                _id_of(tree),
                Words(message, {**who, **_author(name, email), **_author_date(date)}),
            )
            for sha, parent, tree, name, email, date, message in each
        ]

    async def _tree_of(self, commit: Sha) -> Sha:
        return _id_of((await self._run("rev-parse", f"{commit}^{{tree}}")).text)

    async def _run(self, *arguments: str) -> Output:
        """Run a command that answers 0 or 1; it may fetch contents into a blobless mirror."""
        client = self.client if self.mirror.is_blobless else None
        return await self.mirror.run(Command(arguments, expects=(1,)), client)


def displayed(path: bytes) -> str:
    """Return a path as text: bytes that are not UTF-8 and control characters are escaped."""
    text = path.decode("utf-8", "backslashreplace")
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def _author(name: bytes, email: bytes) -> dict[str, str]:
    return {"GIT_AUTHOR_NAME": _clean(name), "GIT_AUTHOR_EMAIL": _clean(email)}


def _clean(name: bytes) -> str:
    """Return a name that git takes as it is: it refuses one of punctuation alone."""
    text = name.decode("utf-8", "replace")
    text = "".join(each for each in text if each.isprintable() and each not in "<>")
    return text.strip(" .,:;\"\\'")[:AUTHOR_CHARS_MAX].rstrip(" .,:;\"\\'") or UNKNOWN


def _author_date(date: bytes) -> dict[str, str]:
    """Return the date of an author; without one that git can read, that of the committer."""
    text = date.decode("ascii", "replace")
    return {"GIT_AUTHOR_DATE": f"@{text}"} if DATE.fullmatch(text) else {}


def _id_of(output: bytes) -> Sha:
    sha = output.decode("ascii", "replace").strip()
    if not ID.fullmatch(sha):
        raise GitFailed("merge", "an object id was expected")
    return Sha(sha)

"""How often histories alarm the guard against undone work.

    nice python -m tests.bench.undone_histories --last 1000 REPOSITORY.git ...

Each landing on the first-parent line is judged as if it were a pull request, on the commit before
it, against the landings of the 30 days before. Each alarm is printed for somebody to read: whether
it took back what it names cannot be counted by a program. The last line of a repository has counts
and CPU. `--plant 20` also makes a stale squash at every twentieth landing, of a tree five landings
old with a change of its own, and counts how many of these five landings are named. A
repository stays as it is.
"""

import argparse
import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bot.github.gitbuild.command import Git
from bot.github.gitbuild.mirror import Mirror
from bot.github.gitbuild.undoing import Landings, Question
from service.clock import SystemClock
from service.landed_work import Declaration
from service.provider.undoing.ledger import Undone
from service.vocabulary import RepoRef, Sha
from tests.bench import cpu

DAYS = 30
STALE = 5
FILES_MAX = 20 << 30
BUTTON = re.compile(r"^Merge pull request #\d+ from \S+/revert-(\d+)-")
NUMBER = re.compile(r"^Merge pull request #(\d+)|\(#(\d+)\)$")


@dataclass(frozen=True)
class Commit:
    """A commit on the first-parent line, with what its pull request said."""

    sha: Sha
    parent: Sha
    at_s: int
    author: str
    text: str

    @property
    def subject(self) -> str:
        """The first line."""
        return self.text.partition("\n")[0][:90]

    @property
    def title(self) -> str:
        """The title of the pull request: of a merge, the first line of the body."""
        lines = [line for line in self.text.split("\n") if line] or [""]
        return lines[1] if lines[0].startswith("Merge pull request ") and lines[1:] else lines[0]

    @property
    def number(self) -> int | None:
        """The number of the pull request, as GitHub writes it."""
        found = NUMBER.search(self.text.partition("\n")[0])
        return int(found[1] or found[2]) if found else None


class History:
    """A repository to read, through an empty one that borrows its objects and takes new ones."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        self.scratch = scratch
        self.git("init", "-q", "--bare", "--template=", str(scratch))
        (scratch / "objects" / "info").mkdir(exist_ok=True)
        borrowed = folder if (folder / "objects").is_dir() else folder / ".git"
        (scratch / "objects/info/alternates").write_text(f"{borrowed.absolute()}/objects\n")
        self.newest = self.git(f"--git-dir={borrowed}", "rev-parse", "HEAD").strip()
        self.landings = Landings(Mirror(scratch, Git(FILES_MAX, os.environ), SystemClock()))

    def git(self, *arguments: str, feed: bytes = b"") -> str:
        """Run a command."""
        environment = {"PATH": os.environ["PATH"], "GIT_DIR": str(self.scratch)}
        done = subprocess.run(
            ["git", *arguments], input=feed, env=environment, capture_output=True, check=True
        )
        return done.stdout.decode("utf-8", "replace")

    def commits(self, last: int) -> list[Commit]:
        """The newest commits of the line, oldest first."""
        form = "--format=%H%x00%P%x00%ct%x00%an%x00%B"
        listed = self.git("log", "-z", "--first-parent", f"--max-count={last}", form, self.newest)
        fields = listed.rstrip("\0").split("\0")
        found = []
        for place in range(0, len(fields) - 4, 5):
            sha, parents, at_s, author, text = fields[place : place + 5]
            if parents:
                parent = Sha(parents.split(" ")[0])
                found.append(Commit(Sha(sha), parent, int(at_s), author, text))
        return found[::-1]

    def texts(self, commit: Commit) -> list[str]:
        """What a pull request and its commits say."""
        inner = self.git(
            "log", "--max-count=250", "--format=%B%x00", commit.sha, f"^{commit.parent}"
        )
        texts = [commit.text, *inner.split("\0")]
        # What GitHub's button writes below such a pull request is not in git.
        return [*texts, *(f"Reverts #{number}" for number in BUTTON.findall(commit.text))]


async def judged(history: History, commits: Sequence[Commit], slug: str) -> None:
    """Print the alarms of a history."""
    owner, name = slug.split("/")
    repo = RepoRef("github.com", owner, name)
    known = {commit.sha: commit for commit in commits}
    alarms = declared = repeated = 0
    took_ms: list[float] = []
    for commit, after in windows(commits):
        question = Question(commit.parent, commit.sha, commit.sha, after)
        with cpu.measured() as took:
            undone = await history.landings.undone_by(question)
            again = await history.landings.landed_already(question)
        took_ms.append(took.ms)
        if again is not None and again.landing is not None:
            repeated += 1
            sys.stdout.write(f"again {shown(commit)}\n  of {again.landing.commit[:9]}\n")
        if not undone:
            continue
        says = Declaration.of(history.texts(commit), repo)
        open_ = [each for each in undone if not await is_named(history, says, each, known)]
        alarms += bool(open_)
        declared += not open_
        sys.stdout.write(f"{'ALARM' if open_ else 'declared'} {shown(commit)}\n")
        sys.stdout.writelines(lines_of(open_ or undone, known))
    took_ms.sort()
    middle, most = took_ms[len(took_ms) // 2], took_ms[len(took_ms) * 19 // 20]
    sys.stdout.write(
        f"= {slug}: {len(took_ms)} landings, {alarms} alarms, {declared} declared,"
        f" {repeated} again; CPU {middle:.0f} ms, 95 % {most:.0f} ms\n"
    )


def windows(commits: Sequence[Commit]) -> Iterator[tuple[Commit, Sha]]:
    """Each commit but the first, with the one before the landings of 30 days."""
    first = 0
    for place in range(1, len(commits)):
        while commits[first].at_s < commits[place].at_s - DAYS * 86_400:
            first += 1
        if first < place:
            yield commits[place], commits[first].parent


async def is_named(
    history: History, says: Declaration, undone: Undone, known: dict[Sha, Commit]
) -> bool:
    """Whether a landing is one that the change says it takes back."""
    commit = known.get(undone.landing.commit)
    number, title = (None, "") if commit is None else (commit.number, commit.title)
    return says.names(await history.landings.commits_of(undone.landing.commit), number, title)


def shown(commit: Commit) -> str:
    """A commit in a line."""
    return f"{commit.sha[:9]} {commit.author[:20]}: {commit.subject}"


def lines_of(undone: Sequence[Undone], known: dict[Sha, Commit]) -> Iterator[str]:
    """What of which landing is undone."""
    for each in undone:
        commit = known.get(each.landing.commit)
        name = each.landing.commit[:9] if commit is None else shown(commit)
        paths = ", ".join(path.decode("utf-8", "replace") for path in each.paths[:3])
        what = f"{each.lines} of {each.standing} lines, {each.returned} contents"
        yield f"  {what} of {name} ({paths})\n"


async def planted(history: History, commits: Sequence[Commit], every: int) -> None:
    """Count how many landings are named that a stale tree undoes."""
    named = possible = 0
    for place in range(STALE + every, len(commits), every):
        tip, stale = commits[place], commits[place - STALE]
        history.git("read-tree", tip.sha)
        changed = history.git("diff-tree", "-r", "-z", "--raw", "--no-renames", tip.sha, stale.sha)
        records = changed.split("\0")
        lines = [
            f"{record.split(' ')[1]} {record.split(' ')[3]}\t{path}\0"
            for record, path in zip(records[::2], records[1::2], strict=False)
        ]
        own = history.git("hash-object", "-w", "--stdin", feed=b"own = 1\nwork = 2\n").strip()
        lines.append(f"100644 {own}\tplanted/own.py\0")
        history.git("update-index", "-z", "--index-info", feed="".join(lines).encode())
        tree = Sha(history.git("write-tree").strip())
        question = Question(tip.sha, tree, tip.sha, commits[max(0, place - 200)].parent)
        found = {each.landing.commit for each in await history.landings.undone_by(question)}
        gone = {commit.sha for commit in commits[place - STALE + 1 : place + 1]}
        possible += len(gone)
        named += len(gone & found)
        sys.stdout.writelines(
            f"missed {shown(commit)}\n"
            for commit in commits[place - STALE + 1 : place + 1]
            if commit.sha not in found
        )
    sys.stdout.write(f"= planted: {named} of {possible} landings named\n")


def main() -> None:
    """Read the histories that are named."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("repositories", nargs="+", type=Path)
    parser.add_argument("--last", type=int, default=1_000)
    parser.add_argument("--plant", type=int, default=0)
    parser.add_argument("--slug", default="owner/name", help="for GitHub's 'Reverts owner/name#1'")
    given = parser.parse_args()
    for folder in given.repositories:
        with TemporaryDirectory() as scratch:
            history = History(folder, Path(scratch))
            commits = history.commits(given.last)
            asyncio.run(judged(history, commits, given.slug))
            if given.plant:
                asyncio.run(planted(history, commits, given.plant))


if __name__ == "__main__":
    main()

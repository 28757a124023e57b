"""The cost of looking for undone work: a repository of 50,000 files and 3,000 landings.

Pull requests are drawn like the landings: up to six files, of which some are hot, and a line of the
changelog. A stale tree undoes the five newest landings. CPU is that of this process and of git;
memory is the peak of git, which counts what it has mapped of the pack, and that of Python's own
objects for the last of them. With SCALE there are more landings; the guard reads the newest 3,000.
"""

import asyncio
import os
import resource
import subprocess
import tracemalloc
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from bot.github.gitbuild.command import Git
from bot.github.gitbuild.mirror import Mirror
from bot.github.gitbuild.undoing import Landings, Question
from service.clock import SystemClock
from service.vocabulary import Sha
from tests.bench import cpu

FILES, LANDINGS = 50_000, 3_000
LINES, OLD_ENTRIES = 60, 2_000
ASKED = 40
STALE = 5
GOAL_MS, GOAL_MIB = 300, 100
START_S, EVERY_S = 1_700_000_000, 800
Row = dict[str, object]
Texts = Mapping[str, Sequence[str]]


def run(scale: float = 1.0) -> Sequence[Row]:
    """A row for ordinary pull requests, and one for stale trees."""
    with TemporaryDirectory() as folder:
        world = World(Path(folder) / "it.git")
        proposals = world.build(int(LANDINGS * scale))
        # The peak of git's memory is that of all children, and this process made the repository.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as apart:
            rows = [apart.submit(measured, world.folder, name, asked) for name, asked in proposals]
            return [row.result() for row in rows]


def measured(folder: Path, name: str, trees: Sequence[tuple[str, str, str]]) -> Row:
    """The row of some pull requests: tip, merge result, and the commit before the landings."""
    landings = Landings(Mirror(folder, Git(20 << 30, os.environ), SystemClock()))
    took_ms, named = [], 0
    for tip, tree, after in trees:
        question = Question(Sha(tip), Sha(tree), Sha(tip), Sha(after))
        with cpu.measured() as took:
            undone = asyncio.run(landings.undone_by(question))
            asyncio.run(landings.landed_already(question))
        took_ms.append(took.ms)
        named += len(undone)
    took_ms.sort()
    tracemalloc.start()
    asyncio.run(landings.undone_by(question))
    own_bytes = tracemalloc.get_traced_memory()[1]
    peak_kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return {
        "subject": f"{name}, {FILES:,} files",
        "median_ms": round(took_ms[len(took_ms) // 2]),
        "median_goal_ms": GOAL_MS,
        "p95_ms": round(took_ms[len(took_ms) * 19 // 20]),
        "git_mib": peak_kib >> 10,
        "git_goal_mib": GOAL_MIB,
        "python_mib": own_bytes >> 20,
        "landings_named": round(named / len(trees), 1),
    }


@dataclass
class World:
    """A repository that git imports."""

    folder: Path
    chance: Random = field(default_factory=lambda: Random(1))
    texts: dict[str, list[str]] = field(default_factory=dict)

    def build(self, many: int) -> list[tuple[str, list[tuple[str, str, str]]]]:
        """Land so many changes, and make the trees of pull requests on the last one."""
        self.git("init", "-q", "--bare", "--template=", str(self.folder))
        self.git("fast-import", "--quiet", feed=b"".join(self.history(many)))
        self.git("repack", "-adq")
        line = self.git("rev-list", "--first-parent", "main").split()
        tip, after = line[0], line[many]
        drawn = [self.tree(tip, self.drawn("mine")) for _ in range(ASKED)]
        stale = []
        for place in range(ASKED // 4):
            newest = line[place * 7]
            paths = self.git("diff", "--name-only", newest, line[place * 7 + STALE]).split("\n")
            old = {path: self.old(line[place * 7 + STALE], path) for path in paths}
            stale.append((newest, self.tree(newest, old), after))
        asked = [(tip, tree, after) for tree in drawn]
        return [(f"a pull request, {many:,} landings", asked), (f"a tree {STALE} old", stale)]

    def history(self, many: int) -> Iterator[bytes]:
        """Yield the input of fast-import."""
        for number in range(FILES):
            self.texts[path_of(number)] = [self.line("base") for _ in range(LINES)]
        self.texts["changes.txt"] = [f"- old entry {number}" for number in range(OLD_ENTRIES)]
        yield commit(0, self.texts)
        for number in range(1, many + 1):
            changed = self.drawn(f"landing{number}")
            self.texts |= changed
            yield commit(number, changed)

    def drawn(self, tag: str) -> dict[str, list[str]]:
        """The files of a change: a few lines out, more in, so that files keep their size."""
        changed = {}
        for _ in range(self.chance.choice((1, 2, 3, 4, 6))):
            is_hot = self.chance.random() < 0.7
            share = FILES ** self.chance.random() if is_hot else self.chance.random() * FILES
            path = path_of(min(int(share), FILES - 1))
            rows = list(self.texts[path])
            place, out = self.chance.randrange(len(rows)), self.chance.randrange(6)
            rows[place : place + out] = [
                self.line(tag) for _ in range(self.chance.randrange(3, 25))
            ]
            spare = self.chance.randrange(len(rows))
            del rows[spare : spare + max(0, len(rows) - 2 * LINES)]
            changed[path] = rows
        return changed | {"changes.txt": [f"- {tag}", *self.texts["changes.txt"]]}

    def line(self, tag: str) -> str:
        """A line of code."""
        return f"    value_{self.chance.randrange(10**6)} = {tag}({self.chance.randrange(10**6)})"

    def old(self, at: str, path: str) -> list[str] | None:
        """A file at a commit."""
        try:
            return self.git("cat-file", "blob", f"{at}:{path}").split("\n")
        except subprocess.CalledProcessError:
            return None

    def tree(self, tip: str, changed: Mapping[str, Sequence[str] | None]) -> str:
        """The tip's tree with other files."""
        self.git("read-tree", tip)
        listed = []
        for path, rows in changed.items():
            if rows is None:
                listed.append(f"0 {'0' * 40}\t{path}\n")
            else:
                blob = self.git("hash-object", "-w", "--stdin", feed=text_of(rows))
                listed.append(f"100644 {blob}\t{path}\n")
        self.git("update-index", "--index-info", feed="".join(listed).encode())
        return self.git("write-tree")

    def git(self, *arguments: str, feed: bytes = b"") -> str:
        """Run git."""
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_DIR": str(self.folder),
            "GIT_INDEX_FILE": f"{self.folder}.index",
        }
        done = subprocess.run(
            ["git", *arguments], input=feed, env=environment, stdout=subprocess.PIPE, check=True
        )
        return done.stdout.decode().strip("\n")


def path_of(number: int) -> str:
    """A path three folders deep."""
    return f"pkg{number // 2000:02d}/mod{number // 100:03d}/file{number % 100:02d}.py"


def text_of(rows: Sequence[str]) -> bytes:
    """The content of a file."""
    return "\n".join(rows).encode() + b"\n"


def commit(number: int, texts: Texts) -> bytes:
    """A commit for fast-import, marked by its number."""
    parts = [
        b"commit refs/heads/main\nmark :%d\n" % (number + 1),
        b"committer dev <dev@example.org> %d +0000\n" % (START_S + EVERY_S * number),
        b"data 7\nlanding\n",
    ]
    if number:
        parts.append(b"from :%d\n" % number)
    for path, rows in texts.items():
        content = text_of(rows)
        parts.append(b"M 100644 inline %b\ndata %d\n%b\n" % (path.encode(), len(content), content))
    return b"".join(parts)

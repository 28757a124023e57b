"""Conflicts of a merge in a mirror that the rules of a queue resolve (docs/design/conflicts.md 5).

Attributes of the repository play no part: the rules come with the request, and this process unites
the contents itself.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bot.github.gitbuild import patches
from bot.github.gitbuild.command import Command, Output
from service.provider import resolving
from service.vocabulary import ConflictRule, Resolution, Resolved, Sha

PATHS_MAX = 20
STAGES = ("merge-tree", "--write-tree", "-z", "--no-messages")
BASE, OURS, THEIRS = range(1, 4)
FILES = (b"100644", b"100755")


@dataclass(slots=True)
class Resolver:
    """Resolves conflicts by these rules. `run`: a git command in a mirror, which is held.

    `took_s`: the CPU time of this process for it.
    """

    run: Callable[[Command], Awaitable[Output]]
    index: Path
    rules: Sequence[ConflictRule]
    took_s: float = 0.0

    async def tree_of(self, ours: Sha, theirs: Sha) -> tuple[Sha, tuple[Resolved, ...]] | None:
        """Return the tree of a merge, and what was resolved; None: a conflict stays one."""
        merged = await self.run(Command((*STAGES, ours, theirs), expects=(1,)))
        bases = await self.run(Command(("merge-base", "--all", ours, theirs), expects=(1,)))
        if len(bases.text.split()) != 1:
            # The base would be one that git makes of several.
            return None
        tree, _, rest = merged.text.partition(b"\0")
        clashes = _clashes(rest)
        rules = {path: self._rule_of(path, stages) for path, stages in clashes.items()}
        if not 0 < len(rules) <= PATHS_MAX:
            return None
        named = {path: rule for path, rule in rules.items() if rule is not None}
        if len(named) < len(rules):
            return None
        united = await self._united(clashes, named)
        if united is None:
            return None
        found = {one: tuple(_text(p) for p in named if named[p] is one) for one in Resolution}
        resolved = tuple(Resolved(one, paths) for one, paths in found.items() if paths)
        return await self._written(tree.decode("ascii"), united), resolved

    def _rule_of(self, path: bytes, stages: Mapping[int, tuple[bytes, str]]) -> Resolution | None:
        """Return the rule for a file that both sides changed; what is no such conflict has none."""
        modes = {mode for mode, _ in stages.values()}
        is_file = stages.keys() == {BASE, OURS, THEIRS} and len(modes) == 1 and modes < {*FILES}
        try:
            name = path.decode("utf-8")
        except UnicodeDecodeError:
            return None
        return resolving.rule_for(self.rules, name) if is_file and name.isprintable() else None

    async def _united(
        self,
        clashes: Mapping[bytes, Mapping[int, tuple[bytes, str]]],
        rules: Mapping[bytes, Resolution],
    ) -> list[bytes] | None:
        """Return the lines of an index with the outcomes; None where one stays a conflict."""
        blobs = sorted({id for stages in clashes.values() for _, id in stages.values()})
        feed = "".join(f"{id}\n" for id in blobs).encode()
        sizes = await self.run(Command(("cat-file", "--batch-check=%(objectsize)"), feed))
        if any(int(size) > resolving.BYTES_MAX for size in sizes.text.split()):
            return None
        room = (resolving.BYTES_MAX + 200) * len(blobs)
        batch = await self.run(Command(("cat-file", "--batch"), feed, output_max=room))
        contents = dict(patches.contents_of(batch.text))
        lines = []
        for path, stages in clashes.items():
            three = (contents[Sha(stages[stage][1])] for stage in (BASE, OURS, THEIRS))
            made = await asyncio.to_thread(self._made, rules[path], *three)
            if made is None:
                return None
            stored = await self.run(Command(("hash-object", "-w", "--stdin"), made or b""))
            lines.append(b"%b %b\t%b" % (stages[OURS][0], stored.text.strip(), path))
        return lines

    def _made(self, rule: Resolution, base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
        began_s = time.thread_time()
        try:
            return resolving.resolved(rule, base, ours, theirs)
        finally:
            self.took_s += time.thread_time() - began_s

    async def _written(self, tree: str, lines: Sequence[bytes]) -> Sha:
        """Return a tree with some files replaced."""
        environment = {"GIT_INDEX_FILE": str(self.index)}
        feed = b"".join(line + b"\0" for line in lines)
        try:
            await self.run(Command(("read-tree", tree), environment=environment))
            update = ("update-index", "-z", "--index-info")
            await self.run(Command(update, feed, environment=environment))
            # A blobless mirror need not have the other files.
            write = ("write-tree", "--missing-ok")
            written = await self.run(Command(write, environment=environment))
        finally:
            with suppress(FileNotFoundError):
                self.index.unlink()
        return Sha(written.text.decode("ascii").strip())


def _clashes(listed: bytes) -> dict[bytes, dict[int, tuple[bytes, str]]]:
    """Read the conflicts of `git merge-tree`: mode and object of each stage, by path."""
    found: dict[bytes, dict[int, tuple[bytes, str]]] = {}
    for record in listed.split(b"\0"):
        if record:
            facts, _, path = record.partition(b"\t")
            mode, name, stage = facts.split(b" ")
            found.setdefault(path, {})[int(stage)] = mode, name.decode("ascii")
    return found


def _text(path: bytes) -> str:
    return path.decode("utf-8")

"""Evidence of a world's landings as files, and `headgate verify` on a fresh clone."""

import asyncio
import subprocess
from dataclasses import dataclass
from pathlib import Path

import orjson

from bot.cli import app
from service.accounts import signing_keys
from service.database.database import Tx
from service.mergequeue.store import landing_evidence
from tests.harness.asking import HOST
from tests.harness.world import REPO, World

ALL = 1000


@dataclass(frozen=True, slots=True)
class Files:
    """A clone that has no network, the envelopes of all landings, the public keys."""

    clone: Path
    evidence: Path
    keys: Path

    def verify(self, commit: str, *more: str) -> int:
        """Return the exit code of `headgate verify`, with the keys named."""
        files = ["--evidence", str(self.evidence), "--key", str(self.keys)]
        place = ["--checkout", str(self.clone), "--repo", f"{HOST}/{REPO}"]
        return app.run(["verify", commit, *files, *place, *more])

    def lines(self) -> list[str]:
        """Return the envelopes, the oldest first."""
        return self.evidence.read_text().splitlines()


async def files_of(world: World, folder: Path) -> Files:
    """Clone the repository afresh, heads of pull requests too, and write evidence and keys."""
    made = Files(folder / "clone", folder / "evidence.jsonl", folder / "keys.json")
    await asyncio.to_thread(clone, world.repository.git.folder, made.clone)
    queue = await world.queue()

    def stored(session: Tx) -> list[str]:
        return [each.envelope for each in landing_evidence.after(session, queue.id, 0, ALL)]

    lines = await world.runtime.store.read(stored)
    made.evidence.write_text("".join(f"{line}\n" for line in lines))
    keys = await signing_keys.all_keys(world.runtime)
    made.keys.write_bytes(orjson.dumps(signing_keys.served(keys)))
    return made


def clone(bare: Path, folder: Path) -> None:
    """Clone a repository with the heads of its pull requests, and forget where it came from."""
    git = ["git", "-c", "protocol.file.allow=always"]
    subprocess.run([*git, "clone", "-q", "--no-local", str(bare), str(folder)], check=True)
    heads = "+refs/pull/*:refs/pull/*"
    subprocess.run([*git, "-C", str(folder), "fetch", "-q", "origin", heads], check=True)
    subprocess.run([*git, "-C", str(folder), "remote", "remove", "origin"], check=True)

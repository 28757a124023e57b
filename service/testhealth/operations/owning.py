"""Owners of files by a CODEOWNERS file: few questions on a thread, others in a parser process.

A line of the file may be asked of every path, so the time is their product; see
docs/design/security.md 8.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from typing import cast

from service.parser_process import Job, Limits
from service.runtime import Runtime
from service.testhealth.reports import owners
from service.vocabulary import RepoRef

# Lines times paths. So many questions take 0.2 s at worst, and a usual file has fewer.
QUESTIONS_FEW = 100_000
LIMITS = Limits(computing_s=10, memory_bytes=512 * 1024 * 1024)

Owners = Mapping[str, tuple[str, ...]]
"""Path → the owners of the file."""


async def owners_of(runtime: Runtime, repo: RepoRef, text: str, paths: Collection[str]) -> Owners:
    """Return the owners of each path by the text of a CODEOWNERS file.

    Raises Overloaded while no parser is free, Stopped when it took too much.
    """
    asked = sorted(set(paths))
    if (text.count("\n") + 1) * len(asked) <= QUESTIONS_FEW:
        return await asyncio.to_thread(_joined, owners.pieces(text, asked))
    job = Job(owners.pieces, (text, asked), LIMITS)
    pieces = await runtime.parsers.run(repo, job, runtime.clock)
    return await asyncio.to_thread(_joined, pieces)


def _joined(pieces: Iterable[object]) -> Owners:
    found: dict[str, tuple[str, ...]] = {}
    for piece in pieces:
        found |= cast(Owners, piece)
    return found

"""Reports to cases, and cases to pieces: what a parser process does for `parsing.py`.

Nothing is imported here but the pure readers, so that the process starts in a fraction of a
second.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, cast

from service.provider import archives
from service.provider.archives import Archive, NoArchive, RefusedFile
from service.testhealth.reports import reports
from service.testhealth.reports.reading import ReadOptions
from service.testhealth.reports.results import CaseResult, Fault, FileStatus, Format, ReportFile
from service.testhealth.reports.text import Unpacked, unpacked

CASES_OF_PIECE = 2_000
"""Cases are written as columns, so many at a time: mostly equal texts are quick to write and read,
and no piece blocks the interpreter, and with it the event loop, for 10 ms."""


class Work(NamedTuple):
    """Files as they were sent, and how to read them."""

    contents: Sequence[bytes]
    wanted: Format | None
    read_options: ReadOptions


class ArchivePosition(NamedTuple):
    """The place in an archive to begin, and how many bytes to unpack until the portion is full."""

    first_at: int
    bytes_enough: int


class Portion(NamedTuple):
    """Some files of an archive: their names, and the position of the next file if there is one."""

    names: Sequence[str]
    next_at: int | None


def read(work: Work) -> list[ReportFile]:
    """Every file of the work, in order."""
    return [_done(content, work) for content in work.contents]


def pieces(work: Work) -> Iterator[object]:
    """Read every file of the work; return the pieces of the result."""
    return encoded(read(work))


def pieces_of_archive(packed: bytes, position: ArchivePosition, work: Work) -> Iterator[object]:
    """Unpack and read one portion of a ZIP archive.

    The first piece is the portion, or why the archive cannot be read.
    """
    archive = archives.read(packed)
    if isinstance(archive, NoArchive):
        yield archive
        return
    names, done = _portion(archive, position, work)
    next_at = position.first_at + len(names)
    yield Portion(names, next_at if next_at < len(archive.entries) else None)
    yield from encoded(done)


def _portion(
    archive: Archive, position: ArchivePosition, work: Work
) -> tuple[list[str], list[ReportFile]]:
    names: list[str] = []
    done: list[ReportFile] = []
    size = 0
    for file in archive.files(position.first_at):
        names.append(file.name)
        if isinstance(file, RefusedFile):
            fault = Fault(file.reason)
            done.append(ReportFile(None, FileStatus.REFUSED, fault=fault))
            continue
        done.append(_done(file.content, work))
        size += len(file.content)
        if size >= position.bytes_enough:
            break
    return names, done


def _done(content: bytes, work: Work) -> ReportFile:
    report = reports.read(content, work.wanted, work.read_options)
    return replace(report, sha256=_digest_of(content))


def _digest_of(content: bytes) -> str:
    """Return the digest by which a file is recognized, packed or not."""
    plain = unpacked(content)
    return hashlib.sha256(plain.content if isinstance(plain, Unpacked) else content).hexdigest()


def encoded(done: Sequence[ReportFile]) -> Iterator[object]:
    """Return the heads of the files, then their cases as columns, some at a time."""
    yield [(replace(each, cases=()), len(each.cases)) for each in done]
    for each in done:
        for first in range(0, len(each.cases), CASES_OF_PIECE):
            yield list(zip(*each.cases[first : first + CASES_OF_PIECE], strict=True))


def decoded(found: Iterator[object]) -> list[ReportFile]:
    """Return the files of these pieces again."""
    files: list[ReportFile] = []
    # What a namedtuple's `_make` does, without a call of Python for each.
    case_of = partial(tuple.__new__, CaseResult)
    for head, count in cast(list[tuple[ReportFile, int]], next(found)):
        cases: list[CaseResult] = []
        while len(cases) < count:
            columns = cast(list[tuple[object, ...]], next(found))
            cases += map(case_of, zip(*columns, strict=True))
        files.append(replace(head, cases=tuple(cases)))
    return files

"""Read the files of an upload: small ones on a thread, others and archives in a process.

The bounds are in docs/design/limits.md. `reports` reads the results; `ingest.py` stores them.
"""

import asyncio
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from service.accounts.tenants import RepositoryRecord
from service.errors import Invalid
from service.parser_process import Job, Limits
from service.parsers import Stopped
from service.provider.archives import NoArchive
from service.runtime import Runtime
from service.testhealth.operations import collector, report_pieces
from service.testhealth.operations import settings as test_settings
from service.testhealth.operations.report_pieces import ArchivePosition, Portion, Work
from service.testhealth.operations.upload_values import UploadMeta
from service.testhealth.reports import text
from service.testhealth.reports.reading import CASES_MAX, TOO_MANY, ReadOptions
from service.testhealth.reports.results import FileStatus, Format, ReportFile

# Reading so much takes about 10 ms; work of 20 ms must leave the event loop.
SMALL_BYTES = 262_144
# Of an archive so much is unpacked and read in one process.
PORTION_BYTES = 20 * 1024 * 1024
# A parse over 20 s is stopped; of computing, so that a busy machine refuses
# nothing. 256 MiB are promised for 20 MiB of report: 100 MiB of 500,000 cases need four times
# as much, beside what the interpreter maps for itself.
LIMITS = Limits(computing_s=20, memory_bytes=1024 * 1024 * 1024)

FORMATS: Mapping[str, Format | None] = {"auto": None, **{each.value: each for each in Format}}
"""Word of the metadata's `format` → the format; None: as each file's content says."""


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file as it was sent, plain or gzip."""

    name: str
    content: bytes


async def read_files(
    runtime: Runtime, repository: RepositoryRecord, meta: UploadMeta, files: Sequence[SentFile]
) -> tuple[ReportFile, ...]:
    """The files, parsed, in their order; a file of which nothing can be used is refused in it.

    Raises Overloaded after 30 s without a free parser, Invalid(no_results) when reading took
    too long or too much memory, Invalid(limit_reached) beyond 500,000 tests in a file.
    """
    work = await _work_of(runtime, repository, meta, files)
    if is_small(work.contents):
        done = await asyncio.to_thread(report_pieces.read, work)
    else:
        names = [each.name for each in files]
        pieces = await _run(runtime, repository, Job(report_pieces.pieces, (work,), LIMITS), names)
        done = await asyncio.to_thread(_values_of, pieces)
    return _read_files([each.name for each in files], done)


async def read_archive(
    runtime: Runtime, repository: RepositoryRecord, meta: UploadMeta, packed: bytes
) -> AsyncIterator[tuple[ReportFile, ...]]:
    """Return the reports of a ZIP archive, some megabytes of them at a time, in their order.

    A process unpacks and reads them. Raises what `read_files` raises, Invalid for what is no
    archive.
    """
    work = await _work_of(runtime, repository, meta, ())
    next_at: int | None = 0
    while next_at is not None:
        job = Job(
            report_pieces.pieces_of_archive,
            (packed, ArchivePosition(next_at, PORTION_BYTES), work),
            LIMITS,
        )
        pieces = await _run(runtime, repository, job, ())
        portion = cast(NoArchive | Portion, next(pieces))
        if isinstance(portion, NoArchive):
            raise Invalid(portion.reason)
        yield _read_files(portion.names, await asyncio.to_thread(_values_of, pieces))
        next_at = portion.next_at


async def _work_of(
    runtime: Runtime, repository: RepositoryRecord, meta: UploadMeta, files: Sequence[SentFile]
) -> Work:
    settings = await test_settings.read(runtime, repository)
    now, wall_s = runtime.clock.now(), None
    # A start that lies ahead is another clock's, which says nothing of how long the job took.
    if meta.ran_at is not None and meta.ran_at <= now:
        wall_s = (now - meta.ran_at).total_seconds()
    read_options = ReadOptions(meta.source_root, settings.name_masks, wall_s)
    return Work([each.content for each in files], meta.format, read_options)


async def _run(
    runtime: Runtime, repository: RepositoryRecord, job: Job, names: Sequence[str]
) -> Iterator[object]:
    """Return the pieces that a process makes. Raises Invalid(no_results) when it was stopped."""
    try:
        return await runtime.parsers.run(repository.ref, job, runtime.clock)
    except Stopped as stopped:
        raise _stopped(stopped.why, names) from stopped


def _read_files(names: Sequence[str], done: Sequence[ReportFile]) -> tuple[ReportFile, ...]:
    _check_count(done)
    return tuple(replace(each, name=name) for name, each in zip(names, done, strict=True))


def is_small(contents: Sequence[bytes]) -> bool:
    """Return whether the files hold at most 256 KiB in all, unpacked."""
    left = SMALL_BYTES - sum(map(len, contents))
    for content in contents:
        if left < 0:
            return False
        if content.startswith(text.GZIP_MAGIC):
            left -= _expanded_bytes(content, left)
    return left >= 0


def _expanded_bytes(content: bytes, enough: int) -> int:
    """Return a gzip file's unpacked size; counting stops above `enough`, and where it breaks."""
    size = 0
    try:
        for piece in text.expanded(content):
            size += len(piece)
            if size > enough:
                break
    except (zlib.error, EOFError):
        return size
    return size


def _values_of(pieces: Iterator[object]) -> list[ReportFile]:
    with collector.put_off():
        return report_pieces.decoded(pieces)


def _stopped(why: str, names: Sequence[str]) -> Invalid:
    message = f"Reading the reports {why}; send fewer or smaller files."
    refused = [
        {
            "name": name,
            "format": None,
            "status": FileStatus.REFUSED.value,
            "tests": 0,
            "error": {"message": message, "line": None, "column": None},
        }
        for name in names
    ]
    return Invalid(message, code="no_results", members={"files": refused})


def _check_count(reports: Sequence[ReportFile]) -> None:
    """Raise Invalid(limit_reached) when a file holds more tests than an upload may."""
    if any(each.fault is not None and each.fault.message == TOO_MANY for each in reports):
        raise Invalid(
            f"An upload may hold {CASES_MAX:,} tests; send them in several.", code="limit_reached"
        )

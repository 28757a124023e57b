"""Read the files of an upload: small ones on a thread, others in a process of their own.

The bounds are in docs/design/limits.md. `reports` reads the results; `take_in.py` stores them.
"""

import asyncio
import pickle
import signal
import sys
import zlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import structlog

import service
from service.database.records import RepositoryRecord
from service.errors import Invalid, Overloaded, ServiceError
from service.runtime import Runtime
from service.testhealth.operations import collector, parser_process
from service.testhealth.operations import settings as test_settings
from service.testhealth.operations.parser_process import EXIT_NO_MEMORY, Done, Limits, Work
from service.testhealth.operations.upload_values import ReadFile, UploadMeta
from service.testhealth.reports import text
from service.testhealth.reports.reading import CASES_MAX, TOO_MANY, ReadOptions
from service.testhealth.reports.results import FileStatus, Format, ReportFile

# Reading so much takes about 10 ms; work of 20 ms must leave the event loop.
SMALL_BYTES = 262_144
# A parse over 20 s is stopped; of computing, so that a busy machine refuses
# nothing. 256 MiB are promised for 20 MiB of report: 100 MiB of 500,000 cases need four times
# as much, beside what the interpreter maps for itself.
LIMITS = Limits(computing_s=20, memory_bytes=1024 * 1024 * 1024)
WAIT_S = 30.0
RETRY_AFTER_S = 5

# The process gets the code that runs here and nothing of the environment, where secrets are.
ENVIRONMENT = {"PYTHONPATH": str(Path(service.__file__).parents[1])}
# -P: code comes from there alone, never from the folder one happens to stand in.
# Not -m: what is defined in a main module is of no use to another process.
# Its hundreds of thousands of values go with its memory: to take them apart one by one would cost
# a tenth of its time.
PROGRAM = f"import os; from {parser_process.__name__} import main; os._exit(main())"
COMMAND = (sys.executable, "-P", "-c", PROGRAM)

FORMATS: Mapping[str, Format | None] = {"auto": None, **{each.value: each for each in Format}}
"""Word of the metadata's `format` → the format; None: as each file's content says."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file as it was sent, plain or gzip."""

    name: str
    content: bytes


async def read_files(
    runtime: Runtime, repository: RepositoryRecord, meta: UploadMeta, files: Sequence[SentFile]
) -> tuple[ReadFile, ...]:
    """The files, parsed, in their order; a file of which nothing can be used is refused in it.

    Raises Overloaded after 30 s without a free parser, Invalid(no_results) when reading took
    too long or too much memory, Invalid(limit_reached) beyond 500,000 tests in a file.
    """
    settings = await test_settings.read(runtime, repository)
    now, wall_s = runtime.clock.now(), None
    # A start that lies ahead is another clock's, which says nothing of how long the job took.
    if meta.ran_at is not None and meta.ran_at <= now:
        wall_s = (now - meta.ran_at).total_seconds()
    read_options = ReadOptions(meta.source_root, settings.name_masks, wall_s)
    work = Work([each.content for each in files], meta.format, read_options, LIMITS)
    if is_small(work.contents):
        done = await asyncio.to_thread(parser_process.read, work)
    else:
        async with _parser(runtime):
            done = await _read_apart(work, files)
    _check_count([each.report for each in done])
    return tuple(
        ReadFile(sent.name, each.sha256, each.report)
        for sent, each in zip(files, done, strict=True)
    )


def is_small(contents: Sequence[bytes]) -> bool:
    """Whether the files hold at most 256 KiB in all, unpacked."""
    left = SMALL_BYTES - sum(map(len, contents))
    for content in contents:
        if left < 0:
            return False
        if content.startswith(text.GZIP_MAGIC):
            left -= _expanded_bytes(content, left)
    return left >= 0


def _expanded_bytes(content: bytes, enough: int) -> int:
    """How much comes out of a gzip file; counting stops above `enough`, and where it breaks."""
    size = 0
    try:
        for piece in text.expanded(content):
            size += len(piece)
            if size > enough:
                break
    except (zlib.error, EOFError):
        return size
    return size


@asynccontextmanager
async def _parser(runtime: Runtime) -> AsyncIterator[None]:
    """One of the two places for parser processes. Raises Overloaded after 30 s."""
    taking = asyncio.ensure_future(runtime.parsers.acquire())
    timer = asyncio.ensure_future(runtime.clock.sleep(WAIT_S))
    try:
        await asyncio.wait({taking, timer}, return_when=asyncio.FIRST_COMPLETED)
        if not taking.done():
            raise Overloaded("Too many reports are being read.", retry_after_s=RETRY_AFTER_S)
        yield
    finally:
        timer.cancel()
        if taking.done():
            runtime.parsers.release()
        taking.cancel()


async def _read_apart(work: Work, files: Sequence[SentFile]) -> list[Done]:
    """The work done by a process of its own. Raises Invalid(no_results) when it was stopped."""
    sent = await asyncio.to_thread(pickle.dumps, work, pickle.HIGHEST_PROTOCOL)
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(
        *COMMAND, stdin=pipe, stdout=pipe, stderr=pipe, env=ENVIRONMENT
    )
    try:
        said, trouble = await child.communicate(sent)
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode == 0:
        return await asyncio.to_thread(_values_of, said)
    if child.returncode is not None and child.returncode < 0:
        is_late = -child.returncode == signal.SIGXCPU
        took = f"took more than {work.limits.computing_s} s"
        raise _stopped(took if is_late else "was ended by the system", files)
    if child.returncode == EXIT_NO_MEMORY:
        raise _stopped("took more memory than a report may", files)
    log.error("parser failed", code=child.returncode, said=trouble.decode(errors="replace")[-2000:])
    raise ServiceError("The parser of reports failed.")


def _values_of(said: bytes) -> list[Done]:
    with collector.put_off():
        return parser_process.decoded(said)


def _stopped(why: str, files: Sequence[SentFile]) -> Invalid:
    message = f"Reading the reports {why}; send fewer or smaller files."
    refused = [
        {
            "name": each.name,
            "format": None,
            "status": FileStatus.REFUSED.value,
            "tests": 0,
            "error": {"message": message, "line": None, "column": None},
        }
        for each in files
    ]
    return Invalid(message, code="no_results", members={"files": refused})


def _check_count(reports: Sequence[ReportFile]) -> None:
    """Raise Invalid(limit_reached) when a file holds more tests than an upload may."""
    if any(each.fault is not None and each.fault.message == TOO_MANY for each in reports):
        raise Invalid(
            f"An upload may hold {CASES_MAX:,} tests; send them in several.", code="limit_reached"
        )

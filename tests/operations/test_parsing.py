"""Reading the files of an upload: on a thread or in a process, within bounds, in order."""

import gzip
import hashlib
from dataclasses import replace
from datetime import timedelta

import pytest

from service.accounts import repositories
from service.errors import Invalid, Overloaded
from service.parser_process import Limits
from service.testhealth.operations import parsing, report_pieces
from service.testhealth.operations.parsing import SentFile
from service.testhealth.operations.upload_values import UploadMeta
from service.testhealth.reports import reading, reports
from service.testhealth.reports.reading import ReadOptions
from service.testhealth.reports.results import FileStatus
from service.vocabulary import Sha

META = UploadMeta(Sha("a" * 40))


@pytest.fixture
async def repository(runtime, provider):
    fresh = await provider.repository(provider.ref)
    return await runtime.store.run(repositories.upsert, fresh)


def a_report(cases, seconds=0.1):
    one = "".join(f'<testcase name="test_{n}" time="{seconds}"/>' for n in range(cases))
    return f"<testsuite>{one}</testsuite>".encode()


LARGE = a_report(10_000)


async def test_files_come_back_in_order_with_their_digests(runtime, repository):
    small = a_report(2)
    files = [
        SentFile("a.xml", small),
        SentFile("b.xml.gz", gzip.compress(small)),
        SentFile("c.xml", b"nothing"),
    ]
    read = await parsing.read_files(runtime, repository, META, files)
    digest = hashlib.sha256(small).hexdigest()
    assert [each.name for each in read] == ["a.xml", "b.xml.gz", "c.xml"]
    assert [each.sha256 for each in read[:2]] == [digest, digest]
    assert [len(each.cases) for each in read] == [2, 2, 0]
    assert read[2].status is FileStatus.REFUSED


async def test_a_process_reads_as_a_thread_does(runtime, repository, monkeypatch):
    files = [SentFile("a.xml", LARGE), SentFile("b.xml", gzip.compress(LARGE))]
    assert not parsing.is_small([each.content for each in files])
    apart = await parsing.read_files(runtime, repository, META, files)
    monkeypatch.setattr(parsing, "SMALL_BYTES", 100 * len(LARGE))
    assert apart == await parsing.read_files(runtime, repository, META, files)
    assert [len(each.cases) for each in apart] == [10_000, 10_000]


def test_what_a_process_read_comes_back_in_pieces_that_hold_nobody_up():
    done = [
        replace(reports.read(content, None, ReadOptions()), sha256=str(n))
        for n, content in enumerate((LARGE, b"nothing", a_report(3)))
    ]
    pieces = list(report_pieces.encoded(done))
    assert report_pieces.decoded(iter(pieces)) == done
    assert len(pieces) == 1 + 10_000 // report_pieces.CASES_OF_PIECE + 1


@pytest.mark.parametrize(
    ("contents", "is_small"),
    [
        ([], True),
        ([b"x" * 262_144], True),
        ([b"x" * 262_145], False),
        ([b"x" * 200_000, b"x" * 200_000], False),
        ([gzip.compress(b"x" * 200_000, mtime=0)], True),
        ([gzip.compress(b"x" * 300_000, mtime=0)], False),
        ([gzip.compress(b"x" * 200_000, mtime=0)[:-9]], True),
        ([b"\x1f\x8bnothing"], True),
    ],
)
def test_small_is_what_comes_out(contents, is_small):
    assert parsing.is_small(contents) is is_small


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (Limits(computing_s=1, memory_bytes=2**30), "took more than 1 s"),
        (Limits(computing_s=20, memory_bytes=90 * 2**20), "took more than 90 MiB of memory"),
    ],
)
async def test_a_reading_that_takes_too_much_is_stopped(
    runtime, repository, monkeypatch, limits, said
):
    monkeypatch.setattr(parsing, "LIMITS", limits)
    files = [SentFile(f"{number}.xml", LARGE) for number in range(100)]
    with pytest.raises(Invalid, match=said) as stopped:
        await parsing.read_files(runtime, repository, META, files)
    assert stopped.value.code == "no_results"
    shown = stopped.value.members["files"]
    assert isinstance(shown, list)
    assert [each["name"] for each in shown] == [each.name for each in files]
    assert {each["status"] for each in shown} == {"refused"}


async def test_a_tenant_has_two_parsers_and_its_next_waits_half_a_minute(
    runtime, repository, clock
):
    files = [SentFile("a.xml", LARGE)]
    async with runtime.parsers.place(repository.ref, clock):
        async with runtime.parsers.place(repository.ref, clock):
            with pytest.raises(Overloaded) as full:
                await parsing.read_files(runtime, repository, META, files)
            assert (clock.waits, full.value.retry_after_s) == ([30.0], 5)
            small = [SentFile("a.xml", a_report(1))]
            assert len(await parsing.read_files(runtime, repository, META, small)) == 1
        assert len(await parsing.read_files(runtime, repository, META, files)) == 1
    assert clock.waits == [30.0]


async def test_half_a_million_tests_of_a_file_are_the_limit(runtime, repository, monkeypatch):
    monkeypatch.setattr(reading, "CASES_MAX", 5)
    (read,) = await parsing.read_files(runtime, repository, META, [SentFile("a.xml", a_report(5))])
    assert len(read.cases) == 5
    with pytest.raises(Invalid) as many:
        await parsing.read_files(runtime, repository, META, [SentFile("a.xml", a_report(6))])
    assert many.value.code == "limit_reached"


async def test_times_beyond_the_jobs_own_are_milliseconds(runtime, repository, clock):
    meta = UploadMeta(Sha("a" * 40), ran_at=clock.now() - timedelta(seconds=30))
    sent = [SentFile("a.xml", a_report(1, seconds=250))]
    (read,) = await parsing.read_files(runtime, repository, meta, sent)
    assert read.cases[0].duration_s == 0.25
    (read,) = await parsing.read_files(runtime, repository, META, sent)
    assert read.cases[0].duration_s == 250


async def test_a_start_that_lies_ahead_says_nothing_of_durations(runtime, repository):
    ran_at = runtime.clock.now() + timedelta(minutes=4)
    meta = UploadMeta(Sha("a" * 40), ran_at=ran_at)
    sent = [SentFile("a.xml", a_report(1, seconds=90))]
    (read,) = await parsing.read_files(runtime, repository, meta, sent)
    assert read.cases[0].duration_s == 90


async def test_times_of_many_blanks_are_read_within_the_limits_of_a_process(
    runtime, repository, monkeypatch
):
    monkeypatch.setattr(parsing, "SMALL_BYTES", 0)
    blanks = " " * 60_000
    times = [f"1{blanks}x", f"2{blanks}s", f"3{blanks}e", f"{blanks}x"]
    cases = "".join(f'<testcase name="{n}" time="{text}"/>' for n, text in enumerate(times))
    sent = [SentFile("a.xml", f"<testsuite>{cases}</testsuite>".encode())]
    (read,) = await parsing.read_files(runtime, repository, META, sent)
    assert [case.duration_s for case in read.cases] == [None, 2, None, None]

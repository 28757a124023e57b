"""Judging the tests of an upload: with the evidence index in memory, and from rows of 45 days.

A large repository: 100,000 tests, of which 3,000 fail now and then, 10 uploads a day. The upload
that is judged fails 500 of these, as many as one transaction judges. `rows` is a lower bound: it
reads what the 500 tests themselves have and judges by it, with every event at full weight and
without noise. Weights and noise depend on all other tests, and `all_rows` reads those, too.

An upload may cost 5 times its parse (V11). The rest of an upload of 100,000 known tests leaves
about 0.5 s of that.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from time import process_time
from typing import Any

from sqlalchemy import insert, select

from service.database import bulk
from service.database.database import Tx
from service.testhealth.detector import evidence, figures, health, score, series
from service.testhealth.detector.evidence import Charged, Event, Group, GroupAttempt, Passes
from service.testhealth.detector.health import Evidence, Health
from service.testhealth.detector.index import EvidenceIndex
from service.testhealth.detector.series import Point, Series, Track
from service.testhealth.detector.spans import Scale
from service.testhealth.reports.results import Outcome
from service.testhealth.reports.uploads import UploadClass
from service.testhealth.store import attempts as test_attempts
from service.testhealth.store import bitmaps, sets, uploads
from service.testhealth.store.attempts import StoredAttempt
from service.testhealth.store.cases import Place, keys_of
from service.testhealth.store.sets import OutcomeSets, StoredSets
from service.testhealth.store.tables_evidence import DailyRow
from service.testhealth.store.uploads import Upload
from tests.bench import databases, door

TESTS, FAILING, APART = 100_000, 3_000, 33
DAYS, UPLOADS_A_DAY = 45, 10
FAILING_AN_UPLOAD, TOUCHED = 40, 500
JOBS = ("unit", "web", "api", "store", "build")
GOAL_MS = 500
ROUNDS = 3
Row = dict[str, object]


def run(scale: float = 1.0) -> Sequence[Row]:
    """One line for each database; `scale` multiplies the uploads of a day."""
    return [asyncio.run(measured(url, int(UPLOADS_A_DAY * scale))) for url in databases.addresses()]


async def measured(url: str, uploads_a_day: int) -> Row:
    """Judge the same 500 tests in each way; CPU of the process, the median of three rounds."""
    runtime = await door.runtime_at(url)
    now, kept = runtime.clock.now(), runtime.store.caches.of(OutcomeSets)
    place = await runtime.store.run(placed)
    for day in range(DAYS):
        await runtime.store.run(filled, place, now - timedelta(days=day), uploads_a_day)
    nos = tests_failing(Random(-1), TOUCHED)
    built_ms, index = await cpu_ms(runtime.store.read, index_of, kept, place)
    took: dict[str, list[float]] = {"index": [], "rows": []}
    for number in range(ROUNDS):
        upload = one_more(number, now, nos)
        took["index"].append((await cpu_ms(runtime.store.read, by_index, index, kept, upload))[0])
        took["rows"].append((await cpu_ms(runtime.store.read, by_rows, kept, place, nos, now))[0])
    await runtime.store.close()
    kind = url.partition(":")[0]
    return {
        "goal": "V11",
        "subject": f"judging {TOUCHED} of {FAILING:,} failing tests,"
        f" {DAYS * uploads_a_day:,} uploads, {kind}",
        "index_ms": round(sorted(took["index"])[ROUNDS // 2]),
        "index_goal_ms": GOAL_MS,
        "rows_ms": round(sorted(took["rows"])[ROUNDS // 2]),
        "all_rows_ms": round(built_ms),
    }


async def cpu_ms(ask: Callable[..., Any], *asked: object) -> tuple[float, Any]:
    """CPU of this process while it is asked, and the answer."""
    began_s = process_time()
    found = await ask(*asked)
    return (process_time() - began_s) * 1000, found


def placed(session: Tx) -> Place:
    """The repository."""
    repository = door.met(session)
    return Place(repository.org_id, repository.id)


def tests_failing(chance: Random, many: int) -> list[int]:
    """So many of the tests that fail, drawn by Zipf's law."""
    found: set[int] = set()
    while len(found) < many:
        found.add(1 + int(FAILING ** chance.random()) * APART)
    return sorted(found)


def filled(session: Tx, place: Place, at: datetime, many: int) -> None:
    """A day: pull requests whose failing jobs are run again, and as many pushes to main."""
    runs = {no * APART + 1: 0 for no in range(FAILING + 1)}
    for n in range(many):
        name, ran_at = f"{at:%Y%m%d}-{n}", at - timedelta(seconds=n)
        pair, is_stable = n // 4, n % 2 == 0
        chance = Random(name)
        failing = tests_failing(chance, FAILING_AN_UPLOAD)
        passing = bitmaps.packed_set(set(range(1, TESTS + 1)).difference(failing))
        for no in runs.keys() - failing:
            runs[no] += 1
        code = f"sha:{name}" if is_stable else f"sha:{at:%Y%m%d}-{pair}"
        upload = Upload(
            id=name,
            digest=name,
            kind=(UploadClass.STABLE if is_stable else UploadClass.PR).value,
            code_id=code,
            sha=code,
            job=JOBS[pair % len(JOBS)],
            ran_at=ran_at,
            received_at=ran_at,
            branch="main" if is_stable else f"topic-{pair}",
            pr_number=None if is_stable else pair,
            run_id=name,
            passed=sets.put_set(session, place, passing, ran_at),
        )
        attempts = [StoredAttempt(name, no, 1, ran_at, Outcome.FAILED, "key") for no in failing]
        uploads.record(session, place, upload, attempts)
    counted = {"passed": 0, "failed": 0, "skipped": 0, "quarantined": 0, "last_at": at}
    rows = [
        {"day": figures.day_of(at), "no": no, "results": runs[no], "passing_results": runs[no]}
        | counted
        | keys_of(place)
        for no in runs
    ]
    session.execute(insert(DailyRow.__table__), rows)


def index_of(session: Tx, kept: OutcomeSets, place: Place) -> EvidenceIndex:
    """The index of all stored uploads."""
    stored = StoredSets(session, kept, place.repository_id)
    ids = uploads.eligible(session, place.repository_id, figures.beginning_of(0))
    index = EvidenceIndex(score.THRESHOLDS["normal"])
    index.change(uploads.evidence(session, stored, ids), (), stored)
    return index


def one_more(number: int, now: datetime, nos: Sequence[int]) -> Upload:
    """The upload that is judged."""
    name = f"one-more-{number}"
    kind = UploadClass.PR.value
    return Upload(name, name, kind, f"sha:{name}", name, "unit", now, now, branch=f"topic-{number}")


def by_index(session: Tx, index: EvidenceIndex, kept: OutcomeSets, upload: Upload) -> list[Health]:
    """Take the upload into the index, and judge its tests."""
    nos = tests_failing(Random(-1), TOUCHED)
    added = uploads.evidence_of(upload, dict.fromkeys(nos, "F"), frozenset(), 0)
    index.change([added], (), StoredSets(session, kept, 0))
    return [judged for no in nos if (judged := index.judge(no)) is not None]


@dataclass
class Read:
    """What rows say of some tests."""

    failed: Mapping[int, Mapping[str, Any]]
    on_code: Mapping[tuple[str, str], Sequence[Any]]
    points: Mapping[str, Sequence[Any]]
    members: Mapping[str, frozenset[int]]
    passing: Mapping[int, Mapping[int, int]]


def read(session: Tx, kept: OutcomeSets, place: Place, nos: Sequence[int], now: datetime) -> Read:
    """Read failed attempts with their uploads, uploads on the same codes, series, and counts."""
    of, tried, daily = uploads.uploads, test_attempts.attempts, DailyRow.__table__
    here, since = place.repository_id, now - timedelta(days=DAYS)
    attempts = session.execute(
        select(tried.c.no, tried.c.upload, of.c.job, of.c.code_id)
        .join(of, of.c.id == tried.c.upload)
        .where(tried.c.repository_id == here, bulk.among(tried.c.no, "nos"))
        .where(tried.c.is_eligible.is_(True), tried.c.ran_at >= since),
        {"nos": nos},
    )
    failed: defaultdict[int, dict[str, Any]] = defaultdict(dict)
    codes: set[str] = set()
    for no, upload, job, code in attempts:
        failed[no][upload] = (job, code)
        codes.add(code)
    columns = (of.c.id, of.c.ran_at, of.c.job, of.c.code_id, of.c.run_id, of.c.passed, of.c.kind)
    together: defaultdict[tuple[str, str], list[Any]] = defaultdict(list)
    points: defaultdict[str, list[Any]] = defaultdict(list)
    for row in session.execute(
        select(*columns)
        .where(of.c.repository_id == here, of.c.ran_at >= since, of.c.is_eligible.is_(True))
        .order_by(of.c.ran_at)
    ):
        if row.code_id in codes:
            together[row.job, row.code_id].append(row)
        if row.kind == UploadClass.STABLE.value:
            points[row.job].append(row)
    keys = {row.passed for rows in (*together.values(), *points.values()) for row in rows}
    members = kept.members(session, here, keys, nos)
    counts: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for no, day, count in session.execute(
        select(daily.c.no, daily.c.day, daily.c.passing_results).where(
            daily.c.repository_id == here,
            daily.c.day >= figures.day_of(since),
            bulk.among(daily.c.no, "nos"),
        ),
        {"nos": nos},
    ):
        counts[no][figures.beginning_of(day).toordinal()] = count
    newest = {job: rows[-series.POINTS_MAX :] for job, rows in points.items()}
    passed = {key: frozenset(found) for key, found in members.items()}
    return Read(failed, together, newest, passed, counts)


def by_rows(
    session: Tx, kept: OutcomeSets, place: Place, nos: Sequence[int], now: datetime
) -> list[Health]:
    """Judge tests by their own rows."""
    found = read(session, kept, place, nos, now)
    lines = {
        job: Series(
            "main", job, tuple(Point(r.ran_at, r.code_id, r.run_id, "", 1, 1) for r in rows)
        )
        for job, rows in found.points.items()
    }
    scale = Scale(now, (now - timedelta(days=DAYS)).toordinal(), {})
    return [health.judge(evidence_in(found, lines, no, now), scale) for no in nos]


def evidence_in(found: Read, lines: Mapping[str, Series], no: int, now: datetime) -> Evidence:
    """What rows say of one test."""
    failed = found.failed.get(no, {})
    events: list[Event] = []
    for code in set(failed.values()):
        job, code_id = code
        group = Group(job, code_id, tuple(tried(found, no, failed, found.on_code[code])))
        charged = {each.upload: Charged(100, 1, 1) for each in group.attempts}
        events += evidence.events_of(group, charged)
    tracks = [
        Track(lines[job], "".join(letter(found, no, failed, row) for row in rows))
        for job, rows in found.points.items()
    ]
    codes = {event.code for event in events}
    events += [event for track in tracks for event in series.events_of(track, codes)]
    return Evidence(now, now, now, tuple(events), Passes(found.passing[no], {}), (), tuple(tracks))


def tried(found: Read, no: int, failed: Mapping[str, Any], rows: Sequence[Any]):
    """The attempts of a test on one code."""
    for row in rows:
        word = letter(found, no, failed, row)
        if word != series.ABSENT:
            yield GroupAttempt(row.ran_at, row.id, 0, word == series.PASSED)


def letter(found: Read, no: int, failed: Mapping[str, Any], row: Any) -> str:
    """What a test did in an upload."""
    if row.id in failed:
        return series.FAILED
    return series.PASSED if no in found.members[row.passed] else series.ABSENT

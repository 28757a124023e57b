"""Replay a repository's stored evidence: what settings would have said and excused.

docs/design/quality-on-history.md 2. Pure: of uploads, of settings, and of nothing else.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple, TypeAlias

from service.testhealth.detector import quality, score
from service.testhealth.detector.evidence import WINDOW_DAYS
from service.testhealth.detector.health import Health
from service.testhealth.detector.history import Change
from service.testhealth.detector.index import NO_FACTS, Earlier, EvidenceIndex, TestFacts
from service.testhealth.detector.quality import PastFlag, Quality
from service.testhealth.detector.repeats import Repeats
from service.testhealth.detector.spans import midnight
from service.testhealth.reports.uploads import FAILED, EvidenceUpload, PassedSets, UploadClass
from service.vocabulary import Health as Status

KNOWN_FOR = timedelta(days=30)
LISTED_MAX = 100
"""Flags, and failures before flags, that are named; all of them are counted."""

DAYS_OF_WEEK = 7


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings that move the past.

    `threshold` is K. Failures of tests of `excused` statuses count as passed; with
    `known_texts` only those whose text is known. `kinds`: by id, the class of each upload that has
    another one under these settings.
    """

    threshold: float = score.THRESHOLDS["normal"]
    excused: frozenset[Status] = frozenset()
    known_texts: bool = True
    kinds: Mapping[str, UploadClass] = field(default_factory=dict)


Texts = Mapping[str, Mapping[int, tuple[str, ...]]]
"""By upload and test, the keys of its failures."""


@dataclass(frozen=True, slots=True)
class Stored:
    """The evidence that is stored.

    `prs`: by upload, the pull requests that it tested. `earlier`: what is known of the days before,
    None if the oldest upload is the first one ever. `repeats`: by test, the ids of the uploads
    whose jobs repeated it, and the rounds.
    """

    uploads: tuple[EvidenceUpload, ...]
    texts: Texts = field(default_factory=dict)
    prs: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    earlier: Earlier | None = None
    repeats: Mapping[int, tuple[tuple[str, Repeats], ...]] = field(default_factory=dict)


class TestFlag(NamedTuple):
    """A flag of a test."""

    no: int
    flag: PastFlag


class Missed(NamedTuple):
    """A flaky failure outside of a flag; its test was flagged next at `flagged_at`, if ever."""

    no: int
    at: datetime
    flagged_at: datetime | None


@dataclass(frozen=True, slots=True)
class Past:
    """The past under some settings, since a time.

    `doubtful` are the flags that began since and are not confirmed, `missed` flaky failures outside
    of flags: the newest LISTED_MAX of each, newest first. `by_week`: first day of each week, as an
    ordinal, and how many flags began in it.
    `excused` of `failures` (results) were of tests whose status excuses them, `breaks` is how often
    a test was called broken. Of `innocents`, runs of the queue that only flaky failures failed,
    `spared` were known to be flaky.
    """

    since: datetime
    until: datetime
    tests: int
    quality: Quality
    by_week: tuple[tuple[int, int], ...]
    doubtful: tuple[TestFlag, ...]
    missed: tuple[Missed, ...]
    flaky: tuple[int, ...]
    broken: tuple[int, ...]
    breaks: int
    failures: int
    excused: int
    innocents: int
    spared: int


@dataclass(frozen=True, slots=True)
class _Test:
    """A test under the settings."""

    no: int
    health: Health
    flags: tuple[PastFlag, ...]
    quality: Quality
    missed: tuple[Missed, ...]

    def status_at(self, at: datetime) -> Status:
        """Return its status just before a time."""
        return _value_at(self.health.history, at)


def replayed(stored: Stored, sets: PassedSets, variants: Sequence[Rules]) -> tuple[Past, ...]:
    """Return what each of these settings would have said; empty without an upload."""
    found: list[Past] = []
    index: EvidenceIndex | None = None
    facts: Mapping[int, TestFacts] = {}
    kinds: Mapping[str, UploadClass] = {}
    for rules in variants if stored.uploads else ():
        if index is None or kinds != rules.kinds:
            index, facts = _index_of(stored, sets, rules.kinds)
            kinds = rules.kinds
        index.hold_against(rules.threshold)
        found.append(_past(stored, (index, facts), rules))
    return tuple(found)


def beginning(stored: Stored) -> datetime:
    """Return from when on flags are told: before, the window of an event would be cut."""
    first = min(upload.day for upload in stored.uploads)
    return midnight(first + (WINDOW_DAYS if stored.earlier else 0))


Judging: TypeAlias = tuple[EvidenceIndex, Mapping[int, TestFacts]]
"""The evidence in uploads, and by test what is not in them."""


def _index_of(stored: Stored, sets: PassedSets, kinds: Mapping[str, UploadClass]) -> Judging:
    recast = {
        each.id: replace(each, kind=kinds[each.id]) if each.id in kinds else each
        for each in stored.uploads
    }
    index = EvidenceIndex(score.THRESHOLDS["normal"], stored.earlier)
    index.evidence.followed = frozenset(stored.repeats)
    index.change(recast.values(), (), sets)
    facts = {
        no: TestFacts(
            repeats=tuple(
                (upload, replace(each, source=recast[upload].source, author=recast[upload].author))
                for upload, each in of_test
                if upload in recast
            )
        )
        for no, of_test in stored.repeats.items()
    }
    return index, facts


def _past(stored: Stored, judging: Judging, rules: Rules) -> Past:
    since, (index, _) = beginning(stored), judging
    tests = {test.no: test for test in _tests(judging, since)}
    begun = sorted(
        (
            TestFlag(test.no, flag)
            for test in tests.values()
            for flag in test.flags
            if flag.since >= since
        ),
        key=lambda each: (each.flag.since, each.no),
    )
    doubtful = [each for each in begun if each.flag.confirmed_at is None]
    missed = sorted((each for test in tests.values() for each in test.missed), key=_newest_first)
    results = list(_failed_results(stored, since))
    excused = _excused(results, tests, rules, stored)
    innocents = list(_innocents(stored, index, since))
    until = max(upload.at for upload in stored.uploads)
    return Past(
        since=since,
        until=until,
        tests=len(index.evidence.uploads.nos),
        quality=sum((test.quality for test in tests.values()), Quality()),
        by_week=_by_week(since, until, (each.flag.since for each in begun)),
        doubtful=tuple(reversed(doubtful[-LISTED_MAX:])),
        missed=tuple(missed[:LISTED_MAX]),
        flaky=_now(tests.values(), Status.FLAKY),
        broken=_now(tests.values(), Status.BROKEN),
        breaks=sum(
            1
            for test in tests.values()
            for change in test.health.history
            if change.value is Status.BROKEN and change.at >= since
        ),
        failures=len(results),
        excused=excused,
        innocents=len(innocents),
        spared=sum(
            1 for at, nos in innocents if all(_is_spared(tests.get(no), at, rules) for no in nos)
        ),
    )


def _tests(judging: Judging, since: datetime) -> Iterator[_Test]:
    """Judge each test that could be anything but healthy."""
    index, facts = judging
    for no in sorted(index.evidence.uploads.nos):
        known = facts.get(no, NO_FACTS)
        health, evidence = index.judge(no, known), index.evidence_of(no, known)
        if health is None or evidence is None:
            continue
        failures = list(quality.failures_of(evidence.events, since))
        if not health.history and not failures:
            continue
        flags = quality.flags_of(evidence, health, since)
        missed = (
            Missed(no, each.at, _next_flag(flags, each.at))
            for each in failures
            if flags and not any(flag.is_on(each.at) for flag in flags)
        )
        counts = quality.quality_of(flags, failures, since)
        yield _Test(no, health, flags, counts, tuple(missed))


def _next_flag(flags: Iterable[PastFlag], at: datetime) -> datetime | None:
    return min((flag.since for flag in flags if flag.since >= at), default=None)


def _newest_first(missed: Missed) -> tuple[float, int]:
    return -missed.at.timestamp(), missed.no


def _value_at(history: Iterable[Change], at: datetime) -> Status:
    value = Status.HEALTHY
    for change in history:
        if change.at < at:
            value = change.value
    return value


def _now(tests: Iterable[_Test], value: Status) -> tuple[int, ...]:
    return tuple(test.no for test in tests if test.health.value is value)


def _by_week(
    since: datetime, until: datetime, flags: Iterable[datetime]
) -> tuple[tuple[int, int], ...]:
    """Return weeks of seven days that end with the newest day; the first may be shorter."""
    last, first = until.toordinal(), since.toordinal()
    counts: defaultdict[int, int] = defaultdict(int)
    for at in flags:
        counts[(last - at.toordinal()) // DAYS_OF_WEEK] += 1
    weeks = range((last - first) // DAYS_OF_WEEK, -1, -1)
    return tuple((max(first, last - DAYS_OF_WEEK * (back + 1) + 1), counts[back]) for back in weeks)


def _failed_results(stored: Stored, since: datetime) -> Iterator[tuple[EvidenceUpload, int]]:
    """Return each test whose last attempt failed in an upload since then."""
    for upload in stored.uploads:
        if upload.at >= since and not upload.is_mass:
            for no, letters in upload.attempts.items():
                if letters[-1] == FAILED:
                    yield upload, no


def _excused(
    results: Sequence[tuple[EvidenceUpload, int]],
    tests: Mapping[int, _Test],
    rules: Rules,
    stored: Stored,
) -> int:
    """Count the failures that would have counted as passed because of a status."""
    asked = [
        (upload, no)
        for upload, no in results
        if no in tests and tests[no].status_at(upload.at) in rules.excused
    ]
    if not rules.known_texts:
        return len(asked)
    seen = _seen({no for _, no in asked}, stored)
    return sum(1 for upload, no in asked if _is_known(upload, no, stored, seen))


Seen = Mapping[tuple[int, str], Sequence[EvidenceUpload]]
"""By test and text, the uploads with such a failure."""


def _seen(nos: Set[int], stored: Stored) -> Seen:
    found: defaultdict[tuple[int, str], list[EvidenceUpload]] = defaultdict(list)
    for upload in stored.uploads:
        by_test = stored.texts.get(upload.id, {})
        for no in by_test.keys() & nos:
            for key in by_test[no]:
                found[no, key].append(upload)
    return found


def _is_known(upload: EvidenceUpload, no: int, stored: Stored, seen: Seen) -> bool:
    """Return whether it failed so in 30 days before, and not in the same pull requests alone."""
    own = frozenset(stored.prs.get(upload.id, ()))
    return all(
        any(
            upload.at - KNOWN_FOR <= each.at < upload.at
            and own.isdisjoint(stored.prs.get(each.id, ()))
            for each in seen.get((no, key), ())
        )
        for key in stored.texts.get(upload.id, {}).get(no, ())
    )


def _innocents(
    stored: Stored, index: EvidenceIndex, since: datetime
) -> Iterator[tuple[datetime, Set[int]]]:
    """Return when each code of the queue failed by flaky failures alone, and the tests.

    Each of them passed on the same code in the same job.
    """
    failed: defaultdict[str, set[tuple[str, int]]] = defaultdict(set)
    begun: dict[str, datetime] = {}
    for upload, no in _failed_results(stored, since):
        if upload.kind is UploadClass.QUEUE:
            failed[upload.code].add((upload.job, no))
            begun[upload.code] = min(upload.at, begun.get(upload.code, upload.at))
    uploads = index.evidence.uploads
    for code, pairs in failed.items():
        if all(
            any(kept.passing >> uploads.bits[no] & 1 for kept in uploads.on_code((job, code)))
            for job, no in pairs
        ):
            yield begun[code], {no for _, no in pairs}


def _is_spared(test: _Test | None, at: datetime, rules: Rules) -> bool:
    """Return whether a failure was known to be flaky, or was excused."""
    if test is None:
        return False
    status = test.status_at(at)
    return status is Status.FLAKY or status in rules.excused

"""Plan what a job repeats when it is done, and take in what it reports.

A plan belongs to an upload, and only the job of that upload gets it and reports on it, as well
proved as the upload is (docs/design/active-evidence.md 3, 5).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from service.accounts import access
from service.accounts.tenants import RepositoryRecord
from service.database.database import Tx
from service.errors import Invalid, NotFound
from service.http.callers import Caller
from service.runtime import Runtime
from service.testhealth import repeats
from service.testhealth.detector import completeness, figures
from service.testhealth.detector import repeats as rules
from service.testhealth.operations import classify, judge, records, suspects
from service.testhealth.operations.classify import Doubts
from service.testhealth.operations.judge import RepositoryTests
from service.testhealth.operations.queue_links import QueueLinks
from service.testhealth.operations.upload_values import UploadMeta
from service.testhealth.repeats import JobTests, PlanRounds, PlanStanding, Portion, RepeatedBecause
from service.testhealth.reports.results import Outcome
from service.testhealth.reports.uploads import UploadClass
from service.testhealth.store import attempts as test_attempts
from service.testhealth.store import cases, listings, states
from service.testhealth.store import repeats as stored
from service.testhealth.store.attempts import StoredAttempt
from service.testhealth.store.index_cache import CachedIndex
from service.testhealth.store.listings import ListedCase
from service.testhealth.store.repeats import RepeatPlan
from service.testhealth.store.uploads import Upload
from service.testhealth.suspects import SuspectedBecause

REPORTED_WITHIN = timedelta(days=1)
LETTERS_MAX = 1000


@dataclass(frozen=True, slots=True)
class Asked:
    """A job that asks what to repeat: `upload` is the id of its upload.

    `is_able`: its runner can repeat single tests.
    """

    meta: UploadMeta
    upload: str
    is_able: bool


@dataclass(frozen=True, slots=True)
class PlannedTest:
    """A test to repeat."""

    test: ListedCase
    because: RepeatedBecause
    times: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The tests that a job repeats within so many seconds; without any, the reason."""

    standing: PlanStanding
    id: str = ""
    seconds: float = 0.0
    tests: tuple[PlannedTest, ...] = ()


@dataclass(frozen=True, slots=True)
class Reported:
    """The report of a job on a plan: letters by the id of each test, and the seconds it took."""

    meta: UploadMeta
    plan: str
    seconds: float
    letters: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Heard:
    """The tests and rounds of a report that count, and the ids of tests that disagreed."""

    tests: int
    rounds: int
    disagreeing: tuple[str, ...]


async def plan(
    runtime: Runtime, caller: Caller, repository: RepositoryRecord, asked: Asked
) -> Plan:
    """Return what a job repeats, and reserve the time. Raises NotFound, Invalid.

    The errors are `upload_not_found`, `conflicting_fields`, and those of the caller's token.
    """
    meta, doubts = await classify.checked(runtime, caller, repository, asked.meta)
    asked = replace(asked, meta=meta)
    changed: tuple[str, ...] = ()
    if meta.pr_number is not None and asked.is_able:
        found = await suspects.suspected(runtime, repository, meta.sha)
        changed = tuple(each.test_id for each in found if each.because is SuspectedBecause.CHANGED)
    about = (asked, doubts, changed)
    return await runtime.store.run(_planned, runtime, caller, repository, about)


def _planned(
    session: Tx,
    runtime: Runtime,
    caller: Caller,
    repository: RepositoryRecord,
    about: tuple[Asked, Doubts, tuple[str, ...]],
) -> Plan:
    (asked, doubts, changed), now = about, runtime.clock.now()
    access.recheck(session, caller.actor, now)
    # Jobs that ask at the same time must not share the minutes that are left.
    cases.lock(session, repository.id)
    context = records.context_of(session, runtime, repository, now)
    upload = records.find_upload(session, repository, asked.upload)
    tests = RepositoryTests(session, runtime, context)
    minutes = context.settings.repeat_minutes_per_day
    standing = _standing(tests, upload, asked, doubts)
    if standing is not PlanStanding.PLANNED or minutes is None:
        return Plan(standing)
    spent = stored.spent(session, repository.id, _midnight(now))
    kind = UploadClass(upload.kind)
    test_time = upload.counts.get("test_time_ms", 0) / 1000
    seconds = repeats.seconds_of(kind, test_time, minutes * 60.0, spent.seconds, spent.in_pulls)
    if seconds < 1:
        return Plan(PlanStanding.SPENT)
    known = _known_of(tests, upload, changed)
    portions = repeats.planned(repeats.candidates(known, kind, now), seconds)
    if not portions:
        return Plan(PlanStanding.NOTHING)
    made = RepeatPlan(
        id=runtime.ids.uuid(),
        upload=upload.id,
        kind=kind,
        tests=portions,
        asked_at=now,
        reserved_ms=round(seconds * 1000),
    )
    stored.put_plan(session, tests.place, made)
    listed = {
        case.no: case
        for case in listings.listed_cases(session, repository.id, [each.no for each in portions])
    }
    return Plan(
        PlanStanding.PLANNED,
        made.id,
        seconds,
        tuple(
            PlannedTest(listed[each.no], each.because, each.times)
            for each in portions
            if each.no in listed
        ),
    )


def _standing(tests: RepositoryTests, upload: Upload, asked: Asked, doubts: Doubts) -> PlanStanding:
    """Return the first reason for an empty plan; PLANNED if there is none yet."""
    session, here = tests.session, tests.place.repository_id
    is_testing = tests.runtime.links.of(QueueLinks).is_testing
    if tests.context.settings.repeat_minutes_per_day is None:
        return PlanStanding.OFF
    if not asked.is_able:
        return PlanStanding.NOT_ABLE
    if not _may_repeat(upload):
        return PlanStanding.NOT_HERE
    if not _is_job_of(upload, asked.meta, doubts):
        return PlanStanding.UNPROVED
    if stored.has_plan(session, upload.id):
        return PlanStanding.ALREADY
    return PlanStanding.BUSY if is_testing(session, here) else PlanStanding.PLANNED


def _may_repeat(upload: Upload) -> bool:
    """Return whether the upload is evidence, and nobody waits for its job's check in a queue."""
    is_evidence = upload.is_eligible and not upload.is_mass and upload.refusal is None
    return is_evidence and upload.kind in (UploadClass.STABLE.value, UploadClass.PR.value)


def _is_job_of(upload: Upload, meta: UploadMeta, doubts: Doubts) -> bool:
    """Return whether the asker is the job of an upload, as well proved as the upload is."""
    if doubts.of_fork or doubts.of_unknown or doubts.is_unseen:
        return False
    account = upload.account
    is_proved = completeness.is_enough(doubts.proof, account.proof)
    is_same_job = not account.check_run or doubts.check_run == account.check_run
    is_same_run = (meta.sha, meta.run_id) == (upload.sha, upload.run_id)
    return is_proved and is_same_job and is_same_run


def _midnight(now: datetime) -> datetime:
    return figures.beginning_of(figures.day_of(now))


def _known_of(tests: RepositoryTests, upload: Upload, changed: Iterable[str]) -> JobTests:
    """Return the tests of a job that may be repeated, and what is known of them."""
    session, here, now = tests.session, tests.place.repository_id, tests.context.now
    attempts = test_attempts.attempts_of(session, upload.id)
    ran = {each.no for each in attempts if each.outcome is not Outcome.SKIPPED}
    if upload.passed is not None:
        ran |= set(tests.sets.numbers(upload.passed))

    def among(nos: Iterable[int]) -> list[int]:
        return [no for no in nos if no in ran]

    failed = _failed_in(attempts)
    flaky = among(stored.flaky(session, here))
    recent = among(stored.failed_since(session, here, now - repeats.SUSPECTED_FOR))
    watched = [*recent, *among(stored.failing(session, here)), *failed]
    new = among(stored.new_since(session, here, now - repeats.NEW_FOR))
    near = among(cases.by_ids(session, here, changed).values())
    asked = {*flaky, *watched, *new, *near}
    judged = states.states_of(session, here, watched)
    return JobTests(
        flaky=flaky,
        watched=watched,
        failed=failed,
        new=new,
        changed=near,
        scores={no: each.numbers.score or 0.0 for no, each in judged.items()},
        history=stored.history_of(session, here, asked, now - repeats.SUSPECTED_FOR),
        seconds=stored.seconds_of(session, here, asked),
        usual=upload.counts.get("test_time_ms", 0) / 1000 / max(upload.counts.get("tests", 1), 1),
    )


def _failed_in(attempts: Iterable[StoredAttempt]) -> list[int]:
    """Return the tests whose last attempt failed in an upload."""
    last: dict[int, Outcome] = {}
    for each in attempts:
        if each.is_comparable:
            last[each.no] = each.outcome
    return [no for no, outcome in last.items() if outcome is Outcome.FAILED]


async def report(
    runtime: Runtime, caller: Caller, repository: RepositoryRecord, sent: Reported
) -> Heard:
    """Take in what a job repeated; repeating it changes nothing.

    Raises NotFound(plan_not_found, upload_not_found), Invalid(not_the_job, conflicting_fields).
    """
    meta, doubts = await classify.checked(runtime, caller, repository, sent.meta)
    about = (replace(sent, meta=meta), doubts)
    heard, _ = await judge.run_serialized(
        runtime, repository.id, _reported, runtime, caller, repository, about
    )
    return heard


def _reported(
    session: Tx,
    runtime: Runtime,
    caller: Caller,
    repository: RepositoryRecord,
    about: tuple[Reported, Doubts],
) -> tuple[Heard, CachedIndex | None]:
    (sent, doubts), now = about, runtime.clock.now()
    access.recheck(session, caller.actor, now)
    cases.lock(session, repository.id)
    made = stored.plan_of(session, repository.id, sent.plan)
    if made is None or now > made.asked_at + REPORTED_WITHIN:
        raise NotFound(
            f"There is no plan {sent.plan}; a job reports within a day.", code="plan_not_found"
        )
    upload = records.find_upload(session, repository, made.upload)
    if not _is_job_of(upload, sent.meta, doubts):
        raise Invalid(
            "Only the job that was asked to repeat tests can report them, with the same token,"
            " commit and CI run as its upload.",
            code="not_the_job",
        )
    context = records.context_of(session, runtime, repository, now)
    tests = RepositoryTests(session, runtime, context)
    found = _rounds_in(tests, made, upload, sent)
    heard = Heard(
        len(found),
        sum(each.count for each in found),
        tuple(_ids_of(tests, [each.no for each in found if rules.disagrees(each.letters)])),
    )
    if made.reported_at is not None:
        return heard, None
    # A job that says more would spend what others may spend.
    spent_ms = min(round(sent.seconds * 1000), made.reserved_ms)
    done = replace(made, reported_at=now, spent_ms=spent_ms)
    stored.note_report(session, tests.place, done, found)
    index = judge.judge(tests, (), repeated=[each.no for each in found])
    return heard, judge.kept_of(tests, index)


def _rounds_in(
    tests: RepositoryTests, made: RepeatPlan, upload: Upload, sent: Reported
) -> list[PlanRounds]:
    """Return the rounds of the tests of a plan, at most as many as it asked for."""
    numbers = cases.by_ids(tests.session, tests.place.repository_id, sent.letters)
    asked: dict[int, Portion] = {each.no: each for each in made.tests}
    letters = {
        numbers[test_id]: _cut(word, asked[numbers[test_id]].times)
        for test_id, word in sent.letters.items()
        if numbers.get(test_id) in asked
    }
    letters = {no: word for no, word in letters.items() if word}
    disagreeing = sum(map(rules.disagrees, letters.values()))
    failed = set(_failed_in(test_attempts.attempts_of(tests.session, upload.id)))
    return [
        PlanRounds(
            no=no,
            plan=made.id,
            upload=upload.id,
            ran_at=upload.ran_at,
            letters=word,
            tested=len(letters),
            disagreeing=disagreeing,
            is_probe=no in failed,
            has_failed="F" in word,
        )
        for no, word in sorted(letters.items())
    ]


def _cut(word: str, times: int) -> str:
    """Return the first `times` letters, with what separates processes between them."""
    left = times
    for at, letter in enumerate(word):
        if letter != rules.NEXT:
            left -= 1
        if left < 0:
            return word[:at].rstrip(rules.NEXT)
    return word.strip(rules.NEXT)


def _ids_of(tests: RepositoryTests, nos: Sequence[int]) -> list[str]:
    listed = listings.listed_cases(tests.session, tests.place.repository_id, nos)
    return [case.id for case in listed]

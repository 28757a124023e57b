"""What runs of tests that Headgate starts itself tell, and which it starts."""

import re
from collections import defaultdict
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.testhealth import repeats as plans
from service.testhealth.detector import index as indexes
from service.testhealth.detector import repeats
from service.testhealth.detector.health import Health
from service.testhealth.detector.index import EvidenceIndex
from service.testhealth.detector.repeats import Repeats
from service.testhealth.repeats import (
    Candidate,
    JobTests,
    PlanRounds,
    RepeatedBecause,
    candidates,
    planned,
)
from service.testhealth.reports.uploads import UploadClass
from service.vocabulary import Health as Status
from tests.bench.flaky.ledger import STABLE, Ledger, Upload
from tests.flaky.histories import Story, T, at
from tests.flaky.test_index import THRESHOLD, Sets, told
from tests.flaky.test_order import uploads
from tests.harness import effort

SELDOM = "P" * 19 + "F" + "P" * 20
CLEAN = "P" * 100


def of_job(upload: Upload, letters: str) -> Repeats:
    """The rounds of T after an upload, on the same code."""
    about = (upload.at, upload.digest, upload.job, upload.code, letters)
    sha = upload.code.partition(":")[2]
    return Repeats(*about, source=upload.source, author=upload.author, sha=sha)


class Repeating(Story):
    """A story whose jobs repeat T."""

    def __init__(self) -> None:
        super().__init__()
        self.repeats: list[Repeats] = []

    def repeated(self, day: float, letters: str, **facts: Any) -> Upload:
        """T passed in a job of main, or as `facts` say, and then ran again."""
        about: dict[str, Any] = {"kind": STABLE, "pr": None, **facts}
        upload = self.ran(at(day), **about)
        self.repeats.append(of_job(upload, letters))
        return upload

    def judged(self, threshold: float = 100.0) -> Health:
        """The health of T."""
        # T may never have failed in a job: then it is followed by its repeats alone.
        index = EvidenceIndex(threshold)
        index.evidence.followed = frozenset({T})
        index.change([told(each) for each in self.uploads], (), Sets())
        facts = indexes.TestFacts(
            repeats=tuple((f"id of {each.upload}", each) for each in self.repeats)
        )
        judged = index.judge(T, facts)
        assert judged is not None
        return judged


@pytest.fixture(name="story")
def _story() -> Repeating:
    """An old repository in which T passes."""
    story = Repeating()
    story.ran(at(-10), "")
    story.passes(at(0), 30, timedelta(days=1))
    return story


@pytest.mark.parametrize(
    ("letters", "do_disagree"),
    [
        *[("PPPP", False), ("FFFF", False), ("PFP", True), ("FP", True)],
        *[("PFFF", False), ("PFFF/PFFF", False), ("PFFF/PPPP", False), ("FFFF/PPPP", True)],
        *[("PPPP/FFFF", False), ("PP/PFP", True)],
    ],
)
def test_only_a_failure_before_a_pass_that_it_compares_with_is_a_disagreement(
    letters: str, do_disagree: bool
) -> None:
    assert repeats.disagrees(letters) is do_disagree


@pytest.mark.parametrize("rounds", [3, 20, 100, 1000])
@pytest.mark.parametrize("threshold", [30.0, 100.0, 1000.0])
def test_no_single_job_makes_a_test_flaky_however_often_it_repeats(
    story: Repeating, rounds: int, threshold: float
) -> None:
    story.repeated(1.1, "PF" * (rounds // 40) + "F" + "P" * rounds)
    judged = story.judged(threshold)
    assert judged.value is Status.HEALTHY
    assert judged.numbers.score is not None


def test_two_jobs_make_it_flaky_and_the_reason_has_their_numbers(story: Repeating) -> None:
    for day in (1.1, 1.2):
        story.repeated(day, SELDOM)
    judged = story.judged()
    assert judged.value is Status.FLAKY
    assert "Failed and passed 2 times when it was repeated in 2 jobs (80 repeated runs)" in (
        judged.reason
    )


def test_one_pull_request_alone_makes_no_test_flaky_by_repeats(story: Repeating) -> None:
    for number in range(3):
        story.repeated(1 + number / 10, SELDOM, kind="pr", pr=7)
    assert story.judged(30.0).value is Status.HEALTHY
    story.repeated(2, SELDOM, kind="pr", pr=8)
    assert story.judged().value is Status.FLAKY


def test_one_account_alone_makes_no_test_flaky_by_repeats(story: Repeating) -> None:
    for number in range(3):
        story.repeated(1 + number / 10, SELDOM, kind="pr", pr=number, begun_by="7")
    assert story.judged(30.0).value is Status.HEALTHY
    story.repeated(2, SELDOM, kind="pr", pr=9, begun_by="8")
    assert story.judged().value is Status.FLAKY


def test_one_bad_machine_alone_makes_no_test_flaky_by_repeats(story: Repeating) -> None:
    for number in range(6):
        machine = f"runner {number}"
        story.ran(at(0.5, number), kind=STABLE, pr=None, machine=machine)
    for number in range(10):
        upload = story.repeated(1 + number / 10, SELDOM, machine="runner 1")
        story.repeats[-1] = Repeats(
            *(upload.at, upload.digest, upload.job, upload.code, SELDOM), machine="runner 1"
        )
    assert story.judged().value is Status.HEALTHY


def test_rounds_that_ordinary_runs_contradict_say_nothing_of_the_test(story: Repeating) -> None:
    for day in (1.1, 1.2, 1.3):
        story.repeated(day, "PF" * 20)
    assert story.judged().value is Status.FLAKY, "thirty runs say too little"
    story.passes(at(0.5), 100, timedelta(days=0.5))
    assert story.judged().value is Status.HEALTHY


def test_noise_is_neither_raised_nor_diluted_by_repeats(story: Repeating) -> None:
    before = story.judged().numbers
    for day in (1.1, 1.2):
        story.repeated(day, SELDOM)
    assert before.noise is None
    plain = Ledger(story.uploads)
    repeated = Ledger(story.uploads)
    repeated.repeats = {T: story.repeats}
    assert plain.noise == repeated.noise


@pytest.fixture(name="flaky")
def _flaky(story: Repeating) -> Repeating:
    """T is flaky by three jobs, and passes in each by itself."""
    for day in (1.1, 1.2, 1.3):
        story.repeated(day, SELDOM)
    assert story.judged().value is Status.FLAKY
    return story


def test_a_fix_is_verified_when_the_old_rate_is_unlikely(flaky: Repeating) -> None:
    for number in range(12):
        last = flaky.repeated(1.5 + number / 20, CLEAN)
        judged = flaky.judged()
        if judged.value is Status.HEALTHY:
            break
    assert judged.value is Status.HEALTHY
    assert judged.since == last.at, "at once, not at midnight"
    found = re.search(r"verified by (\d+) repeated runs on (\w{7}) without", judged.reason)
    assert found is not None
    assert int(found[1]) >= 400
    assert last.code.startswith(f"sha:{found[2]}")


def test_one_pull_request_silences_no_rounds_of_others(flaky: Repeating) -> None:
    flaky.passes(at(0.5), 400, timedelta(days=0.5))
    assert flaky.judged().value is Status.FLAKY
    flaky.repeated(1.25, "FP" * 20, kind="pr", pr=7)
    assert flaky.judged().value is Status.FLAKY, "its rounds alone are contradicted"


def test_repeats_of_pull_requests_verify_nothing(flaky: Repeating) -> None:
    for number in range(20):
        flaky.repeated(1.5 + number / 20, CLEAN, kind="pr", pr=7)
    assert flaky.judged().value is Status.FLAKY


def test_repeats_that_never_showed_the_fault_do_not_verify_its_end(story: Repeating) -> None:
    for minute in (60, 70, 80):
        story.flipped(at(1, minute))
    assert story.judged().value is Status.FLAKY
    for number in range(20):
        story.repeated(1.5 + number / 20, CLEAN)
    assert story.judged().value is Status.FLAKY, "it fails among other tests alone, perhaps"


def test_each_failure_begins_the_verification_anew(flaky: Repeating) -> None:
    for number in range(5):
        flaky.repeated(1.5 + number / 20, CLEAN)
        flaky.repeated(1.51 + number / 20, "P" * 30 + "F")
    assert flaky.judged().value is Status.FLAKY


CHOSEN = st.tuples(st.integers(0, 30), st.integers(0, 3), st.text("PF/", min_size=1))
"""An upload, a test, and how its rounds ended."""


@given(
    uploads(),
    st.lists(
        st.tuples(st.integers(0, 30), st.integers(0, 3), st.text("PF/", min_size=1)), max_size=8
    ),
    st.randoms(use_true_random=False),
    st.integers(1, 9),
)
@settings(max_examples=effort.examples(60), deadline=None)
def test_any_order_of_uploads_and_repeats_ends_in_the_same_health(
    given_uploads, chosen, chance, size
):
    unique = {each.digest: each for each in given_uploads if each.kind != "untrusted"}
    of_tests: defaultdict[int, list[Repeats]] = defaultdict(list)
    for place, no, letters in chosen:
        if unique:
            upload = sorted(unique.values(), key=lambda each: each.digest)[place % len(unique)]
            if upload.letters(no):
                of_tests[no].append(of_job(upload, letters))
    facts = {
        no: indexes.TestFacts(repeats=tuple((f"id of {each.upload}", each) for each in of_test))
        for no, of_test in of_tests.items()
    }
    ledger = Ledger(given_uploads, threshold=THRESHOLD)
    ledger.repeats = of_tests
    arriving = list(given_uploads)
    chance.shuffle(arriving)
    index, said = EvidenceIndex(THRESHOLD), {}
    index.evidence.followed = frozenset(of_tests)
    for start in range(0, len(arriving), size):
        some = [told(each) for each in arriving[start : start + size]]
        for no in index.change(some, (), Sets()) | of_tests.keys():
            said[no] = index.judge(no, facts.get(no, indexes.TestFacts()))
    expected = {no: ledger.judge(no) for no in ledger.failed} if unique else {}
    assert {no: said[no] for no in expected} == expected


# Which tests are repeated.


NOON = at(0.5)


def rounds(letters: str, day: float = 0.0, *, is_probe: bool = False) -> PlanRounds:
    """What a plan showed of a test, so many days after the midnight before NOON."""
    return PlanRounds(T, "plan", "upload", at(day), letters, 1, 0, is_probe, "F" in letters)


def chosen(kind: UploadClass = UploadClass.STABLE, **known: Any) -> dict[int, Candidate]:
    """The tests of a job that could be repeated."""
    found = [*candidates(JobTests(**known), kind, NOON)]
    assert len({each.no for each in found}) == len(found)
    return {each.no: each for each in found}


def test_a_test_is_repeated_for_its_strongest_reason() -> None:
    same: dict[str, Any] = {"watched": [1, 2, 3, 4], "scores": {1: 2.0, 2: 2.0, 3: 1.9}}
    found = chosen(**same, flaky=[1], failed=[2, 3], new=[3, 4], changed=[4, 5])
    assert {no: each.because for no, each in found.items()} == {
        1: RepeatedBecause.FLAKY,
        2: RepeatedBecause.SUSPECTED,
        3: RepeatedBecause.FAILED,
        4: RepeatedBecause.NEW,
        5: RepeatedBecause.CHANGED,
    }


@pytest.mark.parametrize(
    ("past", "is_suspected"),
    [
        (rounds("PPPP"), False),
        (rounds("FFFF"), False),
        (rounds("FPPP"), True),
        (rounds("PPPP", is_probe=True), True),
        (rounds("FFFF", is_probe=True), False),
    ],
)
def test_a_test_is_suspected_that_disagreed_or_failed_and_passed_when_it_was_repeated(
    past: PlanRounds, is_suspected: bool
) -> None:
    assert bool(chosen(watched=[T], history={T: [past]})) == is_suspected


def test_more_failures_than_ten_are_of_the_code_and_not_repeated() -> None:
    assert len(chosen(failed=range(10))) == 10
    assert chosen(failed=range(11)) == {}


@pytest.mark.parametrize(
    ("reason", "counted"), [("flaky", 2), ("watched", 5), ("failed", 0), ("new", 10)]
)
def test_the_rounds_that_count_are_those_since_the_reason_began(reason: str, counted: int) -> None:
    past = [rounds("PPP", -2), rounds("FP", -1), rounds("PP/P", -0.5), rounds("PP", 0.4)]
    known: dict[str, Any] = {reason: [T], "scores": {T: 2.0}, "history": {T: past}}
    assert chosen(**known)[T].rounds == counted


def test_a_flaky_test_is_repeated_less_in_pull_requests() -> None:
    past = [rounds("P" * plans.FLAKY_IN_PULLS_MAX)]
    known: dict[str, Any] = {"flaky": [T], "history": {T: past}}
    assert chosen(UploadClass.PR, **known) == {}
    assert chosen(UploadClass.STABLE, **known)[T].rounds == plans.FLAKY_IN_PULLS_MAX
    known["history"] = {T: [rounds("P" * (plans.FLAKY_IN_PULLS_MAX - 1))]}
    assert T in chosen(UploadClass.PR, **known)


@pytest.mark.parametrize("kind", [UploadClass.STABLE, UploadClass.PR])
def test_a_flaky_test_that_failed_when_it_was_repeated_leaves_the_time_to_others(
    kind: UploadClass,
) -> None:
    rests = plans.FLAKY_RESTS / timedelta(days=1)
    for day, letters, is_left in [
        *((0.5 - rests + 0.001, "PFP", False), (0.5 - rests + 0.001, "FFF", False)),
        *((0.5 - rests, "PFP", True), (0.5 - rests + 0.001, "PPP", True)),
    ]:
        history = {T: [rounds(letters, day), rounds("PPP", 0.499)]}
        assert (T in chosen(kind, flaky=[T], history=history)) is is_left
        assert T in chosen(kind, watched=[T], scores={T: 2.0}, history=history), "no flag is up"


def test_a_test_without_a_time_takes_the_usual_one() -> None:
    found = chosen(new=[1, 2], seconds={1: 3.0}, usual=0.5)
    assert [found[no].seconds for no in (1, 2)] == [3.0, 0.5]


def test_a_plan_keeps_to_its_time_and_tells_of_each_reason() -> None:
    candidates = [
        Candidate(no, because, 1.0)
        for place, because in enumerate(RepeatedBecause)
        for no in range(place * 100, place * 100 + 30)
    ]
    plan = planned(candidates, 400)
    assert sum(each.times for each in plan) <= 400
    assert {each.because for each in plan} == set(RepeatedBecause)
    assert len(plan) <= plans.TESTS_MAX


def test_a_test_that_was_repeated_least_comes_first_and_one_that_tells_no_more_never() -> None:
    most = plans.ROUNDS_MAX[RepeatedBecause.SUSPECTED]
    candidates = [
        Candidate(1, RepeatedBecause.SUSPECTED, 1.0, rounds=most),
        Candidate(2, RepeatedBecause.SUSPECTED, 1.0, rounds=500),
        Candidate(3, RepeatedBecause.SUSPECTED, 1.0, rounds=0),
    ]
    assert [each.no for each in planned(candidates, 20)] == [3]
    assert {each.no for each in planned(candidates, 1000)} == {2, 3}


def test_a_slow_test_is_left_out_where_its_time_is_not_there() -> None:
    assert planned([Candidate(1, RepeatedBecause.NEW, 60.0)], 59) == ()


def test_pull_requests_get_a_part_of_the_day_and_of_their_own_time() -> None:
    stable = plans.seconds_of(UploadClass.STABLE, 300, 3600, 0, 0)
    pull = plans.seconds_of(UploadClass.PR, 300, 3600, 0, 0)
    assert (stable, pull) == (900.0, 60.0)
    assert plans.seconds_of(UploadClass.PR, 300, 3600, 1790, 1790) == 10.0
    assert plans.seconds_of(UploadClass.STABLE, 300, 3600, 3600, 1800) == 0.0

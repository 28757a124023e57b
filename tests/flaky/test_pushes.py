"""Failures of one push alone: several pull requests agree where nobody runs a job again."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest

from service.testhealth.detector.evidence import Stream
from service.testhealth.detector.index import EvidenceIndex
from service.testhealth.detector.pushes import JobRuns
from service.vocabulary import Health as Status
from tests.flaky.histories import T, at, in_an_old_repository
from tests.flaky.test_index import Sets, told

HOUR = timedelta(hours=1)


def calm(story, day):
    """Other pull requests pass all day."""
    story.passes(at(day), 24, timedelta(days=1))


def pushed(story, day, letters, pr, begun_by=None):
    """Pushes of one pull request, an hour apart; each is other code."""
    for number, letter in enumerate(letters):
        story.ran(at(day, 605 + 60 * number), letter, pr=pr, begun_by=begun_by)


def story_of(letters, prs, days=10, accounts=(None,)):
    story = in_an_old_repository()
    for day in range(days):
        calm(story, day)
    for number in range(prs):
        pushed(story, 1 + number, letters, 900 + number, accounts[number % len(accounts)])
    return story


def events(story):
    """Those of the index, which are those that the ledger states."""
    index = EvidenceIndex(100.0)
    index.change([told(each) for each in story.uploads], (), Sets())
    evidence = index.evidence_of(T)
    assert evidence is not None
    found, stated = (
        sorted(event for event in each if event.stream is Stream.C)
        for each in (evidence.events, story.ledger().events_of(T))
    )
    assert found == stated
    return found


def test_a_test_that_fails_in_one_push_of_several_pull_requests_is_flaky():
    found = story_of("FP", 6).ledger().judge(T)
    assert found.value is Status.FLAKY
    assert found.reason.startswith("Failed in one push of ")


def test_one_pull_request_proves_nothing_however_often_it_fails():
    story = story_of("FPFPFPFPFP", 1)
    assert len(events(story)) == 5
    assert story.ledger().judge(T).value is Status.HEALTHY


@pytest.mark.parametrize("accounts", [("7",), ("",)])
def test_neither_one_account_nor_unknown_ones_make_a_test_flaky(accounts):
    story = story_of("FP", 8, accounts=accounts)
    assert len(events(story)) == 8
    assert story.ledger().judge(T).value is Status.HEALTHY


@pytest.mark.parametrize("accounts", [("7", "8"), ("7", ""), ("7", "8", "9", "10", "11")])
def test_two_accounts_that_agree_do(accounts):
    found = story_of("FP", 8, accounts=accounts).ledger().judge(T)
    assert found.value is Status.FLAKY
    assert ("by 2 accounts" in found.reason) == (len(accounts) == 2)


@pytest.mark.parametrize("letters", ["FFP", "F", "PF", "PFF"])
def test_what_a_pull_request_breaks_is_no_evidence(letters):
    assert events(story_of(letters, 6)) == []


def test_failures_while_others_fail_too_are_no_evidence():
    story = story_of("FP", 3)
    for day in (1, 2, 3):
        for minute in range(6):
            story.ran(at(day, 602 + minute), "F")
    assert events(story) == []


def sharded(letters, prs, jobs, others=True):
    """Pull requests whose pushes run the test in one shard; nobody else ever fails it.

    `others`: the other shards run without it.
    """
    story = in_an_old_repository()
    for day in range(10):
        for job in dict.fromkeys(jobs):
            story.passes(at(day), 24, timedelta(days=1), job=f"shard {job}")
    for pr in range(prs):
        for push, (letter, job) in enumerate(zip(letters, jobs, strict=True)):
            code = f"sha:{pr:03}{push:04}"
            for shard in dict.fromkeys(jobs if others else job):
                here = letter if shard == job else ""
                when = at(1 + pr, 605 + 60 * push)
                story.ran(when, here, pr=900 + pr, code=code, job=f"shard {shard}")
    return story


@pytest.mark.parametrize(
    ("letters", "jobs"),
    [("FFP", "122"), ("FFPP", "1222"), ("PFFPP", "12122"), ("FFFP", "1322")],
)
def test_a_failure_that_moves_to_another_shard_is_no_evidence(letters, jobs):
    assert events(sharded(letters, 6, jobs)) == []


@pytest.mark.parametrize(("letters", "jobs"), [("PFFP", "1211"), ("PFFP", "1121")])
def test_the_nearest_push_of_all_shards_decides(letters, jobs):
    assert events(sharded(letters, 6, jobs, others=False)) == []


def test_a_failure_that_passed_in_another_shard_is_evidence():
    assert len(events(sharded("PFP", 6, "122"))) == 6


def test_failures_of_two_legs_of_a_matrix_are_evidence_of_each():
    story = in_an_old_repository()
    for leg in ("linux", "mac"):
        story.passes(at(1), 24, timedelta(days=1), job=leg)
        for push, letter in enumerate("PFP"):
            facts: dict[str, Any] = {"pr": 900, "code": f"sha:90{push}", "job": leg}
            story.ran(at(1, 605 + 60 * push + (leg == "mac")), letter, **facts)
    assert [event.job for event in events(story)] == ["linux", "mac"]


def test_a_push_that_breaks_many_tests_is_no_evidence():
    story = in_an_old_repository()
    calm(story, 1)
    story.ran(at(1, 605), "F", failing=range(1, 20), pr=900)
    story.ran(at(1, 665), "P", pr=900)
    assert events(story) == []


def test_a_failure_that_passed_again_on_the_same_code_counts_once():
    story = in_an_old_repository()
    calm(story, 1)
    story.again(story.ran(at(1, 605), "F", pr=900))
    story.ran(at(1, 665), "P", pr=900)
    assert [event.stream for event in story.ledger().events_of(T)] == [Stream.A]


@dataclass
class Sent:
    """An upload that counts how often it is asked for its code."""

    at: datetime
    digest: str
    source: str
    machine: str = ""
    author: str = ""
    asked: int = 0

    @property
    def code(self):
        self.asked += 1
        return f"tree of {self.digest}"


@dataclass
class Ran:
    upload: Sent
    passing: int = 1
    failing: int = 0


@pytest.mark.parametrize("pushes", [100, 400])
def test_an_upload_to_a_branch_of_many_pushes_looks_at_each_of_them_a_few_times(pushes):
    ran = [Ran(Sent(at(1, nth), f"{nth:03}", "/develop")) for nth in range(pushes)]
    job = JobRuns("tests")
    job.change(ran[:-1], [])
    assert max(each.upload.asked for each in ran) <= 50
    for each in ran:
        each.upload.asked = 0
    job.change(ran[-1:], [])
    job.change([], ran[:1])
    assert max(each.upload.asked for each in ran) <= 10

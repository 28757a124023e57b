"""Uploads that come and go one by one end where all of them together do."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.testhealth.detector import series
from service.testhealth.detector.index import EvidenceIndex
from service.testhealth.reports.uploads import EvidenceUpload, UploadClass
from tests.bench.flaky.ledger import Ledger, Upload
from tests.flaky.histories import START
from tests.flaky.test_order import uploads
from tests.harness import effort

THRESHOLD = 30


class Sets:
    """Sets of passed tests, named by what is in them."""

    def members(self, keys, nos):
        return {key: [no for no in nos if no in self.numbers(key)] for key in keys}

    def numbers(self, key):
        return [int(word) for word in key.split()]


def told(upload):
    """An upload of the ledger as the book wants it; tests whose attempts do not compare apart."""
    passed = [no for no in range(20) if upload.passed >> no & 1 and no not in upload.muddled]
    muddled = {no: "P" for no in upload.muddled if upload.passed >> no & 1}
    return EvidenceUpload(
        id=f"id of {upload.digest}",
        digest=upload.digest,
        at=upload.at,
        kind=UploadClass(upload.kind),
        job=upload.job,
        code=upload.code,
        sha=upload.code.partition(":")[2],
        is_mass=upload.is_mass,
        passed=" ".join(map(str, passed)) or None,
        passed_size=len(passed),
        run=upload.run,
        run_attempt=upload.run_attempt,
        machine=upload.machine,
        branch=upload.branch,
        pr=upload.pr,
        attempts={**muddled, **upload.attempts},
        muddled=upload.muddled,
        position=upload.position,
        begun_by=upload.begun_by,
    )


def wanted(given_uploads):
    """What the ledger says of every test that failed."""
    if not given_uploads:
        return {}
    ledger = Ledger(given_uploads, threshold=THRESHOLD)
    return {no: ledger.judge(no) for no in ledger.failed}


class Judged:
    """What was said of each test last."""

    def __init__(self):
        self.index = EvidenceIndex(THRESHOLD)
        self.said = {}

    def change(self, added, removed=()):
        gone = [f"id of {each.digest}" for each in removed]
        for no in self.index.change([told(each) for each in added], gone, Sets()):
            self.said[no] = self.index.judge(no)

    def of(self, nos):
        return {no: self.said[no] for no in nos}


@given(uploads(), st.randoms(use_true_random=False), st.integers(1, 9))
@settings(max_examples=effort.examples(80), deadline=None)
def test_any_order_repetition_and_batching_end_in_the_same_health(given_uploads, chance, size):
    arriving = [*given_uploads, *given_uploads[:5]]
    chance.shuffle(arriving)
    judged = Judged()
    for start in range(0, len(arriving), size):
        judged.change(arriving[start : start + size])
    expected = wanted(given_uploads)
    assert judged.of(expected) == expected


@given(uploads(), st.randoms(use_true_random=False), st.integers(1, 5))
@settings(max_examples=effort.examples(30), deadline=None)
def test_series_that_let_go_of_points_end_in_the_same_health(given_uploads, chance, size):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(series, "POINTS_MAX", 5)
        come_and_go(given_uploads, chance, size)


@given(uploads(), st.randoms(use_true_random=False), st.integers(1, 5))
@settings(max_examples=effort.examples(80), deadline=None)
def test_uploads_that_were_taken_out_leave_nothing_behind(given_uploads, chance, size):
    come_and_go(given_uploads, chance, size)


def come_and_go(given_uploads, chance, size):
    """Take uploads in, and some out again: the health of all tests is that of who is left."""
    arriving = list(given_uploads)
    chance.shuffle(arriving)
    judged = Judged()
    kept: list[Upload] = []
    for start in range(0, len(arriving), size):
        coming = arriving[start : start + size]
        going = [each for each in kept if chance.random() < 0.3]
        judged.change(coming, going)
        kept = [each for each in kept if each not in going] + coming
        expected = wanted(kept)
        assert judged.of(expected) == expected


def test_uploads_of_no_branch_and_no_pull_request_are_capped_together():
    bare = EvidenceUpload("u", "d", START, UploadClass.OTHER, "unit", "sha:a", "a", False, None, 0)
    assert bare.source
    assert replace(bare, branch="topic").source != bare.source
    assert replace(bare, kind=UploadClass.STABLE).source == ""
    named = replace(bare, branch="#7")
    assert named.source != replace(bare, kind=UploadClass.PR, pr=7).source


def test_pull_requests_that_nobody_could_name_are_told_apart_by_their_branches():
    bare = EvidenceUpload("u", "d", START, UploadClass.PR, "unit", "run:1", "a", False, None, 0)
    assert replace(bare, branch="topic").source != replace(bare, branch="other").source

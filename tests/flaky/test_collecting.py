"""What an artifact of a CI run counts as (docs/design/reports.md 2, 10)."""

from dataclasses import replace
from itertools import product

import pytest

from service import globs
from service.testhealth.reports import collecting, reports
from service.testhealth.reports.collecting import Ran
from service.testhealth.reports.reading import ReadOptions
from service.testhealth.reports.uploads import UploadClass

SHA = "5779607b49aab1200488439f02372c57b4f75444"
RAN = Ran(
    run_id="16000000001",
    attempt=2,
    head_sha=SHA,
    head_branch="main",
    of_fork=False,
    tests_head=True,
    tests_merge=False,
)
MERGED = replace(RAN, tests_head=False, tests_merge=True, head_branch="topic")


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("*junit*", "junit", True),
        ("*junit*", "my-junit-3", True),
        ("*junit*", "unit", False),
        ("", "", True),
        ("", "a", False),
        ("*", "", True),
        ("release/*", "release/1/2", True),
        ("release/?", "release/12", False),
        ("a?c", "a/c", True),
        ("[ab]", "a", False),
        ("[ab]", "[ab]", True),
        ("a.c", "abc", False),
        ("Main", "main", False),
    ],
)
def test_globs(pattern, text, fits):
    assert globs.matches(pattern, text) is fits


def test_globs_agree_with_another_matcher():
    texts = ["".join(word) for length in range(5) for word in product("ab", repeat=length)]
    patterns = ["".join(word) for length in range(5) for word in product("ab*?", repeat=length)]
    for pattern in patterns:
        expected = [slowly_matches(pattern, text) for text in texts]
        assert [globs.matches(pattern, text) for text in texts] == expected


def slowly_matches(pattern, text):
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(slowly_matches(pattern[1:], text[at:]) for at in range(len(text) + 1))
    return text != "" and pattern[0] in ("?", text[0]) and slowly_matches(pattern[1:], text[1:])


def test_a_hostile_glob_takes_no_time():
    assert not globs.matches("*a" * 120 + "b", "a" * 255)


def test_names_are_wanted_in_any_letter_case():
    assert collecting.is_wanted("JUnit-Linux", ("*surefire*", "*junit*"))
    assert not collecting.is_wanted("coverage", ("*surefire*", "*junit*"))
    assert not collecting.is_wanted("junit", ())


@pytest.mark.parametrize(
    ("ran", "is_of_queue", "expected"),
    [
        (replace(MERGED, of_fork=True), False, UploadClass.UNTRUSTED),
        (replace(MERGED, of_fork=True), True, UploadClass.UNTRUSTED),
        (replace(RAN, tests_head=False), False, UploadClass.UNTRUSTED),
        (replace(RAN, tests_head=False), True, UploadClass.UNTRUSTED),
        (MERGED, True, UploadClass.QUEUE),
        (RAN, True, UploadClass.QUEUE),
        (MERGED, False, UploadClass.PR),
        (replace(MERGED, head_branch="main"), False, UploadClass.PR),
        (RAN, False, UploadClass.STABLE),
        (replace(RAN, head_branch="release/2"), False, UploadClass.STABLE),
        (replace(RAN, head_branch="topic"), False, UploadClass.OTHER),
    ],
)
def test_class(ran, is_of_queue, expected):
    stable = ("main", "release/*")
    assert collecting.class_of(ran, stable, is_of_queue=is_of_queue) is expected


def test_what_was_tested():
    assert collecting.code_id(RAN, "f00") == "tree:f00"
    assert collecting.code_id(RAN, None) == f"sha:{SHA}"
    assert collecting.code_id(MERGED, None) == "run:16000000001"
    assert collecting.code_id(replace(RAN, tests_head=False), None) == "run:16000000001"


@pytest.mark.parametrize(
    ("artifact", "plain"),
    [
        ("junit-unit", "junit-unit"),
        ("junit (ubuntu, 3.12)", "junit (ubuntu, 3.12)"),
        ("junit-16000000001-2", "junit"),
        ("junit-16000000001-3", "junit-3"),
        ("junit_16000000001_attempt_2_linux", "junit_linux"),
        ("16000000001-junit", "junit"),
        ("junit-attempt2", "junit"),
        ("junit-try-2", "junit"),
        ("junit-attempt-7", "junit-attempt-7"),
        (f"junit-{SHA}", "junit"),
        (f"junit-{'b' * 40}-x", "junit-x"),
        (f"junit-{SHA[:8]}.shard-2", "junit-shard-2"),
        (f"junit-{SHA[:6]}", f"junit-{SHA[:6]}"),
        ("junit-2", "junit-2"),
        ("16000000001", ""),
    ],
)
def test_what_differs_from_run_to_run_is_no_part_of_the_job_key(artifact, plain):
    assert collecting.plain_name(artifact, RAN) == plain


def test_parts_of_a_job_keep_their_numbers_in_every_attempt():
    names = ["junit-1", "junit-2"]
    for attempt in (1, 2, 3):
        ran = replace(RAN, attempt=attempt)
        assert [collecting.plain_name(name, ran) for name in names] == names


def test_job_key():
    assert collecting.job_key("ci", "junit") == "ci / junit"
    assert collecting.job_key("", "junit") == "junit"
    assert collecting.job_key("ci", "") == "ci"


def test_an_artifact_is_called_like_a_job():
    assert collecting.names_job("unit", "unit")
    assert collecting.names_job("junit-unit", "unit")
    assert collecting.names_job("test-results-unit", "unit")
    assert not collecting.names_job("junit", "unit")


@pytest.mark.parametrize(
    ("content", "is_report"),
    [
        (b"<testsuite><testcase name='a'/></testsuite>", True),
        (b"<testsuite><testcase name='a'>", True),
        (b"<!DOCTYPE x><testsuite/>", True),
        (b"", True),
        (b'{"name": "widgets", "version": "1.0.0"}', False),
        (b"no report at all", False),
    ],
)
def test_what_was_never_meant_as_a_report_is_told_from_one_that_is_broken(content, is_report):
    assert collecting.is_report(reports.read(content, None, ReadOptions())) is is_report

"""Which uploads tell of a failed check: each rule, and that nobody excuses by another's."""

import pytest

from service.testhealth.reports import jobs
from service.testhealth.reports.jobs import Job, Sent

UNIT = Job("1", "unit", "CI", "runner-1", has_failed=True)
LINT = Job("2", "lint", "CI", "runner-2")
BY_MACHINE = Sent("a", "", "runner-1")
BY_KEY = Sent("b", "CI / unit @ Linux-X64 (3.12)")
BY_ARTIFACT = Sent("c", "CI / junit-unit")
UNNAMED = Sent("d", "")


def of_unit(*sent: Sent, others: tuple[Job, ...] = (LINT,)) -> tuple[str, ...]:
    return jobs.uploads_of(UNIT, (UNIT, *others), sent)


@pytest.mark.parametrize(
    ("sent", "found"),
    [
        ((BY_MACHINE, BY_KEY), ("a",)),
        ((BY_ARTIFACT, BY_KEY), ("b",)),
        ((Sent("e", "unit"),), ("e",)),
        ((BY_ARTIFACT, UNNAMED), ("c",)),
        ((Sent("e", "CI / test-results-unit"),), ("e",)),
        ((UNNAMED, Sent("f", "")), ("d", "f")),
        ((), ()),
    ],
)
def test_the_first_rule_that_gives_any(sent: tuple[Sent, ...], found: tuple[str, ...]) -> None:
    assert of_unit(*sent) == found


def test_a_job_of_which_no_machine_is_known_is_not_found_by_one() -> None:
    unknown = Job("1", "unit", "CI", has_failed=True)
    beside = Job("2", "lint", "CI", "runner-2")
    assert jobs.uploads_of(unknown, (unknown, beside), (UNNAMED, BY_KEY)) == ("b",)


def test_a_machine_that_ran_two_jobs_tells_of_none() -> None:
    beside = Job("2", "lint", "CI", "runner-1")
    assert of_unit(BY_MACHINE, others=(beside,)) == ()
    assert of_unit(BY_MACHINE, BY_KEY, others=(beside,)) == ("b",)


def test_what_is_called_like_two_jobs_tells_of_none() -> None:
    assert of_unit(Sent("e", "unit"), others=(Job("2", "unit", "Nightly"),)) == ()


def test_what_cannot_be_told_apart_counts_only_where_one_job_failed() -> None:
    failed = Job("2", "lint", "CI", "runner-2", has_failed=True)
    assert of_unit(UNNAMED, others=(failed,)) == ()


def test_results_of_another_job_never_count() -> None:
    assert of_unit(Sent("e", "CI / lint @ Linux-X64"), Sent("f", "", "runner-2")) == ()


def test_a_job_key_is_accounted_for_by_an_upload_or_by_a_job_that_did_not_fail():
    unit = Job("1", "unit", "ci", has_failed=True)
    lint, e2e = Job("2", "lint", "ci"), Job("3", "e2e", "ci", has_failed=True)
    found = jobs.accounted(unit, [unit, lint, e2e], [Sent("u", "ci / small @ Linux-X64")])
    assert {"ci / small", "ci / small @ Linux-X64", "lint", "ci / junit-lint"} <= found
    assert found.isdisjoint({"unit", "ci / unit", "e2e", "ci / e2e"})


def test_a_job_key_names_the_job_of_a_check_in_whatever_workflow():
    assert jobs.is_called("unit", "unit")
    assert jobs.is_called("unit", "ci / unit @ Linux-X64")
    assert not jobs.is_called("unit", "ci / unit 2")

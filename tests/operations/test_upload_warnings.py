"""What an upload is warned about: names that clash or are cut, jobs that cannot be told apart."""

from dataclasses import replace

import pytest

from tests.operations import upload_stage
from tests.operations.upload_stage import a_case, a_file


@pytest.fixture
async def stage(store):
    return await upload_stage.staged(store)


def a_report_of(*cases):
    file = a_file({case.name: "P" for case in cases})
    return replace(file, cases=cases)


def codes(answer):
    return [each.partition(":")[0] for each in answer.warnings]


ONE = a_case("b", "P", parent="a#b", file="")
OTHER = a_case("b#b", "F", parent="a", file="")


async def test_two_tests_of_one_id_are_one_and_warned_of(stage):
    answer = await stage.send([a_report_of(OTHER, ONE)])
    assert codes(answer)[0] == "identity_clash"
    assert (answer.counts.tests, len(await stage.cases())) == (2, 1)
    # Not a failure and its successful retry.
    assert answer.unquarantined_failures == 1
    (state, _) = (await stage.states())["b#b"]
    assert state.numbers.a is None


async def test_the_first_sight_owns_the_id_and_is_not_warned_of(stage):
    assert codes(await stage.send([a_report_of(ONE)])) == []
    assert codes(await stage.send([a_report_of(ONE)], job="again")) == []
    assert codes(await stage.send([a_report_of(OTHER)], job="other")) == ["identity_clash"]
    assert list(await stage.cases()) == ["b"]


async def test_an_id_that_a_report_claims_never_clashes(stage):
    claims = [each._replace(claimed_id="headgate:b") for each in (ONE, OTHER)]
    assert "identity_clash" not in codes(await stage.send([a_report_of(*claims)]))


async def test_a_long_name_is_cut_in_the_answer_as_it_is_kept(stage):
    name = "n" * 1_001
    answer = await stage.send([a_report_of(a_case(name, "F", file="f" * 2_000))])
    assert answer.warnings == (
        "Names, classes, suites or files longer than 1,000 characters: 1. They are shown cut.",
    )
    (failure,) = answer.failures
    assert (failure.name, failure.file) == (name[:1_000], "f" * 1_000)
    assert list(await stage.cases()) == [name[:1_000]]


async def test_a_job_whose_names_change_with_each_run_is_warned_of(stage):
    def of_run(n):
        return {f"port {n * 1000 + each}": "P" for each in range(20)} | {"steady": "P"}

    for n in range(3):
        assert codes(await stage.ran(of_run(n))) == []
    assert (await stage.ran(of_run(3))).warnings == (
        "names_change: 20 of 21 tests are new, although this job has reported before. "
        "A test whose name changes with each run gets no history: compare two reports with "
        "`headgate validate FIRST SECOND`.",
    )
    assert codes(await stage.ran(of_run(4), dry_run=True)) == ["names_change"]
    assert codes(await stage.ran(of_run(5), job="another")) == []


async def test_a_few_new_tests_are_not_warned_of(stage):
    for new in (0, 19, 24):
        tests = {f"old {each}": "P" for each in range(100)} | {
            f"new {new}" + str(each): "P" for each in range(new)
        }
        for _ in range(3):
            assert codes(await stage.ran(tests, run_id=str(new))) == []


async def test_machines_under_one_job_of_an_attempt_are_warned_of(stage):
    told = {"run_id": "7", "job": "unit"}
    assert codes(await stage.ran({"a": "P"}, machine="m1", **told)) == []
    assert codes(await stage.ran({"b": "P"}, machine="m1", **told)) == []
    siblings = await stage.ran({"c": "P"}, machine="m2", **told)
    assert siblings.warnings == (
        "job_ambiguous: m2 and m1 report as one job in the same attempt. "
        "Give each matrix job its own name: `--job`.",
    )
    for other in ({"run_attempt": 2}, {"job": "e2e"}, {"run_id": "8"}, {"machine": None}):
        answer = await stage.ran({"d": "P"}, **{**told, "machine": "m3", **other})
        assert codes(answer) == [], other


async def test_machines_of_strangers_are_nobodys_siblings(stage):
    told = {"run_id": "7", "job": "unit"}
    stranger = replace(stage.caller, token_id="")
    await stage.ran({"a": "P"}, machine="m1", **told)
    assert codes(await stage.ran({"b": "P"}, machine="m2", caller=stranger, **told)) == []
    assert codes(await stage.ran({"c": "P"}, machine="m1", **told)) == []

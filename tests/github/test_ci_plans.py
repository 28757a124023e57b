"""What workflow files say about failures: which job cannot pass once which has failed."""

import pytest

from bot.github import ci_plans
from service.provider.ci import FailedPart
from service.provider.ci_plans import CiPlan, PlannedJob

FOLDER = ".github/workflows"
FILE = f"{FOLDER}/ci.yml"
GATED = """
jobs:
  unit: {steps: [{run: make}]}
  pack: {needs: unit, steps: [{run: make pack}]}
  gate: {needs: [pack], if: always(), steps: [{run: ./gate}]}
  lint: {steps: [{run: make lint}]}
"""


def plan_of(text: str, **others: str) -> CiPlan:
    contents = {"ci.yml": text.encode()}
    contents |= {f"{name}.yml": other.encode() for name, other in others.items()}
    return CiPlan(tuple(ci_plans.pieces(contents, FOLDER)))


def dooms(plan: CiPlan, required: str, job: str, step: str = "", test: str = "") -> bool:
    return plan.may_doom(FILE, required, FailedPart("1", job, step, test)) is not None


@pytest.mark.parametrize(
    ("required", "job", "expected"),
    [
        ("pack", "unit", True),
        ("gate", "unit", True),
        ("gate", "pack", True),
        ("gate", "lint", False),
        ("unit", "pack", False),
        ("gate", "gate", False),
        ("gate", "other", False),
        ("other", "unit", False),
    ],
)
def test_a_job_dooms_those_that_need_it_by_others_too(required, job, expected):
    assert dooms(plan_of(GATED), required, job) is expected


def test_a_job_of_another_file_dooms_nothing():
    plan = plan_of(GATED, more=GATED)
    assert plan.may_doom(f"{FOLDER}/more.yml", "gate", FailedPart("1", "unit")) is not None
    assert plan.may_doom(f"{FOLDER}/none.yml", "gate", FailedPart("1", "unit")) is None


@pytest.mark.parametrize("value", ["true", "${{ matrix.may }}", "'false'", "null"])
@pytest.mark.parametrize("job", ["unit", "pack", "gate"])
def test_a_job_that_may_fail_dooms_nothing_and_is_not_doomed(job, value):
    text = GATED.replace(f"  {job}: {{", f"  {job}: {{continue-on-error: {value}, ")
    assert not dooms(plan_of(text), "gate", "unit")


def test_a_job_that_may_not_fail_by_its_own_words_dooms():
    text = GATED.replace("  unit: {", "  unit: {continue-on-error: false, ")
    assert dooms(plan_of(text), "gate", "unit")


STEPS = """
jobs:
  unit:
    steps:
      - uses: actions/checkout@v4
      - name: Tests
        run: make
      - run: |

          make lint
          make more
      - {name: Flaky, continue-on-error: true, run: make odd}
      - {name: "Tests on ${{ matrix.os }}", run: make}
      - {name: Twice, run: make}
      - {name: Twice, continue-on-error: true, run: make}
  gate: {needs: unit, steps: [{run: ./gate}]}
"""


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("Tests", True),
        ("Run actions/checkout@v4", True),
        ("Run make lint", True),
        ("Flaky", False),
        ("Twice", False),
        ("Tests on linux", False),
        ("Set up job", False),
        ("Post Run actions/checkout@v4", False),
    ],
)
def test_a_step_dooms_its_job_unless_it_may_fail_or_is_not_in_the_file(step, expected):
    plan = plan_of(STEPS)
    assert dooms(plan, "unit", "unit", step) is expected
    assert dooms(plan, "gate", "unit", step) is expected


def test_a_reported_test_dooms_its_job_and_those_that_need_it():
    plan = plan_of(STEPS)
    assert dooms(plan, "unit", "unit", test="t")
    assert dooms(plan, "gate", "unit", test="t")


SURE = """
jobs:
  unit: {steps: [{run: make}]}
  pack: {needs: unit, steps: [{name: T, run: make pack}]}
  mend: {needs: unit, if: "!cancelled()", steps: [{run: make mend}]}
  ship: {needs: pack, if: github.ref != 'x', steps: [{run: make ship}]}
  gate: {needs: [mend], steps: [{run: ./gate}]}
"""


@pytest.mark.parametrize(
    ("required", "part", "expected"),
    [
        ("pack", FailedPart("1", "unit"), True),
        ("ship", FailedPart("1", "unit"), True),
        ("ship", FailedPart("1", "pack", step="T"), True),
        ("pack", FailedPart("1", "pack", step="T"), True),
        ("pack", FailedPart("1", "pack", test="t"), False),
        ("mend", FailedPart("1", "unit"), False),
        ("gate", FailedPart("1", "unit"), False),
        ("gate", FailedPart("1", "mend"), True),
    ],
)
def test_a_check_is_surely_doomed_where_no_condition_lets_its_job_run_anyway(
    required, part, expected
):
    found = plan_of(SURE).may_doom(FILE, required, part)
    assert found is not None
    assert found.is_certain is expected


MATRIX = """
jobs:
  test: {strategy: {matrix: {os: [a, b]}}, steps: [{name: T, run: make}]}
  named: {name: "On ${{ matrix.os }}!", strategy: {matrix: {os: [a]}}, steps: [{run: make}]}
  gate: {name: All green, needs: [test, named], if: always(), steps: [{run: ./gate}]}
"""


@pytest.mark.parametrize(
    ("required", "job", "step", "expected"),
    [
        ("All green", "test (a)", "", True),
        ("All green", "On a!", "", True),
        ("All green", "On a", "", False),
        ("gate", "test (a)", "", False),
        ("test (b)", "test (a)", "", False),
        ("test (b)", "test (a)", "T", False),
        ("test (a)", "test (a)", "T", True),
        ("All green", "test", "", False),
    ],
)
def test_each_job_of_a_matrix_dooms_what_needs_the_matrix_and_no_sibling(
    required, job, step, expected
):
    assert dooms(plan_of(MATRIX), required, job, step) is expected


def test_a_check_that_two_jobs_may_report_is_not_understood():
    text = MATRIX.replace("On ${{ matrix.os }}!", "${{ matrix.os }}")
    assert not dooms(plan_of(text), "All green", "test (a)")


CALLER = """
jobs:
  suite: {uses: ./.github/workflows/inner.yml}
  far: {uses: octo/other/.github/workflows/x.yml@v1}
  gate: {needs: [suite, far], if: always(), steps: [{run: ./gate}]}
"""
INNER = """
on: {workflow_call: {}}
jobs:
  fast: {steps: [{name: T, run: make}]}
  slow: {needs: fast, steps: [{run: make}]}
  odd: {continue-on-error: true, steps: [{run: make}]}
"""


@pytest.mark.parametrize(
    ("required", "job", "expected"),
    [
        ("gate", "suite / fast", True),
        ("gate", "suite / slow", True),
        ("suite / slow", "suite / fast", True),
        ("gate", "suite / odd", False),
        ("gate", "far / fast", False),
        ("gate", "fast", False),
    ],
)
def test_the_jobs_of_a_called_file_doom_what_needs_the_call(required, job, expected):
    assert dooms(plan_of(CALLER, inner=INNER), required, job) is expected


def test_a_call_of_a_file_that_calls_others_is_not_understood():
    inner = "jobs:\n  fast: {steps: [{run: make}]}\n  more: {uses: ./.github/workflows/x.yml}\n"
    assert not dooms(plan_of(CALLER, inner=inner), "gate", "suite / fast")


@pytest.mark.parametrize(
    "text",
    [
        "jobs: [a]",
        "a: [",
        "jobs: {gate: 1, unit: {}}",
        "jobs:\n  unit: {needs: gate}\n  gate: {needs: missing}",
    ],
)
def test_a_file_that_is_not_understood_says_nothing(text):
    assert not dooms(plan_of(text), "gate", "unit")


def test_jobs_in_a_circle_come_to_an_end():
    plan = plan_of("jobs:\n  unit: {needs: gate}\n  gate: {needs: unit}")
    assert dooms(plan, "gate", "unit")


def test_a_file_with_too_many_jobs_says_nothing():
    jobs = "".join(f"  j{number}: {{}}\n" for number in range(ci_plans.JOBS_MAX))
    assert not dooms(
        plan_of(f"jobs:\n  unit: {{}}\n  gate: {{needs: unit}}\n{jobs}"), "gate", "unit"
    )


def version(text: str, job: str, step: str = "") -> str:
    found = plan_of(text).may_doom(FILE, "gate", FailedPart("1", job, step))
    assert found is not None
    return found.version


def test_a_rule_is_another_one_when_the_job_of_the_required_check_changes():
    assert version(GATED, "unit") != version(GATED.replace("./gate", "./new-gate"), "unit")
    assert version(GATED, "unit") == version(GATED.replace("run: make}", "run: new}"), "unit")


def test_a_step_of_the_required_job_itself_keeps_its_rule():
    text = "jobs:\n  gate: {steps: [{name: T, run: make}]}\n"
    assert version(text, "gate", "T") == version(text.replace("make", "new"), "gate", "T") == ""


@pytest.mark.parametrize(
    ("parts", "name", "expected"),
    [
        (("a (", ")"), "a ()", True),
        (("a (", ")"), "a (", False),
        (("a", "b", "c"), "a-b-c", True),
        (("a", "b", "c"), "ac", False),
        (("a", "bb", "b"), "abb", False),
    ],
)
def test_names_match_their_literal_parts_in_order(parts, name, expected):
    assert PlannedJob(FILE, "a", parts).reports(name) is expected

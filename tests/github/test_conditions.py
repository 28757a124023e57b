"""Which jobs and steps of a workflow are left out on the queue's test branches."""

import pytest

from bot.github import conditions, workflow_files, workflows
from bot.github.workflow_files import Workflow, WorkflowJob
from service.provider.values import Vehicle
from service.vocabulary import ELSEWHERE

BRANCH = "headgate/merge/pr-1/0f"
DRAFT, PUSH = conditions.on_draft(BRANCH, "main"), conditions.on_push(BRANCH)
EVERYWHERE = frozenset({"push", "pull_request"})


@pytest.mark.parametrize(
    ("condition", "on_draft", "on_push"),
    [
        (None, True, True),
        (False, False, False),
        ("false", False, False),
        ("", True, True),
        ("github.event_name == 'merge_group'", False, False),
        ("${{ github.event_name == 'merge_group' }}", False, False),
        ("github.event_name != 'merge_group'", True, True),
        ("always() && github.event_name == 'MERGE_GROUP'", False, False),
        ("github.event.merge_group", False, False),
        ("github.event.merge_group.head_sha != ''", False, False),
        ("startsWith(github.ref, 'refs/heads/gh-readonly-queue/')", False, False),
        ("startsWith(github.head_ref, 'mergify/merge-queue/')", False, False),
        ("contains(github.ref, 'trunk-merge/')", False, False),
        ("github.ref == 'refs/heads/main'", False, False),
        ("github.ref_name == 'staging' || github.ref_name == 'trying'", False, False),
        ("github.event_name == 'push'", False, True),
        ("github.event_name == 'pull_request' && github.base_ref == 'main'", True, False),
        ("!startsWith(github.head_ref, 'headgate/')", False, True),
        ("!(github.event_name == 'pull_request')", False, True),
        ("endsWith(github.ref_name, '/0f') != true", True, False),
        # Unknown, or half of it is: it may run.
        ("github.event.pull_request.draft == false", True, True),
        ("needs.changes.outputs.e2e == 'true'", True, True),
        ("github.actor != 'bot' && github.event_name == 'merge_group'", False, False),
        ("github.actor == 'bot' || github.event_name == 'merge_group'", True, True),
        ("contains(fromJSON('[\"merge_group\"]'), github.event_name)", True, True),
        ("contains(github.event.pull_request.labels.*.name, 'x')", True, True),
        ("github['event_name'] == 'merge_group'", True, True),
        ("github.run_attempt > 1", True, True),
        ("failure()", True, True),
        ("success() == 1", True, True),
        # A text around an expression is never empty, so GitHub takes it for true.
        ("${{ github.event_name == 'merge_group' }} ", False, False),
        ("${{ github.event_name == 'merge_group' }} && true", True, True),
        ("((github.event_name", True, True),
        ("github.event_name ==", True, True),
        ("'it''s' == 'it''s' && github.event_name == 'merge_group'", False, False),
        ("(" * 60 + "false" + ")" * 60, True, True),
        ("false && " * 1000 + "false", True, True),
    ],
)
def test_a_condition_is_false_only_where_that_is_sure(
    condition: object, on_draft: bool, on_push: bool
) -> None:
    assert conditions.can_be_true(condition, DRAFT) is on_draft
    assert conditions.can_be_true(condition, PUSH) is on_push


def workflow(jobs: str, on: str = "[push, pull_request, merge_group]") -> Workflow:
    """One workflow file with these jobs."""
    text = f"on: {on}\njobs:\n{jobs}"
    (found,) = workflow_files.pieces({"ci.yml": text.encode()}, "main")
    assert isinstance(found, Workflow)
    return found


def jobs_of(text: str) -> dict[str, WorkflowJob]:
    """The jobs of a workflow by the names that they report."""
    return {job.name: job for job in workflow(text).each_job}


def test_a_job_that_needs_one_that_is_left_out_is_left_out_unless_it_always_runs() -> None:
    found = jobs_of(
        "  gate: {if: github.event_name == 'merge_group', steps: [{run: make}]}\n"
        "  e2e: {needs: gate, steps: [{run: make}]}\n"
        "  last: {needs: [build, e2e], steps: [{run: make}]}\n"
        "  all-green: {needs: [e2e], if: always(), steps: [{run: make}]}\n"
        "  build: {name: Build, steps: [{run: make}]}\n"
    )
    assert {name for name, job in found.items() if job.left_out} == {"gate", "e2e", "last"}
    assert {job.place for job in found.values() if job.left_out} == {"merge_group"}
    assert found["last"].left_out == EVERYWHERE


@pytest.mark.parametrize(
    ("steps", "is_empty", "is_dummy"),
    [
        ("[{run: make}]", False, False),
        ("[{run: echo ok}]", False, True),
        ("[{run: 'exit 0'}]", False, True),
        ("[{uses: actions/checkout@v4}, {run: 'true'}]", False, True),
        ("[{run: make, if: github.event_name == 'merge_group'}]", True, False),
        (
            "[{uses: actions/checkout@v4}, {run: make, if: github.event_name == 'merge_group'}, "
            "{run: echo done}]",
            True,
            False,
        ),
        ("[{run: lint}, {run: make, if: github.event_name == 'merge_group'}]", False, False),
        ("[{uses: ./e2e, if: github.event_name == 'merge_group'}]", True, False),
        ("[{run: 'echo ok; make'}]", False, False),
        ("[{run: echo ok && make}]", False, False),
        ("[]", False, False),
        ("nonsense", False, False),
    ],
)
def test_a_job_tests_nothing_if_all_of_its_steps_that_do_something_are_left_out(
    steps: str, is_empty: bool, is_dummy: bool
) -> None:
    job = jobs_of(f"  e2e:\n    steps: {steps}\n")["e2e"]
    assert (job.empty == EVERYWHERE, job.is_dummy) == (is_empty, is_dummy)
    assert not job.left_out


@pytest.mark.parametrize(
    ("on", "kind", "condition", "place"),
    [
        ("{pull_request: , merge_group: }", Vehicle.DRAFT_PR, "github.event_name == 'x'", True),
        ("{push: , pull_request: }", Vehicle.PUSH, "github.event_name == 'pull_request'", True),
        ("{push: , pull_request: }", Vehicle.DRAFT_PR, "github.event_name == 'push'", False),
        ("{merge_group: }", Vehicle.DRAFT_PR, "github.event_name == 'merge_group'", False),
    ],
)
def test_a_check_never_runs_if_its_jobs_are_left_out_on_each_event_that_starts_them(
    on: str, kind: Vehicle, condition: str, place: bool
) -> None:
    found = workflow(f"  e2e: {{if: {condition}}}\n", on)
    expected = {"e2e": ELSEWHERE} if place else {}
    assert workflows.never_on_test_branches([found], kind) == expected


def test_a_check_of_two_jobs_runs_if_one_of_them_does() -> None:
    never = workflow("  e2e: {if: false}\n")
    assert workflows.never_on_test_branches([never, workflow("  e2e: {}\n")], None) == {}
    assert workflows.never_on_test_branches([never, never], None) == {"e2e": ELSEWHERE}


def test_beside_a_file_that_cannot_be_read_no_check_is_said_to_run_nowhere() -> None:
    text = "on: pull_request\njobs: {e2e: {if: false}}\n"
    assert workflows.advise({"ci.yml": text}, "main").never == {"e2e": ELSEWHERE}
    assert workflows.advise({"ci.yml": text, "bad.yml": "a: [\n"}, "main").never == {}


@pytest.mark.parametrize(
    ("on", "place"),
    [
        ("merge_group", "merge_group"),
        ("{push: {branches: ['gh-readonly-queue/**']}}", "gh-readonly-queue/**"),
        ("{push: {branches: [trunk-merge/**]}}", "trunk-merge/**"),
        ("{push: {branches: [staging, trying]}}", "staging"),
        ("{push: {branches: ['gtmq_*']}}", "gtmq_**"),
        ("{push: {branches: [main]}}", ""),
        ("pull_request", ""),
    ],
)
def test_a_workflow_names_the_other_queue_that_starts_it(on: str, place: str) -> None:
    assert workflow("  e2e: {}\n", on).elsewhere == place


def test_a_long_chain_of_jobs_is_read_in_one_pass() -> None:
    chain = "".join(f"  j{n}: {{needs: j{n + 1}}}\n" for n in range(3000))
    found = workflow(chain + "  j3000: {if: false}\n")
    assert all(job.left_out == EVERYWHERE for job in found.each_job)
    assert len(workflows.never_on_test_branches([found], None)) == 3001

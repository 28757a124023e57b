"""Required checks that cannot run on a test branch: the doctor names each, and how to mend it."""

import pytest

from tests.harness import asking
from tests.harness.asking import Asker
from tests.harness.world import World, WorldOptions

FOLDER = ".github/workflows"
CI = """\
triggers: {push: ["headgate/merge/**"], pull_request: true}
checks:
  - {name: build, seconds: 0.1}
  - {name: e2e, seconds: 0.1, rules: [{conclusion: skipped}]}
"""
RUNS = CI.replace(", rules: [{conclusion: skipped}]", "")
ONLY = "github.event_name == 'merge_group'"
HEAD = "on: {pull_request: {branches: [main]}, merge_group: {}}\njobs:\n"
QUEUE = "on: merge_group\njobs:\n"
BUILD = "  build: {runs-on: x, steps: [{run: make}]}\n"


@pytest.fixture
def world_options() -> WorldOptions:
    return WorldOptions(required=("build", "e2e"), ci=CI)


async def push(world: World, files: dict[str, str | None]) -> None:
    """Commit to `main`, as an owner does."""
    await world.act("push", by="alice", branch="main", files=files, bypass=True)
    await world.settle()


async def write(world: World, job: str) -> None:
    """Let the target have a workflow with this job beside `build`."""
    await push(world, {f"{FOLDER}/ci.yml": HEAD + BUILD + job})


async def named(doctor: Asker, audit: str) -> tuple[str, str, str]:
    """Severity, words and mend of the worst finding of an audit."""
    found = (await doctor.done("runDoctor"))["findings"]
    worst = next(one for one in found if one["audit"] == audit)
    return worst["severity"], worst["found"], worst["mend"]


async def submitted(world: World) -> int:
    """A new pull request, submitted and at rest."""
    number = await world.open()
    await world.settle()
    await world.comment("/merge", on=number)
    await world.settle()
    return number


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        (ONLY, "its job in `ci.yml` runs only on `merge_group`"),
        ("contains(github.ref, 'trunk-merge/')", "its job in `ci.yml` runs only on `trunk-merge/"),
        ("github.ref == 'refs/heads/main'", "the condition of its job in `ci.yml` excludes test"),
    ],
)
async def test_a_job_that_is_skipped_on_every_test_branch(
    world: World, condition: str, why: str
) -> None:
    await write(world, f"  e2e: {{if: {condition!r}, runs-on: x, steps: [{{run: make e2e}}]}}\n")
    await world.make_queue()
    doctor = await asking.asker(world)
    severity, found, mend = await named(doctor, "workflow-conditions")
    assert (severity, why in found) == ("error", True), found
    assert "`e2e` is skipped on every test branch" in found
    assert "|| startsWith(github.head_ref, 'headgate/merge/')" in mend
    number = await submitted(world)
    severity, found, _ = await named(doctor, "checks-on-test-branches")
    assert severity == "error"
    assert "`e2e` was skipped on the last 1 test branches" in found
    assert await world.merged() == []
    command = mend[mend.index("`headgate queue") :]
    await doctor.paste(command)
    await world.settle()
    assert await world.merged() == [number]
    for audit in ("workflow-conditions", "checks-on-test-branches"):
        severity, found, mend = await named(doctor, audit)
        assert (severity, mend) == ("note", "")
        assert "`optionalStatuses` names it" in found


async def test_a_job_whose_steps_are_all_left_out(world: World) -> None:
    steps = f"[{{uses: actions/checkout@v4}}, {{if: {ONLY!r}, run: make e2e}}]"
    await push(world, {".sandbox/ci.yml": RUNS})
    await write(world, f"  e2e: {{runs-on: x, steps: {steps}}}\n")
    await world.make_queue()
    doctor = await asking.asker(world)
    await submitted(world)
    severity, found, mend = await named(doctor, "workflow-conditions")
    assert severity == "error"
    assert "`e2e` passes on test branches without testing anything" in found
    assert "run only on `merge_group`" in found
    assert "the `if:` of these steps" in mend
    await write(world, "  e2e: {runs-on: x, steps: [{run: make e2e}]}\n")
    assert (await named(doctor, "workflow-conditions"))[0] == "ok"


@pytest.mark.parametrize(("step", "expected"), [("echo ok", "error"), ("make quick", "warning")])
async def test_a_stand_in_that_reports_the_name_of_a_job_of_another_queue(
    world: World, step: str, expected: str
) -> None:
    await push(world, {".sandbox/ci.yml": RUNS})
    await write(world, f"  stand-in: {{name: e2e, runs-on: x, steps: [{{run: {step}}}]}}\n")
    job = "  e2e: {runs-on: x, steps: [{run: make e2e}]}\n"
    await push(world, {f"{FOLDER}/queue.yml": QUEUE + job})
    await world.make_queue()
    doctor = await asking.asker(world)
    severity, found, mend = await named(doctor, "workflow-conditions")
    assert severity == expected
    assert "`ci.yml` reports the required check `e2e`" in found
    assert "in `queue.yml` runs only on `merge_group`" in found
    assert "remove the stand-in" in mend


async def test_what_ran_on_a_test_branch_wins_over_what_files_tell(world: World) -> None:
    await push(world, {".sandbox/ci.yml": RUNS})
    await push(world, {f"{FOLDER}/ci.yml": QUEUE + BUILD})
    await push(world, {f"{FOLDER}/more.yml": f"{HEAD}  e2e: {{if: {ONLY!r}, runs-on: x}}\n"})
    await world.make_queue()
    doctor = await asking.asker(world)
    assert (await named(doctor, "workflow-conditions"))[0] == "error"
    await submitted(world)
    for audit in ("checks-on-test-branches", "workflow-triggers", "workflow-conditions"):
        assert (await named(doctor, audit))[0] == "ok"


async def test_a_workflow_that_only_another_queue_starts_names_its_trigger(world: World) -> None:
    await push(world, {f"{FOLDER}/ci.yml": QUEUE + "  e2e: {runs-on: x}\n"})
    await world.make_queue()
    severity, found, _ = await named(await asking.asker(world), "workflow-triggers")
    assert severity == "error"
    assert "It starts on `merge_group`, which is another queue's." in found

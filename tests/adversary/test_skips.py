"""Required checks that run nowhere here: the job waits for another queue, and nothing tests it."""

import pytest

from service.mergequeue.engine import checked
from service.mergequeue.engine.checked import Ended
from service.mergequeue.operations import queues
from service.mergequeue.operations.queues import QueueRequest
from service.mergequeue.store import runs
from service.vocabulary import SYSTEM
from tests.adversary.judge import files_on
from tests.harness.world import World, WorldOptions

TRIGGERS = 'triggers: {push: [main, "headgate/merge/**"], pull_request: true}\nchecks:\n'
BUILD = "  - {name: build, seconds: 2}\n"
SKIPPED = "  - {name: e2e, seconds: 1, rules: [{conclusion: skipped}]}\n"
BY_PATH = "  - {name: e2e, seconds: 1, rules: [{exists: [docs.txt], conclusion: skipped}]}\n"
WORKFLOW = ".github/workflows/ci.yml"
NEVER = WorldOptions(required=("build", "e2e"), ci=TRIGGERS + BUILD + SKIPPED)
FILTERED = WorldOptions(required=("build", "e2e"), ci=TRIGGERS + BUILD + BY_PATH)


@pytest.fixture
def world_options(request: pytest.FixtureRequest) -> WorldOptions:
    """The world that a test names, else one whose check `e2e` is always skipped."""
    found: WorldOptions = getattr(request, "param", NEVER)
    return found


filtered = pytest.mark.parametrize("world_options", [FILTERED], indirect=True)


def workflow(condition: str) -> str:
    """A workflow of two jobs, one of them with a condition."""
    return (
        "on: {pull_request: {}, merge_group: {}}\n"
        "jobs:\n"
        "  build: {runs-on: ubuntu-latest, steps: [{run: make}]}\n"
        "  e2e:\n"
        f"    if: {condition}\n"
        "    runs-on: ubuntu-latest\n"
        "    steps: [{run: make e2e}]\n"
    )


async def written(world: World, condition: str) -> None:
    """Let the target have that workflow."""
    files = {WORKFLOW: workflow(condition)}
    await world.act("push", by="alice", branch="main", files=files, bypass=True)
    await world.settle()


async def merge(world: World, *files: str) -> list[int]:
    """Submit a pull request for each file, one after the other; their numbers."""
    numbers = []
    for name in files:
        numbers.append(await world.open(files={name: "x\n"}))
        await world.settle()
        await world.comment("/merge", on=numbers[-1])
        await world.settle()
    return numbers


@pytest.mark.parametrize(
    ("condition", "place"),
    [
        ("github.event_name == 'merge_group'", "`merge_group`"),
        ("startsWith(github.ref, 'refs/heads/gh-readonly-queue/')", "`gh-readonly-queue/**`"),
        ("startsWith(github.head_ref, 'mergify/merge-queue/')", "`mergify/merge-queue/**`"),
        ("github.ref_name == 'staging' || github.ref_name == 'trying'", "`staging`"),
    ],
)
async def test_a_job_that_runs_only_in_another_queue_is_no_evidence(
    world: World, condition: str, place: str
) -> None:
    """Hurts a team that moves from another queue: its end-to-end tests run nowhere any more."""
    await written(world, condition)
    await world.make_queue()
    one, other = await merge(world, "a.txt", "b.txt")
    assert await world.merged() == []
    for number in (one, other):
        assert await world.state(number) == "NOT_READY"
        assert (await world.entry(number)).reason.value == "no_evidence"
        text = world.comment_on(number)
        assert "was skipped: its job runs only on " + place in text
        assert "optionalStatuses" in text
        assert "failed" not in text.lower()
    assert not (await world.value()).holds


async def test_without_workflow_files_the_reason_says_that_nothing_shows_that_the_check_can_run(
    world: World,
) -> None:
    """Hurts whoever uses another CI: a check that it never starts counts as passed."""
    (number,) = await merge(world, "a.txt")
    assert await world.merged() == []
    assert "no PR that landed in the last 90 days shows that it can run" in world.comment_on(number)


async def test_an_optional_check_may_be_skipped_everywhere_and_the_evidence_says_so(
    world: World,
) -> None:
    """Hurts auditors: a check that tested nothing is counted among those that passed."""
    await world.make_queue()
    (number,) = await merge(world, "a.txt")
    assert await world.merged() == []
    wish = QueueRequest({"optional_statuses": ("e2e",)})
    await queues.update(world.runtime, await world.queue(), wish, SYSTEM)
    await world.settle()
    assert await files_on(world) >= {"a.txt"}
    entry = await world.entry(number)
    run = await world.runtime.store.read(runs.run, (await world.queue()).id, str(entry.verified_by))
    assert run is not None
    found = {one.name: (one.ended, one.because) for one in checked.checked_of(run)}
    assert found["build"] == (Ended.PASSED, "")
    assert found["e2e"] == (Ended.OPTIONAL, "the setting optionalStatuses allows that")


@filtered
async def test_documentation_lands_once_the_check_that_it_skips_has_run_on_another(
    world: World,
) -> None:
    """Hurts authors of documentation: a check that never runs for them is waited for."""
    (docs,) = await merge(world, "docs.txt")
    assert await world.state(docs) == "NOT_READY"
    assert "as soon as a PR has landed on which the check ran" in world.comment_on(docs)
    await merge(world, "a.txt")
    assert await files_on(world) >= {"docs.txt", "a.txt"}


@filtered
async def test_a_check_that_ran_before_its_workflow_left_test_branches_is_no_evidence(
    world: World,
) -> None:
    """Hurts everybody who builds main: what ran once counts for ever."""
    await world.make_queue()
    await merge(world, "a.txt")
    await written(world, "github.event_name == 'merge_group'")
    (number,) = await merge(world, "docs.txt")
    assert "docs.txt" not in await files_on(world)
    assert "its job runs only on `merge_group`" in world.comment_on(number)
    await written(world, "${{ !cancelled() }}")
    await merge(world, "b.txt")
    assert await files_on(world) >= {"docs.txt", "b.txt"}

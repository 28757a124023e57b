"""A check that CI skipped because another job failed: the words name the job that failed."""

import pytest

from tests.harness.world import World, WorldOptions

CI = """\
triggers: {pull_request: true, push: ["headgate/**"]}
checks:
  - name: unit
    seconds: 1
    rules: [{branch: "headgate/**", exists: [bad.txt], conclusion: failure}]
  - name: all-green
    seconds: 3
    rules: [{branch: "headgate/**", exists: [bad.txt], conclusion: skipped}]
"""


@pytest.fixture
def world_options() -> WorldOptions:
    return WorldOptions(ci=CI, required=("all-green",))


async def test_the_comment_names_the_job_that_failed_and_links_to_it(world: World) -> None:
    await world.make_queue()
    number = await world.open(files={"bad.txt": "x"})
    await world.settle()
    await world.comment("/merge", on=number)
    await world.settle()
    assert (await world.entry(number)).state.value == "FAILED"
    text = world.comment_on(number)
    failed = next(
        run
        for sha in world.repository.suites
        for run in world.repository.check_runs(sha)
        if (run.name, run.conclusion) == ("unit", "failure")
    )
    assert "`all-green` was skipped because" in text
    assert "`all-green` failed" not in text
    assert "[`unit`](" in text
    assert f"/runs/{failed.id}" in text
    assert "was skipped because unit failed" in world.check_on(number)

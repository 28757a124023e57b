"""A required job that only collects the results of others: people read which of those failed."""

import re

import pytest

from tests.contract.instance import RECEIVERS
from tests.end_to_end.test_failed_tests_told import page_of
from tests.end_to_end.test_messages import heard
from tests.harness.asking import asker
from tests.harness.world import World, WorldOptions

PUBLIC = "http://127.0.0.1:8642"
CI = """\
triggers: {pull_request: true}
checks:
  - {name: lint, seconds: 1,
     rules: [{branch: "headgate/**", exists: [broken.txt], conclusion: failure}]}
  - {name: unit (1), seconds: 2,
     rules: [{branch: "headgate/**", exists: [broken.txt], conclusion: failure}]}
  - {name: unit (2), seconds: 1}
  - {name: slow, seconds: 5,
     rules: [{branch: "headgate/**", exists: [broken.txt], conclusion: failure}]}
  - {name: all-green, seconds: 1, needs: [lint, unit], if: always(),
     rules: [{needs_failed: true, conclusion: failure}]}
"""


@pytest.fixture
def world_options() -> WorldOptions:
    return WorldOptions(
        ci=CI, required=("all-green",), settings={**RECEIVERS, "public_url": PUBLIC}
    )


async def test_each_place_names_the_jobs_that_had_failed_before_the_required_one(
    world: World,
) -> None:
    ask = await asker(world)
    await world.make_queue(confirm_failures="OFF")
    async with heard(world, "pull_request.failed") as receiver:
        number = await world.open(files={"broken.txt": "1"})
        await world.settle()
        await world.comment("/merge", on=number)
        await world.settle()
    assert await world.state(number) == "FAILED"
    told = world.comment_on(number)
    pages = dict(re.findall(r"\[`([^`]+)`\]\((\S+?)\)", told))
    before = f"[`lint`]({pages['lint']}) and [`unit (1)`]({pages['unit (1)']})"
    assert re.search(r"- ❌ `all-green` failed \(\[log\]\(\S+\)\) after ", told) is not None
    assert f" after {before} had failed\n" in told
    assert pages["lint"] != pages["unit (1)"]

    answer = await ask.done("explainPullRequest", number)
    (failed,) = answer["failures"]["checks"]
    jobs = [{"name": name, "url": pages[name]} for name in ("lint", "unit (1)")]
    assert failed["failedBefore"] == answer["requiredChecks"][0]["failedBefore"] == jobs
    printed = await ask.headgate("explain", str(number))
    said = "✗ all-green failed: lint and unit (1) had failed before it began."
    assert said in printed
    assert f"    ✗ unit (1)\n      {pages['unit (1)']}\n" in printed
    (message,) = receiver.got
    assert message.json["failures"]["checks"][0]["failed_before"] == jobs

    summary = world.check_summary(number)
    assert f"✗ failed: {before} had failed before it began" in summary
    run = answer["requiredChecks"][0]["run"]
    for path in (f"/octo/widgets/main/pull/{number}", f"/octo/widgets/runs/{run}"):
        page = await page_of(world, path)
        assert all(f'href="{pages[name]}"' in page for name in ("lint", "unit (1)"))
        assert "had failed before it began" in page
    # What passed, and what failed beside it later, is not named.
    for text in (told, printed):
        assert "slow" not in text
        assert "unit (2)" not in text

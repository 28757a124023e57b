"""An agent that knows nothing but its next step gets its pull requests landed, or gives them up.

Its pull requests are opened from an older commit of `main`, so each is tested in the queue.
"""

import asyncio
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from bot.sandbox import artifacts, ci_file
from bot.sandbox.acts import seeds
from service.vocabulary import Role
from tests.harness import reporting_ci
from tests.harness.asking import Asker, asker
from tests.harness.scripted_agent import ScriptedAgent, Step
from tests.harness.world import World, WorldOptions

CI = """\
triggers: {push: ["headgate/merge/**"], pull_request: true}
checks:
  - name: unit
    seconds: 3
    sends: true
    rules:
      - {contains: {path: machines.txt, text: down}, branch: "headgate/merge/**",
         conclusion: cancelled}
    reports:
      tests:
        - name: test_total
          file: tests/test_cart.py
          rules: [{contains: {path: cart.py, text: wrong}, branch: "headgate/merge/**",
                   conclusion: failure}]
        - name: test_both
          file: tests/test_both.py
          rules: [{exists: [a.txt, b.txt], conclusion: failure}]
        - name: test_weather
          file: tests/test_weather.py
          rules: [{contains: {path: weather.txt, text: rain}, branch: "headgate/merge/**",
                   conclusion: failure}]
"""
REAL_CI = f"""\
triggers: {{push: ["headgate/merge/**"], pull_request: true}}
checks:
  - name: unit
    run: {shlex.quote(sys.executable)} -m pytest -q -o junit_family=xunit1 --junitxml junit.xml
    junit: junit.xml
    sends: true
"""
CART = "from rates import RATE\n\n\ndef total(prices):\n    return sum(prices) * RATE\n"
TESTS = "from cart import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"


@pytest.fixture
def world_options() -> WorldOptions:
    """CI that sends its results."""
    return WorldOptions(ci=CI, permissions={"actions": "write"})


@pytest.fixture
async def ask(world: World) -> Asker:
    """The token that agents have, and a queue."""
    asking = await asker(world, Role.QUEUE)
    await world.make_queue()
    return asking


@pytest.fixture
def agent(ask: Asker, tmp_path: Path) -> ScriptedAgent:
    """An agent with a clone of its own."""
    return ScriptedAgent(ask, tmp_path / "clone")


async def push_to_main(world: World, path: str, content: str) -> None:
    """Somebody pushes to `main` beside the queue."""
    await world.act("push", by="alice", branch="main", files={path: content}, bypass=True)


async def test_what_is_clean_lands(world: World, agent: ScriptedAgent) -> None:
    number = await world.open()
    end = await agent.work_on(number)
    assert agent.kinds == ["SUBMIT", "WAIT", "DONE"]
    assert end["commit"] == world.repository.git.branch("main")
    assert end["call"] is None


@pytest.mark.parametrize("world_options", [WorldOptions(ci=REAL_CI)])
async def test_a_broken_test_is_fixed_by_its_assertion_and_lands(
    world: World, agent: ScriptedAgent
) -> None:
    world.sandbox.world.allow_commands = True
    await push_to_main(world, "rates.py", "RATE = 1\n")
    before = world.repository.git.branch("main")
    start: dict[str, Any] = {"from": before}
    number = await world.open(files={"cart.py": CART, "test_cart.py": TESTS}, **start)
    await push_to_main(world, "rates.py", "RATE = 2\n")
    agent.repairs = {"cart.py": CART.replace("* RATE", "")}
    await agent.work_on(number)
    assert agent.kinds == ["SUBMIT", "WAIT", "FIX", "WAIT", "DONE"]
    fix = next(step for step in agent.steps if step["kind"] == "FIX")
    (test,) = fix["failures"]["tests"]
    assert (fix["code"], test["file"], test["line"]) == ("check_failing", "test_cart.py", 3)
    assert "assert 6 == 3" in test["message"]
    assert any("total([1, 2])" in line for line in test["trace"])
    assert (fix["whoMustAct"], fix["since"] is not None) == ("author", True)


async def test_a_head_that_failed_before_is_fixed_by_what_its_refusal_shows(
    world: World, agent: ScriptedAgent
) -> None:
    first = await world.open(head="cart", files={"cart.py": "wrong\n"})
    await world.settle()
    await agent.ask.done("submitPullRequest", first)
    await world.settle()
    assert await world.state(first) == "FAILED"
    await world.act("force_push", branch="copy", to=(await world.entry(first)).head)
    again = (await world.act("open", head="copy", base="main", title="The same again"))["number"]
    agent.repairs = {"cart.py": "right\n"}
    await agent.work_on(again)
    fix = next(step for step in agent.steps if step["kind"] == "FIX")
    assert fix["code"] == "failed_before"
    assert [test["name"] for test in fix["failures"]["tests"]] == ["tests/test_cart.py::test_total"]
    assert agent.kinds == ["SUBMIT", "FIX", "WAIT", "DONE"]


async def test_a_conflict_with_another_is_rebased_and_lands(
    world: World, agent: ScriptedAgent
) -> None:
    first = await world.open(by="alice", files={"shared.txt": "alice\n"})
    second = await world.open(files={"shared.txt": "bob\n"})
    other = ScriptedAgent(agent.ask, agent.folder.with_name("other"))
    agent.repairs = other.repairs = {"shared.txt": "alice\nbob\n"}
    await asyncio.gather(other.work_on(first), agent.work_on(second))
    # Either may be first: both submit at once.
    late, early = (agent, other) if "REBASE" in agent.kinds else (other, agent)
    assert "REBASE" in late.kinds
    assert "REBASE" not in early.kinds
    assert late.kinds[-1] == early.kinds[-1] == "DONE"
    rebase = next(step for step in late.steps if step["kind"] == "REBASE")
    assert rebase["commit"] == early.steps[-1]["commit"]
    assert rebase["paths"] in ([], ["shared.txt"])
    assert sorted(await world.merged()) == [first, second]


async def test_while_machines_are_broken_the_agent_waits(
    world: World, agent: ScriptedAgent
) -> None:
    await push_to_main(world, "machines.txt", "down\n")
    number = await world.open()

    async def repair() -> None:
        await world.rest(20 * 60)
        await push_to_main(world, "machines.txt", "up\n")

    await asyncio.gather(repair(), agent.work_on(number))
    assert agent.kinds == ["SUBMIT", "WAIT", "DONE"]
    assert any("CI" in step["text"] for step in agent.steps)


async def test_what_somebody_merges_meanwhile_is_done(world: World, agent: ScriptedAgent) -> None:
    number = await world.open(fresh=True)
    await world.settle()
    await world.act("merge", by="alice", number=number)
    end = await agent.work_on(number)
    assert (agent.kinds, end["code"]) == (["SUBMIT", "DONE"], "pull_request_merged")


async def test_what_people_close_is_dropped(world: World, agent: ScriptedAgent) -> None:
    number = await world.open()
    await world.settle()
    await world.act("close", by="alice", number=number)
    end = await agent.work_on(number)
    assert (agent.kinds, end["code"]) == (["SUBMIT", "DROP"], "pull_request_closed")
    assert "Reopen it" in end["text"]


async def test_a_missing_approval_is_asked_for_and_lands(
    world: World, agent: ScriptedAgent
) -> None:
    seeds.set_rules(
        world.repository, {"protection": {"main": {"checks": ["unit"], "approvals": 1}}}
    )
    number = await world.open()

    async def approve(step: Step) -> None:
        assert (step["code"], step["whoMustAct"]) == ("review_required", "maintainer")
        assert "approve" in step["text"]
        await world.act("approve", by="alice", number=step["prNumber"])

    agent.asks = approve
    await agent.work_on(number)
    assert [kind for kind in agent.kinds if kind != "WAIT"] == ["SUBMIT", "ASK", "DONE"]


async def test_where_only_a_flaky_test_failed_the_agent_submits_again(
    world: World, agent: ScriptedAgent
) -> None:
    admin, plan = await asker(world), ci_file.parse(CI.encode()).checks[0]
    assert plan.reports is not None
    tests = plan.reports.tests
    for run_id, failing in (("1", tests[-1:]), ("2", ())):
        await reporting_ci.on_main(admin, artifacts.made_up("unit", tests, failing), run_id)
    await push_to_main(world, "weather.txt", "rain\n")
    number = await world.open()

    async def is_given_up() -> bool:
        return "RESUBMIT" in agent.kinds

    async def clear_up() -> None:
        await world.until(is_given_up, within_s=4 * 3600)
        await push_to_main(world, "weather.txt", "sun\n")

    await asyncio.gather(clear_up(), agent.work_on(number))
    assert agent.kinds[-1] == "DONE"
    again = next(step for step in agent.steps if step["kind"] == "RESUBMIT")
    assert (again["code"], again["at"]) == ("flaky_retries_spent", None)


async def test_suspects_of_a_batch_are_named_while_the_cause_is_searched(
    world: World, agent: ScriptedAgent
) -> None:
    queue: dict[str, Any] = {"batch": True, "batchingMinSize": 3, "batchingMaxWaitTimeMinutes": 5}
    admin = await asker(world)
    await admin.done("updateQueue", **queue)
    good = [await world.open() for _ in range(2)]
    broken = await world.open(files={"cart.py": "wrong\n"})
    agent.repairs = {"cart.py": "right\n"}
    others = [ScriptedAgent(agent.ask, agent.folder.with_name(f"other-{n}")) for n in good]
    jobs = [other.work_on(n) for other, n in zip(others, good, strict=True)]
    await asyncio.gather(*jobs, agent.work_on(broken))
    named = [step["suspects"] for step in agent.steps if step["suspects"]]
    assert named
    assert all(set(each) <= {*good, broken} for each in named)
    fix = next(step for step in agent.steps if step["kind"] == "FIX")
    assert fix["failures"]["tests"][0]["file"] == "tests/test_cart.py"
    assert "bisection found this PR" in fix["failures"]["text"]
    assert agent.kinds[-1] == "DONE"
    assert all("FIX" not in other.kinds for other in others)

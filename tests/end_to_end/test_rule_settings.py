"""Rules of entry as a setting: the file, its check run, and the command line."""

from pathlib import Path

from tests.end_to_end.test_repository_file import FILE, config_checks, push
from tests.harness.asking import asker
from tests.harness.world import World

FREEZE = """\
version: 1
queues:
  main:
    rules:
      - {name: docs, when: 'only("*.md")', priority: high}
      - name: weekend
        when: '!("hotfix" in labels || "urgent" in labels)'
        during: {start: 2026-11-27T18:00, zone: Europe/Berlin, minutes: 3720}
        waitFor: the end of the weekend
"""


async def test_a_pull_request_that_changes_rules_shows_each_that_differs(world: World):
    await world.make_queue()
    await push(world, {FILE: FREEZE})
    text = FREEZE.replace("docs", "pages").replace("|| ", "&& ")
    number = await world.open(files={FILE: text})
    await world.settle()
    ((conclusion, title, summary),) = config_checks(world, number)
    assert (conclusion, title) == ("success", "1 setting changes in the queue for main")
    rows = [line for line in summary.splitlines() if line.startswith("| `")]
    assert [row.split(" | ")[0] for row in rows] == [
        "| `rules: docs`",
        "| `rules: weekend`",
        "| `rules: pages`",
    ]
    assert rows[0].endswith("| `no such rule` |")
    assert '"priority":10' in rows[2]
    assert rows[1].count(" | ") == 2, "the operator of an expression ends no cell"


async def test_another_order_of_rules_is_shown(world: World):
    await world.make_queue()
    text = "version: 1\nqueues: {main: {rules: [%s, %s]}}\n"
    rules = "{name: a, enter: true}", "{name: b, priority: 1}"
    await push(world, {FILE: text % rules})
    number = await world.open(files={FILE: text % rules[::-1]})
    await world.settle()
    ((_, _, summary),) = config_checks(world, number)
    assert '| `order of rules` | `["a","b"]` | `["b","a"]` |' in summary


async def test_a_fault_of_a_rule_is_shown_with_its_line(world: World):
    await world.make_queue()
    number = await world.open(files={FILE: FREEZE.replace('"hotfix"', "hotfix is")})
    await world.settle()
    ((conclusion, title, summary),) = config_checks(world, number)
    assert (conclusion, title) == ("failure", "1 fault in .github/headgate.yml")
    assert "- Line 7: `queues.main.rules[1].when has a mistake at line 1, character" in summary


async def test_the_command_line_applies_rules_and_shows_them(world: World, tmp_path: Path):
    admin = await asker(world)
    await world.make_queue()
    path = tmp_path / "headgate.yml"
    path.write_text(FREEZE)
    await admin.headgate("queue", "apply", str(path), "--branch", "main")
    same = "The queue for main has the settings of the file\n"
    assert await admin.headgate("config", "diff", str(path), "--branch", "main") == same
    rules = (await admin.done("getQueue"))["rules"]
    assert [(each["name"], each["priority"]) for each in rules] == [("docs", 10), ("weekend", None)]
    shown = await admin.headgate("queue", "show", "--branch", "main")
    assert '"name":"docs"' in shown
    assert "exceptOn" not in shown
    one = '[{"name": "mine", "when": "author == \\"ada\\"", "enter": true}]'
    await admin.headgate("queue", "update", "--branch", "main", "--set", f"rules={one}")
    assert [each["name"] for each in (await admin.done("getQueue"))["rules"]] == ["mine"]


async def test_a_replay_takes_rules_into_account_as_far_as_the_past_says(world: World):
    await world.make_queue()
    landed = [await world.open() for _ in range(3)]
    await world.act("label", number=landed[2], label="hotfix")
    for number in landed:
        await world.comment("/merge", on=number)
    await world.settle()
    assert sorted(await world.merged()) == landed
    rules = """\
version: 1
queues:
  main:
    rules:
      - {name: docs, when: 'only("*.md")', priority: high}
      - {name: freeze, when: '!("hotfix" in labels)', waitFor: a label}
"""
    number = await world.open(files={FILE: rules})
    await world.settle()
    ((_, _, summary),) = config_checks(world, number)
    assert "| Merged | 3 | 1 |" in summary
    assert "`The rule docs is not replayed for 3 of them: what it reads is not known.`" in summary

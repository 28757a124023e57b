"""The guide to rules: its tables have everything, and each of its blocks does what it says."""

import re
import shlex
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import yaml
from pydantic.alias_generators import to_camel

from bot.cli import replays
from service.mergequeue.engine.config import QueueConfig, changed
from service.mergequeue.engine.rules import EntryRule, Period, Ruled, Seen
from service.mergequeue.entry_rules import checking, expressions, judging, periods
from service.mergequeue.operations import descriptions, repository_file

PAGE = (Path(__file__).parents[2] / "docs/how-to/rules.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^##+ (.+)\n((?:(?!^##).*\n)*)", PAGE, re.MULTILINE))
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
FILES = [text for kind, text in BLOCKS if kind == "yaml"]
LINES = [text for kind, text in BLOCKS if kind == "text"]

SATURDAY = datetime(2026, 11, 28, 12, tzinfo=UTC)
TUESDAY = datetime(2026, 12, 1, 12, tzinfo=UTC)
SEEN = Seen(7, "Fix", "ada", "fix", "main", (), (), draft=False, fork=False, auto_merge=False)


def rules_of(text: str) -> tuple[EntryRule, ...]:
    checked = repository_file.check(text.encode())
    assert checked.faults == ()
    (settings,) = checked.sections.values()
    rules = settings["rules"]
    assert isinstance(rules, tuple)
    return rules  # type: ignore[return-value]


def came_to(recipe: int, now=TUESDAY, paths=("src/a.py",), **seen) -> Ruled:
    (section,) = (text for name, text in SECTIONS.items() if name.startswith(f"{recipe}. "))
    (block,) = re.findall(r"```yaml\n(.*?)```", section, re.DOTALL)
    return judging.judged(rules_of(block), replace(SEEN, **seen), paths, now)


def cells(section: str) -> list[str]:
    rows = re.findall(r"^\| (`.*?`) \|", SECTIONS[section], re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`(\w+)", row)]


def test_the_tables_have_every_key_variable_and_function():
    keys = [to_camel(each.name) for kind in (EntryRule, Period) for each in fields(kind)]
    assert cells("What a rule says") == keys
    known = [*expressions.VARIABLES, *expressions.FUNCTIONS]
    assert cells("What `when` knows")[: len(known)] == known
    assert set(cells("What `when` knows")[len(known) :]) == set(expressions.MACROS)


def test_the_bounds_of_the_page_are_those_of_the_code():
    for number in (expressions.CHARS_MAX, checking.NAME_CHARS_MAX, checking.WAIT_CHARS_MAX):
        assert f"up to {number} characters" in SECTIONS["What a rule says"]
    assert f"at most {checking.RULES_MAX} rules" in SECTIONS["What a rule says"]
    assert f"up to {periods.MINUTES_MAX // 1440} days" in SECTIONS["What a rule says"]


def test_each_block_is_a_file_a_description_or_commands():
    kinds = [kind for kind, _ in BLOCKS]
    assert (kinds.count("yaml"), kinds.count("text"), kinds.count("sh")) == (9, 2, 1)
    assert len(BLOCKS) == 12
    assert all(rules_of(text) for text in FILES)


@pytest.mark.parametrize("example", re.findall(r"`([a-z]+\.\w+\([^`]*\))`", PAGE))
def test_an_expression_in_a_table_has_no_fault(example):
    expression = example.replace("\\|", "|")
    compared = f"{expression} > 0" if expression.endswith("size()") else expression
    assert expressions.fault(compared) is None


def test_the_first_example_lets_hotfixes_through_the_freeze():
    (text, *_) = FILES
    rules = rules_of(text)
    hotfix = replace(SEEN, labels=("hotfix",), approvals=("bob",))
    assert judging.judged(rules, hotfix, None, SATURDAY) == Ruled(0, "hotfix", "hotfix")
    (wait,) = judging.judged(rules, SEEN, None, SATURDAY).waits
    assert (wait.rule, wait.holds(SATURDAY), wait.holds(TUESDAY)) == ("weekend freeze", True, False)


def test_recipes_of_entering_and_order():
    assert came_to(1).enter_rule == ""
    assert came_to(1, auto_merge=True, approvals=("bob",)).enter_rule == "auto-merge"
    assert came_to(2, labels=("ship it",)).enter_rule == "ship it"
    assert came_to(3, author="dependabot[bot]").priority == 200
    assert came_to(3).priority is None
    assert came_to(4, paths=("docs/a.png", "README.md")).priority == 10
    assert came_to(4, paths=("docs/a.png", "a.py")).priority is None


def test_recipes_of_waiting():
    (weekend,) = came_to(5).waits
    assert weekend.holds(datetime(2026, 12, 5, 12, tzinfo=UTC))
    assert not weekend.holds(TUESDAY)
    assert not weekend.holds(datetime(2026, 12, 19, 12, tzinfo=UTC)), "the exception"
    assert came_to(5, labels=("hotfix",)).waits == ()
    (holidays,) = came_to(6).waits
    assert holidays.spans is not None
    ends = holidays.spans[0].until.astimezone(ZoneInfo("America/New_York"))
    assert f"{ends:%A %H:%M}" == "Monday 08:00"
    assert came_to(7, approvals=("bob",)).waits[0].text == "two approvals"
    assert came_to(7, approvals=("bob", "eve")).waits == ()
    assert came_to(8, paths=("migrations/1.sql",)).waits[0].rule == "database"
    assert came_to(8, paths=("migrations/1.sql",), approvals=("bob",)).waits == ()


def test_the_lines_of_descriptions_are_read():
    depends, times = LINES
    assert descriptions.lines_of(depends).depends_on == (12, 13)
    for line in times.splitlines():
        read = descriptions.lines_of(line)
        assert (read.not_before, read.faults) == (datetime(2026, 12, 1, 8, tzinfo=UTC), ())


def test_the_commands_take_the_rules():
    (commands,) = (text for kind, text in BLOCKS if kind == "sh")
    words = shlex.split(commands.splitlines()[2])
    changes = replays.parse_changes([words[-1]])
    assert changed(QueueConfig(), changes).rules[0].priority == 10


def test_what_the_page_says_is_refused_is_refused():
    for word in expressions.MACROS:
        assert f"`{word}`" in SECTIONS["What is refused"]
    one = "labels.exists(each, each == 'a')"
    assert expressions.fault(f"{one} && {one}") is None
    assert expressions.fault(f"{one} && {one} && {one}") is not None
    text = FILES[0].replace("FREQ=WEEKLY", "FREQ=WEEKLY;COUNT=2")
    assert yaml.safe_load(text)
    (fault,) = repository_file.check(text.encode()).faults
    assert fault.message.startswith("`queues.main.rules[1].during.repeat` cannot have `COUNT`")

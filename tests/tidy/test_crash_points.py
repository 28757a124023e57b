"""The names of crash points are those that the product passes."""

import ast

from service import crash_points
from service.database import database
from tests.tidy import rules, tree


def test_every_crash_point_is_passed_and_every_passed_one_is_named():
    assert sorted(crash_points.NAMES) == sorted({*passed(), *around_transactions()})


def test_no_crash_point_is_named_twice():
    assert len(set(crash_points.NAMES)) == len(crash_points.NAMES)


def test_a_pass_is_seen_whatever_leads_to_it():
    source = tree.Source("service/x.py", 'self._runtime.crash_points.reach("planted.one")')
    assert list(passed_in(source)) == ["planted.one"]


def passed() -> list[str]:
    """The names in the product's calls of `reach`."""
    return [name for source in tree.sources(*tree.PRODUCT) for name in passed_in(source)]


def passed_in(source: tree.Source) -> list[str]:
    """The names in a file's calls of `reach`; the store passes names from a table of its own."""
    calls = [call for call in rules.nodes(source, ast.Call) if is_pass(call)]
    texts = [call.args[0].value for call in calls if isinstance(call.args[0], ast.Constant)]
    return [text for text in texts if isinstance(text, str)]


def is_pass(call: ast.Call) -> bool:
    """Whether it is `….crash_points.reach(…)`."""
    return rules.dotted(call.func).endswith("crash_points.reach")


def around_transactions() -> list[str]:
    """The names that the store passes around each kind of transaction."""
    return [name for pair in database.AROUND_COMMIT.values() for name in pair]

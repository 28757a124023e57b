"""The tool makes the mutants that it promises, and knows a test that cannot fail."""

import ast
import os
import sys
from functools import wraps
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile

import pytest

from tests.mutants import running
from tests.mutants.equivalent import EQUIVALENT
from tests.mutants.lines import Watch
from tests.mutants.operators import mutants_of
from tests.mutants.running import ROOT, Ending
from tests.mutants.targets import HELD, TARGETS


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("x = a < b", {"a <= b"}),
        ("x = a == b", {"a != b"}),
        ("x = a in b", {"a not in b"}),
        ("x = a is b", {"a is not b"}),
        ("x = a in (b, c)", {"a not in (b, c)", "a in (c,)", "a in (b,)"}),
        ("x = a and b", {"a", "b"}),
        ("x = a or b or c", {"b or c", "a or c", "a or b"}),
        ("x = not a", {"a"}),
        ("x = ~a", {"a"}),
        ("x = a() & b", {"a()", "b"}),
        ("x = isinstance(a, b | c | d)", set()),
        ("x = select(a).where(b, c)", {"select(a).where(c)", "select(a).where(b)"}),
        ("x = True", {"False"}),
        ("x = {1, 2}", {"{2}", "{1}"}),
        ("if a: pass", {"not a"}),
        ("if a < b: pass", {"a <= b", "not a < b"}),
        ("if a == b: pass", {"a != b"}),
        ("if not a: pass", {"a"}),
        ("x = b if a else c", {"not a"}),
        ("while a: pass", {"not a"}),
        ("x = [a for a in b if a]", {"not a"}),
        ("x = f'{a == b}'", set()),
        ("@made(frozen=True)\nclass A: pass", set()),
        ("class A:\n    cache_ok = True\n    inherit_cache = True", set()),
    ],
)
def test_each_condition_has_its_mutants(code, expected):
    assert {mutant.after for mutant in mutants_of(code)} == expected


def test_a_mutant_changes_one_place_and_names_its_function():
    source = 'def f(ä):\n    """ß."""\n    return ä == 1 and not ä\n'
    first = mutants_of(source)[0]
    assert first.function == "f"
    assert all(mutant.source.count("\n") == 3 for mutant in mutants_of(source))
    assert all(ast.parse(mutant.source) for mutant in mutants_of(source))
    assert [mutant.line for mutant in mutants_of(source)] == [3] * 4


@pytest.mark.parametrize("module", TARGETS)
def test_the_nearest_tests_of_a_module_exist(module):
    assert all((ROOT / path).exists() for path in (module, *TARGETS[module]))
    assert mutants_of((ROOT / module).read_text("utf-8"))


@pytest.mark.parametrize("module", EQUIVALENT)
def test_an_equivalent_mutant_can_still_be_made(module):
    made = {mutant.name for mutant in mutants_of((ROOT / module).read_text("utf-8"))}
    assert set(EQUIVALENT[module]) <= made
    assert all(reason.endswith(".") for reason in EQUIVALENT[module].values())


@pytest.fixture
def rule(tmp_path, monkeypatch):
    """A module of one rule, its path, and its text."""
    path = tmp_path / "planted_rule.py"
    path.write_text("def old(days):\n    return days >= 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield import_module("planted_rule"), path.read_text()
    del sys.modules["planted_rule"]


def test_a_mutant_is_caught_by_the_test_that_holds_its_condition(rule, tmp_path):
    module, source = rule
    strict, _ = mutants_of(f"{source}\nIS_OLD = True\n")
    holds, looser = (a_test(tmp_path, name, days) for name, days in (("holds", 3), ("looser", 4)))
    assert running.ending_of(module, source, [holds]) is Ending.SURVIVED
    assert running.ending_of(module, strict.source, [holds]) is Ending.CAUGHT
    assert running.ending_of(module, strict.source, [looser]) is Ending.SURVIVED
    assert running.ending_of(module, running.raising(source), [looser]) is Ending.CAUGHT
    assert module.old(3)


def test_a_mutant_runs_against_the_tests_that_execute_its_lines(rule, tmp_path):
    module, source = rule
    holds = a_test(tmp_path, "both", 3)
    Path(holds).write_text(
        f"{Path(holds).read_text()}\n\ndef test_other():\n    sum(range(10**6))\n"
    )
    with TemporaryFile() as notes:
        watch = Watch(str(module.__file__), notes)
        assert running.ending_of(module, source, [holds], watch=watch) is Ending.SURVIVED
    assert [each.rpartition("::")[2] for each in watch.touching(2, 2)] == ["test_it"]
    assert watch.touching(3, 9) == []
    assert watch.seconds_of(watch.touching(2, 2)) < watch.seconds_of(())


def test_a_mutant_that_works_for_ever_runs_out_of_time(rule, tmp_path):
    module, source = rule
    endless = source.replace("return days >= 3", "while True: pass")
    tests = [a_test(tmp_path, "endless", 3)]
    assert running.ending_of(module, endless, tests, limit_s=1) is Ending.TIMED_OUT


def test_a_module_takes_the_statements_of_a_text(tmp_path, monkeypatch):
    text = "from sqlalchemy import column, select\n\nASKED = select(1).where(column('a') == 1)\n"
    (tmp_path / "planted_statement.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    module = import_module("planted_statement")
    assert "WHERE" in str(module.ASKED)
    (weaker,) = [each for each in mutants_of(text) if "where()" in each.after]
    assert weaker.function == "ASKED"
    running.take(module, weaker.source)
    assert "WHERE" not in str(module.ASKED)
    del sys.modules["planted_statement"]


def a_test(folder, name, days):
    """The path of a test that so many days are old."""
    path = folder / f"test_{name}.py"
    body = f"def test_it():\n    assert old({days})\n"
    path.write_text(f"from planted_rule import old\n\n\n{body}")
    return str(path)


def test_a_module_takes_the_code_of_a_text_and_stays_what_it_is(rule):
    module, source = rule
    before, module.known = module.old, {"a": 1}
    text = f"LIMIT = 5\nknown = {{}}\n\n\n{source.replace('3', 'LIMIT')}"
    running.take(module, text)
    assert module.old is before
    assert (before(5), before(4), module.LIMIT) == (True, False, 5)
    assert module.known == {"a": 1}


def test_a_module_that_takes_a_text_registers_nothing_again(tmp_path, monkeypatch):
    (tmp_path / "planted_kinds.py").write_text("KINDS = []\n")
    text = "from planted_kinds import KINDS\n\nLIMIT = 3\nKINDS.append(LIMIT)\n"
    (tmp_path / "planted_kind.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    module = import_module("planted_kind")
    running.take(module, text.replace("3", "5"))
    assert (module.LIMIT, module.KINDS) == (5, [3])
    for name in ("planted_kind", "planted_kinds"):
        del sys.modules[name]


def test_a_function_that_the_tests_wrap_takes_its_code(rule):
    module, source = rule
    looser = f"LIMIT = 2\n\n\n{source.replace('3', 'LIMIT')}"
    asked = []

    @wraps(module.old)
    def noted(days, old=module.old):
        asked.append(days)
        return old(days)

    module.old = noted
    running.take(module, looser)
    assert module.old(2)
    assert asked == [2]


@pytest.mark.skipif("HEADGATE_MUTANTS" not in os.environ, reason="`make soak ROWS=mutants`")
@pytest.mark.parametrize("module", HELD)
def test_no_mutant_survives(module):
    assert running.tally_of(module).survivors == []

"""A missed gate fails `make bench`, after all is printed; a missed goal does not."""

import pytest

from tests.bench import __main__ as bench

GATE = {"scenario": "A", "figure": "precision", "value": "0.9", "gate": "≥ 0.95"}


def measured(monkeypatch, row):
    monkeypatch.setattr(bench, "SUBJECTS", {"flaky": lambda _: [row]})
    monkeypatch.setenv("ONLY", "flaky")
    bench.main()


def test_a_missed_gate_fails_after_it_was_printed(monkeypatch, capsys):
    with pytest.raises(SystemExit, match="1 of 1 gates are missed"):
        measured(monkeypatch, {**GATE, "met": "NO"})
    assert "| NO | A | precision | 0.9 | ≥ 0.95 |" in capsys.readouterr().out


@pytest.mark.parametrize("row", [{**GATE, "met": "yes"}, {"ratio": 3.0, "ratio_goal": 2.0}])
def test_a_met_gate_and_a_missed_goal_do_not_fail(monkeypatch, row):
    measured(monkeypatch, row)

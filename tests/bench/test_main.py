"""A missed gate fails `make bench`, after all is printed; a missed goal does not."""

import json

import pytest

from tests.bench import __main__ as bench

GATE = {"scenario": "A", "figure": "precision", "value": "0.9", "gate": "≥ 0.95"}


@pytest.fixture(autouse=True)
def reference(monkeypatch, tmp_path):
    """Figures of tests are not written into the documentation."""
    monkeypatch.setattr(bench, "REFERENCE", tmp_path)
    return tmp_path


def measured(monkeypatch, row):
    monkeypatch.setattr(bench, "SUBJECTS", {"flaky": lambda _: [row], "store": lambda _: []})
    monkeypatch.setattr("sys.argv", ["tests.bench"])
    monkeypatch.setenv("ONLY", "flaky")
    bench.main()


def test_a_missed_gate_fails_after_it_was_printed(monkeypatch, capsys):
    with pytest.raises(SystemExit, match="1 of 1 gates are missed"):
        measured(monkeypatch, {**GATE, "met": "NO"})
    assert "| NO | A | precision | 0.9 | ≥ 0.95 |" in capsys.readouterr().out


@pytest.mark.parametrize("row", [{**GATE, "met": "yes"}, {"ratio": 3.0, "ratio_goal": 2.0}])
def test_a_met_gate_and_a_missed_goal_do_not_fail(monkeypatch, row):
    measured(monkeypatch, row)


def test_a_subject_alone_keeps_the_figures_of_the_others(monkeypatch, reference):
    other = {"about": {"date": "2026-01-01"}, "took_s": 7, "figures": [{"subject": "a write"}]}
    (reference / "benchmarks.json").write_text(json.dumps({"store": other}))
    measured(monkeypatch, {"ratio": 1.0, "ratio_goal": 2.0})
    kept = json.loads((reference / "benchmarks.json").read_text())
    assert list(kept) == ["flaky", "store"]
    assert kept["store"] == other
    page = (reference / "benchmarks.md").read_text()
    assert "## store (7 s, 2026-01-01)" in page
    assert "| a write |" in page

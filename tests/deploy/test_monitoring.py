"""The board and the alerts know every metric as the code has it, and every alert has its remedy."""

import json
import re
import shutil
import subprocess
from itertools import combinations

import yaml

from tests.deploy import board
from tests.tidy.tree import ROOT

BOARD = ROOT / "deploy/monitoring/grafana.json"
ALERTS = ROOT / "deploy/monitoring/alerts.yml"
TESTED = ROOT / "tests/deploy/alerts.test.yml"
PAGE = ROOT / "docs/reference/alerts.md"

FAMILIES = {name: labels for name, _, labels, _ in (*board.OF_QUEUES, *board.PROCESS)}
HISTOGRAMS = {
    name for name, kind, _, _ in (*board.OF_QUEUES, *board.PROCESS) if kind == "histogram"
}
PLACE = {"host", "repo", "branch", "instance", "job", "le"}
NAME = re.compile(r"\bheadgate_[a-z_]+\b")
CHOSEN = re.compile(r"\b(headgate_[a-z_]+)\{([^}]*)\}")

INTRODUCTION = """\
# Alerts

Written by `make docs` from [the rules for Prometheus](../../deploy/monitoring/alerts.yml).
Edit the rules and not this page. [How to deploy](../how-to/deploy.md#watch-it) says how to load
them.

| Alert | Severity | It fires when | What to do |
|---|---|---|---|
"""


def rules():
    (group,) = yaml.safe_load(ALERTS.read_text("utf-8"))["groups"]
    return group["rules"]


def page():
    rows = [
        f"| `{each['alert']}` | {each['labels']['severity']} | {each['annotations']['summary']} "
        f"| {each['annotations']['action']} |\n"
        for each in rules()
    ]
    return INTRODUCTION + "".join(rows)


def unknown_in(expression):
    """Metrics, and labels in braces, that no family of ours has."""
    found = [name for name in NAME.findall(expression) if family_of(name) not in FAMILIES]
    for name, chosen in CHOSEN.findall(expression):
        labels = set(re.findall(r"(\w+)[=!]", chosen)) - PLACE
        found += sorted(labels - set(FAMILIES.get(family_of(name), ())))
    return found


def family_of(name):
    """The family of a series: the buckets of a histogram have another name."""
    family = name.removesuffix("_bucket")
    return family if family in HISTOGRAMS else name


def test_the_board_is_current(pytestconfig):
    fresh = json.dumps(board.board(), indent=2, ensure_ascii=False) + "\n"
    if pytestconfig.getoption("--update-golden"):
        BOARD.write_text(fresh, "utf-8")
    assert BOARD.read_text("utf-8") == fresh, "`make docs` writes it anew"


def test_the_page_of_alerts_is_current(pytestconfig):
    if pytestconfig.getoption("--update-golden"):
        PAGE.write_text(page(), "utf-8")
    assert PAGE.read_text("utf-8") == page(), "`make docs` writes it anew"


def test_every_metric_has_a_panel_or_a_reason_why_not():
    shown = {
        panel["description"].strip("`")
        for panel in board.board()["panels"]
        if "description" in panel
    }
    assert shown | board.LEFT_OUT.keys() == set(FAMILIES)
    assert not shown & board.LEFT_OUT.keys()


def test_no_panel_covers_another_one():
    places = [panel["gridPos"] for panel in board.board()["panels"]]
    for one, other in combinations(places, 2):
        is_beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        is_below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert is_beside or is_below, (one, other)
        assert one["x"] + one["w"] <= 24


def test_alerts_and_panels_name_no_metric_or_label_that_the_code_has_not():
    asked = [
        target["expr"] for panel in board.board()["panels"] for target in panel.get("targets", ())
    ]
    asked += [each["expr"] for each in rules()]
    assert [(each, unknown_in(each)) for each in asked if unknown_in(each)] == []
    assert unknown_in('headgate_stalled{knid="x"} + headgate_gone') == ["headgate_gone", "knid"]


def test_prometheus_reads_the_rules_and_the_queries_of_the_board(needs, tmp_path):
    needs("promtool")
    queries = [
        target["expr"] for panel in board.board()["panels"] for target in panel.get("targets", ())
    ]
    records = [
        {"record": f"panel_{number}", "expr": re.sub(r"\$__(rate_interval|range)", "5m", query)}
        for number, query in enumerate(queries)
    ]
    asked = tmp_path / "board.yml"
    asked.write_text(yaml.safe_dump({"groups": [{"name": "board", "rules": records}]}))
    checked = subprocess.run(
        ["promtool", "check", "rules", ALERTS, asked], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"{len(queries)} rules found" in checked.stdout


def test_every_alert_fires_on_what_it_is_about_and_not_before(needs, tmp_path):
    needs("promtool")
    cases = [
        case
        for each in yaml.safe_load(TESTED.read_text("utf-8"))["tests"]
        for case in each["alert_rule_test"]
    ]
    for expected in (True, False):
        asked = {case["alertname"] for case in cases if bool(case.get("exp_alerts")) is expected}
        assert asked == {each["alert"] for each in rules()}
    # Expected alerts name labels alone: annotations are asked for by the page.
    plain = yaml.safe_load(ALERTS.read_text("utf-8"))
    for each in plain["groups"][0]["rules"]:
        del each["annotations"]
    (tmp_path / "alerts.yml").write_text(yaml.safe_dump(plain, sort_keys=False))
    shutil.copy(TESTED, tmp_path)
    tested = subprocess.run(
        ["promtool", "test", "rules", TESTED.name],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr

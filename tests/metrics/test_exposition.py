"""The text that Prometheus reads: whatever a label holds comes back, and no rule is broken."""

import re
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families as parsed

from service.metrics import exposition, queue_families
from service.metrics.facts import Histogram, MetricFact, Sum
from service.metrics.queue_families import FAMILIES, TOKENS_EXPIRING, Kind, QueueLabels
from service.process.figures import ZEROS

ANY_TEXT = st.text(st.characters(codec="utf-8"), max_size=20)


def a_page(place: QueueLabels, *facts: MetricFact) -> str:
    """The page of one queue to which these facts happened."""
    cells = {(fact.kind, fact.labels, fact.cell): Sum(1, fact.ms) for fact in facts}
    shown = queue_families.samples({}, cells, cells, ZEROS)
    return queue_families.page([queue_families.fragments(place, shown)], 0).decode()


@given(ANY_TEXT, ANY_TEXT, ANY_TEXT)
def test_whatever_a_name_holds_is_read_as_it_is(host: str, repo: str, branch: str):
    page = a_page(QueueLabels(f"{host}/{repo}", host, repo, branch))
    for family in parsed(page):
        for sample in family.samples:
            assert sample.labels.get("branch", branch) == branch
            named = f"{host}/{repo}" if family.name.startswith("mq_") else repo
            assert sample.labels.get("repo", named) == named


def test_quotes_backslashes_and_line_ends_are_escaped():
    written = exposition.labels_text(("branch",), ('a"b\\c\nd',))
    assert written == r'branch="a\"b\\c\nd"'
    assert exposition.header("x", "gauge", "a\\b\nc").startswith("# HELP x a\\\\b\\nc\n")


def test_buckets_count_all_that_is_not_longer():
    value = Histogram((2, 0, 1), 61_500)
    assert exposition.lines("x", "", value, exposition.bounds_text((60, 300))) == (
        'x_bucket{le="60"} 2\nx_bucket{le="300"} 2\nx_bucket{le="+Inf"} 3\nx_sum 61.5\nx_count 3\n'
    )


@pytest.mark.parametrize(
    ("ms", "written"), [(0, "0"), (1, "0.001"), (1500, "1.5"), (60_000, "60"), (60_010, "60.01")]
)
def test_seconds_are_written_without_what_says_nothing(ms: int, written: str):
    assert exposition.seconds(ms) == written


def test_what_is_longer_than_the_rolling_hours_last_bound_is_in_its_last_bucket():
    page = a_page(
        QueueLabels("o/w", "h", "o/w", "main"), MetricFact(Kind.WAITED, ("main",), 20_000_000)
    )
    rolling = 'mq_pr_wait_duration_1h_seconds_bucket{repo="o/w",branch="main",queue_type="main"'
    assert f'{rolling},le="7200"}} 0\n' in page
    assert f'{rolling},le="+Inf"}} 1\n' in page
    lasting = 'headgate_wait_duration_seconds_bucket{host="h",repo="o/w",branch="main"'
    assert f'{lasting},le="14400"}} 0\n' in page
    assert f'{lasting},le="28800"}} 1\n' in page


def faults_of(name: str, kind: str, text: str) -> list[str]:
    """What the rules for names that `promtool check metrics` knows find in a family."""
    rules = {
        "no HELP": not text,
        "not snake_case": re.fullmatch("[a-z][a-z0-9_]*", name) is None,
        "counter without _total": kind == "counter" and not name.endswith("_total"),
        "_total without counter": kind != "counter" and name.endswith("_total"),
        "reserved ending": name.endswith(("_bucket", "_count", "_sum", "_info_total")),
        "type in the name": bool(re.search("_(gauge|counter|histogram|summary)(_|$)", name)),
        "abbreviated unit": bool(re.search("_(ms|s|sec|secs|msec)(_|$)", name)),
        "not a base unit": bool(re.search("_(milliseconds|minutes|hours|days|percent)(_|$)", name)),
    }
    return [rule for rule, is_broken in rules.items() if is_broken]


def test_no_family_of_ours_breaks_a_rule_for_names():
    families = [one for one in (*FAMILIES, TOKENS_EXPIRING) if one.name.startswith("headgate_")]
    assert len(families) == 18
    assert {
        one.name: found for one in families if (found := faults_of(one.name, one.kind, one.text))
    } == {}
    assert faults_of("x_ms_total", "gauge", "") == [
        "no HELP",
        "_total without counter",
        "abbreviated unit",
    ]


def test_promtool_finds_nothing(needs):
    needs("promtool")
    page = a_page(QueueLabels("o/w", "h", "o/w", 'a"b'))
    ours = "".join(
        line
        for line in page.splitlines(keepends=True)
        if re.match(r"(# (HELP|TYPE) )?headgate_", line)
    )
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=ours, text=True, capture_output=True, check=False
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")

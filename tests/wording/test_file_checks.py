"""The check run on a pull request that changes the repository's file."""

from service.mergequeue.engine.model import FileFault
from service.mergequeue.wording import file_checks
from service.mergequeue.wording.file_checks import Replayed, SettingChange

FIGURES = {name: 12.0 for _, name in file_checks.FIGURES}


def test_figures_stand_side_by_side_and_none_is_a_dash():
    before = {**FIGURES, "time_to_merge_p50_s": None}
    change = SettingChange("concurrency", "5", "3")
    text = file_checks.changes_summary([change], Replayed(7, before, FIGURES))
    assert "| `concurrency` | `5` | `3` |" in text
    assert "The submissions of the last 30 days (7), replayed" in text
    assert "| Time to merge, median | - | 12 s |" in text
    assert "| CI runs | 12 | 12 |" in text


def test_a_rule_that_is_not_replayed_for_all_is_named():
    replayed = Replayed(7, FIGURES, FIGURES, {"@octo/team `x`": 3})
    text = file_checks.changes_summary([SettingChange("rules: x", "a", "b")], replayed)
    assert (
        "\n\n`The rule @octo/team x is not replayed for 3 of them: what it reads is not known.`\n\n"
        in text
    )


def test_what_the_file_says_is_inert():
    fault = FileFault("f", 3, "x", "`queues.@octo/team <b>` is wrong. Fixes #1.")
    assert "- Line 3: `queues.@octo/team <b> is wrong. Fixes #1.`" in (
        file_checks.faults_summary([fault])
    )


def test_titles_count():
    titles = [file_checks.changes_title("main", count) for count in range(3)]
    assert titles == [
        "No setting changes",
        "1 setting changes in the queue for main",
        "2 settings change in the queue for main",
    ]

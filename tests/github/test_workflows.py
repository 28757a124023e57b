"""Which kind of test branch the workflow files of a branch call for."""

import pytest

from bot.github import workflows
from service.provider.values import Vehicle

PUSH, DRAFT = Vehicle.PUSH, Vehicle.DRAFT_PR
JOBS = "jobs: {test: {runs-on: ubuntu-latest}}\n"


def guarded(condition):
    return f"on: pull_request\njobs:\n  test:\n    if: {condition}\n"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("on: push\n", PUSH),
        ("on: [push, pull_request]\n", PUSH),
        ("on: {push: {branches: ['headgate/merge/**']}}\n", PUSH),
        ("on: {push: {branches: ['**']}}\n", PUSH),
        ("on: {push: {branches: [main, 'headgate/**']}}\n", PUSH),
        ("on: {push: {branches: ['head[a-z]+/merge/**']}}\n", PUSH),
        ("on: {push: {branches-ignore: [main]}}\n", PUSH),
        ('"on":\n  push:\n', PUSH),
        ("on: {push: {branches: ['*']}, pull_request: null}\n", DRAFT),
        ("on: {push: {branches: [main]}, pull_request: {}}\n", DRAFT),
        ("on: {push: {branches-ignore: ['headgate/**']}, pull_request: {}}\n", DRAFT),
        ("on: {push: {branches: ['**', '!headgate/**']}, pull_request: {}}\n", DRAFT),
        ("on: {push: {tags: ['v*']}, pull_request: {}}\n", DRAFT),
        ("on: {pull_request: {branches: [main]}}\n", DRAFT),
        ("on: {pull_request: {types: [opened, labeled]}}\n", DRAFT),
        ("on: {pull_request: {types: [ready_for_review]}}\n", PUSH),
        ("on: {pull_request: {types: synchronize}}\n", PUSH),
        ("on: {pull_request: {branches: [release]}}\n", None),
        ("on: {schedule: [{cron: '0 0 * * *'}]}\n", None),
        ("on: {push: {branches: ['[']}}\n", None),
        (guarded("github.event.pull_request.draft == false"), PUSH),
        (guarded("${{ !github.event.pull_request.draft }}"), PUSH),
        (guarded("github.event.pull_request.draft != true && always()"), PUSH),
        (
            guarded(
                "github.event_name != 'pull_request' || github.event.pull_request.draft == false"
            ),
            PUSH,
        ),
        (guarded("github.event.pull_request.draft == true"), DRAFT),
        (guarded("github.actor != 'dependabot'"), DRAFT),
    ],
)
def test_one_workflow_calls_for_a_kind(text, kind):
    more = "" if "jobs:" in text else JOBS
    assert workflows.advise({"ci.yml": text + more}, "main").vehicle is kind


@pytest.mark.parametrize(
    "text", ["", "- a\n", "on: [", "&a [*a]\n", "on: 7\n", "jobs: 1\non: push"]
)
def test_a_file_that_is_no_workflow_breaks_nothing(text):
    sound = "on: pull_request\n" + JOBS
    assert workflows.advise({"a.yml": text, "b.yml": sound}, "main").vehicle in (DRAFT, PUSH)


def test_no_file_calls_for_nothing():
    found = workflows.advise({}, "main")
    assert (found.vehicle, found.reason) == (None, workflows.NO_WORKFLOWS)


def test_a_push_trigger_wins_and_names_what_does_not_report():
    texts = {
        "ci.yml": "on: {push: {branches: ['headgate/merge/**']}}\n" + JOBS,
        "lint.yml": "on: pull_request\n" + JOBS,
    }
    found = workflows.advise(texts, "main")
    assert found.vehicle is PUSH
    assert found.reason == (
        "ci.yml starts on pushes to headgate/merge/**. lint.yml starts on pull requests alone."
    )


def test_drafts_say_what_they_cost():
    found = workflows.advise({"ci.yml": "on: pull_request\n" + JOBS}, "main")
    assert (found.vehicle, found.reason) == (
        DRAFT,
        "ci.yml starts on draft pull requests. Each draft uses a number of the repository and "
        "notifies watchers; a pushed branch does not.",
    )


def test_a_draft_guard_says_what_must_be_changed():
    found = workflows.advise({"ci.yml": guarded("${{ !github.event.pull_request.draft }}")}, "main")
    assert found.reason == (
        "ci.yml skips draft pull requests. Let it also start on pushes to headgate/merge/**."
    )


def test_many_names_are_counted():
    texts = {f"{number}.yml": "on: push\n" for number in range(5)}
    assert "0.yml, 1.yml, 2.yml and 2 more starts" in workflows.advise(texts, "main").reason


def test_a_pattern_made_to_take_long_does_not():
    hostile = "*a" * 120 + "b"
    text = f"on: {{push: {{branches: ['{hostile}']}}, pull_request: {{}}}}\n"
    bomb = "x: &a [1]\n" + "".join(f"y{n}: &b{n} [*a, *a]\n" for n in range(3))
    assert workflows.advise({"ci.yml": bomb + text}, "main").vehicle is DRAFT

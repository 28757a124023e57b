"""Which kind of test branch the workflow files of a branch call for."""

from itertools import pairwise

import pytest

from bot.github import workflow_files, workflows
from service.clock import SystemClock
from service.parser_process import Job
from service.parsers import Parsers
from service.provider.values import Vehicle
from service.vocabulary import RepoRef

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
    "text", ["", "- a\n", "on: [", "&a [*a]\n", "on: 7\n", "jobs: 1\non: push", "on: \x01"]
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


SOUND = "on: pull_request\n" + JOBS


def bomb(levels):
    """Lists of ten in lists of ten; the alias of the outermost is `*h`, or a letter before it."""
    names = "abcdefghi"[:levels]
    first = "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
    more = [
        f"{name}: &{name} [{','.join([f'*{before}'] * 10)}]\n" for before, name in pairwise(names)
    ]
    return first + "".join(more)


def read_of(text):
    """What is read in one file beside a sound one: the workflow, or why it cannot be read."""
    contents = {"ci.yml": text.encode(), "sound.yml": SOUND.encode()}
    found, sound = workflow_files.pieces(contents, "main")
    assert isinstance(sound, workflow_files.Workflow)
    assert (sound.name, sound.on_push, sound.on_draft) == ("sound.yml", False, True)
    assert (sound.guarded, sound.jobs) == ((), ("test",))
    return found


def test_aliases_mean_what_they_stand_for():
    text = """
on:
  push: {branches: &branches [main, "headgate/merge/**"], paths: &paths ["src/**"]}
  pull_request: {branches: *branches, paths: *paths}
concurrency: &once {group: "ci-${{ github.ref }}"}
jobs:
  unit: &job {name: &name tests, runs-on: ubuntu-latest, concurrency: *once}
  again: *job
"""
    found = read_of(text)
    assert (found.on_push, found.jobs) == (True, ("tests", "tests"))
    assert found.filtered == ("push", "pull_request")
    assert found.groups == ("ci-${{ github.ref }}",) * 3


DEEP = "on: push\njobs: {a: {x: " + "[" * 60 + "]" * 60 + "}}\n"
LONG = "x: &x '" + "y" * 100_000 + "'\non: push\njobs: {a: {steps: [" + "*x," * 20 + "]}}\n"
KEYS = "on: push\njobs:\n" + "".join(f" k{number}: 1\n" for number in range(20_000))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (bomb(8) + "on: push\nconcurrency: {group: *h}\n", "more than 20,000 values"),
        (bomb(8) + "on: {push: {branches: *h}}\n", "more than 20,000 values"),
        (bomb(8) + "on: {pull_request: {types: *h}}\n", "more than 20,000 values"),
        (bomb(8) + "on: push\njobs: {a: {name: *h, if: *h}}\n", "more than 20,000 values"),
        (LONG, "Line 3: The texts have more than 1,048,576 characters."),
        (KEYS, "more than 20,000 values"),
        (DEEP, "Line 2: This is nested more than 50 levels deep."),
        ("a: &a [*a]\non: push\n", "Line 1: This alias stands for a value that contains it"),
        ("on: push\njobs: {a: *b}\n", "Line 2: This alias stands for"),
        ("x: &x {a: 1}\non: {<<: *x, push: }\n", "Line 2: Merge keys (`<<`) are not supported."),
        ("on: !!set {push}\n", "Line 1: Tags (`!name`) are not supported."),
        ("on: !!python/object/apply:os.system [id]\n", "Line 1: Tags"),
        ("on: push\non: push\n", "Line 2: `on` is set on line 1 already."),
        ("on: [", "This is not YAML"),
    ],
)
def test_a_file_that_takes_too_much_is_unknown_and_spoils_no_other(text, why):
    found = read_of(text)
    assert isinstance(found, workflow_files.Unread)
    assert why in found.why
    advice = workflows.advise({"ci.yml": text, "sound.yml": SOUND}, "main")
    assert advice.vehicle is DRAFT
    assert advice.reason.endswith(f"Headgate cannot read ci.yml: {found.why}")


def test_an_alias_counts_as_often_as_it_is_used():
    text = bomb(3) + "on: push\njobs: {a: {steps: [%s]}}\n"
    assert read_of(text % ("*c," * 16)).on_push
    assert "more than 20,000 values" in read_of(text % ("*c," * 17)).why


def test_files_that_cannot_be_read_leave_the_kind_open():
    found = workflows.advise({"ci.yml": "on: ["}, "main")
    assert found.vehicle is None
    assert found.reason.startswith("Headgate cannot read ci.yml: Line 2: This is not YAML")


@pytest.mark.parametrize(
    "pattern",
    [
        "*a" * 120 + "b",
        "headgate/merge/" + "*+" * 100 + "!",
        "[a-z/0-9-]+" * 20 + "!",
        "**" + "**a" * 80 + "!",
        "?" * 200,
        "**/" * 80,
        "[^" + "a-" * 100 + "]+",
    ],
)
def test_a_pattern_made_to_take_long_takes_one_look_for_each_part_and_place(pattern, monkeypatch):
    looks = 0
    takes = workflow_files.Item.takes

    def counted(item, character):
        nonlocal looks
        looks += 1
        return takes(item, character)

    monkeypatch.setattr(workflow_files.Item, "takes", counted)
    text = f"on: {{push: {{branches: ['{pattern}']}}, pull_request: {{}}}}\n"
    assert workflows.advise({"ci.yml": text}, "main").vehicle is DRAFT
    assert looks <= len(pattern) * (len(workflow_files.PROBE) + 1)


def test_a_pattern_beyond_the_length_of_a_branch_matches_nothing():
    text = "on: {push: {branches: ['%s']}, pull_request: {}}\n"
    for length, kind in ((255, PUSH), (256, DRAFT)):
        pattern = "headgate/**".ljust(length, "*")
        assert workflows.advise({"ci.yml": text % pattern}, "main").vehicle is kind


async def test_a_condition_of_blanks_is_read_within_the_limits_of_a_process():
    blanks = "!" + " " * 250_000 + "x"
    text = f'on: pull_request\njobs: {{a: {{if: "{blanks}"}}, b: {{if: "! (github.actor)"}}}}\n'
    job = Job(workflow_files.pieces, ({"ci.yml": text.encode()}, "main"), workflows.PARSER_LIMITS)
    repo = RepoRef("github.test", "octo", "widgets")
    (found,) = await Parsers().run(repo, job, SystemClock())
    assert isinstance(found, workflow_files.Workflow)
    assert (found.on_draft, found.guarded) == (True, ())


@pytest.mark.parametrize("blanks", ["", " ", "   "])
def test_blanks_inside_a_guard_do_not_hide_it(blanks):
    condition = f"${{{{ !{blanks}({blanks}github.event.pull_request.draft{blanks}) }}}}"
    assert read_of(guarded(condition)).guarded == ("test",)

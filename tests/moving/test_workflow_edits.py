"""Workflow files are changed at the right places, and nowhere else."""

import textwrap

import pytest

from bot.cli.moving import workflow_edits
from bot.cli.moving.expressions import Goal, widened
from bot.cli.moving.plan import PLACES, fix_workflows
from service.provider.values import Vehicle

JOBS = "jobs:\n  a: {runs-on: x, steps: [{run: make}]}\n"
PUSHED = Goal(Vehicle.PUSH, "main", PLACES)
DRAFT = Goal(Vehicle.DRAFT_PR, "main", PLACES)
ON_PUSH = "startsWith(github.ref, 'refs/heads/headgate/merge/')"
MERGE_GROUP = "github.event_name == 'merge_group'"
ON_DRAFT = "startsWith(github.head_ref, 'headgate/merge/')"


def edited(text: str, goal: Goal = PUSHED) -> str:
    done = workflow_edits.edited("ci.yml", text, goal)
    again = workflow_edits.edited("ci.yml", done.text, goal)
    assert again.text == done.text
    assert again.done == ()
    return done.text


TRIGGERS = [
    ("on: merge_group\n", 'on:\n  merge_group:\n  push:\n    branches: ["headgate/merge/**"]\n'),
    (
        "on: merge_group # only there\n",
        'on:\n  merge_group:\n  push:\n    branches: ["headgate/merge/**"] # only there\n',
    ),
    (
        "on: [pull_request, merge_group] # both\n",
        'on: {pull_request: {}, merge_group: {}, push: {branches: ["headgate/merge/**"]}} # both\n',
    ),
    (
        "on: [\n  merge_group, # one\n]\n",
        'on: {\n  merge_group: {}, # one\n push: {branches: ["headgate/merge/**"]}}\n',
    ),
    (
        "on:\n  - pull_request # a\n  - merge_group # b\n# end\n",
        "on:\n    pull_request: # a\n    merge_group: # b\n    push:\n"
        '      branches: ["headgate/merge/**"]\n# end\n',
    ),
    (
        "on:\n  merge_group:\n    types: [checks_requested] # x\n\n  # last\n",
        "on:\n  merge_group:\n    types: [checks_requested] # x\n  push:\n"
        '    branches: ["headgate/merge/**"]\n\n  # last\n',
    ),
    (
        "on: {merge_group: {}}\n",
        'on: {merge_group: {}, push: {branches: ["headgate/merge/**"]}}\n',
    ),
    (
        "on:\n  push:\n    branches:\n    - main\n    - gtmq_x # g\n",
        'on:\n  push:\n    branches:\n    - main\n    - gtmq_x # g\n    - "headgate/merge/**"\n',
    ),
    (
        "on:\n  push:\n    branches: [main]\n  merge_group:\n",
        'on:\n  push:\n    branches: [main, "headgate/merge/**"]\n  merge_group:\n',
    ),
    (
        "on:\n  push: {branches: trunk-merge/x}\n",
        'on:\n  push: {branches: [trunk-merge/x, "headgate/merge/**"]}\n',
    ),
    (
        "on:\n  push:\n    tags: [v1]\n  merge_group:\n",
        'on:\n  push:\n    tags: [v1]\n    branches: ["headgate/merge/**"]\n  merge_group:\n',
    ),
    (
        "on:\n  push: {tags: [v1]}\n  merge_group:\n",
        'on:\n  push: {tags: [v1], branches: ["headgate/merge/**"]}\n  merge_group:\n',
    ),
    (
        "on:\r\n  merge_group:\r\n",
        'on:\r\n  merge_group:\r\n  push:\r\n    branches: ["headgate/merge/**"]\r\n',
    ),
    (
        "name: Prüfung 🚀\non:\n  merge_group:\n",
        'name: Prüfung 🚀\non:\n  merge_group:\n  push:\n    branches: ["headgate/merge/**"]\n',
    ),
]


@pytest.mark.parametrize(("before", "after"), TRIGGERS)
def test_a_workflow_of_the_other_queue_also_starts_on_test_branches(before, after):
    jobs = JOBS.replace("\n", "\r\n") if "\r" in before else JOBS
    assert edited(before + jobs) == after + jobs


@pytest.mark.parametrize(
    "text",
    [
        "on: push\n",
        "on: [push, merge_group]\n",
        "on:\n  push:\n  merge_group:\n",
        "on:\n  push:\n    branches: ['headgate/**']\n  merge_group:\n",
        "on: pull_request\n",
        "on:\n  push:\n    branches: [staging, trying]\n",
        "on: {schedule: [{cron: '0 0 * * *'}]}\n",
        "- no\n- workflow\n",
        "on: [merge_group\n",
    ],
)
def test_any_other_file_stays_as_it_is(text):
    whole = text if text.startswith(("-", "on: [merge_group\n")) else text + JOBS
    assert edited(whole) == whole


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("on:\n  push: {branches-ignore: ['**']}\n  merge_group:\n", "`branches-ignore`"),
        ("on: # why\n  merge_group\n", "A comment stands between"),
    ],
)
def test_a_trigger_that_cannot_be_added_is_named(text, why):
    done = workflow_edits.edited("ci.yml", text + JOBS, PUSHED)
    assert done.text == text + JOBS
    assert [why in one.why for one in done.missed] == [True]


def with_condition(line: str) -> str:
    return f"on: push\njobs:\n  a:\n    {line}\n    runs-on: x\n    steps:\n      - run: make\n"


CONDITIONS = [
    (
        "if: github.event_name == 'merge_group'",
        f"if: {MERGE_GROUP} || {ON_PUSH}",
    ),
    (
        "if: github.event_name == 'merge_group' # c",
        f"if: github.event_name == 'merge_group' || {ON_PUSH} # c",
    ),
    (
        "if: ${{ 'merge_group' == github.event_name && inputs.x }}",
        f"if: ${{{{ ('merge_group' == github.event_name || {ON_PUSH}) && inputs.x }}}}",
    ),
    (
        "if: \"startsWith(github.ref, 'refs/heads/mergify/merge-queue/')\"",
        f"if: \"startsWith(github.ref, 'refs/heads/mergify/merge-queue/') || {ON_PUSH}\"",
    ),
    (
        "if: 'github.event_name == ''merge_group'''",
        "if: 'github.event_name == ''merge_group'' || " + ON_PUSH.replace("'", "''") + "'",
    ),
    (
        "if: >-\n      github.actor == 'x' ||\n      contains(github.ref, 'trunk-merge/')\n",
        "if: >-\n      github.actor == 'x' ||\n"
        f"      (contains(github.ref, 'trunk-merge/') || {ON_PUSH})\n",
    ),
    (
        "if: |\n      github.event_name == 'merge_group'\n",
        f"if: |\n      github.event_name == 'merge_group' || {ON_PUSH}\n",
    ),
]


@pytest.mark.parametrize(("before", "after"), CONDITIONS)
def test_a_condition_that_names_the_other_queue_is_widened_in_its_own_quotes(before, after):
    assert edited(with_condition(before)) == with_condition(after)


def test_a_condition_inside_braces_gets_quotes():
    text = "on: push\njobs:\n  a: {if: github.event_name == 'merge_group', steps: [{run: x}]}\n"
    found = f"\"github.event_name == 'merge_group' || {ON_PUSH}\""
    assert edited(text) == text.replace("github.event_name == 'merge_group'", found)


def test_conditions_of_steps_are_widened_and_those_of_an_anchor_once():
    step = "{run: x, if: \"github.event_name == 'merge_group'\"}"
    text = f"on: push\njobs:\n  a: &a\n    steps: [{step}]\n  b: *a\n"
    assert edited(text).count(ON_PUSH) == 1


@pytest.mark.parametrize(
    "condition",
    [
        "github.ref == 'refs/heads/staging'",
        "github.event_name != 'merge_group'",
        "!startsWith(github.ref, 'refs/heads/gh-readonly-queue/')",
        "github.ref == 'refs/heads/main'",
        f"github.event_name == 'merge_group' || {ON_PUSH}",
    ],
)
def test_a_condition_that_may_be_true_or_is_not_about_a_queue_stays(condition):
    text = with_condition(f"if: {condition!r}" if condition.startswith("!") else f"if: {condition}")
    assert edited(text) == text


@pytest.mark.parametrize("quote", ["", '"'])
def test_the_opposite_is_narrowed_in_steps_and_in_other_expressions(quote):
    differs = "github.event_name != 'merge_group'"
    text = (
        "on: push\njobs:\n  a:\n    env:\n"
        f"      X: {quote}${{{{ {MERGE_GROUP} && '1' || '' }}}} and ${{{{ {differs} }}}}{quote}\n"
        f"    steps:\n      - if: {differs}\n        run: echo ${{{{ {differs} }}}} # c\n"
    )
    narrowed = f"{differs} && !{ON_PUSH}"
    widened_too = text.replace(f"{MERGE_GROUP} &&", f"({MERGE_GROUP} || {ON_PUSH}) &&")
    assert edited(text) == widened_too.replace(differs, narrowed)


def test_a_job_that_the_other_queue_leaves_out_is_named_and_stays():
    text = with_condition("if: github.event_name != 'merge_group'")
    (left,) = fixed(text).left
    assert (left.place.line, "test branches run it" in left.why) == (4, True)
    assert "`headOnlyStatuses`" in left.todo


def test_on_drafts_the_head_is_asked_and_no_trigger_is_added():
    old = "startsWith(github.head_ref, 'mergify/merge-queue/')"
    text = f"on: pull_request\njobs:\n  a:\n    if: {old}\n    steps: [{{run: x}}]\n"
    assert edited(text, DRAFT) == text.replace(old, f"{old} || {ON_DRAFT}")


def test_a_form_that_is_not_known_is_widened_as_a_whole_if_it_is_false_there():
    text = "endsWith('gh-readonly-queue/x', 'y')"
    assert widened(text, PUSHED, narrows=True) == f"{text} || {ON_PUSH}"
    assert widened(f"${{{{ {text} }}}}", PUSHED, narrows=True) == f"${{{{ {text} || {ON_PUSH} }}}}"


def test_the_stand_in_of_a_job_of_the_queue_does_not_run_on_test_branches():
    files = {
        "real.yml": "on: merge_group\njobs: {e2e: {steps: [{run: make}]}}\n",
        "dummy.yml": textwrap.dedent(
            """\
            on: [pull_request, merge_group]
            jobs:
              e2e:
                if: github.event_name != 'merge_group'
                steps: [{run: echo}]
              other:
                if: github.event_name != 'merge_group'
                steps: [{run: make}]
            """
        ),
    }
    found = fix_workflows(
        {f".github/workflows/{name}": text.encode() for name, text in files.items()}, "main", set()
    )
    (dummy,) = (one.after for one in found.changes if "dummy" in one.path)
    assert (
        f"if: github.event_name != 'merge_group' && !{ON_PUSH}\n    steps: [{{run: echo}}]" in dummy
    )
    assert "if: github.event_name != 'merge_group'\n    steps: [{run: make}]" in dummy


def fixed(text: str, required: set[str] | None = None):
    return fix_workflows({".github/workflows/ci.yml": text.encode()}, "main", required or set())


def test_lines_that_name_the_other_queue_elsewhere_are_named():
    text = "on: merge_group\njobs:\n  a:\n    steps:\n      - run: echo gh-readonly-queue/main\n"
    (left,) = fixed(text).left
    assert (left.place.line, left.place.value) == (5, "- run: echo gh-readonly-queue/main")


def test_a_job_that_stays_skipped_is_named():
    job = "  a:\n    if: github.ref == 'refs/heads/x'\n    steps: [{run: x}]\n"
    text = f"on: merge_group\njobs:\n{job}"
    assert [one.place.key for one in fixed(text).left] == ["jobs: a"]
    assert fixed(text, {"b"}).left == ()


def test_path_filters_and_groups_without_the_branch_are_named():
    text = (
        "on:\n  merge_group:\n  push:\n    branches: [main]\n    paths: [src/**]\n"
        f"concurrency: ci\n{JOBS}"
    )
    keys = [(one.place.line, one.place.key) for one in fixed(text).left]
    assert keys == [(5, "on.push.paths"), (6, "concurrency.group")]


def test_a_required_workflow_of_pull_requests_starts_on_pushes_where_others_do():
    files = {
        ".github/workflows/a.yml": b"on: merge_group\njobs: {a: {steps: [{run: make}]}}\n",
        ".github/workflows/b.yml": b"on: pull_request\njobs: {b: {steps: [{run: make}]}}\n",
    }
    known = fix_workflows(files, "main", {"a", "b"})
    assert [one.path for one in known.changes] == list(files)
    unknown = fix_workflows(files, "main", set())
    assert [one.path for one in unknown.changes] == [".github/workflows/a.yml"]
    assert "test branches are pushed" in unknown.left[0].why


def test_a_workflow_that_skips_drafts_starts_on_pushes():
    text = (
        "on: pull_request\njobs:\n  a:\n    if: '!github.event.pull_request.draft'\n    steps: []\n"
    )
    found = fixed(text)
    assert found.vehicle is Vehicle.PUSH
    assert 'branches: ["headgate/merge/**"]' in found.changes[0].after

"""Values of other queues become settings, or are named with what to do."""

import re
from collections.abc import Sequence

import pytest

from bot.cli.moving import mapping, mergify, reading, tables
from bot.cli.moving.mapping import Carried, File, Left, Row, Source, Unfit
from service.mergequeue.engine.config import SETTINGS

SOURCES = (
    mergify.MERGIFY,
    tables.BORS,
    tables.RUST_BORS,
    tables.KODIAK,
    tables.TRUNK,
    tables.GITHUB,
)


def translated(source: Source, text: str, path: str = "x.yml") -> list[Carried | Left]:
    return list(mapping.translate(File(path, reading.read(path, text.encode()), source)))


def carried_in(found: Sequence[Carried | Left]) -> dict[str, object]:
    return {one.setting: one.to for one in found if isinstance(one, Carried)}


@pytest.mark.parametrize("source", SOURCES, ids=lambda one: one.name)
def test_a_row_is_carried_over_or_says_why_not_and_what_to_do(source):
    keys = [row.key for row in source.rows]
    assert len(keys) == len(set(keys))
    for row in source.rows:
        assert bool(row.why) == bool(row.todo), row
        assert row.convert is None or not row.why, row
        assert all(each.endswith((".", ")")) for each in (row.why, row.todo) if each), row
    assert [one for one, _, _ in source.defaults if one not in SETTINGS] == []


@pytest.mark.parametrize("source", SOURCES, ids=lambda one: one.name)
def test_a_setting_that_a_text_names_exists(source):
    texts = [text for row in source.rows for text in (row.why, row.todo, row.remark)]
    named = re.findall(r"`([a-z]+[A-Z]\w*)", " ".join((*texts, *(source.end or ()))))
    ours = {re.sub(r"_(\w)", lambda found: found[1].upper(), name) for name in SETTINGS}
    assert set(named) - ours == set()


def test_a_key_that_no_row_knows_is_named():
    (left,) = translated(tables.BORS, "statuses = []\n", "bors.toml")
    assert isinstance(left, Left)
    assert (left.place.line, left.place.key, left.place.value) == (1, "statuses", "[]")
    assert left.why == "Headgate does not know this key of bors."


def test_a_value_outside_the_bounds_of_a_setting_is_named():
    (left,) = translated(tables.GITHUB, "max_entries_to_build: 0\n")
    assert isinstance(left, Left)
    assert left.why == "`concurrency` must be at least 1."


@pytest.mark.parametrize(
    ("source", "line", "settings"),
    [
        (mergify.MERGIFY, "merge_queue: {max_parallel_checks: 7}", {"concurrency": 7}),
        (
            mergify.MERGIFY,
            "defaults: {queue_rule: {batch_size: {min: 2, max: 9}}}",
            {"batch": True, "batching_min_size": 9},
        ),
        (mergify.MERGIFY, "queue_rules: [{batch_size: 1}]", {"batch": False}),
        (
            mergify.MERGIFY,
            "queue_rules: [{merge_method: fast-forward}]",
            {"merge_method": "REBASE", "land_tested_commits": True},
        ),
        (
            mergify.MERGIFY,
            "queue_rules: [{queue_branch_merge_method: fast-forward}]",
            {"land_tested_commits": True},
        ),
        (mergify.MERGIFY, "queue_rules: [{method: merge}]", {"merge_method": "MERGE_COMMIT"}),
        (
            mergify.MERGIFY,
            "queue_rules: [{checks_timeout: 2 days}]",
            {"testing_timeout_minutes": 2880},
        ),
        (tables.BORS, "use-squash-merge: true", {"merge_method": "SQUASH"}),
        (tables.BORS, "timeout_sec: 61", {"testing_timeout_minutes": 2}),
        (
            tables.BORS,
            "commit_title: 'Merge: ${PR_REFS}'",
            {"commit_title": "Merge: #{{ number }}"},
        ),
        (tables.BORS, "status: ci", {"required_statuses": ("ci",)}),
        (tables.KODIAK, "merge: {automerge_label: [ship]}", {"enqueueing_label": "ship"}),
        (tables.KODIAK, "merge: {message: {title: github_default}}", {}),
        (tables.GITHUB, "grouping_strategy: ALLGREEN", {}),
    ],
)
def test_a_value_becomes_settings(source, line, settings):
    found = translated(source, line)
    assert carried_in(found) == settings
    assert len(found) == len(settings), found


@pytest.mark.parametrize(
    ("source", "line", "why"),
    [
        (tables.BORS, "status: ['ci/%']", "`ci/%` is a pattern"),
        (tables.BORS, "status: [1]", "The value is not a list of names."),
        (tables.BORS, "timeout_sec: long", "The value is not a whole number."),
        (tables.BORS, "delete_merged_branches: 'yes'", "neither true nor false"),
        (tables.BORS, "commit_title: '${X}'", "a placeholder that Headgate lacks"),
        (tables.KODIAK, "merge: {automerge_label: [a, b]}", "A queue has one label."),
        (tables.KODIAK, "merge: {automerge_label: ''}", "The value is not a text."),
        (tables.KODIAK, "merge: {method: octopus}", "Headgate has no method `octopus`."),
        (tables.KODIAK, "merge: {message: {body: empty}}", "A commit without a body"),
        (mergify.MERGIFY, "queue_rules: [{checks_timeout: auto}]", "not a duration"),
        (
            mergify.MERGIFY,
            "queue_rules: [{commit_message_template: '{{ body | get_section(1) }}'}]",
            "The template computes",
        ),
    ],
)
def test_a_value_without_an_equal_is_named(source, line, why):
    (left,) = translated(source, line)
    assert isinstance(left, Left)
    assert why in left.why
    assert left.todo


def of_mergify(text: str) -> list[tuple[str, Carried | Left]]:
    path = ".mergify.yml"
    file = File(path, reading.read(path, text.encode()), mergify.MERGIFY)
    return list(mergify.found_in(file, "main"))


def test_a_rule_of_mergify_for_another_branch_sets_up_that_queue():
    text = """\
queue_rules:
  - {name: a, batch_size: 2, merge_conditions: [base=release, check-success=ci]}
  - {name: b, batch_size: 3}
pull_request_rules:
  - {name: x, conditions: [base=dev], actions: {queue: {name: b, method: rebase, nice: 1}}}
"""
    each = of_mergify(text)
    found = {
        branch: carried_in([one for where, one in each if where == branch])
        for branch in ("release", "dev", "main")
    }
    assert found["release"]["batching_min_size"] == 2
    assert found["release"]["required_statuses"] == ("ci",)
    assert found["dev"]["batching_min_size"] == 3
    assert found["main"] == {"merge_method": "REBASE"}
    left = [one.why for _, one in of_mergify(text) if isinstance(one, Left)]
    assert left == [mergify.UNKNOWN[0]]


def test_conditions_of_mergify_that_must_all_hold_are_read_inside_of_and():
    text = "queue_rules: [{name: a, merge_conditions: [{and: [check-success=x, {or: [a, b]}]}]}]\n"
    (_, carried), (_, left) = of_mergify(text)
    assert isinstance(carried, Carried)
    assert carried.to == ("x",)
    assert isinstance(left, Left)
    assert left.place.key == "queue_rules[0].merge_conditions[0].and[1].or"


def test_a_rule_of_mergify_that_merges_by_itself_has_the_gate_in_its_conditions():
    text = """\
pull_request_rules:
  - name: auto
    conditions: [status-success=ci, status-success~=Code.*]
    actions: {merge: {strict: smart, method: squash}, delete_head_branch: {}, comment: {}}
"""
    found = [one for _, one in of_mergify(text)]
    assert carried_in(found) == {
        "required_statuses": ("ci",),
        "merge_method": "SQUASH",
        "delete_branch": True,
    }
    values = [one.place.value for one in found if isinstance(one, Left)]
    assert sorted(values) == ["auto (comment)", "smart", "status-success~=Code.*"]


def test_protections_of_mergify_for_every_change_require_checks():
    text = """\
merge_protections:
  - {name: ci, if: [], success_conditions: [check-success=gate, {or: [a, b]}]}
  - {name: docs, if: [files~=docs], success_conditions: [check-success=docs]}
"""
    found = [one for _, one in of_mergify(text)]
    assert carried_in(found) == {"required_statuses": ("gate",)}
    keys = [one.place.key for one in found if isinstance(one, Left)]
    assert keys == ["merge_protections[1]", "merge_protections[0].success_conditions[1].or"]


def test_a_second_queue_of_mergify_for_a_branch_is_named_once():
    text = """\
queue_rules:
  - {name: urgent, batch_size: 4, nonsense: 1, merge_conditions: [check-success=a, {or: [x]}]}
  - {name: default, batch_size: 2}
pull_request_rules:
  - {name: r, conditions: [label=urgent, {or: [x]}], actions: {queue: {name: urgent}}}
"""
    found = [one for _, one in of_mergify(text)]
    assert carried_in(found) == {"batch": True, "batching_min_size": 2}
    assert [one.place.key for one in found if isinstance(one, Left)] == ["queue_rules[0]"]


def test_a_long_value_is_cut():
    assert len(mapping.shown("x" * 500)) == mapping.SHOWN_CHARS_MAX


def test_lines_of_toml_are_those_of_its_keys_and_tables():
    text = 'a = """\nb = 1\n"""\nc.d = 2\n[t]\n"e" = 3\n[[u]]\nf = 4\n'
    found = reading.read("x.toml", text.encode())
    lines = {path: found.line_of(path) for path in ((), ("a",), ("c", "d"), ("t", "e"), ("u",))}
    assert lines == {(): 1, ("a",): 1, ("c", "d"): 4, ("t", "e"): 6, ("u",): 7}


def test_a_conversion_that_fails_says_what_to_do():
    row = Row("a", mapping.to("concurrency", mapping.whole))
    file = File("x.yml", reading.read("x.yml", b"a: b\n"), Source("X", (row,)))
    (left,) = mapping.translate(file)
    assert isinstance(left, Left)
    with pytest.raises(Unfit, match="whole"):
        mapping.whole(True)

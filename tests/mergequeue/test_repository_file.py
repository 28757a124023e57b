"""What the repository's file may say: faults with line and mend, and the schema of the same."""

from dataclasses import fields

import jsonschema_rs
import pytest
import yaml
from pydantic.alias_generators import to_camel

from service.mergequeue.engine.config import BatchingRule, Hedging, Mode, QueueConfig
from service.mergequeue.operations import repository_file
from service.repofile import document

HEAD = "version: 1\nqueues:\n  main:\n"

EVERYTHING = {
    "mode": "PARALLEL",
    "concurrency": 8,
    "requiredStatuses": ["lint", "test (3.12)"],
    "hedgeThreshold": 0.5,
    "notReadyTimeoutHours": 1,
    "batchingRules": [{"targetPattern": "//infra/*", "policy": "ISOLATE"}],
    "allowedBotSubmitters": ["renovate[bot]"],
}


def faults(text: str) -> list[tuple[int | None, str]]:
    checked = repository_file.check(text.encode())
    return [(each.line, each.message) for each in checked.faults]


def trunk_statuses(content: bytes):
    return repository_file.trunk_statuses(document.outcome(content))


def test_settings_have_the_types_of_a_queue():
    text = yaml.safe_dump({"version": 1, "queues": {"main": EVERYTHING}})
    checked = repository_file.check(text.encode())
    assert checked.faults == ()
    assert checked.settings_for("main") == {
        "mode": Mode.PARALLEL,
        "concurrency": 8,
        "required_statuses": ("lint", "test (3.12)"),
        "hedge_threshold": 0.5,
        "not_ready_timeout_hours": 1,
        "batching_rules": (BatchingRule("//infra/*"),),
        "allowed_bot_submitters": ("renovate[bot]",),
    }


def test_the_words_of_settings_are_no_booleans():
    checked = repository_file.check(f"{HEAD}    hedging: OFF\n    batch: true\n".encode())
    assert checked.settings_for("main") == {"hedging": Hedging.OFF, "batch": True}


def test_the_name_of_a_branch_goes_before_patterns_and_the_longest_pattern_first():
    text = """\
version: 1
queues:
  release/*: {concurrency: 2}
  "*": {concurrency: 1}
  release/9: {concurrency: 9}
"""
    checked = repository_file.check(text.encode())
    branches = ("release/9", "release/8", "main")
    assert [checked.settings_for(each)["concurrency"] for each in branches] == [9, 2, 1]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", None, "`version` is missing. Write `version: 1` on the first line."),
        ("version: 2\n", 1, "`version` must be 1."),
        ("version: true\n", 1, "`version` must be 1."),
        ("- main\n", 1, "The file must contain keys with values, as `version: 1`."),
        ("version: 1\nqueue: {}\n", 2, "`queue` is not a key of this file. Did you mean `queues`?"),
        (HEAD, 3, "`queues.main` has no value. Write one, or remove the line."),
        (
            f"{HEAD}    batch: true\n    concurency: 4\n",
            5,
            "`queues.main.concurency` is not a setting of a queue. Did you mean `concurrency`?",
        ),
        (f"{HEAD}    concurrency: 0\n", 4, "`queues.main.concurrency` must be at least 1."),
        (f"{HEAD}    concurrency: four\n", 4, "`queues.main.concurrency` must be an integer."),
        (f"{HEAD}    batch: yes\n", 4, "`queues.main.batch` must be true or false."),
        (
            f"{HEAD}    mergeMethod: SQASH\n",
            4,
            "`queues.main.mergeMethod` must be one of MERGE_COMMIT, SQUASH, REBASE. "
            "Did you mean `SQUASH`?",
        ),
        (
            f"{HEAD}    requiredStatuses:\n      - lint\n      - 3\n",
            6,
            "`queues.main.requiredStatuses[1]` must be a string.",
        ),
        (
            f'{HEAD}    requiredStatuses: [lint, " "]\n',
            4,
            "`queues.main.requiredStatuses[1]` must contain more than white space.",
        ),
        (
            f"{HEAD}    rules:\n      - name: a\n        enter: true\n        when: label == 'a'\n",
            7,
            "`queues.main.rules[0].when` names the unknown `label`; there are number, title, "
            "author, branch, base, labels, approvals, draft, fork, auto_merge, depends_on.",
        ),
        (
            f"{HEAD}    rules:\n      - name: a\n        wehn: draft\n        enter: true\n",
            6,
            "`queues.main.rules[0].wehn` is no key of a rule. Did you mean `when`?",
        ),
        (
            f"{HEAD}    rules:\n      - name: a\n        waitFor: it\n        during:\n"
            "          start: 2026-11-27T18:00\n          zone: Berlin\n          minutes: 60\n",
            9,
            "`queues.main.rules[0].during.zone` must be the IANA name of a time zone, such as "
            "Europe/Berlin.",
        ),
        (
            f"{HEAD}    rules:\n      - {{name: a, enter: true}}\n"
            "      - {name: a, priority: 1}\n",
            6,
            "`queues.main.rules[1].name` is the name of an earlier rule.",
        ),
        (
            f"{HEAD}    rules:\n      - {{name: a, enter: true}}\n      - {{name: b}}\n",
            6,
            "`queues.main.rules[1]` has no `priority`, `enter` or `waitFor`, so it does nothing. "
            "Write one.",
        ),
        (
            f"{HEAD}    batchingRules: [{{targetPatern: x}}]\n",
            4,
            "`queues.main.batchingRules[0].targetPattern` is missing. Add it.",
        ),
        (
            f"{HEAD}    requiredStatuses:\n",
            4,
            "`queues.main.requiredStatuses` has no value. Write one, or remove the line.",
        ),
        (
            "version: 1\nqueues:\n  a*b: {}\n",
            3,
            "`queues.a*b` must be one line, with `*` at its end alone.",
        ),
        ("a: &x 1\n", 1, "Anchors (`&name`) are not supported. Remove the anchor."),
        ("a: *x\n", 1, "Aliases (`*name`) are not supported. Write the value itself."),
        ("a: {<<: {b: 1}}\n", 1, "Merge keys (`<<`) are not supported. Write the keys."),
        ("a: !!set {}\n", 1, "Tags (`!name`) are not supported. Remove the tag."),
        ("a: 1\n\na: 2\n", 3, "`a` is set on line 1 already. Keep one."),
        ("? [a]\n: 1\n", 1, "A key must be a text."),
        ("a: 1\n---\nb: 2\n", 2, "The file has a second document. Remove the line `---`."),
        ("[" * 20 + "]" * 20, 1, "This is nested more than 12 levels deep."),
        ("a: [1\nb: 2\n", 2, "This is not YAML: did not find expected ',' or ']'."),
        ("a: 1\nb: \x01\n", 2, "Remove the control character from this line."),
        ("a: [" + "1," * 20_001 + "]", 1, "The file has more than 20,000 values. Shorten it."),
        (
            "#" * 262_145,
            None,
            "The file has 262,145 bytes. Shorten it to at most 262,144 bytes.",
        ),
    ],
)
def test_a_fault_names_the_line_the_field_and_the_mend(text, line, message):
    assert (line, message) in faults(text)


def test_bytes_that_are_no_text_are_named_by_their_line():
    checked = repository_file.check(b"version: 1\nqueues: \xff\n")
    (fault,) = checked.faults
    assert (fault.line, fault.message) == (2, "The file is not UTF-8 text. Save it as UTF-8.")


def test_a_file_with_one_fault_sets_nothing():
    text = f"{HEAD}    concurrency: 4\n  other:\n    concurrency: 0\n"
    assert repository_file.check(text.encode()).settings_for("main") == {}


def test_at_most_twenty_faults_are_named():
    text = HEAD + "".join(f"    setting{number}: 1\n" for number in range(30))
    assert len(faults(text)) == 20


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("version: 0.1\nmerge:\n  required_statuses: [lint]\n", ("lint",)),
        ("version: 0.1\nmerge:\n  required_statuses: []\n", ()),
        ("version: 0.1\nmerge: {}\n", None),
        ("version: 0.1\nlint: {enabled: [ruff]}\n", None),
    ],
)
def test_a_trunk_file_gives_its_required_statuses_alone(text, names):
    assert trunk_statuses(text.encode()) == (names, ())


def test_a_fault_in_a_trunk_file_names_that_file():
    _, (fault,) = trunk_statuses(b"merge:\n  required_statuses:\n    - 3\n")
    assert (fault.path, fault.line) == (".trunk/trunk.yaml", 3)
    assert fault.message == "`merge.required_statuses[0]` must be a string."


def test_a_trunk_file_that_cannot_be_read_is_a_fault():
    _, (fault,) = trunk_statuses(b"merge: [\n")
    assert fault.message.startswith("This is not YAML: ")


SCHEMA = jsonschema_rs.validator_for(repository_file.schema())


def test_the_schema_has_every_setting_with_its_default():
    shown = repository_file.schema()["$defs"]["BranchSettings"]["properties"]  # type: ignore[index]
    assert list(shown) == [to_camel(each.name) for each in fields(QueueConfig)]
    assert {"default": 0.3, "minimum": 0.05, "maximum": 0.95}.items() <= shown[
        "hedgeThreshold"
    ].items()


@pytest.mark.parametrize(
    ("settings", "is_valid"),
    [
        (EVERYTHING, True),
        ({}, True),
        ({"concurrency": 0}, False),
        ({"concurency": 1}, False),
        ({"mode": "LANES"}, False),
        ({"requiredStatuses": None}, False),
        ({"requiredStatuses": [""]}, False),
        ({"batchingRules": [{"targetPattern": "a*b"}]}, False),
        ({"batchingRules": [{"targetPattern": "a", "extra": 1}]}, False),
    ],
)
def test_the_schema_accepts_what_the_service_accepts(settings, is_valid):
    whole = {"version": 1, "queues": {"main": settings}}
    assert SCHEMA.is_valid(whole) is is_valid
    assert (repository_file.check(yaml.safe_dump(whole).encode()).faults == ()) is is_valid

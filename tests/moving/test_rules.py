"""Conditions of Mergify as rules of entry: only where they say exactly the same."""

import pytest

from bot.cli.moving import plan
from bot.cli.moving.mapping import Left
from service.mergequeue.operations import repository_file

PRIORITY = "priority_rules: [{name: a, priority: %s, conditions: [%s]}]\n"


def planned(text: str, path: str = ".mergify.yml") -> plan.Plan:
    return plan.make({path: text.encode()}, "main")


def rules_in(text: str, path: str = ".mergify.yml") -> list[tuple[str, str, object]]:
    """The rules of the written file: name, expression, and priority or what is awaited."""
    made = {change.path: change.after for change in planned(text, path).changes}
    checked = repository_file.check((made[".github/headgate.yml"] or "").encode())
    assert checked.faults == ()
    rules = checked.settings_for("main").get("rules", ())
    return [(each.name, each.when, each.wait_for or each.priority) for each in rules]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("conditions", "when"),
    [
        ('"label = hotfix"', '"hotfix" in labels'),
        ('"label != wip", -draft', '!("wip" in labels)'),
        ('"author = dependabot[bot]"', 'author == "dependabot"'),
        ('"-author = ada", "base = main"', 'author != "ada" && base == "main"'),
        ('"head = next", "#approved-reviews-by = 1"', 'branch == "next" && approvals.size() == 1'),
        ("", ""),
    ],
)
def test_a_priority_with_exact_conditions_is_a_rule(conditions, when):
    assert rules_in(PRIORITY % ("high", conditions)) == [("a", when, 10)]


@pytest.mark.parametrize(
    ("priority", "conditions"),
    [
        ("2500", '"label = a"'),
        ("high", '"label ~= ^a"'),
        ("high", '"files ~= ^docs/"'),
        ("high", '"label = a", {or: ["label = b"]}'),
        ("high", '"created-at > 3 days ago"'),
    ],
)
def test_one_without_an_exact_equal_is_named(priority, conditions):
    found = planned(PRIORITY % (priority, conditions))
    (left,) = (one for one in found.left if one.place.key == "priority_rules[0]")
    assert left.why == "A condition or the priority of this rule has no exact equal in `rules`."


def test_the_highest_priority_is_the_first_rule():
    text = """\
priority_rules:
  - {name: low, priority: low, conditions: ["label = a"]}
  - {name: high, priority: 3000, conditions: ["label = b"]}
  - {name: usual, conditions: ["label = c"]}
"""
    assert [name for name, _, _ in rules_in(text)] == ["high", "usual", "low"]


def test_conditions_of_a_queue_are_awaited():
    text = """\
queue_rules:
  - name: default
    merge_conditions: ["#approved-reviews-by >= 2", "-label = wip", "#approved-reviews-by > 0"]
"""
    assert rules_in(text) == [
        ("2 approvals", "approvals.size() < 2", "2 approvals"),
        ("no label wip", '"wip" in labels', "removal of the label wip"),
        ("an approval", "approvals.size() < 1", "an approval"),
    ]


def test_rules_of_one_name_are_told_apart():
    text = '[merge]\nblocking_labels = ["a"]\nblacklist_labels = ["b"]\n'
    names = [name for name, _, _ in rules_in(text, ".kodiak.toml")]
    assert names == ["blocking labels", "blocking labels (2)"]


def test_a_condition_that_no_rule_can_hold_is_left():
    text = 'queue_rules: [{name: default, merge_conditions: ["author = ada"]}]\n'
    (left,) = (one for one in planned(text).left if "conditions" in one.place.key)
    assert isinstance(left, Left)
    assert left.why == "This condition has no exact equal in `rules`."

"""Mergify's file: a table as for the other queues, and the conditions of its rules.

Sources: docs.mergify.com, "Configuration File", "Using Queue Rules", "Using Priorities",
"Conditions"; older names of keys from its change log.
"""

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import replace

from bot.cli.moving import mergify_rules, tables
from bot.cli.moving.mapping import (
    Carried,
    File,
    Left,
    Row,
    Settings,
    Source,
    Unfit,
    apply,
    flag,
    inner_of,
    method,
    minutes_of_text,
    names,
    text,
    to,
    translate,
    whole,
    without,
)
from bot.github import other_queues
from service.repofile.document import Path

INTERRUPTING = (
    "A priority of Headgate never interrupts what is tested; `urgent` does.",
    "Nothing, or comment `/merge --priority=urgent`.",
)
PRIORITY = (
    "A pull request has its priority from a person or from `rules` of the queue.",
    "Comment `/merge --priority=high`, or write a rule with `priority`.",
)
RULE_OF_PULLS = (
    "Headgate has no rules that act on pull requests.",
    "Keep Mergify for this, or write a workflow.",
)
ONE_QUEUE = (
    "A branch has one queue; the rule `default`, or the first one, has set it up.",
    "Compare the two rules, and choose.",
)
PROTECTIONS = "merge_protections"
SOME_PULLS = (
    "A rule for some pull requests alone has no equal.",
    "Write a required check that looks at them, or a rule of the branch.",
)
RIGHTS = (
    "Rights come from the repository's roles: write submits, maintain pauses.",
    "See “Required rights” of the commands in comments.",
)
UNKNOWN = ("Headgate does not know this option of an action.", "Look it up there.")
OWN_APP = ("Headgate's own App acts, with the rights of its installation.", "Nothing.")


def _batch(value: object) -> Settings:
    if isinstance(value, Mapping):
        value = value.get("max")
    size = whole(value)
    return {"batch": True, "batching_min_size": size} if size > 1 else {"batch": False}


def _direct(value: object) -> Settings:
    return {"direct_merge_mode": "ALWAYS" if flag(value) else "OFF"}


def _branch_method(value: object) -> Settings:
    return {"land_tested_commits": True} if value == "fast-forward" else {}


def _method(value: object) -> Settings:
    if value == "fast-forward":
        return {"merge_method": "REBASE", "land_tested_commits": True}
    return {"merge_method": method(value)}


PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")
OF_OURS = frozenset({"title", "number", "author", "body"})


def _message(value: object) -> Settings:
    found = text(value)
    if "{%" in found or "|" in found or set(PLACEHOLDER.findall(found)) - OF_OURS:
        raise Unfit(
            "The template computes, or has a placeholder that Headgate lacks.",
            "Write `commitTitle` and `commitBody`; “Commit texts” has their placeholders.",
        )
    title, _, body = found.strip().partition("\n")
    return {
        "commit_title": title.strip(),
        **({"commit_body": body.strip()} if body.strip() else {}),
    }


QUEUE_KEYS: tuple[Row, ...] = (
    Row("name"),
    Row("batch_size", _batch),
    Row("batch_max_wait_time", to("batching_max_wait_time_minutes", minutes_of_text)),
    Row("checks_timeout", to("testing_timeout_minutes", minutes_of_text)),
    Row("speculative_checks", to("concurrency", whole)),
    Row("merge_method", _method),
    Row("method", _method),
    Row("queue_branch_merge_method", _branch_method),
    Row("allow_inplace_checks", _direct),
    Row("commit_message_template", _message),
    Row(
        "commit_message_format",
        why="`commitTitle` and `commitBody` are templates.",
        todo="Write them, for example `{{ title }} (#{{ number }})` and `{{ body }}`.",
    ),
    *without(tables.NO_UPDATES, "update_method", "autosquash", "strict", "strict_method"),
    *without(OWN_APP, "update_bot_account", "merge_bot_account", "draft_bot_account"),
    *without(
        INTERRUPTING,
        "allow_checks_interruption",
        "allow_speculative_checks_interruption",
        "disallow_checks_interruption_from_queues",
    ),
    *without(PRIORITY, "priority", "priority_rules"),
    Row(
        "batch_max_failure_resolution_attempts",
        why="Headgate searches a failed batch until it has found the culprit.",
        todo="Nothing; `bisectionConcurrency` says how fast.",
    ),
    Row(
        "branch_protection_injection_mode",
        why="The rules of the branch always count.",
        todo="Nothing, unless it was `none`: then look at the required checks of the branch.",
    ),
    Row("require_branch_protection", why="The rules of the branch always count.", todo="Nothing."),
    Row(
        "queue_branch_prefix",
        why="Test branches are called `headgate/merge/…`.",
        todo="Change what reads the old names.",
    ),
    Row(
        "allow_queue_branch_edit",
        why="A test branch that somebody changes is no proof, so its run is dropped.",
        todo="Nothing.",
    ),
    *without(tables.BY_ITSELF, "autoqueue", "autoqueue_conditions"),
)
CONDITIONS = ("merge_conditions", "conditions", "queue_conditions", "routing_conditions")
"""Keys whose conditions say what must hold in the queue; the first two name the checks of it."""

MERGIFY = Source(
    other_queues.MERGIFY,
    (
        *(
            replace(row, key=f"{place}.{row.key}")
            for place in ("queue_rules[]", "defaults.queue_rule", "defaults.actions.queue")
            for row in QUEUE_KEYS
        ),
        *(Row(f"queue_rules[].{key}") for key in CONDITIONS),
        Row("merge_queue.max_parallel_checks", to("concurrency", whole)),
        Row("merge_queue.reset_on_external_merge", why=OWN_APP[0], todo="Nothing."),
        Row("pull_request_rules"),
        Row(mergify_rules.PRIORITIES),
        Row(
            "partition_rules",
            why="Headgate finds by impacted targets what need not wait for each other.",
            todo="Set `mode: PARALLEL` and upload impacted targets.",
        ),
        Row(
            "scopes",
            why="Headgate finds by impacted targets what need not wait for each other.",
            todo="Set `mode: PARALLEL` and upload impacted targets.",
        ),
        Row(
            "extends",
            why="The settings of another repository are not read.",
            todo="Import a file that has them written out.",
        ),
        Row("shared"),
        *without(RIGHTS, "commands_restrictions"),
        Row(PROTECTIONS),
        *without(tables.BY_ITSELF, "merge_protections_settings"),
    ),
    (("merge_method", "MERGE_COMMIT", "Mergify's own if the file names none"),),
)

CHECK = re.compile(r"(?:check-success|status-success)\s*=\s*(.+)")
BASE = re.compile(r"base\s*=\s*(.+)")
LABEL = re.compile(r"label\s*=\s*(.+)")
APPROVALS = re.compile(
    r"#(?:approved-reviews-by|changes-requested-reviews-by|review-\S+)\s*[<>=!].*"
)
ABOUT_CHECKS = re.compile(r"-?#?(?:check|status)-")
ALREADY = re.compile(r"-(?:draft|closed|conflict|merged)")
"""Conditions that every pull request in a queue of Headgate meets."""


def found_in(file: File, target: str) -> Iterator[tuple[str, Carried | Left]]:
    """Yield what each value became with the branch that it is about, `target` if it names none."""
    branches = dict(_branches(file, target))
    chosen = dict(_chosen(file, branches))
    left_out = {number for number, branch in branches.items() if chosen[branch] != number}
    for number in sorted(left_out):
        path: Path = ("queue_rules", number)
        name = inner_of(_list(file, "queue_rules")[number], "name")
        yield branches[number], Left(file.place(path, name or ""), *ONE_QUEUE)
    for one in translate(file):
        of_rule = _number_of(one)
        if of_rule not in left_out:
            yield target if of_rule is None else branches[of_rule], one
    for condition_path, value in _conditions(file):
        of_rule = _rule_of(file, condition_path)
        if of_rule not in left_out:
            branch = target if of_rule is None else branches[of_rule]
            yield from ((branch, one) for one in _condition(file, condition_path, value))
    yield from ((target, one) for one in _others(file, left_out))
    yield from mergify_rules.priorities(file, (*branches.values(), target))


def _rule_of(file: File, path: Path) -> int | None:
    """Return the queue rule that a condition belongs to, or to which its rule leads."""
    key, number = path[:2]
    if key == PROTECTIONS:
        return None
    if key == "queue_rules" and isinstance(number, int):
        return number
    name = _queue_of(inner_of(inner_of(file.document.value, key), number))
    names = [inner_of(rule, "name") for rule in _list(file, "queue_rules")]
    return names.index(name) if name in names else None


def _chosen(file: File, branches: Mapping[int, str]) -> Iterator[tuple[str, int]]:
    """Yield the rule that counts for each branch: the one called `default`, else the first."""
    rules = _list(file, "queue_rules")
    for branch in set(branches.values()):
        numbers = [number for number in branches if branches[number] == branch]
        named = [number for number in numbers if inner_of(rules[number], "name") == "default"]
        yield branch, (named or numbers)[0]


def _number_of(one: Carried | Left) -> int | None:
    found = re.match(r"queue_rules\[(\d+)\]", one.place.key)
    return int(found[1]) if found else None


def _list(file: File, key: str) -> list[object]:
    found = inner_of(file.document.value, key)
    return found if isinstance(found, list) else []


def _branches(file: File, target: str) -> Iterator[tuple[int, str]]:
    """Yield the branch of each queue rule, by its own conditions or those that route to it."""
    for number, rule in enumerate(_list(file, "queue_rules")):
        own = [value for key in CONDITIONS for _, value in _flat((), inner_of(rule, key))]
        name = inner_of(rule, "name")
        routed = [
            value
            for each in _list(file, "pull_request_rules")
            if _queue_of(each) in (name, "")
            for _, value in _flat((), inner_of(each, "conditions"))
        ]
        bases = [match[1].strip() for value in (*own, *routed) if (match := BASE.fullmatch(value))]
        yield number, bases[0] if bases else target


def _queue_of(rule: object) -> str | None:
    """Return the queue that a rule fills, empty for the only one; None: it fills none."""
    actions = inner_of(rule, "actions")
    if not isinstance(actions, dict) or not {"queue", "merge"} & set(actions):
        return None
    name = inner_of(actions.get("queue"), "name")
    return name if isinstance(name, str) else ""


def _flat(path: Path, value: object) -> Iterator[tuple[Path, str]]:
    """Yield the conditions that must all hold, with their paths; alternatives are left out."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _flat((*path, number), inner)
    elif isinstance(value, dict) and "and" in value:
        yield from _flat((*path, "and"), value["and"])


def _alternatives(path: Path, value: object) -> Iterator[tuple[Path, object]]:
    """Yield what else stands among conditions: `or`, `not`."""
    if isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _alternatives((*path, number), inner)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key == "and":
                yield from _alternatives((*path, key), inner)
            else:
                yield (*path, key), inner


def _places(file: File) -> Iterator[tuple[Path, object]]:
    """Yield the lists of conditions of rules about a queue, and of protections for every change."""
    for number, rule in enumerate(_list(file, "queue_rules")):
        for key in CONDITIONS:
            yield ("queue_rules", number, key), inner_of(rule, key)
    for number, rule in enumerate(_list(file, "pull_request_rules")):
        if _queue_of(rule) is not None:
            yield ("pull_request_rules", number, "conditions"), inner_of(rule, "conditions")
    for number, rule in enumerate(_list(file, PROTECTIONS)):
        if not inner_of(rule, "if"):
            yield (PROTECTIONS, number, "success_conditions"), inner_of(rule, "success_conditions")


def _conditions(file: File) -> Iterator[tuple[Path, str]]:
    for path, value in _places(file):
        yield from _flat(path, value)


LABELLED = Row(
    "label",
    to("enqueueing_label", text),
    "adding it submits, also while the other conditions do not hold: the pull request then waits",
)
DELETED = Row(
    "delete_head_branch",
    to("delete_branch", flag),
    "of each pull request that Headgate lands, whatever the conditions of the rule",
)
ACTIONS = ("queue", "merge", "delete_head_branch")
CHECKED = Row("check", to("required_statuses", names))


def _condition(file: File, path: Path, value: str) -> Iterator[Carried | Left]:
    """Yield what one condition became."""
    place = file.place(path, value)
    is_of_queue = path[0] in ("queue_rules", PROTECTIONS)
    if BASE.fullmatch(value) or ALREADY.fullmatch(value):
        return
    wait = mergify_rules.wait_of(value)
    if wait is not None:
        yield Carried(place, "rules", (wait,), "", path)
    elif match := CHECK.fullmatch(value):
        if is_of_queue or _merges(file, path):
            yield from apply(file, CHECKED, path, match[1].strip().strip("\"'"))
        else:
            yield Left(
                place,
                "Before a pull request enters, Headgate asks for no checks.",
                "Nothing if the queue requires it too; else name it in `requiredStatuses`.",
            )
    elif match := LABEL.fullmatch(value):
        yield from apply(file, LABELLED, path, match[1].strip().strip("\"'"))
    elif ABOUT_CHECKS.match(value):
        yield Left(
            place,
            "Headgate waits for required checks by their names, and for nothing else about checks.",
            "Name the check in `requiredStatuses`, or require it by a rule of the branch.",
        )
    elif APPROVALS.fullmatch(value):
        yield Left(place, tables.REVIEWS, tables.SET_RULE)
    else:
        yield Left(
            place,
            "This condition has no exact equal in `rules`.",
            "Write a rule with `enter` or `waitFor` yourself, or leave it to people.",
        )


def _merges(file: File, path: Path) -> bool:
    """Return whether a rule merges without a queue, so that its conditions are the gate."""
    rule = inner_of(inner_of(file.document.value, path[0]), path[1])
    return inner_of(inner_of(rule, "actions"), "merge") is not None


def _others(file: File, left_out: Set[int]) -> Iterator[Carried | Left]:
    """Yield what the actions of rules became, and the conditions that are alternatives."""
    for number, rule in enumerate(_list(file, "pull_request_rules")):
        path: Path = ("pull_request_rules", number)
        actions = inner_of(rule, "actions")
        others = [key for key in actions if key not in ACTIONS] if isinstance(actions, dict) else []
        if others or not isinstance(actions, dict):
            what = f"{inner_of(rule, 'name') or ''} ({', '.join(map(str, others))})"
            yield Left(file.place(path, what), *RULE_OF_PULLS)
        if isinstance(actions, dict) and "delete_head_branch" in actions:
            yield from apply(file, DELETED, (*path, "actions", "delete_head_branch"), True)
        for action in ("queue", "merge"):
            options = inner_of(actions, action)
            for key, value in options.items() if isinstance(options, dict) else ():
                row = next(
                    (one for one in QUEUE_KEYS if one.key == key), Row(key, None, "", *UNKNOWN)
                )
                yield from apply(file, row, (*path, "actions", action, key), value)
    for number, rule in enumerate(_list(file, PROTECTIONS)):
        if inner_of(rule, "if"):
            yield Left(file.place((PROTECTIONS, number), inner_of(rule, "name") or ""), *SOME_PULLS)
    for path, value in _places(file):
        is_left_out = _rule_of(file, path) in left_out
        for inside, found in () if is_left_out else _alternatives(path, value):
            yield Left(
                file.place(inside, found),
                "Alternatives among conditions have no equal.",
                "Choose the required checks: by a rule of the branch, or `requiredStatuses`.",
            )

"""Show a plan: changes as a diff, what was carried over, and what somebody has to do."""

import difflib
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import TypeVar

from bot.cli import output
from bot.cli.moving import opening
from bot.cli.moving.mapping import Carried, Left
from bot.cli.moving.plan import Change, Plan, WorkflowFix

T = TypeVar("T")

NOTHING = "Nothing"
KINDS = {"PUSH": "pushes to `headgate/merge/**`", "DRAFT_PR": "draft pull requests"}


def record(plan: Plan, *, is_written: bool) -> dict[str, object]:
    """Return a plan as one JSON value."""
    return {
        "branch": plan.branch,
        "sources": plan.sources,
        "testBranchKind": plan.vehicle.name,
        "written": is_written,
        "files": [_shown(one) for one in plan.changes],
        "carried": [_carried(one) for one in plan.carried],
        "left": [_left(one) for one in plan.left],
        "commands": _commands(plan),
    }


def show(plan: Plan, *, is_written: bool) -> None:
    """Print a plan."""
    output.line(
        f"{' and '.join(plan.sources) or 'No settings of another queue'}, for {plan.branch}"
    )
    _print_changes(plan.changes, is_written=is_written)
    _print_group("Carried over", plan.carried, _print_carried)
    _print_all_left(plan.left)
    if plan.changes:
        output.line("")
        output.line("Next" if is_written else "Next, after --write")
        for each in _commands(plan):
            output.print_text(f"  {each}")


def record_of_fix(fix: WorkflowFix, branch: str, *, is_written: bool) -> dict[str, object]:
    """Return the changes of workflows as one JSON value."""
    return {
        "branch": branch,
        "testBranchKind": fix.vehicle.name,
        "written": is_written,
        "files": [_shown(one) for one in fix.changes],
        "left": [_left(one) for one in fix.left],
    }


def show_fix(fix: WorkflowFix, branch: str, kind: object, *, is_written: bool) -> None:
    """Print the changes of workflows; `kind` is that of the queue's test branches, if known."""
    own = fix.vehicle.name
    output.line(f"Workflows, for {branch}: test branches are {KINDS[own]}")
    _print_changes(fix.changes, is_written=is_written)
    _print_all_left(fix.left)
    if fix.changes and kind not in (None, own):
        value = str(own == "DRAFT_PR").lower()
        setting = f"--set createPrsForTestingBranches={value}"
        output.line("")
        output.line("The queue has the other kind of test branch. Once this has landed:")
        output.print_text(f"  headgate queue update --branch {shlex.quote(branch)} {setting}")


def _commands(plan: Plan) -> list[str]:
    """Return the commands that make a pull request of what was written."""
    found = [shlex.join(each) for each in opening.commands(plan.changes, plan.branch)]
    return [*found, "headgate doctor    # once it is merged"] if found else []


def _diff(change: Change) -> str:
    before = [] if change.before is None else change.before.splitlines()
    lines = difflib.unified_diff(
        before, change.after.splitlines(), change.path, change.path, n=2, lineterm=""
    )
    return "\n".join(lines)


def _action(change: Change) -> str:
    if change.before is None:
        return "create"
    return "edit" if change.lines else "replace"


def _shown(change: Change) -> dict[str, object]:
    return {"path": change.path, "action": _action(change), "diff": _diff(change)}


def _carried(one: Carried) -> dict[str, object]:
    setting, _, _ = one.written.partition(":")
    return {**asdict(one.place), "setting": setting, "to": one.to, "remark": one.remark}


def _left(one: Left) -> dict[str, object]:
    return {**asdict(one.place), "why": one.why, "todo": one.todo}


def _print_changes(changes: Iterable[Change], *, is_written: bool) -> None:
    """Print each file with its changes."""
    chosen = list(changes)
    word = "written" if is_written else "not written yet"
    output.line("")
    output.line(f"Files ({len(chosen)}, {word})" if chosen else "Files: nothing to change")
    for each in chosen:
        output.line(f"  {_action(each)} {each.path}")
        for line in _diff(each).splitlines()[2:]:
            output.print_text(f"    {output.plain(line)}")


def _print_all_left(left: Iterable[Left]) -> None:
    """Print what was not carried over: first what somebody has to do."""
    chosen = list(left)
    _print_group("To do", [one for one in chosen if not _needs_nothing(one)], _print_left)
    _print_group("Not carried over", [one for one in chosen if _needs_nothing(one)], _print_left)


def _needs_nothing(one: Left) -> bool:
    return one.todo.startswith(NOTHING)


def _print_group(heading: str, items: Iterable[T], show: Callable[[T], None]) -> None:
    """Print items under a heading with their number."""
    chosen = list(items)
    if chosen:
        output.line("")
        output.line(f"{heading} ({len(chosen)})")
    for each in chosen:
        show(each)


def _at(place: Mapping[str, object]) -> str:
    line = "" if place["line"] is None else f":{place['line']}"
    said = "".join(f" {place[name]}" for name in ("key", "value") if place[name])
    return f"{place['file']}{line}{said}"


def _print_carried(one: Carried) -> None:
    remark = f" ({one.remark})" if one.remark else ""
    output.line(f"  {_at(asdict(one.place))} → {one.written}{remark}")


def _print_left(one: Left) -> None:
    output.line(f"  {_at(asdict(one.place))}")
    output.line(f"    {one.why}")
    if one.todo != f"{NOTHING}.":
        output.line(f"    → {one.todo}")

"""Change workflow files as text, so that they also run on the queue's test branches.

Only insertions, at places that the YAML parser names: everything else of a file stays as it is.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from bot.cli.moving import expressions
from bot.cli.moving.expressions import Goal
from bot.github import workflow_files, workflows
from bot.github.workflow_files import Unread, Workflow
from service.provider.values import Vehicle

PATTERN = f'"{workflows.PATTERN}"'
INDENT = "  "
COMMENT = re.compile(r"#.*")


@dataclass(frozen=True, slots=True)
class Insertion:
    """Text in place of the characters from `start` to `end`; `line` is where people find it."""

    start: int
    end: int
    text: str
    line: int
    what: str


@dataclass(frozen=True, slots=True)
class Missed:
    """A line that was not changed: why, and what to do."""

    line: int
    text: str
    why: str
    todo: str


@dataclass(frozen=True, slots=True)
class Edited:
    """A workflow file after the changes."""

    text: str
    done: tuple[Insertion, ...] = ()
    missed: tuple[Missed, ...] = ()


def edited(name: str, text: str, goal: Goal) -> Edited:
    """Return a workflow with the trigger and the conditions that the goal asks for.

    A file that cannot be read is returned as it is. Safe to repeat: a second time changes nothing.
    """
    workflow = read_one(name, text, goal.target)
    try:
        root = None if workflow is None else yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError):
        # Stricter than the reader, for example with tabs.
        return Edited(text, (), (Missed(1, "", BROKEN, YOURSELF),))
    if workflow is None or not isinstance(root, MappingNode):
        return Edited(text)
    editor = _Editor(text, goal, root)
    if _needs_push(workflow, goal):
        editor.add_trigger(root)
    editor.widen(root)
    insertions = editor.distinct()
    changed = applied(text, insertions)
    if insertions and not _is_sound(read_one(name, changed, goal.target), workflow):
        return Edited(text, (), (Missed(1, "", BROKEN, YOURSELF),))
    return Edited(changed, insertions, (*editor.missed, *_missed(text, insertions, goal)))


def read_one(name: str, text: str, target: str) -> Workflow | None:
    """Return one workflow; None if it cannot be read or is none."""
    content = {name: text.encode("utf-8", "replace")}
    found = next(iter(workflow_files.pieces(content, target)), None)
    return None if isinstance(found, Unread) else found


def applied(text: str, insertions: Sequence[Insertion]) -> str:
    """Return the text with all insertions, the last first so that places stay true."""
    in_order = sorted(insertions, key=lambda one: (one.start, one.end))
    for each in in_order[::-1]:
        text = text[: each.start] + each.text + text[each.end :]
    return text


def _needs_push(workflow: Workflow, goal: Goal) -> bool:
    """Return whether a workflow must start on pushes of test branches and does not."""
    if goal.vehicle is not Vehicle.PUSH or workflow.on_push:
        return False
    if workflow.elsewhere in goal.places:
        return True
    if not (workflow.on_draft or workflow.wrong_types):
        return False
    return bool(workflow.guarded or workflow.wrong_types) or any(
        workflow.reports(name) for name in goal.required
    )


def _is_sound(after: Workflow | None, before: Workflow) -> bool:
    """Return whether the changed file still has the same jobs, and starts where it started."""
    if after is None:
        return False
    kept = (before.jobs, before.on_draft, before.filtered)
    return kept == (after.jobs, after.on_draft, after.filtered) and after.on_push >= before.on_push


BROKEN = "Headgate could not change this file without breaking it."
YOURSELF = f"Let it also start, or be true, on `{workflows.PATTERN}`, if it matters there."
COMMENT_OF_LINE = re.compile(r"(?:^|\s)#.*")
ON = re.compile(r"""["']?on["']?\s*:""")
OF_HEADS = (
    "If its check judges the pull request alone, such as its title, name it in "
    "`headOnlyStatuses`. Else leave it."
)
GRAPHITE = "withgraphite/graphite-ci-action"


def _missed(text: str, insertions: Sequence[Insertion], goal: Goal) -> Iterator[Missed]:
    """Yield the lines that name another queue and that no change covers."""
    covered = {
        line
        for one in insertions
        for line in range(one.line, one.line + text.count("\n", one.start, one.end) + 1)
    }
    in_triggers = False
    for number, line in enumerate(text.splitlines(), 1):
        code = COMMENT_OF_LINE.sub("", line)
        if code.strip() and not code.startswith((" ", "-")):
            in_triggers = ON.match(code) is not None
        if GRAPHITE in code:
            why = "It asks Graphite whether to skip CI, and a skipped check is no evidence here."
            todo = "Remove this step, and the conditions that read its output."
            yield Missed(number, code.strip(), why, todo)
        elif in_triggers or number in covered or expressions.OURS in code:
            continue
        elif expressions.is_opposite(code, goal):
            why = "The other queue leaves this out; Headgate's test branches run it."
            yield Missed(number, code.strip(), why, OF_HEADS)
        elif workflow_files.place_in(code) in goal.places:
            why = "This line names the other queue in a form that Headgate does not change."
            yield Missed(number, code.strip(), why, YOURSELF)


class _Editor:
    """Collects the changes of one file."""

    def __init__(self, text: str, goal: Goal, root: MappingNode) -> None:
        self.text = text
        self.goal = goal
        self.jobs = dict(_names_of_jobs(root))
        self.found: list[Insertion] = []
        self.missed: list[Missed] = []
        self.newline = "\r\n" if "\r\n" in text else "\n"

    def distinct(self) -> tuple[Insertion, ...]:
        """Return the changes; those of an alias are those of its anchor."""
        return tuple(dict.fromkeys(self.found))

    def _put(self, at: int, text: str, node: Node, what: str, end: int | None = None) -> None:
        line = node.start_mark.line + 1
        self.found.append(Insertion(at, at if end is None else end, text, line, what))

    def _miss(self, node: Node, text: str, why: str) -> None:
        self.missed.append(Missed(node.start_mark.line + 1, text, why, YOURSELF))

    # ------------------------------------------------------------------------ triggers

    def add_trigger(self, root: MappingNode) -> None:
        """Let the workflow start on pushes to the queue's test branches."""
        on = _value(root, "on")
        if isinstance(on, ScalarNode):
            indent = self.newline + INDENT
            pushes = f"push:{indent}{INDENT}branches: [{PATTERN}]"
            both = f"{indent}{on.value}:{indent}{pushes}"
            # What stands before the value on its line stays, up to the colon.
            at = self.text.rindex(":", 0, on.start_mark.index) + 1
            if self.text[at : on.start_mark.index].strip():
                self._miss(on, f"on: {on.value}", BETWEEN)
            else:
                self._put(at, both, on, TRIGGER, on.end_mark.index)
        elif isinstance(on, SequenceNode):
            self._add_to_list(on)
        elif isinstance(on, MappingNode):
            push = _value(on, "push")
            if isinstance(push, MappingNode) and push.value:
                self._add_branch(push)
            else:
                self._add_push(on)

    def _add_to_list(self, on: SequenceNode) -> None:
        """Make a mapping of a list of events, item by item."""
        if on.flow_style:
            self._put(on.start_mark.index, "{", on, TRIGGER, on.start_mark.index + 1)
            for item in on.value:
                self._put(item.end_mark.index, ": {}", item, TRIGGER)
            end = on.end_mark.index - 1
            text = f"{self._comma(on)}push: {{branches: [{PATTERN}]}}}}"
            self._put(end, text, on, TRIGGER, end + 1)
            return
        for item in on.value:
            dash = self.text.rindex("-", 0, item.start_mark.index)
            self._put(dash, " ", item, TRIGGER, dash + 1)
            self._put(item.end_mark.index, ":", item, TRIGGER)
        self._put_lines(on.value[-1], on.value[-1].start_mark.column, self._push_lines())

    def _add_push(self, on: MappingNode) -> None:
        if on.flow_style:
            end = on.end_mark.index - 1
            text = f"{self._comma(on)}push: {{branches: [{PATTERN}]}}"
            self._put(end, text, on, TRIGGER)
            return
        self._put_lines(_last_leaf(on), on.start_mark.column, self._push_lines())

    def _push_lines(self) -> tuple[str, ...]:
        return ("push:", f"{INDENT}branches: [{PATTERN}]")

    def _add_branch(self, push: MappingNode) -> None:
        """Add the test branches to the branches of a push, or beside its other filters."""
        branches = _value(push, "branches")
        if _value(push, "branches-ignore") is not None:
            self._miss(push, "branches-ignore", IGNORED)
        elif isinstance(branches, SequenceNode) and branches.flow_style:
            end = branches.end_mark.index - 1
            self._put(end, f"{self._comma(branches)}{PATTERN}", branches, TRIGGER)
        elif isinstance(branches, SequenceNode):
            last = branches.value[-1]
            dash = self.text.rindex("-", 0, last.start_mark.index)
            column = dash - self.text.rfind("\n", 0, dash) - 1
            self._put_lines(last, column, (f"- {PATTERN}",))
        elif isinstance(branches, ScalarNode) and branches.value:
            self._put(branches.start_mark.index, "[", branches, TRIGGER)
            self._put(branches.end_mark.index, f", {PATTERN}]", branches, TRIGGER)
        elif push.flow_style:
            end = push.end_mark.index - 1
            self._put(end, f"{self._comma(push)}branches: [{PATTERN}]", push, TRIGGER)
        else:
            self._put_lines(_last_leaf(push), push.start_mark.column, (f"branches: [{PATTERN}]",))

    def _comma(self, around: MappingNode | SequenceNode) -> str:
        """Return what separates a new last item of a flow from those before it."""
        if not around.value:
            return ""
        last = around.value[-1]
        end = (last[1] if isinstance(last, tuple) else last).end_mark.index
        after = COMMENT.sub("", self.text[end : around.end_mark.index])
        return " " if "," in after else ", "

    def _put_lines(self, after: Node, column: int, lines: Sequence[str]) -> None:
        """Insert lines after the one on which a value ends."""
        end = self.text.find("\n", after.end_mark.index)
        at = len(self.text) if end < 0 else end - (self.newline == "\r\n")
        text = "".join(f"{self.newline}{' ' * column}{line}" for line in lines)
        self._put(at, text, after, TRIGGER)

    # ---------------------------------------------------------------------- conditions

    def widen(self, root: MappingNode) -> None:
        """Widen the conditions of jobs and steps, and other expressions, that name the other queue.

        A job that does not run in the other queue is left as it is, unless another one reports
        its name there: skipped on test branches it would be no evidence.
        """
        self._look(root, (), is_flow=False)

    def _look(self, node: Node, path: tuple[str, ...], *, is_flow: bool) -> None:
        inside = is_flow or bool(getattr(node, "flow_style", False))
        if isinstance(node, MappingNode):
            for key, value in node.value:
                if (*path, key.value) != ("on",):
                    self._look(value, (*path, str(key.value)), is_flow=inside)
        elif isinstance(node, SequenceNode):
            for item in node.value:
                self._look(item, (*path, "[]"), is_flow=inside)
        elif path[-1:] == ("if",) and len(path) == 3 and path[0] == "jobs":
            shown = self.jobs.get(path[1], path[1])
            self._change(node, self._condition(shown in self.goal.twins), is_flow=is_flow)
        elif path[-1:] == ("if",) and path[2:] == ("steps", "[]", "if"):
            self._change(node, self._condition(True), is_flow=is_flow)
        elif isinstance(node, ScalarNode) and "${{" in node.value:
            change = partial(expressions.widened_inside, goal=self.goal)
            self._change(node, change, is_flow=is_flow)

    def _condition(self, narrows: bool) -> Callable[[str], str]:
        return partial(expressions.widened, goal=self.goal, narrows=narrows)

    def _change(self, node: Node, change: Callable[[str], str], *, is_flow: bool) -> None:
        if not isinstance(node, ScalarNode):
            return
        start, end = node.start_mark.index, node.end_mark.index
        raw = self.text[start:end]
        new = _in_style(raw, node.style, change, is_flow=is_flow)
        if new != raw:
            self._put(start, new, node, CONDITION, end)


TRIGGER = "also starts on the queue's test branches"
IGNORED = "`branches-ignore` leaves test branches out, and GitHub allows no `branches` beside it."
BETWEEN = "A comment stands between the key and its value, so Headgate does not change it."
CONDITION = "is also true on the queue's test branches"


def _in_style(raw: str, style: str | None, change: Callable[[str], str], *, is_flow: bool) -> str:
    """Return a scalar with a changed expression, quoted as before; plain in a flow: quoted."""
    match style:
        case "'":
            return "'" + change(raw[1:-1].replace("''", "'")).replace("'", "''") + "'"
        case '"':
            return '"' + change(raw[1:-1]) + '"'
        case "|" | ">":
            head, line_end, content = raw.partition("\n")
            text = content.rstrip()
            return f"{head}{line_end}{change(text)}{content[len(text) :]}"
    new = change(raw)
    if new == raw or not is_flow:
        return new
    one_line = " ".join(new.split())
    return '"' + one_line.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _names_of_jobs(root: MappingNode) -> Iterator[tuple[str, str]]:
    """Yield the names under which jobs report, of those that say so."""
    jobs = _value(root, "jobs")
    for key, job in jobs.value if isinstance(jobs, MappingNode) else ():
        name = _value(job, "name")
        if isinstance(name, ScalarNode):
            yield key.value, name.value


def _value(node: Node | None, key: str) -> Node | None:
    pairs = node.value if isinstance(node, MappingNode) else ()
    return next((value for name, value in pairs if name.value == key), None)


def _last_leaf(node: Node) -> Node:
    """Return the value that ends last; that of a key without a value is its key."""
    if isinstance(node, MappingNode) and node.value and not node.flow_style:
        key, value = node.value[-1]
        return key if isinstance(value, ScalarNode) and not value.value else _last_leaf(value)
    if isinstance(node, SequenceNode) and node.value and not node.flow_style:
        return _last_leaf(node.value[-1])
    return node

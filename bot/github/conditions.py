"""Decide whether an `if:` of a workflow can be true on a test branch. Runs in a parser process.

Three values: true, false, and unknown for everything but what is known of a test branch: its event,
its reference and its names. Rules: GitHub's "Evaluate expressions in workflows and actions".
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

CONDITION_CHARS_MAX = 4000
DEPTH_MAX = 50
TOKENS = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<sign>\|\||&&|==|!=|<=|>=|[!()<>,\[\]])"
    r"|(?P<name>[A-Za-z_][\w.*-]*)|(?P<number>[-+]?[\d.]\w*))"
)
WHOLE_EXPRESSION = re.compile(r"\$\{\{(.*)\}\}", re.DOTALL)
RUNS_ANYWAY = re.compile(r"\b(?:always|failure|cancelled)\s*\(", re.IGNORECASE)
"""Functions with which a job runs although one that it needs was skipped."""

Known = str | bool | None
"""A value of an expression; None: unknown."""

Names = Mapping[str, Known]
"""The facts known of a test branch: contexts in lower case."""


class Unclear(Exception):
    """The expression has a form that is not understood here."""


def on_draft(branch: str, target: str) -> Names:
    """Return what a job sees that a draft pull request of a test branch starts.

    Whether it is a draft is left out: the audit `workflow-drafts` looks for that.
    """
    return {
        **_event("pull_request"),
        "github.ref": "refs/pull/1/merge",
        "github.ref_name": "1/merge",
        "github.head_ref": branch,
        "github.base_ref": target,
        "github.event.pull_request.merged": False,
        "github.event.pull_request.head.ref": branch,
        "github.event.pull_request.base.ref": target,
    }


def on_push(branch: str) -> Names:
    """Return what a job sees that a push of a test branch starts."""
    return {
        **_event("push"),
        "github.ref": f"refs/heads/{branch}",
        "github.ref_name": branch,
        "github.head_ref": "",
        "github.base_ref": "",
        "github.event.pull_request": "",
        "github.event.pull_request.draft": "",
        "github.event.pull_request.number": "",
        "github.event.number": "",
    }


def _event(name: str) -> dict[str, Known]:
    return {
        "github.event_name": name,
        "github.ref_type": "branch",
        "github.event.merge_group": "",
        "github.event.merge_group.head_ref": "",
        "github.event.merge_group.base_ref": "",
        "github.event.merge_group.head_sha": "",
        "github.event.merge_group.base_sha": "",
    }


def runs_although_skipped(condition: object) -> bool:
    """Return whether a job with this condition may run although one that it needs is skipped."""
    return isinstance(condition, str) and RUNS_ANYWAY.search(condition) is not None


def can_be_true(condition: object, names: Names) -> bool:
    """Return False if the condition of a job or step is false there, whatever else is so."""
    if isinstance(condition, bool):
        return condition
    if not isinstance(condition, str) or len(condition) > CONDITION_CHARS_MAX:
        return True
    whole = WHOLE_EXPRESSION.fullmatch(condition.strip())
    text = condition if whole is None else whole[1]
    if "${{" in text:
        return True  # a text around an expression, which is never empty
    try:
        value = _Reader(_tokens(text), names).whole()
    except Unclear:
        return True
    return value is None or _is_true(value)


def _tokens(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = TOKENS.match(text, at)
        if match is None or match.lastgroup is None:
            raise Unclear
        found.append((match.lastgroup, match[match.lastgroup]))
        at = match.end()
    return found


def _is_true(value: str | bool) -> bool:
    return value if isinstance(value, bool) else value != ""


def _either(values: list[Known]) -> Known:
    """Return `||` of values: what decides is known, even if others are not."""
    if any(value is not None and _is_true(value) for value in values):
        return True
    return None if None in values else False


def _all(values: list[Known]) -> Known:
    if any(value is not None and not _is_true(value) for value in values):
        return False
    return None if None in values else True


def _negated(value: Known) -> Known:
    return None if value is None else not _is_true(value)


@dataclass(slots=True)
class _Reader:
    """Reads an expression from its tokens; each method returns the value of one level."""

    tokens: list[tuple[str, str]]
    names: Names
    at: int = 0
    depth: int = 0

    def whole(self) -> Known:
        value = self.either()
        if self.at != len(self.tokens):
            raise Unclear
        return value

    def either(self) -> Known:
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise Unclear
        values = [self.both()]
        while self._takes("||"):
            values.append(self.both())
        self.depth -= 1
        return values[0] if len(values) == 1 else _either(values)

    def both(self) -> Known:
        values = [self.compared()]
        while self._takes("&&"):
            values.append(self.compared())
        return values[0] if len(values) == 1 else _all(values)

    def compared(self) -> Known:
        left = self.single()
        for sign in ("==", "!="):
            if self._takes(sign):
                is_same = _is_same(left, self.single())
                return is_same if sign == "==" else _negated(is_same)
        return left

    def single(self) -> Known:
        negations = 0
        while self._takes("!"):
            negations += 1
        value = self._plain()
        for _ in range(negations):
            value = _negated(value)
        return value

    def _plain(self) -> Known:
        if self._takes("("):
            value = self.either()
            self._must(")")
            return value
        kind, text = self._next()
        if kind == "text":
            return text[1:-1].replace("''", "'")
        if kind == "number":
            return None
        if kind != "name":
            raise Unclear
        if self._takes("("):
            return self._called(text.lower())
        is_indexed = False
        while self._takes("["):
            self.either()
            self._must("]")
            is_indexed = True
        literals: dict[str, Known] = {"true": True, "false": False, "null": ""}
        known = {**self.names, **literals}
        return None if is_indexed else known.get(text.lower())

    def _called(self, function: str) -> Known:
        arguments: list[Known] = []
        if not self._takes(")"):
            arguments.append(self.either())
            while self._takes(","):
                arguments.append(self.either())
            self._must(")")
        return _result(function, arguments)

    def _next(self) -> tuple[str, str]:
        if self.at >= len(self.tokens):
            raise Unclear
        self.at += 1
        return self.tokens[self.at - 1]

    def _takes(self, sign: str) -> bool:
        if self.at < len(self.tokens) and self.tokens[self.at] == ("sign", sign):
            self.at += 1
            return True
        return False

    def _must(self, sign: str) -> None:
        if not self._takes(sign):
            raise Unclear


def _is_same(left: Known, right: Known) -> Known:
    """Return whether two values are equal; GitHub ignores case, and an absent value is empty."""
    if left is None or right is None:
        return None
    if isinstance(left, str) and isinstance(right, str):
        return left.lower() == right.lower()
    if isinstance(left, bool) and isinstance(right, bool):
        return left is right
    # GitHub makes numbers of both: of a text other than the empty one that is none.
    text, truth = (left, right) if isinstance(left, str) else (right, left)
    return text == "" and truth is False


def _result(function: str, arguments: list[Known]) -> Known:
    if function == "always":
        return True
    if function in ("startswith", "endswith", "contains") and len(arguments) == 2:
        text, part = arguments
        if not isinstance(text, str) or not isinstance(part, str):
            return None
        text, part = text.lower(), part.lower()
        match function:
            case "startswith":
                return text.startswith(part)
            case "endswith":
                return text.endswith(part)
            case _:
                return part in text
    return None

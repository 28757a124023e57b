"""Expressions of rules, in CEL: what they may contain, and what they are for a pull request.

An expression ends soon, whatever is written in it: it is short, no macro runs inside another, none
makes a list larger than the one it reads, and patterns of `matches` are small.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise, zip_longest

import cel

from service import globs
from service.mergequeue.engine.rules import Seen

CHARS_MAX = 500
MACROS = ("all", "exists", "exists_one", "filter")
"""Without `map`: lists of lists, made one from another, take minutes and all memory."""

MACROS_MAX = 2
ADDED_MAX = 4
"""The most `+` beside a macro, which would otherwise run for each element of a long sum of lists,
and make such a sum each time."""

MATCHES_MAX = 2
GLOBS_MAX = 50
"""Different globs that one expression may compare with the changed paths."""

VARIABLES = (
    "number",
    "title",
    "author",
    "branch",
    "base",
    "labels",
    "approvals",
    "draft",
    "fork",
    "auto_merge",
    "depends_on",
)
PATH_FUNCTIONS = ("touches", "only")
READABLE = frozenset({*VARIABLES, *PATH_FUNCTIONS})
"""What an expression can ask of a pull request."""
FUNCTIONS = (*PATH_FUNCTIONS, "size", "contains", "startsWith", "endsWith", "matches", "string")

UNKNOWN_PATHS = "asks for the changed paths, which are not known"
NOT_BOOLEAN = "is not true or false"

_DATA_ERRORS = (LookupError, ArithmeticError)
"""What goes wrong for some pull requests: no such element, division by zero, too large."""

_EXAMPLES = (
    Seen(1, "", "", "", "", (), (), draft=False, fork=False, auto_merge=False),
    Seen(
        number=2,
        title="1",
        author="author",
        branch="branch",
        base="base",
        labels=("a", "b", "c", "d"),
        approvals=("a", "b", "c", "d"),
        draft=True,
        fork=True,
        auto_merge=True,
        depends_on=(1, 2, 3, 4),
    ),
)

_TOKEN = re.compile(
    r"""
    //[^\n]* | \s+
    | (?P<text>
        [bB]?[rR](?: \"{3}(?s:.*?)\"{3} | '{3}(?s:.*?)'{3} | \"[^\"\n\r]*\" | '[^'\n\r]*' )
      | [bB]?(?: \"{3}(?s:\\.|[^\\])*?\"{3} | '{3}(?s:\\.|[^\\])*?'{3}
               | \"(?:\\.|[^\"\\\n\r])*\" | '(?:\\.|[^'\\\n\r])*' )
      )
    | (?P<token> [A-Za-z_][A-Za-z0-9_]* | . )
    """,
    re.VERBOSE,
)
"""What an expression is made of: comments and space, texts, and all other tokens."""

_COUNTED = re.compile(r"\{\s*[0-9]")
_PARSE_ERROR = re.compile(r"ERROR: <input>:(\d+):(\d+): (?:Syntax error: )?([^\n]{1,200})")


class Unclear(Exception):
    """An expression that is not true or false for a pull request; its text says why."""


@dataclass(slots=True)
class _Paths:
    """The functions about changed paths. They raise nothing: the library would print it."""

    paths: tuple[str, ...] | None
    found: dict[str, frozenset[str]] = field(default_factory=dict)
    fault: str = ""

    def touches(self, *patterns: object) -> bool | None:
        each = self._matching(patterns)
        return None if each is None else any(each)

    def only(self, *patterns: object) -> bool | None:
        each = self._matching(patterns)
        if each is None or not self.paths:
            return None if each is None else False
        return frozenset().union(*each) == frozenset(self.paths)

    def _matching(self, patterns: Sequence[object]) -> list[frozenset[str]] | None:
        """Return the paths that match each pattern; None, with the fault noted, if unknown."""
        if self.paths is None:
            self.fault = UNKNOWN_PATHS
        elif not all(isinstance(each, str) for each in patterns):
            self.fault = "gives `touches` or `only` something else than texts"
        elif len(self.found.keys() | set(patterns)) > GLOBS_MAX:
            self.fault = f"compares more than {GLOBS_MAX} different globs with the paths"
        else:
            return [self._of(str(each), self.paths) for each in patterns]
        return None

    def _of(self, pattern: str, paths: tuple[str, ...]) -> frozenset[str]:
        if pattern not in self.found:
            self.found[pattern] = frozenset(
                path for path in paths if globs.matches_path(pattern, path)
            )
        return self.found[pattern]


def fault(expression: str) -> str | None:
    """Return what is wrong with an expression, else None."""
    try:
        program = _program(expression)
        unclear = [_depends(program, seen) for seen in _EXAMPLES]
    except Unclear as error:
        return str(error)
    return unclear[0] if all(unclear) else None


def is_true(expression: str, seen: Seen, paths: tuple[str, ...] | None) -> bool:
    """Return what the expression is for the pull request, else raise Unclear."""
    try:
        return _run(_program(expression), seen, paths)
    except _DATA_ERRORS as error:
        raise Unclear(_line(error)) from None


def reads(expression: str) -> frozenset[str]:
    """Return the variables and functions about paths that it uses; none if it has a fault."""
    try:
        program = _program(expression)
    except Unclear:
        return frozenset()
    return READABLE.intersection([*program.variables(), *program.functions()])


def _depends(program: cel.Program, seen: Seen) -> str | None:
    """Return what goes wrong for this example, and may not for others; else None."""
    try:
        _run(program, seen, ("docs/a.md",))
    except _DATA_ERRORS as error:
        return _line(error)
    return None


def _run(program: cel.Program, seen: Seen, paths: tuple[str, ...] | None) -> bool:
    """Return the value; raise one of `_DATA_ERRORS`, or Unclear if it never is one."""
    known = _Paths(paths)
    functions: dict[str, Callable[..., object]] = {"touches": known.touches, "only": known.only}
    variables = {name: getattr(seen, name) for name in VARIABLES}
    try:
        value = program.execute(cel.Context(variables=variables, functions=functions))
    except (TypeError, ValueError, RuntimeError) as error:
        raise Unclear(known.fault or _line(error)) from None
    if known.fault or not isinstance(value, bool):
        raise Unclear(known.fault or NOT_BOOLEAN)
    return value


@lru_cache(maxsize=500)
def _program(expression: str) -> cel.Program:
    """Return the expression, compiled, if it keeps all bounds, else raise Unclear."""
    if len(expression) > CHARS_MAX:
        raise Unclear(f"is longer than {CHARS_MAX} characters")
    try:
        program = cel.compile(expression)
    except ValueError as error:
        raise Unclear(_parse_error(str(error))) from None
    tokens = [each["token"] for each in _TOKEN.finditer(expression) if each["token"]]
    _check_calls(tokens, program)
    bound = _macro_variables(expression, tokens)
    if unknown := sorted(set(program.variables()) - set(VARIABLES) - bound):
        raise Unclear(f"names the unknown `{unknown[0]}`; there are {', '.join(VARIABLES)}")
    return program


def _check_calls(tokens: Sequence[str], program: cel.Program) -> None:
    """Raise Unclear for a call of something else; the library does not name its macros."""
    written = {one for one, following in pairwise(tokens) if following == "("} - {"in"}
    called = {name for name in written.union(program.functions()) if name.isidentifier()}
    if unknown := sorted(called - {*FUNCTIONS, *MACROS}):
        known = ", ".join((*FUNCTIONS, *MACROS))
        raise Unclear(f"calls the unknown `{unknown[0]}`; there are {known}")


def _macro_variables(expression: str, tokens: Sequence[str]) -> set[str]:
    """Return the names that macros bind, if these keep the bounds, else raise Unclear."""
    names, ends_at, depth = set(), None, 0
    count = 0
    for token, following, name in zip_longest(tokens, tokens[1:], tokens[2:], fillvalue=""):
        if token == "`":
            raise Unclear("has a name in backquotes")
        if token in MACROS and following == "(":
            if ends_at is not None:
                raise Unclear(f"has `{token}` inside another of {', '.join(MACROS)}")
            ends_at, count = depth, count + 1
            names.add(name)
        depth += {"(": 1, ")": -1}.get(token, 0)
        if token == ")" and depth == ends_at:
            ends_at = None
    if count > MACROS_MAX:
        raise Unclear(f"has more than {MACROS_MAX} of {', '.join(MACROS)}")
    if count and tokens.count("+") > ADDED_MAX:
        raise Unclear(f"has more than {ADDED_MAX} `+` together with one of {', '.join(MACROS)}")
    if "matches" in tokens:
        _check_patterns(expression, tokens.count("matches"), count)
    return names


def _check_patterns(expression: str, count: int, macros: int) -> None:
    """Raise Unclear unless its patterns are small, and each is made once."""
    if count > MATCHES_MAX:
        raise Unclear(f"has more than {MATCHES_MAX} `matches`")
    if macros:
        raise Unclear(f"has `matches` together with one of {', '.join(MACROS)}")
    if _COUNTED.search(expression):
        raise Unclear("has a counted repetition in a pattern, such as `{2}`")


def _parse_error(text: str) -> str:
    """Return where and why the library cannot read an expression, in a line."""
    found = _PARSE_ERROR.search(text)
    if found is None:
        return "is no expression of CEL"
    return f"has a mistake at line {found[1]}, character {found[2]}: {found[3]}"


def _line(error: Exception) -> str:
    """Return that it fails, with the first line of why, without the library's advice."""
    return "fails: " + re.split(r"\n|\. Check |\. CEL ", str(error))[0][:200].strip()

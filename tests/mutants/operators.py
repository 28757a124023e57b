"""Source text to mutants: each is the text with one small change to one condition."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

NEIGHBORS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
# A comparison by one of these is negated by its neighbor already.
OPPOSITES = (ast.Eq, ast.NotEq, ast.In, ast.NotIn, ast.Is, ast.IsNot)
# By these SQLAlchemy keeps compiled statements.
CACHED = ("cache_ok", "inherit_cache")


@dataclass(frozen=True, slots=True)
class Mutant:
    """One changed place: the function around it, its lines, its code before and after.

    Outside of functions `function` is the name that gets the value. `source` is the whole text
    with the change.
    """

    function: str
    line: int
    last_line: int
    before: str
    after: str
    source: str

    @property
    def name(self) -> str:
        """What people and `equivalent.py` call it: the line may move, so it is left out."""
        return f"{self.function}: {self.before} -> {self.after}"


def mutants_of(source: str) -> list[Mutant]:
    """Every mutant of a module, in the order of its text; no two have the same text."""
    text = source.encode()
    starts = _line_starts(text)
    made: dict[str, Mutant] = {}
    for function, node, changed in _changes(ast.parse(source), ""):
        first = starts[node.lineno - 1] + node.col_offset
        last_line = node.end_lineno or node.lineno
        last = starts[last_line - 1] + (node.end_col_offset or 0)
        before, after = ast.unparse(node), ast.unparse(changed)
        mutated = (text[:first] + f"({after})".encode() + text[last:]).decode()
        made.setdefault(mutated, Mutant(function, node.lineno, last_line, before, after, mutated))
    return sorted(made.values(), key=lambda mutant: mutant.line)


def _line_starts(text: bytes) -> list[int]:
    """Where each line begins, in bytes, as the positions of a syntax tree count."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


def _changes(node: ast.AST, function: str) -> Iterator[tuple[str, ast.expr, ast.expr]]:
    """The places below a node that can be changed, and what each may become."""
    if _is_left_alone(node):
        return
    function = _function_at(node, function)
    if isinstance(node, ast.expr):
        yield from ((function, node, changed) for changed in _changed(node))
    for condition in _conditions(node):
        yield function, condition, ast.UnaryOp(ast.Not(), condition)
    for name, value in ast.iter_fields(node):
        if name in ("decorator_list", "annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _changes(child, function)


def _is_left_alone(node: ast.AST) -> bool:
    """Whether nothing below a node is changed.

    Texts are no conditions, and Python 3.11 does not say where in a text a place is. SQLAlchemy
    lets a parameter of `in_` expand whatever `expanding` says, and compiles the same statement
    whether it keeps it or not.
    """
    is_expanding = isinstance(node, ast.keyword) and node.arg == "expanding"
    is_kept = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in CACHED
    return is_expanding or is_kept or isinstance(node, ast.JoinedStr)


def _function_at(node: ast.AST, function: str) -> str:
    """What a node is in: a function or class, else the name that gets a value."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return f"{function}.{node.name}".lstrip(".")
    if not function and isinstance(node, ast.Assign | ast.AnnAssign):
        return ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
    return function


def _conditions(node: ast.AST) -> list[ast.expr]:
    """The conditions that a statement or expression asks, but those that `_changed` negates."""
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        asked = [node.test]
    elif isinstance(node, ast.comprehension):
        asked = list(node.ifs)
    else:
        asked = []
    return [each for each in asked if not _is_negated_elsewhere(each)]


def _is_negated_elsewhere(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return True
    if isinstance(node, ast.Constant):
        return True
    return (
        isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], OPPOSITES)
    )


def _changed(node: ast.expr) -> Iterator[ast.expr]:
    """What one expression may become."""
    match node:
        case ast.Compare():
            for at, operator in enumerate(node.ops):
                ops = [*node.ops[:at], NEIGHBORS[type(operator)](), *node.ops[at + 1 :]]
                yield ast.Compare(node.left, ops, node.comparators)
                if isinstance(operator, ast.In | ast.NotIn):
                    yield from _smaller_compare(node, at)
        case ast.BoolOp():
            for at in range(len(node.values)):
                rest = [*node.values[:at], *node.values[at + 1 :]]
                yield rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
        case ast.UnaryOp(op=ast.Not() | ast.Invert()):
            yield node.operand
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Set():
            yield from _smaller_set(node)
        case _:
            yield from _changed_query(node)


def _changed_query(node: ast.expr) -> Iterator[ast.expr]:
    """What a condition of SQL, or a statement with conditions, may become."""
    match node:
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr()) if _is_asked(node):
            yield from (node.left, node.right)
        case ast.Call(func=ast.Attribute(attr="where")):
            for at in range(len(node.args)):
                yield ast.Call(node.func, [*node.args[:at], *node.args[at + 1 :]], node.keywords)
        case _:
            return


def _is_asked(node: ast.BinOp) -> bool:
    """Whether an operand is a condition of SQL or a set that is made here; a type is neither."""
    return any(
        isinstance(each, ast.Compare | ast.Call | ast.UnaryOp)
        or (isinstance(each, ast.BinOp) and _is_asked(each))
        for each in (node.left, node.right)
    )


def _smaller_set(node: ast.Set) -> Iterator[ast.expr]:
    """The set without one of its elements."""
    for at in range(len(node.elts)):
        rest = [*node.elts[:at], *node.elts[at + 1 :]]
        yield ast.Set(rest) if rest else ast.Call(ast.Name("set"), [], [])


def _smaller_compare(node: ast.Compare, at: int) -> Iterator[ast.expr]:
    """The comparison with one element less in the tuple that it looks in."""
    where = node.comparators[at]
    if isinstance(where, ast.Tuple):
        for gone in range(len(where.elts)):
            rest = ast.Tuple([*where.elts[:gone], *where.elts[gone + 1 :]], ast.Load())
            others = [*node.comparators[:at], rest, *node.comparators[at + 1 :]]
            yield ast.Compare(node.left, node.ops, others)

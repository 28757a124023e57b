"""House rules over one source file; each yields what it finds as `path:line: what`."""

import ast
import re
from collections.abc import Callable, Iterator
from typing import TypeVar

from tests.tidy.tree import PRODUCT, Source, is_in

FILE_LINES_MAX = 600
TEST_FILE_LINES_MAX = 700
FUNCTION_LINES_MAX = 60
HURTS = re.compile(r"Hurts [^:]+: .+")
PARAMETERS_MAX = 5
PACKAGE_DOCSTRING_LINES_MAX = 60
SLEEPERS = (
    "tests/harness/clock.py",
    "tests/whole_service/loop.py",
    "tests/flaky/recorded/record.py",
    "tests/laboratory/record.py",
)
# Packages whose docstring is a whole theory with a worked example.
THEORIES = ("service/mergequeue/engine/__init__.py", "service/testhealth/detector/__init__.py")
THEORY_LINES_MAX = 100

MIGRATIONS = "service/database/migrations/versions"

# Who may read a clock or make an id: the service's one place, the sandbox's own world, and what
# runs without either.
CLOCKS = ("service/clock.py", "bot/sandbox", "bot/uploader")
READS_A_CLOCK = re.compile(
    r"(^|\.)((datetime|date)\.(now|utcnow|today)"
    r"|time\.(time|monotonic|perf_counter|process_time)(_ns)?"
    r"|(time|asyncio)\.sleep"
    r"|(uuid\.)?uuid[14]"
    r"|random\.\w+)$"
)
FROM_CLOCKS = {
    "time": {"time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "sleep"},
    "asyncio": {"sleep"},
    "uuid": {"uuid1", "uuid4"},
}
# A seeded generator handed in is an argument like any other.
SEEDED = "random.Random"

# Its commands import the service only where they need it: tests/cli/test_start.py.
THIN = "bot/cli"
# It imports packages that only some installations have.
OF_EXTRA = "bot/tracing.py"
SHELL_COMMANDS = (
    "callback",
    "client_command",
    "client_later_command",
    "command",
    "queue_command",
    "repository_command",
)

TABLES = re.compile(r"service/(\w+/store|database)/tables_\w+\.py")
PAGES = "service/database/paging.py"
MAY_SAY_ANY = (
    "bot/sandbox",
    "service/http/strict_json.py",
    "service/database/codec.py",
)
CATCHES_ALL = "service/process/guard.py"

VAGUE = {"process", "handle", "data", "info"}
VAGUE_PARTS = {"manager", "helper", "helpers", "util", "utils"}

HEADLESS = re.compile(r"(What|Whether|Who|Whose|How|When|Which|Where)\b")
# The docstrings of these models are texts of the API reference, or of the tools for agents.
PUBLISHED_MODELS = re.compile(
    r"service/(\w+/api|http)/models/.+"
    r"|service/(http/health|process/api/metrics)\.py"
    r"|bot/cli/agents/answers\.py"
)

Function = ast.FunctionDef | ast.AsyncFunctionDef
Node = TypeVar("Node", bound=ast.AST)
Rule = Callable[[Source], Iterator[str]]


def file_sizes(source: Source) -> Iterator[str]:
    """A file has at most 600 lines, a test file 700; a revision of the schema is one list."""
    if is_in(source.path, MIGRATIONS):
        return
    lines_max = TEST_FILE_LINES_MAX if is_in(source.path, "tests") else FILE_LINES_MAX
    lines = len(source.text.splitlines())
    if lines > lines_max:
        yield f"{source.path}:{lines}: more than {lines_max} lines"


def adversary_docstrings(source: Source) -> Iterator[str]:
    """A scenario of tests/adversary names whom the attack hurts in its docstring's first word."""
    if not source.path.startswith("tests/adversary/"):
        return
    for node in functions(source):
        if node.name.startswith("test_") and not HURTS.match(ast.get_docstring(node) or ""):
            yield f"{source.path}:{node.lineno}: begin the docstring with 'Hurts WHOM: how.'"


def function_sizes(source: Source) -> Iterator[str]:
    """A function has at most 60 lines, its docstring included; a migration is one list."""
    if is_in(source.path, MIGRATIONS):
        return
    for function in functions(source):
        lines = (function.end_lineno or function.lineno) - function.lineno + 1
        if lines > FUNCTION_LINES_MAX:
            yield f"{source.path}:{function.lineno}: {function.name} has {lines} lines"


def parameters(source: Source) -> Iterator[str]:
    """A function takes at most 5 parameters; the options of a shell command are not such.

    Nor are those of an agent's tool, which has a `call`.
    """
    for function in functions(source):
        taken = function.args
        names = [each.arg for each in (*taken.posonlyargs, *taken.args, *taken.kwonlyargs)]
        if is_in(source.path, "bot/cli") and (is_shell_command(function) or "call" in names):
            continue
        count = len([name for name in names if name not in ("self", "cls")])
        if count > PARAMETERS_MAX:
            yield f"{source.path}:{function.lineno}: {function.name} takes {count} parameters"


def package_docstrings(source: Source) -> Iterator[str]:
    """A package's `__init__` is a docstring and nothing else, of at most 60 lines."""
    if not source.path.endswith("__init__.py"):
        return
    body = source.tree.body
    if len(body) != 1 or not ast.get_docstring(source.tree):
        yield f"{source.path}:1: not a docstring only"
    lines_max = THEORY_LINES_MAX if source.path in THEORIES else PACKAGE_DOCSTRING_LINES_MAX
    if len(source.text.splitlines()) > lines_max:
        yield f"{source.path}:1: more than {lines_max} lines"


def headless_docstrings(source: Source) -> Iterator[str]:
    """A docstring of the product begins with a verb or a noun, not with "What" or "Whether"."""
    if not is_in(source.path, *PRODUCT):
        return
    classes = () if PUBLISHED_MODELS.fullmatch(source.path) else nodes(source, ast.ClassDef)
    for node in (source.tree, *functions(source), *classes):
        if HEADLESS.match(ast.get_docstring(node) or ""):
            yield f"{source.path}:{getattr(node, 'lineno', 1)}: begin with a verb or a noun"


def type_checking(source: Source) -> Iterator[str]:
    """No import that only type checkers see: it hides a circle."""
    if "TYPE_CHECKING" not in source.text:
        return
    for name, line in names_used(source):
        if name.rpartition(".")[2] == "TYPE_CHECKING":
            yield f"{source.path}:{line}: TYPE_CHECKING"


def imports(source: Source) -> Iterator[str]:
    """No star import; none inside a function but for thin commands and packages of an extra."""
    for node in nodes(source, ast.ImportFrom):
        if any(alias.name == "*" for alias in node.names):
            yield f"{source.path}:{node.lineno}: star import"
    if is_in(source.path, THIN, OF_EXTRA):
        return
    imported = [each.lineno for each in nodes(source, ast.Import, ast.ImportFrom)]
    for function in functions(source):
        for line in imported:
            if function.lineno <= line <= (function.end_lineno or function.lineno):
                yield f"{source.path}:{line}: import inside {function.name}"


def clocks(source: Source) -> Iterator[str]:
    """Time, ids and chance are arguments; waiting goes through the clock as well."""
    if not is_in(source.path, *PRODUCT) or is_in(source.path, *CLOCKS):
        return
    for name, line in names_used(source):
        if READS_A_CLOCK.search(name) and name != SEEDED:
            yield f"{source.path}:{line}: {name}"
    for node in nodes(source, ast.ImportFrom):
        for alias in node.names:
            if alias.name in FROM_CLOCKS.get(node.module or "", ()) or node.module == "random":
                yield f"{source.path}:{node.lineno}: from {node.module} import {alias.name}"


def tables(source: Source) -> Iterator[str]:
    """`table=True` is only in the `tables_*.py` of a store or of the database."""
    if not is_in(source.path, *PRODUCT) or TABLES.fullmatch(source.path):
        return
    for node in nodes(source, ast.ClassDef):
        for keyword in node.keywords:
            if keyword.arg == "table":
                yield f"{source.path}:{node.lineno}: table {node.name}"


def page_tokens(source: Source) -> Iterator[str]:
    """A list reads its pages by `paging`, the only place that makes and reads page tokens."""
    if not is_in(source.path, *PRODUCT) or source.path == PAGES:
        return
    for name, line in names_used(source):
        if re.search(r"(^|\.)page_tokens\.(token|page_start_of|PageStart)$", name):
            yield f"{source.path}:{line}: {name}"


def anything(source: Source) -> Iterator[str]:
    """`Any` is said only where JSON comes in, rows are coded, or the sandbox makes JSON."""
    if not is_in(source.path, *PRODUCT) or is_in(source.path, *MAY_SAY_ANY):
        return
    for name, line in names_used(source):
        if name in ("Any", "typing.Any"):
            yield f"{source.path}:{line}: Any"


def broad_excepts(source: Source) -> Iterator[str]:
    """Only the workers' guard catches everything; elsewhere it would hide our own mistakes."""
    if not is_in(source.path, *PRODUCT) or source.path == CATCHES_ALL:
        return
    for node in nodes(source, ast.ExceptHandler):
        caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        for each in caught:
            if each is None or dotted(each) in ("Exception", "BaseException"):
                yield f"{source.path}:{node.lineno}: catches everything"


def definitions(source: Source) -> Iterator[str]:
    """A name says what is acted on: no managers, no helpers, nothing that handles."""
    named = [
        (each.name, each.lineno) for each in (*functions(source), *nodes(source, ast.ClassDef))
    ]
    stem = source.path.rpartition("/")[2].removesuffix(".py")
    for name, line in [(stem, 1), *named]:
        words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().strip("_").split("_")
        if "_".join(words) in VAGUE or VAGUE_PARTS.intersection(words):
            yield f"{source.path}:{line}: {name} says nothing"


def sleeping(source: Source) -> Iterator[str]:
    """A test waits for a thing, never for time to pass; sleep(0) lets others run.

    The harness's clock is the authority that moves time, as the product's is. The scripts that
    record real runners are no tests: they let a second pass, so that time stamps differ.
    """
    if not is_in(source.path, "tests") or str(source.path) in SLEEPERS:
        return
    for call in nodes(source, ast.Call):
        if re.search(r"(^|\.)(time|asyncio)\.sleep$", dotted(call.func)):
            lets_others_run = isinstance(call.args[0], ast.Constant) and call.args[0].value == 0
            if not lets_others_run:
                yield f"{source.path}:{call.lineno}: sleeps"


def mocks(source: Source) -> Iterator[str]:
    """What is ours is used for real; what is not stands behind the sandbox."""
    modules = [(alias.name, each) for each in nodes(source, ast.Import) for alias in each.names]
    froms = [(each.module or "", each) for each in nodes(source, ast.ImportFrom)]
    for module, node in (*modules, *froms):
        if "mock" in module.split("."):
            yield f"{source.path}:{node.lineno}: mock"


RULES: tuple[Rule, ...] = (
    file_sizes,
    function_sizes,
    parameters,
    package_docstrings,
    headless_docstrings,
    type_checking,
    imports,
    clocks,
    tables,
    page_tokens,
    anything,
    broad_excepts,
    definitions,
    sleeping,
    mocks,
    adversary_docstrings,
)


def nodes(source: Source, *kinds: type[Node]) -> Iterator[Node]:
    """Every node of these kinds, one kind after the other."""
    return (node for kind in kinds for node in source.nodes.get(kind, ()) if isinstance(node, kind))


def functions(source: Source) -> Iterator[Function]:
    """Every function and method, also those inside others."""
    return nodes(source, ast.FunctionDef, ast.AsyncFunctionDef)


def names_used(source: Source) -> Iterator[tuple[str, int]]:
    """(dotted name, line) of every name that is read or imported."""
    for node in nodes(source, ast.Name, ast.Attribute):
        yield dotted(node), node.lineno
    for imported in nodes(source, ast.ImportFrom):
        for alias in imported.names:
            yield f"{imported.module}.{alias.name}", imported.lineno


def dotted(node: ast.expr | None) -> str:
    """`a.b.c` for a name or a chain of attributes, else its tail or nothing."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}".lstrip(".")
    return node.id if isinstance(node, ast.Name) else ""


def is_shell_command(function: Function) -> bool:
    """Whether typer turns the parameters into options: `@app.command(…)`, `@queue_command(…)`."""
    called = [each.func for each in function.decorator_list if isinstance(each, ast.Call)]
    return any(dotted(func).rpartition(".")[2] in SHELL_COMMANDS for func in called)

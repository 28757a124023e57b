"""A mutant against the tests nearest to it, in a process of its own and within a time limit.

The parent has imported the module and its tests, and made what they all copy. A child is forked
for each mutant, takes the code of the mutant's functions into the functions that there are, and
runs the tests that execute the mutant's lines, the quickest first; all if none does, as for a
constant. Nothing is written to the checkout.
"""

import ast
import gc
import multiprocessing
import os
import random
import resource
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, EnumType, StrEnum
from importlib import import_module
from inspect import unwrap
from pathlib import Path
from types import FunctionType, ModuleType

import pytest
from sqlalchemy import ClauseElement

from tests.mutants import equivalent
from tests.mutants.lines import Watch
from tests.mutants.operators import Mutant, mutants_of
from tests.mutants.targets import MAKE_DATABASES, ON_POSTGRESQL, TARGETS

ROOT = Path(__file__).parents[2]
# By the time of the processor, because the machine may do much else. A mutant that works for ever
# is noticed by that, one that waits for ever by the time limit of its test.
TIME_LIMIT_S = 300
SPARE_S = 20
SLOWER = 5
"""How often longer than without a mutant, and how many seconds more, the tests may take."""
OPTIONS = ("-q", "-x", "-p", "no:cacheprovider", "-p", "no:schemathesis")
# One database is enough to notice most mutants; `make test` has both.
ON_SQLITE = ("-k", "not postgresql")
PLAIN = (bool, int, float, str, bytes, frozenset, set, tuple, dict, list)
FORKING = multiprocessing.get_context("fork")


class Ending(StrEnum):
    """What the tests did about a mutant."""

    CAUGHT = "caught"
    SURVIVED = "survived"
    TIMED_OUT = "timed out"


@dataclass(slots=True)
class Tally:
    """The mutants of one module and how they ended; `equivalent` ones were not run."""

    module: str
    ended: dict[str, Ending] = field(default_factory=dict)
    equivalent: int = 0

    @property
    def survivors(self) -> list[str]:
        """The mutants that no test noticed."""
        return [name for name, ending in self.ended.items() if ending is Ending.SURVIVED]

    @property
    def row(self) -> str:
        """A row of the table in docs/reference/reliability.md."""
        caught = len(self.ended) - len(self.survivors)
        mutants = len(self.ended) + self.equivalent
        survivors = len(self.survivors)
        return f"| `{self.module}` | {mutants} | {caught} | {self.equivalent} | {survivors} |"


def tally_of(
    module: str, told: Callable[[str], object] = lambda _: None, sample: int | None = None
) -> Tally:
    """Run the mutants of a module; `told` gets the name of each survivor as it is found.

    `sample`: at most so many, drawn by a seed that is the module's name; None runs all.
    Raises RuntimeError if the tests fail without a mutant, or pass though every function raises.
    """
    source = (ROOT / module).read_text("utf-8")
    tests = (*TARGETS[module], *(() if module in ON_POSTGRESQL else ON_SQLITE))
    code = import_module(module.removesuffix(".py").replace("/", "."))
    with Silence():
        prepared = [] if module in MAKE_DATABASES else [Prepared()]
        pytest.main(["--collect-only", *OPTIONS, *tests], prepared)
    with server_for(module):
        with tempfile.TemporaryFile() as notes:
            watch = Watch(str(code.__file__), notes)
            if ending_of(code, source, tests, watch=watch) is not Ending.SURVIVED:
                raise RuntimeError(f"The tests of {module} fail without a mutant.")
        if ending_of(code, raising(source), tests) is not Ending.CAUGHT:
            raise RuntimeError(f"The tests of {module} pass though it raises.")
        tally, same = Tally(module), equivalent.EQUIVALENT.get(module, {})
        mutants = mutants_of(source)
        if sample is not None and sample < len(mutants):
            drawn = random.Random(module).sample(range(len(mutants)), sample)
            mutants = [mutants[place] for place in sorted(drawn)]
        for mutant in mutants:
            if mutant.name in same:
                tally.equivalent += 1
                continue
            name = _unused(tally, mutant)
            touching = watch.touching(mutant.line, mutant.last_line)
            limit_s = min(TIME_LIMIT_S, int(SLOWER * watch.seconds_of(touching)) + SPARE_S)
            tally.ended[name] = ending_of(code, mutant.source, touching or tests, limit_s)
            if tally.ended[name] is Ending.SURVIVED:
                told(name)
        return tally


@contextmanager
def server_for(module: str) -> Iterator[None]:
    """Give all mutants of a module one PostgreSQL server, if its tests are played on one."""
    # Imported by pytest, which rewrites its assertions, and used after that.
    databases = import_module("tests.harness.databases")
    if module not in ON_POSTGRESQL or databases.FOLDER in os.environ:
        yield
        return
    server = databases.Server(databases.new_folder())
    os.environ[databases.FOLDER] = str(server.folder)
    try:
        server.start()
        yield
    finally:
        del os.environ[databases.FOLDER]
        server.stop()


def _unused(tally: Tally, mutant: Mutant) -> str:
    """The mutant's name with its line; one line may have several alike."""
    name, count = f"{mutant.line}: {mutant.name}", 1
    while name in tally.ended:
        count += 1
        name = f"{mutant.line} ({count}): {mutant.name}"
    return name


def ending_of(
    module: ModuleType,
    source: str,
    tests: Sequence[str],
    limit_s: int = TIME_LIMIT_S,
    watch: Watch | None = None,
) -> Ending:
    """Run tests in a child in which the module has the code of this text.

    `watch` gets what they execute.
    """
    child = FORKING.Process(target=_run, args=(module, source, tests, limit_s, watch))
    child.start()
    child.join()
    if child.exitcode == -signal.SIGKILL:
        return Ending.TIMED_OUT
    if watch is not None and not child.exitcode:
        watch.read()
    return Ending.CAUGHT if child.exitcode else Ending.SURVIVED


def _run(
    module: ModuleType, source: str, tests: Sequence[str], limit_s: int, watch: Watch | None
) -> None:
    """End with 0 if the tests pass with this text. Runs in the child alone."""
    resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s))
    # Nothing of the parent is garbage here, and looking at it would copy its memory.
    gc.freeze()
    with Silence():
        try:
            take(module, source)
            code = int(pytest.main([*OPTIONS, *tests], [watch] if watch else []))
            if watch is not None:
                watch.write()
        except BaseException:
            code = 1
    os._exit(code)


def take(module: ModuleType, source: str) -> None:
    """Give a module the code of a text; its functions and classes stay the objects they are.

    What the text only does, such as to register its classes elsewhere, was done at the import.
    """
    made = ModuleType(module.__name__)
    made.__file__ = module.__file__
    tree = ast.parse(source)
    tree.body = [each for each in tree.body if not isinstance(each, ast.Expr)]
    exec(compile(tree, str(module.__file__), "exec"), made.__dict__)
    _take_all(
        vars(module), vars(made), module.__name__, lambda name, new: setattr(module, name, new)
    )


def _take_all(
    old: Mapping[str, object],
    new: Mapping[str, object],
    module: str,
    put: Callable[[str, object], object],
) -> None:
    """Take functions, statements and constants over, by name, from one namespace into another."""
    before, after = dict(old), dict(new)
    for name, value in after.items():
        known = before.get(name)
        functions = (_function_in(known), _function_in(value))
        if functions[0] is not None and functions[1] is not None:
            if functions[1].__module__ == module:
                functions[0].__code__ = functions[1].__code__
                positional, named = functions[1].__defaults__, functions[1].__kwdefaults__
                functions[0].__defaults__ = positional and tuple(map(_known_member, positional))
                functions[0].__kwdefaults__ = named and {
                    each: _known_member(member) for each, member in named.items()
                }
        elif isinstance(known, type) and isinstance(value, type):
            if value.__module__ == module:
                _take_all(vars(known), vars(value), module, lambda *_: None)
        elif isinstance(value, ClauseElement) or (
            isinstance(value, PLAIN)
            and not name.startswith("__")
            and value != known
            and not _is_filled_later(value)
        ):
            put(name, value)


def _is_filled_later(value: object) -> bool:
    """Whether a module begins with this empty and fills it as it runs: it keeps what it has."""
    return type(value) in (dict, list, set) and not value


def _known_member(value: object) -> object:
    """The member of an enum that the rest of the module uses; any other value as it is."""
    if not isinstance(value, Enum):
        return value
    known = getattr(import_module(type(value).__module__), type(value).__name__, None)
    return known[value.name] if isinstance(known, EnumType) else value


def _function_in(value: object) -> FunctionType | None:
    """The function that a name stands for, below decorators; None for anything else."""
    if isinstance(value, property):
        value = value.fget
    if isinstance(value, classmethod | staticmethod):
        value = value.__func__
    plain = unwrap(value) if callable(value) and not isinstance(value, type) else value
    return plain if isinstance(plain, FunctionType) else None


def raising(source: str) -> str:
    """The text with a body for every function that raises."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [ast.Raise(ast.Name("RuntimeError", ast.Load()))]
    return ast.unparse(ast.fix_missing_locations(tree))


class Prepared:
    """A plugin of pytest by which the parent makes once what the tests of each child need."""

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Do what is done before workers are forked."""
        session.config.hook.pytest_prepare_workers()


class Silence:
    """Nothing is printed meanwhile, by this process or its children."""

    def __enter__(self) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        self._kept = (os.dup(1), os.dup(2))
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        os.close(nowhere)

    def __exit__(self, *_: object) -> None:
        for number, kept in zip((1, 2), self._kept, strict=True):
            os.dup2(kept, number)
            os.close(kept)

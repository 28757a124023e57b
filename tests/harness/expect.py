"""Text that people read, compared with a file beside the test.

    expect(world.timeline()).matches("culprit-alone-fails.txt")

The file lies in `golden/` beside the test. `pytest --update-golden` writes it anew, to be
reviewed like prose. A golden file that no test uses fails the run; so that a narrowed run
does not cry wolf, a folder is judged only after all its test files ran and passed.
"""

import difflib
from collections import defaultdict
from pathlib import Path

import pytest

# How a report carries the golden files its test used, also from a worker.
USED = "golden"

# Options of pytest with which a file's tests do not all run.
NARROWING = ("keyword", "markexpr", "deselect", "lf")


def expect(text: str) -> "Expected":
    """The text to be compared; the verb is `matches`."""
    return Expected(text)


class Expected:
    """A text on its way to a golden file."""

    def __init__(self, text: str) -> None:
        self.text = text.rstrip("\n") + "\n"

    def matches(self, name: str) -> None:
        """Fail with a diff unless `golden/<name>` holds this text; final newlines do not count."""
        golden = RUNNING.golden_folder / name
        RUNNING.use(golden)
        if RUNNING.rewrites:
            golden.parent.mkdir(exist_ok=True)
            golden.write_text(self.text, "utf-8")
        if not golden.exists():
            pytest.fail(f"{golden} does not exist; pytest --update-golden writes it", pytrace=False)
        wanted = golden.read_text("utf-8")
        if wanted != self.text:
            diff = difflib.unified_diff(
                wanted.splitlines(), self.text.splitlines(), str(golden), "found", lineterm="", n=5
            )
            pytest.fail("\n".join(diff), pytrace=False)


class RunningTest:
    """The test that runs now in this process: one at a time, also for async tests."""

    def __init__(self) -> None:
        self.item: pytest.Item | None = None
        self.rewrites = False

    @property
    def golden_folder(self) -> Path:
        """`golden/` beside the file of the running test."""
        if self.item is None:
            raise RuntimeError("expect() outside a test")
        return self.item.path.parent / "golden"

    def use(self, golden: Path) -> None:
        """Remember in the test's report that it used this file."""
        if self.item is not None:
            self.item.user_properties.append((USED, str(golden)))


RUNNING = RunningTest()


class Ledger:
    """The pytest plugin that follows the running test and finds golden files nobody used."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.used: set[str] = set()
        self.ran: dict[Path, set[str]] = defaultdict(set)
        self.unjudged: set[Path] = set()
        self.left_over: list[str] = []
        RUNNING.rewrites = bool(config.getoption("--update-golden"))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> object:
        """Say which test runs while it runs."""
        RUNNING.item = item
        try:
            return (yield)
        finally:
            RUNNING.item = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what a test used; the first process gets all reports."""
        file = self.config.rootpath / report.nodeid.partition("::")[0]
        self.ran[file.parent].add(file.name)
        self.used.update(str(value) for name, value in report.user_properties if name == USED)
        if not report.passed:
            self.unjudged.add(file.parent)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail the run for golden files that no test of a fully run folder used."""
        self.left_over = [] if self.is_narrowed(session) else sorted(self.unused())
        if self.left_over:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name the files for which the run failed."""
        for golden in self.left_over:
            terminalreporter.write_line(f"golden file that no test uses: {golden}", red=True)

    def is_narrowed(self, session: pytest.Session) -> bool:
        """Whether tests of a file may be missing from this run."""
        chosen = [self.config.getoption(name, None) for name in NARROWING]
        by_name = any("::" in argument for argument in self.config.args)
        return any(chosen) or by_name or bool(session.shouldstop or session.shouldfail)

    def unused(self) -> set[str]:
        """Golden files of fully run folders that no report named."""
        return {
            str(golden)
            for folder, names in self.ran.items()
            if folder not in self.unjudged
            and names >= {test.name for test in folder.glob("test_*.py")}
            for golden in (folder / "golden").rglob("*")
            if golden.is_file() and str(golden) not in self.used
        }

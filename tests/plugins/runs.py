"""Runs of real test runners with our plug-ins, and what these say."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from service.testhealth.reports import reports
from service.testhealth.reports.reading import ReadOptions
from service.testhealth.reports.results import CaseKind, Outcome
from tests.harness import needs

HERE = Path(__file__).parent
PLUGINS = needs.ROOT / "plugins"
REPORT = "report.xml"
COUNTS = ("planned", "passed", "failed", "skipped", "not_run")
NAMES = ("name", "classname", "parent", "file")

PROGRAMS = {
    "jest": ("jest/bin/jest.js", "--ci", "--reporters=jest-junit", "--reporters=@headgate/jest"),
    "vitest": ("vitest/vitest.mjs", "run"),
    "playwright": ("@playwright/test/cli.js", "test", "--workers=1"),
}

SEQUENCER = "--testSequencer=@headgate/jest/sequencer"

JEST = "module.exports = %s;"
VITEST = """
import { BaseSequencer } from 'vitest/node';
import { suspectedFirst } from '@headgate/vitest/sequencer';

// Not the terminal's reporter: that of Vitest 5 needs a newer Node than we may have.
export default { test: {
  reporters: [['junit', { outputFile: 'report.xml', addFileAttribute: true }], '@headgate/vitest'],
  pool: 'forks', sequence: { sequencer: suspectedFirst(BaseSequencer) }, ...%s,
} };
"""
PLAYWRIGHT = """
module.exports = {
  reporter: [['junit', { outputFile: 'report.xml' }], ['@headgate/playwright']], ...%s,
};
"""
CONFIGURATIONS = {
    "jest": ("jest.config.js", JEST),
    "vitest": ("vitest.config.mjs", VITEST),
    "playwright": ("playwright.config.js", PLAYWRIGHT),
}


@dataclass(frozen=True)
class Runner:
    """A version of a runner (`oldest` or `newest`), in a folder of its own."""

    name: str
    age: str
    folder: Path
    suspects: list[dict[str, str]] = field(default_factory=list)

    def install(self, stories: Sequence[str], configuration: object) -> None:
        """Lay out stories, the runner's packages, and our plug-in as npm would install it."""
        for story in stories:
            shutil.copytree(HERE / "stories" / self.name / story, self.folder, dirs_exist_ok=True)
        (self.folder / "package.json").write_text('{"name": "story"}')
        file, text = CONFIGURATIONS[self.name]
        (self.folder / file).write_text(text % json.dumps(configuration))
        packages = self.folder / "node_modules"
        for path in each_package(needs.RUNNERS[self.age] / "node_modules"):
            link = packages / path.relative_to(needs.RUNNERS[self.age] / "node_modules")
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)
        plugin = packages / "@headgate" / self.name
        plugin.mkdir(parents=True)
        for file in ("package.json", *files_of(self.name)):
            shutil.copyfile(PLUGINS / self.name / file, plugin / file)

    @contextmanager
    def started(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """Run the tests; the runner's processes are a group."""
        program, *options = PROGRAMS[self.name]
        (self.folder / "live").touch()
        (self.folder / "suspects").write_text(json.dumps({"v": 1, "tests": self.suspects}))
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "CI": "1",
            "HEADGATE_LIVE": str(self.folder / "live"),
            "HEADGATE_SUSPECTS": str(self.folder / "suspects"),
            "JEST_JUNIT_ADD_FILE_ATTRIBUTE": "true",
            "JEST_JUNIT_OUTPUT_NAME": REPORT,
        }
        with subprocess.Popen(
            ["node", f"node_modules/{program}", *options, *arguments],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            yield process

    def run(self, *arguments: str) -> "Said":
        """Run the tests to their end."""
        with self.started(*arguments) as process:
            printed, _ = process.communicate()
        return Said(process.returncode, self.lines(), self.folder / REPORT, printed)

    def ended_by(self, how: signal.Signals, *arguments: str) -> "Said":
        """Run the story `hanging`, and send a signal to all processes once its test has begun."""
        begun = self.folder / "begun"
        os.mkfifo(begun)
        with self.started(*arguments) as process:
            begun.read_text()
            os.killpg(process.pid, how)
            printed, _ = process.communicate()
        return Said(process.returncode, self.lines(), self.folder / REPORT, printed)

    def lines(self) -> list[dict[str, Any]]:
        """What the plug-in has said until now."""
        return [json.loads(line) for line in (self.folder / "live").read_text().splitlines()]


@dataclass(frozen=True)
class Said:
    """The exit code of a run, the lines of the plug-in, the report, and what was printed."""

    code: int
    lines: list[dict[str, Any]]
    report: Path
    printed: str

    @property
    def end(self) -> dict[str, Any]:
        """The last line, which must be the end of the only run."""
        first, *_, last = self.lines
        events = [(line["event"], line["run"]) for line in self.lines if line["event"] != "test"]
        assert events == [("start", first["run"]), ("end", first["run"])], self.printed
        assert last["event"] == "end", self.printed
        return last

    @property
    def reason(self) -> tuple[str, int | None]:
        """Why the run ended, and the exit code that follows from it."""
        return self.end["reason"], self.end["exit_code"]

    @property
    def counts(self) -> tuple[int | None, ...]:
        """Planned, passed, failed, skipped, not run."""
        return tuple(self.end[name] for name in COUNTS)

    def attempts(self) -> dict[str, list[str]]:
        """How the attempts of each test ended, by its name; `failed?`: it is tried again."""
        found: dict[str, list[str]] = {}
        for line in self.lines:
            if line["event"] == "test":
                mark = "" if line["final"] else "?"
                found.setdefault(line["name"].strip(), []).append(line["outcome"] + mark)
        return found

    def failed(self) -> list[Mapping[str, str]]:
        """The names of the tests that the plug-in calls failed."""
        lines = [line for line in self.lines if line["event"] == "test"]
        finals = (line for line in lines if line["final"] and line["outcome"] == "failed")
        return sorted(({name: line[name].strip() for name in NAMES} for line in finals), key=str)

    def failed_in_report(self) -> list[Mapping[str, str]]:
        """The same, by the runner's own JUnit report."""
        read = reports.read(self.report.read_bytes(), None, ReadOptions())
        found = [
            {name: getattr(case, name).strip() for name in NAMES}
            for case in read.cases
            if case.kind is CaseKind.TEST and case.outcome is Outcome.FAILED
        ]
        return sorted(found, key=str)


def each_package(home: Path) -> Iterator[Path]:
    """The packages of a folder node_modules, those of scopes too."""
    for path in home.iterdir():
        if path.name.startswith("@"):
            yield from path.iterdir()
        elif not path.name.startswith("."):
            yield path


def files_of(plugin: str) -> list[str]:
    """The files that a plug-in's package has, beside its package.json."""
    files: list[str] = json.loads((PLUGINS / plugin / "package.json").read_text("utf-8"))["files"]
    return files

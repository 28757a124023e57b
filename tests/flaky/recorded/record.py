"""Record the reports again: `python -m tests.flaky.recorded.record [RUNNER…]`.

Installs each runner into a temporary folder, runs our samples, and keeps nothing but the report,
with paths and the name of this machine taken out. Needs python, npm, cmake, go, and mvn with a
JDK.
"""

import re
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.flaky.recorded import samples, truths

HERE = Path(__file__).parent
# The reports of the second run, by which names that change with every run are found.
AGAIN = HERE / "again"
# What a report writes of the time changes within so many seconds.
BETWEEN_S = 1.1
PIP = ("python", "-m", "pip", "install", "--quiet", "--target", "packages")
NPM = ("npm", "install", "--no-audit", "--no-fund", "--silent")
TIMEOUT_S = 600
# What Java tells of its machine; one line of it stays, to show where such lines stand.
MACHINE_OF_JAVA = re.compile(
    r'\s*<property name="(?!java\.version")(?:\w+\.[\w.]+|basedir|localRepository)"[^>]*>'
)


@dataclass(frozen=True, slots=True)
class Runner:
    """What a runner needs, its files, its command, and where its report appears."""

    files: dict[str, str]
    command: tuple[str, ...]
    install: tuple[str, ...] = ()
    report: str = "report.xml"


def retried(options: tuple[str, ...], *plugins: str, file: str = truths.PYTEST_RETRIED) -> Runner:
    """Pytest over a file of tests whose names tell their truth, with its plugins for retries."""
    command = ("python", "-m", "pytest", "-q", "--rootdir=.", "--junitxml=report.xml", "tests")
    return Runner({"tests/test_cart.py": file}, (*command, *options), (*PIP, "pytest", *plugins))


RUNNERS = {
    "pytest": Runner(
        {"tests/test_cart.py": samples.PYTEST},
        ("python", "-m", "pytest", "-q", "--rootdir=.", "--junitxml=report.xml", "tests"),
        (*PIP, "pytest"),
    ),
    "pytest-xunit1": Runner(
        {"tests/test_cart.py": samples.PYTEST},
        ("python", "-m", "pytest", "--rootdir=.", "--junitxml=report.xml", "-ojunit_family=xunit1"),
        (*PIP, "pytest"),
    ),
    "unittest": Runner(
        {"test_cart.py": samples.UNITTEST},
        ("python", "-m", "xmlrunner", "--output-file", "report.xml", "test_cart"),
        (*PIP, "unittest-xml-reporting"),
    ),
    "jest": Runner(
        {"cart.test.js": samples.JEST},
        ("npx", "jest", "--reporters=jest-junit"),
        (*NPM, "jest", "jest-junit"),
        "junit.xml",
    ),
    "jest-ctrf": Runner(
        {"cart.test.js": samples.JEST},
        ("npx", "jest", "--reporters=jest-ctrf-json-reporter"),
        (*NPM, "jest", "jest-ctrf-json-reporter"),
        "ctrf/ctrf-report.json",
    ),
    "mocha": Runner(
        {"test/cart.js": samples.MOCHA},
        ("npx", "mocha", "--reporter", "mocha-junit-reporter"),
        (*NPM, "mocha@10", "mocha-junit-reporter"),
        "test-results.xml",
    ),
    "vitest": Runner(
        {"cart.test.js": samples.VITEST},
        ("npx", "vitest", "run", "--reporter=junit", "--outputFile=report.xml"),
        (*NPM, "vitest"),
    ),
    "node": Runner(
        {"cart.test.js": samples.NODE},
        (
            *("node", "--test", "--test-reporter=junit"),
            *("--test-reporter-destination=report.xml", "cart.test.js"),
        ),
    ),
    "playwright": Runner(
        {"cart.play.js": samples.PLAYWRIGHT, "playwright.config.js": samples.PLAYWRIGHT_CONFIG},
        ("npx", "playwright", "test"),
        (*NPM, "@playwright/test"),
    ),
    "pytest-rerunfailures": retried(
        ("--reruns", "2"), "pytest-rerunfailures", file=truths.PYTEST_RETRIED
    ),
    "pytest-rerunfailures-xunit1": retried(
        ("--reruns", "2", "-ojunit_family=xunit1"), "pytest-rerunfailures"
    ),
    "pytest-flaky": retried(
        ("--force-flaky", "--max-runs=3", "--no-success-flaky-report"), "flaky"
    ),
    "pytest-retry": retried(("--retries", "2"), "pytest-retry"),
    "pytest-teardown": retried((), file=truths.PYTEST_TEARDOWN),
    "pytest-rerunfailures-teardown": retried(
        ("--reruns", "2"), "pytest-rerunfailures", file=truths.PYTEST_TEARDOWN
    ),
    "pytest-stopped": retried((), file=truths.PYTEST_STOPPED),
    "jest-twins": Runner(
        {"cart.test.js": truths.JEST_TWINS},
        ("env", "JEST_JUNIT_ADD_FILE_ATTRIBUTE=true", "npx", "jest", "--reporters=jest-junit"),
        (*NPM, "jest", "jest-junit"),
        "junit.xml",
    ),
    "node-todo": Runner(
        {"cart.test.js": truths.NODE_TODO},
        (
            *("node", "--test", "--test-reporter=junit"),
            *("--test-reporter-destination=report.xml", "cart.test.js"),
        ),
    ),
    "playwright-projects": Runner(
        {"cart.play.js": truths.PROJECTS, "playwright.config.js": truths.PROJECTS_CONFIG},
        ("npx", "playwright", "test"),
        (*NPM, "@playwright/test"),
    ),
    "go": Runner(
        {
            "go.mod": truths.GO_MODULE,
            "cart/cart_test.go": truths.GO_SUBTESTS,
            "tax/tax.go": truths.GO_BROKEN,
            "tax/tax_test.go": truths.GO_BROKEN_TEST,
        },
        ("sh", "-c", "go test -json ./... > report.jsonl 2>&1"),
        report="report.jsonl",
    ),
    "ctest": Runner(
        {"CMakeLists.txt": samples.CTEST},
        ("ctest", "--output-junit", "report.xml"),
        ("cmake", "."),
    ),
    "surefire": Runner(
        {"pom.xml": samples.SUREFIRE_POM, "src/test/java/CartTest.java": samples.SUREFIRE},
        ("mvn", "--batch-mode", "test"),
        report="target/surefire-reports/TEST-CartTest.xml",
    ),
}


def record(name: str, folder: Path) -> None:
    """Run one runner in an empty folder, twice, and keep both reports."""
    runner = RUNNERS[name]
    for file, text in runner.files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text, "utf-8")
    if runner.install:
        run(runner.install, folder)
    keep_report(name, folder, HERE)
    first = time.monotonic()
    keep_report(name, folder, AGAIN)
    while time.monotonic() - first < BETWEEN_S:
        keep_report(name, folder, AGAIN)


def keep_report(name: str, folder: Path, kept: Path) -> None:
    """Run the tests of a runner and keep what it reports."""
    runner = RUNNERS[name]
    report = folder / runner.report
    report.unlink(missing_ok=True)
    said = run(runner.command, folder)
    if not report.exists():
        raise SystemExit(f"{name} wrote no report:\n{said}")
    text = scrubbed(report.read_bytes().decode("utf-8"), folder)
    (kept / f"{name}{report.suffix}").write_bytes(text.encode("utf-8"))


def run(command: tuple[str, ...], folder: Path) -> str:
    """Run a command in the folder, with the packages installed there; what it printed."""
    path = {"PYTHONPATH": str(folder / "packages"), "CI": "1"}
    done = subprocess.run(
        ["env", *(f"{key}={value}" for key, value in path.items()), *command],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    return done.stdout + done.stderr


def scrubbed(text: str, folder: Path) -> str:
    """The report without what names this machine; the sample's folder becomes /build."""
    for place in {str(folder.resolve()), str(folder)}:
        text = text.replace(place, "/build").replace(place.lstrip("/"), "build")
    text = text.replace(socket.gethostname(), "machine")
    text = re.sub(r"(/[\w.+@-]+)*/(lib/python[\d.]+|packages)/", "/python/", text)
    text = MACHINE_OF_JAVA.sub("", text)
    return re.sub(r"/(root|home/\w+)/", "/machine/", text)


def main() -> None:
    """Record all runners, or those that are named."""
    for name in sys.argv[1:] or RUNNERS:
        with tempfile.TemporaryDirectory() as folder:
            record(name, Path(folder))


if __name__ == "__main__":
    main()

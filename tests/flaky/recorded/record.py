"""Record the reports again: `python -m tests.flaky.recorded.record [RUNNER…]`.

Installs each runner into a temporary folder, runs our samples, and keeps nothing but the report,
with paths and the name of this machine taken out. Needs python, npm, cmake, and mvn with a JDK.
"""

import re
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.flaky.recorded import samples

HERE = Path(__file__).parent
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
    """Run one runner in an empty folder and keep its report."""
    runner = RUNNERS[name]
    for file, text in runner.files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text, "utf-8")
    path = {"PYTHONPATH": str(folder / "packages"), "CI": "1"}
    for command in filter(None, (runner.install, runner.command)):
        done = subprocess.run(
            ["env", *(f"{key}={value}" for key, value in path.items()), *command],
            cwd=folder,
            check=False,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
    report = folder / runner.report
    if not report.exists():
        raise SystemExit(f"{name} wrote no report:\n{done.stdout}{done.stderr}")
    text = scrubbed(report.read_bytes().decode("utf-8"), folder)
    (HERE / f"{name}.xml").write_bytes(text.encode("utf-8"))


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

"""Producers that are Python packages."""

from dataclasses import replace

from tests.laboratory.producer import Change, Home, Producer, Scene

TEST = "tests/test_cart.py"
BESIDE = "tests/test_tax.py"

PYTEST = """
import pytest


def test_passes():
    pass


def test_passes_and_is_renamed():
    pass


def test_fails_always():
    assert 10 == 11


@pytest.fixture
def database():
    raise RuntimeError("no database")


def test_errors_always(database):
    pass


@pytest.mark.skip(reason="not on this machine")
def test_is_skipped():
    pass


class TestCart:
    @pytest.mark.parametrize("name", ["plain", "tä/st", "a::b"])
    def test_passes(self, name):
        pass
"""
PYTEST_FLAKE = """
runs = []


def test_fails_once_then_passes():
    runs.append(1)
    assert len(runs) == 2
"""
PASSES = "def test_passes_beside():\n    pass\n"
CRASH = "import os\n\n\ndef test_passes_beside():\n    os._exit(3)\n"
SLEEPS = """
import time


def test_passes_beside():
    open("started", "w").close()
    time.sleep(60)
"""
UNLOADED = "import no_such_module\n\n\n" + PASSES
COVERED = "def total():\n    return 1\n\n\ndef unused():\n    return 2\n"
CONFTEST_REVERSED = "def pytest_collection_modifyitems(items):\n    items.reverse()\n"


def _pytest(*options: str, more: str = "") -> Producer:
    """Pytest with no plug-in but those that are named."""
    plain = ("python", "-m", "pytest", "-q", "--junitxml=report.xml")
    return Producer(
        Home.PYTHON,
        {"pytest.ini": "[pytest]\n", TEST: PYTEST + more, BESIDE: PASSES},
        (*plain, *options, "tests"),
        scenes={
            Scene.REVERSED: Change({"tests/conftest.py": CONFTEST_REVERSED}),
            Scene.CRASH: Change({BESIDE: CRASH}),
            Scene.INTERRUPTED: Change({BESIDE: SLEEPS}),
            Scene.UNLOADED: Change({BESIDE: UNLOADED}),
            Scene.THRESHOLD: Change(
                {"shop.py": COVERED, BESIDE: f"import shop\n\n\n{PASSES}"},
                ("-p", "pytest_cov.plugin", "--cov=shop", "--cov-fail-under=99"),
            ),
            Scene.SHARD_1: Change(options=("-p", "pytest_split.plugin", "--splits=2", "--group=1")),
            Scene.SHARD_2: Change(options=("-p", "pytest_split.plugin", "--splits=2", "--group=2")),
        },
    )


def _retried(*options: str) -> Producer:
    return replace(_pytest(*options, more=PYTEST_FLAKE), has_retries=True)


UNITTEST = """
import unittest


class Cart(unittest.TestCase):
    def test_passes(self):
        pass

    def test_passes_and_is_renamed(self):
        pass

    def test_fails_always(self):
        self.assertEqual(10, 11)

    def test_errors_always(self):
        raise RuntimeError("no database")

    @unittest.skip("not on this machine")
    def test_is_skipped(self):
        pass
"""


def _beside(body: str, before: str = "") -> str:
    return (
        f"{before}\nimport unittest\n\n\nclass Tax(unittest.TestCase):\n"
        f"    def test_passes_beside(self):\n{body}"
    )


def _unittest(*command: str, reports: str = "report.xml") -> Producer:
    """A runner of the unit tests of the standard library."""
    sleeps = '        open("started", "w").close()\n        time.sleep(60)\n'
    return Producer(
        Home.PYTHON,
        {
            "tests/__init__.py": "",
            TEST: UNITTEST,
            BESIDE: _beside("        pass\n"),
        },
        command,
        reports,
        {
            Scene.CRASH: Change({BESIDE: _beside("        os._exit(3)\n", "import os")}),
            Scene.INTERRUPTED: Change({BESIDE: _beside(sleeps, "import time")}),
            Scene.UNLOADED: Change({BESIDE: _beside("        pass\n", "import no_such_module")}),
        },
    )


def _without(scene: Scene, producer: Producer) -> Producer:
    scenes = {each: change for each, change in producer.scenes.items() if each is not scene}
    return replace(producer, scenes=scenes)


ROBOT = """*** Test Cases ***
It Passes
    No Operation

It Passes And Is Renamed
    No Operation

It Fails Always
    Should Be Equal    10    11

It Errors Always
    [Setup]    Fail    no database
    No Operation

It Is Skipped
    Skip    not on this machine
"""
ROBOT_BESIDE = """*** Settings ***
Library    OperatingSystem
{more}
*** Test Cases ***
It Passes Beside
    {step}
"""

BEHAVE = """Feature: cart
  Scenario: it passes
    Given it passes

  Scenario: it passes and is renamed
    Given it passes

  Scenario: it fails always
    Given it fails

  Scenario: it errors always
    Given it errors

  @skip
  Scenario: it is skipped
    Given it passes
"""
BEHAVE_BESIDE = "Feature: tax\n  Scenario: it passes beside\n    Given {step}\n"
BEHAVE_STEPS = """
import os
import time

from behave import given


@given("it passes")
def passes(context):
    pass


@given("it fails")
def fails(context):
    assert 10 == 11


@given("it errors")
def errors(context):
    raise RuntimeError("no database")


@given("it crashes")
def crashes(context):
    os._exit(3)


@given("it sleeps")
def sleeps(context):
    open("started", "w").close()
    time.sleep(60)
"""

LIT_CONFIG = """
import os

import lit.formats

config.name = "cart"
config.suffixes = [".test"]
config.test_format = lit.formats.ShTest()
config.test_source_root = config.test_exec_root = os.path.dirname(os.path.abspath(__file__))
{more}
"""

PRODUCERS = {
    "pytest": _pytest(),
    "pytest-xunit1": _pytest("-ojunit_family=xunit1"),
    "pytest-xdist": _pytest("-p", "xdist", "-n", "2"),
    "pytest-rerunfailures": _retried("-p", "pytest_rerunfailures", "--reruns=2"),
    "pytest-flaky": _retried(
        *("-p", "flaky.flaky_pytest_plugin", "--force-flaky", "--max-runs=3"),
        "--no-success-flaky-report",
    ),
    "pytest-retry": _retried("-p", "pytest_retry.retry_plugin", "--retries=2"),
    "unittest-xml-reporting": _unittest(
        *("python", "-m", "xmlrunner", "discover", "-s", "tests", "-t", "."),
        *("--output-file", "report.xml"),
    ),
    "nose2": _unittest(
        *("python", "-m", "nose2", "--plugin", "nose2.plugins.junitxml", "--junit-xml", "-s", "."),
        *("-t", ".", "tests"),
        reports="nose2-junit.xml",
    ),
    # It waits for ever for a process that died, so that scene is left out.
    "green": _without(
        Scene.CRASH, _unittest("python", "-m", "green", "-s", "1", "-j", "report.xml", "tests")
    ),
    "stestr": replace(
        _unittest(
            *("sh", "-c"),
            "rm -rf .stestr; python -m stestr --test-path tests --top-dir . run; ended=$?;"
            " python -m stestr last --subunit | subunit2junitxml -o report.xml; exit $ended",
        ),
    ),
    "robot": Producer(
        Home.PYTHON,
        {
            "tests/cart.robot": ROBOT,
            "tests/tax.robot": ROBOT_BESIDE.format(more="", step="No Operation"),
        },
        ("python", "-m", "robot", "--xunit", "report.xml", "tests"),
        scenes={
            Scene.CRASH: Change(
                {
                    "tests/tax.robot": ROBOT_BESIDE.format(
                        more="", step="Evaluate    os._exit(3)    modules=os"
                    )
                }
            ),
            Scene.INTERRUPTED: Change(
                {
                    "tests/tax.robot": ROBOT_BESIDE.format(
                        more="", step="Create File    ${EXECDIR}/started\n    Sleep    60s"
                    )
                }
            ),
            Scene.UNLOADED: Change({"tests/tax.robot": "*** No Such Section ***\nIt\n"}),
            Scene.REVERSED: Change(
                command=(
                    *("python", "-m", "robot", "--xunit", "report.xml"),
                    *("--randomize", "all:7", "tests"),
                )
            ),
        },
    ),
    "behave": Producer(
        Home.PYTHON,
        {
            "features/cart.feature": BEHAVE,
            "features/tax.feature": BEHAVE_BESIDE.format(step="it passes"),
            "features/steps/steps.py": BEHAVE_STEPS,
        },
        (
            *("python", "-m", "behave", "--junit", "--junit-directory", "reports", "--tags=-skip"),
            "--no-capture",
        ),
        "reports/*.xml",
        {
            Scene.CRASH: Change({"features/tax.feature": BEHAVE_BESIDE.format(step="it crashes")}),
            Scene.INTERRUPTED: Change(
                {"features/tax.feature": BEHAVE_BESIDE.format(step="it sleeps")}
            ),
            Scene.UNLOADED: Change({"features/tax.feature": "Feature: tax\n  Scenario it\n x\n"}),
        },
    ),
    "lit": Producer(
        Home.PYTHON,
        {
            "tests/lit.cfg": LIT_CONFIG.format(more=""),
            "tests/passes.test": "# RUN: true\n",
            "tests/passes_and_is_renamed.test": "# RUN: true\n",
            "tests/fails_always.test": "# RUN: false\n",
            "tests/errors_always.test": "# RUN: no-such-program\n",
            "tests/is_skipped.test": "# REQUIRES: no-such-machine\n# RUN: true\n",
            "tests/fails_once_then_passes.test": (
                "# RUN: sh -c 'test -e ran-once || { touch ran-once; false; }'\n"
                "# ALLOW_RETRIES: 2\n"
            ),
            "tests/tax/passes_beside.test": "# RUN: true\n",
        },
        (
            "sh",
            "-c",
            'rm -f ran-once; exec python -c "from lit.main import main; main()" -q'
            ' --xunit-xml-output=report.xml "$@" tests',
            "lit",
        ),
        scenes={
            Scene.UNLOADED: Change({"tests/tax/passes_beside.test": "no line says how to run\n"}),
            Scene.INTERRUPTED: Change(
                {"tests/tax/passes_beside.test": "# RUN: sh -c 'touch started && sleep 60'\n"}
            ),
            Scene.SHARD_1: Change(options=("--num-shards=2", "--run-shard=1")),
            Scene.SHARD_2: Change(options=("--num-shards=2", "--run-shard=2")),
        },
        has_retries=True,
    ),
}

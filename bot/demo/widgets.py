"""The repository `octo/widgets` before the play: its files and its CI."""

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

CHECK = "test"

# A paused machine takes this long to give up.
TEST_TIMEOUT_S = 900
SIGN_TIMEOUT_S = 600

# Quick tests on a pull request, all of them in the queue, as many projects have it. The job sends
# its report to Headgate with its own token.
SCRIPT = '''\
"""Run the tests: the quick ones on a pull request, all of them on a branch."""
import os
import pathlib
import sys
import time
import unittest
from xml.etree import ElementTree

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
in_queue = os.environ.get("GITHUB_REF", "").startswith("refs/heads/headgate/")
is_quick = os.environ.get("GITHUB_EVENT_NAME") == "pull_request" and not in_queue


def take_time(seconds):
    """The slow tests take their time; the file `pace` of the machine makes it longer."""
    pace = pathlib.Path(os.environ.get("WIDGETS_CACHE", ""), "pace")
    while seconds > 0:
        time.sleep(0.1)
        seconds -= 0.1 * float(pace.read_text() if pace.exists() else 1)


def cases_of(suite):
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from cases_of(each)
        else:
            yield each


def write_report(cases, outcome):
    """Write a JUnit report, which the job sends to Headgate."""
    messages = {test.id(): text for test, text in outcome.failures + outcome.errors}
    report = ElementTree.Element("testsuite", name="widgets", tests=str(len(cases)))
    for test in cases:
        file = type(test).__module__.replace(".", "/") + ".py"
        where, _, name = test.id().rpartition(".")
        case = ElementTree.SubElement(report, "testcase", classname=where, name=name, file=file)
        if test.id() in messages:
            text = messages[test.id()]
            last = text.strip().splitlines()[-1]
            ElementTree.SubElement(case, "failure", message=last).text = text
    ElementTree.ElementTree(report).write("junit.xml")


if "CI" in os.environ and not is_quick:
    take_time(2)
pattern = "test_quick*.py" if is_quick else "test_*.py"
found = unittest.defaultTestLoader.discover("tests", pattern=pattern, top_level_dir=".")
cases = list(cases_of(found))
outcome = unittest.TextTestRunner(stream=sys.stdout, verbosity=1).run(found)
if "CI" in os.environ:
    write_report(cases, outcome)
for test, _ in outcome.failures + outcome.errors:
    print("FAILED", test.id())
sys.exit(not outcome.wasSuccessful())
'''

UPLOADS = 'def upload(path):\n    return post("/upload", path)\n\n\n'
POST = "def post(address, body):\n    return (address, body)\n"
TOTAL = "def total(prices):\n    return round(sum(prices), 2)\n"

# Fails while it rains. The weather is a file of the CI machine, so the same commit also passes.
WEATHER = (
    "import os\nimport pathlib\nimport unittest\n\n\nclass Weather(unittest.TestCase):\n"
    "    def test_picnic(self):\n"
    '        rain = pathlib.Path(os.environ.get("WIDGETS_CACHE", "."), "rain")\n'
    '        self.assertFalse(rain.exists(), "it rains on the CI machine")\n'
)
WEATHER_FILE, RAIN = "tests/test_weather.py", "rain"

# Fails the first time on a machine: the cache outlives the run, and the first run finds it cold.
# It passes where there is no cache.
CACHE = (
    "import os\nimport pathlib\nimport unittest\n\n\nclass Cache(unittest.TestCase):\n"
    "    def test_cache_is_warm(self):\n"
    '        if "WIDGETS_CACHE" in os.environ:\n'
    '            cache = pathlib.Path(os.environ["WIDGETS_CACHE"], "prices")\n'
    "            was_warm = cache.exists()\n"
    "            cache.touch()\n"
    '            self.assertTrue(was_warm, "the cache is cold")\n'
)


def test_file(name: str, body: str) -> str:
    """Return a file with one test of the module `widgets/{name}.py`."""
    return (
        f"import unittest\n\nfrom widgets import {name}\n\n\n"
        f"class {name.capitalize()}(unittest.TestCase):\n"
        f"    def test_{name}(self):\n        {body}\n"
    )


def awaiting_test_file(name: str, sign: str) -> str:
    """Return a file with one test that waits on CI for a file `sign`, for SIGN_TIMEOUT_S at most.

    So a test run ends after what the story needs before it, however slow the machine is.
    """
    return (
        f"import os\nimport pathlib\nimport time\nimport unittest\n\n\n"
        f"class {name.capitalize()}(unittest.TestCase):\n"
        f"    def test_{name}(self):\n"
        f'        if "WIDGETS_CACHE" not in os.environ:\n'
        f"            return\n"
        f'        sign = pathlib.Path(os.environ["WIDGETS_CACHE"], "{sign}")\n'
        f"        ends = time.monotonic() + {SIGN_TIMEOUT_S}\n"
        f"        while not sign.exists() and time.monotonic() < ends:\n"
        f"            time.sleep(0.1)\n"
    )


def ci_file(cache: Path, branch: str) -> str:
    """Return `.sandbox/ci.yml`: one required check that runs the repository's own script.

    `cache` is a folder that outlives each run, as CI machines have one. Pushes to `branch` are
    tested too, so that Headgate knows how its tests end there.
    """
    command = f"{shlex.quote(sys.executable)} run_tests.py"
    return (
        f'triggers:\n  push: ["headgate/merge/**", {branch}]\n  pull_request: true\n'
        f"checks:\n  - name: {CHECK}\n"
        f"    run: WIDGETS_CACHE={shlex.quote(str(cache))} {command}\n"
        f"    junit: junit.xml\n    sends: true\n    timeout_s: {TEST_TIMEOUT_S}\n"
    )


FILES: Mapping[str, str] = {
    "README.md": "# Widgets\n",
    "run_tests.py": SCRIPT,
    "widgets/__init__.py": "",
    "widgets/uploads.py": UPLOADS + POST,
    "widgets/client.py": 'VERSION = "1.0"\n',
    "widgets/cart.py": TOTAL,
    "widgets/mail.py": 'SENDER = "noreply@widgets.example"\n',
    "tests/__init__.py": "",
    "tests/test_quick_client.py": test_file("client", "self.assertTrue(client.VERSION)"),
    "tests/test_uploads.py": test_file("uploads", 'self.assertEqual(uploads.upload("a")[1], "a")'),
    "tests/test_cart.py": test_file("cart", "self.assertEqual(cart.total([9.99, 0.01]), 10.0)"),
    "tests/test_mail.py": test_file("mail", 'self.assertIn("@", mail.SENDER)'),
}

# Pushed to each branch after the pull requests were opened: none of them is based on its tip, so
# each has to be tested in the queue.
LATER: Mapping[str, str] = {"CHANGELOG.md": "Nothing yet.\n"}

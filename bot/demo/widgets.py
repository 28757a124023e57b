"""The repository `octo/widgets` before the play: its files and its CI."""

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

CHECK = "test"

# Quick tests on a pull request, all of them in the queue, as many projects have it.
SCRIPT = '''\
"""Run the tests: the quick ones on a pull request, all of them in the merge queue."""
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
ref = os.environ.get("GITHUB_REF", "refs/heads/headgate/")
in_queue = ref.startswith("refs/heads/headgate/")
pattern = "test_*.py" if in_queue else "test_quick*.py"
if in_queue and "CI" in os.environ:
    time.sleep(2)  # the slow ones take their time
found = unittest.defaultTestLoader.discover("tests", pattern=pattern, top_level_dir=".")
outcome = unittest.TextTestRunner(stream=sys.stdout, verbosity=1).run(found)
for test, _ in outcome.failures + outcome.errors:
    print("FAILED", test.id())
sys.exit(not outcome.wasSuccessful())
'''

UPLOADS = 'def upload(path):\n    return post("/upload", path)\n\n\n'
POST = "def post(address, body):\n    return (address, body)\n"
TOTAL = "def total(prices):\n    return round(sum(prices), 2)\n"

# Fails in every second workflow run.
WEATHER = (
    "import os\nimport unittest\n\n\nclass Weather(unittest.TestCase):\n"
    "    def test_sun(self):\n"
    '        self.assertEqual(int(os.environ.get("GITHUB_RUN_ID", "0")) % 2, 0)\n'
)

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


def slow_test_file(name: str, seconds: int) -> str:
    """Return a file with one test that sleeps so long, on CI alone."""
    return (
        f"import os\nimport time\nimport unittest\n\n\n"
        f"class {name.capitalize()}(unittest.TestCase):\n"
        f"    def test_{name}(self):\n"
        f'        time.sleep({seconds} if "CI" in os.environ else 0)\n'
    )


def ci_file(cache: Path) -> str:
    """Return `.sandbox/ci.yml`: one required check that runs the repository's own script.

    `cache` is a folder that outlives each run, as CI machines have one.
    """
    command = f"{shlex.quote(sys.executable)} run_tests.py"
    return (
        f'triggers:\n  push: ["headgate/merge/**"]\n  pull_request: true\n'
        f"checks:\n  - name: {CHECK}\n"
        f"    run: WIDGETS_CACHE={shlex.quote(str(cache))} {command}\n    timeout_s: 60\n"
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

"""The play: one repository, its pull requests, and what shall become of each. Plain values."""

import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass

OWNER, NAME, BRANCH = "octo", "widgets", "main"
SLUG = f"{OWNER}/{NAME}"
CHECK = "test"

# Role by login; urgent needs maintain (UX.md 2.3).
PEOPLE: Mapping[str, str] = {"alice": "maintain", "bob": "write", "carol": "read"}

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
FLAKY = (
    "import os\nimport unittest\n\n\nclass Weather(unittest.TestCase):\n"
    "    def test_sun(self):\n"
    '        self.assertEqual(int(os.environ.get("GITHUB_RUN_ID", "0")) % 2, 0)\n'
)


def test_file(name: str, body: str) -> str:
    """A file with one test of the module `widgets/{name}.py`."""
    return (
        f"import unittest\n\nfrom widgets import {name}\n\n\n"
        f"class {name.capitalize()}(unittest.TestCase):\n"
        f"    def test_{name}(self):\n        {body}\n"
    )


def ci_file() -> str:
    """`.sandbox/ci.yml`: one required check that runs the repository's own script."""
    return (
        f'triggers:\n  push: ["headgate/merge/**"]\n  pull_request: true\n'
        f"checks:\n  - name: {CHECK}\n"
        f"    run: {shlex.quote(sys.executable)} run_tests.py\n    timeout_s: 60\n"
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

# What main gets after the pull requests were opened: none of them stands on its tip, so each
# one has to be tested in the queue.
LATER: Mapping[str, str] = {"CHANGELOG.md": "Nothing yet.\n"}


@dataclass(frozen=True, slots=True)
class Role:
    """One pull request of the play; `expected` None: it is the visitor's."""

    number: int
    title: str
    author: str
    files: Mapping[str, str]
    expected: str | None = None
    reason: str | None = None
    draft: bool = False
    command: str = "/merge"
    said_by: str = "bob"

    @property
    def branch(self) -> str:
        """The head branch: the title as a name."""
        return self.title.lower().replace(" ", "-")


ROLES: tuple[Role, ...] = (
    Role(
        1,
        "Retry uploads",
        "alice",
        {
            "widgets/uploads.py": (
                "def upload(path, tries=3):\n"
                '    return post("/upload", path) if tries else None\n\n\n' + POST
            )
        },
        "MERGED",
    ),
    Role(2, "Bump client", "bob", {"widgets/client.py": 'VERSION = "1.1"\n'}, "MERGED"),
    Role(
        3,
        "Cart totals",
        "alice",
        {"widgets/cart.py": "def total(prices):\n    return round(sum(prices), 2) + 0.01\n"},
        "FAILED",
        "required_status_failed",
    ),
    Role(4, "Docs", "bob", {"docs/guide.md": "# Guide\n\nCall upload.\n"}, "MERGED"),
    Role(
        5,
        "Rename routes",
        "alice",
        {
            "widgets/uploads.py": (
                'def upload(path):\n    return post("/v2/files", path)\n\n\n' + POST
            )
        },
        "FAILED",
        "conflict_target",
    ),
    Role(6, "Mail sender", "bob", {"widgets/mail.py": 'SENDER = "hi@widgets.example"\n'}, "MERGED"),
    Role(
        7,
        "Hotfix",
        "alice",
        {"widgets/hotfix.py": "FIXED = True\n"},
        "MERGED",
        command="/merge --priority=urgent",
        said_by="alice",
    ),
    Role(8, "Wish list", "bob", {"widgets/wishes.py": "WISHES = []\n"}),
    Role(9, "Weather report", "bob", {"tests/test_weather.py": FLAKY}),
    Role(10, "Wish list as a set", "alice", {"widgets/wishes.py": "WISHES = set()\n"}),
    Role(11, "Unfinished thoughts", "bob", {"docs/thoughts.md": "Hm.\n"}, draft=True),
)

OPENING = tuple(role for role in ROLES if role.number <= 5)
SLOW, URGENT = ROLES[5], ROLES[6]

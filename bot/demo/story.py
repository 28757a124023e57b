"""The story: four target branches, their pull requests, and what must become of each.

Every branch has a queue of its own; all four are played at the same time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pydantic import JsonValue

from bot.demo import widgets

OWNER, NAME = "octo", "widgets"
SLUG = f"{OWNER}/{NAME}"

# Role by login; urgent needs maintain. Two people comment, because the service accepts ten
# commands a minute of one person.
PEOPLE: Mapping[str, str] = {"alice": "maintain", "bob": "write", "carol": "read"}


@dataclass(frozen=True, slots=True)
class Change:
    """One pull request; its author comments `command`.

    `expected` is its final state, None for one that is left to the visitor. `targets` are what
    CI reports that it touches. `is_beside`: it lands after another one, as the same change on
    another tree.
    """

    number: int
    title: str
    author: str
    files: Mapping[str, str]
    expected: str | None = "MERGED"
    reason: str = "landed"
    is_draft: bool = False
    command: str = "/merge"
    targets: tuple[str, ...] = ()
    is_beside: bool = False

    @property
    def branch(self) -> str:
        """The head branch: the title as a name."""
        return self.title.lower().replace(" ", "-")


class Run(NamedTuple):
    """A test run that must occur: `numbers` are tested on top of `base`."""

    kind: str
    numbers: tuple[int, ...]
    base: tuple[int, ...]
    status: str


@dataclass(frozen=True, slots=True)
class Story:
    """One target branch with its queue.

    `lands` is the order of landing. With no `settings` the first comment makes the queue.
    """

    branch: str
    shows: str
    changes: tuple[Change, ...]
    lands: tuple[int, ...]
    runs: tuple[Run, ...]
    settings: Mapping[str, JsonValue] | None = None


ROUNDED_UP = "def total(prices):\n    return round(sum(prices), 2) + 0.01\n"
CHEAPER = "def total(prices):\n    return round(sum(prices) * 0.9, 2)\n"
RETRY = (
    "def upload(path, tries=3):\n"
    '    return post("/upload", path) if tries else None\n\n\n' + widgets.POST
)
RENAMED = 'def upload(path):\n    return post("/v2/files", path)\n\n\n' + widgets.POST
BROKEN = ("FAILED", "required_status_failed")

MAIN = Story(
    "main",
    "one by one: a failed check, a conflict, an urgent interruption",
    (
        Change(1, "Retry uploads", "alice", {"widgets/uploads.py": RETRY}),
        Change(2, "Bump client", "bob", {"widgets/client.py": 'VERSION = "1.1"\n'}),
        Change(3, "Cart totals", "alice", {"widgets/cart.py": ROUNDED_UP}, *BROKEN),
        Change(4, "Docs", "bob", {"docs/guide.md": "# Guide\n\nCall upload.\n"}),
        Change(
            5,
            "Rename routes",
            "alice",
            {"widgets/uploads.py": RENAMED},
            "FAILED",
            "conflict_target",
        ),
        Change(6, "Mail sender", "bob", {"widgets/mail.py": 'SENDER = "hi@widgets.example"\n'}),
        Change(
            7,
            "Hotfix",
            "alice",
            {"widgets/hotfix.py": "FIXED = True\n"},
            command="/merge --priority=urgent",
        ),
        Change(8, "Wish list", "bob", {"widgets/wishes.py": "WISHES = []\n"}, None),
        Change(9, "Weather report", "bob", {"tests/test_weather.py": widgets.WEATHER}, None),
        Change(10, "Wish list as a set", "alice", {"widgets/wishes.py": "WISHES = set()\n"}, None),
        Change(
            11, "Unfinished thoughts", "bob", {"docs/thoughts.md": "Hm.\n"}, None, is_draft=True
        ),
    ),
    lands=(1, 2, 4, 7, 6),
    runs=(Run("main", (6,), (7,), "succeeded"),),
)

# The culprit is the last of four: half of the batch, then three quarters of it pass and land,
# and it is tested once more before it is blamed.
RELEASE = Story(
    "release",
    "a batch of four fails; a search finds the culprit, which fails alone",
    (
        Change(12, "Gift cards", "alice", {"widgets/gifts.py": "GIFTS = True\n"}),
        Change(13, "Coupons", "bob", {"widgets/coupons.py": "COUPONS = True\n"}),
        Change(14, "Invoices", "alice", {"widgets/invoices.py": "INVOICES = True\n"}),
        Change(15, "Cheaper cart", "bob", {"widgets/cart.py": CHEAPER}, *BROKEN),
    ),
    lands=(12, 13, 14),
    runs=(
        Run("main", (12, 13, 14, 15), (), "failed"),
        Run("probe", (12, 13), (), "succeeded"),
        Run("probe", (12, 13, 14), (), "succeeded"),
        Run("confirmation", (12, 13, 14, 15), (), "failed"),
    ),
    settings={"batch": True, "batchingMinSize": 4},
)

# The first takes longer, so the second lands while the first is still being tested.
LANES = Story(
    "lanes",
    "two that touch different things: the later one lands first",
    (
        Change(
            16,
            "Faster api",
            "alice",
            {
                "widgets/api.py": "FAST = True\n",
                "tests/test_api.py": widgets.slow_test_file("api", 10),
            },
            targets=("//api",),
            is_beside=True,
        ),
        Change(
            17,
            "Web colors",
            "bob",
            {"widgets/web.py": 'COLORS = ("red", "blue")\n'},
            targets=("//web",),
        ),
    ),
    lands=(17, 16),
    runs=(Run("main", (16,), (), "succeeded"), Run("main", (17,), (), "succeeded")),
    settings={"mode": "PARALLEL", "concurrency": 2},
)

# The second is slow and sorts before the flaky test: the failure is known before it passes, and
# the cache is warm when it asks.
OPTIMISTIC = Story(
    "optimistic",
    "a flake fails the first, the pass on top of it clears it, both land as one",
    (
        Change(
            18,
            "Cache prices",
            "alice",
            {"widgets/prices.py": "PRICES = {}\n", "tests/test_cache.py": widgets.CACHE},
        ),
        Change(
            19,
            "Archive orders",
            "bob",
            {
                "widgets/archive.py": "ORDERS = []\n",
                "tests/test_archive.py": widgets.slow_test_file("archive", 20),
            },
        ),
    ),
    lands=(18, 19),
    runs=(Run("main", (18,), (), "failed"), Run("main", (19,), (18,), "succeeded")),
    settings={"canOptimisticallyMerge": True, "pendingFailureDepth": 1, "concurrency": 2},
)

STORIES = (MAIN, RELEASE, LANES, OPTIMISTIC)
BY_NUMBER = {change.number: change for story in STORIES for change in story.changes}

# 5 right behind 1, so that it is queued before 1 has landed, however slow the machine is.
OPENING = tuple(BY_NUMBER[number] for number in (1, 5, 2, 3, 4))
SLOW, URGENT, CULPRIT = BY_NUMBER[6], BY_NUMBER[7], BY_NUMBER[15]

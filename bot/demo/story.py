"""The story: six target branches, their pull requests, and what must become of each.

Every branch has a queue of its own; all six are played at the same time.
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

    `expected` is its final state. `targets` are what CI reports that it touches. `is_beside`: it
    lands after another one, as the same change on another tree. `onto`: its branch begins at the
    head of this one.
    """

    number: int
    title: str
    author: str
    files: Mapping[str, str]
    expected: str = "MERGED"
    reason: str = "landed"
    command: str = "/merge"
    targets: tuple[str, ...] = ()
    is_beside: bool = False
    onto: int | None = None

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
    `excused` are the tests whose failures must count as passed.
    """

    branch: str
    shows: str
    changes: tuple[Change, ...]
    lands: tuple[int, ...]
    runs: tuple[Run, ...]
    settings: Mapping[str, JsonValue] | None = None
    excused: tuple[str, ...] = ()


ROUNDED_UP = "def total(prices):\n    return round(sum(prices), 2) + 0.01\n"
CHEAPER = "def total(prices):\n    return round(sum(prices) * 0.9, 2)\n"
REFUNDS = (
    "\n\ndef refund(order):\n"
    "    paid = total(order.prices)\n"
    "    order.balance -= paid\n"
    "    return paid\n"
)
RETRY = (
    "def upload(path, tries=3):\n"
    '    return post("/upload", path) if tries else None\n\n\n' + widgets.POST
)
RENAMED = 'def upload(path):\n    return post("/v2/files", path)\n\n\n' + widgets.POST
OPENING_QUEUED = "opening-is-queued"
HOTFIX_QUEUED = "hotfix-is-queued"
WEB_LANDED = "web-colors-has-landed"
ARCHIVE_QUEUED = "archive-orders-is-queued"
CACHE_FAILED = "cache-prices-has-failed"
BROKEN = ("FAILED", "required_status_failed")

MAIN = Story(
    "main",
    "one by one: a failed check, a conflict, an urgent interruption",
    (
        # Its tests end once 5 is queued, which conflicts with it.
        Change(
            1,
            "Retry uploads",
            "alice",
            {
                "widgets/uploads.py": RETRY,
                "tests/test_tries.py": widgets.awaiting_test_file("tries", OPENING_QUEUED),
            },
        ),
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
        # Its tests end once 7 is queued.
        Change(
            6,
            "Mail sender",
            "bob",
            {
                "widgets/mail.py": 'SENDER = "hi@widgets.example"\n',
                "tests/test_sender.py": widgets.awaiting_test_file("sender", HOTFIX_QUEUED),
            },
        ),
        Change(
            7,
            "Hotfix",
            "alice",
            {"widgets/hotfix.py": "FIXED = True\n"},
            command="/merge --priority=urgent",
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
        Change(8, "Gift cards", "alice", {"widgets/gifts.py": "GIFTS = True\n"}),
        Change(9, "Coupons", "bob", {"widgets/coupons.py": "COUPONS = True\n"}),
        Change(10, "Invoices", "alice", {"widgets/invoices.py": "INVOICES = True\n"}),
        Change(11, "Cheaper cart", "bob", {"widgets/cart.py": CHEAPER}, *BROKEN),
    ),
    lands=(8, 9, 10),
    runs=(
        Run("main", (8, 9, 10, 11), (), "failed"),
        Run("probe", (8, 9), (), "succeeded"),
        Run("probe", (8, 9, 10), (), "succeeded"),
        Run("confirmation", (8, 9, 10, 11), (), "failed"),
    ),
    settings={"batch": True, "batchingMinSize": 4},
)

# The second lands while the first is still being tested: the tests of the first end after that.
LANES = Story(
    "lanes",
    "two that touch different things: the later one lands first",
    (
        Change(
            12,
            "Faster api",
            "alice",
            {
                "widgets/api.py": "FAST = True\n",
                "tests/test_api.py": widgets.awaiting_test_file("api", WEB_LANDED),
            },
            targets=("//api",),
            is_beside=True,
        ),
        Change(
            13,
            "Web colors",
            "bob",
            {"widgets/web.py": 'COLORS = ("red", "blue")\n'},
            targets=("//web",),
        ),
    ),
    lands=(13, 12),
    runs=(Run("main", (12,), (), "succeeded"), Run("main", (13,), (), "succeeded")),
    settings={"mode": "PARALLEL", "concurrency": 2},
)

# The first fails once the second is queued. The tests of the second go on once that failure is
# known, and their first one sorts before the flaky test: the cache is warm when it asks.
OPTIMISTIC = Story(
    "optimistic",
    "a flake fails the first, the pass on top of it clears it, both land as one",
    (
        Change(
            14,
            "Cache prices",
            "alice",
            {
                "widgets/prices.py": "PRICES = {}\n",
                "tests/test_cache.py": widgets.CACHE,
                "tests/test_prices.py": widgets.awaiting_test_file("prices", ARCHIVE_QUEUED),
            },
        ),
        Change(
            15,
            "Archive orders",
            "bob",
            {
                "widgets/archive.py": "ORDERS = []\n",
                "tests/test_archive.py": widgets.awaiting_test_file("archive", CACHE_FAILED),
            },
        ),
    ),
    lands=(14, 15),
    runs=(Run("main", (14,), (), "failed"), Run("main", (15,), (14,), "succeeded")),
    settings={"canOptimisticallyMerge": True, "pendingFailureDepth": 1, "concurrency": 2},
)

# The test is flaky by the reports of the branch itself, so its failure does not count.
WEATHER = Story(
    "weather",
    "a known flaky test fails, its failure is excused, and the pull request lands",
    (Change(16, "Picnic list", "alice", {"widgets/picnic.py": 'LIST = ["bread"]\n'}),),
    lands=(16,),
    runs=(Run("main", (16,), (), "succeeded"),),
    excused=("test_picnic",),
    settings={"concurrency": 1},
)

# The second was written by a program that had the cart in memory as it was before the first: it
# merges cleanly, and its tests pass, because nothing tests the refunds any more.
AGENTS = Story(
    "agents",
    "an agent undoes merged work: its pull request waits, and both authors are told",
    (
        Change(17, "Refund orders", "alice", {"widgets/cart.py": widgets.TOTAL + REFUNDS}),
        Change(
            18,
            "Tidy the cart",
            "bob",
            {"widgets/cart.py": widgets.TOTAL, "docs/cart.md": "# The cart\n"},
            "CANCELLED",
            "user_requested",
            onto=17,
        ),
    ),
    lands=(17,),
    runs=(Run("main", (17,), (), "succeeded"),),
    settings={"mergeMethod": "MERGE_COMMIT"},
)

STORIES = (MAIN, RELEASE, LANES, OPTIMISTIC, WEATHER, AGENTS)
BY_NUMBER = {change.number: change for story in STORIES for change in story.changes}

OPENING = tuple(BY_NUMBER[number] for number in (1, 5, 2, 3, 4))
CACHE_PRICES, WEB_COLORS = BY_NUMBER[14], BY_NUMBER[13]
REFUNDING, UNDOING = AGENTS.changes
SLOW, URGENT, CULPRIT = BY_NUMBER[6], BY_NUMBER[7], BY_NUMBER[11]

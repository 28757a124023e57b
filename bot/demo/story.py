"""The play: four branches of one repository, their pull requests, and what shall become of each.

Plain values. Every branch has a queue of its own; all four are played at the same time.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from bot.demo import widgets

OWNER, NAME = "octo", "widgets"
SLUG = f"{OWNER}/{NAME}"

# Role by login; urgent needs maintain (UX.md 2.3). Two people comment: the service hears ten
# commands a minute of one.
PEOPLE: Mapping[str, str] = {"alice": "maintain", "bob": "write", "carol": "read"}


@dataclass(frozen=True, slots=True)
class Role:
    """One pull request of the play; `expected` None: it is the visitor's.

    `targets` are what CI says it touches; None: CI says nothing.
    """

    number: int
    title: str
    author: str
    files: Mapping[str, str]
    expected: str | None = None
    reason: str | None = None
    draft: bool = False
    command: str = "/merge"
    said_by: str = "bob"
    targets: tuple[str, ...] | None = None

    @property
    def branch(self) -> str:
        """The head branch: the title as a name."""
        return self.title.lower().replace(" ", "-")


@dataclass(frozen=True, slots=True)
class Story:
    """One target branch with its queue; `settings` None: the first comment makes the queue."""

    branch: str
    shows: str
    roles: tuple[Role, ...]
    settings: Mapping[str, JsonValue] | None = None

    @property
    def is_parallel(self) -> bool:
        """Whether its pull requests may land beside each other."""
        return self.settings is not None and self.settings.get("mode") == "PARALLEL"


MAIN = Story(
    "main",
    "one by one: a failed check, a conflict, an urgent interruption",
    (
        Role(
            1,
            "Retry uploads",
            "alice",
            {
                "widgets/uploads.py": (
                    "def upload(path, tries=3):\n"
                    '    return post("/upload", path) if tries else None\n\n\n' + widgets.POST
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
                    'def upload(path):\n    return post("/v2/files", path)\n\n\n' + widgets.POST
                )
            },
            "FAILED",
            "conflict_target",
        ),
        Role(
            6,
            "Mail sender",
            "bob",
            {"widgets/mail.py": 'SENDER = "hi@widgets.example"\n'},
            "MERGED",
        ),
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
        Role(9, "Weather report", "bob", {"tests/test_weather.py": widgets.WEATHER}),
        Role(10, "Wish list as a set", "alice", {"widgets/wishes.py": "WISHES = set()\n"}),
        Role(11, "Unfinished thoughts", "bob", {"docs/thoughts.md": "Hm.\n"}, draft=True),
    ),
)

# The culprit is the last of four: half of the batch, then three quarters of it pass and land,
# and it is run once more before it is blamed.
RELEASE = Story(
    "release",
    "a batch of four fails; a search finds the culprit, which fails alone",
    (
        Role(
            12,
            "Gift cards",
            "alice",
            {"widgets/gifts.py": "GIFTS = True\n"},
            "MERGED",
            said_by="alice",
        ),
        Role(
            13,
            "Coupons",
            "bob",
            {"widgets/coupons.py": "COUPONS = True\n"},
            "MERGED",
            said_by="alice",
        ),
        Role(
            14,
            "Invoices",
            "alice",
            {"widgets/invoices.py": "INVOICES = True\n"},
            "MERGED",
            said_by="alice",
        ),
        Role(
            15,
            "Cheaper cart",
            "bob",
            {"widgets/cart.py": "def total(prices):\n    return round(sum(prices) * 0.9, 2)\n"},
            "FAILED",
            "required_status_failed",
            said_by="alice",
        ),
    ),
    {"batch": True, "batchingMinSize": 4},
)

# The first takes longer, so the second lands while the first is still being tested.
LANES = Story(
    "lanes",
    "two that touch different things: the later one lands first",
    (
        Role(
            16,
            "Faster api",
            "alice",
            {
                "widgets/api.py": "FAST = True\n",
                "tests/test_api.py": widgets.slow_test_file("api", 10),
            },
            "MERGED",
            targets=("//api",),
        ),
        Role(
            17,
            "Web colors",
            "bob",
            {"widgets/web.py": 'COLORS = ("red", "blue")\n'},
            "MERGED",
            targets=("//web",),
        ),
    ),
    {"mode": "PARALLEL", "concurrency": 2},
)

# The second is slow and sorts before the flaky test: the failure is known before it passes, and
# the cache is warm when it asks.
OPTIMISTIC = Story(
    "optimistic",
    "a flake fails the first, the pass on top of it clears it, both land as one",
    (
        Role(
            18,
            "Cache prices",
            "alice",
            {"widgets/prices.py": "PRICES = {}\n", "tests/test_cache.py": widgets.CACHE},
            "MERGED",
            said_by="alice",
        ),
        Role(
            19,
            "Archive orders",
            "bob",
            {
                "widgets/archive.py": "ORDERS = []\n",
                "tests/test_archive.py": widgets.slow_test_file("archive", 20),
            },
            "MERGED",
            said_by="alice",
        ),
    ),
    {"canOptimisticallyMerge": True, "pendingFailureDepth": 1, "concurrency": 2},
)

STORIES = (MAIN, RELEASE, LANES, OPTIMISTIC)
ROLES = tuple(role for story in STORIES for role in story.roles)

# 5 right behind 1, so that it is queued before 1 has landed, however slow the machine is.
OPENING = tuple(MAIN.roles[place] for place in (0, 4, 1, 2, 3))
SLOW, URGENT = MAIN.roles[5], MAIN.roles[6]
CULPRIT = RELEASE.roles[3]
SLOWER, QUICKER = LANES.roles
FLAKY, CLEARING = OPTIMISTIC.roles

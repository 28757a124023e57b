"""An example to begin with: two repositories with pull requests and a scripted CI.

Its CI runs no command: `.sandbox/ci.yml` says which tests fail on which files.
"""

from bot.sandbox.acts import actions_by_people, seeds
from bot.sandbox.records import Json
from bot.sandbox.world import World

WIDGETS, WEBSITE = "octo/widgets", "octo/website"

# On pull requests only quick tests run: what breaks a slow one shows on the test branch.
WIDGETS_CI = """\
triggers: {push: [main], pull_request: true}
checks:
  - {name: lint, seconds: 1}
  - name: test
    seconds: 3
    sends: true
    reports:
      tests:
        - {name: test_upload, classname: tests.test_uploads, file: tests/test_uploads.py}
        - name: test_total
          classname: tests.test_cart
          file: tests/test_cart.py
          rules:
            - branch: "headgate/merge/**"
              contains: {path: widgets/cart.py, text: "+ 0.01"}
              conclusion: failure
        - name: test_sunshine
          classname: tests.test_picnics
          file: tests/test_picnics.py
          rules:
            - {exists: [widgets/picnics.py], flake: 0.3, conclusion: failure}
"""
WEBSITE_CI = """\
triggers: {push: [main], pull_request: true}
checks:
  - {name: build, seconds: 2}
"""

UPLOADS = 'def upload(path):\n    return post("/upload", path)\n'
TOTAL = "def total(prices):\n    return round(sum(prices), 2)\n"
RETRY = (
    "def upload(path, tries=3):\n"
    '    return post("/upload", path) or (upload(path, tries - 1) if tries else None)\n'
)

REPOSITORIES: tuple[Json, ...] = (
    {
        "full_name": WIDGETS,
        "files": {
            "README.md": "# Widgets\n",
            "widgets/uploads.py": UPLOADS,
            "widgets/cart.py": TOTAL,
            ".sandbox/ci.yml": WIDGETS_CI,
        },
        "required_checks": ["lint", "test"],
    },
    {
        "full_name": WEBSITE,
        "files": {"README.md": "# Website\n", ".sandbox/ci.yml": WEBSITE_CI},
        "required_checks": ["build"],
    },
)

PULLS: tuple[Json, ...] = (
    {
        "repo": WIDGETS,
        "as": "alice",
        "head": "retry-uploads",
        "title": "Retry uploads",
        "body": "Good: it can be merged.",
        "files": {"widgets/uploads.py": RETRY},
    },
    {
        "repo": WIDGETS,
        "as": "bob",
        "head": "wish-list",
        "title": "Keep a wish list",
        "body": "Good, too: merge it together with the first one.",
        "files": {"widgets/wishes.py": "WISHES = []\n"},
    },
    {
        "repo": WIDGETS,
        "as": "bob",
        "head": "round-up",
        "title": "Round totals up",
        "body": "It breaks `test_total`, which only runs on test branches.",
        "files": {"widgets/cart.py": TOTAL.rstrip() + " + 0.01\n"},
    },
    {
        "repo": WIDGETS,
        "as": "alice",
        "head": "picnics",
        "title": "List picnics",
        "body": "Its test `test_sunshine` is flaky: it fails in three of ten runs.",
        "files": {"widgets/picnics.py": "PICNICS = []\n"},
    },
    {
        "repo": WIDGETS,
        "as": "bob",
        "head": "rename-route",
        "title": "Rename the upload route",
        "body": "It conflicts with the first one.",
        "files": {"widgets/uploads.py": UPLOADS.replace("/upload", "/files")},
    },
    {
        "repo": WEBSITE,
        "as": "carol",
        "fork": True,
        "head": "prices",
        "title": "Show prices",
        "body": "From a fork: somebody with write access submits it.",
        "files": {"prices.html": "<h1>Prices</h1>\n"},
    },
)

NEWER: Json = {"as": "alice", "branch": "main", "message": "Begin a change log", "bypass": True}


async def fill(world: World) -> None:
    """Make the repositories with their pull requests, none of which is up to date."""
    await seeds.seed(world, {"repositories": list(REPOSITORIES)})
    for pull in PULLS:
        await actions_by_people.act(world, {"act": "open", **pull})
    for repository in REPOSITORIES:
        files = {"CHANGELOG.md": "Nothing yet.\n"}
        pushed = {"act": "push", "repo": repository["full_name"], "files": files, **NEWER}
        await actions_by_people.act(world, pushed)

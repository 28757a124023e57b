"""Addresses of our pages that answers and texts link to.

The paths that pages answer at are those of `service/dashboard/app.py`.
"""

from urllib.parse import quote

from service.runtime import DashboardAuth, Options
from service.vocabulary import RepoRef

OUR_SEGMENTS = frozenset(
    {
        *("activity", "auth", "docs", "doctor", "events", "find", "help", "login", "logout"),
        *("metrics", "mine", "schemas", "settings", "setup", "static", "v1", "wall", "webhooks"),
    }
)
"""First segments of paths of our own; an owner of such a name is written with its host."""

_KINDS = frozenset({"tests", "uploads", "runs"})
"""Segments after a repository that no branch may have."""


def home(options: Options, ref: RepoRef) -> str:
    """The repository's place among our pages, as a path: `/octo/widgets`.

    With the host in front, `/~github.test/octo/widgets`, where it is not the main one or the
    owner's name is a word of ours.
    """
    is_main = options.main_host in (None, ref.host)
    if is_main and ref.owner.lower() not in OUR_SEGMENTS:
        return f"/{ref.slug}"
    return f"/~{ref.host}/{ref.slug}"


def queue(home_path: str, branch: str) -> str:
    """The page of a queue: `/octo/widgets/main`; `release/2` is written `release~2`.

    A branch that is named like a kind of page gets `~` in front.
    """
    name = quote(branch.replace("/", "~"), safe="~@+")
    return f"{home_path}/~{name}" if name in _KINDS else f"{home_path}/{name}"


def branch_of(segment: str) -> str:
    """The branch that a path names; git allows no `~` in a branch."""
    return segment.removeprefix("~").replace("~", "/")


def pull_request(home_path: str, branch: str, number: int) -> str:
    """The page of a pull request in a queue."""
    return f"{queue(home_path, branch)}/pull/{number}"


def run(home_path: str, run_id: str) -> str:
    """The page of a test run."""
    return f"{home_path}/runs/{run_id}"


def of_queue(options: Options, ref: RepoRef, branch: str) -> str | None:
    """The whole address of a queue's page; None: there are no pages, or no public address."""
    address = _pages(options)
    return None if address is None else f"{address}{queue(home(options, ref), branch)}"


def of_run(options: Options, ref: RepoRef, run_id: str) -> str | None:
    """The whole address of a test run's page, likewise."""
    address = _pages(options)
    return None if address is None else f"{address}{run(home(options, ref), run_id)}"


def _pages(options: Options) -> str | None:
    return None if options.dashboard_auth is DashboardAuth.OFF else options.public_url


def test(options: Options, ref: RepoRef, test_id: str) -> str:
    """The page of a test; a name of it where nobody said how we are reached."""
    return _under(options, ref, "tests", test_id)


def upload(options: Options, ref: RepoRef, upload_id: str) -> str:
    """The page of an upload, likewise."""
    return _under(options, ref, "uploads", upload_id)


def _under(options: Options, ref: RepoRef, kind: str, thing: str) -> str:
    if options.public_url is None:
        return f"urn:uuid:{thing}"
    return f"{options.public_url}{home(options, ref)}/{kind}/{thing}"

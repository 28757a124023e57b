"""The page of a search: pull requests by number, title or author, tests by their name."""

import re
from dataclasses import dataclass

from service.accounts import page_addresses
from service.dashboard import marks
from service.dashboard.marks import Mark
from service.errors import Malformed
from service.mergequeue.engine.model import Entry
from service.mergequeue.operations import history_lists, overview
from service.mergequeue.operations.overview import Scope
from service.runtime import Runtime
from service.testhealth.operations import all_tests
from service.testhealth.operations.all_tests import TestAmongOthers
from service.vocabulary import QueueRef

FOUND_MAX = 20
"""Pull requests, and tests, that are listed."""

TEXT_MAX = 200

_PULL = re.compile(r"(?:(?P<repository>[\w./-]+) ?)?#(?P<marked>\d{1,15})|(?P<bare>\d{1,15})")
"""`441`, `#441`, `widgets#441` or `octo/widgets#441`."""


@dataclass(frozen=True, slots=True)
class FoundPull:
    """A pull request in a queue; `name` is `octo/widgets#441`."""

    name: str
    branch: str
    path: str
    entry: Entry
    mark: Mark


@dataclass(frozen=True, slots=True)
class FoundTest:
    """A test of a repository."""

    slug: str
    path: str
    case: TestAmongOthers


@dataclass(frozen=True, slots=True)
class FindPage:
    """The page of what was found for `asked`."""

    asked: str
    pulls: tuple[FoundPull, ...]
    tests: tuple[FoundTest, ...]

    @property
    def only(self) -> str:
        """The path of the only thing found; empty: there are none or several."""
        paths = [each.path for each in self.pulls] + [each.path for each in self.tests]
        return paths[0] if len(paths) == 1 else ""


async def read(runtime: Runtime, scope: Scope, asked: str) -> FindPage:
    """Return what a visitor may see of what was asked for. Raises Malformed."""
    if len(asked) > TEXT_MAX or "\0" in asked:
        raise Malformed(f"A search takes at most {TEXT_MAX} characters.")
    if not asked:
        return FindPage("", (), ())
    options = runtime.options
    pulls: list[FoundPull] = []
    number = _PULL.fullmatch(asked)
    if number is not None:
        wanted, pr = number["repository"] or "", int(number["marked"] or number["bare"])
        found = await overview.numbered(runtime, scope, pr, FOUND_MAX)
        for ref, entry in found:
            if wanted.lower() in ("", ref.repo.name.lower(), ref.repo.slug.lower()):
                home = page_addresses.home(options, ref.repo)
                path = page_addresses.pull_request(home, ref.branch, pr)
                pulls.append(_pull(ref, path, entry))
    else:
        for ref, entry in await history_lists.mentioned(runtime, scope, asked, FOUND_MAX):
            home = page_addresses.home(options, ref.repo)
            path = page_addresses.pull_request(home, ref.branch, entry.pr)
            pulls.append(_pull(ref, path, entry))
    tests = await all_tests.named(runtime, (scope.org_id, scope.within), asked, FOUND_MAX)
    return FindPage(
        asked,
        tuple(pulls),
        tuple(
            FoundTest(repo.slug, f"{page_addresses.home(options, repo)}/tests/{case.id}", case)
            for repo, case in tests
        ),
    )


def _pull(ref: QueueRef, path: str, entry: Entry) -> FoundPull:
    name = f"{ref.repo.slug}#{entry.pr}"
    return FoundPull(name, ref.branch, path, entry, marks.of_entry(entry))

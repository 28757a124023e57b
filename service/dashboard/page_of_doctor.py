"""The page that examines a branch, as `headgate doctor` does, and shows a dry test."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from service.accounts import page_addresses
from service.dashboard.requests import Action, PageRequest, Version
from service.mergequeue.operations import page_of_queue
from service.mergequeue.operations.doctor import doctor, dry_test
from service.mergequeue.operations.doctor.dry_test import Progress
from service.provider.audits import Finding, Severity
from service.provider.values import AccessLevel
from service.runtime import Runtime
from service.vocabulary import Sha

LOOK_EVERY_S = 10
"""The seconds after which an open page asks the provider again for the checks of a dry test."""

TEXT_MAX = 300
"""Characters of a branch or a commit in an address."""

WORDS: Mapping[Severity, tuple[str, str]] = {
    Severity.ERROR: ("error", "errors"),
    Severity.WARNING: ("warning", "warnings"),
    Severity.NOTE: ("note", "notes"),
    Severity.OK: ("audit in order", "audits in order"),
}
"""The words that count findings of a severity: one, several."""


@dataclass(frozen=True, slots=True)
class DryTestPart:
    """A dry test: its test branch, when it is given up, and what has reported so far.

    `is_ended`: somebody has removed its branch.
    """

    branch: str
    sha: Sha
    until: datetime
    progress: Progress
    is_ended: bool

    @property
    def heading(self) -> str:
        """`Dry test: 2 of 3 required checks passed`."""
        findings = self.progress.findings
        passed = sum(one.severity is Severity.OK for one in findings)
        plural = "" if len(findings) == 1 else "s"
        so_far = "" if self.progress.is_over else " so far"
        return f"Dry test: {passed} of {len(findings)} required check{plural} passed{so_far}"


@dataclass(frozen=True, slots=True)
class DoctorPage:
    """The branch, and what was found, the worst first; None: it has not been examined."""

    branch: str
    findings: Sequence[Finding] | None = None
    dry_test: DryTestPart | None = None

    @property
    def heading(self) -> str:
        """`1 error, 2 warnings, 16 audits in order`."""
        if self.dry_test is not None:
            return self.dry_test.heading
        if self.findings is None:
            return "What keeps the queue from working?"
        severities = [one.severity for one in self.findings]
        counts = {each: severities.count(each) for each in Severity}
        return ", ".join(
            f"{count} {WORDS[each][count > 1]}" for each, count in counts.items() if count
        )

    @property
    def wrong(self) -> tuple[Finding, ...]:
        """The findings that somebody should read."""
        return tuple(one for one in self.findings or () if one.severity is not Severity.OK)

    @property
    def fine(self) -> tuple[Finding, ...]:
        """Return what was looked at and is in order."""
        return tuple(one for one in self.findings or () if one.severity is Severity.OK)


async def read(runtime: Runtime, request: PageRequest) -> DoctorPage:
    """Return the page before an examination, or with the dry test that the address names.

    Raises NotFound(queue_not_found, dry_test_not_found).
    """
    branch = page_addresses.branch_of(request.names["branch"])
    await page_of_queue.version(runtime, request.where.repository, branch)
    if "dry" not in request.query or not request.visitor.may(TRIES):
        return DoctorPage(branch)
    test_branch = request.query["dry"][:TEXT_MAX]
    sha = Sha(request.query.get("sha", "")[:TEXT_MAX])
    until = dry_test.end_of(test_branch)
    repository = request.where.repository
    progress = await dry_test.progress(runtime, repository, branch, test_branch, sha)
    is_ended = "ended" in request.query
    return DoctorPage(branch, None, DryTestPart(test_branch, sha, until, progress, is_ended))


async def version(runtime: Runtime, request: PageRequest) -> Version:
    """Return another version each `LOOK_EVERY_S` while the dry test of the address runs."""
    branch = page_addresses.branch_of(request.names["branch"])
    number, topic = await page_of_queue.version(runtime, request.where.repository, branch)
    now, test_branch = runtime.clock.now(), request.query.get("dry", "")
    if not test_branch or now >= dry_test.end_of(test_branch[:TEXT_MAX]):
        return Version(number, topic)
    return Version(f"{number}-{int(now.timestamp()) // LOOK_EVERY_S}", topic)


async def _examine(runtime: Runtime, request: PageRequest) -> Mapping[str, object]:
    """Run every audit, and show the findings on the page."""
    branch = page_addresses.branch_of(request.names["branch"])
    found = await doctor.examine(runtime, request.where.repository, branch)
    return {"page": DoctorPage(found.branch, found.findings), "live": False}


async def start(runtime: Runtime, request: PageRequest) -> str:
    """Start a dry test, and return the address of its page."""
    branch = page_addresses.branch_of(request.names["branch"])
    repository, actor = request.where.repository, request.visitor.actor
    made = await dry_test.start(runtime, repository, branch, dry_test.LIMIT, actor)
    return _address(runtime, request, {"dry": made.branch, "sha": made.sha})


async def end(runtime: Runtime, request: PageRequest) -> str:
    """Remove the test branch of a dry test, and return the address of its page."""
    test_branch, sha = request.text("dry")[:TEXT_MAX], request.text("sha")[:TEXT_MAX]
    await dry_test.end(runtime, request.where.repository, test_branch)
    return _address(runtime, request, {"dry": test_branch, "sha": sha, "ended": "yes"})


def _address(runtime: Runtime, request: PageRequest, query: Mapping[str, str]) -> str:
    home = page_addresses.home(runtime.options, request.where.repository.ref)
    branch = page_addresses.branch_of(request.names["branch"])
    return f"{page_addresses.queue(home, branch)}/doctor?{urlencode(query)}"


TRIES = AccessLevel.ADMIN
"""The access that a dry test takes: a token needs the role `admin` for it."""

ACTIONS: Mapping[str, Action[PageRequest]] = {
    "examine": Action(AccessLevel.MAINTAIN, _examine),
    "dry-test": Action(
        TRIES,
        start,
        "Headgate makes a test branch of the target branch alone, with a draft pull request if the "
        "queue uses them, and CI runs on it. The target branch does not change.",
        "Start a dry test",
    ),
    "end-dry-test": Action(TRIES, end),
}

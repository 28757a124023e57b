"""The page that examines a branch, as `headgate doctor` does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from service.accounts import page_addresses
from service.dashboard.requests import Action, PageRequest
from service.mergequeue.operations import page_of_queue
from service.mergequeue.operations.doctor import doctor
from service.provider.audits import Finding, Severity
from service.provider.values import AccessLevel
from service.runtime import Runtime

WORDS: Mapping[Severity, tuple[str, str]] = {
    Severity.ERROR: ("error", "errors"),
    Severity.WARNING: ("warning", "warnings"),
    Severity.NOTE: ("note", "notes"),
    Severity.OK: ("audit in order", "audits in order"),
}
"""How findings of a severity are counted: one, several."""


@dataclass(frozen=True, slots=True)
class DoctorPage:
    """The branch, and what was found, the worst first; None: it has not been examined."""

    branch: str
    findings: Sequence[Finding] | None = None

    @property
    def heading(self) -> str:
        """`1 error, 2 warnings, 16 audits in order`."""
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
        """What was looked at and is in order."""
        return tuple(one for one in self.findings or () if one.severity is Severity.OK)


async def read(runtime: Runtime, request: PageRequest) -> DoctorPage:
    """Return the page before an examination. Raises NotFound(queue_not_found)."""
    branch = page_addresses.branch_of(request.names["branch"])
    await page_of_queue.version(runtime, request.where.repository, branch)
    return DoctorPage(branch)


async def examine(runtime: Runtime, request: PageRequest) -> Mapping[str, object]:
    """Run every audit, and show the findings on the page."""
    branch = page_addresses.branch_of(request.names["branch"])
    found = await doctor.examine(runtime, request.where.repository, branch)
    return {"page": DoctorPage(found.branch, found.findings)}


ACTIONS: Mapping[str, Action[PageRequest]] = {"examine": Action(AccessLevel.MAINTAIN, examine)}

"""Audits of `headgate doctor`, their findings, and what they have to know to look.

docs/reference/doctor.md has a section for each audit, and says more about its findings.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Generic, TypeVar

from service.provider.values import Vehicle
from service.vocabulary import Check, MergeMethod, RepoRef, RequiredName, Sha


class Severity(StrEnum):
    """The weight of a finding, the worst first: an error stops the queue or misleads it."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"
    OK = "ok"


@dataclass(frozen=True, slots=True)
class Finding:
    """One result of an audit; `mend` says literally what to do, empty where there is nothing."""

    audit: str
    severity: Severity
    found: str
    mend: str = ""


Facts = TypeVar("Facts")
Find = Callable[[Facts], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Audit(Generic[Facts]):
    """A question about facts; `find` yields what is wrong, `fine` is said if nothing is."""

    id: str
    fine: str
    find: Find[Facts]

    def findings(self, facts: Facts) -> list[Finding]:
        """Return what is wrong, or the finding that nothing is."""
        found = [replace(one, audit=self.id) for one in self.find(facts)]
        return found or [fine(self.fine, self.id)]


def audit(name: str, fine: str) -> Callable[[Find[Facts]], Audit[Facts]]:
    """Make an audit of the function that looks for what is wrong."""
    return lambda find: Audit(name, fine, find)


@dataclass(frozen=True, slots=True)
class AuditSubject:
    """A target branch, and how its queue works.

    `tip` None: it could not be read. `webhook_url` None: the service does not know its own public
    address. `landings_hour_max`: how many pull requests landed in the busiest hour of the last
    weeks, in the whole organization. `in_file`: the path of the repository's file that has a
    setting of the queue, by the setting's API name. `ran`: required checks that ran on one of the
    newest test branches, `optional`: those that the settings of the queue call optional.
    """

    repo: RepoRef
    branch: str
    tip: Sha | None
    vehicle: Vehicle
    merge_method: MergeMethod
    required: tuple[RequiredName, ...] = ()
    webhook_url: str | None = None
    landings_hour_max: int = 0
    in_file: Mapping[str, str] = field(default_factory=dict)
    ran: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class DryTestRequest:
    """A test branch of the target alone: one empty commit on its tip."""

    repo: RepoRef
    target: str
    tip: Sha
    branch: str
    vehicle: Vehicle
    message: str
    title: str
    body: str


@dataclass(frozen=True, slots=True)
class DryTest:
    """A test branch that CI was shown; `refusal`: why its draft pull request was refused."""

    branch: str
    sha: Sha
    refusal: str | None = None


def error(found: str, mend: str, audit: str = "") -> Finding:
    """Return a finding that must be mended before the queue can work.

    An `Audit` writes its own id into what it finds.
    """
    return Finding(audit, Severity.ERROR, found, mend)


def warning(found: str, mend: str, audit: str = "") -> Finding:
    """Return a finding that people should mend."""
    return Finding(audit, Severity.WARNING, found, mend)


def note(found: str, mend: str = "", audit: str = "") -> Finding:
    """Return a finding that people should know."""
    return Finding(audit, Severity.NOTE, found, mend)


def command(verb: str, repo: RepoRef, branch: str, *more: str) -> str:
    """Return a command about a queue that works in any folder and any shell."""
    place = ("--repo", repo.slug, "--branch", branch)
    return f"`{shlex.join(('headgate', 'queue', verb, *place, *more))}`"


def how_to_set(repo: RepoRef, branch: str, setting: str, value: str, path: str | None) -> str:
    """Return how a setting of a queue gets a value; `path`: the repository's file that has it.

    The API refuses to change a setting that the file has.
    """
    if path is None:
        return f"run {command('update', repo, branch, '--set', f'{setting}={value}')}"
    return f"write `{setting}: {value}` into `{path}` on `{branch}`"


def fine(found: str, audit: str) -> Finding:
    """Return the finding of an audit that has nothing to complain about."""
    return Finding(audit, Severity.OK, found)


def ordered(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return the findings, the worst first; equally bad ones keep their order."""
    ranks = list(Severity)
    return tuple(sorted(findings, key=lambda one: ranks.index(one.severity)))


def is_report_of(required: RequiredName, check: Check) -> bool:
    """Return whether a report satisfies a requirement by name, kind and reporter."""
    return required.admits(check)

"""Answers of the endpoints of `headgate doctor`."""

from typing import Literal

from service.http.models.answers.common import Answer, Time


class FindingShown(Answer):
    """One finding; `audit` names its section in the documentation, `mend` may be empty."""

    audit: str
    """Name of the audit, and of its section in the documentation. For example
    `workflow-triggers`.
    """
    severity: Literal["error", "warning", "note", "ok"]
    """How grave it is."""
    found: str
    """What was found. For example `No workflow runs on test branches.`"""
    mend: str
    """What to do, if anything. For example `Exclude the branches headgate/**/* by pattern.`"""


class Examined(Answer):
    """What the doctor found, the worst first; `passed` is true without any error."""

    branch: str
    """The branch that was examined. For example `main`."""
    passed: bool
    """Whether there is no error."""
    findings: list[FindingShown]
    """What was found, gravest first."""


class DryTestStarted(Answer):
    """A test branch that shows CI the target alone; it is removed after `until` at the latest."""

    target_branch: str
    """The branch that is tested. For example `main`."""
    branch: str
    """The test branch. For example `headgate/dry/1`."""
    sha: str
    """Its commit. For example `a1b2c3d4e5f60718293a4b5c6d7e8f9012345678`."""
    until: Time
    """When it is removed at the latest."""


class DryTestShown(Answer):
    """What has reported so far; `over`: everything has, or the time is up."""

    over: bool
    """Whether everything has reported, or the time is up."""
    passed: bool
    """Whether there is no error."""
    findings: list[FindingShown]
    """What was found, gravest first."""


class DryTestEnded(Answer):
    """The branch and its draft pull request are gone."""

    ended: bool
    """Whether the test branch is removed."""

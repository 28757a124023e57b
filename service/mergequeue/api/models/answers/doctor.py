"""Answers of the endpoints of `headgate doctor`."""

from typing import Literal

from service.http.models.answers.common import Answer, Time


class FindingShown(Answer):
    """One finding; `audit` names its section in the documentation, `mend` may be empty."""

    audit: str
    severity: Literal["error", "warning", "note", "ok"]
    found: str
    mend: str


class Examined(Answer):
    """What the doctor found, the worst first; `passed` is true without any error."""

    branch: str
    passed: bool
    findings: list[FindingShown]


class DryTestStarted(Answer):
    """A test branch that shows CI the target alone; it is removed after `until` at the latest."""

    target_branch: str
    branch: str
    sha: str
    until: Time


class DryTestShown(Answer):
    """What has reported so far; `over`: everything has, or the time is up."""

    over: bool
    passed: bool
    findings: list[FindingShown]


class DryTestEnded(Answer):
    """The branch and its draft pull request are gone."""

    ended: bool

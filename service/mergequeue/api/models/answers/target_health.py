"""Answer about the checks of a target branch."""

from service.http.models.answers.common import Answer, Count, Id, Number, Sha, Time
from service.mergequeue.breaks.search import End


class SuspectShown(Answer):
    """A commit that may have broken a check."""

    commit: Sha
    """The commit of the target branch."""
    pr_number: Number | None
    """The pull request that landed with it; null if the queue did not land it."""


class TargetBreakShown(Answer):
    """A check that is or was red on the target branch."""

    id: Id
    """The break."""
    check: str
    """Name of the check. For example `nightly`"""
    report_url: str
    """The failed report that began the search. For example `https://github.com/octo/widgets/runs/1`"""
    opened_at: Time
    """When the check was seen red."""
    ended_at: Time | None
    """When the target was green again, or the failure was found to be a flake; null: it is red."""
    end: End | None
    """How the search ended without a culprit, or the break with one; null: neither."""
    situation: str
    """Where it stands, in sentences. For example `#12 broke it. Headgate opens a revert.`"""
    red_commit: Sha
    """The commit on which the check was seen red."""
    culprit_commit: Sha | None
    """The commit that broke it; null while it is not known."""
    culprit_pr_number: Number | None
    """The pull request that landed with that commit; null while it is not known, or without one."""
    previous_commit: Sha | None
    """The commit before the culprit, on which the check passes; null while it is not known."""
    red_runs: list[Sha]
    """Test commits that confirm the failure of the culprit."""
    green_runs: list[Sha]
    """Test commits that confirm the pass of the commit before it."""
    suspects: list[SuspectShown]
    """Commits of which each may have broken it, if the search ended without a culprit."""
    revert_pr_number: Number | None
    """The pull request that reverts the culprit; null without one."""
    runs: Count
    """Test runs that the search has used."""


class TargetHealthShown(Answer):
    """The watched checks of a target branch."""

    watched: list[str]
    """The checks that are watched; empty while `redTarget` is `OFF`. For example `["nightly"]`"""
    verified_commit: Sha | None
    """The newest commit on which all watched checks passed; null: none was seen."""
    verified_at: Time | None
    """When this was seen; null: none was seen."""
    breaks: list[TargetBreakShown]
    """The newest 20 breaks, the newest first."""

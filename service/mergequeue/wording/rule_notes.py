"""Notes on branch rules that affect a queue, shown when it is created and read.

The names are those of the provider's rules, as `Known.notes` has them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SELF_REQUIRED = "self_required"
"""The branch requires our own check."""


@dataclass(frozen=True, slots=True)
class RuleNote:
    """One rule of the branch, with its effect on the queue."""

    rule: str
    text: str


def rule_notes(names: Sequence[str]) -> tuple[RuleNote, ...]:
    """Return the notes on these rules, in their order; a rule without a text is left out."""
    return tuple(RuleNote(name, TEXTS[name]) for name in names if name in TEXTS)


_ON_THE_HEAD = (
    "GitHub asks for it on the head of each pull request, not on the test branch. A pull request "
    "without it is tested, then set aside, and those behind it go on"
)
_BYPASS = "make the Headgate App a bypass actor of the ruleset (“Exempt”)"
_PATTERN = (
    "It also applies to the commit that the merge makes. A pull request that breaks it is set "
    "aside until its author changes the commits or the title."
)

TEXTS: Mapping[str, str] = {
    "strict": (
        "The branch only merges pull requests that contain its newest commit, so after each merge "
        "GitHub refuses the next one and the hold strict_checks stops the queue. Turn off “Require "
        "branches to be up to date before merging”: the queue tests every pull request on the "
        "newest commit itself."
    ),
    "required_linear_history": (
        "The branch takes no merge commits: mergeMethod has to be SQUASH or REBASE."
    ),
    "required_signatures": (
        "The branch takes only signed commits. With SQUASH GitHub signs the commit that it makes. "
        "With MERGE_COMMIT the author has to sign all commits of the pull request, else it is set "
        "aside. REBASE cannot be used, because GitHub does not sign the commits that it rebases."
    ),
    "required_deployments": (
        f"Required deployment. {_ON_THE_HEAD}. Deploy the heads of pull requests before /merge, "
        f"or {_BYPASS}."
    ),
    "code_scanning": (
        f"Required code scanning results. {_ON_THE_HEAD}. Let code scanning run on pull requests, "
        f"or {_BYPASS}."
    ),
    "code_quality": (
        f"Required code quality results. {_ON_THE_HEAD}. Let the analysis run on pull requests, "
        f"or {_BYPASS}."
    ),
    "workflows": (
        f"Required workflow. {_ON_THE_HEAD}. Let the workflow run on pull requests, or {_BYPASS}."
    ),
    "commit_message_pattern": f"The branch restricts commit messages. {_PATTERN}",
    "commit_author_email_pattern": f"The branch restricts the emails of authors. {_PATTERN}",
    "committer_email_pattern": f"The branch restricts the emails of committers. {_PATTERN}",
    SELF_REQUIRED: (
        "The branch requires Headgate's own check. The queue does not wait for it, and completes "
        "it right before the merge."
    ),
}
"""Every note that an adapter gives."""

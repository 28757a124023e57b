"""The texts on a pull request whose submission a restored database does not know."""

from service.text import markdown
from service.vocabulary import PullRequestState, Sha

_WHY = (
    "Headgate's database was restored from a backup that is older than this submission, so "
    "Headgate does not know it any more."
)


def title(state: PullRequestState, *, by_us: bool) -> str:
    """Return the title of the check run."""
    if by_us:
        return "Merged"
    return "Not queued any more" if state is PullRequestState.OPEN else "Not known any more"


def text(branch: str, state: PullRequestState, commit: Sha | None, *, by_us: bool) -> str:
    """Return the status comment, and the summary of the check run."""
    target = markdown.code(branch)
    where = target if commit is None else f"{target} as {markdown.code(commit[:7])}"
    if by_us:
        lost = "The proof of this landing was in the database that was replaced."
        return f"### 🟣 Merged into {where} by Headgate\n\n{_WHY} {lost}"
    if state is PullRequestState.MERGED:
        return f"### 🟣 Merged into {where}\n\n{_WHY}"
    if state is PullRequestState.CLOSED:
        return f"### 🚫 Closed\n\n{_WHY}"
    again = "Comment `/merge` to submit this pull request again."
    return f"### 🚫 Not in the queue of {target} any more\n\n{_WHY} {again}"

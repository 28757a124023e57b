"""Names as parts of addresses: percent-encoded segment by segment, never paths of their own."""

from urllib.parse import quote

from service.provider.errors import Gone, GoneKind
from service.vocabulary import RepoRef

HEADS = "refs/heads/"


def of_repository(repo: RepoRef) -> str:
    """`/repos/owner/name`. Raises Gone for a name that is no name, such as `..`."""
    if {repo.owner, repo.name} & {"", ".", ".."}:
        raise Gone(f'"{repo.slug}" is not a repository.', GoneKind.REPOSITORY)
    return f"/repos/{quote(repo.owner, safe='')}/{quote(repo.name, safe='')}"


def of_branch(branch: str) -> str:
    """A branch name below some address: slashes stay, everything else is encoded."""
    return "/".join(quote(segment, safe="") for segment in branch.split("/"))


def of_head(branch: str) -> str:
    """The branch where GitHub takes any reference: cannot be mistaken for a tag or a sha."""
    return f"heads/{of_branch(branch)}"

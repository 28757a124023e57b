"""Read the authors of the commits of a pull request, for commit texts that name them."""

from collections.abc import Iterator

from bot.github import graphql
from bot.github.client import RepositoryClient
from bot.github.reading import Fields
from service.provider.errors import Gone, GoneKind
from service.provider.values import CommitAuthor

PAGES_MAX = 3

# The authors of a commit are its git author and those whom its Co-authored-by trailers name.
COMMIT_AUTHORS = """
query CommitAuthors($owner: String!, $name: String!, $number: Int!, $commits: String) {
  repository(owner: $owner, name: $name) {
    id
    pullRequest(number: $number) {
      commits(first: 100, after: $commits) {
        nodes { commit { authors(first: 20) { nodes { name email user { login } } } } }
        pageInfo { hasNextPage endCursor }
      }
    }
  }
}
"""


async def commit_authors(client: RepositoryClient, number: int) -> tuple[CommitAuthor, ...]:
    """Return the authors of the first 300 commits, each once. Raises Gone(PULL_REQUEST)."""
    found: dict[str, CommitAuthor] = {}
    cursor: str | None = None
    for _ in range(PAGES_MAX):
        variables = {"number": number, "commits": cursor}
        repository = await graphql.repository(client, COMMIT_AUTHORS, variables)
        pull = repository.inner_or_none("pullRequest")
        if pull is None:
            raise Gone(f"Pull request {number} is gone.", GoneKind.PULL_REQUEST)
        commits = pull.inner("commits")
        for author in _authors_of(commits):
            found.setdefault(author.email.lower(), author)
        page = commits.inner("pageInfo")
        if not page.flag("hasNextPage"):
            break
        cursor = page.text("endCursor")
    return tuple(found.values())


def _authors_of(commits: Fields) -> Iterator[CommitAuthor]:
    """Yield the authors who have an address, without which git has no form for an author."""
    for node in commits.each("nodes"):
        authors = node.inner("commit").inner("authors")
        for author in authors.each("nodes"):
            user = author.inner_or_none("user")
            login = None if user is None else user.text("login")
            if author.words("email"):
                yield CommitAuthor(author.words("name"), author.words("email"), login)

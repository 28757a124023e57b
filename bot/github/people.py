"""Accounts: their access to a repository, as GitHub has it now by number; authors of commits."""

from collections.abc import Iterator
from urllib.parse import quote

from bot.github import graphql
from bot.github.client import RepositoryClient
from bot.github.reading import Fields
from service.provider.errors import Gone, GoneKind
from service.provider.values import AccessLevel, CommitAuthor
from service.vocabulary import Actor

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


ROLES = {
    "read": AccessLevel.READ,
    "triage": AccessLevel.TRIAGE,
    "write": AccessLevel.WRITE,
    "maintain": AccessLevel.MAINTAIN,
    "admin": AccessLevel.ADMIN,
}

HIDDEN = (403, 404)


async def access(client: RepositoryClient, actor: Actor) -> AccessLevel:
    """Return the rights of an account; NONE unless GitHub clearly says otherwise.

    A login may have been taken by another account since the event, so the answer's number
    must be the actor's; else the number's present login is looked up once. Raises NotPermitted
    when our own token is refused, which says nothing of the account.
    """
    login = actor.login
    for _ in range(2):
        held = await _permission(client, login)
        if held is not None and actor.id and held[0] == actor.id:
            return held[1]
        found = await _login_of(client, actor.id)
        if found is None or found == login:
            return AccessLevel.NONE
        login = found
    return AccessLevel.NONE


async def _permission(client: RepositoryClient, login: str) -> tuple[str, AccessLevel] | None:
    tail = f"/collaborators/{quote(login, safe='')}/permission"
    answer = await client.get(tail, expects=HIDDEN, missing=GoneKind.REPOSITORY, is_kept=True)
    if answer.status in HIDDEN:
        return None
    role, user = answer.fields.words("role_name"), answer.fields.inner_or_none("user")
    older = answer.fields.words("permission")  # GitHub's older field has fewer roles
    level = ROLES.get(role, ROLES.get(older, AccessLevel.NONE))
    return "" if user is None else user.id("id"), level


async def _login_of(client: RepositoryClient, number: str) -> str | None:
    if not number.isdecimal():
        return None
    root = client.github.options.addresses.api
    answer = await client.get(f"{root}/user/{number}", expects=(404,))
    return None if answer.status == 404 else answer.fields.text("login")

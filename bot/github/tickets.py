"""Issues of our own, one for each marker.

Needs `issues: write`. An issue counts as ours by its author, never by its text alone; the list
of issues holds pull requests too, and those are left out.
"""

from bot.github import reading
from bot.github.client import RepositoryClient
from bot.github.reading import Fields
from bot.github.wire import Answer
from service.provider import markers
from service.provider.errors import GoneKind, Refused, RefusedCode
from service.provider.tickets import Ticket, TicketRequest
from service.provider.values import NotPossible

TITLE_CHARS_MAX = 256
BODY_CHARS_MAX = 60_000
PAGES_MAX = 10
"""A thousand of ours with draft pull requests: far more than are created between two attempts."""

ABSENT = (404, 410)  # deleted, or issues are switched off
GRANTED = "write"
NOT_GRANTED = NotPossible("The App does not have the permission `issues: write`.")
SWITCHED_OFF = NotPossible("Issues are switched off in the repository.")


async def ticket(
    client: RepositoryClient, app_id: str, marker: str, number: int | None
) -> Ticket | None:
    """Return the issue of that number if it is ours; without one, our newest with the marker."""
    if number is None:
        return await _with_marker(client, app_id, marker)
    answer = await client.find(f"/issues/{number}", absent=ABSENT)
    if answer is None:
        return None
    issue = answer.fields
    # One that was moved to another repository is followed there, where it is not ours to change.
    is_here = issue.number("number") == number
    return ticket_of(issue) if is_here and await _is_own(client, app_id, issue) else None


async def put(client: RepositoryClient, request: TicketRequest) -> Ticket:
    """Make the issue, or change what is different."""
    wanted: dict[str, object] = {
        "title": request.title[:TITLE_CHARS_MAX],
        "body": markers.marked(request.body, request.marker, BODY_CHARS_MAX),
    }
    found = request.found
    if found is None:
        missing = GoneKind.REPOSITORY
        return _stands(
            await client.create("POST", "/issues", wanted, expects=(410,), missing=missing)
        )
    changed = {name: text for name, text in wanted.items() if getattr(found, name) != text}
    if request.is_open not in (None, found.is_open):
        changed["state"] = "open" if request.is_open else "closed"
    if not changed:
        return found
    tail = f"/issues/{found.number}"
    return _stands(await client.create("PATCH", tail, changed, expects=ABSENT))


async def no_tickets(client: RepositoryClient) -> NotPossible | None:
    """Return whether the permission or the repository's own switch is missing."""
    # What was granted a minute ago is not in the token that is kept.
    client.github.tokens.drop(client.repo)
    grant = await client.github.tokens.of(client.repo)
    if grant.permissions.get("issues") != GRANTED:
        return NOT_GRANTED
    has_issues = (await client.get("")).fields.flag("has_issues", default=True)
    return None if has_issues else SWITCHED_OFF


async def _with_marker(client: RepositoryClient, app_id: str, marker: str) -> Ticket | None:
    query = {"creator": f"{await client.github.slug()}[bot]", "state": "all"}
    pages = 0
    async for page in client.pages("/issues", query=query):
        for issue in page.objects:
            is_marked = markers.is_marked(issue.words("body"), marker)
            if is_marked and await _is_own(client, app_id, issue):
                return ticket_of(issue)
        pages += 1
        if pages == PAGES_MAX:
            break
    return None


async def _is_own(client: RepositoryClient, app_id: str, issue: Fields) -> bool:
    """Return whether our App wrote the issue; a pull request in a list of issues is none."""
    if issue.inner_or_none("pull_request") is not None:
        return False
    return reading.words_of(issue).is_by_app(app_id, await client.github.slug())


def _stands(answer: Answer) -> Ticket:
    """Return the ticket of an answer. Raises Refused when it was deleted or issues are off."""
    if answer.status in ABSENT:
        raise Refused(answer.message or "GitHub has no such issue.", RefusedCode.OTHER)
    return ticket_of(answer.fields)


def ticket_of(issue: Fields) -> Ticket:
    """Return an issue; a closed one without its time counts as closed since it changed."""
    closed_at = None
    if issue.text("state") == "closed":
        closed_at = issue.moment_or_none("closed_at") or issue.moment("updated_at")
    return Ticket(
        number=issue.number("number"),
        url=issue.text("html_url"),
        title=issue.words("title"),
        body=issue.words("body"),
        closed_at=closed_at,
    )

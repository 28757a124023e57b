"""Notices on a pull request: comments, reactions, our check run.

The service makes the texts. A notice is found again by its hidden marker or external id and by
its author, so that writing it twice changes nothing. A notice never stops a landing.
"""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import assert_never
from urllib.parse import quote

import structlog

from bot.github import limits, outcomes, reading, refs
from bot.github.client import RepositoryClient
from bot.github.reading import Fields, Words
from bot.github.wire import Answer
from service.provider import markers
from service.provider.errors import GoneKind, NotPermitted, OutcomeUnknown, Unavailable
from service.provider.labels import LabelRemoval, LabelReturn, StateLabel
from service.provider.values import (
    CheckReport,
    CheckReportStatus,
    Notice,
    Reaction,
    Reply,
    StatusComment,
)

log = structlog.get_logger()

BODY_CHARS_MAX = 60_000
SUMMARY_BYTES_MAX = 65_000  # GitHub refuses a check run with more than 65,535
LOCKED = "locked"
NO_LABEL = "none"

# Our word to GitHub's status and conclusion.
CHECK_WORDS: dict[CheckReportStatus, tuple[str, str | None]] = {
    CheckReportStatus.QUEUED: ("queued", None),
    CheckReportStatus.IN_PROGRESS: ("in_progress", None),
    CheckReportStatus.SUCCESS: (outcomes.COMPLETED, "success"),
    CheckReportStatus.FAILURE: (outcomes.COMPLETED, "failure"),
    CheckReportStatus.NEUTRAL: (outcomes.COMPLETED, "neutral"),
    CheckReportStatus.CANCELLED: (outcomes.COMPLETED, "cancelled"),
}


class Notices:
    """Writes notices. What it finds by itself is not written again if it says the same already."""

    def __init__(self, app_id: str) -> None:
        self._app_id = app_id

    async def say(self, client: RepositoryClient, notice: Notice) -> str | None:
        """Write a notice; return its id, None when the place takes no more notices.

        Raises OutcomeUnknown for a change of a known text: it may still be carried out and
        replace a newer one, so the caller repeats it later.
        """
        try:
            return await self._say(client, notice)
        except OutcomeUnknown as unknown:
            if _changes(notice):
                raise
            again = notice
            if not isinstance(notice, Reaction | LabelRemoval | LabelReturn):
                again = replace(notice, first=False)
            try:
                await self._look_for(client, again)
                return await refs.retry_unknown(client, lambda: self._say(client, again))
            except Unavailable as trouble:
                # It could not be read back, so the text may be there all the same.
                raise OutcomeUnknown(f"{unknown.message} {trouble.message}") from trouble

    async def _look_for(self, client: RepositoryClient, notice: Notice) -> None:
        """Wait until a new text is there, as long as its call may still be under way.

        GitHub may carry out a call whose connection is cut, and show it later.
        """
        for wait_s in (0.0, *limits.YOUNG_WAITS_S):
            await client.clock.sleep(wait_s)
            if await self._is_there(client, notice):
                return

    async def _is_there(self, client: RepositoryClient, notice: Notice) -> bool:
        """Return whether a text is there that is new; True for what may be written twice."""
        match notice:
            case StatusComment(known_id=None):
                return await self._found_comment(client, notice.number, notice.marker) is not None
            case Reply():
                marker = _marker_of(notice)
                return await self._found_comment(client, notice.number, marker) is not None
            case CheckReport(known_id=None):
                return await self._found_run(client, notice) is not None
            case _:
                return True

    async def _say(self, client: RepositoryClient, notice: Notice) -> str | None:
        match notice:
            case StatusComment():
                return await self._status(client, notice)
            case Reply():
                return await self._reply(client, notice)
            case Reaction():
                return await _react(client, notice)
            case CheckReport():
                return await self._check(client, notice)
            case StateLabel():
                return await _label(client, notice)
            case LabelRemoval():
                is_removed = await _remove_label(client, notice.number, notice.label)
                return notice.label if is_removed else None
            case LabelReturn():
                is_added = await _add_label(client, notice.number, notice.label)
                return notice.label if is_added else None
            case _:
                assert_never(notice)

    async def _status(self, client: RepositoryClient, notice: StatusComment) -> str | None:
        body = markers.marked(notice.body, notice.marker, BODY_CHARS_MAX)
        known = notice.known_id
        if known is None and not notice.first:
            found = await self._found_comment(client, notice.number, notice.marker)
            if found is not None and found.body == body:
                return found.id
            known = None if found is None else found.id
        if known is not None:
            tail = f"/issues/comments/{known}"
            answer = await client.create("PATCH", tail, {"body": body}, expects=(403, 404))
            if answer.status < 300:
                return known
            if answer.status == 403:
                return _drop(client, answer)
        return await _comment(client, notice.number, body)

    async def _reply(self, client: RepositoryClient, notice: Reply) -> str | None:
        marker = _marker_of(notice)
        if not notice.first:
            known = await self._found_comment(client, notice.number, marker)
            if known is not None:
                return known.id
        body = markers.marked(notice.body, marker, BODY_CHARS_MAX)
        return await _comment(client, notice.number, body)

    async def _found_comment(
        self, client: RepositoryClient, number: int, marker: str
    ) -> Words | None:
        """Return the newest comment of our own App that contains the marker."""
        listed, _ = await client.listed(f"/issues/{number}/comments", missing=GoneKind.PULL_REQUEST)
        slug = await client.github.slug()
        found = [reading.words_of(each) for each in listed]
        ours = [
            each
            for each in found
            if markers.is_marked(each.body, marker) and each.is_by_app(self._app_id, slug)
        ]
        return ours[-1] if ours else None

    async def _check(self, client: RepositoryClient, notice: CheckReport) -> str | None:
        body = _check_body(notice)
        known = notice.known_id
        if known is None and not notice.first:
            found = await self._found_run(client, notice)
            if found is not None and _says(found, body):
                return found.id("id")
            known = None if found is None else found.id("id")
        if known is not None:
            answer = await client.create("PATCH", f"/check-runs/{known}", body, expects=(404,))
            # A completed run stays completed; another state needs a new run on the same commit.
            is_over = body["status"] == outcomes.COMPLETED
            if answer.status < 300 and (is_over or _is_open(answer.fields)):
                return known
        made = await client.create("POST", "/check-runs", {**body, "head_sha": notice.sha})
        return made.fields.id("id")

    async def _found_run(self, client: RepositoryClient, notice: CheckReport) -> Fields | None:
        """Return our newest run on that commit for the same submission."""
        listed, _ = await client.listed(
            f"/commits/{notice.sha}/check-runs",
            "check_runs",
            {"check_name": notice.name, "filter": "all"},
        )
        wanted = (notice.name, self._app_id)
        ours = [
            run
            for run in listed
            if (run.text("name"), reading.app_id_of(run)) == wanted
            and (notice.replaces or run.words("external_id") == notice.external_id)
        ]
        return max(ours, key=lambda run: run.number("id"), default=None)


def _changes(notice: Notice) -> bool:
    """Return whether a notice replaces what another one has written, as each label does."""
    if isinstance(notice, StateLabel):
        return True
    return isinstance(notice, StatusComment | CheckReport) and notice.known_id is not None


def _marker_of(notice: Reply) -> str:
    return f"<!-- headgate:reply {notice.action_id} -->"


async def _comment(client: RepositoryClient, number: int, body: str) -> str | None:
    tail = f"/issues/{number}/comments"
    answer = await client.create("POST", tail, {"body": body}, expects=(403,))
    if answer.status == 403:
        return _drop(client, answer)
    return answer.fields.id("id")


async def _react(client: RepositoryClient, notice: Reaction) -> str | None:
    tail = f"/issues/comments/{notice.comment_id}/reactions"
    answer = await client.create("POST", tail, {"content": notice.emoji.value}, expects=(403, 404))
    if answer.status == 403:
        try:
            return _drop(client, answer)
        except NotPermitted as lost:
            # A reaction is an ornament, and the right does not come back within seconds.
            log.warning("reaction_dropped", repo=client.repo.slug, why=lost.message)
            return None
    return None if answer.status == 404 else answer.fields.id("id")


async def _label(client: RepositoryClient, notice: StateLabel) -> str | None:
    """Add the label, then remove those of before; GitHub makes a label that it lacks."""
    before = {notice.known_id, *notice.others} - {None, NO_LABEL, notice.label}
    if notice.label is not None and not await _add_label(client, notice.number, notice.label):
        return None
    for label in sorted(filter(None, before)):
        await _remove_label(client, notice.number, label)
    return notice.label or NO_LABEL


async def _add_label(client: RepositoryClient, number: int, label: str) -> bool:
    """Add a label; return False where GitHub refuses it."""
    try:
        await client.send("POST", f"/issues/{number}/labels", {"labels": [label]})
    except NotPermitted as lost:
        # GitHub refuses the label; nothing else depends on it.
        log.warning("label_dropped", repo=client.repo.slug, why=lost.message)
        return False
    return True


async def _remove_label(client: RepositoryClient, number: int, label: str) -> bool:
    """Remove a label; return False where our App may not, and True if it is absent."""
    try:
        tail = f"/issues/{number}/labels/{quote(label, safe='')}"
        await client.send("DELETE", tail, expects=(404,))
    except NotPermitted as lost:
        # GitHub refuses the label; nothing else depends on it.
        log.warning("label_dropped", repo=client.repo.slug, why=lost.message)
        return False
    return True


def _check_body(notice: CheckReport) -> dict[str, object]:
    status, conclusion = CHECK_WORDS[notice.status]
    body: dict[str, object] = {
        "name": notice.name,
        "external_id": notice.external_id,
        "status": status,
        "output": {"title": notice.title, "summary": _cut(notice.summary)},
        "actions": [asdict(button) for button in notice.buttons],
    }
    if conclusion is not None:
        body["conclusion"] = conclusion
    if notice.url is not None:
        body["details_url"] = notice.url
    return body


def _is_open(run: Fields) -> bool:
    return run.words("status") != outcomes.COMPLETED


def _says(run: Fields, body: Mapping[str, object]) -> bool:
    """Return whether a check run shows this state and this text; its buttons follow from both."""
    output = run.inner_or_none("output") or Fields({})
    shown = {"title": output.words("title"), "summary": output.words("summary")}
    state = (run.words("status"), run.text_or("conclusion", None))
    return state == (body["status"], body.get("conclusion")) and shown == body["output"]


def _cut(summary: str) -> str:
    return summary.encode("utf-8", "replace")[:SUMMARY_BYTES_MAX].decode("utf-8", "ignore")


def _drop(client: RepositoryClient, answer: Answer) -> str | None:
    """Return None for a locked conversation; raise the error of any other denial."""
    if LOCKED in answer.message.lower():
        return None
    raise client.github.error_of(answer, "/comments")

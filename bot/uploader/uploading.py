"""Upload reports: in as many requests as the limits need, each after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from bot.uploader import files, transport
from bot.uploader.files import Report, Reports
from bot.uploader.transport import Request, RequestFailed, Service
from bot.uploader.verdict import Outcome


class Progress:
    """Receives how far the uploads are; this one shows nothing."""

    def on_sent(
        self,
        batch: Sequence[Report],  # noqa: ARG002 - what subclasses need
        body_bytes: int,  # noqa: ARG002
    ) -> Callable[[int], object]:
        """Return what receives how many bytes of a request have been sent."""
        return bool

    def on_accepted(self, batch: Sequence[Report]) -> None:
        """The service has accepted the files of a request."""


class Content(NamedTuple):
    """The content to upload."""

    reports: Reports
    metadata: Mapping[str, object]
    codeowners: bytes = b""


def upload(
    service: Service, content: Content, outcome: Outcome, progress: Progress | None = None
) -> None:
    """Upload the reports and add the answers to `outcome`. Raises RequestFailed.

    Without a report it uploads how runners ended, if the metadata says so. Goes on after an upload
    without results, or with too many.
    """
    progress = progress or Progress()
    reports = content.reports
    outcome.unread.extend(reports.unread)
    batches = list(files.batches(reports.readable))
    if not batches and content.metadata.get("runner_ends"):
        batches = [[]]
    about = {**content.metadata, **files.session_of(len(batches), reports.unread)}
    for index, batch in enumerate(batches):
        content_type, body = files.form(about, batch, b"" if index else content.codeowners)
        headers = {"Content-Type": content_type}
        on_sent = progress.on_sent(batch, len(body))
        try:
            answer = outcome.add(service.send(Request(transport.UPLOAD, headers, body, on_sent)))
        except RequestFailed as failed:
            outcome.skip(batch, failed)
            continue
        progress.on_accepted(batch)
        for warning in answer.warnings:
            service.log(warning)

"""Bodies of messages about uploads (API.md 11.1). Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from service.notifications.messages import Message, common_fields, message_of
from service.vocabulary import RepoRef, Sha

PROCESSED = "upload.processed"
FAILED_AFTER_LANDING = "upload.failed_after_landing"
TESTS_MAX = 50
"""Failed tests that one message names."""


@dataclass(frozen=True, slots=True)
class UploadTold:
    """An upload as messages show it; `tests` and `failed` count those of its reports."""

    organization: str
    repo: RepoRef
    id: str
    sha: Sha
    tests: int
    failed: int
    quarantined_failures: int
    html_url: str


def processed(told: UploadTold, at: datetime) -> Message:
    """`upload.processed`: it counts, and its tests are judged."""
    return message_of(PROCESSED, at, _fields(PROCESSED, told, at))


def failed_after_landing(
    told: UploadTold, prs: Sequence[int], tests: Sequence[str], at: datetime
) -> Message:
    """`upload.failed_after_landing`: its failures would have kept `prs` from landing."""
    fields = _fields(FAILED_AFTER_LANDING, told, at)
    fields |= {"pull_requests": list(prs), "failed_tests": list(tests[:TESTS_MAX])}
    return message_of(FAILED_AFTER_LANDING, at, fields)


def _fields(event: str, told: UploadTold, at: datetime) -> dict[str, object]:
    repo = told.repo
    return {
        **common_fields(event, told.organization, at),
        "repository": {"host": repo.host, "owner": repo.owner, "name": repo.name},
        "upload": {
            "id": told.id,
            "sha": told.sha,
            "tests": told.tests,
            "failed": told.failed,
            "quarantined_failures": told.quarantined_failures,
            "html_url": told.html_url,
        },
    }

"""Bodies of messages about uploads (API.md 11.1). Pure."""

from dataclasses import dataclass
from datetime import datetime

from service.notifications.payloads import Message, common_fields, message_of
from service.vocabulary import RepoRef, Sha

PROCESSED = "upload.processed"


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
    repo = told.repo
    return message_of(
        PROCESSED,
        at,
        {
            **common_fields(PROCESSED, told.organization, at),
            "repository": {"host": repo.host, "owner": repo.owner, "name": repo.name},
            "upload": {
                "id": told.id,
                "sha": told.sha,
                "tests": told.tests,
                "failed": told.failed,
                "quarantined_failures": told.quarantined_failures,
                "html_url": told.html_url,
            },
        },
    )

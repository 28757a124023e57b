"""Handlers of the endpoints about signed evidence of landings."""

from service.http.callers import Call
from service.http.route import VERSIONED, Fetched, Route, read
from service.mergequeue.api import pull_requests
from service.mergequeue.api.models import landing_evidence as models
from service.mergequeue.api.models.answers import landing_evidence as answers
from service.mergequeue.landing_records import StoredLanding
from service.mergequeue.operations import landing_evidence
from service.vocabulary import Role


async def get(call: Call, asked: models.GetLandingEvidence) -> answers.LandingEvidence:
    """Return the signed evidence of a landed commit."""
    found = await landing_evidence.of_commit(call.runtime, call.caller, asked.ref, asked.commit)
    return answers.LandingEvidence(evidence=[_shown(each) for each in found])


@read(
    "listLandingEvidence",
    models.ListLandingEvidence,
    answers.LandingEvidenceListed,
    "queue_not_found",
    "invalid_page_token",
    "page_token_expired",
)
async def list_all(
    call: Call, request: models.ListLandingEvidence
) -> answers.LandingEvidenceListed:
    """List the signed evidence of everything that a queue landed, the oldest first."""
    queue = await pull_requests.queue_of(call, request)
    page = await landing_evidence.page(call.runtime, queue, request.page())
    return answers.LandingEvidenceListed(
        evidence=[_shown(each) for each in page.rows], next_cursor=page.next_cursor
    )


def _shown(each: StoredLanding) -> answers.SignedLandingShown:
    return answers.SignedLandingShown(
        commit=each.sha, pr_number=each.pr, recorded_at=each.at, envelope=each.envelope
    )


EVIDENCE_ROUTES: tuple[Route, ...] = (
    Fetched(
        f"{VERSIONED}/getLandingEvidence",
        Role.READ,
        get,
        query=models.GetLandingEvidence,
        operation="getLandingEvidence",
    ).answering(answers.LandingEvidence, "repository_not_found", "evidence_not_found"),
    list_all,
)
"""The endpoints of signed evidence."""

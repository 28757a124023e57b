"""Answers of the endpoints about signed evidence of landings."""

from service.http.models.answers.common import Answer, LeftOut, Number, Sha, Time


class SignedLandingShown(Answer):
    """The signed evidence of one landed pull request."""

    commit: Sha
    """The landed commit."""
    pr_number: Number
    """Number of the pull request."""
    recorded_at: Time
    """When it was recorded and signed."""
    envelope: str
    """An in-toto Statement in a DSSE envelope, as one line of JSON, to be kept byte by byte. For
    example `{"payload":"e30=","payloadType":"application/vnd.in-toto+json","signatures":[]}`.
    """


class LandingEvidence(Answer):
    """The evidence of one commit."""

    evidence: list[SignedLandingShown]
    """One for each pull request that ends in this commit: mostly one."""


class LandingEvidenceListed(Answer):
    """A page of the evidence of a queue; no `nextCursor` at the end."""

    evidence: list[SignedLandingShown]
    """The oldest landing first."""
    next_cursor: LeftOut[str] = None
    """Send it as `cursor` for the next page; left out at the end. For example `eyJrIjpbMV19`."""

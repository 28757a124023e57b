"""Bodies of the endpoints about signed evidence of landings."""

from service.http.models.common import CommitSha, Named, Repository
from service.http.models.shared import Listed


class GetLandingEvidence(Repository):
    """`/getLandingEvidence`."""

    ignores_unknown = False

    commit: CommitSha
    """The landed commit."""


class ListLandingEvidence(Named, Listed):
    """`/listLandingEvidence`."""

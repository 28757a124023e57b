"""The body of `/getProviderLimits`."""

from service.http.models.common import Repository, Request


class GetProviderLimits(Request):
    """`/getProviderLimits`."""

    repo: Repository
    """The repository."""

"""Pull requests as lists of the provider show them."""

from dataclasses import dataclass

from service.provenance import ProviderTime
from service.vocabulary import Sha


@dataclass(frozen=True, slots=True)
class ListedPullRequest:
    """A pull request in a list: its head, and the provider's time of its last change."""

    number: int
    head: Sha
    shown_at: ProviderTime | None = None

"""Force pushes, by which a head may leave and come back (docs/design/security.md 4)."""

from dataclasses import dataclass

from service.provenance import ProviderTime
from service.vocabulary import Sha


@dataclass(frozen=True, slots=True)
class ForcePush:
    """A force push of a head; `to` is the new head, None if the provider does not say."""

    at: ProviderTime
    to: Sha | None

"""Report what keeps GitHub from being used, and its end, to the process's troubles."""

from dataclasses import dataclass, field
from datetime import datetime

from service.clock import Clock
from service.troubles import Part, Trouble, TroubleName, Troubles


@dataclass(slots=True)
class HostTroubles:
    """The troubles of one host.

    One failure alone is no trouble: an error of a single request passes before anyone could read
    of it. `failed_at` is when the first one after the last answer failed.
    """

    host: str
    clock: Clock
    troubles: Troubles
    failed_at: datetime | None = field(default=None)

    def failed(self, words: str) -> None:
        """Note a request without a usable answer."""
        if self.failed_at is None:
            self.failed_at = self.clock.now()
            return
        name = TroubleName.PROVIDER_AWAY
        self.troubles.report(Trouble(name, self.failed_at, host=self.host, note=words))

    def answered(self) -> None:
        """Note a usable answer, be it a refusal."""
        self.failed_at = None
        self.troubles.end(Part.PROVIDER, self.host)

    def refused(self) -> None:
        """Note that the App was refused."""
        found = Trouble(TroubleName.CREDENTIALS_REFUSED, self.clock.now(), host=self.host)
        self.troubles.report(found)

    def accepted(self) -> None:
        """Note that the App's key was accepted."""
        self.troubles.end(Part.CREDENTIALS, self.host)

    def asked_to_wait(self, owner: str, until: datetime) -> None:
        """Note a secondary limit; an empty owner stands for the App itself."""
        name = TroubleName.SECONDARY_RATE_LIMIT
        now = self.clock.now()
        self.troubles.report(Trouble(name, now, until, self.host, owner.lower()))

    def unlimited(self, owner: str, asked_s: float) -> None:
        """Note a success of a call that was sent then."""
        self.troubles.end(Part.SECONDARY_LIMIT, self.host, owner.lower(), asked_s=asked_s)

    def spent(self, owner: str, resource: str, until: datetime | None) -> None:
        """Note whether the primary limit of an API is used up, and until when."""
        if until is None:
            self.troubles.end(Part.PRIMARY_LIMIT, self.host, owner.lower(), side=resource)
            return
        found = Trouble(TroubleName.RATE_LIMIT, self.clock.now(), until, self.host, owner)
        self.troubles.report(found, side=resource)

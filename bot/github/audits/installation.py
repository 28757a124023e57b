"""Whether the installation is suspended."""

from collections.abc import Iterator

from bot.github.audits.facts import AppFacts
from service.provider.audits import Finding, error

ID = "installation"
FINE = "The App is installed on the repository."


def decide(facts: AppFacts) -> Iterator[Finding]:
    """Yield an error for a suspended installation."""
    if facts.is_suspended:
        yield error(
            ID,
            "The installation of the App is suspended, so GitHub refuses every call.",
            f"An owner must unsuspend it at {facts.installation_url}.",
        )

"""Branches under the queue's prefix that no run of this service made."""

from collections.abc import Iterator

from service.mergequeue.operations.doctor.facts import QueueFacts
from service.provider.audits import Finding, warning

ID = "leftover-branches"
FINE = "Every branch under `headgate/` belongs to a run of this service."
NAMED_MAX = 5


def decide(facts: QueueFacts) -> Iterator[Finding]:
    """Yield one warning that names the branches."""
    if facts.leftovers:
        names = " ".join(facts.leftovers[:NAMED_MAX])
        yield warning(
            ID,
            f"{len(facts.leftovers)} branches under `headgate/` belong to no run of this service: "
            f"{names}. Another tool or another installation of Headgate uses the same names.",
            "If no other Headgate works in this repository, delete them: `git push origin "
            f"--delete {names}`.",
        )

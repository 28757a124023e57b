"""Whether the repository's file of settings has faults."""

from collections.abc import Iterator

from service.mergequeue.operations.doctor.facts import QueueFacts
from service.provider.audits import Finding, warning

ID = "repository-file"
FINE = "The repository's file of settings has no fault, or there is none."


def decide(facts: QueueFacts) -> Iterator[Finding]:
    """Yield a warning for each fault, because the queue goes on with older settings."""
    file = None if facts.queue is None else facts.queue.file
    for fault in () if file is None else file.faults:
        line = "" if fault.line is None else f", line {fault.line}"
        yield warning(
            ID,
            f"{fault.message} ({fault.path}{line}). The settings of the last version without a "
            "fault are in force.",
            f"Change the file on `{facts.branch}`; `headgate config validate` checks it.",
        )

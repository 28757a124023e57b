"""Whether another job than the one that failed can excuse its check."""

from collections.abc import Iterator

from service.mergequeue.operations.doctor.facts import QueueFacts
from service.provenance import Proof
from service.provider.audits import Finding, warning

ID = "proof-of-reports"
FINE = "Only the report of a failed check's own CI job can excuse its failure."

AUTHORS = {
    Proof.RUN: "every job of a CI run, or who writes its artifacts,",
    Proof.TOKEN: "every job or person with an API token of any role that uploads",
}


def decide(facts: QueueFacts) -> Iterator[Finding]:
    """Yield a warning if a weaker proof than the job's own token is enough."""
    if facts.excuse_proof is Proof.JOB:
        return
    yield warning(
        ID,
        f"`excuse_proof` is `{facts.excuse_proof.name}`: {AUTHORS[facts.excuse_proof]} can excuse"
        " the failure of another job, so a failed required check can land.",
        "Give the jobs that report tests `permissions: id-token: write`, on test branches and on"
        f" `{facts.branch}`, run their tests by `headgate test`, then run `headgate tests settings"
        f" --repo {facts.repo.slug} --set excuse_proof=JOB`.",
    )

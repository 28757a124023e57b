"""Whether GitHub's limit of content creation leaves room for the landings of a busy hour."""

from collections.abc import Iterator

from bot.github import pacing
from bot.github.audits.facts import AppFacts
from bot.github.pacing import Priority
from service.provider import audits
from service.provider.audits import Finding, note, warning

ID = "content-budget"

# Comment, draft pull request and merge (docs/design/limits.md 8). Builds wait first.
PER_LANDING = 3
BUILD_SHARE = pacing.CONTENT_SHARES[Priority.BUILD]
LANDINGS_MAX = int(pacing.CONTENT_HOUR_MAX * BUILD_SHARE) // PER_LANDING
FINE = f"GitHub's content limits leave room for about {LANDINGS_MAX} landings an hour."


def decide(facts: AppFacts) -> Iterator[Finding]:
    """Yield a finding where the busiest hour came near the limit."""
    busiest = facts.subject.landings_hour_max
    found = (
        f"In the busiest hour of the last weeks {busiest} pull requests landed. GitHub lets an "
        f"installation create content 80 times a minute and 500 times an hour, which is enough "
        f"for about {LANDINGS_MAX} landings."
    )
    repo, branch = facts.subject.repo, facts.subject.branch
    silent = audits.command("update", repo, branch, "--set", "commentsEnabled=false")
    mend = (
        f"Let queues write less: {silent}, or the same with `createPrsForTestingBranches=false` if "
        "CI runs on pushes to `headgate/merge/**`."
    )
    if busiest >= LANDINGS_MAX:
        yield warning(ID, found, mend)
    elif busiest * 2 >= LANDINGS_MAX:
        yield note(ID, found, mend)

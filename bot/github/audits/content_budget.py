"""Whether GitHub's limit of content creation leaves room for the landings of a busy hour."""

from collections.abc import Iterator

from bot.github import pacing
from bot.github.audits.facts import AppFacts
from service.provider.audits import Finding, note, warning

ID = "content-budget"

# Comment, check run, draft pull request, merge and edits, as docs/explanation/capacity.md counts
# them; GitHub does not say which calls count.
PER_LANDING = 9
LANDINGS_MAX = (pacing.CONTENT_HOUR_MAX - pacing.RESERVED_HOUR) // PER_LANDING
FINE = f"GitHub's content limits leave room for about {LANDINGS_MAX} landings an hour."


def decide(facts: AppFacts) -> Iterator[Finding]:
    """Yield a finding where the busiest hour came near the limit."""
    busiest = facts.subject.landings_hour_max
    found = (
        f"In the busiest hour of the last weeks {busiest} pull requests landed. GitHub lets an "
        f"installation create content 80 times a minute and 500 times an hour, which is enough "
        f"for about {LANDINGS_MAX} landings."
    )
    mend = (
        "Let queues write less: `headgate queue update --set commentsEnabled=false`, or "
        "`--set createPrsForTestingBranches=false` if CI runs on pushes to `headgate/merge/**`."
    )
    if busiest >= LANDINGS_MAX:
        yield warning(ID, found, mend)
    elif busiest * 2 >= LANDINGS_MAX:
        yield note(ID, found, mend)

"""The audit of one queue, from all that was read."""

from collections.abc import Sequence
from datetime import datetime

from service.mergequeue.auditing import rows as contradictions
from service.mergequeue.auditing import statements as evidence
from service.mergequeue.auditing import target
from service.mergequeue.auditing.findings import Audit, Finding, Rule
from service.mergequeue.auditing.records import History, QueueRows, Statement
from service.vocabulary import Sha


def audit(
    rows: QueueRows,
    history: History | None,
    statements: Sequence[Statement],
    since: datetime | None = None,
) -> Audit:
    """Return what the rows of a queue, git and the signed evidence say against each other.

    `history` None: there was no repository to read. `since`: findings about commits before it are
    left out.
    """
    found: list[Finding] = list(contradictions.findings(rows))
    bases: dict[int, Sha] = {}
    if history is not None:
        walk = target.walk_of(history)
        found += target.findings(rows, history, walk)
        bases = walk.bases
    elif count := len(target.landed(rows)):
        text = f"{count} {'landing was' if count == 1 else 'landings were'} not compared with git"
        found.append(Finding(Rule.NO_GIT, text))
    found += evidence.findings(rows, statements, bases)
    if history is not None and since is not None:
        old = {one.sha for one in history.commits if one.at < since}
        found = [each for each in found if each.commit not in old]
    found.sort(key=lambda each: -each.rule.weight)
    return Audit(
        queue=f"{rows.queue.repo.host}/{rows.queue.repo.slug}@{rows.queue.branch}",
        place="" if history is None else history.place,
        landings=len(target.landed(rows)),
        commits=0 if history is None else len(history.commits),
        findings=tuple(found),
    )

"""Required checks that seem to judge a pull request and not its tree (docs/design/provider.md 8.3).

A check of the title or the labels fails on the draft pull request of the queue, whatever the tree.
This excuses nothing: it only blames no pull request, and names the setting that an admin chooses.
"""

from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.model import Run
from service.mergequeue.engine.planning import reuse
from service.mergequeue.engine.state.draft import Draft
from service.vocabulary import CheckOutcome


def are_misplaced(draft: Draft, run: Run) -> bool:
    """Return whether every failed check passed on each own head, and no test run passed lately.

    Of such checks only those whose names say that they judge pull requests.
    """
    failed = {
        one.required.name
        for one in verdict.standings_of(run)
        if one.outcome is CheckOutcome.FAILED and not one.is_revoked
    }
    entries = draft.tested(run)
    if not failed or not entries or not run.checks:
        return False
    if any(not failed <= set(entry.facts.judged_on_head) for entry in entries):
        return False
    digest = reuse.digest_of(run.required)
    return not any(green.required == digest for green in draft.queue.greens.values())

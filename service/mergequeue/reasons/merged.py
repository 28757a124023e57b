"""How a pull request was merged."""

from service.mergequeue.reasons.record import Ending, Record
from service.mergequeue.reasons.testing import OWN_CHECKS

_LANDED = "merged into {target}[ as {sha}]"

RECORDS = (
    Record(
        code="landed",
        word="MERGE_GRAPH_MERGE",
        merged=Ending(clause=_LANDED, may_return=False),
    ),
    Record(
        code="landed_directly",
        word="MERGE_GRAPH_DIRECT_MERGE",
        merged=Ending(clause=_LANDED, note=OWN_CHECKS, may_return=False),
    ),
    Record(
        code="merged_by_hand",
        word="MANUAL_MERGE",
        merged=Ending(
            clause="merged outside the queue[ by {by}]",
            note="PRs behind it are tested again where needed.",
            may_return=False,
        ),
    ),
    Record(
        code="already_contained",
        merged=Ending(
            clause="already in {target}",
            note="Its commits are already in the target branch, so there was nothing to merge.",
            may_return=False,
        ),
    ),
)

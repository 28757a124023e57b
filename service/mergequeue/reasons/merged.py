"""The reasons why a pull request was merged."""

from service.mergequeue.reasons.record import Ending, Record
from service.mergequeue.reasons.testing import OWN_CHECKS

_LANDED = "merged into {target}[ as {sha}]"

RECORDS = (
    Record("landed", word="MERGE_GRAPH_MERGE", merged=Ending(clause=_LANDED)),
    Record(
        "landed_directly",
        word="MERGE_GRAPH_DIRECT_MERGE",
        merged=Ending(clause=_LANDED, note=OWN_CHECKS),
    ),
    Record(
        "merged_by_hand",
        word="MANUAL_MERGE",
        merged=Ending(
            clause="merged outside the queue[ by {by}]",
            note="PRs behind it are tested again where needed.",
        ),
    ),
    Record(
        "already_contained",
        merged=Ending(
            clause="already in {target}",
            note="Its commits are already in the target branch, so there was nothing to merge.",
        ),
    ),
)

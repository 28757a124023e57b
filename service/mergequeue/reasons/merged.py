"""The reasons why a pull request was merged."""

from service.mergequeue.reasons.record import (
    DONE,
    Ending,
    Record,
)
from service.mergequeue.reasons.testing import OWN_CHECKS

_LANDED = "merged into {target}[ as {sha}]"

RECORDS = (
    Record("landed", next=DONE, word="MERGE_GRAPH_MERGE", merged=Ending(clause=_LANDED)),
    Record(
        "landed_directly",
        next=DONE,
        word="MERGE_GRAPH_DIRECT_MERGE",
        merged=Ending(clause=_LANDED, note=OWN_CHECKS),
    ),
    Record(
        "merged_by_hand",
        next=DONE,
        word="MANUAL_MERGE",
        merged=Ending(
            clause="merged outside the queue[ by {by}]",
            note="PRs behind it are tested again where needed.",
            is_only_seen=True,
        ),
    ),
    Record(
        "landed_unrecorded",
        next=DONE,
        merged=Ending(
            clause="merged into {target}[ as {sha}] by Headgate",
            note="Headgate has no record of this landing, for example because its database was "
            "restored from a backup.",
            is_only_seen=True,
        ),
    ),
    Record(
        "already_contained",
        next=DONE,
        merged=Ending(
            clause="already in {target}",
            note="Its commits are already in the target branch, so there was nothing to merge.",
        ),
    ),
)

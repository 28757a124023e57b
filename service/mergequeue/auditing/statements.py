"""Compare signed evidence with the landings and with git."""

from collections.abc import Iterator, Mapping, Sequence

from service.mergequeue.auditing.findings import Finding, Rule
from service.mergequeue.auditing.records import QueueRows, Statement
from service.mergequeue.auditing.target import landed
from service.mergequeue.landing_records import LandingRecord
from service.vocabulary import Sha


def findings(
    rows: QueueRows, statements: Sequence[Statement], bases: Mapping[int, Sha]
) -> Iterator[Finding]:
    """Yield what evidence lacks, contradicts or says of no landing.

    `bases`: the commit on which git has each landing, by its id.
    """
    by_landing = {(row.landed_sha, row.pr): row for row in landed(rows)}
    known = {(each.sha, each.pr): each for each in statements}
    first = min((row.id for key, row in by_landing.items() if key in known), default=None)
    for key, row in by_landing.items():
        if key not in known and first is not None and row.id > first:
            text = f"#{row.pr} landed as {row.landed_sha}, without evidence"
            yield Finding(Rule.EVIDENCE_MISSING, text, row.pr, row.landed_sha)
    for key, each in known.items():
        landing = by_landing.get(key)
        if each.fault:
            yield Finding(Rule.EVIDENCE_REFUTED, f"{each.sha}: {each.fault}", each.pr, each.sha)
        elif landing is None:
            text = f"evidence says that #{each.pr} landed as {each.sha}; no landing does"
            yield Finding(Rule.EVIDENCE_WITHOUT_LANDING, text, each.pr, each.sha)
        else:
            yield from _compared(each, landing, bases.get(landing.id))
        if each.waits:
            text = f"the evidence of #{each.pr} as {each.sha} waits to be signed"
            yield Finding(Rule.EVIDENCE_WAITS, text, each.pr, each.sha)


def _compared(each: Statement, row: LandingRecord, base: Sha | None) -> Iterator[Finding]:
    pairs = {
        "commit": (each.commit, row.landed_sha),
        "tree": (each.tree, row.landed_tree),
        "head": (each.head, row.head),
        "tested tree": (each.expected_tree, row.expected_tree),
        "number of the landing": (each.number, row.number),
        "position": (each.position, row.position),
        "base": (each.base, base or each.base),
    }
    for name, (said, stored) in pairs.items():
        if said != stored:
            text = f"evidence of {row.landed_sha} says {name} {said}, and it is {stored}"
            yield Finding(Rule.EVIDENCE_DIFFERS, text, row.pr, row.landed_sha)

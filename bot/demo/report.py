"""The outcome of a play, in words and as one JSON value (UX.md 4.1)."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from bot.demo import scene, story
from bot.demo.proofs import Proof
from bot.demo.stage import Json, Stage
from bot.settings import VERSION

CONFLICTS = frozenset({"conflict_target"})
INTERRUPTED = "interrupted_by_urgent"


@dataclass(frozen=True, slots=True)
class Report:
    """How it ended. `faults` are expectations that were not met, as sentences."""

    records: Mapping[int, Json]
    proofs: Sequence[Proof]
    faults: Sequence[str]
    duration_s: float

    @property
    def ok(self) -> bool:
        """Whether every proof holds and every expectation is met."""
        return not self.faults and all(proof.ok for proof in self.proofs)


def faults_of(records: Mapping[int, Json], order: Sequence[int]) -> tuple[str, ...]:
    """Expectations that were not met; `order` are the numbers as they left the queue."""
    faults = []
    for role in story.ROLES:
        if role.expected is None:
            continue
        record = records.get(role.number)
        state = record["state"] if record else "never queued"
        reason = record["reason"] if record else None
        if state != role.expected:
            faults.append(f"#{role.number} is {state} ({reason}), expected {role.expected}")
        elif role.reason not in (None, reason):
            faults.append(f"#{role.number} failed by {reason}, expected {role.reason}")
    urgent, slow = story.URGENT.number, story.SLOW.number
    if urgent in order and slow in order and order.index(urgent) > order.index(slow):
        faults.append(f"#{urgent} is urgent and left after #{slow}")
    if not interrupts(records):
        faults.append(f"#{urgent} interrupted nobody")
    return tuple(faults)


def interrupts(records: Mapping[int, Json]) -> int:
    """How often tests began anew because something urgent came."""
    restarts = [record.get("restarts") for record in records.values()]
    return sum(int(str(each.get(INTERRUPTED, 0))) for each in restarts if isinstance(each, dict))


def as_json(report: Report, stage: Stage) -> dict[str, object]:
    """The report as programs read it."""
    states = [record["state"] for record in report.records.values()]
    reasons = [record["reason"] for record in report.records.values()]
    return {
        "ok": report.ok,
        "version": VERSION,
        "duration_s": round(report.duration_s, 1),
        "urls": addresses(stage),
        "pull_requests": [
            pull_request(role, report.records[role.number])
            for role in story.ROLES
            if role.number in report.records
        ],
        "counts": {
            "merged": states.count("MERGED"),
            "failed": states.count("FAILED"),
            "conflicts": len([reason for reason in reasons if reason in CONFLICTS]),
            "urgent_interrupts": interrupts(report.records),
        },
        "faults": list(report.faults),
        "proofs": [asdict(proof) for proof in report.proofs],
    }


def pull_request(role: story.Role, record: Json) -> dict[str, object]:
    """One pull request of the report."""
    ended = scene.conclusion_of(record)
    failed = ended.get("failedStatuses")
    return {
        "repo": story.SLUG,
        "number": role.number,
        "title": role.title,
        "expected": role.expected,
        "state": record["state"],
        "reason": record["reason"],
        "commit": ended.get("mergedSha"),
        "failed_check": failed[0] if isinstance(failed, list) and failed else None,
    }


def addresses(stage: Stage) -> dict[str, str]:
    """Where the visitor may look."""
    return {
        "service": stage.service,
        "api": f"{stage.service}/v1",
        "sandbox": f"{stage.sandbox}/{story.SLUG}/pull/8",
    }


def lines(report: Report) -> list[str]:
    """The proofs and the verdict, for people."""
    marks = {True: "✓", False: "✗"}
    said = ["", "Proofs, by git alone:"]
    said += [f"  {marks[proof.ok]} {proof.name}: {proof.detail}" for proof in report.proofs]
    said += [f"  ✗ {fault}" for fault in report.faults]
    verdict = "Everything held" if report.ok else "Not everything held"
    return [*said, "", f"{verdict}, after {report.duration_s:.1f} s."]

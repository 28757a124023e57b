"""The outcome of a play, in words and as one JSON value (UX.md 4.1)."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from bot.demo import scene, shown, story
from bot.demo.proofs import SAME_CHANGE, Proof
from bot.demo.shown import Played, Shown
from bot.demo.stage import Stage
from bot.program import VERSION


@dataclass(frozen=True, slots=True)
class Report:
    """How it ended. `broken` are sentences about a play that was not played to its end."""

    stories: Sequence[Played]
    proofs: Sequence[Proof]
    broken: Sequence[str]
    duration_s: float

    @property
    def shown(self) -> list[Shown]:
        """What each story showed."""
        return [shown.of(played) for played in self.stories]

    @property
    def faults(self) -> list[str]:
        """Expectations that were not met, as sentences."""
        return [*self.broken, *(fault for each in self.shown for fault in each.faults)]

    @property
    def ok(self) -> bool:
        """Whether every proof holds and every expectation is met."""
        return not self.faults and all(proof.ok for proof in self.proofs)


def as_json(report: Report, stage: Stage) -> dict[str, object]:
    """The report as programs read it."""
    return {
        "ok": report.ok,
        "version": VERSION,
        "duration_s": round(report.duration_s, 1),
        "urls": addresses(stage),
        "stories": [each.facts for each in report.shown],
        "pull_requests": [
            pull_request(played, role)
            for played in report.stories
            for role in played.story.roles
            if role.number in played.records
        ],
        "counts": counts(report.stories),
        "faults": report.faults,
        "proofs": [asdict(proof) for proof in report.proofs],
    }


def counts(stories: Sequence[Played]) -> dict[str, int]:
    """How often things happened, over all stories."""
    records = [record for played in stories for record in played.records.values()]
    runs = [run for played in stories for run in played.runs]
    states = [record["state"] for record in records]
    return {
        "merged": states.count("MERGED"),
        "failed": states.count("FAILED"),
        "conflicts": len([each for each in records if each["reason"] in shown.CONFLICTS]),
        "urgent_interrupts": sum(shown.interrupts(played.records) for played in stories),
        "batches_failed": len(
            [
                run
                for run in runs
                if run.kind == "main" and len(run.numbers) > 1 and run.status == "failed"
            ]
        ),
        "bisection_runs": len([run for run in runs if run.kind in ("probe", "confirmation")]),
        "landed_beside_others": len(
            [kind for played in stories for kind in played.proofs.values() if kind == SAME_CHANGE]
        ),
        "units_of_several": len(
            [unit for played in stories for unit in played.units() if len(unit[1]) > 1]
        ),
    }


def pull_request(played: Played, role: story.Role) -> dict[str, object]:
    """One pull request of the report."""
    record = played.records[role.number]
    ended = scene.conclusion_of(record)
    failed = ended.get("failedStatuses")
    run = played.verified(role.number)
    return {
        "repo": story.SLUG,
        "branch": played.story.branch,
        "number": role.number,
        "title": role.title,
        "expected": role.expected,
        "state": record["state"],
        "reason": record["reason"],
        "commit": ended.get("mergedSha"),
        "run": None if run is None else run.id,
        "proof": played.proofs.get(role.number),
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
    """What was shown, the proofs and the verdict, for people."""
    marks = {True: "✓", False: "✗"}
    said = ["", "Shown:"]
    said += [
        f"  {marks[not each.faults]} {each.facts['branch']:<10} {each.facts['shows']}"
        for each in report.shown
    ]
    said += [f"  ✗ {fault}" for fault in report.faults]
    said += ["", "Proofs, by git alone:"]
    said += [f"  {marks[proof.ok]} {proof.name}: {proof.detail}" for proof in report.proofs]
    verdict = "Everything held" if report.ok else "Not everything held"
    return [*said, "", f"{verdict}, after {report.duration_s:.1f} s."]

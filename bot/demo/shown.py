"""What each story was to show, and whether it did: read from what the service's API says.

One function a story. Each gives facts for the report, and a sentence for whatever is missing.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from bot.demo import story
from bot.demo.proofs import SAME_CHANGE
from bot.demo.stage import Json
from bot.demo.story import Story

INTERRUPTED = "interrupted_by_urgent"
CLEARED = "successor_passed"
CONFLICTS = frozenset({"conflict_target"})


@dataclass(frozen=True, slots=True)
class Run:
    """One test run: `numbers` are tested on top of `base`; `ended` is None while it goes on."""

    id: str
    kind: str
    numbers: tuple[int, ...]
    base: tuple[int, ...]
    status: str
    failed: tuple[str, ...]
    commit: str
    began: str
    ended: str | None

    @staticmethod
    def of(details: Json) -> "Run":
        """The run of an answer of `/getMergeQueueTestingDetails`."""
        ended = details["finishedAt"]
        tested = [each for each in listed(details["testedPullRequests"]) if isinstance(each, dict)]
        return Run(
            id=str(details["testRunId"]),
            kind=str(details["kind"]),
            numbers=tuple(int(str(each["prNumber"])) for each in tested),
            base=tuple(int(str(number)) for number in listed(details["dependentPrs"])),
            status=str(details["status"]),
            failed=tuple(str(name) for name in listed(details["failedStatuses"])),
            commit=str(details["testBranchSha"]),
            began=str(details["createdAt"]),
            ended=None if ended is None else str(ended),
        )

    def as_json(self) -> Json:
        """The run in the report."""
        return {
            "id": self.id,
            "kind": self.kind,
            "pull_requests": list(self.numbers),
            "on_top_of": list(self.base),
            "status": self.status,
            "failed_checks": list(self.failed),
            "commit": self.commit,
            "began": self.began,
            "ended": self.ended,
        }


@dataclass(frozen=True, slots=True)
class Played:
    """What the API says of one story.

    `runs` are oldest first, `order` are the numbers as they left the queue; `proofs` says by
    git alone how each merged one landed.
    """

    story: Story
    records: Mapping[int, Json]
    runs: Sequence[Run]
    order: Sequence[int]
    proofs: Mapping[int, str] = field(default_factory=dict)

    def verified(self, number: int) -> Run | None:
        """The run by which a pull request landed."""
        run_id = self.records[number].get("verifiedByTestRun")
        return next((run for run in self.runs if run.id == run_id), None)

    def state(self, number: int) -> JsonValue:
        """The state of a pull request, None when it was never queued."""
        return self.records[number]["state"] if number in self.records else None

    def units(self) -> list[tuple[str, list[int]]]:
        """The runs that landed something with what they landed, in order."""
        units: dict[str, list[int]] = {}
        for number in self.order:
            run = self.verified(number)
            if run is not None and self.state(number) == "MERGED":
                units.setdefault(run.id, []).append(number)
        return list(units.items())


@dataclass(frozen=True, slots=True)
class Shown:
    """What a story showed: facts for programs, sentences for what is missing."""

    facts: Json
    faults: tuple[str, ...]


def of(played: Played) -> Shown:
    """What one story showed, its general facts first."""
    own = TELLING[played.story.branch](played)
    units: list[JsonValue] = [
        {"run": run, "pull_requests": list(numbers)} for run, numbers in played.units()
    ]
    faults = (*unexpected(played), *own.faults)
    facts: Json = {
        "branch": played.story.branch,
        "shows": played.story.shows,
        "ok": not faults,
        "landed": [number for number in played.order if played.state(number) == "MERGED"],
        "units": units,
        **own.facts,
        "runs": [run.as_json() for run in played.runs],
    }
    return Shown(facts, faults)


def unexpected(played: Played) -> list[str]:
    """Pull requests that did not end as they were to."""
    faults = []
    for role in played.story.roles:
        record = played.records.get(role.number)
        state = record["state"] if record else "never queued"
        reason = record["reason"] if record else None
        if role.expected is None:
            continue
        if state != role.expected:
            faults.append(f"#{role.number} is {state} ({reason}), expected {role.expected}")
        elif role.reason not in (None, reason):
            faults.append(f"#{role.number} failed by {reason}, expected {role.reason}")
    return faults


def main(played: Played) -> Shown:
    """A failed check, a conflict, and an urgent one that goes ahead of a slow one."""
    urgent, slow, order = story.URGENT.number, story.SLOW.number, played.order
    overtaken = urgent in order and slow in order and order.index(urgent) < order.index(slow)
    count = interrupts(played.records)
    reasons = [record["reason"] for record in played.records.values()]
    facts: Json = {
        "failed": [number for number in order if played.state(number) == "FAILED"],
        "conflicts": len([reason for reason in reasons if reason in CONFLICTS]),
        "urgent": urgent,
        "urgent_interrupts": count,
    }
    return Shown(
        facts,
        missing(
            (overtaken, f"#{urgent} is urgent and left after #{slow}"),
            (count > 0, f"#{urgent} interrupted nobody"),
        ),
    )


def interrupts(records: Mapping[int, Json]) -> int:
    """How often tests began anew because something urgent came."""
    restarts = [record.get("restarts") for record in records.values()]
    return sum(int(str(each.get(INTERRUPTED, 0))) for each in restarts if isinstance(each, dict))


def release(played: Played) -> Shown:
    """A batch of all four that failed, runs that searched it, and one culprit."""
    members = tuple(role.number for role in played.story.roles)
    culprit = story.CULPRIT.number
    batches = [run for run in played.runs if run.kind == "main" and run.numbers == members]
    probes = [run for run in played.runs if run.kind == "probe"]
    confirmed = [
        run for run in played.runs if run.kind == "confirmation" and run.status == "failed"
    ]
    failed = [number for number in members if played.state(number) == "FAILED"]
    facts: Json = {
        "batch": list(members),
        "batch_run": batches[0].id if batches else None,
        "probes": [run.id for run in probes],
        "confirmations": [run.id for run in confirmed],
        "culprit": failed[0] if len(failed) == 1 else None,
    }
    return Shown(
        facts,
        missing(
            (any(run.status == "failed" for run in batches), "no batch of four failed"),
            (bool(probes), "nobody searched the failed batch"),
            (bool(confirmed), "the culprit was blamed without a second failure"),
            (failed == [culprit], f"failed are {failed}, expected only #{culprit}"),
        ),
    )


def lanes(played: Played) -> Shown:
    """Two runs at the same time, neither on top of the other; the later came in first."""
    slower, quicker = story.SLOWER.number, story.QUICKER.number
    one, two = (run_of(played, number) for number in (slower, quicker))
    at_once = one is not None and two is not None and overlap(one, two)
    apart = one is not None and two is not None and not one.base and not two.base
    kind = played.proofs.get(slower)
    facts: Json = {
        "submitted": [slower, quicker],
        "targets": {str(role.number): list(role.targets or ()) for role in played.story.roles},
        "tested_at_the_same_time": at_once,
        "proofs": {str(number): proof for number, proof in played.proofs.items()},
    }
    return Shown(
        facts,
        missing(
            (at_once, f"#{slower} and #{quicker} were not tested at the same time"),
            (apart, f"#{slower} and #{quicker} were not tested apart from each other"),
            (list(played.order) == [quicker, slower], f"#{quicker} did not land first"),
            (kind == SAME_CHANGE, f"#{slower} did not land beside #{quicker}: {kind}"),
        ),
    )


def optimistic(played: Played) -> Shown:
    """A failed run, cleared by the run on top of it; both land by that one."""
    flaky, clearing = story.FLAKY.number, story.CLEARING.number
    failed = [run for run in played.runs if run.numbers == (flaky,) and run.failed and not run.base]
    unit = played.units()
    by = run_of(played, clearing)
    together = by is not None and unit == [(by.id, [flaky, clearing])]
    on_top = by is not None and by.numbers == (clearing,) and by.base == (flaky,)
    events = played.records.get(flaky, {}).get("timeline")
    cleared = any(
        isinstance(event, dict)
        and (event.get("from"), event.get("reason")) == ("PENDING_FAILURE", CLEARED)
        for event in listed(events)
    )
    facts: Json = {
        "flaky": flaky,
        "failed_run": failed[0].id if failed else None,
        "cleared_by": by.id if by is not None and cleared else None,
    }
    return Shown(
        facts,
        missing(
            (bool(failed), f"no run of #{flaky} failed"),
            (cleared, f"#{flaky} was not cleared of its failure"),
            (on_top, f"#{clearing} was not tested on top of #{flaky}"),
            (together, f"#{flaky} and #{clearing} did not land as one unit"),
        ),
    )


TELLING: Mapping[str, Callable[[Played], Shown]] = {
    story.MAIN.branch: main,
    story.RELEASE.branch: release,
    story.LANES.branch: lanes,
    story.OPTIMISTIC.branch: optimistic,
}


def run_of(played: Played, number: int) -> Run | None:
    """The run by which a pull request landed; None also when it was never queued."""
    return played.verified(number) if number in played.records else None


def overlap(one: Run, two: Run) -> bool:
    """Whether two runs went on at the same time."""
    return (two.ended is None or one.began < two.ended) and (
        one.ended is None or two.began < one.ended
    )


def missing(*wanted: tuple[bool, str]) -> tuple[str, ...]:
    """The sentences of what does not hold."""
    return tuple(sentence for holds, sentence in wanted if not holds)


def listed(value: JsonValue) -> Iterable[JsonValue]:
    """The members of a list, none of anything else."""
    return value if isinstance(value, list) else ()

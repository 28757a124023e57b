"""Events and explanations as lines of text, runs by number: `r2[3 | 1]`, `3 -> TESTING`."""

from collections.abc import Sequence

from service.mergequeue.engine import outputs
from service.mergequeue.engine.explaining.conditions import Condition, ConditionCode
from service.mergequeue.engine.explaining.explain import Explained
from service.mergequeue.engine.model import Detail
from service.mergequeue.engine.outputs import Event, Recorded
from service.mergequeue.engine.states import RunKind
from service.mergequeue.engine.targets import Targets
from service.vocabulary import ActorKind


class Timeline:
    """Writes events; knows the numbers of runs it has seen start."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.searches: dict[str, outputs.BisectionOpened] = {}

    def lines(self, events: Sequence[Recorded]) -> list[str]:
        """One line an event; what every story has alike is left out."""
        written = []
        for recorded in events:
            line = self.line(recorded.event)
            if line:
                who = recorded.actor
                by = "" if who.kind is ActorKind.SYSTEM else f" (by {who.login})"
                written.append(line + by)
        return written

    def line(self, event: Event) -> str:
        """One event; empty for a built branch, which says nothing new."""
        if isinstance(event, outputs.RunStarted):
            self.numbers[event.run] = event.number
            kind = "" if event.kind is RunKind.MAIN else f" {event.kind.value}"
            base = " ".join(map(str, event.base_prs))
            return f"r{event.number}[{' '.join(map(str, event.prs))} | {base}]{kind}"
        if isinstance(event, outputs.RunBuilt):
            again = event.repeats
            return "" if again is None else f"{self._run(event.run)} repeats {self._run(again)}"
        if isinstance(
            event, outputs.BisectionOpened | outputs.BisectionNarrowed | outputs.BisectionClosed
        ):
            return self._of_bisection(event)
        return self._of_entry(event) or self._of_run(event) or self._of_queue(event)

    def _run(self, run: str) -> str:
        return f"r{self.numbers[run]}" if run in self.numbers else run[:8]

    def _detail(self, detail: Detail) -> str:
        words = []
        if detail.prs:
            words.append(" ".join(f"#{pr}" for pr in detail.prs))
        words += [check.name for check in detail.checks]
        words += detail.paths
        if detail.text:
            words.append(f'"{detail.text}"')
        return f" ({', '.join(words)})" if words else ""

    def _of_entry(self, event: Event) -> str:
        if isinstance(event, outputs.EntryMoved):
            move = "->" if event.origin is not event.state else "=="
            return f"{event.pr} {move} {event.state.value} {event.reason.value}" + self._detail(
                event.detail
            )
        if isinstance(event, outputs.EntrySubmitted):
            return f"{event.pr} submitted {event.reason.value} priority {event.priority}"
        if isinstance(event, outputs.EntryUpdated):
            touched = "" if event.targets is None else f" targets {names_of(event.targets)}"
            said = f"priority {event.priority} no_batch {event.no_batch}{touched}"
            return f"{event.pr} updated {said}"
        if isinstance(event, outputs.EntryPlaced):
            return f"{event.pr} placed {event.why.value}"
        return ""

    def _of_run(self, event: Event) -> str:
        if isinstance(event, outputs.RunFinished):
            cause = f" {event.cause.value}" if event.cause else ""
            failed = f" ({', '.join(event.failed)})" if event.failed else ""
            return f"{self._run(event.run)} {event.status.value}{cause}{failed}"
        if isinstance(event, outputs.RunRetried):
            return f"{self._run(event.run)} attempt {event.attempt} {event.cause.value}"
        if isinstance(event, outputs.RunRetired):
            kept = ", its branch stays" if event.keeps_branch else ""
            return f"{self._run(event.run)} retired {event.why.value}{kept}"
        if isinstance(event, outputs.LandingStarted):
            several = len(event.positions) > 1
            places = f", positions {' '.join(map(str, event.positions))}" if several else ""
            return f"{self._run(event.run)} lands by {event.mode.value}{places}"
        if isinstance(event, outputs.LandingHalted):
            return f"{self._run(event.run)} landing stopped {event.code}"
        if isinstance(event, outputs.LandingMismatched):
            return f'{self._run(event.run)} landing mismatched "{event.evidence}"'
        return ""

    def _of_bisection(
        self,
        event: outputs.BisectionOpened | outputs.BisectionNarrowed | outputs.BisectionClosed,
    ) -> str:
        """A search goes by its failed run; that of a single entry is just its confirmation."""
        if isinstance(event, outputs.BisectionOpened):
            self.searches[event.bisection] = event
        search = self.searches.get(event.bisection)
        if search is None or len(search.prs) == 1:
            return ""
        run, prs = self._run(search.run), search.prs
        if isinstance(event, outputs.BisectionOpened):
            return f"{run} bisected"
        if isinstance(event, outputs.BisectionNarrowed):
            suspects = " ".join(map(str, prs[event.lo : event.hi])) or "nobody"
            proven = f", proven {' '.join(map(str, prs[: event.lo]))}" if event.lo else ""
            return f"{run} narrowed to {suspects}{proven}"
        culprit = f" (#{event.culprit})" if event.culprit is not None else ""
        return f"{run} bisection closed {event.why.value}{culprit}"

    def _of_queue(self, event: Event) -> str:
        match event:
            case outputs.TipMoved():
                how = "landed" if event.landed else "adopted" if event.adopted else "by others"
                return f"tip moved, {how}"
            case outputs.HoldPlaced():
                return f'held {event.reason.value} "{event.text}"'
            case outputs.HoldReleased():
                return f'hold {event.reason.value} lifted "{event.text}"'
            case outputs.QueueStateChanged():
                return f"queue {event.origin.value} -> {event.state.value}"
            case outputs.ModeChanged():
                return f"mode {event.mode.value}"
            case outputs.QueueConfigured():
                return f"configured {' '.join(event.changed)}"
            case outputs.RequiredStatusesChanged():
                return f"required {' '.join(event.names) or 'nothing'}"
            case _:
                return type(event).__name__


def names_of(targets: Targets) -> str:
    """Targets as the inputs write them: `a,b`, `ALL`, `none`."""
    if targets.everything:
        return "ALL"
    return ",".join(sorted(targets.names)) or "none"


def explanation(pr: int, explained: Explained) -> list[str]:
    """An explanation as lines: `+` what is met, `-` what is open."""
    lines = [f"{pr} is {explained.state.value} {explained.reason.value}"]
    lines += [_condition(one) for one in explained.conditions]
    if explained.next is not None:
        after = explained.next
        prs = "".join(f" #{pr}" for pr in after.prs)
        at = f" at {after.at:%d %H:%M:%S}" if after.at else ""
        lines.append(f"next {after.what.value}{prs}{at}")
    return lines


def _condition(one: Condition) -> str:
    words = ["+" if one.met else "-", one.code.value]
    words += [one.word] if one.word else []
    words += [one.name] if one.name and "-" not in one.name else []
    words += [f"#{pr}" for pr in one.prs]
    if one.total is not None:
        words.append(f"{one.count} of {one.total}")
    elif one.count:
        is_place = one.code is ConditionCode.ITS_TURN
        words.append(f"{one.count} before it" if is_place else f"{one.count} %")
    if one.at is not None:
        words.append(f"until {one.at:%d %H:%M:%S}")
    if not one.met and one.who_must_act.value != "nobody":
        words.append(f"({one.who_must_act.value})")
    return " ".join(words)

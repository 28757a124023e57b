"""Find what the jobs of a workflow do on a test branch, by their conditions.

Runs in a parser process.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bot.github import conditions
from bot.github.conditions import Names
from service.vocabulary import ELSEWHERE

# How other queues start CI, by their own documentation; the first that a text contains counts.
OTHER_QUEUES: Sequence[tuple[re.Pattern[str], str]] = tuple(
    (re.compile(pattern), place)
    for pattern, place in (
        (r"merge_group", "merge_group"),
        (r"gh-readonly-queue", "gh-readonly-queue/**"),
        (r"mergify/merge-queue", "mergify/merge-queue/**"),
        (r"trunk-merge", "trunk-merge/**"),
        (r"gtmq_", "gtmq_**"),
        (r"automation/bors/", "automation/bors/**"),
        (r"(?:^|['/])staging(?:'|$)", "staging"),
        (r"(?:^|['/])trying(?:'|$)", "trying"),
    )
)
PREPARES = re.compile(r"actions/(?:checkout|cache|setup-[\w-]+|download-artifact)(?:/[\w-]+)?@")
DOES_NOTHING = re.compile(r"(?:(?:echo|printf)\b[^|;&>]*|true|:|exit 0|)")


@dataclass(frozen=True, slots=True)
class WorkflowJob:
    """A job on test branches; events are `push` and `pull_request`.

    `left_out`: the events on which its condition, or that of a job that it needs, is false.
    `empty`: those on which it runs, but none of its steps that do something. `place`: where it runs
    instead, a trigger or branches, or ELSEWHERE. `is_dummy`: none of its steps ever does anything.
    """

    name: str
    left_out: frozenset[str] = frozenset()
    empty: frozenset[str] = frozenset()
    place: str = ""
    is_dummy: bool = False


def place_in(text: object) -> str:
    """Return the other queue that a condition or branch pattern names; empty if it names none."""
    words = text if isinstance(text, str) else ""
    return next((place for pattern, place in OTHER_QUEUES if pattern.search(words)), "")


def jobs_of(
    jobs: Mapping[str, Mapping[str, object]], shown: Mapping[str, str], seen: Mapping[str, Names]
) -> Iterator[WorkflowJob]:
    """Yield the jobs of a workflow; `shown` has the names they report under, `seen` is by event."""
    places: dict[str, str] = {}
    left_out: dict[str, set[str]] = {name: set() for name in jobs}
    for event, names in seen.items():
        for name in _left_out(jobs, names, places):
            left_out[name].add(event)
    for name, job in jobs.items():
        steps = _steps(job)
        empty = [event for event, names in seen.items() if _is_empty(steps, names)]
        place = places.get(name, "")
        if empty and not place:
            hints = (place_in(step.get("if")) for step in steps)
            place = next(filter(None, hints), ELSEWHERE)
        yield WorkflowJob(
            name=shown[name],
            left_out=frozenset(left_out[name]),
            empty=frozenset(empty) - left_out[name],
            place=place,
            is_dummy=bool(steps) and not any(map(_works, steps)),
        )


def _left_out(
    jobs: Mapping[str, Mapping[str, object]], names: Names, places: dict[str, str]
) -> set[str]:
    """Return the jobs that do not run; adds to `places` where they run instead."""
    found: set[str] = set()
    for name, job in jobs.items():
        if not conditions.can_be_true(job.get("if"), names):
            found.add(name)
            places.setdefault(name, place_in(job.get("if")) or ELSEWHERE)
    # A job that needs one that was skipped is skipped as well, and so on along the chain.
    dependents: defaultdict[str, list[str]] = defaultdict(list)
    for name, job in jobs.items():
        if not conditions.runs_although_skipped(job.get("if")):
            for needed in _needs(job):
                dependents[needed].append(name)
    waiting = list(found)
    while waiting:
        needed = waiting.pop()
        for name in dependents[needed]:
            if name not in found:
                found.add(name)
                places.setdefault(name, places[needed])
                waiting.append(name)
    return found


def _needs(job: Mapping[str, object]) -> set[str]:
    needs = job.get("needs")
    if isinstance(needs, str):
        return {needs}
    return {each for each in needs if isinstance(each, str)} if isinstance(needs, list) else set()


def _steps(job: Mapping[str, object]) -> list[Mapping[str, object]]:
    steps = job.get("steps")
    return [each for each in steps if isinstance(each, Mapping)] if isinstance(steps, list) else []


def _is_empty(steps: Sequence[Mapping[str, object]], names: Names) -> bool:
    """Return whether all steps that do something are left out, and there are such."""
    working = [step for step in steps if _works(step)]
    left = [step for step in working if conditions.can_be_true(step.get("if"), names)]
    return bool(working) and not left


def _works(step: Mapping[str, object]) -> bool:
    """Return whether a step may test something: it neither prepares nor only prints."""
    uses, script = step.get("uses"), step.get("run")
    if isinstance(uses, str):
        return PREPARES.match(uses) is None
    if not isinstance(script, str):
        return False
    return not all(DOES_NOTHING.fullmatch(line.strip()) for line in script.splitlines())

"""Workflow files to values: what their jobs do on test branches. Runs in a parser process.

A file is a stranger's text: any writer of a repository can land it. It is read by the reader of
`service/repofile` under rules that allow aliases, as GitHub Actions does since 2025.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bot.github import conditions
from bot.github.conditions import Names
from service.repofile import document
from service.repofile.document import Rules, Unreadable
from service.vocabulary import ELSEWHERE

# GitHub's own reader nests no deeper.
RULES = Rules(depth_max=50, has_aliases=True)
PROBE = "headgate/merge/pr-1/00000000-0000-0000-0000-000000000000"
DRAFT = r"github\.event\.pull_request\.draft"
# Possessive repeats: a condition of many blanks must not be searched again for each of them.
SKIPS_DRAFTS = re.compile(
    rf"!\s*+(?:\(\s*+)?{DRAFT}|{DRAFT}\s*+==\s*+'?false|{DRAFT}\s*+!=\s*+'?true", re.IGNORECASE
)
PATH_FILTERS = frozenset({"paths", "paths-ignore"})
PATTERN_CHARS_MAX = 255
PARTS = re.compile(r"(\*\*|\*|\[[^\]]*\]|\\.|.)([?+]?)", re.DOTALL)

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
_PREPARES = re.compile(r"actions/(?:checkout|cache|setup-[\w-]+|download-artifact)(?:/[\w-]+)?@")
_DOES_NOTHING = re.compile(r"(?:(?:echo|printf)\b[^|;&>]*|true|:|exit 0|)")


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


@dataclass(frozen=True, slots=True)
class Workflow:
    """The triggers of one workflow file, as far as they concern test branches.

    `on_draft`: a draft pull request onto the target starts it. `guarded` are its jobs that skip
    drafts, `wrong_types` says that it leaves out `opened`. `jobs` are the names under which its
    jobs report, `filtered` the events with a path filter, `groups` its concurrency groups of
    which a newer run cancels an older one. `each_job` says what its jobs do on test branches;
    `elsewhere` is the trigger or branches of another queue that start it, if it names one.
    """

    name: str
    on_push: bool
    on_draft: bool
    wrong_types: bool
    guarded: tuple[str, ...]
    jobs: tuple[str, ...] = ()
    filtered: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    each_job: tuple[WorkflowJob, ...] = ()
    elsewhere: str = ""

    def reports(self, check: str) -> bool:
        """Return whether a job reports under this name; of a matrix `test (3.12)` for `test`."""
        return any(check == job or check.startswith((f"{job} (", f"{job} / ")) for job in self.jobs)


@dataclass(frozen=True, slots=True)
class Unread:
    """A file that cannot be read; `why` is a sentence."""

    name: str
    why: str


def pieces(contents: Mapping[str, bytes], target: str) -> Iterator[Workflow | Unread]:
    """Return the workflows by name, and the files that cannot be read.

    A file that is no workflow is left out.
    """
    for name in sorted(contents):
        read = document.outcome(contents[name], RULES)
        if isinstance(read, Unreadable):
            place = "" if read.line is None else f"Line {read.line}: "
            yield Unread(name, f"{place}{read.message}")
        elif workflow := _workflow(name, read.value, target):
            yield workflow


def _workflow(name: str, content: object, target: str) -> Workflow | None:
    """Return the workflow of a file that was read, None if its content is none."""
    if not isinstance(content, Mapping):
        return None
    events = _events(content.get("on"))
    push, pull = events.get("push"), events.get("pull_request")
    types = None if pull is None else pull.get("types")
    is_on_pull = pull is not None and _covers(pull, target)
    wrong_types = is_on_pull and types is not None and "opened" not in _words(types)
    guarded = tuple(_guarded_jobs(content.get("jobs"))) if is_on_pull else ()
    return Workflow(
        name,
        on_push=push is not None and _covers(push, PROBE),
        on_draft=is_on_pull and not wrong_types,
        wrong_types=wrong_types,
        guarded=guarded,
        jobs=tuple(_job_names(content.get("jobs"))),
        filtered=tuple(name for name, filters in events.items() if PATH_FILTERS & set(filters)),
        groups=tuple(_groups(content)),
        each_job=tuple(_each_job(content.get("jobs"), target)),
        elsewhere=_elsewhere(events),
    )


def _each_job(jobs: object, target: str) -> Iterator[WorkflowJob]:
    if not isinstance(jobs, Mapping):
        return iter(())
    shown = dict(zip(jobs, _job_names(jobs), strict=True))
    bodies = {name: job if isinstance(job, Mapping) else {} for name, job in jobs.items()}
    seen = {
        "push": conditions.on_push(PROBE),
        "pull_request": conditions.on_draft(PROBE, target),
    }
    return _jobs_of(bodies, shown, seen)


def _elsewhere(events: Mapping[str, Mapping[str, object]]) -> str:
    """Return the trigger or branches of another queue among the events; empty without any."""
    if "merge_group" in events:
        return "merge_group"
    patterns = _words(events.get("push", {}).get("branches"))
    return next(filter(None, map(place_in, patterns)), "")


def _job_names(jobs: object) -> Iterator[str]:
    for name, job in jobs.items() if isinstance(jobs, Mapping) else ():
        shown = job.get("name") if isinstance(job, Mapping) else None
        # The values of a matrix stand behind the name, or inside it where it says so.
        text = shown if isinstance(shown, str) else name
        yield text.partition("${{")[0].rstrip(" (") or name


def _groups(content: Mapping[str, object]) -> Iterator[str]:
    """Return the concurrency groups of a workflow and its jobs; one that waits in line is none."""
    jobs = content.get("jobs")
    inner = jobs.values() if isinstance(jobs, Mapping) else ()
    for place in (content, *inner):
        setting = place.get("concurrency") if isinstance(place, Mapping) else None
        if isinstance(setting, str):
            yield setting
        elif isinstance(setting, Mapping) and setting.get("queue") != "max":
            group = setting.get("group")
            yield group if isinstance(group, str) else ""


def _events(on: object) -> dict[str, Mapping[str, object]]:
    """Return the events of a workflow with their filters."""
    if isinstance(on, Mapping):
        return {
            event: filters if isinstance(filters, Mapping) else {} for event, filters in on.items()
        }
    return {event: {} for event in _words(on)}


def _words(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, Sequence):
        return []
    return [each for each in value if isinstance(each, str)]


def _covers(filters: Mapping[str, object], branch: str) -> bool:
    """Return whether the branch filters of an event let a branch through; later patterns win."""
    if "branches" in filters:
        is_in = False
        for pattern in _words(filters["branches"]):
            if _matches(pattern.removeprefix("!"), branch):
                is_in = not pattern.startswith("!")
        return is_in
    if "branches-ignore" in filters:
        return not any(_matches(each, branch) for each in _words(filters["branches-ignore"]))
    return not {"tags", "tags-ignore"} & set(filters)


def _matches(pattern: str, branch: str) -> bool:
    """Return whether a filter pattern matches a branch, without backtracking."""
    if len(pattern) > PATTERN_CHARS_MAX:
        return False
    places = {0}
    for item in _items(pattern):
        places = _after(branch, places, item)
    return len(branch) in places


@dataclass(frozen=True, slots=True)
class Item:
    """A part of a pattern: ranges of the characters that it takes, and how often it does."""

    ranges: tuple[tuple[str, str], ...]
    is_optional: bool = False
    repeats: bool = False

    def takes(self, character: str) -> bool:
        """Return whether this character fits."""
        return any(first <= character <= last for first, last in self.ranges)


ANY = (("\0", "\U0010ffff"),)
ANY_BUT_SLASH = (("\0", "."), ("0", "\U0010ffff"))
STARS = {"**": Item(ANY, is_optional=True, repeats=True), "*": Item(ANY_BUT_SLASH, True, True)}


def _items(pattern: str) -> Iterator[Item]:
    """`*` stays within a level, `**` does not; `?` and `+` belong to what is before them."""
    for part, sign in PARTS.findall(pattern):
        if part in STARS:
            yield STARS[part]
        else:
            yield Item(_ranges_of(part), sign == "?", sign == "+")


def _ranges_of(part: str) -> tuple[tuple[str, str], ...]:
    """Return the characters of `[a-z_]`, of an escaped character, or of a character."""
    if not part.startswith("[") or len(part) == 1:
        character = part.removeprefix("\\") or part
        return ((character, character),)
    inside, found = part[1:-1], []
    at = 0
    while at < len(inside):
        is_range = inside[at + 1 : at + 2] == "-" and at + 2 < len(inside)
        last = at + 2 if is_range else at
        found.append((inside[at], inside[last]))
        at = last + 1
    return tuple(found)


def _after(branch: str, places: set[int], item: Item) -> set[int]:
    """Return the places in the branch's name that match after one more part of the pattern."""
    reached = set(places) if item.is_optional else set()
    front = places
    while front:
        front = {
            place + 1 for place in front if place < len(branch) and item.takes(branch[place])
        } - reached
        reached |= front
        if not item.repeats:
            break
    return reached


def _guarded_jobs(jobs: object) -> Iterator[str]:
    if not isinstance(jobs, Mapping):
        return
    for name, job in jobs.items():
        condition = job.get("if") if isinstance(job, Mapping) else None
        if isinstance(condition, str) and SKIPS_DRAFTS.search(condition):
            yield name


def place_in(text: object) -> str:
    """Return the other queue that a condition or branch pattern names; empty if it names none."""
    words = text if isinstance(text, str) else ""
    return next((place for pattern, place in OTHER_QUEUES if pattern.search(words)), "")


def _jobs_of(
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
        return _PREPARES.match(uses) is None
    if not isinstance(script, str):
        return False
    return not all(_DOES_NOTHING.fullmatch(line.strip()) for line in script.splitlines())

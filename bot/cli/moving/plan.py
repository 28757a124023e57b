"""Join what was found: the files to write, and the list of what was not carried over."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bot.cli.moving import mapping, mergify, reading, tables, workflow_edits
from bot.cli.moving.expressions import Goal
from bot.cli.moving.mapping import Carried, File, Left, Place, Source, inner_of
from bot.github import other_queues, workflow_files, workflows
from bot.github.audits.rules import ALWAYS
from bot.github.workflow_files import Unread, Workflow
from service.mergequeue.engine.config import SETTINGS, ConfigValue
from service.mergequeue.engine.rules import EntryRule
from service.mergequeue.operations import repository_file
from service.provider.values import Vehicle
from service.repofile.document import Unreadable

TRY = frozenset({"trying"})
"""The branch of `bors try`, which has no equal: what runs on it alone is left as it is."""
OF_BORS = frozenset({"staging"})
"""A branch of bors whose name others use too, so it counts only beside its file."""
PLACES = frozenset(place for _, place in workflow_files.OTHER_QUEUES) - OF_BORS - TRY
BY_NAME: Mapping[str, Source] = {
    one.name: one
    for one in (mergify.MERGIFY, tables.BORS, tables.RUST_BORS, tables.KODIAK, tables.TRUNK)
}
PUSHED: Sequence[tuple[str, ConfigValue, str]] = (
    (
        "create_prs_for_testing_branches",
        False,
        "the workflows start on pushes to test branches",
    ),
    ("direct_merge_mode", "OFF", "jobs run in the queue that do not run on pull requests"),
)
REQUIRED, ON_HEADS = "required_statuses", "head_only_statuses"


class NotReadable(Exception):
    """A file that says how the other queue is set cannot be read."""

    def __init__(self, path: str, unreadable: Unreadable) -> None:
        line = "" if unreadable.line is None else f"{unreadable.line}:"
        super().__init__(f"{path}:{line} {unreadable.message}")


@dataclass(frozen=True, slots=True)
class Change:
    """A file to write; `before` is None if there is none yet. `lines` say what changed where."""

    path: str
    before: str | None
    after: str
    lines: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that an import would do. `sources` are the queues whose settings were found."""

    branch: str
    sources: tuple[str, ...]
    vehicle: Vehicle
    changes: tuple[Change, ...]
    carried: tuple[Carried, ...]
    left: tuple[Left, ...]


@dataclass(slots=True)
class _Found:
    """Settings and losses by branch, of all files; `branch` is the one that is imported."""

    branch: str
    files: list[File] = field(default_factory=list)
    each: list[tuple[str, Carried | Left]] = field(default_factory=list)
    required: set[str] = field(default_factory=set)


OWN_FILE = repository_file.PATH


def paths() -> tuple[str, ...]:
    """Return the files to read beside the workflows."""
    return (*other_queues.FILES, OWN_FILE)


def sources_in(files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return the other queues that have a file among these."""
    return tuple(dict.fromkeys(name for path, name in other_queues.FILES.items() if path in files))


def make(files: Mapping[str, bytes], branch: str, rules: tuple[str, bytes] | None = None) -> Plan:
    """Return what an import of these files does; `rules` are the branch's rules as JSON.

    Raises NotReadable.
    """
    found = _Found(branch)
    for path in other_queues.FILES:
        name = other_queues.FILES[path]
        is_first = all(one.source.name != name for one in found.files)
        if path in files and name in BY_NAME and is_first:
            _read_file(found, path, files[path])
        elif path in files:
            found.each.append((branch, _ignored(path, name)))
    if rules is not None:
        _read_rules(found, *rules)
    sources = tuple(one.source.name for one in found.files)
    sections, left = _sections(found)
    known = {str(name) for each in sections.values() for name in _value(each, REQUIRED)}
    fix = fix_workflows(files, branch, known | found.required, sources)
    if fix.vehicle is Vehicle.PUSH and (sources or fix.has_own_tests):
        place = Place(workflows.FOLDER, None, "", "")
        for setting, value, remark in PUSHED if fix.has_own_tests else PUSHED[:1]:
            carried_to = Carried(place, setting, value, remark)
            sections.setdefault(branch, {}).setdefault(setting, carried_to)
    changes = list(fix.changes)
    if sources or fix.has_own_tests:
        before = files.get(OWN_FILE)
        shown = None if before is None else before.decode("utf-8", "replace")
        after = _written(sections, sources)
        if shown != after:
            changes.insert(0, Change(OWN_FILE, shown, after))
    carried = tuple(one for each in sections.values() for one in each.values())
    farewells = [_farewell(file) for file in found.files]
    if fix.has_merge_group and tables.GITHUB.name not in sources:
        farewells.append(_rules_not_read(branch))
    every = dict.fromkeys((*left, *fix.left, *farewells))
    rest = sorted(every, key=lambda one: one.place.order)
    return Plan(branch, sources, fix.vehicle, tuple(changes), carried, tuple(rest))


def _read_file(found: _Found, path: str, content: bytes) -> None:
    source = BY_NAME[other_queues.FILES[path]]
    try:
        document = reading.read(path, content)
    except Unreadable as unreadable:
        raise NotReadable(path, unreadable) from None
    file = File(path, document, source, tables.WHERE.get(source.name, ()))
    if source is tables.TRUNK and inner_of(document.value, "merge") is None:
        return  # the file of Trunk's other tools
    found.files.append(file)
    if source is mergify.MERGIFY:
        found.each += mergify.found_in(file, found.branch)
    else:
        found.each += ((found.branch, one) for one in mapping.translate(file))


def _ignored(path: str, name: str) -> Left:
    """Return that a file was not read: of another one of the tool, or of one without a queue."""
    why = f"Headgate reads no settings of {name} from this file."
    if name in BY_NAME:
        why = f"{name} reads another of its files first, and so does Headgate."
    todo = f"Delete it, or take the branch out of it, if {name} merges pull requests."
    return Left(Place(path, None, "", ""), why, todo)


def _read_rules(found: _Found, path: str, content: bytes) -> None:
    """Read the rules of a branch, or a ruleset, as GitHub's API returns them."""
    try:
        document = reading.read(path, content)
    except Unreadable as unreadable:
        raise NotReadable(path, unreadable) from None
    is_ruleset = isinstance(document.value, dict)
    rules = inner_of(document.value, "rules") if is_ruleset else document.value
    if not isinstance(rules, list):
        what = Unreadable("This is neither a ruleset nor a list of rules of GitHub's API.", 1)
        raise NotReadable(path, what)
    for number, rule in enumerate(rules):
        base = (*(("rules",) if is_ruleset else ()), number, "parameters")
        parameters = inner_of(rule, "parameters")
        if inner_of(rule, "type") == "merge_queue":
            file = File(path, document, tables.GITHUB, base)
            found.files.append(file)
            found.each += ((found.branch, one) for one in mapping.translate(file))
        checks = inner_of(parameters, "required_status_checks")
        names = (inner_of(each, "context") for each in checks) if isinstance(checks, list) else ()
        found.required |= {name for name in names if isinstance(name, str)}


def _sections(found: _Found) -> tuple[dict[str, dict[str, Carried]], list[Left]]:
    """Return the settings of each branch, and what cannot be among them."""
    sections: dict[str, dict[str, Carried]] = {found.branch: {}} if found.files else {}
    left: list[Left] = []
    for where, one in found.each:
        if isinstance(one, Left):
            left.append(one)
            continue
        section = sections.setdefault(where, {})
        known = section.get(one.setting)
        if known is None:
            section[one.setting] = one
        elif isinstance(one.to, tuple) and isinstance(known.to, tuple):
            section[one.setting] = _joined(known, one)
        elif known.to != one.to:
            why = f"{known.place.key} (line {known.place.line}) has set it to another value."
            left.append(Left(one.place, why, "Choose one of them in `.github/headgate.yml`."))
    for section in sections.values():
        _drop_tested_heads(section, found)
        for file in found.files:
            for setting, value, remark in file.source.defaults:
                place = Place(file.path, None, "", "")
                section.setdefault(setting, Carried(place, setting, value, remark))
    return sections, left


def _joined(one: Carried, other: Carried) -> Carried:
    """Return a list with what both have."""
    both = dict.fromkeys((*one.to, *other.to))  # type: ignore[misc]
    return replace(one, to=tuple(_with_own_names(both)))  # type: ignore[arg-type]


def _with_own_names(values: Iterable[object]) -> Iterator[object]:
    """Yield the values; of rules with the same name the later ones get a number."""
    known: set[str] = set()
    for each in values:
        if not isinstance(each, EntryRule):
            yield each
            continue
        names = (each.name, *(f"{each.name} ({number})" for number in range(2, 100)))
        name = next(name for name in names if name not in known)
        known.add(name)
        yield replace(each, name=name)


def _drop_tested_heads(section: dict[str, Carried], found: _Found) -> None:
    """Leave out of `headOnlyStatuses` what the other queue asked of its test branches too."""
    heads = section.get(ON_HEADS)
    if heads is None:
        return
    tested = {
        name
        for _, one in found.each
        if isinstance(one, Carried) and one.setting == REQUIRED and one.place.key != heads.place.key
        for name in _names(one.to)
    }
    left = tuple(name for name in _names(heads.to) if name not in tested)
    section[ON_HEADS] = replace(heads, to=left)
    if not left:
        del section[ON_HEADS]


def _names(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, tuple) else ()


def _value(section: Mapping[str, Carried], setting: str) -> tuple[str, ...]:
    return _names(section[setting].to) if setting in section else ()


PLAIN = re.compile(r"[A-Za-z][\w./-]*")
"""Branches that need no quotes in YAML."""


def _written(sections: Mapping[str, Mapping[str, Carried]], sources: Sequence[str]) -> str:
    """Return the repository's file, each setting with where it comes from."""
    lines = [
        f"# Written by `headgate import` from {' and '.join(sources) or 'the workflows'}.",
        "# `headgate config validate` checks it; `headgate config schema` has all settings.",
        "version: 1",
        "queues:",
    ]
    order = {name: number for number, name in enumerate(SETTINGS)}
    for branch, section in sections.items():
        key = branch if PLAIN.fullmatch(branch) else json.dumps(branch)
        lines.append(f"  {key}:" + ("" if section else " {}"))
        for setting in sorted(section, key=lambda name: order[name]):
            one = section[setting]
            lines.append(f"    {one.written}  # {_origin(one)}")
    return "\n".join(lines) + "\n"


def _origin(one: Carried) -> str:
    place = one.place
    line = "" if place.line is None else f":{place.line}"
    return f"{place.file}{line}" + (f" {place.key}" if place.key else f": {one.remark}")


def _farewell(file: File) -> Left:
    """Return what ends the work of the other queue."""
    name = file.source.name
    place = Place(file.path, file.document.line_of(file.base), mapping.dotted(file.base), "")
    if file.source.end is not None:
        return Left(place, *file.source.end)
    return Left(
        place,
        f"While {name} is installed and has this file, it may merge past the queue.",
        f"Delete `{file.path}`, or take the branch out of it, and uninstall {name}'s App.",
    )


def _rules_not_read(branch: str) -> Left:
    return Left(
        Place(workflows.FOLDER, None, "merge_group", ""),
        "Workflows run in GitHub's merge queue, whose settings were not read: they are a rule of "
        "the branch.",
        f"If it is in use: `gh api repos/OWNER/NAME/rules/branches/{branch} > rules.json`, then "
        "`headgate import --rules rules.json`.",
    )


# ------------------------------------------------------------------------------- workflows


@dataclass(frozen=True, slots=True)
class WorkflowFix:
    """The changes of workflow files; `vehicle` is the kind of test branch they are made for.

    `has_own_tests`: workflows start in the other queue, so they may test there what pull requests
    do not.
    """

    vehicle: Vehicle
    has_own_tests: bool
    has_merge_group: bool
    changes: tuple[Change, ...]
    left: tuple[Left, ...]


def fix_workflows(
    files: Mapping[str, bytes],
    target: str,
    required: set[str],
    sources: Sequence[str] = (),
) -> WorkflowFix:
    """Return the workflows among the files, changed to run on the queue's test branches."""
    contents = {
        path.removeprefix(f"{workflows.FOLDER}/"): content
        for path, content in files.items()
        if path.startswith(f"{workflows.FOLDER}/")
    }
    bors = {other_queues.BORS, other_queues.RUST_BORS} & set(sources)
    places = PLACES | OF_BORS if bors else PLACES
    before = tuple(workflow_files.pieces(contents, target))
    known = [one for one in before if isinstance(one, Workflow)]
    vehicle = _vehicle_of(known, places)
    twins = frozenset(_twins(known, places))
    goal = Goal(vehicle, target, places, frozenset(required), twins)
    changes, left = [], [_not_read(one) for one in before if isinstance(one, Unread)]
    after: dict[str, bytes] = {}
    unread = {one.name for one in before if isinstance(one, Unread)}
    for name, content in sorted(contents.items()):
        if name in unread:
            continue
        text = content.decode()
        done = workflow_edits.edited(name, text, goal)
        path = f"{workflows.FOLDER}/{name}"
        after[name] = done.text.encode()
        left += [
            Left(Place(path, one.line, "", mapping.shown(one.text)), one.why, one.todo)
            for one in done.missed
        ]
        if done.text != text:
            lines = tuple(dict.fromkeys((one.line, one.what) for one in done.done))
            changes.append(Change(path, text, done.text, lines))
    found = [one for one in workflow_files.pieces(after, target) if isinstance(one, Workflow)]
    left += _remarks(found, contents, goal)
    elsewhere = {one.elsewhere for one in known} & places
    has_merge_group = "merge_group" in elsewhere
    return WorkflowFix(vehicle, bool(elsewhere), has_merge_group, tuple(changes), tuple(left))


def _vehicle_of(known: Sequence[Workflow], places: frozenset[str]) -> Vehicle:
    """Return PUSH if a workflow starts only in the other queue; else what the files need."""
    if any(one.elsewhere in places for one in known):
        return Vehicle.PUSH
    return workflows.advice_of(workflows.Workflows(tuple(known))).vehicle or Vehicle.DRAFT_PR


def _twins(known: Sequence[Workflow], places: frozenset[str]) -> Iterator[str]:
    """Yield the names that several jobs report, one of which runs only in the other queue."""
    jobs = [(workflow, job) for workflow in known for job in workflow.each_job]
    for workflow, job in jobs:
        is_alone = sum(other.name == job.name for _, other in jobs) == 1
        if not is_alone and (job.place in places or workflow.elsewhere in places):
            yield job.name


def _not_read(one: Unread) -> Left:
    line = re.match(r"Line (\d+): ", one.why)
    place = Place(f"{workflows.FOLDER}/{one.name}", int(line[1]) if line else None, "", "")
    return Left(
        place,
        f"Headgate cannot read this file, so it was not changed. {one.why}",
        "Mend it and import again, or add the trigger and the conditions yourself.",
    )


def _remarks(found: Sequence[Workflow], before: Mapping[str, bytes], goal: Goal) -> Iterator[Left]:
    """Yield what may keep a check from running on test branches although the files were changed."""
    for workflow in found:
        events = workflows.events_of(workflow, goal.vehicle)
        path = f"{workflows.FOLDER}/{workflow.name}"
        text = before[workflow.name].decode()
        if not events and workflow.on_draft and not goal.required:
            yield Left(
                Place(path, _line(text, "on"), "on", ""),
                "It starts on pull requests alone, and test branches are pushed.",
                "If one of its checks is required, add `push: {branches: "
                f'["{workflows.PATTERN}"]}}` under `on:`.',
            )
        for event in sorted(events & set(workflow.filtered)):
            yield Left(
                Place(path, _line(text, "paths"), f"on.{event}.paths", ""),
                "A path filter keeps the workflow from starting on some test branches; then its "
                "checks never report.",
                "If one of its checks is required, skip its jobs with `if:` instead.",
            )
        for group in workflow.groups if events else ():
            if not any(part in group for part in ALWAYS):
                yield Left(
                    Place(path, _line(text, "concurrency"), "concurrency.group", group),
                    "All test branches are in one group; a newer run cancels an older one.",
                    "Set the group to `${{ github.workflow }}-${{ github.ref }}`.",
                )
    for name, where in workflows.never_on_test_branches(found, goal.vehicle).items():
        if goal.required and name not in goal.required:
            continue
        workflow = next(one for one in found if any(job.name == name for job in one.each_job))
        path = f"{workflows.FOLDER}/{workflow.name}"
        yield Left(
            Place(path, None, f"jobs: {name}", where),
            "This job is skipped on every test branch. A required check that ran nowhere is no "
            "evidence, so nothing would land.",
            f"If it is required, add `|| {goal.ours}` to its `if:`; or name it in "
            "`headOnlyStatuses` if it judges the pull request alone, in `optionalStatuses` if you "
            "accept that.",
        )


def _line(text: str, key: str) -> int | None:
    """Return the first line with a key."""
    begins = (f"{key}:", f"{key}-ignore:", f'"{key}":', f"'{key}':")
    lines = enumerate(text.splitlines(), 1)
    return next((number for number, line in lines if line.lstrip().startswith(begins)), None)

"""The kind of test branch that the workflow files of a branch need.

`advise` decides on the texts of the files; `read` reads them within bounds. Rules: GitHub's
"Workflow syntax" and "Events that trigger workflows" (docs/reference/queue-settings.md).
"""

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import yaml

from bot.github import files
from bot.github.client import RepositoryClient
from service.provider.errors import Refused
from service.provider.values import Vehicle, VehicleAdvice
from service.vocabulary import Sha

FOLDER = ".github/workflows"
FILES_MAX = 50
FILE_BYTES_MAX = 256 * 1024
PROBE = "headgate/merge/pr-1/00000000-0000-0000-0000-000000000000"
PATTERN = "headgate/merge/**"
NO_WORKFLOWS = f"The repository has no workflow files, so another CI must run on {PATTERN}."
OF_DRAFTS = (
    "Each draft uses a number of the repository and notifies watchers; a pushed branch does not."
)
DRAFT = r"github\.event\.pull_request\.draft"
SKIPS_DRAFTS = re.compile(
    rf"!\s*\(?\s*{DRAFT}|{DRAFT}\s*==\s*'?false|{DRAFT}\s*!=\s*'?true", re.IGNORECASE
)
PATH_FILTERS = frozenset({"paths", "paths-ignore"})
NAMED_MAX = 3
PATTERN_CHARS_MAX = 255
TOKENS = re.compile(r"(\*\*|\*|\[[^\]]*\]|\\.|.)([?+]?)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Workflow:
    """The triggers of one workflow file, as far as they concern test branches.

    `on_draft`: a draft pull request onto the target starts it. `guarded` are its jobs that skip
    drafts, `wrong_types` says that it leaves out `opened`. `jobs` are the names under which its
    jobs report, `filtered` the events with a path filter, `groups` its concurrency groups of
    which a newer run cancels an older one.
    """

    name: str
    on_push: bool
    on_draft: bool
    wrong_types: bool
    guarded: tuple[str, ...]
    jobs: tuple[str, ...] = ()
    filtered: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    def reports(self, check: str) -> bool:
        """Return whether a job reports under this name; of a matrix `test (3.12)` for `test`."""
        return any(check == job or check.startswith((f"{job} (", f"{job} / ")) for job in self.jobs)


def advise(texts: Mapping[str, str], target: str) -> VehicleAdvice:
    """Return the kind that these workflow files need; `texts` are by file name."""
    return advice_of(parsed(texts, target))


def advice_of(found: Sequence[Workflow]) -> VehicleAdvice:
    """Return the kind that these workflows need."""
    pushed = [each.name for each in found if each.on_push]
    if pushed:
        left = [each.name for each in found if each.on_draft and not each.on_push]
        rest = f" {listed(left)} starts on pull requests alone." if left else ""
        return VehicleAdvice(Vehicle.PUSH, f"{listed(pushed)} starts on pushes to {PATTERN}.{rest}")
    skipping = [each.name for each in found if each.guarded or each.wrong_types]
    if skipping:
        return VehicleAdvice(
            Vehicle.PUSH,
            f"{listed(skipping)} skips draft pull requests. "
            f"Let it also start on pushes to {PATTERN}.",
        )
    started = [each.name for each in found if each.on_draft]
    if started:
        reason = f"{listed(started)} starts on draft pull requests. {OF_DRAFTS}"
        return VehicleAdvice(Vehicle.DRAFT_PR, reason)
    if found:
        return VehicleAdvice(
            None,
            "No workflow starts on a draft pull request or on a push to "
            f"{PATTERN}. Without another CI no test will report.",
        )
    return VehicleAdvice(None, NO_WORKFLOWS)


def parsed(texts: Mapping[str, str], target: str) -> list[Workflow]:
    """Return the workflows by name; a file that is no workflow is left out."""
    return [each for name in sorted(texts) if (each := _workflow(name, texts[name], target))]


async def read(client: RepositoryClient, commit: Sha) -> Mapping[str, str] | None:
    """Return the workflow files of a commit by name, None when they are too many or too large."""
    answer = await client.find(f"/contents/{FOLDER}", {"ref": commit})
    if answer is None:
        return {}
    names = [name for each in answer.listed if (name := _workflow_file(each))]
    if len(names) > FILES_MAX:
        return None
    found: dict[str, str] = {}
    for name in names:
        try:
            content = await files.read_file(client, f"{FOLDER}/{name}", commit, FILE_BYTES_MAX)
        except Refused:
            return None
        found[name] = (content or b"").decode("utf-8", "replace")
    return found


async def advice(client: RepositoryClient, target: str, commit: Sha) -> VehicleAdvice:
    """Return the kind that the workflow files at a commit need."""
    texts = await read(client, commit)
    if texts is None:
        return VehicleAdvice(None, "The workflow files are too many or too large to be read.")
    return await asyncio.to_thread(advise, texts, target)


def _workflow_file(entry: object) -> str | None:
    """Return the name of a workflow file in a listed folder, None for another entry."""
    if not isinstance(entry, Mapping) or entry.get("type") != "file":
        return None
    name = str(entry.get("name", ""))
    return name if name.endswith((".yml", ".yaml")) else None


def _workflow(name: str, text: str, target: str) -> Workflow | None:
    try:
        content = yaml.load(text, yaml.CSafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    if not isinstance(content, Mapping):
        return None
    # YAML 1.1 reads the key `on` as true.
    events = _events(content.get("on", content.get(True)))
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
    )


def _job_names(jobs: object) -> Iterator[str]:
    for name, job in jobs.items() if isinstance(jobs, Mapping) else ():
        shown = job.get("name") if isinstance(job, Mapping) else None
        # The values of a matrix stand behind the name, or inside it where it says so.
        text = shown if isinstance(shown, str) else str(name)
        yield text.partition("${{")[0].rstrip(" (") or str(name)


def _groups(content: Mapping[object, object]) -> Iterator[str]:
    """Return the concurrency groups of a workflow and its jobs; one that waits in line is none."""
    jobs = content.get("jobs")
    inner = jobs.values() if isinstance(jobs, Mapping) else ()
    for place in (content, *inner):
        setting = place.get("concurrency") if isinstance(place, Mapping) else None
        if isinstance(setting, str):
            yield setting
        elif isinstance(setting, Mapping) and setting.get("queue") != "max":
            yield str(setting.get("group", ""))


def _events(on: object) -> dict[str, Mapping[object, object]]:
    """Return the events of a workflow with their filters."""
    if isinstance(on, Mapping):
        return {
            str(event): filters if isinstance(filters, Mapping) else {}
            for event, filters in on.items()
        }
    return {event: {} for event in _words(on)}


def _words(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, Sequence):
        return []
    return [each for each in value if isinstance(each, str)]


def _covers(filters: Mapping[object, object], branch: str) -> bool:
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
    try:
        for item in _items(pattern):
            places = _after(branch, places, item)
    except re.error:
        return False
    return len(branch) in places


@dataclass(frozen=True, slots=True)
class Item:
    """A part of a pattern: which character it takes, how often."""

    character: str
    is_optional: bool = False
    repeats: bool = False


def _items(pattern: str) -> Iterator[Item]:
    """`*` stays within a level, `**` does not; `?` and `+` belong to what is before them."""
    stars = {"**": Item(".", is_optional=True, repeats=True), "*": Item("[^/]", True, True)}
    for part, sign in TOKENS.findall(pattern):
        if part in stars:
            yield stars[part]
        elif part.startswith("[") and len(part) > 1:
            yield Item(part, sign == "?", sign == "+")
        else:
            yield Item(re.escape(part.removeprefix("\\") or part), sign == "?", sign == "+")


def _after(branch: str, places: set[int], item: Item) -> set[int]:
    """Return the places in the branch's name that match after one more part of the pattern."""
    character = re.compile(item.character)
    reached = set(places) if item.is_optional else set()
    front = places
    while front:
        front = {
            place + 1
            for place in front
            if place < len(branch) and character.fullmatch(branch[place])
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
            yield str(name)


def listed(names: Sequence[str]) -> str:
    """Return some file names as text, the rest as a number."""
    shown = ", ".join(names[:NAMED_MAX])
    left = len(names) - NAMED_MAX
    return f"{shown} and {left} more" if left > 0 else shown

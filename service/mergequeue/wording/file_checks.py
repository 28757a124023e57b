"""The check run on a pull request that changes the repository's file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from service.mergequeue.engine.model import FileFault
from service.text import markdown, times

NAME = "Headgate config"
NOTHING = "-"
RESTRICTED = "Only the file on the target branch counts: nothing changes before the merge."


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A setting before and after the merge, as the API names and writes it."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Replayed:
    """The figures of the same submissions under both settings, by their names.

    `left_out` has the rules that read what is not known of some submissions, and of how many.
    """

    submissions: int
    before: Mapping[str, float | None]
    after: Mapping[str, float | None]
    left_out: Mapping[str, int] = field(default_factory=dict)


FIGURES = (
    ("Merged", "merged"),
    ("Time to merge, median", "time_to_merge_p50_s"),
    ("Time to merge, p95", "time_to_merge_p95_s"),
    ("CI runs", "ci_runs"),
    ("CI minutes", "ci_minutes"),
    ("Restarts", "restarts"),
    ("Failed", "failed"),
)


def faults_title(path: str, faults: Sequence[FileFault]) -> str:
    """Return `2 faults in .github/headgate.yml`."""
    return f"{len(faults)} {'fault' if len(faults) == 1 else 'faults'} in {path}"


def faults_summary(faults: Sequence[FileFault]) -> str:
    """Return each fault with its line; what the file says is inert."""
    lines = [
        f"- {f'Line {each.line}: ' if each.line else ''}{_inert(each.message)}" for each in faults
    ]
    todo = "A file with a fault changes nothing: after a merge, the settings before stay in force."
    return "\n".join([*lines, "", todo])


def changes_title(branch: str, count: int) -> str:
    """Return how many settings of which queue the merge changes."""
    if count == 0:
        return "No setting changes"
    word = "setting changes" if count == 1 else "settings change"
    return f"{count} {word} in the queue for {markdown.cleaned(branch)}"


def changes_summary(changes: Sequence[SettingChange], replay: Replayed | str) -> str:
    """Return the changed settings and the figures of the replay, or why there are none."""
    if not changes:
        return f"The queue has these settings already. {RESTRICTED}"
    rows = [(_inert(each.name), _inert(each.before), _inert(each.after)) for each in changes]
    settings = markdown.table(("Setting", "Now", "After the merge"), rows)
    effect = replay if isinstance(replay, str) else _figures(replay)
    return "\n\n".join((settings, effect, RESTRICTED))


def _figures(replay: Replayed) -> str:
    head = (
        f"The submissions of the last 30 days ({replay.submissions}), replayed with the settings "
        "of now and with the new ones:"
    )
    rows = [
        (label, _shown(name, replay.before[name]), _shown(name, replay.after[name]))
        for label, name in FIGURES
    ]
    notes = [_inert(text) for text in left_out_texts(replay.left_out)]
    return "\n\n".join((head, markdown.table(("", "Now", "New"), rows), *notes))


def left_out_texts(left_out: Mapping[str, int]) -> list[str]:
    """Return a sentence for each rule that is not replayed for all submissions."""
    return [
        f"The rule {name} is not replayed for {count} of them: what it reads is not known."
        for name, count in left_out.items()
    ]


def _shown(name: str, figure: float | None) -> str:
    if figure is None:
        return NOTHING
    is_time = name.endswith("_s")
    return times.duration(timedelta(seconds=figure)) if is_time else f"{figure:.0f}"


def _inert(text: str) -> str:
    return markdown.code(text.replace("`", ""))

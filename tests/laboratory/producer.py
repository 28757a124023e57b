"""How a producer of test reports is started over samples whose names tell the truth."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Scene(StrEnum):
    """One run of a producer.

    `SUITE` is the sample suite, and the run of the target branch; the others differ from it in the
    one thing that their name says.
    """

    SUITE = "suite"
    AGAIN = "again"
    DIRECTORY = "directory"
    MACHINE = "machine"
    RENAMED = "renamed"
    REVERSED = "reversed"
    SHARD_1 = "shard-1"
    SHARD_2 = "shard-2"
    PROJECTS = "projects"
    CRASH = "crash"
    INTERRUPTED = "interrupted"
    UNLOADED = "unloaded"
    THRESHOLD = "threshold"


DERIVED = (Scene.SUITE, Scene.AGAIN, Scene.DIRECTORY, Scene.MACHINE, Scene.RENAMED)
"""Scenes that every producer plays without a word about them."""

BROKEN = (Scene.CRASH, Scene.INTERRUPTED, Scene.UNLOADED, Scene.THRESHOLD)
"""Scenes in which more than tests goes wrong, so that nothing may be excused."""

STARTED = "started"
"""The file by which the sample of `INTERRUPTED` says that its test runs."""


class Home(StrEnum):
    """Where a producer comes from.

    `PYTHON` and `NODE` are fetched by `make assets`. `MACHINE` has to be installed by hand, so its
    reports are recorded and not made again by the tests.
    """

    PYTHON = "python"
    NODE = "node"
    MACHINE = "machine"


@dataclass(frozen=True, slots=True)
class Change:
    """What a scene changes: files put over those of the suite, and words added to its command.

    `command` replaces the command of the suite.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    command: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Producer:
    """A producer, its sample suite, its command, and the reports that it writes (a glob).

    `prepare` is run before the command: what compiles the samples. `has_retries`: the command
    tries failed tests again, twice at most.
    """

    home: Home
    files: Mapping[str, str]
    command: tuple[str, ...]
    reports: str = "report.xml"
    scenes: Mapping[Scene, Change] = field(default_factory=dict)
    prepare: tuple[str, ...] = ()
    has_retries: bool = False

    def files_of(self, scene: Scene) -> dict[str, str]:
        """Return the samples of a scene: path to text."""
        files = {**self.files, **self.scenes.get(scene, Change()).files}
        if scene is not Scene.RENAMED:
            return files
        return {_renamed(path): _renamed(text) for path, text in files.items()}

    def command_of(self, scene: Scene) -> tuple[str, ...]:
        """Return the words that start a scene."""
        change = self.scenes.get(scene, Change())
        return (*(change.command or self.command), *change.options)

    @property
    def played(self) -> tuple[Scene, ...]:
        """The scenes that this producer has."""
        return tuple(scene for scene in Scene if scene in DERIVED or scene in self.scenes)


def _renamed(text: str) -> str:
    for before, after in (
        ("is_renamed", "has_a_new_name"),
        ("is renamed", "has a new name"),
        ("Is Renamed", "Has A New Name"),
        ("IsRenamed", "HasANewName"),
    ):
        text = text.replace(before, after)
    return text

"""One act of a person, its names looked up: what people.py and owners.py are asked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.sandbox.records import Actor, Issue, Json
from bot.sandbox.refusal import Refusal
from bot.sandbox.world import Repository, World


@dataclass(frozen=True, slots=True)
class Asked:
    """One act, its names looked up."""

    world: World
    actor: Actor
    repository: Repository
    value: Json

    @property
    def issue(self) -> Issue:
        """The pull request or issue of `number`. Raises Refusal(400)."""
        found = self.repository.issues.get(int(self.value.get("number", 0)))
        if found is None:
            raise Refusal(400, f"{self.repository.full_name} has no #{self.value.get('number')}")
        return found

    def text(self, name: str) -> str:
        """A field that must be there. Raises Refusal(400)."""
        value = self.value.get(name)
        if not isinstance(value, str):
            raise Refusal(400, f"the act needs {name!r}")
        return value


def as_files(value: Any) -> dict[str, bytes | None]:
    """Files by path from JSON: text, or null to remove. Raises Refusal(400)."""
    if not isinstance(value, Mapping):
        raise Refusal(400, "files is {path: text or null}")
    return {str(path): None if text is None else str(text).encode() for path, text in value.items()}

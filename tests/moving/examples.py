"""Repositories as teams of other queues have them, one below `examples/` for each queue."""

import shutil
from pathlib import Path

FOLDER = Path(__file__).parent / "examples"
NAMES = tuple(sorted(each.name for each in FOLDER.iterdir() if each.is_dir()))
RULES = "rules.json"


def checkout(name: str, below: Path) -> Path:
    """A copy of an example that a test may change."""
    return Path(shutil.copytree(FOLDER / name, below / name))


def arguments(folder: Path) -> list[str]:
    """The words of the command that imports this checkout."""
    rules = folder / RULES
    given = ["--rules", str(rules)] if rules.exists() else []
    return ["import", str(folder), "--branch", "main", *given]


def contents(folder: Path) -> dict[str, str]:
    """The files of a checkout by path, without the rules, which are no file of a repository."""
    return {
        each.relative_to(folder).as_posix(): each.read_bytes().decode()
        for each in sorted(folder.rglob("*"))
        if each.is_file() and each.name != RULES
    }

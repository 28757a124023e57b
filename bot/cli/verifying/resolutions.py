"""Recompute conflicts that the rules of a queue resolved (docs/design/conflicts.md 5)."""

from collections.abc import Mapping, Sequence

from bot.cli.verifying.repository import Repository
from service.provider import resolving
from service.vocabulary import Resolution


def is_recomputed(
    repository: Repository,
    commit: str,
    sides: tuple[str, str],
    below: Sequence[str],
    rules: Mapping[str, str],
) -> bool | None:
    """Return whether a commit merges two sides, with these files resolved by these rules.

    `rules` are by path. In a chain of squashes one of the heads in `below` is the member below it,
    whose lines both sides have. None: a side or the merge cannot be read here.
    """
    ours, theirs = sides
    found = _is_made(repository, commit, sides, rules)
    for head in below:
        tree = repository.tree(ours)
        if found is not False or tree is None:
            break
        if head != theirs and repository.has(head) and repository.contains(theirs, head):
            joined = repository.commit_of(tree, (ours, head))
            found = joined is not None and _is_made(repository, commit, (joined, theirs), rules)
    return found


def _is_made(
    repository: Repository, commit: str, sides: tuple[str, str], rules: Mapping[str, str]
) -> bool | None:
    ours, theirs = sides
    base, made = repository.merge_base(ours, theirs), repository.marked_tree(ours, theirs)
    if base is None or made is None:
        return None
    changed = repository.changed_paths(made, commit)
    if changed is None:
        return None
    return changed <= rules.keys() and all(
        _united(repository, (base, ours, theirs), path, rule) == repository.content(commit, path)
        for path, rule in rules.items()
    )


def _united(
    repository: Repository, three: tuple[str, str, str], path: str, rule: str
) -> bytes | None:
    contents = [repository.content(commit, path) for commit in three]
    base, ours, theirs = contents
    if base is None or ours is None or theirs is None or rule not in set(Resolution):
        return None
    return resolving.resolved(Resolution(rule), base, ours, theirs)

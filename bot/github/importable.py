"""Read from a repository what an import needs: files of other queues, workflows, branch rules."""

from collections.abc import Iterable
from dataclasses import dataclass

import orjson

from bot.github import files, reading, refs, workflows
from bot.github.client import RepositoryClient
from service.provider.errors import Gone, GoneKind
from service.repofile import document


@dataclass(frozen=True, slots=True)
class Importable:
    """The files of a branch by path, and its rules as GitHub's API returns them."""

    branch: str
    files: dict[str, bytes]
    rules: bytes


async def read(client: RepositoryClient, branch: str | None, paths: Iterable[str]) -> Importable:
    """Return those of the paths that exist, the workflows, and the rules of a branch.

    None is the default branch. Raises the provider's errors.
    """
    answer = await client.get("")
    default = reading.repository_of(answer.fields, client.github.options.host).default_branch
    name = branch or default
    tip = await refs.read_tip(client, name)
    if tip is None:
        raise Gone(f"There is no branch `{name}`.", GoneKind.BRANCH)
    found: dict[str, bytes] = {}
    for path in paths:
        content = await files.read_file(client, path, tip.sha, document.BYTES_MAX)
        if content is not None:
            found[path] = content
    contents = await workflows.contents(client, tip.sha) or {}
    found |= {f"{workflows.FOLDER}/{each}": content for each, content in contents.items()}
    rules = await client.get(f"/rules/branches/{refs.branch_path(name)}")
    return Importable(name, found, orjson.dumps(rules.listed))

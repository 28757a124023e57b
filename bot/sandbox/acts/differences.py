"""What a pull request changes, measured against its base."""

from bot.sandbox import merges
from bot.sandbox.git import Commit
from bot.sandbox.merges import FileChange
from bot.sandbox.records import Issue, Pull
from bot.sandbox.world import Repository


def base_of(repository: Repository, issue: Issue, pull: Pull) -> str:
    """The commit a pull request is compared with: its base's tip while it is open."""
    tip = repository.git.branch(pull.base_ref) if issue.open else None
    return tip or pull.base_sha


def commits(repository: Repository, issue: Issue, pull: Pull) -> list[Commit]:
    """The commits of a pull request, oldest first."""
    base = base_of(repository, issue, pull)
    return list(reversed(repository.git.objects.log(pull.head_sha, without=base)))


async def files(repository: Repository, issue: Issue, pull: Pull) -> tuple[FileChange, ...]:
    """The files it changes since it left its base; nothing for unrelated histories."""
    objects = repository.git.objects
    start = objects.merge_base(base_of(repository, issue, pull), pull.head_sha)
    if start is None:
        return ()
    return await merges.changes(objects, start, pull.head_sha)

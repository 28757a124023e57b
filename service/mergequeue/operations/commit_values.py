"""Commit texts of a queue's templates; the co-authors are read only where a text names them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from service.accounts import page_addresses
from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.operations import commit_texts
from service.provider.values import CommitAuthor, PullRequest
from service.runtime import Runtime
from service.vocabulary import QueueRef


@dataclass(frozen=True, slots=True)
class CommitTexts:
    """Title and body of a commit; None: as the repository sets it."""

    title: str | None
    body: str | None


async def texts(
    runtime: Runtime, queue: QueueRef, config: QueueConfig, pull: PullRequest, run: str
) -> CommitTexts:
    """Return the commit texts of a pull request. Raises Gone(PULL_REQUEST)."""
    title, body = config.commit_title, config.commit_body
    values = await _values(runtime, queue, body, pull, run)
    return CommitTexts(
        title=None if title is None else commit_texts.title(title, values) or None,
        body=None if body is None else commit_texts.body(body, values),
    )


async def _values(
    runtime: Runtime, queue: QueueRef, body: str | None, pull: PullRequest, run: str
) -> Mapping[str, str]:
    authors: Sequence[CommitAuthor] = ()
    if commit_texts.names_co_authors(body):
        provider = runtime.providers[queue.repo.host]
        authors = await provider.commit_authors(queue.repo, pull.number)
    page = page_addresses.of_run(runtime.options, queue.repo, run)
    return commit_texts.values_of(pull, queue.branch, run, page, authors)

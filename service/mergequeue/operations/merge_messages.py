"""Messages of the merge commits of test branches (docs/design/provider.md 7.1)."""

from cachetools import LRUCache

from service.mergequeue.engine.model import Run
from service.mergequeue.engine.outputs import HeadToMerge
from service.mergequeue.operations import commit_texts, commit_values, naming
from service.provider.values import PullRequest
from service.runtime import Runtime
from service.vocabulary import MergeMethod, QueueRef

MESSAGES_MAX = 2_000


class Messages(LRUCache[tuple[str, int], str]):
    """Messages by run and pull request: a run behind merges the same heads with the same words."""

    def __init__(self) -> None:
        super().__init__(MESSAGES_MAX)


async def merge_message_of(
    runtime: Runtime, queue: QueueRef, run: Run, step: HeadToMerge, trailers: naming.Trailers
) -> str:
    """Return the message of the merge of one head, as the run that tests it gives it.

    Raises Gone(PULL_REQUEST).
    """
    messages = runtime.store.caches.of(Messages)
    known = messages.get((run.id, step.pr))
    if known is None:
        text = await _text(runtime, queue, run, step)
        joins = run.config.commit_body is not None and commit_texts.ends_in_trailers(text)
        known = messages[run.id, step.pr] = trailers.under(text, joins=joins)
    return known


def _default_text(queue: QueueRef, run: Run, pull: PullRequest) -> tuple[str, str]:
    """Return title and body as the provider gives them by default for this merge method."""
    title = naming.without_skips(commit_texts.inert_line(pull.title))
    if run.config.merge_method is not MergeMethod.MERGE_COMMIT:
        return f"{title} (#{pull.number})", ""
    owner = (pull.head_repo or queue.repo.slug).split("/")[0]
    source = commit_texts.inert_line(f"{owner}/{pull.head_branch}")
    return naming.landing_title(pull.number, source), title


async def _text(runtime: Runtime, queue: QueueRef, run: Run, step: HeadToMerge) -> str:
    if run.config.shadow or not run.config.lands_commits:
        return naming.test_message(step.pr, step.head, queue.branch)
    provider = runtime.providers[queue.repo.host]
    pull = await provider.pull_request(queue.repo, step.pr, awaits_mergeability=False)
    title, body = _default_text(queue, run, pull)
    own = await commit_values.texts(runtime, queue, run.config, pull, run.id)
    if own.title is not None:
        title = naming.without_skips(own.title) or title
    if own.body is not None:
        body = naming.without_skips(own.body)
    return f"{title}\n\n{body}".strip()

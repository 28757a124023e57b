"""One wish from a comment, a review or a label, with everything read for it."""

from dataclasses import dataclass, replace

from service.database.records import RepositoryRecord
from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.model import MergeQueue
from service.mergequeue.store.heard import HeardCommand
from service.mergequeue.store.pull_requests import PullRequestHead
from service.provider.signals import (
    AskCancel,
    AskDrain,
    Asked,
    AskPause,
    AskResume,
    AskRetry,
    AskSource,
    AskSubmit,
)
from service.provider.values import (
    AccessLevel,
    PullRequest,
)
from service.vocabulary import Actor, Channel, QueueRef


@dataclass(frozen=True, slots=True)
class Asking:
    """Who asks what about which pull request; `queue` None: its base branch has none."""

    repository: RepositoryRecord
    asked: Asked
    pull: PullRequest
    queue: QueueRef | None
    value: MergeQueue | None
    level: AccessLevel

    @property
    def config(self) -> QueueConfig:
        """Settings in force; the defaults where there is no queue yet."""
        return self.value.config if self.value is not None else QueueConfig()

    @property
    def actor(self) -> Actor:
        """Who asks, and by which way."""
        by_label = self.asked.source is AskSource.LABEL
        return replace(self.asked.actor, channel=Channel.LABEL if by_label else Channel.COMMENT)

    @property
    def head(self) -> PullRequestHead:
        """The pull request at the head read for this wish."""
        return PullRequestHead(self.repository.id, self.pull.number, self.pull.head_sha)

    @property
    def command(self) -> HeardCommand:
        """The command by its origin, with what it changes."""
        topic = ""
        if isinstance(self.asked.ask, AskSubmit | AskCancel | AskRetry):
            topic = f"#{self.asked.number}"
        elif isinstance(self.asked.ask, AskPause | AskDrain | AskResume):
            topic = f"queue {self.pull.base_branch}"
        return HeardCommand(
            repository_id=self.repository.id,
            org_id=self.repository.org_id,
            source=self.asked.source.value,
            source_id=self.asked.source_id,
            topic=topic,
            said_at=self.asked.at,
        )

    @property
    def is_by_author(self) -> bool:
        """Whether the pull request's own author asks."""
        return self.asked.actor.login == self.pull.author

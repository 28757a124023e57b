"""What the queue has read of the target's files, and how a run began: what is true of both."""

from dataclasses import dataclass, field
from datetime import datetime

from service.vocabulary import Sha
from tests.hostile.repository import Branch, Settings, Workflow


@dataclass(frozen=True)
class Begun:
    """A run as it began: when, with which optional names, on which workflow file of the target."""

    at: datetime
    optional: tuple[str, ...]
    workflow: Workflow


@dataclass
class Read:
    """The files of the target branch as they were read last.

    `settings` are those of the last valid file. `ran` are jobs that are known to run where the
    queue tests although the file that was read last says otherwise.
    """

    settings: Settings = field(default_factory=Settings)
    looked_at: Sha | None = None
    workflow: Workflow = field(default_factory=Workflow)
    workflow_at: datetime | None = None
    ran: set[str] = field(default_factory=set)

    def look(self, target: Branch) -> None:
        """The repository's file is read at the tip."""
        self.looked_at, new = target.tip.sha, target.now.settings
        if new is None or not new.is_broken:
            self.settings = new or Settings()

    def read_workflow(self, workflow: Workflow, now: datetime) -> None:
        """The workflow file is read: what it excludes has to be seen anew."""
        self.workflow, self.workflow_at = workflow, now
        self.ran -= workflow.elsewhere

    def note_ran(self, names: set[str], began: datetime) -> None:
        """These jobs ran on something that landed."""
        if self.workflow_at is not None and began < self.workflow_at:
            names = names - self.workflow.elsewhere
        self.ran |= names

    def may_skip(self, name: str) -> bool:
        """Whether nothing that was read says that this job runs in another queue alone."""
        return name not in self.workflow.elsewhere or name in self.ran

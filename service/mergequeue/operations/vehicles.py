"""The kind of a queue's test branches: draft pull requests or pushes, and why.

See docs/design/provider.md 7.4.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from service.mergequeue.engine.config import ConfigValue, QueueConfig
from service.provider.errors import ProviderError
from service.provider.values import Vehicle, VehicleAdvice
from service.runtime import Runtime
from service.vocabulary import RepoRef, Sha

SETTING = "create_prs_for_testing_branches"
BY_SETTING = "Chosen by the setting createPrsForTestingBranches."
UNREADABLE = "The workflows of the branch could not be read, so the default applies."
DRAFT_REFUSED = "The provider refused a draft pull request:"
REASON_CHARS_MAX = 500


@dataclass(frozen=True, slots=True)
class Choice:
    """The choice whether draft pull requests carry the test branches, and the reason for people.

    `never`: see `VehicleAdvice`.
    """

    wants_drafts: bool
    reason: str
    never: Mapping[str, str] = field(default_factory=dict)


async def choose(
    runtime: Runtime, repo: RepoRef, branch: str, commit: Sha, given: ConfigValue
) -> Choice:
    """Return the kind for a queue whose target is at `commit`; `given` None: not set by hand.

    Workflows that cannot be read leave the default.
    """
    try:
        advice = await runtime.providers[repo.host].vehicle_advice(repo, branch, commit)
    except ProviderError:
        advice = VehicleAdvice(None, UNREADABLE)
    return choice_of(advice, given)


def choice_of(advice: VehicleAdvice, given: ConfigValue) -> Choice:
    """Return the kind: a setting made by hand wins, then the workflows' needs."""
    if isinstance(given, bool):
        wanted = Vehicle.DRAFT_PR if given else Vehicle.PUSH
        contradicts = advice.vehicle not in (None, wanted)
        reason = f"{BY_SETTING} But {advice.reason}" if contradicts else BY_SETTING
        return Choice(given, reason[:REASON_CHARS_MAX], advice.never)
    if advice.vehicle is None:
        drafts = QueueConfig().create_prs_for_testing_branches
    else:
        drafts = advice.vehicle is Vehicle.DRAFT_PR
    return Choice(drafts, advice.reason[:REASON_CHARS_MAX], advice.never)


def without_drafts(words: str) -> Choice:
    """Return the kind of a queue whose provider refused a draft pull request in these words."""
    reason = f"{DRAFT_REFUSED} {words} CI must start on pushes to headgate/merge/**."
    return Choice(False, reason[:REASON_CHARS_MAX])


def is_without_drafts(reason: str | None) -> bool:
    """Return whether this reason of a queue says that the provider refused a draft."""
    return reason is not None and reason.startswith(DRAFT_REFUSED)

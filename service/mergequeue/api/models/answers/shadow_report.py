"""Answer with the report of a queue in shadow."""

from typing import Annotated

from pydantic import Field

from service.http.models.answers.common import Answer, Count, Sha, Time
from service.mergequeue.engine.reasons import Reason
from service.mergequeue.operations.shadow_report import Verdict

Seconds = Annotated[float, Field(ge=0)]


class SpreadShown(Answer):
    """How long it took."""

    p50_seconds: Seconds
    """Half of the pull requests took at most so many seconds."""
    p95_seconds: Seconds
    """95 % of the pull requests took at most so many seconds."""


class ComparedShown(Answer):
    """One pull request at one head: what Headgate decided, and what others did."""

    number: Count
    """Number of the pull request."""
    head: Sha
    """The commit that was submitted."""
    submitted_at: Time
    """When it entered the queue."""
    verdict: Verdict
    """What Headgate decided about this head. `passed`: it would have landed."""
    decided_at: Time | None
    """When Headgate decided; null while it has not."""
    reason: Reason
    """Why it has the state that it has, or why it left."""
    is_merged: bool
    """Whether others merged this head."""
    is_compared: bool
    """Whether both sides have decided, so that the sums count it."""
    merged_at: Time | None
    """When others merged it, by the provider's clock; null if that is not known."""
    sha: Sha | None
    """The commit of that merge; null if that is not known."""
    is_red: bool | None
    """Whether a required check failed on that commit; null if not all have reported there."""
    failed_checks: list[str]
    """Required checks that failed here, if the verdict is `failed`. For example `["unit"]`."""
    failed_tests: list[str]
    """Tests that failed here, if the verdict is `failed` and CI uploads results. For example
    `["tests/test_cart.py::test_total"]`.
    """


class ShadowReportShown(Answer):
    """What a queue in shadow decided, beside what others did."""

    since: Time | None
    """When the queue went into shadow last; null if it never did, and then all counts are 0."""
    until: Time | None
    """When it left its shadow; null while it is there."""
    submitted: Count
    """Pull requests that entered, each head once."""
    passed: Count
    """How many of them passed here."""
    failed: Count
    """How many of them failed here."""
    merged: Count
    """How many of them others merged."""
    merged_undecided: Count
    """How many of these were merged before Headgate had decided; the times leave them out."""
    compared: Count
    """Those about which both sides have decided so far."""
    same: Count
    """How many of these had the same verdict."""
    passed_not_merged: Count
    """Passed here, and not merged by others so far."""
    failed_but_merged: Count
    """Failed here, and merged by others."""
    to_verdict: SpreadShown | None
    """From entry to verdict, of what passed here and was merged; null without any."""
    to_merge: SpreadShown | None
    """From entry to the merge by others, of the same; null without any."""
    saved_p50_seconds: float | None
    """By how many seconds the verdict came before the merge, in the median; negative: after it."""
    runs: Count
    """Test runs that finished."""
    runs_per_merge: Seconds | None
    """Test runs for each merge by others; null without any."""
    flaky_runs: Count
    """Test runs in which known flaky or quarantined tests failed and did not count."""
    is_small: bool
    """Whether fewer than 20 pull requests were compared, which says little."""
    pull_requests: list[ComparedShown]
    """The newest, at most 200."""

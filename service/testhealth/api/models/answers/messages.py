"""Messages to webhook endpoints about tests and uploads."""

from datetime import date

from pydantic import BaseModel

from service.http.models.answers.common import Count, Id, Number, Sha, SnakeAnswer, Time
from service.notifications.api.models.answers.messages import RepositoryMessage
from service.testhealth.api.models.answers.machines import MachineShown
from service.testhealth.api.models.answers.tests import Address, HealthShown, LinkShown
from service.vocabulary import ActorKind, Health, Override


class TestInMessage(SnakeAnswer):
    """A test as it is when the event happens."""

    __test__ = False

    id: Id
    """The test."""
    name: str
    """Its name. For example `test_total`."""
    parent: str | None
    """The suite that it belongs to; null if unknown. For example `ui`."""
    classname: str | None
    """Its class; null if unknown. For example `TestCart`."""
    file_path: str | None
    """Its file; null if unknown. For example `ui/test_cart.py`."""
    variant: str
    """The flavor of the job that ran it; empty without. For example `linux`."""
    codeowners: list[str]
    """Owners of its file. For example `["@octo/web"]`"""
    quarantined: bool
    """Whether its failures count as passed."""
    html_url: Address
    """Page of the test. For example `https://queue.example.org/octo/widgets/tests/06cb6db5`."""


class TestMessage(RepositoryMessage):
    """A message about a test."""

    __test__ = False

    test_case: TestInMessage
    """The test."""


class StatusChange(SnakeAnswer):
    """The health of a test, before and after."""

    previous_status: Health
    """Its health before."""
    current_status: HealthShown
    """Its health now, why, and since when."""


class TestStatusChanged(TestMessage):
    """The health of a test changed."""

    __test__ = False

    status_change: StatusChange
    """What changed."""


class TestActor(SnakeAnswer):
    """Who decided on the quarantine of a test."""

    __test__ = False

    kind: ActorKind
    """What kind of actor it is."""
    login: str | None
    """Login of a person, name of a token; null for Headgate itself. For example `bob`."""


class QuarantineChange(SnakeAnswer):
    """A decision on the quarantine of a test."""

    actor: TestActor
    """Who decided."""
    reason: str | None
    """Why; null without. For example `#991`."""
    timestamp: Time
    """When it was decided."""
    previous_quarantining_setting: Override
    """The decision before."""
    updated_quarantining_setting: Override
    """The decision now."""
    expires_at: Time | None
    """When it ends by itself; null: never."""


class QuarantineChanged(TestMessage):
    """Somebody decided on the quarantine of a test."""

    quarantine_setting_changed: QuarantineChange
    """The decision."""


class TicketChanged(TestMessage):
    """A test got a ticket, or lost it."""

    ticket: LinkShown | None
    """The ticket; null: the test has none any more."""


class UploadInMessage(SnakeAnswer):
    """An upload whose tests were judged."""

    id: Id
    """The upload."""
    sha: Sha
    """The commit that was tested."""
    tests: Count
    """How many tests its reports hold."""
    failed: Count
    """How many of them failed."""
    quarantined_failures: Count
    """How many of the failed ones are quarantined."""
    html_url: str
    """Page of the upload. For example `https://queue.example.org/octo/widgets/uploads/b7e0a3c4`."""


class UploadProcessed(RepositoryMessage):
    """An upload was read, and its tests were judged."""

    upload: UploadInMessage
    """The upload."""


class FailedAfterLanding(UploadProcessed):
    """An upload came after the landing, with failures that would have stopped it."""

    pull_requests: list[Number]
    """The pull requests that landed."""
    failed_tests: list[str]
    """Names of tests that failed, at most 50. For example `["test_total"]`"""


class CostsInMessage(SnakeAnswer):
    """What flaky tests cost in a week so far."""

    week_start: date
    """The Monday of the week, UTC."""
    ci_minutes: Count
    """Minutes of CI that failures of flaky tests lost. For example `640`."""
    limit_minutes: Count
    """The setting `flake_cost_alert_minutes`. For example `600`."""


class FlakeCostsExceeded(RepositoryMessage):
    """Flaky tests cost more in a week than the repository's limit; sent once a week."""

    flake_costs: CostsInMessage
    """The cost and the limit."""


class MachineFailing(RepositoryMessage):
    """A machine fails tests that pass elsewhere; sent once, and again if it was sound meanwhile."""

    machine: MachineShown
    """The machine."""


TEST_MESSAGES: tuple[tuple[str, type[BaseModel]], ...] = (
    ("test_case.status_changed", TestStatusChanged),
    ("test_case.quarantining_setting_changed", QuarantineChanged),
    ("test_case.ticket_linked", TicketChanged),
    ("upload.processed", UploadProcessed),
    ("upload.failed_after_landing", FailedAfterLanding),
    ("flake_costs.exceeded", FlakeCostsExceeded),
    ("test_machine.failing", MachineFailing),
)
"""Events and their messages."""

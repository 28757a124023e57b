"""Bodies of the endpoints about tests, in snake_case."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.json_schema import JsonSchemaValue

from service.database.paging import PageSelection
from service.http.models import common, settings
from service.http.models.common import Moment, Repository, SnakeRequest
from service.http.models.shared import OrgSlug, PageQuery, Uuid
from service.testhealth.filters import TestFilter, TestOrder
from service.testhealth.operations.checks import AskedTest
from service.testhealth.operations.flags import FlagRequest
from service.testhealth.operations.lists import FailingRequest
from service.testhealth.operations.overrides import OverrideRequest
from service.testhealth.operations.tickets import TicketLink
from service.testhealth.settings import SettingValue, TestSettings
from service.vocabulary import UNHEALTHY, Flag, Health, Override

TEXT_MAX = 1000
"""Characters of a name and its kin that are stored (docs/design/limits.md 5)."""

TESTS_MAX = 5000


UNHEALTHY_WORDS: Mapping[str, Health] = {each.name: each for each in UNHEALTHY}
"""The words that filter the list of unhealthy tests."""


def unhealthy(value: object) -> object:
    """Return the status that `FLAKY` or `BROKEN`, in any letter case, names."""
    if not isinstance(value, str):
        raise common.wrong("type", "must be a string")
    if value.upper() not in UNHEALTHY_WORDS:
        raise common.unknown_word(value, tuple(UNHEALTHY_WORDS))
    return UNHEALTHY_WORDS[value.upper()]


Filter = Annotated[
    Health,
    BeforeValidator(unhealthy),
    WithJsonSchema({"type": "string", "enum": list(UNHEALTHY_WORDS)}),
]
Said = Annotated[str, Field(min_length=1, max_length=500, pattern=common.LINES)]
FlagReason = Annotated[str, Field(min_length=1, max_length=256, pattern=common.LINE)]
Text = Annotated[str, Field(max_length=TEXT_MAX, pattern=common.ANYTHING)]
Web = Annotated[str, Field(max_length=2000, pattern=common.WEB)]
TicketId = Annotated[str, Field(max_length=100, pattern=common.TICKET_ID)]


class AboutTests(SnakeRequest):
    """A request about the tests of one repository."""

    repo: Repository
    """The repository."""
    org_url_slug: OrgSlug
    """Slug of the organization that the token belongs to. For example `octo`."""


class ListedTests(AboutTests):
    """A page of a list of tests."""

    page_query: PageQuery
    """Which page of the list."""

    def page(self) -> PageSelection:
        """As operations take it."""
        query = self.page_query
        return PageSelection(query.page_size, query.page_token, "page_query.page_token")


class ListUnhealthyTests(ListedTests):
    """`/flaky-tests/list-unhealthy-tests`."""

    ignores_unknown = True

    status: Filter
    """Only tests of this status."""


class ListFailingTests(ListedTests):
    """`/flaky-tests/list-failing-tests`: failures in [start_time, end_time)."""

    ignores_unknown = True

    start_time: Moment
    """The beginning of the time, included."""
    end_time: Moment
    """The end of the time, excluded; at most 7 days later."""

    def request(self) -> FailingRequest:
        """As operations take it."""
        return FailingRequest(self.start_time, self.end_time, self.page())


class ListTests(ListedTests):
    """`/flaky-tests/list-tests`: all tests, or those that pass the filters that are sent.

    `search` is a part of the name, file, class or suite. `owner` is an owner as it is listed, or
    `none`.
    """

    status: Annotated[Health, BeforeValidator(common.one_of(Health))] | None = None
    """Only tests of this status."""
    search: Text | None = None
    """Only tests with this text in their name, file, class or suite. For example `cart`."""
    owner: Text | None = None
    """Only tests of this owner, or `none`. For example `@octo/web`."""
    variant: Text | None = None
    """Only tests of this variant. For example `linux`."""
    quarantined: bool | None = None
    """Only tests that are quarantined, or only others."""
    has_ticket: bool | None = None
    """Only tests with a ticket, or only others."""
    order_by: Annotated[TestOrder, BeforeValidator(common.one_of(TestOrder))] | None = None
    """Which tests come first: those that hit most pull requests (without it), or that lost most CI
    time.
    """

    def wanted(self) -> TestFilter:
        """As operations take it."""
        return TestFilter(
            statuses=() if self.status is None else (self.status,),
            search=self.search or "",
            owner=self.owner or "",
            variant=self.variant or "",
            quarantined=self.quarantined,
            has_ticket=self.has_ticket,
            order=self.order_by or TestOrder.PULL_REQUESTS,
        )


class ListQuarantinedTests(ListedTests):
    """`/flaky-tests/list-quarantined-tests`."""


class GetTestDetails(AboutTests):
    """`/flaky-tests/get-test-details`."""

    test_id: Uuid
    """The test."""


class GetTestHistory(GetTestDetails):
    """`/flaky-tests/get-test-history`."""


def _with_a(field: str) -> JsonSchemaValue:
    """Return the schema of an object that has this field, not null."""
    return {"required": [field], "properties": {field: {"type": "string"}}}


class AskedTestGiven(SnakeRequest):
    """A test by its id, or by what a report says of it; then `name` is needed."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [_with_a("test_id"), _with_a("name")],
            "examples": [{"name": "test_total", "file_path": "ui/test_cart.py"}],
        }
    )

    test_id: Uuid | None = None
    """The test."""
    name: Text | None = None
    """Its name in reports. For example `test_total`."""
    parent: Text | None = None
    """Its suite in reports. For example `ui`."""
    classname: Text | None = None
    """Its class in reports. For example `TestCart`."""
    file_path: Text | None = None
    """Its file in reports. For example `ui/test_cart.py`."""
    variant: Text | None = None
    """The flavor of the job that runs it. For example `linux`."""

    def asked(self) -> AskedTest:
        """As operations take it."""
        return AskedTest(
            test_id=None if self.test_id is None else self.test_id.lower(),
            name=self.name or "",
            parent=self.parent or "",
            classname=self.classname or "",
            file=self.file_path or "",
            variant=self.variant or "",
        )


def _named(given: AskedTestGiven) -> AskedTestGiven:
    if given.test_id is None and given.name is None:
        raise common.wrong("missing", "needs `test_id` or `name`")
    return given


class CheckQuarantine(AboutTests):
    """`/flaky-tests/check-quarantine`."""

    tests: Annotated[
        list[Annotated[AskedTestGiven, AfterValidator(_named)]],
        Field(min_length=1, max_length=TESTS_MAX),
    ]
    """The tests, at most 5,000."""

    def asked(self) -> list[AskedTest]:
        """As operations take them."""
        return [each.asked() for each in self.tests]


class LinkTicket(SnakeRequest):
    """`/flaky-tests/link-ticket-to-test-case`: one of the two fields; an empty one unlinks."""

    repo: Repository
    """The repository."""
    org_url_slug: OrgSlug | None = None
    """Slug of the organization that the token belongs to. For example `octo`."""
    test_case_id: Uuid
    """The test."""
    html_url: Web | None = None
    """Address of the ticket; empty: the test has none. For example
    `https://github.com/octo/widgets/issues/991`.
    """
    external_ticket_id: TicketId | None = None
    """Number of the ticket, for `ticket_url_template`; empty: the test has none. For example
    `991`.
    """

    def request(self) -> TicketLink:
        """As operations take it."""
        return TicketLink(self.test_case_id.lower(), self.html_url, self.external_ticket_id)


class SetQuarantineOverride(AboutTests):
    """`/flaky-tests/set-quarantine-override`."""

    test_id: Uuid
    """The test."""
    override: Annotated[Override, BeforeValidator(common.one_of(Override))]
    """The decision on its quarantine."""
    reason: Said | None = None
    """Why. For example `flaky since the upgrade, #991`."""
    expires_at: Moment | None = None
    """When the decision ends by itself."""

    def request(self) -> OverrideRequest:
        """As operations take it."""
        return OverrideRequest(self.test_id.lower(), self.override, self.reason, self.expires_at)


class FlagTest(AboutTests):
    """`/flaky-tests/flag-test`."""

    test_id: Uuid
    """The test."""
    flag: Annotated[Flag, BeforeValidator(common.one_of(Flag))]
    """What you say about the test."""
    reason: FlagReason | None = None
    """Why. For example `fails on every second run`."""

    def request(self) -> FlagRequest:
        """As operations take it."""
        return FlagRequest(self.test_id.lower(), self.flag, self.reason)


class GetTestSettings(AboutTests):
    """`/flaky-tests/get-settings`."""


NULLABLE = settings.nullable(TestSettings)
"""Settings of which null is a value."""


@settings.takes(TestSettings)
class UpdateTestSettings(AboutTests):
    """`/flaky-tests/update-settings`: what is not sent stays."""

    def changes(self) -> dict[str, SettingValue]:
        """Return the settings to change, by field name; null changes only what can be null."""
        sent = {
            name: getattr(self, name)
            for name in self.model_fields_set & TestSettings.__dataclass_fields__.keys()
        }
        return {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in sent.items()
            if value is not None or name in NULLABLE
        }

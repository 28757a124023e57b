"""The endpoints about tests, one line each (SPECIFICATION.md 4.5, 4.6, API.md 8)."""

from dataclasses import replace

from service.http.rates import RateClass
from service.http.route import VERSIONED, Posted, Route, read, write
from service.testhealth.api import tests, upload_form, uploads
from service.testhealth.api.models import tests as models
from service.testhealth.api.models import uploads as upload_models
from service.testhealth.api.models.answers import tests as answers
from service.testhealth.api.models.answers.uploads import UploadDeleted, UploadTaken
from service.vocabulary import Role

ORG = "organization_not_found"
MISSING = "test_not_found"
PAGED = (ORG, "invalid_page_token", "page_token_expired")

FLAKY_ROUTES: tuple[Route, ...] = (
    read(
        "flaky-tests/list-unhealthy-tests", models.ListUnhealthyTests, tests.list_unhealthy
    ).answering(answers.UnhealthyTestsListed, *PAGED),
    read("flaky-tests/list-failing-tests", models.ListFailingTests, tests.list_failing).answering(
        answers.FailingTestsListed, *PAGED, "invalid_time_range"
    ),
    read(
        "flaky-tests/list-quarantined-tests", models.ListQuarantinedTests, tests.list_quarantined
    ).answering(answers.QuarantinedTestsListed, *PAGED),
    read("flaky-tests/get-test-details", models.GetTestDetails, tests.get_details).answering(
        answers.TestFound, ORG, MISSING
    ),
    replace(
        read(
            "flaky-tests/check-quarantine",
            models.CheckQuarantine,
            tests.check_quarantine,
            Role.CI,
        ),
        rate=RateClass.UPLOAD,
    ).answering(answers.QuarantineChecked, ORG),
    write(
        "flaky-tests/link-ticket-to-test-case", Role.QUEUE, models.LinkTicket, tests.link_ticket
    ).answering(
        answers.TicketLinked, ORG, MISSING, "conflicting_fields", "ticket_template_missing"
    ),
    write(
        "flaky-tests/set-quarantine-override",
        Role.ADMIN,
        models.SetQuarantineOverride,
        tests.set_override,
    ).answering(answers.OverrideSet, ORG, MISSING, "reason_required"),
    write("flaky-tests/flag-test", Role.QUEUE, models.FlagTest, tests.flag).answering(
        answers.TestFlagged, ORG, MISSING, "reason_required"
    ),
    read("flaky-tests/get-settings", models.GetSettings, tests.get_settings).answering(
        answers.TestSettingsShown, ORG
    ),
    write(
        "flaky-tests/update-settings", Role.ADMIN, models.UpdateSettings, tests.update_settings
    ).answering(answers.TestSettingsShown, ORG, "unknown_field", "issues_not_writable"),
    Posted(
        f"{VERSIONED}/flaky-tests/upload-test-results",
        Role.CI,
        upload_models.UploadTestResults,
        uploads.receive,
        writes=True,
        rate=RateClass.UPLOAD,
        intake=upload_form.FORM,
        takes_oidc=True,
    ).answering(
        UploadTaken, ORG, "bad_request", "no_results", "limit_reached", "conflicting_fields"
    ),
    read("flaky-tests/get-upload", upload_models.GetUpload, uploads.get, Role.CI).answering(
        UploadTaken, ORG, "upload_not_found"
    ),
    write(
        "flaky-tests/delete-upload", Role.ADMIN, upload_models.DeleteUpload, uploads.delete
    ).answering(UploadDeleted, ORG, "upload_not_found"),
)

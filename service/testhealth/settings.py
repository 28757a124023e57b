"""The one definition of each test setting of a repository: type, default, bounds, documentation.

The request and answer models, the OpenAPI document and the table in docs/reference/tests.md are
made from `TestSettings`.
"""

# ruff: noqa: RUF009 - `setting` returns a field, whose default is immutable

from dataclasses import dataclass

from service.settings import Chars, Form, Items, Range, Words, setting
from service.vocabulary import UNHEALTHY, ExcuseProof, Health, QuarantineForgives, Sensitivity

FAILURE_WORD = "failure"
"""In `test_failure_exit_codes` in place of a code: the job failed, and it sends none."""

SettingValue = (
    bool
    | int
    | str
    | Sensitivity
    | QuarantineForgives
    | ExcuseProof
    | tuple[str, ...]
    | tuple[Health, ...]
    | None
)
"""The types of the values of settings."""


@dataclass(frozen=True, slots=True)
class TestSettings:
    """All test settings of one repository."""

    __test__ = False

    quarantine_enabled: bool = setting(
        False,
        "failures of quarantined tests count as passed",
        "true when you want [quarantine](#quarantine)",
    )
    auto_quarantine_enabled: bool = setting(
        False,
        "tests are quarantined by their status, not only by an override of a person. No effect "
        "while `quarantine_enabled` is false",
        "true when you have looked at the lists of flaky and broken tests and agree with them",
    )
    auto_quarantine_statuses: tuple[Health, ...] = setting(
        UNHEALTHY,
        "the statuses of tests that are quarantined automatically",
        '`["flaky"]` when broken tests must stop the queue until a person decides',
        Words(UNHEALTHY),
    )
    sensitivity: Sensitivity = setting(
        Sensitivity.NORMAL,
        "how soon a test is called flaky",
        "`strict` when sound tests are called flaky, `eager` when flaky tests are found too late",
    )
    stable_branches: tuple[str, ...] | None = setting(
        None,
        "patterns of branches whose results show that a test is broken; none: the default branch "
        "and every branch with a queue",
        "when other branches also contain only reviewed commits, for example `release/*`",
        Items("patterns", 255, items_max=10),
    )
    ticket_url_template: str | None = setting(
        None,
        "the address of a ticket, with `{id}` in place of its id",
        "to link tickets by `external_ticket_id`",
        Chars(2000, Form.ADDRESS_TEMPLATE),
    )
    collect_artifacts: bool = setting(
        True,
        "whether Headgate reads test reports from CI's artifacts",
        "false when every job uploads its reports itself",
    )
    artifact_patterns: tuple[str, ...] = setting(
        (
            "*junit*",
            "*test-result*",
            "*test_result*",
            "*test-report*",
            "*surefire*",
        ),
        "names of artifacts that are read",
        "when your [artifacts with reports](#collected-artifacts) have other names",
        Items("patterns", 100, items_max=20),
    )
    name_masks: tuple[str, ...] = setting(
        (),
        "masks for the names of tests: the part in place of `*` is ignored",
        "when names contain a part that changes with every run, such as a seed or a port",
        Items("masks", 255, form=Form.NAME_MASK, items_max=20),
    )
    ticket_issues: bool = setting(
        False,
        "whether Headgate keeps an issue for each test that stays flaky or broken. Refused (422 "
        "`issues_not_writable`) where the App lacks `issues: write`, or issues are switched off",
        "true to get [an issue for each such test](#issues)",
    )
    quarantine_forgives: QuarantineForgives = setting(
        QuarantineForgives.KNOWN_FAILURES,
        "which failures of a quarantined test count as passed",
        "`ANY_FAILURE` when a quarantined test that fails [in a new way](#known-failures-alone) "
        "must count as passed too",
    )
    test_failure_exit_codes: tuple[str, ...] = setting(
        (),
        "exit codes by which jobs say that tests failed and nothing else did: "
        "`unit*=8` for jobs whose names match `unit*`, `unit*=failure` for jobs that send no exit "
        "code",
        "when Headgate does not excuse quarantined failures because of the exit code, and you know "
        "that no other fault ends the job like that",
        Items("entries", 255, form=Form.EXIT_CODE, items_max=50),
    )
    excuse_proof: ExcuseProof = setting(
        ExcuseProof.JOB,
        "what must prove the report of a failed required check on a test branch, so that its "
        "failure can be excused: the check's own CI job (`JOB`), the CI run (`RUN`), or a token "
        "(`TOKEN`). Only a token of role `admin` changes it",
        "`RUN` where reports are collected from [artifacts](#collected-artifacts), `TOKEN` where "
        "CI has no OIDC token; then [every job that has the token](#what-a-complete-report-is) can "
        "excuse the failure of another",
    )
    report_issuers: tuple[str, ...] = setting(
        (),
        "issuers and projects of other CI systems whose OIDC tokens upload results of this "
        "repository, for example `buildkite https://agent.buildkite.com acme/widgets` or `gitlab "
        "https://gitlab.com acme/widgets`. Only a token of role `admin` changes it",
        "when [Buildkite or GitLab CI](../how-to/upload-test-results.md#buildkite-and-gitlab-ci) "
        "tests this repository",
        Items("entries", 500, form=Form.ISSUER, items_max=20),
    )
    flake_cost_alert_minutes: int | None = setting(
        None,
        "above so many minutes of CI that flaky tests lost in a week, Headgate sends "
        "`flake_costs.exceeded` to the endpoints, once a week, and the pages say so; none: never",
        "to hear when flaky tests [cost more than you accept](#what-flaky-tests-cost)",
        Range(1, 10_000_000),
    )
    repeat_minutes_per_day: int | None = setting(
        None,
        "so many minutes of CI a day Headgate spends on running suspected, flaky and new tests "
        "again in jobs that are done; none: it starts no runs",
        "to find tests that fail seldom, and to end flags soon after a fix, by "
        "[repeated runs](live-tests.md#repeated-runs)",
        Range(1, 1440),
    )

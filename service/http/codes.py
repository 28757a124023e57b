"""The codes that each endpoint may answer, and a remedy for each (docs/design/http.md 7).

The status and the title of each code are in `errors.py`.
"""

from collections.abc import Mapping
from itertools import groupby
from typing import assert_never

from service.http import errors
from service.http.route import Document, Fetched, Open, Posted, Route, Streamed

PAGES = ("bad_request", "invalid_parameter", "method_not_allowed", "internal_error")
"""The codes that even an address without token may answer."""

FETCHES = (*PAGES, "missing_role", "rate_limited", "repository_not_found", *errors.STATUSES[503])
"""The codes that every endpoint with a token may answer."""

POSTS = (
    *FETCHES,
    "invalid_json",
    "invalid_field",
    "request_timeout",
    "body_too_large",
    "unsupported_media_type",
    "unsupported_encoding",
    "provider_refused",
)
"""The codes that every endpoint that takes a body may answer (docs/design/http.md 1)."""

WRITES = ("invalid_header", "idempotency_in_progress", "idempotency_key_reused")
"""The codes that every endpoint may answer that takes an `Idempotency-Key`."""


def codes_of(route: Route) -> tuple[str, ...]:
    """Every code that the endpoint may answer, by status, each once."""
    match route:
        case Posted():
            found = {*POSTS, *(WRITES if route.writes else ()), *route.codes}
            if not route.model.ignores_unknown:
                found.add("unknown_field")
        case Fetched() | Streamed():
            found = {*FETCHES, *route.codes}
        case Document():
            found = {*PAGES, *route.codes}
        case Open():
            found = set(PAGES)
        case _:
            assert_never(route)
    return tuple(code for code in errors.STATUS_OF if code in found)


def by_status(codes: tuple[str, ...]) -> Mapping[int, tuple[str, ...]]:
    """Status → those of the codes that it carries, for codes in the order of `of`."""
    return {status: tuple(same) for status, same in groupby(codes, errors.STATUS_OF.__getitem__)}


REMEDIES: Mapping[str, str] = {
    "bad_request": "Send well-formed HTTP/1.1; the connection is closed after this answer.",
    "invalid_json": "Send one JSON object in UTF-8; the detail says what breaks the rules.",
    "invalid_field": "Correct the fields that `errors` lists; each says what it must be.",
    "unknown_field": "Remove the field or correct its name; `did_you_mean` has the nearest one.",
    "invalid_parameter": "Correct the query parameter that the detail names.",
    "invalid_header": "Correct the header that the detail names.",
    "invalid_page_token": "Begin again without a token, and change no filter between pages.",
    "page_token_expired": "Begin again without a token: one is good for 24 hours.",
    "missing_role": "Use a token whose role is at least `required_role`.",
    "not_own_pull_request": "Send the number of the pull request that began the CI run.",
    "unknown_endpoint": "Correct the address; `did_you_mean` has the nearest one.",
    "organization_not_found": "Name the organization that the token belongs to.",
    "repository_not_found": (
        "Check host, owner and name, that the App is installed there, and that the token is not "
        "limited to other repositories."
    ),
    "branch_not_found": "Push the branch first, or correct its name.",
    "queue_not_found": "Create a queue for the branch, or name one that `branches` lists.",
    "pull_request_not_found": "Check the number and the repository.",
    "never_submitted": "Submit the pull request first.",
    "not_in_queue": "Submit the pull request first, or look how its submission ended.",
    "test_run_not_found": "Take the id from the pull request's `testRunId`, once it is not null.",
    "evidence_not_found": "Name a commit that Headgate landed; the list of evidence has them all.",
    "hold_not_found": "Take the id from the queue's `holds`; the hold may be lifted already.",
    "dry_test_not_found": "Send the branch that `/startDryTest` answered.",
    "dry_test_refused": "Run `headgate doctor`: an error names the rule or branch in the way.",
    "test_not_found": "Take the id from one of the lists of tests.",
    "upload_not_found": "Take the id from the answer to the upload.",
    "plan_not_found": "Take the id from the answer to the plan, and report within a day.",
    "token_not_found": "Take the id from the list of tokens.",
    "webhook_endpoint_not_found": "Take the id from the list of webhook endpoints.",
    "message_not_found": "Take the id from the endpoint's deliveries; they are kept for 30 days.",
    "method_not_allowed": "Use the method that the header `Allow` names.",
    "request_timeout": "Send the body faster: 50 kB a second after the first ten.",
    "body_too_large": 'Send at most 20 MiB; for long lists of targets, send `"ALL"`.',
    "unsupported_media_type": (
        "Send the body as `application/json`; uploads as `multipart/form-data`, their files "
        "plain or gzip."
    ),
    "unsupported_encoding": (
        "Send the body without `Content-Encoding`; an upload may be gzip, or each of its files."
    ),
    "queue_exists": "Update the queue that is there.",
    "queue_not_empty": "Cancel or merge what `pull_requests` lists, then delete the queue.",
    "mode_switch_in_progress": "Wait until `targetMode` is null, then ask again.",
    "version_conflict": "Read the queue again, and decide on what it says now.",
    "landing_in_progress": "Ask again after the seconds of `Retry-After`: it is being merged.",
    "already_landed": "Nothing is left to do: the pull request is merged.",
    "head_mismatch": "Look at the new commits, then submit the present head.",
    "idempotency_in_progress": "Ask again after the seconds of `Retry-After`, with the same key.",
    "failed_before": (
        "Push a fix. The answer has the run (`run_id`, `run_number`), the failed `checks` and "
        "`tests`, the tested `commit` and the number of `landings` after which it may be tested "
        "again. A token of role `admin` may send `again: true`; a person comments `/merge --again`."
    ),
    "pull_request_closed": "Reopen the pull request first.",
    "stack_loses_approvals": (
        "Submit the lowest pull request alone; then change the base of the next one and approve it."
    ),
    "address_too_long": "Send no more than 8 KiB in the address; lists go into the body.",
    "header_too_long": "Send no more than 8 KiB in one header.",
    "own_test_branch": "Submit the pull requests that the draft tests.",
    "pull_request_merged": "Nothing is left to do: the pull request is merged.",
    "fork_needs_person": "Let a person with write access submit this head once.",
    "no_required_statuses": (
        "Set `requiredStatuses` on the queue, or protect the branch with required checks."
    ),
    "conflict_after_landing": (
        "Submit the pull request below it first; after its landing rebase this one, and submit it."
    ),
    "merge_method_not_allowed": "Choose a merge method that the repository's settings allow.",
    "set_in_repository_file": "Change the setting in the repository's file, or remove it there.",
    "conflicting_fields": "Send one of the two fields.",
    "not_the_job": "Report with the token, the commit and the CI run of the upload.",
    "invalid_time_range": "Send a start before the end, at most seven days apart.",
    "limit_reached": "Remove what is not needed any more; the detail names the limit.",
    "hold_not_liftable": "Fix what the text of the hold names; the hold then ends by itself.",
    "reason_required": "Send a `reason`.",
    "issues_not_writable": (
        "Grant the App `issues: write` and accept it where the App is installed, or switch the "
        "repository's issues on; then send this again."
    ),
    "ticket_template_missing": "Set `ticket_url_template`, or send the ticket's `html_url`.",
    "times_unknown": "Name the files of the plan in `files`, or ask a day after the first uploads.",
    "no_results": "Look at `files`: each says why it was refused.",
    "scope_exceeds_own": "Ask for a role and repositories within those of the token that asks.",
    "webhook_url_refused": "Give an https address that the whole internet can reach.",
    "idempotency_key_reused": "Use a new key for another request.",
    "internal_error": "Give the operator the `request_id`: the log has the rest under it.",
    "provider_refused": "Read what the provider says in the detail, and fix it there.",
    "provider_unavailable": "Ask again after the seconds of `Retry-After`.",
    "database_unavailable": "Ask again after the seconds of `Retry-After`; tell the operator.",
    "over_budget": (
        "Submit again after the seconds of `Retry-After`: the answer has what is `used`, the "
        "`limit` and, of CI minutes, when the next day begins (`until`). Of open entries one must "
        "have left."
    ),
    "rate_limited": "Ask again after the seconds of `Retry-After`, and less often.",
    "overloaded": "Ask again after the seconds of `Retry-After`.",
    "recovering": "Ask again after the seconds of `Retry-After`; this takes seconds.",
    "setup_required": "Let the operator finish the setup that the log of the start describes.",
}
"""The remedy for each code, in a sentence or two."""

"""Refusals of actions and calls, in the provider's own words.

`SENTENCES` holds sentences that GitHub was seen to answer, `STATUS_KNOWN` those of which only the
status is documented. tests/sandbox/test_refusals.py compares both with the collected answers in
tests/github/refusals.toml. The control plane of the sandbox is not GitHub: it raises
`Refusal(400, ...)` with words of its own.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bot.sandbox.records import Json

DOCUMENTATION = "https://docs.github.com/rest"
PLACEHOLDER = re.compile(r"\{[^{}]+\}")


@dataclass(frozen=True, slots=True)
class Sentence:
    """Status and text of one refusal; `{…}` in the text are filled in order."""

    status: int
    text: str


RULE_PREFIX = "Repository rule violations found\n\n"
"""Starts every answer in which a ruleset refuses (`shape.rules`)."""

SENTENCES: Mapping[str, Sentence] = {
    "actions.cancel_done": Sentence(409, "Cannot cancel a workflow run that is completed."),
    "actions.rerun_none": Sentence(
        403,
        "Unable to retry this workflow run because it was not attempted with failed jobs.",
    ),
    "actions.rerun_running": Sentence(403, "This workflow is already running"),
    "check.annotations": Sentence(422, "No more than 50 items are allowed; {n} were supplied."),
    "check.long": Sentence(422, "Only 65535 characters are allowed; {n} were supplied."),
    "check.summary_bytes": Sentence(422, "summary exceeds a maximum bytesize of 65535"),
    "checks.all_expected": Sentence(405, "{m} of {m} required status checks are expected."),
    "checks.all_in_progress": Sentence(405, "{n} of {m} required status checks are in progress."),
    "checks.all_pending": Sentence(405, "{m} of {m} required status checks are pending."),
    "checks.expected": Sentence(405, 'Required status check "{name}" is expected.'),
    "checks.failing": Sentence(405, 'Required status check "{name}" is failing.'),
    "checks.in_progress": Sentence(405, 'Required status check "{name}" is in progress.'),
    "checks.mixed": Sentence(
        405,
        "{n} of {m} required status checks have not succeeded: {k} {word} and {l} {word}.",
    ),
    "checks.pending": Sentence(405, 'Required status check "{name}" is pending.'),
    "checks.wrong_source": Sentence(
        405, 'Required status check "{name}" was not set by the expected GitHub app.'
    ),
    "comment.locked": Sentence(403, "Unable to create comment because issue is locked."),
    "comment.long": Sentence(422, "Body is too long (maximum is 65536 characters)"),
    "issues.off": Sentence(410, "Issues has been disabled in this repository."),
    "limit.content": Sentence(
        403,
        "You have exceeded a secondary rate limit and have been temporarily blocked from content "
        "creation. Please retry your request again later.",
    ),
    "limit.primary": Sentence(403, "API rate limit exceeded for installation ID {id}."),
    "limit.primary_gql": Sentence(200, "API rate limit already exceeded for installation ID {id}."),
    "limit.secondary": Sentence(
        403,
        "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.",
    ),
    "merge.base_modified": Sentence(
        405, "Base branch was modified. Review and try the merge again."
    ),
    "merge.closed": Sentence(405, "Pull Request is closed"),
    "merge.conflicts": Sentence(405, "Pull Request has merge conflicts"),
    "merge.draft": Sentence(405, "Pull Request is still a draft"),
    "merge.head_modified": Sentence(
        409, "Head branch was modified. Review and try the merge again."
    ),
    "merge.head_out_of_date": Sentence(
        409, "Head branch is out of date. Review and try the merge again."
    ),
    "merge.not_mergeable": Sentence(405, "Pull Request is not mergeable"),
    "merge.stacked": Sentence(
        403,
        "Merging stacked PRs via this endpoint is not supported. "
        "Use the asynchronous merge endpoint instead.",
    ),
    "merges.absent": Sentence(404, "Base does not exist"),
    "merges.conflict": Sentence(409, "Merge conflict"),
    "method.denied": Sentence(
        405, "{Merge commits|Squash merges|Rebase merges} are not allowed on this repository."
    ),
    "method.linear": Sentence(405, "This branch must not contain merge commits."),
    "method.rebase": Sentence(405, "This branch can't be rebased"),
    "perm.archived": Sentence(403, "Repository was archived so is read-only."),
    "perm.integration": Sentence(403, "Resource not accessible by integration"),
    "perm.workflows": Sentence(
        403,
        "refusing to allow a GitHub App to create or update workflow `{path}` "
        "without `workflows` permission",
    ),
    "protection.none": Sentence(404, "Branch not protected"),
    "pull.body_long": Sentence(422, "body is too long (maximum is 65536 characters)"),
    "pull.draft": Sentence(422, "Draft pull requests are not supported in this repository."),
    "pull.exists": Sentence(422, "A pull request already exists for {owner}:{branch}."),
    "pull.no_commits": Sentence(422, "No commits between {base} and {head}"),
    "push.queued": Sentence(
        422,
        "A pull request for this branch has been added to a merge queue. Branches that are "
        "queued for merging cannot be updated. To modify this branch, dequeue the associated "
        "pull request.",
    ),
    "queue.inside": Sentence(405, "Pull Request is in the merge queue."),
    "ref.cannot": Sentence(422, "Reference cannot be updated"),
    "ref.absent": Sentence(422, "Reference does not exist"),
    "ref.create_rule": Sentence(422, "Cannot create ref due to creations being restricted."),
    "ref.delete_classic": Sentence(422, "Cannot delete a protected branch"),
    "ref.delete_rule": Sentence(422, "Cannot delete this branch"),
    "ref.exists": Sentence(422, "Reference already exists"),
    "ref.failed": Sentence(422, "Reference update failed"),
    "ref.force": Sentence(422, "Cannot force-push to this branch"),
    "ref.not_ff": Sentence(422, "Update is not a fast forward"),
    "review.approvals": Sentence(
        405, "At least {n} approving review is required by reviewers with write access."
    ),
    "review.changes_requested": Sentence(
        405, "{n} review requesting changes by reviewers with write access."
    ),
    "review.code_owner": Sentence(405, "Waiting on code owner review from {owners}."),
    "review.conversation": Sentence(
        405, "A conversation must be resolved before this pull request can be merged."
    ),
    "review.last_push": Sentence(
        405, "New changes require approval from someone other than the last pusher."
    ),
    "review.last_pusher_unknown": Sentence(
        405,
        "Waiting on 1 more approval from a reviewer with write access because the last pusher "
        "could not be determined.",
    ),
    "rule.code_scanning": Sentence(
        405, "Code scanning is waiting for results from {tool} for the commit {sha7}."
    ),
    "rule.deployment": Sentence(405, "Missing successful active {environment} deployment."),
    "rule.not_authorized": Sentence(
        405,
        "You're not authorized to push to this branch. Visit {url} for more information.",
    ),
    "rule.signatures": Sentence(405, "Commits must have verified signatures."),
    "rule.through_pull": Sentence(422, "Changes must be made through a pull request."),
    "rule.through_queue": Sentence(405, "Changes must be made through the merge queue"),
    "rule.update": Sentence(405, "Cannot update this protected ref."),
    "stack.base": Sentence(
        422, "Cannot change the base branch because the pull request is part of a stack."
    ),
    "stack.form": Sentence(
        422,
        "Pull requests must form a stack, where each PR's base ref is the previous PR's head ref",
    ),
    "stack.member": Sentence(422, "Pull request #{n} is already part of a stack"),
    "status.count": Sentence(
        422, "This SHA and context has reached the maximum number of statuses."
    ),
    "token.level": Sentence(
        422,
        "The level of access for permissions requested are not granted to this installation.",
    ),
    "token.permissions": Sentence(
        422, "The permissions requested are not granted to this installation."
    ),
    "token.repositories": Sentence(
        422,
        "There is at least one repository that does not exist or is not accessible "
        "to the parent installation.",
    ),
    "token.suspended": Sentence(403, "This installation has been suspended"),
}
"""Sentences that GitHub was seen to answer, by their id in the collected answers."""

FORMS: Mapping[str, Sentence] = {
    "checks.mixed/one": Sentence(
        405, "{n} of {m} required status checks have not succeeded: {k} {word}."
    ),
    "merges.absent/head": Sentence(404, "Head does not exist"),
    "review.approvals/many": Sentence(
        405, "At least {n} approving reviews are required by reviewers with write access."
    ),
    "review.changes_requested/many": Sentence(
        405, "{n} reviews requesting changes by reviewers with write access."
    ),
    "rule.deployment/many": Sentence(
        405, "Missing successful active {environment} and {environment} deployments."
    ),
}
"""Further forms of a sentence: the id of the sentence, a slash, which form."""

STATUS_KNOWN: Mapping[str, Sentence] = {
    "artifact.expired": Sentence(410, "Artifact has expired"),
    "auth.app_only": Sentence(403, "You must authenticate via a GitHub App."),
    "auth.bad": Sentence(401, "Bad credentials"),
    "auth.exp_far": Sentence(401, "'Expiration time' claim ('exp') is too far in the future"),
    "auth.exp_past": Sentence(
        401,
        "'Expiration time' claim ('exp') must be a numeric value representing the future time "
        "at which the assertion expires",
    ),
    "auth.gone": Sentence(404, "Integration not found"),
    "auth.graphql": Sentence(401, "This endpoint requires you to be authenticated."),
    "auth.iat": Sentence(
        401,
        "'Issued at' claim ('iat') must be an Integer representing the time that the assertion "
        "was issued",
    ),
    "auth.jwt": Sentence(401, "A JSON web token could not be decoded"),
    "auth.needed": Sentence(401, "Requires authentication"),
    "auth.token_only": Sentence(403, "You must authenticate with an installation access token"),
    "body.json": Sentence(400, "Problems parsing JSON"),
    "body.missing": Sentence(422, 'Invalid request.\n\n"{name}" wasn\'t supplied.'),
    "body.object": Sentence(400, "Body should be a JSON object"),
    "branch.absent": Sentence(404, "Branch not found"),
    "branch.unknown": Sentence(422, "The branch {name} was not found."),
    "branch.taken": Sentence(422, "name already exists on this repository."),
    "check.foreign": Sentence(
        403,
        "Invalid app_id - check run can only be modified by the GitHub App that created it.",
    ),
    "commit.absent": Sentence(422, "No commit found for SHA: {sha}"),
    "commit.no_ref": Sentence(404, "No commit found for the ref {ref}"),
    "compare.unrelated": Sentence(404, "No common ancestor between {base} and {head}."),
    "field.invalid": Sentence(422, "Validation Failed"),
    "graphql.query": Sentence(400, "A query attribute must be specified and must be a string."),
    "label.absent": Sentence(404, "Label does not exist"),
    "not_found": Sentence(404, "Not Found"),
    "protection.no_checks": Sentence(404, "Required status checks not enabled"),
    "pull.reopen": Sentence(
        422, "state cannot be changed. The head or the base branch is gone, or it was merged."
    ),
    "push.hidden": Sentence(422, "deny updating a hidden ref"),
    "ref.default": Sentence(422, "Cannot delete the default branch"),
    "ref.name": Sentence(422, "Reference name must start with 'refs/' and have a second slash."),
    "ref.no_object": Sentence(422, "Object does not exist"),
    "ref.short": Sentence(422, "{name} is not a fully qualified ref name"),
    "ref.stale": Sentence(422, "{name} is at {sha}, not at the expected {sha}"),
    "review.own": Sentence(422, "Can not {verb} your own pull request"),
    "role.admin": Sentence(403, "Must have admin rights to Repository."),
    "runs.created": Sentence(422, "created: {value} is not understood"),
    "version.unknown": Sentence(400, "The API version {version} is not supported."),
}
"""Refusals whose status is documented or well known while their words were not collected."""


class Refusal(Exception):
    """A refusal with HTTP status, message and, for 422, the list of errors."""

    def __init__(self, status: int, message: str, errors: Sequence[Json] | str = ()) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.errors = errors if isinstance(errors, str) else tuple(errors)

    def body(self) -> Json:
        """The JSON answer."""
        body: Json = {
            "message": self.message,
            "documentation_url": DOCUMENTATION,
            "status": str(self.status),
        }
        if self.errors:
            body["errors"] = self.errors if isinstance(self.errors, str) else list(self.errors)
        return body


def sentence_of(name: str) -> Sentence:
    """The sentence of an id. Raises KeyError for an unknown one."""
    return {**SENTENCES, **FORMS, **STATUS_KNOWN}[name]


def say(name: str, *values: object) -> str:
    """The text of a sentence with its placeholders filled, in their order.

    Raises ValueError when the number of values differs from the number of placeholders.
    """
    text = sentence_of(name).text
    if len(PLACEHOLDER.findall(text)) != len(values):
        raise ValueError(f"{name} has other placeholders than {values}")
    filled = iter(values)
    return PLACEHOLDER.sub(lambda _: str(next(filled)), text)


def refused(name: str, *values: object) -> Refusal:
    """The refusal of an id, its placeholders filled in their order."""
    return Refusal(sentence_of(name).status, say(name, *values))


def custom(name: str, resource: str, *values: object) -> Refusal:
    """422 with the sentence as the one error, as for whole resources."""
    error = {"resource": resource, "code": "custom", "message": say(name, *values)}
    return Refusal(422, "Validation Failed", [error])


def not_found() -> Refusal:
    """404, as the provider answers for everything that the caller may not see."""
    return refused("not_found")


def not_accessible() -> Refusal:
    """403 for an App that lacks a permission."""
    return refused("perm.integration")


def invalid(message: str, *, field: str, resource: str, code: str = "invalid") -> Refusal:
    """422 with one error about one field; its words beside field and code are ours."""
    error = {"resource": resource, "code": code, "field": field, "message": message}
    return Refusal(422, "Validation Failed", [error])

"""Check suites, check runs and statuses: made and changed, with the events they raise.

Called by REST for Apps and by ci.py for the sandbox's own CI. Which reports count: standing.py.
Limits: the provider's "REST API endpoints for check runs" and "for commit statuses".
"""

from collections.abc import Mapping
from dataclasses import dataclass

from bot.sandbox import deliver, standing
from bot.sandbox.records import Account, Actor, App, CheckRun, CheckSuite, Status
from bot.sandbox.refusal import Refusal, invalid, say
from bot.sandbox.shapes import checks, git_data
from bot.sandbox.world import Repository, World

STATUSES_PER_CONTEXT_MAX = 1000
ANNOTATIONS_PER_CALL_MAX = 50
ACTIONS_MAX = 3
ACTION_FIELDS = {"label": 20, "description": 40, "identifier": 20}
OUTPUT_MAX = 65_535
STATUS_WORDS = ("queued", "in_progress", "completed", "waiting", "requested", "pending")
CONCLUSIONS = (
    "action_required",
    "cancelled",
    "failure",
    "neutral",
    "success",
    "skipped",
    "stale",
    "timed_out",
)
STATES = ("error", "failure", "pending", "success")


def new_suite(repository: Repository, app: App, sha: str, branch: str | None) -> CheckSuite:
    """One more suite of an App on a commit, without runs."""
    now = repository.world.now()
    suite = CheckSuite(repository.world.new_id("suite"), app, sha, branch, now, now)
    repository.suites.setdefault(sha, []).append(suite)
    return suite


def suite_of(repository: Repository, app: App, sha: str, branch: str | None) -> CheckSuite:
    """The suite of an App on a commit, made when there is none."""
    for suite in repository.suites.get(sha, ()):
        if suite.app is app:
            return suite
    return new_suite(repository, app, sha, branch)


def announce_push(repository: Repository, sha: str, branch: str, sender: Account) -> None:
    """The empty suite that every App with checks:write gets for a pushed commit."""
    for installation in repository.world.installations.values():
        if not repository.world.covers(installation, repository):
            continue
        if installation.permissions.get("checks") != "write":
            continue
        if all(one.app is not installation.app for one in repository.suites.get(sha, ())):
            suite = new_suite(repository, installation.app, sha, branch)
            fields = {"check_suite": checks.suite(repository, suite)}
            deliver.emit(repository, "check_suite", "requested", fields, sender)


def add_run(
    repository: Repository,
    suite: CheckSuite,
    actor: Actor,
    fields: Mapping[str, object],
) -> CheckRun:
    """A new check run with the provider's fields; raises `check_run.created`.

    Raises Refusal(422) for words and sizes that the provider refuses.
    """
    name = fields.get("name")
    if not isinstance(name, str) or not name:
        raise invalid("name is required", field="name", resource="CheckRun")
    run = CheckRun(
        repository.world.new_id("check"), suite, name, "queued", None, repository.world.now()
    )
    _change(repository.world, run, fields)
    suite.runs.append(run)
    suite.updated_at = repository.world.now()
    _announce_run(repository, run, "created", actor.account)
    if run.status == "completed":
        _announce_completed(repository, run, actor.account)
    return run


def change_run(
    repository: Repository, run: CheckRun, actor: Actor, fields: Mapping[str, object]
) -> None:
    """Change a check run; completing it raises `check_run.completed`, and so on.

    So does another conclusion of a completed one, as recorded on github.com.
    """
    before = run.conclusion
    _change(repository.world, run, fields)
    run.suite.updated_at = repository.world.now()
    if run.conclusion != before:
        _announce_completed(repository, run, actor.account)


def _announce_completed(repository: Repository, run: CheckRun, account: Account) -> None:
    _announce_run(repository, run, "completed", account)
    if standing.suite_state(run.suite)[0] == "completed":
        fields = {"check_suite": checks.suite(repository, run.suite)}
        sender = _sender(repository, run.suite.head_sha, account)
        deliver.emit(repository, "check_suite", "completed", fields, sender)


def _announce_run(repository: Repository, run: CheckRun, action: str, account: Account) -> None:
    fields = {"check_run": checks.check_run_event(repository, run)}
    sender = _sender(repository, run.suite.head_sha, account)
    deliver.emit(repository, "check_run", action, fields, sender)


def _sender(repository: Repository, sha: str, reporter: Account) -> Account:
    """The sender of an event about the checks of a commit: who reported, or the author of it."""
    if not repository.world.face.reports_as_author:
        return reporter
    author = repository.git.objects.a_commit(sha).author
    return git_data.account_of(repository.world, author) or reporter


def _change(world: World, run: CheckRun, fields: Mapping[str, object]) -> None:
    status, conclusion = fields.get("status"), fields.get("conclusion")
    if status is not None and status not in STATUS_WORDS:
        raise invalid(f"{status} is not a status", field="status", resource="CheckRun")
    if conclusion is not None and conclusion not in (*CONCLUSIONS, "startup_failure"):
        raise invalid(f"{conclusion} is no conclusion", field="conclusion", resource="CheckRun")
    if status == "completed" and conclusion is None and run.conclusion is None:
        raise invalid("conclusion is missing", field="conclusion", resource="CheckRun")
    if conclusion is not None:
        run.status, run.conclusion = "completed", str(conclusion)
        run.completed_at = world.now()
    elif status is not None and run.status != "completed":
        # A completed run stays completed: https://github.com/taskcluster/taskcluster/issues/5085
        run.status = str(status)
    run.name = str(fields.get("name", run.name))
    run.external_id = str(fields.get("external_id") or run.external_id)
    details = fields.get("details_url")
    run.details_url = str(details) if details else run.details_url
    _change_output(run, fields.get("output"))
    _change_actions(run, fields.get("actions"))


def _change_output(run: CheckRun, output: object) -> None:
    if output is None:
        return
    if not isinstance(output, Mapping) or "summary" not in output:
        raise invalid("output needs a summary", field="output", resource="CheckRun")
    for word in ("summary", "text"):
        units = len(str(output.get(word) or "").encode("utf-16-le")) // 2
        if units > OUTPUT_MAX:
            message = say("check.long", units)
            raise invalid(message, field=word, resource="CheckRun")
    if len(str(output["summary"] or "").encode()) > OUTPUT_MAX:
        raise invalid(say("check.summary_bytes"), field="summary", resource="CheckRun")
    annotations = output.get("annotations") or []
    if len(annotations) > ANNOTATIONS_PER_CALL_MAX:
        message = say("check.annotations", len(annotations))
        raise invalid(message, field="annotations", resource="CheckRun")
    run.title = output.get("title")
    run.summary = output.get("summary")
    text = output.get("text")
    # A longer text is cut without an error.
    run.text = None if text is None else str(text).encode()[:OUTPUT_MAX].decode(errors="ignore")
    run.annotations += len(annotations)


def _change_actions(run: CheckRun, actions: object) -> None:
    if actions is None:
        return
    if not isinstance(actions, list) or len(actions) > ACTIONS_MAX:
        message = f"actions exceeds a maximum quantity of {ACTIONS_MAX}"
        raise invalid(message, field="actions", resource="CheckRun")
    for action in actions:
        for word, longest in ACTION_FIELDS.items():
            if not 0 < len(str(action.get(word, ""))) <= longest:
                message = f"{word} is too long (maximum is {longest} characters)"
                raise invalid(message, field="actions", resource="CheckRun")
    run.actions = [dict(action) for action in actions]


@dataclass(frozen=True, slots=True)
class NewStatus:
    """A status to be set."""

    context: str
    state: str
    description: str | None = None
    target_url: str | None = None


def add_status(repository: Repository, sha: str, creator: Account, new: NewStatus) -> Status:
    """One more status on a commit; raises `status`."""
    if new.state not in STATES:
        raise invalid(f"state {new.state} is unknown", field="state", resource="Status")
    listed = repository.statuses.setdefault(sha, [])
    if sum(one.context == new.context for one in listed) >= STATUSES_PER_CONTEXT_MAX:
        message = say("status.count")
        raise Refusal(422, "Validation Failed", f"Validation failed: {message}")
    made = Status(
        repository.world.new_id(),
        sha,
        new.context,
        new.state,
        new.description,
        new.target_url,
        creator,
        repository.world.now(),
    )
    listed.append(made)
    deliver.emit(repository, "status", None, checks.status_event(repository, made), creator)
    return made

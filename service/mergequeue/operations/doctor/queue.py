"""Audits of the queue: its state, settings and branches."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from service import troubles
from service.mergequeue.engine.reasons import LIFTED_BY_PERSON
from service.mergequeue.engine.states import QueueState
from service.mergequeue.operations import vehicles
from service.mergequeue.operations.doctor.facts import QueueFacts
from service.mergequeue.wording import holds
from service.provider import audits
from service.provider.audits import Finding, audit, error, note, warning
from service.provider.values import Vehicle
from service.text import markdown, times
from service.troubles import Trouble


@dataclass(frozen=True, slots=True)
class ServiceFacts:
    """The troubles that keep the service from working on the repository.

    `unread` is why the provider could not be asked for anything; empty: it could.
    """

    troubles: tuple[Trouble, ...]
    now: datetime
    unread: str = ""


@audit("service", "Nothing keeps Headgate from working.")
def service(facts: ServiceFacts) -> Iterator[Finding]:
    """Yield an error for each trouble for which an operator must act, a note for the others.

    An error too if the provider is away, because nothing else is examined then.
    """
    for one in facts.troubles:
        found, mend = troubles.statement(one, facts.now), troubles.remedy(one)
        yield error(found, mend) if one.who_must_act == "operator" else note(found, mend)
    if facts.unread:
        yield error(f"Nothing else could be examined: {facts.unread}", "Run it again later.")


@audit("queue-state", "The queue is running, and nothing holds it.")
def queue_state(facts: QueueFacts) -> Iterator[Finding]:
    """Yield a note without a queue, and a finding for the state and each hold."""
    queue, branch = facts.queue, facts.branch
    if queue is None:
        create = audits.command("create", facts.repo, branch)
        yield note(f"`{branch}` has no queue.", f"Run {create}.")
        return
    if queue.state is not QueueState.RUNNING:
        words = markdown.plain(holds.state_text(queue, facts.now))
        yield note(words, f"Run {audits.command('resume', facts.repo, branch)}.")
    for hold in queue.holds:
        mend = "Fix the errors above; the hold ends by itself."
        if hold.reason in LIFTED_BY_PERSON:
            release = audits.command("release", facts.repo, branch, "--reason", "TEXT", hold.id)
            mend = f"Fix what it says, then run {release}."
        yield warning(holds.message(hold, branch, facts.now), mend)


@audit("repository-file", "The repository's file of settings has no fault, or there is none.")
def repository_file(facts: QueueFacts) -> Iterator[Finding]:
    """Yield a warning for each fault, because the queue goes on with older settings."""
    file = None if facts.queue is None else facts.queue.file
    for fault in () if file is None else file.faults:
        line = "" if fault.line is None else f", line {fault.line}"
        yield warning(
            f"{fault.message} ({fault.path}{line}). The settings of the last version without a "
            "fault are in force.",
            f"Change the file on `{facts.branch}`; `headgate config validate` checks it.",
        )


NAMES = {Vehicle.DRAFT_PR: "draft pull requests", Vehicle.PUSH: "pushes"}


@audit("test-branch-kind", "The queue's test branches are of the kind that CI starts on.")
def vehicle_kind(facts: QueueFacts) -> Iterator[Finding]:
    """Yield an error where the setting contradicts the workflow files."""
    advised = facts.advice.vehicle
    if advised is None:
        yield note(facts.advice.reason)
        return
    queue = facts.queue
    if queue is not None and vehicles.is_without_drafts(queue.test_branch_reason):
        if advised is Vehicle.PUSH:
            yield note(f"{queue.test_branch_reason}")
        else:
            found = f"{queue.test_branch_reason} But {facts.advice.reason}"
            yield error(found, f"Let those workflows also start on {facts.trigger}.")
    elif advised is not facts.vehicle:
        word = "true" if advised is Vehicle.DRAFT_PR else "false"
        setting = "createPrsForTestingBranches"
        path = facts.in_file.get(setting)
        mend = audits.how_to_set(facts.repo, facts.branch, setting, word, path)
        yield error(
            f"The queue shows its test branches to CI as {NAMES[facts.vehicle]}, but "
            f"{facts.advice.reason}",
            f"{mend[0].upper()}{mend[1:]}.",
        )


RESTORED_FOR = timedelta(days=14)
"""So long a restored backup is named."""


@audit("restored-backup", "The database is as new as what Headgate has done.")
def restored_backup(facts: QueueFacts) -> Iterator[Finding]:
    """Yield a warning about what is not known since a backup was restored."""
    for entry in facts.restored:
        if entry.at < facts.now - RESTORED_FOR:
            continue
        since = datetime.fromisoformat(str(entry.data["since"]))
        landed, forgotten = entry.data["landed"], entry.data["forgotten"]
        ended = entry.data.get("ended")
        left = f" {_numbers(ended)} had left the queue and left it again." if ended else ""
        yield warning(
            f"A backup was restored by {times.moment(entry.at)}. Of the time after "
            f"{times.moment(since)} it has no record of landings of {_numbers(landed)} and of "
            f"submissions of {_numbers(forgotten)}.{left}",
            "Revoke again the API tokens that were revoked since then, and compare settings, holds "
            "and members with what you remember. `headgate audit` names the landings.",
        )


def _numbers(found: object) -> str:
    """Return pull requests by number, few of them."""
    numbers = [int(each) for each in found] if isinstance(found, list | dict) else []
    shown = ", ".join(f"#{each}" for each in sorted(numbers)[:NAMED_MAX])
    more = f" and {len(numbers) - NAMED_MAX} more" if len(numbers) > NAMED_MAX else ""
    return f"{shown}{more}" if numbers else "no pull request"


NAMED_MAX = 5


@audit("leftover-branches", "Every branch under `headgate/` belongs to a run of this service.")
def leftover_branches(facts: QueueFacts) -> Iterator[Finding]:
    """Yield one warning that names the branches."""
    if facts.leftovers:
        names = " ".join(facts.leftovers[:NAMED_MAX])
        yield warning(
            f"{len(facts.leftovers)} branches under `headgate/` belong to no run of this service: "
            f"{names}. Another tool or another installation of Headgate uses the same names.",
            "If no other Headgate works in this repository, delete them: `git push origin "
            f"--delete {names}`.",
        )

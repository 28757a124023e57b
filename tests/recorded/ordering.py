"""Facts of a recording about order and effect, each as the set of what was seen."""

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tests.recorded.recordings import Call, Recording, Sent

LATE = 6
"""So many entries after a call its events have been recorded, too."""

Fact = Callable[[Recording], set[str]]
Entries = Sequence[Call | Sent]


def _cases(recording: Recording) -> Iterator[Entries]:
    yield from recording.cases().values()


def _runs(recording: Recording) -> Iterator[list[Sent]]:
    """The deliveries about each check run, in their order."""
    for entries in _cases(recording):
        found: dict[int, list[Sent]] = {}
        for one in entries:
            if isinstance(one, Sent) and one.event == "check_run":
                found.setdefault(one.payload["check_run"]["id"], []).append(one)
        yield from found.values()


def created_against_completed(recording: Recording) -> set[str]:
    """A check run made as completed: which of its two events comes first."""
    seen = set()
    for run in _runs(recording):
        actions = [one.payload["action"] for one in run]
        is_made_completed = run[0].payload["check_run"]["status"] == "completed"
        if is_made_completed and {"created", "completed"} <= set(actions):
            seen.add(f"`{actions[0]}` first")
    return seen


def completed_again(recording: Recording) -> set[str]:
    """A completed check run is completed again: what is sent."""
    seen = set()
    for entries in _cases(recording):
        for conclusions, events in _completions(entries):
            changes = [one for one, _ in itertools.groupby(conclusions)]
            if len(changes) > 1 and events.count(changes[-1]) == changes.count(changes[-1]):
                seen.add("`completed` for another conclusion")
            elif len(changes) > 1:
                seen.add("no event for another conclusion")
            if len(conclusions) > len(changes):
                is_told = len(events) > len(changes)
                seen.add(f"{'`completed`' if is_told else 'no event'} for the same conclusion")
    return seen


def _completions(entries: Entries) -> Iterator[tuple[list[str], list[str]]]:
    """Of each check run the conclusions that calls gave it, and those of its events.

    Without those of a case that ends before an event could be recorded.
    """
    given: dict[int, list[str]] = {}
    told: dict[int, list[str]] = {}
    last: dict[int, int] = {}
    for place, one in enumerate(entries):
        run = one.answer if isinstance(one, Call) else one.payload.get("check_run")
        if not isinstance(run, dict) or run.get("conclusion") is None or "started_at" not in run:
            continue
        if isinstance(one, Sent) and one.payload["action"] == "completed":
            told.setdefault(run["id"], []).append(run["conclusion"])
        elif isinstance(one, Call):
            given.setdefault(run["id"], []).append(run["conclusion"])
            last[run["id"]] = place
    for number, conclusions in given.items():
        if len(entries) - last[number] > LATE:
            yield conclusions, told.get(number, [])


def _places(entries: Entries, kind: str) -> Iterator[tuple[int, Any]]:
    """Place and payload of each delivery of a kind."""
    for place, one in enumerate(entries):
        if isinstance(one, Sent) and one.kind == kind:
            yield place, one.payload


def _pushes(entries: Entries, branch: str, sha: str) -> list[int]:
    """The places of pushes of a commit to a branch."""
    wanted = (f"refs/heads/{branch}", sha)
    return [
        place for place, one in _places(entries, "push") if (one["ref"], one["after"]) == wanted
    ]


def _first(one: str, places: list[int], other: str, others: list[int]) -> set[str]:
    if not places or not others:
        return set()
    return {f"`{one}` first" if places[0] < others[0] else f"`{other}` first"}


def merged_against_push(recording: Recording) -> set[str]:
    """A merge: whether `pull_request closed` or the push of the target comes first."""
    seen: set[str] = set()
    for entries in _cases(recording):
        for place, payload in _places(entries, "pull_request.closed"):
            pull = payload["pull_request"]
            if pull["merged"]:
                pushed = _pushes(entries, pull["base"]["ref"], pull["merge_commit_sha"])
                seen |= _first("closed", [place], "push", pushed)
    return seen


def closed_against_deleted(recording: Recording) -> set[str]:
    """A branch of an open pull request is deleted: which of the two events comes first."""
    seen: set[str] = set()
    for entries in _cases(recording):
        pulls = [(at, one["pull_request"]) for at, one in _places(entries, "pull_request.closed")]
        closed = {pull["head"]["ref"]: at for at, pull in pulls if not pull["merged"]}
        for place, push in _places(entries, "push"):
            branch = push["ref"].removeprefix("refs/heads/")
            if push["deleted"] and branch in closed:
                seen |= _first("closed", [closed[branch]], "push deleted", [place])
    return seen


def synchronize_against_push(recording: Recording) -> set[str]:
    """A push to a pull request: which of the two events comes first."""
    return _against_push(recording, "pull_request.synchronize")


def opened_against_push(recording: Recording) -> set[str]:
    """A pull request of a new branch: which of the two events comes first."""
    return _against_push(recording, "pull_request.opened")


def _against_push(recording: Recording, kind: str) -> set[str]:
    seen: set[str] = set()
    for entries in _cases(recording):
        for place, payload in _places(entries, kind):
            head = payload["pull_request"]["head"]
            pushed = _pushes(entries, head["ref"], head["sha"])
            seen |= _first(kind.rpartition(".")[2], [place], "push", pushed)
    return seen


def suites_of_a_commit(recording: Recording) -> set[str]:
    """How many `check_suite requested` of our App come for one commit."""
    seen = set()
    for entries in _cases(recording):
        shas = [
            one.payload["check_suite"]["head_sha"]
            for one in entries
            if isinstance(one, Sent) and one.kind == "check_suite.requested"
        ]
        seen |= {f"{shas.count(sha)} for one commit" for sha in shas}
    return seen


def _mergeability(kind: str, *, merged: bool = False) -> Fact:
    def seen(recording: Recording) -> set[str]:
        pulls = [one.payload["pull_request"] for one in recording.deliveries if one.kind == kind]
        return {
            f"{_json(pull.get('mergeable'))} and `{pull.get('mergeable_state')}`"
            for pull in pulls
            if bool(pull.get("merged")) is merged
        }

    return seen


def _json(value: bool | None) -> str:
    return f"`{json.dumps(value)}`"


def _senders(event: str) -> Fact:
    """Which kinds of accounts send an event that our App caused."""

    def seen(recording: Recording) -> set[str]:
        return {
            f"a {one.payload['sender']['type']}"
            for one in recording.deliveries
            if one.event == event and str(one.payload[event]["app"]["id"]) == recording.app_id
        }

    return seen


def app_of_our_comments(recording: Recording) -> set[str]:
    """What `performed_via_github_app` says of a comment of our App."""
    login = f"{recording.slug}[bot]"
    comments = [one.payload["comment"] for one in recording.deliveries if "comment" in one.payload]
    comments += [one.answer for one in recording.calls if one.kind == "POST /issues/N/comments 201"]
    return {
        "`null`" if one["performed_via_github_app"] is None else "the App"
        for one in comments
        if one["user"]["login"] == login and "performed_via_github_app" in one
    }


def made_merges(recording: Recording) -> set[str]:
    """Author, committer and signature of a commit that POST /merges made."""
    login = f"{recording.slug}[bot]"
    return {
        f"author {'the App' if one.answer['author']['login'] == login else 'another'}, "
        f"{len(one.answer['parents'])} parents, "
        f"{'signed' if one.answer['commit']['verification']['verified'] else 'unsigned'}"
        for one in recording.calls
        if one.kind == "POST /merges 201"
    }


def refusals(recording: Recording) -> set[str]:
    """Call, status and words of each refusal of a call that GitHub was recorded to refuse."""
    return {
        f"{one.kind} `{one.answer['message']}`"
        for one in recording.calls
        if one.kind in REFUSED and isinstance(one.answer, dict)
    }


REFUSED = (
    "GET /pulls/N 404",
    "GET /branches/BRANCH 404",
    "GET /branches/BRANCH/protection 404",
    "GET /pulls/N/merge 404",
    "POST /git/refs 422",
    "POST /merges 409",
)

FACTS: dict[str, Fact] = {
    "check run made completed": created_against_completed,
    "check run completed again": completed_again,
    "merge": merged_against_push,
    "deleted branch of a pull request": closed_against_deleted,
    "push to a pull request": synchronize_against_push,
    "pull request of a new branch": opened_against_push,
    "suites": suites_of_a_commit,
    "mergeability when opened": _mergeability("pull_request.opened"),
    "mergeability when closed": _mergeability("pull_request.closed"),
    "mergeability when merged": _mergeability("pull_request.closed", merged=True),
    "sender of check runs": _senders("check_run"),
    "sender of check suites": _senders("check_suite"),
    "performed_via_github_app of our comments": app_of_our_comments,
    "merge by the API": made_merges,
    "refusals": refusals,
}

"""Texts about a check that is red on a target branch (docs/design/red-target.md). Pure."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from service.mergequeue.breaks.search import Break, End, Probe, RevertState
from service.notifications.messages import Message, message_of
from service.text import markdown
from service.vocabulary import Sha

TITLE_MAX = 250

SENTENCES: dict[End, str] = {
    End.FLAKE: "The check passes on the same commit: it was a flake.",
    End.REPAIRED: "A later commit passes.",
    End.REVERTED: "The revert has landed and the check passes.",
    End.OUTSIDE: (
        "The commit that passed before fails now, so the reason is outside of the repository."
    ),
    End.UNSTEADY: "The check fails and passes by turns, so no commit can be named.",
    End.SILENT: "The check does not run on pushes to headgate/merge/dry-test/**.",
    End.SPENT: "All runs of the search are used.",
    End.STILL_RED: "The revert has landed and the check still fails, so there is a second reason.",
    End.UNWATCHED: "The check is not watched any more.",
}


def message(name: str, one: Break, fields: Mapping[str, object], at: datetime) -> Message:
    """Return an event about a break; `fields` are those of its queue."""
    culprit = one.culprit_commit
    suspects = (one.commits[place].pr for place in one.suspects)
    return message_of(
        name,
        at,
        {
            **fields,
            "check": markdown.cleaned(one.check.name),
            "report_url": one.url,
            "red_commit": one.commits[one.last].sha,
            "culprit_commit": culprit and culprit.sha,
            "culprit_pr_number": culprit and culprit.pr,
            "revert_pr_number": one.revert and one.revert.number,
            "suspects": [number for number in suspects if number is not None],
            "reason_message": situation(one),
        },
    )


def events_between(before: Break | None, after: Break) -> Iterator[str]:
    """Return the names of the events that a change is; `before` None: it was opened."""
    if before is None:
        yield "target.red"
    if (before is None or before.is_searching) and not after.is_searching and after.is_open:
        yield "target.culprit"
    if (before is None or before.is_open) and not after.is_open:
        yield "target.green"


def situation(one: Break) -> str:
    """Return where a break stands, in one sentence or two."""
    if one.stopped is not None:
        return SENTENCES[one.stopped]
    if one.culprit is None:
        return "Headgate searches for the commit that broke it."
    return f"{_culprit(one)} broke it. {_revert(one)}"


def culprit_comment(one: Break, branch: str, web_url: str) -> str:
    """Return the comment on the culprit's pull request."""
    return (
        f"**{markdown.code(one.check.name)} fails on {markdown.code(branch)} since this pull "
        f"request landed.** {_revert(one)}\n\n{_proof(one, web_url)}"
    )


def revert_title(one: Break) -> str:
    """Return the title of the revert's pull request."""
    return f"Revert #{_pr_of(one)}: {one.check.name} fails since"[:TITLE_MAX]


def revert_message(one: Break) -> str:
    """Return the message of the revert's commit, with git's own sentence."""
    return f"{revert_title(one)}\n\nThis reverts commit {_sha_of(one)}.\nReverts #{_pr_of(one)}"


def revert_body(one: Break, branch: str, web_url: str) -> str:
    """Return the text of the revert's pull request."""
    return (
        f"Reverts #{_pr_of(one)}\n\nThis reverts commit {_sha_of(one)}.\n\n"
        f"{markdown.code(one.check.name)} fails on {markdown.code(branch)} since that landed.\n\n"
        f"{_proof(one, web_url)}\n\n"
        "Headgate opened this pull request and submitted it as urgent. It lands by the rules of "
        "the queue, and is closed if the check passes again before that."
    )


def _culprit(one: Break) -> str:
    number = _pr_of(one)
    return f"Commit {_sha_of(one)[:12]}" if number is None else f"#{number}"


def _pr_of(one: Break) -> int | None:
    return None if one.culprit_commit is None else one.culprit_commit.pr


def _sha_of(one: Break) -> Sha:
    return one.commits[one.culprit or 0].sha


def _revert(one: Break) -> str:
    revert = one.revert
    if revert is None:
        return "Revert it, or repair it by another pull request."
    if revert.state is RevertState.OPEN:
        if revert.why:
            why = markdown.cleaned(revert.why, 300)
            return f"#{revert.number} reverts it. The queue did not take that: {why}"
        return f"#{revert.number} reverts it and is in the queue as urgent."
    if revert.state is RevertState.REFUSED:
        why = markdown.cleaned(revert.why, 300)
        return f"Headgate could not revert it: {why} Repair it by another pull request."
    if revert.state is RevertState.WANTED:
        return "Headgate opens a revert."
    return "The revert is closed."


def _proof(one: Break, web_url: str) -> str:
    place = one.culprit or 0
    red, green = one.commits[place].sha, one.commits[place - 1].sha
    return (
        f"- {_link(red, web_url)} fails each time: {_runs(one.red_runs, web_url)}\n"
        f"- {_link(green, web_url)}, the commit before it, passes: "
        f"{_runs(one.green_runs, web_url)}\n"
        f"- [the report]({one.url}) that began the search"
    )


def _runs(probes: tuple[Probe, ...], web_url: str) -> str:
    return ", ".join(_link(each.sha, web_url) for each in probes if each.sha is not None)


def _link(sha: Sha, web_url: str) -> str:
    return f"[`{sha[:12]}`]({web_url}/commit/{sha})"

"""Try on a scratch repository what GitHub's documentation leaves open.

Writes only branches under `headgate/`, one draft pull request with a comment, and a repeated
delivery; all branches are deleted at the end. Each check is a section of docs/reference/doctor.md.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from bot.github import graphql, reading, refs, testbranches
from bot.github.client import RepositoryClient
from bot.github.reading import Fields
from service.provider.audits import DryTestRequest, Finding, error, fine, note, warning
from service.provider.errors import ProviderError
from service.provider.values import Vehicle
from service.vocabulary import Sha

WITHIN_S = 120.0
EVERY_S = 3.0
MESSAGE = "Headgate live check: changes nothing"

METHODS = "Run `headgate queue update --set mergeMethod=SQUASH`: then the merge call lands."

T = TypeVar("T")


@dataclass(slots=True)
class Scratch:
    """The branches of one round of checks; `uid` makes their names unique."""

    client: RepositoryClient
    target: str
    tip: Sha
    uid: str
    branches: list[str] = field(default_factory=list)

    async def commit(self) -> Sha:
        """Make an empty commit on the target's tip."""
        return await testbranches.empty_commit(self.client, self.tip, f"{MESSAGE} ({self.uid})")

    async def branch(self, kind: str, sha: Sha) -> str:
        """Make a branch, which is deleted at the end."""
        name = f"headgate/{kind}/live/{self.uid}-{len(self.branches)}"
        self.branches.append(name)
        await refs.create_branch(self.client, name, sha)
        return name

    async def wait(self, look: Callable[[], Awaitable[T | None]]) -> tuple[T | None, float]:
        """Look until there is something, two minutes at most; what there is, and the seconds."""
        clock = self.client.clock
        start_s = clock.monotonic_s()
        while True:
            found, passed_s = await look(), clock.monotonic_s() - start_s
            if found is not None or passed_s >= WITHIN_S:
                return found, passed_s
            await clock.sleep(EVERY_S)

    async def runs(self, sha: Sha) -> list[Fields] | None:
        """Return the workflow runs of a commit; None while there are none."""
        listed, _ = await self.client.listed("/actions/runs", "workflow_runs", {"head_sha": sha})
        return list(listed) or None


Check = Callable[[Scratch], Awaitable[Finding]]


async def confirm(client: RepositoryClient, target: str, uid: str) -> AsyncIterator[Finding]:
    """Yield the finding of each check as it ends, then delete what the checks made.

    Raises what reading the target's tip raises.
    """
    tip = await refs.read_tip(client, target)
    if tip is None:
        yield error(
            f"There is no branch `{target}`.",
            "Name another with `--branch`.",
            audit=next(iter(CHECKS)),
        )
        return
    scratch = Scratch(client, target, tip.sha, uid)
    try:
        for name, check in CHECKS.items():
            try:
                yield await check(scratch)
            except ProviderError as failed:
                yield error(
                    f"GitHub refused: {failed.message}", "Run `headgate doctor`.", audit=name
                )
    finally:
        for branch in scratch.branches:
            await refs.delete_branch(client, branch)


async def _ref_starts_ci(scratch: Scratch) -> Finding:
    """A branch made over the API starts workflows, each once."""
    sha = await scratch.commit()
    await scratch.branch("merge", sha)
    runs, after_s = await scratch.wait(lambda: scratch.runs(sha))
    if runs is None:
        return warning(
            f"No workflow started within {WITHIN_S:.0f} s of making a branch.",
            "Let a workflow start on pushes to `headgate/merge/**`, then run this again.",
            audit="live-branch-starts-ci",
        )
    names = [run.words("name") for run in runs]
    if len(set(names)) < len(names):
        words = f"A workflow started more than once: {', '.join(sorted(names))}."
        return warning(
            words, "Start it on pushes or on pull requests.", audit="live-branch-starts-ci"
        )
    found = f"{len(runs)} workflow runs started within {after_s:.0f} s of making a branch."
    return fine(found, audit="live-branch-starts-ci")


async def _rename_starts_ci(scratch: Scratch) -> Finding:
    """Renaming a branch starts workflows as a push does."""
    sha = await scratch.commit()
    old = await scratch.branch("temp", sha)
    new = old.replace("/temp/", "/merge/")
    scratch.branches.append(new)
    tail = f"/branches/{refs.branch_path(old)}/rename"
    await scratch.client.send("POST", tail, {"new_name": new})
    head, shown_s = await scratch.wait(lambda: refs.read_head(scratch.client, new, is_awaited=True))
    runs, started_s = await scratch.wait(lambda: scratch.runs(sha))
    if head is None or runs is None:
        what = "did not appear" if head is None else "started no workflow"
        return warning(
            f"A renamed branch {what} within {WITHIN_S:.0f} s.",
            "Run `headgate queue update --set "
            "testBranchConstructionMode=PUSH_NEW_BRANCH_FROM_TEMP`.",
            audit="live-rename-starts-ci",
        )
    words = f"A renamed branch appeared after {shown_s:.0f} s and started CI {started_s:.0f} s on."
    return fine(words, audit="live-rename-starts-ci")


async def _updates_are_atomic(scratch: Scratch) -> Finding:
    """`updateRefs` compares the old commits, and moves all branches or none."""
    client, name = scratch.client, "live-atomic-updates"
    first, second = await scratch.commit(), scratch.tip
    moved, deleted = await scratch.branch("temp", second), await scratch.branch("temp", second)
    node = await graphql.repository_node(client)
    wrong = [
        graphql.RefUpdate(moved, first, first),
        graphql.RefUpdate(deleted, second, graphql.NO_COMMIT),
    ]
    _, troubles = await graphql.update_refs(client, node, wrong)
    heads = (await refs.read_head(client, moved), await refs.read_head(client, deleted))
    if not troubles or heads != (second, second):
        words = "`updateRefs` moved a branch although one of the old commits was wrong."
        return error(words, METHODS, audit=name)
    right = [graphql.RefUpdate(moved, second, first), wrong[1]]
    _, troubles = await graphql.update_refs(client, node, right)
    if troubles:
        words = f"`updateRefs` refused a correct update: {troubles[0].message}."
        return warning(words, METHODS, audit=name)
    return fine("`updateRefs` compares old commits, and moves all branches or none.", audit=name)


async def _draft_closes(scratch: Scratch) -> Finding:
    """Deleting a test branch closes its draft; a comment needs no more rights than we have."""
    client, sha = scratch.client, await scratch.commit()
    branch = await scratch.branch("merge", sha)
    number = await testbranches.open_draft(
        client,
        DryTestRequest(
            repo=client.repo,
            target=scratch.target,
            tip=scratch.tip,
            branch=branch,
            vehicle=Vehicle.DRAFT_PR,
            message=MESSAGE,
            title=MESSAGE,
            body=MESSAGE,
        ),
    )
    await client.create("POST", f"/issues/{number}/comments", {"body": MESSAGE})

    async def mergeable() -> Fields | None:
        pull = (await client.get(f"/pulls/{number}")).fields
        return pull if "mergeable" in pull.names() and pull.flag("mergeable") else None

    async def closed() -> str | None:
        state = (await client.get(f"/pulls/{number}")).fields.words("state")
        return state if state == "closed" else None

    _, known_s = await scratch.wait(mergeable)
    await refs.delete_branch(client, branch)
    state, closed_s = await scratch.wait(closed)
    if state is None:
        words = f"Deleting a test branch did not close #{number} within {WITHIN_S:.0f} s."
        return warning(words, "Close it by hand.", audit="live-draft-closes")
    return fine(
        f"#{number} took a comment, was mergeable after {known_s:.0f} s, and was closed "
        f"{closed_s:.0f} s after its branch was deleted.",
        audit="live-draft-closes",
    )


async def _commits_are_signed(scratch: Scratch) -> Finding:
    """GitHub signs the commits that an App makes over the API."""
    sha = await scratch.commit()
    made = (await scratch.client.get(f"/commits/{sha}")).fields
    if reading.is_signed(made):
        return fine("GitHub signs the commits of test branches.", audit="live-signatures")
    words = "GitHub does not sign the commits that the App makes."
    return warning(words, "Require no signatures of `headgate/**/*`.", audit="live-signatures")


async def _redelivery_keeps_its_id(scratch: Scratch) -> Finding:
    """A repeated delivery has the id of the first."""
    github, name = scratch.client.github, "live-redelivery"
    path = "/app/hook/deliveries?per_page=100"
    listed = (await github.app_call("GET", path)).objects
    if not listed:
        return note("GitHub has delivered nothing yet, so there is nothing to repeat.", audit=name)
    newest = listed[0]
    await github.app_call("POST", f"/app/hook/deliveries/{newest.id('id')}/attempts")

    async def again() -> Fields | None:
        seen = (await github.app_call("GET", path)).objects
        same = [one for one in seen if one.text("guid") == newest.text("guid")]
        return next((one for one in same if one.flag("redelivery")), None)

    found, after_s = await scratch.wait(again)
    if found is None:
        words = f"No repeated delivery with the same id appeared within {WITHIN_S:.0f} s."
        return warning(words, "Nothing: the sweeps read the same facts, only later.", audit=name)
    return fine(f"A repeated delivery came after {after_s:.0f} s under the same id.", audit=name)


CHECKS: dict[str, Check] = {
    "live-branch-starts-ci": _ref_starts_ci,
    "live-rename-starts-ci": _rename_starts_ci,
    "live-atomic-updates": _updates_are_atomic,
    "live-draft-closes": _draft_closes,
    "live-signatures": _commits_are_signed,
    "live-redelivery": _redelivery_keeps_its_id,
}

"""The history of a target as an audit reads it: one `git log`, and a few objects."""

from datetime import UTC, datetime

from bot.cli.verifying.repository import Repository
from bot.github.gitbuild.mirror import base_ref
from service.mergequeue.auditing import target
from service.mergequeue.auditing.records import BranchCommit, History, QueueRows
from service.mergequeue.engine.replacing import replace
from service.vocabulary import Sha

BRANCHES = ("refs/remotes/origin/{}", "refs/heads/{}")
"""The full names of a branch: in a clone, and in the repository itself."""

_FIELDS = ("%H", "%T", "%P", "%an", "%ae", "%ct", "%s", "%(trailers:key=Headgate-Run)")
_FORM = "".join(f"{each}%x00" for each in _FIELDS)
"""No field of a commit can have a NUL."""


def read(repository: Repository, rows: QueueRows) -> History | None:
    """Return the history of a queue's target; None if the repository does not have the branch."""
    branch = rows.queue.branch
    names = [*(each.format(branch) for each in BRANCHES), f"refs/headgate/{base_ref(branch)}"]
    top = next((name for name in names if repository.has(f"{name}^{{commit}}")), None)
    if top is None:
        return None
    landed = target.landed(rows)
    below = landed[0].expected_parent if landed else None
    if below is not None and not repository.contains(top, below):
        below = None
    fields = repository.log(below, top, _FORM).split("\0")
    commits = tuple(_commit(*each) for each in zip(*[iter(fields)] * len(_FIELDS), strict=False))
    found = {one.sha for one in commits}
    strays = [str(row.landed_sha) for row in landed if row.landed_sha not in found]
    history = History(
        place=f"{repository.path} ({top})",
        start=below,
        commits=commits,
        elsewhere=frozenset(Sha(each) for each in repository.of_these(strays)),
    )
    return replace(history, same_changes=_same_changes(repository, rows, history))


def _commit(*fields: str) -> BranchCommit:
    sha, tree, parents, author, email, seconds, subject, trailers = fields
    return BranchCommit(
        sha=Sha(sha.strip()),
        tree=Sha(tree),
        parents=tuple(Sha(each) for each in parents.split()),
        author=author,
        email=email,
        subject=subject,
        at=datetime.fromtimestamp(int(seconds), UTC),
        claims=bool(trailers),
    )


def _same_changes(repository: Repository, rows: QueueRows, history: History) -> dict[int, bool]:
    """Compare what landed beside other lanes with what was tested, where the trees are there."""
    found = {}
    for asked in target.lane_questions(rows, history):
        tested = repository.change(*asked.tested)
        landed = repository.change(*asked.landed)
        if tested is not None and landed is not None:
            found[asked.landing] = tested == landed
    return found

"""Names, messages and texts of test branches (docs/design/provider.md 7, 7.1, 7.4). Pure."""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime

from service.mergequeue.engine.model import Run
from service.mergequeue.engine.states import PROBE_SLOTS
from service.vocabulary import Sha

PREFIX = "headgate/"
"""Of every branch that is ours."""
TITLE_MAX = 250
NAMED_MAX = 10
"""Pull requests that a title names; the body names all."""
_TEST_BRANCH = re.compile(r"headgate/merge/(?:pr-[0-9]+|tip)/([0-9a-f-]+?)(?:-bisection)?")
_SCRATCH = re.compile(r"headgate/temp/(?:pr-[0-9]+|tip)/([0-9a-f-]+?)(?:-bisection)?")
_DRY_TEST = re.compile(r"headgate/merge/dry-test/([0-9]{9,11})-[0-9a-f-]{36}")
SKIP = re.compile(r"\[(skip ci|ci skip|no ci|skip actions|actions skip)\]", flags=re.IGNORECASE)
_SKIP_TRAILER = re.compile(r"^skip-checks:.*$", flags=re.IGNORECASE | re.MULTILINE)


def test_branch(run: Run) -> str:
    """Return the run's test branch, without `refs/heads/`."""
    return f"{PREFIX}merge/{_own(run)}"


def run_id_of(branch: str) -> str | None:
    """Return the id of the run whose test branch has this name; None for any other branch."""
    found = _TEST_BRANCH.fullmatch(branch)
    return None if found is None else found[1]


def made_for(branch: str) -> str | None:
    """Return the id of the run whose test branch or temporary branch has this name; else None."""
    found = _SCRATCH.fullmatch(branch)
    return run_id_of(branch) if found is None else found[1]


def is_of_test(branch: str) -> bool:
    """Return whether a branch of this name is made for a test, of a run or a dry one."""
    return run_id_of(branch) is not None or end_of_dry_test(branch) is not None


def scratch_branch(run: Run) -> str:
    """Return the temporary branch on which its merges are made."""
    return f"{PREFIX}temp/{_own(run)}"


def _own(run: Run) -> str:
    """Return the run's own part of the name, with the first pull request that it tests."""
    if not run.prs:
        return f"tip/{run.id}"
    suffix = "-bisection" if run.kind in PROBE_SLOTS else ""
    return f"pr-{run.prs[0]}/{run.id}{suffix}"


def dry_test_branch(until: datetime, uid: str) -> str:
    """Return the branch of a dry test; its name says until when it is needed."""
    return f"{PREFIX}merge/dry-test/{int(until.timestamp())}-{uid}"


def end_of_dry_test(branch: str) -> datetime | None:
    """Return until when a dry test's branch is needed; None for any other branch."""
    found = _DRY_TEST.fullmatch(branch)
    return None if found is None else datetime.fromtimestamp(int(found[1]), UTC)


@dataclass(frozen=True, slots=True)
class Trailers:
    """The trailers of every test commit: its run and the deployment that made it."""

    run: str
    deployment: str

    def under(self, message: str, *, joins: bool = False) -> str:
        """Return the message with the trailers at its end; `joins`: in its last paragraph."""
        between = "\n" if joins else "\n\n"
        own = f"Headgate-Run: {self.run}\nHeadgate-Deployment: {self.deployment}"
        return f"{message}{between}{own}"


def test_message(number: int, head: Sha, target: str) -> str:
    """Return the message of a merge that never lands as it is; no `#`, so no cross-reference."""
    return f"Headgate test: merge pr-{number} at {head[:8]} into {target}"


def without_skips(text: str) -> str:
    """Defuse what would skip CI: markers in brackets, and the trailer."""
    defused = SKIP.sub(lambda found: f"({found.group(1)})", text)
    return _SKIP_TRAILER.sub("", defused).strip()


TIP_TITLE = "headgate: test the tip of {target}"
TIP_MESSAGE = "Headgate test of the tip of {target}: changes nothing"
TIP_BODY = (
    "Opened by Headgate to test the tip of the branch, which has a tree that no test run had. It "
    "changes nothing and closes by itself. Do not merge or push."
)


PROBE_MESSAGE = "Headgate test of {commit} of {target}: changes nothing\n\nBranch: {branch}"
"""With the branch: equal commits of one second are one commit, which has the reports of all."""


def revert_branch(number: int, landed: Sha) -> str:
    """Return the branch of the revert of a pull request that landed with this commit."""
    return f"{PREFIX}revert/pr-{number}-{landed[:8]}"


def green_branch(target: str) -> str:
    """Return our branch that follows the newest verified commit of a target."""
    return f"{PREFIX}green/{target}"


def landing_title(number: int, source: str) -> str:
    """Return the title of a merge that may land, where the queue sets none."""
    return f"Merge pull request #{number} from {source}"


def draft_title(run: Run, target: str) -> str:
    """Return the title of the draft pull request, with the first few of many pull requests."""
    named = run.prs[:NAMED_MAX]
    numbers = ", ".join(f"pr-{number}" for number in named)
    more = f" and {len(run.prs) - len(named)} more" if len(named) < len(run.prs) else ""
    return f"headgate: test {numbers}{more} on {target}"[:TITLE_MAX]


def draft_body(run: Run, target: str, failed_before: tuple[str, ...] = ()) -> str:
    """Return the body of the draft pull request: two sentences, and a block for programs.

    No `#n` outside code and no `@name`, so that nothing appears on other pull requests.
    `failed_before` are the checks whose failure a bisection looks into.
    """
    numbers = ", ".join(f"`#{number}`" for number in run.prs)
    block = {
        "headgate": 1,
        "run": run.id,
        "target": target,
        "base": run.base_tip.sha,
        "predecessors": [{"number": one.pr, "head": one.head} for one in run.base],
        "tested": [{"number": one.pr, "head": one.head} for one in run.entries],
        "bisection": run.kind in PROBE_SLOTS,
        "failed_before": list(failed_before),
    }
    return (
        f"Opened by Headgate to test {numbers}. It closes by itself. Do not merge or push.\n\n"
        f"```json\n{json.dumps(block, indent=2)}\n```\n"
    )

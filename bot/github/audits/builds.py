"""Audit of the way test branches are built."""

from collections.abc import Iterator

from bot.github.gitbuild.builder import BLOBLESS_KIB_MAX, BuilderState, Failure
from bot.github.gitbuild.command import VERSION_MIN
from bot.github.gitbuild.mirror import Reason
from bot.github.options import BuildMethod
from service.provider.audits import Finding, audit, note, warning

GIB = 1 << 30
MIN = ".".join(map(str, VERSION_MIN))
BY_REST = "so GitHub's REST API builds them, with one call or more for each pull request of a run"
OR_REST = "or set HEADGATE_BUILD_METHOD=rest"

# What failed, and its mend.
FAILURES = {
    Reason.NOT_MADE: (
        "The mirror of the repository could not be made",
        "Let the machine of the service reach the repository by git over HTTPS",
    ),
    Reason.PUSH_RULE: (
        "A rule of the repository refused a push of test branches",
        "Exclude the branches `headgate/**/*` from that rule by pattern, or let the App bypass it",
    ),
    Reason.PUSH_HOOK: (
        "A pre-receive hook of the server declined a push of test branches",
        "Let the hook accept branches under `headgate/`",
    ),
    Reason.PUSH_DENIED: (
        "GitHub did not let the App push test branches",
        "Give the installation of the App the permission `contents: write`",
    ),
}
OTHERWISE = (
    "Git failed to build a test branch",
    "Fix what git said; the log event `test_branch_method` names the run",
)


@audit("git-builds", "Test branches can be built as `HEADGATE_BUILD_METHOD` says.")
def git_builds(facts: BuilderState) -> Iterator[Finding]:
    """Yield what keeps git from building; nothing if the setting itself chooses the REST API."""
    if facts.method is BuildMethod.REST:
        return
    if facts.version < VERSION_MIN:
        has = "has no git"
        if facts.version != (0, 0):
            has = f"has git {'.'.join(map(str, facts.version))}, and test branches need {MIN}"
        mend = (
            f"Install git {MIN} or newer there and restart the service, or set "
            "HEADGATE_BUILD_METHOD=rest."
        )
        yield warning(f"The machine of the service {has}, {BY_REST}.", mend)
        return
    if facts.size_kib > BLOBLESS_KIB_MAX and facts.method is BuildMethod.AUTO:
        size = f"The repository has {facts.size_kib >> 20} GiB, {BY_REST}."
        mend = "If a mirror without file contents is not too large, set HEADGATE_BUILD_METHOD=git."
        yield note(size, mend)
    elif not facts.has_room:
        used = (
            f"The mirror of the repository needs about {_gib(facts.needed)} GiB. The mirrors take "
            f"{_gib(facts.used)} of {_gib(facts.bytes_max)} GiB, and the disk has "
            f"{_gib(facts.free)} GiB left, {BY_REST}."
        )
        yield warning(used, "Make room on the disk, or raise HEADGATE_MIRRORS_MAX_GB.")
    if facts.is_being_made:
        found = "The mirror of the repository is being made; until it is there, GitHub's REST API"
        yield note(f"{found} builds test branches.")
    if facts.failure is not None:
        yield _failed(facts.failure, is_resting=facts.is_resting)
    if facts.disagreed:
        found = f"Git found three conflicts in a day that GitHub does not have, {BY_REST}."
        mend = "The log event `build_disagreement` names the runs; git is tried again in a day."
        yield note(found, mend)


def _failed(failure: Failure, *, is_resting: bool) -> Finding:
    what, mend = FAILURES.get(failure.reason, OTHERWISE)
    tried = "twice in the last hour" if is_resting else "in the last hour"
    said = f" It said: {failure.words.rstrip('.')}." if failure.words else ""
    again = "Git is tried again within an hour." if is_resting else "Git is tried again each time."
    return warning(f"{what} {tried}, {BY_REST}.{said}", f"{mend}, {OR_REST}. {again}")


def _gib(size: int) -> str:
    return f"{size / GIB:.1f}"

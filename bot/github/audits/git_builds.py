"""Whether git can build the test branches of the repository, or the REST API has to."""

from collections.abc import Iterator

from bot.github.gitbuild.builder import BLOBLESS_KIB_MAX, BuilderState
from bot.github.gitbuild.command import VERSION_MIN
from bot.github.options import BuildMethod
from service.provider.audits import Finding, note, warning

ID = "git-builds"
FINE = "Test branches can be built as `HEADGATE_BUILD_METHOD` says."

GIB = 1 << 30
MIN = ".".join(map(str, VERSION_MIN))
BY_REST = "so GitHub's REST API builds them, with one call or more for each pull request of a run"


def decide(facts: BuilderState) -> Iterator[Finding]:
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
        yield warning(ID, f"The machine of the service {has}, {BY_REST}.", mend)
        return
    if facts.size_kib > BLOBLESS_KIB_MAX and facts.method is BuildMethod.AUTO:
        size = f"The repository has {facts.size_kib >> 20} GiB, {BY_REST}."
        mend = "If a mirror without file contents is not too large, set HEADGATE_BUILD_METHOD=git."
        yield note(ID, size, mend)
    elif not facts.has_room:
        used = (
            f"The mirror of the repository needs about {_gib(facts.needed)} GiB. The mirrors take "
            f"{_gib(facts.used)} of {_gib(facts.bytes_max)} GiB, and the disk has "
            f"{_gib(facts.free)} GiB left, {BY_REST}."
        )
        yield warning(ID, used, "Make room on the disk, or raise HEADGATE_MIRRORS_MAX_GB.")
    if facts.failed:
        tried = f"Git failed to build twice in the last hour, {BY_REST}."
        mend = "Fix what the log event `test_branch_method` says; git is tried again in an hour."
        yield warning(ID, tried, mend)
    if facts.disagreed:
        found = f"Git found three conflicts in a day that GitHub does not have, {BY_REST}."
        mend = "The log event `build_disagreement` names the runs; git is tried again in a day."
        yield note(ID, found, mend)


def _gib(size: int) -> str:
    return f"{size / GIB:.1f}"

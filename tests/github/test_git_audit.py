"""What `headgate doctor` says of git builds, by the state of the builder alone."""

from dataclasses import replace
from typing import Any

import pytest

from bot.github.audits.app import git_builds
from bot.github.gitbuild.builder import BuilderState, Failure
from bot.github.gitbuild.mirror import Reason
from bot.github.options import BuildMethod
from service.provider.audits import Severity

GIB = 1 << 30
FINE = BuilderState(
    method=BuildMethod.AUTO,
    version=(2, 39),
    size_kib=1 << 20,
    needed=GIB,
    used=2 * GIB,
    bytes_max=20 * GIB,
    free=100 * GIB,
    has_room=True,
)


def failed(reason: Reason) -> dict[str, Any]:
    return {"failure": Failure(reason, "No route.", 0.0)}


def test_nothing_is_found_where_git_builds() -> None:
    assert list(git_builds.find(FINE)) == []


@pytest.mark.parametrize(
    ("changes", "severity", "words", "mend"),
    [
        ({"version": (0, 0)}, Severity.WARNING, "has no git", "Install git 2.38"),
        ({"version": (2, 34)}, Severity.WARNING, "has git 2.34", "Install git 2.38"),
        ({"size_kib": 11 << 20}, Severity.NOTE, "has 11 GiB", "HEADGATE_BUILD_METHOD=git"),
        ({"has_room": False}, Severity.WARNING, "2.0 of 20.0 GiB", "HEADGATE_MIRRORS_MAX_GB"),
        (failed(Reason.FETCH), Severity.WARNING, "said: No route.", "test_branch_method"),
        (failed(Reason.NOT_MADE), Severity.WARNING, "mirror of the", "by git over HTTPS"),
        (failed(Reason.PUSH_RULE), Severity.WARNING, "A rule of the", "`headgate/**/*`"),
        (failed(Reason.PUSH_HOOK), Severity.WARNING, "hook", "accept branches under `headgate/`"),
        (failed(Reason.PUSH_DENIED), Severity.WARNING, "not let", "`contents: write`"),
        (
            {**failed(Reason.PUSH), "is_resting": True},
            Severity.WARNING,
            "failed to build a test branch twice in the last hour",
            "again within an hour",
        ),
        ({"is_being_made": True}, Severity.NOTE, "until it is there", ""),
        ({"disagreed": True}, Severity.NOTE, "three conflicts", "build_disagreement"),
    ],
)
def test_what_keeps_git_from_building_is_named_with_its_mend(
    changes: dict[str, Any], severity: Severity, words: str, mend: str
) -> None:
    (found,) = git_builds.find(replace(FINE, **changes))
    assert found.severity is severity
    assert words in found.found
    assert mend in found.mend
    chosen = replace(FINE, method=BuildMethod.REST, **changes)
    assert list(git_builds.find(chosen)) == []

"""The image: what its Containerfile says is done, and what comes of it runs as it has to."""

import os
import re
import shlex

import pytest

from tests.deploy import containerfile

UNREACHABLE = re.compile("Temporary failure resolving|NewConnectionError|Max retries exceeded")
SLOWEST_S = 900
"""Packages come from two registries."""


@pytest.mark.first
@pytest.mark.timeout(SLOWEST_S)
def test_the_image_builds_and_serves_read_only_as_a_user_without_rights(tmp_path, needs):
    needs("mount")
    stages = tmp_path / "stages"
    stages.mkdir()
    containerfile.context(tmp_path / "context")
    build, image = containerfile.built(stages, tmp_path / "context")
    run = shlex.quote(f"set -eu\n{containerfile.started(stages, image)}")
    done = containerfile.play(tmp_path, f"{build}\nunshare --net sh -c {run}")
    said = done.stdout + done.stderr
    if UNREACHABLE.search(said) and os.environ.get("HEADGATE_REQUIRE_ALL") != "1":
        pytest.skip("needs registries of packages: they cannot be reached")
    assert done.returncode == 0, said
    assert "Read-only file system" in done.stdout
    assert "/setup?token=" in done.stdout
    assert done.stdout.rstrip().endswith("HEALTHY")
    assert '"event":"stopping"' in done.stderr

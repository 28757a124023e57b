"""The image: what its Containerfile says is done, and what comes of it runs as it has to."""

import shlex

import pytest

from tests.deploy import containerfile


@pytest.mark.first
def test_the_image_builds_and_serves_read_only_as_a_user_without_rights(tmp_path, needs):
    needs("mount")
    context = tmp_path / "context"
    containerfile.context(context)
    stages = tmp_path / "stages"
    stages.mkdir()
    build, image = containerfile.built(stages)
    build = build.replace(f"{stages}/context", str(context))
    run = shlex.quote(f"set -eu\n{containerfile.started(stages, image)}")
    done = containerfile.play(tmp_path, f"{build}\nunshare --net sh -c {run}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Read-only file system" in done.stdout
    assert done.stdout.rstrip().endswith("HEALTHY")
    assert "/setup?token=" in done.stdout
    assert '"event":"stopping"' in done.stderr

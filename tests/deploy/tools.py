"""The tools that read the files of `deploy`, as operators start them."""

import functools
import os
import subprocess

import yaml

from tests.harness.needs import DEPLOY_TOOLS, needs
from tests.tidy.tree import ROOT

SITE = {"SITE": "queue.example.org"}
"""What a compose file must be given."""


def run(*command, **environment):
    """What a tool prints; the test fails with all that it says when it is not content."""
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@functools.cache
def composed(name):
    """A compose file as the tool that runs it has it."""
    needs("deploy tools")
    file = ROOT / f"deploy/compose/{name}.yaml"
    tool = DEPLOY_TOOLS / "bin/docker-compose"
    return yaml.safe_load(run(tool, "--file", file, "config", **SITE))


@functools.cache
def rendered(name):
    """The manifests of an overlay."""
    needs("kubectl")
    return run("kubectl", "kustomize", ROOT / f"deploy/kubernetes/{name}")


def resources(name):
    """The rendered resources by kind."""
    return {each["kind"]: each for each in yaml.safe_load_all(rendered(name))}

"""What the page about uploads shows is there, and its request is taken."""

import os
import re
import subprocess
from pathlib import Path

import yaml

from tests.contract import instance as instances

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/upload-test-results.md").read_text("utf-8")


def blocks(language):
    """The page's blocks of one language."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_step_names_inputs_that_the_action_has():
    (shown,) = [each for each in blocks("yaml") if "uses:" in each]
    step = yaml.safe_load(shown)["steps"][-1]
    folder = step["uses"].partition("@")[0].partition("/headgate/")[2]
    action = yaml.safe_load((ROOT / folder / "action.yml").read_text("utf-8"))
    needed = {name for name, each in action["inputs"].items() if each.get("required")}
    assert needed <= set(step["with"]) <= set(action["inputs"])


def test_the_request_is_taken(tmp_path, needs):
    needs("curl")
    (shown,) = [each for each in blocks("sh") if "curl" in each]
    (tmp_path / "junit.xml").write_text("<testsuite><testcase name='a'/></testsuite>")
    with instances.started(tmp_path / "instance") as own:
        known = {
            "PATH": os.environ["PATH"],
            "HEADGATE_URL": own.url,
            "HEADGATE_TOKEN": own.ci_token,
            "SHA": "a" * 40,
        }
        done = subprocess.run(
            ["bash", "-c", shown.replace('"github.com"', f'"{own.host}"')],
            cwd=tmp_path,
            env=known,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"accepted"' in done.stdout

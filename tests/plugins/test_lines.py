"""What all plug-ins of JavaScript share: silence, bounds, and the order of suspected files."""

import json
import shutil
import subprocess

import pytest

from tests.plugins.runs import PLUGINS

LINE_BYTES_MAX = 16_384
REPORTERS = ("jest/reporter.js", "vitest/reporter.js", "playwright/reporter.js")

ALL_METHODS = """
import(process.argv[1]).then(({ default: Reporter }) => {
  const reporter = new Reporter({});
  const methods = Object.keys(reporter).filter((name) => /^on/.test(name));
  if (!methods.length) throw new Error('nothing was called');
  for (const name of methods) reporter[name](null, undefined);
});
"""

RUN = """
const { begin, suspicion } = require(process.argv[1]);
const run = begin('jest');
run.start({ runnerVersion: '1', pluginVersion: '2', shard: { index: 2, count: 4 } });
const long = '\\u{1f40c}\\u001b[31m\\n'.repeat(900);
for (let at = 0; at < 50; at++) run.didNotLoad(`\\u{1f40c}${at}`, long);
for (let at = 0; at < 50; at++) run.errorOutside('', '');
const counts = { planned: 1, passed: 0, failed: 1, skipped: 0, not_run: 0 };
const is = { threshold: true, interrupted: process.argv[2] === 'yes' };
run.end({ is, counts, exitCode: null });
console.log(JSON.stringify([process.env.HEADGATE_LIVE ?? null, begin('jest')]));
"""

RANKS = """
const rank = require(process.argv[1]).suspicion();
console.log(JSON.stringify(process.argv.slice(2).map(rank)));
"""


@pytest.fixture(name="node")
def _node(needs, tmp_path):
    needs("npm")

    def run(program, *arguments, **environment):
        path = {"PATH": str(shutil.which("node")).rpartition("/")[0]}
        return subprocess.run(
            ["node", "-e", program, *map(str, arguments)],
            cwd=tmp_path,
            env={**path, **environment},
            check=True,
            capture_output=True,
            text=True,
        )

    return run


@pytest.mark.parametrize("reporter", REPORTERS)
@pytest.mark.parametrize("live", ["", "nowhere/live"], ids=["without a file", "no such file"])
def test_whatever_a_reporter_is_told_it_raises_nothing(node, tmp_path, reporter, live):
    done = node(ALL_METHODS, PLUGINS / reporter, HEADGATE_LIVE=live and str(tmp_path / live))
    assert (done.stdout, done.stderr, list(tmp_path.iterdir())) == ("", "", [])


@pytest.mark.parametrize(("interrupted", "reason"), [("no", "unloaded"), ("yes", "interrupted")])
def test_an_end_is_bounded_and_gives_the_first_reason_that_is_true(
    node, tmp_path, interrupted, reason
):
    live = tmp_path / "live"
    done = node(RUN, PLUGINS / "jest/lines.cjs", interrupted, HEADGATE_LIVE=str(live))
    assert json.loads(done.stdout) == [None, None]
    lines = live.read_bytes().splitlines()
    assert all(len(line) < LINE_BYTES_MAX for line in lines)
    start, end = map(json.loads, lines)
    assert (start["event"], start["shard"], start["run"]) == ("start", "2/4", end["run"])
    assert (end["reason"], end["exit_code"], end["shard"]) == (reason, None, "2/4")
    for name in ("unloaded", "errors_outside"):
        assert 0 < len(end[name]) <= 20
        assert len(end[name]) + end[f"{name}_more"] == 50
    assert {each["message"] for each in end["errors_outside"]} == {"an error without a message"}
    assert "\u001b" not in end["unloaded"][0]["message"]
    assert len(end["unloaded"][0]["message"]) <= 300


def test_files_are_suspected_by_their_names_in_reports(node, tmp_path):
    suspects = [
        {"name": "a", "classname": "src/b.test.js", "file": ""},
        {"name": "b", "classname": "b c", "file": "a.test.js"},
    ]
    (tmp_path / "suspects").write_text(json.dumps({"v": 1, "tests": suspects}))
    files = ("/x/a.test.js", "/x/src/b.test.js", "/x/ca.test.js", "/x/b.test.js")
    lines = PLUGINS / "jest/lines.cjs"
    done = node(RANKS, lines, *files, HEADGATE_SUSPECTS=str(tmp_path / "suspects"))
    assert json.loads(done.stdout) == [1, 0, 2, 2]
    (tmp_path / "suspects").write_text("no JSON")
    again = node(RANKS, lines, *files, HEADGATE_SUSPECTS=str(tmp_path / "suspects"))
    assert json.loads(again.stdout) == [0, 0, 0, 0]

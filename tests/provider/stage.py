"""A provider with the world behind it: people act, clocks stand still until somebody waits."""

import itertools
import json
import os
import re
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bot.github.options import BuildMethod, GitHubOptions, MirrorOptions, addresses_of
from bot.github.provider import GitHubProvider
from bot.sandbox import artifacts, ci
from bot.sandbox import auth as sandbox_auth
from bot.sandbox.app import SandboxOptions, running
from bot.sandbox.command import isolated_environment
from service.metrics.process_families import ProcessMeter
from service.provider.signals import Delivery
from service.provider.values import (
    AdvanceRequest,
    BuildRequest,
    BuildStep,
    Construction,
    LandStop,
    MergeRequest,
    Vehicle,
)
from service.vocabulary import Actor, ActorKind, MergeMethod, RepoRef, Sha
from tests.harness import faces
from tests.harness.published import Traffic
from tests.provider.contract import a_check

HOST = "github.localhost"
FULL_NAME = "octo/widgets"
START = datetime(2026, 1, 5, 9, tzinfo=UTC)
MATCHED = ("method", "path", "graphql", "times")
TRIGGERS = """
triggers: { push: [main, "headgate/merge/**"], pull_request: true }
"""
CI = f"""{TRIGGERS}
checks:
  - {{ name: unit, seconds: 3, rules: [ {{ exists: [bad.txt], conclusion: failure }} ] }}
"""


async def _nothing_is_due():
    pass


class SharedClock:
    """One time for the world and for us; waiting moves it, and does what is due by then."""

    def __init__(self, start):
        self._start = start
        self._passed_s = 0.0
        self.due = _nothing_is_due

    def now(self):
        return self._start + timedelta(seconds=self._passed_s)

    def monotonic_s(self):
        return self._passed_s

    def advance(self, seconds):
        self._passed_s += seconds

    async def sleep(self, seconds):
        self.advance(seconds)
        await self.due()


class Stage:
    """The repository octo/widgets, a provider for it, and people who act there."""

    def __init__(self, sandbox, provider, clock, options, meter):
        self.sandbox = sandbox
        self.options = options
        self.mirrors = Path() if options.mirrors is None else options.mirrors.folder
        self.meter = meter
        self.builds_by_git = options.mirrors is not None
        self.provider = provider
        self.clock = clock
        self.repo = RepoRef(HOST, "octo", "widgets")
        self.full_name = FULL_NAME
        self._runs = itertools.count(1)

    @property
    def world(self):
        return self.sandbox.world.repository(self.full_name)

    def tip(self, branch="main"):
        return Sha(self.world.git.branch(branch))

    def tree(self, sha):
        return Sha(self.world.git.objects.a_commit(sha).tree)

    def tree_with(self, tree, files):
        """A tree with these files changed; None takes one out."""
        content = {path: None if text is None else text.encode() for path, text in files.items()}
        return Sha(self.world.git.objects.tree_with(tree, content))

    def ci_run(self, head):
        """The id of the CI run that was begun for a head."""
        return next(str(run.id) for run in self.world.workflow_runs if run.head_sha == head)

    async def push_files(self, files):
        """A commit on main with these files changed, that CI leaves alone."""
        await self.act("push", branch="main", files=files, message="m [skip ci]", bypass=True)

    async def plan_ci(self, checks):
        """Another CI file on main: these checks, on pushes and pull requests."""
        lines = "".join(f"  - {check}\n" for check in checks)
        files = {".sandbox/ci.yml": f"{TRIGGERS}checks:\n{lines}"}
        await self.act("push", branch="main", files=files, message="ci [skip ci]", bypass=True)

    async def ran(self, files, **fields):
        """A pull request whose CI has ended: the id of that run, and the head."""
        _, head = await self.open(files, **fields)
        return self.ci_run(head), head

    async def run_again(self, run_id, *, failed_only=False):
        """Run CI again, until it has ended."""
        run = self._workflow_run(run_id)
        ci.rerun(self.world, run, failed_only=failed_only)
        await self.settle()

    def repeat_run(self, run_id, *, times):
        """So many more runs like this one."""
        run = self._workflow_run(run_id)
        for _ in range(times):
            self.world.workflow_runs.append(replace(run, id=self.sandbox.world.new_id()))

    def fail_jobs(self, run_id):
        """Its newest jobs failed after all."""
        for job in ci.latest_jobs(self._workflow_run(run_id)):
            job.conclusion = "failure"

    def leave(self, run_id, name, files):
        """One more artifact of a run."""
        artifacts.leave(self.sandbox.world, self._workflow_run(run_id), name, files)

    def packed(self, run_id):
        """The bytes of the newest artifact of a run."""
        return self._workflow_run(run_id).artifacts[-1].packed

    def replace_archive(self, run_id, packed):
        """Other bytes for the newest artifact of a run."""
        self._workflow_run(run_id).artifacts[-1].packed = packed

    def ci_app(self):
        """The number of the App that reports CI results."""
        return self.sandbox.world.apps[ci.CI_SLUG].id

    def forget_ci_app(self):
        """The App of the CI is deleted, and its reports name none."""
        self.sandbox.world.apps[ci.CI_SLUG].is_gone = True

    def expire_artifacts(self, run_id):
        for artifact in self._workflow_run(run_id).artifacts:
            artifact.expired = True

    def forget_artifacts(self, run_id):
        self._workflow_run(run_id).artifacts.clear()

    def _workflow_run(self, run_id):
        return next(run for run in self.world.workflow_runs if str(run.id) == run_id)

    def parents(self, sha):
        return tuple(self.world.git.objects.a_commit(sha).parents)

    async def act(self, name, by="alice", **fields):
        return await self.sandbox.act(name, by, self.full_name, **fields)

    async def open(self, files, **fields):
        """A pull request by alice; its number and head, once GitHub knows if it merges."""
        opened = await self.act("open", files=files, **fields)
        await self.settle()
        return opened["number"], Sha(opened["head"])

    async def rules(self, **rules):
        """Other rules for the repository."""
        await self.sandbox.control.rules({"repo": self.full_name, **rules})

    def ruleset(self, kind, **parameters):
        rule = {"type": kind, "parameters": parameters} if parameters else {"type": kind}
        return {
            "name": kind,
            "enforcement": "active",
            "include": ["~DEFAULT_BRANCH"],
            "rules": [rule],
        }

    def required(self, *names):
        """A ruleset that requires checks; (name, app) pins one to an App."""
        pairs = [name if isinstance(name, tuple) else (name, None) for name in names]
        checks = [
            {"context": name} | ({} if app is None else {"integration_id": app})
            for name, app in pairs
        ]
        return self.ruleset(
            "required_status_checks",
            required_status_checks=checks,
            strict_required_status_checks_policy=False,
        )

    def conversations(self):
        return {
            "required_approving_review_count": 0,
            "dismiss_stale_reviews_on_push": False,
            "require_code_owner_review": False,
            "require_last_push_approval": False,
            "required_review_thread_resolution": True,
        }

    async def blockers(self, number):
        return (await self.provider.pull_request(self.repo, number)).blockers

    async def say(self, notice):
        return await self.provider.say(self.repo, notice)

    async def say_by_another_process(self, notice):
        """What another process that serves the same database says."""
        other = GitHubProvider(self.options, self.clock, self.meter)
        try:
            return await other.say(self.repo, notice)
        finally:
            await other.close()

    def check(self, head, status, **changed):
        return a_check(head, status, **changed)

    def comments(self, number):
        return [each.body for each in self.world.issues[number].comments]

    def forget_comments(self, number):
        self.world.issues[number].comments.clear()

    def reactions(self, number):
        return [
            reaction
            for comment in self.world.issues[number].comments
            for reaction in comment.reactions
        ]

    def own_checks(self, head):
        return [
            (run.status, run.conclusion)
            for run in self.world.check_runs(head)
            if run.name == "Headgate (main)"
        ]

    def raw_commit(self, parent, author):
        """A commit with one more file by an author with this name, which may be any bytes."""
        tree = self.tree_with(self.tree(parent), {"raw.txt": "raw\n"})
        lines = [b"tree " + tree.encode(), b"parent " + parent.encode()]
        lines += [b"author " + author + b" <a@b> 1 +0000", b"committer c <c@d> 1 +0000"]
        return Sha(self.world.git.objects.write("commit", b"\n".join(lines) + b"\n\nraw\n"))

    def git_merge(self, base, head):
        """The tree that git itself makes of the two."""
        return Sha(self.git("merge-tree", "--write-tree", base, head).split()[0])

    def git(self, *words):
        folder = str(self.world.git.folder)
        done = subprocess.run(
            ["git", "-C", folder, *words], check=True, capture_output=True, text=True
        )
        return done.stdout

    def lacks(self, mirror, name):
        """Whether a mirror does not have an object of the repository."""
        sha = self.git("rev-parse", name).strip()
        asked = ["git", "-C", str(mirror), "cat-file", "-e", sha]
        environment = {**isolated_environment(), "GIT_ALLOW_PROTOCOL": "none"}
        done = subprocess.run(asked, check=False, env=environment, capture_output=True)
        return done.returncode != 0

    def add_pack(self, mirror, number):
        """One more pack in a mirror, with one object."""
        environment = {**isolated_environment(), "GIT_DIR": str(mirror)}
        commands = (
            ["git", "hash-object", "-w", "--stdin"],
            ["git", "pack-objects", "-q", str(mirror / "objects/pack/pack")],
        )
        feed = str(number).encode()
        for words in commands:
            done = subprocess.run(
                words, check=True, input=feed, env=environment, capture_output=True
            )
            feed = done.stdout

    def message(self, sha):
        return self.world.git.objects.a_commit(sha).message

    def branches(self):
        """Branches of ours and where they point."""
        listed = self.git("for-each-ref", "--format=%(refname) %(objectname)")
        pairs = [line.split() for line in listed.splitlines()]
        heads = {name.removeprefix("refs/heads/"): sha for name, sha in pairs}
        return {name: sha for name, sha in heads.items() if name.startswith("headgate/")}

    def issue(self, number):
        return self.world.issues[number]

    def issues(self):
        return set(self.world.issues)

    async def close_issue(self, number):
        """Somebody closes an issue."""
        await self.act("close", number=number)

    async def delete_issue(self, number):
        """Somebody deletes an issue."""
        del self.world.issues[number]

    def crowd_issues(self, many):
        """So many more issues of our own."""
        ours = next(each for each in self.world.issues.values() if each.via is not None)
        for number in range(many):
            copied = replace(ours, number=ours.number + 1 + number, body="", comments=[])
            self.world.issues[copied.number] = copied

    def drafts(self):
        """Open pull requests of our own."""
        return [
            number
            for number, issue in self.world.issues.items()
            if issue.open and issue.pull and issue.pull.head_ref.startswith("headgate/")
        ]

    def merges(self):
        """How many merge commits the branches have."""
        return int(self.git("rev-list", "--all", "--merges", "--count"))

    def conflicting(self, *paths):
        """The paths of a conflict where the way of building knows them exactly."""
        return paths if self.builds_by_git else ()

    def pushes(self):
        """When git pushed."""
        calls = self.sandbox.world.calls
        return [call["at"] for call in calls if call["path"].endswith("/git-receive-pack")]

    def built_by(self):
        """How test branches were built: pairs of method and reason, with their number."""
        text = self.meter.text().decode()
        listed = re.findall(r'_built_total{method="(\w+)",reason="(\w+)"} (\d+)', text)
        return {(method, reason): int(count) for method, reason, count in listed if int(count)}

    @property
    def mirror(self):
        """The folder of the repository's mirror."""
        return self.mirrors / HOST / f"{self.world.id}.git"

    async def knobs(self, **knobs):
        await self.sandbox.control.knobs(knobs)

    async def permit(self, **levels):
        """Other permissions for our App, from now on."""
        installed = next(iter(self.sandbox.world.installations.values()))
        permissions = {**installed.permissions, **levels}
        await self.act("permissions", permissions=permissions)

    async def stops(self, request, code):
        """The landing does not happen, for this reason."""
        is_merge = isinstance(request, MergeRequest)
        verb = self.provider.merge if is_merge else self.provider.advance
        stop = await verb(request)
        assert isinstance(stop, LandStop), stop
        assert stop.code is code, stop
        return stop

    async def settle(self):
        await self.sandbox.world.timeline.settle()

    async def fault(self, kind, *, nth=1, **fields):
        """A fault on calls: `nth` of those that match (None: on all), `times` from there on."""
        match = {"nth": nth, **{name: fields.pop(name, None) for name in MATCHED}}
        given = {name: value for name, value in match.items() if value not in (None, "*")}
        await self.sandbox.control.add_fault({"match": given, "fault": {"kind": kind, **fields}})

    def clear_faults(self):
        self.sandbox.world.faults.clear()

    async def tip_shown(self, nth, sha):
        """From the nth look at the target's tip on, that is what it shows."""
        move = {"as": "alice", "act": "force_push", "branch": "main", "to": sha, "bypass": True}
        act = {"repo": self.full_name, **move}
        await self.fault("before", path="*/commits/heads/*", nth=nth, act=act)

    def called(self, method, ending):
        """How often such a call came."""
        return len(
            [
                call
                for call in self.sandbox.world.calls
                if call["method"] == method and call["path"].endswith(ending)
            ]
        )

    def checks_read(self, sha):
        """How often the check runs of a commit were asked for."""
        asked = [call["body"].get("variables", {}) for call in self.calls() if call["body"]]
        return sum(sha in variables.values() for variables in asked)

    def is_write(self, call):
        if call["path"].endswith("/graphql"):
            return "mutation" in str(call["body"])
        return call["method"] != "GET"

    def uninstall(self):
        """Our App is gone from the account."""
        self.sandbox.world.installations.clear()

    def calls(self, since=0):
        """Calls of ours, but for tokens."""
        return [
            call
            for call in self.sandbox.world.calls
            if "/app/" not in call["path"] and not call["path"].endswith("/installation")
        ][since:]

    def actor(self, login="alice", kind=ActorKind.PERSON):
        return Actor(kind, login, str(self.sandbox.world.account(login).id))

    def request(self, *pulls, **changed):
        """A test branch of these (number, head) pairs on the present tip."""
        number = pulls[0][0] if pulls else 0
        run = f"00000000-0000-4000-8000-{next(self._runs):012d}"
        steps = tuple(
            BuildStep(
                each,
                head,
                f"Headgate test: merge pr-{each}\n\nHeadgate-Run: {run}",
                self.clock.now(),
                tested=True,
                commit=None,
            )
            for each, head in pulls
        )
        request = BuildRequest(
            repo=self.repo,
            run_id=run,
            deployment_id="dep",
            target="main",
            base_sha=self.tip(),
            steps=steps,
            known_trees=frozenset(),
            branch=f"headgate/merge/pr-{number}/{run}",
            scratch=f"headgate/temp/pr-{number}/{run}",
            vehicle=Vehicle.DRAFT_PR,
            construction=Construction.RENAME_TEMP_BRANCH,
            title=f"headgate: test {number} on main",
            body="Opened by Headgate.",
        )
        return replace(request, **changed)

    async def lose_deliveries(self):
        """Nobody hears what happens; ids of what was told to nobody, in order."""
        self.sandbox.world.webhook_url = "http://127.0.0.1:9/webhooks/github"
        await self.open({"lost.txt": "a\n"})
        lost = self.sent()
        assert len(lost) > 3
        return lost

    def pull_delivery(self, action, number, head):
        """What GitHub sends of a pull request in no stack."""
        content = {
            "action": action,
            "repository": {"id": 5, "full_name": self.repo.slug, "default_branch": "main"},
            "pull_request": {
                "number": number,
                "head": {"sha": head, "ref": "topic", "repo": {"id": 5}},
                "base": {"ref": "main"},
            },
        }
        body = json.dumps(content).encode()
        now = self.clock.now()
        return Delivery(self.repo.host, "d-1", "pull_request", action, "5", body, now)

    def sent(self):
        """Ids of deliveries, one for each try, in order."""
        return [attempt.guid for attempt in self.sandbox.world.attempts]

    def merging(self, number, head, method=MergeMethod.SQUASH, **changed):
        request = MergeRequest(self.repo, "main", number, head, method, self.tip())
        return replace(request, **changed)

    def advancing(self, to, test_branch, **changed):
        return replace(AdvanceRequest(self.repo, "main", self.tip(), to, test_branch), **changed)


def mirrors_in(folder, method=BuildMethod.GIT, bytes_max=1 << 30):
    """Options with which git builds; a build waits for its mirror unless `method` says AUTO."""
    return MirrorOptions(method, folder / "mirrors", bytes_max, os.environ)


@asynccontextmanager
async def on_sandbox(
    start: datetime = START,
    mirrors: MirrorOptions | None = None,
    **seeded,
) -> AsyncIterator[Stage]:
    """The GitHub adapter before the sandbox; `seeded` changes the repository.

    With `mirrors`, git builds the test branches.
    """
    clock = SharedClock(start)
    traffic = Traffic()
    chosen = SandboxOptions(clock=clock, observer=traffic, face=faces.of_this_test())
    async with running(chosen) as sandbox:
        files = {"README.md": "hello\n", "app.py": "1\n2\n3\n", ".sandbox/ci.yml": CI}
        repository = {"full_name": FULL_NAME, "files": files, **seeded}
        await sandbox.seed(repositories=[repository], people=["erin"])
        clock.due = sandbox.world.timeline.run_due
        options = GitHubOptions(
            host=HOST,
            addresses=addresses_of(HOST, sandbox.url),
            app_id=str(sandbox.app_id),
            private_keys=(sandbox_auth.private_key(),),
            webhook_secrets=(sandbox.webhook_secret,),
            write_spacing_ms=0,
            mirrors=mirrors,
        )
        meter = ProcessMeter("test", "3")
        provider = GitHubProvider(options, clock, meter)
        stage = Stage(sandbox, provider, clock, options, meter)
        try:
            await stage.settle()
            yield stage
        finally:
            await provider.close()
    traffic.check()

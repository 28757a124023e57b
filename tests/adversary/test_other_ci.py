"""Attacks by which a job of Buildkite or GitLab CI would be what it is not, and the honest way."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from service.testhealth.detector.completeness import UNPROVED
from service.testhealth.store import uploads as stored_uploads
from tests.adversary.judge import landed_on
from tests.harness import issuer as issuers
from tests.harness import other_ci
from tests.harness import reporting_ci as ci
from tests.harness.asking import Asker, asker
from tests.harness.issuer import AUDIENCE, Issuer
from tests.harness.other_ci import BUILDKITE, GITLAB, PROJECT, Vendor
from tests.harness.world import World, WorldOptions, living

WRONG = "AssertionError: 10.0 != 10.01"
GREEN = {"total": "", "mail": ""}
RED = {"total": WRONG, "mail": ""}
VENDORS = pytest.mark.parametrize("vendor", [BUILDKITE, GITLAB], ids=lambda each: each.word)


@pytest.fixture
async def issuer() -> AsyncIterator[Issuer]:
    async with issuers.issuing() as found:
        yield found


@pytest.fixture
def world_options() -> WorldOptions:
    return WorldOptions(ci=other_ci.CI, settings=other_ci.SETTINGS)


async def bound(world: World, vendor: Vendor, issuer: Issuer, **more: Any) -> Asker:
    """An admin who has bound the project to the repository."""
    await world.settle()
    admin = await asker(world)
    entry = other_ci.accepted(vendor, issuer)
    await ci.settle_tests(admin, "update-settings", report_issuers=[entry], **more)
    return admin


def tip_of(world: World) -> str:
    return str(world.repository.git.branch("main"))


@VENDORS
async def test_forged_tokens_of_another_ci_upload_nothing(
    world: World, issuer: Issuer, vendor: Vendor
) -> None:
    """Hurts every organization: anybody could send results as anybody's main branch."""
    await bound(world, vendor, issuer)
    now = int(world.clock.now().timestamp())
    good = vendor.claims(issuer, now, tip_of(world), "main")
    stranger = issuers.a_key()
    commit = "sha" if vendor is GITLAB else "build_commit"
    project = "project_path" if vendor is GITLAB else "pipeline_slug"
    unbound = "is not among the `report_issuers` of github.localhost/octo/widgets"
    forged: dict[str, tuple[dict[str, Any], str]] = {
        "another project": ({project: "acme-inc/other"}, "its project acme-inc/"),
        "no project": ({project: None}, f"its claim {project} is missing"),
        "an issuer that the token alone names": ({"iss": "http://127.0.0.1:1"}, unbound),
        "no issuer": ({"iss": None}, unbound),
        "another audience": ({"aud": "sts.amazonaws.com"}, f"with the audience {AUDIENCE}"),
        "expired": ({"exp": now - 60}, "it has expired"),
        "not valid yet": ({"nbf": now + 600}, "it is not valid yet"),
        "without nbf": ({"nbf": None}, "nbf"),
        "no commit": ({commit: None}, f"its claim {commit} is missing"),
        "a name for a commit": ({commit: "HEAD"}, f"its claim {commit} is missing or odd"),
        "no job": ({"job_id": None}, "its claim job_id is missing"),
        "a job that is a path": ({"job_id": "302/../303"}, "its claim job_id is missing or odd"),
    }
    for why, (more, said) in forged.items():
        by = other_ci.token(world, vendor, issuer, **more)
        status, answer = await other_ci.upload(world, by, GREEN, sha=tip_of(world))
        assert (why, status) == (why, 401)
        assert said in answer["detail"], why
    by = issuer.signed(good, stranger)
    status, answer = await other_ci.upload(world, by, GREEN, sha=tip_of(world))
    assert (status, "its signature is wrong" in answer["detail"]) == (401, True)
    by = issuer.signed(good, stranger, kid="two")
    status, answer = await other_ci.upload(world, by, GREEN, sha=tip_of(world))
    assert (status, "no published key" in answer["detail"]) == (401, True)
    assert issuer.asked <= 2


async def test_a_key_of_one_issuer_signs_nothing_for_another(world: World, issuer: Issuer) -> None:
    """Hurts every organization: whoever runs a GitLab would speak for all of them."""
    async with issuers.issuing() as other:
        other.key = other.published["one"] = issuers.a_key()
        await world.settle()
        admin = await asker(world)
        both = [other_ci.accepted(GITLAB, issuer), other_ci.accepted(GITLAB, other, "evil/own")]
        await ci.settle_tests(admin, "update-settings", report_issuers=both)
        now = world.clock.now().timestamp()
        ours = GITLAB.claims(issuer, now, tip_of(world), "main")
        status, answer = await other_ci.upload(world, other.signed(ours), GREEN, sha=tip_of(world))
        assert (status, "its signature is wrong" in answer["detail"]) == (401, True)
        theirs = {**ours, "iss": other.url}
        status, answer = await other_ci.upload(
            world, other.signed(theirs), GREEN, sha=tip_of(world)
        )
        assert (status, f"its project {PROJECT} is not among" in answer["detail"]) == (401, True)


async def test_without_a_binding_no_address_is_asked_for_keys(world: World, issuer: Issuer) -> None:
    """Hurts the operator: a token would make the service call any address."""
    await world.settle()
    by = other_ci.token(world, GITLAB, issuer)
    for named in ("github.localhost/octo/widgets", "github.localhost/octo/nothing"):
        status, answer = await other_ci.upload(world, by, GREEN, named=named, sha=tip_of(world))
        assert status == 401
        assert f"is not among the `report_issuers` of {named}" in answer["detail"]
    status, answer = await other_ci.upload(world, by, GREEN, named="widgets", sha=tip_of(world))
    assert (status, "must name the repository" in answer["detail"]) == (401, True)
    assert issuer.asked == 0


@pytest.mark.parametrize("network", ["", "10.0.0.0/8"])
async def test_keys_are_fetched_by_the_rules_for_webhooks(
    tmp_path: Any, issuer: Issuer, network: str
) -> None:
    """Hurts the operator: a tenant's setting would make the service call an inside address."""
    settings = {"webhook_ports": "1024-65535", "webhook_allow_networks": network}
    async with living(tmp_path, WorldOptions(ci=other_ci.CI, settings=settings)) as world:
        await bound(world, GITLAB, issuer)
        by = other_ci.token(world, GITLAB, issuer)
        status, answer = await other_ci.upload(world, by, GREEN, sha=tip_of(world))
        assert (status, answer["code"]) == (503, "provider_unavailable")
        assert issuer.asked == 0


@VENDORS
async def test_a_token_of_another_ci_says_what_it_is_and_nothing_else(
    world: World, issuer: Issuer, vendor: Vendor
) -> None:
    """Hurts everybody who trusts the gate: a body could turn a branch's build into main's."""
    await bound(world, vendor, issuer)
    tip = tip_of(world)
    number = await world.open()
    pull = world.repository.issues[number].pull
    assert pull is not None
    own = {"branch": pull.head_ref, "on": pull.head_sha}
    topic = other_ci.token(world, vendor, issuer, branch="topic")
    for field, value in (("branch", "main"), ("sha", "c" * 40)):
        status, answer = await other_ci.upload(world, topic, GREEN, **{"sha": tip, field: value})
        assert (status, answer["code"]) == (422, "conflicting_fields")
        assert f"/{field} is {value}" in answer["detail"]
    main = other_ci.token(world, vendor, issuer)
    kinds = {"topic": topic, "main": main, "own": other_ci.token(world, vendor, issuer, **own)}
    kinds["pull request"] = kinds["own"]
    kinds["fork"] = other_ci.token(world, vendor, issuer, on="d" * 40)
    # Also what the repository has at another place: GitHub shows the commits of forks everywhere.
    kinds["fork of it"] = other_ci.token(world, vendor, issuer, on=pull.head_sha)
    kinds["fork of a pull request"] = other_ci.token(
        world, vendor, issuer, branch=pull.head_ref, on="d" * 40
    )
    seen = {}
    for name, by in kinds.items():
        sha = {"topic": tip, "main": tip}.get(name, "d" * 40)
        sha = pull.head_sha if name in ("own", "pull request", "fork of it") else sha
        claim: dict[str, Any] = {"pr_number": number} if "pull request" in name else {}
        status, answer = await other_ci.upload(world, by, GREEN, sha=sha, job=name, **claim)
        assert status == 200, answer
        kept = await world.runtime.store.read(stored_uploads.by_id, answer["upload_id"])
        assert kept is not None
        seen[name] = kept.upload.kind
        assert kept.upload.run_id == vendor.build_page(issuer)
        assert kept.upload.account.check_run == vendor.job_page(issuer)
    proved = {"main": "stable", "own": "other", "pull request": "pr"}
    assert seen == dict.fromkeys(kinds, "untrusted") | proved


async def test_a_job_of_another_ci_sets_no_targets(world: World, issuer: Issuer) -> None:
    """Hurts authors: a build would say which pull requests are tested side by side."""
    admin = await bound(world, GITLAB, issuer)
    await world.make_queue()
    number = await world.open()
    await world.settle()
    named = {"x-headgate-repository": "github.localhost/octo/widgets"}
    by = {"Authorization": f"Bearer {other_ci.token(world, GITLAB, issuer)}", **named}
    status, answer = await admin.post("setImpactedTargets", number, headers=by, impactedTargets=[])
    assert (status, answer["code"]) == (403, "not_own_pull_request")


async def under_test(world: World, admin: Asker, vendor: Vendor, issuer: Issuer) -> tuple[int, Any]:
    """A pull request whose test run waits for the CI, with a quarantined test and its history."""
    await world.make_queue(confirm_failures="OFF")
    await ci.fails_by_tests_alone(admin)
    build = {"pipeline_id": "41"} if vendor is GITLAB else {"build_number": 41}
    main = other_ci.token(world, vendor, issuer, job_id=vendor.other_job, **build)
    status, answer = await other_ci.upload(world, main, GREEN, sha=tip_of(world), job="unit")
    assert status == 200, answer
    await ci.quarantine(admin, "total", WRONG)
    number = await world.open()
    await world.settle()
    await world.comment("/merge", on=number)
    return number, await other_ci.under_test(world, number)


async def failing(world: World, issuer: Issuer, by: str, run: Any, page: str) -> None:
    """The job sends its report, and the CI reports the failure of the page."""
    status, answer = await other_ci.upload(world, by, RED, sha=run.sha, job="unit")
    assert status == 200, answer
    other_ci.ends(world, run.sha, "failure", page)
    await world.settle()


@VENDORS
@pytest.mark.parametrize("shows", ["job", "another job", "another build", "build"])
async def test_only_a_check_that_shows_the_job_is_excused_by_it(
    world: World, issuer: Issuer, vendor: Vendor, shows: str
) -> None:
    """Hurts everybody who builds main: a job reports for another, which broke before its tests."""
    admin = await bound(world, vendor, issuer)
    number, run = await under_test(world, admin, vendor, issuer)
    pages = {
        "job": vendor.job_page(issuer),
        "another job": vendor.job_page(issuer, vendor.other_job),
        "another build": vendor.build_page(issuer, 43),
        "build": vendor.build_page(issuer),
    }
    by = other_ci.token(world, vendor, issuer, on=run.sha, branch=run.branch)
    await failing(world, issuer, by, run, pages[shows])
    assert len(await landed_on(world)) == (shows == "job")
    assert (UNPROVED in world.comment_on(number)) is (shows != "job")


@pytest.mark.parametrize("shows", ["build", "another build"])
async def test_a_check_that_shows_the_build_is_excused_where_an_admin_says_so(
    world: World, issuer: Issuer, shows: str
) -> None:
    """Hurts reviewers: an excuse that any job of the build can make looks like the job's own."""
    admin = await bound(world, BUILDKITE, issuer, excuse_proof="RUN")
    number, run = await under_test(world, admin, BUILDKITE, issuer)
    by = other_ci.token(world, BUILDKITE, issuer, on=run.sha, branch=run.branch)
    build = 42 if shows == "build" else 43
    await failing(world, issuer, by, run, BUILDKITE.build_page(issuer, build))
    assert len(await landed_on(world)) == (shows == "build")
    said = world.comment_on(number)
    assert ("by a report of its CI run" in said) is (shows == "build")


async def test_a_report_on_another_commit_excuses_nothing(world: World, issuer: Issuer) -> None:
    """Hurts everybody who builds main: an old build of the same job would excuse a new failure."""
    admin = await bound(world, BUILDKITE, issuer)
    _, run = await under_test(world, admin, BUILDKITE, issuer)
    by = other_ci.token(world, BUILDKITE, issuer, branch=run.branch)
    status, answer = await other_ci.upload(world, by, RED, sha=run.sha, job="unit")
    assert (status, answer["code"]) == (422, "conflicting_fields")
    status, _ = await other_ci.upload(world, by, RED, sha=tip_of(world), job="unit")
    assert status == 200
    other_ci.ends(world, run.sha, "failure", BUILDKITE.job_page(issuer))
    await world.settle()
    assert await landed_on(world) == []


async def test_a_build_of_a_fork_that_is_called_like_a_test_branch_is_of_no_test_run(
    world: World, issuer: Issuer
) -> None:
    """Hurts everybody who builds main: a stranger's results would be those of the queue."""
    admin = await bound(world, BUILDKITE, issuer)
    _, run = await under_test(world, admin, BUILDKITE, issuer)
    by = other_ci.token(world, BUILDKITE, issuer, on="d" * 40, branch=run.branch)
    status, answer = await other_ci.upload(world, by, RED, sha="d" * 40, job="unit")
    assert status == 200, answer
    kept = await world.runtime.store.read(stored_uploads.by_id, answer["upload_id"])
    assert kept is not None
    assert kept.upload.kind == "untrusted"
    assert "may be of a fork" in " ".join(answer["warnings"])


COMMAND = {"command_exit_code": 1, "runner": "pytest"}


async def test_a_later_failure_of_the_job_revokes_its_excused_pass(
    world: World, issuer: Issuer
) -> None:
    """Hurts everybody who builds main: `headgate test` let the job pass, and more failed then."""
    admin = await bound(world, BUILDKITE, issuer)
    number, run = await under_test(world, admin, BUILDKITE, issuer)
    by = other_ci.token(world, BUILDKITE, issuer, on=run.sha, branch=run.branch)
    for tests, code in ((RED, 0), ({"mail": WRONG}, 1)):
        about = {"sha": run.sha, "job": "unit", **COMMAND}
        status, answer = await other_ci.upload(world, by, tests, **about)
        assert (status, answer["verdict"]["exit_code"]) == (200, code), answer[
            "not_excused_because"
        ]
    other_ci.ends(world, run.sha, "success", BUILDKITE.job_page(issuer))
    await world.settle()
    assert await landed_on(world) == []
    assert "`unit`" in world.comment_on(number)

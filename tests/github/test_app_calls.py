"""Calls beside the queue's path: failed deliveries, running CI again, stopping it."""

from dataclasses import replace
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from bot.github import installations
from service.provider.errors import AppRefused
from service.provider.values import (
    NotPossible,
)
from tests.github.table import on_table
from tests.provider.stage import on_sandbox


@pytest.fixture
async def stage():
    async with on_sandbox() as made:
        yield made


async def test_failed_deliveries_are_read_page_by_page_back_to_the_moment(stage):
    await stage.lose_deliveries()
    attempts = stage.sandbox.world.attempts
    start, first = stage.clock.now().replace(microsecond=0), attempts[0]
    for number in range(350):
        at = start + timedelta(seconds=number)
        attempts.append(replace(first, id=10**9 + number, guid=f"guid-{number}", at=at))
    found = await stage.provider.failed_deliveries(start + timedelta(seconds=200))
    assert [one.id for one in found] == [f"guid-{number}" for number in range(200, 350)]
    assert stage.called("GET", "/app/hook/deliveries") == 2


async def test_ci_is_not_touched_without_the_permission(stage):
    _, head = await stage.open({"bad.txt": "x\n"})
    assert isinstance(await stage.provider.rerun(stage.repo, head, ["unit"]), NotPossible)
    assert isinstance(await stage.provider.stop_ci(stage.repo, head), NotPossible)
    assert stage.called("POST", "/rerun-failed-jobs") == 0


async def test_with_the_permission_failed_jobs_run_again(stage):
    await stage.permit(actions="write")
    _, head = await stage.open({"bad.txt": "x\n"})
    assert await stage.provider.rerun(stage.repo, head, ["unit"]) is None
    assert stage.called("POST", "/rerun-failed-jobs") == 1
    await stage.settle()
    found = await stage.provider.checks(stage.repo, head, skipped_pass=True)
    assert len(found.items) == 2


async def test_what_did_not_fail_or_is_of_another_name_is_not_run_again(stage):
    await stage.permit(actions="write")
    _, green = await stage.open({"a.txt": "a\n"})
    _, red = await stage.open({"bad.txt": "x\n"})
    assert isinstance(await stage.provider.rerun(stage.repo, green, ["unit"]), NotPossible)
    assert isinstance(await stage.provider.rerun(stage.repo, red, ["lint"]), NotPossible)


async def test_nothing_runs_again_unless_every_named_check_can(stage):
    await stage.permit(actions="write")
    _, red = await stage.open({"bad.txt": "x\n"})
    refused = await stage.provider.rerun(stage.repo, red, ["unit", "circleci"])
    assert refused == NotPossible('No finished workflow run of GitHub Actions holds "circleci".')
    assert stage.called("POST", "/rerun") == 0


async def test_the_right_to_run_again_follows_the_permission(stage):
    assert not await stage.provider.can_rerun(stage.repo)
    await stage.permit(actions="write")
    await stage.provider.forget_access(stage.repo)
    assert await stage.provider.can_rerun(stage.repo)


async def test_with_the_permission_running_ci_is_stopped(stage):
    await stage.permit(actions="write")
    opened = await stage.act("open", files={"a.txt": "a\n"})
    await stage.clock.sleep(1)
    assert await stage.provider.stop_ci(stage.repo, opened["head"]) is None
    await stage.settle()
    found = await stage.provider.checks(stage.repo, opened["head"], skipped_pass=True)
    assert {each.raw for each in found.items} == {"cancelled"}


async def test_an_account_that_keeps_the_app_out_hides_no_other_account():
    words = "The `canary` organization has an IP allow list enabled, and yours is not permitted."
    one = {"id": 5, "full_name": "octo/widgets", "name": "widgets", "default_branch": "main"}
    listed = {"repositories": [{**one, "owner": {"id": 2, "login": "octo"}, "private": True}]}
    async with on_table() as (table, client):
        installed: list[object] = [{"id": number, "permissions": {}} for number in (6, 7)]
        table.says("GET /api/v3/app/installations", installed)
        call = "GET /api/v3/installation/repositories"
        table.answers[call] = [(403, {"message": words}, {}), (200, listed, {})]
        with capture_logs() as lines:
            found = await installations.repositories(client.github)
    assert [str(each.ref.slug) for each in found] == ["octo/widgets"]
    refused = [line for line in lines if line["event"] == "installation_refused"]
    assert [(line["installation"], line["why"]) for line in refused] == [("6", words)]


async def test_an_app_that_is_refused_is_no_matter_of_one_account():
    async with on_table() as (table, client):
        table.denies("GET /api/v3/app/installations", 401, "A JSON web token could not be decoded")
        with pytest.raises(AppRefused):
            await installations.repositories(client.github)

"""Who wrote a pull request: GitHub's answers leave out what tells an App from a person."""

import pytest

from bot.github.protection import Protection
from bot.github.pull_requests import PullRequests
from tests.github.table import APP_ID, on_table
from tests.github.test_landing import FACTS, a_pull

PERSON = {"__typename": "User", "login": "renovate", "databaseId": 7}
APP = {"__typename": "Bot", "login": "renovate", "databaseId": 12}


async def author_of(account):
    async with on_table() as (table, client):
        table.says(FACTS, a_pull(state="CLOSED", author=account))
        pulls = PullRequests(Protection(client.clock, APP_ID), APP_ID)
        return (await pulls.pull_request_now(client, 3)).author


@pytest.mark.parametrize(
    ("account", "author"), [(PERSON, "renovate"), (APP, "renovate[bot]"), (None, "ghost")]
)
async def test_a_person_cannot_be_taken_for_an_app_of_the_same_name(account, author):
    assert await author_of(account) == author

"""Fields of lists and of endpoints in snake_case: what they take and what they refuse."""

import pytest

from service.errors import Malformed
from service.http.models import common, shared
from service.http.models.common import Repository, SnakeRequest
from service.http.models.shared import Listed, OrgSlug, PageQuery, SnakeListed, Uuid

ID = "6d1f7a52-8a0c-4c1a-9a55-3f3b1d6f2c10"


class Asked(SnakeRequest):
    """All of them in one body."""

    repo: Repository
    org_url_slug: OrgSlug
    test_id: Uuid
    page_query: PageQuery


BODY = {
    "repo": {"host": "github.com", "owner": "octo", "name": "widgets"},
    "org_url_slug": "Octo",
    "test_id": ID,
    "page_query": {"page_size": 10},
}


def faults_of(body):
    """Field and code of each fault."""
    with pytest.raises(Malformed) as refused:
        common.read(Asked, body)
    return [(each.field, each.code) for each in refused.value.errors]


def test_a_body_in_snake_case_is_read_by_its_own_names():
    asked = common.read(Asked, BODY)
    assert (asked.org_url_slug, asked.page_query.page_size) == ("Octo", 10)
    assert asked.page_query.page_token is None
    assert faults_of({**BODY, "pageQuery": {}}) == [("/pageQuery", "unknown")]


@pytest.mark.parametrize(
    ("differences", "fault"),
    [
        ({"org_url_slug": ""}, ("/org_url_slug", "length")),
        ({"org_url_slug": "a\nb"}, ("/org_url_slug", "format")),
        ({"test_id": ID[:-1]}, ("/test_id", "format")),
        ({"test_id": f"{ID}\n"}, ("/test_id", "format")),
        ({"page_query": {}}, ("/page_query/page_size", "missing")),
        ({"page_query": {"page_size": 0}}, ("/page_query/page_size", "range")),
        ({"page_query": {"page_size": 101}}, ("/page_query/page_size", "range")),
        ({"page_query": {"page_size": "10"}}, ("/page_query/page_size", "type")),
        (
            {"page_query": {"page_size": 1, "page_token": "x" * 4097}},
            ("/page_query/page_token", "length"),
        ),
    ],
)
def test_a_fault_is_named_by_the_name_that_was_sent(differences, fault):
    assert faults_of({**BODY, **differences}) == [fault]


@pytest.mark.parametrize("model", [Listed, SnakeListed])
@pytest.mark.parametrize(
    ("body", "count"), [({}, shared.TAKE), ({"take": None}, shared.TAKE), ({"take": 3.0}, 3)]
)
def test_a_list_takes_fifty_rows_unless_told_otherwise(model, body, count):
    assert common.read(model, body).page().size == count


@pytest.mark.parametrize("take", [0, 101, "5"])
def test_a_list_takes_one_to_a_hundred_rows(take):
    with pytest.raises(Malformed, match="/take"):
        common.read(Listed, {"take": take})

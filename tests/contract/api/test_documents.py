"""The document, the reference and the page of each code, over HTTP (docs/design/http.md 10)."""

import re

import pytest

from service.http import errors
from service.mergequeue.operations import repository_file

STRICT = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""No inline script or style, nothing from elsewhere (docs/design/security.md 6)."""


async def page(client, path):
    answer = await client.ask("GET", path, "")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert answer.headers["Content-Security-Policy"] == STRICT
    assert answer.headers["Referrer-Policy"] == "same-origin"
    text = answer.body.decode()
    assert not re.search(r"<style|<script>| style=| on[a-z]+=", text)
    assert not re.findall(r'(?:src|href)="(?!/[^/]|#)', text)
    return text


async def test_the_document_is_fetched_without_a_token(client):
    answer = await client.ask("GET", "/openapi.json", "")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"
    assert answer.json["openapi"] == "3.1.0"
    assert "/v1/submitPullRequest" in answer.json["paths"]


async def test_the_way_to_the_reference_is_short(client):
    assert await page(client, "/docs") == await page(client, "/docs/api")


async def test_the_reference_loads_what_lies_here_and_nothing_else(client):
    text = await page(client, "/docs/api")
    loaded = re.findall(r'(?:src|href)="(/static/[^"]+)"', text)
    assert [each.rpartition("/")[2] for each in loaded] == ["docs.css", "frame.js"]
    for path in loaded:
        answer = await client.ask("GET", path, "")
        assert answer.status == 200
        assert answer.headers["Content-Type"].startswith(("text/css;", "text/javascript;"))
        assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


async def test_the_reference_has_every_part_once_and_its_links_lead_there(client):
    text = await page(client, "/docs/api")
    places = re.findall(r'id="([^"]*)"', text)
    assert len(places) == len(set(places))
    assert all(re.fullmatch(r"[\w-]+", each) for each in places)
    linked = set(re.findall(r'href="#([^"]*)"', text))
    assert {"repository", "queuewithentries", "post-v1getqueue", "merge-queue"} <= linked
    assert linked == set(places)
    assert "Return a queue with its settings and pull requests" in text


@pytest.mark.parametrize("code", errors.STATUS_OF)
async def test_each_code_has_a_page(client, code):
    text = await page(client, f"/docs/errors/{code}")
    assert f"<code>{code}</code>, status {errors.STATUS_OF[code]}" in text


async def test_the_page_of_a_problem_is_where_it_says(client):
    refused = await client.post("getQueue", client.named("no-such-branch"))
    assert refused.is_problem(404, "queue_not_found")
    link = refused.json["type"]
    assert "no queue" in await page(client, link[link.index("/docs/") :])


async def test_a_code_that_is_none_has_no_page(client):
    answer = await client.ask("GET", "/docs/errors/queue_not_emty", "")
    assert answer.is_problem(404, "unknown_endpoint")
    assert answer.json["did_you_mean"] == "/docs/errors/queue_not_empty"
    answer = await client.ask("GET", "/docs/errors/%3Cscript%3E", "")
    assert answer.is_problem(404, "unknown_endpoint")
    assert "did_you_mean" not in answer.json


@pytest.mark.parametrize(
    "path",
    [
        "/static/0000000000000000/docs.css",
        "/static/0000000000000000/nothing.css",
        "/static/0000000000000000/../documents.py",
        "/static/0000000000000000/%2e%2e/__init__.py",
        "/static/0000000000000000//etc/passwd.css",
        "/static/0000000000000000/docs.css%00.css",
    ],
)
async def test_nothing_else_is_given_out(client, path):
    answer = await client.ask("GET", path, "")
    assert answer.is_problem(404, "unknown_endpoint")


@pytest.mark.parametrize(
    "path", ["/openapi.json", "/docs", "/docs/api", "/docs/errors/invalid_json"]
)
async def test_documents_are_fetched_and_nothing_else(client, path):
    assert (await client.ask("HEAD", path, "")).status == 200
    answer = await client.ask("POST", path, "", json={})
    assert answer.is_problem(405, "method_not_allowed")
    assert answer.headers["Allow"] == "GET, HEAD"


async def test_a_read_that_the_client_has_is_not_sent_again(client):
    path = "/v1/tokens/self"
    first = await client.ask("GET", path)
    assert (first.status, first.headers["Cache-Control"]) == (200, "private, no-cache")
    again = await client.ask("GET", path, headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status, again.body) == (304, b"")
    stranger = await client.ask("GET", path, "", headers={"If-None-Match": "*"})
    assert stranger.status == 401


async def test_agents_find_an_index_and_the_skill_without_a_token(client):
    index = await client.ask("GET", "/llms.txt", "")
    assert index.headers["Content-Type"] == "text/plain; charset=utf-8"
    links = re.findall(r"\]\((\S+)\)", index.body.decode())
    assert "/docs/skill" in links
    for link in links:
        assert (await client.ask("GET", link, "")).status == 200, link
    skill = await client.ask("GET", "/docs/skill", "")
    assert skill.headers["Content-Type"] == "text/markdown; charset=utf-8"
    assert skill.body.startswith(b"---\nname: headgate\n")


async def test_the_schema_of_the_repositorys_file_needs_no_token(client):
    answer = await client.ask("GET", "/schemas/headgate.json", "")
    assert (answer.status, answer.json) == (200, repository_file.schema())


@pytest.mark.parametrize("path", ["/openapi.json", "/docs/api", "/docs/errors/invalid_json"])
async def test_a_document_that_the_client_has_is_not_sent_again(client, path):
    first = await client.ask("GET", path, "")
    assert first.headers["Cache-Control"] == "no-cache"
    known = {"If-None-Match": first.headers["ETag"]}
    again = await client.ask("GET", path, "", headers=known)
    assert (again.status, again.body) == (304, b"")
    assert again.headers["ETag"] == first.headers["ETag"]
    other = await client.ask("GET", path, "", headers={"If-None-Match": '"another"'})
    assert (other.status, other.body) == (200, first.body)

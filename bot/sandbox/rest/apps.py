"""Apps, installations, webhook deliveries, and the accounts of people."""

import json
from functools import partial

from bot.sandbox import deliver
from bot.sandbox.auth import InstallationToken
from bot.sandbox.records import Account, Installation, Json, Kind
from bot.sandbox.refusal import invalid, not_accessible, not_found, refused
from bot.sandbox.rest.call import REPO, Answer, Call, Listing, Reply, Route
from bot.sandbox.shapes import people, repositories
from bot.sandbox.timeline import stamp
from bot.sandbox.world import Attempt


async def _get_app(call: Call) -> Answer:
    """The App itself."""
    return Reply(people.app(call.world, call.app))


async def _get_app_by_slug(call: Call) -> Answer:
    """A registered App."""
    app = call.world.apps.get(call.params["slug"])
    if app is None:
        raise not_found()
    return Reply(people.app(call.world, app))


async def _list_installations(call: Call) -> Answer:
    """All installations of the App, oldest first."""
    own = [one for one in call.world.installations.values() if one.app is call.app]
    return Listing(own, partial(people.installation, call.world))


async def _create_token(call: Call) -> Answer:
    """A new installation token, narrowed to what the body names."""
    installation = call.world.installations.get(call.number)
    if installation is None or installation.app is not call.app:
        raise not_found()
    if installation.suspended_at is not None:
        raise refused("token.suspended")
    chosen = _chosen_repositories(call, installation)
    narrowed = call.body.get("permissions") or {}
    for name, level in narrowed.items():
        granted = installation.permissions.get(name)
        if granted is None:
            raise refused("token.permissions")
        if level == "write" and granted == "read":
            raise refused("token.level")
    permissions = narrowed or dict(installation.permissions)
    secret, token = call.credentials.mint(installation, chosen, permissions)
    answer: Json = {
        "token": secret,
        "expires_at": stamp(token.expires_at),
        "permissions": permissions,
        "repository_selection": "all" if chosen is None else "selected",
    }
    if chosen is not None:
        ordered = (call.world.repositories[number] for number in sorted(chosen))
        answer["repositories"] = [repositories.repository(one) for one in ordered]
    return Reply(answer, 201)


def _chosen_repositories(call: Call, installation: Installation) -> frozenset[int] | None:
    ids, names = call.body.get("repository_ids"), call.body.get("repositories")
    if ids is None and names is None:
        return None
    visible = call.world.repositories_of(installation)
    chosen = {int(one) for one in ids or ()}
    chosen |= {one.id for one in visible if one.name in (names or ())}
    is_complete = len(chosen) >= len(ids or ()) + len(names or ())
    if not chosen <= {one.id for one in visible} or not is_complete:
        raise refused("token.repositories")
    return frozenset(chosen)


async def _installation_repositories(call: Call) -> Answer:
    """The repositories that the token sees."""
    token = call.caller
    if not isinstance(token, InstallationToken):
        raise refused("auth.token_only")
    visible = [one for one in call.world.repositories.values() if token.sees(one)]
    extra = {"repository_selection": "all" if token.repositories is None else "selected"}
    return Listing(visible, repositories.repository, "repositories", extra)


async def _installation_of_repository(call: Call) -> Answer:
    """The installation that sees a repository."""
    app, world = call.app, call.world
    repository = world.repository(f"{call.params['owner_name']}/{call.params['repo_name']}")
    for one in world.installations.values():
        if one.app is app and repository is not None and world.covers(one, repository):
            return Reply(people.installation(world, one))
    raise not_found()


async def _get_hook_config(call: Call) -> Answer:
    """The webhook of the App; its secret is never shown."""
    call.check_app()
    shape: Json = {"content_type": "json", "insecure_ssl": "0", "secret": "********"}
    if call.world.webhook_url is not None:
        shape["url"] = call.world.webhook_url
    return Reply(shape)


async def _list_deliveries(call: Call) -> Answer:
    """Attempts, newest first, by cursor; `status=failure` or `success` selects some."""
    call.check_app()
    _, size = call.page()
    status, cursor = call.query.get("status"), call.query.get("cursor", "")
    start = int(cursor.removeprefix("v1_")) if cursor.startswith("v1_") else None
    listed = [
        one
        for one in reversed(call.world.attempts)
        if one.status != "queued"
        and (start is None or one.id <= start)
        and (status is None or deliver.is_failure(one) == (status == "failure"))
    ]
    headers = {}
    if len(listed) > size:
        kept = "" if status is None else f"&status={status}"
        url = f"{call.world.api}/app/hook/deliveries"
        following = f"{url}?per_page={size}&cursor=v1_{listed[size].id}{kept}"
        headers["Link"] = f'<{following}>; rel="next"'
    return Reply([_attempt(one) for one in listed[:size]], 200, headers)


def _attempt(one: Attempt) -> Json:
    return {
        "id": one.id,
        "guid": one.guid,
        "delivered_at": stamp(one.at),
        "redelivery": one.redelivery,
        "duration": round(one.duration_s, 2),
        "status": one.status,
        "status_code": one.answer_code,
        "event": one.event,
        "action": one.action,
        "installation_id": one.installation,
        "repository_id": one.repository,
    }


async def _get_delivery(call: Call) -> Answer:
    """One attempt whole: what was sent, and what was answered."""
    call.check_app()
    for one in call.world.attempts:
        if one.id == call.number:
            body = one.body
            headers = deliver.headers_of(call.world, one, body)
            request: Json = {"headers": headers, "payload": json.loads(body)}
            response: Json = {"headers": {}, "payload": ""}
            return Reply({**_attempt(one), "request": request, "response": response})
    raise not_found()


async def _redeliver(call: Call) -> Answer:
    """Send an old delivery again."""
    call.check_app()
    for one in call.world.attempts:
        if one.id == call.number:
            deliver.redeliver(call.world, one)
            return Reply({}, 202)
    raise not_found()


async def _get_user(call: Call) -> Answer:
    """The person whose token it is."""
    if not isinstance(call.caller, Account):
        raise not_accessible()
    return Reply(people.public_user(call.world, call.caller))


async def _get_user_by_id(call: Call) -> Answer:
    """An account by its number."""
    account = call.world.accounts.get(call.number)
    if account is None:
        raise not_found()
    return Reply(people.public_user(call.world, account))


async def collaborator_permission(call: Call) -> Answer:
    """The role of somebody in a repository; `none` for strangers."""
    account = call.world.account(call.params["login"])
    if account is None:
        raise not_found()
    if account.kind is Kind.BOT:
        raise invalid("is not a user", field="username", resource="Collaborator")
    return Reply(repositories.collaborator_permission(call.repository, account))


APP_ONLY = ("app",)
INSTALLATION = "/repos/{owner_name}/{repo_name}/installation"

ROUTES = (
    Route("GET", "/app", _get_app, APP_ONLY),
    Route("GET", "/apps/{slug}", _get_app_by_slug),
    Route("GET", "/app/installations", _list_installations, APP_ONLY),
    Route("POST", r"/app/installations/{number:\d+}/access_tokens", _create_token, APP_ONLY),
    Route("GET", "/app/hook/config", _get_hook_config, APP_ONLY),
    Route("GET", "/app/hook/deliveries", _list_deliveries, APP_ONLY),
    Route("GET", r"/app/hook/deliveries/{number:\d+}", _get_delivery, APP_ONLY),
    Route("POST", r"/app/hook/deliveries/{number:\d+}/attempts", _redeliver, APP_ONLY),
    Route("GET", INSTALLATION, _installation_of_repository, APP_ONLY),
    Route("GET", "/installation/repositories", _installation_repositories),
    Route("GET", "/user", _get_user),
    Route("GET", r"/user/{number:\d+}", _get_user_by_id),
    Route("GET", f"{REPO}/collaborators/{{login}}/permission", collaborator_permission),
)

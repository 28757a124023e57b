"""Apps, installations, webhook deliveries, limits, and the accounts of people."""

from bot.sandbox import deliver
from bot.sandbox.auth import TokenCaller
from bot.sandbox.deliver import APP_SLUG
from bot.sandbox.records import Account, Installation, Json
from bot.sandbox.refusal import invalid, not_found, refused
from bot.sandbox.rest.call import Answer, Call, Listing, Reply, Route, page_of
from bot.sandbox.shapes import people, repositories
from bot.sandbox.timeline import stamp
from bot.sandbox.world import Attempt, Repository

LIMIT = 5000


async def get_app(call: Call) -> Answer:
    """The App itself."""
    return Reply(people.app(call.world, call.app))


async def get_app_by_slug(call: Call) -> Answer:
    """A registered App."""
    found = call.world.apps.get(call.params["slug"])
    if found is None:
        raise not_found()
    return Reply(people.app(call.world, found))


async def list_installations(call: Call) -> Answer:
    """All installations of the App, oldest first."""
    app = call.app
    found = [one for one in call.world.installations.values() if one.app is app]
    return Listing(found, lambda one: people.installation(call.world, one))


def _installation(call: Call) -> Installation:
    app = call.app
    found = call.world.installations.get(int(call.params["id"]))
    if found is None or found.app is not app:
        raise not_found()
    return found


async def create_token(call: Call) -> Answer:
    """A new installation token, narrowed to what the body names."""
    installation = _installation(call)
    if installation.suspended_at is not None:
        raise refused("token.suspended")
    chosen = _chosen_repositories(call, installation)
    asked = call.body.get("permissions") or {}
    for name, level in asked.items():
        held = installation.permissions.get(name)
        if held is None:
            raise refused("token.permissions")
        if level == "write" and held == "read":
            raise refused("token.level")
    granted = asked or dict(installation.permissions)
    token = call.credentials.mint(installation, chosen, granted)
    answer: Json = {
        "token": token,
        "expires_at": stamp(call.credentials.grant_of(token).expires_at),
        "permissions": granted,
        "repository_selection": "all" if chosen is None else "selected",
    }
    if chosen is not None:
        known = (call.world.repositories[number] for number in sorted(chosen))
        answer["repositories"] = [repositories.repository(one) for one in known]
    return Reply(answer, 201)


def _chosen_repositories(call: Call, installation: Installation) -> frozenset[int] | None:
    ids = call.body.get("repository_ids")
    names = call.body.get("repositories")
    if ids is None and names is None:
        chosen = installation.repositories
        return frozenset(chosen) if chosen is not None else None
    seen = call.world.repositories_of(installation)
    wanted = {int(one) for one in ids or ()}
    wanted |= {one.id for one in seen if one.name in (names or ())}
    known = {one.id for one in seen}
    if not wanted <= known or len(wanted) < len(ids or ()) + len(names or ()):
        raise refused("token.repositories")
    return frozenset(wanted)


async def installation_repositories(call: Call) -> Answer:
    """The repositories that the token sees."""
    if not isinstance(call.caller, TokenCaller):
        raise refused("auth.token_only")
    grant = call.caller.grant
    found = [
        one
        for one in call.world.repositories_of(grant.installation)
        if grant.repositories is None or one.id in grant.repositories
    ]
    extra = {"repository_selection": "all" if grant.repositories is None else "selected"}

    def shape(one: Repository) -> Json:
        return repositories.repository(one)

    return Listing(found, shape, "repositories", extra)


async def installation_of_repository(call: Call) -> Answer:
    """The installation that sees a repository."""
    app, world = call.app, call.world
    found = world.repository(f"{call.params['owner_name']}/{call.params['repo_name']}")
    for one in world.installations.values():
        if one.app is app and found is not None and world.covers(one, found):
            return Reply(people.installation(world, one))
    raise not_found()


async def get_hook_config(call: Call) -> Answer:
    """The address of deliveries; the secret is never shown."""
    if call.app is None:
        raise not_found()
    return Reply(_hook_config(call))


def _hook_config(call: Call) -> Json:
    secret = "********" if call.world.webhook_secret else ""
    return {
        "content_type": "json",
        "insecure_ssl": "0",
        "secret": secret,
        "url": call.world.webhook_url or "",
    }


async def patch_hook_config(call: Call) -> Answer:
    """Change address or secret."""
    if call.app is None:
        raise not_found()
    if call.body.get("url") is not None:
        call.world.webhook_url = call.text("url")
    if call.body.get("secret") is not None:
        call.world.webhook_secret = call.text("secret")
    return Reply(_hook_config(call))


async def list_deliveries(call: Call) -> Answer:
    """Attempts, newest first, by cursor; `status=failure` or `success` picks some."""
    if call.app is None:
        raise not_found()
    _, size = page_of(call)
    wanted = call.query.get("status")
    found = [one for one in reversed(call.world.attempts) if one.status != "queued"]
    if wanted in ("failure", "success"):
        found = [one for one in found if deliver.is_failure(one) == (wanted == "failure")]
    cursor = call.query.get("cursor", "")
    start = int(cursor.removeprefix("v1_")) if cursor.startswith("v1_") else None
    found = [one for one in found if start is None or one.id <= start]
    part, more = found[:size], found[size:]
    headers = {}
    if more:
        kept = "".join(f"&{name}={call.query[name]}" for name in ("status",) if name in call.query)
        url = f"{people.api(call.world)}/app/hook/deliveries"
        headers["Link"] = f'<{url}?per_page={size}&cursor=v1_{more[0].id}{kept}>; rel="next"'
    return Reply([_attempt(one) for one in part], 200, headers)


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
        "throttled_at": None,
    }


def _find_attempt(call: Call) -> Attempt:
    if call.app is not None:
        for one in call.world.attempts:
            if one.id == int(call.params["id"]):
                return one
    raise not_found()


async def redeliver(call: Call) -> Answer:
    """Send an old delivery again."""
    deliver.redeliver(call.world, _find_attempt(call))
    return Reply({}, 202)


async def rate_limit(call: Call) -> Answer:
    """The limits of the caller; asking costs nothing and tells the whole hour."""
    reset = int(call.world.timeline.callers_now().timestamp()) // 3600 * 3600 + 3600
    one = {"limit": LIMIT, "used": 0, "remaining": LIMIT, "reset": reset}
    names = ("core", "search", "graphql", "integration_manifest")
    return Reply({"resources": {name: dict(one) for name in names}, "rate": dict(one)})


async def meta(call: Call) -> Answer:
    """About the host; Enterprise Server names its version."""
    answer: Json = {"verifiable_password_authentication": False, "hooks": ["127.0.0.1/32"]}
    if call.world.is_ghes:
        answer["installed_version"] = "3.17.0"
    return Reply(answer)


async def get_user(call: Call) -> Answer:
    """An account by its login."""
    return Reply(people.public_user(call.world, _account(call)))


async def get_user_by_id(call: Call) -> Answer:
    """An account by its number, which outlives renames."""
    found = call.world.accounts.get(int(call.params["id"]))
    if found is None:
        raise not_found()
    return Reply(people.public_user(call.world, found))


def _account(call: Call) -> Account:
    found = call.world.account(call.params["login"])
    if found is None:
        raise not_found()
    return found


async def collaborator_permission(call: Call) -> Answer:
    """The role of somebody in a repository; `none` for strangers."""
    account = _account(call)
    if account.app_id is not None and account.login == f"{APP_SLUG}[bot]":
        raise invalid("is not a user", field="username", resource="Collaborator")
    shown = repositories.collaborator_permission(call.repository, account)
    return Reply(shown)


APP_ONLY = ("app",)
REPO = "/repos/{owner}/{repo}"

ROUTES = (
    Route("GET", "/app", get_app, APP_ONLY),
    Route("GET", "/apps/{slug}", get_app_by_slug),
    Route("GET", "/app/installations", list_installations, APP_ONLY),
    Route("POST", r"/app/installations/{id:\d+}/access_tokens", create_token, APP_ONLY),
    Route("GET", "/app/hook/config", get_hook_config, APP_ONLY),
    Route("PATCH", "/app/hook/config", patch_hook_config, APP_ONLY),
    Route("GET", "/app/hook/deliveries", list_deliveries, APP_ONLY),
    Route("POST", r"/app/hook/deliveries/{id:\d+}/attempts", redeliver, APP_ONLY),
    Route(
        "GET", "/repos/{owner_name}/{repo_name}/installation", installation_of_repository, APP_ONLY
    ),
    Route("GET", "/installation/repositories", installation_repositories),
    Route("GET", "/rate_limit", rate_limit, APP_ONLY),
    Route("GET", "/meta", meta, APP_ONLY),
    Route("GET", r"/user/{id:\d+}", get_user_by_id),
    Route("GET", "/users/{login}", get_user),
    Route("GET", f"{REPO}/collaborators/{{login}}/permission", collaborator_permission),
)

"""Repositories, branches, protection, rules, contents and comparisons."""

from functools import partial

from bot.sandbox import merges, rules
from bot.sandbox.acts import repositories as repository_acts
from bot.sandbox.auth import PersonCaller, TokenCaller
from bot.sandbox.git import Commit
from bot.sandbox.records import Json, Ruleset
from bot.sandbox.refusal import Refusal, not_accessible, not_found, refused
from bot.sandbox.rest.call import Answer, Call, Listing, Reply, Route, page_of
from bot.sandbox.shapes import git_data
from bot.sandbox.shapes import repositories as shapes

FILES_OF_A_COMPARISON_MAX = 300
COMMITS_OF_A_COMPARISON_MAX = 250
RAW = "application/vnd.github.raw"


async def get_repository(call: Call) -> Answer:
    """The repository, with the caller's rights."""
    role = "none"
    match call.caller:
        case PersonCaller(account=account):
            role = call.repository.role_of(account)
        case TokenCaller():
            role = "write" if call.actor.may("contents") else "read"
    return Reply(shapes.full(call.repository, role))


async def list_branches(call: Call) -> Answer:
    """The branches by name; `protected=true` or `false` selects some."""
    repository, wanted = call.repository, call.query.get("protected")
    heads = sorted(name for name in repository.git.refs if name.startswith("refs/heads/"))
    chosen = [
        name
        for name in (head.removeprefix("refs/heads/") for head in heads)
        if wanted is None or (name in repository.protected) == (wanted == "true")
    ]
    return Listing(
        chosen, lambda name: shapes.short_branch(repository, name, name in repository.protected)
    )


async def get_branch(call: Call) -> Answer:
    """One branch."""
    name = call.params["branch"]
    return Reply(shapes.branch(call.repository, name, _tip(call)))


def _tip(call: Call) -> Commit:
    tip = call.repository.git.branch(call.params["branch"])
    if tip is None:
        raise refused("branch.absent")
    return call.repository.git.objects.a_commit(tip)


async def rename_branch(call: Call) -> Answer:
    """Start the renaming of a branch; it happens a while after the answer."""
    old, new = call.params["branch"], call.text("new_name")
    commit = _tip(call)
    is_default = old == call.repository.default_branch
    if is_default and not call.actor.may("administration"):
        raise not_accessible()
    repository_acts.rename_branch(call.repository, call.actor, old, new)
    shown = shapes.branch(call.repository, old, commit)
    return Reply({**shown, "name": new}, 201)


async def get_required_status_checks(call: Call) -> Answer:
    """The required checks of classic protection."""
    branch = call.params["branch"]
    _tip(call)
    classic = call.repository.protected.get(branch)
    if classic is None:
        raise refused("protection.none")
    if classic.checks is None:
        raise refused("protection.no_checks")
    return Reply(shapes.status_check_policy(call.repository, branch, classic))


async def get_protection(call: Call) -> Answer:
    """The whole of classic protection."""
    branch = call.params["branch"]
    _tip(call)
    classic = call.repository.protected.get(branch)
    if classic is None:
        raise refused("protection.none")
    return Reply(shapes.whole_protection(call.repository, branch, classic))


async def rules_for_branch(call: Call) -> Answer:
    """Every active rule for a branch name, which need not exist."""
    repository = call.repository

    def shape(one: tuple[Ruleset, Json]) -> Json:
        ruleset, rule = one
        source = {
            "ruleset_source_type": "Repository",
            "ruleset_source": repository.full_name,
            "ruleset_id": ruleset.id,
        }
        return {**rule, **source}

    return Listing(list(rules.rules_of(repository, call.params["branch"])), shape)


async def list_rulesets(call: Call) -> Answer:
    """All rulesets, active or not."""
    repository = call.repository
    found = repository.rulesets
    return Listing(found, lambda one: shapes.ruleset(repository, one, whole=False))


async def get_ruleset(call: Call) -> Answer:
    """One ruleset with its rules; bypass actors only for those who may write rules."""
    for one in call.repository.rulesets:
        if one.id == int(call.params["id"]):
            shown = shapes.ruleset(call.repository, one, whole=True)
            passes = rules.bypasses(call.repository, one, call.actor, is_merge=True)
            shown["current_user_can_bypass"] = "always" if passes else "never"
            if isinstance(call.caller, TokenCaller) and not call.actor.may("administration"):
                del shown["bypass_actors"]
            return Reply(shown)
    raise not_found()


async def get_contents(call: Call) -> Answer:
    """A file, raw or in base64, or the list of a folder, at `ref`."""
    repository = call.repository
    path = call.params.get("path", "").strip("/")
    wanted = call.query.get("ref", repository.default_branch)
    commit = resolve(call, wanted)
    item = repository.git.objects.item_at(commit.sha, path)
    if item is None:
        raise not_found()
    if item.kind == "tree":
        prefix = f"{path}/" if path else ""
        lines = repository.git.objects.tree(item.sha) or ()
        return Reply(
            [
                {
                    **git_data.content_file(repository, f"{prefix}{one.name}", one, wanted),
                    "type": "dir" if one.kind == "tree" else "file",
                }
                for one in lines
            ]
        )
    if RAW in call.accept or "application/vnd.github.v3.raw" in call.accept:
        body = repository.git.objects.blob(item.sha) or b""
        return Reply(body, 200, {"Content-Type": f"{RAW}; charset=utf-8"})
    return Reply(git_data.content_file(repository, path, item, wanted))


def resolve(call: Call, wanted: str) -> Commit:
    """The commit of a branch, a ref or a sha. Raises Refusal(404) with the provider's text."""
    git = call.repository.git
    for sha in (git.branch(wanted), git.refs.get(wanted), git.refs.get(f"refs/{wanted}"), wanted):
        commit = git.objects.commit(sha) if sha is not None else None
        if commit is not None:
            return commit
    raise refused("commit.no_ref", wanted)


async def list_commits(call: Call) -> Answer:
    """The history of `sha`, newest first."""
    repository = call.repository
    tip = resolve(call, call.query.get("sha", repository.default_branch))
    return Listing(repository.git.objects.log(tip.sha), partial(git_data.commit, repository))


async def get_commit(call: Call) -> Answer:
    """One commit by sha, branch or ref; 422 for something that looks like a sha and is none."""
    wanted = call.params["ref"]
    try:
        commit = resolve(call, wanted)
    except Refusal:
        raise refused("commit.absent", wanted) from None
    return Reply(git_data.commit(call.repository, commit))


async def compare(call: Call) -> Answer:
    """The comparison of two commits; commits are listed oldest first, page by page."""
    base_name, dots, head_name = call.params["basehead"].partition("...")
    if not dots:
        raise not_found()
    repository = call.repository
    objects = repository.git.objects
    base, head = resolve(call, base_name), resolve(call, head_name)
    start = objects.merge_base(base.sha, head.sha)
    if start is None:
        raise refused("compare.unrelated", base_name, head_name)
    ahead = list(reversed(objects.log(head.sha, without=base.sha)))
    behind = objects.log(base.sha, without=head.sha)
    words = {(False, False): "identical", (True, False): "ahead", (False, True): "behind"}
    status = words.get((bool(ahead), bool(behind)), "diverged")
    page, size = page_of(call)
    if "per_page" not in call.query and "page" not in call.query:
        size = COMMITS_OF_A_COMPARISON_MAX
    files = await merges.changes(objects, start, head.sha) if page == 1 else ()
    url = f"{git_data.address(repository)}/compare/{call.params['basehead']}"
    web = f"{repository.world.web}/{repository.full_name}/compare/{base_name}...{head_name}"
    return Reply(
        {
            "url": url,
            "html_url": web,
            "permalink_url": web,
            "diff_url": f"{web}.diff",
            "patch_url": f"{web}.patch",
            "base_commit": git_data.commit(repository, base),
            "merge_base_commit": git_data.commit(repository, objects.a_commit(start)),
            "status": status,
            "ahead_by": len(ahead),
            "behind_by": len(behind),
            "total_commits": len(ahead),
            "commits": [
                git_data.commit(repository, one) for one in ahead[(page - 1) * size : page * size]
            ],
            "files": [
                git_data.changed_file(repository, one, head.sha)
                for one in files[:FILES_OF_A_COMPARISON_MAX]
            ],
        }
    )


REPO = "/repos/{owner}/{repo}"
CONTENTS = ("contents:read",)
BRANCH = f"{REPO}/branches/{{branch:.+}}"

ROUTES = (
    Route("GET", REPO, get_repository),
    Route("GET", f"{REPO}/branches", list_branches, CONTENTS),
    Route("POST", f"{BRANCH}/rename", rename_branch, ("contents:write",)),
    Route(
        "GET",
        f"{BRANCH}/protection/required_status_checks",
        get_required_status_checks,
        ("administration:read",),
    ),
    Route("GET", f"{BRANCH}/protection", get_protection, ("administration:read",)),
    Route("GET", BRANCH, get_branch, CONTENTS),
    Route("GET", f"{REPO}/rules/branches/{{branch:.+}}", rules_for_branch),
    Route("GET", f"{REPO}/rulesets", list_rulesets),
    Route("GET", rf"{REPO}/rulesets/{{id:\d+}}", get_ruleset),
    Route("GET", f"{REPO}/contents", get_contents, CONTENTS),
    Route("GET", f"{REPO}/contents/{{path:.*}}", get_contents, CONTENTS),
    Route("GET", f"{REPO}/commits", list_commits, CONTENTS),
    Route("GET", f"{REPO}/compare/{{basehead:.+}}", compare, CONTENTS),
)

# After the routes of checks and statuses: `{ref}` here would swallow their paths.
LATE_ROUTES = (Route("GET", f"{REPO}/commits/{{ref:.+}}", get_commit, CONTENTS),)

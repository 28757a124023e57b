"""Repositories, branches, protection, rules, contents, comparisons; the git database; merges."""

from functools import partial
from urllib.parse import quote

from bot.sandbox import merges, rules
from bot.sandbox.acts import merging, pull_states, refs
from bot.sandbox.acts import repositories as repository_acts
from bot.sandbox.acts.refs import How, Move
from bot.sandbox.auth import InstallationToken
from bot.sandbox.git import ZERO, Commit, NewCommit, TreeItem
from bot.sandbox.records import Account, Classic, Json, Ruleset
from bot.sandbox.refusal import Refusal, not_accessible, not_found, refused
from bot.sandbox.rest.call import REPO, Answer, Call, Listing, Reply, Route
from bot.sandbox.shapes import git_data
from bot.sandbox.shapes import repositories as shapes

FILES_OF_A_COMPARISON_MAX = 300
COMMITS_OF_A_COMPARISON_MAX = 250

_TREE_LINES_MAX = 100_000


_READ, _WRITE = ("contents:read",), ("contents:write",)


async def _get_repository(call: Call) -> Answer:
    """The repository, with the caller's rights."""
    role = "none"
    match call.caller:
        case Account():
            role = call.repository.role_of(call.caller)
        case InstallationToken():
            role = "write" if call.actor.may("contents") else "read"
    return Reply(shapes.full(call.repository, role))


async def _list_branches(call: Call) -> Answer:
    """The branches by name."""
    repository = call.repository
    names = sorted(repository.git.branches())
    return Listing(names, lambda name: shapes.short_branch(repository, name))


async def _get_branch(call: Call) -> Answer:
    """One branch, or a redirect to the new name of a renamed one.

    A missing `master` redirects to the default branch (github/rest-api-description issue 7096).
    """
    repository, branch = call.repository, call.params["branch"]
    if repository.git.branch(branch) is None:
        new = repository.renamed.get(branch)
        if new is None and branch == "master":
            new = repository.default_branch
        if new is not None and repository.git.branch(new) is not None:
            url = f"{repository.url}/branches/{quote(new)}"
            return Reply({"message": "Moved Permanently", "url": url}, 301, {"Location": url})
    return Reply(shapes.branch(repository, branch, _tip(call)))


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
    return Reply({**shapes.branch(call.repository, old, commit), "name": new}, 201)


def _classic(call: Call) -> Classic:
    _tip(call)
    classic = call.repository.protected.get(call.params["branch"])
    if classic is None:
        raise refused("protection.none")
    return classic


async def _get_required_status_checks(call: Call) -> Answer:
    """The required checks of classic protection."""
    classic = _classic(call)
    if classic.checks is None:
        raise refused("protection.no_checks")
    return Reply(shapes.status_check_policy(call.repository, call.params["branch"], classic))


async def _get_protection(call: Call) -> Answer:
    """The whole of classic protection."""
    classic = _classic(call)
    return Reply(shapes.whole_protection(call.repository, call.params["branch"], classic))


async def _rules_for_branch(call: Call) -> Answer:
    """Every active rule for a branch name, which need not exist."""
    repository = call.repository
    source = {"ruleset_source_type": "Repository", "ruleset_source": repository.full_name}

    def shape(one: tuple[Ruleset, Json]) -> Json:
        return {**one[1], **source, "ruleset_id": one[0].id}

    return Listing(list(rules.rules_of(repository, call.params["branch"])), shape)


async def _get_ruleset(call: Call) -> Answer:
    """One ruleset with its rules; bypass actors only for callers that may write rules."""
    for one in call.repository.rulesets:
        if one.id == call.number:
            shape = shapes.ruleset(call.repository, one)
            can_bypass = rules.bypasses(call.repository, one, call.actor, is_merge=True)
            shape["current_user_can_bypass"] = "always" if can_bypass else "never"
            if not call.actor.may("administration"):
                del shape["bypass_actors"]
            return Reply(shape)
    raise not_found()


async def _get_contents(call: Call) -> Answer:
    """A file in base64, or the list of a folder, at `ref`."""
    repository, objects = call.repository, call.repository.git.objects
    path = call.params.get("path", "").strip("/")
    at = call.query.get("ref", repository.default_branch)
    item = objects.item_at(call.resolve(at).sha, path)
    if item is None:
        raise not_found()
    if item.kind != "tree":
        return Reply(git_data.content_file(repository, path, item, at))
    prefix = f"{path}/" if path else ""
    lines = objects.tree(item.sha) or ()
    listed = [git_data.content_file(repository, f"{prefix}{one.name}", one, at) for one in lines]
    return Reply(listed)


async def _list_commits(call: Call) -> Answer:
    """The history of `sha`, newest first."""
    repository = call.repository
    tip = call.resolve(call.query.get("sha", repository.default_branch))
    return Listing(repository.git.objects.log(tip.sha), partial(git_data.commit, repository))


async def _get_commit(call: Call) -> Answer:
    """One commit by sha, branch or ref; 422 for an unknown one."""
    name = call.params["ref"]
    try:
        commit = call.resolve(name)
    except Refusal:
        raise refused("commit.absent", name) from None
    return Reply(git_data.commit(call.repository, commit))


async def compare(call: Call) -> Answer:
    """The comparison of two commits; commits are listed oldest first, page by page."""
    base_name, dots, head_name = call.params["basehead"].partition("...")
    if not dots:
        raise not_found()
    repository, objects = call.repository, call.repository.git.objects
    base, head = call.resolve(base_name), call.resolve(head_name)
    start = objects.merge_base(base.sha, head.sha)
    if start is None:
        raise refused("compare.unrelated", base_name, head_name)
    ahead = list(reversed(objects.log(head.sha, without=base.sha)))
    behind = objects.log(base.sha, without=head.sha)
    words = {(False, False): "identical", (True, False): "ahead", (False, True): "behind"}
    page, size = call.page()
    if "per_page" not in call.query and "page" not in call.query:
        size = COMMITS_OF_A_COMPARISON_MAX
    commits = ahead[(page - 1) * size : page * size]
    files = await merges.changes(objects, start, head.sha) if page == 1 else ()
    files = files[:FILES_OF_A_COMPARISON_MAX]
    web = f"{repository.page}/compare/{base_name}...{head_name}"
    return Reply(
        {
            "url": f"{repository.url}/compare/{call.params['basehead']}",
            "html_url": web,
            "permalink_url": web,
            "diff_url": f"{web}.diff",
            "patch_url": f"{web}.patch",
            "base_commit": git_data.commit(repository, base),
            "merge_base_commit": git_data.commit(repository, objects.a_commit(start)),
            "status": words.get((bool(ahead), bool(behind)), "diverged"),
            "ahead_by": len(ahead),
            "behind_by": len(behind),
            "total_commits": len(ahead),
            "commits": [git_data.commit(repository, one) for one in commits],
            "files": [git_data.changed_file(repository, one, head.sha) for one in files],
        }
    )


CONTENTS, ADMINISTRATION = ("contents:read",), ("administration:read",)
BRANCH = f"{REPO}/branches/{{branch:.+}}"
PROTECTION = f"{BRANCH}/protection"
CHECKS = f"{PROTECTION}/required_status_checks"

ROUTES = (
    Route("GET", REPO, _get_repository),
    Route("GET", f"{REPO}/branches", _list_branches, CONTENTS),
    Route("POST", f"{BRANCH}/rename", rename_branch, ("contents:write",)),
    Route("GET", CHECKS, _get_required_status_checks, ADMINISTRATION),
    Route("GET", PROTECTION, _get_protection, ADMINISTRATION),
    Route("GET", BRANCH, _get_branch, CONTENTS),
    Route("GET", f"{REPO}/rules/branches/{{branch:.+}}", _rules_for_branch),
    Route("GET", rf"{REPO}/rulesets/{{number:\d+}}", _get_ruleset),
    Route("GET", f"{REPO}/contents/{{path:.*}}", _get_contents, CONTENTS),
    Route("GET", f"{REPO}/commits", _list_commits, CONTENTS),
    Route("GET", f"{REPO}/compare/{{basehead:.+}}", compare, CONTENTS),
)

# After the routes of checks and statuses: `{ref}` here would swallow their paths.
LATE_ROUTES = (Route("GET", f"{REPO}/commits/{{ref:.+}}", _get_commit, CONTENTS),)


async def _get_ref(call: Call) -> Answer:
    """One ref; the path leaves out `refs/`."""
    name = f"refs/{call.params['ref']}"
    if name not in call.repository.git.refs:
        raise not_found()
    return Reply(git_data.ref(call.repository, name))


async def _matching_refs(call: Call) -> Answer:
    """All refs whose name starts with the given one, by name."""
    prefix, refs = f"refs/{call.params['ref']}", call.repository.git.refs
    names = sorted(name for name in refs if name.startswith(prefix))
    return Listing(names, partial(git_data.ref, call.repository))


async def _create_ref(call: Call) -> Answer:
    """A new ref. 422 when it exists, or its commit does not."""
    name, sha = call.text("ref"), call.text("sha")
    if not name.startswith("refs/") or name.count("/") < 2 or name.endswith("/"):
        raise refused("ref.name")
    if call.repository.git.objects.commit(sha) is None:
        raise refused("ref.no_object")
    step = Move(name, sha, ZERO)
    await refs.move(call.repository, call.actor, [step], How("creation by REST"))
    shape = git_data.ref(call.repository, name)
    return Reply(shape, 201, {"Location": shape["url"]})


async def _update_ref(call: Call) -> Answer:
    """Move a ref; without `force` only forwards."""
    name, sha = f"refs/{call.params['ref']}", call.text("sha")
    before = call.repository.git.refs.get(name)
    if before is None:
        raise refused("ref.absent")
    if call.repository.git.objects.commit(sha) is None:
        raise refused("ref.no_object")
    await refs.refuse_workflow_files(call.repository, call.actor, before, sha)
    step = Move(name, sha, force=bool(call.body.get("force", False)))
    await refs.move(call.repository, call.actor, [step], How("update by REST"))
    return Reply(git_data.ref(call.repository, name))


async def _delete_ref(call: Call) -> Answer:
    """Remove a ref; its pull request closes with it."""
    step = Move(f"refs/{call.params['ref']}", ZERO)
    await refs.move(call.repository, call.actor, [step], How("deletion by REST"))
    return Reply(status=204)


async def _get_git_commit(call: Call) -> Answer:
    """One commit by its whole sha."""
    commit = call.repository.git.objects.commit(call.params["sha"])
    if commit is None:
        raise not_found()
    return Reply(git_data.git_commit(call.repository, commit))


async def _create_commit(call: Call) -> Answer:
    """A new commit on no branch; GitHub signs it, since nobody else is named as its author."""
    objects, parents = call.repository.git.objects, call.body.get("parents", [])
    known = [objects.tree(call.text("tree")), *(objects.commit(str(one)) for one in parents)]
    if None in known:
        raise refused("ref.no_object")
    author = pull_states.signature(call.world, call.actor.account)
    committer = pull_states.provider_signature(call.world)
    new = NewCommit(call.text("tree"), tuple(parents), author, committer, call.text("message"))
    made = objects.write_commit(new, signed=True)
    return Reply(git_data.git_commit(call.repository, made), 201)


async def _get_tree(call: Call) -> Answer:
    """A tree by tree, commit or branch; with `recursive` everything below it."""
    repository, objects = call.repository, call.repository.git.objects
    sha = repository.git.branch(call.params["sha"]) or call.params["sha"]
    lines = objects.tree(sha)
    if lines is None:
        raise not_found()
    items: list[tuple[str, TreeItem]] = [(line.name, line) for line in lines]
    if call.query.get("recursive") is not None:
        items = list(objects.walk(sha))
    commit = objects.commit(sha)
    tree = commit.tree if commit is not None else sha
    return Reply(
        {
            "sha": tree,
            "url": f"{repository.url}/git/trees/{tree}",
            "tree": [git_data.tree_line(repository, *item) for item in items[:_TREE_LINES_MAX]],
            "truncated": len(items) > _TREE_LINES_MAX,
        }
    )


async def _get_blob(call: Call) -> Answer:
    """A file's content by its id."""
    sha = call.params["sha"]
    body = call.repository.git.objects.blob(sha)
    if body is None:
        raise not_found()
    return Reply(git_data.blob(call.repository, sha, body))


async def _merge_branch(call: Call) -> Answer:
    """Merge a branch or a commit into a branch: 201, or 204 with nothing new."""
    ends = (call.text("base"), call.text("head"))
    message = call.optional("commit_message")
    made = await merging.merge_branch(call.repository, call.actor, ends, message)
    if made is None:
        return Reply(status=204)
    return Reply(git_data.commit(call.repository, made), 201)


GIT_ROUTES = (
    Route("GET", f"{REPO}/git/ref/{{ref:.+}}", _get_ref, _READ),
    Route("GET", f"{REPO}/git/matching-refs/{{ref:.*}}", _matching_refs, _READ),
    Route("POST", f"{REPO}/git/refs", _create_ref, _WRITE),
    Route("PATCH", f"{REPO}/git/refs/{{ref:.+}}", _update_ref, _WRITE),
    Route("DELETE", f"{REPO}/git/refs/{{ref:.+}}", _delete_ref, _WRITE),
    Route("GET", f"{REPO}/git/commits/{{sha}}", _get_git_commit, _READ),
    Route("POST", f"{REPO}/git/commits", _create_commit, _WRITE),
    Route("GET", f"{REPO}/git/trees/{{sha:.+}}", _get_tree, _READ),
    Route("GET", f"{REPO}/git/blobs/{{sha}}", _get_blob, _READ),
    Route("POST", f"{REPO}/merges", _merge_branch, _WRITE),
)

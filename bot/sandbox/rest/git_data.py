"""The git database: refs, commits, trees; and merges of branches."""

from functools import partial

from bot.sandbox.acts import merging, pull_states, refs
from bot.sandbox.acts.refs import How, Move
from bot.sandbox.git import ZERO, NewCommit, TreeItem
from bot.sandbox.refusal import not_found, refused
from bot.sandbox.rest.call import REPO, Answer, Call, Listing, Reply, Route
from bot.sandbox.shapes import git_data

TREE_LINES_MAX = 100_000


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
            "tree": [git_data.tree_line(repository, *item) for item in items[:TREE_LINES_MAX]],
            "truncated": len(items) > TREE_LINES_MAX,
        }
    )


async def _get_blob(call: Call) -> Answer:
    """A file's content by its id."""
    sha = call.params["sha"]
    body = call.repository.git.objects.blob(sha)
    if body is None:
        raise not_found()
    return Reply(git_data.blob(call.repository, sha, body))


async def merge_branch(call: Call) -> Answer:
    """Merge a branch or a commit into a branch: 201, or 204 with nothing new."""
    ends = (call.text("base"), call.text("head"))
    message = call.optional("commit_message")
    made = await merging.merge_branch(call.repository, call.actor, ends, message)
    if made is None:
        return Reply(status=204)
    return Reply(git_data.commit(call.repository, made), 201)


READ, WRITE = ("contents:read",), ("contents:write",)

ROUTES = (
    Route("GET", f"{REPO}/git/ref/{{ref:.+}}", _get_ref, READ),
    Route("GET", f"{REPO}/git/matching-refs/{{ref:.*}}", _matching_refs, READ),
    Route("POST", f"{REPO}/git/refs", _create_ref, WRITE),
    Route("PATCH", f"{REPO}/git/refs/{{ref:.+}}", _update_ref, WRITE),
    Route("DELETE", f"{REPO}/git/refs/{{ref:.+}}", _delete_ref, WRITE),
    Route("GET", f"{REPO}/git/commits/{{sha}}", _get_git_commit, READ),
    Route("POST", f"{REPO}/git/commits", _create_commit, WRITE),
    Route("GET", f"{REPO}/git/trees/{{sha:.+}}", _get_tree, READ),
    Route("GET", f"{REPO}/git/blobs/{{sha}}", _get_blob, READ),
    Route("POST", f"{REPO}/merges", merge_branch, WRITE),
)

"""Tables of the keys of other queues with the settings they become, by their own documentation.

Sources: GitHub's description of the rule `merge_queue`; bors.tech/documentation; `src/config.rs` of
rust-lang/bors; kodiakhq.com/docs/config-reference; docs.trunk.io/merge-queue. Mergify's table is in
`mergify.py`, because its file has conditions.
"""

import orjson

from bot.cli.moving.mapping import (
    Convert,
    Row,
    Settings,
    Source,
    Unfit,
    flag,
    hours_of_seconds,
    method,
    minutes_of_seconds,
    names,
    text,
    to,
    whole,
    without,
)
from bot.github import other_queues
from service.mergequeue.engine.rules import EntryRule

DIRECT = (
    "direct_merge_mode",
    "OFF",
    "each pull request is tested in the queue, also if its head contains the tip, as before",
)
REVIEWS = "Headgate leaves reviews to the rules of the branch."
SET_RULE = "Set it in the branch's ruleset, under “Require a pull request before merging”."
BLOCKED = (
    "This has no exact equal in `rules`.",
    "Write a rule that makes it wait, for example by its labels or its title.",
)
NO_UPDATES = ("Headgate never changes the branch of a pull request to test it.", "Nothing.")
WAITS = (
    "Headgate never delays a pull request that has passed.",
    "Nothing. To test several together, set `batch: true` and `batchingMinSize`.",
)


def _grouping(value: object) -> Settings:
    return {"can_optimistically_merge": True} if value == "HEADGREEN" else {}


GITHUB = Source(
    "GitHub's merge queue",
    (
        Row("merge_method", to("merge_method", method)),
        Row("max_entries_to_build", to("concurrency", whole)),
        Row("check_response_timeout_minutes", to("testing_timeout_minutes", whole)),
        Row(
            "grouping_strategy",
            _grouping,
            "one passed run clears the failed runs that it contains, as HEADGREEN does",
        ),
        Row(
            "max_entries_to_merge",
            why="A pull request lands once it and all ahead of it have passed, in any number.",
            todo="Nothing.",
        ),
        *without(WAITS, "min_entries_to_merge", "min_entries_to_merge_wait_minutes"),
        Row(
            "check_run_retries_limit",
            why="Headgate confirms a failure by a second test run.",
            todo="Nothing; `confirmFailures` says when.",
        ),
        Row(
            "actor_controlled_merging",
            why="In Headgate everyone with write access may submit.",
            todo="Nothing.",
        ),
    ),
    (DIRECT,),
    (
        "While the rule is there, GitHub's own queue owns the branch and Headgate refuses it.",
        "Remove the rule “Require merge queue” when you switch; keep the required checks.",
    ),
)


def _squash(value: object) -> Settings:
    return {"merge_method": "SQUASH" if flag(value) else "MERGE_COMMIT"}


def _batch_of(value: object) -> Settings:
    size = whole(value)
    return {"batch": True, "batching_min_size": size} if size > 1 else {"batch": False}


def _on_heads(value: object) -> Settings:
    return {"required_statuses": names(value), "head_only_statuses": names(value)}


def _blocked(value: object) -> Settings:
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise Unfit("The value is not a list of labels.", "Mend it, and import again.")
    labels = ", ".join(map(_quoted, given))
    when = f"labels.exists(each, each in [{labels}])"
    rule = EntryRule("blocking labels", when=when, wait_for="removal of a label that blocks it")
    return {"rules": (rule,)} if given else {}


def _quoted(name: str) -> str:
    return orjson.dumps(name).decode()


BORS_TITLE = {"${PR_REFS}": "#{{ number }}", "${PR_TITLES}": "{{ title }}"}


def _bors_title(value: object) -> Settings:
    found = text(value)
    for theirs, ours in BORS_TITLE.items():
        found = found.replace(theirs, ours)
    if "${" in found:
        raise Unfit("The title has a placeholder that Headgate lacks.", "Write `commitTitle`.")
    return {"commit_title": found}


def _bors_row(key: str, convert: Convert | None = None, **more: str) -> tuple[Row, ...]:
    """Return the row of a key of bors, in which `_` and `-` are the same."""
    keys = dict.fromkeys((key, key.replace("_", "-")))
    return tuple(Row(each, convert, **more) for each in keys)


BORS = Source(
    other_queues.BORS,
    (
        Row("status", to("required_statuses", names)),
        *_bors_row(
            "pr_status",
            _on_heads,
            remark="asked of the head of each pull request, and not of test branches",
        ),
        *_bors_row("timeout_sec", to("testing_timeout_minutes", minutes_of_seconds)),
        *_bors_row(
            "prerun_timeout_sec",
            to("not_ready_timeout_hours", hours_of_seconds),
            remark="counts for whatever a pull request waits for, not for `pr_status` alone",
        ),
        *_bors_row("delete_merged_branches", to("delete_branch", flag)),
        *_bors_row("use_squash_merge", _squash),
        *_bors_row("max_batch_size", _batch_of),
        *_bors_row("commit_title", _bors_title),
        *_bors_row("required_approvals", why=REVIEWS, todo=SET_RULE),
        *_bors_row("up_to_date_approvals", why=REVIEWS, todo=SET_RULE),
        *_bors_row("use_codeowners", why=REVIEWS, todo=SET_RULE),
        *_bors_row("block_labels", _blocked, remark="it waits while it has one of them"),
        *_bors_row(
            "cut_body_after",
            why="The text of a pull request is taken whole or not at all.",
            todo="Leave `commitBody` out, or write it without `{{ body }}`.",
        ),
        Row(
            "committer",
            why="Headgate's App is the committer of what it lands.",
            todo="Nothing.",
        ),
        *_bors_row(
            "update_base_for_deletes",
            why="GitHub itself retargets pull requests when a branch is deleted after a merge.",
            todo="Nothing.",
        ),
    ),
    (
        ("merge_method", "MERGE_COMMIT", "what bors does without `use_squash_merge`"),
        ("batch", True, "bors tests together what waits"),
        ("batch_sizing", "ADAPTIVE", "the size follows the load, as with bors"),
        DIRECT,
    ),
)

STATE_LABELS = (
    "Headgate has labels of its own for states.",
    "Set `stateLabelsEnabled: true` if you want them, and change what reads the old ones.",
)
RUST_BORS = Source(
    other_queues.RUST_BORS,
    (
        Row("timeout", to("testing_timeout_minutes", minutes_of_seconds)),
        Row(
            "min_ci_time",
            why="Headgate counts a check only once it has run, however short the run was.",
            todo="Nothing.",
        ),
        *without(STATE_LABELS, "labels"),
        *without(BLOCKED, "labels_blocking_approval"),
        Row("merge_queue_enabled"),
    ),
    (("merge_method", "MERGE_COMMIT", "what rust-bors does"), DIRECT),
)


def _priority_label(value: object) -> Settings:
    rule = EntryRule("priority label", when=f"{_quoted(text(value))} in labels", priority=10)
    return {"rules": (rule,)}


def _label(value: object) -> Settings:
    if isinstance(value, list) and len(value) > 1:
        raise Unfit("A queue has one label.", f"Choose one of {', '.join(map(str, value))}.")
    return {"enqueueing_label": text(value[0] if isinstance(value, list) and value else value)}


def _title(value: object) -> Settings:
    return {"commit_title": "{{ title }} (#{{ number }})"} if value == "pull_request_title" else {}


def _body(value: object) -> Settings:
    if value == "empty":
        raise Unfit("A commit without a body cannot be asked for.", "Write a `commitBody`.")
    return {"commit_body": "{{ body }}"} if value == "pull_request_body" else {}


BODY_AS_IT_IS = (
    "The text of a pull request becomes the body of a commit as it is.",
    "Write `commitBody`; `{{ co_authors }}` and `{{ number }}` are among its placeholders.",
)
BY_ITSELF = (
    "Headgate submits no pull request by itself: a person comments `/merge` or adds the label.",
    "Let a workflow add the label where you want that.",
)
MESSAGE = "merge.message."
KODIAK = Source(
    other_queues.KODIAK,
    (
        Row("version"),
        Row("merge.automerge_label", _label),
        Row("merge.method", to("merge_method", method)),
        Row("merge.delete_branch_on_merge", to("delete_branch", flag)),
        Row(f"{MESSAGE}title", _title),
        Row(f"{MESSAGE}body", _body),
        *without(
            BODY_AS_IT_IS,
            f"{MESSAGE}body_type",
            f"{MESSAGE}strip_html_comments",
            f"{MESSAGE}cut_body_before",
            f"{MESSAGE}cut_body_after",
            f"{MESSAGE}cut_body_and_text",
            f"{MESSAGE}include_coauthors",
            f"{MESSAGE}include_pull_request_author",
            f"{MESSAGE}include_pull_request_url",
        ),
        Row(
            f"{MESSAGE}include_pr_number",
            why="`commitTitle` says itself whether it has the number.",
            todo='Without the number: `commitTitle: "{{ title }}"`.',
        ),
        *without(BY_ITSELF, "merge.require_automerge_label", "merge.automerge_dependencies"),
        *without(
            BLOCKED,
            "merge.blocking_title_regex",
            "merge.blacklist_title_regex",
            "merge.do_not_merge",
        ),
        Row("merge.blocking_labels", _blocked),
        Row("merge.blacklist_labels", _blocked),
        Row("merge.block_on_reviews_requested", why=REVIEWS, todo=SET_RULE),
        Row(
            "merge.notify_on_conflict",
            why="Headgate always says that a pull request conflicts, and removes its label.",
            todo="Nothing.",
        ),
        *without(NO_UPDATES, "merge.optimistic_updates", "merge.update_branch_immediately"),
        Row(
            "merge.dont_wait_on_status_checks",
            why="Headgate waits for required checks, and for no others.",
            todo="Nothing, unless a rule requires one of them.",
        ),
        Row(
            "merge.prioritize_ready_to_merge",
            why="With `directMergeMode: ALWAYS`, which the first `/merge` sets, a pull request "
            "whose head contains the tip and has passed lands at once.",
            todo="Nothing.",
        ),
        Row("merge.priority_merge_label", _priority_label),
        *without(NO_UPDATES, "update"),
        Row(
            "approve",
            why="Headgate approves no pull request.",
            todo="Let a workflow approve them, or exempt the bot in the branch's ruleset.",
        ),
    ),
    (("enqueueing_label", "automerge", "Kodiak's own label if the file names none"),),
)

TRUNK = Source(
    other_queues.TRUNK,
    (Row("required_statuses", to("required_statuses", names)),),
    (DIRECT,),
    (
        "Trunk keeps the other settings of its queue on its website, and may merge past this one.",
        "Look up mode, concurrency, batching, timeouts and the rest there: most have the same "
        "names here (`headgate config schema`). Then delete Trunk's queue and the key `merge`.",
    ),
)

WHERE: dict[str, tuple[str, ...]] = {TRUNK.name: ("merge",)}
"""The part of a file that concerns merging, where the rest is about other things."""

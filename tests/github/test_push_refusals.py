"""What a refused push means, in the words that git shows of it.

The outputs have the form of https://github.com/ejoffe/spr/issues/422.
"""

import pytest

from bot.github.gitbuild import push
from bot.github.gitbuild.command import Output
from bot.github.gitbuild.mirror import Reason

REF = "refs/heads/headgate/merge/1"
OTHER = "refs/heads/headgate/merge/2"
DECLINED = "[remote rejected] (push declined due to repository rule violations)"
GH006 = "[remote rejected] (protected branch hook declined)"
WORKFLOWS = (
    "[remote rejected] (refusing to allow a GitHub App to create or update workflow "
    "`.github/workflows/ci.yml` without `workflows` permission)"
)


def block(ref: str, sentence: str) -> str:
    return (
        f"remote: error: GH013: Repository rule violations found for {ref}.\n"
        "remote: Review all repository rules at https://github.com/o/r/rules?ref=x\n"
        f"remote:\nremote: - {sentence}\nremote:\n"
    )


@pytest.mark.parametrize("most", [2, 5, 12])
def test_the_limit_of_a_push_policy_is_read(most: int) -> None:
    said = block(REF, f"Pushes can not update more than {most} branches or tags.")
    assert push.refs_max_of(said + said) == most


def test_other_refusals_name_no_limit() -> None:
    assert push.refs_max_of(block(REF, "Cannot update this protected ref.")) is None


@pytest.mark.parametrize(
    ("words", "reason", "is_failure"),
    [
        (DECLINED, Reason.PUSH_RULE, True),
        (GH006, Reason.PUSH_RULE, True),
        ("[remote rejected] (pre-receive hook declined)", Reason.PUSH_HOOK, True),
        ("remote: Permission to o/r.git denied to x[bot].", Reason.PUSH_DENIED, True),
        ("fatal: The requested URL returned error: 403", Reason.PUSH_DENIED, True),
        (WORKFLOWS, Reason.PUSH_WORKFLOWS, False),
        (WORKFLOWS.replace("`", ""), Reason.PUSH_WORKFLOWS, False),
        ("[remote rejected] (failed)", Reason.PUSH_BUSY, False),
        ("[remote rejected] (failure)", Reason.PUSH_BUSY, False),
        ("[remote failure] (remote failed to report status)", Reason.PUSH, True),
    ],
)
def test_a_refusal_has_a_reason(words: str, reason: Reason, is_failure: bool) -> None:
    found = push.unusable(words)
    assert (found.reason, found.words, found.is_failure) == (reason, words, is_failure)


def test_each_ref_has_the_sentences_that_github_said_of_it() -> None:
    lines = f"!\t:{REF}\t{DECLINED}\n*\tx:{OTHER}\t[new branch]\n!\tx:refs/heads/a\t{GH006}\n"
    errors = (
        block(REF, "Cannot delete this branch")
        + "remote: error: GH006: Protected branch update failed for refs/heads/a.\n"
        + "remote: - Cannot change this locked branch\nremote: - And so on.\n"
    )
    assert push.results_of(Output(1, lines.encode(), errors)) == {
        REF: f"{DECLINED} Cannot delete this branch",
        OTHER: "",
        "refs/heads/a": f"{GH006} Cannot change this locked branch And so on.",
    }


def test_sentences_that_name_no_ref_are_said_of_each() -> None:
    errors = "remote: - Pushes are closed.\nhint: - not of the server\n"
    assert push.sentences_of(errors, REF) == "Pushes are closed."

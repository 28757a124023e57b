"""A scenario as its comments show it."""

from service.mergequeue.wording import notices
from tests.harness.expect import expect
from tests.mergequeue.scenario import FILES, Play


def test_the_comments_of_a_failure_ahead():
    pages = []
    for step in Play(FILES["failure-ahead"]).steps():
        shown = [notices.status_comment(view) for view in step.views if view.entry.pr in (1, 2)]
        pages += [f"after {step.part}:", *shown]
    expect("\n\n".join(pages)).matches("story-failure-ahead.txt")

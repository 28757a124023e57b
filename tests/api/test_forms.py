"""What is said of a value that has another form than its field."""

import pytest

from service.http.models import common
from service.mergequeue.api.models import pull_requests, queues
from service.mergequeue.operations import setting_types
from tests.api.test_models import NAMED, PR, the_fault


@pytest.mark.parametrize(
    ("model", "differences", "said"),
    [
        (
            pull_requests.SubmitPullRequest,
            {"pr": {"number": 1, "sha": "000000"}},
            (
                "/pr/sha",
                "format",
                "must be the commit, or its first 7 hexadecimal digits or more",
            ),
        ),
        (
            pull_requests.SetImpactedTargets,
            {"pr": {"number": 1, "sha": "0000000"}, "impactedTargets": "ALL"},
            ("/pr/sha", "format", "must be the whole commit: 40 hexadecimal digits, or 64"),
        ),
        (
            queues.ReleaseQueueHold,
            {"holdId": "nope", "text": "over"},
            (
                "/holdId",
                "format",
                "must be the id of a hold, as `headgate queue show` lists it",
            ),
        ),
        (
            pull_requests.SubmitPullRequest,
            {**PR, "priority": "asap"},
            (
                "/priority",
                "enum",
                "must be one of urgent, high, medium, low, lowest or 0 to 255",
            ),
        ),
    ],
)
def test_a_value_of_another_form_is_told_the_form(model, differences, said):
    assert the_fault(model, {**NAMED, **differences}) == said


def patterns_in(schema):
    """Every pattern of a JSON schema, at any depth."""
    if isinstance(schema, list):
        return {found for each in schema for found in patterns_in(each)}
    if not isinstance(schema, dict):
        return set()
    own = {schema["pattern"]} if isinstance(schema.get("pattern"), str) else set()
    return own | patterns_in(list(schema.values()))


def subclasses(model):
    return [model, *(found for each in model.__subclasses__() for found in subclasses(each))]


WORDED_BY_VALIDATORS = {
    common.ANYTHING,
    common.NOT_BLANK_LINE,
    common.NOT_BLANK_LINES,
    common.NUMBER_DIGITS,
    common.TIME_FORM,
    pull_requests.ASCII,
    setting_types.PRIORITY_DIGITS,
}
"""Patterns that only the document knows: a validator of our own reads the field."""


def test_every_pattern_of_a_field_has_words_for_people():
    used = {
        found
        for model in subclasses(common.Request)
        for found in patterns_in(model.model_json_schema())
    }
    assert used - WORDED_BY_VALIDATORS == set(common.FORMS)

"""Enums in lower case where an operator wants them so (docs/design/http.md 3)."""

import json

import pytest

from service.http import encoding
from service.http.encoding import Encoder
from service.http.models.answers.common import Answer
from service.mergequeue.engine.states import EntryState
from service.runtime import EnumCase


class StateShown(Answer):
    state: EntryState


@pytest.mark.parametrize(("case", "word"), [(EnumCase.SPEC, "MERGED"), (EnumCase.LOWER, "merged")])
def test_what_the_specification_writes_stays_by_default(case, word):
    shown = StateShown(state=EntryState.MERGED)
    encoder = Encoder(case)
    assert encoder.plain(shown) == json.loads(encoder.encoded(shown)) == {"state": word}


@pytest.mark.parametrize(
    ("shown", "lower"),
    [
        ({"state": "PENDING_FAILURE"}, {"state": "pending_failure"}),
        ({"branch": "MAIN", "stateReason": "NO"}, {"branch": "MAIN", "stateReason": "NO"}),
        ({"targetMode": None}, {"targetMode": None}),
        ({"holds": [{"scope": "BOTH"}]}, {"holds": [{"scope": "both"}]}),
        ({"batchingRules": ({"policy": "ISOLATE"},)}, {"batchingRules": [{"policy": "isolate"}]}),
        (
            {"readiness": {"gitHubMergeability": "MERGEABLE"}},
            {"readiness": {"gitHubMergeability": "mergeable"}},
        ),
        (
            {"timeline": [{"event": "EntryMoved", "from": "TESTING", "to": "PENDING"}]},
            {"timeline": [{"event": "EntryMoved", "from": "testing", "to": "pending"}]},
        ),
        ({"requiredStatuses": ["Lint"]}, {"requiredStatuses": ["Lint"]}),
    ],
)
def test_a_word_of_a_queue_is_lower_wherever_it_stands(shown, lower):
    assert encoding.in_lower(shown) == lower


def test_the_providers_own_words_stay():
    shown = {
        "checkSuites": [{"checkRuns": [{"status": "COMPLETED", "conclusion": "FAILURE"}]}],
        "statusChecks": [{"context": "lint", "state": "SUCCESS"}],
        "status": "failed",
    }
    assert json.dumps(encoding.in_lower(shown)) == json.dumps(shown)


def test_an_object_by_names_of_settings_keeps_its_words():
    shown = {"settingSources": {"mode": "DEFAULT", "concurrency": "API"}}
    assert encoding.in_lower(shown) == shown

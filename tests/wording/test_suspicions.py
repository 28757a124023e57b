"""The sentence for what is believed of a pull request whose tests failed."""

import pytest

from service.mergequeue.engine.suspicion import FailedTogether, Fate, Other, Suspicion
from service.mergequeue.wording import suspicions
from service.text import markdown
from tests.wording import builders, hygiene


def with_others(more: int = 0, /, **fates: Fate) -> FailedTogether:
    """A failed run with these: `_12=Fate.MERGED`."""
    others = tuple(Other(int(name[1:]), fate) for name, fate in fates.items())
    return FailedTogether("r1", others, more)


MERGED, PASSED, LEFT, UNDECIDED = Fate.MERGED, Fate.PASSED, Fate.LEFT, Fate.UNDECIDED
SENTENCES = [
    (Suspicion(99, 2, 0), "99 % to blame: failed alone twice."),
    (
        Suspicion(97, 1, 1, (with_others(_12=MERGED),)),
        "97 % to blame: failed alone once, failed with #12, which has merged since.",
    ),
    (
        Suspicion(44, 0, 1, (with_others(_11=PASSED, _12=PASSED, _14=UNDECIDED),)),
        "44 % to blame: failed with #11, #12 and #14, of which #11 and #12 have passed since.",
    ),
    (
        Suspicion(44, 0, 1, (with_others(_11=LEFT, _12=LEFT),)),
        "44 % to blame: failed with #11 and #12, which have left the queue since.",
    ),
    (
        Suspicion(30, 0, 1, (with_others(5, _11=LEFT, _12=MERGED),)),
        "30 % to blame: failed with #11, #12 and 5 more, of which #12 has merged and #11 has left"
        " the queue since.",
    ),
    (
        Suspicion(60, 0, 4, (with_others(_12=UNDECIDED), with_others(_13=UNDECIDED))),
        "60 % to blame: failed with #12, failed with #13, failed with others twice before.",
    ),
]


@pytest.mark.parametrize(("believed", "sentence"), SENTENCES)
def test_the_sentence(believed: Suspicion, sentence: str) -> None:
    assert suspicions.message(believed) == sentence
    written = markdown.markdown(suspicions.sentence(believed), builders.LINKS)
    assert hygiene.faults(written) == []


def test_of_one_that_is_no_suspect_nothing_is_said() -> None:
    assert suspicions.sentence(None).parts == ()


def test_every_fate_has_a_word() -> None:
    assert set(suspicions.FATES) == set(Fate)

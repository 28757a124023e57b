"""docs/reference/metrics.md says of every family what the page itself says."""

import re
from pathlib import Path

from bot.fingerprint import OWN
from service.metrics.process_families import FAMILIES as OF_THE_PROCESS
from service.metrics.queue_families import FAMILIES, SLIDES, TOKENS_EXPIRING

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
ROW = re.compile(r"^\| `(\w+)` \| (\w+) \| (.*?) ?\| (.+) \|$", re.MULTILINE)


def test_the_page_has_every_family_as_it_is():
    text = PAGE.read_text("utf-8")
    found = {
        name: (kind, tuple(re.findall(r"`(\w+)`", labels)), said)
        for name, kind, labels, said in ROW.findall(text)
    }
    ours = {
        one.name: (
            one.kind,
            tuple(label for label in one.labels if not (one.is_rolling and label == "queue_type")),
            one.text.removesuffix(SLIDES),
        )
        for one in FAMILIES
    }
    assert found == ours | OF_THE_PROCESS
    assert f"`{TOKENS_EXPIRING.name}`" in text


def test_the_page_names_every_setting_that_instances_may_differ_in():
    text = PAGE.read_text("utf-8")
    part = text[text.index("Only these may differ") : text.index("and the App's keys")]
    named = {name.removeprefix("HEADGATE_").lower() for name in re.findall(r"`(\w+)`", part)}
    assert named == {name for name in OWN if "private_key" not in name}

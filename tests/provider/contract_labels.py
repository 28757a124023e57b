"""What every provider does with labels of pull requests; the runners give the `stage`."""

from dataclasses import replace

import pytest

from service.provider.errors import Gone
from service.provider.labels import LabelRemoval, LabelReturn


class Labels:
    """Who changed a label last, and removing one."""

    async def test_the_newest_change_of_a_label_names_its_author(self, stage):
        number, _ = await stage.open({"a.txt": "a\n"})
        assert await stage.provider.label_change(stage.repo, number, "ship") is None
        seen = set()
        for act, who in (("label", "alice"), ("unlabel", "bob"), ("label", "bob")):
            await stage.act(act, by=who, number=number, label="Ship")
            await stage.act("label", number=number, label=f"other-{act}-{who}")
            change = await stage.provider.label_change(stage.repo, number, "ship")
            assert (change.added, change.actor.id) == (act == "label", stage.actor(who).id)
            seen.add(change.id)
        assert len(seen) == 3

    async def test_our_own_changes_of_a_label_only_say_whether_it_is_undone(self, stage):
        number, _ = await stage.open({"a.txt": "a\n"})
        await stage.act("label", by="bob", number=number, label="ship")
        added = await stage.provider.label_change(stage.repo, number, "ship")
        await stage.say(LabelRemoval(number, "ship"))
        undone = await stage.provider.label_change(stage.repo, number, "ship")
        await stage.say(LabelReturn(number, "ship"))
        returned = await stage.provider.label_change(stage.repo, number, "ship")
        assert [added, replace(undone, undone=False), returned] == [added] * 3
        assert (added.undone, undone.undone) == (False, True)
        assert (await stage.provider.pull_request(stage.repo, number)).labels == ("ship",)

    async def test_the_changes_of_a_pull_request_that_is_not_there_are_gone(self, stage):
        with pytest.raises(Gone):
            await stage.provider.label_change(stage.repo, 999, "ship")

    async def test_a_label_is_removed_once(self, stage):
        number, _ = await stage.open({"a.txt": "a\n"})
        for name in ("a/b", "c d"):
            await stage.act("label", number=number, label=name)
        await stage.say(LabelRemoval(number, "a/b"))
        await stage.say(LabelRemoval(number, "A/B"))
        assert (await stage.provider.pull_request(stage.repo, number)).labels == ("c d",)

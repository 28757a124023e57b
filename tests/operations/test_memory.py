"""What the process keeps between requests, and how much of it at most."""

from service import memory
from service.memory import Shelf


def test_a_shelf_keeps_answers_of_its_version_alone():
    shelf: Shelf[str] = Shelf()
    assert shelf.get(1, "who") is None
    shelf.put(1, "who", "alice")
    assert shelf.get(1, "who") == "alice"
    assert shelf.get(2, "who") is None
    shelf.put(1, "who", "alice")
    assert shelf.get(2, "who") is None


def test_a_shelf_never_holds_more_than_its_bound(monkeypatch):
    monkeypatch.setattr(memory, "SHELF_MAX", 3)
    shelf: Shelf[int] = Shelf()
    shelf.get(1, 0)
    for question in range(100):
        shelf.put(1, question, question)
        kept = [each for each in range(100) if shelf.get(1, each) is not None]
        assert len(kept) <= 3
        assert question in kept

"""What the process keeps between requests, and how much of it at most."""

from service import memory
from service.memory import Memory, VersionedCache


def test_memory_has_one_object_of_each_class():
    kept = Memory()
    first = kept.of(VersionedCache)
    assert kept.of(VersionedCache) is first
    kept.clear()
    assert kept.of(VersionedCache) is not first


def test_a_versioned_cache_keeps_answers_of_its_version_alone():
    cache: VersionedCache[str, str] = VersionedCache()
    assert cache.get(1, "who") is None
    cache.put(1, "who", "alice")
    assert cache.get(1, "who") == "alice"
    assert cache.get(2, "who") is None
    cache.put(1, "who", "alice")
    assert cache.get(2, "who") is None


def test_a_versioned_cache_never_holds_more_than_its_bound(monkeypatch):
    monkeypatch.setattr(memory, "ANSWERS_MAX", 3)
    cache: VersionedCache[int, int] = VersionedCache()
    cache.get(1, 0)
    for question in range(100):
        cache.put(1, question, question)
        kept = [each for each in range(100) if cache.get(1, each) is not None]
        assert len(kept) <= 3
        assert question in kept

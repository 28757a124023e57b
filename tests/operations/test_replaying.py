"""The process that replays a queue's history does what the command line does."""

import io
import os
import pickle
import resource
from types import SimpleNamespace

from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.operations import replaying, simulate
from service.mergequeue.operations.simulate import Recorded
from service.mergequeue.simulation import stream


def test_it_answers_with_the_comparison_within_its_limits(monkeypatch):
    limits: dict[int, tuple[int, int]] = {}
    monkeypatch.setattr(resource, "setrlimit", limits.__setitem__)
    monkeypatch.setattr(os, "nice", lambda _: None)
    recorded = Recorded(QueueConfig(concurrency=2), stream.made_up(5))
    sent = io.BytesIO(pickle.dumps((recorded, {"concurrency": 5})))
    told = io.BytesIO()
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=sent))
    monkeypatch.setattr("sys.stdout", SimpleNamespace(buffer=told))
    replaying.main()
    expected = simulate.compare(
        (recorded.history,), recorded.config, {"concurrency": 5}, 1, lambda *_: None
    )
    assert pickle.loads(told.getvalue()) == expected
    assert set(limits) == {resource.RLIMIT_CPU, resource.RLIMIT_AS}

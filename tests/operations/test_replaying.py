"""The process that replays a queue's history does what the command line does."""

import io
import os
import pickle
import resource
from dataclasses import replace
from types import SimpleNamespace

from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.operations import replaying, simulate
from service.mergequeue.operations.simulate import Recorded
from service.mergequeue.simulation import stream


def test_it_answers_with_the_comparison_within_its_limits(monkeypatch):
    limits: dict[int, tuple[int, int]] = {}
    monkeypatch.setattr(resource, "setrlimit", limits.__setitem__)
    monkeypatch.setattr(os, "nice", lambda _: None)
    history = stream.made_up(5)
    some = replace(history, arrivals=history.arrivals[:60])
    recorded = Recorded(QueueConfig(concurrency=2), some)
    sent = io.BytesIO(pickle.dumps((recorded, [{"concurrency": 5}, {"batch": True}])))
    told = io.BytesIO()
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=sent))
    monkeypatch.setattr("sys.stdout", SimpleNamespace(buffer=told))
    replaying.main()
    expected = tuple(
        simulate.compare((recorded.history,), recorded.config, changes, 1, lambda *_: None)
        for changes in ({"concurrency": 5}, {"batch": True})
    )
    assert pickle.loads(told.getvalue()) == expected
    assert set(limits) == {resource.RLIMIT_CPU, resource.RLIMIT_AS}
    sent.seek(0)
    told.seek(0)
    told.truncate()
    monkeypatch.setattr(replaying, "BEGIN_S", 0)
    replaying.main()
    assert pickle.loads(told.getvalue()) == expected[:1]

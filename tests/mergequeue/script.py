"""One scenario: the queue that its first line makes, and its inputs played one by one.

`queue SINGLE|PARALLEL [FLAG|KEY=VALUE]…`: flags `optimistic`, `manual build`, `manual land`;
`evidence=yes` for a repository that sends test results, `reruns=yes` for one in which failed checks
may run again; settings as in `words.py`, with
`confirm_failures=BISECTION` unless the line sets it: most scenarios are not about confirmations.
Inputs are `verb arguments` as in `playing.py` and `reporting.py`, or a span of time: `+10s`,
`+5m`, `+24h`.
"""

import re
from datetime import timedelta

from service.mergequeue.engine import inputs
from service.mergequeue.engine.config import ConfirmFailures, Mode, QueueConfig, changed
from tests.mergequeue import playing, timeline, words
from tests.mergequeue.stage import Stage, Told

_SPANS = {"s": "seconds", "m": "minutes", "h": "hours"}
_MANUAL = re.compile(r" manual(?: (?:build|land))+")


class Script:
    """One scenario while it is played."""

    def __init__(self, first_line: str) -> None:
        manual = "".join(_MANUAL.findall(first_line)).split()
        title, mode, *settings = _MANUAL.sub("", first_line).split()
        assert title == "queue", first_line
        sends_results = "evidence=yes" in settings
        reruns = "reruns=yes" in settings
        facts = ("evidence=yes", "reruns=yes")
        wanted = words.settings_of(word for word in settings if word not in facts)
        config = changed(
            QueueConfig(mode=Mode(mode), confirm_failures=ConfirmFailures.BISECTION), wanted
        )
        self.stage = Stage(config, manual_build="build" in manual, manual_land="land" in manual)
        self.timeline = timeline.Timeline()
        self.verb = ""
        if sends_results:
            self.stage.tell(inputs.RepositoryChanged(available=True, sends_results=True))
        if reruns:
            self.stage.tell(inputs.RepositoryChanged(reruns=True))

    def play(self, line: str) -> list[str]:
        """One input: what it led to. One that begins with a number repeats the last verb."""
        told = self.told(line)
        if isinstance(told, list):
            return told
        lines = self.timeline.lines(told.events)
        if told.refusal is not None:
            refused = told.refusal
            lines.append(f'refused {refused.reason.value} "{refused.text}"')
        return lines

    def told(self, line: str) -> Told | list[str]:
        """One input: its events and refusal, or the lines of an explanation."""
        verb, *arguments = line.split()
        if verb.startswith("+"):
            span = re.fullmatch(r"\+(\d+)([smh])", verb)
            assert span, line
            return self.stage.passes(timedelta(**{_SPANS[span[2]]: int(span[1])}))
        if verb.isdigit():
            arguments = [verb, *arguments]
        else:
            self.verb = verb
        return playing.VERBS[self.verb](self.stage, arguments)

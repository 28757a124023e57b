"""Whether this machine's clock and GitHub's agree."""

from collections.abc import Iterator

from bot.github.audits.facts import AppFacts
from service.provider.audits import Finding, error, warning

ID = "clock-skew"
FINE = "This machine's clock and GitHub's agree."

WARNED_S = 30
# The App's token begins 60 s ago (bot/github/auth.py) and ends within GitHub's limit of 600 s.
REFUSED_S = 60
MEND = "Synchronize the clock, for example with `timedatectl set-ntp true`."


def decide(facts: AppFacts) -> Iterator[Finding]:
    """Yield a finding above 30 s."""
    if abs(facts.skew_s) >= WARNED_S:
        severity = error if abs(facts.skew_s) >= REFUSED_S else warning
        way = "ahead of" if facts.skew_s > 0 else "behind"
        yield severity(
            ID,
            f"This machine's clock is {round(abs(facts.skew_s))} s {way} GitHub's; above "
            f"{REFUSED_S} s GitHub refuses the App.",
            MEND,
        )

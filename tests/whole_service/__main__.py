"""`python -m tests.whole_service SEED`: one history, step by step.

Given the name of a planted fault, the history that shows it; with `planted` after it, as it is
with the fault.
"""

import sys
import time

import pytest

from tests.whole_service.plan import drawn
from tests.whole_service.planted import FAULTS
from tests.whole_service.play import Broken, play

wanted, *more = sys.argv[1:]
if wanted in FAULTS:
    fault = FAULTS[wanted]
    plan = fault.plan(fault.shown_by)
    if more:
        fault.plant(pytest.MonkeyPatch())
else:
    plan = drawn(int(wanted))
print(plan)
began_s = time.process_time()
try:
    print(play(plan, print))
except Broken as broken:
    sys.exit(str(broken))
finally:
    print(f"{time.process_time() - began_s:.1f} s of this machine")

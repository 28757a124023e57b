"""The face of GitHub that a test meets: drawn from its name, so that all tests together meet all.

`HEADGATE_FACE_SEED` draws others; `make soak` does so each day.
"""

import os

from bot.sandbox import faces
from bot.sandbox.faces import Face


def of_this_test() -> Face:
    """The face of the test that runs now; outside of tests GitHub's descriptions and no jitter."""
    test, _, _ = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")
    if not test:
        return faces.PLAIN
    return faces.drawn(f"{os.environ.get('HEADGATE_FACE_SEED', '')}:{test}")

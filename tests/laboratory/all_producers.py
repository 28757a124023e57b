"""All producers of the laboratory, by name."""

from tests.laboratory import javascript, machine, python
from tests.laboratory.producer import Producer

PRODUCERS: dict[str, Producer] = {**python.PRODUCERS, **javascript.PRODUCERS, **machine.PRODUCERS}

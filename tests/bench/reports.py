"""Reading test reports beside a bare parser of the same bytes (docs/design/detector.md 13).

`parse` is the whole way from bytes to results; the reference is lxml's iterparse, which gives
elements and nothing else. Every other line must keep 20 MiB of any report within 2 s and
256 MiB, and that of the first line within 64 MiB; each is read in a process
of its own as a parser does (`reports_alone.py`), whose peak is the figure. Seconds are those of
the processor, so that others on the machine do not count.
"""

import gc
import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import process_time

from lxml import etree

from service.testhealth.reports import reports
from service.testhealth.reports.reading import ReadOptions

ROUNDS = 5
CASES = 100_000
REPORT_BYTES = 20 * 1024 * 1024
RATIO_GOAL, SECONDS_GOAL, PEAK_MIB_GOAL = 3.0, 2.0, 256
CASES_PEAK_MIB_GOAL = 64


def run(scale: float = 1.0) -> Sequence[dict[str, object]]:
    """Measure every line; `scale` multiplies the sizes."""
    cases = int(CASES * scale)
    whole = suite(passing(number) for number in range(cases))
    size = int(REPORT_BYTES * scale)
    return [
        beside_lxml(cases),
        alone(f"JUnit, {cases:,} cases, a parser alone", whole, CASES_PEAK_MIB_GOAL),
        *(alone(name, sample(size), PEAK_MIB_GOAL) for name, sample in SAMPLES.items()),
    ]


def beside_lxml(cases: int) -> dict[str, object]:
    """The ratio to a bare parser, both measured by turns, the best of each."""
    content = suite(passing(number) for number in range(cases))
    ours, bare = [], []
    # Results hold no circles; what the collector costs depends on what else a process holds.
    gc.disable()
    for _ in range(ROUNDS):
        bare.append(took(lambda: count_by_lxml(content)))
        ours.append(took(lambda: reports.read(content, None, ReadOptions())))
    gc.enable()
    return {
        "subject": f"JUnit, {cases:,} cases",
        "bytes": len(content),
        "s": round(min(ours), 3),
        "bare_s": round(min(bare), 3),
        "ratio": round(min(ours) / min(bare), 2),
        "ratio_goal": RATIO_GOAL,
    }


def alone(subject: str, content: bytes, peak_mib_goal: int) -> dict[str, object]:
    """Seconds and peak of one report."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "report")
        path.write_bytes(content)
        command = [sys.executable, "-m", "tests.bench.reports_alone", str(path)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    figures = json.loads(done.stdout)
    return {
        "subject": subject,
        **figures,
        "s_goal": SECONDS_GOAL,
        "peak_mib_goal": peak_mib_goal,
    }


def took(work: Callable[[], object]) -> float:
    """Seconds of one call."""
    began = process_time()
    work()
    return process_time() - began


def count_by_lxml(content: bytes) -> int:
    """The bare parser: elements of cases, each cleared."""
    count = 0
    for _, element in etree.iterparse(io.BytesIO(content), events=("end",), tag="testcase"):
        element.clear()
        count += 1
    return count


def suite(cases: Iterator[str]) -> bytes:
    """A report of these cases."""
    return f'<testsuites><testsuite name="s">{"".join(cases)}</testsuite></testsuites>'.encode()


def passing(number: int) -> str:
    """A passed case as most producers write it; its duration is like no other's."""
    return (
        f'<testcase classname="pkg.mod{number % 500}.TestClass" name="test_number_{number}"'
        f' file="tests/mod{number % 500}.py" line="{number % 900}" time="{number * 1.37e-6:.6f}">'
        "</testcase>\n"
    )


def failing(number: int) -> str:
    """A failed case with a message, a stack and some output."""
    stack = "".join(f'  File "src/mod{at}.py", line {at}, in call_{at}\n' for at in range(12))
    return (
        f'<testcase classname="pkg.TestClass" name="test_{number}" time="0.5"><failure'
        f' message="AssertionError: {number} != 11" type="AssertionError">{stack}</failure>'
        f"<system-out>{'printed ' * 20}</system-out></testcase>\n"
    )


def as_many(case: Callable[[int], str], size: int) -> Iterator[str]:
    """Cases that fill so many bytes."""
    return (case(number) for number in range(size // len(case(10_000))))


def of_go(size: int) -> bytes:
    """A Go run of three events a test."""

    def events(number: int) -> str:
        fields = f'"Package":"shop/cart","Test":"TestNumber{number}"'
        return (
            f'{{"Action":"run",{fields}}}\n'
            f'{{"Action":"output",{fields},"Output":"=== RUN   TestNumber{number}\\n"}}\n'
            f'{{"Action":"pass",{fields},"Elapsed":0.01}}\n'
        )

    return "".join(as_many(events, size)).encode()


def of_ctrf(size: int) -> bytes:
    """A CTRF document."""
    tests = ",".join(
        as_many(
            lambda number: (
                f'{{"name":"test {number}","status":"passed","duration":12,"suite":"s"}}'
            ),
            size,
        )
    )
    return f'{{"results":{{"tests":[{tests}]}}}}'.encode()


SAMPLES: dict[str, Callable[[int], bytes]] = {
    "JUnit, passed": lambda size: suite(as_many(passing, size)),
    "JUnit, failed": lambda size: suite(as_many(failing, size)),
    "JUnit, one output": lambda size: suite(
        iter([f'<testcase name="n"><system-out>{"x" * size}</system-out></testcase>'])
    ),
    "JUnit, markup": lambda size: suite(iter(["<p></p>" * (size // 7)])),
    "Go": of_go,
    "CTRF": of_ctrf,
}

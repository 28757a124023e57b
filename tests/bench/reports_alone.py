"""A parser alone, for `reports.py`: reads one file, and says what that took as a line of JSON.

Nothing is imported here but what a parser imports, so that the peak is that of a parser.
"""

import gc
import json
import sys
from pathlib import Path
from time import process_time

from service.testhealth.operations import parser_process
from service.testhealth.operations.parser_process import Limits, Work
from service.testhealth.reports.reading import ReadOptions

UNLIMITED = Limits(computing_s=60, memory_bytes=2**32)


def main() -> None:
    """Read the file that the first argument names, and turn it into what goes back."""
    gc.disable()
    work = Work([Path(sys.argv[1]).read_bytes()], None, ReadOptions(), UNLIMITED)
    began = process_time()
    done = parser_process.read(work)
    seconds = process_time() - began
    for _ in parser_process.encoded(done):
        pass
    status = Path("/proc/self/status").read_text("utf-8")
    peak_kib = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    size = len(work.contents[0])
    figures = {"bytes": size, "s": round(seconds, 2), "peak_mib": int(peak_kib) // 1024}
    sys.stdout.write(json.dumps(figures))


if __name__ == "__main__":
    main()

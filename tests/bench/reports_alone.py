"""A parser alone, for `reports.py`: reads one file, and says what that took as a line of JSON.

Nothing is imported here but what a parser imports, so that the peak is that of a parser.
"""

import gc
import json
import pickle
import sys
from pathlib import Path
from time import process_time

from service.testhealth.operations import report_pieces
from service.testhealth.operations.report_pieces import Work
from service.testhealth.reports.reading import ReadOptions


def main() -> None:
    """Read the file that the first argument names, and turn it into what goes back."""
    gc.disable()
    work = Work([Path(sys.argv[1]).read_bytes()], None, ReadOptions())
    began = process_time()
    done = report_pieces.read(work)
    seconds = process_time() - began
    for piece in report_pieces.encoded(done):
        pickle.dumps(piece, pickle.HIGHEST_PROTOCOL)
    status = Path("/proc/self/status").read_text("utf-8")
    peak_kib = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    size = len(work.contents[0])
    figures = {"bytes": size, "s": round(seconds, 2), "peak_mib": int(peak_kib) // 1024}
    sys.stdout.write(json.dumps(figures))


if __name__ == "__main__":
    main()

"""What docs/reference/flake-detection.md says of the worlds with one law each."""

from pathlib import Path

SECTION = "\n" + (Path(__file__).parent / "section.txt").read_text()

"""The settings files of other merge queues and bots, as their own documentation names them."""

from collections.abc import Mapping

MERGIFY, BORS, RUST_BORS, KODIAK = "Mergify", "bors", "rust-bors", "Kodiak"
TRUNK, BULLDOZER = "Trunk", "Bulldozer"

FILES: Mapping[str, str] = {
    ".mergify.yml": MERGIFY,
    ".mergify.yaml": MERGIFY,
    ".mergify/config.yml": MERGIFY,
    ".mergify/config.yaml": MERGIFY,
    ".github/mergify.yml": MERGIFY,
    ".github/mergify.yaml": MERGIFY,
    "bors.toml": BORS,
    ".github/bors.toml": BORS,
    "rust-bors.toml": RUST_BORS,
    ".kodiak.toml": KODIAK,
    ".github/.kodiak.toml": KODIAK,
    ".trunk/trunk.yaml": TRUNK,
    ".bulldozer.yml": BULLDOZER,
    ".github/bulldozer.yml": BULLDOZER,
}
"""Which tool reads a path; of several files of one tool the first counts."""


def tool_of(path: str) -> str | None:
    """Return the tool whose settings file this is, by the end of its path; None: no other's."""
    return next((FILES[one] for one in FILES if f"/{path}".endswith(f"/{one}")), None)

"""The documentation as a site: every page is in it and in its search, and a broken link fails."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidy import tree
from tests.tidy.tree import ROOT


def build(root: Path, out: Path) -> subprocess.CompletedProcess[str]:
    """Run what `make site` runs, over the pages below a folder."""
    makefile = (ROOT / "Makefile").read_text("utf-8")
    (command,) = (line for line in makefile.splitlines() if "-m sphinx" in line)
    command = command.strip().removeprefix("@").replace("$(BIN)/python", sys.executable)
    arguments = command.replace(".cache", str(out)).split()
    return subprocess.run(arguments, cwd=root, capture_output=True, text=True, check=False)


def pages() -> set[str]:
    """Our Markdown pages, without their suffix."""
    shown = (Path(path) for path, _ in tree.texts() if path.endswith(".md"))
    return {
        path.with_suffix("").as_posix()
        for path in shown
        if path.parts[0] in ("docs", "plugins", path.name)
    }


@pytest.mark.first
def test_every_page_is_in_the_site_and_can_be_found(tmp_path):
    done = build(ROOT, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    site = tmp_path / "site"
    index = (site / "searchindex.js").read_text("utf-8")
    found = json.loads(index.removeprefix("Search.setIndex(").removesuffix(")"))
    assert set(found["docnames"]) == pages()
    side_bar = (site / "docs/design/landing.html").read_text("utf-8")
    missing = {page for page in pages() if f"{Path(page).name}.html" not in side_bar}
    assert missing == {"docs/design/landing"}


def test_a_link_that_leads_nowhere_fails_the_site(tmp_path):
    root = tmp_path / "root"
    (root / "docs").mkdir(parents=True)
    shutil.copy(ROOT / "docs/conf.py", root / "docs/conf.py")
    for page in ("SECURITY.md", "docs/README.md"):
        (root / page).write_text("# Page\n")
    broken = ("docs/none.md", "docs/README.md#none", "#none")
    (root / "README.md").write_text("# Front\n" + "".join(f"\n[it]({link})" for link in broken))
    done = build(root, tmp_path)
    assert done.returncode == 1
    assert [link for link in broken if f"'{link.rpartition('#')[2]}'" not in done.stderr] == []

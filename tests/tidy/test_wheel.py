"""The wheel: what it carries is what the checkout has."""

import subprocess
import sys
import zipfile

import pytest

from tests.tidy import tree
from tests.tidy.tree import PRODUCT, ROOT

INCLUDED = {
    "bot/app.yml": "app.yml",
    "service/http/SKILL.md": "docs/skill/SKILL.md",
    "service/http/SECURITY.md": "SECURITY.md",
}


@pytest.mark.first
def test_the_wheel_carries_every_file_of_the_product_and_the_app_manifest(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        check=True,
        cwd=ROOT,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("headgate-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        carried = {name for name in archive.namelist() if ".dist-info/" not in name}
        for inside, path in INCLUDED.items():
            assert archive.read(inside) == (ROOT / path).read_bytes()
    product = {path for path, _ in tree.texts() if tree.is_in(path, *PRODUCT)}
    assert carried == {*product, *INCLUDED}

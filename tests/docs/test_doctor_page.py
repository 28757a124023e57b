"""docs/reference/doctor.md has a section for each audit, and no other."""

import re
from pathlib import Path

import yaml

from bot.github import live
from bot.github.audits import app
from bot.github.audits import audits as of_github
from bot.host import audits as of_host
from service.mergequeue.operations.doctor import doctor, dry_test, queue

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "doctor.md"


def test_every_audit_has_a_section_and_no_other_has():
    sections = re.findall(r"^## ([a-z-]+)$", PAGE.read_text("utf-8"), re.MULTILINE)
    ids = [
        *of_github.IDS,
        *of_host.IDS,
        *(one.id for one in doctor.AUDITS),
        queue.service.id,
        dry_test.ID,
        *live.CHECKS,
    ]
    assert sorted(sections) == sorted(ids)
    assert len(set(ids)) == len(ids)


def test_the_audits_ask_for_what_the_app_asks_for():
    asked = yaml.safe_load((ROOT / "app.yml").read_text("utf-8"))
    needed = {name: level for name, (level, _) in app.PERMISSIONS.items()}
    assert needed == asked["default_permissions"]
    assert set(app.EVENTS) == set(asked["default_events"])

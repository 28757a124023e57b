"""The page that says how well tests are judged here, and what other settings would have said."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import NamedTuple

from service.accounts import page_addresses
from service.dashboard import requests
from service.dashboard.charts import Chart, Series, day_label, plain
from service.dashboard.requests import Action, PageRequest
from service.errors import Malformed, Overloaded
from service.http.models import common
from service.http.models import settings as models
from service.http.models.common import SnakeRequest
from service.provider.values import AccessLevel
from service.runtime import Runtime
from service.testhealth.operations import quality, settings
from service.testhealth.operations.all_tests import TestAmongOthers
from service.testhealth.operations.quality import Bounds, JudgedPast, Preview
from service.testhealth.settings import SettingValue, TestSettings
from service.vocabulary import QuarantineForgives, Sensitivity

TRIES = AccessLevel.WRITE
"""The access that a preview takes: it costs a replay."""

UNKNOWN = "unknown"
TOO_LITTLE = "too little evidence"
LISTED = 10
"""Flags and failures that the page names."""
SAME = "These are the settings of now. Change one to try it."
NO_ACCESS = "A preview needs write access."
BOTH = "flaky and broken"
STATUSES: Mapping[str, Sequence[str]] = {
    BOTH: ["flaky", "broken"],
    "flaky": ["flaky"],
    "broken": ["broken"],
}
YES_NO = ("false", "true")


@models.takes(TestSettings)
class _Tried(SnakeRequest):
    """The settings of the form."""


class Field(NamedTuple):
    """A setting of the form; `options` empty: a text of several lines."""

    name: str
    label: str
    options: tuple[str, ...]
    text: str


LABELS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "sensitivity": ("How soon a test is called flaky", tuple(Sensitivity)),
    "quarantine_enabled": ("Quarantine", YES_NO),
    "auto_quarantine_enabled": ("Quarantine by status", YES_NO),
    "auto_quarantine_statuses": ("Statuses that quarantine", tuple(STATUSES)),
    "quarantine_forgives": ("Failures that it forgives", tuple(QuarantineForgives)),
    "stable_branches": ("Stable branches, one a line; none: the default", ()),
}


class Row(NamedTuple):
    """A figure under the present settings and under others; `is_changed`: they differ."""

    label: str
    now: str
    then: str

    @property
    def is_changed(self) -> bool:
        """Return whether the two differ."""
        return self.now != self.then


@dataclass(frozen=True, slots=True)
class QualityPage:
    """The page; `trouble` says why there are no figures, `tried_trouble` why no preview.

    `given` are the settings in the address, `tried` those of them that differ from now.
    """

    found: Preview | None
    fields: tuple[Field, ...]
    trouble: str = ""
    given: Mapping[str, str] = field(default_factory=dict)
    tried: Mapping[str, str] = field(default_factory=dict)
    preview: Preview | None = None
    tried_trouble: str = ""
    needs: AccessLevel = TRIES
    listed: int = LISTED

    @property
    def past(self) -> JudgedPast | None:
        """Return the past under the present settings."""
        return self.found.now if self.found else None

    @property
    def heading(self) -> str:
        """`At least 92 % of the flags were right`."""
        if self.past is None:
            return "How well are tests judged here?"
        counts = self.past.quality
        if counts.precision.low == 1:
            return f"All {counts.flags:,} flags are confirmed"
        if counts.precision.low is not None:
            return f"At least {_percent(counts.precision.low)} of the flags were right"
        if not counts.flags:
            return "No test was flagged flaky in this time"
        return f"{counts.confirmed:,} of {counts.flags:,} flags are confirmed so far"

    @property
    def chart(self) -> Chart:
        """Flags by week."""
        weeks = self.past.by_week if self.past else ()
        return Chart(
            "Flags of flaky tests, by week",
            "A bar is seven days; the last one ends with the newest results.",
            [day_label(date.fromordinal(day)) for day, _ in weeks],
            [Series("flags", "odd", [flags for _, flags in weeks])],
        )

    @property
    def rows(self) -> tuple[Row, ...]:
        """The figures of both settings."""
        if self.preview is None or self.preview.now is None or self.preview.then is None:
            return ()
        pairs = zip(_figures(self.preview.now), _figures(self.preview.then), strict=True)
        return tuple(Row(label, now, then) for (label, now), (_, then) in pairs)

    @property
    def precision(self) -> str:
        """`at least 92 %`."""
        share = self.past.quality.precision if self.past else Bounds(None, None)
        if share.low is None:
            return TOO_LITTLE
        return _percent(1) if share.low == 1 else f"at least {_percent(share.low)}"

    @property
    def recall(self) -> str:
        """`88 to 95 %`."""
        share = self.past.quality.recall if self.past else Bounds(None, None)
        return TOO_LITTLE if share.low is None else _between(share)

    def test_of(self, no: int) -> TestAmongOthers | None:
        """Return a test that is named, None if it is gone."""
        return self.found.tests.get(no) if self.found else None


def _between(share: Bounds) -> str:
    """Return `88 to 95 %`."""
    low, high = share.low or 0.0, share.high or 0.0
    return f"{100 * low:.0f} to {_percent(high)}"


def _percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")


def _figures(past: JudgedPast) -> tuple[tuple[str, str], ...]:
    counts, recall = past.quality, past.quality.recall
    return (
        ("Flags", plain(counts.flags)),
        ("Flags a week", _a_week(past)),
        ("Flags confirmed since", plain(counts.confirmed)),
        ("Flags that were right", _at_least(counts.precision)),
        ("Flaky failures caught", UNKNOWN if recall.low is None else _between(recall)),
        ("Times a test was broken", plain(past.breaks)),
        ("Flaky, broken at the end", f"{len(past.flaky):,}, {len(past.broken):,}"),
        ("Failed results excused", f"{past.excused:,} of {past.failures:,}"),
        ("Queue runs failed by flakes, known", f"{past.spared:,} of {past.innocents:,}"),
    )


def _at_least(share: Bounds) -> str:
    if share.low is None:
        return UNKNOWN
    return _percent(1) if share.low == 1 else f"\N{GREATER-THAN OR EQUAL TO} {_percent(share.low)}"


def _a_week(past: JudgedPast) -> str:
    days = past.until.toordinal() - past.since.toordinal() + 1
    return plain(round(past.quality.flags * 7 / days, 1))


async def read(runtime: Runtime, request: PageRequest) -> QualityPage:
    """Return the page, with a preview of the settings in the address."""
    repository = request.where.repository
    now = await settings.read(runtime, repository)
    given = {name: request.query[name] for name in LABELS if name in request.query}
    fields = tuple(
        Field(name, label, options, given.get(name, text_of(now, name)))
        for name, (label, options) in LABELS.items()
    )
    try:
        found = await quality.of_repository(runtime, repository)
    except Overloaded as refused:
        return QualityPage(None, fields, trouble=f"{refused.detail} Reload the page in a minute.")
    page = QualityPage(found, fields, given=given)
    return await _tried(runtime, request, now, page) if given and not request.form else page


async def _tried(
    runtime: Runtime, request: PageRequest, now: TestSettings, page: QualityPage
) -> QualityPage:
    given = page.given
    tried = {name: text for name, text in given.items() if _clean(text) != text_of(now, name)}

    def refused(trouble: str) -> QualityPage:
        return QualityPage(page.found, page.fields, given=given, tried_trouble=trouble)

    try:
        changes = changes_of(tried)
    except Malformed as wrong:
        return refused(requests.faults_of(wrong))
    if not changes:
        return refused(SAME)
    if not request.visitor.may(TRIES):
        return refused(NO_ACCESS)
    try:
        found = await quality.preview(runtime, request.where.repository, changes)
    except Overloaded as busy:
        return refused(f"{busy.detail} Reload the page in a minute.")
    return QualityPage(page.found, page.fields, given=given, tried=tried, preview=found)


def text_of(value: TestSettings, name: str) -> str:
    """Return the text of a setting in the form."""
    found = getattr(value, name)
    if isinstance(found, bool):
        return str(found).lower()
    if name == "auto_quarantine_statuses":
        return next(text for text, of in STATUSES.items() if set(of) == {*map(str, found)})
    if name == "stable_branches":
        return "\n".join(found or ())
    return str(found)


def changes_of(texts: Mapping[str, str]) -> dict[str, SettingValue]:
    """Return settings by the texts of a form. Raises Malformed, which names each wrong field."""
    body: dict[str, object] = {}
    for name, text in texts.items():
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if name == "auto_quarantine_statuses":
            body[name] = STATUSES.get(text, [text])
        elif name == "stable_branches":
            body[name] = lines or None
        elif LABELS[name][1] == YES_NO:
            body[name] = {"true": True, "false": False}.get(text, text)
        else:
            body[name] = text
    read_body = common.read(_Tried, body)
    found = {name: getattr(read_body, name) for name in body}
    return {name: tuple(each) if isinstance(each, list) else each for name, each in found.items()}


def _clean(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


async def save(runtime: Runtime, request: PageRequest) -> str:
    """Change the settings that were tried, and lead to the page without a preview."""
    texts = {name: request.form[name] for name in LABELS if name in request.form}
    repository = request.where.repository
    await settings.update(runtime, repository, changes_of(texts), request.visitor.actor)
    return f"{page_addresses.home(request.where.options, repository.ref)}/tests/quality"


ACTIONS: Mapping[str, Action[PageRequest]] = {"save": Action(AccessLevel.ADMIN, save)}

"""The board for Grafana, written from the lists of metrics in the code."""

from collections.abc import Iterable
from typing import Any

from service.metrics.process_families import FAMILIES as OF_THE_PROCESS
from service.metrics.queue_families import FAMILIES, SLIDES, TOKENS_EXPIRING

LEFT_OUT = {
    "headgate_build_info": "a constant, by which the board finds the processes",
    **dict.fromkeys(
        (one.name for one in FAMILIES if one.is_rolling),
        "the last hour of what the board shows for any time",
    ),
}
"""Families without a panel, and why."""

Described = tuple[str, str, tuple[str, ...], str]
"""Name, type, labels, text."""

OF_QUEUES: tuple[Described, ...] = tuple(
    (one.name, one.kind, one.labels, one.text.removesuffix(SLIDES))
    for one in (*FAMILIES, TOKENS_EXPIRING)
)
PROCESS: tuple[Described, ...] = tuple((name, *rest) for name, rest in OF_THE_PROCESS.items())

FIRST = (
    ("Stalled", "sum(max by (kind) (headgate_stalled))", 1),
    ("Oldest action", "max(headgate_oldest_effect_seconds)", 120),
    ("Queues on hold", 'sum(headgate_queue_held{repo=~"$repo",branch=~"$branch"})', 1),
    ("Proof mismatches", "sum(increase(headgate_landing_proof_mismatches_total[$__range]))", 1),
)
"""What one looks at first: title, query, and from which value on it is red."""

WIDTH, COLUMNS, HEIGHT = 8, 3, 7


def board() -> dict[str, Any]:
    """The board: what is first, the queues, the processes."""
    panels: list[dict[str, Any]] = []
    for place, (title, query, red) in enumerate(FIRST):
        panels.append(
            {
                **_panel("stat", title, (place * 6, 0, 6, 4)),
                "targets": [_target("A", query, "")],
                "fieldConfig": _looks("s" if "seconds" in query else "short", red),
            }
        )
    top = 4
    for title, families, labels in (
        ("Queues", OF_QUEUES, ("repo", "branch")),
        ("Processes", PROCESS, ("instance",)),
    ):
        panels.append({**_panel("row", title, (0, top, 24, 1)), "panels": []})
        shown = [each for each in families if each[0] not in LEFT_OUT]
        for place, family in enumerate(shown):
            row, column = divmod(place, COLUMNS)
            where = (column * WIDTH, top + 1 + row * HEIGHT, WIDTH, HEIGHT)
            panels.append(_of_family(family, labels, where))
        top += 1 + -(-len(shown) // COLUMNS) * HEIGHT
    for number, panel in enumerate(panels, 1):
        panel["id"] = number
    return {
        "uid": "headgate",
        "title": "Headgate",
        "tags": ["headgate"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "1m",
        "time": {"from": "now-24h", "to": "now"},
        "templating": {"list": [_source(), *_variables()]},
        "panels": panels,
    }


def _of_family(family: Described, own: tuple[str, ...], where: tuple[int, ...]) -> dict[str, Any]:
    name, _, _, text = family
    chosen = "" if name == TOKENS_EXPIRING.name else _chosen(own)
    is_time = name.endswith("_timestamp_seconds")
    unit = "dateTimeFromNow" if is_time else "s" if name.endswith("_seconds") else "short"
    return {
        **_panel("timeseries", text.removesuffix("."), where),
        "description": f"`{name}`",
        "targets": [
            _target(chr(ord("A") + place), query, legend)
            for place, (query, legend) in enumerate(_queries(family, chosen, own))
        ],
        "fieldConfig": _looks(unit),
    }


def _queries(family: Described, chosen: str, own: tuple[str, ...]) -> Iterable[tuple[str, str]]:
    """Each query of a family's panel, with its legend."""
    name, kind, labels, text = family
    legend = _legend(labels)
    if kind == "histogram":
        by = ", ".join(("le", *labels))
        for share in (0.5, 0.95):
            rate = f"sum by ({by}) (rate({name}_bucket{chosen}[$__rate_interval]))"
            yield f"histogram_quantile({share}, {rate})", f"{share:.0%} {legend}".strip()
    elif kind == "counter":
        by = f" by ({', '.join(labels)})" if labels else ""
        yield f"sum{by} (increase({name}{chosen}[$__rate_interval]))", legend or "all"
    elif name.endswith("_timestamp_seconds"):
        yield f"{name}{chosen} * 1000", _legend(own)
    else:
        # Of many states or reasons, those that are so now.
        now = " == 1" if labels and text.startswith("1 ") else ""
        yield f"{name}{chosen}{now}", _legend((*own, *labels) if chosen else labels)


def _legend(labels: Iterable[str]) -> str:
    return " ".join(f"{{{{{label}}}}}" for label in labels)


def _chosen(labels: tuple[str, ...]) -> str:
    return "{" + ",".join(f'{label}=~"${label}"' for label in labels) + "}"


def _panel(kind: str, title: str, where: tuple[int, ...]) -> dict[str, Any]:
    place = dict(zip("xywh", where, strict=True))
    return {"type": kind, "title": title, "gridPos": place, "datasource": SOURCE}


def _target(name: str, query: str, legend: str) -> dict[str, Any]:
    return {"refId": name, "expr": query, "legendFormat": legend or "__auto", "datasource": SOURCE}


def _looks(unit: str, red: int | None = None) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"color": "green", "value": None}]
    if red is not None:
        steps.append({"color": "red", "value": red})
    thresholds = {"mode": "absolute", "steps": steps}
    return {"defaults": {"unit": unit, "thresholds": thresholds}, "overrides": []}


SOURCE = {"type": "prometheus", "uid": "${source}"}


def _source() -> dict[str, Any]:
    return {"name": "source", "type": "datasource", "query": "prometheus", "label": "Prometheus"}


def _variables() -> Iterable[dict[str, Any]]:
    for name, family in (
        ("repo", "headgate_queue_state"),
        ("branch", 'headgate_queue_state{repo=~"$repo"}'),
        ("instance", "headgate_build_info"),
    ):
        yield {
            "name": name,
            "type": "query",
            "datasource": SOURCE,
            "query": f"label_values({family}, {name})",
            "refresh": 2,
            "multi": True,
            "includeAll": True,
            "current": {"text": "All", "value": "$__all"},
        }

"""The text exposition format 0.0.4, line by line (docs/reference/metrics.md)."""

from collections.abc import Iterable, Sequence

from service.metrics.facts import Histogram, Labels, Value

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_IN_VALUES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_IN_HELP = str.maketrans({"\\": r"\\", "\n": r"\n"})


def labels_text(names: Iterable[str], values: Iterable[str]) -> str:
    """`a="x",b="y"`, whatever the values hold."""
    pairs = zip(names, values, strict=True)
    return ",".join(f'{name}="{value.translate(_IN_VALUES)}"' for name, value in pairs)


def header(name: str, kind: str, text: str) -> str:
    """The two lines that stand before a family's series."""
    return f"# HELP {name} {text.translate(_IN_HELP)}\n# TYPE {name} {kind}\n"


def seconds(ms: int) -> str:
    """Milliseconds as seconds, without digits that say nothing."""
    whole, rest = divmod(ms, 1000)
    return f"{whole}.{rest:03d}".rstrip("0") if rest else str(whole)


def bounds_text(bounds_s: Sequence[int]) -> tuple[str, ...]:
    """The `le` label of each bucket, `+Inf` the last."""
    return (*(str(bound) for bound in bounds_s), "+Inf")


def lines(name: str, labels: str, value: Value, bounds: tuple[str, ...]) -> str:
    """One series, or those of one histogram, whose buckets count all that is not longer."""
    within = f"{{{labels}}}" if labels else ""
    if not isinstance(value, Histogram):
        return f"{name}{within} {value}\n"
    between = "," if labels else ""
    total = 0
    written = []
    for bound, count in zip(bounds, value.buckets, strict=True):
        total += count
        written.append(f'{name}_bucket{{{labels}{between}le="{bound}"}} {total}\n')
    written.append(f"{name}_sum{within} {seconds(value.ms)}\n{name}_count{within} {total}\n")
    return "".join(written)


def joined(common: str, names: Iterable[str], values: Labels) -> str:
    """The labels of every series of a place, and then a series' own."""
    own = labels_text(names, values)
    return f"{common},{own}" if common and own else common or own

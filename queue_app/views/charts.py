"""Charts drawn on the server: values in, positions of SVG marks out."""

from collections.abc import Sequence
from dataclasses import dataclass

from queue_app.policy.figures import Bucket

WIDTH, HEIGHT, FOOT, GAP = 720, 132, 18, 3


@dataclass(frozen=True, slots=True)
class Column:
    """One bucket of the chart: two bars, in and out, in units of the view box; `label` marks every sixth hour."""

    bucket: Bucket
    x: str
    width: str
    in_y: str
    in_height: str
    out_x: str
    out_y: str
    out_height: str
    label: bool


@dataclass(frozen=True, slots=True)
class FlowChart:
    """Inflow against outflow; `top` is the number at the upper line."""

    columns: tuple[Column, ...]
    top: int
    died: int
    left: int
    width: int = WIDTH
    height: int = HEIGHT
    base: int = HEIGHT - FOOT
    label_y: int = HEIGHT - 4


def flow_chart(buckets: Sequence[Bucket]) -> FlowChart:
    """The chart of these buckets, the oldest first."""
    top = max([1, *(max(bucket.died, bucket.left) for bucket in buckets)])
    step = WIDTH / max(1, len(buckets))
    bar = (step - GAP) / 2
    room = HEIGHT - FOOT - 10

    def tall(n: int) -> float:
        return max(2.0, n * room / top) if n else 0.0

    columns = []
    for place, bucket in enumerate(buckets):
        inward, outward = tall(bucket.died), tall(bucket.left)
        x = place * step + GAP / 2
        base = HEIGHT - FOOT
        columns.append(
            Column(
                bucket,
                f"{x:.2f}",
                f"{bar:.2f}",
                f"{base - inward:.2f}",
                f"{inward:.2f}",
                f"{x + bar:.2f}",
                f"{base - outward:.2f}",
                f"{outward:.2f}",
                (len(buckets) - 1 - place) % 6 == 0,
            )
        )
    return FlowChart(tuple(columns), top, sum(b.died for b in buckets), sum(b.left for b in buckets))


def sparkline(trend: Sequence[int], width: int = 96, height: int = 20) -> str:
    """Points of a polyline for a short series; '' when nothing happened in it."""
    top = max(trend, default=0)
    if not top or len(trend) < 2:
        return ""
    step = width / (len(trend) - 1)
    return " ".join(f"{place * step:.1f},{height - 1 - n * (height - 2) / top:.1f}" for place, n in enumerate(trend))

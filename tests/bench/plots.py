"""Pictures of figures as SVG that needs nothing else: points in rows, and curves. Both axes count in powers of ten.

Pure. Owns the drawing alone; what lies between two rounds is a thin line, the median a point.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from tests.bench.figures import Spread, rounded

COLOURS: Final = ("#3b6fd4", "#d97706", "#0f9d74", "#b4338f", "#6b7280", "#8b5a2b")
LABEL, WIDE, ROW, TOP = 230, 520, 22, 62  # pixels
TALL: Final = 300


@dataclass(frozen=True, slots=True)
class Axis:
    """From whole power to whole power of ten, over so many pixels from `start`; upwards where `pixels` is below 0."""

    low: int
    high: int
    start: float
    pixels: float

    @classmethod
    def over(cls, values: Iterable[float], *, start: float, pixels: float) -> Axis:
        told = [value for value in values if value > 0] or [1.0]
        low, high = math.floor(math.log10(min(told))), math.ceil(math.log10(max(told)))
        return cls(low, max(high, low + 1), start, pixels)

    def at(self, value: float) -> float:
        part = (math.log10(max(value, 10.0**self.low)) - self.low) / (self.high - self.low)
        return self.start + self.pixels * min(1.0, part)

    @property
    def ticks(self) -> list[float]:
        return [10.0**power for power in range(self.low, self.high + 1)]


def rows(title: str, told: Mapping[str, Mapping[str, Spread]], *, unit: str) -> str:
    """A row for each name, in it a point for each series."""
    series = _series(told)
    height = TOP + ROW * len(told) + 34
    axis = Axis.over(_values(told), start=LABEL, pixels=WIDE)
    lines = [*_head(title, LABEL + WIDE + 40, height), *_legend(series)]
    lines += [_line(axis.at(tick), TOP - 8, axis.at(tick), height - 30, "#e5e7eb") for tick in axis.ticks]
    lines += [_text(axis.at(tick), height - 14, f"{tick:g} {unit}", anchor="middle") for tick in axis.ticks]
    for number, (name, points) in enumerate(told.items()):
        y = TOP + ROW * number + 6
        lines.append(_text(LABEL - 12, y + 4, name, anchor="end"))
        for which, spread in points.items():
            colour = COLOURS[series.index(which) % len(COLOURS)]
            lines.append(_line(axis.at(spread.low), y, axis.at(spread.high), y, colour, width=2))
            lines.append(_point(axis.at(spread.mid), y, colour, f"{name}, {which}: {spread} {unit}"))
    return _closed(lines)


def curves(title: str, told: Mapping[str, Mapping[float, Spread]], *, across: str, unit: str) -> str:
    """A curve for each name, over sizes."""
    height = TOP + TALL + 50
    sizes = [size for points in told.values() for size in points]
    x_axis = Axis.over(sizes, start=70, pixels=WIDE)
    y_axis = Axis.over(_values(told), start=TOP + TALL, pixels=-TALL)
    lines = [*_head(title, 70 + WIDE + 60, height), *_legend(list(told))]
    for tick in x_axis.ticks:
        lines.append(_line(x_axis.at(tick), TOP, x_axis.at(tick), TOP + TALL, "#e5e7eb"))
        lines.append(_text(x_axis.at(tick), TOP + TALL + 18, f"{tick:,g}", anchor="middle"))
    for tick in y_axis.ticks:
        lines.append(_line(70, y_axis.at(tick), 70 + WIDE, y_axis.at(tick), "#e5e7eb"))
        lines.append(_text(64, y_axis.at(tick) + 4, f"{tick:g} {unit}", anchor="end"))
    lines.append(_text(70 + WIDE / 2, height - 10, across, anchor="middle"))
    for number, (name, points) in enumerate(told.items()):
        lines += _curve(name, points, x_axis, y_axis, COLOURS[number % len(COLOURS)], unit=unit)
    return _closed(lines)


def _curve(name: str, points: Mapping[float, Spread], x: Axis, y: Axis, colour: str, *, unit: str) -> list[str]:
    way = " ".join(f"{x.at(size):.1f},{y.at(spread.mid):.1f}" for size, spread in sorted(points.items()))
    lines = [f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-width="1.5"/>']
    for size, spread in sorted(points.items()):
        lines.append(_line(x.at(size), y.at(spread.low), x.at(size), y.at(spread.high), colour))
        lines.append(_point(x.at(size), y.at(spread.mid), colour, f"{name}, {rounded(size)}: {spread} {unit}"))
    return lines


def _values(told: Mapping[str, Mapping[str, Spread]] | Mapping[str, Mapping[float, Spread]]) -> list[float]:
    spreads = [spread for points in told.values() for spread in points.values()]
    return [value for spread in spreads for value in (spread.low, spread.mid, spread.high)]


def _series(told: Mapping[str, Mapping[str, Spread]]) -> list[str]:
    return list(dict.fromkeys(which for points in told.values() for which in points))


def _head(title: str, width: int, height: int) -> list[str]:
    size = f'width="{width}" height="{height}"'
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="system-ui, sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="12" y="20" font-size="14" fill="#111827">{escape(title)}</text>',
    ]


def _legend(series: Sequence[str]) -> list[str]:
    lines: list[str] = []
    left = 12.0
    for number, name in enumerate(series):
        lines.append(f'<rect x="{left:.0f}" y="30" width="10" height="10" fill="{COLOURS[number % len(COLOURS)]}"/>')
        lines.append(_text(left + 15, 39, name))
        left += 34 + 6.2 * len(name)
    return lines


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, *, width: int = 1) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{colour}" stroke-width="{width}"/>'


def _point(x: float, y: float, colour: str, says: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"><title>{escape(says)}</title></circle>'


def _text(x: float, y: float, text: str, *, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#374151">{escape(text)}</text>'


def _closed(lines: Sequence[str]) -> str:
    return "\n".join([*lines, "</svg>", ""])

"""Numbers as bars, side by side: in a terminal, and as a picture.

Pure. Owns nothing but the drawing: a bar is as long as its number against the greatest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

EIGHTHS: Final = " ▏▎▍▌▋▊▉"
COLOURS: Final = ("#8a8f98", "#3b6fd4", "#d97706", "#0f9d74")
LABEL, BAR, THICK, GAP = 190, 460, 13, 12  # pixels


@dataclass(frozen=True, slots=True)
class Group:
    """Bars that belong together: a value by series. One that is missing has no bar."""

    label: str
    values: Mapping[str, float]


def bar(value: float, greatest: float, *, width: int) -> str:
    """At most `width` characters, in eighths."""
    eighths = round(8 * width * value / greatest) if greatest > 0 else 0
    return ("█" * (eighths // 8) + EIGHTHS[eighths % 8]).rstrip()


def svg(title: str, groups: Sequence[Group], series: Sequence[str], *, unit: str) -> str:
    """A picture that needs nothing else."""
    greatest = max((value for group in groups for value in group.values.values()), default=0.0)
    height_each = len(series) * THICK + GAP
    height = 64 + height_each * len(groups)
    size = f'width="{LABEL + BAR + 90}" height="{height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="system-ui, sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="12" y="20" font-size="14" fill="#111827">{escape(title)}</text>',
        *_legend(series),
    ]
    for number, group in enumerate(groups):
        lines += _group(group, series, greatest, unit=unit, top=54 + number * height_each)
    return "\n".join([*lines, "</svg>", ""])


def _legend(series: Sequence[str]) -> list[str]:
    lines: list[str] = []
    for number, name in enumerate(series):
        left = 12 + 130 * number
        lines.append(f'<rect x="{left}" y="30" width="10" height="10" fill="{COLOURS[number % len(COLOURS)]}"/>')
        lines.append(f'<text x="{left + 15}" y="39" fill="#374151">{escape(name)}</text>')
    return lines


def _group(group: Group, series: Sequence[str], greatest: float, *, unit: str, top: int) -> list[str]:
    lines = [f'<text x="12" y="{top + THICK}" fill="#111827">{escape(group.label)}</text>']
    for number, name in enumerate(series):
        if name not in group.values:
            continue
        value, y = group.values[name], top + number * THICK
        long = 0.0 if greatest <= 0 else BAR * value / greatest
        fill = COLOURS[number % len(COLOURS)]
        lines.append(f'<rect x="{LABEL}" y="{y}" width="{max(1.0, long):.1f}" height="{THICK - 3}" fill="{fill}"/>')
        lines.append(f'<text x="{LABEL + long + 6:.1f}" y="{y + 9}" fill="#374151">{value:,.4g} {escape(unit)}</text>')
    return lines

"""Charts as SVG text: axes, points, lines, marks and bars. Colours are classes of the page, so that it can be dark."""

from __future__ import annotations

import math
import re
import zlib
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ...base.formatting import number, round_ticks
from ..analysis.convergence import thinned
from ..results.chart import Chart
from .html import element, esc

Floats = npt.NDArray[np.float64]

WIDTH, HEIGHT = 760, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 74, 18, 12, 50
_MOST_POINTS = 4000  # along a line
CLASSES = 7  # colours of points: c0 to c6
# Colours for colour-blind eyes too (after Okabe and Ito); c0 to c6 go from low to high clocks.
COLOURS = """
--b0:#0072b2;--b1:#d55e00;--b2:#009e73;--b3:#cc79a7;--b4:#56b4e9;--b5:#e69f00;--front:#c2185b;--hull:#8a6d00;
--c0:#3b4cc0;--c1:#3f7fd0;--c2:#4aa5b5;--c3:#7a9b4a;--c4:#c99b1d;--c5:#dd6b20;--c6:#b40426
""".strip()
FIGURES = """
svg text{fill:var(--soft);font:12px system-ui,"DejaVu Sans",sans-serif}
.tick{text-anchor:middle}.tick.left{text-anchor:end}
.tick.start{text-anchor:start}svg .small{font-size:9px}svg .label{text-anchor:middle;fill:var(--ink)}
.grid{stroke:var(--grid);fill:none}.frame rect{fill:none;stroke:var(--line)}.axis{stroke:var(--line)}
.dots{stroke-linecap:round;fill:none;stroke:var(--c1);stroke-opacity:.75}.line{fill:none;stroke:var(--b0);stroke-width:2}
.rule{stroke:var(--soft);stroke-dasharray:5 4;stroke-width:1.3}
.iso{stroke:var(--soft);stroke-width:1;stroke-dasharray:1 4}
.hull{stroke:var(--hull);stroke-width:1.3;stroke-dasharray:8 3}.front{stroke:var(--front)}
.b0{stroke:var(--b0)}.b1{stroke:var(--b1)}.b2{stroke:var(--b2)}.b3{stroke:var(--b3)}.b4{stroke:var(--b4)}
.b5{stroke:var(--b5)}
.band{fill:var(--b0);fill-opacity:.25;stroke:none}.bar{stroke:none}.bar.b0{fill:var(--b0)}.bar.b1{fill:var(--b1)}.bar.b2{fill:var(--b2)}
.c0{stroke:var(--c0)}.c1{stroke:var(--c1)}.c2{stroke:var(--c2)}.c3{stroke:var(--c3)}.c4{stroke:var(--c4)}
.c5{stroke:var(--c5)}.c6{stroke:var(--c6)}
.sign{fill:var(--paper);stroke-width:3}
.mark circle{fill:var(--paper);stroke:var(--ink);stroke-width:1.4}
.mark text{text-anchor:middle;fill:var(--ink);font-weight:700;font-size:11px}
"""
SIGNS = {"diamond": "m0 -9l7 9l-7 9l-7 -9Z", "triangle": "m-8 -6h16l-8 14Z"}  # around a place


@dataclass(frozen=True, slots=True)
class Axis:
    """One direction of a chart. On a logarithmic one both ends are positive."""

    label: str
    low: float
    high: float
    log: bool = False

    @classmethod
    def over(cls, label: str, *columns: npt.ArrayLike, log: bool = False, from_zero: bool = False) -> Axis:
        """From the least to the greatest known value, with a little room; 0 to 1 if nothing is known."""
        values = np.concatenate([np.ravel(np.asarray(column, dtype=np.float64)) for column in columns])
        values = values[np.isfinite(values) & ((values > 0) if log else True)]
        if not len(values):
            return cls(label, 0.1 if log else 0.0, 1.0, log)
        low, high = float(values.min()), float(values.max())
        if log:
            room = (high / low) ** 0.03 if high > low else 1.5
            return cls(label, low / room, high * room, log)
        room = 0.03 * (high - low) or abs(high) * 0.1 or 1.0
        return cls(label, 0.0 if from_zero and low >= 0 else low - room, high + room)

    def place(self, values: npt.ArrayLike) -> Floats:
        """Where values lie along it, 0..1; NaN for those it cannot show."""
        scaled = np.asarray(values, dtype=np.float64)
        low, high = self.low, self.high
        if self.log:
            with np.errstate(divide="ignore", invalid="ignore"):
                scaled = np.where(scaled > 0, np.log(scaled), np.nan)
            low, high = math.log(low), math.log(high)
        return np.asarray((scaled - low) / (high - low), dtype=np.float64)

    def ticks(self, most: int = 8) -> list[float]:
        """Round values along it."""
        return _log_ticks(self.low, self.high, most) if self.log else round_ticks(self.low, self.high, most)


@dataclass(slots=True)
class Drawing:
    """A chart with axes under construction; `text` is the SVG."""

    x: Axis
    y: Axis
    title: str  # for those who do not see it
    parts: list[str] = field(default_factory=list)
    key: list[tuple[str, str, str]] = field(default_factory=list)  # class, words, a sign's path

    def dots(self, x: npt.ArrayLike, y: npt.ArrayLike, class_: str, words: str = "", *, size: float = 4.0) -> None:
        """Round points as one path, those that fall onto one another drawn once: a hundred thousand stay small."""
        at_x, at_y, inside = self._placed(x, y)
        pixels = np.unique(np.column_stack([at_x[inside].round(), at_y[inside].round()]).astype(np.int64), axis=0)
        if not len(pixels):
            return
        path = "".join(f"M{a} {b}h0" for a, b in pixels.tolist())
        self.parts.append(f'<path class="dots {esc(class_)}" stroke-width="{size:g}" d="{path}"/>')
        self._add_key(class_, words)

    def line(self, x: npt.ArrayLike, y: npt.ArrayLike, class_: str, words: str = "") -> None:
        """A line through points in their order, broken where one is unknown."""
        at_x, at_y, _ = self._placed(x, y)
        path, pen_down = [], False
        for a, b in zip(at_x.tolist(), at_y.tolist(), strict=True):
            if not (math.isfinite(a) and math.isfinite(b)):
                pen_down = False
                continue
            a, b = min(max(a, -1e4), 1e4), min(max(b, -1e4), 1e4)
            path.append(f"{'L' if pen_down else 'M'}{a:.1f} {b:.1f}")
            pen_down = True
        if path:
            self.parts.append(f'<path class="line {esc(class_)}" clip-path="url(#{self._area})" d="{"".join(path)}"/>')
            self._add_key(class_, words)

    def band(self, x: npt.ArrayLike, low: npt.ArrayLike, high: npt.ArrayLike, class_: str, words: str = "") -> None:
        """The area between two lines."""
        a, b, _ = self._placed(x, low)
        _, c, _ = self._placed(x, high)
        there = [f"{p:.1f} {q:.1f}" for p, q in zip(a.tolist(), b.tolist(), strict=True)]
        back = [f"{p:.1f} {q:.1f}" for p, q in zip(a.tolist(), c.tolist(), strict=True)][::-1]
        if there and np.isfinite([*a, *b, *c]).all():
            path = f"M{'L'.join([*there, *back])}Z"
            self.parts.append(f'<path class="band {esc(class_)}" clip-path="url(#{self._area})" d="{path}"/>')
            self._add_key(class_, words)

    def sign(self, x: float, y: float, shape: str, class_: str, words: str) -> None:
        """A mark of one of the shapes of SIGNS, named in the key and to whoever points at it; nothing if it lies
        outside."""
        at_x, at_y, inside = self._placed([x], [y])
        if not inside[0]:
            return
        path = f"M{float(at_x[0]):.1f} {float(at_y[0]):.1f}{SIGNS[shape]}"
        self.parts.append(f'<path class="sign {esc(class_)}" d="{path}"><title>{esc(words)}</title></path>')
        self._add_key(class_, words, SIGNS[shape])

    def mark(self, x: float, y: float, letter: str) -> None:
        """A lettered mark, which a table beside the chart explains."""
        at_x, at_y, inside = self._placed([x], [y])
        if inside[0]:
            a, b = float(at_x[0]), float(at_y[0])
            self.parts.append(
                f'<g class="mark"><circle cx="{a:.1f}" cy="{b:.1f}" r="9"/>'
                f'<text x="{a:.1f}" y="{b + 4:.1f}">{esc(letter)}</text></g>'
            )

    def rule(self, *, x: float | None = None, y: float | None = None, class_: str = "rule", words: str = "") -> None:
        """A line across the whole chart at one value."""
        if x is not None:
            self.line([x, x], [self.y.low, self.y.high], class_, words)
        if y is not None:
            self.line([self.x.low, self.x.high], [y, y], class_, words)

    @property
    def text(self) -> str:
        """The finished SVG."""
        inside = [self._frame(), *self.parts, self._key()]
        box = f"0 0 {WIDTH} {HEIGHT + self._key_rows * 20}"
        return element("svg", element("title", esc(self.title)), *inside, viewBox=box, role="img")

    # --- inside -------------------------------------------------------------------------------------------------------

    def _placed(self, x: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Floats, Floats, npt.NDArray[np.bool_]]:
        across, up = self.x.place(x), self.y.place(y)
        at_x = _LEFT + across * (WIDTH - _LEFT - _RIGHT)
        at_y = HEIGHT - _BOTTOM - up * (HEIGHT - _TOP - _BOTTOM)
        return at_x, at_y, (across >= 0) & (across <= 1) & (up >= 0) & (up <= 1)

    @property
    def _area(self) -> str:
        """A name for the drawing area: charts of one page share their names."""
        return f"area-{zlib.crc32(self.title.encode(errors='replace')):x}"

    def _add_key(self, class_: str, words: str, sign: str = "") -> None:
        if words:
            self.key.append((class_, words, sign))

    @property
    def _key_rows(self) -> int:
        return -(-len(self.key) // 3)

    def _frame(self) -> str:
        width, height = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM
        area = f'<rect x="{_LEFT}" y="{_TOP}" width="{width}" height="{height}"/>'
        parts = [f'<defs><clipPath id="{self._area}">{area}</clipPath></defs>']
        for value in self.x.ticks():
            at = _LEFT + float(self.x.place([value])[0]) * width
            parts.append(f'<path class="grid" d="M{at:.1f} {_TOP}v{height}"/>')
            parts.append(f'<text class="tick" x="{at:.1f}" y="{HEIGHT - _BOTTOM + 18}">{number(value)}</text>')
        for value in self.y.ticks(6):
            at = HEIGHT - _BOTTOM - float(self.y.place([value])[0]) * height
            parts.append(f'<path class="grid" d="M{_LEFT} {at:.1f}h{width}"/>')
            parts.append(f'<text class="tick left" x="{_LEFT - 8}" y="{at + 4:.1f}">{number(value)}</text>')
        parts.append(f'<g class="frame">{area}</g>')
        parts.append(f'<text class="label" x="{_LEFT + width / 2:.0f}" y="{HEIGHT - 10}">{esc(self.x.label)}</text>')
        middle = f"{_TOP + height / 2:.0f}"
        turned = f'transform="rotate(-90 16 {middle})"'
        parts.append(f'<text class="label" x="16" y="{middle}" {turned}>{esc(self.y.label)}</text>')
        return "".join(parts)

    def _key(self) -> str:
        parts = []
        for index, (class_, words, sign) in enumerate(self.key):
            x, y = _LEFT + index % 3 * 228, HEIGHT + 12 + index // 3 * 20
            if sign:
                parts.append(f'<path class="sign {esc(class_)}" d="M{x + 9} {y - 4}{sign}"/>')
            else:
                parts.append(f'<path class="line {esc(class_)}" stroke-width="4" d="M{x} {y - 4}h18"/>')
            parts.append(f'<text class="key" x="{x + 24}" y="{y}">{esc(words[:34])}</text>')
        return "".join(parts)


def drawn(chart: Chart) -> str:
    """A chart that was described; nothing if none of its values is known."""
    finite = np.concatenate([entry.y[np.isfinite(entry.y)] for entry in chart.series])
    if not len(finite):
        return ""
    if chart.names:
        low, high = chart.whole_range or (min(0.0, float(finite.min())), max(0.0, float(finite.max())))
        return _bars(chart, low, high)
    across = Axis.over(chart.x_title, *(entry.x for entry in chart.series), log=chart.x_log)
    up = Axis(chart.y_title, *chart.whole_range) if chart.whole_range else Axis.over(chart.y_title, finite)
    drawing = Drawing(across, up, f"{chart.y_title} over {chart.x_title}")
    for place, item in enumerate(chart.series):
        kept = thinned(len(item.y), _MOST_POINTS)
        label = item.label if len(chart.series) > 1 else ""
        if item.line:
            drawing.line(item.x[kept], item.y[kept], f"b{place}", label)
        if item.points:
            drawing.dots(item.x[kept], item.y[kept], f"b{place}", "" if item.line else label, size=6)
    return drawing.text


def _bars(chart: Chart, low: float, high: float) -> str:
    """Horizontal bars from zero on, one group a name, one bar for each series."""
    start, room, thick = 230, WIDTH - 230 - 70, 9
    scale = room / ((high - low) or 1.0)
    zero = start - low * scale
    step = thick * len(chart.series) + 9
    parts, y = [], 8
    for group, name in enumerate(chart.bar_labels):
        middle = y + step / 2 - 1
        parts.append(f'<text class="tick left" x="{start - 8}" y="{middle:.1f}">{esc(name[:32])}</text>')
        for place, value in enumerate(float(entry.y[group]) for entry in chart.series):
            if not math.isfinite(value):
                continue
            length, top = abs(value) * scale, y + place * thick
            left = zero - length if value < 0 else zero
            size = f'width="{max(length, 0.5):.1f}" height="{thick - 1}"'
            parts.append(f'<rect class="bar b{place}" x="{left:.1f}" y="{top}" {size}/>')
            end, side = (left - 4, "tick left") if value < 0 else (left + length + 4, "tick start")
            parts.append(f'<text class="{side} small" x="{end:.1f}" y="{top + 8}">{number(round(value, 2), 3)}</text>')
        y += step
    parts.append(f'<path class="axis" d="M{zero:.1f} 4V{y}"/>')
    parts.append(f'<text class="tick left" x="{start - 8}" y="{y + 17}">{esc(chart.x_title)}</text>')
    for index, item in enumerate(chart.series):
        x = start + index * 150
        parts.append(f'<rect class="bar b{index}" x="{x}" y="{y + 8}" width="12" height="9"/>')
        parts.append(f'<text class="key" x="{x + 17}" y="{y + 17}">{esc(item.label)}</text>')
    return element("svg", element("title", esc(chart.x_title)), *parts, viewBox=f"0 0 {WIDTH} {y + 26}", role="img")


def _log_ticks(low: float, high: float, most: int) -> list[float]:
    """1, 2 and 5 of each decade, or fewer where they would crowd; linear ones where less than a decade is shown."""
    if high / low < 5:
        return [value for value in round_ticks(low, high, most) if value > 0]
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 5), (1,)):
        results = [factor * 10.0**decade for decade in decades for factor in factors]
        results = [value for value in results if low <= value <= high]
        if len(results) <= most + 2:
            return results
    return results[:: -(-len(results) // most)]


# Readable on a light page and on a dark one.
_ALONE = "width:100%;height:auto;--paper:#8882;--ink:#7a7f87;--soft:#7a7f87;--grid:#8884;--line:#888;" + COLOURS


def standalone(svg: str) -> str:
    """A finished chart as a picture of its own, for notebooks and files: its style concerns nothing beside it."""

    def scoped(rule: re.Match[str]) -> str:
        return ",".join(f".wattridge {one.strip().removeprefix('svg ')}" for one in rule[1].split(",")) + "{"

    style = f".wattridge{{{_ALONE};max-width:{WIDTH}px}}\n" + re.sub(r"([^{}]+)\{", scoped, FIGURES)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="wattridge" width="{WIDTH}"'
    title = "</title>"  # browsers want it first
    return svg.replace("<svg", head, 1).replace(title, title + element("style", style), 1) if svg else ""

"""Light and dark: one set of colours for widgets and for what is painted, following the system or set by hand.

Line colours are taken from Okabe and Ito's palette for colour-blind eyes (jfly.uni-koeln.de/color), darkened on the
light ground until each has a contrast of at least 4.5 to 1, as words are written in them too; what shares a lane also
differs in lightness or dash. The colour maps have the hues of viridis, and such lightness that either end stands out
from the ground of the plot, at 3 to 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Literal

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtGui import QColor, QFont, QFontDatabase, QPalette
from PySide6.QtWidgets import QApplication, QWidget

from ...sensors.event_reasons import EventReason

Mode = Literal["system", "light", "dark"]


@dataclass(frozen=True, slots=True)
class Colours:
    """Colours as '#rrggbb'. The first block is for widgets, the rest for plots."""

    dark: bool
    window: str
    base: str  # ground of tables and plots
    raised: str  # buttons, headers
    border: str
    text: str
    muted: str  # secondary text: at least 4.5 to 1 on window and base
    accent: str  # selection, links, the running state
    accent_text: str
    warning: str  # banner's ground
    warning_text: str
    badge: str  # 'simulated', 'recorded'
    badge_text: str

    grid: str
    orange: str
    sky: str
    green: str
    blue: str
    vermillion: str
    purple: str
    grey: str
    front: str  # the Pareto front's line
    fastest: str
    efficient: str
    colour_map: tuple[str, ...]  # a sequential scale, low to high, monotonic in lightness

    def of_channel(self, name: str) -> str:
        """The line colour of a channel."""
        return str(getattr(self, _CHANNEL_COLOURS.get(name, "grey")))

    def of_reason(self, reason: EventReason) -> str:
        """The colour of a clock event reason."""
        return str(getattr(self, _REASON_COLOURS.get(reason, "grey")))


_CHANNEL_COLOURS = {
    "power": "orange",  # whichever power series is the finest
    "core_voltage_estimated": "sky",
    "power_samples_w": "orange",
    "power_instant_w": "orange",
    "power_average_w": "orange",
    "memory_power_w": "blue",
    "power_limit_w": "vermillion",
    "graphics_clock_mhz": "green",
    "sm_clock_mhz": "sky",
    "memory_clock_mhz": "purple",
    "requested_graphics_clock_mhz": "green",
    "requested_memory_clock_mhz": "purple",
    "core_voltage_mv": "sky",
    "temperature_c": "vermillion",
    "memory_temperature_c": "purple",
    "utilisation_percent": "blue",
    "memory_utilisation_percent": "orange",
    "memory_used_mib": "blue",
    "pcie_rx_mb_per_s": "sky",
    "pcie_tx_mb_per_s": "purple",
    "fan_percent": "green",
    "video_clock_mhz": "sky",
}
_REASON_COLOURS = {
    EventReason.IDLE: "grey",
    EventReason.APPLICATION_CLOCKS: "blue",
    EventReason.POWER_CAP: "orange",
    EventReason.HARDWARE_SLOWDOWN: "vermillion",
    EventReason.SYNC_BOOST: "green",
    EventReason.SOFTWARE_THERMAL: "vermillion",
    EventReason.HARDWARE_THERMAL: "vermillion",
    EventReason.POWER_BRAKE: "purple",
    EventReason.DISPLAY_CLOCKS: "sky",
}

DARK = Colours(
    dark=True,
    window="#24282d",
    base="#15181b",
    raised="#31363d",
    border="#454c54",
    text="#dfe3e6",
    muted="#a3adb5",
    accent="#4da3e0",
    accent_text="#0b1015",
    warning="#4a3410",
    warning_text="#ffe3b0",
    badge="#e69f00",
    badge_text="#1a1200",
    grid="#2b3036",
    orange="#e69f00",
    sky="#56b4e9",
    green="#1fc08e",
    blue="#4c96ff",
    vermillion="#ee6a2c",
    purple="#d88fbb",
    grey="#86909a",
    front="#f2f4f5",
    fastest="#ee6a2c",
    efficient="#1fc08e",
    colour_map=("#9844ac", "#8862ce", "#6884d1", "#45a0c5", "#19b9b2", "#0dcf95", "#50e25d", "#b1ea0b", "#ffe969"),
)

LIGHT = Colours(
    dark=False,
    window="#f2f4f5",
    base="#ffffff",
    raised="#e6e9eb",
    border="#c6ccd1",
    text="#1b2024",
    muted="#5a656e",
    accent="#0b66b0",
    accent_text="#ffffff",
    warning="#fff0cf",
    warning_text="#4d3300",
    badge="#b35c00",
    badge_text="#ffffff",
    grid="#e5e9ec",
    orange="#a35d00",
    sky="#1b75ab",
    green="#007d5a",
    blue="#0a52a8",
    vermillion="#c4440a",
    purple="#a8508a",
    grey="#677078",
    front="#1b2024",
    fastest="#c4440a",
    efficient="#007d5a",
    colour_map=("#410051", "#351a7c", "#013b7d", "#025169", "#00635f", "#067453", "#098727", "#6b8f03", "#a29305"),
)


class Notifier(QObject):
    """Emits `changed` when the colours in use have changed."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.mode: Mode = "system"
        self.current = LIGHT

    @Slot()
    def follow(self) -> None:
        """Take over the mode, or the system's present scheme."""
        chosen = _system_colours() if self.mode == "system" else DARK if self.mode == "dark" else LIGHT
        if chosen is not self.current:
            self.current = chosen
            _paint_application(chosen)
            self.changed.emit()


@cache
def notifier() -> Notifier:
    """The one notifier; made at the first call, which must be in Qt's thread."""
    return Notifier()


def colours() -> Colours:
    """The colours in use now."""
    return notifier().current


def follow(slot: Callable[[], object]) -> None:
    """Call a slot now, and whenever the colours change."""
    notifier().changed.connect(slot)
    slot()


class _Style(QObject):
    """A style sheet that follows the colours."""

    def __init__(self, widget: QWidget, sheet: str) -> None:
        super().__init__(widget)
        self._widget, self._sheet = widget, sheet
        follow(self.apply)

    @Slot()
    def apply(self) -> None:
        self._widget.setStyleSheet(self._sheet.format(c=colours()))


def style(widget: QWidget, *rules: str) -> None:
    """Give a widget a style sheet, now and whenever the colours change: `{c.base}` in a rule is a colour in use."""
    _Style(widget, "".join(rules))


def install(application: QApplication, mode: Mode = "system") -> None:
    """Give the application its style and colours, and follow the system's scheme from now on."""
    application.setStyle("Fusion")  # the one style that honours a palette on every platform
    shared = notifier()
    shared.mode = mode
    shared.current = _system_colours() if mode == "system" else DARK if mode == "dark" else LIGHT
    _paint_application(shared.current)
    application.styleHints().colorSchemeChanged.connect(shared.follow, Qt.ConnectionType.UniqueConnection)


def set_mode(mode: Mode) -> None:
    """Switch between following the system, light and dark."""
    notifier().mode = mode
    notifier().follow()


def number_font(size_delta: float = 0.0) -> QFont:
    """The application's font, whose digits are of one width; the fixed font where they are not."""
    font = QApplication.font()
    font.setPointSizeF(max(6.0, font.pointSizeF() + size_delta))
    font.setFeature(QFont.Tag("tnum"), 1)
    return font


def fixed_font() -> QFont:
    """The system's fixed-width font, for code and commands, in the size of other text."""
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    font.setPointSizeF(QApplication.font().pointSizeF())
    return font


def _system_colours() -> Colours:
    hints = QApplication.styleHints()
    return DARK if hints.colorScheme() == Qt.ColorScheme.Dark else LIGHT


def _paint_application(c: Colours) -> None:
    palette = QPalette()
    role = QPalette.ColorRole
    for where, colour in (
        (role.Window, c.window),
        (role.WindowText, c.text),
        (role.Base, c.base),
        (role.AlternateBase, c.window),
        (role.Text, c.text),
        (role.PlaceholderText, c.muted),
        (role.Button, c.raised),
        (role.ButtonText, c.text),
        (role.Light, c.border if c.dark else "#ffffff"),  # under tabs: else it stays that of the system's own colours
        (role.BrightText, c.vermillion),
        (role.ToolTipBase, c.raised),
        (role.ToolTipText, c.text),
        (role.Highlight, c.accent),
        (role.HighlightedText, c.accent_text),
        (role.Link, c.accent),
        (role.LinkVisited, c.purple),
        (role.Accent, c.accent),
    ):
        palette.setColor(where, QColor(colour))
    for where in (role.WindowText, role.Text, role.ButtonText):  # what cannot be pressed now can still be read
        palette.setColor(QPalette.ColorGroup.Disabled, where, QColor(c.muted))
    palette.setColor(QPalette.ColorGroup.Disabled, role.Button, QColor(c.window))
    QApplication.setPalette(palette)
    # The style outlines ticks in a darker shade of the window's colour, which is invisible on a dark ground.
    ticks = QPalette(palette)
    ticks.setColor(role.Window, QColor(c.muted))
    for kind in ("QCheckBox", "QRadioButton", "QListView"):
        QApplication.setPalette(ticks if c.dark else palette, kind)  # type: ignore[arg-type]  # it takes str alone
    # A table's head would take that over from its table, and fill the rest of its line with it.
    QApplication.setPalette(QPalette(palette), "QHeaderView")  # type: ignore[arg-type]

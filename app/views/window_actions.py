"""What the window can be told to do: the one list behind its menus, its toolbar and its shortcuts."""

from __future__ import annotations

from app.views.actions import ActionSpec
from app.views.time_window import LENGTHS_S

_LENGTH_NAMES = ("10 s", "1 min", "10 min", "1 h", "8 h")
LENGTH_ACTIONS = {f"length_{int(length_s)}": length_s for length_s in LENGTHS_S}

ACTIONS: tuple[ActionSpec, ...] = (
    ActionSpec("write_csv", "Export &readings as CSV…", "&File", "Ctrl+E", "CSV of the marked span or what is shown"),
    ActionSpec("write_picture", "Export &picture…", "&File", "Ctrl+P", "PNG or SVG of the traces as they are shown"),
    ActionSpec("quit", "&Quit", "&File", "Ctrl+Q", separator=True),
    ActionSpec(
        "hold", "&Hold", "&Traces", "Space", "Stop the traces where they are; readings go on", "Hold", checkable=True
    ),
    *(
        ActionSpec(
            name,
            f"Last {label}",
            "&Traces",
            f"Ctrl+{place}",
            f"Show {label}",
            label,
            group="length",
            checked=length_s == 60.0,
            separator=place == 1,
        )
        for place, (label, (name, length_s)) in enumerate(
            zip(_LENGTH_NAMES, LENGTH_ACTIONS.items(), strict=True), start=1
        )
    ),
    ActionSpec("zoom_in", "Zoom &in", "&Traces", "+", "Shorter stretch of time", separator=True),
    ActionSpec("zoom_out", "Zoom &out", "&Traces", "-", "Longer stretch of time"),
    ActionSpec("zoom_span", "&Zoom to span", "&Traces", "Z", "Show just the marked span", "To span", separator=True),
    ActionSpec("clear_span", "&Clear span", "&Traces", "Esc", "Forget the marked span"),
    ActionSpec("toggle_channels", "&Channels", "&View", "F5", "Every channel's value", checkable=True, checked=True),
    ActionSpec("toggle_tune", "&Tune", "&View", "F6", "The tuning session", checkable=True),
    ActionSpec(
        "toggle_configuration",
        "C&onfiguration",
        "&View",
        "F4",
        "The selected configuration and its source",
        checkable=True,
    ),
    ActionSpec("toggle_front", "&Front", "&View", "F7", "Speed against energy efficiency", checkable=True),
    ActionSpec("toggle_model", "&Model", "&View", "F8", "The frequency model", checkable=True),
    ActionSpec(
        "toggle_roofline",
        "Roof&line",
        "&View",
        "F12",
        "Speed, work per energy and power over intensity, and what a flop and a byte cost",
        checkable=True,
    ),
    ActionSpec("toggle_control", "Cont&rol", "&View", "F10", "Clocks and power limit by hand", checkable=True),
    ActionSpec("sensors", "Power &sensors", "&View", "F9", "How fast and how sharp each power source is"),
    ActionSpec("scores", "&Strategy scores", "&View", "F11", "How good search strategies are on recorded caches"),
    ActionSpec("wide_traces", "Wide t&races", "&View", "F2", "More room for the traces", separator=True),
    ActionSpec("wide_panels", "Wide &panels", "&View", "F3", "More room for the panels"),
    ActionSpec("theme_system", "Colours of the &system", "&View", group="theme", checked=True, separator=True),
    ActionSpec("theme_light", "&Light", "&View", group="theme"),
    ActionSpec("theme_dark", "&Dark", "&View", group="theme"),
    ActionSpec("shortcuts", "&Keys and mouse", "&Help", "F1", "Every shortcut"),
)

MOUSE_HELP = (
    ("Drag", "Mark a span: its mean power and energy are shown under the traces"),
    ("Wheel", "Zoom: live about now, held about the mouse"),
    ("Right or Shift drag", "Move through time"),
    ("Double click", "Follow the newest reading again"),
)

"""What each action of the window does, by its name in `window_actions.ACTIONS`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .log import open_log_folder
from .window_actions import LENGTH_ACTIONS

if TYPE_CHECKING:
    from .window import MainWindow

Handler = Callable[[bool], object]  # is given the checked state


def handlers_of(window: MainWindow) -> dict[str, Handler]:
    """A handler for every action that is no panel's button."""
    monitor, docks, beside = window.monitor, window.dock_area, window.side_windows
    view = monitor.view
    handlers: dict[str, Handler] = {
        "open": lambda _: window.choose_file(),
        "write_readings": lambda _: window.files.ask(
            "Readings", "readings.csv", "CSV (*.csv);;JSON (*.json)", monitor.write_readings
        ),
        "write_picture": lambda _: window.files.ask(
            "Picture", "traces.png", "PNG (*.png);;SVG (*.svg)", monitor.write_picture
        ),
        "settings": lambda _: beside.show_settings(),
        "undo": lambda _: window.undo(),
        "redo": lambda _: window.redo(),
        "report": lambda _: window.ask_report(),
        "quit": lambda _: window.leave(),
        "hold": view.hold,
        "zoom_in": lambda _: view.zoom(0.5),
        "zoom_out": lambda _: view.zoom(2.0),
        "zoom_span": lambda _: view.show_span(),
        "clear_span": lambda _: view.set_span(None),
        "wide_traces": lambda _: docks.share(0.30),
        "wide_panels": lambda _: docks.share(0.66),
        "reset_layout": lambda _: window.reset_layout(),
        "sensors": lambda _: beside.show_sensors(),
        "scores": lambda _: beside.show_scores(),
        "palette": lambda _: window.find_action(),
        "shortcuts": lambda _: beside.show_help(),
        "tour": lambda _: beside.begin_tour(),
        "log_folder": lambda _: open_log_folder(),
        "diagnostics": lambda _: window.copy_diagnostics(),
        "about": lambda _: beside.show_about(),
    }
    for name, length_s in LENGTH_ACTIONS.items():
        handlers[name] = lambda _, length_s=length_s: view.set_length(length_s)  # type: ignore[misc]
    for name in docks.by_name:
        handlers[f"toggle_{name}"] = lambda shown, name=name: docks.toggle(name, shown)  # type: ignore[misc]
    for mode in ("system", "light", "dark"):
        handlers[f"theme_{mode}"] = lambda _, mode=mode: window.set_theme(mode)  # type: ignore[misc]
    return handlers

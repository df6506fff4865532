"""What each of the window's actions does that is not the button of a panel. A handler is given the checked state."""

from __future__ import annotations

from collections.abc import Callable

from .actions import Handler
from .host import Host
from .log import open_log_folder
from .panels import INSPECTOR, PANELS, TRACES, WORKSPACES
from .window_actions import LENGTH_ACTIONS

_NARROW, _WIDE = 0.30, 0.60  # parts of a workspace's width for its docks


def handlers_of(window: Host) -> dict[str, Handler]:
    """By the names of the actions."""
    places, beside, panels, activity = window.workspaces, window.side_windows, window.panels, window.bridge.activity
    handlers: dict[str, Handler] = {
        "open": lambda _: window.file_opener.choose(),
        "open_folder": lambda _: window.file_opener.choose_folder(),
        "new_specification": lambda _: beside.begin_specification(),
        "edit_specification": lambda _: window.edit_specification(),
        "copy_command": lambda _: window.copying.copy_command(),
        "copy_python": lambda _: window.copying.copy_python(),
        "settings": lambda _: beside.show_settings(),
        "undo": lambda _: panels["tune"].form.history.undo(),
        "redo": lambda _: panels["tune"].form.history.redo(),
        "pool_here": lambda _: panels["tune"].runs_on.ask_boards() if "tune" in panels else None,
        "pool_connect": lambda _: panels["tune"].runs_on.ask_scheduler() if "tune" in panels else None,
        "report": lambda _: window.ask_report(),
        "quit": lambda _: window.close(),
        "pause": lambda _: activity.pause_or_resume(),
        "stop": lambda _: activity.stop(),
        "alarms": lambda _: beside.show_alarms(),
        "meters": lambda _: beside.show_meters(),
        "strip": window.show_strip,
        "narrow_docks": lambda _: places.share(_NARROW),
        "wide_docks": lambda _: places.share(_WIDE),
        "dismiss": lambda _: window.banner.dismiss(),
        "full_screen": window.set_full_screen,
        INSPECTOR: window.show_inspector,
        "live_traces": places.set_strip,
        "reset_layout": lambda _: window.reset_layout(),
        "sensors": lambda _: beside.show_sensors(),
        "palette": lambda _: window.find_action(),
        "shortcuts": lambda _: beside.show_help(),
        "tour": lambda _: window.begin_tour(),
        "log_folder": lambda _: open_log_folder(),
        "diagnostics": lambda _: window.copy_diagnostics(),
        "doctor": lambda _: beside.show_doctor(),
        "about": lambda _: beside.show_about(),
        **_of_traces(window),
    }
    for workspace in WORKSPACES:
        handlers[f"workspace_{workspace.name}"] = _always(places.show_workspace, workspace.name)
    for panel in PANELS:
        handlers[f"go_{panel.name}"] = _always(places.go_to, panel.name)
        handlers[f"toggle_{panel.name}"] = _with_state(places.set_dock, panel.name)
    for mode in ("system", "light", "dark"):
        handlers[f"theme_{mode}"] = _always(window.set_theme, mode)
    return handlers


def _of_traces(window: Host) -> dict[str, Handler]:
    """What is done with the traces is done where it is seen: in Watch. Their length is that of the strip, too."""
    monitor, view = window.monitor, window.monitor.view

    def watching(do: Handler) -> Handler:
        def handler(checked: bool) -> None:
            if not monitor.isVisible():
                window.workspaces.bring(TRACES)
            do(checked)

        return handler

    def show_length(length_s: float) -> None:
        if not monitor.isVisible() and not window.workspaces.shows_strip:
            window.workspaces.bring(TRACES)
        window.traces.set_length(length_s)

    handlers: dict[str, Handler] = {
        "write_readings": watching(lambda _: monitor.menu.ask_readings()),
        "write_picture": watching(lambda _: monitor.menu.ask_picture()),
        "record": lambda _: window.board.recorder.toggle(),
        "record_to": lambda _: monitor.record.ask_file() if monitor.record is not None else None,
        "lanes": watching(lambda _: monitor.lanes_menu.show_window()),
        "hold": watching(view.hold),
        "zoom_in": watching(lambda _: view.zoom(0.5)),
        "zoom_out": watching(lambda _: view.zoom(2.0)),
        "zoom_span": watching(lambda _: view.show_span()),
        "clear_span": watching(lambda _: view.set_span(None)),
    }
    for name, length_s in LENGTH_ACTIONS.items():
        handlers[name] = _always(show_length, length_s)
    return handlers


def _always(do: Callable[..., object], what: object) -> Handler:
    """A handler that does the same whatever the checked state."""
    return lambda _: do(what)


def _with_state(do: Callable[..., object], what: object) -> Handler:
    return lambda checked: do(what, checked)

"""`Wiring`: connects the panels' requests to the window and to each other, as each panel is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from ..shared.turns import timer
from .host import Host
from .panels import INSPECTOR, PANELS, SET_UP

if TYPE_CHECKING:
    from ..front.front_panel import FrontPanel
    from ..inspector.inspector_panel import InspectorPanel
    from ..library.home_panel import HomePanel
    from ..library.sessions_panel import SessionsPanel
    from ..plots.plot_export import PlotMenus
    from ..program.program_panel import ProgramPanel
    from ..tune.queue_panel import QueuePanel
    from ..tune.tune_panel import TunePanel
    from ..understand.analysis_panel import AnalysisPanel
    from ..understand.answers_panel import AnswersPanel
    from ..understand.model_panel import ModelPanel
    from ..understand.roofline_panel import RooflinePanel


class Wiring(QObject):
    """Follows `Panels.made`. Every plot gets its menu here."""

    def __init__(self, host: Host, window: QWidget) -> None:
        super().__init__(window)
        self._host, self._window = host, window
        self.plot_menus: PlotMenus | None = None  # once there is a panel that was loaded
        self._titles = {spec.name: spec.title for spec in PANELS}
        host.panels.made.connect(self._made)
        self._adopting = timer(self, self.adopt_plots, once=True)  # once, however often what is in sight changes
        host.workspaces.changed.connect(self._adopting.start)  # some are made when they are shown

    @Slot(str)
    def _made(self, name: str) -> None:
        host, panel = self._host, self._host.panels[name]
        host.actions_made.connect_buttons(name, panel, host.workspaces.bring)
        connections: dict[str, Callable[[Any], None]] = {
            "home": self._connect_home,
            "queue": self._connect_queue,
            INSPECTOR: self._connect_inspector,
            "tune": self._connect_tune,
            "sessions": self._connect_sessions,
            "roofline": self._connect_roofline,
            "front": self._connect_front,
            "model": self._connect_model,
            "answers": self._connect_answers,
            "analysis": self._connect_analysis,
            "program": self._connect_program,
        }
        if name in connections:
            connections[name](panel)
        self._adopt(name, panel)

    def _connect_tune(self, tune: TunePanel) -> None:
        tune.file_opened.connect(self._host.settings.add_recent)
        tune.edit_asked.connect(self._host.edit_specification)
        tune.asked.connect(self._keep_only)
        tune.asked.connect(self._begin_set_up)
        tune.runs_on.look_asked.connect(self._bring_pool)
        tune.form.history.changed.connect(self._history_changed)
        self._history_changed()

    @Slot()
    def _begin_set_up(self) -> None:
        self._host.workspaces.set_state("tune", SET_UP)

    def _connect_home(self, home: HomePanel) -> None:
        host = self._host
        home.example_asked.connect(host.tune_example)
        home.action_asked.connect(lambda name: host.actions_by_name[name].trigger())
        home.recent_file_asked.connect(host.file_opener.open)
        home.session_asked.connect(self._keep_only)
        home.session_asked.connect(host.open_session)
        home.resume_asked.connect(host.resume_session)
        self._refresh_home_with("sessions")

    def _connect_queue(self, queue: QueuePanel) -> None:
        queue.open_asked.connect(self._keep_only)
        queue.open_asked.connect(self._host.open_session)
        queue.compare_asked.connect(self._host.compare_sessions)

    def _connect_inspector(self, inspector: InspectorPanel) -> None:
        host = self._host
        answer = inspector.answer
        inspector.report_asked.connect(host.ask_report)
        host.reports.started.connect(answer.report_started)
        host.reports.written.connect(answer.report_written)
        host.reports.failed.connect(answer.report_failed)
        host.actions_made.submenus["choose"].addActions(inspector.chooser.menu.actions())

    def _connect_sessions(self, sessions: SessionsPanel) -> None:
        host = self._host
        sessions.open_asked.connect(host.open_session)
        sessions.resume_asked.connect(host.resume_session)
        sessions.compare_asked.connect(host.compare_sessions)
        sessions.report_asked.connect(host.reports.write_stored)
        sessions.specification_met.connect(host.open_specification)
        sessions.log_met.connect(host.file_opener.open)
        sessions.said.connect(host.notices.inform)
        sessions.roofline_resume_asked.connect(self._resume_roofline)
        self._refresh_home_with("home")

    @Slot()
    def _keep_only(self, *_: object) -> None:
        """What is still being imported does not replace what is opened now."""
        if self._host.panels.has("sessions"):
            self._host.panels["sessions"].keep_only()

    def _refresh_home_with(self, other: str) -> None:
        """What is renamed or deleted in the Library is so at Home, once both are there."""
        panels = self._host.panels
        if panels.has(other):
            panels["sessions"].listed.connect(panels["home"].refresh_soon)

    def _connect_roofline(self, roofline: RooflinePanel) -> None:
        roofline.session_opened.connect(self._bring_roofline)

    def _connect_front(self, front: FrontPanel) -> None:
        front.pages.made.connect(self.adopt_plots)  # figures that are made when asked for

    def _connect_model(self, model: ModelPanel) -> None:
        model.tabs.made.connect(self.adopt_plots)

    def _connect_answers(self, answers: AnswersPanel) -> None:
        answers.figure_asked.connect(self._open_figure)
        answers.session_asked.connect(self._set_up_session)
        self._host.panels[INSPECTOR].chooser.load.changed.connect(answers.answer)

    def _connect_analysis(self, analysis: AnalysisPanel) -> None:
        analysis.session_asked.connect(self._set_up_session)

    def _connect_program(self, program: ProgramPanel) -> None:
        program.open_asked.connect(self._host.file_opener.choose)
        program.file_opened.connect(self._host.settings.add_recent)
        program.action_asked.connect(lambda name: self._host.actions_by_name[name].trigger())
        program.report_asked.connect(self._host.reports.write_profile)

    @Slot()
    def _set_up_session(self) -> None:
        self._host.workspaces.go_to("tune")

    @Slot(str)
    def _open_figure(self, name: str) -> None:
        """The panel of that name, else the chart of the analysis."""
        panels, panel = self._host.panels, name if name in self._titles else "analysis"
        self._host.workspaces.go_to(panel)
        if panel == "analysis":
            panels[panel].show_figure(name)

    @Slot()
    def _bring_pool(self) -> None:
        self._host.workspaces.bring("pool")

    @Slot()
    def _history_changed(self) -> None:
        history, actions = self._host.panels["tune"].form.history, self._host.actions_by_name
        actions["undo"].setEnabled(history.can_undo)
        actions["redo"].setEnabled(history.can_redo)

    @Slot()
    def _bring_roofline(self) -> None:
        self._host.workspaces.bring("roofline")

    @Slot(int, str)
    def _resume_roofline(self, session: int, precision: str) -> None:
        self._bring_roofline()
        self._host.panels["roofline"].measuring.resume(session, precision)

    # --- the menus of plots -------------------------------------------------------------------------------------------

    @Slot()
    def adopt_plots(self) -> None:
        """Give every plot its menu."""
        for name, panel in self._host.panels.items():
            self._adopt(name, panel)

    def _adopt(self, name: str, panel: QWidget) -> None:
        if name in _WITHOUT_PLOTS:
            return
        host = self._host
        if self.plot_menus is None:
            from ..plots.plot_export import PlotMenus  # imported late: plots come with the panels

            self.plot_menus = PlotMenus(self._window, lambda: host.result.caption or host.board.gpu.info.label)
            self.plot_menus.said.connect(host.notices.inform)
            self.plot_menus.failed.connect(host.notices.fail)
            self.plot_menus.more = [host.actions_by_name[name] for name in ("copy_command", "copy_python")]
        self.plot_menus.adopt(panel, self._titles[name], getattr(panel, "provenance", None))

    @Slot(QWidget)
    def adopt_window(self, shown: QWidget) -> None:
        """Give the plots of a window beside this one their menus."""
        if self.plot_menus is not None:
            own = getattr(shown, "provenance", lambda: self._host.board.gpu.info.label)
            self.plot_menus.adopt(shown, shown.windowTitle(), own)


_WITHOUT_PLOTS = {spec.name for spec in PANELS if not spec.panel}  # they are there before plots are loaded

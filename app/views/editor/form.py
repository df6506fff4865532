"""`Form`: the sections of a specification, each a page; the list of sections counts what is wrong in each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from PySide6.QtCore import QSignalBlocker, Qt, Slot
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QComboBox, QFrame, QListWidget, QListWidgetItem, QScrollArea, QStackedWidget, QWidget

from ...engine.expressions.values import parse_values
from ...engine.measurement import MEASURED
from ...engine.operators.shapes import AXES, KINDS, PRECISIONS
from ...engine.specification.model import COMPILERS, DEVICE_COMPILERS, LANGUAGES, NOTHING, RETURNED_TIMES
from ...engine.specification.problems import Problem
from ...engine.specification.toml_edit import Place, with_value, without
from ...engine.strategies import base as strategies
from ...errors import InputError
from ..plots import theme
from ..widgets import hbox, vbox
from .cells import shown_expressions, shown_value, shown_values, typed_expressions, typed_value, typed_values
from .checking import Reading
from .complaint import Complaint
from .device_settings import DeviceSettings
from .edited import EditedSpecification
from .entry_table import Column, EntryTable, Problems
from .fields import Fields, FieldSpec, list_field, text_field, text_of

SECTIONS = (
    "What is run",
    "Constants",
    "Parameters",
    "Restrictions",
    "Device settings",
    "Metrics",
    "Objective",
    "Search",
)
_OF_PAGE = {  # the page of each part of the document
    "kernel": 0,
    "operator": 0,
    "command": 0,
    "service": 0,
    "constants": 1,
    "parameters": 2,
    "restrictions": 3,
    "device_settings": 4,
    "metrics": 5,
    "objective": 6,
    "limits": 6,
    "search": 7,
}
_KERNEL = (
    text_field(("kernel", "name"), "&Name", "The name of the kernel's function"),
    FieldSpec(("kernel", "language"), "Lan&guage", "CUDA unless it is given", text_of, str, LANGUAGES),
    list_field(("kernel", "source"), "&Source", "Source files, relative to the specification, with commas between"),
    text_field(
        ("kernel", "generator"),
        "Source &made by",
        "A command that prints the source for each configuration, instead of files; {name} stands for a parameter. "
        "It runs only once a session is started",
    ),
    list_field(("kernel", "problem_size"), "&Problem size", "Elements along x, y and z: expressions, such as n, n"),
    list_field(("kernel", "grid_divisors", "x"), "Grid divisors &x", "What one block covers of x; they are multiplied"),
    list_field(("kernel", "grid_divisors", "y"), "Grid divisors &y", "What one block covers of y"),
    list_field(("kernel", "grid_divisors", "z"), "Grid divisors &z", "What one block covers of z"),
    text_field(("kernel", "verify", "reference"), "&Reference", "An expression such as a @ b, a kernel, or a file"),
    text_field(
        ("kernel", "verify", "command"),
        "&Checked by",
        "A command that ends with status 0 where the output is right; {name} stands for a parameter, or for the file "
        "of an array. It runs only once a session is started",
    ),
    FieldSpec(("kernel", "verify", "rtol"), "Relative &tolerance", "1e-5 unless it is given"),
    FieldSpec(("kernel", "verify", "atol"), "A&bsolute tolerance", "0 unless it is given"),
    text_field(("kernel", "profile"), "Pro&file", "How the simulated GPUs cost it; a real GPU needs none"),
    text_field(("kernel", "template"), "Temp&late", "Arguments of a kernel that is a template, as C++ has them"),
    FieldSpec(
        ("kernel", "compiler"),
        "Compiler (&host)",
        "Of C, C++ or Fortran; the first that is there unless it is given",
        text_of,
        str,
        (*(name for names in COMPILERS.values() for name in names), *DEVICE_COMPILERS),
    ),
    list_field(("kernel", "compiler_options"), "Compiler &options", "Such as --use_fast_math"),
    FieldSpec(
        ("kernel", "returns"),
        "Ret&urns",
        "What a function in C, C++ or Fortran returns, as float: a time (time_ms by default), a value, or nothing",
        text_of,
        str,
        (*RETURNED_TIMES, NOTHING),
    ),
    list_field(("kernel", "block_size_names"), "Block s&ize names", "Three: block_size_x, block_size_y, block_size_z"),
    FieldSpec(("kernel", "repeats"), "R&epeats", "Measurements of each configuration"),
)
_SHAPES = "; ".join(f"{kind}: {', '.join(axes)}" for kind, axes in AXES.items())
_COMMAND = (
    text_field(("command", "run"), "&Command line", "{name} stands for a parameter, constant or device setting"),
    FieldSpec(("command", "repeats"), "R&epeats", "Runs of each configuration"),
    FieldSpec(("command", "timeout_s"), "&Time limit (s)", "Of one run; 300 unless it is given"),
)
_OPERATOR = (
    FieldSpec(("operator", "kind"), "&Kind", "Matrix or matrix-vector product, or convolution", text_of, str, KINDS),
    FieldSpec(("operator", "shape"), "&Shape", _SHAPES, shown_values, typed_values),
    FieldSpec(("operator", "precision"), "&Precision", "Of the operands", text_of, str, tuple(PRECISIONS)),
    FieldSpec(("operator", "repeats"), "R&epeats", "Measurements of each configuration"),
)
_FIRST = {  # of each kind of work, to begin with
    "kernel": {"name": "kernel", "source": "kernel.cu"},
    "operator": {"kind": "mm", "shape": [1, 512, 512, 512]},
    "command": {"run": "./program {parameter}"},
}
_ARGUMENTS = (
    Column("Name", "name", text_of, str),
    Column("Type", "type", text_of, str),
    Column("Shape", "shape", shown_expressions, typed_expressions),
    Column("Fill", "fill", text_of, str),
    Column("Value", "value", shown_value, typed_value),
    Column("Output", "output", shown_value, typed_value),
    Column("Memory", "memory", text_of, str),
)


class Form(QWidget):
    """Shows what was read of the text, and changes single values of it."""

    def __init__(self, edited: EditedSpecification, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._edited = edited
        self._notes: Mapping[str, str] = {}
        self._reading: Reading | None = None
        self.sections, self.pages = QListWidget(), QStackedWidget()
        self.sections.setAccessibleName("Sections of the specification")
        self.sections.setSpacing(2)
        self.sections.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        for title in SECTIONS:
            QListWidgetItem(title, self.sections)
        self.sections.setFixedWidth(self.sections.fontMetrics().horizontalAdvance("Device settings (99)") + 24)
        self.blocked = Complaint()  # why the form cannot be used just now
        self._make_pages()
        for page in (self._what_page(), *self._other_pages()):
            area = QScrollArea()
            area.setWidget(page)
            area.setWidgetResizable(True)
            area.setFrameShape(QFrame.Shape.NoFrame)
            area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
            self.pages.addWidget(area)
        vbox(self.blocked, (hbox(self.sections, (self.pages, 1)), 1), of=self, margins=0)
        self.sections.currentRowChanged.connect(self.pages.setCurrentIndex)
        self.sections.setCurrentRow(0)
        theme.notifier().changed.connect(self._recolour)

    def _make_pages(self) -> None:
        edited = self._edited
        self.kind = QComboBox()
        self.kind.setAccessibleName("What is run")
        kinds = ("A kernel", "kernel"), ("An operator", "operator"), ("A command", "command")
        for words, key in (*kinds, ("Nothing: a space only", "")):
            self.kind.addItem(words, key)
        self.kind.activated.connect(self._kind_chosen)
        self.kernel, self.command = Fields(edited, _KERNEL), Fields(edited, _COMMAND)
        self.operator = Fields(edited, _OPERATOR)
        first = {"name": "x", "type": "float32", "shape": ["n"], "fill": "random"}
        hint = "An array has a shape, a scalar a value. Fill: zeros, ones, random, range, a file, or an expression of i"
        self.arguments = EntryTable(edited, ("kernel", "arguments"), "Arguments", _ARGUMENTS, first, hint)
        self.arguments.table.setMinimumHeight(150)
        self.arguments.fit((10, 9, 10, 9, 7, 7, 8))
        named, text = Column("Name", None), Column("Expression", "", text_of, str)
        pattern = Column("Regular expression with one group", "", text_of, str)
        hint = "Figures in the output of the program; the last match of each counts"
        self.values = EntryTable(
            edited, ("command", "values"), "Figures", (named, pattern), "([0-9.]+)", hint, "figure"
        )
        hint = "Constants reach the kernel as macros: text stands as it is"
        one, several = Column("Value"), Column("Values", "", shown_values, typed_values)
        self.constants = EntryTable(edited, ("constants",), "Constants", (named, one), 1, hint, "n")
        hint = (
            "A list with commas, a range such as range(16, 257, 16), or an expression over the others. Words in quotes"
        )
        self.parameters = EntryTable(
            edited, ("parameters",), "Parameters", (named, several), [1, 2, 4], hint, "parameter"
        )
        hint = "Each must hold: over parameters, constants and limits such as max_threads_per_block"
        restriction = Column("Restriction", "", text_of, str)
        self.restrictions = EntryTable(edited, ("restrictions",), "Restrictions", (restriction,), "1 > 0", hint)
        hint = f"Over parameters, constants, earlier metrics and {', '.join(MEASURED)}"
        self.metrics = EntryTable(edited, ("metrics",), "Metrics", (named, text), "1 / time_s", hint, "metric")
        option = (Column("Option", None), one)
        self.options = EntryTable(edited, ("search", "options"), "Options of the strategy", option, 1, "", "option")
        for table, widths in (
            (self.constants, (20, 20)),
            (self.parameters, (18, 34)),
            (self.restrictions, (46,)),
            (self.metrics, (16, 36)),
            (self.values, (14, 34)),
            (self.options, (20, 16)),
        ):
            table.fit(widths)
        self.settings = DeviceSettings(edited)
        self.direction, self.figure = QComboBox(), QComboBox()
        self.direction.addItem("maximise", "maximise")
        self.direction.addItem("minimise", "minimise")
        self.figure.setEditable(True)
        self.figure.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.direction.setAccessibleName("Direction of the objective")
        self.figure.setAccessibleName("Objective")
        self.objective_complaint = Complaint(self.figure)
        self.direction.activated.connect(self._objective_changed)
        self.figure.editTextChanged.connect(self._objective_changed)
        self.figure.activated.connect(self._objective_changed)
        front = "Figures of the Pareto front, two or more; max:NAME or min:NAME says which way"
        self.front = Fields(edited, (list_field(("objective", "front"), "&Front", front),))
        self.search = Fields(
            edited,
            (
                FieldSpec(
                    ("search", "strategy"), "&Strategy", "The search strategy", text_of, str, tuple(strategies.names())
                ),
                FieldSpec(("search", "max_evaluations"), "&Evaluations", "Measure at most so many configurations"),
                FieldSpec(("search", "max_fraction"), "&Fraction", "At most this share of the valid configurations"),
                FieldSpec(("search", "max_seconds"), "&Time (s)", "Search at most so long"),
                FieldSpec(("search", "patience"), "&Patience", "End after so many evaluations without a better one"),
                FieldSpec(("search", "seed"), "See&d", "The same seed repeats the strategy's choices"),
            ),
        )

    def _what_page(self) -> QWidget:
        page = QWidget()
        self.kernel_part, self.command_part = QWidget(), QWidget()
        vbox(self.kernel, (self.arguments, 1), of=self.kernel_part, margins=0)
        vbox(self.command, (self.values, 1), of=self.command_part, margins=0)
        parts = (self.kernel_part, 1), (self.operator, 1), (self.command_part, 1)
        vbox(hbox(self.kind, 1), *parts, of=page, margins=4)
        return page

    def _other_pages(self) -> list[QWidget]:
        objective, search = QWidget(), QWidget()
        row = hbox(self.direction, (self.figure, 1))
        vbox(row, self.objective_complaint, self.front, 1, of=objective)
        vbox(self.search, (self.options, 1), of=search)
        return [self.constants, self.parameters, self.restrictions, self.settings, self.metrics, objective, search]

    def show_reading(self, reading: Reading) -> None:
        """Show what the text says; a text that is not TOML leaves the form as it was, out of use."""
        document = reading.document
        for part in (self.pages, self.sections):
            part.setEnabled(document is not None)
        if document is None:
            what = "; ".join(str(each) for each in reading.found)
            self.blocked.say(f"The form waits until the text is TOML again: {what}")
            return
        self.blocked.say("")
        self._reading = reading
        self._show(document, reading.by_place)

    def show_notes(self, notes: Mapping[str, str], problems: Mapping[Place, Problem]) -> None:
        """What each restriction removes, or what the space's builder refuses."""
        self._notes = notes
        reading = self._reading
        if reading is not None and reading.document is not None:
            if problems:
                self._show(reading.document, {**reading.by_place, **problems})
            else:
                self.restrictions.show_entries(reading.document, reading.by_place, notes)

    def bring(self, place: Place) -> None:
        """Show the page of a place."""
        if place and place[0] in _OF_PAGE:
            self.sections.setCurrentRow(_OF_PAGE[str(place[0])])

    def _show(self, document: Mapping[str, Any], problems: Problems) -> None:
        kind = next((key for key in _FIRST if key in document), "")
        self.kind.setCurrentIndex(self.kind.findData(kind))
        self.kernel_part.setVisible(kind == "kernel")
        self.operator.setVisible(kind == "operator")
        self.command_part.setVisible(kind == "command")
        for fields in (self.kernel, self.operator, self.command, self.front, self.search):
            fields.show_values(document, problems)
        for table in (self.arguments, self.values, self.constants, self.metrics, self.options):
            table.show_entries(document, problems, {})
        parameters = document.get("parameters", {})
        counts = _counts(parameters if isinstance(parameters, Mapping) else {})
        self.parameters.show_entries(document, problems, counts)
        self.restrictions.show_entries(document, problems, self._notes)
        self.settings.show_settings(document, problems)
        self._show_objective(document, problems)
        for row, title in enumerate(SECTIONS):
            wrong = sum(_OF_PAGE.get(str(place[0]), -1) == row for place in problems if place)
            item = self.sections.item(row)
            item.setText(f"{title} ({wrong})" if wrong else title)
            colours = theme.colours()
            item.setData(Qt.ItemDataRole.BackgroundRole, QColor(colours.warning) if wrong else None)
            item.setData(Qt.ItemDataRole.ForegroundRole, QColor(colours.warning_text) if wrong else None)
            item.setToolTip(f"{wrong} to correct" if wrong else "")

    def _show_objective(self, document: Mapping[str, Any], problems: Problems) -> None:
        given = document.get("objective", {})
        given = given if isinstance(given, Mapping) else {}
        key = "minimise" if "minimise" in given else "maximise"
        metrics, command = document.get("metrics", {}), document.get("command", {})
        figures = list(metrics) if isinstance(metrics, Mapping) else []
        values = command.get("values", {}) if isinstance(command, Mapping) else {}
        figures += [*(values if isinstance(values, Mapping) else ()), *_returned(document.get("kernel")), *MEASURED]
        name = given.get(key, "")
        with QSignalBlocker(self.direction), QSignalBlocker(self.figure):
            self.direction.setCurrentIndex(self.direction.findData(key))
            if [self.figure.itemText(at) for at in range(self.figure.count())] != figures:
                self.figure.clear()
                self.figure.addItems(figures)
            if self.figure.currentText() != name:
                self.figure.setEditText(name if isinstance(name, str) else "")
        wrong = [str(p) for at, p in problems.items() if at[:1] == ("objective",) and at[1:2] != ("front",)]
        self.objective_complaint.say("; ".join(wrong))

    @Slot()
    def _kind_chosen(self) -> None:
        kind = self.kind.currentData()
        others = [key for key in _FIRST if key != kind]
        steps: list[Callable[[str], str]] = [partial(without, place=(key,)) for key in others]
        document = self._reading.document if self._reading is not None else None
        if kind and document is not None and kind not in document:
            steps.append(partial(with_value, place=(kind,), value=_FIRST[kind]))
        self._edited.change(*steps)

    @Slot()
    def _objective_changed(self) -> None:
        key, name = self.direction.currentData(), self.figure.currentText().strip()
        other = "minimise" if key == "maximise" else "maximise"
        if not name:
            self._edited.remove(("objective",))
            return
        document = self._reading.document if self._reading is not None else None
        given = document.get("objective", {}) if document is not None else {}
        if isinstance(given, Mapping) and other in given:
            self._edited.change(
                lambda text: with_value(text, ("objective", key), name),
                lambda text: without(text, ("objective", other)),
            )
        else:
            self._edited.set_value(("objective", key), name)

    @Slot()
    def _recolour(self) -> None:
        if self._reading is not None and self._reading.document is not None:
            self._show(self._reading.document, self._reading.by_place)


def _counts(parameters: Mapping[str, Any]) -> dict[str, str]:
    """How many values each list has; of an expression that names nothing, how many it gives."""
    counts: dict[str, str] = {}
    for value in parameters.values():
        if isinstance(value, list):
            counts[str(value)] = f"{len(value)} value{'' if len(value) == 1 else 's'}"
        elif isinstance(value, str):
            counts[value] = "depends on others" if _names_in(value) else "a range"
    return counts


def _returned(kernel: object) -> list[str]:
    """The value that a function of the host returns, where the text names one."""
    name = kernel.get("returns") if isinstance(kernel, Mapping) else None
    return [name] if isinstance(name, str) and name not in (*RETURNED_TIMES, NOTHING) else []


def _names_in(text: str) -> tuple[str, ...]:
    try:
        return parse_values(text, "").names
    except InputError:
        return ()

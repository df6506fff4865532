"""Exports: a configuration as JSON, C header, CUDA source, machine code or a script that sets its clocks; a session as
CSV, cache or T4; a specification as T1."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ... import __version__
from ...base.errors import InputError, WattridgeError
from ...base.files import digest_of, free_name, is_input, is_there, open_input, refuse_taken, write_text
from ...base.formatting import finite_or_none
from ...base.records import as_json
from ...sensors.event_reasons import names as reason_names
from ...sensors.gpu import Gpu
from ...sensors.limits import DeviceLimits, limits_of
from ..analysis.costs import costs_of
from ..analysis.own_state import OwnState, own_state
from ..analysis.standing import standing
from ..formats.c_header import c_header, identifier
from ..formats.csv_table import SIGNATURE, write_csv
from ..formats.kernel_tuner import write_cache
from ..formats.names import DEVICE_SETTINGS, unit_of
from ..formats.nvidia_smi import clock_script
from ..formats.own import About
from ..formats.t1 import write_t1
from ..formats.t4 import write_t4
from ..metering.window import PEAK_POWER, THROTTLED_SHARE
from ..results.measurement import MEASURED, Measurement, Value
from ..results.objectives import BY_HAND
from ..results.process import OF_LAUNCHES
from ..results.state import SessionState
from ..runner.cuda.measured_code import ByNvcc, MeasuredCode, by_nvcc, capability_of, measured_code
from ..session.load import load_specification
from ..session.sources import are_as_measured
from ..session.summary import best_of
from ..space.repeats import fold
from ..space.result_table import ResultTable
from ..space.within_limits import nearest
from ..specification.model import Specification
from ..specification.operator_shapes import ALGORITHM, CUBLASLT, LIBRARY, MAKER, OURS, TRITON
from ..specification.plan import SessionPlan
from ..workloads.source_kernel import KernelRefused
from .cuda_export import CudaFile, code_source
from .maker_export import library_declaration, library_file, library_source, maker_of, remarks_on, script, why_no_file
from .receipt import NAME, Receipt, document_of, new_folder, receipt_of, write_receipt

# kind -> how its file's name ends: a configuration's first, then those of the whole session
KINDS = {
    "json": ".json",
    "header": ".h",
    "source": ".cu",
    "code": "-code.c",
    "python": ".py",
    "script": "-clocks.sh",
    "csv": "-session.csv",
    "cache": "-cache.json",
    "t4": "-t4.json",
    "t1": "-t1.json",
}
_NO_SOURCE = "there is no CUDA source of this session as it was"
Existing = Literal["refuse", "replace", "beside", "new"]  # what becomes of an export that lies where one goes
_OURS = ("Wattridge", '"wattridge"', SIGNATURE)  # one of these stands in every file written here


@dataclass(frozen=True, slots=True)
class Choice:
    """One measured configuration and everything a reader needs to trust it."""

    measurement: Measurement
    plan: SessionPlan
    session: int | None
    settings: tuple[str, ...]  # which parameters are device settings
    receipt: Receipt  # which one it is, how it was chosen, its rank
    kernel: CudaFile | None = None  # where the session's specification is there and has a CUDA source
    code: MeasuredCode | None = None  # of that kernel, where it is kept or can be made again
    by_nvcc: ByNvcc | None = None  # of its source, where nvcc is here
    number: int | None = None  # of the measurement, from 1; None for a mean over repeats
    own_state: OwnState | None = None  # against the board's own state; None where no setting of it was varied

    @property
    def source(self) -> str:
        """nvml, simulated or recorded."""
        return self.measurement.source or self.plan.source

    @property
    def parameters(self) -> dict[str, Value]:
        """What the kernel is compiled with."""
        return {n: v for n, v in self.measurement.configuration.items() if n not in self.settings}

    @property
    def device_settings(self) -> dict[str, Value]:
        """Clocks and cap under this program's names (MHz, W)."""
        chosen = self.measurement.configuration
        return {DEVICE_SETTINGS.get(n, n): v for n, v in chosen.items() if n in self.settings}

    @property
    def maker(self) -> str:
        """Who made its kernel: this program, or a library that has it."""
        return maker_of(self.plan.origin, self.parameters)

    @property
    def provenance(self) -> str:
        """One line: where the figures come from."""
        return _provenance(self.plan, self.source)

    @property
    def how(self) -> str:
        """Which measurement it is, of which session, by which rule it was chosen, and its rank by the objective."""
        return self.receipt.how if self.number is not None else f"the mean over its repeats, {self.receipt.how}"

    @property
    def of_figures(self) -> str:
        """The same as a sentence, with the session's number: files of several sessions may lie in one folder."""
        return f"Figures {self.provenance}{f' (session {self.session})' if self.session else ''}."


def choose(
    plan: SessionPlan,
    table: ResultTable,
    session: int | None,
    index: int | None,
    rule: str | None = None,
    state: SessionState | None = None,
) -> Choice:
    """The measurement at `index`; None: the best by the session's objective, WattridgeError if none succeeded.

    Where a parameter only repeats the configurations, the mean over the repeats of the chosen one. `rule` says how the
    index was chosen; None: by hand, or for the objective. `state` is that of the session.
    """
    rule = rule or (str(plan.objective.goal) if index is None else BY_HAND)
    folded = fold(table)
    compared = table if folded is None else folded.table
    if index is None:
        best = best_of(plan, compared)
        if best is None:
            raise _nothing(plan, compared)
        index = best if folded is None else int(np.flatnonzero(folded.index_of == best)[0])
    place = index if folded is None else int(folded.index_of[index])
    measurement = compared.measurement(place)
    if folded is not None and folded.single:
        measurement = replace(measurement, configuration={})
    receipt = receipt_of(
        plan,
        session,
        len(table),
        state,
        _provenance(plan, measurement.source or plan.source),
        standing=standing(table, plan.objective, index),
        rule=rule,
        configuration=dict(measurement.configuration),
        values=dict(measurement.values),
    )
    choice = Choice(
        measurement,
        plan,
        session or None,  # a recording that is shown has number 0
        tuple(p.name for p in compared.space.parameters if p.device_setting),
        receipt,
        number=index + 1 if folded is None else None,
        own_state=own_state(compared, costs_of(compared), place),
    )
    return replace(choice, kernel=_kernel_of(choice)) if _has_t1(plan) else choice


def _nothing(plan: SessionPlan, table: ResultTable) -> WattridgeError:
    if nearest(table, plan.objective.limits) is not None:
        limits = "; ".join(map(str, plan.objective.limits))
        return WattridgeError(f"no configuration keeps the limits ({limits})", plan.title, "name one, or widen them")
    return WattridgeError("no configuration succeeded", plan.title, "let the session measure something first")


def _provenance(plan: SessionPlan, source: str) -> str:
    board = f"{plan.gpu}, driver {plan.driver}" if plan.driver else plan.gpu
    how = {
        "nvml": f"measured on {board}",
        "amd": f"measured on {board}",
        "unmetered": f"measured on {board}, which reports no energy",
        "simulated": f"SIMULATED: from a model of {plan.gpu}, not measured on a board",
        "recorded": f"replayed from a recording made on {plan.gpu}",
    }
    return how.get(source, f"{source}: {board}")


def _possible(plan: SessionPlan, choice: Choice | None, asked: Sequence[str], *, named: bool) -> list[str]:
    """The kinds that can be written of those asked for. Raises InputError if one that the user named cannot be."""
    why_not = {kind: _why_not(choice, kind) for kind in ("source", "code", "python")}
    able = {"t1": _has_t1(plan), **{kind: not why for kind, why in why_not.items()}}
    wanted = [kind for kind in asked if named or able.get(kind, True)]
    if why := next((why for kind in wanted if (why := why_not.get(kind))), ""):
        raise InputError(why, plan.title, "choose other kinds")
    return wanted


def _why_not(choice: Choice | None, kind: str) -> str:
    """Why there is no `source`, `code` or `python`; empty where there is one."""
    if choice is not None and (why := why_no_file(choice.maker, kind)):
        return why
    if choice is None or (choice.kernel is None and kind != "python"):
        return f"{'there is no machine code: ' if kind == 'code' else ''}{_NO_SOURCE}"
    if kind == "code" and choice.maker == OURS and choice.code is None:
        return f"there is no machine code: {_why_no_code(choice)}"
    return ""


def export_session(
    plan: SessionPlan,
    table: ResultTable,
    session: int | None,
    index: int | None,
    folder: Path,
    kinds: Sequence[str] | None = None,
    on_remark: Callable[[str], None] = lambda line: None,
    *,
    existing: Existing = "refuse",
    rule: str | None = None,
    state: SessionState | None = None,
) -> list[Path]:
    """Write the chosen configuration (None: the best one) and the session in the kinds asked for (None: all).

    `on_remark` gets, in a line, what a user of the files should know of them. Each file is written whole or not at
    all, and the last of them is the receipt. `existing`: 'new' makes a folder for this export in `folder`; 'refuse' and
    'replace' write into `folder` itself, where an export that lies there is in the way, or is replaced; 'beside' is
    'refuse', but 'new' where one lies there. A file of another origin is never replaced. `rule` and `state` as for
    `choose`. Raises InputError for an unknown kind, and for T1, source or machine code if there is none; WattridgeError
    where nothing succeeded, where a file is in the way, or where the folder refuses.
    """
    unknown = set(kinds or ()) - set(KINDS)
    if unknown:
        raise InputError(f"unknown kind '{sorted(unknown)[0]}'", "export", f"one of {', '.join(KINDS)}")
    asked, table, choice = KINDS if kinds is None else kinds, table.so_far(), None
    with nullcontext() if set(asked) & set(_CHOICES) else suppress(WattridgeError):  # a session may have none to choose
        choice = choose(plan, table, session, index, rule, state)
        choice = _with_code(choice, beside_nvcc=bool({"source", "code"} & set(asked)))
    wanted = _possible(plan, choice, [kind for kind in KINDS if kind in asked], named=kinds is not None)
    without = receipt_of(plan, session, len(table), state, _provenance(plan, plan.source))
    receipt = without if choice is None else choice.receipt
    folder = _claimed(plan, session, folder, wanted, existing)
    paths = {kind: folder / _name(plan.title, kind) for kind in wanted}
    size, known_as = plan.origin.get("problem_size", ""), plan.origin.get("known_as")
    about = About(plan.gpu, plan.title, plan.objective, plan.source, size, plan.units, known_as, document_of(receipt))
    for kind, path in paths.items():
        if choice is not None and kind in _CHOICES:
            write_text(path, _CHOICES[kind](choice), overwrite=True, executable=kind == "script")
        elif kind == "t1":
            _write_plan_as_t1(plan, path, about.receipt)
        else:
            _SESSIONS[kind](table, path, about, overwrite=True)
    files = list(paths.values())
    files.append(write_receipt(receipt, files, folder))
    told = choice is not None and ("source" in wanted or choice.maker != OURS)
    remarks = [*filter(None, [receipt.running]), *(_of_the_code(choice) if told else [])]
    if kinds is None and existing == "replace":
        remarks += _left_there(folder, plan.title, [kind for kind in KINDS if kind not in wanted])
    for line in remarks:
        on_remark(line)
    return files


def _claimed(plan: SessionPlan, session: int | None, folder: Path, kinds: Collection[str], existing: Existing) -> Path:
    """The folder that the files go into, as `export_session` says."""
    try:
        if existing != "new":
            refuse_files(folder, plan.title, kinds, existing)
            return folder
    except WattridgeError:
        if existing != "beside":
            raise
    return new_folder(plan, session, folder)


def refuse_files(folder: Path, title: str, kinds: Collection[str], existing: Existing) -> None:
    """Raises WattridgeError if an export that is not to be replaced lies in a folder, or a file of another origin."""
    for name in (*(_name(title, kind) for kind in kinds), NAME):
        if existing == "replace":
            refuse_foreign(folder / name)
        else:
            refuse_taken(folder / name)


def _left_there(folder: Path, title: str, kinds: Sequence[str]) -> list[str]:
    """Files of an earlier export, of kinds that this session has none of: they would be taken for this one's."""
    paths = [folder / _name(title, kind) for kind in kinds]
    left = [path.name for path in paths if is_there(path)]
    return [f"Of an earlier export, not of this one: {', '.join(left)}."] if left else []


def export_specification(
    spec: Specification, folder: Path, gpu: Gpu | None = None, *, existing: Existing = "refuse"
) -> Path:
    """Write a specification as T1, its device limits those of the board, else of compute capability 8.0.

    A file of that name that lies there stays where `existing` is 'new'. Raises InputError and WattridgeError as
    `export_session` does.
    """
    path = folder / f"{file_stem(spec.name)}{KINDS['t1']}"
    if existing == "new":
        path = free_name(path)
    else:
        refuse_files(folder, spec.name, ["t1"], existing)
    return _write_as_t1(spec, path, gpu)


def _has_t1(plan: SessionPlan) -> bool:
    """Whether the session's specification is there, as it was, and describes a kernel."""
    path = Path(plan.origin.get("file", ""))
    if plan.origin.get("kind") != "specification" or not is_input(path):
        return False
    if digest_of(path) != plan.origin.get("sha256"):
        return False
    spec = load_specification(path)
    return spec.command is None and spec.service is None


def _write_plan_as_t1(plan: SessionPlan, path: Path, receipt: Mapping[str, Any] | None) -> None:
    from ...sensors.select import open_gpu

    if not _has_t1(plan):
        what = "T1 is written of a kernel's specification, and this session has none that is as it was"
        raise InputError(what, plan.title, "choose other kinds")
    gpu = None
    with suppress(WattridgeError):  # a board that is gone only leaves its limits unknown
        gpu = open_gpu(plan.origin.get("gpu"), speed=math.inf)
    try:
        _write_as_t1(load_specification(Path(plan.origin["file"])), path, gpu, receipt)
    finally:
        if gpu is not None:
            gpu.close()


def _write_as_t1(spec: Specification, path: Path, gpu: Gpu | None, receipt: Mapping[str, Any] | None = None) -> Path:
    from ..session.on_board import limits_on
    from ..session.planning import space_of

    return write_t1(spec, space_of(spec, gpu), limits_on(gpu), path, overwrite=True, receipt=receipt)


def export_json(choice: Choice) -> str:
    """Everything known of the choice: each figure with its unit and source. Figures that are not known are null."""
    m, plan, stands = choice.measurement, choice.plan, choice.receipt.standing
    place = [stands.rank, stands.of] if stands is not None and stands.rank is not None else None
    document = {
        "wattridge": {"version": __version__, "written": datetime.now(UTC).isoformat(timespec="seconds")},
        "provenance": choice.provenance,
        "kernel": plan.title,
        "session": choice.session,
        "gpu": plan.gpu,
        "driver": plan.driver or None,
        "source": choice.source,
        "board": m.board or None,
        "origin": dict(plan.origin),
        "objective": str(plan.objective),
        "choice": {"rule": choice.receipt.rule, "measurement": choice.number, "place": place},
        "receipt": document_of(choice.receipt),
        "own_state": as_json(choice.own_state),
        "strategy": plan.strategy,
        "seed": plan.seed,
        "state": m.state.value,
        "depth": m.depth.value,
        "error": m.error or None,
        "message": m.message or None,
        "configuration": dict(m.configuration),
        "parameters": choice.parameters,
        "device_settings": {
            name: {"value": value, "unit": unit_of(name, choice.plan.units)}
            for name, value in choice.device_settings.items()
        },
        "values": {name: _figure(choice, name, value) for name, value in m.values.items()},
        "observed_clock_mhz": finite_or_none(m.observed_clock_mhz),
        "event_reasons": list(reason_names(m.event_reasons)),
        "power_source": m.power_source or None,
        "window_s": (m.window_ns[1] - m.window_ns[0]) / 1e9 if m.window_ns else None,
        "measured_at": _time(m.timestamp_s),
        "cost_s": finite_or_none(m.cost_s),
        "launch": choice.kernel.facts() if choice.kernel is not None and choice.maker == OURS else None,
        "machine_code": _code_facts(choice),
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def export_header(choice: Choice) -> str:
    """The kernel's parameters as #defines, clocks and figures as comments."""
    plan, remarks = choice.plan, _remarks(choice)
    parameters = {} if choice.maker in (CUBLASLT, LIBRARY) else choice.parameters  # compiled with none
    apart = {*OF_LAUNCHES, *((MAKER, ALGORITHM) if "operator" in plan.origin else ())}
    own = {name: value for name, value in parameters.items() if name not in apart}
    declared = library_declaration if choice.maker == CUBLASLT else CudaFile.declaration
    return c_header(plan.title, own, remarks, declared(choice.kernel) if choice.kernel else ())


def export_source(choice: Choice) -> str:
    """The kernel with the configuration's values, and a function that launches it."""
    assert choice.kernel is not None, "it was looked for"
    return choice.kernel.source(_remarks(choice))


def export_code(choice: Choice) -> str:
    """The machine code that was measured, or the library's algorithm, and a function that launches it."""
    assert choice.kernel is not None, "it was looked for"
    if choice.maker == CUBLASLT:
        return library_source(choice.kernel, choice.plan.origin, _remarks(choice))
    assert choice.code is not None, "it was looked for"
    return code_source(choice.kernel, choice.code, _remarks(choice))


def export_python(choice: Choice) -> str:
    """A module for PyTorch, of what a library or Triton has."""
    return script(choice.maker, choice.plan.origin, choice.parameters, _remarks(choice))


def export_script(choice: Choice) -> str:
    """A POSIX shell script that sets the clocks or the cap with nvidia-smi, and puts them back."""
    remarks = [
        f"Written by Wattridge {__version__}: clocks of {choice.plan.title}, {choice.how}.",
        choice.of_figures,
        *choice.receipt.lines,
    ]
    if choice.source == "amd":
        remarks.append("nvidia-smi does not set this board; wattridge apply does:")
        remarks += [f"{name} = {value}" for name, value in choice.device_settings.items()]
        return clock_script({}, remarks)
    return clock_script(choice.device_settings, remarks)


def _remarks(choice: Choice) -> list[str]:
    """What stands above a configuration's macros: where they come from, and what was measured."""
    plan = choice.plan
    figures = [f"{name} = {value:.6g} {unit_of(name, choice.plan.units)}".strip() for name, value in _figures(choice)]
    settings = [f"Device setting: {name} = {value}" for name, value in choice.device_settings.items()]
    launched = {name: choice.parameters[name] for name in OF_LAUNCHES if name in choice.parameters}
    settings += [f"Of its launches: {name} = {value}" for name, value in launched.items()]
    compiler = plan.origin.get("compiler") if choice.maker == OURS else None
    return [
        f"Written by Wattridge {__version__}: a configuration of {plan.title}, {choice.how}.",
        choice.of_figures,
        *(
            [f"It was measured as compiled by {compiler}; another compiler's code may be faster or slower."]
            if compiler
            else []
        ),
        *_of_the_code(choice),
        *_against(choice),
        *choice.receipt.lines,
        *settings,
        *figures,
    ]


def _against(choice: Choice) -> tuple[str, ...]:
    """What it costs and saves, and what locks of clocks cost by themselves."""
    locks = choice.own_state.remarks if choice.own_state is not None else ()
    stands = choice.receipt.standing.sentences if choice.receipt.standing is not None else ()
    return (*stands, *(f"{words[:1].upper()}{words[1:]}." for words in locks))


def _kernel_of(choice: Choice) -> CudaFile | None:
    """The kernel of a choice; None if it has no file of source that is as it was, or is not launched by a function."""
    if choice.maker in (TRITON, LIBRARY):
        return None
    spec = load_specification(Path(choice.plan.origin["file"]))
    if spec.kernel is None or spec.kernel.language != "CUDA" or not spec.kernel.sources:
        return None
    if not are_as_measured(spec, choice.plan.origin):
        return None
    with suppress(KernelRefused, InputError):
        file = CudaFile.of(spec, choice.parameters, _limits_of(choice.plan))
        return library_file(file) if choice.maker == CUBLASLT else file
    return None


def _with_code(choice: Choice, *, beside_nvcc: bool) -> Choice:
    """With the machine code that was measured, and with what nvcc makes of the source, which takes a second."""
    kernel, compiler = choice.kernel, choice.plan.origin.get("compiler")
    if kernel is None or compiler is None or choice.maker != OURS:
        return choice
    code = measured_code(kernel.prepared.build, kernel.prepared.launch.name, compiler)
    if code is None or not beside_nvcc:
        return replace(choice, code=code)
    options = kernel.prepared.build.options
    return replace(choice, code=code, by_nvcc=by_nvcc(export_source(choice), options, code))


def _of_the_code(choice: Choice | None) -> list[str]:
    """Whether who builds the source has what was measured, or who made it."""
    if choice is None:
        return []
    if choice.maker != OURS:
        return remarks_on(choice.maker, choice.plan.origin, choice.parameters)
    stem, code, other = file_stem(choice.plan.title), choice.code, choice.by_nvcc
    lines = []
    if other is not None and other.same:
        lines.append(f"{other.version} makes the same machine code of {stem}{KINDS['source']}.")
    elif other is not None:
        has = f"{stem}{KINDS['code']} has what was measured"
        lines.append(f"{other.version} makes other machine code of {stem}{KINDS['source']}; {has}.")
    elif code is not None:
        lines.append(f"{stem}{KINDS['code']} has the machine code that was measured.")
    if code is not None and code.again:
        lines.append("The machine code is no longer kept: the same compiler made it again for this export.")
    elif code is None and choice.kernel is not None and choice.plan.origin.get("compiler"):
        lines.append(f"The machine code is not here: {_why_no_code(choice)}.")
    return lines


def _why_no_code(choice: Choice | None) -> str:
    compiler = None if choice is None else choice.plan.origin.get("compiler")
    if choice is None or choice.kernel is None:
        return _NO_SOURCE
    return f"it is no longer kept, nor is {compiler} here" if compiler else "nothing was compiled in this session"


def _code_facts(choice: Choice) -> dict[str, Any] | None:
    code, other = choice.code, choice.by_nvcc
    if code is None:
        return None
    return {
        "compiler": code.compiler,
        "kernel": code.kernel,
        "sha256": code.sha256,
        "made_again": code.again,
        "nvcc": None if other is None else {"version": other.version, "same": other.same},
    }


def _limits_of(plan: SessionPlan) -> DeviceLimits:
    """Of the session's board where it is there, else those usual for its compute capability, or for 8.0."""
    from ...sensors.select import open_gpu
    from ..session.on_board import limits_on

    with suppress(WattridgeError), closing(open_gpu(plan.origin.get("gpu"), speed=math.inf)) as gpu:
        return limits_on(gpu)
    capability = capability_of(plan.origin.get("compiler", ""))
    return limits_on(None) if capability is None else limits_of(capability)


_CHOICES = {
    "json": export_json,
    "header": export_header,
    "source": export_source,
    "code": export_code,
    "python": export_python,
    "script": export_script,
}
_SESSIONS = {"csv": write_csv, "cache": write_cache, "t4": write_t4}


def _name(title: str, kind: str) -> str:
    """Of a file of an export; that of a module can be imported."""
    stem = file_stem(title)
    return f"{identifier(stem) if kind == 'python' else stem}{KINDS[kind]}"


def file_stem(title: str) -> str:
    """A file name that every system takes."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", title).strip("-._")[:60] or "session"


def refuse_foreign(
    path: Path, marks: Sequence[str] = _OURS, remedy: str = "choose another folder, or move the file"
) -> None:
    """Raises WattridgeError if a file lies that this program did not write: one that has none of the marks."""
    if not is_there(path):
        return
    try:
        with open_input(path) as file:
            head = file.read(65536).decode("utf-8", errors="replace")
    except OSError as error:
        raise WattridgeError(f"cannot be replaced: {error.strerror}", str(path), remedy) from None
    if not any(mark in head for mark in marks):
        raise WattridgeError("a file of another origin is there", str(path), remedy)


def _figures(choice: Choice) -> list[tuple[str, float]]:
    return [(name, value) for name, value in choice.measurement.values.items() if math.isfinite(value)]


def _figure(choice: Choice, name: str, value: float) -> dict[str, Any]:
    interval = choice.measurement.intervals.get(name)
    return {
        "value": finite_or_none(value),
        "unit": unit_of(name, choice.plan.units) or None,
        "interval_95": [finite_or_none(end) for end in interval] if interval else None,
        "source": _source(choice, name),
        **({"as_measured": measured} if (measured := choice.measurement.as_measured.get(name)) is not None else {}),
    }


def _source(choice: Choice, name: str) -> str:
    """Where one figure comes from."""
    if choice.source == "recorded":
        of_power = re.search("energy|power|watt", name.lower())
        meter = choice.measurement.power_source or "meter not known"
        return f"replayed from a recording ({meter})" if of_power else "replayed from a recording"
    simulated = "simulated, " if choice.source == "simulated" else ""
    by = f"{simulated}measured by {choice.measurement.power_source or 'the power sensor'}"
    if name in ("energy_raw_j", "power_raw_w", PEAK_POWER):
        return f"{by}, as drawn"
    if name in ("energy_j", "power_w") and "thermal_correction" in choice.measurement.values:
        condition = choice.plan.origin.get("condition")
        return f"{by}, stated for {condition}" if condition else f"{by}, corrected for the temperature"
    if name not in (*MEASURED, THROTTLED_SHARE):
        return f"{simulated}computed from the measured values"
    if name in ("energy_j", "power_w", "memory_power_w", "recent_power_1s_w", "recent_power_30s_w"):
        return by
    return f"{simulated}measured by {'launch events' if name == 'time_s' else 'the board'}"


def _time(seconds: float) -> str | None:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds") if math.isfinite(seconds) else None

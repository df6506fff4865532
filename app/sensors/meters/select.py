"""Which meter: `--meter`, a specification's `[metering]` and the window's wizard."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple, cast

from ...base.errors import InputError
from ...base.plugins import call, plugins
from ..gpu import Gpu
from . import ina, pm_counters, pmt, powersensor2, powersensor3, printed, rapl, simulated
from .meter import PowerMeter
from .serial_port import find_ports

FORMS: Final = (
    "powersensor3:PORT, powersensor2:PORT, pm_counters[:PART], rapl, ina[:RAIL], pmt:NAME[:DEVICE], "
    "command:PROGRAM, file:PATH"
)
_ARDUINO: Final = ("arduino", "leonardo", "genuino")


class FoundMeter(NamedTuple):
    """A meter that may be here: how to open it, in words what it is."""

    selector: str
    label: str


def open_meter(selector: str, gpu: Gpu) -> PowerMeter:
    """Open a meter beside a board: powersensor3:PORT and the others of `FORMS`, or simulated[:GAIN] on a simulated one.

    Raises InputError that names what there is, and SensorError if it does not answer.
    """
    kind, _, rest = selector.strip().partition(":")
    kind, rest = kind.strip().lower(), rest.strip()
    if kind == simulated.KIND:
        return simulated.SimulatedMeter.beside(gpu, rest)
    if gpu.clock.speed != 1.0 or gpu.info.source == "recorded":
        what = "a meter measures in real time, and this board does not live in it"
        raise InputError(what, gpu.info.label, "choose --speed 1, or another board")
    if kind == powersensor3.KIND:
        return powersensor3.PowerSensor3(_port(rest, kind))
    if kind == powersensor2.KIND:
        return powersensor2.PowerSensor2(_port(rest, kind))
    if kind == pm_counters.KIND:
        folder, _, part = rest.rpartition("/")
        return pm_counters.PmCounters(part, Path(folder)) if folder else pm_counters.PmCounters(rest)
    if kind == rapl.KIND:
        return rapl.Rapl(Path(rest)) if rest else rapl.Rapl()
    if kind == ina.KIND:
        return ina.Ina(rest)
    if kind == pmt.KIND:
        return pmt.Pmt(rest)
    if kind == printed.COMMAND:
        return printed.command_meter(rest)
    if kind == printed.FILE:
        return printed.file_meter(Path(rest).expanduser())
    if kind in plugins("meters"):
        return cast(PowerMeter, call("meters", kind, rest))
    more = "".join(f", {name}" for name in plugins("meters"))
    raise InputError(f"'{selector}' names no meter", "--meter", f"one of {FORMS}{more}")


def find_meters(gpu: Gpu | None = None) -> list[FoundMeter]:
    """The meters that seem to be here; nothing is opened for it. A port may hold another device than a meter."""
    results = []
    for port in find_ports():
        product = port.product or "USB serial device"
        kind = powersensor2.KIND if any(name in product.lower() for name in _ARDUINO) else powersensor3.KIND
        results.append(FoundMeter(f"{kind}:{port.path}", f"{product} on {port.path}"))
    for part in pm_counters.parts_of():
        results.append(FoundMeter(f"{pm_counters.KIND}:{part}", f"Cray pm_counters, {part}"))
    if rapl.zones():
        results.append(FoundMeter(rapl.KIND, "RAPL of the host's processors"))
    if names := [rail.name for rail in ina.rails()]:
        for total in dict.fromkeys((ina.default_total(names), *names, ina.SUM)):
            results.append(FoundMeter(f"{ina.KIND}:{total}", ina.words(total, names)))
    if pmt.seems_installed():
        results.append(FoundMeter(f"{pmt.KIND}:rapl", "PMT, if the installed package of that name is ASTRON's"))
    results += [FoundMeter(name, "brought by another package") for name in plugins("meters")]
    if gpu is not None and gpu.info.source == "simulated":
        results.append(FoundMeter(simulated.KIND, f"a simulated meter beside the {gpu.info.name}"))
    return results


def _port(rest: str, kind: str) -> str:
    if rest:
        return rest
    there = find_ports()
    if len(there) != 1:
        names = ", ".join(port.path for port in there) or "none"
        raise InputError("no port is named", f"--meter {kind}:", f"as in {kind}:/dev/ttyACM0; ports here: {names}")
    return there[0].path

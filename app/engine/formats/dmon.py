"""The text of `nvidia-smi dmon` as columns with the names and units of `nvidia-smi --query-gpu`."""

from __future__ import annotations

from collections.abc import Mapping

READING = "reading"  # the column instead of the time, where that is unknown
_NAMES = {  # dmon's heading -> what the query calls it
    "gpu": "index",
    "pwr": "power.draw",
    "gtemp": "temperature.gpu",
    "mtemp": "temperature.memory",
    "sm": "utilization.gpu",
    "mem": "utilization.memory",
    "mclk": "clocks.current.memory",
    "pclk": "clocks.current.graphics",
}
_UNITS = {"W": " [W]", "MHz": " [MHz]", "%": " [%]"}


def is_dmon(text: str) -> bool:
    """Whether the text begins as the tool's does: '# gpu ...', or with the date and time before it."""
    first = text.lstrip()[:80].split("\n", 1)[0]
    words = first.lstrip("#").split()
    return first.startswith("#") and "gpu" in words[:3] and len(words) > 1


def dmon_columns(text: str) -> Mapping[str, list[str]]:
    """Cells by column; '-' stands for what is not known. Lines that are cut off are left out."""
    lines = text.splitlines()
    header = [line.lstrip("# ").split() for line in lines if line.startswith("#")]
    units = header[1] if len(header) > 1 and len(header[1]) == len(header[0]) else [""] * len(header[0])
    names = [_NAMES.get(name, name.lower()) + _UNITS.get(unit, "") for name, unit in zip(header[0], units, strict=True)]
    rows = [cells for line in lines if not line.startswith("#") and len(cells := line.split()) == len(names)]
    columns = {name: [row[at] for row in rows] for at, name in enumerate(names)}
    if "date" in columns and "time" in columns:
        stamps = [f"{day} {time}" for day, time in zip(columns.pop("date"), columns.pop("time"), strict=True)]
        return {"timestamp": stamps, **columns}
    return {READING: _counted(columns.get("index", [])), **columns}


def _counted(boards: list[str]) -> list[str]:
    """The number of each reading of its board: the tool does not write how far they are apart."""
    count: dict[str, int] = {}
    numbers = []
    for board in boards:
        count[board] = count.get(board, -1) + 1
        numbers.append(str(count[board]))
    return numbers

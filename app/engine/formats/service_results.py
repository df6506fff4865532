"""The results of benchmarks of a server, each run under one set of names: vLLM, SGLang, guidellm, AIPerf, genai-perf.

The names are those of `service_figures`, latencies in s; the tools' are in `resources/serving_benchmarks.toml`. A rate
is tokens over time, and where a file says another one, a note says so: guidellm leaves out the time to the first token,
and its window may end after the last request.
"""

from __future__ import annotations

import csv
import math
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import numpy as np

from ...base.files import byte_chunks, read_text
from ...base.json_rows import flattened
from ...base.paths import resources
from ...base.text import json_or_none
from ...base.vocabulary import PATTERNS
from ..results.measurement import Value
from .cells import NUMBER
from .entries import as_number
from .headings import Column, Role, by_itself
from .sheet import main_column

_TABLE: Final = tomllib.loads((resources() / "serving_benchmarks.toml").read_text(encoding="utf-8"))
_SETTINGS: Final[Mapping[str, Sequence[str]]] = _TABLE["settings"]
_KNOWN: Final = [key for keys in (*_SETTINGS.values(), _TABLE["model"]) for key in keys]
_NO_SETTING: Final = re.compile("|".join((*_TABLE["measured"], *_KNOWN)))
_PARALLEL: Final = [name for name in _SETTINGS if name.endswith("_parallelism")]
_BEGINNING: Final = 65536  # bytes
_TELLING: Final = re.compile("|".join(_TABLE["telling"]))
_STATISTIC: Final = rf"({'|'.join(_TABLE['statistics'])}|p50|p9\d(?:\.\d+)?)"
_LATENCY: Final = re.compile(
    rf"(?:{_STATISTIC}_)?({'|'.join(_TABLE['latencies'])})(_ms)?(?:\.successful)?(?:\.(?:percentiles\.)?{_STATISTIC})?"
)
_FORMAT, _IN_NAME, _POWER = (re.compile(_TABLE[name], re.IGNORECASE) for name in ("format", "in_name", "power"))
Flat = Mapping[str, Any]
Settings = dict[str, Value]
Times = tuple[float, float, bool]  # beginning and end, and whether they name a time zone
_Drawn = tuple[dict[str, float], tuple[str, ...]]
_MEASURED: Final = (Role.ENERGY, Role.POWER)
_LEAST_W, _MOST_W = 5.0, 1e6  # that a service draws
_OFF: Final = 0.05  # share by which a rate may differ from tokens over time


@dataclass(frozen=True, slots=True)
class ServedRun:
    """One run of a benchmark: what was set, what was measured, and when. What is not known is NaN, or is not there."""

    path: Path
    tool: str
    model: str  # without the format of its numbers
    settings: Mapping[str, Value]
    figures: Mapping[str, float]
    tokens: tuple[float, float]  # of all prompts, and of all answers
    start_s: float  # since the epoch
    end_s: float
    zoned: bool  # False: written without a time zone, and taken for this machine's
    boards: int  # that the parallelism needs; 0: it is not said
    watts: Mapping[str, float] = field(default_factory=dict)  # the mean power of each board, where the file holds it
    is_of_all: bool = False  # `watts` is the power of the whole service, by a key of the file
    said: tuple[str, ...] = ()  # what the user should know


def is_served(path: Path) -> bool:
    """Whether a file begins as the result of a known benchmark of a server. Raises InputError if it cannot be read."""
    begun = next(byte_chunks(path), b"")[:_BEGINNING] if path.is_file() else b""
    return _TELLING.search(begun.decode("utf-8", "replace").lstrip("\ufeff \r\n\t")) is not None


def served_runs(path: Path) -> list[ServedRun]:
    """Read the runs in a file; none if it is no result of a known benchmark. Raises InputError."""
    text = read_text(path).lstrip() if is_served(path) else ""
    whole = json_or_none(text) if text[:1] in ("{", "[") else {"benchmarks": list(_rows_of_csv(text))}
    items = map(json_or_none, text.splitlines()) if whole is None else whole if isinstance(whole, list) else [whole]
    found: list[ServedRun | None] = []
    for item in items:
        if isinstance(item, dict) and "benchmarks" in item:
            found += [_of_guidellm(path, each, item) for each in _objects(item, "benchmarks")]
        elif isinstance(item, dict):
            found.append((_of_aiperf if isinstance(item.get("request_latency"), dict) else _of_vllm)(path, item))
    return [run for run in found if run is not None]


def _of_vllm(path: Path, item: dict[str, Any]) -> ServedRun | None:
    """A result of `vllm bench serve`, of its script before, or of SGLang's, with what the server was started with."""
    server = _object(item, "server_info")
    told = [each for kind in ("prefill", "decode") for each in _objects(server, kind)] or [server]
    said = {key: v for key, v in item.items() if not isinstance(v, dict | list) and key != "concurrency"}  # observed
    flat = {**dict(flattened({"server": told[0]})), **said}
    figures = {key: as_number(v) for key, v in flattened({**item, "server_info": None}) if as_number(v) > 0}
    measured = {key: by_itself(key, np.array([v])) for key, v in figures.items()}
    own = {key: _value(v) for key, v in said.items() if v is not None and not _NO_SETTING.fullmatch(key)}
    own = {key: v for key, v in own.items() if key not in measured or measured[key].role not in _MEASURED}
    boards = sum(_boards_of(_settings(dict(flattened(each)))) for each in told)
    end_s, zoned = _time(said.get("date"), "%Y%m%d-%H%M%S")  # written once the run has ended
    times = (end_s - as_number(said.get("duration")), end_s, zoned)
    tool = "SGLang" if server or "total_throughput" in said or "sglang" in str(said.get("backend")) else "vLLM"
    run = _run(path, tool, flat, {**_settings(flat), **own}, times, boards=boards)
    watts, doubts = _drawn(measured.values(), figures, run.boards if run else 0)
    return run and replace(run, watts=watts, is_of_all=bool(watts), said=(*run.said, *doubts))


def _drawn(columns: Collection[Column], figures: Mapping[str, float], boards: int) -> _Drawn:
    """The mean power of a service in W by the energy of its run or a power in the file, and what is not certain."""
    doubts: list[str] = []
    watts: dict[str, float] = {}
    for role, over_s in ((Role.ENERGY, figures.get("duration", math.nan)), (Role.POWER, 1.0)):
        if (column := main_column(columns, role)) is None:
            continue
        key, of_one = column.heading, PATTERNS["of_one_board"].search(column.heading) is not None
        scale = (1.0 if math.isnan(column.scale) else column.scale) * (max(boards, 1) if of_one else 1)
        watt = figures[key] * scale / over_s
        if not _LEAST_W < watt < _MOST_W:
            doubts.append(f"'{key}' of the file is not read: as of the whole run it would be {watt:.3g} W")
            continue
        watts[key] = watt
        if of_one:
            number = f": it is taken times {boards}" if boards else ", and how many there were is not said"
            doubts.append(f"'{key}' is of one board{number}")
        elif boards > 1 and "total" not in column.words:
            doubts.append(f"'{key}' is taken for that of all boards: it is not certain, it may be of one")
    if watts and max(watts.values()) > (1 + _OFF) * min(watts.values()):
        doubts.append(f"the file says {' and '.join(f'{watt:.4g} W by {key}' for key, watt in watts.items())}")
    return dict(list(watts.items())[:1]), tuple(doubts)


def _of_aiperf(path: Path, item: dict[str, Any]) -> ServedRun | None:
    """An export of AIPerf, or of genai-perf before it, which knows neither times nor totals."""
    config = _object(item, "input_config")
    flat = dict(flattened({key: value for key, value in item.items() if key not in ("input_config", "telemetry_data")}))
    tool = "AIPerf" if "benchmark_duration.avg" in flat else "genai-perf"
    count, rate = (as_number(flat.get(f"{name}.avg")) for name in ("request_count", "request_throughput"))
    for total, each in (("total_isl.avg", "input"), ("total_osl.avg", "output")):
        flat[total] = flat.get(total) or as_number(flat.get(f"{each}_sequence_length.avg")) * count
    flat["benchmark_duration.avg"] = flat.get("benchmark_duration.avg") or count / (rate or math.nan)
    names = config.get("model_names") or _object(config, "endpoint").get("model_names")
    flat["model"] = names[0] if isinstance(names, list) and names else ""
    stamps = [as_number(flat.get(f"{name}.avg")) for name in ("min_request_timestamp", "max_response_timestamp")]
    start_s, zoned = (stamps[0] / 1e9, True) if min(stamps) > 0 else _time(item.get("start_time"))
    end_s = stamps[1] / 1e9 if min(stamps) > 0 else start_s + as_number(flat["benchmark_duration.avg"])
    watts: dict[str, float] = {}
    for place, metrics in (_object(item, "telemetry_data", "endpoints") or {"": item.get("telemetry_stats")}).items():
        named = ((_POWER.fullmatch(key), as_number(value)) for key, value in flattened(metrics))
        watts |= {f"{place} {name[1] or name[2]}".strip(): watt for name, watt in named if name and watt > 0}
    return _run(path, tool, flat, _settings(dict(flattened(config))), (start_s, end_s, zoned), watts=watts)


def _of_guidellm(path: Path, item: dict[str, Any], report: Flat) -> ServedRun | None:
    """A benchmark of guidellm: the successful requests of its measured window, which ends with the last of them."""
    window = _object(item, "scheduler_metrics")
    start_s, zoned = _time(window.get("measure_start_time", item.get("start_time")))
    end_s = min(_time(window.get(f"{of}_end_time", item.get("end_time")))[0] for of in ("measure", "request"))
    stated_s = as_number(item.get("duration"))
    duration_s = end_s - start_s if zoned or not stated_s > 0 else stated_s
    plain = {key: value for key, value in item.items() if key not in ("metrics", "requests", "profile")}
    flat = dict(flattened({**plain, "arguments": report.get("args")}))
    strategy = {key.rpartition(".")[2]: value for key, value in flat.items() if re.search(r"(^|\.)strategy\.\w+$", key)}
    settings = _settings({key: value for key, value in strategy.items() if key != "max_concurrency"})
    if (kind := strategy.get("type_")) in ("synchronous", "throughput"):
        settings |= {"concurrency": 1} if kind == "synchronous" else {"request_rate": "inf"}
    flat |= {**dict(flattened(item.get("metrics"))), "duration": duration_s}
    after_s = stated_s - duration_s
    late = f"its duration of {stated_s:.4g} s goes on for {after_s:.4g} s beyond the last request, which are left out"
    said = (late,) if after_s > _OFF * duration_s else ()
    return _run(path, "guidellm", flat, settings, (start_s, end_s, zoned), said=said)


def _run(path: Path, tool: str, flat: Flat, settings: Settings, times: Times, **more: Any) -> ServedRun | None:
    """A run; None where its duration or its tokens are not there."""
    duration_s, given, out, good, bad, stated = (as_number(flat.get(key)) for key in _TABLE["totals"][tool])
    if not duration_s > 0 or not (out >= 0 or stated > 0):
        return None
    model = str(_found(flat, _TABLE["model"]) or "model").rstrip("/")
    model = re.sub(r".*models--(?:[^/]*--)?([^/]+).*|.*/", r"\1", model)  # of a cache's folder, or of an owner
    in_names = _IN_NAME.findall(f"{path.parent.name} {path.stem}")
    settings = {**{_TABLE["in_names"][name.lower()]: int(size) for name, size in in_names}, **settings}
    if "precision" not in settings and (found := _FORMAT.search(model) or _FORMAT.search(path.stem)):
        settings["precision"] = found[1].lower()
    rate = out / duration_s if out >= 0 else stated
    figures = {"output_tokens_per_s": rate, "total_tokens_per_s": rate + given / duration_s}
    figures |= {"requests_per_s": good / duration_s, "duration_s": duration_s, "requests": good, "errors": bad}
    for key, value in flat.items():
        found = _LATENCY.fullmatch(key)
        statistic = found and (found[1] or found[4])
        if found and statistic and as_number(value) > 0:  # it is 0 where answers were not streamed
            unit = flat.get(f"{key.partition('.')[0]}.unit", "ms" if found[3] else "s")
            name = f"{_TABLE['latencies'][found[2]]}_{_TABLE['statistics'].get(statistic, statistic)}_s"
            figures[name] = as_number(value) * (1e-3 if unit == "ms" else 1.0)
    if stated > 0 and abs(rate / stated - 1) > _OFF:
        tokens = f"{out:.0f} in {duration_s:.4g} s are {rate:.4g}, which counts"
        more["said"] = (*more.get("said", ()), f"{tool} writes {stated:.4g} output tokens/s, but {tokens}")
    known = {name: value for name, value in figures.items() if math.isfinite(value)}
    plain = re.sub(r"^meta-|[-_.](?=[-_.]|$)", "", _FORMAT.sub("", model), flags=re.IGNORECASE)
    more["boards"] = more.get("boards") or _boards_of(settings)
    settings.pop("boards", None)
    return ServedRun(path, tool, plain, settings, known, (given, out), *times, **more)


def _settings(flat: Flat) -> Settings:
    """What was set, by our names."""
    found = {name: _found(flat, keys) for name, keys in _SETTINGS.items()}
    if _found(flat, ("enable_dp_attention",)) is True:  # its ranks share the boards of the tensor parallelism
        found["data_parallelism"] = None
    return {name: _value(value) for name, value in found.items() if value is not None}


def _found(flat: Flat, keys: Sequence[str]) -> object:
    """The value under one of these keys, the highest before the deeper, and the first key before the others."""
    parts = ((name.count("."), name.rpartition(".")[2], value) for name, value in flat.items())
    there = [(depth, keys.index(k), v) for depth, k, v in parts if k in keys and v not in (None, "auto", "")]
    return min(there, key=lambda each: each[:2], default=(0, 0, None))[2]


def _value(value: object) -> Value:
    """A number where a text is one, as in `--metadata tp=4`; a rate without a bound is 'inf'."""
    if isinstance(value, str):
        number = float(value) if NUMBER.fullmatch(value) else math.nan
        return int(number) if number.is_integer() else number if math.isfinite(number) else value.strip()[:200]
    return value if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)) else "inf"


def _boards_of(settings: Settings) -> int:
    """How many boards are said, or a parallelism needs; 0 where none is said."""
    names = ["boards"] if "boards" in settings else _PARALLEL
    sizes = [size for name in names if isinstance(size := settings.get(name), int)]
    return math.prod(sizes) if sizes and all(0 < size < 1 << 16 for size in sizes) else 0


def _time(text: object, form: str = "") -> tuple[float, bool]:
    """Seconds since the epoch, and whether a time zone is known; NaN for anything that is no time."""
    if isinstance(text, int | float):
        return as_number(text), True
    try:
        stamp = datetime.strptime(str(text), form) if form else datetime.fromisoformat(str(text)[:40])
        return stamp.timestamp(), stamp.tzinfo is not None
    except (ValueError, OverflowError, OSError):
        return math.nan, False


def _object(item: object, *keys: str) -> dict[str, Any]:
    for key in keys:
        item = item.get(key) if isinstance(item, dict) else None
    return item if isinstance(item, dict) else {}


def _objects(item: object, key: str) -> list[dict[str, Any]]:
    found = item.get(key) if isinstance(item, dict) else None
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _rows_of_csv(text: str) -> Iterator[dict[str, Any]]:
    """Each row of guidellm's CSV, whose heading has three lines, as a benchmark of its JSON."""
    try:
        rows = list(csv.reader(text.splitlines()))
    except csv.Error:  # a cell without an end
        return
    said = _TABLE["guidellm_statistics"]
    names = [" ".join(filter(None, column)) for column in zip(*rows[:3], strict=False)]
    for place, row in enumerate(rows[3:]):
        cells = dict(zip(names, row, strict=False))
        good, bad = (_value(cells.get(f"Request Counts {kind}", "")) for kind in ("Successful", "Errored"))
        metrics: dict[str, Any] = {"request_totals": {"successful": good, "errored": bad}}
        for heading, metric in _TABLE["guidellm_csv"].items():
            mean, median, several = (json_or_none(cells.get(f"{heading} {word}", "")) for word in said["words"])
            found = dict(zip(said["percentiles"], several, strict=False)) if isinstance(several, list) else {}
            total = as_number(mean) * as_number(good)
            metrics[metric] = {"successful": {"mean": mean, "median": median, "total_sum": total, "percentiles": found}}
        done = _objects(json_or_none(cells.get("Run Info Profile", "")), "completed_strategies")
        strategy = done[place] if place < len(done) else {"type_": cells.get("Benchmark Strategy")}
        times = {f"{end}_time": cells.get(f"Timings Measure {end.title()} Time") for end in ("start", "end")}
        config = {"strategy": strategy, "backend": json_or_none(cells.get("Run Info Backend", ""))}
        yield {"metrics": metrics, "config": config, **times, "duration": _value(cells.get("Timings Duration Sec", ""))}

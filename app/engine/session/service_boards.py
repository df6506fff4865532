"""The boards that a service runs on beside the session's own: those of its specification, or of `--gpu 0,1`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace

from ...base.errors import InputError
from ...sensors.gpu import Gpu, GpuInfo, NotSupported
from ...sensors.select import open_gpu
from ..results.measurement import Value
from ..results.settings import WORDS, nearest_supported, why_not_set, with_unit
from ..specification.model import Specification

ORIGIN = "service_boards"  # the fact of a session that names them, where there are several


def on_boards(spec: Specification, selectors: Sequence[str]) -> Specification:
    """The specification of a service that runs on these boards too. Raises InputError for what is no service."""
    if spec.service is None:
        raise InputError("only a service runs on several boards at once", str(spec.path), "name one board")
    boards = tuple(dict.fromkeys((*spec.service.boards, *selectors)))
    return replace(spec, service=replace(spec.service, boards=boards))


def require_boards(spec: Specification, gpu: Gpu, settings: Mapping[str, Sequence[Value]]) -> dict[str, str]:
    """The fact of the session that names its boards, each of which takes the settings; empty for one board.

    Raises InputError for a board that is not there or takes other values, and SensorError.
    """
    selectors = () if spec.service is None else spec.service.boards
    boards = {gpu.info.uuid: {"name": gpu.info.label, "selector": ""}}
    for selector in selectors:
        with closing(open_gpu(selector, voltage=False)) as other:
            boards.setdefault(other.info.uuid, {"name": other.info.label, "selector": selector})
            _require_settings(other, settings, f"{spec.path}: service.boards")
    if len(boards) < 2:
        return {}
    return {ORIGIN: json.dumps([{"uuid": uuid, **facts} for uuid, facts in boards.items()])}


def boards_of_service(origin: Mapping[str, str]) -> list[dict[str, str]]:
    """`uuid`, `name` and `selector` of each board of a session's service, its own first; empty if it has one.

    Raises InputError if the stored list is damaged: measured on one board, it would be another session.
    """
    try:
        listed = json.loads(origin.get(ORIGIN, "[]"))
        return [{key: str(board.get(key, "")) for key in ("uuid", "name", "selector")} for board in listed]
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise InputError("the boards of the session's service cannot be read", ORIGIN, "start a new session") from None


def as_it_ran(spec: Specification, origin: Mapping[str, str]) -> Specification:
    """The specification with the boards that `--gpu` named when the session was made."""
    selectors = [board["selector"] for board in boards_of_service(origin)[1:]]
    return on_boards(spec, selectors) if selectors else spec


def _require_settings(gpu: Gpu, settings: Mapping[str, Sequence[Value]], where: str) -> None:
    """Raises InputError if a board does not take every value just as it is."""
    for name, values in settings.items():
        remedy = "boards that serve together are set alike: choose what all of them take"
        if why := why_not_set(gpu, name):
            raise InputError(f"{_label(gpu.info)}: the {WORDS[name]} cannot be set: {why}", where, remedy)
        for value in map(float, values):
            try:
                taken = nearest_supported(gpu, name, value)[0] == value
            except (InputError, NotSupported):
                taken = False
            if not taken:
                what = f"{_label(gpu.info)} does not take a {WORDS[name]} of {with_unit(name, value)}"
                raise InputError(what, where, remedy)


def _label(info: GpuInfo) -> str:
    return info.label if info.source == "simulated" else f"{info.label} #{info.index}"

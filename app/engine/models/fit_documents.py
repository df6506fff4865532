"""Fits as documents that the store keeps."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from .fit.frequency import Choice, FrequencyFit, MemoryClock, Samples

if TYPE_CHECKING:
    from ..store.database import Store

_DRAWN: Final = {*(field.name for field in dataclasses.fields(Samples)), "curve", "band_mhz", "band_w"}
_UUID: Final = "uuid"  # of the board, beside the figures of the fit


def save_fit(store: Store, fit: FrequencyFit, source: str, session: int | None = None, *, uuid: str = "") -> int:
    """Keep the fit of the board of that UUID in a store; its id there. `source` states what it was fitted to."""
    return store.add_fit(fit.gpu, source, {**fit_to_document(fit), _UUID: uuid}, session)


def latest_fit(
    store: Store, gpu: str, *, simulated: bool | None = None, uuid: str = ""
) -> tuple[FrequencyFit, str] | None:
    """The newest fit of that board, else of one of that name, with its source; None if there is none.

    `simulated` False leaves out those of the simulated board of that name, True those of real ones. A fit that
    cannot be read is passed over; the source of a fit of a board other than `uuid` says so.
    """
    other: tuple[FrequencyFit, str] | None = None
    for text, source in store.fits(gpu):
        with suppress(LookupError, TypeError, ValueError, AttributeError):
            document = json.loads(text)
            fit, board = fit_from_document(document), document.get(_UUID, "")
            if simulated not in (None, fit.simulated):
                continue
            if not uuid or board == uuid:
                return fit, source
            other = other or (fit, f"{source}, of another GPU of this model" if board else source)
    return other


def fit_to_document(fit: FrequencyFit) -> dict[str, Any]:
    """Every figure of a fit, as the store keeps it; arrays become lists."""
    document = {"points": fit.points, **dataclasses.asdict(fit)}
    return {name: v.tolist() if isinstance(v, np.ndarray) else v for name, v in document.items()}


def fit_from_document(document: Mapping[str, Any]) -> FrequencyFit:
    """A fit from its document; an older program kept fewer figures. Raises TypeError or LookupError where damaged."""
    figures: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in document.items()
    }
    arrays = {"used": np.bool_} | dict.fromkeys(_DRAWN - {"used", "curve"}, np.float64)
    figures |= {name: np.asarray(document[name], dtype=kind) for name, kind in arrays.items() if name in document}
    figures["choices"] = tuple(Choice(**item) for item in document.get("choices", ()))
    figures["memory_clocks"] = tuple(MemoryClock(**element) for element in document.get("memory_clocks", ()))
    kept = {field.name for field in dataclasses.fields(FrequencyFit)}
    return FrequencyFit(**{name: value for name, value in figures.items() if name in kept})

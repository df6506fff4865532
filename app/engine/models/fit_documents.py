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
    """Keep a fit in a store.

    Parameters
    ----------
    store : Store
        Where to keep it.
    fit : FrequencyFit
        The fit.
    source : str
        What it was fitted to, in words.
    session : int or None, optional
        Id of the session that it was fitted to; None if to none.
    uuid : str, optional
        UUID of the board; empty if unknown.

    Returns
    -------
    int
        Its id in the store.

    Raises
    ------
    WattridgeError
        If the store can only be read, or cannot be used.
    """
    return store.add_fit(fit.gpu, source, {**fit_to_document(fit), _UUID: uuid}, session)


def latest_fit(
    store: Store, gpu: str, *, simulated: bool | None = None, uuid: str = ""
) -> tuple[FrequencyFit, str] | None:
    """Return the newest fit of a board, else of one of its name.

    A fit that cannot be read is passed over.

    Parameters
    ----------
    store : Store
        Where fits are kept.
    gpu : str
        Name of the board.
    simulated : bool or None, optional
        False leaves out those of the simulated board of that name, True those of real ones; None leaves out none.
    uuid : str, optional
        UUID of the board; empty for any of that name.

    Returns
    -------
    tuple of FrequencyFit and str, or None
        The fit and its source; the source of a fit that is known to be of a board other than `uuid` states that. None
        if there is no fit.

    Raises
    ------
    WattridgeError
        If the store cannot be read.
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
    """Make the document of a fit, as the store keeps it.

    Parameters
    ----------
    fit : FrequencyFit
        The fit.

    Returns
    -------
    dict
        Every figure by name; arrays become lists.
    """
    document = {"points": fit.points, **dataclasses.asdict(fit)}
    return {name: v.tolist() if isinstance(v, np.ndarray) else v for name, v in document.items()}


def fit_from_document(document: Mapping[str, Any]) -> FrequencyFit:
    """Make a fit from its document; an older program kept fewer figures.

    Parameters
    ----------
    document : mapping
        As `fit_to_document` made it.

    Returns
    -------
    FrequencyFit
        The fit. A figure that is missing has its default, where there is one; one that is not known is left out.

    Raises
    ------
    TypeError
        Where the document is damaged: figures are missing or of another kind.
    ValueError
        Where it is damaged: an array holds something other than numbers.
    """
    figures: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in document.items()
    }
    arrays = {"used": np.bool_} | dict.fromkeys(_DRAWN - {"used", "curve"}, np.float64)
    figures |= {name: np.asarray(document[name], dtype=kind) for name, kind in arrays.items() if name in document}
    figures["choices"] = tuple(Choice(**item) for item in document.get("choices", ()))
    figures["memory_clocks"] = tuple(MemoryClock(**element) for element in document.get("memory_clocks", ()))
    kept = {field.name for field in dataclasses.fields(FrequencyFit)}
    return FrequencyFit(**{name: value for name, value in figures.items() if name in kept})

"""Tuning that begins with a file: `tune_cache` answers from a cache, `tune_kernel_T1` runs a tuning problem in T1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..base.errors import InputError
from ..base.files import read_text
from ..base.text import json_or_none
from ..engine.session.load import load_specification
from ..engine.space.expression import parse
from ..engine.specification.model import Specification
from ..engine.workloads.kernel_arguments import Argument, Array, make_array
from .kernel_tuner import tune_kernel
from .stored_results import metadata_document, results_document
from .tuned import FAILURES, Result

_MOST_BYTES: Final = 1 << 30


def read_cache(cachefile: str | Path, open_cache: bool = True) -> dict[str, Any]:
    """A cache in Kernel Tuner's format as it is in the file. The file stays as it is, also with `open_cache`.

    Parameters
    ----------
    cachefile : str or Path
        The cache, which may still grow.
    open_cache : bool, optional
        No effect.

    Returns
    -------
    dict
        The document; under 'cache' the entries, failed ones with an object under `__error__`.

    Raises
    ------
    InputError
        If it is no cache.
    """
    text = read_text(Path(cachefile), _MOST_BYTES).rstrip()
    document = json_or_none(text) or json_or_none(text.rstrip(",") + "}\n}")
    if not isinstance(document, dict) or not isinstance(document.get("cache"), dict):
        raise InputError("it is no cache of Kernel Tuner's", str(cachefile), "name a file that tune_kernel wrote")
    for entry in document["cache"].values():
        found = [FAILURES[value] for value in entry.values() if isinstance(value, str) and value in FAILURES]
        if found:
            entry["__error__"] = found[-1](found[-1].__name__)
    return dict(document)


def tune_cache(
    cache_path: str | Path, restrictions: Sequence[Any] | None = None, **kwargs: Any
) -> tuple[list[Result], Result]:
    """Search the configurations of a cache that worked, answered from it.

    Parameters
    ----------
    cache_path : str or Path
        In Kernel Tuner's format.
    restrictions : sequence or None, optional
        Further ones.
    **kwargs
        As `tune_kernel` has them.

    Returns
    -------
    results : list of dict
        One for each configuration.
    environment : dict
        Of the session.

    Raises
    ------
    InputError
        If it is no cache, or lacks what is needed, and as `tune_kernel` does.
    """
    if not isinstance(restrictions, list | tuple | None):
        raise InputError(f"they are of type {type(restrictions).__name__}", "restrictions", "pass a list")
    document = read_cache(cache_path)
    needed = ("kernel_name", "problem_size", "tune_params", "tune_params_keys")
    if not all(name in document for name in needed) or isinstance(document["problem_size"], str):
        what = "it does not say what was tuned, or the problem size in numbers"
        raise InputError(what, str(cache_path), "call tune_kernel with simulation_mode=True")
    names = list(document["tune_params_keys"])
    worked = {tuple(entry[name] for name in names) for entry in document["cache"].values() if "__error__" not in entry}

    def worked_there(p: Mapping[str, Any]) -> bool:
        return tuple(p[name] for name in names) in worked

    known = {name: document[name] for name in needed[:3]} | {"kernel_source": "", "arguments": [], "lang": "CUDA"}
    return tune_kernel(
        **known | kwargs, restrictions=[*(restrictions or ()), worked_there], cache=cache_path, simulation_mode=True
    )


def tune_kernel_T1(
    input_filepath: str | Path,
    cache_filepath: str | Path | None = None,
    objective: str = "time",
    objective_higher_is_better: bool = False,
    simulation_mode: bool = False,
    output_T4: bool = True,
    iterations: int = 7,
    device: int | str | None = None,
    strategy: Any = None,
    strategy_options: Mapping[str, Any] | None = None,
) -> tuple[Any, Any]:
    """Tune what a file in T1 describes.

    Parameters
    ----------
    input_filepath : str or Path
        The file.
    cache_filepath : str, Path or None, optional
        As `cache` of `tune_kernel`, which has the meaning of the others, too.
    objective, objective_higher_is_better, simulation_mode, iterations : optional
        As there.
    output_T4 : bool, optional
        Return documents in the format T4.
    device : int, str or None, optional
        The board, by number or as `--gpu` names it; without an effect in simulation mode.
    strategy, strategy_options : optional
        In place of the file's. `custom_search_method_path` would run code from a file, and is refused.

    Returns
    -------
    tuple
        Metadata and results as T4 has them; with `output_T4=False` what `tune_kernel` returns.

    Raises
    ------
    InputError
        If the file cannot be used, and as `tune_kernel` does.
    """
    spec = load_specification(Path(input_filepath))
    kernel, options = spec.kernel, dict(strategy_options or {})
    if kernel is None or spec.refused or spec.max_fraction is not None:
        what = spec.refused or ("its budget is a share of the space" if kernel else "it describes no kernel")
        raise InputError(what, str(input_filepath), "name a file with a kernel, and a budget in evaluations or seconds")
    if "custom_search_method_path" in options:
        remedy = "import the class, and pass OptAlgWrapper(YourClass()) as strategy"
        raise InputError("code of a file is not run", "strategy_options: custom_search_method_path", remedy)
    limits = {"max_fevals": spec.max_evaluations, "time_limit": spec.max_seconds}
    if strategy is None:
        strategy, options = spec.strategy, {**spec.strategy_options, **options}
    options = {**{name: value for name, value in limits.items() if value is not None}, **options}
    arrays = [] if simulation_mode else _arrays(spec)
    constants = {a.name: value for a, value in zip(kernel.arguments, arrays, strict=False) if a.memory == "constant"}
    of_kernel: dict[str, Any] = {f"grid_div_{axis}": list(by) for axis, by in kernel.grid_divisors.items()}
    of_kernel |= {"smem_args": {"size": kernel.shared_memory}} if kernel.shared_memory != "0" else {}
    of_kernel |= {"cmem_args": constants or None, "block_size_names": list(kernel.block_size_names)}
    parameters: dict[str, Any] = {**spec.parameters, **spec.device_settings}
    of_kernel |= {"lang": kernel.language, "compiler_options": list(kernel.compiler_options)}
    of_search = {"strategy": strategy, "strategy_options": options, "restrictions": list(spec.restrictions)}
    of_search |= {"objective": objective, "objective_higher_is_better": objective_higher_is_better}
    of_search |= {"gpu": None if device is None or simulation_mode else str(device), "iterations": iterations}
    of_search |= {"cache": cache_filepath, "simulation_mode": simulation_mode, "quiet": True}
    arguments, size = [value if np.ndim(value) else value[()] for value in arrays], tuple(kernel.problem_size)
    results, environment = tune_kernel(
        spec.name, kernel.sources[0], size, arguments, parameters, **of_kernel, **of_search
    )
    if not output_T4:
        return results, environment
    return metadata_document(), results_document(results, objective)


def _arrays(spec: Specification) -> list[Array]:
    """The arguments of its kernel, their shapes those of its first configuration."""
    assert spec.kernel is not None
    scope = {name: values[0] for name, values in spec.parameters.items() if not isinstance(values, str)}
    made = []
    for place, item in enumerate(spec.kernel.arguments):
        sizes = tuple(int(parse(text, f"arguments.{item.name}").number(scope)) for text in item.shape)
        value = parse(item.value, item.name).number(scope) if isinstance(item.value, str) else item.value
        shape = None if value is not None else sizes
        seed = spec.seed if item.seed is None else item.seed
        made.append(make_array(Argument(item.name, item.type, shape, item.fill, value, False, False, seed), place))
    return made

"""`Searchspace` of Kernel Tuner: the valid configurations as tuples, for strategies of a script's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..base.errors import InputError
from ..engine.formats.names import THEIR_SETTINGS
from ..engine.space.build import BLOCK_SIZE_NAMES, build_space
from ..engine.space.search_space import SearchSpace
from ..sensors.limits import limits_of
from .restrictions import filtered, read_restrictions

Config = tuple[Any, ...]
Rows = npt.NDArray[np.int64]
_HOW: Final = ("framework", "solver_method", "build_neighbors_index", "defer_construction")  # no effect here
NEIGHBOURS: Final = ("strictly-adjacent", "adjacent", "Hamming", "Hamming-adjacent", "closest-param-indices")


def require_construction(given: Mapping[str, Any] | None) -> None:
    """Require that options of how a space is built say nothing of what is in it.

    Parameters
    ----------
    given : mapping or None
        Kernel Tuner's `searchspace_construction_options`.

    Raises
    ------
    InputError
        If one does.
    """
    for name, value in (given or {}).items():
        if value and name not in (*_HOW, "neighbor_method"):
            raise InputError(f"{name} is not available here", "searchspace_construction_options", f"leave {name} out")


class Searchspace:
    """Valid configurations in the order of their values. Indices of configurations are places in `list`."""

    def __init__(
        self,
        tune_params: Mapping[str, Sequence[Any]],
        restrictions: Any,
        max_threads: int,
        block_size_names: Sequence[str] = BLOCK_SIZE_NAMES,
        neighbor_method: str | None = None,
        **construction: Any,
    ) -> None:
        """`construction` says how a space is built in Kernel Tuner. Raises InputError for what changes it."""
        require_construction(construction)
        read = read_restrictions(restrictions or None, tuple(tune_params))
        limits = replace(limits_of((8, 0)), max_threads_per_block=int(max_threads))
        space = build_space(tune_params, read.texts, {}, limits, block_size_names=block_size_names, where="Searchspace")
        for name, accepts in read.functions.items():
            space = filtered(space, accepts, name, "Searchspace")
        taken = {parameter.name: parameter.values for parameter in space.parameters}
        self._begin(
            space,
            {name: list(taken[name]) if callable(values) else list(values) for name, values in tune_params.items()},
            np.random.default_rng(),
        )
        self.restrictions, self.neighbor_method = restrictions, neighbor_method

    @classmethod
    def of(cls, space: SearchSpace, rng: np.random.Generator) -> Searchspace:
        """Our space as one of Kernel Tuner's.

        Parameters
        ----------
        space : SearchSpace
            The space; its rows are the indices here.
        rng : numpy.random.Generator
            Draws samples and neighbours.

        Returns
        -------
        Searchspace
        """
        made = cls.__new__(cls)
        made._begin(space, {THEIR_SETTINGS.get(p.name, p.name): list(p.values) for p in space.parameters}, rng)
        made.restrictions, made.neighbor_method = [], None
        return made

    def _begin(self, space: SearchSpace, tune_params: dict[str, list[Any]], rng: np.random.Generator) -> None:
        self.tune_params, self._rng = tune_params, rng
        self.param_names = list(tune_params)
        self.params_values = tuple(map(tuple, tune_params.values()))
        self.num_params, self.size = len(tune_params), space.size
        places = [{value: place for place, value in enumerate(values)} for values in self.params_values]
        columns = [
            np.array([place[value] for value in parameter.values])[space.codes[:, axis]]
            for axis, (parameter, place) in enumerate(zip(space.parameters, places, strict=True))
        ]
        self._places, self._codes = places, np.stack(columns, axis=1).astype(np.int64)
        chosen = (map(values.__getitem__, column) for values, column in zip(self.params_values, columns, strict=True))
        self.list: list[Config] = list(zip(*chosen, strict=True))
        self._index = {config: index for index, config in enumerate(self.list)}
        self._near: dict[tuple[Config, str], Rows] = {}
        self.tune_param_is_numeric_mask = np.array(
            [all(isinstance(v, int | float) and not isinstance(v, bool) for v in vs) for vs in self.params_values]
        )

    def get_list_dict(self) -> dict[Config, int]:
        """The index of each configuration."""
        return self._index

    def sorted_list(self, sort_last_param_first: bool = False) -> list[Config]:
        """The configurations by the places of their values, the first parameter first, or the last.

        Parameters
        ----------
        sort_last_param_first : bool, optional
            Whether the last parameter changes slowest.

        Returns
        -------
        list of tuple
        """
        columns = self._codes if sort_last_param_first else self._codes[:, ::-1]
        return self.get_param_configs_at_indices(np.lexsort(columns.T).tolist())

    def is_param_config_valid(self, param_config: Config) -> bool:
        """Whether a configuration is in the space.

        Parameters
        ----------
        param_config : tuple
            Values of the parameters, in their order.

        Returns
        -------
        bool
        """
        return tuple(param_config) in self._index

    def get_param_config_index(self, param_config: Config) -> int | None:
        """The index of a configuration; None if it is not in the space.

        Parameters
        ----------
        param_config : tuple
            Values of the parameters, in their order.

        Returns
        -------
        int or None
            None if it is not in the space.
        """
        return self._index.get(tuple(param_config))

    def get_param_configs_at_indices(self, indices: Sequence[int]) -> list[Config]:
        """The configurations at indices.

        Parameters
        ----------
        indices : sequence of int
            Places in `list`.

        Returns
        -------
        list of tuple
        """
        return [self.list[index] for index in indices]

    def get_param_indices(self, param_config: Config) -> tuple[int, ...]:
        """The places of a configuration's values in those of their parameters.

        Parameters
        ----------
        param_config : tuple
            Values of the parameters, in their order.

        Returns
        -------
        tuple of int
            One for each parameter.

        Raises
        ------
        ValueError
            For a value that is none of its parameter.
        """
        try:
            return tuple(place[value] for place, value in zip(self._places, param_config, strict=True))
        except KeyError as error:
            raise ValueError(f"{error} is no value of its parameter") from None

    def get_param_config_from_param_indices(self, param_indices: Sequence[int]) -> Config:
        """The configuration whose values are at these places.

        Parameters
        ----------
        param_indices : sequence of int
            One for each parameter.

        Returns
        -------
        tuple
        """
        return tuple(values[place] for values, place in zip(self.params_values, param_indices, strict=True))

    def get_list_param_indices_numpy(self) -> Rows:
        """The places of all values, shape (size, parameters)."""
        return self._codes

    def get_param_indices_lower_bounds(self) -> Rows:
        """The first place of each parameter that occurs."""
        return np.asarray(self._codes.min(axis=0))

    def get_param_indices_upper_bounds(self) -> Rows:
        """The last place of each parameter that occurs."""
        return np.asarray(self._codes.max(axis=0))

    def get_list_numpy_numeric(self) -> npt.NDArray[np.float64]:
        """The values, shape (size, parameters), of what is no number the places."""
        kinds = zip(self.params_values, self.tune_param_is_numeric_mask, self._codes.T, strict=True)
        columns = [np.array(vs, dtype=float)[codes] if numeric else codes for vs, numeric, codes in kinds]
        return np.stack(columns, axis=1).astype(np.float64)

    def get_param_config_from_numeric(self, param_config: Sequence[float]) -> Config:
        """The configuration of a row of `get_list_numpy_numeric`.

        Parameters
        ----------
        param_config : sequence of float
            One for each parameter.

        Returns
        -------
        tuple
        """
        kinds = zip(param_config, self.params_values, self._places, self.tune_param_is_numeric_mask, strict=True)
        return tuple(of[place[value] if numeric else int(value)] for value, of, place, numeric in kinds)

    def order_param_configs(
        self, param_configs: Sequence[Config], order: Sequence[int], randomize_in_params: bool = True
    ) -> list[Config]:
        """Order configurations by the parameter, first of `order`, in which they differ from one of them at random.

        Parameters
        ----------
        param_configs : sequence of tuple
            The configurations.
        order : sequence of int
            The place of each parameter, in the order in which they count.
        randomize_in_params : bool, optional
            Shuffle those that differ first in the same parameter, as Kernel Tuner says and does not do.

        Returns
        -------
        list of tuple
            All of them, that one first.

        Raises
        ------
        InputError
            If `order` does not name each parameter once.
        """
        if sorted(order) != list(range(self.num_params)):
            raise InputError(
                f"{list(order)} names not every parameter once", "order_param_configs", "give places from 0"
            )
        mixed = [param_configs[place] for place in self._rng.permutation(len(param_configs))]
        first = {each: next((n for n, i in enumerate(order) if each[i] != mixed[0][i]), -1) for each in mixed}
        return sorted(mixed if randomize_in_params else param_configs, key=first.__getitem__)

    def get_true_tunable_params(self) -> dict[str, list[Any]]:
        """The parameters that take several values."""
        varies = self.get_param_indices_lower_bounds() < self.get_param_indices_upper_bounds()
        return {name: self.tune_params[name] for name, so in zip(self.param_names, varies, strict=True) if so}

    def get_random_sample_indices(self, num_samples: int) -> Rows:
        """So many different indices.

        Parameters
        ----------
        num_samples : int
            How many.

        Returns
        -------
        array, shape (num_samples,)
            Places in `list`.

        Raises
        ------
        ValueError
            If there are fewer.
        """
        if num_samples > self.size:
            raise ValueError(
                f"the number of samples requested ({num_samples}) is greater than the searchspace size ({self.size})"
            )
        return np.asarray(self._rng.permutation(self.size)[:num_samples])

    def get_random_sample(self, num_samples: int) -> list[Config]:
        """So many different configurations, or all.

        Parameters
        ----------
        num_samples : int
            How many.

        Returns
        -------
        list of tuple
        """
        drawn = self.get_random_sample_indices(min(num_samples, self.size))
        return self.get_param_configs_at_indices(drawn.tolist())

    def get_LHS_sample_indices(self, num_samples: int, sampling_factor: int = 1) -> list[int]:
        """So many different indices, or all, nearest to the points of a Latin hypercube.

        Parameters
        ----------
        num_samples : int
            How many.
        sampling_factor : int, optional
            No effect.

        Returns
        -------
        list of int
            Places in `list`.
        """
        low, high = self.get_param_indices_lower_bounds(), self.get_param_indices_upper_bounds()
        count = min(num_samples, self.size)
        strata = np.stack([self._rng.permutation(count) for _ in low], axis=1)
        points = low + (high - low) * (strata + self._rng.random(strata.shape)) / count
        drawn = dict.fromkeys(int(np.abs(self._codes - point).sum(axis=1).argmin()) for point in points)
        return list(drawn | dict.fromkeys(self._rng.permutation(self.size).tolist()))[:count]

    def get_LHS_sample(self, num_samples: int, sampling_factor: int = 1) -> list[Config]:
        """The configurations of such a sample.

        Parameters
        ----------
        num_samples : int
            How many.
        sampling_factor : int, optional
            No effect.

        Returns
        -------
        list of tuple
        """
        return self.get_param_configs_at_indices(self.get_LHS_sample_indices(num_samples))

    get_distributed_random_sample_indices, get_distributed_random_sample = get_LHS_sample_indices, get_LHS_sample

    def get_neighbors_indices_no_cache(self, param_config: Config, neighbor_method: str | None = None) -> Rows:
        """The indices of a configuration's neighbours; it need not be in the space itself.

        'Hamming': one other value; 'strictly-adjacent': at most one place away in each parameter; 'adjacent': no
        further away in any than the nearest place that occurs; 'Hamming-adjacent': both; 'closest-param-indices': the
        fewest places away in sum.

        Parameters
        ----------
        param_config : tuple
            Values of the parameters, in their order.
        neighbor_method : str or None, optional
            One of `NEIGHBOURS`; None for that of the space.

        Returns
        -------
        array, shape (n,)
            Places in `list`, ascending.

        Raises
        ------
        ValueError
            For another method.
        """
        method = neighbor_method or self.neighbor_method
        if method not in NEIGHBOURS:
            raise ValueError(f"neighbor_method is {method}, one of {', '.join(NEIGHBOURS)} is needed")
        step = self._codes - np.array(self.get_param_indices(param_config))
        apart = step != 0
        near = apart.any(axis=1)
        if method.startswith("Hamming"):
            near &= apart.sum(axis=1) == 1
        if method == "strictly-adjacent":
            near &= (np.abs(step) <= 1).all(axis=1)
        elif method == "closest-param-indices":
            total = np.abs(step).sum(axis=1)
            near &= total == total[near].min(initial=total.max())
        elif method != "Hamming":
            among, most = step[near], max(map(len, self.params_values))
            above = np.where(among > 0, among, most).min(axis=0, initial=most)
            below = np.where(among < 0, among, -most).max(axis=0, initial=-most)
            near &= ((step >= below) & (step <= above)).all(axis=1)
        return np.flatnonzero(near)

    def get_neighbors_indices(self, param_config: Config, neighbor_method: str | None = None) -> Rows:
        """The same, which are kept.

        Parameters
        ----------
        param_config : tuple
            Values of the parameters, in their order.
        neighbor_method : str or None, optional
            One of `NEIGHBOURS`; None for that of the space.

        Returns
        -------
        array, shape (n,)
            Places in `list`, ascending.
        """
        key = (tuple(param_config), str(neighbor_method or self.neighbor_method))
        if key not in self._near:
            self._near[key] = self.get_neighbors_indices_no_cache(param_config, neighbor_method)
        return self._near[key]

    def are_neighbors_indices_cached(self, param_config: Config, neighbor_method: str | None = None) -> bool:
        """Whether these are kept already.

        Parameters
        ----------
        param_config : tuple
            Values of the parameters, in their order.
        neighbor_method : str or None, optional
            One of `NEIGHBOURS`; None for that of the space.

        Returns
        -------
        bool
        """
        return (tuple(param_config), str(neighbor_method or self.neighbor_method)) in self._near

    def get_neighbors_no_cache(self, param_config: Config, neighbor_method: str | None = None) -> list[Config]:
        """The neighbours of a configuration.

        Parameters
        ----------
        param_config : tuple
            Values of the parameters, in their order.
        neighbor_method : str or None, optional
            One of `NEIGHBOURS`; None for that of the space.

        Returns
        -------
        list of tuple
        """
        near = self.get_neighbors_indices_no_cache(param_config, neighbor_method)
        return self.get_param_configs_at_indices(near.tolist())

    def get_neighbors(self, param_config: Config, neighbor_method: str | None = None) -> list[Config]:
        """The neighbours of a configuration, which are kept.

        Parameters
        ----------
        param_config : tuple
            Values of the parameters, in their order.
        neighbor_method : str or None, optional
            One of `NEIGHBOURS`; None for that of the space.

        Returns
        -------
        list of tuple
        """
        return self.get_param_configs_at_indices(self.get_neighbors_indices(param_config, neighbor_method).tolist())

    def get_random_neighbor(self, param_config: Config, neighbor_method: str | None = None) -> Config | None:
        """One of the neighbours; None if there are none.

        Parameters
        ----------
        param_config : tuple
            Values of the parameters, in their order.
        neighbor_method : str or None, optional
            One of `NEIGHBOURS`; None for that of the space.

        Returns
        -------
        tuple or None
            None if there are none.
        """
        near = self.get_neighbors_indices(param_config, neighbor_method)
        return self.list[int(self._rng.choice(near))] if len(near) else None

    def get_param_neighbors(self, param_config: Config, index: int, neighbor_method: str, randomize: bool) -> list[Any]:
        """The other values that neighbours have of one parameter.

        Parameters
        ----------
        param_config : tuple
            Values of the parameters, in their order.
        index : int
            The place of the parameter.
        neighbor_method : str
            One of `NEIGHBOURS`.
        randomize : bool
            In random order.

        Returns
        -------
        list
        """
        values = dict.fromkeys(near[index] for near in self.get_neighbors(param_config, neighbor_method))
        others = [value for value in values if value != param_config[index]]
        return [others[place] for place in self._rng.permutation(len(others))] if randomize else others

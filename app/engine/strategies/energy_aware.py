"""Search for little energy that measures the energy of few: genetic, two stages, a model of energies [Zhang2024].

Every generation is timed, which takes milliseconds. Its fastest M are candidates; a model trained on all energies
measured so far (`models/energy_cost`) says which of them need least energy, and only k M are measured, a fifth of a
second each. How far off the predictions were decides k: below a threshold fewer are measured in the next round, above
it more. So far [Zhang2024], where k starts at 1 and the predictions alone say which are measured.

Ours: k starts lower (`start_k`), since a search on a board has few rounds and those at k = 1 save nothing; and a share
of those measured is picked by chance from the round's fastest (`drawn`). A model that alone says what is measured is
tested and taught only where it expects little energy: it looks right, k falls, and what it takes for bad by mistake is
never seen. With chance the error is that of all candidates. Candidates of earlier rounds that were timed and not
measured stay candidates, the neighbours of the best are part of each generation, parents may be chosen by the front of
time and energy, and where clocks or limits are searched too, a candidate's time counts relative to the best at the same
settings. A prior, the model of another shape or board, saves most of the first measurements, and is asked as long as it
predicts better than what was measured here.

Configurations as numbers, for models that learn from them: sizes as they are, their products and ratios, and words
as yes or no.

What matters to a GPU is often a product or ratio of sizes (threads of a block, work of a thread); a tree finds one
sooner where it is a column of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

import numpy as np
import numpy.typing as npt

from ..models.energy_cost import LEAST_POINTS, EnergyCostModel, Sample, error_share, fit, helps
from ..models.tuning_methods import energy_of
from ..results.measurement import Depth, State
from ..results.settings import UNTOUCHED
from ..space.search_space import Parameter, Rows, SearchSpace
from .base import Background, CheckedOptions, Outcome, Report, Search, Strategy, option
from .energy_log import EnergyLog, Round
from .evaluations import Evaluations
from .population import GeneticAlgorithm, crowded_order, next_generation

MOST_PAIRS: Final = 30  # of sizes multiplied and divided, those with the most values first
MOST_WORDS: Final = 16  # of a parameter that get a column; the others share none


class RowNumbers:
    """The rows of a space as numbers. A column that does not vary is left out.

    `names` are those of the columns: `tile` for a number, `layout=row` for a word, `ln a*b` and `ln a/b` for pairs.
    """

    def __init__(self, space: SearchSpace) -> None:
        self._codes = space.codes
        varying = [(index, item) for index, item in enumerate(space.parameters) if len(item.values) > 1]
        self._tables: list[tuple[int, Floats]] = []  # a column of the codes, and the numbers of its values
        self._pairs: list[tuple[int, Floats, int, Floats]] = []  # two columns, and the logarithms of their values
        names: list[str] = []
        for at, parameter in varying:
            for name, numbers in _columns(parameter):
                names.append(name)
                self._tables.append((at, numbers))
        sizes = [(at, parameter.name, logs) for at, parameter in varying if (logs := _logs(parameter)) is not None]
        pairs = sorted(combinations(sizes, 2), key=lambda pair: -len(pair[0][2]) * len(pair[1][2]))
        for (one, one_name, one_logs), (other, other_name, other_logs) in pairs[:MOST_PAIRS]:
            names += [f"ln {one_name}*{other_name}", f"ln {one_name}/{other_name}"]
            self._pairs += [(one, one_logs, other, other_logs), (one, one_logs, other, -other_logs)]
        self.names = tuple(names)

    def of(self, rows: Sequence[int] | Rows) -> Floats:
        """The numbers of rows.

        Parameters
        ----------
        rows : sequence of int
            Rows of the space.

        Returns
        -------
        array, shape (rows, names)
            Sizes and other numbers as they are, words as 0 or 1, and pairs by the logarithm of their product or ratio.
        """
        codes = self._codes[np.asarray(rows, dtype=np.int64)]
        columns = [numbers[codes[:, at]] for at, numbers in self._tables]
        columns += [a[codes[:, one]] + b[codes[:, other]] for one, a, other, b in self._pairs]
        return np.column_stack(columns) if columns else np.empty((len(codes), 0))


def _columns(parameter: Parameter) -> list[tuple[str, Floats]]:
    """The columns of one parameter, by its values: one of numbers, or one for each word."""
    values, numbers = parameter.values, parameter.numbers
    if numbers is not None:
        unset = np.isnan(numbers)  # where an untouched setting runs is mostly where the highest value does
        columns = [(parameter.name, np.where(unset, np.nanmax(numbers, initial=0.0), numbers))]
        return [*columns, (f"{parameter.name}={UNTOUCHED}", unset.astype(np.float64))] if unset.any() else columns
    words = list(dict.fromkeys(values))[:MOST_WORDS]
    return [(f"{parameter.name}={word}", np.array([float(value == word) for value in values])) for word in words]


def _logs(parameter: Parameter) -> Floats | None:
    """The logarithms of a parameter's values where all of at least three are above 0."""
    values = [value for value in parameter.values if not isinstance(value, str)]
    if len(values) < max(3, len(parameter.values)) or parameter.device_setting or not all(v > 0 for v in values):
        return None
    logs: Floats = np.log(np.array([float(value) for value in values]))
    return logs


Floats = npt.NDArray[np.float64]

STARTS_SHARE: Final = 0.4  # of the first generation at most are what one would start with
PRIOR_SHARE: Final = 0.25  # of the first candidates are measured where there is a prior; k starts there too


class EnergyAware(Strategy, name="energy_aware", label="Energy-aware (genetic, with a model of energies)"):
    """Times every generation, predicts the energy of its fastest, and measures only the most promising of them."""

    times = True
    timed_for_one = 16  # it times ten for one as a rule

    @dataclass(frozen=True)
    class Options(CheckedOptions):
        first_generation: int = option(384, "random configurations timed before the first round, at least 4", least=4)
        generation: int = option(96, "configurations timed in each round, at least 4", least=4)
        fastest: int = option(32, "M: of them, those that are candidates for an energy measurement", least=2)
        threshold: float = option(0.08, "error of predicted energies, relative, below which k shrinks", least=0, most=1)
        k_step: float = option(
            0.65, "what k is multiplied by where it shrinks, divided by where it grows", least=0.1, most=1
        )
        start_k: float = option(0.35, "k of the first round with predictions; 1: all of M", least=0, most=1)
        drawn: float = option(
            0.4, "share of those measured that chance picks from the round's fastest, not the model", least=0, most=1
        )
        least_k: float = option(0.125, "the smallest share of M that is measured; 1: all of M", least=0, most=1)
        neighbours: float = option(0.25, "share of each generation bred near the best, 0..1", least=0, most=1)
        mutation_chance: float = option(0.3, "chance that a child moves to a neighbour, 0..1", least=0, most=1)
        newcomers: float = option(0.1, "share of each generation drawn at random, 0..1", least=0, most=1)
        rounds: int = option(0, "rounds after the first at most; 0: as many as patience lets it have", least=0)
        patience: int = option(8, "rounds without less energy after which the search ends, at least 1", least=1)
        improvement: float = option(0.002, "share by which energy must fall to count, 0..1", least=0, most=1)
        use_prior: bool = option(True, "start from what earlier sessions learnt, while that predicts better")
        aim: str = option("energy", "what parents are chosen by", choices=("energy", "front", "time"))

    def __init__(self, background: Background | None = None) -> None:
        super().__init__(background)
        self._rounds: _Rounds | None = None  # of the search that was begun last

    def report(self) -> Report:
        rounds = self._rounds
        if rounds is None or not rounds.log.rounds:
            return Report()
        return Report(rounds.log.to_origin(), rounds.knowledge.learnt)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        knowledge = _Knowledge(space, self.background, use_prior=options.use_prior)
        self._rounds = rounds = _Rounds(Evaluations(space, rng), options, knowledge, self.background)
        yield from rounds.first()
        while not rounds.over:
            yield from rounds.next()


class _Rounds:
    """The state of a search from round to round."""

    def __init__(
        self, evaluations: Evaluations, options: EnergyAware.Options, knowledge: _Knowledge, background: Background
    ) -> None:
        self._known, self._options, self.knowledge, self._background = evaluations, options, knowledge, background
        self._looked = Evaluations(evaluations.space, evaluations.rng)  # every timed row, as if that were all to know
        (self._chance,) = evaluations.rng.spawn(1)  # of its own: the same parents breed the same whatever is measured
        self._pace = _Pace(evaluations.space, relative=options.aim != "time")
        self._waiting: dict[int, None] = {}  # candidates whose energy was not measured
        self._fastest: list[int] = []  # of the round
        self._parents: list[int] = []
        self._k = 1.0
        self._offered = self._taken = 0  # candidates of this round, and energies measured
        self._off: float | None = None
        self.log = EnergyLog()
        self._best, self._stale = math.inf, 0
        self._said = ""

    @property
    def over(self) -> bool:
        """Whether all is measured, some rounds have found nothing better, or there were as many as were asked for."""
        enough = 0 < self._options.rounds < len(self.log.rounds)
        return self._known.exhausted or self._stale >= self._options.patience or enough

    def first(self) -> Search:
        """Time many at random, and those that one would start with; measure the energy of the fastest.

        Of all of them, unless a prior knows their energies.
        """
        space, options = self._known.space, self._options
        drawn = space.sample_latin_hypercube(self._known.rng, min(options.first_generation, space.size)).tolist()
        yield from self._time(self._background.first(drawn, STARTS_SHARE))
        if self.knowledge.prior is not None and options.aim != "time":
            yield from self._measure(list(self._waiting)[:: round(1 / PRIOR_SHARE)])
            self.log.prior = self._said = self.knowledge.test_prior()
        self._k = 1.0
        if not self.knowledge.uses_prior:
            yield from self._measure(self._promising())
        self._k = max(options.least_k, PRIOR_SHARE if self.knowledge.uses_prior else options.start_k)
        self._end_round()
        self._breed()

    def next(self) -> Search:
        """One round: a generation is timed, the most promising are measured, and k follows the error of the model."""
        k = self._k
        generation = self._generation()
        if not generation:  # all were timed: the slower ones are candidates too
            self._waiting |= dict.fromkeys(self._known.timed)
            self._offered += min(self._options.fastest, len(self._waiting))
        yield from self._time(generation)
        yield from self._measure(self._promising())
        self._end_round(k)
        self._breed()

    # --- the stages -------------------------------------------------------------------------------------------------

    def _time(self, rows: list[int]) -> Search:
        """Time rows; the fastest of them become candidates where that did not measure them already."""
        outcomes = yield from self._known.time(rows, self._said)
        self._said = "" if rows else self._said
        self._looked.learn(replace(outcome, depth=Depth.ENERGY) for outcome in outcomes)
        self._pace.note(outcomes)
        worked = [outcome.row for outcome in outcomes if outcome.state is State.OK]
        self._fastest = sorted(worked, key=self._pace.of)[: self._options.fastest]
        self._waiting |= dict.fromkeys(row for row in self._fastest if row in self._known.timed)
        self._offered += sum(row in self._waiting for row in self._fastest)

    def _measure(self, rows: list[int]) -> Search:
        """Measure the energy of candidates, compare it with what was predicted, and learn from all that is known."""
        if not rows:
            return
        predicted = self.knowledge.expect([self._known.timed[row] for row in rows])
        yield from self._known.ask(rows, self._said)
        self._said = ""
        self._taken += len(rows)
        for row in rows:
            self._waiting.pop(row, None)
        measured = np.array([_energy(self._known.outcome(row)) for row in rows])
        self._follow(predicted, measured)
        self.knowledge.score(measured)
        if self._options.least_k < 1:  # else nothing asks the model
            self.knowledge.learn([self._known.outcome(row) for row in self._known])

    def _follow(self, predicted: Floats, measured: Floats) -> None:
        """k shrinks where the predictions were right, and grows where they were not."""
        there = np.isfinite(measured) & np.isfinite(predicted) & (measured > 0)
        if not there.any():
            return
        off = math.sqrt(error_share(predicted[there], measured[there]))
        k = self._k * (self._options.k_step if off < self._options.threshold else 1 / self._options.k_step)
        self._k = min(1.0, max(self._options.least_k, k))
        self._off = off
        self.log.predicted_j += predicted[there].tolist()
        self.log.measured_j += measured[there].tolist()

    def _end_round(self, k: float = 1.0) -> None:
        """Log a round that had candidates, and say with the next batch how it went."""
        if self._offered or self._taken:
            self.log.rounds.append(Round(k, self._offered, self._taken, self._off))
        if self._off is not None:
            self._said = (
                f"Round {len(self.log.rounds) - 1}: predicted energies were off by {100 * self._off:.1f} %, k is now "
                f"{self._k:.2f}; {self.log.saved} of {self.log.offered} energy measurements saved so far."
            )
        self._offered, self._taken, self._off = 0, 0, None

    def _promising(self) -> list[int]:
        """The candidates to measure, k M: of least predicted energy or first on the front, and some by chance."""
        waiting = list(self._waiting)
        if self._options.aim == "time":
            return [row for row in waiting if self._pace.of(row) <= self._pace.least]
        count = math.ceil(self._k * min(self._options.fastest, len(waiting)))
        order = [waiting[index] for index in self._order(waiting).tolist()]
        fresh = set(self._fastest)
        others = [row for row in order[count:] if row in fresh] or order[count:]
        by_chance = min(len(others), round(self._options.drawn * count))
        return [*order[: count - by_chance], *self._chance.permutation(others)[:by_chance].tolist()]

    def _breed(self) -> None:
        """The parents of the next generation, best first: of those before and the fastest now."""
        pool = list(dict.fromkeys([*self._parents, *self._fastest]))
        self._parents = [pool[index] for index in self._order(pool)[: max(2, self._options.fastest // 2)].tolist()]
        if self._options.aim == "time":
            best = self._pace.least
        else:
            best = min((_energy(self._known.outcome(row)) for row in self._known), default=math.inf)
        if best < self._best - self._options.improvement * abs(self._best) or math.isinf(self._best):
            self._best, self._stale = best, 0
        else:
            self._stale += 1

    def _generation(self) -> list[int]:
        """Rows that were not timed: neighbours of the best, children of the parents, and a few at random."""
        options, looked = self._options, self._looked
        wanted = min(options.generation, looked.space.size - len(looked))
        if not self._parents:
            return looked.draw(wanted)
        near: dict[int, None] = {}
        most = round((1 - (1 - options.neighbours) / (1 + self._stale)) * wanted)  # more of them as nothing is found
        for parent in self._parents:
            if len(near) < most:
                near |= dict.fromkeys(looked.unseen_neighbours(parent))
        chosen = list(near)[:most]
        genetic = GeneticAlgorithm.Options(
            population_size=max(2, wanted - len(chosen)),
            mutation_chance=options.mutation_chance,
            newcomers=options.newcomers,
        )
        children = next_generation(looked, genetic, self._parents, range(len(self._parents)))
        return list(dict.fromkeys([*chosen, *children]))

    def _order(self, rows: Sequence[int]) -> npt.NDArray[np.intp]:
        """From the best row to the worst: by measured energy, else by the predicted one; by time if none is."""
        paces = np.array([self._pace.of(row) for row in rows])
        energies = self._costs(rows)
        if self._options.aim == "front":
            return crowded_order(np.column_stack([paces, energies]))
        return np.lexsort((paces, energies))

    def _costs(self, rows: Sequence[int]) -> Floats:
        """Of timed rows what is searched for little of: energy, measured or predicted; inf if none is known."""
        if self._options.aim == "time" or not rows:
            return np.array([self._pace.of(row) for row in rows])
        predicted = self.knowledge.energies([self._looked.outcome(row) for row in rows])
        energies = np.array(
            [
                _energy(self._known.outcome(row)) if row in self._known else guess
                for row, guess in zip(rows, predicted.tolist(), strict=True)
            ]
        )
        return np.where(np.isnan(energies), np.inf, energies)


class _Pace:
    """How fast the rows are: time per launch, relative to the least at the same device settings where there are any."""

    def __init__(self, space: SearchSpace, *, relative: bool) -> None:
        settings = [index for index, parameter in enumerate(space.parameters) if parameter.device_setting]
        self._settings = space.codes[:, settings] if relative and settings else None
        self._times: dict[int, float] = {}
        self._least: dict[bytes, float] = {}
        self.least = math.inf

    def note(self, outcomes: Iterable[Outcome]) -> None:
        """Learn the times of rows."""
        for outcome in outcomes:
            time_s = _time(outcome)
            self._times[outcome.row] = time_s
            self.least = min(self.least, time_s)
            alike = self._alike(outcome.row)
            self._least[alike] = min(self._least.get(alike, math.inf), time_s)

    def of(self, row: int) -> float:
        """The less the faster; inf if it failed."""
        time_s, least = self._times[row], self._least[self._alike(row)]
        return time_s / least if self._settings is not None and 0 < least < math.inf else time_s

    def _alike(self, row: int) -> bytes:
        return b"" if self._settings is None else self._settings[row].tobytes()


class _Knowledge:
    """The model of energies, and what it is given of each row."""

    def __init__(self, space: SearchSpace, background: Background, *, use_prior: bool) -> None:
        self._numbers, self._features = RowNumbers(space), background.features
        self._names = (*self._numbers.names, *background.names)
        self.prior = background.prior() if use_prior and background.prior is not None else None
        self.uses_prior = False
        self._model: EnergyCostModel | None = None  # of what was measured here alone
        self._from_prior: EnergyCostModel | None = None  # the same, from the prior on
        self._expected: tuple[Floats, Floats] = (np.empty(0), np.empty(0))  # by both, of what is measured next
        self._squares = np.zeros(2)  # of their relative errors so far: each was predicted before it was measured
        self._learnt: list[Outcome] = []

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """A new model of all energies measured so far."""
        self._learnt = [o for o in outcomes if 0 < _energy(o) < math.inf and 0 < _time(o) < math.inf]
        if self._learnt:
            sample, energies = self._sample(self._learnt), self._energies()
            self._model = fit(sample, energies)
            self._from_prior = fit(sample, energies, self.prior) if self.prior is not None else None

    @property
    def learnt(self) -> EnergyCostModel | None:
        """The model of what was measured here, without a prior; None if there is too little for one."""
        return fit(self._sample(self._learnt), self._energies()) if len(self._learnt) >= LEAST_POINTS else None

    def energies(self, outcomes: Sequence[Outcome]) -> Floats:
        """Predicted energies of timed rows, J, shape (rows,); NaN if nothing was learnt."""
        return self._by(self._from_prior if self.uses_prior else self._model, outcomes)

    def expect(self, outcomes: Sequence[Outcome]) -> Floats:
        """Predict the energies of rows that are measured next.

        They are predicted with and without the prior, so that `score` can compare the two.
        """
        self._expected = self._by(self._model, outcomes), self._by(self._from_prior, outcomes)
        return self._expected[1 if self.uses_prior else 0]

    def score(self, measured: Floats) -> None:
        """How well both predicted; from now on the better one of all that were predicted so far is asked."""
        alone, from_prior = self._expected
        there = np.isfinite(alone) & np.isfinite(from_prior) & np.isfinite(measured) & (measured > 0)
        if there.any():
            self._squares += [((item[there] / measured[there] - 1) ** 2).sum() for item in self._expected]
            self.uses_prior = bool(self._squares[1] < self._squares[0])

    def _by(self, model: EnergyCostModel | None, outcomes: Sequence[Outcome]) -> Floats:
        if model is None or not outcomes:
            return np.full(len(outcomes), np.nan)
        return model.energy_j(self._sample(outcomes))

    def test_prior(self) -> str:
        """Use the prior from the start if it improves the predicted energies. Returns the outcome as text."""
        assert self.prior is not None
        with_prior, without = helps(self.prior, self._sample(self._learnt), self._energies())
        figures = f"{100 * with_prior:.1f} % off with what earlier sessions learnt, {100 * without:.1f} % without it"
        self.uses_prior = with_prior < without
        if self.uses_prior:
            return f"Energies are predicted {figures}: it is used."
        if math.isnan(without):
            figures = "nobody knows how well with what earlier sessions learnt: too few were measured"
            self.prior = self._from_prior = None
        return f"Energies are predicted {figures}: it is not used, until it predicts better."

    def _sample(self, outcomes: Sequence[Outcome]) -> Sample:
        rows = [outcome.row for outcome in outcomes]
        times = np.array([_time(outcome) for outcome in outcomes])
        columns = self._numbers.of(rows)
        if self._features is not None:
            columns = np.hstack([columns, self._features(rows)])
        return Sample(self._names, columns, times)

    def _energies(self) -> Floats:
        return np.array([_energy(outcome) for outcome in self._learnt])


def _time(outcome: Outcome) -> float:
    """Time of a launch, s; the cost where the session measures no time; inf if it failed."""
    return _known(outcome.values.get("time_s", outcome.cost), outcome)


def _energy(outcome: Outcome) -> float:
    """Energy of a launch, J; the cost where the session measures none; inf if it failed."""
    energy_j = energy_of(outcome.values)
    return _known(energy_j if math.isfinite(energy_j) else outcome.cost, outcome)


def _known(figure: float, outcome: Outcome) -> float:
    return math.inf if outcome.state is not State.OK or math.isnan(figure) else figure

"""The `Strategy` seam. A strategy proposes rows of the search space and is sent their outcomes; it measures nothing.

A strategy is a generator: it yields a batch of row numbers, is sent their outcomes in the same order, and returns when
done. It never yields a row twice and never one outside the space; `evaluations.Evaluations` keeps the memory that makes
both easy. The session enforces the budget: it closes the generator.

A `Batch` says more than a list of rows does: a remark for the user, and the depth. At `Depth.TIME` rows are timed, for
less than their energy would cost; a list of rows asks for `Depth.ENERGY`. Every row may be asked for once at TIME and
later once at ENERGY. An outcome may be deeper than what was asked for: where a runner has no cheaper way, where the
goals need the time alone, or where enough was timed. A strategy sees that in the outcome's depth, and asks for such a
row no more; nor for one that failed, at whatever depth.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import numpy.typing as npt

from ...base.errors import InputError
from ...base.plugins import plugins
from ..models.energy_cost import EnergyCostModel
from ..results.measurement import Depth, Measurement, State
from ..results.objectives import Objective
from ..space.search_space import SearchSpace

LARGEST = 1_000_000  # of any option that is a number


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one row. Costs are smaller-is-better; NaN where not yet known.

    They are inf if the configuration failed or breaks a limit, so that no search chooses it. What it would have cost
    but for the limits is in `unlimited` (the goal's, then the front's), and `excess` has by how much it breaks each of
    the limits, relative, negative where it keeps one: a model learns from both where the limits lie. Both are empty
    where the session has no limits, or where the configuration failed.

    Of a row that was only timed, those costs and values are known that follow from its time per launch. `front` holds
    the cost of each goal of the front, in its order (empty if the session has none); `values` the measured values by
    name (a model-steered search reads power and clock from them), empty if it failed.
    """

    row: int
    cost: float
    state: State = State.OK
    front: tuple[float, ...] = ()
    values: Mapping[str, float] = field(default_factory=dict)
    depth: Depth = Depth.ENERGY
    unlimited: tuple[float, ...] = ()
    excess: tuple[float, ...] = ()

    @classmethod
    def of(cls, measurement: Measurement, objective: Objective) -> Outcome:
        """The outcome that a strategy is sent of a measurement.

        Parameters
        ----------
        measurement : Measurement
            One configuration that was timed, measured in full, or failed.
        objective : Objective
            The session's goal, the goals of its front, and the limits of both.

        Returns
        -------
        Outcome
        """
        goals = (objective.goal, *objective.front)
        if measurement.state is not State.OK:
            cost, *front = [math.inf] * len(goals)
            return cls(measurement.row, cost, measurement.state, tuple(front), depth=measurement.depth)
        values = measurement.values
        open_yet = {goal.name for goal in goals if not measurement.final and goal.name not in values}
        costs = tuple(math.nan if goal.name in open_yet else goal.cost(values) for goal in goals)
        if not objective.limits:
            return cls(measurement.row, costs[0], State.OK, costs[1:], values, measurement.depth)
        excess = tuple(limit.excess(values.get(limit.name, math.nan)) for limit in objective.limits)
        kept = all(value <= 0 or (math.isnan(value) and not measurement.final) for value in excess)
        cost, *front = costs if kept else [math.inf] * len(costs)
        return cls(measurement.row, cost, State.OK, tuple(front), values, measurement.depth, costs, excess)

    @property
    def final(self) -> bool:
        """Whether nothing more can be asked of the row: it failed, or it was measured in full."""
        return self.depth is Depth.ENERGY or self.state is not State.OK


Search = Generator[list[int], Sequence[Outcome], Any]  # returns why it ended, or nothing


class Batch(list[int]):
    """Rows, what is wanted of them, and a remark for the user: what the strategy found out, how it proceeds.

    `likely` are rows that may be asked for soon, the likeliest first: a runner may compile them meanwhile.
    """

    def __init__(
        self, rows: Sequence[int], *, depth: Depth = Depth.ENERGY, remark: str = "", likely: Sequence[int] = ()
    ) -> None:
        super().__init__(rows)
        self.depth = depth
        self.remark = remark
        self.likely = tuple(likely)

    @classmethod
    def of(cls, rows: Sequence[int]) -> Batch:
        """The batch that a strategy yielded.

        Parameters
        ----------
        rows : sequence of int
            What it yielded; a list of rows asks for their energy.

        Returns
        -------
        Batch
            `rows` itself where it is one.
        """
        return rows if isinstance(rows, Batch) else cls(rows)


@dataclass(frozen=True, slots=True)
class Background:
    """What is known before a search, beside its space: features of rows, and what earlier searches learnt.

    `features` gives those of some rows that were timed or measured, such as registers and instructions of their
    kernels, shape (rows, names); NaN if unknown. `starts` are rows of which the user, or the maker of a kernel,
    expects much, the best guess first; the user's are measured before the strategy is asked.
    """

    names: tuple[str, ...] = ()
    features: Callable[[Sequence[int]], npt.NDArray[np.float64]] | None = None
    prior: Callable[[], EnergyCostModel | None] | None = None  # what is kept of another problem, or another board
    boards: Callable[[], int] = lambda: 1  # how many measure at the same time, now
    starts: tuple[int, ...] = ()
    made: tuple[int, ...] = ()  # rows that need no compiler, such as a library's: a look at each costs next to nothing

    def first(self, drawn: Sequence[int], share: float) -> list[int]:
        """A first generation, with starts in place of some of the rows that were drawn.

        Parameters
        ----------
        drawn : sequence of int
            Rows, all different.
        share : float
            The starts' share of the generation at most, 0 to 1.

        Returns
        -------
        list of int
            As many different rows as were drawn: the starts, then the others as they were drawn.
        """
        begun = self.starts[: int(share * len(drawn))]
        return list(dict.fromkeys((*begun, *drawn)))[: len(drawn)]


@dataclass(frozen=True, slots=True)
class Report:
    """What is kept of a search beside its measurements."""

    origin: Mapping[str, str] = field(default_factory=dict)  # with the session: how it went
    model: EnergyCostModel | None = None  # with the board: what it learnt


T = TypeVar("T")


def option(
    default: T,
    text: str,
    *,
    least: float | None = None,
    most: float = math.inf,
    choices: Sequence[str] | Callable[[], Sequence[str]] = (),
) -> T:
    """A field of a strategy's options: its default, its meaning and its values.

    Parameters
    ----------
    default : T
        A bool, int, float or str; values of the option are read as that type.
    text : str
        The meaning, shown to the user.
    least : float or None, optional
        The smallest value of a number; with None, values are not checked.
    most : float, optional
        The largest value of a number, where there is a smallest one.
    choices : sequence of str or callable, optional
        The values of a text, given as they are or by a function; empty where any text will do.

    Returns
    -------
    T
        The dataclass field, typed as its values are.
    """
    limits = None if least is None else (least, most)
    made: T = field(default=default, metadata={"help": text, "limits": limits, "choices": choices})
    return made


@dataclass(frozen=True)
class CheckedOptions:
    """Base of every strategy's options. Raises ValueError if a number lies outside the limits of its `option`."""

    def __post_init__(self) -> None:
        for item in dataclasses.fields(self):
            limits, value = item.metadata.get("limits"), getattr(self, item.name)
            if limits is not None and not limits[0] <= value <= limits[1]:
                must = (
                    f"lie between {limits[0]} and {limits[1]}" if limits[1] < math.inf else f"be at least {limits[0]}"
                )
                raise ValueError(f"{item.name} must {must}, not {value}")


ENTRY_POINTS = "wattridge.strategies"  # the group in which other packages name their strategies
_REGISTRY: dict[str, type[Strategy]] = {}
_BROKEN: dict[str, str] = {}  # entry points that could not be imported, and why


class Strategy(ABC):
    """Base of all strategies: `class Firefly(Strategy, name="firefly", label="Firefly")` registers one.

    The first line of its docstring is shown to the user.
    """

    name: ClassVar[str]  # as on the command line: "brute_force"
    label: ClassVar[str]  # as shown to the user: "Brute force"
    ends_after: ClassVar[int] = 0  # rows that it measures at least before it may end by itself; 0: it does not
    timed_for_one: ClassVar[int] = 4  # rows that may be only timed for each that may be measured: about as long
    times: ClassVar[bool] = False  # it lets rows be timed before it chooses those to measure
    of_front: ClassVar[bool] = False  # it searches the front that is shown, also where nobody asks for one
    Options: ClassVar[type[Any]] = CheckedOptions  # a dataclass derived from it; each field is made by `option`

    def __init_subclass__(cls, *, name: str = "", label: str = "") -> None:
        super().__init_subclass__()
        if name:
            cls.name, cls.label = name, label
            _REGISTRY[name] = cls

    def __init__(self, background: Background | None = None) -> None:
        self.background = background or Background()

    def informed(self, background: Background) -> Self:
        """The strategy, for a search about which something is known.

        Parameters
        ----------
        background : Background
            All that is known before the search.

        Returns
        -------
        Strategy
            A new one of the same class.
        """
        return type(self)(background)

    def within(self, chosen: Strategy) -> Strategy:
        """Another strategy, for a part of this one's space.

        Parameters
        ----------
        chosen : Strategy
            The other strategy.

        Returns
        -------
        Strategy
            A new one of its class. It knows of the boards and nothing else, since rows have other numbers in the part.
        """
        return chosen.informed(Background(boards=self.background.boards))

    def at_once(self, batch: int, most: int) -> int:
        """How many rows to propose together.

        The fewer, the more is learnt from each; but a board without a row learns nothing.

        Parameters
        ----------
        batch : int
            How many rows the runner can prepare at once.
        most : int
            The most to propose, though never fewer than there are boards.

        Returns
        -------
        int
            At least 1.
        """
        return max(1, min(batch, most), self.background.boards())

    def report(self) -> Report:
        """What is to be kept of the search that was begun last, as far as it came."""
        return Report()

    @abstractmethod
    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Any) -> Search:
        """Propose rows of a space, batch after batch.

        Where several boards measure, fewer than `background.boards()` rows leave some of them without work.

        Parameters
        ----------
        space : SearchSpace
            The space that is searched.
        rng : numpy.random.Generator
            Draws all that is random in the search.
        batch : int
            How many rows the runner can prepare at once; a strategy may yield fewer or more.
        options : Options
            An instance of the strategy's own class of that name.

        Yields
        ------
        list of int
            The next rows; a `Batch` where a depth, a remark or likely rows go with them.

        Receives
        --------
        sequence of Outcome
            The outcomes of these rows, in the same order.
        """


def names(*, but: str = "") -> tuple[str, ...]:
    """The names of the registered strategies, the default first and the others in alphabetical order.

    Parameters
    ----------
    but : str, optional
        A name to leave out.

    Returns
    -------
    tuple of str
    """
    plugins("strategies")  # their import registers them
    return tuple(sorted(_REGISTRY.keys() - {but}, key=lambda name: (name != "auto", name)))


def get(name: str) -> Strategy:
    """The strategy of a name.

    Parameters
    ----------
    name : str
        As on the command line: `brute_force`.

    Returns
    -------
    Strategy
        A new one, with nothing known before its search.

    Raises
    ------
    InputError
        If no strategy has that name; it lists the known ones.
    """
    if name not in _REGISTRY and name not in names():
        broken = plugins("strategies").get(name)
        why = f" ({broken})" if isinstance(broken, InputError) else ""
        raise InputError(f"unknown strategy '{name}'{why}", "strategy", f"one of {', '.join(names())}")
    return _REGISTRY[name]()


def description(of: Strategy) -> str:
    """A sentence on how a strategy searches.

    Parameters
    ----------
    of : Strategy
        The strategy.

    Returns
    -------
    str
        The first line of its class's docstring.
    """
    return (type(of).__doc__ or "").partition("\n")[0]


def choices_of(field_: dataclasses.Field[Any]) -> tuple[str, ...]:
    """The values of an option that is one of several texts.

    Parameters
    ----------
    field_ : dataclasses.Field
        The option, made by `option`.

    Returns
    -------
    tuple of str
        Empty for any other option.
    """
    choices = field_.metadata.get("choices", ())
    return tuple(choices() if callable(choices) else choices)


def make_options(chosen: Strategy, given: dict[str, Any]) -> Any:
    """The options of a strategy, with those that are not given at their defaults.

    Parameters
    ----------
    chosen : Strategy
        The strategy whose options they are.
    given : dict
        Values by the options' names, as text or as TOML has them.

    Returns
    -------
    Options
        An instance of the strategy's own class of that name.

    Raises
    ------
    InputError
        If a key is unknown or a value is wrong.
    """
    fields = {f.name: f for f in dataclasses.fields(chosen.Options)}
    values: dict[str, Any] = {}
    for key, value in given.items():
        if key not in fields:
            listed = ", ".join(fields) or "it has none"
            raise InputError(f"strategy {chosen.name} has no option '{key}'", "strategy option", f"known: {listed}")
        default, choices = fields[key].default, choices_of(fields[key])
        if choices and value not in choices:
            raise InputError(
                f"option {key} of {chosen.name} is {value!r}", "strategy option", f"one of {', '.join(choices)}"
            )
        convert, wanted = _READ[type(default)]
        try:
            values[key] = convert(value)
        except (TypeError, ValueError, OverflowError):
            what = f"option {key} of {chosen.name} is {_short(value)}"
            raise InputError(what, "strategy option", f"{wanted} is needed") from None
    try:
        return chosen.Options(**values)
    except ValueError as error:
        raise InputError(str(error), f"options of {chosen.name}", f"see: wattridge strategies {chosen.name}") from None


def _truth(value: Any) -> bool:
    """True or false, also as a word. Raises ValueError."""
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if str(value).lower() not in words:
        raise ValueError(f"{value!r} is neither true nor false")
    return words[str(value).lower()]


def _number(value: Any) -> float:
    """A number no larger than any option needs. Raises ValueError, TypeError, OverflowError."""
    number = float(value)
    if isinstance(value, bool) or not abs(number) <= LARGEST:
        raise ValueError(f"{number} is too large")
    return number


def _whole(value: Any) -> int:
    """The same of a whole number, which a text has without a point. Raises ValueError, TypeError, OverflowError."""
    number = _number(int(value) if isinstance(value, str) else value)
    if not number.is_integer():
        raise ValueError(f"{number} is not whole")
    return int(number)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:50]}…{text[-6:]}"


_RANGE = f"from {-LARGEST:,} to {LARGEST:,}"
_READ: dict[type, tuple[Callable[[Any], Any], str]] = {  # an option's type -> how it is read, and what is wanted
    bool: (_truth, "true or false"),
    int: (_whole, f"a whole number {_RANGE}"),
    float: (_number, f"a number {_RANGE}"),
    str: (str, "text"),
}


def option_names() -> dict[str, frozenset[str]]:
    """Of every registered strategy the names of its options."""
    return {name: frozenset(item.name for item in dataclasses.fields(get(name).Options)) for name in names()}

"""The `Strategy` seam. A strategy proposes rows of the search space and is sent what came of them; it measures nothing.

A strategy is a generator: it yields a batch of row numbers, is sent their outcomes in the same order, and returns when
done. It never yields a row twice and never one outside the space; `Evaluations` below keeps the memory that makes both
easy. A batch may be `Remarked`. The budget is the tuner's business: it closes the generator.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from ...errors import InputError
from ..measurement import State
from ..space.search_space import SearchSpace

LARGEST = 1_000_000  # of any option that is a number


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one row. Costs are smaller-is-better; inf where the configuration failed.

    `front` holds the cost of each goal of the front, in its order (empty where the session has none); `values` what
    was measured, by name (a model-steered search reads power and clock from it), empty where it failed.
    """

    row: int
    cost: float
    state: State = State.OK
    front: tuple[float, ...] = ()
    values: Mapping[str, float] = field(default_factory=dict)


Search = Generator[list[int], Sequence[Outcome], None]


class Remarked(list[int]):
    """A batch of rows with a word to the person: what the strategy found out, how it goes on."""

    def __init__(self, rows: Sequence[int], remark: str) -> None:
        super().__init__(rows)
        self.remark = remark


class Strategy(Protocol):
    """One file each under `engine/strategies`, registered by `@strategy`."""

    name: ClassVar[str]  # as on the command line: "brute_force"
    label: ClassVar[str]  # as shown to people: "Brute force"
    # A dataclass; each field has metadata {"help": ...}, and where it names one of several {"choices": ...}: these, or
    # a function that returns them.
    Options: ClassVar[type[Any]]

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Any) -> Search:
        """Propose rows. `batch` is how many the runner can prepare at once; a strategy may yield fewer or more."""
        ...


_REGISTRY: dict[str, Strategy] = {}
S = TypeVar("S", bound=type[Any])


def strategy(cls: S) -> S:
    """Register a strategy class under its name."""
    _REGISTRY[cls.name] = cls()
    return cls


def names() -> tuple[str, ...]:
    """Every registered strategy's name: the default, then the others by the alphabet."""
    return tuple(sorted(_REGISTRY, key=lambda name: (name != "auto", name)))


def get(name: str) -> Strategy:
    """The strategy of that name. Raises InputError naming the known ones."""
    try:
        return _REGISTRY[name]
    except KeyError:
        raise InputError(f"unknown strategy '{name}'", "strategy", f"one of {', '.join(names())}") from None


def description(of: Strategy) -> str:
    """What a strategy does, in a sentence."""
    return (type(of).__doc__ or "").partition("\n")[0]


def choices_of(option: dataclasses.Field[Any]) -> tuple[str, ...]:
    """What an option may be, where it names one of several; else empty."""
    choices = option.metadata.get("choices", ())
    return tuple(choices() if callable(choices) else choices)


def make_options(chosen: Strategy, given: dict[str, Any]) -> Any:
    """The strategy's options with `given` (text or TOML values) put in. Raises InputError: unknown key, wrong type."""
    fields = {f.name: f for f in dataclasses.fields(chosen.Options)}
    values: dict[str, Any] = {}
    for key, value in given.items():
        if key not in fields:
            known = ", ".join(fields) or "it has none"
            raise InputError(f"strategy {chosen.name} has no option '{key}'", "strategy option", f"known: {known}")
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


class Evaluations:
    """What a strategy has learnt so far: row -> outcome. Asks only for rows it does not know."""

    def __init__(self, space: SearchSpace) -> None:
        self._space = space
        self._outcomes: dict[int, Outcome] = {}
        self._left: list[int] | None = None  # in random order; made once most rows are known

    def __len__(self) -> int:
        return len(self._outcomes)

    def __contains__(self, row: int) -> bool:
        return row in self._outcomes

    def __iter__(self) -> Iterator[int]:
        """The evaluated rows, in the order they were asked for."""
        return iter(self._outcomes)

    @property
    def exhausted(self) -> bool:
        """Every row of the space has been evaluated."""
        return len(self._outcomes) >= self._space.size

    def costs(self) -> Iterator[float]:
        """The cost of every evaluated row, in the order they were asked for."""
        return (outcome.cost for outcome in self._outcomes.values())

    def cost(self, row: int) -> float:
        """The cost of an evaluated row."""
        return self._outcomes[row].cost

    def outcome(self, row: int) -> Outcome:
        """What came of an evaluated row."""
        return self._outcomes[row]

    def draw(self, rng: np.random.Generator, count: int) -> list[int]:
        """Up to `count` different rows drawn uniformly from those not evaluated; fewer only where fewer are left."""
        count = min(count, self._space.size - len(self))
        if 2 * len(self) <= self._space.size:
            found: dict[int, None] = {}
            while len(found) < count:
                for row in rng.integers(self._space.size, size=2 * (count - len(found)) + 2).tolist():
                    if row not in self._outcomes and len(found) < count:
                        found[row] = None
            return list(found)
        if self._left is None:
            self._left = [row for row in rng.permutation(self._space.size).tolist() if row not in self._outcomes]
        while self._left and self._left[-1] in self._outcomes:
            self._left.pop()
        return list(islice((row for row in reversed(self._left) if row not in self._outcomes), count))

    def learn(self, outcomes: Iterable[Outcome]) -> None:
        """What came of rows that were asked for otherwise than by `ask`."""
        self._outcomes.update((outcome.row, outcome) for outcome in outcomes)

    def ask(self, rows: Sequence[int], remark: str = "") -> Generator[list[int], Sequence[Outcome], list[float]]:
        """`costs = yield from evaluations.ask(rows)`: measure the unknown ones, return the cost of each."""
        fresh = [int(row) for row in dict.fromkeys(rows) if row not in self._outcomes]
        if fresh:
            self.learn((yield Remarked(fresh, remark) if remark else fresh))
        return [self._outcomes[int(row)].cost for row in rows]


def option_names() -> dict[str, frozenset[str]]:
    """Of every registered strategy the names of its options."""
    return {name: frozenset(field.name for field in dataclasses.fields(get(name).Options)) for name in names()}

"""What a strategy of your own is made of: the public names of `engine.strategies`."""

from .engine.space.search_space import SearchSpace
from .engine.strategies.base import Batch, CheckedOptions, Outcome, Search, Strategy, option
from .engine.strategies.evaluations import Evaluations

__all__ = ["Batch", "CheckedOptions", "Evaluations", "Outcome", "Search", "SearchSpace", "Strategy", "option"]

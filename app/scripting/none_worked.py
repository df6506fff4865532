"""What is said of a session of a script in which no configuration worked: the reason, and what to do, in one line."""

from __future__ import annotations

import re
from typing import Final

from ..engine.analysis.failures import most_frequent
from ..engine.measurement import State
from ..engine.space.result_table import ResultTable
from ..plain_text import shortened

_MOST: Final = 200  # characters of the reason
_ARCHITECTURE: Final = re.compile(r"gpu.arch|sm_\d|compute_\d", re.IGNORECASE)
_REMEDIES: Final = {
    State.COMPILE: "check the source and compiler_options",
    State.CORRECTNESS: "check answer, atol and verify",
    State.TIMEOUT: "make the problem smaller",
    State.CONSTRAINTS: "check tune_params, problem_size and the grid's divisors",
}
_NO_SUCH_BOARD: Final = "leave -arch out of compiler_options, or name an architecture that this compiler knows"


def why_none_worked(table: ResultTable) -> str:
    """Empty where one worked, or where nothing was measured."""
    failed = sum(table.failures().values())
    if not failed or failed < len(table) or (found := most_frequent(table)) is None:
        return ""
    state, message, count = found
    remedy = _REMEDIES.get(State(state), "look at 'error' in the results")
    if state == State.COMPILE and _ARCHITECTURE.search(message):
        remedy = _NO_SUCH_BOARD
    of_all = "all" if count == failed else str(count)
    return f"none of {failed} configurations worked; {of_all} failed by {state}: {shortened(message, _MOST)} ({remedy})"

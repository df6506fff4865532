"""How well typed letters fit a line of words: in order, best at the beginnings of words and side by side."""

from __future__ import annotations

_STARTS, _BESIDE, _PLAIN = 6.0, 4.0, 1.0  # points of a letter: it begins a word, stands beside the last one, neither
_GAP = 0.05  # points lost for each letter that is passed over


def score(typed: str, line: str) -> float | None:
    """Points, more for a better fit; None where a letter is missing. Words separated by blanks may lie in any order."""
    found = [_best(word, line.casefold()) for word in typed.casefold().split()]
    known = [points for points in found if points is not None]
    return sum(known) if len(known) == len(found) else None


def _best(word: str, line: str) -> float | None:
    """The best of all ways to find the letters in order."""
    reached = {-1: 0.0}  # where the letter found last may stand -> the most points so far
    for letter in word:
        reached = {
            place: max(points + _step(line, before, place) for before, points in reached.items() if before < place)
            for place, stands in enumerate(line)
            if stands == letter and place > min(reached)
        }
        if not reached:
            return None
    return max(reached.values())


def _step(line: str, before: int, place: int) -> float:
    starts = place == 0 or not line[place - 1].isalnum()
    beside = before >= 0 and place == before + 1
    return (_STARTS if starts else _BESIDE if beside else _PLAIN) - _GAP * (place - before - 1)

"""How much of a session is measured, in words that stand anywhere."""

from __future__ import annotations

import pytest

from app.views.shared.captions import measured_words


@pytest.mark.parametrize(
    ("measured", "budget", "words"),
    [
        (0, 250, "0 of 250 measured"),
        (250, 250, "250 of 250 measured"),
        (10, 5, "10 measured"),  # it went on beyond what it was given
        (5120, 0, "5\u202f120 measured"),  # of a growing file nobody knows how many
        (1200, 122304, "1\u202f200 of 122\u202f304 measured"),
    ],
)
def test_counts_have_a_word_and_no_more_than_there_was_to_measure(measured: int, budget: int, words: str) -> None:
    assert measured_words(measured, budget) == words


def test_those_that_were_only_timed_are_counted_apart() -> None:
    assert measured_words(60, 100, 140) == "60 of 100 measured, 140 timed"

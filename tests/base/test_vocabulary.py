"""The vocabulary of headings: what a mistake in `resources/headings.toml` would show."""

from __future__ import annotations

from app.base.vocabulary import BOARDS, CHANNELS, HEADINGS, PATTERNS, UNITS, WORDS
from app.sensors.channel import CHANNELS as KNOWN
from app.sensors.recorded.logs.layouts import heading


def test_every_unit_is_of_one_quantity_and_in_proportion() -> None:
    assert UNITS["mj"] == ("energy", 1e-3)
    assert UNITS["kwh"][1] == 1000 * UNITS["wh"][1] == 3.6e6 * UNITS["j"][1]
    assert UNITS["ghz"][1] == 1000 * UNITS["mhz"][1]
    assert all(unit == unit.lower() and factor > 0 for unit, (_, factor) in UNITS.items())


def test_words_are_as_headings_are_split() -> None:
    for words in WORDS.values():
        assert words
        assert all(word == word.lower() and " " not in word for word in words)
    for headings in HEADINGS.values():
        assert all(each == each.lower() == " ".join(each.split()) for each in headings)


def test_logs_name_channels_that_there_are() -> None:
    assert CHANNELS.keys() <= KNOWN.keys()
    assert set(BOARDS.values()) == {"uuid", "bus", "index", "host"}
    assert heading("SM Clock [MHz]").channel == "sm_clock_mhz"
    assert heading("gpu_power_mw").scale == 1e-3


def test_patterns_find_what_they_are_named_after() -> None:
    for text, kind in (("tokens per second", "per_second"), ("gflops", "rate"), ("tok per joule", "per_energy")):
        assert PATTERNS[kind].search(text), kind
    assert not PATTERNS["rate"].search("power")

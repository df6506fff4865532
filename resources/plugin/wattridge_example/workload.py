"""A workload: a specification that `wattridge tune halve` finds by its name."""

from pathlib import Path


def specification():
    return Path(__file__).with_name("halve.toml")

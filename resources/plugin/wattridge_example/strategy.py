"""A strategy: `wattridge tune gemm --strategy from_the_end`, and in the window's list."""

from wattridge.strategies import Strategy


class FromTheEnd(Strategy, name="from_the_end", label="From the end"):
    """From the last configuration to the first."""

    def search(self, space, rng, batch, options):
        for start in reversed(range(0, space.size, batch)):
            yield list(range(start, min(start + batch, space.size)))  # rows; their outcomes are sent back

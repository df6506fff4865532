"""Random programs over all simulated boards, whose joules are known: how well the attribution finds them.

    PYTHONPATH=. python tests/benchmarks/attribution.py [PROGRAMS]

Prints a line for each kind of program, for each board and for all, then for those made to fool it. Of items (families,
groups and gaps): how often the interval held; of families above 5 % of the energy that stand alone: error and
half-width; the share of the energy in groups, and families in them that vary independently. Kept in attribution.txt.
"""

from __future__ import annotations

import sys
from collections import defaultdict

from tests.fixtures.attribution_truth import Tally
from tests.fixtures.programs import ATTACKS, random_program

HEAD = (
    "programs   runs  items  held %  large%  alone  error%    95 %  half %  grouped%  wrong  total%   most%  held %"
    "   s CPU"
)


def main(count: int) -> None:
    """Print the table."""
    whole, by_kind, by_twin = Tally(), defaultdict(Tally), defaultdict(Tally)
    for seed in range(count):
        program, single = random_program(seed), Tally()
        single.add(program)
        for tally in (whole, by_kind[program.kind], by_twin[program.twin]):
            tally.take(single)
    print(HEAD)
    for name, tally in [*by_kind.items(), *sorted(by_twin.items()), ("all", whole)]:
        print(tally.line(name))
    for kind in ATTACKS:
        tally = Tally()
        for seed in range(18):
            tally.add(random_program(1000 + seed, kind=kind))
        print(tally.line(kind))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)

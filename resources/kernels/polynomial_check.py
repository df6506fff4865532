"""Checks the values of a polynomial: `polynomial_check.py Y.npy X.npy DEGREE` ends with status 1 where one is wrong.

Files of numpy.save of one dimension are read without NumPy, so that any Python can do it.
"""

from __future__ import annotations

import array
import sys
from pathlib import Path


def numbers(path: str) -> array.array[float]:
    """The single-precision numbers of a file in version 1 of NumPy's format."""
    content = Path(path).read_bytes()
    header = 10 + int.from_bytes(content[8:10], "little")
    return array.array("f", content[header:])


def main(y_file: str, x_file: str, degree: int) -> int:
    """Exit status."""
    for at, (y, x) in enumerate(zip(numbers(y_file), numbers(x_file), strict=True)):
        expected = sum(x**power / (power + 1) for power in range(degree + 1))
        if not abs(y - expected) <= 1e-4 * abs(expected):
            print(f"y[{at}] is {y}, and {expected} is right", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))

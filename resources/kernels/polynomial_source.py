"""Prints a C function that evaluates a polynomial of a given degree for n numbers: by Horner's rule or term by term."""

from __future__ import annotations

import sys


def source(degree: int, scheme: str) -> str:
    """The coefficients are 1, 1/2, 1/3, ..."""
    coefficients = [f"{1 / (power + 1):.9f}f" for power in range(degree + 1)]
    if scheme == "horner":
        value = coefficients[-1]
        for coefficient in reversed(coefficients[:-1]):
            value = f"({value} * t + {coefficient})"
    else:
        terms = [" * ".join([coefficient] + ["t"] * power) for power, coefficient in enumerate(coefficients)]
        value = " + ".join(terms)
    return f"""
void polynomial(float *restrict y, const float *restrict x) {{
    for (int i = 0; i < n; i++) {{
        const float t = x[i];
        y[i] = {value};
    }}
}}
"""


if __name__ == "__main__":
    print(source(int(sys.argv[1]), sys.argv[2]))

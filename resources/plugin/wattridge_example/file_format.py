"""A file format: rows of `name=value` words, in files that end in `.points`.

Columns are named as in any table that Wattridge reads: `time (ms)`, `energy (J)`, parameters by their own names.
"""

from wattridge import InputError


def read(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        row = dict(word.partition("=")[::2] for word in line.split(";"))
        try:
            yield {name.strip(): float(value) for name, value in row.items()}
        except ValueError:
            raise InputError(f"line {number}: '{line[:40]}' is not NAME=VALUE; ...", str(path), "correct it") from None

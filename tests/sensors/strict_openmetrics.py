"""A strict reader of OpenMetrics text 1.0.0, by the specification's grammar: anything else is an AssertionError."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = r"[a-zA-Z_][a-zA-Z0-9_]*"
_QUOTED = r'"(?:[^"\\\n]|\\["\\n])*"'
_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|Inf)|NaN"
_META = re.compile(rf"# (TYPE|UNIT|HELP) ({_NAME}) (.*)")
_SAMPLE = re.compile(rf"({_NAME})(?:\{{((?:{_LABEL}={_QUOTED}(?:,{_LABEL}={_QUOTED})*)?)\}})? ({_NUMBER})")
_PAIR = re.compile(rf"({_LABEL})=({_QUOTED})")
_SUFFIXES = {"gauge": {""}, "counter": {"_total", "_created"}, "info": {"_info"}, "stateset": {""}, "unknown": {""}}


@dataclass
class Family:
    kind: str = "unknown"
    unit: str = ""
    help: str = ""
    samples: dict[tuple[str, frozenset[tuple[str, str]]], float] = field(default_factory=dict)

    def value(self, **labels: str) -> float:
        """The one sample with these labels among its own."""
        [found] = [v for (_, told), v in self.samples.items() if set(labels.items()) <= told]
        return found


def parse(text: str) -> dict[str, Family]:
    """Every family by name."""
    assert text.endswith("# EOF\n"), "the document ends with # EOF"
    assert "\r" not in text
    lines = text.split("\n")[:-2]
    families: dict[str, Family] = {}
    current = ""
    for line in lines:
        assert line == line.strip(), line
        assert line, "no blank lines"
        if line.startswith("#"):
            meta = _META.fullmatch(line)
            assert meta, line
            kind, name, rest = meta.groups()
            if name != current:
                assert name not in families, f"{name} comes twice"
                families[name] = Family()
                current = name
            family = families[name]
            assert not family.samples, "metadata stand before samples"
            _take_meta(family, name, kind, rest)
            continue
        sample = _SAMPLE.fullmatch(line)
        assert sample, line
        name, labels, number = sample.groups()
        family = families.get(current)
        assert family is not None
        assert name.startswith(current), f"{name} is not of {current}: families do not mix"
        suffix = name.removeprefix(current)
        assert suffix in _SUFFIXES[family.kind], f"{name} is no sample of a {family.kind}"
        _take_sample(family, current, suffix, labels or "", float(number))
    names = [name + suffix for name, family in families.items() for suffix in _SUFFIXES[family.kind]]
    assert len(names) == len(set(names)), "sample names of two families clash"
    return families


def _take_meta(family: Family, name: str, kind: str, rest: str) -> None:
    if kind == "TYPE":
        assert rest in _SUFFIXES, rest
        family.kind = rest
    elif kind == "UNIT":
        assert re.fullmatch(r"[a-z_]*", rest), rest
        assert name.endswith(f"_{rest}"), f"{name} does not end in its unit {rest}"
        assert family.kind in ("gauge", "counter", "unknown")
        family.unit = rest
    else:
        assert not re.search(r'(?<!\\)(?:\\\\)*"', rest), "quotes are escaped"
        family.help = rest


def _take_sample(family: Family, name: str, suffix: str, labels: str, value: float) -> None:
    pairs = _PAIR.findall(labels)
    assert len({key for key, _ in pairs}) == len(pairs), "a label comes twice"
    told = frozenset(
        (key, re.sub(r"\\(.)", lambda m: "\n" if m.group(1) == "n" else m.group(1), text[1:-1])) for key, text in pairs
    )
    assert (suffix, told) not in family.samples, "the same sample twice"
    if family.kind == "counter":
        assert value >= 0
    if family.kind == "info":
        assert value == 1
    if family.kind == "stateset":
        assert value in (0, 1)
        assert name in {key for key, _ in told}, "a state set names its states by a label of its name"
    family.samples[suffix, told] = value

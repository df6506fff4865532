"""The rows of a table in a JSON document, however deep they lie: a list of objects, objects under keys, or columns."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from types import MappingProxyType
from typing import Any, Final

from .vocabulary import PATTERNS

Plain = str | int | float | bool | None

_DEEPEST: Final = 8
_LONGEST_NAME: Final = 200
_STATISTICS: Final = frozenset(("unit", "avg", "mean", "median", "p50"))
_SINGLE: Final = re.compile(r"request|sample|successful|errored|incomplete|token|histogram|bins|latenc|raw_data|times$")
_ASKED: Final = re.compile(r"(request|prompt|query|question)(_?(id|idx|index|num|number))?")
_MEAN: Final = re.compile(r"(avg|mean|average|overall)_.*(tok|throughput|time|latency|rate)")
_FIGURE: Final = re.compile(r"power|watt|energy|joule|tok|throughput|latency|time|flops|_ms|_s$|/s$|rate")
_OF_WORK: Final = re.compile(r"time|latency|tok|throughput|flops|_ms|rate$")
_SEVERAL: Final = 5  # objects, of which some may have other names
_MOST: Final = 0.7  # share of them that have a name in common
_SUMMARY: Final = 3  # figures beside lists: these are what was summed up
_TOTAL: Final = re.compile(r"(?i)(grand_?)?total[_ ].*(time|duration|energy|joule|power|watt|[kmg]?wh|_[smj])")
_BOARDS: Final = re.compile(r"(?i)(per_)?(gpu|device|board|card|accelerator|rank)s?")
_OF_A_RUN: Final = re.compile(r"latency|tok|throughput|flops|_ms|rate$|duration|runtime")
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


def rows_in(document: object) -> list[dict[str, Any]]:
    """Return the rows of a document.

    Parameters
    ----------
    document : object
        What a JSON file holds.

    Returns
    -------
    list of dict
        The longest list of objects in it, with the plain values above it; else the objects under keys of their own,
        with these keys as 'key', 'key 2' and so on; else columns of one length; else the document as one row. Empty if
        it holds nothing of the kind.
    """
    if isinstance(document, list):
        return _of_list(document, _NOTHING, 0)
    if not isinstance(document, dict):
        return []
    lists = _of_pandas(document) or _best_list(document, _NOTHING, 0)
    if len(lists) > 1:
        plain = {key: value for key, value in document.items() if _is_plain(value)}
        of_requests = any(map(_ASKED.fullmatch, lists[0])) and any(map(_MEAN.match, plain))
        return [plain] if of_requests else lists
    columns = {key: value for key, value in document.items() if isinstance(value, list) and all(map(_is_plain, value))}
    lengths = {len(value) for value in columns.values()}
    if len(columns) > 1 and len(lengths) == 1 and lengths != {0}:
        beside = {key: value for key, value in document.items() if _is_plain(value)}
        if sum(bool(_FIGURE.search(key.lower())) for key in beside) >= _SUMMARY:  # of requests that are listed
            return [beside]
        return [{**beside, **dict(zip(columns, row, strict=True))} for row in zip(*columns.values(), strict=True)]
    under_keys = list(_under_keys(document, _NOTHING, 0))
    return under_keys if len(under_keys) > 1 else lists or ([document] if document else [])


def _of_pandas(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of what pandas writes: beside the names of their columns, or cells under the numbers of their rows."""
    columns = list(document.values())
    match document:
        case {"columns": list(names), "data": [list(), *_] as data}:
            return [dict(zip(map(str, names), row, strict=False)) for row in data if isinstance(row, list)]
    if len(columns) < 2 or not all(isinstance(column, dict) for column in columns):
        return []
    numbers = [str(row) for row in range(len(columns[0]))]
    if len(numbers) < 2 or not all([*column] == numbers and all(map(_is_plain, column.values())) for column in columns):
        return []
    return [{name: column[number] for name, column in document.items()} for number in numbers]


def flattened(document: object, prefix: str = "") -> Iterator[tuple[str, Plain]]:
    """Yield the plain values of an object, those within objects as 'outer.inner'.

    Parameters
    ----------
    document : object
        A row.
    prefix : str, optional
        What stands before each name.

    Yields
    ------
    name : str
        Where the value is.
    value : str, int, float, bool or None
        None for null and for numbers that are not finite. Lists are left out.
    """
    if not isinstance(document, dict) or prefix.count(".") > _DEEPEST:
        return
    for key, value in document.items():
        name = f"{prefix}{key}"[:_LONGEST_NAME]
        if isinstance(value, dict):
            yield from flattened(value, f"{name}.")
        elif value is None or (isinstance(value, float) and not math.isfinite(value)):
            yield name, None
        elif _is_plain(value):
            yield name, value


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, str | int | float | bool)


def _of_list(items: list[Any], above: Mapping[str, Any], depth: int) -> list[dict[str, Any]]:
    """The objects of a list; where each holds a longer list of its own, the rows of those."""
    if not items or not all(isinstance(item, dict) for item in items):
        return []
    items = [dict(_with_boards(item)) for item in items]
    deeper = items if depth < _DEEPEST else []
    inner = [_best_list(_without_single(item), above, depth + 1, of_all=False) for item in deeper]
    if inner and all(len(rows) > 1 for rows in inner):
        return [row for rows in inner for row in rows]
    if all(map(_are_side_by_side, items)):
        return [row for item in items for row in _under_keys(item, above, 1)]
    return [{**above, **item} for item in items]


def _with_boards(item: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """A run with what its boards drew, which stand in a list, each under its number; another item as it is."""
    for key, value in item.items():
        of_boards = isinstance(value, list) and _BOARDS.fullmatch(key) and all(isinstance(each, dict) for each in value)
        listed = value if of_boards else ()
        inner = " ".join(name.lower() for board in listed for name in board)
        beside = " ".join(name.lower() for name, each in item.items() if _is_plain(each))
        energies = "energy" in inner or "joule" in inner
        of_one_run = _OF_A_RUN.search(beside) or (energies and "time" in beside.replace("timestamp", ""))
        if len(listed) > 1 and of_one_run and (energies or "power" in inner) and not _OF_WORK.search(inner):
            for number, board in enumerate(listed):
                yield f"gpu {number}", {name: each for name, each in board.items() if _FIGURE.search(name.lower())}
        else:
            yield key, value


def _without_single(item: Mapping[str, Any]) -> dict[str, Any]:
    """Without the requests, samples and bins that one row was made of."""
    return {key: value for key, value in item.items() if not (_SINGLE.search(key) and isinstance(value, list | dict))}


def _best_list(
    document: Mapping[str, Any], above: Mapping[str, Any], depth: int, *, of_all: bool = True
) -> list[dict[str, Any]]:
    """The longest list of rows below an object, with what is said on the way to it, but for what sums rows up.

    What is said in a row of another list, where it is not `of_all` rows, may be what was measured.
    """
    if depth > _DEEPEST:
        return []
    if of_all and (figures := set(_figures_in_lists(document))):
        document = dict(_without_sums(document, figures))
    plain = {**above, **{key: value for key, value in document.items() if _is_plain(value)}}
    for key, value in document.items():  # the settings of what follows
        if isinstance(value, dict) and not _holds_rows(value):
            plain[key] = value
    found: list[list[dict[str, Any]]] = []
    by_key: dict[str, list[dict[str, Any]]] = {}
    listed: dict[str, list[dict[str, Any]]] = {}
    for key, value in document.items():
        if isinstance(value, list):
            found.append(rows := _of_list(value, plain, depth))
            listed |= {key: rows} if rows and any(map(_is_of_work, map(str.lower, rows[0]))) else {}
        elif isinstance(value, dict):
            found.append(rows := _best_list(value, plain, depth + 1, of_all=of_all))
            by_key |= {key: rows} if rows else {}
    for named in (by_key, listed):
        if len({tuple(rows[0]) for rows in named.values()}) == 1 < len(named):  # rows of one kind, under their names
            found.append([{_key_name(plain): key, **row} for key, rows in named.items() for row in rows])
    return max(found, key=lambda rows: (_is_measured(rows, plain), len(rows)), default=[])


def _is_of_work(name: str) -> bool:
    """Tell a figure by its name from a power, which a log has as well."""
    return bool(_FIGURE.search(name) or PATTERNS["named_rate"].search(name)) and not re.search("power|watt", name)


def _figures_in_lists(value: object) -> Iterator[str]:
    """The figures in the first objects of the lists below, by their names."""
    for each in value.values() if isinstance(value, dict) else ():
        first = each[0] if isinstance(each, list) and each else each
        yield from (name for name, _ in flattened(first) if first is not each and _FIGURE.search(name.lower()))
        yield from _figures_in_lists(first)


def _without_sums(document: Mapping[str, Any], figures: Set[str]) -> Iterator[tuple[str, Any]]:
    """Leave out of what is said beside rows with these figures a best, a mean or another row, a sum, and a total."""
    for key, value in document.items():
        if not isinstance(value, dict) or _holds_rows(value):
            if not (_is_plain(value) and _TOTAL.match(key)):
                yield key, value
            continue
        own = {n for n, each in flattened(value) if isinstance(each, int | float) and _FIGURE.search(n.lower())}
        if not own & figures and not PATTERNS["summary"].fullmatch(key):
            yield key, {name: each for name, each in value.items() if not _TOTAL.match(name)}


def _key_name(above: Mapping[str, Any]) -> str:
    """Name the key of a row: 'key', then 'key 2' and so on."""
    used = sum(name.split(" ")[0] == "key" for name in above)
    return f"key {used + 1}" if used else "key"


def _is_measured(rows: list[dict[str, Any]], above: Mapping[str, Any]) -> bool:
    """Tell whether rows hold a figure of work that is not said above them, by its name."""
    own = {key: value for key, value in rows[0].items() if key not in above} if rows else {}
    return any(_FIGURE.search(name.lower()) for name, _ in flattened(own))


def _holds_rows(value: object) -> bool:
    """Look for a list of objects anywhere below."""
    if isinstance(value, list):
        return any(isinstance(item, dict) for item in value)
    return isinstance(value, dict) and any(map(_holds_rows, value.values()))


def _under_keys(document: Mapping[str, Any], above: Mapping[str, Any], depth: int) -> Iterator[dict[str, Any]]:
    """Objects without objects in them, with the keys on the way to them."""
    inner = {
        key: value for key, value in document.items() if isinstance(value, dict) and not _STATISTICS & value.keys()
    }
    plain = {**above, **{key: value for key, value in document.items() if not isinstance(value, dict)}}
    if not inner or depth > _DEEPEST:
        yield {**above, **document}
    elif len(inner) == 1:
        yield from _under_keys(next(iter(inner.values())), plain, depth + 1)
    elif depth or _alike(inner):
        name = _key_name(above)
        for key, value in inner.items():
            yield from _under_keys(value, {**plain, name: key}, depth + 1)
    elif groups := _groups_of_rows(inner):
        others = inner.keys() - groups.keys()  # such as what was measured on
        beside = {key: value for key, value in inner.items() if key in others and not _holds_objects(value)}
        yield from _under_keys(groups, {**plain, **beside}, depth)
    else:
        yield {**above, **document}


def _are_side_by_side(item: Mapping[str, Any]) -> bool:
    """Tell whether a row holds objects of the same names, such as times, each of another thing that ran."""
    objects = [value for value in item.values() if isinstance(value, dict)]
    names = {frozenset(each) for each in objects}
    figures = any(_OF_WORK.search(name.lower()) for each in objects for name in each)
    plain = all(_is_plain(value) for each in objects for value in each.values())
    return len(objects) > 1 and len(names) == 1 and figures and plain and not _STATISTICS & names.pop()


def _groups_of_rows(inner: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """The objects that hold the rows: those that hold objects, where they are alike, else the one of most figures."""
    groups = {key: value for key, value in inner.items() if _holds_objects(value)}
    if len(groups) > 1 and _alike(groups):
        return groups
    figures = {key: sum(bool(_FIGURE.search(n.lower())) for n, _ in flattened(groups[key])) for key in groups}
    most = max(figures, key=figures.__getitem__, default="")
    return {most: groups[most]} if most and figures[most] and len(groups[most]) > 1 and _alike(groups[most]) else {}


def _holds_objects(value: Mapping[str, Any]) -> bool:
    return bool(value) and all(isinstance(each, dict) for each in value.values())


def _alike(objects: Mapping[Any, Any]) -> bool:
    """Tell whether objects have names in common, as the rows of a table do."""
    names = [set(value) for value in objects.values()]
    inner = [value for each in objects.values() for value in each.values()]
    if set.intersection(*names) or len(inner) < 2 or not all(isinstance(value, dict) for value in inner):
        return bool(set.intersection(*names))
    shared = Counter(name for value in inner for name in value).most_common(1)  # one that failed has other names
    return _alike(dict(enumerate(inner))) or (len(inner) >= _SEVERAL and shared[0][1] > _MOST * len(inner))

"""Records: dataclasses whose fields state a label, unit and digits; as JSON, read back, and as a JSON Schema.

The JSON document of a record has a key for each field, in snake case with the unit at its end. NaN and infinities are
null, paths and enumerations text. `figure` states more of a field; the class attribute `IN_JSON` names properties that
the document has too, or gives each a key.
"""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cache
from pathlib import Path, PurePath
from typing import Annotated, Any, Final, Literal, NotRequired, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")
# What a schema says of a type beside what follows from it.
Count = Annotated[int, ("minimum", 0)]
Finite = Annotated[float, ("type", "number")]  # never null
Amount = Annotated[float, ("type", "number"), ("minimum", 0)]
Share = Annotated[float, ("minimum", 0), ("maximum", 1)]
DateTime = Annotated[str, ("format", "date-time")]
_SOURCE: Final = (
    "Where the figures come from: nvml, amd, simulated, recorded, ... Anything but a driver is no real board."
)
Source = Annotated[str, ("description", _SOURCE)]
_VALUES: Final = "Measured values and metrics by name, which ends in the unit: time_s, energy_j. Null where not known."
Values = Annotated[Mapping[str, float], ("description", _VALUES)]

_SIMPLE: Final[Mapping[Any, Mapping[str, Any]]] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": ["number", "null"]},
    str: {"type": "string"},
    Path: {"type": "string"},
    type(None): {"type": "null"},
    Any: {},
    object: {},
}


@dataclasses.dataclass(frozen=True, slots=True)
class Stated:
    """What is stated of a field: how a description shows it, and where it is in the JSON document."""

    label: str = ""  # empty: no description has it
    unit: str = ""
    digits: int = 4
    meaning: str = ""
    scale: float = 1.0  # of the value, in `unit`: 100 for a share in %
    key: str | None = ""  # in the document, where it is not the field's name; None: not in it
    keys: Sequence[str] = ()  # of a mapping, those that are always there
    nullable: bool = False  # text that is null in the document where it is empty
    absent: bool = False  # the document has no such key where the value is None
    flat: bool = False  # a record with a `value`: time_s is that, and its other fields are time_s_interval and so on


def figure(
    label: str = "",
    unit: str = "",
    digits: int = 4,
    *,
    meaning: str = "",
    scale: float = 1.0,
    key: str | None = "",
    keys: Sequence[str] = (),
    nullable: bool = False,
    absent: bool = False,
    flat: bool = False,
) -> Mapping[str, Stated]:
    """State more of a field, as its metadata: `energy_j: float = field(metadata=figure("Energy", "J"))`.

    The arguments are those of `Stated`. A field without it is in the document, and in no description.
    """
    return {"stated": Stated(label, unit, digits, meaning, scale, key, keys, nullable, absent, flat)}


_NOTHING: Final = Stated()


@cache
def stated(kind: Any) -> Mapping[str, Stated]:
    """Return what is stated of each field of a class of records, by the field's name."""
    return {field.name: field.metadata.get("stated", _NOTHING) for field in dataclasses.fields(kind)}


def as_json(value: Any) -> Any:
    """Return a value as JSON can hold it: records become objects, arrays lists, NaN and infinities null."""
    if hasattr(value, "tolist"):  # NumPy's arrays and scalars, without importing it
        value = value.tolist()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = _document(value)
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Enum):
        return value.value
    return str(value) if isinstance(value, PurePath) else value


def from_json(kind: type[T], document: Any) -> T:
    """Read a record of that class from the document that `as_json` makes of it.

    A key that an older program did not write gets the field's default. Raises ValueError, TypeError or LookupError
    where the document is damaged, as one with no key of the record is.
    """
    record: Any = kind
    if not isinstance(document, Mapping) or not document.keys() & _names(record).keys():
        raise ValueError(f"not the document of a {record.__name__}")
    hints = _hints(record)
    given: dict[str, Any] = {}
    for field in dataclasses.fields(record):
        stated_value = field.metadata.get("stated", _NOTHING)
        key = stated_value.key or field.name
        if stated_value.key is not None and (key in document or _is_required(field)):
            value = document[key]
            given[field.name] = "" if stated_value.nullable and value is None else _read(hints[field.name], value)
    return kind(**given)


def json_schema(*kinds: Any) -> dict[str, Any]:
    """Return the JSON Schema of a type: a record, a typed dictionary, a union of such, or what they are made of.

    Of several types it is that of a document which has the keys of all of them.
    """
    defined: dict[str, Any] = {}
    schemas = [_schema(kind, defined) for kind in kinds]
    schema = schemas[0] if len(schemas) == 1 else {"allOf": schemas}
    return {**schema, "$defs": defined} if defined else schema


# --- inside -----------------------------------------------------------------------------------------------------------


def _document(record: Any) -> Mapping[str, Any]:
    fields_stated = stated(record.__class__)
    document: dict[str, Any] = {}
    for key, name in _names(record.__class__).items():
        value, more = getattr(record, name), fields_stated.get(name, _NOTHING)
        if more.flat and value is not None:
            parts = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            document |= {_flat(key, part): item for part, item in parts.items()}
        elif not (more.absent and value is None):
            document[key] = None if more.nullable and not value else value
    return document


def _flat(key: str, part: str) -> str:
    return key if part == "value" else f"{key}_{part}"


@cache
def _names(kind: Any) -> Mapping[str, str]:
    """The attribute that each key of a record's document has."""
    fields = {known.key or name: name for name, known in stated(kind).items() if known.key is not None}
    return {**fields, **_properties(kind)}


def _properties(kind: Any) -> Mapping[str, str]:
    """The property that each further key has."""
    more: Mapping[str, str] | Sequence[str] = getattr(kind, "IN_JSON", ())
    return more if isinstance(more, Mapping) else {name: name for name in more}


@cache
def _hints(kind: Any) -> Mapping[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    for name in _properties(kind).values():
        getter = getattr(kind, name).fget
        hints[name] = get_type_hints(getter, include_extras=True)["return"]
    return hints


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and dataclasses.is_dataclass(kind)


def _is_union(origin: Any) -> bool:
    return origin is Union or origin is types.UnionType


def _read(kind: Any, value: Any) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _read(arguments[0], value)
    if _is_union(origin):
        if value is None and type(None) in arguments:
            return None
        (kind,) = (argument for argument in arguments if argument is not type(None))
        return _read(kind, value)
    if _is_record(kind):
        return from_json(kind, value)
    if origin is Literal or (isinstance(kind, type) and issubclass(kind, Enum)):
        return _one_of(kind, arguments, value)
    if origin is None:
        return _simple(kind, value)
    if (scalar := _scalar_of_array(kind)) is not None:
        return _array(scalar, value)
    if issubclass(origin, Mapping):
        return {str(key): _read(arguments[1], item) for key, item in value.items()}
    if origin is tuple and arguments[-1] is not ...:
        return tuple(_read(kind, item) for kind, item in zip(arguments, value, strict=True))
    return tuple(_read(arguments[0], item) for item in value)


def _one_of(kind: Any, values: Sequence[Any], value: Any) -> Any:
    if not values:
        return kind(value)  # of an enumeration; raises ValueError
    if value not in values:
        raise ValueError(f"{value!r} is none of {values}")
    return value


def _simple(kind: Any, value: Any) -> Any:
    if kind is Any:
        return value
    if kind is float and value is None:
        return math.nan
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not kind:
        raise TypeError(f"{value!r} is not of the type {kind.__name__}")
    return value


def _scalar_of_array(kind: Any) -> Any:
    """The type of an `NDArray`'s elements, None of other types.

    Up to NumPy 2.4 `NDArray[np.float64]` is an `ndarray` of a shape and a dtype, from 2.5 on an alias of that with the
    scalar as its argument.
    """
    name = getattr(get_origin(kind), "__name__", "")
    if name == "NDArray":
        return get_args(kind)[0]
    return get_args(get_args(kind)[1])[0] if name == "ndarray" else None


def _array(scalar: Any, value: Any) -> Any:
    import numpy as np

    return np.asarray(value, dtype=scalar)


def _schema(kind: Any, defined: dict[str, Any]) -> dict[str, Any]:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in _SIMPLE:
        return dict(_SIMPLE[kind])
    if origin is Annotated:
        return {**_schema(arguments[0], defined), **dict(arguments[1:])}
    if origin is NotRequired:
        return _schema(arguments[0], defined)
    if _is_union(origin):
        return _union([_schema(argument, defined) for argument in arguments])
    if origin is Literal:
        return {"enum": list(arguments)}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {"enum": [item.value for item in kind]}
    if _is_record(kind) or hasattr(kind, "__required_keys__"):
        if kind.__name__ not in defined:
            defined[kind.__name__] = {}  # a record may hold records of its own kind
            defined[kind.__name__] = _object(kind, defined)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    if (scalar := _scalar_of_array(kind)) is not None:
        return {"type": "array", "items": _schema({"f": float, "b": bool}.get(scalar.__name__[0], int), defined)}
    if issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _schema(arguments[1], defined)}
    if origin is tuple and arguments[-1] is not ...:
        items = _union([_schema(value, defined) for value in dict.fromkeys(arguments)])
        return {"type": "array", "items": items, "minItems": len(arguments), "maxItems": len(arguments)}
    return {"type": "array", "items": _schema(arguments[0], defined)}


def _union(schemas: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One type of several where nothing but the types differs."""
    rest = [{key: value for key, value in schema.items() if key != "type"} for schema in schemas]
    telling = [item for item in rest if item]
    if all("type" in schema for schema in schemas) and len(telling) <= 1:
        listed = [schema["type"] for schema in schemas]
        kinds = dict.fromkeys(kind for entry in listed for kind in (entry if isinstance(entry, list) else [entry]))
        if "number" in kinds:
            kinds.pop("integer", None)
        return {**(telling[0] if telling else {}), "type": [*kinds] if len(kinds) > 1 else next(iter(kinds))}
    return {"anyOf": [dict(schema) for schema in schemas]}


def _object(kind: Any, defined: dict[str, Any]) -> dict[str, Any]:
    hints = _hints(kind)
    notes = stated(kind) if _is_record(kind) else {}
    names = _names(kind) if notes else {name: name for name in hints}
    properties: dict[str, Any] = {}
    optional: set[str] = set()
    for key, name in names.items():
        hint, more = hints[name], notes.get(name, _NOTHING)
        if more.absent:
            (hint,) = (argument for argument in get_args(hint) if argument is not type(None))
        schema = _schema(hint, defined)
        if more.nullable:
            schema["type"] = ["string", "null"]
        if more.keys:
            values = dict.fromkeys(more.keys, schema["additionalProperties"])
            schema = {"type": "object", "properties": values, "required": list(more.keys)}
        words = f"{more.label}, {more.meaning}" if more.label and more.meaning else more.label
        parts = {key: {"description": words, **schema} if words else schema}
        if more.flat:
            held = next(value for value in (hint, *get_args(hint)) if _is_record(value))
            parts = {_flat(key, part): schema for part, schema in _object(held, defined)["properties"].items()}
            optional |= set() if held is hint else parts.keys() - {key}
        if more.absent or get_origin(hint) is NotRequired:
            optional |= parts.keys()
        properties |= parts
    return {
        "type": "object",
        "properties": properties,
        "required": [key for key in properties if key not in optional],
    }

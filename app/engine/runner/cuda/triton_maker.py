"""Triton as a compiler of products of halves: processes of `compile_worker` compile with it, this one asks its version.

It compiles without a GPU, for any compute capability from 8.0 on. Of its own cache nothing stays: images are kept as
those of every compiler are.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from ....base.errors import WattridgeError
from ...children.scratch import scratch_folder
from ...specification.operator_shapes import Operator, parse_operator
from ...specification.triton_kernels import TRITON_KERNEL, triton_constants, triton_starts
from ..kernels.made_image import made_image

_PACKAGES: Final = ("triton", "pytorch-triton")  # the second comes with PyTorch's nightly wheels
_ARCHITECTURE: Final = re.compile(r"-arch=sm_(\d+)")
_ENTRY: Final = re.compile(r"\.entry\s+\w+\s*\(([^)]*)\)")
_POINTERS: Final = {"fp16": "*fp16", "bf16": "*bf16"}
_WARM: Final = "mm:1,64,64,64:fp16"  # the first text takes several times as long as those that follow


@lru_cache(maxsize=1)
def triton_version() -> str | None:
    """The installed release; None without one. Triton is not imported."""
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            return version(package)
    return None


def compile_text(text: str, options: Sequence[str]) -> tuple[bytes, str]:
    """The image, empty if it does not compile, and what Triton said.

    `text` is JSON: a configuration, and its operator by its notation. The image is a line of JSON, and machine code.
    """
    folder = scratch_folder()
    os.environ["TRITON_CACHE_DIR"] = str(folder)
    try:
        given = json.loads(text) if text else {"operator": _WARM, **triton_starts(parse_operator(_WARM))[-1]}
        architecture = next((int(found[1]) for found in map(_ARCHITECTURE.fullmatch, options) if found), 80)
        return _image(parse_operator(str(given["operator"])), given, architecture), ""
    except WattridgeError as error:
        return b"", f"error: {error}"
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - Triton raises what it likes; one kernel must not end the process
        first: BaseException = error
        while first.__cause__ is not None:  # what it came from says what is wrong, those around it where
            first = first.__cause__
        return b"", f"error: {type(first).__name__}: {first}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _image(operator: Operator, configuration: Mapping[str, Any], architecture: int) -> bytes:
    from triton import compile as compiled
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    made = triton_constants(operator, configuration)
    function = _kernel().multiply
    constants = {**made["SIZES"], **made["TILE"]}
    number = _POINTERS[operator.precision]
    pointers = {"c": number, "a": number, "b": number, "bias": number, "workspace": "*fp32", "arrived": "*u32"}
    if not operator.has_bias:
        del pointers["bias"]
        constants["bias"] = None
    signature = {name: pointers.get(name, "constexpr") for name in function.arg_names}
    aligned = {(function.arg_names.index(name),): [["tt.divisibility", 16]] for name in pointers}
    source = ASTSource(function, signature, constants, aligned)
    kernel = compiled(source, target=GPUTarget("cuda", architecture, 32), options=made["OPTIONS"])
    entry = _ENTRY.search(kernel.asm["ptx"])
    facts = {
        "maker": "triton",
        "kernel": kernel.metadata.name,
        "threads": 32 * kernel.metadata.num_warps,
        "shared_byte": kernel.metadata.shared,
        "scratch_byte": getattr(kernel.metadata, "global_scratch_size", 0) or 0,
        "profile_byte": getattr(kernel.metadata, "profile_scratch_size", 0) or 0,
        "appended": (entry[1].count(".param") if entry else len(pointers)) - len(pointers),
    }
    return made_image(facts, kernel.asm["cubin"])


@lru_cache(maxsize=1)
def _kernel() -> Any:
    """The module of the kernel: Triton reads functions from their file."""
    os.environ.pop("TRITON_INTERPRET", None)  # which would leave nothing to compile
    spec = importlib.util.spec_from_file_location("mm_triton", TRITON_KERNEL)
    if spec is None or spec.loader is None:
        raise WattridgeError("the kernel's file is not here", str(TRITON_KERNEL), "install Wattridge again")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

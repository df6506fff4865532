"""Files to take home of what other makers have for an operator: an algorithm of cuBLASLt, a kernel of Triton."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from ...base.files import read_text
from ...base.paths import resources
from ..formats.c_header import comment_text
from ..results.measurement import Configuration, Value
from ..runner.cuda.cublaslt import EPILOGUES, TYPES, WORKSPACE, Algorithm
from ..runner.kernels.reference import Baseline
from ..specification.operator_shapes import (
    ALGORITHM,
    CUBLASLT,
    LIBRARY,
    MAKER,
    OURS,
    PRECISIONS,
    TRITON,
    Operator,
    parse_operator,
)
from ..specification.triton_kernels import sizes_of, triton_script
from ..workloads.kernel_arguments import Argument
from .cuda_export import CudaFile

_KERNELS: Final = resources() / "kernels" / "operators"
_NOTHING: Final = "the library as it is is the answer, and nothing has to be exported"
_WORKSPACE: Final = Argument("workspace", "uint8", (WORKSPACE,), "zeros", None, output=True, constant=False, seed=0)
_HAS: Final[Mapping[str, tuple[str, ...]]] = {  # kinds of files by maker
    OURS: ("source", "code"),
    CUBLASLT: ("code", "python"),
    TRITON: ("python",),
    LIBRARY: (),
}


def maker_of(origin: Mapping[str, str], configuration: Mapping[str, Value]) -> str:
    """Who made the kernel of a session's configuration: of what is no operator's, nobody but who wrote its source."""
    operator = origin.get("operator")
    return OURS if operator is None else str(configuration.get(MAKER, parse_operator(operator).usual_maker))


def why_no_file(maker: str, kind: str) -> str:
    """Why there is no `source`, `code` or `python` of what a maker has; empty where there may be."""
    has = _HAS.get(maker, ())
    if kind in has:
        return ""
    if maker == OURS:
        return "a Python file is of what cuBLASLt or Triton has for a session's operator, and this is neither"
    return _NOTHING if not has else f"there is no '{kind}' of what {maker} made, but '{has[-1]}'"


def remarks_on(maker: str, origin: Mapping[str, str], configuration: Configuration) -> list[str]:
    """What stands at the head of each file, and is said of them."""
    if maker == LIBRARY:
        return [f"{_measured_with(origin)}: {_NOTHING}."]
    if maker == CUBLASLT:
        return [f"cuBLASLt's algorithm {configuration[ALGORITHM]}, measured with {_measured_with(origin)}."]
    return ["A kernel of Wattridge in Triton."] if maker == TRITON else []


def library_file(file: CudaFile) -> CudaFile:
    """With the arguments that cuBLASLt takes: those of the operator, and its workspace."""
    calls = file.prepared.calls
    given = tuple(each for each in calls.arguments if each.output or each.fill != "zeros")
    prepared = replace(file.prepared, calls=replace(calls, arguments=(*given, _WORKSPACE)))
    return replace(file, prepared=prepared)


def library_declaration(file: CudaFile) -> list[str]:
    """Lines of a header, of the two functions of `library_source`."""
    lines = [line.replace("what CUDA says", "what cuBLASLt says") for line in file.declaration()]
    linkage = ["#ifdef __cplusplus", 'extern "C"', "#endif"]
    return [*lines, "/* What the last call refused, in words. */", *linkage, "const char *why_mm(void);"]


def library_source(file: CudaFile, origin: Mapping[str, str], remarks: Sequence[str]) -> str:
    """The file of C: the algorithm's settings, and the function of `file` by cuBLASLt."""
    operator = parse_operator(origin["operator"])
    algorithm = Algorithm.of_word(str(file.configuration[ALGORITHM]))
    defined = {
        **{name: size for name, size in sizes_of(operator).items() if name != "ACTIVATION"},
        "TYPE": TYPES[operator.precision],
        "EPILOGUE": EPILOGUES[operator.epilogue],
        "HAS_BIAS": int(operator.has_bias),
        "ALGORITHM": ", ".join(map(str, algorithm)),
        "WORKSPACE": WORKSPACE,
        "WORD": f'"{algorithm.word}"',
        "OPERATOR": f'"{operator.notation}"',
        "MEASURED": f'"{_measured_with(origin)}"',
        "SIGNATURE": file.signature.removeprefix("int "),
    }
    lines = [
        *(f"/* {comment_text(remark)} */" for remark in remarks),
        "/* Compile: cc -c, with cublasLt.h of CUDA 11.1 or newer; link with -lcublasLt.",
        "   Call it once before it is recorded in a graph, from one thread, for one GPU: the current one of that call.",
        "   It asks the library for this algorithm, and takes no other: where it returns another number than 0,",
        "   why_mm() says what was refused. */",
        *(f"#define MM_{name} {value}" for name, value in defined.items()),
        "",
        read_text(_KERNELS / "mm_cublaslt.c"),
    ]
    return "\n".join(lines)


def script(maker: str, origin: Mapping[str, str], configuration: Configuration, remarks: Sequence[str]) -> str:
    """A file of Python with `mm(a, b, bias)` on tensors of PyTorch; run by itself, a check and a time."""
    operator = parse_operator(origin["operator"])
    made = (
        triton_script(operator, configuration) if maker == TRITON else _library_script(operator, origin, configuration)
    )
    return "".join(f"# {comment_text(remark)}\n" for remark in remarks) + made


def _library_script(operator: Operator, origin: Mapping[str, str], configuration: Configuration) -> str:
    algorithm = Algorithm.of_word(str(configuration[ALGORITHM]))
    made = {
        "SIZES": sizes_of(operator),
        "ALGORITHM": tuple(algorithm),
        "TYPE": PRECISIONS[operator.precision][0],
        "NUMBER": TYPES[operator.precision],
        "EPILOGUE": EPILOGUES[operator.epilogue],
        "HAS_BIAS": operator.has_bias,
        "WORKSPACE": WORKSPACE,
        "MEASURED": _measured_with(origin),
    }
    parts = (
        f'"""{operator.notation} by an algorithm of cuBLASLt: run this file for a check and a time.\n',
        "Needs PyTorch, and an NVIDIA GPU. `mm(a, b, bias)` is the function to import; it raises RuntimeError",
        'where this release of the library does not have the algorithm, and takes no other.\n"""\n',
        *(f"{name} = {value!r}" for name, value in made.items()),
        "",
        read_text(_KERNELS / "mm_cublaslt.py"),
        "",
        read_text(_KERNELS / "mm_alone.py"),
    )
    return "\n".join(parts)


def _measured_with(origin: Mapping[str, str]) -> str:
    """As a string in any language has it between its quotes."""
    library = Baseline.of_origin(origin)
    text = library.library if library is not None and library.library else "a release that is not known"
    return "".join(each for each in text if each.isascii() and each.isprintable() and each not in '"\\')

"""A configuration's kernel as one file with a function that launches it: CUDA source, or machine code in C.

The source holds the defines and what the kernel's files include. The machine code is what was measured, launched
through CUDA's driver.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ...base.files import read_text
from ...sensors.limits import DeviceLimits
from ..formats.c_header import comment_text, identifier
from ..results.measurement import Value
from ..runner.cuda.measured_code import MeasuredCode, capability_of
from ..space.array_expressions import number_type
from ..specification.model import Specification
from ..specification.operator_shapes import ALGORITHM, MAKER
from ..workloads.kernel_arguments import Argument
from ..workloads.source_kernel import Prepared, SourceKernel, define_lines

_INCLUDE: Final = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)".*$', re.MULTILINE)
_MOST_INCLUDES: Final = 200
_WORDS: Final = 4  # of 64 bits, on a line of an image
_C_TYPES: Final = {  # of arrays; a half-precision number is two bytes to a caller
    "float16": "unsigned short",
    "bfloat16": "unsigned short",
    "float32": "float",
    "float64": "double",
    "bool": "unsigned char",
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "long long",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long long",
}


@dataclass(frozen=True, slots=True)
class CudaFile:
    """A specification's kernel with one configuration's values, as a board of those limits launches it."""

    spec: Specification
    configuration: Mapping[str, Value]
    limits: DeviceLimits
    prepared: Prepared

    @classmethod
    def of(cls, spec: Specification, configuration: Mapping[str, Value], limits: DeviceLimits) -> CudaFile:
        """Raises InputError if there is no source, KernelRefused if the board could not launch it."""
        opt_in = limits.shared_memory_per_multiprocessor  # what a block may ask for beyond the default
        own = {*spec.parameters, MAKER, ALGORITHM}
        parameters = {name: value for name, value in configuration.items() if name in own}
        return cls(spec, parameters, limits, SourceKernel.of(spec, limits, opt_in).prepare(dict(parameters)))

    def source(self, remarks: Sequence[str]) -> str:
        """The whole file. nvcc compiles it; NVRTC too, which leaves out the host function."""
        kernel = self.spec.kernel
        assert kernel is not None, "it was prepared"
        seen: set[Path] = set()
        texts = [_with_includes(path, kernel.include, seen) for path in kernel.sources]
        capability = f"{self.limits.compute_capability:.1f}".replace(".", "")
        lines = [
            *(f"// {comment_text(remark)}" for remark in remarks),
            f"// Compile: nvcc -c -arch=sm_{capability} {' '.join(kernel.compiler_options)}".rstrip(),
            "#ifndef __CUDACC_RTC__",
            "#include <cuda_runtime.h>",
            "#endif",
            *define_lines(self.spec, self.configuration),
            *texts,
            *self._host_function(),
        ]
        return "\n".join(lines) + "\n"

    def declaration(self) -> list[str]:
        """Lines of a header: what a caller has to provide, and the function, for C and C++."""
        room = [f" * {argument.name}: {self._meaning(argument)}" for argument in self.prepared.calls.arguments]
        return [
            "/*",
            " * Queues one launch on a stream (0: the default one); returns what CUDA says, 0 for success.",
            " * Arrays are on the device.",
            *room,
            " */",
            "#ifdef __cplusplus",
            'extern "C"',
            "#endif",
            f"{self.signature};",
        ]

    def facts(self) -> dict[str, Any]:
        """For a document: the launch, and the arguments in their order."""
        launch = self.prepared.launch
        return {
            "function": self._name,
            "grid": list(launch.grid),
            "block": list(launch.block),
            "dynamic_shared_byte": launch.shared_byte,
            "arguments": [
                {
                    "name": argument.name,
                    "type": argument.type,
                    "shape": None if argument.shape is None else list(argument.shape),
                    "value": argument.value,
                    "output": argument.output,
                    "zeroed": argument.fill == "zeros" and not argument.output and argument.shape is not None,
                }
                for argument in self.prepared.calls.arguments
            ],
        }

    @property
    def signature(self) -> str:
        """Of the function, in C."""
        parameters = [self._declared(argument) for argument in self.prepared.calls.arguments]
        return f"int {self._name}({', '.join([*parameters, 'void *stream'])})"

    @property
    def opts_in(self) -> bool:
        """Whether a launch needs more shared memory than blocks have by default."""
        return self.prepared.launch.shared_byte > self.limits.shared_memory_per_block

    def written(self, argument: Argument) -> str:
        """An argument's name where no macro has it."""
        taken = {**self.spec.constants, **self.spec.parameters}
        name = identifier(argument.name)
        while name in taken:
            name += "_"
        return name

    # --- inside -----------------------------------------------------------------------------------------------------

    @property
    def _name(self) -> str:
        return f"launch_{identifier(self.prepared.launch.name)}"

    def _declared(self, argument: Argument) -> str:
        kind = _C_TYPES.get(argument.type, "void")
        if argument.shape is None:
            return f"{kind} {self.written(argument)}"
        scratch = argument.fill == "zeros" and not argument.output  # what a kernel leaves for itself
        return f"{'' if argument.output or scratch else 'const '}{kind} *{self.written(argument)}"

    def _meaning(self, argument: Argument) -> str:
        if argument.shape is None:
            return f"{argument.value} when it was measured"
        size = math.prod(argument.shape) * number_type(argument.type).itemsize
        message = f"{' x '.join(map(str, argument.shape))} numbers of type {argument.type}, {size} bytes"
        if argument.output:
            return f"{message}, written"
        return f"{message}, zeroed once before the first launch" if argument.fill == "zeros" else message

    def _host_function(self) -> list[str]:
        kernel, launch = self.spec.kernel, self.prepared.launch
        assert kernel is not None, "it was prepared"
        function = f"{launch.name}<{kernel.template}>" if kernel.template else launch.name
        lines = [
            "",
            "#ifndef __CUDACC_RTC__",
            f'extern "C" {self.signature} {{',
            f"    const void *function_ = (const void *){function};",
        ]
        given = []
        for argument in self.prepared.calls.arguments:
            name = self.written(argument)
            if argument.constant:
                lines += [
                    f"    if (cudaError_t failed_ = cudaMemcpyToSymbolAsync({argument.name}, {name}, "
                    f"sizeof({argument.name}), 0, cudaMemcpyDefault, (cudaStream_t)stream)) return failed_;"
                ]
            else:
                given.append(f"(void *)&{name}")
        if self.opts_in:
            lines += [
                "    if (cudaError_t failed_ = cudaFuncSetAttribute(function_, "
                f"cudaFuncAttributeMaxDynamicSharedMemorySize, {launch.shared_byte})) return failed_;"
            ]
        grid, block = (", ".join(map(str, sizes)) for sizes in (launch.grid, launch.block))
        return [
            *lines,
            f"    void *arguments_[] = {{{', '.join(given)}}};",
            f"    return cudaLaunchKernel(function_, dim3({grid}), dim3({block}), arguments_, {launch.shared_byte}, "
            "(cudaStream_t)stream);",
            "}",
            "#endif",
        ]


def _with_includes(path: Path, folders: Sequence[Path], seen: set[Path]) -> str:
    """A file's text with the files in place that it includes and that lie beside it; each once."""
    seen.add(path.resolve())

    def text_of(match: re.Match[str]) -> str:
        for folder in (path.parent, *folders):
            other = folder / match[1]
            if other.is_file() and len(seen) < _MOST_INCLUDES:
                return "" if other.resolve() in seen else _with_includes(other, folders, seen)
        return match[0]

    return _INCLUDE.sub(text_of, read_text(path))


def code_source(file: CudaFile, code: MeasuredCode, remarks: Sequence[str]) -> str:
    """The whole file: the image, and the function of `file` by the driver. A compiler of C takes it, without nvcc."""
    launch, (major, _) = file.prepared.launch, capability_of(code.compiler) or (0, 0)
    lines = [
        *(f"// {comment_text(remark)}" for remark in remarks),
        f"// For boards of compute capability {major}.x.",
        "// Compile: cc -c, with cuda.h of CUDA 12 or newer; link with -lcuda.",
        "// Call it once before it is recorded in a graph: the first call loads the code.",
        "#include <cuda.h>",
        "",
        f"static const unsigned long long image_[] = {{  // {len(code.image)} bytes",
        *_words(code.image),
        "};",
        "",
        f"{file.signature} {{",
        "    static CUlibrary library_;",
        "    CUkernel kernel_;",
        "    CUfunction function_;",
        "    CUresult failed_ = library_ ? CUDA_SUCCESS : cuLibraryLoadData(&library_, image_, 0, 0, 0, 0, 0, 0);",
        f'    if (!failed_) failed_ = cuLibraryGetKernel(&kernel_, library_, "{code.kernel}");',
        "    if (!failed_) failed_ = cuKernelGetFunction(&function_, kernel_);",
    ]
    given = []
    for argument in file.prepared.calls.arguments:
        name = file.written(argument)
        if argument.constant:
            lines += [
                f"    CUdeviceptr {name}_at_;",
                f"    size_t {name}_size_;",
                f"    if (!failed_) failed_ = cuLibraryGetGlobal(&{name}_at_, &{name}_size_, library_, "
                f'"{argument.name}");',
                f"    if (!failed_) failed_ = cuMemcpyAsync({name}_at_, (CUdeviceptr){name}, {name}_size_, "
                "(CUstream)stream);",
            ]
        else:
            given.append(f"(void *)&{name}")
    if file.opts_in:
        lines += [
            "    if (!failed_) failed_ = cuFuncSetAttribute(function_, "
            f"CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, {launch.shared_byte});"
        ]
    grid, block = (", ".join(map(str, sizes)) for sizes in (launch.grid, launch.block))
    lines += [
        f"    void *arguments_[] = {{{', '.join(given) or '0'}}};",
        f"    if (!failed_) failed_ = cuLaunchKernel(function_, {grid}, {block}, {launch.shared_byte}, "
        "(CUstream)stream, arguments_, 0);",
        "    return failed_;",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _words(image: bytes) -> list[str]:
    """The image as numbers of 64 bits, which are aligned as the driver requires; with a zero behind, which ends PTX."""
    whole = image + bytes(8 - len(image) % 8)
    words = [f"0x{int.from_bytes(whole[index : index + 8], 'little'):016x}," for index in range(0, len(whole), 8)]
    return ["    " + " ".join(words[position : position + _WORDS]) for position in range(0, len(words), _WORDS)]

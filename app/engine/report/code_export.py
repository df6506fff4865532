"""The machine code that was measured as one C file, with the function that launches it by CUDA's driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..formats.c_header import comment_text
from ..runner.cuda.measured_code import MeasuredCode, capability_of
from .cuda_export import CudaFile

_WORDS: Final = 4  # of 64 bits, on a line


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
    """The image as numbers of 64 bits, which are aligned as the driver wants it; with a zero behind, which ends PTX."""
    whole = image + bytes(8 - len(image) % 8)
    words = [f"0x{int.from_bytes(whole[index : index + 8], 'little'):016x}," for index in range(0, len(whole), 8)]
    return ["    " + " ".join(words[position : position + _WORDS]) for position in range(0, len(words), _WORDS)]

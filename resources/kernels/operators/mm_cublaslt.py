import ctypes
import ctypes.util
import sys
from pathlib import Path

import torch

_FIELDS = ("id", "tile", "split-K", "reduction", "swizzle", "custom", "stages", "inner shape", "cluster shape")
_made = {}  # the product and its algorithm, by device
_at = ctypes.byref


def library():
    """cuBLASLt: the release that PyTorch has loaded, else that of NVIDIA's packages or of the system."""
    major = str(torch.version.cuda).split(".", maxsplit=1)[0]
    names = [f"libcublasLt.so.{major}", f"cublasLt64_{major}.dll"]
    folders = [Path(place or ".") / "nvidia" for place in sys.path]
    names += [str(path) for folder in folders for path in sorted(folder.glob(f"*/lib/libcublasLt.so.{major}"))]
    for name in [*names, ctypes.util.find_library("cublasLt")]:
        try:
            return ctypes.CDLL(name) if name else None
        except OSError:
            continue
    return None


class Product:
    """The product and its algorithm on the current device. Raises RuntimeError where this cuBLASLt does not have it."""

    def __init__(self, sizes=SIZES):
        self.library = library()
        if self.library is None:
            raise RuntimeError("cuBLASLt was not found: install PyTorch with CUDA, or nvidia-cublas-cu12")
        batch, m, n, k = (sizes[name] for name in ("BATCH", "M", "N", "K"))
        across_a, across_b = sizes["A_ACROSS"], sizes["B_ACROSS"]
        self.handle = self.created("cublasLtCreate")
        self.description = self.created("cublasLtMatmulDescCreate", 68, 0)  # sums in FP32
        for place, value in ((3, across_b), (4, across_a), (7, EPILOGUE)):
            self.put("cublasLtMatmulDescSetAttribute", self.description, place, ctypes.c_int32(value))
        # column by column: the result's transpose is b' a'
        shapes = ((k, n) if across_b else (n, k), (m, k) if across_a else (k, m), (n, m))
        self.b, self.a, self.c = (self.layout(*shape, batch) for shape in shapes)
        self.algorithm, self.workspace = self.checked()

    @property
    def version(self):
        self.library.cublasLtGetVersion.restype = ctypes.c_size_t
        major, rest = divmod(int(self.library.cublasLtGetVersion()), 10000)
        return f"cuBLASLt {major}.{rest // 100}.{rest % 100}"

    def queue(self, c, a, b, bias, workspace, stream):
        """Queue it on addresses on the device; a bias of None where there is none."""
        if bias is not None:
            self.put("cublasLtMatmulDescSetAttribute", self.description, 8, ctypes.c_void_p(bias))
        one, zero = ctypes.c_float(1.0), ctypes.c_float(0.0)
        c, a, b, room, on = (ctypes.c_void_p(address) for address in (c, a, b, workspace, stream))
        words = (_at(one), b, self.b, a, self.a, _at(zero), c, self.c, c, self.c, _at(self.algorithm), room)
        self.call("cublasLtMatmul", self.handle, self.description, *words, ctypes.c_size_t(self.workspace), on)

    def checked(self):
        """The algorithm as this release has it, and the bytes of workspace it needs; never another one."""
        made, found = (ctypes.c_uint64 * 8)(), (ctypes.c_uint64 * 12)()  # the algorithm again, then its workspace
        try:
            self.call("cublasLtMatmulAlgoInit", self.handle, 68, 0, *(NUMBER,) * 4, ALGORITHM[0], _at(made))
            for place, value in enumerate(ALGORITHM[1:], start=1):
                kind = ctypes.c_uint32 if place < 7 else ctypes.c_uint16
                self.put("cublasLtMatmulAlgoConfigSetAttribute", _at(made), place, kind(value))
            shapes = (self.description, self.b, self.a, self.c, self.c)
            self.call("cublasLtMatmulAlgoCheck", self.handle, *shapes, _at(made), _at(found))
        except RuntimeError as error:
            settings = ", ".join(f"{name} {value}" for name, value in zip(_FIELDS, ALGORITHM))  # noqa: B905
            raise RuntimeError(
                f"{self.version} does not have this algorithm here ({settings}); it was measured with "
                f"{MEASURED}: {error}"
            ) from None
        if found[8] > WORKSPACE:
            raise RuntimeError(f"{self.version}: this algorithm needs {found[8]} bytes of workspace here")
        return made, int(found[8])

    def layout(self, rows, columns, batch):
        extents = (ctypes.c_uint64(rows), ctypes.c_uint64(columns), ctypes.c_int64(rows))
        made = self.created("cublasLtMatrixLayoutCreate", NUMBER, *extents)
        self.put("cublasLtMatrixLayoutSetAttribute", made, 5, ctypes.c_int32(batch))
        self.put("cublasLtMatrixLayoutSetAttribute", made, 6, ctypes.c_int64(rows * columns))
        return made

    def created(self, function, *arguments):
        made = ctypes.c_void_p()
        self.call(function, _at(made), *arguments)
        return made

    def put(self, function, of, place, value):
        self.call(function, of, place, _at(value), ctypes.c_size_t(ctypes.sizeof(value)))

    def call(self, function, *arguments):
        status = getattr(self.library, function)(*arguments)
        if status:
            raise RuntimeError(f"{function} returned {status}")


def mm(a, b, bias=None):
    """c = f(a b + bias): a new tensor of batch x M x N numbers, of M x N where a has no batch.

    a is stored as batch x M x K, or as batch x K x M where A_ACROSS is 1; b as batch x K x N, or batch x N x K where
    B_ACROSS is 1; both contiguous, on one GPU, of the type TYPE. Without a batch the first axis may be left out.
    Raises ValueError for other operands, RuntimeError where this cuBLASLt does not have the algorithm.
    """
    c = checked(a, b, bias)
    if str(c.dtype) != f"torch.{TYPE}" or (bias is not None) != HAS_BIAS:
        wanted = f"operands of type {TYPE}, {'with' if HAS_BIAS else 'without'} a bias"
        raise ValueError(f"{wanted}, are what this algorithm is for")
    with torch.cuda.device(a.device):
        if a.device not in _made:
            _made[a.device] = Product()
        product = _made[a.device]
        room = torch.empty(max(1, product.workspace), device=a.device, dtype=torch.uint8)
        given = None if bias is None else bias.data_ptr()
        stream = torch.cuda.current_stream().cuda_stream
        product.queue(c.data_ptr(), a.data_ptr(), b.data_ptr(), given, room.data_ptr(), stream)
    return c

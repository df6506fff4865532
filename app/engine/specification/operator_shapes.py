"""What operators there are, how their shapes are written, and what one launch calculates and moves at least."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...base.errors import InputError
from ..results.measurement import Value

AXES: Final[Mapping[str, tuple[str, ...]]] = {  # of a shape, in the field's order
    "mm": ("batch", "M", "N", "K"),
    "mv": ("batch", "M", "N", "K"),
    "conv2d": ("batch", "H", "W", "Cin", "Cout", "kernel", "stride", "pad"),
}
KINDS: Final = tuple(AXES)
MEANINGS: Final[Mapping[str, str]] = {
    "mm": "c[b] = a[b] b[b]: a of M x K, b of K x N, c of M x N numbers, row by row; halves in any layout",
    "mv": "y[b] = w[b] x[b]: w of N x K numbers, row by row; M is 1",
    "conv2d": "a convolution, forward: images as batch, H, W, Cin; weights as kernel, kernel, Cin, Cout",
}
PRECISIONS: Final[Mapping[str, tuple[str, int]]] = {  # type of the operands, its bytes; sums are in FP32
    "fp32": ("float32", 4),
    "fp16": ("float16", 2),  # products on tensor cores
    "bf16": ("bfloat16", 2),
}
LAYOUTS: Final[Mapping[str, str]] = {  # of the operands of a product
    "nn": "a of M x K and b of K x N numbers",
    "nt": "b lies as N x K: both contiguous along K, as PyTorch's linear has them",
    "tn": "a lies as K x M",
    "tt": "a lies as K x M, b as N x K",
}
EPILOGUES: Final = ("", "bias", "gelu", "silu", "bias+gelu", "bias+silu")  # after the sums; GELU by its tanh form
MAKER: Final = "maker"  # the parameter that says who made a kernel: ours, triton, or a library
OURS: Final = "wattridge"
LIBRARY: Final = "library"  # the vendor's, as it does it by itself
CUBLASLT: Final = "cublaslt"
TRITON: Final = "triton"
ALGORITHM: Final = "algorithm"  # the parameter with the maker's word for one of its own
NO_ALGORITHM: Final = "-"
_LACKING: Final = (0, NO_ALGORITHM)
_LARGEST_IMAGE: Final = 2**14  # along an edge
_MOST: Final = 2**24  # of one extent
_MOST_NUMBERS: Final = 2**33  # of one array


def parameters_had(configuration: Mapping[str, Value]) -> dict[str, Value]:
    """Leave out what a row of the library does not have: it holds 0 or '-' for the other makers' parameters."""
    lacks = configuration.get(MAKER) == LIBRARY
    return {name: value for name, value in configuration.items() if not (lacks and value in _LACKING)}


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator. Raises InputError for a shape that makes no sense."""

    kind: str
    shape: tuple[int, ...]
    precision: str = "fp32"
    layout: str = "nn"  # of a and b: 'n' row by row as they are written, 't' transposed
    epilogue: str = ""

    def __post_init__(self) -> None:
        where = f"operator {self.notation}"
        axes = AXES.get(self.kind)
        if axes is None:
            raise InputError(f"there is no operator '{self.kind}'", where, f"one of {', '.join(KINDS)}")
        if self.precision not in PRECISIONS:
            raise InputError(f"no {self.kind} in '{self.precision}'", where, f"one of {', '.join(PRECISIONS)}")
        if self.layout not in LAYOUTS or self.epilogue not in EPILOGUES:
            remedy = f"layouts: {', '.join(LAYOUTS)}; epilogues: {', '.join(EPILOGUES[1:])}"
            raise InputError("a layout or epilogue that there is not", where, remedy)
        if (self.layout, self.epilogue) != ("nn", "") and not self.by_makers:
            raise InputError(f"{self.kind} in {self.precision} has no layout or epilogue", where, "leave them out")
        if self.kind == "conv2d" and self.precision != "fp32":
            raise InputError(f"no conv2d in {self.precision}", where, "fp32; a kernel of 1 x 1 is mm in halves")
        if len(self.shape) != len(axes):
            raise InputError(f"{len(self.shape)} numbers", where, f"{self.kind} takes {', '.join(axes)}")
        for axis, size in zip(axes, self.shape, strict=True):
            least = 0 if axis == "pad" else 1
            if not least <= size <= _MOST:
                raise InputError(f"{axis} is {size}", where, f"a whole number from {least} to {_MOST}")
        if self.kind == "mv" and self.sizes["M"] != 1:
            raise InputError("M of a matrix-vector product is 1", where, f"for others use mm:{_listed(self.shape)}")
        if self.kind == "conv2d" and min(self.output_extents) < 1:
            raise InputError("the kernel is larger than the padded image", where, "enlarge H, W or pad")
        if self.kind == "conv2d" and (max(self.shape[1:3]) > _LARGEST_IMAGE or max(self.shape[5:]) > 1000):
            raise InputError("the image or the kernel is too large", where, f"H and W at most {_LARGEST_IMAGE}")
        if max(self.numbers) > (_MOST_NUMBERS if self.kind != "conv2d" else 2**31 - 1):
            raise InputError(f"an array of {max(self.numbers):.2g} numbers", where, "make the shape smaller")

    @property
    def notation(self) -> str:
        """As the command line takes it: mm:1,512,512,512."""
        layout = self.layout if self.layout != "nn" else ""
        precision = self.precision if self.precision != "fp32" else ""
        return ":".join(filter(None, (self.kind, _listed(self.shape), precision, layout, self.epilogue)))

    @property
    def name(self) -> str:
        """For a file: mm-1-512-512-512."""
        return self.notation.translate(str.maketrans(":,+", "---"))

    @property
    def by_makers(self) -> bool:
        """Whether its kernels are those of cuBLASLt and Triton: products of halves, on tensor cores."""
        return self.kind == "mm" and self.precision != "fp32"

    @property
    def transposed(self) -> tuple[bool, bool]:
        """Whether a and b lie transposed."""
        return self.layout[0] == "t", self.layout[1] == "t"

    @property
    def usual_maker(self) -> str:
        """Who makes a kernel of which nothing else is said."""
        return TRITON if self.by_makers else OURS

    @property
    def has_bias(self) -> bool:
        """Whether its epilogue adds one, of a number for each column."""
        return self.epilogue.startswith("bias")

    @property
    def output(self) -> tuple[str, int]:
        """Type of the output, and its bytes: float32, and that of the operands where makers of kernels for them are."""
        return PRECISIONS[self.precision if self.by_makers else "fp32"]

    @property
    def sizes(self) -> dict[str, int]:
        """The shape by the names of its axes."""
        return dict(zip(AXES[self.kind], self.shape, strict=True))

    @property
    def arithmetic(self) -> str:
        """The precision of its multiply-adds, as rooflines and published peaks name it."""
        return "fp32" if self.kind == "mv" or self.precision == "fp32" else f"{self.precision}_tensor"

    @property
    def output_extents(self) -> tuple[int, int]:
        """Height and width of what a convolution writes."""
        size = self.sizes
        h, w = (
            (size[axis] + 2 * size["pad"] - size["kernel"]) // size["stride"] + 1 if size["stride"] else 0
            for axis in ("H", "W")
        )
        return h, w

    @property
    def product(self) -> tuple[int, int, int, int]:
        """(batch, rows, columns, depth) of the products that it comes down to; a convolution is one product."""
        size = self.sizes
        if self.kind == "mm":
            return size["batch"], size["M"], size["N"], size["K"]
        if self.kind == "mv":
            return size["batch"], size["N"], 1, size["K"]
        height, width = self.output_extents
        return 1, size["batch"] * height * width, size["Cout"], size["kernel"] ** 2 * size["Cin"]

    @property
    def numbers(self) -> tuple[int, int, int]:
        """How many the output, the first operand (a, w, images) and the second (b, x, weights) have."""
        batch, rows, columns, depth = self.product
        size = self.sizes
        first = batch * rows * depth
        if self.kind == "conv2d":
            first = size["batch"] * size["H"] * size["W"] * size["Cin"]
        return batch * rows * columns, first, batch * depth * columns

    @property
    def work_flop(self) -> int:
        """Two for each multiply-add; those of padding count too, as usual."""
        return 2 * math.prod(self.product)

    @property
    def least_byte(self) -> int:
        """Operands and output through device memory once."""
        written, *read = self.numbers
        bias = self.shape[2] if self.has_bias else 0
        return written * self.output[1] + (sum(read) + bias) * PRECISIONS[self.precision][1]


def parse_operator(text: str) -> Operator:
    """An operator as `notation` writes it; 'MM1' and the other names of EXAMPLES do too. Raises InputError."""
    if (named := EXAMPLES.get(text.upper())) is not None:
        return named
    kind, shaped, *words = [*text.split(":"), ""]
    remedy = "write mm:1,512,512,512, and where it is not fp32 its precision after it: mm:1,16,4096,4096:bf16:nt"
    if not shaped:
        raise InputError(f"'{text}' is no operator", "operator", remedy)
    try:
        shape = tuple(int(part) for part in shaped.split(","))
    except ValueError:
        raise InputError(f"'{shaped}' is no shape", f"operator {text}", remedy) from None
    said: dict[str, str] = {}
    for word in filter(None, words):
        known = {"precision": PRECISIONS, "layout": LAYOUTS, "epilogue": EPILOGUES}
        what = next((name for name, those in known.items() if word in those and name not in said), "precision")
        if what in said:
            raise InputError(f"'{word}' is neither a layout nor an epilogue", f"operator {text}", remedy)
        said[what] = word
    return Operator(kind, shape, **said)


def is_operator(text: str) -> bool:
    """Whether a word of the command line names an operator rather than a file."""
    return text.upper() in EXAMPLES or (text.split(":")[0] in KINDS and ":" in text)


def _listed(shape: Sequence[int]) -> str:
    return ",".join(map(str, shape))


EXAMPLES: Final[Mapping[str, Operator]] = {  # the shapes of [Zhang2024], as it names them
    "MM1": Operator("mm", (1, 512, 512, 512)),
    "MM2": Operator("mm", (1, 1024, 1024, 1024)),
    "MM3": Operator("mm", (8, 512, 512, 512)),
    "MM4": Operator("mm", (8, 1024, 1024, 1024)),
    "MV1": Operator("mv", (1, 1, 49512, 12288)),
    "MV2": Operator("mv", (1, 1, 32768, 16384)),
    "MV3": Operator("mv", (8, 1, 4096, 1024)),
    "MV4": Operator("mv", (8, 1, 8192, 2048)),
    "CONV1": Operator("conv2d", (8, 7, 7, 512, 512, 3, 1, 1)),
    "CONV2": Operator("conv2d", (16, 56, 56, 64, 64, 1, 1, 0)),
    "CONV3": Operator("conv2d", (64, 56, 56, 64, 64, 1, 1, 0)),
}

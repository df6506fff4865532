"""Our Triton kernel against `torch.mm` on a board: BF16, both operands contiguous along the inputs, FP32 sums.

    python tests/benchmarks/triton_on_board.py      needs PyTorch and Triton alone, sets nothing, takes about a minute

Each configuration is compared with a product in FP32 first; times are medians of CUDA graphs of 20 launches on the same
operands, which the L2 cache may hold for both sides.
"""

from __future__ import annotations

import importlib.util
import tempfile
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import triton

KERNELS = Path(__file__).resolve().parents[2] / "resources" / "kernels" / "operators"
LAST_START_S = 80.0
NAMES = ("block_m", "block_n", "block_k", "stages", "warps", "group_m", "persistent", "tma", "split_k", "swap")
DECODE = (
    (16, 64, 128, 4, 4, 1, 0, 0, 2, 0),
    (16, 64, 128, 4, 4, 1, 0, 0, 4, 0),
    (16, 64, 128, 5, 4, 1, 0, 1, 2, 1),
    (16, 64, 128, 5, 4, 1, 0, 1, 4, 1),
    (16, 64, 256, 3, 4, 1, 0, 1, 2, 1),
    (16, 128, 128, 4, 4, 1, 0, 1, 4, 1),
    (16, 128, 64, 6, 4, 1, 0, 0, 4, 1),
    (16, 64, 128, 4, 4, 1, 0, 0, 2, 1),
    (16, 32, 128, 5, 4, 1, 0, 0, 1, 0),
    (16, 32, 256, 4, 4, 1, 0, 0, 1, 0),
    (16, 32, 128, 5, 4, 1, 0, 1, 2, 0),
    (16, 32, 256, 3, 2, 1, 0, 0, 2, 0),
    (16, 16, 256, 4, 2, 1, 0, 0, 1, 0),
)
WIDE_DECODE = (
    (64, 128, 64, 5, 4, 1, 0, 1, 1, 0),
    (64, 128, 128, 3, 4, 1, 0, 1, 1, 0),
    (64, 128, 64, 5, 4, 1, 0, 1, 1, 1),
    (64, 128, 128, 3, 8, 1, 0, 1, 1, 1),
    (64, 128, 64, 4, 4, 1, 0, 0, 1, 0),
    (64, 128, 64, 5, 4, 1, 0, 1, 2, 1),
    (64, 64, 128, 4, 4, 1, 0, 1, 1, 0),
    (64, 64, 128, 4, 4, 1, 0, 0, 1, 0),
    (64, 64, 128, 3, 4, 1, 0, 1, 2, 0),
    (64, 256, 64, 4, 8, 1, 0, 1, 2, 1),
    (64, 64, 128, 4, 4, 1, 1, 2, 1, 0),
    (32, 128, 64, 5, 4, 2, 0, 1, 1, 1),
)
SMALL = (
    (64, 128, 64, 5, 4, 8, 0, 1, 1, 0),
    (64, 128, 64, 5, 4, 8, 0, 2, 1, 0),
    (64, 128, 64, 4, 4, 8, 0, 0, 1, 0),
    (64, 128, 128, 3, 4, 8, 0, 1, 1, 0),
    (64, 128, 128, 3, 4, 8, 0, 0, 1, 0),
    (128, 64, 64, 5, 4, 8, 0, 1, 1, 0),
    (128, 64, 128, 3, 8, 8, 0, 1, 1, 0),
    (128, 64, 64, 4, 4, 8, 0, 0, 1, 0),
    (128, 128, 64, 4, 8, 8, 0, 1, 2, 0),
    (128, 128, 64, 4, 4, 8, 0, 1, 1, 0),
    (64, 64, 128, 4, 4, 8, 0, 0, 1, 0),
    (64, 64, 128, 4, 4, 8, 0, 1, 1, 0),
)
LARGE = (
    (128, 256, 64, 3, 8, 8, 1, 2, 1, 0),
    (128, 256, 64, 4, 8, 8, 1, 1, 1, 0),
    (128, 256, 64, 4, 8, 8, 0, 1, 1, 0),
    (128, 256, 64, 4, 8, 8, 0, 2, 1, 0),
    (128, 256, 64, 3, 8, 8, 0, 0, 1, 0),
    (256, 128, 64, 3, 8, 8, 1, 2, 1, 0),
    (256, 128, 64, 4, 8, 8, 0, 2, 1, 0),
    (256, 128, 64, 4, 8, 8, 1, 1, 1, 0),
    (128, 128, 64, 4, 8, 8, 0, 1, 1, 0),
    (128, 128, 64, 3, 4, 8, 2, 1, 1, 0),
    (128, 128, 128, 3, 8, 8, 0, 1, 1, 0),
    (128, 128, 64, 3, 4, 8, 0, 2, 1, 0),
)
SHAPES = (
    ((4096, 16, 4096), DECODE),
    ((14336, 64, 4096), WIDE_DECODE),
    ((1024, 1024, 1024), SMALL),
    ((2048, 2048, 2048), LARGE),
    ((4096, 4096, 4096), LARGE),
)


def loaded(folder: str) -> ModuleType:
    """The kernel and what launches it, as one module: Triton reads functions from their file."""
    path = Path(folder) / "mm_alone.py"
    constants = "SIZES = TILE = OPTIONS = {}\n"
    texts = [
        (KERNELS / name).read_text(encoding="utf-8") for name in ("mm_triton.py", "mm_triton_alone.py", "mm_alone.py")
    ]
    path.write_text("\n".join([texts[0], constants, *texts[1:]]), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("mm_alone", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def measured(alone: ModuleType, shape: tuple[int, int, int], tiles: tuple[tuple[int, ...], ...], began: float) -> None:
    """One shape: the library's time, then a line for each configuration and the best of them."""
    outputs, tokens, inputs = shape
    sizes: dict[str, Any] = {"BATCH": 1, "M": tokens, "N": outputs, "K": inputs}
    sizes |= {"A_ACROSS": 0, "B_ACROSS": 1, "ACTIVATION": ""}
    a, b, _ = (None if x is None else x.squeeze(0) for x in alone.operands(torch.bfloat16, sizes=sizes))
    wanted = alone.reference(a, b, sizes=sizes)
    c = torch.empty_like(wanted, dtype=torch.bfloat16)
    library = alone.milliseconds(lambda: torch.mm(a, b.t(), out=c))
    off = alone.worst(c, wanted)
    print(f"\n{outputs} x {tokens} x {inputs}: torch.mm {library * 1e3:.1f} us, off {off:.2f}", flush=True)
    best = (float("inf"), "none")
    for numbers in tiles:
        if time.monotonic() - began > LAST_START_S:
            print("  out of time")
            break
        tile = dict(zip(NAMES, numbers, strict=True))
        options = {"num_warps": tile.pop("warps"), "num_stages": tile.pop("stages")}
        words = " ".join(f"{name}={value}" for name, value in zip(NAMES, numbers, strict=True))
        try:
            made = alone.mm(a, b, sizes=sizes, tile=tile, options=options)
            torch.cuda.synchronize()
            off = alone.worst(made, wanted)
            took = alone.milliseconds(lambda t=tile, o=options: alone.mm(a, b, sizes=sizes, tile=t, options=o))
        except Exception as error:  # noqa: BLE001 - whatever one refuses, the others are measured
            print(f"  {words}: {type(error).__name__}: {str(error).splitlines()[-1][:120] if str(error) else ''}")
            continue
        note = "" if off <= 1 else f"  WRONG by {off:.3g}"
        print(f"  {words}: {took * 1e3:7.1f} us  {took / library:.3f}{note}", flush=True)
        if off <= 1:
            best = min(best, (took / library, words))
    print(f"  best: {best[0]:.3f} of torch.mm with {best[1]}", flush=True)


def main() -> None:
    """All shapes."""
    began = time.monotonic()
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, Triton {triton.__version__}")
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        alone = loaded(folder)
        for shape, tiles in SHAPES:
            measured(alone, shape, tiles, began)
    print(f"\n{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()

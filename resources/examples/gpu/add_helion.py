"""A sum of vectors in Helion, whose configuration is chosen by energy. Needs Helion, PyTorch and a GPU.

Not run on a GPU yet: written for the interface of Helion 1.5.
"""

import helion
import helion.language as hl
import torch
import wattridge.helion

tuner = wattridge.helion.autotuner(minimise="energy_j", within=0.03, candidates=12)


@helion.kernel(autotuner_fn=tuner)
def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(out.size()):
        out[tile] = x[tile] + y[tile]
    return out


if __name__ == "__main__":
    x, y = torch.randn(2, 1 << 26, device="cuda").unbind()
    if not torch.allclose(add(x, y), x + y):
        raise SystemExit("the sum is wrong")
    print(tuner.results[-1])
    print(tuner.results[-1].table())

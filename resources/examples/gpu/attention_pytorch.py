"""PyTorch's attention, tuned over its implementations and the heads at once, for energy. Needs PyTorch and a GPU.

On an H200 flash attention over all 16 heads took the least energy of the six.
"""

import torch
import wattridge
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

q, k, v = torch.randn(3, 8, 16, 2048, 64, device="cuda", dtype=torch.float16).unbind()


def attention(backend: str, heads: int) -> torch.Tensor:
    with sdpa_kernel(getattr(SDPBackend, backend)):
        parts = zip(*(x.split(heads, dim=1) for x in (q, k, v)), strict=True)
        return torch.cat([scaled_dot_product_attention(*part) for part in parts], dim=1)


if __name__ == "__main__":
    result = wattridge.tune(
        attention,
        {"backend": ["FLASH_ATTENTION", "EFFICIENT_ATTENTION"], "heads": [4, 8, 16]},
        minimise="energy_j",
        within=0.03,  # at most 3 % slower than the fastest
    )
    print(result.best)
    print(result.table())

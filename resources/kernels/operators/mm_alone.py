import sys

import torch


def checked(a, b, bias=None, *, sizes=SIZES):
    """Room for the result. Raises ValueError for operands that this kernel is not for."""
    batch, m, n, k = (sizes[name] for name in ("BATCH", "M", "N", "K"))
    for name, operand, shape in (("a", a, (k, m) if sizes["A_ACROSS"] else (m, k)),
                                 ("b", b, (n, k) if sizes["B_ACROSS"] else (k, n))):  # fmt: skip
        wanted = (batch, *shape) if operand.dim() == 3 or batch > 1 else shape
        if tuple(operand.shape) != wanted or not operand.is_contiguous() or operand.data_ptr() % 16:
            raise ValueError(f"{name} has shape {tuple(operand.shape)}; contiguous {wanted} is what this kernel is for")
    if bias is not None and (tuple(bias.shape) != (n,) or not bias.is_contiguous()):
        raise ValueError(f"bias has shape {tuple(bias.shape)}; {n} numbers are what this kernel is for")
    types = {operand.dtype for operand in (a, b, bias) if operand is not None}
    if types not in ({torch.float16}, {torch.bfloat16}):
        raise ValueError("a, b and bias have to be of one type, torch.float16 or torch.bfloat16")
    devices = {operand.device for operand in (a, b, bias) if operand is not None}
    if len(devices) != 1 or not a.is_cuda:
        raise ValueError("a, b and bias have to be on one GPU")
    return torch.empty((batch, m, n) if a.dim() == 3 else (m, n), device=a.device, dtype=a.dtype)


def reference(a, b, bias=None, *, sizes=SIZES):
    """The same by PyTorch in FP32."""
    return by_pytorch(a.float(), b.float(), None if bias is None else bias.float(), sizes=sizes)


def operands(dtype, *, sizes=SIZES, with_bias=False):
    """Random ones on the current GPU: a, b, and the bias or None."""
    batch, m, n, k = (sizes[name] for name in ("BATCH", "M", "N", "K"))
    shapes = ((k, m) if sizes["A_ACROSS"] else (m, k), (n, k) if sizes["B_ACROSS"] else (k, n))
    a, b = (torch.randn((batch, *shape), device="cuda", dtype=dtype) for shape in shapes)
    return a, b, torch.randn(n, device="cuda", dtype=dtype) if with_bias else None


def worst(made, wanted):
    """The largest difference from FP32, as a multiple of what rounding may leave; infinite for NaN."""
    step = torch.finfo(made.dtype).eps
    ratio = (made.float() - wanted).abs() / (step * (wanted.abs() + wanted.abs().mean() / 16))
    return float(ratio.nan_to_num(nan=float("inf")).max())


def milliseconds(call, launches=20, rounds=7):
    """The median over rounds of the time of a call, many of which are recorded in a graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        call()  # compiles, and allocates what is kept
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(launches):
            call()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    times = []
    for _ in range(rounds + 1):
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / launches)
    return sorted(times[1:])[rounds // 2]


def by_pytorch(a, b, bias=None, *, sizes=SIZES):
    """The same by PyTorch in the type of the operands, one operation after the other."""
    c = torch.matmul(a.mT if sizes["A_ACROSS"] else a, b.mT if sizes["B_ACROSS"] else b)
    c = c if bias is None else c + bias
    if sizes["ACTIVATION"] == "gelu":
        return torch.nn.functional.gelu(c, approximate="tanh")
    return torch.nn.functional.silu(c) if sizes["ACTIVATION"] == "silu" else c


def main():
    """Check the result on random numbers, and compare its time with that of PyTorch."""
    torch.manual_seed(0)
    a, b, bias = operands(getattr(torch, TYPE), with_bias=HAS_BIAS)
    off = worst(mm(a, b, bias), reference(a, b, bias))
    if not off <= 4:  # parts of a sum may be rounded, too
        sys.exit(f"the result is off by {off:.3g} times what rounding may leave")
    print(f"{torch.cuda.get_device_name()}: off by {off:.2f} of what rounding may leave")
    print(f"{milliseconds(lambda: mm(a, b, bias)):.4f} ms; PyTorch "
          f"{milliseconds(lambda: by_pytorch(a, b, bias)):.4f} ms")  # fmt: skip


if __name__ == "__main__":
    main()

import torch

_left = {}  # what programs that share a tile leave for each other, by device, stream and sizes


def grid(tile, sizes, multiprocessors):
    """Programs of a launch."""
    tiles = sizes["BATCH"] * -(-sizes["M"] // tile["block_m"]) * -(-sizes["N"] // tile["block_n"])
    if tile["persistent"]:
        return min(tiles, tile["persistent"] * multiprocessors)
    return tiles * tile["split_k"]


def mm(a, b, bias=None, *, sizes=SIZES, tile=TILE, options=OPTIONS):
    """c = f(a b + bias): a new tensor of batch x M x N numbers, of M x N where a has no batch.

    a is stored as batch x M x K, or as batch x K x M where A_ACROSS is 1; b as batch x K x N, or batch x N x K where
    B_ACROSS is 1; both contiguous, on one GPU, of one type. Without a batch the first axis may be left out.
    """
    batch, m, n, k = (sizes[name] for name in ("BATCH", "M", "N", "K"))
    for name, operand, shape in (("a", a, (k, m) if sizes["A_ACROSS"] else (m, k)),
                                 ("b", b, (n, k) if sizes["B_ACROSS"] else (k, n))):  # fmt: skip
        wanted = (batch, *shape) if operand.dim() == 3 or batch > 1 else shape
        if tuple(operand.shape) != wanted or not operand.is_contiguous() or operand.data_ptr() % 16:
            raise ValueError(f"{name} has shape {tuple(operand.shape)}; contiguous {wanted} is what this kernel is for")
    if (bias is not None) != HAS_BIAS or (HAS_BIAS and tuple(bias.shape) != (n,)):
        raise ValueError(f"this kernel is for a bias of {n} numbers" if HAS_BIAS else "this kernel takes no bias")
    types = {operand.dtype for operand in (a, b, bias) if operand is not None}
    if types not in ({torch.float16}, {torch.bfloat16}):
        raise ValueError("a, b and bias have to be of one type, torch.float16 or torch.bfloat16")
    c = torch.empty((batch, m, n) if a.dim() == 3 else (m, n), device=a.device, dtype=a.dtype)
    with torch.cuda.device(a.device):
        multiprocessors = torch.cuda.get_device_properties(a.device).multi_processor_count
        programs = grid(tile, sizes, multiprocessors)
        shared_tiles = programs // tile["split_k"] if tile["split_k"] > 1 else 1
        numbers = programs * tile["block_m"] * tile["block_n"] if tile["split_k"] > 1 else 1
        where = (a.device, torch.cuda.current_stream().cuda_stream, shared_tiles, numbers)
        if where not in _left:
            _left[where] = (
                torch.empty(numbers, device=a.device, dtype=torch.float32),
                torch.zeros(shared_tiles, device=a.device, dtype=torch.uint32),
            )
        if tile["tma"]:
            triton.set_allocator(lambda size, _, __: torch.empty(size, device=a.device, dtype=torch.int8))
        multiply[(programs,)](c, a, b, bias, *_left[where], **sizes, **tile, **options)
    return c


def reference(a, b, bias=None, *, sizes=SIZES):
    """The same by PyTorch in FP32."""
    left, right = (operand.float() for operand in (a, b))
    c = torch.matmul(left.mT if sizes["A_ACROSS"] else left, right.mT if sizes["B_ACROSS"] else right)
    c = c if bias is None else c + bias.float()
    if sizes["ACTIVATION"] == "gelu":
        return torch.nn.functional.gelu(c, approximate="tanh")
    return torch.nn.functional.silu(c) if sizes["ACTIVATION"] == "silu" else c


def operands(*, sizes=SIZES):
    """Random ones on the current GPU: a, b, and the bias or None."""
    dtype = getattr(torch, TYPE)
    batch, m, n, k = (sizes[name] for name in ("BATCH", "M", "N", "K"))
    shapes = ((k, m) if sizes["A_ACROSS"] else (m, k), (n, k) if sizes["B_ACROSS"] else (k, n))
    a, b = (torch.randn((batch, *shape), device="cuda", dtype=dtype) for shape in shapes)
    return a, b, torch.randn(n, device="cuda", dtype=dtype) if HAS_BIAS else None


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


def main():
    """Compare a product with PyTorch's in FP32, and time it; the exit status is 1 where it is wrong."""
    torch.manual_seed(0)
    a, b, bias = operands()
    off = worst(mm(a, b, bias), reference(a, b, bias))
    taken = milliseconds(lambda: mm(a, b, bias))
    flop = 2 * SIZES["BATCH"] * SIZES["M"] * SIZES["N"] * SIZES["K"]
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, Triton {triton.__version__}")
    print(f"largest difference: {off:.2f} of what rounding may leave")
    print(f"{taken:.4f} ms, {flop / taken / 1e9:.1f} TFLOP/s")
    raise SystemExit(off > 1)


if __name__ == "__main__":
    main()

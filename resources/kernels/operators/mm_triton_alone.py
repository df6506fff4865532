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
    c = checked(a, b, bias, sizes=sizes)
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

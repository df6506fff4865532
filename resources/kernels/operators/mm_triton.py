# Matrix products c[b] = f(a[b] b[b] + bias) of halves on tensor cores, in Triton: BATCH of them, a of M x K, b of K x N
# and c of M x N numbers of one type, FP16 or BF16; sums in FP32. All sizes are constants of the compilation.
#
# A_ACROSS, B_ACROSS: 1 where a (b) lies transposed, as K x M (N x K) numbers row by row. ACTIVATION: '', 'gelu' (by the
# hyperbolic tangent) or 'silu'. bias: N numbers of the operands' type, or None.
#
# block_m, block_n, block_k: a program's tile of c, and the step along K. group_m: rows of tiles in a band that programs
# running at once belong to: they share stripes of a and b in the L2 cache. persistent: 0, a program for each tile, or
# as many programs for each multiprocessor, which take one tile after the other. tma: 1 reads by tensor descriptors that
# the program makes itself, 2 writes c by one, too; rows have to begin at multiples of 16 bytes. split_k: programs that
# share a tile, each with its part of K; the last to arrive sums all parts in the order of K, so that the result does
# not depend on which that is. swap: 1 multiplies the transposed tiles, for a block_m below what tensor cores take.
#
# Persistent programs keep their descriptors: with tma they take one product, no batch. A tile is shared by programs
# that are not persistent only.
import triton
import triton.language as tl


@triton.jit
def _place(tile, tiles_m: tl.constexpr, tiles_n: tl.constexpr, group_m: tl.constexpr):
    """Row and column of a tile among those of its product."""
    band = tile // (group_m * tiles_n)
    first = band * group_m
    height = tl.minimum(tiles_m - first, group_m)
    within = tile - first * tiles_n
    return first + within % height, within // height


@triton.jit
def _read(at, inside, whole: tl.constexpr):
    """A tile by its addresses: zeros where it is not inside."""
    if whole:
        tile = tl.load(at)
    else:
        tile = tl.load(at, mask=inside, other=0.0)
    return tile


@triton.jit
def _sums(
    a, b, row, column, first, steps,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, A_ACROSS: tl.constexpr, B_ACROSS: tl.constexpr,
    block_m: tl.constexpr, block_n: tl.constexpr, block_k: tl.constexpr, tma: tl.constexpr, swap: tl.constexpr,
):  # fmt: skip
    """The products of `steps` steps from `first` on of a tile; a and b are descriptors or addresses."""
    if swap:
        sums = tl.zeros((block_n, block_m), dtype=tl.float32)
    else:
        sums = tl.zeros((block_m, block_n), dtype=tl.float32)
    if tma == 0:
        rows = row + tl.arange(0, block_m)
        columns = column + tl.arange(0, block_n)
        depth = first * block_k + tl.arange(0, block_k)
        if A_ACROSS:
            a_at = a + (depth.to(tl.int64) * M)[None, :] + rows[:, None]
        else:
            a_at = a + (rows.to(tl.int64) * K)[:, None] + depth[None, :]
        if B_ACROSS:
            b_at = b + (columns.to(tl.int64) * K)[None, :] + depth[:, None]
        else:
            b_at = b + (depth.to(tl.int64) * N)[:, None] + columns[None, :]
    for step in tl.range(0, steps):
        if tma:
            at = (first + step) * block_k
            if A_ACROSS:
                x = a.load([at, row]).T
            else:
                x = a.load([row, at])
            if B_ACROSS:
                y = b.load([column, at]).T
            else:
                y = b.load([at, column])
        else:
            depth = (first + step) * block_k + tl.arange(0, block_k)
            if K % block_k == 0:
                x = _read(a_at, (rows < M)[:, None], M % block_m == 0)
                y = _read(b_at, (columns < N)[None, :], N % block_n == 0)
            else:
                x = _read(a_at, (rows < M)[:, None] & (depth < K)[None, :], False)
                y = _read(b_at, (columns < N)[None, :] & (depth < K)[:, None], False)
            a_at += block_k * M if A_ACROSS else block_k
            b_at += block_k if B_ACROSS else block_k * N
        if swap:
            sums = tl.dot(y.T, x.T, sums)
        else:
            sums = tl.dot(x, y, sums)
    if swap:
        tile = sums.T
    else:
        tile = sums
    return tile


@triton.jit
def _write(
    c, bias, sums, row, column,
    M: tl.constexpr, N: tl.constexpr, ACTIVATION: tl.constexpr,
    block_m: tl.constexpr, block_n: tl.constexpr, tma: tl.constexpr,
):  # fmt: skip
    """A tile of c at (row, column): bias, activation, rounding. c is a descriptor or an address."""
    columns = column + tl.arange(0, block_n)
    if bias is not None:
        sums += _read(bias + columns, columns < N, N % block_n == 0).to(tl.float32)[None, :]
    if ACTIVATION == "gelu":  # (1 + tanh(u)) / 2 is the logistic function of 2 u
        sums = sums * tl.sigmoid(1.5957691216057308 * (sums + 0.044715 * sums * sums * sums))
    if ACTIVATION == "silu":
        sums = sums * tl.sigmoid(sums)
    if tma == 2:
        c.store([row, column], sums.to(c.dtype))
    else:
        rows = row + tl.arange(0, block_m)
        to = c + (rows.to(tl.int64) * N)[:, None] + columns[None, :]
        if M % block_m == 0 and N % block_n == 0:
            tl.store(to, sums.to(c.dtype.element_ty))
        else:
            tl.store(to, sums.to(c.dtype.element_ty), mask=(rows < M)[:, None] & (columns < N)[None, :])


@triton.jit
def multiply(
    c, a, b, bias, workspace, arrived,
    BATCH: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
    A_ACROSS: tl.constexpr, B_ACROSS: tl.constexpr, ACTIVATION: tl.constexpr,
    block_m: tl.constexpr, block_n: tl.constexpr, block_k: tl.constexpr, group_m: tl.constexpr,
    persistent: tl.constexpr, tma: tl.constexpr, split_k: tl.constexpr, swap: tl.constexpr,
):  # fmt: skip
    tl.static_assert(persistent == 0 or (split_k == 1 and (tma == 0 or BATCH == 1)), "see above")
    tiles_m: tl.constexpr = (M + block_m - 1) // block_m
    tiles_n: tl.constexpr = (N + block_n - 1) // block_n
    of_product: tl.constexpr = tiles_m * tiles_n
    steps: tl.constexpr = (K + block_k - 1) // block_k
    part_steps: tl.constexpr = (steps + split_k - 1) // split_k
    program = tl.program_id(0)
    if persistent == 0 and BATCH > 1:
        product = tl.cast(program // (of_product * split_k), tl.int64)
        a += product * (M * K)
        b += product * (K * N)
        c += product * (M * N)
    if tma:
        if A_ACROSS:
            a_from = tl.make_tensor_descriptor(a, [K, M], [M, 1], [block_k, block_m])
        else:
            a_from = tl.make_tensor_descriptor(a, [M, K], [K, 1], [block_m, block_k])
        if B_ACROSS:
            b_from = tl.make_tensor_descriptor(b, [N, K], [K, 1], [block_n, block_k])
        else:
            b_from = tl.make_tensor_descriptor(b, [K, N], [N, 1], [block_k, block_n])
    else:
        a_from = a
        b_from = b
    if tma == 2:
        c_to = tl.make_tensor_descriptor(c, [M, N], [N, 1], [block_m, block_n])
    else:
        c_to = c
    if persistent:
        tile_to = program - tl.num_programs(0)  # counted apart: the loads of a tile need not wait for c of the last one
        for tile in tl.range(program, BATCH * of_product, tl.num_programs(0), flatten=True):
            i, j = _place(tile % of_product, tiles_m, tiles_n, group_m)
            if BATCH > 1:
                product = tl.cast(tile // of_product, tl.int64)
                a_from = a + product * (M * K)
                b_from = b + product * (K * N)
            sums = _sums(
                a_from, b_from, i * block_m, j * block_n, 0, steps,
                M, N, K, A_ACROSS, B_ACROSS, block_m, block_n, block_k, tma, swap,
            )  # fmt: skip
            tile_to += tl.num_programs(0)
            i, j = _place(tile_to % of_product, tiles_m, tiles_n, group_m)
            if BATCH > 1:
                c_to = c + tl.cast(tile_to // of_product, tl.int64) * (M * N)
            _write(c_to, bias, sums, i * block_m, j * block_n, M, N, ACTIVATION, block_m, block_n, tma)
    else:
        tile = program // split_k
        i, j = _place(tile % of_product, tiles_m, tiles_n, group_m)
        row = i * block_m
        column = j * block_n
        if split_k == 1:
            sums = _sums(
                a_from, b_from, row, column, 0, steps,
                M, N, K, A_ACROSS, B_ACROSS, block_m, block_n, block_k, tma, swap,
            )  # fmt: skip
            _write(c_to, bias, sums, row, column, M, N, ACTIVATION, block_m, block_n, tma)
        else:
            first = (program % split_k) * part_steps
            sums = _sums(
                a_from, b_from, row, column, first, tl.minimum(part_steps, steps - first),
                M, N, K, A_ACROSS, B_ACROSS, block_m, block_n, block_k, tma, swap,
            )  # fmt: skip
            within = tl.arange(0, block_m)[:, None] * block_n + tl.arange(0, block_n)[None, :]
            parts = workspace + tl.cast(tile, tl.int64) * (split_k * block_m * block_n) + within
            tl.store(parts + (program % split_k) * (block_m * block_n), sums)
            tl.debug_barrier()  # all of the part is written before the one thread says so
            if tl.atomic_add(arrived + tile, 1, sem="acq_rel") == split_k - 1:
                sums = tl.zeros((block_m, block_n), dtype=tl.float32)
                for part in tl.static_range(split_k):
                    sums += tl.load(parts + part * (block_m * block_n), cache_modifier=".cg")
                _write(c_to, bias, sums, row, column, M, N, ACTIVATION, block_m, block_n, tma)
                tl.store(arrived + tile, 0)  # for the next launch

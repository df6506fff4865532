// The four kernels of the energy roofline in one: load a word, `operations` fused multiply-adds on it, store it.
//   load_store 0, operations 0: baseline, nothing but a branch that is never taken
//   load_store 1, operations 0: copy,     2 words of traffic each
//   load_store 0, operations N: flop,     2 N operations each, in registers
//   load_store 1, operations N: roofline, both
// Tunable besides: block_size_x (threads), blocks_per_multiprocessor (with the block, the occupancy). Right with any grid:
// one that stays on the board walks over the n words and holds the occupancy, one that has a thread for each load of 16
// bytes is nearer the bandwidth, as its loads stay close to each other. Values are small, so that x + x t stays a number
// however long it goes on; every lane of every warp has its own, so that the multipliers see other bits in every cycle.
#ifndef n
#define n 134217728
#endif
#ifndef double_precision
#define double_precision 0
#endif

#if double_precision
typedef double real;
typedef double2 words;  // 16 bytes: the widest load
#define LANES 2
#define KERNEL roofline_fp64
#define ADVANCE(x, t) (x).x = fma((x).x, (t).x, (x).x), (x).y = fma((x).y, (t).y, (x).y)
#define SUM(x) ((x).x + (x).y)
#else
typedef float real;
typedef float4 words;
#define LANES 4
#define KERNEL roofline_fp32
#define ADVANCE(x, t)                                                              \
    (x).x = fmaf((x).x, (t).x, (x).x), (x).y = fmaf((x).y, (t).y, (x).y),          \
    (x).z = fmaf((x).z, (t).z, (x).z), (x).w = fmaf((x).w, (t).w, (x).w)
#define SUM(x) ((x).x + (x).y + (x).z + (x).w)
#endif

__device__ __forceinline__ words made(unsigned seed) {
    words made;
    real *lanes = reinterpret_cast<real *>(&made);
    for (int lane = 0; lane < LANES; lane++) {
        seed = seed * 1664525u + 1013904223u;
        lanes[lane] = (real)(seed >> 8) * (real)(1e-4 / 16777216.0);
    }
    return made;
}

__device__ __forceinline__ void advance(words &x, const words &t) {
#pragma unroll 128
    for (int step = 0; step < operations; step++) ADVANCE(x, t);
}

extern "C" __global__ void __launch_bounds__(block_size_x, blocks_per_multiprocessor)
KERNEL(real *out, const real *__restrict__ in, int secret) {
    const size_t count = n / LANES, stride = (size_t)gridDim.x * block_size_x;
    const size_t first = (size_t)blockIdx.x * block_size_x + threadIdx.x;
#if load_store
    const words *from = reinterpret_cast<const words *>(in);
    words *to = reinterpret_cast<words *>(out);
    for (size_t at = first; at < count; at += stride) {
        const words t = __ldcs(from + at);
        words x = t;
        advance(x, t);
        __stcs(to + at, x);
    }
    if (secret) out[first] = 0;
#elif operations
    const words t = made((unsigned)first);
    words x = t;
    for (size_t at = first; at < count; at += stride) advance(x, t);
    if (secret) out[first] = SUM(x);
#else
    if (secret) out[(first + stride) % count] = secret;
#endif
}

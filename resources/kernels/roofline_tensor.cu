// The energy roofline's kernels on tensor cores: load 16 bytes a thread, `operations` products of 16 x 16 by 16 x 8
// matrices a warp on them, accumulated in single precision, store 16 bytes. As in roofline.cu:
//   load_store 0, operations 0: baseline     load_store 1, operations 0: copy
//   load_store 0, operations N: flop         load_store 1, operations N: roofline
// A product is 2 * 16 * 8 * 16 = 4096 operations of a warp, 16 for each 2-byte word that was loaded. `mma.sync` is what
// every board from compute capability 8.0 on has; Hopper's warp-group instructions go beyond it. The values are small, so
// that sums stay numbers; every lane has its own, so that the multipliers see other bits in every product.
#ifndef n
#define n 268435456
#endif
#ifndef bfloat
#define bfloat 0
#endif

#if bfloat
#define KERNEL roofline_bf16_tensor
#define KIND "bf16.bf16"
#else
#define KERNEL roofline_fp16_tensor
#define KIND "f16.f16"
#endif
#define LANES 8  // 2-byte words in 16 bytes

struct sums {
    float a, b, c, d;
};

__device__ __forceinline__ void multiply(sums &x, const uint4 &a, unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." KIND ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(x.a), "+f"(x.b), "+f"(x.c), "+f"(x.d)
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}

// Two chains of sums, so that a product need not wait for the one before it.
__device__ __forceinline__ void advance(sums &x, sums &y, const uint4 &t) {
#pragma unroll 64
    for (int step = 0; step < operations; step++)
        if (step % 2) multiply(y, t, t.z, t.x);
        else multiply(x, t, t.y, t.w);
}

__device__ __forceinline__ uint4 made(unsigned seed) {
    unsigned words[4];
    for (int at = 0; at < 4; at++) {
        seed = seed * 1664525u + 1013904223u;
#if bfloat
        words[at] = (seed & 0x007f007fu) | 0x38803880u;  // 6e-5 to 1.2e-4
#else
        words[at] = (seed & 0x03ff03ffu) | 0x04000400u;  // the same
#endif
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
}

__device__ __forceinline__ uint4 stored(const sums &x, const sums &y) {
    return make_uint4(__float_as_uint(x.a + y.a), __float_as_uint(x.b + y.b), __float_as_uint(x.c + y.c),
                      __float_as_uint(x.d + y.d));
}

extern "C" __global__ void __launch_bounds__(block_size_x, blocks_per_multiprocessor)
KERNEL(unsigned short *out, const unsigned short *__restrict__ in, int secret) {
    const size_t count = n / LANES, stride = (size_t)gridDim.x * block_size_x;
    const size_t first = (size_t)blockIdx.x * block_size_x + threadIdx.x;
#if load_store
    const uint4 *from = reinterpret_cast<const uint4 *>(in);
    uint4 *to = reinterpret_cast<uint4 *>(out);
    for (size_t at = first; at < count; at += stride) {  // whole warps: count is a multiple of their threads
        const uint4 t = __ldcs(from + at);
#if operations
        sums x = {}, y = {};
        advance(x, y, t);
        __stcs(to + at, stored(x, y));
#else
        __stcs(to + at, t);
#endif
    }
    if (secret) out[first] = 0;
#elif operations
    const uint4 t = made((unsigned)first);
    sums x = {}, y = {};
    for (size_t at = first; at < count; at += stride) advance(x, y, t);
    if (secret) reinterpret_cast<uint4 *>(out)[first] = stored(x, y);
#else
    if (secret) out[(first + stride) % count] = (unsigned short)secret;
#endif
}

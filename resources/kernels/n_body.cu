// Gravity between n bodies, each with each: acceleration[axis][body] and potential[body], with softened distances
// (r^2 + softening^2). bodies[body] = x, y, z, mass. A body does not move itself, but adds its own softened share to its
// potential.
// Tunable: block_size_x (threads), tile_size_x (bodies per thread), use_shared_memory (the others are read a block at a
// time into shared memory; 0: through the cache), loop_unroll_factor (others), vector_width (floats of a body per load:
// 1, 2, 4), use_rsqrt (1: one inverse root within 2 ulp; 0: a root and a division).
#ifndef n
#define n 131072
#endif
#ifndef softening
#define softening 0.05f
#endif

struct __align__(4 * vector_width) Body {
    float x, y, z, mass;
};

// Reads from memory in pieces of vector_width floats.
__device__ __forceinline__ Body body_at(const Body *bodies, int index) {
    return index < n ? bodies[index] : Body{0.0f, 0.0f, 0.0f, 0.0f};  // without mass, it pulls nobody
}

struct Pull {
    float x, y, z, potential;
};

// 20 floating-point operations.
__device__ __forceinline__ void add_pull(Pull &sum, const Body &me, const Body &other) {
    const float dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
    const float squared = dx * dx + dy * dy + dz * dz + float(softening) * float(softening);
#if use_rsqrt
    const float inverse = rsqrtf(squared);
#else
    const float inverse = 1.0f / sqrtf(squared);
#endif
    const float share = other.mass * inverse;
    const float strength = share * inverse * inverse;
    sum.x += strength * dx;
    sum.y += strength * dy;
    sum.z += strength * dz;
    sum.potential -= share;
}

extern "C" __global__ void __launch_bounds__(block_size_x)
n_body(float *acceleration, float *potential, const float *__restrict__ bodies) {
    const Body *all = reinterpret_cast<const Body *>(bodies);
    const int first = blockIdx.x * block_size_x * tile_size_x + threadIdx.x;
    constexpr int unrolled = loop_unroll_factor;  // nvcc expands no macro in a pragma
    Body me[tile_size_x];
    Pull sum[tile_size_x] = {};
#pragma unroll
    for (int i = 0; i < tile_size_x; i++) me[i] = body_at(all, first + i * block_size_x);

#if use_shared_memory
    __shared__ Body some[block_size_x];
    for (int start = 0; start < n; start += block_size_x) {
        some[threadIdx.x] = body_at(all, start + threadIdx.x);
        __syncthreads();
#pragma unroll unrolled
        for (int j = 0; j < block_size_x; j++) {
            const Body other = some[j];
#pragma unroll
            for (int i = 0; i < tile_size_x; i++) add_pull(sum[i], me[i], other);
        }
        __syncthreads();
    }
#else
#pragma unroll unrolled
    for (int j = 0; j < n; j++) {
        const Body other = all[j];
#pragma unroll
        for (int i = 0; i < tile_size_x; i++) add_pull(sum[i], me[i], other);
    }
#endif

#pragma unroll
    for (int i = 0; i < tile_size_x; i++) {
        const int index = first + i * block_size_x;
        if (index < n) {
            acceleration[index] = sum[i].x;
            acceleration[n + index] = sum[i].y;
            acceleration[2 * n + index] = sum[i].z;
            potential[index] = sum[i].potential;
        }
    }
}

// The same, body by body, to check against. Right for any one-dimensional launch.
extern "C" __global__ void n_body_reference(float *acceleration, float *potential, const float *bodies) {
    const Body *all = reinterpret_cast<const Body *>(bodies);
    for (int index = blockIdx.x * blockDim.x + threadIdx.x; index < n; index += gridDim.x * blockDim.x) {
        const Body me = all[index];
        Pull sum = {};
        for (int j = 0; j < n; j++) add_pull(sum, me, all[j]);
        acceleration[index] = sum.x;
        acceleration[n + index] = sum.y;
        acceleration[2 * n + index] = sum.z;
        potential[index] = sum.potential;
    }
}

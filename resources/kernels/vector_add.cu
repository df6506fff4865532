// c = a + b for n floats.
// Tunable: block_size_x (threads), items_per_thread, vector_width (floats per load and store: 1, 2, 4), grid_stride
// (0: the numbers of a block lie together; 1: those of a thread lie a whole grid apart), loop_unroll_factor.
#ifndef n
#define n 67108864
#endif

#define STEPS (items_per_thread / vector_width)

struct __align__(4 * vector_width) vector {
    float lane[vector_width];
};

extern "C" __global__ void __launch_bounds__(block_size_x)
vector_add(float *c, const float *__restrict__ a, const float *__restrict__ b) {
    static_assert(n % vector_width == 0 && items_per_thread % vector_width == 0, "whole vectors only");
    const vector *a_vectors = reinterpret_cast<const vector *>(a);
    const vector *b_vectors = reinterpret_cast<const vector *>(b);
    vector *c_vectors = reinterpret_cast<vector *>(c);
    constexpr int unrolled = loop_unroll_factor;  // nvcc expands no macro in a pragma
#if grid_stride
    const size_t first = (size_t)blockIdx.x * block_size_x + threadIdx.x, stride = (size_t)gridDim.x * block_size_x;
#else
    const size_t first = (size_t)blockIdx.x * block_size_x * STEPS + threadIdx.x, stride = block_size_x;
#endif
#pragma unroll unrolled
    for (int step = 0; step < STEPS; step++) {
        const size_t at = first + step * stride;
        if (at < n / vector_width) {
            const vector left = a_vectors[at], right = b_vectors[at];
            vector sum;
#pragma unroll
            for (int lane = 0; lane < vector_width; lane++) sum.lane[lane] = left.lane[lane] + right.lane[lane];
            c_vectors[at] = sum;
        }
    }
}

// b = a for n floats.
// Tunable: block_size_x (threads), items_per_thread, vector_width (floats per load and store: 1, 2, 4),
// loop_unroll_factor.
#ifndef n
#define n 67108864
#endif

#define STEPS (items_per_thread / vector_width)

struct __align__(4 * vector_width) vector {
    float lane[vector_width];
};

extern "C" __global__ void __launch_bounds__(block_size_x) copy(float *b, const float *__restrict__ a) {
    static_assert(n % vector_width == 0 && items_per_thread % vector_width == 0, "whole vectors only");
    const vector *from = reinterpret_cast<const vector *>(a);
    vector *to = reinterpret_cast<vector *>(b);
    constexpr int unrolled = loop_unroll_factor;  // nvcc expands no macro in a pragma
    const size_t first = (size_t)blockIdx.x * block_size_x * STEPS + threadIdx.x;
#pragma unroll unrolled
    for (int step = 0; step < STEPS; step++) {
        const size_t at = first + (size_t)step * block_size_x;
        if (at < n / vector_width) to[at] = from[at];
    }
}

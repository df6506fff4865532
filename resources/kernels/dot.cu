// result[0] = sum of a[i] * b[i] over n floats, in one launch: every block adds its sum to a total in device memory, and
// the block that comes last takes the total away. It leaves zeros behind, so that the next launch starts afresh.
// Tunable: block_size_x (threads, a multiple of 32), items_per_thread, vector_width (floats per load: 1, 2, 4),
// loop_unroll_factor.
#ifndef n
#define n 67108864
#endif

#define STEPS (items_per_thread / vector_width)

struct __align__(4 * vector_width) vector {
    float lane[vector_width];
};

__device__ float total;
__device__ unsigned int blocks_done;

extern "C" __global__ void __launch_bounds__(block_size_x)
dot(float *result, const float *__restrict__ a, const float *__restrict__ b) {
    static_assert(n % vector_width == 0 && items_per_thread % vector_width == 0, "whole vectors only");
    static_assert(block_size_x % 32 == 0, "whole warps only");
    const vector *a_vectors = reinterpret_cast<const vector *>(a);
    const vector *b_vectors = reinterpret_cast<const vector *>(b);
    constexpr int unrolled = loop_unroll_factor;  // nvcc expands no macro in a pragma
    const size_t first = (size_t)blockIdx.x * block_size_x * STEPS + threadIdx.x;

    float sum = 0.0f;
#pragma unroll unrolled
    for (int step = 0; step < STEPS; step++) {
        const size_t at = first + (size_t)step * block_size_x;
        if (at < n / vector_width) {
            const vector left = a_vectors[at], right = b_vectors[at];
#pragma unroll
            for (int lane = 0; lane < vector_width; lane++) sum += left.lane[lane] * right.lane[lane];
        }
    }

    // within a warp, then over the warps of the block
    __shared__ float warp_sum[block_size_x / 32];
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(0xffffffff, sum, distance);
    if (threadIdx.x % 32 == 0) warp_sum[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < block_size_x / 32; warp++) sum += warp_sum[warp];
        atomicAdd(&total, sum);
        __threadfence();  // the sum is in the total before the block is counted
        if (atomicInc(&blocks_done, gridDim.x - 1) == gridDim.x - 1) result[0] = atomicExch(&total, 0.0f);
    }
}

// total[0] = sum of the n floats of values, in one launch: every block leaves its sum in device memory, and the block
// that comes last adds those up. It leaves the counter as it found it, so that the next launch starts afresh.
// Tunable: block_size_x (threads, a power of two from 32 on), the number of blocks (given by the grid),
// vector_width (floats per load: 1, 2, 4), loop_unroll_factor,
// use_shuffle (1: threads of a warp add by exchanging registers; 0: all of a block through shared memory).
#ifndef n
#define n 67108864
#endif
#ifndef max_blocks
#define max_blocks 65536
#endif

struct __align__(4 * vector_width) vector {
    float lane[vector_width];
};

__device__ float block_total[max_blocks];
__device__ unsigned int blocks_done;

// The sum over the block, in thread 0.
__device__ __forceinline__ float sum_of_block(float sum) {
    const int thread = threadIdx.x;
#if use_shuffle
    __shared__ float warp_total[block_size_x / 32];
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(0xffffffff, sum, distance);
    if (thread % 32 == 0) warp_total[thread / 32] = sum;
    __syncthreads();
    if (thread == 0)
        for (int warp = 1; warp < block_size_x / 32; warp++) sum += warp_total[warp];
#else
    __shared__ float partial[block_size_x];
    partial[thread] = sum;
    __syncthreads();
    for (int half = block_size_x / 2; half > 0; half /= 2) {
        if (thread < half) partial[thread] += partial[thread + half];
        __syncthreads();
    }
    sum = partial[0];
#endif
    return sum;
}

extern "C" __global__ void __launch_bounds__(block_size_x) reduction(float *total, const float *__restrict__ values) {
    static_assert(n % vector_width == 0, "whole vectors only");
    static_assert(block_size_x % 32 == 0 && (block_size_x & (block_size_x - 1)) == 0, "a power of two from 32 on");
    const vector *vectors = reinterpret_cast<const vector *>(values);
    constexpr int unrolled = loop_unroll_factor;  // nvcc expands no macro in a pragma

    float sum = 0.0f;
#pragma unroll unrolled
    for (size_t at = (size_t)blockIdx.x * block_size_x + threadIdx.x; at < n / vector_width;
         at += (size_t)gridDim.x * block_size_x) {
        const vector some = vectors[at];
#pragma unroll
        for (int lane = 0; lane < vector_width; lane++) sum += some.lane[lane];
    }
    sum = sum_of_block(sum);

    __shared__ bool last;
    if (threadIdx.x == 0) {
        block_total[blockIdx.x] = sum;
        __threadfence();  // the sum is seen by all before the count is
        last = atomicInc(&blocks_done, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    sum = 0.0f;
    for (unsigned int block = threadIdx.x; block < gridDim.x; block += block_size_x)
        sum += *(volatile float *)&block_total[block];  // past the cache of this multiprocessor
    sum = sum_of_block(sum);
    if (threadIdx.x == 0) total[0] = sum;
}

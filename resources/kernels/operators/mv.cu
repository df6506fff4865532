// Matrix-vector products y[b] = w[b] x[b] in FP32, or of numbers in FP16 or BF16 with sums in FP32: BATCH of them, w of
// N x K numbers row by row. Bound by reading w once.
//
// lanes_k threads share a row, which they read vector_width numbers each at a time, loads_ahead times before they
// calculate; they take rows_at_once rows together, so that what they read of x serves several. With x_shared a block
// copies its part of x to shared memory first. With streaming w goes past the L1 cache. split_k blocks share the rows
// along K; the last to arrive sums their parts in order, so that the result does not depend on which that is.

#define GROUPS (block_size_x / lanes_k)        // of threads that share rows
#define ROWS (GROUPS * rows_at_once)           // of a block
#define CHUNK (lanes_k * vector_width)         // numbers of a row that its threads read at a time
#define PART ((K + split_k * CHUNK - 1) / (split_k * CHUNK) * CHUNK)  // numbers of a row for one block
#define SETS ((N + ROWS - 1) / ROWS)           // of rows

static_assert(K % vector_width == 0, "whole vectors");

#ifdef HALVES
typedef unsigned short Number;  // the bits of a half, or with BRAIN of a bfloat16
#else
typedef float Number;
#endif
template <int width> struct __align__(width * sizeof(Number)) Vector { Number lane[width]; };

#ifndef HALF_VALUES
#define HALF_VALUES
__device__ __forceinline__ float half_value(unsigned short bits) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}
__device__ __forceinline__ float brain_value(unsigned short bits) { return __uint_as_float((unsigned)bits << 16); }
#endif

__device__ __forceinline__ float value_of(Number number) {
#ifndef HALVES
    return number;
#elif defined(BRAIN)
    return brain_value(number);
#else
    return half_value(number);
#endif
}

__device__ __forceinline__ Vector<vector_width> read_once(const Number *from) {
#ifdef __CUDA_ARCH__
    constexpr int WORDS = sizeof(Vector<vector_width>) / 4;
    if constexpr (streaming && WORDS > 0) {
        union { unsigned word[WORDS]; Vector<vector_width> numbers; } v;
        if constexpr (WORDS == 4)
            asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.word[0]), "=r"(v.word[1]), "=r"(v.word[2]), "=r"(v.word[3]) : "l"(from));
        else if constexpr (WORDS == 2)
            asm("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];" : "=r"(v.word[0]), "=r"(v.word[1]) : "l"(from));
        else
            asm("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(v.word[0]) : "l"(from));
        return v.numbers;
    }
#endif
    return *reinterpret_cast<const Vector<vector_width> *>(from);
}

extern "C" __global__ void __launch_bounds__(block_size_x)
mv(float *y, const Number *__restrict__ w, const Number *__restrict__ x, float *workspace, unsigned *arrived) {
    extern __shared__ __align__(16) float shared[];
    const int part = blockIdx.x % split_k, set = blockIdx.x / split_k % SETS, product = blockIdx.x / split_k / SETS;
    const int lane = threadIdx.x % lanes_k, group = threadIdx.x / lanes_k;
    const int begin = part * PART, end = begin + PART < K ? begin + PART : K;
    const int first = set * ROWS + group * rows_at_once;  // row

    const Number *line[rows_at_once];
#pragma unroll
    for (int i = 0; i < rows_at_once; i++)  // a row beyond the last one is read as the last one, and not written
        line[i] = w + ((size_t)product * N + (N % ROWS == 0 || first + i < N ? first + i : N - 1)) * K;
    const Number *right = x + (size_t)product * K;
    if constexpr (x_shared) {
        Number *x_here = reinterpret_cast<Number *>(shared);
        for (int at = begin + threadIdx.x * vector_width; at < end; at += block_size_x * vector_width)
            *reinterpret_cast<Vector<vector_width> *>(x_here + at - begin) = *reinterpret_cast<const Vector<vector_width> *>(right + at);
        __syncthreads();
        right = x_here - begin;
    }

    float sum[rows_at_once] = {};
    int at = begin + lane * vector_width;
    for (; at + (loads_ahead - 1) * CHUNK < end; at += loads_ahead * CHUNK) {
        Vector<vector_width> left[loads_ahead][rows_at_once];
#pragma unroll
        for (int j = 0; j < loads_ahead; j++)
#pragma unroll
            for (int i = 0; i < rows_at_once; i++) left[j][i] = read_once(line[i] + at + j * CHUNK);
#pragma unroll
        for (int j = 0; j < loads_ahead; j++) {
            const Vector<vector_width> v = *reinterpret_cast<const Vector<vector_width> *>(right + at + j * CHUNK);
#pragma unroll
            for (int i = 0; i < rows_at_once; i++)
#pragma unroll
                for (int l = 0; l < vector_width; l++) sum[i] += value_of(left[j][i].lane[l]) * value_of(v.lane[l]);
        }
    }
    for (; at < end; at += CHUNK) {
        const Vector<vector_width> v = *reinterpret_cast<const Vector<vector_width> *>(right + at);
#pragma unroll
        for (int i = 0; i < rows_at_once; i++) {
            const Vector<vector_width> left = read_once(line[i] + at);
#pragma unroll
            for (int l = 0; l < vector_width; l++) sum[i] += value_of(left.lane[l]) * value_of(v.lane[l]);
        }
    }

    // over the threads of a row: within warps, then over their warps
#pragma unroll
    for (int i = 0; i < rows_at_once; i++)
#pragma unroll
        for (int apart = (lanes_k < 32 ? lanes_k : 32) / 2; apart; apart /= 2) sum[i] += __shfl_xor_sync(~0u, sum[i], apart);
    if constexpr (lanes_k > 32) {
        __syncthreads();  // x is read no more
#pragma unroll
        for (int i = 0; i < rows_at_once; i++)
            if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32 * rows_at_once + i] = sum[i];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < rows_at_once; i++) {
            sum[i] = 0.0f;
            for (int warp = group * (lanes_k / 32); warp < (group + 1) * (lanes_k / 32); warp++)
                sum[i] += shared[warp * rows_at_once + i];
        }
    }
    float *target = split_k > 1 ? workspace + (size_t)part * BATCH * N : y;
    if (lane == 0) {
#pragma unroll
        for (int i = 0; i < rows_at_once; i++)
            if (N % ROWS == 0 || first + i < N) target[(size_t)product * N + first + i] = sum[i];
    }
    if constexpr (split_k > 1) {
        unsigned &seen = *reinterpret_cast<unsigned *>(shared);
        __threadfence();
        __syncthreads();  // what is written is written, and shared memory is read no more
        if (threadIdx.x == 0) seen = atomicAdd(arrived + blockIdx.x / split_k, 1u);
        __syncthreads();
        if (seen != split_k - 1) return;
        __threadfence();
        if (threadIdx.x == 0) arrived[blockIdx.x / split_k] = 0;  // for the next launch
        for (int row = set * ROWS + threadIdx.x; row < (set + 1) * ROWS && row < N; row += block_size_x) {
            const volatile float *parts = workspace + (size_t)product * N + row;
            float total = 0.0f;
            for (int each = 0; each < split_k; each++) total += parts[(size_t)each * BATCH * N];
            y[(size_t)product * N + row] = total;
        }
    }
}

// Matrix-vector products y[b] = w[b] x[b] in FP32: BATCH of them, w of N x K numbers row by row. Bound by reading w once.
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

template <int width> struct Vector;
template <> struct __align__(4) Vector<1> { float lane[1]; };
template <> struct __align__(8) Vector<2> { float lane[2]; };
template <> struct __align__(16) Vector<4> { float lane[4]; };

__device__ __forceinline__ Vector<vector_width> read_once(const float *from) {
#ifdef __CUDA_ARCH__
    if constexpr (streaming && vector_width == 4) {
        Vector<4> v;
        asm("ld.global.nc.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.lane[0]), "=f"(v.lane[1]), "=f"(v.lane[2]), "=f"(v.lane[3]) : "l"(from));
        return *reinterpret_cast<Vector<vector_width> *>(&v);
    } else if constexpr (streaming && vector_width == 2) {
        Vector<2> v;
        asm("ld.global.nc.L1::no_allocate.v2.f32 {%0, %1}, [%2];" : "=f"(v.lane[0]), "=f"(v.lane[1]) : "l"(from));
        return *reinterpret_cast<Vector<vector_width> *>(&v);
    }
#endif
    return *reinterpret_cast<const Vector<vector_width> *>(from);
}

extern "C" __global__ void __launch_bounds__(block_size_x)
mv(float *y, const float *__restrict__ w, const float *__restrict__ x, float *workspace, unsigned *arrived) {
    extern __shared__ __align__(16) float shared[];
    const int part = blockIdx.x % split_k, set = blockIdx.x / split_k % SETS, product = blockIdx.x / split_k / SETS;
    const int lane = threadIdx.x % lanes_k, group = threadIdx.x / lanes_k;
    const int begin = part * PART, end = begin + PART < K ? begin + PART : K;
    const int first = set * ROWS + group * rows_at_once;  // row

    const float *line[rows_at_once];
#pragma unroll
    for (int i = 0; i < rows_at_once; i++)  // a row beyond the last one is read as the last one, and not written
        line[i] = w + ((size_t)product * N + (N % ROWS == 0 || first + i < N ? first + i : N - 1)) * K;
    const float *right = x + (size_t)product * K;
    if constexpr (x_shared) {
        for (int at = begin + threadIdx.x * vector_width; at < end; at += block_size_x * vector_width)
            *reinterpret_cast<Vector<vector_width> *>(shared + at - begin) = *reinterpret_cast<const Vector<vector_width> *>(right + at);
        __syncthreads();
        right = shared - begin;
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
                for (int l = 0; l < vector_width; l++) sum[i] += left[j][i].lane[l] * v.lane[l];
        }
    }
    for (; at < end; at += CHUNK) {
        const Vector<vector_width> v = *reinterpret_cast<const Vector<vector_width> *>(right + at);
#pragma unroll
        for (int i = 0; i < rows_at_once; i++) {
            const Vector<vector_width> left = read_once(line[i] + at);
#pragma unroll
            for (int l = 0; l < vector_width; l++) sum[i] += left.lane[l] * v.lane[l];
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

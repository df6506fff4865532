// A block's tile by the FP32 units: a thread takes thread_m x thread_n numbers of it; 32 / lanes_n x lanes_n threads of a
// warp stand beside each other, so that a warp's tile is compact. A is read four numbers along the depth at once. Of
// neighbours in a warp one pair shares a row and the next a column, so that a read of 16 bytes by all takes two turns of
// shared memory instead of four.
constexpr int LANES_M = 32 / lanes_n;
constexpr int WARP_M = LANES_M * thread_m, WARP_N = lanes_n * thread_n;
constexpr int WARPS_N = block_n / WARP_N;

static_assert(block_m % WARP_M == 0 && block_n % WARP_N == 0, "whole warps");
static_assert(thread_n % 4 == 0 && SLICE_K % 4 == 0, "whole fours");

// Where a thread's numbers lie in the block's tile: rows LANES_M apart, columns in fours lanes_n fours apart.
__device__ __forceinline__ int first_row() {
    const int lane = threadIdx.x % 32;
    return (int)threadIdx.x % SLICE / 32 / WARPS_N * WARP_M + (lane & 1) + lane / (2 * lanes_n) * 2;
}
__device__ __forceinline__ int first_column() {
    return (int)threadIdx.x % SLICE / 32 % WARPS_N * WARP_N + (int)threadIdx.x / 2 % lanes_n * 4;
}

__device__ __forceinline__ void multiply(const Number *stage, Sums &sums) {
    const int from = threadIdx.x / SLICE * SLICE_K;
    const float *a = stage + first_row() * A_PITCH + from, *b = stage + A_STRIPE + first_column() + from * B_PITCH;
#pragma unroll
    for (int k = 0; k < SLICE_K; k += 4) {
        Four left[thread_m];
#pragma unroll
        for (int i = 0; i < thread_m; i++) left[i] = *reinterpret_cast<const Four *>(a + i * LANES_M * A_PITCH + k);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            Four right[thread_n / 4];
#pragma unroll
            for (int n4 = 0; n4 < thread_n / 4; n4++)
                right[n4] = *reinterpret_cast<const Four *>(b + (k + j) * B_PITCH + n4 * lanes_n * 4);
#pragma unroll
            for (int i = 0; i < thread_m; i++)
#pragma unroll
                for (int n1 = 0; n1 < thread_n; n1++) sums[i * thread_n + n1] += left[i].lane[j] * right[n1 / 4].lane[n1 % 4];
        }
    }
}

__device__ __forceinline__ void write(float *c, const Place &place, const Sums &sums) {
    float *to = c + (size_t)place.product * ROWS * COLUMNS;
    const int row = place.row + first_row(), column = place.column + first_column();
#pragma unroll
    for (int i = 0; i < thread_m; i++) {
        if (ROWS % block_m && row + i * LANES_M >= ROWS) continue;
        float *line = to + (size_t)(row + i * LANES_M) * COLUMNS;
#pragma unroll
        for (int n4 = 0; n4 < thread_n / 4; n4++) {
            const int at = column + n4 * lanes_n * 4;
            if constexpr (COLUMNS % 4 == 0) {
                if (COLUMNS % block_n && at >= COLUMNS) continue;
                store(line + at, sums + i * thread_n + n4 * 4);
            } else {
#pragma unroll
                for (int lane = 0; lane < 4; lane++)
                    if (at + lane < COLUMNS) line[at + lane] = sums[i * thread_n + n4 * 4 + lane];
            }
        }
    }
}

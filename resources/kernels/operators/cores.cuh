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

// The depth of a stage is taken in groups of four: of A a thread reads all four at once, of B one after the other.
struct Multiplier {
    static constexpr int GROUPS = SLICE_K / 4;
    int a, b;  // where its rows and columns begin in a stage
    Four left[thread_m], right[thread_n / 4];  // what is multiplied next

    __device__ __forceinline__ Multiplier() {
        const int from = threadIdx.x / SLICE * SLICE_K;
        a = first_row() * A_PITCH + from;
        b = A_STRIPE + first_column() + from * B_PITCH;
    }
    __device__ __forceinline__ void read(const Number *stage, int group) {
#pragma unroll
        for (int i = 0; i < thread_m; i++)
            left[i] = *reinterpret_cast<const Four *>(stage + a + i * LANES_M * A_PITCH + group * 4);
        read_right(stage, group * 4);
    }
    // The group that was read; `read_next` is called once nothing of it is to be read any more.
    template <class Next>
    __device__ __forceinline__ void multiply(const Number *stage, int group, Sums &sums, Next read_next) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            float of_left[thread_m];
            Four of_right[thread_n / 4];
#pragma unroll
            for (int i = 0; i < thread_m; i++) of_left[i] = left[i].lane[j];
#pragma unroll
            for (int n4 = 0; n4 < thread_n / 4; n4++) of_right[n4] = right[n4];
            if (j < 3) read_right(stage, group * 4 + j + 1);
            else read_next();
#pragma unroll
            for (int i = 0; i < thread_m; i++)
#pragma unroll
                for (int n1 = 0; n1 < thread_n; n1++) sums[i * thread_n + n1] += of_left[i] * of_right[n1 / 4].lane[n1 % 4];
        }
    }

private:
    __device__ __forceinline__ void read_right(const Number *stage, int k) {
#pragma unroll
        for (int n4 = 0; n4 < thread_n / 4; n4++)
            right[n4] = *reinterpret_cast<const Four *>(stage + b + k * B_PITCH + n4 * lanes_n * 4);
    }
};

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

// A block's tile by the tensor cores (8.0 on): a warp takes warp_m x warp_n numbers of it, in products of 16 x 8 x 16 with
// sums in FP32. Fragments come by ldmatrix; the pad after the rows of both stripes keeps its reads free of conflicts.
#ifdef BRAIN
constexpr bool BRAIN_FLOATS = true;  // bfloat16
#else
constexpr bool BRAIN_FLOATS = false;
#endif
constexpr int DOWN = warp_m / 16, ACROSS = warp_n / 8;  // products
constexpr int WARPS_N = block_n / warp_n;

static_assert(warp_m % 16 == 0 && warp_n % 16 == 0 && SLICE_K % 16 == 0, "whole products");
static_assert(block_m % warp_m == 0 && block_n % warp_n == 0, "whole warps");

#ifndef MATRICES
// Four matrices of 8 x 8 halves, a thread's address that of row threadIdx % 8 of matrix threadIdx % 32 / 8.
template <bool transposed> __device__ __forceinline__ void read_matrices(unsigned (&to)[4], const Number *from) {
    const unsigned at = (unsigned)__cvta_generic_to_shared(from);
    if constexpr (transposed)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at) : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at) : "memory");
}
// sum (16 x 8) += a (16 x 16) b (16 x 8), of bfloat16 where `brain` is set
template <bool brain> __device__ __forceinline__ void multiply_matrices(float *sum, const unsigned (&a)[4], const unsigned *b) {
    if constexpr (brain)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    else
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#define MATRICES
#endif

__device__ __forceinline__ int warp_row() { return (int)threadIdx.x % SLICE / 32 / WARPS_N * warp_m; }
__device__ __forceinline__ int warp_column() { return (int)threadIdx.x % SLICE / 32 % WARPS_N * warp_n; }

// The depth of a stage is taken in groups of sixteen.
struct Multiplier {
    static constexpr int GROUPS = SLICE_K / 16;
    int a, b;  // where its rows and columns begin in a stage
    unsigned left[DOWN][4], right[ACROSS / 2][4];  // what is multiplied next

    __device__ __forceinline__ Multiplier() {
        const int lane = threadIdx.x % 32, from = threadIdx.x / SLICE * SLICE_K;
        a = (warp_row() + lane % 16) * A_PITCH + from + lane / 16 * 8;
        b = A_STRIPE + (from + lane % 16) * B_PITCH + warp_column() + lane / 16 * 8;
    }
    __device__ __forceinline__ void read(const Number *stage, int group) {
#pragma unroll
        for (int i = 0; i < DOWN; i++) read_matrices<false>(left[i], stage + a + i * 16 * A_PITCH + group * 16);
#pragma unroll
        for (int j = 0; j < ACROSS / 2; j++) read_matrices<true>(right[j], stage + b + group * 16 * B_PITCH + j * 16);
    }
    // The group that was read; `read_next` is called once nothing of it is to be read any more.
    template <class Next>
    __device__ __forceinline__ void multiply(const Number *, int, Sums &sums, Next read_next) {
        unsigned of_left[DOWN][4], of_right[ACROSS / 2][4];
#pragma unroll
        for (int word = 0; word < 4; word++) {
#pragma unroll
            for (int i = 0; i < DOWN; i++) of_left[i][word] = left[i][word];
#pragma unroll
            for (int j = 0; j < ACROSS / 2; j++) of_right[j][word] = right[j][word];
        }
        read_next();
#pragma unroll
        for (int i = 0; i < DOWN; i++)
#pragma unroll
            for (int j = 0; j < ACROSS; j++)
                multiply_matrices<BRAIN_FLOATS>(sums + (i * ACROSS + j) * 4, of_left[i], of_right[j / 2] + j % 2 * 2);
    }
};

__device__ __forceinline__ void write(float *c, const Place &place, const Sums &sums) {
    float *to = c + (size_t)place.product * ROWS * COLUMNS;
    const int lane = threadIdx.x % 32;
    const int row = place.row + warp_row() + lane / 4, column = place.column + warp_column() + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < DOWN; i++)
#pragma unroll
        for (int j = 0; j < ACROSS; j++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int down = row + i * 16 + half * 8, across = column + j * 8;
                const float *of = sums + (i * ACROSS + j) * 4 + half * 2;
                if (ROWS % block_m && down >= ROWS) continue;
                float *at = to + (size_t)down * COLUMNS + across;
                if (COLUMNS % block_n == 0 || across < COLUMNS) at[0] = of[0];
                if (COLUMNS % block_n == 0 || across + 1 < COLUMNS) at[1] = of[1];
            }
}

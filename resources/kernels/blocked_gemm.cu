// c = alpha a b + beta c for n x n matrices of `real`, stored column by column as BLAS has them.
// A block computes a tile of blk_m rows by blk_n columns of c with dim_m x dim_n threads. Along the inner dimension it
// takes steps of blk_k: a stripe of a (blk_m x blk_k) and one of b (blk_k x blk_n) go to shared memory, read by the
// threads in the shapes blk_m_a x blk_n_a and blk_m_b x blk_n_b. With simd the stripes are read 16 bytes at once.
// n need not be a multiple of the tiles: what lies outside reads as zero and is not written.
#ifndef n
#define n 4096
#define real double
#endif

// sgemm or dgemm, as BLAS calls them
#define NAME_float sgemm
#define NAME_double dgemm
#define PASTED(a, b) a##b
#define NAME(type) PASTED(NAME_, type)

#define THREADS (dim_m * dim_n)
#define ROWS (blk_m / dim_m)  // of c per thread
#define COLUMNS (blk_n / dim_n)
#define WIDTH (simd ? 16 / (int)sizeof(real) : 1)

struct __align__(WIDTH * sizeof(real)) vector {
    real lane[WIDTH];
};

// One more column of b's stripe, where it fits, so that a column of b spreads over the banks of shared memory.
constexpr int padding = (blk_m + blk_n + 1) * blk_k * sizeof(real) <= 48 * 1024;
constexpr bool whole_tiles = n % blk_m == 0 && n % blk_n == 0 && n % blk_k == 0;

// A vector down a column of a matrix.
__device__ __forceinline__ vector read(const real *matrix, int row, int column) {
    if (whole_tiles || (row < n && column < n)) return *reinterpret_cast<const vector *>(matrix + (size_t)column * n + row);
    return vector{};
}

extern "C" __global__ void __launch_bounds__(THREADS)
NAME(real)(real *c, const real *__restrict__ a, const real *__restrict__ b, const real alpha, const real beta) {
    static_assert(blk_m % dim_m == 0 && blk_n % dim_n == 0, "whole tiles per thread");
    static_assert(blk_m_a * blk_n_a == THREADS && blk_m_b * blk_n_b == THREADS, "every thread reads");
    static_assert(blk_m % (blk_m_a * WIDTH) == 0 && blk_k % blk_n_a == 0, "whole reads of a");
    static_assert(blk_k % (blk_m_b * WIDTH) == 0 && blk_n % blk_n_b == 0, "whole reads of b");
    static_assert(n % WIDTH == 0, "whole vectors");
    __shared__ __align__(16) real a_stripe[blk_k][blk_m];
    __shared__ real b_stripe[blk_k][blk_n + padding];
    const int x = threadIdx.x, y = threadIdx.y;
    const int thread = y * dim_m + x;
    const int top = blockIdx.x * blk_m, left = blockIdx.y * blk_n;
    const int a_row = thread % blk_m_a * WIDTH, a_column = thread / blk_m_a;
    const int b_row = thread % blk_m_b * WIDTH, b_column = thread / blk_m_b;

    real sum[COLUMNS][ROWS] = {};
    for (int step = 0; step < n; step += blk_k) {
#pragma unroll
        for (int k = a_column; k < blk_k; k += blk_n_a)
#pragma unroll
            for (int m = a_row; m < blk_m; m += blk_m_a * WIDTH)
                *reinterpret_cast<vector *>(&a_stripe[k][m]) = read(a, top + m, step + k);
#pragma unroll
        for (int j = b_column; j < blk_n; j += blk_n_b)
#pragma unroll
            for (int k = b_row; k < blk_k; k += blk_m_b * WIDTH) {
                const vector column = read(b, step + k, left + j);
#pragma unroll
                for (int lane = 0; lane < WIDTH; lane++) b_stripe[k + lane][j] = column.lane[lane];
            }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < blk_k; k++) {
            real rows[ROWS];
#pragma unroll
            for (int i = 0; i < ROWS; i++) rows[i] = a_stripe[k][x + i * dim_m];
#pragma unroll
            for (int j = 0; j < COLUMNS; j++) {
                const real right = b_stripe[k][y + j * dim_n];
#pragma unroll
                for (int i = 0; i < ROWS; i++) sum[j][i] += rows[i] * right;
            }
        }
        __syncthreads();
    }

#pragma unroll
    for (int j = 0; j < COLUMNS; j++)
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const int row = top + x + i * dim_m, column = left + y + j * dim_n;
            if (whole_tiles || (row < n && column < n)) {
                real *at = c + (size_t)column * n + row;
                *at = alpha * sum[j][i] + beta * *at;
            }
        }
}

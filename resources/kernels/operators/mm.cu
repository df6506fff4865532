// Matrix products c[b] = a[b] b[b] in FP32: BATCH of them, a of M x K, b of K x N and c of M x N numbers, row by row.
// tiles.cuh says how, and what its parameters are. Any sizes will do: what lies outside reads as zeros.
#define ROWS M
#define COLUMNS N
#define DEPTH K
#define PRODUCTS BATCH
#define A_VECTOR (K % 8 == 0 ? WIDEST : K % 4 == 0 ? 4 : K % 2 == 0 ? 2 : 1)
#define B_VECTOR (N % 8 == 0 ? WIDEST : N % 4 == 0 ? 4 : N % 2 == 0 ? 2 : 1)
#include "tiles.cuh"

// Where the numbers of a step lie.
struct Problem {
    const Number *a_all, *b_all, *a_row, *b_first, *a_now, *b_now;
    int row, column, a_depth, b_depth;

    __device__ __forceinline__ void begin_row(int i, int product, int at) {
        if (i) return;  // the others follow at a distance that is known
        row = at;
        a_row = a_all + ((size_t)product * M + at) * K;
    }
    __device__ __forceinline__ void begin_columns(int product, int at) {
        column = at;
        b_first = b_all + (size_t)product * K * N + at;
    }
    __device__ __forceinline__ void begin_step(int at_a, int at_b) {
        a_depth = at_a;
        b_depth = at_b;
        a_now = a_row + at_a;
        b_now = b_first + (size_t)at_b * N;
    }
    __device__ __forceinline__ const Number *a(int i, bool &inside) const {
        const int apart = i * (THREADS / (block_k / A_VECTOR));
        inside = (K % block_k == 0 || a_depth < K) && (M % block_m == 0 || row + apart < M);
        return inside ? a_now + (size_t)apart * K : a_all;
    }
    __device__ __forceinline__ const Number *b(int apart, int within, bool &inside) const {
        inside = (K % block_k == 0 || b_depth + apart < K) && (N % block_n == 0 || column + within < N);
        return inside ? b_now + ((size_t)apart * N + within) : b_all;
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, min_blocks)
mm(float *c, const Number *__restrict__ a, const Number *__restrict__ b, float *workspace, unsigned *arrived) {
    extern __shared__ __align__(16) float shared[];
    Reader<Problem> reader;
    reader.problem.a_all = a;
    reader.problem.b_all = b;
    product(c, reader, shared, workspace, arrived);
}

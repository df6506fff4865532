// A convolution, forward, in FP32, as a matrix product whose left matrix is never made (implicit GEMM): its rows are the
// output's pixels, its depth runs over kernel rows, kernel columns and input channels. Images and output lie as BATCH,
// height, width, channels (NHWC), weights as KERNEL, KERNEL, CIN, COUT: both are read along their last axis. A kernel of
// 1 x 1 without stride and padding is the product itself.
// tiles.cuh says how, and what its parameters are. Any sizes will do: what lies outside reads as zeros.
#define OUT_H ((H + 2 * PAD - KERNEL) / STRIDE + 1)
#define OUT_W ((W + 2 * PAD - KERNEL) / STRIDE + 1)
#define ROWS (BATCH * OUT_H * OUT_W)
#define COLUMNS COUT
#define DEPTH (KERNEL * KERNEL * CIN)
#define PRODUCTS 1
#define A_VECTOR (CIN % 8 == 0 ? WIDEST : CIN % 4 == 0 ? 4 : CIN % 2 == 0 ? 2 : 1)
#define B_VECTOR (COUT % 8 == 0 ? WIDEST : COUT % 4 == 0 ? 4 : COUT % 2 == 0 ? 2 : 1)
#define DIRECT (KERNEL == 1 && STRIDE == 1 && PAD == 0)
#include "tiles.cuh"

struct Problem {
    const Number *a_all, *b_all, *b_first, *b_now;
    int column, b_depth;
    int depth, tap_row, tap_column, tap;    // of this step: where in the kernel, and how far from an output's first tap
    int first[A_LOADS];                      // of each row: the place of its first tap, channel 0
    short top[A_LOADS], left[A_LOADS];        // its pixel

    __device__ __forceinline__ void begin_row(int i, int, int at) {
        if constexpr (DIRECT) {
            first[i] = at < ROWS ? at * CIN : -1;
        } else {
            const int image = at / (OUT_H * OUT_W), pixel = at % (OUT_H * OUT_W);
            top[i] = at < ROWS ? pixel / OUT_W * STRIDE - PAD : -H - KERNEL;  // where no tap is inside
            left[i] = pixel % OUT_W * STRIDE - PAD;
            first[i] = ((image * H + top[i]) * W + left[i]) * CIN;
        }
    }
    __device__ __forceinline__ void begin_columns(int, int at) {
        column = at;
        b_first = b_all + at;
    }
    __device__ __forceinline__ void begin_step(int at, int at_b) {
        depth = at;
        b_depth = at_b;
        b_now = b_first + (size_t)at_b * COUT;
        const int of_kernel = at / CIN;
        tap_row = of_kernel / KERNEL;
        tap_column = of_kernel % KERNEL;
        tap = (tap_row * W + tap_column) * CIN + at % CIN;
    }
    __device__ __forceinline__ const Number *a(int i, bool &inside) const {
        inside = DEPTH % block_k == 0 || depth < DEPTH;
        if constexpr (DIRECT) {
            inside = inside && (ROWS % block_m == 0 || first[i] >= 0);
            return a_all + (inside ? first[i] + depth : 0);
        } else {
            inside = inside && (unsigned)(top[i] + tap_row) < H && (unsigned)(left[i] + tap_column) < W;
            return a_all + (inside ? first[i] + tap : 0);
        }
    }
    __device__ __forceinline__ const Number *b(int apart, int within, bool &inside) const {
        inside = (DEPTH % block_k == 0 || b_depth + apart < DEPTH) && (COUT % block_n == 0 || column + within < COUT);
        return inside ? b_now + ((size_t)apart * COUT + within) : b_all;
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, min_blocks)
conv2d(float *y, const Number *__restrict__ x, const Number *__restrict__ w, float *workspace, unsigned *arrived) {
    extern __shared__ __align__(16) float shared[];
    Reader<Problem> reader;
    reader.problem.a_all = x;
    reader.problem.b_all = w;
    product(y, reader, shared, workspace, arrived);
}

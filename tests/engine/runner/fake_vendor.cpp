// cuBLAS and cuDNN as their manuals define them, on the host: by index, matrices column by column, NCHW.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

static int lasting;
static double spent, costs[5];  // s of a launch: cuDNN's NCHW by algorithm 1 and 6, NHWC by them, cuBLAS
enum { N, T };
struct Tensor { int size[4], format; };  // sizes as n, c, h, w
struct How { int pad, stride; };

static float at(const float *matrix, int transposed, int row, int column, int apart) {
    return transposed ? matrix[column + int64_t(row) * apart] : matrix[row + int64_t(column) * apart];
}

static float of_half(uint16_t bits) {  // of numbers from 0 to 1
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    return exponent ? std::ldexp(1 + fraction / 1024.0f, exponent - 15) : std::ldexp(fraction / 1024.0f, -14);
}

static float of_brain(uint16_t bits) {  // of numbers from 0 to 1
    const int exponent = bits >> 7 & 255, fraction = bits & 127;
    return exponent ? std::ldexp(1 + fraction / 128.0f, exponent - 127) : std::ldexp(fraction / 128.0f, -126);
}
typedef float (*Value)(uint16_t);
static std::vector<float> numbers(const uint16_t *halves, size_t size, Value value) {
    std::vector<float> found(size);
    for (size_t i = 0; i < size; i++) found[i] = value(halves[i]);
    return found;
}

extern "C" {
double spent_s() { return spent; }
void set_costs(const double *of) { for (int each = 0; each < 5; each++) costs[each] = of[each]; }
int cublasCreate_v2(void **handle) { *handle = &lasting; return 0; }
int cublasDestroy_v2(void *) { return 0; }
int cublasSetStream_v2(void *, void *) { return 0; }
int cublasSetWorkspace_v2(void *, void *at, size_t size) { return at && size >= (4 << 20) ? 0 : 7; }
int cublasGetVersion_v2(void *, int *version) { *version = 120901; return 0; }
int cublasSgemmStridedBatched(void *, int ta, int tb, int m, int n, int k, const float *alpha, const float *a, int lda,
                              long long apart_a, const float *b, int ldb, long long apart_b, const float *beta, float *c,
                              int ldc, long long apart_c, int batch) {
    if (lda < (ta ? k : m) || ldb < (tb ? n : k) || ldc < m) return 7;  // CUBLAS_STATUS_INVALID_VALUE
    spent += costs[4];
    for (int each = 0; each < batch; each++, a += apart_a, b += apart_b, c += apart_c)
        for (int i = 0; i < m; i++)
            for (int j = 0; j < n; j++) {
                double sum = 0;
                for (int l = 0; l < k; l++) sum += double(at(a, ta, i, l, lda)) * at(b, tb, l, j, ldb);
                float &to = c[i + int64_t(j) * ldc];
                to = float(*alpha * sum) + (*beta ? *beta * to : 0.0f);
            }
    return 0;
}
int cublasGemmStridedBatchedEx(void *handle, int ta, int tb, int m, int n, int k, const float *alpha, const uint16_t *a,
                               int type_a, int lda, long long apart_a, const uint16_t *b, int type_b, int ldb,
                               long long apart_b, const float *beta, float *c, int type_c, int ldc, long long apart_c,
                               int batch, int compute, int algorithm) {
    const bool known = type_a == type_b && (type_a == 2 || type_a == 14);  // CUDA_R_16F, CUDA_R_16BF
    if (!known || type_c != 0 || compute != 68 || algorithm != -1) return 15;  // NOT_SUPPORTED
    const Value value = type_a == 2 ? of_half : of_brain;
    const std::vector<float> left = numbers(a, apart_a * batch, value), right = numbers(b, apart_b * batch, value);
    return cublasSgemmStridedBatched(handle, ta, tb, m, n, k, alpha, left.data(), lda, apart_a, right.data(), ldb, apart_b,
                                     beta, c, ldc, apart_c, batch);
}
int cublasSgemm_v2(void *handle, int ta, int tb, int m, int n, int k, const float *alpha, const float *a, int lda,
                   const float *b, int ldb, const float *beta, float *c, int ldc) {
    return cublasSgemmStridedBatched(handle, ta, tb, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1);
}
int cublasSgemvStridedBatched(void *handle, int ta, int m, int n, const float *alpha, const float *a, int lda,
                              long long apart_a, const float *x, int step_x, long long apart_x, const float *beta,
                              float *y, int step_y, long long apart_y, int batch) {
    if (lda < m || step_x != 1 || step_y != 1) return 7;
    const int rows = ta ? n : m, depth = ta ? m : n;
    return cublasSgemmStridedBatched(handle, ta, N, rows, 1, depth, alpha, a, lda, apart_a, x, depth, apart_x, beta, y,
                                     rows, apart_y, batch);
}
int cublasSgemv_v2(void *handle, int ta, int m, int n, const float *alpha, const float *a, int lda, const float *x,
                   int step_x, const float *beta, float *y, int step_y) {
    return cublasSgemvStridedBatched(handle, ta, m, n, alpha, a, lda, 0, x, step_x, 0, beta, y, step_y, 0, 1);
}
static int half_gemv(void *handle, int ta, int m, int n, const float *alpha, const uint16_t *a, int lda, long long apart_a,
                     const uint16_t *x, int step_x, long long apart_x, const float *beta, float *y, int step_y,
                     long long apart_y, int batch, Value value) {
    const std::vector<float> left = numbers(a, apart_a * batch, value), right = numbers(x, apart_x * batch, value);
    return cublasSgemvStridedBatched(handle, ta, m, n, alpha, left.data(), lda, apart_a, right.data(), step_x, apart_x, beta,
                                     y, step_y, apart_y, batch);
}
int cublasHSSgemvStridedBatched(void *handle, int ta, int m, int n, const float *alpha, const uint16_t *a, int lda,
                                long long apart_a, const uint16_t *x, int step_x, long long apart_x, const float *beta,
                                float *y, int step_y, long long apart_y, int batch) {
    return half_gemv(handle, ta, m, n, alpha, a, lda, apart_a, x, step_x, apart_x, beta, y, step_y, apart_y, batch, of_half);
}
int cublasTSSgemvStridedBatched(void *handle, int ta, int m, int n, const float *alpha, const uint16_t *a, int lda,
                                long long apart_a, const uint16_t *x, int step_x, long long apart_x, const float *beta,
                                float *y, int step_y, long long apart_y, int batch) {
    return half_gemv(handle, ta, m, n, alpha, a, lda, apart_a, x, step_x, apart_x, beta, y, step_y, apart_y, batch, of_brain);
}

size_t cudnnGetVersion() { return 91002; }
int cudnnCreate(void **handle) { *handle = &lasting; return 0; }
int cudnnDestroy(void *) { return 0; }
int cudnnSetStream(void *, void *) { return 0; }
int cudnnCreateTensorDescriptor(Tensor **made) { *made = new Tensor; return 0; }
int cudnnCreateFilterDescriptor(Tensor **made) { *made = new Tensor; return 0; }
int cudnnCreateConvolutionDescriptor(How **made) { *made = new How; return 0; }
int cudnnSetTensor4dDescriptor(Tensor *tensor, int format, int type, int n, int c, int h, int w) {
    *tensor = {{n, c, h, w}, format};
    return format >> 1 || type;
}
int cudnnSetFilter4dDescriptor(Tensor *tensor, int type, int format, int k, int c, int h, int w) {
    *tensor = {{k, c, h, w}, format};
    return format >> 1 || type;
}
int cudnnSetConvolution2dDescriptor(How *how, int pad_h, int pad_w, int u, int v, int dh, int dw, int mode, int type) {
    *how = {pad_h, u};
    return pad_h != pad_w || u != v || dh != 1 || dw != 1 || mode != 1 || type;
}
int cudnnSetConvolutionMathType(How *, int math) { return math != 3; }  // CUDNN_FMA_MATH
struct Performance { int algorithm, status; float time; size_t memory; int determinism, math, reserved[3]; };
int cudnnGetConvolutionForwardAlgorithm_v7(void *, Tensor *, Tensor *, How *, Tensor *, int asked, int *found, Performance *best) {
    const Performance known[] = {{1, 0, 0.1f, 0, 1, 0, {}}, {6, 0, 0.2f, 0, 1, 0, {}}, {4, 3, -1.0f, 0, 1, 0, {}},
                                 {5, 0, 0.3f, 0, 1, 0, {}}};  // 4 is refused, 5 takes more memory than there is
    *found = asked < 4 ? asked : 4;
    for (int each = 0; each < *found; each++) best[each] = known[each];
    return 0;
}
int cudnnGetConvolutionForwardWorkspaceSize(void *, Tensor *, Tensor *, How *, Tensor *, int algorithm, size_t *size) {
    *size = algorithm == 5 ? size_t(1) << 40 : 64;
    return algorithm != 6 && algorithm != 1 && algorithm != 5;
}
int cudnnConvolutionForward(void *, const float *alpha, Tensor *tx, const float *x, Tensor *tw, const float *w, How *how,
                            int algorithm, void *workspace, size_t size, const float *beta, Tensor *ty, float *y) {
    const int *in = tx->size, *taps = tw->size, *out = ty->size;
    const bool last = tx->format == 1;  // channels
    if (tw->format != tx->format || ty->format != tx->format) return 3;
    if ((algorithm != 6 && algorithm != 1) || !workspace || size != 64 || *alpha != 1 || *beta || in[1] != taps[1] || out[1] != taps[0])
        return 3;
    spent += costs[2 * last + (algorithm == 6)];
    const auto place = [last](const int *of, int n, int c, int h, int w) {
        return last ? ((n * of[2] + h) * of[3] + w) * of[1] + c : ((n * of[1] + c) * of[2] + h) * of[3] + w;
    };
    for (int n = 0; n < out[0]; n++)
        for (int k = 0; k < out[1]; k++)
            for (int i = 0; i < out[2]; i++)
                for (int j = 0; j < out[3]; j++) {
                    double sum = 0;
                    for (int c = 0; c < in[1]; c++)
                        for (int r = 0; r < taps[2]; r++)
                            for (int s = 0; s < taps[3]; s++) {
                                const int h = i * how->stride - how->pad + r, v = j * how->stride - how->pad + s;
                                if (h < 0 || v < 0 || h >= in[2] || v >= in[3]) continue;
                                sum += double(x[place(in, n, c, h, v)]) * w[place(taps, k, c, r, s)];
                            }
                    y[place(out, n, k, i, j)] = float(sum);
                }
    return 0;
}
}

// cuBLAS, cuBLASLt and cuDNN as their manuals define them, on the host: by index, matrices column by column, NCHW.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

static int lasting;
static double spent, costs[5];  // s of a launch: cuDNN's NCHW by algorithm 1 and 6, NHWC by them, cuBLAS
enum { N, T };
struct Tensor { int size[4], format; };  // sizes as n, c, h, w
struct How { int pad, stride; };

static float at(const float *matrix, int transposed, int row, int column, int apart) {
    return transposed ? matrix[column + int64_t(row) * apart] : matrix[row + int64_t(column) * apart];
}

static float of_half(uint16_t bits) {  // of finite numbers
    const int exponent = bits >> 10 & 31, fraction = bits & 1023, sign = bits >> 15 ? -1 : 1;
    return sign * (exponent ? std::ldexp(1 + fraction / 1024.0f, exponent - 15) : std::ldexp(fraction / 1024.0f, -14));
}

static float of_brain(uint16_t bits) {
    const uint32_t whole = uint32_t(bits) << 16;
    float value;
    std::memcpy(&value, &whole, 4);
    return value;
}

static uint16_t rounded(double number, int type) {  // to the nearest of CUDA_R_16F or CUDA_R_16BF
    const int steps = type == 2 ? 10 : 7, least = type == 2 ? -14 : -126, bias = type == 2 ? 15 : 127;
    const double size = std::fabs(number);
    const int exponent = size > 0 ? std::max(std::ilogb(size), least) : least;
    const long units = std::lrint(std::ldexp(size, steps - exponent));  // the carry goes into the exponent by itself
    return uint16_t((std::signbit(number) << 15) + (long(exponent + bias - 1) << steps) + units);
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
                               long long apart_b, const float *beta, uint16_t *c, int type_c, int ldc, long long apart_c,
                               int batch, int compute, int algorithm) {
    const bool known = type_a == type_b && (type_a == 2 || type_a == 14);  // CUDA_R_16F, CUDA_R_16BF
    if (!known || type_c != type_a || compute != 68 || algorithm != -1) return 15;  // NOT_SUPPORTED
    const Value value = type_a == 2 ? of_half : of_brain;
    const std::vector<float> left = numbers(a, apart_a * batch, value), right = numbers(b, apart_b * batch, value);
    std::vector<float> sums(apart_c * batch);
    const int failed = cublasSgemmStridedBatched(handle, ta, tb, m, n, k, alpha, left.data(), lda, apart_a, right.data(),
                                                 ldb, apart_b, beta, sums.data(), ldc, apart_c, batch);
    for (size_t i = 0; i < sums.size() && !failed; i++) c[i] = rounded(sums[i], type_c);
    return failed;
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

// cuBLASLt: what algorithms there are is of this stand-in alone. 66 has three tiles, two stages and clusters; 1 is old.
struct LtProduct { int across[2], epilogue; const uint16_t *bias; };
struct LtLayout { int type, batch; uint64_t rows, columns; int64_t leading, apart; };
struct LtAlgorithm { int32_t set[9], type; char rest[24]; };  // 64 bytes
struct LtFound { LtAlgorithm algorithm; size_t workspace; int state; float waves; int reserved[4]; };
static size_t release = 120901, offered_workspace;
static int most_cluster = 19, created;  // the newest cluster that there is; handles, descriptions, layouts that are alive
static const int LISTED[4][9] = {{66, 20, 1, 0, 0, 0, 35, 0, 3}, {66, 18, 1, 0, 0, 0, 35, 0, 3},
                                 {66, 20, 1, 0, 0, 0, 35, 0, 3}, {1, 15, 1, 0, 0, 0, 0, 0, 0}};
static uint64_t extent(const LtLayout *of, int across, int axis) { return (axis ^ across) ? of->columns : of->rows; }

void set_release(int number, int cluster) { release = number; most_cluster = cluster; }
int alive() { return created; }
size_t cublasLtGetVersion() { return release; }
int cublasLtCreate(void **handle) { *handle = &lasting; created++; return 0; }
int cublasLtDestroy(void *) { created--; return 0; }
int cublasLtMatmulDescCreate(LtProduct **made, int compute, int scale) {
    *made = new LtProduct{{0, 0}, 1, nullptr};
    created++;
    return compute != 68 || scale != 0;
}
int cublasLtMatmulDescDestroy(LtProduct *made) { delete made; created--; return 0; }
int cublasLtMatmulDescSetAttribute(LtProduct *of, int which, const void *value, size_t size) {
    if (size != (which == 8 ? 8u : 4u)) return 7;
    if (which == 8) return std::memcpy(&of->bias, value, size), 0;
    if (which != 3 && which != 4 && which != 7) return 7;
    return std::memcpy(which == 7 ? &of->epilogue : &of->across[which - 3], value, size), 0;
}
int cublasLtMatrixLayoutCreate(LtLayout **made, int type, uint64_t rows, uint64_t columns, int64_t leading) {
    *made = new LtLayout{type, 1, rows, columns, leading, 0};
    created++;
    return leading < int64_t(rows) ? 7 : 0;
}
int cublasLtMatrixLayoutDestroy(LtLayout *made) { delete made; created--; return 0; }
int cublasLtMatrixLayoutSetAttribute(LtLayout *of, int which, const void *value, size_t size) {
    if (which == 5 && size == 4) return std::memcpy(&of->batch, value, size), 0;
    if (which == 6 && size == 8) return std::memcpy(&of->apart, value, size), 0;
    return 7;
}
int cublasLtMatmulPreferenceCreate(void **made) { *made = &lasting; created++; return 0; }
int cublasLtMatmulPreferenceDestroy(void *) { created--; return 0; }
int cublasLtMatmulPreferenceSetAttribute(void *, int which, const void *value, size_t size) {
    if (which != 1 || size != 8) return 7;
    return std::memcpy(&offered_workspace, value, size), 0;
}
int cublasLtMatmulAlgoInit(void *, int compute, int scale, int type, int b, int c, int d, int id, LtAlgorithm *made) {
    *made = LtAlgorithm{};
    made->set[0] = id;
    made->set[2] = 1;
    made->type = type;
    const bool one_type = type == b && type == c && type == d && (type == 2 || type == 14);
    return compute != 68 || scale != 0 || !one_type || (id != 66 && id != 1) ? 15 : 0;
}
int cublasLtMatmulAlgoConfigSetAttribute(LtAlgorithm *of, int which, const void *value, size_t size) {
    if (which < 1 || which > 8 || size != (which < 7 ? 4u : 2u)) return 7;
    of->set[which] = 0;
    return std::memcpy(&of->set[which], value, size), 0;
}
int cublasLtMatmulAlgoConfigGetAttribute(const LtAlgorithm *of, int which, void *value, size_t size, size_t *written) {
    if (which < 0 || which > 8 || size != (which < 7 ? 4u : 2u)) return 7;
    *written = size;
    return std::memcpy(value, &of->set[which], size), 0;
}
int cublasLtMatmulAlgoCapGetAttribute(const LtAlgorithm *of, int which, uint32_t *values, size_t size, size_t *written) {
    const bool newer = of->set[0] == 66;
    std::vector<uint32_t> has;
    if (which == 6) has = newer ? std::vector<uint32_t>{18, 20, 23} : std::vector<uint32_t>{15};
    else if (which == 13) has = newer ? std::vector<uint32_t>{35, 36} : std::vector<uint32_t>{0};
    else if (which == 0 || which == 2) has = {newer};  // split-K, swizzle
    else if (which == 7) has = {0};                    // custom options
    else return 7;
    *written = 4 * has.size();
    if (size < *written) return 7;
    return std::memcpy(values, has.data(), *written), 0;
}
int cublasLtMatmulAlgoCheck(void *, const LtProduct *product, const LtLayout *a, const LtLayout *b, const LtLayout *c,
                            const LtLayout *d, const LtAlgorithm *algorithm, LtFound *found) {
    const int *set = algorithm->set, *across = product->across;
    const bool fits = extent(a, across[0], 0) == d->rows && extent(b, across[1], 1) == d->columns &&
                      extent(a, across[0], 1) == extent(b, across[1], 0) && c->rows == d->rows;
    const bool alike = a->type == algorithm->type && b->type == a->type && c->type == a->type && d->batch == a->batch;
    if (!fits || !alike || a->batch != b->batch) return 7;
    if (set[0] == 1 ? set[1] != 15 || set[6] || set[8] : (set[1] != 18 && set[1] != 20 && set[1] != 23)) return 15;
    if (set[0] == 66 && (set[6] < 35 || set[6] > 36 || (set[1] == 23 && set[6] == 36))) return 15;
    if (set[8] > most_cluster || set[5] || set[7] || (set[2] > 1) != (set[3] == 2)) return 15;
    *found = LtFound{*algorithm, size_t(set[2] > 1 ? set[2] : 0) << 22, 0, 1.0f, {}};  // a split of 16 takes all
    return 0;
}
int cublasLtMatmulAlgoGetHeuristic(void *handle, const LtProduct *product, const LtLayout *a, const LtLayout *b,
                                   const LtLayout *c, const LtLayout *d, void *, int asked, LtFound *found, int *count) {
    *count = 0;
    for (const auto &each : LISTED) {
        LtAlgorithm made{};
        std::memcpy(made.set, each, sizeof each);
        made.type = a->type;
        if (*count == asked || each[8] > most_cluster) continue;
        if (int failed = cublasLtMatmulAlgoCheck(handle, product, a, b, c, d, &made, &found[*count])) return failed;
        *count += found[*count].workspace <= offered_workspace;
    }
    return 0;
}
int cublasLtMatmul(void *handle, const LtProduct *product, const float *alpha, const uint16_t *a, const LtLayout *at_a,
                   const uint16_t *b, const LtLayout *at_b, const float *beta, const uint16_t *c, const LtLayout *at_c,
                   uint16_t *d, const LtLayout *at_d, const LtAlgorithm *algorithm, void *workspace, size_t size, void *) {
    LtFound found;
    if (int failed = cublasLtMatmulAlgoCheck(handle, product, at_a, at_b, at_c, at_d, algorithm, &found)) return failed;
    if (found.workspace > size || (found.workspace && !workspace) || *alpha != 1 || *beta || c != d) return 7;
    const int m = int(at_d->rows), n = int(at_d->columns), depth = int(extent(at_a, product->across[0], 1));
    const bool biased = product->epilogue & 4, curved = product->epilogue & 32;
    if ((product->epilogue & ~37) || (biased && !product->bias)) return 7;
    const Value value = at_a->type == 2 ? of_half : of_brain;
    const auto number = [&](const uint16_t *of, const LtLayout *at, int across, int batch, int row, int column) {
        return double(value(of[batch * at->apart + (across ? column + row * at->leading : row + column * at->leading)]));
    };
    for (int batch = 0; batch < at_d->batch; batch++)
        for (int i = 0; i < m; i++)
            for (int j = 0; j < n; j++) {
                double sum = biased ? value(product->bias[i]) : 0;
                for (int l = 0; l < depth; l++)
                    sum += number(a, at_a, product->across[0], batch, i, l) * number(b, at_b, product->across[1], batch, l, j);
                if (curved) sum *= 0.5 * (1 + std::tanh(0.7978845608028654 * (sum + 0.044715 * sum * sum * sum)));
                d[batch * at_d->apart + i + j * at_d->leading] = rounded(sum, at_d->type);
            }
    return 0;
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

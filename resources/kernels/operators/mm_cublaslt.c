#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cublasLt.h>

#ifdef __cplusplus
extern "C" {
#endif
const char *why_mm(void);
int MM_SIGNATURE;
#ifdef __cplusplus
}
#endif

static const int settings_[9] = {MM_ALGORITHM};
static cublasLtHandle_t handle_;
static cublasLtMatmulDesc_t product_;
static cublasLtMatrixLayout_t first_, second_, result_; /* column by column: the result's transpose is b' a' */
static cublasLtMatmulAlgo_t algorithm_;
static char words_[400];

static int failed_(const char *function, int status) {
    const int has = (int)cublasLtGetVersion();
    snprintf(words_, sizeof words_,
             "cuBLASLt %d.%d.%d does not run the algorithm %s of %s here, which was measured with %s: %s returned %d",
             has / 10000, has / 100 % 100, has % 100, MM_WORD, MM_OPERATOR, MM_MEASURED, function, status);
    return status;
}

static int layout_(cublasLtMatrixLayout_t *layout, uint64_t rows, uint64_t columns) {
    const int32_t batch = MM_BATCH;
    const int64_t apart = (int64_t)(rows * columns);
    int status = cublasLtMatrixLayoutCreate(layout, (cudaDataType_t)MM_TYPE, rows, columns, (int64_t)rows);
    if (!status)
        status = cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch);
    if (!status)
        status = cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &apart,
                                                  sizeof apart);
    if (status) *layout = 0;
    return status ? failed_("cublasLtMatrixLayoutCreate", status) : 0;
}

static int describe_(cublasLtMatmulDescAttributes_t which, const void *value, size_t size) {
    const int status = cublasLtMatmulDescSetAttribute(product_, which, value, size);
    return status ? failed_("cublasLtMatmulDescSetAttribute", status) : 0;
}

/* The product and the algorithm, which the library is asked for; nothing takes its place. */
static int prepare_(void) {
    const int32_t across_first = MM_B_ACROSS, across_second = MM_A_ACROSS, epilogue = MM_EPILOGUE;
    const cudaDataType_t type = (cudaDataType_t)MM_TYPE;
    cublasLtMatmulHeuristicResult_t found;
    int status, place;
    if (!handle_ && (status = cublasLtCreate(&handle_)) != 0) return failed_("cublasLtCreate", status);
    if (!product_ && (status = cublasLtMatmulDescCreate(&product_, CUBLAS_COMPUTE_32F, CUDA_R_32F)) != 0)
        return failed_("cublasLtMatmulDescCreate", status);
    if ((status = describe_(CUBLASLT_MATMUL_DESC_TRANSA, &across_first, sizeof across_first)) != 0) return status;
    if ((status = describe_(CUBLASLT_MATMUL_DESC_TRANSB, &across_second, sizeof across_second)) != 0) return status;
    if ((status = describe_(CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue)) != 0) return status;
    if (!first_ && (status = MM_B_ACROSS ? layout_(&first_, MM_K, MM_N) : layout_(&first_, MM_N, MM_K)) != 0)
        return status;
    if (!second_ && (status = MM_A_ACROSS ? layout_(&second_, MM_M, MM_K) : layout_(&second_, MM_K, MM_M)) != 0)
        return status;
    if (!result_ && (status = layout_(&result_, MM_N, MM_M)) != 0) return status;
    status = cublasLtMatmulAlgoInit(handle_, CUBLAS_COMPUTE_32F, CUDA_R_32F, type, type, type, type, settings_[0],
                                    &algorithm_);
    if (status) return failed_("cublasLtMatmulAlgoInit", status);
    for (place = 1; place < 9; place++) { /* tile, split, reduction, swizzle, custom, stages; inner shape, cluster */
        const uint32_t wide = (uint32_t)settings_[place];
        const uint16_t narrow = (uint16_t)settings_[place];
        status = cublasLtMatmulAlgoConfigSetAttribute(
            &algorithm_, (cublasLtMatmulAlgoConfigAttributes_t)place,
            place < 7 ? (const void *)&wide : (const void *)&narrow, place < 7 ? sizeof wide : sizeof narrow);
        if (status) return failed_("cublasLtMatmulAlgoConfigSetAttribute", status);
    }
    status = cublasLtMatmulAlgoCheck(handle_, product_, first_, second_, result_, result_, &algorithm_, &found);
    if (!status && found.workspaceSize > MM_WORKSPACE) status = CUBLAS_STATUS_NOT_SUPPORTED;
    return status ? failed_("cublasLtMatmulAlgoCheck", status) : 0;
}

const char *why_mm(void) { return words_; }

int MM_SIGNATURE {
    static int ready_;
    const float one = 1.0f, zero = 0.0f;
    int status;
    words_[0] = 0;
    if (!ready_ && (status = prepare_()) != 0) return status;
    ready_ = 1;
#if MM_HAS_BIAS
    if ((status = describe_(CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias)) != 0) return status;
#endif
    status = cublasLtMatmul(handle_, product_, &one, b, first_, a, second_, &zero, c, result_, c, result_, &algorithm_,
                            workspace, MM_WORKSPACE, (cudaStream_t)stream);
    return status ? failed_("cublasLtMatmul", status) : 0;
}

// c = a b for row-major float matrices of n x n, on the processor; returns the milliseconds that one product took.
// Tunable: tile_i, tile_k (rows of a and of b that stay in the cache), unroll (rows of b per pass over a row of c).
#include <time.h>

static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e3 + now.tv_nsec * 1e-6;
}

float matrix_product(float *restrict c, const float *restrict a, const float *restrict b) {
    const double began_ms = now_ms();
    for (int at = 0; at < n * n; at++) c[at] = 0.0f;
    for (int k0 = 0; k0 < n; k0 += tile_k)
        for (int i0 = 0; i0 < n; i0 += tile_i)
            for (int i = i0; i < i0 + tile_i; i++)
                for (int k = k0; k < k0 + tile_k; k += unroll)
                    for (int j = 0; j < n; j++) {
                        float sum = c[i * n + j];
                        for (int u = 0; u < unroll; u++) sum += a[i * n + k + u] * b[(k + u) * n + j];
                        c[i * n + j] = sum;
                    }
    return (float)(now_ms() - began_ms);
}

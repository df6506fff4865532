// c = alpha a b + beta c for float matrices of n x n, in OpenCL. a and c are stored column by column, b row by row, so
// that vectors run along the rows of c in a, and along its columns in b.
// Tunable, by the names of the GEMM of CLBlast (this is another kernel, written for the same parameters):
//   MWG, NWG, KWG   the tile of c that a work-group computes, and the depth of one step
//   MDIMC, NDIMC    the work-group
//   MDIMA, NDIMB    the shapes in which it reads the tiles of a and of b: MDIMA along m, NDIMB along n
//   KWI             unrolled steps of the inner loop
//   VWM, VWN        numbers per load of a and of b
//   SA, SB          whether the tiles of a and of b go through local memory
#ifndef n
#define n 4096
#endif

#define GROUP (MDIMC * NDIMC)
#define M_VECTORS (MWG / VWM)          // of a tile, along m
#define N_VECTORS (NWG / VWN)
#define M_EACH (M_VECTORS / MDIMC)     // of a work-item
#define N_EACH (N_VECTORS / NDIMC)

#define JOINED(a, b) a##b
#define OF(type, width) JOINED(type, width)
#if VWM == 1
#define M_VECTOR float
#else
#define M_VECTOR OF(float, VWM)
#endif
#if VWN == 1
#define N_VECTOR float
#else
#define N_VECTOR OF(float, VWN)
#endif

__kernel __attribute__((reqd_work_group_size(MDIMC, NDIMC, 1)))
void gemm(__global M_VECTOR *restrict c, __global const M_VECTOR *restrict a, __global const N_VECTOR *restrict b,
          const float alpha, const float beta) {
    const int x = get_local_id(0), y = get_local_id(1), item = y * MDIMC + x;
    const int first_m = get_group_id(0) * M_VECTORS, first_n = get_group_id(1) * N_VECTORS;
#if SA
    __local M_VECTOR a_tile[KWG][M_VECTORS];
#endif
#if SB
    __local N_VECTOR b_tile[KWG][N_VECTORS];
#endif
    M_VECTOR sum[N_EACH * VWN][M_EACH];
    for (int j = 0; j < N_EACH * VWN; j++)
        for (int i = 0; i < M_EACH; i++) sum[j][i] = (M_VECTOR)(0.0f);

    for (int step = 0; step < n; step += KWG) {
#if SA
        for (int k = item / MDIMA; k < KWG; k += GROUP / MDIMA)
            for (int m = item % MDIMA; m < M_VECTORS; m += MDIMA)
                a_tile[k][m] = a[(step + k) * (n / VWM) + first_m + m];
#endif
#if SB
        for (int k = item / NDIMB; k < KWG; k += GROUP / NDIMB)
            for (int at = item % NDIMB; at < N_VECTORS; at += NDIMB)
                b_tile[k][at] = b[(step + k) * (n / VWN) + first_n + at];
#endif
#if SA || SB
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
        for (int outer = 0; outer < KWG; outer += KWI) {
            __attribute__((opencl_unroll_hint(KWI)))
            for (int k = outer; k < outer + KWI; k++) {
                M_VECTOR left[M_EACH];
                for (int i = 0; i < M_EACH; i++) {
#if SA
                    left[i] = a_tile[k][x + i * MDIMC];
#else
                    left[i] = a[(step + k) * (n / VWM) + first_m + x + i * MDIMC];
#endif
                }
                for (int j = 0; j < N_EACH; j++) {
#if SB
                    const N_VECTOR right = b_tile[k][y + j * NDIMC];
#else
                    const N_VECTOR right = b[(step + k) * (n / VWN) + first_n + y + j * NDIMC];
#endif
                    const float *lanes = (const float *)&right;
                    for (int lane = 0; lane < VWN; lane++)
                        for (int i = 0; i < M_EACH; i++) sum[j * VWN + lane][i] += left[i] * lanes[lane];
                }
            }
        }
#if SA || SB
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
    }

    for (int j = 0; j < N_EACH; j++)
        for (int lane = 0; lane < VWN; lane++)
            for (int i = 0; i < M_EACH; i++) {
                const int column = (first_n + y + j * NDIMC) * VWN + lane;
                const int at = column * (n / VWM) + first_m + x + i * MDIMC;
                c[at] = alpha * sum[j * VWN + lane][i] + beta * c[at];
            }
}

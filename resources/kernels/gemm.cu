// c = a b for row-major float matrices of n x n.
// Tunable: block_size_x, block_size_y (threads), tile_size_x, tile_size_y (outputs per thread).
// A block computes block_size_y * tile_size_y rows by block_size_x * tile_size_x columns, in steps of block_size_x
// along the inner dimension. n must be a multiple of rows, columns and step.
#ifndef n
#define n 4096
#endif

#define THREADS (block_size_x * block_size_y)
#define ROWS (block_size_y * tile_size_y)
#define COLUMNS (block_size_x * tile_size_x)
#define DEPTH block_size_x

extern "C" __global__ void __launch_bounds__(THREADS)
sgemm(float *c, const float *__restrict__ a, const float *__restrict__ b) {
    static_assert(n % ROWS == 0 && n % COLUMNS == 0 && n % DEPTH == 0, "n must be a multiple of the tiles");
    __shared__ float a_tile[ROWS][DEPTH];
    __shared__ float b_tile[DEPTH][COLUMNS];
    const int x = threadIdx.x, y = threadIdx.y;
    const int thread = y * block_size_x + x;
    const float *a_block = a + (size_t)blockIdx.y * ROWS * n;
    const float *b_block = b + blockIdx.x * COLUMNS;

    float sum[tile_size_y][tile_size_x] = {};
    for (int step = 0; step < n; step += DEPTH) {
        for (int at = thread; at < ROWS * DEPTH; at += THREADS)
            a_tile[at / DEPTH][at % DEPTH] = a_block[(size_t)(at / DEPTH) * n + step + at % DEPTH];
        for (int at = thread; at < DEPTH * COLUMNS; at += THREADS)
            b_tile[at / COLUMNS][at % COLUMNS] = b_block[(size_t)(step + at / COLUMNS) * n + at % COLUMNS];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            float row[tile_size_x];
#pragma unroll
            for (int j = 0; j < tile_size_x; j++) row[j] = b_tile[k][x + j * block_size_x];
#pragma unroll
            for (int i = 0; i < tile_size_y; i++) {
                const float left = a_tile[y + i * block_size_y][k];
#pragma unroll
                for (int j = 0; j < tile_size_x; j++) sum[i][j] += left * row[j];
            }
        }
        __syncthreads();
    }

    float *c_block = c + (size_t)blockIdx.y * ROWS * n + blockIdx.x * COLUMNS;
#pragma unroll
    for (int i = 0; i < tile_size_y; i++)
#pragma unroll
        for (int j = 0; j < tile_size_x; j++)
            c_block[(size_t)(y + i * block_size_y) * n + x + j * block_size_x] = sum[i][j];
}

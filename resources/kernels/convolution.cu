// output = input * filter, the 2-D convolution where the filter lies wholly inside the input.
// output: image_height x image_width; input: (image_height + filter_height - 1) x (image_width + filter_width - 1).
// Tunable: block_size_x, block_size_y (threads), tile_size_x, tile_size_y (outputs per thread),
// use_shared_memory (0, 1), use_padding (0, 1: one more column, so that rows of the shared tile start in other banks).
#ifndef image_width
#define image_width 4096
#define image_height 4096
#define filter_width 15
#define filter_height 15
#endif

#define THREADS (block_size_x * block_size_y)
#define INPUT_WIDTH (image_width + filter_width - 1)
#define INPUT_HEIGHT (image_height + filter_height - 1)
#define TILE_WIDTH (block_size_x * tile_size_x + filter_width - 1)
#define TILE_HEIGHT (block_size_y * tile_size_y + filter_height - 1)

__constant__ float filter[filter_height * filter_width];  // all threads want the same number of it at the same time

extern "C" __global__ void __launch_bounds__(THREADS)
convolution(float *output, const float *__restrict__ input) {
    const int left = blockIdx.x * block_size_x * tile_size_x;
    const int top = blockIdx.y * block_size_y * tile_size_y;
    const int x = threadIdx.x, y = threadIdx.y;

#if use_shared_memory
    __shared__ float tile[TILE_HEIGHT][TILE_WIDTH + use_padding];
    for (int at = y * block_size_x + x; at < TILE_HEIGHT * TILE_WIDTH; at += THREADS) {
        const int row = top + at / TILE_WIDTH, column = left + at % TILE_WIDTH;
        const bool inside = row < INPUT_HEIGHT && column < INPUT_WIDTH;
        tile[at / TILE_WIDTH][at % TILE_WIDTH] = inside ? input[(size_t)row * INPUT_WIDTH + column] : 0.0f;
    }
    __syncthreads();
#define PIXEL(row, column) tile[row][column]
#else
// The last blocks reach over the edge: they read the edge instead, and their outputs are not stored.
#define PIXEL(row, column) \
    input[(size_t)min(top + (row), INPUT_HEIGHT - 1) * INPUT_WIDTH + min(left + (column), INPUT_WIDTH - 1)]
#endif

    float sum[tile_size_y][tile_size_x] = {};
    for (int fy = 0; fy < filter_height; fy++)
#pragma unroll
        for (int fx = 0; fx < filter_width; fx++) {
            const float tap = filter[(filter_height - 1 - fy) * filter_width + filter_width - 1 - fx];
#pragma unroll
            for (int i = 0; i < tile_size_y; i++)
#pragma unroll
                for (int j = 0; j < tile_size_x; j++)
                    sum[i][j] += tap * PIXEL(y + i * block_size_y + fy, x + j * block_size_x + fx);
        }

#pragma unroll
    for (int i = 0; i < tile_size_y; i++)
#pragma unroll
        for (int j = 0; j < tile_size_x; j++) {
            const int row = top + y + i * block_size_y, column = left + x + j * block_size_x;
            if (row < image_height && column < image_width) output[(size_t)row * image_width + column] = sum[i][j];
        }
}

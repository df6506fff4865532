// output = transpose of input; input has `height` rows of `width` floats, output `width` rows of `height`.
// Tunable: tile_dim (a block moves a square tile of that side), block_size_x, block_size_y (threads; both divide the
// tile's side), use_shared_memory (1: the tile turns in shared memory, so that reads and writes both run along rows;
// 0: writes run down columns), use_padding (one more column, so that a column of the tile lies in different banks),
// diagonal (1: blocks take the tiles diagonally, so that those under way at once write to different memory channels).
#ifndef width
#define width 8192
#define height 8192
#endif

#define THREADS (block_size_x * block_size_y)

extern "C" __global__ void __launch_bounds__(THREADS) transpose(float *output, const float *__restrict__ input) {
    static_assert(tile_dim % block_size_x == 0 && tile_dim % block_size_y == 0, "whole tiles only");
    const int x = threadIdx.x, y = threadIdx.y;
    const unsigned int tile_y = blockIdx.y;
#if diagonal
    const unsigned int tile_x = (blockIdx.x + blockIdx.y) % gridDim.x;
#else
    const unsigned int tile_x = blockIdx.x;
#endif
    const int left = tile_x * tile_dim, top = tile_y * tile_dim;

#if use_shared_memory
    __shared__ float tile[tile_dim][tile_dim + use_padding];
#pragma unroll
    for (int j = y; j < tile_dim; j += block_size_y)
#pragma unroll
        for (int i = x; i < tile_dim; i += block_size_x)
            if (top + j < height && left + i < width) tile[j][i] = input[(size_t)(top + j) * width + left + i];
    __syncthreads();
#pragma unroll
    for (int j = y; j < tile_dim; j += block_size_y)
#pragma unroll
        for (int i = x; i < tile_dim; i += block_size_x)
            if (left + j < width && top + i < height) output[(size_t)(left + j) * height + top + i] = tile[i][j];
#else
#pragma unroll
    for (int j = y; j < tile_dim; j += block_size_y)
#pragma unroll
        for (int i = x; i < tile_dim; i += block_size_x)
            if (top + j < height && left + i < width)
                output[(size_t)(left + i) * height + top + j] = input[(size_t)(top + j) * width + left + i];
#endif
}

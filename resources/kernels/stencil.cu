// One step of heat flow on a grid of depth x height x width points: output = input + k (sum of the six neighbours - 6
// input). Points on the surface keep their value.
// A block covers block_size_x x (block_size_y tile_size_y) points of a plane and walks through tile_size_z planes.
// Tunable: block_size_x, block_size_y (threads), tile_size_y (points per thread in a plane), tile_size_z (planes per
// block), use_shared_memory (the plane's points go to shared memory, where neighbours find them), keep_planes (the
// points below, here and above stay in registers from one plane to the next), loop_unroll_factor (planes).
#ifndef width
#define width 512
#define height 512
#define depth 512
#endif

#define THREADS (block_size_x * block_size_y)
#define ROWS (block_size_y * tile_size_y)
#define POINT(x, y, z) (((size_t)(z) * height + (y)) * width + (x))

extern "C" __global__ void __launch_bounds__(THREADS)
stencil(float *output, const float *__restrict__ input, const float k) {
    const int x = threadIdx.x, y = threadIdx.y;
    const int column = blockIdx.x * block_size_x + x;
    const int first = blockIdx.y * ROWS + y;  // row of the thread's first point; the next is block_size_y below
    const int start = blockIdx.z * tile_size_z;
    constexpr int unrolled = loop_unroll_factor;  // nvcc expands no macro in a pragma
#if use_shared_memory
    __shared__ float plane[ROWS + 2][block_size_x + 2];
#endif
#if keep_planes
    float below[tile_size_y], here[tile_size_y];
#pragma unroll
    for (int i = 0; i < tile_size_y; i++) {
        const int row = first + i * block_size_y;
        const bool inside = column < width && row < height;
        below[i] = inside && start > 0 ? input[POINT(column, row, start - 1)] : 0.0f;
        here[i] = inside && start < depth ? input[POINT(column, row, start)] : 0.0f;
    }
#endif

#pragma unroll unrolled
    for (int step = 0; step < tile_size_z; step++) {
        const int z = start + step;
#if use_shared_memory
        // The plane and a rim around it. Its corners are never used, but filling them costs less than asking.
        __syncthreads();
        for (int at = y * block_size_x + x; at < (ROWS + 2) * (block_size_x + 2); at += THREADS) {
            const int row = (int)(blockIdx.y * ROWS) + at / (block_size_x + 2) - 1;
            const int col = (int)(blockIdx.x * block_size_x) + at % (block_size_x + 2) - 1;
            const bool inside = z < depth && row >= 0 && row < height && col >= 0 && col < width;
            plane[at / (block_size_x + 2)][at % (block_size_x + 2)] = inside ? input[POINT(col, row, z)] : 0.0f;
        }
        __syncthreads();
#define AT(dx, dy) plane[y + i * block_size_y + 1 + (dy)][x + 1 + (dx)]
#else
#define AT(dx, dy) input[POINT(column + (dx), row + (dy), z)]
#endif
#pragma unroll
        for (int i = 0; i < tile_size_y; i++) {
            const int row = first + i * block_size_y;
            if (column >= width || row >= height || z >= depth) continue;
            const bool above_exists = z + 1 < depth;
#if keep_planes
            const float under = below[i], middle = here[i];
            const float over = above_exists ? input[POINT(column, row, z + 1)] : 0.0f;
            below[i] = middle;
            here[i] = over;
#else
            const float middle = AT(0, 0);
            const float under = z > 0 ? input[POINT(column, row, z - 1)] : 0.0f;
            const float over = above_exists ? input[POINT(column, row, z + 1)] : 0.0f;
#endif
            float result = middle;
            if (column > 0 && column < width - 1 && row > 0 && row < height - 1 && z > 0 && above_exists)
                result += k * (AT(-1, 0) + AT(1, 0) + AT(0, -1) + AT(0, 1) + under + over - 6.0f * middle);
            output[POINT(column, row, z)] = result;
        }
    }
}

// The same, point by point, to check against. Right for any launch.
extern "C" __global__ void stencil_reference(float *output, const float *input, const float k) {
    const size_t threads = (size_t)blockDim.x * blockDim.y * blockDim.z;
    const size_t thread = ((size_t)threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    const size_t block = ((size_t)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const size_t stride = threads * gridDim.x * gridDim.y * gridDim.z;
    for (size_t at = block * threads + thread; at < (size_t)width * height * depth; at += stride) {
        const int column = at % width, row = at / width % height, z = at / width / height;
        float result = input[at];
        if (column > 0 && column < width - 1 && row > 0 && row < height - 1 && z > 0 && z < depth - 1) {
            const float neighbours = input[POINT(column - 1, row, z)] + input[POINT(column + 1, row, z)] +
                                     input[POINT(column, row - 1, z)] + input[POINT(column, row + 1, z)] +
                                     input[POINT(column, row, z - 1)] + input[POINT(column, row, z + 1)];
            result += k * (neighbours - 6.0f * input[at]);
        }
        output[at] = result;
    }
}

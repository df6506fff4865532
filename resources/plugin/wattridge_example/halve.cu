#ifndef n
#define n 4194304
#endif

extern "C" __global__ void halve(float *y, const float *x) {
    const int i = blockIdx.x * block_size_x + threadIdx.x;
    if (i < n) y[i] = 0.5f * x[i];
}

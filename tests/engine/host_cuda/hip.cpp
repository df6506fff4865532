// A stand-in for HIP's library (libamdhip64.so), over the one for CUDA's driver: the host is the device here too.
//
// Functions, numbers and layouts are those of hip_runtime_api.h of ROCm 6; statuses have CUDA's numbers.

#include "driver.cpp"

extern "C" {

int hipInit(unsigned flags) { return cuInit(flags); }
int hipRuntimeGetVersion(int *version) { *version = 60241133; return OK; }
const char *hipGetErrorString(int status) {
    const char *text = nullptr;
    cuGetErrorString(status, &text);
    return text;
}
int hipDeviceSynchronize() { return lost; }

// --- the device

int hipDeviceGetByPCIBusId(int *found, const char *address) {
    *found = 0;
    return strncmp(address, "0000:41:00.0", 12) ? INVALID_DEVICE : OK;
}
int hipSetDevice(int number) { return number ? INVALID_DEVICE : OK; }
int hipDeviceGetName(char *name, int size, int number) { return cuDeviceGetName(name, size, number); }
int hipDeviceGetAttribute(int *value, int which, int number) {
    static const std::map<int, int> as_cuda = {{23, 75}, {61, 76}, {25, 106}, {71, 12},  {72, 82}, {74, 8},
                                               {75, 97}, {10002, 81}, {56, 1}, {57, 39}, {63, 16}, {87, 10}};
    auto found = as_cuda.find(which);
    return found == as_cuda.end() ? int(INVALID_VALUE) : cuDeviceGetAttribute(value, found->second, number);
}
int hipGetDevicePropertiesR0600(char *properties, int) {
    memset(properties, 0, 1472);
    strcpy(properties + 1160, "gfx90a:sramecc+:xnack-");
    return OK;
}

int hipStreamCreateWithFlags(void **made, unsigned flags) { return cuStreamCreate(made, flags); }
int hipStreamDestroy(void *) { return OK; }
int hipStreamSynchronize(void *) { return lost; }

// --- memory

int hipMalloc(char **address, size_t size) { return cuMemAlloc_v2(address, size); }
int hipFree(char *address) { return cuMemFree_v2(address); }
int hipMemcpyHtoD(void *target, void *source, size_t size) { return copy(target, source, size); }
int hipMemcpyDtoH(void *target, void *source, size_t size) { return copy(target, source, size); }
int hipMemcpyDtoDAsync(void *target, void *source, size_t size, void *) { return copy(target, source, size); }

// --- modules and kernels

int hipModuleLoadData(Module **made, const char *image) { return cuModuleLoadData(made, image); }
int hipModuleUnload(Module *module) { return cuModuleUnload(module); }
int hipModuleGetFunction(Function **found, Module *module, const char *name) {
    int status = cuModuleGetFunction(found, module, name);
    if (!status) (*found)->most_shared = MOST_SHARED;  // nothing has to be allowed
    return status;
}
int hipModuleGetGlobal(void **address, size_t *size, Module *module, const char *name) {
    return cuModuleGetGlobal_v2(address, size, module, name);
}
int hipFuncGetAttribute(int *value, int which, Function *function) { return cuFuncGetAttribute(value, which, function); }
int hipModuleLaunchKernel(Function *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                          unsigned bz, unsigned shared, void *on, void **values, void **packed) {
    return cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, on, values, packed);
}

// --- events and graphs

int hipEventCreateWithFlags(Event **made, unsigned flags) { return cuEventCreate(made, flags); }
int hipEventDestroy(Event *event) { return cuEventDestroy_v2(event); }
int hipEventRecord(Event *event, void *on) { return cuEventRecord(event, on); }
int hipEventQuery(Event *event) { return cuEventQuery(event); }
int hipEventSynchronize(Event *event) { return cuEventSynchronize(event); }
int hipEventElapsedTime(float *ms, Event *start, Event *end) { return cuEventElapsedTime(ms, start, end); }
int hipStreamBeginCapture(void *on, int mode) { return cuStreamBeginCapture_v2(on, mode); }
int hipStreamEndCapture(void *on, Graph **made) { return cuStreamEndCapture(on, made); }
int hipGraphInstantiate(Graph **made, Graph *graph, void **, char *, size_t) {
    return cuGraphInstantiateWithFlags(made, graph, 0);
}
int hipGraphDestroy(Graph *graph) { return cuGraphDestroy(graph); }
int hipGraphExecDestroy(Graph *graph) { return cuGraphExecDestroy(graph); }
int hipGraphLaunch(Graph *graph, void *on) { return cuGraphLaunch(graph, on); }
}

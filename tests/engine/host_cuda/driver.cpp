// A stand-in for CUDA's driver library: as much of it as Wattridge calls, with the host as the device.
//
// An image is a shared object made of a kernel's source by compile.py; a launch runs it at once, thread by thread.
// What the driver refuses is refused here by the same status; a kernel that touches memory it may not costs the context.

#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <map>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_DEVICE = 101, INVALID_IMAGE = 200, NOT_FOUND = 500, ILLEGAL_ADDRESS = 700 };

typedef void (*Call)(void **values, const unsigned *dimensions);
typedef unsigned (*Sizes)(size_t *sizes);
struct Function { Call call; std::vector<size_t> sizes; int most_shared; };
struct Module { void *library; int file; std::map<std::string, Function> functions; };
struct Event { int64_t ns; };
struct Launch { Function *function; unsigned dimensions[7]; std::vector<std::vector<char>> values; };
struct Graph { std::vector<Launch> launches; };

enum { INVALID_CONFIGURATION = 915, SMS = 4, STEP = 2, SM_RESOURCE = 1 };
static const int DEFAULT_SHARED = 49152, MOST_SHARED = 232448, THREADS = 1024;
static const size_t MEMORY = size_t(8) << 30;
static const char *const lost_error = "an illegal memory access was encountered";
static int lost = OK;
static std::map<char *, size_t> allocations;
static size_t allocated = 0;
static Graph *recording = nullptr;
static int device, context, stream;
static sigjmp_buf before_kernel;

static void on_fault(int) { siglongjmp(before_kernel, 1); }

static int run(Launch &launch) {
    if (lost) return lost;
    std::vector<void *> places;
    for (auto &value : launch.values) places.push_back(value.data());
    struct sigaction ours = {}, before;
    ours.sa_handler = on_fault;
    ours.sa_flags = SA_NODEFER;
    sigaction(SIGSEGV, &ours, &before);
    if (sigsetjmp(before_kernel, 1)) lost = ILLEGAL_ADDRESS;
    else launch.function->call(places.data(), launch.dimensions);
    sigaction(SIGSEGV, &before, nullptr);
    return OK;  // a kernel's fault shows in what comes after it
}

extern "C" {

int cuInit(unsigned) { return OK; }
int cuDriverGetVersion(int *version) { *version = 12090; return OK; }
int cuGetErrorName(int, const char **name) { *name = "CUDA_ERROR"; return OK; }
int cuGetErrorString(int status, const char **text) {
    switch (status) {
        case INVALID_VALUE: *text = "invalid argument"; return OK;
        case OUT_OF_MEMORY: *text = "out of memory"; return OK;
        case INVALID_DEVICE: *text = "invalid device ordinal"; return OK;
        case INVALID_IMAGE: *text = "device kernel image is invalid"; return OK;
        case NOT_FOUND: *text = "named symbol not found"; return OK;
        case ILLEGAL_ADDRESS: *text = lost_error; return OK;
    }
    *text = nullptr;
    return INVALID_VALUE;
}

// --- the device

int cuDeviceGetCount(int *count) { *count = 1; return OK; }
int cuDeviceGet(int *found, int number) { *found = device; return number ? INVALID_DEVICE : OK; }
int cuDeviceGetName(char *name, int size, int) { snprintf(name, size, "The host"); return OK; }
int cuDeviceGetAttribute(int *value, int which, int) {
    static const std::map<int, int> known = {
        {1, THREADS}, {8, DEFAULT_SHARED}, {10, 32}, {12, 65536}, {16, SMS}, {39, 2048}, {75, 9}, {76, 0},
        {81, 233472}, {82, 65536}, {97, MOST_SHARED}, {106, 32}};
    auto found = known.find(which);
    if (found == known.end()) return INVALID_VALUE;
    *value = found->second;
    return OK;
}
int cuDevicePrimaryCtxRetain(void **made, int) { *made = &context; return OK; }
int cuDevicePrimaryCtxRelease_v2(int) { return OK; }
int cuCtxSetCurrent(void *) { return OK; }
int cuCtxSynchronize() { return lost; }
// those of a context of one's own, as PyCUDA makes one; by the names that CUDA 11, 12 and 13 give them
int cuCtxCreate_v2(void **made, unsigned, int) { *made = &context; return OK; }
int cuCtxCreate_v3(void **made, void *, int, unsigned, int) { *made = &context; return OK; }
int cuCtxCreate_v4(void **made, void *, unsigned, int) { *made = &context; return OK; }
int cuCtxPushCurrent_v2(void *) { return OK; }
int cuCtxPopCurrent_v2(void **was) { *was = &context; return OK; }
int cuCtxGetDevice(int *found) { *found = device; return OK; }
int cuCtxGetApiVersion(void *, unsigned *version) { *version = 4; return OK; }
int cuCtxDestroy_v2(void *) { return OK; }
int cuCtxDetach(void *) { return OK; }
int cuDeviceComputeCapability(int *major, int *minor, int) { *major = 9; *minor = 0; return OK; }

int cuStreamDestroy_v2(void *) { return OK; }
int cuStreamCreate(void **made, unsigned) { *made = &stream; return OK; }
int cuStreamSynchronize(void *) { return lost; }

// --- a part of the SMs: by two, where Hopper has eight

struct Resource { int type; unsigned char padding[92]; unsigned sms; unsigned char rest[44]; };  // CUdevResource
struct Part { unsigned sms; };
static std::map<void *, unsigned> parts;  // by their streams
static unsigned sms_of(void *queue) { return parts.count(queue) ? parts[queue] : unsigned(SMS); }

int cuDeviceGetDevResource(int, Resource *found, int type) {
    *found = Resource{SM_RESOURCE, {}, SMS, {}};
    return type == SM_RESOURCE ? OK : INVALID_VALUE;
}
int cuDevSmResourceSplitByCount(Resource *groups, unsigned *count, const Resource *whole, Resource *rest, unsigned, unsigned least) {
    const unsigned size = (least + STEP - 1) / STEP * STEP;
    if (size > whole->sms) return INVALID_CONFIGURATION;
    if (groups) groups[0] = Resource{SM_RESOURCE, {}, size, {}};
    if (rest) *rest = Resource{SM_RESOURCE, {}, whole->sms - size, {}};
    *count = 1;
    return OK;
}
int cuDevResourceGenerateDesc(Part **made, Resource *groups, unsigned) { *made = new Part{groups[0].sms}; return OK; }
int cuGreenCtxCreate(Part **made, Part *described, int, unsigned flags) { *made = described; return flags ? OK : INVALID_VALUE; }
int cuGreenCtxStreamCreate(void **made, Part *part, unsigned flags, int) {
    *made = new int;
    parts[*made] = part->sms;
    return flags ? OK : INVALID_VALUE;
}
int cuStreamWaitEvent(void *, void *, unsigned) { return lost; }

// --- memory

int cuMemAlloc_v2(char **address, size_t size) {
    if (lost) return lost;
    if (!size) return INVALID_VALUE;
    if (size > MEMORY - allocated) return OUT_OF_MEMORY;
    *address = static_cast<char *>(malloc(size));
    allocations[*address] = size;
    allocated += size;
    return OK;
}
int cuMemFree_v2(char *address) {
    auto found = allocations.find(address);
    if (found == allocations.end()) return INVALID_VALUE;
    allocated -= found->second;
    allocations.erase(found);
    free(address);
    return lost;
}
static int copy(void *target, const void *source, size_t size) {
    if (!lost) memcpy(target, source, size);
    return lost;
}
int cuMemcpyHtoD_v2(void *target, const void *source, size_t size) { return copy(target, source, size); }
int cuMemcpyDtoH_v2(void *target, const void *source, size_t size) { return copy(target, source, size); }
int cuMemcpyDtoDAsync_v2(void *target, const void *source, size_t size, void *) { return copy(target, source, size); }

// --- modules and kernels

int cuModuleLoadData(Module **made, const char *image) {
    if (lost) return lost;
    if (memcmp(image, "\177ELF", 4)) return INVALID_IMAGE;
    auto *header = reinterpret_cast<const ElfW(Ehdr) *>(image);
    const size_t size = header->e_shoff + size_t(header->e_shnum) * header->e_shentsize;
    int file = memfd_create("image", 0);
    const bool written = file >= 0 && write(file, image, size) == ssize_t(size);
    void *library = written ? dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (!library) {
        close(file);
        return INVALID_IMAGE;
    }
    *made = new Module{library, file, {}};  // the file stays open: another image at its number would be taken for it
    return OK;
}
int cuModuleLoadDataEx(Module **made, const char *image, unsigned, void *, void *) { return cuModuleLoadData(made, image); }
int cuModuleUnload(Module *module) {
    dlclose(module->library);
    close(module->file);
    delete module;
    return lost;
}
int cuModuleGetFunction(Function **found, Module *module, const char *name) {
    auto call = reinterpret_cast<Call>(dlsym(module->library, (std::string(name) + "__call").c_str()));
    auto sizes = reinterpret_cast<Sizes>(dlsym(module->library, (std::string(name) + "__sizes").c_str()));
    if (!call || !sizes) return NOT_FOUND;
    size_t each[64];
    const unsigned count = sizes(each);
    auto &function = module->functions[name];
    function = {call, std::vector<size_t>(each, each + count), DEFAULT_SHARED};
    *found = &function;
    return OK;
}
int cuModuleGetGlobal_v2(void **address, size_t *size, Module *module, const char *name) {
    *address = dlsym(module->library, name);
    Dl_info info;
    ElfW(Sym) *symbol = nullptr;
    if (!*address || !dladdr1(*address, &info, reinterpret_cast<void **>(&symbol), RTLD_DL_SYMENT) || !symbol) return NOT_FOUND;
    *size = symbol->st_size;
    return OK;
}
// the same of libraries, which a program loads without a context
int cuLibraryLoadData(Module **made, const char *image, void *, void *, unsigned, void *, void *, unsigned) {
    return cuModuleLoadData(made, image);
}
int cuLibraryGetKernel(Function **found, Module *library, const char *name) { return cuModuleGetFunction(found, library, name); }
int cuKernelGetFunction(Function **found, Function *kernel) { *found = kernel; return OK; }
int cuLibraryGetGlobal(void **address, size_t *size, Module *library, const char *name) {
    return cuModuleGetGlobal_v2(address, size, library, name);
}
int cuMemcpyAsync(void *target, const void *source, size_t size, void *) { return copy(target, source, size); }
int cuFuncGetAttribute(int *value, int which, Function *) { *value = which == 4 ? 16 : 0; return OK; }
int cuFuncSetBlockShape(Function *, int, int, int) { return OK; }
int cuFuncSetAttribute(Function *function, int which, int value) {
    if (which != 8 || value > MOST_SHARED) return INVALID_VALUE;
    function->most_shared = value;
    return OK;
}
int cuLaunchKernel(Function *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *queue, void **values, void **packed) {
    if (lost) return lost;
    if (!gx || !gy || !gz || bx * by * bz - 1 >= unsigned(THREADS) || int(shared) > function->most_shared) return INVALID_VALUE;
    Launch launch{function, {gx, gy, gz, bx, by, bz, sms_of(queue)}, {}};
    // one pointer per argument, or as PyCUDA does it the address (1) and the size (2) of all of them, each aligned
    auto *all = values ? nullptr : static_cast<char *>(packed[1]);
    size_t next = 0;
    for (size_t at = 0; at < function->sizes.size(); at++) {
        const size_t size = function->sizes[at];
        if (all) next = (next + size - 1) / size * size;
        auto *value = all ? all + next : static_cast<char *>(values[at]);
        launch.values.emplace_back(value, value + size);
        next += size;
    }
    if (all && next > *static_cast<size_t *>(packed[3])) return INVALID_VALUE;
    if (!recording) return run(launch);
    recording->launches.push_back(launch);
    return OK;
}

// --- events and graphs

int cuEventCreate(Event **made, unsigned) { *made = new Event{0}; return lost; }
int cuEventDestroy_v2(Event *event) { delete event; return OK; }
int cuEventRecord(Event *event, void *) {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    event->ns = now.tv_sec * int64_t(1000000000) + now.tv_nsec;
    return lost;
}
int cuEventQuery(Event *) { return lost; }
int cuEventSynchronize(Event *) { return lost; }
int cuEventElapsedTime(float *ms, Event *start, Event *end) { *ms = float((end->ns - start->ns) * 1e-6); return lost; }
int cuEventElapsedTime_v2(float *ms, Event *start, Event *end) { return cuEventElapsedTime(ms, start, end); }
int cuStreamBeginCapture_v2(void *, int) { recording = new Graph; return lost; }
int cuStreamEndCapture(void *, Graph **made) {
    *made = recording;
    recording = nullptr;
    return lost;
}
int cuGraphInstantiateWithFlags(Graph **made, Graph *graph, unsigned long long) { *made = new Graph(*graph); return lost; }
int cuGraphDestroy(Graph *graph) { delete graph; return OK; }
int cuGraphExecDestroy(Graph *graph) { delete graph; return OK; }
int cuGraphLaunch(Graph *graph, void *) {
    for (auto &launch : graph->launches)
        if (int status = run(launch)) return status;
    return lost;
}

// cuda-bindings ask for every function by name, without the _v2 of the symbol
int cuGetProcAddress_v2(const char *name, void **function, int, uint64_t, int *status) {
    static void *self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    static const std::map<std::string, std::string> renamed = {{"cuGraphInstantiate", "cuGraphInstantiateWithFlags"}};
    auto other = renamed.find(name);
    const std::string plain = other == renamed.end() ? name : other->second;
    *function = dlsym(self, (plain + "_v2").c_str());
    if (!*function) *function = dlsym(self, plain.c_str());
    if (status) *status = *function ? 0 : 1;
    return *function ? OK : NOT_FOUND;
}
}

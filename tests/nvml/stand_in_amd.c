/* A stand-in for libamd_smi.so over the boards of stand_in.h, with the layouts of AMD SMI 26 (ROCm 7.0).
 *
 * It has no symbol that the real library lacks, and its semantics as the public sources have them: a range of clocks
 * needs its least below its most and sets the performance level to manual, the level "auto" undoes it, a power cap is in
 * microwatts and root's to set, and what a board does not report is all ones.
 */
enum { OK, INVALID = 1, NOT_SUPPORTED = 2, NO_LIBRARY = 4, NO_PERMISSION = 10, LOST = 12, UNINITIALISED = 32 };
#define NO_DRIVER 34
#define VENDOR AMD
#include "stand_in.h"

enum { AUTO = 0, MANUAL = 3, DETERMINISM = 8 };
enum { SYSTEM_CLOCK = 0, MEMORY_CLOCK = 4 };
enum { EDGE = 0, JUNCTION = 1, VRAM = 2 };
static const double COUNT_UJ = 15.259;

static int64_t boot_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* ---- finding ---------------------------------------------------------------------------------------------------- */

int amdsmi_init(uint64_t flags) { (void)flags; return open_state(); }
int amdsmi_shut_down(void) { return OK; }
int amdsmi_status_code_to_string(int code, const char **text) { (void)code; *text = "an error of the stand-in"; return OK; }

struct version { uint32_t major, minor, release; const char *build; };
int amdsmi_get_lib_version(struct version *v) { *v = (struct version){26, 0, 0, "26.0.stand-in"}; return OK; }

int amdsmi_get_socket_handles(uint32_t *count, void **sockets) {
    if (!state) return UNINITIALISED;
    uint32_t found = (uint32_t)count_of_vendor();
    if (sockets) for (uint32_t i = 0; i < found && i < *count; i++) sockets[i] = (void *)(intptr_t)(place_of((int)i) + 1);
    *count = found;
    return OK;
}
int amdsmi_get_processor_handles(void *socket, uint32_t *count, void **processors) {
    if (!state) return UNINITIALISED;
    if (processors && *count) processors[0] = socket;  /* one board to a socket */
    *count = 1;
    return OK;
}
int amdsmi_get_processor_type(void *handle, uint32_t *type) { (void)handle; *type = 1; return OK; }

int amdsmi_get_gpu_device_uuid(void *handle, uint32_t *length, char *text) {
    BEGIN;
    if (*length < 38) return refuse(INVALID);
    snprintf(text, *length, "%s", b->uuid);
    return end(b);
}
int amdsmi_get_gpu_device_bdf(void *handle, uint64_t *bdf) { BEGIN; *bdf = (uint64_t)(0x41 + index_of(handle)) << 8; return end(b); }

struct asic {
    char name[256]; uint32_t vendor; char vendor_name[256]; uint32_t subvendor; uint64_t device; uint32_t revision;
    char serial[256]; uint32_t oam, units; uint64_t target; uint32_t subsystem, reserved[21];
};
int amdsmi_get_gpu_asic_info(void *handle, struct asic *info) {
    BEGIN;
    memset(info, 0, sizeof *info);
    snprintf(info->name, sizeof info->name, "%s", b->name);
    snprintf(info->vendor_name, sizeof info->vendor_name, "Advanced Micro Devices Inc. [AMD/ATI]");
    snprintf(info->serial, sizeof info->serial, "%016X", 0x1234 + index_of(handle));
    info->vendor = 0x1002; info->device = 0x740f; info->units = (uint32_t)b->cores; info->target = 0x90a;
    return end(b);
}
struct driver { char version[256], date[256], name[256]; };
int amdsmi_get_gpu_driver_info(void *handle, struct driver *info) {
    BEGIN;
    memset(info, 0, sizeof *info);
    strcpy(info->version, "6.14.stand-in"); strcpy(info->date, "2015/01/01 00:00"); strcpy(info->name, "amdgpu");
    return end(b);
}

/* ---- looking ---------------------------------------------------------------------------------------------------- */

struct metrics {
    uint32_t header;
    uint16_t edge, junction, memory, vr_gfx, vr_soc, vr_mem, gfx_activity, umc_activity, mm_activity, average_power;
    uint64_t energy, system_clock;
    uint16_t average_clocks[7], gfxclk, socclk, uclk, other_clocks[4];
    uint32_t throttle;
    uint16_t fan, link_width, link_speed;
    uint32_t gfx_accumulated, mem_accumulated;
    uint16_t hbm[4];
    uint64_t firmware_time;
    uint16_t soc_mv, gfx_mv, mem_mv;
    uint64_t independent_throttle;
    uint16_t current_power;
    char later[4544 - 122];
};
_Static_assert(sizeof(struct metrics) == 4544 && __builtin_offsetof(struct metrics, current_power) == 120, "as AMD SMI 26");

static int mv_of(const struct board *b) { return (int)(700 + 200 * observed(b, now_ns()) / b->graphics_max); }

static void measure(struct board *b, struct metrics *m) {
    int reasons, busy = now_ns() < b->busy_until_ns;
    target(b, busy, &reasons);
    memset(m, 0xff, sizeof *m);
    m->edge = 50; m->junction = 58; m->memory = 55;
    m->gfx_activity = busy ? 100 : 0; m->umc_activity = busy ? 50 : 0;
    m->average_power = (uint16_t)(power(b, observed(b, now_ns()), busy) / 1000);
    m->energy = (uint64_t)(b->energy_uj / COUNT_UJ);
    m->system_clock = (uint64_t)boot_ns();
    m->gfxclk = (uint16_t)observed(b, now_ns()); m->uclk = (uint16_t)b->memory[b->memories - 1];
    m->gfx_mv = (uint16_t)mv_of(b);
    m->independent_throttle = reasons & POWER_CAP ? 1 : 0;
}
int amdsmi_get_gpu_metrics_info(void *handle, struct metrics *m) { BEGIN; measure(b, m); return end(b); }

struct power { uint64_t socket; uint32_t current, average; uint64_t gfx_mv, soc_mv, mem_mv; uint32_t limit; uint64_t reserved[18]; };
int amdsmi_get_power_info(void *handle, struct power *info) {
    BEGIN;
    struct metrics m;
    measure(b, &m);
    memset(info, 0, sizeof *info);
    *info = (struct power){m.average_power, m.current_power, m.average_power, m.gfx_mv, m.soc_mv, m.mem_mv, (uint32_t)(b->limit * 1000), {0}};
    return end(b);
}
int amdsmi_get_energy_count(void *handle, uint64_t *counts, float *resolution_uj, uint64_t *time_ns) {
    BEGIN;
    *counts = (uint64_t)(b->energy_uj / COUNT_UJ); *resolution_uj = (float)COUNT_UJ; *time_ns = (uint64_t)boot_ns();
    return end(b);
}
struct cap { uint64_t cap, otherwise, dpm, least, most, reserved[3]; };
int amdsmi_get_power_cap_info(void *handle, uint32_t sensor, struct cap *info) {
    BEGIN;
    if (sensor || !b->has_limit) return refuse(NOT_SUPPORTED);
    memset(info, 0, sizeof *info);
    info->cap = (uint64_t)b->limit * 1000; info->otherwise = (uint64_t)b->limit_default * 1000;
    info->least = (uint64_t)b->limit_min * 1000; info->most = (uint64_t)b->limit_max * 1000;
    return end(b);
}
struct clock { uint32_t now, least, most; uint8_t locked, deep_sleep; uint32_t reserved[4]; };
int amdsmi_get_clock_info(void *handle, uint32_t type, struct clock *info) {
    BEGIN;
    memset(info, 0, sizeof *info);
    info->deep_sleep = 0xff;
    if (type == SYSTEM_CLOCK) {
        info->now = (uint32_t)observed(b, now_ns());
        info->least = (uint32_t)b->graphics_min; info->most = (uint32_t)b->graphics_max;
    } else if (type == MEMORY_CLOCK) {
        info->now = info->most = (uint32_t)b->memory[b->memories - 1];
        info->least = (uint32_t)b->memory[0];
    } else return refuse(NOT_SUPPORTED);
    return end(b);
}
struct frequencies { uint8_t deep_sleep; uint32_t supported, current; uint64_t hz[33]; };
int amdsmi_get_clk_freq(void *handle, uint32_t type, struct frequencies *f) {
    BEGIN;
    memset(f, 0, sizeof *f);
    if (type == SYSTEM_CLOCK) {  /* as MI200 boards list them: least, present, most */
        f->supported = 3; f->current = 1;
        f->hz[0] = (uint64_t)b->graphics_min * 1000000; f->hz[2] = (uint64_t)b->graphics_max * 1000000;
        f->hz[1] = (uint64_t)observed(b, now_ns()) * 1000000;
    } else if (type == MEMORY_CLOCK) {
        f->supported = (uint32_t)b->memories; f->current = (uint32_t)b->memories - 1;
        for (int i = 0; i < b->memories; i++) f->hz[i] = (uint64_t)b->memory[i] * 1000000;
    } else return refuse(NOT_SUPPORTED);
    return end(b);
}
int amdsmi_get_temp_metric(void *handle, uint32_t sensor, uint32_t metric, int64_t *value) {
    BEGIN;
    if (metric || sensor > VRAM) return refuse(NOT_SUPPORTED);
    *value = sensor == EDGE ? 50 : sensor == JUNCTION ? 58 : 55;
    return end(b);
}
int amdsmi_get_gpu_volt_metric(void *handle, uint32_t sensor, uint32_t metric, int64_t *mv) {
    BEGIN; if (sensor || metric) return refuse(NOT_SUPPORTED); *mv = mv_of(b); return end(b);
}
struct activity { uint32_t gfx, umc, mm, reserved[13]; };
int amdsmi_get_gpu_activity(void *handle, struct activity *info) {
    BEGIN;
    struct metrics m;
    measure(b, &m);
    memset(info, 0, sizeof *info);
    info->gfx = m.gfx_activity; info->umc = m.umc_activity; info->mm = m.mm_activity;
    return end(b);
}
struct vram { uint32_t total, used, reserved[2]; };
int amdsmi_get_gpu_vram_usage(void *handle, struct vram *info) { BEGIN; *info = (struct vram){65520, 10, {0}}; return end(b); }

struct range { uint64_t lower, upper, reserved[2]; };
struct overdrive { struct range graphics, memory, graphics_limits, memory_limits; uint64_t curve[6]; uint32_t regions; };
int amdsmi_get_gpu_od_volt_info(void *handle, struct overdrive *info) {
    BEGIN;
    if (!b->has_locks) return refuse(NOT_SUPPORTED);
    memset(info, 0, sizeof *info);
    info->graphics_limits.lower = (uint64_t)b->graphics_min * 1000000;
    info->graphics_limits.upper = (uint64_t)b->graphics_max * 1000000;
    info->graphics = info->graphics_limits;
    if (b->lock[1]) {
        info->graphics.lower = (uint64_t)b->lock[0] * 1000000; info->graphics.upper = (uint64_t)b->lock[1] * 1000000;
    }
    return end(b);
}
int amdsmi_get_gpu_perf_level(void *handle, uint32_t *level) { BEGIN; *level = (uint32_t)b->level; return end(b); }

/* ---- setters ---------------------------------------------------------------------------------------------------- */

static int cap_at(struct board *b, uint32_t sensor, uint64_t uw) {
    if (sensor || !b->has_limit) return NOT_SUPPORTED;
    int64_t mw = (int64_t)(uw / 1000);
    if (uw > (uint64_t)b->limit_max * 1000 || mw < b->limit_min) return INVALID;
    b->limit = b->clamp && mw > b->clamp ? b->clamp : mw;
    return OK;
}
static int range_at(struct board *b, uint64_t low, uint64_t high, uint32_t type) {
    if (low >= high) return INVALID;
    if (type != SYSTEM_CLOCK || !b->has_locks) return NOT_SUPPORTED;
    b->level = MANUAL;  /* first, as the library does it: also where the range is refused then */
    if (low < (uint64_t)b->graphics_min || high > (uint64_t)b->graphics_max) return INVALID;
    b->lock[0] = (int64_t)low; b->lock[1] = (int64_t)high;
    return OK;
}
static int level_at(struct board *b, uint32_t level) {
    if (level > DETERMINISM) return INVALID;
    b->level = level;
    if (level != MANUAL) b->lock[0] = b->lock[1] = 0;
    return OK;
}

int amdsmi_set_power_cap(void *handle, uint32_t sensor, uint64_t uw) { SETTER(sensor, (int64_t)uw, cap_at(b, sensor, uw)); }
int amdsmi_set_gpu_clk_range(void *handle, uint64_t low, uint64_t high, uint32_t type) {
    SETTER((int64_t)low, (int64_t)high, range_at(b, low, high, type));
}
int amdsmi_set_gpu_perf_level(void *handle, uint32_t level) { SETTER(level, 0, level_at(b, level)); }

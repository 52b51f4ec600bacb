/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#define _DEFAULT_SOURCE /* madvise */
#include "base/mem.h"

#include "base/log.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static void complain(double bytes, const char *what, const lr_log *log)
{
    const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    int unit = 0;
    while (bytes >= 1024.0 && unit < 6) {
        bytes /= 1024.0;
        unit++;
    }
    lr_log_write(log, LR_LOG_ERROR, LR_FAILED, "no memory for %s (%.*f %s)", what, unit > 0, bytes, units[unit]);
}

/* True if `count` things of that size can be addressed at all. */
static bool fits(int64_t count, size_t size)
{
    return count >= 0 && (size == 0 || (uint64_t)count <= PTRDIFF_MAX / size);
}

void *lr_alloc(int64_t count, size_t size, const char *what, const lr_log *log)
{
    void *block = NULL;
    if (fits(count, size)) block = count == 0 || size == 0 ? calloc(1, 1) : calloc((size_t)count, size);
    if (block == NULL) complain((double)count * (double)size, what, log);
    return block;
}

void *lr_resize(void *block, int64_t count, size_t size, const char *what, const lr_log *log)
{
    void *bigger = NULL;
    if (fits(count, size)) bigger = realloc(block, count == 0 || size == 0 ? 1 : (size_t)count * size);
    if (bigger == NULL) complain((double)count * (double)size, what, log);
    return bigger;
}

/* Bytes that the system takes back at a time, in about a millisecond. */
enum { TAKEN_BACK_BYTES = 16 << 20 };

/* Gives back the whole pages within the block, then the block. */
void lr_free_in_pieces(void *block, int64_t bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)block;
    const uintptr_t first = (begin + page - 1) / page * page;
    const uintptr_t end = (begin + (uintptr_t)bytes) / page * page;
    if (block != NULL && bytes > TAKEN_BACK_BYTES) {
        for (uintptr_t at = first; at < end; at += TAKEN_BACK_BYTES) {
            const uintptr_t left = end - at;
            (void)madvise((void *)at, left < TAKEN_BACK_BYTES ? left : TAKEN_BACK_BYTES, MADV_DONTNEED);
        }
    }
    free(block);
}

char *lr_copy_string(const char *string, const lr_log *log)
{
    if (string == NULL) return NULL;
    const size_t bytes = strlen(string) + 1;
    char *copy = lr_alloc((int64_t)bytes, 1, "a string", log);
    if (copy != NULL) memcpy(copy, string, bytes);
    return copy;
}

/* --- what the system grants --- */

/* True if a comma-separated list names the controller. */
static bool lists(const char *list, const char *controller)
{
    const size_t length = strlen(controller);
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, controller, length) == 0 && (at[length] == ',' || at[length] == '\0')) return true;
    }
    return false;
}

static void visit_upwards(const char *mount, const char *path, void (*visit)(void *user, const char *folder),
                          void *user)
{
    char folder[1536];
    const int length = snprintf(folder, sizeof(folder), "%s%s", mount, path);
    if (length < 0 || (size_t)length >= sizeof(folder)) return;
    const size_t shortest = strlen(mount);
    for (;;) {
        visit(user, folder);
        char *slash = strrchr(folder, '/');
        if (slash == NULL || (size_t)(slash - folder) < shortest) return;
        *slash = '\0';
    }
}

/* line: "number:controllers:path"; v2 has the number 0 and no controllers. */
static void visit_line(char *line, const char *controller, void (*visit)(void *user, const char *folder), void *user)
{
    line[strcspn(line, "\n")] = '\0';
    char *list = strchr(line, ':');
    char *path = list ? strchr(list + 1, ':') : NULL;
    if (path == NULL) return;
    *list++ = '\0';
    *path++ = '\0';
    if (*list == '\0') {
        visit_upwards("/sys/fs/cgroup", path, visit, user);
    } else if (lists(list, controller)) {
        char mount[64];
        snprintf(mount, sizeof(mount), "/sys/fs/cgroup/%s", controller);
        visit_upwards(mount, path, visit, user);
    }
}

void lr_cgroup_visit(const char *controller, void (*visit)(void *user, const char *folder), void *user)
{
    FILE *file = fopen("/proc/self/cgroup", "r");
    if (file == NULL) return;
    char line[1280];
    while (fgets(line, sizeof(line), file) != NULL) visit_line(line, controller, visit, user);
    fclose(file);
}

bool lr_cgroup_read(const char *folder, const char *name, int num_values, double *values)
{
    char path[2048];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    if (file == NULL) return false;
    int found = 0;
    while (found < num_values && fscanf(file, "%lf", &values[found]) == 1) found++;
    fclose(file);
    return found == num_values;
}

static void lower_to_limit(void *user, const char *folder)
{
    double *bytes = user;
    double limit = 0.0;
    if ((lr_cgroup_read(folder, "memory.max", 1, &limit) ||
         lr_cgroup_read(folder, "memory.limit_in_bytes", 1, &limit)) &&
        limit > 0.0 && limit < *bytes)
        *bytes = limit;
}

int64_t lr_physical_memory(void)
{
    double bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    lr_cgroup_visit("memory", lower_to_limit, &bytes);
    return (int64_t)bytes;
}

/* A line such as "MemAvailable:   23456 kB"; 0 = there is none. */
static double read_available(void)
{
    FILE *file = fopen("/proc/meminfo", "r");
    if (file == NULL) return 0.0;
    char line[256];
    double kib = 0.0;
    while (kib == 0.0 && fgets(line, sizeof(line), file) != NULL)
        if (sscanf(line, "MemAvailable: %lf kB", &kib) != 1) kib = 0.0;
    fclose(file);
    return 1024.0 * kib;
}

/* Bytes that the process may still allocate; less than 0 = any number. */
static double read_allowed(void)
{
    struct rlimit limit;
    double pages = 0.0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file != NULL) {
        pages = fscanf(file, "%lf", &pages) == 1 ? pages : 0.0;
        fclose(file);
    }
    const bool is_limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    return is_limited ? fmax((double)limit.rlim_cur - pages * (double)sysconf(_SC_PAGESIZE), 0.0) : -1.0;
}

int64_t lr_available_memory(void)
{
    const double available = read_available(), allowed = read_allowed();
    double bytes = (double)lr_physical_memory();
    bytes = available > 0.0 ? fmin(bytes, available) : bytes;
    return (int64_t)(allowed >= 0.0 ? fmin(bytes, allowed) : bytes);
}

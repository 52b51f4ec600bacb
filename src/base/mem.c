/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Allocation with logged failures, arrays and texts that grow, and limits of memory. */
#define _DEFAULT_SOURCE /* madvise */
#include "base/mem.h"

#include "base/log.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

const char *lr_bytes_text(double bytes, char text[32])
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    int unit = 0;
    while (bytes >= 1024.0 && unit < 6) {
        bytes /= 1024.0;
        unit++;
    }
    snprintf(text, 32, "%.*f %s", unit > 0, bytes, units[unit]);
    return text;
}

static void complain(double bytes, const char *what, const lr_log *log)
{
    char text[32];
    lr_log_write(log, LR_LOG_ERROR, LR_FAILED, "no memory for %s (%s)", what, lr_bytes_text(bytes, text));
}

/* True if count * size bytes can be addressed at all. */
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

/* The system needs about 1 ms to free this many bytes. */
enum { TAKEN_BACK_BYTES = 16 << 20 };

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

void lr_free_blocks(void *const *blocks, size_t count)
{
    for (size_t k = 0; k < count; k++) free(blocks[k]);
}

char *lr_copy_string(const char *string, const lr_log *log)
{
    if (string == NULL) return NULL;
    const size_t bytes = strlen(string) + 1;
    char *copy = lr_alloc((int64_t)bytes, 1, "a string", log);
    if (copy != NULL) memcpy(copy, string, bytes);
    return copy;
}

/* --- arrays and texts that grow --- */

lr_status lr_grow(void *array, int64_t *room, int64_t needed, const struct lr_items *items)
{
    enum { LEAST = 16 };
    void *block;
    if (needed <= *room) return LR_OK;
    /* The pointer may have any type, so its bytes are copied. */
    memcpy(&block, array, sizeof(block));
    const int64_t larger = needed + needed / 2 + LEAST;
    block = lr_resize(block, larger, items->size, items->what, items->log);
    if (block == NULL) return LR_FAILED;
    memcpy(array, &block, sizeof(block));
    *room = larger;
    return LR_OK;
}

/* Makes room for `more` bytes and the zero byte. */
static lr_status grow_text(struct lr_text *text, size_t more)
{
    const struct lr_items items = {1, text->what, text->log};
    const int64_t needed = text->length + (int64_t)more + 1;
    text->failed = text->failed || lr_grow(&text->chars, &text->room, needed, &items) != LR_OK;
    return text->failed ? LR_FAILED : LR_OK;
}

lr_status lr_text_add(struct lr_text *text, const char *bytes, size_t length)
{
    LR_TRY(grow_text(text, length));
    memcpy(text->chars + text->length, bytes, length);
    text->length += (int64_t)length;
    text->chars[text->length] = '\0';
    return LR_OK;
}

lr_status lr_text_print(struct lr_text *text, const char *format, ...)
{
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    const int length = vsnprintf(NULL, 0, format, list);
    const lr_status status = grow_text(text, length > 0 ? (size_t)length : 0);
    if (status == LR_OK) {
        vsnprintf(text->chars + text->length, (size_t)(text->room - text->length), format, again);
        text->length += length > 0 ? length : 0;
    }
    va_end(again);
    va_end(list);
    return status;
}

/* --- limits of the system --- */

void lr_cgroup_visit(const char *controller, void (*visit)(void *user, const char *folder), void *user)
{
    FILE *file = fopen("/proc/self/cgroup", "r");
    if (file == NULL) return;
    char line[1280];
    while (fgets(line, sizeof(line), file) != NULL) {
        /* A line is "number:controllers:path". In version 2 the number is 0, and there are no controllers. */
        line[strcspn(line, "\n")] = '\0';
        char *list = strchr(line, ':');
        char *path = list ? strchr(list + 1, ':') : NULL;
        if (path == NULL) continue;
        *list++ = '\0';
        *path++ = '\0';
        const size_t length = strlen(controller);
        bool is_listed = *list == '\0';
        for (const char *at = *list != '\0' ? list : NULL; at != NULL && !is_listed; at = strchr(at, ',')) {
            at += *at == ',';
            is_listed = strncmp(at, controller, length) == 0 && (at[length] == ',' || at[length] == '\0');
        }
        char mount[64], folder[1536];
        snprintf(mount, sizeof(mount), "/sys/fs/cgroup%s%s", *list != '\0' ? "/" : "", *list != '\0' ? controller : "");
        const int bytes = snprintf(folder, sizeof(folder), "%s%s", mount, path);
        if (!is_listed || bytes < 0 || (size_t)bytes >= sizeof(folder)) continue;

        /* Visits this folder and all folders above it. */
        for (char *end = folder + bytes; end != NULL && (size_t)(end - folder) >= strlen(mount);) {
            *end = '\0';
            visit(user, folder);
            end = strrchr(folder, '/');
        }
    }
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

int64_t lr_available_memory(void)
{
    double bytes = (double)lr_physical_memory();

    /* Free memory is in a line such as "MemAvailable:   23456 kB". */
    FILE *file = fopen("/proc/meminfo", "r");
    char line[256];
    double kib = 0.0;
    while (file != NULL && kib == 0.0 && fgets(line, sizeof(line), file) != NULL)
        if (sscanf(line, "MemAvailable: %lf kB", &kib) != 1) kib = 0.0;
    if (file != NULL) fclose(file);
    if (kib > 0.0) bytes = fmin(bytes, 1024.0 * kib);

    /* The address space of a process may be limited (ulimit -v). */
    double pages = 0.0;
    file = fopen("/proc/self/statm", "r");
    if (file != NULL) {
        pages = fscanf(file, "%lf", &pages) == 1 ? pages : 0.0;
        fclose(file);
    }
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        bytes = fmin(bytes, fmax((double)limit.rlim_cur - pages * (double)sysconf(_SC_PAGESIZE), 0.0));
    return (int64_t)bytes;
}

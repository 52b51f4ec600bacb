/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Where and when the figures were taken, and all of them as JSON. Keys: docs/formats/json.md. */
#include "bench.h"

#include <math.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { MAX_DEVICES = 32 };

/* --- where and when --- */

/* The command line again, from what was read of it. */
static void tell_command(const struct cli_args *args, char *text, size_t size)
{
    snprintf(text, size, "loraster %s", args->syntax->verb);
    for (int k = 0; k < args->num_given; k++) {
        const struct cli_given *given = &args->given[k];
        const size_t used = strlen(text);
        snprintf(text + used, size - used, " %s%s%s", given->option->name, given->value ? " " : "",
                 given->value ? given->value : "");
    }
}

static void tell_date(char *text, size_t size)
{
    const time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc) == NULL || strftime(text, size, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
        snprintf(text, size, "unknown");
}

/* Linux's name for it. */
static void tell_processor(char *text, size_t size)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    snprintf(text, size, "unknown");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon != NULL) {
            line[strcspn(line, "\n")] = '\0';
            snprintf(text, size, "%s", colon + 1 + strspn(colon + 1, " "));
            break;
        }
    }
    if (file != NULL) fclose(file);
}

/* The usable device of that number. */
static bool find_device(int wanted, lr_device *device, const lr_log *log)
{
    lr_device devices[MAX_DEVICES];
    const int count = lr_device_list(devices, MAX_DEVICES, log);
    int usable = 0;
    bool found = false;
    for (int k = 0; k < count && k < MAX_DEVICES && !found; k++) {
        found = devices[k].usable && usable++ == wanted;
        *device = devices[k];
    }
    return found;
}

void bench_report_init(struct bench_report *report, const struct cli_args *args, const struct bench_wish *wish)
{
    report->wish = wish;
    tell_command(args, report->command, sizeof(report->command));
    tell_date(report->date, sizeof(report->date));
    tell_processor(report->processor, sizeof(report->processor));
    report->has_device = find_device(wish->device, &report->device, &args->report->log);
}

static int64_t peak_memory(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (int64_t)usage.ru_maxrss * 1024 : 0;
}

/* --- JSON --- */

static double unless_zero(double value)
{
    return value > 0 ? value : NAN;
}

static void device_json(struct json *json, const struct bench_report *report)
{
    if (!report->has_device) {
        json_text(json, "device", NULL);
        return;
    }
    json_open(json, "device", '{');
    json_text(json, "renderer", report->device.renderer);
    json_text(json, "vendor", report->device.vendor);
    json_text(json, "opengl", report->device.version);
    json_bool(json, "software", report->device.software);
    json_close(json, '}');
}

static void heading_json(struct json *json, const struct bench_heading *heading)
{
    const lr_grid grid = lr_grid_centred(heading->workload->size, heading->workload->voxel_mm);
    json_open(json, NULL, '{');
    json_text(json, "workload", heading->workload->name);
    json_text(json, "description", heading->workload->description);
    json_text(json, "scanner", heading->scanner);
    json_int(json, "num_lors", heading->num_lors);
    common_json_grid(json, "grid", &grid);
    json_number(json, "elements_per_voxel", heading->elements);
    json_number(json, "elements_standard_error", heading->elements_error);
    json_int(json, "elements_voxels", heading->elements_voxels);
    json_close(json, '}');
}

void bench_ceilings_json(struct json *json, const struct bench_ceiling *ceilings, int count)
{
    json_open(json, "ceilings", '[');
    for (int k = 0; k < count; k++) {
        json_open(json, NULL, '{');
        json_text(json, "what", ceilings[k].what);
        json_text(json, "unit", ceilings[k].unit);
        json_number(json, "rate", ceilings[k].rate);
        json_number(json, "ceiling", ceilings[k].ceiling);
        json_number(json, "fraction", ceilings[k].fraction);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void passes_json(struct json *json, const struct bench_direction *found)
{
    json_open(json, "device_passes", '[');
    for (int k = 0; k < found->num_passes; k++) {
        json_open(json, NULL, '{');
        json_text(json, "name", found->passes[k].name);
        json_number(json, "seconds", found->passes[k].seconds);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void direction_json(struct json *json, const struct bench_result *result, int direction)
{
    const struct bench_direction *found = &result->directions[direction];
    const double voxels = (double)result->num_voxels, rate = voxels / bench_seconds(found);
    struct bench_ceiling ceilings[BENCH_MAX_CEILINGS];
    json_open(json, direction == 0 ? "forward" : "back", '{');
    json_int(json, "runs", found->runs);
    json_bool(json, "first_run", found->first_run);
    json_number(json, "wall_seconds", found->wall_s);
    json_number(json, "wall_spread_seconds", found->wall_spread_s);
    json_number(json, "device_seconds", unless_zero(found->device_s));
    json_number(json, "wall_us_per_voxel", 1e6 * found->wall_s / voxels);
    json_number(json, "device_us_per_voxel", unless_zero(1e6 * found->device_s / voxels));
    json_text(json, "rates_from", found->device_s > 0 ? "device" : "wall");
    json_number(json, "rays_per_second", unless_zero(rate * result->lines));
    json_number(json, "elements_per_second", rate * result->elements);
    passes_json(json, found);
    bench_ceilings_json(json, ceilings, bench_model_ceilings(result, direction, ceilings));
    json_close(json, '}');
}

static void updates_json(struct json *json, const struct bench_updates *found)
{
    if (found->subsets > 0) {
        json_open(json, "update", '{');
        json_int(json, "subsets", found->subsets);
        json_number(json, "wall_seconds", found->wall_s);
        json_number(json, "device_seconds", unless_zero(found->device_s));
        json_close(json, '}');
    }
}

static void figures_json(struct json *json, const struct bench_result *result)
{
    json_text(json, "device", result->device);
    json_int(json, "rays", result->rays);
    json_int(json, "threads", result->threads);
    common_json_grid(json, "grid", &result->grid);
    json_bool(json, "is_part", result->is_part);
    json_int(json, "num_voxels", result->num_voxels);
    json_number(json, "elements_per_voxel", result->elements);
    json_number(json, "elements_standard_error", result->elements_error);
    json_int(json, "elements_voxels", result->elements_voxels);
    json_number(json, "rays_per_voxel", unless_zero(result->lines));
    json_bool(json, "is_oracle", result->is_oracle);
    json_number(json, "matrix_error", result->accuracy.error);
    json_number(json, "elements_missed", result->accuracy.missed);
    json_int(json, "error_voxels", result->accuracy.num_voxels);
    json_number(json, "adjoint_error", result->adjoint_error);
    direction_json(json, result, 0);
    direction_json(json, result, 1);
    updates_json(json, &result->updates);
}

static void result_json(struct json *json, const struct bench_result *result)
{
    static const char *const outcomes[] = {"measured", "skipped", "failed"};
    json_open(json, NULL, '{');
    json_text(json, "workload", result->workload->name);
    json_text(json, "backend", result->backend);
    json_text(json, "mode", bench_mode_name(result->mode));
    json_text(json, "outcome", outcomes[result->outcome]);
    if (result->outcome == BENCH_MEASURED)
        figures_json(json, result);
    else
        json_text(json, "reason", result->reason);
    json_close(json, '}');
}

void bench_json(const struct bench_report *report, struct json *json)
{
    json_text(json, "commit", bench_commit);
    json_text(json, "date", report->date);
    json_text(json, "command", report->command);
    json_text(json, "processor", report->processor);
    device_json(json, report);
    json_int(json, "seed", (int64_t)report->wish->seed);
    json_number(json, "seconds", report->wish->seconds);
    json_int(json, "repeat", report->wish->repeat);
    json_int(json, "peak_memory_bytes", peak_memory());
    json_open(json, "workloads", '[');
    for (int k = 0; k < report->num_headings; k++) heading_json(json, &report->headings[k]);
    json_close(json, ']');
    json_open(json, "results", '[');
    for (int k = 0; k < report->num_results; k++) result_json(json, &report->results[k]);
    json_close(json, ']');
}

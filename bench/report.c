/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * bench correspondence: the most that a device could do, the figures as Markdown tables, their machine and date, and
 * all of them as JSON (keys: docs/formats/json.md).
 *
 * The least work that a projection is made of, and what a device does of it a second. The counts
 * are of the formulas of docs/method/correspondence.md, "Matrix element", with everything that
 * several elements or lines share left out, so that a share of a ceiling is a lower bound: a kernel
 * that does more than it must shows a smaller one. A multiplication fused with an addition is two
 * operations; minimum, comparison, floor, division and square root count as one. */
#include "bench.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <time.h>

/* One line of the sampled mode:
 *   y1 - w 3; its square 5; n_j . (y1 - w) 5; t 1; U and V 2 x 7; r and s 2 x 3; on a face 2 x 3;
 *   weight: 1 / |y1 - w|, cubed, times h dA 4; times the voxel's value, added 2. */
static const double flop_per_line = 46;

/* One element of the exact mode, for axis-parallel overlaps:
 *   bounds along u and v 2 x 3; area 1; middle 4; from w 2; square of its distance 4; density
 *   h / rho^3 4; second moments 2; second derivatives of the density 8; second-order term 3; times
 *   the area 1; times the voxel's value, added 2. */
static const double flop_per_element = 37;

/* Forward adds each element to its LOR once; back reads that LOR once. */
static const double bytes_per_lor_value = 4;

/* Rates that devices reach, as measured with small kernels: docs/performance.md, "Ceilings". */
struct device_ceilings {
    const char *name; /* part of the renderer's */
    double flop_per_s;
    double adds_per_s;         /* float atomics, neighbouring lanes to neighbouring addresses */
    double l2_bytes_per_s;     /* read */
    double copy_bytes_per_s;   /* device memory, read and written */
    double window_loads_per_s; /* of shared memory, each lane in a window of its own */
    double whole_adds_per_s;   /* atomics of 32-bit integers in shared memory, at random */
};

static const struct device_ceilings known_ceilings[] = {
    {"NVIDIA H200", 65.1e12, 926e9, 9.2e12, 4.23e12, 2356e9, 2929e9},
};

static const struct device_ceilings *find_ceilings(const char *device)
{
    for (size_t k = 0; k < sizeof(known_ceilings) / sizeof(known_ceilings[0]); k++)
        if (strstr(device, known_ceilings[k].name) != NULL) return &known_ceilings[k];
    return NULL;
}

double bench_flop_ceiling(const char *device)
{
    const struct device_ceilings *known = find_ceilings(device);
    return known != NULL ? known->flop_per_s : 0;
}

/* Seconds of a projection that rates are computed from: the device's if it has a clock. */
static double bench_seconds(const struct bench_direction *direction)
{
    return direction->device_s > 0 ? direction->device_s : direction->wall_s;
}

static struct bench_ceiling share(const char *what, const char *unit, double rate, double ceiling)
{
    return (struct bench_ceiling){what, unit, ceiling, rate, rate / ceiling};
}

int bench_visit_ceilings(const char *device, const struct bench_visits *visits,
                         struct bench_ceiling ceilings[BENCH_MAX_CEILINGS])
{
    const struct device_ceilings *known = find_ceilings(device);
    if (known == NULL) return 0;
    ceilings[0] = share("forward, loads", "loads/s", visits->forward_per_s, known->window_loads_per_s);
    ceilings[1] = share("back, integer atomics", "adds/s", visits->back_per_s, known->whole_adds_per_s);
    ceilings[2] = share("memory", "bytes/s", visits->bytes_per_s, known->copy_bytes_per_s);
    return 3;
}

/* Fills at most BENCH_MAX_CEILINGS entries and returns how many; 0 on a device whose ceilings are
 * not known. */
static int bench_model_ceilings(const struct bench_result *result, int direction,
                                struct bench_ceiling ceilings[BENCH_MAX_CEILINGS])
{
    const struct device_ceilings *known = find_ceilings(result->device);
    const double seconds = bench_seconds(&result->directions[direction]);
    if (known == NULL || result->outcome != BENCH_MEASURED || !(seconds > 0)) return 0;
    const double voxels = (double)result->num_voxels;
    const double elements = voxels * result->elements * result->accuracy.kept;
    const double flop =
        result->mode == LR_MODE_EXACT ? elements * flop_per_element : voxels * result->lines * flop_per_line;
    const double arrays = 4 * (voxels + (double)result->num_lors); /* each once */
    ceilings[0] = share("fp32", "FLOP/s", flop / seconds, known->flop_per_s);
    ceilings[1] = direction == 0
                      ? share("atomics", "adds/s", elements / seconds, known->adds_per_s)
                      : share("L2", "bytes/s", elements * bytes_per_lor_value / seconds, known->l2_bytes_per_s);
    ceilings[2] = share("memory", "bytes/s", arrays / seconds, known->copy_bytes_per_s);
    return 3;
}

/* --- Markdown tables: read on a terminal as they come, and pasted into docs/performance.md --- */

/* "12.3", "0.0079", "1.2e-05": three significant digits; "-" for what is not known. */
static const char *number(char text[32], double value)
{
    if (!isfinite(value))
        snprintf(text, 32, "-");
    else if (fabs(value) >= 1000 && fabs(value) < 1e7)
        snprintf(text, 32, "%.0f", value);
    else
        snprintf(text, 32, "%.3g", value);
    return text;
}

/* The same; 0 means that it was not measured. */
static const char *positive(char text[32], double value)
{
    return number(text, value > 0 ? value : NAN);
}

static const char *with_error(char text[48], double mean, double error)
{
    if (!(error > 0))
        snprintf(text, 48, "%.1f", mean);
    else
        snprintf(text, 48, "%.0f +- %.0f", mean, error);
    return text;
}

static const char *grid_text(char text[48], const lr_grid *grid)
{
    snprintf(text, 48, "%dx%dx%d", grid->size[0], grid->size[1], grid->size[2]);
    return text;
}

static const char *who(char text[64], const struct bench_result *result)
{
    if (result->mode == LR_MODE_EXACT)
        snprintf(text, 64, "%s, exact", result->backend);
    else if (result->rays > 0)
        snprintf(text, 64, "%s, sampled R = %d", result->backend, result->rays);
    else
        snprintf(text, 64, "%s, sampled", result->backend);
    return text;
}

void bench_table_begin(const struct bench_report *report)
{
    const lr_device *device = report->has_device ? &report->device : NULL;
    printf("`%s`\n\nLORaster %s, commit %s, %s; processor %s; device %s%s%s\n\n", report->command, lr_version(),
           bench_commit, report->date, report->processor, device ? device->renderer : "none", device ? ", OpenGL " : "",
           device ? device->version : "");
    puts("ms, us/voxel: wall clock of one projection, median. device us: the same a voxel by the "
         "device's own clock. Rates and shares of a ceiling are of the device's time where it has "
         "one. elements: exact non-zeros a voxel. error: of the matrix, against exact elements "
         "(relative L2). adjoint: |<A x, y> - <x, A^T y>| / <A x, y>.");
    fflush(stdout);
}

static const char row_format[] = "| %-22s | %-11s | %-7s | %8s | %8s | %9s | %8s | %12s | %9s | %-12s | %8s | %8s |\n";

void bench_table_heading(const struct bench_heading *heading)
{
    const struct bench_workload *workload = heading->workload;
    const double *voxel = workload->voxel_mm;
    char grid[48], elements[48];
    const lr_grid whole = lr_grid_centred(workload->size, voxel);
    printf("\n### %s\n\n%s; %s voxels of %g x %g x %g mm; %lld LORs; %s exact elements a voxel "
           "(mean of %d)\n\n",
           workload->name, workload->description, grid_text(grid, &whole), voxel[0], voxel[1], voxel[2],
           (long long)heading->num_lors, with_error(elements, heading->elements, heading->elements_error),
           heading->elements_voxels);
    printf(row_format, "backend, mode", "voxels", "", "ms", "us/voxel", "device us", "Glines/s", "elements", "Gelem./s",
           "of ceiling", "error", "adjoint");
    static const char dashes[] = "----------------------";
    printf("|-%.22s-|-%.11s-|-%.7s-|-%.8s:|-%.8s:|-%.9s:|-%.8s:|-%.12s:|-%.9s:|-%.12s-|-%.8s:|"
           "-%.8s:|\n",
           dashes, dashes, dashes, dashes, dashes, dashes, dashes, dashes, dashes, dashes, dashes, dashes);
    fflush(stdout);
}

void bench_table_result(const struct bench_result *result)
{
    const double voxels = (double)result->num_voxels;
    char name[64], grid[48], elements[48], text[8][32];
    who(name, result);
    if (result->outcome != BENCH_MEASURED) {
        printf("| %-22s | %s: %s |\n", name, result->outcome == BENCH_SKIPPED ? "not here" : "FAILED", result->reason);
        fflush(stdout);
        return;
    }
    grid_text(grid, &result->grid);
    for (int direction = 0; direction < 2; direction++) {
        const struct bench_direction *found = &result->directions[direction];
        const char *way = direction == 0 ? "forward" : "back";
        const double rate = voxels / bench_seconds(found);
        /* "31 % atomics": the ceiling that is nearest. */
        struct bench_ceiling ceilings[BENCH_MAX_CEILINGS];
        const int count = bench_model_ceilings(result, direction, ceilings);
        int nearest = 0;
        for (int k = 1; k < count; k++) nearest = ceilings[k].fraction > ceilings[nearest].fraction ? k : nearest;
        snprintf(text[5], sizeof(text[5]), "-");
        if (count > 0)
            snprintf(text[5], sizeof(text[5]), "%.2g %% %s", 100 * ceilings[nearest].fraction, ceilings[nearest].what);
        printf(row_format, name, grid, way, number(text[0], 1e3 * found->wall_s),
               number(text[1], 1e6 * found->wall_s / voxels), positive(text[2], 1e6 * found->device_s / voxels),
               positive(text[3], 1e-9 * rate * result->lines),
               with_error(elements, result->elements, result->elements_error),
               number(text[4], 1e-9 * rate * result->elements), text[5],
               result->is_oracle ? "oracle" : number(text[6], result->accuracy.error),
               number(text[7], result->adjoint_error));
        for (int k = 0; k < found->num_passes; k++) /* the kinds of passes, below it */
            printf(row_format, found->passes[k].name, "", way, "", "",
                   number(text[0], 1e6 * found->passes[k].seconds / voxels), "", "", "", "", "", "");
    }
    const struct bench_updates *updates = &result->updates;
    if (updates->subsets > 0) {
        printf(row_format, name, grid, "update", number(text[0], 1e3 * updates->wall_s),
               number(text[1], 1e6 * updates->wall_s / voxels), positive(text[2], 1e6 * updates->device_s / voxels), "",
               "", "", "", "", "");
    }
    fflush(stdout);
}

enum { MAX_DEVICES = 32 };

void bench_report_init(struct bench_report *report, const struct cli_args *args, const struct bench_wish *wish)
{
    report->wish = wish;
    /* The command line again, from what was read of it. */
    char *text = report->command, line[256];
    const size_t size = sizeof(report->command);
    snprintf(text, size, "loraster %s", args->syntax->verb);
    for (int k = 0; k < args->num_given; k++) {
        const struct cli_given *given = &args->given[k];
        const size_t used = strlen(text);
        snprintf(text + used, size - used, " %s%s%s", given->option->name, given->value ? " " : "",
                 given->value ? given->value : "");
    }

    const size_t room = sizeof(report->date);
    const time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc) == NULL || strftime(report->date, room, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
        snprintf(report->date, room, "unknown");

    /* Linux's name for the processor. */
    FILE *file = fopen("/proc/cpuinfo", "r");
    snprintf(report->processor, sizeof(report->processor), "unknown");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon != NULL) {
            line[strcspn(line, "\n")] = '\0';
            snprintf(report->processor, sizeof(report->processor), "%s", colon + 1 + strspn(colon + 1, " "));
            break;
        }
    }
    if (file != NULL) fclose(file);

    /* The usable device of that number. */
    lr_device *device = &report->device;
    lr_device devices[MAX_DEVICES];
    const int count = lr_device_list(devices, MAX_DEVICES, &args->report->log);
    int usable = 0;
    report->has_device = false;
    for (int d = 0; d < count && d < MAX_DEVICES && !report->has_device; d++) {
        report->has_device = devices[d].usable && usable++ == wish->device;
        *device = devices[d];
    }
}

static double unless_zero(double value)
{
    return value > 0 ? value : NAN;
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
    json_open(json, "device_passes", '[');
    for (int k = 0; k < found->num_passes; k++) {
        json_open(json, NULL, '{');
        json_text(json, "name", found->passes[k].name);
        json_number(json, "seconds", found->passes[k].seconds);
        json_close(json, '}');
    }
    json_close(json, ']');

    bench_ceilings_json(json, ceilings, bench_model_ceilings(result, direction, ceilings));
    json_close(json, '}');
}

void bench_json(const struct bench_report *report, struct json *json)
{
    json_text(json, "commit", bench_commit);
    json_text(json, "date", report->date);
    json_text(json, "command", report->command);
    json_text(json, "processor", report->processor);
    if (report->has_device) {
        json_open(json, "device", '{');
        json_text(json, "renderer", report->device.renderer);
        json_text(json, "vendor", report->device.vendor);
        json_text(json, "opengl", report->device.version);
        json_bool(json, "software", report->device.software);
        json_close(json, '}');
    } else {
        json_text(json, "device", NULL);
    }
    json_int(json, "seed", (int64_t)report->wish->seed);
    json_number(json, "seconds", report->wish->seconds);
    json_int(json, "repeat", report->wish->repeat);
    json_int(json, "peak_memory_bytes", common_peak_memory());
    json_open(json, "workloads", '[');
    for (int k = 0; k < report->num_headings; k++) {
        const struct bench_heading *heading = &report->headings[k];
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

    json_close(json, ']');
    json_open(json, "results", '[');
    for (int k = 0; k < report->num_results; k++) {
        const struct bench_result *result = &report->results[k];
        static const char *const outcomes[] = {"measured", "skipped", "failed"};
        json_open(json, NULL, '{');
        json_text(json, "workload", result->workload->name);
        json_text(json, "backend", result->backend);
        json_text(json, "mode", bench_mode_name(result->mode));
        json_text(json, "outcome", outcomes[result->outcome]);
        if (result->outcome == BENCH_MEASURED) {
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
            if (result->updates.subsets > 0) {
                json_open(json, "update", '{');
                json_int(json, "subsets", result->updates.subsets);
                json_number(json, "wall_seconds", result->updates.wall_s);
                json_number(json, "device_seconds", unless_zero(result->updates.device_s));
                json_close(json, '}');
            }
        } else
            json_text(json, "reason", result->reason);
        json_close(json, '}');
    }

    json_close(json, ']');
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The figures as Markdown tables: read on a terminal as they come, and pasted into
 * docs/performance.md. */
#include "bench.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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

/* The same, where 0 means that it was not measured. */
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

/* "31 % atomics": the ceiling that is nearest. */
static const char *nearest_ceiling(char text[32], const struct bench_result *result, int direction)
{
    struct bench_ceiling ceilings[BENCH_MAX_CEILINGS];
    const int count = bench_model_ceilings(result, direction, ceilings);
    int nearest = 0;
    for (int k = 1; k < count; k++) nearest = ceilings[k].fraction > ceilings[nearest].fraction ? k : nearest;
    snprintf(text, 32, "-");
    if (count > 0) snprintf(text, 32, "%.2g %% %s", 100 * ceilings[nearest].fraction, ceilings[nearest].what);
    return text;
}

static void print_direction(const struct bench_result *result, int direction)
{
    const struct bench_direction *found = &result->directions[direction];
    const double voxels = (double)result->num_voxels, rate = voxels / bench_seconds(found);
    char name[64], grid[48], elements[48], text[8][32];
    printf(row_format, who(name, result), grid_text(grid, &result->grid), direction == 0 ? "forward" : "back",
           number(text[0], 1e3 * found->wall_s), number(text[1], 1e6 * found->wall_s / voxels),
           positive(text[2], 1e6 * found->device_s / voxels), positive(text[3], 1e-9 * rate * result->lines),
           with_error(elements, result->elements, result->elements_error),
           number(text[4], 1e-9 * rate * result->elements), nearest_ceiling(text[5], result, direction),
           result->is_oracle ? "oracle" : number(text[6], result->accuracy.error),
           number(text[7], result->adjoint_error));
}

/* The kinds of passes of a direction, below it. */
static void print_passes(const struct bench_result *result, int direction)
{
    const struct bench_direction *found = &result->directions[direction];
    char text[32];
    for (int k = 0; k < found->num_passes; k++) {
        const double us = 1e6 * found->passes[k].seconds / (double)result->num_voxels;
        printf(row_format, found->passes[k].name, "", direction == 0 ? "forward" : "back", "", "", number(text, us), "",
               "", "", "", "", "");
    }
}

static void print_updates(const struct bench_result *result)
{
    const struct bench_updates *found = &result->updates;
    const double voxels = (double)result->num_voxels;
    char name[64], grid[48], text[3][32];
    if (found->subsets > 0) {
        printf(row_format, who(name, result), grid_text(grid, &result->grid), "update",
               number(text[0], 1e3 * found->wall_s), number(text[1], 1e6 * found->wall_s / voxels),
               positive(text[2], 1e6 * found->device_s / voxels), "", "", "", "", "", "");
    }
}

void bench_table_result(const struct bench_result *result)
{
    char name[64];
    if (result->outcome == BENCH_MEASURED) {
        for (int direction = 0; direction < 2; direction++) {
            print_direction(result, direction);
            print_passes(result, direction);
        }
        print_updates(result);
    } else {
        printf("| %-22s | %s: %s |\n", who(name, result), result->outcome == BENCH_SKIPPED ? "not here" : "FAILED",
               result->reason);
    }
    fflush(stdout);
}

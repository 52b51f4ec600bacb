/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * JSON that all verbs of bench write beside their own figures (keys: docs/formats/json.md): machine, date, and
 * fractions of a device's ceilings. tools/bench_table.py makes tables of this JSON.
 *
 * The ceilings follow from the least work of a projection, and from the rates that a device reaches. The operations are
 * counted in the formulas of docs/method/correspondence.md, "Matrix element". Values that several elements or lines
 * share are not counted, so a fraction of a ceiling is a lower bound: a kernel with unnecessary work shows a smaller
 * fraction. A fused multiply-add counts as two operations; minimum, comparison, floor, division and square root count
 * as one. */
#include "bench.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <time.h>

/* Operations for one line of the sampled mode:
 *   y1 - w: 3; its square: 5; n_j . (y1 - w): 5; t: 1; U and V: 2 x 7; r and s: 2 x 3;
 *   test if on a face: 2 x 3; weight 1 / |y1 - w|, cubed, times h dA: 4;
 *   multiplication by the voxel's value, and addition: 2. */
static const double flop_per_line = 46;

/* Operations for one element of the exact mode, with axis-parallel overlaps:
 *   bounds along u and v: 2 x 3; area: 1; middle: 4; vector from w: 2; square of its length: 4;
 *   density h / rho^3: 4; second moments: 2; second derivatives of the density: 8;
 *   second-order term: 3; multiplication by the area: 1;
 *   multiplication by the voxel's value, and addition: 2. */
static const double flop_per_element = 37;

/* A forward projection adds to each LOR value once per element, and a back projection reads it once per element. */
static const double bytes_per_lor_value = 4;

/* Rates that devices reach, measured with small kernels (docs/performance.md, "Ceilings"). */
struct device_ceilings {
    const char *name; /* part of the renderer's name */
    double flop_per_s;
    double adds_per_s;         /* float atomics, neighbouring lanes at neighbouring addresses */
    double l2_bytes_per_s;     /* bytes read from the L2 cache */
    double copy_bytes_per_s;   /* device memory, reads and writes together */
    double window_loads_per_s; /* loads from shared memory, each lane within its own range */
    double whole_adds_per_s;   /* atomics of 32-bit integers in shared memory, at random addresses */
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

double bench_seconds(const struct bench_direction *direction)
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

int bench_model_ceilings(const struct bench_result *result, int direction,
                         struct bench_ceiling ceilings[BENCH_MAX_CEILINGS])
{
    const struct device_ceilings *known = find_ceilings(result->device);
    const double seconds = bench_seconds(&result->directions[direction]);
    if (known == NULL || result->outcome != BENCH_MEASURED || !(seconds > 0)) return 0;
    const double voxels = (double)result->num_voxels;
    const double elements = voxels * result->elements * result->accuracy.kept;
    const double flop =
        result->mode == LR_MODE_EXACT ? elements * flop_per_element : voxels * result->lines * flop_per_line;
    const double arrays = 4 * (voxels + (double)result->num_lors); /* each array once */
    ceilings[0] = share("fp32", "FLOP/s", flop / seconds, known->flop_per_s);
    ceilings[1] = direction == 0
                      ? share("atomics", "adds/s", elements / seconds, known->adds_per_s)
                      : share("L2", "bytes/s", elements * bytes_per_lor_value / seconds, known->l2_bytes_per_s);
    ceilings[2] = share("memory", "bytes/s", arrays / seconds, known->copy_bytes_per_s);
    return 3;
}

/* --- JSON --- */

double bench_unless_zero(double value)
{
    return value > 0 ? value : NAN;
}

void bench_json_seconds(struct json *json, double wall_s, double device_s)
{
    json_number(json, "wall_seconds", bench_unless_zero(wall_s));
    json_number(json, "device_seconds", bench_unless_zero(device_s));
}

void bench_json_ceilings(struct json *json, const struct bench_ceiling *ceilings, int count)
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

static void write_object(const struct cli_args *args, bench_figures *figures, const void *bench, FILE *stream)
{
    struct json json = common_json_begin(stream, args->verb->name);
    char text[1024], line[256];
    const time_t now = time(NULL);
    struct tm utc;
    json_text(&json, "commit", bench_commit);
    const bool has_date = gmtime_r(&now, &utc) != NULL && strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc) > 0;
    json_text(&json, "date", has_date ? text : NULL);

    /* The command line, rebuilt from the options that were read. */
    size_t used = (size_t)snprintf(text, sizeof(text), "loraster %s", args->verb->name);
    for (int k = 0; k < args->num_given && used < sizeof(text); k++) {
        const struct cli_given *given = &args->given[k];
        used += (size_t)snprintf(text + used, sizeof(text) - used, " %s%s%s", given->option->name,
                                 given->value ? " " : "", given->value ? given->value : "");
    }
    json_text(&json, "command", text);

    /* The name that Linux gives to the processor. */
    FILE *file = fopen("/proc/cpuinfo", "r");
    snprintf(text, sizeof(text), "unknown");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon != NULL) {
            line[strcspn(line, "\n")] = '\0';
            snprintf(text, sizeof(text), "%s", colon + 1 + strspn(colon + 1, " "));
            break;
        }
    }
    if (file != NULL) fclose(file);
    json_text(&json, "processor", text);
    json_int(&json, "peak_memory_bytes", common_peak_memory());
    figures(bench, &json);
    common_json_end(&json);
}

lr_status bench_write(const struct cli_args *args, bench_figures *figures, const void *bench)
{
    const char *path = args_text(args, "-o");
    report_clear(args->report);
    if (path == NULL || args->report->json) write_object(args, figures, bench, stdout);
    if (path == NULL) return LR_OK;
    struct common_text text;
    common_text_begin(&text);
    if (text.stream != NULL) write_object(args, figures, bench, text.stream);
    return common_text_write(&text, args->report, path);
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "demo.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* The line of figures. */
static void describe(const struct demo *demo, char *line, size_t size)
{
    char memory[32];
    snprintf(line, size,
             "%s%.0f counts, seed %llu; %d iterations of OSEM, %d subsets, on backend %s (%s); "
             "log-likelihood "
             "%.9g; %.9g emissions; pictures %.1f s by backend %s, simulation %.1f s, matrix %.1f "
             "s (%lld "
             "elements), iterations %.1f s, in all %.1f s; peak memory %s",
             demo->quick ? "quick: " : "", demo->counts, (unsigned long long)demo->seed, demo->last.number,
             demo->scale->subsets, demo->info.backend, demo->info.device, demo->last.log_likelihood,
             common_sum(demo->image->values, lr_grid_num_voxels(&demo->image->grid)), demo->pictures_seconds,
             demo->drawn_by, demo->simulate_seconds, demo->matrix_seconds, (long long)demo->info.num_elements,
             demo->recon_seconds, demo->total_seconds, common_bytes(memory, common_peak_memory()));
}

static void print_json(const struct demo *demo)
{
    struct json json = common_json_begin("demo");
    setup_json(&demo->setup, &json);
    json_text(&json, "output", demo->folder);
    json_bool(&json, "quick", demo->quick);
    json_int(&json, "seed", (int64_t)demo->seed);
    json_number(&json, "counts", demo->counts);
    json_int(&json, "iterations", demo->last.number);
    json_int(&json, "subsets", demo->scale->subsets);
    json_number(&json, "log_likelihood", demo->last.log_likelihood);
    json_number(&json, "emissions", common_sum(demo->image->values, lr_grid_num_voxels(&demo->image->grid)));
    json_text(&json, "pictures_by", demo->drawn_by);
    json_number(&json, "pictures_seconds", demo->pictures_seconds);
    json_number(&json, "simulate_seconds", demo->simulate_seconds);
    json_number(&json, "matrix_seconds", demo->matrix_seconds);
    json_number(&json, "recon_seconds", demo->recon_seconds);
    json_number(&json, "total_seconds", demo->total_seconds);
    json_int(&json, "peak_memory_bytes", common_peak_memory());
    common_json_end(&json);
}

lr_status demo_report(const struct demo *demo)
{
    char line[1024], path[PATH_MAX];
    report_clear(demo->setup.report);
    describe(demo, line, sizeof(line));
    const size_t length = strlen(line);
    snprintf(line + length, sizeof(line) - length, "\n");
    CLI_TRY(lr_text_write(demo_path(demo, "figures.txt", path, sizeof(path)), line, &demo->setup.report->log));
    line[length] = '\0';
    if (demo->setup.report->json)
        print_json(demo);
    else
        printf("%s\n%s/panel.png, correspondence.png, image.nii.gz\n", line, demo->folder);
    return LR_OK;
}

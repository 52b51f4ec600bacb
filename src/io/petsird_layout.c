/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/petsird_layout.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "io/light.h"
#include "io/petsird.h"

#include <stdlib.h>
#include <string.h>

/* Without a resolution, bins of the way light goes in 20 ps. */
static const double usual_bin_mm = 3;
static const double any_energy_kev = 1022;
static const double equal_mm = 5e-5;

enum { BINS_PER_RESOLUTION = 5, MAX_BINS = 1 << 16 };

/* --- types --- */

static bool is_mirrored(const lr_module *module)
{
    double w[3];
    vec_cross(module->u, module->v, w);
    return vec_dot(w, module->normal) > 0;
}

/* To what single precision keeps of a place: fitted modules differ in the last digits. */
static bool equal_modules(const lr_module *a, const lr_module *b)
{
    bool equal = fabs(a->depth_mm - b->depth_mm) < equal_mm && is_mirrored(a) == is_mirrored(b);
    for (int k = 0; k < 2; k++) {
        equal = equal && a->crystals[k] == b->crystals[k] &&
                fabs(a->pitch_mm[k] - b->pitch_mm[k]) * a->crystals[k] < equal_mm &&
                fabs(a->face_mm[k] - b->face_mm[k]) < equal_mm;
    }
    return equal;
}

static lr_status sort_modules(struct lr_petsird_layout *layout, const lr_log *log)
{
    const lr_scanner *scanner = layout->lors->scanner;
    for (int m = 0; m < scanner->num_modules; m++) {
        int type = 0;
        while (type < layout->num_types &&
               !equal_modules(&scanner->modules[m], &scanner->modules[layout->example[type]])) {
            type++;
        }
        if (type == layout->num_types) {
            if (type == LR_PETSIRD_MAX_TYPES) {
                return lr_error(log, LR_USAGE,
                                "%s has modules of more than %d kinds, which are too many for a "
                                "PETSIRD file",
                                scanner->name, LR_PETSIRD_MAX_TYPES);
            }
            layout->example[layout->num_types++] = m;
        }
        layout->type_of[m] = type;
        layout->index_of[m] = layout->count[type]++;
    }
    return LR_OK;
}

/* --- bins --- */

/* No point of a crystal is farther from the origin. */
static double reach_mm(const lr_scanner *scanner)
{
    double reach = 0;
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        const double across = hypot(module->crystals[0] * module->pitch_mm[0],
                                    module->crystals[1] * module->pitch_mm[1]);
        reach = fmax(reach, vec_length(module->centre_mm) + 0.5 * across + module->depth_mm);
    }
    return reach;
}

static lr_status set_edges(struct lr_petsird_layout *layout, int count, double width_mm,
                           const lr_log *log)
{
    layout->edges_mm = lr_alloc(count + 1, sizeof(*layout->edges_mm), "edges", log);
    if (layout->edges_mm == NULL) {
        return LR_FAILED;
    }
    layout->num_edges = count + 1;
    for (int k = 0; k <= count; k++) {
        layout->edges_mm[k] = (float)((k - 0.5 * count) * width_mm);
    }
    return LR_OK;
}

static lr_status choose_edges(struct lr_petsird_layout *layout, const lr_events_info *info,
                              const lr_log *log)
{
    const double reach = reach_mm(layout->lors->scanner);
    if (info == NULL || !info->has_tof) {
        return set_edges(layout, 1, 2 * reach, log);
    }
    if (info->num_tof_bins > 0) {
        layout->num_edges = info->num_tof_bins + 1;
        layout->edges_mm = lr_alloc(layout->num_edges, sizeof(*layout->edges_mm), "edges", log);
        if (layout->edges_mm != NULL) {
            memcpy(layout->edges_mm, info->tof_edges_mm,
                   (size_t)layout->num_edges * sizeof(*layout->edges_mm));
        }
        return layout->edges_mm != NULL ? LR_OK : LR_FAILED;
    }
    const double bin_mm =
        layout->resolution_mm > 0 ? layout->resolution_mm / BINS_PER_RESOLUTION : usual_bin_mm;
    const double half = fmin(ceil(reach / bin_mm), MAX_BINS / 2);
    lr_info(log, "times of flight are written in %d bins of %.4g mm", 2 * (int)half + 1, bin_mm);
    return set_edges(layout, 2 * (int)half + 1, bin_mm, log);
}

static void choose_numbers(struct lr_petsird_layout *layout, const lr_events_info *info)
{
    double resolution_ps = layout->lors->scanner->tof_resolution_ps;
    layout->energy_kev[1] = any_energy_kev;
    if (info != NULL && info->energy_kev[1] > info->energy_kev[0]) {
        memcpy(layout->energy_kev, info->energy_kev, sizeof(layout->energy_kev));
    }
    if (info != NULL && info->tof_resolution_ps > 0) {
        resolution_ps = info->tof_resolution_ps;
    }
    layout->resolution_mm = LR_MM_PER_PS * resolution_ps;
}

lr_status lr_petsird_layout_init(struct lr_petsird_layout *layout,
                                 const lr_events_writer_params *params)
{
    const int modules = params->lors->scanner->num_modules;
    *layout = (struct lr_petsird_layout){.lors = params->lors};
    layout->minor = params->petsird_minor != 0 ? params->petsird_minor : 9;
    layout->type_of = lr_alloc(modules, sizeof(int), "types of modules", params->log);
    layout->index_of = lr_alloc(modules, sizeof(int), "types of modules", params->log);
    layout->example = lr_alloc(LR_PETSIRD_MAX_TYPES, sizeof(int), "types", params->log);
    layout->count = lr_alloc(LR_PETSIRD_MAX_TYPES, sizeof(int), "types", params->log);
    if (layout->type_of == NULL || layout->index_of == NULL || layout->example == NULL ||
        layout->count == NULL) {
        return LR_FAILED;
    }
    LR_TRY(sort_modules(layout, params->log));
    choose_numbers(layout, params->info);
    return choose_edges(layout, params->info, params->log);
}

void lr_petsird_layout_finish(struct lr_petsird_layout *layout)
{
    free(layout->type_of);
    free(layout->index_of);
    free(layout->example);
    free(layout->count);
    free(layout->edges_mm);
    *layout = (struct lr_petsird_layout){0};
}

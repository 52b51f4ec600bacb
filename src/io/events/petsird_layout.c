/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/events/petsird_layout.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "io/events/petsird.h"
#include "io/files/light.h"

#include <stdlib.h>
#include <string.h>

/* Without a resolution, bins of the way light goes in 20 ps. */
static const double usual_bin_mm = 3;
static const double any_energy_kev = 1022;
static const double equal_mm = 5e-5;

static const double mirror_mm = 1e-3;

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

/* The kind of a module's crystals; 0 where none of them has one. */
static lr_status module_kind(const lr_scanner *scanner, int module, const lr_events_info *info, const lr_log *log,
                             int *kind)
{
    const lr_event_kinds *kinds = &info->kinds;
    int found = LR_EVENTS_NO_KIND;
    for (int c = scanner->first_crystal[module]; c < scanner->first_crystal[module + 1]; c++) {
        const int own = c < kinds->num_crystals ? kinds->kind_of[c] : LR_EVENTS_NO_KIND;
        if (own != LR_EVENTS_NO_KIND && found != LR_EVENTS_NO_KIND && own != found) {
            return lr_error(log, LR_BAD_INPUT,
                            "module %d of %s has crystals of the source's module types %d and %d, "
                            "whose times of flight or energies differ: a PETSIRD module cannot "
                            "hold both, take the source's own scanner",
                            module, scanner->name, found, own);
        }
        found = own != LR_EVENTS_NO_KIND ? own : found;
    }
    *kind = found != LR_EVENTS_NO_KIND ? found : 0;
    return LR_OK;
}

static lr_status sort_module(struct lr_petsird_layout *layout, int m, int kind, const lr_log *log)
{
    const lr_scanner *scanner = layout->lors->scanner;
    int type = 0;
    while (type < layout->num_types && !(layout->kind_of[type] == kind &&
                                         equal_modules(&scanner->modules[m], &scanner->modules[layout->example[type]])))
        type++;
    if (type == LR_PETSIRD_MAX_TYPES) {
        return lr_error(log, LR_USAGE,
                        "%s has modules of more than %d kinds, which are too many for a PETSIRD "
                        "file",
                        scanner->name, LR_PETSIRD_MAX_TYPES);
    }
    if (type == layout->num_types) {
        layout->kind_of[type] = kind;
        layout->example[layout->num_types++] = m;
    }
    layout->type_of[m] = type;
    layout->index_of[m] = layout->count[type]++;
    return LR_OK;
}

static lr_status sort_modules(struct lr_petsird_layout *layout, const lr_events_info *info, const lr_log *log)
{
    const lr_scanner *scanner = layout->lors->scanner;
    for (int m = 0; m < scanner->num_modules; m++) {
        int kind = 0;
        if (info != NULL && info->kinds.count > 0) LR_TRY(module_kind(scanner, m, info, log, &kind));
        LR_TRY(sort_module(layout, m, kind, log));
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
        const double across =
            hypot(module->crystals[0] * module->pitch_mm[0], module->crystals[1] * module->pitch_mm[1]);
        reach = fmax(reach, vec_length(module->centre_mm) + 0.5 * across + module->depth_mm);
    }
    return reach;
}

static lr_status set_edges(struct lr_petsird_bins *bins, int count, double width_mm, const lr_log *log)
{
    bins->edges_mm = lr_alloc(count + 1, sizeof(*bins->edges_mm), "edges", log);
    if (bins->edges_mm == NULL) return LR_FAILED;
    bins->num_edges = count + 1;
    for (int k = 0; k <= count; k++) bins->edges_mm[k] = (float)((k - 0.5 * count) * width_mm);
    return LR_OK;
}

static lr_status copy_edges(struct lr_petsird_bins *bins, const float *edges_mm, int count, const lr_log *log)
{
    bins->num_edges = count + 1;
    bins->is_given = true;
    bins->edges_mm = lr_alloc(bins->num_edges, sizeof(*bins->edges_mm), "edges", log);
    if (bins->edges_mm == NULL) return LR_FAILED;
    memcpy(bins->edges_mm, edges_mm, (size_t)bins->num_edges * sizeof(*bins->edges_mm));
    return LR_OK;
}

/* Of all crystals alike. */
static lr_status choose_edges(struct lr_petsird_layout *layout, const lr_events_info *info, const lr_log *log)
{
    struct lr_petsird_bins *bins = layout->bins;
    const double reach = reach_mm(layout->lors->scanner);
    bins->resolution_mm =
        LR_MM_PER_PS * (info != NULL && info->tof_resolution_ps > 0 ? info->tof_resolution_ps
                                                                    : layout->lors->scanner->tof_resolution_ps);
    if (info == NULL || !info->has_tof) return set_edges(bins, 1, 2 * reach, log);
    if (info->num_tof_bins > 0) return copy_edges(bins, info->tof_edges_mm, info->num_tof_bins, log);
    const double bin_mm = info->tof_bin_mm > 0      ? info->tof_bin_mm
                          : bins->resolution_mm > 0 ? bins->resolution_mm / BINS_PER_RESOLUTION
                                                    : usual_bin_mm;
    /* Bins of the source have their middles at 0, or their edges where its range holds an even number. */
    const bool is_even =
        info->tof_bin_mm > 0 && fabs(remainder(info->tof_range_mm / bin_mm, 2.0)) < 0.01 && info->tof_range_mm > 0;
    const int half = (int)fmin(ceil(reach / bin_mm), MAX_BINS / 2);
    const int count = is_even ? 2 * half : 2 * half + 1;
    lr_info(log, "times of flight are written in %d bins of %.4g mm", count, bin_mm);
    return set_edges(bins, count, bin_mm, log);
}

/* Of kinds that differ. */
static lr_status take_kinds(struct lr_petsird_layout *layout, const lr_event_kinds *kinds, const lr_log *log)
{
    const double reach = reach_mm(layout->lors->scanner);
    for (int k = 0; k < kinds->count * kinds->count; k++) {
        const lr_tof_bins *from = &kinds->tof[k];
        layout->bins[k].resolution_mm = LR_MM_PER_PS * from->resolution_ps;
        LR_TRY(from->num_bins > 0 ? copy_edges(&layout->bins[k], from->edges_mm, from->num_bins, log)
                                  : set_edges(&layout->bins[k], 1, 2 * reach, log));
    }
    return LR_OK;
}

static void choose_energies(struct lr_petsird_layout *layout, const lr_events_info *info)
{
    for (int k = 0; k < layout->num_kinds; k++) {
        const double *given = info == NULL            ? NULL
                              : info->kinds.count > 0 ? info->kinds.energy_kev[k]
                                                      : info->energy_kev;
        layout->energy_kev[k][1] = any_energy_kev;
        if (given != NULL && given[1] > given[0]) memcpy(layout->energy_kev[k], given, sizeof(*layout->energy_kev));
    }
}

const struct lr_petsird_bins *lr_petsird_layout_bins(const struct lr_petsird_layout *layout, int a, int b)
{
    return &layout->bins[layout->kind_of[a] * layout->num_kinds + layout->kind_of[b]];
}

static void compare_mirrored(struct lr_petsird_layout *layout)
{
    for (int k = 0; k < layout->num_kinds * layout->num_kinds; k++) {
        const int across = k % layout->num_kinds * layout->num_kinds + k / layout->num_kinds;
        struct lr_petsird_bins *one = &layout->bins[k];
        const struct lr_petsird_bins *other = &layout->bins[across];
        bool same = one->num_edges == other->num_edges;
        for (int e = 0; same && e < one->num_edges; e++) {
            const double mirrored_mm = -(double)other->edges_mm[one->num_edges - 1 - e];
            same = fabs(one->edges_mm[e] - mirrored_mm) < mirror_mm;
        }
        one->is_mirrored = same;
    }
}

/* --- all of it --- */

static lr_status allocate(struct lr_petsird_layout *layout, const lr_log *log)
{
    const int modules = layout->lors->scanner->num_modules, kinds = layout->num_kinds;
    layout->type_of = lr_alloc(modules, sizeof(int), "types of modules", log);
    layout->index_of = lr_alloc(modules, sizeof(int), "types of modules", log);
    layout->example = lr_alloc(LR_PETSIRD_MAX_TYPES, sizeof(int), "types", log);
    layout->count = lr_alloc(LR_PETSIRD_MAX_TYPES, sizeof(int), "types", log);
    layout->kind_of = lr_alloc(LR_PETSIRD_MAX_TYPES, sizeof(int), "types", log);
    layout->bins = lr_alloc((int64_t)kinds * kinds, sizeof(*layout->bins), "bins", log);
    layout->energy_kev = lr_alloc(kinds, sizeof(*layout->energy_kev), "energies", log);
    return layout->type_of != NULL && layout->index_of != NULL && layout->example != NULL && layout->count != NULL &&
                   layout->kind_of != NULL && layout->bins != NULL && layout->energy_kev != NULL
               ? LR_OK
               : LR_FAILED;
}

lr_status lr_petsird_layout_init(struct lr_petsird_layout *layout, const lr_events_writer_params *params)
{
    const lr_events_info *info = params->info;
    const bool differ = info != NULL && info->kinds.count > 0;
    *layout = (struct lr_petsird_layout){
        .lors = params->lors,
        .num_kinds = differ ? info->kinds.count : 1,
        .minor = params->petsird_minor != 0 ? params->petsird_minor : 12,
    };
    LR_TRY(allocate(layout, params->log));
    LR_TRY(sort_modules(layout, info, params->log));
    choose_energies(layout, info);
    LR_TRY(differ ? take_kinds(layout, &info->kinds, params->log) : choose_edges(layout, info, params->log));
    compare_mirrored(layout);
    return LR_OK;
}

void lr_petsird_layout_finish(struct lr_petsird_layout *layout)
{
    for (int k = 0; layout->bins != NULL && k < layout->num_kinds * layout->num_kinds; k++)
        free(layout->bins[k].edges_mm);
    free(layout->type_of);
    free(layout->index_of);
    free(layout->example);
    free(layout->count);
    free(layout->kind_of);
    free(layout->bins);
    free(layout->energy_kev);
    *layout = (struct lr_petsird_layout){0};
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include <lr/crystals.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "model/scanner/crystal_layers.h"
#include "model/scanner/crystal_panels.h"
#include "model/scanner/module_index.h"
#include "model/scanner/scanner_check.h"

#include <stdlib.h>
#include <string.h>

static const double default_tolerance_mm = 0.05;

/* A panel goes on where the next crystal is within this share of a step of the place that the last
 * step points to: farther than curved panels and noise deviate, nearer than the gaps that the
 * crystals' depth leaves between flat panels around a ring. */
static const double step_share = 0.2;

/* Crystals that make up no flat panel are gathered again in pieces this straight (share of the
 * tolerance); pieces count from 3 lines on, since two are always straight. */
static const double straight_share = 0.1;
enum { LEAST_LINES = 3 };

/* A list being turned into modules. */
struct draft {
    const lr_crystal_list *list;
    const char *title;
    double tolerance_mm;
    struct lr_crystal_growth growth;
    struct lr_crystal_blocks blocks;
    int *members;  /* [num_crystals] crystals sorted by panel */
    int *begins;   /* [num_panels + 1] */
    double off_mm; /* the largest residual so far */
    lr_module *modules;
    int num_positions;
};

/* --- panels --- */

/* Sorts the crystals by panel, in the order of the list within each. */
static lr_status sort_members(struct draft *draft)
{
    const int count = draft->list->num_crystals, panels = draft->growth.num_panels;
    free(draft->members);
    free(draft->begins);
    draft->members = lr_alloc(count, sizeof(int), "crystals", draft->list->log);
    draft->begins = lr_alloc((int64_t)panels + 2, sizeof(int), "panels", draft->list->log);
    if (draft->members == NULL || draft->begins == NULL) return LR_FAILED;
    /* begins[p + 2] counts panel p, then begins[p + 1] is where its next crystal goes. */
    for (int c = 0; c < count; c++) draft->begins[draft->growth.panel[c] + 2]++;
    for (int p = 0; p < panels; p++) draft->begins[p + 2] += draft->begins[p + 1];
    for (int c = 0; c < count; c++) draft->members[draft->begins[draft->growth.panel[c] + 1]++] = c;
    return LR_OK;
}

static lr_status fit_panel(struct draft *draft, int panel, struct lr_crystal_misfit *misfit)
{
    const struct lr_crystal_panel fitted = {.growth = &draft->growth,
                                            .members = &draft->members[draft->begins[panel]],
                                            .count = draft->begins[panel + 1] - draft->begins[panel],
                                            .tolerance_mm = draft->tolerance_mm};
    LR_TRY(lr_crystal_panel_fit(&fitted, &draft->blocks, misfit));
    if (misfit->fits) draft->off_mm = fmax(draft->off_mm, misfit->off_mm[0]);
    return LR_OK;
}

static lr_status refuse(struct draft *draft, const struct lr_crystal_misfit *misfit, int first)
{
    const lr_log *log = draft->list->log;
    if (!misfit->filled) {
        return lr_error(log, LR_BAD_INPUT,
                        "%s: the crystals around crystal %d do not fill a grid (%d x %d places): "
                        "crystals are missing, or the panel is curved; panels must be flat, with "
                        "crystals in rows and columns",
                        draft->title, first, misfit->grid[0], misfit->grid[1]);
    }
    draft->off_mm = misfit->off_mm[0];
    return lr_error(log, LR_BAD_INPUT,
                    "%s: crystals %d, %d and %d lie %.3g, %.3g and %.3g mm off the flat panel that "
                    "fits best (%d x %d crystals; tolerance %.3g mm): a curved or irregular panel "
                    "cannot be described by flat modules; say which crystals belong together "
                    "(groups, or their orientations), or raise the tolerance",
                    draft->title, misfit->crystals[0], misfit->crystals[1], misfit->crystals[2], misfit->off_mm[0],
                    misfit->off_mm[1], misfit->off_mm[2], misfit->grid[0], misfit->grid[1], draft->tolerance_mm);
}

/* Gathers the crystals of panels that do not fit again, in straight pieces. */
static lr_status fit_pieces(struct draft *draft, const struct lr_crystal_misfit *whole, int first)
{
    const int before = draft->growth.num_panels;
    LR_TRY(lr_crystals_grow(&draft->growth, step_share, straight_share * draft->tolerance_mm));
    LR_TRY(sort_members(draft));
    for (int p = before; p < draft->growth.num_panels; p++) {
        struct lr_crystal_misfit misfit;
        LR_TRY(fit_panel(draft, p, &misfit));
        if (!misfit.fits || misfit.grid[0] < LEAST_LINES || misfit.grid[1] < LEAST_LINES)
            return refuse(draft, whole, first);
    }
    return LR_OK;
}

static lr_status fit_panels(struct draft *draft)
{
    struct lr_crystal_misfit whole = {0};
    int first = -1;
    LR_TRY(lr_crystals_grow(&draft->growth, step_share, INFINITY));
    LR_TRY(sort_members(draft));
    for (int p = 0; p < draft->growth.num_panels; p++) {
        struct lr_crystal_misfit misfit;
        LR_TRY(fit_panel(draft, p, &misfit));
        if (misfit.fits) continue;
        if (first < 0 || (misfit.filled && misfit.off_mm[0] > whole.off_mm[0])) {
            whole = misfit;
            first = draft->members[draft->begins[p]];
        }
        for (int m = draft->begins[p]; m < draft->begins[p + 1]; m++) draft->growth.panel[draft->members[m]] = -1;
    }
    return first < 0 ? LR_OK : fit_pieces(draft, &whole, first);
}

/* --- modules --- */

/* Makes a module smaller by a length in each direction; crystals move by half of it at most. */
static void shrink(lr_module *module, double length_mm)
{
    for (int k = 0; k < 2; k++) {
        module->pitch_mm[k] -= length_mm / module->crystals[k];
        module->face_mm[k] = fmin(module->face_mm[k], module->pitch_mm[k]);
    }
    module->depth_mm -= length_mm;
}

static bool is_left(const lr_module *module)
{
    return module->pitch_mm[0] > 0 && module->pitch_mm[1] > 0 && module->depth_mm > 0;
}

/* Takes away by how much two modules overlap, if that is hardly anything. false: it is too much, or
 * nothing is left of one of them, and the scanner will be refused. */
static bool separate_pair(const struct draft *draft, lr_module *a, lr_module *b, double *most)
{
    const double overlap = lr_module_overlap_mm(a, b);
    if (!(overlap > 0.5 * LR_OVERLAP_TOLERANCE_MM)) return true;
    if (overlap > draft->tolerance_mm) return false;
    shrink(a, 1.01 * overlap);
    shrink(b, 1.01 * overlap);
    *most = fmax(*most, overlap);
    return is_left(a) && is_left(b);
}

/* Modules that touch overlap by rounding: takes that away. */
static lr_status separate(struct draft *draft, int count)
{
    double most = 0;
    bool goes_on = true;
    struct lr_module_index index; /* of modules as they are: none grows */
    LR_TRY(lr_module_index_init(&index, draft->modules, count, draft->list->log));
    for (int i = 0; i < count && goes_on; i++) {
        const int num_met = lr_module_index_meet(&index, i);
        for (int k = 0; k < num_met && goes_on; k++)
            goes_on = separate_pair(draft, &draft->modules[i], &draft->modules[index.met[k]], &most);
    }
    lr_module_index_finish(&index);
    draft->off_mm += 0.5 * most;
    return LR_OK;
}

static lr_scanner *create(struct draft *draft)
{
    const lr_crystal_list *list = draft->list;
    const int count = draft->blocks.count;
    draft->modules = lr_alloc(count, sizeof(*draft->modules), "modules", list->log);
    if (draft->modules == NULL) return NULL;
    for (int m = 0; m < count; m++) draft->modules[m] = draft->blocks.items[m].module;
    double detection_depth_mm = list->detection_depth_mm;
    struct lr_crystal_room room = {draft->title,        draft->modules,      count,
                                   &detection_depth_mm, draft->tolerance_mm, list->log};
    if (list->infers_sizes && lr_crystal_room_shorten(&room) != LR_OK) return NULL;
    if (separate(draft, count) != LR_OK) return NULL;
    const lr_scanner_params params = {
        .name = list->name,
        .modules = draft->modules,
        .num_modules = count,
        .num_positions = draft->num_positions,
        .coincidence = list->coincidence,
        .detection_depth_mm = detection_depth_mm,
        .tof_resolution_ps = list->tof_resolution_ps,
        .crystal_mu_per_mm = list->crystal_mu_per_mm,
        .source = list->source,
        .log = list->log,
    };
    return lr_scanner_create(&params);
}

/* Numbers the list's crystals in the scanner. */
static lr_status number_crystals(const struct draft *draft, const lr_scanner *scanner, int *crystal_of)
{
    int *module_of = lr_alloc(draft->blocks.count, sizeof(*module_of), "modules", draft->list->log);
    if (module_of == NULL) return LR_FAILED;
    for (int m = 0; m < draft->blocks.count; m++) module_of[draft->blocks.items[m].appended] = m;
    for (int c = 0; c < draft->list->num_crystals; c++) {
        const int m = module_of[draft->growth.block[c]];
        const struct lr_crystal_block *block = &draft->blocks.items[m];
        const int p = draft->growth.places[c][0] - block->first[0];
        const int q = draft->growth.places[c][1] - block->first[1];
        crystal_of[c] = scanner->first_crystal[m] + q * block->module.crystals[0] + p;
    }
    free(module_of);
    return LR_OK;
}

static lr_scanner *build(struct draft *draft, int *crystal_of)
{
    if (fit_panels(draft) != LR_OK || lr_crystal_blocks_arrange(&draft->blocks, draft->tolerance_mm,
                                                                &draft->num_positions, draft->list->log) != LR_OK)
        return NULL;
    if (draft->num_positions > 0) {
        struct lr_crystal_bounds bounds = {draft->off_mm, draft->tolerance_mm};
        if (lr_crystal_blocks_idealise(&draft->blocks, draft->num_positions, &draft->growth, &bounds) != LR_OK)
            return NULL;
        draft->off_mm = bounds.off_mm;
    }
    lr_scanner *scanner = create(draft);
    if (scanner != NULL && crystal_of != NULL && number_crystals(draft, scanner, crystal_of) != LR_OK) {
        lr_scanner_destroy(scanner);
        return NULL;
    }
    return scanner;
}

lr_scanner *lr_scanner_from_one_layer(const lr_crystal_list *list, int *crystal_of, double *residual_mm)
{
    struct draft draft = {.list = list,
                          .title = list->name != NULL ? list->name : "crystal list",
                          .tolerance_mm = list->tolerance_mm > 0 ? list->tolerance_mm : default_tolerance_mm};
    lr_scanner *scanner = NULL;
    if (lr_crystal_growth_init(&draft.growth, list) == LR_OK) scanner = build(&draft, crystal_of);
    if (residual_mm != NULL) *residual_mm = draft.off_mm;
    lr_crystal_growth_finish(&draft.growth);
    free(draft.blocks.items);
    free(draft.members);
    free(draft.begins);
    free(draft.modules);
    return scanner;
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The geometry doctor: drafts of scanners, and their examination. The checks are in doctor_checks.c. */
#include "model/scanner/doctor.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/vec.h"
#include "model/scanner/scanner.h"

#include <lr/doctor.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- drafts --- */

lr_scanner_draft *lr_scanner_draft_create(const lr_scanner *scanner, const lr_log *log)
{
    lr_scanner_draft *draft = lr_alloc(1, sizeof(*draft), "a scanner", log);
    if (draft == NULL) return NULL;
    lr_module *modules = lr_alloc(scanner->num_modules, sizeof(*modules), "a scanner's modules", log);
    draft->params = (lr_scanner_params){
        .name = lr_copy_string(scanner->name, log),
        .modules = modules,
        .num_modules = scanner->num_modules,
        .num_positions = scanner->num_positions,
        .coincidence = scanner->coincidence,
        .detection_depth_mm = scanner->detection_depth_mm,
        .tof_resolution_ps = scanner->tof_resolution_ps,
        .crystal_mu_per_mm = scanner->crystal_mu_per_mm,
        .source = lr_copy_string(scanner->source, log),
    };
    if (modules == NULL || draft->params.name == NULL || (scanner->source != NULL && draft->params.source == NULL)) {
        lr_scanner_draft_destroy(draft);
        return NULL;
    }
    memcpy(modules, scanner->modules, (size_t)scanner->num_modules * sizeof(*modules));
    return draft;
}

void lr_scanner_draft_destroy(lr_scanner_draft *draft)
{
    if (draft == NULL) return;
    free((void *)(uintptr_t)draft->params.name); /* owned, although const in lr_scanner_params */
    lr_free_all((void *)(uintptr_t)draft->params.source, (void *)(uintptr_t)draft->params.modules, draft);
}

/* --- the examination --- */

/* The normals of a closed belt nearly cancel. The length of their sum is at most this fraction of their number. */
static const double closed_share = 0.3;
enum { LEAST_CLOSED = 3 };

const char *lr_finding_kind_name(lr_finding_kind kind)
{
    static const char *const names[] = {"arc",    "radius",     "units",       "overlap", "gap",     "length",
                                        "normal", "handedness", "coincidence", "size",    "refused", "hiding"};
    return kind >= LR_FINDING_ARC && kind <= LR_FINDING_HIDING ? names[kind] : "unknown";
}

struct direction {
    double angle;
    int module;
};

/* Finds the modules around the axis at the height of the first module. False if memory is short. */
static bool find_belt(struct lr_examination *examination)
{
    const int count = examination->draft->params.num_modules;
    struct direction *directions = lr_alloc(count, sizeof(*directions), "an examination", examination->log);
    double *scratch = lr_alloc(count, sizeof(*scratch), "an examination", examination->log);
    struct lr_belt *belt = &examination->belt;
    belt->modules = lr_alloc(count, sizeof(*belt->modules), "an examination", examination->log);
    const bool good = directions != NULL && scratch != NULL && belt->modules != NULL;
    for (int m = 0; m < count && good; m++) {
        const lr_module *module = &examination->modules[m];
        const double half = lr_module_half_mm(module, 2);

        if (fabs(module->centre_mm[2] - examination->modules[0].centre_mm[2]) <= half) {
            directions[belt->count].module = m;
            directions[belt->count++].angle = atan2(module->centre_mm[1], module->centre_mm[0]);
        }
    }
    if (good) {
        /* Drops layers of crystals that lie behind other layers, and modules of other rings that are too near to the
         * first ring, because they fill no further part of the circumference. */
        int num_fronts = 0;
        for (int a = 0; a < belt->count; a++) {
            const lr_module *module = &examination->modules[directions[a].module];
            bool is_dropped = false;
            for (int b = 0; b < belt->count && !is_dropped; b++) {
                if (b >= num_fronts && b < a) continue; /* module b was dropped before */
                const lr_module *front = &examination->modules[directions[b].module];
                double away[3];
                vec_sub(module->centre_mm, front->centre_mm, away);
                const double plane_mm = fabs(vec_dot(module->normal, module->centre_mm));
                const double front_mm = fabs(vec_dot(front->normal, front->centre_mm));
                const bool is_behind = plane_mm > front_mm + 0.5 * front->depth_mm;
                const bool is_beside = b < num_fronts && fabs(away[2]) > LR_OVERLAP_TOLERANCE_MM; /* along the axis */
                is_dropped = (is_behind || is_beside) && vec_dot(module->normal, front->normal) > 0.9998 &&
                             fabs(vec_dot(away, front->u)) < 0.5 * front->crystals[0] * front->pitch_mm[0];
            }
            if (!is_dropped) directions[num_fronts++] = directions[a];
        }
        belt->count = num_fronts;

        /* Sorts the belt's modules by angle; `scratch` has room for one number per module. */
        double sum[2] = {0, 0};
        qsort(directions, (size_t)belt->count, sizeof(*directions), lr_compare_doubles);
        for (int k = 0; k < belt->count; k++) {
            const lr_module *module = &examination->modules[directions[k].module];
            belt->modules[k] = directions[k].module;
            belt->width_mm += module->crystals[0] * module->pitch_mm[0];
            sum[0] += module->normal[0];
            sum[1] += module->normal[1];
            scratch[k] = fabs(vec_dot(module->normal, module->centre_mm));
        }
        qsort(scratch, (size_t)belt->count, sizeof(*scratch), lr_compare_doubles);
        belt->radius_mm = belt->count > 0 ? scratch[belt->count / 2] : 0;
        belt->closed =
            belt->count >= LEAST_CLOSED && belt->radius_mm > 0 && hypot(sum[0], sum[1]) < closed_share * belt->count;
    }
    lr_free_all(directions, scratch);
    return good;
}

/* --- the whole examination --- */

/* Prepares the modules and the belt of an examination. False if memory is short. */
static bool prepare(struct lr_examination *examination)
{
    const lr_scanner_params *params = &examination->draft->params;
    examination->low_mm = INFINITY;
    examination->high_mm = -INFINITY;
    examination->modules = lr_alloc(params->num_modules, sizeof(lr_module), "an examination", examination->log);
    for (int m = 0; examination->modules != NULL && m < params->num_modules; m++) {
        lr_module *module = &examination->modules[m];
        *module = params->modules[m];
        /* The normal of the front face, pointing towards the axis. If the normal is parallel to the axis, it points
         * towards the scanner's centre instead. */
        const double *f = module->centre_mm;
        double n[3];
        vec_cross(module->u, module->v, n);
        const double radial = n[0] * f[0] + n[1] * f[1];
        const double outward = fabs(radial) > 1e-9 * vec_length(f) ? radial : vec_dot(n, f);
        const double length = vec_length(n);
        for (int k = 0; k < 3; k++) module->normal[k] = (outward > 0 ? -n[k] : n[k]) / (length > 0 ? length : 1);

        const double half = lr_module_half_mm(module, 2);
        examination->low_mm = fmin(examination->low_mm, module->centre_mm[2] - half);
        examination->high_mm = fmax(examination->high_mm, module->centre_mm[2] + half);
    }
    return examination->modules != NULL && find_belt(examination);
}

/* Frees what prepare has made, and returns the sorted diagnosis; NULL if memory was short. */
static lr_diagnosis *finish(struct lr_examination *examination)
{
    lr_free_all(examination->modules, examination->belt.modules);
    lr_diagnosis *diagnosis = examination->diagnosis;
    if (examination->failed) {
        lr_diagnosis_destroy(diagnosis);
        return NULL;
    }

    /* Suspicions are sorted to the front. The sort is stable: findings of one kind keep their order. */
    for (int k = 1; k < diagnosis->num_findings; k++) {
        const lr_finding moved = diagnosis->findings[k];
        int to = k;
        for (; to > 0; to--) {
            const lr_finding *before = &diagnosis->findings[to - 1];
            const bool is_later =
                before->severity != moved.severity ? moved.severity == LR_SUSPECT : before->kind > moved.kind;
            if (!is_later) break;
            diagnosis->findings[to] = *before;
        }
        diagnosis->findings[to] = moved;
    }
    return diagnosis;
}

lr_diagnosis *lr_scanner_find_slips(const lr_scanner *scanner, const lr_log *log)
{
    lr_scanner_draft *draft = lr_scanner_draft_create(scanner, log);
    if (draft == NULL) return NULL;
    struct lr_examination examination = {
        .draft = draft, .diagnosis = lr_alloc(1, sizeof(*examination.diagnosis), "a diagnosis", log), .log = log};
    examination.failed = examination.diagnosis == NULL || !prepare(&examination);
    if (!examination.failed) {
        lr_examine_arc(&examination);
        lr_examine_units(&examination);
        lr_examine_rules(&examination);
    }
    lr_scanner_draft_destroy(draft);
    return finish(&examination);
}

lr_diagnosis *lr_scanner_examine(const lr_scanner_draft *draft, const lr_grid *grid, const lr_log *log)
{
    static void (*const checks[])(struct lr_examination *) = {
        lr_examine_arc,     lr_examine_units,      lr_examine_overlaps, lr_examine_gaps, lr_examine_length,
        lr_examine_normals, lr_examine_handedness, lr_examine_rules,    lr_examine_grid};
    struct lr_examination examination = {.draft = draft, .grid = grid, .log = log};
    lr_diagnosis *diagnosis = lr_alloc(1, sizeof(*diagnosis), "a diagnosis", log);
    if (diagnosis == NULL) return NULL;
    examination.diagnosis = diagnosis;
    examination.failed = !prepare(&examination);
    if (!examination.failed) {
        for (size_t k = 0; k < sizeof(checks) / sizeof(checks[0]); k++) checks[k](&examination);

        /* The message with which lr_scanner_create would refuse the draft is a finding, too. */
        char sentence[1024] = "";
        struct lr_kept_error kept;
        lr_log_keep_error(&kept, sentence, sizeof(sentence));
        lr_scanner_params params = draft->params;
        params.log = &kept.log;
        if (lr_scanner_check_params(&params) != LR_OK) {
            const struct lr_finding_head head = {LR_SUSPECT, LR_FINDING_REFUSED, {-1, -1}, ""};
            lr_examination_add(&examination, &head, "%s", sentence);
        }
        lr_examine_size(&examination);
    }

    return finish(&examination);
}

void lr_diagnosis_destroy(lr_diagnosis *diagnosis)
{
    if (diagnosis == NULL) return;
    for (int k = 0; k < diagnosis->num_findings; k++)
        lr_free_all(diagnosis->findings[k].sentence, diagnosis->findings[k].remedy, diagnosis->findings[k].excerpt);
    lr_free_all(diagnosis->findings, diagnosis);
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/clean_text.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "model/scanner/scanner_check.h"

#include <stdlib.h>
#include <string.h>

/* Below this share of a module's distance from the origin, its normal's product with that distance
 * counts as zero (docs/method/common.md, "Frame and scanner"). */
#define NORMAL_TOLERANCE 1e-9

static void normalise(double a[3])
{
    const double length = vec_length(a);
    for (int k = 0; k < 3; k++) a[k] /= length;
}

void lr_module_set_normal(lr_module *module)
{
    const double *f = module->centre_mm;
    double n[3];
    vec_cross(module->u, module->v, n);
    const double zero = NORMAL_TOLERANCE * vec_length(f);
    const double radial = n[0] * f[0] + n[1] * f[1];
    const double outward = fabs(radial) > zero ? radial : vec_dot(n, f);
    const double sign = outward > zero ? -1.0 : 1.0;
    for (int k = 0; k < 3; k++) module->normal[k] = sign * n[k];
}

/* Given axes are unit and orthogonal to 1e-6 only; u keeps its direction. */
static void complete_axes(lr_module *module)
{
    normalise(module->u);
    vec_add_scaled(module->v, -vec_dot(module->u, module->v), module->u, module->v);
    normalise(module->v);
    lr_module_set_normal(module);
}

static void fill_modules(lr_scanner *scanner, const lr_module *modules)
{
    for (int m = 0; m < scanner->num_modules; m++) {
        lr_module *module = &scanner->modules[m];
        *module = modules[m];
        complete_axes(module);
        scanner->first_crystal[m] = scanner->num_crystals;
        scanner->num_crystals += module->crystals[0] * module->crystals[1];
    }
    scanner->first_crystal[scanner->num_modules] = scanner->num_crystals;
}

/* Allocates; false when memory is short. */
static bool prepare(lr_scanner *scanner, const lr_scanner_params *params)
{
    scanner->num_modules = params->num_modules;
    scanner->num_positions = params->num_positions;
    scanner->coincidence = params->coincidence;
    scanner->detection_depth_mm = params->detection_depth_mm;
    scanner->tof_resolution_ps = params->tof_resolution_ps;
    scanner->crystal_mu_per_mm = params->crystal_mu_per_mm;
    scanner->name = lr_copy_string(lr_scanner_title(params), params->log);
    scanner->source = lr_copy_string(params->source, params->log);
    if (scanner->name != NULL) lr_clean_text(scanner->name);
    if (scanner->source != NULL) lr_clean_text_but(scanner->source, "\n");
    scanner->modules = lr_alloc(params->num_modules, sizeof(*scanner->modules), "the modules", params->log);
    scanner->first_crystal =
        lr_alloc((int64_t)params->num_modules + 1, sizeof(*scanner->first_crystal), "the modules", params->log);
    return scanner->name != NULL && (params->source == NULL || scanner->source != NULL) && scanner->modules != NULL &&
           scanner->first_crystal != NULL;
}

lr_scanner *lr_scanner_create(const lr_scanner_params *params)
{
    if (lr_scanner_check_params(params) != LR_OK) return NULL;
    lr_scanner *scanner = lr_alloc(1, sizeof(*scanner), "a scanner", params->log);
    if (scanner == NULL || !prepare(scanner, params)) {
        lr_scanner_destroy(scanner);
        return NULL;
    }
    fill_modules(scanner, params->modules);
    if (lr_scanner_check_overlaps(scanner->name, scanner->modules, scanner->num_modules, params->log) != LR_OK) {
        lr_scanner_destroy(scanner);
        return NULL;
    }
    return scanner;
}

void lr_scanner_destroy(lr_scanner *scanner)
{
    if (scanner == NULL) return;
    free(scanner->name);
    free(scanner->source);
    free(scanner->modules);
    free(scanner->first_crystal);
    free(scanner->castor_order);
    free(scanner);
}

int lr_scanner_module_of(const lr_scanner *scanner, int crystal)
{
    int low = 0, high = scanner->num_modules;
    /* Modules mostly have as many crystals as each other. */
    if (crystal >= 0 && crystal < scanner->num_crystals) {
        const int guess = (int)((crystal + 0.5) * high / scanner->num_crystals);
        if (scanner->first_crystal[guess] <= crystal && crystal < scanner->first_crystal[guess + 1]) return guess;
    }
    while (high - low > 1) {
        const int middle = low + (high - low) / 2;
        if (scanner->first_crystal[middle] <= crystal)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void lr_module_crystal_centre(const lr_module *module, int p, int q, double centre_mm[3])
{
    const double along_u = (p - 0.5 * (module->crystals[0] - 1)) * module->pitch_mm[0];
    const double along_v = (q - 0.5 * (module->crystals[1] - 1)) * module->pitch_mm[1];
    vec_add_scaled(module->centre_mm, -0.5 * module->depth_mm, module->normal, centre_mm);
    vec_add_scaled(centre_mm, along_u, module->u, centre_mm);
    vec_add_scaled(centre_mm, along_v, module->v, centre_mm);
}

void lr_scanner_crystal_centre(const lr_scanner *scanner, int crystal, double centre_mm[3])
{
    const int m = lr_scanner_module_of(scanner, crystal);
    const lr_module *module = &scanner->modules[m];
    const int place = crystal - scanner->first_crystal[m];
    lr_module_crystal_centre(module, place % module->crystals[0], place / module->crystals[0], centre_mm);
}

void lr_scanner_hit_centre(const lr_scanner *scanner, int crystal, double centre_mm[3])
{
    const lr_module *module = &scanner->modules[lr_scanner_module_of(scanner, crystal)];
    lr_scanner_crystal_centre(scanner, crystal, centre_mm);
    vec_add_scaled(centre_mm, 0.5 * module->depth_mm - scanner->detection_depth_mm, module->normal, centre_mm);
}

void lr_scanner_detection_centre(const lr_scanner *scanner, int module, double centre_mm[3])
{
    const lr_module *at = &scanner->modules[module];
    vec_add_scaled(at->centre_mm, -scanner->detection_depth_mm, at->normal, centre_mm);
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Scanners: modules and crystals, their layers and materials, and how modules stand to each other. */
#include "model/scanner/scanner.h"

#include "base/clean_text.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "model/scanner/arrangement.h"
#include "model/scanner/layers.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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
    for (int m = 0; m < scanner->num_modules; m++) {
        lr_module *module = &scanner->modules[m];
        *module = params->modules[m];
        /* Given axes are unit and orthogonal to 1e-6 only; u keeps its direction. */
        normalise(module->u);
        vec_add_scaled(module->v, -vec_dot(module->u, module->v), module->u, module->v);
        normalise(module->v);
        lr_module_set_normal(module);

        scanner->first_crystal[m] = scanner->num_crystals;
        scanner->num_crystals += module->crystals[0] * module->crystals[1];
    }
    scanner->first_crystal[scanner->num_modules] = scanner->num_crystals;

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

/* --- layers --- */

double lr_layer_front_mm(const lr_layer *layers, int layer)
{
    double front = 0;
    for (int k = 0; k <= layer; k++) {
        front = layers[k].front_mm > 0 ? layers[k].front_mm : front;
        front += k < layer ? layers[k].depth_mm : 0;
    }
    return front;
}

struct lr_layer_fault lr_layers_find_fault(const lr_layer *layers, int num_layers, double depth_mm)
{
    double end = 0;
    for (int k = 0; k < num_layers; k++) {
        const double front = lr_layer_front_mm(layers, k);
        if (front < end - LR_OVERLAP_TOLERANCE_MM) return (struct lr_layer_fault){k, end - front, false};
        end = front + layers[k].depth_mm;
        if (end > depth_mm + LR_OVERLAP_TOLERANCE_MM) return (struct lr_layer_fault){k, end - depth_mm, true};
    }
    return (struct lr_layer_fault){-1, 0, false};
}

lr_module lr_layer_module(const lr_module *whole, const lr_layer *layers, int layer, const int block[2])
{
    const lr_layer *own = &layers[layer];
    lr_module module = *whole;
    lr_module_set_normal(&module);
    vec_add_scaled(module.centre_mm, -lr_layer_front_mm(layers, layer), module.normal, module.centre_mm);
    vec_add_scaled(module.centre_mm, own->offset_mm[0], module.u, module.centre_mm);
    vec_add_scaled(module.centre_mm, own->offset_mm[1], module.v, module.centre_mm);
    for (int k = 0; k < 2; k++) {
        if (own->block_crystals[k] != NULL) module.crystals[k] = own->block_crystals[k][block[k]];
        module.pitch_mm[k] = own->pitch_mm[k] > 0 ? own->pitch_mm[k] : module.pitch_mm[k];
        module.face_mm[k] = own->face_mm[k] > 0 ? own->face_mm[k] : module.face_mm[k];
    }
    for (int k = 0; k < 3; k++) module.normal[k] = whole->normal[k];
    module.depth_mm = own->depth_mm;
    module.mu_per_mm = own->mu_per_mm > 0 ? own->mu_per_mm : module.mu_per_mm;
    module.layer = layer;
    return module;
}

int lr_scanner_num_layers(const lr_scanner *scanner)
{
    int most = 0;
    for (int m = 0; m < scanner->num_modules; m++)
        most = scanner->modules[m].layer > most ? scanner->modules[m].layer : most;
    return most + 1;
}

/* --- arrangement --- */

/* Largest distance of a corner behind another module's plane at which it counts as on it, mm. */
static const double plane_tolerance_mm = 1e-6;

/* Largest deviation of a unit axis from the grid's. */
static const double axis_tolerance = 1e-9;

static bool is_behind(const lr_scanner *scanner, int module, int other)
{
    const lr_module *plane = &scanner->modules[module], *box = &scanner->modules[other];
    double from[3], centre[3], offset[3];
    lr_scanner_detection_centre(scanner, module, from);
    lr_scanner_detection_centre(scanner, other, centre);
    vec_sub(centre, from, offset);
    const double reach = fabs(vec_dot(plane->normal, box->u)) * 0.5 * box->crystals[0] * box->pitch_mm[0] +
                         fabs(vec_dot(plane->normal, box->v)) * 0.5 * box->crystals[1] * box->pitch_mm[1];
    return vec_dot(plane->normal, offset) - reach < -plane_tolerance_mm;
}

bool lr_modules_may_hide(const lr_scanner *scanner)
{
    for (int i = 0; i < scanner->num_modules; i++) {
        for (int j = 0; j < scanner->num_modules; j++) {
            const bool same_layer = scanner->modules[i].layer == scanner->modules[j].layer;
            if (i != j && same_layer && is_behind(scanner, i, j)) return true;
        }
    }
    return false;
}

static bool lies_along(const double direction[3], int axis)
{
    return fabs(fabs(direction[axis]) - 1.0) <= axis_tolerance;
}

int lr_module_axial(const lr_module *module, int axis)
{
    return lies_along(module->v, axis) ? 1 : lies_along(module->u, axis) ? 0 : -1;
}

static bool pair_fits(const lr_lors *lors, int64_t pair, int axis)
{
    const lr_module *i = &lors->scanner->modules[lors->pairs[pair][0]];
    const lr_module *j = &lors->scanner->modules[lors->pairs[pair][1]];
    const int on_i = lr_module_axial(i, axis), on_j = lr_module_axial(j, axis);
    return on_i >= 0 && on_i == on_j;
}

int lr_lors_axial_axis(const lr_lors *lors)
{
    for (int axis = 2; axis >= 0; axis--) {
        int64_t pair = 0;
        while (pair < lors->num_pairs && pair_fits(lors, pair, axis)) pair++;
        if (pair == lors->num_pairs) return axis;
    }
    return -1;
}

/* --- attenuation in crystals --- */

/* Mass attenuation coefficients at 511 keV after Elam et al. (lr/scanner.h), in cm2/g, times
 * density; those of water (0.0960) and lead at 500 keV (0.1614) agree with NIST's tables. */
static const struct material {
    const char *name;
    double mass_cm2_per_g, density_g_per_cm3;
} materials[] = {{"LSO", 0.11733, 7.40},
                 {"LYSO", 0.11527, 7.10},
                 {"BGO", 0.13504, 7.13},
                 {"GSO", 0.10484, 6.71},
                 {"LaBr3", 0.08851, 5.08}};

static const char assumed_material[] = "LYSO";

double lr_crystal_material_mu_per_mm(const char *material)
{
    for (size_t k = 0; k < sizeof(materials) / sizeof(materials[0]); k++)
        if (strcasecmp(material, materials[k].name) == 0)
            return 0.1 * materials[k].mass_cm2_per_g * materials[k].density_g_per_cm3;
    return 0;
}

const char *lr_crystal_materials(void)
{
    return "LSO, LYSO, BGO, GSO or LaBr3";
}

static double known_mu_per_mm(const lr_scanner *scanner, int module)
{
    const double own = scanner->modules[module].mu_per_mm;
    return own > 0 ? own : scanner->crystal_mu_per_mm;
}

double lr_module_mu_per_mm(const lr_scanner *scanner, int module)
{
    const double known = known_mu_per_mm(scanner, module);
    return known > 0 ? known : lr_crystal_material_mu_per_mm(assumed_material);
}

lr_status lr_penetration_check(const lr_scanner *scanner, lr_mode mode, const lr_log *log)
{
    if (mode == LR_MODE_EXACT) {
        const bool layered = lr_scanner_num_layers(scanner) > 1;
        return lr_error(log, LR_USAGE,
                        "%s integrated along lines and has no exact mode: use mode sampled, with "
                        "more rays for more accuracy%s",
                        layered ? "crystals in layers stop photons along their depth, which is"
                                : "crystal penetration is",
                        layered ? ", or let each layer count as if it were alone" : "");
    }
    return LR_OK;
}

void lr_penetration_warn(const lr_scanner *scanner, const lr_log *log)
{
    bool is_known = true;
    for (int m = 0; m < scanner->num_modules; m++) is_known = is_known && known_mu_per_mm(scanner, m) > 0;
    if (!is_known) {
        lr_warn(log,
                "%s does not say how its crystals attenuate: %s is assumed, %.4g/mm; give "
                "crystal_material (%s) or crystal_mu_per_mm in its file",
                scanner->name, assumed_material, lr_crystal_material_mu_per_mm(assumed_material),
                lr_crystal_materials());
    }
}

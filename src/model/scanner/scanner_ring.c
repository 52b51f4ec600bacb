/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "model/scanner/scanner_ring.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "model/scanner/layers.h"
#include "model/scanner/scanner_check.h"

#include <stdlib.h>

/* The table of module pairs takes 4 bytes for each two of them. */
#define MAX_MODULES 65536

static const double pi = 3.14159265358979323846;

/* A ring with its defaults filled in. */
struct layout {
    const lr_ring *ring;
    int rings;
    int blocks[2];
    int crystals[2]; /* of a whole panel */
    int layers;
};

static lr_status check_lengths(const char *title, const lr_ring *ring, const lr_log *log)
{
    if (!isfinite(ring->radius_mm) || ring->radius_mm <= 0.0) {
        return lr_error(log, LR_BAD_INPUT, "%s: the ring's radius is %.6g mm: it must be positive", title,
                        ring->radius_mm);
    }
    if (!isfinite(ring->first_angle_deg))
        return lr_error(log, LR_BAD_INPUT, "%s: the ring's first angle is not a finite number", title);
    if (!isfinite(ring->ring_pitch_mm) || ring->ring_pitch_mm < 0.0) {
        return lr_error(log, LR_BAD_INPUT, "%s: the ring pitch is %.6g mm: it must be positive", title,
                        ring->ring_pitch_mm);
    }
    for (int axis = 0; axis < 2; axis++) {
        if (!isfinite(ring->block_gap_mm[axis]) || ring->block_gap_mm[axis] < 0.0) {
            return lr_error(log, LR_BAD_INPUT,
                            "%s: the gap between blocks along %s is %.6g mm: it must be zero or "
                            "positive",
                            title, axis == 0 ? "u" : "v", ring->block_gap_mm[axis]);
        }
        if (!isfinite(ring->pitch_mm[axis]) || ring->pitch_mm[axis] <= 0.0) {
            return lr_error(log, LR_BAD_INPUT, "%s: the crystal pitch along %s is %.6g mm: it must be positive", title,
                            axis == 0 ? "u" : "v", ring->pitch_mm[axis]);
        }
    }
    return LR_OK;
}

static lr_status check_counts(const char *title, const lr_ring *ring, const lr_log *log)
{
    if (ring->modules < 2) {
        return lr_error(log, LR_BAD_INPUT, "%s: %d modules around the ring: a coincidence needs at least two", title,
                        ring->modules);
    }
    if (ring->rings < 0) return lr_error(log, LR_BAD_INPUT, "%s: %d rings: at least one is needed", title, ring->rings);
    if (ring->rings > 1 && ring->ring_pitch_mm == 0.0) {
        return lr_error(log, LR_BAD_INPUT,
                        "%s: %d rings without a ring pitch lie upon each other: give the distance "
                        "between their centres",
                        title, ring->rings);
    }
    return LR_OK;
}

/* Counts a panel's crystals along one axis. */
static lr_status count_crystals(const char *title, const lr_ring *ring, int axis, struct layout *layout,
                                const lr_log *log)
{
    const char *const name = axis == 0 ? "u" : "v";
    if (ring->blocks[axis] < 0 || ring->block_crystals[axis] == NULL) {
        return lr_error(log, LR_BAD_INPUT,
                        "%s: the panels have no blocks along %s: give the number of crystals of "
                        "each",
                        title, name);
    }
    layout->blocks[axis] = ring->blocks[axis] > 0 ? ring->blocks[axis] : 1;
    int64_t sum = 0;
    for (int block = 0; block < layout->blocks[axis]; block++) {
        const int crystals = ring->block_crystals[axis][block];
        if (crystals < 1) {
            return lr_error(log, LR_BAD_INPUT, "%s: block %d along %s has %d crystals: it needs at least 1", title,
                            block, name, crystals);
        }
        sum += crystals;
    }
    if (sum > INT32_MAX / layout->rings) {
        return lr_error(log, LR_BAD_INPUT, "%s: %lld crystals along %s in each panel are too many: reduce them", title,
                        (long long)sum, name);
    }
    layout->crystals[axis] = (int)sum;
    return LR_OK;
}

static lr_status check_layers(const char *title, const lr_ring *ring, const lr_log *log)
{
    if (ring->num_layers < 0 || ring->num_layers > LR_MAX_LAYERS) {
        return lr_error(log, LR_BAD_INPUT, "%s: %d layers of crystals: at most %d are supported", title,
                        ring->num_layers, LR_MAX_LAYERS);
    }
    for (int k = 0; k < ring->num_layers; k++) {
        const lr_layer *layer = &ring->layers[k];
        if (!(isfinite(layer->depth_mm) && layer->depth_mm > 0) || !isfinite(layer->front_mm)) {
            return lr_error(log, LR_BAD_INPUT,
                            "%s: layer %d begins at %.6g mm and is %.6g mm deep: give positive "
                            "lengths",
                            title, k, layer->front_mm, layer->depth_mm);
        }
    }
    const struct lr_layer_fault fault = lr_layers_find_fault(ring->layers, ring->num_layers, ring->depth_mm);
    if (fault.layer < 0) return LR_OK;
    return lr_error(log, LR_BAD_INPUT,
                    fault.leaves ? "%s: layer %d of the crystals ends %.3g mm behind the module of "
                                   "that depth: make the layers thinner or the module deeper"
                                 : "%s: layer %d of the crystals begins %.3g mm before the end of "
                                   "the layer before: make that thinner or move this one back",
                    title, fault.layer, fault.excess_mm);
}

static lr_status check_ring(const char *title, const lr_ring *ring, struct layout *layout, const lr_log *log)
{
    LR_TRY(check_lengths(title, ring, log));
    LR_TRY(check_counts(title, ring, log));
    layout->ring = ring;
    layout->rings = ring->rings > 0 ? ring->rings : 1;
    LR_TRY(count_crystals(title, ring, 0, layout, log));
    LR_TRY(count_crystals(title, ring, 1, layout, log));
    LR_TRY(check_layers(title, ring, log));
    layout->layers = ring->num_layers > 0 ? ring->num_layers : 1;
    const double count = (double)layout->rings * ring->modules * layout->blocks[0] * layout->blocks[1] * layout->layers;
    if (count > MAX_MODULES) {
        return lr_error(log, LR_BAD_INPUT, "%s: the ring consists of %.0f modules: at most %d are supported", title,
                        count, MAX_MODULES);
    }
    return LR_OK;
}

/* Crystals of the blocks before this one along an axis, given those of each. */
static int sum_before(const int *block_crystals, int block)
{
    int sum = 0;
    for (int b = 0; b < block; b++) sum += block_crystals[b];
    return sum;
}

static int crystals_before(const lr_ring *ring, int axis, int block)
{
    return sum_before(ring->block_crystals[axis], block);
}

/* Where a block's centre lies along an axis, from the panel's centre. */
static double block_offset_mm(const struct layout *layout, int axis, int block)
{
    const lr_ring *ring = layout->ring;
    const double pitch = ring->pitch_mm[axis], gap = ring->block_gap_mm[axis];
    const double length = layout->crystals[axis] * pitch + (layout->blocks[axis] - 1) * gap;
    const double before = crystals_before(ring, axis, block) * pitch + block * gap;
    return before + 0.5 * ring->block_crystals[axis][block] * pitch - 0.5 * length;
}

/* Fills in one block of the panel at position k of a module ring. */
static lr_module block_module(const struct layout *layout, int ring_index, int k, const int block[2])
{
    const lr_ring *ring = layout->ring;
    const double angle = (ring->first_angle_deg + k * 360.0 / ring->modules) * pi / 180.0;
    const double along_u = block_offset_mm(layout, 0, block[0]);
    const double along_v = block_offset_mm(layout, 1, block[1]);
    lr_module module = {
        .u = {-sin(angle), cos(angle), 0.0},
        .v = {0.0, 0.0, 1.0},
        .depth_mm = ring->depth_mm,
        .position = k,
        .ring = ring_index,
        .first_crystal_ring = ring_index * layout->crystals[1] + crystals_before(ring, 1, block[1]),
    };
    module.centre_mm[0] = ring->radius_mm * cos(angle) + along_u * module.u[0];
    module.centre_mm[1] = ring->radius_mm * sin(angle) + along_u * module.u[1];
    module.centre_mm[2] = (ring_index - 0.5 * (layout->rings - 1)) * ring->ring_pitch_mm + along_v;
    for (int axis = 0; axis < 2; axis++) {
        module.crystals[axis] = ring->block_crystals[axis][block[axis]];
        module.pitch_mm[axis] = ring->pitch_mm[axis];
        module.face_mm[axis] = ring->face_mm[axis];
    }
    return module;
}

/* The layers of a block, from modules[0] on. */
static void fill_layers(const struct layout *layout, const lr_module *whole, const int block[2], lr_module *modules)
{
    const lr_ring *ring = layout->ring;
    for (int k = 0; k < layout->layers; k++) {
        const int *own = ring->layers[k].block_crystals[1];
        modules[k] = lr_layer_module(whole, ring->layers, k, block);
        if (own != NULL) {
            modules[k].first_crystal_ring =
                whole->ring * sum_before(own, layout->blocks[1]) + sum_before(own, block[1]);
        }
    }
}

static void fill_panels(const struct layout *layout, lr_module *modules)
{
    int index = 0;
    for (int ring = 0; ring < layout->rings; ring++) {
        for (int k = 0; k < layout->ring->modules; k++) {
            for (int block_v = 0; block_v < layout->blocks[1]; block_v++) {
                for (int block_u = 0; block_u < layout->blocks[0]; block_u++) {
                    const int block[2] = {block_u, block_v};
                    modules[index] = block_module(layout, ring, k, block);
                    if (layout->ring->num_layers > 0) {
                        lr_module whole = modules[index];
                        whole.block = layout->layers > 1 ? index / layout->layers + 1 : 0;
                        fill_layers(layout, &whole, block, &modules[index]);
                    }
                    index += layout->layers;
                }
            }
        }
    }
}

lr_module *lr_ring_expand(const char *title, const lr_ring *ring, int *num_modules, const lr_log *log)
{
    struct layout layout;
    if (check_ring(title, ring, &layout, log) != LR_OK) return NULL;
    *num_modules = layout.rings * ring->modules * layout.blocks[0] * layout.blocks[1] * layout.layers;
    lr_module *modules = lr_alloc(*num_modules, sizeof(*modules), "the modules", log);
    if (modules != NULL) fill_panels(&layout, modules);
    return modules;
}

/* Rings of crystals are counted layer by layer, and differences need the same count in all. */
static lr_status check_ring_rule(const lr_scanner_params *params, const lr_ring *ring)
{
    if (!params->coincidence.limits_ring_difference) return LR_OK;
    const int blocks = ring->blocks[1] > 0 ? ring->blocks[1] : 1;
    for (int k = 0; k < ring->num_layers; k++) {
        const int *own = ring->layers[k].block_crystals[1];
        for (int b = 0; own != NULL && b < blocks; b++) {
            if (own[b] != ring->block_crystals[1][b]) {
                return lr_error(params->log, LR_BAD_INPUT,
                                "%s: layer %d has %d crystals along v where the module has %d, so "
                                "that layers have no crystal rings in common: leave "
                                "max_ring_difference out",
                                lr_scanner_title(params), k, own[b], ring->block_crystals[1][b]);
            }
        }
    }
    return LR_OK;
}

lr_scanner *lr_scanner_create_ring(const lr_scanner_params *params, const lr_ring *ring)
{
    lr_scanner_params expanded = *params;
    lr_module *modules = lr_ring_expand(lr_scanner_title(params), ring, &expanded.num_modules, params->log);
    if (modules == NULL) return NULL;
    expanded.modules = modules;
    expanded.num_positions = ring->modules;
    lr_scanner *scanner = check_ring_rule(params, ring) == LR_OK ? lr_scanner_create(&expanded) : NULL;
    free(modules);
    return scanner;
}

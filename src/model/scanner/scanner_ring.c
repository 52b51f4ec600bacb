/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Conversion of rings to lists of modules and back. The numbers of a ring are read from the first panel, and checked
 * by expanding them again. */
#include "model/scanner/scanner.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

/* Largest number of modules: the table of module pairs takes 4 bytes for every pair. */
#define MAX_MODULES 65536

/* A ring with its defaults filled in. */
struct layout {
    const lr_ring *ring;
    int rings;
    int blocks[2];
    int crystals[2]; /* crystals of a whole panel */
    int layers;
};

/* Checks a panel's blocks along one axis, and counts their crystals. */
static lr_status count_crystals(const char *title, const lr_ring *ring, int axis, struct layout *layout,
                                const lr_log *log)
{
    const char *const name = axis == 0 ? "u" : "v";
    if (ring->blocks[axis] < 0 || ring->block_crystals[axis] == NULL) {
        return lr_error(log, LR_BAD_INPUT,
                        "%s: the panels have no blocks along %s: give the number of crystals of each", title, name);
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

/* Checks the numbers of a ring and fills in its layout. */
static lr_status check_ring(const char *title, const lr_ring *ring, struct layout *layout, const lr_log *log)
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
                            "%s: the gap between blocks along %s is %.6g mm: it must be zero or positive", title,
                            axis == 0 ? "u" : "v", ring->block_gap_mm[axis]);
        }
        if (!isfinite(ring->pitch_mm[axis]) || ring->pitch_mm[axis] <= 0.0) {
            return lr_error(log, LR_BAD_INPUT, "%s: the crystal pitch along %s is %.6g mm: it must be positive", title,
                            axis == 0 ? "u" : "v", ring->pitch_mm[axis]);
        }
    }
    if (ring->modules < 2) {
        return lr_error(
            log, LR_BAD_INPUT,
            "%s: %d modules around the ring: a coincidence needs at least two; 'modules' counts them around, and "
            "'rings' along the axis",
            title, ring->modules);
    }
    if (ring->rings < 0) return lr_error(log, LR_BAD_INPUT, "%s: %d rings: at least one is needed", title, ring->rings);
    if (ring->rings > 1 && ring->ring_pitch_mm == 0.0) {
        return lr_error(
            log, LR_BAD_INPUT,
            "%s: %d rings without a ring pitch lie upon each other: give the distance between their centres", title,
            ring->rings);
    }

    layout->ring = ring;
    layout->rings = ring->rings > 0 ? ring->rings : 1;
    LR_TRY(count_crystals(title, ring, 0, layout, log));
    LR_TRY(count_crystals(title, ring, 1, layout, log));
    if (ring->num_layers < 0 || ring->num_layers > LR_MAX_LAYERS) {
        return lr_error(log, LR_BAD_INPUT, "%s: %d layers of crystals: at most %d are supported", title,
                        ring->num_layers, LR_MAX_LAYERS);
    }
    for (int k = 0; k < ring->num_layers; k++) {
        const lr_layer *layer = &ring->layers[k];
        if (!(isfinite(layer->depth_mm) && layer->depth_mm > 0) || !isfinite(layer->front_mm)) {
            return lr_error(log, LR_BAD_INPUT,
                            "%s: layer %d begins at %.6g mm and is %.6g mm deep: give positive lengths", title, k,
                            layer->front_mm, layer->depth_mm);
        }
    }
    const struct lr_layer_fault fault = lr_layers_find_fault(ring->layers, ring->num_layers, ring->depth_mm);
    if (fault.layer >= 0) {
        return lr_error(log, LR_BAD_INPUT,
                        fault.leaves ? "%s: layer %d of the crystals ends %.3g mm behind the module of that depth: "
                                       "make the layers thinner or the module deeper"
                                     : "%s: layer %d of the crystals begins %.3g mm before the end of the layer "
                                       "before: make that thinner or move this one back",
                        title, fault.layer, fault.excess_mm);
    }
    layout->layers = ring->num_layers > 0 ? ring->num_layers : 1;
    const double count = (double)layout->rings * ring->modules * layout->blocks[0] * layout->blocks[1] * layout->layers;
    if (count > MAX_MODULES) {
        return lr_error(log, LR_BAD_INPUT, "%s: the ring consists of %.0f modules: at most %d are supported", title,
                        count, MAX_MODULES);
    }
    return LR_OK;
}

/* The sum of the crystals of all blocks before `block` along an axis. */
static int sum_before(const int *block_crystals, int block)
{
    int sum = 0;
    for (int b = 0; b < block; b++) sum += block_crystals[b];
    return sum;
}

lr_module *lr_ring_expand(const char *title, const lr_ring *ring, int *num_modules, const lr_log *log)
{
    struct layout layout;
    if (check_ring(title, ring, &layout, log) != LR_OK) return NULL;
    const int *blocks = layout.blocks, num_layers = layout.layers;
    const int num_blocks = layout.rings * ring->modules * blocks[0] * blocks[1];
    *num_modules = num_blocks * num_layers;
    lr_module *modules = lr_alloc(*num_modules, sizeof(*modules), "the modules", log);
    for (int n = 0; modules != NULL && n < num_blocks; n++) {
        /* A block of the panel at position k of a module ring. */
        const int block[2] = {n % blocks[0], n / blocks[0] % blocks[1]};
        const int k = n / (blocks[0] * blocks[1]) % ring->modules;
        const int ring_index = n / (blocks[0] * blocks[1] * ring->modules);
        const double angle = (ring->first_angle_deg + k * 360.0 / ring->modules) * LR_PI / 180.0;
        double along[2]; /* from the panel's centre to the block's centre */
        for (int axis = 0; axis < 2; axis++) {
            const double pitch = ring->pitch_mm[axis], gap = ring->block_gap_mm[axis];
            const double length = layout.crystals[axis] * pitch + (blocks[axis] - 1) * gap;
            const double before = sum_before(ring->block_crystals[axis], block[axis]) * pitch + block[axis] * gap;
            along[axis] = before + 0.5 * ring->block_crystals[axis][block[axis]] * pitch - 0.5 * length;
        }
        lr_module whole = {
            .u = {-sin(angle), cos(angle), 0.0},
            .v = {0.0, 0.0, 1.0},
            .depth_mm = ring->depth_mm,
            .position = k,
            .ring = ring_index,
            .first_crystal_ring = ring_index * layout.crystals[1] + sum_before(ring->block_crystals[1], block[1]),
            .block = num_layers > 1 ? n + 1 : 0,
        };
        whole.centre_mm[0] = ring->radius_mm * cos(angle) + along[0] * whole.u[0];
        whole.centre_mm[1] = ring->radius_mm * sin(angle) + along[0] * whole.u[1];
        whole.centre_mm[2] = (ring_index - 0.5 * (layout.rings - 1)) * ring->ring_pitch_mm + along[1];
        for (int axis = 0; axis < 2; axis++) {
            whole.crystals[axis] = ring->block_crystals[axis][block[axis]];
            whole.pitch_mm[axis] = ring->pitch_mm[axis];
            whole.face_mm[axis] = ring->face_mm[axis];
        }

        lr_module *module = &modules[n * num_layers];
        *module = whole;
        for (int layer = 0; layer < ring->num_layers; layer++, module++) {
            const int *own = ring->layers[layer].block_crystals[1];
            *module = lr_layer_module(&whole, ring->layers, layer, block);
            if (own != NULL)
                module->first_crystal_ring = ring_index * sum_before(own, blocks[1]) + sum_before(own, block[1]);
        }
    }
    return modules;
}

lr_scanner *lr_scanner_create_ring_sized(size_t given_bytes, const lr_scanner_params *given, const lr_ring *ring)
{
    LR_TAKE(lr_scanner_params, params, given, given_bytes);
    lr_scanner_params expanded = *params;
    lr_module *modules = lr_ring_expand(lr_scanner_title(params), ring, &expanded.num_modules, params->log);
    if (modules == NULL) return NULL;
    expanded.modules = modules;
    expanded.num_positions = ring->modules;

    /* Crystal rings are counted layer by layer, and ring differences require the same number of rings in all layers. */
    const int blocks = ring->blocks[1] > 0 ? ring->blocks[1] : 1, *whole = ring->block_crystals[1];
    lr_status status = LR_OK;
    for (int k = 0; k < ring->num_layers && params->coincidence.limits_ring_difference; k++) {
        const int *own = ring->layers[k].block_crystals[1];
        for (int b = 0; own != NULL && b < blocks && status == LR_OK; b++) {
            if (own[b] == whole[b]) continue;
            status = lr_error(params->log, LR_BAD_INPUT,
                              "%s: layer %d has %d crystals along v where the module has %d, so that layers have no "
                              "crystal rings in common: leave max_ring_difference out",
                              lr_scanner_title(params), k, own[b], whole[b]);
        }
    }
    lr_scanner *scanner = status == LR_OK ? lr_scanner_create(&expanded) : NULL;
    free(modules);
    return scanner;
}

/* --- the ring of a list of modules --- */

/* Rounds to the fewest decimals that change the value by at most `share` times the larger of 1 and its size. */
static double shorten(double value, double share)
{
    return lr_shortest_decimal(value, 15, share * fmax(1, fabs(value)));
}

/* A scanner that may have the modules of a ring. */
struct candidate {
    const lr_scanner *scanner;
    lr_scanner fronts; /* the scanner with its modules of layer 0 only */
    int layers;
    int panel; /* number of modules of layer 0 in a panel */
};

/* Reads the numbers of the ring from the first panel and the first block's layers. */
static void read_numbers(const struct candidate *candidate, struct lr_ring_form *form, double share)
{
    const lr_scanner *fronts = &candidate->fronts;
    const int panel = candidate->panel;
    const lr_module *first = &fronts->modules[0];
    lr_ring *ring = &form->ring;
    ring->modules = fronts->num_positions;
    ring->rings = fronts->num_modules / (fronts->num_positions * panel);
    ring->radius_mm = shorten(-vec_dot(first->normal, first->centre_mm), share);
    double angle = atan2(-first->normal[1], -first->normal[0]) / LR_DEGREE;
    angle += angle < -1e-12 ? 360 : 0;
    ring->first_angle_deg = shorten(angle, share);
    if (ring->rings > 1) {
        const lr_module *above = &fronts->modules[panel * fronts->num_positions];
        ring->ring_pitch_mm = shorten(above->centre_mm[2] - first->centre_mm[2], share);
    }
    ring->depth_mm = first->depth_mm;
    for (int k = 0; k < 2; k++) {
        ring->pitch_mm[k] = first->pitch_mm[k];
        ring->face_mm[k] = first->face_mm[k];
        ring->block_gap_mm[k] = 0;
        if (ring->blocks[k] < 2) continue;

        /* The gap between the first two blocks, in addition to the pitch. */
        const lr_module *next = &fronts->modules[k == 0 ? 1 : ring->blocks[0]];
        double offset[3];
        vec_sub(next->centre_mm, first->centre_mm, offset);
        const double gap = vec_dot(offset, k == 0 ? first->u : first->v) -
                           0.5 * (first->crystals[k] + next->crystals[k]) * first->pitch_mm[k];
        ring->block_gap_mm[k] = gap > 0 ? shorten(gap, share) : 0;
    }

    ring->num_layers = candidate->layers > 1 ? candidate->layers : 0;
    for (int k = 0; k < ring->num_layers; k++) {
        const lr_module *front = &candidate->scanner->modules[0], *module = &candidate->scanner->modules[k];
        lr_layer *layer = &form->layers[k];
        double offset[3];
        vec_sub(module->centre_mm, front->centre_mm, offset);
        layer->front_mm = shorten(-vec_dot(offset, front->normal), share);
        layer->depth_mm = module->depth_mm;
        layer->mu_per_mm = module->mu_per_mm;
        layer->offset_mm[0] = shorten(vec_dot(offset, front->u), share);
        layer->offset_mm[1] = shorten(vec_dot(offset, front->v), share);
        for (int axis = 0; axis < 2; axis++) {
            layer->pitch_mm[axis] = module->pitch_mm[axis];
            layer->face_mm[axis] = module->face_mm[axis];
        }
        ring->depth_mm = fmax(ring->depth_mm, layer->front_mm + layer->depth_mm);
    }
}

static bool is_near(const double *a, const double *b, int count, double off)
{
    for (int k = 0; k < count; k++)
        if (!(fabs(a[k] - b[k]) <= off)) return false;
    return true;
}

static bool is_same(const lr_module *a, const lr_module *b, double same_mm)
{
    return is_near(a->centre_mm, b->centre_mm, 3, same_mm) && is_near(a->u, b->u, 3, fmax(1e-15, 1e-3 * same_mm)) &&
           is_near(a->v, b->v, 3, fmax(1e-15, 1e-3 * same_mm)) && is_near(a->pitch_mm, b->pitch_mm, 2, 0) &&
           is_near(a->face_mm, b->face_mm, 2, 0) && a->depth_mm == b->depth_mm && a->mu_per_mm == b->mu_per_mm &&
           a->crystals[0] == b->crystals[0] && a->crystals[1] == b->crystals[1] && a->position == b->position &&
           a->ring == b->ring && a->first_crystal_ring == b->first_crystal_ring && a->layer == b->layer &&
           a->block == b->block;
}

lr_status lr_ring_form_find(const lr_scanner *scanner, struct lr_ring_form *form, bool *found, const lr_log *log)
{
    const int layers = lr_scanner_num_layers(scanner);
    struct candidate candidate = {.scanner = scanner, .fronts = *scanner, .layers = layers};
    lr_scanner *fronts = &candidate.fronts;
    lr_status status = LR_OK;
    *form = (struct lr_ring_form){0};
    *found = false;
    if (scanner->num_modules % layers != 0) return LR_OK;
    if (layers > 1) {
        /* The modules of a block are consecutive, the front module first. */
        fronts->num_modules = scanner->num_modules / layers;
        fronts->modules = lr_alloc(fronts->num_modules, sizeof(*fronts->modules), "modules", log);
        if (fronts->modules == NULL) return LR_FAILED;
        for (int m = 0; m < fronts->num_modules; m++) fronts->modules[m] = scanner->modules[m * layers];
    }
    /* Modules of the first panel: modules with the same place and ring as the first one. */
    const lr_module *first = &fronts->modules[0];
    int panel = 0;
    while (panel < fronts->num_modules && fronts->modules[panel].position == first->position &&
           fronts->modules[panel].ring == first->ring)
        panel++;
    candidate.panel = panel;
    int row = 0; /* blocks along u of the first panel, counted in its lowest row */
    while (row < panel && fronts->modules[row].first_crystal_ring == first->first_crystal_ring) row++;
    if (!(fronts->num_positions >= 2 && panel >= 1 &&
          fronts->num_modules % (fronts->num_positions * (int64_t)panel) == 0 && panel % row == 0))
        goto done;
    lr_ring *ring = &form->ring;
    ring->blocks[0] = row;
    ring->blocks[1] = panel / row;
    status = LR_FAILED;
    for (int k = 0; k < 2; k++) {
        form->block_crystals[k] = lr_alloc(ring->blocks[k], sizeof(int), "blocks", log);
        if (form->block_crystals[k] == NULL) goto done;
        for (int b = 0; b < ring->blocks[k]; b++) {
            const lr_module *block = &fronts->modules[k == 0 ? b : b * ring->blocks[0]];
            form->block_crystals[k][b] = block->crystals[k];
        }
        ring->block_crystals[k] = form->block_crystals[k];
    }

    if (layers > 1) {
        const int blocks = ring->blocks[0] + ring->blocks[1];
        form->layers = lr_alloc(layers, sizeof(*form->layers), "layers", log);
        form->layer_crystals = lr_alloc((int64_t)layers * blocks, sizeof(int), "layers", log);
        if (form->layers == NULL || form->layer_crystals == NULL) goto done;
        ring->layers = form->layers;
        for (int layer = 0; layer < layers; layer++) {
            int *crystals = &form->layer_crystals[layer * blocks];
            for (int b = 0; b < blocks; b++) {
                const int axis = b < ring->blocks[0] ? 0 : 1;
                const int block = axis == 0 ? b : (b - ring->blocks[0]) * ring->blocks[0];
                crystals[b] = scanner->modules[block * layers + layer].crystals[axis];
            }
            form->layers[layer].block_crystals[0] = crystals;
            form->layers[layer].block_crystals[1] = crystals + ring->blocks[0];
        }
    }

    /* Relative tolerances of rounding, tried in this order. The first three must give the scanner's modules to within
     * 1e-13 mm, the last one to within 1e-6 mm. */
    static const double shares[] = {1e-13, 4e-15, 1e-15, 0};
    status = LR_OK;
    for (int k = 0; k < 4 && !*found; k++) {
        read_numbers(&candidate, form, shares[k]);
        const double same_mm = k < 3 ? 1e-13 : 1e-6;
        int count = 0;
        lr_module *modules = lr_ring_expand("", ring, &count, NULL);
        *found = modules != NULL && count == scanner->num_modules;
        for (int m = 0; m < count && *found; m++) *found = is_same(&modules[m], &scanner->modules[m], same_mm);
        free(modules);
    }

done:
    if (fronts->modules != scanner->modules) free(fronts->modules);
    if (!*found) lr_ring_form_finish(form);
    return status;
}

void lr_ring_form_finish(struct lr_ring_form *form)
{
    lr_free_all(form->block_crystals[0], form->block_crystals[1], form->layers, form->layer_crystals);
    *form = (struct lr_ring_form){0};
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Blocks that form rings: the same arrangement of blocks is repeated at equal angles around the axis. If the panels of
 * a ring are equal except for rounding or noise of the list, the panels are made exactly equal. The blocks of a panel
 * then share its plane, and panels are at equal angles. */
#include "base/order.h"
#include "model/scanner/crystal_panels.h"

#include "base/mem.h"
#include "base/units.h"
#include "base/vec.h"
#include "model/scanner/scanner.h"

#include <stdlib.h>

/* Difference of normals (degrees) below which panels are at one place around the ring. */
static const double same_angle_deg = 0.1;

/* Largest difference between the angle of a place and its ideal angle, as a share of the step between places. */
static const double uneven = 0.05;

/* Largest sine of the tilt of a module that counts as upright. Measured positions tilt modules a little. */
static const double tilt = 0.02;

enum { LEAST_PLACES = 3 };

/* The place of a block. */
struct site {
    double angle_deg; /* sort key: angle from the outward normal of the list's first crystal to the outward normal of
                         this block */
    const struct lr_crystal_block *block;
    double radius_mm; /* distance of the block's front plane from the axis */
    double across_mm; /* position of the block's centre along u */
    double z_mm;
    int position, row; /* place around the ring; row of blocks along z */
    int ring;
};

static double outward_deg(const lr_module *module)
{
    return atan2(-module->normal[1], -module->normal[0]) / LR_DEGREE;
}

static int by_height(const void *a, const void *b)
{
    const struct site *left = a, *right = b;
    return lr_order_then(lr_order(left->position, right->position), lr_order(left->z_mm, right->z_mm));
}

static int by_ring(const void *a, const void *b)
{
    const struct site *left = a, *right = b;
    return left->ring != right->ring           ? lr_order(left->ring, right->ring)
           : left->position != right->position ? lr_order(left->position, right->position)
           : left->row != right->row           ? lr_order(left->row, right->row)
           : fabs(left->across_mm - right->across_mm) > 0.5
               ? lr_order(left->across_mm, right->across_mm)
               : lr_order(left->radius_mm, right->radius_mm); /* layers, from front to back */
}

/* Numbers the blocks by places around a ring and by rings, and sorts `sites` in this order. Returns the number of
 * places around the ring; 0 if the blocks form no ring. */
static int arrange(struct lr_crystal_blocks *blocks, struct site *sites, double tolerance_mm)
{
    double first_deg = 0;
    for (int b = 0; b < blocks->count; b++) {
        const lr_module *module = &blocks->items[b].module;
        const bool is_upright = hypot(module->v[0], module->v[1]) < tilt && fabs(module->normal[2]) < tilt;
        if (!is_upright) return 0;
        if (blocks->items[b].first_listed == 0) first_deg = outward_deg(module);
    }
    for (int b = 0; b < blocks->count; b++) {
        const struct lr_crystal_block *block = &blocks->items[b];
        const lr_module *module = &block->module;
        struct site site = {.block = block, .z_mm = module->centre_mm[2]};
        /* The range of angles begins a little below 0, so that rounding does not separate the blocks of the first
         * place. */
        double angle = outward_deg(module) - first_deg + 2 * same_angle_deg;
        angle -= 360 * floor(angle / 360);
        site.angle_deg = angle - 2 * same_angle_deg;
        site.radius_mm = -vec_dot(module->normal, module->centre_mm);
        site.across_mm = vec_dot(module->u, module->centre_mm);
        sites[b] = site;
    }

    /* Places are at equal angles, and each has the same number of blocks. */
    const int count = blocks->count;
    qsort(sites, (size_t)count, sizeof(*sites), lr_compare_doubles);
    int positions = 1;
    for (int k = 1; k < count; k++) {
        positions += sites[k].angle_deg - sites[k - 1].angle_deg > same_angle_deg;
        sites[k].position = positions - 1;
    }
    if (positions < LEAST_PLACES || count % positions != 0) return 0;
    const int per_position = count / positions;
    const double step = 360.0 / positions;
    for (int k = 0; k < count; k++)
        if (sites[k].position != k / per_position ||
            fabs(sites[k].angle_deg - sites[k].position * step) > uneven * step)
            return 0;

    /* Every place has the same blocks as the first one, in rows of equal height. */
    qsort(sites, (size_t)count, sizeof(*sites), by_height);
    for (int k = 1; k < count; k++) {
        const bool same = sites[k].position == sites[k - 1].position;
        const bool higher = sites[k].z_mm - sites[k - 1].z_mm > tolerance_mm;
        sites[k].row = same ? sites[k - 1].row + higher : 0;
    }
    qsort(sites, (size_t)count, sizeof(*sites), by_ring); /* all rings are still 0, since they are numbered below */

    for (int k = 0; k < count; k++) {
        const struct site *like = &sites[k % per_position], *site = &sites[k];
        const lr_module *a = &like->block->module, *b = &site->block->module;
        const bool is_alike =
            like->row == site->row && a->crystals[0] == b->crystals[0] && a->crystals[1] == b->crystals[1] &&
            fabs(like->radius_mm - site->radius_mm) <= tolerance_mm &&
            fabs(like->across_mm - site->across_mm) <= tolerance_mm && fabs(like->z_mm - site->z_mm) <= tolerance_mm;
        const bool begins_row = k % per_position == 0 || sites[k - 1].row != site->row;
        if (!is_alike || (!begins_row && sites[k - 1].block->module.crystals[1] != b->crystals[1])) return 0;
    }

    /* The rows at the first place get numbers of rings and crystal rings. The rows at other places get the same
     * numbers. */
    int ring = 0, crystal_ring = 0;
    for (int k = 0; k < per_position; k++) {
        const lr_module *module = &sites[k].block->module;
        if (k > 0 && sites[k].row != sites[k - 1].row) {
            const lr_module *below = &sites[k - 1].block->module;
            const double gap =
                sites[k].z_mm - sites[k - 1].z_mm -
                0.5 * (module->crystals[1] * module->pitch_mm[1] + below->crystals[1] * below->pitch_mm[1]);
            crystal_ring += below->crystals[1];
            ring += gap > module->pitch_mm[1] * (1 - 1e-3);
        }
        for (int other = k; other < count; other += per_position) {
            lr_module *numbered = &blocks->items[sites[other].block - blocks->items].module;
            sites[other].ring = ring;
            numbered->position = sites[other].position;
            numbered->ring = ring;
            numbered->first_crystal_ring = crystal_ring;
        }
    }
    qsort(sites, (size_t)count, sizeof(*sites), by_ring);
    return positions;
}

lr_status lr_crystal_blocks_arrange(struct lr_crystal_blocks *blocks, double tolerance_mm, int *num_positions,
                                    const lr_log *log)
{
    struct site *sites = lr_alloc(blocks->count, sizeof(*sites), "modules", log);
    struct lr_crystal_block *sorted = lr_alloc(blocks->count, sizeof(*sorted), "modules", log);
    if (sites == NULL || sorted == NULL) {
        lr_free_all(sites, sorted);
        return LR_FAILED;
    }
    /* Two blocks may differ by twice the tolerance, because each of them may be off by the tolerance. */
    *num_positions = arrange(blocks, sites, 2 * tolerance_mm);
    if (*num_positions > 0) {
        for (int b = 0; b < blocks->count; b++) sorted[b] = *sites[b].block;
        free(blocks->items);
        blocks->items = sorted;
        blocks->room = blocks->count;
    } else {
        free(sorted);
        qsort(blocks->items, (size_t)blocks->count, sizeof(*blocks->items), lr_compare_ints);
    }
    free(sites);
    return LR_OK;
}

/* --- ideal rings --- */

/* The ideal ring is taken if its largest error is at most share_more times the error of the separate blocks plus
 * mm_more. If blocks are one crystal wide, line_more replaces mm_more, because the list may be rounded to 3 decimals,
 * and the errors of such blocks do not show the rounding. */
static const double share_more = 1.5, mm_more = 5e-5, line_more = 1e-3;

/* Numbers are rounded if crystals then move by less than this length, mm. */
static const double most_snap_mm = 2e-5;

/* A slot is one block of a panel. The blocks at the same slot of all panels have common values. */
struct slot {
    double radius_mm, across_mm, z_mm, pitch_mm[2];
    int count;
};

struct ideal {
    const struct lr_crystal_blocks *blocks;
    int positions;
    double snap_mm;
    double first_deg;
    struct slot *slots; /* [count] by the index of the block in the first panel; other entries have count 0 */
    int *slot_of;       /* [count] for each block, the index of its slot in `slots` */
    lr_module *modules; /* [count] */
};

/* Sets a common value (a radius or a pitch, at `offset` in struct slot) for all slots if their values differ by at most
 * `off`, and rounds the values. */
static void unite(struct ideal *ideal, size_t offset, double off)
{
    double sum = 0, low = INFINITY, high = -INFINITY;
    int count = 0;
    for (int b = 0; b < ideal->blocks->count; b++) {
        if (ideal->slots[b].count > 0) {
            const double value = *(double *)(void *)((char *)&ideal->slots[b] + offset);
            sum += value;
            count++;
            low = fmin(low, value);
            high = fmax(high, value);
        }
    }
    for (int b = 0; b < ideal->blocks->count; b++) {
        double *value = (double *)(void *)((char *)&ideal->slots[b] + offset);
        *value = lr_shortest_decimal(high - low <= off ? sum / count : *value, 12, off);
    }
}

/* Makes the ideal modules: the blocks of each slot get the mean values of the slot, rounded. */
static void shape(struct ideal *ideal)
{
    int most = 1;
    for (int b = 0; b < ideal->blocks->count; b++) {
        const lr_module *module = &ideal->blocks->items[b].module;
        most = module->crystals[0] > most ? module->crystals[0] : most;
        most = module->crystals[1] > most ? module->crystals[1] : most;
        ideal->modules[b] = *module;
    }
    /* Blocks are sorted by ring, then by place. The slot of a block is the slot of the corresponding block at the first
     * place. */
    const struct lr_crystal_block *items = ideal->blocks->items;
    for (int begin = 0, end = 0; begin < ideal->blocks->count; begin = end) {
        while (end < ideal->blocks->count && items[end].module.ring == items[begin].module.ring) end++;
        for (int b = begin; b < end; b++) ideal->slot_of[b] = begin + (b - begin) % ((end - begin) / ideal->positions);
    }

    double first = 0, sum = 0, farthest = 1;
    for (int b = 0; b < ideal->blocks->count; b++) {
        const lr_module *module = &items[b].module;
        const double angle = outward_deg(module) - module->position * 360.0 / ideal->positions;
        first = b == 0 ? angle : first;
        sum += remainder(angle - first, 360);
        farthest = fmax(farthest, vec_length(module->centre_mm));
    }
    double mean = first + sum / ideal->blocks->count;
    mean -= 360 * floor(mean / 360 + 1e-9);
    ideal->first_deg = lr_shortest_decimal(mean, 12, ideal->snap_mm / farthest / LR_DEGREE);

    for (int b = 0; b < ideal->blocks->count; b++) {
        const lr_module *module = &items[b].module;
        struct slot *slot = &ideal->slots[ideal->slot_of[b]];
        slot->radius_mm -= vec_dot(module->normal, module->centre_mm) / ideal->positions;
        slot->across_mm += vec_dot(module->u, module->centre_mm) / ideal->positions;
        slot->z_mm += module->centre_mm[2] / ideal->positions;
        slot->pitch_mm[0] += module->pitch_mm[0] / ideal->positions;
        slot->pitch_mm[1] += module->pitch_mm[1] / ideal->positions;
        slot->count++;
    }
    unite(ideal, offsetof(struct slot, radius_mm), ideal->snap_mm);
    unite(ideal, offsetof(struct slot, pitch_mm), 2 * ideal->snap_mm / most);
    unite(ideal, offsetof(struct slot, pitch_mm) + sizeof(double), 2 * ideal->snap_mm / most);
    for (int b = 0; b < ideal->blocks->count; b++) {
        lr_module *module = &ideal->modules[b];
        const struct slot *slot = &ideal->slots[ideal->slot_of[b]];
        const double angle = (ideal->first_deg + module->position * 360.0 / ideal->positions) * LR_DEGREE;
        const double across = lr_shortest_decimal(slot->across_mm, 12, ideal->snap_mm);
        const double u[3] = {-sin(angle), cos(angle), 0};
        for (int k = 0; k < 3; k++) {
            module->u[k] = u[k];
            module->v[k] = k == 2;
        }
        module->normal[0] = -cos(angle);
        module->normal[1] = -sin(angle);
        module->normal[2] = 0;
        module->centre_mm[0] = slot->radius_mm * cos(angle) + across * u[0];
        module->centre_mm[1] = slot->radius_mm * sin(angle) + across * u[1];
        module->centre_mm[2] = lr_shortest_decimal(slot->z_mm, 12, ideal->snap_mm);
        for (int k = 0; k < 2; k++) {
            module->pitch_mm[k] = slot->pitch_mm[k];
            module->face_mm[k] = fmin(module->face_mm[k], module->pitch_mm[k]);
        }
    }
}

lr_status lr_crystal_blocks_idealise(struct lr_crystal_blocks *blocks, int num_positions,
                                     const struct lr_crystal_growth *growth, struct lr_crystal_bounds *bounds)
{
    const lr_log *log = growth->list->log;
    struct ideal ideal = {
        .blocks = blocks, .positions = num_positions, .snap_mm = fmin(2 * bounds->off_mm + 1e-9, most_snap_mm)};
    int *block_at = lr_alloc(blocks->count, sizeof(*block_at), "modules", log);
    ideal.slots = lr_alloc(blocks->count, sizeof(*ideal.slots), "modules", log);
    ideal.slot_of = lr_alloc(blocks->count, sizeof(*ideal.slot_of), "modules", log);
    ideal.modules = lr_alloc(blocks->count, sizeof(*ideal.modules), "modules", log);
    const bool good = block_at != NULL && ideal.slots != NULL && ideal.slot_of != NULL && ideal.modules != NULL;
    if (good) {
        for (int b = 0; b < blocks->count; b++) block_at[blocks->items[b].appended] = b;
        shape(&ideal);
        /* The largest distance of a crystal from its place in the ideal modules. */
        double off = 0;
        for (int c = 0; c < growth->list->num_crystals; c++) {
            const int b = block_at[growth->block[c]];
            const int *first = ideal.blocks->items[b].first;
            double centre[3];
            lr_module_crystal_centre(&ideal.modules[b], growth->places[c][0] - first[0],
                                     growth->places[c][1] - first[1], centre);
            vec_sub(centre, growth->list->crystals[c].centre_mm, centre);
            off = fmax(off, vec_length(centre));
        }

        double more = line_more;
        for (int b = 0; b < blocks->count; b++) more = blocks->items[b].module.crystals[0] > 1 ? mm_more : more;
        if (off <= fmin(share_more * bounds->off_mm + more, bounds->tolerance_mm)) {
            for (int b = 0; b < blocks->count; b++) blocks->items[b].module = ideal.modules[b];

            bounds->off_mm = off;
        }
    }
    lr_free_all(block_at, ideal.slots, ideal.slot_of, ideal.modules);
    return good ? LR_OK : LR_FAILED;
}

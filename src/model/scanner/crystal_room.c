/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Crystals that are longer than the room between panels. */
#include "base/grow.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "model/scanner/crystal_panels.h"
#include "model/scanner/scanner_check.h"

#include <stdlib.h>

/* Crystals keep at least this share of their length. */
static const double least_share = 0.5;

/* New lengths are multiples of this, mm. */
static const double depth_step_mm = 0.01;

/* Less than that is rounding. */
static const double least_overlap_mm = 1e-4;

enum { NUM_HALVINGS = 40 };

static double reach_of(const lr_module *module)
{
    return 0.5 * (module->crystals[0] * module->pitch_mm[0] + module->crystals[1] * module->pitch_mm[1]) +
           module->depth_mm;
}

/* Negative where they are far from each other. */
static double overlap_of(const lr_module *a, const lr_module *b)
{
    double way[3];
    vec_sub(a->centre_mm, b->centre_mm, way);
    return vec_length(way) > reach_of(a) + reach_of(b) ? -1 : lr_module_overlap_mm(a, b);
}

struct pair {
    int modules[2];
};

struct pairs {
    struct pair *items; /* owned */
    int count;
    int64_t room;
};

/* Pairs of modules that overlap, and whether that goes once they are shorter. */
struct found {
    struct pairs pairs;
    bool helps;
};

static lr_status add_pair(struct pairs *pairs, struct pair pair, const lr_log *log)
{
    const struct lr_items items = {sizeof(*pairs->items), "modules", log};
    LR_TRY(lr_grow(&pairs->items, &pairs->room, pairs->count + 1, &items));
    pairs->items[pairs->count++] = pair;
    return LR_OK;
}

static lr_module shortened(const lr_module *module, double by_mm)
{
    lr_module other = *module;
    vec_add_scaled(module->centre_mm, -0.5 * by_mm, module->normal, other.centre_mm);
    other.depth_mm -= by_mm;
    return other;
}

static double overlap_of_shortened(const struct lr_crystal_room *room, struct pair pair, double by_mm)
{
    const lr_module a = shortened(&room->modules[pair.modules[0]], by_mm);
    const lr_module b = shortened(&room->modules[pair.modules[1]], by_mm);
    return overlap_of(&a, &b);
}

/* The plane on which hits are read stays where it is, within the crystals. */
static double most_shortening(const struct lr_crystal_room *room)
{
    double most = 2 * *room->detection_depth_mm;
    for (int m = 0; m < room->num_modules; m++) {
        const double depth = room->modules[m].depth_mm;
        const double behind = depth - *room->detection_depth_mm;
        most = fmin(most, fmin((1 - least_share) * depth, 2 * behind));
    }
    return most;
}

/* What a module takes of the axis along which modules lie farthest apart. */
struct span {
    double low, high;
    int module;
};

static int by_low(const void *a, const void *b)
{
    const struct span *left = a, *right = b;
    return left->low < right->low ? -1 : left->low > right->low;
}

static int widest_axis(const struct lr_crystal_room *room)
{
    double widest = -1;
    int axis = 0;
    for (int k = 0; k < 3; k++) {
        double low = INFINITY, high = -INFINITY;
        for (int m = 0; m < room->num_modules; m++) {
            low = fmin(low, room->modules[m].centre_mm[k]);
            high = fmax(high, room->modules[m].centre_mm[k]);
        }
        axis = high - low > widest ? k : axis;
        widest = fmax(widest, high - low);
    }
    return axis;
}

/* Sorted; to be freed. */
static struct span *list_spans(const struct lr_crystal_room *room)
{
    const int axis = widest_axis(room);
    struct span *spans = lr_alloc(room->num_modules, sizeof(*spans), "modules", room->log);
    for (int m = 0; spans != NULL && m < room->num_modules; m++) {
        const double at = room->modules[m].centre_mm[axis], reach = reach_of(&room->modules[m]);
        spans[m] = (struct span){at - reach, at + reach, m};
    }
    if (spans != NULL) qsort(spans, (size_t)room->num_modules, sizeof(*spans), by_low);
    return spans;
}

/* Adds a pair that no longer overlaps once its modules are shorter by `most`; *helps becomes false
 * for another one that overlaps by more than rounding. */
static lr_status judge_pair(const struct lr_crystal_room *room, double most, struct pair pair, struct found *found)
{
    const double overlap = overlap_of_shortened(room, pair, 0);
    if (overlap > 0 && overlap_of_shortened(room, pair, most) <= 0) return add_pair(&found->pairs, pair, room->log);
    found->helps = overlap <= room->tolerance_mm;
    return LR_OK;
}

static lr_status find_pairs(const struct lr_crystal_room *room, double most, struct found *found)
{
    struct span *spans = list_spans(room);
    lr_status status = spans != NULL ? LR_OK : LR_FAILED;
    found->helps = most > 0;
    for (int i = 0; i < room->num_modules && found->helps && status == LR_OK; i++)
        for (int j = i + 1; j < room->num_modules && spans[j].low <= spans[i].high && found->helps && status == LR_OK;
             j++)
            status = judge_pair(room, most, (struct pair){{spans[i].module, spans[j].module}}, found);
    free(spans);
    return status;
}

static double largest_overlap(const struct lr_crystal_room *room, const struct pairs *pairs, double by_mm)
{
    double largest = 0;
    for (int k = 0; k < pairs->count; k++) largest = fmax(largest, overlap_of_shortened(room, pairs->items[k], by_mm));
    return largest;
}

static double find_shortening(const struct lr_crystal_room *room, const struct pairs *pairs, double most)
{
    double low = 0, high = most;
    for (int k = 0; k < NUM_HALVINGS; k++) {
        const double middle = 0.5 * (low + high);
        *(largest_overlap(room, pairs, middle) > 0 ? &low : &high) = middle;
    }
    return fmin(most, ceil(high / depth_step_mm) * depth_step_mm);
}

static void shorten(struct lr_crystal_room *room, double by_mm, double overlap_mm)
{
    const double was_mm = room->modules[0].depth_mm;
    for (int m = 0; m < room->num_modules; m++) room->modules[m] = shortened(&room->modules[m], by_mm);
    *room->detection_depth_mm -= 0.5 * by_mm;
    lr_warn(room->log,
            "%s: crystals %.6g mm long would overlap with those of other panels by %.3g mm: they "
            "are taken as %.6g mm long around the same centres, and hits are read where they were, "
            "now %.6g mm behind the front; check sizes and places",
            room->title, was_mm, overlap_mm, room->modules[0].depth_mm, *room->detection_depth_mm);
}

lr_status lr_crystal_room_shorten(struct lr_crystal_room *room)
{
    struct found found = {0};
    const double most = most_shortening(room);
    const lr_status status = find_pairs(room, most, &found);
    const double overlap = status == LR_OK && found.helps ? largest_overlap(room, &found.pairs, 0) : 0;
    if (overlap > least_overlap_mm) shorten(room, find_shortening(room, &found.pairs, most), overlap);
    free(found.pairs.items);
    return status;
}

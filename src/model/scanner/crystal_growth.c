/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "model/scanner/crystal_panels.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

enum { NUM_SAMPLES = 64 };

static const double largest_mm = 1e6;

/* Crystals whose known axes differ by more than this (0.2 degrees) are of different modules. */
static const double axis_sine = 3e-3;

/* Largest cosine between the two directions of a panel at its first crystal. */
static const double skew = 0.1;

/* A crystal whose neighbours are looked for, and the steps along both directions that led to it. */
struct visit {
    int crystal;
    double steps[2][3]; /* zero = no crystals in that direction */
};

/* The nearest crystal that qualifies. */
struct search {
    const struct lr_crystal_growth *growth;
    int from;
    const double *across; /* the way must be orthogonal to this one; NULL = any */
    int found;
    double distance2;
};

static bool is_known(const double axis[3])
{
    return axis[0] != 0 || axis[1] != 0 || axis[2] != 0;
}

static bool may_share_module(const lr_crystal *a, const lr_crystal *b)
{
    if (a->group != b->group) return false;
    for (int k = 0; k < 3; k++) {
        double cross[3];
        if (is_known(a->axes[k]) && is_known(b->axes[k])) {
            vec_cross(a->axes[k], b->axes[k], cross);
            if (vec_length(cross) > axis_sine) return false;
        }
    }
    return true;
}

static bool is_across(const double way[3], const double other[3])
{
    return fabs(vec_dot(way, other)) <= skew * vec_length(way) * vec_length(other);
}

static void consider(void *user, int crystal, double distance2)
{
    struct search *search = user;
    const struct lr_crystal_growth *growth = search->growth;
    if (crystal == search->from || growth->panel[crystal] >= 0 || distance2 >= search->distance2) return;
    const lr_crystal *from = &growth->list->crystals[search->from];
    const lr_crystal *to = &growth->list->crystals[crystal];
    double way[3];
    vec_sub(to->centre_mm, from->centre_mm, way);
    if (!may_share_module(from, to) || !is_across(way, from->axes[2]) ||
        (search->across != NULL && !is_across(way, search->across)))
        return;
    search->found = crystal;
    search->distance2 = distance2;
}

/* The way to the nearest free crystal of the same module; zero when there is none near. */
static void find_step(struct lr_crystal_growth *growth, int from, const double *across, double step[3])
{
    struct search search = {growth, from, across, -1, INFINITY};
    const struct lr_point_visit visit = {consider, &search};
    const double *at = growth->list->crystals[from].centre_mm;
    for (double reach = growth->hash.cell_mm; reach <= 8.5 * growth->hash.cell_mm; reach *= 2) {
        const struct lr_point_hash *hash = reach < growth->far.cell_mm ? &growth->hash : &growth->far;
        growth->seen += lr_point_hash_visit(hash, at, reach, &visit);
        if (search.found >= 0) {
            vec_sub(growth->list->crystals[search.found].centre_mm, at, step);
            return;
        }
    }
    step[0] = step[1] = step[2] = 0;
}

/* True if too many crystals lie in one place: crystals of panels have up to about a hundred others in reach, single
 * ones (no more than modules) a thousand, and those of a heap all of them. */
static bool is_lost(const struct lr_crystal_growth *growth)
{
    return growth->seen > 70000000 + (int64_t)150 * growth->list->num_crystals;
}

static lr_status refuse_heap(const struct lr_crystal_growth *growth)
{
    return lr_error(growth->list->log, LR_BAD_INPUT,
                    "%s: the crystals do not stand in regular panels: too many of them lie in one "
                    "place, %.3g mm apart elsewhere",
                    growth->list->name ? growth->list->name : "crystal list", growth->hash.cell_mm / 1.25);
}

/* --- growing one panel --- */

struct front {
    struct lr_crystal_growth *growth;
    struct visit *queue; /* [num_crystals] */
    int head, tail;
    double share, reach_mm;
};

static void nearest(void *user, int crystal, double distance2)
{
    struct search *search = user;
    if (search->growth->panel[crystal] < 0 && distance2 < search->distance2 &&
        may_share_module(&search->growth->list->crystals[search->from], &search->growth->list->crystals[crystal])) {
        search->found = crystal;
        search->distance2 = distance2;
    }
}

static void step_on(struct front *front, const struct visit *from, int axis, int sign)
{
    struct lr_crystal_growth *growth = front->growth;
    const lr_crystal *crystals = growth->list->crystals;
    const double *step = from->steps[axis];
    const double *at = crystals[from->crystal].centre_mm;
    double target[3];
    vec_add_scaled(at, sign, step, target);
    struct search search = {growth, from->crystal, NULL, -1, INFINITY};
    const struct lr_point_visit visit = {nearest, &search};
    const double reach = fmin(front->share * vec_length(step), front->reach_mm);
    growth->seen += lr_point_hash_visit(&growth->hash, target, reach, &visit);
    if (search.found < 0) return;
    struct visit *to = &front->queue[front->tail++];
    *to = *from;
    to->crystal = search.found;
    for (int k = 0; k < 3; k++) {
        const double taken = sign * (crystals[search.found].centre_mm[k] - at[k]);
        to->steps[axis][k] = 0.5 * (step[k] + taken);
    }
    growth->panel[search.found] = growth->num_panels;
    growth->places[search.found][0] = growth->places[from->crystal][0] + (axis == 0 ? sign : 0);
    growth->places[search.found][1] = growth->places[from->crystal][1] + (axis == 1 ? sign : 0);
}

static void grow_panel(struct front *front, int seed)
{
    struct lr_crystal_growth *growth = front->growth;
    struct visit first = {.crystal = seed};
    find_step(growth, seed, NULL, first.steps[0]);
    if (is_known(first.steps[0])) find_step(growth, seed, first.steps[0], first.steps[1]);
    growth->panel[seed] = growth->num_panels;
    growth->places[seed][0] = growth->places[seed][1] = 0;
    front->head = 0;
    front->tail = 1;
    front->queue[0] = first;
    while (front->head < front->tail && !is_lost(growth)) {
        const struct visit from = front->queue[front->head++];
        for (int axis = 0; axis < 2; axis++) {
            if (is_known(from.steps[axis])) {
                step_on(front, &from, axis, 1);
                step_on(front, &from, axis, -1);
            }
        }
    }
    growth->num_panels++;
}

lr_status lr_crystals_grow(struct lr_crystal_growth *growth, double share, double reach_mm)
{
    const lr_crystal_list *list = growth->list;
    struct front front = {growth, NULL, 0, 0, share, reach_mm};
    front.queue = lr_alloc(list->num_crystals, sizeof(*front.queue), "crystals", list->log);
    if (front.queue == NULL) return LR_FAILED;
    const int before = growth->num_panels;
    int64_t shares[2] = {0, 0};
    bool too_many = false;
    for (int c = 0; c < list->num_crystals; c++) shares[1] += growth->panel[c] < 0;
    for (int c = 0; c < list->num_crystals && !too_many && !is_lost(growth); c++) {
        if (growth->panel[c] < 0) {
            grow_panel(&front, c);
            shares[0] += front.tail;
            shares[1] -= front.tail;
            /* More panels than there may be modules, or on the way there: by far more, if crystals go on as they
             * begin. shares: crystals that have been taken by so many new panels, and those that are left. */
            const int new_panels = growth->num_panels - before;
            const double expected = new_panels * (1 + (double)shares[1] / (double)shares[0]);
            too_many = growth->num_panels > LR_MAX_CRYSTAL_MODULES ||
                       (new_panels > LR_MAX_CRYSTAL_MODULES / 16 && expected > 4.0 * LR_MAX_CRYSTAL_MODULES);
        }
    }
    free(front.queue);
    if (is_lost(growth)) return refuse_heap(growth);
    if (too_many) {
        return lr_error(list->log, LR_BAD_INPUT,
                        "%s: the crystals do not stand in regular panels: they would make more "
                        "than %d modules",
                        list->name ? list->name : "crystal list", LR_MAX_CRYSTAL_MODULES);
    }
    return LR_OK;
}

/* --- preparation --- */

static int compare_doubles(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

double lr_crystals_spacing_mm(const lr_crystal_list *list)
{
    double nearest2[NUM_SAMPLES];
    const int count = list->num_crystals < NUM_SAMPLES ? list->num_crystals : NUM_SAMPLES;
    double samples_mm[NUM_SAMPLES][3];
    for (int k = 0; k < count; k++) {
        const int from = (int)((int64_t)k * list->num_crystals / count);
        memcpy(samples_mm[k], list->crystals[from].centre_mm, sizeof(samples_mm[k]));
        nearest2[k] = INFINITY;
    }
    for (int c = 0; c < list->num_crystals; c++) {
        for (int k = 0; k < count; k++) {
            double way[3];
            vec_sub(list->crystals[c].centre_mm, samples_mm[k], way);
            const double distance2 = vec_dot(way, way);
            if (distance2 < nearest2[k] && distance2 > 0) nearest2[k] = distance2;
        }
    }
    qsort(nearest2, (size_t)count, sizeof(nearest2[0]), compare_doubles);
    return isfinite(nearest2[count / 2]) ? sqrt(nearest2[count / 2]) : 1.0;
}

struct twin {
    int crystal, found;
};

static void find_twin(void *user, int crystal, double distance2)
{
    struct twin *twin = user;
    (void)distance2;
    if (crystal != twin->crystal) twin->found = crystal;
}

static lr_status prepare(struct lr_crystal_growth *growth)
{
    const lr_crystal_list *list = growth->list;
    const double cell_mm = LR_CELLS_PER_SPACING * lr_crystals_spacing_mm(list);
    const struct lr_points points = {list->crystals->centre_mm, sizeof(*list->crystals), list->num_crystals};
    LR_TRY(lr_point_hash_init(&growth->hash, &points, cell_mm, list->log));
    LR_TRY(lr_point_hash_init(&growth->far, &points, LR_FAR_CELLS * growth->hash.cell_mm, list->log));
    for (int c = 0; c < list->num_crystals; c++) {
        struct twin twin = {c, -1};
        const struct lr_point_visit visit = {find_twin, &twin};
        growth->seen += lr_point_hash_visit(&growth->hash, list->crystals[c].centre_mm, 1e-6, &visit);
        if (is_lost(growth)) return refuse_heap(growth);
        if (twin.found >= 0) {
            return lr_error(list->log, LR_BAD_INPUT,
                            "%s: crystals %d and %d have the same centre (%.6g, %.6g, %.6g) mm: "
                            "list each crystal once",
                            list->name ? list->name : "crystal list", c < twin.found ? c : twin.found,
                            c < twin.found ? twin.found : c, list->crystals[c].centre_mm[0],
                            list->crystals[c].centre_mm[1], list->crystals[c].centre_mm[2]);
        }
    }

    growth->panel = lr_alloc(list->num_crystals, sizeof(*growth->panel), "crystals", list->log);
    growth->places = lr_alloc(list->num_crystals, sizeof(*growth->places), "crystals", list->log);
    growth->block = lr_alloc(list->num_crystals, sizeof(*growth->block), "crystals", list->log);
    if (growth->panel == NULL || growth->places == NULL || growth->block == NULL) return LR_FAILED;
    for (int c = 0; c < list->num_crystals; c++) growth->panel[c] = -1;
    return LR_OK;
}

lr_status lr_crystal_growth_init(struct lr_crystal_growth *growth, const lr_crystal_list *list)
{
    *growth = (struct lr_crystal_growth){.list = list};
    const char *title = list->name ? list->name : "crystal list";
    if (list->num_crystals < 2)
        return lr_error(list->log, LR_BAD_INPUT, "%s: %d crystals: a coincidence needs two", title, list->num_crystals);
    for (int c = 0; c < list->num_crystals; c++) {
        for (int k = 0; k < 3; k++) {
            const double x = list->crystals[c].centre_mm[k];
            if (!isfinite(x) || fabs(x) > largest_mm) {
                return lr_error(list->log, LR_BAD_INPUT,
                                "%s: the centre of crystal %d has the coordinate %.6g mm: it must "
                                "lie within 1 km of the origin",
                                title, c, x);
            }
        }
    }

    const lr_status status = prepare(growth);
    if (status != LR_OK) lr_crystal_growth_finish(growth);
    return status;
}

void lr_crystal_growth_finish(struct lr_crystal_growth *growth)
{
    lr_point_hash_finish(&growth->hash);
    lr_point_hash_finish(&growth->far);
    free(growth->panel);
    free(growth->places);
    free(growth->block);
    growth->panel = growth->block = NULL;
    growth->places = NULL;
}

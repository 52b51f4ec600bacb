/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * One panel's grid of places, plane and axes. */
#include "base/mem.h"
#include "base/vec.h"
#include "model/scanner/crystal_fit.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Of the room there is, so that places off by rounding make no crystals overlap. */
static const double spared_share = 0.995;

/* --- the grid of places --- */

static void count_lines(struct lr_crystal_fit *fit)
{
    const struct lr_crystal_panel *panel = fit->panel;
    int low[2] = {INT_MAX, INT_MAX}, high[2] = {INT_MIN, INT_MIN};
    for (int m = 0; m < panel->count; m++) {
        for (int k = 0; k < 2; k++) {
            const int at = fit->places[panel->members[m]][k];
            low[k] = at < low[k] ? at : low[k];
            high[k] = at > high[k] ? at : high[k];
        }
    }
    for (int k = 0; k < 2; k++) {
        fit->n[k] = high[k] - low[k] + 1;
        for (int m = 0; m < panel->count; m++) fit->places[panel->members[m]][k] -= low[k];
    }
}

static bool is_full(const struct lr_crystal_fit *fit)
{
    const struct lr_crystal_panel *panel = fit->panel;
    if ((int64_t)fit->n[0] * fit->n[1] != panel->count) return false;
    char *taken = lr_alloc(panel->count, 1, "a panel", panel->growth->list->log);
    bool full = taken != NULL;
    for (int m = 0; m < panel->count && full; m++) {
        const int *place = fit->places[panel->members[m]];
        char *here = &taken[place[1] * fit->n[0] + place[0]];
        full = *here == 0;
        *here = 1;
    }
    free(taken);
    return full;
}

/* --- room for lone lines --- */

/* The nearest crystal of another panel along an axis. */
struct neighbour {
    const struct lr_crystal_fit *fit;
    int from, axis;
    double distance_mm; /* without what they differ by along the other axis */
};

static void take_neighbour(void *user, int crystal, double distance2)
{
    struct neighbour *next = user;
    const int *panel = next->fit->panel->growth->panel;
    double way[3], along[3];
    (void)distance2;
    if (panel[crystal] == panel[next->from]) return;
    vec_sub(next->fit->crystals[crystal].centre_mm, next->fit->crystals[next->from].centre_mm, way);
    for (int k = 0; k < 3; k++) along[k] = fabs(vec_dot(way, next->fit->axes[k]));
    const double distance = hypot(along[next->axis], along[2]);
    if (along[next->axis] > along[2] && along[next->axis] > along[1 - next->axis] && distance < next->distance_mm)
        next->distance_mm = distance;
}

double lr_crystal_fit_room(const struct lr_crystal_fit *fit, int axis)
{
    const lr_crystal_list *list = fit->panel->growth->list;
    const struct lr_point_hash *hash = &fit->panel->growth->hash;
    struct neighbour next = {fit, fit->panel->members[0], axis, INFINITY};
    const struct lr_point_visit visit = {take_neighbour, &next};
    const double *at = fit->crystals[next.from].centre_mm;
    for (double reach = hash->cell_mm; reach <= 8.5 * hash->cell_mm && isinf(next.distance_mm); reach *= 2)
        lr_point_hash_visit(hash, at, reach, &visit);
    if (isinf(next.distance_mm)) return hash->cell_mm / LR_CELLS_PER_SPACING;
    /* Crystals around the axis have the least room at their fronts. */
    const double radius = vec_dot(fit->mean, fit->axes[2]);
    const double front = radius - 0.5 * (fit->size_mm[2] > 0 ? fit->size_mm[2] : list->depth_mm);
    const double sine = radius > 0 ? 0.5 * next.distance_mm / radius : 1;
    const bool is_around = axis == 0 && front > 0 && sine < 1;
    const double room = is_around ? 2 * front * tan(asin(sine)) : next.distance_mm;
    return lr_shortest_decimal(spared_share * room, (1 - spared_share) * 0.8 * room);
}

/* --- axes --- */

static bool normalise(double a[3])
{
    const double length = vec_length(a);
    for (int k = 0; k < 3 && length > 0; k++) a[k] /= length;
    return length > 0;
}

/* Takes the part along the unit vector b out of a. */
static bool straighten(double a[3], const double b[3])
{
    vec_add_scaled(a, -vec_dot(a, b), b, a);
    return vec_length(a) > 1e-3 && normalise(a);
}

/* Regression of the centres on the places: along a full grid the other direction falls out, and
 * wider gaps do not turn it. */
static void regress(const struct lr_crystal_fit *fit, int axis, double slope[3])
{
    slope[0] = slope[1] = slope[2] = 0;
    for (int m = 0; m < fit->panel->count; m++) {
        const int c = fit->panel->members[m];
        double way[3];
        vec_sub(fit->crystals[c].centre_mm, fit->mean, way);
        vec_add_scaled(slope, fit->places[c][axis] - 0.5 * (fit->n[axis] - 1), way, slope);
    }
    normalise(slope);
}

static void average(struct lr_crystal_fit *fit)
{
    for (int m = 0; m < fit->panel->count; m++)
        vec_add_scaled(fit->mean, 1.0 / fit->panel->count, fit->crystals[fit->panel->members[m]].centre_mm, fit->mean);
}

static void radial(const struct lr_crystal_fit *fit, double direction[3])
{
    const double *at = fit->mean;
    const bool on_axis = hypot(at[0], at[1]) < 1e-6 * (1 + fabs(at[2]));
    direction[0] = on_axis ? 0 : at[0];
    direction[1] = on_axis ? 0 : at[1];
    direction[2] = on_axis ? 1 : 0;
    normalise(direction);
}

/* The direction in which a narrow panel looks: as its crystals say, else towards the axis. */
static void find_normal(const struct lr_crystal_fit *fit, double normal[3])
{
    const lr_crystal *first = &fit->crystals[fit->panel->members[0]];
    memcpy(normal, first->axes[2], sizeof(first->axes[2]));
    if (!normalise(normal)) {
        vec_cross(first->axes[0], first->axes[1], normal);
        if (!normalise(normal)) radial(fit, normal);
    }
}

/* An axis of a single crystal: as it says, else along z, else along y. */
static void find_axis(const struct lr_crystal_fit *fit, const double normal[3], double axis[3])
{
    static const double z[3] = {0, 0, 1}, y[3] = {0, 1, 0};
    const lr_crystal *first = &fit->crystals[fit->panel->members[0]];
    const double *const choices[] = {first->axes[1], z, y};
    for (int k = 0; k < 3; k++) {
        memcpy(axis, choices[k], sizeof(z));
        if (normalise(axis) && straighten(axis, normal)) return;
    }
}

/* Two orthogonal directions of the plane along the grid's two. */
static bool find_directions(const struct lr_crystal_fit *fit, double a[3], double b[3])
{
    double normal[3];
    regress(fit, 0, a);
    regress(fit, 1, b);
    if (fit->n[0] > 1 && fit->n[1] > 1) {
        /* Half of what is off a right angle goes to each. */
        const double off = vec_dot(a, b);
        double kept[3];
        memcpy(kept, a, sizeof(kept));
        vec_add_scaled(a, -0.5 * off, b, a);
        vec_add_scaled(b, -0.5 * off, kept, b);
        normalise(a);
        return straighten(b, a);
    }
    find_normal(fit, normal);
    if (fit->n[0] == 1 && fit->n[1] == 1) {
        find_axis(fit, normal, b);
        vec_cross(b, normal, a);
        return normalise(a);
    }
    double *along = fit->n[0] > 1 ? a : b, *across = fit->n[0] > 1 ? b : a;
    if (!straighten(normal, along)) {
        radial(fit, normal);
        if (!straighten(normal, along)) return false;
    }
    vec_cross(along, normal, across);
    return normalise(across);
}

/* --- orientation --- */

static void flip_places(struct lr_crystal_fit *fit, int axis)
{
    for (int m = 0; m < fit->panel->count; m++) {
        int *place = &fit->places[fit->panel->members[m]][axis];
        *place = fit->n[axis] - 1 - *place;
    }
}

static void swap_places(struct lr_crystal_fit *fit)
{
    for (int m = 0; m < fit->panel->count; m++) {
        int *place = fit->places[fit->panel->members[m]];
        const int kept = place[0];
        place[0] = place[1];
        place[1] = kept;
    }
    const int kept = fit->n[0];
    fit->n[0] = fit->n[1];
    fit->n[1] = kept;
}

static bool points_down(const double v[3])
{
    return fabs(v[2]) > 1e-9 ? v[2] < 0 : fabs(v[1]) > 1e-9 ? v[1] < 0 : v[0] < 0;
}

/* v is the direction nearer to z, upwards, and u = v x outward as in a ring. */
static void orient(struct lr_crystal_fit *fit, const double a[3], const double b[3])
{
    double *u = fit->axes[0], *v = fit->axes[1], *outward = fit->axes[2], away[3];
    const bool swap = fabs(a[2]) > fabs(b[2]) + 1e-9;
    memcpy(u, swap ? b : a, sizeof(fit->axes[0]));
    memcpy(v, swap ? a : b, sizeof(fit->axes[1]));
    if (swap) swap_places(fit);
    if (points_down(v)) {
        for (int k = 0; k < 3; k++) v[k] = -v[k];
        flip_places(fit, 1);
    }
    radial(fit, away);
    vec_cross(u, v, outward);
    const double along = vec_dot(outward, away);
    if ((fabs(along) > 1e-9 ? along : vec_dot(outward, fit->mean)) < 0) {
        for (int k = 0; k < 3; k++) {
            u[k] = -u[k];
            outward[k] = -outward[k];
        }
        flip_places(fit, 0);
    }
}

bool lr_crystal_fit_places(struct lr_crystal_fit *fit)
{
    count_lines(fit);
    return is_full(fit);
}

bool lr_crystal_fit_axes(struct lr_crystal_fit *fit)
{
    double a[3], b[3];
    average(fit);
    if (!find_directions(fit, a, b)) return false;
    orient(fit, a, b);
    return true;
}

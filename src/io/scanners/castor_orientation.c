/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/scanners/castor_orientation.h"

#include "base/log.h"
#include "base/vec.h"

#include <string.h>

enum { NUM_SAMPLES = 128 };

/* Ways to read an orientation. */
enum way { AS_WRITTEN, MIRRORED, ALONG, ALONG_MIRRORED, NUM_WAYS };

/* Another way is taken where what is written is off by more than this (cosine), and by so many times
 * as much as that way. */
static const double good_cosine = 0.02, better = 2;

static void read_as(enum way way, const double written[3], double axis[3])
{
    const double x = way == MIRRORED || way == ALONG_MIRRORED ? -written[0] : written[0];
    const bool turns = way == ALONG || way == ALONG_MIRRORED;
    axis[0] = turns ? -written[1] : x;
    axis[1] = turns ? x : written[1];
    axis[2] = written[2];
}

/* The way from a crystal to the nearest one beside it in its layer; false where it has none. */
static bool find_neighbour(const lr_crystal *crystals, int count, int from, double nearest[3])
{
    double least = INFINITY;
    for (int c = 0; c < count; c++) {
        double way[3];
        vec_sub(crystals[c].centre_mm, crystals[from].centre_mm, way);
        const double across2 = way[0] * way[0] + way[1] * way[1];
        if (c != from && crystals[c].group == crystals[from].group && across2 < least &&
            way[2] * way[2] < 0.25 * across2) {
            least = across2;
            memcpy(nearest, way, sizeof(way));
        }
    }
    return isfinite(least) && least > 0;
}

static void measure(const lr_crystal *crystals, int count, double off[NUM_WAYS])
{
    const int samples = count < NUM_SAMPLES ? count : NUM_SAMPLES;
    int counted = 0;
    memset(off, 0, NUM_WAYS * sizeof(*off));
    for (int k = 0; k < samples; k++) {
        const int from = (int)((int64_t)k * count / samples);
        double nearest[3] = {0}, axis[3];
        if (!find_neighbour(crystals, count, from, nearest)) continue;
        counted++;
        for (int way = 0; way < NUM_WAYS; way++) {
            read_as((enum way)way, crystals[from].axes[2], axis);
            off[way] += fabs(vec_dot(axis, nearest)) / vec_length(nearest);
        }
    }
    for (int way = 0; way < NUM_WAYS && counted > 0; way++) off[way] /= counted;
}

static enum way choose(const double off[NUM_WAYS])
{
    enum way best = AS_WRITTEN;
    for (int way = 1; way < NUM_WAYS; way++) best = off[way] < off[best] ? (enum way)way : best;
    return off[AS_WRITTEN] > good_cosine && better * off[best] < off[AS_WRITTEN] ? best : AS_WRITTEN;
}

double lr_castor_orient(lr_crystal *crystals, int count, const char *path, const lr_log *log)
{
    static const char *const words[NUM_WAYS] = {"", "mirrored", "along the panels, not across them",
                                                "along the panels, and mirrored"};
    double off[NUM_WAYS];
    measure(crystals, count, off);
    const enum way way = choose(off);
    if (way == AS_WRITTEN) return off[AS_WRITTEN];
    lr_warn(log,
            "%s: the orientations contradict the positions: they are %s (seen from the crystals' "
            "neighbours); they are read as such, and the positions taken as they stand",
            path, words[way]);
    for (int c = 0; c < count; c++) {
        double axis[3];
        read_as(way, crystals[c].axes[2], axis);
        memcpy(crystals[c].axes[2], axis, sizeof(axis));
    }
    return off[way];
}

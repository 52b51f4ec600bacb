/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What the types of modules of a PETSIRD file have in common, and what differs between them. */
#include "base/log.h"
#include "base/mem.h"
#include "io/events/petsird.h"
#include "io/files/light.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Bins are the same where their edges are, to what single precision keeps of mirrored ones. */
static const double equal_mm = 5e-5;

/* --- one pair of types --- */

/* Edge k of the bins of events in the order of the types. */
static double edge_mm(const struct lr_petsird_pair *pair, double sign, int k)
{
    return sign > 0 ? pair->edges_mm[k] : -(double)pair->edges_mm[pair->num_edges - 1 - k];
}

static bool same_bins(const struct lr_petsird *petsird, const int types[2])
{
    static const int first[2] = {0, 0};
    double signs[2];
    const struct lr_petsird_pair *one = lr_petsird_tof(petsird, first, &signs[0]);
    const struct lr_petsird_pair *other = lr_petsird_tof(petsird, types, &signs[1]);
    bool same = one->num_edges == other->num_edges;
    for (int k = 0; same && k < one->num_edges; k++)
        same = fabs(edge_mm(one, signs[0], k) - edge_mm(other, signs[1], k)) < equal_mm;
    return same;
}

static bool has_tof(const struct lr_petsird *petsird, const int types[2])
{
    double sign;
    return lr_petsird_tof(petsird, types, &sign)->num_edges > 2;
}

/* --- all pairs --- */

struct agreement {
    bool any_tof, tof, energies;
    double resolution_mm[2]; /* smallest and largest of pairs that have time of flight */
};

static struct agreement compare(const struct lr_petsird *petsird)
{
    struct agreement found = {false, true, true, {INFINITY, 0}};
    const int n = petsird->num_types;
    for (int k = 0; k < n * n; k++) {
        const int types[2] = {k / n, k % n};
        const double mm = lr_petsird_resolution_mm(petsird, types);
        found.tof = found.tof && same_bins(petsird, types);
        if (has_tof(petsird, types)) {
            found.any_tof = true;
            found.resolution_mm[0] = fmin(found.resolution_mm[0], mm);
            found.resolution_mm[1] = fmax(found.resolution_mm[1], mm);
        }
    }
    for (int k = 0; k < n; k++) {
        found.energies = found.energies && memcmp(petsird->types[0].energy_kev, petsird->types[k].energy_kev,
                                                  sizeof(petsird->types[k].energy_kev)) == 0;
    }
    return found;
}

static bool differs(const struct agreement *found)
{
    return found->any_tof && found->resolution_mm[0] != found->resolution_mm[1];
}

double lr_petsird_common_resolution_ps(const struct lr_petsird *petsird, double differ_ps[2])
{
    const struct agreement found = compare(petsird);
    for (int k = 0; differ_ps != NULL && k < 2; k++)
        differ_ps[k] = differs(&found) ? found.resolution_mm[k] / LR_MM_PER_PS : 0;
    return found.any_tof && !differs(&found) ? found.resolution_mm[0] / LR_MM_PER_PS : 0;
}

bool lr_petsird_has_kinds(const struct lr_petsird *petsird)
{
    const struct agreement found = compare(petsird);
    return !found.tof || !found.energies || differs(&found);
}

/* --- filling in --- */

static lr_status copy_edges(const struct lr_petsird *petsird, const int types[2], float **edges_mm, int *num_bins)
{
    double sign;
    const struct lr_petsird_pair *pair = lr_petsird_tof(petsird, types, &sign);
    if (pair->num_edges == 0) return LR_OK;
    *edges_mm = lr_alloc(pair->num_edges, sizeof(**edges_mm), "edges", petsird->log);
    if (*edges_mm == NULL) return LR_FAILED;
    *num_bins = pair->num_edges - 1;
    for (int k = 0; k < pair->num_edges; k++) (*edges_mm)[k] = (float)edge_mm(pair, sign, k);
    return LR_OK;
}

lr_status lr_petsird_fill_info(const struct lr_petsird *petsird, lr_events_info *info)
{
    static const int first[2] = {0, 0};
    const struct agreement found = compare(petsird);
    info->has_tof = found.any_tof;
    info->tof_resolution_ps = lr_petsird_common_resolution_ps(petsird, NULL);
    if (found.energies) memcpy(info->energy_kev, petsird->types[0].energy_kev, sizeof(info->energy_kev));
    return found.tof && found.any_tof ? copy_edges(petsird, first, &info->tof_edges_mm, &info->num_tof_bins) : LR_OK;
}

static void number_kinds(const struct lr_petsird *petsird, const int32_t *numbers, lr_event_kinds *kinds)
{
    memset(kinds->kind_of, LR_EVENTS_NO_KIND, (size_t)kinds->num_crystals);
    for (int64_t c = 0; c < petsird->num_crystals; c++) {
        int64_t module;
        if (numbers[c] >= 0) kinds->kind_of[numbers[c]] = (unsigned char)lr_petsird_type_of(petsird, c, &module);
    }
}

lr_status lr_petsird_fill_kinds(const struct lr_petsird *petsird, const int32_t *numbers, int count,
                                lr_events_info *info)
{
    const int n = petsird->num_types;
    lr_event_kinds *kinds = &info->kinds;
    kinds->count = n;
    kinds->num_crystals = count;
    kinds->kind_of = lr_alloc(count, 1, "kinds of crystals", petsird->log);
    kinds->tof = lr_alloc((int64_t)n * n, sizeof(*kinds->tof), "bins", petsird->log);
    kinds->energy_kev = lr_alloc(n, sizeof(*kinds->energy_kev), "energies", petsird->log);
    if (kinds->kind_of == NULL || kinds->tof == NULL || kinds->energy_kev == NULL) return LR_FAILED;
    number_kinds(petsird, numbers, kinds);
    for (int k = 0; k < n; k++) memcpy(kinds->energy_kev[k], petsird->types[k].energy_kev, sizeof(*kinds->energy_kev));
    for (int k = 0; k < n * n; k++) {
        const int types[2] = {k / n, k % n};
        lr_tof_bins *bins = &kinds->tof[k];
        LR_TRY(copy_edges(petsird, types, &bins->edges_mm, &bins->num_bins));
        if (bins->num_bins > 1) bins->resolution_ps = lr_petsird_resolution_mm(petsird, types) / LR_MM_PER_PS;
    }
    return LR_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What other projectors reach with a million random lines and 75 x 75 x 26 voxels, beside ours; and what of
 * a device's rates ours use. */
#include "listmode.h"

#include <stdio.h>
#include <string.h>

#define PEERS_SOURCE "one NVIDIA H200, driver 580, 2026-11-20, by CUDA's events: design notes"

/* Forward, back and both with the update, without and with time of flight. */
static const struct peer {
    const char *name;
    double visits[2], ms[2][3];
} peers[] = {
    {"libparallelproj 2.0.8, Joseph", {252, 105}, {{0.715, 2.828, 3.55}, {0.414, 1.283, 1.71}}},
    {"parallelproj 1.10.2, Joseph", {252, 105}, {{0.807, 2.931, 3.75}, {1.035, 1.270, 2.31}}},
    {"YRT-PET, Siddon", {93, 40}, {{0.892, 1.048, 1.95}, {0.425, 0.467, 0.90}}},
    {"YRT-PET, distance-driven, 2 voxels", {573, 245}, {{4.83, 6.60, 11.4}, {2.35, 2.85, 5.21}}},
    {"OMEGA, orthogonal tube, 3 voxels", {485, 485}, {{5.27, 5.73, 11.0}, {8.63, 11.0, 19.7}}},
    {"OMEGA, Siddon", {94, 94}, {{0.426, 1.083, 1.52}, {2.62, 2.78, 5.41}}},
};

enum { NUM_PEERS = sizeof(peers) / sizeof(peers[0]) };

/* Whether an outcome is of the peers' image. */
static bool is_of_peers(const struct listmode_outcome *outcome)
{
    static const int size[3] = {75, 75, 26};
    return strcmp(outcome->way.what->table, "first") == 0 && memcmp(outcome->way.what->size, size, sizeof(size)) == 0;
}

static double ms_a_million(const struct listmode_outcome *outcome, double seconds)
{
    return 1e9 * seconds / (double)outcome->lines;
}

void listmode_print_peers(const struct listmode_bench *bench)
{
    bool has_heading = false;
    for (int k = 0; k < bench->num_outcomes; k++) {
        const struct listmode_outcome *outcome = &bench->outcomes[k];
        if (!is_of_peers(outcome)) continue;
        if (!has_heading) {
            printf("\nPeers (%s), and ours here; ms for a million lines.\n\n"
                   "| projector | TOF | voxels a line | forward | back | iteration |\n"
                   "|---|---|---|---|---|---|\n",
                   PEERS_SOURCE);
            for (int p = 0; p < 2 * NUM_PEERS; p++) {
                const double *ms = peers[p / 2].ms[p % 2];
                printf("| %s | %s | %.0f | %.3g | %.3g | %.3g |\n", peers[p / 2].name, p % 2 ? "yes" : "no",
                       peers[p / 2].visits[p % 2], ms[0], ms[1], ms[2]);
            }
            has_heading = true;
        }
        printf("| LORaster, %s, %s | %s | %.0f | %.3g | %.3g | %.3g |\n", listmode_kernels[outcome->way.kernel],
               outcome->backend, outcome->way.has_tof ? "yes" : "no", outcome->visits,
               ms_a_million(outcome, listmode_best(&outcome->forward)),
               ms_a_million(outcome, listmode_best(&outcome->back)), ms_a_million(outcome, outcome->iteration.wall));
    }
}

void listmode_json_peers(const struct listmode_bench *bench, struct json *json)
{
    (void)bench;
    json_open(json, "peers", '[');
    for (int p = 0; p < 2 * NUM_PEERS; p++) {
        const struct peer *peer = &peers[p / 2];
        json_open(json, NULL, '{');
        json_text(json, "name", peer->name);
        json_text(json, "source", PEERS_SOURCE);
        json_bool(json, "tof", p % 2 != 0);
        json_number(json, "visits_a_line", peer->visits[p % 2]);
        json_numbers(json, "forward_back_iteration_ms", peer->ms[p % 2], 3);
        json_close(json, '}');
    }
    json_close(json, ']');
}

int listmode_ceilings(const struct listmode_outcome *outcome, struct bench_ceiling ceilings[3])
{
    /* Each event's crystals, time and number, and its value, read forward and back, where it is written. */
    const double bytes = 2 * (16 + 4), lines = (double)outcome->lines;
    const double visits = lines * outcome->visits;
    return bench_visit_ceilings(outcome->device,
                                &(struct bench_visits){visits / listmode_best(&outcome->forward),
                                                       visits / listmode_best(&outcome->back),
                                                       lines * bytes / outcome->iteration.wall},
                                ceilings);
}

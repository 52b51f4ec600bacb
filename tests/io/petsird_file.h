/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Help for the tests of PETSIRD: the official file, and an asymmetric scanner with random events. */
#pragma once

#include "io/lists.h"
#include "io/scanners.h"

#define OFFICIAL "petsird/small_cpp_v0.9.1.petsird"

/* Bytes of the official file, or of a file of ours if the official one is absent, and the offset of its header.
 * files.lors are the LORs of the asymmetric scanner. */
static unsigned char *good;
static size_t good_count;
enum { FIRST = 11 + 10629 };

static inline const char *official(char path[1024], const char *name)
{
    test_log_init(&files.log);
    if (test_data(path, name) == NULL) skip();
    return path;
}

/* Four modules at positions without symmetry; one has other crystals than the rest. Photons are detected in the middle
 * of the others' crystals. */
static inline lr_scanner *lopsided(void)
{
#define LOPSIDED_PANEL "v: [0, 0, 1], crystals: [3, 5], pitch_mm: [2, 3], face_mm: [1.9, 2.7], depth_mm: 10}\n"
    const double c = cos(0.3), s = sin(0.3);
    return scanner_of("name: lopsided\ntof: {resolution_ps: 300}\ndetection_depth_mm: 5\nmodules:\n"
                      "- {center_mm: [60, 3, 5], u: [0, 1, 0], " LOPSIDED_PANEL
                      "- {center_mm: [-55, 1, -2], u: [0, 1, 0], " LOPSIDED_PANEL
                      "- {center_mm: [4, 70, 1], u: [%.17g, 0, %.17g], v: [%.17g, 0, %.17g], crystals: [4, 2], "
                      "pitch_mm: [2.5, 2.2], face_mm: [2.5, 2], depth_mm: 12}\n"
                      "- {center_mm: [-7, -66, 8], u: [1, 0, 0], " LOPSIDED_PANEL,
                      c, s, -s, c);
}

static const float even_edges[] = {-60, -31, -8, 8, 31, 60};

/* Random events between crystals of different modules, kept; times ascend, with repeats. */
static inline lr_event *random_events(const lr_scanner *scanner, int count, bool tof)
{
    uint64_t seed = test_seed();
    lr_event *events = kept(count, sizeof(*events));
    for (int k = 0; k < count; k++) {
        lr_event *event = &events[k];
        do {
            event->crystals[0] = (int32_t)(test_random(&seed) * scanner->num_crystals);
            event->crystals[1] = (int32_t)(test_random(&seed) * scanner->num_crystals);
        } while (lr_scanner_module_of(scanner, event->crystals[0]) ==
                 lr_scanner_module_of(scanner, event->crystals[1]));
        const int bin = (int)(test_random(&seed) * 5);
        event->tof_mm = tof ? (float)(0.5 * ((double)even_edges[bin] + even_edges[bin + 1])) : 0;
        event->time_ms = (uint32_t)(70000 + k / 7 * 3);
        event->is_delayed = test_random(&seed) < 0.3;
        event->weight = 1;
    }
    return events;
}

static inline int set_up(void **state)
{
    char path[1024];
    files_begin_with(state, lopsided());
    if (test_data(path, OFFICIAL) == NULL) {
        const lr_event *events = random_events(files.lors->scanner, 400, false);
        write_list(&(lr_events_writer_params){.path = FILE_NAME, .lors = files.lors}, events, 400);
        snprintf(path, sizeof(path), FILE_NAME);
    }
    good = bytes_read(path, &good_count);
    return 0;
}

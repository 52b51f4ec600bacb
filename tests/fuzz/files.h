/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What the fuzz targets of readers share: bytes become a file in a folder of their own, and a
 * reader gives a result or one sentence about bad input. Not part of CTest. */
#ifndef LR_FUZZ_FILES_H
#define LR_FUZZ_FILES_H

#include <lr/lr.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void fuzz_note(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    (void)sentence;
    if (level == LR_LOG_ERROR) *(lr_status *)user = status;
}

/* Writes the bytes to NAME in this process's folder; path: 64 characters. */
static inline void fuzz_write(char path[64], const char *name, const uint8_t *bytes, size_t count)
{
    static char folder[] = "/tmp/lr_fuzz_XXXXXX";
    static int made = 0;
    if (!made && mkdtemp(folder) == NULL) abort();
    made = 1;
    snprintf(path, 64, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes, 1, count, file) != count) abort();
    fclose(file);
}

/* LORs of the scanner whose files tools/fuzz.sh takes as seeds. They stay. */
static inline const lr_lors *fuzz_lors(void)
{
    static lr_lors *lors;
    static lr_scanner *scanner;
    if (lors == NULL) {
        scanner = lr_scanner_read("two-opposed-modules", NULL);
        lors = scanner != NULL ? lr_lors_create(scanner, NULL) : NULL;
        if (lors == NULL) abort();
    }
    return lors;
}

/* Eight modules of 3 x 4 crystals, as good headers of Siemens have it with a virtual crystal a module. */
static inline lr_scanner *fuzz_octagon(void)
{
    const int crystals[2] = {3, 4};
    const lr_ring ring = {.radius_mm = 60,
                          .modules = 8,
                          .block_crystals = {&crystals[0], &crystals[1]},
                          .pitch_mm = {4, 5},
                          .face_mm = {4, 5},
                          .depth_mm = 10};
    const lr_scanner_params params = {.name = "octagon", .coincidence = {.min_module_difference = 3}};
    return lr_scanner_create_ring(&params, &ring);
}

/* What a reader said goes with what it gave: a result, or one sentence about bad input. */
static inline void fuzz_expect(bool has_result, lr_status status)
{
    if (has_result ? status != LR_OK : status != LR_BAD_INPUT) abort();
}

/* An image or a sentence. The bytes are both header and, where the header names "data", voxels. */
static inline int fuzz_image(const char *name, const uint8_t *bytes, size_t count)
{
    char path[64];
    lr_status status = LR_OK;
    const lr_log log = {fuzz_note, &status};
    const lr_grid grid = {{3, 2, 1}, {1, 1, 1}, {0, 0, 0}};
    fuzz_write(path, "data", bytes, count);
    fuzz_write(path, name, bytes, count);
    lr_image *image = lr_image_read_on(path, &grid, &log);
    if (image == NULL && status != LR_BAD_INPUT) abort();
    lr_image_destroy(image);
    return 0;
}

#endif

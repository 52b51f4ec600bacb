/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What the fuzz targets of readers share: bytes become a file in a folder of their own, and a
 * reader gives a result or one sentence about bad input. Not part of CTest. */
#ifndef LR_FUZZ_FILES_H
#define LR_FUZZ_FILES_H

#include "io/files/yaml.h"
#include "io/scanners/scanner_formats.h"

#include <lr/lr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

/* The status of the last error since a file was written. */
static lr_status fuzz_status;

static inline void fuzz_note(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    (void)sentence;
    if (level == LR_LOG_ERROR) *(lr_status *)user = status;
}

static const lr_log fuzz_log = {fuzz_note, &fuzz_status};

/* Writes the bytes to NAME in this process's folder; its path stands until the next but one is written. */
static inline const char *fuzz_file(const char *name, const void *bytes, size_t count)
{
    static char folder[] = "/tmp/lr_fuzz_XXXXXX", paths[2][64];
    static int made = 0, turn = 0;
    if (!made && mkdtemp(folder) == NULL) abort();
    made = 1;
    turn = !turn;
    snprintf(paths[turn], sizeof(paths[0]), "%s/%s", folder, name);
    FILE *file = fopen(paths[turn], "wb");
    if (file == NULL || fwrite(bytes, 1, count, file) != count || fclose(file) != 0) abort();
    fuzz_status = LR_OK;
    return paths[turn];
}

/* LORs of the scanner whose files tools/fuzz.sh takes as seeds. They stay. */
static inline const lr_lors *fuzz_lors(void)
{
    static lr_lors *lors;
    if (lors == NULL) {
        lr_scanner *scanner = lr_scanner_read("two-opposed-modules", NULL);
        lors = scanner != NULL ? lr_lors_create(scanner, NULL) : NULL;
        if (lors == NULL) abort();
    }
    return lors;
}

/* A scanner as YAML, which stays. */
static inline lr_scanner *fuzz_ring(const char *yaml)
{
    static lr_scanner *scanner;
    if (scanner == NULL) scanner = lr_scanner_parse(lr_yaml_parse("ring", yaml, (int64_t)strlen(yaml), NULL));
    if (scanner == NULL) abort();
    return scanner;
}

/* Eight modules of 3 x 4 crystals, as good headers of Siemens have it with a virtual crystal a module. */
#define FUZZ_OCTAGON                                                                                                   \
    "name: octagon\nring: {radius_mm: 60, modules: 8}\nmodule: {crystals: [3, 4], pitch_mm: [4, 5], face_mm: [4, 5], " \
    "depth_mm: 10}\ncoincidence: {min_module_difference: 3}\n"

/* What a reader said goes with what it gave: a result, or one sentence about bad input. */
static inline void fuzz_expect(bool has_result)
{
    if (has_result ? fuzz_status != LR_OK : fuzz_status != LR_BAD_INPUT) abort();
}

/* An image or a sentence. The bytes are both header and, where the header names "data", voxels. */
static inline int fuzz_image(const char *name, const uint8_t *bytes, size_t count)
{
    const lr_grid grid = {{3, 2, 1}, {1, 1, 1}, {0, 0, 0}};
    fuzz_file("data", bytes, count);
    lr_image *image = lr_image_read_on(fuzz_file(name, bytes, count), &grid, &fuzz_log);
    if (image == NULL && fuzz_status != LR_BAD_INPUT) abort();
    lr_image_destroy(image);
    return 0;
}

/* Destroys it. */
static inline int fuzz_scanner(lr_scanner *scanner)
{
    fuzz_expect(scanner != NULL);
    lr_scanner_destroy(scanner);
    return 0;
}

static inline lr_status fuzz_drop(void *user, const lr_event *events, int64_t count)
{
    (void)events;
    *(int64_t *)user += count;
    return LR_OK;
}

/* Events or a sentence. */
static inline int fuzz_events(lr_events_source source)
{
    int64_t events = 0;
    const lr_event_sink sink = {.take = fuzz_drop, .user = &events};
    source.log = &fuzz_log;
    const lr_status read = lr_events_read(&source, &sink, NULL);
    if (read != fuzz_status || (read != LR_OK && read != LR_BAD_INPUT)) abort();
    return 0;
}

static inline lr_status fuzz_take_row(void *user, const lr_row *row)
{
    *(double *)user += row->count > 0 ? row->probability[row->count - 1] : 0.0;
    return LR_OK;
}

#endif

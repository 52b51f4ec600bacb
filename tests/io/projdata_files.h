/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What the tests of STIR's projection data share: rings, counts, a header. */
#ifndef LR_TEST_IO_PROJDATA_FILES_H
#define LR_TEST_IO_PROJDATA_FILES_H

#include "io/files.h"
#include "io/lor_data/projdata.h"

static const double pi = 3.14159265358979323846;

/* `modules` x 4 crystals without gaps around, four rings. */
static inline lr_scanner *even_ring(int modules, double first_angle_deg)
{
    const int crystals = 4;
    const lr_ring ring = {.radius_mm = 4 * 4.0 * modules / (2 * pi),
                          .modules = modules,
                          .first_angle_deg = first_angle_deg,
                          .block_crystals = {&crystals, &crystals},
                          .pitch_mm = {4, 5},
                          .face_mm = {3.8, 4.8},
                          .depth_mm = 10};
    const lr_scanner_params params = {.name = "even ring", .coincidence = {.min_module_difference = 2}};
    lr_scanner *scanner = lr_scanner_create_ring(&params, &ring);
    assert_non_null(scanner);
    return scanner;
}

static inline lr_lors *lors_of(const lr_scanner *scanner)
{
    lr_lors *lors = lr_lors_create(scanner, NULL);
    assert_non_null(lors);
    return lors;
}

/* The crystals of a LOR. */
static inline void crystals_of(const lr_lors *lors, int64_t number, int32_t crystals[2])
{
    const lr_scanner *scanner = lors->scanner;
    const lr_lor lor = lr_lors_describe(lors, number);
    crystals[0] = scanner->first_crystal[lor.module_i] + lor.p + lor.q * scanner->modules[lor.module_i].crystals[0];
    crystals[1] = scanner->first_crystal[lor.module_j] + lor.r + lor.s * scanner->modules[lor.module_j].crystals[0];
}

/* A LOR that has a bin; a LOR of one place in two rings has none. */
static inline bool has_bin(const lr_lors *lors, const struct lr_projdata *projdata, const int32_t (*places)[2],
                           int64_t lor)
{
    int32_t crystals[2];
    struct lr_projdata_bin bin;
    crystals_of(lors, lor, crystals);
    return lr_projdata_bin_of(projdata, places, crystals, &bin);
}

/* Counts that tell every LOR from the others, on LORs in coincidence that have a bin. */
static inline lr_lor_data *numbered(const lr_lors *lors)
{
    struct lr_projdata projdata;
    assert_int_equal(lr_projdata_create(&projdata, lors, NULL), LR_OK);
    int32_t(*places)[2] = lr_projdata_places(&projdata, lors->scanner, NULL);
    lr_lor_data *data = lr_lor_data_create(lors, NULL);
    assert_true(places != NULL && data != NULL);
    for (int64_t n = 0; n < lors->count; n++) {
        if (lr_lors_in_coincidence(lors, n)) {
            assert_true(has_bin(lors, &projdata, (const int32_t(*)[2])places, n));
            data->values[n] = (float)(n + 1);
        }
    }
    free(places);
    lr_projdata_finish(&projdata);
    return data;
}

static inline lr_lor_data *read_good(const char *path, const lr_lors *lors, int num_warnings)
{
    struct test_log log;
    test_log_init(&log);
    lr_lor_data *data = lr_lor_data_read(path, lors, &log.log);
    if (data == NULL) fail_msg("%s: %s", path, log.error);
    if (log.num_warnings != num_warnings)
        fail_msg("%s: %d warnings, the last: %s", path, log.num_warnings, log.warning);
    return data;
}

static inline void assert_same_counts(const lr_lors *lors, const lr_lor_data *a, const lr_lor_data *b)
{
    lr_lor_data *x = lr_lor_data_expand(a, lors, NULL), *y = lr_lor_data_expand(b, lors, NULL);
    assert_memory_equal(x->values, y->values, (size_t)lors->count * sizeof(float));
    lr_lor_data_destroy(x);
    lr_lor_data_destroy(y);
}

/* Header of a ring of 16 x 4 crystals and 4 rings that stands at 90 degrees. */
static inline void write_header(const char *path, const char *bins, const char *more)
{
    char text[4096];
    snprintf(text, sizeof(text),
             "!INTERFILE :=\nname of data file := bins.s\nimagedata byte order := LITTLEENDIAN\n"
             "applied corrections := {None}\n!number format := float\n"
             "!number of bytes per pixel := 4\nnumber of dimensions := 4\n"
             "matrix axis label [4] := segment\nmatrix axis label [1] := tangential coordinate\n"
             "%sNumber of rings := 4\nNumber of detectors per ring := 64\n%s"
             "!END OF INTERFILE :=\n",
             bins, more);
    bytes_write(path, text, strlen(text));
}

#define BY_VIEW                                                                                                        \
    "matrix axis label [3] := view\nmatrix axis label [2] := axial coordinate\n"                                       \
    "!matrix size [4] := 3\n!matrix size [3] := 16\n!matrix size [2] := {3,7,3}\n"                                     \
    "!matrix size [1] := 40\nminimum ring difference per segment := {-3, -1, 2}\n"                                     \
    "maximum ring difference per segment := {-2, 1, 3}\n"

enum { span_bins = 16 * 13 * 40 };

/* A scanner whose first crystal stands at 90 degrees: modules begin at their first crystals. */
static inline lr_scanner *top_ring(void)
{
    return even_ring(16, 90 + 1.5 * 360 / 64);
}

#endif

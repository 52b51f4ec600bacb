/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Help for the tests of projection data: rings of equal crystals, and headers by hand. */
#pragma once

#include "io/files.h"
#include "io/lor_data/projdata.h"
#include "io/scanners.h"

/* A ring of panels of 4 x 4 crystals; the crystals fill the circle. */
static inline lr_scanner *even_ring(int modules, double first_angle_deg)
{
    return scanner_of("name: even ring\nring: {radius_mm: %.17g, modules: %d, first_angle_deg: %.17g}\n"
                      "module: {crystals: [4, 4], pitch_mm: [4, 5], face_mm: [3.8, 4.8], depth_mm: 10}\n"
                      "coincidence: {min_module_difference: 2}\n",
                      4 * 4.0 * modules / (2 * pi), modules, first_angle_deg);
}

/* Different counts for all LORs in coincidence; each of these LORs has a bin. */
static inline lr_lor_data *numbered(const lr_lors *lors)
{
    struct lr_projdata projdata;
    assert_int_equal(lr_projdata_create(&projdata, lors, NULL), LR_OK);
    int32_t(*places)[2] = lr_projdata_places(&projdata, lors->scanner, NULL);
    lr_lor_data *data = keep(lr_lor_data_create(lors, NULL));
    for (int64_t n = 0; n < lors->count; n++) {
        int32_t crystals[2];
        struct lr_projdata_bin bin;
        if (!lr_lors_in_coincidence(lors, n)) continue;
        lr_lors_crystals(lors, n, crystals);
        assert_true(lr_projdata_bin_of(&projdata, (const int32_t(*)[2])places, crystals, &bin));
        data->values[n] = (float)(n + 1);
    }
    free(places);
    lr_projdata_finish(&projdata);
    return data;
}

static inline lr_lor_data *read_good(const char *path, const lr_lors *lors, int num_warnings)
{
    struct test_log log = TEST_LOG(log);
    lr_lor_data *data = keep(lr_lor_data_read(path, lors, &log.log));
    if (log.num_warnings != num_warnings)
        fail_msg("%s: %d warnings, the last: %s", path, log.num_warnings, log.warning);
    return data;
}

static inline void assert_same_counts(const lr_lors *lors, const lr_lor_data *a, const lr_lor_data *b)
{
    const lr_lor_data *x = keep(lr_lor_data_expand(a, lors, NULL)), *y = keep(lr_lor_data_expand(b, lors, NULL));
    assert_memory_equal(x->values, y->values, (size_t)lors->count * sizeof(float));
}

/* Header of a ring of 16 x 4 crystals and 4 rings that starts at 90 degrees, with more lines appended. */
static inline void write_header(const char *path, const char *more)
{
    char text[4096];
    snprintf(
        text, sizeof(text),
        "!INTERFILE :=\nname of data file := bins.s\nimagedata byte order := LITTLEENDIAN\n"
        "applied corrections := {None}\n!number format := float\n!number of bytes per pixel := 4\n"
        "number of dimensions := 4\nmatrix axis label [4] := segment\nmatrix axis label [1] := tangential coordinate\n"
        "matrix axis label [3] := view\nmatrix axis label [2] := axial coordinate\n!matrix size [4] := 3\n"
        "!matrix size [3] := 16\n!matrix size [2] := {3,7,3}\n!matrix size [1] := 40\n"
        "minimum ring difference per segment := {-3, -1, 2}\nmaximum ring difference per segment := {-2, 1, 3}\n"
        "Number of rings := 4\nNumber of detectors per ring := 64\n%s!END OF INTERFILE :=\n",
        more);
    text_write(path, text);
}

enum { span_bins = 16 * 13 * 40 };

/* A scanner whose first crystal is at 90 degrees: modules are rotated so that they begin at their first crystals. */
static inline lr_lors *top_ring(void)
{
    return lors_of(even_ring(16, 90 + 1.5 * 360 / 64));
}

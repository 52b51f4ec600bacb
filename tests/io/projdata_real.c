/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * STIR's projection data: invalid files are refused with a sentence, real headers are interpreted correctly, and real
 * data keep their counts. */
#include "io/lists.h"
#include "io/projdata_files.h"
#include "io/text_cases.h"

/* --- refusals --- */

static void assert_refused(const char *path, const lr_lors *lors, const char *words)
{
    struct test_log log = TEST_LOG(log);
    lr_lor_data *data = lr_lor_data_read(path, lors, &log.log);
    if (data != NULL || strstr(log.error, words) == NULL || log.status != LR_BAD_INPUT)
        fail_msg("expected \"%s\", got \"%s\" (%d)", words, log.error, log.status);
}

static void test_refusals(void **state)
{
    static float bins[span_bins];
    lr_lors *lors = top_ring();
    const char *path = "a.hs", *data_path = "bins.s";
    bins[7] = 1;
    bytes_write(data_path, bins, sizeof(bins));
    assert_refused(data_path, lors, "name the header, which ends in .hs");
    for (struct text_cases cases = cases_of(IO_CASES, "projdata"); next_case(&cases);) {
        write_header(path, cases.fields[1]);
        assert_refused(path, lors, cases.fields[0]);
    }
    write_header(path, "View offset (degrees) := 0\n");
    (void)read_good(path, lors, 2);
    bins[9] = NAN;
    bytes_write(data_path, bins, sizeof(bins));
    assert_refused(path, lors, "holds nan in view 0");
    assert_refused("no/such.hs", lors, "No such file");
    text_write(path, "");
    assert_refused(path, lors, "the header is empty");

    lr_lors *flat = lors_of(keep(lr_scanner_read("two-opposed-modules", NULL))); /* no ring */
    write_header(path, "");
    assert_refused(path, flat, "is not one");
    lr_lor_data *data = keep(lr_lor_data_create(flat, NULL));
    assert_fails(lr_lor_data_write(path, flat, data, &files.log.log), LR_BAD_INPUT, &files.log,
                 "full rings of equal modules");
}

/* --- real files --- */

static lr_status try_header(const char *name, const lr_scanner *scanner, struct test_log *log,
                            struct lr_projdata *projdata)
{
    char path[1024];
    struct lr_projdata_file file;
    if (test_data(path, name) == NULL) skip();
    test_log_init(log);
    const lr_status status = lr_projdata_read(projdata, &file, path, scanner, &log->log);
    if (status == LR_OK) free(file.data_path);
    return status;
}

/* Headers of a Biograph mMR: the crystals are those of its list mode, and span 11 combines all 4,084 pairs of rings
 * up to 60 apart. */
static void test_mmr_headers(void **state)
{
    static const struct lr_sinogram_gaps one = {1, 0};
    const char *const names[] = {"interfile/Siemens_mMR_seg2.hs", "interfile/template_span11.hs"};
    const int planes[] = {314, 837}, ring_pairs[] = {314, 4084};
    lr_scanner *scanner = keep(lr_scanner_read("siemens-mmr", NULL));
    struct lr_sinogram_rings list_mode;
    struct test_log log;
    assert_int_equal(lr_sinogram_rings_create(&list_mode, scanner, &one, "", NULL), LR_OK);
    for (int n = 0; n < 2; n++) {
        struct lr_projdata projdata;
        if (try_header(names[n], scanner, &log, &projdata) != LR_OK) fail_msg("%s", log.error);
        assert_ints(log.num_warnings, 0, projdata.rings.around, 504);
        assert_memory_equal(projdata.rings.crystals, list_mode.crystals, 504 * 64 * 4);
        assert_int_equal(lr_projdata_num_bins(&projdata), (int64_t)planes[n] * 252 * 344);
        assert_true(projdata.first_t == -172 && projdata.by_view && projdata.mashing == 1);
        int pairs[64][2], count = 0;
        bool *seen = kept(64 * 64, sizeof(bool));
        for (int k = 0; k < projdata.num_segments; k++) {
            for (int axial = 0; axial < projdata.segments[k].num_axial; axial++) {
                const int more = lr_projdata_ring_pairs(&projdata, &projdata.segments[k], axial, pairs);
                assert_true(more >= 1 && more <= (n == 0 ? 1 : 6));
                for (int m = 0; m < more; m++) {
                    assert_false(seen[pairs[m][0] * 64 + pairs[m][1]]);
                    seen[pairs[m][0] * 64 + pairs[m][1]] = true;
                }
                count += more;
            }
        }
        assert_int_equal(count, ring_pairs[n]);
        lr_projdata_finish(&projdata);
    }
    lr_sinogram_rings_finish(&list_mode);
}

static void test_other_headers(void **state)
{
    static const char *const cases[][2] = {{"interfile/PET_TOF_Interfile_header_Signa_PETMR.hs", "time of flight"},
                                           {"interfile/smalllong.hs", "is arc-corrected"},
                                           {"interfile/mMR_sinogram.s.hdr", "no projection data as STIR writes them"}};
    lr_scanner *scanner = keep(lr_scanner_read("siemens-mmr", NULL));
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        struct test_log log;
        struct lr_projdata projdata;
        assert_fails(try_header(cases[k][0], scanner, &log, &projdata), LR_BAD_INPUT, &log, cases[k][1]);
    }
}

/* The bins of smalllong.s, interpreted as those of 128 crystals in 14 rings before arc correction: one segment of
 * ring differences -8 to 8. No count is lost or moved to other rings. */
static void test_real_bins(void **state)
{
    char given[1024], data[1024];
    size_t count;
    if (test_data(given, "interfile/smalllong.hs") == NULL || test_data(data, "interfile/smalllong.s") == NULL) skip();
    lr_lors *lors =
        lors_of(scanner_of("name: small long\nring: {radius_mm: 300, modules: 16, first_angle_deg: %.17g}\nmodule: "
                           "{crystals: [8, 14], pitch_mm: [14.7, 6.54], face_mm: [14, 6], depth_mm: 20}\n",
                           90 + 3.5 * 360 / 128));
    const char *path = "smalllong.hs";
    char *text = (char *)bytes_read(given, NULL);
    memcpy(strstr(text, "{arc correction}"), "{None}          ", 16);
    memcpy(strstr(text, ":= 112") + 3, "128", 3);
    text_write(path, text);
    float *bins = (float *)(void *)bytes_read(data, &count);
    assert_int_equal(count, 27 * 64 * 75 * 4);
    bytes_write("smalllong.s", bins, count);
    lr_lor_data *found = read_good(path, lors, 3), *dense = keep(lr_lor_data_expand(found, lors, NULL));
    double expected[27] = {0}, sums[27] = {0}, total = 0;
    for (int n = 0; n < 27 * 64 * 75; n++) {
        expected[n / 75 % 27] += bins[n];
        total += bins[n];
    }
    assert_true(total > 0);
    for (int64_t lor = 0; lor < lors->count; lor++) {
        if (dense->values[lor] != 0) {
            const lr_lor ends = lr_lors_describe(lors, lor);
            sums[26 - ends.q - ends.s] += dense->values[lor];
        }
    }
    for (int axial = 0; axial < 27; axial++) assert_close(sums[axial], expected[axial], 1e-5);
    print_message("%.6g counts in %lld LORs\n", total, (long long)found->count);
}

/* A real acquisition, binned here by STIR's formula for the detectors that its records name, with STIR's header and
 * a crystal map: the LORs equal those read from the records. */
static void test_generic_geometry(void **state)
{
    char events[1024], map[1024], header[1024];
    if (test_data(events, "safir/coincidencesLM.clm.safir") == NULL ||
        test_data(map, "safir/DualRingPrototype_crystal_map.txt") == NULL ||
        test_data(header, "safir/muppet.hs") == NULL)
        skip();
    enum { views = 90, bins = 160, rings = 16 };
    size_t count;
    lr_lors *lors = lors_of(keep(lr_scanner_read("safir-dual-ring-prototype", NULL)));
    const lr_prompts_delayeds acquired = bin_events((lr_events_source){.path = events, .companion = map}, lors);
    const lr_lor_data *expected = acquired.prompts;
    float *counts = kept((size_t)rings * rings * views * bins, sizeof(float));
    unsigned char *records = bytes_read(events, &count);
    for (size_t at = 32; at + 8 <= count; at += 8) {
        uint64_t word;
        memcpy(&word, records + at, 8);
        if (word >> 62 != 0) continue; /* time marks and delayed events */
        int ring[2] = {(int)(word & 255), (int)(word >> 8 & 255)};
        int det[2] = {(int)(word >> 16 & 65535), (int)(word >> 32 & 65535)};
        int t = (det[0] - det[1] + 270) % 180, view = (det[0] - (t >> 1) + 180) % 180;
        bool swap = false; /* the ranges of view and t, from STIR's source */
        if (view < 90 && t >= 90) {
            t = 180 - t;
            swap = true;
        } else if (view >= 90) {
            view -= 90;
            swap = t < 90;
            t = t >= 90 ? t - 180 : -t;
        }
        const int r1 = ring[swap], r2 = ring[!swap], segment = r2 - r1;
        int plane = r1 < r2 ? r1 : r2;
        for (int s = -15; s < segment; s++) plane += 16 - abs(s);
        const int before = plane - (r1 < r2 ? r1 : r2), axials = 16 - abs(segment);
        if (t >= -80 && t < 80) /* segment, view, axial, t */
            counts[((int64_t)before * views + view * axials + (plane - before)) * bins + t + 80]++;
    }
    bytes_write("muppet.s", counts, (size_t)rings * rings * views * bins * sizeof(float));
    static const char *const names[2] = {"DualRingPrototype_crystal_map.txt", "muppet.hs"};
    for (int k = 0; k < 2; k++) {
        unsigned char *bytes = bytes_read(k == 0 ? map : header, &count);
        bytes_write(names[k], bytes, count);
    }
    lr_lor_data *found = keep(lr_lor_data_read("muppet.hs", lors, &files.log.log));
    print_message("%lld LORs with counts\n", (long long)found->count);
    assert_same_counts(lors, expected, found);
}

group_main("io projdata real", NULL, NULL, FILES_CASE(test_refusals), FILES_CASE(test_mmr_headers),
           FILES_CASE(test_other_headers), FILES_CASE(test_real_bins), FILES_CASE(test_generic_geometry))

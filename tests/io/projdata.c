/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * STIR's projection data: data written are read back; the ends of each bin's line, by STIR's own formulas, lie at the
 * two crystals of its LOR; compressed data keep their counts. */
#include "io/projdata_files.h"

/* --- scanners --- */

/* Two rings of 20 panels of 2 + 1 crystals by 2, starting at an odd angle; each panel has one virtual crystal
 * around, and there is one virtual ring. No axis is symmetric in the tested quantities. */
static lr_scanner *uneven_ring(void)
{
    return scanner_of("name: uneven ring\nring: {radius_mm: 51.3, modules: 20, first_angle_deg: 23, rings: 2, "
                      "ring_pitch_mm: 15}\nmodule: {crystals: [[2, 1], 2], block_gap_mm: [0.2, 0], pitch_mm: [4, 5], "
                      "face_mm: [3.8, 4.8], depth_mm: 10}\ncoincidence: {min_module_difference: 4}\n");
}

/* --- headers, read as a user of STIR's guide would read them --- */

static const char *after(const char *header, const char *key)
{
    const char *at = strstr(header, key);
    if (at == NULL) {
        fail_msg("no '%s' in the header", key);
        return "";
    }
    at = strstr(at, ":=") + 2;
    return at + strspn(at, " {");
}

struct header {
    int rings, around, views, bins, segments, least[64], most[64], axial[64];
    double radius_mm, pitch_mm, offset_deg;
};

static void scan_list(const char *at, int count, int *numbers)
{
    for (int k = 0; k < count; k++) {
        char *end;
        numbers[k] = (int)strtol(at, &end, 10);
        assert_true(end != at);
        at = end + 1;
    }
}

static struct header read_header(const char *path)
{
    struct header h;
    char *text = (char *)bytes_read(path, NULL);
    h.rings = atoi(after(text, "Number of rings"));
    h.around = atoi(after(text, "Number of detectors per ring"));
    h.segments = atoi(after(text, "!matrix size [4]"));
    h.views = atoi(after(text, "!matrix size [2]"));
    h.bins = atoi(after(text, "!matrix size [1]"));
    h.radius_mm =
        5 * atof(after(text, "Inner ring diameter (cm)")) + 10 * atof(after(text, "Average depth of interaction (cm)"));
    h.pitch_mm = 10 * atof(after(text, "Distance between rings (cm)"));
    h.offset_deg = atof(after(text, "View offset (degrees)"));
    assert_int_equal(strncmp(after(text, "matrix axis label [2]"), "view", 4), 0);
    assert_int_equal(strncmp(after(text, "matrix axis label [3]"), "axial coordinate", 16), 0);
    assert_int_equal(strncmp(after(text, "applied corrections"), "None}", 5), 0);
    assert_true(h.segments <= 64);
    scan_list(after(text, "!matrix size [3]"), h.segments, h.axial);
    scan_list(after(text, "minimum ring difference"), h.segments, h.least);
    scan_list(after(text, "maximum ring difference"), h.segments, h.most);
    return h;
}

/* --- laws of the bins --- */

/* Each pair of crystals around the ring has one bin, and each bin one pair, for any number of crystals around. */
static void test_bins(void **state)
{
    const int sizes[] = {2, 4, 6, 10, 64, 234};
    for (int n = 0; n < 6; n++) {
        const int around = sizes[n];
        int *seen = kept((size_t)(around * around), sizeof(int));
        for (int view = 0; view < around / 2; view++) {
            for (int t = 1 - around / 2; t < around / 2; t++) {
                struct lr_sinogram_bin bin = {view, t}, back;
                int places[2];
                lr_sinogram_places(around, &bin, places);
                assert_true(places[0] != places[1]);
                assert_ints(seen[places[0] * around + places[1]]++, 0, seen[places[1] * around + places[0]]++, 0);
                assert_false(lr_sinogram_bin_of(around, places, &back));
                assert_true(back.view == view && back.t == t);
                assert_true(lr_sinogram_bin_of(around, (int[2]){places[1], places[0]}, &back));
                assert_true(back.view == view && back.t == t);
                /* the published formula; shifting negative numbers to the right rounds down */
                const int half = (int)floor(t / 2.0), other = (int)floor((t + 1) / 2.0);
                assert_int_equal(places[0], (view + half + around) % around);
                assert_int_equal(places[1], (view - other + around / 2 + around) % around);
            }
        }
    }
}

static void test_round_trip(void **state)
{
    const char *path = "dense.hs", *other = "sparse.hs";
    lr_scanner *scanners[3] = {uneven_ring(), even_ring(16, 7), even_ring(9, -100)};
    for (int n = 0; n < 3; n++) {
        lr_lors *lors = lors_of(scanners[n]);
        lr_lor_data *data = numbered(lors);
        assert_int_equal(lr_lor_data_write(path, lors, data, NULL), LR_OK);
        lr_lor_data *back = read_good(path, lors, 0);
        assert_null(back->index);
        assert_same_counts(lors, data, back);

        int64_t index[40]; /* a few values as sparse data give the same file as dense data */
        float values[40];
        lr_lor_data sparse = {0, index, values};
        for (int64_t lor = 17; lor < lors->count; lor += lors->count / 37) {
            if (data->values[lor] != 0) {
                index[sparse.count] = lor;
                values[sparse.count++] = data->values[lor];
            }
        }
        assert_true(sparse.count > 10);
        assert_int_equal(lr_lor_data_write(other, lors, &sparse, NULL), LR_OK);
        back = read_good(other, lors, 0);
        assert_int_equal(back->count, sparse.count);
        assert_same_counts(lors, &sparse, back);
        lr_lor_data *dense = keep(lr_lor_data_expand(back, lors, NULL));
        assert_int_equal(lr_lor_data_write(path, lors, dense, NULL), LR_OK);
        assert_same_bytes("dense.s", "sparse.s");
    }
}

/* The two ends of a bin's line, as STIR computes them (LORInAxialAndNoArcCorrSinogramCoordinates and
 * ProjDataInfoCylindrical), converted to our frame, in which x, y and z have the opposite direction. */
static void stir_ends(const struct header *h, const int bin[4], double ends_mm[2][3])
{
    const int segment = bin[0], axial = bin[1], view = bin[2], t = bin[3];
    const double phi = view * pi / h->views + h->offset_deg * pi / 180, beta = t * pi / h->around;
    const double psi[2] = {phi + beta, phi - beta + pi};
    const double m = (axial - 0.5 * (h->axial[segment] - 1)) * h->pitch_mm;
    const double apart = 0.5 * h->least[segment] * h->pitch_mm; /* ring of det2 minus ring of det1 */
    for (int e = 0; e < 2; e++) {
        ends_mm[e][0] = -h->radius_mm * sin(psi[e]);
        ends_mm[e][1] = h->radius_mm * cos(psi[e]);
        ends_mm[e][2] = -(m + (e == 0 ? -apart : apart));
    }
}

/* The bin that holds `value`, found from the header only. */
static void find_bin(const struct header *h, const float *bins, float value, int bin[4])
{
    int64_t at = 0;
    for (bin[0] = 0; bin[0] < h->segments; bin[0]++) {
        for (bin[1] = 0; bin[1] < h->axial[bin[0]]; bin[1]++) {
            for (bin[2] = 0; bin[2] < h->views; bin[2]++) {
                for (int n = 0; n < h->bins; n++, at++) {
                    bin[3] = n - h->bins / 2;
                    if (bins[at] == value) return;
                }
            }
        }
    }
    fail_msg("no bin holds %g", (double)value);
}

/* The crystals of a LOR are at the ends of its bin's line; a flip or a shift by one crystal would be detected. */
static void test_places(void **state)
{
    lr_scanner *scanners[2] = {uneven_ring(), even_ring(24, 7)};
    for (int n = 0; n < 2; n++) {
        lr_lors *lors = lors_of(scanners[n]);
        lr_lor_data *data = numbered(lors);
        double worst_mm = 0;
        assert_int_equal(lr_lor_data_write("a.hs", lors, data, NULL), LR_OK);
        const struct header h = read_header("a.hs");
        float *bins = (float *)(void *)bytes_read("a.s", NULL);
        for (int64_t lor = 5; lor < lors->count; lor += lors->count / 97) {
            int bin[4] = {0};
            double ends_mm[2][3], is_mm[2][3];
            if (data->values[lor] == 0) continue;
            find_bin(&h, bins, data->values[lor], bin);
            stir_ends(&h, bin, ends_mm);
            find_ends(lors, lor, is_mm);
            const double straight = fmax(distance_mm(is_mm[0], ends_mm[0]), distance_mm(is_mm[1], ends_mm[1]));
            const double crossed = fmax(distance_mm(is_mm[0], ends_mm[1]), distance_mm(is_mm[1], ends_mm[0]));
            worst_mm = fmax(worst_mm, fmin(straight, crossed));
        }
        print_message("%s: crystals within %.2f mm of their places\n", lors->scanner->name, worst_mm);
        /* The crystal's centre lies 5 mm behind the face. In the other directions, gaps and flat panels shift
         * crystals by less than half of the 4 mm between neighbours. */
        assert_true(worst_mm < hypot(5.0, 2.0) + 0.7);
    }
}

/* --- compressed data --- */

/* Span 3 and two views combined: the counts of each bin are divided equally among the LORs that STIR would sum into
 * it, and none is lost. */
static void test_compressed(void **state)
{
    static float bins[span_bins];
    lr_lors *lors = top_ring();
    write_header("a.hs", "");
    /* segment 1 (ring differences -1, 0, 1), view 5, axial position 3, t = -3 */
    const int at = 16 * 3 * 40 + (5 * 7 + 3) * 40 + 17;
    bins[at] = 12;
    bytes_write("bins.s", bins, sizeof(bins));
    lr_lor_data *data = read_good("a.hs", lors, 2);
    /* the rings add up to 3: (2, 1) and (1, 2); segment 0 has the other parity; two views of each */
    assert_int_equal(data->count, 4);
    for (int n = 0; n < 4; n++) {
        int32_t crystals[2];
        int ring[2], place[2];
        assert_true(data->values[n] == 3.0f);
        lr_lors_crystals(lors, data->index[n], crystals);
        for (int e = 0; e < 2; e++) {
            ring[e] = 3 - crystals[e] % 16 / 4;
            place[e] = crystals[e] / 16 * 4 + crystals[e] % 4;
        }
        assert_int_equal(ring[0] + ring[1], 3);
        assert_true(ring[0] != ring[1] && abs(ring[0] - ring[1]) == 1);
        /* det1 = view + floor(-3/2), det2 = view - floor(-2/2) + 32, views 10 and 11 */
        const int low = place[0] < place[1] ? place[0] : place[1], high = place[0] + place[1] - low;
        assert_true((low == 8 && high == 43) || (low == 9 && high == 44));
    }
    double sum = 0, found = 0;
    for (int n = 0; n < span_bins; n++) {
        bins[n] = (float)(n % 7);
        sum += bins[n];
    }
    bytes_write("bins.s", bins, sizeof(bins));
    data = read_good("a.hs", lors, 2);
    assert_null(data->index);
    for (int64_t n = 0; n < data->count; n++) found += data->values[n];
    assert_close(found, sum, 1e-6); /* rounding of each share to single precision */
}

/* View offsets rotate the numbering by whole crystals. */
static void test_view_offset(void **state)
{
    char more[64];
    static float bins[span_bins];
    lr_lors *lors = top_ring();
    bins[16 * 3 * 40 + (0 * 7 + 0) * 40 + 20] = 2; /* view 0, t = 0: 0 - 32 and 1 - 33 */
    bytes_write("bins.s", bins, sizeof(bins));
    for (int turn = -3; turn < 70; turn += 5) {
        snprintf(more, sizeof(more), "View offset (degrees) := %.9g\n", turn * 360.0 / 64);
        write_header("a.hs", more);
        lr_lor_data *data = read_good("a.hs", lors, 2);
        assert_int_equal(data->count, 2);
        for (int n = 0; n < 2; n++) {
            double ends_mm[2][3];
            find_ends(lors, data->index[n], ends_mm);
            const double angle = atan2(ends_mm[0][1], ends_mm[0][0]) * 180 / pi;
            const double place = (angle - 90) / (360.0 / 64) - turn;
            const double off = fmod(place + 32 * 100, 32); /* either end of the line */
            assert_true(off < 1.3 || off > 31.7);
            assert_true(ends_mm[0][2] > 7); /* ring 0 is at the largest z of our frame */
        }
    }
    snprintf(more, sizeof(more), "View offset (degrees) := 2\n"); /* a third of a crystal */
    write_header("a.hs", more);
    (void)read_good("a.hs", lors, 3);
}

/* A warning advises a field of view, which must leave out exactly the LORs that the file does not have. */
static void test_advice(void **state)
{
    static float bins[span_bins];
    lr_lors *lors = top_ring();
    bins[16 * 3 * 40 + 20] = 1;
    bytes_write("bins.s", bins, sizeof(bins));
    const char *path = "a.hs";
    write_header(path, "");
    keep(lr_lor_data_read(path, lors, &files.log.log));
    const char *advice = non_null(strstr(files.log.warning, "a field_of_view_mm of "));
    lr_scanner *narrow = even_ring(16, 90 + 1.5 * 360 / 64);
    narrow->coincidence.field_of_view_mm = atof(advice + 22);
    lr_lors *fewer = lors_of(narrow);
    (void)read_good(path, fewer, 1); /* the segments differ from those without compression */
    struct lr_projdata projdata;
    assert_int_equal(lr_projdata_create(&projdata, fewer, NULL), LR_OK);
    assert_int_equal(projdata.num_t, 39); /* the file has t = -20 to 19; the field of view keeps -19 to 19 */
    lr_projdata_finish(&projdata);
}

group_main("io projdata", NULL, NULL, FILES_CASE(test_bins), FILES_CASE(test_round_trip), FILES_CASE(test_places),
           FILES_CASE(test_compressed), FILES_CASE(test_view_offset), FILES_CASE(test_advice))

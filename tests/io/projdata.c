/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * STIR's projection data: what is written comes back; STIR's own formulas put each bin's line onto
 * the two crystals of its LOR; compressed data keep their counts; real headers mean what they say;
 * files that cannot be right are refused with a sentence. */
#include "io/projdata.h"
#include "io/files.h"

static const double pi = 3.14159265358979323846;

/* --- scanners --- */

/* Two rings of 20 panels of 2 + 1 crystals by 2, begun at an odd angle; there is one virtual place
 * in each panel and one virtual ring. No axis is symmetric in what is measured. */
static lr_scanner *uneven_ring(void)
{
    const int blocks_u[2] = {2, 1}, blocks_v = 2;
    const lr_ring ring = {.radius_mm = 51.3,
                          .modules = 20,
                          .first_angle_deg = 23,
                          .rings = 2,
                          .ring_pitch_mm = 15,
                          .blocks = {2, 1},
                          .block_crystals = {blocks_u, &blocks_v},
                          .block_gap_mm = {0.2, 0},
                          .pitch_mm = {4, 5},
                          .face_mm = {3.8, 4.8},
                          .depth_mm = 10};
    const lr_scanner_params params = {.name = "uneven ring",
                                      .coincidence = {.min_module_difference = 4}};
    lr_scanner *scanner = lr_scanner_create_ring(&params, &ring);
    assert_non_null(scanner);
    return scanner;
}

/* `modules` x 4 crystals without gaps around, four rings. */
static lr_scanner *even_ring(int modules, double first_angle_deg)
{
    const int crystals = 4;
    const lr_ring ring = {.radius_mm = 4 * 4.0 * modules / (2 * pi),
                          .modules = modules,
                          .first_angle_deg = first_angle_deg,
                          .block_crystals = {&crystals, &crystals},
                          .pitch_mm = {4, 5},
                          .face_mm = {3.8, 4.8},
                          .depth_mm = 10};
    const lr_scanner_params params = {.name = "even ring",
                                      .coincidence = {.min_module_difference = 2}};
    lr_scanner *scanner = lr_scanner_create_ring(&params, &ring);
    assert_non_null(scanner);
    return scanner;
}

static lr_lors *lors_of(const lr_scanner *scanner)
{
    lr_lors *lors = lr_lors_create(scanner, NULL);
    assert_non_null(lors);
    return lors;
}

/* The crystals of a LOR. */
static void crystals_of(const lr_lors *lors, int64_t number, int32_t crystals[2])
{
    const lr_scanner *scanner = lors->scanner;
    const lr_lor lor = lr_lors_describe(lors, number);
    crystals[0] = scanner->first_crystal[lor.module_i] + lor.p +
                  lor.q * scanner->modules[lor.module_i].crystals[0];
    crystals[1] = scanner->first_crystal[lor.module_j] + lor.r +
                  lor.s * scanner->modules[lor.module_j].crystals[0];
}

static void crystal_centre(const lr_scanner *scanner, int crystal, double centre_mm[3])
{
    const int m = lr_scanner_module_of(scanner, crystal);
    const int within = crystal - scanner->first_crystal[m];
    const int nu = scanner->modules[m].crystals[0];
    lr_module_crystal_centre(&scanner->modules[m], within % nu, within / nu, centre_mm);
}

/* --- headers, as a reader of STIR's guide would take them apart --- */

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
        char *end = NULL;
        numbers[k] = (int)strtol(at, &end, 10);
        assert_true(end != at);
        at = end + 1;
    }
}

static struct header read_header(const char *path)
{
    size_t count;
    struct header h;
    unsigned char *bytes = bytes_read(path, &count);
    bytes[count] = '\0';
    const char *text = (const char *)bytes;
    h.rings = atoi(after(text, "Number of rings"));
    h.around = atoi(after(text, "Number of detectors per ring"));
    h.segments = atoi(after(text, "!matrix size [4]"));
    h.views = atoi(after(text, "!matrix size [2]"));
    h.bins = atoi(after(text, "!matrix size [1]"));
    h.radius_mm = 5 * atof(after(text, "Inner ring diameter (cm)")) +
                  10 * atof(after(text, "Average depth of interaction (cm)"));
    h.pitch_mm = 10 * atof(after(text, "Distance between rings (cm)"));
    h.offset_deg = atof(after(text, "View offset (degrees)"));
    assert_int_equal(strncmp(after(text, "matrix axis label [2]"), "view", 4), 0);
    assert_int_equal(strncmp(after(text, "matrix axis label [3]"), "axial coordinate", 16), 0);
    assert_int_equal(strncmp(after(text, "applied corrections"), "None}", 5), 0);
    assert_true(h.segments <= 64);
    scan_list(after(text, "!matrix size [3]"), h.segments, h.axial);
    scan_list(after(text, "minimum ring difference"), h.segments, h.least);
    scan_list(after(text, "maximum ring difference"), h.segments, h.most);
    free(bytes);
    return h;
}

/* --- laws --- */

/* Pairs of places and bins are the same set, for any number of places. */
static void test_bins(void **state)
{
    (void)state;
    const int sizes[] = {2, 4, 6, 10, 64, 234};
    for (int n = 0; n < 6; n++) {
        const int around = sizes[n];
        int *seen = calloc((size_t)(around * around), sizeof(int));
        assert_non_null(seen);
        for (int view = 0; view < around / 2; view++) {
            for (int t = 1 - around / 2; t < around / 2; t++) {
                struct lr_sinogram_bin bin = {view, t}, back;
                int places[2];
                lr_sinogram_places(around, &bin, places);
                assert_true(places[0] != places[1]);
                assert_int_equal(seen[places[0] * around + places[1]]++, 0);
                assert_int_equal(seen[places[1] * around + places[0]]++, 0);
                assert_false(lr_sinogram_bin_of(around, places, &back));
                assert_true(back.view == view && back.t == t);
                assert_true(lr_sinogram_bin_of(around, (int[2]){places[1], places[0]}, &back));
                assert_true(back.view == view && back.t == t);
                /* the published formula, with shifts of negative numbers that round down */
                const int half = (int)floor(t / 2.0), other = (int)floor((t + 1) / 2.0);
                assert_int_equal(places[0], (view + half + around) % around);
                assert_int_equal(places[1], (view - other + around / 2 + around) % around);
            }
        }
        free(seen);
    }
}

/* A LOR that has a bin; a LOR of one place in two rings has none. */
static bool has_bin(const lr_lors *lors, const struct lr_projdata *projdata,
                    const int32_t (*places)[2], int64_t lor)
{
    int32_t crystals[2];
    struct lr_projdata_bin bin;
    crystals_of(lors, lor, crystals);
    return lr_projdata_bin_of(projdata, places, crystals, &bin);
}

/* Counts that tell every LOR from the others, on LORs in coincidence that have a bin. */
static lr_lor_data *numbered(const lr_lors *lors)
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

static lr_lor_data *read_good(const char *path, const lr_lors *lors, int num_warnings)
{
    struct test_log log;
    test_log_init(&log);
    lr_lor_data *data = lr_lor_data_read(path, lors, &log.log);
    if (data == NULL) {
        fail_msg("%s: %s", path, log.error);
    }
    if (log.num_warnings != num_warnings) {
        fail_msg("%s: %d warnings, the last: %s", path, log.num_warnings, log.warning);
    }
    return data;
}

static void assert_same_counts(const lr_lors *lors, const lr_lor_data *a, const lr_lor_data *b)
{
    lr_lor_data *x = lr_lor_data_expand(a, lors, NULL), *y = lr_lor_data_expand(b, lors, NULL);
    assert_memory_equal(x->values, y->values, (size_t)lors->count * sizeof(float));
    lr_lor_data_destroy(x);
    lr_lor_data_destroy(y);
}

static void test_round_trip(void **state)
{
    (void)state;
    struct test_folder folder;
    char path[128], other[128];
    folder_init(&folder);
    lr_scanner *scanners[3] = {uneven_ring(), even_ring(16, 7), even_ring(9, -100)};
    for (int n = 0; n < 3; n++) {
        lr_lors *lors = lors_of(scanners[n]);
        lr_lor_data *data = numbered(lors);
        folder_file(&folder, path, "dense.hs");
        assert_int_equal(lr_lor_data_write(path, lors, data, NULL), LR_OK);
        lr_lor_data *back = read_good(path, lors, 0);
        assert_null(back->index);
        assert_same_counts(lors, data, back);
        lr_lor_data_destroy(back);

        int64_t index[40]; /* some of them, sparse: the same file as when dense */
        float values[40];
        lr_lor_data sparse = {0, index, values};
        for (int64_t lor = 17; lor < lors->count; lor += lors->count / 37) {
            if (data->values[lor] != 0) {
                index[sparse.count] = lor;
                values[sparse.count++] = data->values[lor];
            }
        }
        assert_true(sparse.count > 10);
        folder_file(&folder, other, "sparse.hs");
        assert_int_equal(lr_lor_data_write(other, lors, &sparse, NULL), LR_OK);
        back = read_good(other, lors, 0);
        assert_int_equal(back->count, sparse.count);
        assert_same_counts(lors, &sparse, back);
        lr_lor_data *dense = lr_lor_data_expand(back, lors, NULL);
        assert_int_equal(lr_lor_data_write(path, lors, dense, NULL), LR_OK);
        assert_same_bytes(folder_file(&folder, path, "dense.s"),
                          folder_file(&folder, other, "sparse.s"));
        lr_lor_data_destroy(dense);
        lr_lor_data_destroy(back);
        lr_lor_data_destroy(data);
        lr_lors_destroy(lors);
        lr_scanner_destroy(scanners[n]);
    }
    folder_finish(&folder);
}

/* Where STIR has the two ends of a bin's line (LORInAxialAndNoArcCorrSinogramCoordinates and
 * ProjDataInfoCylindrical), turned into our frame: x, y and z run against its own. */
static void stir_ends(const struct header *h, const int bin[4], double ends_mm[2][3])
{
    const int segment = bin[0], axial = bin[1], view = bin[2], t = bin[3];
    const double phi = view * pi / h->views + h->offset_deg * pi / 180;
    const double beta = t * pi / h->around;
    const double psi[2] = {phi + beta, phi - beta + pi};
    const double m = (axial - 0.5 * (h->axial[segment] - 1)) * h->pitch_mm;
    const double apart = 0.5 * h->least[segment] * h->pitch_mm; /* ring of det2 less det1's */
    for (int e = 0; e < 2; e++) {
        ends_mm[e][0] = -h->radius_mm * sin(psi[e]);
        ends_mm[e][1] = h->radius_mm * cos(psi[e]);
        ends_mm[e][2] = -(m + (e == 0 ? -apart : apart));
    }
}

static double distance_mm(const double a[3], const double b[3])
{
    return sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) +
                (a[2] - b[2]) * (a[2] - b[2]));
}

/* The bin that holds `value`, by the header alone. */
static void find_bin(const struct header *h, const float *bins, float value, int bin[4])
{
    int64_t at = 0;
    for (bin[0] = 0; bin[0] < h->segments; bin[0]++) {
        for (bin[1] = 0; bin[1] < h->axial[bin[0]]; bin[1]++) {
            for (bin[2] = 0; bin[2] < h->views; bin[2]++) {
                for (int n = 0; n < h->bins; n++, at++) {
                    if (bins[at] == value) {
                        bin[3] = n - h->bins / 2;
                        return;
                    }
                }
            }
        }
    }
    fail_msg("no bin holds %g", (double)value);
}

/* Crystals of a LOR at the ends of its bin's line; a flip or a shift by one crystal would show. */
static void test_places(void **state)
{
    (void)state;
    struct test_folder folder;
    char path[128];
    folder_init(&folder);
    lr_scanner *scanners[2] = {uneven_ring(), even_ring(24, 7)};
    for (int n = 0; n < 2; n++) {
        lr_lors *lors = lors_of(scanners[n]);
        lr_lor_data *data = numbered(lors);
        size_t count;
        double worst_mm = 0;
        assert_int_equal(lr_lor_data_write(folder_file(&folder, path, "a.hs"), lors, data, NULL),
                         LR_OK);
        const struct header h = read_header(path);
        float *bins = (float *)(void *)bytes_read(folder_file(&folder, path, "a.s"), &count);
        for (int64_t lor = 5; lor < lors->count; lor += lors->count / 97) {
            int bin[4] = {0};
            int32_t crystals[2];
            double ends_mm[2][3], a_mm[3], b_mm[3];
            if (data->values[lor] == 0) {
                continue;
            }
            find_bin(&h, bins, data->values[lor], bin);
            stir_ends(&h, bin, ends_mm);
            crystals_of(lors, lor, crystals);
            crystal_centre(lors->scanner, crystals[0], a_mm);
            crystal_centre(lors->scanner, crystals[1], b_mm);
            const double straight =
                fmax(distance_mm(a_mm, ends_mm[0]), distance_mm(b_mm, ends_mm[1]));
            const double crossed =
                fmax(distance_mm(a_mm, ends_mm[1]), distance_mm(b_mm, ends_mm[0]));
            worst_mm = fmax(worst_mm, fmin(straight, crossed));
        }
        print_message("%s: crystals within %.2f mm of their places\n", scanners[n]->name, worst_mm);
        /* The centre lies 5 mm behind the face. Beside that, gaps and flat panels displace crystals
         * by less than half of the 4 mm that the next one is away. */
        assert_true(worst_mm < hypot(5.0, 2.0) + 0.7);
        free(bins);
        lr_lor_data_destroy(data);
        lr_lors_destroy(lors);
        lr_scanner_destroy(scanners[n]);
    }
    folder_finish(&folder);
}

/* --- compressed data --- */

/* Header of a ring of 16 x 4 crystals and 4 rings that stands at 90 degrees. */
static void write_header(const char *path, const char *bins, const char *more)
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

#define BY_VIEW                                                                                    \
    "matrix axis label [3] := view\nmatrix axis label [2] := axial coordinate\n"                   \
    "!matrix size [4] := 3\n!matrix size [3] := 16\n!matrix size [2] := {3,7,3}\n"                 \
    "!matrix size [1] := 40\nminimum ring difference per segment := {-3, -1, 2}\n"                 \
    "maximum ring difference per segment := {-2, 1, 3}\n"

enum { span_bins = 16 * 13 * 40 };

/* A scanner whose first crystal stands at 90 degrees: modules begin at their first crystals. */
static lr_scanner *top_ring(void)
{
    return even_ring(16, 90 + 1.5 * 360 / 64);
}

/* Span 3 and two views in one: each bin's counts go to the LORs that STIR would sum into it, in
 * equal parts, and none is lost. */
static void test_compressed(void **state)
{
    (void)state;
    struct test_folder folder;
    char path[128];
    static float bins[span_bins];
    folder_init(&folder);
    lr_scanner *scanner = top_ring();
    lr_lors *lors = lors_of(scanner);
    write_header(folder_file(&folder, path, "a.hs"), BY_VIEW, "");
    /* segment 1 (ring differences -1, 0, 1), view 5, axial position 3, t = -3 */
    const int at = 16 * 3 * 40 + (5 * 7 + 3) * 40 + 17;
    bins[at] = 12;
    bytes_write(folder_file(&folder, path, "bins.s"), bins, sizeof(bins));
    lr_lor_data *data = read_good(folder_file(&folder, path, "a.hs"), lors, 2);
    /* sum of rings 3: (2, 1) and (1, 2); 0 has the other parity. Two views of each. */
    assert_int_equal(data->count, 4);
    for (int n = 0; n < 4; n++) {
        int32_t crystals[2];
        int ring[2], place[2];
        assert_true(data->values[n] == 3.0f);
        crystals_of(lors, data->index[n], crystals);
        for (int e = 0; e < 2; e++) {
            const int m = lr_scanner_module_of(scanner, crystals[e]);
            const int within = crystals[e] - scanner->first_crystal[m];
            ring[e] = 3 - within / 4;
            place[e] = 4 * m + within % 4;
        }
        assert_int_equal(ring[0] + ring[1], 3);
        assert_true(ring[0] != ring[1] && abs(ring[0] - ring[1]) == 1);
        /* det1 = view + floor(-3/2), det2 = view - floor(-2/2) + 32, views 10 and 11 */
        const int low = place[0] < place[1] ? place[0] : place[1];
        const int high = place[0] + place[1] - low;
        assert_true((low == 8 && high == 43) || (low == 9 && high == 44));
    }
    lr_lor_data_destroy(data);
    double sum = 0, found = 0;
    for (int n = 0; n < span_bins; n++) {
        bins[n] = (float)(n % 7);
        sum += bins[n];
    }
    bytes_write(folder_file(&folder, path, "bins.s"), bins, sizeof(bins));
    data = read_good(folder_file(&folder, path, "a.hs"), lors, 2);
    assert_null(data->index);
    for (int64_t n = 0; n < data->count; n++) {
        found += data->values[n];
    }
    assert_close(found, sum, 1e-6); /* single precision of each share */
    lr_lor_data_destroy(data);
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
    folder_finish(&folder);
}

/* View offsets turn the numbering by whole crystals. */
static void test_view_offset(void **state)
{
    (void)state;
    struct test_folder folder;
    char path[128], more[64];
    static float bins[span_bins];
    folder_init(&folder);
    lr_scanner *scanner = top_ring();
    lr_lors *lors = lors_of(scanner);
    bins[16 * 3 * 40 + (0 * 7 + 0) * 40 + 20] = 2; /* view 0, t = 0: 0 - 32 and 1 - 33 */
    bytes_write(folder_file(&folder, path, "bins.s"), bins, sizeof(bins));
    for (int turn = -3; turn < 70; turn += 5) {
        snprintf(more, sizeof(more), "View offset (degrees) := %.9g\n", turn * 360.0 / 64);
        write_header(folder_file(&folder, path, "a.hs"), BY_VIEW, more);
        lr_lor_data *data = read_good(path, lors, 2);
        assert_int_equal(data->count, 2);
        for (int n = 0; n < 2; n++) {
            int32_t crystals[2];
            double a_mm[3];
            crystals_of(lors, data->index[n], crystals);
            crystal_centre(scanner, crystals[0], a_mm);
            const double angle = atan2(a_mm[1], a_mm[0]) * 180 / pi;
            const double place = (angle - 90) / (360.0 / 64) - turn;
            const double off = fmod(place + 32 * 100, 32); /* either end */
            assert_true(off < 1.3 || off > 31.7);
            assert_true(a_mm[2] > 7); /* ring 0 is the farthest along our z */
        }
        lr_lor_data_destroy(data);
    }
    snprintf(more, sizeof(more), "View offset (degrees) := 2\n"); /* a third of a crystal */
    write_header(folder_file(&folder, path, "a.hs"), BY_VIEW, more);
    lr_lor_data_destroy(read_good(path, lors, 3));
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
    folder_finish(&folder);
}

/* --- refusals and damage --- */

static void assert_refused(const char *path, const lr_lors *lors, const char *words)
{
    struct test_log log;
    test_log_init(&log);
    lr_lor_data *data = lr_lor_data_read(path, lors, &log.log);
    if (data != NULL || strstr(log.error, words) == NULL || log.status != LR_BAD_INPUT) {
        fail_msg("expected \"%s\", got \"%s\" (%d)", words, log.error, log.status);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"applied corrections := {arc correction}\n", "is arc-corrected"},
        {"applied corrections := {attenuation, Arc_Corrected}\n", "is arc-corrected"},
        {"number of dimensions := 5\n", "time of flight"},
        {"matrix axis label [5] := timing positions\n", "time of flight"},
        {"number of time frames := 2\n", "several time frames"},
        {"number of detector layers := 2\n", "several time frames or detector layers"},
        {"matrix axis label [1] := x\n", "no projection data as STIR"},
        {"matrix axis label [2] := view\n", "its axes must be"},
        {"Number of rings := 5\n", "gives 5 rings where even ring has 4"},
        {"Number of rings := 0\n", "does not say the number of rings"},
        {"Number of detectors per ring := 66\n", "gives 66 detectors per ring where even ring has "
                                                 "64 in 16 modules"},
        {"Number of detectors per ring := 48\n", "belongs to another scanner"},
        {"Number of detectors per ring := 6400000000\n", "belongs to another scanner"},
        {"!matrix size [3] := 17\n", "has 17 views"},
        {"!matrix size [3] := 0\n", "has 0 views"},
        {"!matrix size [1] := 65\n", "has 65 tangential positions"},
        {"!matrix size [1] := {3,4}\n", "must be a whole number"},
        {"!matrix size [2] := {3,7}\n", "there must be as many of each"},
        {"!matrix size [2] := {3,7,4}\n",
         "segment 3 of the file has ring differences 2 to 3 and 4"},
        {"!matrix size [2] := {3,9,3}\n", "segment 2"},
        {"!matrix size [2] := {3,7\n", "must be a list"},
        {"minimum ring difference per segment := {-3, -1, 9}\n", "segment 3"},
        {"minimum ring difference per segment := {}\n", "lists 0 least"},
        {"name of data file := none\n", "missing or no plain file"},
        {"name of data file := .\n", "missing or no plain file"},
        {"data offset in bytes[1] := 4\n", "is truncated"},
        {"number format := bit\n", "format 'bit'"},
        {"Scanner geometry (BlocksOnCylindrical/Cylindrical/Generic) := Generic\n",
         "by a map that it does not name"},
        {"Scanner geometry (BlocksOnCylindrical/Cylindrical/Generic) := Generic\n"
         "Name of crystal map := none.txt\n",
         "none.txt"},
    };
    struct test_folder folder;
    char path[128];
    static float bins[span_bins];
    folder_init(&folder);
    lr_scanner *scanner = top_ring();
    lr_lors *lors = lors_of(scanner);
    bins[7] = 1;
    bytes_write(folder_file(&folder, path, "bins.s"), bins, sizeof(bins));
    assert_refused(path, lors, "name the header, which ends in .hs");
    folder_file(&folder, path, "a.hs");
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        write_header(path, BY_VIEW, cases[k][0]);
        assert_refused(path, lors, cases[k][1]);
    }
    write_header(path, BY_VIEW, "View offset (degrees) := 0\n");
    lr_lor_data_destroy(read_good(path, lors, 2));
    bins[9] = NAN;
    bytes_write(folder_file(&folder, path, "bins.s"), bins, sizeof(bins));
    assert_refused(folder_file(&folder, path, "a.hs"), lors, "holds nan in view 0");
    assert_refused("no/such.hs", lors, "No such file");
    bytes_write(path, "", 0);
    assert_refused(path, lors, "the header is empty");

    const char *const presets[] = {"two-opposed-modules"}; /* no ring */
    lr_scanner *flat = lr_scanner_read(presets[0], NULL);
    lr_lors *flat_lors = lors_of(flat);
    write_header(path, BY_VIEW, "");
    assert_refused(path, flat_lors, "is not one");
    struct test_log log;
    test_log_init(&log);
    lr_lor_data *data = lr_lor_data_create(flat_lors, NULL);
    assert_int_equal(lr_lor_data_write(path, flat_lors, data, &log.log), LR_BAD_INPUT);
    assert_non_null(strstr(log.error, "full rings of equal modules"));
    lr_lor_data_destroy(data);
    lr_lors_destroy(flat_lors);
    lr_scanner_destroy(flat);
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
    folder_finish(&folder);
}

/* Cut at any byte (the bins at each 64th) and with bytes replaced: data or a sentence. */
static void test_damage(void **state)
{
    (void)state;
    struct test_folder folder;
    char path[128], file[128];
    uint64_t seed = test_seed();
    folder_init(&folder);
    lr_scanner *scanner = top_ring();
    lr_lors *lors = lors_of(scanner);
    lr_lor_data *data = numbered(lors);
    for (int n = 0; n < 2; n++) {
        size_t count;
        folder_file(&folder, path, "a.hs");
        folder_file(&folder, file, n == 0 ? "a.hs" : "a.s");
        assert_int_equal(lr_lor_data_write(path, lors, data, NULL), LR_OK);
        unsigned char *bytes = bytes_read(file, &count);
        const size_t step = n == 0 ? 1 : count / 64;
        for (size_t length = 0; length < count; length += step) {
            struct test_log log;
            test_log_init(&log);
            bytes_write(file, bytes, length);
            lr_lor_data *back = lr_lor_data_read(path, lors, &log.log);
            const bool refused = back == NULL && log.status == LR_BAD_INPUT;
            if ((back == NULL && !refused) || (n == 1 && !refused)) {
                fail_msg("%s cut to %zu of %zu bytes: \"%s\"", file, length, count, log.error);
            }
            lr_lor_data_destroy(back);
        }
        for (int round = 0; round < (n == 0 ? 300 : 20); round++) {
            struct test_log log;
            test_log_init(&log);
            const size_t at = (size_t)(test_random(&seed) * (double)count);
            const unsigned char kept = bytes[at];
            bytes[at] = (unsigned char)(test_random(&seed) * 256);
            bytes_write(file, bytes, count);
            bytes[at] = kept;
            lr_lor_data *back = lr_lor_data_read(path, lors, &log.log);
            assert_true(back != NULL || log.status == LR_BAD_INPUT);
            lr_lor_data_destroy(back);
        }
        free(bytes);
    }
    assert_int_equal(folder_visit(&folder, true), 2);
    const struct rlimit before = disk_fill(20000);
    struct test_log log;
    test_log_init(&log);
    assert_int_equal(lr_lor_data_write(folder_file(&folder, path, "a.hs"), lors, data, &log.log),
                     LR_FAILED);
    disk_empty(before);
    assert_int_equal(log.status, LR_FAILED);
    assert_int_equal(folder_visit(&folder, false), 0);
    lr_lor_data_destroy(data);
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
    folder_finish(&folder);
}

/* --- real files --- */

static lr_status try_header(const char *name, const lr_scanner *scanner, struct test_log *log,
                            struct lr_projdata *projdata)
{
    char path[1024];
    struct lr_projdata_file file;
    if (test_data(path, name) == NULL) {
        skip();
    }
    test_log_init(log);
    const lr_status status = lr_projdata_read(projdata, &file, path, scanner, &log->log);
    if (status == LR_OK) {
        lr_projdata_file_finish(&file);
    }
    return status;
}

/* Headers of a Biograph mMR: the crystals are those of its list mode, and span 11 combines all 4,084
 * pairs of rings up to 60 apart. */
static void test_mmr_headers(void **state)
{
    (void)state;
    static const struct lr_sinogram_gaps one = {1, 0};
    const char *const names[] = {"interfile/Siemens_mMR_seg2.hs", "interfile/template_span11.hs"};
    const int planes[] = {314, 837}, ring_pairs[] = {314, 4084};
    lr_scanner *scanner = lr_scanner_read("siemens-mmr", NULL);
    struct lr_sinogram_rings list_mode;
    struct test_log log;
    assert_int_equal(lr_sinogram_rings_create(&list_mode, scanner, &one, "", NULL), LR_OK);
    for (int n = 0; n < 2; n++) {
        struct lr_projdata projdata;
        if (try_header(names[n], scanner, &log, &projdata) != LR_OK) {
            fail_msg("%s", log.error);
        }
        assert_int_equal(log.num_warnings, 0);
        assert_int_equal(projdata.rings.around, 504);
        assert_memory_equal(projdata.rings.crystals, list_mode.crystals, 504 * 64 * 4);
        assert_int_equal(lr_projdata_num_bins(&projdata), (int64_t)planes[n] * 252 * 344);
        assert_true(projdata.first_t == -172 && projdata.by_view && projdata.mashing == 1);
        int pairs[64][2], count = 0;
        bool *seen = calloc(64 * 64, sizeof(bool));
        for (int k = 0; k < projdata.num_segments; k++) {
            for (int axial = 0; axial < projdata.segments[k].num_axial; axial++) {
                const int more =
                    lr_projdata_ring_pairs(&projdata, &projdata.segments[k], axial, pairs);
                assert_true(more >= 1 && more <= (n == 0 ? 1 : 6));
                for (int m = 0; m < more; m++) {
                    assert_false(seen[pairs[m][0] * 64 + pairs[m][1]]);
                    seen[pairs[m][0] * 64 + pairs[m][1]] = true;
                }
                count += more;
            }
        }
        assert_int_equal(count, ring_pairs[n]);
        free(seen);
        lr_projdata_finish(&projdata);
    }
    lr_sinogram_rings_finish(&list_mode);
    lr_scanner_destroy(scanner);
}

static void test_other_headers(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"interfile/PET_TOF_Interfile_header_Signa_PETMR.hs", "time of flight"},
        {"interfile/smalllong.hs", "is arc-corrected"},
        {"interfile/mMR_sinogram.s.hdr", "no projection data as STIR writes them"},
    };
    lr_scanner *scanner = lr_scanner_read("siemens-mmr", NULL);
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        struct test_log log;
        struct lr_projdata projdata;
        assert_int_equal(try_header(cases[k][0], scanner, &log, &projdata), LR_BAD_INPUT);
        assert_non_null(strstr(log.error, cases[k][1]));
    }
    lr_scanner_destroy(scanner);
}

/* The bins of smalllong.s, taken as those of 128 crystals in 14 rings before arc correction: one
 * segment of ring differences -8 to 8. Its counts are neither lost nor moved to other rings. */
static void test_real_bins(void **state)
{
    (void)state;
    char path[1024], data[1024];
    size_t count;
    struct test_folder folder;
    if (test_data(path, "interfile/smalllong.hs") == NULL ||
        test_data(data, "interfile/smalllong.s") == NULL) {
        skip();
    }
    const int crystals[2] = {8, 14};
    const lr_ring ring = {.radius_mm = 300,
                          .modules = 16,
                          .first_angle_deg = 90 + 3.5 * 360 / 128,
                          .block_crystals = {&crystals[0], &crystals[1]},
                          .pitch_mm = {14.7, 6.54},
                          .face_mm = {14, 6},
                          .depth_mm = 20};
    lr_scanner *scanner = lr_scanner_create_ring(&(lr_scanner_params){.name = "small long"}, &ring);
    lr_lors *lors = lors_of(scanner);
    folder_init(&folder);
    unsigned char *text = bytes_read(path, &count);
    text[count] = '\0';
    memcpy(strstr((char *)text, "{arc correction}"), "{None}          ", 16);
    memcpy(strstr((char *)text, ":= 112") + 3, "128", 3);
    bytes_write(folder_file(&folder, path, "smalllong.hs"), text, count);
    free(text);
    text = bytes_read(data, &count);
    assert_int_equal(count, 27 * 64 * 75 * 4);
    bytes_write(folder_file(&folder, data, "smalllong.s"), text, count);
    const float *bins = (const float *)(const void *)text;
    lr_lor_data *found = read_good(path, lors, 3);
    lr_lor_data *dense = lr_lor_data_expand(found, lors, NULL);
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
    for (int axial = 0; axial < 27; axial++) {
        assert_close(sums[axial], expected[axial], 1e-5);
    }
    print_message("%.6g counts in %lld LORs\n", total, (long long)found->count);
    free(text);
    lr_lor_data_destroy(dense);
    lr_lor_data_destroy(found);
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
    folder_finish(&folder);
}

/* A real acquisition binned here by STIR's formula for the detectors that its records name, under
 * STIR's header with a crystal map: the same LORs as from the records. */
static void test_generic_geometry(void **state)
{
    (void)state;
    char events[1024], map[1024], header[1024];
    if (test_data(events, "safir/coincidencesLM.clm.safir") == NULL ||
        test_data(map, "safir/DualRingPrototype_crystal_map.txt") == NULL ||
        test_data(header, "safir/muppet.hs") == NULL) {
        skip();
    }
    enum { views = 90, bins = 160, rings = 16 };
    struct test_folder folder;
    char path[128];
    size_t count;
    folder_init(&folder);
    lr_scanner *scanner = lr_scanner_read("safir-dual-ring-prototype", NULL);
    lr_lors *lors = lors_of(scanner);
    lr_lor_data *expected = lr_safir_read(&(lr_safir_files){events, map}, lors, NULL, NULL);
    assert_non_null(expected);
    float *counts = calloc((size_t)rings * rings * views * bins, sizeof(float));
    unsigned char *records = bytes_read(events, &count);
    for (size_t at = 32; at + 8 <= count; at += 8) {
        uint64_t word;
        memcpy(&word, records + at, 8);
        if (word >> 62 != 0) {
            continue; /* time marks and delayed ones */
        }
        int ring[2] = {(int)(word & 255), (int)(word >> 8 & 255)};
        int det[2] = {(int)(word >> 16 & 65535), (int)(word >> 32 & 65535)};
        int t = (det[0] - det[1] + 270) % 180, view = (det[0] - (t >> 1) + 180) % 180;
        bool swap = false; /* STIR's own ranges, from its source */
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
        for (int s = -15; s < segment; s++) {
            plane += 16 - abs(s);
        }
        const int before = plane - (r1 < r2 ? r1 : r2), axials = 16 - abs(segment);
        if (t >= -80 && t < 80) { /* segment, view, axial, t */
            counts[((int64_t)before * views + view * axials + (plane - before)) * bins + t + 80]++;
        }
    }
    bytes_write(folder_file(&folder, path, "muppet.s"), counts,
                (size_t)rings * rings * views * bins * sizeof(float));
    free(records);
    records = bytes_read(map, &count);
    bytes_write(folder_file(&folder, path, "DualRingPrototype_crystal_map.txt"), records, count);
    free(records);
    records = bytes_read(header, &count);
    bytes_write(folder_file(&folder, path, "muppet.hs"), records, count);
    struct test_log log;
    test_log_init(&log);
    lr_lor_data *found = lr_lor_data_read(path, lors, &log.log);
    if (found == NULL) {
        fail_msg("%s", log.error);
    }
    print_message("%lld LORs with counts\n", (long long)found->count);
    assert_same_counts(lors, expected, found);
    free(records);
    free(counts);
    lr_lor_data_destroy(expected);
    lr_lor_data_destroy(found);
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
    folder_finish(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bins),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_compressed),
        cmocka_unit_test(test_view_offset),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_mmr_headers),
        cmocka_unit_test(test_other_headers),
        cmocka_unit_test(test_real_bins),
        cmocka_unit_test(test_generic_geometry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

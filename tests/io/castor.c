/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * CASToR's data: the order of crystals, list mode and histograms written and read back, hand-made events with every
 * flag, and damaged files. */
#include "io/lists.h"
#include "io/scanners.h"
#include "io/scanners/castor_order.h"
#include "io/text_cases.h"

#define HEADER "castor_test.Cdh"
#define DATA "castor_test.Cdf"
#define SCANNER "castor_test_scanner"

enum { AROUND = 21, RINGS = 4, CRYSTALS = AROUND * RINGS };

static int order[CRYSTALS]; /* index of each crystal of the scanner in CASToR's files */

/* Two rings whose first module is not at +x, with different numbers of crystals along u and v: no order equals its
 * mirror image. */
static int set_up(void **state)
{
    files_begin_with(state, scanner_of("name: 'heptagon: small'\nring: {radius_mm: 50, modules: 7, first_angle_deg: "
                                       "33, rings: 2, ring_pitch_mm: 11}\n"
                                       "module: {crystals: [3, 2], pitch_mm: [4, 5], face_mm: [3.5, 4], depth_mm: "
                                       "10}\ntof: {resolution_ps: 400}\n"));
    return lr_castor_order(files.lors->scanner, order, NULL) != LR_OK;
}

/* --- the order --- */

/* Rings ascend along z; within a ring, azimuths ascend from the azimuth of the first module. */
static void crystals_go_by_ring_and_azimuth(void **state)
{
    int place[CRYSTALS];
    assert_int_equal(files.lors->scanner->num_crystals, CRYSTALS);
    for (int n = 0; n < CRYSTALS; n++) place[order[n]] = n;
    double last_z = -INFINITY, last_angle = 0;
    for (int n = 0; n < CRYSTALS; n++) {
        double centre[3];
        lr_scanner_crystal_centre(files.lors->scanner, order[n], centre);
        /* counted from half a module before the middle of the first module */
        const double angle = fmod(atan2(centre[1], centre[0]) - (33 - 180.0 / 7) * pi / 180 + 4 * pi, 2 * pi);
        assert_true(angle > (n % AROUND == 0 ? 0 : last_angle));
        assert_true(n % AROUND == 0 ? centre[2] > last_z + 1 : fabs(centre[2] - last_z) < 1e-9);
        assert_int_equal(place[order[n]], n);
        last_angle = angle;
        last_z = centre[2];
    }
}

/* Writes the scanner's table and its header, and returns the rows. */
static float (*write_table(void))[6]
{
    size_t count;
    assert_int_equal(lr_scanner_write(SCANNER ".hscan", files.lors->scanner, &files.log.log), LR_OK);
    float(*rows)[6] = (float(*)[6])(void *)bytes_read(SCANNER ".lut", &count); /* on a little-endian machine */
    assert_int_equal(count, CRYSTALS * sizeof(*rows));
    return rows;
}

/* The table of the scanner lists its crystals in this order, with x reversed. */
static void tables_have_the_same_order(void **state)
{
    float(*rows)[6] = write_table();
    for (int c = 0; c < CRYSTALS; c++) {
        double centre[3];
        lr_scanner_crystal_centre(files.lors->scanner, order[c], centre);
        assert_true(fabs(rows[c][0] + centre[0]) < 1e-5 && fabs(rows[c][1] - centre[1]) < 1e-5 &&
                    fabs(rows[c][2] - centre[2]) < 1e-5);
    }
}

/* --- list mode --- */

enum { COUNT = 500 };

static void fill_events(const lr_scanner *scanner, lr_event events[COUNT], bool tof)
{
    uint64_t seed = test_seed();
    for (int k = 0; k < COUNT; k++) {
        events[k] = (lr_event){.weight = 1, .time_ms = (uint32_t)(k * 5)};
        events[k].crystals[0] = (int32_t)(test_random(&seed) * scanner->num_crystals);
        events[k].crystals[1] = (int32_t)(test_random(&seed) * scanner->num_crystals);
        events[k].tof_mm = tof ? (float)(80 * test_random(&seed) - 40) : 0;
    }
}

static void write_events(const lr_event *events, const lr_events_info *info)
{
    lr_events_writer_params params = {.path = HEADER, .lors = files.lors, .info = info, .log = &files.log.log};
    write_list(&params, events, COUNT);
}

static lr_event_list *read_list(const lr_scanner *scanner)
{
    assert_int_equal(lr_events_recognise(HEADER), LR_EVENTS_CASTOR);
    return list_of((lr_events_source){.path = HEADER, .scanner = scanner});
}

/* tof_mm is converted to ps and back, each time in single precision: the error is up to 2 * 2^-24 of 40 mm. */
static void list_mode_comes_back(void **state)
{
    lr_event events[COUNT];
    for (int tof = 0; tof < 2; tof++) {
        const lr_events_info info = {.has_tof = tof != 0, .tof_resolution_ps = tof ? 250 : 0, .duration_s = 12.5};
        fill_events(files.lors->scanner, events, tof != 0);
        write_events(events, &info);
        lr_event_list *list = read_list(files.lors->scanner);
        assert_pairs(0, {list->count, COUNT}, {list->info.has_tof, tof});
        assert_all(list->info.tof_resolution_ps == (tof ? 250 : 0), list->info.duration_s == 12.5);
        assert_string_equal(list->info.version, "list mode");
        assert_string_equal(list->info.scanner, "heptagon__small");
        for (int k = 0; k < COUNT; k++) {
            assert_pairs(0, {list->events[k].crystals[0], events[k].crystals[0]},
                         {list->events[k].crystals[1], events[k].crystals[1]},
                         {list->events[k].time_ms, events[k].time_ms});
            assert_true(fabs(list->events[k].tof_mm - events[k].tof_mm) < 1e-5);
        }
    }
}

/* Crystals follow the order of a table that no scanner of ours has: its rows are reversed, and one crystal lies
   elsewhere. */
static void tables_name_crystals(void **state)
{
    static float turned[CRYSTALS][6];
    float(*rows)[6] = write_table();
    for (int c = 0; c < CRYSTALS; c++) memcpy(turned[CRYSTALS - 1 - c], rows[c], sizeof(rows[c]));
    memset(turned[5], 0, sizeof(turned[5]));
    bytes_write(SCANNER ".lut", turned, sizeof(turned));
    text_write(HEADER,
               "Data filename: " DATA "\nNumber of events: 2\nData mode: list-mode\nScanner name: " SCANNER "\n");
    const uint32_t words[6] = {0, 3, 40, 0, 5, 41};
    bytes_write(DATA, words, sizeof(words));
    lr_event_list *list = read_list(files.lors->scanner);
    assert_pairs(0, {list->count, 1}, {list->events[0].crystals[0], order[80]},
                 {list->events[0].crystals[1], order[43]}, {list->info.counts.unknown_crystals, 1},
                 {files.log.num_warnings, 2});
    bytes_write(SCANNER ".lut", turned, sizeof(turned) - 1);
    refuse_events((lr_events_source){.path = HEADER, .scanner = files.lors->scanner}, NULL, "truncated");
}

/* Delayed events are left out, with a warning. */
static void delayeds_are_told(void **state)
{
    lr_event events[COUNT];
    fill_events(files.lors->scanner, events, false);
    for (int k = 0; k < COUNT; k += 5) events[k].is_delayed = true;
    test_log_init(&files.log);
    write_events(events, NULL);
    assert_warning(&files.log, "100 delayed coincidences are left out");
    lr_event_list *list = read_list(files.lors->scanner);
    assert_pairs(0, {list->count, COUNT - 100}, {list->events[0].crystals[0], events[1].crystals[0]});
}

/* --- events by hand, on a little-endian machine --- */

static unsigned char *put_word(unsigned char *at, uint32_t word)
{
    memcpy(at, &word, 4);
    return at + 4;
}

static unsigned char *put_float(unsigned char *at, float value)
{
    memcpy(at, &value, 4);
    return at + 4;
}

/* Time 7 ms, [attenuation], [kind], [scatter], [randoms], [normalization], [time of flight of 1 ns], crystals 3 and
 * 40; every subset of the optional fields. */
static void every_flag_moves_the_rest(void **state)
{
    for (unsigned flags = 0; flags < 64; flags++) {
        unsigned char bytes[64], *at = put_word(bytes, 7);
        char text[1024];
        at = flags & 1 ? put_float(at, 1.5f) : at;
        if (flags & 2) *at++ = 3;
        at = flags & 4 ? put_float(at, 0.25f) : at;
        at = flags & 8 ? put_float(at, 0.125f) : at;
        at = flags & 16 ? put_float(at, 0.75f) : at;
        at = flags & 32 ? put_float(at, 1000) : at;
        at = put_word(put_word(at, 3), 40);
        bytes_write(DATA, bytes, (size_t)(at - bytes));
        snprintf(
            text, sizeof(text),
            "# a header\nScanner name: x\nData filename: " DATA
            "\nNumber of events:  1 \nData mode: list-mode # or histogram\n"
            "Data type: PET\nAttenuation correction flag: %u\nCoincidence kind flag: %u\nScatter correction flag: %u\n"
            "Random correction flag: %u\nNormalization correction flag: %u\nTOF information flag: %u\n"
            "List TOF quantization bin size (ps): 160\nCalibration factor: 1\nDuration (s): 3\n",
            flags & 1, flags >> 1 & 1, flags >> 2 & 1, flags >> 3 & 1, flags >> 4 & 1, flags >> 5 & 1);
        text_write(HEADER, text);
        lr_event_list *list = read_list(files.lors->scanner);
        assert_int_equal(list->count, 1);
        const lr_event *event = &list->events[0];
        assert_pairs(0, {event->time_ms, 7}, {event->crystals[0], order[3]}, {event->crystals[1], order[40]});
        /* The photon reached the first crystal 1 ns later: the place is 149.9 mm nearer to the second crystal. */
        assert_true(fabs(event->tof_mm - (flags & 32 ? 149.896229 : 0)) < 1e-4);
        assert_true(fabs(lr_events_info_tof_bin_mm(&list->info) - (flags & 32 ? 160 * 0.149896229 : 0)) < 1e-9);
        assert_int_equal(files.log.num_warnings, (flags & 29) != 0);
        assert_true(!(flags & 4) || strstr(files.log.warning, "scatter rates") != NULL);
    }
}

/* Two events with three time-of-flight bins of 200 ps and scatter: the first has counts 4, 0 and 2.5, the second
   none. */
static void histograms_have_bins(void **state)
{
    static const float counts[3] = {4, 0, 2.5f};
    unsigned char bytes[2 * 36], *at = bytes;
    for (int n = 0; n < 2; n++) {
        at = put_word(at, 0);
        for (int b = 0; b < 3; b++) at = put_float(put_float(at, n == 0 ? counts[b] : 0), 0.01f);
        at = put_word(put_word(at, 50), 2);
    }
    bytes_write(DATA, bytes, (size_t)(at - bytes));
    text_write(HEADER, "Data filename: " DATA "\nNumber of events: 2\nData mode: histogram\n"
                       "Scatter correction flag: 1\nHisto TOF number of bins: 3\nHisto TOF bin size (ps): 200\n");
    lr_event_list *list = read_list(NULL); /* numbers of the file */
    assert_pairs(0, {list->count, 2}, {list->info.counts.prompts, 2});
    assert_true(list->info.weight == 6.5);
    assert_pairs(0, {list->events[0].crystals[0], 50}, {list->events[1].crystals[1], 2});
    assert_true(list->events[0].weight == 4 && list->events[1].weight == 2.5f);
    assert_true(fabs(list->events[0].tof_mm + 200 * 0.149896229) < 1e-4);
    assert_true(fabs(list->events[1].tof_mm - 200 * 0.149896229) < 1e-4);
    assert_int_equal(list->info.num_tof_bins, 3);
    assert_close(lr_events_info_tof_bin_mm(&list->info), 200 * 0.149896229, 1e-6);
}

/* Sparse and dense data, with integers and with fractions: the sums read are those written. */
static void histograms_come_back(void **state)
{
    lr_lor_data *dense = keep(lr_lor_data_create(files.lors, NULL));
    uint64_t seed = test_seed();
    int64_t filled = 0;
    for (int64_t k = 0; k < dense->count; k++) {
        dense->values[k] = test_random(&seed) < 0.1 ? (float)(9 * test_random(&seed)) : 0;
        filled += dense->values[k] != 0;
    }
    const lr_castor_histogram histogram = {dense, 30};
    assert_int_equal(lr_castor_histogram_write(HEADER, files.lors, &histogram, &files.log.log), LR_OK);
    const lr_prompts_delayeds data = bin_events((lr_events_source){.path = HEADER}, files.lors);
    assert_int_equal(data.prompts->count, filled);
    for (int64_t k = 0; k < filled; k++) assert_true(data.prompts->values[k] == dense->values[data.prompts->index[k]]);
    const lr_castor_histogram sparse = {data.prompts, 30};
    assert_int_equal(lr_castor_histogram_write(HEADER, files.lors, &sparse, NULL), LR_OK);
    const lr_prompts_delayeds again = bin_events((lr_events_source){.path = HEADER}, files.lors);
    assert_int_equal(again.prompts->count, filled);
    assert_memory_equal(again.prompts->values, data.prompts->values, sizeof(float) * (size_t)filled);
}

/* --- damaged files --- */

static void expect(const char *text, const char *sentence)
{
    text_write(HEADER, text);
    refuse_events((lr_events_source){.path = HEADER, .format = LR_EVENTS_CASTOR, .scanner = files.lors->scanner}, NULL,
                  sentence);
}

#define NAMED "Data filename: " DATA "\nNumber of events: 2\n"
#define GOOD NAMED "Data mode: list-mode\n"

static void bad_headers_are_refused(void **state)
{
    uint32_t words[6] = {0, 0, 1, 0, 0, CRYSTALS};
    bytes_write(DATA, words, sizeof(words));
    for (struct text_cases cases = cases_of(IO_CASES, "castor"); next_case(&cases);)
        expect(cases.fields[1], cases.fields[0]);
    words[2] = CRYSTALS;
    bytes_write(DATA, words, sizeof(words));
    expect(GOOD, "2 of 2 events name crystals that heptagon: small lacks, first event 0");
}

static void events_before_the_end_are_read(void **state)
{
    lr_event events[COUNT];
    fill_events(files.lors->scanner, events, false);
    write_events(events, NULL);
    lr_event_list *list = read_list(files.lors->scanner);
    const lr_events_source source = {.path = HEADER, .scanner = files.lors->scanner};
    for (int bytes = COUNT * 12 - 1; bytes > 0; bytes = bytes > 40 ? bytes - bytes / 3 : bytes - 1) {
        char said[64];
        snprintf(said, sizeof(said), "it ends at byte %d, within event %d of", bytes, bytes / 12);
        assert_int_equal(truncate(DATA, bytes), 0);
        check_cut(&source, list, bytes / 12, said);
    }
}

/* Times and counts that are infinite or NaN. */
static void numbers_must_be_finite(void **state)
{
    unsigned char bytes[16], *at = put_word(bytes, 0);
    put_word(put_word(put_float(at, NAN), 1), 2);
    bytes_write(DATA, bytes, sizeof(bytes));
    expect("Data filename: " DATA "\nNumber of events: 1\nData mode: histogram\n",
           "event 0, at byte 0, has the counts nan");
    expect("Data filename: " DATA "\nNumber of events: 1\nData mode: list-mode\nTOF information flag: 1\n",
           "event 0, at byte 0, has the time of flight nan");
}

group_main("io castor", set_up, files_end,
           EACH(cmocka_unit_test, crystals_go_by_ring_and_azimuth, tables_have_the_same_order, list_mode_comes_back,
                tables_name_crystals, delayeds_are_told, every_flag_moves_the_rest, histograms_have_bins,
                histograms_come_back, bad_headers_are_refused, events_before_the_end_are_read, numbers_must_be_finite))

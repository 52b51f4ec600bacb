/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * CASToR's data: the order of crystals, list mode and histograms written and read back, events
 * made by hand with every flag, and damaged files. */
#include "io/until_damage.h"
#include "test.h"

#include "io/scanners/castor_order.h"

#include <sys/stat.h>
#include <unistd.h>

#define HEADER "castor_test.Cdh"
#define DATA "castor_test.Cdf"
#define SCANNER "castor_test_scanner"

static const double pi = 3.14159265358979323846;

struct fixture {
    lr_scanner *scanner;
    lr_lors *lors;
    struct test_log log;
};

/* Two rings, the first module not at +x, unlike counts along u and v: no order is like its mirror
 * image. */
static int set_up(void **state)
{
    static struct fixture fixture;
    static const int crystals[2] = {3, 2};
    test_log_init(&fixture.log);
    const lr_ring ring = {.radius_mm = 50,
                          .modules = 7,
                          .first_angle_deg = 33,
                          .rings = 2,
                          .ring_pitch_mm = 11,
                          .block_crystals = {&crystals[0], &crystals[1]},
                          .pitch_mm = {4, 5},
                          .face_mm = {3.5, 4},
                          .depth_mm = 10};
    const lr_scanner_params params = {.name = "heptagon: small", .tof_resolution_ps = 400, .log = &fixture.log.log};
    fixture.scanner = lr_scanner_create_ring(&params, &ring);
    fixture.lors = lr_lors_create(fixture.scanner, &fixture.log.log);
    *state = &fixture;
    return fixture.lors == NULL;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    lr_lors_destroy(fixture->lors);
    lr_scanner_destroy(fixture->scanner);
    remove(HEADER);
    remove(DATA);
    return 0;
}

static void write_file(const char *path, const void *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static void write_header(const char *text)
{
    write_file(HEADER, text, strlen(text));
}

static void centre_of(const lr_scanner *scanner, int crystal, double centre[3])
{
    const int m = lr_scanner_module_of(scanner, crystal);
    const lr_module *module = &scanner->modules[m];
    const int within = crystal - scanner->first_crystal[m];
    lr_module_crystal_centre(module, within % module->crystals[0], within / module->crystals[0], centre);
}

/* --- the order --- */

/* Rings ascend along z; around a ring azimuths ascend from the first module's. */
static void crystals_go_by_ring_and_azimuth(void **state)
{
    struct fixture *fixture = *state;
    const lr_scanner *scanner = fixture->scanner;
    enum { AROUND = 21, RINGS = 4 };
    int order[AROUND * RINGS], place[AROUND * RINGS];
    assert_int_equal(scanner->num_crystals, AROUND * RINGS);
    assert_int_equal(lr_castor_order(scanner, order, NULL), LR_OK);
    lr_castor_place(order, AROUND * RINGS, place);
    double last_z = -INFINITY;
    for (int ring = 0; ring < RINGS; ring++) {
        double last_angle = 0;
        for (int k = 0; k < AROUND; k++) {
            double centre[3];
            centre_of(scanner, order[ring * AROUND + k], centre);
            /* from half a module before the first one's middle */
            const double angle = fmod(atan2(centre[1], centre[0]) - (33 - 180.0 / 7) * pi / 180 + 4 * pi, 2 * pi);
            assert_true(angle > last_angle);
            assert_true(k == 0 ? centre[2] > last_z + 1 : fabs(centre[2] - last_z) < 1e-9);
            assert_int_equal(place[order[ring * AROUND + k]], ring * AROUND + k);
            last_angle = angle;
            last_z = centre[2];
        }
    }
}

/* The table of the scanner lists its crystals in this order, x reversed. */
static void tables_have_the_same_order(void **state)
{
    struct fixture *fixture = *state;
    const lr_scanner *scanner = fixture->scanner;
    int order[84];
    unsigned char row[24];
    assert_int_equal(lr_castor_order(scanner, order, NULL), LR_OK);
    assert_int_equal(lr_scanner_write(SCANNER ".hscan", scanner, &fixture->log.log), LR_OK);
    FILE *file = fopen(SCANNER ".lut", "rb");
    assert_non_null(file);
    for (int c = 0; c < 84; c++) {
        double centre[3];
        float found[3];
        assert_int_equal(fread(row, 1, sizeof(row), file), sizeof(row));
        memcpy(found, row, sizeof(found)); /* a little-endian machine */
        centre_of(scanner, order[c], centre);
        assert_true(fabs(found[0] + centre[0]) < 1e-5);
        assert_true(fabs(found[1] - centre[1]) < 1e-5 && fabs(found[2] - centre[2]) < 1e-5);
    }
    assert_int_equal(fread(row, 1, 1, file), 0);
    fclose(file);
    remove(SCANNER ".lut");
    remove(SCANNER ".hscan");
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

static void write_events(struct fixture *fixture, const lr_event *events, const lr_events_info *info)
{
    const lr_events_writer_params params = {
        .path = HEADER, .lors = fixture->lors, .info = info, .log = &fixture->log.log};
    lr_events_writer *writer = lr_events_writer_create(&params);
    assert_non_null(writer);
    const lr_event_sink sink = lr_events_writer_sink(writer);
    assert_int_equal(sink.take(sink.user, events, COUNT), LR_OK);
    assert_int_equal(lr_events_writer_finish(writer), LR_OK);
}

static lr_event_list *read_list(struct fixture *fixture, const lr_scanner *scanner)
{
    const lr_events_source source = {.path = HEADER, .scanner = scanner, .log = &fixture->log.log};
    test_log_init(&fixture->log);
    assert_int_equal(lr_events_recognise(HEADER), LR_EVENTS_CASTOR);
    lr_event_list *list = lr_event_list_read(&source);
    if (list == NULL) fail_msg("%s", fixture->log.error);
    return list;
}

/* Places go through ps and back, each time in single precision: 2 * 2^-24 of 40 mm. */
static void list_mode_comes_back(void **state)
{
    struct fixture *fixture = *state;
    lr_event events[COUNT];
    for (int tof = 0; tof < 2; tof++) {
        const lr_events_info info = {.has_tof = tof != 0, .tof_resolution_ps = tof ? 250 : 0, .duration_s = 12.5};
        fill_events(fixture->scanner, events, tof != 0);
        write_events(fixture, events, &info);
        lr_event_list *list = read_list(fixture, fixture->scanner);
        assert_int_equal(list->count, COUNT);
        assert_int_equal(list->info.has_tof, tof);
        assert_true(list->info.tof_resolution_ps == (tof ? 250 : 0));
        assert_true(list->info.duration_s == 12.5);
        assert_string_equal(list->info.version, "list mode");
        assert_string_equal(list->info.scanner, "heptagon__small");
        for (int k = 0; k < COUNT; k++) {
            assert_int_equal(list->events[k].crystals[0], events[k].crystals[0]);
            assert_int_equal(list->events[k].crystals[1], events[k].crystals[1]);
            assert_int_equal(list->events[k].time_ms, events[k].time_ms);
            assert_true(fabs(list->events[k].tof_mm - events[k].tof_mm) < 1e-5);
        }
        lr_event_list_destroy(list);
    }
}

/* Crystals in the order of a table, which is none of ours: its rows reversed, and one elsewhere. */
static void tables_name_crystals(void **state)
{
    struct fixture *fixture = *state;
    const lr_scanner *scanner = fixture->scanner;
    static unsigned char rows[84][24], turned[84][24];
    int order[84];
    assert_int_equal(lr_castor_order(scanner, order, NULL), LR_OK);
    assert_int_equal(lr_scanner_write(SCANNER ".hscan", scanner, &fixture->log.log), LR_OK);
    FILE *file = fopen(SCANNER ".lut", "rb");
    assert_int_equal(fread(rows, 1, sizeof(rows), file), sizeof(rows));
    fclose(file);
    for (int c = 0; c < 84; c++) memcpy(turned[83 - c], rows[c], 24);
    memset(turned[5], 0, 24);
    write_file(SCANNER ".lut", turned, sizeof(turned));
    write_header("Data filename: " DATA "\nNumber of events: 2\nData mode: list-mode\n"
                 "Scanner name: " SCANNER "\n");
    unsigned char bytes[24] = {0};
    const uint32_t ids[2][2] = {{3, 40}, {5, 41}};
    for (int n = 0; n < 2; n++)
        for (int k = 0; k < 8; k++) bytes[12 * n + 4 + k] = (unsigned char)(ids[n][k / 4] >> (8 * (k % 4)));
    write_file(DATA, bytes, sizeof(bytes));
    lr_event_list *list = read_list(fixture, scanner);
    assert_int_equal(list->count, 1);
    assert_int_equal(list->events[0].crystals[0], order[80]);
    assert_int_equal(list->events[0].crystals[1], order[43]);
    assert_int_equal(list->info.counts.unknown_crystals, 1);
    assert_int_equal(fixture->log.num_warnings, 2);
    lr_event_list_destroy(list);
    write_file(SCANNER ".lut", turned, sizeof(turned) - 1);
    const lr_events_source source = {.path = HEADER, .scanner = scanner, .log = &fixture->log.log};
    assert_null(lr_event_list_read(&source));
    assert_non_null(strstr(fixture->log.error, "truncated"));
    remove(SCANNER ".lut");
    remove(SCANNER ".hscan");
}

/* Delayeds are left out and told of. */
static void delayeds_are_told(void **state)
{
    struct fixture *fixture = *state;
    lr_event events[COUNT];
    fill_events(fixture->scanner, events, false);
    for (int k = 0; k < COUNT; k += 5) events[k].is_delayed = true;
    test_log_init(&fixture->log);
    write_events(fixture, events, NULL);
    assert_non_null(strstr(fixture->log.warning, "100 delayed coincidences are left out"));
    lr_event_list *list = read_list(fixture, fixture->scanner);
    assert_int_equal(list->count, COUNT - 100);
    assert_int_equal(list->events[0].crystals[0], events[1].crystals[0]);
    lr_event_list_destroy(list);
}

/* --- events by hand --- */

static unsigned char *put_word(unsigned char *at, uint32_t word)
{
    for (int k = 0; k < 4; k++) *at++ = (unsigned char)(word >> (8 * k));
    return at;
}

static unsigned char *put_float(unsigned char *at, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return put_word(at, bits);
}

/* Time 7 ms, [attenuation], [kind], [scatter], [randoms], [normalization], [time of flight of 1 ns],
 * crystals 3 and 40; every subset of the flags. */
static void every_flag_moves_the_rest(void **state)
{
    struct fixture *fixture = *state;
    int order[84];
    assert_int_equal(lr_castor_order(fixture->scanner, order, NULL), LR_OK);
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
        write_file(DATA, bytes, (size_t)(at - bytes));
        snprintf(text, sizeof(text),
                 "# a header\nScanner name: x\nData filename: " DATA "\nNumber of events:  1 \n"
                 "Data mode: list-mode # or histogram\nData type: PET\n"
                 "Attenuation correction flag: %u\nCoincidence kind flag: %u\n"
                 "Scatter correction flag: %u\nRandom correction flag: %u\n"
                 "Normalization correction flag: %u\nTOF information flag: %u\n"
                 "List TOF quantization bin size (ps): 160\n"
                 "Calibration factor: 1\nDuration (s): 3\n",
                 flags & 1, flags >> 1 & 1, flags >> 2 & 1, flags >> 3 & 1, flags >> 4 & 1, flags >> 5 & 1);
        write_header(text);
        lr_event_list *list = read_list(fixture, fixture->scanner);
        assert_int_equal(list->count, 1);
        const lr_event *event = &list->events[0];
        assert_int_equal(event->time_ms, 7);
        assert_int_equal(event->crystals[0], order[3]);
        assert_int_equal(event->crystals[1], order[40]);
        /* 1 ns later at the first crystal: 149.9 mm nearer to the second. */
        assert_true(fabs(event->tof_mm - (flags & 32 ? 149.896229 : 0)) < 1e-4);
        assert_true(fabs(lr_events_info_tof_bin_mm(&list->info) - (flags & 32 ? 160 * 0.149896229 : 0)) < 1e-9);
        assert_int_equal(fixture->log.num_warnings, (flags & 29) != 0);
        assert_true(!(flags & 4) || strstr(fixture->log.warning, "scatter rates") != NULL);
        lr_event_list_destroy(list);
    }
}

/* Two events of three bins of 200 ps with scatter: 4 and 0 and 2.5 counts, then none. */
static void histograms_have_bins(void **state)
{
    struct fixture *fixture = *state;
    static const float counts[3] = {4, 0, 2.5f};
    unsigned char bytes[2 * 36], *at = bytes;
    for (int n = 0; n < 2; n++) {
        at = put_word(at, 0);
        for (int b = 0; b < 3; b++) at = put_float(put_float(at, n == 0 ? counts[b] : 0), 0.01f);
        at = put_word(put_word(at, 50), 2);
    }
    write_file(DATA, bytes, (size_t)(at - bytes));
    write_header("Data filename: " DATA "\nNumber of events: 2\nData mode: histogram\n"
                 "Scatter correction flag: 1\nHisto TOF number of bins: 3\n"
                 "Histo TOF bin size (ps): 200\n");
    lr_event_list *list = read_list(fixture, NULL); /* numbers of the file */
    assert_int_equal(list->count, 2);
    assert_int_equal(list->info.counts.prompts, 2);
    assert_true(list->info.weight == 6.5);
    assert_int_equal(list->events[0].crystals[0], 50);
    assert_int_equal(list->events[1].crystals[1], 2);
    assert_true(list->events[0].weight == 4 && list->events[1].weight == 2.5f);
    assert_true(fabs(list->events[0].tof_mm + 200 * 0.149896229) < 1e-4);
    assert_true(fabs(list->events[1].tof_mm - 200 * 0.149896229) < 1e-4);
    assert_int_equal(list->info.num_tof_bins, 3);
    assert_close(lr_events_info_tof_bin_mm(&list->info), 200 * 0.149896229, 1e-6);
    lr_event_list_destroy(list);
}

/* Sparse and dense data, whole and broken numbers: the same sums come back. */
static void histograms_come_back(void **state)
{
    struct fixture *fixture = *state;
    lr_lor_data *dense = lr_lor_data_create(fixture->lors, NULL);
    uint64_t seed = test_seed();
    int64_t filled = 0;
    for (int64_t k = 0; k < dense->count; k++) {
        dense->values[k] = test_random(&seed) < 0.1 ? (float)(9 * test_random(&seed)) : 0;
        filled += dense->values[k] != 0;
    }
    const lr_castor_histogram histogram = {dense, 30};
    assert_int_equal(lr_castor_histogram_write(HEADER, fixture->lors, &histogram, &fixture->log.log), LR_OK);
    lr_prompts_delayeds data;
    const lr_events_source source = {.path = HEADER, .log = &fixture->log.log};
    assert_int_equal(lr_events_bin(&source, fixture->lors, &data, NULL), LR_OK);
    assert_int_equal(data.prompts->count, filled);
    for (int64_t k = 0; k < filled; k++) assert_true(data.prompts->values[k] == dense->values[data.prompts->index[k]]);
    const lr_castor_histogram sparse = {data.prompts, 30};
    assert_int_equal(lr_castor_histogram_write(HEADER, fixture->lors, &sparse, NULL), LR_OK);
    lr_prompts_delayeds again;
    assert_int_equal(lr_events_bin(&source, fixture->lors, &again, NULL), LR_OK);
    assert_int_equal(again.prompts->count, filled);
    assert_memory_equal(again.prompts->values, data.prompts->values, sizeof(float) * (size_t)filled);
    lr_lor_data_destroy(data.prompts);
    lr_lor_data_destroy(data.delayeds);
    lr_lor_data_destroy(again.prompts);
    lr_lor_data_destroy(again.delayeds);
    lr_lor_data_destroy(dense);
}

/* --- what can be wrong --- */

static lr_status drop(void *user, const lr_event *events, int64_t count)
{
    (void)events;
    *(int64_t *)user += count;
    return LR_OK;
}

static lr_status read_file(struct fixture *fixture)
{
    int64_t count = 0;
    const lr_event_sink sink = {.take = drop, .user = &count};
    const lr_events_source source = {
        .path = HEADER, .format = LR_EVENTS_CASTOR, .scanner = fixture->scanner, .log = &fixture->log.log};
    test_log_init(&fixture->log);
    return lr_events_read(&source, &sink, NULL);
}

static void expect(struct fixture *fixture, const char *text, const char *sentence)
{
    write_header(text);
    if (read_file(fixture) != LR_BAD_INPUT || fixture->log.status != LR_BAD_INPUT ||
        strstr(fixture->log.error, sentence) == NULL)
        fail_msg("expected '%s', found '%s'", sentence, fixture->log.error);
}

#define GOOD "Data filename: " DATA "\nNumber of events: 2\nData mode: list-mode\n"

static void bad_headers_are_refused(void **state)
{
    struct fixture *fixture = *state;
    unsigned char bytes[24] = {0};
    put_word(bytes + 8, 1);
    put_word(bytes + 20, 84);
    write_file(DATA, bytes, sizeof(bytes));
    expect(fixture, "", "the header is empty");
    expect(fixture, "ring: {}\n", "is no CASToR data header");
    expect(fixture, "Data filename: " DATA "\nData mode: list-mode\n", "'number of events' is missing");
    expect(fixture, "Data filename: " DATA "\nNumber of events: 2\n", "has no 'Data mode'");
    expect(fixture, "Data filename:\nNumber of events: 2\nData mode: list-mode\n", "names no data file");
    expect(fixture, "Data filename: gone.Cdf\nNumber of events: 2\nData mode: list-mode\n",
           "gone.Cdf, which castor_test.Cdh names, cannot be opened");
    expect(fixture, "Data filename: .\nNumber of events: 2\nData mode: list-mode\n", "is no regular file");
    expect(fixture, "Data filename: " DATA "\nNumber of events: two\nData mode: list-mode\n",
           "'number of events' must be a whole number, found 'two'");
    expect(fixture, "Data filename: " DATA "\nNumber of events: -2\nData mode: list-mode\n",
           "'number of events' is -2: it must lie between 0");
    expect(fixture, "Data filename: " DATA "\nNumber of events: 1e18\nData mode: list-mode\n",
           "'number of events' is 1e+18: it must lie between 0");
    expect(fixture, "Data filename: " DATA "\nNumber of events: 2\nData mode: normalization\n",
           "data mode 'normalization'");
    expect(fixture, GOOD "Data type: SPECT\n", "only PET");
    expect(fixture, GOOD "Maximum number of lines per event: 4\n", "'maximum number of lines per event' is 4");
    expect(fixture, GOOD "Emission point flag: 1\n", "points of interaction");
    expect(fixture, GOOD "TOF information flag: 2\n", "'tof information flag' is 2");
    expect(fixture, GOOD "TOF information flag: 1\n", "it ends at byte 24, within event 1 of the 2");
    expect(fixture, GOOD "Histo TOF number of bins: 100000000\n", "'histo tof number of bins'");
    expect(fixture,
           "Data filename: " DATA "\nNumber of events: 2\nData mode: histogram\n"
           "Histo TOF number of bins: 5\n",
           "no 'Histo TOF bin size (ps)'");
    put_word(bytes + 8, 84);
    write_file(DATA, bytes, sizeof(bytes));
    expect(fixture, GOOD, "2 of 2 events name crystals that heptagon: small lacks, first event 0");
    remove(HEADER);
    assert_int_equal(read_file(fixture), LR_BAD_INPUT);
    assert_int_equal(mkdir(HEADER, 0777), 0);
    assert_int_equal(read_file(fixture), LR_BAD_INPUT);
    assert_non_null(strstr(fixture->log.error, "is a folder"));
    rmdir(HEADER);
    assert_int_equal(symlink("nowhere", HEADER), 0);
    assert_int_equal(read_file(fixture), LR_BAD_INPUT);
    remove(HEADER);
}

static size_t read_whole(const char *path, unsigned char *bytes, size_t room)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t count = fread(bytes, 1, room, file);
    fclose(file);
    return count;
}

static void truncated_files_are_refused(void **state)
{
    struct fixture *fixture = *state;
    static unsigned char data[COUNT * 16], header[4096];
    lr_event events[COUNT];
    fill_events(fixture->scanner, events, false);
    write_events(fixture, events, NULL);
    const size_t data_count = read_whole(DATA, data, sizeof(data));
    const size_t header_count = read_whole(HEADER, header, sizeof(header));
    assert_int_equal(data_count, COUNT * 12);
    for (size_t k = 0; k < 64; k++) {
        write_file(DATA, data, data_count * k / 64);
        assert_int_equal(read_file(fixture), LR_BAD_INPUT);
    }
    write_file(DATA, data, data_count);
    for (size_t k = 0; k < 64; k++) { /* a header's end may be missing: its keys have defaults */
        write_file(HEADER, header, header_count * k / 64);
        const lr_status status = read_file(fixture);
        assert_true(status == LR_BAD_INPUT || (status == LR_OK && k > 8));
    }
    uint64_t seed = test_seed();
    for (int n = 0; n < 1000; n++) {
        unsigned char spoilt[4096];
        memcpy(spoilt, header, header_count);
        for (int k = 0; k < 1 + n % 4; k++)
            spoilt[(size_t)(test_random(&seed) * (double)header_count)] = (unsigned char)(test_random(&seed) * 256);
        write_file(HEADER, spoilt, header_count);
        const lr_status status = read_file(fixture);
        assert_true(status == LR_BAD_INPUT || status == LR_OK);
    }
}

static void events_before_the_end_are_read(void **state)
{
    struct fixture *fixture = *state;
    lr_event events[COUNT];
    fill_events(fixture->scanner, events, false);
    write_events(fixture, events, NULL);
    lr_event_list *list = read_list(fixture, fixture->scanner);
    const lr_events_source source = {.path = HEADER, .scanner = fixture->scanner};
    for (int bytes = COUNT * 12 - 1; bytes > 0; bytes = bytes > 40 ? bytes - bytes / 3 : bytes - 1) {
        char said[64];
        snprintf(said, sizeof(said), "it ends at byte %d, within event %d of", bytes, bytes / 12);
        assert_int_equal(truncate(DATA, bytes), 0);
        check_cut(&source, list, bytes / 12, said);
    }
    lr_event_list_destroy(list);
}

/* Times and counts that are no numbers. */
static void numbers_must_be_finite(void **state)
{
    struct fixture *fixture = *state;
    unsigned char bytes[16], *at = put_word(bytes, 0);
    put_word(put_word(put_float(at, NAN), 1), 2);
    write_file(DATA, bytes, sizeof(bytes));
    expect(fixture, "Data filename: " DATA "\nNumber of events: 1\nData mode: histogram\n",
           "event 0, at byte 0, has the counts nan");
    expect(fixture,
           "Data filename: " DATA "\nNumber of events: 1\nData mode: list-mode\n"
           "TOF information flag: 1\n",
           "event 0, at byte 0, has the time of flight nan");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crystals_go_by_ring_and_azimuth),
        cmocka_unit_test(tables_have_the_same_order),
        cmocka_unit_test(list_mode_comes_back),
        cmocka_unit_test(tables_name_crystals),
        cmocka_unit_test(delayeds_are_told),
        cmocka_unit_test(every_flag_moves_the_rest),
        cmocka_unit_test(histograms_have_bins),
        cmocka_unit_test(histograms_come_back),
        cmocka_unit_test(bad_headers_are_refused),
        cmocka_unit_test(truncated_files_are_refused),
        cmocka_unit_test(events_before_the_end_are_read),
        cmocka_unit_test(numbers_must_be_finite),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

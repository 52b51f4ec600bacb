/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * SAFIR list mode: a hand-made scanner whose events are known, all that can be wrong with the two
 * files, and the real acquisition. */
#include "io/until_damage.h"
#include "test.h"

#include <sys/stat.h>
#include <unistd.h>

#define EVENTS "safir_test.clm.safir"
#define MAP "safir_test.map"
#define FOLDER "safir_test_folder"

enum { NUM_DETECTORS = 8, NUM_RINGS = 2 };

/* Prompts in coincidence; NULL on failure, which leaves counts as they are. */
static lr_lor_data *prompts_of(const lr_events_source *source, const lr_lors *lors, lr_event_counts *counts)
{
    lr_prompts_delayeds data;
    if (lr_events_bin(source, lors, &data, NULL) != LR_OK) return NULL;
    lr_lor_data_destroy(data.delayeds);
    if (counts != NULL) *counts = data.counts;
    return data.prompts;
}

struct fixture {
    lr_scanner *scanner;
    lr_lors *lors;
    struct test_log log;
};

static void write_bytes(const char *path, const void *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static void write_text(const char *path, const char *text)
{
    write_bytes(path, text, strlen(text));
}

/* --- a scanner of 4 panels of 2 x 2 crystals; detector = 2 panel + p, ring = q --- */

static int set_up(void **state)
{
    static struct fixture fixture;
    static const int crystals = 2;
    test_log_init(&fixture.log);
    const lr_ring ring = {.radius_mm = 30,
                          .modules = 4,
                          .block_crystals = {&crystals, &crystals},
                          .pitch_mm = {3, 3},
                          .face_mm = {3, 3},
                          .depth_mm = 10};
    const lr_scanner_params params = {
        .name = "square", .coincidence = {.min_module_difference = 2}, .log = &fixture.log.log};
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
    remove(EVENTS);
    remove(MAP);
    return 0;
}

/* One line per crystal, rounded to 4 decimals, in an order that is not ours. */
static void write_map(const struct fixture *fixture, bool layers)
{
    FILE *file = fopen(MAP, "w");
    assert_non_null(file);
    fputs("#ring\tdetector\tx\ty\tz\n\n", file);
    for (int detector = NUM_DETECTORS - 1; detector >= 0; detector--) {
        for (int ring = 0; ring < NUM_RINGS; ring++) {
            double at[3];
            lr_module_crystal_centre(&fixture->scanner->modules[detector / 2], detector % 2, ring, at);
            fprintf(file, "%d\t%d%s\t%.4f\t%.4f %.4f # end\n", ring, detector, layers ? "\t0" : "", at[0], at[1],
                    at[2]);
        }
    }
    assert_int_equal(fclose(file), 0);
}

static int crystal_of(int ring, int detector)
{
    return detector / 2 * 4 + ring * 2 + detector % 2;
}

static size_t begin_events(unsigned char *bytes)
{
    memset(bytes, 0, 32);
    memcpy(bytes, "SAFIR CListModeData", 19);
    return 32;
}

static size_t add_record(unsigned char *bytes, size_t at, uint64_t record)
{
    for (int k = 0; k < 8; k++) bytes[at++] = (unsigned char)(record >> (8 * k));
    return at;
}

static uint64_t event(int ring_a, int detector_a, int ring_b, int detector_b)
{
    return (uint64_t)ring_a | (uint64_t)ring_b << 8 | (uint64_t)detector_a << 16 | (uint64_t)detector_b << 32;
}

/* 3 prompts of 2 LORs, 1 delayed, 1 time mark, 1 prompt out of coincidence. */
static size_t write_events(unsigned char bytes[80])
{
    size_t at = begin_events(bytes);
    at = add_record(bytes, at, UINT64_C(1) << 63 | 1234);
    at = add_record(bytes, at, event(0, 1, 1, 4));
    at = add_record(bytes, at, event(1, 4, 0, 1));
    at = add_record(bytes, at, event(1, 2, 1, 7) | UINT64_C(1) << 62);
    at = add_record(bytes, at, event(1, 2, 1, 7));
    at = add_record(bytes, at, event(0, 0, 0, 2));
    write_bytes(EVENTS, bytes, at);
    return at;
}

static float value_of(const lr_lor_data *data, int64_t lor)
{
    for (int64_t k = 0; k < data->count; k++)
        if (data->index[k] == lor) return data->values[k];
    return 0;
}

static void check_events(struct fixture *fixture)
{
    lr_event_counts counts = {0};
    test_log_init(&fixture->log);
    lr_lor_data *data = prompts_of(
        &(lr_events_source){.path = EVENTS, .format = LR_EVENTS_SAFIR, .companion = MAP, .log = &fixture->log.log},
        fixture->lors, &counts);
    if (data == NULL) fail_msg("%s", fixture->log.error);
    assert_int_equal(fixture->log.num_warnings, 0);
    assert_int_equal(counts.prompts, 4);
    assert_int_equal(counts.delayeds, 1);
    assert_int_equal(counts.time_marks, 1);
    assert_int_equal(counts.unknown_crystals, 0);
    assert_int_equal(counts.not_in_coincidence, 1);
    assert_int_equal(data->count, 2);
    assert_true(value_of(data, lr_lors_number(fixture->lors, crystal_of(0, 1), crystal_of(1, 4))) == 2);
    assert_true(value_of(data, lr_lors_number(fixture->lors, crystal_of(1, 2), crystal_of(1, 7))) == 1);
    lr_lor_data_destroy(data);
}

static void events_are_counted(void **state)
{
    struct fixture *fixture = *state;
    unsigned char bytes[80];
    write_events(bytes);
    write_map(fixture, false);
    check_events(fixture);
    write_map(fixture, true);
    check_events(fixture);
}

/* --- other writers --- */

static const char *const writers[] = {"SAFIR CListModeData", "MUPET CListModeData", "NeuroLF CListModeData"};
enum { NUM_WRITERS = 3 };

/* Whatever stands behind the signature's zero byte. */
static void other_writers_are_read(void **state)
{
    struct fixture *fixture = *state;
    write_map(fixture, false);
    for (int k = 0; k < NUM_WRITERS; k++) {
        unsigned char bytes[80];
        const size_t whole = write_events(bytes);
        memset(bytes, 0xa5, 32);
        strcpy((char *)bytes, writers[k]);
        write_bytes(EVENTS, bytes, whole);
        assert_int_equal(lr_events_recognise(EVENTS), LR_EVENTS_SAFIR);
        check_events(fixture);
    }
}

static void maps_may_have_commas(void **state)
{
    struct fixture *fixture = *state;
    unsigned char bytes[80];
    size_t count;
    write_events(bytes);
    write_map(fixture, true);
    FILE *file = fopen(MAP, "r+");
    assert_non_null(file);
    char text[8192];
    count = fread(text, 1, sizeof(text), file);
    for (size_t k = 0; k < count; k++) text[k] = text[k] == '\t' ? ',' : text[k];
    rewind(file);
    assert_int_equal(fwrite(text, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
    check_events(fixture);
}

/* --- what can be wrong --- */

static void expect(struct fixture *fixture, const char *map, const char *sentence)
{
    lr_event_counts counts = {.prompts = -1};
    test_log_init(&fixture->log);
    assert_null(prompts_of(
        &(lr_events_source){.path = EVENTS, .format = LR_EVENTS_SAFIR, .companion = map, .log = &fixture->log.log},
        fixture->lors, &counts));
    if (fixture->log.status != LR_BAD_INPUT || strstr(fixture->log.error, sentence) == NULL)
        fail_msg("expected '%s', found '%s'", sentence, fixture->log.error);
    assert_int_equal(counts.prompts, -1);
}

/* Layers have 4 bits, in NeuroLF's files 3: those of b begin at another bit. */
static void layers_are_where_the_writer_has_them(void **state)
{
    struct fixture *fixture = *state;
    static const unsigned layer_bits[NUM_WRITERS] = {4, 4, 3};
    write_map(fixture, false);
    for (int k = 0; k < NUM_WRITERS; k++) {
        unsigned char bytes[80];
        size_t at = begin_events(bytes);
        strcpy((char *)bytes, writers[k]);
        at = add_record(bytes, at, event(0, 1, 0, 5) | UINT64_C(6) << (48 + layer_bits[k]));
        write_bytes(EVENTS, bytes, at);
        expect(fixture, MAP, "with ring 0, detector 5, layer 6");
        at = begin_events(bytes);
        strcpy((char *)bytes, writers[k]);
        at = add_record(bytes, at, event(0, 1, 0, 5) | UINT64_C(6) << 48);
        write_bytes(EVENTS, bytes, at);
        expect(fixture, MAP, "with ring 0, detector 1, layer 6");
    }
}

static void every_truncation_is_refused(void **state)
{
    struct fixture *fixture = *state;
    unsigned char bytes[80];
    const size_t whole = write_events(bytes);
    write_map(fixture, false);
    for (size_t count = 0; count < whole; count++) {
        char sentence[128];
        write_bytes(EVENTS, bytes, count);
        if (count == 0) {
            snprintf(sentence, sizeof(sentence), EVENTS ": does not begin with 'SAFIR");
        } else if (count < 32) {
            snprintf(sentence, sizeof(sentence), EVENTS ": ends after %zu of the 32", count);
        } else if (count == 32) {
            snprintf(sentence, sizeof(sentence), EVENTS ": holds no records");
        } else {
            snprintf(sentence, sizeof(sentence), EVENTS ": is truncated: record %zu, at byte %zu, has %zu of 8 bytes",
                     (count - 32) / 8, count - count % 8, count % 8);
        }
        if (count <= 32 || count % 8 != 0) expect(fixture, MAP, sentence);
    }
}

/* Behind the time mark all records are events. */
static void events_before_the_end_are_read(void **state)
{
    struct fixture *fixture = *state;
    unsigned char bytes[80];
    const size_t whole = write_events(bytes);
    write_map(fixture, false);
    const lr_events_source source = {
        .path = EVENTS, .format = LR_EVENTS_SAFIR, .companion = MAP, .scanner = fixture->scanner};
    lr_event_list *list = read_until(&source, false, &fixture->log);
    assert_non_null(list);
    assert_int_equal(list->count, 5);
    for (size_t count = 33; count < whole; count++) {
        char said[64];
        const int64_t records = (int64_t)(count - 32) / 8;
        snprintf(said, sizeof(said), "at byte %zu,", count - count % 8);
        write_bytes(EVENTS, bytes, count);
        if (count % 8 != 0) check_cut(&source, list, records > 0 ? records - 1 : 0, said);
    }
    lr_event_list_destroy(list);
}

static void other_files_are_refused(void **state)
{
    struct fixture *fixture = *state;
    unsigned char bytes[80];
    const size_t whole = write_events(bytes);
    write_map(fixture, false);
    memcpy(bytes, "SAFER", 5);
    write_bytes(EVENTS, bytes, whole);
    expect(fixture, MAP, "does not begin with 'SAFIR CListModeData'");
    write_events(bytes);
    bytes[19] = '2'; /* a longer name */
    write_bytes(EVENTS, bytes, whole);
    expect(fixture, MAP, "does not begin with 'SAFIR CListModeData', 'MUPET CListModeData' or");
    remove(EVENTS);
    expect(fixture, MAP, EVENTS ": cannot be opened: No such file");
    assert_int_equal(mkdir(EVENTS, 0777), 0);
    expect(fixture, MAP, EVENTS ": is a folder: give a file");
    rmdir(EVENTS);
}

static void unknown_crystals(void **state)
{
    struct fixture *fixture = *state;
    unsigned char bytes[80];
    lr_event_counts counts;
    write_map(fixture, false);
    size_t at = begin_events(bytes);
    at = add_record(bytes, at, event(0, 1, 5, 4));
    at = add_record(bytes, at, event(0, 1, 0, 600));
    write_bytes(EVENTS, bytes, at);
    expect(fixture, MAP,
           "2 of 2 prompts name crystals that the crystal map lacks, first record 0, at byte 32, "
           "with ring 5, detector 4, layer 0");
    at = add_record(bytes, at, event(0, 1, 0, 5));
    write_bytes(EVENTS, bytes, at);
    test_log_init(&fixture->log);
    lr_lor_data *data = prompts_of(
        &(lr_events_source){.path = EVENTS, .format = LR_EVENTS_SAFIR, .companion = MAP, .log = &fixture->log.log},
        fixture->lors, &counts);
    assert_non_null(data);
    assert_int_equal(counts.unknown_crystals, 2);
    assert_int_equal(counts.prompts, 3);
    assert_int_equal(data->count, 1);
    assert_int_equal(fixture->log.num_warnings, 1);
    assert_non_null(strstr(fixture->log.warning, "2 of 3 prompts"));
    lr_lor_data_destroy(data);
    /* Layers that the map does not name are unknown, too. */
    at = begin_events(bytes);
    at = add_record(bytes, at, event(0, 1, 0, 5) | UINT64_C(1) << 52);
    write_bytes(EVENTS, bytes, at);
    expect(fixture, MAP, "with ring 0, detector 5, layer 1");
}

static void wrong_maps_are_refused(void **state)
{
    struct fixture *fixture = *state;
    static const char *const cases[][2] = {
        {"", MAP ": lists no crystals"},
        {"# nothing\n", MAP ": lists no crystals"},
        {"0 0 35 -1.5\n", MAP ":1: a crystal is 'ring det [layer] x y z'"},
        {"0 0 0 35 -1.5 -1.5 7\n", MAP ":1: a crystal is"},
        {"0 0 35 -1.5 -1.5\n0 x 35 1.5 -1.5\n", MAP ":2: a crystal is"},
        {"0 -1 35 -1.5 -1.5\n", MAP ":1: a crystal is"},
        {"256 0 35 -1.5 -1.5\n", MAP ":1: a crystal is"},
        {"0 65536 35 -1.5 -1.5\n", MAP ":1: a crystal is"},
        {"0 0 16 35 -1.5 -1.5\n", MAP ":1: a crystal is"},
        {"0 0.5 35 -1.5 -1.5\n", MAP ":1: a crystal is"},
        {"0 1.0 35 -1.5 -1.5\n", MAP ":1: a crystal is"},
        {"0x0 0 35 -1.5 -1.5\n", MAP ":1: a crystal is"},
        {"0 0 1e0 35 -1.5 -1.5\n", MAP ":1: a crystal is"},
        {"0 0 nan -1.5 -1.5\n", MAP ":1: a crystal is"},
        {"0 0 35 -1.5 inf\n", MAP ":1: a crystal is"},
        {"0 0 1e300 -1.5 -1.5\n", MAP ":1: no crystal of scanner 'square'"},
        {"0 0 35 -1.5 -1.5\n\n0 1 0 35 1.5 -1.5\n", MAP ":3: 6 columns, but 5"},
        {"0 0 30 -1.5 -1.5\n", "the nearest is 5 mm away"},
        {"0 0 35.0101 -1.5 -1.5\n", MAP ":1: no crystal of scanner 'square'"},
        {"0 0 35 -1.5 -1.5\n0 0 35 1.5 -1.5\n", MAP ":2: ring 0, detector 0, layer 0 is named again (first in line 1)"},
        {"0 0 35 -1.5 -1.5\n0 1 35 -1.501 -1.5\n", MAP ":2: the crystal at (35, -1.501, -1.5) mm"},
    };
    unsigned char bytes[80];
    write_events(bytes);
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        write_text(MAP, cases[k][0]);
        expect(fixture, MAP, cases[k][1]);
    }
    char line[2000];
    memset(line, '1', sizeof(line));
    write_bytes(MAP, line, sizeof(line));
    expect(fixture, MAP, MAP ":1: the line is longer");
    expect(fixture, "no-such.map", "no-such.map: the crystal map cannot be opened: No such file");
}

/* A position that is 0.0099 mm off is still that crystal, whichever side of a hash cell it is
 * on. */
static void rounding_is_allowed_and_gaps_are_told(void **state)
{
    struct fixture *fixture = *state;
    unsigned char bytes[80];
    const size_t at = begin_events(bytes);
    write_bytes(EVENTS, bytes, add_record(bytes, at, event(0, 1, 0, 4)));
    write_text(MAP, "0 1 34.9901 1.5 -1.5\n0 4 -35.0 1.5 -1.4901\n");
    test_log_init(&fixture->log);
    lr_lor_data *data = prompts_of(
        &(lr_events_source){.path = EVENTS, .format = LR_EVENTS_SAFIR, .companion = MAP, .log = &fixture->log.log},
        fixture->lors, NULL);
    if (data == NULL) fail_msg("%s", fixture->log.error);
    assert_int_equal(data->count, 1);
    assert_int_equal(data->index[0], lr_lors_number(fixture->lors, crystal_of(0, 1), crystal_of(0, 4)));
    assert_non_null(strstr(fixture->log.warning, "lists 2 of the scanner's 16 crystals"));
    lr_lor_data_destroy(data);
}

/* --- the map beside the events --- */

static void move_to_folder(const char *map)
{
    assert_int_equal(rename(EVENTS, FOLDER "/" EVENTS), 0);
    char path[256];
    snprintf(path, sizeof(path), FOLDER "/%s", map);
    assert_int_equal(rename(MAP, path), 0);
}

static lr_lor_data *read_in_folder(struct fixture *fixture)
{
    test_log_init(&fixture->log);
    return prompts_of(
        &(lr_events_source){.path = FOLDER "/" EVENTS, .format = LR_EVENTS_SAFIR, .log = &fixture->log.log},
        fixture->lors, NULL);
}

static void the_map_is_found_beside_the_events(void **state)
{
    struct fixture *fixture = *state;
    unsigned char bytes[80];
    mkdir(FOLDER, 0777);
    write_events(bytes);
    write_map(fixture, false);
    move_to_folder("A_crystal_map.txt");
    lr_lor_data *data = read_in_folder(fixture);
    if (data == NULL) fail_msg("%s", fixture->log.error);
    lr_lor_data_destroy(data);
    write_text(FOLDER "/B_crystal_map.txt", "");
    assert_null(read_in_folder(fixture));
    assert_int_equal(fixture->log.status, LR_BAD_INPUT);
    assert_non_null(strstr(fixture->log.error, "more than one crystal map"));
    remove(FOLDER "/A_crystal_map.txt");
    remove(FOLDER "/B_crystal_map.txt");
    assert_null(read_in_folder(fixture));
    assert_int_equal(fixture->log.status, LR_BAD_INPUT);
    assert_non_null(strstr(fixture->log.error, "no crystal map (*crystal_map.txt) lies beside it"));
    remove(FOLDER "/" EVENTS);
    rmdir(FOLDER);
}

/* --- the real acquisition --- */

/* Distance of a point from the line through the two crystals' centres. */
static double distance_mm(const lr_scanner *scanner, const lr_lor *lor, const double point[3])
{
    double a[3], b[3], d[3], w[3];
    lr_module_crystal_centre(&scanner->modules[lor->module_i], lor->p, lor->q, a);
    lr_module_crystal_centre(&scanner->modules[lor->module_j], lor->r, lor->s, b);
    for (int k = 0; k < 3; k++) {
        d[k] = b[k] - a[k];
        w[k] = point[k] - a[k];
    }
    const double cross[3] = {w[1] * d[2] - w[2] * d[1], w[2] * d[0] - w[0] * d[2], w[0] * d[1] - w[1] * d[0]};
    return sqrt((cross[0] * cross[0] + cross[1] * cross[1] + cross[2] * cross[2]) /
                (d[0] * d[0] + d[1] * d[1] + d[2] * d[2]));
}

static void the_real_source_is_where_it_is_said_to_be(void **state)
{
    (void)state;
    static const double source_mm[3] = {0.02, 0.01, 0.00};
    char path[1024];
    struct test_log log;
    lr_event_counts counts;
    if (test_data(path, "safir/coincidencesLM.clm.safir") == NULL) skip();
    test_log_init(&log);
    lr_scanner *scanner = lr_scanner_read("safir-dual-ring-prototype", &log.log);
    assert_non_null(scanner);
    lr_lors *lors = lr_lors_create(scanner, &log.log);
    assert_non_null(lors);
    lr_lor_data *data =
        prompts_of(&(lr_events_source){.path = path, .format = LR_EVENTS_SAFIR, .log = &log.log}, lors, &counts);
    if (data == NULL) fail_msg("%s", log.error);
    double events = 0, near = 0;
    for (int64_t k = 0; k < data->count; k++) {
        const lr_lor lor = lr_lors_describe(lors, data->index[k]);
        const bool is_near = distance_mm(scanner, &lor, source_mm) <= 3;
        events += data->values[k];
        near += is_near ? data->values[k] : 0;
    }
    print_message("%.0f events in %lld LORs, %.2f %% within 3 mm of the source\n", events, (long long)data->count,
                  100 * near / events);
    assert_true(events == 1408);
    assert_int_equal(counts.prompts, 1408);
    assert_int_equal(counts.time_marks, 93);
    assert_int_equal(counts.delayeds + counts.unknown_crystals + counts.not_in_coincidence, 0);
    assert_int_equal(log.num_warnings, 0);
    assert_true(near >= 0.945 * events); /* 95 %, which the notes give without decimals */
    lr_lor_data_destroy(data);
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_counted),
        cmocka_unit_test(other_writers_are_read),
        cmocka_unit_test(layers_are_where_the_writer_has_them),
        cmocka_unit_test(maps_may_have_commas),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(events_before_the_end_are_read),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(unknown_crystals),
        cmocka_unit_test(wrong_maps_are_refused),
        cmocka_unit_test(rounding_is_allowed_and_gaps_are_told),
        cmocka_unit_test(the_map_is_found_beside_the_events),
        cmocka_unit_test(the_real_source_is_where_it_is_said_to_be),
    };
    return cmocka_run_group_tests_name("SAFIR list mode", tests, set_up, tear_down);
}

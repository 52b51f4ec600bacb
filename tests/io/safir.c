/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * SAFIR list mode: a hand-made scanner with known events, all errors that the two files can have, and the real
 * acquisition. */
#include "io/lists.h"
#include "io/scanners.h"
#include "io/text_cases.h"

#define EVENTS "safir_test.clm.safir"
#define MAP "safir_test.map"
#define FOLDER "safir_test_folder"

enum { NUM_DETECTORS = 8, NUM_RINGS = 2 };

/* map NULL: the map beside the events. */
static lr_events_source source_of(const char *path, const char *map)
{
    return (lr_events_source){.path = path, .format = LR_EVENTS_SAFIR, .companion = map};
}

/* --- a scanner of 4 panels of 2 x 2 crystals; detector = 2 panel + p, ring = q --- */

static int set_up(void **state)
{
    return files_begin_with(state, scanner_of("name: square\nring: {radius_mm: 30, modules: 4}\nmodule: {crystals: [2, "
                                              "2], pitch_mm: [3, 3], face_mm: [3, 3], depth_mm: 10}\n"
                                              "coincidence: {min_module_difference: 2}\n"));
}

static int crystal_of(int ring, int detector)
{
    return detector / 2 * 4 + ring * 2 + detector % 2;
}

/* Writes one line per crystal, rounded to 4 decimals, in another order than ours. */
static void write_map(bool layers, const char *comma)
{
    FILE *file = non_null(fopen(MAP, "w"));
    fprintf(file, "#ring%sdetector%sx%sy%sz\n\n", comma, comma, comma, comma);
    for (int detector = NUM_DETECTORS - 1; detector >= 0; detector--) {
        for (int ring = 0; ring < NUM_RINGS; ring++) {
            double at[3];
            lr_scanner_crystal_centre(files.lors->scanner, crystal_of(ring, detector), at);
            fprintf(file, "%d%s%d%s%s%s%.4f%s%.4f %.4f # end\n", ring, comma, detector, layers ? comma : "",
                    layers ? "0" : "", comma, at[0], comma, at[1], at[2]);
        }
    }
    assert_int_equal(fclose(file), 0);
}

/* Writes events into a file that begins with a writer's signature. */
static size_t write_records(unsigned char bytes[80], const char *writer, const uint64_t *records, size_t count)
{
    memset(bytes, 0, 32);
    memcpy(bytes, writer, strlen(writer));
    memcpy(bytes + 32, records, 8 * count); /* a little-endian machine */
    bytes_write(EVENTS, bytes, 32 + 8 * count);
    return 32 + 8 * count;
}

static uint64_t event(int ring_a, int detector_a, int ring_b, int detector_b)
{
    return (uint64_t)ring_a | (uint64_t)ring_b << 8 | (uint64_t)detector_a << 16 | (uint64_t)detector_b << 32;
}

static const char *const writers[] = {"SAFIR CListModeData", "MUPET CListModeData", "NeuroLF CListModeData"};
enum { NUM_WRITERS = 3 };

/* The list has 3 prompts on 2 LORs, 1 delayed event, 1 time mark, and 1 prompt out of coincidence. */
static size_t write_events(unsigned char bytes[80])
{
    const uint64_t records[6] = {UINT64_C(1) << 63 | 1234, event(0, 1, 1, 4),
                                 event(1, 4, 0, 1),        event(1, 2, 1, 7) | UINT64_C(1) << 62,
                                 event(1, 2, 1, 7),        event(0, 0, 0, 2)};
    return write_records(bytes, writers[0], records, 6);
}

static void check_events(void)
{
    lr_prompts_delayeds data = bin_events(source_of(EVENTS, MAP), files.lors);
    assert_counts(&data.counts, (const int64_t[]){4, 1, 1, 0, 0, 1});
    assert_pairs(0, {files.log.num_warnings, 0}, {data.prompts->count, 2});
    assert_true(value_of(data.prompts, lr_lors_number(files.lors, crystal_of(0, 1), crystal_of(1, 4))) == 2);
    assert_true(value_of(data.prompts, lr_lors_number(files.lors, crystal_of(1, 2), crystal_of(1, 7))) == 1);
}

/* Maps may have a column of layers, and commas. */
static void events_are_counted(void **state)
{
    unsigned char bytes[80];
    write_events(bytes);
    for (int k = 0; k < 3; k++) {
        write_map(k > 0, k == 2 ? "," : "\t");
        check_events();
    }
}

/* --- other writers --- */

/* The bytes after the zero byte of the signature may have any value. */
static void other_writers_are_read(void **state)
{
    write_map(false, "\t");
    for (int k = 0; k < NUM_WRITERS; k++) {
        unsigned char bytes[80];
        const size_t whole = write_events(bytes);
        memset(bytes, 0xa5, 32);
        strcpy((char *)bytes, writers[k]);
        bytes_write(EVENTS, bytes, whole);
        assert_int_equal(lr_events_recognise(EVENTS), LR_EVENTS_SAFIR);
        check_events();
    }
}

/* --- errors in files --- */

static void expect(const char *map, const char *sentence)
{
    refuse_events(source_of(EVENTS, map), files.lors, sentence);
}

/* Layers have 4 bits, but 3 in NeuroLF's files, so that the layer of crystal b begins at another bit. */
static void layers_are_where_the_writer_has_them(void **state)
{
    static const unsigned layer_bits[NUM_WRITERS] = {4, 4, 3};
    unsigned char bytes[80];
    write_map(false, "\t");
    for (int k = 0; k < NUM_WRITERS; k++) {
        const uint64_t in_b = event(0, 1, 0, 5) | UINT64_C(6) << (48 + layer_bits[k]);
        const uint64_t in_a = event(0, 1, 0, 5) | UINT64_C(6) << 48;
        write_records(bytes, writers[k], &in_b, 1);
        expect(MAP, "with ring 0, detector 5, layer 6");
        write_records(bytes, writers[k], &in_a, 1);
        expect(MAP, "with ring 0, detector 1, layer 6");
    }
}

static void every_truncation_is_refused(void **state)
{
    unsigned char bytes[80];
    const size_t whole = write_events(bytes);
    write_map(false, "\t");
    for (size_t count = 0; count < whole; count++) {
        char sentence[128];
        bytes_write(EVENTS, bytes, count);
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
        if (count <= 32 || count % 8 != 0) expect(MAP, sentence);
    }
}

/* The first record is a time mark, all others are events. */
static void events_before_the_end_are_read(void **state)
{
    unsigned char bytes[80];
    const size_t whole = write_events(bytes);
    write_map(false, "\t");
    const lr_events_source source = {
        .path = EVENTS, .format = LR_EVENTS_SAFIR, .companion = MAP, .scanner = files.lors->scanner};
    lr_event_list *list = list_of(source);
    assert_int_equal(list->count, 5);
    for (size_t count = 33; count < whole; count++) {
        char said[64];
        const int64_t records = (int64_t)(count - 32) / 8;
        snprintf(said, sizeof(said), "at byte %zu,", count - count % 8);
        bytes_write(EVENTS, bytes, count);
        if (count % 8 != 0) check_cut(&source, list, records > 0 ? records - 1 : 0, said);
    }
}

static void other_files_are_refused(void **state)
{
    unsigned char bytes[80];
    const size_t whole = write_events(bytes);
    write_map(false, "\t");
    memcpy(bytes, "SAFER", 5);
    bytes_write(EVENTS, bytes, whole);
    expect(MAP, "does not begin with 'SAFIR CListModeData'");
    write_events(bytes);
    bytes[19] = '2'; /* a longer name in the signature */
    bytes_write(EVENTS, bytes, whole);
    expect(MAP, "does not begin with 'SAFIR CListModeData', 'MUPET CListModeData' or");
}

static void unknown_crystals(void **state)
{
    unsigned char bytes[80];
    const uint64_t records[3] = {event(0, 1, 5, 4), event(0, 1, 0, 600), event(0, 1, 0, 5)};
    const uint64_t layered = records[2] | UINT64_C(1) << 52;
    write_map(false, "\t");
    write_records(bytes, writers[0], records, 2);
    expect(MAP, "2 of 2 prompts name crystals that the crystal map lacks, first record 0, at byte 32, with ring 5, "
                "detector 4, layer 0");
    write_records(bytes, writers[0], records, 3);
    lr_prompts_delayeds data = bin_events(source_of(EVENTS, MAP), files.lors);
    assert_pairs(0, {data.counts.unknown_crystals, 2}, {data.counts.prompts, 3}, {data.prompts->count, 1},
                 {files.log.num_warnings, 1});
    assert_warning(&files.log, "2 of 3 prompts");
    write_records(bytes, writers[0], &layered, 1); /* a layer that the map does not have makes a crystal unknown, too */
    expect(MAP, "with ring 0, detector 5, layer 1");
}

static void wrong_maps_are_refused(void **state)
{
    unsigned char bytes[80];
    write_events(bytes);
    for (struct text_cases cases = cases_of(IO_CASES, "safir"); next_case(&cases);) {
        text_write(MAP, cases.fields[1]);
        expect(MAP, cases.fields[0]);
    }
    char line[2000];
    memset(line, '1', sizeof(line));
    bytes_write(MAP, line, sizeof(line));
    expect(MAP, MAP ":1: the line is longer");
    expect("no-such.map", "no-such.map: the crystal map cannot be opened: No such file");
}

/* A position that is 0.0099 mm off is assigned to the same crystal, also if it is in the next cell of the hash
 * table. */
static void rounding_is_allowed_and_gaps_are_told(void **state)
{
    unsigned char bytes[80];
    const uint64_t record = event(0, 1, 0, 4);
    write_records(bytes, writers[0], &record, 1);
    text_write(MAP, "0 1 34.9901 1.5 -1.5\n0 4 -35.0 1.5 -1.4901\n");
    lr_prompts_delayeds data = bin_events(source_of(EVENTS, MAP), files.lors);
    assert_int_equal(data.prompts->count, 1);
    assert_int_equal(data.prompts->index[0], lr_lors_number(files.lors, crystal_of(0, 1), crystal_of(0, 4)));
    assert_warning(&files.log, "lists 2 of the scanner's 16 crystals");
}

/* --- the map beside the events --- */

static void the_map_is_found_beside_the_events(void **state)
{
    unsigned char bytes[80];
    mkdir(FOLDER, 0777);
    write_events(bytes);
    write_map(false, "\t");
    assert_ints(rename(EVENTS, FOLDER "/" EVENTS), 0, rename(MAP, FOLDER "/A_crystal_map.txt"), 0);
    bin_events(source_of(FOLDER "/" EVENTS, NULL), files.lors);
    text_write(FOLDER "/B_crystal_map.txt", "");
    const lr_events_source source = source_of(FOLDER "/" EVENTS, NULL);
    refuse_events(source, files.lors, "more than one crystal map");
    remove(FOLDER "/A_crystal_map.txt");
    remove(FOLDER "/B_crystal_map.txt");
    refuse_events(source, files.lors, "no crystal map (*crystal_map.txt) lies beside it");
    remove(FOLDER "/" EVENTS);
    rmdir(FOLDER);
}

/* --- the real acquisition --- */

/* Distance of a point from the line through the centres of the two crystals. */
static double from_line_mm(const lr_lors *lors, int64_t lor, const double point[3])
{
    double ends[2][3], d[3], w[3];
    find_ends(lors, lor, ends);
    for (int k = 0; k < 3; k++) {
        d[k] = ends[1][k] - ends[0][k];
        w[k] = point[k] - ends[0][k];
    }
    const double cross[3] = {w[1] * d[2] - w[2] * d[1], w[2] * d[0] - w[0] * d[2], w[0] * d[1] - w[1] * d[0]};
    return sqrt((cross[0] * cross[0] + cross[1] * cross[1] + cross[2] * cross[2]) /
                (d[0] * d[0] + d[1] * d[1] + d[2] * d[2]));
}

static void the_real_source_is_where_it_is_said_to_be(void **state)
{
    static const double source_mm[3] = {0.02, 0.01, 0.00};
    char path[1024];
    if (test_data(path, "safir/coincidencesLM.clm.safir") == NULL) skip();
    lr_lors *lors = lors_of(keep(lr_scanner_read("safir-dual-ring-prototype", NULL)));
    lr_prompts_delayeds data = bin_events(source_of(path, NULL), lors);
    double near = 0;
    for (int64_t k = 0; k < data.prompts->count; k++)
        near += from_line_mm(lors, data.prompts->index[k], source_mm) <= 3 ? data.prompts->values[k] : 0;
    const double events = total(data.prompts);
    print_message("%.0f events in %lld LORs, %.2f %% within 3 mm of the source\n", events,
                  (long long)data.prompts->count, 100 * near / events);
    assert_true(events == 1408);
    assert_counts(&data.counts, (const int64_t[]){1408, 0, 93, 0, 0, 0});
    assert_int_equal(files.log.num_warnings, 0);
    assert_true(near >= 0.945 * events); /* 95 %, which the notes state without decimals */
}

group_main("SAFIR list mode", set_up, files_end,
           EACH(cmocka_unit_test, events_are_counted, other_writers_are_read, layers_are_where_the_writer_has_them,
                every_truncation_is_refused, events_before_the_end_are_read, other_files_are_refused, unknown_crystals,
                wrong_maps_are_refused, rounding_is_allowed_and_gaps_are_told, the_map_is_found_beside_the_events,
                the_real_source_is_where_it_is_said_to_be))

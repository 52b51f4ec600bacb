/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * GE's list mode as HDF5. Files are written here in that layout, and positions are compared with those that
 * parallelproj's model of the Discovery MI assigns to the numbers. Errors in files are tested, too. */
#include "io/lists.h"
#include "io/scanners.h"

#include <hdf5.h>

#define EVENTS "ge_test.BLF"
#define MANY "ge_test_many.h5"

/* parallelproj's model: 34 sides of 16 crystals around the axis, and 36 rings in units of 9. */
enum { SIDES = 34, PER_SIDE = 16, RINGS = 36, PER_UNIT = 9, COLUMNS = 5 };

static int set_up(void **state)
{
    return files_begin_with(state, keep(lr_scanner_read("ge-discovery-mi", NULL)));
}

/* Writes the events as in the real acquisition: 16-bit numbers in compressed chunks. */
static void write_events(const char *path, const int16_t *numbers, int64_t count, int columns)
{
    const hsize_t extent[2] = {(hsize_t)count, (hsize_t)columns};
    const hsize_t chunk[2] = {count < 4096 ? (hsize_t)count : 4096, (hsize_t)columns};
    const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t group = H5Gcreate2(file, "MiceList", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t space = H5Screate_simple(2, extent, NULL), layout = H5Pcreate(H5P_DATASET_CREATE);
    assert_true(H5Pset_chunk(layout, 2, chunk) >= 0 && H5Pset_deflate(layout, 4) >= 0);
    const hid_t set = H5Dcreate2(group, "TofCoinc", H5T_STD_I16LE, space, H5P_DEFAULT, layout, H5P_DEFAULT);
    if (numbers != NULL) /* without numbers, no chunk is written */
        assert_true(H5Dwrite(set, H5T_NATIVE_INT16, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0);
    assert_true(H5Dclose(set) >= 0 && H5Pclose(layout) >= 0 && H5Sclose(space) >= 0 && H5Gclose(group) >= 0 &&
                H5Fclose(file) >= 0);
}

static lr_events_source source_of(const char *path)
{
    return (lr_events_source){.path = path, .scanner = files.lors->scanner, .log = &files.log.log};
}

static void expect(const char *sentence)
{
    const lr_events_source source = source_of(EVENTS);
    assert_none(lr_event_list_read(&source), LR_BAD_INPUT, &files.log, sentence);
}

/* A file of some KiB that claims to have 10^12 events, but contains no chunk. */
static void promised_events_must_be_there(void **state)
{
    write_events(EVENTS, NULL, 1000000000000, COLUMNS);
    expect("5000000000000 numbers, more than the file can hold");
}

/* --- positions and times --- */

static void check_place(const lr_scanner *scanner, double turned_deg, int crystal, int ring, int place)
{
    double is_mm[3], model_mm[3];
    lr_scanner_hit_centre(scanner, crystal, is_mm);
    /* The model's own formulas: side 0 is at the top or turned from there by an angle; sides and crystals count
     * clockwise. */
    const double radius_mm = 0.5 * 744.1, spacing_mm = 4.03125, pitch_mm = 5.31556, gap_mm = 2.8;
    const double phi = 2 * pi * (place / PER_SIDE) / SIDES + turned_deg * pi / 180;
    const double along_mm = (place % PER_SIDE - 0.5 * (PER_SIDE - 1)) * spacing_mm;
    const double length_mm = (RINGS - 1) * pitch_mm + (RINGS / PER_UNIT - 1) * gap_mm;
    model_mm[0] = sin(phi) * radius_mm + cos(phi) * along_mm;
    model_mm[1] = cos(phi) * radius_mm - sin(phi) * along_mm;
    model_mm[2] = ring * pitch_mm + ring / PER_UNIT * gap_mm - 0.5 * length_mm;
    for (int k = 0; k < 3; k++) assert_true(fabs(is_mm[k] - model_mm[k]) < 1e-3);
}

/* Events with every crystal of a ring, every ring, and every time. turned_deg: angle of side 0 from the top,
   clockwise. */
static void check_all(double turned_deg)
{
    enum { COUNT = SIDES * PER_SIDE };
    int16_t numbers[COUNT][COLUMNS];
    for (int k = 0; k < COUNT; k++) {
        const int opposite = (k + COUNT / 2) % COUNT;
        const int16_t event[COLUMNS] = {(int16_t)(k % RINGS), (int16_t)k, (int16_t)(7 * k % RINGS), (int16_t)opposite,
                                        (int16_t)(13 * (k % 29 - 14))};
        memcpy(numbers[k], event, sizeof(event));
    }
    write_events(EVENTS, &numbers[0][0], COUNT, COLUMNS);
    lr_event_list *list = list_of(source_of(EVENTS));
    assert_int_equal(list->info.format, LR_EVENTS_GE);
    assert_pairs(0, {list->count, COUNT}, {list->info.num_tof_bins, 29});
    assert_close(lr_events_info_tof_bin_mm(&list->info), 13 * 1.95164890158, 1e-6);
    for (int k = 0; k < COUNT; k++) {
        const lr_event *event = &list->events[k];
        const double edge_mm = list->info.tof_edges_mm[28 - k % 29];
        check_place(files.lors->scanner, turned_deg, event->crystals[0], k % RINGS, k);
        check_place(files.lors->scanner, turned_deg, event->crystals[1], 7 * k % RINGS, (k + COUNT / 2) % COUNT);
        /* A step is 13.02 ps, and 1 ps is 0.149896 mm from the middle, towards the crystal that was hit first. */
        assert_true(fabs(event->tof_mm + 13 * (k % 29 - 14) * 1.95164890158) < 1e-4);
        assert_true(fabs(event->tof_mm - edge_mm - 0.5 * 13 * 1.95164890158) < 1e-4);
        assert_true(event->weight == 1 && !event->is_delayed);
    }
}

/* The list has more events than are read at a time. The format is recognised by the contents of the file. */
static void long_lists_are_read_in_pieces(void **state)
{
    const int64_t count = 150000;
    int16_t *numbers = kept((size_t)count * COLUMNS, sizeof(*numbers));
    for (int64_t k = 0; k < count; k++) {
        numbers[COLUMNS * k + 1] = (int16_t)(k % 100);
        numbers[COLUMNS * k + 3] = (int16_t)(272 + k % 89);
    }
    write_events(MANY, numbers, count, COLUMNS);
    assert_int_equal(lr_events_recognise(MANY), LR_EVENTS_GE);
    const lr_prompts_delayeds data = bin_events((lr_events_source){.path = MANY}, files.lors);
    assert_pairs(0, {data.counts.prompts, count}, {data.prompts->count, 100 * 89},
                 {total(data.prompts), (double)count});
}

/* --- errors in files --- */

static void unknown_crystals_are_left_out(void **state)
{
    static const int16_t numbers[3][COLUMNS] = {{0, 0, 0, 272, 0}, {36, 0, 0, 272, 0}, {0, 0, 0, 544, 0}};
    write_events(EVENTS, &numbers[0][0], 3, COLUMNS);
    lr_event_list *list = list_of(source_of(EVENTS));
    assert_pairs(0, {list->count, 1}, {list->info.counts.unknown_crystals, 2});
    assert_warning(&files.log, "2 of 3 events name crystals that GE Discovery MI");
    assert_warning(&files.log, "first rings 36 and 0, places 0 and 272");
}

static void places_and_times_are_the_models(void **state)
{
    check_all(0);
}

/* Results do not depend on which module the description of the scanner begins with, but on where its modules stand. */
static void place_0_is_at_the_top(void **state)
{
    static const char path[] = "ge_turned.yaml", key[] = "first_angle_deg: ";
    static const double step_deg = 360.0 / SIDES;
    static const double first[][2] = {
        {90 - 10 * step_deg, 0},    {0, 0.5 * step_deg}, {90 + 0.5 * step_deg, 0.5 * step_deg}, {88, 2},
        {85.7 + 7 * step_deg, 4.3}, {95.1, -5.1}};
    lr_lors *preset = files.lors;
    for (size_t k = 0; k < sizeof(first) / sizeof(first[0]); k++) {
        assert_int_equal(lr_scanner_write(path, preset->scanner, NULL), LR_OK);
        char *text = (char *)bytes_read(path, NULL);
        const char *at = strstr(text, key), *end = strchr(at, '\n');
        FILE *file = fopen(path, "w");
        fprintf(file, "%.*s%s%.12g%s", (int)(at - text), text, key, first[k][0], end);
        fclose(file);
        files.lors = lors_of(keep(lr_scanner_read(path, NULL)));
        check_all(first[k][1]);
    }
    files.lors = preset;
}

static void other_layouts_are_refused(void **state)
{
    static const int16_t steps[2][COLUMNS] = {{0, 0, 0, 272, 13}, {0, 0, 0, 272, 5}};
    static const int16_t late[1][COLUMNS] = {{0, 0, 0, 272, 15 * 13}};
    write_events(EVENTS, &steps[0][0], 2, COLUMNS);
    expect("event 1 has the time of flight 5, and not one of the 29 multiples of 13");
    write_events(EVENTS, &late[0][0], 1, COLUMNS);
    expect("event 0 has the time of flight 195");
    write_events(EVENTS, &steps[0][0], 2, 4);
    expect("has 4 numbers, and not the 5");
    assert_int_equal(truncate(EVENTS, 700), 0);
    expect("");
}

static void the_scanner_must_be_named(void **state)
{
    static const int16_t numbers[1][COLUMNS] = {{0, 0, 0, 272, 0}};
    write_events(EVENTS, &numbers[0][0], 1, COLUMNS);
    const lr_events_source source = {.path = EVENTS, .log = &files.log.log};
    test_log_init(&files.log);
    assert_none(lr_event_list_read(&source), LR_USAGE, &files.log, "GE list mode names no places of crystals");
}

group_main("io ge", set_up, files_end, cmocka_unit_test(places_and_times_are_the_models),
           cmocka_unit_test(place_0_is_at_the_top), cmocka_unit_test(long_lists_are_read_in_pieces),
           cmocka_unit_test(promised_events_must_be_there), cmocka_unit_test(unknown_crystals_are_left_out),
           cmocka_unit_test(other_layouts_are_refused), cmocka_unit_test(the_scanner_must_be_named))

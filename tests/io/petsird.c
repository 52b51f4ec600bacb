/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * PETSIRD: the official file against the text that its own helper programs print, and files written here and read
 * back. */
#define FILE_NAME "petsird_test.petsird"

#include "io/petsird_file.h"

#include "io/events/petsird.h"

#define CORNERS "petsird/small_cpp_v0.9.1.corners.txt"
#define EVENTS "petsird/small_cpp_v0.9.1.events.txt"
#define SCHEMA "petsird/schema_v0.9.1.json"

/* The helper programs print five decimals of single-precision numbers. */
static const double text_mm = 1e-4;

/* --- the official file --- */

/* Distance of a point from the nearest corner of a scanner's crystal. */
static double from_corners(const lr_scanner *scanner, int crystal, const double point[3])
{
    const lr_module *module = &scanner->modules[lr_scanner_module_of(scanner, crystal)];
    double centre[3], nearest = INFINITY;
    lr_scanner_crystal_centre(scanner, crystal, centre);
    for (int n = 0; n < 8; n++) {
        double at[3];
        for (int k = 0; k < 3; k++) {
            at[k] = centre[k] + (n & 1 ? 0.5 : -0.5) * module->face_mm[0] * module->u[k] +
                    (n & 2 ? 0.5 : -0.5) * module->face_mm[1] * module->v[k] +
                    (n & 4 ? 0.5 : -0.5) * module->depth_mm * module->normal[k];
        }
        nearest = fmin(nearest, distance_mm(at, point));
    }
    return nearest;
}

/* Reads a line "type module element x y z x y z ..." */
static int read_corners(FILE *file, int names[3], double corners[8][3])
{
    char line[1024];
    do {
        if (fgets(line, sizeof(line), file) == NULL) return 0;
    } while (line[0] == '#');
    int used = 0, length;
    assert_int_equal(sscanf(line, "%d %d %d%n", &names[0], &names[1], &names[2], &used), 3);
    for (int k = 0; k < 24; k++, used += length)
        assert_int_equal(sscanf(line + used, "%lf%n", &corners[k / 3][k % 3], &length), 1);
    return 1;
}

/* The corners of every crystal: those that the file defines, and those of the scanner read from the file, equal
   those of the helper programs. */
static void corners_are_the_official_ones(void **state)
{
    char path[1024], text_path[1024];
    struct lr_petsird petsird;
    official(path, OFFICIAL);
    official(text_path, CORNERS);
    assert_int_equal(lr_petsird_open(&petsird, path, &files.log.log), LR_OK);
    lr_scanner *scanner = keep(lr_petsird_scanner(&petsird));
    FILE *file = fopen(text_path, "r");
    double expected[8][3], found[8][3], centre[3], off, worst = 0, worst_scanner = 0;
    int names[3], count = 0;
    for (; read_corners(file, names, expected); count++) {
        const struct lr_petsird_type *type = &petsird.types[names[0]];
        const int64_t crystal = type->first_crystal + names[1] * type->num_elements + names[2];
        lr_petsird_corners(&petsird, crystal, found);
        lr_petsird_centre(&petsird, crystal, centre);
        const int ours = nearest_crystal(scanner, centre, &off);
        for (int c = 0; c < 8; c++) {
            for (int k = 0; k < 3; k++) worst = fmax(worst, fabs(found[c][k] - expected[c][k]));
            worst_scanner = fmax(worst_scanner, from_corners(scanner, ours, expected[c]));
        }
    }
    fclose(file);
    print_message("%d crystals, corners off by at most %.2g mm, of the scanner by %.2g mm\n", count, worst,
                  worst_scanner);
    assert_pairs(0, {count, 256}, {petsird.num_crystals, 256});
    assert_true(worst < text_mm && worst_scanner < text_mm);
    assert_string_equal(petsird.version, "0.9.1");
    assert_string_equal(scanner->name, "PETSIRD_TEST");
    /* a resolution of 9.4 mm is 9.4 / (c/2) ps; the mask excludes pairs of modules at the same angle */
    assert_close(scanner->tof_resolution_ps, 9.4 / 0.149896229, 1e-7);
    assert_close(scanner->detection_depth_mm, 10, 1e-6);
    assert_pairs(0, {scanner->num_positions, 8}, {scanner->coincidence.min_module_difference, 1});
    lr_petsird_close(&petsird);
}

static void events_are_the_official_ones(void **state)
{
    char path[1024], text_path[1024], line[128];
    const lr_events_source source = {.path = official(path, OFFICIAL), .log = &files.log.log};
    official(text_path, EVENTS);
    assert_int_equal(lr_events_recognise(path), LR_EVENTS_PETSIRD);
    lr_event_list *list = keep(lr_event_list_read(&source));
    assert_int_equal(list->info.num_tof_bins, 11);
    FILE *file = fopen(text_path, "r");
    int64_t at = 0;
    while (fgets(line, sizeof(line), file) != NULL) {
        int block, types[2], bins[2], tof;
        if (line[0] == '#') continue;
        assert_int_equal(sscanf(line, "%d %d %d %d %d %d", &block, &types[0], &types[1], &bins[0], &bins[1], &tof), 6);
        assert_true(at < list->count);
        const lr_event *event = &list->events[at++];
        const float *edges = list->info.tof_edges_mm;
        assert_pairs(0, {event->crystals[0], bins[0]}, {event->crystals[1], bins[1]}, {event->time_ms, block});
        assert_all(!event->is_delayed, event->tof_mm == (float)(0.5 * ((double)edges[tof] + edges[tof + 1])));
    }
    fclose(file);
    assert_pairs(0, {at, 273}, {list->count, 273}, {list->info.counts.prompts, 273});
}

/* Events are binned on the LORs of the file's own scanner; the mask and the rule made of it agree on which events
 * are in coincidence. */
static void official_events_are_binned(void **state)
{
    char path[1024];
    lr_lors *lors = lors_of(keep(lr_scanner_read(official(path, OFFICIAL), NULL)));
    const lr_prompts_delayeds data = bin_events((lr_events_source){.path = path}, lors);
    assert_pairs(0, {total(data.prompts) + (double)data.counts.not_in_coincidence, 273},
                 {data.counts.unknown_crystals, 0}, {data.delayeds->count, 0});
}

/* --- written here --- */

static int compare_events(const void *a, const void *b)
{
    const lr_event *left = a, *right = b;
    const int64_t keys[2][5] = {
        {left->time_ms, left->is_delayed, left->crystals[0], left->crystals[1], (int64_t)(left->tof_mm * 1e3)},
        {right->time_ms, right->is_delayed, right->crystals[0], right->crystals[1], (int64_t)(right->tof_mm * 1e3)}};
    for (int k = 0; k < 5; k++)
        if (keys[0][k] != keys[1][k]) return keys[0][k] < keys[1][k] ? -1 : 1;
    return 0;
}

/* (a, b, t) and (b, a, -t) are the same event, where t is the time of flight. */
static void bring_into_order(lr_event *events, int count, bool swap)
{
    for (int k = 0; swap && k < count; k++) {
        lr_event *event = &events[k];
        if (event->crystals[0] > event->crystals[1]) {
            const int32_t crystal = event->crystals[0];
            event->crystals[0] = event->crystals[1];
            event->crystals[1] = crystal;
            event->tof_mm = -event->tof_mm;
        }
    }
    qsort(events, (size_t)count, sizeof(*events), compare_events);
}

/* Writes events and reads them back. */
static void events_come_back(void **state)
{
    enum { COUNT = 3000 };
    const lr_scanner *scanner = files.lors->scanner;
    for (int n = 0; n < 4; n++) {
        const int minor = n < 2 ? 9 : 10;
        const bool tof = n % 2 == 0;
        test_log_init(&files.log);
        lr_event *events = random_events(scanner, COUNT, tof);
        lr_events_info info = {.has_tof = tof, .energy_kev = {425, 650}};
        if (tof) info.num_tof_bins = 5;
        if (tof) info.tof_edges_mm = (float *)even_edges;
        lr_events_writer_params params = {.path = FILE_NAME, .lors = files.lors, .info = &info};
        params.petsird_minor = minor;
        write_list(&params, events, COUNT);
        const lr_events_source source = {.path = FILE_NAME, .scanner = scanner, .log = &files.log.log};
        lr_event_list *list = keep(lr_event_list_read(&source));
        assert_ints(list->count, COUNT, files.log.num_warnings, 0);
        assert_string_equal(list->info.version, minor == 10 ? "0.10.0" : "0.9.1");
        assert_string_equal(list->info.scanner, scanner->name);
        assert_true(list->info.energy_kev[0] == 425 && list->info.energy_kev[1] == 650);
        assert_int_equal(list->info.has_tof, tof);
        bring_into_order(events, COUNT, minor == 10);
        bring_into_order(list->events, COUNT, minor == 10);
        for (int k = 0; k < COUNT; k++) {
            assert_int_equal(compare_events(&events[k], &list->events[k]), 0);
            assert_true(events[k].tof_mm == list->events[k].tof_mm);
        }
    }
}

/* A scanner with its crystals in the same places is warned of if faces of 1.9 mm are 1.5 mm wide, so that edges are
 * 0.2 mm off. Another depth of detection is the scanner's own affair. */
static void other_edges_are_warned_of(void **state)
{
    const lr_scanner *scanner = files.lors->scanner;
    lr_module modules[4];
    write_list(&(lr_events_writer_params){.path = FILE_NAME, .lors = files.lors}, NULL, 0);
    memcpy(modules, scanner->modules, sizeof(modules));
    for (int n = 0; n < 3; n++) {
        test_log_init(&files.log);
        modules[0].face_mm[0] = n == 2 ? 1.5 : 1.9;
        lr_scanner *other = keep(lr_scanner_create(&(lr_scanner_params){
            .name = "other", .modules = modules, .num_modules = 4, .detection_depth_mm = n == 1 ? 7 : 5}));
        (void)keep(lr_event_list_read(&(lr_events_source){.path = FILE_NAME, .scanner = other, .log = &files.log.log}));
        assert_int_equal(files.log.num_warnings, n == 2);
        if (n == 2) assert_says(files.log.warning, "0.2 mm in the edges of crystals");
    }
}

/* Writes a file of a scanner without events. */
static void write_scanner(const lr_lors *lors, int minor)
{
    write_list(&(lr_events_writer_params){.path = FILE_NAME, .lors = lors, .petsird_minor = minor}, NULL, 0);
}

/* Positions are in single precision and are the result of two transformations: at 400 mm they are accurate to 3e-5
   mm. */
static void scanners_come_back(void **state)
{
    static const char *const names[] = {NULL, "ge-explore-vista-dr", "safir-dual-ring-prototype", "siemens-mmr"};
    for (size_t n = 0; n < 2 * sizeof(names) / sizeof(names[0]); n++) {
        const int minor = n % 2 == 0 ? 9 : 10;
        lr_lors *lors = lors_of(n < 2 ? lopsided() : keep(lr_scanner_read(names[n / 2], NULL)));
        const lr_scanner *scanner = lors->scanner;
        write_scanner(lors, minor);
        lr_scanner *read = keep(lr_scanner_read("./" FILE_NAME, &files.log.log));
        assert_string_equal(read->name, scanner->name);
        assert_int_equal(read->num_crystals, scanner->num_crystals);
        double worst = 0, off;
        for (int c = 0; c<scanner->num_crystals; c += scanner->num_crystals> 3000 ? 97 : 1) {
            double centre[3];
            const lr_module *module = &scanner->modules[lr_scanner_module_of(scanner, c)];
            lr_scanner_crystal_centre(scanner, c, centre);
            const lr_module *found = &read->modules[lr_scanner_module_of(read, nearest_crystal(read, centre, &off))];
            worst = fmax(worst, off);
            assert_true(fabs(found->face_mm[0] - module->face_mm[0]) < 1e-4);
            assert_true(fabs(found->face_mm[1] - module->face_mm[1]) < 1e-4);
            assert_true(fabs(found->depth_mm - module->depth_mm) < 1e-4);
            for (int k = 0; k < 3; k++) assert_true(fabs(found->normal[k] - module->normal[k]) < 1e-5);
        }
        print_message("%s, v0.%d: crystals off by at most %.2g mm\n", scanner->name, minor, worst);
        assert_true(worst < 1.5e-4);
    }
}

/* The file stores which modules are in coincidence; they are read as a rule if there is a rule for them. */
static void masks_come_back(void **state)
{
    test_log_init(&files.log);
    lr_lors *lors =
        lors_of(scanner_of("name: ring\nring: {radius_mm: 40, modules: 12, rings: 2, ring_pitch_mm: 14}\n"
                           "module: {crystals: [2, 3], pitch_mm: [4, 4], face_mm: [3.9, 3.8], depth_mm: 10}\n"
                           "coincidence: {min_module_difference: 4}\n"));
    for (int minor = 9; minor <= 10; minor++) {
        write_scanner(lors, minor);
        lr_lors *read = lors_of(keep(lr_scanner_read("./" FILE_NAME, &files.log.log)));
        assert_pairs(0, {read->scanner->coincidence.min_module_difference, 4}, {read->num_pairs, lors->num_pairs});
    }
    assert_int_equal(files.log.num_warnings, 0);
}

/* After magic and version comes the official schema, byte for byte. */
static void schema_is_the_official_one(void **state)
{
    char path[1024];
    size_t schema_count, count;
    unsigned char *schema = bytes_read(official(path, SCHEMA), &schema_count);
    write_scanner(files.lors, 9);
    unsigned char *bytes = bytes_read(FILE_NAME, &count);
    static const unsigned char start[] = {'y', 'a', 'r', 'd', 'l', 1, 0, 0, 0};
    assert_int_equal(schema_count, 10629);
    assert_true(count > 11 + schema_count);
    assert_memory_equal(bytes, start, sizeof(start));
    assert_int_equal(bytes[9], 0x80 | (10629 & 0x7f)); /* 10629, 7 bits per byte */
    assert_int_equal(bytes[10], 10629 >> 7);
    assert_memory_equal(bytes + 11, schema, schema_count);
    assert_memory_equal(bytes, good, 11 + schema_count);
}

group_main("io petsird", set_up, files_end, cmocka_unit_test(corners_are_the_official_ones),
           cmocka_unit_test(events_are_the_official_ones), cmocka_unit_test(official_events_are_binned),
           cmocka_unit_test(events_come_back), cmocka_unit_test(other_edges_are_warned_of),
           cmocka_unit_test(scanners_come_back), cmocka_unit_test(masks_come_back),
           cmocka_unit_test(schema_is_the_official_one))

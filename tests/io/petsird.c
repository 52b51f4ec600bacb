/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * PETSIRD: the official file against what its own helpers print of it, files written here read
 * back, schemas that are not as they should be, and damaged files. */
#include "test.h"

#include "io/output.h"
#include "io/petsird.h"
#include "io/yardl_write.h"

#include <sys/stat.h>
#include <unistd.h>

#define OFFICIAL "petsird/small_cpp_v0.9.1.petsird"
#define CORNERS "petsird/small_cpp_v0.9.1.corners.txt"
#define EVENTS "petsird/small_cpp_v0.9.1.events.txt"
#define SCHEMA "petsird/schema_v0.9.1.json"
#define FILE_NAME "petsird_test.petsird"
#define FOLDER "petsird_test_folder.petsird"

/* The helpers print five decimals of single-precision numbers. */
static const double text_mm = 1e-4;

struct fixture {
    struct test_log log;
    unsigned char *bytes; /* of the official file, or of one of ours where that is absent */
    size_t count, first;  /* and where the header begins */
};

static unsigned char *read_bytes(const char *path, size_t *count)
{
    struct stat facts;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &facts), 0);
    *count = (size_t)facts.st_size;
    unsigned char *bytes = malloc(*count + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *count, file), *count);
    fclose(file);
    return bytes;
}

static void write_bytes(const void *bytes, size_t count)
{
    FILE *file = fopen(FILE_NAME, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    free(fixture->bytes);
    remove(FILE_NAME);
    return 0;
}

/* Skips where the official files are absent. */
static const char *official(struct fixture *fixture, char path[1024], const char *name)
{
    test_log_init(&fixture->log);
    if (test_data(path, name) == NULL) {
        skip();
    }
    return path;
}

/* --- the official file --- */

/* Distance of a point from the nearest corner of a scanner's crystal. */
static double from_corners(const lr_scanner *scanner, int crystal, const double point[3])
{
    const int m = lr_scanner_module_of(scanner, crystal);
    const lr_module *module = &scanner->modules[m];
    const int within = crystal - scanner->first_crystal[m];
    double centre[3], nearest = INFINITY;
    lr_module_crystal_centre(module, within % module->crystals[0], within / module->crystals[0],
                             centre);
    for (int n = 0; n < 8; n++) {
        double squares = 0;
        for (int k = 0; k < 3; k++) {
            const double at = centre[k] + (n & 1 ? 0.5 : -0.5) * module->face_mm[0] * module->u[k] +
                              (n & 2 ? 0.5 : -0.5) * module->face_mm[1] * module->v[k] +
                              (n & 4 ? 0.5 : -0.5) * module->depth_mm * module->normal[k];
            squares += (at - point[k]) * (at - point[k]);
        }
        nearest = fmin(nearest, sqrt(squares));
    }
    return nearest;
}

static int nearest_crystal(const lr_scanner *scanner, const double centre_mm[3], double *off_mm)
{
    int nearest = -1;
    *off_mm = INFINITY;
    for (int c = 0; c < scanner->num_crystals; c++) {
        const int m = lr_scanner_module_of(scanner, c);
        const lr_module *module = &scanner->modules[m];
        const int within = c - scanner->first_crystal[m];
        double at[3];
        lr_module_crystal_centre(module, within % module->crystals[0], within / module->crystals[0],
                                 at);
        const double off = sqrt((at[0] - centre_mm[0]) * (at[0] - centre_mm[0]) +
                                (at[1] - centre_mm[1]) * (at[1] - centre_mm[1]) +
                                (at[2] - centre_mm[2]) * (at[2] - centre_mm[2]));
        if (off < *off_mm) {
            *off_mm = off;
            nearest = c;
        }
    }
    return nearest;
}

/* "type module element x y z x y z ..." */
static int read_corners(FILE *file, int names[3], double corners[8][3])
{
    char line[1024];
    do {
        if (fgets(line, sizeof(line), file) == NULL) {
            return 0;
        }
    } while (line[0] == '#');
    int used = 0, length;
    assert_int_equal(sscanf(line, "%d %d %d%n", &names[0], &names[1], &names[2], &used), 3);
    for (int k = 0; k < 24; k++, used += length) {
        assert_int_equal(sscanf(line + used, "%lf%n", &corners[k / 3][k % 3], &length), 1);
    }
    return 1;
}

/* Every crystal's corners, as the file places them and as the scanner made of it does. */
static void corners_are_the_official_ones(void **state)
{
    struct fixture *fixture = *state;
    char path[1024], text_path[1024];
    struct lr_petsird petsird;
    official(fixture, path, OFFICIAL);
    official(fixture, text_path, CORNERS);
    assert_int_equal(lr_petsird_open(&petsird, path, &fixture->log.log), LR_OK);
    lr_scanner *scanner = lr_petsird_scanner(&petsird);
    assert_non_null(scanner);
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
            for (int k = 0; k < 3; k++) {
                worst = fmax(worst, fabs(found[c][k] - expected[c][k]));
            }
            worst_scanner = fmax(worst_scanner, from_corners(scanner, ours, expected[c]));
        }
    }
    fclose(file);
    print_message("%d crystals, corners off by at most %.2g mm, of the scanner by %.2g mm\n", count,
                  worst, worst_scanner);
    assert_int_equal(count, 256);
    assert_int_equal(petsird.num_crystals, 256);
    assert_true(worst < text_mm && worst_scanner < text_mm);
    assert_string_equal(petsird.version, "0.9.1");
    assert_string_equal(scanner->name, "PETSIRD_TEST");
    /* 9.4 mm of place are 9.4 / (c/2) ps; the mask excludes modules of one angle. */
    assert_close(scanner->tof_resolution_ps, 9.4 / 0.149896229, 1e-7);
    assert_int_equal(scanner->num_positions, 8);
    assert_int_equal(scanner->coincidence.min_module_difference, 1);
    lr_scanner_destroy(scanner);
    lr_petsird_close(&petsird);
}

static void events_are_the_official_ones(void **state)
{
    struct fixture *fixture = *state;
    char path[1024], text_path[1024], line[128];
    const lr_events_source source = {.path = official(fixture, path, OFFICIAL),
                                     .log = &fixture->log.log};
    official(fixture, text_path, EVENTS);
    assert_int_equal(lr_events_recognise(path), LR_EVENTS_PETSIRD);
    lr_event_list *list = lr_event_list_read(&source);
    assert_non_null(list);
    assert_int_equal(list->info.num_tof_bins, 11);
    FILE *file = fopen(text_path, "r");
    int64_t at = 0;
    while (fgets(line, sizeof(line), file) != NULL) {
        int block, types[2], bins[2], tof;
        if (line[0] == '#') {
            continue;
        }
        assert_int_equal(sscanf(line, "%d %d %d %d %d %d", &block, &types[0], &types[1], &bins[0],
                                &bins[1], &tof),
                         6);
        assert_true(at < list->count);
        const lr_event *event = &list->events[at++];
        const float *edges = list->info.tof_edges_mm;
        assert_int_equal(event->crystals[0], bins[0]);
        assert_int_equal(event->crystals[1], bins[1]);
        assert_int_equal(event->time_ms, block);
        assert_false(event->is_delayed);
        assert_true(event->tof_mm == (float)(0.5 * ((double)edges[tof] + edges[tof + 1])));
    }
    fclose(file);
    assert_int_equal(at, 273);
    assert_int_equal(list->count, 273);
    assert_int_equal(list->info.counts.prompts, 273);
    lr_event_list_destroy(list);
}

/* Events are binned on the LORs of the file's own scanner; the mask and the rule agree with which
 * of them are in coincidence. */
static void official_events_are_binned(void **state)
{
    struct fixture *fixture = *state;
    char path[1024];
    const lr_events_source source = {.path = official(fixture, path, OFFICIAL),
                                     .log = &fixture->log.log};
    lr_scanner *scanner = lr_scanner_read(path, &fixture->log.log);
    lr_lors *lors = lr_lors_create(scanner, &fixture->log.log);
    lr_prompts_delayeds data;
    assert_int_equal(lr_events_bin(&source, lors, &data, NULL), LR_OK);
    double sum = 0;
    for (int64_t k = 0; k < data.prompts->count; k++) {
        sum += data.prompts->values[k];
    }
    assert_true(sum + (double)data.counts.not_in_coincidence == 273);
    assert_int_equal(data.counts.unknown_crystals, 0);
    assert_int_equal(data.delayeds->count, 0);
    lr_lor_data_destroy(data.prompts);
    lr_lor_data_destroy(data.delayeds);
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
}

/* --- written here --- */

/* Three kinds of modules, one tilted, one whose axes are left-handed, none like its mirror image. */
static lr_scanner *lopsided(const lr_log *log)
{
    const double c = cos(0.3), s = sin(0.3);
    const lr_module modules[4] = {
        {.centre_mm = {60, 3, 5},
         .u = {0, 1, 0},
         .v = {0, 0, 1},
         .crystals = {3, 5},
         .pitch_mm = {2, 3},
         .face_mm = {1.9, 2.7},
         .depth_mm = 10},
        {.centre_mm = {-55, 1, -2},
         .u = {0, 1, 0},
         .v = {0, 0, 1},
         .crystals = {3, 5},
         .pitch_mm = {2, 3},
         .face_mm = {1.9, 2.7},
         .depth_mm = 10},
        {.centre_mm = {4, 70, 1},
         .u = {c, 0, s},
         .v = {-s, 0, c},
         .crystals = {4, 2},
         .pitch_mm = {2.5, 2.2},
         .face_mm = {2.5, 2},
         .depth_mm = 12},
        {.centre_mm = {-7, -66, 8},
         .u = {1, 0, 0},
         .v = {0, 0, 1},
         .crystals = {3, 5},
         .pitch_mm = {2, 3},
         .face_mm = {1.9, 2.7},
         .depth_mm = 10},
    };
    const lr_scanner_params params = {.name = "lopsided",
                                      .modules = modules,
                                      .num_modules = 4,
                                      .tof_resolution_ps = 300,
                                      .log = log};
    return lr_scanner_create(&params);
}

static const float even_edges[] = {-60, -31, -8, 8, 31, 60};

/* Any two crystals of different modules; times ascend and repeat. */
static lr_event *random_events(const lr_scanner *scanner, int count, bool tof)
{
    uint64_t seed = test_seed();
    lr_event *events = calloc((size_t)count, sizeof(*events));
    assert_non_null(events);
    for (int k = 0; k < count; k++) {
        lr_event *event = &events[k];
        do {
            event->crystals[0] = (int32_t)(test_random(&seed) * scanner->num_crystals);
            event->crystals[1] = (int32_t)(test_random(&seed) * scanner->num_crystals);
        } while (lr_scanner_module_of(scanner, event->crystals[0]) ==
                 lr_scanner_module_of(scanner, event->crystals[1]));
        const int bin = (int)(test_random(&seed) * 5);
        event->tof_mm = tof ? (float)(0.5 * ((double)even_edges[bin] + even_edges[bin + 1])) : 0;
        event->time_ms = (uint32_t)(70000 + k / 7 * 3);
        event->is_delayed = test_random(&seed) < 0.3;
        event->weight = 1;
    }
    return events;
}

static int compare_events(const void *a, const void *b)
{
    const lr_event *left = a, *right = b;
    const int64_t keys[2][5] = {{left->time_ms, left->is_delayed, left->crystals[0],
                                 left->crystals[1], (int64_t)(left->tof_mm * 1e3)},
                                {right->time_ms, right->is_delayed, right->crystals[0],
                                 right->crystals[1], (int64_t)(right->tof_mm * 1e3)}};
    for (int k = 0; k < 5; k++) {
        if (keys[0][k] != keys[1][k]) {
            return keys[0][k] < keys[1][k] ? -1 : 1;
        }
    }
    return 0;
}

/* (a, b, t) and (b, a, -t) are the same event. */
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

static void write_events(const lr_events_writer_params *params, const lr_event *events, int count)
{
    lr_events_writer *writer = lr_events_writer_create(params);
    assert_non_null(writer);
    const lr_event_sink sink = lr_events_writer_sink(writer);
    assert_int_equal(sink.take(sink.user, events, count / 2), LR_OK);
    assert_int_equal(sink.take(sink.user, events + count / 2, count - count / 2), LR_OK);
    assert_int_equal(lr_events_writer_finish(writer), LR_OK);
}

/* Writes and reads back; the scanner is `lors`' own, or the file's. */
static void expect_same_events(struct fixture *fixture, const lr_lors *lors, int minor, bool tof)
{
    enum { COUNT = 3000 };
    lr_event *events = random_events(lors->scanner, COUNT, tof);
    const lr_events_info info = {.has_tof = tof,
                                 .num_tof_bins = tof ? 5 : 0,
                                 .tof_edges_mm = tof ? (float *)even_edges : NULL,
                                 .energy_kev = {425, 650}};
    const lr_events_writer_params params = {.path = FILE_NAME,
                                            .lors = lors,
                                            .info = &info,
                                            .petsird_minor = minor,
                                            .log = &fixture->log.log};
    write_events(&params, events, COUNT);
    const lr_events_source source = {
        .path = FILE_NAME, .scanner = lors->scanner, .log = &fixture->log.log};
    lr_event_list *list = lr_event_list_read(&source);
    if (list == NULL) {
        fail_msg("%s", fixture->log.error);
    }
    assert_int_equal(list->count, COUNT);
    assert_int_equal(fixture->log.num_warnings, 0);
    assert_string_equal(list->info.version, minor == 10 ? "0.10.0" : "0.9.1");
    assert_string_equal(list->info.scanner, lors->scanner->name);
    assert_true(list->info.energy_kev[0] == 425 && list->info.energy_kev[1] == 650);
    assert_int_equal(list->info.has_tof, tof);
    bring_into_order(events, COUNT, minor == 10);
    bring_into_order(list->events, COUNT, minor == 10);
    for (int k = 0; k < COUNT; k++) {
        assert_int_equal(compare_events(&events[k], &list->events[k]), 0);
        assert_true(events[k].tof_mm == list->events[k].tof_mm);
    }
    lr_event_list_destroy(list);
    free(events);
}

static void events_come_back(void **state)
{
    struct fixture *fixture = *state;
    test_log_init(&fixture->log);
    lr_scanner *scanner = lopsided(&fixture->log.log);
    lr_lors *lors = lr_lors_create(scanner, &fixture->log.log);
    assert_non_null(lors);
    for (int minor = 9; minor <= 10; minor++) {
        expect_same_events(fixture, lors, minor, true);
        expect_same_events(fixture, lors, minor, false);
    }
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
}

/* Crystals of single precision: 400 mm are good to 3e-5 mm, put in place twice. */
static void expect_same_scanner(struct fixture *fixture, const char *name, int minor)
{
    test_log_init(&fixture->log);
    lr_scanner *scanner =
        name != NULL ? lr_scanner_read(name, &fixture->log.log) : lopsided(&fixture->log.log);
    lr_lors *lors = lr_lors_create(scanner, &fixture->log.log);
    assert_non_null(lors);
    const lr_events_writer_params params = {
        .path = FILE_NAME, .lors = lors, .petsird_minor = minor, .log = &fixture->log.log};
    write_events(&params, NULL, 0);
    lr_scanner *read = lr_scanner_read("./" FILE_NAME, &fixture->log.log);
    if (read == NULL) {
        fail_msg("%s: %s", scanner->name, fixture->log.error);
    }
    assert_string_equal(read->name, scanner->name);
    assert_int_equal(read->num_crystals, scanner->num_crystals);
    double worst = 0, off;
    const int step = scanner->num_crystals > 3000 ? 97 : 1;
    for (int c = 0; c < scanner->num_crystals; c += step) {
        const int m = lr_scanner_module_of(scanner, c);
        const lr_module *module = &scanner->modules[m];
        const int within = c - scanner->first_crystal[m];
        double centre[3];
        lr_module_crystal_centre(module, within % module->crystals[0], within / module->crystals[0],
                                 centre);
        const int other = nearest_crystal(read, centre, &off);
        const lr_module *found = &read->modules[lr_scanner_module_of(read, other)];
        worst = fmax(worst, off);
        assert_true(fabs(found->face_mm[0] - module->face_mm[0]) < 1e-4);
        assert_true(fabs(found->face_mm[1] - module->face_mm[1]) < 1e-4);
        assert_true(fabs(found->depth_mm - module->depth_mm) < 1e-4);
        for (int k = 0; k < 3; k++) {
            assert_true(fabs(found->normal[k] - module->normal[k]) < 1e-5);
        }
    }
    print_message("%s, v0.%d: crystals off by at most %.2g mm\n", scanner->name, minor, worst);
    assert_true(worst < 1.5e-4);
    lr_scanner_destroy(read);
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
}

static void scanners_come_back(void **state)
{
    static const char *const names[] = {NULL, "ge-explore-vista-dr", "safir-dual-ring-prototype",
                                        "siemens-mmr"};
    for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
        expect_same_scanner(*state, names[k], 9);
        expect_same_scanner(*state, names[k], 10);
    }
}

/* Which modules are in coincidence is in the file, and comes back as a rule where one says it. */
static void masks_come_back(void **state)
{
    struct fixture *fixture = *state;
    static const int crystals[2] = {2, 3};
    const lr_ring ring = {.radius_mm = 40,
                          .modules = 12,
                          .rings = 2,
                          .ring_pitch_mm = 14,
                          .block_crystals = {&crystals[0], &crystals[1]},
                          .pitch_mm = {4, 4},
                          .face_mm = {3.9, 3.8},
                          .depth_mm = 10};
    const lr_scanner_params rules = {
        .name = "ring", .coincidence = {.min_module_difference = 4}, .log = &fixture->log.log};
    test_log_init(&fixture->log);
    lr_scanner *scanner = lr_scanner_create_ring(&rules, &ring);
    lr_lors *lors = lr_lors_create(scanner, &fixture->log.log);
    for (int minor = 9; minor <= 10; minor++) {
        const lr_events_writer_params params = {
            .path = FILE_NAME, .lors = lors, .petsird_minor = minor, .log = &fixture->log.log};
        write_events(&params, NULL, 0);
        lr_scanner *read = lr_scanner_read("./" FILE_NAME, &fixture->log.log);
        assert_non_null(read);
        assert_int_equal(read->coincidence.min_module_difference, 4);
        lr_lors *others = lr_lors_create(read, &fixture->log.log);
        assert_int_equal(others->num_pairs, lors->num_pairs);
        lr_lors_destroy(others);
        lr_scanner_destroy(read);
    }
    assert_int_equal(fixture->log.num_warnings, 0);
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
}

/* After magic and version stands the official schema string, byte for byte. */
static void schema_is_the_official_one(void **state)
{
    struct fixture *fixture = *state;
    char path[1024];
    size_t schema_count, count;
    official(fixture, path, SCHEMA);
    unsigned char *schema = read_bytes(path, &schema_count);
    lr_scanner *scanner = lopsided(&fixture->log.log);
    lr_lors *lors = lr_lors_create(scanner, &fixture->log.log);
    write_events(&(lr_events_writer_params){.path = FILE_NAME, .lors = lors}, NULL, 0);
    unsigned char *bytes = read_bytes(FILE_NAME, &count);
    static const unsigned char start[] = {'y', 'a', 'r', 'd', 'l', 1, 0, 0, 0};
    assert_int_equal(schema_count, 10629);
    assert_true(count > 11 + schema_count);
    assert_memory_equal(bytes, start, sizeof(start));
    assert_int_equal(bytes[9], 0x80 | (10629 & 0x7f)); /* 10629 in base 128 */
    assert_int_equal(bytes[10], 10629 >> 7);
    assert_memory_equal(bytes + 11, schema, schema_count);
    assert_memory_equal(bytes, fixture->bytes, 11 + schema_count);
    free(bytes);
    free(schema);
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
}

/* --- what can be wrong --- */

static lr_status drop(void *user, const lr_event *events, int64_t count)
{
    (void)events;
    *(int64_t *)user += count;
    return LR_OK;
}

static lr_status read_file(struct fixture *fixture, const char *path)
{
    int64_t count = 0;
    lr_events_info info;
    const lr_event_sink sink = {drop, &count};
    const lr_events_source source = {
        .path = path, .format = LR_EVENTS_PETSIRD, .log = &fixture->log.log};
    test_log_init(&fixture->log);
    const lr_status status = lr_events_read(&source, &sink, &info);
    lr_events_info_finish(&info);
    return status;
}

static void expect(struct fixture *fixture, const char *path, const char *sentence)
{
    if (read_file(fixture, path) != LR_BAD_INPUT || fixture->log.status != LR_BAD_INPUT ||
        strstr(fixture->log.error, sentence) == NULL) {
        fail_msg("expected '%s', found '%s'", sentence, fixture->log.error);
    }
    assert_null(lr_scanner_read(path, &fixture->log.log));
}

static void no_files(void **state)
{
    struct fixture *fixture = *state;
    remove(FILE_NAME);
    expect(fixture, "./" FILE_NAME, "cannot be opened");
    write_bytes("", 0);
    expect(fixture, "./" FILE_NAME, "it is empty");
    write_bytes("yardl\1\0\0", 8);
    expect(fixture, "./" FILE_NAME, "does not begin with 'yardl' and a version");
    write_bytes("yardl\2\0\0\0", 9);
    expect(fixture, "./" FILE_NAME, "version 2 of yardl's binary encoding");
    write_bytes("yardl\1\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 18);
    expect(fixture, "./" FILE_NAME, "bytes is to follow, and the file has 0 more");
    write_bytes("yardl\1\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 19);
    expect(fixture, "./" FILE_NAME, "more than 64 bits");
    assert_int_equal(mkdir(FOLDER, 0700), 0);
    expect(fixture, "./" FOLDER, "is a folder");
    rmdir(FOLDER);
}

static void links_are_followed(void **state)
{
    struct fixture *fixture = *state;
    char path[1024];
    official(fixture, path, OFFICIAL);
    remove(FILE_NAME);
    assert_int_equal(symlink(path, FILE_NAME), 0);
    assert_int_equal(read_file(fixture, "./" FILE_NAME), LR_OK);
    remove(FILE_NAME);
    assert_int_equal(symlink("nowhere", FILE_NAME), 0);
    expect(fixture, "./" FILE_NAME, "cannot be opened");
    remove(FILE_NAME);
}

static void truncated_files_are_refused(void **state)
{
    struct fixture *fixture = *state;
    for (size_t k = 0; k < 64; k++) {
        write_bytes(fixture->bytes, fixture->count * k / 64);
        assert_int_equal(read_file(fixture, FILE_NAME), LR_BAD_INPUT);
        assert_int_equal(fixture->log.status, LR_BAD_INPUT);
    }
    write_bytes(fixture->bytes, fixture->count - 1);
    assert_int_equal(read_file(fixture, FILE_NAME), LR_BAD_INPUT);
    unsigned char *longer = malloc(fixture->count + 3);
    memcpy(longer, fixture->bytes, fixture->count);
    memset(longer + fixture->count, 0, 3);
    write_bytes(longer, fixture->count + 3);
    assert_int_equal(read_file(fixture, FILE_NAME), LR_BAD_INPUT);
    assert_non_null(strstr(fixture->log.error, "3 bytes follow after the last time block"));
    free(longer);
}

/* Any bytes: an answer or a sentence, never anything else. */
static void random_bytes_are_survived(void **state)
{
    struct fixture *fixture = *state;
    uint64_t seed = test_seed();
    unsigned char bytes[600];
    for (int n = 0; n < 200; n++) {
        for (size_t k = 0; k < sizeof(bytes); k++) {
            bytes[k] = (unsigned char)(test_random(&seed) * 256);
        }
        memcpy(bytes, "yardl\1\0\0\0", n % 2 ? 9 : 5);
        write_bytes(bytes, sizeof(bytes));
        assert_int_equal(read_file(fixture, FILE_NAME), LR_BAD_INPUT);
    }
    unsigned char *copy = malloc(fixture->count);
    for (int n = 0; n < 1000; n++) {
        memcpy(copy, fixture->bytes, fixture->count);
        const size_t first = n % 4 == 0 ? 0 : fixture->first; /* with the schema, or behind it */
        for (int k = 0; k < 1 + n % 5; k++) {
            const double at = test_random(&seed) * (double)(fixture->count - first);
            copy[first + (size_t)at] = (unsigned char)(test_random(&seed) * 256);
        }
        write_bytes(copy, fixture->count);
        const lr_status status = read_file(fixture, FILE_NAME);
        assert_true(status == LR_OK || status == LR_BAD_INPUT);
        test_log_init(&fixture->log);
        lr_scanner *scanner = lr_scanner_read("./" FILE_NAME, &fixture->log.log);
        assert_true((scanner == NULL) == (fixture->log.status != LR_OK));
        lr_scanner_destroy(scanner);
    }
    free(copy);
}

/* --- schemas --- */

/* A file of that schema, and bytes behind it. */
static void write_schema(const char *schema, const void *bytes, size_t count)
{
    struct lr_output output;
    assert_int_equal(lr_output_open(&output, FILE_NAME, NULL), LR_OK);
    lr_output_write(&output, "yardl\1\0\0\0", 9);
    lr_yardl_put_text(&output, schema);
    lr_output_write(&output, bytes, count);
    assert_int_equal(lr_output_finish(&output), LR_OK);
}

#define STEPS(type)                                                                                \
    "{\"protocol\":{\"name\":\"PETSIRD\",\"sequence\":[{\"name\":\"header\",\"type\":" type        \
    "},{\"name\":\"timeBlocks\",\"type\":{\"stream\":{\"items\":\"int32\"}}}]},\"types\":["
#define TYPE(name, rest) "{\"name\":\"" name "\"," rest "}"

static void schemas_are_distrusted(void **state)
{
    static const struct {
        const char *schema, *sentence;
    } cases[] = {
        {"", "has no protocol"},
        {"{}", "has no protocol"},
        {"not json", "has no protocol"},
        {"{\"protocol\":&a 1}", "is no JSON"},
        {STEPS("\"Lost\"") "]}", "lacks the type 'Lost'"},
        {STEPS("\"P.A\"") TYPE("A", "\"type\":\"P.A\"") "]}", "nests types more than 64 deep"},
        {STEPS("\"P.A\"") TYPE("A", "\"fields\":[{\"name\":\"a\",\"type\":[null,\"P.A\"]}]") "]}",
         "nests types more than 64 deep"},
        {STEPS("{\"name\":\"P.A\",\"typeArguments\":[]}")
             TYPE("A", "\"typeParameters\":[\"T\"],\"type\":\"T\"") "]}",
         "gives another number of arguments to 'P.A'"},
        {STEPS("{\"vector\":{\"items\":\"int32\",\"length\":-1}}") "]}", "a vector of length '-1'"},
        {STEPS("{\"array\":{\"items\":\"int32\",\"dimensions\":900}}") "]}", "an array of"},
        {STEPS("{\"vector\":{}}") "]}", "lacks a type"},
        {STEPS("7") "]}", "lacks the type '7'"},
        {STEPS("\"int32\"") "]}", "a record is expected"},
        {STEPS("\"P.A\"") TYPE("A", "\"fields\":[]") "]}", "the schema has no 'scanner'"},
        {STEPS("\"P.A\"") TYPE("A", "\"fields\":[{\"type\":\"int32\"}]") "]}",
         "a field without name"},
        {STEPS("\"P.A\"") TYPE(
             "A", "\"fields\":[{\"name\":\"x\",\"type\":{\"vector\":{\"items\":\"P.E\"}}},"
                  "{\"name\":\"scanner\",\"type\":\"P.E\"}]") "," TYPE("E", "\"fields\":[]") "]}",
         "items are to follow"},
    };
    struct fixture *fixture = *state;
    static const unsigned char huge[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0, 0};
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        write_schema(cases[k].schema, huge, sizeof(huge));
        expect(fixture, "./" FILE_NAME, cases[k].sentence);
    }
}

/* Lists of nothing within each other: 2^64 items that take no byte. */
static void lists_of_nothing_are_refused(void **state)
{
    struct fixture *fixture = *state;
    write_schema(
        STEPS("\"P.A\"") TYPE("A", "\"fields\":[{\"name\":\"scanner\",\"type\":\"P.B\"}]") "," TYPE(
            "B",
            "\"fields\":[{\"name\":\"detectionEfficiencies\",\"type\":"
            "\"P.C\"},{\"name\":\"scannerGeometry\",\"type\":\"P.E\"}]") "," TYPE("C",
                                                                                  "\"fields\":[{"
                                                                                  "\"name\":"
                                                                                  "\"modulePairEffi"
                                                                                  "cienciesVectors"
                                                                                  "\","
                                                                                  "\"type\":{"
                                                                                  "\"vector\":{"
                                                                                  "\"length\":"
                                                                                  "4294967296,"
                                                                                  "\"items\":"
                                                                                  "{\"vector\":{"
                                                                                  "\"length\":"
                                                                                  "4294967296,"
                                                                                  "\"items\":\"P."
                                                                                  "E\"}}}}"
                                                                                  "}]") "," TYPE("E",
                                                                                                 "\"fields\":[]") "]}",
        "", 0);
    expect(fixture, "./" FILE_NAME, "4294967296 items are to follow");
}

/* Types that double at each of 40 levels, and a depth that no stack would hold. */
static void schemas_that_explode_are_refused(void **state)
{
    enum { LEVELS = 40, DEEP = 100000 };
    struct fixture *fixture = *state;
    char *text = malloc(3 * DEEP);
    int used = sprintf(text, "%s", STEPS("\"T0\""));
    for (int k = 0; k < LEVELS; k++) {
        used += sprintf(text + used,
                        "{\"name\":\"T%d\",\"fields\":[{\"name\":\"a\",\"type\":\"T%d\"},"
                        "{\"name\":\"b\",\"type\":\"T%d\"}]},",
                        k, k + 1, k + 1);
    }
    sprintf(text + used, "{\"name\":\"T%d\",\"type\":\"int32\"}]}", LEVELS);
    write_schema(text, "", 0);
    expect(fixture, "./" FILE_NAME, "more than 16384 types");
    memset(text, '[', DEEP);
    text[DEEP] = '\0';
    write_schema(text, "", 0);
    expect(fixture, "./" FILE_NAME, "is no JSON of at most 64 levels");
    free(text);
}

/* --- what cannot be written --- */

static void bad_requests_are_refused(void **state)
{
    struct fixture *fixture = *state;
    test_log_init(&fixture->log);
    lr_scanner *scanner = lopsided(&fixture->log.log);
    lr_lors *lors = lr_lors_create(scanner, &fixture->log.log);
    lr_events_writer_params params = {
        .path = FILE_NAME, .lors = lors, .petsird_minor = 7, .log = &fixture->log.log};
    assert_null(lr_events_writer_create(&params));
    assert_int_equal(fixture->log.status, LR_USAGE);
    params = (lr_events_writer_params){.path = "x.safir", .lors = lors, .log = &fixture->log.log};
    assert_null(lr_events_writer_create(&params));
    assert_non_null(strstr(fixture->log.error, ".petsird"));
    params = (lr_events_writer_params){.path = FILE_NAME, .lors = lors, .log = &fixture->log.log};
    remove(FILE_NAME);
    lr_events_writer *writer = lr_events_writer_create(&params);
    const lr_event_sink sink = lr_events_writer_sink(writer);
    const lr_event half = {.crystals = {0, 20}, .weight = 0.5f};
    assert_int_equal(sink.take(sink.user, &half, 1), LR_USAGE);
    lr_events_writer_abandon(writer);
    assert_int_not_equal(access(FILE_NAME, F_OK), 0);
    lr_events_writer_abandon(NULL);
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
}

/* Another scanner's file is refused with the distance. */
static void other_scanners_are_told(void **state)
{
    struct fixture *fixture = *state;
    char path[1024];
    official(fixture, path, OFFICIAL);
    lr_scanner *scanner = lopsided(&fixture->log.log);
    int64_t count = 0;
    const lr_event_sink sink = {drop, &count};
    const lr_events_source source = {.path = path, .scanner = scanner, .log = &fixture->log.log};
    assert_int_equal(lr_events_read(&source, &sink, NULL), LR_BAD_INPUT);
    assert_non_null(strstr(fixture->log.error, "256 of its 256 crystals are none of lopsided's"));
    assert_int_equal(count, 0);
    lr_scanner_destroy(scanner);
}

static lr_status stop_at_once(void *user, const lr_event *events, int64_t count)
{
    (void)events;
    *(int64_t *)user += count;
    return LR_CANCELLED;
}

/* A sink that wants no more ends the reading with its own status. */
static void sinks_may_stop(void **state)
{
    struct fixture *fixture = *state;
    int64_t count = 0;
    const lr_event_sink sink = {stop_at_once, &count};
    write_bytes(fixture->bytes, fixture->count);
    const lr_events_source source = {.path = FILE_NAME, .log = &fixture->log.log};
    assert_int_equal(lr_events_read(&source, &sink, NULL), LR_CANCELLED);
    assert_true(count > 0);
}

/* Of a scanner that lacks two of the file's modules, the events of the others are kept. */
static void events_of_lost_modules_are_left_out(void **state)
{
    struct fixture *fixture = *state;
    enum { COUNT = 1000 };
    test_log_init(&fixture->log);
    lr_scanner *whole = lopsided(&fixture->log.log);
    lr_lors *lors = lr_lors_create(whole, &fixture->log.log);
    const lr_scanner_params params = {
        .name = "half", .modules = whole->modules, .num_modules = 2, .log = &fixture->log.log};
    lr_scanner *half = lr_scanner_create(&params);
    assert_non_null(half);
    lr_event *events = random_events(whole, COUNT, false);
    write_events(&(lr_events_writer_params){.path = FILE_NAME, .lors = lors}, events, COUNT);
    int64_t kept = 0;
    for (int k = 0; k < COUNT; k++) { /* both scanners number the first two modules alike */
        kept += events[k].crystals[0] < half->num_crystals &&
                events[k].crystals[1] < half->num_crystals;
    }
    const lr_events_source source = {.path = FILE_NAME, .scanner = half, .log = &fixture->log.log};
    lr_event_list *list = lr_event_list_read(&source);
    assert_non_null(list);
    assert_true(kept > 0 && kept < COUNT);
    assert_int_equal(list->count, kept);
    assert_int_equal(list->info.counts.unknown_crystals, COUNT - kept);
    assert_int_equal(list->info.counts.prompts + list->info.counts.delayeds, COUNT);
    assert_int_equal(fixture->log.num_warnings, 2); /* crystals, then events */
    lr_event_list_destroy(list);
    free(events);
    lr_scanner_destroy(half);
    lr_lors_destroy(lors);
    lr_scanner_destroy(whole);
}

/* A file of ours with events of both kinds. */
static void make_bytes(struct fixture *fixture)
{
    lr_scanner *scanner = lopsided(&fixture->log.log);
    lr_lors *lors = lr_lors_create(scanner, &fixture->log.log);
    lr_event *events = random_events(scanner, 400, false);
    write_events(&(lr_events_writer_params){.path = FILE_NAME, .lors = lors}, events, 400);
    fixture->bytes = read_bytes(FILE_NAME, &fixture->count);
    free(events);
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
}

static int set_up(void **state)
{
    static struct fixture fixture;
    char path[1024];
    test_log_init(&fixture.log);
    fixture.first = 11 + 10629;
    if (test_data(path, OFFICIAL) != NULL) {
        fixture.bytes = read_bytes(path, &fixture.count);
    } else {
        make_bytes(&fixture);
    }
    *state = &fixture;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corners_are_the_official_ones),
        cmocka_unit_test(events_are_the_official_ones),
        cmocka_unit_test(official_events_are_binned),
        cmocka_unit_test(events_come_back),
        cmocka_unit_test(scanners_come_back),
        cmocka_unit_test(masks_come_back),
        cmocka_unit_test(schema_is_the_official_one),
        cmocka_unit_test(no_files),
        cmocka_unit_test(links_are_followed),
        cmocka_unit_test(truncated_files_are_refused),
        cmocka_unit_test(random_bytes_are_survived),
        cmocka_unit_test(schemas_are_distrusted),
        cmocka_unit_test(lists_of_nothing_are_refused),
        cmocka_unit_test(schemas_that_explode_are_refused),
        cmocka_unit_test(bad_requests_are_refused),
        cmocka_unit_test(other_scanners_are_told),
        cmocka_unit_test(sinks_may_stop),
        cmocka_unit_test(events_of_lost_modules_are_left_out),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

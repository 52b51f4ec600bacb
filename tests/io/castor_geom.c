/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Crystals of CASToR's .geom keep CASToR's numbers: beside a model of that numbering written from its
 * documentation of the format, in whatever way the scanner comes to the events. */
#include "io/files.h"

#include "io/scanners/castor_order.h"

#include <lr/io.h>

static const double pi = 3.14159265358979323846;

enum { MAX_CRYSTALS = 2000 };

/* From the whole to the part: rsectors, modules, submodules, crystals; transaxial, axial. */
struct form {
    const char *name;
    int count[4][2];
    double gap_mm[4][2];
    double first_deg, span_deg;
    bool counterclockwise;
    int num_shifts;
    double shift_mm[3];
    int layers;
};

static const struct form forms[] = {
    {"plain", {{8, 1}, {1, 1}, {1, 1}, {6, 4}}, {{0, 0}}, 0, 360, false, 0, {0}, 1},
    {"ccw", {{8, 1}, {1, 1}, {1, 1}, {6, 4}}, {{0, 0}}, 0, 360, true, 0, {0}, 1},
    {"shifts", {{8, 1}, {1, 1}, {1, 1}, {6, 4}}, {{0, 0}}, 0, 360, false, 2, {0, 2}, 1},
    {"shifts_ccw", {{9, 1}, {1, 1}, {1, 1}, {6, 4}}, {{0}}, 0, 360, true, 3, {0, 1, -1}, 1},
    {"shifts_unequal", {{8, 1}, {1, 1}, {1, 1}, {5, 3}}, {{0}}, 10, 360, false, 3, {0, 3, 1}, 1},
    {"half", {{8, 1}, {1, 1}, {1, 1}, {6, 4}}, {{0, 0}}, 0, 180, false, 0, {0}, 1},
    {"span", {{6, 1}, {1, 1}, {1, 1}, {6, 4}}, {{0, 0}}, 0, 270, false, 0, {0}, 1},
    {"span_ccw", {{10, 1}, {1, 1}, {1, 1}, {5, 4}}, {{0}}, 20, 300, true, 2, {0, 3}, 1},
    {"two", {{2, 1}, {1, 1}, {1, 1}, {6, 4}}, {{0, 0}}, 0, 360, false, 0, {0}, 1},
    {"two_ccw", {{2, 1}, {1, 1}, {1, 1}, {6, 4}}, {{0, 0}}, 45, 360, true, 0, {0}, 1},
    {"three", {{3, 1}, {1, 1}, {1, 1}, {6, 4}}, {{0, 0}}, 0, 360, false, 0, {0}, 1},
    {"first", {{8, 1}, {1, 1}, {1, 1}, {6, 4}}, {{0, 0}}, 30, 360, false, 0, {0}, 1},
    {"first_ccw", {{8, 1}, {1, 1}, {1, 1}, {6, 4}}, {{0}}, -47, 360, true, 0, {0}, 1},
    {"layers", {{8, 1}, {1, 1}, {1, 1}, {6, 4}}, {{0, 0}}, 0, 360, false, 0, {0}, 2},
    {"layers_ccw", {{7, 1}, {1, 1}, {1, 1}, {6, 4}}, {{0, 0}}, 0, 360, true, 0, {0}, 3},
    {"rings", {{8, 3}, {1, 1}, {1, 1}, {6, 4}}, {{0, 2}}, 0, 360, false, 0, {0}, 1},
    {"rings_ccw", {{8, 3}, {1, 1}, {1, 1}, {6, 4}}, {{0, 2}}, 0, 360, true, 0, {0}, 1},
    {"modules", {{8, 1}, {2, 2}, {1, 1}, {3, 2}}, {{0}, {1, 1.5}}, 0, 360, false, 0, {0}, 1},
    {"submodules", {{5, 1}, {2, 2}, {2, 2}, {3, 2}}, {{0}, {3, 2.5}, {1, 1.5}}, 0, 360, true, 0, {0}, 1},
    {"gaps_alike", {{8, 1}, {2, 1}, {1, 1}, {3, 4}}, {{0}, {0.2, 0}}, 0, 360, true, 0, {0}, 1},
    {"single", {{40, 1}, {1, 1}, {1, 1}, {1, 1}}, {{0}}, 0, 360, true, 0, {0}, 1},
    {"one_ring", {{8, 1}, {1, 1}, {1, 1}, {6, 1}}, {{0}}, 0, 360, true, 0, {0}, 1},
    {"odd", {{7, 1}, {1, 1}, {1, 1}, {6, 4}}, {{0}}, 0, 360, true, 0, {0}, 1},
};
enum { NUM_FORMS = sizeof(forms) / sizeof(forms[0]) };

static const double size_mm[3] = {3, 3.5, 8}, crystal_gap_mm[2] = {0.2, 0.3};

struct fixture {
    struct test_folder folder;
    struct test_log log;
    double places_mm[MAX_CRYSTALS][3]; /* by CASToR's numbers, in our frame */
    int count;
};

/* --- the model --- */

/* How far the units of a level stand from each other: the parts' length, and the gap between two units. */
static double step_mm(const struct form *form, int level, int axis)
{
    double length = size_mm[axis];
    for (int k = 3; k > level; k--) length += (form->count[k][axis] - 1) * step_mm(form, k, axis);
    return length + (level == 3 ? crystal_gap_mm[axis] : form->gap_mm[level][axis]);
}

/* A crystal from the middle of everything along an axis, the units that hold it given from the whole to the part. */
static double along_mm(const struct form *form, const int unit[4], int axis, int first_level)
{
    double at = 0;
    for (int k = first_level; k < 4; k++) at += (unit[k] - 0.5 * (form->count[k][axis] - 1)) * step_mm(form, k, axis);
    return at;
}

/* Layer by layer; in each, slice by slice along the axis; in each slice the rsectors one after the other, and along
 * each its crystals. Seen with x to the right and y up the first rsector is above the axis, and they go on
 * clockwise. CASToR's x is ours reversed. */
static void model(struct fixture *fixture, const struct form *form)
{
    fixture->count = 0;
    int slices = 1, across = 1;
    for (int k = 0; k < 4; k++) {
        slices *= form->count[k][1];
        across *= k > 0 ? form->count[k][0] : 1;
    }
    for (int n = 0; n < form->layers * slices * form->count[0][0] * across; n++) {
        int rest = n, unit[2][4] = {{0}};
        for (int k = 3; k > 0; k--) {
            unit[0][k] = rest % form->count[k][0];
            rest /= form->count[k][0];
        }
        const int sector = rest % form->count[0][0];
        rest /= form->count[0][0];
        for (int k = 3; k >= 0; k--) {
            unit[1][k] = rest % form->count[k][1];
            rest /= form->count[k][1];
        }
        const double turn = form->counterclockwise ? -1 : 1;
        const double angle = turn * (form->first_deg + sector * form->span_deg / form->count[0][0]) * pi / 180;
        const double across_mm = turn * along_mm(form, unit[0], 0, 1);
        const double out_mm = 80 + 9 * rest + 0.5 * size_mm[2];
        double *place = fixture->places_mm[fixture->count++];
        place[0] = -(out_mm * sin(angle) + across_mm * cos(angle));
        place[1] = out_mm * cos(angle) - across_mm * sin(angle);
        place[2] =
            along_mm(form, unit[1], 1, 0) + (form->num_shifts > 0 ? form->shift_mm[sector % form->num_shifts] : 0);
    }
}

static void write_form(const struct fixture *fixture, const struct form *form, const char *path)
{
    static const char *const units[4] = {"rsector", "module", "submodule", "crystal"};
    static const char *const axes[2] = {"transaxial", "axial"};
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file,
            "modality : PET\nscanner name : %s\nnumber of elements : %d\nnumber of layers : %d\n"
            "scanner radius : 80,89,98\nnumber of rsectors : %d\nnumber of rsectors axial : %d\n"
            "rsector gap axial : %g\nrsectors first angle : %g\nrsectors angular span : %g\n"
            "rotation direction : %s\nrsectors nbZShift : %d\nrsectors ZShift : %g,%g,%g\n"
            "crystals size depth : %g\ncrystals size transaxial : %g\ncrystals size axial : %g\n",
            form->name, fixture->count, form->layers, form->count[0][0], form->count[0][1], form->gap_mm[0][1],
            form->first_deg, form->span_deg, form->counterclockwise ? "CCW" : "CW", form->num_shifts, form->shift_mm[0],
            form->shift_mm[1], form->shift_mm[2], size_mm[2], size_mm[0], size_mm[1]);
    for (int k = 1; k < 4; k++) {
        for (int axis = 0; axis < 2; axis++) {
            fprintf(file, "number of %ss %s : %d\n%s gap %s : %g\n", units[k], axes[axis], form->count[k][axis],
                    units[k], axes[axis], k == 3 ? crystal_gap_mm[axis] : form->gap_mm[k][axis]);
        }
    }
    fputs("mean depth of interaction : -1\nvoxels number transaxial : 9\nvoxels number axial : 9\n"
          "field of view transaxial : 100\nfield of view axial : 50\n",
          file);
    assert_int_equal(fclose(file), 0);
}

/* --- the ways of a scanner to its events --- */

static lr_scanner *read_scanner(struct fixture *fixture, const char *path)
{
    lr_scanner *scanner = lr_scanner_read(path, &fixture->log.log);
    if (scanner == NULL) fail_msg("%s: %s", path, fixture->log.error);
    return scanner;
}

static void assert_numbers(const struct fixture *fixture, const lr_scanner *scanner, const char *what)
{
    int order[MAX_CRYSTALS];
    assert_int_equal(scanner->num_crystals, fixture->count);
    assert_int_equal(lr_castor_order(scanner, order, NULL), LR_OK);
    for (int k = 0; k < fixture->count; k++) {
        double at[3];
        const double *place = fixture->places_mm[k];
        lr_scanner_crystal_centre(scanner, order[k], at);
        const double off = hypot(hypot(at[0] - place[0], at[1] - place[1]), at[2] - place[2]);
        if (!(off < 1e-4)) /* a table has single precision; what is wrong is off by a crystal */
            fail_msg("%s: crystal %d is %g mm off", what, k, off);
    }
}

/* A row of a look-up table is the crystal of that number. */
static void assert_table(const struct fixture *fixture, const char *path)
{
    size_t bytes;
    unsigned char *rows = bytes_read(path, &bytes);
    assert_int_equal(bytes, 24 * (size_t)fixture->count);
    for (int k = 0; k < fixture->count; k++) {
        float at[3];
        memcpy(at, rows + 24 * k, sizeof(at));
        assert_true(fabs(-at[0] - fixture->places_mm[k][0]) < 1e-4 && fabs(at[1] - fixture->places_mm[k][1]) < 1e-4 &&
                    fabs(at[2] - fixture->places_mm[k][2]) < 1e-4);
    }
    free(rows);
}

/* Events of each crystal k and the one half of the list farther: written by CASToR's numbers, read back. */
static void assert_events(struct fixture *fixture, const char *name, const lr_scanner *scanner, const char *companion)
{
    char path[128], text[256], file[64];
    unsigned char bytes[12 * MAX_CRYSTALS] = {0};
    for (int k = 0; k < fixture->count; k++) {
        const uint32_t words[3] = {(uint32_t)k, (uint32_t)k, (uint32_t)((k + fixture->count / 2) % fixture->count)};
        memcpy(bytes + 12 * k, words, 12); /* a little-endian machine */
    }
    bytes_write(folder_file(&fixture->folder, path, "events.Cdf"), bytes, 12 * (size_t)fixture->count);
    snprintf(text, sizeof(text), "Data filename: events.Cdf\nNumber of events: %d\nData mode: list\nScanner name: %s\n",
             fixture->count, name);
    snprintf(file, sizeof(file), "events.Cdh");
    bytes_write(folder_file(&fixture->folder, path, file), text, strlen(text));
    const lr_events_source source = {
        .path = path, .scanner = scanner, .companion = companion, .log = &fixture->log.log};
    lr_event_list *list = lr_event_list_read(&source);
    if (list == NULL) fail_msg("%s: %s", name, fixture->log.error);
    assert_int_equal(list->count, fixture->count);
    for (int k = 0; k < fixture->count; k++) {
        for (int end = 0; end < 2; end++) {
            double at[3];
            const double *place = fixture->places_mm[end == 0 ? k : (k + fixture->count / 2) % fixture->count];
            lr_scanner_crystal_centre(scanner, list->events[k].crystals[end], at);
            assert_true(fabs(at[0] - place[0]) < 1e-4 && fabs(at[1] - place[1]) < 1e-4 &&
                        fabs(at[2] - place[2]) < 1e-4);
        }
    }
    lr_event_list_destroy(list);
}

/* From the .geom itself, from YAML and the table made of it, and from LOR data. */
static void numbers_are_carried(void **state)
{
    struct fixture *fixture = *state;
    for (int f = 0; f < NUM_FORMS; f++) {
        const struct form *form = &forms[f];
        char name[64], geom[128], path[128];
        test_log_init(&fixture->log);
        model(fixture, form);
        snprintf(name, sizeof(name), "%s.geom", form->name);
        write_form(fixture, form, folder_file(&fixture->folder, geom, name));
        lr_scanner *scanner = read_scanner(fixture, geom);
        assert_numbers(fixture, scanner, name);
        assert_events(fixture, "unknown", scanner, NULL);
        static const char *const others[] = {"copy.yaml", "copy.hscan"};
        for (int k = 0; k < 2; k++) {
            folder_file(&fixture->folder, path, others[k]);
            assert_int_equal(lr_scanner_write(path, scanner, &fixture->log.log), LR_OK);
            lr_scanner *again = read_scanner(fixture, path);
            assert_numbers(fixture, again, others[k]);
            lr_scanner_destroy(again);
        }
        assert_table(fixture, folder_file(&fixture->folder, path, "copy.lut"));
        lr_scanner_destroy(scanner);
    }
}

/* A scanner without its numbers: those of the .geom that is named, or lies beside the events. */
static void geometry_beside_events_numbers(void **state)
{
    struct fixture *fixture = *state;
    for (int f = 0; f < NUM_FORMS; f += 3) {
        const struct form *form = &forms[f];
        char name[64], geom[128];
        model(fixture, form);
        snprintf(name, sizeof(name), "%s.geom", form->name);
        write_form(fixture, form, folder_file(&fixture->folder, geom, name));
        lr_scanner *scanner = read_scanner(fixture, geom);
        free(scanner->castor_order);
        scanner->castor_order = NULL;
        assert_events(fixture, form->name, scanner, NULL);
        assert_events(fixture, "unknown", scanner, geom);
        lr_scanner_destroy(scanner);
    }
}

static void lor_data_keep_numbers(void **state)
{
    struct fixture *fixture = *state;
    const struct form *form = &forms[1];
    char geom[128], path[128];
    model(fixture, form);
    write_form(fixture, form, folder_file(&fixture->folder, geom, "ccw.geom"));
    lr_scanner *scanner = read_scanner(fixture, geom);
    lr_lors *lors = lr_lors_create(scanner, &fixture->log.log);
    lr_lor_data *data = lr_lor_data_create(lors, &fixture->log.log);
    assert_int_equal(lr_lor_data_write(folder_file(&fixture->folder, path, "counts.h5"), lors, data, &fixture->log.log),
                     LR_OK);
    lr_scanner *again = lr_scanner_read_hdf5(path, &fixture->log.log);
    assert_non_null(again);
    assert_numbers(fixture, again, "counts.h5");
    lr_scanner_destroy(again);
    lr_lor_data_destroy(data);
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
}

/* Our own .geom numbers as CASToR does: another scanner's numbers are told to be lost. */
static void another_geometry_is_told(void **state)
{
    struct fixture *fixture = *state;
    for (int f = 0; f < 2; f++) {
        char geom[128], copy[128];
        test_log_init(&fixture->log);
        model(fixture, &forms[f]);
        write_form(fixture, &forms[f], folder_file(&fixture->folder, geom, "one.geom"));
        lr_scanner *scanner = read_scanner(fixture, geom);
        folder_file(&fixture->folder, copy, "other.geom");
        assert_int_equal(lr_scanner_write(copy, scanner, &fixture->log.log), LR_OK);
        assert_int_equal(strstr(fixture->log.warning, "numbers the crystals of this file otherwise") != NULL, f);
        lr_scanner_destroy(scanner);
    }
}

static void damaged_orders_are_refused(void **state)
{
    struct fixture *fixture = *state;
    static const char *const orders[] = {"[0, 11]", "[0, 11, 0, 11]",      "[0, 11, 12]", "[0, 22]",
                                         "[0, 24]", "[0, 11, 12, 22, 11]", "7",           "[0, 11, x, 23]"};
    char path[128], text[512];
    for (size_t k = 0; k <= sizeof(orders) / sizeof(orders[0]); k++) {
        test_log_init(&fixture->log);
        const bool good = k == sizeof(orders) / sizeof(orders[0]);
        snprintf(text, sizeof(text),
                 "ring: {radius_mm: 40, modules: 4, first_angle_deg: 0}\nmodule: {crystals: [3, 2], "
                 "pitch_mm: [2, 2], face_mm: [2, 2], depth_mm: 9}\ncastor_order: %s\n",
                 good ? "[23, 12, 0, 11]" : orders[k]);
        bytes_write(folder_file(&fixture->folder, path, "bad.yaml"), text, strlen(text));
        lr_scanner *scanner = lr_scanner_read(path, &fixture->log.log);
        assert_true((scanner != NULL) == good);
        assert_true(good || strstr(fixture->log.error, "castor_order") != NULL);
        assert_true(!good || scanner->castor_order[0] == 23);
        lr_scanner_destroy(scanner);
    }
}

static int begin(void **state)
{
    static struct fixture fixture;
    folder_init(&fixture.folder);
    test_log_init(&fixture.log);
    *state = &fixture;
    return 0;
}

static int end(void **state)
{
    struct fixture *fixture = *state;
    folder_finish(&fixture->folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(numbers_are_carried, begin, end),
        cmocka_unit_test_setup_teardown(geometry_beside_events_numbers, begin, end),
        cmocka_unit_test_setup_teardown(lor_data_keep_numbers, begin, end),
        cmocka_unit_test_setup_teardown(another_geometry_is_told, begin, end),
        cmocka_unit_test_setup_teardown(damaged_orders_are_refused, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Crystals of CASToR's .geom files keep CASToR's numbers. They are compared with a model of this numbering, written
 * from CASToR's documentation of the format, for every way in which the events get their scanner. */
#include "io/scanners.h"

#include "io/scanners/castor_order.h"

#include <lr/io.h>

enum { MAX_CRYSTALS = 2000 };

/* From the largest unit to the smallest: rsectors, modules, submodules, crystals; transaxial and axial numbers. */
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
    {"odd", {{7, 1}, {1, 1}, {1, 1}, {6, 4}}, {{0}}, 0, 360, true, 0, {0}, 1}};
enum { NUM_FORMS = sizeof(forms) / sizeof(forms[0]) };

static const double size_mm[3] = {3, 3.5, 8}, crystal_gap_mm[2] = {0.2, 0.3};

static double places_mm[MAX_CRYSTALS][3]; /* index: CASToR's number; our frame */
static int num_places;

/* --- the model --- */

/* Distance between the centres of two neighbouring units of a level: the length of a unit plus the gap. */
static double step_mm(const struct form *form, int level, int axis)
{
    double length = size_mm[axis];
    for (int k = 3; k > level; k--) length += (form->count[k][axis] - 1) * step_mm(form, k, axis);
    return length + (level == 3 ? crystal_gap_mm[axis] : form->gap_mm[level][axis]);
}

/* Position of a crystal along an axis, from the middle of all units; the indices of its units are given from the
   largest unit to the smallest. */
static double along_mm(const struct form *form, const int unit[4], int axis, int first_level)
{
    double at = 0;
    for (int k = first_level; k < 4; k++) at += (unit[k] - 0.5 * (form->count[k][axis] - 1)) * step_mm(form, k, axis);
    return at;
}

/* Numbers count layer by layer; within a layer, slice by slice along the axis; within a slice, rsector by rsector;
 * and within an rsector, crystal by crystal. Seen with x to the right and y up, the first rsector is above the axis,
 * and the others follow clockwise. CASToR's x axis is ours reversed. */
static void model(const struct form *form)
{
    num_places = 0;
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
        const double across_mm = turn * along_mm(form, unit[0], 0, 1), out_mm = 80 + 9 * rest + 0.5 * size_mm[2];
        double *place = places_mm[num_places++];
        place[0] = -(out_mm * sin(angle) + across_mm * cos(angle));
        place[1] = out_mm * cos(angle) - across_mm * sin(angle);
        place[2] =
            along_mm(form, unit[1], 1, 0) + (form->num_shifts > 0 ? form->shift_mm[sector % form->num_shifts] : 0);
    }
}

/* Makes the model of a form and writes its file; returns the path. */
static const char *write_form(const struct form *form)
{
    static const char *const units[4] = {"rsector", "module", "submodule", "crystal"};
    static const char *const axes[2] = {"transaxial", "axial"};
    static char name[64];
    model(form);
    snprintf(name, sizeof(name), "%s.geom", form->name);
    FILE *file = non_null(fopen(name, "w"));
    fprintf(file,
            "modality : PET\nscanner name : %s\nnumber of elements : %d\nnumber of layers : %d\n"
            "scanner radius : 80,89,98\nnumber of rsectors : %d\nnumber of rsectors axial : %d\n"
            "rsector gap axial : %g\nrsectors first angle : %g\nrsectors angular span : %g\n"
            "rotation direction : %s\nrsectors nbZShift : %d\nrsectors ZShift : %g,%g,%g\n"
            "crystals size depth : %g\ncrystals size transaxial : %g\ncrystals size axial : %g\n",
            form->name, num_places, form->layers, form->count[0][0], form->count[0][1], form->gap_mm[0][1],
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
    return name;
}

/* --- the ways in which events get their scanner --- */

static lr_scanner *read_scanner(const char *path)
{
    return keep(lr_scanner_read(path, &files.log.log));
}

/* The crystal lies where the model puts this number. A table has single precision; a wrong number would be off by a
   whole crystal. */
static void assert_place(const double at_mm[3], int number, const char *what)
{
    const double off_mm = distance_mm(at_mm, places_mm[number]);
    if (!(off_mm < 1e-4)) fail_msg("%s: crystal %d is %g mm off", what, number, off_mm);
}

static void assert_numbers(const lr_scanner *scanner, const char *what)
{
    int order[MAX_CRYSTALS];
    assert_ints(scanner->num_crystals, num_places, lr_castor_order(scanner, order, NULL), LR_OK);
    for (int k = 0; k < num_places; k++) {
        double at[3];
        lr_scanner_crystal_centre(scanner, order[k], at);
        assert_place(at, k, what);
    }
}

/* Events between each crystal k and the crystal half of the list farther on: written with CASToR's numbers and read
   back. */
static void assert_events(const char *name, const lr_scanner *scanner, const char *companion)
{
    char text[256];
    uint32_t words[MAX_CRYSTALS][3]; /* a little-endian machine */
    const uint32_t count = (uint32_t)num_places;
    for (uint32_t k = 0; k < count; k++) {
        words[k][0] = words[k][1] = k;
        words[k][2] = (k + count / 2) % count;
    }
    bytes_write("events.Cdf", words, count * sizeof(words[0]));
    snprintf(text, sizeof(text), "Data filename: events.Cdf\nNumber of events: %d\nData mode: list\nScanner name: %s\n",
             num_places, name);
    const char *path = "events.Cdh";
    text_write(path, text);
    const lr_events_source source = {.path = path, .scanner = scanner, .companion = companion, .log = &files.log.log};
    lr_event_list *list = keep(lr_event_list_read(&source));
    assert_int_equal(list->count, num_places);
    for (int k = 0; k < num_places; k++) {
        for (int end = 0; end < 2; end++) {
            double at[3];
            lr_scanner_crystal_centre(scanner, list->events[k].crystals[end], at);
            assert_place(at, end == 0 ? k : (k + num_places / 2) % num_places, name);
        }
    }
}

/* The scanner comes from the .geom itself, from YAML and the table made of it, and from LOR data. */
static void numbers_are_carried(void **state)
{
    static const char *const others[] = {"copy.yaml", "copy.hscan"};
    for (int f = 0; f < NUM_FORMS; f++) {
        test_log_init(&files.log);
        lr_scanner *scanner = read_scanner(write_form(&forms[f]));
        assert_numbers(scanner, forms[f].name);
        assert_events("unknown", scanner, NULL);
        for (int k = 0; k < 2; k++) {
            assert_int_equal(lr_scanner_write(others[k], scanner, &files.log.log), LR_OK);
            assert_numbers(read_scanner(others[k]), others[k]);
        }
        size_t bytes; /* row k of a look-up table is the crystal with number k */
        float(*rows)[6] = (float(*)[6])(void *)bytes_read("copy.lut", &bytes);
        assert_int_equal(bytes, sizeof(*rows) * (size_t)num_places);
        for (int k = 0; k < num_places; k++)
            assert_place((const double[3]){-rows[k][0], rows[k][1], rows[k][2]}, k, "copy.lut");
    }
}

/* A scanner without CASToR's numbers gets those of the .geom file that is named, or that lies beside the events. */
static void geometry_beside_events_numbers(void **state)
{
    for (int f = 0; f < NUM_FORMS; f += 3) {
        const char *geom = write_form(&forms[f]);
        lr_scanner *scanner = read_scanner(geom);
        free(scanner->castor_order);
        scanner->castor_order = NULL;
        assert_events(forms[f].name, scanner, NULL);
        assert_events("unknown", scanner, geom);
    }
}

static void lor_data_keep_numbers(void **state)
{
    lr_lors *lors = lors_of(read_scanner(write_form(&forms[1])));
    lr_lor_data *data = keep(lr_lor_data_create(lors, NULL));
    const char *path = "counts.h5";
    assert_int_equal(lr_lor_data_write(path, lors, data, &files.log.log), LR_OK);
    assert_numbers(keep(lr_scanner_read_hdf5(path, &files.log.log)), "counts.h5");
}

/* A .geom file that LORaster writes is numbered as in CASToR. If the scanner's own numbers differ from these, a
   warning says that they are lost. */
static void another_geometry_is_told(void **state)
{
    for (int f = 0; f < 2; f++) {
        test_log_init(&files.log);
        lr_scanner *scanner = read_scanner(write_form(&forms[f]));
        assert_int_equal(lr_scanner_write("other.geom", scanner, &files.log.log), LR_OK);
        assert_int_equal(strstr(files.log.warning, "numbers the crystals of this file otherwise") != NULL, f);
    }
}

static void damaged_orders_are_refused(void **state)
{
    static const char *const orders[] = {"[0, 11]", "[0, 11, 0, 11]",      "[0, 11, 12]", "[0, 22]",
                                         "[0, 24]", "[0, 11, 12, 22, 11]", "7",           "[0, 11, x, 23]"};
#define ORDERED                                                                                                        \
    "ring: {radius_mm: 40, modules: 4, first_angle_deg: 0}\nmodule: {crystals: [3, 2], pitch_mm: [2, 2], "             \
    "face_mm: [2, 2], depth_mm: 9}\ncastor_order: %s\n"
    for (size_t k = 0; k < sizeof(orders) / sizeof(orders[0]); k++) {
        char text[512];
        const char *path = "bad.yaml";
        test_log_init(&files.log);
        snprintf(text, sizeof(text), ORDERED, orders[k]);
        text_write(path, text);
        assert_none(lr_scanner_read(path, &files.log.log), LR_BAD_INPUT, &files.log, "castor_order");
    }
    lr_scanner *scanner = scanner_of(ORDERED, "[23, 12, 0, 11]");
    assert_true(scanner->castor_order[0] == 23);
}

group_main("io castor geom", NULL, NULL, FILES_CASE(numbers_are_carried), FILES_CASE(geometry_beside_events_numbers),
           FILES_CASE(lor_data_keep_numbers), FILES_CASE(another_geometry_is_told),
           FILES_CASE(damaged_orders_are_refused))

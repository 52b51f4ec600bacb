/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Numbers per crystal: arrays as our own writer and NumPy write them, text files, and errors in either. */
#include "io/scanners.h"
#include "io/text_cases.h"

#define FILE_NAME "crystal_values_test"

enum { CRYSTALS = 36 };

static float known[CRYSTALS];

static int set_up(void **state)
{
    for (int k = 0; k < CRYSTALS; k++) known[k] = 0.125f * (float)k;
    return files_begin_with(state, small_ring(30, 0));
}

static void check(void)
{
    float values[CRYSTALS];
    memset(values, 0xff, sizeof(values));
    test_log_init(&files.log);
    if (lr_crystal_values_read(FILE_NAME, files.lors->scanner, values, &files.log.log) != LR_OK)
        fail_msg("%s", files.log.error);
    assert_memory_equal(values, known, sizeof(values));
}

static void expect(const char *sentence)
{
    float values[CRYSTALS];
    test_log_init(&files.log);
    assert_fails(lr_crystal_values_read(FILE_NAME, files.lors->scanner, values, &files.log.log), LR_BAD_INPUT,
                 &files.log, sentence);
}

static void our_own_arrays_are_read(void **state)
{
    const int64_t shapes[][3] = {{CRYSTALS}, {4, 9}, {2, 3, 6}};
    for (int dims = 1; dims <= 3; dims++) {
        assert_int_equal(lr_npy_write(FILE_NAME, &(lr_array){known, shapes[dims - 1], dims}, NULL), LR_OK);
        check();
    }
}

/* Writes a header of this version and text, then the numbers as doubles; the last `cut` bytes are missing. */
static void write_doubles(int version, const char *text, long cut)
{
    FILE *file = non_null(fopen(FILE_NAME, "wb"));
    fprintf(file, "\x93NUMPY%c%c%c%c", version, 0, (int)(strlen(text) & 255), (int)(strlen(text) >> 8));
    if (version > 1) fprintf(file, "%c%c", 0, 0);
    fputs(text, file);
    for (int k = 0; k < CRYSTALS; k++) {
        const double value = known[k]; /* a little-endian machine */
        fwrite(&value, sizeof(value), 1, file);
    }
    fflush(file);
    assert_ints(ftruncate(fileno(file), ftell(file) - cut), 0, fclose(file), 0);
}

static const char good_header[] = "{'descr': '<f8', 'fortran_order': False, 'shape': (36,) }\n";

static void doubles_are_read(void **state)
{
    for (int version = 1; version <= 3; version++) {
        write_doubles(version, good_header, 0);
        check();
    }
    write_doubles(1, "{'shape': (6, 6), 'descr':'<f8', 'fortran_order':False}", 0);
    check();
}

static void wrong_arrays_are_refused(void **state)
{
    for (struct text_cases cases = cases_of(IO_CASES, "npy"); next_case(&cases);) {
        write_doubles(1, cases.fields[1], 0);
        expect(cases.fields[0]);
    }
    for (int version = 0; version <= 4; version += 4) {
        write_doubles(version, good_header, 0);
        expect("and 1 to 3 are read");
    }
    for (long cut = 1; cut <= 8 * CRYSTALS + (long)sizeof(good_header) + 3; cut++) {
        write_doubles(1, good_header, cut);
        expect("is truncated");
    }
}

/* A separator of another kind after every number, and comments between numbers. */
static void text_is_read(void **state)
{
    static const char *const separators[] = {" ", "\n", "\r\n", ", ", "\t", " # 3 4\n", "\n#\n\n"};
    char text[2048] = "# efficiencies";
    strcat(text, "\n");
    for (int k = 0; k < CRYSTALS; k++) {
        const size_t used = strlen(text);
        snprintf(text + used, sizeof(text) - used, "%g%s", (double)known[k], k + 1 < CRYSTALS ? separators[k % 7] : "");
    }
    text_write(FILE_NAME, text);
    check();
}

static void wrong_text_is_refused(void **state)
{
    for (struct text_cases cases = cases_of(IO_CASES, "values"); next_case(&cases);) {
        text_write(FILE_NAME, cases.fields[1]);
        expect(cases.fields[0]);
    }
    char many[2 * CRYSTALS + 3];
    for (int k = 0; k < CRYSTALS + 1; k++) memcpy(many + 2 * (size_t)k, "1 ", 3);
    text_write(FILE_NAME, many);
    expect("holds 37 numbers");
    char line[3000];
    memset(line, '7', sizeof(line));
    line[sizeof(line) - 1] = '\0';
    text_write(FILE_NAME, line);
    expect(FILE_NAME ":1: the number of crystal 0 is 7.7");
    remove(FILE_NAME);
    expect(FILE_NAME ": cannot be opened: No such file");
    assert_int_equal(mkdir(FILE_NAME, 0777), 0);
    expect(FILE_NAME ": is a folder: give a file");
    rmdir(FILE_NAME);
}

group_main("numbers per crystal", set_up, files_end, cmocka_unit_test(our_own_arrays_are_read),
           cmocka_unit_test(doubles_are_read), cmocka_unit_test(wrong_arrays_are_refused),
           cmocka_unit_test(text_is_read), cmocka_unit_test(wrong_text_is_refused))

/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Every error that a scanner file can have gives LR_BAD_INPUT and one sentence with file, line and column, and shows
 * the line. */
#include "io/scanners.h"
#include "io/text_cases.h"

#include <locale.h>

#define FILE_NAME "scanner_yaml_test.yaml"

static lr_scanner *read_text(const char *text, struct test_log *log)
{
    test_log_init(log);
    text_write("./" FILE_NAME, text);
    return lr_scanner_read(FILE_NAME, &log->log);
}

#define RING "ring: {radius_mm: 465, modules: 24}\n"
#define MODULE "module: {crystals: [27, 60], pitch_mm: [4.3, 4.3], face_mm: [4, 4], depth_mm: 30}\n"
#define SIZES "crystals: [9, 9], pitch_mm: [4.3, 4.3], face_mm: [4.0, 4.0], depth_mm: 30}\n"
#define UPPER "  - {center_mm: [0, 465, 0], u: [1, 0, 0], v: [0, 0, 1], " SIZES
#define LOWER "  - {center_mm: [0, -465, 0], u: [1, 0, 0], v: [0, 0, 1], " SIZES
#define OTHER_LOWER "  - {center_mm: [0, -465, 0], u: "

static void unknown_key_is_spelled_out(void **state)
{
    struct test_log log;
    assert_null(read_text("name: x\nring:\n  radius_mm: 465\n  ring_spcing: 258\n" MODULE, &log));
    assert_string_equal(log.error, FILE_NAME ":4:3: unknown key 'ring_spcing'; did you mean 'ring_pitch_mm'?\n"
                                             "      ring_spcing: 258\n      ^~~~~~~~~~~");
    assert_int_equal(log.status, LR_BAD_INPUT);
}

static void wrong_texts_are_refused(void **state)
{
    for (struct text_cases cases = cases_of(IO_CASES, "yaml"); next_case(&cases);) {
        const char *text = cases.fields[1], *place = cases.fields[2], *excerpt = cases.fields[3];
        struct test_log log;
        char start[512];
        lr_scanner *scanner = read_text(text, &log);
        snprintf(start, sizeof(start), FILE_NAME ":%s%s %s", place, place[0] ? ":" : "", cases.fields[0]);
        if (scanner != NULL || log.status != LR_BAD_INPUT || strncmp(log.error, start, strlen(start)) != 0)
            fail_msg("for\n%s\nexpected '%s...'\nfound '%s'", text, start, log.error);
        assert_says(log.error, excerpt);
        assert_true(place[0] == '\0' || (strstr(log.error, "\n    ") != NULL && strchr(log.error, '^') != NULL));
    }
}

static void slightly_tilted_axes_are_straightened(void **state)
{
    (void)scanner_of("%s", "modules:\n" UPPER OTHER_LOWER "[2, 0, 0], v: [0.0027, 0, 3e200], " SIZES);
    lr_scanner *scanner = scanner_of("%s", "modules:\n" UPPER OTHER_LOWER "[2, 0, 0], v: [0.0027, 0, 3], " SIZES);
    const lr_module *module = &scanner->modules[1];
    const double dot = module->u[0] * module->v[0] + module->u[1] * module->v[1] + module->u[2] * module->v[2];
    assert_true(fabs(dot) < 1e-15);
    assert_pairs(1e-15, {module->u[0], 1}, {module->v[2], 1}, {module->normal[1], 1});
}

static void long_and_deep_texts_are_refused(void **state)
{
    struct test_log log;
    const int count = 100001;
    char *text = kept((size_t)count * 3 + 64, 1);
    size_t used = (size_t)sprintf(text, "modules: [");
    for (int k = 0; k < count; k++, used += 3) memcpy(text + used, "{},", 3);
    strcpy(text + used - 1, "]\n");
    assert_none(read_text(text, &log), LR_BAD_INPUT, &log, ":1:1: 100001 modules are too many");
    memset(text, '[', 20000);
    text[20000] = '\0';
    assert_none(read_text(text, &log), LR_BAD_INPUT, &log, "not valid YAML");
}

static void files_that_are_none(void **state)
{
    static const char *const words[] = {
        "is no regular file", "65 MiB is too large", "..: is a folder",
        ("./no-such-file.yaml: cannot be opened: No such file in this folder, nor a name like it")};
    static const char *const paths[] = {("./" FILE_NAME), FILE_NAME, "..", "./no-such-file.yaml"};
    for (int k = 0; k < 4; k++) {
        struct test_log log = TEST_LOG(log);
        remove(FILE_NAME);
        if (k == 0) assert_int_equal(mkfifo("./" FILE_NAME, 0600), 0);
        if (k == 1) text_write(FILE_NAME, "");
        if (k == 1) assert_int_equal(truncate(FILE_NAME, 65 << 20), 0);
        assert_null(lr_scanner_read(paths[k], &log.log));
        if (k == 3) assert_string_equal(log.error, words[k]);
        assert_error(&log, LR_BAD_INPUT, words[k]);
    }
}

static void long_lines_are_cut_around_the_place(void **state)
{
    struct test_log log;
    char text[1400];
    memset(text, ' ', sizeof(text));
    memcpy(text, "{name: x,", 9);
    memcpy(text + 1300, "wrong: 1}\n", 11);
    assert_null(read_text(text, &log));
    assert_says(log.error, FILE_NAME ":1:1301: unknown key 'wrong'");
    const char *shown = strchr(log.error, '\n'), *caret = strchr(log.error, '^');
    assert_true(shown != NULL && caret != NULL);
    const char *under = non_null(strchr(shown + 1, '\n'));
    assert_int_equal(caret - under, strstr(shown, "wrong") - shown);
}

static void both_forms_are_read(void **state)
{
    struct test_log log;
    lr_scanner *scanner = keep(read_text(
        "name: all keys\nring: {radius_mm: 100, modules: 6, first_angle_deg: -90, rings: 2, ring_pitch_mm: 40}\n"
        "module: {crystals: [[7, 8], 12], block_gap_mm: [0.5, 0], pitch_mm: [2.5, 3], face_mm: [2, 2.5], depth_mm: "
        "13}\ncoincidence: {field_of_view_mm: 50, min_module_difference: 2, max_ring_difference: 0}\n"
        "detection_depth_mm: 6.5\ncrystal_mu_per_mm: 0.0834\ntof: {resolution_ps: 300}\n"
        "source: [one, two]\nunverified: three\n",
        &log));
    assert_string_equal(scanner->name, "all keys");
    assert_string_equal(scanner->source, "one\ntwo\nunverified: three");
    assert_pairs(0, {scanner->num_modules, 2 * 6 * 2}, {scanner->num_positions, 6},
                 {scanner->num_crystals, 2 * 6 * 15 * 12}, {scanner->coincidence.min_module_difference, 2});
    assert_true(scanner->coincidence.limits_ring_difference);
    assert_pairs(0, {scanner->coincidence.max_ring_difference, 0}, {scanner->coincidence.field_of_view_mm, 50},
                 {scanner->detection_depth_mm, 6.5}, {scanner->tof_resolution_ps, 300},
                 {scanner->crystal_mu_per_mm, 0.0834}, {log.num_warnings, 0});
    /* 15 crystals of 2.5 mm and a gap of 0.5 mm make 38 mm; the first block, 17.5 mm wide, is at u = -10.25; at -90
       degrees, u is +x. */
    assert_pairs(1e-12, {scanner->modules[0].centre_mm[0], -10.25}, {scanner->modules[0].centre_mm[1], -100},
                 {scanner->modules[0].centre_mm[2], -20});

    scanner = scanner_of("%s", "modules:\n" UPPER LOWER);
    assert_string_equal(scanner->name, "unnamed scanner");
    assert_all(scanner->crystal_mu_per_mm == 0, scanner->source == NULL);
    assert_int_equal(scanner->num_positions, 0);
    assert_false(scanner->coincidence.limits_ring_difference);
    assert_close(scanner->modules[0].normal[1], -1, 0);
}

static void json_and_other_line_ends_are_read(void **state)
{
    static const char *const texts[] = {
        "{\"name\": \"x\", \"ring\": {\"radius_mm\": 4.65e2, \"modules\": 24}, \"module\": {\"crystals\": [27, 60], "
        "\"pitch_mm\": [4.3, 4.3], \"face_mm\": [4, 4.0], \"depth_mm\": +30.}}",
        "name: x\r\n" RING "\r\n" MODULE, "\xef\xbb\xbfname: \xc3\xa4\n" RING MODULE};
    for (int k = 0; k < 3; k++) {
        struct test_log log;
        lr_scanner *scanner = keep(read_text(texts[k], &log));
        assert_string_equal(scanner->name, k < 2 ? "x" : "\xc3\xa4");
    }
}

static void numbers_have_points_in_every_locale(void **state)
{
    struct test_log log;
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
    const char *found = NULL;
    for (size_t k = 0; k < 4 && found == NULL; k++) found = setlocale(LC_ALL, names[k]);
    if (found == NULL) {
        print_message("skipped: no locale with a decimal comma is installed\n");
        skip();
    }
    lr_scanner *scanner = keep(read_text(RING MODULE, &log));
    char text[16];
    snprintf(text, sizeof(text), "%.1f", 0.5);
    setlocale(LC_ALL, "C");
    assert_close(scanner->modules[0].pitch_mm[0], 4.3, 0);
    assert_string_equal(text, "0,5");
}

static void nearest_words(void **state)
{
    static const char *const words[] = {"radius_mm", "modules", "rings", "ring_pitch_mm"};
    static const char *const cases[][2] = {
        {"radius", "radius_mm"}, {"radius_cm", "radius_mm"}, {"modlues", "modules"}, {"ring_pich_mm", "ring_pitch_mm"}};
    for (int k = 0; k < 4; k++) assert_string_equal(lr_nearest_word(cases[k][0], words, 4), cases[k][1]);
    assert_all(lr_nearest_word("temperature", words, 4) == NULL, lr_nearest_word("", words, 4) == NULL);
    assert_null(lr_nearest_word("x", words, 0));
}

static int remove_file(void **state)
{
    remove(FILE_NAME);
    return destroy_kept(state);
}

group_main("scanner YAML", NULL, remove_file,
           EACH(cmocka_unit_test, unknown_key_is_spelled_out, wrong_texts_are_refused,
                slightly_tilted_axes_are_straightened, long_and_deep_texts_are_refused, files_that_are_none,
                long_lines_are_cut_around_the_place, both_forms_are_read, json_and_other_line_ends_are_read,
                numbers_have_points_in_every_locale, nearest_words))

/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Every error that a scanner file can have gives LR_BAD_INPUT and one sentence with file, line and column, and shows
 * the line. */
#include "io/scanners.h"

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
#define RADIUS(value) "ring: {radius_mm: " value ", modules: 24}\n" MODULE
#define MODULES(value) "ring: {radius_mm: 465, modules: " value "}\n" MODULE
#define PITCH(value) RING "module: {crystals: [27, 60], pitch_mm: " value ", face_mm: [4, 4], depth_mm: 30}\n"
#define PANEL(crystals) "module: {crystals: " crystals ", pitch_mm: [4.3, 4.3], face_mm: [4, 4], depth_mm: 30"

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
    /* A wrong text; its "line:column", or "" if it has none; the sentence after file and position; and, in some
     * cases, the line and the marks below it. */
    static const char *const cases[][4] = {
        /* keys */
        {"nmae: x\n" RING MODULE, "1:1", "unknown key 'nmae'; did you mean 'name'?", "^~~~"},
        {RING MODULE "zzzzz: 1\n", "3:1", "unknown key 'zzzzz'; a scanner has: name, ring,"},
        {RING MODULE "name: x\nname: y\n", "4:1", "'name' is given again (first in line 3)"},
        {"ring: {radius_mm: 465, radius_mm: 4, modules: 24}\n" MODULE, "1:24", "'radius_mm' is given again"},
        {RING MODULE "name: x\n\"name\": y\n", "4:1", "'name' is given again"},
        {"ring: {modules: 24}\n" MODULE, "1:1", "a ring lacks 'radius_mm'", "    ^~~~"},
        {"ring: {radius_mm: 465}\n" MODULE, "1:1", "a ring lacks 'modules'"},
        {RING "module: {crystals: [1, 1], pitch_mm: [4, 4], face_mm: [4, 4]}\n", "2:1", "a module lacks 'depth_mm'"},
        {RING MODULE "tof: {}\n", "3:1", "a tof lacks 'resolution_ps'"},
        {"modules:\n" UPPER "  - {center_mm: [0, 0, 0]}\n", "3:5", "a module lacks 'u'"},
        {"modules:\n  - {center_mm: [0, 1, 0], centre_mm: [0, 1, 0]}\n" UPPER, "2:28", "'center_mm' is given again"},
        {"ring: {radius_mm: 465, modules: 24, rings: 2}\n" MODULE, "1:37", "2 rings need 'ring_pitch_mm'"},
        {RING PANEL("[[7, 8], 8]") "}\n", "2:10", "a panel of blocks needs 'block_gap_mm'"},
        {RING MODULE "<<: {a: 1}\n", "3:1", "unknown key '<<'"},
        {RING MODULE "? [a, b]\n: 1\n", "3:3", "unknown key ''"},
        /* values */
        {RADIUS("four"), "1:19", "'radius_mm' must be a number, found 'four'", "                      ^~~~"},
        {RADIUS("\"465\""), "1:19", "'radius_mm' must be a number, found the quoted text '465'"},
        {RADIUS("[1]"), "1:19", "'radius_mm' must be a number, found a list [...]"},
        {RADIUS(""), "1:8", "'radius_mm' must be a number, found nothing"},
        {RADIUS("0"), "1:19", "'radius_mm' must be greater than 0, found 0"},
        {RADIUS("-465"), "1:19", "'radius_mm' must be greater than 0, found -465"},
        {RADIUS(".inf"), "1:19", "'radius_mm' must be finite"},
        {RADIUS("nan"), "1:19", "'radius_mm' must be finite"},
        {RADIUS("1e999"), "1:19", "'radius_mm' must be finite"},
        {RADIUS("0x1d1"), "1:19", "'radius_mm' must be a number"},
        {RADIUS("7:45"), "1:19", "'radius_mm' must be a number"},
        {RADIUS("465 mm"), "1:19", "'radius_mm' must be a number, found '465 mm'"},
        {MODULES("24.5"), "1:33", "'modules' must be a whole number, found '24.5'"},
        {MODULES("0"), "1:33", "'modules' must be from 1"},
        {MODULES("3e9"), "1:33", "'modules' must be from 1"},
        {MODULES("yes"), "1:33", "'modules' must be a whole number, found 'yes'"},
        {RING MODULE "coincidence: {min_module_difference: no}\n", "3:38",
         "'min_module_difference' must be a whole number, found 'no'"},
        {RING MODULE "coincidence: {max_ring_difference: -1}\n", "3:36", "'max_ring_difference' must be from 0"},
        {RING MODULE "coincidence: 5\n", "3:14", "a coincidence must be a mapping"},
        {RING MODULE "detection_depth_mm: -1\n", "3:21", "'detection_depth_mm' must be at least 0"},
        {RING MODULE "crystal_mu_per_mm: 0\n", "3:20", "'crystal_mu_per_mm' must be"},
        {"name: no\n" RING MODULE, "1:7", "'name' must be a text, and 'no' without quotes"},
        {"name: 12\n" RING MODULE, "1:7", "'name' must be a text, and '12' without quotes"},
        {"name:\n" RING MODULE, "1:1", "'name' must be a text, found nothing"},
        {"name: [a]\n" RING MODULE, "1:7", "'name' must be a text, found a list"},
        {RING MODULE "source: [a, {b: c}]\n", "3:13", "'source' must be a text, found a mapping"},
        {RING MODULE "unverified: [a, off]\n", "3:17", "'unverified' must be a text, and 'off'"},
        {PITCH("[4.3, 0]"), "2:46", "'pitch_mm[1]' must be greater than 0, found 0"},
        {PITCH("[4.3]"), "2:40", "'pitch_mm' must be a list of 2 numbers, found 1"},
        {PITCH("4.3"), "2:40", "'pitch_mm' must be a list of 2 numbers [along u, along v], found '4.3'"},
        {RING PANEL("27") "}\n", "2:10", "'crystals' must be [along u, along v]"},
        {RING PANEL("[27, 60, 1]") "}\n", "2:10", "'crystals' must be [along u, along v]"},
        {RING PANEL("[27.5, 60]") "}\n", "2:21", "'crystals along u' must be a whole number"},
        {RING PANEL("[27, [8, 0]]") ", block_gap_mm: [0, 0]}\n", "2:29", "'crystals along v' must be from 1"},
        {RING PANEL("[[], 8]") "}\n", "2:21", "an axis must have from 1"},
        {RING PANEL("[[7, 8], 8]") ", block_gap_mm: [-0.5, 0]}\n", "2:101",
         "'block_gap_mm[0]' must be at least 0, found -0.5"},
        /* forms */
        {"name: x\n", "1:1", "a scanner needs either 'ring' with 'module', or 'modules'"},
        {RING MODULE "modules:\n" UPPER LOWER, "3:1", "both 'ring' (line 1) and 'modules' are given"},
        {MODULE "modules:\n" UPPER LOWER, "1:1", "'module' describes the panels of a 'ring'"},
        {RING, "1:1", "a 'ring' needs a 'module'"},
        {MODULE, "1:1", "a scanner needs either"},
        {"modules: []\n", "1:1", "'modules' must be a list of at least 2"},
        {"modules: 5\n", "1:1", "'modules' must be a list of at least 2"},
        {"modules:\n" UPPER, "1:1", "'modules' must be a list of at least 2"},
        {"modules:\n" UPPER LOWER "coincidence: {min_module_difference: 1}\n", "4:15",
         "this rule counts modules around a ring"},
        {"- a\n- b\n", "1:1", "a scanner must be a mapping"},
        {"just text\n", "1:1", "a scanner must be a mapping 'key: value', found 'just text'"},
        /* axes */
        {"modules:\n" UPPER OTHER_LOWER "[0, 0, 0], v: [0, 0, 1], " SIZES, "3:31", "the axis 'u' is zero"},
        {"modules:\n" UPPER OTHER_LOWER "[1, 0, 0], v: [1, 0, 1], " SIZES, "3:45",
         "the axes 'u' and 'v' are 45 degrees apart"},
        {"modules:\n" UPPER OTHER_LOWER "[2, 0, 0], v: [0.0011, 0, 1], " SIZES, "3:45",
         "the axes 'u' and 'v' are 89.937 degrees apart"},
        /* syntax */
        {"ring: {radius_mm: 465\nmodule: 1\n", "2:7", "not valid YAML:", "    module: 1"},
        {"name: \"unterminated\n" RING, "1:7", "not valid YAML: ", "    name: \"unterminated"},
        {"ring:\n  radius_mm: 465\n modules: 24\n", "3:2", "not valid YAML:"},
        {"name: a: b\n", "1:8", "not valid YAML:"},
        {">0", "", "not valid YAML, in a place that the parser does not tell"},
        {"name: x\n---\nname: y\n", "3:1", "a second YAML document begins"},
        {"name: &x z\nring: *x\n", "2:7", "'ring' is an alias"},
        {"name: !!str y\n", "1:13", "'name' carries a tag"},
        {"", "", "the file is empty"},
        {"\n\n# only a comment\n", "", "the file is empty"},
        {"name: \x01\n", "", "line 1 holds the byte 0x01"},
        {"name: x\n\x89PNG\r\n", "", "line 2 holds the byte 0x89"},
        {"name: \xc3\n", "", "line 1 holds the byte 0xc3"},
        {"%TAG !  %\n---\nname: x\n", "", "line 1 begins with %, a YAML directive"},
        {"name: x\r%YAML", "", "line 1 begins with %, a YAML directive"},
        /* errors of geometry name the position */
        {"name: tight\nring: {radius_mm: 400, modules: 24}\n" MODULE, "2:8",
         "tight: ", "    ring: {radius_mm: 400, modules: 24}\n           ^~~~~~~~~"},
        {"ring: {radius_mm: 900, modules: 24, rings: 2, ring_pitch_mm: 5}\n" MODULE, "1:47",
         "unnamed scanner: modules 0 and 24 overlap by 253 mm along the axis",
         "5}\n                                                  ^~~~~~~~~~~~~"},
        {PITCH("[0.43, 0.43]"), "2:30", "unnamed scanner: module 0 has crystal faces of 4 mm",
         "30}\n                                 ^~~~~~~~"},
        {"name: twice\nmodules:\n" UPPER UPPER, "2:1", "twice: ", "    modules:\n    ^~~~~~~"},
        {RING PANEL("[27, 60]") "}\ndetection_depth_mm: 31\n", "3:1",
         "unnamed scanner: the detection plane lies 31 mm behind", "    detection_depth_mm:"},
        /* limits on sizes */
        {MODULES("100001"), "1:1", "100001 modules"},
        {"ring: {radius_mm: 465, modules: 2e9, rings: 2e9, ring_pitch_mm: 1}\n" MODULE, "1:1", "4e+18 modules"},
        {RING PANEL("[2147483647, 2147483647]") "}\n", "2:10", "more than 10000000 crystals"},
        {RING PANEL("[1000, 1000]") "}\n", "2:10", "more than 10000000 crystals"},
        {"modules:\n" UPPER OTHER_LOWER
         "[1, 0, 0], v: [0, 0, 1], crystals: [5000, 5000], pitch_mm: [1, 1], face_mm: [1, 1], depth_mm: 3}\n",
         "3:59", "more than 10000000 crystals"}};
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        const char *text = cases[k][0], *place = cases[k][1], *excerpt = cases[k][3];
        struct test_log log;
        char start[512];
        lr_scanner *scanner = read_text(text, &log);
        snprintf(start, sizeof(start), FILE_NAME ":%s%s %s", place, place[0] ? ":" : "", cases[k][2]);
        if (scanner != NULL || log.status != LR_BAD_INPUT || strncmp(log.error, start, strlen(start)) != 0)
            fail_msg("for\n%s\nexpected '%s...'\nfound '%s'", text, start, log.error);
        if (excerpt != NULL && strstr(log.error, excerpt) == NULL)
            fail_msg("expected the excerpt '%s'\nfound '%s'", excerpt, log.error);
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

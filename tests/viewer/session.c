/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Sessions are read back as they were written, and an error in a file is reported with its position. */
#include "io/sessions/session.h"
#include "io/files.h"
#include "io/files/file_kind.h"
#include "io/text_cases.h"

#include <locale.h>

#define FILE_NAME "viewer_session_test.yaml"

static struct lr_view_session full_session(uint64_t *state)
{
    struct lr_view_session session =
        filled(struct lr_view_session, .scanner = "siemens-mmr", .image = "/data/with \"quotes\" and \\.nii.gz",
               .mu = "no", .second = "ct.nii", .data = "/dat\xc3\xa4/12.5",
               .grid = {{64, 65, 66}, {1.1, 1.2, 1.3}, {-1e-7, 1.0 / 3.0, 2e9}}, .has_camera = true, .up = {0, 0, 1},
               .view_angle_deg = 33.3, .mode = LR_SESSION_LOR, .has_voxel = true, .primary = 7,
               .matrix_mode = LR_MODE_EXACT, .rays = 4, .samples = 8, .mu_steps = 25, .without_mu = true,
               .has_lor = true, .lor = {0, 1, 2, 30, 4, 5}, .lor_kernel = 2, .has_tof = true, .tof_mm = -17.3,
               .has_recon = true, .recon_family = 2, .recon_algorithm = 1, .recon_elements = 1, .recon_subsets = 6,
               .num_ranges = 2, .ranges = {{"image", 0.0, 1e-12}, {"difference: %", -5.5, 5.5}}, .has_shown = true,
               .slices = {true, false, true}, .hides_lors = true, .panes = 3, .mix = 4, .opacity = 0.375,
               .window = {1280, 800});
    for (int k = 0; k < 3; k++) {
        session.eye_mm[k] = 1000 * (test_random(state) - 0.5);
        session.target_mm[k] = test_random(state) - 0.5;
        session.point_mm[k] = 100 * (test_random(state) - 0.5);
    }
    return session;
}

/* Members of a session whose bytes are compared. */
#define MEMBER(name)                                                                                                   \
    {                                                                                                                  \
#name, offsetof(struct lr_view_session, name), sizeof(((struct lr_view_session *)0)->name)                     \
    }
static const struct {
    const char *name;
    size_t at, bytes;
} members[] = {
    MEMBER(grid),           MEMBER(has_camera),  MEMBER(eye_mm),       MEMBER(target_mm),       MEMBER(up),
    MEMBER(view_angle_deg), MEMBER(mode),        MEMBER(has_voxel),    MEMBER(point_mm),        MEMBER(all_primaries),
    MEMBER(primary),        MEMBER(matrix_mode), MEMBER(rays),         MEMBER(samples),         MEMBER(mu_steps),
    MEMBER(without_mu),     MEMBER(has_lor),     MEMBER(lor),          MEMBER(lor_kernel),      MEMBER(has_tof),
    MEMBER(tof_mm),         MEMBER(has_recon),   MEMBER(recon_family), MEMBER(recon_algorithm), MEMBER(recon_elements),
    MEMBER(recon_subsets),  MEMBER(num_ranges),  MEMBER(window),       MEMBER(has_shown),       MEMBER(slices),
    MEMBER(hides_lors),     MEMBER(panes),       MEMBER(mix),          MEMBER(opacity)};

static void assert_same(const struct lr_view_session *a, const struct lr_view_session *b)
{
    const char *const texts[2][5] = {{a->scanner, a->image, a->mu, a->second, a->data},
                                     {b->scanner, b->image, b->mu, b->second, b->data}};
    for (int k = 0; k < 5; k++) {
        assert_int_equal(texts[0][k] == NULL, texts[1][k] == NULL);
        if (texts[0][k] != NULL) assert_string_equal(texts[0][k], texts[1][k]);
    }
    for (size_t k = 0; k < sizeof(members) / sizeof(members[0]); k++)
        if (memcmp((const char *)a + members[k].at, (const char *)b + members[k].at, members[k].bytes) != 0)
            fail_msg("%s differs", members[k].name);
    for (int k = 0; k < a->num_ranges; k++) {
        assert_string_equal(a->ranges[k].name, b->ranges[k].name);
        assert_true(a->ranges[k].low == b->ranges[k].low && a->ranges[k].high == b->ranges[k].high);
    }
}

static void round_trip(const struct lr_view_session *session)
{
    struct test_log log = TEST_LOG(log);
    struct lr_view_session back;
    if (lr_view_session_write(FILE_NAME, session, &log.log) != LR_OK ||
        lr_view_session_read(FILE_NAME, &back, &log.log) != LR_OK)
        fail_msg("%s", log.error);
    assert_same(session, &back);
    assert_int_equal(lr_file_kind_of(FILE_NAME), LR_FILE_SESSION);
    lr_view_session_finish(&back);
}

static void sessions_come_back(void **state)
{
    uint64_t seed = test_seed();
    const struct lr_view_session empty = {0};
    round_trip(&empty);
    for (int n = 0; n < 20; n++) {
        struct lr_view_session session = full_session(&seed);
        round_trip(&session);
        session.all_primaries = true;
        session.primary = 0;
        session.mu = NULL;
        session.mode = (enum lr_session_mode)(n % 5);
        round_trip(&session);
    }
}

static void a_decimal_comma_changes_nothing(void **state)
{
    uint64_t seed = test_seed();
    static const char *const commas[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8"};
    bool found = false;
    for (int k = 0; k < 3 && !found; k++) found = setlocale(LC_ALL, commas[k]) != NULL;
    const struct lr_view_session session = full_session(&seed);
    round_trip(&session);
    setlocale(LC_ALL, "C");
    print_message(found ? "with a decimal comma\n" : "no locale with a decimal comma here\n");
}

static void faults_have_places(void **state)
{
    for (struct text_cases cases = cases_of(IO_CASES, "session"); next_case(&cases);) {
        const char *words = cases.fields[0], *place = cases.fields[2];
        struct test_log log = TEST_LOG(log);
        struct lr_view_session session;
        assert_int_equal(lr_text_write("s.yaml", cases.fields[1], NULL), LR_OK);
        assert_int_equal(lr_view_session_read("s.yaml", &session, &log.log), LR_BAD_INPUT);
        unlink("s.yaml");
        if (strncmp(log.error, place, strlen(place)) != 0 || strstr(log.error, words) == NULL)
            fail_msg("'%s' is neither at %s nor does it say '%s'", log.error, place, words);
        assert_null(session.scanner);
    }
}

static void what_cannot_be_read_back_is_not_written(void **state)
{
    struct test_log log;
    struct lr_view_session bad[] = {
        {.scanner = "\xff\xfe"},
        {.image = ""},
        {.has_camera = true, .eye_mm = {NAN, 0, 0}},
        {.window = {1280, 0}},
        {.grid = {{4, 4, 4}, {1, -1, 1}, {0}}},
        {.num_ranges = 1, .ranges = {{"a", 1, 0}}},
        {.rays = -1},
    };
    for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
        test_log_init(&log);
        assert_int_not_equal(lr_view_session_write(FILE_NAME, &bad[k], &log.log), LR_OK);
        assert_true(log.error[0] != '\0');
        assert_int_equal(count_files(), 0);
    }
}

/* The old file stays if writing fails. */
static void a_failed_write_leaves_the_old_file(void **state)
{
    struct test_log log = TEST_LOG(log);
    struct lr_view_session old = {.window = {640, 480}}, back;
    const struct lr_view_session bad = {.image = ""};
    assert_ok(lr_view_session_write(FILE_NAME, &old, &log.log));
    assert_int_not_equal(lr_view_session_write(FILE_NAME, &bad, &log.log), LR_OK);
    assert_ints(lr_view_session_read(FILE_NAME, &back, &log.log), LR_OK, back.window[0], 640);
    lr_view_session_finish(&back);
    assert_int_equal(lr_view_session_write("no such folder/s.yaml", &old, &log.log), LR_FAILED);
    assert_int_equal(lr_view_session_read("no such file.yaml", &back, &log.log), LR_BAD_INPUT);
}

test_main("viewer_session", FILES_CASE(sessions_come_back), FILES_CASE(a_decimal_comma_changes_nothing),
          FILES_CASE(faults_have_places), FILES_CASE(what_cannot_be_read_back_is_not_written),
          FILES_CASE(a_failed_write_leaves_the_old_file))

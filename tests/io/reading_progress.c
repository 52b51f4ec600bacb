/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Readers of large files report their progress, and stop as soon as the listener asks them to. */
#include "io/formats.h"

struct listener {
    lr_progress progress;
    int num_reports, stop_at; /* stop_at 0 = never */
    double before;
};

static bool hear(void *user, const char *what, double done, double total)
{
    struct listener *listener = user;
    assert_int_equal(strncmp(what, "reading ", 8), 0);
    assert_true(done >= listener->before && done <= total);
    listener->before = done;
    return ++listener->num_reports != listener->stop_at;
}

static const lr_progress *listen_to(struct listener *listener, int stop_at)
{
    *listener = (struct listener){.stop_at = stop_at};
    listener->progress = (lr_progress){hear, listener};
    return &listener->progress;
}

/* The status of the last call of this thread, if it has failed. */
static lr_status last_status(bool is_null)
{
    lr_status status = LR_OK;
    if (is_null) (void)lr_last_error(&status);
    return status;
}

static void events_are_reported(void **state)
{
    const struct setup *s = *state;
    int num_lists = 0;
    for (int k = 0; k < NUM_FORMATS; k++) {
        if (formats[k].read != read_events || formats[k].spoilt != NULL) continue;
        num_lists++;
        const char *path = file_in(&s->folder, formats[k].name);
        formats[k].write(s, path);
        for (int stop_at = 0; stop_at < 2; stop_at++) {
            int64_t count = 0;
            struct test_log log = TEST_LOG(log);
            struct listener listener;
            const lr_event_sink sink = {.take = drop_events, .user = &count};
            lr_events_source source = source_of(s, path, &log.log);
            source.format = LR_EVENTS_UNKNOWN;
            source.progress = listen_to(&listener, stop_at);
            assert_int_equal(lr_events_read(&source, &sink, NULL), stop_at == 0 ? LR_OK : LR_CANCELLED);
            assert_true(stop_at == 0 ? count > 0 && listener.num_reports > 0 : count == 0);
            assert_string_equal(log.error, "");
        }
        folder_visit(&s->folder, true);
    }
    assert_int_equal(num_lists, 4);
}

static lr_status count_values(void *user, const lr_lor_data *some, int64_t first)
{
    assert_int_equal(*(int64_t *)user, first);
    *(int64_t *)user += some->count;
    return LR_OK;
}

static void lor_data_are_reported(void **state)
{
    const struct setup *s = *state;
    for (int k = 0; k < 4; k++) {
        const int stop_at = k % 2;
        const lr_lors *lors = k < 2 ? s->ring : s->even;
        const char *path = file_in(&s->folder, k < 2 ? "good.h5" : "good.hs");
        struct test_log log = TEST_LOG(log);
        struct listener listener;
        (k < 2 ? write_counts : write_projection_data)(s, path);
        lr_lor_data *data = lr_lor_data_read_watched(path, lors, listen_to(&listener, stop_at), &log.log);
        assert_true((data == NULL) == (stop_at > 0) && listener.num_reports > 0);
        assert_int_equal(last_status(data == NULL), stop_at > 0 ? LR_CANCELLED : LR_OK);
        lr_lor_data_destroy(data);

        int64_t count = 0;
        const lr_lor_data_sink sink = {count_values, &count, listen_to(&listener, stop_at)};
        assert_int_equal(lr_lor_data_scan(path, lors, &sink, &log.log), stop_at > 0 ? LR_CANCELLED : LR_OK);
        assert_true((count > 0) == (stop_at == 0));
        assert_string_equal(log.error, "");
    }
}

static void images_are_reported(void **state)
{
    const struct setup *s = *state;
    static const char *const names[] = {"good.nii", "good.nii.gz", "good.hv", "good.hdr", "good.mhd", "good.mha"};
    const lr_grid grid = {.size = {4, 3, 5}, .voxel_mm = {1, 2, 3}};
    lr_image *image = keep(lr_image_create(&grid, NULL));
    for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
        const char *path = file_in(&s->folder, names[k]);
        assert_int_equal(lr_image_write(path, image, NULL), LR_OK);
        for (int stop_at = 0; stop_at < 3; stop_at++) {
            struct test_log log = TEST_LOG(log);
            struct listener listener;
            lr_image *back = lr_image_read_watched(path, 1, listen_to(&listener, stop_at), &log.log);
            assert_true((back == NULL) == (stop_at > 0));
            assert_int_equal(listener.num_reports, stop_at > 0 ? stop_at : grid.size[2]);
            assert_int_equal(last_status(back == NULL), stop_at > 0 ? LR_CANCELLED : LR_OK);
            assert_string_equal(log.error, "");
            lr_image_destroy(back);
        }
    }
}

group_main("io reading progress", set_up, tear_down, cmocka_unit_test(events_are_reported),
           cmocka_unit_test(lor_data_are_reported), cmocka_unit_test(images_are_reported))

/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Readers of large files report how far they are, and end as soon as they are asked to. */
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

static struct listener listen_to(int stop_at)
{
    return (struct listener){.stop_at = stop_at};
}

static lr_events_source source_of(const struct setup *s, const struct format *format)
{
    return (lr_events_source){.scanner = format->read == read_siemens ? s->octagon : s->ring};
}

static bool is_list(const struct format *format)
{
    return format->read == read_safir || format->read == read_siemens || format->read == read_petsird ||
           format->read == read_castor;
}

static void events_are_reported(void **state)
{
    const struct setup *s = *state;
    int num_lists = 0;
    for (int k = 0; k < NUM_FORMATS; k++) {
        const struct format *format = &formats[k];
        char path[160];
        if (!is_list(format) || format->spoilt != NULL) continue;
        num_lists++;
        folder_file(&s->folder, path, format->name);
        format->write(s, path);
        for (int stop_at = 0; stop_at < 2; stop_at++) {
            int64_t count = 0;
            struct test_log log;
            struct listener listener = listen_to(stop_at);
            lr_events_source source = source_of(s, format);
            const lr_event_sink sink = {.take = drop_events, .user = &count};
            test_log_init(&log);
            listener.progress = (lr_progress){hear, &listener};
            source.path = path;
            source.log = &log.log;
            source.progress = &listener.progress;
            char companion[160];
            if (format->read == read_safir) source.companion = folder_file(&s->folder, companion, "good.txt");
            if (format->read == read_siemens) source.companion = folder_file(&s->folder, companion, "good.hdr");
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
    static const char *const names[2] = {"good.h5", "good.hs"};
    for (int k = 0; k < 2; k++) {
        char path[160];
        const lr_lors *lors = k == 0 ? s->ring_lors : s->even_lors;
        folder_file(&s->folder, path, names[k]);
        (k == 0 ? write_counts : write_projection_data)(s, path);
        for (int stop_at = 0; stop_at < 2; stop_at++) {
            struct test_log log;
            lr_status status = LR_OK;
            struct listener listener = listen_to(stop_at);
            test_log_init(&log);
            listener.progress = (lr_progress){hear, &listener};
            lr_lor_data *data = lr_lor_data_read_watched(path, lors, &listener.progress, &log.log);
            assert_true((data == NULL) == (stop_at > 0) && listener.num_reports > 0);
            if (data == NULL) (void)lr_last_error(&status);
            assert_int_equal(status, stop_at > 0 ? LR_CANCELLED : LR_OK);
            lr_lor_data_destroy(data);

            int64_t count = 0;
            listener = listen_to(stop_at);
            listener.progress = (lr_progress){hear, &listener};
            const lr_lor_data_sink sink = {count_values, &count, &listener.progress};
            assert_int_equal(lr_lor_data_scan(path, lors, &sink, &log.log), stop_at > 0 ? LR_CANCELLED : LR_OK);
            assert_true((count > 0) == (stop_at == 0));
            assert_string_equal(log.error, "");
        }
    }
}

static void images_are_reported(void **state)
{
    const struct setup *s = *state;
    static const char *const names[] = {"good.nii", "good.nii.gz", "good.hv", "good.hdr", "good.mhd", "good.mha"};
    const lr_grid grid = {.size = {4, 3, 5}, .voxel_mm = {1, 2, 3}};
    lr_image *image = lr_image_create(&grid, NULL);
    for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
        char path[160];
        folder_file(&s->folder, path, names[k]);
        assert_int_equal(lr_image_write(path, image, NULL), LR_OK);
        for (int stop_at = 0; stop_at < 3; stop_at++) {
            struct test_log log;
            lr_status status = LR_OK;
            struct listener listener = listen_to(stop_at);
            test_log_init(&log);
            listener.progress = (lr_progress){hear, &listener};
            lr_image *back = lr_image_read_watched(path, 1, &listener.progress, &log.log);
            assert_true((back == NULL) == (stop_at > 0));
            assert_int_equal(listener.num_reports, stop_at > 0 ? stop_at : grid.size[2]);
            if (back == NULL) (void)lr_last_error(&status);
            assert_int_equal(status, stop_at > 0 ? LR_CANCELLED : LR_OK);
            assert_string_equal(log.error, "");
            lr_image_destroy(back);
        }
    }
    lr_image_destroy(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_reported),
        cmocka_unit_test(lor_data_are_reported),
        cmocka_unit_test(images_are_reported),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

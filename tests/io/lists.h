/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Help for the tests of list mode: counts of LORs, files that are refused, and lists that are read up to a damage. */
#pragma once

#include "io/files.h"

#include <lr/events.h>

static inline float value_of(const lr_lor_data *data, int64_t lor)
{
    for (int64_t k = 0; k < data->count; k++)
        if (data->index[k] == lor) return data->values[k];
    return 0;
}

static inline double total(const lr_lor_data *data)
{
    double sum = 0;
    for (int64_t k = 0; k < data->count; k++) sum += data->values[k];
    return sum;
}

/* Numbers of prompts, delayed events, time marks, other words, unknown crystals, and pairs not in coincidence. */
static inline void assert_counts(const lr_event_counts *counts, const int64_t expected[6])
{
    assert_pairs(0, {counts->prompts, expected[0]}, {counts->delayeds, expected[1]}, {counts->time_marks, expected[2]},
                 {counts->other_words, expected[3]}, {counts->unknown_crystals, expected[4]},
                 {counts->not_in_coincidence, expected[5]});
}

/* Bins the events of a source; the data are kept, and the log is emptied first. */
static inline lr_prompts_delayeds bin_events(lr_events_source source, const lr_lors *lors)
{
    lr_prompts_delayeds data;
    test_log_init(&files.log);
    source.log = &files.log.log;
    if (lr_events_bin(&source, lors, &data, NULL) != LR_OK) fail_msg("%s", files.log.error);
    keep(data.prompts);
    keep(data.delayeds);
    return data;
}

/* Writes the events into a file in two pieces. */
static inline void write_list(const lr_events_writer_params *params, const lr_event *events, int64_t count)
{
    lr_events_writer *writer = non_null(lr_events_writer_create(params));
    const lr_event_sink sink = lr_events_writer_sink(writer);
    assert_int_equal(sink.take(sink.user, events, count / 2), LR_OK);
    assert_ok(sink.take(sink.user, events + count / 2, count - count / 2), lr_events_writer_finish(writer));
}

/* Draws a random LOR in coincidence. */
static inline int64_t draw_lor(const lr_lors *lors, uint64_t *seed)
{
    int64_t lor;
    do {
        lor = (int64_t)(test_random(seed) * (double)lors->count);
    } while (!lr_lors_in_coincidence(lors, lor));
    return lor;
}

static inline lr_status drop_events(void *user, const lr_event *events, int64_t count)
{
    *(int64_t *)user += count;
    return LR_OK;
}

/* Reads all events and returns only the status; the log is emptied first. */
static inline lr_status pass_events(lr_events_source source, struct test_log *log)
{
    int64_t count = 0;
    lr_events_info info;
    const lr_event_sink sink = {.take = drop_events, .user = &count};
    test_log_init(log);
    source.log = &log->log;
    const lr_status status = lr_events_read(&source, &sink, &info);
    lr_events_info_finish(&info);
    return status;
}

/* Fails unless the file is refused with these words: when it is binned on these LORs, or when it is read if they are
   NULL. */
static inline void refuse_events(lr_events_source source, const lr_lors *lors, const char *words)
{
    struct test_log log = TEST_LOG(log);
    lr_prompts_delayeds data = {0};
    source.log = &log.log;
    const lr_status status = lors != NULL ? lr_events_bin(&source, lors, &data, NULL) : pass_events(source, &log);
    assert_int_equal(status, LR_BAD_INPUT);
    assert_error(&log, LR_BAD_INPUT, words);
    assert_true(data.prompts == NULL && data.delayeds == NULL && data.counts.prompts == 0);
}

/* Reads all events, which are kept; the log is emptied first. */
static inline lr_event_list *list_of(lr_events_source source)
{
    test_log_init(&files.log);
    source.log = &files.log.log;
    return keep(lr_event_list_read(&source));
}

/* The events of one list equal the first events of the other. */
static inline void check_prefix(const lr_event_list *part, const lr_event_list *whole)
{
    assert_true(part->count <= whole->count);
    for (int64_t k = 0; k < part->count; k++) {
        const lr_event *is = &part->events[k], *was = &whole->events[k];
        assert_true(is->crystals[0] == was->crystals[0] && is->crystals[1] == was->crystals[1] &&
                    is->time_ms == was->time_ms && is->tof_mm == was->tof_mm && is->is_delayed == was->is_delayed &&
                    is->weight == was->weight);
    }
}

/* The data file (the source's own file, or the one that it names) has been cut short, and `count` whole events are
 * left. Normal reading must fail with these words. Reading up to the damage must give the events, with a warning of
 * the same words, or fail if no event is left. */
static inline void check_cut(const lr_events_source *source, const lr_event_list *whole, int64_t count,
                             const char *said)
{
    struct test_log log = TEST_LOG(log);
    lr_events_source own = *source;
    own.log = &log.log;
    assert_null(lr_event_list_read(&own));
    if (log.status != LR_BAD_INPUT || strstr(log.error, said) == NULL)
        fail_msg("expected '%s', found '%s'", said, log.error);
    test_log_init(&log);
    own.until_damage = true;
    lr_event_list *list = lr_event_list_read(&own);
    if (count == 0) {
        assert_null(list);
        assert_int_equal(log.status, LR_BAD_INPUT);
        assert_non_null(strstr(log.error, said));
        return;
    }
    char taken[64];
    snprintf(taken, sizeof(taken), ": the %lld events before that are taken", (long long)count);
    if (list == NULL || log.num_warnings < 1 || strstr(log.warning, said) == NULL || strstr(log.warning, taken) == NULL)
        fail_msg("expected '%s' and '%s', found '%s', '%s'", said, taken, log.warning, log.error);
    assert_int_equal(list->count, count);
    check_prefix(list, whole);
    lr_event_list_destroy(list);
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * List mode that is cut short, read until the damage: the events before it, to the last bit. */
#ifndef LR_TEST_IO_UNTIL_DAMAGE_H
#define LR_TEST_IO_UNTIL_DAMAGE_H

#include "test.h"

#include <lr/events.h>
#include <unistd.h>

/* What the whole file holds. */
static inline lr_event_list *read_until(const lr_events_source *source, bool until_damage, struct test_log *log)
{
    lr_events_source own = *source;
    test_log_init(log);
    own.log = &log->log;
    own.until_damage = until_damage;
    return lr_event_list_read(&own);
}

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

/* The data file (of the source, or what that names) cut to `bytes`, of which `count` whole events are
 * left: refused with what is said, or, where events are left, read with a warning that says it, too. */
static inline void check_cut(const lr_events_source *source, const lr_event_list *whole, int64_t count,
                             const char *said)
{
    struct test_log log;
    assert_null(read_until(source, false, &log));
    if (log.status != LR_BAD_INPUT || strstr(log.error, said) == NULL)
        fail_msg("expected '%s', found '%s'", said, log.error);
    lr_event_list *list = read_until(source, true, &log);
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

#endif

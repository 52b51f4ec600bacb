/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Programs that were compiled when parameter structs had fewer fields: the missing fields are 0, and no memory beyond
 * the struct is read. */
#define _DEFAULT_SOURCE /* for anonymous mmap */
#include "cases.h"

#include "io/files.h"

#include <sys/mman.h>
#include <unistd.h>

/* A copy at the very end of readable memory. */
struct edge {
    char *pages;
    size_t page_bytes;
};

static void *put_at_edge(struct edge *edge, const void *params, size_t bytes)
{
    edge->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    edge->pages = mmap(NULL, 2 * edge->page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(edge->pages != MAP_FAILED && bytes <= edge->page_bytes);
    assert_int_equal(mprotect(edge->pages + edge->page_bytes, edge->page_bytes, PROT_NONE), 0);
    return memcpy(edge->pages + edge->page_bytes - bytes, params, bytes);
}

static void free_edge(struct edge *edge)
{
    munmap(edge->pages, 2 * edge->page_bytes);
}

static void count_message(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    ++*(int *)user;
}

static void older_programs_make_operators(void **state)
{
    struct edge edge;
    int num_messages = 0;
    const lr_log log = {count_message, &num_messages};
    struct fixture fixture = kept_fixture(FIXTURE_RING);
    lr_operator_params params = fixture_params(&fixture, "cpu", &log);
    params.threads = 0;
    params.rays = -1;
    assert_null(lr_operator_create(&params));
    assert_int_equal(num_messages, 1);
    params.rays = 3;
    const size_t bytes = offsetof(lr_operator_params, threads);
    lr_operator *op = non_null(lr_operator_create_sized(bytes, put_at_edge(&edge, &params, bytes)));
    assert_int_equal(lr_operator_get_info(op)->rays, 3);
    lr_operator_destroy(op);
    free_edge(&edge);

    /* The older program does not have the field log either. */
    params.rays = -1;
    num_messages = 0;
    assert_null(lr_operator_create_sized(bytes, put_at_edge(&edge, &params, bytes)));
    assert_int_equal(num_messages, 0);
    assert_says(lr_last_error(NULL), "-1");
    free_edge(&edge);
}

/* This library does not know the further fields of a newer program. */
static void newer_programs_make_vectors(void **state)
{
    struct {
        lr_vector_params params;
        char more[64];
    } newer = {.params = {.count = 7}};
    memset(newer.more, 0x5a, sizeof(newer.more));
    lr_vector vector;
    assert_ints(lr_vector_create_sized(sizeof(newer), &newer.params, &vector), LR_OK, vector.count, 7);
    lr_vector_destroy(&vector);
}

static lr_status drop_events(void *user, const lr_event *events, int64_t count)
{
    *(int64_t *)user += count;
    return LR_OK;
}

static bool refuse(void *user, const char *what, double done, double total)
{
    return false;
}

/* The field `progress` was added after `log`. */
static void older_programs_read_events(void **state)
{
    struct test_folder folder;
    struct edge edge;
    char path[160];
    struct fixture fixture = kept_fixture(FIXTURE_RING);
    folder_init(&folder);
    folder_file(&folder, path, "events.petsird");
    lr_events_writer *writer =
        non_null(lr_events_writer_create(&(lr_events_writer_params){.path = path, .lors = fixture.lors}));
    const lr_event event = {.crystals = {0, fixture.scanner->num_crystals / 2}, .weight = 1};
    const lr_event_sink written = lr_events_writer_sink(writer);
    assert_ok(written.take(written.user, &event, 1), lr_events_writer_finish(writer));

    const lr_progress stops = {refuse, NULL};
    const lr_events_source source = {.path = path, .scanner = fixture.scanner, .progress = &stops};
    int64_t count = 0;
    const lr_event_sink sink = {.take = drop_events, .user = &count};
    const size_t bytes = offsetof(lr_events_source, progress);
    assert_int_equal(lr_events_read(&source, &sink, NULL), LR_CANCELLED);
    assert_ints(lr_events_read_sized(bytes, put_at_edge(&edge, &source, bytes), &sink, NULL), LR_OK, count, 1);
    free_edge(&edge);
    folder_finish(&folder);
}

test_main("unit: sized", CASE(older_programs_make_operators), CASE(newer_programs_make_vectors),
          CASE(older_programs_read_events))

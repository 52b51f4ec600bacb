/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * HDF5 files read by several threads at once, while others allocate: each file is read in a process
 * of its own, forked from whatever the program's other threads do at that moment. None may wait for
 * another's end, which the alarm of this test would show. */
#include "io/files.h"
#include "io/lor_scanner.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { NUM_READERS = 4, NUM_ALLOCATING = 2, NUM_READINGS = 40, MOST_SECONDS = 240 };

struct setup {
    struct test_folder folder;
    char path[128];
    lr_scanner *scanner;
    lr_lors *lors;
    atomic_bool is_over;
    atomic_int wrong;
};

static void *read_often(void *user)
{
    struct setup *s = user;
    for (int n = 0; n < NUM_READINGS; n++) {
        lr_lor_data *data = lr_lor_data_read(s->path, s->lors, NULL);
        if (data == NULL || data->values[17] != 17.0f) {
            atomic_fetch_add(&s->wrong, 1);
        }
        lr_lor_data_destroy(data);
    }
    return NULL;
}

static void *allocate_often(void *user)
{
    struct setup *s = user;
    for (size_t turn = 1; !atomic_load(&s->is_over); turn++) {
        volatile char *block = malloc(turn * 7919 % (1 << 20) + 1);
        if (block != NULL) {
            block[0] = 1;
        }
        free((void *)block);
    }
    return NULL;
}

static void write_numbers(struct setup *s)
{
    lr_lor_data *data = lr_lor_data_create(s->lors, NULL);
    for (int64_t n = 0; n < s->lors->count; n++) {
        data->values[n] = (float)n;
    }
    assert_int_equal(lr_lor_data_write(s->path, s->lors, data, NULL), LR_OK);
    lr_lor_data_destroy(data);
}

static void test_threads(void **state)
{
    (void)state;
    struct setup s = {0};
    pthread_t readers[NUM_READERS], others[NUM_ALLOCATING];
    folder_init(&s.folder);
    folder_file(&s.folder, s.path, "data.h5");
    s.scanner = small_ring(60.0, 0.0);
    s.lors = lr_lors_create(s.scanner, NULL);
    write_numbers(&s);
    alarm(MOST_SECONDS);
    for (int k = 0; k < NUM_ALLOCATING; k++) {
        assert_int_equal(pthread_create(&others[k], NULL, allocate_often, &s), 0);
    }
    for (int k = 0; k < NUM_READERS; k++) {
        assert_int_equal(pthread_create(&readers[k], NULL, read_often, &s), 0);
    }
    for (int k = 0; k < NUM_READERS; k++) {
        pthread_join(readers[k], NULL);
    }
    atomic_store(&s.is_over, true);
    for (int k = 0; k < NUM_ALLOCATING; k++) {
        pthread_join(others[k], NULL);
    }
    alarm(0);
    assert_int_equal(atomic_load(&s.wrong), 0);
    lr_lors_destroy(s.lors);
    lr_scanner_destroy(s.scanner);
    folder_finish(&s.folder);
}

int main(void)
{
#ifdef __SANITIZE_ADDRESS__
    printf("skipped: the address sanitizer's allocator does not survive a fork among threads\n");
    return 77;
#endif
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

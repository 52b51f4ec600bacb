/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * HDF5 files read by several threads at once, while other threads allocate memory. Each file is read by a process of
 * its own, which is started whatever the other threads are doing. No reader may wait for another one's end: the test
 * would hang. Programs that are no reader of this LORaster are tested, too. */
#define _XOPEN_SOURCE 700 /* realpath */

#include "io/files/hdf5_input.h"
#include "io/matrix/writer.h"
#include "io/scanners.h"

#include <fcntl.h>
#include <lr/direct.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

enum { NUM_READERS = 4, NUM_ALLOCATING = 2, NUM_READINGS = 40 };

#define PATH "data.h5"

static char *libexec; /* path of the reader */
static atomic_bool is_over;
static atomic_int wrong;

static void *read_often(void *user)
{
    for (int n = 0; n < NUM_READINGS; n++) {
        lr_lor_data *data = lr_lor_data_read(PATH, files.lors, NULL);
        if (data == NULL || data->values[17] != 17.0f) atomic_fetch_add(&wrong, 1);
        lr_lor_data_destroy(data);
    }
    return NULL;
}

static void *allocate_often(void *user)
{
    for (size_t turn = 1; !atomic_load(&is_over); turn++) {
        volatile char *block = malloc(turn * 7919 % (1 << 20) + 1);
        if (block != NULL) block[0] = 1;
        free((void *)block);
    }
    return NULL;
}

static int set_up(void **state)
{
    files_begin_with(state, small_ring(60.0, 0.0));
    const lr_lors *lors = files.lors;
    lr_lor_data *data = keep(lr_lor_data_create(lors, NULL));
    for (int64_t n = 0; n < lors->count; n++) data->values[n] = (float)n;
    assert_int_equal(lr_lor_data_write(PATH, lors, data, NULL), LR_OK);
    libexec = strdup(getenv("LORASTER_LIBEXEC"));
    return 0;
}

static int tear_down(void **state)
{
    const int failed = setenv("LORASTER_LIBEXEC", libexec, 1);
    free(libexec);
    return files_end(state) != 0 || failed;
}

static void test_threads(void **state)
{
    pthread_t readers[NUM_READERS], others[NUM_ALLOCATING];
    for (int k = 0; k < NUM_ALLOCATING; k++)
        assert_int_equal(pthread_create(&others[k], NULL, allocate_often, NULL), 0);
    for (int k = 0; k < NUM_READERS; k++) assert_int_equal(pthread_create(&readers[k], NULL, read_often, NULL), 0);
    for (int k = 0; k < NUM_READERS; k++) pthread_join(readers[k], NULL);
    atomic_store(&is_over, true);
    for (int k = 0; k < NUM_ALLOCATING; k++) pthread_join(others[k], NULL);
    assert_int_equal(atomic_load(&wrong), 0);
}

/* Writes a script in place of the reader. */
static void write_reader(const char *text)
{
    const char *path = "loraster-hdf5-reader";
    text_write(path, text);
    assert_int_equal(chmod(path, 0700), 0);
}

/* From now on the reader is looked for in the test's folder, given by its full path. */
static void take_own_reader(void)
{
    char *whole = realpath(files.folder.path, NULL);
    assert_int_equal(setenv("LORASTER_LIBEXEC", whole, 1), 0);
    free(whole);
}

/* In place of the reader: that of another version of LORaster, a program that only waits for its end, and nothing. */
static void test_reader(void **state)
{
    static const struct {
        const char *program;
        lr_status status;
        const char *words;
    } cases[] = {{NULL, LR_FAILED, "set LORASTER_LIBEXEC to the whole path of the folder"},
                 {"#!/bin/sh\nexit 64\n", LR_FAILED, "is not that of LORaster"},
                 {"#!/bin/sh\nkill -SEGV $$\n", LR_BAD_INPUT, "is damaged"},
                 {"#!/bin/sh\nexit 127\n", LR_FAILED, "lacks a library"},
                 {"#!/bin/sh\nexit 1\n", LR_BAD_INPUT, "is damaged"},
                 {"no program\n", LR_FAILED, "cannot start"}};
    take_own_reader();
    for (int k = 0; k < 6; k++) {
        struct test_log log = TEST_LOG(log);
        if (cases[k].program != NULL) write_reader(cases[k].program);
        assert_none(lr_lor_data_read(PATH, files.lors, &log.log), cases[k].status, &log, cases[k].words);
    }
}

/* The program that starts the reader has closed its first three files, as daemons do: the reader's own files must
 * not get their numbers. */
static void test_without_standard_files(void **state)
{
    int kept[3];
    for (int k = 0; k < 3; k++) {
        kept[k] = fcntl(k, F_DUPFD_CLOEXEC, 10);
        close(k);
    }
    lr_lor_data *data = lr_lor_data_read(PATH, files.lors, NULL);
    for (int k = 0; k < 3; k++) {
        dup2(kept[k], k);
        close(kept[k]);
    }
    keep(data);
}

/* A forked child may close its copy of an open file; the file stays open for the parent. */
static void test_forked(void **state)
{
    struct lr_hdf5_input in;
    int64_t shape[2];
    int way = -1;
    assert_int_equal(lr_hdf5_input_open(&in, PATH, NULL), LR_OK);
    const pid_t child = fork();
    if (child == 0) {
        (void)lr_hdf5_process_end(in.process);
        _exit(0);
    }
    assert_ints(waitpid(child, &way, 0), child, way, 0, lr_hdf5_shape(&in, "/lor/values", false, shape, 1), LR_OK);
    assert_int_equal(shape[0], files.lors->count);
    lr_hdf5_input_close(&in);
}

/* A view of a histo-image is one entry, which may be larger than the 4 MiB that are read at a time. */
static void test_long_entries(void **state)
{
    const lr_view views[2] = {{0, 0}, {30, 5}};
    const lr_grid grid = lr_grid_centred((const int[3]){128, 100, 90}, (const double[3]){2, 2, 2});
    lr_histo_images *histo = lr_histo_images_create(&grid, views, 2, NULL);
    const int64_t count = 2 * lr_grid_num_voxels(&grid);
    for (int64_t k = 0; k < count; k++) histo->values[k] = (float)(k % 65521);
    assert_int_equal(lr_histo_images_write(PATH, histo, NULL), LR_OK);
    lr_histo_images *read = non_null(lr_histo_images_read(PATH, NULL));
    assert_memory_equal(read->values, histo->values, (size_t)count * sizeof(*read->values));
    lr_histo_images_destroy(read);
    lr_histo_images_destroy(histo);
}

/* However little memory the reader has, a good file is never reported as damaged. */
static void test_little_memory(void **state)
{
    int failed = 0, read = 0;
#if defined(__SANITIZE_ADDRESS__)
    skip(); /* sanitizers reserve terabytes of addresses */
#endif
    take_own_reader();
    for (int mebibytes = 8; mebibytes <= 96; mebibytes += 2) {
        char text[512];
        struct test_log log = TEST_LOG(log);
        snprintf(text, sizeof(text), "#!/bin/sh\nulimit -v %d\nexec \"%s/loraster-hdf5-reader\" \"$@\"\n",
                 1024 * mebibytes, libexec);
        write_reader(text);
        lr_lor_data *data = lr_lor_data_read(PATH, files.lors, &log.log);
        if (data == NULL && (log.status != LR_FAILED || strstr(log.error, "damaged") != NULL))
            fail_msg("with %d MiB: status %d, \"%s\"", mebibytes, (int)log.status, log.error);
        failed += data == NULL;
        read += data != NULL;
        lr_lor_data_destroy(data);
    }
    assert_true(failed > 0 && read > 0);
}

static void write_matrix_of(const char *path, const lr_lors *lors)
{
    const lr_grid grid = {{2, 1, 1}, {2, 3, 4}, {0, 0, 0}};
    lr_matrix_writer *writer = lr_matrix_writer_create(&(lr_matrix_writer_params){
        .path = path, .format = LR_MATRIX_HDF5, .lors = lors, .grid = &grid, .end = 2, .description = "exact"});
    const lr_row_sink sink = lr_matrix_writer_sink(writer);
    for (int64_t row = 0; row < 2; row++) {
        const lr_row given = {row, 2, (const int64_t[2]){1, 5}, (const double[2]){0.25, 0.5}};
        assert_int_equal(sink.take(sink.user, &given), LR_OK);
    }
    assert_int_equal(lr_matrix_writer_finish(writer), LR_OK);
}

static lr_status pass_row(void *user, const lr_row *row)
{
    ++*(int *)user;
    return LR_OK;
}

/* The only process that this process has started. */
static pid_t find_child(void)
{
    char path[64];
    int child = 0;
    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    FILE *file = non_null(fopen(path, "r"));
    assert_int_equal(fscanf(file, "%d", &child), 1);
    fclose(file);
    return (pid_t)child;
}

/* If the reader of an open matrix has died, every later read reports an error. */
static void test_rows_after_death(void **state)
{
    struct test_log log = TEST_LOG(log);
    write_matrix_of(PATH, files.lors);
    lr_matrix_file *file = non_null(lr_matrix_file_open(PATH, &log.log));
    int rows = 0;
    const lr_row_sink sink = {pass_row, &rows};
    assert_ints(lr_matrix_file_rows(file, &sink, NULL), LR_OK, rows, 2, kill(find_child(), SIGKILL), 0);
    for (int turn = 0; turn < 3; turn++) {
        test_log_init(&log);
        const lr_status status = lr_matrix_file_rows(file, &sink, NULL);
        assert_int_not_equal(status, LR_OK);
        assert_int_equal(log.status, status);
        assert_non_null(strstr(log.error, PATH));
    }
    lr_matrix_file_close(file);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
group_main("io hdf5 reader", NULL, NULL, TEST(test_threads), TEST(test_reader), TEST(test_without_standard_files),
           TEST(test_forked), TEST(test_long_entries), TEST(test_little_memory), TEST(test_rows_after_death))

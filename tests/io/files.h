/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Help for the tests of files: a folder of their own, reading and writing of bytes, sentences of the log, damage, a
 * disk that fills up. */
#pragma once

#include "cases.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A folder made for one test; it is removed with every file in it. */
struct test_folder {
    char path[64];
};

static inline void folder_init(struct test_folder *folder)
{
    snprintf(folder->path, sizeof(folder->path), "files_XXXXXX");
    assert_non_null(mkdtemp(folder->path));
}

/* "folder/name"; the text stays valid during the next 15 calls. */
static inline const char *file_in(const struct test_folder *folder, const char *name)
{
    static char paths[16][384];
    static unsigned next;
    char *path = paths[next++ % 16];
    snprintf(path, sizeof(paths[0]), "%s/%s", folder->path, name);
    return path;
}

static inline const char *folder_file(const struct test_folder *folder, char path[128], const char *name)
{
    snprintf(path, 128, "%s/%s", folder->path, name);
    return path;
}

/* Returns the number of files, including hidden ones; `removes` deletes them. */
static inline int folder_visit(const struct test_folder *folder, bool removes)
{
    DIR *open = non_null(opendir(folder->path));
    int count = 0;
    for (struct dirent *entry = readdir(open); entry != NULL; entry = readdir(open)) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        count++;
        if (removes) remove(file_in(folder, entry->d_name));
    }
    closedir(open);
    return count;
}

static inline void folder_finish(const struct test_folder *folder)
{
    folder_visit(folder, true);
    assert_int_equal(rmdir(folder->path), 0);
}

/* State of each case, or of all cases together. They begin in an empty folder, which is the working directory until
 * the end, with an empty log and, if they are set, LORs. The end destroys all kept objects. */
struct test_files {
    struct test_folder folder;
    struct test_log log;
    lr_lors *lors;
    char name[64];
};
static struct test_files files;

static inline int files_begin(void **state)
{
    files.lors = NULL;
    folder_init(&files.folder);
    memcpy(files.name, files.folder.path, sizeof(files.name));
    assert_int_equal(chdir(files.name), 0);
    snprintf(files.folder.path, sizeof(files.folder.path), ".");
    test_log_init(&files.log);
    return 0;
}

static inline int files_end(void **state)
{
    destroy_kept(state);
    folder_visit(&files.folder, true);
    assert_int_equal(chdir(".."), 0);
    return rmdir(files.name);
}

/* Number of files in the test's folder. */
static inline int count_files(void)
{
    return folder_visit(&files.folder, false);
}

#define FILES_CASE(name) cmocka_unit_test_setup_teardown(name, files_begin, files_end)

/* main() of a group of cases that all run between `begin` and `end`; NULL: there is no such function. */
#define group_main(group, begin, end, ...)                                                                             \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        const struct CMUnitTest tests[] = {__VA_ARGS__};                                                               \
        return cmocka_run_group_tests_name(group, tests, begin, end);                                                  \
    }

/* Fails unless the last warning contains these words. */
static inline void assert_warning(const struct test_log *log, const char *words)
{
    if (strstr(log->warning, words) == NULL) fail_msg("expected '%s', found '%s'", words, log->warning);
}

/* Fails unless the numbers of each pair agree to a tolerance, relative to the larger one; 0 = they must be equal. */
#define assert_pairs(tolerance, ...)                                                                                   \
    check_pairs(#__VA_ARGS__, tolerance, (const double[][2]){__VA_ARGS__},                                             \
                sizeof((const double[][2]){__VA_ARGS__}) / sizeof(double[2]))

static inline void check_pairs(const char *text, double tolerance, const double (*pairs)[2], size_t count)
{
    for (size_t k = 0; k < count; k++) {
        const double a = pairs[k][0], b = pairs[k][1];
        if (!(fabs(a - b) <= tolerance * fmax(fabs(a), fabs(b))))
            fail_msg("pair %zu of %s: %.15g and %.15g, to %g", k, text, a, b, tolerance);
    }
}

/* All bytes of a file followed by a zero byte; they are kept until the end. count NULL: the file is a text. */
static inline unsigned char *bytes_read(const char *path, size_t *count)
{
    struct stat facts;
    FILE *file = non_null(fopen(path, "rb"));
    assert_int_equal(fstat(fileno(file), &facts), 0);
    const size_t size = (size_t)facts.st_size;
    unsigned char *bytes = kept((int64_t)size + 1, 1);
    assert_int_equal(fread(bytes, 1, size, file), size);
    fclose(file);
    if (count != NULL) *count = size;
    return bytes;
}

static inline size_t file_size(const char *path)
{
    struct stat facts;
    assert_int_equal(stat(path, &facts), 0);
    return (size_t)facts.st_size;
}

static inline void bytes_write(const char *path, const void *bytes, size_t count)
{
    FILE *file = non_null(fopen(path, "wb"));
    assert_ints(fwrite(bytes, 1, count, file), count, fclose(file), 0);
}

static inline void text_write(const char *path, const char *text)
{
    bytes_write(path, text, strlen(text));
}

static inline void assert_holds(const char *path, const char *text)
{
    size_t count;
    char *bytes = (char *)bytes_read(path, &count);
    assert_string_equal(bytes, text);
    assert_int_equal(count, strlen(text));
}

/* Waits until the clock shows another second, so that time stamps of files and in files differ. */
static inline void wait_for_another_second(void)
{
    const time_t start = time(NULL);
    while (time(NULL) == start) nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
}

static inline void assert_same_bytes(const char *path_a, const char *path_b)
{
    size_t count_a, count_b;
    unsigned char *a = bytes_read(path_a, &count_a), *b = bytes_read(path_b, &count_b);
    assert_int_equal(count_a, count_b);
    assert_memory_equal(a, b, count_a);
}

/* From now on no file of this process may grow beyond this number of bytes. For a writer this is like a full disk,
 * and it needs no privileges. Pass the returned limit to disk_empty. */
static inline struct rlimit disk_fill(size_t bytes)
{
    struct rlimit before;
    fflush(NULL);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){(rlim_t)bytes, before.rlim_max}), 0);
    return before;
}

static inline void disk_empty(struct rlimit before)
{
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
}

/* The call must fail for want of room, and the log must have an error that contains all of these words. */
#define assert_disk_full(bytes, call, heard, ...)                                                                      \
    do {                                                                                                               \
        const struct rlimit before_ = disk_fill(bytes);                                                                \
        const lr_status full_ = (call);                                                                                \
        disk_empty(before_);                                                                                           \
        assert_fails(full_, LR_FAILED, heard, __VA_ARGS__);                                                            \
    } while (0)

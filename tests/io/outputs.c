/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * How outputs are stored until they are whole, and how they treat existing files: names, rights, links, locks, and
 * files that belong together. */
#define _GNU_SOURCE /* O_TMPFILE */
#include "io/files.h"

#include "io/files/output.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

static const char a[] = "./a", b[] = "./b";

/* Files without names (O_TMPFILE) are not supported, as on some file systems. */
static bool has_no_nameless;

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);

int __wrap_open(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    const int mode = va_arg(list, int); /* not used where open() has no such argument */
    va_end(list);
    if (has_no_nameless && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return __real_open(path, flags, mode);
}

static int set_up_hidden(void **state)
{
    has_no_nameless = true;
    return files_begin(state);
}

static int tear_down(void **state)
{
    has_no_nameless = false;
    return files_end(state);
}

static mode_t rights_of(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return info.st_mode & 07777;
}

static void begin(struct lr_output *output, const char *path, const char *text)
{
    assert_ok(lr_output_open(output, path, &files.log.log), lr_output_write(output, text, strlen(text)));
}

/* On file systems with nameless files a killed program leaves nothing behind: the output has no name while it is
   written. */
static void test_nameless(void **state)
{
    struct lr_output output;
    const int probe = open(files.folder.path, O_RDONLY | O_DIRECTORY);
    assert_true(probe >= 0);
    close(probe);
    begin(&output, a, "new");
    if (output.temporary != NULL)
        print_message("this file system has no files without names\n");
    else
        assert_int_equal(count_files(), 0);
    assert_int_equal(lr_output_finish(&output), LR_OK);
    begin(&output, a, "newer");
    assert_holds(a, "new");
    assert_int_equal(lr_output_finish(&output), LR_OK);
    assert_holds(a, "newer");
    assert_int_equal(count_files(), 1);
}

/* On other file systems the output is a hidden file, which no other program deletes while it is written. */
static void test_hidden(void **state)
{
    struct lr_output output, other;
    begin(&output, a, "new");
    assert_non_null(output.temporary);
    assert_int_equal(count_files(), 1);
    begin(&other, b, "other");
    assert_ints(count_files(), 2, lr_output_finish(&output), LR_OK);
    lr_output_abandon(&other);
    assert_holds(a, "new");
    assert_int_equal(count_files(), 1);
    begin(&output, a, "left by a kill");
    close(output.file); /* for other programs, this one has ended */
    output.file = -1;
    begin(&other, b, "other");
    assert_int_equal(count_files(), 2); /* a, and the file of the other output */
    assert_int_equal(lr_output_finish(&other), LR_OK);
    lr_output_leave(&output);
    assert_int_equal(count_files(), 2);
}

static void test_rights(void **state)
{
    static const mode_t rights[] = {0600, 0640, 0644, 0400, 0666, 0755};
    const mode_t mask = umask(027);
    assert_ints(lr_text_write(a, "new", NULL), LR_OK, rights_of(a), 0640);
    for (size_t k = 0; k < sizeof(rights) / sizeof(*rights); k++) {
        struct lr_output output;
        assert_int_equal(chmod(a, rights[k]), 0);
        begin(&output, a, "again");
        struct stat info;
        assert_int_equal(fstat(output.file, &info), 0);
        assert_int_equal(info.st_mode & 077 & ~rights[k], 0); /* also not while it is written */
        assert_ints(lr_output_finish(&output), LR_OK, rights_of(a), rights[k]);
    }
    umask(mask);
}

/* An output whose name is a link replaces the file that the link leads to, or creates it. */
static void test_links(void **state)
{
    struct stat info;
    char text[8];
    const char *away = "away";
    assert_ints(symlink("b", a), 0, symlink("a", away), 0);
    for (int k = 0; k < 2; k++) {
        snprintf(text, sizeof(text), "%d", k);
        assert_ints(lr_text_write(away, text, &files.log.log), LR_OK, lstat(a, &info), 0);
        assert_true(S_ISLNK(info.st_mode));
        assert_int_equal(lstat(b, &info), 0);
        assert_true(S_ISREG(info.st_mode));
        assert_holds(b, text);
    }
    remove(b);
    assert_int_equal(symlink("a", b), 0); /* a circle of links */
    assert_int_equal(lr_text_write(a, "x", &files.log.log), LR_FAILED);
}

/* A file left by a killed program is deleted when another program needs a hidden name; a file in use stays. */
static void test_sweep(void **state)
{
    char host[64] = "", left[256], held[256];
    gethostname(host, sizeof(host) - 1);
    for (char *c = host; *c != '\0'; c++) *c = *c == '-' ? '_' : *c;
    snprintf(left, sizeof(left), "%s/.loraster-%s-1-0.part", files.folder.path, host); /* the first name tried */
    snprintf(held, sizeof(held), "%s/.loraster-%s-1-1.part", files.folder.path, host);
    const char *strange = ".loraster-elsewhere-1-0.part";
    text_write(left, "left");
    text_write(held, "held");
    text_write(strange, "another host may be writing it");
    text_write(a, "old");
    const int file = open(held, O_RDWR);
    assert_ints(flock(file, LOCK_EX | LOCK_NB), 0, lr_text_write(a, "new", NULL), LR_OK);
    assert_holds(a, "new");
    assert_ints(access(left, F_OK), -1, access(held, F_OK), 0, access(strange, F_OK), 0);
    close(file);
    assert_ints(lr_text_write(a, "newer", NULL), LR_OK, access(held, F_OK), -1, count_files(), 2);
}

/* Files that belong together: both are old or both are new, whichever of them cannot be renamed to its final name. */
static void test_together(void **state)
{
    struct lr_output data, header;
    struct lr_output *const both[2] = {&data, &header};
    text_write(a, "old data");
    text_write(b, "old header");
    begin(&data, a, "new data");
    begin(&header, b, "new header");
    assert_holds(a, "old data");
    assert_int_equal(lr_output_finish_all(both, 2), LR_OK);
    assert_holds(a, "new data");
    assert_holds(b, "new header");
    assert_int_equal(count_files(), 2);
    for (int bad = 0; bad < 2; bad++) {
        const char *in_the_way = bad == 0 ? a : b, *other = bad == 0 ? b : a;
        begin(&data, a, "newer data");
        begin(&header, b, "newer header");
        remove(in_the_way);
        assert_int_equal(mkdir(in_the_way, 0777), 0);
        assert_fails(lr_output_finish_all(both, 2), LR_FAILED, &files.log, in_the_way);
        assert_holds(other, bad == 0 ? "new header" : "new data");
        assert_int_equal(count_files(), 2);
        rmdir(in_the_way);
        text_write(in_the_way, bad == 0 ? "new data" : "new header");
    }
    begin(&data, a, "newer data"); /* a file that cannot be written to the disk replaces nothing */
    begin(&header, b, "newer header");
    close(header.file);
    header.file = open("/dev/null", O_RDONLY);
    assert_int_equal(lr_output_finish_all(both, 2), LR_FAILED);
    assert_holds(a, "new data");
    assert_holds(b, "new header");
    assert_int_equal(count_files(), 2);
}

/* If NAME.part is a link or no regular file, it is neither followed nor overwritten. */
static void test_named_links(void **state)
{
    struct lr_output output;
    const char *part = "a.part";
    text_write(b, "precious");
    for (int kind = 0; kind < 4; kind++) {
        const int made = kind == 0   ? symlink("b", part)
                         : kind == 1 ? link(b, part)
                         : kind == 2 ? mkfifo(part, 0666)
                                     : mkdir(part, 0777);
        assert_int_equal(made, 0);
        assert_fails(lr_output_open_named(&output, a, "part", &files.log.log), LR_FAILED, &files.log, "a.part is ");
        assert_holds(b, "precious");
        assert_int_equal(access(part, F_OK), 0);
        remove(part);
    }
    assert_ints(symlink("nowhere", part), 0, lr_output_open_named(&output, a, "part", &files.log.log), LR_FAILED);
    assert_int_equal(count_files(), 2);
}

/* Only one program at a time has NAME.part, until the file gets its final name. */
static void test_named_lock(void **state)
{
    struct lr_output first, second;
    const char *part = "a.part";
    assert_ok(lr_output_open_named(&first, a, "part", &files.log.log), lr_output_write(&first, "first", 5));
    assert_fails(lr_output_open_named(&second, a, "part", &files.log.log), LR_FAILED, &files.log,
                 "another program is just writing it");
    close(open(part, O_RDWR)); /* opening and closing the file once more releases no lock */
    assert_ints(lr_output_open_named(&second, a, "part", &files.log.log), LR_FAILED, lr_output_finish(&first), LR_OK);
    assert_holds(a, "first");
    assert_int_equal(lr_output_open_named(&second, a, "part", &files.log.log), LR_OK);
    remove(part); /* by another program, which makes another file of that name */
    text_write(part, "another's");
    assert_ints(lr_output_write(&second, "second", 6), LR_OK, lr_output_finish(&second), LR_FAILED);
    assert_holds(a, "first");
    assert_holds(part, "another's");
}

/* If a file were unlocked before it is renamed, another program could lock it in between and then write into the
 * final file. So the lock is held until the file has its final name. */
static bool was_renamed, was_held;

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);

int __wrap_rename(const char *from, const char *to)
{
    const int file = open(from, O_RDWR);
    was_renamed = true;
    was_held = file >= 0 && flock(file, LOCK_EX | LOCK_NB) != 0;
    close(file);
    return __real_rename(from, to);
}

static void test_held_when_renamed(void **state)
{
    struct lr_output output;
    assert_ok(lr_output_open_named(&output, a, "part", &files.log.log), lr_output_write(&output, "text", 4));
    was_renamed = was_held = false;
    assert_int_equal(lr_output_finish(&output), LR_OK);
    assert_true(was_renamed && was_held);
}

#define HIDDEN(test) cmocka_unit_test_setup_teardown(test, set_up_hidden, tear_down)
#define TEST(test) cmocka_unit_test_setup_teardown(test, files_begin, tear_down)

group_main("io outputs", NULL, NULL, TEST(test_nameless), TEST(test_rights), TEST(test_links), TEST(test_sweep),
           TEST(test_together), TEST(test_named_links), TEST(test_named_lock), TEST(test_held_when_renamed),
           HIDDEN(test_hidden), HIDDEN(test_rights), HIDDEN(test_links), HIDDEN(test_sweep), HIDDEN(test_together))

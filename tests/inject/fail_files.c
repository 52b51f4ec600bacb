/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Preloaded into a program, lets one of its calls on files fail. Environment variables select the call:
 *   FAIL_FILES_PROGRAM  only calls of the program of this name count
 *   FAIL_FILES_AT       number of the call that fails, from 1 on; if unset, none fails
 *   FAIL_FILES_SYSTEM   if set, calls on files in /proc and /sys count, too; these files describe the machine
 *   FAIL_FILES_CALLS    file to which each call adds a line: the process, the call, and the file;
 *                       "!" before the call that fails
 * Streams of the C library, and standard output, are replaced by streams that call the functions of this file, because
 * calls inside the C library cannot be intercepted. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_long calls;

/* --- which call fails --- */

static bool is_counted(void)
{
    static atomic_int known; /* 0 = not looked yet, 1 = no, 2 = yes */
    if (known == 0) {
        const char *program = getenv("FAIL_FILES_PROGRAM");
        known = program != NULL && strcmp(program_invocation_short_name, program) == 0 ? 2 : 1;
    }
    return known == 2;
}

static void tell(bool fails, const char *name, const char *what)
{
    char line[512];
    const char *path = getenv("FAIL_FILES_CALLS");
    if (path == NULL) return;
    const int length =
        snprintf(line, sizeof(line), "%ld %s%s %s\n", (long)getpid(), fails ? "!" : "", name, what != NULL ? what : "");
    const int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    const size_t bytes = length < (int)sizeof(line) ? (size_t)length : sizeof(line) - 1;
    if (file >= 0 && syscall(SYS_write, file, line, bytes) >= 0) syscall(SYS_close, file);
}

static bool is_of_system(const char *path)
{
    return path != NULL && (strncmp(path, "/proc/", 6) == 0 || strncmp(path, "/sys/", 5) == 0);
}

/* Counts a call, and says whether it fails; if so, errno is set to `error`. */
static bool fails(const char *name, const char *what, int error)
{
    const int before = errno;
    if (!is_counted() || (is_of_system(what) && getenv("FAIL_FILES_SYSTEM") == NULL)) return false;
    const char *at = getenv("FAIL_FILES_AT");
    const long number = atomic_fetch_add(&calls, 1) + 1;
    const bool failing = at != NULL && number == strtol(at, NULL, 10);
    tell(failing, name, what);
    errno = failing ? error : before;
    return failing;
}

/* The name of an open file. */
static const char *name_of(int file, char text[256])
{
    char link[64];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
    const long length = syscall(SYS_readlinkat, AT_FDCWD, link, text, 255L);
    text[length > 0 ? length : 0] = '\0';
    return text;
}

static bool fails_on(const char *name, int file, int error)
{
    char text[256];
    return is_counted() && fails(name, name_of(file, text), error);
}

/* --- calls --- */

/* A stand-in that returns the last argument. Some of these functions are declared in no header. */
#define STAND_IN(type, name, arguments, ...)                                                                           \
    type name arguments;                                                                                               \
    type name arguments                                                                                                \
    {                                                                                                                  \
        return __VA_ARGS__;                                                                                            \
    }

static int open_at(int folder, const char *path, int flags, mode_t mode)
{
    return fails("open", path, EMFILE) ? -1 : (int)syscall(SYS_openat, folder, path, flags, (long)mode);
}

/* A function that opens a file, and the one with 64 in its name. The optional argument, the file's rights, is promoted
   like all variadic arguments. */
#define OPENS(name, folder, ...)                                                                                       \
    int name(__VA_ARGS__, ...)                                                                                         \
    {                                                                                                                  \
        va_list list;                                                                                                  \
        va_start(list, flags);                                                                                         \
        const bool makes = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;                                 \
        const mode_t mode = makes ? va_arg(list, mode_t) : 0;                                                          \
        va_end(list);                                                                                                  \
        return open_at(folder, path, flags, mode);                                                                     \
    }
OPENS(open, AT_FDCWD, const char *path, int flags)
OPENS(open64, AT_FDCWD, const char *path, int flags)
OPENS(openat, folder, int folder, const char *path, int flags)
OPENS(openat64, folder, int folder, const char *path, int flags)

/* The functions that the C library calls instead of open() without rights when it checks arguments. */
STAND_IN(int, __open_2, (const char *path, int flags), open_at(AT_FDCWD, path, flags, 0))
STAND_IN(int, __open64_2, (const char *path, int flags), open_at(AT_FDCWD, path, flags, 0))
STAND_IN(int, __openat_2, (int folder, const char *path, int flags), open_at(folder, path, flags, 0))

/* Even if close() fails, the file is closed. */
int close(int file)
{
    const bool failing = fails_on("close", file, EIO);
    const int done = (int)syscall(SYS_close, file);
    errno = failing ? EIO : errno;
    return failing ? -1 : done;
}

STAND_IN(ssize_t, read, (int file, void *bytes, size_t count),
         fails_on("read", file, EIO) ? -1 : (ssize_t)syscall(SYS_read, file, bytes, count))
STAND_IN(ssize_t, __read_chk, (int file, void *bytes, size_t count, size_t room),
         count <= room ? read(file, bytes, count) : -1)

static ssize_t read_at(int file, void *bytes, size_t count, int64_t place)
{
    return fails_on("read", file, EIO) ? -1 : (ssize_t)syscall(SYS_pread64, file, bytes, count, place);
}

STAND_IN(ssize_t, pread, (int file, void *bytes, size_t count, off_t place), read_at(file, bytes, count, place))
STAND_IN(ssize_t, pread64, (int file, void *bytes, size_t count, off64_t place), read_at(file, bytes, count, place))
STAND_IN(ssize_t, __pread_chk, (int file, void *bytes, size_t count, off_t place, size_t room),
         count <= room ? read_at(file, bytes, count, place) : -1)
STAND_IN(ssize_t, __pread64_chk, (int file, void *bytes, size_t count, off64_t place, size_t room),
         count <= room ? read_at(file, bytes, count, place) : -1)
STAND_IN(ssize_t, write, (int file, const void *bytes, size_t count),
         file != STDERR_FILENO && fails_on("write", file, ENOSPC) ? -1
                                                                  : (ssize_t)syscall(SYS_write, file, bytes, count))

static ssize_t write_at(int file, const void *bytes, size_t count, int64_t place)
{
    return fails_on("write", file, ENOSPC) ? -1 : (ssize_t)syscall(SYS_pwrite64, file, bytes, count, place);
}

STAND_IN(ssize_t, pwrite, (int file, const void *bytes, size_t count, off_t place), write_at(file, bytes, count, place))
STAND_IN(ssize_t, pwrite64, (int file, const void *bytes, size_t count, off64_t place),
         write_at(file, bytes, count, place))

/* A call that fails with an error or is passed on to the system. */
#define PASSED(failing, ...) ((failing) ? -1 : (int)syscall(__VA_ARGS__))
STAND_IN(int, fsync, (int file), PASSED(fails_on("fsync", file, EIO), SYS_fsync, file))
STAND_IN(int, fdatasync, (int file), PASSED(fails_on("fsync", file, EIO), SYS_fdatasync, file))
STAND_IN(int, ftruncate, (int file, off_t size), PASSED(fails_on("ftruncate", file, EIO), SYS_ftruncate, file, size))
STAND_IN(int, ftruncate64, (int file, off64_t size),
         PASSED(fails_on("ftruncate", file, EIO), SYS_ftruncate, file, size))
STAND_IN(int, rename, (const char *from, const char *to),
         PASSED(fails("rename", to, EIO), SYS_renameat, AT_FDCWD, from, AT_FDCWD, to))
STAND_IN(int, renameat, (int from_folder, const char *from, int to_folder, const char *to),
         PASSED(fails("rename", to, EIO), SYS_renameat, from_folder, from, to_folder, to))
STAND_IN(int, link, (const char *from, const char *to),
         PASSED(fails("link", to, EIO), SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0))
STAND_IN(int, linkat, (int from_folder, const char *from, int to_folder, const char *to, int flags),
         PASSED(fails("link", to, EIO), SYS_linkat, from_folder, from, to_folder, to, flags))
STAND_IN(int, mkdir, (const char *path, mode_t mode),
         PASSED(fails("mkdir", path, ENOSPC), SYS_mkdirat, AT_FDCWD, path, mode))

/* --- streams --- */

static ssize_t stream_read(void *cookie, char *bytes, size_t count)
{
    return read((int)(intptr_t)cookie, bytes, count);
}

static ssize_t stream_write(void *cookie, const char *bytes, size_t count)
{
    const ssize_t done = write((int)(intptr_t)cookie, bytes, count);
    return done > 0 ? done : 0; /* required by fopencookie, with errno set */
}

static int stream_seek(void *cookie, off64_t *place, int whence)
{
    const long at = syscall(SYS_lseek, (int)(intptr_t)cookie, *place, whence);
    *place = at >= 0 ? at : *place;
    return at >= 0 ? 0 : -1;
}

static int stream_close(void *cookie)
{
    return close((int)(intptr_t)cookie);
}

static FILE *make_stream(int file, const char *mode)
{
    const cookie_io_functions_t functions = {stream_read, stream_write, stream_seek, stream_close};
    return fopencookie((void *)(intptr_t)file, mode, functions);
}

FILE *fopen(const char *path, const char *mode)
{
    const bool adds = strchr(mode, '+') != NULL;
    const int way = adds ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;
    const int begin = mode[0] == 'w' ? O_CREAT | O_TRUNC : mode[0] == 'a' ? O_CREAT | O_APPEND : 0;
    const int file = open_at(AT_FDCWD, path, way | begin | O_CLOEXEC, 0666);
    if (file < 0) return NULL;
    FILE *stream = make_stream(file, mode);
    if (stream == NULL) syscall(SYS_close, file);
    return stream;
}

FILE *fopen64(const char *path, const char *mode)
{
    return fopen(path, mode);
}

__attribute__((constructor)) static void replace_standard_output(void)
{
    FILE *stream = is_counted() ? make_stream(STDOUT_FILENO, "w") : NULL;
    if (stream != NULL) stdout = stream;
}

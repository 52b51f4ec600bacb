/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#define _XOPEN_SOURCE 700 /* realpath */
#include "base/path.h"
#include "io/files/output_place.h"

#include "base/log.h"
#include "base/mem.h"

#include <lr/io.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { buffer_bytes = 1 << 16, MOST_LINKS = 40 };

/* Length of the folder part of a path, its last slash included; 0 = the current folder. */
static int folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? 0 : (int)(slash - path) + 1;
}

static void complain_open(const struct lr_output *output, int error)
{
    const char *path = output->path;
    const int length = folder_length(path);
    const char *folder = length > 0 ? path : "./";
    const int shown = length > 0 ? length : 2;
    char text[128];
    switch (error) {
    case ENOENT:
    case ENOTDIR:
        (void)lr_error(output->log, LR_FAILED,
                       "cannot write %s: there is no folder %.*s: make it first, or check the path", path, shown,
                       folder);
        break;
    case EACCES:
    case EPERM:
    case EROFS:
        (void)lr_error(output->log, LR_FAILED,
                       "cannot write %s: no permission to write in the folder %.*s (%s): choose "
                       "another place",
                       path, shown, folder, lr_error_text(error, text));
        break;
    case EISDIR:
        (void)lr_error(output->log, LR_FAILED, "cannot write %s: it is a folder: give the name of a file", path);
        break;
    default: (void)lr_error(output->log, LR_FAILED, "cannot write %s: %s", path, lr_error_text(error, text));
    }
}

/* What a link that stands at `path` says, owned, seen from where `path` is; NULL = no link. */
static char *read_link(const char *path, const lr_log *log)
{
    char text[PATH_MAX];
    const ssize_t length = readlink(path, text, sizeof(text) - 1);
    if (length <= 0) return NULL;
    text[length] = '\0';
    return lr_path_beside(path, text, log);
}

/* Where the bytes go in the end: the path itself, or what it links to, which need not be there. */
static char *follow_links(const char *path, const lr_log *log)
{
    struct stat info;
    char *real = realpath(path, NULL);
    if (real != NULL) return real;
    if (stat(path, &info) == 0) return lr_copy_string(path, log); /* a pipe, which no path leads to but /dev/stdout */
    char *at = lr_copy_string(path, log), *next = NULL;
    for (int k = 0; at != NULL && k < MOST_LINKS && (next = read_link(at, log)) != NULL; k++) {
        free(at);
        at = next;
    }
    return at;
}

static bool open_target(struct lr_output *output)
{
    struct stat info;
    const int length = (int)strlen(output->path);
    if (stat(output->target, &info) != 0)
        return errno == ENOENT && output->path[length - 1] != '/' && lr_place_aside(output);
    if (S_ISDIR(info.st_mode)) {
        errno = EISDIR;
        return false;
    }
    if (S_ISREG(info.st_mode)) return lr_place_aside(output);
    output->file = open(output->target, O_WRONLY | O_CLOEXEC);
    output->in_place = true;
    return output->file >= 0;
}

static void release(struct lr_output *output)
{
    free(output->path);
    free(output->target);
    free(output->temporary);
    free(output->buffer);
    *output = (struct lr_output){.file = -1, .error = output->error, .log = output->log};
}

lr_status lr_output_open(struct lr_output *output, const char *path, const lr_log *log)
{
    *output = (struct lr_output){.file = -1, .log = log};
    if (path == NULL || path[0] == '\0') return lr_error(log, LR_USAGE, "an output file needs a name");
    output->path = lr_copy_string(path, log);
    output->target = follow_links(path, log);
    output->buffer = lr_alloc(buffer_bytes, 1, "an output buffer", log);
    if (output->path == NULL || output->target == NULL || output->buffer == NULL) {
        release(output);
        return LR_FAILED;
    }
    if (!open_target(output)) {
        complain_open(output, errno);
        release(output);
        return LR_FAILED;
    }
    return LR_OK;
}

static lr_status open_named(struct lr_output *output, const char *ending)
{
    const size_t bytes = strlen(output->target) + strlen(ending) + 2;
    output->stays = true;
    output->temporary = lr_alloc((int64_t)bytes, 1, "a file name", output->log);
    if (output->temporary == NULL) return LR_FAILED;
    snprintf(output->temporary, bytes, "%s.%s", output->target, ending);
    const mode_t mode = lr_place_mode(output->target);
    const enum lr_hold hold = lr_hold_open(output->temporary, mode, &output->file);
    if (hold == LR_HOLD_REFUSED) {
        complain_open(output, errno);
        return LR_FAILED;
    }
    return hold == LR_HELD ? LR_OK : lr_hold_complain(hold, output->temporary, output->path, output->log);
}

static lr_status check_regular(const struct lr_output *output)
{
    struct stat info;
    if (stat(output->target, &info) != 0) return LR_OK;
    if (S_ISDIR(info.st_mode)) {
        complain_open(output, EISDIR);
        return LR_FAILED;
    }
    return S_ISREG(info.st_mode)
               ? LR_OK
               : lr_error(output->log, LR_USAGE, "cannot write %s: it is a device or a pipe: give the name of a file",
                          output->path);
}

lr_status lr_output_open_named(struct lr_output *output, const char *path, const char *ending, const lr_log *log)
{
    *output = (struct lr_output){.file = -1, .log = log};
    if (path == NULL || path[0] == '\0') return lr_error(log, LR_USAGE, "an output file needs a name");
    output->path = lr_copy_string(path, log);
    output->target = follow_links(path, log);
    output->buffer = lr_alloc(buffer_bytes, 1, "an output buffer", log);
    lr_status status = output->path != NULL && output->target != NULL && output->buffer != NULL ? LR_OK : LR_FAILED;
    if (status == LR_OK) status = check_regular(output);
    if (status == LR_OK) status = open_named(output, ending);
    if (status != LR_OK) lr_output_leave(output);
    return status;
}

/* Hands bytes to the system, in as many calls as it wants. */
static lr_status write_through(struct lr_output *output, const unsigned char *bytes, size_t count)
{
    while (count > 0) {
        const ssize_t written = write(output->file, bytes, count < SSIZE_MAX ? count : SSIZE_MAX);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return lr_output_fail(output, written < 0 ? errno : ENOSPC);
        bytes += written;
        count -= (size_t)written;
    }
    return LR_OK;
}

static lr_status empty_buffer(struct lr_output *output)
{
    const size_t used = output->used;
    output->used = 0;
    return write_through(output, output->buffer, used);
}

lr_status lr_output_write(struct lr_output *output, const void *bytes, size_t count)
{
    if (output->error != 0) return LR_FAILED;
    if (count > buffer_bytes - output->used) LR_TRY(empty_buffer(output));
    if (count > buffer_bytes) return write_through(output, bytes, count);
    memcpy(output->buffer + output->used, bytes, count);
    output->used += count;
    return LR_OK;
}

/* Forces the file to the disk: only then is it known to fit. Devices and pipes need not know how,
 * and tell when they are closed. */
static lr_status settle(struct lr_output *output)
{
    if (output->error == 0) (void)empty_buffer(output);
    if (output->error == 0 && fsync(output->file) != 0 && !output->in_place) (void)lr_output_fail(output, errno);
    if (output->in_place && close(output->file) != 0 && output->error == 0) (void)lr_output_fail(output, errno);
    if (output->in_place) output->file = -1;
    return output->error == 0 ? LR_OK : LR_FAILED;
}

/* Those that are not in place yet. */
static lr_status place(struct lr_output *const *outputs, int count)
{
    struct lr_output *moving[lr_output_most_together];
    int num = 0;
    for (int k = 0; k < count; k++)
        if (!outputs[k]->in_place) moving[num++] = outputs[k];
    return num > 0 ? lr_place_all(moving, num) : LR_OK;
}

/* The file is closed, and with it given to others, when it is in place and not before. */
lr_status lr_output_finish_all(struct lr_output *const *outputs, int count)
{
    lr_status status = count <= lr_output_most_together ? LR_OK : LR_USAGE;
    for (int k = 0; k < count && status == LR_OK; k++) status = settle(outputs[k]);
    if (status == LR_OK) status = place(outputs, count);
    for (int k = 0; k < count; k++) lr_output_abandon(outputs[k]);
    return status;
}

lr_status lr_output_finish(struct lr_output *output)
{
    return lr_output_finish_all(&output, 1);
}

void lr_output_leave(struct lr_output *output)
{
    if (output->file >= 0) close(output->file);
    release(output);
}

void lr_output_abandon(struct lr_output *output)
{
    if (output->temporary != NULL && !output->stays) unlink(output->temporary);
    lr_output_leave(output);
}

lr_status lr_text_write(const char *path, const char *text, const lr_log *log)
{
    struct lr_output output;
    LR_TRY(lr_output_open(&output, path, log));
    (void)lr_output_write(&output, text, strlen(text));
    return lr_output_finish(&output);
}

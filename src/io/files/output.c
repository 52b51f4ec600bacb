/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A file that is being written may have the hidden name .loraster-HOST-PROCESS-N.part, and is then locked. A killed
 * program leaves such a file without a lock. The next program of the same host that needs a hidden name removes the
 * file. Locks are made by flock, and belong to the open file. A lock therefore stays if the program opens and closes
 * the file once more. */
#define _GNU_SOURCE /* O_TMPFILE, flock, realpath */
#include "io/files/output.h"
#include "io/files/regular_file.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <lr/io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MOST_ATTEMPTS = 10000, HOST_CHARS = 64 };

static const char name_begin[] = ".loraster-", name_end[] = ".part";

/* Returns the folder part of a path, owned by the caller; "./" if the path has no folder; NULL if memory runs out. */
static char *place_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? strdup("./") : strndup(path, (size_t)(slash - path) + 1);
}

/* --- locks --- */

/* Locks a file. Returns false if another program has locked it. File systems without locks count as success. */
static bool take_hold(int file)
{
    return flock(file, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

/* True if the open file is the file at `path`. */
static bool is_at(int file, const char *path)
{
    struct stat own, there;
    return fstat(file, &own) == 0 && lstat(path, &there) == 0 && own.st_dev == there.st_dev &&
           own.st_ino == there.st_ino;
}

/* Another program may move the file to its target after this function has opened the file, but before the lock. The
 * name then belongs to another file or to none, and is opened once more. */
enum lr_hold lr_hold_open(const char *path, mode_t mode, int *file)
{
    const int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | (mode != 0 ? O_CREAT : 0);
    for (int attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
        *file = open(path, flags, mode);
        if (*file < 0) {
            const bool is_folder = errno == EISDIR || errno == ENXIO;
            return errno == ELOOP ? LR_HOLD_LINK : is_folder ? LR_HOLD_NO_FILE : LR_HOLD_REFUSED;
        }
        struct stat info;
        enum lr_hold hold = LR_HELD;
        if (fstat(*file, &info) != 0)
            hold = LR_HOLD_REFUSED;
        else if (!S_ISREG(info.st_mode))
            hold = LR_HOLD_NO_FILE;
        else if (info.st_nlink > 1)
            hold = LR_HOLD_LINK;
        else if (!take_hold(*file))
            hold = LR_HOLD_BUSY;
        if (hold == LR_HELD && is_at(*file, path)) return LR_HELD;
        const int error = errno;
        close(*file);
        *file = -1;
        errno = error;
        if (hold != LR_HELD) return hold;
    }
    return LR_HOLD_BUSY;
}

lr_status lr_hold_complain(enum lr_hold hold, const char *name, const char *path, const lr_log *log)
{
    const int error = errno;
    char text[128];
    switch (hold) {
    case LR_HOLD_LINK:
    case LR_HOLD_NO_FILE:
        return lr_error(log, LR_FAILED,
                        "cannot write %s: %s is %s, and no file that an earlier run has left: move "
                        "it away, or choose another name",
                        path, name, hold == LR_HOLD_LINK ? "a link" : "a folder, a device or a pipe");
    case LR_HOLD_BUSY:
        return lr_error(log, LR_FAILED,
                        "cannot write %s: another program is just writing it (it has %s open): "
                        "wait for it, or choose another name",
                        path, name);
    default:
        return lr_error(log, LR_FAILED, "cannot write %s: %s cannot be opened: %s", path, name,
                        lr_error_text(error, text));
    }
}

/* --- rights --- */

mode_t lr_place_mode(const char *target)
{
    struct stat old;
    return stat(target, &old) == 0 && S_ISREG(old.st_mode) ? (old.st_mode & 0777) | 0200 : 0666;
}

/* --- names --- */

/* Makes the beginning of a hidden name: ".loraster-HOST-". */
static void name_of_host(char text[HOST_CHARS + 32])
{
    char host[HOST_CHARS] = "";
    (void)gethostname(host, sizeof(host) - 1);
    for (char *c = host; *c != '\0'; c++) *c = *c == '/' || *c == '-' || *c < ' ' ? '_' : *c;
    snprintf(text, HOST_CHARS + 32, "%s%s-", name_begin, host[0] != '\0' ? host : "host");
}

/* Returns the k-th hidden path of this process, owned by the caller; NULL if memory runs out. */
static char *make_name(const struct lr_output *output, int k)
{
    char host[HOST_CHARS + 32];
    char *folder = place_folder(output->target);
    const size_t bytes = folder != NULL ? strlen(folder) + sizeof(host) + 64 : 0;
    char *name = folder != NULL ? malloc(bytes) : NULL;
    name_of_host(host);
    if (name != NULL) snprintf(name, bytes, "%s%s%ld-%d%s", folder, host, (long)getpid(), k, name_end);
    free(folder);
    return name;
}

/* Removes files of killed programs: those with a hidden name and no lock. */
static void sweep(const char *target)
{
    char host[HOST_CHARS + 32];
    char *path = place_folder(target);
    DIR *folder = path != NULL ? opendir(path) : NULL;
    const struct dirent *entry = NULL;
    name_of_host(host);
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        const size_t length = strlen(entry->d_name), end = sizeof(name_end) - 1;
        if (strncmp(entry->d_name, host, strlen(host)) == 0 && length > end &&
            strcmp(entry->d_name + length - end, name_end) == 0) {
            struct stat info;
            const int file = openat(dirfd(folder), entry->d_name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
            if (file < 0) continue;
            if (fstat(file, &info) == 0 && S_ISREG(info.st_mode) && flock(file, LOCK_EX | LOCK_NB) == 0)
                (void)unlinkat(dirfd(folder), entry->d_name, 0);
            close(file);
        }
    }
    if (folder != NULL) closedir(folder);
    free(path);
}

/* --- the temporary file --- */

/* Gives an open file a name. Returns false, with errno, on failure. */
static bool link_open(int file, const char *name)
{
    char from[64];
    snprintf(from, sizeof(from), "/proc/self/fd/%d", file);
    return linkat(AT_FDCWD, from, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
}

/* Gives a hidden name to the temporary file, and makes this file if it is not open. Returns false, with errno, on
 * failure. */
static bool name_hidden(struct lr_output *output)
{
    const bool is_new = output->file < 0;
    const mode_t mode = is_new ? lr_place_mode(output->target) : 0;
    sweep(output->target);
    for (int k = 0; k < MOST_ATTEMPTS; k++) {
        char *name = make_name(output, k);
        if (name == NULL) {
            errno = ENOMEM;
            return false;
        }
        int file = output->file;
        bool is_done;
        if (is_new) {
            /* O_EXCL prevents two threads from making the same file. Another program may remove the file before it is
             * locked, so its name is checked. */
            file = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
            is_done = file >= 0 && take_hold(file) && is_at(file, name);
            if (file >= 0 && !is_done) {
                close(file);
                errno = EEXIST;
            }
        } else {
            is_done = link_open(file, name);
        }
        if (is_done) {
            output->temporary = name;
            output->file = file;
            return true;
        }
        const int error = errno;
        free(name);
        errno = error;
        if (error != EEXIST) break;
    }
    return false;
}

/* Opens a temporary file in the target's folder. Returns false, with errno, on failure. */
static bool place_aside(struct lr_output *output)
{
#ifdef O_TMPFILE
    const mode_t mode = lr_place_mode(output->target);
    char *folder = place_folder(output->target);
    if (folder == NULL) {
        errno = ENOMEM;
        return false;
    }
    output->file = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
    free(folder);
    if (output->file >= 0) {
        /* The link in /proc is needed to give the file a name later. */
        char proc[64];
        snprintf(proc, sizeof(proc), "/proc/self/fd/%d", output->file);
        if (access(proc, F_OK) == 0) {
            (void)take_hold(output->file); /* the file must be locked if it gets a hidden name later */
            return true;
        }
        close(output->file);
        output->file = -1;
    }
#endif

    return name_hidden(output);
}

/* --- putting files in place --- */

/* A file that is put in place together with other files. Its old version keeps a hidden name until all files are in
 * place. */
struct move {
    struct lr_output *output;
    char *old;    /* owned: hidden name of the old version; NULL = there was no file */
    int old_file; /* the old version, open and locked; -1 = not open */
    bool is_done; /* the new version is at the target */
};

static bool rename_into(struct lr_output *output)
{
    if (!is_at(output->file, output->temporary)) {
        errno = ENOENT; /* another program has removed or replaced the file */
        return false;
    }
    if (rename(output->temporary, output->target) != 0) return false;
    free(output->temporary);
    output->temporary = NULL;
    return true;
}

/* --- the folder --- */

/* Opens the target's folder. together: several files are to be put in place; the folder is then locked against other
 * programs that do the same. Waits for the lock for at most 5 s. */
static int open_folder(const char *target, bool together)
{
    const struct timespec moment = {.tv_nsec = 10000000};
    char *path = place_folder(target);
    const int folder = path != NULL ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    const int error = path != NULL ? errno : ENOMEM;
    free(path);
    for (int k = 0; folder >= 0 && together && k < 500 && !take_hold(folder); k++) nanosleep(&moment, NULL);
    errno = error;
    return folder;
}

/* Forces the names in a folder to the disk. File systems that cannot do so count as success. */
static bool sync_open(int folder)
{
    return folder < 0 || fsync(folder) == 0 || errno == EINVAL || errno == ENOTSUP;
}

bool lr_place_sync_folder(const char *target)
{
    const int folder = open_folder(target, false);
    if (folder < 0) return errno == EACCES;
    const bool done = sync_open(folder);
    const int error = errno;
    close(folder);
    errno = error;
    return done;
}

static lr_status complain_of_folder(struct lr_output *output)
{
    char text[128];
    output->error = errno;
    return lr_error(output->log, LR_FAILED,
                    "%s is written, but its folder could not be forced to the disk (%s): a loss of "
                    "power may undo it: look at the disk, and write it again",
                    output->path, lr_error_text(output->error, text));
}

/* Puts several files in place, all or none. Returns the output that fails, or NULL. */
static struct lr_output *place_together(struct lr_output *const *outputs, int count)
{
    struct lr_output *failed = NULL;
    struct move moves[lr_output_most_together] = {{.output = NULL}};
    for (int k = 0; k < count; k++) moves[k] = (struct move){.output = outputs[k], .old_file = -1};
    for (int k = 0; k < count && failed == NULL; k++)
        if (outputs[k]->temporary == NULL && !name_hidden(outputs[k])) failed = outputs[k];
    for (int k = 0; k < count && failed == NULL; k++) {
        /* Gives the old file at the target a second, hidden name. */
        const char *target = outputs[k]->target;
        struct move *move = &moves[k];
        struct stat old, taken;
        const bool exists = lstat(target, &old) == 0;
        if (!exists && errno == ENOENT) continue;
        failed = outputs[k];
        if (exists && S_ISDIR(old.st_mode)) errno = EISDIR;
        if (!exists || S_ISDIR(old.st_mode)) break;
        move->old_file = open(target, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        /* Other processes remove only unlocked files. */
        if (move->old_file >= 0) (void)flock(move->old_file, LOCK_SH | LOCK_NB);
        for (int attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
            char *name = make_name(outputs[k], attempt);
            errno = name != NULL ? EEXIST : ENOMEM;
            /* If the file system allows only one name per file, the file is renamed. */
            if (name != NULL && lstat(name, &taken) != 0 &&
                (link(target, name) == 0 || (errno != EEXIST && rename(target, name) == 0))) {
                move->old = name;
                failed = NULL;
                break;
            }
            const int error = errno;
            free(name);
            errno = error;
            if (error != EEXIST) break;
        }
    }
    const struct move *last = &moves[count - 1];
    if (failed == NULL && last->old != NULL && unlink(last->output->target) != 0 && errno != ENOENT)
        failed = last->output;
    for (int k = 0; k < count && failed == NULL; k++) {
        moves[k].is_done = rename_into(outputs[k]);
        if (!moves[k].is_done) failed = outputs[k];
    }

    for (int k = count - 1; k >= 0; k--) {
        struct move *move = &moves[k];
        const int error = errno;
        if (failed != NULL && move->old != NULL)
            (void)rename(move->old, move->output->target); /* has no effect if both names belong to one file */
        if (failed != NULL && move->old == NULL && move->is_done) (void)unlink(move->output->target);
        if (move->old != NULL) (void)unlink(move->old);
        if (move->old_file >= 0) close(move->old_file);
        free(move->old);
        errno = error;
    }
    return failed;
}

/* Puts files that are on the disk in place, all or none, and forces their folder to the disk. Failures are logged.
 * After success, the outputs have no temporary file. */
static lr_status place_all(struct lr_output *const *outputs, int count)
{
    struct lr_output *last = outputs[count - 1], *failed = NULL;
    const int folder = open_folder(last->target, count > 1);
    if (folder < 0 && errno != EACCES) return lr_output_fail(last, errno);

    /* Copies the old file's rights. If the group cannot be kept, the new group gets no more rights than all other users
     * have. */
    for (int k = 0; k < count; k++) {
        const int file = outputs[k]->file;
        struct stat old, own;
        if (stat(outputs[k]->target, &old) != 0 || !S_ISREG(old.st_mode) || fstat(file, &own) != 0) continue;
        mode_t mode = old.st_mode & 0777;
        if (own.st_gid != old.st_gid && fchown(file, (uid_t)-1, old.st_gid) != 0) mode &= 0707 | (mode & 07) << 3;
        if (own.st_uid != old.st_uid) {
            const int kept = fchown(file, old.st_uid, (gid_t)-1);
            (void)kept; /* if this fails, the file belongs to the user of this process */
        }
        (void)fchmod(file, mode); /* if this fails, the file keeps fewer permissions */
    }

    if (count > 1)
        failed = place_together(outputs, count);
    else if (last->temporary != NULL)
        failed = rename_into(last) ? NULL : last;
    else if (!link_open(last->file, last->target))
        failed = errno == EEXIST && name_hidden(last) && rename_into(last) ? NULL : last;

    /* Forces the folder of the last file to the disk, and the folders of other files if links lead elsewhere. */
    lr_status status = LR_OK;
    if (failed != NULL) {
        status = lr_output_fail(failed, errno);
    } else if (!sync_open(folder)) {
        status = complain_of_folder(last);
    } else {
        const size_t length = (size_t)(lr_path_name(last->target) - last->target);
        for (int k = 0; k < count - 1 && status == LR_OK; k++) {
            const char *target = outputs[k]->target;
            const bool is_same =
                (size_t)(lr_path_name(target) - target) == length && strncmp(target, last->target, length) == 0;
            if (!is_same && !lr_place_sync_folder(target)) status = complain_of_folder(outputs[k]);
        }
    }
    if (folder >= 0) close(folder);
    return status;
}

lr_status lr_output_fail(struct lr_output *output, int error)
{
    if (output->error != 0) return LR_FAILED;
    output->error = error != 0 ? error : EIO;
    const bool leaves = output->stays || output->source_stays;
    const char *path = output->path, *rest = leaves ? "" : "; nothing was left behind";
    char text[128];
    switch (output->error) {
    case ENOSPC:
        return lr_error(output->log, LR_FAILED,
                        "cannot write %s: the disk is full: free some space there or choose another place%s", path,
                        rest);
    case EDQUOT:
        return lr_error(output->log, LR_FAILED,
                        "cannot write %s: your disk quota is used up: free some space or choose another place%s", path,
                        rest);
    case EFBIG:
        return lr_error(output->log, LR_FAILED,
                        "cannot write %s: it grew beyond the largest file allowed here (ulimit -f, "
                        "or the file system): raise the limit or choose another place%s",
                        path, rest);
    default: return lr_error(output->log, LR_FAILED, "cannot write %s: %s", path, lr_error_text(output->error, text));
    }
}

enum { buffer_bytes = 1 << 16, MOST_LINKS = 40 };

static void complain_open(const struct lr_output *output, int error)
{
    const char *path = output->path;
    /* Length of the folder part of the path, with its slash; 0 = the current folder. */
    const char *slash = strrchr(path, '/');
    const int length = slash == NULL ? 0 : (int)(slash - path) + 1;

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
                       "cannot write %s: no permission to write in the folder %.*s (%s): choose another place", path,
                       shown, folder, lr_error_text(error, text));
        break;
    case EISDIR:
        (void)lr_error(output->log, LR_FAILED, "cannot write %s: it is a folder: give the name of a file", path);
        break;
    default: (void)lr_error(output->log, LR_FAILED, "cannot write %s: %s", path, lr_error_text(error, text));
    }
}

static void release(struct lr_output *output)
{
    lr_free_all(output->path, output->target, output->temporary, output->buffer);
    *output = (struct lr_output){.file = -1, .error = output->error, .log = output->log};
}

/* Sets the fields of an output except its temporary file. On failure nothing has to be released. */
static lr_status begin(struct lr_output *output, const char *path, const lr_log *log)
{
    *output = (struct lr_output){.file = -1, .log = log};
    if (path == NULL || path[0] == '\0') return lr_error(log, LR_USAGE, "an output file needs a name");
    output->path = lr_copy_string(path, log);
    output->target = realpath(path, NULL);
    if (output->target == NULL) {
        /* realpath fails for a file that does not exist, and for a pipe that has no name in a folder (/dev/stdout).
         * Links to a file that does not exist are followed one by one. */
        struct stat info;
        output->target = lr_copy_string(path, log);
        const bool exists = stat(path, &info) == 0;
        for (int k = 0; output->target != NULL && !exists && k < MOST_LINKS; k++) {
            char text[PATH_MAX];
            const ssize_t length = readlink(output->target, text, sizeof(text) - 1);
            if (length <= 0) break;
            text[length] = '\0';
            char *next = lr_path_beside(output->target, text, log);
            if (next == NULL) break;
            free(output->target);
            output->target = next;
        }
    }
    output->buffer = lr_alloc(buffer_bytes, 1, "an output buffer", log);
    if (output->path != NULL && output->target != NULL && output->buffer != NULL) return LR_OK;
    release(output);
    return LR_FAILED;
}

lr_status lr_output_open(struct lr_output *output, const char *path, const lr_log *log)
{
    LR_TRY(begin(output, path, log));
    struct stat info;
    bool is_open = false;
    if (stat(output->target, &info) != 0) {
        is_open = errno == ENOENT && path[strlen(path) - 1] != '/' && place_aside(output);
    } else if (S_ISDIR(info.st_mode)) {
        errno = EISDIR;
    } else if (S_ISREG(info.st_mode)) {
        is_open = place_aside(output);
    } else {
        output->file = open(output->target, O_WRONLY | O_CLOEXEC);
        output->in_place = true;
        is_open = output->file >= 0;
    }
    if (is_open) return LR_OK;
    complain_open(output, errno);
    release(output);
    return LR_FAILED;
}

lr_status lr_output_open_named(struct lr_output *output, const char *path, const char *ending, const lr_log *log)
{
    LR_TRY(begin(output, path, log));
    lr_status status = LR_FAILED;
    struct stat info;
    if (stat(output->target, &info) == 0 && !S_ISREG(info.st_mode)) {
        if (S_ISDIR(info.st_mode)) {
            complain_open(output, EISDIR);
        } else {
            status = lr_error(log, LR_USAGE, "cannot write %s: it is a device or a pipe: give the name of a file",
                              output->path);
        }
        goto failed;
    }

    const size_t bytes = strlen(output->target) + strlen(ending) + 2;
    output->stays = true;
    output->temporary = lr_alloc((int64_t)bytes, 1, "a file name", log);
    if (output->temporary == NULL) goto failed;
    snprintf(output->temporary, bytes, "%s.%s", output->target, ending);
    const mode_t mode = lr_place_mode(output->target);
    const enum lr_hold hold = lr_hold_open(output->temporary, mode, &output->file);
    if (hold == LR_HELD) return LR_OK;
    if (hold == LR_HOLD_REFUSED)
        complain_open(output, errno);
    else
        (void)lr_hold_complain(hold, output->temporary, output->path, log);
failed:
    lr_output_leave(output);
    return status;
}

/* Writes bytes to the file without the buffer. */
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

/* Files are closed after they are in place, because closing a file releases its lock. */
lr_status lr_output_finish_all(struct lr_output *const *outputs, int count)
{
    lr_status status = count <= lr_output_most_together ? LR_OK : LR_USAGE;
    for (int k = 0; k < count && status == LR_OK; k++) {
        /* Only after fsync is it certain that the file fits on the disk. Devices and pipes may lack fsync, and report
         * failures when they are closed. */
        struct lr_output *output = outputs[k];
        if (output->error == 0) (void)empty_buffer(output);
        if (output->error == 0 && fsync(output->file) != 0 && !output->in_place) (void)lr_output_fail(output, errno);
        if (output->in_place && close(output->file) != 0 && output->error == 0) (void)lr_output_fail(output, errno);
        if (output->in_place) output->file = -1;
        status = output->error == 0 ? LR_OK : LR_FAILED;
    }

    if (status == LR_OK) {
        struct lr_output *moving[lr_output_most_together];
        int num = 0;
        for (int k = 0; k < count; k++)
            if (!outputs[k]->in_place) moving[num++] = outputs[k];
        status = num > 0 ? place_all(moving, num) : LR_OK;
    }

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

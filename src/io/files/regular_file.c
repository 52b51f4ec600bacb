/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#define _XOPEN_SOURCE 700 /* realpath */
#include "io/files/regular_file.h"
#include "io/files/missing_file.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- opening --- */

static FILE *refuse(const char *what, const char *path, int error, const lr_log *log)
{
    char text[LR_OPEN_FAILURE];
    const bool no_memory = error == ENOMEM;
    (void)lr_error(log, no_memory ? LR_FAILED : LR_BAD_INPUT, "%s: %scannot be opened: %s", path, what,
                   lr_open_failure(path, error, text));
    errno = error;
    return NULL;
}

static FILE *refuse_kind(const char *what, const char *path, mode_t mode, const lr_log *log)
{
    (void)lr_error(log, LR_BAD_INPUT, "%s: %sis %s: give a file", path, what,
                   S_ISDIR(mode) ? "a folder" : "no regular file");
    errno = S_ISDIR(mode) ? EISDIR : EINVAL;
    return NULL;
}

/* Asked of the path first, for opening alone has effects on some devices, and then of the file,
 * which may be another one by then. */
FILE *lr_file_open(const char *path, const char *what, const lr_log *log)
{
    struct stat facts;
    if (stat(path, &facts) != 0) return refuse(what, path, errno, log);
    if (!S_ISREG(facts.st_mode)) return refuse_kind(what, path, facts.st_mode, log);
    const int number = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (number < 0) return refuse(what, path, errno, log);
    if (fstat(number, &facts) != 0 || !S_ISREG(facts.st_mode)) {
        close(number);
        return refuse_kind(what, path, facts.st_mode, log);
    }
    FILE *file = fdopen(number, "rb");
    if (file == NULL) {
        const int error = errno;
        close(number);
        return refuse(what, path, error, log);
    }
    return file;
}

FILE *lr_file_open_text(const char *path, const char *what, int64_t most, const lr_log *log)
{
    struct stat facts;
    FILE *file = lr_file_open(path, what, log);
    if (file != NULL && (fstat(fileno(file), &facts) != 0 || facts.st_size > most)) {
        (void)lr_error(log, LR_BAD_INPUT, "%s: %sis larger than the %lld bytes that it can need", path, what,
                       (long long)most);
        fclose(file);
        return NULL;
    }
    return file;
}

/* --- what others name --- */

/* The folder of a path, its links followed; false where it is not there. */
static bool find_folder(const char *path, char folder[PATH_MAX])
{
    if (realpath(path, folder) == NULL) return false;
    *strrchr(folder, '/') = '\0';
    return true;
}

/* Whether a file is in the folder of another, or below it. */
static bool is_beside(const char *path, const char *header)
{
    char here[PATH_MAX], there[PATH_MAX];
    if (!find_folder(header, here) || !find_folder(path, there)) return false;
    const size_t length = strlen(here);
    return strncmp(here, there, length) == 0 && (there[length] == '\0' || there[length] == '/');
}

static void write_discreetly(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    const struct lr_discreet_log *discreet = user;
    (void)sentence;
    if (status == LR_FAILED || level < LR_LOG_WARNING) {
        lr_log_write(discreet->to, level, status, "%s", sentence);
    } else if (level == LR_LOG_ERROR) {
        lr_log_write(discreet->to, level, status,
                     "%s, which %s names, is not what it must be; it lies outside of that file's "
                     "folder, and nothing it holds is shown: copy it there to see more",
                     discreet->path, discreet->header);
    }
}

/* What else lies beside a file that is missing is nothing that a header may ask. */
static void write_without_hint(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    const struct lr_discreet_log *discreet = user;
    const char *hint = strstr(sentence, LR_OPEN_HINT);
    const int length = hint != NULL ? (int)(hint - sentence) : (int)strlen(sentence);
    lr_log_write(discreet->to, level, status, "%.*s", length, sentence);
}

void lr_log_discreet(struct lr_discreet_log *discreet, const char *path, const char *header, const lr_log *to)
{
    *discreet = (struct lr_discreet_log){{NULL, discreet}, to, path, header};
    FILE *file = lr_file_open(path, "", NULL);
    const bool is_missing = file == NULL;
    const bool may_tell = !is_missing && is_beside(path, header);
    if (!is_missing) fclose(file);
    discreet->log =
        may_tell && to != NULL ? *to : (lr_log){is_missing ? write_without_hint : write_discreetly, discreet};
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * HDF5 files are read by another process, because a damaged file may crash HDF5. */
#define _GNU_SOURCE /* memfd_create, environ */
#include "io/files/hdf5_input.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "io/files/hdf5_request.h"
#include "io/files/output.h"
#include "io/files/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The process that reads an HDF5 file. The process runs another program (hdf5_reader/), whose path base/path.h finds. A
 * fork of the calling process would instead inherit locks of other threads, the driver of a GPU and gigabytes of
 * images. */
struct lr_hdf5_process {
    lr_log log; /* lr_hdf5_input.log points to this log */
    const lr_log *callers_log;
    pid_t id;         /* 0 = the process has ended, and waitpid() was called */
    pid_t owner;      /* the process that started the reader; only the owner may end the reader */
    int socket;       /* -1 = closed */
    bool was_silent;  /* true: the reader was killed because no answer came */
    lr_status status; /* status for the caller once the process has died */
    void *window;     /* LR_HDF5_WINDOW_BYTES of memory shared with the process */
};

/* --- starting the reader --- */

/* Gives an open file a number above 2. If the program has closed its standard output, the file could otherwise get the
 * number of the standard output, and printed text would go to the file. */
static int beyond_standard(int file)
{
    const int moved = file < 0 ? -1 : fcntl(file, F_DUPFD_CLOEXEC, 3);
    if (file >= 0) close(file);
    return moved;
}

/* Starts the program with a socket and memory that both processes see. Returns an errno, or 0. */
static int start_program(struct lr_hdf5_process *process, char *reader, const char *path)
{
    /* Writing beyond the limit of a file's size would end the program. */
    struct rlimit limit;
    if (!(getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= LR_HDF5_WINDOW_BYTES)) return EFBIG;
    const int file = beyond_standard(memfd_create("loraster", MFD_CLOEXEC));
    if (file >= 0 && ftruncate(file, LR_HDF5_WINDOW_BYTES) == 0) {
        process->window = mmap(NULL, LR_HDF5_WINDOW_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        process->window = process->window == MAP_FAILED ? NULL : process->window;
    }
    int ends[2] = {-1, -1};
    if (process->window != NULL && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0) {
        ends[0] = beyond_standard(ends[0]);
        ends[1] = beyond_standard(ends[1]);
    }
    if (ends[0] < 0 || ends[1] < 0) {
        const int error = errno;
        if (ends[0] >= 0) close(ends[0]);
        if (ends[1] >= 0) close(ends[1]);
        if (file >= 0) close(file);
        return error;
    }

    char name[PATH_MAX], socket[16], memory[16];
    snprintf(name, sizeof(name), "%s", path);
    snprintf(socket, sizeof(socket), "%d", ends[1]);
    snprintf(memory, sizeof(memory), "%d", file);
    char *const words[] = {reader, LR_VERSION_STRING, name, socket, memory, NULL};

    /* The new program inherits these two files, under the same numbers. No other program inherits them. */
    const int files[2] = {ends[1], file};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&actions);
    const bool has_actions = error == 0;
    error = error == 0 ? posix_spawnattr_init(&attributes) : error;
    if (error == 0) {
        for (int k = 0; k < 2 && error == 0; k++)
            error = posix_spawn_file_actions_adddup2(&actions, files[k], files[k]);

        /* These signals are blocked until the new program ignores them. */
        sigset_t blocked;
        sigemptyset(&blocked);
        sigaddset(&blocked, SIGINT);
        sigaddset(&blocked, SIGTERM);
        sigaddset(&blocked, SIGHUP);
        error = error == 0 ? posix_spawnattr_setsigmask(&attributes, &blocked) : error;
        error = error == 0 ? posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK) : error;
        error = error == 0 ? posix_spawn(&process->id, words[0], &actions, &attributes, words, environ) : error;
        posix_spawnattr_destroy(&attributes);
    }
    if (has_actions) posix_spawn_file_actions_destroy(&actions);
    process->id = error == 0 ? process->id : 0;
    process->owner = getpid();
    close(ends[1]);
    close(file);
    process->socket = ends[0];
    return error;
}

/* --- the end of the reader --- */

int lr_hdf5_process_end(struct lr_hdf5_process *process)
{
    const bool is_ours = process->owner == getpid();
    if (process->socket >= 0) {
        /* Closing alone would not end the reader if a forked process also has this end of the socket open. */
        if (is_ours) shutdown(process->socket, SHUT_RDWR);
        close(process->socket);
        process->socket = -1;
    }
    /* A silent reader may never end, for example if its drive is gone, so the wait ends after one second. */
    const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
    int end = 0;
    for (int k = 0; process->id > 0 && is_ours && (!process->was_silent || k < 100); k++) {
        const pid_t found = waitpid(process->id, &end, process->was_silent ? WNOHANG : 0);
        if (found == process->id) break;
        end = 0;
        if (found < 0 && errno != EINTR) break;
        if (found == 0) nanosleep(&pause, NULL);
    }
    process->id = 0;
    return end;
}

static void forward_while_alive(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    const struct lr_hdf5_process *process = user;
    if (process->id != 0 && process->callers_log != NULL)
        process->callers_log->write(process->callers_log->user, level, status, sentence);
}

/* Explains how the process has ended. An exit code that the reader's program does not use comes from HDF5. */
static lr_status complain_of_end(const struct lr_hdf5_input *in, int end)
{
    const lr_log *log = in->process->callers_log;
    const int signal_number = WIFSIGNALED(end) ? WTERMSIG(end) : 0, code = WIFEXITED(end) ? WEXITSTATUS(end) : 0;
    if (in->process->was_silent) {
        return lr_error(log, LR_BAD_INPUT, "%s cannot be read: nothing has come for %d seconds: is its drive there?",
                        in->path, LR_HDF5_MOST_SILENT_SECONDS);
    }
    if (signal_number == SIGPROF) {
        return lr_error(log, LR_BAD_INPUT, "%s is damaged: the HDF5 library comes to no end in it: get the file again",
                        in->path);
    }
    if (signal_number == SIGKILL) {
        return lr_error(log, LR_BAD_INPUT,
                        "%s cannot be read: the process that reads it was killed, perhaps for want of memory",
                        in->path);
    }
    if (signal_number != 0) {
        return lr_error(log, LR_BAD_INPUT,
                        "%s is damaged: the HDF5 library crashes when it reads it (signal %d): get the file again",
                        in->path, signal_number);
    }
    if (code == LR_HDF5_OTHER_VERSION) {
        return lr_error(log, LR_FAILED,
                        "%s cannot be read: the program " LR_HDF5_READER " is not that of LORaster " LR_VERSION_STRING
                        ": install LORaster again",
                        in->path);
    }
    if (code == LR_HDF5_NO_MEMORY || code == LR_HDF5_NO_LIBRARY) {
        return lr_error(log, LR_FAILED,
                        "%s cannot be read: the program " LR_HDF5_READER " lacks %s: run it by itself to see more",
                        in->path, code == LR_HDF5_NO_LIBRARY ? "a library" : "memory");
    }
    return lr_error(log, LR_BAD_INPUT,
                    "%s is damaged: the HDF5 library gives up when it reads it (code %d): get the file again", in->path,
                    code);
}

/* --- requests --- */

/* Sends a request, if there is one, and takes the answer. Returns true if the requested item was found. The answer is
 * zero if the reader has died or cannot read the file. */
static bool exchange(const struct lr_hdf5_input *in, const struct lr_hdf5_request *request,
                     struct lr_hdf5_answer *answer)
{
    struct lr_hdf5_process *process = in->process;
    ssize_t bytes = 0;
    while (request != NULL && (bytes = send(process->socket, request, sizeof(*request), MSG_NOSIGNAL)) < 0 &&
           errno == EINTR) {
    }

    /* The deadline is for lost drives, which would block the caller for ever. */
    const double deadline_s = lr_clock_seconds() + LR_HDF5_MOST_SILENT_SECONDS;
    struct pollfd end = {.fd = process->socket, .events = POLLIN};
    int ready;
    do {
        const double left_s = deadline_s - lr_clock_seconds();
        ready = poll(&end, 1, left_s > 0 ? (int)(1000 * left_s) : 0);
    } while (ready < 0 && errno == EINTR);
    if (ready == 0 && process->owner == getpid()) {
        process->was_silent = true;
        kill(process->id, SIGKILL);
    }
    do {
        bytes = recv(process->socket, answer, sizeof(*answer), 0);
    } while (bytes < 0 && errno == EINTR);
    answer->why[sizeof(answer->why) - 1] = '\0';

    const bool lives = bytes == (ssize_t)sizeof(*answer);
    if (lives && answer->error == 0) return answer->found;
    if (lives) {
        /* The drive has failed. The reader is ended here, because later failures would wrongly be blamed on the
         * file. */
        char text[128];
        process->status = lr_error(process->callers_log, LR_BAD_INPUT, "%s cannot be read: %s: is its drive there?",
                                   in->path, lr_error_text(answer->error, text));
        (void)lr_hdf5_process_end(process);
    } else {
        process->status = complain_of_end(in, lr_hdf5_process_end(process));
    }
    *answer = (struct lr_hdf5_answer){0};
    return false;
}

static bool ask(const struct lr_hdf5_input *in, struct lr_hdf5_request *request, const char *name,
                struct lr_hdf5_answer *answer)
{
    *answer = (struct lr_hdf5_answer){0};
    snprintf(request->name, sizeof(request->name), "%s", name);
    return in->process->id != 0 && exchange(in, request, answer);
}

/* --- opening --- */

lr_status lr_hdf5_input_open(struct lr_hdf5_input *in, const char *path, const lr_log *log)
{
    *in = (struct lr_hdf5_input){.log = log, .path = path};
    if (path == NULL || path[0] == '\0') return lr_error(log, LR_USAGE, "an input file needs a name");
    struct stat facts;
    char text[LR_OPEN_FAILURE], reader[PATH_MAX];
    FILE *file = NULL;
    if (stat(path, &facts) == 0) {
        if (!S_ISREG(facts.st_mode)) {
            return lr_error(log, LR_BAD_INPUT, "cannot open %s: it is %s: give a file", path,
                            S_ISDIR(facts.st_mode) ? "a folder" : "no regular file");
        }
        file = fopen(path, "rb");
    }
    if (file == NULL)
        return lr_error(log, LR_BAD_INPUT, "cannot open %s: %s", path, lr_open_failure(path, errno, text));
    fclose(file);
    in->file_bytes = facts.st_size;

    struct lr_hdf5_process *process = lr_alloc(1, sizeof(*process), "a file", log);
    if (process == NULL) return LR_FAILED;
    *process = (struct lr_hdf5_process){.log = {forward_while_alive, process}, .callers_log = log, .socket = -1};
    in->process = process;
    in->log = &process->log;
    lr_status status = LR_OK;
    if (!lr_helper_find(LR_HDF5_READER, reader)) {
        status = lr_error(log, LR_FAILED,
                          "the program " LR_HDF5_READER ", which reads HDF5 files, %s: cmake --build BUILD "
                          "--target " LR_HDF5_READER " makes it beside the program in BUILD, cmake --install "
                          "BUILD puts it where that of the installation looks; or set LORASTER_LIBEXEC to "
                          "the whole path of the folder that has it",
                          reader);
        goto failed;
    }
    const int error = start_program(process, reader, path);
    if (error != 0) {
        status = lr_error(log, LR_FAILED, "cannot start %s to read %s: %s", reader, path, lr_error_text(error, text));
        goto failed;
    }
    struct lr_hdf5_answer answer;
    if (exchange(in, NULL, &answer)) return LR_OK;
    if (process->id == 0) {
        status = process->status;
    } else if (answer.is_hdf5) {
        status = lr_error(in->log, LR_BAD_INPUT, "%s is truncated or damaged: HDF5 says \"%s\": get it again", path,
                          answer.why);
    } else {
        struct stat there;
        const bool is_empty = stat(path, &there) == 0 && there.st_size == 0;
        status = lr_error(in->log, LR_BAD_INPUT, "%s is %s", path,
                          is_empty ? "empty: the program that wrote it has ended early: make it again"
                                   : "not an HDF5 file, or its beginning is damaged");
    }
failed:
    lr_hdf5_input_close(in);
    return status;
}

void lr_hdf5_input_close(struct lr_hdf5_input *in)
{
    struct lr_hdf5_process *process = in->process;
    (void)lr_hdf5_process_end(process);
    if (process->window != NULL) munmap(process->window, LR_HDF5_WINDOW_BYTES);
    free(process);

    in->process = NULL;
    in->log = NULL;
}

lr_status lr_hdf5_input_check(const struct lr_hdf5_input *in)
{
    return in->process->id != 0 ? LR_OK : in->process->status;
}

lr_status lr_hdf5_input_need(const struct lr_hdf5_input *in)
{
    return in->process->id != 0
               ? LR_OK
               : lr_error(in->process->callers_log, in->process->status,
                          "%s cannot be read any more: what read it has ended before: open it again", in->path);
}

/* --- datasets --- */

bool lr_hdf5_has(const struct lr_hdf5_input *in, const char *name)
{
    struct lr_hdf5_request request = {.kind = LR_HDF5_HAS};
    struct lr_hdf5_answer answer;
    return ask(in, &request, name, &answer);
}

lr_status lr_hdf5_shape(const struct lr_hdf5_input *in, const char *name, bool whole, int64_t shape[2], int rank)
{
    struct lr_hdf5_request request = {.kind = LR_HDF5_SHAPE};
    struct lr_hdf5_answer answer;
    if (!ask(in, &request, name, &answer)) {
        LR_TRY(lr_hdf5_input_check(in));
        return lr_error(in->log, LR_BAD_INPUT, "%s has no dataset %s: see docs/formats/README.md", in->path, name);
    }
    if (answer.class == LR_HDF5_OTHER || (whole && answer.class != LR_HDF5_WHOLE)) {
        return lr_error(in->log, LR_BAD_INPUT, "%s in %s must hold %s", name, in->path,
                        whole ? "whole numbers" : "numbers");
    }
    if (answer.rank != rank || answer.extent[0] == INT64_MAX || answer.extent[1] == INT64_MAX) {
        return lr_error(in->log, LR_BAD_INPUT, "%s in %s must have %d dimension%s, not %d", name, in->path, rank,
                        rank == 1 ? "" : "s", answer.rank);
    }
    shape[0] = answer.extent[0];
    shape[1] = rank > 1 ? answer.extent[1] : 0;
    return LR_OK;
}

lr_status lr_hdf5_need_stored(const struct lr_hdf5_input *in, const char *name, const int64_t shape[2])
{
    /* A compressed byte gives at most 1,032 bytes, and a number has at least one byte. */
    const double most = 1100.0, slack_bytes = 32768.0;
    const double numbers = (double)shape[0] * fmax(1.0, (double)shape[1]);
    struct lr_hdf5_request request = {.kind = LR_HDF5_SHAPE};
    struct lr_hdf5_answer answer;
    const double stored = ask(in, &request, name, &answer) ? (double)answer.stored_bytes : 0.0;
    return numbers <= most * stored && stored <= (double)in->file_bytes + slack_bytes
               ? LR_OK
               : lr_error(in->log, LR_BAD_INPUT,
                          "%s in %s is to have %.0f numbers, more than the file can hold: it is truncated or damaged",
                          name, in->path, numbers);
}

/* Each request fills the shared memory with several whole entries or, if an entry is larger, with a part of the
 * entry. */
lr_status lr_hdf5_get_part(const struct lr_hdf5_input *in, const char *name, enum lr_hdf5_number number,
                           const int64_t range[2], int64_t width, void *numbers)
{
    const int64_t bytes = lr_hdf5_number_bytes(number), room = LR_HDF5_WINDOW_BYTES / bytes;
    const int64_t most_columns = width < room ? width : room;
    unsigned char *out = numbers;
    struct lr_hdf5_request request = {.kind = LR_HDF5_READ, .number = number};
    for (int64_t row = 0; row < range[1]; row += request.count) {
        const int64_t most = room / most_columns, left = range[1] - row;
        request.begin = range[0] + row;
        request.count = left < most ? left : most;
        for (request.column = 0; request.column < width; request.column += most_columns) {
            const int64_t rest = width - request.column;
            request.columns = rest < most_columns ? rest : most_columns;
            struct lr_hdf5_answer answer;
            if (!ask(in, &request, name, &answer)) {
                LR_TRY(lr_hdf5_input_check(in));
                return lr_error(in->log, LR_BAD_INPUT, "%s in %s cannot be read: HDF5 says \"%s\": get the file again",
                                name, in->path, answer.why);
            }
            memcpy(out + (row * width + request.column) * bytes, in->process->window,
                   (size_t)(request.count * request.columns * bytes));
        }
    }
    return LR_OK;
}

lr_status lr_hdf5_get(const struct lr_hdf5_input *in, const char *name, enum lr_hdf5_number number,
                      const int64_t shape[2], void *numbers)
{
    return lr_hdf5_get_part(in, name, number, (int64_t[2]){0, shape[0]}, shape[1] > 0 ? shape[1] : 1, numbers);
}

bool lr_hdf5_get_number(const struct lr_hdf5_input *in, const char *name, double *number)
{
    struct lr_hdf5_request request = {.kind = LR_HDF5_SHAPE};
    struct lr_hdf5_answer answer;
    const bool is_one = ask(in, &request, name, &answer) && answer.class != LR_HDF5_OTHER &&
                        (answer.rank == 0 || (answer.rank == 1 && answer.extent[0] == 1));
    request = (struct lr_hdf5_request){.kind = LR_HDF5_READ, .number = LR_HDF5_DOUBLE, .count = 1, .columns = 1};
    if (!is_one || !ask(in, &request, name, &answer)) return false;
    memcpy(number, in->process->window, sizeof(*number));
    return true;
}

/* --- attributes --- */

bool lr_hdf5_get_string(const struct lr_hdf5_input *in, const char *name, const char *attribute, char *text,
                        size_t bytes)
{
    struct lr_hdf5_request request = {.kind = LR_HDF5_STRING, .count = 1};
    struct lr_hdf5_answer answer;
    snprintf(request.attribute, sizeof(request.attribute), "%s", attribute);
    if (!ask(in, &request, name, &answer)) return false;
    ((char *)in->process->window)[LR_HDF5_WINDOW_BYTES - 1] = '\0';
    snprintf(text, bytes, "%s", (const char *)in->process->window);
    return true;
}

bool lr_hdf5_get_numbers(const struct lr_hdf5_input *in, const char *name, const char *attribute,
                         enum lr_hdf5_number number, int count, void *numbers)
{
    struct lr_hdf5_request request = {.kind = LR_HDF5_NUMBERS, .number = number, .count = count};
    struct lr_hdf5_answer answer;
    snprintf(request.attribute, sizeof(request.attribute), "%s", attribute);
    if (!ask(in, &request, name, &answer)) return false;
    memcpy(numbers, in->process->window, (size_t)(count * lr_hdf5_number_bytes(number)));
    return true;
}

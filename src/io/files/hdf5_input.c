/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/files/hdf5_input.h"

#include "base/helper.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/files/hdf5_process.h"
#include "io/files/missing_file.h"
#include "io/files/output.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void forward_while_alive(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    const struct lr_hdf5_process *process = user;
    if (process->id != 0 && process->callers_log != NULL)
        process->callers_log->write(process->callers_log->user, level, status, sentence);
}

/* --- the process's end --- */

static void free_process(struct lr_hdf5_process *process)
{
    (void)lr_hdf5_process_end(process);
    if (process->window != NULL) munmap(process->window, LR_HDF5_WINDOW_BYTES);
    free(process);
}

/* Ends that are not the reader's own are HDF5's: how, a program that waits for all its children may
 * have heard in our place. */
static lr_status complain_of_exit(const struct lr_hdf5_input *in, int code)
{
    const lr_log *log = in->process->callers_log;
    switch (code) {
    case LR_HDF5_OTHER_VERSION:
        return lr_error(log, LR_FAILED,
                        "%s cannot be read: the program " LR_HDF5_READER " is not that of LORaster " LR_VERSION_STRING
                        ": install LORaster again",
                        in->path);
    case LR_HDF5_NO_MEMORY:
    case LR_HDF5_NO_LIBRARY:
        return lr_error(log, LR_FAILED,
                        "%s cannot be read: the program " LR_HDF5_READER " lacks %s: run it by itself to see more",
                        in->path, code == LR_HDF5_NO_LIBRARY ? "a library" : "memory");
    default:
        return lr_error(log, LR_BAD_INPUT,
                        "%s is damaged: the HDF5 library gives up when it reads it (code %d): get "
                        "the file again",
                        in->path, code);
    }
}

static lr_status complain_of_end(const struct lr_hdf5_input *in, int way)
{
    const lr_log *log = in->process->callers_log;
    const int signal_number = WIFSIGNALED(way) ? WTERMSIG(way) : 0;
    if (in->process->was_silent) {
        return lr_error(log, LR_BAD_INPUT, "%s cannot be read: nothing has come for %d seconds: is its drive there?",
                        in->path, LR_HDF5_MOST_SILENT_SECONDS);
    }
    switch (signal_number) {
    case 0: return complain_of_exit(in, WIFEXITED(way) ? WEXITSTATUS(way) : 0);
    case SIGPROF:
        return lr_error(log, LR_BAD_INPUT, "%s is damaged: the HDF5 library comes to no end in it: get the file again",
                        in->path);
    case SIGKILL:
        return lr_error(log, LR_BAD_INPUT,
                        "%s cannot be read: the process that reads it was killed, perhaps for want "
                        "of memory",
                        in->path);
    default:
        return lr_error(log, LR_BAD_INPUT,
                        "%s is damaged: the HDF5 library crashes when it reads it (signal %d): get "
                        "the file again",
                        in->path, signal_number);
    }
}

static void complain_of_death(const struct lr_hdf5_input *in)
{
    const int way = lr_hdf5_process_end(in->process);
    in->process->status = complain_of_end(in, way);
}

/* Nothing that is not found after this would be the file's fault, and so no more is asked. */
static void complain_of_system(const struct lr_hdf5_input *in, int error)
{
    char text[128];
    in->process->status = lr_error(in->process->callers_log, LR_BAD_INPUT, "%s cannot be read: %s: is its drive there?",
                                   in->path, lr_error_text(error, text));
    (void)lr_hdf5_process_end(in->process);
}

/* --- asking it --- */

/* Whether it was found; the answer is zero where the process has died or cannot read. */
static bool exchange(const struct lr_hdf5_input *in, const struct lr_hdf5_request *request,
                     struct lr_hdf5_answer *answer)
{
    const bool lives = lr_hdf5_process_ask(in->process, request, answer);
    if (lives && answer->error == 0) return answer->found;
    if (lives)
        complain_of_system(in, answer->error);
    else
        complain_of_death(in);
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

static lr_status check_file(struct lr_hdf5_input *in)
{
    struct stat facts;
    char text[LR_OPEN_FAILURE];
    FILE *file = NULL;
    if (stat(in->path, &facts) == 0) {
        if (!S_ISREG(facts.st_mode)) {
            return lr_error(in->log, LR_BAD_INPUT, "cannot open %s: it is %s: give a file", in->path,
                            S_ISDIR(facts.st_mode) ? "a folder" : "no regular file");
        }
        file = fopen(in->path, "rb");
    }
    if (file == NULL)
        return lr_error(in->log, LR_BAD_INPUT, "cannot open %s: %s", in->path, lr_open_failure(in->path, errno, text));
    fclose(file);
    in->file_bytes = facts.st_size;
    return LR_OK;
}

static lr_status open_in_process(struct lr_hdf5_input *in)
{
    struct lr_hdf5_answer answer;
    LR_TRY(lr_hdf5_process_start(in->process, in->path));
    if (exchange(in, NULL, &answer)) return LR_OK;
    if (in->process->id == 0) return in->process->status;
    return answer.is_hdf5
               ? lr_error(in->log, LR_BAD_INPUT, "%s is truncated or damaged: HDF5 says \"%s\": get it again", in->path,
                          answer.why)
               : lr_error(in->log, LR_BAD_INPUT, "%s is not an HDF5 file, or its beginning is damaged", in->path);
}

lr_status lr_hdf5_input_open(struct lr_hdf5_input *in, const char *path, const lr_log *log)
{
    *in = (struct lr_hdf5_input){.log = log, .path = path};
    if (path == NULL || path[0] == '\0') return lr_error(log, LR_USAGE, "an input file needs a name");
    LR_TRY(check_file(in));
    in->process = lr_alloc(1, sizeof(*in->process), "a file", log);
    if (in->process == NULL) return LR_FAILED;
    *in->process =
        (struct lr_hdf5_process){.log = {forward_while_alive, in->process}, .callers_log = log, .socket = -1};
    in->log = &in->process->log;
    const lr_status status = open_in_process(in);
    if (status != LR_OK) lr_hdf5_input_close(in);
    return status;
}

void lr_hdf5_input_close(struct lr_hdf5_input *in)
{
    free_process(in->process);
    in->process = NULL;
    in->log = NULL;
}

lr_status lr_hdf5_input_check(const struct lr_hdf5_input *in)
{
    return in->process->id != 0 ? LR_OK : in->process->status;
}

lr_status lr_hdf5_input_need(const struct lr_hdf5_input *in)
{
    return in->process->id != 0 ? LR_OK
                                : lr_error(in->process->callers_log, in->process->status,
                                           "%s cannot be read any more: what read it has ended before: open it "
                                           "again",
                                           in->path);
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
    /* Deflate makes at most 1,032 bytes of one, and a number has at least one byte. */
    const double most = 1100.0, slack_bytes = 32768.0;
    const double numbers = (double)shape[0] * fmax(1.0, (double)shape[1]);
    struct lr_hdf5_request request = {.kind = LR_HDF5_SHAPE};
    struct lr_hdf5_answer answer;
    const double stored = ask(in, &request, name, &answer) ? (double)answer.stored_bytes : 0.0;
    return numbers <= most * stored && stored <= (double)in->file_bytes + slack_bytes
               ? LR_OK
               : lr_error(in->log, LR_BAD_INPUT,
                          "%s in %s is to have %.0f numbers, more than the file can hold: it is "
                          "truncated or "
                          "damaged",
                          name, in->path, numbers);
}

static lr_status get_window(const struct lr_hdf5_input *in, const char *name, struct lr_hdf5_request *request,
                            unsigned char *out)
{
    struct lr_hdf5_answer answer;
    if (!ask(in, request, name, &answer)) {
        LR_TRY(lr_hdf5_input_check(in));
        return lr_error(in->log, LR_BAD_INPUT, "%s in %s cannot be read: HDF5 says \"%s\": get the file again", name,
                        in->path, answer.why);
    }
    const int64_t count = request->count * request->columns;
    memcpy(out, in->process->window, (size_t)(count * lr_hdf5_number_bytes(request->number)));
    return LR_OK;
}

/* Entries of `width` numbers each, window by window: whole entries, or parts of one. */
static lr_status get_entries(const struct lr_hdf5_input *in, const char *name, enum lr_hdf5_number number,
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
            LR_TRY(get_window(in, name, &request, out + (row * width + request.column) * bytes));
        }
    }
    return LR_OK;
}

lr_status lr_hdf5_get(const struct lr_hdf5_input *in, const char *name, enum lr_hdf5_number number,
                      const int64_t shape[2], void *numbers)
{
    return get_entries(in, name, number, (int64_t[2]){0, shape[0]}, shape[1] > 0 ? shape[1] : 1, numbers);
}

lr_status lr_hdf5_get_part(const struct lr_hdf5_input *in, const char *name, enum lr_hdf5_number number,
                           const int64_t range[2], void *numbers)
{
    return get_entries(in, name, number, range, 1, numbers);
}

lr_status lr_hdf5_get_rows(const struct lr_hdf5_input *in, const char *name, const struct lr_hdf5_rows *rows,
                           int32_t *numbers)
{
    return get_entries(in, name, LR_HDF5_INT32, (int64_t[2]){rows->begin, rows->count}, rows->width, numbers);
}

lr_status lr_hdf5_get_float_rows(const struct lr_hdf5_input *in, const char *name, const struct lr_hdf5_rows *rows,
                                 float *numbers)
{
    return get_entries(in, name, LR_HDF5_FLOAT, (int64_t[2]){rows->begin, rows->count}, rows->width, numbers);
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

static bool get_numbers(const struct lr_hdf5_input *in, const char *name, const char *attribute,
                        struct lr_hdf5_request request, void *numbers)
{
    struct lr_hdf5_answer answer;
    snprintf(request.attribute, sizeof(request.attribute), "%s", attribute);
    if (!ask(in, &request, name, &answer)) return false;
    memcpy(numbers, in->process->window, (size_t)(request.count * lr_hdf5_number_bytes(request.number)));
    return true;
}

bool lr_hdf5_get_int(const struct lr_hdf5_input *in, const char *name, const char *attribute, int count, int *numbers)
{
    const struct lr_hdf5_request request = {.kind = LR_HDF5_NUMBERS, .number = LR_HDF5_INT32, .count = count};
    return get_numbers(in, name, attribute, request, numbers);
}

bool lr_hdf5_get_int64(const struct lr_hdf5_input *in, const char *name, const char *attribute, int count,
                       int64_t *numbers)
{
    const struct lr_hdf5_request request = {.kind = LR_HDF5_NUMBERS, .number = LR_HDF5_INT64, .count = count};
    return get_numbers(in, name, attribute, request, numbers);
}

bool lr_hdf5_get_double(const struct lr_hdf5_input *in, const char *name, const char *attribute, int count,
                        double *numbers)
{
    const struct lr_hdf5_request request = {.kind = LR_HDF5_NUMBERS, .number = LR_HDF5_DOUBLE, .count = count};
    return get_numbers(in, name, attribute, request, numbers);
}

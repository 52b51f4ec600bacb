/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#define _GNU_SOURCE /* memfd_create, environ */
#include "io/hdf5_process.h"

#include "base/log.h"
#include "io/output.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- finding the program --- */

/* The folder of the running program, "" where the system does not say. */
static void get_own_folder(char folder[PATH_MAX])
{
    const ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);
    folder[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(folder, '/');
    *(slash != NULL ? slash : folder) = '\0';
}

static bool is_there(char reader[PATH_MAX], const char *folder, const char *below)
{
    const int length = snprintf(reader, PATH_MAX, "%s/%s" LR_HDF5_READER, folder, below);
    return folder[0] != '\0' && length < PATH_MAX && access(reader, X_OK) == 0;
}

static lr_status find_reader(char reader[PATH_MAX], const lr_log *log)
{
    char own[PATH_MAX];
    const char *named = getenv("LORASTER_LIBEXEC");
    get_own_folder(own);
    if (named != NULL
            ? is_there(reader, named, "")
            : is_there(reader, own, "") || is_there(reader, own, "../libexec/loraster/") ||
                  is_there(reader, LR_LIBEXEC_DIR, "")) {
        return LR_OK;
    }
    return lr_error(log, LR_FAILED,
                    "the program " LR_HDF5_READER ", which reads HDF5 files, is not in %s: install "
                    "LORaster again, or set LORASTER_LIBEXEC to the folder that has it",
                    named != NULL ? named : LR_LIBEXEC_DIR);
}

/* --- starting it --- */

/* The memory that both see; the number of its file, or -1. */
static int create_window(struct lr_hdf5_process *process)
{
    const int memory = memfd_create("loraster", MFD_CLOEXEC);
    if (memory < 0 || ftruncate(memory, LR_HDF5_WINDOW_BYTES) != 0) {
        return memory;
    }
    process->window =
        mmap(NULL, LR_HDF5_WINDOW_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    process->window = process->window == MAP_FAILED ? NULL : process->window;
    return memory;
}

/* Both files close by themselves in every other program; here they stay open under their numbers. */
static int spawn_reader(struct lr_hdf5_process *process, char *const words[], const int files[2])
{
    posix_spawn_file_actions_t kept;
    int error = posix_spawn_file_actions_init(&kept);
    if (error != 0) {
        return error;
    }
    for (int k = 0; k < 2 && error == 0; k++) {
        error = posix_spawn_file_actions_adddup2(&kept, files[k], files[k]);
    }
    if (error == 0) {
        error = posix_spawn(&process->id, words[0], &kept, NULL, words, environ);
    }
    posix_spawn_file_actions_destroy(&kept);
    process->id = error == 0 ? process->id : 0;
    return error;
}

static int start(struct lr_hdf5_process *process, char *reader, const char *path)
{
    int ends[2], error;
    char name[PATH_MAX], socket[16], memory[16];
    const int file = create_window(process);
    if (process->window == NULL || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
        error = errno;
        if (file >= 0) {
            close(file);
        }
        return error;
    }
    snprintf(name, sizeof(name), "%s", path);
    snprintf(socket, sizeof(socket), "%d", ends[1]);
    snprintf(memory, sizeof(memory), "%d", file);
    error = spawn_reader(process, (char *[]){reader, LR_VERSION_STRING, name, socket, memory, NULL},
                         (int[]){ends[1], file});
    close(ends[1]);
    close(file);
    process->socket = ends[0];
    return error;
}

lr_status lr_hdf5_process_start(struct lr_hdf5_process *process, const char *path)
{
    char reader[PATH_MAX], text[200];
    LR_TRY(find_reader(reader, process->callers_log));
    const int error = start(process, reader, path);
    return error == 0 ? LR_OK
                      : lr_error(process->callers_log, LR_FAILED, "cannot start %s to read %s: %s",
                                 reader, path, lr_error_text(error, text));
}

/* --- asking it --- */

/* A drive that is gone would otherwise be waited for without end. */
static void end_the_silent(struct lr_hdf5_process *process)
{
    struct pollfd end = {.fd = process->socket, .events = POLLIN};
    int ready;
    do {
        ready = poll(&end, 1, LR_HDF5_MOST_SILENT_SECONDS * 1000);
    } while (ready < 0 && errno == EINTR);
    if (ready == 0) {
        process->was_silent = true;
        kill(process->id, SIGKILL);
    }
}

bool lr_hdf5_process_ask(struct lr_hdf5_process *process, const struct lr_hdf5_request *request,
                         struct lr_hdf5_answer *answer)
{
    ssize_t bytes = 0;
    while (request != NULL &&
           (bytes = send(process->socket, request, sizeof(*request), MSG_NOSIGNAL)) < 0 &&
           errno == EINTR) {
    }
    end_the_silent(process);
    do {
        bytes = recv(process->socket, answer, sizeof(*answer), 0);
    } while (bytes < 0 && errno == EINTR);
    answer->why[sizeof(answer->why) - 1] = '\0';
    return bytes == (ssize_t)sizeof(*answer);
}

int lr_hdf5_process_end(struct lr_hdf5_process *process)
{
    int way = 0;
    if (process->socket >= 0) {
        /* A process that another part of the program has forked may hold this end too: closing it
         * would not be seen. */
        shutdown(process->socket, SHUT_RDWR);
        close(process->socket);
        process->socket = -1;
    }
    while (process->id > 0 && waitpid(process->id, &way, 0) < 0) {
        if (errno != EINTR) {
            way = 0;
            break;
        }
    }
    process->id = 0;
    return way;
}

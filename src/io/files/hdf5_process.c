/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#define _GNU_SOURCE /* memfd_create, environ */
#include "io/files/hdf5_process.h"

#include "base/clock.h"
#include "base/helper.h"
#include "base/log.h"
#include "io/files/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* --- finding the program --- */

static lr_status find_reader(char reader[PATH_MAX], const lr_log *log)
{
    if (lr_helper_find(LR_HDF5_READER, reader)) return LR_OK;
    return lr_error(log, LR_FAILED,
                    "the program " LR_HDF5_READER ", which reads HDF5 files, %s: cmake --build BUILD "
                    "--target " LR_HDF5_READER " makes it beside the program in BUILD, cmake --install "
                    "BUILD puts it where that of the installation looks; or set LORASTER_LIBEXEC to "
                    "the whole path of the folder that has it",
                    reader);
}

/* --- starting it --- */

/* Not one of the first three numbers, which may be free: what is printed must not go there. */
static int beyond_standard(int file)
{
    const int moved = file < 0 ? -1 : fcntl(file, F_DUPFD_CLOEXEC, 3);
    if (file >= 0) close(file);
    return moved;
}

/* Writing beyond the limit of a file's size would end the program. */
static bool may_have_window(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= LR_HDF5_WINDOW_BYTES;
}

/* The memory that both see; the number of its file, or -1. */
static int create_window(struct lr_hdf5_process *process)
{
    if (!may_have_window()) {
        errno = EFBIG;
        return -1;
    }
    const int memory = beyond_standard(memfd_create("loraster", MFD_CLOEXEC));
    if (memory < 0 || ftruncate(memory, LR_HDF5_WINDOW_BYTES) != 0) return memory;
    process->window = mmap(NULL, LR_HDF5_WINDOW_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    process->window = process->window == MAP_FAILED ? NULL : process->window;
    return memory;
}

/* Both files close by themselves in every other program; here they stay open under their numbers. */
static int keep_files(posix_spawn_file_actions_t *actions, const int files[2])
{
    const int error = posix_spawn_file_actions_adddup2(actions, files[0], files[0]);
    return error != 0 ? error : posix_spawn_file_actions_adddup2(actions, files[1], files[1]);
}

/* A signal that stops this program waits until that one ignores it. */
static int block_signals(posix_spawnattr_t *attributes)
{
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGINT);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGHUP);
    const int error = posix_spawnattr_setsigmask(attributes, &blocked);
    return error != 0 ? error : posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK);
}

static int spawn_reader(struct lr_hdf5_process *process, char *const words[], const int files[2])
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0) return error;
    error = posix_spawnattr_init(&attributes);
    if (error == 0) {
        error = keep_files(&actions, files);
        error = error == 0 ? block_signals(&attributes) : error;
        error = error == 0 ? posix_spawn(&process->id, words[0], &actions, &attributes, words, environ) : error;
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    process->id = error == 0 ? process->id : 0;
    process->owner = getpid();
    return error;
}

/* Two ends that talk to each other; false: errno says why. */
static bool create_socket(int ends[2])
{
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return false;
    ends[0] = beyond_standard(ends[0]);
    ends[1] = beyond_standard(ends[1]);
    for (int k = 0; k < 2 && (ends[0] < 0 || ends[1] < 0); k++)
        if (ends[k] >= 0) close(ends[k]);
    return ends[0] >= 0 && ends[1] >= 0;
}

static int start(struct lr_hdf5_process *process, char *reader, const char *path)
{
    int ends[2], error;
    char name[PATH_MAX], socket[16], memory[16];
    const int file = create_window(process);
    if (process->window == NULL || !create_socket(ends)) {
        error = errno;
        if (file >= 0) close(file);
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
                      : lr_error(process->callers_log, LR_FAILED, "cannot start %s to read %s: %s", reader, path,
                                 lr_error_text(error, text));
}

/* --- asking it --- */

/* A drive that is gone would otherwise be waited for without end. */
static void end_the_silent(struct lr_hdf5_process *process)
{
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
}

bool lr_hdf5_process_ask(struct lr_hdf5_process *process, const struct lr_hdf5_request *request,
                         struct lr_hdf5_answer *answer)
{
    ssize_t bytes = 0;
    while (request != NULL && (bytes = send(process->socket, request, sizeof(*request), MSG_NOSIGNAL)) < 0 &&
           errno == EINTR) {
    }
    end_the_silent(process);
    do {
        bytes = recv(process->socket, answer, sizeof(*answer), 0);
    } while (bytes < 0 && errno == EINTR);
    answer->why[sizeof(answer->why) - 1] = '\0';
    return bytes == (ssize_t)sizeof(*answer);
}

/* How a process ended that is about to; 0 where that does not come, because its drive is gone, or
 * where another part of the program has waited for it. */
static int wait_for_end(const struct lr_hdf5_process *process)
{
    const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
    int way = 0;
    for (int turn = 0; !process->was_silent || turn < 100; turn++) {
        const pid_t found = waitpid(process->id, &way, process->was_silent ? WNOHANG : 0);
        if (found == process->id) return way;
        if (found < 0 && errno != EINTR) return 0;
        if (found == 0) nanosleep(&pause, NULL);
    }
    return 0;
}

int lr_hdf5_process_end(struct lr_hdf5_process *process)
{
    const bool is_ours = process->owner == getpid();
    if (process->socket >= 0) {
        /* A process that another part of the program has forked may hold this end too: closing it
         * would not be seen. */
        if (is_ours) shutdown(process->socket, SHUT_RDWR);
        close(process->socket);
        process->socket = -1;
    }
    const int way = process->id > 0 && is_ours ? wait_for_end(process) : 0;
    process->id = 0;
    return way;
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Reads one HDF5 file for the library, which starts this program for each file that it opens (io/files/hdf5_input.c).
 * If HDF5 crashes, only this program ends. This program uses no OpenGL, writes nothing, and ends with the program that
 * started it.
 *
 * usage: loraster-hdf5-reader VERSION FILE SOCKET MEMORY
 *   SOCKET, MEMORY   numbers of two open files, inherited from the program that starts this one */
#define _GNU_SOURCE /* for syscall */
#include "io/files/hdf5_request.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

enum { NUM_KEPT = 4, MOST_CACHE_BYTES = 16 << 20, ROOM_BYTES = 8 << 20 };

/* True if the inherited limit on memory is lower than the allowance for a file. Memory may then run out although the
 * file is sound. */
static bool is_short;

/* A few datasets stay open, so that chunks read in part are not expanded again. */
struct server {
    hid_t file;
    unsigned char *window;
    struct {
        char name[64];
        hid_t dataset;
    } kept[NUM_KEPT];
    int next;  /* entry of `kept` that is replaced next */
    int error; /* errno of a failed read since the last answer, or 0 */
};

/* --- the process --- */

/* Returns true if memory has run out. Signal handlers call this function, too. */
static bool lacks_memory(void)
{
    void *room = is_short ? mmap(NULL, ROOM_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : NULL;
    if (room != NULL && room != MAP_FAILED) munmap(room, ROOM_BYTES);
    return room == MAP_FAILED;
}

static void end_by_signal(int number)
{
    if (lacks_memory()) _exit(LR_HDF5_NO_MEMORY);
    signal(number, SIG_DFL);
    raise(number);
}

/* HDF5 calls exit(-1) if it cannot go on. */
static void end_by_exit(void)
{
    if (lacks_memory()) _exit(LR_HDF5_NO_MEMORY);
}

/* SIGPROF will end the process if a request takes too long. */
static void limit_time(void)
{
    const struct itimerval limit = {.it_value = {.tv_sec = LR_HDF5_MOST_SECONDS}};
    setitimer(ITIMER_PROF, &limit, NULL);
}

/* --- answers --- */

static herr_t take_first(unsigned number, const H5E_error2_t *error, void *user)
{
    if (is_short && error->maj_num == H5E_RESOURCE) _exit(LR_HDF5_NO_MEMORY);
    if (number == 0 && error->desc != NULL) snprintf(user, 200, "%s", error->desc);
    return 0;
}

static void say_why(struct lr_hdf5_answer *answer)
{
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_first, answer->why);
    for (char *c = answer->why; *c != '\0'; c++) *c = (unsigned char)*c < ' ' ? ' ' : *c;
}

/* Takes errno from the text of an error, "... errno = 5, ...". HDF5 states errno only there. */
static herr_t take_errno(unsigned number, const H5E_error2_t *error, void *user)
{
    static const char key[] = "errno = ";
    int *found = user;
    const char *at = error->desc != NULL ? strstr(error->desc, key) : NULL;
    (void)number;
    if (at != NULL && *found == 0) *found = atoi(at + sizeof(key) - 1);
    return 0;
}

/* HDF5 calls this function where it would print errors. */
static herr_t note_error(hid_t stack, void *user)
{
    return H5Ewalk2(stack, H5E_WALK_UPWARD, take_errno, user);
}

static hid_t native_of(enum lr_hdf5_number number)
{
    return number == LR_HDF5_INT32   ? H5T_NATIVE_INT32
           : number == LR_HDF5_INT64 ? H5T_NATIVE_INT64
           : number == LR_HDF5_FLOAT ? H5T_NATIVE_FLOAT
                                     : H5T_NATIVE_DOUBLE;
}

static enum lr_hdf5_class class_of(hid_t type)
{
    const H5T_class_t class = H5Tget_class(type);
    return class == H5T_INTEGER ? LR_HDF5_WHOLE : class == H5T_FLOAT ? LR_HDF5_REAL : LR_HDF5_OTHER;
}

static int64_t bounded(hsize_t number)
{
    return number > INT64_MAX ? INT64_MAX : (int64_t)number;
}

/* --- datasets --- */

/* Returns a dataset, and opens it if it is not open yet. Returns a negative number if there is no such dataset. */
static hid_t find_dataset(struct server *server, const char *name)
{
    for (int k = 0; k < NUM_KEPT; k++)
        if (server->kept[k].dataset >= 0 && strcmp(server->kept[k].name, name) == 0) return server->kept[k].dataset;
    const hid_t access = H5Pcreate(H5P_DATASET_ACCESS);
    H5Pset_chunk_cache(access, H5D_CHUNK_CACHE_NSLOTS_DEFAULT, MOST_CACHE_BYTES, H5D_CHUNK_CACHE_W0_DEFAULT);
    const hid_t dataset = H5Dopen2(server->file, name, access);
    H5Pclose(access);

    /* A dataset with its numbers in another file is refused. The other file could be any file of the user, even one
     * without end. */
    const hid_t layout = dataset < 0 ? -1 : H5Dget_create_plist(dataset);
    const bool is_here = layout >= 0 && H5Pget_layout(layout) != H5D_VIRTUAL && H5Pget_external_count(layout) == 0;
    if (layout >= 0) H5Pclose(layout);
    if (dataset >= 0 && !is_here) H5Dclose(dataset);
    if (!is_here) return -1;

    const int k = server->next++ % NUM_KEPT;
    if (server->kept[k].dataset >= 0) H5Dclose(server->kept[k].dataset);
    server->kept[k].dataset = dataset;
    snprintf(server->kept[k].name, sizeof(server->kept[k].name), "%s", name);
    return dataset;
}

/* Finds the class, rank and extent of a dataset. */
static bool describe(hid_t dataset, struct lr_hdf5_answer *answer)
{
    hsize_t extent[H5S_MAX_RANK] = {0};
    const hid_t type = H5Dget_type(dataset);
    const hid_t space = H5Dget_space(dataset);
    answer->rank = space < 0 ? -1 : H5Sget_simple_extent_dims(space, extent, NULL);
    answer->class = type < 0 ? LR_HDF5_OTHER : class_of(type);
    answer->extent[0] = bounded(extent[0]);
    answer->extent[1] = bounded(extent[1]);
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    return answer->rank >= 0;
}

/* --- requests --- */

static void answer_request(struct server *server, const struct lr_hdf5_request *request, struct lr_hdf5_answer *answer)
{
    const char *name = request->name;
    server->error = 0;
    switch (request->kind) {
    case LR_HDF5_HAS: answer->found = H5Oexists_by_name(server->file, name, H5P_DEFAULT) > 0; break;

    case LR_HDF5_SHAPE: {
        const hid_t dataset = find_dataset(server, name);
        answer->found = dataset >= 0 && describe(dataset, answer);
        answer->stored_bytes = answer->found ? bounded(H5Dget_storage_size(dataset)) : 0;
    } break;

    case LR_HDF5_READ: {
        const hid_t dataset = find_dataset(server, name);
        const int64_t room = LR_HDF5_WINDOW_BYTES / lr_hdf5_number_bytes(request->number);
        if (dataset < 0 || !describe(dataset, answer) || answer->class == LR_HDF5_OTHER || answer->rank > 2 ||
            request->count <= 0 || request->columns <= 0 || request->columns > room ||
            request->count > room / request->columns || (answer->rank <= 1 && request->columns != 1) ||
            (answer->rank == 0 && (request->begin != 0 || request->count != 1)))
            break;
        const hsize_t start[2] = {(hsize_t)request->begin, (hsize_t)request->column};
        const hsize_t extent[2] = {(hsize_t)request->count, (hsize_t)request->columns};
        const hid_t space = H5Dget_space(dataset);
        const hid_t memory = H5Screate_simple(answer->rank, extent, NULL);
        const bool has_axes = answer->rank > 0;
        answer->found = (!has_axes || H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, extent, NULL) >= 0) &&
                        H5Dread(dataset, native_of(request->number), memory, space, H5P_DEFAULT, server->window) >= 0;
        if (!answer->found) say_why(answer); /* the next call of HDF5 clears the reason */
        H5Sclose(memory);
        H5Sclose(space);
    } break;

    case LR_HDF5_STRING:
    case LR_HDF5_NUMBERS: {
        if (H5Aexists_by_name(server->file, name, request->attribute, H5P_DEFAULT) <= 0) break;
        const hid_t attribute = H5Aopen_by_name(server->file, name, request->attribute, H5P_DEFAULT, H5P_DEFAULT);
        const hid_t space = attribute < 0 ? -1 : H5Aget_space(attribute);
        const bool fits = space >= 0 && H5Sget_simple_extent_npoints(space) == request->count;
        if (space >= 0) H5Sclose(space);
        const hid_t type = fits ? H5Aget_type(attribute) : -1;
        const bool is_string = type >= 0 && H5Tget_class(type) == H5T_STRING;
        if (type >= 0 && request->kind == LR_HDF5_NUMBERS) {
            answer->found =
                class_of(type) != LR_HDF5_OTHER && H5Aread(attribute, native_of(request->number), server->window) >= 0;
        } else if (is_string && H5Tis_variable_str(type) > 0) {
            char *string = NULL; /* freed with the process */
            answer->found = H5Aread(attribute, type, &string) >= 0 && string != NULL;
            if (answer->found) snprintf((char *)server->window, LR_HDF5_WINDOW_BYTES, "%s", string);
        } else if (is_string && H5Tget_size(type) < LR_HDF5_WINDOW_BYTES) {
            memset(server->window, 0, H5Tget_size(type) + 1);
            answer->found = H5Aread(attribute, type, server->window) >= 0;
        }
        if (type >= 0) H5Tclose(type);
        if (attribute >= 0) H5Aclose(attribute);
    } break;
    }
    if (!answer->found && lacks_memory()) _exit(LR_HDF5_NO_MEMORY);
    if (!answer->found && answer->why[0] == '\0') say_why(answer);
    answer->error = answer->found ? 0 : server->error;
}

static bool send_answer(int socket, const struct lr_hdf5_answer *answer)
{
    ssize_t sent;
    do {
        sent = send(socket, answer, sizeof(*answer), MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)sizeof(*answer);
}

static void set_up_process(int socket, int64_t file_bytes)
{
    /* Signals to stop are ignored. The program that started this one handles them, and then closes the socket. These
     * signals were blocked until now. */
    sigset_t none;
    for (int number = 1; number < 32; number++) signal(number, SIG_DFL);
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);

    /* Closes all inherited files except for the socket, because the other end of an inherited pipe would wait for this
     * process. The standard files become /dev/null, because the user should not see what a crashing library prints. */
    bool are_closed = false;
#ifdef SYS_close_range /* this system call is newer than some C libraries and kernels */
    are_closed = (socket == 3 || syscall(SYS_close_range, 3u, (unsigned)socket - 1, 0u) == 0) &&
                 syscall(SYS_close_range, (unsigned)socket + 1, ~0u, 0u) == 0;
#endif
    DIR *open_files = are_closed ? NULL : opendir("/proc/self/fd");
    for (const struct dirent *entry; open_files != NULL && (entry = readdir(open_files)) != NULL;) {
        const int file = atoi(entry->d_name);
        if (file >= 3 && file != socket && file != dirfd(open_files)) close(file);
    }
    if (open_files != NULL) closedir(open_files);
    const int nothing = open("/dev/null", O_RDWR);
    for (int k = 0; k < 3 && nothing >= 0; k++) dup2(nothing, k);

    /* Limits memory to the amount in use now plus the allowance for a file. */
    struct rlimit given;
    unsigned long long pages = 0;
    FILE *facts = fopen("/proc/self/statm", "r");
    if (facts != NULL && fscanf(facts, "%llu", &pages) == 1) {
        const rlim_t most =
            (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)512 << 20) + 4 * (rlim_t)file_bytes;
        is_short = getrlimit(RLIMIT_AS, &given) == 0 && given.rlim_cur < most;
        setrlimit(RLIMIT_AS, &(struct rlimit){most, most}); /* the limit cannot exceed the inherited one */
    }
    if (facts != NULL) fclose(facts);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});

    /* HDF5 may end this process by these signals or by exit(). */
    signal(SIGSEGV, end_by_signal);
    signal(SIGABRT, end_by_signal);
    signal(SIGBUS, end_by_signal);
    atexit(end_by_exit);
}

int main(int count, char **words)
{
    if (count != 5 || strcmp(words[1], LR_VERSION_STRING) != 0) {
        fprintf(stderr,
                "loraster-hdf5-reader " LR_VERSION_STRING ": LORaster starts this program to read HDF5 files\n");
        return LR_HDF5_OTHER_VERSION;
    }
    struct stat facts;
    const int socket = atoi(words[3]), memory = atoi(words[4]);
    void *window = mmap(NULL, LR_HDF5_WINDOW_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (window == MAP_FAILED || stat(words[2], &facts) != 0) return LR_HDF5_NO_MEMORY;

    set_up_process(socket, facts.st_size);
    limit_time();

    struct server server = {.window = window};
    struct lr_hdf5_request request;
    struct lr_hdf5_answer answer = {0};
    H5Eset_auto2(H5E_DEFAULT, note_error, &server.error);
    H5Lunregister(H5L_TYPE_EXTERNAL); /* links to other files are not followed */
    server.file = H5Fopen(words[2], H5F_ACC_RDONLY, H5P_DEFAULT);
    for (int k = 0; k < NUM_KEPT; k++) server.kept[k].dataset = -1;
    answer.found = server.file >= 0;
    if (!answer.found) {
        say_why(&answer);
        if (lacks_memory()) _exit(LR_HDF5_NO_MEMORY);
        answer.error = server.error;
        answer.is_hdf5 = H5Fis_hdf5(words[2]) > 0;
    }
    bool goes_on = send_answer(socket, &answer) && answer.found;
    while (goes_on) {
        ssize_t got;
        do {
            got = recv(socket, &request, sizeof(request), 0);
        } while (got < 0 && errno == EINTR);
        if (got != (ssize_t)sizeof(request)) break;
        answer = (struct lr_hdf5_answer){0};
        limit_time();
        answer_request(&server, &request, &answer);
        goes_on = send_answer(socket, &answer);
    }

    _exit(0); /* skips the exit functions of HDF5 */
}

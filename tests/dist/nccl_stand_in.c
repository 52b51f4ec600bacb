/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A library with the part of NCCL's interface that LORaster uses, for processes of one machine whose device is a
 * stand-in in the host's memory (tests/vector/fake_cuda.h). Its calls return, like NCCL's, before the ranks have met
 * and before any data have arrived. A thread exchanges the bytes through a file that all processes map, and the
 * device's memory gets them when its stream reaches the exchange. LR_TEST_NCCL names a mistake that the library
 * makes: "WHAT RANK [TRANSFER]". */
#define _GNU_SOURCE /* RTLD_DEFAULT, MAP_ANONYMOUS */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))

enum { SUCCESS = 0, SYSTEM_ERROR = 2, INVALID_ARGUMENT = 4, IN_PROGRESS = 7 };
enum { MOST_RANKS = 8, BOX_BYTES = 1 << 16, MOST_OPERATIONS = 2 * MOST_RANKS, PATIENCE_S = 100 };

typedef struct {
    char bytes[128];
} unique_id;

typedef struct {
    size_t size;
    unsigned magic, version;
    int blocking;
} config;

/* Bytes on their way from one rank to another, a piece at a time. */
struct box {
    atomic_int is_full;
    int bytes;
    char data[BOX_BYTES];
};

struct shared {
    atomic_int joined;
    struct box boxes[MOST_RANKS][MOST_RANKS]; /* [from][to] */
};

struct operation {
    bool is_send;
    int peer;
    char *memory, *own; /* memory on the device; copy of the bytes to send, or received bytes */
    size_t bytes, done;
};

struct batch {
    struct ncclComm *comm;
    struct operation operations[MOST_OPERATIONS];
    int count;
    void *stream;
    pthread_t thread;
};

struct ncclComm {
    struct shared *shared;
    char path[128];
    int rank, size;
    bool was_asked;
    atomic_bool is_aborted;
    int transfers, under_way;
};

static struct batch *open_batch;

/* --- mistakes --- */

static bool is_told(const char *what, int rank, int transfer)
{
    char told[32] = "";
    int of = -1, at = 0;
    const char *text = getenv("LR_TEST_NCCL");
    return text != NULL && sscanf(text, "%31s %d %d", told, &of, &at) >= 2 && strcmp(told, what) == 0 && of == rank &&
           at == transfer;
}

SHOWN int ncclGetVersion(int *version)
{
    const char *text = getenv("LR_TEST_NCCL_VERSION");
    *version = text != NULL ? atoi(text) : 22105;
    return SUCCESS;
}

SHOWN const char *ncclGetErrorString(int result)
{
    return result == SYSTEM_ERROR       ? "unhandled system error"
           : result == INVALID_ARGUMENT ? "invalid argument"
                                        : "no error";
}

/* --- life --- */

SHOWN int ncclGetUniqueId(unique_id *id)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    memset(id->bytes, 0, sizeof(id->bytes));
    snprintf(id->bytes, sizeof(id->bytes), "/dev/shm/loraster-test-%d-%ld-%ld", (int)getpid(), (long)now.tv_sec,
             now.tv_nsec);
    const int file = open(id->bytes, O_CREAT | O_EXCL | O_RDWR, 0600);
    const bool is_made = file >= 0 && ftruncate(file, sizeof(struct shared)) == 0;
    if (file >= 0) close(file);
    return is_made ? SUCCESS : SYSTEM_ERROR;
}

SHOWN int ncclCommInitRankConfig(struct ncclComm **comm, int size, unique_id id, int rank, config *wanted)
{
    *comm = NULL;
    if (!(wanted->size >= sizeof(int) * 5 && wanted->magic == 0xcafebeefu && wanted->version >= 21400 &&
          wanted->blocking == 0 && size <= MOST_RANKS))
        return INVALID_ARGUMENT;
    if (is_told("init", rank, 0)) return SYSTEM_ERROR;
    const int file = open(id.bytes, O_RDWR);
    void *memory =
        file >= 0 ? mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    if (file >= 0) close(file);
    struct ncclComm *made = calloc(1, sizeof(*made));
    if (memory == MAP_FAILED || made == NULL) return SYSTEM_ERROR;
    made->shared = memory;
    made->rank = rank;
    made->size = size;
    memcpy(made->path, id.bytes, sizeof(made->path));
    atomic_fetch_add(&made->shared->joined, 1);
    *comm = made;
    return IN_PROGRESS;
}

/* The first query after a call has returned says that the call is still in progress. */
SHOWN int ncclCommGetAsyncError(struct ncclComm *comm, int *error)
{
    const bool are_all = atomic_load(&comm->shared->joined) == comm->size;
    *error = !are_all || !comm->was_asked ? IN_PROGRESS : SUCCESS;
    comm->was_asked = are_all;
    if (is_told("late", comm->rank, comm->transfers)) *error = SYSTEM_ERROR;
    if (are_all && comm->rank == 0 && comm->path[0] != '\0') {
        unlink(comm->path);
        comm->path[0] = '\0';
    }
    return SUCCESS;
}

SHOWN int ncclCommAbort(struct ncclComm *comm)
{
    atomic_store(&comm->is_aborted, true);
    if (comm->path[0] != '\0') unlink(comm->path);
    return SUCCESS; /* batches that the stream has not reached yet still read it */
}

SHOWN int ncclCommFinalize(struct ncclComm *comm)
{
    comm->was_asked = false;
    return comm->under_way == 0 ? IN_PROGRESS : INVALID_ARGUMENT;
}

SHOWN int ncclCommDestroy(struct ncclComm *comm)
{
    munmap(comm->shared, sizeof(*comm->shared));
    free(comm);
    return SUCCESS;
}

/* --- exchanges --- */

static void step(struct ncclComm *comm, struct operation *operation)
{
    struct box *box = operation->is_send ? &comm->shared->boxes[comm->rank][operation->peer]
                                         : &comm->shared->boxes[operation->peer][comm->rank];
    if (atomic_load(&box->is_full) == operation->is_send) return;
    if (operation->is_send) {
        const size_t left = operation->bytes - operation->done;
        box->bytes = left < BOX_BYTES ? (int)left : BOX_BYTES;
        memcpy(box->data, operation->own + operation->done, (size_t)box->bytes);
    } else {
        memcpy(operation->own + operation->done, box->data, (size_t)box->bytes);
    }
    operation->done += (size_t)box->bytes;
    atomic_store(&box->is_full, operation->is_send);
}

static void *exchange(void *user)
{
    struct batch *batch = user;
    struct timespec begin, now;
    int left = batch->count;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    while (left > 0 && !atomic_load(&batch->comm->is_aborted)) {
        left = 0;
        for (int k = 0; k < batch->count; k++) {
            if (batch->operations[k].done < batch->operations[k].bytes) {
                step(batch->comm, &batch->operations[k]);
                left++;
            }
        }
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec - begin.tv_sec > PATIENCE_S) {
            fprintf(stderr, "stand-in of NCCL: a rank does not come\n");
            abort();
        }
        (void)sched_yield();
    }
    return NULL;
}

/* Called when the stream reaches the end of the exchange: copies the received bytes to the device's memory. */
static void arrive(void *user)
{
    struct batch *batch = user;
    pthread_join(batch->thread, NULL);
    for (int k = 0; k < batch->count; k++) {
        struct operation *operation = &batch->operations[k];
        if (!operation->is_send && operation->done == operation->bytes)
            memcpy(operation->memory, operation->own, operation->bytes);
        free(operation->own);
    }
    batch->comm->under_way--;
    free(batch);
}

/* Called when the stream reaches the exchange: copies the bytes to send, and starts the thread. */
static void leave(void *user)
{
    struct batch *batch = user;
    for (int k = 0; k < batch->count; k++) {
        struct operation *operation = &batch->operations[k];
        operation->own = malloc(operation->bytes);
        if (operation->is_send) memcpy(operation->own, operation->memory, operation->bytes);
    }
    pthread_create(&batch->thread, NULL, exchange, batch);
}

SHOWN int ncclGroupStart(void)
{
    open_batch = calloc(1, sizeof(*open_batch));
    return open_batch != NULL ? SUCCESS : SYSTEM_ERROR;
}

static int add(struct ncclComm *comm, const struct operation *operation, void *stream)
{
    if (open_batch->count == MOST_OPERATIONS || operation->bytes == 0) return INVALID_ARGUMENT;
    open_batch->comm = comm;
    open_batch->stream = stream;
    open_batch->operations[open_batch->count++] = *operation;
    return SUCCESS;
}

SHOWN int ncclSend(const void *bytes, size_t count, int type, int peer, struct ncclComm *comm, void *stream)
{
    return type == 0 ? add(comm,
                           &(struct operation){
                               .is_send = true, .peer = peer, .memory = (char *)(size_t)bytes, .bytes = count},
                           stream)
                     : INVALID_ARGUMENT;
}

#ifndef LR_TEST_WITHOUT_RECEIVE
SHOWN int ncclRecv(void *bytes, size_t count, int type, int peer, struct ncclComm *comm, void *stream)
{
    return type == 0 ? add(comm, &(struct operation){.peer = peer, .memory = bytes, .bytes = count}, stream)
                     : INVALID_ARGUMENT;
}
#endif

typedef int (*call_fn)(void (*call)(void *user), void *user, void *stream);
typedef int (*wait_fn)(void *stream);

/* Finds a function of the stand-in for CUDA, in the program or in the plugin that contains it. */
static void *find(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    void *plugin = found == NULL ? dlopen("lr_cuda.so", RTLD_LAZY | RTLD_NOLOAD) : NULL;
    found = plugin != NULL ? dlsym(plugin, name) : found;
    if (found == NULL) {
        fprintf(stderr, "stand-in of NCCL: nobody has %s\n", name);
        abort();
    }
    return found;
}

/* The device is lost as soon as it has accepted the exchange: nothing is sent, and a later call of CUDA fails. */
static int lose(struct batch *batch)
{
    void *found = find("fake_fail_in");
    void (*fail_in)(int calls);
    memcpy(&fail_in, &found, sizeof(fail_in));
    fail_in(3);
    free(batch);
    return IN_PROGRESS;
}

SHOWN int ncclGroupEnd(void)
{
    call_fn call;
    wait_fn wait;
    struct batch *batch = open_batch;
    struct ncclComm *comm = batch->comm;
    void *found = find("fake_call"), *waits = find("cudaStreamSynchronize");
    memcpy(&call, &found, sizeof(call));
    memcpy(&wait, &waits, sizeof(wait));
    open_batch = NULL;
    if (is_told("transfer", comm->rank, ++comm->transfers)) {
        free(batch);
        return SYSTEM_ERROR;
    }
    comm->under_way++;
    comm->was_asked = false;
    if (is_told("lose", comm->rank, comm->transfers)) return lose(batch);
    /* A device would start by itself when the stream gets here; the stand-in waits for all earlier work instead. */
    if (wait(batch->stream) != 0) return SYSTEM_ERROR;
    leave(batch);
    return call(arrive, batch, batch->stream) == 0 ? IN_PROGRESS : SYSTEM_ERROR;
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Exchanges between processes by NCCL. Numbers are sent unchanged, and the receiver adds them up. Sums therefore do not
 * depend on the library, its version, or how devices are connected. The communicator does not block: if one rank does
 * not join, the others can continue without it. */
#define _GNU_SOURCE /* secure_getenv */
#include "cuda_interop/vector_passes.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "cuda_interop/device.h"
#include "cuda_interop/lend.h"
#include "device/kinds.h"
#include "device/place.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the part of NCCL, NVIDIA's library for exchanges among devices, that this file uses --- */

/* The declarations follow NCCL's public interface. NCCL is loaded only when a link is requested, so LORaster builds and
 * starts without it. https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api.html */

typedef struct ncclComm *lr_nccl_comm;

enum lr_nccl_result { LR_NCCL_SUCCESS = 0, LR_NCCL_IN_PROGRESS = 7 };

enum { LR_NCCL_ID_BYTES = 128, LR_NCCL_CHAR = 0 };
typedef struct lr_nccl_id {
    char bytes[LR_NCCL_ID_BYTES];
} lr_nccl_id;

/* ncclConfig_t of NCCL 2.14. Later versions of NCCL read the first `size` bytes. Some of them copy a longer structure;
 * its additional bytes are the zeros in `later`. */
enum { LR_NCCL_VERSION = 21400, LR_NCCL_CONFIG_BYTES = 24 };
typedef struct lr_nccl_config {
    size_t size;
    unsigned magic, version;
    int blocking;
    int padding;
    char later[488];
} lr_nccl_config;
#define LR_NCCL_MAGIC 0xcafebeefu

struct lr_nccl {
    int version; /* for example, 22105 for version 2.21.5 */
    int (*get_version)(int *version);
    int (*get_id)(lr_nccl_id *id);
    int (*init)(lr_nccl_comm *comm, int size, lr_nccl_id id, int rank, lr_nccl_config *config);
    int (*get_error)(lr_nccl_comm comm, int *result);
    int (*finalize)(lr_nccl_comm comm);
    int (*destroy)(lr_nccl_comm comm);
    int (*abort)(lr_nccl_comm comm);
    int (*group_start)(void);
    int (*group_end)(void);
    int (*send)(const void *bytes, size_t count, int type, int peer, lr_nccl_comm comm, cudaStream_t stream);
    int (*receive)(void *bytes, size_t count, int type, int peer, lr_nccl_comm comm, cudaStream_t stream);
    const char *(*describe)(int result);
};

static const char usual_name[] = "libnccl.so.2";

struct wanted {
    const char *name;
    size_t offset; /* offset of the function's pointer in struct lr_nccl */
};

#define WANTED(member, name)                                                                                           \
    {                                                                                                                  \
        name, offsetof(struct lr_nccl, member)                                                                         \
    }
static const struct wanted wanted[] = {
    WANTED(get_version, "ncclGetVersion"),
    WANTED(get_id, "ncclGetUniqueId"),
    WANTED(init, "ncclCommInitRankConfig"),
    WANTED(get_error, "ncclCommGetAsyncError"),
    WANTED(finalize, "ncclCommFinalize"),
    WANTED(destroy, "ncclCommDestroy"),
    WANTED(abort, "ncclCommAbort"),
    WANTED(group_start, "ncclGroupStart"),
    WANTED(group_end, "ncclGroupEnd"),
    WANTED(send, "ncclSend"),
    WANTED(receive, "ncclRecv"),
    WANTED(describe, "ncclGetErrorString"),
};

/* Loads NCCL and keeps it loaded. The file is the one that the environment variable LORASTER_NCCL names, or
 * libnccl.so.2 from the loader's paths if the variable is not set. errors: LR_NO_DEVICE, logged, if there is no
 * library, if a function is missing, or if the version is below 2.14. */
static lr_status load_nccl(struct lr_nccl *nccl, const lr_log *log)
{
    const char *named = secure_getenv("LORASTER_NCCL");
    const char *name = named != NULL && named[0] != '\0' ? named : usual_name;
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == NULL) {
        const char *why = dlerror();
        return lr_error(log, LR_NO_DEVICE,
                        "no NCCL (%s): install NVIDIA's libnccl2, or set LORASTER_NCCL to the path of a libnccl.so.2",
                        why != NULL ? why : name);
    }
    /* POSIX guarantees that a function's address fits into a pointer to an object. */
    for (size_t k = 0; k < sizeof(wanted) / sizeof(wanted[0]); k++) {
        void *found = dlsym(library, wanted[k].name);
        if (found == NULL) {
            return lr_error(log, LR_NO_DEVICE,
                            "%s has no %s: install NCCL 2.14 or later, or set LORASTER_NCCL to the path of one", name,
                            wanted[k].name);
        }
        memcpy((char *)nccl + wanted[k].offset, &found, sizeof(found));
    }

    const int result = nccl->get_version(&nccl->version);
    if (result != LR_NCCL_SUCCESS || nccl->version < LR_NCCL_VERSION) {
        return lr_error(log, LR_NO_DEVICE,
                        "%s is NCCL of the version %d, and 21400 (2.14) is the first that serves: "
                        "install a later one, or set LORASTER_NCCL to its path",
                        name, result == LR_NCCL_SUCCESS ? nccl->version : 0);
    }
    return LR_OK;
}

/* --- exchanges --- */

/* The time limit of a call of NCCL. A call is usually short. It takes long only if another rank is lost. */
static const double patience_s = 60.0;

/* The largest number of exchanges whose times have not been read yet. */
enum { MOST_LAPS = 16 };

struct lr_link {
    struct lr_nccl nccl;
    lr_nccl_comm comm; /* NULL = the link has been given up */
    int device;
    const lr_log *log;
    struct lr_cuda_watch watch;
};

/* --- the library and the device --- */

static lr_status find(lr_place *place, struct lr_link_facts *facts, const lr_log *log)
{
    struct lr_nccl nccl;
    *facts = (struct lr_link_facts){.library = ""};
    LR_TRY(lr_cuda_check((int)cudaDeviceGetPCIBusId(facts->device, (int)sizeof(facts->device), place->cuda_device),
                         "the name of a CUDA device", log));
    LR_TRY(load_nccl(&nccl, log));
    snprintf(facts->library, sizeof(facts->library), "NCCL %d.%d.%d", nccl.version / 10000, nccl.version / 100 % 100,
             nccl.version % 100);
    return LR_OK;
}

static lr_status make_key(char key[LR_LINK_KEY_BYTES], const lr_log *log)
{
    struct lr_nccl nccl;
    lr_nccl_id id;
    LR_TRY(load_nccl(&nccl, log));
    const int result = nccl.get_id(&id);
    if (result != LR_NCCL_SUCCESS) return lr_error(log, LR_FAILED, "NCCL cannot begin: %s", nccl.describe(result));
    memcpy(key, id.bytes, sizeof(id.bytes));
    return LR_OK;
}

/* --- results of NCCL's calls --- */

static lr_status report(const struct lr_link *link, int result, const char *what)
{
    return lr_error(link->log, LR_FAILED, "%s: NCCL says %s: set NCCL_DEBUG=WARN to see why, or exchange by the host",
                    what, link->nccl.describe(result));
}

static bool is_well(int result)
{
    return result == LR_NCCL_SUCCESS || result == LR_NCCL_IN_PROGRESS;
}

/* Asks for the state of the library's last call. *is_done: true if the call is complete. */
static lr_status ask(const struct lr_link *link, const char *what, bool *is_done)
{
    int state = LR_NCCL_SUCCESS;
    const int result = link->nccl.get_error(link->comm, &state);
    *is_done = state != LR_NCCL_IN_PROGRESS;
    if (result != LR_NCCL_SUCCESS) return report(link, result, what);
    return is_well(state) ? LR_OK : report(link, state, what);
}

/* Waits until a call of NCCL is complete. result: the value that the call returned. */
static lr_status settle(const struct lr_link *link, int result, const char *what)
{
    const double begin = lr_clock_seconds();
    bool is_done = result != LR_NCCL_IN_PROGRESS;
    if (!is_well(result)) return report(link, result, what);
    while (!is_done) {
        LR_TRY(ask(link, what, &is_done));
        if (!is_done && lr_clock_seconds() - begin > patience_s) {
            return lr_error(link->log, LR_FAILED, "%s: NCCL has been at it for %.0f s: has another rank been lost?",
                            what, patience_s);
        }
        (void)sched_yield();
    }
    return LR_OK;
}

/* --- creation --- */

static void close_link(struct lr_link *link, bool is_whole)
{
    int before;
    if (link == NULL) return;
    if (lr_cuda_enter(link->device, &before, link->log) == LR_OK) {
        if (link->comm != NULL && is_whole &&
            settle(link, link->nccl.finalize(link->comm), "the end of exchanges") == LR_OK)
            (void)link->nccl.destroy(link->comm);
        else if (link->comm != NULL)
            (void)link->nccl.abort(link->comm);
        lr_cuda_watch_finish(&link->watch);
        (void)lr_cuda_leave(link->device, before, LR_OK);
    }
    free(link);
}

static lr_status begin(lr_place *place, const struct lr_link_params *params, struct lr_link **link)
{
    const lr_log *log = params->log;
    lr_nccl_config config = {
        .size = LR_NCCL_CONFIG_BYTES, .magic = LR_NCCL_MAGIC, .version = LR_NCCL_VERSION, .blocking = 0};
    lr_nccl_id id;
    int before;
    *link = NULL;
    struct lr_link *made = lr_alloc(1, sizeof(*made), "a link of ranks", log);
    if (made == NULL) return LR_FAILED;
    made->device = place->cuda_device;
    made->log = log;
    made->watch = (struct lr_cuda_watch){.what = "a clock of exchanges", .log = log, .most_laps = MOST_LAPS};
    lr_status status = load_nccl(&made->nccl, log);
    if (status == LR_OK) status = lr_cuda_enter(made->device, &before, log);
    if (status == LR_OK) {
        memcpy(id.bytes, params->key, sizeof(id.bytes));
        const int result = made->nccl.init(&made->comm, params->size, id, params->rank, &config);
        if (!is_well(result) || made->comm == NULL) status = report(made, result, "ranks cannot be linked");
        status = lr_cuda_leave(made->device, before, status);
    }
    if (status != LR_OK) {
        close_link(made, false);
        return status;
    }
    *link = made;
    return LR_OK;
}

static lr_status look(struct lr_link *link, bool *is_ready)
{
    return ask(link, "ranks cannot be linked", is_ready);
}

/* --- exchanges --- */

static double seconds(struct lr_link *link)
{
    (void)lr_cuda_watch_read(&link->watch, false);
    return link->watch.all_s;
}

static lr_status transfer(struct lr_link *link, lr_place *place, const struct lr_messages *messages)
{
    static const char what[] = "an exchange among devices";
    const struct lr_nccl *nccl = &link->nccl;
    const cudaStream_t stream = place->cuda_stream;
    int before;
    if (messages->num_sent + messages->num_received == 0) return LR_OK;
    LR_TRY(lr_cuda_enter(link->device, &before, link->log));
    lr_status status = lr_cuda_watch_mark(&link->watch, 0, stream);
    if (status == LR_OK) {
        /* Messages of a group begin at the same time. */
        int result = nccl->group_start();
        for (int k = 0; is_well(result) && k < messages->num_sent; k++) {
            const struct lr_message *sent = &messages->sent[k];
            result = nccl->send(sent->bytes, (size_t)sent->count, LR_NCCL_CHAR, sent->peer, link->comm, stream);
        }
        for (int k = 0; is_well(result) && k < messages->num_received; k++) {
            const struct lr_message *got = &messages->received[k];
            result = nccl->receive(got->bytes, (size_t)got->count, LR_NCCL_CHAR, got->peer, link->comm, stream);
        }
        const int ended = nccl->group_end();
        status = settle(link, is_well(result) ? ended : result, what);
    }
    if (status == LR_OK) status = lr_cuda_watch_mark(&link->watch, 1, stream);
    return lr_cuda_leave(link->device, before, status);
}

/* --- functions for exchanges through the host and through OpenGL --- */

static bool draws(const lr_place *place, const lr_place *gl)
{
    const int device = place->cuda_device;
    int before;
    bool is_so = false;
    if (gl_context_make_current(gl->ctx) != LR_OK) return false;
    if (lr_cuda_enter(device, &before, &place->log) == LR_OK) {
        is_so = lr_cuda_renders(device);
        (void)lr_cuda_leave(device, before, LR_OK);
    }
    gl_context_release(gl->ctx);
    return is_so;
}

static lr_status wait(lr_place *place)
{
    const int device = place->cuda_device;
    int before;
    LR_TRY(lr_cuda_enter(device, &before, &place->log));
    return lr_cuda_leave(
        device, before, lr_cuda_check((int)cudaStreamSynchronize(place->cuda_stream), "work on a vector", &place->log));
}

static bool pin(lr_place *place, void *memory, int64_t bytes)
{
    const int device = place->cuda_device;
    int before;
    if (bytes == 0 || lr_cuda_enter(device, &before, &place->log) != LR_OK) return false;
    const bool is_pinned = cudaHostRegister(memory, (size_t)bytes, cudaHostRegisterDefault) == cudaSuccess;
    if (!is_pinned) (void)cudaGetLastError();
    (void)lr_cuda_leave(device, before, LR_OK);
    return is_pinned;
}

static void unpin(lr_place *place, void *memory)
{
    const int device = place->cuda_device;
    int before;
    if (lr_cuda_enter(device, &before, &place->log) == LR_OK) {
        (void)cudaHostUnregister(memory);
        (void)lr_cuda_leave(device, before, LR_OK);
    }
}

const struct lr_link_fns lr_cuda_link_fns = {
    .find = find,
    .make_key = make_key,
    .begin = begin,
    .look = look,
    .transfer = transfer,
    .seconds = seconds,
    .close = close_link,
    .draws = draws,
    .wait = wait,
    .pin = pin,
    .unpin = unpin,
};

/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#define _GNU_SOURCE /* secure_getenv */
#include "cuda_interop/nccl.h"

#include "base/log.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static const char usual_name[] = "libnccl.so.2";

static lr_status open_library(void **library, const char **name, const lr_log *log)
{
    const char *named = secure_getenv("LORASTER_NCCL");
    *name = named != NULL && named[0] != '\0' ? named : usual_name;
    *library = dlopen(*name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (*library != NULL) return LR_OK;
    const char *why = dlerror();
    return lr_error(log, LR_NO_DEVICE,
                    "no NCCL (%s): install NVIDIA's libnccl2, or set LORASTER_NCCL to the path of "
                    "a libnccl.so.2",
                    why != NULL ? why : *name);
}

struct wanted {
    const char *name;
    size_t offset; /* of its pointer */
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

/* POSIX has the address of a function fit into a pointer to an object. */
static lr_status find_functions(struct lr_nccl *nccl, void *library, const char *name, const lr_log *log)
{
    for (size_t k = 0; k < sizeof(wanted) / sizeof(wanted[0]); k++) {
        void *found = dlsym(library, wanted[k].name);
        if (found == NULL) {
            return lr_error(log, LR_NO_DEVICE,
                            "%s has no %s: install NCCL 2.14 or later, or set LORASTER_NCCL to the "
                            "path of one",
                            name, wanted[k].name);
        }
        memcpy((char *)nccl + wanted[k].offset, &found, sizeof(found));
    }
    return LR_OK;
}

lr_status lr_nccl_load(struct lr_nccl *nccl, const lr_log *log)
{
    void *library;
    const char *name;
    LR_TRY(open_library(&library, &name, log));
    LR_TRY(find_functions(nccl, library, name, log));
    const int result = nccl->get_version(&nccl->version);
    if (result != LR_NCCL_SUCCESS || nccl->version < LR_NCCL_VERSION) {
        return lr_error(log, LR_NO_DEVICE,
                        "%s is NCCL of the version %d, and 21400 (2.14) is the first that serves: "
                        "install a later one, or set LORASTER_NCCL to its path",
                        name, result == LR_NCCL_SUCCESS ? nccl->version : 0);
    }
    return LR_OK;
}

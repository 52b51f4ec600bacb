/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * NCCL, NVIDIA's library for exchanges among devices, as far as it is used here: declared by its public
 * interface and loaded when asked for, so that nothing needs it to be built or started.
 * https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api.html */
#ifndef LR_CUDA_NCCL_H
#define LR_CUDA_NCCL_H

#include <lr/log.h>

#include <cuda_runtime_api.h>
#include <stddef.h>

typedef struct ncclComm *lr_nccl_comm;

enum lr_nccl_result { LR_NCCL_SUCCESS = 0, LR_NCCL_IN_PROGRESS = 7 };

enum { LR_NCCL_ID_BYTES = 128, LR_NCCL_CHAR = 0 };
typedef struct lr_nccl_id {
    char bytes[LR_NCCL_ID_BYTES];
} lr_nccl_id;

/* ncclConfig_t as of version 2.14, which later ones read up to `size` and no further; those that copy all
 * that they know of find zeros behind it. */
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
    int version; /* 22105 for 2.21.5 */
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

/* From the file that LORASTER_NCCL names, else libnccl.so.2 where the loader looks for libraries; for good.
 * errors: LR_NO_DEVICE, logged, for no library, one that lacks a function, or one before 2.14. */
lr_status lr_nccl_load(struct lr_nccl *nccl, const lr_log *log);

#endif

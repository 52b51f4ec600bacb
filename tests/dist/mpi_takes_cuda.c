/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Loaded before Open MPI's library; it says that MPI takes memory of CUDA, which is true here because the stand-in
 * device uses the host's memory. */

__attribute__((visibility("default"))) int MPIX_Query_cuda_support(void);

int MPIX_Query_cuda_support(void)
{
    return 1;
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What CUDA kernels take of the device, beside table II of paper 1. */
#include "direct.h"

#include <stdio.h>
#include <string.h>

/* Paper 1, table II, on a GeForce GTX 285. Registers: forward, back. */
static const struct {
    const char *name;
    int constant_bytes, local_bytes, shared_bytes, threads, registers[2], occupancy_percent;
} table2[2] = {
    {"paper 1, threads (GTX 285)", 36, 0, 64, 512, {14, 13}, 100},
    {"paper 1, instructions (GTX 285)", 36, 0, 64, 384, {42, 42}, 38},
};

static const char *const directions[2] = {"forward", "back"};

lr_status direct_measure_attributes(lr_operator *op, const float *image, struct direct_outcome *outcome)
{
    static const int first_view = 0;
    const lr_operator_info *info = lr_operator_get_info(op);
    const lr_vector x = lr_vector_of_floats(image, info->num_voxels);
    if (strcmp(info->backend, "cuda") != 0) return LR_OK;
    for (int back = 0; back < 2; back++) {
        const lr_direct_task task = {back ? LR_DIRECT_WORK_BACK : LR_DIRECT_WORK_FORWARD, &first_view, 1, &x};
        lr_direct_timing timing;
        CLI_TRY(lr_direct_time(op, &task, &timing));
        CLI_TRY(lr_direct_device_attributes(op, &outcome->attributes[back]));
    }
    outcome->has_attributes = true;
    return LR_OK;
}

static void print_row(const struct direct_outcome *outcome, int back)
{
    const lr_direct_attributes *found = &outcome->attributes[back];
    printf("| %s, %s | %lld | %lld | %lld | %d | %d | %.0f |\n", outcome->variant->name, directions[back],
           (long long)found->constant_bytes, (long long)found->local_bytes, (long long)found->shared_bytes,
           found->threads, found->registers, 100.0 * found->occupancy);
}

void direct_print_attributes(const struct direct_bench *bench)
{
    printf("\nTable II of paper 1: what kernels take, by the driver's own query; registers of the "
           "paper are those of forward and back.\n\n"
           "| | constant memory, bytes | local memory of a thread, bytes | shared memory of a "
           "block, bytes | threads of a block | registers of a thread | occupancy, %% |\n"
           "|---|---|---|---|---|---|---|\n");
    for (int k = 0; k < 2; k++) {
        printf("| %s | %d | %d | %d | %d | %d, %d | %d |\n", table2[k].name, table2[k].constant_bytes,
               table2[k].local_bytes, table2[k].shared_bytes, table2[k].threads, table2[k].registers[0],
               table2[k].registers[1], table2[k].occupancy_percent);
    }
    for (int k = 0; k < bench->num_outcomes; k++) {
        const struct direct_outcome *outcome = &bench->outcomes[k];
        const bool is_case = strcmp(outcome->what->workload, "large") == 0;
        for (int back = 0; is_case && outcome->has_attributes && back < 2; back++) print_row(outcome, back);
    }
}

void direct_json_attributes(const struct direct_outcome *outcome, struct json *json)
{
    for (int back = 0; outcome->has_attributes && back < 2; back++) {
        const lr_direct_attributes *found = &outcome->attributes[back];
        json_open(json, back ? "back_attributes" : "forward_attributes", '{');
        json_int(json, "registers", found->registers);
        json_int(json, "threads", found->threads);
        json_int(json, "constant_bytes", found->constant_bytes);
        json_int(json, "local_bytes", found->local_bytes);
        json_int(json, "shared_bytes", found->shared_bytes);
        json_int(json, "blocks", found->blocks);
        json_number(json, "occupancy", found->occupancy);
        json_close(json, '}');
    }
}

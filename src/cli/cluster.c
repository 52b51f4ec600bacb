/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { MOST_DEVICES = 64 };

const char *const cluster_exchanges[] = {[LR_EXCHANGE_AUTO] = "auto",
                                         [LR_EXCHANGE_NCCL] = "nccl",
                                         [LR_EXCHANGE_MPI] = "mpi",
                                         [LR_EXCHANGE_HOST] = "host",
                                         NULL};

/* Prints this rank's error immediately. All ranks are about to be ended, and no other rank can print this error. */
static void print_error_now(void *user)
{
    struct report *report = user;
    report_speak(report, report->ranks.rank, LR_FAILED);
}

lr_status cluster_open(struct cluster *cluster, struct report *report, lr_exchange exchange)
{
    *cluster = (struct cluster){.size = lr_comm_started(&cluster->rank)};
    if (cluster->size == 1) return LR_OK;
    cluster->comm = lr_comm_open(&(lr_comm_params){
        .kind = LR_COMM_MPI, .exchange = exchange, .log = &report->log, .stranded = print_error_now, .user = report});
    if (cluster->comm == NULL) return report_reason(report);
    const lr_comm_info info = lr_comm_get_info(cluster->comm);
    struct report_ranks *ranks = &report->ranks;
    ranks->rank = cluster->rank = info.rank;
    ranks->size = cluster->size = info.size;
    snprintf(ranks->name, sizeof(ranks->name), "rank %d of %d on %.60s: ", info.rank, info.size, info.machine);
    report_info(report, "%d ranks by %s, %d of them on %s", info.size, info.way, info.local_size, info.machine);
    return info.failed_status;
}

lr_status cluster_close(struct cluster *cluster, struct report *report, lr_status status)
{
    if (cluster->comm == NULL) return status;
    status = status != LR_OK ? lr_comm_fail(cluster->comm, status) : lr_comm_barrier(cluster->comm);
    const lr_comm_info info = lr_comm_get_info(cluster->comm);
    if (info.failed_status != LR_OK) {
        status = info.failed_status;
        report_speak(report, info.failed_rank, status);
    }
    free(cluster->peaks);
    cluster->peaks = NULL;
    lr_comm_close(cluster->comm);
    cluster->comm = NULL;
    return status;
}

void cluster_choose(const struct cluster *cluster, const struct cli_args *args, lr_operator_params *params)
{
    int numbers[MOST_DEVICES];
    if (cluster->comm == NULL) return;
    if (!args_has(args, "--threads")) {
        params->threads = lr_comm_threads(cluster->comm);
        /* mpirun binds each rank to one core if there are only a few ranks. */
        const int local = lr_comm_get_info(cluster->comm).local_size;
        const long all = sysconf(_SC_NPROCESSORS_ONLN);
        if (params->threads < all / local) {
            report_info(args->report,
                        "each rank may use %d of the %ld processors that %d rank%s share here: "
                        "mpirun --bind-to none leaves them all",
                        params->threads, all, local, local == 1 ? "" : "s");
        }
    }
    const lr_comm_info info = lr_comm_get_info(cluster->comm);
    const char *backend = args_text(args, "--backend");
    const bool is_host = backend != NULL && (strcasecmp(backend, "cpu") == 0 || strcasecmp(backend, "native") == 0);
    if (!args_has(args, "--device") && info.local_size > 1 && !is_host) {
        /* Each rank takes a different graphics processor if there are enough. The list names a processor once for each
         * interface to it, so only EGL's devices are counted. */
        static lr_device devices[MOST_DEVICES];
        int count = 0, usable = 0, listed = lr_device_list(devices, MOST_DEVICES, NULL);
        listed = listed < MOST_DEVICES ? listed : MOST_DEVICES;
        for (int k = 0; k < listed; k++) {
            const bool is_enumerated = strncmp(devices[k].way, "egl device", 10) == 0;
            if (devices[k].usable && !devices[k].software && is_enumerated) numbers[count++] = usable;
            usable += devices[k].usable;
        }

        params->device = count > 0 ? numbers[info.local_rank % count] : 0;
    }
}

lr_status cluster_note_memory(struct cluster *cluster, struct report *report)
{
    if (cluster->comm == NULL) return LR_OK;
    free(cluster->peaks);
    cluster->peaks = calloc((size_t)cluster->size, sizeof(*cluster->peaks));
    if (cluster->peaks == NULL) return report_error(report, LR_FAILED, "no memory for numbers of the ranks");
    cluster->peaks[cluster->rank] = (double)common_peak_memory();
    CLI_TRY(lr_comm_sum_numbers(cluster->comm, cluster->peaks, cluster->size));
    double least = cluster->peaks[0], most = least;
    char texts[2][32];
    for (int r = 1; r < cluster->size; r++) {
        least = cluster->peaks[r] < least ? cluster->peaks[r] : least;
        most = cluster->peaks[r] > most ? cluster->peaks[r] : most;
    }
    report_info(report, "peak memory of a rank: %s to %s", common_bytes(texts[0], (int64_t)least),
                common_bytes(texts[1], (int64_t)most));
    return LR_OK;
}

void cluster_json(const struct cluster *cluster, struct json *json)
{
    if (cluster->comm == NULL) return;
    const lr_comm_info info = lr_comm_get_info(cluster->comm);
    json_open(json, "ranks", '{');
    json_int(json, "count", info.size);
    json_int(json, "on_this_machine", info.local_size);
    json_text(json, "by", info.way);
    json_bool(json, "cuda_aware", info.is_cuda_aware);
    json_text(json, "exchange", info.exchange[0] != '\0' ? info.exchange : NULL);
    json_text(json, "exchange_reason", info.exchange_reason[0] != '\0' ? info.exchange_reason : NULL);
    json_number(json, "sent_bytes", info.sent_bytes);
    json_number(json, "exchange_seconds", info.moving_s);
    json_number(json, "waiting_seconds", info.waiting_s);
    if (cluster->peaks != NULL) json_numbers(json, "peak_memory_bytes", cluster->peaks, cluster->size);
    json_close(json, '}');
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What a device has taken, in joules: of NVIDIA's cards by the driver's library (NVML), which is loaded at run
 * time, of processors by RAPL's counters in /sys. The driver's counter is of the whole card since it was
 * loaded and moves on every 20 to 100 ms, so that work is repeated for seconds between two readings. */
#ifndef LR_BENCH_ENERGY_H
#define LR_BENCH_ENERGY_H

#include <stdbool.h>

struct energy_meter;

struct energy_params {
    bool is_gpu;
    const char *device;  /* its name, of a card */
    int number;          /* of the card among those that there are, as --device has it */
    const char *library; /* NULL = libnvidia-ml.so.1 */
    const char *folder;  /* of the processors' counters; NULL = /sys/class/powercap */
};

/* NULL if it is not known: no such library or card, counters that may not be read, no memory. A meter belongs
 * to one thread at a time. */
struct energy_meter *energy_open(const struct energy_params *params);
void energy_close(struct energy_meter *meter);

/* Joules since the meter was opened. Processors' counters come round; readings are less than a minute apart.
 * false: it is no longer known. */
bool energy_read(struct energy_meter *meter, double *joules);

/* "NVML" or "RAPL". */
const char *energy_source(const struct energy_meter *meter);

#endif

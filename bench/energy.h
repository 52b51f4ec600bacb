/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Energy that a device consumes, in joules. The energy of NVIDIA's cards is read by the driver's library (NVML), which
 * is loaded at run time. The energy of processors is read from the RAPL counters in /sys. The driver's counter covers
 * the whole card since the driver was loaded. The counter is updated only every 20 to 100 ms, so the work must be
 * repeated for seconds between two readings. */
#ifndef LR_BENCH_ENERGY_H
#define LR_BENCH_ENERGY_H

#include <stdbool.h>

struct energy_meter;

struct energy_params {
    bool is_gpu;
    const char *device;  /* name of the card; NULL = not known */
    int number;          /* index of the card among all cards, as in --device */
    const char *library; /* path of the NVML library; NULL = libnvidia-ml.so.1 */
    const char *folder;  /* folder of the processors' counters; NULL = /sys/class/powercap */
};

/* Returns NULL if the energy cannot be measured: the library or card is missing, the counters are not readable, or
 * memory runs out. Only one thread at a time may use a meter. */
struct energy_meter *energy_open(const struct energy_params *params);
void energy_close(struct energy_meter *meter);

/* *joules: energy since the meter was opened. The counters of processors overflow, so readings must be less than a
 * minute apart. Returns false if the energy can no longer be determined. */
bool energy_read(struct energy_meter *meter, double *joules);

/* "NVML" or "RAPL". */
const char *energy_source(const struct energy_meter *meter);

#endif

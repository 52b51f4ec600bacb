/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "energy.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_COUNTERS = 16, MOST_CARDS = 64, NAME_BYTES = 96, PATH_BYTES = 512 };

/* A counter of one processor package, in microjoules. */
struct counter {
    char path[PATH_BYTES];
    double last_uj, range_uj; /* range_uj: the value at which the counter returns to 0 */
};

/* The functions of NVML that are used, as documented by NVIDIA. They return 0 for success. */
struct nvml {
    void *library;
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *count);
    int (*handle)(unsigned number, void **card);
    int (*name)(void *card, char *name, unsigned length);
    int (*energy)(void *card, unsigned long long *mj);
};

struct energy_meter {
    bool is_gpu;
    struct nvml nvml;
    void *card;
    double first_mj;
    struct counter counters[MOST_COUNTERS];
    int num_counters;
    double joules; /* energy of all processors so far */
};

/* --- cards --- */

/* Finds a function of the library. The address is copied byte by byte, because ISO C cannot cast the result of dlsym to
 * a pointer to a function. */
static bool find(void *library, const char *name, void *function)
{
    void *const found = dlsym(library, name);
    memcpy(function, &found, sizeof(found));
    return found != NULL;
}

static bool is_named(const struct nvml *nvml, unsigned number, const char *device, void **card)
{
    char name[NAME_BYTES] = "";
    return nvml->handle(number, card) == 0 && nvml->name(*card, name, sizeof(name)) == 0 && name[0] != '\0' &&
           strstr(device, name) != NULL;
}

static bool read_card(const struct energy_meter *meter, double *mj)
{
    unsigned long long counted = 0;
    const bool is_known = meter->nvml.energy(meter->card, &counted) == 0;
    *mj = (double)counted;
    return is_known;
}

static bool open_card(struct energy_meter *meter, const struct energy_params *params)
{
    const char *name = params->library != NULL ? params->library : "libnvidia-ml.so.1";
    meter->nvml.library = dlopen(name, RTLD_NOW | RTLD_LOCAL);

    if (!(meter->nvml.library != NULL && find(meter->nvml.library, "nvmlInit_v2", &meter->nvml.init) &&
          find(meter->nvml.library, "nvmlShutdown", &meter->nvml.shutdown) &&
          find(meter->nvml.library, "nvmlDeviceGetCount_v2", &meter->nvml.count) &&
          find(meter->nvml.library, "nvmlDeviceGetHandleByIndex_v2", &meter->nvml.handle) &&
          find(meter->nvml.library, "nvmlDeviceGetName", &meter->nvml.name) &&
          find(meter->nvml.library, "nvmlDeviceGetTotalEnergyConsumption", &meter->nvml.energy)) ||
        meter->nvml.init() != 0)
        return false;

    /* Chooses the card with the given number if it has the name, else the only card with the name. */
    unsigned count = 0, found = 0;
    void *card = NULL;
    const unsigned number = (unsigned)params->number;
    if (params->device == NULL || meter->nvml.count(&count) != 0) count = 0;
    if (number < count && is_named(&meter->nvml, number, params->device, &meter->card)) {
        found = 1;
    } else {
        for (unsigned k = 0; k < count && k < MOST_CARDS; k++) {
            if (is_named(&meter->nvml, k, params->device, &card)) {
                meter->card = card;
                found++;
            }
        }
    }
    if (found == 1 && read_card(meter, &meter->first_mj)) return true;
    meter->nvml.shutdown();
    return false;
}

/* --- processors --- */

static bool read_number(const char *path, double *number)
{
    FILE *file = fopen(path, "r");
    const bool is_read = file != NULL && fscanf(file, "%lf", number) == 1;
    if (file != NULL) fclose(file);
    return is_read;
}

static bool open_counters(struct energy_meter *meter, const struct energy_params *params)
{
    const char *folder = params->folder != NULL ? params->folder : "/sys/class/powercap";
    for (int k = 0; k < MOST_COUNTERS; k++) {
        struct counter *counter = &meter->counters[meter->num_counters];
        char range[PATH_BYTES];
        /* Only counters of packages are read, not the counter of the whole board. */
        char path[PATH_BYTES], name[NAME_BYTES] = "";
        snprintf(path, sizeof(path), "%s/intel-rapl:%d/name", folder, k);
        FILE *file = fopen(path, "r");
        const bool is_named = file != NULL && fgets(name, sizeof(name), file) != NULL;
        if (file != NULL) fclose(file);

        if (!(is_named && strncmp(name, "package", 7) == 0)) continue;
        snprintf(counter->path, sizeof(counter->path), "%s/intel-rapl:%d/energy_uj", folder, k);
        snprintf(range, sizeof(range), "%s/intel-rapl:%d/max_energy_range_uj", folder, k);
        if (!read_number(counter->path, &counter->last_uj) || !read_number(range, &counter->range_uj)) return false;
        meter->num_counters++;
    }
    return meter->num_counters > 0;
}

/* --- cards and processors --- */

struct energy_meter *energy_open(const struct energy_params *params)
{
    struct energy_meter *meter = calloc(1, sizeof(*meter));
    if (meter == NULL) return NULL;
    meter->is_gpu = params->is_gpu;
    if (params->is_gpu ? open_card(meter, params) : open_counters(meter, params)) return meter;
    if (meter->nvml.library != NULL) dlclose(meter->nvml.library);
    free(meter);
    return NULL;
}

void energy_close(struct energy_meter *meter)
{
    if (meter != NULL && meter->is_gpu) {
        meter->nvml.shutdown();
        dlclose(meter->nvml.library);
    }
    free(meter);
}

bool energy_read(struct energy_meter *meter, double *joules)
{
    if (meter->is_gpu) {
        double mj;
        if (!read_card(meter, &mj)) return false;
        *joules = 1e-3 * (mj - meter->first_mj);
        return true;
    }
    for (int k = 0; k < meter->num_counters; k++) {
        struct counter *counter = &meter->counters[k];
        double now_uj;
        if (!read_number(counter->path, &now_uj)) return false;
        const double more_uj = now_uj - counter->last_uj;
        meter->joules += 1e-6 * (more_uj < 0 ? more_uj + counter->range_uj : more_uj);
        counter->last_uj = now_uj;
    }
    *joules = meter->joules;
    return true;
}

const char *energy_source(const struct energy_meter *meter)
{
    return meter->is_gpu ? "NVML" : "RAPL";
}

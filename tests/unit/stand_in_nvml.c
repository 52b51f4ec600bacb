/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The functions of the driver's library that bench/energy.c calls. There are four cards; whenever a card is asked, its
 * energy has grown by a number of millijoules. LR_TEST_NVML_FAILS names a function that fails. */
#include <stdlib.h>
#include <string.h>

struct card {
    const char *name;
    unsigned long long mj, step_mj;
};

static struct card cards[] = {{"NVIDIA L4", 7, 1000},
                              {"NVIDIA H200", 1000000, 2500},
                              {"NVIDIA A100-SXM4-80GB", 0, 100},
                              {"NVIDIA A100-SXM4-80GB", 0, 300}};

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned number, void **card);
int nvmlDeviceGetName(void *card, char *name, unsigned length);
int nvmlDeviceGetTotalEnergyConsumption(void *card, unsigned long long *mj);

static int fails(const char *function)
{
    const char *const failing = getenv("LR_TEST_NVML_FAILS");
    return failing != NULL && strcmp(failing, function) == 0;
}

int nvmlInit_v2(void)
{
    return fails("nvmlInit_v2");
}

int nvmlShutdown(void)
{
    return 0;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = sizeof(cards) / sizeof(cards[0]);
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned number, void **card)
{
    *card = &cards[number];
    return 0;
}

int nvmlDeviceGetName(void *card, char *name, unsigned length)
{
    const char *own = ((struct card *)card)->name;
    if (strlen(own) >= length) return 1;
    strcpy(name, own);
    return 0;
}

int nvmlDeviceGetTotalEnergyConsumption(void *card, unsigned long long *mj)
{
    struct card *own = card;
    own->mj += own->step_mj;
    *mj = own->mj;
    return fails("nvmlDeviceGetTotalEnergyConsumption");
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "operator/facade.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "operator/settings.h"
#include "operator/stored.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct lr_backend_choice builtin_choices[] = {
    {"raster", false, lr_raster_backend_create},
    {"cpu", true, lr_cpu_backend_create},
    {"compute", true, lr_compute_backend_create},
    {"native", true, lr_native_backend_create},
};

struct choices {
    const struct lr_backend_choice *list;
    int count;
};

/* Appends ", NAME" for each backend that has the mode. */
static void list_names(const struct choices *choices, lr_mode mode, char *text, size_t size)
{
    text[0] = '\0';
    for (int k = 0; k < choices->count; k++) {
        if (mode == LR_MODE_EXACT && !choices->list[k].has_exact) {
            continue;
        }
        if (text[0] != '\0') {
            strncat(text, ", ", size - strlen(text) - 1);
        }
        strncat(text, choices->list[k].name, size - strlen(text) - 1);
    }
}

static lr_status create_named(struct lr_operator *op, const char *name,
                              const struct choices *choices)
{
    char names[128];
    for (int k = 0; k < choices->count; k++) {
        const struct lr_backend_choice *choice = &choices->list[k];
        if (strcmp(choice->name, name) != 0) {
            continue;
        }
        if (op->params.mode == LR_MODE_EXACT && !choice->has_exact) {
            list_names(choices, LR_MODE_EXACT, names, sizeof(names));
            return lr_error(op->params.log, LR_USAGE,
                            "backend %s has no exact mode: use backend %s, or mode sampled", name,
                            names);
        }
        return choice->create(&op->params, &op->backend);
    }
    list_names(choices, LR_MODE_SAMPLED, names, sizeof(names));
    return lr_error(op->params.log, LR_USAGE, "there is no backend \"%s\": use auto, %s", name,
                    names);
}

/* The first that has the mode and a device. What the others lacked is told once it is known
 * which one is taken instead. */
static lr_status create_auto(struct lr_operator *op, const struct choices *choices)
{
    const lr_log *log = op->params.log;
    char why[sizeof(op->relay.reason) + 64] = "";
    for (int k = 0; k < choices->count; k++) {
        const struct lr_backend_choice *choice = &choices->list[k];
        if (op->params.mode == LR_MODE_EXACT && !choice->has_exact) {
            snprintf(why, sizeof(why), "%s has no exact mode", choice->name);
            continue;
        }
        op->relay.holds_no_device = true;
        const lr_status status = choice->create(&op->params, &op->backend);
        op->relay.holds_no_device = false;
        if (status == LR_OK && why[0] != '\0') {
            lr_info(log, "using backend %s: %s", choice->name, why);
        }
        if (status != LR_NO_DEVICE) {
            return status;
        }
        snprintf(why, sizeof(why), "%s cannot run here (%s)", choice->name, op->relay.reason);
    }
    return lr_error(log, LR_NO_DEVICE, "no backend can do this: %s", why);
}

static lr_status create_backend(struct lr_operator *op, const char *name,
                                const struct choices *choices)
{
    if (name == NULL || strcmp(name, "auto") == 0) {
        return create_auto(op, choices);
    }
    return create_named(op, name, choices);
}

static lr_status store_matrix(struct lr_operator *op, lr_store store)
{
    struct lr_stored_size size = {0};
    if (store != LR_STORE_NO) {
        const struct lr_stored_wish wish = {store == LR_STORE_YES, &op->hush};
        LR_TRY(lr_stored_wrap(&op->backend, &op->params, &wish, &size));
    }
    op->info.stored = size.stored;
    op->info.num_elements = size.num_elements;
    op->info.memory_bytes = size.memory_bytes;
    return LR_OK;
}

static void fill_info(struct lr_operator *op)
{
    lr_operator_info *info = &op->info;
    info->backend = op->backend.fns->name;
    info->device = op->backend.device;
    info->num_voxels = lr_grid_num_voxels(&op->grid);
    info->num_lors = op->params.lors->count;
    info->rays = op->params.mode == LR_MODE_EXACT ? 0 : op->params.rays;
    for (int k = 0; k < 3; k++) {
        info->samples[k] = op->params.samples[k];
    }
    info->mu_steps = op->params.mu_steps;
    info->threads = op->params.threads;
    info->lors = op->params.lors;
}

static lr_status operator_init(struct lr_operator *op, const lr_operator_params *params,
                               const struct choices *choices)
{
    const double start = lr_clock_seconds();
    LR_TRY(lr_settings_complete(params, &op->relay.log, &op->grid, &op->params));
    op->params.progress = &op->hush.progress;
    LR_TRY(create_backend(op, params->backend, choices));
    LR_TRY(store_matrix(op, params->store));
    fill_info(op);
    op->info.build_seconds = lr_clock_seconds() - start;
    return LR_OK;
}

lr_operator *lr_operator_create_among(const lr_operator_params *params,
                                      const struct lr_backend_choice *choices, int num_choices)
{
    lr_operator *op = lr_alloc(1, sizeof(*op), "an operator", params->log);
    if (op == NULL) {
        return NULL;
    }
    lr_relay_init(&op->relay, params->log);
    lr_hush_init(&op->hush, params->progress);
    if (operator_init(op, params, &(struct choices){choices, num_choices}) != LR_OK) {
        lr_operator_destroy(op);
        return NULL;
    }
    return op;
}

lr_operator *lr_operator_create(const lr_operator_params *params)
{
    return lr_operator_create_among(params, builtin_choices,
                                    (int)(sizeof(builtin_choices) / sizeof(builtin_choices[0])));
}

void lr_operator_destroy(lr_operator *op)
{
    if (op == NULL) {
        return;
    }
    if (op->backend.fns != NULL) {
        op->backend.fns->destroy(op->backend.self);
    }
    lr_relay_finish(&op->relay);
    free(op->sensitivity);
    free(op);
}

const lr_operator_info *lr_operator_get_info(const lr_operator *op)
{
    return &op->info;
}

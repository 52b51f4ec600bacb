/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The choice of a backend of a family, and the list of devices. */
#include "base/names.h"
#include "operator/facade.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "operator/families.h"
#include "operator/stored.h"
#include "plugin/plugin.h"

#include <lr/device.h>
#include <lr/direct.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The mode and the physics that a backend must have. */
struct wish {
    lr_mode mode;
    bool penetration;
};

int lr_device_list(lr_device *devices, int capacity, const lr_log *log)
{
    lr_device none = {.way = "OpenGL"};
    struct lr_kept_error kept;
    lr_log_keep_error(&kept, none.reason, sizeof(none.reason));
    const struct lr_gl_plugin *gl = lr_plugin_gl(&kept.log);
    if (gl != NULL) return gl->list_devices(devices, capacity, log);
    if (capacity > 0) devices[0] = none;
    return 1;
}

static bool fits(const struct lr_backend_choice *choice, const struct wish *wish)
{
    return (wish->mode != LR_MODE_EXACT || choice->has_exact) && (!wish->penetration || choice->has_penetration);
}

/* Writes "NAME, NAME" of the backends that fit; "" if there are none. */
static void list_names(const struct lr_choices *choices, const struct wish *wish, char *text, size_t size)
{
    text[0] = '\0';
    for (int k = 0; k < choices->count; k++)
        if (fits(&choices->list[k], wish)) lr_names_add(text, size, choices->list[k].name);
}

/* Finds a backend by its name. NULL, logged: no backend has this name. */
static const struct lr_backend_choice *find_choice(const struct lr_choices *choices, const char *name,
                                                   const lr_log *log)
{
    char names[128];
    for (int k = 0; k < choices->count; k++)
        if (strcmp(choices->list[k].name, name) == 0) return &choices->list[k];
    list_names(choices, &(struct wish){0}, names, sizeof(names));
    lr_error(log, LR_USAGE, "there is no backend \"%s\": use auto, %s", name, names);
    return NULL;
}

static lr_status create_named(struct lr_operator *op, const char *name, const struct lr_choices *choices)
{
    struct wish wish = {op->params.mode, op->params.penetration};
    const struct lr_backend_choice *choice = find_choice(choices, name, op->params.log);
    if (choice == NULL) return LR_USAGE;
    if (wish.mode == LR_MODE_AUTO) wish.mode = choice->has_exact ? LR_MODE_EXACT : LR_MODE_SAMPLED;
    if (!fits(choice, &wish)) {
        /* Reports the property that the backend lacks, and the backends that have it. */
        char names[128];
        list_names(choices, &wish, names, sizeof(names));
        if (wish.penetration && !choice->has_penetration) {
            return lr_error(op->params.log, LR_USAGE,
                            "backend %s has no crystal penetration: use backend %s, or leave "
                            "penetration off (of layers: let each count as if it were alone)",
                            name, names);
        }
        return lr_error(op->params.log, LR_USAGE, "backend %s has no exact mode: use backend %s, or mode sampled", name,
                        names);
    }

    op->params.mode = wish.mode;
    return choice->create(&op->params, &op->backend);
}

enum { NAME_ROOM = 32 };

static void drop(struct lr_backend *backend)
{
    if (backend->fns != NULL) backend->fns->destroy(backend->self);
    *backend = (struct lr_backend){0};
}

static void note_passed_over(struct lr_operator *op, const char *name)
{
    const size_t used = strlen(op->passed_over);
    const char *reason = op->log_filter.reason[0] != '\0' ? op->log_filter.reason : "it does not say why";
    snprintf(op->passed_over + used, sizeof(op->passed_over) - used, "%s%s cannot run here: %s", used > 0 ? "; " : "",
             name, reason);
}

/* Backends that "auto" may take, tried one after the other. */
struct search {
    const struct lr_choices *choices;
    struct wish wish;
    bool is_refused; /* a backend with the required properties cannot run here */
    char why[1200];  /* reason why the last of the tried backends was not taken */
    /* A renderer in software, used if no other backend can be taken. */
    struct lr_backend emulated;
    const struct lr_backend_choice *emulated_choice;
};

/* Takes the backend. The log names it, and the reason why earlier backends were not taken. */
static lr_status take(struct lr_operator *op, struct search *search, const struct lr_backend_choice *choice,
                      const struct lr_backend *backend)
{
    op->backend = *backend;
    if (backend->is_gpu) op->passed_over[0] = '\0';
    if (op->passed_over[0] != '\0')
        lr_warn(op->params.log, "using backend %s and not the graphics processor: %s", choice->name, op->passed_over);
    else if (search->is_refused)
        lr_info(op->params.log, "using backend %s: %s", choice->name, search->why);
    return LR_OK;
}

/* Tries the references, or all other backends. LR_NO_DEVICE: no backend was taken, but search->emulated may hold a
 * renderer in software. */
static lr_status try_all(struct lr_operator *op, struct search *search, bool are_references)
{
    for (int k = 0; k < search->choices->count; k++) {
        const struct lr_backend_choice *choice = &search->choices->list[k];
        if (choice->is_reference != are_references) continue;
        if (!fits(choice, &search->wish)) {
            snprintf(search->why, sizeof(search->why), "%s has no %s", choice->name,
                     search->wish.penetration && !choice->has_penetration ? "crystal penetration" : "exact mode");
            continue;
        }

        struct lr_backend backend = {0};
        op->log_filter.holds_refusals = true;
        const lr_status status = choice->create(&op->params, &backend);
        op->log_filter.holds_refusals = false;
        if (status == LR_NO_DEVICE || status == LR_USAGE) {
            search->is_refused = true;
            snprintf(search->why, sizeof(search->why), "%s cannot run here (%s)", choice->name, op->log_filter.reason);
            if (backend.is_gpu && op->passed_over[0] == '\0') note_passed_over(op, choice->name);
            continue;
        }
        LR_TRY(status);
        if (!backend.is_emulated) return take(op, search, choice, &backend);
        if (search->emulated_choice == NULL) {
            search->emulated = backend;
            search->emulated_choice = choice;
        } else {
            drop(&backend);
        }
    }
    return LR_NO_DEVICE;
}

/* Tries all backends in one mode. */
static lr_status create_first_able(struct lr_operator *op, struct search *search)
{
    search->wish = (struct wish){op->params.mode, op->params.penetration};
    lr_status status = try_all(op, search, false);
    if (status == LR_NO_DEVICE && search->emulated_choice != NULL)
        return take(op, search, search->emulated_choice, &search->emulated);
    status = status == LR_NO_DEVICE ? try_all(op, search, true) : status;
    drop(&search->emulated);
    search->emulated_choice = NULL;
    return status;
}

lr_status lr_choose_backend(struct lr_operator *op, const char *name, const struct lr_choices *choices)
{
    const lr_mode mode = op->params.mode;
    if (name == NULL || strcmp(name, "auto") == 0) {
        struct search search = {.choices = choices};
        op->params.mode = mode == LR_MODE_AUTO ? LR_MODE_EXACT : mode;
        lr_status status = create_first_able(op, &search);
        if (status == LR_NO_DEVICE && mode == LR_MODE_AUTO) {
            op->params.mode = LR_MODE_SAMPLED;
            status = create_first_able(op, &search);
        }
        if (status == LR_NO_DEVICE) return lr_error(op->params.log, status, "no backend can do this: %s", search.why);
        return status;
    }
    if (strchr(name, ',') == NULL) return create_named(op, name, choices);

    /* The first backend of the list that can be created is taken. If none can, the errors of the last one are
     * logged. */
    lr_status status = LR_USAGE;
    char one[NAME_ROOM];
    for (const char *rest = name; rest != NULL && status != LR_OK && status != LR_CANCELLED;) {
        const size_t length = strcspn(rest, ",");
        size_t used = 0;
        for (size_t k = 0; k < length && used < NAME_ROOM - 1; k++)
            if (rest[k] != ' ') one[used++] = rest[k];
        one[used] = '\0';
        rest = rest[length] == ',' ? rest + length + 1 : NULL;

        if (find_choice(choices, one, op->params.log) == NULL) return LR_USAGE;
        op->params.mode = mode;
        op->log_filter.reason[0] = '\0';
        op->log_filter.holds_errors = rest != NULL;
        status = create_named(op, one, choices);
        /* A caller that names several backends draws pictures, so a backend must be able to draw them. */
        if (status == LR_OK && rest != NULL && op->backend.fns->prepare_picture != NULL) {
            status = op->backend.fns->prepare_picture(op->backend.self);
            if (status != LR_OK) drop(&op->backend);
        }
        op->log_filter.holds_errors = false;
        if (status != LR_OK && rest != NULL) note_passed_over(op, one);
    }
    return status;
}

bool lr_direct_on_hardware(int device, const lr_log *log)
{
    lr_device devices[16];
    int usable = 0;
    const lr_device *refused = NULL;
    const int count = lr_device_list(devices, 16, NULL);
    for (int k = 0; k < count && k < 16; k++) {
        if (devices[k].usable && usable++ == device && !devices[k].software) return true;
        /* Only entries whose name begins like this are hardware that EGL has found. */
        const bool is_refused_hardware =
            !devices[k].usable && !devices[k].software && strncmp(devices[k].way, "egl device ", 11) == 0;
        refused = refused == NULL && is_refused_hardware ? &devices[k] : refused;
    }
    if (refused != NULL) lr_info(log, "no graphics processor is used: %s: %s", refused->way, refused->reason);
    return false;
}

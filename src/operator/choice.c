/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The backends of all families, and the choice of a backend of one family. */
#include "base/clean_text.h"

#include "base/log.h"
#include "operator/facade.h"
#include "plugin/plugin.h"

#include <lr/device.h>
#include <stdio.h>
#include <string.h>

/* --- the table --- */

/* Constructors of backends that are in plugins. Each one loads its plugin. */
#define FROM_PLUGIN(name, plugin, member, params_struct)                                                               \
    static lr_status name(const struct params_struct *params, struct lr_backend *backend)                              \
    {                                                                                                                  \
        const struct lr_##plugin##_plugin *from = lr_plugin_##plugin(params->log);                                     \
        return from != NULL ? from->member(params, backend) : LR_NO_DEVICE;                                            \
    }
FROM_PLUGIN(create_compute, gl, compute, lr_backend_params)
FROM_PLUGIN(create_raster, gl, raster, lr_backend_params)
FROM_PLUGIN(create_direct_compute, gl, direct, lr_direct_backend_params)
FROM_PLUGIN(create_direct_cuda, cuda, direct, lr_direct_backend_params)
FROM_PLUGIN(create_listmode_compute, gl, listmode, lr_listmode_backend_params)
FROM_PLUGIN(create_listmode_cuda, cuda, listmode, lr_listmode_backend_params)

static lr_status arrange_by_cuda(struct lr_listmode_events *events, const struct lr_listmode_backend_params *params)
{
    const struct lr_cuda_plugin *cuda = lr_plugin_cuda(params->log);
    return cuda != NULL ? cuda->arrange(events, params) : LR_NO_DEVICE;
}

/* The backends of all families. "auto" tries those of one family in this order. */
static const struct lr_backend_choice backends[] = {
    {.name = "compute", .place = LR_PLACE_GL, .has_exact = true, .has_penetration = true, .create = create_compute},
    {.name = "native", .has_exact = true, .has_penetration = true, .create = lr_native_backend_create},
    {.name = "raster", .place = LR_PLACE_GL, .create = create_raster},
    {.name = "cpu", .has_exact = true, .has_penetration = true, .is_reference = true, .create = lr_cpu_backend_create},

    {LR_DIRECT, "cuda", LR_PLACE_CUDA, .needs_hardware = true, .create_direct = create_direct_cuda},
    {LR_DIRECT, "compute", LR_PLACE_GL, .needs_hardware = true, .create_direct = create_direct_compute},
    {LR_DIRECT, "cpu", .create_direct = lr_direct_cpu_create},

    {LR_LISTMODE, "cuda", LR_PLACE_CUDA, .create_listmode = create_listmode_cuda, .arrange = arrange_by_cuda},
    {LR_LISTMODE, "compute", LR_PLACE_GL, .needs_hardware = true, .create_listmode = create_listmode_compute},
    {LR_LISTMODE, "native", .create_listmode = lr_listmode_native_create},
    {LR_LISTMODE, "cpu", .has_hiding = true, .is_reference = true, .create_listmode = lr_listmode_cpu_create},
};

struct lr_choices lr_all_choices(enum lr_family family)
{
    return (struct lr_choices){
        .list = backends, .count = (int)(sizeof(backends) / sizeof(backends[0])), .family = family};
}

/* --- choosing --- */

/* The mode, physics and geometry that a backend must support. */
struct wish {
    lr_mode mode;
    bool penetration, hiding;
};

static bool fits(const struct lr_backend_choice *choice, const struct wish *wish)
{
    return (wish->mode != LR_MODE_EXACT || choice->has_exact) && (!wish->penetration || choice->has_penetration) &&
           (!wish->hiding || choice->has_hiding);
}

/* Writes the names of all fitting backends as "NAME, NAME", or "" if none fits. */
static void list_names(const struct lr_choices *choices, const struct wish *wish, char *text, size_t size)
{
    text[0] = '\0';
    for (int k = 0; k < choices->count; k++)
        if (choices->list[k].family == choices->family && fits(&choices->list[k], wish))
            lr_names_add(text, size, choices->list[k].name);
}

/* Finds a backend by its name. Returns NULL, and logs an error, if no backend has this name. */
static const struct lr_backend_choice *find_choice(const struct lr_choices *choices, const char *name,
                                                   const lr_log *log)
{
    char names[128];
    for (int k = 0; k < choices->count; k++)
        if (choices->list[k].family == choices->family && strcmp(choices->list[k].name, name) == 0)
            return &choices->list[k];
    static const char *const families[] = {"correspondence", "direct", "listmode"};
    list_names(choices, &(struct wish){0}, names, sizeof(names));
    lr_error(log, LR_USAGE, "the family %s has no backend \"%s\": use auto, %s", families[choices->family], name,
             names);
    return NULL;
}

static lr_status create(struct lr_operator *op, const struct lr_choices *choices,
                        const struct lr_backend_choice *choice, struct lr_backend *backend)
{
    return choices->open != NULL ? choices->open(op, choices->user, choice, backend)
                                 : choice->create(&op->params, backend);
}

static lr_status create_named(struct lr_operator *op, const char *name, const struct lr_choices *choices)
{
    struct wish wish = {op->params.mode, op->params.penetration, choices->needs_hiding};
    const struct lr_backend_choice *choice = find_choice(choices, name, op->params.log);
    if (choice == NULL) return LR_USAGE;
    if (wish.mode == LR_MODE_AUTO) wish.mode = choice->has_exact ? LR_MODE_EXACT : LR_MODE_SAMPLED;
    if (!fits(choice, &wish)) {
        /* The error names the property that the backend lacks, and the backends that have it. */
        char names[128];
        list_names(choices, &wish, names, sizeof(names));
        if (wish.hiding) {
            return lr_error(op->params.log, LR_USAGE,
                            "modules of this scanner may hide each other, and the backend %s has exact elements only "
                            "where none does: take the backend %s, or another kernel",
                            name, names);
        }
        if (wish.penetration && !choice->has_penetration) {
            return lr_error(op->params.log, LR_USAGE,
                            "backend %s has no crystal penetration: use backend %s, or leave penetration off (of "
                            "layers: let each count as if it were alone)",
                            name, names);
        }
        return lr_error(op->params.log, LR_USAGE, "backend %s has no exact mode: use backend %s, or mode sampled", name,
                        names);
    }

    op->params.mode = wish.mode;
    return create(op, choices, choice, &op->backend);
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

/* The state of "auto" while it tries backends one after the other. */
struct search {
    const struct lr_choices *choices;
    struct wish wish;
    bool is_refused;     /* true if some backend has the required properties but cannot run on this machine */
    bool is_loss;        /* true if one of these backends may have been quicker, since its device is no renderer in
                            software */
    bool is_gpu_refused; /* true if one of these backends has found a graphics processor */
    char why[1200];      /* reason why the last tried backend was not taken */
    /* A backend on a software renderer, used if no other backend can be taken. */
    struct lr_backend emulated;
    const struct lr_backend_choice *emulated_choice;
    bool has_asked, has_hardware; /* has_asked: OpenGL was asked for a graphics processor; has_hardware: the answer */
};

/* Takes a backend. The log names the backend, and says why earlier backends were not taken. */
static lr_status take(struct lr_operator *op, struct search *search, const struct lr_backend_choice *choice,
                      const struct lr_backend *backend)
{
    op->backend = *backend;
    if (backend->is_gpu) op->passed_over[0] = '\0';
    if (search->is_gpu_refused && op->passed_over[0] != '\0')
        lr_warn(op->params.log, "using backend %s and not the graphics processor: %s", choice->name, op->passed_over);
    else if (search->is_loss || (search->is_refused && choice->is_reference))
        lr_info(op->params.log, "using backend %s: %s", choice->name, search->why);
    return LR_OK;
}

/* Tries either the references or all other backends. LR_NO_DEVICE = no backend was taken; search->emulated may then be
 * a backend on a software renderer. */
static lr_status try_all(struct lr_operator *op, struct search *search, bool are_references)
{
    for (int k = 0; k < search->choices->count; k++) {
        const struct lr_backend_choice *choice = &search->choices->list[k];
        if (choice->family != search->choices->family || choice->is_reference != are_references) continue;
        if (!fits(choice, &search->wish)) {
            if (search->is_refused) continue; /* the reason of a preferred backend is kept */
            snprintf(search->why, sizeof(search->why), "%s has no %s", choice->name,
                     search->wish.penetration && !choice->has_penetration ? "crystal penetration"
                     : search->wish.hiding                                ? "exact elements of modules that may hide"
                                                                          : "exact mode");
            continue;
        }
        if (choice->needs_hardware && !search->has_asked) {
            search->has_hardware = lr_gl_is_hardware(op->params.device, op->params.log);
            search->has_asked = true;
        }
        if (choice->needs_hardware && !search->has_hardware) continue;

        struct lr_backend backend = {0};
        op->log_filter.reason[0] = '\0';
        op->log_filter.holds_refusals = true;
        const lr_status status = create(op, search->choices, choice, &backend);
        op->log_filter.holds_refusals = false;
        if (status == LR_USAGE && choice->family != LR_CORRESPONDENCE) /* the caller's parameters are wrong, and another
                                                                        * backend would ignore them */
            return lr_error(op->params.log, status, "%s", op->log_filter.reason);
        if (status == LR_NO_DEVICE || status == LR_USAGE) {
            snprintf(search->why, sizeof(search->why), "%s cannot run here (%s)", choice->name, op->log_filter.reason);
            if (choice->needs_hardware || (backend.is_gpu && op->passed_over[0] == '\0'))
                note_passed_over(op, choice->name);
            if (choice->place == LR_PLACE_CUDA) { /* not worth a message, because most machines have no CUDA */
                lr_debug(op->params.log, "%s", search->why);
            } else {
                search->is_refused = true;
                search->is_loss = search->is_loss || !backend.is_emulated;
                search->is_gpu_refused = search->is_gpu_refused || backend.is_gpu || choice->needs_hardware;
            }
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
    search->wish = (struct wish){op->params.mode, op->params.penetration, search->choices->needs_hiding};
    lr_status status = try_all(op, search, false);
    if (status == LR_NO_DEVICE) status = try_all(op, search, true);
    if (status == LR_NO_DEVICE && search->emulated_choice != NULL)
        return take(op, search, search->emulated_choice, &search->emulated);
    drop(&search->emulated);
    search->emulated_choice = NULL;
    return status;
}

lr_status lr_choose_backend(struct lr_operator *op, const char *name, const struct lr_choices *choices)
{
    const lr_mode mode = op->params.mode;
    if (name == NULL || strcmp(name, "auto") == 0) {
        struct search search = {.choices = choices};
        op->params.mode = mode == LR_MODE_AUTO && choices->family == LR_CORRESPONDENCE ? LR_MODE_EXACT : mode;
        lr_status status = create_first_able(op, &search);
        if (status == LR_NO_DEVICE && mode == LR_MODE_AUTO && choices->family == LR_CORRESPONDENCE) {
            op->params.mode = LR_MODE_SAMPLED;
            status = create_first_able(op, &search);
        }
        if (status == LR_NO_DEVICE) return lr_error(op->params.log, status, "no backend can do this: %s", search.why);
        return status;
    }
    if (strchr(name, ',') == NULL) return create_named(op, name, choices);

    /* Takes the first backend of the list that can be created. If none can, the log has the errors of the last one. */
    lr_status status = LR_USAGE;
    char one[NAME_ROOM], first_reason[sizeof(op->log_filter.reason)] = "";
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
        op->log_filter.holds_errors = rest != NULL || choices->stops_at_errors;
        status = create_named(op, one, choices);
        /* If a list names further backends, this one must be able to build the programs of its pictures. */
        if (status == LR_OK && rest != NULL && op->backend.fns->prepare_picture != NULL) {
            status = op->backend.fns->prepare_picture(op->backend.self);
            if (status != LR_OK) drop(&op->backend);
        }
        op->log_filter.holds_errors = false;
        if (first_reason[0] == '\0') memcpy(first_reason, op->log_filter.reason, sizeof(first_reason));
        if (status != LR_OK && status != LR_NO_DEVICE && choices->stops_at_errors)
            return lr_error(op->params.log, status, "%s", op->log_filter.reason);
        if (status != LR_OK && rest != NULL) note_passed_over(op, one);
    }
    if (status == LR_NO_DEVICE && choices->stops_at_errors)
        return lr_error(op->params.log, status, "%s; %s", first_reason, op->log_filter.reason);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "operator/choose.h"

#include "base/log.h"
#include "operator/measure.h"

#include <stdio.h>
#include <string.h>

/* What is asked of a backend. */
struct wish {
    lr_mode mode;
    bool penetration;
};

static bool fits(const struct lr_backend_choice *choice, const struct wish *wish)
{
    return (wish->mode != LR_MODE_EXACT || choice->has_exact) &&
           (!wish->penetration || choice->has_penetration);
}

/* "NAME, NAME" of the backends that fit; "" when none does. */
static void list_names(const struct lr_choices *choices, const struct wish *wish, char *text,
                       size_t size)
{
    text[0] = '\0';
    for (int k = 0; k < choices->count; k++) {
        if (!fits(&choices->list[k], wish)) {
            continue;
        }
        if (text[0] != '\0') {
            strncat(text, ", ", size - strlen(text) - 1);
        }
        strncat(text, choices->list[k].name, size - strlen(text) - 1);
    }
}

/* --- by name --- */

static const struct lr_backend_choice *find_choice(const struct lr_choices *choices,
                                                   const char *name)
{
    for (int k = 0; k < choices->count; k++) {
        if (strcmp(choices->list[k].name, name) == 0) {
            return &choices->list[k];
        }
    }
    return NULL;
}

/* Says what the backend named lacks of the wish, and who has it. */
static lr_status report_lack(const struct lr_choices *choices, const char *name,
                             const struct wish *wish, const lr_log *log)
{
    char names[128];
    const struct lr_backend_choice *choice = find_choice(choices, name);
    list_names(choices, wish, names, sizeof(names));
    if (wish->penetration && !choice->has_penetration) {
        return lr_error(log, LR_USAGE,
                        "backend %s has no crystal penetration: use backend %s, or leave "
                        "penetration off",
                        name, names);
    }
    return lr_error(log, LR_USAGE, "backend %s has no exact mode: use backend %s, or mode sampled",
                    name, names);
}

static lr_status report_unknown(const struct lr_choices *choices, const char *name,
                                const lr_log *log)
{
    char names[128];
    list_names(choices, &(struct wish){0}, names, sizeof(names));
    return lr_error(log, LR_USAGE, "there is no backend \"%s\": use auto, %s", name, names);
}

static lr_status create_named(struct lr_operator *op, const char *name,
                              const struct lr_choices *choices)
{
    struct wish wish = {op->params.mode, op->params.penetration};
    const struct lr_backend_choice *choice = find_choice(choices, name);
    if (choice == NULL) {
        return report_unknown(choices, name, op->params.log);
    }
    if (wish.mode == LR_MODE_AUTO) {
        wish.mode = choice->has_exact ? LR_MODE_EXACT : LR_MODE_SAMPLED;
    }
    if (!fits(choice, &wish)) {
        return report_lack(choices, name, &wish, op->params.log);
    }
    op->params.mode = wish.mode;
    op->choice = choice;
    return choice->create(&op->params, &op->backend);
}

/* --- the first of a list --- */

enum { NAME_ROOM = 32 };

/* The name that a list begins with, without blanks; returns what follows its comma, or NULL. */
static const char *split_name(const char *list, char name[NAME_ROOM])
{
    const size_t length = strcspn(list, ",");
    size_t used = 0;
    for (size_t k = 0; k < length && used < NAME_ROOM - 1; k++) {
        if (list[k] != ' ') {
            name[used++] = list[k];
        }
    }
    name[used] = '\0';
    return list[length] == ',' ? list + length + 1 : NULL;
}

static void note_passed_over(struct lr_operator *op, const char *name)
{
    const size_t used = strlen(op->passed_over);
    const char *reason =
        op->log_filter.reason[0] != '\0' ? op->log_filter.reason : "it does not say why";
    snprintf(op->passed_over + used, sizeof(op->passed_over) - used, "%s%s cannot run here: %s",
             used > 0 ? "; " : "", name, reason);
}

/* One of those that others may take the place of. Whoever asks for a list wants pictures. */
static lr_status create_if_able(struct lr_operator *op, const char *name,
                                const struct lr_choices *choices)
{
    struct lr_backend *backend = &op->backend;
    LR_TRY(create_named(op, name, choices));
    const lr_status status = backend->fns->prepare_picture != NULL
                                 ? backend->fns->prepare_picture(backend->self)
                                 : LR_OK;
    if (status != LR_OK) {
        backend->fns->destroy(backend->self);
        *backend = (struct lr_backend){0};
    }
    return status;
}

/* The last one's errors are the caller's to read. */
static lr_status create_first(struct lr_operator *op, const char *list,
                              const struct lr_choices *choices)
{
    const lr_mode mode = op->params.mode;
    lr_status status = LR_USAGE;
    char name[NAME_ROOM];
    for (const char *rest = list; rest != NULL && status != LR_OK && status != LR_CANCELLED;) {
        rest = split_name(rest, name);
        if (find_choice(choices, name) == NULL) {
            return report_unknown(choices, name, op->params.log);
        }
        op->params.mode = mode;
        op->log_filter.reason[0] = '\0';
        op->log_filter.holds_errors = rest != NULL;
        status = (rest != NULL ? create_if_able : create_named)(op, name, choices);
        op->log_filter.holds_errors = false;
        if (status != LR_OK && rest != NULL) {
            note_passed_over(op, name);
        }
    }
    return status;
}

/* --- auto --- */

struct contest {
    struct lr_speed speeds[LR_MAX_CHOICES];
    int count;
    bool is_refused; /* one of those that have what is asked for cannot run here */
    char why[1200];  /* why the last one that dropped out did */
};

/* Where nothing is measured: which of two comes first whatever the day. The reference comes last,
 * and what a processor does in place of a graphics processor just before it. */
static int place(const struct lr_speed *speed)
{
    return speed->choice->is_reference ? 2 : speed->is_emulated ? 1 : 0;
}

static bool is_before(const struct lr_speed *one, const struct lr_speed *other)
{
    const bool are_timed = one->voxel_us > 0.0 && other->voxel_us > 0.0;
    return are_timed ? one->voxel_us < other->voxel_us : place(one) < place(other);
}

/* Equal ones keep their order. */
static void sort_speeds(struct contest *contest)
{
    for (int k = 1; k < contest->count; k++) {
        const struct lr_speed speed = contest->speeds[k];
        int at = k;
        for (; at > 0 && is_before(&speed, &contest->speeds[at - 1]); at--) {
            contest->speeds[at] = contest->speeds[at - 1];
        }
        contest->speeds[at] = speed;
    }
}

static void say_speeds(const struct contest *contest, bool is_deterministic, const lr_log *log)
{
    char text[256] = "";
    if (contest->speeds[0].voxel_us == 0.0) {
        lr_info(log, "taking backend %s without a trial: %s", contest->speeds[0].choice->name,
                is_deterministic ? "deterministic asks for the same one in every run"
                                 : "no other is made for speed here");
        return;
    }
    for (int k = 0; k < contest->count && contest->speeds[k].voxel_us > 0.0; k++) {
        const size_t used = strlen(text);
        snprintf(text + used, sizeof(text) - used, "%s%s %.3g us", used > 0 ? ", " : "",
                 contest->speeds[k].choice->name, contest->speeds[k].voxel_us);
    }
    lr_info(log, "taking backend %s; forward and back projection of a voxel, %s: %s",
            contest->speeds[0].choice->name,
            contest->speeds[0].is_remembered ? "as measured before" : "measured", text);
}

static void find_contestants(const struct lr_choices *choices, const struct wish *wish,
                             struct contest *contest)
{
    *contest = (struct contest){0};
    for (int k = 0; k < choices->count && contest->count < LR_MAX_CHOICES; k++) {
        const struct lr_backend_choice *choice = &choices->list[k];
        if (fits(choice, wish)) {
            contest->speeds[contest->count++].choice = choice;
        } else {
            snprintf(contest->why, sizeof(contest->why), "%s has no %s", choice->name,
                     wish->penetration && !choice->has_penetration ? "crystal penetration"
                                                                   : "exact mode");
        }
    }
}

static void note_refusal(struct contest *contest, const char *name, const char *reason)
{
    contest->is_refused = true;
    snprintf(contest->why, sizeof(contest->why), "%s cannot run here (%s)", name, reason);
}

/* Measures where there is a choice, or takes a fixed order, and drops those that cannot run. */
static lr_status rank(struct lr_operator *op, struct contest *contest)
{
    if (contest->count < 2) {
        return LR_OK;
    }
    LR_TRY(lr_measure_speeds(op, contest->speeds, contest->count));
    int left = 0;
    for (int k = 0; k < contest->count; k++) {
        if (contest->speeds[k].is_out) {
            note_refusal(contest, contest->speeds[k].choice->name, contest->speeds[k].reason);
        } else {
            contest->speeds[left++] = contest->speeds[k];
        }
    }
    contest->count = left;
    sort_speeds(contest);
    if (left > 1) {
        say_speeds(contest, op->params.deterministic, op->params.log);
    }
    return LR_OK;
}

static bool is_refusal(lr_status status)
{
    return status == LR_NO_DEVICE || status == LR_USAGE;
}

/* In one mode. What the others lacked is told once it is known which one is taken instead. */
static lr_status create_fastest(struct lr_operator *op, const struct lr_choices *choices,
                                struct contest *contest)
{
    const struct wish wish = {op->params.mode, op->params.penetration};
    find_contestants(choices, &wish, contest);
    LR_TRY(rank(op, contest));
    for (int k = 0; k < contest->count; k++) {
        const struct lr_backend_choice *choice = contest->speeds[k].choice;
        op->log_filter.holds_refusals = true;
        const lr_status status = choice->create(&op->params, &op->backend);
        op->log_filter.holds_refusals = false;
        if (status == LR_OK && contest->is_refused) {
            lr_info(op->params.log, "using backend %s: %s", choice->name, contest->why);
        }
        if (!is_refusal(status)) {
            op->choice = choice;
            op->voxel_us = contest->speeds[k].voxel_us;
            return status;
        }
        note_refusal(contest, choice->name, op->log_filter.reason);
    }
    return LR_NO_DEVICE;
}

static lr_status create_auto(struct lr_operator *op, const struct lr_choices *choices)
{
    struct contest contest;
    const bool has_both = op->params.mode == LR_MODE_AUTO;
    op->params.mode = has_both ? LR_MODE_EXACT : op->params.mode;
    lr_status status = create_fastest(op, choices, &contest);
    if (status == LR_NO_DEVICE && has_both) {
        op->params.mode = LR_MODE_SAMPLED;
        status = create_fastest(op, choices, &contest);
    }
    if (status == LR_NO_DEVICE) {
        return lr_error(op->params.log, status, "no backend can do this: %s", contest.why);
    }
    return status;
}

lr_status lr_choose_backend(struct lr_operator *op, const char *name,
                            const struct lr_choices *choices)
{
    if (name == NULL || strcmp(name, "auto") == 0) {
        return create_auto(op, choices);
    }
    if (strchr(name, ',') != NULL) {
        return create_first(op, name, choices);
    }
    return create_named(op, name, choices);
}

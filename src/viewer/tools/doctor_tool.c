/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/mem.h"
#include "viewer/app.h"

#include <lr/doctor.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct doctor_state {
    const lr_diagnosis *diagnosis; /* owned by the study: diagnosis of the open or the refused scanner; NULL = none */
    lr_scanner refused;            /* scanner as described by the file; modules and first_crystal are owned */
    int chosen;                    /* index of the finding; -1: all */
};

static const uint32_t plain_colour = 0x6f8fafff, suspect_colour = 0xe69f00ff;

static void forget(struct app *app)
{
    struct doctor_state *tool = app_state(app, &doctor_tool);
    lr_free_all(tool->refused.modules, tool->refused.first_crystal);
    tool->refused = (lr_scanner){0};
}

/* Colours the modules of the chosen finding, or those of all suspicious findings. */
static lr_status colour_modules(struct app *app)
{
    const struct doctor_state *tool = app_state(app, &doctor_tool);
    const int count = tool->refused.num_modules > 0 ? tool->refused.num_modules
                      : app->open.scanner != NULL   ? app->open.scanner->num_modules
                                                    : 0;
    uint32_t *colours = lr_alloc(count + 1, sizeof(*colours), "colours of modules", &app->log);
    if (colours == NULL) return LR_FAILED;
    for (int m = 0; m < count; m++) colours[m] = plain_colour;
    for (int f = 0; tool->diagnosis != NULL && f < tool->diagnosis->num_findings; f++) {
        const lr_finding *finding = &tool->diagnosis->findings[f];
        const bool counts = tool->chosen >= 0 ? tool->chosen == f : finding->severity == LR_SUSPECT;
        for (int k = 0; k < 2 && counts; k++)
            if (finding->modules[k] >= 0 && finding->modules[k] < count) colours[finding->modules[k]] = suspect_colour;
    }
    const lr_status status = draw_set_module_colours(app->draw, colours);
    free(colours);
    return status;
}

static lr_status take_study(struct app *app, bool is_new)
{
    (void)is_new;
    struct doctor_state *tool = app_state(app, &doctor_tool);
    const lr_scanner_draft *draft = NULL;
    const lr_diagnosis *refused = study_refused(app->study, &draft);
    tool->chosen = -1;
    tool->diagnosis = refused != NULL ? refused : app->open.diagnosis;
    if (refused != NULL && draft != NULL) {
        app_choose(app, &doctor_tool);
        /* A refused scanner is drawn as its file describes it. */
        lr_scanner *shown = &tool->refused;
        const int count = draft->params.num_modules;
        forget(app);
        shown->modules = lr_alloc(count, sizeof(*shown->modules), "modules to look at", &app->log);
        shown->first_crystal = lr_alloc(count + 1, sizeof(*shown->first_crystal), "modules to look at", &app->log);
        if (shown->modules == NULL || shown->first_crystal == NULL) return LR_FAILED;
        shown->num_modules = count;
        for (int m = 0; m < count; m++) {
            lr_module *module = &shown->modules[m];
            *module = draft->params.modules[m];
            /* If the file gives no normal for a module, the module faces the axis. */
            double *n = module->normal, *c = module->centre_mm;
            if (n[0] == 0.0 && n[1] == 0.0 && n[2] == 0.0) {
                const double away = hypot(c[0], c[1]);
                n[0] = away > 0.0 ? -c[0] / away : 1.0;
                n[1] = away > 0.0 ? -c[1] / away : 0.0;
            }

            const int *crystals = module->crystals;
            if ((int64_t)shown->first_crystal[m] + (int64_t)crystals[0] * crystals[1] > 1 << 24) {
                shown->num_modules = m;
                break;
            }
            shown->first_crystal[m + 1] = shown->first_crystal[m] + crystals[0] * crystals[1];
        }
        shown->num_crystals = shown->first_crystal[shown->num_modules];
        if (shown->num_modules > 0 && draw_set_scanner(app->draw, shown) != LR_OK) return LR_FAILED;
    } else if (tool->refused.num_modules > 0) {
        forget(app);
        if (draw_set_scanner(app->draw, app->open.scanner) != LR_OK) return LR_FAILED;
    }
    app->drawn = tool->refused.num_modules > 0 ? &tool->refused : app->open.scanner;
    return colour_modules(app);
}

/* --- the panel --- */

static void show_panel(struct app *app)
{
    struct doctor_state *tool = app_state(app, &doctor_tool);
    if (tool->diagnosis == NULL) {
        ui_toned(UI_DIM, "no scanner has been examined");
        return;
    }
    if (tool->refused.num_modules > 0) ui_toned(UI_BAD, "the file was refused; the scene shows what it says");
    const int suspects = tool->diagnosis->num_suspects;
    const int notes = tool->diagnosis->num_findings - suspects;
    ui_text("%d suspicion%s, %d note%s", suspects, suspects == 1 ? "" : "s", notes, notes == 1 ? "" : "s");
    for (int k = 0; k < tool->diagnosis->num_findings; k++) {
        const lr_finding *finding = &tool->diagnosis->findings[k];
        char label[64];
        snprintf(label, sizeof(label), "%s: %s##%d", finding->severity == LR_SUSPECT ? "suspicion" : "note",
                 lr_finding_kind_name(finding->kind), k);
        if (ui_item(label, tool->chosen == k)) {
            tool->chosen = tool->chosen == k ? -1 : k;
            colour_modules(app);
        }
        ui_hint("shows the modules it concerns");
        ui_toned(finding->severity == LR_SUSPECT ? UI_WARNING : UI_PLAIN, "%s", finding->sentence);
        if (finding->remedy[0] != '\0') ui_toned(UI_DIM, "%s", finding->remedy);
        ui_space(4.0);
    }
}

static bool get_value(struct app *app, const char *name, struct command_value *value)
{
    const struct doctor_state *tool = app_state(app, &doctor_tool);
    const struct command_number numbers[] = {
        {"doctor.suspects", tool->diagnosis != NULL ? tool->diagnosis->num_suspects : 0},
        {"doctor.refused", tool->refused.num_modules},
        {0},
    };
    return command_pick(numbers, &(struct command_text){0}, name, value);
}

const struct viewer_tool doctor_tool = {.name = "Doctor",
                                        .word = "doctor",
                                        .mode = LR_SESSION_SCENE,
                                        .state_bytes = sizeof(struct doctor_state),
                                        .close = forget,
                                        .take_study = take_study,
                                        .panel = show_panel,
                                        .get_value = get_value};

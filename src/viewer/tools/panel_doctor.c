/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/frame/panels.h"

#include <stdio.h>

static void show_finding(struct app *app, int number)
{
    struct doctor_tool *tool = &app->doctor;
    const lr_finding *finding = &tool->diagnosis->findings[number];
    char label[64];
    snprintf(label, sizeof(label), "%s: %s##%d",
             finding->severity == LR_SUSPECT ? "suspicion" : "note",
             lr_finding_kind_name(finding->kind), number);
    if (ui_item(label, tool->chosen == number)) {
        tool->chosen = tool->chosen == number ? -1 : number;
        doctor_tool_colour(app);
    }
    ui_hint("shows the modules it concerns");
    ui_toned(finding->severity == LR_SUSPECT ? UI_WARNING : UI_PLAIN, "%s", finding->sentence);
    if (finding->remedy[0] != '\0') {
        ui_toned(UI_DIM, "%s", finding->remedy);
    }
    ui_space(4.0);
}

void panel_doctor(struct app *app)
{
    const struct doctor_tool *tool = &app->doctor;
    if (tool->diagnosis == NULL) {
        ui_toned(UI_DIM, "no scanner has been examined");
        return;
    }
    if (tool->refused.num_modules > 0) {
        ui_toned(UI_BAD, "the file was refused; the scene shows what it says");
    }
    ui_text("%d suspicions, %d notes", tool->diagnosis->num_suspects,
            tool->diagnosis->num_findings - tool->diagnosis->num_suspects);
    for (int k = 0; k < tool->diagnosis->num_findings; k++) {
        show_finding(app, k);
    }
}

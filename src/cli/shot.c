/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "shot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const char shot_backends[] = "raster,cpu";

void shot_note_init(struct shot_note *note, const lr_operator_info *info)
{
    const char *why = info->passed_over;
    snprintf(note->text, sizeof(note->text), "drawn by backend %s on %s, R = %d%s%s", info->backend, info->device,
             info->rays, why != NULL ? "; " : "", why != NULL ? why : "");
}

void shot_note_say(const struct shot_note *note, const lr_operator_info *info, struct report *report)
{
    if (info->passed_over != NULL)
        report_warn(report, "correspondence images are %s", note->text);
    else
        report_info(report, "correspondence images are %s", note->text);
}

static void count_hits(struct shot *shot)
{
    const int64_t count = (int64_t)shot->size[0] * shot->size[1];
    for (int64_t k = 0; k < count; k++) {
        shot->num_hits += shot->pixels[k].module >= 0;
        shot->weight += (double)shot->pixels[k].weight;
        shot->highest = fmax(shot->highest, (double)shot->pixels[k].weight);
    }
}

lr_status shot_take(struct setup *setup, const double point_mm[3], int module, struct shot *shot)
{
    const lr_module *shape = &setup->scanner->modules[module];
    const int rays = lr_operator_get_info(setup->op)->rays;
    *shot = (struct shot){.module = module, .size = {rays * shape->crystals[0], rays * shape->crystals[1]}};
    shot->pixels = calloc((size_t)shot->size[0] * (size_t)shot->size[1], sizeof(*shot->pixels));
    if (shot->pixels == NULL) {
        return report_error(setup->report, LR_FAILED, "no memory for a picture of %d x %d", shot->size[0],
                            shot->size[1]);
    }
    const lr_status status = lr_operator_picture(setup->op, point_mm, module, shot->pixels);
    if (status != LR_OK) {
        shot_finish(shot);
        return status;
    }
    count_hits(shot);
    return LR_OK;
}

lr_picture *shot_draw(const struct setup *setup, const struct shot *shot, lr_correspondence_view view, double high)
{
    const lr_correspondence_params params = {
        .pixels = shot->pixels,
        .scanner = setup->scanner,
        .module = shot->module,
        .rays = lr_operator_get_info(setup->op)->rays,
        .view = view,
        .high = high,
        .crystal_grid = true,
        .labelled = true,
        .log = &setup->report->log,
    };
    return lr_picture_correspondence(&params);
}

void shot_finish(struct shot *shot)
{
    free(shot->pixels);
    *shot = (struct shot){0};
}

lr_status shot_take_brightest(struct setup *setup, const double point_mm[3], struct shot *shot)
{
    *shot = (struct shot){0};
    for (int m = 0; m < setup->scanner->num_modules; m++) {
        struct shot next;
        const lr_status status = shot_take(setup, point_mm, m, &next);
        if (status != LR_OK) {
            shot_finish(shot);
            return status;
        }
        if (shot->pixels == NULL || next.weight > shot->weight) {
            shot_finish(shot);
            *shot = next;
        } else {
            shot_finish(&next);
        }
    }
    return LR_OK;
}

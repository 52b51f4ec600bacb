/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/tools/frames_tool.h"

#include "base/log.h"
#include "viewer/frame/app.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "folder/NAME-12.nii.gz": what stands before and behind the number, and the number; 0 = there is none. */
static int parse(const char *path, int *before, int *after)
{
    const char *name = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;
    for (const char *at = name; (at = strchr(at, '-')) != NULL; at++) {
        char *end;
        if (!isdigit((unsigned char)at[1])) continue;
        const long number = strtol(at + 1, &end, 10);
        if (*end == '.' && at[1] != '0' && number <= FRAMES_MOST) {
            *before = (int)(at + 1 - path);
            *after = (int)(end - path);
            return (int)number;
        }
    }
    return 0;
}

/* false: it is too long. */
static bool name_frame(const struct frames_tool *frames, int number, char path[FRAMES_PATH])
{
    return snprintf(path, FRAMES_PATH, "%.*s%d%s", frames->before, frames->path, number, frames->path + frames->after) <
           FRAMES_PATH;
}

/* "NAME.nii:12" of a file with several volumes. */
static int parse_volume(const char *path, int *before, int *after)
{
    const char *colon = strrchr(path, ':');
    *before = colon != NULL ? (int)(colon + 1 - path) : 0;
    *after = (int)strlen(path);
    return colon != NULL ? (int)strtol(colon + 1, NULL, 10) : 0;
}

static int count_frames(const struct frames_tool *frames)
{
    char path[FRAMES_PATH];
    int count = 0;
    while (count < FRAMES_MOST && name_frame(frames, count + 1, path) && access(path, F_OK) == 0) count++;
    return count;
}

bool frames_tool_take_study(struct app *app)
{
    struct frames_tool *frames = &app->frames;
    const char *path = app->open.image_path != NULL ? app->open.image_path : "";
    char own[FRAMES_PATH];
    if (strcmp(path, frames->path) == 0) return false;
    const bool is_wanted = frames->wanted > 0 && name_frame(frames, frames->wanted, own) && strcmp(path, own) == 0;
    if (strlen(path) >= FRAMES_PATH) path = "";
    snprintf(frames->path, sizeof(frames->path), "%s", path);
    const bool has_volumes = app->open.num_frames > 1;
    frames->number = (has_volumes ? parse_volume : parse)(frames->path, &frames->before, &frames->after);
    frames->count = has_volumes          ? app->open.num_frames
                    : is_wanted          ? frames->count
                    : frames->number > 0 ? count_frames(frames)
                                         : 0;
    if (frames->number < 1 || frames->number > frames->count || frames->count < 2) frames->number = frames->count = 0;
    frames->wanted = frames->number;
    return is_wanted;
}

lr_status frames_tool_show(struct app *app, int number)
{
    struct frames_tool *frames = &app->frames;
    char path[FRAMES_PATH];
    if (number < 1 || number > frames->count || !name_frame(frames, number, path))
        return lr_error(&app->log, LR_USAGE, "there is no frame %d: %d are there", number, frames->count);
    frames->wanted = number;
    return number == frames->number && !study_is_busy(app->study)
               ? LR_OK
               : study_open(app->study, &(struct study_wish){.image = path});
}

void frames_tool_panel(struct app *app)
{
    const struct frames_tool *frames = &app->frames;
    int number = frames->wanted;
    const int range[2] = {1, frames->count};
    if (frames->count < 2) return;
    if (ui_slide("frame", &number, range) && number != frames->wanted) (void)frames_tool_show(app, number);
    ui_hint("%d images of one measurement after the other: volumes of a file, or files NAME-1, "
            "NAME-2 ... beside each other",
            frames->count);
}

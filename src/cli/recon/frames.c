/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cli/recon/frames.h"

#include "cli/common.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void frame_path(char path[PATH_MAX], const char *output, int k)
{
    const char *ending = common_image_ending(output);
    snprintf(path, PATH_MAX, "%.*s-%d%s", (int)(ending - output), output, k + 1, ending);
}

lr_status recon_frames_check_names(struct cli_args *args, const struct recon_request *request)
{
    const int range[2] = {request->iterations_before, request->iterations_before + request->iterations};
    if (request->num_intervals == 0) return outputs_check_iterations(args, request->output, request->save_every, range);
    for (int k = 0; k < request->num_intervals; k++) {
        char path[PATH_MAX];
        frame_path(path, request->output, k);
        CLI_TRY(outputs_check_name(args, path));
        CLI_TRY(outputs_check_iterations(args, path, request->save_every, range));
    }
    return LR_OK;
}

lr_status recon_frames_init(struct recon_frames *frames, const struct measurement *measured)
{
    const struct recon_request *request = measured->request;
    const int count = request->num_intervals;
    if (count == 0) return LR_OK;
    frames->list = calloc((size_t)count, sizeof(*frames->list));
    for (int k = 0; frames->list != NULL && k < count; k++) {
        struct recon_frame *frame = &frames->list[k];
        char path[PATH_MAX];
        frame_path(path, request->output, k);
        frame->output = strdup(path);
        frame->history = calloc((size_t)request->iterations, sizeof(*frame->history));
        frames->count = k + 1;
        if (frame->output == NULL || frame->history == NULL) break;
        if (k + 1 == count) return LR_OK;
    }
    return report_error(measured->setup.report, LR_FAILED, "no memory for %d frames", count);
}

void recon_frames_finish(struct recon_frames *frames)
{
    for (int k = 0; k < frames->count; k++) {
        free(frames->list[k].output);
        free(frames->list[k].history);
    }
    free(frames->list);
    *frames = (struct recon_frames){0};
}

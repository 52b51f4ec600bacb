/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "common.h"
#include "report.h"
#include "verbs.h"

#include "plugin/plugin.h"
#include "viewer/view.h"

#ifdef LORASTER_VIEWER
static lr_status run(struct cli_args *args)
{
    struct view_speed speed = {0};
    const struct view_params params = {
        .scanner = args_text(args, "--scanner"),
        .image = args_text(args, "--image"),
        .mu = args_text(args, "--mu"),
        .data = args_text(args, "--data"),
        .session = args_text(args, "--session"),
        .script = args_text(args, "--script"),
        .has_no_window = args_has(args, "--no-window"),
        .bench_frames = (int)args_int(args, "--bench-frames", 0, (const int64_t[]){1, 1000000}),
        .speed = &speed,
        .device = (int)args_int(args, "--device", 0, args_from_0),
        .threads = (int)args_int(args, "--threads", 0, args_from_0),
        .log = &args->report->log,
        .progress = &args->report->progress,
    };
    if (args->status != LR_OK) return args->status;
    if (params.has_no_window && params.script == NULL && params.bench_frames == 0) {
        return report_error(args->report, LR_USAGE,
                            "without a window there is nobody to use it: give --script FILE too");
    }
    const struct lr_viewer_plugin *viewer = lr_plugin_viewer(params.log);
    const lr_status status = viewer != NULL ? viewer->run(&params) : LR_NO_DEVICE;
    if (status != LR_OK || !(speed.frame_ms > 0.0)) return status;
    if (!args_has(args, "--json")) {
        printf("first_frame_s %.3f\nopened_s %.3f\nframes_per_second %.1f\nframe_ms %.2f\n"
               "processor_ms %.2f\nsize %dx%d\n",
               speed.first_frame_s, speed.opened_s, speed.frames_per_second, speed.frame_ms, speed.processor_ms,
               speed.size[0], speed.size[1]);
        return LR_OK;
    }
    struct json json = common_json_begin(stdout, "view");
    json_number(&json, "first_frame_s", speed.first_frame_s);
    json_number(&json, "opened_s", speed.opened_s);
    json_number(&json, "frames_per_second", speed.frames_per_second);
    json_number(&json, "frame_ms", speed.frame_ms);
    json_number(&json, "processor_ms", speed.processor_ms);
    json_ints(&json, "size", speed.size, 2);
    common_json_end(&json);
    return LR_OK;
}
#else
static lr_status run(struct cli_args *args)
{
    return report_error(args->report, LR_FAILED,
                        "this loraster was built without the viewer: install libglfw3-dev, "
                        "libimgui-dev and libcglm-dev and build it again");
}
#endif

static const struct cli_option open_options[] = {
    {"--scanner", "NAME|FILE", "a preset of loraster scanner list, or a file", NULL},
    {"--image", "FILE", "activity", NULL},
    {"--mu", "FILE", "attenuation, 1/mm or 1/cm", NULL},
    {"--data", "FILE", "LOR data or list mode", NULL},
    {"--session", "FILE", "what was saved before", NULL},
    {0},
};

static const struct cli_option run_options[] = {
    {"--script", "FILE", "does the steps in it, then ends (docs/guide/viewer-scripts.md)", NULL},
    {"--no-window", NULL, "draws where nobody sees it", NULL},
    {"--bench-frames", "N", "draws N frames, prints how fast and how soon the first, ends", NULL},
    {"--device", "N", "without a window: which usable device of loraster info; default 0", COMMON_DEVICE_NUMBER},
    {"--threads", "N", "default 0: all processors", NULL},
    {0},
};

const struct cli_verb verb_view = {
    .name = "view",
    .summary = "Shows scanners, images and rows of the matrix in a window.",
    .example = "loraster view --scanner siemens-mmr",
    .groups = {{"what is opened", open_options}, {"how", run_options}},
    .run = run,
};

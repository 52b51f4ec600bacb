/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * recon --operator listmode --frames: an image for each of some intervals. Events are read once, and the
 * sensitivity is computed once; each frame has the events, the delayeds and the subsets that a file of
 * its interval alone would have. */
#include "outputs.h"
#include "recon.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FRAMES = 10000 };

const struct cli_option recon_frame_options[] = {
    {"--frames", "LIST", "listmode: an image each of intervals one after the other: 10x60,5x300 s", false},
    {"--frames-from", "S", "second at which the first frame begins; default 0", false},
    {"--part", "K/N", "only the K-th of N parts of the frames, with about as many events", false},
    {0},
};

/* --- the command line --- */

static bool add_frames(struct recon_frames *frames, int64_t count, double seconds)
{
    const int64_t all = frames->count + count;
    if (count < 1 || all > MOST_FRAMES || !isfinite(seconds) || !(seconds > 0)) return false;
    struct recon_frame *list = realloc(frames->list, (size_t)all * sizeof(*list));
    if (list == NULL) return false;
    frames->list = list;
    for (; frames->count < all; frames->count++) {
        const double begin = frames->count > 0 ? list[frames->count - 1].end_s : frames->from_s;
        list[frames->count] = (struct recon_frame){.begin_s = begin, .end_s = begin + seconds};
    }
    return true;
}

/* "60", or "10x60", from *text on, which comes to the next one. */
static bool read_some(struct recon_frames *frames, const char **text)
{
    char *end;
    double number = strtod(*text, &end);
    int64_t count = 1;
    if (end == *text) return false;
    if (*end == 'x') {
        const char *seconds = end + 1;
        count = number >= 1 && number <= MOST_FRAMES && number == floor(number) ? (int64_t)number : 0;
        number = strtod(seconds, &end);
        if (end == seconds) return false;
    }
    *text = *end == ',' ? end + 1 : end;
    return (*end == '\0' || (*end == ',' && end[1] != '\0')) && add_frames(frames, count, number);
}

static void check_options(struct cli_args *args, const struct recon *recon)
{
    if (recon->request.family != RECON_LISTMODE) args_complain(args, "--frames belongs to --operator listmode");
    if (recon->request.picture != NULL) args_complain(args, "--png draws one image: leave it out with --frames");
    if (recon->frames.from_s < 0)
        args_complain(args, "--frames-from %s: it must not be negative", args_text(args, "--frames-from"));
}

void recon_read_frames(struct cli_args *args, struct recon *recon)
{
    const char *text = args_text(args, "--frames"), *at = text;
    if (text == NULL) {
        if (args_has(args, "--frames-from") || args_has(args, "--part"))
            args_complain(args, "--frames-from and --part belong to --frames");
        return;
    }
    recon->frames.from_s = args_number(args, "--frames-from", 0, false);
    recon->frames.output = recon->request.output;
    args_share(args, "--part", &recon->frames.share[0], &recon->frames.share[1]);
    check_options(args, recon);
    do {
        if (!read_some(&recon->frames, &at)) {
            args_complain(args,
                          "--frames %s: give lengths in seconds, at most %d, such as 60,60,300 or "
                          "10x60,5x300",
                          text, MOST_FRAMES);
            return;
        }
    } while (*at != '\0');
    if (recon->frames.share[1] > recon->frames.count) {
        args_complain(args, "%d frames cannot be cut into %lld parts", recon->frames.count,
                      (long long)recon->frames.share[1]);
    }
}

/* --- before the first --- */

bool recon_is_within(const struct recon_frame *frame, const lr_event *event)
{
    const double time_s = event->time_ms * 1e-3;
    return time_s >= frame->begin_s && time_s < frame->end_s;
}

static int64_t count_prompts(const struct recon_frame *frame, const lr_event_list *all)
{
    int64_t count = 0;
    for (int64_t k = 0; k < all->count; k++)
        count += !all->events[k].is_delayed && recon_is_within(frame, &all->events[k]);
    return count;
}

/* Seconds of the first and the last event. */
static void find_times(const lr_event_list *all, double times_s[2])
{
    times_s[0] = INFINITY;
    times_s[1] = 0;
    for (int64_t k = 0; k < all->count; k++) {
        times_s[0] = fmin(times_s[0], all->events[k].time_ms * 1e-3);
        times_s[1] = fmax(times_s[1], all->events[k].time_ms * 1e-3);
    }
}

/* Its length is not what was measured then. */
static void warn_of_end(const struct recon *recon, const double times_s[2])
{
    const struct recon_frames *frames = &recon->frames;
    const struct recon_frame *last = &frames->list[frames->count - 1];
    const lr_event_list *list = recon->inputs.list; /* NULL on ranks, which have only looked so far */
    const double told_s = list != NULL ? list->info.duration_s : recon->own.duration_s;
    const double end_s = fmax(times_s[1], told_s);
    const double left_s = last->end_s - end_s, share = 0.02;
    if (left_s > share * (last->end_s - last->begin_s)) {
        report_warn(recon->setup.report,
                    "frame %d is from %g s to %g s, and events end at %g s: it has no events of its "
                    "last %.3g s",
                    frames->count, last->begin_s, last->end_s, end_s, left_s);
    }
}

static void frame_path(char path[PATH_MAX], const char *output, int k)
{
    const char *ending = common_image_ending(output);
    snprintf(path, PATH_MAX, "%.*s-%d%s", (int)(ending - output), output, k + 1, ending);
}

lr_status recon_check_names(struct cli_args *args, const struct recon *recon)
{
    char path[PATH_MAX];
    const struct recon_request *request = &recon->request;
    const int first = request->iterations_before;
    const int range[2] = {first, first + request->iterations};
    for (int k = 0; k < recon->frames.count; k++) {
        frame_path(path, request->output, k);
        CLI_TRY(outputs_check_name(args, path));
        CLI_TRY(outputs_check_iterations(args, path, request->save_every, range));
    }
    return recon->frames.count > 0 ? LR_OK
                                   : outputs_check_iterations(args, request->output, request->save_every, range);
}

static lr_status name_output(struct recon *recon, int k)
{
    char path[PATH_MAX];
    struct recon_frame *frame = &recon->frames.list[k];
    frame_path(path, recon->frames.output, k);
    frame->output = strdup(path);
    frame->history = calloc((size_t)recon->request.iterations, sizeof(*frame->history));
    if (frame->output == NULL || frame->history == NULL)
        return report_error(recon->setup.report, LR_FAILED, "no memory for %d frames", recon->frames.count);
    return LR_OK;
}

/* The frames of this run: all, or those of --part, which have about as many prompts as other parts. */
static lr_status choose_frames(struct recon *recon)
{
    struct recon_frames *frames = &recon->frames;
    frames->range[0] = 0;
    frames->range[1] = frames->count;
    if (frames->share[1] == 0) return LR_OK;
    double *costs = calloc((size_t)frames->count, sizeof(*costs));
    if (costs == NULL) return report_error(recon->setup.report, LR_FAILED, "no memory for %d frames", frames->count);
    for (int k = 0; k < frames->count; k++) costs[k] = (double)frames->list[k].prompts;
    lr_share_range(costs, frames->count, frames->share, frames->range);
    free(costs);
    return LR_OK;
}

/* Of all ranks. */
static void times_of_all(const struct recon *recon, double times_s[2])
{
    times_s[0] = recon->own.times_s[0];
    times_s[1] = recon->own.times_s[1];
    if (recon->own.frames == NULL) find_times(recon->inputs.list, times_s);
}

static lr_status refuse_empty(const struct recon *recon, int k, const double times_s[2])
{
    const struct recon_frame *frame = &recon->frames.list[k];
    return report_error(recon->setup.report, LR_BAD_INPUT,
                        "%s: frame %d, from %g s to %g s, holds no prompts: events are from %g s "
                        "to %g s; change --frames or --frames-from",
                        recon->request.events, k + 1, frame->begin_s, frame->end_s, times_s[0], times_s[1]);
}

lr_status recon_check_frames(struct recon *recon)
{
    struct recon_frames *frames = &recon->frames;
    const bool is_shared = recon->own.frames != NULL;
    double times_s[2];
    recon_say_events(recon);
    times_of_all(recon, times_s);
    for (int k = 0; k < frames->count; k++) {
        struct recon_frame *frame = &frames->list[k];
        CLI_TRY(name_output(recon, k));
        frame->prompts = is_shared ? recon->own.frames[k].prompts : count_prompts(frame, recon->inputs.list);
        if (frame->prompts == 0) return refuse_empty(recon, k, times_s);
    }
    warn_of_end(recon, times_s);
    return choose_frames(recon);
}

/* --- one after the other --- */

/* An empty list with room for some; what the file told is the whole list's. */
static lr_status make_list(struct recon *recon, int64_t room)
{
    lr_event_list *list = calloc(1, sizeof(*list));
    recon->inputs.list = list;
    if (list != NULL) list->events = malloc(((size_t)room + 1) * sizeof(*list->events));
    if (list == NULL || list->events == NULL)
        return report_error(recon->setup.report, LR_FAILED, "no memory for the events of a frame");
    list->info = recon->frames.all->info;
    return LR_OK;
}

/* This rank's stand together. */
static lr_status take_own(struct recon *recon, int k)
{
    const struct recon_own_frame *own = &recon->own.frames[k];
    const int64_t count = own->ranges[recon->request.subsets];
    CLI_TRY(make_list(recon, count));
    memcpy(recon->inputs.list->events, recon->frames.all->events + own->first, (size_t)count * sizeof(lr_event));
    recon->inputs.list->count = count;
    return LR_OK;
}

static lr_status take_events(struct recon *recon, const struct recon_frame *frame)
{
    const lr_event_list *all = recon->frames.all;
    int64_t count = 0;
    for (int64_t k = 0; k < all->count; k++) count += recon_is_within(frame, &all->events[k]);
    CLI_TRY(make_list(recon, count));
    for (int64_t k = 0; k < all->count; k++)
        if (recon_is_within(frame, &all->events[k]))
            recon->inputs.list->events[recon->inputs.list->count++] = all->events[k];
    return LR_OK;
}

lr_status recon_open_frame(struct recon *recon, int k)
{
    struct recon_frames *frames = &recon->frames;
    struct recon_frame *frame = &frames->list[k];
    report_info(recon->setup.report, "frame %d of %d, from %g s to %g s: %lld prompts", k + 1, frames->count,
                frame->begin_s, frame->end_s, (long long)frame->prompts);
    recon->request.output = frame->output;
    recon->history = frame->history;
    recon->num_done = 0;
    frames->current = k;
    CLI_TRY(recon->own.frames != NULL ? take_own(recon, k) : take_events(recon, frame));
    CLI_TRY(recon_open_events(recon));
    frame->prompts = recon->own.frames != NULL ? recon->own.frames[k].kept : recon->inputs.list->count;
    return LR_OK;
}

void recon_close_frame(struct recon *recon, int k)
{
    struct recon_frames *frames = &recon->frames;
    struct recon_inputs *inputs = &recon->inputs;
    frames->list[k].num_done = recon->num_done;
    frames->list[k].image_sum =
        recon->image != NULL ? common_sum(recon->image->values, lr_grid_num_voxels(&recon->setup.grid)) : 0;
    recon->history = NULL;
    if (frames->first == NULL)
        frames->first = recon->setup.op;
    else
        lr_operator_destroy(recon->setup.op);
    recon->setup.op = NULL;
    if (inputs->list != NULL) {
        free(inputs->list->events);
        free(inputs->list);
        inputs->list = NULL;
    }
    lr_randoms_destroy(inputs->randoms);
    lr_lor_data_destroy(inputs->data);
    lr_lor_data_destroy(inputs->delayeds);
    lr_lor_data_destroy(inputs->additive);
    inputs->randoms = NULL;
    inputs->data = inputs->delayeds = inputs->additive = NULL;
}

void recon_finish_frames(struct recon *recon)
{
    struct recon_frames *frames = &recon->frames;
    for (int k = 0; k < frames->count; k++) {
        free(frames->list[k].output);
        free(frames->list[k].history);
    }
    lr_operator_destroy(frames->first);
    lr_event_list_destroy(frames->all);
    free(frames->list);
    free(frames->params);
    *frames = (struct recon_frames){0};
}

/* --- what came of it --- */

static void frame_json(struct json *json, const struct recon_frame *frame)
{
    json_open(json, NULL, '{');
    json_number(json, "begin_s", frame->begin_s);
    json_number(json, "end_s", frame->end_s);
    json_int(json, "prompts", frame->prompts);
    json_text(json, "output", frame->output);
    json_number(json, "image_sum", frame->image_sum);
    json_open(json, "iterations", '[');
    for (int k = 0; k < frame->num_done; k++) recon_iteration_json(json, &frame->history[k], NULL);
    json_close(json, ']');
    json_close(json, '}');
}

bool recon_has_frames(const struct recon *recon)
{
    const struct recon_frames *frames = &recon->frames;
    int64_t k = frames->range[0];
    while (k < frames->range[1] && frames->list[k].num_done == 0) k++;
    return k < frames->range[1];
}

void recon_frames_json(const struct recon *recon, bool stopped)
{
    struct json json = common_json_begin("recon");
    recon_head_json(recon, &json);
    json_bool(&json, "stopped", stopped);
    json_open(&json, "frames", '[');
    const struct recon_frames *frames = &recon->frames;
    for (int64_t k = frames->range[0]; k < frames->range[1]; k++)
        if (frames->list[k].num_done > 0) frame_json(&json, &frames->list[k]);
    json_close(&json, ']');
    json_number(&json, "seconds", report_seconds() - recon->start_s);
    json_int(&json, "peak_memory_bytes", common_peak_memory());
    common_json_end(&json);
}

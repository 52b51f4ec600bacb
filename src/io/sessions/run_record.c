/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * JSON is YAML too, by whose reader it is read; other keys than those of curves are passed over. */
#include "io/sessions/run_record.h"

#include "base/log.h"
#include "base/mem.h"
#include "io/files/yaml.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ITERATIONS = 1000000 };

static const char *const curve_keys[LR_RUN_CURVES] = {
    [LR_RUN_LIKELIHOOD] = "log_likelihood", [LR_RUN_ERROR] = "image_error"};

static void finish_image(struct lr_run_image *image)
{
    for (int k = 0; k < LR_RUN_CURVES; k++) free(image->values[k]);
    free(image->seconds);
}

void lr_run_record_finish(struct lr_run_record *record)
{
    for (int k = 0; k < record->num_images; k++) finish_image(&record->images[k]);
    free(record->images);
    *record = (struct lr_run_record){0};
}

static const char *after_blanks(const char *text)
{
    return text + strspn(text, " \t\r\n");
}

/* The word stands there; *text comes behind it and blanks. */
static bool skip(const char **text, const char *word)
{
    const size_t length = strlen(word);
    const bool is_there = strncmp(*text, word, length) == 0;
    *text = is_there ? after_blanks(*text + length) : *text;
    return is_there;
}

bool lr_run_record_recognises(const char *text)
{
    text = after_blanks(text);
    return skip(&text, "{") && skip(&text, "\"verb\"") && skip(&text, ":") && skip(&text, "\"recon\"");
}

/* --- one value --- */

/* NULL where there is none. */
static struct fy_node *look_up(struct fy_node *mapping, const char *key)
{
    return mapping != NULL && fy_node_is_mapping(mapping)
               ? fy_node_mapping_lookup_value_by_simple_key(mapping, key, strlen(key))
               : NULL;
}

/* *value is NAN where there is no such key. */
static lr_status read_number(const struct lr_yaml *yaml, struct fy_node *mapping, const char *key, double *value)
{
    struct fy_node *node = look_up(mapping, key);
    const struct lr_yaml_field field = {key, NULL, LR_YAML_NUMBER, false, value, NULL};
    *value = NAN;
    return node != NULL ? lr_yaml_read_value(yaml, &field, node, mapping) : LR_OK;
}

static lr_status refuse(const struct lr_yaml *yaml, const char *why)
{
    return lr_yaml_error(yaml, lr_yaml_root(yaml),
                         "this is no record of a reconstruction: %s; loraster recon --json prints "
                         "one, which goes to a file by > run.json",
                         why);
}

/* --- iterations --- */

static lr_status allocate(struct lr_run_image *image, int count, const lr_log *log)
{
    static const char *const what = "iterations of a run";
    image->seconds = lr_alloc(count, sizeof(*image->seconds), what, log);
    bool is_good = image->seconds != NULL;
    for (int k = 0; k < LR_RUN_CURVES; k++) {
        image->values[k] = lr_alloc(count, sizeof(*image->values[k]), what, log);
        is_good = is_good && image->values[k] != NULL;
    }
    image->count = is_good ? count : 0;
    return is_good ? LR_OK : LR_FAILED;
}

/* Frames have seconds of each iteration alone. */
static lr_status read_time(const struct lr_yaml *yaml, struct fy_node *node, double *before_s)
{
    double elapsed_s, own_s;
    LR_TRY(read_number(yaml, node, "elapsed_seconds", &elapsed_s));
    LR_TRY(read_number(yaml, node, "seconds", &own_s));
    const double at_s = isfinite(elapsed_s) ? elapsed_s : *before_s + (isfinite(own_s) ? own_s : 0);
    *before_s = fmax(*before_s, at_s);
    return LR_OK;
}

static lr_status read_iteration(const struct lr_yaml *yaml, struct fy_node *node, int k, struct lr_run_image *image)
{
    double number, before_s = k > 0 ? image->seconds[k - 1] : 0.0;
    LR_TRY(read_number(yaml, node, "number", &number));
    LR_TRY(read_time(yaml, node, &before_s));
    image->seconds[k] = (float)before_s;
    image->first = k == 0 && number >= 1 && number < 1e9 ? (int)number : image->first;
    for (int curve = 0; curve < LR_RUN_CURVES; curve++) {
        double value;
        LR_TRY(read_number(yaml, node, curve_keys[curve], &value));
        image->values[curve][k] = (float)value;
        image->has[curve] = image->has[curve] || isfinite(value);
    }
    return LR_OK;
}

/* of_iterations: what has them; they may be none. */
static lr_status read_image(const struct lr_yaml *yaml, struct fy_node *of_iterations, struct lr_run_image *image)
{
    struct fy_node *list = look_up(of_iterations, "iterations");
    const bool is_list = list != NULL && fy_node_is_sequence(list);
    const int count = is_list ? fy_node_sequence_item_count(list) : 0;
    void *iterator = NULL;
    if (count > MOST_ITERATIONS) return refuse(yaml, "it has more than a million iterations");
    image->first = 1;
    LR_TRY(count > 0 ? allocate(image, count, lr_yaml_log(yaml)) : LR_OK);
    for (int k = 0; k < count; k++) LR_TRY(read_iteration(yaml, fy_node_sequence_iterate(list, &iterator), k, image));
    return LR_OK;
}

/* Whether there is anything to draw. */
static lr_status check_images(const struct lr_yaml *yaml, const struct lr_run_record *record)
{
    int count = 0;
    for (int k = 0; k < record->num_images; k++) {
        const struct lr_run_image *image = &record->images[k];
        if (image->has[LR_RUN_LIKELIHOOD] || image->has[LR_RUN_ERROR]) return LR_OK;
        count += image->count;
    }
    return refuse(yaml, count == 0 ? "it has no iterations"
                                   : "its iterations tell neither a log-likelihood nor an image error "
                                     "(--fit and --truth of recon have them told)");
}

/* --- the whole --- */

static lr_status take_name(const struct lr_yaml *yaml, struct lr_run_record *record)
{
    size_t length = 0;
    double subsets;
    struct fy_node *root = lr_yaml_root(yaml), *node = look_up(root, "algorithm");
    const char *text = node != NULL && fy_node_is_scalar(node) ? fy_node_get_scalar(node, &length) : NULL;
    const int shown = length < 24 ? (int)length : 24;
    LR_TRY(read_number(yaml, root, "subsets", &subsets));
    if (subsets > 1) {
        snprintf(record->name, sizeof(record->name), "%.*s, %.0f subsets", shown, text != NULL ? text : "",
                 fmin(subsets, 1e9));
    } else {
        snprintf(record->name, sizeof(record->name), "%.*s", shown, text != NULL ? text : "");
    }
    return LR_OK;
}

/* The run's image, or one a frame. */
static lr_status take_images(const struct lr_yaml *yaml, struct lr_run_record *record)
{
    struct fy_node *root = lr_yaml_root(yaml), *frames = look_up(root, "frames");
    const int num_frames = frames != NULL && fy_node_is_sequence(frames) ? fy_node_sequence_item_count(frames) : 0;
    const int num_images = num_frames > 0 ? num_frames : 1;
    void *iterator = NULL;
    record->images = lr_alloc(num_images, sizeof(*record->images), "frames of a run", lr_yaml_log(yaml));
    if (record->images == NULL) return LR_FAILED;
    record->has_frames = num_frames > 0;
    record->num_images = num_images;
    for (int k = 0; k < num_images; k++) {
        struct fy_node *of_iterations = num_frames > 0 ? fy_node_sequence_iterate(frames, &iterator) : root;
        LR_TRY(read_image(yaml, of_iterations, &record->images[k]));
    }
    return check_images(yaml, record);
}

static lr_status take(const struct lr_yaml *yaml, struct lr_run_record *record)
{
    LR_TRY(take_images(yaml, record));
    return take_name(yaml, record);
}

static lr_status take_document(const struct lr_yaml *yaml, void *user)
{
    const lr_status status = take(yaml, user);
    if (status != LR_OK) lr_run_record_finish(user);
    return status;
}

lr_status lr_run_record_read(const char *path, struct lr_run_record *record, const lr_log *log)
{
    *record = (struct lr_run_record){0};
    return lr_yaml_take_file(path, &(struct lr_yaml_taker){take_document, record, log});
}

lr_status lr_run_record_parse(const char *name, const char *text, int64_t text_bytes, struct lr_run_record *record,
                              const lr_log *log)
{
    *record = (struct lr_run_record){0};
    return lr_yaml_take_text(name, text, text_bytes, &(struct lr_yaml_taker){take_document, record, log});
}

/* --- by seconds --- */

void lr_run_image_by_seconds(const struct lr_run_image *image, enum lr_run_curve curve, int count, float *values)
{
    const float *at = image->seconds, *from = image->values[curve];
    const int last = image->count - 1;
    int k = 0;
    for (int n = 0; n < count; n++) {
        const double share = count > 1 ? (double)n / (count - 1) : 0.0;
        const double time = at[0] + share * ((double)at[last] - at[0]);
        while (k < last - 1 && at[k + 1] < time) k++;
        const int next = k < last ? k + 1 : last;
        const double length = (double)at[next] - at[k];
        const double way = length > 0.0 ? fmin((time - at[k]) / length, 1.0) : 1.0;
        values[n] = way >= 1.0   ? from[next]
                    : way <= 0.0 ? from[k]
                                 : (float)(from[k] + way * ((double)from[next] - from[k]));
    }
}

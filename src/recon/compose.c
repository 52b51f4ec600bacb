/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Composition of the ranks' guesses: Toth, Magdics and Szirmay-Kalos, Fast System Matrix Generation on a GPU
 * Cluster, section V. docs/method/cluster.md. */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/order.h"
#include "dist/weights.h"
#include "model/lors/place.h"
#include "recon/subsets.h"

#include <lr/recon.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* VALUES_AT_ONCE: largest number of values in a window, counted over the projections of all guesses and the data.
 * LEAST_AT_ONCE: number of LORs that a window may always have. */
enum { VALUES_AT_ONCE = 1 << 24, LEAST_AT_ONCE = 1 << 16 };

enum { DEFAULT_ITERATIONS = 3 };

/* Consecutive LORs of a guess that are projected together. */
struct window {
    const lr_recon_params *of;
    lr_selection part;
    bool is_all;          /* true if the window has all module pairs of the guess */
    int64_t first, count; /* range of LORs */
};

struct compose {
    const lr_compose_params *params;
    const lr_recon_params *own; /* [num_own] parameters of this process's guesses */
    int num_own, first_own;
    lr_comm *comm;
    const lr_log *log;
    int size; /* number of guesses of all processes */
    int64_t num_voxels;
    float *guesses;  /* [size][num_voxels] */
    float *start;    /* [num_voxels] image from which a guess iterates */
    float *image;    /* [num_voxels] composed image */
    float *values;   /* [size][longest] projections of all guesses for one window */
    float *measured; /* [longest] */
    float *additive; /* [longest] */
    lr_vector *data; /* [num_own][2] measured counts and additive term of each guess on the host, in single precision */
    int32_t *pairs;  /* [largest number of pairs of a guess] */
    struct window *windows; /* windows of all guesses of this process */
    int num_windows;
    int64_t longest;   /* number of LORs of the longest window */
    double *sums;      /* [size * size + size + 1] B, b and |y|^2 of struct lr_gram */
    double *weights;   /* [size] */
    double *residuals; /* [size] */
    double begin_s;
    int first;           /* number of iterations before this call */
    int done, block_end; /* number of iterations: at the beginning (or resumption) of the block, and at its end */
    int block_begin;     /* number of iterations at the last composition */
    int last_stored;     /* number of iterations at the last call of `keep` */
    bool has_image;
};

/* --- a window of a guess's LORs --- */

static const lr_lors *lors_of(const lr_recon_params *of)
{
    return lr_operator_get_info(of->op)->lors;
}

/* Copies dense data, or writes sparse data into an array of zeros. */
static lr_status read_window(struct compose *compose, const struct window *window)
{
    const lr_recon_params *of = window->of;
    const lr_vector *data = compose->data + 2 * (of - compose->own);
    const float *measured = data[0].values, *additive = data[1].values;
    const lr_lor_span span = {.first = window->first, .count = window->count};
    const size_t bytes = (size_t)span.count * sizeof(float);
    if (of->data_lors == NULL) {
        memcpy(compose->measured, measured + span.first, bytes);
    } else {
        memset(compose->measured, 0, bytes);
        int64_t k = lr_first_at_least(of->data_lors, of->data->count, span.first);
        for (; k < of->data->count && of->data_lors[k] < span.first + span.count; k++)
            compose->measured[of->data_lors[k] - span.first] = measured[k];
    }
    if (of->additive == NULL && of->additive_source.get != NULL)
        return of->additive_source.get(of->additive_source.user, &span, compose->additive);
    if (of->additive != NULL)
        memcpy(compose->additive, additive + span.first, bytes);
    else
        memset(compose->additive, 0, bytes);
    return LR_OK;
}

/* Projects an image for a window. If the window has all pairs, there is no selection. Iterations project in the same
 * way, so a device needs no further programs. */
static lr_status project(const struct compose *compose, const struct window *window, const float *image, float *values)
{
    const lr_vector from = lr_vector_of_floats(image, compose->num_voxels);
    lr_vector to = lr_vector_of_floats(values, window->count);
    return lr_operator_forward(window->of->op, window->is_all ? NULL : &window->part, &from, &to);
}

/* --- B and b --- */

static double dot(const float *a, const float *b, int64_t count)
{
    double sum = 0.0;
    for (int64_t k = 0; k < count; k++) sum += (double)a[k] * b[k];
    return sum;
}

/* Computes B, b and |y|^2 as sums over the LORs of all guesses. */
static lr_status add_up(struct compose *compose)
{
    const int size = compose->size, count = size * size + size + 1;
    double *sums = compose->sums, *with = sums + size * size;
    float *measured = compose->measured;
    memset(sums, 0, (size_t)count * sizeof(*sums));
    for (int w = 0; w < compose->num_windows; w++) {
        const struct window *window = &compose->windows[w];
        const double begin = (double)(window->part.pairs - compose->pairs);
        LR_TRY(lr_progress_report(window->of->progress, "projecting the guesses",
                                  (double)(window->of - compose->own) + begin / (double)lors_of(window->of)->num_pairs,
                                  compose->num_own));
        LR_TRY(read_window(compose, window));
        for (int64_t n = 0; n < window->count; n++) measured[n] -= compose->additive[n];
        for (int g = 0; g < size; g++) {
            float *values = compose->values + (int64_t)g * compose->longest;
            LR_TRY(project(compose, window, compose->guesses + (int64_t)g * compose->num_voxels, values));
            for (int k = 0; k <= g; k++) {
                const double sum = dot(values, compose->values + (int64_t)k * compose->longest, window->count);
                sums[g * size + k] += sum;
                sums[k * size + g] += k != g ? sum : 0.0;
            }
            with[g] += dot(values, measured, window->count);
        }
        with[size] += dot(measured, measured, window->count);
    }
    return lr_comm_sum_numbers(compose->comm, sums, count);
}

static lr_status share_guesses(struct compose *compose)
{
    for (int g = 0; g < compose->size; g++) {
        lr_vector guess = lr_vector_of_floats(compose->guesses + (int64_t)g * compose->num_voxels, compose->num_voxels);
        LR_TRY(lr_comm_broadcast(compose->comm, g / compose->num_own, &guess));
    }
    return LR_OK;
}

/* --- the image --- */

static lr_status compose_guesses(struct compose *compose, int iterations)
{
    const struct lr_ranks ranks = {.comm = compose->comm, .size = compose->size};
    const double begin = lr_clock_seconds();
    const double sent = lr_comm_get_info(compose->comm).sent_bytes;
    const lr_vector image = lr_vector_of_floats(compose->image, compose->num_voxels);
    lr_composition done = {.iterations = iterations,
                           .count = compose->size,
                           .weights = compose->weights,
                           .guess_residuals = compose->residuals,
                           .image = &image,
                           .guesses = compose->guesses};
    LR_TRY(share_guesses(compose));
    LR_TRY(add_up(compose));

    const int size = compose->size;
    const struct lr_gram gram = {.count = size,
                                 .gram = compose->sums,
                                 .with = compose->sums + size * size,
                                 .square = compose->sums[size * size + size]};
    for (int g = 0; g < size; g++) {
        memset(compose->weights, 0, (size_t)size * sizeof(*compose->weights));
        compose->weights[g] = 1.0;
        compose->residuals[g] = lr_gram_residual(&gram, compose->weights);
    }
    LR_TRY(lr_gram_weights(&gram, compose->weights, &done.condition, compose->log));
    done.residual = lr_gram_residual(&gram, compose->weights);
    for (int64_t v = 0; v < compose->num_voxels; v++) {
        double sum = 0.0;
        for (int g = 0; g < compose->size; g++)
            sum += compose->weights[g] * compose->guesses[g * compose->num_voxels + v];
        done.negative_voxels += sum < 0.0;
        done.negative_sum += sum < 0.0 ? sum : 0.0;
        compose->image[v] = sum > 0.0 ? (float)sum : 0.0f;
    }

    compose->has_image = true;
    /* The composed image has no negative voxels now. The fit of this image to the data of all ranks is computed. */
    for (int w = 0; w < compose->num_windows; w++) {
        const struct window *window = &compose->windows[w];
        lr_poisson_fit found;
        lr_vector values = lr_vector_of_floats(compose->values, window->count);
        const lr_vector measured = lr_vector_of_floats(compose->measured, window->count);
        const lr_vector additive = lr_vector_of_floats(compose->additive, window->count);
        LR_TRY(read_window(compose, window));
        LR_TRY(project(compose, window, compose->image, compose->values));
        for (int64_t n = 0; n < window->count; n++) {
            const double left = (double)compose->measured[n] - compose->additive[n] - compose->values[n];
            done.clipped_residual += left * left;
        }
        LR_TRY(lr_vector_divide_counts(&(lr_poisson_ratio){&measured, &additive, &values}, &found));
        lr_poisson_fit_add(&done.fit, &found);
    }
    LR_TRY(lr_comm_sum_numbers(compose->comm, &done.clipped_residual, 1));
    LR_TRY(lr_ranks_add_update(&ranks, &done.fit, NULL, NULL));
    done.compose_seconds = lr_clock_seconds() - begin;
    done.seconds = lr_clock_seconds() - compose->begin_s;
    done.sent_bytes = lr_comm_get_info(compose->comm).sent_bytes - sent;
    return compose->params->composed != NULL ? compose->params->composed(compose->params->user, &done) : LR_OK;
}

/* --- guesses to resume from --- */

static bool is_due(const struct compose *compose, int done)
{
    const int every = compose->params->keep != NULL ? compose->params->keep_every : 0;
    return every > 0 && done / every > compose->last_stored / every;
}

/* Passes all guesses to `keep`. Every rank must have all guesses. done: total iterations. */
static lr_status keep_guesses(struct compose *compose, int done)
{
    const lr_guesses guesses = {.iterations = done,
                                .guess_iterations = done - compose->block_begin,
                                .count = compose->size,
                                .num_voxels = compose->num_voxels,
                                .values = compose->guesses};
    compose->last_stored = done;
    return compose->params->keep(compose->params->user, &guesses);
}

/* Passes an iteration of this rank's only guess to the caller, and stores the guesses if this is due (is_due). After
 * the last iteration of a block, the guesses are stored later, when they are composed. */
static lr_status on_iteration(void *user, const lr_iteration *done)
{
    struct compose *compose = user;
    const lr_recon_params *own = &compose->own[0];
    LR_TRY(own->iteration != NULL ? own->iteration(own->user, done) : LR_OK);
    if (done->number == compose->block_end || !is_due(compose, done->number)) return LR_OK;
    lr_vector guess =
        lr_vector_of_floats(compose->guesses + compose->first_own * compose->num_voxels, compose->num_voxels);
    LR_TRY(lr_vector_copy(done->image, &guess));
    LR_TRY(share_guesses(compose));
    return keep_guesses(compose, done->number);
}

/* --- the loop --- */

static lr_status allocate(struct compose *compose)
{
    static const char *const what = "the guesses of the ranks";
    const lr_log *log = compose->log;
    const int64_t size = compose->size, voxels = compose->num_voxels;
    int64_t pairs = 0;
    for (int k = 0; k < compose->num_own; k++) {
        const int64_t num_pairs = lors_of(&compose->own[k])->num_pairs;
        pairs = num_pairs > pairs ? num_pairs : pairs;
    }
    compose->pairs = lr_alloc(pairs, sizeof(*compose->pairs), what, log);
    if (compose->pairs == NULL) return LR_FAILED;
    for (int64_t k = 0; k < pairs; k++) compose->pairs[k] = (int32_t)k;

    /* A window has at least one pair. */
    const int64_t each = VALUES_AT_ONCE / (size + 2), most = each > LEAST_AT_ONCE ? each : LEAST_AT_ONCE;
    const struct lr_items items = {sizeof(*compose->windows), what, log};
    int64_t room = 0;
    for (int k = 0; k < compose->num_own; k++) {
        const lr_lors *lors = lors_of(&compose->own[k]);
        for (int64_t begin = 0, end = 1; begin < lors->num_pairs; begin = end++) {
            while (end < lors->num_pairs && lors->offsets[end + 1] - lors->offsets[begin] <= most) end++;
            const int64_t count = lors->offsets[end] - lors->offsets[begin];
            LR_TRY(lr_grow(&compose->windows, &room, compose->num_windows + 1, &items));
            compose->windows[compose->num_windows++] =
                (struct window){.of = &compose->own[k],
                                .part = {.pairs = compose->pairs + begin, .num_pairs = end - begin},
                                .is_all = begin == 0 && end == lors->num_pairs,
                                .first = lors->offsets[begin],
                                .count = count};
            compose->longest = count > compose->longest ? count : compose->longest;
        }
    }

    compose->guesses = lr_alloc(size * voxels, sizeof(float), what, log);
    compose->start = lr_alloc(voxels, sizeof(float), what, log);
    compose->image = lr_alloc(voxels, sizeof(float), what, log);
    compose->values = lr_alloc(size * compose->longest, sizeof(float), what, log);
    compose->measured = lr_alloc(compose->longest, sizeof(float), what, log);
    compose->additive = lr_alloc(compose->longest, sizeof(float), what, log);
    compose->data = lr_alloc(2 * compose->num_own, sizeof(*compose->data), what, log);
    compose->sums = lr_alloc(size * size + size + 1, sizeof(double), what, log);
    compose->weights = lr_alloc(size, sizeof(double), what, log);
    compose->residuals = lr_alloc(size, sizeof(double), what, log);
    const bool has_all = compose->guesses != NULL && compose->start != NULL && compose->image != NULL &&
                         compose->values != NULL && compose->measured != NULL && compose->additive != NULL &&
                         compose->data != NULL && compose->sums != NULL && compose->weights != NULL &&
                         compose->residuals != NULL;
    if (!has_all) return LR_FAILED;
    for (int k = 0; k < 2 * compose->num_own; k++) {
        const lr_recon_params *own = &compose->own[k / 2];
        const lr_vector *from = k % 2 == 0 ? own->data : own->additive;
        const lr_vector_params host = {.name = "the data of a guess", .log = log};
        LR_TRY(from != NULL ? lr_vector_bring(from, &host, &compose->data[k]) : LR_OK);
    }
    return LR_OK;
}

/* Iterates the guesses and composes them, block by block. */
static lr_status run(struct compose *compose)
{
    const int asked = compose->own[0].iterations;
    const int all = asked > 0 ? asked : DEFAULT_ITERATIONS;
    const int made = compose->params->guess_iterations, wanted = compose->params->local_iterations;
    const int each = wanted > 0 ? wanted : all + made; /* iterations of a guess in a block */
    compose->first = compose->done = compose->last_stored = compose->own[0].iterations_before;
    compose->block_begin = compose->first - made % each;
    LR_TRY(allocate(compose));

    const int end = compose->first + all;
    while (compose->done < end) {
        const int next = compose->block_begin + each;
        compose->block_end = next < end ? next : end;
        /* Each guess of this process is iterated alone until the end of the block. */
        for (int k = 0; k < compose->num_own; k++) {
            lr_recon_params local = compose->own[k];
            float *own = compose->guesses + (compose->first_own + k) * compose->num_voxels;
            lr_vector image = lr_vector_of_floats(own, compose->num_voxels);
            const lr_vector start = lr_vector_of_floats(compose->start, compose->num_voxels);
            local.comm = NULL;
            local.additive_sum = 0.0;
            local.iterations = compose->block_end - compose->done;
            local.iterations_before = compose->done;
            if (compose->done > compose->first) {
                memcpy(compose->start, own, (size_t)compose->num_voxels * sizeof(*own));
                local.initial = &start;
            }
            if (compose->num_own == 1 && compose->params->keep != NULL && compose->params->keep_every > 0) {
                local.iteration = on_iteration;
                local.user = compose;
            }
            LR_TRY(lr_recon(&local, &image));
        }
        LR_TRY(compose_guesses(compose, compose->block_end - compose->first));
        /* All guesses continue from the composed image. An update never changes a voxel that is 0, so where the
         * composed image is 0, each guess keeps its own value. */
        for (int g = 0; g < compose->size; g++) {
            float *values = compose->guesses + (int64_t)g * compose->num_voxels;
            for (int64_t v = 0; v < compose->num_voxels; v++)
                values[v] = compose->image[v] > 0.0f ? compose->image[v] : values[v];
        }
        compose->done = compose->block_begin = compose->block_end;
        LR_TRY(is_due(compose, compose->done) ? keep_guesses(compose, compose->done) : LR_OK);
    }
    return LR_OK;
}

static lr_status check(const struct compose *compose, const lr_vector *image)
{
    const lr_compose_params *params = compose->params;
    if (image == NULL || params->local_iterations < 0 || params->num_guesses < 0 || params->guess_iterations < 0) {
        return lr_error(compose->log, LR_USAGE,
                        "a composition needs an image to go to, and numbers of guesses and local "
                        "iterations that are not negative");
    }
    if (params->num_guesses > 0 && lr_comm_get_info(params->comm).size > 1) {
        return lr_error(compose->log, LR_USAGE, "%d guesses of each of %d ranks: a rank makes one, or one process all",
                        params->num_guesses, lr_comm_get_info(params->comm).size);
    }
    for (int k = 0; k < compose->num_own; k++) {
        const lr_recon_params *guess = &compose->own[k];
        const lr_recon_params *first = &compose->own[0];
        if (guess->op == NULL || guess->data == NULL)
            return lr_error(first->log, LR_USAGE, "a guess needs an operator and data");
        if (lr_additive_is_listed(guess)) {
            return lr_error(first->log, LR_USAGE,
                            "guesses are weighed by all LORs: give the additive term of all, not of those with "
                            "data alone");
        }
        LR_TRY(lr_recon_check_vectors(guess));
        const lr_operator_info *info = lr_operator_get_info(guess->op);
        if (info->of_events) {
            return lr_error(first->log, LR_USAGE,
                            "guesses are weighed by the counts of all LORs, and list mode has only "
                            "those of events: take histograms");
        }
        if (info->num_voxels != lr_operator_get_info(first->op)->num_voxels) {
            return lr_error(first->log, LR_USAGE, "guesses of %lld and %lld voxels: all are of one grid",
                            (long long)lr_operator_get_info(first->op)->num_voxels, (long long)info->num_voxels);
        }
    }

    return LR_OK;
}

lr_status lr_compose_sized(size_t given_bytes, const lr_compose_params *given, lr_vector *image)
{
    LR_TAKE(lr_compose_params, params, given, given_bytes);
    const bool has_all = params->guesses != NULL && params->num_guesses > 0;
    const lr_recon_params *own = has_all ? params->guesses : &params->local;
    const lr_comm_info comm = lr_comm_get_info(params->comm);
    const int num_own = has_all ? params->num_guesses : 1;
    struct compose compose = {.params = params,
                              .own = own,
                              .num_own = num_own,
                              .first_own = comm.rank * num_own,
                              .comm = params->comm,
                              .log = own->log,
                              .size = comm.size * num_own,
                              .begin_s = lr_clock_seconds()};
    LR_TRY(lr_comm_fail(params->comm, check(&compose, image)));
    compose.num_voxels = lr_operator_get_info(compose.own->op)->num_voxels;
    lr_status status = run(&compose);
    /* A stopped run returns the image that was composed last. */
    if (compose.has_image && (status == LR_OK || status == LR_CANCELLED)) {
        const lr_vector found = lr_vector_of_floats(compose.image, compose.num_voxels);
        const lr_status copied = lr_vector_copy(&found, image);
        status = copied != LR_OK ? copied : status;
    }
    lr_free_all(compose.pairs, compose.windows, compose.guesses, compose.start, compose.image, compose.values,
                compose.measured, compose.additive);
    for (int k = 0; compose.data != NULL && k < 2 * num_own; k++) lr_vector_destroy(&compose.data[k]);
    lr_free_all(compose.data, compose.sums, compose.weights, compose.residuals);

    return lr_comm_fail(params->comm, status);
}

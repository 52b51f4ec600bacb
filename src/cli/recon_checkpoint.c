/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * recon --checkpoint: what is needed to go on after the machine has failed. */
#include "recon.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct cli_option recon_checkpoint_options[] = {
    {"--checkpoint", "FILE", "what is needed to go on (HDF5), renewed after some iterations", false},
    {"--checkpoint-every", "K", "iterations; default 1", false},
    {"--resume", NULL,
     "go on from that file, where it is there, with any number of ranks; --combine paper with as "
     "many",
     false},
    {0},
};

void recon_read_checkpoint(struct cli_args *args, struct recon_request *request)
{
    static const int64_t range[2] = {1, 1000000};
    request->checkpoint = args_text(args, "--checkpoint");
    request->checkpoint_every = (int)args_int(args, "--checkpoint-every", 1, range);
    request->resumes = args_has(args, "--resume");
    if (request->checkpoint == NULL && (request->resumes || args_has(args, "--checkpoint-every")))
        args_complain(args, "--resume and --checkpoint-every need --checkpoint FILE");
}

/* --- what must stay the same --- */

/* Fowler, Noll and Vo's, of 64 bits. */
uint64_t recon_digest(uint64_t digest, const void *bytes, int64_t count)
{
    digest = digest != 0 ? digest : UINT64_C(0xcbf29ce484222325);
    for (int64_t k = 0; k < count; k++) digest = (digest ^ ((const unsigned char *)bytes)[k]) * UINT64_C(0x100000001b3);
    return digest;
}

/* One multiplication waits for that of the event before: lists have very many events. */
void recon_digest_event(uint64_t *digest, const lr_event *event)
{
    uint64_t ends, rest;
    unsigned char bytes[sizeof(rest)];
    memcpy(&ends, event->crystals, sizeof(ends));
    memcpy(bytes, &event->tof_mm, sizeof(event->tof_mm));
    memcpy(bytes + sizeof(event->tof_mm), &event->weight, sizeof(event->weight));
    memcpy(&rest, bytes, sizeof(rest));
    uint64_t mixed = ends * UINT64_C(0x9e3779b97f4a7c15) ^ rest;
    mixed = (mixed ^ mixed >> 32) * UINT64_C(0xbf58476d1ce4e5b9);
    *digest = *digest != 0 ? *digest : UINT64_C(0xcbf29ce484222325);
    *digest = (*digest ^ mixed ^ mixed >> 29) * UINT64_C(0x94d049bb133111eb);
    *digest ^= *digest >> 32;
}

/* A line, part by part. */
struct key {
    char *text;
    size_t used;
};

static void add(struct key *key, const char *format, ...)
{
    va_list words;
    va_start(words, format);
    const int length = vsnprintf(key->text + key->used, LR_CHECKPOINT_KEY - key->used, format, words);
    va_end(words);
    const size_t room = LR_CHECKPOINT_KEY - 1 - key->used;
    key->used += length >= 0 && (size_t)length < room ? (size_t)length : room;
}

static void add_contents(struct key *key, const char *what, uint64_t digest)
{
    add(key, "; %s, contents %016llx", what, (unsigned long long)digest);
}

static uint64_t digest_scanner(const lr_scanner *scanner)
{
    const lr_coincidence *rules = &scanner->coincidence;
    const double whole[] = {rules->field_of_view_mm, rules->min_module_difference,
                            rules->limits_ring_difference ? rules->max_ring_difference : -1,
                            scanner->detection_depth_mm, scanner->crystal_mu_per_mm};
    uint64_t digest = recon_digest(0, whole, sizeof(whole));
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        const double *c = module->centre_mm, *u = module->u, *v = module->v;
        const double numbers[] = {c[0],
                                  c[1],
                                  c[2],
                                  u[0],
                                  u[1],
                                  u[2],
                                  v[0],
                                  v[1],
                                  v[2],
                                  module->crystals[0],
                                  module->crystals[1],
                                  module->pitch_mm[0],
                                  module->pitch_mm[1],
                                  module->face_mm[0],
                                  module->face_mm[1],
                                  module->depth_mm,
                                  module->mu_per_mm,
                                  module->layer};
        digest = recon_digest(digest, numbers, sizeof(numbers));
    }
    return digest;
}

static uint64_t digest_image(const lr_image *image)
{
    const lr_grid *grid = &image->grid;
    const double lengths[] = {grid->voxel_mm[0],  grid->voxel_mm[1],  grid->voxel_mm[2],
                              grid->origin_mm[0], grid->origin_mm[1], grid->origin_mm[2]};
    uint64_t digest = recon_digest(0, grid->size, sizeof(grid->size));
    digest = recon_digest(digest, lengths, sizeof(lengths));
    return recon_digest(digest, image->values, lr_grid_num_voxels(grid) * (int64_t)sizeof(*image->values));
}

lr_status recon_compare_factors(const struct recon *recon)
{
    const struct setup *setup = &recon->setup;
    const lr_grid *grid = &setup->grid;
    const float *efficiencies = recon->setup.factors.efficiencies;
    const double lengths[] = {grid->voxel_mm[0],  grid->voxel_mm[1],  grid->voxel_mm[2],
                              grid->origin_mm[0], grid->origin_mm[1], grid->origin_mm[2]};
    const uint64_t size = recon_digest(0, grid->size, sizeof(grid->size));
    if (recon->cluster.comm == NULL) return LR_OK;
    CLI_TRY(recon_compare_contents(recon, "scanner", digest_scanner(setup->scanner)));
    CLI_TRY(recon_compare_contents(recon, "grid", recon_digest(size, lengths, sizeof(lengths))));
    CLI_TRY(recon_compare_contents(
        recon, "list of efficiencies",
        efficiencies != NULL
            ? recon_digest(0, efficiencies, setup->scanner->num_crystals * (int64_t)sizeof(*efficiencies))
            : 0));
    return recon_compare_contents(recon, "map of attenuation", setup->mu != NULL ? digest_image(setup->mu) : 0);
}

lr_status recon_compare_images(const struct recon *recon)
{
    static const char *const names[] = {"image of the prior's weights", "image to start from", "true image"};
    const struct recon_inputs *inputs = &recon->inputs;
    const lr_image *const images[] = {inputs->kappa, inputs->initial, inputs->truth};
    if (recon->cluster.comm == NULL) return LR_OK;
    for (int k = 0; k < 3; k++) {
        const uint64_t digest = images[k] != NULL ? digest_image(images[k]) : 0;
        CLI_TRY(recon_compare_contents(recon, names[k], digest));
    }
    return recon_compare_contents(recon, "number of iterations before",
                                  recon_digest(0, &recon->request.iterations_before, sizeof(int)));
}

/* Files of one name may hold other values when a run is gone on with. */
static void add_inputs(const struct recon *recon, struct key *key)
{
    const lr_scanner *scanner = recon->setup.scanner;
    const float *efficiencies = recon->setup.factors.efficiencies;
    if (scanner != NULL) add_contents(key, "geometry", digest_scanner(scanner));
    if (scanner != NULL && efficiencies != NULL) {
        add_contents(key, "efficiencies",
                     recon_digest(0, efficiencies, scanner->num_crystals * (int64_t)sizeof(*efficiencies)));
    }
    if (recon->setup.mu != NULL) {
        add_contents(key, recon->request.mu_as == MU_LINES ? "attenuation along lines" : "attenuation as factors",
                     digest_image(recon->setup.mu));
    }
    if (recon->inputs.kappa != NULL) add_contents(key, "the prior's weights", digest_image(recon->inputs.kappa));
    if (recon->beside != 0) add_contents(key, "what is known beside events", recon->beside);
}

/* What the model of a family has beside. */
static void add_family(const struct recon *recon, struct key *key)
{
    const lr_listmode_info *events = lr_listmode_get_info(recon->setup.op);
    const lr_resolution *resolution = &recon->direct.kernel.resolution;
    if (events != NULL) {
        add(key,
            "; kernel %d%s %.9g %.9g; blobs of %.9g mm; times of flight %s; sensitivity of %lld "
            "lines",
            (int)events->kernel, events->tube.as_paper ? " as in the paper" : "", events->tube.width_mm,
            events->tube.fwhm_mm, events->blobs.radius_mm, recon->frames.has_tof ? "yes" : "no",
            (long long)recon->frames.params->sensitivity_lines);
    } else if (recon->request.family == RECON_DIRECT) {
        add(key, "; kernel %.9g ps %d %.9g %.9g mm; factors %s", resolution->tof_ps, (int)resolution->model,
            resolution->radial_mm, resolution->axial_mm, recon->direct_factors != NULL ? "yes" : "none");
    }
}

static void add_model(const struct recon *recon, struct key *key)
{
    static const char *const families[] = {"correspondence", "direct", "listmode"};
    const struct recon_request *request = &recon->request;
    const lr_operator_info *info = lr_operator_get_info(recon->setup.op);
    const lr_grid *grid = &recon->setup.grid;
    add(key, "operator %s; scanner %.200s", families[request->family],
        recon->setup.scanner != NULL ? recon->setup.scanner->name : "none");
    add(key, "; grid %d,%d,%d of %.17g,%.17g,%.17g mm at %.17g,%.17g,%.17g", grid->size[0], grid->size[1],
        grid->size[2], grid->voxel_mm[0], grid->voxel_mm[1], grid->voxel_mm[2], grid->origin_mm[0], grid->origin_mm[1],
        grid->origin_mm[2]);
    add(key, "; backend %s, mode %s, rays %d, samples %d,%d,%d, steps of attenuation %d", info->backend,
        info->mode == LR_MODE_EXACT ? "exact" : "sampled", info->rays, info->samples[0], info->samples[1],
        info->samples[2], info->mu_steps);
    if (info->penetration) add(key, "; penetration");
    add_family(recon, key);
    add_inputs(recon, key);
    add(key, "; efficiencies %s; attenuation %s; randoms %s", request->efficiencies != NULL ? "yes" : "none",
        recon->setup.mu != NULL ? "yes" : "none", recon->inputs.randoms != NULL ? "yes" : "none");
}

static void add_algorithm(const struct recon *recon, struct key *key)
{
    const struct recon_request *request = &recon->request;
    const lr_rdp *prior = &request->prior;
    add(key, "; algorithm %s; subsets %d; relaxation %.9g falling by %.9g", recon_algorithms[request->algorithm],
        request->subsets, request->relaxation, request->relaxation_fall);
    if (request->algorithm == RECON_RAMLA) add(key, "; steps %s", request->own_steps ? "own" : "common");
    add(key, "; prior %s %.9g %.9g %.9g; resolution %.9g,%.9g,%.9g mm", request->has_prior ? "rdp" : "none",
        prior->beta, prior->gamma, prior->epsilon, request->psf_mm[0], request->psf_mm[1], request->psf_mm[2]);
    add(key, "; combine %s", recon_schemes[request->combine]);
    if (request->combine != RECON_EXACT) add(key, ", local iterations %d", request->local_iterations);
    add(key, "; begun after %d iterations", request->first_after);
    if (request->bootstraps) add(key, "; bootstrap replicate %llu", (unsigned long long)request->bootstrap_seed);
}

static void add_frames(const struct recon *recon, struct key *key)
{
    const struct recon_frames *frames = &recon->frames;
    uint64_t digest = 0;
    for (int k = 0; k < frames->count; k++) {
        const double times_s[2] = {frames->list[k].begin_s, frames->list[k].end_s};
        digest = recon_digest(digest, times_s, sizeof(times_s));
    }
    if (frames->count > 0) {
        add(key, "; %d frames, part %lld of %lld, contents %016llx", frames->count, (long long)frames->share[0],
            (long long)frames->share[1], (unsigned long long)digest);
    }
}

/* All that the image depends on. */
static void describe(const struct recon *recon, char text[LR_CHECKPOINT_KEY])
{
    struct key key = {.text = text};
    text[0] = '\0';
    add_model(recon, &key);
    add_algorithm(recon, &key);
    add_frames(recon, &key);
    add(&key, "; measurement, contents %016llx", (unsigned long long)recon->digest);
}

/* --- writing --- */

/* Every so many iterations, or at the first chance after that. */
static bool is_due(const struct recon *recon, int iterations)
{
    const int every = recon->request.checkpoint_every;
    return recon->request.checkpoint != NULL && iterations / every > recon->saved / every;
}

/* Errors of a checkpoint are warnings of the run, and told once until one is written again. */
static void demote(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    struct recon *recon = user;
    if (level != LR_LOG_ERROR) {
        recon->setup.report->log.write(recon->setup.report, level, status, sentence);
    } else if (!recon->lacks_checkpoint) {
        report_warn(recon->setup.report,
                    "%s: no checkpoint of iteration %d: the run goes on, and tries again when the "
                    "next one is due",
                    sentence, recon->saved);
        recon->lacks_checkpoint = true;
    }
}

/* checkpoint: its images and what is known of them alone. */
static lr_status save(struct recon *recon, lr_checkpoint *checkpoint)
{
    const lr_log log = {demote, recon};
    recon->saved = checkpoint->iterations;
    if (recon->cluster.rank != 0) return LR_OK;
    checkpoint->grid = recon->setup.grid;
    checkpoint->ranks = recon->cluster.size;
    checkpoint->frame = recon->frames.count > 0 ? recon->frames.current + 1 : 0;
    describe(recon, checkpoint->key);
    if (lr_checkpoint_write(recon->request.checkpoint, checkpoint, &log) == LR_OK) recon->lacks_checkpoint = false;
    return LR_OK;
}

/* images: [count] at any place. */
static lr_status save_images(struct recon *recon, lr_checkpoint *checkpoint, const lr_vector *const *images, int count)
{
    const int64_t num_values = images[0]->count;
    if (recon->cluster.rank != 0) return save(recon, checkpoint);
    checkpoint->num_images = count;
    checkpoint->num_values = num_values;
    checkpoint->images = malloc((size_t)(count * num_values) * sizeof(*checkpoint->images));
    lr_status status =
        checkpoint->images != NULL ? LR_OK : report_error(recon->setup.report, LR_FAILED, "no memory for a checkpoint");
    for (int k = 0; status == LR_OK && k < count; k++) {
        lr_vector to = lr_vector_of_floats(checkpoint->images + k * num_values, num_values);
        status = lr_vector_copy(images[k], &to);
    }
    status = status == LR_OK ? save(recon, checkpoint) : status;
    free(checkpoint->images);
    checkpoint->images = NULL;
    return status;
}

lr_status recon_save_checkpoint(struct recon *recon, const lr_iteration *done)
{
    lr_checkpoint checkpoint = {.iterations = done->number};
    const lr_vector *const images[1] = {done->image};
    return recon->request.combine == RECON_EXACT && is_due(recon, done->number)
               ? save_images(recon, &checkpoint, images, 1)
               : LR_OK;
}

lr_status recon_keep_guesses(void *user, const lr_guesses *guesses)
{
    struct recon *recon = user;
    lr_checkpoint checkpoint = {.num_images = guesses->count,
                                .num_values = guesses->num_voxels,
                                .images = (float *)guesses->values,
                                .iterations = guesses->iterations,
                                .guess_iterations = guesses->guess_iterations};
    return save(recon, &checkpoint);
}

lr_status recon_keep_state(void *user, const lr_distributed_state *state)
{
    struct recon *recon = user;
    lr_checkpoint checkpoint = {.iterations = state->iterations,
                                .local_iterations = state->local_iterations,
                                .log_likelihood = state->log_likelihood};
    const lr_vector *const images[2] = {state->image, state->of_em};
    return is_due(recon, state->iterations) ? save_images(recon, &checkpoint, images, 2) : LR_OK;
}

/* --- going on --- */

static lr_status refuse(const struct recon *recon, const char *why)
{
    return report_error(recon->setup.report, LR_BAD_INPUT, "%s: %s: it is damaged: begin anew without --resume",
                        recon->request.checkpoint, why);
}

/* Whether it has what the scheme goes on from. */
static lr_status check_images(const struct recon *recon)
{
    const lr_checkpoint *checkpoint = &recon->checkpoint;
    const int wanted[] = {[RECON_EXACT] = 1, [RECON_PAPER] = checkpoint->ranks, [RECON_DISTRIBUTED] = 2};
    if (recon->request.combine == RECON_PAPER && checkpoint->ranks != recon->cluster.size) {
        return report_error(recon->setup.report, LR_USAGE,
                            "%s has the guesses of %d ranks, and a guess belongs to its rank's "
                            "share of the data: start %d ranks and not %d, or begin anew without "
                            "--resume",
                            recon->request.checkpoint, checkpoint->ranks, checkpoint->ranks, recon->cluster.size);
    }
    if (checkpoint->num_images != wanted[recon->request.combine])
        return refuse(recon, "it has another number of images than the scheme goes on from");
    return checkpoint->num_values == lr_operator_get_info(recon->setup.op)->num_voxels
               ? LR_OK
               : refuse(recon, "its images have another size than the operator's");
}

static void say(const struct recon *recon)
{
    const lr_checkpoint *checkpoint = &recon->checkpoint;
    const bool is_other = recon->request.combine == RECON_DISTRIBUTED && checkpoint->ranks != recon->cluster.size;
    char frame[32] = "";
    if (checkpoint->frame > 0) snprintf(frame, sizeof(frame), " of frame %d", checkpoint->frame);
    report_info(recon->setup.report, "%s: goes on after iteration %d%s, of %d rank%s%s", recon->request.checkpoint,
                checkpoint->iterations, frame, checkpoint->ranks, checkpoint->ranks == 1 ? "" : "s",
                is_other ? "; local iterations of another number of ranks take another way to the "
                           "same image"
                         : "");
}

/* Iterations that are left: none where the run had ended. */
static lr_status count_left(struct recon *recon)
{
    struct recon_request *request = &recon->request;
    const int made = recon->checkpoint.iterations - request->first_after;
    if (made < 1) return refuse(recon, "it has fewer iterations than --after");
    if (made > request->iterations) {
        return report_error(recon->setup.report, LR_USAGE,
                            "%s has %d iterations already, and %d are asked for: ask for as many, or "
                            "leave out --resume",
                            request->checkpoint, made, request->iterations);
    }
    request->iterations -= made;
    request->iterations_before = recon->checkpoint.iterations;
    recon->saved = recon->checkpoint.iterations;
    return LR_OK;
}

static lr_status take(struct recon *recon)
{
    const lr_checkpoint *checkpoint = &recon->checkpoint;
    const int64_t num_values = checkpoint->num_values;
    const int64_t own = recon->request.combine == RECON_PAPER ? recon->cluster.rank : 0;
    CLI_TRY(recon_compare_ranks(
        recon, "checkpoint",
        recon_digest(0, checkpoint->images, checkpoint->num_images * num_values * (int64_t)sizeof(float)),
        checkpoint->num_images * num_values));
    CLI_TRY(check_images(recon));
    CLI_TRY(count_left(recon));
    recon->start = checkpoint->images + own * num_values;
    say(recon);
    return LR_OK;
}

/* Whether the file is there, as all ranks see it. */
static lr_status find_file(const struct recon *recon, bool *is_there)
{
    const bool own = access(recon->request.checkpoint, F_OK) == 0;
    CLI_TRY(lr_comm_same(recon->cluster.comm, "view of the checkpoint", own ? "the file is there" : "no such file"));
    *is_there = own;
    return LR_OK;
}

lr_status recon_resume(struct recon *recon)
{
    char key[LR_CHECKPOINT_KEY];
    bool is_there = false;
    if (!recon->request.resumes) return LR_OK;
    recon->request.resumes = false; /* the frames that follow begin with their first iteration */
    CLI_TRY(find_file(recon, &is_there));
    if (!is_there) {
        report_info(recon->setup.report, "%s is not there: begins with the first iteration", recon->request.checkpoint);
        return LR_OK;
    }
    describe(recon, key);
    CLI_TRY(lr_checkpoint_read(recon->request.checkpoint, key, &recon->checkpoint, &recon->setup.report->log));
    return take(recon);
}

void recon_forget_checkpoint(struct recon *recon)
{
    lr_checkpoint_finish(&recon->checkpoint);
    recon->start = NULL;
    recon->saved = recon->request.first_after;
}

/* --- frames --- */

/* Images of frames before that of the checkpoint are there already. */
static lr_status check_outputs(const struct recon *recon, int frame)
{
    const struct recon_frames *frames = &recon->frames;
    if (frame < frames->range[0] || frame >= frames->range[1]) {
        return report_error(recon->setup.report, LR_USAGE,
                            "%s is amid frame %d, which this run does not have: give the same "
                            "--frames and --part, or begin anew without --resume",
                            recon->request.checkpoint, frame + 1);
    }
    for (int64_t k = frames->range[0]; k < frame && recon->cluster.rank == 0; k++) {
        if (access(frames->list[k].output, F_OK) != 0) {
            return report_error(recon->setup.report, LR_BAD_INPUT,
                                "%s is amid frame %d, and the image of frame %lld, %s, is missing: "
                                "put it back, or begin anew without --resume",
                                recon->request.checkpoint, frame + 1, (long long)k + 1, frames->list[k].output);
        }
    }
    return LR_OK;
}

lr_status recon_find_frame(struct recon *recon)
{
    lr_checkpoint checkpoint;
    bool is_there = false;
    CLI_TRY(recon->request.resumes ? find_file(recon, &is_there) : LR_OK);
    if (!is_there) return LR_OK;
    CLI_TRY(lr_checkpoint_read(recon->request.checkpoint, NULL, &checkpoint, &recon->setup.report->log));
    const int frame = checkpoint.frame - 1;
    lr_checkpoint_finish(&checkpoint);
    if (frame < 0) return LR_OK; /* of one image: the key is going to say so */
    CLI_TRY(check_outputs(recon, frame));
    recon->frames.range[0] = frame;
    return LR_OK;
}

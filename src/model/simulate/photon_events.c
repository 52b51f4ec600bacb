/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Photon pairs from an activity to the crystals, with time of flight: a geometric Monte Carlo simulation. The random
 * numbers of a pair depend only on the seed and the number of the pair (Philox4x32-10 of Random123). */
#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/units.h"
#include "base/vec.h"
#include "model/lors/attenuation.h"
#include "model/scanner/scanner.h"
#include "model/simulate/random.h"
#include "model/simulate/rays.h"

#include <lr/events.h>
#include <math.h>
#include <stdlib.h>

/* RUN_PAIRS: number of pairs of a run, which one worker simulates. RUNS: number of runs between two deliveries of
 * events. */
enum { RUN_PAIRS = 1024, RUNS = 512 };

/* Number of pairs between the prefetch of a voxel and its use. */
enum { AHEAD = 8 };

/* Largest number of equal shares into which the total activity is divided. A table has the first voxel of each share,
 * so that the voxel of a pair is found quickly. */
enum { MOST_SHARES = 1 << 20 };

/* Upper bound of the normally distributed random numbers. The smallest uniform number is 2^-54, and sqrt(2 log(2^54)) =
 * 8.652. */
static const double most_sigmas = 8.66;

/* Largest number of draws of two crystals until the two are in coincidence. */
enum { MOST_DRAWS = 1 << 20 };

static const double usual_duration_s = 60;
static const int64_t most_pairs_an_event = 100000;

struct simulation {
    const lr_photon_params *params;
    double *cumulated; /* owned [num_voxels]: sum of the activity up to and including the voxel */
    int64_t num_voxels;
    int num_shares;
    int64_t *share_begin;      /* owned [num_shares + 1]: voxel in which each share begins */
    double sigma_mm;           /* standard deviation of tof_mm */
    double (*detection_mm)[3]; /* owned [num_modules]: centres of the detection planes */
    struct lr_sight sight;
    struct lr_mu_lines mu; /* zero without a mu-map */
    int num_layers;
    double most_up; /* largest axial component, up or down, of the direction of a line that hits two modules */
    struct batch {
        lr_event *events; /* owned [RUNS][RUN_PAIRS] */
        int num_events[RUNS];
        int64_t first_pair;
    } batches[2]; /* one batch is simulated while the other is delivered */
    struct batch *following;
    int threads;
    int64_t next_pair;
    double duration_s;
    int64_t delivered, randoms; /* number of delivered events, and of randoms among them */
    int64_t emissions;          /* number of pairs up to the last detected one */
    double *singles; /* owned [num_crystals]: sum of the randoms' values up to and including the crystal; NULL =
                                   no randoms */
};

/* Computes random numbers 2 part and 2 part + 1 of a pair, uniform in (0, 1). */
static void uniform_pair(uint64_t seed, int64_t pair, uint32_t part, double numbers[2])
{
    lr_random_pair(&(struct lr_random){seed, (uint64_t)pair, part, LR_RANDOM_PHOTONS}, numbers);
}

/* The first index from low on whose cumulated value exceeds `wanted`; high if no earlier one does. */
static int64_t first_above(const double *cumulated, int64_t low, int64_t high, double wanted)
{
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (cumulated[middle] > wanted)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

struct pair {
    int64_t number;
    double point_mm[3], direction[3];
};

/* A pair that may be detected, and its random numbers so far. */
struct drawn {
    int64_t number;
    double up, azimuth;    /* direction; up: axial component, azimuth: transaxial angle / (2 pi) */
    double share, place;   /* share: random number that selects the voxel; place: random number for the position in
                              it */
    const int64_t *voxels; /* first voxels of the pair's share of the activity and of the next share */
};

/* Draws the rest of a pair: its voxel, its point, its direction, and its blur. */
static struct pair complete_pair(const struct simulation *simulation, const struct drawn *drawn)
{
    const lr_photon_params *params = simulation->params;
    const lr_grid *grid = &params->activity->grid;
    const double up = drawn->up, across = sqrt(1 - up * up), angle = 2 * LR_PI * drawn->azimuth;
    const double wanted = drawn->share * simulation->cumulated[simulation->num_voxels - 1];
    const int64_t voxel = first_above(simulation->cumulated, drawn->voxels[0], drawn->voxels[1], wanted);
    struct pair pair = {.number = drawn->number};
    double u[2];
    uniform_pair(params->seed, drawn->number, 1, u);
    lr_grid_voxel_centre(grid, voxel, pair.point_mm);
    const double place[3] = {drawn->place, u[0], u[1]};
    for (int k = 0; k < 3; k++) pair.point_mm[k] += (place[k] - 0.5) * grid->voxel_mm[k];
    pair.direction[0] = across * cos(angle);
    pair.direction[1] = across * sin(angle);
    pair.direction[2] = up;

    const lr_photon_blur *blur = &params->blur;
    if (blur->radial_mm != NULL || blur->axial_mm > 0) {
        /* The line is shifted perpendicular to itself. The radial and axial directions are defined like in a view along
         * the line (lr/direct.h). Both directions are arbitrary for a line along the axis. */
        const double *along = pair.direction;
        const double transaxial = hypot(along[0], along[1]);
        const double cosine = transaxial > 0 ? along[0] / transaxial : 1;
        const double sine = transaxial > 0 ? along[1] / transaxial : 0;
        const double radial[3] = {-sine, cosine, 0};
        const double axial[3] = {-along[2] * cosine, -along[2] * sine, transaxial};
        uniform_pair(params->seed, drawn->number, 4, u);
        const double size = sqrt(-2 * log(u[0])) / LR_FWHM_PER_SIGMA;
        const double radial_mm =
            blur->radial_mm != NULL ? blur->radial_mm(blur->user, fabs(vec_dot(pair.point_mm, radial))) : 0;
        vec_add_scaled(pair.point_mm, size * cos(2 * LR_PI * u[1]) * radial_mm, radial, pair.point_mm);
        vec_add_scaled(pair.point_mm, size * sin(2 * LR_PI * u[1]) * blur->axial_mm, axial, pair.point_mm);
    }
    return pair;
}

/* Finds the distance to the module's detection plane and the crystal hit there. The crystal is -1 if the photon hits a
 * gap or the back, which stop the photon as well. False if the module is not hit. */
static bool meet(const struct simulation *simulation, int m, const struct pair *pair, double sign, double *distance_mm,
                 int *crystal)
{
    const lr_scanner *scanner = simulation->params->lors->scanner;
    const lr_module *module = &scanner->modules[m];
    const double *centre_mm = simulation->detection_mm[m];
    double to[3], hit[3];
    vec_sub(centre_mm, pair->point_mm, to);
    const double approach = sign * vec_dot(pair->direction, module->normal);
    const double height = vec_dot(to, module->normal);
    const bool is_front = height < 0;
    if (!(is_front ? approach < 0 : height > 0 && approach > 0)) return false;
    *distance_mm = height / approach;
    vec_add_scaled(pair->point_mm, sign * *distance_mm, pair->direction, hit);
    vec_sub(hit, centre_mm, hit);
    const double place[2] = {vec_dot(hit, module->u), vec_dot(hit, module->v)};
    int cell[2];
    bool is_face = is_front;
    for (int k = 0; k < 2; k++) {
        const int count = module->crystals[k];
        const double at = place[k] / module->pitch_mm[k] + 0.5 * count;
        if (!(at >= 0 && at < count)) return false;
        cell[k] = (int)at;
        is_face = is_face && fabs(at - cell[k] - 0.5) <= 0.5 * module->face_mm[k] / module->pitch_mm[k];
    }
    *crystal = is_face ? scanner->first_crystal[m] + cell[1] * module->crystals[0] + cell[0] : -1;
    return true;
}

/* The crystal that a pair's photon hits first in a layer; -1 = none. sign: 1 for the photon along the pair's direction,
 * -1 for the opposite one. */
static int first_crystal(const struct simulation *simulation, const struct pair *pair, double sign, int layer)
{
    const struct lr_sight *sight = &simulation->sight;
    const double direction[3] = {sign * pair->direction[0], sign * pair->direction[1], sign * pair->direction[2]};
    const struct lr_sight_sectors sectors = lr_sight_find(sight, pair->point_mm, direction);
    double nearest_mm = HUGE_VAL;
    int nearest = -1, first = -1; /* index of the nearest module, and its crystal */
    for (int s = sectors.first; s <= sectors.last; s++) {
        const int sector = s % LR_SIGHT_SECTORS;
        for (int k = sight->first[sector]; k < sight->first[sector + 1]; k++) {
            const int m = sight->modules[k];
            double distance_mm;
            int crystal;
            if (sight->scanner->modules[m].layer == layer && meet(simulation, m, pair, sign, &distance_mm, &crystal) &&
                (distance_mm < nearest_mm || (distance_mm == nearest_mm && m < nearest))) {
                nearest_mm = distance_mm;
                nearest = m;
                first = crystal;
            }
        }
    }
    return first;
}

/* Converts the pair to an event. The event's time is the number of the pair within its run, until the event is
 * delivered. Returns false if the pair is not detected. */
static bool detect(const struct simulation *simulation, const struct pair *pair, lr_event *event)
{
    const lr_lors *lors = simulation->params->lors;
    double a_mm[3], b_mm[3], along[3], from_a[3];
    int layers[2];
    /* Chooses the layer in which each of the two photons may be detected. All layers are equally likely: without
     * crystal penetration, each layer counts as if it were the only one. */
    double u[2] = {0, 0};
    if (simulation->num_layers > 1) uniform_pair(simulation->params->seed, pair->number, 5, u);
    layers[0] = (int)(u[0] * simulation->num_layers);
    layers[1] = (int)(u[1] * simulation->num_layers);

    const int a = first_crystal(simulation, pair, -1, layers[0]);
    const int b = a >= 0 ? first_crystal(simulation, pair, 1, layers[1]) : -1;
    const int64_t lor = b >= 0 ? lr_lors_number(lors, a, b) : -1;
    if (lor < 0 || !lr_lors_in_coincidence(lors, lor)) return false;
    lr_scanner_hit_centre(lors->scanner, a, a_mm);
    lr_scanner_hit_centre(lors->scanner, b, b_mm);
    if (simulation->params->mu != NULL) {
        double from[3], to[3];
        lr_mu_lines_place(&simulation->mu, a_mm, from);
        lr_mu_lines_place(&simulation->mu, b_mm, to);
        uniform_pair(simulation->params->seed, pair->number, 6, u);
        if (u[0] > exp(-lr_mu_lines_integral(&simulation->mu, from, to))) return false;
    }
    vec_sub(b_mm, a_mm, along);
    vec_sub(pair->point_mm, a_mm, from_a);
    const double length_mm = vec_length(along);
    const double place_mm = vec_dot(from_a, along) / length_mm - 0.5 * length_mm;
    uniform_pair(simulation->params->seed, pair->number, 3, u);
    const double deviation_mm = sqrt(-2 * log(u[0])) * cos(2 * LR_PI * u[1]) * simulation->sigma_mm;
    *event = (lr_event){.crystals = {a, b}, .tof_mm = (float)(place_mm + deviation_mm), .weight = 1};
    event->time_ms = (uint32_t)(pair->number % RUN_PAIRS);
    return true;
}

/* Simulates runs of pairs, and counts the events of each run. The data for finding a pair's voxel is prefetched. */
static void follow_runs(void *user, int64_t begin, int64_t end)
{
    const struct simulation *simulation = user;
    struct batch *batch = simulation->following;
    for (int64_t run = begin; run < end; run++) {
        struct drawn drawn[RUN_PAIRS]; /* pairs that may be detected */
        const uint64_t seed = simulation->params->seed;
        const int64_t first = batch->first_pair + run * RUN_PAIRS;
        int num = 0;
        for (int64_t number = first; number < first + RUN_PAIRS; number++) {
            double u[2];
            uniform_pair(seed, number, 2, u);
            const double up = 2 * u[0] - 1;
            if (fabs(up) <= simulation->most_up)
                drawn[num++] = (struct drawn){.number = number, .up = up, .azimuth = u[1]};
        }
        for (int k = 0; k < num; k++) {
            double u[2];
            uniform_pair(seed, drawn[k].number, 0, u);
            drawn[k].share = u[0];
            drawn[k].place = u[1];
            drawn[k].voxels = &simulation->share_begin[(int)(u[0] * simulation->num_shares)];
            __builtin_prefetch(drawn[k].voxels);
        }
        lr_event *events = batch->events + run * RUN_PAIRS;
        int num_events = 0;
        for (int k = 0; k < num; k++) {
            const int ahead = k + AHEAD < num ? k + AHEAD : k;
            __builtin_prefetch(&simulation->cumulated[drawn[ahead].voxels[0]]);
            const struct pair pair = complete_pair(simulation, &drawn[k]);
            num_events += detect(simulation, &pair, &events[num_events]);
        }
        batch->num_events[run] = num_events;
    }
}

static void follow_batch(void *user)
{
    struct simulation *simulation = user;
    lr_parallel_for(simulation->threads, RUNS, 1, follow_runs, simulation);
}

/* Assigns the next pairs to a batch. known: number of events found so far. */
static lr_status begin_batch(struct simulation *simulation, struct batch *batch, int64_t known)
{
    if (simulation->next_pair > most_pairs_an_event * (known + 1)) {
        return lr_error(simulation->params->log, LR_FAILED,
                        "of %lld photon pairs %lld are detected: the activity lies where the scanner does not see it%s",
                        (long long)simulation->next_pair, (long long)known,
                        simulation->params->mu != NULL ? ", or the mu-map absorbs nearly all: check its unit" : "");
    }
    batch->first_pair = simulation->next_pair;
    simulation->next_pair += (int64_t)RUNS * RUN_PAIRS;
    simulation->following = batch;
    return LR_OK;
}

/* Draws the random that becomes event `number` of the list. place: a uniform random number for the time of flight. */
static lr_status draw_random(const struct simulation *simulation, int64_t number, double place, lr_event *event)
{
    const lr_photon_params *params = simulation->params;
    const lr_lors *lors = params->lors;
    const int last = lors->scanner->num_crystals - 1;
    for (uint32_t draw = 1; draw < MOST_DRAWS; draw++) {
        double u[2];
        lr_random_pair(&(struct lr_random){params->seed, (uint64_t)number, draw, LR_RANDOM_RANDOMS}, u);
        const int a = (int)first_above(simulation->singles, 0, last, u[0] * simulation->singles[last]);
        const int b = (int)first_above(simulation->singles, 0, last, u[1] * simulation->singles[last]);
        const int64_t lor = lr_lors_number(lors, a, b);
        if (lor >= 0 && lr_lors_in_coincidence(lors, lor)) {
            *event = (lr_event){.crystals = {a, b}, .tof_mm = (float)((place - 0.5) * params->window_mm), .weight = 1};
            return LR_OK;
        }
    }
    return lr_error(params->log, LR_USAGE, "randoms: no two crystals that have singles are in coincidence");
}

/* Delivers the next pairs, and the randoms among them. Each place in the list is equally likely to have a random. */
static lr_status deliver(struct simulation *simulation, const lr_event *pairs, int num, const lr_event_sink *sink)
{
    const lr_photon_params *params = simulation->params;
    const int64_t num_randoms = simulation->singles != NULL ? params->num_randoms : 0,
                  total = params->count + num_randoms;
    lr_event events[RUN_PAIRS];
    lr_status status = LR_OK;
    int filled = 0;
    for (int k = 0; status == LR_OK && simulation->delivered < total; simulation->delivered++) {
        const int64_t number = simulation->delivered, left = num_randoms - simulation->randoms;
        double u[2] = {1.0, 0.0};
        if (left > 0) lr_random_pair(&(struct lr_random){params->seed, (uint64_t)number, 0, LR_RANDOM_RANDOMS}, u);
        if (u[0] * (double)(total - number) < (double)left) {
            status = draw_random(simulation, number, u[1], &events[filled]);
            simulation->randoms++;
        } else if (k < num) {
            events[filled] = pairs[k++];
        } else {
            break;
        }
        events[filled++].time_ms =
            (uint32_t)fmin(1e3 * simulation->duration_s * ((double)number / (double)total), UINT32_MAX);
        if (filled == RUN_PAIRS) {
            status = status == LR_OK ? sink->take(sink->user, events, filled) : status;
            filled = 0;
        }
    }
    return status == LR_OK && filled > 0 ? sink->take(sink->user, events, filled) : status;
}

static lr_status run(struct simulation *simulation, const lr_event_sink *sink)
{
    const lr_photon_params *params = simulation->params;
    const int64_t wanted = params->count;
    int64_t found = 0;
    simulation->threads = params->threads > 0 ? params->threads : lr_num_processors();
    if (wanted > 0) {
        LR_TRY(begin_batch(simulation, &simulation->batches[0], 0));
        follow_batch(simulation);
    }
    for (int current = 0; found < wanted; current = 1 - current) {
        /* A batch is delivered while the next one, if needed, is simulated. */
        const struct batch *batch = &simulation->batches[current];
        int64_t known = found;
        for (int n = 0; n < RUNS; n++) known += batch->num_events[n];
        struct lr_background background = {0};
        if (known < wanted) {
            LR_TRY(begin_batch(simulation, &simulation->batches[1 - current], known));
            lr_background_start(&background, follow_batch, simulation);
        }
        lr_status status = LR_OK;
        for (int n = 0; status == LR_OK && n < RUNS && found < wanted; n++) {
            const int64_t left = wanted - found;
            const int num = batch->num_events[n] < left ? batch->num_events[n] : (int)left;
            const int64_t run_begin = (int64_t)n * RUN_PAIRS;
            if (num > 0 && num == left)
                simulation->emissions = batch->first_pair + run_begin + batch->events[run_begin + num - 1].time_ms + 1;
            status = num > 0 ? deliver(simulation, batch->events + run_begin, num, sink) : LR_OK;
            found += num;
        }
        if (status == LR_OK)
            status = lr_progress_report(params->progress, "following photon pairs", (double)found, (double)wanted);
        lr_background_wait(&background);
        LR_TRY(status);
    }
    return LR_OK;
}

/* Prepares the data that all pairs share. */
static lr_status prepare(struct simulation *simulation)
{
    const lr_photon_params *params = simulation->params;
    const lr_scanner *scanner = params->lors->scanner;
    const lr_photon_blur *blur = &params->blur;
    if (!(blur->axial_mm >= 0 && isfinite(blur->axial_mm))) {
        return lr_error(params->log, LR_USAGE, "an axial blur of %g mm: it must be finite and not negative",
                        blur->axial_mm);
    }
    const double least = blur->radial_mm != NULL ? blur->radial_mm(blur->user, 0) : 0;
    if (!(least >= 0 && isfinite(least))) {
        return lr_error(params->log, LR_USAGE, "a radial blur of %g mm on the axis: it must be finite and not negative",
                        least);
    }

    double sum = 0;
    simulation->num_voxels = lr_grid_num_voxels(&params->activity->grid);
    simulation->cumulated = lr_alloc(simulation->num_voxels, sizeof(double), "an activity", params->log);
    if (simulation->cumulated == NULL) return LR_FAILED;
    for (int64_t k = 0; k < simulation->num_voxels; k++) {
        const double value = (double)params->activity->values[k];
        if (!(value >= 0 && isfinite(value))) {
            return lr_error(params->log, LR_BAD_INPUT,
                            "voxel %lld has the activity %g: it must be finite and not negative", (long long)k, value);
        }
        simulation->cumulated[k] = sum += value;
    }
    LR_TRY(sum > 0 ? LR_OK : lr_error(params->log, LR_BAD_INPUT, "there is no activity anywhere"));

    const double *cumulated = simulation->cumulated, total = cumulated[simulation->num_voxels - 1];
    int shares = 1;
    while (shares < MOST_SHARES && shares < simulation->num_voxels) shares *= 2;
    simulation->num_shares = shares;
    simulation->share_begin = lr_alloc(shares + 1, sizeof(int64_t), "an activity", simulation->params->log);
    if (simulation->share_begin == NULL) return LR_FAILED;
    int64_t begin = 0;
    for (int k = 0; k <= shares; k++) {
        const double wanted = (double)k / shares * total;
        while (begin < simulation->num_voxels - 1 && !(cumulated[begin] > wanted)) begin++;
        simulation->share_begin[k] = begin;
    }

    if (params->randoms != NULL && params->num_randoms > 0) {
        double singles = 0;
        simulation->singles = lr_alloc(scanner->num_crystals, sizeof(double), "singles", params->log);
        if (simulation->singles == NULL) return LR_FAILED;
        for (int c = 0; c < scanner->num_crystals; c++) simulation->singles[c] = singles += params->randoms->values[c];
    }
    simulation->num_layers = lr_scanner_num_layers(scanner);
    LR_TRY(lr_sight_init(&simulation->sight, scanner, params->log));
    if (params->mu != NULL) LR_TRY(lr_mu_lines_init(&simulation->mu, params->mu, params->log));
    simulation->detection_mm =
        lr_alloc(scanner->num_modules, sizeof(*simulation->detection_mm), "modules", params->log);
    for (int k = 0; k < 2; k++)
        simulation->batches[k].events = lr_alloc((int64_t)RUNS * RUN_PAIRS, sizeof(lr_event), "events", params->log);
    if (simulation->detection_mm == NULL || simulation->batches[0].events == NULL ||
        simulation->batches[1].events == NULL)
        return LR_FAILED;
    /* A detected line hits modules on both sides of the emission point. Its axial length is then at most the scanner's
     * length, and its transaxial length has a least value, because the emission point and the blur limit the distance
     * of the line from the axis. square: the square of half this least transaxial length. */
    const struct lr_sight *sight = &simulation->sight;
    const lr_grid *grid = &params->activity->grid;
    double farthest = 0;
    for (int64_t k = 0; k < simulation->num_voxels; k++) {
        double centre_mm[3];
        if (params->activity->values[k] > 0) {
            lr_grid_voxel_centre(grid, k, centre_mm);
            farthest = fmax(farthest, hypot(centre_mm[0], centre_mm[1]));
        }
    }
    const double off_mm = farthest + 0.5 * hypot(grid->voxel_mm[0], grid->voxel_mm[1]) +
                          most_sigmas / LR_FWHM_PER_SIGMA * blur->most_radial_mm;
    const double inner_mm = sight->radius_mm[0], length = sight->axial_mm[1] - sight->axial_mm[0];
    const double square = off_mm < inner_mm ? inner_mm * inner_mm - off_mm * off_mm : 0;
    const bool is_bounded = blur->radial_mm == NULL || blur->most_radial_mm > 0;
    simulation->most_up = 1;
    if (sight->is_open && is_bounded && square > 0) {
        const double steepest = 0.5 * length / sqrt(square);
        simulation->most_up = fmin(1, steepest / hypot(1, steepest) + 1e-6);
    }
    for (int m = 0; m < scanner->num_modules; m++) lr_scanner_detection_centre(scanner, m, simulation->detection_mm[m]);
    return LR_OK;
}

lr_status lr_events_from_activity_sized(size_t given_bytes, const lr_photon_params *given, const lr_event_sink *sink,
                                        lr_events_info *info)
{
    LR_TAKE(lr_photon_params, params, given, given_bytes);
    const double resolution_ps =
        params->tof_resolution_ps != 0 ? params->tof_resolution_ps : params->lors->scanner->tof_resolution_ps;
    const double duration_s = params->duration_s > 0 ? params->duration_s : usual_duration_s;
    if (!(resolution_ps > 0 && isfinite(resolution_ps))) {
        return lr_error(params->log, LR_USAGE, "a time resolution of %g ps: time of flight needs one that is positive",
                        resolution_ps);
    }
    struct simulation simulation = {
        .params = params,
        .sigma_mm = LR_MM_PER_PS * resolution_ps / LR_FWHM_PER_SIGMA,
        .duration_s = duration_s,
    };
    lr_status status = prepare(&simulation);
    if (status == LR_OK) status = run(&simulation, sink);
    const int64_t layers = simulation.num_layers > 1 ? simulation.num_layers : 1;
    if (params->emissions != NULL) *params->emissions = status == LR_OK ? simulation.emissions / (layers * layers) : 0;
    if (info != NULL) {
        *info = (lr_events_info){.has_tof = true, .tof_resolution_ps = resolution_ps, .duration_s = duration_s};
        info->counts.prompts = params->count + simulation.randoms;
        info->weight = (double)info->counts.prompts;
    }
    lr_sight_finish(&simulation.sight);
    lr_mu_lines_finish(&simulation.mu);
    lr_free_all(simulation.batches[0].events, simulation.batches[1].events, simulation.detection_mm,
                simulation.share_begin, simulation.cumulated, simulation.singles);
    return status;
}

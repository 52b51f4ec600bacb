/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Factors per LOR: products of two crystals' values, products of several sources, and expected randoms from the fan
 * sums of delayed coincidences (docs/method/common.md, "Expected randoms"). A random coincidence joins two photons of
 * different decays. The rate of randoms on a LOR is therefore the product of the singles rates of its two crystals. */
#include <lr/factors.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/parallel.h"
#include "model/lors/place.h"

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHARE = 1 << 15, /* LORs that a worker takes in one piece */
    CHUNK = 1 << 20, /* LORs that a product of sources holds in one piece */
    MAX_SOURCES = 8
};

/* --- efficiencies --- */

/* Efficiencies are probabilities, or numbers relative to their mean. Some larger mean has another meaning. */
static const double implausible_efficiency = 10.0;

lr_status lr_efficiencies_check(const float *values, int64_t count, const char *name, const lr_log *log)
{
    double sum = 0.0;
    for (int64_t k = 0; k < count; k++) {
        if (!(values[k] >= 0.0f && values[k] <= FLT_MAX)) {
            return lr_error(log, LR_BAD_INPUT, "%s: number %lld is %g: it must be finite and not negative", name,
                            (long long)k, (double)values[k]);
        }
        sum += values[k];
    }
    if (!(sum > 0.0)) {
        return lr_error(
            log, LR_BAD_INPUT,
            "%s: the efficiencies are 0 everywhere, and no crystal would count: is it the right file or array?", name);
    }
    if (sum > implausible_efficiency * (double)count) {
        lr_warn(log,
                "%s: the efficiencies are %g on average, where 1 or less is usual: are they in percent, or their "
                "inverses (normalisation)?",
                name, sum / (double)count);
    }
    return LR_OK;
}

/* --- crystals --- */

struct product_loop {
    const lr_crystal_product *product;
    const lr_lor_span *span;
    float *values;
};

static void fill_products(void *user, int64_t begin, int64_t end)
{
    const struct product_loop *loop = user;
    const lr_crystal_product *product = loop->product;
    struct lr_lor_place place = {.lors = product->lors};
    for (int64_t k = begin; k < end; k++) {
        lr_place_seek(&place, lr_span_lor(loop->span, k));
        const double a = product->values[place.first_i + place.a];
        const double b = product->values[place.first_j + place.b];
        loop->values[k] = lr_place_in_coincidence(&place) ? (float)(product->scale * a * b) : 0.0f;
    }
}

static lr_status get_products(void *user, const lr_lor_span *span, float *values)
{
    const lr_crystal_product *product = user;
    if (!lr_span_fits(product->lors, span)) return LR_USAGE;
    struct product_loop loop = {product, span, values};
    lr_parallel_for(lr_num_processors(), span->count, SHARE, fill_products, &loop);
    return LR_OK;
}

lr_lor_source lr_crystal_product_source(lr_crystal_product *product)
{
    return (lr_lor_source){get_products, product};
}

double lr_crystal_product_sum(const lr_crystal_product *product, int threads)
{
    const int64_t num_crystals = product->lors->scanner->num_crystals;
    double *values = lr_alloc(2 * num_crystals, sizeof(*values), "sums over crystals", product->log);
    double sum = NAN;
    if (values != NULL) {
        double *fans = values + num_crystals;
        for (int64_t c = 0; c < num_crystals; c++) values[c] = product->values[c];
        if (lr_crystal_fans(product->lors, values, fans, threads, product->log) == LR_OK) {
            sum = 0.0;
            for (int64_t c = 0; c < num_crystals; c++)
                sum += 0.5 * values[c] * fans[c]; /* each LOR counts at both ends */
            sum *= product->scale;
        }
    }
    free(values);
    return sum;
}

/* --- sources --- */

static lr_status get_source_products(void *user, const lr_lor_span *span, float *values)
{
    const lr_source_product *product = user;
    if (product->num_sources < 0 || product->num_sources > MAX_SOURCES || span->count < 0) return LR_USAGE;
    const int64_t chunk = span->count < CHUNK ? span->count : CHUNK;
    float *other = lr_alloc(chunk, sizeof(*other), "factors", product->log);
    lr_status status = other != NULL ? LR_OK : LR_FAILED;
    for (int64_t begin = 0; status == LR_OK && begin < span->count; begin += chunk) {
        const int64_t left = span->count - begin;
        const lr_lor_span part = {.numbers = span->numbers != NULL ? span->numbers + begin : NULL,
                                  .first = span->first + begin,
                                  .count = (left < chunk ? left : chunk)};
        float *to = values + begin;
        for (int64_t k = 0; k < part.count; k++) to[k] = 1.0f;
        for (int n = 0; n < product->num_sources && status == LR_OK; n++) {
            const lr_lor_source *source = &product->sources[n];
            if (source->get == NULL) continue;
            status = source->get(source->user, &part, other);
            for (int64_t k = 0; status == LR_OK && k < part.count; k++) to[k] *= other[k];
        }
    }
    free(other);
    return status;
}

lr_lor_source lr_source_product_source(lr_source_product *product)
{
    return (lr_lor_source){get_source_products, product};
}

/* --- expected randoms --- */

/* Groups of crystals must have at least this many ends of delayeds on average. The value of a group then has an error
   of 14 %. */
#define MIN_ENDS 50.0
/* Relative tolerance of fan sums, and the largest number of iterations. */
#define FAN_TOLERANCE 1e-7
enum { MAX_ROUNDS = 100 };

/* Sets of crystals that share a value, from the finest to the coarsest. */
enum pooling { POOL_NONE = 0, POOL_MODULES, POOL_RINGS, POOL_EVERYTHING, NUM_POOLINGS };

struct estimate {
    const lr_lors *lors;
    const lr_log *log;
    int64_t num_crystals;
    double *ends;      /* [num_crystals] number of ends of delayeds */
    double *rates;     /* [num_crystals] */
    double *fans;      /* [num_crystals] */
    int32_t *group_of; /* [num_crystals] */
    int num_groups;
    double *measured, *estimated; /* [num_groups] sums over the crystals of each group */
    double delayeds;
};

/* --- pooling --- */

/* Properties that the crystals of a group share. Unused fields are 0. */
struct place_key {
    int width, column, p, ring;
    int crystal;
};

static int compare_keys(const void *a, const void *b)
{
    const struct place_key *x = a, *y = b;
    return lr_order_lists((const double[]){x->width, x->column, x->p, x->ring, x->crystal},
                          (const double[]){y->width, y->column, y->p, y->ring, y->crystal}, 5);
}

static lr_status make_groups(struct estimate *estimate, enum pooling pooling)
{
    const lr_scanner *scanner = estimate->lors->scanner;
    const int64_t num = estimate->num_crystals;
    struct place_key *keys = lr_alloc(num, sizeof(*keys), "groups of crystals", estimate->log);
    if (keys == NULL) return LR_FAILED;
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        /* The column of a module is its index among the modules that are at the same ring position and begin with the
         * same crystal ring. Such modules are neighbours in a panel. The modules of a panel are consecutive.
         * Modules of an explicit list have no ring positions, and only their layer counts. */
        int column = 0;
        for (int other = m - 1; other >= 0 && scanner->num_positions > 0; other--) {
            const lr_module *before = &scanner->modules[other];
            if (before->position != module->position || before->ring != module->ring) break;
            column += before->layer == module->layer && before->first_crystal_ring == module->first_crystal_ring;
        }
        column = column * LR_MAX_LAYERS + module->layer;
        for (int c = scanner->first_crystal[m]; c < scanner->first_crystal[m + 1]; c++) {
            const int n = c - scanner->first_crystal[m];
            keys[c] = (struct place_key){.crystal = c};
            if (pooling != POOL_EVERYTHING) {
                keys[c].width = module->crystals[0];
                keys[c].column = column;
                keys[c].p = n % module->crystals[0];
            }
            if (pooling == POOL_MODULES) keys[c].ring = module->first_crystal_ring + n / module->crystals[0];
        }
    }

    if (pooling != POOL_NONE) qsort(keys, (size_t)num, sizeof(*keys), compare_keys);
    estimate->num_groups = 0;
    for (int64_t k = 0; k < num; k++) {
        const size_t of_group = offsetof(struct place_key, crystal);
        if (k == 0 || pooling == POOL_NONE || memcmp(&keys[k - 1], &keys[k], of_group) != 0) estimate->num_groups++;
        estimate->group_of[keys[k].crystal] = estimate->num_groups - 1;
    }
    free(keys);
    return LR_OK;
}

/* --- rates --- */

/* Finds the rates by iteration. All rates are equal at first. */
static lr_status find_rates(struct estimate *estimate)
{
    for (int64_t c = 0; c < estimate->num_crystals; c++) estimate->rates[c] = 1.0;
    double worst = INFINITY;
    int round = 0;
    while (worst > FAN_TOLERANCE && round++ < MAX_ROUNDS) {
        /* Sums the estimate for each group: v_i times the sum of v over the fan of i. */
        LR_TRY(lr_crystal_fans(estimate->lors, estimate->rates, estimate->fans, lr_num_processors(), estimate->log));
        for (int g = 0; g < estimate->num_groups; g++) estimate->estimated[g] = 0.0;
        for (int64_t c = 0; c < estimate->num_crystals; c++)
            estimate->estimated[estimate->group_of[c]] += estimate->rates[c] * estimate->fans[c];

        /* A full step would fit a group's fan sum if the other groups did not change. All groups change together, so
         * full steps would overshoot; each group takes half of the step, in the logarithm of its rate. */
        worst = 0.0; /* largest relative difference between measured and estimated fan sums */
        for (int g = 0; g < estimate->num_groups; g++) {
            const double measured = estimate->measured[g], estimated = estimate->estimated[g];
            if (measured > 0.0) worst = fmax(worst, fabs(estimated / measured - 1.0));
            estimate->estimated[g] = estimated > 0.0 ? sqrt(measured / estimated) : 0.0;
        }
        for (int64_t c = 0; c < estimate->num_crystals; c++)
            estimate->rates[c] *= estimate->estimated[estimate->group_of[c]];
    }
    lr_debug(estimate->log, "fan sums of %g delayeds are met to %.2g after %d rounds", estimate->delayeds, worst,
             round);
    return LR_OK;
}

/* Checks delayeds and counts their ends at each crystal. Each delayed has two ends. */
static lr_status count_ends(struct estimate *estimate, const lr_lor_data *delayeds)
{
    static const char name[] = "delayeds";
    const lr_lors *lors = estimate->lors;
    if (delayeds->count < 0 || (delayeds->count > 0 && delayeds->values == NULL))
        return lr_error(estimate->log, LR_USAGE, "the delayeds have no values");
    if (delayeds->index == NULL && delayeds->count != lors->count) {
        return lr_error(estimate->log, LR_USAGE,
                        "the %s has %lld values, the operator %lld LORs: make both from the same scanner", name,
                        (long long)delayeds->count, (long long)lors->count);
    }
    if (delayeds->index != NULL)
        LR_TRY(lr_lor_index_check(delayeds->index, delayeds->count, lors, name, estimate->log));

    struct lr_lor_place place = {.lors = lors};
    double skipped = 0.0;
    for (int64_t k = 0; k < delayeds->count; k++) {
        const int64_t lor = delayeds->index != NULL ? delayeds->index[k] : k;
        const float value = delayeds->values[k];
        if (!(value >= 0.0f && value <= FLT_MAX)) return lr_lor_report_value(lors, lor, value, name, estimate->log);
        if (value == 0.0f) continue;
        lr_place_seek(&place, lor);
        if (!lr_place_in_coincidence(&place)) {
            skipped += value;
            continue;
        }
        estimate->ends[place.first_i + place.a] += value;
        estimate->ends[place.first_j + place.b] += value;
        estimate->delayeds += value;
    }
    if (skipped > 0.0) lr_warn(estimate->log, "%g delayeds lie in LORs out of coincidence and are left out", skipped);
    return LR_OK;
}

/* Estimates randoms from delayeds, or from the number of their ends at each crystal. One of the arguments `delayeds`
   and `ends` is NULL. */
static lr_status run(struct estimate *estimate, const lr_lor_data *delayeds, const double *ends, lr_randoms *randoms)
{
    static const char *const what = "the estimate of randoms";
    const int64_t num = estimate->num_crystals;
    estimate->ends = lr_alloc(num, sizeof(double), what, estimate->log);
    estimate->rates = lr_alloc(num, sizeof(double), what, estimate->log);
    estimate->fans = lr_alloc(num, sizeof(double), what, estimate->log);
    estimate->group_of = lr_alloc(num, sizeof(int32_t), what, estimate->log);
    estimate->measured = lr_alloc(num, sizeof(double), what, estimate->log);
    estimate->estimated = lr_alloc(num, sizeof(double), what, estimate->log);
    if (!estimate->ends || !estimate->rates || !estimate->fans || !estimate->group_of || !estimate->measured ||
        !estimate->estimated)
        return LR_FAILED;

    double sum_of_ends = 0.0;
    for (int64_t c = 0; delayeds == NULL && c < num; c++) {
        if (!(ends[c] >= 0.0 && ends[c] <= DBL_MAX)) {
            return lr_error(estimate->log, LR_BAD_INPUT,
                            "crystal %lld has %g ends of delayeds: counts are finite and not negative", (long long)c,
                            ends[c]);
        }
        estimate->ends[c] = ends[c];
        sum_of_ends += ends[c];
    }
    estimate->delayeds = 0.5 * sum_of_ends;
    if (delayeds != NULL) LR_TRY(count_ends(estimate, delayeds));
    if (!(estimate->delayeds > 0.0)) {
        return lr_error(estimate->log, LR_BAD_INPUT,
                        "there are no delayed coincidences to estimate randoms from: reconstruct without randoms, or "
                        "give a file with delayeds");
    }

    /* Chooses the finest groups that have enough delayeds, or a single group of all crystals. */
    for (int pooling = POOL_NONE; pooling < NUM_POOLINGS; pooling++) {
        LR_TRY(make_groups(estimate, (enum pooling)pooling));
        if (2.0 * estimate->delayeds >= MIN_ENDS * estimate->num_groups) break;
    }
    for (int64_t c = 0; c < num; c++) estimate->measured[estimate->group_of[c]] += estimate->ends[c];

    LR_TRY(find_rates(estimate));
    randoms->values = lr_alloc(num, sizeof(*randoms->values), "the rates of crystals", estimate->log);
    if (randoms->values == NULL) return LR_FAILED;
    double sum = 0.0;
    for (int64_t c = 0; c < num; c++) sum += estimate->rates[c];
    for (int64_t c = 0; c < num; c++) randoms->values[c] = (float)(estimate->rates[c] * (double)num / sum);
    randoms->delayeds = estimate->delayeds;
    randoms->product = (lr_crystal_product){estimate->lors, randoms->values, 1.0, estimate->log};
    const double of_one = lr_crystal_product_sum(&randoms->product, 0);
    if (!(of_one > 0.0)) return lr_error(estimate->log, LR_FAILED, "no memory for the sum of randoms");
    randoms->product.scale = estimate->delayeds / of_one;
    int *sizes = lr_alloc(estimate->num_groups, sizeof(*sizes), "groups of crystals", estimate->log);
    if (sizes == NULL) return LR_FAILED;
    randoms->pooled = 0;
    for (int64_t c = 0; c < num; c++) {
        const int size = ++sizes[estimate->group_of[c]];
        randoms->pooled = size > randoms->pooled ? size : randoms->pooled;
    }
    free(sizes);
    return LR_OK;
}

static lr_randoms *estimate_from(const lr_lors *lors, const lr_lor_data *delayeds, const double *ends,
                                 const lr_log *log)
{
    struct estimate estimate = {.lors = lors, .log = log, .num_crystals = lors->scanner->num_crystals};
    lr_randoms *randoms = lr_alloc(1, sizeof(*randoms), "randoms", log);
    if (randoms != NULL && run(&estimate, delayeds, ends, randoms) != LR_OK) {
        lr_randoms_destroy(randoms);
        randoms = NULL;
    }
    lr_free_all(estimate.ends, estimate.rates, estimate.fans, estimate.group_of, estimate.measured, estimate.estimated);

    return randoms;
}

lr_randoms *lr_randoms_estimate(const lr_lors *lors, const lr_lor_data *delayeds, const lr_log *log)
{
    return estimate_from(lors, delayeds, NULL, log);
}

lr_randoms *lr_randoms_of_ends(const lr_lors *lors, const double *ends, const lr_log *log)
{
    return estimate_from(lors, NULL, ends, log);
}

void lr_randoms_destroy(lr_randoms *randoms)
{
    if (randoms != NULL) lr_free_all(randoms->values, randoms);
}

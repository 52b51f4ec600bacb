/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Products of crystals' values, and products of sources. */
#include <lr/factors.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "model/lors/fans.h"
#include "model/lors/place.h"

#include <math.h>
#include <stdlib.h>

enum {
    SHARE = 1 << 15, /* LORs that a worker takes at a time */
    CHUNK = 1 << 20, /* LORs that a product of sources holds at a time */
    MAX_SOURCES = 8
};

/* --- data --- */

/* The first entry of sparse data that is not before a LOR. */
static int64_t find_entry(const lr_lor_data *data, int64_t lor)
{
    int64_t begin = 0, end = data->count;
    while (begin < end) {
        const int64_t middle = begin + (end - begin) / 2;
        if (data->index[middle] < lor)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

static lr_status get_data(void *user, const lr_lor_span *span, float *values)
{
    const lr_lor_data *data = user;
    int64_t entry = 0;
    for (int64_t k = 0; k < span->count; k++) {
        const int64_t lor = lr_span_lor(span, k);
        if (data->index == NULL) {
            if (lor < 0 || lor >= data->count) return LR_USAGE;
            values[k] = data->values[lor];
            continue;
        }
        entry = k == 0 ? find_entry(data, lor) : entry;
        while (entry < data->count && data->index[entry] < lor) entry++;
        const bool is_listed = entry < data->count && data->index[entry] == lor;
        values[k] = is_listed ? data->values[entry] : 0.0f;
    }
    return LR_OK;
}

lr_lor_source lr_lor_data_source(lr_lor_data *data)
{
    return (lr_lor_source){get_data, data};
}

/* --- crystals --- */

struct product_loop {
    const lr_crystal_product *product;
    const lr_lor_span *span;
    float *values;
};

static void fill_products(void *user, int64_t begin, int64_t end, int worker)
{
    const struct product_loop *loop = user;
    const lr_crystal_product *product = loop->product;
    struct lr_place place = {.lors = product->lors};
    (void)worker;
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
                sum += 0.5 * values[c] * fans[c]; /* each LOR is met at both ends */
            sum *= product->scale;
        }
    }
    free(values);
    return sum;
}

/* --- sources --- */

static lr_lor_span part_of(const lr_lor_span *span, int64_t begin, int64_t count)
{
    return (lr_lor_span){
        .numbers = span->numbers != NULL ? span->numbers + begin : NULL, .first = span->first + begin, .count = count};
}

/* values *= the source's. */
static lr_status multiply(const lr_lor_source *source, const lr_lor_span *span, float *values, float *other)
{
    const lr_status status = source->get(source->user, span, other);
    for (int64_t k = 0; status == LR_OK && k < span->count; k++) values[k] *= other[k];
    return status;
}

static lr_status fill_chunk(const lr_source_product *product, const lr_lor_span *span, float *values, float *other)
{
    for (int64_t k = 0; k < span->count; k++) values[k] = 1.0f;
    for (int n = 0; n < product->num_sources; n++) {
        if (product->sources[n].get == NULL) continue;
        const lr_status status = multiply(&product->sources[n], span, values, other);
        if (status != LR_OK) return status;
    }
    return LR_OK;
}

static lr_status get_source_products(void *user, const lr_lor_span *span, float *values)
{
    const lr_source_product *product = user;
    if (product->num_sources < 0 || product->num_sources > MAX_SOURCES || span->count < 0) return LR_USAGE;
    const int64_t chunk = span->count < CHUNK ? span->count : CHUNK;
    float *other = lr_alloc(chunk, sizeof(*other), "factors", product->log);
    lr_status status = other != NULL ? LR_OK : LR_FAILED;
    for (int64_t begin = 0; status == LR_OK && begin < span->count; begin += chunk) {
        const int64_t left = span->count - begin;
        const lr_lor_span part = part_of(span, begin, left < chunk ? left : chunk);
        status = fill_chunk(product, &part, values + begin, other);
    }
    free(other);
    return status;
}

lr_lor_source lr_source_product_source(lr_source_product *product)
{
    return (lr_lor_source){get_source_products, product};
}

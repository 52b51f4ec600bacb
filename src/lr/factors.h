/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_FACTORS_H
#define LR_FACTORS_H

#include <lr/grid.h>
#include <lr/lors.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers per LOR that are computed when asked for: detection efficiencies, expected randoms,
 * attenuation. Each maker returns a lr_lor_source for lr_operator_params.factors or for the
 * additive term of a reconstruction. LORs out of coincidence have 0. */

/* scale * values[a] * values[b] for the crystals a, b of a LOR, numbered over the whole scanner.
 * Plain data; must outlive the source made of it. Threads: may be shared. */
typedef struct lr_crystal_product {
    const lr_lors *lors;
    const float *values; /* [num_crystals] */
    double scale;
} lr_crystal_product;

LR_API lr_lor_source lr_crystal_product_source(lr_crystal_product *product);

/* Sum over all LORs in coincidence; never holds a number per LOR. threads 0 = all processors. */
LR_API double lr_crystal_product_sum(const lr_crystal_product *product, int threads);

/* Survival exp(-integral of mu) of both photons along the line between the centres of a LOR's two
 * crystal faces on the detection plane. It does not depend on where along the line they start, so
 * that it is a factor per LOR; against marching each line of the element it differs by what mu
 * varies across the crystals (docs/method.md gives the bound). */
typedef struct lr_attenuation lr_attenuation;

typedef struct lr_attenuation_params {
    const lr_lors *lors;
    const lr_image *mu; /* 1/mm; must outlive the object */
    int threads;        /* 0 = all processors */
    const lr_log *log;
} lr_attenuation_params;

LR_API lr_attenuation *lr_attenuation_create(const lr_attenuation_params *params);
LR_API void lr_attenuation_destroy(lr_attenuation *attenuation); /* NULL is allowed */
LR_API lr_lor_source lr_attenuation_source(lr_attenuation *attenuation);

/* The product of up to eight sources; plain data, must outlive the source made of it. */
typedef struct lr_source_product {
    lr_lor_source sources[8];
    int num_sources;
} lr_source_product;

LR_API lr_lor_source lr_source_product_source(lr_source_product *product);

/* Expected randoms from delayed coincidences by fan sums. D_c = delayeds with an end in crystal c;
 * where they are few they are pooled over the crystals of one place within their block column
 * (same p, all modules of a ring) and over crystal rings (see docs/method.md). Then
 * r_ij = scale * D_i * D_j over the LORs in coincidence, with the scale that makes the sum of r
 * equal the number of delayeds. */
typedef struct lr_randoms {
    float *values; /* owned, [num_crystals]: D, pooled */
    lr_crystal_product product;
    double delayeds; /* = sum of r */
    int pooled;      /* crystals that share one D; 1 = not pooled */
} lr_randoms;

/* delayeds: sparse or dense counts per LOR. errors: NULL, logged; no delayeds at all is an error. */
LR_API lr_randoms *lr_randoms_estimate(const lr_lors *lors, const lr_lor_data *delayeds,
                                       const lr_log *log);
LR_API void lr_randoms_destroy(lr_randoms *randoms); /* NULL is allowed */

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_FACTORS_H
#define LR_FACTORS_H

#include <lr/grid.h>
#include <lr/lors.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers per LOR that are computed on demand: detection efficiencies, expected randoms, attenuation. Functions below
 * return them as lr_lor_source, for lr_operator_params.factors or for the additive term of a reconstruction. LORs out
 * of coincidence have 0.
 *
 * errors of `get`: LR_USAGE for numbers that are not LORs of the list; LR_FAILED if memory runs out. */

/* Checks detection efficiencies of crystals or LORs, [count]. Warns of efficiencies that look like percent or like
 * factors of a normalisation. name: for messages, such as the name of their file.
 * errors, logged: LR_BAD_INPUT for a number that is negative or not finite, and if all are 0. */
LR_API lr_status lr_efficiencies_check(const float *values, int64_t count, const char *name, const lr_log *log);

/* The number scale * values[a] * values[b] for a LOR of the crystals a and b, numbered over the whole scanner. Plain
 * data; must outlive the source made from it. Threads: may be shared. */
typedef struct lr_crystal_product {
    const lr_lors *lors;
    const float *values; /* [num_crystals] */
    double scale;
    const lr_log *log; /* receives the error if memory runs out; NULL = none */
} lr_crystal_product;

/* A source of these products, as factors of LORs. The struct must outlive the source. */
LR_API lr_lor_source lr_crystal_product_source(lr_crystal_product *product);

/* Sum of the products over all LORs in coincidence. No array over LORs is needed. Single LORs are visited only if
 * tilted modules are combined with a field-of-view rule. threads: 0 = all processors. errors: NaN if memory runs out,
 * logged. */
LR_API double lr_crystal_product_sum(const lr_crystal_product *product, int threads);

/* A source of the values of LOR data. LORs that are not in sparse data have the value 0. The data must outlive the
 * source. */
LR_API lr_lor_source lr_lor_data_source(const lr_lor_data *data);

/* Units of an attenuation map. */
typedef enum lr_mu_unit {
    LR_MU_BY_VALUE = 0, /* 1/cm if the largest value is above 0.05, else 1/mm */
    LR_MU_PER_MM,
    LR_MU_PER_CM,
    LR_MU_HU /* Hounsfield units of a CT scan at 120 kVp */
} lr_mu_unit;

/* Parameters of lr_mu_map_settle. Zero fields are defaults. */
typedef struct lr_mu_map_params {
    lr_mu_unit unit;
    const char *name;          /* name of the file, for messages; NULL = "the mu-map" */
    const lr_scanner *scanner; /* scanner whose bore the map must overlap; NULL = not checked */
    const lr_log *log;
} lr_mu_map_params;

/* Converts a map to 1/mm at 511 keV, in place, and logs its original unit. Hounsfield units H are converted by the two
 * straight lines of Carney et al., Method for transforming CT images for attenuation correction in PET/CT imaging, Med.
 * Phys. 33 (2006) 976, table for 120 kVp, in 1/cm: 9.6e-5 (H + 1000) up to H = 47, and 5.10e-5 (H + 1000) + 4.71e-2
 * above; 0 below -1000. Warns about maps that are 0, ten times too small or too large, far off the axis, or not 0
 * at the crystals' faces.
 * errors: LR_BAD_INPUT for values above 0.3/mm (lead has 0.18), which are probably Hounsfield units; for Hounsfield
 * units that are nearly equal everywhere; and for a map that does not overlap the scanner's bore. The map is then
 * unchanged. */
LR_SIZED(lr_mu_map_params, lr_status, lr_mu_map_settle, (lr_image * mu, const lr_mu_map_params *params), (mu, params));

/* Returns the share of an image's sum that lies in air: in voxels at whose centres the map, in 1/mm, has less than a
 * tenth of the attenuation of water, or which lie beyond the map. Emissions hardly come from air, so a large share
 * suggests that one of the two images has a wrong origin. NaN if the image's sum is not positive. */
LR_API double lr_mu_map_share_in_air(const lr_image *mu, const lr_image *image);

/* The survival exp(-integral of mu) of both photons along the line of a LOR, which joins the centres of the two
 * crystals' faces on the detection plane. The integral is exact for a mu that is constant in each voxel and 0 outside
 * the map. The survival does not depend on the photons' origin along the line, so it is one factor per LOR. This factor
 * differs from the mean survival over all lines that contribute to a matrix element, because mu varies across the
 * crystals and the voxel (docs/method/common.md, "Bound on the factor"). */
typedef struct lr_attenuation lr_attenuation;

/* Parameters of lr_attenuation_create. Zero fields are defaults. */
typedef struct lr_attenuation_params {
    const lr_lors *lors; /* must outlive the object */
    const lr_image *mu;  /* 1/mm, finite, at least 0; read by the constructor only */
    int threads;         /* 0 = all processors */
    const lr_log *log;
} lr_attenuation_params;

/* Creates an lr_attenuation, which the caller frees with lr_attenuation_destroy. errors: NULL, logged: LR_BAD_INPUT for
   a mu-map with a bad grid or value. */
LR_SIZED(lr_attenuation_params, lr_attenuation *, lr_attenuation_create, (const lr_attenuation_params *params),
         (params));
LR_API void lr_attenuation_destroy(lr_attenuation *attenuation); /* NULL is allowed */
/* A source of these survivals, as factors of LORs. The object must outlive the source. */
LR_API lr_lor_source lr_attenuation_source(lr_attenuation *attenuation);

/* The product of up to eight sources. A source with get == NULL counts as 1. Plain data; must outlive the source made
 * from it. Without any source, all LORs have 1, including LORs out of coincidence. */
typedef struct lr_source_product {
    lr_lor_source sources[8];
    int num_sources;
    const lr_log *log; /* receives the error if memory runs out; NULL = none */
} lr_source_product;

/* The products as one source. The struct must outlive the source. */
LR_API lr_lor_source lr_source_product_source(lr_source_product *product);

/* Expected randoms from delayed coincidences by fan sums. D_c is the number of delayeds with an end in crystal c. If
 * counts are low, D is averaged over groups of crystals. A group has the crystals of one crystal ring with the same
 * transaxial place in their block column; or all crystals with this place, in all crystal rings; or all crystals. The
 * smallest groups that have at least 50 ends on average are used. The expected randoms of a LOR in coincidence are r_ij
 * = scale * v_i * v_j. The values v are found such that the fan sums of r are D; v is proportional to D if the fans of
 * all crystals have equal sums (docs/method/common.md, "Expected randoms"). scale makes the sum of r equal to the
 * number of delayeds. */
typedef struct lr_randoms {
    float *values; /* owned, [num_crystals]: v, relative singles rates with mean 1 */
    lr_crystal_product product;
    double delayeds; /* number of delayeds in coincidence; equals the sum of r */
    int pooled;      /* number of crystals in the largest group with one value v; 1 = no groups */
} lr_randoms;

/* delayeds: sparse or dense counts per LOR, finite and at least 0; LORs out of coincidence are
 * skipped, with a warning. lors must outlive the result.
 * errors: NULL, logged; no delayeds at all is an error. */
LR_API lr_randoms *lr_randoms_estimate(const lr_lors *lors, const lr_lor_data *delayeds, const lr_log *log);

/* Estimates randoms like lr_randoms_estimate, but from given D_c. Event lists then need no array over all LORs. ends:
 * [num_crystals], D_c from the delayeds in coincidence. errors: as lr_randoms_estimate; also for ends that are negative
 * or not finite. */
LR_API lr_randoms *lr_randoms_of_ends(const lr_lors *lors, const double *ends, const lr_log *log);
LR_API void lr_randoms_destroy(lr_randoms *randoms); /* NULL is allowed */

#ifdef __cplusplus
}
#endif

#endif

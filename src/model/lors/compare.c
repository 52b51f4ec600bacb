/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Errors of a matrix row, in double. */
#include <lr/compare.h>

#include <math.h>

/* Squares that become norms, beside the error itself. */
struct sums {
    lr_row_error error;
    double difference2, reference2, row;
};

static void add_element(struct sums *sums, double value, double reference)
{
    lr_row_error *error = &sums->error;
    const double difference = fabs(value - reference);
    sums->difference2 += difference * difference;
    sums->reference2 += reference * reference;
    sums->row += value;
    error->sum += reference;
    error->largest = fmax(error->largest, reference);
    error->largest_error = fmax(error->largest_error, difference);
    error->num_elements += reference > 0.0;
    error->num_unexpected += value > 0.0 && !(reference > 0.0);
    if (reference > 0.0 && !(value > 0.0)) {
        error->num_missed++;
        error->missed_weight += reference;
    }
}

lr_row_error lr_row_compare(const lr_row *row, const lr_row *reference)
{
    struct sums sums = {0};
    for (int64_t a = 0, b = 0; a < row->count || b < reference->count;) {
        const int64_t lor_a = a < row->count ? row->lor[a] : INT64_MAX;
        const int64_t lor_b = b < reference->count ? reference->lor[b] : INT64_MAX;
        add_element(&sums, lor_a <= lor_b ? row->probability[a] : 0.0,
                    lor_b <= lor_a ? reference->probability[b] : 0.0);
        a += lor_a <= lor_b;
        b += lor_b <= lor_a;
    }
    lr_row_error *error = &sums.error;
    error->relative_l2 = sqrt(sums.difference2 / sums.reference2);
    error->sum_error = (sums.row - error->sum) / error->sum;
    error->largest_error /= error->largest;
    error->missed_weight /= error->sum;
    return *error;
}

static double distance2(const lr_scanner *scanner, int module, const double point_mm[3])
{
    double centre_mm[3], sum = 0.0;
    lr_scanner_detection_centre(scanner, module, centre_mm);
    for (int k = 0; k < 3; k++) sum += (centre_mm[k] - point_mm[k]) * (centre_mm[k] - point_mm[k]);
    return sum;
}

int lr_lors_primary(const lr_lors *lors, int64_t lor, const double point_mm[3])
{
    const lr_lor pair = lr_lors_describe(lors, lor);
    const double i = distance2(lors->scanner, pair.module_i, point_mm);
    const double j = distance2(lors->scanner, pair.module_j, point_mm);
    return j - i > 1e-9 * j ? pair.module_j : pair.module_i; /* on a tie the lower, i */
}

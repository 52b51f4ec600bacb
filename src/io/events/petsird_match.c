/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/log.h"
#include "base/mem.h"
#include "io/events/petsird.h"
#include "io/scanners/centre_index.h"

#include <math.h>
#include <stdlib.h>

/* How far a crystal may be from the scanner's: the tolerance with which crystal lists become
 * modules, and the rounding of the file's numbers. */
static const double reach_mm = 0.1;

/* --- places --- */

static lr_status judge(const struct lr_petsird *petsird, const lr_scanner *scanner, const struct lr_centre_index *index,
                       const int64_t lost[2])
{
    double centre_mm[3];
    if (lost[0] == 0) return LR_OK;
    lr_petsird_centre(petsird, lost[1], centre_mm);
    const bool all = lost[0] == petsird->num_crystals;
    lr_log_write(petsird->log, all ? LR_LOG_ERROR : LR_LOG_WARNING, all ? LR_BAD_INPUT : LR_OK,
                 "%s: %lld of its %lld crystals are none of %s's, first the one at (%g, %g, %g) mm, "
                 "from which the nearest is %.4g mm away: %s",
                 petsird->path, (long long)lost[0], (long long)petsird->num_crystals, scanner->name, centre_mm[0],
                 centre_mm[1], centre_mm[2], lr_centre_index_distance(index, centre_mm),
                 all ? "the file is another scanner's, which can be read from it" : "what belongs to them is left out");
    return all ? LR_BAD_INPUT : LR_OK;
}

lr_status lr_petsird_match(const struct lr_petsird *petsird, const lr_scanner *scanner, int32_t *numbers)
{
    struct lr_centre_index index;
    int64_t lost[2] = {0, -1}; /* how many, the first */
    LR_TRY(lr_centre_index_init(&index, scanner, petsird->log));
    for (int64_t k = 0; k < petsird->num_crystals; k++) {
        double centre_mm[3];
        lr_petsird_centre(petsird, k, centre_mm);
        numbers[k] = lr_centre_index_find(&index, centre_mm, reach_mm);
        if (numbers[k] < 0 && lost[0]++ == 0) lost[1] = k;
    }
    const lr_status status = judge(petsird, scanner, &index, lost);
    lr_centre_index_finish(&index);
    return status;
}

/* --- efficiencies --- */

/* Mean over the energies of an element. */
static double efficiency_of(const struct lr_petsird_type *type, int64_t detector)
{
    double sum = 0;
    for (int64_t e = 0; e < type->num_energies; e++) sum += type->efficiencies[detector * type->num_energies + e];
    return sum / (double)type->num_energies;
}

static lr_status fill_type(const struct lr_petsird *petsird, const struct lr_petsird_type *type, const int32_t *numbers,
                           float *values)
{
    const int64_t detectors = type->num_elements * type->num_modules;
    if (detectors > 0 && type->num_efficiencies / type->num_energies != detectors) {
        return lr_error(petsird->log, LR_BAD_INPUT,
                        "%s: has %lld efficiencies of detection bins for %lld crystals of module "
                        "type %d",
                        petsird->path, (long long)type->num_efficiencies, (long long)detectors,
                        (int)(type - petsird->types));
    }
    for (int64_t k = 0; k < detectors; k++) {
        const double value = efficiency_of(type, k);
        if (!(value >= 0))
            return lr_error(petsird->log, LR_BAD_INPUT, "%s: a crystal has the efficiency %g", petsird->path, value);
        if (numbers[type->first_crystal + k] >= 0) values[numbers[type->first_crystal + k]] = (float)value;
    }
    return LR_OK;
}

static lr_status fill_values(const struct lr_petsird *petsird, const lr_scanner *scanner, const int32_t *numbers,
                             float *values)
{
    for (int c = 0; c < scanner->num_crystals; c++) values[c] = NAN;
    for (int t = 0; t < petsird->num_types; t++) LR_TRY(fill_type(petsird, &petsird->types[t], numbers, values));
    for (int c = 0; c < scanner->num_crystals; c++) {
        if (isnan(values[c])) {
            return lr_error(petsird->log, LR_BAD_INPUT, "%s: has no efficiency for crystal %d of %s", petsird->path, c,
                            scanner->name);
        }
    }
    return LR_OK;
}

static lr_status read_values(struct lr_petsird *petsird, const lr_scanner *scanner, float *values)
{
    if (petsird->bin_efficiencies.count == 0)
        return lr_error(petsird->log, LR_BAD_INPUT, "%s: holds no efficiencies of detection bins", petsird->path);
    int32_t *numbers = lr_alloc(petsird->num_crystals, sizeof(*numbers), "numbers of crystals", petsird->log);
    lr_status status = numbers != NULL ? lr_petsird_match(petsird, scanner, numbers) : LR_FAILED;
    if (status == LR_OK) status = fill_values(petsird, scanner, numbers, values);
    free(numbers);
    return status;
}

lr_status lr_petsird_values_read(const char *path, const lr_scanner *scanner, float *values, const lr_log *log)
{
    struct lr_petsird petsird;
    lr_status status = lr_petsird_open(&petsird, path, log);
    if (status == LR_OK) status = read_values(&petsird, scanner, values);
    lr_petsird_close(&petsird);
    return status;
}

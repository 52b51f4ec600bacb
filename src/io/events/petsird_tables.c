/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/events/petsird_tables.h"

#include "base/log.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- numbers --- */

lr_status lr_petsird_read_floats(struct lr_yardl_input *input, const struct lr_yardl_type *item, int64_t count,
                                 float *values)
{
    for (int64_t k = 0; k < count; k++) {
        double value;
        LR_TRY(lr_yardl_number(input, item, &value));
        if (!isfinite(value))
            return lr_yardl_error(input, "a place, edge or efficiency is not finite: the file is damaged");
        values[k] = (float)value;
    }
    return LR_OK;
}

lr_status lr_petsird_take_floats(void *user, struct lr_yardl_input *input, const struct lr_yardl_type *type)
{
    struct lr_petsird_floats *floats = user;
    struct lr_yardl_list list;
    LR_TRY(lr_yardl_list(input, type, &list));
    if (list.count > 0 && list.item->least_bytes < 4)
        return lr_yardl_error(input, "the schema has no numbers where they are needed");
    free(*floats->values);
    *floats->values = lr_alloc(list.count, sizeof(**floats->values), "edges", floats->petsird->log);
    if (*floats->values == NULL) return LR_FAILED;
    floats->count = list.count;
    return lr_petsird_read_floats(input, list.item, list.count, *floats->values);
}

/* --- pairs of types --- */

/* A pair of nested lists over module types, [type1][type2] or its lower triangle. */
struct type_matrix {
    const char *name; /* of the field */
    struct lr_petsird *petsird;
    lr_status (*take)(struct lr_petsird *petsird, struct lr_petsird_pair *pair, const struct lr_yardl_type *type);
    bool *is_odd; /* set where there are more entries than pairs of types, which are passed over;
                     NULL = they are an error */
};

static lr_status need_types(struct lr_petsird *petsird, const char *name)
{
    return petsird->types != NULL ? LR_OK
                                  : lr_yardl_error(petsird->input,
                                                   "'%s' stands before the scanner's geometry: this version of the "
                                                   "format is not understood",
                                                   name);
}

static lr_status pass_over(const struct type_matrix *matrix, const int64_t entry[2], const struct lr_yardl_type *type)
{
    struct lr_petsird *petsird = matrix->petsird;
    if (matrix->is_odd != NULL) {
        *matrix->is_odd = true;
        return lr_yardl_skip(petsird->input, type);
    }
    return lr_yardl_error(petsird->input,
                          "'%s' has an entry for module types %lld and %lld, and there are %d "
                          "types: which entry is whose is not known",
                          matrix->name, (long long)entry[0], (long long)entry[1], petsird->num_types);
}

static lr_status take_type_matrix(const struct type_matrix *matrix, const struct lr_yardl_type *type)
{
    struct lr_petsird *petsird = matrix->petsird;
    struct lr_yardl_list rows, columns;
    LR_TRY(need_types(petsird, matrix->name));
    LR_TRY(lr_yardl_list(petsird->input, type, &rows));
    for (int64_t i = 0; i < rows.count; i++) {
        LR_TRY(lr_yardl_list(petsird->input, rows.item, &columns));
        for (int64_t j = 0; j < columns.count; j++) {
            const bool known = i < petsird->num_types && j < petsird->num_types;
            LR_TRY(known ? matrix->take(petsird, &petsird->pairs[i * petsird->num_types + j], columns.item)
                         : pass_over(matrix, (const int64_t[2]){i, j}, columns.item));
        }
    }
    return LR_OK;
}

/* --- bins --- */

static const struct lr_yardl_field edge_fields[] = {{"edges", true, lr_petsird_take_floats}, {0}};

static lr_status check_ascending(struct lr_petsird *petsird, const float *edges, int64_t count)
{
    for (int64_t k = 1; k < count; k++) {
        if (!(edges[k] > edges[k - 1])) {
            return lr_yardl_error(petsird->input,
                                  "edge %lld of some bins is %g and the one before %g: they must "
                                  "ascend",
                                  (long long)k, edges[k], edges[k - 1]);
        }
    }
    return LR_OK;
}

static lr_status find_middles(struct lr_petsird *petsird, struct lr_petsird_pair *pair)
{
    const int bins = pair->num_edges - 1;
    free(pair->middles_mm);
    pair->middles_mm = lr_alloc(bins, sizeof(*pair->middles_mm), "bins", petsird->log);
    for (int k = 0; pair->middles_mm != NULL && k < bins; k++)
        pair->middles_mm[k] = (float)(0.5 * ((double)pair->edges_mm[k] + pair->edges_mm[k + 1]));
    return pair->middles_mm != NULL ? LR_OK : LR_FAILED;
}

static lr_status take_tof_edges(struct lr_petsird *petsird, struct lr_petsird_pair *pair,
                                const struct lr_yardl_type *type)
{
    struct lr_petsird_floats edges = {petsird, &pair->edges_mm, 0};
    LR_TRY(lr_yardl_record(petsird->input, type, edge_fields, &edges));
    if (edges.count == 1 || edges.count > INT32_MAX)
        return lr_yardl_error(petsird->input, "%lld edges of time-of-flight bins", (long long)edges.count);
    pair->num_edges = (int)edges.count;
    LR_TRY(check_ascending(petsird, pair->edges_mm, edges.count));
    return edges.count > 0 ? find_middles(petsird, pair) : LR_OK;
}

lr_status lr_petsird_take_tof_bins(void *user, struct lr_yardl_input *input, const struct lr_yardl_type *type)
{
    (void)input;
    return take_type_matrix(&(struct type_matrix){.name = "tofBinEdges", .petsird = user, .take = take_tof_edges},
                            type);
}

static lr_status take_tof_resolution(struct lr_petsird *petsird, struct lr_petsird_pair *pair,
                                     const struct lr_yardl_type *type)
{
    LR_TRY(lr_yardl_number(petsird->input, type, &pair->resolution_mm));
    if (!(pair->resolution_mm > 0) || !isfinite(pair->resolution_mm)) pair->resolution_mm = 0;
    return LR_OK;
}

lr_status lr_petsird_take_resolutions(void *user, struct lr_yardl_input *input, const struct lr_yardl_type *type)
{
    struct lr_petsird *petsird = user;
    (void)input;
    LR_TRY(take_type_matrix(
        &(struct type_matrix){"tofResolution", petsird, take_tof_resolution, &petsird->odd_resolutions}, type));
    for (int k = 0; petsird->odd_resolutions && k < petsird->num_types * petsird->num_types; k++)
        petsird->pairs[k].resolution_mm = 0;
    return LR_OK;
}

/* --- masks --- */

/* The numbers of a mask: an array [rows][columns], or rows of which each may be shorter. */
static lr_status take_mask_rows(struct lr_petsird *petsird, struct lr_petsird_pair *pair,
                                const struct lr_yardl_list *list)
{
    struct lr_yardl_list row = {.item = list->item, .count = pair->columns};
    const bool nested = list->rank == 1;
    for (int64_t i = 0; i < pair->rows; i++) {
        if (nested) LR_TRY(lr_yardl_list(petsird->input, list->item, &row));
        for (int64_t j = 0; j < row.count; j++) {
            int64_t group;
            LR_TRY(lr_yardl_integer(petsird->input, row.item, &group));
            if (j < pair->columns && group < 0)
                pair->excluded[i * pair->columns + j] = 1;
            else if (j < pair->columns)
                pair->excluded[i * pair->columns + j] = 2;
        }
    }
    return LR_OK;
}

static lr_status take_mask(struct lr_petsird *petsird, struct lr_petsird_pair *pair, const struct lr_yardl_type *type)
{
    struct lr_yardl_list list;
    const int64_t at = (pair - petsird->pairs) / petsird->num_types;
    const int64_t across = (pair - petsird->pairs) % petsird->num_types;
    LR_TRY(lr_yardl_list(petsird->input, type, &list));
    if (list.count == 0) return LR_OK;
    pair->rows = list.dims[0];
    pair->columns = list.rank == 2 ? list.dims[1] : petsird->types[across].num_modules;
    if (list.rank > 2 || pair->rows > petsird->types[at].num_modules ||
        pair->columns > petsird->types[across].num_modules) {
        return lr_yardl_error(petsird->input,
                              "the table of module pairs has %lld x %lld of them, and there are "
                              "%lld x %lld",
                              (long long)pair->rows, (long long)pair->columns,
                              (long long)petsird->types[at].num_modules, (long long)petsird->types[across].num_modules);
    }
    if (pair->columns > 0 && pair->rows > LR_PETSIRD_MAX_MASK / pair->columns)
        return lr_yardl_error(petsird->input, "more than %d pairs of modules: they are not read", LR_PETSIRD_MAX_MASK);
    free(pair->excluded);
    pair->excluded = lr_alloc(pair->rows * pair->columns, 1, "pairs of modules", petsird->log);
    return pair->excluded != NULL ? take_mask_rows(petsird, pair, &list) : LR_FAILED;
}

lr_status lr_petsird_take_masks(void *user, struct lr_yardl_input *input, const struct lr_yardl_type *type)
{
    (void)input;
    return take_type_matrix(&(struct type_matrix){.name = "modulePairSGIDLUT", .petsird = user, .take = take_mask},
                            type);
}

/* --- energies --- */

static lr_status take_energy_edges(struct lr_petsird *petsird, struct lr_petsird_type *of,
                                   const struct lr_yardl_type *type)
{
    float *values = NULL;
    struct lr_petsird_floats edges = {petsird, &values, 0};
    lr_status status = lr_yardl_record(petsird->input, type, edge_fields, &edges);
    status = status == LR_OK ? check_ascending(petsird, values, edges.count) : status;
    if (status == LR_OK && edges.count == 1)
        status = lr_yardl_error(petsird->input, "one edge of energy bins: they need two");
    if (status == LR_OK && edges.count > 1) {
        of->num_energies = edges.count - 1;
        of->per_energy = 1.0 / (double)of->num_energies;
        of->energy_kev[0] = values[0];
        of->energy_kev[1] = values[edges.count - 1];
    }
    free(values);
    return status;
}

lr_status lr_petsird_take_energies(void *user, struct lr_yardl_input *input, const struct lr_yardl_type *type)
{
    struct lr_petsird *petsird = user;
    struct lr_yardl_list list;
    LR_TRY(need_types(petsird, "eventEnergyBinEdges"));
    LR_TRY(lr_yardl_list(input, type, &list));
    if (list.count != 0 && list.count != petsird->num_types) {
        return lr_yardl_error(input,
                              "energy bins of %lld module types, and there are %d: which bins are "
                              "whose is not known",
                              (long long)list.count, petsird->num_types);
    }
    for (int64_t k = 0; k < list.count; k++) LR_TRY(take_energy_edges(petsird, &petsird->types[k], list.item));
    return LR_OK;
}

/* --- what they say --- */

const struct lr_petsird_pair *lr_petsird_tof(const struct lr_petsird *petsird, const int types[2], double *sign)
{
    const int n = petsird->num_types;
    const struct lr_petsird_pair *pair = &petsird->pairs[types[0] * n + types[1]];
    *sign = pair->num_edges > 0 ? 1 : -1;
    return pair->num_edges > 0 ? pair : &petsird->pairs[types[1] * n + types[0]];
}

double lr_petsird_resolution_mm(const struct lr_petsird *petsird, const int types[2])
{
    const int n = petsird->num_types;
    const double own = petsird->pairs[types[0] * n + types[1]].resolution_mm;
    return own > 0 ? own : petsird->pairs[types[1] * n + types[0]].resolution_mm;
}

bool lr_petsird_has_mask(const struct lr_petsird *petsird)
{
    bool any = false;
    for (int k = 0; k < petsird->num_types * petsird->num_types; k++) any = any || petsird->pairs[k].excluded != NULL;
    return any;
}

int lr_petsird_type_of(const struct lr_petsird *petsird, int64_t crystal, int64_t *module)
{
    int type = petsird->num_types - 1;
    while (type > 0 && crystal < petsird->types[type].first_crystal) type--;
    const struct lr_petsird_type *found = &petsird->types[type];
    *module = (crystal - found->first_crystal) / found->num_elements;
    return type;
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "model/scanner/module_index.h"

#include "base/mem.h"
#include "base/vec.h"

#include <stdlib.h>

static void set_bounds(const lr_module *module, double bounds[6])
{
    double middle[3];
    vec_add_scaled(module->centre_mm, -0.5 * module->depth_mm, module->normal, middle);
    for (int k = 0; k < 3; k++) {
        const double half = 0.5 * (module->crystals[0] * module->pitch_mm[0] * fabs(module->u[k]) +
                                   module->crystals[1] * module->pitch_mm[1] * fabs(module->v[k]) +
                                   module->depth_mm * fabs(module->normal[k]));
        bounds[2 * k] = middle[k] - half;
        bounds[2 * k + 1] = middle[k] + half;
    }
}

/* The axis along which the modules cover least of what they span. */
static int choose_axis(const struct lr_module_index *index)
{
    int best = 0;
    double least = INFINITY;
    for (int k = 0; k < 3; k++) {
        double low = INFINITY, high = -INFINITY, sum = 0;
        for (int m = 0; m < index->count; m++) {
            low = fmin(low, index->bounds[m][2 * k]);
            high = fmax(high, index->bounds[m][2 * k + 1]);
            sum += index->bounds[m][2 * k + 1] - index->bounds[m][2 * k];
        }
        if (sum / (high - low) < least) {
            least = sum / (high - low);
            best = k;
        }
    }
    return best;
}

struct entry {
    double low;
    int module;
};

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return x->low != y->low ? (x->low > y->low) - (x->low < y->low) : x->module - y->module;
}

static int compare_numbers(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static lr_status sort_modules(struct lr_module_index *index, const lr_log *log)
{
    struct entry *entries = lr_alloc(index->count, sizeof(*entries), "an index of modules", log);
    if (entries == NULL) return LR_FAILED;
    for (int m = 0; m < index->count; m++) entries[m] = (struct entry){index->bounds[m][2 * index->axis], m};
    qsort(entries, (size_t)index->count, sizeof(*entries), compare_entries);
    double reach = -INFINITY;
    for (int k = 0; k < index->count; k++) {
        index->order[k] = entries[k].module;
        reach = fmax(reach, index->bounds[entries[k].module][2 * index->axis + 1]);
        index->reach[k] = reach;
    }
    free(entries);
    return LR_OK;
}

lr_status lr_module_index_init(struct lr_module_index *index, const lr_module *modules, int count, const lr_log *log)
{
    static const char *const what = "an index of modules";
    *index = (struct lr_module_index){.count = count};
    index->bounds = lr_alloc(count, sizeof(*index->bounds), what, log);
    index->order = index->bounds ? lr_alloc(count, sizeof(*index->order), what, log) : NULL;
    index->reach = index->order ? lr_alloc(count, sizeof(*index->reach), what, log) : NULL;
    index->met = index->reach ? lr_alloc(count, sizeof(*index->met), what, log) : NULL;
    if (index->met == NULL) {
        lr_module_index_finish(index);
        return LR_FAILED;
    }
    for (int m = 0; m < count; m++) set_bounds(&modules[m], index->bounds[m]);
    index->axis = choose_axis(index);
    const lr_status status = sort_modules(index, log);
    if (status != LR_OK) lr_module_index_finish(index);
    return status;
}

void lr_module_index_finish(struct lr_module_index *index)
{
    free(index->bounds);
    free(index->order);
    free(index->reach);
    free(index->met);
    *index = (struct lr_module_index){0};
}

/* The first place in the order from which on something reaches up to `low`. */
static int first_reaching(const struct lr_module_index *index, double low)
{
    int begin = 0, end = index->count;
    while (begin < end) {
        const int middle = begin + (end - begin) / 2;
        if (index->reach[middle] < low)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

static bool meet(const double a[6], const double b[6])
{
    return a[0] <= b[1] && b[0] <= a[1] && a[2] <= b[3] && b[2] <= a[3] && a[4] <= b[5] && b[4] <= a[5];
}

int lr_module_index_meet(struct lr_module_index *index, int module)
{
    const double *bounds = index->bounds[module];
    const int low = 2 * index->axis;
    int count = 0;
    for (int k = first_reaching(index, bounds[low]); k < index->count; k++) {
        const int other = index->order[k];
        if (index->bounds[other][low] > bounds[low + 1]) break;
        if (other > module && meet(bounds, index->bounds[other])) index->met[count++] = other;
    }
    qsort(index->met, (size_t)count, sizeof(*index->met), compare_numbers);
    return count;
}

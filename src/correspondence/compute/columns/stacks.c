/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/order.h"
#include "correspondence/compute/columns/columns.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "common/bindings.h"
#include "correspondence/plan.h"
#include "device/place.h"
#include "model/lors/place.h"
#include "model/scanner/coincidence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* `struct StackPair` of shaders/correspondence/columns/stacks.glsl. */
struct stack_pair {
    uint32_t a, b;
    int32_t count_a, count_b, first_a, first_b;
    uint32_t first, present;
    uint32_t image, image_first, image_swapped, unused;
};
_Static_assert(sizeof(struct stack_pair) == 48, "the shaders' layout");

/* `struct StackMember` of shaders/correspondence/columns/stacks.glsl. */
struct stack_member {
    uint32_t pair, place_a, place_b, swapped;
};

/* The tolerance of positions, mm, when modules are grouped to stacks and when stacks are compared after half a turn. */
static const double place_tolerance_mm = 1e-6;

/* --- which modules make a stack --- */

static double along(const struct lr_columns *columns, int module)
{
    double centre[3];
    lr_scanner_detection_centre(columns->params.scanner, module, centre);
    return centre[columns->axis];
}

static bool same_cells(const lr_module *a, const lr_module *b)
{
    bool same = true;
    for (int k = 0; k < 2; k++) {
        same = same && a->crystals[k] == b->crystals[k] && a->pitch_mm[k] == b->pitch_mm[k] &&
               a->face_mm[k] == b->face_mm[k];
    }
    return same;
}

/* Returns true if two modules have equal crystals and orientations, and are on one line along the columns. */
static bool belong_together(const struct lr_columns *columns, int a, int b)
{
    const lr_module *one = &columns->params.scanner->modules[a];
    const lr_module *other = &columns->params.scanner->modules[b];
    double from[3], to[3];
    lr_scanner_detection_centre(columns->params.scanner, a, from);
    lr_scanner_detection_centre(columns->params.scanner, b, to);
    const double same = 1.0 - 1e-12; /* if the cosine between two directions is above this, they count as equal */
    return same_cells(one, other) && vec_dot(one->u, other->u) > same && vec_dot(one->v, other->v) > same &&
           vec_dot(one->normal, other->normal) > same &&
           fabs(from[columns->across[0]] - to[columns->across[0]]) <= place_tolerance_mm &&
           fabs(from[columns->across[1]] - to[columns->across[1]]) <= place_tolerance_mm;
}

/* --- images after half a turn --- */

static double middle_of_stack(const struct lr_columns *columns, const struct lr_columns_stacks *stacks, int stack)
{
    const int places = stacks->count[stack] - 1;
    return along(columns, stacks->first[stack]) + (places > 0 ? 0.5 * places * stacks->spacing_mm[stack] : 0.0);
}

/* Returns true if two vectors are opposite across the columns and equal along them. */
static bool is_turned(const struct lr_columns *columns, const double one[3], const double other[3])
{
    return fabs(one[columns->across[0]] + other[columns->across[0]]) < 1e-9 &&
           fabs(one[columns->across[1]] + other[columns->across[1]]) < 1e-9 &&
           fabs(one[columns->axis] - other[columns->axis]) < 1e-9;
}

static bool are_images(const struct lr_columns *columns, const struct lr_columns_stacks *stacks, int a, int b)
{
    const lr_module *one = &columns->params.scanner->modules[stacks->first[a]];
    const lr_module *other = &columns->params.scanner->modules[stacks->first[b]];
    double from[3], to[3];
    lr_scanner_detection_centre(columns->params.scanner, stacks->first[a], from);
    lr_scanner_detection_centre(columns->params.scanner, stacks->first[b], to);
    bool turned = same_cells(one, other) && is_turned(columns, one->u, other->u) &&
                  is_turned(columns, one->v, other->v) && is_turned(columns, one->normal, other->normal);
    for (int k = 0; k < 2; k++) {
        const int axis = columns->across[k];
        turned = turned && fabs(from[axis] + to[axis] - 2.0 * lr_columns_middle(columns, axis)) <= place_tolerance_mm;
    }
    return turned && stacks->count[a] == stacks->count[b] &&
           fabs(stacks->spacing_mm[a] - stacks->spacing_mm[b]) <= place_tolerance_mm &&
           fabs(middle_of_stack(columns, stacks, a) - middle_of_stack(columns, stacks, b)) <= place_tolerance_mm;
}

lr_status lr_columns_stacks_init(struct lr_columns_stacks *stacks, const struct lr_columns *columns)
{
    const lr_scanner *scanner = columns->params.scanner;
    const int num_modules = scanner->num_modules, axis = columns->axis;
    const lr_log *log = columns->params.log;
    *stacks = (struct lr_columns_stacks){.stack_of = lr_alloc(num_modules, sizeof(int), "stacks of modules", log),
                                         .place_of = lr_alloc(num_modules, sizeof(int), "stacks of modules", log),
                                         .first = lr_alloc(num_modules, sizeof(int), "stacks of modules", log),
                                         .count = lr_alloc(num_modules, sizeof(int), "stacks of modules", log),
                                         .image = lr_alloc(num_modules, sizeof(int), "stacks of modules", log),
                                         .first_cell = lr_alloc(num_modules, sizeof(int), "stacks of modules", log),
                                         .spacing_mm = lr_alloc(num_modules, sizeof(double), "stacks of modules", log)};
    int *members = lr_alloc(num_modules, sizeof(int), "stacks of modules", log);
    if (!stacks->stack_of || !stacks->place_of || !stacks->first || !stacks->count || !stacks->first_cell ||
        !stacks->image || !stacks->spacing_mm || !members) {
        free(members);
        lr_columns_stacks_finish(stacks);
        return LR_FAILED;
    }

    for (int m = 0; m < num_modules; m++) stacks->stack_of[m] = -1;
    for (int m = 0; m < num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        const bool is_along =
            fabs(module->normal[axis]) < 1e-9 && fmax(fabs(module->u[axis]), fabs(module->v[axis])) > 1.0 - 1e-9;
        if (stacks->stack_of[m] >= 0 || !is_along) continue;

        /* Collects module m and all modules that are in its line and have no stack yet, in ascending order along the
         * columns. */
        int count = 0;
        for (int other = m; other < num_modules; other++) {
            if (stacks->stack_of[other] >= 0 || !belong_together(columns, m, other)) continue;
            int place = count++;
            for (; place > 0 && along(columns, members[place - 1]) > along(columns, other); place--)
                members[place] = members[place - 1];
            members[place] = other;
        }

        const double first = along(columns, members[0]);
        const double spacing = count > 1 ? along(columns, members[1]) - first : 0.0;
        bool is_even = true;
        for (int k = 2; k < count && is_even; k++)
            is_even = !(fabs(along(columns, members[k]) - first - k * spacing) > place_tolerance_mm);

        /* If the distances between the modules are uneven, each module becomes a stack of its own. */
        const int modules = is_even ? count : 1;
        for (int begin = 0; begin < count; begin += modules) {
            const int stack = stacks->num_stacks++;
            stacks->first[stack] = members[begin];
            stacks->count[stack] = modules;
            stacks->spacing_mm[stack] = modules > 1 ? spacing : 1e6;
            stacks->most_modules = modules > stacks->most_modules ? modules : stacks->most_modules;
            for (int k = 0; k < modules; k++) {
                stacks->stack_of[members[begin + k]] = stack;
                stacks->place_of[members[begin + k]] = k;
            }
        }
    }
    free(members);

    /* The symmetry under half a turn is used if there are at least three stacks. Two stacks make a single pair, which
     * half a turn maps to itself. */
    stacks->has_half_turn = columns->params.mode == LR_MODE_EXACT && stacks->num_stacks > 2;
    stacks->are_mirrored = true;

    for (int a = 0; a < stacks->num_stacks; a++) {
        stacks->image[a] = -1;
        for (int b = 0; b < stacks->num_stacks && stacks->image[a] < 0; b++)
            stacks->image[a] = are_images(columns, stacks, a, b) ? b : -1;
        stacks->has_half_turn = stacks->has_half_turn && stacks->image[a] >= 0;
        const double off_mm = middle_of_stack(columns, stacks, a) - lr_columns_middle(columns, columns->axis);
        stacks->are_mirrored = stacks->are_mirrored && !(fabs(off_mm) > place_tolerance_mm);
    }
    return LR_OK;
}

void lr_columns_stacks_finish(struct lr_columns_stacks *stacks)
{
    lr_free_all(stacks->stack_of, stacks->place_of, stacks->first, stacks->count, stacks->image, stacks->first_cell,
                stacks->spacing_mm);
    *stacks = (struct lr_columns_stacks){0};
}

/* --- places of cells --- */

static int cells_along(const struct lr_columns *columns, int stack)
{
    int counts[2];
    lr_columns_count_crystals(columns, columns->stacks->first[stack], counts);
    return columns->stacks->count[stack] * counts[1];
}

/* The position, mm, of the two extra cells beyond the ends of a stack. It is beyond all real cells, and a float holds
 * this number exactly. */
static const double far_cell_mm = 1e7;

struct gl_buffer *lr_columns_upload_cells(const struct lr_columns *columns)
{
    struct lr_columns_stacks *stacks = columns->stacks;
    int64_t total = 0;
    for (int k = 0; k < stacks->num_stacks; k++) {
        const int cells = cells_along(columns, k);
        stacks->first_cell[k] = (int)total + 1;
        total += cells + 2;
        stacks->most_cells = cells > stacks->most_cells ? cells : stacks->most_cells;
    }
    float *middles = lr_alloc(total, sizeof(*middles), "places of crystals", columns->params.log);
    if (middles == NULL) return NULL;
    for (int stack = 0; stack < stacks->num_stacks; stack++) {
        /* Positions are relative to the middle of the stack, so that mirror images differ only in sign. */
        const lr_module *module = &columns->params.scanner->modules[stacks->first[stack]];
        const int axis = fabs(module->v[columns->axis]) > fabs(module->u[columns->axis]) ? 1 : 0;
        const int in_module = module->crystals[axis], cells = cells_along(columns, stack);
        const double last_place = 0.5 * (stacks->count[stack] - 1), last_cell = 0.5 * (in_module - 1);
        const double away = middle_of_stack(columns, stacks, stack) - lr_columns_middle(columns, columns->axis);
        const double start = columns->is_mirrored ? 0.0 : away;
        float *own = middles + stacks->first_cell[stack];
        own[-1] = (float)-far_cell_mm;
        for (int k = 0; k < cells; k++) {
            const double place = (k / in_module - last_place) * stacks->spacing_mm[stack] +
                                 (k % in_module - last_cell) * module->pitch_mm[axis];
            own[k] = (float)(start + place);
        }
        own[cells] = (float)far_cell_mm;
    }
    struct gl_buffer *buffer =
        gl_data_buffer(columns->ctx, "places of crystals", total * (int64_t)sizeof(*middles), middles);
    free(middles);
    return buffer;
}

/* --- pairs of stacks --- */

/* The stacks a <= b of the modules of a pair. */
struct stack_key {
    int a, b;
    bool swapped; /* true if the pair's module with the lower number belongs to stack b */
};

static struct stack_key key_of(const struct lr_columns *columns, int64_t pair)
{
    const int32_t *modules = columns->params.lors->pairs[pair];
    const int i = columns->stacks->stack_of[modules[0]], j = columns->stacks->stack_of[modules[1]];
    return i <= j ? (struct stack_key){i, j, false} : (struct stack_key){j, i, true};
}

bool lr_columns_same_stacks(const struct lr_columns *columns, int64_t pair, int64_t other)
{
    const struct stack_key one = key_of(columns, pair), two = key_of(columns, other);
    return one.a == two.a && one.b == two.b;
}

struct ordered_pair {
    int64_t key, source;
    int32_t pair;
};

static int compare_pairs(const void *a, const void *b)
{
    const struct ordered_pair *one = a, *other = b;
    return lr_order_then(lr_order_whole(one->key, other->key), lr_order_whole(one->pair, other->pair));
}

lr_status lr_columns_order_by_stacks(const struct lr_columns *columns, const lr_selection *list,
                                     struct lr_stack_order *order)
{
    const lr_log *log = columns->params.log;
    const lr_lors *lors = columns->params.lors;
    const int64_t length = list->pairs != NULL ? list->num_pairs : lors->num_pairs;
    struct ordered_pair *pairs = lr_alloc(length, sizeof(*pairs), "pairs of modules", log);
    order->pairs = lr_alloc(length, sizeof(*order->pairs), "pairs of modules", log);
    order->sources = lr_alloc(length, sizeof(*order->sources), "pairs of modules", log);
    if (!pairs || !order->pairs || !order->sources) {
        free(pairs);
        lr_stack_order_finish(order);
        return LR_FAILED;
    }
    int64_t count = 0, source = 0;
    for (int64_t k = 0; k < length; k++) {
        const int64_t pair = list->pairs != NULL ? list->pairs[k] : k;
        const struct stack_key key = key_of(columns, pair);
        if (key.a != key.b) {
            pairs[count++] = (struct ordered_pair){
                .key = (int64_t)key.a * columns->stacks->num_stacks + key.b, .source = source, .pair = (int32_t)pair};
        }
        source += lors->offsets[pair + 1] - lors->offsets[pair];
    }
    qsort(pairs, (size_t)count, sizeof(*pairs), compare_pairs);
    for (int64_t k = 0; k < count; k++) {
        order->pairs[k] = pairs[k].pair;
        order->sources[k] = pairs[k].source;
    }
    order->list = *list;
    order->list.pairs = order->pairs;
    order->list.num_pairs = count;
    order->num_sources = source;
    free(pairs);
    return LR_OK;
}

lr_status lr_columns_clear_left_out(const struct lr_columns *columns, const lr_selection *list, const lr_vector *data)
{
    const lr_lors *lors = columns->params.lors;
    const int64_t length = list->pairs != NULL ? list->num_pairs : lors->num_pairs;
    int64_t source = 0;
    for (int64_t k = 0; k < length; k++) {
        const int64_t pair = list->pairs != NULL ? list->pairs[k] : k;
        const int64_t values = lors->offsets[pair + 1] - lors->offsets[pair];
        const struct stack_key key = key_of(columns, pair);
        if (key.a == key.b) {
            lr_vector left_out = lr_vector_part(data, source, values);
            LR_TRY(lr_vector_fill(&left_out, 0.0));
        }
        source += values;
    }
    return LR_OK;
}

void lr_stack_order_finish(struct lr_stack_order *order)
{
    lr_free_all(order->pairs, order->sources);
    *order = (struct lr_stack_order){0};
}

static int compare_keys(const void *a, const void *b)
{
    const struct stack_key *one = a, *other = b;
    return one->a != other->a ? one->a - other->a : one->b - other->b;
}

lr_status lr_columns_upload_stacks(const struct lr_columns *columns, const lr_selection *list, const int64_t range[2],
                                   struct lr_stack_buffers *buffers)
{
    const struct lr_columns_stacks *stacks = columns->stacks;
    const int64_t count = range[1] - range[0];
    const lr_log *log = columns->params.log;
    struct stack_pair *pairs = lr_alloc(count, sizeof(*pairs), "pairs of stacks", log);
    struct stack_member *members = lr_alloc(count, sizeof(*members), "pairs of stacks", log);
    struct stack_key *keys = lr_alloc(count, sizeof(*keys), "pairs of stacks", log);
    const bool has_memory = pairs && members && keys;
    int num_pairs = 0;
    int64_t num_values = 0;
    for (int64_t k = 0; has_memory && k < count; k++) {
        const int64_t number = list->pairs[range[0] + k];
        const int32_t *modules = columns->params.lors->pairs[number];
        const struct stack_key key = key_of(columns, number);
        if (k == 0 || !lr_columns_same_stacks(columns, list->pairs[range[0] + k - 1], number)) {
            int64_t crystals[2];
            for (int side = 0; side < 2; side++) {
                const int stack = side == 0 ? key.a : key.b;
                const lr_module *module = &columns->params.scanner->modules[stacks->first[stack]];
                crystals[side] = (int64_t)module->crystals[0] * module->crystals[1] * stacks->count[stack];
            }
            keys[num_pairs] = key;
            pairs[num_pairs++] = (struct stack_pair){.a = (uint32_t)stacks->first[key.a],
                                                     .b = (uint32_t)stacks->first[key.b],
                                                     .count_a = cells_along(columns, key.a),
                                                     .count_b = cells_along(columns, key.b),
                                                     .first_a = stacks->first_cell[key.a],
                                                     .first_b = stacks->first_cell[key.b],
                                                     .first = (uint32_t)num_values};
            num_values += crystals[0] * crystals[1];
        }

        /* is_present() of shaders/correspondence/columns/forward_exact.comp must read the same bit. */
        const int place_a = stacks->place_of[modules[key.swapped ? 1 : 0]];
        const int place_b = stacks->place_of[modules[key.swapped ? 0 : 1]];
        pairs[num_pairs - 1].present |= (uint32_t)1 << ((place_a * stacks->count[key.b] + place_b) & 31);
        members[k] = (struct stack_member){.pair = (uint32_t)(num_pairs - 1),
                                           .place_a = (uint32_t)place_a,
                                           .place_b = (uint32_t)place_b,
                                           .swapped = key.swapped};
    }

    /* Finds for each pair the pair onto which half a turn maps it. The keys are in ascending order, like the pairs of
     * the list. */
    buffers->has_half_turn = has_memory && stacks->has_half_turn;
    for (int k = 0; k < num_pairs; k++) pairs[k].image = LR_NONE;
    for (int k = 0; stacks->has_half_turn && k < num_pairs; k++) {
        const int a = stacks->image[keys[k].a], b = stacks->image[keys[k].b];
        const struct stack_key key = {a < b ? a : b, a < b ? b : a, a > b};
        const struct stack_key *found = bsearch(&key, keys, (size_t)num_pairs, sizeof(key), compare_keys);
        if (found != NULL) {
            pairs[k].image = (uint32_t)(found - keys);
            pairs[k].image_first = pairs[found - keys].first;
        }
        pairs[k].image_swapped = key.swapped;
        buffers->has_half_turn = buffers->has_half_turn && found != NULL;
    }
    buffers->num_pairs = num_pairs;
    buffers->num_values = num_values;
    buffers->pairs = gl_data_buffer(columns->ctx, "pairs of stacks", num_pairs * (int64_t)sizeof(*pairs), pairs);
    buffers->members =
        gl_data_buffer(columns->ctx, "members of stacks", has_memory ? count * (int64_t)sizeof(*members) : 0, members);
    lr_free_all(pairs, members, keys);
    return has_memory && buffers->pairs && buffers->members ? LR_OK : LR_FAILED;
}

int lr_columns_num_points(const struct lr_columns *columns, int axis)
{
    return columns->params.grid->size[axis] * columns->params.samples[axis];
}

double lr_columns_coordinate(const struct lr_columns *columns, int axis, int k)
{
    const lr_grid *grid = columns->params.grid;
    const int samples = columns->params.samples[axis];
    const double offset = (k % samples + 0.5) / samples - 0.5;
    return grid->origin_mm[axis] + (k / samples + offset) * grid->voxel_mm[axis];
}

double lr_columns_middle(const struct lr_columns *columns, int axis)
{
    const int last = lr_columns_num_points(columns, axis) - 1;
    return 0.5 * (lr_columns_coordinate(columns, axis, 0) + lr_columns_coordinate(columns, axis, last));
}

void lr_columns_count_crystals(const struct lr_columns *columns, int module, int counts[2])
{
    const lr_module *m = &columns->params.scanner->modules[module];
    const int along = fabs(m->v[columns->axis]) > fabs(m->u[columns->axis]) ? 1 : 0;
    counts[0] = m->crystals[1 - along];
    counts[1] = m->crystals[along];
}

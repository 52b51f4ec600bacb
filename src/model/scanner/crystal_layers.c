/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "model/scanner/crystal_panels.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "model/scanner/scanner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Normals of modules of one block may differ by so much, and boxes overlap by rounding (mm). */
static const double parallel = 1e-4, rounding_mm = 0.05;

/* --- which modules stand behind which --- */

/* Half of a module's extent along a unit vector, of its pitch rectangle. */
static double half_extent(const lr_module *module, const double axis[3])
{
    return 0.5 * (module->crystals[0] * module->pitch_mm[0] * fabs(vec_dot(module->u, axis)) +
                  module->crystals[1] * module->pitch_mm[1] * fabs(vec_dot(module->v, axis)));
}

/* True if the middle of one module is within the other, seen along their normal. */
static bool are_in_line(const lr_module *a, const lr_module *b)
{
    const double *axes[2] = {a->u, a->v};
    double way[3];
    bool in_a = true, in_b = true;
    vec_sub(b->centre_mm, a->centre_mm, way);
    for (int k = 0; k < 2; k++) {
        const double off = fabs(vec_dot(way, axes[k]));
        in_a = in_a && off < half_extent(a, axes[k]);
        in_b = in_b && off < half_extent(b, axes[k]);
    }
    return in_a || in_b;
}

/* Gap between the back of one module and the front of another one, mm; infinite if that one is not directly behind
 * it, or farther than crystals are deep. */
static double gap_behind(const lr_module *front, const lr_module *back)
{
    double way[3];
    vec_sub(back->centre_mm, front->centre_mm, way);
    const double gap = -vec_dot(way, front->normal) - front->depth_mm;
    const bool is_near = gap > -rounding_mm && gap <= fmax(front->depth_mm, back->depth_mm);
    return is_near && vec_dot(front->normal, back->normal) > 1 - parallel && are_in_line(front, back) ? gap : INFINITY;
}

/* The module that each stands directly behind; -1 = none. */
struct order {
    const lr_scanner *scanner;
    int *front;     /* [num_modules] */
    double *gap_mm; /* [num_modules] */
};

static void look_behind(struct order *order, int front, int back)
{
    const lr_module *modules = order->scanner->modules;
    const double gap = gap_behind(&modules[front], &modules[back]);
    if (gap < order->gap_mm[back]) {
        order->gap_mm[back] = gap;
        order->front[back] = front;
    }
}

/* Finds the module in front of each, by boxes that reach as far behind as a layer may stand. */
static lr_status find_order(struct order *order, const lr_log *log)
{
    const int count = order->scanner->num_modules;
    struct lr_module_index index;
    lr_module *longer = lr_alloc(count, sizeof(*longer), "modules", log);
    double deepest = 0;
    if (longer == NULL) return LR_FAILED;
    for (int m = 0; m < count; m++) {
        order->front[m] = -1;
        order->gap_mm[m] = INFINITY;
        deepest = fmax(deepest, order->scanner->modules[m].depth_mm);
    }
    for (int m = 0; m < count; m++) {
        longer[m] = order->scanner->modules[m];
        longer[m].depth_mm += deepest + rounding_mm;
    }
    const lr_status status = lr_module_index_init(&index, longer, count, log);
    for (int m = 0; m < count && status == LR_OK; m++) {
        const int met = lr_module_index_meet(&index, m);
        for (int k = 0; k < met; k++) {
            look_behind(order, m, index.met[k]);
            look_behind(order, index.met[k], m);
        }
    }
    lr_module_index_finish(&index);
    free(longer);
    return status;
}

static lr_status order_init(struct order *order, const lr_scanner *scanner, const lr_log *log)
{
    *order = (struct order){.scanner = scanner};
    order->front = lr_alloc(scanner->num_modules, sizeof(*order->front), "layers", log);
    order->gap_mm = lr_alloc(scanner->num_modules, sizeof(*order->gap_mm), "layers", log);
    return order->front != NULL && order->gap_mm != NULL ? find_order(order, log) : LR_FAILED;
}

static void order_finish(struct order *order)
{
    free(order->front);
    free(order->gap_mm);
}

/* --- layers that the list does not name --- */

/* Sets the layers of `crystals`, a copy of the list's, by the modules that they make; *most is the
 * last layer. */
static lr_status find_layers(const lr_scanner *scanner, const int *crystal_of, const lr_crystal_list *list,
                             lr_crystal *crystals, int *most)
{
    struct order order;
    lr_status status = order_init(&order, scanner, list->log);
    *most = 0;
    for (int c = 0; c < list->num_crystals && status == LR_OK; c++) {
        int layer = 0;
        for (int m = lr_scanner_module_of(scanner, crystal_of[c]); order.front[m] >= 0; m = order.front[m]) layer++;
        crystals[c].layer = layer;
        *most = layer > *most ? layer : *most;
    }
    if (status == LR_OK && *most >= LR_MAX_LAYERS) {
        status = lr_error(list->log, LR_BAD_INPUT,
                          "%s: %d modules stand one behind the other: at most %d layers are "
                          "supported",
                          list->name ? list->name : "crystal list", *most + 1, LR_MAX_LAYERS);
    }
    order_finish(&order);
    return status;
}

/* --- one scanner a layer --- */

struct part {
    int *listed;     /* [count] numbers in the whole list */
    int *crystal_of; /* [count] */
    int count;
    lr_scanner *scanner;
};

struct parts {
    const lr_crystal_list *list;
    int count;
    struct part items[LR_MAX_LAYERS];
    double off_mm;
};

static lr_status build_part(struct parts *parts, int layer)
{
    struct part *part = &parts->items[layer];
    const lr_crystal_list *list = parts->list;
    char name[256];
    double off_mm = 0;
    lr_crystal *own = lr_alloc(list->num_crystals, sizeof(*own), "a layer", list->log);
    part->listed = lr_alloc(list->num_crystals, sizeof(int), "a layer", list->log);
    part->crystal_of = lr_alloc(list->num_crystals, sizeof(int), "a layer", list->log);
    if (own != NULL && part->listed != NULL && part->crystal_of != NULL) {
        for (int c = 0; c < list->num_crystals; c++) {
            if (list->crystals[c].layer == layer) {
                own[part->count] = list->crystals[c];
                part->listed[part->count++] = c;
            }
        }
        snprintf(name, sizeof(name), "%.180s, layer %d (crystals counted within it)",
                 list->name ? list->name : "crystal list", layer);
        lr_crystal_list of_layer = *list;
        of_layer.crystals = own;
        of_layer.num_crystals = part->count;
        of_layer.name = name;
        of_layer.coincidence = (lr_coincidence){0};
        part->scanner = lr_scanner_from_one_layer(&of_layer, part->crystal_of, &off_mm);
        parts->off_mm = fmax(parts->off_mm, off_mm);
    }
    free(own);
    return part->scanner != NULL ? LR_OK : LR_BAD_INPUT;
}

static lr_status build_parts(struct parts *parts)
{
    for (int c = 0; c < parts->list->num_crystals; c++) {
        const int layer = parts->list->crystals[c].layer;
        if (layer < 0 || layer >= LR_MAX_LAYERS) {
            return lr_error(parts->list->log, LR_BAD_INPUT, "crystal %d is in layer %d: layers run from 0 to %d", c,
                            layer, LR_MAX_LAYERS - 1);
        }
        parts->count = layer >= parts->count ? layer + 1 : parts->count;
    }
    for (int k = 0; k < parts->count; k++) LR_TRY(build_part(parts, k));
    return LR_OK;
}

/* --- one scanner of all --- */

struct whole {
    const struct parts *parts;
    int count;
    lr_module *modules; /* [count] layer by layer, then in the order of blocks */
    int *sorted;        /* [count] which of the former each of the latter is */
    lr_scanner rough;   /* of the former: not checked */
    int num_positions;
};

/* Numbers blocks from their fronts on, and gives layers the places of these. Places are none where
 * something stands behind nothing, or layers have other rings. */
static void number_blocks(struct whole *whole, const struct order *order)
{
    lr_module *modules = whole->rough.modules;
    int blocks = 0;
    whole->num_positions = whole->parts->items[0].scanner->num_positions;
    for (int k = 1; k < whole->parts->count; k++) {
        const int own = whole->parts->items[k].scanner->num_positions;
        whole->num_positions = own == whole->num_positions ? own : 0;
    }
    for (int m = 0; m < whole->count; m++) {
        const int front = order->front[m];
        if (front >= 0 && modules[front].layer < modules[m].layer) {
            modules[m].block = modules[front].block;
            modules[m].position = modules[front].position;
            modules[m].ring = modules[front].ring;
        } else {
            modules[m].block = ++blocks;
            whole->num_positions = modules[m].layer > 0 ? 0 : whole->num_positions;
        }
    }
}

struct key {
    int block, layer, module;
};

static int by_block(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    return x->block != y->block   ? x->block - y->block
           : x->layer != y->layer ? x->layer - y->layer
                                  : x->module - y->module;
}

static lr_status sort_modules(struct whole *whole)
{
    struct key *keys = lr_alloc(whole->count, sizeof(*keys), "modules", whole->parts->list->log);
    if (keys == NULL) return LR_FAILED;
    for (int m = 0; m < whole->count; m++)
        keys[m] = (struct key){whole->rough.modules[m].block, whole->rough.modules[m].layer, m};
    qsort(keys, (size_t)whole->count, sizeof(*keys), by_block);
    for (int m = 0; m < whole->count; m++) {
        whole->sorted[m] = keys[m].module;
        whole->modules[m] = whole->rough.modules[keys[m].module];
        if (whole->num_positions == 0)
            whole->modules[m].position = whole->modules[m].ring = whole->modules[m].first_crystal_ring = 0;
    }
    free(keys);
    return LR_OK;
}

/* Fills whole->modules. */
static lr_status arrange(struct whole *whole)
{
    struct order order;
    const struct parts *parts = whole->parts;
    const lr_log *log = parts->list->log;
    for (int k = 0; k < parts->count; k++) whole->count += parts->items[k].scanner->num_modules;
    whole->modules = lr_alloc(whole->count, sizeof(*whole->modules), "modules", log);
    whole->sorted = lr_alloc(whole->count, sizeof(*whole->sorted), "modules", log);
    whole->rough.modules = lr_alloc(whole->count, sizeof(*whole->modules), "modules", log);
    if (whole->modules == NULL || whole->sorted == NULL || whole->rough.modules == NULL) return LR_FAILED;
    for (int k = 0; k < parts->count; k++) {
        const lr_scanner *scanner = parts->items[k].scanner;
        for (int m = 0; m < scanner->num_modules; m++) {
            lr_module *module = &whole->rough.modules[whole->rough.num_modules++];
            *module = scanner->modules[m];
            module->layer = k;
        }
    }

    lr_status status = order_init(&order, &whole->rough, whole->parts->list->log);
    if (status == LR_OK) {
        number_blocks(whole, &order);
        /* The crystals of a layer end where the next one begins, however positions are rounded. */
        for (int m = 0; m < whole->count; m++) {
            lr_module *front = order.front[m] >= 0 ? &whole->rough.modules[order.front[m]] : NULL;
            if (front != NULL && order.gap_mm[m] < 0) {
                const double shorter = fmin(1.01 * -order.gap_mm[m], 0.5 * front->depth_mm);
                front->depth_mm -= shorter;
            }
        }

        status = sort_modules(whole);
    }
    order_finish(&order);
    return status;
}

static lr_scanner *create(const struct whole *whole)
{
    const lr_crystal_list *list = whole->parts->list;
    double detection_depth_mm = INFINITY;
    for (int k = 0; k < whole->parts->count; k++) {
        const double own = whole->parts->items[k].scanner->detection_depth_mm;
        detection_depth_mm = fmin(detection_depth_mm, own);
    }
    for (int m = 0; m < whole->count; m++) detection_depth_mm = fmin(detection_depth_mm, whole->modules[m].depth_mm);
    return lr_scanner_create(&(lr_scanner_params){
        .name = list->name,
        .modules = whole->modules,
        .num_modules = whole->count,
        .num_positions = whole->num_positions,
        .coincidence = list->coincidence,
        .detection_depth_mm = detection_depth_mm,
        .tof_resolution_ps = list->tof_resolution_ps,
        .crystal_mu_per_mm = list->crystal_mu_per_mm,
        .source = list->source,
        .log = list->log,
    });
}

static lr_status number_crystals(const struct whole *whole, const lr_scanner *scanner, int *crystal_of)
{
    const struct parts *parts = whole->parts;
    int *place = lr_alloc(whole->count, sizeof(*place), "modules", parts->list->log);
    int first = 0;
    if (place == NULL) return LR_FAILED;
    for (int m = 0; m < whole->count; m++) place[whole->sorted[m]] = m;
    for (int k = 0; k < parts->count; k++) {
        const struct part *part = &parts->items[k];
        for (int c = 0; c < part->count; c++) {
            const int own = lr_scanner_module_of(part->scanner, part->crystal_of[c]);
            crystal_of[part->listed[c]] =
                scanner->first_crystal[place[first + own]] + part->crystal_of[c] - part->scanner->first_crystal[own];
        }
        first += part->scanner->num_modules;
    }
    free(place);
    return LR_OK;
}

static lr_scanner *from_layers(const lr_crystal_list *list, int *crystal_of, double *residual_mm)
{
    struct parts parts = {.list = list};
    struct whole whole = {.parts = &parts};
    lr_scanner *scanner = NULL;
    if (build_parts(&parts) == LR_OK && arrange(&whole) == LR_OK) scanner = create(&whole);
    if (scanner != NULL && crystal_of != NULL && number_crystals(&whole, scanner, crystal_of) != LR_OK) {
        lr_scanner_destroy(scanner);
        scanner = NULL;
    }
    if (residual_mm != NULL) *residual_mm = parts.off_mm;
    free(whole.modules);
    free(whole.sorted);
    free(whole.rough.modules);

    for (int k = 0; k < parts.count; k++) {
        free(parts.items[k].listed);
        free(parts.items[k].crystal_of);
        lr_scanner_destroy(parts.items[k].scanner);
    }

    return scanner;
}

/* --- all lists --- */

/* Rules may count places that there are only once layers have been found. */
static lr_status take_rules(lr_scanner *scanner, const lr_crystal_list *list)
{
    const lr_scanner_params params = {.name = scanner->name,
                                      .modules = scanner->modules,
                                      .num_modules = scanner->num_modules,
                                      .num_positions = scanner->num_positions,
                                      .coincidence = list->coincidence,
                                      .detection_depth_mm = scanner->detection_depth_mm,
                                      .log = list->log};
    scanner->coincidence = list->coincidence;
    return lr_scanner_check_params(&params);
}

/* Takes over the scanner that the list makes as if it had no layers, and no rules. */
static lr_scanner *look_for_layers(lr_scanner *flat, const lr_crystal_list *list, int *crystal_of, double *residual_mm)
{
    int most = 0;
    lr_crystal *crystals = lr_alloc(list->num_crystals, sizeof(*crystals), "crystals", list->log);
    lr_scanner *scanner = flat;
    if (crystals == NULL) {
        lr_scanner_destroy(flat);
        return NULL;
    }
    memcpy(crystals, list->crystals, (size_t)list->num_crystals * sizeof(*crystals));
    lr_status status = find_layers(flat, crystal_of, list, crystals, &most);
    status = status == LR_OK && most == 0 ? take_rules(flat, list) : status;
    if (status != LR_OK || most > 0) {
        lr_scanner_destroy(flat);
        scanner = NULL;
    }
    if (status == LR_OK && most > 0) {
        lr_crystal_list layered = *list;
        layered.crystals = crystals;
        scanner = from_layers(&layered, crystal_of, residual_mm);
    }
    free(crystals);
    return scanner;
}

static bool has_layers(const lr_crystal_list *list)
{
    for (int c = 0; c < list->num_crystals; c++)
        if (list->crystals[c].layer != 0) return true;
    return false;
}

lr_scanner *lr_scanner_from_crystals(const lr_crystal_list *list, int *crystal_of, double *residual_mm)
{
    if (has_layers(list)) return from_layers(list, crystal_of, residual_mm);
    if (!list->finds_layers) return lr_scanner_from_one_layer(list, crystal_of, residual_mm);
    int *numbers =
        crystal_of != NULL ? crystal_of : lr_alloc(list->num_crystals, sizeof(*numbers), "crystals", list->log);
    lr_crystal_list without_rules = *list;
    without_rules.coincidence = (lr_coincidence){0};
    lr_scanner *scanner = numbers != NULL ? lr_scanner_from_one_layer(&without_rules, numbers, residual_mm) : NULL;
    if (scanner != NULL) scanner = look_for_layers(scanner, list, numbers, residual_mm);
    if (numbers != crystal_of) free(numbers);
    return scanner;
}

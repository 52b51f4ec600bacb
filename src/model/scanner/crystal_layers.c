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

/* Limits for modules of one block: the cosine between their normals differs from 1 by less than `parallel`, and their
 * boxes overlap by less than `rounding_mm` (mm). */
static const double parallel = 1e-4, rounding_mm = 0.05;

/* --- the order of modules from front to back --- */

/* Half of the extent of a module's pitch rectangle along a unit vector. */
static double half_extent(const lr_module *module, const double axis[3])
{
    return 0.5 * (module->crystals[0] * module->pitch_mm[0] * fabs(vec_dot(module->u, axis)) +
                  module->crystals[1] * module->pitch_mm[1] * fabs(vec_dot(module->v, axis)));
}

/* The module directly in front of each module; -1 = none. */
struct order {
    const lr_scanner *scanner;
    int *front;     /* [num_modules] */
    double *gap_mm; /* [num_modules] */
};

static void order_finish(struct order *order)
{
    lr_free_all(order->front, order->gap_mm);
}

/* Records `front` as the module directly in front of `back` if it is the nearest one so far. */
static void look_behind(struct order *order, int front, int back)
{
    const lr_module *a = &order->scanner->modules[front], *b = &order->scanner->modules[back];
    const double *axes[2] = {a->u, a->v};
    double offset[3];
    vec_sub(b->centre_mm, a->centre_mm, offset);
    const double gap = -vec_dot(offset, a->normal) - a->depth_mm; /* from the back of `front` to the front of `back` */
    const bool is_near = gap > -rounding_mm && gap <= fmax(a->depth_mm, b->depth_mm);
    if (!is_near || !(vec_dot(a->normal, b->normal) > 1 - parallel) || !(gap < order->gap_mm[back])) return;

    /* The middle of one module must be within the other one, seen along their normal. */
    bool in_a = true, in_b = true;
    for (int k = 0; k < 2; k++) {
        const double off = fabs(vec_dot(offset, axes[k]));
        in_a = in_a && off < half_extent(a, axes[k]);
        in_b = in_b && off < half_extent(b, axes[k]);
    }
    if (in_a || in_b) {
        order->gap_mm[back] = gap;
        order->front[back] = front;
    }
}

/* Finds the module in front of each module. The candidates are modules whose boxes touch if all boxes are extended
 * backwards by the largest depth. */
static lr_status order_init(struct order *order, const lr_scanner *scanner, const lr_log *log)
{
    const int count = scanner->num_modules;
    *order = (struct order){.scanner = scanner};
    order->front = lr_alloc(count, sizeof(*order->front), "layers", log);
    order->gap_mm = lr_alloc(count, sizeof(*order->gap_mm), "layers", log);
    if (order->front == NULL || order->gap_mm == NULL) return LR_FAILED;
    lr_module *longer = lr_alloc(count, sizeof(*longer), "modules", log);
    if (longer == NULL) return LR_FAILED;
    double deepest = 0;
    for (int m = 0; m < count; m++) {
        order->front[m] = -1;
        order->gap_mm[m] = INFINITY;
        deepest = fmax(deepest, scanner->modules[m].depth_mm);
    }
    for (int m = 0; m < count; m++) {
        longer[m] = scanner->modules[m];
        longer[m].depth_mm += deepest + rounding_mm;
    }
    struct lr_module_index index;
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

/* --- one scanner for each layer --- */

/* The crystals of one layer. */
struct part {
    int *listed;     /* [count] number of each crystal in the whole list */
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

static lr_status build_parts(struct parts *parts)
{
    const lr_crystal_list *list = parts->list;
    for (int c = 0; c < list->num_crystals; c++) {
        const int layer = list->crystals[c].layer;
        if (layer < 0 || layer >= LR_MAX_LAYERS) {
            return lr_error(list->log, LR_BAD_INPUT, "crystal %d is in layer %d: layers run from 0 to %d", c, layer,
                            LR_MAX_LAYERS - 1);
        }
        parts->count = layer >= parts->count ? layer + 1 : parts->count;
    }
    for (int layer = 0; layer < parts->count; layer++) {
        struct part *part = &parts->items[layer];
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
        if (part->scanner == NULL) return LR_BAD_INPUT;
    }
    return LR_OK;
}

/* --- one scanner for all layers --- */

/* The modules of all layers. */
struct whole {
    const struct parts *parts;
    int count;
    lr_module *modules; /* [count] in the order of blocks */
    int *sorted;        /* [count] index of each module in `rough` */
    lr_scanner rough;   /* the modules layer by layer, not checked */
    int num_positions;
};

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

/* Collects the modules of all layers in whole->modules, in the order of blocks. */
static lr_status arrange(struct whole *whole)
{
    struct order order = {0};
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

    lr_module *modules = whole->rough.modules;
    struct key *keys = lr_alloc(whole->count, sizeof(*keys), "modules", log);
    if (keys == NULL || order_init(&order, &whole->rough, log) != LR_OK) {
        free(keys);
        order_finish(&order);
        return LR_FAILED;
    }

    /* Blocks are numbered from the front, and deeper layers get the places of the modules in front of them. No places
     * are set if a module of a deeper layer has no module in front of it, or if layers have different rings. */
    int blocks = 0;
    whole->num_positions = parts->items[0].scanner->num_positions;
    for (int k = 1; k < parts->count; k++) {
        const int own = parts->items[k].scanner->num_positions;
        whole->num_positions = own == whole->num_positions ? own : 0;
    }
    for (int m = 0; m < whole->count; m++) {
        const int front = order.front[m];
        if (front >= 0 && modules[front].layer < modules[m].layer) {
            modules[m].block = modules[front].block;
            modules[m].position = modules[front].position;
            modules[m].ring = modules[front].ring;
        } else {
            modules[m].block = ++blocks;
            whole->num_positions = modules[m].layer > 0 ? 0 : whole->num_positions;
        }
    }
    for (int m = 0; m < whole->count; m++) {
        /* Rounded positions can make a layer overlap the layer behind it. The crystals of the front layer are then
           shortened. */
        lr_module *front = order.front[m] >= 0 ? &modules[order.front[m]] : NULL;
        if (front != NULL && order.gap_mm[m] < 0)
            front->depth_mm -= fmin(1.01 * -order.gap_mm[m], 0.5 * front->depth_mm);
    }
    order_finish(&order);

    for (int m = 0; m < whole->count; m++) keys[m] = (struct key){modules[m].block, modules[m].layer, m};
    qsort(keys, (size_t)whole->count, sizeof(*keys), by_block);
    for (int m = 0; m < whole->count; m++) {
        whole->sorted[m] = keys[m].module;
        whole->modules[m] = modules[keys[m].module];
        if (whole->num_positions == 0)
            whole->modules[m].position = whole->modules[m].ring = whole->modules[m].first_crystal_ring = 0;
    }
    free(keys);
    return LR_OK;
}

static lr_scanner *from_layers(const lr_crystal_list *list, int *crystal_of, double *residual_mm)
{
    struct parts parts = {.list = list};
    struct whole whole = {.parts = &parts};
    lr_scanner *scanner = NULL;
    int *place = NULL; /* [whole.count] index of each module among the sorted modules */
    bool is_good = build_parts(&parts) == LR_OK && arrange(&whole) == LR_OK;
    if (is_good) {
        double detection_depth_mm = INFINITY;
        for (int k = 0; k < parts.count; k++)
            detection_depth_mm = fmin(detection_depth_mm, parts.items[k].scanner->detection_depth_mm);
        for (int m = 0; m < whole.count; m++) detection_depth_mm = fmin(detection_depth_mm, whole.modules[m].depth_mm);
        scanner = lr_scanner_create(&(lr_scanner_params){
            .name = list->name,
            .modules = whole.modules,
            .num_modules = whole.count,
            .num_positions = whole.num_positions,
            .coincidence = list->coincidence,
            .detection_depth_mm = detection_depth_mm,
            .tof_resolution_ps = list->tof_resolution_ps,
            .crystal_mu_per_mm = list->crystal_mu_per_mm,
            .source = list->source,
            .log = list->log,
        });
    }

    if (scanner != NULL && crystal_of != NULL) {
        place = lr_alloc(whole.count, sizeof(*place), "modules", list->log);
        is_good = place != NULL;
        for (int m = 0; is_good && m < whole.count; m++) place[whole.sorted[m]] = m;
        for (int k = 0, first = 0; is_good && k < parts.count; k++) {
            const struct part *part = &parts.items[k];
            for (int c = 0; c < part->count; c++) {
                const int own = lr_scanner_module_of(part->scanner, part->crystal_of[c]);
                crystal_of[part->listed[c]] = scanner->first_crystal[place[first + own]] + part->crystal_of[c] -
                                              part->scanner->first_crystal[own];
            }
            first += part->scanner->num_modules;
        }
        free(place);
    }
    if (!is_good) {
        lr_scanner_destroy(scanner);
        scanner = NULL;
    }
    if (residual_mm != NULL) *residual_mm = parts.off_mm;
    lr_free_all(whole.modules, whole.sorted, whole.rough.modules);
    for (int k = 0; k < parts.count; k++) {
        lr_free_all(parts.items[k].listed, parts.items[k].crystal_of);
        lr_scanner_destroy(parts.items[k].scanner);
    }
    return scanner;
}

/* --- lists with and without layers --- */

lr_scanner *lr_scanner_from_crystals(const lr_crystal_list *list, int *crystal_of, double *residual_mm)
{
    for (int c = 0; c < list->num_crystals; c++)
        if (list->crystals[c].layer != 0) return from_layers(list, crystal_of, residual_mm);
    if (!list->finds_layers) return lr_scanner_from_one_layer(list, crystal_of, residual_mm);

    /* Layers are searched for in a scanner that is made from the list without its layers and rules. */
    int *numbers =
        crystal_of != NULL ? crystal_of : lr_alloc(list->num_crystals, sizeof(*numbers), "crystals", list->log);
    lr_crystal_list without_rules = *list;
    without_rules.coincidence = (lr_coincidence){0};
    lr_scanner *flat = numbers != NULL ? lr_scanner_from_one_layer(&without_rules, numbers, residual_mm) : NULL;
    lr_scanner *scanner = NULL;
    struct order order = {0};
    int most = 0; /* number of the last layer */
    lr_crystal *crystals = flat != NULL ? lr_alloc(list->num_crystals, sizeof(*crystals), "crystals", list->log) : NULL;
    lr_status status = crystals != NULL ? order_init(&order, flat, list->log) : LR_FAILED;
    for (int c = 0; c < list->num_crystals && status == LR_OK; c++) {
        int layer = 0;
        for (int m = lr_scanner_module_of(flat, numbers[c]); order.front[m] >= 0; m = order.front[m]) layer++;
        crystals[c] = list->crystals[c];
        crystals[c].layer = layer;
        most = layer > most ? layer : most;
    }
    order_finish(&order);
    if (status == LR_OK && most >= LR_MAX_LAYERS) {
        status = lr_error(list->log, LR_BAD_INPUT,
                          "%s: %d modules stand one behind the other: at most %d layers are supported",
                          list->name ? list->name : "crystal list", most + 1, LR_MAX_LAYERS);
    }
    if (status == LR_OK && most == 0) {
        /* Coincidence rules may use places, which are known only after the search for layers. */
        flat->coincidence = list->coincidence;
        status = lr_scanner_check_params(&(lr_scanner_params){.name = flat->name,
                                                              .modules = flat->modules,
                                                              .num_modules = flat->num_modules,
                                                              .num_positions = flat->num_positions,
                                                              .coincidence = list->coincidence,
                                                              .detection_depth_mm = flat->detection_depth_mm,
                                                              .log = list->log});
        scanner = status == LR_OK ? flat : NULL;
    }
    if (scanner == NULL) lr_scanner_destroy(flat);
    if (status == LR_OK && most > 0) {
        lr_crystal_list layered = *list;
        layered.crystals = crystals;
        scanner = from_layers(&layered, numbers, residual_mm);
    }
    free(crystals);
    if (numbers != crystal_of) free(numbers);
    return scanner;
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Single passes of the family listmode, compared with the elements that src/listmode/cpu computes for each event and
 * voxel. The host finds the lines with listmode/line.h. */
#include "device.h"

#include "listmode/cases.h"
#include "listmode/compute/listmode.h"
#include "listmode/hull.h"

enum { NO_SCANNER = FIXTURE_COUNT };

/* A kernel and times of flight, and the shaders' definitions for them. */
struct list_case {
    enum case_model model;
    double resolution_ps, bin_mm; /* 0: none */
    const char *defines;
    int scanner; /* an enum fixture_kind for exact elements; NO_SCANNER: the model above */
};

/* Resolutions for which half a voxel is both more than half of a standard deviation and less than a third of one. */
static const struct list_case list_cases[] = {{CASE_TUBE, 0, 0, "", NO_SCANNER},
                                              {CASE_LINE, 0, 0, "LINE", NO_SCANNER},
                                              {CASE_LINE, 150, 0, "LINE TOF", NO_SCANNER},
                                              {CASE_TUBE, 400, 0, "TOF", NO_SCANNER},
                                              {CASE_TUBE, 700, 12, "TOF BINS", NO_SCANNER},
                                              {CASE_TUBE, 150, 60, "TOF BINS", NO_SCANNER},
                                              {CASE_TABLE, 0, 0, "TABLE", NO_SCANNER},
                                              {CASE_PAPER, 0, 0, "AS_PAPER", NO_SCANNER},
                                              {CASE_PAPER, 150, 0, "AS_PAPER TOF", NO_SCANNER},
                                              {CASE_PAPER, 150, 40, "AS_PAPER TOF BINS", NO_SCANNER},
                                              {NUM_CASES, 0, 0, "", FIXTURE_RING},
                                              {NUM_CASES, 100, 9, "TOF BINS", FIXTURE_RING},
                                              {NUM_CASES, 40, 0, "LEANING TOF", FIXTURE_TILTED}};
enum { NUM_LIST_CASES = 10, END_LIST_CASES = length_of(list_cases) };

struct lists {
    const struct list_case *at;
    struct case_backend *cpu;
    struct lr_listmode_compute shape; /* the model, for uniforms */
    int num;
    int64_t voxels;
    double *elements;        /* [num][voxels] by cpu, in the order of the arranged events */
    double largest;          /* the largest element */
    float *values;           /* [num] by value index */
    bool only_large;         /* lines with other values have no slices */
    struct gl_buffer *table; /* of the tube */
    bool has_tof;
};

static uint64_t lists_state = 3;

/* Error of an element in single precision. Near a tube's rim a share falls to 0 within a thousandth of the squared
 * radius, so that there the rounding of a position has a thousandfold effect. At the ends of a time of flight an
 * element is a difference of integrals and has their rounding errors. */
#define ELEMENT_ERROR 1e-4
#define SUM_ERROR 2e-5 /* of many elements */

struct row_taker {
    struct lists *lists;
    const int32_t *arranged; /* index in the arrays for each event number */
};

static lr_status take_elements(void *user, const lr_row *row)
{
    const struct row_taker *taker = user;
    struct lists *lists = taker->lists;
    for (int64_t k = 0; k < row->count; k++) {
        lists->elements[taker->arranged[row->lor[k]] * lists->voxels + row->row] = row->probability[k];
        lists->largest = fmax(lists->largest, row->probability[k]);
    }
    return LR_OK;
}

static struct lists *lists_of(const lr_listmode_params *params, const struct list_case *at)
{
    struct lists *lists = kept(1, sizeof(*lists));
    lists->at = at;
    lists->cpu = case_open(params, "cpu");
    lists->num = (int)params->count;
    lists->voxels = lr_grid_num_voxels(params->grid);
    lists->has_tof = at->resolution_ps > 0;
    lists->shape.params = lists->cpu->params;
    lists->shape.ctx = stage_ctx;
    lists->elements = kept_doubles(lists->num * lists->voxels);
    int32_t *arranged = kept(lists->num, sizeof(*arranged));
    for (int k = 0; k < lists->num; k++) arranged[lists->cpu->events.number[k]] = k;
    struct row_taker taker = {lists, arranged};
    const struct lr_rows rows = {.grid = params->grid, .end = lists->voxels, .samples = {1, 1, 1}};
    assert_ok(lists->cpu->backend.fns->rows(lists->cpu->backend.self, &rows, &(lr_row_sink){take_elements, &taker}));
    assert_true(lists->num == 1 || lists->largest > 0);
    lists->values = kept_random_floats(lists->num, 0.25, 0.999, &lists_state);
    return lists;
}

/* Makes random lines between six panels, and every sixth line along an axis, through edges and corners of voxels. If
 * there are 900 lines or more, no line is random: all others along an axis are one and the same line, whose sums are
 * large. Boxes of a tube have 3 to 7 voxels along an axis. */
static struct lists *open_lists(int which, int num)
{
    const struct list_case *at = &list_cases[which];
    lr_events_info info = tof_info(at->resolution_ps);
    info.tof_bin_mm = at->bin_mm;
    if (at->scanner != NO_SCANNER) {
        const struct fixture fixture = kept_fixture((enum fixture_kind)at->scanner);
        const lr_lors *lors = fixture.lors;
        lr_event *coincident = kept(num, sizeof(*coincident));
        for (int k = 0; k < num;) {
            const int64_t lor = (int64_t)((double)lors->count * test_random(&lists_state));
            if (!lr_lors_in_coincidence(lors, lor)) continue;
            coincident[k] = event_of(lors, lor, k % 2 != 0);
            coincident[k++].tof_mm = (float)random_between(&lists_state, -15, 15);
        }
        lr_listmode_params params = case_params(lors, &fixture.grid, coincident, num);
        params.kernel = LR_LISTMODE_EXACT;
        memcpy(params.samples, (const int[3]){2, 1, 3}, sizeof(params.samples));
        if (at->resolution_ps > 0) params.info = &info;
        return lists_of(&params, at);
    }
    const lr_grid grid =
        shifted_grid((const int[3]){11, 13, 11}, (const double[3]){20, 10, 10}, (const double[3]){0, 5, 0});
    const lr_lors *lors = keep(lr_lors_create(case_scanner(), NULL));
    lr_event *events = case_events(num, &lists_state);
    for (int k = 0; k < num; k++) {
        const bool is_tie = k % 6 == 0, is_crowd = num >= 900;
        const int axis = k / 6 % 3, u = is_tie ? 10 * (k / 18 % 9 - 4) : 10, v = is_tie ? 10 * (k / 6 % 7 - 3) : 20;
        if (!is_tie && !is_crowd) continue;
        events[k].crystals[0] = case_crystal(2 * axis, u, v);
        events[k].crystals[1] = case_crystal(2 * axis + 1, u, v);
    }
    lr_listmode_params params = case_params(lors, &grid, events, num);
    case_kernel(&params, at->model);
    if (at->model == CASE_TUBE) params.tube = (lr_listmode_tube){.width_mm = 45, .fwhm_mm = 20};
    if (at->model == CASE_TABLE || at->model == CASE_PAPER) params.tube.width_mm = 41;
    if (at->resolution_ps > 0) params.info = &info;
    struct lists *lists = lists_of(&params, at);
    const int count = params.tube.table != NULL ? 6 : 1;
    float *table = kept_floats(count);
    for (int k = 0; k < count; k++) table[k] = (float)case_table[k < 5 ? k : 4];
    lists->table = device_buffer(4 * count, table);
    return lists;
}

/* Begin and end of an axis among the arranged events. */
static const int64_t *lists_ends(const struct lists *lists, int axis)
{
    return &lists->cpu->events.groups[0][2 * axis + lists->has_tof];
}

/* The index of a line's value; -1 = the event is not selected. */
static int list_place(const struct lists *lists, int64_t k)
{
    const int number = lists->cpu->events.number[k];
    return number % 7 == 3 ? -1 : lists->num - 1 - number;
}

/* --- lines --- */

/* the exponent for which 2^(exponent - 1) <= |x| < 2^exponent */
static int exponent_of(double x)
{
    int exponent = 0;
    frexp(x, &exponent);
    return exponent;
}

/* True if the value is larger than every usual one; the largest usual values are from 0.5 to 1. */
static bool list_is_large(float value)
{
    return exponent_of((double)value) > 0;
}

/* A line as the words that shaders/listmode/lines.glsl describes. */
struct list_line {
    int64_t at[2], step[2]; /* in units of 2^-32 voxel */
    int first, count;
    float factor[4], half_bin;
    double beyond_mm[2]; /* lengths of the first and the last slice beyond the counted part */
};

/* slices: the first slice, and the end of the slices; NULL = all slices that the line may cross. */
static struct list_line list_line_of(const struct lists *lists, int64_t k, int axis, const int slices[2])
{
    const bool is_paper = lists->cpu->model.tube.as_paper;
    struct lr_listmode_line line;
    struct lr_listmode_walk walk;
    int all[2];
    lr_listmode_line_of(&lists->cpu->events, k, axis, &line);
    lr_listmode_walk_of(&line, &lists->cpu->model.grid, &walk);
    lr_listmode_slices(&walk, all);
    if (is_paper) { /* only the middles of slices count */
        while (all[0] < all[1] && walk.place + all[0] * walk.chord < walk.begin) all[0]++;
        while (all[0] < all[1] && walk.place + (all[1] - 1) * walk.chord > walk.end) all[1]--;
    }
    if (slices != NULL) memcpy(all, slices, sizeof(all));
    struct list_line words = {.first = all[0], .count = all[1] - all[0]};
    for (int c = 0; c < 2; c++) {
        words.at[c] = (int64_t)floor((walk.position[c] + all[0] * walk.step[c]) * 0x1p32);
        words.step[c] = (int64_t)floor(walk.step[c] * 0x1p32);
    }
    const double unit = line.sigma_mm > 0 ? line.sigma_mm : 1;
    double parts[2], low = 0, high = 0;
    for (int end = 1; end >= 0; end--) { /* lengths of the counted parts of the last and of the first slice */
        const double middle = walk.place + (end == 0 ? all[0] : all[1] - 1) * walk.chord;
        low = fmax(middle - 0.5 * walk.chord, walk.begin);
        high = fmin(middle + 0.5 * walk.chord, walk.end);
        parts[end] = fmax(high - low, 0);
        words.beyond_mm[end] = !is_paper ? low - high : end == 0 ? walk.begin - middle : middle - walk.end;
    }
    const double middle = words.count == 1 && !is_paper ? 0.5 * (low + high) : walk.place + all[0] * walk.chord;
    const double factor[4] = {(middle - line.tof_mm) / unit, walk.chord / unit, parts[0] / unit, parts[1] / unit};
    for (int j = 0; j < 4; j++) words.factor[j] = is_paper && line.sigma_mm == 0 ? 1.0f : (float)factor[j];
    words.half_bin = fmaxf((float)(0.5 * line.bin_mm / unit), 0.005f);
    return words;
}

/* Uploads lines begin .. end - 1 of the arranged events. axis -1: kept lines of all axes. */
static struct gl_buffer *put_list_lines(const struct lists *lists, int axis, const int64_t ends[2])
{
    const int64_t count = ends[1] - ends[0];
    uint32_t(*words)[4] = kept(5 * count, sizeof(*words));
    for (int64_t n = 0; n < count; n++) {
        const int64_t k = ends[0] + n;
        int own_axis = axis < 0 ? 0 : axis;
        while (axis < 0 && k >= lists_ends(lists, own_axis)[1]) own_axis++;
        const struct list_line line = list_line_of(lists, k, own_axis, NULL);
        const int place = list_place(lists, k);
        const bool is_large = place >= 0 && list_is_large(lists->values[place]);
        const bool is_left_out = axis >= 0 && (place < 0 || (lists->only_large && !is_large));
        for (int c = 0; c < 2; c++) {
            words[n][2 * c] = (uint32_t)(line.at[c] >> 32);
            words[n][2 * c + 1] = (uint32_t)line.at[c];
            words[count + n][2 * c] = (uint32_t)(line.step[c] >> 32);
            words[count + n][2 * c + 1] = (uint32_t)line.step[c];
        }
        words[2 * count + n][0] = is_left_out ? 0 : (uint32_t)line.first;
        words[2 * count + n][1] = is_left_out ? 0 : (uint32_t)line.count;
        words[2 * count + n][2] = axis < 0 ? (uint32_t)lists->cpu->events.number[k] : (uint32_t)place;
        words[2 * count + n][3] = (uint32_t)own_axis + (lists->has_tof ? 4 : 0);
        if (axis >= 0 && place >= 0) memcpy(&words[2 * count + n][3], &lists->values[place], 4);
        memcpy(words[3 * count + n], line.factor, sizeof(line.factor));
        memcpy(words[4 * count + n], &line.half_bin, 4);
    }
    return device_buffer(5 * count * (int64_t)sizeof(*words), words);
}

/* --- uniforms --- */

/* The block of shaders/listmode/pass.glsl for kept lines. */
struct list_kept {
    struct {
        int32_t size[4], strides[4], slab[4];
        float voxel_mm[4], unit[4];
    } frames[3];
    float tube[4];
    int32_t range[4], part[4], values_at[4];
};

static struct list_kept list_kept_of(const struct lists *lists)
{
    struct list_kept uniforms = {.range = {0, 0, lists->has_tof, lists->has_tof ? 0 : lists->num},
                                 .part = {0, lists->num, 1, 1},
                                 .values_at = {0, lists->num}};
    for (int axis = 0; axis < 3; axis++) {
        const struct lr_listmode_pass own = lr_listmode_pass_of(&lists->shape, axis);
        memcpy(uniforms.frames[axis].size, own.size, sizeof(own.size));
        memcpy(uniforms.frames[axis].strides, own.strides, sizeof(own.strides));
        memcpy(uniforms.frames[axis].voxel_mm, own.voxel_mm, sizeof(own.voxel_mm));
        memcpy(uniforms.frames[axis].unit, own.unit, sizeof(own.unit));
        memcpy(uniforms.tube, own.tube, sizeof(own.tube));
        uniforms.frames[axis].size[3] = lists->num;
        uniforms.frames[axis].slab[0] = 4;
        uniforms.frames[axis].slab[3] = 1;
    }
    return uniforms;
}

/* Index of a voxel of the grid among slices across an axis. */
static int64_t list_slot(const struct lists *lists, int axis, int64_t voxel)
{
    const int *size = lists->cpu->model.grid.size, u = axis == 0 ? 1 : 0, v = axis == 2 ? 1 : 2;
    const int at[3] = {(int)(voxel % size[0]), (int)(voxel / size[0] % size[1]), (int)(voxel / size[0] / size[1])};
    return ((int64_t)at[axis] * size[v] + at[v]) * size[u] + at[u];
}

static int list_slice(const struct lists *lists, int axis, int64_t voxel)
{
    const int *size = lists->cpu->model.grid.size;
    return (int)(axis == 0 ? voxel % size[0] : axis == 1 ? voxel / size[0] % size[1] : voxel / size[0] / size[1]);
}

/* --- the scale of sums --- */

/* The words of shaders/listmode/scale.glsl for lists->values, and the resulting scale of the sums. */
struct list_scale {
    struct {
        uint32_t largest_term, usual, least, exponents[256], num_others[2];
    } words;
    int bits, element_exponent, exponent; /* every term is below 2^exponent, which is 2^bits units of a sum */
    bool are_floats;
};

/* Some values are 2^-12, 2^4 or 2^11 times as large as usual; with the last factor sums are floats. */
enum list_values { VALUES_USUAL = 0, VALUES_SMALL, VALUES_LARGE, VALUES_WILD, NUM_LIST_VALUES };
static const int unusual_exponents[NUM_LIST_VALUES] = {0, -12, 4, 11};

static bool list_is_usual(float value)
{
    return value != 0.0f && exponent_of((double)value) <= 0 && exponent_of((double)value) > -LR_EVENTS_CELL_SPREAD;
}

/* The largest exponent of the terms of large values, for events from ends[0] up to ends[1], computed as in
 * scale.glsl. */
static uint32_t list_largest_term(const struct lists *lists, const int64_t ends[2], double factor)
{
    uint32_t largest = 0;
    for (int64_t k = ends[0]; k < ends[1]; k++) {
        const int place = list_place(lists, k);
        if (place < 0 || !list_is_large(lists->values[place])) continue;
        const double most = factor * largest_number(lists->elements + k * lists->voxels, lists->voxels);
        const int term = exponent_of(most) + exponent_of((double)lists->values[place]) + LR_EVENTS_EXPONENT;
        if (most > 0 && (uint32_t)term > largest) largest = (uint32_t)term;
    }
    return largest;
}

static struct list_scale list_scale_of(struct lists *lists, enum list_values kind)
{
    struct list_scale scale = {.words = {.usual = 126, .least = 126}, .bits = 44};
    for (int k = 0; k < lists->num; k++) {
        const double size = random_between(&lists_state, 0.26, 0.99);
        const int unusual = k % 13 == 0 ? unusual_exponents[kind] : 0;
        lists->values[k] = k % 11 == 4 ? 0.0f : ldexpf((float)(k % 7 == 0 ? -size : size), unusual);
        const int exponent = exponent_of((double)lists->values[k]) + 126;
        if (k % 11 != 4 && (uint32_t)exponent < scale.words.least) scale.words.least = (uint32_t)exponent;
    }
    scale.element_exponent = exponent_of(1.25 * lists->largest);
    scale.words.largest_term = list_largest_term(lists, (const int64_t[2]){0, lists->num}, 1 + ELEMENT_ERROR);
    scale.exponent = (int)scale.words.largest_term - LR_EVENTS_EXPONENT;
    scale.exponent = scale.exponent > scale.element_exponent ? scale.exponent : scale.element_exponent;
    scale.are_floats = scale.exponent > scale.element_exponent + LR_EVENTS_SPREAD;
    assert_true(scale.are_floats == (kind == VALUES_WILD));
    return scale;
}

/* sums: [count][2] words */
static double list_sum(const struct list_scale *scale, const uint32_t words[2])
{
    float sum;
    memcpy(&sum, words, sizeof(sum));
    const int64_t whole = (int64_t)((uint64_t)words[1] << 32 | words[0]);
    return scale->are_floats ? (double)sum : ldexp((double)whole, scale->exponent - scale->bits);
}

/* --- lines made by the device --- */

/* Indices of values by event number, as passes over kept lines read them. */
static struct gl_buffer *put_places(const struct lists *lists)
{
    int32_t *places = kept(lists->num, sizeof(*places));
    for (int k = 0; k < lists->num; k++) places[lists->cpu->events.number[k]] = list_place(lists, k);
    return device_buffer(lists->num * 4, places);
}

/* The block of shaders/listmode/events.glsl. */
struct list_prepare {
    double origin_mm[4], edge_mm[4];
    int32_t size[4], axes[4], first[4], part[4], window[4], samples[4], kept[4];
};

static struct list_prepare prepare_of(const struct lists *lists, int axis)
{
    const struct lr_listmode_model *model = &lists->cpu->model;
    const struct lr_listmode_pass own = lr_listmode_pass_of(&lists->shape, axis);
    struct list_prepare uniforms = {
        .axes = {axis, axis == 0 ? 1 : 0, axis == 2 ? 1 : 2, model->kernel == LR_LISTMODE_LINE},
        .first = {0, 0, lists->has_tof, model->tube.as_paper},
        .part = {0, lists->num, 1, 1},
        .window = {0, lists->num}};
    for (int k = 0; k < 3; k++) {
        const int samples = model->samples[uniforms.axes[k]];
        const double edge = model->grid.voxel_mm[uniforms.axes[k]];
        uniforms.edge_mm[k] = edge / samples;
        uniforms.origin_mm[k] = model->grid.origin_mm[uniforms.axes[k]] - 0.5 * (edge - edge / samples);
        uniforms.size[k] = own.size[k] * samples;
        uniforms.samples[k] = samples;
    }
    uniforms.origin_mm[3] = model->kernel == LR_LISTMODE_EXACT  ? model->reach_mm
                            : model->kernel == LR_LISTMODE_LINE ? 1
                                                                : sqrt(lr_listmode_rim(&model->tube));
    return uniforms;
}

/* Binds the arranged events, their crystals and the other inputs from which a pass finds lines. */
static void bind_events(const struct lists *lists, struct gl_pass *pass)
{
    const struct lr_listmode_events *events = &lists->cpu->events;
    struct {
        int32_t a, b;
        float tof_mm;
        int32_t number;
    } *sent = kept(lists->num, sizeof(*sent));
    double(*ends)[4] = kept(events->num_crystals, sizeof(*ends));
    const double sigmas[2] = {events->sigma_mm[0], events->bin_mm != NULL ? events->bin_mm[0] : 0};
    const struct list_scale scale = {.words = {.usual = 126}};
    for (int k = 0; k < lists->num; k++) {
        sent[k].a = events->crystals[0][k];
        sent[k].b = events->crystals[1][k];
        sent[k].tof_mm = events->tof_mm[k];
        sent[k].number = events->number[k];
    }
    for (int k = 0; k < events->num_crystals; k++) {
        memcpy(ends[k], events->hits[k], sizeof(events->hits[k]));
        ends[k][3] = lr_scanner_module_of(lists->cpu->model.scanner, k);
    }
    pass->buffers[LR_BIND_LIST_EVENTS].buffer = device_buffer(lists->num * 16, sent);
    pass->buffers[LR_BIND_LIST_CRYSTALS].buffer = device_buffer(events->num_crystals * 32, ends);
    pass->buffers[LR_BIND_LIST_SIGMAS].buffer = device_buffer(sizeof(sigmas), sigmas);
    pass->buffers[LR_BIND_LIST_KINDS].buffer = device_buffer(4, NULL);
    pass->buffers[LR_BIND_LIST_PLACES].buffer = put_places(lists);
    pass->buffers[LR_BIND_LIST_VALUES].buffer = device_buffer(lists->num * 4, lists->values);
    pass->buffers[LR_BIND_LIST_SCALE].buffer = device_buffer(sizeof(scale.words), &scale.words);
}

/* Lines of exact elements. The host cannot make them; a pass does, which test_exact_prepare checks. */
static struct gl_buffer *prepare_exact(const struct lists *lists, int axis)
{
    const int64_t *ends = lists_ends(lists, axis), lines = ends[1] - ends[0];
    const lr_scanner *scanner = lists->cpu->model.scanner;
    struct lr_listmode_module *modules = lr_listmode_modules(scanner, NULL);
    struct list_prepare uniforms = prepare_of(lists, axis);
    uniforms.size[3] = uniforms.kept[1] = (int32_t)lines;
    uniforms.first[0] = (int32_t)ends[0];
    uniforms.window[3] = lists->only_large;
    struct gl_program *program = device_program("listmode/exact_prepare.comp", lists->at->bin_mm > 0 ? "BINS" : NULL);
    struct gl_pass pass = device_pass(program, &uniforms, sizeof(uniforms), gl_divide_up(lines, LR_EVENTS_GROUP));
    struct gl_buffer *words = device_buffer(15 * lines * 16, NULL);
    bind_events(lists, &pass);
    device_run_on(&pass, LR_BIND_LIST_MODULES, device_buffer(scanner->num_modules * (int64_t)sizeof(*modules), modules),
                  LR_BIND_LIST_LINES, words);
    free(modules);
    return words;
}

/* Uploads the lines of an axis. */
static struct gl_buffer *put_lines(const struct lists *lists, int axis)
{
    return lists->at->scanner != NO_SCANNER ? prepare_exact(lists, axis)
                                            : put_list_lines(lists, axis, lists_ends(lists, axis));
}

static int list_groups(const struct lists *lists, int64_t lines)
{
    return gl_divide_up(lines, lists->at->scanner != NO_SCANNER ? LR_EVENTS_EXACT_GROUP : LR_EVENTS_GROUP);
}

/* --- comparison of results --- */

/* Compares sums of many elements; the tolerance is relative to the largest sum. */
static void expect_sums(const struct lists *lists, const double *found, const double *wanted, int64_t count)
{
    const double largest = largest_number(wanted, count), worst = worst_apart(found, wanted, count);
    if (largest > 0 ? !(worst <= SUM_ERROR) : largest_number(found, count) > 0)
        fail_msg("\"%s\": a sum %.2g of the largest", lists->at->defines, worst);
}

static struct lr_listmode_pass list_uniforms(const struct lists *lists, int axis, int64_t lines)
{
    struct lr_listmode_pass uniforms = lr_listmode_pass_of(&lists->shape, axis);
    uniforms.size[3] = (int32_t)lines;
    return uniforms;
}

static struct gl_program *list_program(int which, const char *shader, const char *more)
{
    char defines[128], name[64];
    snprintf(defines, sizeof(defines), "%s %s", list_cases[which].defines, more);
    snprintf(name, sizeof(name), "listmode/%s%s", list_cases[which].scanner != NO_SCANNER ? "exact_" : "", shader);
    return device_program(name, defines);
}

/* --- elements --- */

/* list: for each window, and in it for each line, the number of elements, then pairs of voxel and element. */
static void expect_listed(const struct lists *lists, int axis, const uint32_t (*list)[2], int64_t room)
{
    const int64_t *ends = lists_ends(lists, axis), lines = ends[1] - ends[0];
    for (int64_t n = 0; n < lines; n++) {
        double *found = kept_doubles(lists->voxels);
        for (int window = 0; window < 2; window++) {
            const uint32_t(*own)[2] = list + (window * lines + n) * (1 + room);
            assert_true(own[0][0] < room && (own[0][0] == 0 || list_place(lists, ends[0] + n) >= 0));
            for (uint32_t k = 1; k <= own[0][0]; k++) {
                float element;
                memcpy(&element, &own[k][1], 4);
                assert_true(own[k][0] < lists->voxels && list_slice(lists, axis, own[k][0]) / 4 >= window);
                assert_true(window > 0 || list_slice(lists, axis, own[k][0]) < 4);
                found[own[k][0]] += (double)element;
            }
        }
        if (list_place(lists, ends[0] + n) >= 0) {
            const int64_t k = ends[0] + n;
            const double *wanted = lists->elements + k * lists->voxels, largest = largest_number(wanted, lists->voxels);
            for (int64_t v = 0; v < lists->voxels; v++)
                if (!(fabs(found[v] - wanted[v]) <= ELEMENT_ERROR * fmax(largest, 0.02 * lists->largest)))
                    fail_msg("\"%s\", event %d, voxel %d: %.8g, not %.8g", lists->at->defines, (int)k, (int)v, found[v],
                             wanted[v]);
        }
    }
}

/* The slices, or planes of sample points, are divided into two windows. */
static void check_elements(int which, int num)
{
    enum { ROOM = 2000 };
    struct lists *lists = open_lists(which, num);
    struct gl_program *program = list_program(which, "elements.comp", "");
    for (int axis = 0; axis < 3; axis++) {
        const int64_t *ends = lists_ends(lists, axis), lines = ends[1] - ends[0];
        struct lr_listmode_pass uniforms = list_uniforms(lists, axis, lines);
        const int all = uniforms.window[1], half = 4 * lists->cpu->model.samples[axis];
        uniforms.slab[3] = ROOM;
        struct gl_buffer *buffer = device_buffer(2 * lines * (1 + ROOM) * 8, NULL);
        struct gl_buffer *words = put_lines(lists, axis);
        for (int window = 0; window < 2; window++) {
            uniforms.window[0] = window * half;
            uniforms.window[1] = window == 0 ? half : all;
            uniforms.window[3] = (int32_t)(window * lines * (1 + ROOM));
            struct gl_pass pass = device_pass(program, &uniforms, sizeof(uniforms), list_groups(lists, lines));
            device_run_on(&pass, LR_BIND_LIST_LINES, words, LR_BIND_LIST_TABLE, lists->table, LR_BIND_LIST_ELEMENTS,
                          buffer);
        }
        expect_listed(lists, axis, device_read(buffer, 2 * lines * (1 + ROOM), 8), ROOM);
    }
}

static void test_elements(void **context)
{
    check_elements(0, 1);
    for (int which = 0; which < NUM_LIST_CASES; which++) check_elements(which, which == 0 ? 800 : 130);
}

static void test_exact_elements(void **context)
{
    check_elements(NUM_LIST_CASES, 1);
    for (int which = NUM_LIST_CASES; which < END_LIST_CASES; which++) check_elements(which, 130);
}

/* --- projections --- */

/* Kept lines are divided into jobs of up to 100 lines of an axis. Returns the number of jobs. */
static int put_jobs(const struct lists *lists, struct gl_buffer **buffer)
{
    int32_t(*jobs)[8] = kept(lists->num, sizeof(*jobs));
    int count = 0;
    for (int axis = 0; axis < 3; axis++) {
        const int64_t *ends = lists_ends(lists, axis);
        for (int64_t first = ends[0]; first < ends[1]; first += 100) {
            const int64_t left = ends[1] - first;
            int32_t *job = jobs[count++];
            job[0] = (int32_t)first;
            job[1] = (int32_t)(left < 100 ? left : 100);
            job[2] = axis;
            job[5] = lists->cpu->model.grid.size[axis];
        }
    }
    *buffer = device_buffer(count * 32, jobs);
    return count;
}

/* Values without a line must stay unchanged. */
static void check_forward(struct gl_program *program, int which, int num, const char *more)
{
    enum { FIRST = 3 };
    const struct lists *lists = open_lists(which, num);
    const bool is_kept = strstr(more, "KEPT") != NULL;
    const float *image = kept_random_floats(lists->voxels, 0, 1, &lists_state);
    float *slices = kept_floats(3 * lists->voxels), *before = kept_random_floats(num + FIRST, 7, 8, &lists_state);
    struct gl_buffer *values = device_buffer((num + FIRST) * 4, before);
    struct list_kept all = list_kept_of(lists);
    struct gl_pass pass = device_pass(program, &all, sizeof(all), 2);
    for (int64_t slot = 0; slot < 3 * lists->voxels; slot++) {
        const int axis = (int)(slot / lists->voxels);
        const int64_t voxel = slot % lists->voxels;
        slices[axis * lists->voxels + list_slot(lists, axis, voxel)] = image[voxel];
    }
    bind_buffers(&pass, LR_BIND_LIST_TABLE, lists->table, LR_BIND_LIST_VALUES, values);
    if (is_kept) {
        all.range[1] = put_jobs(lists, (struct gl_buffer **)&pass.buffers[LR_BIND_LIST_JOBS].buffer);
        all.values_at[2] = FIRST;
        pass.groups[1] = gl_divide_up(all.range[1], 2);
        device_run_on(&pass, LR_BIND_LIST_LINES, put_list_lines(lists, -1, (const int64_t[2]){0, num}),
                      LR_BIND_LIST_SLICES, device_buffer(3 * lists->voxels * 4, slices), LR_BIND_LIST_PLACES,
                      put_places(lists));
    }
    for (int axis = 0; axis < 3 && !is_kept; axis++) {
        const int64_t *ends = lists_ends(lists, axis);
        struct lr_listmode_pass uniforms = list_uniforms(lists, axis, ends[1] - ends[0]);
        const int last = uniforms.window[1];
        pass.uniforms = &uniforms;
        pass.uniform_bytes = sizeof(uniforms);
        pass.groups[0] = list_groups(lists, ends[1] - ends[0]);
        bind_buffers(&pass, LR_BIND_LIST_LINES, put_lines(lists, axis), LR_BIND_LIST_SLICES,
                     device_buffer(lists->voxels * 4, slices + axis * lists->voxels));
        if (lists->at->scanner == NO_SCANNER) uniforms.slab[0] = 3;
        uniforms.window[3] = FIRST;
        for (int window = 0; window < 2; window++) {
            uniforms.window[0] = window * 4;
            uniforms.window[1] = window == 0 ? 4 : last;
            uniforms.window[2] = window;
            device_run(&pass);
        }
    }
    const float *after = device_read(values, num + FIRST, 4);
    double *wanted = kept_doubles(num + FIRST), *found = kept_doubles(num + FIRST);
    for (int64_t k = 0; k < num; k++) {
        const int place = list_place(lists, k);
        for (int64_t v = 0; v < lists->voxels && place >= 0; v++)
            wanted[FIRST + place] += lists->elements[k * lists->voxels + v] * (double)image[v];
        if (place >= 0) before[FIRST + place] = 0;
    }
    for (int k = 0; k < num + FIRST; k++) {
        found[k] = before[k] > 0 ? 0 : (double)after[k];
        assert_true(before[k] == 0.0f || after[k] == before[k]);
    }
    expect_sums(lists, found, wanted, num + FIRST);
}

static void test_forward(void **context)
{
    static const struct {
        int which;
        const char *more;
    } variants[] = {{0, ""}, {1, ""}, {3, ""}, {6, ""}, {9, ""}, {0, "SLABS"}, {1, "KEPT SLABS"}, {3, "KEPT SLABS"}};
    for (int n = 0; n < length_of(variants); n++) {
        const int which = variants[n].which;
        struct gl_program *program = list_program(which, "forward.comp", variants[n].more);
        if (which == 0) check_forward(program, 0, 1, variants[n].more);
        check_forward(program, which, which == 3 ? 800 : 130, variants[n].more);
    }
}

static void test_exact_forward(void **context)
{
    for (int which = NUM_LIST_CASES; which < END_LIST_CASES; which++)
        check_forward(list_program(which, "forward.comp", ""), which, 130, "");
}

/* The image to which the selected lines add their values. usual, others: whether lines with usual values, and with
 * other values, are included. */
static double *find_image(const struct lists *lists, bool usual, bool others)
{
    double *image = kept_doubles(lists->voxels);
    for (int64_t k = 0; k < lists->num; k++) {
        const int place = list_place(lists, k);
        if (place < 0 || !(list_is_usual(lists->values[place]) ? usual : others)) continue;
        for (int64_t v = 0; v < lists->voxels; v++)
            image[v] += (double)lists->values[place] * lists->elements[k * lists->voxels + v];
    }
    return image;
}

/* Binds the buffers to which passes over lines add: sums [frames][voxels]. Values of kept lines are in the order of the
 * lines. */
static void bind_back(const struct lists *lists, const struct list_scale *scale, int frames, struct gl_pass *pass)
{
    float *values = kept_floats(lists->num);
    for (int k = 0; k < lists->num; k++)
        values[k] = list_place(lists, k) < 0 ? 0.0f : lists->values[list_place(lists, k)];
    pass->buffers[LR_BIND_LIST_TABLE].buffer = lists->table;
    pass->buffers[LR_BIND_LIST_SCALE].buffer = device_buffer(sizeof(scale->words), &scale->words);
    pass->buffers[LR_BIND_LIST_SUMS].buffer = device_buffer(frames * lists->voxels * 8, NULL);
    pass->buffers[LR_BIND_LIST_LINE_VALUES].buffer = device_buffer(lists->num * 4, values);
}

/* Adds the sums of one axis to an image. sums: begins with the sums of that axis. */
static void add_sums(const struct lists *lists, const struct list_scale *scale, const uint32_t (*sums)[2], int axis,
                     double *image)
{
    for (int64_t v = 0; v < lists->voxels; v++) image[v] += list_sum(scale, sums[list_slot(lists, axis, v)]);
}

static struct list_kept kept_with_scale(const struct lists *lists, const struct list_scale *scale)
{
    struct list_kept all = list_kept_of(lists);
    for (int axis = 0; axis < 3; axis++) {
        all.frames[axis].unit[0] = (float)scale->bits;
        all.frames[axis].unit[1] = (float)scale->element_exponent;
        all.frames[axis].unit[3] = (float)(LR_EVENTS_CELL_MOST / (1.1 * lists->largest));
    }
    return all;
}

/* Back-projects in slabs of some slices or in bands of one slice, and in groups of some lines. */
static void check_back(struct gl_program *program, int which, int num, const char *more, enum list_values kind)
{
    struct lists *lists = open_lists(which, num);
    const struct list_scale scale = list_scale_of(lists, kind);
    const bool is_kept = strstr(more, "KEPT") != NULL, has_bands = num % 2 != 0;
    struct list_kept all = kept_with_scale(lists, &scale);
    struct gl_pass pass = device_pass(program, &all, sizeof(all), 2);
    double *found = kept_doubles(lists->voxels);
    if (is_kept) {
        bind_back(lists, &scale, 3, &pass);
        all.range[1] = put_jobs(lists, (struct gl_buffer **)&pass.buffers[LR_BIND_LIST_JOBS].buffer);
        pass.groups[1] = gl_divide_up(all.range[1], 2);
        device_run_on(&pass, LR_BIND_LIST_LINES, put_list_lines(lists, -1, (const int64_t[2]){0, num}));
        const uint32_t(*sums)[2] = device_read(pass.buffers[LR_BIND_LIST_SUMS].buffer, 3 * lists->voxels, 8);
        for (int axis = 0; axis < 3; axis++) add_sums(lists, &scale, sums + axis * lists->voxels, axis, found);
    }
    for (int axis = 0; axis < 3 && !is_kept; axis++) {
        const int64_t *ends = lists_ends(lists, axis);
        struct lr_listmode_pass uniforms = list_uniforms(lists, axis, ends[1] - ends[0]);
        pass.uniforms = &uniforms;
        pass.uniform_bytes = sizeof(uniforms);
        memcpy(uniforms.unit, all.frames[0].unit, 2 * sizeof(float));
        uniforms.unit[3] = all.frames[0].unit[3];
        pass.groups[0] = list_groups(lists, ends[1] - ends[0]);
        if (lists->at->scanner == NO_SCANNER) {
            uniforms.slab[0] = has_bands ? 1 : 4;
            uniforms.slab[1] = has_bands ? 4 : uniforms.size[2];
            uniforms.slab[2] = gl_divide_up(uniforms.size[2], uniforms.slab[1]);
            uniforms.slab[3] = 100;
            pass.groups[0] = gl_divide_up(ends[1] - ends[0], uniforms.slab[3]);
            pass.groups[1] = gl_divide_up(uniforms.size[0], uniforms.slab[0]) * uniforms.slab[2];
        }
        bind_back(lists, &scale, 1, &pass);
        device_run_on(&pass, LR_BIND_LIST_LINES, put_lines(lists, axis));
        add_sums(lists, &scale, device_read(pass.buffers[LR_BIND_LIST_SUMS].buffer, lists->voxels, 8), axis, found);
    }
    expect_sums(lists, found, find_image(lists, true, !is_kept), lists->voxels);
}

static void test_back(void **context)
{
    static const struct {
        int which;
        const char *more;
    } variants[] = {{3, ""}, {1, ""}, {1, "KEPT ADD_ZEROS"}, {0, "KEPT"}};
    for (int n = 0; n < length_of(variants); n++) {
        const int which = variants[n].which;
        struct gl_program *program = list_program(which, "back.comp", variants[n].more);
        check_back(program, which, 1, variants[n].more, VALUES_LARGE);
        for (int kind = n % 3 == 0 ? 0 : VALUES_LARGE; kind <= (n % 3 == 0 ? VALUES_WILD : VALUES_LARGE); kind++)
            check_back(program, which, (n % 2 == 0 ? 901 : 301) + kind, variants[n].more, (enum list_values)kind);
    }
}

static void test_exact_back(void **context)
{
    for (int which = NUM_LIST_CASES; which < END_LIST_CASES; which++) {
        struct gl_program *program = list_program(which, "back.comp", "");
        check_back(program, which, 130, "", which == NUM_LIST_CASES ? VALUES_WILD : VALUES_LARGE);
    }
}

/* A value very close to a power of 2 may be on either side of it. With exact elements, the bound takes each of the six
 * points of a voxel to be as large as the largest one. */
static void expect_term(const struct lists *lists, const int64_t ends[2], const struct gl_buffer *scale)
{
    const uint32_t *found = device_read(scale, 1, 4);
    assert_true(*found >= list_largest_term(lists, ends, 1 - ELEMENT_ERROR));
    assert_true(*found <= list_largest_term(lists, ends, lists->at->scanner != NO_SCANNER ? 6 : 1 + ELEMENT_ERROR));
}

static void check_bound(int which, int num)
{
    struct lists *lists = open_lists(which, num);
    struct list_scale scale = list_scale_of(lists, VALUES_LARGE);
    struct gl_program *program = list_program(which, "bound.comp", "");
    lists->only_large = true;
    scale.words.largest_term = 0;
    for (int axis = 0; axis < 3; axis++) {
        const int64_t *ends = lists_ends(lists, axis);
        struct lr_listmode_pass uniforms = list_uniforms(lists, axis, ends[1] - ends[0]);
        struct gl_pass pass = device_pass(program, &uniforms, sizeof(uniforms), list_groups(lists, ends[1] - ends[0]));
        const int last = uniforms.window[1];
        bind_back(lists, &scale, 1, &pass);
        pass.buffers[LR_BIND_LIST_LINES].buffer = put_lines(lists, axis);
        for (int window = 0; window < 2; window++) {
            uniforms.window[0] = window * 4;
            uniforms.window[1] = window == 0 ? 4 : last;
            device_run(&pass);
        }
        expect_term(lists, ends, pass.buffers[LR_BIND_LIST_SCALE].buffer);
    }
}

static void test_bound(void **context)
{
    for (int which = 0; which < NUM_LIST_CASES; which++) check_bound(which, which == 0 ? 800 : 130);
}

static void test_exact_bound(void **context)
{
    for (int which = NUM_LIST_CASES; which < END_LIST_CASES; which++) check_bound(which, 130);
}

/* Lists the arranged events whose values are not usual; returns how many there are. */
static int put_others(const struct lists *lists, int first, struct gl_buffer **buffer)
{
    uint32_t *others = kept(lists->num + first, sizeof(*others));
    int count = 0;
    for (int k = 0; k < lists->num; k++) {
        const int place = list_place(lists, k);
        if (place >= 0 && lists->values[place] != 0.0f && !list_is_usual(lists->values[place]))
            others[first + count++] = (uint32_t)k;
    }
    *buffer = device_buffer((lists->num + first) * 4, others);
    return count;
}

static void test_listed(void **context)
{
    for (int n = 0; n < 2 * NUM_LIST_CASES + 4; n++) {
        const bool is_bound = n >= NUM_LIST_CASES && n < 2 * NUM_LIST_CASES;
        const int which = n < 2 * NUM_LIST_CASES ? n % NUM_LIST_CASES : n % 2;
        if (is_bound && which != 0 && which != 1 && which != 3) continue;
        struct lists *lists = open_lists(which, 400);
        const enum list_values kind = is_bound             ? VALUES_LARGE
                                      : n < NUM_LIST_CASES ? VALUES_SMALL
                                                           : (enum list_values)(n % NUM_LIST_VALUES);
        struct list_scale scale = list_scale_of(lists, kind);
        struct gl_program *program = list_program(which, "listed.comp", is_bound ? "BOUND" : "");
        struct list_kept all = kept_with_scale(lists, &scale);
        struct gl_pass pass = device_pass(program, &all, sizeof(all), 3);
        all.range[3] = 5;
        scale.words.largest_term = is_bound ? 0 : scale.words.largest_term;
        scale.words.num_others[lists->has_tof] = (uint32_t)put_others(
            lists, lists->has_tof ? 5 : 0, (struct gl_buffer **)&pass.buffers[LR_BIND_LIST_OTHERS].buffer);
        bind_back(lists, &scale, 3, &pass);
        device_run_on(&pass, LR_BIND_LIST_LINES, put_list_lines(lists, -1, (const int64_t[2]){0, lists->num}));
        if (is_bound) {
            expect_term(lists, (const int64_t[2]){0, lists->num}, pass.buffers[LR_BIND_LIST_SCALE].buffer);
            continue;
        }
        double *found = kept_doubles(lists->voxels);
        const uint32_t(*sums)[2] = device_read(pass.buffers[LR_BIND_LIST_SUMS].buffer, 3 * lists->voxels, 8);
        for (int axis = 0; axis < 3; axis++) add_sums(lists, &scale, sums + axis * lists->voxels, axis, found);
        expect_sums(lists, found, find_image(lists, false, true), lists->voxels);
    }
}

/* --- orders and values --- */

static const int odd_counts[] = {0, 1, 63, 65, 257, 1000};
enum { NUM_ODD = length_of(odd_counts), MOST_ODD = 1010 };

/* Values with every exponent, each at least once, including exponents that are too small and too large. */
static void test_exponents(void **context)
{
    for (int n = 0; n < NUM_ODD; n++) {
        enum { FIRST = 5 };
        struct list_scale scale = {.bits = 0};
        uint32_t values[MOST_ODD];
        const struct lr_listmode_pass uniforms = {.size = {0, 0, 0, odd_counts[n]}, .window = {0, 0, 0, FIRST}};
        for (int k = 0; k < MOST_ODD; k++)
            values[k] = (uint32_t)(k * 7919 % 256) << 23 | (k % 2 != 0 ? 0x80000001u : 0);
        struct gl_pass pass =
            device_pass(device_program("listmode/exponents.comp", NULL), &uniforms, sizeof(uniforms), 2);
        device_run_on(&pass, LR_BIND_LIST_SCALE, device_buffer(sizeof(scale.words), &scale.words), LR_BIND_LIST_VALUES,
                      device_buffer(sizeof(values), values));
        for (int k = FIRST; k < FIRST + odd_counts[n]; k++) scale.words.exponents[values[k] >> 23 & 255]++;
        scale.words.exponents[0] = 0; /* values with this exponent count as 0 */
        assert_memory_equal(device_read(pass.buffers[LR_BIND_LIST_SCALE].buffer, 1, sizeof(scale.words)), &scale.words,
                            sizeof(scale.words));
    }

    /* The usual exponent is the smallest one that at most `above` values exceed, or an exponent larger by up to
     * `near`. */
    struct gl_program *program = device_program("listmode/exponents.comp", "USUAL");
    for (int n = 0; n < 40; n++) {
        struct list_scale scale = {.bits = 0};
        const int above = n % 5 * 7, near = n % 2 * 4;
        const struct lr_listmode_pass uniforms = {.size = {0, 0, 0, above}, .window = {near}};
        for (int k = 0; n >= 5 && k < 30; k++)
            scale.words.exponents[1 + (int)(255 * test_random(&lists_state)) / (n % 3 + 1)] += (uint32_t)(k % 4);
        struct gl_pass pass = device_pass(program, &uniforms, sizeof(uniforms), 1);
        pass.buffers[LR_BIND_LIST_SCALE].buffer = device_buffer(sizeof(scale.words), &scale.words);
        int larger = 0, smallest = 255, usual, least = 255;
        for (; smallest > 0 && larger + (int)scale.words.exponents[smallest] <= above; smallest--)
            larger += (int)scale.words.exponents[smallest];
        usual = smallest;
        for (int k = 255; k >= 0; k--) {
            const bool is_some = scale.words.exponents[k] > 0;
            usual = is_some && k <= smallest + near && k > usual ? k : usual;
            least = is_some ? k : least;
        }
        device_run(&pass);
        const uint32_t *found = device_read(pass.buffers[LR_BIND_LIST_SCALE].buffer, 3, 4);
        assert_ints(found[1], usual, found[2], least < usual ? least : usual);
    }
}

/* Copies images from the grid into slices and back, across the axes that have lines. */
static void test_order(void **context)
{
    enum { FIRST = 3 };
    struct lists *lists = open_lists(0, 130);
    const int64_t voxels = lists->voxels;
    for (int n = 0; n < 20; n++) {
        const bool to_grid = n % 2 != 0, is_added = n % 4 == 1;
        const enum list_values kind = n >= 10 ? VALUES_WILD : VALUES_USUAL;
        const struct list_scale scale = list_scale_of(lists, kind);
        float *grid = kept_random_floats(voxels + FIRST, 1, 2, &lists_state), *slices = kept_floats(3 * voxels);
        uint32_t(*sums)[2] = kept(3 * voxels, sizeof(*sums));
        struct list_kept all = kept_with_scale(lists, &scale);
        all.values_at[2] = FIRST;
        all.values_at[3] = is_added;
        all.frames[1].slab[3] = n < 10; /* otherwise an axis has no lines */
        for (int64_t k = 0; k < 3 * voxels; k++) {
            const float sum = (float)random_between(&lists_state, -3, 3);
            const int64_t whole = (int64_t)ldexp((double)sum, scale.bits);
            sums[k][0] = (uint32_t)whole;
            sums[k][1] = (uint32_t)((uint64_t)whole >> 32);
            if (scale.are_floats) memcpy(sums[k], &sum, 4);
        }
        struct gl_pass pass =
            device_pass(device_program("listmode/order.comp", to_grid ? "TO_GRID" : NULL), &all, sizeof(all), 3);
        pass.groups[1] = to_grid ? 1 : 3;
        struct gl_buffer *of_grid = device_buffer((voxels + FIRST) * 4, grid);
        struct gl_buffer *of_slices = device_buffer(3 * voxels * 4, slices),
                         *of_sums = device_buffer(3 * voxels * 8, sums);
        bind_buffers(&pass, LR_BIND_LIST_GRID, of_grid, LR_BIND_LIST_SLICES, of_slices);
        if (to_grid) pass.buffers[LR_BIND_LIST_SUMS].buffer = of_sums;
        device_run_on(&pass, LR_BIND_LIST_SCALE, device_buffer(sizeof(scale.words), &scale.words));
        double *wanted = kept_doubles(voxels);
        for (int axis = 0; axis < 3; axis++) {
            const bool has_lines = axis != 1 || n < 10;
            for (int64_t v = 0; v < voxels && has_lines; v++) {
                const int64_t slot = axis * voxels + list_slot(lists, axis, v);
                wanted[v] += to_grid ? list_sum(&scale, sums[slot]) : 0;
                slices[slot] = to_grid ? 0 : grid[FIRST + v];
                memset(sums[slot], 0, to_grid ? sizeof(*sums) : 0);
            }
        }
        const float *after = device_read(of_grid, voxels + FIRST, 4);
        for (int64_t v = 0; v < voxels && to_grid; v++) {
            const double want = wanted[v] + (is_added ? (double)grid[FIRST + v] : 0);
            assert_true(fabs((double)after[FIRST + v] - want) <=
                        3e-7 * (ldexp(3, scale.are_floats ? 0 : scale.exponent) + 2));
        }
        if (!to_grid) assert_memory_equal(device_read(of_slices, 3 * voxels, 4), slices, (size_t)voxels * 12);
        assert_memory_equal(device_read(of_sums, 3 * voxels, 8), sums, (size_t)voxels * 24);
    }
}

static int compare_numbers(const void *a, const void *b)
{
    const uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;
    return (one > other) - (one < other);
}

/* Lines of events in any order, some without slices, and some with values that are not usual. */
static void test_values(void **context)
{
    enum { FIRST = 2, WINDOW = 11 };
    struct gl_program *program = device_program("listmode/values.comp", NULL);
    for (int n = 0; n < 8 * NUM_ODD; n++) {
        const int count = odd_counts[n / 8], all = count + 9;
        const bool has_map = n % 2 != 0, has_values = n / 2 % 2 != 0, stays = n / 4 % 2 != 0;
        /* Lines 4 .. 3 + count, and a window of the values that excludes some at both ends. */
        struct list_kept uniforms = {.frames[0].size = {0, 0, 0, all},
                                     .range = {4, 4 + count, 0, all},
                                     .part = {has_map ? 0 : 3, count, has_map, has_values},
                                     .values_at = {WINDOW, count > 40 ? count - 25 : count, FIRST, stays}};
        struct list_scale scale = {.words = {.usual = 126, .least = 120}};
        uint32_t(*words)[4] = kept(3 * all, sizeof(*words)), listed[2][MOST_ODD], num_listed[2] = {0, 0};
        int32_t *places = kept(2 * all, sizeof(*places));
        float *values = kept_random_floats(MOST_ODD, -0.99, 0.99, &lists_state);
        float *wanted = kept_random_floats(all, 7, 8, &lists_state);
        for (int k = 0; k < MOST_ODD; k += 3) values[k] = k % 2 == 0 ? 0.0f : ldexpf(values[k], k % 5 == 0 ? 3 : -15);
        for (int k = 0; k < all; k++) {
            uint32_t *way = words[2 * all + k];
            way[1] = k % 6 == 1 ? 0 : 4;
            way[2] = (uint32_t)(all - 1 - k);
            way[3] = (uint32_t)(k % 3 + (k / 7 % 2 != 0 ? 4 : 0));
            places[k] = k % 5 == 0 ? -1 : (k * 17) % (count + 1);
        }
        struct gl_pass pass = device_pass(program, &uniforms, sizeof(uniforms), gl_divide_up(count, LR_EVENTS_GROUP));
        device_run_on(&pass, LR_BIND_LIST_LINES, device_buffer(3 * all * 16, words), LR_BIND_LIST_SCALE,
                      device_buffer(sizeof(scale.words), &scale.words), LR_BIND_LIST_PLACES,
                      device_buffer(2 * all * 4, places), LR_BIND_LIST_VALUES, device_buffer(MOST_ODD * 4, values),
                      LR_BIND_LIST_LINE_VALUES, device_buffer(all * 4, wanted), LR_BIND_LIST_OTHERS,
                      device_buffer(2 * all * 4, NULL));
        for (int k = 4; k < 4 + count; k++) {
            const uint32_t *way = words[2 * all + k];
            const int place = has_map ? places[way[2]] : (int)way[2] - uniforms.part[0], within = place - WINDOW;
            const bool has_place =
                way[1] > 0 && place >= 0 && place < count && within >= 0 && within < uniforms.values_at[1];
            if (!has_place && stays) continue;
            wanted[k] = !has_place ? 0.0f : has_values ? values[FIRST + within] : 1.0f;
            const int side = way[3] >= 4;
            if (wanted[k] != 0.0f && !list_is_usual(wanted[k])) listed[side][num_listed[side]++] = (uint32_t)k;
        }
        assert_memory_equal(device_read(pass.buffers[LR_BIND_LIST_LINE_VALUES].buffer, all, 4), wanted,
                            (size_t)all * 4);
        uint32_t *others = device_read(pass.buffers[LR_BIND_LIST_OTHERS].buffer, 2 * all, 4);
        const uint32_t *after = device_read(pass.buffers[LR_BIND_LIST_SCALE].buffer, 1, sizeof(scale.words));
        for (int side = 0; side < 2; side++) {
            assert_int_equal(after[sizeof(scale.words) / 4 - 2 + (size_t)side], num_listed[side]);
            qsort(others + side * all, num_listed[side], 4, compare_numbers);
            assert_memory_equal(others + side * all, listed[side], num_listed[side] * 4);
        }
    }
}

/* --- lines --- */

/* The words of line k equal the host's for the line's slices; in all other slices the line has no elements. */
static void expect_line(const struct lists *lists, int64_t k, int axis, const uint32_t (*words)[4], int64_t stride)
{
    const int slices[2] = {(int)words[2 * stride][0], (int)(words[2 * stride][0] + words[2 * stride][1])};
    const struct list_line want = list_line_of(lists, k, axis, slices);
    for (int64_t v = 0; v < lists->voxels; v++) {
        const int slice = list_slice(lists, axis, v);
        const bool is_nothing = lists->elements[k * lists->voxels + v] <= 1e-7 * lists->largest; /* rounding */
        assert_true(is_nothing || (slice >= slices[0] && slice < slices[1]));
    }
    if (slices[0] == slices[1]) return;
    /* An event whose time of flight lies beyond the ends of its line has one slice, with length 0. */
    const bool is_empty = slices[1] - slices[0] == 1 && want.factor[2] == 0.0f;
    assert_true(is_empty || (want.beyond_mm[0] < 1e-9 && want.beyond_mm[1] < 1e-9));
    for (int c = 0; c < 2; c++) {
        for (int step = 0; step < 2; step++) { /* numbers are truncated: one unit of difference is allowed */
            const uint32_t *two = &words[step * stride][2 * c];
            const int64_t found = (int64_t)((uint64_t)two[0] << 32 | two[1]);
            assert_true(llabs(found - (step ? want.step[c] : want.at[c])) <= 1);
        }
    }
    for (int j = lists->has_tof ? 0 : 1; j < 4; j++) { /* without a time of flight its distance is not read */
        float found;
        memcpy(&found, &words[3 * stride][j], 4);
        if (!(fabs((double)(found - want.factor[j])) <= 3e-7 * (double)fabsf(want.factor[j]) + 1e-12))
            fail_msg("\"%s\", event %d: word %d is %.9g, not %.9g", lists->at->defines, (int)k, j, (double)found,
                     (double)want.factor[j]);
    }
    if (lists->at->bin_mm > 0) {
        float half_bin;
        memcpy(&half_bin, words[4 * stride], 4);
        assert_close((double)half_bin, (double)want.half_bin, 3e-7);
    }
}

/* Prepares lines of a window of values, of large values, or of all events to be kept; the last have no list of value
 * indices. */
static void test_prepare(void **context)
{
    enum { ALL, LARGE, KEPT, NUM_WAYS, WINDOW = 20 };
    for (int n = 0; n < NUM_WAYS * NUM_LIST_CASES; n++) {
        const int which = n / NUM_WAYS, way = n % NUM_WAYS;
        struct lists *lists = open_lists(which, which == 0 ? 800 : 130);
        list_scale_of(lists, VALUES_LARGE);
        struct gl_program *program = device_program("listmode/prepare.comp", lists->at->bin_mm > 0 ? "BINS" : NULL);
        for (int axis = 0; axis < 3; axis++) {
            const int64_t *ends = lists_ends(lists, axis), lines = ends[1] - ends[0];
            const int64_t stride = way == KEPT ? lists->num : lines, begin = way == KEPT ? ends[0] : 0;
            struct list_prepare uniforms = prepare_of(lists, axis);
            uniforms.size[3] = (int32_t)lines;
            uniforms.first[0] = (int32_t)ends[0];
            uniforms.window[0] = way == KEPT ? 0 : WINDOW;
            uniforms.window[1] = lists->num - WINDOW - 10;
            uniforms.window[2] = WINDOW;
            uniforms.window[3] = way == LARGE;
            uniforms.part[0] = way == KEPT;
            uniforms.part[2] = uniforms.part[3] = way != KEPT;
            uniforms.kept[0] = (int32_t)begin;
            uniforms.kept[1] = (int32_t)stride;
            uniforms.kept[2] = way == KEPT;
            struct gl_pass pass =
                device_pass(program, &uniforms, sizeof(uniforms), gl_divide_up(lines, LR_EVENTS_GROUP));
            bind_events(lists, &pass);
            device_run_on(&pass, LR_BIND_LIST_LINES, device_buffer(5 * stride * 16, NULL));
            const uint32_t(*words)[4] = device_read(pass.buffers[LR_BIND_LIST_LINES].buffer, 5 * stride, 16);
            for (int64_t k = ends[0]; k < ends[1]; k++) {
                const uint32_t(*line)[4] = words + begin + k - ends[0];
                const uint32_t *found = line[2 * stride];
                const int number = lists->cpu->events.number[k],
                          place = way == KEPT ? number - 1 : list_place(lists, k);
                const int within = place - uniforms.window[0];
                const bool is_within = place >= 0 && within >= 0 && within < uniforms.window[1];
                const float value = is_within ? lists->values[place] : 0.0f;
                const uint32_t kind = (uint32_t)axis + (lists->has_tof ? 4 : 0);
                if (!is_within || (way == LARGE && !list_is_large(value))) {
                    const uint32_t nothing[4] = {0, 0, LR_NONE, 0};
                    assert_memory_equal(found, nothing, sizeof(nothing));
                    continue;
                }
                assert_int_equal(found[2], within);
                assert_memory_equal(&found[3], way == KEPT ? (const void *)&kind : &value, 4);
                expect_line(lists, k, axis, line, stride);
            }
        }
    }
}

/* A line through planes of sample points, words [15][lines]. Each voxel with an element has a sample point within the
 * line's reach. */
static void expect_exact_line(const struct lists *lists, int64_t k, int axis, const uint32_t (*words)[4], int64_t lines)
{
    const struct list_prepare uniforms = prepare_of(lists, axis);
    const uint32_t *way = words[2 * lines];
    const int *size = lists->cpu->model.grid.size, *samples = uniforms.samples;
    struct lr_listmode_line line;
    float place_mm[4], reach[4], time[4];
    double from[2], step[2];
    memcpy(place_mm, words[3 * lines], sizeof(place_mm));
    memcpy(reach, words[4 * lines], sizeof(reach));
    memcpy(time, words[13 * lines], sizeof(time));
    lr_listmode_line_of(&lists->cpu->events, k, axis, &line);
    const double along = line.direction[axis];
    const double first_mm = uniforms.origin_mm[0] + way[0] * uniforms.edge_mm[0] - line.middle[axis];
    for (int c = 0; c < 2; c++) {
        const int across = uniforms.axes[1 + c];
        const double slope = line.direction[across] / along, off_mm = line.middle[across] - uniforms.origin_mm[1 + c];
        from[c] = (off_mm + first_mm * slope) / uniforms.edge_mm[1 + c];
        step[c] = slope * uniforms.edge_mm[0] / uniforms.edge_mm[1 + c];
    }
    for (int64_t v = 0; v < lists->voxels; v++) {
        const int voxel[3] = {(int)(v % size[0]), (int)(v / size[0] % size[1]), (int)(v / size[0] / size[1])};
        bool is_near = lists->elements[k * lists->voxels + v] <= 1e-7 * lists->largest;
        for (int p = 0; p < samples[0] && !is_near; p++) {
            const int plane = voxel[axis] * samples[0] + p - (int)way[0];
            is_near = plane >= 0 && plane < (int)way[1];
            for (int c = 0; c < 2; c++) {
                const double first = voxel[uniforms.axes[1 + c]] * samples[1 + c], at = from[c] + plane * step[c];
                const double off = fmax(first - at, at - (first + samples[1 + c] - 1));
                is_near = is_near && off <= (double)(reach[c] + (float)plane * reach[2 + c]) + 1e-4;
            }
        }
        assert_true(is_near);
    }
    if (way[1] == 0) return;
    assert_close((double)place_mm[0], first_mm / along + line.half_mm, 1e-5);
    assert_close((double)place_mm[1], uniforms.edge_mm[0] / along, 1e-6);
    assert_close((double)place_mm[2], 2 * line.half_mm, 1e-6);
    if (lists->has_tof) assert_true(fabs((double)time[0] * line.sigma_mm - (first_mm / along - line.tof_mm)) < 1e-4);
    for (int c = 0; c < 2; c++) {
        const int64_t at = (int64_t)((uint64_t)words[0][2 * c] << 32 | words[0][2 * c + 1]);
        assert_true(fabs(ldexp((double)at, -32) - from[c]) < 1e-8);
    }
}

static void test_exact_prepare(void **context)
{
    for (int which = NUM_LIST_CASES; which < END_LIST_CASES; which++) {
        const struct lists *lists = open_lists(which, 130);
        for (int axis = 0; axis < 3; axis++) {
            const int64_t *ends = lists_ends(lists, axis), lines = ends[1] - ends[0];
            const uint32_t(*words)[4] = device_read(prepare_exact(lists, axis), 15 * lines, 16);
            for (int64_t n = 0; n < lines; n++) {
                const uint32_t *way = words[2 * lines + n];
                const int place = list_place(lists, ends[0] + n);
                assert_int_equal((int)way[2], place);
                if (place < 0) assert_int_equal(way[1], 0);
                if (place < 0) continue;
                assert_memory_equal(&way[3], &lists->values[place], 4);
                expect_exact_line(lists, ends[0] + n, axis, words + n, lines);
            }
        }
    }
}

stage_main("render_alone_listmode", CASES(test_elements, test_forward, test_back, test_bound, test_listed,
                                          test_exponents, test_order, test_values, test_prepare, test_exact_prepare,
                                          test_exact_elements, test_exact_forward, test_exact_back, test_exact_bound))

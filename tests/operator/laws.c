/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "operator/laws.h"

#include "device/vector.h"
#include "fixtures.h"

#include "gl/resource.h"
#include "model/lors/selection.h"

/* Numbers before and behind a vector that is part of a longer one. */
enum { BEFORE = 5, BEHIND = 4 };

struct law {
    const struct law_subject *subject;
    const struct law_place *place;
    lr_precision precision;
    int64_t num_voxels, num_values;
    double allowed; /* relative to the norm */
    double *x, *y;  /* an image and values, all exact in float */
    double *ax, *aty;
};

/* --- numbers --- */

static void assert_same(const struct law *law, const char *what, const double *a, const double *b, int64_t count)
{
    const double size = sqrt(dot_product(b, b, count)), apart = l2_apart(a, b, count);
    if (!(size > 0 && apart <= law->allowed)) {
        fail_msg("%s, vectors at %s in %d bits: %s differ by %.3g of %.3g", law->subject->name, law->place->name,
                 law->precision == LR_FLOAT64 ? 64 : 32, what, apart * size, size);
    }
}

/* --- vectors --- */

static lr_vector make_whole(const struct law *law, int64_t count)
{
    return kept_vector(law->place->place, BEFORE + count + BEHIND, law->precision);
}

static void put(const double *values, lr_vector *vector)
{
    assert_ok(lr_vector_copy(vector_of(values, vector->count), vector));
}

static void get(const lr_vector *vector, double *values)
{
    assert_ok(lr_vector_copy(vector, vector_of(values, vector->count)));
}

static void assert_rest_is_zero(const lr_vector *whole)
{
    const lr_vector ends[2] = {lr_vector_part(whole, 0, BEFORE), lr_vector_part(whole, whole->count - BEHIND, BEHIND)};
    for (int k = 0; k < 2; k++) {
        lr_vector_sums sums;
        assert_ok(lr_vector_add_up(&ends[k], NULL, &sums));
        assert_true(sums.product == 0 && sums.not_finite == 0);
    }
}

static int64_t count_of(const struct law *law, const lr_selection *part)
{
    return part == NULL ? law->num_values : lr_selection_count(lr_operator_get_info(law->subject->op)->lors, part);
}

/* Projects in either direction, with vectors that are parts of longer ones. Earlier contents of the output have no
 * effect. */
static void project(const struct law *law, bool is_forward, const lr_selection *part, const double *in, double *out)
{
    const int64_t count = count_of(law, part), from = is_forward ? law->num_voxels : count;
    const int64_t to = is_forward ? count : law->num_voxels;
    lr_vector whole[2] = {make_whole(law, from), make_whole(law, to)};
    lr_vector source = lr_vector_part(&whole[0], BEFORE, from), target = lr_vector_part(&whole[1], BEFORE, to);
    put(in, &source);
    assert_ok(lr_vector_fill(&target, NAN));
    assert_ok((is_forward ? lr_operator_forward : lr_operator_back)(law->subject->op, part, &source, &target));
    get(&target, out);
    for (int k = 0; k < 2; k++) assert_rest_is_zero(&whole[k]);
}

static void find_sensitivity(const struct law *law, const lr_selection *part, double *image)
{
    lr_vector whole = make_whole(law, law->num_voxels), target = lr_vector_part(&whole, BEFORE, law->num_voxels);
    assert_ok(lr_operator_sensitivity(law->subject->op, part, &target));
    get(&target, image);
    assert_rest_is_zero(&whole);
}

/* --- the laws --- */

/* f(2 u - 3 v) = 2 f(u) - 3 f(v); fu = f(u) is known already. */
static void check_linear(const struct law *law, bool is_forward, const double *u, const double *fu)
{
    uint64_t seed = 21;
    const int64_t from = is_forward ? law->num_voxels : law->num_values;
    const int64_t to = is_forward ? law->num_values : law->num_voxels;
    double *v = kept_random_singles(from, -0.7, 1.3, &seed), *mixed = kept_doubles(from);
    double *fv = kept_doubles(to), *found = kept_doubles(to);
    project(law, is_forward, NULL, v, fv);
    for (int64_t k = 0; k < from; k++) mixed[k] = (double)(float)(2 * u[k] - 3 * v[k]);
    project(law, is_forward, NULL, mixed, found);
    for (int64_t k = 0; k < to; k++) fv[k] = 2 * fu[k] - 3 * fv[k];
    /* Positive and negative numbers cancel, and 2 u - 3 v is rounded to a float. */
    struct law wider = *law;
    wider.allowed = 10 * fmax(law->allowed, 1e-7);
    assert_same(&wider, is_forward ? "A(2u - 3v) and 2Au - 3Av" : "A'(2u - 3v) and 2A'u - 3A'v", found, fv, to);
}

static void check_parts_of(const struct law *law, const lr_selection parts[2])
{
    double *values = kept_doubles(law->num_values), *sensitivity = kept_doubles(law->num_voxels);
    double *images[2] = {kept_doubles(law->num_voxels), kept_doubles(law->num_voxels)};
    for (int k = 0; k < 2; k++) {
        /* Copies the values of a part to their places in `values`, and adds the part's images. */
        const lr_selection *part = &parts[k];
        const lr_lors *lors = lr_operator_get_info(law->subject->op)->lors;
        const int64_t count = count_of(law, part);
        double *some = kept_doubles(count), *image = kept_doubles(law->num_voxels);
        project(law, true, part, law->x, some);
        for (int64_t n = 0; n < count; n++) {
            values[lr_selection_lor(lors, part, n)] = some[n];
            some[n] = law->y[lr_selection_lor(lors, part, n)];
        }
        project(law, false, part, some, image);
        for (int which = 0; which < 2; which++) {
            for (int64_t v = 0; v < law->num_voxels; v++) images[which][v] += image[v];
            if (which == 0) find_sensitivity(law, part, image);
        }
    }
    find_sensitivity(law, NULL, sensitivity);
    assert_same(law, "values of parts and of all", values, law->ax, law->num_values);
    struct law wider = *law; /* positive and negative numbers cancel */
    wider.allowed = 10 * law->allowed;
    assert_same(&wider, "images of parts and of all", images[0], law->aty, law->num_voxels);
    wider.allowed = fmax(law->allowed, 1e-6); /* a sensitivity is kept in single precision */
    assert_same(&wider, "sensitivities of parts and of all", images[1], sensitivity, law->num_voxels);
}

static void check_sensitivity(const struct law *law)
{
    if (lr_operator_get_info(law->subject->op)->of_events) return; /* the sensitivity is not only of events */
    double *image = kept_doubles(law->num_voxels), *sensitivity = kept_doubles(law->num_voxels);
    project(law, false, NULL, kept_equal_doubles(law->num_values, 1), image);
    find_sensitivity(law, NULL, sensitivity);
    struct law wider = *law; /* the sensitivity is kept in single precision */
    wider.allowed = fmax(law->allowed, 1e-6);
    assert_same(&wider, "A'1 and the sensitivity", image, sensitivity, law->num_voxels);
}

/* --- memory of the caller's --- */

static void end_buffer(void *buffer)
{
    gl_buffer_destroy(buffer);
}

/* A vector that wraps numbers of the caller: on the host, in a buffer of the caller's context, or those of an owned
 * vector. */
static lr_vector wrap(const struct law *law, int64_t count)
{
    const int64_t size = law->precision == LR_FLOAT64 ? 8 : 4;
    const lr_vector_params params = {.place = law->place->place, .count = count, .precision = law->precision};
    lr_vector vector = {0};
    if (law->place->place == NULL) {
        void *numbers = kept(count, (size_t)size);
        return law->precision == LR_FLOAT64 ? lr_vector_of_doubles(numbers, count)
                                            : lr_vector_of_floats(numbers, count);
    }
    if (law->place->ctx != NULL) {
        struct gl_buffer *buffer = gl_buffer_create(
            law->place->ctx, &(struct gl_buffer_params){.label = "the caller's", .size_bytes = count * size});
        keep_object(buffer, end_buffer);
        glFinish();
        assert_ok(lr_vector_wrap_gl(&params, &(lr_vector_gl_buffer){.buffer = buffer->name}, &vector));
        return vector;
    }
    const lr_vector owned = kept_vector(params.place, count, params.precision);
    assert_ok(lr_vector_wrap_cuda(&params, owned.storage->block, &vector));
    return vector;
}

static void check_wrapped(const struct law *law)
{
    const lr_place *place = law->place->place;
    if (lr_place_get_info(place).kind == LR_PLACE_GL && law->place->ctx == NULL)
        return; /* without shared objects a place accepts no buffer */
    lr_vector image = wrap(law, law->num_voxels), values = wrap(law, law->num_values);
    double *found = kept_doubles(law->num_values + law->num_voxels);
    put(law->x, &image);
    assert_ok(lr_operator_forward(law->subject->op, NULL, &image, &values));
    get(&values, found);
    assert_same(law, "Ax of wrapped and owned vectors", found, law->ax, law->num_values);
    put(law->y, &values);
    assert_ok(lr_operator_back(law->subject->op, NULL, &values, &image));
    get(&image, found);
    assert_same(law, "A'y of wrapped and owned vectors", found, law->aty, law->num_voxels);
    lr_vector_destroy(&image);
    lr_vector_destroy(&values);
}

/* --- what is refused --- */

static void check_refused(const struct law *law)
{
    static const double wrong[2] = {NAN, -INFINITY};
    for (int k = 0; k < 2; k++) {
        lr_vector whole[2] = {make_whole(law, law->num_voxels), make_whole(law, law->num_values)};
        lr_vector image = lr_vector_part(&whole[0], BEFORE, law->num_voxels);
        lr_vector values = lr_vector_part(&whole[1], BEFORE, law->num_values);
        lr_vector one = lr_vector_part(&image, law->num_voxels - 2, 1);
        put(&wrong[k], &one);
        assert_int_equal(lr_operator_forward(law->subject->op, NULL, &image, &values), LR_BAD_INPUT);
        put(law->x, &image);
        one = lr_vector_part(&values, law->num_values - 2, 1);
        put(&wrong[k], &one);
        assert_int_equal(lr_operator_back(law->subject->op, NULL, &values, &image), LR_BAD_INPUT);
    }
}

void laws_check(const struct law_subject *subject, const struct law_place *place, lr_precision precision)
{
    const lr_operator_info *info = lr_operator_get_info(subject->op);
    uint64_t seed = test_seed();
    const int mark = num_kept();
    struct law law = filled(struct law, .subject = subject, .place = place, .precision = precision,
                            .num_voxels = info->num_voxels, .num_values = info->num_lors,
                            .allowed = precision == LR_FLOAT64 ? subject->rounding : fmax(subject->rounding, 1e-7));
    law.x = kept_random_singles(law.num_voxels, -0.7, 1.3, &seed);
    law.y = kept_random_singles(law.num_values, -0.7, 1.3, &seed);
    law.ax = kept_doubles(law.num_values);
    law.aty = kept_doubles(law.num_voxels);
    project(&law, true, NULL, law.x, law.ax);
    project(&law, false, NULL, law.y, law.aty);
    const double left = dot_product(law.ax, law.y, law.num_values);
    const double right = dot_product(law.x, law.aty, law.num_voxels);
    const double size = sqrt(dot_product(law.ax, law.ax, law.num_values) * dot_product(law.y, law.y, law.num_values));
    if (!(size > 0 && fabs(left - right) <= law.allowed * size)) {
        fail_msg("%s, vectors at %s: <Ax, y> and <x, A'y> differ by %.3g of |Ax| |y|", law.subject->name,
                 law.place->name, fabs(left - right) / size);
    }
    check_linear(&law, true, law.x, law.ax);
    check_linear(&law, false, law.y, law.aty);
    /* Parts: every third pair and the others; every third LOR and the others. */
    const int64_t num_pairs = lr_operator_get_info(law.subject->op)->lors->num_pairs;
    lr_selection of_pairs[2] = {{0}}, of_lors[2] = {{0}};
    for (int which = 0; which < 2; which++) {
        int32_t *pairs = kept(num_pairs, sizeof(*pairs));
        int64_t *lors = kept(law.num_values, sizeof(*lors));
        of_pairs[which].pairs = pairs;
        of_lors[which].lors = lors;
        for (int32_t pair = 0; pair < num_pairs; pair++)
            if ((pair % 3 == 0) == which) pairs[of_pairs[which].num_pairs++] = pair;
        for (int64_t lor = 0; lor < law.num_values; lor++)
            if ((lor % 3 == 0) == which) lors[of_lors[which].num_lors++] = lor;
    }
    if (num_pairs > 1) check_parts_of(&law, of_pairs);
    check_parts_of(&law, of_lors);
    check_sensitivity(&law);
    check_wrapped(&law);
    check_refused(&law);
    /* Results must equal those with doubles on the host. */
    static const struct law_place host = {.name = "the host"};
    struct law other = law;
    double *values = kept_doubles(law.num_values), *image = kept_doubles(law.num_voxels);
    other.place = &host;
    other.precision = LR_FLOAT64;
    project(&other, true, NULL, law.x, values);
    project(&other, false, NULL, law.y, image);
    assert_same(&law, "Ax there and of doubles on the host", law.ax, values, law.num_values);
    assert_same(&law, "A'y there and of doubles on the host", law.aty, image, law.num_voxels);
    destroy_kept_since(mark);
}

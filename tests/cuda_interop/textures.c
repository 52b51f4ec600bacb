/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Images and look-up tables of the backend cuda in textures, on a device: every variant must project as it does from
 * buffers, and must not without any one of its textures. */
#include "direct/cases.h"

#include "cuda_interop/lend.h"
#include "direct/compute/direct.h"
#include "operator/facade.h"

static const struct {
    const char *name;
    lr_direct_variant variant;
    const char *textures[4]; /* labels of the tables that the variant reads */
} ways[] = {
    {"threads", LR_DIRECT_THREADS, {"LORmap"}},
    {"instructions", LR_DIRECT_INSTRUCTIONS, {"LORmap"}},
    {"shared memory", LR_DIRECT_SHARED_MEMORY, {"LORmap", "a cloud", "factors of a cloud", "profiles"}},
    {"texture cache", LR_DIRECT_TEXTURE_CACHE, {"LORmap", "a cloud", "factors of a cloud", "profiles"}},
};

/* --- textures that are taken out --- */

static const char *taken_out; /* label of a texture that kernels do not get; NULL = none */
static bool gets_zeros;       /* kernels get a texture of zeros in its place; false: none */
static struct gl_texture *zeros;

uint64_t __real_lr_cuda_texture(const struct lr_cuda_object *object, const lr_log *log);
uint64_t __wrap_lr_cuda_texture(const struct lr_cuda_object *object, const lr_log *log);

uint64_t __wrap_lr_cuda_texture(const struct lr_cuda_object *object, const lr_log *log)
{
    const struct gl_texture *texture = object->texture;
    if (taken_out == NULL || strcmp(texture->label, taken_out) != 0) return __real_lr_cuda_texture(object, log);
    if (!gets_zeros) return 0;
    assert_null(zeros);
    zeros = gl_texture_create(texture->ctx, &(struct gl_texture_params){.label = "zeros",
                                                                        .target = texture->target,
                                                                        .format = texture->format,
                                                                        .width = texture->size[0],
                                                                        .height = texture->size[1],
                                                                        .depth = texture->size[2]});
    const struct lr_cuda_object other = {.texture = zeros};
    assert_ok(lr_cuda_take(&other, 1, texture->ctx));
    return __real_lr_cuda_texture(&other, log);
}

/* --- projections --- */

/* An odd small grid and one of some size, whose cloud has more points than a row of its texture. */
static const struct {
    int size[3];
    lr_view view;
    double tof_ps;
} cases[] = {{{23, 25, 11}, {30, 10}, 150}, {{71, 64, 41}, {117, -6}, 600}};

static lr_operator *make(int way, int k, lr_direct_storage storage)
{
    const lr_grid grid = lr_grid_centred(cases[k].size, (const double[3]){4, 4, 4});
    const lr_resolution resolution = {.tof_ps = cases[k].tof_ps,
                                      .model = LR_RADIAL_VARIANT2,
                                      .radial_mm = 6,
                                      .radial_edge_mm = 14,
                                      .edge_mm = 48,
                                      .axial_mm = 9,
                                      .asymmetric = true};
    return keep(lr_direct_create(&(lr_direct_params){.grid = &grid,
                                                     .views = &cases[k].view,
                                                     .num_views = 1,
                                                     .kernel = {.resolution = resolution},
                                                     .backend = "cuda,compute",
                                                     .storage = storage,
                                                     .variant = ways[way].variant}));
}

static void skip_without_cuda(void)
{
    if (strcmp(lr_operator_get_info(make(0, 0, LR_DIRECT_BUFFERS))->backend, "cuda") != 0) {
        print_message("skipped: no CUDA device\n");
        skip();
    }
}

struct projection {
    float *source, *expected, *found; /* [count] */
    int64_t count;
};

/* Random values, and their projection from buffers. */
static struct projection project_from_buffers(int way, int k, bool is_forward)
{
    uint64_t seed = 17;
    lr_operator *buffers = make(way, k, LR_DIRECT_BUFFERS);
    const int64_t count = lr_operator_get_info(buffers)->num_voxels;
    const struct projection all = {kept_random_floats(count, 0, 1, &seed), kept_floats(count), kept_floats(count),
                                   count};
    assert_ok(view_floats(buffers, is_forward, 0, all.source, all.expected));
    return all;
}

static void textures_project_as_buffers(void **state)
{
    skip_without_cuda();
    for (int n = 0; n < 2 * 2 * length_of(ways); n++) {
        const int before = num_kept(), way = n / 4, k = n / 2 % 2;
        const bool is_forward = n % 2 != 0;
        const struct projection all = project_from_buffers(way, k, is_forward);
        assert_ok(view_floats(make(way, k, LR_DIRECT_TEXTURES), is_forward, 0, all.source, all.found));
        const double apart = l2_apart(all.found, all.expected, all.count);
        print_message("%s, case %d, %s: textures differ from buffers by %.2e\n", ways[way].name, k,
                      is_forward ? "forward" : "back", apart);
        assert_true(apart < 1e-6);
        destroy_kept_since(before);
    }
}

static void no_variant_works_without_its_textures(void **state)
{
    skip_without_cuda();
    for (int n = 0; n < 2 * 4 * length_of(ways); n++) {
        const int before = num_kept(), way = n / 8;
        const bool is_forward = n % 2 != 0;
        const char *label = ways[way].textures[n / 2 % 4];
        if (label == NULL) continue;
        const struct projection all = project_from_buffers(way, 0, is_forward);
        taken_out = label;
        gets_zeros = false;
        assert_int_equal(view_floats(make(way, 0, LR_DIRECT_TEXTURES), is_forward, 0, all.source, all.found),
                         LR_FAILED);
        gets_zeros = true;
        lr_operator *emptied = make(way, 0, LR_DIRECT_TEXTURES);
        assert_ok(view_floats(emptied, is_forward, 0, all.source, all.found));
        taken_out = NULL;
        const double apart = l2_apart(all.found, all.expected, all.count);
        print_message("%s, %s, %s emptied: %.2e\n", ways[way].name, is_forward ? "forward" : "back", label, apart);
        assert_true(apart > 0.01);

        struct gl_context *ctx = ((struct lr_direct_compute *)emptied->backend.self)->ctx;
        assert_ok(gl_context_make_current(ctx));
        gl_texture_destroy(zeros);
        zeros = NULL;
        gl_context_release(ctx);
        destroy_kept_since(before);
    }
}

int main(int argc, char **argv)
{
    if (!fixture_backend_is_usable("compute")) return 77;
    struct CMUnitTest tests[] = {CASE(textures_project_as_buffers), CASE(no_variant_works_without_its_textures)};
    return test_run(argc > 1 ? argv[1] : NULL, "textures", tests, length_of(tests), NULL);
}

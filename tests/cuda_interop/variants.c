/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Which variant of the `cuda` backend of the family `direct` a storage gets. */
#include "../cases.h"

#include "direct/compute/direct.h"

static struct lr_direct_backend_params made;
static int times_made;

lr_status __wrap_lr_direct_compute_create_with(const struct lr_direct_backend_params *params,
                                               const struct lr_direct_functions *functions, struct lr_backend *backend);

lr_status __wrap_lr_direct_compute_create_with(const struct lr_direct_backend_params *params,
                                               const struct lr_direct_functions *functions, struct lr_backend *backend)
{
    assert_string_equal(functions->name, "cuda");
    made = *params;
    times_made++;
    return LR_OK;
}

static lr_status make(lr_direct_storage storage, lr_direct_variant variant)
{
    struct lr_backend backend = {0};
    times_made = 0;
    return lr_direct_cuda_create(&(struct lr_direct_backend_params){.storage = storage, .variant = variant}, &backend);
}

/* Skips in builds without CUDA, which have no such backend. */
static void need_cuda(void)
{
    if (make(LR_DIRECT_BUFFERS, LR_DIRECT_FASTEST) == LR_NO_DEVICE) {
        print_message("skipped: built without CUDA\n");
        skip();
    }
}

static void storages_have_their_fastest_variant(void **state)
{
    need_cuda();
    assert_ok(make(LR_DIRECT_BUFFERS, LR_DIRECT_FASTEST));
    assert_int_equal(made.variant, LR_DIRECT_BANDS);
    assert_ok(make(LR_DIRECT_TEXTURES, LR_DIRECT_FASTEST));
    assert_int_equal(made.variant, LR_DIRECT_SHARED_MEMORY);
    assert_true(made.may_change_variant);
}

static void what_is_named_is_made(void **state)
{
    need_cuda();
    for (int variant = LR_DIRECT_BANDS; variant <= LR_DIRECT_TEXTURE_CACHE; variant++) {
        const bool from_textures = variant > LR_DIRECT_COLUMNS;
        assert_ok(make(LR_DIRECT_BUFFERS, (lr_direct_variant)variant));
        assert_int_equal(made.variant, variant);
        assert_false(made.may_change_variant);
        assert_int_equal(make(LR_DIRECT_TEXTURES, (lr_direct_variant)variant), from_textures ? LR_OK : LR_USAGE);
        assert_int_equal(times_made, from_textures);
    }
}

test_main("variants", CASE(storages_have_their_fastest_variant), CASE(what_is_named_is_made))

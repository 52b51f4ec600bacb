/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Look-up tables of many views on a device whose memory is the host's: which views are made together, which ones are
 * kept, which calls of CUDA this takes, and that nothing is leaked. The tables are filled by the same thread
 * functions as on the device (on_cpu.h). */
#include "direct/cases.h"

#include "base/log.h"
#include "cuda_interop/direct/passes.h"
#include "cuda_interop/direct/tables.h"
#include "cuda_interop/lend.h"
#include "on_cpu.h"

#include <cuda_runtime_api.h>

enum { NUM_VIEWS = 24, THREADS = 4 };

/* --- the device --- */

struct device {
    int blocks, staging; /* numbers of blocks that are allocated */
    int textures;        /* number of textures */
    int calls;           /* calls that allocate or copy memory, start kernels or wait */
    int fails_in;        /* allocations until one fails, counting it; 0: none fails */
    int own_fills;       /* number of fills of columns */
};

static struct device device;

static cudaError_t take(void **memory, size_t bytes, int *taken)
{
    device.calls++;
    if (device.fails_in > 0 && --device.fails_in == 0) return cudaErrorMemoryAllocation;
    *memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
    memset(*memory, 0xff, bytes);
    ++*taken;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    return take(memory, bytes, &device.blocks);
}

cudaError_t cudaMallocHost(void **memory, size_t bytes)
{
    return take(memory, bytes, &device.staging);
}

cudaError_t cudaFree(void *memory)
{
    free(memory);
    device.blocks--;
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *memory)
{
    free(memory);
    device.staging--;
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *all_bytes)
{
    *free_bytes = *all_bytes = (size_t)1 << 30;
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    assert_true(kind == cudaMemcpyHostToDevice && stream == NULL);
    memcpy(to, from, bytes);
    device.calls++;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    device.calls++;
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    device.calls++;
    return cudaSuccess;
}

lr_status lr_cuda_check(int error, const char *what, const lr_log *log)
{
    return error == 0 ? LR_OK : lr_error(log, LR_FAILED, "%s: CUDA says %d", what, error);
}

bool lr_cuda_bands_work(void)
{
    return true;
}

int64_t lr_cuda_shared_room(void)
{
    return 227 * 1024;
}

int lr_cuda_launch_value_fills(const lr_cuda_view_fill *views, const lr_cuda_fill_sizes *sizes)
{
    device.calls++;
    on_cpu_value_fills(views, sizes);
    return 0;
}

int lr_cuda_launch_band_fills(const lr_cuda_view_fill *views, const lr_cuda_fill_sizes *sizes)
{
    device.calls++;
    on_cpu_band_fills(views, sizes);
    return 0;
}

int lr_cuda_launch_column_weights(bool forward, const lr_cuda_columns *pass, const lr_cuda_gather *tables,
                                  const int32_t *indices)
{
    assert_true(pass->weights != NULL && indices != NULL && tables->values[0] >= 0);
    device.own_fills++;
    return 0;
}

/* --- OpenGL's textures, whose texels are the machine's memory too --- */

struct cudaArray {
    struct gl_texture texture; /* must be the first member */
    int texel_bytes;
    char *texels;
};

struct gl_texture *__wrap_gl_texture_create(struct gl_context *ctx, const struct gl_texture_params *params);
void __wrap_gl_texture_destroy(struct gl_texture *texture);
lr_status __wrap_gl_context_make_current(struct gl_context *ctx);
bool __wrap_gl_context_make_current_to_free(struct gl_context *ctx);
void __wrap_gl_context_release(struct gl_context *ctx);
lr_status __wrap_gl_context_status(const struct gl_context *ctx, lr_status status);

struct gl_texture *__wrap_gl_texture_create(struct gl_context *ctx, const struct gl_texture_params *params)
{
    struct cudaArray *array = calloc(1, sizeof(*array));
    assert_true(ctx == NULL && params->target == GL_TEXTURE_3D && params->height > 1 && params->depth > 1);
    if (device.fails_in > 0 && --device.fails_in == 0) {
        free(array);
        return NULL;
    }
    array->texture = (struct gl_texture){.size = {params->width, params->height, params->depth}};
    array->texel_bytes = params->format == GL_R16UI ? 2 : params->format == GL_RGBA32I ? 16 : 4;
    array->texels =
        calloc((size_t)params->width * (size_t)params->height * (size_t)params->depth, (size_t)array->texel_bytes);
    device.textures++;
    return &array->texture;
}

void __wrap_gl_texture_destroy(struct gl_texture *texture)
{
    struct cudaArray *array = (struct cudaArray *)texture;
    if (array == NULL) return;
    free(array->texels);
    free(array);
    device.textures--;
}

lr_status __wrap_gl_context_make_current(struct gl_context *ctx)
{
    (void)ctx;
    return LR_OK;
}

bool __wrap_gl_context_make_current_to_free(struct gl_context *ctx)
{
    (void)ctx;
    return true;
}

void __wrap_gl_context_release(struct gl_context *ctx)
{
    (void)ctx;
}

lr_status __wrap_gl_context_status(const struct gl_context *ctx, lr_status status)
{
    (void)ctx;
    return status;
}

lr_status lr_cuda_take(const struct lr_cuda_object *objects, int count, struct gl_context *ctx)
{
    assert_true(ctx == NULL && count > 0);
    for (int k = 0; k < count; k++) assert_true(objects[k].texture != NULL && objects[k].buffer == NULL);
    return LR_OK;
}

void *lr_cuda_array(const struct lr_cuda_object *object, const lr_log *log)
{
    (void)log;
    return object->texture;
}

uint64_t lr_cuda_texture(const struct lr_cuda_object *object, const lr_log *log)
{
    (void)log;
    return (uint64_t)(uintptr_t)object->texture;
}

cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *copy, cudaStream_t stream)
{
    const struct cudaArray *to = copy->dstArray;
    const int *size = to->texture.size;
    const struct cudaExtent *extent = &copy->extent;
    const struct cudaPos *at = &copy->dstPos;
    const size_t row_bytes = extent->width * (size_t)to->texel_bytes;
    assert_true(stream == NULL && copy->kind == cudaMemcpyDeviceToDevice && copy->srcPtr.pitch >= row_bytes);
    assert_true(extent->width > 0 && extent->height > 0 && extent->depth == 1 && at->x == 0);
    assert_true(extent->width <= (size_t)size[0] && at->y + extent->height <= (size_t)size[1]);
    assert_true(at->z < (size_t)size[2]);
    for (size_t row = 0; row < extent->height; row++) {
        memcpy(to->texels + (size_t)size[0] * (at->y + row + (size_t)size[1] * at->z) * (size_t)to->texel_bytes,
               (const char *)copy->srcPtr.ptr + row * copy->srcPtr.pitch, row_bytes);
    }
    return cudaSuccess;
}

/* --- a projector's tables --- */

struct projector {
    struct lr_direct_compute compute;
    struct lr_cuda_table_set set;
    lr_view views[NUM_VIEWS];
    struct test_log log;
};

static lr_direct_storage storage; /* of all projectors that are opened */

static struct projector *open_projector(int variant, int64_t room_bytes)
{
    static struct projector opened; /* one at a time */
    struct projector *projector = &opened;
    *projector = (struct projector){0};
    device = (struct device){0};
    test_log_init(&projector->log);
    for (int k = 0; k < NUM_VIEWS; k++) projector->views[k] = (lr_view){180.0 * k / NUM_VIEWS, 5.0 * (k % 3) - 5};
    const lr_grid grid = case_grid();
    projector->compute.params = (struct lr_direct_backend_params){.grid = grid,
                                                                  .views = projector->views,
                                                                  .num_views = NUM_VIEWS,
                                                                  .kernel = {case_resolution(2), 0, 0},
                                                                  .threads = THREADS,
                                                                  .storage = storage,
                                                                  .variant = (lr_direct_variant)variant,
                                                                  .max_memory_bytes = room_bytes,
                                                                  .log = &projector->log.log};
    projector->compute.layout = (struct lr_direct_layout){
        .size = {grid.size[0], grid.size[1], grid.size[2]}, .quads = 3, .margin = {8, 16, 16}};
    assert_ok(lr_cuda_table_set_init(&projector->set, &projector->compute));
    return projector;
}

static void close_projector(struct projector *projector)
{
    lr_cuda_table_set_finish(&projector->set);
    assert_int_equal(device.blocks, 0);
    assert_int_equal(device.staging, 0);
    assert_int_equal(device.textures, 0);
}

static int count_there(const struct projector *projector)
{
    int count = 0;
    for (int k = 0; k < NUM_VIEWS; k++) {
        count += projector->set.views[k].is_there;
        assert_null(projector->set.views[k].making);
    }
    return count;
}

/* Entry (x, y) of a row of a view's table in a texture. */
static const void *texel_at(const struct lr_cuda_tables *tables, int n, int x, int y)
{
    const struct cudaArray *array = (const struct cudaArray *)(uintptr_t)tables->textures.textures[n];
    const int *size = array->texture.size;
    assert_true(x < size[0] && y < size[1]);
    return array->texels + array->texel_bytes * (x + size[0] * (y + (int64_t)size[1] * tables->textures.slice));
}

/* Values that nobody has filled in are NaN. */
static void check_view(const struct projector *projector, int view)
{
    const struct lr_cuda_tables *tables = &projector->set.views[view];
    const lr_cuda_gather *gather = &tables->gather;
    const int64_t columns = (int64_t)gather->layout.extent[1] * gather->layout.extent[2];
    double sum = 0;
    assert_true(tables->is_there);
    for (int i = 0; i < gather->num_offsets; i++) sum += (double)gather->values[(int64_t)i * gather->num_rows];
    assert_true(fabs(sum - 1) < 1e-6);
    for (int64_t k = 0; k < columns; k++) assert_true(tables->map[k] < gather->num_rows);
    if (storage == LR_DIRECT_TEXTURES) {
        const lr_cuda_layout *layout = &tables->gather.layout;
        const lr_cuda_cloud *cloud = &tables->cloud;
        for (int y = 0; y < layout->extent[2]; y++)
            assert_memory_equal(texel_at(tables, LR_CUDA_MAP, 0, y), tables->map + y * layout->extent[1],
                                (size_t)layout->extent[1] * sizeof(uint16_t));
        for (int row = 0; row < cloud->num_rows; row++)
            assert_memory_equal(texel_at(tables, LR_CUDA_PROFILES, 0, row), cloud->profiles + row * cloud->num_columns,
                                (size_t)cloud->num_columns * sizeof(float));
        for (int k = 0; k < cloud->num_points; k++) {
            const int x = k % LR_CUDA_LIST_WIDTH, y = k / LR_CUDA_LIST_WIDTH;
            assert_memory_equal(texel_at(tables, LR_CUDA_FACTORS, x, y), cloud->factors + k, sizeof(float));
            assert_memory_equal(texel_at(tables, LR_CUDA_POINTS, x, y), (const char *)cloud->points + 16 * k, 16);
        }
    }
}

/* Makes tables from view `first` on to the last. */
static void make_from(struct projector *projector, int first)
{
    int views[NUM_VIEWS];
    for (int k = 0; k < NUM_VIEWS; k++) views[k] = k;
    assert_ok(lr_cuda_make_tables(&projector->set, views + first, NUM_VIEWS - first));
}

/* --- tests --- */

/* When a view is needed, the views after it are made as well, one per processor; existing tables are not made again. */
static void next_views_come_along(void **state)
{
    struct projector *projector = open_projector(LR_DIRECT_BANDS, 0);
    assert_non_null(lr_cuda_open_tables(&projector->set, 22));
    assert_int_equal(count_there(projector), THREADS);
    assert_true(projector->set.views[1].is_there); /* after the last view follows the first */
    const int calls = device.calls;
    assert_non_null(lr_cuda_open_tables(&projector->set, 0));
    make_from(projector, 22);
    assert_int_equal(device.calls, calls);
    make_from(projector, 5);
    assert_int_equal(count_there(projector), 22 - 5 + THREADS);
    for (int k = 5; k < NUM_VIEWS; k++) check_view(projector, k);
    close_projector(projector);
}

static int count_calls(struct projector *projector, int first)
{
    for (int k = 0; k < NUM_VIEWS; k++) lr_cuda_forget_tables(&projector->set, k);
    assert_int_equal(projector->set.bytes, 0);
    const int before = device.calls;
    make_from(projector, first);
    assert_int_equal(count_there(projector), NUM_VIEWS - first);
    return device.calls - before;
}

/* Number of calls once the memory exists: one copy, two launches (here) and one wait. */
static void calls_do_not_depend_on_the_number_of_views(void **state)
{
    struct projector *projector = open_projector(LR_DIRECT_BANDS, 0);
    make_from(projector, 0);
    assert_ints(count_calls(projector, 0), 4, count_calls(projector, 10), 4);
    assert_int_equal(count_calls(projector, 23), 5); /* allocates a little more memory */
    assert_int_equal(count_calls(projector, 23), 4);
    close_projector(projector);
}

/* The view that is needed is always made, and other views only if there is room. */
static void cut_groups(void)
{
    const int first = storage == LR_DIRECT_TEXTURES ? LR_DIRECT_THREADS : LR_DIRECT_BANDS;
    for (int variant = first; variant <= LR_DIRECT_TEXTURE_CACHE; variant++) {
        struct projector *projector = open_projector(variant, 0);
        make_from(projector, 0);
        const int64_t view_bytes = projector->set.view_bytes;
        assert_int_equal(device.own_fills, variant == LR_DIRECT_COLUMNS ? 2 * NUM_VIEWS : 0);
        close_projector(projector);
        const double rooms[] = {1e-6, 0.5, 1.2, 2.5, 5, 12, 100};
        for (int k = 0; k < (int)(length_of(rooms)); k++) {
            const int64_t room_bytes = 1 + (int64_t)(rooms[k] * (double)view_bytes);
            projector = open_projector(variant, room_bytes);
            /* Goes through all views twice, in an order that mixes neighbours and distant views. */
            int views[2 * NUM_VIEWS];
            for (int n = 0; n < 2 * NUM_VIEWS; n++) views[n] = 7 * n % NUM_VIEWS;
            for (int n = 0; n < 2 * NUM_VIEWS; n++) {
                assert_ok(lr_cuda_make_tables(&projector->set, views + n, 2 * NUM_VIEWS - n));
                check_view(projector, views[n]);
            }
            for (int n = 0; n < NUM_VIEWS; n++) {
                assert_non_null(lr_cuda_open_tables(&projector->set, 5 * n % NUM_VIEWS));
                check_view(projector, 5 * n % NUM_VIEWS);
            }
            const int there = count_there(projector);
            assert_true(rooms[k] > 99 ? there == NUM_VIEWS : there < NUM_VIEWS);
            assert_all(there == 1 || projector->set.bytes <= 2 * room_bytes, rooms[k] < 5 || there > 1);
            close_projector(projector);
        }
    }
}

static void groups_are_cut_to_the_room(void **state)
{
    cut_groups();
    storage = LR_DIRECT_TEXTURES;
    cut_groups();
    storage = LR_DIRECT_BUFFERS;
}

/* A group has one texture for each kind of table, however many views there are. */
static void views_share_textures(void **state)
{
    storage = LR_DIRECT_TEXTURES;
    for (int variant = LR_DIRECT_THREADS; variant <= LR_DIRECT_TEXTURE_CACHE; variant++) {
        const bool has_cloud = variant == LR_DIRECT_SHARED_MEMORY || variant == LR_DIRECT_TEXTURE_CACHE;
        struct projector *projector = open_projector(variant, 0);
        make_from(projector, 3);
        assert_int_equal(device.textures, has_cloud ? LR_CUDA_NUM_TEXTURES : 1);
        for (int view = 3; view < NUM_VIEWS; view++) check_view(projector, view);
        device.fails_in = 2; /* the first texture, after a block */
        assert_null(lr_cuda_open_tables(&projector->set, 0));
        device.fails_in = 0;
        assert_non_null(lr_cuda_open_tables(&projector->set, 0));
        check_view(projector, 0);
        close_projector(projector);
    }
    storage = LR_DIRECT_BUFFERS;
}

static void nothing_is_half_made(void **state)
{
    struct projector *projector = open_projector(LR_DIRECT_BANDS, 0);
    for (int call = 1; call <= 2; call++) { /* bytes of the device's memory, and of the host's */
        device.fails_in = call;
        assert_null(lr_cuda_open_tables(&projector->set, 3));
        assert_says(projector->log.error, "CUDA says 2");
        assert_ints(count_there(projector), 0, projector->set.bytes, 0);
    }
    assert_non_null(lr_cuda_open_tables(&projector->set, 3));
    projector->views[12].tilt_deg = 95;
    const int there[] = {0, 1, 12};
    assert_int_equal(lr_cuda_make_tables(&projector->set, there, 3), LR_USAGE);
    assert_says(projector->log.error, "tilt of 95");
    assert_int_equal(count_there(projector), THREADS);
    assert_ok(lr_cuda_make_tables(&projector->set, there, 2));
    check_view(projector, 1);
    check_view(projector, 3);
    close_projector(projector);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(next_views_come_along),
                                       cmocka_unit_test(calls_do_not_depend_on_the_number_of_views),
                                       cmocka_unit_test(groups_are_cut_to_the_room),
                                       cmocka_unit_test(views_share_textures), cmocka_unit_test(nothing_is_half_made)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

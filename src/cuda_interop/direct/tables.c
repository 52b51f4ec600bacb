/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cuda_interop/direct/tables.h"

#include "base/log.h"
#include "base/mem.h"
#include "cuda_interop/direct/passes.h"
#include "cuda_interop/lend.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

/* --- blocks of memory --- */

void lr_cuda_block_free(struct lr_cuda_block *block)
{
    if (block->memory != NULL) /* without memory, there may be no device */
        cudaFree(block->memory);
    *block = (struct lr_cuda_block){0};
}

/* --- tables --- */

enum { MOST_VIEWS = 256 /* largest number of views of a group */ };

/* Views whose tables lie in one block of memory. */
struct lr_cuda_group {
    struct lr_cuda_block block;
    struct gl_texture *textures[LR_CUDA_NUM_TEXTURES]; /* owned; copies of tables, a slice per view; NULL = none */
    int64_t bytes;                                     /* bytes of the block and of the textures */
    int num_views; /* number of views whose tables are still in use; lr_cuda_forget_tables removes one */
};

/* Data of a view that exist only while its tables are made. */
struct lr_cuda_making {
    struct lr_cuda_memory *memory;
    struct lr_cuda_view_plan *plan;
    lr_cuda_view_fill *fill;
    const int32_t *indices; /* indices of columns */
};

/* --- lists of a view --- */

/* Assigns addresses to the lists that a view's passes read, and to the lists from which the device fills them. */
static lr_status place_view(struct lr_cuda_table_set *set, struct lr_cuda_tables *tables)
{
    struct lr_cuda_making *making = tables->making;
    const struct lr_cuda_view_plan *plan = making->plan;
    struct lr_cuda_memory *memory = making->memory;
    const lr_cuda_layout layout = lr_cuda_layout_of(set->compute);
    lr_status status = lr_cuda_place_values(memory, plan, &layout, making->fill);
    if (status == LR_OK) {
        const lr_cuda_value_fill *values = &making->fill->values;
        tables->map = making->fill->map.map;
        tables->gather = (lr_cuda_gather){.layout = layout,
                                          .offsets = values->offsets,
                                          .values = values->values,
                                          .num_offsets = values->num_offsets,
                                          .num_rows = values->num_rows};
    }
    if (status == LR_OK && plan->has_bands) {
        status = lr_cuda_place_bands(memory, &plan->bands, making->fill, tables->bands);
    } else if (status == LR_OK && plan->has_columns) {
        const struct lr_cuda_column_plan *host = &plan->columns;
        const int64_t steps = host->pass.first[LR_CUDA_CLASSES];
        const lr_cuda_column_step *list = lr_cuda_place(memory, steps * (int64_t)sizeof(*host->steps), host->steps);
        making->indices = lr_cuda_place(memory, steps * LR_CUDA_OUTPUTS * 4 * (int64_t)sizeof(int32_t), host->indices);
        for (int forward = 0; forward < 2; forward++) {
            lr_cuda_columns *pass = &tables->columns[forward];
            *pass = host->pass;
            pass->steps = list;
            pass->map = tables->map;
            pass->weights = lr_cuda_place(memory, host->num_weights * 4 * (int64_t)sizeof(float), NULL);
            if (list == NULL || making->indices == NULL || pass->weights == NULL) status = LR_FAILED;
        }
    } else if (status == LR_OK && plan->has_cloud) {
        const struct lr_cuda_cloud_tables *host = &plan->cloud;
        const int64_t number = sizeof(float);
        lr_cuda_cloud *pass = &tables->cloud;
        *pass = host->pass;
        pass->points = lr_cuda_place(memory, pass->num_points * 4 * number, host->points);
        pass->factors = lr_cuda_place(memory, pass->num_points * number, host->factors);
        pass->profiles = lr_cuda_place(memory, (int64_t)pass->num_rows * pass->num_columns * number, host->profiles);
        pass->shift = lr_cuda_place(memory, pass->layout.extent[1 + pass->along] * number, host->shift);
        if (!(pass->points && pass->factors && pass->profiles && pass->shift)) status = LR_FAILED;
    }
    return status == LR_OK
               ? LR_OK
               : lr_error(set->compute->params.log, LR_FAILED, "look-up tables take more memory than was counted");
}

/* --- groups of views --- */

/* A group that is being made. */
struct assembly {
    struct lr_cuda_table_set *set;
    int views[MOST_VIEWS];
    int num_views;
    struct lr_cuda_memory memory;
    struct lr_cuda_view_plan *plans; /* owned [num_views], like the two members below */
    lr_cuda_view_fill *fills;
    struct lr_cuda_making *makings;
};

static struct lr_cuda_tables *tables_of(const struct assembly *assembly, int k)
{
    return &assembly->set->views[assembly->views[k]];
}

/* --- tables in textures --- */

/* A list or table in device memory, whose copy in a texture has rows of `width` entries. */
struct table {
    const void *entries;
    int64_t count; /* number of entries; 0 = the view has no such table */
    int width;
};

static void list_tables(const struct lr_cuda_tables *view, struct table tables[LR_CUDA_NUM_TEXTURES])
{
    const lr_cuda_layout *layout = &view->gather.layout;
    const lr_cuda_cloud *cloud = &view->cloud;
    tables[LR_CUDA_MAP] = (struct table){view->map, (int64_t)layout->extent[1] * layout->extent[2], layout->extent[1]};
    tables[LR_CUDA_POINTS] = (struct table){cloud->points, cloud->num_points, LR_CUDA_LIST_WIDTH};
    tables[LR_CUDA_FACTORS] = (struct table){cloud->factors, cloud->num_points, LR_CUDA_LIST_WIDTH};
    tables[LR_CUDA_PROFILES] =
        (struct table){cloud->profiles, (int64_t)cloud->num_rows * cloud->num_columns, cloud->num_columns};
}

static const struct {
    const char *label;
    GLenum format;
    int entry_bytes;
} forms[LR_CUDA_NUM_TEXTURES] = {[LR_CUDA_MAP] = {"LORmap", GL_R16UI, sizeof(uint16_t)},
                                 [LR_CUDA_POINTS] = {"a cloud", GL_RGBA32I, 4 * sizeof(int32_t)},
                                 [LR_CUDA_FACTORS] = {"factors of a cloud", GL_R32F, sizeof(float)},
                                 [LR_CUDA_PROFILES] = {"profiles", GL_R32F, sizeof(float)}};

/* Finds the sizes of textures that hold the tables of the assembly's first views; 0 = no texture. Returns the bytes of
 * all textures. A texture has at least two rows and two slices, because CUDA could take a smaller one for a texture of
 * fewer dimensions. */
static int64_t size_textures(const struct assembly *assembly, int num_views, int sizes[LR_CUDA_NUM_TEXTURES][3])
{
    int64_t bytes = 0;
    memset(sizes, 0, LR_CUDA_NUM_TEXTURES * sizeof(sizes[0]));
    if (assembly->set->compute->params.storage != LR_DIRECT_TEXTURES) return 0;
    for (int k = 0; k < num_views; k++) {
        struct table tables[LR_CUDA_NUM_TEXTURES];
        list_tables(tables_of(assembly, k), tables);
        for (int n = 0; n < LR_CUDA_NUM_TEXTURES; n++) {
            const struct table *table = &tables[n];
            if (table->count == 0) continue;
            const int64_t rows = (table->count + table->width - 1) / table->width;
            const int size[3] = {table->width, rows < 2 ? 2 : (int)rows, num_views < 2 ? 2 : num_views};
            for (int axis = 0; axis < 3; axis++)
                sizes[n][axis] = size[axis] > sizes[n][axis] ? size[axis] : sizes[n][axis];
        }
    }
    for (int n = 0; n < LR_CUDA_NUM_TEXTURES; n++)
        bytes += (int64_t)sizes[n][0] * sizes[n][1] * sizes[n][2] * forms[n].entry_bytes;
    return bytes;
}

/* Queues the copy of a table to a slice of a texture: whole rows, then the rest of a row. */
static lr_status copy_table(const struct table *table, void *array, int slice, int n, const lr_log *log)
{
    const size_t width = (size_t)table->width, bytes = (size_t)forms[n].entry_bytes;
    const size_t rows = (size_t)table->count / width, rest = (size_t)table->count % width;
    const size_t extents[2][2] = {{width, rows}, {rest, rest > 0}};
    int error = 0;
    for (int part = 0; error == 0 && part < 2; part++) {
        const struct cudaMemcpy3DParms copy = {
            .srcPtr = {(char *)table->entries + (part == 0 ? 0 : rows * width * bytes), width * bytes, width, rows + 1},
            .dstArray = array,
            .dstPos = {0, part == 0 ? 0 : rows, (size_t)slice},
            .extent = {extents[part][0], extents[part][1], 1},
            .kind = cudaMemcpyDeviceToDevice,
        };
        if (extents[part][1] > 0) error = (int)cudaMemcpy3DAsync(&copy, NULL);
    }
    return lr_cuda_check(error, forms[n].label, log);
}

/* Makes the group's textures, lends them to CUDA, and queues copies of the views' tables. The context is current. */
static lr_status fill_textures(const struct assembly *assembly, struct lr_cuda_group *group)
{
    struct gl_context *ctx = assembly->set->compute->ctx;
    const lr_log *log = assembly->set->compute->params.log;
    struct lr_cuda_object objects[LR_CUDA_NUM_TEXTURES];
    int sizes[LR_CUDA_NUM_TEXTURES][3], count = 0;
    (void)size_textures(assembly, assembly->num_views, sizes);
    for (int n = 0; n < LR_CUDA_NUM_TEXTURES; n++) {
        if (sizes[n][0] == 0) continue;
        group->textures[n] = gl_texture_create(ctx, &(struct gl_texture_params){.label = forms[n].label,
                                                                                .target = GL_TEXTURE_3D,
                                                                                .format = forms[n].format,
                                                                                .width = sizes[n][0],
                                                                                .height = sizes[n][1],
                                                                                .depth = sizes[n][2]});
        LR_TRY(group->textures[n] != NULL ? LR_OK : LR_FAILED);
        objects[count++] = (struct lr_cuda_object){.texture = group->textures[n]};
    }
    LR_TRY(lr_cuda_take(objects, count, ctx));

    for (int n = 0; n < LR_CUDA_NUM_TEXTURES; n++) {
        const struct lr_cuda_object object = {.texture = group->textures[n]};
        if (object.texture == NULL) continue;
        void *array = lr_cuda_array(&object, log);
        const uint64_t texture = lr_cuda_texture(&object, log);
        LR_TRY(array != NULL && texture != 0 ? LR_OK : LR_FAILED);
        for (int k = 0; k < assembly->num_views; k++) {
            struct lr_cuda_tables *view = tables_of(assembly, k);
            struct table tables[LR_CUDA_NUM_TEXTURES];
            list_tables(view, tables);
            LR_TRY(copy_table(&tables[n], array, k, n, log));
            view->textures.textures[n] = texture;
            view->textures.slice = k;
        }
    }
    return LR_OK;
}

/* Frees a group without views. Waits for all launched work, which may still read the group's tables. The group's block
 * becomes the spare block if it is larger than the present spare block. */
static void group_free(struct lr_cuda_table_set *set, struct lr_cuda_group *group)
{
    struct gl_context *ctx = set->compute->ctx;
    struct lr_cuda_block *block = &group->block, *spare = &set->blocks.spare;
    if (block->memory != NULL) cudaDeviceSynchronize();
    if (block->bytes > spare->bytes) {
        const struct lr_cuda_block former = *spare;
        *spare = *block;
        *block = former;
    }
    lr_cuda_block_free(block);
    if (group->textures[LR_CUDA_MAP] != NULL && gl_context_make_current_to_free(ctx)) {
        for (int n = 0; n < LR_CUDA_NUM_TEXTURES; n++) gl_texture_destroy(group->textures[n]);
        gl_context_release(ctx);
    }
    free(group);
}

/* Counts the bytes of the views. Views that do not fit are left out. */
static lr_status count_bytes(struct assembly *assembly)
{
    struct lr_cuda_table_set *set = assembly->set;
    struct lr_cuda_memory counted = {0};
    int fit = 0;
    for (; fit < assembly->num_views; fit++) {
        LR_TRY(place_view(set, tables_of(assembly, fit)));
        struct lr_cuda_memory all = assembly->memory;
        lr_cuda_place(&all, (fit + 1) * (int64_t)sizeof(*assembly->fills), assembly->fills);
        int sizes[LR_CUDA_NUM_TEXTURES][3];
        const int64_t bytes = all.copied_bytes + all.filled_bytes + size_textures(assembly, fit + 1, sizes);
        if (set->bytes + bytes > set->room_bytes) {
            set->is_tight = true;
            if (fit > 0) break;
            for (int view = 0; view < set->compute->params.num_views; view++) lr_cuda_forget_tables(set, view);
        }
        counted = all;
    }
    for (int k = fit; k < assembly->num_views; k++) *tables_of(assembly, k) = (struct lr_cuda_tables){0};
    lr_cuda_view_plans_finish(assembly->plans + fit, assembly->num_views - fit);
    assembly->num_views = fit;
    assembly->memory =
        (struct lr_cuda_memory){.copied_room = counted.copied_bytes, .filled_room = counted.filled_bytes};
    return LR_OK;
}

/* Fills the group's block and waits, so that projections on any stream may read it at once. */
static lr_status fill_group(struct assembly *assembly, struct lr_cuda_group *group)
{
    const lr_log *log = assembly->set->compute->params.log;
    struct lr_cuda_table_set *set = assembly->set;
    struct lr_cuda_memory *memory = &assembly->memory;

    /* The spare block is used if at most half of it would stay empty. */
    struct lr_cuda_block *block = &group->block, *spare = &set->blocks.spare, *staging = &set->blocks.staging;
    const int64_t block_bytes = memory->copied_room + memory->filled_room, copied = memory->copied_room;
    if (spare->bytes >= block_bytes && spare->bytes / 2 <= block_bytes) {
        *block = *spare;
        *spare = (struct lr_cuda_block){0};
    } else {
        lr_cuda_block_free(spare);
        *block = (struct lr_cuda_block){0};
        LR_TRY(lr_cuda_check((int)cudaMalloc(&block->memory, (size_t)block_bytes), "look-up tables", log));
        block->bytes = block_bytes;
    }

    /* No copy from the staging memory is in progress. A quarter is added, so that the memory is still large enough
     * for a slightly larger group. */
    if (staging->bytes < copied) {
        const int64_t wanted = copied + copied / 4;
        if (staging->memory != NULL) cudaFreeHost(staging->memory);
        *staging = (struct lr_cuda_block){0};
        LR_TRY(lr_cuda_check((int)cudaMallocHost(&staging->memory, (size_t)wanted),
                             "look-up tables on their way to the device", log));
        staging->bytes = wanted;
    }
    memory->device = block->memory;
    memory->host = staging->memory;

    for (int k = 0; k < assembly->num_views; k++) LR_TRY(place_view(assembly->set, tables_of(assembly, k)));
    const lr_cuda_view_fill *fills =
        lr_cuda_place(&assembly->memory, assembly->num_views * (int64_t)sizeof(*assembly->fills), assembly->fills);
    lr_status status = fills != NULL ? LR_OK : LR_FAILED;
    if (status == LR_OK) {
        const lr_cuda_fill_sizes sizes = lr_cuda_fill_sizes_of(assembly->fills, assembly->num_views);
        const size_t bytes = (size_t)memory->copied_bytes;
        int error = (int)cudaMemcpyAsync(memory->device, memory->host, bytes, cudaMemcpyHostToDevice, NULL);
        status = lr_cuda_check(error, "look-up tables", log);
        if (status == LR_OK)
            status = lr_cuda_check(lr_cuda_launch_value_fills(fills, &sizes), "LORmap and mSRval", log);
        if (status == LR_OK) status = lr_cuda_check(lr_cuda_launch_band_fills(fills, &sizes), "weights", log);
    }
    for (int k = 0; status == LR_OK && k < assembly->num_views; k++) {
        const struct lr_cuda_tables *tables = tables_of(assembly, k);
        for (int forward = 0; tables->making->plan->has_columns && status == LR_OK && forward < 2; forward++) {
            status = lr_cuda_check(lr_cuda_launch_column_weights(forward != 0, &tables->columns[forward],
                                                                 &tables->gather, tables->making->indices),
                                   "weights", log);
        }
    }
    if (status == LR_OK && set->compute->params.storage == LR_DIRECT_TEXTURES) {
        status = gl_context_make_current(set->compute->ctx);
        if (status == LR_OK) status = gl_context_leave(set->compute->ctx, fill_textures(assembly, group));
    }
    const int waited = (int)cudaStreamSynchronize(NULL); /* waits after a failure too, because memory is released */
    LR_TRY(status);
    return lr_cuda_check(waited, "look-up tables", log);
}

lr_status lr_cuda_make_tables(struct lr_cuda_table_set *set, const int *views, int num_views)
{
    const lr_log *log = set->compute->params.log;
    struct assembly assembly = {.set = set};
    const int64_t most = num_views < MOST_VIEWS ? num_views : MOST_VIEWS;
    if (set->views[views[0]].is_there) return LR_OK;
    assembly.plans = lr_alloc(most, sizeof(*assembly.plans), "look-up tables", log);
    assembly.fills = lr_alloc(most, sizeof(*assembly.fills), "look-up tables", log);
    assembly.makings = lr_alloc(most, sizeof(*assembly.makings), "look-up tables", log);
    struct lr_cuda_group *group = lr_alloc(1, sizeof(*group), "look-up tables", log);
    lr_status status = assembly.plans && assembly.fills && assembly.makings && group ? LR_OK : LR_FAILED;

    if (status == LR_OK) {
        int fit = MOST_VIEWS; /* number of views that fit, estimated from the last view's bytes; at least one */
        if (set->view_bytes > 0) {
            const int64_t left = set->room_bytes - set->bytes;
            const int64_t room = left < set->view_bytes ? set->room_bytes : left; /* other tables will be dropped */
            const int64_t views_fit = room / set->view_bytes;
            fit = views_fit < 1 ? 1 : views_fit < MOST_VIEWS ? (int)views_fit : MOST_VIEWS;
        }
        for (int k = 0; k < num_views; k++) {
            struct lr_cuda_tables *tables = &set->views[views[k]];
            if (tables->is_there || tables->making != NULL) continue;
            if (assembly.num_views == fit) {
                set->is_tight = set->is_tight || fit < MOST_VIEWS;
                break;
            }
            tables->making = &assembly.makings[assembly.num_views];
            assembly.views[assembly.num_views++] = views[k];
        }

        const struct lr_cuda_plan_params params = {
            .backend = &set->compute->params,
            .layout = lr_cuda_layout_of(set->compute),
            .bands_work = lr_cuda_bands_work(),
            .shared_room = lr_cuda_shared_room(),
        };
        status = lr_cuda_view_plans_init(assembly.plans, &params, assembly.views, assembly.num_views);
    }
    for (int k = 0; status == LR_OK && k < assembly.num_views; k++) {
        assembly.makings[k] =
            (struct lr_cuda_making){.memory = &assembly.memory, .plan = &assembly.plans[k], .fill = &assembly.fills[k]};
    }
    if (status == LR_OK) status = count_bytes(&assembly);
    if (status == LR_OK) status = fill_group(&assembly, group);
    if (status == LR_OK) {
        int sizes[LR_CUDA_NUM_TEXTURES][3];
        const int64_t copies = size_textures(&assembly, assembly.num_views, sizes);
        group->bytes = group->block.bytes + copies;
        set->bytes += group->bytes;
        set->view_bytes = (assembly.memory.copied_room + assembly.memory.filled_room + copies) / assembly.num_views;
        group->num_views = assembly.num_views;
    }
    for (int k = 0; k < assembly.num_views; k++) {
        struct lr_cuda_tables *tables = tables_of(&assembly, k);
        if (status != LR_OK) *tables = (struct lr_cuda_tables){0};
        tables->making = NULL;
        tables->group = status == LR_OK ? group : NULL;
        tables->is_there = status == LR_OK;
    }

    if (status != LR_OK && group != NULL) group_free(set, group);
    if (assembly.plans != NULL) lr_cuda_view_plans_finish(assembly.plans, assembly.num_views);
    lr_free_all(assembly.makings, assembly.fills, assembly.plans);
    return status;
}

const struct lr_cuda_tables *lr_cuda_open_tables(struct lr_cuda_table_set *set, int view)
{
    const struct lr_cuda_tables *tables = &set->views[view];
    /* Makes tables of the view and of the next views. If memory is too small to keep the tables of all views, only the
     * tables of this view are made. The reason is that an algorithm may take the views in another order. The tables of
     * the next views could then be dropped before their first use. */
    const struct lr_direct_backend_params *params = &set->compute->params;
    const int most = params->num_views < MOST_VIEWS ? params->num_views : MOST_VIEWS;
    const int count = set->is_tight || params->threads < 1 ? 1 : params->threads < most ? params->threads : most;

    int views[MOST_VIEWS];
    if (tables->is_there) return tables;
    for (int k = 0; k < count; k++) views[k] = (view + k) % set->compute->params.num_views;
    return lr_cuda_make_tables(set, views, count) == LR_OK ? tables : NULL;
}

void lr_cuda_forget_tables(struct lr_cuda_table_set *set, int view)
{
    struct lr_cuda_tables *tables = &set->views[view];
    struct lr_cuda_group *group = tables->group;
    if (!tables->is_there) return;
    *tables = (struct lr_cuda_tables){0};
    if (--group->num_views == 0) {
        set->bytes -= group->bytes;
        group_free(set, group);
    }
}

/* --- all views --- */

lr_status lr_cuda_table_set_init(struct lr_cuda_table_set *set, struct lr_direct_compute *compute)
{
    const struct lr_direct_backend_params *params = &compute->params;
    size_t free_bytes = 0, all_bytes = 0;
    *set = (struct lr_cuda_table_set){.compute = compute, .room_bytes = params->max_memory_bytes};
    if (set->room_bytes == 0) {
        LR_TRY(lr_cuda_check((int)cudaMemGetInfo(&free_bytes, &all_bytes), "the device's memory", params->log));
        set->room_bytes = (int64_t)(free_bytes / 4);
    }
    set->views = lr_alloc(params->num_views, sizeof(*set->views), "look-up tables", params->log);
    return set->views != NULL ? LR_OK : LR_FAILED;
}

void lr_cuda_table_set_finish(struct lr_cuda_table_set *set)
{
    for (int view = 0; set->views != NULL && view < set->compute->params.num_views; view++)
        lr_cuda_forget_tables(set, view);
    if (set->blocks.staging.memory != NULL) cudaFreeHost(set->blocks.staging.memory);
    lr_cuda_block_free(&set->blocks.spare);
    free(set->views);
    *set = (struct lr_cuda_table_set){0};
}

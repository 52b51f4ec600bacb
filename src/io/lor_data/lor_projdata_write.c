/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * LOR data as STIR's projection data: span 1, every view, one sinogram after the other. */
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "io/images/formats.h"
#include "io/lor_data/lor_formats.h"
#include "io/lor_data/projdata.h"

#include <stdlib.h>
#include <string.h>

/* A file being written. */
struct writer {
    const lr_lors *lors;
    const lr_lor_data *data;
    const lr_log *log;
    struct lr_projdata projdata;
    struct lr_output output;
    unsigned char *plane; /* owned: one sinogram */
    int64_t bins_per_plane;
    int64_t written; /* LORs with counts that have found their bin */
};

/* --- dense data --- */

/* The sinogram of two rings: det1's and det2's. */
static lr_status write_plane(struct writer *writer, const int ring[2])
{
    const struct lr_projdata *projdata = &writer->projdata;
    unsigned char *at = writer->plane;
    for (int view = 0; view < projdata->views; view++) {
        for (int n = 0; n < projdata->num_t; n++, at += 4) {
            int places[2];
            int32_t crystals[2];
            const struct lr_sinogram_bin bin = {view, projdata->first_t + n};
            lr_sinogram_places(projdata->rings.around, &bin, places);
            lr_sinogram_crystals(&projdata->rings, places, ring, crystals);
            const int64_t lor = lr_lors_number(writer->lors, crystals[0], crystals[1]);
            const float value = lor >= 0 ? writer->data->values[lor] : 0.0f;
            writer->written += value != 0.0f;
            lr_float_bytes(value, at);
        }
    }
    return lr_output_write(&writer->output, writer->plane, 4 * (size_t)writer->bins_per_plane);
}

static lr_status write_dense(struct writer *writer)
{
    for (int k = 0; k < writer->projdata.num_segments; k++) {
        const struct lr_projdata_segment *segment = &writer->projdata.segments[k];
        for (int axial = 0; axial < segment->num_axial; axial++) {
            const int first = axial + (segment->number < 0 ? -segment->number : 0);
            LR_TRY(write_plane(writer, (int[2]){first, first + segment->number}));
        }
    }
    return LR_OK;
}

/* --- sparse data --- */

/* A value and its place in the file. */
struct item {
    int64_t bin;
    float value;
};

static int compare_items(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    return (x->bin > y->bin) - (x->bin < y->bin);
}

/* Sinograms before that of a segment's axial position. */
static int64_t plane_of(const struct lr_projdata *projdata, const struct lr_projdata_bin *bin)
{
    int64_t planes = 0;
    for (int k = 0; projdata->segments[k].number != bin->segment; k++) planes += projdata->segments[k].num_axial;
    return planes + bin->axial;
}

/* Finds the bins of all LORs with counts; returns how many have one. */
static int64_t list_items(struct writer *writer, const int32_t (*places)[2], struct item *items)
{
    const struct lr_projdata *projdata = &writer->projdata;
    int64_t count = 0;
    for (int64_t n = 0; n < writer->data->count; n++) {
        int32_t crystals[2];
        struct lr_projdata_bin bin;
        lr_lors_crystals(writer->lors, writer->data->index[n], crystals);
        if (writer->data->values[n] != 0.0f && lr_projdata_bin_of(projdata, places, crystals, &bin)) {
            items[count++] = (struct item){plane_of(projdata, &bin) * writer->bins_per_plane +
                                               (int64_t)bin.view * projdata->num_t + bin.t - projdata->first_t,
                                           writer->data->values[n]};
        }
    }
    return count;
}

static lr_status write_items(struct writer *writer, const struct item *items, int64_t count)
{
    const int64_t planes = lr_projdata_num_bins(&writer->projdata) / writer->bins_per_plane;
    int64_t next = 0;
    for (int64_t plane = 0; plane < planes; plane++) {
        const int64_t begin = plane * writer->bins_per_plane;
        memset(writer->plane, 0, 4 * (size_t)writer->bins_per_plane);
        for (; next < count && items[next].bin < begin + writer->bins_per_plane; next++)
            lr_float_bytes(items[next].value, writer->plane + 4 * (items[next].bin - begin));
        LR_TRY(lr_output_write(&writer->output, writer->plane, 4 * (size_t)writer->bins_per_plane));
    }
    writer->written = next;
    return LR_OK;
}

static lr_status write_sparse(struct writer *writer)
{
    int32_t(*places)[2] = lr_projdata_places(&writer->projdata, writer->lors->scanner, writer->log);
    struct item *items = lr_alloc(writer->data->count, sizeof(*items), "bins", writer->log);
    lr_status status = LR_FAILED;
    if (places != NULL && items != NULL) {
        const int64_t count = list_items(writer, (const int32_t(*)[2])places, items);
        qsort(items, (size_t)count, sizeof(*items), compare_items);
        status = write_items(writer, items, count);
    }
    free(places);
    free(items);
    return status;
}

/* --- both --- */

static void warn_of_rest(const struct writer *writer, const char *path)
{
    int64_t all = 0;
    for (int64_t n = 0; n < writer->data->count; n++) all += writer->data->values[n] != 0.0f;
    if (all > writer->written) {
        lr_warn(writer->log,
                "%s: %lld of %lld LORs with counts have no bin: they join crystals in the same "
                "place of different rings, or are out of coincidence",
                path, (long long)(all - writer->written), (long long)all);
    }
}

static lr_status write_files(struct writer *writer, const char *path, const char *data_path)
{
    struct lr_output header;
    char *text = lr_projdata_print(&writer->projdata, writer->lors->scanner, lr_path_name(data_path), writer->log);
    if (text == NULL) return LR_FAILED;
    lr_status status = lr_output_open(&writer->output, data_path, writer->log);
    if (status == LR_OK && lr_output_open(&header, path, writer->log) != LR_OK) {
        lr_output_abandon(&writer->output);
        status = LR_FAILED;
    }
    if (status == LR_OK) {
        status = writer->data->index == NULL ? write_dense(writer) : write_sparse(writer);
        (void)lr_output_write(&header, text, strlen(text));
        if (status != LR_OK) { /* memory, or an output that has logged it */
            lr_output_abandon(&writer->output);
            lr_output_abandon(&header);
        } else {
            status = lr_output_finish_all((struct lr_output *[]){&writer->output, &header}, 2);
        }
    }
    free(text);
    return status;
}

lr_status lr_lor_projdata_write(const char *path, const lr_lors *lors, const lr_lor_data *data, const lr_log *log)
{
    struct writer writer = {.lors = lors, .data = data, .log = log};
    LR_TRY(lr_projdata_create(&writer.projdata, lors, log));
    char *data_path = lr_path_with_ending(path, ".s", log);
    writer.bins_per_plane = (int64_t)writer.projdata.views * writer.projdata.num_t;
    writer.plane = lr_alloc(writer.bins_per_plane, 4, "a sinogram", log);
    lr_status status = LR_FAILED;
    if (data_path != NULL && writer.plane != NULL) status = write_files(&writer, path, data_path);
    if (status == LR_OK) warn_of_rest(&writer, path);
    free(data_path);
    free(writer.plane);
    lr_projdata_finish(&writer.projdata);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Reading and writing LOR data as STIR's projection data. */
#include "base/log.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/path.h"
#include "base/units.h"
#include "io/files/regular_file.h"
#include "io/images/formats.h"
#include "io/lor_data/lor_data.h"
#include "io/lor_data/projdata.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define _FILE_OFFSET_BITS 64 /* lets fseeko go beyond 2 GiB on every machine */

/* The file is read twice: first LORs are counted, then counts are filled in. */
enum { TIMES_READ = 2 };

/* A file being read, and its result. */
struct reader {
    const char *path;
    const lr_lors *lors;
    const lr_progress *progress;
    int times_read;
    const lr_log *log;
    struct lr_projdata projdata;
    struct lr_projdata_file file;
    struct lr_byte_order order;
    unsigned char *raw;     /* owned: bytes of one line of bins */
    double *line;           /* owned: values of one line of bins */
    int (*pairs)[2];        /* owned: ring pairs of a bin */
    int64_t *found;         /* owned: LORs of a bin in coincidence */
    int most_found;         /* largest number of LORs in a bin */
    int64_t num_lors;       /* number of LORs with counts, including repeats */
    int64_t bins, left_out; /* bins: number of bins with counts; left_out: of these, bins without a LOR */
    double left_out_sum;
    lr_lor_data *dense;         /* receives the counts; NULL = `list` receives them */
    struct lr_lor_weight *list; /* [num_lors], used if `dense` is NULL; if both are NULL, LORs are only counted */
    int64_t listed;             /* number of entries in `list` */
};

/* Reads a line of bins. The counts of a bin are divided evenly among its LORs in coincidence. */
static lr_status take_line(struct reader *reader, FILE *file, int view, int num_pairs)
{
    const struct lr_projdata *projdata = &reader->projdata;
    const size_t bytes = (size_t)projdata->num_t * (size_t)reader->file.type.bytes;
    if (fread(reader->raw, 1, bytes, file) != bytes)
        return lr_error(reader->log, LR_BAD_INPUT, "%s: cannot be read to its end", reader->file.data_path);
    lr_numbers_convert(&reader->file.type, reader->raw, projdata->num_t, reader->line);
    lr_byte_order_watch(&reader->order, &reader->file.type, reader->raw, reader->line, projdata->num_t);
    for (int n = 0; n < projdata->num_t; n++) {
        const double value = reader->line[n] * reader->file.scale;
        const int t = projdata->first_t + n;
        if (!isfinite((float)value) && lr_byte_order_is_wrong(&reader->order))
            return lr_error(reader->log, LR_BAD_INPUT, "%s: " LR_OTHER_BYTE_ORDER, reader->file.data_path);
        if (!isfinite((float)value)) {
            return lr_error(reader->log, LR_BAD_INPUT,
                            "%s: holds %g in view %d, tangential position %d: values must be finite",
                            reader->file.data_path, value, view, t);
        }
        if (value == 0.0) continue;

        int count = 0;
        for (int m = 0; m < projdata->mashing; m++) {
            const struct lr_sinogram_bin bin = {view * projdata->mashing + m, t};
            int places[2];
            lr_sinogram_places(projdata->rings.around, &bin, places);
            for (int k = 0; k < num_pairs && places[0] != places[1]; k++) {
                int32_t crystals[2];
                lr_sinogram_crystals(&projdata->rings, places, reader->pairs[k], crystals);
                const int64_t lor = lr_lors_number(reader->lors, crystals[0], crystals[1]);
                if (lor >= 0 && lr_lors_in_coincidence(reader->lors, lor)) reader->found[count++] = lor;
            }
        }
        for (int k = 0; k < count; k++) {
            const double share = value / count;
            if (reader->dense != NULL)
                reader->dense->values[reader->found[k]] += (float)share;
            else if (reader->list != NULL)
                reader->list[reader->listed++] = (struct lr_lor_weight){reader->found[k], (float)share};
        }
        if (count == 0) {
            reader->left_out++;
            reader->left_out_sum += value;
        }
        reader->bins++;
        reader->num_lors += count;
        reader->most_found = count > reader->most_found ? count : reader->most_found;
    }
    return LR_OK;
}

/* Reads the whole file once. */
static lr_status take_all(struct reader *reader)
{
    const struct lr_projdata *projdata = &reader->projdata;
    FILE *file = fopen(reader->file.data_path, "rb");
    if (file == NULL || fseeko(file, (off_t)reader->file.offset_bytes, SEEK_SET) != 0) {
        char text[128];
        if (file != NULL) fclose(file);
        return lr_error(reader->log, LR_BAD_INPUT, "cannot open the bins %s: %s", reader->file.data_path,
                        lr_error_text(errno, text));
    }
    reader->bins = reader->num_lors = reader->left_out = reader->listed = 0;
    reader->left_out_sum = 0.0;
    lr_status status = LR_OK;
    for (int k = 0; k < projdata->num_segments && status == LR_OK; k++) {
        const struct lr_projdata_segment *segment = &projdata->segments[k];
        const int outer = projdata->by_view ? projdata->views : segment->num_axial;
        const int inner = projdata->by_view ? segment->num_axial : projdata->views;
        for (int64_t n = 0; n < (int64_t)outer * inner && status == LR_OK; n++) {
            const int a = (int)(n / inner), b = (int)(n % inner);
            const int view = projdata->by_view ? a : b, axial = projdata->by_view ? b : a;
            const int pairs = lr_projdata_ring_pairs(projdata, segment, axial, reader->pairs);
            const double done = reader->times_read + (k + (double)a / outer) / projdata->num_segments;
            if (b == 0) status = lr_progress_report(reader->progress, LR_READING_LOR_DATA, done, TIMES_READ);
            if (status == LR_OK) status = take_line(reader, file, view, pairs);
        }
    }
    fclose(file);
    reader->times_read++;
    return status;
}

/* Reports bins without LORs in coincidence, compressed data, and LORs in coincidence that the file does not cover. */
static lr_status report(const struct reader *reader)
{
    const struct lr_projdata *projdata = &reader->projdata;
    const lr_scanner *scanner = reader->lors->scanner;
    if (reader->bins > 0 && reader->left_out == reader->bins) {
        return lr_error(reader->log, LR_BAD_INPUT,
                        "%s: none of its %lld bins with counts is of two crystals of %s in "
                        "coincidence: it belongs to another scanner",
                        reader->path, (long long)reader->bins, scanner->name);
    }
    if (reader->left_out > 0) {
        lr_warn(reader->log,
                "%s: %lld of %lld bins with counts, %g in all, are of no two crystals of %s in "
                "coincidence: they are left out",
                reader->path, (long long)reader->left_out, (long long)reader->bins, reader->left_out_sum,
                scanner->name);
    }
    if (reader->most_found > 1) {
        lr_warn(reader->log,
                "%s: is compressed, with up to %d pairs of crystals in a bin (axial compression, mashed views): "
                "counts are spread evenly over them, which blurs the image axially or towards the edge",
                reader->path, reader->most_found);
    }

    int reach[2], difference = 0;
    lr_projdata_reach(projdata, reader->lors, reach);
    for (int k = 0; k < projdata->num_segments; k++)
        difference = projdata->segments[k].most > difference ? projdata->segments[k].most : difference;
    const int last_t = projdata->first_t + projdata->num_t - 1;
    if (reach[0] > last_t) {
        lr_warn(reader->log,
                "%s: has tangential positions up to %d, and pairs of crystals in coincidence reach "
                "%d: those beyond are taken as measured without counts; a field_of_view_mm of %.1f "
                "in the scanner's description leaves them out",
                reader->path, last_t, reach[0],
                (2.0 * projdata->rings.radius_mm + scanner->modules[0].depth_mm) *
                    sin(LR_PI * (last_t + 0.5) / projdata->rings.around));
    }
    if (reach[1] > difference) {
        lr_warn(reader->log,
                "%s: has ring differences up to %d, and crystals in coincidence reach %d: those beyond are taken as "
                "measured without counts; max_ring_difference in the scanner's description leaves them out",
                reader->path, difference, reach[1]);
    }
    return LR_OK;
}

lr_lor_data *lr_lor_projdata_read(const char *path, const lr_lors *lors, const lr_progress *progress, const lr_log *log)
{
    struct reader reader = {.path = path, .lors = lors, .progress = progress, .log = log};
    const struct lr_projdata *projdata = &reader.projdata;
    const struct lr_projdata_file *file = &reader.file;
    lr_lor_data *data = NULL;
    if (lr_projdata_read(&reader.projdata, &reader.file, path, lors->scanner, log) != LR_OK) return NULL;
    const int64_t bins = lr_projdata_num_bins(projdata), length = lr_file_length(file->data_path);
    if (length < 0) {
        lr_error(log, LR_BAD_INPUT, "cannot open the bins %s that %s names: it is missing or no plain file",
                 file->data_path, path);
        goto end;
    }
    if (file->offset_bytes > length || (length - file->offset_bytes) / file->type.bytes < bins) {
        lr_error(log, LR_BAD_INPUT,
                 "%s is truncated: %lld bins of %d bytes after byte %lld do not fit into its %lld bytes: get it again",
                 file->data_path, (long long)bins, file->type.bytes, (long long)file->offset_bytes, (long long)length);
        goto end;
    }

    const int64_t pairs = projdata->rings.rings;
    reader.raw = lr_alloc(projdata->num_t, (size_t)file->type.bytes, "bins", log);
    reader.line = lr_alloc(projdata->num_t, sizeof(*reader.line), "bins", log);
    reader.pairs = lr_alloc(pairs, sizeof(*reader.pairs), "ring pairs", log);
    reader.found = lr_alloc(pairs * projdata->mashing, sizeof(*reader.found), "LORs", log);
    if (reader.raw == NULL || reader.line == NULL || reader.pairs == NULL || reader.found == NULL) goto end;
    struct lr_discreet_log discreet;
    lr_log_discreet(&discreet, file->data_path, path, log);
    reader.log = &discreet.log;
    if (take_all(&reader) != LR_OK || report(&reader) != LR_OK) goto end;
    if (lr_byte_order_is_wrong(&reader.order)) {
        (void)lr_error(reader.log, LR_BAD_INPUT, "%s: " LR_OTHER_BYTE_ORDER, file->data_path);
    } else if (reader.num_lors > lors->count / 6) {
        reader.dense = lr_lor_data_create(lors, reader.log);
        if (reader.dense != NULL && take_all(&reader) == LR_OK)
            data = reader.dense;
        else
            lr_lor_data_destroy(reader.dense);
    } else {
        reader.list = lr_alloc(reader.num_lors, sizeof(*reader.list), "LOR data", reader.log);
        if (reader.list != NULL && take_all(&reader) == LR_OK)
            data = lr_lor_weights_add_up(reader.list, reader.listed, reader.log);
    }

end:
    lr_free_all(reader.raw, reader.line, reader.pairs, reader.found, reader.list);
    lr_projdata_finish(&reader.projdata);
    free(reader.file.data_path);
    return data;
}

/* --- writing: span 1, every view, one sinogram after the other --- */

/* A file being written. */
struct writer {
    const lr_lors *lors;
    const lr_lor_data *data;
    const lr_log *log;
    struct lr_projdata projdata;
    struct lr_output output;
    unsigned char *plane; /* owned: bytes of one sinogram */
    int64_t bins_per_plane;
    int64_t written; /* number of LORs with counts that were written to a bin */
};

static lr_status write_dense(struct writer *writer)
{
    const struct lr_projdata *projdata = &writer->projdata;
    for (int k = 0; k < projdata->num_segments; k++) {
        const struct lr_projdata_segment *segment = &projdata->segments[k];
        for (int axial = 0; axial < segment->num_axial; axial++) {
            const int first = axial + (segment->number < 0 ? -segment->number : 0);
            const int ring[2] = {first, first + segment->number};
            for (int64_t n = 0; n < writer->bins_per_plane; n++) {
                const struct lr_sinogram_bin bin = {(int)(n / projdata->num_t),
                                                    projdata->first_t + (int)(n % projdata->num_t)};
                int places[2];
                int32_t crystals[2];
                lr_sinogram_places(projdata->rings.around, &bin, places);
                lr_sinogram_crystals(&projdata->rings, places, ring, crystals);
                const int64_t lor = lr_lors_number(writer->lors, crystals[0], crystals[1]);
                const float value = lor >= 0 ? writer->data->values[lor] : 0.0f;
                writer->written += value != 0.0f;
                lr_put_float(writer->plane + 4 * n, value);
            }
            LR_TRY(lr_output_write(&writer->output, writer->plane, 4 * (size_t)writer->bins_per_plane));
        }
    }
    return LR_OK;
}

/* A value and its position in the file. */
struct item {
    int64_t bin;
    float value;
};

static lr_status write_sparse(struct writer *writer)
{
    const struct lr_projdata *projdata = &writer->projdata;
    const lr_lor_data *data = writer->data;
    int32_t(*places)[2] = lr_projdata_places(projdata, writer->lors->scanner, writer->log);
    struct item *items = lr_alloc(data->count, sizeof(*items), "bins", writer->log);
    lr_status status = places != NULL && items != NULL ? LR_OK : LR_FAILED;

    /* Positions in the file of all LORs with counts, sorted. */
    int64_t count = 0, next = 0;
    for (int64_t n = 0; n < data->count && status == LR_OK; n++) {
        int32_t crystals[2];
        struct lr_projdata_bin bin;
        lr_lors_crystals(writer->lors, data->index[n], crystals);
        if (data->values[n] != 0.0f && lr_projdata_bin_of(projdata, (const int32_t(*)[2])places, crystals, &bin)) {
            int64_t plane = bin.axial;
            for (int k = 0; projdata->segments[k].number != bin.segment; k++) plane += projdata->segments[k].num_axial;
            items[count++] = (struct item){plane * writer->bins_per_plane + (int64_t)bin.view * projdata->num_t +
                                               bin.t - projdata->first_t,
                                           data->values[n]};
        }
    }
    if (status == LR_OK) qsort(items, (size_t)count, sizeof(*items), lr_compare_int64s);

    const int64_t end = lr_projdata_num_bins(projdata);
    for (int64_t begin = 0; begin < end && status == LR_OK; begin += writer->bins_per_plane) {
        memset(writer->plane, 0, 4 * (size_t)writer->bins_per_plane);
        for (; next < count && items[next].bin < begin + writer->bins_per_plane; next++)
            lr_put_float(writer->plane + 4 * (items[next].bin - begin), items[next].value);
        status = lr_output_write(&writer->output, writer->plane, 4 * (size_t)writer->bins_per_plane);
    }
    writer->written = next;
    lr_free_all(places, items);
    return status;
}

lr_status lr_lor_projdata_write(const char *path, const lr_lors *lors, const lr_lor_data *data, const lr_log *log)
{
    struct writer writer = {.lors = lors, .data = data, .log = log};
    struct lr_output header;
    char *text = NULL;
    lr_status status = LR_FAILED;
    LR_TRY(lr_projdata_create(&writer.projdata, lors, log));
    char *data_path = lr_path_with_ending(path, ".s", log);
    writer.bins_per_plane = (int64_t)writer.projdata.views * writer.projdata.num_t;
    writer.plane = lr_alloc(writer.bins_per_plane, 4, "a sinogram", log);
    if (data_path == NULL || writer.plane == NULL) goto end;
    text = lr_projdata_print(&writer.projdata, lors->scanner, lr_path_name(data_path), log);
    if (text == NULL) goto end;
    status = lr_output_open(&writer.output, data_path, log);
    if (status != LR_OK) goto end;
    if (lr_output_open(&header, path, log) != LR_OK) {
        lr_output_abandon(&writer.output);
        status = LR_FAILED;
        goto end;
    }

    status = data->index == NULL ? write_dense(&writer) : write_sparse(&writer);
    (void)lr_output_write(&header, text, strlen(text));
    if (status != LR_OK) { /* memory has run out, or an output has logged a failure */
        lr_output_abandon(&writer.output);
        lr_output_abandon(&header);
        goto end;
    }
    status = lr_output_finish_all((struct lr_output *[]){&writer.output, &header}, 2);
    int64_t all = 0;
    for (int64_t n = 0; n < data->count; n++) all += data->values[n] != 0.0f;
    if (status == LR_OK && all > writer.written) {
        lr_warn(log,
                "%s: %lld of %lld LORs with counts have no bin: they join crystals in the same "
                "place of different rings, or are out of coincidence",
                path, (long long)(all - writer.written), (long long)all);
    }

end:
    lr_free_all(text, data_path, writer.plane);
    lr_projdata_finish(&writer.projdata);
    return status;
}

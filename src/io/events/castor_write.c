/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The writer of CASToR data: list mode, and histograms of LOR data (layout: castor_events.c). The header is written
 * last, because it holds the number of events. */
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "io/events/event_stream.h"
#include "io/files/number_type.h"
#include "io/files/output.h"
#include "io/scanners/castor_order.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A header and its data while they are written. */
struct writer {
    struct lr_output data;
    const char *path;
    const lr_log *log;
    char *data_path; /* owned */
    int *place;      /* owned [num_crystals]: number of each crystal in the file */
    char scanner[64];
    bool has_tof;
    double tof_resolution_ps, tof_bin_ps, duration_s;
    double tof_range_ps; /* measurable range; 0 = not known */
    double largest_ps;   /* largest time of flight so far */
    struct lr_event_times times;
    int64_t count, delayeds;
};

static lr_status take(void *user, const lr_event *events, int64_t count)
{
    struct writer *writer = user;
    const int lead = writer->has_tof ? 8 : 4;
    for (int64_t k = 0; k < count; k++) {
        const lr_event *event = &events[k];
        const double tof_ps = event->tof_mm / LR_MM_PER_PS;
        unsigned char bytes[16];
        int64_t repeats;
        if (event->is_delayed) {
            writer->delayeds++;
            continue;
        }
        LR_TRY(lr_event_repeats(event, writer->path, &repeats, writer->log));
        lr_put_whole(bytes, event->time_ms, 4);
        lr_put_float(bytes + 4, (float)tof_ps);
        lr_put_whole(bytes + lead, (uint32_t)writer->place[event->crystals[0]], 4);
        lr_put_whole(bytes + lead + 4, (uint32_t)writer->place[event->crystals[1]], 4);
        writer->largest_ps = fmax(writer->largest_ps, fabs(tof_ps));
        lr_event_times_add(&writer->times, event->time_ms);
        writer->count += repeats;
        for (int64_t r = 0; r < repeats; r++) LR_TRY(lr_output_write(&writer->data, bytes, (size_t)lead + 8));
    }
    return LR_OK;
}

/* --- headers --- */

static void put_line(struct lr_output *output, const char *key, const char *value)
{
    (void)lr_output_write(output, key, strlen(key));
    (void)lr_output_write(output, ": ", 2);
    (void)lr_output_write(output, value, strlen(value));
    (void)lr_output_write(output, "\n", 1);
}

static void put_number(struct lr_output *output, const char *key, double value)
{
    char text[40];
    snprintf(text, sizeof(text), "%.15g", value);
    put_line(output, key, text);
}

static void put_header(const struct writer *writer, struct lr_output *output, bool is_list)
{
    const struct lr_c_locale locale = lr_c_locale_enter();
    const struct lr_event_times *times = &writer->times;
    const double own_s = 1e-3 * (double)(times->last_ms - times->first_ms + (times->any ? 1 : 0));
    put_line(output, "Data filename", lr_path_name(writer->data_path));
    put_number(output, "Number of events", (double)writer->count);
    put_line(output, "Data mode", is_list ? "list-mode" : "histogram");
    put_line(output, "Data type", "PET");
    put_line(output, "Scanner name", writer->scanner);
    put_number(output, "Start time (s)", 0);
    put_number(output, "Duration (s)", writer->duration_s > 0 ? writer->duration_s : fmax(own_s, 1e-3));
    put_number(output, "Calibration factor", 1);
    put_line(output, "Attenuation correction flag", "0");
    put_line(output, "Normalization correction flag", "0");
    put_line(output, "Scatter correction flag", "0");
    put_line(output, "Random correction flag", "0");
    put_line(output, "TOF information flag", writer->has_tof ? "1" : "0");
    if (writer->has_tof) {
        const double bin_ps = writer->tof_bin_ps > 0 ? writer->tof_bin_ps : 0;
        const double rounding_ps = 1e-3; /* rounding of edges in single precision */
        put_number(output, "TOF resolution (ps)", writer->tof_resolution_ps);
        put_number(output, "List TOF measurement range (ps)",
                   ceil(fmax(2 * writer->largest_ps + fmax(bin_ps, 1), writer->tof_range_ps) - rounding_ps));
        if (bin_ps > 0) put_number(output, "List TOF quantization bin size (ps)", bin_ps);
    }

    put_line(output, "Maximum number of lines per event", "1");
    lr_c_locale_leave(locale);
}

/* --- the files --- */

static void destroy(struct writer *writer)
{
    lr_free_all(writer->data_path, writer->place, writer);
}

static struct writer *create(const char *path, const lr_scanner *scanner, const lr_log *log)
{
    struct writer *writer = lr_alloc(1, sizeof(*writer), "a writer", log);
    if (writer == NULL) return NULL;
    int *order = NULL;
    writer->path = path;
    writer->log = log;
    snprintf(writer->scanner, sizeof(writer->scanner), "%s", scanner->name);
    for (char *at = writer->scanner; *at != '\0'; at++) *at = strchr(" \t#:,/", *at) != NULL ? '_' : *at;

    if (!lr_path_ends(path, ".Cdh")) {
        lr_error(log, LR_USAGE, "%s: the name of a CASToR header ends in .Cdh", path);
        goto failed;
    }
    writer->data_path = lr_path_with_ending(path, ".Cdf", log);
    if (writer->data_path == NULL) goto failed;
    order = lr_alloc(scanner->num_crystals, sizeof(*order), "crystal numbers", log);
    writer->place = lr_alloc(scanner->num_crystals, sizeof(*writer->place), "crystal numbers", log);
    if (order == NULL || writer->place == NULL || lr_castor_order(scanner, order, log) != LR_OK) goto failed;
    for (int k = 0; k < scanner->num_crystals; k++) writer->place[order[k]] = k;
    if (lr_output_open(&writer->data, writer->data_path, log) != LR_OK) goto failed;
    free(order);
    return writer;

failed:
    free(order);
    destroy(writer);
    return NULL;
}

static void *create_writer(const lr_events_writer_params *params)
{
    const lr_events_info *info = params->info;

    /* CASToR has one time resolution and one bin width. Either all events have time of flight, or none. */
    const int num_kinds = info != NULL && info->has_tof ? info->kinds.count : 0;
    for (int k = 0; k < num_kinds * num_kinds; k++) {
        const lr_tof_bins *first = info->kinds.tof, *bins = &info->kinds.tof[k];
        const double own_mm = lr_tof_bin_mm(bins->edges_mm, bins->num_bins);
        const double first_mm = lr_tof_bin_mm(first->edges_mm, first->num_bins);
        if ((bins->num_bins > 1) != (first->num_bins > 1) || bins->resolution_ps != first->resolution_ps ||
            fabs(own_mm - first_mm) > 1e-5 * first_mm) {
            lr_error(params->log, LR_USAGE,
                     "%s: CASToR has one time resolution and one width of bins for all events, and the source's "
                     "module types differ: 0 and 0 have %d time-of-flight bins of %.4g mm and %.4g ps FWHM, %d and "
                     "%d have %d of %.4g mm and %.4g ps: write PETSIRD, or leave the times of flight out",
                     params->path, first->num_bins, first_mm, first->resolution_ps, k / num_kinds, k % num_kinds,
                     bins->num_bins, own_mm, bins->resolution_ps);
            return NULL;
        }
    }

    struct writer *writer = create(params->path, params->lors->scanner, params->log);
    if (writer == NULL || info == NULL) return writer;
    writer->duration_s = info->duration_s;
    writer->has_tof = info->has_tof;
    writer->tof_resolution_ps =
        info->tof_resolution_ps > 0 ? info->tof_resolution_ps : params->lors->scanner->tof_resolution_ps;
    const double bin_mm = info->kinds.count > 0
                              ? lr_tof_bin_mm(info->kinds.tof[0].edges_mm, info->kinds.tof[0].num_bins)
                              : lr_events_info_tof_bin_mm(info);
    writer->tof_bin_ps = bin_mm / LR_MM_PER_PS;
    writer->tof_range_ps = (info->num_tof_bins > 0 ? info->num_tof_bins * bin_mm : info->tof_range_mm) / LR_MM_PER_PS;
    return writer;
}

/* Replaces the header and the data file, or neither. */
static lr_status finish(struct writer *writer, bool is_list)
{
    struct lr_output header;
    lr_status status = lr_output_open(&header, writer->path, writer->log);
    if (status == LR_OK) {
        put_header(writer, &header, is_list);
        status = lr_output_finish_all((struct lr_output *[]){&writer->data, &header}, 2);
    } else {
        lr_output_abandon(&writer->data);
    }
    destroy(writer);
    return status;
}

static lr_status finish_writer(void *self)
{
    struct writer *writer = self;
    if (writer->delayeds > 0) {
        lr_warn(writer->log, "%s: %lld delayed coincidences are left out: CASToR's list mode holds prompts only",
                writer->path, (long long)writer->delayeds);
    }
    return finish(writer, true);
}

static void abandon(void *self)
{
    struct writer *writer = self;
    lr_output_abandon(&writer->data);
    destroy(writer);
}

const struct lr_event_writing lr_castor_writing = {create_writer, take, finish_writer, abandon};

/* --- histograms --- */

lr_status lr_castor_histogram_write(const char *path, const lr_lors *lors, const lr_castor_histogram *histogram,
                                    const lr_log *log)
{
    const lr_lor_data *data = histogram->data;
    const int64_t last = data->index != NULL && data->count > 0 ? data->index[data->count - 1] : -1;
    const bool fits = data->index == NULL ? data->count == lors->count : last < lors->count;
    LR_TRY(fits ? LR_OK : lr_error(log, LR_USAGE, "LOR data of another scanner than %s", lors->scanner->name));

    struct writer *writer = create(path, lors->scanner, log);
    if (writer == NULL) return LR_FAILED;
    writer->duration_s = histogram->duration_s;
    for (int64_t k = 0; k < data->count; k++)
        if (data->values[k] != 0) {
            const int64_t number = data->index != NULL ? data->index[k] : k;
            unsigned char bytes[16];
            int32_t crystals[2];
            lr_lors_crystals(lors, number, crystals);
            lr_put_whole(bytes, 0, 4);
            lr_put_float(bytes + 4, data->values[k]);
            lr_put_whole(bytes + 8, (uint32_t)writer->place[crystals[0]], 4);
            lr_put_whole(bytes + 12, (uint32_t)writer->place[crystals[1]], 4);
            writer->count++;
            (void)lr_output_write(&writer->data, bytes, sizeof(bytes));
        }

    return finish(writer, false);
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Writes events to files of any format, and to tab-separated text for people and scripts. */
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/sized.h"
#include "base/vec.h"
#include "io/events/event_stream.h"
#include "io/files/c_locale.h"
#include "io/files/output.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- text --- */

struct tsv_writer {
    struct lr_output output;
    lr_events_writer_params params; /* its pointers are not owned */
};

static const char tsv_header[] = "time_ms\tdelayed\tweight\tcrystal_a\tcrystal_b\ttof_mm\tx_mm\ty_mm\tz_mm\n";

static lr_status take_tsv(void *user, const lr_event *events, int64_t count)
{
    struct tsv_writer *tsv = user;
    const lr_scanner *scanner = tsv->params.lors->scanner;
    const lr_events_info *info = tsv->params.info;
    const struct lr_c_locale locale = lr_c_locale_enter();
    lr_status status = LR_OK;
    for (int64_t k = 0; status == LR_OK && k < count; k++) {
        const lr_event *event = &events[k];
        const bool has_tof = info != NULL && lr_events_info_has_tof(info, event->crystals);
        double centre_mm[3] = {NAN, NAN, NAN};
        if (has_tof) {
            /* The place of the annihilation according to the time of flight. */
            double a_mm[3], along[3];
            lr_scanner_hit_centre(scanner, event->crystals[0], a_mm);
            lr_scanner_hit_centre(scanner, event->crystals[1], along);
            vec_sub(along, a_mm, along);
            const double length_mm = vec_length(along);
            const double share = length_mm > 0 ? 0.5 + event->tof_mm / length_mm : 0.5;
            vec_add_scaled(a_mm, share, along, centre_mm);
        }

        char line[256];
        const int length =
            snprintf(line, sizeof(line), "%u\t%d\t%.9g\t%d\t%d\t%.9g\t%.9g\t%.9g\t%.9g\n", (unsigned)event->time_ms,
                     event->is_delayed ? 1 : 0, event->weight, (int)event->crystals[0], (int)event->crystals[1],
                     has_tof ? event->tof_mm : NAN, centre_mm[0], centre_mm[1], centre_mm[2]);
        status = lr_output_write(&tsv->output, line, (size_t)length);
    }
    lr_c_locale_leave(locale);
    return status;
}

/* --- all formats --- */

struct lr_events_writer {
    struct lr_petsird_writer *petsird; /* one of the three is not NULL */
    struct lr_castor_writer *castor;
    struct tsv_writer *tsv;
};

lr_events_writer *lr_events_writer_create_sized(size_t given_bytes, const lr_events_writer_params *given)
{
    LR_TAKE(lr_events_writer_params, params, given, given_bytes);
    lr_events_format format = params->format;
    if (format == LR_EVENTS_UNKNOWN) {
        format = lr_path_ends(params->path, ".petsird") ? LR_EVENTS_PETSIRD
                 : lr_path_ends(params->path, ".tsv")   ? LR_EVENTS_TSV
                 : lr_path_ends(params->path, ".Cdh")   ? LR_EVENTS_CASTOR
                                                        : LR_EVENTS_UNKNOWN;
    }
    if (format != LR_EVENTS_PETSIRD && format != LR_EVENTS_CASTOR && format != LR_EVENTS_TSV) {
        lr_error(params->log, LR_USAGE,
                 "%s: events are written to PETSIRD (.petsird), CASToR (.Cdh) and text (.tsv) files", params->path);
        return NULL;
    }
    lr_events_writer *writer = lr_alloc(1, sizeof(*writer), "a writer", params->log);
    if (writer == NULL) return NULL;
    if (format == LR_EVENTS_PETSIRD) {
        writer->petsird = lr_petsird_writer_create(params);
    } else if (format == LR_EVENTS_CASTOR) {
        writer->castor = lr_castor_writer_create(params);
    } else {
        struct tsv_writer *tsv = lr_alloc(1, sizeof(*tsv), "a writer", params->log);
        if (tsv != NULL && lr_output_open(&tsv->output, params->path, params->log) == LR_OK) {
            tsv->params = *params;
            (void)lr_output_write(&tsv->output, tsv_header, strlen(tsv_header)); /* a failure is reported by finish */
            writer->tsv = tsv;
        } else {
            free(tsv);
        }
    }
    if (writer->petsird == NULL && writer->castor == NULL && writer->tsv == NULL) {
        free(writer);
        return NULL;
    }
    return writer;
}

lr_event_sink lr_events_writer_sink(lr_events_writer *writer)
{
    if (writer->petsird != NULL) return (lr_event_sink){.take = lr_petsird_writer_take, .user = writer->petsird};
    return writer->castor != NULL ? (lr_event_sink){.take = lr_castor_writer_take, .user = writer->castor}
                                  : (lr_event_sink){.take = take_tsv, .user = writer->tsv};
}

lr_status lr_events_writer_finish(lr_events_writer *writer)
{
    const lr_status status = writer->petsird != NULL  ? lr_petsird_writer_finish(writer->petsird)
                             : writer->castor != NULL ? lr_castor_writer_finish(writer->castor)
                                                      : lr_output_finish(&writer->tsv->output);
    free(writer->tsv);
    free(writer);
    return status;
}

void lr_events_writer_abandon(lr_events_writer *writer)
{
    if (writer == NULL) return;
    if (writer->petsird != NULL)
        lr_petsird_writer_abandon(writer->petsird);
    else if (writer->castor != NULL)
        lr_castor_writer_abandon(writer->castor);
    else
        lr_output_abandon(&writer->tsv->output);
    free(writer->tsv);
    free(writer);
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "io/events/events_writers.h"

#include <stdlib.h>
#include <string.h>

struct lr_events_writer {
    struct lr_petsird_writer *petsird; /* one of the three */
    struct lr_castor_writer *castor;
    struct lr_events_tsv *tsv;
};

static lr_events_format format_of(const char *path)
{
    if (lr_path_ends(path, ".petsird")) return LR_EVENTS_PETSIRD;
    if (lr_path_ends(path, ".tsv")) return LR_EVENTS_TSV;
    return lr_path_ends(path, ".Cdh") ? LR_EVENTS_CASTOR : LR_EVENTS_UNKNOWN;
}

lr_events_writer *lr_events_writer_create(const lr_events_writer_params *params)
{
    const lr_events_format format = params->format != LR_EVENTS_UNKNOWN ? params->format : format_of(params->path);
    if (format != LR_EVENTS_PETSIRD && format != LR_EVENTS_CASTOR && format != LR_EVENTS_TSV) {
        lr_error(params->log, LR_USAGE,
                 "%s: events are written to PETSIRD (.petsird), CASToR (.Cdh) and text (.tsv) files", params->path);
        return NULL;
    }
    lr_events_writer *writer = lr_alloc(1, sizeof(*writer), "a writer", params->log);
    if (writer == NULL) return NULL;
    if (format == LR_EVENTS_PETSIRD)
        writer->petsird = lr_petsird_writer_create(params);
    else if (format == LR_EVENTS_CASTOR)
        writer->castor = lr_castor_writer_create(params);
    else
        writer->tsv = lr_events_tsv_create(params);
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
                                  : (lr_event_sink){.take = lr_events_tsv_take, .user = writer->tsv};
}

lr_status lr_events_writer_finish(lr_events_writer *writer)
{
    const lr_status status = writer->petsird != NULL  ? lr_petsird_writer_finish(writer->petsird)
                             : writer->castor != NULL ? lr_castor_writer_finish(writer->castor)
                                                      : lr_events_tsv_finish(writer->tsv);
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
        lr_events_tsv_abandon(writer->tsv);
    free(writer);
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The writers behind lr_events_writer, one per format: create gives NULL, logged; take is a sink's;
 * finish and abandon free. */
#ifndef LR_IO_EVENTS_WRITERS_H
#define LR_IO_EVENTS_WRITERS_H

#include <lr/events.h>

struct lr_petsird_writer;
struct lr_petsird_writer *lr_petsird_writer_create(const lr_events_writer_params *params);
lr_status lr_petsird_writer_take(void *writer, const lr_event *events, int64_t count);
lr_status lr_petsird_writer_finish(struct lr_petsird_writer *writer);
void lr_petsird_writer_abandon(struct lr_petsird_writer *writer);

struct lr_castor_writer;
struct lr_castor_writer *lr_castor_writer_create(const lr_events_writer_params *params);
lr_status lr_castor_writer_take(void *writer, const lr_event *events, int64_t count);
lr_status lr_castor_writer_finish(struct lr_castor_writer *writer);
void lr_castor_writer_abandon(struct lr_castor_writer *writer);

struct lr_events_tsv;
struct lr_events_tsv *lr_events_tsv_create(const lr_events_writer_params *params);
lr_status lr_events_tsv_take(void *writer, const lr_event *events, int64_t count);
lr_status lr_events_tsv_finish(struct lr_events_tsv *tsv);
void lr_events_tsv_abandon(struct lr_events_tsv *tsv);

/* How often an event is written: its weight, which must be whole. errors: LR_USAGE. */
lr_status lr_event_repeats(const lr_event *event, const char *path, int64_t *repeats, const lr_log *log);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include <lr/events.h>

#include "base/grow.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/path.h"
#include "io/events/castor_header.h"
#include "io/events/event_damage.h"
#include "io/events/event_joining.h"
#include "io/events/petsird.h"
#include "io/files/missing_file.h"
#include "io/lor_data/lor_sums.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- recognising --- */

static bool begins_as_petsird(const struct lr_file_head *head)
{
    return lr_head_begins(head, "yardl", 5);
}

bool lr_petsird_recognises(const struct lr_file_head *head)
{
    return lr_path_ends(head->path, ".petsird") || begins_as_petsird(head);
}

/* By its first bytes, or else by its name. */
static const struct {
    lr_events_format format;
    bool (*recognises)(const struct lr_file_head *head); /* NULL: files of any bytes */
    const char *ending;
} formats[] = {
    {LR_EVENTS_SAFIR, lr_safir_recognises, ".safir"},
    {LR_EVENTS_PETSIRD, begins_as_petsird, ".petsird"},
    {LR_EVENTS_CASTOR, lr_castor_header_recognises, ".Cdh"},
    {LR_EVENTS_GE, lr_ge_recognises, ".BLF"},
    {LR_EVENTS_SIEMENS, NULL, ".l"},
};
enum { NUM_FORMATS = sizeof(formats) / sizeof(formats[0]) };

lr_events_format lr_events_head_format(const struct lr_file_head *head)
{
    for (int k = 0; k < NUM_FORMATS; k++)
        if (formats[k].recognises != NULL && formats[k].recognises(head)) return formats[k].format;
    for (int k = 0; k < NUM_FORMATS; k++)
        if (lr_path_ends(head->path, formats[k].ending)) return formats[k].format;
    return LR_EVENTS_UNKNOWN;
}

lr_events_format lr_events_recognise(const char *path)
{
    struct lr_file_head head;
    lr_file_head_read(path, &head);
    return lr_events_head_format(&head);
}

static lr_status refuse_unknown(const lr_events_source *source)
{
    struct lr_file_head head;
    lr_file_head_read(source->path, &head);
    if (access(source->path, R_OK) != 0) {
        char text[LR_OPEN_FAILURE];
        return lr_error(source->log, LR_BAD_INPUT, "%s: cannot be opened: %s", source->path,
                        lr_open_failure(source->path, errno, text));
    }
    if (lr_head_is_hdf5(&head)) {
        return lr_error(source->log, LR_BAD_INPUT,
                        "%s: is HDF5: PETSIRD is read in its binary encoding, to which PETSIRD's "
                        "own tools convert it; LOR data in HDF5 are no events",
                        source->path);
    }
    if (lr_path_ends(source->path, ".Cdf"))
        return lr_error(source->log, LR_BAD_INPUT, "%s: are CASToR data: give their header, the .Cdh", source->path);
    struct stat facts;
    if (stat(source->path, &facts) == 0 && !S_ISREG(facts.st_mode)) {
        return lr_error(source->log, LR_BAD_INPUT, "%s: is %s: give a file", source->path,
                        S_ISDIR(facts.st_mode) ? "a folder" : "no regular file");
    }
    if (lr_head_begins(&head, "\x1f\x8b", 2)) {
        return lr_error(source->log, LR_BAD_INPUT, "%s: is compressed: unpack it with gunzip and give what comes of it",
                        source->path);
    }
    return lr_error(source->log, LR_BAD_INPUT,
                    "%s: is neither SAFIR list mode, PETSIRD nor CASToR by its first bytes, nor "
                    "Siemens list mode by its name (.l): name its crystal map or its header to say which it is",
                    source->path);
}

/* --- reading --- */

static lr_status read_format(const lr_events_source *source, struct lr_event_stream *stream)
{
    switch (source->format) {
    case LR_EVENTS_SAFIR: return lr_safir_events(source, stream);
    case LR_EVENTS_SIEMENS: return lr_siemens_events(source, stream);
    case LR_EVENTS_PETSIRD: return lr_petsird_events(source, stream);
    case LR_EVENTS_CASTOR: return lr_castor_events(source, stream);
    case LR_EVENTS_GE: return lr_ge_events(source, stream);
    default: return refuse_unknown(source);
    }
}

static lr_status read_until_damage(const lr_events_source *source, struct lr_event_stream *stream)
{
    struct lr_event_damage damage;
    lr_events_source patient = *source;
    lr_event_damage_init(&damage, source->log);
    patient.log = &damage.log;
    return lr_event_damage_settle(&damage, stream, read_format(&patient, stream));
}

lr_status lr_events_read(const lr_events_source *source, const lr_event_sink *sink, lr_events_info *info)
{
    lr_events_info own = {0};
    lr_events_info *kept = info != NULL ? info : &own;
    lr_events_source exact = *source;
    *kept = (lr_events_info){0};
    if (exact.format == LR_EVENTS_UNKNOWN) exact.format = lr_events_recognise(exact.path);
    struct lr_event_stream *stream = lr_alloc(1, sizeof(*stream), "events", source->log);
    if (stream == NULL) return LR_FAILED;
    stream->source = &exact;
    stream->sink = sink;
    stream->info = kept;
    kept->format = exact.format;
    const lr_status status = exact.until_damage ? read_until_damage(&exact, stream) : read_format(&exact, stream);
    free(stream);
    lr_events_info_finish(&own);
    return status;
}

static void finish_kinds(lr_event_kinds *kinds)
{
    for (int k = 0; kinds->tof != NULL && k < kinds->count * kinds->count; k++) free(kinds->tof[k].edges_mm);
    free(kinds->kind_of);
    free(kinds->tof);
    free(kinds->energy_kev);
}

bool lr_events_info_has_tof(const lr_events_info *info, const int32_t crystals[2])
{
    const lr_event_kinds *kinds = &info->kinds;
    int kind[2];
    if (kinds->count == 0) return info->has_tof;
    for (int k = 0; k < 2; k++) {
        const bool known = crystals[k] >= 0 && crystals[k] < kinds->num_crystals;
        kind[k] = known ? kinds->kind_of[crystals[k]] : LR_EVENTS_NO_KIND;
        if (kind[k] >= kinds->count) return false;
    }
    return kinds->tof[kind[0] * kinds->count + kind[1]].num_bins > 1;
}

void lr_events_info_finish(lr_events_info *info)
{
    finish_kinds(&info->kinds);
    free(info->tof_edges_mm);
    *info = (lr_events_info){0};
}

/* --- lists --- */

struct growing_list {
    lr_event_list *list;
    int64_t room;
    int threads;
    const lr_log *log;
    struct lr_joining joining;
    atomic_llong looked_at, joined; /* events, and those of them that are in coincidence */
};

enum { COPIED_AT_ONCE = 1 << 15 };

struct copying {
    lr_event *to;
    const lr_event *from;
};

static void copy_share(void *user, int64_t begin, int64_t end, int worker)
{
    const struct copying *copying = user;
    (void)worker;
    memcpy(copying->to + begin, copying->from + begin, (size_t)(end - begin) * sizeof(*copying->to));
}

/* Behind the events that are there. */
static lr_event *make_room(void *user, int64_t count)
{
    struct growing_list *growing = user;
    lr_event_list *list = growing->list;
    const struct lr_items items = {sizeof(*list->events), "events", growing->log};
    return lr_grow(&list->events, &growing->room, list->count + count, &items) == LR_OK ? list->events + list->count
                                                                                        : NULL;
}

/* By several threads, since memory that is new takes longer than copying. */
static lr_status append(void *user, const lr_event *events, int64_t count)
{
    struct growing_list *growing = user;
    lr_event_list *list = growing->list;
    const bool are_there = list->events != NULL && events == list->events + list->count;
    lr_event *to = are_there ? list->events + list->count : make_room(user, count);
    LR_TRY(to != NULL ? LR_OK : LR_FAILED);
    if (!are_there) lr_parallel_for(growing->threads, count, COPIED_AT_ONCE, copy_share, &(struct copying){to, events});
    list->count += count;
    return LR_OK;
}

static void look(void *user, const lr_event *events, int64_t count)
{
    struct growing_list *growing = user;
    atomic_fetch_add(&growing->looked_at, count);
    atomic_fetch_add(&growing->joined, lr_joining_count(&growing->joining, events, count));
}

static lr_status fill_list(const lr_events_source *source, struct growing_list *growing)
{
    const lr_event_sink sink = {
        .take = append, .user = growing, .room = make_room, .look = growing->joining.lors != NULL ? look : NULL};
    lr_event_list *list = growing->list;
    atomic_init(&growing->looked_at, 0);
    atomic_init(&growing->joined, 0);
    LR_TRY(lr_events_read(source, &sink, &list->info));
    const int64_t looked_at = atomic_load(&growing->looked_at);
    list->are_joined = !source->until_damage && /* of a damaged file other events may be taken */
                       looked_at == list->count && atomic_load(&growing->joined) == looked_at;
    return LR_OK;
}

/* lors NULL: nobody looks. */
static lr_event_list *read_list(const lr_events_source *source, const lr_lors *lors)
{
    struct growing_list growing = {.threads = source->threads > 0 ? source->threads : lr_num_processors(),
                                   .log = source->log};
    growing.list = lr_alloc(1, sizeof(*growing.list), "events", source->log);
    if (growing.list == NULL) return NULL;
    if (lors != NULL) lr_joining_open(&growing.joining, lors);
    if (fill_list(source, &growing) != LR_OK) {
        lr_event_list_destroy(growing.list);
        growing.list = NULL;
    }
    lr_joining_finish(&growing.joining);
    return growing.list;
}

lr_event_list *lr_event_list_read(const lr_events_source *source)
{
    return read_list(source, NULL);
}

lr_event_list *lr_event_list_read_joined(const lr_events_source *source, const lr_lors *lors)
{
    return read_list(source, lors);
}

void lr_event_list_destroy(lr_event_list *list)
{
    if (list != NULL) {
        lr_events_info_finish(&list->info);
        free(list->events);
        free(list);
    }
}

void lr_event_list_drop(lr_event_list *list)
{
    lr_free_in_pieces(list->events, list->count * (int64_t)sizeof(*list->events));
    list->events = NULL;
    list->count = 0;
    list->are_joined = false;
}

/* --- sums per LOR --- */

struct binning {
    const lr_lors *lors;
    const lr_log *log;
    int threads;
    int64_t *numbers; /* owned [room] of the events at hand */
    int64_t room;
    struct lr_lor_sums prompts, delayeds;
    int64_t not_in_coincidence;
};

static lr_status bin(void *user, const lr_event *events, int64_t count)
{
    struct binning *binning = user;
    LR_TRY(lr_grow(&binning->numbers, &binning->room, count,
                   &(struct lr_items){sizeof(*binning->numbers), "events", binning->log}));
    lr_events_lors(binning->lors, &(lr_event_span){events, count, binning->threads}, binning->numbers);
    for (int64_t k = 0; k < count; k++) {
        const lr_event *event = &events[k];
        const int64_t lor = binning->numbers[k];
        if (lor < 0) {
            binning->not_in_coincidence++;
            continue;
        }
        LR_TRY(lr_lor_sums_add(event->is_delayed ? &binning->delayeds : &binning->prompts, lor, event->weight,
                               binning->log));
    }
    return LR_OK;
}

static lr_status finish_binning(struct binning *binning, lr_prompts_delayeds *data)
{
    data->prompts = lr_lor_sums_finish(&binning->prompts, binning->log);
    data->delayeds = lr_lor_sums_finish(&binning->delayeds, binning->log);
    if (data->prompts == NULL || data->delayeds == NULL) {
        lr_lor_data_destroy(data->prompts);
        lr_lor_data_destroy(data->delayeds);
        *data = (lr_prompts_delayeds){0};
        return LR_FAILED;
    }
    return LR_OK;
}

lr_status lr_events_bin(const lr_events_source *source, const lr_lors *lors, lr_prompts_delayeds *data,
                        lr_events_info *info)
{
    struct binning binning = {.lors = lors, .log = source->log, .threads = source->threads};
    const lr_event_sink sink = {.take = bin, .user = &binning};
    lr_events_source exact = *source;
    lr_events_info own = {0};
    lr_events_info *kept = info != NULL ? info : &own;
    exact.scanner = lors->scanner;
    *data = (lr_prompts_delayeds){0};
    lr_status status = lr_events_read(&exact, &sink, kept);
    if (status == LR_OK) {
        kept->counts.not_in_coincidence = binning.not_in_coincidence;
        status = finish_binning(&binning, data);
        data->counts = status == LR_OK ? kept->counts : data->counts;
    }
    lr_lor_sums_destroy(&binning.prompts);
    lr_lor_sums_destroy(&binning.delayeds);
    free(binning.numbers);
    lr_events_info_finish(&own);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/path.h"
#include "io/events/event_stream.h"
#include "io/files/regular_file.h"
#include "io/lor_data/lor_data.h"
#include "model/lors/place.h"
#include "model/scanner/coincidence.h"

#include <errno.h>
#include <lr/events.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- formats --- */

#define ROW(name, reader, words) [LR_EVENTS_##name] = &lr_##reader##_format,
static const struct lr_event_format *const formats[LR_NUM_EVENT_FORMATS] = {LR_EACH_EVENT_FORMAT(ROW)};

static const struct lr_event_format *find(lr_events_format format)
{
    return (size_t)format < LR_NUM_EVENT_FORMATS ? formats[format] : NULL;
}

const char *lr_events_format_name(lr_events_format format)
{
    return find(format) != NULL ? find(format)->name : "unknown";
}

lr_events_format lr_events_head_format(const struct lr_file_head *head)
{
    for (int k = 1; k < LR_NUM_EVENT_FORMATS; k++)
        if (formats[k]->recognises != NULL && formats[k]->recognises(head)) return (lr_events_format)k;
    for (int k = 1; k < LR_NUM_EVENT_FORMATS; k++)
        if (formats[k]->read != NULL && lr_path_ends(head->path, formats[k]->ending)) return (lr_events_format)k;
    return LR_EVENTS_UNKNOWN;
}

lr_events_format lr_events_recognise(const char *path)
{
    struct lr_file_head head;
    lr_file_head_read(path, &head);
    return lr_events_head_format(&head);
}

/* --- reading --- */

/* A log that holds back LR_BAD_INPUT errors, for files that are read up to their first damage. The log contains a
 * pointer to the struct, so the struct must not move in memory. */
struct damage {
    lr_log log;
    const lr_log *to;
    bool is_found;
    char message[1024]; /* the last error that was held back */
};

static void hold_back(void *user, lr_log_level level, lr_status status, const char *message)
{
    struct damage *damage = user;
    if (level == LR_LOG_ERROR && status == LR_BAD_INPUT) {
        damage->is_found = true;
        snprintf(damage->message, sizeof(damage->message), "%s", message);
    } else if (damage->to != NULL) {
        damage->to->write(damage->to->user, level, status, message);
    }
}

static lr_status read_format(const lr_events_source *source, struct lr_event_stream *stream)
{
    const struct lr_event_format *format = find(source->format);
    if (format != NULL && format->read != NULL) return format->read(source, stream);

    /* The format is not known. The error names the likely mistake. */
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
        return lr_error(source->log, LR_BAD_INPUT, "%s: %s", source->path,
                        lr_image_recognises(&head) ? "is no list mode"
                                                   : "is compressed: unpack it with gunzip and give what comes of it");
    }
    return lr_error(source->log, LR_BAD_INPUT,
                    "%s: is no list mode by its first bytes or its name (" LR_EVENTS_READ
                    "): name its crystal map or its header to say which it is",
                    source->path);
}

lr_status lr_events_read_sized(size_t given_bytes, const lr_events_source *given, const lr_event_sink *sink,
                               lr_events_info *info)
{
    LR_TAKE(lr_events_source, source, given, given_bytes);
    lr_events_info own = {0};
    lr_events_info *found = info != NULL ? info : &own;
    struct damage damage = {.log = {hold_back, &damage}, .to = source->log};
    lr_events_source exact = *source;
    *found = (lr_events_info){0};
    if (exact.format == LR_EVENTS_UNKNOWN) exact.format = lr_events_recognise(exact.path);
    if (exact.until_damage) exact.log = &damage.log;
    struct lr_event_stream *stream = lr_alloc(1, sizeof(*stream), "events", source->log);
    if (stream == NULL) return LR_FAILED;
    stream->source = &exact;
    stream->sink = sink;
    stream->info = found;
    found->format = exact.format;
    lr_status status = read_format(&exact, stream);

    /* An error that was held back becomes a warning if events came before the damage. */
    if (damage.is_found && (status != LR_BAD_INPUT || stream->is_refused || stream->num_added == 0)) {
        status = lr_error(damage.to, status, "%s", damage.message);
    } else if (damage.is_found) {
        status = lr_event_stream_flush(stream);
        char unknown[96] = "";
        if (found->counts.unknown_crystals > 0) {
            snprintf(unknown, sizeof(unknown), ", and %lld of crystals that the scanner lacks left out",
                     (long long)found->counts.unknown_crystals);
        }
        if (status == LR_OK) {
            lr_warn(damage.to, "%s: the %lld events before that are taken%s", damage.message,
                    (long long)stream->num_added, unknown);
        }
    }
    free(stream);
    lr_events_info_finish(&own);
    return status;
}

/* --- coincidence --- */

/* Tables of the modules in coincidence. The tables do not change while threads read them. */
struct joining {
    const lr_lors *lors;
    int32_t *module_of; /* owned [num_crystals] */
    int32_t *pairs;     /* owned [num_modules][num_modules]; NULL = no tables, so that each LOR is looked up */
};

/* Entries of the table of module pairs. NONE_JOINED: no LORs. ALL_JOINED: a LOR for every two crystals. FIRST_PAIR + n:
 * the LORs that the mask of pair n allows. */
enum { NONE_JOINED = 0, ALL_JOINED, FIRST_PAIR, MOST_MODULES = 1 << 12 };

/* Makes the tables, which the caller frees. Makes no tables if memory is short or if the scanner has more than
 * MOST_MODULES modules. */
static void open_joining(struct joining *joining, const lr_lors *lors)
{
    const lr_scanner *scanner = lors->scanner;
    *joining = (struct joining){.lors = lors};
    const int64_t modules = scanner != NULL ? scanner->num_modules : 0;
    if (modules == 0 || modules > MOST_MODULES || lors->num_pairs > INT32_MAX - FIRST_PAIR) return;
    joining->module_of = malloc((size_t)scanner->num_crystals * sizeof(*joining->module_of));
    joining->pairs =
        joining->module_of != NULL ? calloc((size_t)modules * (size_t)modules, sizeof(*joining->pairs)) : NULL;
    if (joining->pairs == NULL) return;
    for (int m = 0; m < scanner->num_modules; m++)
        for (int c = scanner->first_crystal[m]; c < scanner->first_crystal[m + 1]; c++) joining->module_of[c] = m;
    for (int64_t pair = 0; pair < lors->num_pairs; pair++) {
        const int64_t i = lors->pairs[pair][0], j = lors->pairs[pair][1];
        const bool all = lors->masks->pairs[pair].kind == LR_MASK_ALL;
        joining->pairs[i * modules + j] = joining->pairs[j * modules + i] =
            all ? ALL_JOINED : (int32_t)pair + FIRST_PAIR;
    }
}

static int64_t count_joined(const struct joining *joining, const lr_event *events, int64_t count)
{
    const lr_lors *lors = joining->lors;
    const lr_scanner *scanner = lors->scanner;
    int64_t joined = 0;
    for (int64_t k = 0; k < count; k++) {
        const int32_t a = events[k].crystals[0], b = events[k].crystals[1];
        if (joining->pairs == NULL) {
            joined += lr_place_joined(lors, events[k].crystals) >= 0;
            continue;
        }
        if (a < 0 || b < 0 || a >= scanner->num_crystals || b >= scanner->num_crystals) continue;
        const int64_t row = (int64_t)joining->module_of[a] * scanner->num_modules;
        const int found = joining->pairs[row + joining->module_of[b]];
        if (found < FIRST_PAIR) {
            joined += found == ALL_JOINED;
            continue;
        }
        const int64_t pair = found - FIRST_PAIR;
        const int i = lors->pairs[pair][0], j = lors->pairs[pair][1];
        const int p = (a < b ? a : b) - scanner->first_crystal[i], q = (a < b ? b : a) - scanner->first_crystal[j];
        const int nu_i = scanner->modules[i].crystals[0], nu_j = scanner->modules[j].crystals[0];
        joined += lr_coincidence_allows(lors, pair, p % nu_i, p / nu_i, q % nu_j, q / nu_j);
    }
    return joined;
}

/* Number of events that a thread takes at once. */
enum { AT_ONCE = 1 << 13 };

/* Events, and one of three results: the weight of each event, the LOR of each event, or the number of events that have
 * a LOR. */
struct work {
    const lr_event *events;
    float *weights;         /* if not NULL, receives the weight of each event */
    int64_t *numbers;       /* if not NULL, receives the LOR of each event */
    struct joining joining; /* has tables only if the result is `joined` */
    atomic_llong joined;    /* number of events that have a LOR */
};

static void work_on_share(void *user, int64_t begin, int64_t end)
{
    struct work *work = user;
    int64_t joined = 0;
    if (work->weights != NULL) {
        for (int64_t k = begin; k < end; k++) work->weights[k] = work->events[k].weight;
    } else if (work->numbers != NULL) {
        for (int64_t k = begin; k < end; k++) {
            work->numbers[k] = lr_place_joined(work->joining.lors, work->events[k].crystals);
            joined += work->numbers[k] >= 0;
        }
    } else {
        joined = count_joined(&work->joining, work->events + begin, end - begin);
    }
    atomic_fetch_add(&work->joined, joined);
}

static int64_t run_span(const lr_event_span *span, struct work *work)
{
    const bool is_long = span->count > AT_ONCE;
    const int threads = !is_long ? 1 : span->threads > 0 ? span->threads : lr_num_processors();
    work->events = span->events;
    atomic_init(&work->joined, 0);
    lr_parallel_for(threads, span->count, AT_ONCE, work_on_share, work);
    return atomic_load(&work->joined);
}

int64_t lr_events_count_joined(const lr_lors *lors, const lr_event_span *span)
{
    struct work work = {.weights = NULL};
    open_joining(&work.joining, lors);
    const int64_t joined = run_span(span, &work);
    lr_free_all(work.joining.module_of, work.joining.pairs);
    return joined;
}

int64_t lr_events_lors(const lr_lors *lors, const lr_event_span *span, int64_t *numbers)
{
    return run_span(span, &(struct work){.numbers = numbers, .joining = {.lors = lors}});
}

void lr_events_weights(const lr_event_span *span, float *weights)
{
    (void)run_span(span, &(struct work){.weights = weights});
}

/* --- lists --- */

struct growing_list {
    lr_event_list *list;
    int64_t room;
    int threads;
    const lr_log *log;
    struct joining joining;
    atomic_llong looked_at, joined; /* looked_at: number of all events; joined: events in coincidence */
};

enum { COPIED_AT_ONCE = 1 << 15 };

struct copying {
    lr_event *to;
    const lr_event *from;
};

static void copy_share(void *user, int64_t begin, int64_t end)
{
    const struct copying *copying = user;
    memcpy(copying->to + begin, copying->from + begin, (size_t)(end - begin) * sizeof(*copying->to));
}

/* Makes room for `count` events after the events in the list. */
static lr_event *make_room(void *user, int64_t count)
{
    struct growing_list *growing = user;
    lr_event_list *list = growing->list;
    const struct lr_items items = {sizeof(*list->events), "events", growing->log};
    return lr_grow(&list->events, &growing->room, list->count + count, &items) == LR_OK ? list->events + list->count
                                                                                        : NULL;
}

/* Appends events to the list. Events that are already in the list's room are not copied. Several threads copy, because
 * the first access to new memory takes longer than copying. */
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
    atomic_fetch_add(&growing->joined, count_joined(&growing->joining, events, count));
}

/* lors: NULL = coincidence is not checked. */
lr_event_list *lr_event_list_read_joined_sized(size_t given_bytes, const lr_events_source *given, const lr_lors *lors)
{
    LR_TAKE(lr_events_source, source, given, given_bytes);
    struct growing_list growing = {.threads = source->threads > 0 ? source->threads : lr_num_processors(),
                                   .log = source->log};
    const lr_event_sink sink = {
        .take = append, .user = &growing, .room = make_room, .look = lors != NULL ? look : NULL};
    lr_event_list *list = lr_alloc(1, sizeof(*list), "events", source->log);
    if (list == NULL) return NULL;
    growing.list = list;
    if (lors != NULL) open_joining(&growing.joining, lors);
    atomic_init(&growing.looked_at, 0);
    atomic_init(&growing.joined, 0);
    if (lr_events_read(source, &sink, &list->info) == LR_OK) {
        const int64_t looked_at = atomic_load(&growing.looked_at);
        list->are_joined = !source->until_damage && /* a damaged file is read only in part */
                           looked_at == list->count && atomic_load(&growing.joined) == looked_at;
    } else {
        lr_event_list_destroy(list);
        list = NULL;
    }
    lr_free_all(growing.joining.module_of, growing.joining.pairs);
    return list;
}

lr_event_list *lr_event_list_read_sized(size_t given_bytes, const lr_events_source *given)
{
    LR_TAKE(lr_events_source, source, given, given_bytes);
    return lr_event_list_read_joined(source, NULL);
}

void lr_event_list_destroy(lr_event_list *list)
{
    if (list != NULL) {
        lr_events_info_finish(&list->info);
        lr_free_all(list->events, list);
    }
}

void lr_event_list_drop(lr_event_list *list)
{
    lr_free_in_pieces(list->events, list->count * (int64_t)sizeof(*list->events));
    list->events = NULL;
    list->count = 0;
    list->are_joined = false;
}

/* --- columns --- */

lr_status lr_events_from_columns(const lr_event_columns *columns, const lr_event_sink *sink, const lr_log *log)
{
    enum { BLOCK = 1 << 16 };
    if (columns->count < 0 || columns->crystals == NULL) {
        return lr_error(log, LR_USAGE, "columns of events need the crystals of each event: there are %s, of %lld",
                        columns->crystals != NULL ? "some" : "none", (long long)columns->count);
    }
    const int64_t room = columns->count < BLOCK ? columns->count : BLOCK;
    lr_event *block = lr_alloc(room > 0 ? room : 1, sizeof(*block), "a block of events", log);
    lr_status status = block != NULL ? LR_OK : LR_FAILED;
    for (int64_t begin = 0; status == LR_OK && begin < columns->count; begin += BLOCK) {
        const int64_t count = columns->count - begin < BLOCK ? columns->count - begin : BLOCK;
        for (int64_t k = 0; status == LR_OK && k < count; k++) {
            const int64_t n = begin + k;
            const double time_ms = columns->times_s != NULL ? floor(1e3 * columns->times_s[n]) : 0.0;
            if (!(time_ms >= 0.0 && time_ms <= (double)UINT32_MAX)) {
                status = lr_error(log, LR_BAD_INPUT,
                                  "event %lld has a time of %g s: times are from 0 to 4294967 s after the zero of time",
                                  (long long)n, columns->times_s[n]);
            } else {
                block[k] = (lr_event){.crystals = {columns->crystals[n][0], columns->crystals[n][1]},
                                      .tof_mm = columns->tof_mm != NULL ? columns->tof_mm[n] : 0.0f,
                                      .weight = columns->weights != NULL ? columns->weights[n] : 1.0f,
                                      .time_ms = (uint32_t)time_ms,
                                      .is_delayed = columns->is_delayed != NULL && columns->is_delayed[n]};
            }
        }
        status = status == LR_OK ? sink->take(sink->user, block, count) : status;
    }
    free(block);
    return status;
}

/* --- sums per LOR --- */

struct binning {
    const lr_lors *lors;
    const lr_log *log;
    int threads;
    int64_t *numbers; /* owned [room]: LORs of the events */
    int64_t room;
    struct lr_lor_sums prompts, delayeds;
    int64_t not_in_coincidence;
    bool are_columns; /* true: events come from columns, and bin() checks and counts them; false: a reader of files has
                         done so */
    lr_event_counts counts;
};

static lr_status bin(void *user, const lr_event *events, int64_t count)
{
    struct binning *binning = user;
    const int num_crystals = binning->lors->scanner->num_crystals;
    for (int64_t k = 0; binning->are_columns && k < count; k++) {
        for (int end = 0; end < 2; end++) {
            const int32_t crystal = events[k].crystals[end];
            if (crystal >= 0 && crystal < num_crystals) continue;
            return lr_error(binning->log, LR_BAD_INPUT, "event %lld names crystal %d: the scanner has crystals 0 to %d",
                            (long long)(binning->counts.prompts + binning->counts.delayeds), crystal, num_crystals - 1);
        }
        *(events[k].is_delayed ? &binning->counts.delayeds : &binning->counts.prompts) += 1;
    }
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

/* Turns the sums into data if `status` is LR_OK, and frees the members of `binning`. */
static lr_status finish_binning(struct binning *binning, lr_status status, lr_prompts_delayeds *data)
{
    if (status == LR_OK) {
        data->counts.not_in_coincidence = binning->not_in_coincidence;
        data->prompts = lr_lor_sums_finish(&binning->prompts, binning->log);
        data->delayeds = lr_lor_sums_finish(&binning->delayeds, binning->log);
        status = data->prompts != NULL && data->delayeds != NULL ? LR_OK : LR_FAILED;
    }
    if (status != LR_OK) {
        lr_lor_data_destroy(data->prompts);
        lr_lor_data_destroy(data->delayeds);
        *data = (lr_prompts_delayeds){0};
    }
    lr_lor_sums_destroy(&binning->prompts);
    lr_lor_sums_destroy(&binning->delayeds);
    free(binning->numbers);
    return status;
}

lr_status lr_events_bin_sized(size_t given_bytes, const lr_events_source *given, const lr_lors *lors,
                              lr_prompts_delayeds *data, lr_events_info *info)
{
    LR_TAKE(lr_events_source, source, given, given_bytes);
    struct binning binning = {.lors = lors, .log = source->log, .threads = source->threads};
    const lr_event_sink sink = {.take = bin, .user = &binning};
    lr_events_source exact = *source;
    lr_events_info own = {0};
    lr_events_info *found = info != NULL ? info : &own;
    exact.scanner = lors->scanner;
    const lr_status read = lr_events_read(&exact, &sink, found);
    *data = (lr_prompts_delayeds){.counts = found->counts};
    const lr_status status = finish_binning(&binning, read, data);
    if (status == LR_OK) found->counts = data->counts;
    lr_events_info_finish(&own);
    return status;
}

lr_status lr_events_bin_columns(const lr_event_columns *columns, const lr_lors *lors, lr_prompts_delayeds *data,
                                const lr_log *log)
{
    struct binning binning = {.lors = lors, .log = log, .are_columns = true};
    const lr_event_sink sink = {.take = bin, .user = &binning};
    const lr_status status = lr_events_from_columns(columns, &sink, log);
    *data = (lr_prompts_delayeds){.counts = binning.counts};
    return finish_binning(&binning, status, data);
}

/* --- writing --- */

/* The source text of a list, with its quotation marks. */
#define TEXT_OF(...) #__VA_ARGS__
#define TEXT(...) TEXT_OF(__VA_ARGS__)

struct lr_events_writer {
    const struct lr_event_writing *format;
    void *writer;
};

lr_events_writer *lr_events_writer_create_sized(size_t given_bytes, const lr_events_writer_params *given)
{
    LR_TAKE(lr_events_writer_params, params, given, given_bytes);
    const struct lr_event_format *format = find(params->format);
    for (int k = 1; params->format == LR_EVENTS_UNKNOWN && k < LR_NUM_EVENT_FORMATS; k++)
        if (formats[k]->writing != NULL && lr_path_ends(params->path, formats[k]->ending)) format = formats[k];
    if (format == NULL || format->writing == NULL) {
        lr_error(params->log, LR_USAGE, "%s: the name of a file of events that is written ends in one of %s",
                 params->path, TEXT(LR_EVENTS_WRITTEN));
        return NULL;
    }
    lr_events_writer *writer = lr_alloc(1, sizeof(*writer), "a writer", params->log);
    if (writer == NULL) return NULL;
    writer->format = format->writing;
    writer->writer = writer->format->create(params);
    if (writer->writer != NULL) return writer;
    free(writer);
    return NULL;
}

lr_event_sink lr_events_writer_sink(lr_events_writer *writer)
{
    return (lr_event_sink){.take = writer->format->take, .user = writer->writer};
}

lr_status lr_events_writer_finish(lr_events_writer *writer)
{
    const lr_status status = writer->format->finish(writer->writer);
    free(writer);
    return status;
}

void lr_events_writer_abandon(lr_events_writer *writer)
{
    if (writer == NULL) return;
    writer->format->abandon(writer->writer);
    free(writer);
}

/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_EVENTS_H
#define LR_EVENTS_H

#include <lr/grid.h>
#include <lr/lors.h>

#ifdef __cplusplus
extern "C" {
#endif

/* List mode: events one by one. Formats: docs/formats/events.md. Ownership, errors and threads are
 * those of lr/io.h. */

/* One coincidence, or one bin of a histogram. */
typedef struct lr_event {
    int32_t crystals[2]; /* a and b, numbers over the whole scanner, in the file's order */
    float tof_mm;        /* c/2 (t_a - t_b) of the times of arrival: where the annihilation lies on
                            the line from a to b, from its middle, positive towards b (negative =
                            crystal a was hit first); 0 without time of flight. A binned difference
                            is the middle of its bin */
    float weight;        /* 1 in list mode; counts in a histogram */
    uint32_t time_ms;    /* since the file's zero of time */
    bool is_delayed;     /* a delayed coincidence; else a prompt */
} lr_event;

/* Takes events in the order of the file, some at a time; the array lives during the call. Another
 * status than LR_OK ends the reading with that status. */
typedef struct lr_event_sink {
    lr_status (*take)(void *user, const lr_event *events, int64_t count);
    void *user;
    /* Memory for the next events, so that nobody copies them: an array of `count`, to which other threads write
     * until `take` is called, and which lives until the next call of either; fewer events may come, or others from
     * elsewhere. Returns NULL if memory runs out. The member itself may be NULL. */
    lr_event *(*room)(void *user, int64_t count);
    /* NULL, or called by a reader's threads of events that they have just made, before `take` is called of them: by
     * several threads at a time, and of some events that are not taken in the end. Not all readers call it. */
    void (*look)(void *user, const lr_event *events, int64_t count);
} lr_event_sink;

typedef enum lr_events_format {
    LR_EVENTS_UNKNOWN = 0,
    LR_EVENTS_SAFIR,   /* begins with that signature, or ends in .safir */
    LR_EVENTS_SIEMENS, /* is none of the others and ends in .l */
    LR_EVENTS_PETSIRD, /* begins with "yardl": PETSIRD's binary encoding, any version */
    LR_EVENTS_CASTOR,  /* a .Cdh text header: list mode or histogram; its data lie beside it */
    LR_EVENTS_GE,      /* HDF5 with MiceList/TofCoinc, or with a name that ends in .BLF */
    LR_EVENTS_TSV      /* tab-separated text; written only */
} lr_events_format;

/* Format of a list-mode file, from its first bytes and its name; errors are left to the readers. */
LR_API lr_events_format lr_events_recognise(const char *path);

/* "SAFIR", "Siemens", "PETSIRD", "CASToR", "GE", "text"; "unknown". */
LR_API const char *lr_events_format_name(lr_events_format format);

/* Contents of a list-mode file, counted. */
typedef struct lr_event_counts {
    int64_t prompts, delayeds, time_marks;
    int64_t unknown_crystals;   /* events naming a crystal that the scanner lacks */
    int64_t not_in_coincidence; /* lr_events_bin and the readers that bin; else 0 */
    int64_t other_words;        /* tags of other kinds, which are passed over */
    int64_t excluded_pairs;     /* PETSIRD: events, handed on as others, of pairs of modules that the
                                   file's own table puts out of coincidence */
    int64_t repeated;           /* PETSIRD: events of lists that stand in the file twice, left out and
                                   counted nowhere else */
} lr_event_counts;

/* Time of flight between crystals of two kinds. */
typedef struct lr_tof_bins {
    float *edges_mm;      /* owned [num_bins + 1] ascending edges of tof_mm; NULL = none */
    int num_bins;         /* at most 1 = no time of flight */
    double resolution_ps; /* FWHM; 0 = not known */
} lr_tof_bins;

/* The mean width of bins with these edges, mm; 0 = there are none. */
static inline double lr_tof_bin_mm(const float *edges_mm, int num_bins)
{
    return edges_mm != NULL && num_bins > 1 ? ((double)edges_mm[num_bins] - (double)edges_mm[0]) / num_bins : 0.0;
}

enum { LR_EVENTS_NO_KIND = 255 };

/* Kinds of crystals that differ in time of flight or energies: PETSIRD's types of modules. */
typedef struct lr_event_kinds {
    int count; /* 0 = all crystals are of one kind, and the rest is NULL */
    int num_crystals;
    unsigned char *kind_of;  /* owned [num_crystals], numbered as those of the events;
                                LR_EVENTS_NO_KIND = no event has this crystal */
    lr_tof_bins *tof;        /* owned [count][count] of events with a of the first kind, b of the
                                second */
    double (*energy_kev)[2]; /* owned [count] window; 0, 0 = not known */
} lr_event_kinds;

/* Facts about a list-mode file; zero means not known. */
typedef struct lr_events_info {
    lr_events_format format;
    char version[32];    /* "0.9.1", "list mode", "histogram" */
    char scanner[64];    /* the name that the file gives its scanner */
    float *tof_edges_mm; /* owned [num_tof_bins + 1] ascending edges of tof_mm; NULL = none */
    int num_tof_bins;    /* 0 = no time of flight, not binned, or edges are not known */
    bool has_tof;        /* whether tof_mm means something */
    double tof_range_mm; /* from the least to the largest tof_mm that could be measured, where edges
                            are not known */
    double tof_bin_mm;   /* width of the bins whose middles tof_mm are, where their edges are not
                            known; 0 = not binned */
    double tof_resolution_ps;
    double energy_kev[2];   /* window */
    lr_event_kinds kinds;   /* where crystals differ in the fields above; these are then set only
                               where all agree (has_tof: where any pair of kinds has it) */
    double duration_s;      /* from the file, or else from its first to its last time */
    lr_event_counts counts; /* filled in by reading the events */
    double weight;          /* sum over the events, of both kinds */
} lr_events_info;

/* Frees what it owns; zero is allowed. */
LR_API void lr_events_info_finish(lr_events_info *info);

/* Width of the bins of all events, mm; 0 = they are not binned, or widths differ (kinds). */
static inline double lr_events_info_tof_bin_mm(const lr_events_info *info)
{
    return info->tof_edges_mm != NULL ? lr_tof_bin_mm(info->tof_edges_mm, info->num_tof_bins) : info->tof_bin_mm;
}

/* True if an event of two crystals has time of flight. Threads: may be shared. */
LR_API bool lr_events_info_has_tof(const lr_events_info *info, const int32_t crystals[2]);

/* A list-mode file and what belongs to it. Zero fields are defaults. */
typedef struct lr_events_source {
    const char *path;
    lr_events_format format;   /* 0 = as lr_events_recognise says */
    const char *companion;     /* SAFIR: STIR's crystal map; Siemens: the text header; CASToR: the
                                  .lut or .geom of its scanner. NULL = the one beside the events, as
                                  docs/formats/events.md says; PETSIRD and GE need none */
    const lr_scanner *scanner; /* SAFIR, PETSIRD and a .lut name crystals by their places, which must be
                                  those of the scanner's. NULL, for PETSIRD and CASToR only:
                                  crystals keep the numbers of the file */
    bool until_damage;         /* a file that is truncated or damaged behind its first event is no error: a
                          warning says where, and the events before it are what there is */
    int threads;               /* 0 = all processors; the events are the same for any number */
    /* NULL = nothing is left out. Asked before each time that events are handed on, of which there are then as
     * many as whenever the same file is read: true leaves them out, uncounted and, where the format allows
     * it, not decoded. It is not asked with until_damage. */
    bool (*skips)(void *user);
    void *user; /* of skips */
    const lr_log *log;
} lr_events_source;

/* Reads a file from its begin to its end and hands its events on; none of it needs to fit memory.
 * Events that name crystals which the scanner lacks are counted, reported in a warning and left out;
 * a file that has no others is an error. What the file knows beyond lr_event (corrections, further
 * energy bins, motion) is reported in warnings and ignored. sink NULL: only what stands before
 * the events is read. info: overwritten, finish it in any case; may be NULL. */
LR_API lr_status lr_events_read(const lr_events_source *source, const lr_event_sink *sink, lr_events_info *info);

/* All events of a file; destroy it. */
typedef struct lr_event_list {
    int64_t count;
    lr_event *events; /* owned [count] */
    lr_events_info info;
    bool are_joined; /* all are known to be in coincidence; false: they are not, or were not checked */
} lr_event_list;

LR_API lr_event_list *lr_event_list_read(const lr_events_source *source);

/* lr_event_list_read that also checks, if the format's reader allows it, that all events are in coincidence. */
LR_API lr_event_list *lr_event_list_read_joined(const lr_events_source *source, const lr_lors *lors);
LR_API void lr_event_list_destroy(lr_event_list *list); /* NULL is allowed */

/* Frees the events and keeps the info; piece by piece, so that other threads are not held up. */
LR_API void lr_event_list_drop(lr_event_list *list);

/* A sequence of events. */
typedef struct lr_event_span {
    const lr_event *events; /* [count] */
    int64_t count;
    int threads; /* 0 = all processors */
} lr_event_span;

/* Finds the LOR of each event, -1 if its crystals are not in coincidence. numbers: [count]. Returns the number of
 * events with a LOR. */
LR_API int64_t lr_events_lors(const lr_lors *lors, const lr_event_span *span, int64_t *numbers);

/* Number of events with a LOR; quicker than finding the LORs. */
LR_API int64_t lr_events_count_joined(const lr_lors *lors, const lr_event_span *span);

/* Copies the weight of each event. weights: [count]. */
LR_API void lr_events_weights(const lr_event_span *span, float *weights);

/* Corrections of the events of a list. */
typedef struct lr_event_corrections {
    int64_t count;     /* events, in the order of the list's file */
    float *factors;    /* owned [count] efficiency times attenuation of the event's LOR */
    float *additive;   /* owned [count] expected randoms and scatters of its LOR, per mm of tof_mm */
    lr_lor_data *lors; /* owned, dense: efficiency times attenuation of every LOR; 0 = not measured */
} lr_event_corrections;

/* The corrections.h5 that belongs to GE's public list mode, on the scanner of the LORs: see
 * docs/formats/events.md. 4 bytes of memory a LOR, and 8 an event. errors: NULL, logged. */
LR_API lr_event_corrections *lr_event_corrections_read(const char *path, const lr_lors *lors, const lr_log *log);
LR_API void lr_event_corrections_destroy(lr_event_corrections *corrections); /* NULL is allowed */

/* Makes a list a bootstrap replicate of itself: each event, a count of what was measured, comes as often
 * as a Poisson number says whose mean is its weight, in its place; of prompts once, with that weight. So
 * the mean over seeds of all that is linear in the events is that of the list, and the variance of a
 * sum of weights of 1 is that sum (Efron 1979, in its Poisson form). The draws depend on seed and the
 * event's place alone. info.counts are those of the replicate, except for what was left out in reading.
 * errors: LR_FAILED if memory runs out, LR_BAD_INPUT for a negative weight; the list is as before. */
LR_API lr_status lr_event_list_bootstrap(lr_event_list *list, uint64_t seed, const lr_log *log);

/* Prompts and delayeds of an acquisition: sparse data, owned by the caller. On failure nothing is returned. */
typedef struct lr_prompts_delayeds {
    lr_lor_data *prompts, *delayeds;
    lr_event_counts counts;
} lr_prompts_delayeds;

/* Reads a file and sums the weights of its prompts and of its delayeds per LOR; times and time of
 * flight are dropped. Events out of coincidence are counted and left out. lors->scanner takes the
 * place of the source's. info may be NULL. */
LR_API lr_status lr_events_bin(const lr_events_source *source, const lr_lors *lors, lr_prompts_delayeds *data,
                               lr_events_info *info);

/* Counts per LOR, as a measurement of one event after the other. */
typedef struct lr_list_params {
    const lr_lors *lors;     /* required */
    const lr_lor_data *data; /* required; whole counts, dense or sparse */
    double duration_s;       /* 0 = 60 */
    uint64_t seed;           /* decides order and times */
    const lr_log *log;
} lr_list_params;

/* Makes prompts of the counts, in a random order, at times that are uniform over the duration and
 * ascend; without time of flight. 8 bytes of memory an event.
 * errors: LR_BAD_INPUT for counts that are not whole or negative; what the sink returns. */
LR_API lr_status lr_events_from_counts(const lr_list_params *params, const lr_event_sink *sink);

/* Blur of detected lines in addition to that of the crystals' size: lines are shifted in parallel by Gaussians, and
 * the crystals that the shifted line meets are reported. */
typedef struct lr_photon_blur {
    double (*radial_mm)(const void *user, double distance_mm); /* FWHM in the transaxial plane, by
                                                                  the emission's distance from the
                                                                  axis across the line; NULL = none.
                                                                  Called by several threads */
    const void *user;
    double axial_mm;       /* FWHM across the line and that; 0 = none */
    double most_radial_mm; /* no less than any that radial_mm gives; 0 = not known: pairs too steep for the
                              scanner are then followed, too, which takes several times as long */
} lr_photon_blur;

/* Photon pairs from an activity, with time of flight. Zero fields are defaults. */
typedef struct lr_photon_params {
    const lr_lors *lors;      /* required */
    const lr_image *activity; /* required, >= 0 */
    int64_t count;            /* events wanted */
    double tof_resolution_ps; /* FWHM; 0 = the scanner's */
    double duration_s;        /* 0 = 60 */
    uint64_t seed;
    lr_photon_blur blur;
    int threads; /* 0 = all processors; the events are the same for any number */
    const lr_log *log;
    const lr_progress *progress;
} lr_photon_params;

/* Draws a voxel by activity, a uniform point in it and an isotropic direction, until `count` pairs are
 * detected. Each photon meets the first module on its side, which stops it even in a gap or from behind.
 * Detected: both hit a crystal's face, and the LOR is in coincidence. No scatter, no absorption. With
 * layers, each photon sees one layer, all equally likely. Lines are off by `blur`, times
 * of arrival by a Gaussian. Pair k is the same whatever `count` is. info (may be NULL): time of flight and duration.
 * errors: LR_BAD_INPUT for an activity that is negative, not finite or nowhere; LR_USAGE without a
 * time resolution, or with a blur that is negative or not finite; LR_FAILED where fewer than one pair in 100,000 is
 * detected; what the sink returns. */
LR_API lr_status lr_events_from_activity(const lr_photon_params *params, const lr_event_sink *sink,
                                         lr_events_info *info);

/* --- writing --- */

/* Takes events as they come and writes a PETSIRD, CASToR or text file; holds at most the events of one
 * time block (PETSIRD: those of a millisecond, at most 2^18). */
typedef struct lr_events_writer lr_events_writer;

typedef struct lr_events_writer_params {
    const char *path;           /* .petsird; .Cdh, with the data in .Cdf beside it; .tsv */
    lr_events_format format;    /* 0 = by the path's ending */
    const lr_lors *lors;        /* required: its scanner, and which modules are in coincidence */
    const lr_events_info *info; /* time of flight, energy window and duration; NULL = none */
    int petsird_minor;          /* schema: 0 or 12 = v0.12.0; 10 = v0.10.0; 9 = v0.9.1 */
    const lr_log *log;
} lr_events_writer_params;

/* If kinds of crystals differ, each pair of kinds keeps its bins, resolution and energies in PETSIRD; info must
 * then be of events numbered as the scanner's crystals.
 * errors: NULL; LR_USAGE for another format or schema, and where CASToR, which has one resolution,
 * cannot hold several; LR_BAD_INPUT for a module with crystals of two kinds; LR_FAILED where nothing
 * can be written. */
LR_API lr_events_writer *lr_events_writer_create(const lr_events_writer_params *params);

/* Give this to lr_events_read. Events must be in the order of their times. PETSIRD: prompts of a
 * time block come before its delayeds; weights must be whole and are written as that many events;
 * a time of flight goes to the bin that holds it: bins of info, or else as many as cover the
 * longest line, a fifth of the resolution wide. From v0.10.0 on a and b are exchanged, and the
 * sign of tof_mm, where a's number in the file is the lower. CASToR: delayeds are left out, with a
 * warning. Text: a line for each event with its crystals, tof_mm and where on the line between the
 * two crystals' hits (lr_scanner_hit_centre) that puts the annihilation, NaN without time of flight.
 * errors of take: LR_USAGE for weights that are not whole, and where a and b
 * of bins that are not mirrored would be exchanged. */
LR_API lr_event_sink lr_events_writer_sink(lr_events_writer *writer);

/* Completes the file and puts it in place; frees the writer in any case. */
LR_API lr_status lr_events_writer_finish(lr_events_writer *writer);

/* Abandons the file and leaves nothing behind. NULL is allowed. */
LR_API void lr_events_writer_abandon(lr_events_writer *writer);

typedef struct lr_castor_histogram {
    const lr_lor_data *data; /* counts per LOR, dense or sparse */
    double duration_s;       /* for the header; 0 = 1 ms */
} lr_castor_histogram;

/* CASToR histogram (.Cdh, with the data in .Cdf beside it); LORs without counts are left out. */
LR_API lr_status lr_castor_histogram_write(const char *path, const lr_lors *lors, const lr_castor_histogram *histogram,
                                           const lr_log *log);

#ifdef __cplusplus
}
#endif

#endif

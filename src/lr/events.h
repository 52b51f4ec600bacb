/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_EVENTS_H
#define LR_EVENTS_H

#include <lr/factors.h>
#include <lr/grid.h>
#include <lr/lors.h>

#ifdef __cplusplus
extern "C" {
#endif

/* List mode: single events. Formats: docs/formats/events.md. Ownership, errors and threads are as in lr/io.h. */

/* One coincidence, or one bin of a histogram. */
typedef struct lr_event {
    int32_t crystals[2]; /* crystals a and b in the file's order, by their numbers in the whole scanner */
    /* c/2 (t_a - t_b), with the arrival times t_a and t_b. This is the position of the annihilation on the line from a
     * to b, measured from the line's middle, positive towards b. tof_mm is negative if crystal a was hit first, and 0
     * without time of flight. If times are binned, tof_mm is the middle of the bin */
    float tof_mm;
    float weight;     /* 1 in list mode; counts in a histogram */
    uint32_t time_ms; /* since the file's zero of time */
    bool is_delayed;  /* a delayed coincidence; else a prompt */
} lr_event;

/* Events as columns. The caller owns the arrays, for example through an array library. Zero fields are defaults. */
typedef struct lr_event_columns {
    int64_t count;
    const int32_t (*crystals)[2]; /* required [count] as in lr_event */
    /* [count] as in lr_event; NULL = 0. A difference t_a - t_b of arrival times in ps gives 0.149896229 mm per ps, half
     * the speed of light */
    const float *tof_mm;
    const float *weights;   /* [count]; NULL = 1 */
    const double *times_s;  /* [count] since the zero of time, at most 4,294,967; NULL = 0 */
    const bool *is_delayed; /* [count]; NULL = all are prompts */
} lr_event_columns;

/* Receives events in the order of the file, in pieces. The array exists only during the call. A status other than LR_OK
 * ends the reading with that status. */
typedef struct lr_event_sink {
    lr_status (*take)(void *user, const lr_event *events, int64_t count);
    void *user;
    /* Returns an array for the next `count` events, so that the reader need not copy them; NULL if memory runs out. The
     * reader's threads write to the array until `take` is called. The array must live until this `take` returns, or
     * until `room` is called again. `take` may receive fewer events, or another array. room may be NULL: the reader
     * then uses its own arrays. */
    lr_event *(*room)(void *user, int64_t count);
    /* Called by the reader's threads with events that they have just decoded, before `take` receives them. Several
     * threads may call `look` at once. Some of these events may never reach `take`. Not all readers call `look`. NULL =
     * not called. */
    void (*look)(void *user, const lr_event *events, int64_t count);
} lr_event_sink;

/* Formats of event files. The first row makes the number LR_EVENTS_SAFIR; its format is lr_safir_format in the library.
 * The words of all rows, each but the first with its comma, make a list of the formats that can be read. New rows come
 * last, and formats that are written have their ending in LR_EVENTS_WRITTEN.
 *     SAFIR    begins with the SAFIR signature, or ends in .safir
 *     SIEMENS  ends in .l and has no other format
 *     PETSIRD  begins with "yardl": PETSIRD's binary encoding, any version
 *     CASTOR   a .Cdh text header: list mode or histogram; the data are in a file next to it
 *     GE       HDF5 with MiceList/TofCoinc, or with a name that ends in .BLF
 *     TSV      tab-separated text; written only */
#define LR_EACH_EVENT_FORMAT(USE)                                                                                      \
    USE(SAFIR, safir, "SAFIR")                                                                                         \
    USE(SIEMENS, siemens, ", Siemens (.l)")                                                                            \
    USE(PETSIRD, petsird, ", PETSIRD")                                                                                 \
    USE(CASTOR, castor, ", CASToR (.Cdh)")                                                                             \
    USE(GE, ge, ", GE (.BLF)")                                                                                         \
    USE(TSV, text, "")

/* A row's number in lr_events_format. */
#define LR_EVENT_NUMBER(name, reader, words) LR_EVENTS_##name,

/* The rows' numbers. */
typedef enum lr_events_format {
    LR_EVENTS_UNKNOWN = 0,
    LR_EACH_EVENT_FORMAT(LR_EVENT_NUMBER) LR_NUM_EVENT_FORMATS
} lr_events_format;

/* The words of a row. */
#define LR_EVENT_WORDS(name, reader, words) words

/* The formats that can be read, as text for messages. */
#define LR_EVENTS_READ LR_EACH_EVENT_FORMAT(LR_EVENT_WORDS)

/* The endings of names of files that can be written. */
#define LR_EVENTS_WRITTEN ".petsird", ".Cdh", ".tsv"

/* Finds the format of a list-mode file from its first bytes and its name. A file that cannot be opened is no error
 * here; the readers report it. */
LR_API lr_events_format lr_events_recognise(const char *path);

/* Returns the name of a format, such as "SAFIR" or "text", or "unknown". */
LR_API const char *lr_events_format_name(lr_events_format format);

/* Numbers of events and other records in a list-mode file. */
typedef struct lr_event_counts {
    int64_t prompts, delayeds, time_marks;
    int64_t unknown_crystals;   /* events with a crystal that the scanner does not have */
    int64_t not_in_coincidence; /* counted by lr_events_bin and by readers that bin events; else 0 */
    int64_t other_words;        /* records of other kinds, which are skipped */
    /* PETSIRD: events of module pairs that the file's own table excludes from coincidence; such events are passed on
     * like other events */
    int64_t excluded_pairs;
    /* PETSIRD: events of lists that occur twice in the file; such events are left out and not counted elsewhere */
    int64_t repeated;
} lr_event_counts;

/* Time-of-flight bins and resolution for crystals of two kinds. */
typedef struct lr_tof_bins {
    float *edges_mm;      /* owned [num_bins + 1] ascending edges of tof_mm; NULL = none */
    int num_bins;         /* 0 or 1 = no time of flight */
    double resolution_ps; /* FWHM; 0 = not known */
} lr_tof_bins;

/* Returns the mean width of bins with these edges, mm; 0 if there are no bins. */
static inline double lr_tof_bin_mm(const float *edges_mm, int num_bins)
{
    return edges_mm != NULL && num_bins > 1 ? ((double)edges_mm[num_bins] - (double)edges_mm[0]) / num_bins : 0.0;
}

enum { LR_EVENTS_NO_KIND = 255 };

/* Kinds of crystals with different time of flight or energies; in PETSIRD, the types of modules. */
typedef struct lr_event_kinds {
    int count; /* 0 = all crystals are of one kind, and the pointers are NULL */
    int num_crystals;
    unsigned char *kind_of; /* owned [num_crystals] kind of each crystal, indexed by the crystal numbers of the events;
                               LR_EVENTS_NO_KIND = no event has this crystal */
    lr_tof_bins
        *tof; /* owned [count][count] time of flight of events with crystal a of the first kind and b of the second */
    double (*energy_kev)[2]; /* owned [count] window; 0, 0 = not known */
} lr_event_kinds;

/* Facts about a list-mode file; zero means not known. */
typedef struct lr_events_info {
    lr_events_format format;
    char version[32];    /* "0.9.1", "list mode", "histogram" */
    char scanner[64];    /* the name that the file gives its scanner */
    float *tof_edges_mm; /* owned [num_tof_bins + 1] ascending edges of tof_mm; NULL = none */
    int num_tof_bins;    /* 0 = no time of flight, not binned, or edges are not known */
    bool has_tof;        /* true if tof_mm is valid */
    double tof_range_mm; /* largest minus smallest measurable tof_mm, if edges are not known */
    double tof_bin_mm;   /* width of the time-of-flight bins, if their edges are not known; 0 = not binned */
    double tof_resolution_ps;
    double energy_kev[2]; /* limits of the energy window; 0, 0 = not known */
    /* kinds of crystals, if they differ in the fields above. A field above is then set only if it is equal for all
     * kinds; has_tof is true if any pair of kinds has time of flight */
    lr_event_kinds kinds;
    double duration_s;      /* the file's duration, or else the last minus the first time of its events */
    lr_event_counts counts; /* filled in by reading the events */
    double weight;          /* sum of the weights of all prompts and delayeds */
} lr_events_info;

/* Frees the arrays of an info. A struct of zeros is allowed. */
LR_API void lr_events_info_finish(lr_events_info *info);

/* Width of the bins of all events, mm; 0 = the events are not binned, or different kinds have different widths. */
static inline double lr_events_info_tof_bin_mm(const lr_events_info *info)
{
    return info->tof_edges_mm != NULL ? lr_tof_bin_mm(info->tof_edges_mm, info->num_tof_bins) : info->tof_bin_mm;
}

/* Returns true if an event of two crystals has time of flight. Threads: may be shared. */
LR_API bool lr_events_info_has_tof(const lr_events_info *info, const int32_t crystals[2]);

/* A list-mode file, and settings for reading it. Zero fields are defaults. */
typedef struct lr_events_source {
    const char *path;
    lr_events_format format; /* 0 = as lr_events_recognise says */
    /* path of the second file. SAFIR: STIR's crystal map; Siemens: the text header; CASToR: the .lut or .geom of the
     * scanner; PETSIRD and GE: none. NULL = the file next to the events (docs/formats/events.md) */
    const char *companion;
    /* scanner of the events. SAFIR, PETSIRD and .lut files give the positions of crystals, which must match this
     * scanner. NULL, for PETSIRD and CASToR only: crystals keep the numbers of the file */
    const lr_scanner *scanner;
    /* true: if a file is truncated or damaged after its first event, the events before the damage are read, and a
     * warning gives its position. false: such a file is an error */
    bool until_damage;
    int threads; /* 0 = all processors; the events are the same for any number */
    /* Called before each piece of events is passed to the sink. If `skips` returns true, the piece is left out: its
     * events are not counted and, if the format allows it, not decoded. Every time a file is read, the pieces are the
     * same. Not called with until_damage. NULL = no piece is left out. */
    bool (*skips)(void *user);
    void *user; /* argument for `skips` */
    const lr_log *log;
    const lr_progress *progress; /* progress of reading; can stop the reading; NULL = none */
} lr_events_source;

/* Reads a file from start to end and passes its events to the sink. The file may be larger than memory. Events with
 * crystals that the scanner lacks are counted, reported in a warning and left out; a file with no other events is an
 * error. Other data in the file (corrections, further energy bins, motion) are ignored with a warning. sink NULL: only
 * the part of the file before the events is read. info: overwritten; may be NULL; call lr_events_info_finish even after
 * an error. errors: as in lr/io.h; the status that the sink returns; LR_CANCELLED. */
LR_SIZED(lr_events_source, lr_status, lr_events_read,
         (const lr_events_source *source, const lr_event_sink *sink, lr_events_info *info), (source, sink, info));

/* All events of a file. Free it with lr_event_list_destroy. */
typedef struct lr_event_list {
    int64_t count;
    lr_event *events; /* owned [count] */
    lr_events_info info;
    /* true if all events are known to be in coincidence; false if some are not, or if this was not checked */
    bool are_joined;
} lr_event_list;

/* Reads all events of a source into memory. errors: NULL, logged, with the status of lr_events_read. */
LR_SIZED(lr_events_source, lr_event_list *, lr_event_list_read, (const lr_events_source *source), (source));

/* Reads all events like lr_event_list_read. For some formats, the reader also checks if all events are in coincidence
 * (are_joined). */
LR_SIZED(lr_events_source, lr_event_list *, lr_event_list_read_joined,
         (const lr_events_source *source, const lr_lors *lors), (source, lors));
LR_API void lr_event_list_destroy(lr_event_list *list); /* NULL is allowed */

/* Frees the events and keeps the info. Memory is freed piece by piece, so that other threads are not delayed. */
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

/* Counts the events that have a LOR; quicker than finding the LORs. */
LR_API int64_t lr_events_count_joined(const lr_lors *lors, const lr_event_span *span);

/* Copies the weight of each event. weights: [count]. */
LR_API void lr_events_weights(const lr_event_span *span, float *weights);

/* Corrections of the events of a list. */
typedef struct lr_event_corrections {
    int64_t count;     /* number of events, in the order of the list's file */
    float *factors;    /* owned [count] efficiency times attenuation factor of the event's LOR */
    float *additive;   /* owned [count] expected randoms and scatters of the event's LOR, per mm of tof_mm */
    lr_lor_data *lors; /* owned, dense: efficiency times attenuation factor of every LOR; 0 = not measured */
} lr_event_corrections;

/* Reads the corrections.h5 of GE's public list-mode data, for the scanner of the LORs: docs/formats/events.md.
 * Memory: 4 bytes per LOR and 8 bytes per event. errors: NULL, logged. */
LR_API lr_event_corrections *lr_event_corrections_read(const char *path, const lr_lors *lors, const lr_log *log);
LR_API void lr_event_corrections_destroy(lr_event_corrections *corrections); /* NULL is allowed */

/* Replaces a list by a bootstrap replicate (Efron 1979, in its Poisson form). For each event a Poisson number n is
 * drawn, with the event's weight as its mean. A prompt is kept once with the weight n; a delayed is repeated n times;
 * the order of events stays. Averaged over seeds, a quantity that is linear in the events has the value of the original
 * list. The sum of N weights of 1 has the variance N. The draws depend only on the seed and the event's index.
 * info.counts becomes the counts of the replicate; only the counts of events left out in reading stay.
 * errors: LR_FAILED if memory runs out, LR_BAD_INPUT for a negative weight; the list is then unchanged. */
LR_API lr_status lr_event_list_bootstrap(lr_event_list *list, uint64_t seed, const lr_log *log);

/* Prompts and delayeds of an acquisition: sparse data, owned by the caller; NULL after an error. */
typedef struct lr_prompts_delayeds {
    lr_lor_data *prompts, *delayeds;
    lr_event_counts counts;
} lr_prompts_delayeds;

/* Reads a file and sums the weights of its prompts and of its delayeds per LOR; times and time of
 * flight are dropped. Events out of coincidence are counted and left out. lors->scanner is used instead of the
 * source's scanner. info may be NULL. */
LR_SIZED(lr_events_source, lr_status, lr_events_bin,
         (const lr_events_source *source, const lr_lors *lors, lr_prompts_delayeds *data, lr_events_info *info),
         (source, lors, data, info));

/* Passes columns to a sink as events, 65,536 at a time. Times are rounded down to ms. errors: LR_USAGE for columns
 * without crystals or with a negative count; LR_BAD_INPUT for a time that lr_event cannot hold; the status that the
 * sink returns. */
LR_API lr_status lr_events_from_columns(const lr_event_columns *columns, const lr_event_sink *sink, const lr_log *log);

/* Sums events in columns per LOR, like lr_events_bin. Events out of coincidence are counted and left out.
 * errors: as lr_events_from_columns; LR_BAD_INPUT for a crystal that the scanner lacks. */
LR_API lr_status lr_events_bin_columns(const lr_event_columns *columns, const lr_lors *lors, lr_prompts_delayeds *data,
                                       const lr_log *log);

/* Counts per LOR that lr_events_from_counts turns into a list of events. */
typedef struct lr_list_params {
    const lr_lors *lors;     /* required */
    const lr_lor_data *data; /* required; whole counts, dense or sparse */
    double duration_s;       /* duration of the acquisition; 0 = 60 s */
    uint64_t seed;           /* decides order and times */
    const lr_log *log;
} lr_list_params;

/* Turns counts into prompts in random order, without time of flight. Times are uniform over the duration and ascend.
 * Memory: 8 bytes per event. errors: LR_BAD_INPUT for counts that are negative or not whole; the status that the
 * sink returns. */
LR_SIZED(lr_list_params, lr_status, lr_events_from_counts, (const lr_list_params *params, const lr_event_sink *sink),
         (params, sink));

/* Blur of detected lines in addition to the blur by the crystals' size. Each line is shifted parallel to itself by a
 * Gaussian distance, and the crystals that the shifted line hits are reported. */
typedef struct lr_photon_blur {
    double (*radial_mm)(const void *user, double distance_mm); /* returns the FWHM in the transaxial plane, mm.
                                                                  distance_mm: distance between the emission and the
                                                                  scanner's axis, measured perpendicular to the line.
                                                                  Called by several threads; NULL = no blur */
    const void *user;
    double axial_mm;       /* FWHM along the axis; 0 = none */
    double most_radial_mm; /* upper bound of radial_mm; 0 = not known. Without a bound, pairs too oblique for the
                              scanner are followed, too, which takes several times as long */
} lr_photon_blur;

/* Photon pairs from an activity, with time of flight. Zero fields are defaults. */
typedef struct lr_photon_params {
    const lr_lors *lors;      /* required */
    const lr_image *activity; /* required, >= 0 */
    int64_t count;            /* number of events wanted */
    double tof_resolution_ps; /* FWHM; 0 = the scanner's */
    double duration_s;        /* duration of the acquisition; 0 = 60 s */
    uint64_t seed;
    lr_photon_blur blur;
    int threads; /* 0 = all processors; the events are the same for any number */
    const lr_log *log;
    const lr_progress *progress;
    const lr_image *mu; /* attenuation in 1/mm; NULL = none */
    /* Randoms among the pairs. The probability of a LOR is proportional to its product (lr/factors.h; its scale does not
     * matter). NULL = no randoms */
    const lr_crystal_product *randoms;
    int64_t num_randoms;
    double window_mm; /* tof_mm of randoms is uniform from -window_mm / 2 to window_mm / 2 */
    /* Receives the number of pairs that were emitted until the last one was detected, or 0 after an error. With n
     * layers of crystals, which share the photons, it is divided by n^2: images count each layer as if it were the
     * only one. NULL = not needed */
    int64_t *emissions;
} lr_photon_params;

/* Simulates photon pairs until `count` pairs are detected. The voxel of a pair is drawn with a probability proportional
 * to its activity, the point of emission is uniform in the voxel, and the direction is isotropic. A photon stops at the
 * first module on its path, even in a gap between crystals or at the back. A pair is detected if both photons hit a
 * crystal face and the LOR is in coincidence. There is no scatter. With `mu`, a pair survives with the probability
 * exp(-integral of mu) along the line of its LOR. With layers, each photon can hit one layer only, chosen with equal
 * probability. Lines are shifted by `blur`, and arrival times by a Gaussian. Pair k does not depend on `count`. Randoms
 * are prompts at random places among the pairs. info (may be NULL): time of flight and duration.
 * errors: LR_BAD_INPUT for an activity that is negative, not finite or 0 everywhere; LR_USAGE without a time
 * resolution, with a blur that is negative or not finite, or with randoms that no LOR in coincidence can have;
 * LR_FAILED if fewer than one pair in 100,000 is detected; the status that the sink returns. */
LR_SIZED(lr_photon_params, lr_status, lr_events_from_activity,
         (const lr_photon_params *params, const lr_event_sink *sink, lr_events_info *info), (params, sink, info));

/* --- writing --- */

/* Receives events and writes a PETSIRD, CASToR or text file. The writer keeps at most the events of one time block in
 * memory. A PETSIRD time block has the events of a millisecond, at most 2^18. */
typedef struct lr_events_writer lr_events_writer;

/* Returns the width in mm of the range of tof_mm that a writer covers for events of this time resolution, FWHM, if their
 * info has no bins. */
LR_API double lr_events_window_mm(const lr_scanner *scanner, double tof_resolution_ps);

/* Parameters of lr_events_writer_create. Zero fields are defaults. */
typedef struct lr_events_writer_params {
    const char *path;           /* .petsird; .Cdh, with the data in .Cdf beside it; .tsv */
    lr_events_format format;    /* 0 = by the path's ending */
    const lr_lors *lors;        /* required: the scanner, and its modules in coincidence */
    const lr_events_info *info; /* time of flight, energy window and duration; NULL = none */
    int petsird_minor;          /* schema: 0 or 12 = v0.12.0; 10 = v0.10.0; 9 = v0.9.1 */
    const lr_log *log;
} lr_events_writer_params;

/* Creates a writer, which lr_events_writer_finish or lr_events_writer_abandon frees. If crystals are of several kinds,
 * PETSIRD stores bins, resolution and energies of each pair of kinds; info must then number crystals as the scanner
 * does.
 * errors: NULL; LR_USAGE for another format or schema, and for several resolutions in CASToR, which stores one;
 * LR_BAD_INPUT for a module with crystals of two kinds; LR_FAILED if the file cannot be written. */
LR_SIZED(lr_events_writer_params, lr_events_writer *, lr_events_writer_create, (const lr_events_writer_params *params),
         (params));

/* The sink to pass to lr_events_read. Events must be ordered by time.
 * PETSIRD and CASToR: a weight must be a whole number n; the event is written n times.
 * PETSIRD: in each time block prompts are written before delayeds. A time of flight is written as the number of its
 * bin. The bins are those of info. If info has none, they are a fifth of the resolution wide, and reach from one end of
 * the longest line to the other and twice the resolution beyond both ends.
 * From schema v0.10.0 on, if a has the lower number in the file, a and b are exchanged and tof_mm changes its sign.
 * CASToR: delayeds are left out, with a warning.
 * Text: one line per event with its time, kind, weight, crystals, tof_mm and annihilation point. The point is computed
 * from tof_mm on the line between the two crystals' hit centres (lr_scanner_hit_centre); it is NaN without time of
 * flight.
 * errors of take: LR_USAGE for weights that are not whole (PETSIRD, CASToR), and if a and b must be exchanged but the
 * bins are not symmetric (PETSIRD). */
LR_API lr_event_sink lr_events_writer_sink(lr_events_writer *writer);

/* Completes the file and renames it to its path. Frees the writer, even after an error. */
LR_API lr_status lr_events_writer_finish(lr_events_writer *writer);

/* Removes the unfinished file and frees the writer. NULL is allowed. */
LR_API void lr_events_writer_abandon(lr_events_writer *writer);

/* Counts for a CASToR histogram. */
typedef struct lr_castor_histogram {
    const lr_lor_data *data; /* counts per LOR, dense or sparse */
    double duration_s;       /* for the header; 0 = 1 ms */
} lr_castor_histogram;

/* Writes a CASToR histogram (.Cdh, with the data in .Cdf beside it). LORs without counts are left out. */
LR_API lr_status lr_castor_histogram_write(const char *path, const lr_lors *lors, const lr_castor_histogram *histogram,
                                           const lr_log *log);

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "args.h"
#include "base/path.h"

#include <ctype.h>
#include <lr/io.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* --- options --- */

/* Parts of the library's messages, and the advice that the program adds to such a message; NULL = the causes that the
 * running reconstruction lists. */
static const struct {
    const char *words, *advice;
} answers[] = {
    {"is the grid's origin right, which", " (--origin-mm, or the origin in the image's file)"},
    {"are they Hounsfield units?", " (--mu-unit hu)"},
    {"is the map in 1/cm or 1/mm?", " (--mu-unit)"},
    {"it looks like 1/mm; if so, leave out the unit", " (--mu-unit 1/cm)"},
    {"is it an activity image, or has it another unit?", " (--mu-unit)"},
    {"the unit may be given instead", " (--mu-unit)"},
    {"give the grid where one can be named", " (--grid and --voxel-mm, or --like)"},
    {"give one for each, in the order of the scanner's", " (loraster scanner show --crystals)"},
    {"of its events are passed over", " (--mu, --efficiencies, --additive)"},
    {"efficiencies of detection bins", " (--efficiencies)"},
    {"name its crystal map or its header to say which it is", " (--crystal-map, --header)"},
    {"write PETSIRD, or leave the times of flight out", " (--without-tof)"},
    {"or read the scanner from the file instead", " (without --scanner)"},
    {"the file is another scanner's, which can be read from it", " (--scanner FILE)"},
    {"is no checkpoint", " (recon --checkpoint writes them)"},
    {"is no part of a matrix", " (matrix --part makes them)"},
    {"larger voxels, a smaller grid or a threshold", " (--threshold)"},
    {"resuming goes on with", " (--resume)"},
    {"holds no histo-images",
     " (loraster direct deposit makes them of events; without --operator direct recon takes LOR data)"},
    {"holds no LOR data", " (recon --operator direct takes histo-images, and recon --events list mode)"},
    {"holds a system matrix and no LOR data", " (as loraster project or simulate write)"},
    {" left out, and the image misses ", NULL},
    {"it is truncated or damaged: copy it again",
     " (of list mode, --events-until-damage takes the events before that)"},
    {"there is no group /matrix",
     " (loraster matrix writes matrices; LOR data, which recon --data takes, are no matrix)"},
    {"an OpenGL context on another device", " (--device)"},
    {"or exchange by the host", " (--exchange host)"},
    {"no memory left to order them: allow more", " (--max-memory)"},
    {"or leave the choice to the library: OpenGL", " (--backend auto)"},
    {"leave the choice to the library", " (--exchange auto)"},
    {"LOR data, a number for each LOR", " (simulate --tof-ps, recon --operator listmode: events one by one need none)"},
};

/* --- files of another kind --- */

/* The kinds of files that an option, or the first word after a verb, may name. name: the option or the verb. */
static const struct {
    const char *name;
    unsigned kinds; /* bit 1 << kind is set for each accepted kind */
} takers[] = {
    {"--scanner", 1U << LR_FILE_SCANNER | 1U << LR_FILE_PETSIRD},
    {"--data", 1U << LR_FILE_DATA | 1U << LR_FILE_HISTO},
    {"--additive", 1U << LR_FILE_DATA | 1U << LR_FILE_HISTO},
    {"--factors", 1U << LR_FILE_DATA | 1U << LR_FILE_HISTO},
    {"--delayeds", 1U << LR_FILE_DATA | 1U << LR_FILE_EVENTS | 1U << LR_FILE_PETSIRD},
    {"--events", 1U << LR_FILE_EVENTS | 1U << LR_FILE_PETSIRD},
    {"--histo", 1U << LR_FILE_DATA | 1U << LR_FILE_HISTO},
    {"--image", 1U << LR_FILE_IMAGE},
    {"--activity", 1U << LR_FILE_IMAGE},
    {"--like", 1U << LR_FILE_IMAGE},
    {"--mu", 1U << LR_FILE_IMAGE},
    {"--kappa", 1U << LR_FILE_IMAGE},
    {"--truth", 1U << LR_FILE_IMAGE},
    {"--labels", 1U << LR_FILE_IMAGE},
    {"--initial", 1U << LR_FILE_IMAGE | 1U << LR_FILE_DATA}, /* also HDF5, because a checkpoint is an HDF5 file */
    {"--efficiencies", 1U << LR_FILE_IMAGE | 1U << LR_FILE_PETSIRD},
    {"--session", 1U << LR_FILE_SESSION},
    {"scanner show", 1U << LR_FILE_SCANNER | 1U << LR_FILE_PETSIRD},
    {"scanner check", 1U << LR_FILE_SCANNER | 1U << LR_FILE_PETSIRD},
    {"scanner compare", 1U << LR_FILE_SCANNER | 1U << LR_FILE_PETSIRD},
    {"scanner convert", 1U << LR_FILE_SCANNER | 1U << LR_FILE_PETSIRD},
    {"smooth", 1U << LR_FILE_IMAGE},
    {"sinogram", 1U << LR_FILE_DATA},
    {"events show", 1U << LR_FILE_EVENTS | 1U << LR_FILE_PETSIRD},
    {"events merge", 1U << LR_FILE_EVENTS | 1U << LR_FILE_PETSIRD},
    {"events convert", 1U << LR_FILE_EVENTS | 1U << LR_FILE_PETSIRD},
};

enum { NUM_TAKERS = sizeof(takers) / sizeof(takers[0]) };

/* Returns true if the message contains the path as a separate word. */
static bool names_file(const char *sentence, const char *path)
{
    for (const char *at = strstr(sentence, path); at != NULL; at = strstr(at + 1, path)) {
        const char next = at[strlen(path)];
        if ((at == sentence || at[-1] == ' ') && !isalnum((unsigned char)next) && next != '.' && next != '/')
            return true;
    }
    return false;
}

/* Describes the kind of the file `path` and the option that takes such files. taker: the option that was given the
 * file. Returns "" if the kind is unknown, or if `taker` is a right option for the file. */
static const char *describe(const char *taker, const char *path)
{
    static const char *const words[] = {
        [LR_FILE_UNKNOWN] = "",
        [LR_FILE_SCANNER] = ": it looks like a scanner, which --scanner takes",
        [LR_FILE_IMAGE] = ": it looks like an image, which project --image, --mu or --initial takes",
        [LR_FILE_DATA] = ": it looks like LOR data, which recon --data takes, or another HDF5 file",
        [LR_FILE_EVENTS] = ": it looks like list mode, which recon --events takes",
        [LR_FILE_PETSIRD] = ": it looks like list mode (PETSIRD), which recon --events takes",
        [LR_FILE_HISTO] = ": it looks like histo-images, which recon --operator direct --data takes",
        [LR_FILE_SESSION] = ": it looks like a session of the viewer, which view --session takes",
    };
    static const char array[] = ": it looks like a NumPy array, which does not say whose LORs its numbers are: write "
                                "LOR data as docs/formats/lor-data.md shows, or give an image with project --image";
    static const char list[] =
        ": it looks like list mode: make LOR data of it first (loraster events convert FILE counts.h5)";
    static const char *const tables[] = {".csv", ".tsv", ".txt", ".root", NULL};
    static const char table[] = ": tables become PETSIRD first: CSV by docs/guide/python.md#list-mode, ROOT by "
                                "docs/guide/gate.md";
    if (access(path, R_OK) != 0) return ""; /* only files that can be read are described */
    const lr_file_kind kind = lr_file_kind_of(path);
    size_t row = 0;
    while (row < NUM_TAKERS && strcmp(takers[row].name, taker) != 0) row++;
    if (row == NUM_TAKERS || (takers[row].kinds & 1U << kind) != 0) return "";
    const bool takes_counts = (takers[row].kinds & (1U << LR_FILE_DATA | 1U << LR_FILE_EVENTS)) != 0;
    if (kind == LR_FILE_UNKNOWN && takes_counts && lr_path_ends_in(path, tables)) return table;
    if (kind == LR_FILE_DATA && lr_path_ends(path, ".hs")) return ""; /* these files also describe scanners */
    const bool is_list = kind == LR_FILE_EVENTS || kind == LR_FILE_PETSIRD;
    if (is_list && strcmp(taker, "sinogram") == 0) return list;
    return kind == LR_FILE_IMAGE && lr_path_ends(path, ".npy") ? array : words[kind];
}

const char *advice_on(const struct report *report, lr_status status, const char *sentence, char text[ADVICE_BYTES])
{
    const struct cli_args *args = report->args;
    const char *answer = "", *kind = "";
    char causes[1024] = "";
    for (size_t k = 0; answer[0] == '\0' && k < sizeof(answers) / sizeof(answers[0]); k++)
        if (strstr(sentence, answers[k].words) != NULL) answer = answers[k].advice != NULL ? answers[k].advice : causes;
    if (answer == causes && report->causes.list != NULL)
        report->causes.list(report->causes.user, causes, sizeof(causes));
    if (status == LR_BAD_INPUT && args != NULL && args->given != NULL) {
        for (int k = 0; kind[0] == '\0' && k < args->num_given; k++) {
            const char *path = args->given[k].value;
            if (path != NULL && names_file(sentence, path)) kind = describe(args->given[k].option->name, path);
        }
        if (kind[0] == '\0' && args->num_positional > 0 && names_file(sentence, args->positional[0]))
            kind = describe(args->verb->name, args->positional[0]);
    }
    if (answer[0] == '\0' && kind[0] == '\0') return sentence;
    snprintf(text, ADVICE_BYTES, "%s%s%s", sentence, answer, kind);
    return text;
}

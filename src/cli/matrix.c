/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "matrix.h"
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void matrix_choice_read(struct cli_args *args, struct matrix_choice *choice)
{
    choice->rows = args_text(args, "--rows");
    choice->region = args_text(args, "--region");
    choice->pairs = args_text(args, "--pairs");
    choice->lors = args_text(args, "--lors");
    choice->by_lor = args_word(args, "--by", NULL, choice->lors != NULL ? 1 : 0) == 1;
    const bool has_points = args_count(args, "--at") > 0;
    const bool has_rows = choice->rows != NULL || choice->region != NULL;
    if (choice->rows != NULL && choice->region != NULL) args_complain(args, "--rows and --region exclude each other");
    if (choice->lors != NULL && choice->pairs != NULL) args_complain(args, "--lors and --pairs exclude each other");
    if (choice->lors != NULL && !choice->by_lor) args_complain(args, "--lors chooses rows of LORs: it needs --by lor");
    if (choice->by_lor && has_rows) {
        args_complain(args, "--rows and --region choose rows of voxels, and --by lor has rows of "
                            "LORs: choose those with --pairs or --lors");
    }
    if (has_points && (has_rows || choice->by_lor || choice->pairs != NULL))
        args_complain(args, "--at gives rows of points: leave out --rows, --region, --pairs, --lors and --by");
}

double matrix_read_threshold(struct cli_args *args)
{
    const char *text = args_text(args, "--threshold");
    char *end = NULL;
    if (text == NULL) return 0;
    const double threshold = strtod(text, &end);
    if (end == text || *end != '\0' || !(threshold >= 0 && threshold <= 1)) {
        args_complain(args, "--threshold %s: a share of each row's largest element is needed, 0 to 1, such as 0.01",
                      text);
        return 0;
    }
    return threshold;
}

/* Reads a number at *text and moves *text behind the number; false if there is no number. */
static bool take_number(const char **text, int64_t *number)
{
    char *end = NULL;
    if (!isdigit((unsigned char)**text)) return false;
    errno = 0;
    *number = strtoll(*text, &end, 10);
    *text = end;
    return errno == 0;
}

static int compare_numbers(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int64_t matrix_sort_numbers(int64_t *numbers, int64_t count)
{
    int64_t kept = 0;
    qsort(numbers, (size_t)count, sizeof(*numbers), compare_numbers);
    for (int64_t k = 0; k < count; k++)
        if (k == 0 || numbers[k] != numbers[k - 1]) numbers[kept++] = numbers[k];
    return kept;
}

static bool append(int64_t **numbers, int64_t *count, int64_t number)
{
    if ((*count & (*count - 1)) == 0) {
        const size_t room = *count > 0 ? 2 * (size_t)*count : 1;
        int64_t *grown = realloc(*numbers, room * sizeof(*grown));
        if (grown == NULL) return false;
        *numbers = grown;
    }
    (*numbers)[(*count)++] = number;
    return true;
}

/* Returns a copy of an option's list. The list is the option's text, or the contents of the file that the text names.
 * NULL on failure, reported. marks: the characters that a list may contain besides digits. */
static char *open_list(struct report *report, const char *text, const char *marks)
{
    enum { MOST_BYTES = 64 << 20 };
    char *list = NULL;
    bool is_list = *text != '\0';
    for (const char *c = text; is_list && *c != '\0'; c++)
        is_list = isdigit((unsigned char)*c) || strchr(marks, *c) != NULL;
    if (is_list) {
        list = malloc(strlen(text) + 1);
        if (list == NULL) report_error(report, LR_FAILED, "no memory for a list");
        return list != NULL ? strcpy(list, text) : NULL;
    }

    FILE *file = fopen(text, "rb");
    if (file == NULL) {
        report_error(report, LR_BAD_INPUT,
                     "cannot open %s: %s: it is neither a list such as %s nor the name of a file that holds one", text,
                     strerror(errno), strchr(marks, '-') != NULL ? "0-18,3-20" : "12,40,100:200");
        return NULL;
    }
    int64_t room = 0;
    size_t used = 0, got = 1;
    bool has_room = true;
    while (got > 0 && used < MOST_BYTES && has_room) {
        has_room = common_grow(&list, &room, (int64_t)used + 4096, 1);
        got = has_room ? fread(list + used, 1, (size_t)room - used - 1, file) : 0;
        used += got;
    }
    const bool failed = got > 0 || ferror(file);
    fclose(file);
    if (!has_room)
        report_error(report, LR_FAILED, "no memory for the text of %s", text);
    else if (failed || strlen(strcpy(list + used, "")) != 0 || memchr(list, '\0', used) != NULL)
        report_error(report, LR_BAD_INPUT, "%s is no text of at most 64 MiB", text);
    else
        return list;
    free(list);
    return NULL;
}

/* Skips blanks, commas and comments. */
static const char *skip(const char *text)
{
    for (; *text == ',' || isspace((unsigned char)*text) || *text == '#'; text++) {
        if (*text == '#') {
            text += strcspn(text, "\n");
            if (*text == '\0') break;
        }
    }
    return text;
}

/* Reads "0-18,3-20", or a file with lines such as "0 18". */
static lr_status parse_pairs(const struct setup *setup, const char *text, int64_t **pairs, int64_t *count)
{
    for (text = skip(text); *text != '\0'; text = skip(text)) {
        int64_t i = 0, j = 0;
        const char *start = text;
        bool good = take_number(&text, &i);
        if (good && *text == '-')
            text++;
        else
            text += strspn(text, " \t");
        good = good && take_number(&text, &j);
        if (!good) {
            return report_error(setup->report, LR_USAGE,
                                "--pairs: \"%.20s\" is no pair of modules: 0-18,3-20 is a list of "
                                "two, and so are lines 0 18 and 3 20 in a file",
                                start);
        }
        const int num_modules = setup->scanner->num_modules;
        if (i >= num_modules || j >= num_modules) {
            return report_error(setup->report, LR_USAGE,
                                "--pairs: module %lld does not exist: the scanner has modules 0 to %d",
                                (long long)(i > j ? i : j), num_modules - 1);
        }
        const int64_t pair = lr_lors_pair(setup->lors, (int)i, (int)j);
        if (pair < 0) {
            return report_error(setup->report, LR_USAGE,
                                "--pairs: modules %lld and %lld are not in coincidence: loraster "
                                "scanner show says which rules hold",
                                (long long)i, (long long)j);
        }
        if (!append(pairs, count, pair)) return report_error(setup->report, LR_FAILED, "no memory for a list of pairs");
    }
    return LR_OK;
}

/* Reads "12,40,100:200", or the same in a file. */
static lr_status parse_lors(const struct setup *setup, const char *text, int64_t **lors, int64_t *count)
{
    for (text = skip(text); *text != '\0'; text = skip(text)) {
        int64_t first = 0, end = 0;
        const char *start = text;
        bool good = take_number(&text, &first);
        end = first + 1;
        if (good && *text == ':') {
            text++;
            good = take_number(&text, &end);
        }
        if (!good || end > setup->lors->count || end <= first) {
            return report_error(setup->report, LR_USAGE,
                                "--lors: \"%.20s\" makes no sense: LORs are 0 to %lld, given as "
                                "12,40 or as 100:200, which is 100 to 199",
                                start, (long long)setup->lors->count - 1);
        }
        for (; first < end; first++)
            if (!append(lors, count, first))
                return report_error(setup->report, LR_FAILED, "no memory for a list of LORs");
    }
    return LR_OK;
}

lr_status matrix_choice_open(struct matrix_choice *choice, struct setup *setup, struct cli_args *args)
{
    if (choice->region != NULL && strncmp(choice->region, "box:", 4) != 0 &&
        strncmp(choice->region, "sphere:", 7) != 0) {
        if (access(choice->region, F_OK) != 0 && strpbrk(choice->region, ": ") != NULL) {
            return report_error(setup->report, LR_USAGE,
                                "--region %s: regions are box:X0,Y0,Z0,X1,Y1,Z1, sphere:X,Y,Z,R (mm) or an image",
                                choice->region);
        }
        choice->mask = setup_read_image(setup, args, choice->region);
        if (choice->mask == NULL) return report_reason(args->report);
    }
    CLI_TRY(setup_grid(setup, args, choice->mask != NULL ? &choice->mask->grid : NULL));
    if (choice->pairs != NULL) {
        int64_t *pairs = NULL, count = 0;
        char *text = open_list(setup->report, choice->pairs, "-,");
        lr_status status = text != NULL ? parse_pairs(setup, text, &pairs, &count) : LR_BAD_INPUT;
        if (status == LR_OK && count == 0)
            status = report_error(setup->report, LR_USAGE, "--pairs %s names no pair", choice->pairs);
        if (status == LR_OK) {
            count = matrix_sort_numbers(pairs, count);
            choice->part_pairs = malloc((size_t)count * sizeof(*choice->part_pairs));
            if (choice->part_pairs == NULL)
                status = report_error(setup->report, LR_FAILED, "no memory for a list of pairs");
        }
        for (int64_t k = 0; status == LR_OK && k < count; k++) choice->part_pairs[k] = (int32_t)pairs[k];
        choice->part = (lr_selection){.pairs = choice->part_pairs, .num_pairs = count};
        free(pairs);
        free(text);
        CLI_TRY(status);
    }
    if (choice->lors != NULL) {
        int64_t count = 0;
        char *text = open_list(setup->report, choice->lors, ":,");
        lr_status status = text != NULL ? parse_lors(setup, text, &choice->part_lors, &count) : LR_BAD_INPUT;
        if (status == LR_OK && count == 0)
            status = report_error(setup->report, LR_USAGE, "--lors %s names no LOR", choice->lors);
        if (status == LR_OK) count = matrix_sort_numbers(choice->part_lors, count);
        choice->part = (lr_selection){.lors = choice->part_lors, .num_lors = count};
        free(text);
        CLI_TRY(status);
    }

    const int64_t num_voxels = lr_grid_num_voxels(&setup->grid);
    if (choice->region != NULL) {
        /* The region has the voxels whose value in the image is above 0, or whose centres are in the box or sphere. */
        const char *text = choice->region;
        const bool is_sphere = strncmp(text, "sphere:", 7) == 0;
        const int count = choice->mask != NULL ? 0 : is_sphere ? 4 : 6;
        double numbers[6] = {0}; /* two corners, or centre and radius */
        if (choice->mask == NULL) text += is_sphere ? 7 : 4;
        for (int k = 0; k < count; k++) {
            char *end = NULL;
            numbers[k] = strtod(text, &end);
            if (end == text || *end != (k + 1 < count ? ',' : '\0')) {
                return report_error(setup->report, LR_USAGE,
                                    "--region %s makes no sense: box:X0,Y0,Z0,X1,Y1,Z1 and sphere:X,Y,Z,R "
                                    "are in mm, anything else names an image",
                                    choice->region);
            }
            text = end + 1;
        }
        for (int64_t row = 0; row < num_voxels; row++) {
            double at[3], squared = 0.0;
            bool in_box = true;
            lr_grid_voxel_centre(&setup->grid, row, at);
            for (int k = 0; k < 3; k++) {
                const double from = at[k] - numbers[k];
                squared += from * from;
                in_box = in_box && from >= 0.0 && at[k] <= numbers[3 + k];
            }
            const bool inside = choice->mask != NULL ? choice->mask->values[row] > 0.0f
                                : is_sphere          ? squared <= numbers[3] * numbers[3]
                                                     : in_box;
            if (inside && !append(&choice->voxels, &choice->num_voxels, row))
                return report_error(setup->report, LR_FAILED, "no memory for the voxels of a region");
        }
        if (choice->num_voxels > 0) return LR_OK;
        double first[3], last[3];
        lr_grid_voxel_centre(&setup->grid, 0, first);
        lr_grid_voxel_centre(&setup->grid, num_voxels - 1, last);
        return report_error(setup->report, LR_USAGE,
                            "--region %s holds no voxel centre of the grid: they lie from (%g, %g, %g) to (%g, %g, %g) "
                            "mm",
                            choice->region, first[0], first[1], first[2], last[0], last[1], last[2]);
    }

    const char *text = choice->rows;
    choice->begin = 0;
    choice->end = num_voxels;
    if (text != NULL && !(take_number(&text, &choice->begin) && *text++ == ':' && take_number(&text, &choice->end) &&
                          *text == '\0' && choice->begin < choice->end && choice->end <= num_voxels)) {
        return report_error(setup->report, LR_USAGE,
                            "--rows %s makes no sense: FIRST:LAST is rows FIRST to LAST - 1, and "
                            "the grid has rows 0:%lld",
                            choice->rows, (long long)num_voxels);
    }
    return LR_OK;
}

void matrix_choice_finish(struct matrix_choice *choice)
{
    lr_image_destroy(choice->mask);
    free(choice->voxels);
    free(choice->part_pairs);
    free(choice->part_lors);
    *choice = (struct matrix_choice){.by_lor = false};
}

/* --- factors --- */

const struct cli_option matrix_factor_options[] = {
    {"--efficiencies", "FILE", "one number per crystal (.npy or text), multiplied in", NULL},
    {LOR_FACTORS_MU_AS},
    {0},
};

/* Adds a file to the description of the factors, such as "efficiencies FILE". */
static void say(struct matrix_factors *factors, const char *what, const char *path)
{
    const size_t used = strlen(factors->words);
    snprintf(factors->words + used, sizeof(factors->words) - used, "%s%s %s", used > 0 ? ", " : "", what, path);
}

static void add_input(struct matrix_factors *factors, const char *name, const void *bytes, size_t num_bytes)
{
    factors->inputs[factors->num_inputs++] = (lr_matrix_input){name, bytes, (int64_t)num_bytes};
}

lr_status matrix_factors_read(struct matrix_factors *factors, struct cli_args *args, struct setup *setup)
{
    const char *path = args_text(args, "--efficiencies"), *mu = args_text(args, "--mu");
    const enum mu_way way = lor_factors_mu_as(args);
    CLI_TRY(args->status);
    if (path != NULL) {
        CLI_TRY(lor_factors_efficiencies(setup, path));
        say(factors, "efficiencies", path);
    }
    if (mu != NULL) say(factors, way == MU_FACTORS ? "attenuation factors" : "attenuation along lines", mu);
    CLI_TRY(lor_factors_give(setup, way));
    if (factors->words[0] == '\0') strcpy(factors->words, "none");

    /* The writer gets the factors' values and not only the names of their files, because a file may have changed when a
     * matrix is resumed. */
    const float *efficiencies = setup->factors.efficiencies;
    if (efficiencies != NULL)
        add_input(factors, "efficiencies", efficiencies, (size_t)setup->scanner->num_crystals * sizeof(*efficiencies));
    if (setup->mu != NULL) {
        const lr_grid *grid = &setup->mu->grid;
        add_input(factors, "size of the attenuation map", grid->size, sizeof(grid->size));
        add_input(factors, "voxels of the attenuation map", grid->voxel_mm, sizeof(grid->voxel_mm));
        add_input(factors, "origin of the attenuation map", grid->origin_mm, sizeof(grid->origin_mm));
        add_input(factors, "values of the attenuation map", setup->mu->values,
                  (size_t)lr_grid_num_voxels(grid) * sizeof(*setup->mu->values));
    }
    return LR_OK;
}

/* --- rows that are kept --- */

lr_status retained_row_add(struct report *report, struct retained_row *row, int64_t lor, double probability)
{
    int64_t room = row->room;
    if (!common_grow(&row->lor, &room, row->count + 1, sizeof(*row->lor)) ||
        !common_grow(&row->probability, &row->room, row->count + 1, sizeof(*row->probability)))
        return report_error(report, LR_FAILED, "no memory for a row of %lld elements", (long long)row->count + 1);
    row->lor[row->count] = lor;
    row->probability[row->count++] = probability;
    return LR_OK;
}

/* The row that `take` fills. */
struct delivery {
    struct report *report;
    struct retained_row *row;
};

static lr_status take(void *user, const lr_row *delivered)
{
    const struct delivery *delivery = user;
    retained_row_finish(delivery->row);
    for (int64_t k = 0; k < delivered->count; k++)
        CLI_TRY(retained_row_add(delivery->report, delivery->row, delivered->lor[k], delivered->probability[k]));
    return LR_OK;
}

lr_status retained_row_take(const struct setup *setup, lr_operator *op, struct retained_row *row)
{
    *row = (struct retained_row){0};
    struct delivery delivery = {setup->report, row};
    const lr_status status = lr_operator_rows(op, 0, 1, &(lr_row_sink){take, &delivery});
    if (status != LR_OK) retained_row_finish(row);
    return status;
}

lr_status retained_row_restrict(const struct setup *setup, const struct retained_row *whole, int module,
                                struct retained_row *row)
{
    lr_status status = LR_OK;
    *row = (struct retained_row){0};
    for (int64_t k = 0; status == LR_OK && k < whole->count; k++)
        if (lr_lors_primary(setup->lors, whole->lor[k], setup->grid.origin_mm) == module)
            status = retained_row_add(setup->report, row, whole->lor[k], whole->probability[k]);
    if (status != LR_OK) retained_row_finish(row);
    return status;
}

lr_row retained_row_view(const struct retained_row *row)
{
    return (lr_row){.count = row->count, .lor = row->lor, .probability = row->probability};
}

void retained_row_finish(struct retained_row *row)
{
    free(row->lor);
    free(row->probability);
    *row = (struct retained_row){0};
}

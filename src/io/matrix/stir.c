/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Matrix rows of LORs as STIR's ProjMatrixByBinFromFile reads them. NAME.hpm names NAME.pm, which holds the elements
 * bin by bin, and templates of projection data and image (docs/formats/matrix.md). STIR takes these names relative to
 * its working folder. */
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "io/files/number_type.h"
#include "io/images/formats.h"
#include "io/lor_data/projdata.h"
#include "io/matrix/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_VOXELS = 10000, MOST_SIZE = 32767, BIN_BYTES = 20, ELEMENT_BYTES = 10 };

/* The files, in the order in which they are put in place. */
enum { ELEMENTS = 0, BINS_DATA, BINS, IMAGE_DATA, IMAGE, HEADER, NUM_FILES };

static const char *const endings[NUM_FILES] = {".pm",         "_template.s",  "_template.hs",
                                               "_template.v", "_template.hv", ".hpm"};

struct stir {
    const lr_matrix_writer_params *params;
    struct lr_projdata projdata;
    int32_t (*places)[2]; /* owned */
    char *names[NUM_FILES];
    struct lr_output outputs[NUM_FILES];
    int num_open;
    unsigned char *record; /* owned: room for one bin */
};

/* --- making --- */

static lr_status write_text(struct lr_output *output, const char *text)
{
    return lr_output_write(output, text, strlen(text));
}

static void release(struct stir *stir)
{
    for (int k = 0; k < NUM_FILES; k++) free(stir->names[k]);
    lr_projdata_finish(&stir->projdata);
    lr_free_all(stir->places, stir->record, stir);
}

static void abandon(void *self)
{
    struct stir *stir = self;
    for (int k = 0; k < stir->num_open; k++) lr_output_abandon(&stir->outputs[k]);
    release(stir);
}

static lr_status prepare(struct stir *stir)
{
    const lr_matrix_writer_params *params = stir->params;
    const lr_log *log = params->log;
    if (params->path == NULL || !lr_path_ends(params->path, ".hpm")) {
        return lr_error(log, LR_USAGE, "%s: the name of STIR's matrix files must end in .hpm",
                        params->path ? params->path : "(none)");
    }
    if (!params->by_lor || params->grid == NULL)
        return lr_error(log, LR_USAGE, "%s: STIR's matrix files hold rows of LORs on a grid of voxels", params->path);
    for (int k = 0; k < 3; k++) {
        if (params->grid->size[k] > MOST_SIZE) {
            return lr_error(log, LR_BAD_INPUT, "%s cannot hold %d voxels along %c: STIR's matrix files allow %d",
                            params->path, params->grid->size[k], "xyz"[k], MOST_SIZE);
        }
    }

    LR_TRY(lr_projdata_create(&stir->projdata, params->lors, log));
    stir->places = lr_projdata_places(&stir->projdata, params->lors->scanner, log);
    stir->record = lr_alloc(BIN_BYTES + MOST_VOXELS * ELEMENT_BYTES, 1, "a bin", log);
    if (stir->places == NULL || stir->record == NULL) return LR_FAILED;
    for (int k = 0; k < NUM_FILES; k++) {
        stir->names[k] = lr_path_with_ending(params->path, endings[k], log);
        if (stir->names[k] == NULL) return LR_FAILED;
        LR_TRY(lr_output_open(&stir->outputs[k], stir->names[k], log));
        stir->num_open++;
    }
    /* Projection data without bins. STIR needs the header, but reads nothing from the data file. */
    char *text = lr_projdata_print(&stir->projdata, params->lors->scanner, lr_path_name(stir->names[BINS_DATA]), log);
    lr_status status = text != NULL ? write_text(&stir->outputs[BINS], text) : LR_FAILED;
    free(text);
    LR_TRY(status);

    /* An image of ones. A reconstruction can also start from this image. */
    struct lr_text header = {.what = "a header", .log = log};
    lr_interfile_print_stir(&header, lr_path_name(stir->names[IMAGE_DATA]), params->grid);
    lr_image *ones = !header.failed ? lr_image_create(params->grid, log) : NULL;
    status = LR_FAILED;
    if (ones != NULL) {
        const int64_t count = lr_grid_num_voxels(&ones->grid);
        for (int64_t k = 0; k < count; k++) ones->values[k] = 1.0f;
        status = write_text(&stir->outputs[IMAGE], header.chars);
        if (status == LR_OK) status = lr_voxels_write(&stir->outputs[IMAGE_DATA], ones, (bool[3]){false, false, false});
    }
    free(header.chars);
    lr_image_destroy(ones);
    LR_TRY(status);

    const char *const parts[] = {"Projection Matrix By Bin From File Parameters :=\n"
                                 "Version := 1.0\n"
                                 "symmetries type := none\n"
                                 "template proj data filename := ",
                                 stir->names[BINS],
                                 "\ntemplate density filename := ",
                                 stir->names[IMAGE],
                                 "\ndata_filename := ",
                                 stir->names[ELEMENTS],
                                 "\nEnd Projection Matrix By Bin From File Parameters :=\n"};
    for (size_t k = 0; k < sizeof(parts) / sizeof(parts[0]); k++) LR_TRY(write_text(&stir->outputs[HEADER], parts[k]));
    return LR_OK;
}

static void *create(const lr_matrix_writer_params *params)
{
    struct stir *stir = lr_alloc(1, sizeof(*stir), "a matrix writer", params->log);
    if (stir == NULL) return NULL;
    stir->params = params;
    if (prepare(stir) != LR_OK) {
        abandon(stir);
        return NULL;
    }
    return stir;
}

/* --- rows --- */

/* Empty rows are left out, because STIR takes missing bins as empty. */
static lr_status take(void *self, const lr_row *row)
{
    struct stir *stir = self;
    struct lr_projdata_bin bin;
    if (row->count == 0) return LR_OK;
    if (row->count > MOST_VOXELS) {
        return lr_error(stir->params->log, LR_BAD_INPUT,
                        "%s: LOR %lld has elements in %lld voxels, and STIR reads at most %d a bin: "
                        "use larger voxels, a smaller grid or a threshold",
                        stir->params->path, (long long)row->row, (long long)row->count, MOST_VOXELS);
    }
    const lr_scanner *scanner = stir->params->lors->scanner;
    const lr_lor lor = lr_lors_describe(stir->params->lors, row->row);
    const int32_t crystals[2] = {
        scanner->first_crystal[lor.module_i] + lor.p + lor.q * scanner->modules[lor.module_i].crystals[0],
        scanner->first_crystal[lor.module_j] + lor.r + lor.s * scanner->modules[lor.module_j].crystals[0]};

    if (!lr_projdata_bin_of(&stir->projdata, (const int32_t(*)[2])stir->places, crystals, &bin)) {
        return lr_error(stir->params->log, LR_BAD_INPUT,
                        "%s: LOR %lld has elements and no bin: it joins crystals in the same place of different rings",
                        stir->params->path, (long long)row->row);
    }
    unsigned char *at = stir->record;
    at = lr_put_whole(at, (uint32_t)bin.segment, 4);
    at = lr_put_whole(at, (uint32_t)bin.view, 4);
    at = lr_put_whole(at, (uint32_t)bin.axial, 4);
    at = lr_put_whole(at, (uint32_t)bin.t, 4);
    at = lr_put_whole(at, (uint32_t)row->count, 4);
    const int *size = stir->params->grid->size;
    for (int64_t n = 0; n < row->count; n++) {
        /* STIR counts x and y from -(n/2) and z from 0, each in the direction opposite to this program's. */
        const int64_t voxel = row->lor[n], x = voxel % size[0], y = voxel / size[0] % size[1];
        const int64_t z = voxel / size[0] / size[1];
        at = lr_put_whole(at, (uint32_t)(size[2] - 1 - z), 2);
        at = lr_put_whole(at, (uint32_t)(size[1] - 1 - y - size[1] / 2), 2);
        at = lr_put_whole(at, (uint32_t)(size[0] - 1 - x - size[0] / 2), 2);
        at = lr_put_float(at, (float)row->probability[n]);
    }
    return lr_output_write(&stir->outputs[ELEMENTS], stir->record, (size_t)(at - stir->record));
}

static lr_status finish(void *self)
{
    struct stir *stir = self;
    struct lr_output *outputs[NUM_FILES];
    for (int k = 0; k < NUM_FILES; k++) outputs[k] = &stir->outputs[k];
    const lr_status status = lr_output_finish_all(outputs, NUM_FILES);
    release(stir);
    return status;
}

const struct lr_matrix_fns lr_matrix_stir_fns = {create, take, finish, abandon};

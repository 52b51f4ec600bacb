/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Lists of elements, as passes append to them: a head whose first word is their number, then point
 * or image, LOR, bits of the weight, and a word that does not matter here. */
#ifndef LR_TESTS_RENDER_ALONE_ELEMENTS_H
#define LR_TESTS_RENDER_ALONE_ELEMENTS_H

#include "alone.h"

struct alone_elements {
    struct gl_buffer *buffer;
    int64_t capacity;
    int num_points; /* all sample points of all voxels, those of a voxel one after the other */
};

static inline struct alone_elements alone_elements_open(struct alone *alone)
{
    const int64_t capacity = 1 << 20;
    return (struct alone_elements){alone_buffer(alone, 16 + 16 * capacity, NULL), capacity,
                                   (int)alone->num_voxels * alone->per_row};
}

/* Adds the elements to the rows that they belong to: those of the points or images for which `voxel_of` says so (NULL:
 * points in turn). Also destroys the list. */
static inline void alone_elements_compare(struct alone *alone, const char *what, struct alone_elements *elements,
                                          const int64_t *voxel_of)
{
    double *found = alone_found(alone);
    uint32_t count;
    alone_check(alone, gl_buffer_read(elements->buffer, 0, 4, &count) == LR_OK);
    assert_true(count <= elements->capacity);
    uint32_t(*list)[4] = kept(count, sizeof(*list));
    alone_check(alone, count == 0 || gl_buffer_read(elements->buffer, 16, count * 16LL, list) == LR_OK);
    for (uint32_t k = 0; k < count; k++) {
        const int64_t voxel = voxel_of != NULL ? voxel_of[list[k][0]] : list[k][0] / alone->per_row;
        float weight;
        memcpy(&weight, &list[k][2], sizeof(weight));
        assert_true(voxel < alone->num_voxels && list[k][1] < alone->num_values);
        found[voxel * alone->num_values + list[k][1]] += (double)weight / alone->per_row;
    }
    alone_compare(alone, what, found);
    gl_buffer_destroy(elements->buffer);
}

#endif

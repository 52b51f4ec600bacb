/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The header of NIfTI-1 images, byte for byte as files have it.
 * source: the NIfTI-1 data format, nifti1.h (https://nifti.nimh.nih.gov/nifti-1) */
#pragma once

#include <stdint.h>

enum nifti_datatype {
    NIFTI_UINT8 = 2,
    NIFTI_INT16 = 4,
    NIFTI_INT32 = 8,
    NIFTI_FLOAT32 = 16,
    NIFTI_FLOAT64 = 64,
    NIFTI_RGB24 = 128,
    NIFTI_INT8 = 256,
    NIFTI_UINT16 = 512,
    NIFTI_UINT32 = 768,
    NIFTI_INT64 = 1024,
    NIFTI_UINT64 = 1280
};

/* Units of length, the low three bits of xyzt_units, and of time, the next three. */
enum nifti_unit { NIFTI_METRE = 1, NIFTI_MILLIMETRE = 2, NIFTI_MICRON = 3, NIFTI_LENGTH_BITS = 7, NIFTI_SECOND = 8 };
enum { NIFTI_MILLISECOND = 16, NIFTI_MICROSECOND = 24, NIFTI_TIME_BITS = 56 };

enum { NIFTI_SCANNER_ANATOMY = 1 /* value of qform_code and sform_code: the scanner's frame */ };

/* Field names are those of the standard. An array may combine several fields of the standard. */
struct nifti_header {
    int32_t sizeof_hdr; /* 348 */
    char unused_1[34];
    char regular; /* 'r' */
    char dim_info;
    int16_t dim[8]; /* [0]: number of axes; [1] to [7]: sizes of the axes */
    char unused_2[12];
    int16_t intent_code;
    int16_t datatype, bitpix;
    char unused_3[2];
    float pixdim[8]; /* [0]: qfac, the handedness of the qform; [1] to [7]: steps along the axes */
    float vox_offset;
    float scl_slope, scl_inter;
    char unused_4[3];
    char xyzt_units;
    char unused_5[24];
    char descrip[80];
    char unused_6[24];
    int16_t qform_code, sform_code;
    float quatern[3]; /* b, c, d */
    float qoffset[3];
    float srow[3][4];
    char unused_7[16];
    char magic[4];
};

_Static_assert(sizeof(struct nifti_header) == 348, "the format's layout");

/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Resolution in image space: a stationary Gaussian G between images and a backend, A G forward and
 * G A^T back. docs/method/common.md, "Resolution in image space". */
#ifndef LR_OPERATOR_PSF_H
#define LR_OPERATOR_PSF_H

#include <lr/operator.h>

struct lr_psf {
    bool is_on;
    int size[3];
    int reach[3];                            /* of each axis in voxels; 0 = it is left alone */
    double weights[3][LR_CONVOLUTION_REACH]; /* [axis][0 .. reach], which sum to 1 on both sides */
    lr_vector scratch[2];                    /* [num_voxels]; made where images are */
    const lr_log *log;
};

void lr_psf_finish(struct lr_psf *psf);

/* *blurred is G image: `image` itself without a resolution, else one of the scratch vectors, until the
 * next call. */
lr_status lr_psf_blur(struct lr_psf *psf, const lr_vector *image, const lr_vector **blurred);

/* image becomes G image. */
lr_status lr_psf_apply(struct lr_psf *psf, lr_vector *image);

/* errors: LR_USAGE where there is a resolution, with which `what` cannot be had. */
lr_status lr_psf_refuse(const struct lr_psf *psf, const char *what);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Projections with invariant symmetric kernels are convolutions. They are compared with convolutions by FFTW, with
 * padding so that nothing wraps around (paper 1 of lr/direct.h, section 5.2 and figure 5). */
#include "direct/cases.h"

#include "base/vec.h"

#include <fftw3.h>

enum { NX = 40, NY = 40, NZ = 13 };

/* Index in the padded array; negative indices are at its end. */
static int64_t wrapped(int x, int y, int z)
{
    return (x + 2 * NX) % (2 * NX) + 2 * NX * ((y + 2 * NY) % (2 * NY) + (int64_t)2 * NY * ((z + 2 * NZ) % (2 * NZ)));
}

/* Samples of the Gaussian over the whole padding, or only inside the support; sum 1. */
static void fill_kernel(double *kernel, const lr_view *view, const double fwhm_mm[3], double support)
{
    double axes[3][3], sum = 0;
    lr_view_axes(view, axes);
    for (int k = 0; k < 8 * NX * NY * NZ; k++) kernel[k] = 0;
    for (int z = 1 - NZ; z < NZ; z++) {
        for (int y = 1 - NY; y < NY; y++) {
            for (int x = 1 - NX; x < NX; x++) {
                const double d[3] = {4.0 * x, 4.0 * y, 4.0 * z};
                double squares = 0;
                for (int i = 0; i < 3; i++) {
                    const double t = vec_dot(d, axes[i]) * 2.3548200450309493 / fwhm_mm[i];
                    squares += t * t;
                }
                if (squares <= support * (1 + 1e-9)) sum += kernel[wrapped(x, y, z)] = exp(-0.5 * squares);
            }
        }
    }
    for (int k = 0; k < 8 * NX * NY * NZ; k++) kernel[k] /= sum;
}

struct comparison {
    double relative_l2; /* compared with the truncated kernel */
    double largest;     /* compared with the whole Gaussian, relative to its maximum */
};

static void compare(const double *got, const double *expected, double *relative_l2, double *largest)
{
    double square = 0, norm = 0, most = 0, peak = 0;
    for (int k = 0; k < NX * NY * NZ; k++) {
        const double value = expected[wrapped(k % NX, k / NX % NY, k / NX / NY)] / (8.0 * NX * NY * NZ);
        square += (got[k] - value) * (got[k] - value);
        norm += value * value;
        most = fmax(most, fabs(got[k] - value));
        peak = fmax(peak, value);
    }
    *relative_l2 = sqrt(square / norm);
    *largest = most / peak;
}

static struct comparison against_fftw(const lr_view *view, double support, bool points, bool forward)
{
    const lr_grid grid = lr_grid_centred((const int[3]){NX, NY, NZ}, (const double[3]){4, 4, 4});
    const lr_direct_kernel kernel = {.support = support, .resolution = {.tof_ps = 150, .radial_mm = 12, .axial_mm = 8}};
    const double fwhm_mm[3] = {lr_tof_mm(150), 12, 8};
    struct comparison result;
    double unused;
    lr_operator *direct = kept_direct(
        (lr_direct_params){.grid = &grid, .views = view, .num_views = 1, .kernel = kernel, .backend = test_backend});
    double *image = fftw_alloc_real(NX * NY * NZ), *got = fftw_alloc_real(NX * NY * NZ);
    double *padded = fftw_alloc_real(8 * NX * NY * NZ), *taps = fftw_alloc_real(8 * NX * NY * NZ);
    double *expected = fftw_alloc_real(8 * NX * NY * NZ);
    /* Random values, or three points as in figure 5. */
    uint64_t seed = 5;
    for (int k = 0; k < NX * NY * NZ; k++) image[k] = points ? 0 : (double)(float)test_random(&seed);
    for (int n = 0; points && n < 3; n++) image[NX / 2 + NX * (8 + 12 * n + NY * (NZ / 2))] = 1;
    assert_ok(view_doubles(direct, forward, 0, image, got));
    for (int whole = 0; whole < 2; whole++) {
        memset(padded, 0, 8 * NX * NY * NZ * sizeof(*padded));
        for (int k = 0; k < NX * NY * NZ; k++) padded[wrapped(k % NX, k / NX % NY, k / NX / NY)] = image[k];
        fill_kernel(taps, view, fwhm_mm, whole ? HUGE_VAL : support);
        /* The convolution by transforms of the padded image and the taps. */
        const int size[3] = {2 * NZ, 2 * NY, 2 * NX};
        const int64_t bins = (int64_t)2 * NZ * 2 * NY * (NX + 1);
        fftw_complex *a = fftw_alloc_complex((size_t)bins), *b = fftw_alloc_complex((size_t)bins);
        fftw_plan plan_a = fftw_plan_dft_r2c(3, size, padded, a, FFTW_ESTIMATE);
        fftw_plan plan_b = fftw_plan_dft_r2c(3, size, taps, b, FFTW_ESTIMATE);
        fftw_execute(plan_a);
        fftw_execute(plan_b);
        for (int64_t k = 0; k < bins; k++) {
            const double re = a[k][0] * b[k][0] - a[k][1] * b[k][1];
            a[k][1] = a[k][0] * b[k][1] + a[k][1] * b[k][0];
            a[k][0] = re;
        }
        fftw_plan plan_out = fftw_plan_dft_c2r(3, size, a, expected, FFTW_ESTIMATE);
        fftw_execute(plan_out);
        fftw_destroy_plan(plan_out);
        fftw_destroy_plan(plan_b);
        fftw_destroy_plan(plan_a);
        fftw_free(b);
        fftw_free(a);
        compare(got, expected, whole ? &unused : &result.relative_l2, whole ? &result.largest : &unused);
    }
    fftw_free(expected);
    fftw_free(taps);
    fftw_free(padded);
    fftw_free(got);
    fftw_free(image);
    return result;
}

static void is_fftws_convolution_with_the_same_kernel(void **state)
{
    for (int v = 0; v < NUM_ANGLES; v++) {
        for (int direction = 0; direction < 2; direction++) {
            const struct comparison found = against_fftw(&case_views[v], v % 2 ? 8.9 : 9, false, direction == 0);
            assert_true(found.relative_l2 < (test_backend_is("cpu") ? 1e-12 : 1e-6));
        }
    }
}

/* The issue demands 1 % at k^2 = 27, where 6e-6 of the Gaussian is cut off. At k = 3 the kernel's peak is 3 % higher
 * than the Gaussian's: this is reported, and bounded by 1 / 0.9707 with an allowance for the voxels. */
static void is_the_whole_gaussian_nearly(void **state)
{
    for (int v = 0; v < NUM_ANGLES; v += 3) {
        const double wide = against_fftw(&case_views[v], 27, true, true).largest;
        const double narrow = against_fftw(&case_views[v], 9, true, true).largest;
        print_message("azimuth %g, tilt %g: %.4f %% of the maximum at k^2 = 27, %.2f %% at 9\n",
                      case_views[v].azimuth_deg, case_views[v].tilt_deg, 100 * wide, 100 * narrow);
        assert_all(wide < 0.01, narrow < 0.04);
    }
}

usable_main(case_is_usable(argc, argv), CASE(is_fftws_convolution_with_the_same_kernel),
            CASE(is_the_whole_gaussian_nearly))

/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Data, additive term, initial image and weights of a prior in the memory of a device give the same image as on the
 * host, and are not copied to the host. Argument: the backend, at whose place the vectors are; or `native`, with
 * vectors at an OpenGL place; or `cuda`, with vectors at a CUDA place and the backend compute on the same device. */
#include "common/bindings.h"
#include "ring.h"

static struct given {
    lr_place *place; /* place of the vectors */
    float kappa[NUM_VOXELS], start[NUM_VOXELS];
    lr_vector weights, initial; /* vectors of these arrays */
} given;

static int give(void **state)
{
    const bool is_cuda = test_backend_is("cuda");
    const char *backend = is_cuda ? "compute" : test_backend;
    session_init(backend);
    lr_operator_params params = fixture_params(&s.fixture, backend, &s.log.log);
    params.rays = test_backend_is("raster") ? 1 : 4; /* software draws each of them */
    s.op = keep(lr_operator_create(&params));
    lr_place *own = lr_operator_place(s.op);
    assert_true((own == NULL) == (strcmp(backend, "native") == 0));
    given.place = keep(own != NULL && !is_cuda
                           ? lr_place_keep(own)
                           : lr_place_open(&(lr_place_params){.kind = is_cuda ? LR_PLACE_CUDA : LR_PLACE_GL}));
    for (int v = 0; v < NUM_VOXELS; v++) {
        given.kappa[v] = (float)(0.75 + 0.25 * cos(v));
        given.start[v] = (float)(2.0 + sin(v));
    }
    given.weights = lr_vector_of_floats(given.kappa, NUM_VOXELS);
    given.initial = lr_vector_of_floats(given.start, NUM_VOXELS);
    return 0;
}

static lr_recon_params recon_params(int iterations, int subsets)
{
    return filled(lr_recon_params, .op = s.op, .data = &s.counts, .additive = &s.terms, .initial = &given.initial,
                  .iterations = iterations, .subsets = subsets, .log = &s.log.log);
}

static lr_vector copy_to(const lr_vector *from, lr_place *place, lr_precision precision)
{
    lr_vector copy = kept_vector(place, from->count, precision);
    assert_ok(lr_vector_copy(from, &copy));
    return copy;
}

/* Traffic between the host and the places of the vectors and of the operator. */
static lr_traffic crossed(void)
{
    lr_traffic traffic = lr_place_get_info(given.place).traffic;
    lr_place *other = lr_operator_place(s.op);
    if (other != NULL && other != given.place) {
        const lr_traffic more = lr_place_get_info(other).traffic;
        traffic.to_device += more.to_device;
        traffic.to_host += more.to_host;
    }
    return traffic;
}

/* No iteration copies anything to the device, and only sums of some vectors are copied back. */
static lr_status check_traffic(void *user, const lr_iteration *done)
{
    assert_int_equal(done->traffic.to_device, 0);
    assert_true(done->traffic.to_host < s.data->count);
    return LR_OK;
}

/* A few updates, whose sums over LORs and voxels may be added in another order. */
static void check_image(void)
{
    const double off = difference(s.other, s.image);
    if (!(off < 2e-6)) fail_msg("the images differ by %g of the largest voxel", off);
}

/* Copies the vectors of the params from the host to a place, reconstructs there, checks the image, and returns the
 * traffic. */
static lr_traffic reconstruct_from(lr_recon_params params, lr_place *place, lr_precision precision)
{
    lr_vector data = copy_to(params.data, place, precision), additive, initial, kappa;
    lr_vector image = kept_vector(place, NUM_VOXELS, precision);
    lr_rdp prior;
    params.data = &data;
    if (params.additive != NULL) {
        additive = copy_to(params.additive, place, precision);
        params.additive = &additive;
    }
    if (params.initial != NULL) {
        initial = copy_to(params.initial, place, precision);
        params.initial = &initial;
    }
    if (params.prior != NULL) {
        prior = *params.prior;
        kappa = copy_to(prior.kappa, place, precision);
        prior.kappa = &kappa;
        params.prior = &prior;
    }
    const lr_traffic before = crossed();
    assert_ok(lr_recon(&params, &image));
    const lr_traffic after = crossed();
    assert_ok(lr_vector_copy(&image, &s.other_vector));
    check_image();
    return (lr_traffic){after.to_device - before.to_device, after.to_host - before.to_host};
}

/* Runs with one subset, with subsets of consecutive pairs, of other pairs, and of interleaved LORs. If the operator
 * is on a device, only sums are copied to or from the host: no image, LOR value, sensitivity or start image. */
static void test_vectors_at_a_place_are_those_of_the_host(void **state)
{
    int32_t subset_of[2][MOST_SUBSETS * 64];
    const lr_lors *lors = s.fixture.lors;
    assert_true(lors->num_pairs <= MOST_SUBSETS * 64);
    for (int64_t pair = 0; pair < lors->num_pairs; pair++) {
        subset_of[0][pair] = (int32_t)(pair * 3 / lors->num_pairs);
        subset_of[1][pair] = (int32_t)(pair % 3);
    }
    const int64_t value_bytes = lors->count * (int64_t)sizeof(float), image_bytes = NUM_VOXELS * (int64_t)sizeof(float);
    lr_rdp prior = {.beta = 0.01, .gamma = 2.0, .kappa = &given.weights};
    for (int way = 0; way < 8; way++) {
        const int shape = way % 4;
        const bool is_bsrem = way >= 4;
        lr_recon_params params = recon_params(2, shape == 0 ? 1 : shape == 3 ? MOST_SUBSETS : 3);
        params.subset_of = shape == 1 ? subset_of[0] : shape == 2 ? subset_of[1] : NULL;
        params.algorithm = is_bsrem ? LR_ALGORITHM_BSREM : LR_ALGORITHM_OSEM;
        params.relaxation = is_bsrem ? 0.5 : 0.0;
        params.prior = is_bsrem ? &prior : NULL;
        params.iteration = lr_operator_place(s.op) != NULL ? check_traffic : NULL;
        assert_ok(lr_recon(&params, &s.image_vector));
        const lr_traffic found = reconstruct_from(params, given.place, LR_FLOAT32);
        if (lr_operator_place(s.op) == NULL) {
            /* An operator on the host copies the data, the additive term and the images once. */
            assert_in_range(found.to_host, 2 * value_bytes, 2 * value_bytes + 8 * image_bytes);
        } else {
            /* Six numbers for each check, subset and update. */
            const int64_t sums_bytes = LR_VECTOR_NUM_SUMS * (int64_t)sizeof(double);
            assert_ints(found.to_device, 0, found.to_host % sums_bytes, 0);
            assert_in_range(found.to_host, sums_bytes, 64 * sums_bytes);
        }
    }
}

/* Counts are integers, which both precisions represent exactly. */
static void test_both_precisions_and_other_places(void **state)
{
    lr_place *other = keep(lr_place_open(&(lr_place_params){.kind = LR_PLACE_GL, .log = &s.log.log}));
    for (int subsets = 1; subsets <= MOST_SUBSETS; subsets += MOST_SUBSETS - 1) {
        const lr_recon_params params = recon_params(2, subsets);
        assert_ok(lr_recon(&params, &s.image_vector));
        reconstruct_from(params, NULL, LR_FLOAT64);
        reconstruct_from(params, given.place, LR_FLOAT64);
        reconstruct_from(params, other, LR_FLOAT32);
    }
}

/* The additive term has values for all LORs, or only for the LORs with counts, and then also a sum. */
static void test_sparse_data_at_a_place(void **state)
{
    double sum = 0.0;
    float *listed = kept_floats(s.few.count);
    for (int64_t k = 0; k < s.few.count; k++) listed[k] = s.additive[s.sparse->index[k]];
    for (int64_t l = 0; l < s.data->count; l++) sum += s.additive[l];
    const lr_vector few_terms = lr_vector_of_floats(listed, s.few.count);
    for (int subsets = 1; subsets <= MOST_SUBSETS; subsets += MOST_SUBSETS - 1) {
        lr_recon_params params = recon_params(2, subsets);
        give_data(&params, true);
        params.initial = NULL;
        assert_ok(lr_recon(&params, &s.image_vector));
        reconstruct_from(params, given.place, LR_FLOAT32);
        params.additive = &few_terms;
        params.additive_sum = sum;
        reconstruct_from(params, given.place, LR_FLOAT64);
    }
}

/* Other loops accept the same vectors. */
static void test_distributed_and_composed(void **state)
{
    lr_vector data = copy_to(&s.counts, given.place, LR_FLOAT32);
    lr_vector additive = copy_to(&s.terms, given.place, LR_FLOAT64);
    lr_vector initial = copy_to(&given.initial, given.place, LR_FLOAT32);
    const lr_recon_params host = recon_params(3, 0);
    lr_recon_params there = host;
    there.data = &data;
    there.additive = &additive;
    there.initial = &initial;
    assert_ok(lr_recon_distributed(&(lr_distributed_params){.recon = host}, &s.image_vector));
    assert_ok(lr_recon_distributed(&(lr_distributed_params){.recon = there}, &s.other_vector));
    check_image();
    const lr_compose_params composed = {.guesses = &host, .num_guesses = 1, .local_iterations = 2};
    const lr_compose_params composed_there = {.guesses = &there, .num_guesses = 1, .local_iterations = 2};
    const lr_status status = lr_compose(&composed, &s.image_vector);
    if (status == LR_NO_DEVICE) {
        print_message("compositions are skipped: there is no LAPACKE\n");
    } else {
        assert_ok(status, lr_compose(&composed_there, &s.other_vector));
        check_image();
    }
}

/* --- bad input --- */

static void expect(const lr_recon_params *params, lr_status status, const char *words)
{
    assert_fails(lr_recon(params, &s.image_vector), status, &s.log, words);
}

/* A number that is no possible count, in a vector on the device, is reported with its LOR, or with its voxel. */
static void test_bad_input(void **state)
{
    static const struct {
        lr_precision precision;
        double value;
        const char *words;
    } wrong[] = {{LR_FLOAT32, -1.0, "is -1: values must be finite and at least 0"},
                 {LR_FLOAT64, -1e-300, "is -1e-300: values must be"},
                 {LR_FLOAT64, 1e300, "is 1e+300: values must be"},
                 {LR_FLOAT32, NAN, "nan: values must be"}};
    const int64_t lor = s.fixture.lors->offsets[1] + 3 * 20 + 7;
    char words[80];
    snprintf(words, sizeof(words), "LOR %lld (crystal 3, 0 of module", (long long)lor);
    const lr_recon_params plain = {.op = s.op, .data = &s.counts, .log = &s.log.log};
    for (int k = 0; k < length_of(wrong); k++) {
        lr_vector data = copy_to(&s.counts, given.place, wrong[k].precision);
        lr_vector initial = copy_to(&given.initial, given.place, wrong[k].precision);
        lr_vector one = lr_vector_part(&data, lor, 1), voxel = lr_vector_part(&initial, 44, 1);
        assert_ok(lr_vector_fill(&one, wrong[k].value), lr_vector_fill(&voxel, wrong[k].value));
        lr_recon_params params = plain;
        spoilt(params.data = &data, expect(&params, LR_BAD_INPUT, words));
        expect(&params, LR_BAD_INPUT, wrong[k].words);
        params.data = plain.data;
        spoilt(params.additive = &data, expect(&params, LR_BAD_INPUT, "the additive term of LOR"));
        params.additive = NULL;
        spoilt(params.initial = &initial, expect(&params, LR_BAD_INPUT, "voxel 44 of the initial image is"));
        params.initial = NULL;
        params.algorithm = LR_ALGORITHM_BSREM;
        const lr_rdp prior = {.kappa = &initial};
        spoilt(params.prior = &prior, expect(&params, LR_BAD_INPUT, "voxel 44 of the kappa image is"));
    }

    lr_vector data = copy_to(&s.counts, given.place, LR_FLOAT32);
    const lr_vector few = lr_vector_part(&data, 0, 7);
    lr_recon_params params = plain;
    spoilt(params.data = &few, expect(&params, LR_USAGE, "the data has 7 values, the operator"));
    params = plain;
    spoilt(params.initial = &few, expect(&params, LR_USAGE, "the initial image has 7 voxels"));
    params.initial = NULL;
    params.algorithm = LR_ALGORITHM_BSREM;
    const lr_rdp prior = {.kappa = &few};
    spoilt(params.prior = &prior, expect(&params, LR_USAGE, "the kappa image has 7 voxels"));
    params = plain;
    params.data = params.additive = &s.few;
    spoilt(params.data_lors = s.sparse->index, expect(&params, LR_USAGE, "give its sum over all LORs"));
}

int main(int argc, char **argv)
{
    test_backend = argc > 1 ? argv[1] : "compute";
    lr_place *place = test_backend_is("cuda") ? lr_place_open(&(lr_place_params){.kind = LR_PLACE_CUDA}) : NULL;
    lr_place_close(place);
    if (test_backend_is("cuda") && place == NULL) {
        print_message("there is no CUDA device here\n");
        return 77;
    }
    if (!fixture_backend_is_usable(test_backend_is("cuda") ? "compute" : test_backend)) return 77;
    const struct CMUnitTest tests[] = {
        CASE_AFTER(give, test_vectors_at_a_place_are_those_of_the_host),
        CASE_AFTER(give, test_both_precisions_and_other_places), CASE_AFTER(give, test_sparse_data_at_a_place),
        CASE_AFTER(give, test_distributed_and_composed), CASE_AFTER(give, test_bad_input)};
    return cmocka_run_group_tests_name(test_backend, tests, NULL, NULL);
}

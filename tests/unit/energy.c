/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Energy in joules, from a stand-in for the driver's library, and from files like those of processors' counters. */
#include "cases.h"

#include "energy.h"

#include <sys/stat.h>
#include <unistd.h>

static struct energy_meter *open_card(const char *device, int number)
{
    return energy_open(
        &(struct energy_params){.is_gpu = true, .device = device, .number = number, .library = LR_TEST_NVML});
}

/* --- cards --- */

static void expect_card(const char *device, int number, double joules_a_reading)
{
    struct energy_meter *meter = non_null(open_card(device, number));
    assert_string_equal(energy_source(meter), "NVML");
    for (int k = 1; k <= 3; k++) {
        double joules = -1;
        assert_true(energy_read(meter, &joules));
        assert_close(joules, k * joules_a_reading, 1e-12);
    }
    energy_close(meter);
}

/* Names are those of OpenGL and of CUDA; the number chooses between cards with the same name. */
static void test_cards(void **state)
{
    expect_card("NVIDIA L4", 0, 1.0);
    expect_card("NVIDIA H200/PCIe/SSE2", 1, 2.5);
    expect_card("NVIDIA H200", 0, 2.5);
    expect_card("NVIDIA A100-SXM4-80GB", 2, 0.1);
    expect_card("NVIDIA A100-SXM4-80GB", 3, 0.3);
}

static void test_nobody_tells(void **state)
{
    assert_null(open_card("NVIDIA A100-SXM4-80GB", 0)); /* two cards have this name */
    assert_all(open_card("AMD Instinct", 0) == NULL, open_card(NULL, 0) == NULL);
    assert_null(energy_open(
        &(struct energy_params){.is_gpu = true, .device = "NVIDIA L4", .library = "libno-such-library.so.1"}));
    assert_null(energy_open(&(struct energy_params){.is_gpu = true, .device = "NVIDIA L4", .library = "libm.so.6"}));
    static const char *const functions[] = {"nvmlInit_v2", "nvmlDeviceGetTotalEnergyConsumption"};
    for (int k = 0; k < 2; k++) {
        assert_int_equal(setenv("LR_TEST_NVML_FAILS", functions[k], 1), 0);
        assert_null(open_card("NVIDIA L4", 0));
        assert_int_equal(unsetenv("LR_TEST_NVML_FAILS"), 0);
    }
    energy_close(NULL);
}

static void test_a_card_falls_silent(void **state)
{
    struct energy_meter *meter = open_card("NVIDIA L4", 0);
    double joules;
    assert_non_null(meter);
    assert_int_equal(setenv("LR_TEST_NVML_FAILS", "nvmlDeviceGetTotalEnergyConsumption", 1), 0);
    assert_false(energy_read(meter, &joules));
    assert_int_equal(unsetenv("LR_TEST_NVML_FAILS"), 0);
    energy_close(meter);
}

/* --- processors --- */

static const char *const files[3] = {"name", "energy_uj", "max_energy_range_uj"};

static void path_of(char path[256], int counter, const char *file)
{
    snprintf(path, 256, "energy-counters/intel-rapl:%d%s%s", counter, file != NULL ? "/" : "",
             file != NULL ? file : "");
}

static void write_text(int counter, const char *file, const char *text)
{
    char path[256];
    path_of(path, counter, file);
    FILE *stream = non_null(fopen(path, "w"));
    fputs(text, stream);
    fclose(stream);
}

static void make_counter(int counter, const char *name, const char *energy_uj)
{
    char path[256];
    path_of(path, counter, NULL);
    assert_int_equal(mkdir(path, 0755), 0);
    write_text(counter, "name", name);
    write_text(counter, "energy_uj", energy_uj);
    write_text(counter, "max_energy_range_uj", "1000000000\n");
}

static void remove_counters(void)
{
    char path[256];
    for (int counter = 0; counter < 4; counter++) {
        for (int k = 0; k < 3; k++) {
            path_of(path, counter, files[k]);
            (void)unlink(path);
        }
        path_of(path, counter, NULL);
        (void)rmdir(path);
    }
    (void)rmdir("energy-counters");
}

/* Packages are added up; the zone that contains them is not added. One counter starts again at 0. */
static void test_processors(void **state)
{
    const struct energy_params params = {.folder = "energy-counters"};
    double joules = -1;
    remove_counters();
    assert_null(energy_open(&params));
    assert_int_equal(mkdir("energy-counters", 0755), 0);
    assert_null(energy_open(&params));
    make_counter(0, "psys\n", "5000000\n");
    assert_null(energy_open(&params));
    make_counter(1, "package-0\n", "999000000\n");
    make_counter(3, "package-1\n", "4000000\n");
    struct energy_meter *meter = non_null(energy_open(&params));
    assert_string_equal(energy_source(meter), "RAPL");
    assert_all(energy_read(meter, &joules), joules == 0);
    write_text(1, "energy_uj", "2500000\n");
    write_text(3, "energy_uj", "4250000\n");
    write_text(0, "energy_uj", "9000000\n");
    assert_true(energy_read(meter, &joules));
    assert_close(joules, 3.5 + 0.25, 1e-12);
    write_text(3, "energy_uj", "6250000\n");
    assert_true(energy_read(meter, &joules));
    assert_close(joules, 3.5 + 2.25, 1e-12);
    write_text(3, "energy_uj", "no number\n");
    assert_false(energy_read(meter, &joules));
    energy_close(meter);
    assert_null(energy_open(&params));
    remove_counters();
}

test_main("unit: energy", EACH(CASE, test_cards, test_nobody_tells, test_a_card_falls_silent, test_processors))

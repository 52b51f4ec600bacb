#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds and runs all tests:
#   1. gcc, release, warnings are errors: build, ctest (with the layer check)
#   2. clang, warnings are errors, reads every file; fuzz targets: build, 1 second each
#   3. clang-format
#   4. address and undefined-behaviour sanitizers: build, ctest
# A long test runs in one of the two builds, and a few in none.
#   --full runs all tests in both builds and the fuzz targets for a minute each, lets every call fail in
#   its turn (tests/inject), and adds the viewer under the thread sanitizer, the demo at full size, with
#   its limits of 5 minutes of two processors and 6 GiB, the acquisition of a Biograph mMR with its limits
#   of 10 minutes of two processors and 4 GiB, and, as root, both commands of README.md in a bare Debian
#   root (tools/fresh.sh, which keeps it in build/fresh).
# Ends with a summary and what failed tests said; the exit code is 0 only when every step is good.
set -uo pipefail
cd "$(dirname "$0")/.."

full=no
case "${1:-}" in
"") ;;
--full) full=yes ;;
*)
    echo "usage: tools/test.sh [--full]" >&2
    exit 2
    ;;
esac
jobs=${LORASTER_JOBS:-$(nproc)}
fuzz_seconds=1
# Numbers that shorter tests also hold, and pictures that take minutes.
long_tests="analytic_hiding.compute analytic_hiding.raster analytic_penetration_photons cli.method direct_fftw.textures
    direct_photons direct_recon.cpu direct_recon.textures operator_laws.poison operator_laws.raster
    operator_partitions.raster operator_parts.raster operator_random.compute recon_disc.compute
    recon_disc.raster recon_ramla.cpu recon_ramla.raster
    view.gallery_slow"
# The other long tests run in one of the two builds: with sanitizers those of what C code does to memory, files
# and programs,
sanitized="cli.bar cli.cuts cli.direct_bad_input cli.direct_factors cli.events_versions
    cli.export_choose cli.export_load cli.forecast cli.json cli.mistakes
    cli.outputs_killed cli.outputs_links cli.petsird_types cli.recon_bsrem cli.render
    cli.scanner cuda_groups direct_deposit.compute direct_fftw.compute direct_fftw.cpu
    direct_operator.compute direct_places.compute dist.devices dist.faults
    dist.link_faults dist.moves dist.schemes dist_parts.raster inject.files_matrices
    inject.files_reading inject.files_writing inject.waits io_castor_tables io_damaged
    io_doctor io_hdf5_reader io_lor_data io_lor_sums io_matrix io_matrix_blocks
    io_matrix_resume io_petsird io_petsird_bad listmode_blobs_on_cpu.cuda
    listmode_device_on_cpu.cuda listmode_exact_on_cpu.cuda listmode_laws.compute_blocks
    listmode_laws_on_cpu.cuda listmode_operator.compute listmode_operator_on_cpu.cuda
    operator_context_loss.compute operator_families.cpu operator_parts.cpu
    operator_parts.fake operator_random.raster operator_row_parts.cpu recon_mlem.cpu
    recon_osem.compute vector.gl vector.host vector_on_cpu.cuda vector_wrapped_on_cpu
    view.bars view.errors view.files view.gaps view.lines view.opening view.places
    view.random view.sessions view.start view.threads viewer_live viewer_live_device
    viewer_live_direct viewer_tube viewer_voxel"
# and without them those of numbers and shaders, whose C code runs in a shorter test, too.
twins="analytic_hiding.cpu analytic_hiding_events
    analytic_projection analytic_voxel_mean cli.additive_events cli.bench cli.bounds
    cli.compare cli.context_loss cli.corrections cli.demo cli.direct_bench
    cli.direct_recon cli.documents cli.export_resume cli.export_verify cli.factors
    cli.images cli.joseph cli.listmode cli.listmode_bench cli.model cli.outputs_together
    cli.parts cli.pictures cli.programs cli.project cli.projection_data cli.recon_ramla
    cli.recon_siemens cli.replicates cli.reproduce_cluster cli.reproduce_direct
    cli.reproduce_listmode cli.signals_data cli.signals_pictures cli.signals_rows
    cli.stir_matrix cuda_device cuda_functions cuda_kernels direct_factors
    direct_operator.cpu direct_places.textures direct_project.compute direct_project.cpu
    direct_project.textures direct_recon.compute dist.bench dist.compute dist.distributed
    dist.exact dist.families dist.frames dist.images dist.kill dist.memory dist.mistakes
    dist.own dist.paper dist.resume gl_embed_shaders install.pkg_config inject.allocs inject.gl
    inject.threads io_petsird_many io_projdata_real layers.links layers.planted
    listmode_blobs.compute listmode_blobs.cpu listmode_blobs.native
    listmode_closed.compute listmode_closed.cpu listmode_closed.native
    listmode_closed_on_cpu.cuda listmode_device.compute listmode_device_on_cpu.tiles
    listmode_exact.compute listmode_exact.cpu listmode_exact.native
    listmode_exact_on_cpu.0 listmode_exact_on_cpu.4000 listmode_laws.compute
    listmode_laws.compute_blocks listmode_laws.compute_found listmode_laws.cpu listmode_laws_on_cpu.found
    listmode_laws_on_cpu.streamed listmode_laws_on_cpu.untiled listmode_operator.cpu listmode_operator_on_cpu.streamed
    listmode_sensitivity.compute listmode_sensitivity.cpu listmode_sensitivity_on_cpu.cuda
    native_elements native_projections operator_choose operator_coarse.compute
    operator_coarse.native operator_coarse.raster operator_context_loss.raster
    operator_families.compute operator_families.raster operator_families_on_cpu.compute
    operator_laws.compute operator_laws.cpu operator_layers.compute operator_layers.raster
    operator_layers_families.compute operator_layers_penetration.compute
    operator_partitions.compute operator_partitions.cpu operator_partitions.native
    operator_parts.compute operator_parts.fake64
    operator_parts.poison operator_psf.compute operator_psf.cpu
    operator_row_merging operator_row_parts.compute operator_row_parts.compute_large
    operator_row_parts.native operator_row_parts.raster picture_labels picture_text
    cli.petsird_official operator_layers_penetration.native recon_disc.native
    recon_attenuation recon_bsrem.compute recon_bsrem.native recon_mlem.compute
    recon_mlem.raster recon_osem.cpu recon_osem.raster recon_ramla.compute
    recon_ramla.native render_alone_columns.test_back_exact
    render_alone_columns.test_back_sampled render_alone_columns.test_forward_exact
    render_alone_columns.test_forward_sampled render_alone_compute.test_back
    render_alone_compute.test_back_absorbed render_alone_compute.test_back_hidden
    render_alone_compute.test_collect render_alone_compute.test_forward
    render_alone_compute.test_forward_absorbed render_alone_compute.test_forward_hidden
    render_alone_compute.test_rows render_alone_compute.test_rows_absorbed
    render_alone_compute.test_rows_hidden render_alone_lists.test_columns_rows
    render_alone_lists.test_list_back render_alone_lists.test_list_forward
    render_alone_merge render_alone_orders render_alone_pairs.test_back
    render_alone_pairs.test_forward render_alone_pairs.test_rows render_compute
    render_correspondence render_hiding render_lists render_mutants render_pairs
    render_penetration render_plan render_projections unit_crystals unit_randoms
    view.compose view.curves view.direct view.frames view.gallery view.large
    view.listmode_events view.listmode_live view.loss view.recon_points view.slices
    view.tooltips view.total_body view.values view.window"
every_fault=""
if [ "$full" = yes ]; then
    fuzz_seconds=60 long_tests="" sanitized="" twins=""
    every_fault=1 # in tests/inject
fi
mkdir -p build
# Files, since a step is a process of its own.
summary=build/summary.txt
failures=build/failures.txt
step_log=build/step.log
: > "$summary"
: > "$failures"

# step NAME COMMAND...: runs it, times it, remembers how it ended.
step() {
    local name=$1 start=$SECONDS verdict=good
    shift
    echo
    echo "== $name"
    "$@" 2>&1 | tee "$step_log" || verdict=FAILED
    printf '%-34s %-7s %4d s\n' "$name" "$verdict" $((SECONDS - start)) >> "$summary"
    [ "$verdict" = good ] && return
    what_failed | tail -n 40 >> "$failures"
    echo "FAILED: $name: $(failed_tests)" >> "$failures"
    return 1
}

# CTest's line of each test that failed, and what the test said; of other steps all that they said.
what_failed() {
    awk '/\*\*\*/ && !/\*\*\*Skipped/ { told = found = 1 } /^ +Start / { told = 0 } told { print }
        END { exit !found }' "$step_log" || cat "$step_log"
}
failed_tests() {
    sed -nE '/[*]{3}Skipped/d; s/.* Test +#[0-9]+: ([^ ]+) .*[*]{3}.*/\1/p' "$step_log" | paste -sd ' '
}

# run_ctest FOLDER [LEFT_OUT...]
run_ctest() {
    local folder=$1 log=$PWD/build/ctest-$(basename "$1").log code left_out
    shift
    left_out="^($(sed 's/[.]/[.]/g; s/ /|/g' <<< "$*"))\$"
    # One more than there are processors: some tests wait for a window or for a signal's answer.
    ctest --test-dir "$folder" -j "$((jobs + 1))" -E "$left_out" --output-on-failure --no-tests=error \
        --output-log "$log"
    code=$?
    {
        grep -E 'tests passed' "$log"
        # CTest says nothing of cases that a test program skips; their reasons are in its own log.
        grep -h '^skipped: ' "$folder/Testing/Temporary/LastTest.log" | sort -u
        [ $# -eq 0 ] || fold -s -w 90 <<< "left out without --full: $*"
    } | sed 's/^/    /' >> "$summary"
    return "$code"
}

# Without a device nothing runs the device's own code: assembling it, half of the compiler's time, is left to
# machines that have one, and to --full.
cuda='-DCMAKE_CUDA_ARCHITECTURES=80-virtual;90'
[ "$full" = yes ] || nvidia-smi -L > /dev/null 2>&1 || cuda=-DCMAKE_CUDA_ARCHITECTURES=90-virtual
# Debian's Python has the packages that this script installs; another one found first may not.
python=-DPython3_EXECUTABLE=/usr/bin/python3
# build PRESET "LEFT_OUT..." [OPTION...]
build() {
    local preset=$1 left_out
    # shellcheck disable=SC2086 # names
    left_out=$(printf '%s;' $2)
    shift 2
    cmake --preset "$preset" "$python" -DLORASTER_LEFT_OUT="$left_out" "$@" &&
        cmake --build --preset "$preset" -j "$jobs"
}
build_fuzz() {
    CC=clang CXX=clang++ cmake -S . -B build/fuzz -G Ninja -DCMAKE_BUILD_TYPE=Release \
        -DCMAKE_C_FLAGS_RELEASE="-O1 -g1" -DLORASTER_FUZZ=ON &&
        cmake --build build/fuzz -j "$jobs" --target fuzz_targets
}
fuzz() { ./tools/fuzz.sh build/release/loraster build/fuzz "$fuzz_seconds"; }
ctest_asan() {
    # Mesa and LLVM keep what they allocate for the life of the process; our own leaks still count.
    LSAN_OPTIONS="suppressions='$PWD/tools/lsan.supp':print_suppressions=0" \
    UBSAN_OPTIONS=print_stacktrace=1 run_ctest build/asan $long_tests $twins
}
# The viewer alone: what it does beside its window, and whatever hands do to it.
view_in_threads() {
    cmake --preset tsan && cmake --build --preset tsan -j "$jobs" --target loraster || return 1
    local topic code=0
    for topic in threads random; do
        TSAN_OPTIONS="suppressions='$PWD/tools/tsan.supp' exitcode=66" \
            python3 -B tests/viewer/test_random.py build/tsan/loraster . "$topic" || code=1
    done
    return "$code"
}
demo_in_limits() { python3 -B tests/cli/test_demo.py build/release/loraster --full; }
head_in_limits() {
    python3 -B tests/cli/test_recon.py build/release/loraster . head
    local code=$?
    [ "$code" -eq 77 ] && echo "    skipped: the head, its acquisition is not there" >> "$summary"
    [ "$code" -eq 0 ] || [ "$code" -eq 77 ]
}

fresh_machine() { ./tools/install_packages.sh fresh && ./tools/fresh.sh build/fresh; }

step "packages" ./tools/install_packages.sh build run test
# PETSIRD's own package reads what is written for its version.
petsird() {
    [ -d build/petsird/0.12.0/petsird ] ||
        /usr/bin/python3 -m pip install --quiet --no-deps --target build/petsird/0.12.0 petsird==0.12.0
}
if petsird; then
    export LORASTER_PETSIRD=$PWD/build/petsird LORASTER_PETSIRD_PYTHON=/usr/bin/python3
else
    echo "    skipped: PETSIRD's own package, which PyPI did not give" >> "$summary"
fi
step "gcc release build" build release "$long_tests $sanitized" "$cuda" &&
    LORASTER_FULL=$every_fault step "gcc release tests" run_ctest build/release $long_tests $sanitized
step "clang" ./tools/check_clang.py build/release "$jobs"
step "fuzz build" build_fuzz && step "fuzzing" fuzz
step "clang-format" ./tools/check_format.sh
step "sanitizer build" build asan "$long_tests $twins" && step "sanitizer tests" ctest_asan
[ "$full" = yes ] && step "viewer, thread sanitizer" view_in_threads
[ "$full" = yes ] && step "demo within its limits" demo_in_limits
[ "$full" = yes ] && step "head within its limits" head_in_limits
if [ "$full" = yes ] && [ "$(id -u)" -eq 0 ]; then
    step "fresh machine" fresh_machine
elif [ "$full" = yes ]; then
    echo "    skipped: tools/fresh.sh, which needs root" >> "$summary"
fi

echo
echo "== summary"
cat "$summary"
if [ -s "$failures" ]; then
    cat "$failures"
    echo
    grep '^FAILED: ' "$failures" # again, where whoever sees only the end looks
    exit 1
fi
echo "all good"

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A wrong shader must fail its own test: each is changed in one place, in a copy of shaders/ that
LORASTER_SHADER_DIR names, and the tests that run it alone must then find wrong numbers.

usage: test_mutants.py SOURCE_ROOT FOLDER_OF_TESTS

environment:
  LORASTER_FULL   set: every mutant; else a tenth of them
  MUTANTS_SEED    any text: another tenth; default: the commit, or without git always the same
  MUTANTS         regular expression of the shaders, which are then all tried
"""
import os, random, re, shutil, subprocess, sys, tempfile, unittest
from pathlib import Path

FOLDER = Path(sys.argv.pop())
ROOT = Path(sys.argv.pop()).resolve()
FULL = os.environ.get("LORASTER_FULL", "") not in ("", "0")

# Texts that compute nothing, and so need no mutant.
OTHERS = re.compile(r"(common/bindings|common/atomic64|kernels/language|listmode/(lines|others))")

# Shaders that graphics processors do not run.
OF_SOFTWARE = {"common/loops.glsl"}

# Shader: what is replaced, by what, and who must notice, as EXECUTABLE.TEST of this folder, or vector.TEST.
MUTANTS = [
    ("kernels/exact_path.glsl", "face.half_mm[1] * fabs(face.along[c]", "0.5 * face.half_mm[1] * fabs(face.along[c]",
     "alone_listmode.test_exact_elements"),
    ("kernels/exact_time.glsl", "normal_from_0(high) - normal_from_0(low)", "1.01f * normal_from_0(high)",
     "alone_listmode.test_exact_elements"),
    ("kernels/faces.glsl", "way_mm * face.lean[2]}", "0.99 * way_mm * face.lean[2]}",
     "alone_listmode.test_exact_elements"),
    ("kernels/numbers.glsl", "#define quotient_of(a, b) ((a) / (b))", "#define quotient_of(a, b) ((b) / (a))",
     "alone_listmode.test_exact_elements"),
    ("kernels/polygon.glsl", "0.5f * twice", "0.4f * twice", "alone_listmode.test_exact_elements"),
    ("kernels/strips.glsl", "0.625f * inverse * square", "0.3f * inverse * square",
     "alone_listmode.test_exact_elements"),
    ("kernels/polygon.glsl", "before.x + t * (here.x - before.x)", "here.x + t * (before.x - here.x)",
     "alone_compute.test_forward"),
    ("kernels/times.glsl", "1.0027071046938556", "1.0037071046938556", "alone_listmode.test_elements"),
    ("kernels/vector.glsl", "x / sensitivity * by", "1.001 * x / sensitivity * by", "vector.element_by_element"),
    ("vector/apply.comp", "in_2[first.w + k]", "in_2[first.z + k]", "vector.element_by_element"),
    ("vector/convolve.comp", "[abs(k) % 4]", "[abs(k) % 3]", "alone_vector.test_convolve"),
    ("vector/differences.comp", "own_kappa * kappa_at(other)", "own_kappa * own_kappa", "alone_vector.test_differences"),
    ("vector/divide_counts.comp", "y * natural_log(e)", "y * natural_log(y)", "vector.divided_counts"),
    ("vector/join_sums.comp", "first.y != 0u && thread == 0u", "first.y != 0u", "alone_vector.test_join_sums"),
    ("vector/sums.comp", "(a - b) * (a - b)", "(a - b) * (a + b)", "vector.sums"),
    ("vector/vector.glsl", "return gl_NumWorkGroups.x * uint(LR_VECTOR_GROUP)", "return uint(LR_VECTOR_GROUP)",
     "vector.sums"),
    ("vector/vector_sums.glsl", "half_way > 0u", "half_way > 1u",
     "vector.sums alone_vector.test_join_sums vector.divided_counts"),
    ("common/fill.comp", "range.x + k", "k", "alone_vector.test_fill"),
    ("correspondence/blank.comp", "pq.x : -pq.x", "pq.x + 1 : -pq.x", "alone_vector.test_blank"),
    ("correspondence/blank.comp", "values[pair.x + n]", "values[n]", "alone_vector.test_blank"),
    ("correspondence/columns/image_order.comp", "projector[there] = grid[strides.w + v]", "projector[v] = grid[v]",
     "alone_vector.test_image_order"),
    ("direct/forward.comp", "counts.y - 1 - (i)", "(i)", "alone_direct.test_forward"),
    ("direct/back.comp", "first_column + 2 * to_next", "first_column + to_next", "alone_direct.test_back"),
    ("direct/combine.comp", "max(1.0 + intBitsToFloat(counts.y) * c, 0.0)", "1.0 + intBitsToFloat(counts.y) * c",
     "alone_direct.test_combine"),
    ("direct/deposit.comp", "floor(place + 0.5lf)", "floor(place + 0.49lf)", "alone_direct.test_deposit"),
    ("direct/discrepancy.comp", "? 1.0 : 0.0;", "? 0.999 : 0.0;", "alone_direct.test_discrepancy"),
    ("direct/exchange.comp", "(counts.y != 0 ? numbers[at] : 0.0lf)", "numbers[at]", "alone_direct.test_exchange"),
    ("direct/map.comp", "/ epsilon_mm + tie", "/ epsilon_mm", "alone_direct.test_map"),
    ("direct/values.comp", "1.0 / partial[0]", "1.001 / partial[0]", "alone_direct.test_values"),
    ("direct/direct.glsl", "4 * quad + ivec4(0, 1, 2, 3)", "4 * quad + ivec4(0, 0, 2, 3)", "alone_direct.test_discrepancy"),
    ("direct/gather.glsl", "vec4(window1.zw, window2.xy)", "vec4(window1.zw, window2.yx)",
     "alone_direct.test_forward alone_direct.test_back"),
    ("viewer/view_boxes.vert", "others & 2", "others & 1", "alone_viewer.test_boxes_vert"),
    ("viewer/view_crystals.frag", "0.5 * module.face.xy", "0.6 * module.face.xy", "alone_viewer.test_crystals_frag"),
    ("viewer/view_crystals.vert", "(corner - 0.5) * count", "corner * count", "alone_viewer.test_crystals_vert"),
    ("viewer/view_flat.frag", "vec4(in_colour, 1.0)", "vec4(in_colour.bgr, 1.0)", "alone_viewer.test_flat_frag"),
    ("viewer/view_lines.frag", "= in_colour", "= in_colour.bgra", "alone_viewer.test_lines_frag"),
    ("viewer/view_lines.vert", "gl_VertexID & 1", "gl_VertexID & 0", "alone_viewer.test_lines_vert"),
    ("viewer/view_slice.frag", "0.75 * min(share, 1.0)", "0.75 * share", "alone_viewer.test_slice_frag"),
    ("viewer/view_slice.frag", "(own - low_mm.w) / span, 0.5", "own / span, 0.5", "alone_viewer.test_slice_frag"),
    ("viewer/view_slice.frag", "? mixing.x", "? 1.0 - mixing.x", "alone_viewer.test_slice_mixed"),
    ("viewer/view_slice.frag", "(own - beside) / span", "(beside - own) / span", "alone_viewer.test_slice_mixed"),
    ("viewer/view_slice.frag", "0.5 * log2(", "0.25 * log2(", "alone_viewer.test_slice_mixed"),
    ("viewer/view_slice.frag", "field.x + field.y + field.z & 1", "field.x + field.z & 1",
     "alone_viewer.test_slice_mixed"),
    ("viewer/view_slice.frag", "mix(1.0 - share, share, vec3(corner))", "mix(share, 1.0 - share, vec3(corner))",
     "alone_viewer.test_slice_mixed"),
    ("viewer/view_slice.frag", "max(most, value_at(from, at))", "value_at(from, at)", "alone_viewer.test_slice_mixed"),
    ("viewer/view_slice.frag", "dot(off, off) <= 1.0", "dot(off, off) <= 2.0", "alone_viewer.test_slice_mixed"),
    ("viewer/view_slice.vert", "vec3(depth, corner)", "vec3(depth, corner.yx)", "alone_viewer.test_slice_vert"),
    ("viewer/view_volume.frag", "open * opacity * colour", "opacity * colour", "alone_viewer.test_volume_frag"),
    ("viewer/view_volume.vert", "eye[axis] < high_mm[axis]", "eye[axis] > high_mm[axis]", "alone_viewer.test_volume_vert"),
    ("viewer/view.glsl", "vec4 low_mm;", "vec4 between, low_mm;", "alone_viewer.test_slice_vert alone_viewer.test_slice_frag"),
    ("viewer/view_modules.glsl", "vec4 centre;", "vec4 between, centre;",
     "alone_viewer.test_boxes_vert alone_viewer.test_crystals_frag"),
    ("listmode/prepare.comp", "3.0lf * sigma_bin.x", "2.9lf * sigma_bin.x", "alone_listmode.test_prepare"),
    ("listmode/elements.comp", "factor * share_of", "1.001 * factor * share_of", "alone_listmode.test_elements"),
    ("listmode/forward.comp", "factor * seen.sum / seen.shares", "factor * seen.sum", "alone_listmode.test_forward"),
    ("listmode/back.comp", "factors * d + more", "factors * c + more", "alone_listmode.test_back"),
    ("listmode/bound.comp", "max(most, largest_of(line, kernel, j))", "largest_of(line, kernel, j)",
     "alone_listmode.test_bound"),
    ("listmode/listed.comp", "share > 0.0", "share > 0.1", "alone_listmode.test_listed"),
    ("listmode/exponents.comp", "counts[k + 1u] <= uint(size.w)", "counts[k + 1u] < uint(size.w)",
     "alone_listmode.test_exponents"),
    ("listmode/order.comp", "v * uint(strides.z)", "u * uint(strides.z)", "alone_listmode.test_order"),
    ("listmode/values.comp", "own * uint(range.w)", "own", "alone_listmode.test_values"),
    ("listmode/exact_prepare.comp", "is_turned ? -tof_mm : tof_mm", "tof_mm", "alone_listmode.test_exact_prepare"),
    ("listmode/exact_elements.comp", "voxel * strides.xyz", "voxel * strides.yxz", "alone_listmode.test_exact_elements"),
    ("listmode/exact_forward.comp", "sum += element", "sum = element", "alone_listmode.test_exact_forward"),
    ("listmode/exact_back.comp", "sum += value", "sum = value", "alone_listmode.test_exact_back"),
    ("listmode/exact_bound.comp", "float(slab.x * slab.y * slab.z)", "1.0", "alone_listmode.test_exact_bound"),
    ("listmode/events.glsl", "event.number - part.x", "event.number", "alone_listmode.test_prepare"),
    ("listmode/line.glsl", "0.5 * (factor.y - way)", "0.45 * (factor.y - way)", "alone_listmode.test_elements"),
    ("listmode/kernel.glsl", "along * along / upright.x", "along / upright.x",
     "alone_listmode.test_elements alone_listmode.test_forward alone_listmode.test_back"),
    ("listmode/largest.glsl", "most = max(most, share)", "most = share",
     "alone_listmode.test_bound alone_listmode.test_listed"),
    ("listmode/fixed64.glsl", "uint(127 + exponent)", "uint(126 + exponent)", "alone_listmode.test_back"),
    ("listmode/sums.glsl", "to_words(term)", "to_words(1.001 * term)",
     "alone_listmode.test_listed alone_listmode.test_exact_back"),
    ("listmode/scale.glsl", "usual_term + LR_EVENTS_SPREAD", "usual_term + 30", "alone_listmode.test_order"),
    ("listmode/pass.glsl", "axis * strides.w", "axis * strides.z", "alone_listmode.test_order alone_listmode.test_forward"),
    ("listmode/job.glsl", "gl_WorkGroupID.y * gl_NumWorkGroups.x", "gl_WorkGroupID.y", "alone_listmode.test_forward"),
    ("listmode/place.glsl", ": number - part.x", ": number", "alone_listmode.test_values"),
    ("listmode/exact_line.glsl", "walk.part + most", "walk.part + 0.5 * most", "alone_listmode.test_exact_elements"),
    ("listmode/exact.glsl", "voxel.x * size.z", "voxel.x * size.y",
     "alone_listmode.test_exact_forward alone_listmode.test_exact_back"),
    ("common/atomic.glsl", "#ifdef GL_NV_shader_atomic_float",
     "#define uintBitsToFloat(word) (1.001 * uintBitsToFloat(word))\n#if 0", "alone_pairs.test_forward"),
    ("common/loops.glsl", "return done != rounds", "return false", "hiding.test_no_loop_ends_early"),
    ("correspondence/rows.glsl", "first_image, end_image", "end_image, first_image", "alone_compute.test_collect"),
    ("correspondence/scene.glsl", "leading = a - b", "leading = a - 1.001 * b", "alone_compute.test_forward"),
    ("correspondence/visit.glsl", "0.5 * secondary.u_face_u.w", "0.499 * secondary.u_face_u.w", "alone_compute.test_forward"),
    ("correspondence/raster/correspondence_pass.glsl", "mu_origin_mm;", "mu_origin;\n#define mu_origin_mm (1.01 * mu_origin)\n",
     "correspondence.test_absorption"),
    ("correspondence/raster/correspondence.vert", "6.283185307179586", "6.2838", "correspondence.test_absorption"),
    ("correspondence/raster/correspondence.vert", "out_secondary = ivec4(secondary.crystals.xyz",
     "out_secondary = ivec4(secondary.crystals.yxz", "correspondence.test_absorption"),
    ("correspondence/raster/correspondence.frag", "0.5 * float(RAYS - 1)", "0.49 * float(RAYS - 1)", "correspondence.test_absorption"),
    ("correspondence/raster/correspondence.frag", "(1.0 + t) * distance_squared", "(1.001 + t) * distance_squared",
     "correspondence.test_absorption"),
    ("correspondence/raster/scatter.vert", "(factor * voxel)", "(1.001 * factor * voxel)", "scatter.test_windows"),
    ("correspondence/raster/scatter.vert", "if (k < mine)", "if (k + 1 < mine)", "scatter.test_windows"),
    ("correspondence/raster/scatter.vert", "vec2(texel) + 0.5", "vec2(texel) + 1.5", "scatter.test_windows"),
    ("correspondence/raster/scatter.vert", "image.row % width", "image.row % (width / 2u)", "scatter.test_random_contents"),
    ("correspondence/raster/value.frag", "out_value = in_value", "out_value = 1.001 * in_value",
     "scatter.test_windows gather.test_gather_windows"),
    ("correspondence/raster/gather.frag", "uintBitsToFloat(hit.y) *", "1.001 * uintBitsToFloat(hit.y) *",
     "gather.test_gather_windows"),
    ("correspondence/raster/gather.frag", "pixel + ivec2(1, 1)", "pixel + ivec2(1, 0)", "gather.test_gather_windows"),
    ("correspondence/raster/reduce.frag", "corner.y + STEP", "corner.y + 1", "gather.test_gather_windows"),
    ("correspondence/raster/reduce.frag", "source_tile.x)", "source_tile.x + 1)", "gather.test_gather_all_scanners"),
    ("correspondence/raster/reduce.frag", "+= texelFetch", "+= 1.001 * texelFetch", "scatter.test_many_terms"),
    ("correspondence/raster/cover.vert", "gl_VertexID >> 1", "gl_VertexID >> 2", "gather.test_gather_windows"),
    ("correspondence/raster/collect.vert", "sum * row.factor", "sum", "gather.test_gather_windows"),
    ("correspondence/columns/forward.comp", "counts ? sum", "counts ? 1.001 * sum", "alone_columns.test_forward_sampled"),
    ("correspondence/columns/forward.comp", "at <= range.y", "at < range.y", "alone_columns.test_forward_sampled"),
    ("correspondence/columns/back.comp", "whole / float(", "1.001 * whole / float(", "alone_columns.test_back_sampled"),
    ("correspondence/columns/forward_exact.comp", "k <= range.y", "k < range.y", "alone_columns.test_forward_exact"),
    ("correspondence/columns/forward_exact.comp", "voxels[row + k], 0.0", "1.001 * voxels[row + k], 0.0",
     "alone_columns.test_forward_exact"),
    ("correspondence/columns/back_exact.comp", "0.5 * column_modules[module].cells.w",
     "0.499 * column_modules[module].cells.w", "alone_columns.test_back_exact"),
    ("correspondence/columns/back_exact.comp", "all - 1 - first_column - c", "first_column + c", "alone_columns.test_back_exact"),
    ("correspondence/columns/order.comp", "to[column] = from[by_lor]", "to[column] = from[column]", "alone_orders.test_columns_order"),
    ("correspondence/columns/order.comp", "to[by_lor] = from[column]", "to[by_lor] = from[by_lor]", "alone_orders.test_columns_order"),
    ("correspondence/columns/stack_order.comp", "module.counts.y - 1 - crystal", "crystal", "alone_orders.test_stack_order"),
    ("correspondence/columns/stack_order.comp", "? 1.0 : 0.0", "? 1.0 : 1.0", "alone_orders.test_stack_order"),
    ("correspondence/columns/pack.comp", "voxels[turned + k]", "voxels[row + k]", "alone_orders.test_pack"),
    ("correspondence/columns/sum.comp", "k < count.z", "k + 1 < count.z", "alone_orders.test_sum"),
    ("correspondence/columns/take_sums.comp", "4294967296.0", "4294000000.0", "alone_orders.test_take_sums"),
    ("correspondence/columns/rows.comp", "whole_weight(", "1.001 * whole_weight(", "alone_lists.test_columns_rows"),
    ("correspondence/columns/rows.comp", "s <= range.y", "s < range.y", "alone_lists.test_columns_rows"),
    ("correspondence/columns/list_forward.comp", "k < LR_LIST_SHARE", "k + 1 < LR_LIST_SHARE", "alone_lists.test_list_forward"),
    ("correspondence/columns/list_back.comp", "entry.value / float(", "1.001 * entry.value / float(", "alone_lists.test_list_back"),
    ("correspondence/points/forward.comp", "weight * images", "1.001 * weight * images",
     "alone_compute.test_forward alone_compute.test_forward_hidden alone_compute.test_forward_absorbed"),
    ("correspondence/points/back.comp", "k < half_size", "k + 1 < half_size", "alone_compute.test_back"),
    ("correspondence/points/rows.comp", "floatBitsToUint(weight)", "floatBitsToUint(1.001 * weight)",
     "alone_compute.test_rows alone_compute.test_rows_hidden alone_compute.test_rows_absorbed"),
    ("correspondence/points/collect.comp", "+= sum * row.factor", "= sum * row.factor", "alone_compute.test_collect"),
    ("correspondence/pairs/forward.comp", "weight * factor", "1.001 * weight * factor", "alone_pairs.test_forward"),
    ("correspondence/pairs/back.comp", "+= whole * scale.x", "= whole * scale.x", "alone_pairs.test_back"),
    ("correspondence/pairs/rows.comp", "floatBitsToUint(weight)", "floatBitsToUint(1.001 * weight)", "alone_pairs.test_rows"),
    ("correspondence/rows/collect.comp", "uintBitsToFloat(element.z)", "1.001 * uintBitsToFloat(element.z)",
     "alone_merge.test_merge alone_merge.test_merge_repeats"),
    ("correspondence/rows/collect.comp", "listed = head.x", "listed = min(head.x, total)", "alone_merge.test_long_list"),
    ("correspondence/rows/gather.comp", "sum / double(per_row)", "sum / double(num_points)", "alone_merge.test_merge"),
    ("correspondence/rows/sum.comp", "sum += places[k]", "sum = places[k]", "alone_merge.test_merge"),
    ("correspondence/rows/place.comp", "k < thread ? own[k]", "k <= thread ? own[k]", "alone_merge.test_merge"),
    ("correspondence/rows/digits.comp", "k < range.y", "k + 1u < range.y", "alone_merge.test_merge"),
    ("correspondence/rows/scatter.comp", "k < range.y", "k + 1u < range.y", "alone_merge.test_merge"),
    # Heads that passes share.
    ("correspondence/absorption.glsl", "float(k) + 0.5", "float(k) + 0.52",
     "correspondence.test_absorption alone_compute.test_forward_absorbed"),
    ("correspondence/coincidence.glsl", "primary > secondary", "primary < secondary", "correspondence.test_absorption"),
    ("correspondence/coincidence.glsl", ": mask_bits(entry, pq, primary_size, rs, secondary_size)",
     ": mask_bits(entry, rs, secondary_size, pq, primary_size)", "alone_compute.test_rows"),
    ("correspondence/columns/columns.glsl", "0.625 * x * x * strip.width", "0.3 * x * x * strip.width",
     "alone_columns.test_forward_exact alone_lists.test_columns_rows"),
    ("correspondence/columns/exact.glsl", "fma(2.5 * yy, inverse, -0.5)", "fma(2.5 * yy, inverse, 0.5)",
     "alone_columns.test_back_exact alone_lists.test_list_forward"),
    ("correspondence/columns/list.glsl", "float sum = 0.0", "float sum = 1e-9",
     "alone_lists.test_list_forward alone_lists.test_list_back"),
    ("correspondence/columns/sampled.glsl", "<= 0.5 * b.face", "<= 0.49 * b.face",
     "alone_columns.test_forward_sampled alone_columns.test_back_sampled"),
    ("correspondence/columns/scene.glsl", "num_points.x + k", "num_points.x",
     "alone_columns.test_forward_sampled alone_columns.test_back_exact"),
    ("correspondence/columns/stacks.glsl", "qs.x * pair.count_b + qs.y", "qs.x * pair.count_b",
     "alone_columns.test_forward_exact alone_columns.test_back_exact"),
    ("correspondence/columns/strips.glsl", "0.5 * crossing.primary.face", "0.1 * crossing.primary.face",
     "alone_lists.test_columns_rows"),
    ("correspondence/columns/tube.glsl", "scale, -1e-3)), 0.0)", "scale, -1e-3)), 1.0)",
     "alone_columns.test_forward_sampled alone_columns.test_forward_exact alone_lists.test_list_back"),
    ("common/fixed.glsl", "536870912.0", "536800000.0", "alone_lists.test_list_back alone_pairs.test_forward"),
    ("correspondence/lor.glsl", "i < j ? a", "i > j ? a", "scatter.test_windows gather.test_gather_windows"),
    ("correspondence/mask.glsl", ">> (index & 31u)", ">> (index & 15u)",
     "alone_orders.test_stack_order alone_pairs.test_rows alone_compute.test_rows"),
    ("correspondence/pairs/pairs.glsl", "0.28867513459481287", "0.28", "alone_pairs.test_forward"),
    ("correspondence/pairs/scene.glsl", "dvec3(part) + 0.5lf", "dvec3(part) + 0.49lf",
     "alone_pairs.test_forward alone_pairs.test_back"),
    ("correspondence/rows/rows.glsl", "return gl_GlobalInvocationID.x", "return gl_LocalInvocationID.x", "alone_merge.test_merge"),
    ("correspondence/rows/sort.glsl", "element.x >> shift", "element.x >> (shift / 2u)", "alone_merge.test_merge"),
    ("correspondence/sight.glsl", "-dot(su, other)", "-1.001 * dot(su, other)",
     "correspondence.test_absorption alone_compute.test_forward"),
    ("correspondence/visit_exact.glsl", "sign * vec3(here", "sign * vec3(1.001 * here", "alone_compute.test_forward"),
    ("correspondence/triangle.glsl", "2.0 * arc_of(", "2.001 * arc_of(",
     "alone_compute.test_forward_hidden alone_compute.test_back_hidden"),
    ("correspondence/visit_hidden.glsl", "seen.weight += triangle_angle(", "seen.weight += 1.001 * triangle_angle(",
     "alone_compute.test_forward_hidden alone_compute.test_back_hidden"),
    ("correspondence/visit_sampled.glsl", "within * view.face", "0.99 * within * view.face",
     "alone_compute.test_back alone_compute.test_rows_hidden"),
    ("correspondence/visit_penetration.glsl", "max(0.0, range.y - range.x)",
     "max(0.0, 0.999 * (range.y - range.x))", "alone_compute.test_forward_absorbed"),
    ("correspondence/target_penetration.glsl", "+ detection_depth_mm", "+ 1.01 * detection_depth_mm",
     "alone_compute.test_forward_absorbed"),
]


def chosen():
    pattern = os.environ.get("MUTANTS")
    if pattern:
        return [mutant for mutant in MUTANTS if re.search(pattern, mutant[0])]
    if FULL:
        return MUTANTS
    seed = os.environ.get("MUTANTS_SEED", "")
    if not seed and shutil.which("git"):
        seed = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True,
                              check=False).stdout.strip()
    print(f"mutants of seed {seed}", flush=True)
    return random.Random(seed).sample(MUTANTS, -(-len(MUTANTS) // 10))


class Mutants(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp()) / "shaders"
        shutil.copytree(ROOT / "shaders", self.folder)

    def tearDown(self):
        shutil.rmtree(self.folder.parent)

    def ask(self, test):
        """Exit code and output of a test with the copy's shaders."""
        program, _, name = test.partition(".")
        environment = dict(os.environ, LORASTER_SHADER_DIR=str(self.folder), LORASTER_CACHE="off",
                           LORASTER_TEST_VERBOSE="1", MESA_SHADER_CACHE_DIR=str(self.folder.parent))
        vector = [FOLDER.parent / "vector/test_vector", "gl"]
        command = vector if program == "vector" else [FOLDER / f"test_render_{program}"]
        done = subprocess.run([*map(str, command), *filter(None, [name])], text=True, env=environment,
                              capture_output=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_table(self):
        """Every shader has a mutant, and every mutant its place and a test that CTest runs."""
        for name, old, new, _ in MUTANTS:
            text = (ROOT / "shaders" / name).read_text()
            self.assertIn(old, text, f"{name}: no {old} to be changed")
            self.assertNotEqual(text, text.replace(old, new), name)
        mutated = {name for name, _, _, _ in MUTANTS}
        known = set(re.findall(r"add_test\(\W*render_([\w.]+)", (FOLDER / "CTestTestfile.cmake").read_text()))
        vector = (FOLDER.parent / "vector/CTestTestfile.cmake").read_text()
        known |= set(re.findall(r"add_test\(\W*(vector)[.]gl", vector))
        for name, _, _, tests in MUTANTS:
            for test in tests.split():
                self.assertTrue({test, test.partition(".")[0]} & known, f"{name}: ctest -N has no {test}")
        for path in sorted((ROOT / "shaders").rglob("*.*")):
            name = path.relative_to(ROOT / "shaders").as_posix()
            if not OTHERS.match(name):
                self.assertIn(name, mutated, f"{name} has no mutant")

    def test_copy(self):
        """Of the shaders as they are nothing is wrong."""
        code, output = self.ask("alone_orders.test_sum")
        if code == 77:
            self.skipTest(output)
        self.assertEqual(code, 0, output)

    def test_mutants(self):
        for name, old, new, tests in chosen():
            path = self.folder / name
            whole = path.read_text()
            path.write_text(whole.replace(old, new))
            for test in tests.split():
                with self.subTest(shader=name, change=f"{old} -> {new}", test=test):
                    code, output = self.ask(test)
                    if code == 77 or (name in OF_SOFTWARE and "llvmpipe" not in output):
                        self.skipTest(output)
                    self.assertIn("[ RUN", output)
                    self.assertNotIn("(program ", output, "the mutant does not compile")
                    self.assertGreater(code, 0, f"a wrong {name} goes unnoticed:\n{output}")
                    print(f"{name}: {old} -> {new}: noticed by {test}", flush=True)
            path.write_text(whole)


if __name__ == "__main__":
    unittest.main()

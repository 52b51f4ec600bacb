#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mistakes of a physicist who is new here: each is answered by one sentence with place and remedy.

A case is a name, a command, an exit code and words that the sentence must hold. Code 0 is a mistake that is warned of,
because somebody may mean it. What other tests ask is not asked again: broken files are in tests/io/damaged.c, numbers
that are none in test_cli.py."""
import gzip, os, shutil, struct, subprocess, tempfile
from pathlib import Path

from program import CPU, GRID, NUM_VOXELS, SMALL_RING, ProgramTest, main, ring_of, write_nifti, write_npy

SIZE, VOXEL_MM = (6, 5, 3), (3, 3, 4)
ON = "--scanner ring.yaml --backend cpu --threads 1"
AT = "--grid 6,5,3 --voxel-mm 3,3,4"
RECON = f"recon {ON} {AT} -o o.nii"
SENSITIVITY = f"sensitivity {ON} {AT} -o o.nii"
MATRIX = f"matrix {ON} -o o.tsv"
PROJECT = f"project {ON} -o o.h5"
SENSITIVITY_BY = f"sensitivity --scanner ring.yaml {AT} -o o.nii"
LISTMODE = f"recon --operator listmode {ON} {AT} --iterations 1 --events e.petsird -o o.nii"
DIRECT = "recon --operator direct --algorithm ramla --backend cpu --threads 1 -o o.nii"

# README's scanner, whose ring is filled to 84.9 %.
README_RING = ring_of("my scanner", "radius_mm: 60, modules: 16, rings: 2, ring_pitch_mm: 22",
                      "crystals: [10, 10], pitch_mm: [2, 2], face_mm: [1.9, 1.9], depth_mm: 12",
                      "coincidence: {field_of_view_mm: 80}")

# name: (command, exit code, *words). Commands are split at blanks, but at | where they have any.
CASES = {
    # --- units of the attenuation map
    "mu in HU": (f"simulate {ON} {AT} --phantom spheres --counts 1000 --mu hu.nii -o o.h5", 3,
                 "hu.nii", "Hounsfield units?", "--mu-unit hu"),
    "mu in HU, recon": (f"{RECON} --data y.h5 --mu hu.nii", 3, "Hounsfield units?"),
    "mu in HU, factors": ("factors --scanner ring.yaml --mu hu.nii -o o.h5", 3, "Hounsfield units?", "--mu-unit hu"),
    "mu is raw CT numbers": (f"simulate {ON} {AT} --phantom spheres --counts 1000 --mu shifted.nii -o o.h5", 3,
                             "Hounsfield units?", "offset"),
    "mu is raw CT numbers, said to be HU": (f"{SENSITIVITY} --mu shifted.nii --mu-unit hu", 0,
                                            "warning", "no value lies below 0 HU", "1024"),
    "mu in 1/mm said to be HU": (f"{SENSITIVITY} --mu mm.nii --mu-unit hu", 3,
                                 "mm.nii", "no Hounsfield units", "--mu-unit"),
    "mu in 1/cm said to be 1/mm": (f"{SENSITIVITY} --mu cm.nii --mu-unit 1/mm", 0,
                                   "warning", "0.096/mm", "looks like 1/cm"),
    "mu in 1/mm said to be 1/cm": (f"{SENSITIVITY} --mu mm.nii --mu-unit 1/cm", 0,
                                   "warning", "looks like 1/mm", "leave out"),
    "mu is an activity image": (f"{SENSITIVITY} --mu x.nii", 0, "warning", "x.nii", "reaches 1/cm",
                                "denser than steel", "activity image", "--mu-unit"),
    "mu is an empty map": (f"{SENSITIVITY} --mu zero.nii", 0, "warning", "zero.nii", "0 everywhere"),
    "mu lies elsewhere": (f"{SENSITIVITY} --mu far.nii", 3, "far.nii", "misses the scanner", "origin"),
    "mu with its corner at the origin": (f"{SENSITIVITY} --mu corner.nii", 0,
                                         "warning", "corner.nii", "beside the scanner's axis"),
    "mu is a number": (f"{SENSITIVITY} --mu 0.0096", 3, "0.0096", "No such file"),
    # --- units and order of lengths
    "voxels in m": (f"matrix {ON} --grid 6,5,3 --voxel-mm 0.003 -o o.h5", 0,
                    "warning", "a field of 0.018 x 0.015 x 0.009 mm", "given in cm or m?", "taken as mm"),
    "voxels in m, many": (f"matrix {ON} --grid 60,50,3 --voxel-mm 0.01 --rows 0:1 -o o.h5", 0,
                          "warning", "a field of 0.6 x 0.5 x 0.03 mm", "given in cm or m?"),
    "voxels in cm": (f"sensitivity {ON} --grid 8,8,4 --voxel-mm 0.4 -o o.nii", 0,
                     "warning", "voxels of 0.4 x 0.4 x 0.4 mm", "a field of 3.2 x 3.2 x 1.6 mm", "span 60 x 60 x 16 mm",
                     "given in cm or m?"),
    "voxels in tenths of a millimetre": (f"recon {ON} --grid 6,5,3 --voxel-mm 30,30,40 --samples 1 --data y.h5 "
                                         "--iterations 1 -o o.nii", 0, "warning", "a field of 180 x 150 x 120 mm",
                                         "10 times too large?"),
    "a long axis across": (f"simulate {ON} --grid 6,6,30 --voxel-mm 4 --phantom point --counts 1000 -o o.h5", 0,
                           "warning", "a field of 24 x 24 x 120 mm", "axes swapped?", "z runs along the scanner"),
    "a long axis across, photon pairs": ("simulate --scanner ring.yaml --grid 6,6,30 --voxel-mm 4 --phantom point "
                                         "--counts 100 --tof-ps 300 -o o.petsird", 0, "warning", "axes swapped?"),
    "a long axis across, list mode": (f"{LISTMODE.replace(AT, '--grid 3,10,10 --voxel-mm 4')} --kernel line", 0,
                                      "warning", "a field of 12 x 40 x 40 mm", "axes swapped?"),
    "sizes z,y,x of an image": (f"{PROJECT} --image upright.nii", 0, "warning", "a field of 12 x 40 x 40 mm",
                                "axes swapped?"),
    "voxels with a unit": (f"{MATRIX} --grid 6,5,3 --voxel-mm 3mm", 2, "--voxel-mm 3mm", "leave out the unit"),
    "a grid beyond the bore": (f"sensitivity {ON} --grid 9,9,3 --voxel-mm 10 -o o.nii", 0,
                               "warning", "beyond the detectors", "smaller grid"),
    "axes z,y,x": (f"{PROJECT} --image cube.npy --grid 3,5,6 --voxel-mm 3", 3,
                   "cube.npy", "[nz][ny][nx]", "the grid is 6,5,3"),
    "an array without a grid": (f"{PROJECT} --image cube.npy", 3, "cube.npy", "--grid", "--voxel-mm"),
    "another grid than the image's": (f"{PROJECT} --image x.nii --grid 5,5,3 --voxel-mm 3", 2,
                                      "grid", "leave out --grid"),
    "blanks between numbers": (f"{MATRIX} --at 5 0 2", 2, "commas", "--at 5,0,2"),
    "blanks after commas": (f"{MATRIX} --at 5, 0, -2", 2, "commas", "--at 5,0,-2"),
    "blanks within quotes": (f"{MATRIX.replace(' ', '|')}|--at|5 0 2", 2, "commas", "--at 5,0,2"),
    "a grid with blanks": (f"{MATRIX} --grid 6 5 3 --voxel-mm 3", 2, "commas", "--grid 6,5,3"),
    "a grid with x": (f"{MATRIX} --grid 6x5x3 --voxel-mm 3", 2, "commas", "--grid 6,5,3"),
    "a point in the crystals": (f"{MATRIX} --at 500,0,0", 3, "no element", "in mm"),
    "a point to draw from outside": (f"render {ON} --at 500,0,0 -o o", 3, "(500, 0, 0)", "--at", "in mm"),
    # --- geometry
    "a diameter for the radius": ("scanner check ./double.yaml", 3, "looks like the diameter", "60 mm"),
    "a diameter for the radius, without a check": (f"sensitivity --scanner double.yaml --backend native {AT} -o o.nii", 0,
                                                   "warning", "looks like the diameter",
                                                   "loraster scanner check double.yaml"),
    "half of the radius": ("scanner check ./half.yaml", 3, "looks like half", "50.93 mm"),
    "a radius in cm": ("scanner check ./cm.yaml", 3, "the radius looks like cm (60 mm)"),
    "a radius in m": ("scanner check ./m.yaml", 3, "the radius looks like m (60 mm)"),
    "a radius in cm, without a check": (f"sensitivity --scanner cm.yaml {AT} -o o.nii", 3,
                                        "cm.yaml", "overlap", "a radius in cm"),
    # --- which file goes where
    "list mode as data": (f"{RECON} --data e.petsird", 3, "e.petsird", "--events"),
    "CASToR's list mode as data": (f"{RECON} --data e.Cdh", 3, "e.Cdh", "--events"),
    "an array as data": (f"backproject {ON} {AT} --data cube.npy -o o.nii", 3,
                         "cube.npy", "NumPy", "docs/formats/lor-data.md"),
    "an image as data": (f"{RECON} --data x.nii", 3, "x.nii", "looks like an image", "--image"),
    "a matrix as data": (f"{RECON} --data m.h5", 3, "m.h5", "system matrix"),
    "data as list mode": (f"{RECON} --events y.h5", 3, "y.h5", "--data"),
    "an image as list mode": (f"{RECON} --events x.nii", 3, "x.nii", "looks like an image"),
    "compressed list mode": (f"{RECON} --events e.petsird.gz", 3, "e.petsird.gz", "gunzip"),
    "data as an image": (f"{PROJECT} --image y.h5", 3, "y.h5", "looks like LOR data", "--data"),
    "a scanner as the grid": (f"sensitivity {ON} --like ring.yaml -o o.nii", 3, "ring.yaml", "looks like a scanner"),
    "an image as a scanner": (f"sensitivity --scanner ./x.nii {AT} -o o.nii", 3, "x.nii", "looks like an image"),
    "an image as a scanner to check": ("scanner check ./x.nii", 3, "looks like an image"),
    "LOR data as histo-images": (f"{DIRECT} --data y.h5 --tof-ps 400", 3, "y.h5", "without --operator direct",
                                 "direct deposit"),
    "data as efficiencies": (f"{RECON} --data y.h5 --efficiencies y.h5", 3, "y.h5", "looks like LOR data"),
    "a heading in efficiencies": (f"{RECON} --data y.h5 --efficiencies eff.csv", 3, "eff.csv:1", "'crystal'", "#"),
    "too few efficiencies": (f"{RECON} --data y.h5 --efficiencies few.txt", 3,
                             "127 numbers", "128 crystals", "scanner show --crystals"),
    "efficiencies in percent": (f"{RECON} --data y.h5 --efficiencies percent.txt", 0,
                                "warning", "fewer than one each", "percent"),
    "efficiencies of 0": ("factors --scanner ring.yaml --efficiencies none.txt -o o.h5", 3,
                          "none.txt", "0 everywhere", "efficiencies"),
    "efficiencies of 0, recon": (f"{RECON} --data y.h5 --efficiencies none.txt", 3,
                                 "none.txt", "efficiencies are 0 everywhere", "right file"),
    "list mode as a sinogram": ("sinogram e.petsird --scanner ring.yaml -o o.png", 3,
                                "e.petsird", "list mode", "events convert FILE counts.h5"),
    "lists of two scanners": ("events merge e.petsird tof.petsird -o o.petsird", 3, "tof.petsird", "another scanner's"),
    "an empty file as data": (f"{RECON} --data empty.h5", 3, "empty.h5", "is empty", "make it again"),
    "several images in one array": (f"{PROJECT} --image four.npy --grid 6,5,3 --voxel-mm 3", 3,
                                    "four.npy", "4 dimensions", "[nz][ny][nx]"),
    "one slice in an array": (f"{PROJECT} --image slice.npy --grid 6,5,3 --voxel-mm 3", 3,
                              "slice.npy", "2 dimensions", "[nz][ny][nx]", "reshape(nz, ny, nx)"),
    "an array of another grid": (f"{PROJECT} --image cube.npy --grid 5,5,5 --voxel-mm 3", 3,
                                 "cube.npy", "[3][5][6]", "[5][5][5]", "own grid, 6,5,3"),
    "a table as list mode": (f"{RECON} --events eff.csv", 3, "eff.csv", "CSV", "PETSIRD", "python.md#list-mode", "gate.md"),
    "a point and a grid": (f"{MATRIX} --at 0,0,0 {AT}", 2, "--at", "no grid", "leave out --grid"),
    "a file without its option": ("view ring.yaml", 2, "Did you mean --scanner ring.yaml"),
    # --- names
    "a file in capitals": (f"{PROJECT} --image X.nii", 3, "X.nii", "No such file", "did you mean x.nii?"),
    "another ending": (f"sensitivity --scanner ring.yml {AT} -o o.nii", 3, "ring.yml", "did you mean ring.yaml?"),
    "a typing error in a file": (f"{RECON} --events e.petsrd", 3, "did you mean e.petsird?"),
    "a typing error in data": (f"{RECON} --data y.hh5", 3, "y.hh5", "did you mean y.h5?"),
    "a folder that is not there": (f"{RECON} --data scans/y.h5", 3, "no folder scans"),
    "a file as a folder": (f"{RECON} --data x.nii/y.h5", 3, "x.nii is a file"),
    "list mode that is not there": ("events show gone.l", 3, "gone.l", "No such file"),
    "a preset in capitals": ("scanner show siemens-MMR", 3, "did you mean 'siemens-mmr'"),
    "a preset by its last part": ("scanner show biograph-mmr", 3, "'siemens-mmr'"),
    "a scanner file without its ending": ("scanner show ring", 3, "the file ring.yaml"),
    "an empty name": (f"{RECON.replace(' ', '|')}|--data|", 2, "--data", "followed by nothing"),
    # --- options of other programs
    "an option's beginning": (f"{RECON} --data y.h5 --iter 5", 2, "did you mean --iterations?"),
    "voxel alone": (f"{MATRIX} --grid 6,5,3 --voxel 3", 2, "did you mean --voxel-mm?"),
    "output in full": (f"project {ON} --image x.nii --output o.h5", 2, "did you mean -o?"),
    "input": (f"{PROJECT} --input x.nii", 2, "did you mean --image?"),
    "data to project": (f"{PROJECT} --data x.nii", 2, "did you mean --image?"),
    "attenuation": (f"{RECON} --data y.h5 --attenuation mm.nii", 2, "did you mean --mu?"),
    "an option in capitals": (f"{RECON} --data y.h5 --Iterations 5", 2, "did you mean --iterations?"),
    "cuda": (f"{SENSITIVITY_BY} --backend cuda", 2, "--backend cuda", "direct", "compute"),
    "cuda that is not here": (f"recon --operator direct --backend cuda --tof-ps 400 --data d.h5 --algorithm ramla "
                              "-o o.nii", 4, "no CUDA", "--backend auto"),
    "cuda for list mode that is not here": (
        f"recon --operator listmode --backend cuda --scanner ring.yaml {AT} --events e.petsird -o o.nii", 4,
        "no CUDA", "--backend auto"),
    "scatter": (f"simulate {ON} {AT} --phantom point --scatter 0.3 -o o.h5", 2, "--scatter", "not simulated", "gate.md"),
    "a phantom's radius": (f"simulate {ON} {AT} --phantom cylinder --radius-mm 20 -o o.h5", 2,
                           "loraster phantom cylinder --radius-mm 20", "--image p.nii"),
    "a device for the processor": (f"{SENSITIVITY} --device 5", 0, "warning", "--device 5 has no effect", "processor"),
    "gpu": (f"{SENSITIVITY_BY} --backend gpu", 2, "--backend gpu", "compute"),
    "a word that nearly is one": (f"{RECON} --data y.h5 --algorithm osme", 2, "did you mean osem"),
    "another name of the verb": ("reconstruct --data y.h5", 2, "did you mean recon?"),
    "a verb in capitals": ("Simulate", 2, "did you mean simulate?"),
    # --- numbers
    "memory without a unit": (f"{RECON} --data y.h5 --max-memory 4", 2, "4 bytes", "4G"),
    "counts with a letter": (f"simulate {ON} {AT} --phantom point --counts 2M -o o.h5", 2, "--counts 2M", "2e6"),
    "half an iteration": (f"{RECON} --data y.h5 --iterations 2.5", 2, "--iterations 2.5", "whole number"),
    "more subsets than pairs": (f"{RECON} --data y.h5 --algorithm osem --subsets 400", 2, "400 subsets", "12"),
    "subsets of mlem": (f"{RECON} --data y.h5 --subsets 4", 2, "--algorithm osem"),
    "rays without lines": (f"{SENSITIVITY} --mode exact --rays 8", 0, "warning", "--rays 8", "--mode sampled"),
    "time of flight in ns": (f"{DIRECT} --data y.h5 --tof-ps 0.4", 2, "ns", "400"),
    "time of flight in ns, list mode": (f"{LISTMODE} --tof-ps 0.4", 2, "ns", "400"),
    "time of flight in ns, simulated": (f"simulate {ON.replace('--backend cpu ', '')} {AT} --phantom point --counts 9 "
                                        "--tof-ps 0.4 -o o.petsird", 2, "ns", "400"),
    "efficiencies of photon pairs": (f"simulate --scanner ring.yaml {AT} --phantom point --counts 9 --tof-ps 300 "
                                     "--efficiencies few.txt -o o.petsird", 2, "counts per LOR", "meet crystals"),
    "a forecast of list mode": (f"{LISTMODE} --dry-run", 2, "--dry-run", "--operator correspondence"),
    "a time resolution without times": (f"{LISTMODE} --tof-ps 400", 0,
                                        "warning", "--tof-ps 400 has no effect", "e.petsird has no times of flight"),
    "a time resolution of LOR data": (f"{RECON} --data y.h5 --tof-ps 400", 2, "--tof-ps", "direct or listmode"),
    "a resolution wider than the image": (f"{RECON} --data y.h5 --psf-mm 100", 2,
                                          "100 mm along x", "wider than the image", "18 mm"),
    "a resolution wider than crystals": (f"{RECON.replace(AT, '--grid 15,15,3 --voxel-mm 3')} --data y.h5 --psf-mm 13,13,0",
                                         0, "warning", "13 mm", "crystals of 4 mm", "the image's sum grows"),
    "a seed that is left out": (f"{RECON.replace(' -o o.nii', '')} --data y.h5 --bootstrap -o o.nii", 2,
                                "--bootstrap SEED"),
    "negative time of flight": (f"{DIRECT} --data y.h5 --tof-ps -400", 2, "--tof-ps -400", "positive"),
    "a reversed range": (f"{MATRIX} {AT} --rows 10:5", 2, "--rows 10:5", "FIRST:LAST", "0:90"),
    "a range with a dash": (f"{MATRIX} {AT} --rows 0-5", 2, "--rows 0-5", "FIRST:LAST"),
    "pairs with a colon": (f"{MATRIX} {AT} --pairs 0:4", 3, "0:4", "0-18,3-20"),
    "LORs with a dash": (f"{MATRIX} {AT} --by lor --lors 5-9", 3, "5-9", "12,40,100:200"),
    "a module that is not there": (f"{MATRIX} {AT} --pairs 0-9", 2, "module 9", "0 to 7"),
    "modules out of coincidence": (f"{MATRIX} {AT} --pairs 0-1", 2, "0 and 1", "not in coincidence", "scanner show"),
    "a LOR that is not there": (f"{MATRIX} {AT} --by lor --lors 99999", 2, "99999", "0 to 3071"),
    "a threshold in percent": (f"{MATRIX} {AT} --threshold 5%", 2, "share", "0.01"),
    "a sphere without a radius": (f"{MATRIX} {AT} --region sphere:0,0,0", 2, "sphere:X,Y,Z,R"),
    "a phantom larger than the grid": (f"phantom spheres --radius-mm 500 {AT} -o o.nii", 2, "500 mm", "7.5 mm"),
    # --- values
    "an image of zeros": (f"{PROJECT} --image zero.nii", 3, "o.h5", "0 everywhere", "is it the right image"),
    "nothing to simulate": (f"simulate {ON} --image zero.nii -o o.h5", 3, "0 everywhere"),
    "a negative activity": (f"simulate {ON} --image negative.nii -o o.h5", 3,
                            "negative.nii", "(0, 0, 0)", "-1", "set negative voxels to 0"),
    "too few counts to draw one": (f"simulate {ON} --image faint.nii -o o.h5", 3, "none was drawn", "--counts"),
    "data of zeros": (f"{RECON} --data zero.h5", 3, "zero.h5", "no counts", "right file"),
    "back-projection of zeros": (f"backproject {ON} {AT} --data zero.h5 -o o.nii", 3, "o.nii", "0 everywhere"),
    "an initial image of zeros": (f"{RECON} --data y.h5 --initial zero.nii", 3, "initial", "positive values"),
    "an initial image of another grid": (f"{RECON} --data y.h5 --initial other.nii", 3, "other.nii", "--like"),
    "events outside of the grid": (
        f"direct deposit --activity x.nii --scanner penn-labr3 --count 9 --backend cpu {AT} -o o.h5 --origin-mm "
        "900,0,0", 3, "no event", "outside of the grid", "--origin-mm"),
    "events of another field of view": (
        f"recon --scanner narrow.yaml --backend cpu --threads 1 {AT} -o o.nii --events e.petsird --iterations 1", 0,
        "warning", "e.petsird", "% of the prompts", "not in coincidence", "field_of_view_mm"),
    "data as their own additive term": (f"{RECON} --data y.h5 --additive y.h5", 2,
                                        "--additive y.h5 is the data itself", "expected randoms and scatter"),
    "randoms of events without delayeds": (f"{RECON} --events e.petsird --randoms auto --iterations 1", 0,
                                           "warning", "no delayeds", "--additive"),
    "list mode beside the grid": (f"{LISTMODE} --origin-mm 900,0,0", 3, "span x 900", "grid's origin"),
    "a sinogram far away": ("sinogram y.h5 --scanner ring.yaml --z-mm 1000 -o o.png", 3,
                            "no LOR's middle lies within 5 mm of z = 1000 mm", "they lie from"),
    "floats in the other byte order": (f"{PROJECT} --image swapped.mhd", 3,
                                       "swapped", "other byte order only", "BinaryDataByteOrderMSB"),
    "floats as whole numbers": (f"{PROJECT} --image whole.mhd", 0, "warning", "whole numbers look like floats"),
    "a row of a point far away": (f"{MATRIX} --at 900,0,0", 3, "no line through the point",
                                  "x from -", "z from -8 to 8 mm"),
    "pictures of a point far away": (f"render {ON} --at 0,0,99 -o o", 3, "(0, 0, 99)", "z from -8 to 8 mm"),
    "a phantom's point beyond the grid": (f"phantom point --at 0,0,9 {GRID} -o o.nii", 2, "lies outside",
                                          "z from -6 to 6 mm"),
    "a short option": (f"{RECON} --data y.h5 -i 3", 2, "no short options but -o", "--iterations or --initial?"),
    "a seed": (f"{RECON} --data y.h5 --seed 3", 2, "did you mean --bootstrap SEED?"),
    "a grid of two numbers": (f"{MATRIX} --grid 20,20 --voxel-mm 3", 2, "three numbers", "--grid 20,20,6"),
    "a decimal comma": (f"{MATRIX} --grid 6,5,3 --voxel-mm 2,5", 2, "three numbers", "decimals have a point: 2.5"),
    "a decimal comma of one number": (f"{LISTMODE} --tof-ps 40,5", 2, "decimals have a point: 40.5"),
    "a decimal comma in a scanner": ("scanner show ./comma.yaml", 3, "unknown key '5'", "decimals have a point: 40.5"),
    "events for DIRECT": (f"{DIRECT} --events e.petsird", 2, "takes histo-images", "direct deposit --events e.petsird"),
    "rings too close": (f"sensitivity --scanner close.yaml {AT} -o o.nii", 3, "overlap", "ring_pitch_mm", "mm long"),
    "rings too close, checked": ("scanner check ./close.yaml", 3, "overlap", "ring_pitch_mm"),
    "another region": (f"{MATRIX} {AT} --region cylinder:0,0,0,6", 2, "box:X0", "sphere:X", "or an image"),
    "a region with blanks": (f"{MATRIX} {AT} ".strip().replace(" ", "|") + "|--region|sphere 0 0 0 6", 2, "box:X0"),
    "a region far away": (f"{MATRIX} {AT} --region sphere:500,0,0,1", 2, "no voxel centre", "they lie from (-7.5"),
    "modules of a LOR out of coincidence": (f"{MATRIX.replace('o.tsv', 'o.nii')} {AT} --lor 0,0,0,1,0,0", 2,
                                            "not in coincidence", "scanner show"),
    "voxels of 8 m": (f"{SENSITIVITY.replace(AT, '--grid 6,5,3 --voxel-mm 8000')}", 2, "edges are in mm"),
    "a device by its kind": (f"{SENSITIVITY} --device gpu", 2, "--device 0 (loraster info lists them)"),
    "a share in percent": (f"simulate {ON} {AT} --phantom point --counts 9 --randoms 30% -o o.h5", 2, "30 % is 0.3"),
    "a share above 1": (f"simulate {ON} {AT} --phantom point --counts 9 --randoms 30 -o o.h5", 2,
                        "must be below 1", "0.3 for 30 %"),
    "a dash for two hyphens": (f"{RECON} \u2013\u2013data y.h5".replace("\u2013\u2013", "\u2013"), 2,
                               "type two hyphens: --data"),
    "a sign for a hyphen": (f"{MATRIX} --at 5,0,\u22122", 2, "type a hyphen"),
    "a folder as a scanner": (f"sensitivity --scanner heads {AT} -o o.nii", 3, "did you mean heads/scanner.yaml?"),
    "a scanner without a verb": ("scanner ring.yaml", 2, "did you mean scanner show ring.yaml?"),
    "a verb alone": ("recon", 2, "recon needs -o IMAGE", "loraster recon --scanner"),
    "data to verify": ("matrix verify y.h5", 3, "y.h5", "/matrix", "recon --data"),
    "a matrix that does not say whose": ("matrix verify m.npz", 2, "m.npz", "--scanner", "--grid"),
    "contrast without spheres": (f"phantom cylinder --contrast 3 {AT} -o o.nii", 0, "warning", "no spheres"),
    "smoothing by nothing": ("smooth x.nii o.nii --fwhm-mm 0", 0, "warning", "smooths nothing"),
    "UTF-16": ("scanner show ./utf16.yaml", 3, "utf16.yaml", "save it as UTF-8"),
    "an empty PETSIRD file": (f"{RECON} --events empty.petsird", 3, "empty.petsird", "copy it again"),
    # --- outputs
    "a forecast of no output": (f"matrix {ON} {AT} --dry-run", 2, "matrix needs -o FILE", "--dry-run", "its format"),
    "no output": (f"project {ON} --image x.nii", 2, "-o FILE"),
    "an output in no folder": (f"project {ON} --image x.nii -o no/o.h5", 1, "no folder no", "make it first"),
    "an output within a file": (f"project {ON} --image x.nii -o x.nii/o.h5", 1, "x.nii", "is a file"),
    "an output that is a folder": (f"matrix {ON} --at 0,0,0 -o folder", 1, "it is a folder"),
    "a file where a folder goes": (f"render {ON} --at 0,0,0 -o ring.yaml", 1, "ring.yaml", "a file has that name"),
    "a folder in no folder": (f"render {ON} --at 0,0,0 -o no/o", 1, "no/o", "make that first"),
    "a picture for an image": (f"recon {ON} {AT} --data y.h5 -o o.png", 2, "o.png", ".nii")}


class Mistakes(ProgramTest):
    """They share one folder, which none of them changes."""

    @classmethod
    def setUpClass(cls):
        cls.shared = Path(tempfile.mkdtemp(prefix="loraster-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)

    def setUp(self):
        self.folder = self.shared
        self.scanner = "ring.yaml"
        self.on_ring = f"--scanner {self.scanner} {CPU} --threads 1"
        os.chdir(self.folder)
        if not os.path.exists(self.scanner):
            self.make_files()

    def put_image(self, name, *values, shift_mm=0.0):
        """Voxels have the values by turns."""
        write_nifti(name, SIZE, VOXEL_MM, [values[k % len(values)] for k in range(NUM_VOXELS)])
        raw = bytearray(Path(name).read_bytes())
        first_mm, = struct.unpack_from("<f", raw, 280 + 12)
        struct.pack_into("<f", raw, 280 + 12, first_mm + shift_mm)
        Path(name).write_bytes(raw)

    def put_metaimage(self, name, kind, order):
        """Floats, whose header may name another type or byte order."""
        values = [0.5 + 0.01 * k for k in range(NUM_VOXELS)]
        Path(name + ".raw").write_bytes(struct.pack(f"{order}{NUM_VOXELS}f", *values))
        self.write(name + ".mhd", "ObjectType = Image\nNDims = 3\nBinaryData = True\nBinaryDataByteOrderMSB = False\n"
                   f"CompressedData = False\nOffset = -7.5 -6 -4\nElementSpacing = 3 3 4\nDimSize = 6 5 3\n"
                   f"ElementType = {kind}\nElementDataFile = {name}.raw\n")

    def make_files(self):
        for folder in ("heads", "folder"):
            os.mkdir(folder)
        for name, radius in (("double", "120"), ("half", "30"), ("cm", "6"), ("m", "0.06"), ("comma", "40,5")):
            self.write(f"{name}.yaml", README_RING.replace("radius_mm: 60", f"radius_mm: {radius}"))
        for name, text in {"ring.yaml": SMALL_RING, "heads/scanner.yaml": SMALL_RING,
                           "narrow.yaml": SMALL_RING.replace("view_mm: 30", "view_mm: 8"),
                           "close.yaml": README_RING.replace("ring_pitch_mm: 22", "ring_pitch_mm: 10"),
                           "empty.petsird": "", "m.npz": "", "empty.h5": "", "eff.csv": "crystal,efficiency\n0,1\n",
                           "few.txt": "1\n" * 127, "percent.txt": "100\n" * 128, "none.txt": "0\n" * 128}.items():
            self.write(name, text)
        for name, *values in (("x", 1.0), ("zero", 0.0), ("negative", -1.0, 1.0), ("faint", 1e-6), ("mm", 0.0096),
                              ("cm", 0.096), ("hu", 40.0, -1000.0), ("shifted", 1064.0, 24.0)):
            self.put_image(f"{name}.nii", *values)
        self.put_image("far.nii", 0.0096, shift_mm=900)
        self.put_image("corner.nii", 0.0096, shift_mm=25)
        write_nifti("other.nii", (4, 4, 4), (3, 3, 3), [1.0] * 64)
        write_nifti("upright.nii", (3, 10, 10), (4, 4, 4), [1.0] * 300)
        self.put_metaimage("swapped", "MET_FLOAT", ">")
        self.put_metaimage("whole", "MET_INT", "<")
        Path("utf16.yaml").write_bytes(README_RING.encode("utf-16"))
        write_npy("cube.npy", (3, 5, 6), [1.0] * 90)
        write_npy("four.npy", (2, 3, 5, 6), [1.0] * 180)
        write_npy("slice.npy", (5, 6), [1.0] * 30)
        simulate = f"simulate {self.on_ring} {GRID} --phantom spheres --counts 9000"
        for name in ("y.h5", "e.petsird", "e.Cdh"):
            self.good(f"{simulate} -o {name}")
        self.write("right.yaml", README_RING)
        self.good(f"simulate --scanner right.yaml {GRID} --phantom point --counts 90 --tof-ps 300 -o tof.petsird")
        self.good("direct deposit --activity x.nii --scanner penn-labr3 --count 99 --backend cpu --azimuths 2",
                  "--tilts 1 --grid 64,64,16 --voxel-mm 8 -o d.h5")
        self.good(f"factors --scanner {self.scanner} --efficiencies percent.txt -o zero.h5")
        self.set_to_zero("zero.h5")
        self.good(f"matrix {self.on_ring} --at 0,0,0 -o m.h5")
        Path("e.petsird.gz").write_bytes(gzip.compress(Path("e.petsird").read_bytes()))

    def set_to_zero(self, name):
        """Of a file that holds efficiencies of 100: 10000 in all LORs in coincidence."""
        raw = Path(name).read_bytes()
        value = struct.pack("<f", 10000.0)
        self.assertGreater(raw.count(value), 2000)
        Path(name).write_bytes(raw.replace(value, bytes(4)))

    def answer(self, command, code, *words):
        """One sentence with all words, and nothing that was not there before."""
        arguments = command.split("|" if "|" in command else " ")
        before = set(os.listdir(self.folder))
        done = self.run_program(*arguments, env=dict(os.environ, CUDA_VISIBLE_DEVICES=""))
        made = set(os.listdir(self.folder)) - before
        for name in made:
            path = Path(name)
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        told = [line for line in done.stderr.split("\n") if "error: " in line or "warning: " in line]
        self.assertEqual(done.returncode, code, f"{command}\n{done.stdout}{done.stderr}")
        self.assertTrue(any(all(word in line for word in words) for line in told), f"{command}\nno sentence has all "
                                                                                   f"of {words}:\n{done.stderr}")
        if code != 0:
            self.assertEqual(made, set(), "files were left behind")
            self.assertTrue(any(line.startswith("loraster: error: ") for line in told), told)

    def test_hounsfield_units(self):
        """Water and air by --mu-unit hu attenuate as the same map in 1/mm does; bone of 1000 HU has 0.1491/cm, by
        5.10e-5 * 2000 + 4.71e-2."""
        for first, second in [((0.0, -1000.0, 1000.0), (0.0096, 0.0, 0.01491)),
                              ((0.0, -3024.0, 47.0), (0.0096, 0.0, 0.0100512))]:
            self.put_image("ct.nii", *first)
            self.put_image("ct_mm.nii", *second)
            one = self.json("factors", "--scanner", self.scanner, "--mu", "ct.nii", "--mu-unit", "HU", "-o", "ct.h5")
            two = self.json("factors", "--scanner", self.scanner, "--mu", "ct_mm.nii", "-o", "ct.h5")
            self.assertLess(two["mean"], 0.95)
            self.assertAlmostEqual(one["mean"], two["mean"], delta=1e-7)
        for name in ("ct.nii", "ct_mm.nii", "ct.h5"):
            os.remove(name)

    def test_usual_subsets_are_as_many_as_there_can_be(self):
        """7 subsets of LORs, or 10 of views, are more than two panels of four crystals, two views or three events
        have; a number that is asked for is refused as before."""
        panel = "crystals: [2, 2], pitch_mm: [8, 8], face_mm: [7.9, 7.9], depth_mm: 15}"
        self.write("panels.yaml", "name: panels\nmodules:\n"
                   f"  - {{centre_mm: [0, 60, 0], u: [1, 0, 0], v: [0, 0, 1], {panel}\n"
                   f"  - {{centre_mm: [0, -60, 0], u: [-1, 0, 0], v: [0, 0, 1], {panel}\n")
        cube = "--grid 4,4,4 --voxel-mm 2 --scanner panels.yaml --backend native"
        for name in ("panels.h5", "panels.petsird"):
            self.good(f"simulate {cube} --phantom point --counts 3 -o {name}")
        osem = f"recon {cube} --algorithm osem -o panels.nii"
        direct = "recon --operator direct --backend cpu --tof-ps 400 --data d.h5 --algorithm ramla -o panels.nii"
        events = self.json("events show panels.petsird")["prompts"]
        listmode = f"recon {cube} --algorithm osem -o panels.nii --operator listmode --events panels.petsird"
        for command, most in [(f"{osem} --data panels.h5", 4), (listmode, min(events, 7)), (direct, 2)]:
            self.assertEqual(self.json(command)["subsets"], most)
            self.refuse(2, "subsets", f"{command} --subsets 50")
        for name in ("panels.yaml", "panels.h5", "panels.petsird", "panels.nii"):
            os.remove(name)

    def test_a_reader_that_has_enough(self):
        """A pipe that `head` closes is no error."""
        done = subprocess.run(["bash", "-c", f"'{self.program}' scanner show siemens-mmr --crystals | head -2; "
                                             "echo ${PIPESTATUS[0]}"], capture_output=True, text=True, check=True)
        self.assertIn(done.stdout.split()[-1], ("0", "141"))
        self.assertEqual(done.stderr, "")

    def test_a_box_is_no_ring(self):
        """Four panels with an end cap leave open corners, which say nothing about a radius."""
        panel = "crystals: [8, 8], pitch_mm: [3, 3], face_mm: [2.9, 2.9], depth_mm: 12}"
        sides = ((30, 0, 0, "[0, 1, 0]", "[0, 0, 1]"), (-30, 0, 0, "[0, -1, 0]", "[0, 0, 1]"),
                 (0, 30, 0, "[-1, 0, 0]", "[0, 0, 1]"), (0, -30, 0, "[1, 0, 0]", "[0, 0, 1]"),
                 (0, 0, 30, "[-1, 0, 0]", "[0, 1, 0]"))
        self.write("box.yaml", "name: box\nmodules:\n" + "".join(
            f"  - {{centre_mm: [{x}, {y}, {z}], u: {u}, v: {v}, {panel}\n" for x, y, z, u, v in sides))
        done = self.run_program("scanner", "check", "./box.yaml")
        self.assertNotIn("radius", done.stdout + done.stderr)
        os.remove("box.yaml")

    def test_subsets_of_few_angles(self):
        """Two panels have few directions: subsets differ, and fewer are advised; a ring of many crystals is even."""
        panel = "crystals: [8, 4], pitch_mm: [3, 3], face_mm: [2.9, 2.9], depth_mm: 12}"
        self.write("panels.yaml", "name: panels\nmodules:\n"
                   f"  - {{centre_mm: [0, 40, 0], u: [1, 0, 0], v: [0, 0, 1], {panel}\n"
                   f"  - {{centre_mm: [0, -40, 0], u: [-1, 0, 0], v: [0, 0, 1], {panel}\n")
        for scanner, subsets, is_advised in (("panels", 7, True), ("right", 2, False)):
            self.good(f"simulate --scanner {scanner}.yaml {AT} --phantom point --counts 900 -o few.h5")
            said = self.good(f"recon --scanner {scanner}.yaml {AT} --data few.h5 --algorithm osem --subsets {subsets}",
                             "--iterations 1 -o few.nii").stderr
            self.assertIn("in number or direction", said)
            self.assertEqual("take 2 subsets (" in said, is_advised, said)
        for name in ("panels.yaml", "few.h5", "few.nii"):
            os.remove(name)

    def test_left_out_counts_are_said(self):
        """Counts of LORs that no voxel reaches are part of no iteration."""
        said = self.good(f"recon {ON} --grid 1,1,3 --voxel-mm 3,3,4 --data y.h5 --iterations 1 -o few.nii").stderr
        self.assertRegex(said, r"iteration 1: .*measured \d+ \(and \d+ are left out\), estimated before the update")
        os.remove("few.nii")

    def test_modules_mirrored_by_twos(self):
        """Two of five sides are too many for a suspicion, and are said."""
        panel = "crystals: [8, 8], pitch_mm: [3, 3], face_mm: [2.9, 2.9], depth_mm: 12}"
        sides = ((30, 0, 0, "[0, 1, 0]", "[0, 0, 1]"), (-30, 0, 0, "[0, -1, 0]", "[0, 0, 1]"),
                 (0, 30, 0, "[1, 0, 0]", "[0, 0, 1]"), (0, -30, 0, "[-1, 0, 0]", "[0, 0, 1]"),
                 (0, 0, 30, "[-1, 0, 0]", "[0, 1, 0]"))
        self.write("box.yaml", "name: box\nmodules:\n" + "".join(
            f"  - {{centre_mm: [{x}, {y}, {z}], u: {u}, v: {v}, {panel}\n" for x, y, z, u, v in sides))
        said = self.good("scanner", "check", "./box.yaml").stdout
        self.assertIn("2 of 5 modules count their crystals the other way round than the others", said)
        os.remove("box.yaml")

    def test_interleaved_subsets_count_for_the_matrix(self):
        """Three iterations of seven subsets keep the matrix as four do; one sensitivity does not."""
        ring = f"--scanner ring.yaml {AT} --backend native --dry-run -o o.nii"
        osem = f"recon {ring} --data y.h5 --algorithm osem --iterations"
        for command, keeps in ((f"{osem} 3", True), (f"{osem} 4", True), (f"sensitivity {ring}", False)):
            self.assertEqual(self.json(command)["forecast"]["matrix_bytes"] > 0, keeps, command)

    def test_right_radius_passes(self):
        done = self.good("scanner", "check", "./right.yaml")
        self.assertNotIn("arc", done.stdout + done.stderr)


def add(name, case):
    def test(self):
        self.answer(*case)
    test.__doc__ = name
    setattr(Mistakes, "test_" + "".join(c if c.isalnum() else "_" for c in name), test)


for case_name, parts in CASES.items():
    add(case_name, parts)


assert len(CASES) >= 60
main({"mistakes": Mistakes})

# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""LORaster's operators as other Python packages know them.

Each bridge is a module of its own, which is imported by its name and needs its package alone: bridges.deepinv,
bridges.petsird; bridges.parallelproj has that package's names and arguments, and needs none.
"""

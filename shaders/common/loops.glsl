// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Returns true if the renderer ended the thread's loops too early. Mesa's software renderer ends all
// loops of a thread after a total of 65,535 rounds, including any later loops. This function runs
// another loop and tests if it was ended. A test of the original loop's condition would not work,
// since compilers assume that it is false after the loop. rounds: a small number from a buffer, which
// the compiler does not know.
bool were_loops_ended(int rounds)
{
    int done = 0;
    while (done < rounds) done++;
    return done != rounds;
}

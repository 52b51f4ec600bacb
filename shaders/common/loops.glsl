// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Returns true if the renderer ended the thread's loops too early. Mesa's software renderer ends all loops of a thread
// after a total of 65,535 rounds, and then also every later loop. This function runs such a later loop and tests
// whether it was ended. A test of the original loop's condition would not work, because compilers assume that the
// condition is false after the loop. rounds: a small number from a buffer, which the compiler does not know.
bool were_loops_ended(int rounds)
{
    int done = 0;
    while (done < rounds) done++;
    return done != rounds;
}

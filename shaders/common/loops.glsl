// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Returns true if the renderer ended the thread's loops too early. Mesa's software renderer counts the rounds of all
// loops of a thread. After 65,535 rounds it ends the current loop, and every later loop too. This function runs another
// loop and tests whether it was ended. The condition of the original loop cannot be tested instead, because compilers
// assume that it is false after the loop. rounds: a small number from a buffer, so that the compiler does not know it.
bool were_loops_ended(int rounds)
{
    int done = 0;
    while (done < rounds) done++;
    return done != rounds;
}

// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Returns true if the renderer ended the thread's loops too early. Mesa's software renderer counts the rounds of all
// loops of a thread. After 65,535 rounds it ends the current loop, and every later loop too. This function runs another
// loop and tests whether it was ended. A test of the original loop's condition would not work, because compilers assume
// that the condition is false after the loop. rounds: a small number from a buffer, which the compiler does not know.
bool were_loops_ended(int rounds)
{
    int done = 0;
    while (done < rounds) done++;
    return done != rounds;
}

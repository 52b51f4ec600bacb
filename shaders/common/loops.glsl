// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// True if a thread's loops were ended before they were done. Mesa's software renderer ends all
// loops of a thread after a total of 65,535 rounds, and it also ends loops that come later. This
// function runs such a later loop and tests if it was ended. A test of the original loop's
// condition would not work: compilers assume it to be false after the loop. rounds: a small number
// from a buffer, so that the compiler does not know it.
bool were_loops_ended(int rounds)
{
    int done = 0;
    while (done < rounds) {
        done++;
    }
    return done != rounds;
}

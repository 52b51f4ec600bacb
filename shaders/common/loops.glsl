// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// True if a thread's loops were ended before they were done. Mesa's software renderer ends all loops of a thread once
// they have had 65,535 rounds together, and then one behind them, too. A compiler takes the condition of a loop as
// met behind it, so that must not be asked instead. rounds: a few, from a buffer, so that it is not known.
bool were_loops_ended(int rounds)
{
    int done = 0;
    while (done < rounds) {
        done++;
    }
    return done != rounds;
}

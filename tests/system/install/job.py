#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Four ranks on one host; the last one works half as long again from step 100 on."""
import multiprocessing
import time

import lockstep


def rank(number, barrier):
    lockstep.open(job="train", rank=number, world=4)
    for i in range(100000):
        with lockstep.step(i):
            time.sleep(.15 if number == 3 and i >= 100 else .1)
            with lockstep.sync_wait():
                barrier.wait()


everybody = multiprocessing.Barrier(4)
ranks = [multiprocessing.Process(target=rank, args=(n, everybody)) for n in range(4)]
for r in ranks:
    r.start()
for r in ranks:
    r.join()

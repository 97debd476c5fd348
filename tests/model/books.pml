/*
 * The counters of gpu/pool.c: each thread counts what it does with blocks, and pool_usage_sum() adds up while they
 * work. A counter's step is one step here, and every order of the steps of all threads is tried.
 *
 * It shows that a sum that reads what went out before what came in never sees more out than in, whoever releases or
 * frees a block that another thread acquired, and that the sums are exact in the end. Spin knows sequential
 * consistency only: with the release of each count and the acquire of each read, a count that is seen has all counts
 * behind it that came before, which is what this needs.
 *
 * With BROKEN the sum reads what came in first: the model must find that.
 */
#define THREADS 2
#define ROUNDS 3

byte acquired[THREADS], released[THREADS], kept[THREADS], taken[THREADS];
byte cached = 1; /* blocks in the ring: what happens in it is ring.pml's */

proctype thread(byte me) {
    byte round;
    for (round : 1 .. ROUNDS) {
        if
        :: atomic { cached > 0 -> cached-- };
            taken[me]++
        :: skip /* from the driver */
        fi;
        acquired[me]++;

        released[me]++;
        kept[me]++;
        if
        :: cached++
        :: taken[me]++ /* no room: freed */
        fi
    }
}

inline sum(counter, ret) {
    ret = counter[0];
    ret = ret + counter[1]
}

proctype reader() {
    byte in, out, in_ring, out_of_ring;
#ifdef BROKEN
    sum(acquired, in);
    sum(kept, in_ring);
    sum(released, out);
    sum(taken, out_of_ring);
#else
    sum(released, out);
    sum(taken, out_of_ring);
    sum(acquired, in);
    sum(kept, in_ring);
#endif
    assert(in >= out);
    assert(in_ring >= out_of_ring)
}

init {
    byte i;
    atomic {
        kept[0] = 1; /* the block that is there */
        run reader();
        for (i : 0 .. THREADS - 1) { run thread(i) }
    }
    _nr_pr == 1;
    assert(acquired[0] + acquired[1] == released[0] + released[1]);
    assert(kept[0] + kept[1] == taken[0] + taken[1] + cached)
}

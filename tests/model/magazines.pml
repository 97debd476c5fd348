/*
 * gpu/magazines.c in front of the ring of a size class of gpu/pool.c: a look at a place, an exchange and a
 * compare-and-swap are one step each, and every order of the steps of all threads is tried. Two threads take, hold and
 * return blocks, each with places of its own, of which it looks at any one first, as its hint may say anything; a third, which looks for memory, takes from anywhere and frees what it
 * finds. What happens inside of the ring is ring.pml's.
 *
 * It shows that no block has two owners and none is lost, and that blocks that lie in the places of threads that have
 * ended, or are idle, are all found by one who needs them: nobody waits for what an idle thread keeps.
 *
 * With BROKEN a thread takes from its own place with a look and a store, as if nobody else could: the model must find
 * that.
 */
#define THREADS 2
#define PLACES 2
#define ROUNDS 2
#define BLOCKS 3 /* named 1 to 3; a place with 0 is empty */

byte place[THREADS * PLACES];
bool in_ring[BLOCKS + 1];

/* What is watched, and no part of the pool. */
byte owners[BLOCKS + 1];
bool is_freed[BLOCKS + 1];

inline own(block) {
    owners[block]++;
    assert(owners[block] == 1 && !is_freed[block])
}

/* `got` stays 0 where nothing is found. */
inline pop_ring(got) {
    atomic {
        if
        :: in_ring[1] -> in_ring[1] = false; got = 1
        :: in_ring[2] -> in_ring[2] = false; got = 2
        :: in_ring[3] -> in_ring[3] = false; got = 3
        :: else
        fi;
        if
        :: got != 0 -> own(got)
        :: else
        fi
    }
}

inline take_place(at, seen, got) {
    seen = place[at];
    if
    :: seen == 0
    :: else ->
#ifdef BROKEN
        place[at] = 0;
        got = seen;
        own(got)
#else
        atomic {
            got = place[at];
            place[at] = 0;
            if
            :: got != 0 -> own(got)
            :: else
            fi
        }
#endif
    fi
}

/* From the places of all threads. */
inline steal(at, seen, got) {
    at = 0;
    do
    :: at == THREADS * PLACES || got != 0 -> break
    :: else -> take_place(at, seen, got); at++
    od
}

/* The place after this one; after the thread's last one, its first. */
inline next_place(me, at) {
    at = me * PLACES + (at + 1 - me * PLACES) % PLACES
}

proctype thread(byte me) {
    byte round, at, looks, seen, got;
    bool is_kept;
    for (round : 1 .. ROUNDS) {
        got = 0;
        looks = 0;
        select(at : me * PLACES .. (me + 1) * PLACES - 1);
        do
        :: looks == PLACES || got != 0 -> break
        :: else -> take_place(at, seen, got); next_place(me, at); looks++
        od;
        if
        :: got == 0 -> pop_ring(got)
        :: else
        fi;
        if
        :: got == 0 -> steal(at, seen, got)
        :: else
        fi;
        if
        :: got == 0 -> skip /* the driver would be asked now */
        :: else ->
            is_kept = false;
            looks = 0;
            select(at : me * PLACES .. (me + 1) * PLACES - 1);
            do
            :: looks == PLACES || is_kept -> break
            :: else ->
                seen = place[at];
                if
                :: seen != 0
                :: else ->
                    atomic {
                        if
                        :: place[at] == 0 -> owners[got]--; place[at] = got; is_kept = true
                        :: else
                        fi
                    }
                fi;
                next_place(me, at);
                looks++
            od;
            if
            :: is_kept
            :: else -> atomic { owners[got]--; in_ring[got] = true }
            fi
        fi
    }
}

inline reclaim_one(at, seen, got) {
    got = 0;
    pop_ring(got);
    if
    :: got == 0 -> steal(at, seen, got)
    :: else
    fi;
    if
    :: got != 0 -> atomic { owners[got]--; is_freed[got] = true }
    :: else
    fi
}

proctype reclaimer() {
    byte at, seen, got;
    reclaim_one(at, seen, got);
    reclaim_one(at, seen, got)
}

init {
    byte i, at, seen, got;
    atomic {
        in_ring[1] = true;
        place[0] = 2;
        place[PLACES] = 3;
        run reclaimer();
        for (i : 0 .. THREADS - 1) { run thread(i) }
    }
    _nr_pr == 1;
    for (i : 1 .. BLOCKS) { reclaim_one(at, seen, got) }
    for (i : 1 .. BLOCKS) { assert(is_freed[i] && owners[i] == 0) }
}

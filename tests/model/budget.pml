/*
 * gpu/budget.c and the driver behind it, step by step: a load and a compare-and-swap are one step each, and every
 * order of the steps of all threads is tried.
 *
 * It shows that the books never pass the limit and never fall below zero, that the driver never has more out than the
 * books say, that a charge is refused only where it would pass the limit, and that all ends at zero. The counter
 * orders no other memory, so that sequential consistency, all that spin knows, takes nothing away.
 *
 * With BROKEN a charge checks first and adds later: the model must find that.
 */
#define THREADS 3
#define ROUNDS 3
#define LIMIT 4

byte charged; /* the books */
byte out;     /* what the driver handed out */

inline charge(bytes, is_refused) {
    seen = charged;
    do
    :: seen + bytes > LIMIT -> is_refused = true; break
    :: else ->
#ifdef BROKEN
        charged = charged + bytes;
        assert(charged <= LIMIT);
        is_refused = false;
        break
#else
        atomic {
            if
            :: charged == seen ->
                charged = seen + bytes;
                assert(charged <= LIMIT);
                is_refused = false;
                break
            :: else -> seen = charged
            fi
        }
#endif
    od
}

inline refund(bytes) {
    seen = charged;
    do
    :: atomic {
            assert(bytes <= seen);
            if
            :: charged == seen ->
                charged = seen - bytes;
                assert(out <= charged);
                break
            :: else -> seen = charged
            fi
        }
    od
}

proctype thread(byte bytes) {
    byte round, seen;
    bool is_refused;
    for (round : 1 .. ROUNDS) {
        charge(bytes, is_refused);
        if
        :: is_refused -> assert(seen + bytes > LIMIT)
        :: else ->
            atomic { /* the driver allocates */
                out = out + bytes;
                assert(out <= charged)
            };
            out = out - bytes; /* and frees */
            refund(bytes)
        fi
    }
}

init {
    byte i;
    atomic {
        for (i : 1 .. THREADS) { run thread(i) }
    }
    _nr_pr == 1;
    assert(charged == 0 && out == 0)
}

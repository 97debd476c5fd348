/*
 * base/ring.c, step by step: a load, a store and a compare-and-swap are one step each, and every order of the steps
 * of all threads is tried.
 *
 * It shows that no value is lost, none comes out twice, and each producer's values come out in their order, also where
 * pushes meet a full ring and pops an empty one. Spin knows sequential consistency only: that the memory orders in
 * ring.c are strong enough is what the threads of tests/base/ring_test.c under the thread sanitizer are for.
 *
 * With BROKEN a pop gives its cell back before it has read the value: the model must find that.
 */
#define CAPACITY 2
#define PRODUCERS 2
#define CONSUMERS 2
#define VALUES 3 /* of each producer: three laps of the ring in all */
#define CELL(at) ((at) % CAPACITY)

byte turn[CAPACITY];
byte value[CAPACITY];
byte tail, head;

/* What is watched, and no part of the ring. A value is producer * VALUES + number. */
byte popped;
byte seen[PRODUCERS * VALUES];
byte due[PRODUCERS]; /* the number that must come out next */

proctype producer(byte me) {
    byte number, at, mark;
    for (number : 0 .. VALUES - 1) {
again:
        at = tail;
inspect:
        mark = turn[CELL(at)];
        if
        :: mark < at -> goto again /* full */
        :: mark > at -> at = tail; goto inspect
        :: mark == at ->
            atomic {
                if
                :: tail == at -> tail = at + 1
                :: else -> at = tail; goto inspect
                fi
            }
        fi;
        value[CELL(at)] = me * VALUES + number;
        turn[CELL(at)] = at + 1
    }
}

proctype consumer() {
    byte at, mark, got, promised;
again:
    if
    :: popped == PRODUCERS * VALUES -> goto done
    :: else
    fi;
    at = head;
inspect:
    mark = turn[CELL(at)];
    if
    :: mark < at + 1 -> goto again /* empty */
    :: mark > at + 1 -> at = head; goto inspect
    :: mark == at + 1 ->
        atomic {
            if
            :: head == at ->
                head = at + 1;
                promised = value[CELL(at)];
                assert(promised % VALUES == due[promised / VALUES]);
                due[promised / VALUES]++
            :: else -> at = head; goto inspect
            fi
        }
    fi;
#ifdef BROKEN
    turn[CELL(at)] = at + CAPACITY;
    got = value[CELL(at)];
#else
    got = value[CELL(at)];
    turn[CELL(at)] = at + CAPACITY;
#endif
    d_step {
        assert(got == promised);
        seen[got]++;
        popped++
    };
    goto again;
done:
    skip
}

init {
    byte i;
    atomic {
        for (i : 0 .. CAPACITY - 1) { turn[i] = i }
        for (i : 0 .. PRODUCERS - 1) { run producer(i) }
        for (i : 0 .. CONSUMERS - 1) { run consumer() }
    }
    _nr_pr == 1;
    for (i : 0 .. PRODUCERS * VALUES - 1) { assert(seen[i] == 1) }
    assert(head == tail && tail == PRODUCERS * VALUES)
}

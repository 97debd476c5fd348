/*
 * gpu/stash.c under gpu/statics.c, for one item: a look at a place, an exchange, an addition are one step each, and
 * every order of the steps of all threads is tried. Users find the item, with a stashed reference or in the table, use it
 * and release it. One that wants the item to go takes back the stashed references, and takes it out of the table only if
 * no other is left.
 *
 * It shows that the item is never gone while a thread uses it, that the references counted are those in use and those
 * stashed, and that an item which nobody uses can always go, whatever threads keep.
 *
 * With BROKEN the one that wants it to go takes it out when only stashed references are left, and takes these back after
 * that: the model must find that a thread gets one in between.
 */
#define USERS 2
#define ROUNDS 3
#define GROUP 2
#define MAX 3

/* A place: MARKED and the count change in one step. */
byte kept[USERS];
bool is_marked[USERS];

byte references;
bool is_locked;    /* of the shard */
bool is_in_table = true;

/* What is watched, and no part of the cache. */
byte users;
bool is_gone;

inline lock() { atomic { !is_locked -> is_locked = true } }
inline unlock() { is_locked = false }

/* A place keeps `count` references; `left` are to be released. */
inline keep(me, count, seen, left) {
    left = count;
    if
    :: !is_marked[me] -> is_marked[me] = true
    :: else ->
        seen = kept[me];
        if
        :: count == 0
        :: else -> atomic {
            if
            :: !is_marked[me] || kept[me] != seen /* the exchange fails */
            :: else ->
                if
                :: seen + count <= MAX -> kept[me] = seen + count; left = 0
                :: else -> kept[me] = GROUP; left = seen + count - GROUP
                fi
            fi
        }
        fi
    fi
}

inline use() {
    atomic { users++; assert(!is_gone) }
    atomic { assert(!is_gone); users-- }
}

proctype user(byte me) {
    byte round, seen, left, extra;
    bool has_one;
    for (round : 1 .. ROUNDS) {
        has_one = false;
        seen = kept[me];
        if
        :: seen == 0
        :: else -> atomic {
            if
            :: kept[me] == seen -> kept[me] = seen - 1; has_one = true
            :: else
            fi
        }
        fi;
        if
        :: has_one
        :: else ->
            lock();
            extra = 0;
            if
            :: !is_in_table
            :: else ->
                has_one = true;
                if
                :: is_marked[me] && kept[me] == 0 -> extra = GROUP
                :: else
                fi;
                references = references + 1 + extra
            fi;
            unlock();
            if
            :: !has_one
            :: else -> keep(me, extra, seen, left); references = references - left
            fi
        fi;
        if
        :: !has_one
        :: else ->
            use();
            keep(me, 1, seen, left);
            references = references - left
        fi
    }
}

inline recall(i, seen, count) {
    count = 0;
    for (i : 0 .. USERS - 1) {
        do
        :: seen = kept[i];
            if
            :: seen == 0 -> break
            :: else -> atomic {
                if
                :: kept[i] == seen -> kept[i] = 0; is_marked[i] = false; count = count + seen; break
                :: else
                fi
            }
            fi
        od
    }
}

inline try_to_remove(i, seen, count) {
    lock();
#ifdef BROKEN
    count = 0;
    for (i : 0 .. USERS - 1) { count = count + kept[i] };
    if
    :: is_in_table && references == count -> is_in_table = false; is_gone = true; recall(i, seen, count)
    :: else
    fi;
#else
    if
    :: !is_in_table
    :: else ->
        if
        :: references == 0
        :: else -> recall(i, seen, count); references = references - count
        fi;
        if
        :: references == 0 -> is_in_table = false; is_gone = true
        :: else
        fi
    fi;
#endif
    unlock()
}

proctype evictor() {
    byte i, seen, count;
    try_to_remove(i, seen, count)
}

init {
    byte i, seen, count;
    atomic {
        run evictor();
        for (i : 0 .. USERS - 1) { run user(i) }
    }
    _nr_pr == 1;
    assert(users == 0 && references == kept[0] + kept[1]);
    try_to_remove(i, seen, count);
    assert(is_gone)
}

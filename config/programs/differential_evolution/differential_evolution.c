/**
 * Differential evolution, DE/rand/1/bin: Storn and Price, "Differential evolution: a simple and
 * efficient heuristic for global optimization over continuous spaces" (1997).
 *
 * One block is one search. A round is one launch: the first evaluates random points, and each later
 * one is a generation. A search begins by itself where its buffers are zeroes, and goes on from
 * what they hold.
 *
 *   population  `members` points, then their values
 *   trials      of this generation only: as many points, then their values
 *   best, loss  the best point, and its value
 *   counts      rounds done, the round that found `best`, and why the search has ended: 1 its
 *               target, 2 nothing better for `window` rounds, 3 no member has a value
 *   done        0, or the round after which it was done
 *   seed        random numbers depend on it, the round, the member and the axis alone
 *   scale       F, of the difference of two members: 0.5 to 0.9
 *   crossover   CR, how likely an axis is taken from the mutant. Low where axes are independent
 *   low, high   the first points are between them on each axis; later ones may be anywhere
 *   target, window      optimizer.h, which has the objectives, too
 *
 * Results are the same bits for any block. It has threads in x only, and one block is enough; with
 * more threads than members some have nothing to evaluate. Shared memory: 4 bytes for each thread.
 */
#include "optimizer.h"

struct points {
    float *of;     /* point i begins at i times the dimension */
    float *values; /* what the objective says of each */
};

struct search {
    struct points population, trials;
    uint32_t dimension, members, round;
    uint64_t seed;
    float scale, crossover;
};

/** Three other members, all different, and an axis that the mutant gives in any case. */
struct draw {
    uint32_t base, plus, minus, axis;
};

/** From 0 to less than `count`. */
DEVICE uint32_t below(uint32_t word, uint32_t count) {
    return (uint32_t)((uint64_t)word * count >> 32);
}

/** Random numbers of a member and a round: in the first round of an axis each, later of four axes
 * each, and of the draw. */
DEVICE struct philox numbers_of(const struct search *search, uint32_t member, uint64_t which) {
    return philox4x32(search->seed, (uint64_t)search->round << 32 | member, which);
}

DEVICE struct draw draw_for(const struct search *search, uint32_t member) {
    const uint64_t behind_all_axes = 0xffffffff;
    struct philox four = numbers_of(search, member, behind_all_axes);
    struct draw draw;
    /* Each is drawn from fewer, and then steps over those that are taken, in their order. */
    draw.base = below(four.word[0], search->members - 1);
    draw.base += draw.base >= member;
    uint32_t low = min_u32(member, draw.base), high = max_u32(member, draw.base);
    draw.plus = below(four.word[1], search->members - 2);
    draw.plus += draw.plus >= low;
    draw.plus += draw.plus >= high;
    uint32_t taken[3] = {min_u32(low, draw.plus), 0, max_u32(high, draw.plus)};
    taken[1] = low + high + draw.plus - taken[0] - taken[2];
    draw.minus = below(four.word[2], search->members - 3);
    for (uint32_t i = 0; i < 3; i++) draw.minus += draw.minus >= taken[i];
    draw.axis = below(four.word[3], search->dimension);
    return draw;
}

DEVICE void begin(const struct search *search, float low, float high) {
    uint32_t dimension = search->dimension;
    for (uint32_t at = thread_x(); at < search->members * dimension; at += block_dim_x()) {
        float where = uniform_f32(numbers_of(search, at / dimension, at % dimension).word[0]);
        search->population.of[at] = one_nan_f32(low + (high - low) * where);
    }
}

DEVICE void mutate(const struct search *search) {
    uint32_t dimension = search->dimension, fours = (dimension + 3) / 4;
    const float *of = search->population.of;
    for (uint32_t at = thread_x(); at < search->members * fours; at += block_dim_x()) {
        uint32_t member = at / fours, first = at % fours * 4;
        struct draw draw = draw_for(search, member);
        struct philox four = numbers_of(search, member, first / 4);
        UNROLL(4)
        for (uint32_t i = 0; i < 4; i++) {
            uint32_t k = first + i;
            if (k >= dimension) continue;
            float apart = of[draw.plus * dimension + k] - of[draw.minus * dimension + k];
            float mutant = of[draw.base * dimension + k] + search->scale * apart;
            bool is_taken = k == draw.axis || uniform_f32(four.word[i]) < search->crossover;
            float kept = of[member * dimension + k];
            search->trials.of[member * dimension + k] = is_taken ? one_nan_f32(mutant) : kept;
        }
    }
}

/** Whether the trial takes the member's place: it is as good or better. */
DEVICE bool wins(const struct search *search, uint32_t member) {
    return place_of_f32(search->trials.values[member]) <=
           place_of_f32(search->population.values[member]);
}

/** All threads of the block call it. */
DEVICE void replace(const struct search *search) {
    uint32_t dimension = search->dimension;
    for (uint32_t at = thread_x(); at < search->members * dimension; at += block_dim_x())
        if (wins(search, at / dimension)) search->population.of[at] = search->trials.of[at];
    barrier();
    for (uint32_t i = thread_x(); i < search->members; i += block_dim_x())
        if (wins(search, i)) search->population.values[i] = search->trials.values[i];
    barrier();
}

DEVICE uint32_t better_of(const float *values, uint32_t a, uint32_t b) {
    uint32_t first = place_of_f32(values[a]), second = place_of_f32(values[b]);
    return first < second || (first == second && a < b) ? a : b;
}

/** The member with the best value, the first of equals. All threads of the block call it. */
DEVICE uint32_t find_best(const struct search *search) {
    SHARED(uint32_t, found); /* among the members of each thread */
    const float *values = search->population.values;
    uint32_t best = min_u32(thread_x(), search->members - 1);
    for (uint32_t i = best; i < search->members; i += block_dim_x())
        best = better_of(values, best, i);
    found[thread_x()] = best;
    barrier();
    for (uint32_t i = 0; i < block_dim_x(); i++) best = better_of(values, best, found[i]);
    return best;
}

BATCHED_KERNEL(differential_evolution, (float *)population, (float *)trials, (float *)best,
    (float *)loss, (uint32_t *)counts, (uint32_t *)done, (uint32_t)objective, (uint32_t)dimension,
    (uint32_t)members, (uint64_t)seed, (float)scale, (float)crossover, (float)low, (float)high,
    (float)target, (uint32_t)window) {
    if (!is_live(done)) return;
    struct ending ending = {loss, counts, done, target, window};
    struct search search = {.dimension = dimension, .members = members};
    search.population.of = population;
    search.population.values = population + members * dimension;
    search.trials.of = trials;
    search.trials.values = trials + members * dimension;
    search.round = counts[ROUNDS] + 1;
    search.seed = seed;
    search.scale = scale;
    search.crossover = crossover;

    bool is_first = search.round == 1;
    struct points fresh = is_first ? search.population : search.trials;
    if (is_first) begin_search(&ending);
    if (is_first) begin(&search, low, high);
    else mutate(&search);
    barrier();
    evaluate(objective, fresh.of, fresh.values, members, dimension);
    barrier();
    if (!is_first) replace(&search);
    uint32_t first = find_best(&search);
    float found = search.population.values[first];
    if (is_better(&ending, found))
        for (uint32_t k = thread_x(); k < dimension; k += block_dim_x())
            best[k] = population[first * dimension + k];
    finish_round(&ending, search.round, found, false);
}

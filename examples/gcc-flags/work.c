/* A small mix of everyday work: sorting, hashing, string matching, matrices, sums of floats, and an interpreter.
   It prints one checksum. The same for every correct compilation: integers wrap as unsigned ones do, and floating
   point is IEEE double, each operation rounded, in the order written. */

#include <stdint.h>
#include <stdio.h>

enum { NUMBERS = 20000, WORDS = 3000, SLOTS = 8192, TEXT = 60000, SIDE = 92, TERMS = 100000, LIMIT = 2500 };

static uint64_t seed = 88172645463325252u;

static uint64_t draw(void) /* xorshift, Marsaglia 2003 */
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static uint64_t mix(uint64_t sum, uint64_t value)
{
    return (sum ^ value) * 0x9E3779B97F4A7C15u + (sum >> 29);
}

/* ---- sorting: quicksort, insertion sort below sixteen */

static int less(uint32_t a, uint32_t b) { return a < b; }

static void swap(uint32_t *a, uint32_t *b)
{
    uint32_t t = *a;
    *a = *b;
    *b = t;
}

static void insertion(uint32_t *x, int n)
{
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0 && less(x[j], x[j - 1]); j--)
            swap(&x[j], &x[j - 1]);
}

static void sort(uint32_t *x, int n)
{
    while (n > 16) {
        uint32_t pivot = x[n / 2];
        int i = 0, j = n - 1;
        while (i <= j) {
            while (less(x[i], pivot)) i++;
            while (less(pivot, x[j])) j--;
            if (i <= j) swap(&x[i++], &x[j--]);
        }
        sort(x, j + 1);
        x += i;
        n -= i;
    }
    insertion(x, n);
}

static uint64_t sorting(void)
{
    static uint32_t x[NUMBERS];
    uint64_t sum = 0;
    for (int i = 0; i < NUMBERS; i++) x[i] = (uint32_t)draw();
    sort(x, NUMBERS);
    for (int i = 0; i < NUMBERS; i++) sum = mix(sum, x[i]);
    return sum;
}

/* ---- hashing: words counted in an open table */

static uint32_t hash(const char *word)
{
    uint32_t h = 2166136261u; /* FNV-1a */
    for (; *word; word++) h = (h ^ (uint8_t)*word) * 16777619u;
    return h;
}

static int same(const char *a, const char *b)
{
    while (*a && *a == *b) a++, b++;
    return *a == *b;
}

static uint64_t hashing(void)
{
    static char words[WORDS][12];
    static const char *slot[SLOTS];
    static uint32_t count[SLOTS];
    uint64_t sum = 0;
    for (int i = 0; i < WORDS; i++) {
        int length = 3 + (int)(draw() % 3);
        for (int j = 0; j < length; j++) words[i][j] = (char)('a' + draw() % 6);
    }
    for (int round = 0; round < 20; round++)
        for (int i = 0; i < WORDS; i++) {
            uint32_t at = hash(words[i]) % SLOTS;
            while (slot[at] && !same(slot[at], words[i])) at = (at + 1) % SLOTS;
            slot[at] = words[i];
            count[at] += (uint32_t)(i + round);
        }
    for (int i = 0; i < SLOTS; i++) sum = mix(sum, count[i]);
    return sum;
}

/* ---- string matching, and a histogram and a checksum of the text */

static int occurrences(const char *text, int n, const char *needle, int m)
{
    int found = 0;
    for (int i = 0; i + m <= n; i++) {
        int j = 0;
        while (j < m && text[i + j] == needle[j]) j++;
        found += j == m;
    }
    return found;
}

static uint64_t matching(void)
{
    static char text[TEXT];
    static uint32_t histogram[256];
    static const char *needles[] = {"abca", "dcb", "aaaaa", "cabbage"};
    static const int lengths[] = {4, 3, 5, 7};
    uint64_t sum = 0;
    uint32_t a = 1, b = 0;
    for (int i = 0; i < TEXT; i++) text[i] = (char)('a' + draw() % 5);
    for (int k = 0; k < 4; k++) sum = mix(sum, (uint64_t)occurrences(text, TEXT, needles[k], lengths[k]));
    for (int i = 0; i < TEXT; i++) histogram[(uint8_t)text[i]]++;
    for (int i = 0; i < 256; i++) sum = mix(sum, histogram[i]);
    for (int i = 0; i < TEXT; i++) { /* Adler-32 */
        a = (a + (uint8_t)text[i]) % 65521;
        b = (b + a) % 65521;
    }
    return mix(sum, (uint64_t)b << 16 | a);
}

/* ---- matrices of integers, and a filter over an image */

static uint64_t matrices(void)
{
    static uint32_t a[SIDE][SIDE], b[SIDE][SIDE], c[SIDE][SIDE], d[SIDE][SIDE];
    uint64_t sum = 0;
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            a[i][j] = (uint32_t)draw() & 1023;
            b[i][j] = (uint32_t)draw() & 1023;
        }
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++)
            for (int k = 0; k < SIDE; k++) c[i][j] += a[i][k] * b[k][j];
    for (int round = 0; round < 20; round++)
        for (int i = 1; i + 1 < SIDE; i++)
            for (int j = 1; j + 1 < SIDE; j++) {
                uint32_t around = c[i - 1][j] + c[i + 1][j] + c[i][j - 1] + c[i][j + 1];
                d[i][j] = (4 * c[i][j] + around) >> 3;
                if (round & 1) d[i][j] ^= a[i][j];
            }
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) sum = mix(sum, mix(c[i][j], d[i][j]));
    return sum;
}

/* ---- a compensated sum (Kahan 1965): wrong as soon as a compiler takes floats for associative */

static uint64_t summing(void)
{
    static double x[TERMS];
    double sum = 0.0, lost = 0.0, squares = 0.0;
    union { double value; uint64_t bits; } result;
    for (int i = 0; i < TERMS; i++) x[i] = (double)(draw() >> 11) / 9007199254740992.0 * (i % 7 ? 1.0 : 1e9);
    for (int i = 0; i < TERMS; i++) {
        double y = x[i] - lost;
        double t = sum + y;
        lost = (t - sum) - y;
        sum = t;
    }
    for (int i = 0; i < TERMS; i++) x[i] = 0.5 * x[i] + 0.25;
    for (int i = 0; i < TERMS; i += 16) squares += x[i] * x[i];
    result.value = sum + squares * 1e-12;
    return result.bits;
}

/* ---- an interpreter: the longest Collatz walk below some limit */

enum { LOAD, ADD, MULTIPLY_ADD, HALVE, JUMP_IF_ODD, JUMP_IF_LESS, JUMP_UNLESS_ONE, JUMP, MAXIMUM, STOP };

struct instruction {
    uint8_t code, a, b, c;
};

static uint64_t interpreting(void)
{
    static const struct instruction program[] = {
        {LOAD, 1, 1, 0},            /*  0  n = 1 */
        {LOAD, 2, 0, 1},            /*  1  x = n */
        {LOAD, 3, 0, 4},            /*  2  steps = 0 */
        {JUMP_UNLESS_ONE, 2, 5, 0}, /*  3  while x != 1 */
        {JUMP, 0, 10, 0},           /*  4 */
        {ADD, 3, 1, 0},             /*  5  steps += 1 */
        {JUMP_IF_ODD, 2, 8, 0},     /*  6 */
        {HALVE, 2, 9, 0},           /*  7  x /= 2 */
        {MULTIPLY_ADD, 2, 3, 1},    /*  8  x = 3 x + 1 */
        {JUMP, 0, 3, 0},            /*  9 */
        {MAXIMUM, 5, 3, 0},         /* 10  best = max(best, steps) */
        {ADD, 1, 1, 0},             /* 11  n += 1 */
        {JUMP_IF_LESS, 1, 1, 6},    /* 12  while n < limit */
        {STOP, 0, 0, 0},
    };
    uint64_t r[8] = {0, 0, 0, 0, 0, 0, LIMIT, 0}, sum = 0;
    for (const struct instruction *at = program;; at++) {
        switch (at->code) {
        case LOAD: r[at->a] = at->b ? at->b : r[at->c]; break;
        case ADD: r[at->a] += at->b; break;
        case MULTIPLY_ADD: r[at->a] = r[at->a] * at->b + at->c; break;
        case HALVE: r[at->a] /= 2; at = program + at->b - 1; break;
        case JUMP_IF_ODD: if (r[at->a] % 2) at = program + at->b - 1; break;
        case JUMP_IF_LESS: if (r[at->a] < r[at->c]) at = program + at->b - 1; break;
        case JUMP_UNLESS_ONE: if (r[at->a] != 1) at = program + at->b - 1; break;
        case JUMP: at = program + at->b - 1; break;
        case MAXIMUM: if (r[at->a] < r[at->b]) r[at->a] = r[at->b]; sum = mix(sum, r[at->b]); break;
        case STOP: return mix(sum, r[5]);
        }
    }
}

int main(void)
{
    uint64_t sum = sorting();
    sum = mix(sum, hashing());
    sum = mix(sum, matching());
    sum = mix(sum, matrices());
    sum = mix(sum, summing());
    sum = mix(sum, interpreting());
    printf("%016llx\n", (unsigned long long)sum);
    return 0;
}

/* Where in a text may a number, an address, a named value or an encoded value stand?
 *
 * Two passes over ASCII bytes find what no pattern finds as cheaply. It only rules places out: what is found is
 * decided in Python, by the code of the default engine. A place named in vain costs a look; a place not named
 * must be one in which Python finds nothing, to which tests/redaction/test_compiled.py holds it. It reads
 * nothing but the bytes given and writes nothing but the lists it returns.
 */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

enum { NUMBER, IPV4, IPV6, ENCODED };

enum {
    DIGIT = 1,
    LETTER = 2,
    HEX = 4,
    WORD = 8,     /* [A-Za-z0-9+/_-], which also is what base64 is written in */
    BETWEEN = 16, /* may stand between the digits of one number */
    FIRST = 32,   /* Of each four letters of base64, three have bits that never differ if what was encoded */
    SECOND = 64,  /* can be read: these are the letters they may be. */
    THIRD = 128,
    STOP = 256, /* a digit or a colon */
};

static uint16_t class_of[256];

static void mark(const char *members, uint16_t value)
{
    for (; *members; members++) class_of[(uint8_t)*members] |= value;
}

static void prepare(void)
{
    mark("0123456789", DIGIT | HEX | WORD | STOP);
    mark(":", STOP);
    mark("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", LETTER | WORD);
    mark("abcdefABCDEF", HEX);
    mark("+/_-", WORD);
    mark(" .()/_\n-", BETWEEN);
    mark("CDIJKLMNOPQRSTUVWXYZabcdef", FIRST);
    mark("ACDEFGHQSTUVWXgijklmnwyz0123", SECOND);
    mark("ABEFIJMNQRUVYZcdghklopstwx014589_/-", THIRD);
}

/* A byte that stands for a character that is not ASCII is a question mark, and may be a letter. */
static int may_be_alnum(uint8_t byte) { return byte == '?' || class_of[byte] & (DIGIT | LETTER); }

typedef struct {
    const uint8_t *text;
    Py_ssize_t size;
    PyObject *parts; /* (rule, start, end) */
    PyObject *named; /* (start of the name, its end, start of the value, its end) */
    const int16_t *names;
    Py_ssize_t dotted; /* where the last run of digits and dots ended */
} Search;

static int add(PyObject *list, Py_ssize_t count, const Py_ssize_t *numbers)
{
    PyObject *item = PyTuple_New(count);
    if (item == NULL) return -1;
    for (Py_ssize_t index = 0; index < count; index++) {
        PyObject *number = PyLong_FromSsize_t(numbers[index]);
        if (number == NULL || PyTuple_SetItem(item, index, number) < 0) {
            Py_DECREF(item);
            return -1;
        }
    }
    int failed = PyList_Append(list, item);
    Py_DECREF(item);
    return failed;
}

static int add_part(Search *search, int rule, Py_ssize_t start, Py_ssize_t end)
{
    const Py_ssize_t numbers[] = {rule, start, end};
    return add(search->parts, 3, numbers);
}

static uint8_t at(const Search *search, Py_ssize_t position)
{
    return position >= 0 && position < search->size ? search->text[position] : 0;
}

static int is(const Search *search, Py_ssize_t position, uint16_t class)
{
    return (class_of[at(search, position)] & class) != 0;
}

/* -- numbers, and addresses that are written in them */

/* Whether the country and the check digits of an account number may stand before the digits that begin here. */
static int account_before(const Search *search, Py_ssize_t start)
{
    Py_ssize_t low = start, last = start + 3 < search->size ? start + 3 : search->size;
    while (low > 0 && start - low < 16) {
        uint8_t byte = at(search, low - 1);
        if (!may_be_alnum(byte) && byte != ' ' && byte != '-') break;
        low--;
    }
    for (; low + 4 <= last; low++)
        if (is(search, low, LETTER) && is(search, low + 1, LETTER) && is(search, low + 2, DIGIT) &&
            is(search, low + 3, DIGIT))
            return 1;
    return 0;
}

static int two(const Search *search, Py_ssize_t position)
{
    return (at(search, position) - '0') * 10 + at(search, position + 1) - '0';
}

/* Whether the run begins with a date as ISO 8601 writes it. */
static int is_date(const Search *search, Py_ssize_t start, Py_ssize_t end)
{
    if (end - start < 10 || at(search, start + 4) != '-' || at(search, start + 7) != '-') return 0;
    static const int digits[] = {0, 1, 2, 3, 5, 6, 8, 9};
    for (int index = 0; index < 8; index++)
        if (!is(search, start + digits[index], DIGIT)) return 0;
    int century = two(search, start), month = two(search, start + 5), day = two(search, start + 8);
    return (century == 19 || century == 20) && month >= 1 && month <= 12 && day >= 1 && day <= 31 &&
           !is(search, start + 10, DIGIT);
}

/* Whether nothing can be found in these digits, whatever stands around them. */
static int is_idle(const Search *search, Py_ssize_t start, Py_ssize_t end, Py_ssize_t digits)
{
    uint8_t before = at(search, start - 1), after = at(search, end);
    if (before == '?' || after == '?') return 0;
    int glued = is(search, start - 1, DIGIT | LETTER), continued = is(search, end, DIGIT | LETTER);
    /* A group that a word runs into is left out, and with it the only one there is. */
    int cut = glued || before == '_' || (is(search, end, LETTER) && after != 'x') || after == '_';
    int alone = end - start == digits && cut;
    int date = digits < 12 && !glued && before != '_' && before != '(' && before != '+' && is_date(search, start, end);
    return (alone || date) && !((glued || continued) && account_before(search, start));
}

/* The run of digits and dots around a digit. */
static int dotted(Search *search, Py_ssize_t digit)
{
    Py_ssize_t start = digit;
    if (digit < search->dotted) return 0;
    while (is(search, start - 1, DIGIT) || at(search, start - 1) == '.') start--;
    search->dotted = digit;
    while (is(search, search->dotted, DIGIT) || at(search, search->dotted) == '.') search->dotted++;
    return add_part(search, IPV4, start, search->dotted);
}

/* One run of digits with at most two signs between any two of them; returns where it ends. */
static Py_ssize_t number(Search *search, Py_ssize_t start)
{
    Py_ssize_t end = start, digits = 0, next = start;
    int dots = 0;
    while (is(search, next, DIGIT)) {
        Py_ssize_t first = next;
        while (is(search, next, DIGIT)) next++;
        dots = first > start && at(search, first - 1) == '.' && first - 1 == end ? dots + 1 : 0;
        if (dots == 3 && dotted(search, first) < 0) return -1;
        if (next - first > 3 && dots) dots = 0;
        digits += next - first;
        end = next;
        for (int signs = 0; signs < 2 && is(search, next, BETWEEN); signs++) next++;
    }
    if (digits < 7 || is_idle(search, start, end, digits)) return end;
    return add_part(search, NUMBER, start, end) < 0 ? -1 : end;
}

/* -- addresses */

/* The run of hexadecimal digits and colons around a colon; returns where it ends. */
static Py_ssize_t colons(Search *search, Py_ssize_t colon)
{
    Py_ssize_t start = colon, end = colon;
    int count = 0, doubled = 0;
    while (is(search, start - 1, HEX) || at(search, start - 1) == ':') start--;
    for (; is(search, end, HEX) || at(search, end) == ':'; end++) {
        if (at(search, end) != ':') continue;
        count++;
        doubled |= at(search, end + 1) == ':' && is(search, end + 2, HEX);
    }
    uint8_t before = at(search, start - 1);
    /* What a word runs into is none, and neither is what begins within. */
    if (is(search, start - 1, DIGIT | LETTER) || before == '_' || before == '.') return end;
    if (!doubled && count < 6) return end; /* the last two groups may be written as an IPv4 address */
    return add_part(search, IPV6, start, end) < 0 ? -1 : end;
}

/* -- what base64 or hex may hide */

static int is_encoded(const Search *search, Py_ssize_t start, Py_ssize_t end)
{
    int hex = 0;
    while (hex < 16 && is(search, start + hex, HEX)) hex++;
    if (hex == 16) return 1;
    if (end - start < 20) return 0;
    for (Py_ssize_t four = start; four < start + 20; four += 4)
        if (!is(search, four, FIRST) || !is(search, four + 1, SECOND) || !is(search, four + 2, THIRD)) return 0;
    return 1;
}

/* -- values that have a name */

enum { TAIL = 64, WIDEST_VALUE = 200, BRANCHES = 26 };

static int is_sign(uint8_t byte) { return byte == ' ' || byte == '_' || byte == '.' || byte == '-'; }

/* Whether the name that ends here ends with a telling word, signs and numbers aside. */
static int is_telling(const Search *search, Py_ssize_t start, Py_ssize_t end)
{
    Py_ssize_t position = end - 1;
    for (int escapes = 0; escapes < 3 && position >= start && at(search, position) == '\\'; escapes++) position--;
    while (position >= start && (is_sign(at(search, position)) || is(search, position, DIGIT))) position--;
    int node = 0;
    for (; position >= start; position--) {
        uint8_t byte = at(search, position);
        if (!is(search, position, LETTER)) {
            if (is_sign(byte)) continue;
            return 0;
        }
        node = search->names[node * (BRANCHES + 1) + (byte | 32) - 'a'];
        if (!node) return 0;
        if (search->names[node * (BRANCHES + 1) + BRANCHES]) return 1;
    }
    return 0;
}

static int is_quote(uint8_t byte) { return byte == '"' || byte == '\''; }

/* A quoted name, a colon, a quoted value. */
static int field(Search *search, Py_ssize_t colon)
{
    Py_ssize_t close = at(search, colon - 1) == ' ' ? colon - 2 : colon - 1, value = colon + 1;
    if (!is_quote(at(search, close))) return 0;
    value += at(search, value) == ' ';
    for (int escapes = 0; escapes < 3 && at(search, value) == '\\'; escapes++) value++;
    if (!is_quote(at(search, value))) return 0;
    Py_ssize_t start = close, end = ++value;
    while (start > 0 && close - start < TAIL && !is_quote(at(search, start - 1))) start--;
    if (start == 0 || close - start >= TAIL || !is_telling(search, start, close)) return 0;
    for (; end - value < WIDEST_VALUE && !is_quote(at(search, end)); end++)
        if (!at(search, end) || at(search, end) == '\\') break;
    if (end == value) return 0;
    const Py_ssize_t numbers[] = {start, close, value, end};
    return add(search->named, 4, numbers);
}

/* -- the two passes */

/* Runs of sixteen word characters or more, most of which are names. */
static int look_at_words(Search *search)
{
    const uint8_t *text = search->text;
    Py_ssize_t size = search->size, done = 0;
    for (Py_ssize_t here = 0; here + 8 < size; here += 8) {
        /* A run so long covers two places of this step, and all between them. */
        if (!(class_of[text[here]] & class_of[text[here + 2]] & class_of[text[here + 4]] & class_of[text[here + 6]] &
              class_of[text[here + 8]] & WORD) || here < done)
            continue;
        Py_ssize_t start = here;
        while (is(search, start - 1, WORD)) start--;
        for (done = here; is(search, done, WORD);) done++;
        if (done - start < 16 || !is_encoded(search, start, done)) continue;
        if (add_part(search, ENCODED, start, done) < 0) return -1;
    }
    return 0;
}

/* Digits and colons. */
static int look_at_signs(Search *search)
{
    const uint8_t *text = search->text;
    Py_ssize_t size = search->size, digits_done = 0, colons_done = 0;
    for (Py_ssize_t here = 0; here < size; here++) {
        uint8_t byte = text[here];
        if (!(class_of[byte] & STOP)) continue;
        if (byte == ':') {
            if (field(search, here) < 0) return -1;
            if (here >= colons_done && (is(search, here + 1, HEX) || at(search, here + 1) == ':')) {
                colons_done = colons(search, here);
                if (colons_done < 0) return -1;
            }
        } else if (here >= digits_done) {
            digits_done = number(search, here);
            if (digits_done < 0) return -1;
        }
    }
    return 0;
}

/* -- what Python sees */

#define NAMES "sealtrace_fast.names"

static void forget(PyObject *capsule) { PyMem_Free(PyCapsule_GetPointer(capsule, NAMES)); }

/* One more word, read from its end: each node has a branch for every letter, and whether a word begins there. */
static int grow(int16_t *nodes, int *count, int room, const char *word, Py_ssize_t size)
{
    int node = 0;
    while (size--) {
        int letter = word[size] - 'a';
        if (letter < 0 || letter >= BRANCHES || *count == room) return -1;
        int16_t *branch = &nodes[node * (BRANCHES + 1) + letter];
        if (!*branch) *branch = (int16_t)(*count)++;
        node = *branch;
    }
    nodes[node * (BRANCHES + 1) + BRANCHES] = 1;
    return node ? 0 : -1;
}

PyDoc_STRVAR(names_doc,
"names(words)\n--\n\n"
"Words of small letters in the form that `look` reads; a name is telling if it ends with one of them.\n\n"
"Raises:\n    ValueError: A word has other characters, or there are too many words.");

static PyObject *names(PyObject *self, PyObject *words)
{
    enum { ROOM = 32767 };
    (void)self;
    PyObject *list = PySequence_List(words);
    if (list == NULL) return NULL;
    int16_t *nodes = PyMem_Calloc((size_t)ROOM * (BRANCHES + 1), sizeof *nodes);
    int count = 1, failed = nodes == NULL;
    if (failed) PyErr_NoMemory();
    for (Py_ssize_t index = 0; !failed && index < PyList_Size(list); index++) {
        Py_ssize_t size;
        const char *word = PyUnicode_AsUTF8AndSize(PyList_GetItem(list, index), &size);
        failed = word == NULL || grow(nodes, &count, ROOM, word, size) < 0;
        if (failed && word != NULL) PyErr_SetString(PyExc_ValueError, "not a word of small letters, or one too many");
    }
    Py_DECREF(list);
    int16_t *grown = failed ? NULL : PyMem_Realloc(nodes, (size_t)count * (BRANCHES + 1) * sizeof *nodes);
    if (grown != NULL) nodes = grown;
    PyObject *capsule = failed ? NULL : PyCapsule_New(nodes, NAMES, forget);
    if (capsule == NULL) PyMem_Free(nodes);
    return capsule;
}

PyDoc_STRVAR(look_doc,
"look(names, raw)\n--\n\n"
"Where in the bytes something may stand: a list of (rule, start, end), and for values that a name gives away\n"
"a list of (start and end of the name, start and end of the value).");

static PyObject *look_(PyObject *self, PyObject *arguments)
{
    PyObject *capsule;
    const char *text;
    Search search;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "Oy#:look", &capsule, &text, &search.size)) return NULL;
    search.names = PyCapsule_GetPointer(capsule, NAMES);
    if (search.names == NULL) return NULL;
    search.text = (const uint8_t *)text;
    search.parts = PyList_New(0);
    search.named = PyList_New(0);
    search.dotted = 0;
    int failed = search.parts == NULL || search.named == NULL;
    failed = failed || look_at_words(&search) < 0 || look_at_signs(&search) < 0;
    PyObject *both = failed ? NULL : PyTuple_Pack(2, search.parts, search.named);
    Py_XDECREF(search.parts);
    Py_XDECREF(search.named);
    return both;
}

static PyMethodDef functions[] = {
    {"look", look_, METH_VARARGS, look_doc},
    {"names", names, METH_O, names_doc},
    {NULL, NULL, 0, NULL},
};

static int fill(PyObject *module)
{
    prepare();
    const char *const rules[] = {[NUMBER] = "NUMBER", [IPV4] = "IPV4", [IPV6] = "IPV6", [ENCODED] = "ENCODED"};
    for (int rule = NUMBER; rule <= ENCODED; rule++)
        if (PyModule_AddIntConstant(module, rules[rule], rule) < 0) return -1;
    return 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, fill}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "sealtrace_fast._look", NULL, 0, functions, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__look(void) { return PyModuleDef_Init(&definition); }

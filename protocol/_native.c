/* The records of batches (magic 2): what rows.py, records.py and Spark's fetching do, where a C compiler was at
   hand.

   Nothing here has words for bad data: whatever does not fit, and what nobody writes but the Python way
   understands, gives None, and the Python way reads it again. So there is one place that says what is wrong,
   and both ways take and refuse the same bytes. A length is compared with what is left before it is used.

   It needs no GIL. There is hardly any state but that of a call: the objects that a call makes are nobody else's
   until it returns them, what it reads is held by buffers and references of its own, and each byte is compared with
   its bounds when it is read, so that bytes that another thread writes meanwhile give wrong records and no wrong
   access. A writer of records is locked while it is written to, and an entrance takes records of one thread. */

#define PY_SSIZE_T_CLEAN
#include <pyconfig.h>
#ifndef Py_GIL_DISABLED /* which has no stable ABI */
#define Py_LIMITED_API 0x030B0000
#endif
#include <Python.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <structmember.h>
#include <time.h>

/* Raised with every change of what the functions take and give: native.py refuses another one. */
#define INTERFACE 4
#define LEAST_RECORD_BYTES 7

typedef struct {
    const uint8_t *key, *value, *headers, *end;
    int64_t key_bytes, value_bytes; /* -1: null */
    uint64_t timestamp;             /* the delta, in zigzag form */
    int64_t delta;
    int plain_delta; /* written in the shortest way */
} Found;

/* -- numbers and records -- */

static int64_t signed_of(uint64_t zigzag)
{
    return (int64_t)(zigzag >> 1) ^ -(int64_t)(zigzag & 1);
}

static int long_varint(const uint8_t **pos, const uint8_t *stop, uint64_t *number)
{
    const uint8_t *at = *pos;
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && at < stop; shift += 7) {
        uint8_t byte = *at++;
        if (shift == 63 && byte > 1)
            return 0;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            *pos = at;
            *number = value;
            return 1;
        }
    }
    return 0;
}

/* Most have one byte or two. */
static inline int varint(const uint8_t **pos, const uint8_t *stop, uint64_t *number)
{
    const uint8_t *at = *pos;
    if (at < stop && at[0] < 128) {
        *number = at[0];
        *pos = at + 1;
        return 1;
    }
    if (stop - at > 1 && at[1] < 128) {
        *number = (uint64_t)at[1] << 7 | (at[0] & 127);
        *pos = at + 2;
        return 1;
    }
    return long_varint(pos, stop, number);
}

/* A length and that number of bytes; -1 is null, and nobody writes another negative one. */
static int field(const uint8_t **pos, const uint8_t *stop, const uint8_t **begin, int64_t *size)
{
    uint64_t number;
    if (!varint(pos, stop, &number))
        return 0;
    *begin = *pos;
    if (number == 1) {
        *size = -1;
        return 1;
    }
    if (number & 1 || number >> 1 > (uint64_t)(stop - *pos))
        return 0;
    number >>= 1;
    *size = (int64_t)number;
    *pos += number;
    return 1;
}

/* One record; at least one byte, of the number of headers, is left behind the value. */
static int record(const uint8_t **pos, const uint8_t *stop, Found *found)
{
    const uint8_t *at = *pos;
    uint64_t number;
    if (!varint(&at, stop, &number) || number & 1 || number >> 1 > (uint64_t)(stop - at))
        return 0;
    stop = found->end = at + (number >> 1);
    if (at >= stop)
        return 0;
    at++; /* attributes, which nobody uses */
    if (!varint(&at, stop, &found->timestamp))
        return 0;
    const uint8_t *delta = at;
    if (!varint(&at, stop, &number))
        return 0;
    found->delta = signed_of(number);
    found->plain_delta = at - delta == 1 || at[-1] != 0;
    if (!field(&at, stop, &found->key, &found->key_bytes))
        return 0;
    if (!field(&at, stop, &found->value, &found->value_bytes) || at >= stop)
        return 0;
    found->headers = at;
    *pos = stop;
    return 1;
}

/* One record of a batch without holes, whose offset its place tells. */
static int dense_record(const uint8_t **pos, const uint8_t *stop, int64_t row, Found *found)
{
    return record(pos, stop, found) && found->delta == row && found->plain_delta;
}

/* -- Python's objects; NULL with no error set: the bytes do not fit -- */

static PyObject *none(void)
{
    Py_INCREF(Py_None);
    return Py_None;
}

/* What a function gives that could not: None, but for an error of Python's own. */
static PyObject *unfit(void)
{
    return PyErr_Occurred() ? NULL : none();
}

static PyObject *bytes_or_none(const uint8_t *begin, int64_t size)
{
    return size < 0 ? none() : PyBytes_FromStringAndSize((const char *)begin, (Py_ssize_t)size);
}

static PyObject *header(const uint8_t **pos, const uint8_t *stop)
{
    const uint8_t *name, *value;
    int64_t name_bytes, value_bytes;
    if (!field(pos, stop, &name, &name_bytes) || name_bytes < 0 || !field(pos, stop, &value, &value_bytes))
        return NULL;
    PyObject *key = PyUnicode_DecodeUTF8((const char *)name, (Py_ssize_t)name_bytes, "replace");
    PyObject *held = key ? bytes_or_none(value, value_bytes) : NULL;
    PyObject *pair = held ? PyTuple_Pack(2, key, held) : NULL;
    Py_XDECREF(key);
    Py_XDECREF(held);
    return pair;
}

static PyObject *headers(const Found *found)
{
    const uint8_t *at = found->headers;
    uint64_t number;
    if (*at == 0)
        return at + 1 == found->end ? PyTuple_New(0) : NULL;
    if (!varint(&at, found->end, &number) || number & 1 || number > (uint64_t)(found->end - at))
        return NULL;
    PyObject *list = PyList_New(0);
    for (number >>= 1; list && number; number--) {
        PyObject *pair = header(&at, found->end);
        if (!pair || PyList_Append(list, pair) < 0)
            Py_CLEAR(list);
        Py_XDECREF(pair);
    }
    if (list && at != found->end)
        Py_CLEAR(list);
    return list;
}

/* Where `count` records may begin that follow each other in a buffer; NULL when they cannot be there. */
static const uint8_t *place(const Py_buffer *buffer, Py_ssize_t pos, Py_ssize_t count)
{
    if (pos < 0 || pos > buffer->len || count < 0 || count > (buffer->len - pos) / LEAST_RECORD_BYTES)
        return NULL;
    return (const uint8_t *)buffer->buf + pos;
}

static int add(PyObject *list, Py_ssize_t row, PyObject *item)
{
    return item && PyList_SetItem(list, row, item) == 0;
}

PyDoc_STRVAR(read_values_doc, "read_values(buffer, pos, first, count): as of rows.py, or None.");

static PyObject *read_values(PyObject *module, PyObject *args)
{
    Py_buffer buffer;
    Py_ssize_t pos, first, count;
    if (!PyArg_ParseTuple(args, "y*nnn", &buffer, &pos, &first, &count))
        return NULL;
    const uint8_t *at = place(&buffer, pos, count), *stop = (const uint8_t *)buffer.buf + buffer.len;
    PyObject *values = at ? PyList_New(count) : NULL, *made = NULL;
    Found found;
    Py_ssize_t row = 0;
    for (; values && row < count; row++)
        if (!dense_record(&at, stop, first + row, &found) ||
            !add(values, row, bytes_or_none(found.value, found.value_bytes)))
            Py_CLEAR(values);
    if (values)
        made = Py_BuildValue("(On)", values, (Py_ssize_t)(at - (const uint8_t *)buffer.buf));
    Py_XDECREF(values);
    PyBuffer_Release(&buffer);
    return made ? made : unfit();
}

PyDoc_STRVAR(read_rows_doc, "read_rows(buffer, pos, first, count, with_headers, dense): as of rows.py, or None.");

static PyObject *read_rows(PyObject *module, PyObject *args)
{
    Py_buffer buffer;
    Py_ssize_t pos, first, count;
    int with_headers, dense;
    if (!PyArg_ParseTuple(args, "y*nnnpp", &buffer, &pos, &first, &count, &with_headers, &dense))
        return NULL;
    const uint8_t *at = place(&buffer, pos, count), *stop = (const uint8_t *)buffer.buf + buffer.len;
    PyObject *made = NULL, *keys = NULL, *values = NULL, *stamps = NULL, *deltas = NULL, *heads = NULL;
    if (!at || !(keys = PyList_New(count)) || !(values = PyList_New(count)) ||
        !(stamps = PyList_New(count)) || !(deltas = PyList_New(dense ? 0 : count)) ||
        !(heads = PyList_New(with_headers ? count : 0)))
        goto done;
    Found found;
    for (Py_ssize_t row = 0; row < count; row++)
        if (!(dense ? dense_record(&at, stop, first + row, &found) : record(&at, stop, &found)) ||
            !add(keys, row, bytes_or_none(found.key, found.key_bytes)) ||
            !add(values, row, bytes_or_none(found.value, found.value_bytes)) ||
            !add(stamps, row, PyLong_FromUnsignedLongLong(found.timestamp)) ||
            (!dense && !add(deltas, row, PyLong_FromLongLong(found.delta))) ||
            (with_headers && !add(heads, row, headers(&found))))
            goto done;
    made = Py_BuildValue("(OOOOOn)", keys, values, stamps, deltas, heads,
                         (Py_ssize_t)(at - (const uint8_t *)buffer.buf));
done:
    Py_XDECREF(keys);
    Py_XDECREF(values);
    Py_XDECREF(stamps);
    Py_XDECREF(deltas);
    Py_XDECREF(heads);
    PyBuffer_Release(&buffer);
    return made ? made : unfit();
}

/* -- records as tuples -- */

/* What all records of a batch have in common. */
typedef struct {
    PyTypeObject *type;
    PyObject *topic, *partition, *kind;
    long long base_offset, base_ms;
    int append_time;
} Common;

/* The time of the record before is mostly that of the next, too. */
static int stamp(const Common *common, const Found *found, int64_t *last_ms, PyObject **last)
{
    int64_t time_ms = common->base_ms;
    if (!common->append_time &&
        __builtin_add_overflow(time_ms, signed_of(found->timestamp), &time_ms))
        return 0;
    if (*last && *last_ms == time_ms)
        return 1;
    Py_XDECREF(*last);
    *last_ms = time_ms;
    *last = PyLong_FromLongLong(time_ms);
    return *last != NULL;
}

static PyObject *one_record(const Common *common, const Found *found, PyObject *time_ms)
{
    int64_t offset;
    PyObject *heads = headers(found), *made = NULL;
    if (!heads || __builtin_add_overflow(common->base_offset, found->delta, &offset) ||
        !(made = PyType_GenericAlloc(common->type, 8))) {
        Py_XDECREF(heads);
        return NULL;
    }
    PyObject *shared[] = {common->topic, common->partition, time_ms, common->kind};
    for (int i = 0; i < 4; i++)
        Py_INCREF(shared[i]);
    PyObject *items[] = {shared[0], shared[1], PyLong_FromLongLong(offset), shared[2], shared[3],
                         bytes_or_none(found->key, found->key_bytes),
                         bytes_or_none(found->value, found->value_bytes), heads};
    int whole = 1;
    for (Py_ssize_t i = 0; i < 8; i++) {
        whole &= items[i] != NULL;
        PyTuple_SetItem(made, i, items[i]);
    }
    if (!whole)
        Py_CLEAR(made);
    else if (!PyList_Check(heads))
        PyObject_GC_UnTrack(made); /* nothing in it can lead back to it */
    return made;
}

/* The records of a part of a dense batch. Each is made when its turn comes, so that one the application is done
   with leaves the next one its memory, while that is in the cache. */
typedef struct {
    PyObject_HEAD
    Py_buffer buffer;
    Common common; /* with references of its own */
    const uint8_t *at, *stop;
    Py_ssize_t row, end;
    int64_t last_ms;
    PyObject *last;
} Records;

/* Of the module. */
typedef struct {
    PyTypeObject *records, *place, *writer, *turns;
} State;

static int headers_fit(const Found *found)
{
    const uint8_t *at = found->headers, *begin;
    uint64_t number;
    int64_t size;
    if (*at == 0)
        return at + 1 == found->end;
    if (!varint(&at, found->end, &number) || number & 1 || number > (uint64_t)(found->end - at))
        return 0;
    for (number >>= 1; number; number--)
        if (!field(&at, found->end, &begin, &size) || size < 0 || !field(&at, found->end, &begin, &size))
            return 0;
    return at == found->end;
}

/* Where the records end that are to be made; NULL: one of them does not fit. */
static const uint8_t *records_fit(const Records *made)
{
    const Common *common = &made->common;
    const uint8_t *at = made->at;
    int64_t sum;
    Found found;
    for (Py_ssize_t row = made->row; row < made->end; row++)
        if (!dense_record(&at, made->stop, row, &found) || !headers_fit(&found) ||
            __builtin_add_overflow(common->base_offset, found.delta, &sum) ||
            (!common->append_time &&
             __builtin_add_overflow(common->base_ms, signed_of(found.timestamp), &sum)))
            return NULL;
    return at;
}

static PyObject *next_record(PyObject *self)
{
    Records *records = (Records *)self;
    PyObject *made = NULL;
    Found found;
#ifdef Py_GIL_DISABLED
    Py_BEGIN_CRITICAL_SECTION(self);
#endif
    if (records->row < records->end) {
        if (dense_record(&records->at, records->stop, records->row++, &found) &&
            stamp(&records->common, &found, &records->last_ms, &records->last))
            made = one_record(&records->common, &found, records->last);
        if (!made) {
            records->row = records->end;
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_RuntimeError, "the bytes of a batch have changed while it was read");
        }
    }
#ifdef Py_GIL_DISABLED
    Py_END_CRITICAL_SECTION();
#endif
    return made;
}

static void free_records(PyObject *self)
{
    Records *records = (Records *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyBuffer_Release(&records->buffer);
    Py_XDECREF((PyObject *)records->common.type);
    Py_XDECREF(records->common.topic);
    Py_XDECREF(records->common.partition);
    Py_XDECREF(records->common.kind);
    Py_XDECREF(records->last);
    PyObject_Free(self);
    Py_DECREF((PyObject *)type);
}

static PyType_Slot records_slots[] = {
    {Py_tp_dealloc, (void *)free_records},
    {Py_tp_iter, (void *)PyObject_SelfIter},
    {Py_tp_iternext, (void *)next_record},
    {0, NULL},
};

static PyType_Spec records_spec = {
    .name = "ringleader._native.Records",
    .basicsize = sizeof(Records),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = records_slots,
};

PyDoc_STRVAR(read_records_doc,
             "read_records(buffer, pos, first, count, type, topic, partition, timestamp_type, base_offset, base_ms, "
             "append_time): an iterator over the records of a dense batch as such tuples, all of which fit, and "
             "where the last one ends; or None.");

static PyObject *read_records(PyObject *module, PyObject *args)
{
    State *state = PyModule_GetState(module);
    Py_ssize_t pos, first, count;
    PyObject *type, *made = NULL;
    Records *records = PyObject_New(Records, state->records);
    if (!records)
        return NULL;
    memset((char *)records + sizeof(PyObject), 0, sizeof(Records) - sizeof(PyObject));
    Common *common = &records->common;
    if (!PyArg_ParseTuple(args, "y*nnnO!OOOLLp", &records->buffer, &pos, &first, &count, &PyType_Type, &type,
                          &common->topic, &common->partition, &common->kind, &common->base_offset,
                          &common->base_ms, &common->append_time)) {
        common->topic = common->partition = common->kind = NULL; /* not ours */
        goto done;
    }
    common->type = (PyTypeObject *)type;
    Py_INCREF(type);
    Py_INCREF(common->topic);
    Py_INCREF(common->partition);
    Py_INCREF(common->kind);
    if (!PyType_IsSubtype(common->type, &PyTuple_Type)) {
        PyErr_SetString(PyExc_TypeError, "records are made as a kind of tuple");
        goto done;
    }
    records->at = place(&records->buffer, pos, count);
    records->stop = (const uint8_t *)records->buffer.buf + records->buffer.len;
    if (!records->at || __builtin_add_overflow(first, count, &records->end))
        goto done;
    records->row = first;
    const uint8_t *end = records_fit(records);
    if (end)
        made = Py_BuildValue("(On)", records, (Py_ssize_t)(end - (const uint8_t *)records->buffer.buf));
done:
    Py_DECREF((PyObject *)records);
    return made ? made : unfit();
}

/* -- columns as Arrow has them -- */

/* The records of one batch, and what its header says of them. */
typedef struct {
    Py_buffer buffer;
    const uint8_t *start, *stop;
    Py_ssize_t count;
    long long base_offset, last_delta, stamp_ms;
    int append_time;
} Part;

/* A column of bytes: `at` runs through its data, up to `room`. */
typedef struct {
    int64_t room, at, nulls;
    PyObject *data, *ends, *validity;
} Binary;

typedef struct {
    int64_t rows, room, from_offset, to_offset;
    Binary keys, values;
    PyObject *offsets, *stamps, *kinds, *heads;
    int some_headers;
} Columns;

/* The next record of a part, with its offset and its time in microseconds. 0: unfit. */
static int next_of(const Part *part, Py_ssize_t row, const uint8_t **at, int64_t *last, Found *found,
                   int64_t *offset, int64_t *micros)
{
    int dense = part->count == part->last_delta + 1;
    int64_t time_ms = part->stamp_ms;
    if (!(dense ? dense_record(at, part->stop, row, found) : record(at, part->stop, found)) ||
        found->delta <= *last || found->delta > part->last_delta)
        return 0;
    *last = found->delta;
    if (!part->append_time && __builtin_add_overflow(time_ms, signed_of(found->timestamp), &time_ms))
        return 0;
    return !__builtin_mul_overflow(time_ms, 1000, micros) &&
           !__builtin_add_overflow(part->base_offset, found->delta, offset);
}

static void measure(Binary *column, int64_t size)
{
    column->nulls += size < 0;
    column->room += size < 0 ? 0 : size;
}

/* The first pass: how many rows there are, and how many bytes. 0: unfit. */
static int count_part(const Part *part, Columns *columns, int with_headers)
{
    const uint8_t *at = part->start;
    int64_t last = -1, offset, micros;
    Found found;
    for (Py_ssize_t row = 0; row < part->count; row++) {
        if (!next_of(part, row, &at, &last, &found, &offset, &micros))
            return 0;
        if (with_headers && !headers_fit(&found)) /* those of a record that is left out, too */
            return 0;
        if (offset < columns->from_offset || offset >= columns->to_offset)
            continue;
        columns->room++;
        measure(&columns->keys, found.key_bytes);
        measure(&columns->values, found.value_bytes);
        columns->some_headers |= *found.headers != 0 || found.headers + 1 != found.end;
    }
    return at == part->stop;
}

static PyObject *zeros(int64_t size)
{
    PyObject *made = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (made)
        memset(PyBytes_AsString(made), 0, (size_t)size);
    return made;
}

static int make_room(Binary *column, int64_t rows)
{
    if (column->room > INT32_MAX)
        return 0;
    column->data = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)column->room);
    column->ends = zeros(4 * (rows + 1));
    column->validity = column->nulls ? zeros((rows + 7) / 8) : none();
    return column->data && column->ends && column->validity;
}

static int put(Binary *column, int64_t row, const uint8_t *begin, int64_t size)
{
    if (size > column->room - column->at)
        return 0;
    if (size > 0) {
        memcpy(PyBytes_AsString(column->data) + column->at, begin, (size_t)size);
        column->at += size;
    }
    ((int32_t *)PyBytes_AsString(column->ends))[row + 1] = (int32_t)column->at;
    if (size >= 0 && column->nulls)
        PyBytes_AsString(column->validity)[row / 8] |= (char)(1 << row % 8);
    return 1;
}

/* The second pass. That the bytes are the same as before is not relied on. */
static int fill_part(const Part *part, Columns *columns)
{
    const uint8_t *at = part->start;
    int64_t *offsets = (int64_t *)PyBytes_AsString(columns->offsets);
    int64_t *stamps = (int64_t *)PyBytes_AsString(columns->stamps);
    int32_t *kinds = (int32_t *)PyBytes_AsString(columns->kinds);
    int64_t last = -1, offset, micros;
    Found found;
    for (Py_ssize_t row = 0; row < part->count; row++) {
        if (!next_of(part, row, &at, &last, &found, &offset, &micros))
            return 0;
        if (offset < columns->from_offset || offset >= columns->to_offset)
            continue;
        int64_t to = columns->rows++;
        if (to >= columns->room || !put(&columns->keys, to, found.key, found.key_bytes) ||
            !put(&columns->values, to, found.value, found.value_bytes))
            return 0;
        offsets[to] = offset;
        stamps[to] = micros;
        kinds[to] = part->append_time;
        if (columns->heads && !add(columns->heads, (Py_ssize_t)to, headers(&found)))
            return 0;
    }
    return 1;
}

static PyObject *columns_of(const Part *parts, Py_ssize_t count, Columns *columns, int with_headers)
{
    for (Py_ssize_t i = 0; i < count; i++)
        if (!count_part(&parts[i], columns, with_headers))
            return NULL;
    int64_t rows = columns->room;
    if (!make_room(&columns->keys, rows) || !make_room(&columns->values, rows) ||
        !(columns->offsets = zeros(8 * rows)) || !(columns->stamps = zeros(8 * rows)) ||
        !(columns->kinds = zeros(4 * rows)))
        return NULL;
    if (with_headers && columns->some_headers && !(columns->heads = PyList_New((Py_ssize_t)rows)))
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!fill_part(&parts[i], columns))
            return NULL;
    if (columns->rows != rows)
        return NULL;
    return Py_BuildValue("n(OOO)(OOO)OOOO", (Py_ssize_t)rows, columns->keys.validity, columns->keys.ends,
                         columns->keys.data, columns->values.validity, columns->values.ends,
                         columns->values.data, columns->offsets, columns->stamps, columns->kinds,
                         columns->heads ? columns->heads : Py_None);
}

/* An item as a reference of our own, since another thread may take it out of the list; NULL: there is none now. */
static PyObject *item_of(PyObject *list, Py_ssize_t i)
{
#ifdef Py_GIL_DISABLED
    return PyList_GetItemRef(list, i);
#else
    PyObject *item = PyList_GetItem(list, i);
    Py_XINCREF(item);
    return item;
#endif
}

/* -1: an error of Python's; 0: unfit. What holds a buffer is counted in `held`. */
static int take_part(PyObject *given, Part *part, Py_ssize_t *held)
{
    Py_ssize_t start, stop;
    if (!PyTuple_Check(given)) {
        PyErr_SetString(PyExc_TypeError, "each part is a tuple");
        return -1;
    }
    if (!PyArg_ParseTuple(given, "y*nnnLLLp", &part->buffer, &start, &stop, &part->count, &part->base_offset,
                          &part->last_delta, &part->stamp_ms, &part->append_time))
        return -1;
    ++*held;
    if (stop < start || stop > part->buffer.len)
        return 0;
    part->start = place(&part->buffer, start, part->count);
    part->stop = (const uint8_t *)part->buffer.buf + stop;
    return part->start != NULL;
}

PyDoc_STRVAR(read_columns_doc,
             "read_columns(parts, from_offset, to_offset, with_headers): the records of the range, or None.\n\n"
             "A part is (buffer, start, stop, records, base offset, last offset delta, time in ms, whether that is "
             "the broker's). Gives the number of rows; for keys and values (validity or None, ends, data) as Arrow "
             "has them, ends of 32 bits; offsets, times in us (64 bits), whether they are the broker's (32 bits); "
             "and a list of headers, or None when no record has any.");

static PyObject *read_columns(PyObject *module, PyObject *args)
{
    PyObject *list, *made = NULL;
    int with_headers;
    long long from_offset, to_offset;
    if (!PyArg_ParseTuple(args, "O!LLp", &PyList_Type, &list, &from_offset, &to_offset, &with_headers))
        return NULL;
    Columns columns = {.from_offset = from_offset, .to_offset = to_offset};
    Py_ssize_t count = PyList_Size(list), held = 0;
    Part *parts = PyMem_Calloc((size_t)count + 1, sizeof(Part));
    if (!parts)
        return PyErr_NoMemory();
    int fit = 1;
    for (Py_ssize_t i = 0; i < count && fit > 0; i++) {
        PyObject *given = item_of(list, i);
        fit = given ? take_part(given, &parts[i], &held) : -1;
        Py_XDECREF(given);
    }
    if (fit > 0)
        made = columns_of(parts, count, &columns, with_headers);
    Binary *binaries[] = {&columns.keys, &columns.values};
    for (int i = 0; i < 2; i++) {
        Py_XDECREF(binaries[i]->data);
        Py_XDECREF(binaries[i]->ends);
        Py_XDECREF(binaries[i]->validity);
    }
    Py_XDECREF(columns.offsets);
    Py_XDECREF(columns.stamps);
    Py_XDECREF(columns.kinds);
    Py_XDECREF(columns.heads);
    for (Py_ssize_t i = 0; i < held; i++)
        PyBuffer_Release(&parts[i].buffer);
    PyMem_Free(parts);
    return made ? made : unfit();
}

/* -- writing -- */

/* Bytes that records are written into: counted when there is no room for them yet. */
typedef struct {
    uint8_t *begin;
    int64_t at, room;
    int fits;
} Out;

static void put_bytes(Out *out, const void *data, int64_t size)
{
    if (out->begin) {
        if (size > out->room - out->at) {
            out->fits = 0;
            return;
        }
        memcpy(out->begin + out->at, data, (size_t)size);
    }
    out->at += size;
}

static void put_varint(Out *out, int64_t number)
{
    uint64_t left = ((uint64_t)number << 1) ^ (uint64_t)(number >> 63);
    uint8_t bytes[10];
    int size = 0;
    for (; left > 127; left >>= 7)
        bytes[size++] = (uint8_t)(left & 127) | 128;
    bytes[size++] = (uint8_t)left;
    put_bytes(out, bytes, size);
}

/* 0: neither bytes nor None. */
static int put_field(Out *out, PyObject *given)
{
    if (given == Py_None) {
        put_varint(out, -1);
        return 1;
    }
    if (!PyBytes_Check(given))
        return 0;
    Py_ssize_t size = PyBytes_Size(given);
    put_varint(out, size);
    put_bytes(out, PyBytes_AsString(given), size);
    return 1;
}

/* Pairs of a text and bytes or None; NULL: none. */
static int put_headers(Out *out, PyObject *pairs)
{
    if (pairs && !PyTuple_Check(pairs))
        return 0;
    Py_ssize_t count = pairs ? PyTuple_Size(pairs) : 0, size;
    put_varint(out, count);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *pair = PyTuple_GetItem(pairs, i), *name;
        if (!PyTuple_Check(pair) || PyTuple_Size(pair) != 2 || !PyUnicode_Check(name = PyTuple_GetItem(pair, 0)))
            return 0;
        const char *text = PyUnicode_AsUTF8AndSize(name, &size);
        if (!text)
            return 0;
        put_varint(out, size);
        put_bytes(out, text, size);
        if (!put_field(out, PyTuple_GetItem(pair, 1)))
            return 0;
    }
    return 1;
}

/* What a record is made of; no headers: NULL. */
typedef struct {
    PyObject *key, *value, *headers;
    int64_t time_delta;
} Row;

/* The record behind its length. */
static int put_body(Out *out, const Row *row, int64_t offset_delta)
{
    put_bytes(out, "", 1);
    put_varint(out, row->time_delta);
    put_varint(out, offset_delta);
    return put_field(out, row->key) && put_field(out, row->value) && put_headers(out, row->headers);
}

static int put_row(Out *out, const Row *row, int64_t offset_delta)
{
    Out body = {.fits = 1};
    if (!put_body(&body, row, offset_delta))
        return 0;
    put_varint(out, body.at);
    return put_body(out, row, offset_delta);
}

/* The records of a batch that is being filled, as they stand in it, behind room for its header: record_writer.py. */
typedef struct {
    PyObject_HEAD
    PyObject *bytes;                     /* a bytearray that nobody else has; NULL before the first record */
    Py_ssize_t at;                       /* where the next record begins */
    PyObject *times, *batch;             /* lists, or NULL: the times of the records, and what their places are made of */
    long long base_ms, max_ms;
    long long count, size_bytes, limit;  /* as the builder counts them */
    int full;
} Writer;

#define HEADER_BYTES 61
#define FIRST_WRITTEN_BYTES 1024
#define AROUND_BYTES 64 /* more than a record without headers takes beside its key and value */

static PyObject *writer_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    Writer *made = (Writer *)PyType_GenericAlloc(type, 0);
    if (made && !(made->times = PyList_New(0)))
        Py_CLEAR(made);
    return (PyObject *)made;
}

static int writer_traverse(PyObject *self, visitproc visit, void *arg)
{
    Writer *writer = (Writer *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(writer->bytes);
    Py_VISIT(writer->times);
    Py_VISIT(writer->batch);
    return 0;
}

static int writer_clear(PyObject *self)
{
    Writer *writer = (Writer *)self;
    Py_CLEAR(writer->bytes);
    Py_CLEAR(writer->times);
    Py_CLEAR(writer->batch);
    return 0;
}

static void writer_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    writer_clear(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

/* Room for `more` bytes behind what is written: what there is doubles, but to no more than a full batch needs. */
static int writer_room(Writer *writer, int64_t more)
{
    if (!writer->bytes) {
        if (!(writer->bytes = PyByteArray_FromStringAndSize(NULL, 0)))
            return 0;
        writer->at = HEADER_BYTES;
    }
    Py_ssize_t have = PyByteArray_Size(writer->bytes);
    if (have >= writer->at && more <= have - writer->at)
        return 1;
    if (more > PY_SSIZE_T_MAX / 4 - writer->at) {
        PyErr_NoMemory();
        return 0;
    }
    int64_t need = writer->at + more, most = writer->limit + HEADER_BYTES;
    int64_t wanted = have < FIRST_WRITTEN_BYTES ? FIRST_WRITTEN_BYTES : 2 * (int64_t)have;
    if (wanted > most)
        wanted = most;
    return PyByteArray_Resize(writer->bytes, (Py_ssize_t)(wanted > need ? wanted : need)) == 0;
}

/* One more record; nothing is changed where it fails, with an error. */
static int writer_put(Writer *writer, const Row *given, int64_t time_ms, PyObject *time)
{
    Row row = *given;
    int first = !writer->bytes || writer->at <= HEADER_BYTES;
    row.time_delta = 0;
    if (!first && __builtin_sub_overflow(time_ms, writer->base_ms, &row.time_delta)) {
        PyErr_SetString(PyExc_OverflowError, "times that are more than 64 bits apart");
        return 0;
    }
    Out size = {.fits = 1};
    if (row.headers) {
        if (!put_row(&size, &row, writer->count))
            goto wrong;
    } else {
        if ((row.key != Py_None && !PyBytes_Check(row.key)) || (row.value != Py_None && !PyBytes_Check(row.value)))
            goto wrong;
        size.at = AROUND_BYTES + (row.key == Py_None ? 0 : PyBytes_Size(row.key)) +
                  (row.value == Py_None ? 0 : PyBytes_Size(row.value));
    }
    if (!writer_room(writer, size.at))
        return 0;
    Out out = {(uint8_t *)PyByteArray_AsString(writer->bytes), writer->at, PyByteArray_Size(writer->bytes), 1};
    if (!put_row(&out, &row, writer->count) || !out.fits)
        goto wrong;
    if (!writer->times || !PyList_Check(writer->times)) {
        PyErr_SetString(PyExc_TypeError, "the times of records are a list");
        return 0;
    }
    if (PyList_Append(writer->times, time) < 0)
        return 0;
    if (first)
        writer->base_ms = writer->max_ms = time_ms;
    if (time_ms > writer->max_ms)
        writer->max_ms = time_ms;
    writer->at = (Py_ssize_t)out.at;
    writer->count++;
    return 1;
wrong:
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "a record is bytes or None, and pairs of a text and these");
    return 0;
}

static PyObject *writer_write(PyObject *self, PyObject *args)
{
    Row row = {0};
    PyObject *time;
    if (!PyArg_ParseTuple(args, "OOO!O", &row.key, &row.value, &PyTuple_Type, &row.headers, &time))
        return NULL;
    long long time_ms = PyLong_AsLongLong(time);
    if (time_ms == -1 && PyErr_Occurred())
        return NULL;
    if (PyTuple_Size(row.headers) == 0)
        row.headers = NULL;
    int done;
#ifdef Py_GIL_DISABLED
    Py_BEGIN_CRITICAL_SECTION(self);
#endif
    done = writer_put((Writer *)self, &row, time_ms, time);
#ifdef Py_GIL_DISABLED
    Py_END_CRITICAL_SECTION();
#endif
    return done ? none() : NULL;
}

static PyObject *writer_hand_over(Writer *writer)
{
    PyObject *times = PyList_New(0), *found = writer->bytes;
    if (!times)
        return NULL;
    if (!found && !(found = PyByteArray_FromStringAndSize(NULL, 0))) {
        Py_DECREF(times);
        return NULL;
    }
    writer->bytes = NULL;
    Py_ssize_t size = writer->at < HEADER_BYTES ? HEADER_BYTES : writer->at;
    if (PyByteArray_Resize(found, size) < 0)
        Py_CLEAR(found);
    else
        memset(PyByteArray_AsString(found), 0, HEADER_BYTES);
    PyObject *before = writer->times;
    writer->times = times;
    writer->at = 0;
    writer->count = writer->size_bytes = writer->full = 0;
    Py_XDECREF(before);
    return found;
}

static PyObject *writer_taken(PyObject *self, PyObject *nothing)
{
    PyObject *found;
#ifdef Py_GIL_DISABLED
    Py_BEGIN_CRITICAL_SECTION(self);
#endif
    found = writer_hand_over((Writer *)self);
#ifdef Py_GIL_DISABLED
    Py_END_CRITICAL_SECTION();
#endif
    return found;
}

static PyMethodDef writer_methods[] = {
    {"write", writer_write, METH_VARARGS, PyDoc_STR("write(key, value, headers, time_ms)")},
    {"taken", writer_taken, METH_NOARGS, PyDoc_STR("All of it, behind room for a header; it is empty then.")},
    {NULL, NULL, 0, NULL},
};

#define MEMBER(type, name, kind) {#name, kind, offsetof(type, name), 0, NULL}

static PyMemberDef writer_members[] = {
    {"times_ms", T_OBJECT_EX, offsetof(Writer, times), READONLY, NULL},
    MEMBER(Writer, batch, T_OBJECT_EX),
    MEMBER(Writer, base_ms, T_LONGLONG),
    MEMBER(Writer, max_ms, T_LONGLONG),
    MEMBER(Writer, count, T_LONGLONG),
    MEMBER(Writer, size_bytes, T_LONGLONG),
    MEMBER(Writer, limit, T_LONGLONG),
    MEMBER(Writer, full, T_INT),
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot writer_slots[] = {
    {Py_tp_new, writer_new},
    {Py_tp_dealloc, writer_free},
    {Py_tp_traverse, writer_traverse},
    {Py_tp_clear, writer_clear},
    {Py_tp_methods, writer_methods},
    {Py_tp_members, writer_members},
    {0, NULL},
};

static PyType_Spec writer_type = {
    .name = "ringleader._native.RecordWriter",
    .basicsize = sizeof(Writer),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = writer_slots,
};

static uint32_t murmur2_of(PyObject *given)
{
    const uint8_t *at = (const uint8_t *)PyBytes_AsString(given);
    Py_ssize_t left = PyBytes_Size(given);
    const uint32_t m = 0x5BD1E995;
    uint32_t h = 0x9747B28C ^ (uint32_t)left;
    for (; left >= 4; at += 4, left -= 4) {
        uint32_t k = (at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24) * m;
        h = (h * m) ^ ((k ^ k >> 24) * m);
    }
    if (left) {
        for (Py_ssize_t i = 0; i < left; i++)
            h ^= (uint32_t)at[i] << 8 * i;
        h *= m;
    }
    h = (h ^ h >> 13) * m;
    return h ^ h >> 15;
}

PyDoc_STRVAR(murmur2_doc, "murmur2(bytes): the hash of partitioner.py, without a sign.");

static PyObject *murmur2(PyObject *module, PyObject *given)
{
    if (!PyBytes_Check(given)) {
        PyErr_SetString(PyExc_TypeError, "a key is bytes");
        return NULL;
    }
    return PyLong_FromUnsignedLong(murmur2_of(given));
}

/* -- the outcomes of records -- */

/* A record's place in its batch: outcome.py of the producer. It is not made for the garbage collector, which would look
   at hundreds of thousands of them: what an outcome refers to leads back to it only while somebody waits for it, and
   the end of its batch takes that away. It never changes. */
typedef struct {
    PyObject_HEAD
    PyObject *batch; /* a list: what was written of it, or None; and all else there is to know */
    Py_ssize_t index;
} Place;

static PyObject *place_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    if (named || PyTuple_Size(args) != 2 || !PyList_Check(PyTuple_GetItem(args, 0))) {
        PyErr_SetString(PyExc_TypeError, "a place is made of a list, of its batch, and an index");
        return NULL;
    }
    Py_ssize_t index = PyLong_AsSsize_t(PyTuple_GetItem(args, 1));
    if (index == -1 && PyErr_Occurred())
        return NULL;
    Place *made = (Place *)PyType_GenericAlloc(type, 0);
    if (made) {
        made->batch = PyTuple_GetItem(args, 0);
        Py_INCREF(made->batch);
        made->index = index;
        if (PyType_GetFlags(type) & Py_TPFLAGS_HAVE_GC) /* as any class has that is written in Python */
            PyObject_GC_UnTrack(made);
    }
    return (PyObject *)made;
}

static void place_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(((Place *)self)->batch);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

/* What was written of its batch, or None; a reference of our own. */
static PyObject *place_written(PyObject *self)
{
    return item_of(((Place *)self)->batch, 0);
}

static PyObject *place_done(PyObject *self, PyObject *nothing)
{
    PyObject *written = place_written(self);
    if (!written)
        return NULL;
    int is_known = written != Py_None;
    Py_DECREF(written);
    return is_known ? PyBool_FromLong(1) : PyObject_CallMethod(self, "_done", NULL);
}

/* Of what `Written` holds; NULL with an error where it holds something else. */
static PyObject *metadata(PyObject *written, Py_ssize_t index)
{
    if (!PyTuple_Check(written) || PyTuple_Size(written) != 5 || !PyType_Check(PyTuple_GetItem(written, 0)) ||
        !PyType_IsSubtype((PyTypeObject *)PyTuple_GetItem(written, 0), &PyTuple_Type))
        return PyErr_Format(PyExc_TypeError, "not what was written");
    long long offset = PyLong_AsLongLong(PyTuple_GetItem(written, 3));
    if (PyErr_Occurred())
        return NULL;
    if (offset >= 0 && __builtin_add_overflow(offset, index, &offset))
        return PyErr_Format(PyExc_OverflowError, "an offset of more than 64 bits");
    PyObject *time_ms = PyTuple_GetItem(written, 4), *made;
    if (PyList_Check(time_ms))
        time_ms = item_of(time_ms, index);
    else
        Py_INCREF(time_ms);
    PyObject *number = time_ms ? PyLong_FromLongLong(offset) : NULL;
    made = number ? PyType_GenericAlloc((PyTypeObject *)PyTuple_GetItem(written, 0), 4) : NULL;
    if (!made) {
        Py_XDECREF(time_ms);
        Py_XDECREF(number);
        return NULL;
    }
    PyObject *items[] = {PyTuple_GetItem(written, 1), PyTuple_GetItem(written, 2), number, time_ms};
    Py_INCREF(items[0]);
    Py_INCREF(items[1]);
    for (Py_ssize_t i = 0; i < 4; i++)
        PyTuple_SetItem(made, i, items[i]);
    PyObject_GC_UnTrack(made); /* a text and three numbers */
    return made;
}

static PyObject *place_result(PyObject *self, PyObject *nothing)
{
    PyObject *written = place_written(self);
    if (!written)
        return NULL;
    PyObject *found = written == Py_None ? PyObject_CallMethod(self, "_result", NULL)
                                         : metadata(written, ((Place *)self)->index);
    Py_DECREF(written);
    return found;
}

static PyObject *place_fate(PyObject *self, void *nothing)
{
    return item_of(((Place *)self)->batch, 1);
}

static PyObject *place_index(PyObject *self, void *nothing)
{
    return PyLong_FromSsize_t(((Place *)self)->index);
}

static PyMethodDef place_methods[] = {
    {"done", place_done, METH_NOARGS, PyDoc_STR("Whether the outcome is known.")},
    {"result", place_result, METH_NOARGS, PyDoc_STR("The record's RecordMetadata. Raises its error.")},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef place_members[] = {
    {"_fate", place_fate, NULL, NULL, NULL},
    {"_index", place_index, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot place_slots[] = {
    {Py_tp_new, place_new},
    {Py_tp_dealloc, place_free},
    {Py_tp_methods, place_methods},
    {Py_tp_getset, place_members},
    {0, NULL},
};

static PyType_Spec place_type = {
    .name = "ringleader._native.Place",
    .basicsize = sizeof(Place),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = place_slots,
};

/* -- records from `send` to their batch -- */

/* Which partition records without a key go to: as Turns of partitioner.py. */
typedef struct {
    PyObject_HEAD
    PyObject *order; /* a list of numbers */
    Py_ssize_t at;
    long long bytes, most;
} Turns;

static PyObject *turns_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    PyObject *order;
    long long most;
    if (named || !PyArg_ParseTuple(args, "O!L", &PyList_Type, &order, &most)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "turns are made of a list of partitions and a number of bytes");
        return NULL;
    }
    Turns *made = (Turns *)PyType_GenericAlloc(type, 0);
    if (made) {
        Py_INCREF(order);
        made->order = order;
        made->most = most;
    }
    return (PyObject *)made;
}

static void turns_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(((Turns *)self)->order);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static int turns_end(const Turns *turns, long long size)
{
    return turns->bytes > 0 && size > turns->most - turns->bytes;
}

/* The place in the order of a record of that size; -1 with an error. */
static Py_ssize_t turns_place(const Turns *turns, long long size)
{
    Py_ssize_t count = PyList_Size(turns->order);
    if (count < 1 || turns->at < 0 || turns->at >= count) {
        PyErr_SetString(PyExc_IndexError, "no partition has its turn");
        return -1;
    }
    return turns_end(turns, size) ? (turns->at + 1) % count : turns->at;
}

static void turns_go(Turns *turns, Py_ssize_t place, long long size)
{
    turns->bytes = turns_end(turns, size) ? size : turns->bytes + size;
    turns->at = place;
}

/* A size from 0 to 2^40; -1 with an error. */
static long long size_given(PyObject *given)
{
    long long size = PyLong_AsLongLong(given);
    if (size >= 0 && size <= 1LL << 40)
        return size;
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "no size of a record");
    return -1;
}

static PyObject *turns_take(PyObject *self, PyObject *given)
{
    long long size = size_given(given);
    Py_ssize_t place = size < 0 ? -1 : turns_place((Turns *)self, size);
    PyObject *found = place < 0 ? NULL : item_of(((Turns *)self)->order, place);
    if (found)
        turns_go((Turns *)self, place, size);
    return found;
}

static PyObject *turns_over(PyObject *self, PyObject *given)
{
    long long size = size_given(given);
    return size < 0 ? NULL : PyBool_FromLong(turns_end((Turns *)self, size));
}

static PyObject *turns_current(PyObject *self, void *nothing)
{
    Py_ssize_t place = turns_place((Turns *)self, 0);
    return place < 0 ? NULL : item_of(((Turns *)self)->order, ((Turns *)self)->at);
}

static PyMethodDef turns_methods[] = {
    {"take", turns_take, METH_O, PyDoc_STR("The partition of a record of that size.")},
    {"over", turns_over, METH_O, PyDoc_STR("Whether a record of that size goes to another partition.")},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef turns_getters[] = {
    {"current", turns_current, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot turns_slots[] = {
    {Py_tp_new, turns_new},
    {Py_tp_dealloc, turns_free},
    {Py_tp_methods, turns_methods},
    {Py_tp_getset, turns_getters},
    {0, NULL},
};

static PyType_Spec turns_type = {
    .name = "ringleader._native.Turns",
    .basicsize = sizeof(Turns),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = turns_slots,
};

/* The way of most records: accept of entrance.py. */
typedef struct {
    PyObject_HEAD
    PyTypeObject *outcome, *writer, *turns;
    PyObject *ways; /* a dict: of each topic a list of its Turns or None, and its partitions' writers or None */
    PyObject *now;
    long long now_ms, used_bytes, limit_bytes;
    long long around_bytes, most_rows; /* of a record beside key and value; of a batch */
    double ends_s;
    unsigned long thread;
    int by_murmur2, closed;
} Entrance;

static PyObject *entrance_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    PyObject *module = PyType_GetModule(type), *outcome;
    State *state = module ? PyModule_GetState(module) : NULL;
    long long around_bytes, most_rows;
    int by_murmur2;
    if (!state || named ||
        !PyArg_ParseTuple(args, "O!pLL", &PyType_Type, &outcome, &by_murmur2, &around_bytes, &most_rows)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "an entrance takes no names");
        return NULL;
    }
    if (!PyType_IsSubtype((PyTypeObject *)outcome, state->place)) {
        PyErr_SetString(PyExc_TypeError, "outcomes are a kind of Place");
        return NULL;
    }
    Entrance *made = (Entrance *)PyType_GenericAlloc(type, 0);
    if (!made)
        return NULL;
    made->outcome = (PyTypeObject *)outcome;
    made->writer = state->writer;
    made->turns = state->turns;
    Py_INCREF((PyObject *)made->outcome);
    Py_INCREF((PyObject *)made->writer);
    Py_INCREF((PyObject *)made->turns);
    made->by_murmur2 = by_murmur2;
    made->around_bytes = around_bytes;
    made->most_rows = most_rows;
    if (!(made->ways = PyDict_New()))
        Py_CLEAR(made);
    return (PyObject *)made;
}

static int entrance_traverse(PyObject *self, visitproc visit, void *arg)
{
    Entrance *entrance = (Entrance *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(entrance->outcome);
    Py_VISIT(entrance->writer);
    Py_VISIT(entrance->turns);
    Py_VISIT(entrance->ways);
    return 0;
}

static int entrance_clear(PyObject *self)
{
    Entrance *entrance = (Entrance *)self;
    Py_CLEAR(entrance->outcome);
    Py_CLEAR(entrance->writer);
    Py_CLEAR(entrance->turns);
    Py_CLEAR(entrance->ways);
    Py_CLEAR(entrance->now);
    return 0;
}

static void entrance_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    entrance_clear(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

/* Seconds by the clock that Python's time.monotonic is on Linux, or another one that only runs forward. */
static double clock_s(void)
{
    struct timespec now;
    return clock_gettime(CLOCK_MONOTONIC, &now) ? 1e300 : (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static PyObject *entrance_begin(PyObject *self, PyObject *args)
{
    Entrance *entrance = (Entrance *)self;
    PyObject *now;
    double left_s;
    if (!PyArg_ParseTuple(args, "O!d", &PyLong_Type, &now, &left_s))
        return NULL;
    long long now_ms = PyLong_AsLongLong(now);
    if (now_ms == -1 && PyErr_Occurred())
        return NULL;
    PyObject *before = entrance->now;
    Py_INCREF(now);
    entrance->now = now;
    entrance->now_ms = now_ms;
    entrance->ends_s = clock_s() + left_s;
    entrance->thread = PyThread_get_thread_ident();
    Py_XDECREF(before);
    return none();
}

/* An outcome of the record that the writer takes next, which it is then given; NULL: with an error. */
static PyObject *entrance_put(Entrance *entrance, Writer *writer, const Row *row, long long size)
{
    Place *made = (Place *)PyType_GenericAlloc(entrance->outcome, 0);
    if (!made)
        return NULL;
    if (PyType_GetFlags(entrance->outcome) & Py_TPFLAGS_HAVE_GC)
        PyObject_GC_UnTrack(made);
    made->batch = writer->batch;
    Py_INCREF(made->batch);
    made->index = (Py_ssize_t)writer->count;
    if (!writer_put(writer, row, entrance->now_ms, entrance->now)) {
        Py_DECREF(made);
        return NULL;
    }
    writer->size_bytes += size;
    return (PyObject *)made;
}

/* Whether it is neither the first record of its batch nor the last one. */
static int fits_inside(const Entrance *entrance, const Writer *writer, long long size)
{
    return writer->count > 0 && writer->count < entrance->most_rows - 1 && !writer->full && writer->batch &&
           PyList_Check(writer->batch) && writer->size_bytes >= 0 && size < writer->limit - writer->size_bytes;
}

/* The partition's writer, and the place that its Turns go to; NULL: not known, or with an error. */
static PyObject *writer_of(const Entrance *entrance, PyObject *way, const Row *row, long long size, PyObject **turns,
                           Py_ssize_t *place)
{
    Py_ssize_t count = PyList_Size(way) - 1, target = -1;
    if (count < 1)
        return NULL;
    if (row->key != Py_None) {
        if (entrance->by_murmur2)
            target = (Py_ssize_t)((murmur2_of(row->key) & 0x7FFFFFFF) % (uint32_t)count);
    } else if ((*turns = item_of(way, 0)) && Py_TYPE(*turns) == entrance->turns &&
               (*place = turns_place((Turns *)*turns, size)) >= 0) {
        PyObject *number = item_of(((Turns *)*turns)->order, *place);
        target = number ? PyLong_AsSsize_t(number) : -1;
        Py_XDECREF(number);
    }
    return target < 0 || target >= count ? NULL : item_of(way, 1 + target);
}

static PyObject *accept_on(Entrance *entrance, PyObject *way, const Row *row)
{
    long long size = entrance->around_bytes + PyBytes_Size(row->value) +
                     (row->key == Py_None ? 0 : PyBytes_Size(row->key));
    if (size > entrance->limit_bytes - entrance->used_bytes)
        return NULL;
    PyObject *turns = NULL, *made = NULL;
    Py_ssize_t place = -1;
    PyObject *found = writer_of(entrance, way, row, size, &turns, &place);
    if (found && PyObject_TypeCheck(found, entrance->writer)) {
#ifdef Py_GIL_DISABLED
        Py_BEGIN_CRITICAL_SECTION(found);
#endif
        if (fits_inside(entrance, (Writer *)found, size))
            made = entrance_put(entrance, (Writer *)found, row, size);
#ifdef Py_GIL_DISABLED
        Py_END_CRITICAL_SECTION();
#endif
    }
    if (made) {
        entrance->used_bytes += size;
        if (place >= 0)
            turns_go((Turns *)turns, place, size);
    }
    Py_XDECREF(found);
    Py_XDECREF(turns);
    return made;
}

static PyObject *entrance_accept(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Entrance *entrance = (Entrance *)self;
    if (count != 6)
        return PyErr_Format(PyExc_TypeError, "accept takes 6 arguments, not %zd", count);
    PyObject *topic = args[0], *way;
    Row row = {.value = args[1], .key = args[2]};
    if (entrance->closed || Py_TYPE(row.value) != &PyBytes_Type ||
        (row.key != Py_None && Py_TYPE(row.key) != &PyBytes_Type) || args[3] != Py_None ||
        Py_TYPE(args[4]) != &PyTuple_Type || PyTuple_Size(args[4]) || args[5] != Py_None ||
        Py_TYPE(topic) != &PyUnicode_Type || !entrance->now || entrance->thread != PyThread_get_thread_ident() ||
        clock_s() >= entrance->ends_s)
        return none();
    way = PyDict_GetItemWithError(entrance->ways, topic);
    if (!way || !PyList_Check(way))
        return unfit();
    Py_INCREF(way);
    PyObject *made = accept_on(entrance, way, &row);
    Py_DECREF(way);
    return made ? made : unfit();
}

static PyMethodDef entrance_methods[] = {
    {"begin", entrance_begin, METH_VARARGS, PyDoc_STR("begin(now_ms, left_s)")},
    {"accept", (PyCFunction)(void (*)(void))entrance_accept, METH_FASTCALL,
     PyDoc_STR("accept(topic, value, key, partition, headers, timestamp_ms): as of entrance.py, or None.")},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef entrance_members[] = {
    {"ways", T_OBJECT_EX, offsetof(Entrance, ways), READONLY, NULL},
    MEMBER(Entrance, used_bytes, T_LONGLONG),
    MEMBER(Entrance, limit_bytes, T_LONGLONG),
    MEMBER(Entrance, closed, T_INT),
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot entrance_slots[] = {
    {Py_tp_new, entrance_new},
    {Py_tp_dealloc, entrance_free},
    {Py_tp_traverse, entrance_traverse},
    {Py_tp_clear, entrance_clear},
    {Py_tp_methods, entrance_methods},
    {Py_tp_members, entrance_members},
    {0, NULL},
};

static PyType_Spec entrance_type = {
    .name = "ringleader._native.Entrance",
    .basicsize = sizeof(Entrance),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = entrance_slots,
};

/* -- the module -- */

static PyMethodDef functions[] = {
    {"read_values", read_values, METH_VARARGS, read_values_doc},
    {"read_rows", read_rows, METH_VARARGS, read_rows_doc},
    {"read_records", read_records, METH_VARARGS, read_records_doc},
    {"read_columns", read_columns, METH_VARARGS, read_columns_doc},
    {"murmur2", murmur2, METH_O, murmur2_doc},
    {NULL, NULL, 0, NULL},
};

/* A type of the module, under its own name if it has one; NULL with an error. */
static PyTypeObject *made_type(PyObject *module, PyType_Spec *spec, const char *name)
{
    PyObject *made = PyType_FromModuleAndSpec(module, spec, NULL);
    if (made && name && PyModule_AddObjectRef(module, name, made) < 0)
        Py_CLEAR(made);
    return (PyTypeObject *)made;
}

static int begin(PyObject *module)
{
    State *state = PyModule_GetState(module);
    PyTypeObject *entrance = NULL;
    int right = (state->records = made_type(module, &records_spec, NULL)) &&
                (state->place = made_type(module, &place_type, "Place")) &&
                (state->writer = made_type(module, &writer_type, "RecordWriter")) &&
                (state->turns = made_type(module, &turns_type, "Turns")) &&
                (entrance = made_type(module, &entrance_type, "Entrance")) &&
                PyModule_AddIntConstant(module, "INTERFACE", INTERFACE) == 0;
    Py_XDECREF((PyObject *)entrance);
    return right ? 0 : -1;
}

static int clear(PyObject *module)
{
    State *state = PyModule_GetState(module);
    Py_CLEAR(state->records);
    Py_CLEAR(state->place);
    Py_CLEAR(state->writer);
    Py_CLEAR(state->turns);
    return 0;
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    State *state = PyModule_GetState(module);
    if (state) {
        Py_VISIT(state->records);
        Py_VISIT(state->place);
        Py_VISIT(state->writer);
        Py_VISIT(state->turns);
    }
    return 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)begin},
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "ringleader._native",
    .m_doc = "The records of batches, found by compiled code.",
    .m_size = sizeof(State),
    .m_methods = functions,
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
};

PyMODINIT_FUNC PyInit__native(void)
{
    return PyModuleDef_Init(&definition);
}

// Optfarm's runtime for C: load a TensorFlow graph, make a session, run it.
//
//   optfarm_model* model = NULL;
//   optfarm_session* session = NULL;
//   optfarm_status* status = optfarm_model_load("model.pb", NULL, &model);
//   if (status == NULL) {
//     status = optfarm_session_create(model, NULL, 0, NULL, 0, NULL, &session);
//   }
//   if (status != NULL) {
//     fprintf(stderr, "%s\n", optfarm_status_message(status));
//     optfarm_status_delete(status);
//   }
//
// ERRORS: a function that can fail returns NULL for success, else a status that
// the caller deletes. Its results are then untouched. No exception leaves this
// library, and lack of memory is a status like others (RESOURCE_EXHAUSTED). A
// NULL where an object is needed is INVALID_ARGUMENT; the delete functions and
// the readers of a status take NULL.
//
// OWNERSHIP: what a function makes through a pointer to a pointer is the
// caller's and ends with the delete function of its kind. Nothing depends on
// the order of deletion: a session stays whole without its model, a tensor
// without its session. `const char*` and `const int64_t*` that are returned
// belong to the object they were asked of and live as long as it.
//
// THREADS: different objects may be used by different threads at once. One
// model or session may be used by many threads at once, delete excepted:
// optfarm_session_run is safe from many threads. A tensor may be read by many
// threads; while one writes it, nobody else may use it. A cancel token may be
// set from any thread.
//
// VERSIONS: OPTFARM_API_VERSION grows by 1 when something is added and by 1000
// when something is changed or removed; the shared library's name changes with
// the thousands. Option structs begin with their size, which the init functions
// set, so that programs built against an older header keep working.

#ifndef OPTFARM_ENGINE_API_C_API_H_
#define OPTFARM_ENGINE_API_C_API_H_

#include <stddef.h>
#include <stdint.h>

#define OPTFARM_API_VERSION 1001

// The only symbols that the shared library shows.
#define OPTFARM_EXPORT __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

// --- Versions -------------------------------------------------------------

// OPTFARM_API_VERSION of the library that runs.
OPTFARM_EXPORT int32_t optfarm_api_version(void);
// Optfarm's version, "1.2.3".
OPTFARM_EXPORT const char* optfarm_version(void);

// --- Status ---------------------------------------------------------------

typedef struct optfarm_status optfarm_status;

// The numbers are gRPC's and abseil's.
typedef enum optfarm_code {
  OPTFARM_OK = 0,
  OPTFARM_CANCELLED = 1,
  OPTFARM_UNKNOWN = 2,
  // A wrong argument, or a file that is no model.
  OPTFARM_INVALID_ARGUMENT = 3,
  // The run's time limit passed.
  OPTFARM_DEADLINE_EXCEEDED = 4,
  // No such file, or no such tensor in the model.
  OPTFARM_NOT_FOUND = 5,
  OPTFARM_ALREADY_EXISTS = 6,
  OPTFARM_PERMISSION_DENIED = 7,
  // Out of memory, or the session's memory limit.
  OPTFARM_RESOURCE_EXHAUSTED = 8,
  OPTFARM_FAILED_PRECONDITION = 9,
  OPTFARM_ABORTED = 10,
  OPTFARM_OUT_OF_RANGE = 11,
  // The model needs an op or a type that this runtime does not have.
  OPTFARM_UNIMPLEMENTED = 12,
  // An error of ours.
  OPTFARM_INTERNAL = 13,
  OPTFARM_UNAVAILABLE = 14,
  OPTFARM_DATA_LOSS = 15,
  OPTFARM_UNAUTHENTICATED = 16
} optfarm_code;

// OPTFARM_OK for NULL.
OPTFARM_EXPORT optfarm_code optfarm_status_code(const optfarm_status* status);
// One line without newline: what was being done, what was wrong; "" for NULL.
OPTFARM_EXPORT const char* optfarm_status_message(const optfarm_status* status);
OPTFARM_EXPORT void optfarm_status_delete(optfarm_status* status);

// --- Tensors --------------------------------------------------------------

// The numbers are TensorFlow's. Quantized types hold the integers that code
// them. Types that are not named here can be fetched and fed, not made.
typedef enum optfarm_dtype {
  OPTFARM_UNKNOWN_TYPE = 0,
  OPTFARM_FLOAT = 1,
  OPTFARM_DOUBLE = 2,
  OPTFARM_INT32 = 3,
  OPTFARM_UINT8 = 4,
  OPTFARM_INT16 = 5,
  OPTFARM_INT8 = 6,
  OPTFARM_STRING = 7,
  OPTFARM_COMPLEX64 = 8,
  OPTFARM_INT64 = 9,
  // One byte, 0 or 1.
  OPTFARM_BOOL = 10,
  OPTFARM_QINT8 = 11,
  OPTFARM_QUINT8 = 12,
  OPTFARM_QINT32 = 13,
  OPTFARM_BFLOAT16 = 14,
  OPTFARM_QINT16 = 15,
  OPTFARM_QUINT16 = 16,
  OPTFARM_UINT16 = 17,
  OPTFARM_COMPLEX128 = 18,
  OPTFARM_HALF = 19,
  OPTFARM_UINT32 = 22,
  OPTFARM_UINT64 = 23
} optfarm_dtype;

// "float", "quint8", ...; "unknown" for a number that is no type.
OPTFARM_EXPORT const char* optfarm_dtype_name(optfarm_dtype dtype);
// UNITS: bytes of one element; 0 for strings and unknown types.
OPTFARM_EXPORT size_t optfarm_dtype_size(optfarm_dtype dtype);

// A dense array in row-major order (the last dimension runs fastest).
typedef struct optfarm_tensor optfarm_tensor;

// A tensor of zeros (of empty strings). `dims` may be NULL for a scalar, whose
// rank is 0.
OPTFARM_EXPORT optfarm_status* optfarm_tensor_create(optfarm_dtype dtype,
                                                     const int64_t* dims,
                                                     int32_t rank,
                                                     optfarm_tensor** tensor);

// A tensor with a copy of `data`. UNITS: size in bytes; it must be exactly what
// the shape needs. Not for strings.
OPTFARM_EXPORT optfarm_status* optfarm_tensor_copy(
    optfarm_dtype dtype, const int64_t* dims, int32_t rank, const void* data,
    size_t size, optfarm_tensor** tensor);

// A tensor over the caller's memory, which is read where it lies and never
// written. It must stay unchanged until `release` is called with `context`:
// once, from any thread, when neither the tensor nor a run needs it any more.
// `release` may be NULL. Memory that is not aligned to 64 bytes, and bools, are
// copied; `release` is then called before this function returns. When an error
// is returned `release` is not called. Not for strings.
OPTFARM_EXPORT optfarm_status* optfarm_tensor_borrow(
    optfarm_dtype dtype, const int64_t* dims, int32_t rank, const void* data,
    size_t size, void (*release)(void* context), void* context,
    optfarm_tensor** tensor);

// A tensor of strings, copied from as many pointers and lengths as the shape
// has elements. `lengths` may be NULL: the strings then end with a zero byte.
// UNITS: bytes.
OPTFARM_EXPORT optfarm_status* optfarm_tensor_strings(
    const int64_t* dims, int32_t rank, const char* const* strings,
    const size_t* lengths, optfarm_tensor** tensor);

OPTFARM_EXPORT optfarm_dtype optfarm_tensor_dtype(const optfarm_tensor* tensor);
OPTFARM_EXPORT int32_t optfarm_tensor_rank(const optfarm_tensor* tensor);
// As many as the rank; NULL for a scalar.
OPTFARM_EXPORT const int64_t* optfarm_tensor_dims(const optfarm_tensor* tensor);
OPTFARM_EXPORT int64_t
optfarm_tensor_element_count(const optfarm_tensor* tensor);
// UNITS: bytes of all elements; for strings the sum of their lengths.
OPTFARM_EXPORT int64_t optfarm_tensor_byte_size(const optfarm_tensor* tensor);

// The elements' bytes, aligned for their type; NULL for strings and for a
// tensor without elements.
OPTFARM_EXPORT const void* optfarm_tensor_data(const optfarm_tensor* tensor);
// The same for writing. NULL also where the memory is not this tensor's alone:
// a borrowed tensor, and one that the library shares (an output that is a
// constant of the model).
OPTFARM_EXPORT void* optfarm_tensor_mutable_data(optfarm_tensor* tensor);
// Element `index` of a tensor of strings; not ended by a zero byte.
// ERRORS: INVALID_ARGUMENT for another type, OUT_OF_RANGE.
OPTFARM_EXPORT optfarm_status* optfarm_tensor_string(
    const optfarm_tensor* tensor, int64_t index, const char** bytes,
    size_t* length);
OPTFARM_EXPORT void optfarm_tensor_delete(optfarm_tensor* tensor);

// --- Models ---------------------------------------------------------------

typedef struct optfarm_model optfarm_model;

typedef struct optfarm_model_options {
  size_t struct_size;
  // The key of an encrypted model; NULL: the one that the environment names
  // (OPTFARM_MODEL_KEY_FILE, OPTFARM_MODEL_KEY). Only read by the load itself.
  // UNITS: bytes; 32 of them.
  const void* key;
  size_t key_size;
} optfarm_model_options;

OPTFARM_EXPORT void optfarm_model_options_init(optfarm_model_options* options);

// One input or output of a model or session.
typedef struct optfarm_tensor_info {
  // "node" or "node:port".
  const char* name;
  // OPTFARM_UNKNOWN_TYPE when the model does not say.
  optfarm_dtype dtype;
  // -1 when not known; `dims` is then NULL.
  int32_t rank;
  // -1 where not known.
  const int64_t* dims;
} optfarm_tensor_info;

// Loads a frozen graph, binary or text, a memory-mapped package, or either of
// them encrypted, which is decrypted in memory. `options` may be NULL. Weights
// in packages and large ones in binary graphs are used where they lie in the
// file: it must not be cut short or overwritten in place while a session uses
// it (another file may be renamed over it).
// ERRORS: NOT_FOUND and PERMISSION_DENIED for the file; INVALID_ARGUMENT saying
// what is wrong with it; DATA_LOSS for a damaged package, a wrong key, or an
// encrypted model that was changed.
OPTFARM_EXPORT optfarm_status* optfarm_model_load(
    const char* path, const optfarm_model_options* options,
    optfarm_model** model);
// The same from memory, which is not needed afterwards. UNITS: bytes.
OPTFARM_EXPORT optfarm_status* optfarm_model_load_memory(
    const void* data, size_t size, const optfarm_model_options* options,
    optfarm_model** model);
OPTFARM_EXPORT void optfarm_model_delete(optfarm_model* model);

// What the model is fed and what it answers, found by looking at the graph: the
// placeholders that its ends need, and its ends.
// ERRORS: FAILED_PRECONDITION when the outputs cannot be told.
OPTFARM_EXPORT optfarm_status* optfarm_model_input_count(
    const optfarm_model* model, size_t* count);
OPTFARM_EXPORT optfarm_status* optfarm_model_output_count(
    const optfarm_model* model, size_t* count);
// ERRORS: OUT_OF_RANGE. OWNERSHIP: what `info` points to is the model's.
OPTFARM_EXPORT optfarm_status* optfarm_model_input(const optfarm_model* model,
                                                   size_t index,
                                                   optfarm_tensor_info* info);
OPTFARM_EXPORT optfarm_status* optfarm_model_output(const optfarm_model* model,
                                                    size_t index,
                                                    optfarm_tensor_info* info);

// --- Sessions -------------------------------------------------------------

typedef struct optfarm_session optfarm_session;

// Threads that several sessions share.
typedef struct optfarm_thread_pool optfarm_thread_pool;

// `threads` counts the caller of a run, so the pool starts one fewer. These run
// on `processors` only, numbered as the system does; NULL with count 0: on any.
// ERRORS: INVALID_ARGUMENT for fewer than 1 thread or processors that the
// system refuses.
OPTFARM_EXPORT optfarm_status* optfarm_thread_pool_create(
    int32_t threads, const int32_t* processors, size_t processor_count,
    optfarm_thread_pool** pool);
// The threads end with the last session that uses them.
OPTFARM_EXPORT void optfarm_thread_pool_delete(optfarm_thread_pool* pool);

typedef struct optfarm_session_options {
  size_t struct_size;
  // Threads that one run may use, the caller's included. Default: 1.
  int32_t threads;
  // These threads instead; NULL: the session has its own.
  const optfarm_thread_pool* thread_pool;
  // What weights may take in the form in which kernels read them; what is more
  // of those that are used in the model's file is read from it by each run,
  // which costs time. UNITS: bytes; 0: no limit.
  int64_t packed_weights_limit_bytes;
} optfarm_session_options;

OPTFARM_EXPORT void optfarm_session_options_init(
    optfarm_session_options* options);

// Prepares to run the part of the model that `outputs` need when `inputs` are
// given. Names are "node" or "node:port"; any tensor of the graph may be
// either. NULL for a list with count 0: the model's inputs, the model's
// outputs. `options` may be NULL. A session keeps what it needs of the model.
// ERRORS: NOT_FOUND with the nearest names, UNIMPLEMENTED naming the node and
// op that the runtime cannot run.
OPTFARM_EXPORT optfarm_status* optfarm_session_create(
    const optfarm_model* model, const char* const* inputs, size_t input_count,
    const char* const* outputs, size_t output_count,
    const optfarm_session_options* options, optfarm_session** session);
OPTFARM_EXPORT void optfarm_session_delete(optfarm_session* session);

OPTFARM_EXPORT size_t
optfarm_session_input_count(const optfarm_session* session);
OPTFARM_EXPORT size_t
optfarm_session_output_count(const optfarm_session* session);
// NULL when there is no such index.
OPTFARM_EXPORT const char* optfarm_session_input_name(
    const optfarm_session* session, size_t index);
OPTFARM_EXPORT const char* optfarm_session_output_name(
    const optfarm_session* session, size_t index);

// Lets one thread end the runs of others.
typedef struct optfarm_cancel optfarm_cancel;

OPTFARM_EXPORT optfarm_status* optfarm_cancel_create(optfarm_cancel** cancel);
// Every run that was given `cancel`, now or later, ends with CANCELLED within
// milliseconds, also in the middle of a long node. THREADS: any, also a signal
// handler.
OPTFARM_EXPORT void optfarm_cancel_set(optfarm_cancel* cancel);
// Lets later runs go on again.
OPTFARM_EXPORT void optfarm_cancel_reset(optfarm_cancel* cancel);
// REQUIRES: no run uses it.
OPTFARM_EXPORT void optfarm_cancel_delete(optfarm_cancel* cancel);

typedef struct optfarm_run_options {
  size_t struct_size;
  // The run ends with DEADLINE_EXCEEDED within milliseconds after so much time,
  // also in the middle of a long node. UNITS: microseconds; 0: no limit.
  int64_t time_limit_us;
  // May be NULL. OWNERSHIP: the caller's, and outlives the run.
  const optfarm_cancel* cancel;
  // What the run's tensors and its nodes' working memory may take at a time,
  // outputs included, inputs and weights not; looked at before it is taken:
  // RESOURCE_EXHAUSTED beyond. UNITS: bytes; 0: no limit.
  int64_t memory_limit_bytes;
  // Not NULL: the run is traced, and this becomes JSON about it, to be deleted
  // with optfarm_string_delete: {"nodes": [{"name", "op", "start_us",
  // "duration_us", "output_bytes", "outputs": [{"dtype", "shape"}],
  // "fused_names"}]}, nodes in the order in which they ran; "fused_names" only
  // where one step did the work of several nodes, whose names these are. UNITS:
  // microseconds since the run's start; bytes.
  char** profile_json;
} optfarm_run_options;

OPTFARM_EXPORT void optfarm_run_options_init(optfarm_run_options* options);

// Runs once. `inputs` are the session's inputs in order; `outputs` has room for
// the session's outputs and gets new tensors in order. `options` may be NULL.
// ERRORS: INVALID_ARGUMENT for a wrong number, type or shape of inputs, and for
// what a node cannot do with its values, naming the node; CANCELLED,
// DEADLINE_EXCEEDED and RESOURCE_EXHAUSTED by what `options` ask for.
OPTFARM_EXPORT optfarm_status* optfarm_session_run(
    const optfarm_session* session, const optfarm_tensor* const* inputs,
    size_t input_count, optfarm_tensor** outputs, size_t output_count,
    const optfarm_run_options* options);

OPTFARM_EXPORT void optfarm_string_delete(char* text);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // OPTFARM_ENGINE_API_C_API_H_

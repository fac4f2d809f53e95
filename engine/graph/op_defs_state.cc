// Signatures of ops with state or with the outside world: variables,
// checkpoints, lookup tables, queues, readers, summaries, assertions. The
// notation is explained in op_signatures.h.

#include "engine/graph/op_signatures.h"

namespace optfarm::graph {

absl::string_view StateOpSignatures() {
  static constexpr absl::string_view kText = R"(
# Reference variables.
Variable, VariableV2() -> (ref: &dtype) stateful
  | shape: shape; dtype: type; container: string = "";
    shared_name: string = ""
TemporaryVariable() -> (ref: &dtype) stateful
  | shape: shape; dtype: type; var_name: string = ""
DestroyTemporaryVariable(ref: &T) -> (value: T) | T: type; var_name: string
IsVariableInitialized(ref: &dtype) -> (is_initialized: bool) uninitialized
  | dtype: type
Assign(ref: &T, value: T) -> (output_ref: &T) uninitialized
  | T: type; validate_shape: bool = true; use_locking: bool = true
AssignAdd, AssignSub(ref: &T, value: T) -> (output_ref: &T)
  | T: {number}; use_locking: bool = false
CountUpTo(ref: &T) -> (output: T) | limit: int; T: {index}
ScatterUpdate(ref: &T, indices: Tindices, updates: T) -> (output_ref: &T)
  | T: type; Tindices: {index}; use_locking: bool = true
ScatterAdd, ScatterSub, ScatterMul, ScatterDiv(
  ref: &T, indices: Tindices, updates: T) -> (output_ref: &T)
  | T: {number}; Tindices: {index}; use_locking: bool = false
ScatterMin, ScatterMax(ref: &T, indices: Tindices, updates: T)
  -> (output_ref: &T)
  | T: {half, bfloat16, float, double, int32, int64}; Tindices: {index};
    use_locking: bool = false
ScatterNdUpdate(ref: &T, indices: Tindices, updates: T) -> (output_ref: &T)
  | T: type; Tindices: {index}; use_locking: bool = true;
    late bad_indices_policy: string = ""
ScatterNdAdd, ScatterNdSub(ref: &T, indices: Tindices, updates: T)
  -> (output_ref: &T)
  | T: {number}; Tindices: {index}; use_locking: bool = false;
    late bad_indices_policy: string = ""

# Resource variables.
VarHandleOp() -> (resource: resource) stateful
  | container: string = ""; shared_name: string = "";
    late debug_name: string = ""; dtype: type; shape: shape;
    late allowed_devices: list(string) = []
VarIsInitializedOp(resource: resource) -> (is_initialized: bool) stateful
ReadVariableOp(resource: resource) -> (value: dtype) stateful | dtype: type
AssignVariableOp(resource: resource, value: dtype) stateful
  | dtype: type; late validate_shape: bool = false
AssignAddVariableOp, AssignSubVariableOp(resource: resource, value: dtype)
  stateful | dtype: type
VariableShape(input: resource) -> (output: out_type) stateful
  | out_type: {index} = int32
DestroyResourceOp(resource: resource) stateful
  | ignore_lookup_error: bool = true
ResourceGather(resource: resource, indices: Tindices) -> (output: dtype)
  stateful
  | late batch_dims: int = 0; validate_indices: bool = true; dtype: type;
    Tindices: {index}
ResourceScatterAdd, ResourceScatterUpdate(
  resource: resource, indices: Tindices, updates: dtype) stateful
  | dtype: type; Tindices: {index}

# Checkpoints and files.
Save(filename: string, tensor_names: string, data: T) stateful
  | T: list(type) >= 1
SaveSlices(
  filename: string, tensor_names: string, shapes_and_slices: string, data: T)
  stateful | T: list(type) >= 1
SaveV2(
  prefix: string, tensor_names: string, shape_and_slices: string,
  tensors: dtypes) stateful | dtypes: list(type) >= 1
Restore(file_pattern: string, tensor_name: string) -> (tensor: dt) stateful
  | dt: type; preferred_shard: int = -1
RestoreSlice(
  file_pattern: string, tensor_name: string, shape_and_slice: string)
  -> (tensor: dt) stateful | dt: type; preferred_shard: int = -1
RestoreV2(prefix: string, tensor_names: string, shape_and_slices: string)
  -> (tensors: dtypes) stateful | dtypes: list(type) >= 1
MergeV2Checkpoints(checkpoint_prefixes: string, destination_prefix: string)
  stateful
  | delete_old_dirs: bool = true; late allow_missing_files: bool = false
ShardedFilename(basename: string, shard: int32, num_shards: int32)
  -> (filename: string)
ShardedFilespec(basename: string, num_shards: int32) -> (filename: string)
ReadFile(filename: string) -> (contents: string)
WriteFile(filename: string, contents: string) stateful
MatchingFiles(pattern: string) -> (filenames: string)
WholeFileReaderV2() -> (reader_handle: resource) stateful
  | container: string = ""; shared_name: string = ""
ReaderReadV2(reader_handle: resource, queue_handle: resource)
  -> (key: string, value: string) stateful

# Lookup tables: a reference to a string, then (V2) a resource.
HashTable() -> (table_handle: &string) stateful
  | container: string = ""; shared_name: string = "";
    use_node_name_sharing: bool = false; key_dtype: type; value_dtype: type
HashTableV2() -> (table_handle: resource) stateful
  | container: string = ""; shared_name: string = "";
    use_node_name_sharing: bool = false; key_dtype: type; value_dtype: type
MutableHashTable() -> (table_handle: &string) stateful
  | container: string = ""; shared_name: string = "";
    use_node_name_sharing: bool = false; key_dtype: type; value_dtype: type
MutableHashTableV2() -> (table_handle: resource) stateful
  | container: string = ""; shared_name: string = "";
    use_node_name_sharing: bool = false; key_dtype: type; value_dtype: type
LookupTableFind(table_handle: &string, keys: Tin, default_value: Tout)
  -> (values: Tout) | Tin: type; Tout: type
LookupTableFindV2(table_handle: resource, keys: Tin, default_value: Tout)
  -> (values: Tout) stateful | Tin: type; Tout: type
LookupTableInsert(table_handle: &string, keys: Tin, values: Tout)
  | Tin: type; Tout: type
LookupTableInsertV2(table_handle: resource, keys: Tin, values: Tout) stateful
  | Tin: type; Tout: type
LookupTableSize(table_handle: &string) -> (size: int64)
LookupTableSizeV2(table_handle: resource) -> (size: int64) stateful
LookupTableExport(table_handle: &string) -> (keys: Tkeys, values: Tvalues)
  | Tkeys: type; Tvalues: type
LookupTableExportV2(table_handle: resource) -> (keys: Tkeys, values: Tvalues)
  stateful | Tkeys: type; Tvalues: type
LookupTableImport(table_handle: &string, keys: Tin, values: Tout)
  | Tin: type; Tout: type
LookupTableImportV2(table_handle: resource, keys: Tin, values: Tout) stateful
  | Tin: type; Tout: type
InitializeTable(table_handle: &string, keys: Tkey, values: Tval)
  | Tkey: type; Tval: type
InitializeTableV2(table_handle: resource, keys: Tkey, values: Tval) stateful
  | Tkey: type; Tval: type
InitializeTableFromTextFile(table_handle: &string, filename: string)
  | key_index: int >= -2; value_index: int >= -2; vocab_size: int >= -1 = -1;
    delimiter: string = "\t"; late offset: int = 0
InitializeTableFromTextFileV2(table_handle: resource, filename: string)
  stateful
  | key_index: int >= -2; value_index: int >= -2; vocab_size: int >= -1 = -1;
    delimiter: string = "\t"; late offset: int = 0

# Queues: a reference to a string, then (V2) a resource.
FIFOQueue() -> (handle: &string) stateful
  | component_types: list(type) >= 1; shapes: list(shape) >= 0 = [];
    capacity: int = -1; container: string = ""; shared_name: string = ""
FIFOQueueV2() -> (handle: resource) stateful
  | component_types: list(type) >= 1; shapes: list(shape) >= 0 = [];
    capacity: int = -1; container: string = ""; shared_name: string = ""
PaddingFIFOQueueV2() -> (handle: resource) stateful
  | component_types: list(type) >= 1; shapes: list(shape) >= 0 = [];
    capacity: int = -1; container: string = ""; shared_name: string = ""
RandomShuffleQueue() -> (handle: &string) stateful
  | component_types: list(type) >= 1; shapes: list(shape) >= 0 = [];
    capacity: int = -1; min_after_dequeue: int = 0; seed: int = 0;
    seed2: int = 0; container: string = ""; shared_name: string = ""
RandomShuffleQueueV2() -> (handle: resource) stateful
  | component_types: list(type) >= 1; shapes: list(shape) >= 0 = [];
    capacity: int = -1; min_after_dequeue: int = 0; seed: int = 0;
    seed2: int = 0; container: string = ""; shared_name: string = ""
QueueEnqueue, QueueEnqueueMany(handle: &string, components: Tcomponents)
  | Tcomponents: list(type) >= 1; timeout_ms: int = -1
QueueEnqueueV2, QueueEnqueueManyV2(
  handle: resource, components: Tcomponents) stateful
  | Tcomponents: list(type) >= 1; timeout_ms: int = -1
QueueDequeue(handle: &string) -> (components: component_types)
  | component_types: list(type) >= 1; timeout_ms: int = -1
QueueDequeueV2(handle: resource) -> (components: component_types) stateful
  | component_types: list(type) >= 1; timeout_ms: int = -1
QueueDequeueMany, QueueDequeueUpTo(handle: &string, n: int32)
  -> (components: component_types)
  | component_types: list(type) >= 1; timeout_ms: int = -1
QueueDequeueManyV2, QueueDequeueUpToV2(handle: resource, n: int32)
  -> (components: component_types) stateful
  | component_types: list(type) >= 1; timeout_ms: int = -1
QueueClose(handle: &string) | cancel_pending_enqueues: bool = false
QueueCloseV2(handle: resource) stateful
  | cancel_pending_enqueues: bool = false
QueueSize(handle: &string) -> (size: int32)
QueueSizeV2(handle: resource) -> (size: int32) stateful
IteratorV2() -> (handle: resource) stateful
  | shared_name: string; container: string; output_types: list(type) >= 1;
    output_shapes: list(shape) >= 1
IteratorGetNext(iterator: resource) -> (components: output_types) stateful
  | output_types: list(type) >= 1; output_shapes: list(shape) >= 1

# Assertions, prints and summaries.
Assert(condition: bool, data: T) stateful
  | T: list(type) >= 1; summarize: int = 3
Print(input: T, data: U) -> (output: T) stateful
  | T: type; U: list(type) >= 0; message: string = ""; first_n: int = -1;
    summarize: int = 3
PrintV2(input: string) stateful
  | output_stream: string = stderr; late end: string = "\n"
ScalarSummary(tags: string, values: T) -> (summary: string) | T: {real}
HistogramSummary(tag: string, values: T) -> (summary: string)
  | T: {real} = float
ImageSummary(tag: string, tensor: T) -> (summary: string)
  | max_images: int >= 1 = 3; T: {uint8, float, half, double} = float;
    bad_color: tensor = uint8[255, 0, 0, 255]
AudioSummaryV2(tag: string, tensor: float, sample_rate: float)
  -> (summary: string) | max_outputs: int >= 1 = 3
TensorSummaryV2(tag: string, tensor: T, serialized_summary_metadata: string)
  -> (summary: string) | T: type
MergeSummary(inputs: N*string) -> (summary: string) | N: int >= 1
Timestamp() -> (ts: double) stateful
)";
  return kText;
}

}  // namespace optfarm::graph

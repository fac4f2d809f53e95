// Rows of ops with state or with the outside world: variables, checkpoints,
// lookup tables, queues, readers, summaries, assertions. op_row.h says what
// they hold.

#include "engine/graph/ops/op_families.h"
#include "engine/graph/shapes/shape_functions.h"

namespace optfarm::graph {
namespace {

constexpr char kVariableSignature[] =
    R"(() -> (ref: &dtype) stateful
       | shape: shape; dtype: type; container: string = "";
       shared_name: string = "")";

constexpr OpRow kRows[] = {
    // Reference variables.
    {.names = "Variable",
     .signature = kVariableSignature,
     .shape = FirstVariableShape,
     .role = OpRole::kVariable,
     .is_bookkeeping = true},
    {.names = "VariableV2",
     .signature = kVariableSignature,
     .shape = VariableShape,
     .role = OpRole::kVariable,
     .is_bookkeeping = true},
    {.names = "TemporaryVariable",
     .signature = R"(() -> (ref: &dtype) stateful
       | shape: shape; dtype: type; var_name: string = "")",
     .shape = VariableShape,
     .is_bookkeeping = true},
    {.names = "DestroyTemporaryVariable",
     .signature = "(ref: &T) -> (value: T) | T: type; var_name: string",
     .shape = UnchangedShape},
    {.names = "IsVariableInitialized",
     .signature = R"((ref: &dtype) -> (is_initialized: bool) uninitialized
       | dtype: type)",
     .shape = ScalarOutputs,
     .is_bookkeeping = true},
    {.names = "Assign",
     .signature = R"((ref: &T, value: T) -> (output_ref: &T) uninitialized
       | T: type; validate_shape: bool = true; use_locking: bool = true)",
     .shape = AssignShape,
     .role = OpRole::kAssign,
     .is_bookkeeping = true},
    {.names = "AssignAdd, AssignSub",
     .signature = R"((ref: &T, value: T) -> (output_ref: &T)
       | T: {number}; use_locking: bool = false)",
     .shape = AssignShape,
     .is_bookkeeping = true},
    {.names = "CountUpTo",
     .signature = "(ref: &T) -> (output: T) | limit: int; T: {index}",
     .shape = ScalarOutputs},
    {.names = "ScatterUpdate",
     .signature =
         R"((ref: &T, indices: Tindices, updates: T) -> (output_ref: &T)
       | T: type; Tindices: {index}; use_locking: bool = true)",
     .shape = UnchangedShape,
     .is_bookkeeping = true},
    {.names = "ScatterAdd, ScatterSub, ScatterMul, ScatterDiv",
     .signature = R"((
       ref: &T, indices: Tindices, updates: T) -> (output_ref: &T)
       | T: {number}; Tindices: {index}; use_locking: bool = false)",
     .shape = UnchangedShape,
     .is_bookkeeping = true},
    {.names = "ScatterMin, ScatterMax",
     .signature = R"((ref: &T, indices: Tindices, updates: T)
       -> (output_ref: &T)
       | T: {half, bfloat16, float, double, int32, int64}; Tindices: {index};
       use_locking: bool = false)",
     .shape = UnchangedShape,
     .is_bookkeeping = true},
    {.names = "ScatterNdUpdate",
     .signature =
         R"((ref: &T, indices: Tindices, updates: T) -> (output_ref: &T)
       | T: type; Tindices: {index}; use_locking: bool = true;
       late bad_indices_policy: string = "")",
     .shape = UnchangedShape,
     .is_bookkeeping = true},
    {.names = "ScatterNdAdd, ScatterNdSub",
     .signature = R"((ref: &T, indices: Tindices, updates: T)
       -> (output_ref: &T)
       | T: {number}; Tindices: {index}; use_locking: bool = false;
       late bad_indices_policy: string = "")",
     .shape = UnchangedShape,
     .is_bookkeeping = true},

    // Resource variables.
    {.names = "VarHandleOp",
     .signature = R"(() -> (resource: resource) stateful
       | container: string = ""; shared_name: string = "";
       late debug_name: string = ""; dtype: type; shape: shape;
       late allowed_devices: list(string) = [])",
     .shape = VarHandleShape,
     .role = OpRole::kResourceVariable,
     .is_bookkeeping = true},
    {.names = "VarIsInitializedOp",
     .signature = "(resource: resource) -> (is_initialized: bool) stateful",
     .shape = ScalarOutputs,
     .is_bookkeeping = true},
    {.names = "ReadVariableOp",
     .signature =
         "(resource: resource) -> (value: dtype) stateful | dtype: type",
     .shape = ReadVariableShape,
     .role = OpRole::kReadVariable,
     .flow = ValueFlow::kDataMovement},
    {.names = "ReadVariableOrInitial",
     .signature = R"((resource: resource, initial: dtype) -> (value: dtype)
       stateful | dtype: type)",
     .shape = SecondInputShape,
     .flow = ValueFlow::kDataMovement,
     .origin = Origin::kOtherFormats},
    {.names = "AssignVariableOp",
     .signature = R"((resource: resource, value: dtype) stateful
       | dtype: type; late validate_shape: bool = false)",
     .role = OpRole::kAssign,
     .is_bookkeeping = true},
    {.names = "AssignAddVariableOp, AssignSubVariableOp",
     .signature = "(resource: resource, value: dtype) stateful | dtype: type",
     .is_bookkeeping = true},
    {.names = "VariableShape",
     .signature = R"((input: resource) -> (output: out_type) stateful
       | out_type: {index} = int32)",
     .shape = ShapeOfVariableShape},
    {.names = "DestroyResourceOp", .signature = R"((resource: resource) stateful
       | ignore_lookup_error: bool = true)"},
    {.names = "ResourceGather",
     .signature = R"((resource: resource, indices: Tindices) -> (output: dtype)
       stateful
       | late batch_dims: int = 0; validate_indices: bool = true; dtype: type;
       Tindices: {index})",
     .shape = ResourceGatherShape,
     .flow = ValueFlow::kDataMovement},
    {.names = "ResourceScatterAdd, ResourceScatterUpdate", .signature = R"((
       resource: resource, indices: Tindices, updates: dtype) stateful
       | dtype: type; Tindices: {index})"},

    // Checkpoints and files.
    {.names = "Save",
     .signature = R"((filename: string, tensor_names: string, data: T) stateful
       | T: list(type) >= 1)",
     .is_bookkeeping = true},
    {.names = "SaveSlices",
     .signature = R"((
       filename: string, tensor_names: string, shapes_and_slices: string, data: T)
       stateful | T: list(type) >= 1)",
     .is_bookkeeping = true},
    {.names = "SaveV2",
     .signature = R"((
       prefix: string, tensor_names: string, shape_and_slices: string,
       tensors: dtypes) stateful | dtypes: list(type) >= 1)",
     .is_bookkeeping = true},
    {.names = "Restore",
     .signature =
         R"((file_pattern: string, tensor_name: string) -> (tensor: dt) stateful
       | dt: type; preferred_shard: int = -1)",
     .is_bookkeeping = true},
    {.names = "RestoreSlice",
     .signature = R"((
       file_pattern: string, tensor_name: string, shape_and_slice: string)
       -> (tensor: dt) stateful | dt: type; preferred_shard: int = -1)",
     .is_bookkeeping = true},
    {.names = "RestoreV2",
     .signature =
         R"((prefix: string, tensor_names: string, shape_and_slices: string)
       -> (tensors: dtypes) stateful | dtypes: list(type) >= 1)",
     .is_bookkeeping = true},
    {.names = "MergeV2Checkpoints",
     .signature = R"((checkpoint_prefixes: string, destination_prefix: string)
       stateful
       | delete_old_dirs: bool = true; late allow_missing_files: bool = false)",
     .is_bookkeeping = true},
    {.names = "ShardedFilename",
     .signature = R"((basename: string, shard: int32, num_shards: int32)
       -> (filename: string))",
     .shape = ScalarOutputs,
     .is_bookkeeping = true},
    {.names = "ShardedFilespec",
     .signature = "(basename: string, num_shards: int32) -> (filename: string)",
     .shape = ScalarOutputs},
    {.names = "ReadFile",
     .signature = "(filename: string) -> (contents: string)",
     .shape = ScalarOutputs,
     .demand = InputDemand::kScalar},
    {.names = "WriteFile",
     .signature = "(filename: string, contents: string) stateful"},
    {.names = "MatchingFiles",
     .signature = "(pattern: string) -> (filenames: string)",
     .shape = MatchingFilesShape},
    {.names = "WholeFileReaderV2",
     .signature = R"(() -> (reader_handle: resource) stateful
       | container: string = ""; shared_name: string = "")"},
    {.names = "ReaderReadV2",
     .signature = R"((reader_handle: resource, queue_handle: resource)
       -> (key: string, value: string) stateful)"},

    // Lookup tables: a reference to a string, then (V2) a resource.
    {.names = "HashTable",
     .signature = R"(() -> (table_handle: &string) stateful
       | container: string = ""; shared_name: string = "";
       use_node_name_sharing: bool = false; key_dtype: type; value_dtype: type)",
     .shape = ScalarOutputs,
     .is_bookkeeping = true},
    {.names = "HashTableV2",
     .signature = R"(() -> (table_handle: resource) stateful
       | container: string = ""; shared_name: string = "";
       use_node_name_sharing: bool = false; key_dtype: type; value_dtype: type)",
     .shape = ScalarOutputs,
     .is_bookkeeping = true},
    {.names = "MutableHashTable",
     .signature = R"(() -> (table_handle: &string) stateful
       | container: string = ""; shared_name: string = "";
       use_node_name_sharing: bool = false; key_dtype: type; value_dtype: type)",
     .shape = ScalarOutputs,
     .is_bookkeeping = true},
    {.names = "MutableHashTableV2",
     .signature = R"(() -> (table_handle: resource) stateful
       | container: string = ""; shared_name: string = "";
       use_node_name_sharing: bool = false; key_dtype: type; value_dtype: type)",
     .shape = ScalarOutputs,
     .is_bookkeeping = true},
    {.names = "LookupTableFind",
     .signature = R"((table_handle: &string, keys: Tin, default_value: Tout)
       -> (values: Tout) | Tin: type; Tout: type)",
     .shape = LookupFindShape},
    {.names = "LookupTableFindV2",
     .signature = R"((table_handle: resource, keys: Tin, default_value: Tout)
       -> (values: Tout) stateful | Tin: type; Tout: type)",
     .shape = LookupFindShape},
    {.names = "LookupTableInsert",
     .signature = R"((table_handle: &string, keys: Tin, values: Tout)
       | Tin: type; Tout: type)"},
    {.names = "LookupTableInsertV2",
     .signature = R"((table_handle: resource, keys: Tin, values: Tout) stateful
       | Tin: type; Tout: type)"},
    {.names = "LookupTableSize",
     .signature = "(table_handle: &string) -> (size: int64)",
     .shape = ScalarOutputs},
    {.names = "LookupTableSizeV2",
     .signature = "(table_handle: resource) -> (size: int64) stateful",
     .shape = ScalarOutputs},
    {.names = "LookupTableExport",
     .signature = R"((table_handle: &string) -> (keys: Tkeys, values: Tvalues)
       | Tkeys: type; Tvalues: type)"},
    {.names = "LookupTableExportV2",
     .signature = R"((table_handle: resource) -> (keys: Tkeys, values: Tvalues)
       stateful | Tkeys: type; Tvalues: type)"},
    {.names = "LookupTableImport",
     .signature = R"((table_handle: &string, keys: Tin, values: Tout)
       | Tin: type; Tout: type)"},
    {.names = "LookupTableImportV2",
     .signature = R"((table_handle: resource, keys: Tin, values: Tout) stateful
       | Tin: type; Tout: type)"},
    {.names = "InitializeTable",
     .signature = R"((table_handle: &string, keys: Tkey, values: Tval)
       | Tkey: type; Tval: type)"},
    {.names = "InitializeTableV2",
     .signature = R"((table_handle: resource, keys: Tkey, values: Tval) stateful
       | Tkey: type; Tval: type)"},
    {.names = "InitializeTableFromTextFile",
     .signature = R"((table_handle: &string, filename: string)
       | key_index: int >= -2; value_index: int >= -2; vocab_size: int >= -1 = -1;
       delimiter: string = "\t"; late offset: int = 0)"},
    {.names = "InitializeTableFromTextFileV2",
     .signature = R"((table_handle: resource, filename: string)
       stateful
       | key_index: int >= -2; value_index: int >= -2; vocab_size: int >= -1 = -1;
       delimiter: string = "\t"; late offset: int = 0)"},

    // Queues: a reference to a string, then (V2) a resource.
    {.names = "FIFOQueue", .signature = R"(() -> (handle: &string) stateful
       | component_types: list(type) >= 1; shapes: list(shape) >= 0 = [];
       capacity: int = -1; container: string = ""; shared_name: string = "")"},
    {.names = "FIFOQueueV2", .signature = R"(() -> (handle: resource) stateful
       | component_types: list(type) >= 1; shapes: list(shape) >= 0 = [];
       capacity: int = -1; container: string = ""; shared_name: string = "")"},
    {.names = "PaddingFIFOQueueV2",
     .signature = R"(() -> (handle: resource) stateful
       | component_types: list(type) >= 1; shapes: list(shape) >= 0 = [];
       capacity: int = -1; container: string = ""; shared_name: string = "")"},
    {.names = "RandomShuffleQueue",
     .signature = R"(() -> (handle: &string) stateful
       | component_types: list(type) >= 1; shapes: list(shape) >= 0 = [];
       capacity: int = -1; min_after_dequeue: int = 0; seed: int = 0;
       seed2: int = 0; container: string = ""; shared_name: string = "")"},
    {.names = "RandomShuffleQueueV2",
     .signature = R"(() -> (handle: resource) stateful
       | component_types: list(type) >= 1; shapes: list(shape) >= 0 = [];
       capacity: int = -1; min_after_dequeue: int = 0; seed: int = 0;
       seed2: int = 0; container: string = ""; shared_name: string = "")"},
    {.names = "QueueEnqueue, QueueEnqueueMany",
     .signature = R"((handle: &string, components: Tcomponents)
       | Tcomponents: list(type) >= 1; timeout_ms: int = -1)",
     .is_bookkeeping = true},
    {.names = "QueueEnqueueV2, QueueEnqueueManyV2",
     .signature = R"((
       handle: resource, components: Tcomponents) stateful
       | Tcomponents: list(type) >= 1; timeout_ms: int = -1)",
     .is_bookkeeping = true},
    {.names = "QueueDequeue",
     .signature = R"((handle: &string) -> (components: component_types)
       | component_types: list(type) >= 1; timeout_ms: int = -1)",
     .is_bookkeeping = true},
    {.names = "QueueDequeueV2",
     .signature =
         R"((handle: resource) -> (components: component_types) stateful
       | component_types: list(type) >= 1; timeout_ms: int = -1)",
     .is_bookkeeping = true},
    {.names = "QueueDequeueMany, QueueDequeueUpTo",
     .signature = R"((handle: &string, n: int32)
       -> (components: component_types)
       | component_types: list(type) >= 1; timeout_ms: int = -1)",
     .is_bookkeeping = true},
    {.names = "QueueDequeueManyV2, QueueDequeueUpToV2",
     .signature = R"((handle: resource, n: int32)
       -> (components: component_types) stateful
       | component_types: list(type) >= 1; timeout_ms: int = -1)",
     .is_bookkeeping = true},
    {.names = "QueueClose",
     .signature = "(handle: &string) | cancel_pending_enqueues: bool = false",
     .is_bookkeeping = true},
    {.names = "QueueCloseV2",
     .signature = R"((handle: resource) stateful
       | cancel_pending_enqueues: bool = false)",
     .is_bookkeeping = true},
    {.names = "QueueSize",
     .signature = "(handle: &string) -> (size: int32)",
     .shape = ScalarOutputs,
     .is_bookkeeping = true},
    {.names = "QueueSizeV2",
     .signature = "(handle: resource) -> (size: int32) stateful",
     .shape = ScalarOutputs,
     .is_bookkeeping = true},
    {.names = "IteratorV2",
     .signature = R"(() -> (handle: resource) stateful
       | shared_name: string; container: string; output_types: list(type) >= 1;
       output_shapes: list(shape) >= 1)",
     .shape = ScalarOutputs,
     .origin = Origin::kLaterTensorFlow},
    {.names = "IteratorGetNext",
     .signature = R"((iterator: resource) -> (components: output_types) stateful
       | output_types: list(type) >= 1; output_shapes: list(shape) >= 1)",
     .shape = IteratorShape},

    // Assertions, prints and summaries.
    {.names = "Assert",
     .signature = R"((condition: bool, data: T) stateful
       | T: list(type) >= 1; summarize: int = 3)",
     .is_bookkeeping = true},
    {.names = "Print",
     .signature = R"((input: T, data: U) -> (output: T) stateful
       | T: type; U: list(type) >= 0; message: string = ""; first_n: int = -1;
       summarize: int = 3)",
     .shape = UnchangedShape,
     .flow = ValueFlow::kDataMovement},
    {.names = "PrintV2",
     .signature = R"((input: string) stateful
       | output_stream: string = stderr; late end: string = "\n")",
     .origin = Origin::kLaterTensorFlow},
    {.names = "ScalarSummary",
     .signature = "(tags: string, values: T) -> (summary: string) | T: {real}",
     .shape = ScalarOutputs,
     .is_bookkeeping = true},
    {.names = "HistogramSummary",
     .signature = R"((tag: string, values: T) -> (summary: string)
       | T: {real} = float)",
     .shape = ScalarOutputs,
     .is_bookkeeping = true},
    {.names = "ImageSummary",
     .signature = R"((tag: string, tensor: T) -> (summary: string)
       | max_images: int >= 1 = 3; T: {uint8, float, half, double} = float;
       bad_color: tensor = uint8[255, 0, 0, 255])",
     .shape = ScalarOutputs,
     .is_bookkeeping = true},
    {.names = "AudioSummaryV2",
     .signature = R"((tag: string, tensor: float, sample_rate: float)
       -> (summary: string) | max_outputs: int >= 1 = 3)",
     .shape = ScalarOutputs,
     .is_bookkeeping = true},
    {.names = "TensorSummaryV2",
     .signature =
         R"((tag: string, tensor: T, serialized_summary_metadata: string)
       -> (summary: string) | T: type)",
     .shape = ScalarOutputs,
     .is_bookkeeping = true},
    {.names = "MergeSummary",
     .signature = "(inputs: N*string) -> (summary: string) | N: int >= 1",
     .shape = ScalarOutputs,
     .is_bookkeeping = true},
    {.names = "Timestamp",
     .signature = "() -> (ts: double) stateful",
     .shape = ScalarOutputs,
     .is_bookkeeping = true,
     .origin = Origin::kLaterTensorFlow},
};

}  // namespace

absl::Span<const OpRow> StateOps() { return kRows; }

}  // namespace optfarm::graph

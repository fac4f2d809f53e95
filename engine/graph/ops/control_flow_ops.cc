// Rows of loops and branches, of calls to functions, and of the arrays of
// tensors that loops write to. op_row.h says what they hold.

#include "engine/graph/ops/op_families.h"
#include "engine/graph/shapes/shape_functions.h"

namespace optfarm::graph {
namespace {

constexpr OpRow kRows[] = {
    // Loops and branches.
    {.names = "Switch",
     .signature =
         "(data: T, pred: bool) -> (output_false: T, output_true: T) | T: type",
     .shape = SwitchShape,
     .demand = InputDemand::kScalarSecond,
     .role = OpRole::kSwitch,
     .flow = ValueFlow::kDataMovement},
    {.names = "RefSwitch",
     .signature =
         R"((data: &T, pred: bool) -> (output_false: &T, output_true: &T)
       uninitialized | T: type)",
     .shape = SwitchShape,
     .demand = InputDemand::kScalarSecond,
     .role = OpRole::kSwitch,
     .flow = ValueFlow::kDataMovement},
    {.names = "RefSelect",
     .signature =
         "(index: int32, inputs: N*&T) -> (output: &T) | T: type; N: int >= 1",
     .shape = RefSelectShape,
     .flow = ValueFlow::kDataMovement},
    {.names = "Merge",
     .signature = "(inputs: N*T) -> (output: T, value_index: int32) | T: type; "
                  "N: int >= 1",
     .shape = MergeShape,
     .role = OpRole::kMerge,
     .flow = ValueFlow::kDataMovement},
    {.names = "RefMerge",
     .signature = R"((inputs: N*&T) -> (output: &T, value_index: int32)
       | T: type; N: int >= 1)",
     .shape = MergeShape,
     .role = OpRole::kMerge,
     .flow = ValueFlow::kDataMovement},
    {.names = "Enter",
     .signature = R"((data: T) -> (output: T)
       | T: type; frame_name: string; is_constant: bool = false;
       parallel_iterations: int = 10)",
     .shape = EnterShape,
     .role = OpRole::kEnter,
     .flow = ValueFlow::kDataMovement},
    {.names = "RefEnter",
     .signature = R"((data: &T) -> (output: &T)
       | T: type; frame_name: string; is_constant: bool = false;
       parallel_iterations: int = 10)",
     .shape = EnterShape,
     .role = OpRole::kEnter,
     .flow = ValueFlow::kDataMovement},
    {.names = "Exit",
     .signature = "(data: T) -> (output: T) | T: type",
     .shape = UnchangedShape,
     .role = OpRole::kExit,
     .flow = ValueFlow::kDataMovement},
    {.names = "NextIteration",
     .signature = "(data: T) -> (output: T) | T: type",
     .shape = UnchangedShape,
     .role = OpRole::kNextIteration,
     .flow = ValueFlow::kForwarding},
    {.names = "RefExit",
     .signature = "(data: &T) -> (output: &T) | T: type",
     .shape = UnchangedShape,
     .role = OpRole::kExit,
     .flow = ValueFlow::kDataMovement},
    {.names = "RefNextIteration",
     .signature = "(data: &T) -> (output: &T) | T: type",
     .shape = UnchangedShape,
     .role = OpRole::kNextIteration,
     .flow = ValueFlow::kForwarding},
    {.names = "LoopCond",
     .signature = "(input: bool) -> (output: bool)",
     .shape = LoopCondShape,
     .demand = InputDemand::kScalar,
     .role = OpRole::kLoopCond,
     .flow = ValueFlow::kForwarding},
    {.names = "ControlTrigger", .signature = "()", .is_bookkeeping = true},
    {.names = "NoOp",
     .signature = "()",
     .role = OpRole::kNoOp,
     .is_bookkeeping = true},
    {.names = "Abort",
     .signature =
         "() | error_msg: string = \"\"; exit_without_error: bool = false",
     .is_bookkeeping = true},

    // Calls.
    {.names = "_Arg",
     .signature = "() -> (output: T) stateful | T: type; index: int >= 0"},
    {.names = "_Retval",
     .signature = "(input: T) stateful | T: type; index: int >= 0"},
    {.names = "PartitionedCall",
     .signature = R"((args: Tin) -> (output: Tout)
       | Tin: list(type) >= 0; Tout: list(type) >= 0; f: func; config: string = "";
       config_proto: string = ""; executor_type: string = "")",
     .role = OpRole::kCall,
     .origin = Origin::kLaterTensorFlow},
    {.names = "StatefulPartitionedCall",
     .signature = R"((args: Tin) -> (output: Tout) stateful
       | Tin: list(type) >= 0; Tout: list(type) >= 0; f: func; config: string = "";
       config_proto: string = ""; executor_type: string = "")",
     .role = OpRole::kCall,
     .origin = Origin::kLaterTensorFlow},
    {.names = "RemoteCall",
     .signature = R"((target: string, args: Tin) -> (output: Tout) stateful
       | Tin: list(type) >= 1; Tout: list(type) >= 1; f: func)"},
    {.names = "SymbolicGradient", .signature = R"((input: Tin) -> (output: Tout)
       | Tin: list(type) >= 1; Tout: list(type) >= 1; f: func)"},
    {.names = "If",
     .signature = R"((cond: Tcond, input: Tin) -> (output: Tout) stateful
       | Tcond: type; Tin: list(type) >= 0; Tout: list(type) >= 0;
       then_branch: func; else_branch: func; output_shapes: list(shape) = [])",
     .shape = CallShape,
     .role = OpRole::kIf,
     .origin = Origin::kLaterTensorFlow},
    {.names = "StatelessIf",
     .signature = R"((cond: Tcond, input: Tin) -> (output: Tout)
       | Tcond: type; Tin: list(type) >= 0; Tout: list(type) >= 0;
       then_branch: func; else_branch: func; output_shapes: list(shape) = [])",
     .shape = CallShape,
     .role = OpRole::kIf,
     .origin = Origin::kLaterTensorFlow},
    {.names = "Case",
     .signature =
         R"((branch_index: int32, input: Tin) -> (output: Tout) stateful
       | Tin: list(type) >= 0; Tout: list(type) >= 0; branches: list(func) >= 1;
       output_shapes: list(shape) = [])",
     .shape = CallShape,
     .role = OpRole::kCase,
     .origin = Origin::kLaterTensorFlow},
    {.names = "StatelessCase",
     .signature = R"((branch_index: int32, input: Tin) -> (output: Tout)
       | Tin: list(type) >= 0; Tout: list(type) >= 0; branches: list(func) >= 1;
       output_shapes: list(shape) = [])",
     .shape = CallShape,
     .role = OpRole::kCase,
     .origin = Origin::kLaterTensorFlow},
    {.names = "While",
     .signature = R"((input: T) -> (output: T) stateful
       | T: list(type) >= 0; cond: func; body: func;
       output_shapes: list(shape) = []; parallel_iterations: int = 10)",
     .shape = CallShape,
     .role = OpRole::kWhile,
     .origin = Origin::kLaterTensorFlow},
    {.names = "StatelessWhile",
     .signature = R"((input: T) -> (output: T)
       | T: list(type) >= 0; cond: func; body: func;
       output_shapes: list(shape) = []; parallel_iterations: int = 10)",
     .shape = CallShape,
     .role = OpRole::kWhile,
     .origin = Origin::kLaterTensorFlow},

    // Tensor arrays, third generation: a resource handle.
    {.names = "TensorArrayV3",
     .signature = R"((size: int32) -> (handle: resource, flow: float) stateful
       | dtype: type; element_shape: shape = ?; dynamic_size: bool = false;
       clear_after_read: bool = true; late identical_element_shapes: bool = false;
       tensor_array_name: string = "")",
     .shape = TensorArrayShape},
    {.names = "TensorArrayGradV3",
     .signature = R"((handle: resource, flow_in: float)
       -> (grad_handle: resource, flow_out: float) stateful | source: string)",
     .shape = TensorArrayShape},
    {.names = "TensorArrayWriteV3",
     .signature = R"((handle: resource, index: int32, value: T, flow_in: float)
       -> (flow_out: float) stateful | T: type)",
     .shape = ScalarOutputs,
     .flow = ValueFlow::kDataMovement},
    {.names = "TensorArrayReadV3",
     .signature = R"((handle: resource, index: int32, flow_in: float)
       -> (value: dtype) stateful | dtype: type)",
     .flow = ValueFlow::kDataMovement},
    {.names = "TensorArrayGatherV3",
     .signature = R"((handle: resource, indices: int32, flow_in: float)
       -> (value: dtype) stateful | dtype: type; element_shape: shape = ?)",
     .shape = TensorArrayGatherShape,
     .flow = ValueFlow::kDataMovement},
    {.names = "TensorArrayScatterV3",
     .signature = R"((
       handle: resource, indices: int32, value: T, flow_in: float)
       -> (flow_out: float) stateful | T: type)",
     .shape = ScalarOutputs,
     .flow = ValueFlow::kDataMovement},
    {.names = "TensorArrayConcatV3",
     .signature = R"((handle: resource, flow_in: float)
       -> (value: dtype, lengths: int64) stateful
       | dtype: type; element_shape_except0: shape = ?)",
     .shape = ConcatPartsShape,
     .flow = ValueFlow::kDataMovement},
    {.names = "TensorArraySplitV3",
     .signature = R"((
       handle: resource, value: T, lengths: int64, flow_in: float)
       -> (flow_out: float) stateful | T: type)",
     .shape = ScalarOutputs,
     .flow = ValueFlow::kDataMovement},
    {.names = "TensorArraySizeV3",
     .signature =
         "(handle: resource, flow_in: float) -> (size: int32) stateful",
     .shape = ScalarOutputs},
    {.names = "TensorArrayCloseV3", .signature = "(handle: resource) stateful"},

    // Second generation: the handle is a string.
    {.names = "TensorArrayV2",
     .signature = R"((size: int32) -> (handle: string) stateful
       | dtype: type; element_shape: shape = ?; dynamic_size: bool = false;
       clear_after_read: bool = true; tensor_array_name: string = "")",
     .shape = TensorArrayShape},
    {.names = "TensorArrayGradV2",
     .signature = R"((handle: string, flow_in: float) -> (grad_handle: string)
       stateful | source: string)",
     .shape = TensorArrayShape},
    {.names = "TensorArrayWriteV2",
     .signature = R"((handle: string, index: int32, value: T, flow_in: float)
       -> (flow_out: float) | T: type)",
     .shape = ScalarOutputs,
     .flow = ValueFlow::kDataMovement},
    {.names = "TensorArrayReadV2",
     .signature = R"((handle: string, index: int32, flow_in: float)
       -> (value: dtype) | dtype: type)",
     .flow = ValueFlow::kDataMovement},
    {.names = "TensorArrayGatherV2",
     .signature = R"((handle: string, indices: int32, flow_in: float)
       -> (value: dtype) | dtype: type; element_shape: shape = ?)",
     .shape = TensorArrayGatherShape,
     .flow = ValueFlow::kDataMovement},
    {.names = "TensorArrayScatterV2",
     .signature = R"((
       handle: string, indices: int32, value: T, flow_in: float)
       -> (flow_out: float) | T: type)",
     .shape = ScalarOutputs,
     .flow = ValueFlow::kDataMovement},
    {.names = "TensorArrayConcatV2",
     .signature = R"((handle: string, flow_in: float)
       -> (value: dtype, lengths: int64)
       | dtype: type; element_shape_except0: shape = ?)",
     .shape = ConcatPartsShape,
     .flow = ValueFlow::kDataMovement},
    {.names = "TensorArraySplitV2",
     .signature = R"((handle: string, value: T, lengths: int64, flow_in: float)
       -> (flow_out: float) | T: type)",
     .shape = ScalarOutputs,
     .flow = ValueFlow::kDataMovement},
    {.names = "TensorArraySizeV2",
     .signature = "(handle: string, flow_in: float) -> (size: int32)",
     .shape = ScalarOutputs},
    {.names = "TensorArrayCloseV2", .signature = "(handle: string)"},

    // First generation: the handle is a reference to a string.
    {.names = "TensorArray",
     .signature = R"((size: int32) -> (handle: &string) stateful
       | dtype: type; dynamic_size: bool = false; clear_after_read: bool = true;
       tensor_array_name: string = ""; element_shape: shape = ?)",
     .shape = TensorArrayShape},
    {.names = "TensorArrayGrad",
     .signature = R"((handle: string, flow_in: float) -> (grad_handle: &string)
       stateful | source: string)",
     .shape = TensorArrayShape},
    {.names = "TensorArrayWrite",
     .signature = R"((handle: &string, index: int32, value: T, flow_in: float)
       -> (flow_out: float) | T: type)",
     .shape = ScalarOutputs,
     .flow = ValueFlow::kDataMovement},
    {.names = "TensorArrayRead",
     .signature = R"((handle: &string, index: int32, flow_in: float)
       -> (value: dtype) | dtype: type)",
     .flow = ValueFlow::kDataMovement},
    {.names = "TensorArrayPack",
     .signature = R"((handle: &string, flow_in: float) -> (value: dtype)
       | dtype: type; element_shape: shape = ?)",
     .flow = ValueFlow::kDataMovement},
    {.names = "TensorArrayUnpack",
     .signature = R"((handle: &string, value: T, flow_in: float)
       -> (flow_out: float) | T: type)",
     .shape = ScalarOutputs,
     .flow = ValueFlow::kDataMovement},
    {.names = "TensorArrayGather",
     .signature = R"((handle: &string, indices: int32, flow_in: float)
       -> (value: dtype) | dtype: type; element_shape: shape = ?)",
     .shape = TensorArrayGatherShape,
     .flow = ValueFlow::kDataMovement},
    {.names = "TensorArrayScatter",
     .signature = R"((handle: &string, indices: int32, value: T, flow_in: float)
       -> (flow_out: float) | T: type)",
     .shape = ScalarOutputs,
     .flow = ValueFlow::kDataMovement},
    {.names = "TensorArrayConcat",
     .signature = R"((handle: &string, flow_in: float)
       -> (value: dtype, lengths: int64)
       | dtype: type; element_shape_except0: shape = ?)",
     .shape = ConcatPartsShape,
     .flow = ValueFlow::kDataMovement},
    {.names = "TensorArraySplit",
     .signature = R"((handle: &string, value: T, lengths: int64, flow_in: float)
       -> (flow_out: float) | T: type)",
     .shape = ScalarOutputs,
     .flow = ValueFlow::kDataMovement},
    {.names = "TensorArraySize",
     .signature = "(handle: &string, flow_in: float) -> (size: int32)",
     .shape = ScalarOutputs},
    {.names = "TensorArrayClose", .signature = "(handle: &string)"},

    // Stacks, which gradients of loops use.
    {.names = "StackV2",
     .signature = R"((max_size: int32) -> (handle: resource) stateful
       | elem_type: type; stack_name: string = "")"},
    {.names = "StackPushV2",
     .signature = R"((handle: resource, elem: T) -> (output: T) stateful
       | T: type; swap_memory: bool = false)"},
    {.names = "StackPopV2",
     .signature =
         "(handle: resource) -> (elem: elem_type) stateful | elem_type: type"},
    {.names = "StackCloseV2", .signature = "(handle: resource) stateful"},
    {.names = "Stack", .signature = R"(() -> (handle: &string) stateful
       | elem_type: type; stack_name: string = "")"},
    {.names = "StackPush",
     .signature = R"((handle: &string, elem: T) -> (output: T)
       | T: type; swap_memory: bool = false)"},
    {.names = "StackPop",
     .signature = "(handle: &string) -> (elem: elem_type) | elem_type: type"},
    {.names = "StackClose", .signature = "(handle: &string)"},

    // Lists of tensors, the successors of tensor arrays.
    {.names = "EmptyTensorList",
     .signature = R"((element_shape: shape_type, max_num_elements: int32)
       -> (handle: variant) | element_dtype: type; shape_type: {index})",
     .shape = ScalarOutputs,
     .origin = Origin::kLaterTensorFlow},
    {.names = "TensorListReserve",
     .signature = R"((element_shape: shape_type, num_elements: int32)
       -> (handle: variant) | element_dtype: type; shape_type: {index})",
     .shape = ScalarOutputs,
     .origin = Origin::kLaterTensorFlow},
    {.names = "TensorListFromTensor",
     .signature = R"((tensor: element_dtype, element_shape: shape_type)
       -> (output_handle: variant) | element_dtype: type; shape_type: {index})",
     .shape = ScalarOutputs,
     .flow = ValueFlow::kDataMovement,
     .origin = Origin::kLaterTensorFlow},
    {.names = "TensorListGetItem",
     .signature = R"((
       input_handle: variant, index: int32, element_shape: int32)
       -> (item: element_dtype) | element_dtype: type)",
     .flow = ValueFlow::kDataMovement,
     .origin = Origin::kLaterTensorFlow},
    {.names = "TensorListSetItem",
     .signature = R"((input_handle: variant, index: int32, item: element_dtype)
       -> (output_handle: variant)
       | element_dtype: type; late resize_if_index_out_of_bounds: bool = false)",
     .shape = ScalarOutputs,
     .flow = ValueFlow::kDataMovement,
     .origin = Origin::kLaterTensorFlow},
    {.names = "TensorListStack",
     .signature = R"((input_handle: variant, element_shape: int32)
       -> (tensor: element_dtype) | element_dtype: type; num_elements: int = -1)",
     .flow = ValueFlow::kDataMovement,
     .origin = Origin::kLaterTensorFlow},
    {.names = "TensorListGather",
     .signature = R"((
       input_handle: variant, indices: int32, element_shape: int32)
       -> (values: element_dtype) | element_dtype: type)",
     .flow = ValueFlow::kDataMovement,
     .origin = Origin::kLaterTensorFlow},
    {.names = "TensorListPushBack",
     .signature = R"((input_handle: variant, tensor: element_dtype)
       -> (output_handle: variant) | element_dtype: type)",
     .shape = ScalarOutputs,
     .flow = ValueFlow::kDataMovement,
     .origin = Origin::kLaterTensorFlow},
    {.names = "TensorListPopBack",
     .signature = R"((input_handle: variant, element_shape: int32)
       -> (output_handle: variant, tensor: element_dtype) | element_dtype: type)",
     .flow = ValueFlow::kDataMovement,
     .origin = Origin::kLaterTensorFlow},
    {.names = "TensorListConcat",
     .signature = R"((input_handle: variant)
       -> (tensor: element_dtype, lengths: int64)
       | element_dtype: type; element_shape: shape = ?)",
     .shape = ConcatPartsShape,
     .flow = ValueFlow::kDataMovement,
     .origin = Origin::kLaterTensorFlow},
    {.names = "TensorListConcatV2",
     .signature = R"((
       input_handle: variant, element_shape: shape_type, leading_dims: int64)
       -> (tensor: element_dtype, lengths: int64)
       | element_dtype: type; shape_type: {index})",
     .shape = ConcatPartsShape,
     .flow = ValueFlow::kDataMovement,
     .origin = Origin::kLaterTensorFlow},
    {.names = "TensorListSplit",
     .signature = R"((
       tensor: element_dtype, element_shape: shape_type, lengths: int64)
       -> (output_handle: variant) | element_dtype: type; shape_type: {index})",
     .shape = ScalarOutputs,
     .flow = ValueFlow::kDataMovement,
     .origin = Origin::kLaterTensorFlow},
    {.names = "TensorListScatter",
     .signature = R"((
       tensor: element_dtype, indices: int32, element_shape: shape_type)
       -> (output_handle: variant) | element_dtype: type; shape_type: {index})",
     .shape = ScalarOutputs,
     .flow = ValueFlow::kDataMovement,
     .origin = Origin::kLaterTensorFlow},
    {.names = "TensorListScatterV2",
     .signature = R"((
       tensor: element_dtype, indices: int32, element_shape: shape_type,
       num_elements: int32)
       -> (output_handle: variant) | element_dtype: type; shape_type: {index})",
     .shape = ScalarOutputs,
     .flow = ValueFlow::kDataMovement,
     .origin = Origin::kLaterTensorFlow},
    {.names = "TensorListScatterIntoExistingList",
     .signature = R"((
       input_handle: variant, tensor: element_dtype, indices: int32)
       -> (output_handle: variant) | element_dtype: type)",
     .shape = ScalarOutputs,
     .flow = ValueFlow::kDataMovement,
     .origin = Origin::kLaterTensorFlow},
    {.names = "TensorListConcatLists",
     .signature = R"((input_a: variant, input_b: variant)
       -> (output: variant) | element_dtype: type)",
     .shape = ScalarOutputs,
     .flow = ValueFlow::kDataMovement,
     .origin = Origin::kLaterTensorFlow},
    {.names = "TensorListResize",
     .signature = R"((input_handle: variant, size: int32)
       -> (output_handle: variant))",
     .shape = ScalarOutputs,
     .origin = Origin::kLaterTensorFlow},
    {.names = "TensorListLength",
     .signature = "(input_handle: variant) -> (length: int32)",
     .shape = ScalarOutputs,
     .origin = Origin::kLaterTensorFlow},
    {.names = "TensorListElementShape",
     .signature = R"((input_handle: variant)
       -> (element_shape: shape_type) | shape_type: {index})",
     .origin = Origin::kLaterTensorFlow},
};

}  // namespace

absl::Span<const OpRow> ControlFlowOps() { return kRows; }

}  // namespace optfarm::graph

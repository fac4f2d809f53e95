// Signatures of loops and branches, of calls to functions, and of the arrays of
// tensors that loops write to. The notation is explained in op_signatures.h.

#include "engine/graph/op_signatures.h"

namespace optfarm::graph {

absl::string_view ControlFlowOpSignatures() {
  static constexpr absl::string_view kText = R"(
# Loops and branches.
Switch(data: T, pred: bool) -> (output_false: T, output_true: T) | T: type
RefSwitch(data: &T, pred: bool) -> (output_false: &T, output_true: &T)
  uninitialized | T: type
RefSelect(index: int32, inputs: N*&T) -> (output: &T) | T: type; N: int >= 1
Merge(inputs: N*T) -> (output: T, value_index: int32) | T: type; N: int >= 1
RefMerge(inputs: N*&T) -> (output: &T, value_index: int32)
  | T: type; N: int >= 1
Enter(data: T) -> (output: T)
  | T: type; frame_name: string; is_constant: bool = false;
    parallel_iterations: int = 10
RefEnter(data: &T) -> (output: &T)
  | T: type; frame_name: string; is_constant: bool = false;
    parallel_iterations: int = 10
Exit, NextIteration(data: T) -> (output: T) | T: type
RefExit, RefNextIteration(data: &T) -> (output: &T) | T: type
LoopCond(input: bool) -> (output: bool)
ControlTrigger, NoOp()
Abort() | error_msg: string = ""; exit_without_error: bool = false

# Calls.
_Arg() -> (output: T) stateful | T: type; index: int >= 0
_Retval(input: T) stateful | T: type; index: int >= 0
PartitionedCall(args: Tin) -> (output: Tout)
  | Tin: list(type) >= 0; Tout: list(type) >= 0; f: func; config: string = "";
    config_proto: string = ""; executor_type: string = ""
StatefulPartitionedCall(args: Tin) -> (output: Tout) stateful
  | Tin: list(type) >= 0; Tout: list(type) >= 0; f: func; config: string = "";
    config_proto: string = ""; executor_type: string = ""
RemoteCall(target: string, args: Tin) -> (output: Tout) stateful
  | Tin: list(type) >= 1; Tout: list(type) >= 1; f: func
SymbolicGradient(input: Tin) -> (output: Tout)
  | Tin: list(type) >= 1; Tout: list(type) >= 1; f: func
If(cond: Tcond, input: Tin) -> (output: Tout) stateful
  | Tcond: type; Tin: list(type) >= 0; Tout: list(type) >= 0;
    then_branch: func; else_branch: func; output_shapes: list(shape) = []
StatelessIf(cond: Tcond, input: Tin) -> (output: Tout)
  | Tcond: type; Tin: list(type) >= 0; Tout: list(type) >= 0;
    then_branch: func; else_branch: func; output_shapes: list(shape) = []
Case(branch_index: int32, input: Tin) -> (output: Tout) stateful
  | Tin: list(type) >= 0; Tout: list(type) >= 0; branches: list(func) >= 1;
    output_shapes: list(shape) = []
StatelessCase(branch_index: int32, input: Tin) -> (output: Tout)
  | Tin: list(type) >= 0; Tout: list(type) >= 0; branches: list(func) >= 1;
    output_shapes: list(shape) = []
While(input: T) -> (output: T) stateful
  | T: list(type) >= 0; cond: func; body: func;
    output_shapes: list(shape) = []; parallel_iterations: int = 10
StatelessWhile(input: T) -> (output: T)
  | T: list(type) >= 0; cond: func; body: func;
    output_shapes: list(shape) = []; parallel_iterations: int = 10

# Tensor arrays, third generation: a resource handle.
TensorArrayV3(size: int32) -> (handle: resource, flow: float) stateful
  | dtype: type; element_shape: shape = ?; dynamic_size: bool = false;
    clear_after_read: bool = true; late identical_element_shapes: bool = false;
    tensor_array_name: string = ""
TensorArrayGradV3(handle: resource, flow_in: float)
  -> (grad_handle: resource, flow_out: float) stateful | source: string
TensorArrayWriteV3(handle: resource, index: int32, value: T, flow_in: float)
  -> (flow_out: float) stateful | T: type
TensorArrayReadV3(handle: resource, index: int32, flow_in: float)
  -> (value: dtype) stateful | dtype: type
TensorArrayGatherV3(handle: resource, indices: int32, flow_in: float)
  -> (value: dtype) stateful | dtype: type; element_shape: shape = ?
TensorArrayScatterV3(
  handle: resource, indices: int32, value: T, flow_in: float)
  -> (flow_out: float) stateful | T: type
TensorArrayConcatV3(handle: resource, flow_in: float)
  -> (value: dtype, lengths: int64) stateful
  | dtype: type; element_shape_except0: shape = ?
TensorArraySplitV3(
  handle: resource, value: T, lengths: int64, flow_in: float)
  -> (flow_out: float) stateful | T: type
TensorArraySizeV3(handle: resource, flow_in: float) -> (size: int32) stateful
TensorArrayCloseV3(handle: resource) stateful

# Second generation: the handle is a string.
TensorArrayV2(size: int32) -> (handle: string) stateful
  | dtype: type; element_shape: shape = ?; dynamic_size: bool = false;
    clear_after_read: bool = true; tensor_array_name: string = ""
TensorArrayGradV2(handle: string, flow_in: float) -> (grad_handle: string)
  stateful | source: string
TensorArrayWriteV2(handle: string, index: int32, value: T, flow_in: float)
  -> (flow_out: float) | T: type
TensorArrayReadV2(handle: string, index: int32, flow_in: float)
  -> (value: dtype) | dtype: type
TensorArrayGatherV2(handle: string, indices: int32, flow_in: float)
  -> (value: dtype) | dtype: type; element_shape: shape = ?
TensorArrayScatterV2(
  handle: string, indices: int32, value: T, flow_in: float)
  -> (flow_out: float) | T: type
TensorArrayConcatV2(handle: string, flow_in: float)
  -> (value: dtype, lengths: int64)
  | dtype: type; element_shape_except0: shape = ?
TensorArraySplitV2(handle: string, value: T, lengths: int64, flow_in: float)
  -> (flow_out: float) | T: type
TensorArraySizeV2(handle: string, flow_in: float) -> (size: int32)
TensorArrayCloseV2(handle: string)

# First generation: the handle is a reference to a string.
TensorArray(size: int32) -> (handle: &string) stateful
  | dtype: type; dynamic_size: bool = false; clear_after_read: bool = true;
    tensor_array_name: string = ""; element_shape: shape = ?
TensorArrayGrad(handle: string, flow_in: float) -> (grad_handle: &string)
  stateful | source: string
TensorArrayWrite(handle: &string, index: int32, value: T, flow_in: float)
  -> (flow_out: float) | T: type
TensorArrayRead(handle: &string, index: int32, flow_in: float)
  -> (value: dtype) | dtype: type
TensorArrayPack(handle: &string, flow_in: float) -> (value: dtype)
  | dtype: type; element_shape: shape = ?
TensorArrayUnpack(handle: &string, value: T, flow_in: float)
  -> (flow_out: float) | T: type
TensorArrayGather(handle: &string, indices: int32, flow_in: float)
  -> (value: dtype) | dtype: type; element_shape: shape = ?
TensorArrayScatter(handle: &string, indices: int32, value: T, flow_in: float)
  -> (flow_out: float) | T: type
TensorArrayConcat(handle: &string, flow_in: float)
  -> (value: dtype, lengths: int64)
  | dtype: type; element_shape_except0: shape = ?
TensorArraySplit(handle: &string, value: T, lengths: int64, flow_in: float)
  -> (flow_out: float) | T: type
TensorArraySize(handle: &string, flow_in: float) -> (size: int32)
TensorArrayClose(handle: &string)

# Stacks, which gradients of loops use.
StackV2(max_size: int32) -> (handle: resource) stateful
  | elem_type: type; stack_name: string = ""
StackPushV2(handle: resource, elem: T) -> (output: T) stateful
  | T: type; swap_memory: bool = false
StackPopV2(handle: resource) -> (elem: elem_type) stateful | elem_type: type
StackCloseV2(handle: resource) stateful
Stack() -> (handle: &string) stateful
  | elem_type: type; stack_name: string = ""
StackPush(handle: &string, elem: T) -> (output: T)
  | T: type; swap_memory: bool = false
StackPop(handle: &string) -> (elem: elem_type) | elem_type: type
StackClose(handle: &string)

# Lists of tensors, the successors of tensor arrays.
EmptyTensorList(element_shape: shape_type, max_num_elements: int32)
  -> (handle: variant) | element_dtype: type; shape_type: {index}
TensorListReserve(element_shape: shape_type, num_elements: int32)
  -> (handle: variant) | element_dtype: type; shape_type: {index}
TensorListFromTensor(tensor: element_dtype, element_shape: shape_type)
  -> (output_handle: variant) | element_dtype: type; shape_type: {index}
TensorListGetItem(
  input_handle: variant, index: int32, element_shape: int32)
  -> (item: element_dtype) | element_dtype: type
TensorListSetItem(input_handle: variant, index: int32, item: element_dtype)
  -> (output_handle: variant)
  | element_dtype: type; late resize_if_index_out_of_bounds: bool = false
TensorListStack(input_handle: variant, element_shape: int32)
  -> (tensor: element_dtype) | element_dtype: type; num_elements: int = -1
TensorListGather(
  input_handle: variant, indices: int32, element_shape: int32)
  -> (values: element_dtype) | element_dtype: type
TensorListPushBack(input_handle: variant, tensor: element_dtype)
  -> (output_handle: variant) | element_dtype: type
TensorListPopBack(input_handle: variant, element_shape: int32)
  -> (output_handle: variant, tensor: element_dtype) | element_dtype: type
TensorListConcat(input_handle: variant)
  -> (tensor: element_dtype, lengths: int64)
  | element_dtype: type; element_shape: shape = ?
TensorListConcatV2(
  input_handle: variant, element_shape: shape_type, leading_dims: int64)
  -> (tensor: element_dtype, lengths: int64)
  | element_dtype: type; shape_type: {index}
TensorListSplit(
  tensor: element_dtype, element_shape: shape_type, lengths: int64)
  -> (output_handle: variant) | element_dtype: type; shape_type: {index}
TensorListScatter(
  tensor: element_dtype, indices: int32, element_shape: shape_type)
  -> (output_handle: variant) | element_dtype: type; shape_type: {index}
TensorListScatterV2(
  tensor: element_dtype, indices: int32, element_shape: shape_type,
  num_elements: int32)
  -> (output_handle: variant) | element_dtype: type; shape_type: {index}
TensorListScatterIntoExistingList(
  input_handle: variant, tensor: element_dtype, indices: int32)
  -> (output_handle: variant) | element_dtype: type
TensorListConcatLists(input_a: variant, input_b: variant)
  -> (output: variant) | element_dtype: type
TensorListResize(input_handle: variant, size: int32)
  -> (output_handle: variant)
TensorListLength(input_handle: variant) -> (length: int32)
TensorListElementShape(input_handle: variant)
  -> (element_shape: shape_type) | shape_type: {index}
)";
  return kText;
}

}  // namespace optfarm::graph

#include "engine/formats/onnx/raising/node_raiser.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace optfarm::formats {

using tensorflow::DataType;

absl::Status NodeRaiser::RequireInputs(int count) const {
  if (input_count() >= count) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("it has ", input_count(), " inputs, expected ", count));
}

absl::StatusOr<std::vector<int64_t>> NodeRaiser::Integers(
    int index, absl::string_view what) {
  if (index < input_count()) {
    std::optional<std::vector<int64_t>> values =
        graph_.IntegersOf(input(index));
    if (values.has_value()) return *std::move(values);
  }
  return absl::FailedPreconditionError(
      absl::StrCat(what, " is not known before the graph runs"));
}

absl::StatusOr<int64_t> NodeRaiser::Integer(int index, absl::string_view what) {
  absl::StatusOr<std::vector<int64_t>> values = Integers(index, what);
  if (!values.ok()) return values.status();
  if (values->size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " has ", values->size(), " elements, expected 1"));
  }
  return (*values)[0];
}

absl::StatusOr<int> NodeRaiser::Rank(int index) const {
  if (InShape(index).has_rank()) return InShape(index).rank();
  return absl::FailedPreconditionError(
      absl::StrCat("the rank of '", graph_.graph().NameOf(input(index)),
                   "' is not known; give the shapes of the model's inputs"));
}

absl::StatusOr<int> NodeRaiser::Axis(int64_t axis, int rank) const {
  const int64_t counted = axis < 0 ? axis + rank : axis;
  if (counted >= 0 && counted < rank) return static_cast<int>(counted);
  return absl::InvalidArgumentError(
      absl::StrCat("axis ", axis, " is out of range for rank ", rank));
}

ValueId NodeRaiser::Emit(absl::string_view op, std::vector<ValueId> inputs,
                         std::vector<OnnxAttribute> attributes) {
  return EmitMany(op, std::move(inputs), 1, std::move(attributes))[0];
}

std::vector<ValueId> NodeRaiser::EmitMany(
    absl::string_view op, std::vector<ValueId> inputs, int count,
    std::vector<OnnxAttribute> attributes) {
  return graph_.model()->AddNode(op, std::move(inputs), count,
                                 std::move(attributes), name());
}

ValueId NodeRaiser::Cast(ValueId value, DataType from, DataType to) {
  if (OnnxTypeOf(from) == OnnxTypeOf(to)) return value;
  return Emit("Cast", {value}, {{"to", int64_t{OnnxTypeOf(to)}}});
}

ValueId NodeRaiser::InAsInt64(int index) {
  const std::optional<std::vector<int64_t>> known =
      graph_.IntegersOf(input(index));
  const graph::PartialShape& shape = InShape(index);
  if (known.has_value() && shape.has_rank() && shape.rank() == 1) {
    return Ints(*known);
  }
  return Cast(In(index), InType(index), tensorflow::DT_INT64);
}

ValueId NodeRaiser::Reduce(absl::string_view op, ValueId value,
                           const std::vector<int64_t>& axes, bool keep_dims) {
  const OnnxAttribute keep{"keepdims", int64_t{keep_dims ? 1 : 0}};
  // ReduceSum takes its axes as an input since opset 13, the others since 18.
  if (op == "ReduceSum" || opset() >= 18) {
    return Emit(op, {value, Ints(axes)}, {keep});
  }
  return Emit(op, {value}, {{"axes", axes}, keep});
}

AxisOrder CommonOrder(const NodeRaiser& n, absl::Span<const int> inputs,
                      int port) {
  const graph::PartialShape& out = n.OutShape(port);
  if (!out.has_rank()) return {};
  AxisOrder order;
  int64_t largest = -1;
  for (int index : inputs) {
    const AxisOrder own = n.OrderOf(index);
    const graph::PartialShape& shape = n.InShape(index);
    if (own.empty() || !shape.has_rank() || shape.rank() != out.rank()) {
      continue;
    }
    // Sizes that are not known count as large.
    int64_t size = 1;
    for (int64_t dim : shape.dims())
      size *= dim < 0 ? 16 : std::min<int64_t>(dim, 4096);
    if (size > largest) {
      largest = size;
      order = own;
    }
  }
  return order;
}

absl::StatusOr<ValueId> BroadcastIn(NodeRaiser& n, int index,
                                    const AxisOrder& order) {
  if (order.empty()) return n.In(index);
  const graph::PartialShape& shape = n.InShape(index);
  if (!shape.has_rank()) return n.Rank(index).status();
  const int rank = static_cast<int>(order.size());
  if (shape.rank() == rank) return n.In(index, order);
  if (shape.rank() == 0) return n.In(index);
  if (shape.rank() > rank) {
    return absl::InvalidArgumentError("an input has more axes than the result");
  }
  const int missing = rank - shape.rank();
  if (const GraphConstant* constant = n.graph().ConstantOf(n.input(index))) {
    if (constant->elements() == 1) {
      return n.graph().ConstantAs(n.input(index), {}, {});
    }
    std::vector<int64_t> dims(static_cast<size_t>(missing), 1);
    dims.insert(dims.end(), constant->dims.begin(), constant->dims.end());
    return n.graph().ConstantOfRank(n.input(index), dims, order);
  }
  std::vector<int64_t> axes(static_cast<size_t>(missing));
  std::iota(axes.begin(), axes.end(), 0);
  const ValueId wide = n.Unsqueeze(n.In(index), axes);
  return n.Transpose(wide, TransposeBetween({}, order, rank));
}

}  // namespace optfarm::formats

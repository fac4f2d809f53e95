// If, Loop and Scan: calls of functions, which the engine inlines.

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/loop_builder.h"
#include "engine/formats/onnx/lowering_table.h"
#include "engine/formats/onnx/subgraph.h"

namespace optfarm::formats {
namespace {

// What two branches have in common.
OpAttr CommonShapes(const OnnxSubgraph& a, const OnnxSubgraph& b) {
  tensorflow::AttrValue value;
  for (size_t i = 0; i < a.results.size(); ++i) {
    *value.mutable_list()->add_shape() =
        graph::CommonShape(a.builder->shape(a.results[i]),
                           b.builder->shape(b.results[i]))
            .ToProto();
  }
  return {"output_shapes", std::move(value)};
}

// The branch that is always taken, among the nodes around it.
absl::Status InlineBranch(NodeLowering& n, const onnx::GraphProto& branch) {
  OnnxGraphReader body(&n.reader().model(), &n.builder(), &n.reader(),
                       absl::StrCat(n.builder().scope(), "/"));
  body.ReadBody(branch);
  const std::vector<Endpoint> results = body.Results(branch);
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].node == graph::kNoNode) {
      return absl::InvalidArgumentError("its branch cannot be read");
    }
    n.SetOutput(static_cast<int>(i), results[i]);
  }
  return absl::OkStatus();
}

absl::Status CallBranches(NodeLowering& n, Endpoint condition,
                          const OnnxSubgraph& yes, const OnnxSubgraph& no) {
  std::vector<Endpoint> inputs = {condition}, in_yes, in_no;
  std::vector<DataType> types, result_types;
  for (const OnnxSubgraph* branch : {&yes, &no}) {
    for (const OnnxGraphReader::Capture& capture : branch->captures()) {
      auto place = std::find(inputs.begin() + 1, inputs.end(), capture.outside);
      if (place == inputs.end()) {
        place = inputs.insert(place, capture.outside);
        types.push_back(n.dtype(capture.outside));
        in_yes.emplace_back();
        in_no.emplace_back();
      }
      const auto at = static_cast<size_t>(place - inputs.begin()) - 1;
      (branch == &yes ? in_yes : in_no)[at] = capture.inside;
    }
  }
  for (size_t i = 0; i < yes.results.size(); ++i) {
    result_types.push_back(yes.builder->dtype(yes.results[i]));
    if (result_types.back() != no.builder->dtype(no.results[i])) {
      return absl::InvalidArgumentError(
          absl::StrCat("output ", i, " has two types"));
    }
  }
  OnnxModelContext* model = &n.reader().model();
  OPTFARM_ASSIGN_OR_RETURN(
      tensorflow::AttrValue then_branch,
      AddFunction(model, "then", *yes.builder, in_yes, types, yes.results));
  OPTFARM_ASSIGN_OR_RETURN(
      tensorflow::AttrValue else_branch,
      AddFunction(model, "else", *no.builder, in_no, types, no.results));
  const std::vector<Endpoint> results =
      n.AddAll("StatelessIf", inputs,
               {{"then_branch", std::move(then_branch)},
                {"else_branch", std::move(else_branch)},
                {"Tout", result_types},
                CommonShapes(yes, no)});
  for (size_t i = 0; i < results.size(); ++i) {
    n.SetOutput(static_cast<int>(i), results[i]);
  }
  return absl::OkStatus();
}

absl::Status LowerIf(NodeLowering& n) {
  const onnx::GraphProto* yes = n.Graph("then_branch");
  const onnx::GraphProto* no = n.Graph("else_branch");
  if (yes == nullptr || no == nullptr ||
      yes->output_size() != no->output_size()) {
    return absl::InvalidArgumentError("it needs two branches alike");
  }
  Endpoint condition = n.input(0);
  const auto known = n.builder().Known(condition);
  if (known.has_value() && known->dtype() == tensorflow::DT_BOOL &&
      known->num_elements() == 1) {
    return InlineBranch(n, known->data<bool>()[0] ? *yes : *no);
  }
  if (n.shape(condition) != PartialShape::Scalar()) {
    condition = n.Add("Reshape", {condition, n.Int32s({})});
  }
  OPTFARM_ASSIGN_OR_RETURN(const OnnxSubgraph then_branch,
                           ReadSubgraph(n, *yes, {}));
  OPTFARM_ASSIGN_OR_RETURN(const OnnxSubgraph else_branch,
                           ReadSubgraph(n, *no, {}));
  return CallBranches(n, condition, then_branch, else_branch);
}

absl::Status LowerLoop(NodeLowering& n) {
  const onnx::GraphProto* body = n.Graph("body");
  if (body == nullptr) return absl::InvalidArgumentError("it has no body");
  const auto scalar = [&](int i, DataType type, double absent) {
    if (!n.has_input(i)) return n.builder().Scalar(type, absent);
    return n.Add("Reshape", {n.input(i), n.Int32s({})});
  };
  LoopBuilder loop(n);
  loop.SetTrips(scalar(0, tensorflow::DT_INT64, 9.0e18),
                scalar(1, tensorflow::DT_BOOL, 1));
  std::vector<SubgraphArgument> arguments = {
      {tensorflow::DT_INT64, PartialShape::Scalar()},
      {tensorflow::DT_BOOL, PartialShape::Scalar()}};
  for (int i = 2; i < n.input_count(); ++i) {
    arguments.push_back(loop.AddVariable(n.input(i)));
  }
  OPTFARM_ASSIGN_OR_RETURN(const OnnxSubgraph read,
                           ReadSubgraph(n, *body, arguments));
  const size_t carried = arguments.size() - 2;
  if (read.results.size() < 1 + carried) {
    return absl::InvalidArgumentError("its body has too few outputs");
  }
  LoopBody results;
  results.condition = read.results[0];
  results.variables.assign(
      read.results.begin() + 1,
      read.results.begin() + 1 + static_cast<std::ptrdiff_t>(carried));
  results.collected.assign(
      read.results.begin() + 1 + static_cast<std::ptrdiff_t>(carried),
      read.results.end());
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<Endpoint> outputs,
                           loop.Build(read, results));
  for (size_t i = 0; i < outputs.size(); ++i) {
    n.SetOutput(static_cast<int>(i), outputs[i]);
  }
  return absl::OkStatus();
}

int64_t At(const std::vector<int64_t>& values, size_t i) {
  return i < values.size() ? values[i] : 0;
}

// Brings the elements of a scan output from the first axis to theirs.
absl::StatusOr<Endpoint> PlaceScanned(NodeLowering& n, Endpoint y, int64_t axis,
                                      bool reverse) {
  if (reverse) y = n.Add("ReverseV2", {y, n.Int32s({0})});
  if (axis == 0) return y;
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(y));
  OPTFARM_ASSIGN_OR_RETURN(const int place, NodeLowering::Axis(axis, rank));
  std::vector<int64_t> order;
  for (int i = 1; i < rank; ++i) order.push_back(i);
  order.insert(order.begin() + place, 0);
  return n.Transpose(y, order);
}

absl::Status LowerScan(NodeLowering& n) {
  const onnx::GraphProto* body = n.Graph("body");
  if (body == nullptr) return absl::InvalidArgumentError("it has no body");
  const int64_t scanned = n.Int("num_scan_inputs", 0);
  const int64_t carried = n.input_count() - scanned;
  if (scanned < 1 || carried < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_scan_inputs is ", scanned));
  }
  const auto axes = n.Ints("scan_input_axes");
  const auto directions = n.Ints("scan_input_directions");
  LoopBuilder loop(n);
  std::vector<SubgraphArgument> arguments;
  for (int64_t i = 0; i < carried; ++i) {
    arguments.push_back(loop.AddVariable(n.input(static_cast<int>(i))));
  }
  for (int64_t i = 0; i < scanned; ++i) {
    Endpoint x = n.input(static_cast<int>(carried + i));
    OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(x));
    OPTFARM_ASSIGN_OR_RETURN(
        const int axis,
        NodeLowering::Axis(At(axes, static_cast<size_t>(i)), rank));
    std::vector<int64_t> order = {axis};
    for (int d = 0; d < rank; ++d) {
      if (d != axis) order.push_back(d);
    }
    x = n.Transpose(x, order);
    if (At(directions, static_cast<size_t>(i)) != 0) {
      x = n.Add("ReverseV2", {x, n.Int32s({0})});
    }
    if (i == 0) {
      const Endpoint count =
          n.Add("StridedSlice",
                {n.ShapeOf(x), n.Int32s({0}), n.Int32s({1}), n.Int32s({1})},
                {{"shrink_axis_mask", 1}});
      loop.SetTrips(count, n.builder().Scalar(tensorflow::DT_BOOL, 1));
    }
    arguments.push_back(loop.AddScanned(x));
  }
  OPTFARM_ASSIGN_OR_RETURN(const OnnxSubgraph read,
                           ReadSubgraph(n, *body, arguments));
  LoopBody results;
  if (read.results.size() < static_cast<size_t>(carried)) {
    return absl::InvalidArgumentError("its body has too few outputs");
  }
  const auto first = read.results.begin() + carried;
  results.variables.assign(read.results.begin(), first);
  results.collected.assign(first, read.results.end());
  OPTFARM_ASSIGN_OR_RETURN(std::vector<Endpoint> outputs,
                           loop.Build(read, results));
  const auto out_axes = n.Ints("scan_output_axes");
  const auto out_directions = n.Ints("scan_output_directions");
  for (size_t i = 0; i < outputs.size(); ++i) {
    const size_t k = i - static_cast<size_t>(carried);
    if (i >= static_cast<size_t>(carried)) {
      OPTFARM_ASSIGN_OR_RETURN(outputs[i],
                               PlaceScanned(n, outputs[i], At(out_axes, k),
                                            At(out_directions, k) != 0));
    }
    n.SetOutput(static_cast<int>(i), outputs[i]);
  }
  return absl::OkStatus();
}

constexpr LoweringRow kRows[] = {
    {"If", LowerIf},
    {"Loop", LowerLoop},
    {"Scan", LowerScan, 9},
};

}  // namespace

absl::Span<const LoweringRow> ControlFlowLowerings() { return kRows; }

}  // namespace optfarm::formats
